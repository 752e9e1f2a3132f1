"""The records of a source, in files, by any engine. Secret: nothing here may leave."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, MissingExtraError
from pandas_dptree.hierarchy.levels.read_as import Times
from pandas_dptree.ingest.files.record_paths import record_files
from pandas_dptree.ingest.files.records import RecordStream, open_records, reported
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.scan.batches import ArrowBatch
from pandas_dptree.ingest.times import check_times, seconds
from pandas_dptree.programmes.programme import During, Source

__all__ = ["opened"]


@contextmanager
def opened(sources: Sequence[Source]) -> Iterator[Mapping[str, Any]]:
    """Open sources: for the name of each, what a plan releases. Nothing is read before a release."""
    with ExitStack() as held:
        records = {}
        for source in sources:
            held.enter_context(_named(source.name))
            records[source.name] = _open(source, held)
            held.enter_context(reported(records[source.name]))
        yield records


@contextmanager
def _named(source: str) -> Iterator[None]:
    """Let errors name the key of the programme that they are about."""
    try:
        yield
    except ArgumentError as error:
        if error.argument not in ("frame", "records", "table", "engine"):
            raise
        key = error.argument if error.argument in ("table", "engine") else "files"
        fact = error.fact.partition(" ")[2]
        named = ArgumentError(f"sources.{source}.{key}", fact, hint=error.hint)
        raise named from None  # another class of error may hold more, but its status is the same


def _open(source: Source, held: ExitStack) -> Any:
    """Open a source by the engine that it names, or by the kind of its files."""
    kind = record_files(source.files)[0].kind
    if source.engine is None or (source.engine, kind) == ("duckdb", "DuckDB"):
        records = open_records(source.files, source.columns, source.table)
        return records if source.during is None else _within(records, source.during)
    if kind != "Parquet":
        raise ArgumentError(
            "engine",
            f"cannot read {kind} files: an engine may guess their types from values.",
            hint="leave it out: then each line is read by itself. Or convert the files to Parquet.",
        )
    paths = [str(file.path) for file in record_files(source.files)]
    try:
        if source.during is not None:  # an engine may take times without a zone for those of another one
            _check_zone(_ENGINES[source.engine](paths, None, held), source.during)
        return _ENGINES[source.engine](paths, source.during, held)
    except ImportError:
        raise MissingExtraError(f"The engine {source.engine}", package=source.engine) from None


def _within(records: Any, during: During) -> Any:
    """Leave out records that are not within a period."""
    stream = isinstance(records, RecordStream)
    _check_zone(records, during)
    return _Within(records, during) if stream else records[_is_within(records[during.column], during)]


def _check_zone(records: Any, during: During) -> None:
    """Refuse times with a zone where none is stated, and times without one where one is."""
    types = Records(records, [during.column]).types([during.column])
    wanted = Times(zoned=during.timezone is not None)
    check_times({during.column: (wanted, types[during.column])}, "frame")


def _is_within(column: pd.Series, during: During) -> npt.NDArray[np.bool_]:
    """Say of each value whether it is within a period; each is read separately, in any type."""
    found = seconds(column, Times(zoned=during.timezone is not None))
    start, end = (_second(each) for each in (during.start, during.end))
    return (found >= start) & (found < end)


def _second(time: datetime) -> int:
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp())


class _Within:
    """A stream of records without those that are not within a period."""

    begins_anew = True

    def __init__(self, records: RecordStream, during: During) -> None:
        self._records, self._during = records, during

    @property
    def failure(self) -> BaseException | None:
        """Why reading ended too early."""
        return self._records.failure

    def __arrow_c_schema__(self) -> Any:
        return self._records.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = importlib.import_module("pyarrow").RecordBatchReader
        whole = reader.from_stream(self._records)
        return reader.from_batches(whole.schema, self._batches(whole)).__arrow_c_stream__(requested_schema)

    def _batches(self, whole: Any) -> Iterator[Any]:
        arrow = importlib.import_module("pyarrow")
        for batch in whole:
            column = ArrowBatch(arrow.Table.from_batches([batch])).column(self._during.column)
            yield batch.filter(arrow.array(_is_within(column, self._during)))


def _interval(during: During, *, is_date: bool) -> tuple[date, date] | tuple[datetime, datetime]:
    """Return the ends of a period as a column of dates or of times is compared with them."""
    return (during.start.date(), during.end.date()) if is_date else (during.start, during.end)


def _polars(paths: list[str], during: During | None, held: ExitStack) -> Any:
    polars = importlib.import_module("polars")
    frame = polars.scan_parquet(paths)
    if during is None:
        return frame
    column, kind = polars.col(during.column), frame.collect_schema()[during.column]
    start, end = _interval(during, is_date=kind == polars.Date)
    zone = getattr(kind, "time_zone", None)
    if zone is not None and during.timezone is not None:  # of one zone, in which each midnight exists
        column = column.dt.convert_time_zone("UTC")
        start, end = (each.astimezone(UTC) for each in (during.start, during.end))
    return frame.filter((column >= start) & (column < end))


def _pyarrow(paths: list[str], during: During | None, held: ExitStack) -> Any:
    datasets, arrow = map(importlib.import_module, ("pyarrow.dataset", "pyarrow"))
    frame = datasets.dataset(paths, format="parquet")
    if during is None:
        return frame
    kind = frame.schema.field(during.column).type
    interval = _interval(during, is_date=arrow.types.is_date(kind))
    start, end = (arrow.scalar(each, kind) for each in interval)
    column = datasets.field(during.column)
    return frame.filter((column >= start) & (column < end))


def _duckdb(paths: list[str], during: During | None, held: ExitStack) -> Any:
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    held.callback(connection.close)
    frame = connection.read_parquet(paths)
    if during is None:
        return frame
    kind = str(frame.types[frame.columns.index(during.column)])
    start, end = _interval(during, is_date=kind == "DATE")
    column = '"' + during.column.replace('"', '""') + '"'
    written = "TIMESTAMPTZ" if kind == "TIMESTAMP WITH TIME ZONE" else kind
    return frame.filter(f"{column} >= {written} '{start}' AND {column} < {written} '{end}'")


def _dask(paths: list[str], during: During | None, held: ExitStack) -> Any:
    frame = importlib.import_module("dask.dataframe").read_parquet(paths)
    if during is None:
        return frame
    column = frame[during.column]
    start, end = _interval(during, is_date="date" in str(column.dtype) and "time" not in str(column.dtype))
    return frame[(column >= start) & (column < end)]


def _spark(paths: list[str], during: During | None, held: ExitStack) -> Any:
    sql = importlib.import_module("pyspark.sql")
    frame = sql.SparkSession.builder.getOrCreate().read.parquet(*paths)
    if during is None:
        return frame
    kind, column = dict(frame.dtypes)[during.column], sql.functions.col(during.column)
    interval = _interval(during, is_date=kind == "date")
    # As text, since Spark would move a datetime without a zone into the zone of its session.
    start, end = (sql.functions.lit(each.isoformat()).cast(kind) for each in interval)
    return frame.filter((column >= start) & (column < end))


_ENGINES: Final[Mapping[str, Callable[[list[str], During | None, ExitStack], Any]]] = {
    "polars": _polars,
    "pyarrow": _pyarrow,
    "duckdb": _duckdb,
    "dask": _dask,
    "spark": _spark,
}
"""How each engine opens files of Parquet, and leaves out what is not within a period."""
