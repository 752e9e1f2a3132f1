"""What every section of a page is given, and what it returns."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pandas as pd

from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.output.crossed_columns import axes_of
from pandas_dptree.output.crossed_tables import CrossedTable
from pandas_dptree.output.derived.reliability import CLASSES
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.labels import Labels
from pandas_dptree.output.pages.numbers import Format
from pandas_dptree.output.pages.texts import Texts
from pandas_dptree.output.pages.views import Column, View, columns_of
from pandas_dptree.output.released import Released

__all__ = ["Section", "Setting", "capital", "note", "scrolled"]


class Section(NamedTuple):
    """A section of a page: its heading, what is below it, and its entry in the list of sections.

    `entry` is by default the heading, and `size` a number beside it, such as how many rows there are.
    """

    heading: str
    body: Markup
    entry: str | None = None
    size: str | None = None


@dataclass(frozen=True, eq=False)
class Setting:
    """The tables of a page by name, as they were released, and how the page speaks.

    `provenances` says how each table was made, and is empty where it is unknown. `classes` are those of
    reliability with their limits, and numbers of those in `blank` are not shown.
    """

    tables: Mapping[str, Any]
    provenances: Mapping[str, Mapping[str, Any]]
    texts: Texts
    labels: Labels
    classes: Mapping[str, float] = field(default_factory=lambda: CLASSES["statcan"])
    blank: Collection[str] = ()
    _views: dict[tuple[str, str], View] = field(default_factory=dict, init=False, repr=False)

    @property
    def format(self) -> Format:
        """The numbers of the language."""
        return Format(self.texts)

    def of(self, names: Collection[str]) -> Setting:
        """Return the page of these tables only."""
        if len(names) == len(self.tables):
            return self
        tables, stated = ({name: each[name] for name in names} for each in (self.tables, self.provenances))
        return replace(self, tables=tables, provenances=stated)

    def table_name(self, name: str) -> str:
        """Return the name of a table as the page shows it; a page of one table may leave it empty."""
        return self.labels.name(name) if name else self.texts["page.table"]

    def confidence(self, name: str) -> float:
        """Return the confidence of a table's intervals; 0.95 if it states none."""
        stated = self.provenances[name].get("confidence")
        return stated if isinstance(stated, float) and 0 < stated < 1 else 0.95

    def margin_head(self, name: str) -> str:
        """Return the head of margins at that confidence."""
        return self.texts.fill("head.error.interval", share=self.format.percent(self.confidence(name)))

    def view(self, name: str, columns: Hashable | list[Hashable] | None = None) -> View:
        """Read a table with levels, once for all sections."""
        chosen = (name, repr(columns))
        if chosen not in self._views:
            self._views[chosen] = self._read(name, columns)
        return self._views[chosen]

    def first_column(self, name: str, column: Hashable | None) -> tuple[Released | CrossedTable, Column]:
        """Return a table of one or of crossed hierarchies, and a column of it, by default the first."""
        table = self.tables[name]
        if not isinstance(table, pd.DataFrame) or not axes_of(table):
            view = self.view(name, column)
            return view.released, view.columns[0]
        crossed = CrossedTable.of(table)
        (first, *_) = columns_of(
            crossed, self.provenances[name], self.labels, self.texts, column, self.classes, self.blank
        )
        return crossed, first

    def _read(self, name: str, columns: Hashable | list[Hashable] | None) -> View:
        table = self.tables[name]
        if not isinstance(table, pd.DataFrame):
            raise ArgumentError(
                "show",
                f"wants a table of levels, not {kind_of_object(table)}.",
                hint="leave out `as`, so that it is shown as what it is.",
            )
        return View.of(
            name, table, self.provenances[name], self.labels, self.texts, columns, self.classes, self.blank
        )


def scrolled(table: Markup, name: str, texts: Texts, *, keep: bool = False) -> Markup:
    """Let a wide table scroll by itself, by keyboard too; it is not broken in print if it is to `keep`."""
    return element(
        "div",
        table,
        class_="x keep" if keep else "x",
        role="region",
        aria_label=texts.fill("levels.table", name=name),
        tabindex="0",
    )


def note(*texts: str) -> Markup | None:
    """Make a paragraph of remarks; nothing if all are empty."""
    words = " ".join(filter(None, texts))
    return element("p", words, class_="note") if words else None


def capital(text: str) -> str:
    """Let a text begin with a capital."""
    return f"{text[:1].upper()}{text[1:]}"
