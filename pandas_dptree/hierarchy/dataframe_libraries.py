"""Which dataframes are read: those of libraries that are known to compare values one by one."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import pandas as pd

from pandas_dptree.errors import ArgumentError

__all__ = ["supported"]

_NO_OTHERS = ("pandas", "polars", "pyarrow", "narwhals", "xarray", "__main__")
"""Libraries without dataframes but those that are read: their columns, readers and arrays are none."""

_FROM_FILES = 'pyarrow.parquet.read_table(path, columns=["state", "county"])'

_INSTEAD = {
    "cudf": 'frame[["state", "county"]].to_arrow(preserve_index=False)',
    "dask": f"{_FROM_FILES}, and not frame.compute(), since dask makes floats of whole numbers where one is "
    "missing",
    "duckdb": 'relation.select("state", "county").to_arrow_table()',
    "ibis": 'table.select("state", "county").to_pyarrow()',
    "modin": 'pyarrow.Table.from_pandas(frame[["state", "county"]].modin.to_pandas())',
    "pyspark": f'frame.select("state", "county").toArrow(); or before Spark 4, from files, {_FROM_FILES}',
    "sqlframe": 'frame.select("state", "county").toArrow()',
}
"""How a frame of another library becomes an Arrow table of the columns that are needed."""

_SIGNS = ("columns", "__dataframe__", "__arrow_c_stream__")
"""What the type of a dataframe has, in one library or other."""


def supported(table: Any, argument: str) -> pd.DataFrame | nw.DataFrame[Any] | nw.LazyFrame[Any] | None:
    """Open a dataframe of a supported library; nothing is read, and no query runs.

    Supported are frames of pandas, frames and lazy frames of polars, tables of pyarrow, and frames of
    narwhals that hold one of these.

    Parameters
    ----------
    table : object
        Records, or a public table.
    argument : str
        The name by which the caller knows it.

    Returns
    -------
    pandas.DataFrame, narwhals.DataFrame or narwhals.LazyFrame, or None
        None if it is no dataframe.

    Raises
    ------
    ArgumentError
        If it is a dataframe of another library. The message names the library, and what to pass instead.

    Notes
    -----
    **Privacy.** Whoever groups or converts records decides which of their keys are equal, and there no
    record may decide for others. In other libraries one can. A column of duckdb or Spark may have a
    collation that ignores case: ``"A"`` and ``"a"`` are then one group under the name of one of them, and a
    single ``"a"`` can take a thousand ``"A"`` with it. dask makes floats of the whole numbers of a partition
    in which one is missing: then 2**53 + 1 becomes 2**53. So no dataframe is read merely because narwhals
    can read it, or because it can be exported. What the hints name is safe: of a column that was fetched as
    an Arrow table, whatever its collation was, this package compares the texts themselves.
    """
    native = nw.to_native(table, pass_through=True)
    if isinstance(native, pd.DataFrame):
        return native
    is_supported = (
        nw.dependencies.is_polars_dataframe(native)
        or nw.dependencies.is_polars_lazyframe(native)
        or nw.dependencies.is_pyarrow_table(native)
    )
    if is_supported:
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(native)
        return frame
    library = _library_of(type(native))
    if library in _NO_OTHERS or not any(hasattr(type(native), sign) for sign in _SIGNS):
        return None
    instead = f": {_INSTEAD[library]}." if library in _INSTEAD else ", or a frame of pandas or polars."
    raise ArgumentError(
        argument,
        f"is a dataframe of {library}, which is not supported.",
        hint=f"pass an Arrow table of the needed columns{instead}",
    )


def _library_of(kind: type) -> str:
    """Name the library that a type is from, or that it was derived from, without an import."""
    modules = [base.__module__.partition(".")[0] for base in kind.__mro__]
    libraries = [name if name.startswith("__") else name.lstrip("_") for name in modules]
    return next((library for library in libraries if library in _INSTEAD), libraries[0])
