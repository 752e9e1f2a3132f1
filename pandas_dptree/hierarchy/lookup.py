"""Tables of public labels, in which the keys of many records are found as by `values.located`.

Numbers and texts of Arrow are looked up in plain arrays, mostly outside Python's lock, others by their forms.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.columns import arrow_column, arrow_of, categories_of, chunks, exact, text_column
from pandas_dptree.hierarchy.forms import ArrayForms
from pandas_dptree.hierarchy.hash_tables import ByteStrings, DenseTable, TextTable, WholeTable, once
from pandas_dptree.hierarchy.values import canonical_codes

__all__ = ["Codes", "Lookup"]

Codes = npt.NDArray[np.int32]
IntArray = npt.NDArray[np.int64]

_PER_LABEL = 4
"""Arrow makes its table of labels anew for each column. From so many texts per label on, it is faster."""

_DENSE = 4
"""Whole labels are found by their offset if their range is at most so many times their number."""

_FIRST_PART = 8
"""If few objects are distinct in the first of so many parts of a column, all are looked up by identity."""


class Lookup:
    """The public labels of a key, by their distinct canonical forms; its tables are made when first needed.

    >>> Lookup(["a", "b", 3]).codes(pd.Series(["b", 3.0, None, "c"], dtype=object)).tolist()
    [1, 2, -1, -2]
    """

    def __init__(self, forms: Sequence[Hashable]) -> None:
        self.forms = forms

    def __getstate__(self) -> dict[str, Any]:
        """Leave the tables out, which are quickly made again."""
        return {"forms": self.forms}

    def codes(self, column: pd.Series) -> Codes:
        """Find the position of each row's key among the labels: -1 if missing, -2 if it is not a label."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            return _at(self.codes(categories_of(column)), column.cat.codes.to_numpy())
        if isinstance(column.dtype, pd.ArrowDtype) and str(column.dtype).startswith("dictionary"):
            parts = chunks(column)
            if all(len(part.dictionary) <= len(part) for part in parts):
                return _joined([self._dictionary_codes(part) for part in parts])
        column = exact(column)
        dtype: Any = column.dtype
        if dtype == np.dtype(object):
            return self._object_codes(column.to_numpy())
        if isinstance(dtype, pd.StringDtype):
            return self._text_codes(column)
        if dtype.kind in "iu":
            return self._whole_codes(column)
        if dtype.kind == "f" and dtype.itemsize <= 8:
            return self._float_codes(column)
        return self._codes_by_form(column)

    def positions(self, forms: Sequence[Hashable]) -> Codes:
        """Find canonical forms among those of the labels; -2 for those that are not there."""
        wanted = _Divided.of(forms)
        found = np.full(len(forms), -2, dtype=np.int32)
        found[wanted.text_rows] = self._find_texts(wanted.texts)
        found[wanted.whole_rows] = self._find_wholes(wanted.wholes)
        for row in wanted.other_rows.tolist():
            found[row] = self._tables.others.get(forms[row], -2)
        return found

    def _codes_by_form(self, column: pd.Series) -> Codes:
        codes, forms = canonical_codes(column)
        return _at(self.positions(forms), codes)

    def _dictionary_codes(self, encoded: Any) -> Codes:
        """Find the keys of a dictionary array of Arrow."""
        arrow = importlib.import_module("pyarrow")
        dictionary = arrow_column(arrow.chunked_array([encoded.dictionary]))
        indices = encoded.indices.cast(arrow.int64()).fill_null(-1)
        return _at(self.codes(dictionary), indices.to_numpy())

    def _text_codes(self, column: pd.Series) -> Codes:
        """Find the keys of texts that are stored in Arrow, and may be any bytes."""
        texts = arrow_of(column)
        if 0 < _PER_LABEL * len(self.forms) <= len(column):
            codes = self._arrow_labels.find(texts)
        else:
            codes = _joined([self._find_texts(ByteStrings.of_arrow(part)) for part in chunks(column)])
        if texts.null_count:
            codes = np.where(np.asarray(texts.is_null()), np.int32(-1), codes)
        return codes

    def _whole_codes(self, column: pd.Series) -> Codes:
        """Find the keys of a column of whole numbers."""
        dtype: Any = column.dtype
        kind = np.uint64 if dtype.kind == "u" and dtype.itemsize == 8 else np.int64
        if isinstance(dtype, np.dtype):
            numbers, missing = column.to_numpy(dtype=kind), None
        else:
            numbers, missing = column.to_numpy(dtype=kind, na_value=0), column.isna().to_numpy()
        codes = self._find_wholes(numbers.view(np.int64))
        if kind == np.uint64 and (rows := np.flatnonzero(numbers >= 2**63)).size:
            codes[rows] = self.positions(numbers[rows].tolist())
        if missing is not None:
            codes[missing] = -1
        return codes

    def _float_codes(self, column: pd.Series) -> Codes:
        """Find the keys of a column of floats."""
        if isinstance(column.dtype, np.dtype):
            numbers = column.to_numpy(dtype=np.float64)
        else:
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        codes = self._floats.find(_bits(numbers))
        codes[np.isnan(numbers)] = -1
        return codes

    def _object_codes(self, values: npt.NDArray[np.object_]) -> Codes:
        """Find the keys of objects: rows that hold the same object have the same key."""
        addresses = np.asarray(_Addresses(values))
        part = len(values) // _FIRST_PART
        if part and 2 * len(pd.unique(addresses[:part])) <= part:
            place, distinct = pd.factorize(addresses)
            some_row = np.empty(len(distinct), dtype=np.int64)
            some_row[place] = np.arange(len(values))
            return self._codes_of_each(values[some_row])[place]
        return self._codes_of_each(values)

    def _codes_of_each(self, values: npt.NDArray[np.object_]) -> Codes:
        text = text_column(values)
        if text is None:
            return self._codes_by_form(pd.Series(values, dtype=object))
        return self._text_codes(text)

    def _find_texts(self, texts: ByteStrings) -> Codes:
        return self._tables.texts.find(texts)

    def _find_wholes(self, numbers: IntArray) -> Codes:
        return self._tables.wholes.find(numbers)

    @once
    def _tables(self) -> _Tables:
        return _Tables.of(self.forms)

    @once
    def _arrow_labels(self) -> _ArrowTable | _Some:
        """The labels that equal a text of Arrow, in its own table."""
        divided = _Divided.of(self.forms)
        texts = divided.texts.to_arrow()
        if len(texts) == len(self.forms):
            return _ArrowTable(texts, absent=-2)
        return _Some.of(divided.text_rows, _ArrowTable(texts, absent=-1))

    @once
    def _floats(self) -> _Some:
        """The labels that equal a float."""
        equal = {row: number for row, form in enumerate(self.forms) if (number := _float(form)) is not None}
        return _Some.of(list(equal), WholeTable(_bits(np.array([*equal.values()], dtype=np.float64))))


@dataclass(frozen=True)
class _Some:
    """Some of the labels: the table in which they are found, and their positions among all labels."""

    table: Any
    positions: Codes

    @classmethod
    def of(cls, positions: npt.ArrayLike, table: Any) -> _Some:
        """Map unknown labels to -2."""
        return cls(table, np.append(positions, -2).astype(np.int32))

    def find(self, wanted: Any) -> Codes:
        """Find the positions among all labels; -2 for what is not there."""
        found: Codes = self.positions.take(self.table.find(wanted))
        return found


@dataclass(frozen=True)
class _ArrowTable:
    """Distinct texts in a pyarrow.LargeStringArray, in which others are found."""

    texts: Any
    absent: int

    def find(self, wanted: Any) -> Codes:
        """Return the position of each text of Arrow; `absent` if it is not there, or missing."""
        compute = importlib.import_module("pyarrow.compute")
        places = compute.index_in(wanted.cast("large_string"), value_set=self.texts)
        return np.asarray(places.fill_null(self.absent))


@dataclass(frozen=True)
class _Divided:
    """Canonical forms and their positions, by how they are looked up: texts, 64-bit whole numbers, others."""

    text_rows: IntArray
    texts: ByteStrings
    whole_rows: IntArray
    wholes: IntArray
    other_rows: IntArray

    @classmethod
    def of(cls, forms: Sequence[Hashable]) -> _Divided:
        """Divide forms."""
        every, none = np.arange(len(forms)), np.zeros(0, dtype=np.int64)
        array = forms.array if isinstance(forms, ArrayForms) else forms
        if isinstance(array, np.ndarray):
            if array.dtype.kind in "iu" and int(array.max(initial=0)) < 2**63:
                return cls(none, ByteStrings.of([]), every, array.astype(np.int64), none)
        elif array is not forms:
            return cls(every, ByteStrings.of_arrow(array), none, none, none)
        else:
            with suppress(UnicodeEncodeError, OverflowError):  # lone surrogates, numbers of more than 64 bits
                kinds = set(map(type, forms))
                if kinds == {str}:
                    texts = list(map(str.encode, cast(Sequence[str], forms)))
                    return cls(every, ByteStrings.of(texts), none, none, none)
                if kinds == {int}:
                    return cls(none, ByteStrings.of([]), every, np.array(forms, dtype=np.int64), none)
        return cls._one_by_one(forms)

    @classmethod
    def _one_by_one(cls, forms: Sequence[Hashable]) -> _Divided:
        texts = {row: text for row, form in enumerate(forms) if (text := _raw_text(form)) is not None}
        wholes = {row: whole for row, form in enumerate(forms) if (whole := _whole(form)) is not None}
        others = [row for row in range(len(forms)) if row not in texts and row not in wholes]
        return cls(
            np.array([*texts], dtype=np.int64),
            ByteStrings.of(list(texts.values())),
            np.array([*wholes], dtype=np.int64),
            np.array([*wholes.values()], dtype=np.int64),
            np.array(others, dtype=np.int64),
        )


@dataclass(frozen=True)
class _Tables:
    """The tables of the labels of a key; `others` holds the positions of those that are in no array."""

    texts: _Some
    wholes: _Some
    others: dict[Hashable, int]

    @classmethod
    def of(cls, forms: Sequence[Hashable]) -> _Tables:
        """Make the tables of canonical forms."""
        divided = _Divided.of(forms)
        wholes = divided.wholes
        spread = int(wholes.max()) - int(wholes.min()) if len(wholes) else 0
        return cls(
            _Some.of(divided.text_rows, TextTable(divided.texts)),
            _Some.of(
                divided.whole_rows,
                DenseTable(wholes) if spread < _DENSE * len(wholes) else WholeTable(wholes.view(np.uint64)),
            ),
            {forms[row]: row for row in divided.other_rows.tolist()},
        )


def _raw_text(form: Hashable) -> bytes | None:
    """Return the bytes of the text of Arrow that equals a form, if any: Arrow holds no lone surrogates."""
    try:
        return form.encode() if isinstance(form, str) else None
    except UnicodeEncodeError:
        return None


def _whole(form: Hashable) -> int | None:
    """Return the whole number of 64 bits that equals a form, if any."""
    if not isinstance(form, int | float) or form in (math.inf, -math.inf):
        return None
    numerator, denominator = form.as_integer_ratio()
    return numerator if denominator == 1 and -(2**63) <= numerator < 2**63 else None


def _float(form: Hashable) -> float | None:
    """Return the float that equals a form, if any."""
    if not isinstance(form, int | float):
        return None
    try:
        return float(form) if float(form) == form else None
    except OverflowError:
        return None


def _bits(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Return the bits of floats, the same for -0.0 and 0.0."""
    return (numbers + 0.0).view(np.uint64)


class _Addresses:
    """The addresses of the objects of an array, as numpy reads an array of whole numbers."""

    def __init__(self, values: npt.NDArray[np.object_]) -> None:
        kind = np.dtype(np.intp).str
        self.__array_interface__ = values.__array_interface__ | {"typestr": kind, "descr": [("", kind)]}


def _at(codes: Codes, places: npt.NDArray[Any]) -> Codes:
    """Return the codes at places, and -1 at the place -1."""
    taken: Codes = np.append(codes, np.int32(-1)).take(places)
    return taken


def _joined(parts: list[Codes]) -> Codes:
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype=np.int32), *parts])
