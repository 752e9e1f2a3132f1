"""Batches of Arrow: tables, readers and streams. Secret: nothing here may leave."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import pandas as pd

from pandas_dptree.errors import quote
from pandas_dptree.hierarchy.dataframe_libraries import exports_stream, is_instance
from pandas_dptree.ingest.safe_errors import ReadingError
from pandas_dptree.ingest.scan.base import Source, class_name, needed
from pandas_dptree.ingest.scan.batches import ArrowBatch, Batch, arrow_batches, slices

__all__ = ["ArrowReader", "ArrowSource", "ArrowStream", "ArrowTable"]

_READERS = ("pyarrow.lib.RecordBatchReader", "pyarrow.ipc.RecordBatchStreamReader")
"""Readers of batches whose types are stated. Those of CSV and JSON guess them from the first block."""

_started: dict[int, weakref.ref[Any]] = {}
"""Streams whose batches were requested, by `id`. Read again, they would seem to be empty."""


class ArrowSource(Source):
    """Records with a schema of Arrow."""

    @property
    def schema(self) -> Any:
        """The pyarrow.Schema of all columns."""
        return self.frame.schema

    def names(self) -> list[Hashable]:
        """List the names of the columns."""
        return list(self.schema.names)

    def types(self, columns: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the types of the columns."""
        return {name: pd.ArrowDtype(self.schema.field(str(name)).type) for name in columns}


class ArrowTable(ArrowSource):
    """A pyarrow.Table, or one pyarrow.RecordBatch."""

    in_memory = True

    @staticmethod
    def holds(frame: Any) -> bool:
        """Whether it is one of both."""
        return is_instance(frame, "pyarrow.lib.Table", "pyarrow.lib.RecordBatch")

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Slice the columns, without copies."""
        chosen = self.frame.select([str(name) for name in columns])
        if not is_instance(chosen, "pyarrow.lib.Table"):
            chosen = needed("pyarrow", of="record batches").Table.from_batches([chosen])
        for start, stop in slices(chosen.num_rows, rows):
            yield ArrowBatch(chosen.slice(start, stop - start))

    def n_rows(self) -> int:
        """Return the number of rows."""
        return int(self.frame.num_rows)


class ArrowReader(ArrowSource):
    """A pyarrow.RecordBatchReader, whose batches can be read once."""

    read_once = True

    def __init__(self, frame: Any, argument: str) -> None:
        super().__init__(frame, argument)
        if class_name(type(frame)) not in _READERS:
            raise ReadingError(
                argument,
                f"is a {quote(type(frame).__name__)}, in which one record may decide how others are read.",
                hint="convert the file to Parquet, with types that you state; or release from it by the "
                "command dptree, which reads each line separately.",
            )
        check_unread(frame, argument)

    @staticmethod
    def holds(frame: Any) -> bool:
        """Whether it is one, or of a subclass."""
        return is_instance(frame, "pyarrow.lib.RecordBatchReader")

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Read the batches, and keep the columns of each."""
        check_unread(self.frame, self.argument)
        start(self.frame)
        return arrow_batches(selected(self.frame, columns), rows)


class ArrowStream(ArrowSource):
    """An object of any other library that is exported as a stream of Arrow.

    Unless it has a length, as a table, or its class a true `begins_anew`, it may be a stream that is read
    once, and exported afterwards as one without batches.
    """

    def __init__(self, frame: Any, argument: str) -> None:
        super().__init__(frame, argument)
        kind = type(frame)
        again = getattr(kind, "begins_anew", hasattr(kind, "__len__"))
        self.read_once = not again or hasattr(kind, "__next__")  # type: ignore[misc]
        if self.read_once:
            check_unread(frame, argument)

    @staticmethod
    def holds(frame: Any) -> bool:
        """Whether it is one, and of no library whose frames are refused."""
        return exports_stream(frame)

    @cached_property
    def schema(self) -> Any:
        """The pyarrow.Schema of all columns; if the stream has to be opened for that, it is kept."""
        if hasattr(type(self.frame), "__arrow_c_schema__"):
            return needed("pyarrow", of="streams").schema(self.frame)
        return self._reader.schema

    @cached_property
    def _reader(self) -> Any:
        """The stream, opened once."""
        return needed("pyarrow", of="streams").RecordBatchReader.from_stream(self.frame)

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Read the stream, and keep the columns of each batch."""
        if self.read_once:
            check_unread(self.frame, self.argument)
            start(self.frame)
        return arrow_batches(selected(self._reader, columns), rows)


def start(stream: Any) -> None:
    """Remember that the batches of a stream were requested, as long as there is the stream."""
    key = id(stream)
    with suppress(TypeError):  # not all types can be referred to
        _started[key] = weakref.ref(stream, lambda _: _started.pop(key, None))


def check_unread(stream: Any, argument: str) -> None:
    """Check that the batches of a stream were not requested before."""
    if id(stream) in _started:
        raise ReadingError(
            argument,
            "is a stream of batches that was read before.",
            hint="make a new one for each call, or collect its batches once: pyarrow.table(frame).",
        )


def selected(reader: Any, columns: Sequence[Hashable]) -> Iterator[Any]:
    """Yield some columns of the batches of a pyarrow.RecordBatchReader."""
    places = [reader.schema.get_field_index(str(name)) for name in columns]
    for batch in reader:
        yield batch.select(places)
