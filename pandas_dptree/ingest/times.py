"""Read columns of any type as times, each value separately. Secret: nothing here may leave the package."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.columns import ALL_MISSING, ANY, exact, kind_of
from pandas_dptree.hierarchy.levels.read_as import MISSING, Times
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes

__all__ = ["check_times", "seconds", "times"]

_EPOCH = datetime(1970, 1, 1)

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

_NANOSECONDS = {unit: 10**9 // parts for unit, parts in _PER_SECOND.items()}


def seconds(column: pd.Series, wanted: Times) -> IntArray:
    """Read a column of any type as int64 seconds since 1970, rounded down.

    In UTC for times with a time zone; `MISSING` for values that are no time as `wanted`.
    """
    zoned, format = wanted.zoned, wanted.format
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = exact(column)
        dtype: Any = column.dtype
        if isinstance(dtype, pd.DatetimeTZDtype) or dtype.kind == "M":
            if isinstance(dtype, pd.DatetimeTZDtype) != zoned:
                return np.full(len(column), MISSING)
            unit, _ = np.datetime_data(dtype.base)
            whole = column.array.asi8 // _PER_SECOND[unit]
            return np.where(column.isna(), MISSING, whole)
    codes, forms = canonical_codes(column)
    each = [
        _second_in_text(form, zoned, format) if isinstance(form, str) else _second(form, zoned)
        for form in forms
    ]
    return np.array([*each, MISSING], dtype=np.int64)[codes]


def _second(form: Hashable, zoned: bool) -> int:
    """Read the canonical form of a value."""
    if not isinstance(form, tuple) or form[0] != ("zoned time" if zoned else "time"):
        return MISSING
    second: int = form[1] // 10**9
    return second if abs(second) < 2**62 else MISSING


def _second_in_text(text: str, zoned: bool, format: str | None) -> int:
    """Read a text with the standard library, which reads each value separately."""
    try:
        time = datetime.fromisoformat(text) if format is None else datetime.strptime(text, format)
    except (ValueError, OverflowError):
        return MISSING
    if (time.tzinfo is not None) != zoned:
        return MISSING
    since = time.replace(tzinfo=None) - _EPOCH
    return (since - (time.utcoffset() or timedelta())) // timedelta(seconds=1)


def check_times(columns: Mapping[Hashable, tuple[Times, Any]], argument: str) -> None:
    """Refuse columns of a type without such times.

    `columns` maps the name of each column to the wanted times and its pandas or narwhals data type;
    `argument` is the argument that has the columns.
    """
    for name, (wanted, dtype) in columns.items():
        times = "times with a time zone" if wanted.zoned else "times"
        kind = kind_of(dtype)
        if dtype == ALL_MISSING or kind in (ANY, "text", times):
            continue
        if kind == "times with a time zone":
            hint = 'pass a time zone to `calendar`, for example timezone="Europe/Berlin".'
        elif kind == "times":
            hint = "leave `timezone` out, or give the times a zone with .dt.tz_localize()."
        else:
            hint = "convert them with pd.to_datetime."
        raise ColumnsError(argument, f"holds {kind}, not {times}, in the columns", columns=[name], hint=hint)


def times(column: pd.Series, bins: Bins) -> npt.NDArray[Any]:
    """Read a column of any type as timestamps or durations, each value separately.

    The result has the type of the edges of `bins` and is clipped to its bounds; missing for values of another
    kind.
    """
    column = exact(column)
    low, high = bins.edges[[0, -1]].view(np.int64).tolist()
    values = getattr(column.array, "asi8", None)
    if isinstance(column.dtype, np.dtype | pd.DatetimeTZDtype) and values is not None:
        dtype: Any = column.dtype
        factor = _NANOSECONDS[np.datetime_data(dtype.base)[0]]
        least, most = low // factor, high // factor
        # Clip before the conversion: values may be out of the range of nanoseconds.
        inside = np.clip(values, least + 1, most) * factor
        clipped = np.where(values <= least, low, np.where(values > most, high, inside))
        return np.where(column.isna(), MISSING, clipped).view(bins.edges.dtype)
    if isinstance(column.dtype, pd.StringDtype):  # of which Python cannot make an object if it is not UTF-8
        return np.full(len(column), MISSING).view(bins.edges.dtype)
    read = _stamp if bins.edges.dtype.kind == "M" else _span
    nanoseconds = [read(value, bins) for value in column.to_numpy(dtype=object)]
    return np.array(
        [MISSING if each is None else min(max(each, low), high) for each in nanoseconds], dtype=np.int64
    ).view(bins.edges.dtype)


def _stamp(value: Any, bins: Bins) -> int | None:
    """Read a timestamp as nanoseconds since 1970; None if there is none that matches the zone of `bins`."""
    if not isinstance(value, (datetime, date, np.datetime64)):
        return None
    try:
        stamp: Any = pd.Timestamp(value)
        if stamp is pd.NaT or (stamp.tz is None) != (bins.timezone is None):
            return None
        plain = stamp if stamp.tz is None else stamp.tz_convert("UTC").tz_localize(None)
        return _scaled(plain.asm8)
    except Exception:  # accessing an arbitrary object may raise anything
        return None


def _span(value: Any, bins: Bins) -> int | None:
    """Read a duration as nanoseconds; None if it is none."""
    del bins
    if not isinstance(value, (timedelta, np.timedelta64)):
        return None
    try:
        if isinstance(value, timedelta) and not isinstance(
            value, pd.Timedelta
        ):  # pd.Timedelta has a smaller range
            return value // timedelta(microseconds=1) * 1000
        span: Any = pd.Timedelta(value)
        return None if span is pd.NaT else _scaled(span.asm8)
    except Exception:  # as above
        return None


def _scaled(time: Any) -> int:
    """Convert to nanoseconds as a Python integer, which cannot overflow."""
    return int(time.view(np.int64)) * _NANOSECONDS[np.datetime_data(time.dtype)[0]]
