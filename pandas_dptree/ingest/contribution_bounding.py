"""Bound what one privacy unit contributes. Secret: nothing here may leave the package.

A unit of m rows, more than k, keeps k of them, each choice equally likely. The choice is a function of the
unit's own rows and of a random key: the rows of the unit are sorted by where they are counted and what they
add, so that their order in the data does not matter, and row r gets the r-th word of a pseudorandom sequence
that begins with the keyed hash of the unit. The k rows with the smallest words stay.

**Privacy.** For every key, whatever its value, what a unit keeps depends on that unit's rows alone, and is at
most k of them. So adding or removing a unit adds or removes at most k rows, and replacing it does both: for
every key, and hence for a random one, whatever is known of the key or of the hash. Their quality only matters
for the choice being uniform: no record, place or value is favoured. For the same reason the result is the
same for records in any order, in batches and buckets of any size, and if part of the work is done again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.units import Key, Units, split_mix

__all__ = ["bound_contributions", "kept_rows"]

_STEP = np.uint64(0x9E3779B97F4A7C15)
"""The step of SplitMix64: its words are ``split_mix(seed + _STEP)``, ``split_mix(seed + 2 * _STEP)``, …"""


def kept_rows(
    units: Units, order: Sequence[npt.NDArray[np.generic]], max_contributions: int, key: Key
) -> npt.NDArray[np.bool_]:
    """Choose the rows that units keep; rows that are equal in `order` are interchangeable."""
    hashes = units.hashes(key)
    at, begins = _by_unit(units, hashes, order)
    first = np.flatnonzero(begins)
    rows = np.diff(first, append=len(at))
    stays = np.ones(len(at), dtype=bool)
    bounded = np.flatnonzero(np.repeat(rows > max_contributions, rows))
    if len(bounded):
        rank = bounded - np.repeat(first, rows)[bounded]
        unit = np.repeat(np.arange(len(rows)), rows)[bounded]
        words = split_mix(hashes[at[bounded]] + (rank + 1).astype(np.uint64) * _STEP)
        stays[at[bounded]] = bound_contributions(unit, words, max_contributions)
    return stays


def _by_unit(
    units: Units, hashes: npt.NDArray[np.uint64], order: Sequence[npt.NDArray[np.generic]]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Bring the rows of each unit together, sorted by `order`: the rows, and where another unit begins."""
    places = order[0]
    if (
        len(order) == 1
        and places.dtype.kind in "iu"
        and len(places)
        and 0 <= places.min() <= places.max() < 2**32
    ):
        # The place, and what there is room for of the hash, in one word: that is sorted much faster.
        tags = hashes << np.uint64(int(places.max()).bit_length())
        at = np.argsort(tags | places.astype(np.uint64))
        words, tags = units.words[at], tags[at]
        begins = np.append(True, (words[1:] != words[:-1]).any(axis=1))
        if (tags[1:] != tags[:-1])[begins[1:]].all():  # else units of the same tag may be mixed
            return at, begins
    unit = units.numbers(hashes)
    at = np.lexsort([*reversed(order), unit])
    return at, np.diff(unit[at], prepend=-1) > 0


def bound_contributions(
    unit: IntArray, priorities: npt.NDArray[np.uint64], max_contributions: int
) -> npt.NDArray[np.bool_]:
    """Keep the rows of each unit that have the smallest priorities, independent uniform words.

    A unit of m rows, more than k = `max_contributions`, keeps the rows whose priority (its upper 32 bits) is
    below that of the row number k + 1 in the order of priorities. Rows of equal priority are kept or dropped
    together, so the choice does not depend on the order of the rows. It may then keep fewer than k, with a
    probability of about m / 2**32.

    **Privacy.** Which rows of a unit are kept depends on that unit's rows and priorities alone. With the
    priorities of all other units carried over, adding or removing a unit therefore adds or removes at
    most `max_contributions` rows, and replacing it does both. Rows outside the domain must be dropped before.
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
