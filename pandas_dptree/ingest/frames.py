"""Open frames of any dataframe library and read them batch by batch. Secret: nothing here may leave.

Messages contain the names and types of columns, never their values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

import pandas as pd
import xarray as xr

from pandas_dptree.errors import ArgumentError, ColumnsError, DPTreeError, kind_of_object, quote, warn
from pandas_dptree.hierarchy.columns import suggest_columns
from pandas_dptree.ingest.safe_errors import silence
from pandas_dptree.ingest.scan.base import Source
from pandas_dptree.ingest.scan.batches import Batch
from pandas_dptree.ingest.scan.sources import open_source

__all__ = ["BATCH_ROWS", "Records", "check_columns", "check_frame", "warn_if_released"]

Answer = TypeVar("Answer")

BATCH_ROWS = 2**20
"""How many records are read at a time, at most, unless stated otherwise."""

_RECORDS_ARGUMENTS = ("frame", "records")
"""Names of the argument that holds the records, in Python and in the shell."""


class Records:
    """Some columns of a frame, opened once. Frames are read only by this class, other columns never.

    Nothing is read before a batch is requested; since errors may quote values, request batches within
    `discreetly`. `cluster` is a frame of dask or Spark with these columns alone, for `ingest.workers`.
    """

    def __init__(self, frame: Any, columns: Sequence[Hashable]) -> None:
        self.columns = list(dict.fromkeys(columns))
        self._source = _checked(frame, self.columns, "frame")
        self.in_memory = self._source.in_memory
        self.read_once = self._source.read_once
        self.cluster: Any | None = _planned(lambda: self._source.cluster(self.columns), "frame")

    @property
    def n_rows(self) -> int | None:
        """The number of records, secret like them; None if it is not known before they are read."""
        return self._source.n_rows()

    def types(self, columns: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the pandas or narwhals data types of columns, by name. Nothing is read."""
        return _planned(lambda: self._source.types(columns), "frame")

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """Read each record once, in any order, in batches of at most `rows`. Close the iterator to stop."""
        return self._source.batches(self.columns, rows)


def check_frame(frame: Any) -> None:
    """Check that the records are in a supported dataframe."""
    _opened(frame, "frame")


def warn_if_released(data: Any) -> None:
    """Warn, before any budget is spent, if the attributes of the data describe a release.

    `attrs` are used for nothing else: anybody can set them, and most operations drop them.
    """
    attrs = getattr(data, "attrs", None)  # of Spark and dask, this may be a column
    provenance = attrs.get("dp") if isinstance(attrs, dict) else None
    if isinstance(provenance, (dict, str)) and "mechanism" in provenance:
        warn(
            'According to attrs["dp"], the data are already a release: their numbers are noisy, and their '
            "rows are not records.",
            hint='pass the records, or delete attrs["dp"] if these are records; results computed from a '
            "released table need no further release.",
        )


def check_columns(
    frame: Any, columns: Sequence[Hashable], *, argument: str = "frame", public: bool = False
) -> None:
    """Check that a frame, the argument `argument`, is a dataframe and has each column exactly once.

    `public` says that the names of its columns are a schema, not perhaps the first record of a file.
    """
    _checked(frame, columns, argument, public=public)


def _checked(frame: Any, columns: Sequence[Hashable], argument: str, *, public: bool = False) -> Source:
    """Open a frame, and check its columns as `check_columns` does."""
    source = _opened(frame, argument)
    present = _planned(source.names, argument)
    hint = "compare the spelling with the names of its columns."
    if isinstance(frame, pd.DataFrame) and frame.columns.nlevels > 1:
        hint = f"name each column by its whole tuple, such as {quote(present[:1])}."
    missing = [name for name in columns if name not in present]
    if missing:
        raise ColumnsError(
            argument,
            "lacks the columns",
            columns=missing,
            hint=suggest_columns(
                missing, present, frame, cutoff=1 if argument in _RECORDS_ARGUMENTS and not public else 0.6
            )
            or hint,
        )
    repeated = [name for name in columns if present.count(name) > 1]
    if repeated:
        raise ColumnsError(
            argument, "has several columns named", columns=repeated, hint="rename the duplicates."
        )
    return source


def _opened(frame: Any, argument: str) -> Source:
    """Open the records, the argument `argument`, if they are in a supported dataframe."""
    source = open_source(frame, argument)
    if source is None:
        raise ArgumentError(
            argument,
            f"must be a dataframe, not {kind_of_object(frame)}.",
            hint="for arrays, use their own methods, such as array.dp.tree_counts(by, ...) and "
            "array.dp.release(plan)."
            if isinstance(frame, (xr.DataArray, xr.Dataset))
            else "pass a frame of pandas, polars, duckdb, dask or Spark, or a pyarrow.Table.",
        )
    return source


def _planned(ask: Callable[[], Answer], argument: str) -> Answer:
    """Ask the engine of a frame about its schema, or for a query that is not run yet."""
    try:
        with silence():
            return ask()
    except (DPTreeError, KeyboardInterrupt, SystemExit):
        raise
    except FileNotFoundError:
        why = ": a file does not exist"  # its path may hold keys, as names of folders
    except BaseException:  # a panic of polars is not an Exception
        why = ""  # raised here, the next error would hold this one, which may quote values
    raise ArgumentError(argument, f"cannot be read{why}.", hint="check its path or query.")
