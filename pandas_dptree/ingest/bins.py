"""Count records by group and bin. Secret: nothing here may leave the package."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, ColumnsError, quote
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.columns import ALL_MISSING, ANY, kind_of, may_hold_numbers
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import numbered_units
from pandas_dptree.ingest.contribution_bounding import bound_contributions
from pandas_dptree.ingest.frames import Records, warn_if_released
from pandas_dptree.ingest.leaves import cells, check_records
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.safe_errors import discreetly
from pandas_dptree.ingest.times import times

__all__ = ["binned_counts"]


def binned_counts(
    frame: Any,
    bins: Bins,
    domain: Domain | None,
    *,
    privacy_unit: Hashable | None,
    max_contributions: int,
    random_words: Callable[[int], npt.NDArray[np.uint64]],
) -> IntArray:
    """Count the records of each group whose values lie in each bin.

    Records outside the domain, without a unit or without a value are dropped; then units are bounded.

    Parameters
    ----------
    frame : dataframe
        pandas, polars (eager or lazy) or pyarrow.
    bins : Bins
        Values outside its bounds are clipped.
    domain : Domain or None
        The groups; None for all records together.
    privacy_unit : hashable or None
        Name of the column that identifies the unit of a record; None if each record is a unit of its own.
    max_contributions : int
        Number of records kept per unit, if there is a `privacy_unit`.
    random_words : callable
        ``random_words(n)`` draws ``n`` uniform 64-bit words.

    Returns
    -------
    numpy.ndarray of int64, shape (n_groups, n_bins)

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe or cannot be counted, or the unit is the column itself.
    ColumnsError
        If a column is missing or repeated, or its type cannot match the labels of the domain or the bins.

    Notes
    -----
    **Privacy.** The group and bin of a record depend on that record alone, and so does the decision whether
    to drop it, which is made before units are bounded.
    """
    if privacy_unit is not None and privacy_unit == bins.column:
        raise ArgumentError(
            "privacy_unit",
            f"is also the column whose values are counted: {quote(privacy_unit)}.",
            hint="name another column: an identifier is not an amount.",
        )
    by = () if domain is None else domain.sources
    unit = [] if privacy_unit is None else [privacy_unit]
    columns = list(dict.fromkeys([*by, *unit, bins.column]))
    records = Records(frame, columns)
    warn_if_released(frame)
    if domain is not None:
        check_records(records, domain)
    _check_kind(records.types([bins.column])[bins.column], bins)

    def count() -> IntArray:
        values = records.column(bins.column)
        read = times(values, bins) if bins.is_time else numbers(values)
        if domain is None and privacy_unit is None:
            return bins.count(read)[None]
        place = bins.find(read)
        inside = place >= 0
        n_groups = 1
        if domain is not None:
            cell, leaf_of_cell = cells(domain, records.column)
            leaf, n_groups = leaf_of_cell[cell], domain.tree.n_leaves
            inside &= leaf >= 0
            place += np.where(inside, leaf, 0) * bins.n_bins
        place = place[inside]
        if privacy_unit is not None:
            units = numbered_units(records.column(privacy_unit))[inside]
            place, units = place[units >= 0], units[units >= 0]
            place = place[bound_contributions(units, random_words(len(units)), max_contributions)]
        return np.bincount(place, minlength=n_groups * bins.n_bins).reshape(n_groups, bins.n_bins)

    return discreetly(columns, count)


def _check_kind(dtype: Any, bins: Bins) -> None:
    """Refuse a column of a type without values that can be binned."""
    if bins.timezone is not None:
        wanted = ["times with a time zone"]
    elif bins.edges.dtype.kind == "M":
        wanted = ["times"]
    elif bins.is_time:
        wanted = ["durations"]
    else:
        wanted = ["numbers", "booleans", "text"]
    kind = kind_of(dtype)
    if not may_hold_numbers(dtype) if kind == ANY else kind not in wanted and dtype != ALL_MISSING:
        raise ColumnsError(
            "frame",
            f"has values of a different type than the bounds ({kind}, not {wanted[0]})",
            columns=[bins.column],
            hint="convert one of the two; bounds of times need a time zone if the column has one.",
        )
