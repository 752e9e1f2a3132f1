r"""Non-negative estimates of counts of distinct units, which some units could have made.

A unit in a node is in at least one of its children, and counts in each of them once. So the count of a node
v and those of its children c satisfy

.. math:: 0 \le x_c \le x_v \le \sum_c x_c \le k\,x_v,

where k is the number of children, or less if a unit can be in fewer. All whole numbers that satisfy this are
the counts of some units: deal out those of the node to its children in turn, to each the next :math:`x_c`,
and begin again where they are used up. So no tighter bounds apply to a family.

From the top down, each family of children is fitted within these bounds, as in `nonnegative` within those of
counts that add up. All of it is post-processing of noisy numbers, free of privacy cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import (
    LEAST_VARIANCE,
    FloatArray,
    Measurements,
    Variances,
    subtree_estimates,
)
from pandas_dptree.estimation.nonnegative import family_blocks
from pandas_dptree.estimation.rounding import GRID_BITS, round_families
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["multipliers", "nonnegative_units"]

_LARGEST = 2**62
"""The sums of whole families stay below it, so that 64 bits hold them."""


def nonnegative_units(
    tree: Tree,
    measurements: Measurements,
    variances: Variances,
    excess: Measurements | None,
    max_nodes: Sequence[int],
    random_words: Callable[[int], npt.NDArray[np.uint64]] | None = None,
) -> list[npt.NDArray[Any]]:
    r"""Estimate the distinct units in every node, from the top down, within what units could have made.

    With the estimates :math:`z` and variances :math:`V` of the upward pass of least squares, and the excess
    measured as :math:`z_e` with variance :math:`V_e`, the root is :math:`x = \max(0, z)`, and the children of
    a node v solve

    .. math:: \min \sum_c (x_c - z_c)^2 / V_c + (e - z_e)^2 / V_e
              \quad\text{subject to}\quad \sum_c x_c = x_v + e,\;
              0 \le x_c \le x_v,\; 0 \le e \le (k - 1)\,x_v,

    where a unit can be in k of them: all, or as many nodes of their level as `max_nodes` says, an entry for
    each level. An excess that was not measured is free, one that is known is 0. Where no estimate is out of
    its bounds this is least squares itself; where nobody can be in two children, `nonnegative_totals`.

    With `random_words`, which returns so many 64-bit words, all are whole numbers within the same bounds:
    each child has the floor of its estimate, and the largest fractions of a family, ties broken by chance,
    are rounded up until it adds up to its rounded sum.

    >>> from pandas_dptree.estimation.least_squares import propagate
    >>> tree = Tree.from_branching([3])
    >>> variances = propagate(tree, [1.0, 1.0], [1.0])
    >>> noisy = [np.array([9]), np.array([-4, 8, 12])]
    >>> total, leaves = nonnegative_units(tree, noisy, variances, [np.array([7])], [1, 3])
    >>> total.round(6).tolist(), leaves.round(6).tolist()
    ([9.0], [0.0, 7.5, 9.0])
    """
    subtree = subtree_estimates(tree, measurements, variances, excess)[0][::-1]
    caps = [
        np.where(none == 0, 0, np.minimum(counts, most) - 1)
        for none, counts, most in zip(variances.excess, tree.child_counts, max_nodes[1:], strict=True)
    ]
    root = np.maximum(subtree.pop(), 0.0)
    estimates: list[npt.NDArray[Any]] = [root]
    if random_words is not None:
        largest = _LARGEST // (1 + max((int(cap.max()) for cap in caps), default=0))
        estimates = [np.floor(np.minimum(root, largest) + 0.5).astype(np.int64)]
    for level, cap in enumerate(caps):
        above, measured = estimates[level], None if excess is None else excess[level]
        fitted = _fit_families(tree, level, subtree.pop(), variances, measured, above.astype(np.float64), cap)
        if random_words is None:
            estimates.append(fitted)
        else:
            estimates.append(_whole_families(tree, level, fitted, above, cap, random_words))
    return estimates


def _fit_families(
    tree: Tree,
    level: int,
    estimates: FloatArray,
    variances: Variances,
    excess: npt.NDArray[np.int64] | FloatArray | None,
    totals: FloatArray,
    caps: IntArray,
) -> FloatArray:
    """Fit the children of each node of a level to the node's estimate, block by block."""
    size = tree.level_sizes[level]
    counts, most = np.broadcast_to(tree.child_counts[level], size), totals * caps
    beyond = np.broadcast_to(variances.excess[level], size)
    noisy = np.broadcast_to(0.0 if excess is None else np.where(beyond > 0, excess, 0.0), size)
    spread = np.broadcast_to(np.maximum(variances.subtree[level + 1], LEAST_VARIANCE), estimates.shape)
    fitted = np.empty(estimates.shape)
    for members, families in family_blocks(counts):
        fitted[members] = _fit(
            estimates[members],
            spread[members],
            noisy[families],
            beyond[families],
            totals[families],
            most[families],
            counts[families],
        )
    return fitted


def _fit(
    estimates: FloatArray,
    variances: FloatArray,
    excess: FloatArray,
    excess_variances: FloatArray,
    totals: FloatArray,
    most_excess: FloatArray,
    counts: IntArray,
) -> FloatArray:
    """Fit families that follow one another in the arrays.

    The negated excess is one more member, from -most_excess to 0. If it was not measured, the children stay
    as they are, or their sum is moved to the nearest that is possible.
    """
    n = len(totals)
    family = np.repeat(np.arange(n), counts)
    most = totals[family]
    sums, unsolved = totals, (totals > 0) & (counts > 1)
    free = np.isinf(excess_variances)
    if free.any():
        clipped = np.bincount(family, np.clip(estimates, 0.0, most), n)
        sums = np.where(free, np.clip(clipped, totals, totals + most_excess), totals)
        unsolved &= ~free | (sums != clipped)
    children = np.flatnonzero(unsolved[family])
    beside = np.flatnonzero(unsolved & ~free & (most_excess > 0))
    theta = multipliers(
        np.concatenate([estimates[children], -excess[beside]]),
        np.concatenate([variances[children], excess_variances[beside]]),
        np.concatenate([np.zeros(len(children)), -most_excess[beside]]),
        np.concatenate([most[children], np.zeros(len(beside))]),
        np.concatenate([family[children], beside]),
        sums,
    )
    fitted = np.clip(estimates + theta[family] * variances, 0.0, most)
    return np.where((counts == 1)[family], most, fitted)


def multipliers(
    values: FloatArray,
    variances: FloatArray,
    least: FloatArray,
    most: FloatArray,
    family: IntArray,
    sums: FloatArray,
) -> FloatArray:
    r"""Return for each family the :math:`\theta` with which its members add up to its sum.

    Members are :math:`x = z + \theta V` within bounds. Without bounds, :math:`\theta` follows from a linear
    equation. If the clipped sum of its solution is too small, then so is :math:`\theta`, and members that
    have reached their upper bounds stay there; if it is too large, those at their lower bounds do. Then the
    equation of the others is solved again (Bitran & Hax, Management Science 27(4), 1981), until there are no
    such members. Each step settles at least one of a family, and mostly so many that a few steps are enough.
    Known too small or too large, :math:`\theta` never goes back, whatever the rounding errors.
    """
    n = len(sums)
    theta, low, high = np.zeros(n), np.full(n, -np.inf), np.full(n, np.inf)
    while len(family):
        slope = np.bincount(family, variances, n)
        np.divide(sums - np.bincount(family, values, n), slope, out=theta, where=slope > 0)
        theta = np.clip(theta, low, high)
        x = values + theta[family] * variances
        clipped = np.clip(x, least, most)
        beyond = np.bincount(family, clipped, n) - sums
        low, high = np.where(beyond < 0, theta, low), np.where(beyond > 0, theta, high)
        side = np.sign(beyond)[family]
        settled = ((side < 0) & (x >= most)) | ((side > 0) & (x <= least))
        sums = sums - np.bincount(family, np.where(settled, clipped, 0.0), n)
        goes_on = np.bincount(family[settled], minlength=n) > 0
        rest = np.flatnonzero(~settled & goes_on[family])
        values, variances, least, most = (each[rest] for each in (values, variances, least, most))
        family = family[rest]
    return theta


def _whole_families(
    tree: Tree,
    level: int,
    fitted: FloatArray,
    totals: IntArray,
    caps: IntArray,
    random_words: Callable[[int], npt.NDArray[np.uint64]],
) -> IntArray:
    """Round the children of each node of a level, whose counts are whole, to whole numbers within bounds."""
    bits = max(0, min(GRID_BITS, 61 - math.ceil(math.log2(fitted.sum() + 1))))
    exact = np.rint(np.ldexp(fitted, bits)).astype(np.int64)
    sums = (tree.sum_children(level, exact) + (1 << bits >> 1)) >> bits
    sums = np.clip(sums, totals, totals + caps * totals)
    whole = np.minimum(
        round_families(tree, level, exact, sums, bits, random_words), tree.spread(level, totals)
    )
    missing = sums - tree.sum_children(level, whole)
    return whole if not missing.any() else _add_missing(tree, level, whole, totals, missing)


def _add_missing(tree: Tree, level: int, whole: IntArray, totals: IntArray, missing: IntArray) -> IntArray:
    """Add what families miss to their first members with room for it: rounding errors of huge numbers."""
    short, sign = tree.spread(level, np.abs(missing)), tree.spread(level, np.sign(missing))
    room = np.minimum(np.where(sign > 0, tree.spread(level, totals) - whole, whole), short)
    counts = np.broadcast_to(tree.child_counts[level], len(totals))
    ends = np.cumsum(room)
    before = ends - room - np.repeat((ends - room)[np.cumsum(counts) - counts], counts)
    return np.asarray(whole + sign * np.clip(short - before, 0, room))
