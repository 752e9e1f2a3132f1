"""The released table, read back as a tree: which row is below which, how it is called, how far off it is."""

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
from pandas_dptree.hierarchy.domain import ROOT
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes
from pandas_dptree.output.frames import layout_of, prefix_of

__all__ = ["Released", "Shown", "provenance_of", "share_of"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shown:
    """What a table shows of one quantity, row by row.

    Attributes
    ----------
    name : hashable
        The column.
    numbers : numpy.ndarray of float64, shape (n_rows,)
        Missing ones are nan.
    whole : bool
        Whether they are whole numbers by type.
    error : numpy.ndarray of float64, shape (n_rows,), or None
        How far off they are.
    error_name : str
        What kind of error that is.
    interval : pair of numpy.ndarray of float64, shape (n_rows,), or None
        Its ends.
    """

    name: Hashable
    numbers: FloatArray
    whole: bool
    error: FloatArray | None
    error_name: str
    interval: tuple[FloatArray, FloatArray] | None


@dataclass(frozen=True, eq=False)
class Released:
    """A released table as a tree of its rows. It may have been filtered, or read back from a file.

    Attributes
    ----------
    table : pandas.DataFrame
    keys : sequence of hashable
        From the coarsest down.
    columns : sequence of hashable
        What has an error: counts, sums or means.
    depth : numpy.ndarray of int64, shape (n_rows,)
        How many keys name each row.
    """

    table: pd.DataFrame
    keys: list[Hashable]
    columns: list[Hashable]
    depth: IntArray

    @classmethod
    def of(cls, table: pd.DataFrame) -> Released:
        """Read a table.

        Raises
        ------
        ArgumentError
            If it is no released table, has no rows, or has two rows for one node.
        """
        keys, columns = layout_of(table)
        if missing := [key for key in keys if key not in table]:
            raise ColumnsError(
                "released", "lacks keys", columns=missing, hint="keep the columns of all keys."
            )
        depth = pd.Index([ROOT, *keys], dtype=object).get_indexer(pd.Index(table["level"], dtype=object))
        if not len(table) or (depth < 0).any():
            raise ArgumentError(
                "released",
                "has rows of no level." if len(table) else "has no rows.",
                hint=f"keep rows whose level is one of {listed([ROOT, *keys])}.",
            )
        released = cls(table, keys, columns, depth.astype(np.int64))
        if len(np.unique(np.column_stack([depth, released.groups]), axis=0)) < len(table):
            raise ArgumentError(
                "released",
                "has several rows for one node.",
                hint="take the tables of two releases one by one; read a CSV file with "
                'keep_default_na=False, na_values=[\'\'] if keys look like "NA" or "None".',
            )
        return released

    @property
    def levels(self) -> list[tuple[str, IntArray]]:
        """The levels that have rows, from the root down, each with the places of its rows."""
        names = [str(name) for name in (ROOT, *self.keys)]
        return [(names[depth], np.flatnonzero(self.depth == depth)) for depth in np.unique(self.depth)]

    def shown(self, column: Hashable | None = None, *, argument: str = "value", of: Sized = ()) -> Shown:
        """Take out a column, by default the first, with its errors.

        Raises
        ------
        ArgumentError
            If `column`, which the caller got as `argument`, perhaps one `of` a list, is no such column, or
            holds what is no number.
        """
        name = self.columns[0] if column is None else column
        if not is_name(name) or name not in self.columns:
            raise ArgumentError(
                argument,
                f"is not shown by the table: {quote(name, of=of)}.",
                hint=f"take one of {listed(self.columns)}.",
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
                f"holds what is no number, in the column {quote(column)}.",
                hint="take the table as it was, before its numbers were written as text.",
            ) from None

    @cached_property
    def groups(self) -> IntArray:
        """Which ancestor each row has on each level below the root, or is; -1 below. Shape (n_rows, n_keys).

        Ancestors are numbered as they first occur, also those that have no row themselves.
        """
        groups = np.full((len(self.table), len(self.keys)), -1, dtype=np.int64)
        above = np.zeros(len(self.table), dtype=np.int64)
        for place, key in enumerate(self.keys):
            below = self.depth > place
            codes = canonical_codes(self.table[key])[0] + 1  # 0 for what is missing: a remainder
            above = pd.factorize(above * (codes.max() + 1) + codes)[0].astype(np.int64)
            groups[below, place] = above[below]
        return groups

    @cached_property
    def parent(self) -> IntArray:
        """The place of the row that each row is a part of; -1 if there is none. Shape (n_rows,)."""
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
        """The places of all rows, each followed by those below it."""
        return np.lexsort((np.arange(len(self.table)), *self.groups.T[::-1]))

    @cached_property
    def _texts(self) -> list[npt.NDArray[Any]]:
        """The keys as text."""
        texts = []
        for key in self.keys:
            text = _whole_again(self.table[key]).astype(str).to_numpy(dtype=object, copy=True)
            text[self.table[key].isna().to_numpy()] = REMAINDER
            texts.append(text)
        return texts

    @cached_property
    def _implied(self) -> list[bool]:
        """Whether the next key implies each key, as "1992-06" implies "1992": it begins with it in every row.

        It has to be of one length everywhere. Otherwise one key could be below both "1" and "12".
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
        """Call a row by its last key."""
        depth = int(self.depth[row])
        return str(self._texts[depth - 1][row]) if depth else ROOT

    def path(self, row: int) -> str:
        """Call a row by its keys, the last one first, but for those that the next one implies."""
        depth = int(self.depth[row])
        above = zip(self._texts[: max(depth - 1, 0)], self._implied, strict=False)
        return ", ".join(
            [self.name(row), *reversed([str(text[row]) for text, implied in above if not implied])]
        )


REMAINDER = "(other)"
"""What the rows are called that stand for all that is not shown."""

_ERRORS = {"std_error": "standard error", "error_bound": "error bound"}
"""What tells how far off a value is, and how that is called."""


def provenance_of(table: pd.DataFrame) -> dict[str, Any]:
    """Give what the table says of its own release; nothing if it says nothing. It may be wrong."""
    provenance = table.attrs.get("dp")
    return provenance if isinstance(provenance, dict) else {}


def share_of(provenance: Mapping[str, Any]) -> str:
    """Write how often an interval holds the truth; nothing if that is unknown."""
    confidence = provenance.get("confidence")
    return f"{100 * confidence:.4g} %" if isinstance(confidence, float) else ""


def _whole_again(keys: pd.Series) -> pd.Series:
    """Make whole numbers of what a CSV file made floats of, since some are missing."""
    known = keys.dropna()
    whole = pd.api.types.is_float_dtype(keys) and ((known % 1 == 0) & (known.abs() < 2**53)).all()
    return keys.astype("Int64") if whole else keys
