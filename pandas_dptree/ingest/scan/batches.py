"""Some of the records at a time. Secret: nothing here may leave."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw
import pandas as pd

from pandas_dptree.hierarchy.columns import arrow_column, to_pandas

__all__ = ["ArrowBatch", "Batch", "PandasBatch", "PolarsBatch", "arrow_batches", "slices"]

MOST_BYTES = 2**26
"""Small batches are joined up to this size."""

MOST_CHUNKS = 16
"""Batches of more chunks are copied, since each chunk takes time."""


class Batch(Protocol):
    """Some of the records, one after the other.

    A column may be of different types in different batches: no value may be converted because of those in
    other rows. `hierarchy.columns.exact` reads all types.
    """

    def __len__(self) -> int:
        """Return the number of records."""

    def column(self, name: Hashable) -> pd.Series:
        """Return a column, in the order of the records, with any index."""


@dataclass(frozen=True, slots=True, repr=False)
class PandasBatch:
    """Some rows of a frame of pandas: those from `start` to `stop`, by default all."""

    frame: pd.DataFrame
    start: int = 0
    stop: int | None = None

    def __len__(self) -> int:
        """Return the number of records."""
        return (len(self.frame) if self.stop is None else self.stop) - self.start

    def column(self, name: Hashable) -> pd.Series:
        """Slice a column, without a copy."""
        return self.frame[name].iloc[self.start : self.stop]


@dataclass(frozen=True, slots=True, repr=False)
class PolarsBatch:
    """Some rows of a frame of polars, held by narwhals."""

    frame: nw.DataFrame[Any]

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.frame)

    def column(self, name: Hashable) -> pd.Series:
        """Convert a column to pandas, each value separately."""
        return to_pandas(self.frame[str(name)], keep_arrow=True)


@dataclass(frozen=True, slots=True, repr=False)
class ArrowBatch:
    """Some rows of a pyarrow.Table."""

    table: Any

    def __len__(self) -> int:
        """Return the number of records."""
        return int(self.table.num_rows)

    def column(self, name: Hashable) -> pd.Series:
        """Wrap a column in a series of pandas, unchanged. Each chunk may have a dictionary of its own."""
        return arrow_column(self.table.column(str(name)))


def slices(n_rows: int, rows: int) -> Iterator[tuple[int, int]]:
    """Divide rows evenly into slices of at most `rows`, and yield where each starts and stops."""
    n_slices = -(-n_rows // rows)
    for place in range(n_slices):
        yield n_rows * place // n_slices, n_rows * (place + 1) // n_slices


def arrow_batches(parts: Iterable[Any], rows: int) -> Iterator[ArrowBatch]:
    """Cut and join batches of a stream of Arrow, such that each has at most `rows` rows, and few are small.

    The next part is requested when the rows of the last are used up.
    """
    held: list[Any] = []
    held_rows = held_bytes = 0
    for part in parts:
        for start, stop in slices(part.num_rows, rows):
            piece = part.slice(start, stop - start)
            if held_rows + piece.num_rows > rows:
                yield _joined(held)
                held, held_rows, held_bytes = [], 0, 0
            held.append(piece)
            held_rows += piece.num_rows
            held_bytes += _size(piece)
            if held_rows >= rows / 4 or held_bytes >= MOST_BYTES:
                yield _joined(held)
                held, held_rows, held_bytes = [], 0, 0
    if held:
        yield _joined(held)


def _joined(parts: list[Any]) -> ArrowBatch:
    """Join record batches, with a copy only if they are many."""
    table = importlib.import_module("pyarrow").Table.from_batches(parts)
    if len(parts) > MOST_CHUNKS:
        try:
            table = table.combine_chunks()
        except Exception:  # Arrow cannot join every type
            return ArrowBatch(table)
    return ArrowBatch(table)


def _size(part: Any) -> int:
    """Return how much memory a record batch takes."""
    try:
        return int(part.nbytes)
    except Exception:  # older versions of Arrow know it for some types only
        return int(part.get_total_buffer_size())
