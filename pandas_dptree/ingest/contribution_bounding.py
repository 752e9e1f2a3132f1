"""Bound what one privacy unit contributes. Secret: nothing here may leave the package.

A unit of m rows, more than k, keeps k of them, each choice equally likely. The choice is a function of the
unit's own rows and of a random key: the rows of the unit are sorted by where they are counted and what they
add, so that their order in the data does not matter, and row r gets the r-th word of a pseudorandom sequence
that begins with the keyed hash of the unit. The k rows with the smallest words stay.

Levels of the hierarchy may have caps. Then the same is done in stages, from the leaves up: of the unit's rows
in one node, those with the smallest words stay, as many as the cap of the level; the last stage is that of
the root, which holds all rows and has the cap k. Each stage has words of its own, from another part of the
sequence. So if each leaf keeps one row, the leaves that stay are a uniform choice too, however many rows the
unit had in them.

**Privacy.** For every key, whatever its value, each stage is a function of the unit's own rows, of what the
stages before kept of them, and of the key; by induction, what the unit keeps depends on no other unit. A
stage leaves at most its cap in each of its nodes, and those after it only remove rows: so the unit keeps at
most k rows, and in no node more than the cap of its level. Adding or removing a unit therefore adds or
removes such rows, and replacing it does both: for every key, and hence for a random one, whatever is known of
the key or of the hash. Their quality only matters for the choice being uniform: no record, place or value is
favoured. For the same reason the result is the same for records in any order, in batches and buckets of any
size, and if part of the work is done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.units import Key, Units, split_mix

__all__ = [
    "WORDS_OF_A_LEVEL", "WORD_STEP", "Capped", "bound_contributions", "by_unit", "changes", "kept_rows",
    "larger_groups",
]  # fmt: skip

WORD_STEP = np.uint64(0x9E3779B97F4A7C15)
"""The step of SplitMix64: its words are ``split_mix(seed + WORD_STEP)``, ``split_mix(seed + 2 * WORD_STEP)``
and so on."""


WORDS_OF_A_LEVEL = 2**40
"""Distance, in the sequence of a unit, between the words of one level and the next: no unit has more rows."""


class Capped(NamedTuple):
    """A level on which no node holds more than `cap` rows of a unit, and the node of each row."""

    level: int
    cap: int
    nodes: IntArray


def kept_rows(
    units: Units,
    order: Sequence[npt.NDArray[np.generic]],
    max_contributions: int,
    key: Key,
    capped: Sequence[Capped] = (),
) -> npt.NDArray[np.bool_]:
    """Choose the rows that units keep; rows that are equal in `order` are interchangeable.

    The levels that are `capped` are below the root, the deepest first.
    """
    hashes = units.hashes(key)
    at, begins = by_unit(units, hashes, order)
    stays = np.ones(len(at), dtype=bool)
    first = np.flatnonzero(begins)
    rank = np.arange(len(at)) - np.repeat(first, np.diff(first, append=len(at)))
    for level, cap, nodes in (*capped, Capped(0, max_contributions, at)):
        groups = begins
        if level:
            node = nodes[at]
            if ((node[1:] < node[:-1]) & ~begins[1:]).any():
                by_node = np.lexsort([node, np.cumsum(begins)])
                at, rank, node = at[by_node], rank[by_node], node[by_node]
            groups = begins | changes(node)
        bounded, group = larger_groups(groups, cap)
        place = (rank[bounded] + (level * WORDS_OF_A_LEVEL + 1)).astype(np.uint64)
        words = split_mix(hashes[at[bounded]] + place * WORD_STEP)
        out = bounded[~bound_contributions(group, words, cap)]
        stays[at[out]] = False
        if level and len(out):
            unit, rest = np.cumsum(begins), stays[at]
            at, rank, begins = at[rest], rank[rest], changes(unit[rest])
    return stays


def larger_groups(begins: npt.NDArray[np.bool_], most: int) -> tuple[npt.NDArray[np.intp], IntArray]:
    """Find the groups of more than `most` rows, from where each begins: their rows, and the group of each."""
    first = np.flatnonzero(begins)
    rows = np.diff(first, append=len(begins))
    larger = rows > most
    return np.flatnonzero(np.repeat(larger, rows)), np.repeat(np.arange(larger.sum()), rows[larger])


def changes(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether each value differs from the one before it; the first one does."""
    changes = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def by_unit(
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
    group: IntArray, priorities: npt.NDArray[np.uint64], most: int
) -> npt.NDArray[np.bool_]:
    """Keep the rows of each group that have the smallest priorities, independent uniform words.

    A group holds the rows of a unit, or of a unit in one node. A group of m rows, more than `most`, keeps
    those whose priority (its upper 32 bits) is below that of the row number `most` + 1 in the order of
    priorities. Rows of equal priority are kept or dropped together, so the choice does not depend on the
    order of the rows. It may then keep fewer than `most`, with a probability of about m / 2**32.

    **Privacy.** Which rows of a group are kept depends on that group's rows and priorities alone, and at most
    `most` are. Rows outside the domain must be dropped before.
    """
    # Group and priority in one word: numpy sorts words several times as fast as it argsorts.
    ticket = (group.astype(np.uint64) << np.uint64(32)) | (priorities >> np.uint64(32))
    queue = np.sort(ticket)
    rows = np.bincount(group)
    first_out = np.cumsum(rows) - rows + min(most, len(group))
    beyond = np.arange(1, len(rows) + 1, dtype=np.uint64) << np.uint64(32)
    bounded = rows > most
    beyond[bounded] = queue[first_out[bounded]]
    return np.asarray(ticket < beyond[group], dtype=bool)
