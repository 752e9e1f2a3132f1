"""Batches of frames of pandas and polars. Secret: nothing here may leave."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import narwhals as nw
import pandas as pd

from pandas_dptree.ingest.scan.base import Source
from pandas_dptree.ingest.scan.batches import Batch, PandasBatch, PolarsBatch, slices

__all__ = ["PandasFrame", "PolarsFrame"]

STREAM_ROWS = 2**18
"""How many rows of a lazy frame polars hands over at a time."""


class PandasFrame(Source):
    """A frame of pandas."""

    in_memory = True

    @staticmethod
    def holds(frame: Any) -> bool:
        """Whether it is one, or of a subclass."""
        return isinstance(frame, pd.DataFrame)

    def names(self) -> list[Hashable]:
        """List the names of the columns."""
        return list(self.frame.columns)

    def types(self, columns: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the types of the columns."""
        return {name: self.frame[name].dtype for name in columns}

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Slice the columns, without copies."""
        return (PandasBatch(self.frame, start, stop) for start, stop in slices(len(self.frame), rows))

    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self.frame)


class PolarsFrame(Source):
    """A frame or a lazy frame of polars."""

    def __init__(self, frame: Any, argument: str) -> None:
        super().__init__(frame, argument)
        self.opened: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(frame)
        self.in_memory = isinstance(self.opened, nw.DataFrame)  # type: ignore[misc]

    @staticmethod
    def holds(frame: Any) -> bool:
        """Whether it is one of both."""
        return nw.dependencies.is_polars_dataframe(frame) or nw.dependencies.is_polars_lazyframe(frame)

    def names(self) -> list[Hashable]:
        """List the names of the columns."""
        return list(self.opened.collect_schema())

    def types(self, columns: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the types of the columns, of narwhals."""
        schema = self.opened.collect_schema()
        return {name: schema[str(name)] for name in columns}

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Run the query by polars' engine for streams, if this version has it, and if it knows the types."""
        names = [str(name) for name in columns]
        selected = self.opened.select(names)
        if isinstance(selected, nw.DataFrame):
            parts: Iterator[Any] = iter([selected])
        elif hasattr(native := selected.to_native(), "collect_batches") and self._can_be_streamed(names):
            parts = map(nw.from_native, native.collect_batches(chunk_size=min(rows, STREAM_ROWS), lazy=True))
        else:
            polars = importlib.import_module("polars")
            # Older versions join files whose categories differ only with a cache of all texts.
            with nullcontext() if hasattr(polars, "Categories") else polars.StringCache():
                parts = iter([selected.collect()])
        for part in parts:
            for start, stop in slices(len(part), rows):
                yield PolarsBatch(part[start:stop])

    def n_rows(self) -> int | None:
        """Return the number of rows; a lazy frame does not know it."""
        return len(self.opened) if isinstance(self.opened, nw.DataFrame) else None

    def _can_be_streamed(self, names: Sequence[str]) -> bool:
        """Whether no column may hold Python objects, which the engine for streams does not support."""
        schema = self.opened.collect_schema()
        return not any(schema[name].is_nested() or schema[name] in (nw.Object, nw.Unknown) for name in names)
