"""Work on records without a word about them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from pandas_dptree.errors import ArgumentError, quote

__all__ = ["discreetly", "silently"]

Answer = TypeVar("Answer")


def silently(work: Callable[[], Answer], failure: ArgumentError) -> Answer:
    """Work, whatever other libraries warn of or quote when they fail.

    Parameters
    ----------
    work : callable
    failure : ArgumentError
        What is raised if the work fails. It says nothing of the records.

    Returns
    -------
    object
        What `work` returned.
    """
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            return work()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # polars panics with one that is no Exception
        pass  # its text and its context may hold records; what is raised below has neither
    raise failure


def discreetly(columns: Sequence[Hashable], count: Callable[[], Answer]) -> Answer:
    """Count without a word about the records, whatever other libraries warn of or quote when they fail."""
    return silently(
        count,
        ArgumentError(
            "frame",
            f"cannot be counted by its columns {quote(list(columns))}.",
            hint="convert the keys to strings, whole numbers, dates or categories.",
        ),
    )
