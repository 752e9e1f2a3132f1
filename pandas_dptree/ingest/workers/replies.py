"""What is sent to workers, and what they reply: a tally, or why there is none; never a value of a record."""

from __future__ import annotations

import importlib
import pickle
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from pandas_dptree._version import __version__
from pandas_dptree.ingest.safe_errors import ReadingError, silence
from pandas_dptree.ingest.scan.batches import Batch

__all__ = [
    "Count",
    "Deal",
    "Functions",
    "FunctionsReference",
    "Merge",
    "Work",
    "discreet",
    "failure",
    "found",
    "merged",
    "opened",
    "reply",
    "sealed",
]

DONE, ABSENT, OTHER_VERSION, NO_MEMORY, FAILED = (bytes([code]) for code in range(5))
"""The first byte of a reply. A tally, or the version of the worker's package, follows it."""


Count = Callable[[Iterator[Batch]], bytes]
"""The records of one partition → a partial tally."""

Deal = Callable[[Iterator[Batch]], Iterator[tuple[int, bytes]]]
"""The records of one partition → packets, each with the bucket that it belongs to."""

Work = Callable[[Iterator[bytes]], bytes]
"""All packets of one bucket → a partial tally."""

Merge = Callable[[Iterator[bytes]], bytes]
"""Partial tallies → their sum; in any order and grouping. It should hold only one of them at a time."""


@dataclass(frozen=True, slots=True, repr=False)
class Functions:
    """What workers run. `first` is a Count if there is no `work`, else a Deal."""

    first: Callable[[Iterator[Batch]], Any]
    merge: Merge
    work: Work | None = None
    n_buckets: int = 0

    def bucket(self, number: int) -> int:
        """Check the number of a bucket."""
        if not 0 <= number < self.n_buckets:
            raise ValueError
        return int(number)


FunctionsReference = Callable[[], tuple[bytes, bytes]]
"""Returns a name of `Functions`, and these pickled."""


def sealed(functions: Functions, dumps: Callable[[Functions], bytes]) -> FunctionsReference:
    """Pickle functions once, together: what several of them hold, such as a domain, is pickled once.

    The result is a function, since engines log and display some of what they are passed, and its repr says
    nothing about the functions: they may hold a key.
    """
    name, pickled = secrets.token_bytes(16), dumps(functions)

    def content() -> tuple[bytes, bytes]:
        return name, pickled

    return content


Answer = TypeVar("Answer")

_MOST_OPENED = 2
_opened: OrderedDict[bytes, Functions] = OrderedDict()
_opening = threading.Lock()


def opened(functions: FunctionsReference) -> Functions:
    """Unpickle functions, once in each process; the last ones are kept for the next tasks."""
    name, pickled = functions()
    with _opening:
        if name not in _opened:
            _opened[name] = pickle.loads(pickled)
        _opened.move_to_end(name)
        while len(_opened) > _MOST_OPENED:
            _opened.popitem(last=False)
        return _opened[name]


def found(module: str, function: str) -> Callable[[], Callable[..., Any] | bytes]:
    """Return a function that looks up another one on a worker, or returns the reply that it is not there.

    It is nested, so that it is pickled by value: no scheduler or worker needs this package for that.
    """
    version, absent, other_version = __version__, ABSENT, OTHER_VERSION

    def look_up() -> Callable[..., Any] | bytes:
        try:
            installed: str = importlib.import_module("pandas_dptree._version").__version__
            if installed != version:
                return other_version + installed.encode()
            function_there: Callable[..., Any] = getattr(importlib.import_module(module), function)
            return function_there
        except Exception:
            return absent

    return look_up


class _RefusedError(Exception):
    """A reply without a tally, found among those to be merged."""

    def __init__(self, reply: bytes) -> None:
        super().__init__()
        self.reply = reply


def reply(tally: Callable[[], bytes]) -> bytes:
    """Compute a tally and reply it, or reply why there is none."""
    return discreet(lambda: DONE + tally())


def discreet(compute: Callable[[], Answer]) -> Answer | bytes:
    """Compute something, or reply why it cannot be.

    Whatever is raised may quote values, and engines log errors: so it is dropped.
    """
    try:
        with silence(), np.errstate(all="ignore"):
            return compute()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except _RefusedError as error:
        return error.reply
    except MemoryError:
        return NO_MEMORY
    except BaseException:  # a panic of polars is not an Exception
        return FAILED


def merged(functions: FunctionsReference, replies: Iterable[bytes]) -> bytes:
    """Reply the sum of the tallies in replies, or the first reply that has none."""
    return reply(lambda: opened(functions).merge(_tally(each) for each in replies))


def _tally(reply: bytes) -> bytes:
    if reply[:1] != DONE:
        raise _RefusedError(reply)
    return reply[1:]


def failure(reply: bytes, engine: str) -> ReadingError | None:
    """Return the error that a reply stands for; None if it is a tally."""
    code = reply[:1]
    if code == DONE:
        return None
    if code == ABSENT:
        return ReadingError(
            "frame",
            f"is on workers of {engine} that cannot import pandas_dptree.",
            hint=f"install pandas_dptree {__version__} in the Python environment of all workers.",
        )
    if code == OTHER_VERSION:
        return ReadingError(
            "frame",
            f"is on workers of {engine} with pandas_dptree {reply[1:].decode()}, not {__version__}.",
            hint="install the same version on all workers.",
        )
    if code == NO_MEMORY:
        return ReadingError(
            "frame",
            f"needs more memory than a worker of {engine} has.",
            hint="use workers with more memory, or smaller partitions.",
        )
    return ReadingError(
        "frame",
        f"cannot be counted by its columns on the workers of {engine}.",
        hint="convert the keys to strings, whole numbers, dates or categories.",
    )
