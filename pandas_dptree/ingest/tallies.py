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
from pandas_dptree.ingest.nested_bounding import Nested
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

    @property
    def nested(self) -> Nested | None:
        """The bounds on the nodes of a unit, if units are counted in these instead of by their rows.

        The rows that units keep have one more amount then, the last: `nested_bounding.Kept.first_level`.
        """
        return None

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
    """The sums in some cells: their numbers, or all of them; and each sum of a cell, shape (n_sums, n)."""

    cells: IntArray | slice
    sums: IntArray


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

    @property
    def n_sums(self) -> int:
        """Number of sums in each cell."""
        return len(self.quantities)

    def count(self, rows: Sequence[Rows]) -> CellSums:
        """Add up rows in each cell."""
        place = np.concatenate([np.zeros(0, dtype=np.int64), *(each.place for each in rows)])
        cells, place, n_cells = self.occupied(place)
        sums = np.zeros((self.n_sums, n_cells), dtype=np.int64)
        parts = zip(*(each.amounts for each in rows), strict=True)
        for total, quantity in zip(sums, self.quantities, strict=True):
            if quantity.column is None:
                total += np.bincount(place, minlength=n_cells)
            elif rows:
                np.add.at(total, place, np.concatenate(next(parts)))
        return CellSums(cells, sums)

    def occupied(self, place: IntArray) -> tuple[IntArray | slice, IntArray, int]:
        """List the cells that hold rows, or all of them; where each row is among these; and their number."""
        if len(place) * 4 >= self.n_cells:
            return slice(None), place, self.n_cells
        cells, place = np.unique(place, return_inverse=True)  # arrays of all would be mostly zeros
        return cells, place, len(cells)

    def merged(self, parts: Iterable[CellSums]) -> CellSums:
        """Add up the sums of different rows."""
        total = np.zeros((self.n_sums, self.n_cells), dtype=np.int64)
        for cells, sums in parts:
            total[:, cells] += sums  # each cell occurs once
        return CellSums(slice(None), total)

    def compact(self, counted: CellSums) -> CellSums:
        """Leave out empty cells."""
        cells = np.flatnonzero(counted.sums.any(axis=0))
        if isinstance(counted.cells, slice) and len(cells) * 2 < self.n_cells:
            return CellSums(cells, counted.sums[:, cells])
        return counted
