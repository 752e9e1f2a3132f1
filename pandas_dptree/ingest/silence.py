"""Work on records without a word about them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from pandas_dptree.errors import ArgumentError

__all__ = ["silently"]

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
