"""Estimates for the released nodes of an implicit tree, or of a hierarchy with private keys.

What a node holds beyond its released children, its *remainder*, is only known to be non-negative; noise
within a radius R bounds every count, with certainty if it is truncated there. All of it is post-processing of
noisy numbers, free of privacy cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.estimation.nonnegative import project_families
from pandas_dptree.estimation.rounding import round_to_whole
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["SparseLevel", "count_bounds", "remainder_bounds", "sparse_estimates", "summed"]

BoolArray = npt.NDArray[np.bool_]
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class SparseLevel:
    """The nodes of one level that a table shows, with the position of each one's `parent`, never falling.

    Nodes that are not `measured` are shown as ancestors, and hold at most the `radius` R of the noise; the
    root and the deepest are measured. A node is `complete` if all children that it can have are shown.
    `least` is 1 if only nodes that hold a record can be shown.
    """

    parent: IntArray
    noisy: IntArray
    measured: BoolArray
    complete: BoolArray
    variance: float
    radius: int
    least: int = 0


def count_bounds(levels: Sequence[SparseLevel]) -> tuple[list[IntArray], list[IntArray]]:
    """Return lower and upper bounds on the true counts of the nodes, if all noise is within its radius R.

    A measured node is within R of its noisy count, any other holds at most 2R; a node holds no less than its
    children together, and a child no more than its parent without the others.
    """
    lower: list[IntArray] = []
    children = np.zeros(1, dtype=np.int64)  # the least that the children of each node hold
    for place, level in reversed(list(enumerate(levels))):
        own = np.where(level.measured, level.noisy - level.radius, 0)
        lower.append(np.maximum(np.maximum(own, children), level.least))
        children = summed(level.parent, lower[-1], len(levels[max(place - 1, 0)].parent))
    lower.reverse()
    upper: list[IntArray] = []
    for place, level in enumerate(levels):
        most = np.where(level.measured, level.noisy + level.radius, 2 * level.radius)
        if upper:
            others = summed(level.parent, lower[place], len(upper[-1]))[level.parent] - lower[place]
            most = np.minimum(most, upper[-1][level.parent] - others)
        upper.append(np.maximum(most, 0))
    return lower, upper


def remainder_bounds(
    levels: Sequence[SparseLevel], lower: Sequence[IntArray], upper: Sequence[IntArray]
) -> tuple[list[IntArray], list[IntArray]]:
    """Return lower and upper bounds on the nodes' remainders, one array per level but the deepest.

    `lower` and `upper` are from `count_bounds`, and these bounds hold whenever those do.
    """
    least, most = [], []
    for place, below in enumerate(levels[1:]):
        n = len(lower[place])
        least.append(np.maximum(lower[place] - summed(below.parent, upper[place + 1], n), 0))
        most.append(upper[place] - summed(below.parent, lower[place + 1], n))
    return least, most


def sparse_estimates(
    levels: Sequence[SparseLevel],
    bounds: Sequence[IntArray],
    random_words: Callable[[int], npt.NDArray[np.uint64]],
) -> tuple[list[IntArray], list[IntArray]]:
    r"""Estimate the nodes and their remainders: whole numbers that add up.

    Least squares of the measurements :math:`y`,

    .. math:: \min \sum_{v\ \text{measured}} (x_v - y_v)^2 / \sigma_v^2 \quad\text{subject to}\quad
              x_v \ge \sum_{c\ \text{child of}\ v} x_c,

    with equality for nodes that are complete. Nodes whose children would have more than themselves are pooled
    with these: their remainder is 0 from then on. That is repeated until there are none. On a chain of nodes
    it is the pool-adjacent-violators algorithm and gives the exact minimiser; elsewhere, a remainder that
    would have to be freed again stays 0. Then each family, from the top down, is moved the least so that no
    node falls below its lower bound, and all is rounded by `round_to_whole`. Remainders are given for all
    levels but the deepest; 0 for nodes that are complete, or not measured themselves.
    """
    pooled = [level.complete | ~level.measured for level in levels[:-1]]
    while True:
        fitted = _least_squares(levels, pooled)
        crossed = [
            ~pool & (summed(below.parent, values, len(pool)) > np.maximum(above, 0.0))
            for pool, below, above, values in zip(pooled, levels[1:], fitted, fitted[1:], strict=False)
        ]
        if not any(cross.any() for cross in crossed):
            break
        pooled = [pool | cross for pool, cross in zip(pooled, crossed, strict=True)]
    estimates = [np.maximum(fitted[0], bounds[0])]
    for pool, level, values, least in zip(pooled, levels[1:], fitted[1:], bounds[1:], strict=True):
        estimates.append(_within(estimates[-1], pool, level.parent, np.maximum(values, least), least))
    return _rounded(levels, estimates, random_words)


def _least_squares(levels: Sequence[SparseLevel], pooled: Sequence[BoolArray]) -> list[FloatArray]:
    """Fit the nodes, as if the children of unpooled nodes carried no information about these.

    The two passes of `pandas_dptree.estimation.least_squares`, on the trees that pooled nodes make.
    """
    z = [level.noisy.astype(np.float64) for level in levels]
    variance = [np.where(level.measured, level.variance, np.inf) for level in levels]
    below, spread = [np.empty(0)] * len(pooled), [np.empty(0)] * len(pooled)
    for place in reversed(range(len(pooled))):
        pool, parent = pooled[place], levels[place + 1].parent
        below[place] = summed(parent, z[place + 1], len(pool))
        spread[place] = summed(parent, variance[place + 1], len(pool))
        weight = 1 / (1 + variance[place][pool] / spread[place][pool])
        z[place][pool] = below[place][pool] + weight * (z[place] - below[place])[pool]
        variance[place][pool] = (1 - weight) * spread[place][pool]
    fitted = [z[0]]
    for place, pool in enumerate(pooled):
        parent = levels[place + 1].parent
        missing = np.where(pool, fitted[-1] - below[place], 0.0)[parent]
        fitted.append(z[place + 1] + variance[place + 1] / spread[place][parent] * missing)
    return fitted


def _within(
    totals: FloatArray, pooled: BoolArray, parent: IntArray, estimates: FloatArray, least: IntArray
) -> FloatArray:
    """Move families to the totals of their parents, or not above them if they are not pooled."""
    counts = np.bincount(parent, minlength=len(totals))
    over = (summed(parent, estimates, len(totals)) > totals) | pooled
    families = np.flatnonzero(over & (counts > 0))
    if not len(families):
        return estimates
    member = over[parent]
    tree = Tree((np.array([len(families)]), counts[families]))
    room = totals - summed(parent, least, len(totals))
    moved = estimates.copy()
    moved[member] = least[member] + project_families(
        tree, 1, (estimates - least)[member], np.ones(1), np.maximum(room[families], 0.0)
    )
    return moved


def _rounded(
    levels: Sequence[SparseLevel],
    estimates: Sequence[FloatArray],
    random_words: Callable[[int], npt.NDArray[np.uint64]],
) -> tuple[list[IntArray], list[IntArray]]:
    """Round the nodes and their remainders together."""
    tree, nodes, rest = _with_remainders(levels)
    values = estimates[0]
    for place, (level, below) in enumerate(pairwise(levels)):
        remains = estimates[place] - summed(below.parent, estimates[place + 1], len(level.parent))
        values = np.repeat(values, np.broadcast_to(tree.child_counts[place], values.shape))
        values[rest[place][~level.complete]] = np.maximum(remains, 0.0)[~level.complete]
        values[nodes[place + 1]] = estimates[place + 1]
    whole = round_to_whole(tree, values, random_words)
    remainders = [
        np.where(level.complete, 0, below[place])
        for level, below, place in zip(levels[:-1], whole[1:], rest, strict=True)
    ]
    return [level[place] for level, place in zip(whole, nodes, strict=True)], remainders


def _with_remainders(levels: Sequence[SparseLevel]) -> tuple[Tree, list[IntArray], list[IntArray]]:
    """Return the tree of nodes and remainders, and the positions of nodes and of remainders in it.

    The remainder is the last child of each node that is not complete. The positions of nodes are listed for
    each level; those of its nodes' remainders, on the level below, for each level but the deepest.
    """
    child_counts, nodes, rest = [], [np.zeros(1, dtype=np.int64)], []
    n_above = 1
    for above, level in pairwise(levels):
        children, has_rest = np.ones(n_above, dtype=np.int64), np.ones(n_above, dtype=bool)
        has_rest[nodes[-1]] = ~above.complete
        children[nodes[-1]] = np.bincount(level.parent, minlength=len(nodes[-1])) + ~above.complete
        last = np.cumsum(children) - 1
        is_rest = np.zeros(last[-1] + 1, dtype=bool)
        is_rest[last[has_rest]] = True
        child_counts.append(children)
        rest.append(last[nodes[-1]])
        nodes.append(np.flatnonzero(~is_rest))
        n_above = len(is_rest)
    return Tree(tuple(child_counts)), nodes, rest


def summed(parent: IntArray, values: npt.NDArray[Number], n_parents: int) -> npt.NDArray[Number]:
    """Sum the values of the children of each node: shape (n_parents,), 0 where there are no children."""
    sums = np.zeros(n_parents, dtype=values.dtype)
    np.add.at(sums, parent, values)
    return sums
