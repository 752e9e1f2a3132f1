r"""Bound in how many nodes of each level a privacy unit is counted.

Secret: nothing here may leave the package.

A unit that has rows in more than :math:`m_l` nodes of level l keeps some of them. From the root down, those
of its nodes on a level that lie in nodes kept above are ranked by words of a pseudorandom sequence that
begins with the keyed hash of the unit; each node has a word of its own. The best child of each node that was
kept stays, and then the best of all other children, until there are :math:`m_l`. If rows are counted too,
they are one more level below the leaves: each leaf that stays keeps a row, and other rows follow until there
are `max_rows`.

**Theorem.** Let :math:`1 = m_0 \le m_1 \le \dots \le m_L`. Every node that is kept keeps a child: nobody is
missing from the total, and no level makes one above it lose a node. If all :math:`m_l` below the root are k,
a unit that has rows in :math:`n_l` nodes of level l keeps :math:`\min(k, n_l)` of them, on every level at
once: the most that any bounding by k allows.

*Proof.* At most :math:`m_{l-1} \le m_l` nodes are kept above, so their best children all stay. Let all bounds
be k. If the unit lost a node above, k nodes are kept there, hence k here; otherwise all its :math:`n_l` nodes
lie in nodes kept above, and :math:`\min(k, n_l)` stay.

**Privacy.** For every key, each step is a function of the unit's own rows and of the key. So what a unit
keeps depends on no other unit, nor on the order of rows, batches or buckets. Equal words are ranked by the
order of nodes, so :math:`m_l` nodes stay then too. Adding or removing a unit therefore moves the
counts of at most :math:`m_l` nodes of level l, each by one; replacing it does both. The quality of the words
only matters for siblings to be exchangeable, and the rows of one leaf. Others are not: a node that is the
only child of one that stays is kept, and so is a row that is alone in a leaf that stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.contribution_bounding import (
    WORD_STEP,
    WORDS_OF_A_LEVEL,
    by_unit,
    changes,
    larger_groups,
)
from pandas_dptree.ingest.units import Key, Units, split_mix

__all__ = ["Kept", "Nested", "nested_rows"]

_WORD_BITS = np.uint64(31)
"""Bits of a word that rank nodes. With one bit before them, and the unit, they fill 64."""


class Kept(NamedTuple):
    """The rows that units keep, and what they are counted in."""

    rows: IntArray
    """Their places, those of a unit and of a leaf together."""
    first_level: IntArray
    """The first level, from 0, in whose node each is the first row of its unit, one more than the last level
    if there is none."""


class Nested(NamedTuple):
    """In how many nodes of each level a unit is counted, the root first, and with how many rows.

    Without a bound on rows, each leaf that stays keeps one.
    """

    max_nodes: tuple[int, ...]
    max_rows: int | None = None


def nested_rows(
    units: Units,
    order: Sequence[npt.NDArray[np.generic]],
    nodes_of: Callable[[IntArray, int], IntArray],
    bounds: Nested,
    key: Key,
) -> Kept:
    """Choose the nodes that units keep, and their rows in them.

    The first of `order` is the leaf of each row, and ``nodes_of(leaves, level)`` the nodes above them, which
    increase with the leaves.
    """
    max_nodes, max_rows = bounds
    depth, hashes = len(max_nodes) - 1, units.hashes(key)
    rows, begins = by_unit(units, hashes, order)
    leaves = np.asarray(order[0])[rows].astype(np.int64)
    begin = np.flatnonzero(begins)
    place = np.arange(len(rows)) - np.repeat(begin, np.diff(begin, append=len(rows)))  # in the unit
    first_level = np.full(len(rows), depth + 1)
    for level in reversed(range(1, depth + 1)):
        first_level[changes(nodes_of(leaves, level))] = level
    first_level[begins] = 0
    if max_rows is None:
        one = first_level <= depth
        rows, leaves, place, first_level = rows[one], leaves[one], place[one], first_level[one]
    for level, most in enumerate([*max_nodes[1:], *([] if max_rows is None else [max_rows])], 1):
        first = np.flatnonzero(first_level <= level)  # the first row in each node
        many, unit = larger_groups(first_level[first] == 0, most)
        if not len(many):
            continue
        at = first[many]
        number = (nodes_of(leaves[at], level) if level <= depth else place[at]).astype(np.uint64)
        words = split_mix(hashes[rows[at]] + (number + np.uint64(level * WORDS_OF_A_LEVEL + 1)) * WORD_STEP)
        out = many[~_best(unit, first_level[at] < level, words, most)]
        stay = np.ones(len(first), dtype=bool)
        stay[out] = False
        stays = np.flatnonzero(np.repeat(stay, np.diff(first, append=len(rows))))
        # A row that stays takes the place of those that are left out before it.
        first_level = np.minimum.reduceat(first_level[: stays[-1] + 1], np.append(0, stays[:-1] + 1))
        rows, leaves, place = rows[stays], leaves[stays], place[stays]
    return Kept(rows, first_level)


def _best(
    unit: IntArray, begins: npt.NDArray[np.bool_], words: npt.NDArray[np.uint64], most: int
) -> npt.NDArray[np.bool_]:
    """Choose so many nodes of each unit: the best of each parent, and then the best of all others.

    Those of a parent are adjacent, and it `begins` with the first.
    """
    words = words >> (np.uint64(64) - _WORD_BITS)
    places = np.arange(len(words), dtype=np.uint64)
    best = np.minimum.reduceat(words << np.uint64(32) | places, np.flatnonzero(begins))
    other = np.ones(len(words), dtype=np.uint64)
    other[best & np.uint64(2**32 - 1)] = 0
    ticket = (unit.astype(np.uint64) << np.uint64(32)) | (other << _WORD_BITS) | words
    sizes = np.bincount(unit)
    rank = np.arange(len(words)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    stays = np.empty(len(words), dtype=bool)
    stays[np.argsort(ticket, kind="stable")] = rank < most
    return stays
