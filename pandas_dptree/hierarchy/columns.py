"""Columns of any supported library and type, brought into pandas without changing a value.

What becomes of a column, and whether it can be read at all, depends on its type alone, never on its values.
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
    "ALL_MISSING", "ANY", "arrow_column", "collected", "decoded", "exact", "kind_of", "may_hold_numbers",
    "others_meant", "pick_categories", "pick_columns", "python_values", "text_column", "to_pandas",
]  # fmt: skip

ANY = "objects"
"""The kind of a column that may hold anything."""

ALL_MISSING = np.dtype(np.float64)
"""The type that pandas gives to a column without values, so that it may stand for one of any type."""

_ENCODED = ("dictionary", "run_end_encoded")
"""Types of Arrow that hold the values of another one in fewer bytes."""

_RARE = {"string_view": "large_string", "binary_view": "large_binary", "halffloat": "float32"}
"""Types of Arrow that few functions know, and types that hold the same."""

_LARGE = {"string": "large_string", "binary": "large_binary"}
"""Types that hold no more than 2**31 bytes, which is soon too little for what was encoded."""

_KNOWN_NAMES = ("arrow.uuid", "arrow.bool8")
"""Extension types of Arrow that stand for other values than those they are stored in."""

_TEXT = (nw.String, nw.Categorical, nw.Enum)


def collected(table: Any, argument: str) -> pd.DataFrame | nw.DataFrame[Any] | None:
    """Hold a public table of a supported library in memory; None if it is no table, or cannot be read.

    Raises
    ------
    ArgumentError
        If it is of another library, as `supported` tells.
    """
    frame = supported(table, argument)
    try:
        if isinstance(table, pd.Index):
            return table.to_frame(index=False)
        return frame if frame is None or isinstance(frame, pd.DataFrame) else frame.lazy().collect()
    except Exception:  # whatever its library raises
        return None


def pick_columns(places: Any, wanted: Sequence[Hashable], *, argument: str = "domain") -> list[pd.Series]:
    """Pick columns out of whatever public table the caller passes as `argument`; a single one may be a list.

    Raises
    ------
    ArgumentError
        If it is a table of a library that is not supported.
    DomainError
        If it is no table.
    ColumnsError
        If a column is missing or repeated.
    """
    given = places
    try:
        table = collected(_titled(places, wanted), argument)
    except ValueError as error:  # as of an array of two dimensions
        if isinstance(error, DPTreeError):
            raise
        table = None
    if table is None:
        columns = ", ".join(f"{quote(name)}: [...]" for name in wanted)
        raise DomainError(
            f"cannot be {kind_of_object(given)}, or cannot be read.",
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
            else others_meant(absent, names, given)
            or f"it needs every column named in the call, and has {listed(names)}.",
        )
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise ColumnsError(
            argument, "has several columns named", columns=twice, hint="give each column a name of its own."
        )
    if isinstance(table, pd.DataFrame):
        return [table[name] for name in wanted]
    return [to_pandas(table[str(name)]) for name in wanted]


def _titled(places: Any, wanted: Sequence[Hashable]) -> Any:
    """Give the keys of a single column, which may be any list, its name; others stay as they are."""
    if isinstance(places, pd.Series):
        # An index that somebody made may hold the keys, and the values be counts.
        bare = places.name is None and isinstance(places.index, pd.RangeIndex)
        return places.to_frame(*wanted) if bare and len(wanted) == 1 else places.to_frame()
    if len(wanted) > 1 or isinstance(places, pd.MultiIndex):
        return places
    if isinstance(places, (list, tuple, range, set, frozenset, np.ndarray, pd.api.extensions.ExtensionArray)):
        return pd.DataFrame({wanted[0]: list(places) if isinstance(places, (set, frozenset)) else places})
    if isinstance(places, pd.Index) and places.name is None:
        return places.to_frame(index=False, name=wanted[0])
    if nw.dependencies.is_into_series(places):  # of polars, whose names are texts and may be empty
        column = nw.from_native(places, series_only=True)
        return (column if column.name else column.alias(str(wanted[0]))).to_frame()
    return places


def others_meant(
    absent: Sequence[Hashable], present: Sequence[Hashable], table: Any, *, alike: float = 0.6
) -> str:
    """Hint at where columns that a table lacks may be: in its index, or under another name; empty if nowhere.

    Parameters
    ----------
    absent, present : sequence of hashable
        Names of columns.
    table : object
        Only its index is looked at, if it has one.
    alike : float
        As for `did_you_mean`.

    Returns
    -------
    str
    """
    if isinstance(table, (pd.DataFrame, pd.Series)) and not {*absent}.isdisjoint(table.index.names):
        return "keys in the index become columns by reset_index()."
    return did_you_mean(absent, present, alike=alike).rstrip()


def pick_categories(places: Any, wanted: Sequence[Hashable]) -> list[pd.Series]:
    """Pick columns as `pick_columns` does; the categories of an Enum belong to its type, and are kept.

    Raises
    ------
    ArgumentError, DomainError, ColumnsError
        As `pick_columns`.
    """
    columns = pick_columns(places, wanted)
    frame = supported(_titled(places, wanted), "domain")
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
    """Name the kind of values that a column of a type holds, for people.

    Parameters
    ----------
    dtype : pandas or narwhals data type

    Returns
    -------
    str
        `ANY` if the type does not tell.
    """
    if isinstance(dtype, pd.CategoricalDtype) and not len(dtype.categories):
        return ANY  # as of a column without values
    dtype = plain_type(dtype)
    if isinstance(dtype, (pd.IntervalDtype, pd.PeriodDtype)):
        return type(dtype).__name__.removesuffix("Dtype").lower() + "s"
    if dtype == np.dtype(object):  # of which narwhals would ask what it holds
        return ANY
    if not isinstance(dtype, nw.dtypes.DType):
        dtype = _narwhals_type(dtype)
    if dtype in _TEXT:
        return "text"
    if dtype == nw.Boolean:
        return "booleans"
    if dtype.is_numeric():
        return "numbers"
    if dtype == nw.Datetime and dtype.time_zone is not None:
        return "times with a time zone"
    if dtype in (nw.Date, nw.Datetime):
        return "times"
    return "durations" if dtype == nw.Duration else ANY


def may_hold_numbers(dtype: Any) -> bool:
    """Tell whether some value of a type is a number, or text that may be one.

    Parameters
    ----------
    dtype : pandas or narwhals data type

    Returns
    -------
    bool
    """
    if (kind := kind_of(dtype)) != ANY:
        return kind in {"numbers", "booleans", "text"}
    dtype = plain_type(dtype)
    if not isinstance(dtype, nw.dtypes.DType):
        if dtype.kind in "cSV":  # numpy's complex numbers, bytes and records
            return False
        if dtype == np.dtype(object):
            return True
        if isinstance(dtype, pd.ArrowDtype) and "binary" in str(dtype):  # narwhals knows but one of them
            return False
        dtype = _narwhals_type(dtype)
    return not (dtype.is_nested() or dtype in (nw.Binary, nw.Time))


def _narwhals_type(dtype: Any) -> nw.dtypes.DType:
    """Name a type of pandas as narwhals does, which knows the zones of times by some of their names alone."""
    if isinstance(dtype, pd.DatetimeTZDtype):
        return nw.Datetime(dtype.unit, "UTC")
    column = _empty(dtype)
    native = _native(column) if isinstance(dtype, pd.ArrowDtype) else column
    return nw.from_native(native, series_only=True).dtype


def plain_type(dtype: Any) -> Any:
    """Name the type of the values themselves, where a column holds them encoded."""
    if isinstance(dtype, pd.CategoricalDtype):
        return plain_type(dtype.categories.dtype)
    return decoded(_empty(dtype)).dtype if isinstance(dtype, (pd.ArrowDtype, pd.SparseDtype)) else dtype


def decoded(column: pd.Series) -> pd.Series:
    """Write out the values of a column that holds them encoded: sparse, or in a way of Arrow's own.

    A dictionary of Arrow may hold more values than occur, and each chunk has one of its own. Views, runs
    and half floats can hardly be compared or grouped by anyone.

    Parameters
    ----------
    column : pandas.Series

    Returns
    -------
    pandas.Series
        The same values, in a type that depends on that of the column alone. The index may be lost.
    """
    if isinstance(column.dtype, pd.SparseDtype):
        return pd.Series(column.array.to_dense())
    if not isinstance(column.dtype, pd.ArrowDtype):
        return column
    native = _native(column)
    plain = _plain_arrow(native.type)
    if plain == native.type:
        return column
    return arrow_column(_arrow().chunked_array([_written_out(chunk) for chunk in native.chunks], type=plain))


def _plain_arrow(kind: Any) -> Any:
    """Name the type of Arrow in which `decoded` writes out the values of another one."""
    if _is_named(kind):
        return _plain_arrow(kind.storage_type)
    encoded = str(kind).startswith(_ENCODED)
    plain = _plain_arrow(kind.value_type) if encoded else kind
    alias = (_RARE | _LARGE if encoded else _RARE).get(str(plain))
    return plain if alias is None else _arrow().type_for_alias(alias)


def _is_named(kind: Any) -> bool:
    """Tell whether a type is another one under a name, which may bring any code of its own."""
    return str(kind).startswith("extension") and kind.extension_name not in _KNOWN_NAMES


def _written_out(chunk: Any) -> Any:
    """Write out one chunk of Arrow."""
    if _is_named(chunk.type):
        return _written_out(chunk.storage)
    plain = _plain_arrow(chunk.type)
    if str(chunk.type).startswith("dictionary"):
        return _written_out(chunk.dictionary).cast(plain).take(chunk.indices)
    if str(chunk.type).startswith("run_end_encoded"):
        runs = type(chunk).from_arrays(chunk.run_ends, _written_out(chunk.values).cast(plain))
        return _arrow("pyarrow.compute").run_end_decode(runs.slice(chunk.offset, len(chunk)))
    return chunk.cast(plain)


def exact(column: pd.Series) -> pd.Series:
    """Bring a column into a type that compares its values by what they are, or into one of objects.

    Parameters
    ----------
    column : pandas.Series

    Returns
    -------
    pandas.Series
    """
    column = decoded(column)
    dtype: Any = column.dtype
    if isinstance(dtype, pd.ArrowDtype) and dtype.kind not in "iufb":
        native = _native(column)
        if str(native.type) in ("string", "large_string"):
            return pd.Series(pd.arrays.ArrowStringArray(native))
        return to_pandas(nw.from_native(native, series_only=True))
    if isinstance(dtype, pd.StringDtype) and dtype.storage == "python":  # may hold subclasses of str
        return pd.Series(column.to_numpy(dtype=object), dtype=object)
    if dtype == np.dtype(np.float16):  # pandas has no index of these
        return column.astype(np.float32)
    return column


def python_values(values: Any) -> list[Any]:
    """Write out values as objects of Python.

    Arrow does not look at the bytes of its texts, and a Parquet file may hold any. Where they are not UTF-8,
    Python cannot write out the column: then each value that is no text becomes the bytes that it is.

    Parameters
    ----------
    values : array-like of one type, shape (n,)

    Returns
    -------
    list, of length n
    """
    try:
        listed: list[Any] = values.tolist()
        return listed
    except Exception:  # Python's or Arrow's own, as the version may be
        return [_text_or_bytes(each) for each in _native(values).cast("large_binary").to_pylist()]


def _text_or_bytes(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def text_column(values: npt.NDArray[np.object_]) -> pd.Series | None:
    """Copy objects into Arrow if all are text or missing; None if they are not, or it cannot be done.

    Subclasses of ``str`` count as text. They are copied by their characters and compared by these,
    whatever they say of their equality.

    Parameters
    ----------
    values : numpy.ndarray of object, shape (n,)

    Returns
    -------
    pandas.Series or None
    """
    try:
        # Arrow itself would tell, too, but not survive tuples nested deep enough, and take bytes for text.
        if pd.api.types.infer_dtype(values, skipna=True) != "string":
            return None
        copied = _arrow().array(values, type=_arrow().large_string(), from_pandas=True)
        return pd.Series(pd.arrays.ArrowStringArray(_arrow().chunked_array([copied])))
    except Exception:  # no Arrow, lone surrogates, or an object that does anything when it is looked at
        return None


def to_pandas(column: nw.Series[Any], *, keep_arrow: bool = False) -> pd.Series:
    """Bring a column of any supported library into pandas without changing a value: whole numbers stay whole.

    Parameters
    ----------
    column : narwhals.Series
    keep_arrow : bool
        Whether text may stay in Arrow's memory, which need not write out one object for each row.

    Returns
    -------
    pandas.Series
    """
    nested = column.dtype.is_nested()
    if nw.dependencies.is_pyarrow_chunked_array(column.to_native()):
        native = _native(decoded(arrow_column(column.to_native())))
        column = nw.from_native(native, series_only=True)
        nested = _arrow("pyarrow.types").is_nested(native.type)  # narwhals does not know them all
        if str(native.type).startswith("date64"):
            column = column.cast(nw.Datetime("ms"))
    dtype, missing = column.dtype, column.is_null().to_numpy()
    if nested:  # they equal no key, and may hold what Python cannot express
        return pd.Series(np.array([object(), None], dtype=object)[missing.astype(np.int64)])
    if dtype == nw.Boolean:
        return pd.Series(pd.arrays.BooleanArray(column.fill_null(False).to_numpy().astype(bool), missing))
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):  # which numpy does not know
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
    """Write out a column as Python objects; what cannot be one, such as a time of 30 hours, is no key."""
    try:
        return column.to_list()
    except Exception:  # of the library, whichever the value
        return [_python_value(column[place : place + 1]) for place in range(len(column))]


def _python_value(column: nw.Series[Any]) -> Any:
    try:
        return column.to_list()[0]
    except Exception:  # as above
        return object()


def arrow_column(native: Any) -> pd.Series:
    """Let pandas hold a column of Arrow as it is.

    Parameters
    ----------
    native : pyarrow.ChunkedArray

    Returns
    -------
    pandas.Series
    """
    return pd.Series(pd.arrays.ArrowExtensionArray(native))


def _text_in_arrow(column: nw.Series[Any]) -> pd.Series | None:
    """Move text into Arrow's memory, if there is Arrow."""
    try:
        return exact(arrow_column(_arrow().chunked_array([column.cast(nw.String).to_arrow()])))
    except ImportError:
        return None


def _native(column: pd.Series) -> Any:
    """Give the column of Arrow that pandas holds."""
    return column.array.__arrow_array__()


def _empty(dtype: Any) -> pd.Series:
    if isinstance(dtype, pd.ArrowDtype):  # pandas cannot make one of every type
        return arrow_column(_arrow().chunked_array([], type=dtype.pyarrow_dtype))
    empty: pd.Series = pd.Series([], dtype=dtype)
    return empty


def _arrow(name: str = "pyarrow") -> Any:
    return importlib.import_module(name)
