"""Count records by group and bin. Secret: nothing here may leave the package."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from pandas_dptree.errors import ArgumentError, ColumnsError, quote
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.columns import ALL_MISSING, ANY, kind_of, may_hold_numbers
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.leaves import check_records, leaves_of_domain
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.reading import Bounding, opened, tallied
from pandas_dptree.ingest.tallies import BoolArray, CellTally, Columns, Rows
from pandas_dptree.ingest.times import times

__all__ = ["BinTally", "binned_counts", "check_column", "open_bins"]


def binned_counts(frame: Any, bins: Bins, domain: Domain | None, **bounding: Unpack[Bounding]) -> IntArray:
    """Count the records of each group whose values, clipped to the bounds, lie in each bin.

    **Privacy.** The group and bin of a record depend on that record alone, and so does the decision whether
    to drop it (outside the domain, without a unit or without a value), which is made before units are
    bounded.
    """
    records, tally = open_bins(frame, bins, domain, bounding)
    _, sums = tallied(records, tally, bounding)
    return sums.reshape(tally.n_groups, bins.n_bins)


def open_bins(frame: Any, bins: Bins, domain: Domain | None, bounding: Bounding) -> tuple[Records, BinTally]:
    """Open the records for `binned_counts`, and check the types of their columns; nothing is read yet."""
    tally = BinTally(bins, domain)
    records = opened(frame, tally, bounding)
    if domain is not None:
        check_records(records, domain)
    check_column(records, bins, bounding)
    return records, tally


def check_column(records: Records, bins: Bins, bounding: Bounding) -> None:
    """Refuse a column of a type without values between the bounds, or one that identifies the units."""
    unit = bounding.get("privacy_unit")
    if unit is not None and unit == bins.column:
        raise ArgumentError(
            "privacy_unit",
            f"is also the column whose values are counted: {quote(unit)}.",
            hint="name another column: an identifier is not an amount.",
        )
    _check_kind(records.types([bins.column])[bins.column], bins)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BinTally(CellTally):
    """Counts the records of each group in each bin; the bins of a group follow each other."""

    bins: Bins
    domain: Domain | None

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return 1 if self.domain is None else self.domain.tree.n_leaves

    @property
    def n_cells(self) -> int:
        """Number of groups times number of bins."""
        return self.n_groups * self.bins.n_bins

    @property
    def columns(self) -> Sequence[Hashable]:
        """The columns that are read."""
        by = () if self.domain is None else self.domain.sources
        return list(dict.fromkeys([*by, self.bins.column]))

    def read(self, column: Columns) -> tuple[Rows, BoolArray]:
        """Find the bin of each record, and its group."""
        values = column(self.bins.column)
        bin = self.bins.find(times(values, self.bins) if self.bins.is_time else numbers(values))
        if self.domain is None:
            return Rows(bin), bin >= 0
        group = leaves_of_domain(self.domain, column)
        return Rows(group * self.bins.n_bins + bin), (group >= 0) & (bin >= 0)


def _check_kind(dtype: Any, bins: Bins) -> None:
    """Refuse a column of a type without values that can be binned."""
    if bins.timezone is not None:
        wanted = ["times with a time zone"]
    elif bins.edges.dtype.kind == "M":
        wanted = ["times"]
    elif bins.is_time:
        wanted = ["durations"]
    else:
        wanted = ["numbers", "decimals", "booleans", "text"]
    kind = kind_of(dtype)
    if not may_hold_numbers(dtype) if kind == ANY else kind not in wanted and dtype != ALL_MISSING:
        raise ColumnsError(
            "frame",
            f"has values of a different type than the bounds ({kind}, not {wanted[0]})",
            columns=[bins.column],
            hint="convert one of the two; bounds of times need a time zone if the column has one.",
        )
