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
order of nodes, so never more than :math:`m_l` nodes stay. Adding or removing a unit therefore moves the
counts of at most :math:`m_l` nodes of level l, each by one; replacing it does both. The quality of the words
only matters for siblings to be exchangeable: the choice favours no node and no row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.contribution_bounding import WORD_STEP, WORDS_OF_A_LEVEL, by_unit, changes
from pandas_dptree.ingest.units import Key, Units, split_mix

__all__ = ["Kept", "Nested", "nested_rows"]


class Kept(NamedTuple):
    """The rows that units keep, and what they are counted in."""

    rows: IntArray
    """Their places, those of a unit and of a leaf together."""
    first_level: IntArray
    """The first level, from 0, in whose node each is the first row of its unit, one more than the last level
    if there is none; and -1 for the first row of a unit that lost a node."""


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
    hashes = units.hashes(key)
    at, begins = by_unit(units, hashes, order)
    depth, own = len(max_nodes) - 1, np.cumsum(begins, dtype=np.int64)
    leaves = np.asarray(order[0])[at].astype(np.int64)
    place = np.arange(len(at)) - np.flatnonzero(begins)[own - 1]  # among the rows of the unit
    if max_rows is None:
        one = begins | changes(leaves)
        at, own, leaves, place = at[one], own[one], leaves[one], place[one]
    cut = np.zeros(0, dtype=np.int64)
    node = above = own  # groups of rows, from those of a unit on
    for level, most in enumerate([*max_nodes[1:], *([] if max_rows is None else [max_rows])], 1):
        number = nodes_of(leaves, level) if level <= depth else place
        above, node = node, np.cumsum(changes(node) | changes(number), dtype=np.int64)
        first = np.flatnonzero(changes(node))
        words = split_mix(
            hashes[at[first]] + (number[first] + (level * WORDS_OF_A_LEVEL + 1)).astype(np.uint64) * WORD_STEP
        )
        stays = _best(own[first], above[first], words, most)
        if not stays.all():
            if level <= depth:
                cut = np.union1d(cut, own[first[~stays]])
            rows = np.repeat(stays, np.diff(first, append=len(at)))
            at, own, leaves, place, node = at[rows], own[rows], leaves[rows], place[rows], node[rows]
    first_level = np.full(len(at), depth + 1)
    for level in reversed(range(depth + 1)):
        first_level[changes(own) | changes(nodes_of(leaves, level))] = level
    first_level[(first_level == 0) & np.isin(own, cut)] = -1
    return Kept(at, first_level)


def _best(
    unit: IntArray, parent: IntArray, words: npt.NDArray[np.uint64], most: int
) -> npt.NDArray[np.bool_]:
    """Choose up to so many nodes of each unit: the best of each parent, and then the best of all others."""
    stays = np.ones(len(unit), dtype=bool)
    begins = np.flatnonzero(changes(unit))
    number = np.diff(begins, append=len(unit))
    many = np.flatnonzero(np.repeat(number > most, number))
    unit, parent, words = unit[many], parent[many], words[many]
    by_word = np.lexsort([words, parent])
    other = np.ones(len(many), dtype=bool)
    other[by_word[changes(parent[by_word])]] = False
    order = np.lexsort([words, other, unit])
    starts = np.flatnonzero(changes(unit))
    rank = np.arange(len(many)) - np.repeat(starts, np.diff(starts, append=len(many)))
    stays[many[order[rank >= most]]] = False
    return stays
