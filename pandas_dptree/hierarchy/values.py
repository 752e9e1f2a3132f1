"""Equality of keys, whatever library and type they come in.

Each value has a *canonical form* that depends on that value alone, and values with equal forms are the same
key. Text and numbers are their own forms; all others are tuples that begin with their kind. Numbers are equal
by value across types, a date equals its midnight, times are in nanoseconds, and True does not equal 1: an
equivalence relation (Python's own is not), with an order. Values of any other type, such as decimals, bytes
or tuples, are *unknown*: they equal no label.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.columns import categories_of, exact, python_values, text_column

__all__ = [
    "NANOSECONDS", "UNKNOWN", "canonical_codes", "finest_unit", "has_too_many_digits", "key_form", "located",
    "normal_form", "numbered_combinations", "positions", "sort_key",
]  # fmt: skip

IntArray = npt.NDArray[np.int64]

UNKNOWN = ("unknown",)
"""Canonical form of values that cannot be keys."""

NANOSECONDS = {
    "W": 7 * 86_400 * 10**9,
    "D": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
"""Length of each unit of time."""

_PLAIN = {str, int, float, type(None), type(pd.NA), type(pd.NaT)}
"""Types among which Python's equality is an equivalence relation; subclasses may define another equality."""

_MOST_DIGITS = 4_000
"""Longer numbers are unknown: Python refuses to print integers of more than 4300 digits."""

_EPOCH = datetime.datetime(1970, 1, 1)


def key_form(value: Any) -> Hashable:
    """Return the canonical form of a value, None if it is missing; never raises."""
    try:
        return _form(value)
    except Exception:  # accessing an arbitrary object may raise anything
        return UNKNOWN


def canonical_codes(
    column: pd.Series, *, sort: bool = False, form_of: Callable[[Any], Hashable] = key_form
) -> tuple[IntArray, list[Hashable]]:
    """Number the keys of a column: the code of each row, -1 if missing, and the distinct canonical forms.

    With `sort` they are in order, as with ``groupby``: numbers before text, categories in their order.
    `form_of` gives the form of one value, which is the value itself for text and for numbers of few digits.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        inner, keys = canonical_codes(categories_of(column), form_of=form_of)
        return np.append(inner, -1)[column.cat.codes.to_numpy()], keys
    column = exact(column)
    if column.dtype != np.dtype(object):
        place, distinct = pd.factorize(column, sort=sort)
        if _is_plain(column.dtype):
            forms = python_values(distinct)
            if bytes in map(type, forms):
                forms = list(map(form_of, forms))
        else:
            forms = _forms_of_array(pd.Series(distinct, dtype=column.dtype), form_of)
    elif (types := set(map(type, column.to_numpy()))) <= _PLAIN:
        place, forms = _factorized(column.to_numpy(), only_text=types == {str})
        if int in types:  # the others are canonical
            forms = list(map(form_of, forms))
    else:
        forms = list(map(form_of, column))
        place = np.arange(len(forms))
    keys = list(dict.fromkeys(form for form in forms if form is not None))
    if sort and column.dtype == np.dtype(object):
        keys.sort(key=sort_key)
    if keys == forms:
        return place, keys
    number = positions(forms, keys)
    return np.append(np.where(number < 0, -1, number), -1)[place], keys


def numbered_combinations(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Number the combinations of codes (from -2 to below their sizes): each row's number, and a row of each.

    If there are more rows than possible combinations, all of these are numbered; for one without rows the
    returned row is arbitrary.
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
    """Find the position of each row's key among canonical forms: -1 if missing, -2 if not there."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return np.append(located(categories_of(column), keys), -1)[column.cat.codes.to_numpy()]
    codes, own = canonical_codes(column)
    return np.append(positions(own, keys), -1)[codes]


def positions(wanted: Sequence[Hashable], keys: Sequence[Hashable]) -> IntArray:
    """Find the positions of canonical forms among distinct ones; -2 for those that are not there."""
    together = _common_column([*keys, *wanted])
    if together is not None:  # in order of appearance, the number of a key is its position
        number = pd.factorize(together)[0][len(keys) :]
        return np.where(number < len(keys), number, -2)
    known = dict(zip(keys, range(len(keys)), strict=True))
    return np.fromiter(map(known.get, wanted, repeat(-2)), dtype=np.int64, count=len(wanted))


def _common_column(forms: list[Hashable]) -> pd.Series | None:
    """Make a column of forms that are all text or all whole numbers; else None."""
    types = set(map(type, forms))
    if types == {str}:
        return text_column(np.array(forms, dtype=object))
    try:
        return pd.Series(forms, dtype=np.int64) if types == {int} else None
    except OverflowError:
        return None


def sort_key(form: Hashable) -> tuple[Any, ...]:
    """Sort key for canonical forms of all kinds: numbers, text, then the other kinds by name."""
    if isinstance(form, tuple):
        return (2, *map(sort_key, form))
    return (1, form) if isinstance(form, str) else (0, form)


def normal_form(form: Hashable) -> Hashable:
    """Return the one representation of all forms, of keys and units, that equal a form: 1 and 1.0 are one."""
    if isinstance(form, tuple):
        return tuple(map(normal_form, form))
    if isinstance(form, (int, float, Fraction)) and form not in (math.inf, -math.inf):
        return form.as_integer_ratio()
    return form


def finest_unit(nanoseconds: Sequence[int]) -> str | None:
    """Find the finest unit in which an array of pandas holds all of these times exactly, if any."""
    for unit in ("ns", "us", "ms", "s"):
        length = NANOSECONDS[unit]
        if all(abs(time) < 2**63 * length and time % length == 0 for time in nanoseconds):
            return unit
    return None


def _factorized(values: npt.NDArray[np.object_], *, only_text: bool) -> tuple[IntArray, list[Hashable]]:
    """Number plain values, of exactly the types in `_PLAIN`, by Python's equality, in order of appearance.

    If all values are texts, pandas hashes them as C strings. Up to 3.0.0 these end at the first
    NUL, and in every version so far a text with a lone surrogate is hashed by its repr. Different texts then
    get the same number, and the first of them replaces all: one record would change the keys of others. So
    the numbers from pandas are kept only if each text equals the representative of its number. That is
    sufficient in any version: the hash of a text depends on that text alone, so equal texts have equal
    numbers. If a single text fails, Python numbers all of them. With other values among them, pandas (2.2 to
    3.1) hashes and compares the objects themselves, as Python does.
    """
    place, distinct = pd.factorize(values)
    if only_text and not (distinct[place] == values).all():
        texts = list(dict.fromkeys(values))
        return positions(values.tolist(), texts), texts
    return place, distinct.tolist()


def _is_plain(dtype: Any) -> bool:
    """Whether the values of a type are canonical forms, and pandas compares them by value."""
    if isinstance(dtype, pd.StringDtype):
        return dtype.storage != "python"  # the latter may hold subclasses of str
    return dtype.kind in "iu" or dtype in (np.dtype(np.float32), np.dtype(np.float64))


def _forms_of_array(values: pd.Series, form_of: Callable[[Any], Hashable]) -> list[Hashable]:
    """Return the canonical forms of values of one type other than object."""
    if values.dtype.kind not in "Mm":
        return list(map(form_of, values))
    kind = "duration" if values.dtype.kind == "m" else "time"
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        kind, values = "zoned time", values.dt.tz_convert("UTC").dt.tz_localize(None)
    array = values.to_numpy()
    unit, _ = np.datetime_data(array.dtype)
    factor = NANOSECONDS[unit]
    return [
        None if missing else (kind, whole * factor)
        for whole, missing in zip(array.astype(np.int64).tolist(), np.isnat(array), strict=True)
    ]


def _form(value: Any) -> Hashable:
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    match value:
        case str():
            return str.__str__(value)
        case np.datetime64() | np.timedelta64():  # timedelta64 is a subclass of numpy's integers
            kind = "time" if isinstance(value, np.datetime64) else "duration"
            return None if np.isnat(value) else (kind, _nanoseconds(value))
        case bool() | np.bool_():
            return ("boolean", bool(value))
        case int() | np.integer():
            return UNKNOWN if has_too_many_digits(int(value)) else int(value)
        case float() | np.floating():
            number = float(value)
            return None if math.isnan(number) else number
        case Decimal():  # not a number is missing, as for pandas and Arrow
            return None if value.is_nan() else UNKNOWN
        case pd.Timestamp():
            return ("time" if value.tz is None else "zoned time", _nanoseconds(value.asm8))
        case pd.Timedelta():
            return ("duration", _nanoseconds(value.asm8))
        case datetime.datetime():
            offset = value.utcoffset()
            since = _microseconds(value.replace(tzinfo=None) - _EPOCH)
            if offset is None:
                return ("time", since * 1000)
            return ("zoned time", (since - _microseconds(offset)) * 1000)  # beyond datetime's years
        case datetime.date():
            return ("time", _nanoseconds(np.datetime64(value)))
        case datetime.timedelta():
            return ("duration", _microseconds(value) * 1000)
        case pd.Period():
            return ("period", value.freqstr, value.ordinal)
        case pd.Interval():
            ends = _form(value.left), _form(value.right)
            return UNKNOWN if UNKNOWN in ends or None in ends else ("interval", *ends, value.closed)
    return UNKNOWN


def has_too_many_digits(number: int) -> bool:
    """Whether a number is so long that it is unknown."""
    return number.bit_length() * math.log10(2) > _MOST_DIGITS


def _microseconds(value: datetime.timedelta) -> int:
    return value // datetime.timedelta(microseconds=1)


def _nanoseconds(value: np.datetime64 | np.timedelta64) -> int:
    """Convert a time; raises OverflowError if no array of pandas holds it, about 3e11 years from now."""
    unit, step = np.datetime_data(value.dtype)
    if unit in {"Y", "M"} and isinstance(value, np.datetime64):
        value, unit, step = value.astype("M8[D]"), "D", 1
    nanoseconds = int(value.astype(np.int64)) * step * NANOSECONDS[unit]
    if abs(nanoseconds) >= 2**63 and finest_unit([nanoseconds]) is None:
        raise OverflowError("no array of pandas holds this time")
    return nanoseconds
