"""Run code on records such that no error or warning contains anything about them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from pandas_dptree.errors import ArgumentError, quote

__all__ = ["discreetly", "silently"]

Answer = TypeVar("Answer")


def silently(work: Callable[[], Answer], failure: ArgumentError) -> Answer:
    """Call `work` without warnings; if it fails for any reason, raise `failure` instead.

    `failure` contains nothing about the records, unlike, perhaps, the messages of other libraries.
    """
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
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
