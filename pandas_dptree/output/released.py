"""Released tables, read back as trees: the parent, the name and the error of each row."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, is_name, listed, quote
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes
from pandas_dptree.output.frames import layout_of, prefix_of

__all__ = ["REMAINDER", "Quantities", "Released", "Shown", "provenance_of", "share_of"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shown:
    """One quantity of a table, row by row.

    `numbers` are nan where missing, and `whole` if their type is an integer type. `error` has a size per row,
    and `error_name` says of which kind. `interval` has both ends.
    """

    name: Hashable
    numbers: FloatArray
    whole: bool
    error: FloatArray | None
    error_name: str
    interval: tuple[FloatArray, FloatArray] | None


@dataclass(frozen=True, eq=False)
class Quantities:
    """The quantities of a released table: `columns` are those with an error: counts, sums or means."""

    table: pd.DataFrame
    columns: list[Hashable]

    def shown(self, column: Hashable | None = None, *, argument: str = "value", of: Sized = ()) -> Shown:
        """Return a column with its errors, by default the first column.

        `argument` is the caller's name for `column`, which may be one `of` a list. Raises an `ArgumentError`
        if there is no such column, or it does not hold numbers.
        """
        name = self.columns[0] if column is None else column
        if not is_name(name) or name not in self.columns:
            raise ArgumentError(
                argument,
                f"is not a column of values of the table: {quote(name, of=of)}.",
                hint=f"choose one of {listed(self.columns)}.",
            )
        prefix = prefix_of(None if name == "count" else name)
        kind = next((kind for kind in _ERRORS if f"{prefix}{kind}" in self.table), None)
        ends = [f"{prefix}{end}" for end in ("lower", "upper")]
        return Shown(
            name,
            self._floats(name),
            pd.api.types.is_integer_dtype(self.table[name]),
            None if kind is None else self._floats(f"{prefix}{kind}"),
            "error" if kind is None else _ERRORS[kind],
            (self._floats(ends[0]), self._floats(ends[1])) if set(ends) <= {*self.table} else None,
        )

    def _floats(self, column: Hashable) -> FloatArray:
        try:
            return self.table[column].to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            raise ArgumentError(
                "released",
                f"holds values that are not numbers, in the column {quote(column)}.",
                hint="pass the table from before its numbers were converted to text.",
            ) from None


@dataclass(frozen=True, eq=False)
class Released(Quantities):
    """A released table as a tree of its rows. It may have been filtered, or read back from a file.

    `keys` are from the coarsest down. `depth` is the number of keys of each row.
    """

    keys: list[Hashable]
    depth: IntArray

    @classmethod
    def of(cls, table: pd.DataFrame) -> Released:
        """Read a released table that has rows, at most one for each node."""
        keys, columns = layout_of(table)
        if missing := [key for key in keys if key not in table]:
            raise ColumnsError(
                "released", "lacks keys", columns=missing, hint="keep the columns of all keys."
            )
        depth = pd.Index([ROOT, *keys], dtype=object).get_indexer(pd.Index(table["level"], dtype=object))
        if not len(table) or (depth < 0).any():
            raise ArgumentError(
                "released",
                "has rows without a known level." if len(table) else "has no rows.",
                hint=f"keep rows with one of the levels {listed([ROOT, *keys])}.",
            )
        released = cls(table, columns, keys, depth.astype(np.int64))
        if pd.Series(released.node).duplicated().any():
            raise ArgumentError(
                "released",
                "has several rows for one node.",
                hint="pass the tables of two releases separately; read a CSV file with "
                'keep_default_na=False, na_values=[\'\'] if keys look like "NA" or "None".',
            )
        return released

    @property
    def row_columns(self) -> list[Hashable]:
        """The columns that say which node a row is."""
        return ["level", *self.keys]

    @property
    def levels(self) -> list[tuple[str, IntArray]]:
        """The levels that have rows, from the root down, each with the positions of its rows."""
        names = [str(name) for name in (ROOT, *self.keys)]
        return [(names[depth], np.flatnonzero(self.depth == depth)) for depth in np.unique(self.depth)]

    @cached_property
    def groups(self) -> IntArray:
        """Each row's ancestor (or itself) on each level below the root, shape (n_rows, n_keys); -1 below.

        Ancestors are numbered in the order of their first occurrence, including those without a row.
        """
        groups = np.full((len(self.table), len(self.keys)), -1, dtype=np.int64)
        above = np.zeros(len(self.table), dtype=np.int64)
        for place, key in enumerate(self.keys):
            below = self.depth > place
            codes = canonical_codes(self.table[key])[0] + 1  # 0 for a missing key: a remainder
            above[below] = pd.factorize((above * (codes.max() + 1) + codes)[below])[0]
            groups[below, place] = above[below]
        return groups

    @property
    def node(self) -> IntArray:
        """A number for the node of each row, shape (n_rows,)."""
        own = np.column_stack([np.zeros(len(self.table), dtype=np.int64), self.groups])
        return self.depth * (len(self.table) + 1) + own[np.arange(len(self.table)), self.depth]

    @cached_property
    def parent(self) -> IntArray:
        """The position of each row's parent, -1 if there is none, shape (n_rows,)."""
        parent = np.full(len(self.table), -1, dtype=np.int64)
        root = np.zeros((len(self.table), 1), dtype=np.int64)
        for depth, group in enumerate(np.hstack([root, self.groups]).T[:-1], start=1):
            above, here = (np.flatnonzero(self.depth == each) for each in (depth - 1, depth))
            row_of = np.full(group.max() + 1, -1)
            row_of[group[above]] = above
            parent[here] = row_of[group[here]]
        return parent

    @property
    def nested(self) -> IntArray:
        """The positions of all rows, each followed by those below it."""
        return np.lexsort((np.arange(len(self.table)), *self.groups.T[::-1]))

    @cached_property
    def _texts(self) -> list[npt.NDArray[Any]]:
        """The keys as text."""
        texts = []
        for key in self.keys:
            text = _as_text(_restore_integers(self.table[key]))
            text[self.table[key].isna().to_numpy()] = REMAINDER
            texts.append(text)
        return texts

    @cached_property
    def _implied(self) -> list[bool]:
        """Whether the next key implies each key, as "1992-06" implies "1992": it begins with it in every row.

        The key must have the same length everywhere. Otherwise one key could be below both "1" and "12".
        """
        implied = []
        for depth, (keys, below) in enumerate(pairwise(self._texts), start=1):
            pairs = list(zip(keys[self.depth > depth], below[self.depth > depth], strict=True))
            implied.append(
                len({len(key) for key, _ in pairs}) == 1
                and all(finer.startswith(key) and finer != key for key, finer in pairs)
            )
        return implied

    def name(self, row: int) -> str:
        """Return the last key of a row."""
        depth = int(self.depth[row])
        return str(self._texts[depth - 1][row]) if depth else ROOT

    def keys_of(self, row: int) -> tuple[str, ...]:
        """Return all keys of a row, from the coarsest down."""
        return tuple(str(text[row]) for text in self._texts[: int(self.depth[row])])

    def path(self, row: int) -> str:
        """Join the keys of a row, the last one first, without those that the next one implies."""
        depth = int(self.depth[row])
        above = zip(self._texts[: max(depth - 1, 0)], self._implied, strict=False)
        return ", ".join(
            [self.name(row), *reversed([str(text[row]) for text, implied in above if not implied])]
        )


REMAINDER = "(other)"
"""The name of rows for all nodes that are not shown."""

_ERRORS = {"std_error": "standard error", "error_bound": "error bound"}
"""Suffixes of the columns of errors, and their names."""


def provenance_of(table: pd.DataFrame) -> dict[str, Any]:
    """Return the provenance that a table states, which may be wrong; empty if there is none."""
    provenance = table.attrs.get("dp")
    return provenance if isinstance(provenance, dict) else {}


def share_of(provenance: Mapping[str, Any]) -> str:
    """Format the confidence of intervals as a percentage; empty if it is unknown."""
    confidence = provenance.get("confidence")
    return f"{100 * confidence:.4g} %" if isinstance(confidence, float) else ""


def _as_text(keys: pd.Series) -> npt.NDArray[Any]:
    """Return keys as text."""
    try:
        return keys.astype(str).to_numpy(dtype=object, copy=True)
    except UnicodeEncodeError:  # of lone surrogates
        return np.array([*map(str, keys)], dtype=object)


def _restore_integers(keys: pd.Series) -> pd.Series:
    """Convert keys that a CSV file turned into floats, because some are missing, back to integers."""
    known = keys.dropna()
    whole = pd.api.types.is_float_dtype(keys) and ((known % 1 == 0) & (known.abs() < 2**53)).all()
    return keys.astype("Int64") if whole else keys
