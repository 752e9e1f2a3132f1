"""Read records batch by batch and count them as a verb does. Secret: nothing here may leave the package.

The records are read exactly once, each batch in a thread, and counted at once if each record is a unit of its
own; otherwise rows are dealt into buckets by a keyed hash of their units, then bounded and counted bucket by
bucket. On a cluster, workers do the same to partitions. What is counted depends neither on the sizes of
batches and buckets nor on their order: see `tallies` and `contribution_bounding`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from itertools import islice
from typing import Any, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt

from pandas_dptree.ingest.frames import Records, warn_if_released
from pandas_dptree.ingest.safe_errors import discreetly
from pandas_dptree.ingest.spill import Buckets
from pandas_dptree.ingest.steps import (
    N_BUCKETS,
    BoundedTally,
    CountBucket,
    CountPartition,
    DealPartition,
    Merge,
    count_batch,
    unpacked,
)
from pandas_dptree.ingest.tallies import Tally
from pandas_dptree.ingest.workers.clusters import count_buckets, count_partitions, has_workers

__all__ = ["Bounding", "bound_and_count", "in_threads", "opened", "tallied"]

Counted = TypeVar("Counted")
Item = TypeVar("Item")
Result = TypeVar("Result")

_FEW_ROWS = 2**17
"""So many rows need not be dealt into buckets."""

_MOST_THREADS = 8
"""More would hold as many batches in memory at once."""


class Bounding(TypedDict, total=False):
    """How the contributions of privacy units are bounded, and what that takes.

    ``random_words(n)`` draws ``n`` uniform 64-bit words; rows that are too many for memory are stored in
    `temp_folder`. `caps` are those of `BoundedTally`.
    """

    privacy_unit: Hashable | None
    max_contributions: int
    caps: tuple[int | None, ...]
    random_words: Callable[[int], npt.NDArray[np.uint64]]
    temp_folder: str | os.PathLike[str] | None


def opened(frame: Any, tally: Tally[Any], bounding: Bounding) -> Records:
    """Open what is counted of a frame, and warn if it seems to be a release."""
    unit = bounding.get("privacy_unit")
    records = Records(frame, [*tally.columns, *([] if unit is None else [unit])])
    warn_if_released(frame)
    return records


def tallied(records: Records, tally: Tally[Counted], bounding: Bounding) -> Counted:
    """Count records, after bounding the contributions of their units.

    Records that the tally does not count, and those without a unit, are dropped before.
    """
    unit = bounding.get("privacy_unit")
    if unit is None:
        return discreetly(records.columns, partial(_count, records, tally))
    key = bounding["random_words"](2)
    bound = BoundedTally(tally, unit, bounding["max_contributions"], key, bounding.get("caps", ()))
    return discreetly(records.columns, partial(bound_and_count, records, bound, bounding.get("temp_folder")))


def _count(records: Records, tally: Tally[Counted]) -> Counted:
    """Count records, each of which is a unit of its own."""
    if has_workers(records.cluster):
        counted = count_partitions(
            records.cluster, records.columns, count=CountPartition(tally), merge=Merge(tally)
        )
        return tally.merged(map(unpacked, counted))
    return tally.merged(in_threads(partial(count_batch, tally), records.batches()))


def bound_and_count(
    records: Records, bound: BoundedTally[Counted], folder: str | os.PathLike[str] | None
) -> Counted:
    """Count the records that units keep."""
    if has_workers(records.cluster):
        counted = count_buckets(
            records.cluster,
            records.columns,
            deal=DealPartition(bound),
            work=CountBucket(bound),
            merge=Merge(bound.tally),
            n_buckets=N_BUCKETS,
        )
        return bound.tally.merged(map(unpacked, counted))
    few = records.n_rows is not None and records.n_rows <= _FEW_ROWS
    n_buckets = 1 if few else N_BUCKETS
    with Buckets(n_buckets, folder) as buckets:
        for packets in in_threads(partial(bound.deal, n_buckets=n_buckets), records.batches()):
            buckets.add(packets)
        return bound.tally.merged(in_threads(lambda bucket: bound.count(bucket.packets()), buckets))


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Map items, several at once, in their order; only a few are held at any time, and one needs no thread.

    If anything fails, generators of items are closed, so that the engine behind them stops.
    """
    n_threads = min(_MOST_THREADS, _n_cores())
    remaining = iter(items)
    held = deque(islice(remaining, 2))
    if len(held) < 2:
        yield from map(work, held)
        return
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            while held:
                # A copy of the context has the settings of errors.
                pending.append(pool.submit(copy_context().run, work, held.popleft()))
                if len(pending) > n_threads:
                    yield pending.popleft().result()
                if not held:
                    held.extend(islice(remaining, 1))
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
            if isinstance(remaining, Generator):
                remaining.close()


def _n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
