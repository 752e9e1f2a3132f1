"""Read columns of any type as keys of prefixes, each value separately. Secret: nothing may leave the package.

A value that is missing, or does not fit, has no key.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.columns import ALL_MISSING, ANY, exact, kind_of
from pandas_dptree.hierarchy.levels.read_as import Keys, Texts, WholeNumbers
from pandas_dptree.hierarchy.values import canonical_codes
from pandas_dptree.ingest.labels import as_text

__all__ = ["addresses", "check_texts", "check_whole_numbers", "read_texts", "read_whole_numbers"]

BoolArray = npt.NDArray[np.bool_]
UIntArray = npt.NDArray[np.uint64]

_ADDRESS_LENGTH = len("255.255.255.255")
_ZERO = np.uint32(ord("0"))
_DOT = np.uint32(ord("."))


def read_whole_numbers(column: pd.Series, wanted: WholeNumbers) -> tuple[UIntArray, BoolArray]:
    """Read each value of a column as a whole number, and whether it is one."""
    column = exact(column)
    if column.dtype.kind in "iuf":
        present = column.notna().to_numpy(dtype=bool)
        numbers, fits = _numbers(column.to_numpy(dtype=f"{column.dtype.kind}8", na_value=0), wanted.width)
        return numbers, fits & present
    codes, forms = canonical_codes(column)
    numbers = np.zeros(len(forms) + 1, dtype=np.uint64)  # the last one is for code -1
    fits = np.zeros(len(forms) + 1, dtype=bool)
    is_text, texts = _texts(forms)
    if wanted.addresses:
        numbers[:-1][is_text], fits[:-1][is_text] = addresses(texts)
    for place in np.flatnonzero(~is_text).tolist():
        form = forms[place]
        if isinstance(form, (int, float)) and 0 <= form < 1 << wanted.width and form == int(form):
            numbers[place], fits[place] = int(form), True
    return numbers[codes], fits[codes]


def read_texts(column: pd.Series, wanted: Texts) -> tuple[Keys, BoolArray]:
    """Read each value of a column as an encoded text, and whether it is one."""
    codes, forms = canonical_codes(exact(column))
    is_text, texts = _texts(forms)
    encoded, encodable = wanted.encode(texts)
    keys = np.zeros(len(forms) + 1, dtype=encoded.dtype)  # the last one is for code -1
    fits = np.zeros(len(forms) + 1, dtype=bool)
    keys[:-1][is_text], fits[:-1][is_text] = encoded, encodable
    return keys[codes], fits[codes]


def _texts(forms: Sequence[Hashable]) -> tuple[BoolArray, list[str]]:
    """Return which canonical forms are texts, and a list of these."""
    is_text = np.fromiter((type(form) is str for form in forms), dtype=bool, count=len(forms))
    return is_text, [str(form) for form, text in zip(forms, is_text, strict=True) if text]


def _numbers(values: npt.NDArray[Any], width: int) -> tuple[UIntArray, BoolArray]:
    """Read numbers of a plain type; floating-point ones fit if they are whole."""
    if values.dtype.kind != "f":
        numbers = values.astype(np.uint64)
        return numbers, np.asarray((values >= 0) & (numbers >> np.uint64(width - 1) <= 1))
    fits = (values >= 0) & (values < math.ldexp(1.0, width)) & (values == np.floor(values))
    return np.where(fits, values, 0.0).astype(np.uint64), np.asarray(fits)


def addresses(texts: Sequence[str]) -> tuple[UIntArray, BoolArray]:
    """Read IPv4 addresses: four decimal numbers from 0 to 255, without leading zeros, between dots."""
    size = _ADDRESS_LENGTH + 1  # longer texts are cut, all others end in a dot
    ended = np.char.add(np.array(texts, dtype=f"U{size}"), ".").astype(f"U{size}")
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    characters = ended.view(np.uint32).reshape(len(texts), size)
    address, octet = np.zeros(len(texts), dtype=np.uint64), np.zeros(len(texts), dtype=np.uint64)
    digits, octets = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.int64)
    fits = sizes <= _ADDRESS_LENGTH
    for place in range(size):
        character, inside = characters[:, place], place <= sizes
        digit = character - _ZERO
        is_dot, is_digit = inside & (character == _DOT), digit <= 9
        fits &= is_dot | is_digit | ~inside
        octet = np.where(is_digit, octet * np.uint64(10) + digit, octet)
        digits += is_digit
        least = np.array([256, 0, 10, 100], dtype=np.uint64)[np.minimum(digits, 3)]
        fits &= ~is_dot | ((octet >= least) & (octet <= 255) & (digits <= 3))
        address = np.where(is_dot, address << np.uint64(8) | octet, address)
        octet, digits, octets = np.where(is_dot, 0, octet), np.where(is_dot, 0, digits), octets + is_dot
    return address, fits & (octets == 4)


def check_whole_numbers(columns: Mapping[Hashable, tuple[WholeNumbers, Any]], argument: str) -> None:
    """Refuse columns of a type without such numbers; arguments as for `check_times`."""
    for name, (wanted, dtype) in columns.items():
        kinds = ["numbers", "text"] if wanted.addresses else ["numbers"]
        _check_kind(name, dtype, kinds, argument, "for example numbers stored as text, with astype(int)")


def check_texts(columns: Mapping[Hashable, tuple[Texts, Any]], argument: str) -> None:
    """Refuse columns of a type without texts; arguments as for `check_times`."""
    for name, (_, dtype) in columns.items():
        codes = [name] if kind_of(dtype) == "numbers" else []
        _check_kind(name, dtype, ["text"], argument, as_text(codes))


def _check_kind(name: Hashable, dtype: Any, wanted: Sequence[str], argument: str, example: str) -> None:
    kind = kind_of(dtype)
    if kind not in (*wanted, ANY) and dtype != ALL_MISSING:
        raise ColumnsError(
            argument,
            f"has keys of a different type than the tree ({kind}, not {' or '.join(wanted)})",
            columns=[name],
            hint=f"convert them, {example}.",
        )
