"""Records → where they lie in levels made of their columns. Secret: nothing here may leave the package.

Each value is read by itself, and what cannot be read lies nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.calendar import MISSING, Calendar
from pandas_dptree.hierarchy.columns import ANY, exact, kind_of, may_hold_numbers
from pandas_dptree.hierarchy.cuts import Cut
from pandas_dptree.hierarchy.derived import Derived, Lookup
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes, located
from pandas_dptree.ingest.numbers import numbers

__all__ = ["check_type", "leaves_of", "seconds"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def leaves_of(levels: Derived, column: Callable[[Hashable], pd.Series]) -> IntArray:
    """Find the leaf of each record in the levels' own domain.

    Parameters
    ----------
    levels : Calendar, Cut, Lookup or Quadtree
    column : callable
        Gives a column of the records by its name.

    Returns
    -------
    numpy.ndarray of int64, shape (n_records,)
        -1 for records that lie nowhere.
    """
    read = [column(name) for name in levels.columns]
    if isinstance(levels, Calendar):
        return levels.find(seconds(read[0], zoned=levels.timezone is not None))
    if isinstance(levels, Lookup):
        return np.append(levels.leaf_of, [-1, -1])[located(read[0], levels.domain.forms[-1])]
    if isinstance(levels, Cut):
        return levels.bins.find(numbers(read[0]))
    return levels.find(*map(numbers, read))


def seconds(column: pd.Series, *, zoned: bool) -> IntArray:
    """Read the values of a column as times.

    Parameters
    ----------
    column : pandas.Series
        Of any type. Text is read as ISO 8601.
    zoned : bool
        Whether times with a time zone are wanted, or times without.

    Returns
    -------
    numpy.ndarray of int64, shape (len(column),)
        Since 1970 (in UTC if they have a time zone), rounded down; `MISSING` where there is no such time.
    """
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
    kind = "zoned time" if zoned else "time"
    return np.array([*(_second(form, kind) for form in forms), MISSING], dtype=np.int64)[codes]


def _second(form: Hashable, kind: str) -> int:
    """Read the canonical form of a value."""
    if isinstance(form, str):
        try:
            _, [form] = canonical_codes(pd.Series([datetime.fromisoformat(form)], dtype=object))
        except ValueError:
            return MISSING
    if not isinstance(form, tuple) or form[0] != kind:
        return MISSING
    second: int = form[1] // 10**9
    return second if abs(second) < 2**62 else MISSING


def check_type(levels: Derived, name: Hashable, dtype: Any) -> None:
    """Refuse a column whose type tells that no level can be made of any of its values.

    Parameters
    ----------
    levels : Calendar, Cut or Quadtree
    name : hashable
    dtype : pandas or narwhals data type

    Raises
    ------
    ColumnsError
    """
    if dtype == np.dtype(np.float64):  # as pandas has a column without values
        return
    if not isinstance(levels, Calendar):
        if not may_hold_numbers(dtype):
            raise ColumnsError(
                "frame",
                "has no numbers to be cut in the columns",
                columns=[name],
                hint="convert them to numbers; `calendar` makes levels of dates.",
            )
        return
    kind, zoned = kind_of(dtype), levels.timezone is not None
    if kind in (ANY, "text", "times with a time zone" if zoned else "times"):
        return
    if kind == "times with a time zone":
        hint = 'tell `calendar` whose clocks count, for example timezone="Europe/Berlin".'
    elif kind == "times":
        hint = "leave `timezone` out, or give the times a zone with .dt.tz_localize()."
    else:
        hint = "convert them with pd.to_datetime."
    wanted = "times with a time zone" if zoned else "times"
    raise ColumnsError("frame", f"holds {kind}, not {wanted}, in the columns", columns=[name], hint=hint)
