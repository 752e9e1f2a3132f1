"""Labels of released keys, made afresh from their canonical forms.

If nobody lists the keys of a column, its released labels must not be taken from that column. Its categories
and its Arrow dictionary contain keys that are not released, the width of its texts depends on them, and other
records decide whether a key is 1, 1.0 or Decimal(1). So each label is rebuilt from its form alone, and the
type of the labels follows from the released forms. That of the column does not even enter if there are none:
one record that is missing can turn booleans into objects.
"""

from __future__ import annotations

import datetime
import decimal
import math
import sys
import uuid
import warnings
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from pandas_dptree.hierarchy.values import NANOSECONDS, IntArray, finest_unit, sort_key

__all__ = ["rebuilt_labels"]

_EXACT_DECIMALS: Final = decimal.Context(prec=38, traps=[decimal.Inexact])
"""Raises an error instead of rounding to the 38 digits of a decimal in Arrow and Parquet."""

_LARGEST_END: Final = 2**53
"""Missing intervals turn whole ends into floats, which are exact up to here."""


def rebuilt_labels(forms: Sequence[Hashable]) -> tuple[ExtensionArray, IntArray]:
    """Make the labels of released keys from their canonical forms, sorted by value.

    The labels depend on the set of forms alone: equal forms such as 1, 1.0 and Fraction(1) give the same
    label, and neither the order of the forms nor the objects that represent them matter. The canonical forms
    of the labels are the given ones.

    Parameters
    ----------
    forms : sequence of hashable
        Distinct canonical forms of released keys, none of which is None or `UNKNOWN`.

    Returns
    -------
    labels : ExtensionArray, shape (len(forms),)
        The labels in the order of `sort_key`. ``take(..., allow_fill=True)`` gives missing values for -1.
    position : numpy.ndarray of int64, shape (len(forms),)
        The position of each form's label: ``labels[position[i]]`` is the label of ``forms[i]``.

    Notes
    -----
    The types of the labels:

    ============== ==============================================================================
    all are        type
    ============== ==============================================================================
    text           ``"str"``; objects if Arrow cannot hold it (lone surrogates)
    whole numbers  ``"Int64"``, or else ``"UInt64"``; objects beyond 64 bits
    other numbers  ``"Float64"`` if each is exactly a float; else objects: decimals if 38 digits
                   suffice for each, else each the simplest of int, float, Decimal and Fraction
    booleans       ``"boolean"``
    times          ``datetime64`` (in UTC, if they have a time zone), in the finest exact unit
    durations      ``timedelta64``, likewise
    periods        ``period``, if all have the same frequency
    intervals      ``interval``, if all are closed on the same side and an array holds their ends
    anything else  objects: Python's, or scalars of pandas; so are no labels at all
    ============== ==============================================================================

    pandas infers another type of objects when it makes a column of them, or fails at lone surrogates: pass
    the type, as in ``pd.Series(labels, dtype=labels.dtype)``.

    Examples
    --------
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
    numbers = list(map(_exact, forms))
    if all(isinstance(number, int) for number in numbers):
        for dtype in ("Int64", "UInt64"):
            bounds = np.iinfo(dtype.lower())
            if bounds.min <= min(numbers) and max(numbers) <= bounds.max:
                return pd.array(np.array(numbers, dtype=dtype.lower()), dtype=dtype)
        return None
    floats = list(map(_float, numbers))
    if None not in floats:
        return pd.array(np.array(floats, dtype=np.float64), dtype="Float64")
    decimals = list(map(_decimal, numbers))
    return None if None in decimals else _objects(decimals)


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
    """Rebuild a single value from its form; None from that of a missing one, which a tuple may contain.

    A pickle shows which texts are the same object. So equal ones always are.
    """
    match form:
        case None:
            return None
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
        case ("tuple", *items):
            return tuple(map(_value, items))
        case ("bytes", digits):
            return bytes.fromhex(digits)
        case ("uuid", number):
            return uuid.UUID(int=number)
        case ("time of day", text):
            return datetime.time.fromisoformat(text)
    number = _exact(form)
    if isinstance(number, int):
        return number
    return next((each for each in (_float(number), _decimal(number)) if each is not None), number)


def _exact(form: Any) -> int | float | Fraction:
    """Convert a number to a whole number, a fraction, or infinity, whichever of them it is."""
    if form in (math.inf, -math.inf):
        return float(form)
    fraction = Fraction(form)
    return fraction.numerator if fraction.denominator == 1 else fraction


def _float(number: int | float | Fraction) -> float | None:
    """Convert a number to a float, if that is exact."""
    try:
        rounded = float(number)
    except OverflowError:
        return None
    return rounded if rounded == number else None


def _decimal(number: int | float | Fraction) -> Decimal | None:
    """Convert a number to a decimal, if 38 digits suffice."""
    if isinstance(number, float):  # infinity
        return Decimal(number)
    try:
        return _EXACT_DECIMALS.divide(Decimal(number.numerator), Decimal(number.denominator))
    except decimal.Inexact:
        return None


def _column(values: list[Any], dtype: Any) -> ExtensionArray:
    """Make the array of a column of pandas, which has a type for text in every version."""
    array: ExtensionArray = pd.Series(values, dtype=dtype).array
    return array


def _objects(values: list[Any]) -> ExtensionArray:
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return pd.arrays.NumpyExtensionArray(array)
