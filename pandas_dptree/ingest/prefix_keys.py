"""A column of any type → leaves of a tree of prefixes, each value by itself. Secret: nothing here may leave.

A value that is missing, or does not fit the tree, is no leaf, whatever stands around it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ColumnsError, told
from pandas_dptree.hierarchy.columns import ANY, exact, kind_of
from pandas_dptree.hierarchy.levels.prefixes import BitPrefixes, CharPrefixes, PrefixTree
from pandas_dptree.hierarchy.values import canonical_codes

__all__ = ["addresses", "as_text", "check_prefixed", "read_keys"]

Keys = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
UIntArray = npt.NDArray[np.uint64]

_ADDRESS_LENGTH = len("255.255.255.255")
_DIGITS = np.uint32(ord("0"))
_DOT = np.uint32(ord("."))


def read_keys(column: pd.Series, tree: PrefixTree) -> tuple[Keys, BoolArray]:
    """Read each value of a column as a leaf of the tree.

    Parameters
    ----------
    column : pandas.Series
        Of any type.
    tree : BitPrefixes or CharPrefixes

    Returns
    -------
    keys : numpy.ndarray, shape (len(column),)
        Numbers (uint64), or encoded texts (bytes).
    fits : numpy.ndarray of bool, shape (len(column),)
        False for a value that is missing or no leaf of the tree; its key means nothing.
    """
    column = exact(column)
    if isinstance(tree, BitPrefixes) and column.dtype.kind in "iuf":
        present = column.notna().to_numpy(dtype=bool)
        numbers, fits = _numbers(column.to_numpy(dtype=f"{column.dtype.kind}8", na_value=0), tree.width)
        return numbers, fits & present
    codes, forms = canonical_codes(column)
    keys, fits = _parsed(forms, tree)
    missing = np.zeros(1, dtype=keys.dtype)  # at the end, where -1 leads
    return np.append(keys, missing)[codes], np.append(fits, False)[codes]


def _parsed(forms: Sequence[Hashable], tree: PrefixTree) -> tuple[Keys, BoolArray]:
    """Read canonical forms of values, as `read_keys` does."""
    is_text = np.fromiter((type(form) is str for form in forms), dtype=bool, count=len(forms))
    texts = [str(form) for form, text in zip(forms, is_text, strict=True) if text]
    fits = np.zeros(len(forms), dtype=bool)
    if isinstance(tree, CharPrefixes):
        encoded, fits[is_text] = tree.encode(texts)
        keys = np.zeros(len(forms), dtype=encoded.dtype)
        keys[is_text] = encoded
        return keys, fits
    keys = np.zeros(len(forms), dtype=np.uint64)
    if tree.notation == "ipv4":
        keys[is_text], fits[is_text] = addresses(texts)
    for place in np.flatnonzero(~is_text).tolist():
        form = forms[place]
        if isinstance(form, (int, float, Fraction)) and 0 <= form < 1 << tree.width and form == int(form):
            keys[place], fits[place] = int(form), True
    return keys, fits


def _numbers(values: npt.NDArray[Any], width: int) -> tuple[UIntArray, BoolArray]:
    """Read plain numbers; those of floating point if they are whole."""
    if values.dtype.kind != "f":
        numbers = values.astype(np.uint64)
        return numbers, np.asarray((values >= 0) & (numbers >> np.uint64(width - 1) <= 1))
    fits = (values >= 0) & (values < math.ldexp(1.0, width)) & (values == np.floor(values))
    return np.where(fits, values, 0.0).astype(np.uint64), np.asarray(fits)


def addresses(texts: Sequence[str]) -> tuple[UIntArray, BoolArray]:
    """Read IPv4 addresses: four decimal numbers from 0 to 255, without leading zeros, between dots.

    Parameters
    ----------
    texts : sequence of str

    Returns
    -------
    numbers : numpy.ndarray of uint64, shape (len(texts),)
    fits : numpy.ndarray of bool, shape (len(texts),)

    Examples
    --------
    >>> numbers, fits = addresses(["10.0.0.1", "10.0.0.256", "10.0.0.01", "10.0.1"])
    >>> int(numbers[0]) == 10 * 2**24 + 1, fits.tolist()
    (True, [True, False, False, False])
    """
    size = _ADDRESS_LENGTH + 1  # what is longer shows by its last character, what is not ends in a dot
    ended = np.char.add(np.array(texts, dtype=f"U{size}"), ".").astype(f"U{size}")
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    characters = ended.view(np.uint32).reshape(len(texts), size)
    address, octet = np.zeros(len(texts), dtype=np.uint64), np.zeros(len(texts), dtype=np.uint64)
    digits, octets = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.int64)
    fits = sizes <= _ADDRESS_LENGTH
    for place in range(size):
        character, inside = characters[:, place], place <= sizes
        digit = character - _DIGITS
        is_dot, is_digit = inside & (character == _DOT), digit <= 9
        fits &= is_dot | is_digit | ~inside
        octet = np.where(is_digit, octet * np.uint64(10) + digit, octet)
        digits += is_digit
        least = np.array([256, 0, 10, 100], dtype=np.uint64)[np.minimum(digits, 3)]
        fits &= ~is_dot | ((octet >= least) & (octet <= 255) & (digits <= 3))
        address = np.where(is_dot, address << np.uint64(8) | octet, address)
        octet, digits, octets = np.where(is_dot, 0, octet), np.where(is_dot, 0, digits), octets + is_dot
    return address, fits & (octets == 4)


def as_text(numbers: Sequence[Hashable]) -> str:
    """Tell how columns become text; those of numbers may be codes that have lost what they began with."""
    if not numbers:
        return "for example with astype(str)"
    types = ", ".join(f"{told(name)}: str" for name in numbers)
    return (
        'for example with astype(str); codes that lost zeros when they were read ("00501" as 501) need '
        f"read_csv(..., dtype={{{types}}})"
    )


def check_prefixed(tree: PrefixTree, dtype: Any, *, argument: str = "frame") -> None:
    """Refuse a column whose type tells that none of its values fits the tree.

    Raises
    ------
    ColumnsError
    """
    kind = kind_of(dtype)
    wanted = ["text"] if isinstance(tree, CharPrefixes) else ["numbers"]
    if isinstance(tree, BitPrefixes) and tree.notation == "ipv4":
        wanted.append("text")
    if kind not in (*wanted, ANY) and dtype != np.dtype(np.float64):
        raise ColumnsError(
            argument,
            f"has keys of another type than the tree ({kind}, not {' or '.join(wanted)})",
            columns=[tree.column],
            hint="convert them, for example numbers in texts with astype(int)."
            if isinstance(tree, BitPrefixes)
            else f"convert them, {as_text([tree.column] if kind == 'numbers' else [])}.",
        )
