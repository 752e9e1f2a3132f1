"""Non-negative estimates that keep their totals.

From the top down, each family of children is projected onto its parent's total, so the levels above stay as
unbiased as least squares leaves them. Known values stay as they are, and no node falls below its known lower
bound. All of it is post-processing of noisy numbers, free of privacy cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import (
    ROUNDING,
    FloatArray,
    Measurements,
    Variances,
    check_measurements,
    subtree_estimates,
)
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = [
    "Bounds",
    "family_blocks",
    "least_values",
    "nonnegative_totals",
    "order_within",
    "project_families",
    "running_sum",
]

Bounds = Sequence[IntArray | FloatArray]

_BLOCK = 2**16
"""Members sorted at a time: their keys, families and ranks fit into the processor's cache."""


def nonnegative_totals(
    tree: Tree, measurements: Measurements, variances: Variances, *, least: Bounds | None = None
) -> list[FloatArray]:
    r"""Estimate every node, non-negative and additive, from the top down.

    With the estimates :math:`z` and variances :math:`V` of the upward pass of least squares, the root is
    :math:`x = \max(b, z)`, and the children of a node solve

    .. math:: \min \sum_c (x_c - z_c)^2 / V_c
              \quad\text{subject to}\quad \sum_c x_c = x_{parent},\; x_c \ge b_c,

    where :math:`b` is the least that a node can hold (`least_values`): 0 where nothing is known. The
    minimiser is :math:`x_c = \max(b_c, z_c - \theta V_c)` with the one :math:`\theta` for which the family
    adds up; a known member has :math:`V_c = 0` and keeps its value. Where no estimate falls below its bound
    this is least squares itself.

    >>> from pandas_dptree.estimation.least_squares import propagate
    >>> tree = Tree.from_branching([3])
    >>> variances = propagate(tree, [1.0, 1.0])
    >>> total, leaves = nonnegative_totals(tree, [np.array([9]), np.array([-4, 2, 8])], variances)
    >>> total.round(6).tolist(), leaves.round(6).tolist()
    ([8.25], [0.0, 1.125, 7.125])
    """
    bounds = least_values(tree, measurements, variances, least=least)
    subtree = subtree_estimates(tree, measurements, variances)[0][::-1]
    estimates = [np.maximum(subtree.pop(), bounds[0])]
    for level in range(tree.depth):
        bound = bounds[level + 1]
        excess = subtree.pop() - bound  # arrays of all leaves are freed as soon as they are used
        total = estimates[level] - tree.sum_children(level, bound)
        projected = project_families(tree, level, excess, variances.subtree[level + 1], total)
        projected += bound
        estimates.append(projected)
    return estimates


def least_values(
    tree: Tree, measurements: Measurements, variances: Variances, *, least: Bounds | None = None
) -> list[FloatArray]:
    """Return the least that each node can hold, by its known value (variance 0), its bound or its children.

    It is 0 where nothing at or below a node is known. A node may be given a smaller bound than its children.
    """
    check_measurements(tree, measurements, variances)
    if least is not None:
        _check_bounds(tree, least)
    bounds: list[FloatArray] = []
    for level in reversed(range(tree.depth + 1)):
        below = tree.sum_children(level, bounds[-1]) if bounds else np.zeros(1)
        bound = below if least is None else np.maximum(below, least[level])
        known, measured = variances.subtree[level] == 0, measurements[level]
        if known.any():  # known, or the sum of children that are
            value = below if measured is None else np.where(variances.noise[level] == 0, measured, below)
            if (known & (value < bound * (1 - ROUNDING))).any():
                raise ArgumentError(
                    "measurements",
                    f"at level {level} has a known value that is negative, or less than its lower bound or "
                    "than the sum of the known values and bounds below it.",
                    hint="correct one of the known values or bounds, or leave one of them out.",
                )
            bound = np.where(known, value, bound)
        bounds.append(bound)
    return bounds[::-1]


def _check_bounds(tree: Tree, least: Bounds) -> None:
    """Refuse bounds of the wrong shape, negative, or not finite numbers."""
    fits = len(least) == tree.depth + 1 and all(
        np.shape(bound) in {(1,), (size,)} and bool((np.isfinite(bound) & (np.asarray(bound) >= 0)).all())
        for bound, size in zip(least, tree.level_sizes, strict=True)
    )
    if not fits:
        raise ArgumentError(
            "least",
            f"must hold, for each of the {tree.depth + 1} levels, one finite number of at least 0 per node.",
            hint="np.zeros(1) stands for a level without bounds.",
        )


def project_families(
    tree: Tree, level: int, estimates: FloatArray, variances: FloatArray, totals: FloatArray
) -> FloatArray:
    """Project each family of children onto the non-negative values that add up to its total.

    The families are projected in blocks, so that intermediate arrays stay in the processor's cache and in
    memory that the process already has.
    """
    counts = np.broadcast_to(tree.child_counts[level], tree.level_sizes[level])
    variances = np.broadcast_to(variances, estimates.shape)
    projected = np.empty(estimates.shape)
    for members, families in family_blocks(counts):
        projected[members] = _project(
            estimates[members], variances[members], totals[families], counts[families]
        )
    return projected


def family_blocks(counts: IntArray, size: int = _BLOCK) -> Iterator[tuple[slice, slice]]:
    """Yield the members and the families of blocks of whole families, of about `size` members each."""
    ends = np.cumsum(counts)
    firsts = np.searchsorted(ends, np.arange(0, ends[-1], size), side="right")
    for first, last in pairwise(np.unique([*firsts, len(counts)]).tolist()):
        yield slice(ends[first] - counts[first], ends[last - 1]), slice(first, last)


def _project(
    estimates: FloatArray, variances: FloatArray, totals: FloatArray, counts: IntArray
) -> FloatArray:
    """Project families that follow one another in the arrays.

    Sorted by falling z/V, the children that stay positive come first; after j of them the multiplier would be
    θ_j = (Σ z - total) / Σ V, and the j-th is positive as long as z_j / V_j > θ_j. The running sums only
    decide which ones stay: θ itself is then summed family by family, free of their rounding errors. Members
    without variance come last and stay 0.
    """
    start = np.cumsum(counts) - counts
    with np.errstate(divide="ignore", invalid="ignore"):  # 0/0 in families without variance
        price = np.where(variances > 0, estimates / variances, -np.inf)
        order = order_within(np.repeat(np.arange(len(counts)), counts), -price)
        z, v = estimates[order], variances[order]
        theta = (running_sum(z, start, counts) - np.repeat(totals, counts)) / running_sum(v, start, counts)
        stays = price[order] > theta
        stays[start] = True
        multiplier = (np.add.reduceat(z * stays, start) - totals) / np.add.reduceat(v * stays, start)
        projected = np.maximum(estimates - np.repeat(multiplier, counts) * variances, 0.0)
    return np.asarray(np.where(np.repeat(totals > 0, counts) & (variances > 0), projected, 0.0))


def order_within(family: IntArray, keys: FloatArray) -> IntArray:
    """Return the order of the members by `family`, which never falls, and by their keys within it.

    Blocks of whole families, small enough for the processor's cache, are sorted by the keys, then by family
    and rank.
    """
    order = np.empty(len(keys), dtype=np.int64)
    starts = np.searchsorted(family, family[_BLOCK::_BLOCK])
    for start, stop in pairwise(np.unique([0, *starts, len(keys)]).tolist()):
        n = stop - start
        by_key = np.argsort(keys[start:stop])
        ranked = (family[start:stop] - family[start])[by_key] * n + np.arange(n)
        ranked.sort()
        order[start:stop] = by_key[ranked % n] + start
    return order


def running_sum(values: FloatArray, start: IntArray, counts: IntArray) -> FloatArray:
    """Return cumulative sums that restart at each `start` of a family, of `counts` members each.

    The sum of the family before is subtracted from the first value of each, so sums stay as exact as their
    families are small; the remaining rounding error is subtracted at the end.
    """
    steps = values.copy()
    steps[start[1:]] -= np.add.reduceat(values, start)[:-1]
    total = np.cumsum(steps)
    return np.asarray(total - np.repeat(total[start] - values[start], counts))
