"""Functions on the partitions of a Spark dataframe. Spark moves packets and tallies in rows of bytes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

from pandas_dptree.ingest.safe_errors import ReadingError
from pandas_dptree.ingest.scan.batches import ArrowBatch
from pandas_dptree.ingest.scan.spark_frames import in_utc, numbered
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

SCHEMA = "bucket int, source int, place int, piece binary"
"""A packet is cut into pieces, numbered by `place`. `source` is the task that made them."""

MOST_MERGING = 8
"""How many tasks merge tallies, at most, before one merges theirs."""

BATCH_ROWS = 2**17
"""Spark's batches of rows, by default of 10,000, are joined to batches of about this number."""

BATCH_BYTES = 2**26
"""The largest size of an Arrow batch of pieces."""

REFUSED = -1
"""The bucket of a reply that says why a partition has no packets. It is sorted before all others."""

MORE, LAST = b"\0", b"\1"
"""The first byte of each piece of a packet."""


class Piece(NamedTuple):
    """A row of `SCHEMA`."""

    bucket: int
    source: int
    place: int
    piece: bytes


def replies(frame: Any, columns: Sequence[Hashable], functions: Functions) -> Iterator[bytes]:
    """Run functions on all partitions, and yield one reply; none if there are no partitions."""
    session = frame.sparkSession
    size = _piece_size(session)
    records = numbered(frame, columns)
    with _shared(session, functions) as shared:

        def on_workers(frame: Any, function: Callable[..., Any]) -> Any:
            return frame.mapInArrow(_remote(function.__name__, shared, tuple(columns), size), SCHEMA)

        if functions.work is None:
            tallies = on_workers(records, count_rows)
        else:
            n_tasks = min(functions.n_buckets, _most_tasks(session))
            packets = on_workers(records, deal_rows)
            tallies = on_workers(_gathered(packets, n_tasks, "bucket"), work_rows)
        # One task is left, since a local iterator runs a job for each task. If random rows are lost and drawn
        # again, Spark repeats all that depends on them, but not what another job has returned.
        for n_left in (MOST_MERGING, 1):
            tallies = on_workers(_gathered(tallies, n_left, "source"), merge_rows)
        rows = tallies.toLocalIterator()
        pieces = (Piece(bucket, source, place, bytes(piece)) for bucket, source, place, piece in rows)
        yield from (packet for _, packet in _packets(pieces))


def _gathered(pieces: Any, n_tasks: int, by: str) -> Any:
    """Move pieces with the same `by` to the same task, in a fixed order. Spark hashes our numbers only."""
    return pieces.repartition(n_tasks, by).sortWithinPartitions("bucket", "source", "place")


def _most_tasks(session: Any) -> int:
    """Return how many tasks should share the buckets: a few for each core, if that is a fixed number."""
    most = int(session.conf.get("spark.sql.shuffle.partitions", "200"))
    if _is_remote(session) or session.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return most
    return min(most, 4 * int(session.sparkContext.defaultParallelism))


def _is_remote(session: Any) -> bool:
    """Whether a session is one of Spark Connect."""
    return "connect" in type(session).__module__.split(".")


def _piece_size(session: Any) -> int:
    """Return how many bytes a piece may have, so that an Arrow batch of pieces is not too large."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    rows = int(session.conf.get(name, "10000"))
    if rows <= 0:
        raise ReadingError(
            "frame",
            f"is of a Spark session without a limit in {name}.",
            hint=f'set one, as in spark.conf.set("{name}", 10_000).',
        )
    return max(BATCH_BYTES // rows, 2**10)


@contextmanager
def _shared(session: Any, functions: Functions) -> Iterator[FunctionsReference]:
    """Send functions to the workers once; by Spark Connect, which has no broadcasts, with each stage."""
    content = sealed(functions, importlib.import_module("pyspark.cloudpickle").dumps)
    if _is_remote(session):
        yield content
        return
    broadcast = session.sparkContext.broadcast(content())
    try:
        yield lambda: broadcast.value
    finally:
        broadcast.destroy()


def _remote(
    function: str, shared: FunctionsReference, columns: tuple[Hashable, ...], size: int
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function that calls one of this module on a worker. It is pickled by value, see `found`."""
    look_up, names = found(__name__, function), Piece._fields
    refused, last = [[REFUSED], [0], [0]], LAST

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        there = look_up()
        if isinstance(there, bytes):
            pyarrow = importlib.import_module("pyarrow")
            numbers = [pyarrow.array(each, pyarrow.int32()) for each in refused]
            piece = pyarrow.array([last + there], pyarrow.binary())
            yield pyarrow.RecordBatch.from_arrays([*numbers, piece], names=list(names))
        else:
            yield from there(shared, batches, columns, size)

    return run


def count_rows(
    shared: FunctionsReference, batches: Iterator[Any], columns: tuple[Hashable, ...], size: int
) -> Iterator[Any]:
    """Count one partition, on a worker."""
    tally = reply(lambda: opened(shared).first(_joined(batches, columns)))
    yield from _in_batches([(0, tally)], size)


def deal_rows(
    shared: FunctionsReference, batches: Iterator[Any], columns: tuple[Hashable, ...], size: int
) -> Iterator[Any]:
    """Make the packets of one partition, on a worker."""

    def dealt() -> Iterator[tuple[int, bytes]]:
        functions = opened(shared)
        for bucket, packet in functions.first(_joined(batches, columns)):
            yield functions.bucket(bucket), packet

    def replied() -> Iterator[tuple[int, bytes]]:
        packets = dealt()
        while (each := discreet(lambda: next(packets, None))) is not None:
            yield (REFUSED, each) if isinstance(each, bytes) else each

    yield from _in_batches(replied(), size)


def work_rows(
    shared: FunctionsReference, batches: Iterator[Any], columns: tuple[Hashable, ...], size: int
) -> Iterator[Any]:
    """Count some buckets, one after the other, with the packets of all partitions, on a worker."""

    def tallies(packets: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
        work: Any = opened(shared).work
        for bucket, group in groupby(packets, key=lambda each: each[0]):
            own = (packet for _, packet in group)
            yield next(own) if bucket == REFUSED else reply(partial(work, own))

    yield from _in_batches(_merged(shared, batches, tallies), size)


def merge_rows(
    shared: FunctionsReference, batches: Iterator[Any], columns: tuple[Hashable, ...], size: int
) -> Iterator[Any]:
    """Merge tallies, on a worker."""
    yield from _in_batches(_merged(shared, batches, lambda packets: (packet for _, packet in packets)), size)


def _merged(
    shared: FunctionsReference,
    batches: Iterator[Any],
    tallies: Callable[[Iterator[tuple[int, bytes]]], Iterator[bytes]],
) -> Iterator[tuple[int, bytes]]:
    """Merge the tallies of all packets of a task; there are none without packets."""
    packets = _packets(_pieces(batches))
    if first := list(islice(packets, 1)):
        yield 0, merged(shared, tallies(chain(first, packets)))


def _joined(batches: Iterator[Any], columns: tuple[Hashable, ...]) -> Iterator[ArrowBatch]:
    """Join Spark's batches of rows to larger ones, without a copy."""
    pyarrow = importlib.import_module("pyarrow")
    held: list[Any] = []
    for batch in chain(batches, [None]):
        if batch is not None:
            held.append(batch)
        if held and (batch is None or sum(each.num_rows for each in held) >= BATCH_ROWS):
            named = pyarrow.Table.from_batches(held).rename_columns([str(name) for name in columns])
            yield ArrowBatch(in_utc(named))
            held = []


def _in_batches(packets: Iterable[tuple[int, bytes]], size: int) -> Iterator[Any]:
    """Cut packets into pieces, in Arrow batches of the columns of `SCHEMA`."""
    pyarrow = importlib.import_module("pyarrow")
    source = importlib.import_module("pyspark").TaskContext.get().partitionId()
    kinds = [pyarrow.int32()] * 3 + [pyarrow.binary()]
    cut = ((bucket, piece) for bucket, packet in packets for piece in _cut(packet, size))
    rows = ((bucket, source, place, piece) for place, (bucket, piece) in enumerate(cut))
    while held := list(islice(rows, max(BATCH_BYTES // size // 8, 1))):
        columns = zip(*held, strict=True)
        arrays = [pyarrow.array(each, kind) for each, kind in zip(columns, kinds, strict=True)]
        yield pyarrow.RecordBatch.from_arrays(arrays, names=list(Piece._fields))


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
        held.append(each.piece[1:])
        if each.piece[:1] == LAST:
            yield each.bucket, b"".join(held)
            held = []
