"""Run code on records such that no error or warning contains anything about them."""

from __future__ import annotations

import errno
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from pandas_dptree.errors import ArgumentError, DPTreeError, MissingExtraError, quote

__all__ = ["ReadingError", "discreetly", "silence", "silently"]

Answer = TypeVar("Answer")

_DISK_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))

_MEMORY_FULL = ("OutOfMemoryException", "KilledWorker")
"""Errors of duckdb, and of dask if workers are killed, which mostly happens at the limit of their memory."""


class ReadingError(ArgumentError):
    """Records that cannot be read, said in words that hold nothing of them: `silently` passes it on."""


def silently(work: Callable[[], Answer], failure: ArgumentError) -> Answer:
    """Call `work` without warnings; if it fails, raise `failure` instead, or an error that says what ran out.

    `failure` contains nothing about the records, unlike, perhaps, the messages of other libraries.
    """
    try:
        with silence(), np.errstate(all="ignore"):
            return work()
    except (KeyboardInterrupt, SystemExit) as stop:
        stop.__cause__ = stop.__context__ = None
        raise
    except (ReadingError, MissingExtraError) as error:
        safe: DPTreeError = error.with_traceback(None)
    except BaseException as error:  # a panic of polars is not an Exception
        safe = _exhausted(error, failure.argument) or failure
    safe.__cause__ = safe.__context__ = None  # these, and the text of other errors, may hold records
    raise safe


def _exhausted(error: BaseException, argument: str) -> ReadingError | None:
    """Return an error that says whether memory or disk ran out, known by the types of errors alone."""
    causes: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in causes:
        causes.append(following)
        following = following.__cause__ or following.__context__
    if any(getattr(each, "errno", None) in _DISK_FULL for each in causes):
        return ReadingError(
            argument,
            "needs more disk space for temporary files than there is.",
            hint="free some, or name a folder with more as `temp_folder`.",
        )
    if any(isinstance(each, MemoryError) or type(each).__name__ in _MEMORY_FULL for each in causes):
        return ReadingError(
            argument,
            "needs more memory than there is.",
            hint="free some; or pass what is read in batches: files by polars.scan_parquet, "
            "pyarrow.dataset.dataset or duckdb, or records on a cluster by dask or Spark.",
        )
    return None


def discreetly(columns: Sequence[Hashable], count: Callable[[], Answer]) -> Answer:
    """Call `count` as `silently` does; if it fails, the error names the columns only."""
    return silently(
        count,
        ArgumentError(
            "frame",
            f"cannot be counted by its columns {quote(list(columns))}.",
            hint="convert the keys to strings, whole numbers, dates or categories.",
        ),
    )


_lock = threading.Lock()
_within = 0
_filters: warnings.catch_warnings[None] | None = None


@contextmanager
def silence() -> Iterator[None]:
    """Ignore warnings until the last of all threads that are in here has left.

    Filters of warnings belong to the process. If each thread restored those that it found, these could be
    what another thread had set.
    """
    global _within, _filters
    with _lock:
        if not _within:
            _filters = warnings.catch_warnings(action="ignore")
            _filters.__enter__()
        _within += 1
    try:
        yield
    finally:
        with _lock:
            _within -= 1
            if not _within and _filters is not None:
                _filters.__exit__(None, None, None)
