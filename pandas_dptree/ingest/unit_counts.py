"""Count the distinct privacy units in each node of a domain. Secret: nothing here may leave the package.

Messages contain the names and types of columns, never their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.arrays import clip_leaves
from pandas_dptree.ingest.contributions import LeafTally, open_for
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
    records, tally = open_units(frame, domain, max_nodes, quantities, bounding)
    (cells,) = tallied(records, tally, bounding).sums
    counted = np.split(cells, tally.cell_starts[1:-1])
    nodes, sums = counted[: domain.tree.depth + 1], counted[domain.tree.depth + 1 :]
    return UnitCounts(tuple(nodes), tuple(map(clip_leaves, sums)))


def open_units(
    frame: Any,
    domain: Domain,
    max_nodes: Sequence[int],
    quantities: Sequence[Quantity],
    bounding: Bounding,
) -> tuple[Records, UnitTally]:
    """Open the records for `unit_counts`, and check the types of their columns; nothing is read yet."""
    if bounding.get("privacy_unit") is None:
        raise ArgumentError(
            "privacy_unit",
            "must name the column whose distinct values are counted.",
            hint='for example privacy_unit="person_id".',
        )
    if any(cap is not None for cap in bounding.get("caps", ())):
        raise ArgumentError(
            "max_per_leaf",
            "does not bound the rows of a unit where distinct units are counted.",
            hint="bound them by max_nodes, and in all by max_contributions.",
        )
    rows = bounding["max_contributions"] if quantities else None
    if rows is not None and rows < max_nodes[-1]:
        raise ArgumentError(
            "max_contributions",
            f"keeps fewer rows of a unit, {rows}, than the leaves in which it is counted, {max_nodes[-1]}.",
            hint="raise max_contributions, or lower max_nodes.",
        )
    tally = UnitTally(domain, tuple(quantities), Nested(tuple(max_nodes), rows))
    return open_for(frame, tally, bounding), tally


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class UnitTally(LeafTally):
    """Counts the units in each node, and adds up quantities over their rows in each leaf.

    The last amount of rows says where each is the first row of its unit. The cells are the nodes of all
    levels, then the leaves for each quantity.
    """

    domain: Domain
    nested: Nested

    @property
    def cell_starts(self) -> IntArray:
        """The first cell of each level and of each quantity, and the number of all cells."""
        tree = self.domain.tree
        return np.cumsum([0, *tree.level_sizes, *[tree.n_leaves] * len(self.quantities)])

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.cell_starts[-1])

    @property
    def n_sums(self) -> int:
        """Number of sums in each cell."""
        return 1

    def count(self, rows: Sequence[Rows]) -> CellSums:
        """Count the units of rows, and add up the rows of each leaf."""
        tree, starts = self.domain.tree, self.cell_starts.tolist()
        of_levels, of_quantities = starts[: tree.depth + 1], starts[tree.depth + 1 : -1]
        places, amounts = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for each in rows:
            *summed, first_level = each.amounts
            for level, start in enumerate(of_levels):
                places.append(start + tree.nodes_above(each.place[first_level <= level], level))
                amounts.append(np.ones(len(places[-1]), dtype=np.int64))
            columns = iter(summed)
            for quantity, start in zip(self.quantities, of_quantities, strict=True):
                places.append(start + each.place)
                amounts.append(np.ones(len(each), np.int64) if quantity.column is None else next(columns))
        cells, place, n_cells = self.occupied(np.concatenate(places))
        sums = np.zeros((1, n_cells), dtype=np.int64)
        np.add.at(sums[0], place, np.concatenate(amounts))
        return CellSums(cells, sums)
