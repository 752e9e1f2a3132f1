"""Find the nonempty nodes of a tree of prefixes. Secret: nothing here may leave the package.

Each value is read separately, and dropped if it does not fit the tree. The distinct values are sorted once.
Prefixes of sorted values are sorted, so each level then costs one pass over the nodes of the level below.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.readers import check_readable, read_column
from pandas_dptree.ingest.reading import Bounding, opened, tallied
from pandas_dptree.ingest.tallies import BoolArray, Columns, Rows, Tally, add_up

__all__ = [
    "KeyCounts", "PrefixNodes", "PrefixTally", "check_prefixes", "nonempty_levels", "open_prefixes",
    "sorted_keys",
]  # fmt: skip

Keys = npt.NDArray[Any]


def check_prefixes(tree: object) -> None:
    """Check that a tree consists of prefixes."""
    if not isinstance(tree, PrefixTree):
        raise ArgumentError(
            "tree",
            f"must describe prefixes, not be {kind_of_object(tree)}.",
            hint='for example dpt.prefixes("zip", chars=[1, 3, 5]); or name columns in `private_keys`.',
        )


def sorted_keys(frame: Any, tree: PrefixTree, **bounding: Unpack[Bounding]) -> KeyCounts:
    """Find the deepest prefixes of the records, and the number of records of each.

    Records that do not fit the tree, and those without a unit, are dropped; then units are bounded.
    """
    return tallied(*open_prefixes(frame, tree, bounding), bounding)


def open_prefixes(frame: Any, tree: PrefixTree, bounding: Bounding) -> tuple[Records, PrefixTally]:
    """Open the records for `sorted_keys`, and check the type of their column."""
    tally = PrefixTally(tree)
    records = opened(frame, tally, bounding)
    check_readable([(tree.column, tree.read_as, records.types([tree.column])[tree.column])], argument="frame")
    return records, tally


class KeyCounts(NamedTuple):
    """Keys, increasing and without repetition, and the number of records of each, an int64 array."""

    keys: Keys
    rows: IntArray


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PrefixTally(Tally[KeyCounts]):
    """Counts the records of each deepest prefix."""

    tree: PrefixTree

    @property
    def columns(self) -> Sequence[Hashable]:
        """The column that is read."""
        return [self.tree.column]

    def read(self, column: Columns) -> tuple[Rows, BoolArray]:
        """Find the prefix of each record."""
        keys, fits = read_column(column(self.tree.column), self.tree.read_as)
        return Rows(keys), fits

    def nodes(self, rows: Rows, level: int) -> IntArray:
        """Number the prefixes of a level; a text that is shorter than these is one of them."""
        shortened = self.tree.shorten(rows.place, self.tree.longest, self.tree.lengths[level - 1])
        return np.unique(shortened, return_inverse=True)[1]

    def count(self, rows: Sequence[Rows]) -> KeyCounts:
        """Count the rows of each prefix."""
        keys = np.concatenate([self._none, *(each.place for each in rows)])
        return _sum_equal_keys(np.sort(keys), np.ones(len(keys), dtype=np.int64))

    def merged(self, parts: Iterable[KeyCounts]) -> KeyCounts:
        """Add up the counts of equal prefixes."""
        return add_up(parts, KeyCounts(self._none, np.zeros(0, dtype=np.int64)), _together)

    @property
    def _none(self) -> Keys:
        """No keys, of the right type."""
        return read_column(pd.Series([], dtype=object), self.tree.read_as)[0]


def _together(parts: Sequence[KeyCounts]) -> KeyCounts:
    keys, rows = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    return _sum_equal_keys(keys[order], rows[order])


def nonempty_levels(keys: Keys, rows: IntArray, tree: PrefixTree) -> Iterator[tuple[Keys, IntArray]]:
    """Yield the nonempty nodes of each level, from the deepest to the one below the root.

    `keys` and `rows` are from `sorted_keys`. Each item is an array of prefixes, increasing and without
    repetition, and an int64 array of their counts, at least 1.
    """
    start = tree.longest
    for length in reversed(tree.lengths):
        keys, rows = _sum_equal_keys(tree.shorten(keys, start, length), rows)
        start, reaches = length, tree.reaches(keys, length)
        yield keys[reaches], rows[reaches]


def _sum_equal_keys(keys: Keys, rows: IntArray) -> KeyCounts:
    """Add up the rows of equal keys, which are adjacent."""
    if not len(keys):
        return KeyCounts(keys, rows)
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return KeyCounts(keys[first], np.add.reduceat(rows, first))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PrefixNodes:
    """The nodes of a tree of prefixes that hold a record, and its root."""

    keys: Keys
    rows: IntArray
    tree: PrefixTree

    def public_counts(self) -> list[IntArray]:
        """Count the records of the root, the only public level."""
        return [self.rows.sum(keepdims=True, dtype=np.int64)]

    def upward(self) -> Iterator[tuple[Keys, IntArray]]:
        """Yield the prefixes that hold a record, and their counts, of each level from the deepest."""
        return nonempty_levels(self.keys, self.rows, self.tree)

    def below(self, level: int, shown: Keys) -> tuple[Keys, IntArray]:
        """Return the prefixes of a level that hold a record and whose parents are in `shown`."""
        length = self.tree.lengths[level - 1]
        keys, rows = _sum_equal_keys(self.tree.shorten(self.keys, self.tree.longest, length), self.rows)
        reaches = self.tree.reaches(keys, length)
        if level > 1:
            reaches &= np.isin(self.parents_of(level, keys), shown)
        return keys[reaches], rows[reaches]

    def parents_of(self, level: int, keys: Keys) -> Keys:
        """Return the parents of prefixes of a level: a function of these alone."""
        if level == 1:
            return np.zeros(len(keys), dtype=np.int64)
        return self.tree.shorten(keys, *reversed(self.tree.lengths[level - 2 : level]))

    def labels(self, level: int, keys: Keys) -> tuple[Any, Keys]:
        """Return the labels of prefixes of a level and their ranks, functions of these alone."""
        return self.tree.labels(keys, self.tree.lengths[level - 1]), keys
