"""Rows by bucket: in memory while they are few, then in a temporary file. Secret: nothing here may leave.

The file has no name: it is removed when it is opened, so it vanishes with the process, even one that is
killed. (Windows removes it when it is closed, which the system does for a killed process too.)
"""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO, NamedTuple, Self

from pandas_dptree.ingest.safe_errors import ReadingError
from pandas_dptree.ingest.tallies import Rows
from pandas_dptree.ingest.units import Units

__all__ = ["Buckets", "Packet"]

_IN_MEMORY = 2**27
"""Bytes of rows that are held in memory before they are written to the file."""

_OF_ONE = 2**9
"""About the bytes that a packet takes besides its arrays: small batches have many packets of a row."""

_RESERVE = 2**26
"""Bytes of the disk that are left free, for others."""


class Packet(NamedTuple):
    """Some rows of one bucket: their units, all of one sort, and where they are counted."""

    units: Units
    rows: Rows

    @property
    def n_bytes(self) -> int:
        """About the memory that the packet takes."""
        arrays = (self.units.words, self.rows.place, *self.rows.amounts)
        return _OF_ONE + sum(array.nbytes for array in arrays)


class Buckets:
    """Packets of rows, added in any order and read bucket by bucket.

    It fails at once without a folder for temporary files: how many rows there are must not decide that.
    """

    def __init__(self, n_buckets: int, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = _usual_folder() if folder is None else os.fspath(folder)
        self._held: list[list[Packet]] = [[] for _ in range(n_buckets)]
        self._n_bytes = 0
        self._extents: list[list[tuple[int, int]]] = [[] for _ in range(n_buckets)]
        self._file: IO[bytes] | None = None
        self._end = 0
        self._reading = threading.Lock()

    def __enter__(self) -> Self:
        """Open nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close, and thereby remove, the file."""
        if self._file is not None:
            self._file.close()

    def add(self, packets: Iterable[tuple[int, Packet]]) -> None:
        """Add packets, each with the number of its bucket."""
        for bucket, packet in packets:
            self._held[bucket].append(packet)
            self._n_bytes += packet.n_bytes
        if self._n_bytes > _IN_MEMORY:
            self._write()

    def __iter__(self) -> Iterator[Bucket]:
        """Yield the buckets that are not empty, each to be read once."""
        for number, (extents, held) in enumerate(zip(self._extents, self._held, strict=True)):
            if extents or held:
                yield Bucket(self, number)

    def _write(self) -> None:
        """Move all packets from memory to the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, prefix="dptree-")
        for extents, held in zip(self._extents, self._held, strict=True):
            if held:
                data = pickle.dumps([(units, rows.compact()) for units, rows in held], protocol=5)
                held.clear()
                if shutil.disk_usage(self._folder).free < len(data) + _RESERVE:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                self._file.write(data)
                extents.append((self._end, len(data)))
                self._end += len(data)
        self._n_bytes = 0

    def take(self, number: int) -> list[Packet]:
        """Return the packets of a bucket, and remove them from memory."""
        held, self._held[number] = self._held[number], []
        packets = []
        for offset, size in self._extents[number]:
            assert self._file is not None
            with self._reading:
                self._file.seek(offset)
                data = self._file.read(size)
            packets += [Packet(*each) for each in pickle.loads(data)]
        return packets + held


def _usual_folder() -> str:
    """Return the folder of temporary files."""
    with suppress(FileNotFoundError):
        return tempfile.gettempdir()
    raise ReadingError(
        "temp_folder",
        "is needed, since the system has no folder for temporary files.",
        hint="name one that can be written to.",
    )


class Bucket(NamedTuple):
    """One bucket, whose packets are not read yet."""

    buckets: Buckets
    number: int

    def packets(self) -> list[Packet]:
        """Read the packets; only once."""
        return self.buckets.take(self.number)
