r"""The expected error of a release, from the tree and the noise alone.

After least squares on a tree the variance of every node is a fixed function of the noise variances. In an
upward pass each node's own measurement (precision p) is averaged with the sum of its children's estimates,

.. math:: V_S = \sum_c V_c, \qquad V = \frac{1}{p + 1 / V_S},

and in a downward pass the parent's better estimate is passed on to its children,

.. math:: \mathrm{Var}(x_c) = V_c (1 - r_c) + r_c^2\,\mathrm{Var}(x_{parent}), \qquad r_c = V_c / V_S,

from :math:`V = 1/p` at the leaves and :math:`\mathrm{Var}(x) = V` at the root. A node whose count is public
has the precision :math:`p = \infty`, and so V = 0, whatever its level spends. No record is ever looked at.

Counts of distinct units do not add up: the sum of the children's exceeds that of the node by E. The variance
of a measurement of E is one more term of :math:`V_S`, as if -E were one more child.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.known_counts import Flags

__all__ = [
    "level_variances",
    "level_variances_and_vjp",
    "unrelated_variances_and_vjp",
]


def level_variances(tree: Tree, noise_variances: npt.ArrayLike, *, known: Flags | None = None) -> FloatArray:
    """Return the mean variance of the least-squares estimates of each level, in squared counts.

    The mean is over the nodes of the level that a table shows; nan where it shows none. The noise variances
    are inf for a level that is not measured, 0 for one that is known.

    >>> level_variances(Tree.from_branching([2]), [1.0, 1.0]).round(6).tolist()
    [0.666667, 0.666667]
    """
    orbits = Orbits.of(tree, known)
    with np.errstate(divide="ignore"):
        precisions = 1 / np.asarray(noise_variances, dtype=np.float64)
    means, _ = level_variances_and_vjp(orbits, precisions[:, None])
    return np.where(orbits.n_listed > 0, means[:, 0], np.nan)


def level_variances_and_vjp(
    orbits: Orbits, precisions: FloatArray
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """Return the mean variance of each level, and its vector-Jacobian product by the precisions.

    These have shape (n_levels, n_batch): 0 where nothing is measured, inf where values are known, as those of
    kinds that the orbits call known. If counts do not add up, those of the excess of each level but the last
    follow; it is known where a node has one child. The product maps weights u of the levels to the gradient
    of ``sum(u * means)``.
    """
    precisions, of_excess = np.split(precisions, [orbits.depth + 1])
    measured = [level[None] for level in precisions]
    if orbits.has_known:
        measured = [
            np.where(known, np.inf, level) for known, level in zip(orbits.known, measured, strict=True)
        ]
    with np.errstate(divide="ignore"):
        excess = [
            np.where(one, 0.0, 1 / level) for one, level in zip(orbits.single_child, of_excess, strict=False)
        ]
        below, subtree = [], [1 / measured[-1]]
        for level in reversed(range(orbits.depth)):
            below.append(orbits.sum_children(level, subtree[-1]) + (excess[level] if excess else 0.0))
            subtree.append(1 / (measured[level] + 1 / below[-1]))
    below, subtree = below[::-1], subtree[::-1]
    final, ratios, kept = [subtree[0]], [], []
    for level in range(orbits.depth):
        ratio = _ratio(subtree[level + 1], orbits.spread(level, below[level]))
        passed_on = ratio**2 * orbits.spread(level, final[level])
        ratios.append(ratio)
        kept.append(_ratio(final[level], below[level]))
        final.append(subtree[level + 1] * (1 - ratio) + passed_on)
    parts = [
        listed / max(total, 1) for listed, total in zip(orbits.listed, orbits.n_listed.tolist(), strict=True)
    ]
    means = np.stack([(part * variance).sum(axis=0) for part, variance in zip(parts, final, strict=True)])

    def vjp(weights: FloatArray) -> FloatArray:
        # The two passes backwards. d_* is the derivative with respect to the quantity named.
        d_final = weights[-1] * parts[-1]
        d_subtree, d_below, d_excess = [], [], []
        for level in reversed(range(orbits.depth)):
            slope = 1 - 2 * ratios[level] * (1 - orbits.spread(level, kept[level]))
            d_subtree.append(d_final * slope)
            if excess:
                squares = orbits.sum_kinds(level, d_final * subtree[level + 1] ** 2)
                d_excess.append(squares * (1 - 2 * kept[level]))  # by V_S, times its square, which may be inf
            passed_on = orbits.sum_kinds(level, d_final * ratios[level] ** 2)
            d_below.append(passed_on * (1 - 2 * kept[level]))
            d_final = passed_on + weights[level] * parts[level]
        d_subtree, d_below, d_excess = d_subtree[::-1], d_below[::-1], d_excess[::-1]
        d_here, gradient, by_excess = d_final, [], []
        for level in range(orbits.depth):
            gradient.append(-(subtree[level] ** 2 * d_here).sum(axis=0))
            if excess:
                part = np.where(np.isinf(excess[level]), 1.0, _ratio(excess[level], below[level]))
                by_excess.append(-(part**2 * (d_excess[level] + d_here * subtree[level] ** 2)).sum(axis=0))
            d_family = d_below[level] + d_here * _ratio(subtree[level], below[level]) ** 2
            d_here = d_subtree[level] + orbits.copies[level] * orbits.spread(level, d_family)
        gradient.append(-(subtree[-1] ** 2 * d_here).sum(axis=0))
        return np.stack(gradient + by_excess)

    return means, vjp


def unrelated_variances_and_vjp(
    part_unknown: FloatArray, precisions: FloatArray
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """Return the mean variance of each level where measurements are published as they are.

    `part_unknown` is `Orbits.part_unknown`; precisions are above 0 where it is. Otherwise as
    `level_variances_and_vjp`.
    """
    parts = np.broadcast_to(part_unknown[:, None], precisions.shape)

    def over(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
        return np.divide(numerator, denominator, out=np.zeros_like(parts), where=parts > 0)

    return over(parts, precisions), lambda weights: over(-weights * parts, precisions**2)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Divide; 0 where the whole is known, since nothing is to be divided there."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(whole > 0, part / whole, 0.0))
