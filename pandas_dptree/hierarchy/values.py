"""Which keys are the same key, whatever library and type they come in.

Each value has a *canonical* form that depends on that value alone, never on the column around it, and two
values are the same key if their canonical forms are equal. Text and numbers stand for themselves; all
else is a tuple that begins with its kind. Numbers are equal by value across types, a date is its midnight, a
time is its nanoseconds, and true is not 1. On these forms equality is an equivalence, which Python's own
is not, and they can be ordered. Values of any other type are *unknown*: they equal no label.
"""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.columns import exact, python_values, text_column

__all__ = [
    "UNKNOWN", "canonical_codes", "located", "numbered_combinations", "numbered_units", "positions",
    "sort_key",
]  # fmt: skip

IntArray = npt.NDArray[np.int64]

UNKNOWN = ("unknown",)
"""The canonical form of what cannot be a key."""

_NANOSECONDS = {
    "W": 7 * 86_400 * 10**9,
    "D": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
_PLAIN = {str, int, float, type(None), type(pd.NA), type(pd.NaT)}
"""Types among whose values Python's equality is an equivalence; their subclasses may say otherwise."""

_MOST_DIGITS = 4_000
"""Longer numbers are unknown: a decimal of a few characters can stand for more digits than memory holds, and
Python refuses to print whole numbers of more than 4300."""

_DEEPEST = 8
"""Tuples nested deeper are unknown: comparing them could exhaust the stack."""

_EPOCH = datetime.datetime(1970, 1, 1)


def canonical_codes(column: pd.Series, *, sort: bool = False) -> tuple[IntArray, list[Hashable]]:
    """Number the keys of a column.

    Parameters
    ----------
    column : pandas.Series
    sort : bool
        Whether to number them in their order, as ``groupby`` would: numbers before text, categories as
        they are listed, missing last.

    Returns
    -------
    codes : numpy.ndarray of int64, shape (len(column),)
        The number of each row's key, or -1 where it is missing.
    keys : list of hashable
        The canonical forms, without repetition.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        inner, keys = canonical_codes(column.cat.categories.to_series())
        return np.append(inner, -1)[column.cat.codes.to_numpy()], keys
    column = exact(column)
    if column.dtype != np.dtype(object):
        place, distinct = pd.factorize(column, sort=sort)
        if _is_plain(column.dtype):
            values = python_values(distinct)
            return place, list(map(_canonical, values)) if bytes in map(type, values) else values
        forms = _typed(pd.Series(distinct, dtype=column.dtype))
    elif (types := set(map(type, column.to_numpy()))) <= _PLAIN:
        place, values = _factorized(column.to_numpy(), only_text=types == {str})
        forms = list(map(_canonical, values)) if int in types else values  # the rest as they are
    else:
        forms = [_canonical(value) for value in column]
        place = np.arange(len(forms))
    keys = list(dict.fromkeys(form for form in forms if form is not None))
    if sort and column.dtype == np.dtype(object):
        keys.sort(key=sort_key)
    if keys == forms:
        return place, keys
    number = positions(forms, keys)
    return np.append(np.where(number < 0, -1, number), -1)[place], keys


def numbered_units(column: pd.Series) -> IntArray:
    """Number whom the rows belong to: as `canonical_codes`, without writing out every name.

    Parameters
    ----------
    column : pandas.Series

    Returns
    -------
    numpy.ndarray of int64, shape (len(column),)
        Equal for equal keys, from 0; -1 where the key is missing or unknown.
    """
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = exact(column)
        if column.dtype == np.dtype(object):  # Arrow numbers many names faster than Python, but few slower
            text = text_column(column.to_numpy())
            column = column if text is None else text
        if _is_plain(column.dtype):
            return pd.factorize(column)[0]
    codes, keys = canonical_codes(column)
    known = np.array([*(key != UNKNOWN for key in keys), False])
    return np.where(known[codes], codes, -1)


def numbered_combinations(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Number the combinations of codes from -2 to below their sizes: the number of each row's, and some row.

    Grouping by one whole number per row is faster than ``groupby``, most of all for categories. Where there
    are more rows than combinations could be, these are not even looked for; one that has no row is given
    any.
    """
    cell, n_cells = np.zeros(len(codes[0]), dtype=np.int64), 1
    for code, size in zip(codes, sizes, strict=True):
        if n_cells * (size + 2) > 2**62:
            cell, distinct = pd.factorize(cell)
            n_cells = len(distinct)
        cell *= size + 2
        cell += code
        cell += 2
        n_cells *= size + 2
    if n_cells > len(cell):
        cell, distinct = pd.factorize(cell)
        n_cells = len(distinct)
    some_row = np.zeros(n_cells, dtype=np.int64)
    some_row[cell] = np.arange(len(cell))
    return cell, some_row


def located(column: pd.Series, keys: Sequence[Hashable]) -> IntArray:
    """Find the keys of a column among canonical forms.

    Parameters
    ----------
    column : pandas.Series
    keys : sequence of hashable
        Canonical forms without repetition.

    Returns
    -------
    numpy.ndarray of int64, shape (len(column),)
        The position of each row's key, -1 where it is missing, -2 where it is none of these.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return np.append(located(column.cat.categories.to_series(), keys), -1)[column.cat.codes.to_numpy()]
    codes, own = canonical_codes(column)
    return np.append(positions(own, keys), -1)[codes]


def positions(wanted: Sequence[Hashable], keys: Sequence[Hashable]) -> IntArray:
    """Find canonical forms among others, none of which is repeated.

    Returns
    -------
    numpy.ndarray of int64, shape (len(wanted),)
        -2 where there is no such key.
    """
    together = _alike([*keys, *wanted])
    if together is not None:  # numbered as they first appear, keys have their positions
        number = pd.factorize(together)[0][len(keys) :]
        return np.where(number < len(keys), number, -2)
    known = dict(zip(keys, range(len(keys)), strict=True))
    return np.fromiter(map(known.get, wanted, repeat(-2)), dtype=np.int64, count=len(wanted))


def _alike(forms: list[Hashable]) -> pd.Series | None:
    """Make a column of forms that are all text or all whole numbers; None if they are not."""
    types = set(map(type, forms))
    if types == {str}:
        return text_column(np.array(forms, dtype=object))
    try:
        return pd.Series(forms, dtype=np.int64) if types == {int} else None
    except OverflowError:
        return None


def sort_key(form: Hashable) -> tuple[Any, ...]:
    """Order canonical forms of all kinds: numbers, text, then the other kinds by name."""
    if isinstance(form, tuple):
        return (2, *map(sort_key, form))
    if form is None:  # within a tuple
        return (-1,)
    return (1, form) if isinstance(form, str) else (0, form)


def _factorized(values: npt.NDArray[np.object_], *, only_text: bool) -> tuple[IntArray, list[Hashable]]:
    """Number plain values by Python's equality, as they first appear.

    Parameters
    ----------
    values : numpy.ndarray of object, shape (n,)
        Of the very types in `_PLAIN`.
    only_text : bool
        Whether all of them are texts.

    Returns
    -------
    place : numpy.ndarray of int64, shape (n,)
        The number of each value, or -1 where it is missing.
    distinct : list of hashable

    Notes
    -----
    Where all values are texts, pandas hashes them as C strings. Up to 3.0.0 these end at the first NUL, and
    in every version so far a text with a lone surrogate is taken for its representation. Texts that differ
    then get one number, and the first of them stands for all: one record would decide what others are. So
    the numbers of pandas are kept only if each text equals the one that stands for its number. That is enough
    in any version, for what pandas hashes is made of each text alone: equal texts have equal numbers. If a
    single text fails, Python numbers them all.

    Beside a value that is no text, pandas (2.2 to 3.1) hashes and compares the objects themselves, as Python
    does.
    """
    place, distinct = pd.factorize(values)
    if only_text and not (distinct[place] == values).all():
        texts = list(dict.fromkeys(values))
        return positions(values.tolist(), texts), texts
    return place, distinct.tolist()


def _is_plain(dtype: Any) -> bool:
    """Tell whether the values of a type are canonical forms, and equal in pandas as they are by value."""
    if isinstance(dtype, pd.StringDtype):
        return dtype.storage != "python"  # which may hold subclasses of str
    return dtype.kind in "iu" or dtype in (np.dtype(np.float32), np.dtype(np.float64))


def _typed(values: pd.Series) -> list[Hashable]:
    """Give the canonical forms of values of one type other than object."""
    if values.dtype.kind not in "Mm":
        return [_canonical(value) for value in values]
    kind = "duration" if values.dtype.kind == "m" else "time"
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        kind, values = "zoned time", values.dt.tz_convert("UTC").dt.tz_localize(None)
    array = values.to_numpy()
    unit, _ = np.datetime_data(array.dtype)
    factor = _NANOSECONDS[unit]
    return [
        None if missing else (kind, whole * factor)
        for whole, missing in zip(array.astype(np.int64).tolist(), np.isnat(array), strict=True)
    ]


def _canonical(value: Any) -> Hashable:
    """Give the canonical form of a value, None if it is missing; whatever it is, it does not raise."""
    try:
        return _form(value)
    except Exception:  # an object may do anything when it is looked at
        return UNKNOWN


def _form(value: Any, depth: int = 0) -> Hashable:
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    match value:
        case str():
            return str.__str__(value)
        case np.datetime64() | np.timedelta64():  # the latter is one of numpy's integers, too
            kind = "time" if isinstance(value, np.datetime64) else "duration"
            return None if np.isnat(value) else (kind, _nanoseconds(value))
        case bool() | np.bool_():
            return ("boolean", bool(value))
        case int() | np.integer():
            return _number(int(value))
        case float() | np.floating():
            number = float(value)
            return None if math.isnan(number) else number
        case Decimal():
            return _decimal(value)
        case Fraction():
            return _number(Fraction(value.numerator, value.denominator))
        case pd.Timestamp():
            return ("time" if value.tz is None else "zoned time", _nanoseconds(value.asm8))
        case pd.Timedelta():
            return ("duration", _nanoseconds(value.asm8))
        case datetime.datetime():
            offset = value.utcoffset()
            since = _microseconds(value.replace(tzinfo=None) - _EPOCH)
            if offset is None:
                return ("time", since * 1000)
            return ("zoned time", (since - _microseconds(offset)) * 1000)  # may lie beyond Python's years
        case datetime.date():
            return ("time", _nanoseconds(np.datetime64(value)))
        case datetime.timedelta():
            return ("duration", _microseconds(value) * 1000)
        case pd.Period():
            return ("period", value.freqstr, value.ordinal)
        case pd.Interval():
            return ("interval", _form(value.left), _form(value.right), value.closed)
        case tuple() if depth < _DEEPEST:
            forms = tuple(_form(item, depth + 1) for item in value)
            return UNKNOWN if UNKNOWN in forms else ("tuple", *forms)
        case bytes():
            return ("bytes", value.hex())
        case uuid.UUID():
            return ("uuid", value.int)
        case datetime.time():
            return ("time of day", value.isoformat())
    return UNKNOWN


def _decimal(value: Decimal) -> Hashable:
    """Turn a decimal into a fraction: whether decimals can be compared depends on their context."""
    if value.is_nan():
        return None
    if value.is_infinite():
        return float(value)
    if value and abs(value.adjusted()) > _MOST_DIGITS:
        return UNKNOWN
    return _number(Fraction(*value.as_integer_ratio()) if value else 0)


def _number(value: int | Fraction) -> Hashable:
    digits = max(value.numerator.bit_length(), value.denominator.bit_length()) * math.log10(2)
    return UNKNOWN if digits > _MOST_DIGITS else value


def _microseconds(value: datetime.timedelta) -> int:
    return value // datetime.timedelta(microseconds=1)


def _nanoseconds(value: np.datetime64 | np.timedelta64) -> int:
    unit, step = np.datetime_data(value.dtype)
    if unit in {"Y", "M"} and isinstance(value, np.datetime64):
        return int(value.astype("M8[D]").astype(np.int64)) * _NANOSECONDS["D"]
    return int(value.astype(np.int64)) * step * _NANOSECONDS[unit]
