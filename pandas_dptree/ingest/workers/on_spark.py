"""Functions on the partitions of a Spark dataframe. Spark moves their packets and tallies in rows of bytes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.workers.replies import (
    ABSENT,
    OTHER_VERSION,
    ArrowBatch,
    Functions,
    FunctionsReference,
    discreet,
    merged,
    opened,
    reply,
    sealed,
)

__all__ = ["count_rows", "deal_rows", "merge_rows", "replies", "work_rows"]

SCHEMA = "bucket int, source int, place int, piece binary"
"""A packet is cut into pieces. `source` is the task that made it, and `place` numbers the pieces of a task."""

LEFT = 8
"""How many tallies are left for the caller, at most."""

BATCH_ROWS = 2**17
"""Spark's batches of rows, by default of 10,000, are joined to batches of about this number."""

BATCH_BYTES = 2**26
"""The largest size of an Arrow batch of pieces."""

REFUSED = -1
"""The bucket of replies that say why a partition has no packets."""

MORE, LAST = b"\0", b"\1"
"""The first byte of each piece of a packet."""


class Piece(NamedTuple):
    """A row of `SCHEMA`."""

    bucket: int
    source: int
    place: int
    content: bytes


def replies(frame: Any, columns: Sequence[Hashable], functions: Functions) -> Iterator[bytes]:
    """Run functions on all partitions, and yield a few replies."""
    session = frame.sparkSession
    records = _selected(frame, columns)
    size = _piece_size(session)
    with _shared(session, functions) as shared:

        def on_workers(frame: Any, function: str) -> Any:
            return frame.mapInArrow(_remote(function, shared, tuple(columns), size), SCHEMA)

        if functions.work is None:
            tallies = on_workers(records, "count_rows")
        else:
            packets = on_workers(records, "deal_rows")
            n_tasks = min(functions.n_buckets, int(session.conf.get("spark.sql.shuffle.partitions", "200")))
            tallies = on_workers(_gathered(packets, n_tasks, "bucket"), "work_rows")
        # After another shuffle, since an iterator on the driver runs one task of the last stage after the other.
        sums = on_workers(_gathered(tallies, LEFT, "source"), "merge_rows")
        rows = sums.toLocalIterator(prefetchPartitions=True)
        for _, packet in _packets(Piece(*row[:3], bytes(row[3])) for row in rows):
            yield packet


def _selected(frame: Any, columns: Sequence[Hashable]) -> Any:
    """Select columns, under names without the dots that Spark would split."""
    quoted = ["`" + str(name).replace("`", "``") + "`" for name in columns]
    return frame.selectExpr(*(f"{name} AS c{place}" for place, name in enumerate(quoted)))


def _gathered(pieces: Any, n_tasks: int, by: str) -> Any:
    """Move all pieces with the same `by` to the same task, in a fixed order. Spark hashes our numbers only."""
    return pieces.repartition(n_tasks, by).sortWithinPartitions("bucket", "source", "place")


def _piece_size(session: Any) -> int:
    """Return how many bytes a piece may have, so that an Arrow batch of pieces is not too large."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    rows = int(session.conf.get(name, "10000"))
    if rows <= 0:
        raise ArgumentError(
            "frame",
            f"is in a Spark session without a limit of {name}.",
            hint=f'set one, as in spark.conf.set("{name}", 10_000).',
        )
    return max(BATCH_BYTES // rows, 2**10)


@contextmanager
def _shared(session: Any, functions: Functions) -> Iterator[FunctionsReference]:
    """Send functions to the workers once; by Spark Connect, which has no broadcasts, with each stage."""
    content = sealed(functions, importlib.import_module("pyspark.cloudpickle").dumps)
    if "connect" in type(session).__module__.split("."):
        yield content
        return
    broadcast = session.sparkContext.broadcast(content())
    try:
        yield lambda: broadcast.value
    finally:
        broadcast.destroy()


def _remote(function: str, shared: FunctionsReference, columns: tuple[Hashable, ...], size: int) -> Callable[..., Any]:
    """Return a function that calls one of this module on a worker.

    It is nested, so that it is pickled by value: a worker without this package can reply just that.
    """
    version, absent, other, refused, last = __version__, ABSENT, OTHER_VERSION, REFUSED, LAST

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        try:
            import pandas_dptree

            answer = b""
            if pandas_dptree.__version__ != version:
                answer = other + pandas_dptree.__version__.encode()
            else:
                from pandas_dptree.ingest.workers import on_spark
        except Exception:
            answer = absent
        if answer:
            row = [[refused], [0], [0], [last + answer]]
            types = [pyarrow.int32()] * 3 + [pyarrow.binary()]
            arrays = [pyarrow.array(each, kind) for each, kind in zip(row, types, strict=True)]
            yield pyarrow.RecordBatch.from_arrays(arrays, names=["bucket", "source", "place", "piece"])
        else:
            yield from getattr(on_spark, function)(shared, batches, columns, size)

    return run


def count_rows(shared: FunctionsReference, batches: Iterator[Any], columns: tuple[Hashable, ...], size: int) -> Iterator[Any]:
    """Count one partition, on a worker."""
    tally = reply(lambda: opened(shared).first(_joined(batches, columns)))
    yield from _written([(0, tally)], size)


def deal_rows(shared: FunctionsReference, batches: Iterator[Any], columns: tuple[Hashable, ...], size: int) -> Iterator[Any]:
    """Make the packets of one partition, on a worker."""

    def dealt() -> Iterator[tuple[int, bytes]]:
        functions = opened(shared)
        for bucket, packet in functions.first(_joined(batches, columns)):
            yield functions.bucket(bucket), packet

    def replied() -> Iterator[tuple[int, bytes]]:
        packets = dealt()
        while (found := discreet(lambda: next(packets, None))) is not None:
            yield (REFUSED, found) if isinstance(found, bytes) else found

    yield from _written(replied(), size)


def work_rows(shared: FunctionsReference, batches: Iterator[Any], columns: tuple[Hashable, ...], size: int) -> Iterator[Any]:
    """Count some buckets, one after the other, each with the packets of all partitions, on a worker."""

    def tallies() -> Iterator[bytes]:
        work = opened(shared).work
        for bucket, group in groupby(packets, key=lambda each: each[0]):
            own = (packet for _, packet in group)
            yield next(own) if bucket == REFUSED or work is None else reply(partial(work, own))

    packets = _packets(_pieces(batches))
    first = list(islice(packets, 1))
    packets = chain(first, packets)
    yield from _written([(0, merged(shared, tallies()))] if first else [], size)


def merge_rows(shared: FunctionsReference, batches: Iterator[Any], columns: tuple[Hashable, ...], size: int) -> Iterator[Any]:
    """Merge tallies, on a worker."""
    packets = _packets(_pieces(batches))
    first = list(islice(packets, 1))
    replies = (packet for _, packet in chain(first, packets))
    yield from _written([(0, merged(shared, replies))] if first else [], size)


def _joined(batches: Iterator[Any], columns: tuple[Hashable, ...]) -> Iterator[ArrowBatch]:
    """Join Spark's batches of rows to larger ones, without a copy."""
    pyarrow = importlib.import_module("pyarrow")
    held: list[Any] = []
    for batch in chain(batches, [None]):
        if batch is not None:
            held.append(batch)
        if held and (batch is None or sum(each.num_rows for each in held) >= BATCH_ROWS):
            yield ArrowBatch(pyarrow.Table.from_batches(held), columns)
            held = []


def _written(packets: Iterable[tuple[int, bytes]], size: int) -> Iterator[Any]:
    """Cut packets into pieces, in Arrow batches of the columns of `SCHEMA`."""
    pyarrow = importlib.import_module("pyarrow")
    source = importlib.import_module("pyspark").TaskContext.get().partitionId()
    kinds = dict(bucket=pyarrow.int32(), source=pyarrow.int32(), place=pyarrow.int32(), piece=pyarrow.binary())
    pieces = (
        Piece(bucket, source, place, piece)
        for place, (bucket, piece) in enumerate(
            (bucket, piece) for bucket, packet in packets for piece in _cut(packet, size)
        )
    )
    while held := list(islice(pieces, max(BATCH_BYTES // size, 1))):
        columns = zip(*held, strict=True)
        arrays = [pyarrow.array(each, kind) for each, kind in zip(columns, kinds.values(), strict=True)]
        yield pyarrow.RecordBatch.from_arrays(arrays, names=[*kinds])


def _cut(packet: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, max(len(packet), 1), size):
        yield (LAST if start + size >= len(packet) else MORE) + packet[start : start + size]


def _pieces(batches: Iterable[Any]) -> Iterator[Piece]:
    for batch in batches:
        yield from map(Piece._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _packets(pieces: Iterable[Piece]) -> Iterator[tuple[int, bytes]]:
    """Join the pieces of each packet, and yield it with its bucket."""
    held: list[bytes] = []
    for each in pieces:
        held.append(each.content[1:])
        if each.content[:1] == LAST:
            yield each.bucket, b"".join(held)
            held = []
