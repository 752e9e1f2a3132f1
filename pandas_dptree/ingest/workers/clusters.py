"""Records of dask and Spark, counted by functions that run on the workers.

In each partition a function of this package reads the records and makes packets, each for a bucket that is
picked by a keyed hash of the unit; the engine only moves them, and never decides which units are equal.
Another function counts those of a bucket: tallies arrive on the driver, never a record. The functions have no
side effects, so what is run again counts once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

from pandas_dptree.errors import DPTreeError
from pandas_dptree.ingest.safe_errors import ReadingError, silence
from pandas_dptree.ingest.scan.dask_frames import client_of
from pandas_dptree.ingest.workers.replies import Count, Deal, Functions, Merge, Work, failure

__all__ = ["count_buckets", "count_partitions", "has_workers"]

_ENGINES = {"dask": "on_dask", "pyspark": "on_spark"}

_READ_ALONE = {
    "dask": "check that frame[columns].map_partitions(len).compute() works",
    "pyspark": "check that frame.select(columns).mapInArrow(iter, frame.select(columns).schema).count() "
    "works, and that PYSPARK_PYTHON is the Python of this process",
}
"""What should work without this package: the hint if the engine fails."""

Answer = TypeVar("Answer")


def count_partitions(
    frame: Any, columns: Sequence[Hashable], *, count: Count, merge: Merge
) -> Iterator[bytes]:
    """Count each partition on the workers, and yield a few tallies whose sum is that of all.

    `count` is called once for each partition, even for one without records; `merge` adds up one or more
    tallies. If a function or the engine fails, the message says nothing about records.
    """
    return _tallies(frame, columns, Functions(count, merge))


def count_buckets(
    frame: Any, columns: Sequence[Hashable], *, deal: Deal, work: Work, merge: Merge, n_buckets: int
) -> Iterator[bytes]:
    """Move packets of records to buckets, count each bucket on the workers, and yield a few tallies.

    `deal` reads the batches of a partition and yields numbers of buckets and packets, whose order within a
    bucket is kept; `work` counts a bucket that has packets. A worker can hold some buckets at a time.
    """
    return _tallies(frame, columns, Functions(deal, merge, work, n_buckets))


def has_workers(frame: Any) -> bool:
    """Whether the records of a frame are read by other processes: those of Spark, or of a cluster of dask."""
    engine = _engine(frame)
    return engine == "pyspark" or (engine == "dask" and client_of() is not None)


def _engine(frame: Any) -> str:
    return type(frame).__module__.partition(".")[0]


def _module(engine: str) -> Any:
    return importlib.import_module(f"pandas_dptree.ingest.workers.{_ENGINES[engine]}")


def _tallies(frame: Any, columns: Sequence[Hashable], functions: Functions) -> Iterator[bytes]:
    engine = _engine(frame)
    replies = _module(engine).replies(frame, list(dict.fromkeys(columns)), functions)
    try:
        while (reply := _discreetly(lambda: next(replies, None), engine)) is not None:
            if error := failure(reply, engine):
                raise error
            yield reply[1:]
    finally:
        _discreetly(replies.close, engine)


def _discreetly(call: Callable[[], Answer], engine: str) -> Answer:
    """Call an engine. Its errors may quote records, and are replaced."""
    fact = f"was not counted, since {engine} failed."
    hint = f"{_READ_ALONE[engine]}; its logs may say why, and may quote records."
    try:
        with silence():
            return call()
    except (KeyboardInterrupt, SystemExit, DPTreeError):
        raise
    except BaseException as error:
        if type(error).__name__ == "KilledWorker":
            fact = f"was not counted, since {engine} lost several workers."
            hint = "use workers with more memory, or smaller partitions."
    raise ReadingError("frame", fact, hint=hint)
