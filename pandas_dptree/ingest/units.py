"""Privacy units of any type as canonical words, and their keyed hash. Secret: nothing here may leave.

Two units are the same if the canonical forms of their values are equal, whatever column, batch or partition
they come in: 7, 7.0 and ``Decimal(7)`` are one unit. The forms are those of keys (`hierarchy.values`), and
further ones for decimals, fractions, bytes, UUIDs, times of day and tuples. Each form has exactly one
encoding as 64-bit words, and units are compared by these words, never by a hash: a hash of 64 bits would
merge two of 30 million units with probability 2.4e-5, which pure differential privacy does not have.

- A whole number between -2**63 and 2**63 is one word.
- A text is its UTF-8 bytes.
- Any other form is the ASCII text of its normal form, in which equal numbers are equal ratios.

Bytes are followed by a byte 1 and filled up with zeros, so no two sequences of bytes have the same words.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.columns import arrow_of, categories_of, exact, text_column
from pandas_dptree.hierarchy.hash_tables import ByteStrings
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import (
    UNKNOWN,
    canonical_codes,
    has_too_many_digits,
    key_form,
    normal_form,
)

__all__ = ["Key", "Units", "form_hashes", "split_mix", "unit_form", "units_of"]

UIntArray = npt.NDArray[np.uint64]

Key = UIntArray
"""Two random words that no record determines, drawn afresh for each release."""

_WHOLE, _TEXT, _OTHER = range(3)
"""Kinds of canonical forms. Forms of different kinds are never equal."""

_WORD = 8
"""Bytes of a word."""

_LARGEST_EXPONENT = 4_000
"""Larger decimals are no unit: a few characters can represent more digits than fit into memory."""

_DEEPEST = 8
"""Tuples nested deeper are no unit: comparing them could exhaust the stack."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Units:
    """The units of some rows, all of one kind and length."""

    kind: int
    words: UIntArray

    def __getitem__(self, rows: slice | IntArray) -> Units:
        """Select rows, by their positions."""
        chosen = self.words[rows] if isinstance(rows, slice) else self.words.take(rows, axis=0)
        return Units(self.kind, chosen)

    @property
    def sort(self) -> tuple[int, int]:
        """Kind and length: units of different sorts are different."""
        return self.kind, self.words.shape[1]

    def hashes(self, key: Key) -> UIntArray:
        """Hash the unit of each row, shape (n_rows,): equal units alike, different ones almost never.

        **Privacy** does not depend on the quality of this hash, nor on its key: see `contribution_bounding`.
        """
        n_rows, n_words = self.words.shape
        masks = split_mix(
            key[0] + (np.arange(n_words, dtype=np.uint64) * np.uint64(4) + np.uint64(self.kind + 1))
        )
        if n_words > n_rows:  # a long text, whose words need not be taken one by one
            state = split_mix(self.words ^ masks).sum(axis=1, dtype=np.uint64) + key[1]
        else:
            state = np.full(n_rows, key[1], dtype=np.uint64)
            for word, mask in zip(self.words.T, masks, strict=True):
                state += split_mix(word ^ mask)
        return split_mix(state)

    def numbers(self, hashes: UIntArray) -> IntArray:
        """Number the units from 0, shape (n_rows,): equal numbers for equal words, and only for these."""
        number, distinct = pd.factorize(hashes)
        example = np.empty(len(distinct), dtype=np.int64)
        example[number] = np.arange(len(number))
        if (self.words == self.words.take(example.take(number), axis=0)).all():
            return np.asarray(number)
        _, exact_number = np.unique(self.words, axis=0, return_inverse=True)
        return np.asarray(exact_number.reshape(-1), dtype=np.int64)


def split_mix(words: UIntArray) -> UIntArray:
    """Mix the bits of each word: the bijection of SplitMix64 (Steele, Lea and Flood 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def units_of(column: pd.Series) -> Iterator[tuple[IntArray, Units]]:
    """Read the units of a column of any type, each value separately, in items of different `Units.sort`.

    Each item has increasing positions of rows, and their units. Rows whose value is missing, or cannot be a
    key, occur in no item; all others in one.
    """
    pieces: dict[tuple[int, int], list[tuple[IntArray, Units]]] = {}
    for rows, units in _pieces(column):
        pieces.setdefault(units.sort, []).append((rows, units))
    for (kind, _), found in pieces.items():
        if len(found) == 1:
            yield found[0]
            continue
        rows = np.concatenate([rows for rows, _ in found])
        order = np.argsort(rows)
        yield rows[order], Units(kind, np.concatenate([units.words for _, units in found])[order])


def _pieces(column: pd.Series) -> Iterator[tuple[IntArray, Units]]:
    """Like `units_of`, but several items may have the same sort."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = categories_of(column)
        yield from _spread(_pieces(categories), column.cat.codes.to_numpy(), len(categories))
        return
    column = exact(column)
    if column.dtype == np.dtype(object):
        text = text_column(column.to_numpy())
        column = column if text is None else text
    if isinstance(column.dtype, pd.StringDtype) and (native := arrow_of(column)) is not None:
        try:
            native.validate(full=True)
        except ValueError:  # bytes that are no text
            pass
        else:
            yield from _arrow_texts(native)
            return
    elif column.dtype.kind in "iuf":
        yield from _numbers(column)
        return
    codes, forms = canonical_codes(column, form_of=unit_form)
    yield from _spread(_of_forms(forms), codes, len(forms))


def _spread(
    pieces: Iterator[tuple[IntArray, Units]], codes: npt.NDArray[Any], n_codes: int
) -> Iterator[tuple[IntArray, Units]]:
    """Pass from distinct values, in `pieces`, to rows; code -1 is a missing value."""
    for values, units in pieces:
        place = np.full(n_codes + 1, -1)  # the last entry is for code -1
        place[values] = np.arange(len(values))
        own = place[codes]
        rows = np.flatnonzero(own >= 0)
        yield rows, units[own[rows]]


def _numbers(column: pd.Series) -> Iterator[tuple[IntArray, Units]]:
    """Read a column of numbers."""
    kind = column.dtype.kind
    present = column.notna().to_numpy(dtype=bool)
    values = column.to_numpy(dtype=f"{kind}8", na_value=0)
    if kind == "f":
        present = present & ~np.isnan(values)  # in place, pandas 3 refuses it
    rows = np.flatnonzero(present)
    values = values[rows]
    if kind == "i":
        yield rows, _whole(values)
        return
    is_whole = values < 2**63
    if kind == "f":
        is_whole &= (values >= -(2.0**63)) & (values == np.floor(values))
    yield rows[is_whole], _whole(values[is_whole].astype(np.int64))
    rest = np.flatnonzero(~is_whole)
    distinct, codes = np.unique(values[rest], return_inverse=True)
    forms: list[Hashable] = distinct.tolist()
    for at, units in _spread(_of_forms(forms), codes, len(forms)):
        yield rows[rest[at]], units


def unit_form(value: Any) -> Hashable:
    """Return the canonical form of a unit, None if missing, `UNKNOWN` if it cannot be one; never raises."""
    try:
        return _form(value)
    except Exception:  # accessing an arbitrary object may raise anything
        return UNKNOWN


def _form(value: Any, depth: int = 0) -> Hashable:
    match value:
        case Decimal() if value.is_infinite():
            return float(value)
        case Decimal() if not value.is_nan():  # comparison of decimals depends on their context
            if value and abs(value.adjusted()) > _LARGEST_EXPONENT:
                return UNKNOWN
            return _number(Fraction(value) if value else Fraction())
        case Fraction():
            return _number(Fraction(value.numerator, value.denominator))
        case tuple() if depth < _DEEPEST:
            forms = tuple(_form(item, depth + 1) for item in value)
            return UNKNOWN if UNKNOWN in forms else ("tuple", *forms)
        case bytes():
            return ("bytes", bytes.hex(value))
        case uuid.UUID():
            return ("uuid", value.int)
        case datetime.time():
            return ("time of day", datetime.time.isoformat(value))
    return key_form(value)


def _number(value: Fraction) -> Hashable:
    """Return a fraction, which equals whole numbers and floats of its value; not one of too many digits."""
    long = any(map(has_too_many_digits, (value.numerator, value.denominator)))
    return UNKNOWN if long else value


def _whole(values: npt.NDArray[np.int64]) -> Units:
    return Units(_WHOLE, np.ascontiguousarray(values).view(np.uint64)[:, None])


def _of_forms(forms: Sequence[Hashable]) -> Iterator[tuple[IntArray, Units]]:
    """Encode canonical forms; those that cannot be keys are left out."""
    kinds = np.array([_kind(form) for form in forms], dtype=np.int64)
    whole = np.flatnonzero(kinds == _WHOLE)
    if len(whole):
        numbers = [int(forms[place]) for place in whole.tolist()]  # type: ignore[call-overload]
        yield whole, _whole(np.array(numbers, dtype=np.int64))
    for kind in (_TEXT, _OTHER):
        places = np.flatnonzero(kinds == kind)
        if len(places):
            encoded = ByteStrings.of([_encoded(forms[place], kind) for place in places.tolist()])
            for rows, units in _of_texts(kind, encoded):
                yield places[rows], units


def _kind(form: Hashable) -> int:
    """Return the kind of a canonical form; -1 for values that cannot be keys."""
    if form == UNKNOWN:
        return -1
    if isinstance(form, str):
        return _TEXT
    is_number = isinstance(form, (int, float, Fraction))  # decimals are fractions, even those that are whole
    is_whole = is_number and -(2**63) <= form < 2**63 and form == int(form)  # type: ignore[operator, call-overload]
    return _WHOLE if is_whole else _OTHER


def _encoded(form: Hashable, kind: int) -> bytes:
    """Encode a form as bytes; a text of Python may hold lone surrogates, which UTF-8 does not have."""
    if kind == _TEXT:
        return str(form).encode("utf-8", "surrogatepass")
    return _represented(normal_form(form)).encode()


def _represented(form: Hashable) -> str:
    """Represent a normal form in ASCII; Python may be set to refuse decimals of more than 640 digits."""
    if isinstance(form, tuple):
        return f"({','.join(map(_represented, form))})"
    return hex(form) if isinstance(form, int) else ascii(form)


def _arrow_texts(native: Any) -> Iterator[tuple[IntArray, Units]]:
    """Encode valid texts of Arrow, chunk by chunk."""
    start = 0
    for chunk in native.chunks:
        present = np.arange(len(chunk))
        if chunk.null_count:
            present = np.flatnonzero(chunk.is_valid().to_numpy(zero_copy_only=False))
        for rows, units in _of_texts(_TEXT, ByteStrings.of_arrow(chunk).part(present)):
            yield start + present[rows], units
        start += len(chunk)


def _of_texts(kind: int, texts: ByteStrings) -> Iterator[tuple[IntArray, Units]]:
    """Encode sequences of bytes as words, one item for each number of words."""
    anywhere = texts.anywhere
    sizes = texts.lengths // _WORD + 1
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        words = np.empty((len(rows), size), dtype=np.uint64)
        begin = texts.starts[rows]
        if size > len(rows):
            words[:] = anywhere[begin[:, None] + _WORD * np.arange(size)]
        else:
            for place in range(size):
                words[:, place] = anywhere[begin + _WORD * place]
        end = np.uint64(1) << (np.uint64(8) * (texts.lengths[rows] % _WORD).astype(np.uint64))
        words[:, -1] = (words[:, -1] & (end - np.uint64(1))) | end
        yield rows, Units(kind, words)


def form_hashes(forms: Sequence[Hashable]) -> UIntArray:
    """Hash canonical forms, shape (len(forms),), each separately and always in the same way."""
    hashes = np.zeros(len(forms), dtype=np.uint64)
    for places, units in _of_forms(forms):
        hashes[places] = units.hashes(np.zeros(2, dtype=np.uint64))
    return hashes
