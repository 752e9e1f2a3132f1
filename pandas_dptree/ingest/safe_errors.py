"""Run code on records such that no error or warning contains anything about them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from pandas_dptree.errors import ArgumentError, quote

__all__ = ["discreetly", "silence", "silently"]

Answer = TypeVar("Answer")


def silently(work: Callable[[], Answer], failure: ArgumentError) -> Answer:
    """Call `work` without warnings; if it fails for any reason, raise `failure` instead.

    `failure` contains nothing about the records, unlike, perhaps, the messages of other libraries.
    """
    try:
        with silence(), np.errstate(all="ignore"):
            return work()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of polars is not an Exception
        pass  # its text and its context may hold records; the error raised below has neither
    raise failure


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
