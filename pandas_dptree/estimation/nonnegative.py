r"""Non-negative estimates that keep their totals.

Going down the tree, each family of children is projected onto what its parent has. The levels above
stay as unbiased as least squares leaves them, while below the many cells that hold nobody lose the
noise that a table full of small negative and positive counts would show.

Everything here is a function of noisy numbers and of the tree: post-processing, free of privacy cost.
"""

from __future__ import annotations

import numpy as np

from pandas_dptree.estimation.least_squares import (
    FloatArray,
    Measurements,
    Variances,
    subtree_estimates,
)
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["nonnegative_totals"]


def nonnegative_totals(tree: Tree, measurements: Measurements, variances: Variances) -> list[FloatArray]:
    r"""Estimate every node, non-negative and additive, from the top down.

    With the estimates :math:`z` and variances :math:`V` of the upward pass of least squares, the root is
    :math:`x = \max(0, z)`, and the children of a node solve

    .. math:: \min \sum_c (x_c - z_c)^2 / V_c
              \quad\text{subject to}\quad \sum_c x_c = x_{parent},\; x_c \ge 0.

    The minimiser is :math:`x_c = \max(0, z_c - \theta V_c)` with the one :math:`\theta` for which the
    family adds up. Where no estimate is negative this is least squares itself.

    Parameters
    ----------
    tree : Tree
    measurements : sequence of numpy.ndarray or None
        For each level, the noisy values of its nodes; None where the level was not measured.
    variances : Variances
        From `propagate`; every variance of a leaf must be positive.

    Returns
    -------
    list of numpy.ndarray, shape (level_sizes[l],)
        One array per level, from the root to the leaves.

    Examples
    --------
    >>> from pandas_dptree.estimation.least_squares import propagate
    >>> tree = Tree.from_branching([3])
    >>> variances = propagate(tree, [1.0, 1.0])
    >>> total, leaves = nonnegative_totals(tree, [np.array([9]), np.array([-4, 2, 8])], variances)
    >>> total.round(6).tolist(), leaves.round(6).tolist()
    ([8.25], [0.0, 1.125, 7.125])
    """
    subtree, _ = subtree_estimates(tree, measurements, variances)
    estimates = [np.maximum(subtree[0], 0.0)]
    for level in range(tree.depth):
        estimates.append(
            _project_families(tree, level, subtree[level + 1], variances.subtree[level + 1], estimates[level])
        )
    return estimates


def _project_families(
    tree: Tree, level: int, estimates: FloatArray, variances: FloatArray, totals: FloatArray
) -> FloatArray:
    """Project each family of children onto the non-negative values that add up to the parent's.

    Sorted by falling z/V, the children that stay positive come first; after j of them the multiplier
    would be θ_j = (Σ z - total) / Σ V, and the j-th is positive as long as z_j / V_j > θ_j. The running
    sums only tell who stays: θ itself is then summed family by family, free of their rounding errors.
    """
    counts = np.broadcast_to(tree.child_counts[level], tree.level_sizes[level])
    start = np.cumsum(counts) - counts
    variances = np.broadcast_to(variances, estimates.shape)
    price = estimates / variances
    order = np.lexsort((-price, np.repeat(np.arange(len(counts)), counts)))
    z, v = estimates[order], variances[order]
    theta = (_running_sum(z, start, counts) - np.repeat(totals, counts)) / _running_sum(v, start, counts)
    stays = price[order] > theta
    stays[start] = True
    multiplier = (np.add.reduceat(z * stays, start) - totals) / np.add.reduceat(v * stays, start)
    projected = np.maximum(estimates - np.repeat(multiplier, counts) * variances, 0.0)
    return np.asarray(np.where(np.repeat(totals > 0, counts), projected, 0.0))


def _running_sum(values: FloatArray, start: IntArray, counts: IntArray) -> FloatArray:
    """Cumulative sums that begin anew in each family."""
    total = np.cumsum(values)
    before = np.concatenate(([0.0], total))[start]
    return np.asarray(total - np.repeat(before, counts))
