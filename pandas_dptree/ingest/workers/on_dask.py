"""Functions on the partitions of a dask dataframe, run by whatever scheduler dask is set to."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.ingest.workers.replies import (
    ABSENT,
    OTHER_VERSION,
    Functions,
    FunctionsReference,
    PandasBatch,
    merged,
    opened,
    discreet,
    reply,
    sealed,
)

__all__ = ["client_of", "count_partition", "deal_partition", "merge_replies", "replies", "work_group"]

FAN_IN = 8
"""How many tallies are merged at a time, and how many are left for the caller."""

MOST_PIECES = 2**14
"""Tasks that move the packets of some partitions to some buckets. dask takes about a millisecond for each."""

MOST_BUNDLES = 2**7
"""Sets of partitions whose packets are joined before they are moved."""

LARGE = 2**23
"""Bytes that are sent to each worker rather than kept by the scheduler; dask warns of larger ones."""

MOST_ROWS = 2**20
"""A larger partition is read in several batches."""

Dealt = dict[int, list[bytes]] | bytes
"""The packets of each bucket, or a reply that says why there are none."""


def replies(frame: Any, columns: Sequence[Hashable], functions: Functions) -> Iterator[bytes]:
    """Run functions on all partitions, and yield a few replies."""
    dask = importlib.import_module("dask")
    client, scattered = client_of(), []
    content = sealed(functions, importlib.import_module("cloudpickle").dumps)
    if client is None or len(content()[1]) < LARGE:
        shared = dask.delayed(content)
    else:  # on every worker: what only one of them holds is lost with it
        shared = client.scatter(content, broadcast=True, hash=False)
        scattered = [shared]
    run = _Tasks(dask, shared)
    parts = frame[list(columns)].to_delayed()
    tallies = run.counted(parts) if functions.work is None else run.in_buckets(parts, functions.n_buckets)
    results = run.merged(tallies)
    if client is None:
        yield from dask.compute(*results, optimize_graph=True)
        return
    futures = client.compute(results)
    try:
        for future in importlib.import_module("distributed").as_completed(list(futures)):
            yield future.result()
            future.release()
    finally:
        client.cancel([*futures, *scattered])


def client_of() -> Any:
    """Return the client of the cluster that dask would compute on; None for schedulers in this process."""
    scheduler = importlib.import_module("dask.base").get_scheduler()
    owner = getattr(scheduler, "__self__", None)
    return owner if hasattr(owner, "scatter") else None


class _Tasks:
    """Makes the tasks of one run. Their keys say what they do, and nothing else."""

    def __init__(self, dask: Any, shared: Any) -> None:
        self.delayed, self.shared = dask.delayed, shared
        self.run = importlib.import_module("uuid").uuid4().hex

    def task(self, function: str, place: str, *arguments: Any) -> Any:
        task = self.delayed(_remote(function), pure=False, traverse=True)
        key = f"dptree-{function.replace('_', '-')}-{self.run}-{place}"
        return task(self.shared, *arguments, dask_key_name=key)

    def counted(self, parts: Sequence[Any]) -> list[Any]:
        return [self.task("count_partition", f"{place}", part) for place, part in enumerate(parts)]

    def in_buckets(self, parts: Sequence[Any], n_buckets: int) -> list[Any]:
        """Move packets from partitions to groups of buckets, with a bounded number of tasks."""
        dealt = [self.task("deal_partition", f"{place}", part) for place, part in enumerate(parts)]
        size = -(-len(dealt) // MOST_BUNDLES)
        if size > 1:
            sets = [dealt[start : start + size] for start in range(0, len(dealt), size)]
            dealt = [self.task("bundled", f"{place}", each) for place, each in enumerate(sets)]
        n_groups = min(n_buckets, max(MOST_PIECES // max(len(dealt), 1), 1))
        return [
            self.task("work_group", f"{group}", [self.piece(each, place, group, n_groups) for place, each in enumerate(dealt)])
            for group in range(n_groups)
        ]

    def piece(self, dealt: Any, place: int, group: int, n_groups: int) -> Any:
        key = f"dptree-piece-{self.run}-{place}-{group}"
        return self.delayed(_piece(), pure=False)(dealt, group, n_groups, dask_key_name=key)

    def merged(self, tallies: list[Any]) -> list[Any]:
        """Merge tallies on the workers, until a few are left."""
        height = 0
        while len(tallies) > FAN_IN:
            sets = [tallies[start : start + FAN_IN] for start in range(0, len(tallies), FAN_IN)]
            tallies = [self.task("merge_replies", f"{height}-{place}", each) for place, each in enumerate(sets)]
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
    """Count some buckets, each with the packets of all partitions, on a worker. None if there are no packets."""
    packets = bundled(shared, pieces)
    if isinstance(packets, bytes):
        return packets
    if not packets:
        return None
    functions = opened(shared)
    work = functions.work
    return merged(shared, (reply(lambda: work(iter(packets.pop(bucket)))) for bucket in sorted(packets)))


def merge_replies(shared: FunctionsReference, replies: Sequence[bytes | None]) -> bytes | None:
    """Merge tallies, on a worker."""
    given = [each for each in replies if each is not None]
    return merged(shared, given) if given else None


def _batches(partition: pd.DataFrame) -> Iterator[PandasBatch]:
    return (
        PandasBatch(partition.iloc[start : start + MOST_ROWS]) for start in range(0, len(partition), MOST_ROWS)
    )


def _remote(function: str) -> Callable[..., Any]:
    """Return a function that calls one of this module on a worker.

    It is nested, so that it is pickled by value: neither the scheduler nor a worker needs this package to read
    it, and a worker without the package can reply just that.
    """
    version, absent, other = __version__, ABSENT, OTHER_VERSION

    def run(*arguments: Any) -> Any:
        try:
            import pandas_dptree

            if pandas_dptree.__version__ != version:
                return other + pandas_dptree.__version__.encode()
            from pandas_dptree.ingest.workers import on_dask
        except Exception:
            return absent
        return getattr(on_dask, function)(*arguments)

    return run


def _piece() -> Callable[[Dealt, int, int], Dealt]:
    """Return a function that selects the packets of a group of buckets. It too is pickled by value."""

    def piece(dealt: Dealt, group: int, n_groups: int) -> Dealt:
        if isinstance(dealt, bytes):
            return dealt
        return {bucket: packets for bucket, packets in dealt.items() if bucket % n_groups == group}

    return piece
