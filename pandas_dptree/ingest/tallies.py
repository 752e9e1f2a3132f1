"""What verbs count, batch by batch. Secret: nothing here may leave the package.

A `Tally` reads each record separately, counts any rows it has read, and merges what was counted of different
rows, in any order. So records may come in batches of any size, and may be read in several places.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.privacy.quantity import COUNT, Quantity

__all__ = ["CellSums", "CellTally", "Columns", "Rows", "Tally", "add_up"]

BoolArray = npt.NDArray[np.bool_]

Columns = Callable[[Hashable], pd.Series]
"""From the name of a column to the column of some records."""

Counted = TypeVar("Counted")

_MANY_KEYS = 2**20
"""Keys of several parts that are added up together."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Rows:
    """Where some records are counted (what `place` means depends on the tally), and what they add there."""

    place: npt.NDArray[Any]
    amounts: tuple[IntArray, ...] = ()

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.place)

    def __getitem__(self, rows: Any) -> Rows:
        """Select records."""
        return Rows(self.place[rows], tuple(each[rows] for each in self.amounts))

    @property
    def order(self) -> npt.NDArray[Any]:
        """Numbers, shape (n,), that sort the records by place: equal ones for equal places alone.

        **Privacy**: how two records compare depends on these two alone, not on those around them.
        """
        return self.place

    def compact(self) -> Rows:
        """Leave out what no record refers to, before the rows are stored or sent."""
        return self


class Tally(ABC, Generic[Counted]):
    """What one verb counts of the records.

    It is sent to the workers of a cluster, so it holds no record and can be pickled.
    """

    @property
    @abstractmethod
    def columns(self) -> Sequence[Hashable]:
        """The columns that are read, other than the privacy unit."""

    @abstractmethod
    def read(self, column: Columns) -> tuple[Rows, BoolArray]:
        """Read each record separately: return the rows, and which of them are counted at all."""

    def together(self, rows: Sequence[Rows]) -> Rows:
        """Join rows, at least one part, so that `Rows.order` compares all of them."""
        amounts = zip(*(each.amounts for each in rows), strict=True)
        return Rows(np.concatenate([each.place for each in rows]), tuple(map(np.concatenate, amounts)))

    def nodes(self, rows: Rows, level: int) -> IntArray:
        """Number the node of each row on a level: equal numbers, from 0, for one node alone.

        A path that ends above the level has a node there too, as if it went on to the deepest level.
        """
        raise NotImplementedError

    @abstractmethod
    def count(self, rows: Sequence[Rows]) -> Counted:
        """Count rows."""

    @abstractmethod
    def merged(self, parts: Iterable[Counted]) -> Counted:
        """Merge what was counted of different rows."""

    def compact(self, counted: Counted) -> Counted:
        """Make what was counted as small as possible, before it is sent from one process to another."""
        return counted


class KeyedCounts(Protocol):
    """Counts of keys that nobody can list."""

    @property
    def rows(self) -> IntArray:
        """The number of records of each key."""


KeyedT = TypeVar("KeyedT", bound=KeyedCounts)


def add_up(parts: Iterable[KeyedT], none: KeyedT, together: Callable[[Sequence[KeyedT]], KeyedT]) -> KeyedT:
    """Add up counts of keys by `together`, several parts at once; `none` has no keys.

    Parts are held until they have as many keys as their sum so far, so each key is sorted only a few times.
    """
    total, held, n_held = none, [], 0
    for part in parts:
        held.append(part)
        n_held += len(part.rows)
        if n_held > max(_MANY_KEYS, len(total.rows)):
            total, held, n_held = together([total, *held]), [], 0
    return together([total, *held])


class CellSums(NamedTuple):
    """The sums in some cells: their numbers, or all of them; and each quantity, shape (n_quantities, n)."""

    cells: IntArray | slice
    sums: IntArray

    @classmethod
    def merged(cls, parts: Iterable[CellSums], shape: tuple[int, int]) -> CellSums:
        """Add up the sums of different rows; `shape` is (n_quantities, n_cells)."""
        total = np.zeros(shape, dtype=np.int64)
        for cells, sums in parts:
            total[:, cells] += sums  # each cell occurs once
        return cls(slice(None), total)

    def compact(self, n_cells: int) -> CellSums:
        """Leave out empty cells, if there are many."""
        cells = np.flatnonzero(self.sums.any(axis=0))
        if isinstance(self.cells, slice) and len(cells) * 2 < n_cells:
            return CellSums(cells, self.sums[:, cells])
        return self


class CellTally(Tally[CellSums]):
    """Adds up quantities in numbered cells. Subclasses read the cell of each record.

    Sums of integers are exact, whatever the order, below 2**32 records (each adds at most 2**31).
    """

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Number of cells."""

    @property
    def quantities(self) -> Sequence[Quantity]:
        """What is added up. The amounts of rows are those of the quantities that have a column."""
        return (COUNT,)

    def count(self, rows: Sequence[Rows]) -> CellSums:
        """Add up rows in each cell."""
        place = np.concatenate([np.zeros(0, dtype=np.int64), *(each.place for each in rows)])
        cells: IntArray | slice = slice(None)
        n_cells = self.n_cells
        if len(place) * 4 < n_cells:  # arrays of all cells would be mostly zeros
            cells, place = np.unique(place, return_inverse=True)
            n_cells = len(cells)
        sums = np.zeros((len(self.quantities), n_cells), dtype=np.int64)
        parts = zip(*(each.amounts for each in rows), strict=True)
        for total, quantity in zip(sums, self.quantities, strict=True):
            if quantity.column is None:
                total += np.bincount(place, minlength=n_cells)
            elif rows:
                np.add.at(total, place, np.concatenate(next(parts)))
        return CellSums(cells, sums)

    def merged(self, parts: Iterable[CellSums]) -> CellSums:
        """Add up the sums of different rows."""
        return CellSums.merged(parts, (len(self.quantities), self.n_cells))

    def compact(self, counted: CellSums) -> CellSums:
        """Leave out empty cells."""
        return counted.compact(self.n_cells)
