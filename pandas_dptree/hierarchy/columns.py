"""Conversion of columns of any supported library and type to pandas without changing a value.

The result, and whether a column can be read at all, depends on its type alone, never on its values.
"""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import (
    ColumnsError,
    DomainError,
    DPTreeError,
    did_you_mean,
    kind_of_object,
    listed,
    quote,
)
from pandas_dptree.hierarchy.dataframe_libraries import supported

__all__ = [
    "ALL_MISSING",
    "ANY",
    "NO_KEYS",
    "arrow_column",
    "arrow_of",
    "categories_of",
    "chunks",
    "collected",
    "decoded",
    "exact",
    "kind_of",
    "may_hold_numbers",
    "pick_categories",
    "pick_columns",
    "python_values",
    "suggest_columns",
    "text_column",
    "to_pandas",
]  # fmt: skip

ANY = "objects"
"""Kind of a column that may hold values of any kind."""

NO_KEYS = {"decimals": nw.Decimal, "bytes": nw.Binary, "times of day": nw.Time}
"""Kinds of columns whose values are never keys, with their types."""

ALL_MISSING = np.dtype(np.float64)
"""The type that pandas gives to an empty column, which may therefore be of any type."""

_ENCODED_TYPES = ("dictionary", "run_end_encoded")
"""Arrow types that store the values of another type in fewer bytes."""

_PLAIN_EQUIVALENTS = {"string_view": "large_string", "binary_view": "large_binary", "halffloat": "float32"}
"""Arrow types that few functions support, and equivalent types."""

_LARGE_VARIANTS = {"string": "large_string", "binary": "large_binary"}
"""Types limited to 2**31 bytes, too few for some decoded columns, and types without the limit."""

_KNOWN_NAMES = ("arrow.uuid", "arrow.bool8")
"""Arrow extension types whose values differ from their storage."""

_TEXT = (nw.String, nw.Categorical, nw.Enum)


def collected(table: Any, argument: str) -> pd.DataFrame | nw.DataFrame[Any] | None:
    """Collect a public table of a supported library; None if it is no table or cannot be read.

    Raises an ArgumentError for other libraries, see `supported`.
    """
    frame = supported(table, argument)
    try:
        if isinstance(table, pd.Index):
            return table.to_frame(index=False)
        return frame if frame is None or isinstance(frame, pd.DataFrame) else frame.lazy().collect()
    except Exception:  # any error of its library
        return None


def pick_columns(places: Any, wanted: Sequence[Hashable], *, argument: str = "domain") -> list[pd.Series]:
    """Pick columns from a public table, the argument `argument`; a single column may be a list."""
    given = places
    try:
        table = collected(_with_name(places, wanted), argument)
    except ValueError as error:  # for example an array of two dimensions
        if isinstance(error, DPTreeError):
            raise
        table = None
    if table is None:
        columns = ", ".join(f"{quote(name)}: [...]" for name in wanted)
        raise DomainError(
            f"must be a table that can be read, not {kind_of_object(given)}.",
            hint=f"pass a frame or a MultiIndex of the public keys, for example pd.DataFrame({{{columns}}}).",
        )
    names: list[Hashable] = list(table.columns)
    absent = [name for name in wanted if name not in names]
    if absent:
        unnamed = isinstance(given, pd.MultiIndex) and not any(name is not None for name in given.names)
        raise ColumnsError(
            argument,
            "lacks the columns",
            columns=absent,
            hint=f"name the levels of the index: {argument}=index.set_names({listed(wanted)})."
            if unnamed
            else suggest_columns(absent, names, given)
            or f"it needs every column named in the call, and has {listed(names)}.",
        )
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise ColumnsError(
            argument, "has several columns named", columns=twice, hint="rename the duplicates."
        )
    if isinstance(table, pd.DataFrame):
        return [table[name] for name in wanted]
    return [to_pandas(table[str(name)]) for name in wanted]


def _with_name(places: Any, wanted: Sequence[Hashable]) -> Any:
    """Name the keys of a single column, which may be any list; return other objects unchanged."""
    if isinstance(places, pd.Series):
        # An explicit index may hold the keys, and the values may be counts.
        bare = places.name is None and isinstance(places.index, pd.RangeIndex)
        return places.to_frame(*wanted) if bare and len(wanted) == 1 else places.to_frame()
    if len(wanted) > 1 or isinstance(places, pd.MultiIndex):
        return places
    if isinstance(places, (list, tuple, range, set, frozenset, np.ndarray, pd.api.extensions.ExtensionArray)):
        return pd.DataFrame({wanted[0]: list(places) if isinstance(places, (set, frozenset)) else places})
    if isinstance(places, pd.Index) and places.name is None:
        return places.to_frame(index=False, name=wanted[0])
    if nw.dependencies.is_into_series(places):  # polars: names are texts and may be empty
        column = nw.from_native(places, series_only=True)
        return (column if column.name else column.alias(str(wanted[0]))).to_frame()
    return places


def suggest_columns(
    absent: Sequence[Hashable], present: Sequence[Hashable], table: Any, *, cutoff: float = 0.6
) -> str:
    """Return a hint about columns that a table lacks: in its index, or named similarly; empty if none.

    Of `table`, only the index is used, if it has one; `cutoff` is passed to `did_you_mean`.
    """
    if isinstance(table, (pd.DataFrame, pd.Series)) and not {*absent}.isdisjoint(table.index.names):
        return "turn the keys in the index into columns with reset_index()."
    return did_you_mean(absent, present, cutoff=cutoff).rstrip()


def pick_categories(places: Any, wanted: Sequence[Hashable]) -> list[pd.Series]:
    """Pick columns as `pick_columns` does, and keep all categories of an Enum, which belong to its type."""
    columns = pick_columns(places, wanted)
    frame = supported(_with_name(places, wanted), "domain")
    if frame is None or isinstance(frame, pd.DataFrame):
        return columns
    schema = frame.collect_schema()
    return [
        pd.Series(pd.Categorical([], categories=list(kind.categories), ordered=True))
        if isinstance(kind := schema[str(name)], nw.Enum)
        else column
        for name, column in zip(wanted, columns, strict=True)
    ]


def kind_of(dtype: Any) -> str:
    """Name the kind of values of a pandas or narwhals data type; `ANY` if the type leaves it open."""
    if isinstance(dtype, pd.CategoricalDtype) and not len(dtype.categories):
        return ANY  # for example an empty column
    dtype = plain_type(dtype)
    if isinstance(dtype, (pd.IntervalDtype, pd.PeriodDtype)):
        return type(dtype).__name__.removesuffix("Dtype").lower() + "s"
    if dtype == np.dtype(object):  # narwhals would inspect the values
        return ANY
    if not isinstance(dtype, nw.dtypes.DType):
        dtype = _narwhals_type(dtype)
    if dtype in _TEXT:
        return "text"
    if dtype == nw.Boolean:
        return "booleans"
    for kind, odd in NO_KEYS.items():
        if dtype == odd:
            return kind
    if dtype.is_numeric():
        return "numbers"
    if dtype == nw.Datetime and dtype.time_zone is not None:
        return "times with a time zone"
    if dtype in (nw.Date, nw.Datetime):
        return "times"
    return "durations" if dtype == nw.Duration else ANY


def may_hold_numbers(dtype: Any) -> bool:
    """Whether a value of a pandas or narwhals data type may be a number, or text that represents one."""
    if (kind := kind_of(dtype)) != ANY:
        return kind in {"numbers", "decimals", "booleans", "text"}
    dtype = plain_type(dtype)
    if not isinstance(dtype, nw.dtypes.DType):
        if dtype.kind in "cSV":  # numpy's complex numbers, bytes and records
            return False
        if dtype == np.dtype(object):
            return True
        if isinstance(dtype, pd.ArrowDtype) and "binary" in str(dtype):  # narwhals supports only one of them
            return False
        dtype = _narwhals_type(dtype)
    return not (dtype.is_nested() or dtype in (nw.Binary, nw.Time))


def _narwhals_type(dtype: Any) -> nw.dtypes.DType:
    """Convert a pandas data type to narwhals, which does not support all names of time zones."""
    if isinstance(dtype, pd.DatetimeTZDtype):
        return nw.Datetime(dtype.unit, "UTC")
    column = _empty(dtype)
    native = arrow_of(column) if isinstance(dtype, pd.ArrowDtype) else column
    return nw.from_native(native, series_only=True).dtype


def plain_type(dtype: Any) -> Any:
    """Return the type of the values themselves, if a column stores them encoded."""
    if isinstance(dtype, pd.CategoricalDtype):
        return plain_type(dtype.categories.dtype)
    return decoded(_empty(dtype)).dtype if isinstance(dtype, (pd.ArrowDtype, pd.SparseDtype)) else dtype


def categories_of(column: pd.Series) -> pd.Series:
    """Return the categories of a categorical column in their own type: pandas would infer one from values."""
    categories = column.cat.categories
    return pd.Series(categories.array, dtype=categories.dtype)


def decoded(column: pd.Series) -> pd.Series:
    """Decode a column that is stored sparse or in an encoding of Arrow, which few functions compare or group.

    The resulting type depends on the type of the column alone. The index may be lost.
    """
    if isinstance(column.dtype, pd.SparseDtype):
        return pd.Series(column.array.to_dense())
    if not isinstance(column.dtype, pd.ArrowDtype):
        return column
    native = arrow_of(column)
    plain = _plain_arrow(native.type)
    if plain == native.type:
        return column
    return arrow_column(_arrow().chunked_array([_decode_chunk(chunk) for chunk in native.chunks], type=plain))


def _plain_arrow(kind: Any) -> Any:
    """Return the Arrow type of the result of `decoded`."""
    if _is_extension(kind):
        return _plain_arrow(kind.storage_type)
    encoded = str(kind).startswith(_ENCODED_TYPES)
    plain = _plain_arrow(kind.value_type) if encoded else kind
    alias = (_PLAIN_EQUIVALENTS | _LARGE_VARIANTS if encoded else _PLAIN_EQUIVALENTS).get(str(plain))
    return plain if alias is None else _arrow().type_for_alias(alias)


def _is_extension(kind: Any) -> bool:
    """Whether a type is an extension type with the values of its storage; it may run arbitrary code."""
    return str(kind).startswith("extension") and kind.extension_name not in _KNOWN_NAMES


def _decode_chunk(chunk: Any) -> Any:
    """Decode one chunk of an Arrow column."""
    if _is_extension(chunk.type):
        return _decode_chunk(chunk.storage)
    plain = _plain_arrow(chunk.type)
    if str(chunk.type).startswith("dictionary"):
        return _decode_chunk(chunk.dictionary).cast(plain).take(chunk.indices)
    if str(chunk.type).startswith("run_end_encoded"):
        runs = type(chunk).from_arrays(chunk.run_ends, _decode_chunk(chunk.values).cast(plain))
        return _arrow("pyarrow.compute").run_end_decode(runs.slice(chunk.offset, len(chunk)))
    return chunk.cast(plain)


def exact(column: pd.Series) -> pd.Series:
    """Convert a column to a type that compares its values exactly, or to objects."""
    column = decoded(column)
    dtype: Any = column.dtype
    if isinstance(dtype, pd.ArrowDtype) and dtype.kind not in "iufb":
        native = arrow_of(column)
        if str(native.type) in ("string", "large_string"):
            return pd.Series(pd.arrays.ArrowStringArray(native))
        return to_pandas(nw.from_native(native, series_only=True))
    if isinstance(dtype, pd.StringDtype) and dtype.storage == "python":  # may hold subclasses of str
        return pd.Series(column.to_numpy(dtype=object), dtype=object)
    if dtype == np.dtype(np.float16):  # pandas has no index of these
        return column.astype(np.float32)
    return column


def python_values(values: Any) -> list[Any]:
    """Convert an array of one type to a list of Python objects.

    Arrow does not check that its texts are UTF-8, and a Parquet file may hold any bytes. If Python cannot
    convert the column for that reason, each invalid text becomes its bytes.
    """
    try:
        listed: list[Any] = values.tolist()
        return listed
    except Exception:  # from Python or Arrow, depending on the version
        return [_text_or_bytes(each) for each in arrow_of(values).cast("large_binary").to_pylist()]


def _text_or_bytes(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def text_column(values: npt.NDArray[np.object_]) -> pd.Series | None:
    """Copy an object array into Arrow if all values are text or missing; else, or if that fails, None.

    Subclasses of ``str`` count as text. Their characters are copied and compared, whatever equality they
    define.
    """
    try:
        # Arrow's own check crashes for deeply nested tuples, and accepts bytes as text.
        if pd.api.types.infer_dtype(values, skipna=True) != "string":
            return None
        copied = _arrow().array(values, type=_arrow().large_string(), from_pandas=True)
        return pd.Series(pd.arrays.ArrowStringArray(_arrow().chunked_array([copied])))
    except Exception:  # no Arrow, lone surrogates, or an object that raises anything on access
        return None


def to_pandas(column: nw.Series[Any], *, keep_arrow: bool = False) -> pd.Series:
    """Convert a narwhals series to pandas without changing a value: whole numbers stay whole.

    With `keep_arrow`, text may stay in Arrow's memory, without an object for each row.
    """
    nested = column.dtype.is_nested()
    if nw.dependencies.is_pyarrow_chunked_array(column.to_native()):
        native = arrow_of(decoded(arrow_column(column.to_native())))
        column = nw.from_native(native, series_only=True)
        nested = _arrow("pyarrow.types").is_nested(native.type)  # narwhals does not support all of them
        if str(native.type).startswith("date64"):
            column = column.cast(nw.Datetime("ms"))
        if str(native.type).startswith("decimal") and native.type.scale == 0:  # duckdb's HUGEINT
            return pd.Series([None if each is None else int(each) for each in column.to_list()], dtype=object)
    dtype, missing = column.dtype, column.is_null().to_numpy()
    if nested:  # they equal no key, and may hold values that Python cannot represent
        return pd.Series(np.array([object(), None], dtype=object)[missing.astype(np.int64)])
    if dtype == nw.Boolean:
        return pd.Series(pd.arrays.BooleanArray(column.fill_null(False).to_numpy().astype(bool), missing))
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):  # numpy does not support 128 bits
        return pd.Series(pd.arrays.IntegerArray(column.fill_null(0).to_numpy().copy(), missing))
    if dtype in (nw.Date, nw.Datetime, nw.Duration):
        whole = (
            column.cast(nw.Int32 if dtype == nw.Date else nw.Int64).fill_null(0).to_numpy().astype(np.int64)
        )
        unit = "s" if dtype == nw.Date else dtype.time_unit  # type: ignore[attr-defined]
        values = (whole * 86_400 if dtype == nw.Date else whole).astype(
            f"{'m' if dtype == nw.Duration else 'M'}8[{unit}]"
        )
        values[missing] = "NaT"
        series = pd.Series(values)
        zone = getattr(dtype, "time_zone", None)
        return series if zone is None else series.dt.tz_localize("UTC").dt.tz_convert(zone)
    if dtype.is_float():
        return pd.Series(column.fill_null(float("nan")).to_numpy())
    if dtype in _TEXT:
        text = _text_in_arrow(column) if keep_arrow else None
        return pd.Series(column.cast(nw.String).to_list()) if text is None else text
    return pd.Series(_python_list(column), dtype=object)


def _python_list(column: nw.Series[Any]) -> list[Any]:
    """Convert a column to Python objects; values without one, such as a time of 30 hours, are no keys."""
    try:
        return column.to_list()
    except Exception:  # any error of the library, for any value
        return [_python_value(column[place : place + 1]) for place in range(len(column))]


def _python_value(column: nw.Series[Any]) -> Any:
    try:
        return column.to_list()[0]
    except Exception:  # as above
        return object()


def arrow_column(native: Any) -> pd.Series:
    """Wrap a pyarrow.ChunkedArray in a pandas series, unchanged."""
    return pd.Series(pd.arrays.ArrowExtensionArray(native))


def _text_in_arrow(column: nw.Series[Any]) -> pd.Series | None:
    """Copy text into Arrow's memory, if Arrow is installed."""
    try:
        return exact(arrow_column(_arrow().chunked_array([column.cast(nw.String).to_arrow()])))
    except ImportError:
        return None


def arrow_of(column: pd.Series) -> Any:
    """Return the Arrow array of a pandas series."""
    return column.array.__arrow_array__()


def chunks(column: pd.Series) -> list[Any]:
    """Return the Arrow arrays of a column that is stored in Arrow."""
    native = arrow_of(column)
    parts: list[Any] = getattr(native, "chunks", [native])
    return parts


def _empty(dtype: Any) -> pd.Series:
    if isinstance(dtype, pd.ArrowDtype):  # pandas cannot make one of every type
        return arrow_column(_arrow().chunked_array([], type=dtype.pyarrow_dtype))
    empty: pd.Series = pd.Series([], dtype=dtype)
    return empty


def _arrow(name: str = "pyarrow") -> Any:
    return importlib.import_module(name)
