"""Supported dataframes, and those that are refused by the name of their library."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import pandas as pd

from pandas_dptree.errors import ArgumentError

__all__ = ["exports_stream", "is_instance", "is_supported", "refuse", "supported"]

_KNOWN_LIBRARIES = ("pandas", "polars", "pyarrow", "narwhals", "xarray", "__main__")
"""Libraries without unsupported dataframes: their columns, readers and arrays are not dataframes."""

_FROM_FILES = 'pyarrow.parquet.read_table(path, columns=["state", "county"])'

_INSTEAD = {
    "cudf": 'frame[["state", "county"]].to_arrow(preserve_index=False)',
    "dask": f"{_FROM_FILES}, and not frame.compute(), since dask converts whole numbers to floats if one is "
    "missing",
    "duckdb": 'relation.select("state", "county").to_arrow_table()',
    "ibis": 'table.select("state", "county").to_pyarrow()',
    "modin": 'pyarrow.Table.from_pandas(frame[["state", "county"]].modin.to_pandas())',
    "pyspark": f'frame.select("state", "county").toArrow(); or before Spark 4, from files, {_FROM_FILES}',
    "sqlframe": 'frame.select("state", "county").toArrow()',
}
"""How to convert a frame of another library to an Arrow table of the needed columns."""

_FRAME_ATTRIBUTES = ("columns", "__dataframe__", "__arrow_c_stream__")
"""Attributes by which the type of a dataframe is recognised; each library has at least one."""


def supported(table: Any, argument: str) -> pd.DataFrame | nw.DataFrame[Any] | nw.LazyFrame[Any] | None:
    """Open a public table of a supported library, or return None if it is no dataframe; nothing is read yet.

    Supported are frames of pandas, frames and lazy frames of polars, tables of pyarrow, and frames of
    narwhals that hold one of these. Records may be in dataframes of more libraries, which hand over their
    values in batches: see `ingest.scan.sources.open_source`.

    **Privacy.** The library that groups or converts records decides which keys are equal, and in
    that decision no record may affect others. In some libraries one can. A column of duckdb or Spark may
    have a collation that ignores case: ``"A"`` and ``"a"`` are then one group under the name of one of them,
    and a single ``"a"`` can rename a thousand ``"A"``. dask converts the whole numbers of a partition with a
    missing value to floats: then 2**53 + 1 becomes 2**53. So it is not enough that narwhals can read a
    dataframe, or that it can be exported. The alternatives in the hints are safe: once a column is fetched as
    an Arrow table, whatever its collation was, this package compares the texts themselves.
    """
    native = nw.to_native(table, pass_through=True)
    if isinstance(native, pd.DataFrame):
        return native
    if is_supported(native):
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(native)
        return frame
    refuse(native, argument)
    return None


def is_supported(table: Any) -> bool:
    """Whether an object can be a public table: one that `supported` opens."""
    native = nw.to_native(table, pass_through=True)
    return (
        isinstance(native, pd.DataFrame)
        or nw.dependencies.is_polars_dataframe(native)
        or nw.dependencies.is_polars_lazyframe(native)
        or nw.dependencies.is_pyarrow_table(native)
    )


def refuse(native: Any, argument: str) -> None:
    """Raise an ArgumentError if an object is a dataframe of an unsupported library. Nothing is read of it."""
    library = _library_of(type(native))
    if library in _KNOWN_LIBRARIES or not any(hasattr(type(native), name) for name in _FRAME_ATTRIBUTES):
        return
    instead = f": {_INSTEAD[library]}." if library in _INSTEAD else ", or a frame of pandas or polars."
    raise ArgumentError(
        argument,
        f"is a dataframe of {library}, which is not supported.",
        hint=f"pass an Arrow table of the needed columns{instead}",
    )


def exports_stream(native: Any) -> bool:
    """Whether an object is exported as a stream of Arrow, by a library that is not known to alter values."""
    library = _library_of(type(native))
    known = library in _INSTEAD or (library in _KNOWN_LIBRARIES and library != "__main__")
    return not known and hasattr(type(native), "__arrow_c_stream__")


def is_instance(native: Any, *kinds: str) -> bool:
    """Whether an object is of one of some classes, each named with its module, which need not be imported."""
    return any(f"{base.__module__}.{base.__qualname__}" in kinds for base in type(native).__mro__)


def _library_of(kind: type) -> str:
    """Name the library that a type, or the base that it derives from, is defined in, without an import."""
    modules = [base.__module__.partition(".")[0] for base in kind.__mro__]
    libraries = [name if name.startswith("__") else name.lstrip("_") for name in modules]
    return next((library for library in libraries if library in _INSTEAD), libraries[0])
