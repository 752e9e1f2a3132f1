"""Batches of dataframes of Spark. Secret: nothing here may leave."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import pandas as pd

from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.dataframe_libraries import is_instance
from pandas_dptree.ingest.safe_errors import ReadingError
from pandas_dptree.ingest.scan.batches import ArrowBatch, Batch, arrow_batches
from pandas_dptree.ingest.scan.source import Source, needed

__all__ = ["SparkFrame", "in_utc", "numbered"]

PACKED_ROWS = 2**17
"""About how many rows a worker sends at a time."""

PACKED_BYTES = 2**25
"""About how many bytes a worker sends at a time; Spark needs a few times as many."""


class SparkFrame(Source):
    """A dataframe of Spark, classic or by Spark Connect."""

    @staticmethod
    def holds(frame: Any) -> bool:
        """Whether it is one."""
        modules = ("pyspark.sql.dataframe", "pyspark.sql.classic.dataframe", "pyspark.sql.connect.dataframe")
        return is_instance(frame, *(f"{module}.DataFrame" for module in modules))

    def names(self) -> list[Hashable]:
        """List the names of the columns."""
        return list(self.frame.columns)

    def types(self, columns: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the Arrow types of the columns."""
        kinds = {field.name: field.dataType for field in self.frame.schema.fields}
        return {name: _arrow_type(kinds[str(name)]) for name in columns}

    def cluster(self, columns: Sequence[Hashable]) -> Any:
        """Select the columns. Refuse what fails for some records only, such as types that cannot be read."""
        _check_settings(self.frame.sparkSession)
        chosen = numbered(self.frame, columns)
        kinds = [field.dataType for field in chosen.schema.fields]
        unread = [name for name, kind in zip(columns, kinds, strict=True) if _arrow_type(kind) is None]
        if unread:
            raise ColumnsError(
                self.argument,
                "has types that Spark does not pass on, in the columns",
                columns=unread,
                hint="convert them before the release, for example by cast(... AS string).",
            )
        return chosen.toDF(*(str(name) for name in columns))

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Fetch one partition after the other, as Arrow: other ways convert values, or move times."""
        ipc = importlib.import_module("pyarrow.ipc")
        records = numbered(self.frame, columns)
        packed = records.mapInArrow(_packing(PACKED_ROWS, PACKED_BYTES), "packed binary")

        def parts() -> Iterator[Any]:
            for row in packed.toLocalIterator():
                with ipc.open_stream(row[0]) as stream:
                    yield from stream

        for batch in arrow_batches(parts(), rows):
            named = batch.table.rename_columns([str(name) for name in columns])
            yield ArrowBatch(in_utc(named))


def numbered(frame: Any, columns: Sequence[Hashable]) -> Any:
    """Select columns by position, as c0, c1, ...: names may have dots, or differ in case alone."""
    needed("pyarrow", of="dataframes of Spark", extra="spark")
    names = list(frame.columns)
    every = frame.toDF(*(f"c{place}" for place in range(len(names))))
    chosen = every.select(*(f"c{names.index(name)}" for name in columns))
    return chosen.toDF(*(f"c{place}" for place in range(len(columns))))


def _check_settings(session: Any) -> None:
    """Refuse settings, the default before Spark 4, by which a date before 1582 stops the release."""
    modes = [f"spark.sql.parquet.{kind}RebaseModeInRead" for kind in ("datetime", "int96")]
    if failing := [name for name in modes if session.conf.get(name) == "EXCEPTION"]:
        raise ReadingError(
            "frame",
            "is of a Spark session that fails for old dates in Parquet files.",
            hint=" and ".join(f'spark.conf.set("{name}", "CORRECTED")' for name in failing)
            + " let it read them.",
        )


def in_utc(table: Any) -> Any:
    """Replace the zone of times by UTC: Spark names that of the session, which pandas may not know."""
    for place, field in enumerate(table.schema):
        if getattr(field.type, "tz", None) is not None:
            kind = importlib.import_module("pyarrow").timestamp(field.type.unit, "UTC")
            table = table.set_column(place, field.with_type(kind), table.column(place).cast(kind))
    return table


def _arrow_type(kind: Any) -> Any:
    """Return the Arrow type of a type of Spark; None if there is none."""
    if kind.typeName() == "timestamp":  # with a zone, which Spark may ask for
        return pd.ArrowDtype(importlib.import_module("pyarrow").timestamp("us", "UTC"))
    try:
        return pd.ArrowDtype(importlib.import_module("pyspark.sql.pandas.types").to_arrow_type(kind))
    except Exception:
        return None


def _packing(rows: int, size: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function that writes batches as bytes, for workers, which may lack this package."""

    def pack(batches: Iterator[Any]) -> Iterator[Any]:
        pyarrow, ipc = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.ipc")

        def packed(held: list[Any]) -> Any:
            sink = pyarrow.BufferOutputStream()
            with ipc.new_stream(sink, held[0].schema) as stream:
                for each in held:
                    stream.write_batch(each)
            content = pyarrow.array([sink.getvalue().to_pybytes()], pyarrow.binary())
            return pyarrow.RecordBatch.from_arrays([content], names=["packed"])

        held: list[Any] = []
        for batch in batches:
            held.append(batch)
            if sum(each.num_rows for each in held) >= rows or sum(each.nbytes for each in held) >= size:
                yield packed(held)
                held = []
        if held:
            yield packed(held)

    return pack
