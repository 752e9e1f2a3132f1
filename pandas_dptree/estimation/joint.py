r"""The exact non-negative least-squares estimate of a whole tree, without a solver.

Let :math:`t_v(\mu)` be the total that the best estimate gives to the subtree of :math:`v` when each further
person in it earns a price :math:`\mu`. It is continuous, non-decreasing, convex and piecewise linear: flat
until its first leaf becomes positive, and steeper with each leaf that follows. So it is a list of prices,
one for each leaf below, and of the slopes that they add:

.. math:: t_v(\mu) = b_v + \sum_i s_i \max(0, \mu - \mu_i).

Families merge these lists, and a measurement moves their prices. At the root, where nothing is paid, the
leaves whose prices are negative are the positive ones. The others are 0, and what remains is ordinary least
squares.

Everything here is a function of noisy numbers and of the tree: post-processing, free of privacy cost.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import (
    FloatArray,
    Measurements,
    Variances,
    check_measurements,
    least_squares,
    propagate,
)
from pandas_dptree.estimation.nonnegative import least_values, order_within, running_sum
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["nonnegative_joint"]


def nonnegative_joint(tree: Tree, measurements: Measurements, variances: Variances) -> list[FloatArray]:
    r"""Estimate every node, non-negative and additive, from all measurements at once.

    The minimiser of

    .. math:: \sum_v (x_v - y_v)^2 / v_v \quad\text{subject to}\quad
              x_{parent} = \sum_c x_c,\; x_{leaf} \ge 0,

    exact up to rounding; values of variance 0 are kept. As a projection onto a convex set that holds the
    truth, it is closer to the truth than least squares in this norm in every draw. But where most leaves
    are empty, their cut-off noise pushes the totals up.

    One sort per level: O(n log n) time per level for n leaves, O(n) memory.

    Parameters
    ----------
    tree : Tree
    measurements : sequence of numpy.ndarray or None
        For each level, the noisy values of its nodes; None where the level was not measured.
    variances : Variances
        From `propagate`.

    Returns
    -------
    list of numpy.ndarray, shape (level_sizes[l],)
        One array per level, from the root to the leaves.

    Raises
    ------
    ArgumentError
        If a measurement is not finite, or known values are negative or contradict each other.

    Examples
    --------
    >>> tree = Tree.from_branching([3])
    >>> variances = propagate(tree, [1.0, 1.0])
    >>> total, leaves = nonnegative_joint(tree, [np.array([9]), np.array([-4, 2, 8])], variances)
    >>> total.round(6).tolist(), leaves.round(6).tolist()
    ([9.333333], [0.0, 1.666667, 7.666667])
    """
    check_measurements(tree, measurements, variances)
    least = least_values(tree, measurements, variances)
    positive = _positive_leaves(tree, measurements, variances, least)
    noise = np.where(positive, variances.noise[-1], 0.0)
    leaves = np.where(positive, np.asarray(measurements[-1], dtype=np.float64), least[-1])
    settled = propagate(tree, [*variances.noise[:-1], noise])
    fitted = least_squares(tree, [*measurements[:-1], leaves], settled)
    return [np.maximum(estimate, bound) for estimate, bound in zip(fitted, least, strict=True)]


def _positive_leaves(
    tree: Tree, measurements: Measurements, variances: Variances, least: list[FloatArray]
) -> npt.NDArray[np.bool_]:
    """Tell which of the leaves that are not known are positive in the optimum.

    A leaf holds max(0, y + μv), so it becomes positive at the price -y/v and adds the slope v. A node
    measured as y with precision p, whose children hold T(μ) together, holds t at the price T⁻¹(t) + p(t - y).
    A node whose value is known holds it at any price, and settles which leaves below it are positive.
    """
    noise = np.broadcast_to(variances.noise[-1], tree.n_leaves)
    positive = np.zeros(tree.n_leaves, dtype=bool)
    leaf = np.flatnonzero(noise)
    node, slope = leaf, noise[leaf]
    price = -np.asarray(measurements[-1])[leaf] / slope
    for level in reversed(range(tree.depth)):
        parents = tree.spread(level, np.arange(tree.level_sizes[level]))
        node = np.broadcast_to(parents, tree.level_sizes[level + 1])[node]
        measured = measurements[level]
        if measured is None or not len(leaf):
            continue
        order = order_within(node, price)
        leaf, node, price, slope = leaf[order], node[order], price[order], slope[order]
        # The slope of T after each price, and what T holds at it.
        start = np.flatnonzero(np.diff(node, prepend=-1))
        counts = np.diff(start, append=len(node))
        steep = running_sum(slope, start, counts)
        gain = np.zeros(len(node))
        gain[1:] = steep[:-1] * np.diff(price)
        gain[start] = 0.0
        below = np.broadcast_to(tree.sum_children(level, least[level + 1]), tree.level_sizes[level])
        missing = measured[node] - below[node] - running_sum(gain, start, counts)
        spread = np.broadcast_to(variances.noise[level], tree.level_sizes[level])[node]
        known = spread == 0
        if known.any():
            positive[leaf[known]] = missing[known] > 0
            leaf, node, price, slope, steep, missing, spread = (
                array[~known] for array in (leaf, node, price, slope, steep, missing, spread)
            )
        price = price - missing / spread
        slope = slope / ((1 + steep / spread) * (1 + (steep - slope) / spread))
    positive[leaf] = price < 0
    return positive
