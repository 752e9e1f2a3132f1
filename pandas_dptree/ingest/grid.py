"""Collect the values of records as points of a grid, by group. Secret: nothing here may leave the package."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np

from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.grid import Grid
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.bins import check_column
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.leaves import check_records, leaves_of_domain
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.reading import Bounding, opened, tallied
from pandas_dptree.ingest.tallies import BoolArray, Columns, Rows, Tally, add_up
from pandas_dptree.ingest.times import times

__all__ = ["GridTally", "PointCounts", "grid_counts", "open_grid", "points_of_counts"]

_MOST_RECORDS = 2**50
"""Of a group; a thousand times as many still fit into 64 bits."""

_MOST_ALTOGETHER = 2**62
"""Records of all groups, which are counted one after another."""


class PointCounts(NamedTuple):
    """Distinct places in increasing order, and the number of records at each; int64 arrays.

    The place of a record is its point, plus the number of its group times the size of the grid.
    """

    places: IntArray
    rows: IntArray


def grid_counts(frame: Any, grid: Grid, domain: Domain | None, **bounding: Unpack[Bounding]) -> PointCounts:
    """Count the records of each group at each point of a grid, to which values are rounded.

    **Privacy.** As for `binned_counts`: the place of a record, and whether it has one, depend on that record
    alone.
    """
    records, tally = open_grid(frame, grid, domain, bounding)
    return tallied(records, tally, bounding)


def open_grid(frame: Any, grid: Grid, domain: Domain | None, bounding: Bounding) -> tuple[Records, GridTally]:
    """Open the records for `grid_counts`, and check the types of their columns; nothing is read yet."""
    tally = GridTally(grid, domain)
    records = opened(frame, tally, bounding)
    if domain is not None:
        check_records(records, domain)
    check_column(records, grid.bounds, bounding)
    return records, tally


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GridTally(Tally[PointCounts]):
    """Counts the records of each group at each point."""

    grid: Grid
    domain: Domain | None

    @property
    def columns(self) -> Sequence[Hashable]:
        """The columns that are read."""
        by = () if self.domain is None else self.domain.sources
        return list(dict.fromkeys([*by, self.grid.column]))

    def read(self, column: Columns) -> tuple[Rows, BoolArray]:
        """Find the point of each record, and its group."""
        values, bounds = column(self.grid.column), self.grid.bounds
        point = self.grid.find(times(values, bounds) if bounds.is_time else numbers(values))
        if self.domain is None:
            return Rows(point), point >= 0
        group = leaves_of_domain(self.domain, column)
        return Rows(group * self.grid.size + point), (group >= 0) & (point >= 0)

    def count(self, rows: Sequence[Rows]) -> PointCounts:
        """Count rows at each place."""
        places = np.concatenate([np.zeros(0, dtype=np.int64), *(each.place for each in rows)])
        return PointCounts(*np.unique(places, return_counts=True))

    def merged(self, parts: Iterable[PointCounts]) -> PointCounts:
        """Add up the counts of different rows."""
        return add_up(parts, self.count([]), _together)


def _together(parts: Sequence[PointCounts]) -> PointCounts:
    """Add up several counts at once."""
    places, where = np.unique(np.concatenate([each.places for each in parts]), return_inverse=True)
    rows = np.zeros(len(places), dtype=np.int64)
    np.add.at(rows, where, np.concatenate([each.rows for each in parts]))
    return PointCounts(places, rows)


def points_of_counts(counts: IntArray) -> PointCounts:
    """Return counts of bins, shape (n_groups, n_bins), as counts of points; the largest are clipped.

    **Privacy.** Negative counts are 0. Clipping moves no two counts further apart.
    """
    most = min(_MOST_RECORDS // counts.shape[1], _MOST_ALTOGETHER // max(counts.size, 1))
    clipped = np.clip(counts, 0, most).reshape(-1)
    places = np.flatnonzero(clipped)
    return PointCounts(places, clipped[places])
