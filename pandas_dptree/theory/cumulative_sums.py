"""Counts on a tree from cumulative sums of its leaves.

In the order of the tree, the leaves below a node are contiguous. So its count is the cumulative sum up to its
last leaf minus that before its first one, and any release of cumulative sums (of thresholds) is a release of
the tree (Ghazi, Kamath, Kumar, Manurangsi and Wu, "On differentially private counting on trees", 2022,
Section 1.3). It is not a good one. The error of private cumulative sums grows with the logarithm of the
number of leaves, which on binary trees is at least the number of levels minus one; that of Gaussian noise on
the tree grows only with the square root of the number of levels. Nor does it work for relative errors, which
a difference does not preserve.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["from_thresholds"]


def from_thresholds(tree: Tree, cumulative_sums: npt.ArrayLike) -> tuple[npt.NDArray[Any], ...]:
    """Compute the count of every node from cumulative sums of the leaves, exact or noisy.

    Parameters
    ----------
    tree : Tree
    cumulative_sums : array_like, shape (n_leaves,)
        For each leaf, the total of all leaves up to it.

    Returns
    -------
    tuple of numpy.ndarray, shape (level_sizes[l],)
        One array per level, from the root to the leaves. They are consistent, since they come from the same
        totals. With independent noise of variance v on each total a node's variance is 2v, or v
        if the first leaf of the tree is below it.

    Notes
    -----
    **Privacy**: a function of the cumulative sums, and therefore as private as they are.

    Examples
    --------
    >>> tree = Tree.from_branching([2, 3])
    >>> [level.tolist() for level in from_thresholds(tree, np.cumsum([1, 2, 3, 4, 5, 6]))]
    [[21], [6, 15], [1, 2, 3, 4, 5, 6]]
    """
    totals = np.asarray(cumulative_sums)
    if totals.shape != (tree.n_leaves,):
        raise ArgumentError(
            "cumulative_sums",
            f"must have shape ({tree.n_leaves},), not {totals.shape}.",
            hint="pass one cumulative sum per leaf, in the order of the tree.",
        )
    levels = []
    for level, size in enumerate(tree.level_sizes):
        last = np.cumsum(np.broadcast_to(tree.leaves_below(level), size)) - 1
        levels.append(np.diff(totals[last], prepend=totals.dtype.type(0)))
    return tuple(levels)
