"""Records → how many of each group have a value in each bin. Secret: nothing here may leave the package."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, told
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.columns import ANY, exact, kind_of, may_hold_numbers
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import numbered_units
from pandas_dptree.ingest.bounding import bound_contributions
from pandas_dptree.ingest.frames import (
    _cells,
    _check_types,
    _column,
    _held,
    _opened,
    _types,
    check_columns,
    discreetly,
    warn_if_released,
)
from pandas_dptree.ingest.numbers import numbers

__all__ = ["binned_counts", "times"]

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


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
        Name of the column that tells whom a record belongs to.
    max_contributions : int
        How many records of a unit are kept; where each record is a unit of its own, all of them.
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
        If a column is missing or repeated, or is of a type that cannot equal the domain's labels, or that
        holds no value to be binned.

    Notes
    -----
    **Privacy.** Where a record is counted depends on that record alone, and whether it can be counted is
    settled before any bound on its unit is.
    """
    if privacy_unit is not None and privacy_unit == bins.column:
        raise ArgumentError(
            "privacy_unit",
            f"is also the column whose values are counted: {told(privacy_unit)}.",
            hint="name another column: what tells units apart is no amount.",
        )
    by = () if domain is None else domain.sources
    unit = [] if privacy_unit is None else [privacy_unit]
    columns = list(dict.fromkeys([*by, *unit, bins.column]))
    check_columns(frame, columns)
    warn_if_released(frame)
    frame = _opened(frame, columns)
    if domain is not None:
        _check_types(frame, domain)
    [dtype] = _types(frame, [bins.column])
    _check_kind(dtype, bins)

    def count() -> IntArray:
        held = _held(frame, columns)
        values = _column(held, bins.column)
        read = times(values, bins) if bins.is_time else numbers(values)
        if domain is None and privacy_unit is None:
            return bins.count(read)[None]
        place = bins.find(read)
        inside = place >= 0
        n_groups = 1
        if domain is not None:
            cell, leaf_of_cell = _cells(held, domain)
            leaf, n_groups = leaf_of_cell[cell], domain.tree.n_leaves
            inside &= leaf >= 0
            place += np.where(inside, leaf, 0) * bins.n_bins
        place = place[inside]
        if privacy_unit is not None:
            units = numbered_units(_column(held, privacy_unit))[inside]
            place, units = place[units >= 0], units[units >= 0]
            place = place[bound_contributions(units, random_words(len(units)), max_contributions)]
        return np.bincount(place, minlength=n_groups * bins.n_bins).reshape(n_groups, bins.n_bins)

    return discreetly(columns, count)


def times(column: pd.Series, bins: Bins) -> npt.NDArray[Any]:
    """Read the values of a column as times, each by itself.

    Parameters
    ----------
    column : pandas.Series
        Of any type.
    bins : Bins
        Of timestamps or durations. What lies outside its bounds is clipped to them.

    Returns
    -------
    numpy.ndarray, shape (len(column),)
        Of the type of the edges; missing where there is no time of this kind.
    """
    column = exact(column)
    low, high = bins.edges[[0, -1]].view(np.int64).tolist()
    values = getattr(column.array, "asi8", None)
    if isinstance(column.dtype, np.dtype | pd.DatetimeTZDtype) and values is not None:
        dtype: Any = column.dtype
        factor = _NANOSECONDS[np.datetime_data(dtype.base)[0]]
        least, most = low // factor, high // factor
        # beyond what nanoseconds can hold, values are clipped before they are converted
        inside = np.clip(values, least + 1, most) * factor
        clipped = np.where(values <= least, low, np.where(values > most, high, inside))
        return np.where(column.isna(), np.iinfo(np.int64).min, clipped).view(bins.edges.dtype)
    read = _stamp if bins.edges.dtype.kind == "M" else _span
    missing = np.iinfo(np.int64).min
    nanoseconds = [read(value, bins) for value in column.to_numpy(dtype=object)]
    return np.array(
        [missing if each is None else min(max(each, low), high) for each in nanoseconds], dtype=np.int64
    ).view(bins.edges.dtype)


def _stamp(value: Any, bins: Bins) -> int | None:
    """Read a point in time as nanoseconds since 1970; None if it is none, or lacks or has a time zone."""
    if not isinstance(value, (datetime, date, np.datetime64)):
        return None
    try:
        stamp: Any = pd.Timestamp(value)
        if stamp is pd.NaT or (stamp.tz is None) != (bins.timezone is None):
            return None
        plain = stamp if stamp.tz is None else stamp.tz_convert("UTC").tz_localize(None)
        return _scaled(plain.asm8)
    except Exception:  # an object may do anything when it is looked at
        return None


def _span(value: Any, bins: Bins) -> int | None:
    """Read a duration as nanoseconds; None if it is none."""
    del bins
    if not isinstance(value, (timedelta, np.timedelta64)):
        return None
    try:
        if isinstance(value, timedelta) and not isinstance(value, pd.Timedelta):  # which spans less
            return value // timedelta(microseconds=1) * 1000
        span: Any = pd.Timedelta(value)
        return None if span is pd.NaT else _scaled(span.asm8)
    except Exception:  # as above
        return None


def _scaled(time: Any) -> int:
    """Give nanoseconds as a Python number, which has no bounds."""
    return int(time.view(np.int64)) * _NANOSECONDS[np.datetime_data(time.dtype)[0]]


def _check_kind(dtype: Any, bins: Bins) -> None:
    """Refuse a column whose type tells that none of its values can be binned."""
    if bins.timezone is not None:
        wanted = ["times with a time zone"]
    elif bins.edges.dtype.kind == "M":
        wanted = ["times"]
    elif bins.is_time:
        wanted = ["durations"]
    else:
        wanted = ["numbers", "booleans", "text"]
    kind = kind_of(dtype)
    if not may_hold_numbers(dtype) if kind == ANY else kind not in wanted and dtype != np.dtype(np.float64):
        raise ColumnsError(
            "frame",
            f"has values of another type than the bounds ({kind}, not {wanted[0]})",
            columns=[bins.column],
            hint="convert one of the two; bounds of times have a time zone if the column has one.",
        )
