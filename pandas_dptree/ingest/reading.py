"""Read records batch by batch and count them as a verb does. Secret: nothing here may leave the package.

The records are read exactly once. Each batch is read in a thread, by the functions of the verb, and counted
at once if each record is a unit of its own. Otherwise its rows are dealt into buckets by a keyed hash of
their units, then bounded and counted bucket by bucket. On a cluster, workers do the same to partitions in
place of batches, and this process gets only what they counted.

What is counted does not depend on the sizes of batches and buckets, nor on their order: see `tallies` and
`contribution_bounding`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt

from pandas_dptree.ingest.contribution_bounding import kept_rows
from pandas_dptree.ingest.frames import Batch, Records
from pandas_dptree.ingest.safe_errors import discreetly
from pandas_dptree.ingest.spill import Buckets, Packet
from pandas_dptree.ingest.tallies import Rows, Tally
from pandas_dptree.ingest.units import Key, Units, units_of

__all__ = ["Bounding", "in_threads", "tallied"]

Counted = TypeVar("Counted")
Item = TypeVar("Item")
Result = TypeVar("Result")

_N_BUCKETS = 256

_FEW_ROWS = 2**17
"""So many rows need not be dealt into buckets."""

_MOST_THREADS = 8
"""More would hold as many batches in memory at once."""


class Bounding(TypedDict, total=False):
    """How the contributions of privacy units are bounded, and what that takes.

    Attributes
    ----------
    privacy_unit : hashable or None
        Name of the column that identifies the unit of a record; None if each record is a unit of its own.
    max_contributions : int
        Number of records kept per unit, if there is a `privacy_unit`.
    random_words : callable
        ``random_words(n)`` draws ``n`` uniform 64-bit words.
    temp_folder : path or None
        Where rows are stored if they are too many for memory.
    """

    privacy_unit: Hashable | None
    max_contributions: int
    random_words: Callable[[int], npt.NDArray[np.uint64]]
    temp_folder: str | os.PathLike[str] | None


def tallied(records: Records, tally: Tally[Counted], bounding: Bounding) -> Counted:
    """Count records, after bounding the contributions of their units.

    Records that the tally does not count, and those without a unit, are dropped before.

    Parameters
    ----------
    records : Records
        Has the columns of the tally, and that of the unit.
    tally : Tally
    bounding : Bounding

    Raises
    ------
    ArgumentError
        If the records cannot be read. The message contains nothing about them.
    """
    unit = bounding.get("privacy_unit")
    if unit is None:
        return discreetly(records.columns, partial(_count, records, tally))
    key = bounding["random_words"](2)
    bound = _Bound(tally, bounding["max_contributions"], key)
    return discreetly(
        records.columns, partial(_bound_and_count, records, unit, bound, bounding.get("temp_folder"))
    )


def _count(records: Records, tally: Tally[Counted]) -> Counted:
    """Count records, each of which is a unit of its own."""
    return tally.merged(in_threads(partial(_counted, tally), records.batches()))


def _bound_and_count(
    records: Records, unit: Hashable, bound: _Bound[Counted], folder: str | os.PathLike[str] | None
) -> Counted:
    """Count the records that units keep."""
    few = records.n_rows is not None and records.n_rows <= _FEW_ROWS
    deal = _Deal(bound.tally, unit, bound.key, 1 if few else _N_BUCKETS)
    with Buckets(deal.n_buckets, folder) as buckets:
        for packets in in_threads(lambda batch: list(deal(batch)), records.batches()):
            buckets.add(packets)
        return bound.tally.merged(in_threads(lambda bucket: bound(bucket.packets()), buckets))


def _counted(tally: Tally[Counted], batch: Batch) -> Counted:
    """Count the records of a batch."""
    rows, inside = tally.read(batch.column)
    return tally.count([rows if inside.all() else rows[inside]])


@dataclass(frozen=True, slots=True, repr=False)
class _Deal:
    """Deals the rows of a batch into buckets, by the keyed hash of their units."""

    tally: Tally[Any]
    unit: Hashable
    key: Key
    n_buckets: int

    def __call__(self, batch: Batch) -> Iterator[tuple[int, Packet]]:
        rows, inside = self.tally.read(batch.column)
        for at, units in units_of(batch.column(self.unit)):
            counted = inside[at]
            if not counted.all():
                at, units = at[counted], units[counted]
            bucket = units.hashes(self.key) >> np.uint64(32)
            bucket = ((bucket * np.uint64(self.n_buckets)) >> np.uint64(32)).astype(np.uint8)
            order = np.argsort(bucket, kind="stable")
            ends = np.cumsum(np.bincount(bucket, minlength=self.n_buckets))
            dealt_units, dealt_rows = units[order], rows[at[order]]
            start = 0
            for number, end in enumerate(ends.tolist()):
                if end > start:
                    yield number, Packet(dealt_units[start:end], dealt_rows[start:end])
                start = end


@dataclass(frozen=True, slots=True, repr=False)
class _Bound(Generic[Counted]):
    """Bounds the rows of the units in a bucket, and counts those that stay."""

    tally: Tally[Counted]
    max_contributions: int
    key: Key

    def __call__(self, packets: Iterable[Packet]) -> Counted:
        sorts: dict[tuple[int, int], list[Packet]] = {}
        for packet in packets:
            sorts.setdefault(packet.units.sort, []).append(packet)
        return self.tally.count([self._kept(alike) for alike in sorts.values()])

    def _kept(self, packets: list[Packet]) -> Rows:
        """Return the rows of packets that their units keep; the units are all of one sort."""
        units = Units(packets[0].units.kind, np.concatenate([packet.units.words for packet in packets]))
        rows = self.tally.together([packet.rows for packet in packets])
        return rows[kept_rows(units, [rows.order, *rows.amounts], self.max_contributions, self.key)]


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Map items, several at once, in their order; only a few are held at any time."""
    n_threads = min(
        _MOST_THREADS,
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    )
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in items:
                pending.append(pool.submit(copy_context().run, work, item))  # with the settings of errors
                if len(pending) > n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
