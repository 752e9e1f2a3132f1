r"""The exact non-negative least-squares estimate of a whole tree, without a solver.

Let :math:`t_v(\mu)` be the total that the best estimate gives to the subtree of :math:`v` when each further
person in it earns a price :math:`\mu`. It is continuous, non-decreasing, convex and piecewise linear: flat
until its first leaf rises above its lower bound, and steeper with each leaf that follows. So it is a list of
prices, one for each leaf below, and of the slopes that they add:

.. math:: t_v(\mu) = b_v + \sum_i s_i \max(0, \mu - \mu_i).

Families merge these lists, and a measurement moves their prices. A lower bound :math:`b` of a node turns it
into :math:`\max(b, t_v(\mu))`: one entry, at the price at which the node rises above its bound, replaces all
earlier ones. At the root, where the price is 0, the entries with negative prices are those of leaves and
nodes above their bounds. The others are at theirs, and the rest is ordinary least squares.

Everything here is a function of noisy numbers and of the tree: post-processing, free of privacy cost.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import (
    FloatArray,
    Measurements,
    Variances,
    least_squares,
    propagate,
)
from pandas_dptree.estimation.nonnegative import Bounds, least_values, order_within, running_sum
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["nonnegative_joint"]


def nonnegative_joint(
    tree: Tree, measurements: Measurements, variances: Variances, *, least: Bounds | None = None
) -> list[FloatArray]:
    r"""Estimate every node, non-negative and additive, from all measurements at once.

    The minimiser of

    .. math:: \sum_v (x_v - y_v)^2 / v_v \quad\text{subject to}\quad
              x_{parent} = \sum_c x_c,\; x_v \ge b_v,

    exact up to rounding, with :math:`b` the least that a node can hold (`least_values`): 0 where nothing is
    known. Values of variance 0 are kept. As a projection onto a convex set that holds the truth, it is closer
    to the truth than least squares in this norm in every draw. But where most leaves are empty, their cut-off
    noise pushes the totals up. One sort per level: O(n log n) time per level for n leaves, O(n) memory.
    """
    bounds = least_values(tree, measurements, variances, least=least)
    targets, noise = list(measurements), list(variances.noise)
    for level, held in enumerate(_at_their_bounds(tree, measurements, variances, bounds)):
        if held.any():
            targets[level] = np.where(held, bounds[level], _values(measurements, level))
            noise[level] = np.where(held, 0.0, noise[level])
    fitted = least_squares(tree, targets, propagate(tree, noise))
    return [np.maximum(estimate, bound) for estimate, bound in zip(fitted, bounds, strict=True)]


def _at_their_bounds(
    tree: Tree, measurements: Measurements, variances: Variances, bounds: list[FloatArray]
) -> list[npt.NDArray[np.bool_]]:
    """Return which nodes that are not known are held at their lower bounds in the optimum.

    A leaf holds ``max(b, y + μv)``, so it rises above its bound at the price ``(b - y)/v`` and adds the slope
    v. A node measured as y with precision p, whose children hold T(μ) together, holds t at the price
    ``T⁻¹(t) + p(t - y)``. Where its bound b is more than that of its children together, it rises above it at
    the price where ``t = b``; the entries before that price are above their own bounds in any case. A node
    whose value is known holds it at any price, and decides which entries below it are above their bounds.
    """
    sizes = tree.level_sizes
    first = np.cumsum([0, *sizes])
    held = np.zeros(tree.n_nodes, dtype=bool)
    noise = np.broadcast_to(variances.noise[-1], tree.n_leaves)
    node = np.flatnonzero(noise)
    entry, slope = first[-2] + node, noise[node]
    price = ((bounds[-1] - np.asarray(measurements[-1]))[node]) / slope
    for level in reversed(range(tree.depth)):
        node = np.broadcast_to(tree.spread(level, np.arange(sizes[level])), sizes[level + 1])[node]
        below = tree.sum_children(level, bounds[level + 1])
        bounded = (bounds[level] > below).any()
        if not len(entry) or (measurements[level] is None and not bounded):
            continue
        order = order_within(node, price)
        entry, node, price, slope = entry[order], node[order], price[order], slope[order]
        # The slope of T after each price, and the value of T at it.
        start = np.flatnonzero(np.diff(node, prepend=-1))
        counts = np.diff(start, append=len(node))
        steep = running_sum(slope, start, counts)
        gain = np.zeros(len(node))
        gain[1:] = steep[:-1] * np.diff(price)
        gain[start] = 0.0
        holds = np.broadcast_to(below, sizes[level])[node] + running_sum(gain, start, counts)
        missing = np.broadcast_to(_values(measurements, level), sizes[level])[node] - holds
        spread = np.broadcast_to(variances.noise[level], sizes[level])[node]
        known = spread == 0
        if known.any():
            held[entry[known]] = missing[known] <= 0
            entry, node, price, slope, steep, holds, missing, spread = (
                array[~known] for array in (entry, node, price, slope, steep, holds, missing, spread)
            )
        price = price - missing / spread
        slope = slope / ((1 + steep / spread) * (1 + (steep - slope) / spread))
        if bounded:
            # The node's entry replaces, in place of the last, all entries before the node reaches its bound.
            short = np.broadcast_to(bounds[level], sizes[level])[node] - holds
            before = short > 0
            last = before & np.append(~before[1:] | (np.diff(node) > 0), True)
            steep = steep / (1 + steep / spread)
            entry = np.where(last, first[level] + node, entry)
            price = np.where(last, price + short / steep, price)
            slope = np.where(last, steep, slope)
            kept = ~before | last
            entry, node, price, slope = entry[kept], node[kept], price[kept], slope[kept]
    held[entry] = price >= 0
    return np.split(held, first[1:-1])


def _values(measurements: Measurements, level: int) -> FloatArray:
    """Return the measurements of a level; 0 where there are none, since they have no weight."""
    measured = measurements[level]
    return np.zeros(1) if measured is None else np.asarray(measured, dtype=np.float64)
