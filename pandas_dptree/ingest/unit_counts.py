"""Count the distinct privacy units in each node of a domain. Secret: nothing here may leave the package.

Messages contain the names and types of columns, never their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np

from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.arrays import clip_leaves
from pandas_dptree.ingest.contributions import LeafTally, opened_leaves
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.nested_bounding import Nested
from pandas_dptree.ingest.reading import Bounding, tallied
from pandas_dptree.ingest.tallies import CellSums, Rows
from pandas_dptree.privacy.quantity import Quantity

__all__ = ["UnitCounts", "UnitTally", "open_units", "unit_counts"]


class UnitCounts(NamedTuple):
    """What is counted of the rows that units keep, exactly."""

    nodes: tuple[IntArray, ...]
    """The number of distinct units in each node of each level, the root first."""
    sums: tuple[IntArray, ...]
    """Each quantity, added up over the rows of each leaf, in units, and clipped by `clip_leaves`."""
    units_cut: int
    """The number of units that lost a node."""


def unit_counts(
    frame: Any,
    domain: Domain,
    max_nodes: Sequence[int],
    quantities: Sequence[Quantity] = (),
    **bounding: Unpack[Bounding],
) -> UnitCounts:
    """Count the units in each node, each of them in up to `max_nodes` of a level (`nested_bounding`).

    If `quantities` are added up too, over the same rows, a unit keeps up to `max_contributions` of them: at
    least as many as leaves.

    **Privacy.** As for `leaf_totals`: each record is read by itself, and dropped before units are bounded.
    """
    records, tally = open_units(frame, domain, quantities, bounding)
    rows = bounding["max_contributions"] if quantities else None
    counted: Any = tallied(records, tally, {**bounding, "nested": Nested(tuple(max_nodes), rows)})
    ends = np.cumsum(domain.tree.level_sizes)[:-1]
    nodes = np.split(counted.nodes.sums[0], ends)
    return UnitCounts(tuple(nodes), tuple(map(clip_leaves, counted.sums.sums)), counted.units_cut)


def open_units(
    frame: Any, domain: Domain, quantities: Sequence[Quantity], bounding: Bounding
) -> tuple[Records, UnitTally]:
    """Open the records for `unit_counts`, and check the types of their columns; nothing is read yet."""
    tally = UnitTally(domain, tuple(quantities))
    return opened_leaves(frame, tally, bounding), tally


class Counted(NamedTuple):
    """The number of units in the nodes of all levels, one after the other; sums in the leaves; units cut."""

    nodes: CellSums
    sums: CellSums
    units_cut: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class UnitTally(LeafTally):
    """Counts the units in each node, and adds up quantities over their rows in each leaf.

    Rows are those of `BoundedTally.nested`, whose last amount says where each is the first row of its unit.
    """

    def count(self, rows: Sequence[Rows]) -> Counted:  # type: ignore[override]
        """Count the units of rows, and add up the rows of each leaf."""
        tree, offset, places = self.domain.tree, 0, [np.zeros(0, dtype=np.int64)]
        for level, size in enumerate(tree.level_sizes):
            for each in rows:
                first = each.place[each.amounts[-1] <= level]
                places.append(offset + tree.nodes_above(first, level))
            offset += size
        nodes, number = np.unique(np.concatenate(places), return_counts=True)
        own = LeafTally.count(self, [Rows(each.place, each.amounts[:-1]) for each in rows])
        cut = sum(int((each.amounts[-1] < 0).sum()) for each in rows)
        return Counted(CellSums(nodes, number[None]), own, cut)

    def merged(self, parts: Iterable[Counted]) -> Counted:  # type: ignore[override]
        """Add up what was counted of different units."""
        nodes, sums, cut = zip(*parts, strict=True) if (parts := list(parts)) else ((), (), ())
        return Counted(
            CellSums.merged(nodes, (1, self.domain.tree.n_nodes)), LeafTally.merged(self, sums), sum(cut)
        )

    def compact(self, counted: Counted) -> Counted:  # type: ignore[override]
        """Leave out empty cells."""
        return counted._replace(
            nodes=counted.nodes.compact(self.domain.tree.n_nodes), sums=LeafTally.compact(self, counted.sums)
        )
