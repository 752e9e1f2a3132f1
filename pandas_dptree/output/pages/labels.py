"""The names that a page shows instead of those of levels, columns and keys."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.output.pages.texts import Texts
from pandas_dptree.output.released import REMAINDER

__all__ = ["Labels"]


class Labels:
    """Names as a page shows them; see `pandas_dptree.page` for the mapping."""

    def __init__(self, labels: Mapping[Any, Any] | None, texts: Texts) -> None:
        if labels is not None and not isinstance(labels, Mapping):
            raise ArgumentError("labels", f"must be a mapping, not {quote(labels)}.", hint=_HINT)
        self._names: dict[str, str] = {}
        self._keys: dict[str, dict[str, str]] = {}
        self._inline = {ROOT: texts["level.total.inline"], "count": texts["column.count.inline"]}
        self._fixed = {ROOT: texts["level.total"], "count": texts["column.count"]}
        self._remainder, self._empty = texts["remainder"], texts["key.empty"]
        for name, label in (labels or {}).items():
            self._add(str(name), label)

    def _add(self, name: str, label: Any) -> None:
        text, keys = label if isinstance(label, list | tuple) and len(label) == 2 else (label, None)
        if keys is None and isinstance(text, Mapping):
            text, keys = None, text
        if not isinstance(text, str | None) or not isinstance(keys, Mapping | None):
            raise ArgumentError("labels", f"has no label for {quote(name)}.", hint=_HINT)
        if text is not None:
            self._names[name] = text
        if keys is not None:
            self._keys[name] = {str(key): str(shown) for key, shown in keys.items()}

    def name(self, name: Hashable) -> str:
        """Return the label of a level or column; its own name begins with a capital."""
        own, spaced = str(name), _spaced(name)
        return self._names.get(own) or self._fixed.get(own) or f"{spaced[:1].upper()}{spaced[1:]}"

    def has(self, name: Hashable) -> bool:
        """Whether the caller has given a name."""
        return str(name) in self._names

    def inline(self, name: Hashable) -> str:
        """Return the label of a level or column within a sentence: its own name keeps its case."""
        own = str(name)
        return self._names.get(own) or self._inline.get(own) or _spaced(name)

    def key(self, level: Hashable, key: str) -> str:
        """Return the label of a key of a level."""
        own = self._remainder if key == REMAINDER else key
        label = self._keys.get(str(level), {}).get(key, own)
        return label if label.strip() else self._empty


def _spaced(name: Hashable) -> str:
    """Write a name such as ``"date_month"`` with spaces."""
    return str(name).replace("_", " ").strip() or str(name)


_HINT = (
    'for example labels={"district": "District", "count": "Visits", "state": {"CA": "California"}}, or '
    'both of a level as ("State", {"CA": "California"}).'
)
