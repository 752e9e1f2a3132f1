"""Labels of released keys, made afresh from their canonical forms.

The categories, dictionary, width and type of a private column depend on records that are not released; so
each label is rebuilt from its form alone, and their type follows from the released forms.
"""

from __future__ import annotations

import datetime
import sys
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from pandas_dptree.hierarchy.values import NANOSECONDS, IntArray, finest_unit, sort_key

__all__ = ["rebuilt_labels"]

_LARGEST_END: Final = 2**53
"""Missing intervals turn whole ends into floats, which are exact up to here."""


def rebuilt_labels(forms: Sequence[Hashable]) -> tuple[ExtensionArray, IntArray]:
    """Return labels for distinct canonical forms, sorted by value, and the position of each form's label.

    The labels depend on the set of forms alone: equal forms such as 1 and 1.0 give the same label, and
    neither the order of the forms nor the objects that represent them matter. The canonical forms of the
    labels are the given ones. ``take(..., allow_fill=True)`` makes missing labels. The types:

    ============== ==============================================================================
    all are        type
    ============== ==============================================================================
    text           ``"str"``; objects if Arrow cannot hold it (lone surrogates)
    whole numbers  ``"Int64"``, or else ``"UInt64"``; objects beyond 64 bits
    other numbers  ``"Float64"`` if each is exactly a float
    booleans       ``"boolean"``
    times          ``datetime64`` (in UTC, if they have a time zone), in the finest exact unit
    durations      ``timedelta64``, likewise
    periods        ``period``, if all have the same frequency
    intervals      ``interval``, if all are closed on the same side and an array holds their ends
    anything else  objects: Python's, or scalars of pandas; so are no labels at all
    ============== ==============================================================================

    pandas infers another type of objects when it makes a column of them, or fails at lone surrogates: pass
    the type, as in ``pd.Series(labels, dtype=labels.dtype)``.

    >>> labels, position = rebuilt_labels([2.0, 1])
    >>> labels
    <IntegerArray>
    [1, 2]
    Length: 2, dtype: Int64
    >>> position
    array([1, 0])
    """
    order = sorted(range(len(forms)), key=lambda place: sort_key(forms[place]))
    position = np.empty(len(forms), dtype=np.int64)
    position[order] = np.arange(len(forms))
    return _array([forms[place] for place in order]), position


def _array(forms: Sequence[Any]) -> ExtensionArray:
    """Make an array of the type that suits all forms, which may repeat."""
    kinds = {_kind(form) for form in forms}
    make = _ARRAYS.get(kinds.pop()) if len(kinds) == 1 else None
    array = None if make is None else make(forms)
    return _objects(list(map(_value, forms))) if array is None else array


def _kind(form: Any) -> str:
    if isinstance(form, tuple):
        name: str = form[0]
        return name
    return "text" if isinstance(form, str) else "number"


def _texts(forms: Sequence[str]) -> ExtensionArray | None:
    try:
        return _column(list(map(sys.intern, forms)), "str")
    except UnicodeEncodeError:  # lone surrogates, in Arrow
        return None


def _numbers(forms: Sequence[Any]) -> ExtensionArray | None:
    numbers = list(map(_number, forms))
    if all(isinstance(number, int) for number in numbers):
        for dtype in ("Int64", "UInt64"):
            bounds = np.iinfo(dtype.lower())
            if bounds.min <= min(numbers) and max(numbers) <= bounds.max:
                return pd.array(np.array(numbers, dtype=dtype.lower()), dtype=dtype)
        return None
    if all(map(_is_float, numbers)):
        return pd.array(np.array(numbers, dtype=np.float64), dtype="Float64")
    return None


def _booleans(forms: Sequence[Any]) -> ExtensionArray:
    return pd.array([truth for _, truth in forms], dtype="boolean")


def _times(forms: Sequence[Any]) -> ExtensionArray | None:
    """Make an array of times, zoned times or durations; None if no unit suits all of them."""
    unit, kind = finest_unit([nanoseconds for _, nanoseconds in forms]), forms[0][0]
    if unit is None:
        return None
    whole = np.array([nanoseconds // NANOSECONDS[unit] for _, nanoseconds in forms], dtype=np.int64)
    column = pd.Series(whole.view(f"{'m' if kind == 'duration' else 'M'}8[{unit}]"))
    return column.dt.tz_localize("UTC").array if kind == "zoned time" else column.array


def _periods(forms: Sequence[Any]) -> ExtensionArray | None:
    if len({frequency for _, frequency, _ in forms}) > 1:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # some frequencies are deprecated
        dtype = pd.PeriodDtype(forms[0][1])
        ordinals = np.array([ordinal for _, _, ordinal in forms], dtype=np.int64)
        return pd.arrays.PeriodArray(ordinals, dtype=dtype)


def _intervals(forms: Sequence[Any]) -> ExtensionArray | None:
    _, lower, upper, closed = zip(*forms, strict=True)
    ends: Any = _array([*lower, *upper])
    if len({*closed}) > 1 or isinstance(ends, pd.arrays.NumpyExtensionArray):
        return None
    if ends.dtype.kind in "iu":
        if max(map(abs, ends.tolist())) > _LARGEST_END:
            return None
        ends = ends.to_numpy(dtype=np.int64)
    elif ends.dtype.kind == "f":
        ends = ends.to_numpy(dtype=np.float64)
    n = len(forms)
    return pd.arrays.IntervalArray.from_arrays(ends[:n], ends[n:], closed=closed[0])


_ARRAYS: Final[dict[str, Callable[[Sequence[Any]], ExtensionArray | None]]] = {
    "text": _texts,
    "number": _numbers,
    "boolean": _booleans,
    "time": _times,
    "zoned time": _times,
    "duration": _times,
    "period": _periods,
    "interval": _intervals,
}
"""For each kind of forms, a function that makes an array of a type of its own, or None if none suits."""


def _value(form: Any) -> Any:
    """Rebuild a single value. A pickle shows which texts are the same object, so equal ones always are."""
    match form:
        case str():
            return sys.intern(form)
        case ("boolean", truth):
            return truth
        case ("duration", nanoseconds) if finest_unit([nanoseconds]) is None:  # only Python's have this range
            return datetime.timedelta(microseconds=nanoseconds // 1000)
        case ("time" | "zoned time" | "duration" | "period", *_):
            return _array([form])[0]
        case ("interval", lower, upper, closed):
            return pd.Interval(_value(lower), _value(upper), closed=closed)
    return _number(form)


def _number(form: int | float) -> int | float:
    """Return a number as an int if it is whole, else as a float."""
    return int(form) if isinstance(form, int) or form.is_integer() else form


def _is_float(number: int | float) -> bool:
    """Whether a number is exactly a float."""
    try:
        return float(number) == number
    except OverflowError:
        return False


def _column(values: list[Any], dtype: Any) -> ExtensionArray:
    """Make the array of a column of pandas, which has a type for text in every version."""
    array: ExtensionArray = pd.Series(values, dtype=dtype).array
    return array


def _objects(values: list[Any]) -> ExtensionArray:
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return pd.arrays.NumpyExtensionArray(array)
