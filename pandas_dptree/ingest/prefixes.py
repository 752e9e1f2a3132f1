"""Records → the nodes of a tree of prefixes that hold somebody. Secret: nothing here may leave the package.

Each value is read by itself, and dropped if it does not fit the tree. The distinct values are sorted once;
since a prefix of what is sorted is sorted, each level then costs one pass over the nodes of the one below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.columns import ANY, kind_of
from pandas_dptree.hierarchy.levels import BitPrefixes, CharPrefixes, PrefixTree
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes, numbered_units
from pandas_dptree.ingest.bounding import bound_contributions
from pandas_dptree.ingest.frames import _column, _held, _opened, _types, check_columns, discreetly
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity

__all__ = ["addresses", "checked_rows", "nonempty_levels", "read_keys", "sorted_keys"]

Keys = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
UIntArray = npt.NDArray[np.uint64]

_ADDRESS_LENGTH = len("255.255.255.255")
_DIGITS = np.uint32(ord("0"))
_DOT = np.uint32(ord("."))


def checked_rows(tree: object, neighbors: Neighbors, privacy_unit: object, max_contributions: int) -> int:
    """Check what a plan is to count of whom, and give by how many rows neighbouring data sets differ.

    Parameters
    ----------
    tree, neighbors, privacy_unit, max_contributions
        As in `plan_implicit`.

    Returns
    -------
    int

    Raises
    ------
    ArgumentError
        If one of them cannot be used.
    """
    if not isinstance(tree, (BitPrefixes, CharPrefixes)):
        raise ArgumentError(
            "tree",
            f"must describe prefixes, not be a {type(tree).__name__}.",
            hint='for example dpt.prefixes("ip", bits=[8, 16, 24, 32]).',
        )
    if not isinstance(privacy_unit, Hashable) or privacy_unit == tree.column:
        raise ArgumentError(
            "privacy_unit",
            f"must name a column that is no key, not {privacy_unit!r}.",
            hint="whom a row belongs to cannot also say where it is counted; copy the column if so.",
        )
    rows = count_sensitivity(neighbors=neighbors, max_contributions=max_contributions).l1
    if privacy_unit is None and max_contributions > 1:
        raise ArgumentError(
            "max_contributions",
            "needs a `privacy_unit`: rows of a frame cannot be bounded without knowing whose they are.",
            hint='name the column, for example privacy_unit="person_id".',
        )
    return rows


def sorted_keys(
    frame: Any,
    tree: PrefixTree,
    *,
    privacy_unit: Hashable | None = None,
    max_contributions: int = 1,
    random_words: Callable[[int], UIntArray],
) -> tuple[Keys, IntArray]:
    """Find the deepest prefixes that records have, and how many records have each.

    Records that do not fit the tree, and those without a unit, are dropped; then units are bounded.

    Parameters
    ----------
    frame : dataframe
        pandas, polars (eager or lazy), pyarrow, or another that narwhals knows.
    tree : BitPrefixes or CharPrefixes
    privacy_unit : hashable, optional
        Name of the column that tells whom a record belongs to.
    max_contributions : int, default 1
        How many records of a unit are kept; where each record is a unit of its own, all of them.
    random_words : callable
        ``random_words(n)`` draws ``n`` uniform 64-bit words.

    Returns
    -------
    keys : numpy.ndarray
        Rising, without repetition.
    rows : numpy.ndarray of int64, of the same shape

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe or cannot be counted.
    ColumnsError
        If a column is missing or repeated, or is of a type that cannot fit the tree.
    """
    columns = [tree.column] if privacy_unit is None else [tree.column, privacy_unit]
    check_columns(frame, list(dict.fromkeys(columns)))
    frame = _opened(frame, columns)
    _check_type(frame, tree)

    def count() -> tuple[Keys, IntArray]:
        held = _held(frame, columns)
        keys, fits = read_keys(_column(held, tree.column), tree)
        if privacy_unit is not None:
            unit = numbered_units(_column(held, privacy_unit))
            fits &= unit >= 0
            stays = bound_contributions(unit[fits], random_words(int(fits.sum())), max_contributions)
            fits[fits] = stays
        return _merged(np.sort(keys[fits]), np.ones(int(fits.sum()), dtype=np.int64))

    return discreetly(columns, count)


def nonempty_levels(keys: Keys, rows: IntArray, tree: PrefixTree) -> Iterator[tuple[Keys, IntArray]]:
    """Give the nodes that hold somebody, level by level from the deepest to the one below the root.

    Parameters
    ----------
    keys, rows : numpy.ndarray
        From `sorted_keys`.
    tree : BitPrefixes or CharPrefixes

    Yields
    ------
    prefixes : numpy.ndarray
        Rising, without repetition.
    counts : numpy.ndarray of int64, of the same shape
        At least 1.
    """
    start = tree.width if isinstance(tree, BitPrefixes) else tree.lengths[-1]
    for length in reversed(tree.lengths):
        keys, rows = _merged(tree.shorten(keys, start, length), rows)
        start, reaches = length, tree.reaches(keys, length)
        yield keys[reaches], rows[reaches]


def _merged(keys: Keys, rows: IntArray) -> tuple[Keys, IntArray]:
    """Add up the rows of equal keys, which stand together."""
    if not len(keys):
        return keys, rows
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[first], np.add.reduceat(rows, first)


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


def _check_type(frame: Any, tree: PrefixTree) -> None:
    """Refuse a column whose type tells that none of its values fits the tree."""
    [dtype] = _types(frame, [tree.column])
    kind = kind_of(dtype)
    wanted = ["text"] if isinstance(tree, CharPrefixes) else ["numbers"]
    if isinstance(tree, BitPrefixes) and tree.notation == "ipv4":
        wanted.append("text")
    if kind not in (*wanted, ANY) and dtype != np.dtype(np.float64):
        raise ColumnsError(
            "frame",
            f"has keys of another type than the tree ({kind}, not {' or '.join(wanted)})",
            columns=[tree.column],
            hint="convert them, for example with astype(str), or numbers in texts with astype(int).",
        )
