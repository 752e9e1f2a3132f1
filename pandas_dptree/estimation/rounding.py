"""Whole numbers that still add up.

Everything here is a function of noisy numbers and of the tree: post-processing, free of privacy cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.estimation.nonnegative import family_blocks
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["GRID_BITS", "round_families", "round_to_whole"]

GRID_BITS = 40
"""Estimates are put on a grid of 2**-40, far finer than any noise."""


def round_to_whole(
    tree: Tree, leaf_estimates: FloatArray, random_words: Callable[[int], npt.NDArray[np.uint64]]
) -> list[IntArray]:
    """Round a consistent table, also of negative numbers, to whole numbers that add up at every level.

    From the top down, each child starts at its floor, and the rest of the family's total goes to the members
    with the largest fractions, one each, with random ties; so zeros and known whole numbers stay. On a grid
    of 2**-40 (coarser only if the absolute values add up to more than 2**21), floors and fractions add up
    without rounding error, so a family never lacks fewer than none or more than it has fractions.
    """
    bits = max(0, min(GRID_BITS, 61 - math.ceil(math.log2(np.abs(leaf_estimates).sum() + 1))))
    grid = np.ldexp(leaf_estimates, bits)
    exact = tree.roll_up(np.rint(grid, out=grid).astype(np.int64))
    del grid
    whole = [(exact[0] + (1 << bits >> 1)) >> bits]
    for level in range(tree.depth):
        whole.append(round_families(tree, level, exact[level + 1], whole[level], bits, random_words))
    return whole


def round_families(
    tree: Tree,
    level: int,
    exact: IntArray,
    totals: IntArray,
    bits: int,
    random_words: Callable[[int], npt.NDArray[np.uint64]],
) -> IntArray:
    """Round the children of each node of a level to whole numbers with the given totals, block by block."""
    counts = np.broadcast_to(tree.child_counts[level], tree.level_sizes[level])
    whole = np.empty_like(exact)
    for members, families in family_blocks(counts):
        floors = exact[members] >> bits
        fractions = exact[members] - (floors << bits)
        within = counts[families]
        lacking = totals[families] - np.add.reduceat(floors, np.cumsum(within) - within)
        whole[members] = floors + _largest_first(within, fractions, lacking, bits, random_words)
    return whole


def _largest_first(
    counts: IntArray,
    fractions: IntArray,
    lacking: IntArray,
    bits: int,
    random_words: Callable[[int], npt.NDArray[np.uint64]],
) -> npt.NDArray[np.bool_]:
    """Mark, in each family, as many members as it lacks: those with the largest fractions."""
    candidates = np.flatnonzero(fractions)
    parent = np.repeat(np.arange(len(counts)), counts)[candidates]
    ties = random_words(len(candidates)) >> np.uint64(bits + 1)
    key = (fractions[candidates] << (63 - bits)) | ties.astype(np.int64)
    order = np.lexsort((-key, parent))
    candidates, parent = candidates[order], parent[order]
    rank = np.arange(len(parent)) - np.searchsorted(parent, parent)
    marked = np.zeros(len(fractions), dtype=bool)
    marked[candidates[rank < lacking[parent]]] = True
    return marked
