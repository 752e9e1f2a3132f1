"""Which periods of a programme are released."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pandas_dptree.errors import ArgumentError
from pandas_dptree.ledger.book import Ledger
from pandas_dptree.programmes.keeping import is_saved
from pandas_dptree.programmes.periods import period_of
from pandas_dptree.programmes.placeholders import Placeholder
from pandas_dptree.programmes.programme import Period

__all__ = ["Released"]


class Released:
    """The periods of which all tables are released: by the ledger, or without one by what folders hold."""

    def __init__(self, document: Mapping[str, Any], folder: Path) -> None:
        def text(table: str, key: str) -> str | None:
            values = document.get(table)
            found = values.get(key) if isinstance(values, dict) else None
            return found if isinstance(found, str) else None

        tables = document.get("tables")
        self._names = list(tables) if isinstance(tables, dict) else []
        self._folder = folder
        self._ledger, self._account, self._part, self._note = (
            text("budget", key) for key in ("ledger", "account", "part", "note")
        )
        self._output = text("outputs", "folder") or ""

    @cached_property
    def _notes(self) -> Mapping[str, set[str]]:
        """The names of released tables by their notes."""
        if self._ledger is None:
            return {}
        with Ledger.open(self._folder / self._ledger) as ledger:
            charges = ledger.to_frame()
        part = charges["part"].isna() if self._part is None else charges["part"].eq(self._part)
        own = charges[charges["released"] & part & charges["account"].eq(self._account or "")]
        return {str(note): set(map(str, names)) for note, names in own.groupby("note")["name"]}

    def has(self, period: Period | None) -> bool:
        """Whether all tables of a period are released, or of the only run."""
        placeholder = Placeholder(period)
        if self._ledger is not None:
            return set(self._names) <= self._notes.get(placeholder.fill(self._note or ""), set())
        folder = self._folder / placeholder.fill(self._output)
        return all(is_saved(folder, name) for name in self._names)

    def first(self, unit: str) -> Period | None:
        """Return the first period whose note the ledger has."""
        head, _, tail = (self._note or "").partition(f"{{{unit}}}")
        found = []
        for note in self._notes:
            try:
                middle = re.fullmatch(f"{re.escape(head)}(.*){re.escape(tail)}", note)
                found += [] if middle is None else [period_of(unit, middle[1])]
            except ArgumentError:
                continue
        return min(found, key=lambda period: period.start, default=None)
