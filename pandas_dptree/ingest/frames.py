"""Open frames of any dataframe library and read them column by column. Secret: nothing here may leave.

Messages contain the names and types of columns, never their values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
import xarray as xr

from pandas_dptree.errors import ArgumentError, ColumnsError, kind_of_object, quote, warn
from pandas_dptree.hierarchy.columns import arrow_column, suggest_columns, to_pandas
from pandas_dptree.hierarchy.dataframe_libraries import supported
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes, numbered_combinations

__all__ = ["Batch", "Records", "check_columns", "check_frame", "warn_if_released"]

Table = pd.DataFrame | nw.DataFrame[Any] | nw.LazyFrame[Any]

_RECORDS_ARGUMENTS = ("frame", "records")
"""Names of the argument that holds the records, in Python and in the shell."""

_UNGROUPABLE = (nw.Object, nw.Unknown, nw.Int128, nw.UInt128)
"""Types that not every library can group by, or only if the values are hashable. Polars 1.22 puts different
128-bit integers into one group."""


class Batch(NamedTuple):
    """Some rows of the records."""

    read: Callable[[Hashable], pd.Series]
    n: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n

    def column(self, name: Hashable) -> pd.Series:
        """Return a column."""
        return self.read(name)


class Records:
    """Some columns of a frame, opened once. Frames are read only by this class.

    Nothing is loaded before a column is requested, and then all columns at once. Reading may fail, and errors
    may quote values: call it within `discreetly`.

    Parameters
    ----------
    frame : dataframe
        pandas, polars (eager or lazy) or pyarrow.
    columns : sequence of hashable
        The columns that will be read. The others are never loaded.

    Attributes
    ----------
    columns : list of hashable
        Without repetition.
    table : pandas.DataFrame, narwhals.DataFrame or narwhals.LazyFrame
        A pyarrow table is converted to pandas, because pyarrow can group by only some of its types.
    """

    def __init__(self, frame: Any, columns: Sequence[Hashable]) -> None:
        self.columns = list(dict.fromkeys(columns))
        check_columns(frame, self.columns)
        table = _dataframe(frame, "frame")
        native = nw.to_native(table, pass_through=True)
        if nw.dependencies.is_pyarrow_table(native):
            table = pd.DataFrame({name: arrow_column(native.column(name)) for name in self.columns})
        self.table: Table = table

    def types(self, columns: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the pandas or narwhals data types of columns, by name."""
        if isinstance(self.table, pd.DataFrame):
            return {name: self.table[name].dtype for name in columns}
        schema = self.table.collect_schema()
        return {name: schema[str(name)] for name in columns}

    def column(self, name: Hashable) -> pd.Series:
        """Load a column, in the order of the records."""
        held = self._loaded
        return held[name] if isinstance(held, pd.DataFrame) else to_pandas(held[str(name)], keep_arrow=True)

    cluster: Any = None

    @property
    def n_rows(self) -> int | None:
        """Return the number of rows, if it is known."""
        return len(self.table) if isinstance(self.table, pd.DataFrame) else None

    def batches(self, rows: int = 2**20) -> Iterator[Batch]:
        """Yield batches."""
        held = {name: self.column(name) for name in self.columns}
        n = len(next(iter(held.values()))) if held else 0
        for start in range(0, n, rows):
            part = {name: column.iloc[start : start + rows] for name, column in held.items()}
            yield Batch(part.__getitem__, min(rows, n - start))

    @cached_property
    def _loaded(self) -> pd.DataFrame | nw.DataFrame[Any]:
        """The columns in memory."""
        if isinstance(self.table, pd.DataFrame):
            return self.table
        return self.table.select([str(name) for name in self.columns]).lazy().collect()

    def distinct(self, columns: Sequence[Hashable]) -> tuple[list[pd.Series], IntArray]:
        """List the distinct combinations of the columns' values, and the number of records of each.

        They are grouped by the library of the records, or by pandas if that library cannot group such values.
        """
        if isinstance(self.table, pd.DataFrame):
            return _distinct([self.table[name] for name in columns])
        names = [f"key{i}" for i in range(len(columns))]
        keys = self.table.select(
            [nw.col(str(old)).alias(new) for new, old in zip(names, columns, strict=True)]
        )
        if not _can_be_grouped(keys):
            rows = keys.lazy().collect()
            return _distinct([to_pandas(rows[name], keep_arrow=True) for name in names])
        cells = keys.group_by(names).agg(nw.len().alias("rows")).lazy().collect()
        return [to_pandas(cells[name]) for name in names], cells["rows"].to_numpy().astype(np.int64)


def check_frame(frame: Any) -> None:
    """Check that the records are in a supported dataframe."""
    _dataframe(frame, "frame")


def warn_if_released(data: Any) -> None:
    """Warn, before any budget is spent, if the attributes of the data describe a release.

    `attrs` are used for nothing else: anybody can set them, and most operations drop them.
    """
    provenance = getattr(data, "attrs", {}).get("dp")
    if isinstance(provenance, (dict, str)) and "mechanism" in provenance:
        warn(
            'According to attrs["dp"], the data are already a release: their numbers are noisy, and their '
            "rows are not records.",
            hint='pass the records, or delete attrs["dp"] if these are records; results computed from a '
            "released table need no further release.",
        )


def check_columns(frame: Any, columns: Sequence[Hashable], *, argument: str = "frame") -> None:
    """Check that a frame, the argument `argument`, is a dataframe and has each column exactly once."""
    hint = "check the spelling; the names of its columns are listed by frame.columns."
    table = _dataframe(frame, argument)
    if isinstance(table, pd.DataFrame):
        present: list[Hashable] = list(table.columns)
        if table.columns.nlevels > 1:
            hint = f"name each column by its whole tuple, such as {quote(present[:1])}."
    else:
        try:
            present = list(table.collect_schema())
        except Exception:
            raise ArgumentError(argument, "cannot be read.", hint="check its path or query.") from None
    missing = [name for name in columns if name not in present]
    if missing:
        raise ColumnsError(
            argument,
            "lacks the columns",
            columns=missing,
            hint=suggest_columns(missing, present, frame, cutoff=1 if argument in _RECORDS_ARGUMENTS else 0.6)
            or hint,
        )
    repeated = [name for name in columns if present.count(name) > 1]
    if repeated:
        raise ColumnsError(
            argument, "has several columns named", columns=repeated, hint="rename the duplicates."
        )


def _dataframe(frame: Any, argument: str) -> Table:
    """Open the records, the argument `argument`, if they are in a supported dataframe."""
    table = supported(frame, argument)
    if table is None:
        raise ArgumentError(
            argument,
            f"must be a dataframe, not {kind_of_object(frame)}.",
            hint="for arrays, use their own methods, such as array.dp.tree_counts(by, ...) and "
            "array.dp.release(plan)."
            if isinstance(frame, (xr.DataArray, xr.Dataset))
            else "pass a frame of pandas or polars, or a pyarrow.Table.",
        )
    return table


def _distinct(columns: list[pd.Series]) -> tuple[list[pd.Series], IntArray]:
    """Count the rows of each combination of values."""
    encoded = [canonical_codes(column) for column in columns]
    cell, row = numbered_combinations([codes for codes, _ in encoded], [len(keys) for _, keys in encoded])
    rows = np.bincount(cell, minlength=len(row))
    taken = row[rows > 0]
    return [column.iloc[taken].reset_index(drop=True) for column in columns], rows[rows > 0]


def _can_be_grouped(keys: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> bool:
    return not any(dtype.is_nested() or dtype in _UNGROUPABLE for dtype in keys.collect_schema().dtypes())
