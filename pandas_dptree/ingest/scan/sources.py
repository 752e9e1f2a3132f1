"""A frame of any supported engine as a source of batches. Secret: nothing here may leave.

To add an engine, add a module with a subclass of `Source`, and a line to `_SOURCES`.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw

from pandas_dptree.hierarchy.dataframe_libraries import refuse
from pandas_dptree.ingest.scan.arrow_datasets import ArrowDataset
from pandas_dptree.ingest.scan.arrow_streams import ArrowReader, ArrowStream, ArrowTable
from pandas_dptree.ingest.scan.base import Source
from pandas_dptree.ingest.scan.dask_frames import DaskFrame
from pandas_dptree.ingest.scan.duckdb_relations import DuckdbRelation
from pandas_dptree.ingest.scan.frames_in_memory import PandasFrame, PolarsFrame
from pandas_dptree.ingest.scan.spark_frames import SparkFrame

__all__ = ["open_source"]

_SOURCES: tuple[type[Source], ...] = (
    PandasFrame,
    PolarsFrame,
    ArrowTable,
    ArrowDataset,
    ArrowReader,
    DuckdbRelation,
    DaskFrame,
    SparkFrame,
    ArrowStream,
)


def open_source(frame: Any, argument: str) -> Source | None:
    """Open records of a supported engine, or return None if they are in no dataframe; nothing is read yet.

    Supported are frames of pandas; frames and lazy frames of polars; tables, record batches, readers and
    datasets of pyarrow; relations of duckdb; dataframes of dask and Spark; frames of narwhals that hold one
    of these; and objects of other libraries that are exported as a stream of Arrow (``__arrow_c_stream__``).

    **Privacy.** Engines filter, join and compute whatever the caller asked them to before the records are
    here. From there on, they only hand over the values of each row. They group nothing, and decide for no two
    values whether they are equal, since in that decision one record can affect others, see
    `hierarchy.dataframe_libraries.supported`.
    """
    native = nw.to_native(frame, pass_through=True)
    for source in _SOURCES:
        if source.holds(native):
            return source(native, argument)
    refuse(native, argument)
    return None
