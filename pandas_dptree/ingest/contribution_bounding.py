"""Bound what one privacy unit contributes to the leaf counts. Secret: nothing here may leave the package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.arrays import clip_leaves
from pandas_dptree.ingest.contributions import Contributions

__all__ = ["bound_contributions", "count_leaves", "sum_leaves"]


def count_leaves(
    given: Contributions,
    n_leaves: int,
    *,
    max_contributions: int,
    random_words: Callable[[int], npt.NDArray[np.uint64]],
) -> IntArray:
    """Count the records in each leaf, shape (n_leaves,), after bounding the records of each unit.

    `random_words(n)` draws ``n`` uniform 64-bit words. `max_contributions` has no effect if each record is a
    unit of its own.
    """
    if given.unit is None:
        return np.bincount(given.leaf, weights=given.rows, minlength=n_leaves).astype(np.int64)
    stays = bound_contributions(given.unit, random_words(len(given.unit)), max_contributions)
    return np.bincount(given.leaf[stays], minlength=n_leaves).astype(np.int64)


def sum_leaves(
    given: Contributions,
    n_leaves: int,
    *,
    max_contributions: int,
    random_words: Callable[[int], npt.NDArray[np.uint64]],
) -> tuple[IntArray, ...]:
    """Add up the values in each leaf, after bounding the records of each unit as `count_leaves` does.

    Returns
    -------
    tuple of numpy.ndarray of int64, each of shape (n_leaves,)
        For each quantity its sums in units, all over the same records.

    Notes
    -----
    The sums are exact and do not depend on the order of the records, because integers are added, as long as
    there are fewer than 2**32 records (a row adds at most 2**31 units). They are then clipped by
    `clip_leaves`.
    """
    leaf, values = given.leaf, given.values
    if given.unit is not None:
        stays = bound_contributions(given.unit, random_words(len(given.unit)), max_contributions)
        leaf, values = leaf[stays], tuple(value[stays] for value in values)
    sums = np.zeros((len(values), n_leaves), dtype=np.int64)
    for total, value in zip(sums, values, strict=True):
        np.add.at(total, leaf, value)
    return tuple(clip_leaves(total) for total in sums)


def bound_contributions(
    unit: IntArray, priorities: npt.NDArray[np.uint64], max_contributions: int
) -> npt.NDArray[np.bool_]:
    """Keep the rows of each unit that have the smallest priorities.

    Parameters
    ----------
    unit : numpy.ndarray of int64, shape (n_rows,)
        Unit of each row, numbered from 0 without large gaps, below 2**32. Rows outside the domain must have
        been dropped before.
    priorities : numpy.ndarray of uint64, shape (n_rows,)
        Independent uniform words. Only the upper 32 bits are compared. The choice among the rows of a unit is
        then uniformly random.
    max_contributions : int
        Number of rows that a unit may keep, at least 1.

    Returns
    -------
    numpy.ndarray of bool, shape (n_rows,)
        True for the rows that are kept, at most `max_contributions` of each unit.

    Notes
    -----
    A unit of m rows, more than k = `max_contributions`, keeps the rows whose priority is below that of the
    row number k + 1 in the order of priorities. Rows of equal priority are kept or dropped together, so the
    choice does not depend on the order of the rows. It may then keep fewer than k, with a probability of
    about m / 2**32.

    **Privacy.** Which rows of a unit are kept depends on that unit's rows and priorities alone. With the
    priorities of all other units carried over, adding or removing a unit therefore adds or removes at
    most `max_contributions` rows, and replacing it does both.
    """
    # Unit and priority in one word: numpy sorts words several times as fast as it argsorts.
    ticket = (unit.astype(np.uint64) << np.uint64(32)) | (priorities >> np.uint64(32))
    queue = np.sort(ticket)
    rows = np.bincount(unit)
    first_out = np.cumsum(rows) - rows + min(max_contributions, len(unit))
    beyond = np.arange(1, len(rows) + 1, dtype=np.uint64) << np.uint64(32)
    bounded = rows > max_contributions
    beyond[bounded] = queue[first_out[bounded]]
    return np.asarray(ticket < beyond[unit], dtype=bool)
