"""Types of columns as JSON and their values as text, in such a form that both can be restored exactly.

The text of a value is what ``pandas.DataFrame.to_csv`` writes. The type is JSON:

======================================================= =============================================
type                                                    columns
======================================================= =============================================
``"int64"``, ``"Int64"``, ``"boolean"``, ``"float64"``  numbers and booleans, by the name in pandas
``"str"``, ``"string[python]"``, ``"object"``           text, by the name in pandas, or as Python objects
``"datetime64[ns, UTC]"``, ``"period[M]"``              times, durations and periods, likewise
``{"interval": type, "closed": side}``                  intervals, with the type of their ends
``{"category": type, "labels": [...], "ordered": ...}`` categories, with their type and their texts
``{"arrow": name, "schema": base64, "of": type}``       columns of pyarrow, with the type of their values
``{"objects": [[text, value], ...], "missing": ...}``   other Python objects: each distinct one as JSON
``{"text": type, "escaped": [[cell, text], ...]}``      text of which some is escaped in the file
======================================================= =============================================

Text is escaped if it holds a NUL, at which many programs stop reading, or a lone surrogate, which UTF-8
cannot encode.
"""

from __future__ import annotations

import base64
import datetime
import importlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = [
    "MISSING",
    "Cells",
    "decode",
    "decode_arrow",
    "decode_value",
    "distinct_text",
    "encode",
    "encode_value",
    "is_plain_text",
    "kind_of_missing",
    "name_of_text",
    "names_as_text",
    "numbered_text",
    "printable",
    "text_dtype",
]

Cells: TypeAlias = list[str | None]
"""The values of a column as text, None where missing."""

_NUMPY_NUMBERS: Final = {
    str(np.dtype(each)): np.dtype(each)
    for each in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}
_MASKED_NUMBERS: Final[dict[str, Any]] = {
    dtype.name: dtype
    for dtype in (
        pd.BooleanDtype(), pd.Int8Dtype(), pd.Int16Dtype(), pd.Int32Dtype(), pd.Int64Dtype(), pd.UInt8Dtype(),
        pd.UInt16Dtype(), pd.UInt32Dtype(), pd.UInt64Dtype(), pd.Float32Dtype(), pd.Float64Dtype(),
    )
}  # fmt: skip

_STRINGS: Final = re.compile(r"(str|string)(?:\[(python|pyarrow)\])?")

_TIMES: Final[re.Pattern[Any]] = re.compile(r"(datetime64|timedelta64)\[(s|ms|us|ns)\]")
_ZONED: Final = re.compile(r"datetime64\[(s|ms|us|ns), .+\]")
_PERIODS: Final = re.compile(r"period\[.+\]", re.IGNORECASE)

_UNSAFE: Final = re.compile("[\x00\ud800-\udfff]")

MISSING: Final[dict[str, Any]] = {"NaN": math.nan, "None": None, "NA": pd.NA, "NaT": pd.NaT}
"""The values for what is missing, by their names in files."""

_VALUES: Final[dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]]] = {
    float: ("float", repr, float),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.datetime: ("datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
}
"""For types of Python objects that JSON does not have: name, conversion to text, and back."""


_SCALARS: Final = (pd.Timestamp, pd.Timedelta, pd.Period, pd.Interval, np.number, np.bool_)
"""Types of values that are described as a column of one row."""


def encode(column: pd.Series) -> tuple[Any, Cells]:
    """Describe the type of a column as JSON, and its values as text, or refuse to."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _encode_categories(column)
    if dtype == np.dtype(object):
        return _encode_objects(column.tolist())
    if isinstance(dtype, pd.StringDtype):
        missing: Any = None
        return _encode_text(name_of_text(dtype), column.to_numpy(dtype=object, na_value=missing).tolist())
    if isinstance(dtype, pd.IntervalDtype):
        return _encode_intervals(column.array)
    if isinstance(dtype, pd.ArrowDtype):
        return _encode_arrow(column)
    name = str(dtype)
    if name in _NUMPY_NUMBERS or name in _MASKED_NUMBERS:
        return name, _number_cells(column)
    if any(times.fullmatch(name) for times in (_TIMES, _ZONED, _PERIODS)):
        return name, _time_cells(pd.Index(column), lambda distinct: distinct.astype(str).tolist())
    raise TypeError("a type that cannot be written as text")


def decode(kind: Any, cells: Cells) -> pd.Series:
    """Restore the column that `encode` described; raises exceptions of any kind for other input."""
    if isinstance(kind, dict):
        (restore,) = (restore for name, restore in _DECODERS.items() if name in kind)
        return restore(kind, cells)
    if is_plain_text(kind):
        dtype = text_dtype(kind)
        texts = cells if isinstance(dtype, pd.StringDtype) else [math.nan if c is None else c for c in cells]
        return pd.Series(texts, dtype=dtype)
    if kind in _NUMPY_NUMBERS or kind in _MASKED_NUMBERS:
        return _decode_numbers(kind, cells)
    distinct, codes = _numbered(cells)
    return pd.Series(_decode_times(kind, distinct).take(codes))


def decode_arrow(kind: Any, cells: Any) -> pd.Series:
    """Restore a column from texts in an array of pyarrow, as `decode` does from a list."""
    if kind in ("int64", "float64") and not (kind == "int64" and cells.null_count):
        return pd.Series(cells.cast(importlib.import_module("pyarrow").type_for_alias(kind)).to_numpy(False))
    if is_plain_text(kind) and getattr(dtype := text_dtype(kind), "storage", None) == "pyarrow":
        return pd.Series(dtype.__from_arrow__(cells))
    distinct = cells.dictionary_encode()
    texts = distinct.dictionary.to_pylist()
    codes = distinct.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    return decode(kind, [*texts, None] if cells.null_count else texts).take(codes).reset_index(drop=True)


def numbered_text(array: Any) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Number the texts of an array in the order of their first occurrence, -1 if missing; and list them."""
    if getattr(array.dtype, "storage", None) == "pyarrow":
        codes, distinct = array.factorize()
        return codes, distinct.to_numpy(dtype=object).tolist()
    place: dict[str, int] = {}  # pandas up to 3.0.0 would cut texts at a NUL
    codes = [place.setdefault(text, len(place)) if type(text) is str else -1 for text in array.tolist()]
    return np.array(codes, dtype=np.intp), list(place)


def is_plain_text(kind: Any) -> bool:
    """Whether a type is that of text without escapes."""
    return isinstance(kind, str) and (kind == "object" or _STRINGS.fullmatch(kind) is not None)


def encode_value(value: object) -> Any:
    """Describe a single value, such as the name of a column, as JSON, or refuse it."""
    encoded: Any
    if value is None or type(value) in (str, bool, int):
        encoded = value
    elif type(value) is tuple:
        encoded = [encode_value(item) for item in value]
    elif type(value) in _VALUES:
        name, to_text, _ = _VALUES[type(value)]
        encoded = {name: to_text(value)}
    elif isinstance(value, _SCALARS):
        column = pd.Series([value])
        if column.dtype == np.dtype(object):
            raise TypeError("objects for which pandas has no type of column")
        kind, (cell,) = encode(column)  # restores the value, perhaps with another object for its time zone
        encoded = {"type": kind, "value": cell}
        if type(decode_value(encoded)) is not type(value):  # np.timedelta64 becomes pd.Timedelta
            raise TypeError("objects of a type that JSON cannot hold")
        return encoded
    else:
        raise TypeError("objects of a type that JSON cannot hold")
    restored = decode_value(json.loads(json.dumps(encoded)))
    if type(restored) is not type(value) or repr(restored) != repr(value):
        raise ValueError("a value that JSON would change")
    return encoded


def decode_value(encoded: Any) -> Any:
    """Restore the value that `encode_value` described; raises exceptions of any kind for other input."""
    if isinstance(encoded, list):
        return tuple(map(decode_value, encoded))
    if not isinstance(encoded, dict):
        return encoded
    if "type" in encoded:
        return decode(encoded["type"], [encoded["value"]]).iloc[0]
    ((name, text),) = encoded.items()
    return _FROM_TEXT[name](text)


def printable(text: str) -> str:
    """Escape what is unsafe in a file of text: NUL, and lone surrogates."""
    return _UNSAFE.sub(lambda unsafe: unsafe[0].encode("unicode_escape").decode(), text)


def distinct_text(text: str, taken: Collection[str]) -> str:
    """Return the text, with a number behind it if it is already taken."""
    candidates = (f"{text} ({number})" for number in count(2))
    return text if text not in taken else next(each for each in candidates if each not in taken)


def names_as_text(names: Iterable[object]) -> list[str]:
    """Return the names of columns as texts, all different."""
    texts: list[str] = []
    for name in names:
        texts.append(distinct_text(printable(str(name)), texts))
    return texts


def _numbered(cells: Cells) -> tuple[Cells, list[int]]:
    """List the distinct texts, and number those of the rows."""
    distinct = list(dict.fromkeys(cells))
    place = {cell: number for number, cell in enumerate(distinct)}
    return distinct, [place[cell] for cell in cells]


def _taken(cells: Sequence[str | None], codes: Any) -> Cells:
    """Take texts by number; None for -1."""
    return np.array([*cells, None], dtype=object)[codes].tolist()  # type: ignore[no-any-return]


def name_of_text(dtype: Any) -> str:
    """Return the name of a type of text of pandas, from which `text_dtype` restores it."""
    name = "str" if dtype.na_value is np.nan else "string"
    return name if text_dtype(name) == dtype else f"{name}[{dtype.storage}]"


def text_dtype(name: str) -> Any:
    """Return the type of text: that of pandas with nan for missing, that with NA, or objects."""
    match = _STRINGS.fullmatch(name)
    if match is None:
        return np.dtype(object)
    if match[1] == "string":
        return pd.StringDtype(match[2])
    try:
        return pd.StringDtype(match[2], na_value=np.nan)
    except TypeError:  # pandas 2.2
        return np.dtype(object)


def _encode_text(name: str, cells: Cells) -> tuple[Any, Cells]:
    if not _UNSAFE.search("".join(filter(None, cells))):
        return name, cells
    distinct = [cell for cell in dict.fromkeys(cells) if cell is not None]
    safe = {cell for cell in distinct if not _UNSAFE.search(cell)}
    escaped: dict[str | None, str] = {}
    for text in distinct:
        if text not in safe:
            escaped[text] = distinct_text(printable(text), safe)
            safe.add(escaped[text])
            encode_value(text)  # JSON would join two surrogates
    kind = {"text": name, "escaped": [[cell, text] for text, cell in escaped.items()]}
    return kind, [escaped.get(cell, cell) for cell in cells]


def _decode_text(kind: dict[str, Any], cells: Cells) -> pd.Series:
    texts: dict[str | None, str] = dict(kind["escaped"])
    return decode(kind["text"], [texts.get(cell, cell) for cell in cells])


def _number_cells(column: pd.Series) -> Cells:
    masked = _MASKED_NUMBERS.get(str(column.dtype))
    numbers = column.to_numpy() if masked is None else column.to_numpy(dtype=masked.numpy_dtype, na_value=0)
    cells: Cells = list(map(repr, numbers.tolist()))
    for row in np.flatnonzero(column.isna()).tolist():
        cells[row] = None
    return cells


def _decode_numbers(name: str, cells: Cells) -> pd.Series:
    masked = _MASKED_NUMBERS.get(name)
    dtype = _NUMPY_NUMBERS[name] if masked is None else masked.numpy_dtype
    parse = _PARSERS.get(dtype.kind, int)
    if masked is not None:
        present = np.array([False if cell is None else parse(cell) for cell in cells], dtype=dtype)
        missing = np.array([cell is None for cell in cells], dtype=bool)
        return pd.Series(masked.construct_array_type()(present, missing))
    if dtype.kind == "f":
        return pd.Series(np.array([math.nan if cell is None else float(cell) for cell in cells], dtype=dtype))
    return pd.Series(np.array(list(map(parse, cells)), dtype=dtype))


def _time_cells(times: pd.Index, to_texts: Callable[[Any], list[str]]) -> Cells:
    """Convert times, durations or periods to text."""
    distinct: Any
    codes, distinct = times.factorize()
    texts = to_texts(distinct)
    try:
        restored = _decode_times(str(times.dtype), texts)
    except Exception:  # pandas raises many kinds
        restored = None
    if restored is None or restored.dtype != times.dtype or not restored.equals(distinct):
        raise ValueError("times that pandas cannot read back from text")
    return _taken(texts, codes)


def _decode_times(name: str, cells: Sequence[str | None]) -> Any:
    """Restore an index of times, durations or periods."""
    texts = pd.Index(["NaT" if cell is None else cell for cell in cells], dtype=object)
    if match := _TIMES.fullmatch(name):
        if match[1] == "datetime64":
            return pd.DatetimeIndex(texts.to_numpy().astype(name))
        unit: Any = match[2]
        return pd.to_timedelta(texts).as_unit(unit)
    dtype: Any = pd.api.types.pandas_dtype(name)
    if match := _ZONED.fullmatch(name):
        in_utc = pd.DatetimeIndex(pd.to_datetime(texts, utc=True, format="ISO8601"))
        return in_utc.as_unit(dtype.unit).tz_convert(dtype.tz)
    if _PERIODS.fullmatch(name):
        return pd.PeriodIndex(texts, dtype=dtype)
    raise ValueError("unknown type")


def _encode_intervals(intervals: Any) -> tuple[Any, Cells]:
    left, right = intervals.left, intervals.right
    name, opening, closing = str(left.dtype), *_brackets(intervals.closed)
    lower, upper = (
        _number_cells(pd.Series(ends))
        if name in _NUMPY_NUMBERS
        else _time_cells(ends, lambda distinct: list(map(str, distinct)))
        for ends in (left, right)
    )
    cells: Cells = [f"{opening}{low}, {high}{closing}" for low, high in zip(lower, upper, strict=True)]
    for row in np.flatnonzero(intervals.isna()).tolist():
        cells[row] = None
    return {"interval": name, "closed": intervals.closed}, cells


def _decode_intervals(kind: dict[str, Any], cells: Cells) -> pd.Series:
    brackets = _brackets(kind["closed"])
    ends: list[Sequence[str | None]] = []
    for cell in cells:
        if cell is not None and (cell[0], cell[-1]) != brackets:
            raise ValueError("closed on another side")
        ends.append([None, None] if cell is None else cell[1:-1].split(", "))
    left, right = ([low for low, _ in ends], [high for _, high in ends])
    lower, upper = (decode(kind["interval"], list(each)).array for each in (left, right))
    return pd.Series(pd.arrays.IntervalArray.from_arrays(lower, upper, closed=kind["closed"]))


def _brackets(closed: str) -> tuple[str, str]:
    return "[" if closed in ("left", "both") else "(", "]" if closed in ("right", "both") else ")"


def _encode_categories(column: pd.Series) -> tuple[Any, Cells]:
    kind, labels = encode(pd.Series(column.cat.categories))
    ordered = bool(column.cat.ordered)
    return {"category": kind, "labels": labels, "ordered": ordered}, _taken(labels, column.cat.codes)


def _decode_categories(kind: dict[str, Any], cells: Cells) -> pd.Series:
    labels = decode(kind["category"], kind["labels"])
    categories = pd.Index(labels.array, dtype=labels.dtype, tupleize_cols=False)
    place = {label: number for number, label in enumerate(kind["labels"])} | {None: -1}
    codes = np.array([place[cell] for cell in cells], dtype=np.int64)
    return pd.Series(pd.Categorical.from_codes(codes, categories=categories, ordered=kind["ordered"]))


def _encode_objects(values: list[Any]) -> tuple[Any, Cells]:
    if {kind_of_missing(value) for value in values if type(value) is not str} <= {"NaN"}:
        return _encode_text("object", [value if type(value) is str else None for value in values])
    cells: Cells = []
    found: dict[str, tuple[str, Any]] = {}  # by their JSON, which differs for 1 and True
    taken, missing = set[str](), set[str]()
    for value in values:
        if (absent := kind_of_missing(value)) is not None:
            missing.add(absent)
            cells.append(None)
            continue
        encoded = encode_value(value)
        key = json.dumps(encoded)
        if key not in found:
            found[key] = distinct_text(printable(str(value)), taken), encoded
            taken.add(found[key][0])
        cells.append(found[key][0])
    if len(missing) > 1:
        raise ValueError("missing values of several kinds")
    return {"objects": list(map(list, found.values())), "missing": next(iter(missing), "NaN")}, cells


def _decode_objects(kind: dict[str, Any], cells: Cells) -> pd.Series:
    values = {cell: decode_value(encoded) for cell, encoded in kind["objects"]}
    values[None] = MISSING[kind["missing"]]
    column = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells):
        column[row] = values[cell]
    return pd.Series(column, dtype=object)


def _encode_arrow(column: pd.Series) -> tuple[Any, Cells]:
    """Describe a column of pyarrow by the same values in another type of pandas."""
    native: Any = column.array.__arrow_array__()
    of, cells = encode(native.to_pandas())
    schema = importlib.import_module("pyarrow").schema([("", native.type)]).serialize().to_pybytes()
    kind = {"arrow": str(native.type), "schema": base64.b64encode(schema).decode(), "of": of}
    if not _decode_arrow(kind, cells).array.__arrow_array__().equals(native):
        raise ValueError("values that pyarrow cannot read back from pandas")
    return kind, cells


def _decode_arrow(kind: dict[str, Any], cells: Cells) -> Any:
    arrow = importlib.import_module("pyarrow")
    schema = arrow.ipc.read_schema(arrow.py_buffer(base64.b64decode(kind["schema"])))
    native = arrow.array(decode(kind["of"], cells), type=schema.field(0).type, from_pandas=True)
    return pd.Series(pd.arrays.ArrowExtensionArray(arrow.chunked_array([native])))


def kind_of_missing(value: object) -> str | None:
    """Return the name in `MISSING` of a missing value; None for any other value."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else None
    return next((name for name, missing in MISSING.items() if value is missing), None)


_PARSERS: Final[dict[str, Callable[[Any], Any]]] = {
    "b": {"True": True, "False": False}.__getitem__,
    "f": float,
}

_FROM_TEXT: Final = {name: from_text for name, _, from_text in _VALUES.values()}

_DECODERS: Final[dict[str, Callable[[dict[str, Any], Cells], pd.Series]]] = {
    "text": _decode_text,
    "interval": _decode_intervals,
    "category": _decode_categories,
    "objects": _decode_objects,
    "arrow": _decode_arrow,
}
"""For types that are JSON objects, by the key that marks them."""
