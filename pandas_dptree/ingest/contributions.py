"""Count records, and add up their values, per leaf of a domain. Secret: nothing here may leave the package.

Messages contain the names and types of columns, never their values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from pandas_dptree.errors import ArgumentError, ColumnsError, quote
from pandas_dptree.hierarchy.columns import may_hold_numbers
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.arrays import clip_leaves
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.leaves import check_records, leaves_of_domain
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.reading import Bounding, opened, tallied
from pandas_dptree.ingest.tallies import BoolArray, CellTally, Columns, Rows
from pandas_dptree.privacy.quantity import COUNT, Quantity

__all__ = ["LeafTally", "leaf_totals", "open_for", "open_leaves"]


def leaf_totals(
    frame: Any,
    domain: Domain | CrossedDomain,
    quantities: Sequence[Quantity] = (COUNT,),
    **bounding: Unpack[Bounding],
) -> tuple[IntArray, ...]:
    """Add up quantities over the records of each leaf: exact, in units, and clipped by `clip_leaves`.

    The leaves of crossed hierarchies are their leaf cells, in C order of the axes.

    **Privacy.** What a record adds depends on that record alone: each value is read, clipped and brought
    to the grid separately, and the decision whether to drop it (outside the domain, without a unit or without
    one of the values) is made before units are bounded.
    """
    _, sums = tallied(*open_leaves(frame, domain, quantities, bounding), bounding)
    return tuple(map(clip_leaves, sums))


def open_leaves(
    frame: Any, domain: Domain | CrossedDomain, quantities: Sequence[Quantity], bounding: Bounding
) -> tuple[Records, LeafTally]:
    """Open the records for `leaf_totals`, and check the types of their columns; nothing is read yet."""
    tally = LeafTally(domain, tuple(quantities))
    return open_for(frame, tally, bounding), tally


def open_for(frame: Any, tally: LeafTally, bounding: Bounding) -> Records:
    """Open the records for a tally, and check the types of their columns; nothing is read yet."""
    unit = bounding.get("privacy_unit")
    if unit is not None and unit in tally.summed:
        raise ArgumentError(
            "privacy_unit",
            f"is also a column to be added up: {quote(unit)}.",
            hint="name another column: an identifier is not an amount.",
        )
    records = opened(frame, tally, bounding)
    check_records(records, tally.domain)
    _check_numeric(records.types(tally.summed))
    return records


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LeafTally(CellTally):
    """Adds up quantities over the records of each leaf."""

    domain: Domain | CrossedDomain
    quantities: Sequence[Quantity]

    @property
    def n_cells(self) -> int:
        """Number of leaves."""
        return self.domain.tree.n_leaves

    @property
    def summed(self) -> list[Hashable]:
        """The columns whose values are added up."""
        return list(dict.fromkeys(each.column for each in self.quantities if each.column is not None))

    @property
    def columns(self) -> Sequence[Hashable]:
        """The columns that are read."""
        return list(dict.fromkeys([*self.domain.sources, *self.summed]))

    def read(self, column: Columns) -> tuple[Rows, BoolArray]:
        """Find the leaf of each record, and what it adds; all values must be numbers."""
        leaf = leaves_of_domain(self.domain, column)
        inside = leaf >= 0
        read = {name: numbers(column(name)) for name in self.summed}
        for name, values in read.items():
            missing = np.isnan(values)
            inside &= ~missing
            read[name] = np.where(missing, 0.0, values)  # of records that are not counted
        summed = (each for each in self.quantities if each.column is not None)
        return Rows(leaf, tuple(each.to_units(read[each.column]) for each in summed)), inside

    def nodes(self, rows: Rows, level: int) -> IntArray:
        """Return the node above the leaf of each row; of crossed hierarchies, only leaf cells have caps."""
        if isinstance(self.domain, CrossedDomain):
            assert level == self.domain.tree.depth
            return rows.place
        return self.domain.tree.nodes_above(rows.place, level)


def _check_numeric(types: Mapping[Hashable, Any]) -> None:
    """Refuse columns of a type without numbers."""
    unfit = [name for name, dtype in types.items() if not may_hold_numbers(dtype)]
    if unfit:
        raise ColumnsError(
            "frame",
            "has values of a type that cannot be added up in the columns",
            columns=unfit,
            hint="convert them to numbers, for example durations with .dt.total_seconds().",
        )
