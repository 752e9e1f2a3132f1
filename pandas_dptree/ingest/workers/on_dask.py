"""Functions on the partitions of a dask dataframe, run by whatever scheduler dask is set to."""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import pandas as pd

from pandas_dptree.ingest.scan.batches import PandasBatch
from pandas_dptree.ingest.scan.dask_frames import client_of
from pandas_dptree.ingest.workers.replies import (
    Functions,
    FunctionsReference,
    discreet,
    found,
    merged,
    opened,
    reply,
    sealed,
)

__all__ = ["replies"]

FAN_IN = 8
"""How many tallies are merged at a time, and how many are left for the caller, at most."""

MOST_PIECES = 2**14
"""Tasks that move packets of some partitions to some buckets. dask takes about a millisecond for each."""

FEWEST_GROUPS = 16
"""Groups of buckets that are made of few partitions."""

PARTITIONS_PER_GROUP = 8
"""A group of buckets has as many rows as so many partitions; what is kept of a row is small."""

MOST_BUNDLES = 2**7
"""Sets of partitions whose packets are joined before they are moved."""

LARGE = 2**23
"""Larger functions are sent to each worker rather than kept by the scheduler, which dask warns of."""

MOST_ROWS = 2**20
"""A larger partition is read in several batches."""

Dealt = dict[int, list[bytes]] | bytes
"""The packets of each bucket, or a reply that says why there are none."""


def replies(frame: Any, columns: Sequence[Hashable], functions: Functions) -> Iterator[bytes]:
    """Run functions on all partitions of what `exact_frame` made, and yield a few replies."""
    dask = importlib.import_module("dask")
    client, scattered = client_of(), []
    content = sealed(functions, importlib.import_module("cloudpickle").dumps)
    if client is None or len(content()[1]) < LARGE:
        shared = dask.delayed(content)
    else:  # to every worker, since what only one of them holds is lost with it
        shared = client.scatter(content, broadcast=True, hash=False)
        scattered = [shared]
    tasks = _Tasks(dask.delayed, shared)
    parts = frame[list(columns)].to_delayed()
    if functions.work is None:
        tallies = tasks.counted(parts)
    else:
        tallies = tasks.in_buckets(parts, functions.n_buckets)
    results = tasks.merged(tallies)
    if client is None:
        yield from (each for each in dask.compute(*results) if each is not None)
        return
    futures = client.compute(results)
    try:
        for future in importlib.import_module("distributed").as_completed(list(futures)):
            if (result := future.result()) is not None:
                yield result
            future.release()
    finally:
        client.cancel([*futures, *scattered])


class _Tasks:
    """Makes the tasks of one run. Their keys, which dask logs and displays, say only what they do."""

    def __init__(self, delayed: Any, shared: Any) -> None:
        self.delayed, self.shared, self.run = delayed, shared, secrets.token_hex(8)

    def task(self, function: Callable[..., Any], place: str, *arguments: Any) -> Any:
        """Call a function of this module on a worker."""
        key = f"dptree-{function.__name__}-{self.run}-{place}"
        remote = self.delayed(_remote(function.__name__), pure=False)
        return remote(self.shared, *arguments, dask_key_name=key)

    def counted(self, parts: Sequence[Any]) -> list[Any]:
        """Count each partition."""
        return [self.task(count_partition, f"{place}", part) for place, part in enumerate(parts)]

    def in_buckets(self, parts: Sequence[Any], n_buckets: int) -> list[Any]:
        """Move packets from partitions to groups of buckets, with a bounded number of tasks."""
        dealt = [self.task(deal_partition, f"{place}", part) for place, part in enumerate(parts)]
        if (size := -(-len(dealt) // MOST_BUNDLES)) > 1:
            sets = [dealt[start : start + size] for start in range(0, len(dealt), size)]
            dealt = [self.task(bundled, f"{place}", each) for place, each in enumerate(sets)]
        wanted = max(len(parts) // PARTITIONS_PER_GROUP, FEWEST_GROUPS)
        n_groups = min(n_buckets, wanted, max(MOST_PIECES // len(dealt), 1))
        return [
            self.task(work_group, f"{group}", self.pieces(dealt, group, n_groups))
            for group in range(n_groups)
        ]

    def pieces(self, dealt: Sequence[Any], group: int, n_groups: int) -> list[Any]:
        """Select the packets of a group of buckets, from each source."""
        select = self.delayed(_select(), pure=False)
        return [
            select(each, group, n_groups, dask_key_name=f"dptree-select-{self.run}-{place}-{group}")
            for place, each in enumerate(dealt)
        ]

    def merged(self, tallies: list[Any]) -> list[Any]:
        """Merge tallies on the workers, until a few are left."""
        height = 0
        while len(tallies) > FAN_IN:
            sets = [tallies[start : start + FAN_IN] for start in range(0, len(tallies), FAN_IN)]
            tallies = [self.task(merge_replies, f"{height}-{place}", each) for place, each in enumerate(sets)]
            height += 1
        return tallies


def count_partition(shared: FunctionsReference, partition: pd.DataFrame) -> bytes:
    """Count one partition, on a worker."""
    return reply(lambda: opened(shared).first(_batches(partition)))


def deal_partition(shared: FunctionsReference, partition: pd.DataFrame) -> Dealt:
    """Make the packets of one partition, on a worker."""

    def dealt() -> dict[int, list[bytes]]:
        functions = opened(shared)
        packets: dict[int, list[bytes]] = {}
        for bucket, packet in functions.first(_batches(partition)):
            packets.setdefault(functions.bucket(bucket), []).append(packet)
        return packets

    return discreet(dealt)


def bundled(shared: FunctionsReference, dealt: Sequence[Dealt]) -> Dealt:
    """Join the packets of several partitions, on a worker."""
    packets: dict[int, list[bytes]] = {}
    for each in dealt:
        if isinstance(each, bytes):
            return each
        for bucket, some in each.items():
            packets.setdefault(bucket, []).extend(some)
    return packets


def work_group(shared: FunctionsReference, pieces: Sequence[Dealt]) -> bytes | None:
    """Count some buckets, with the packets of all partitions, on a worker. None if there are no packets."""
    packets = bundled(shared, pieces)
    if isinstance(packets, bytes):
        return packets
    if not packets:
        return None

    def tallies() -> Iterator[bytes]:
        work: Any = opened(shared).work
        for bucket in sorted(packets):
            yield reply(partial(work, iter(packets.pop(bucket))))

    return merged(shared, tallies())


def merge_replies(shared: FunctionsReference, replies: Sequence[bytes | None]) -> bytes | None:
    """Merge tallies, on a worker."""
    given = [each for each in replies if each is not None]
    return merged(shared, given) if given else None


def _batches(partition: pd.DataFrame) -> Iterator[PandasBatch]:
    for start in range(0, len(partition), MOST_ROWS):
        yield PandasBatch(partition.iloc[start : start + MOST_ROWS])


def _remote(function: str) -> Callable[..., Any]:
    """Return a function that calls one of this module on a worker. It is pickled by value, see `found`."""
    look_up = found(__name__, function)

    def run(*arguments: Any) -> Any:
        there = look_up()
        return there if isinstance(there, bytes) else there(*arguments)

    return run


def _select() -> Callable[[Dealt, int, int], Dealt]:
    """Return a function that selects the packets of a group of buckets. It is pickled by value."""

    def select(dealt: Dealt, group: int, n_groups: int) -> Dealt:
        if isinstance(dealt, bytes):
            return dealt
        return {bucket: packets for bucket, packets in dealt.items() if bucket % n_groups == group}

    return select
