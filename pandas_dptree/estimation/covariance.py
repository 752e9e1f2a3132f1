r"""Exact moments of sums of least-squares estimates, such as regions that are no node of the tree.

A sum :math:`T = \sum_v w_v x_v` of estimates is a sum of the measurements, :math:`T = \sum_v c_v y_v`. The
coefficients c follow from the weights w by the two passes of least squares in reverse order, each transposed.
Measurements have independent noise, so variances, covariances and fourth cumulants are sums over nodes, and
nobody needs the covariance of each pair of nodes.

**Privacy**: functions of the tree and of the noise, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import FloatArray, Variances
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["coefficients", "covariance", "covariances_with_level", "moments", "variance"]


def coefficients(tree: Tree, variances: Variances, weights: Sequence[npt.ArrayLike]) -> list[FloatArray]:
    r"""Return the coefficient of each measurement in a weighted sum of estimates, an array per level.

    `weights` has an array per level, of shape (level_sizes[l],) or (1,). The downward pass
    :math:`x_c = z_c + r_c (x_p - \sum_s z_s)` transposed is

    .. math:: W_p = w_p + \sum_c r_c W_c,

    after which :math:`z_c` has the weight :math:`W_c - \bar W_p` with :math:`\bar W_p = \sum_c r_c W_c`, and
    the root :math:`W_{root}`. The upward pass :math:`z_p = o_p y_p + (1 - o_p) \sum_c z_c` transposed is

    .. math:: G_c = W_c - \bar W_p + (1 - o_p)\,G_p, \qquad c_v = o_v G_v.

    >>> from pandas_dptree.estimation.least_squares import propagate
    >>> tree = Tree.from_branching([2])
    >>> total, leaves = coefficients(tree, propagate(tree, [1.0, 1.0]), [0.0, [1.0, 0.0]])
    >>> total.round(6).tolist(), leaves.round(6).tolist()
    ([0.333333], [0.666667, -0.333333])
    """
    of_estimates = [
        np.broadcast_to(np.atleast_1d(np.asarray(each, dtype=np.float64)), size)
        for each, size in zip(weights, tree.level_sizes, strict=True)
    ]
    ratios = [
        _ratio(variances.subtree[level + 1], tree.spread(level, variances.children[level]))
        for level in range(tree.depth)
    ]
    lifted, means = [of_estimates[-1]], []
    for level in reversed(range(tree.depth)):
        mean = _sums(tree, level, ratios[level] * lifted[-1])
        means.append(mean)
        lifted.append(of_estimates[level] + mean)
    lifted, means = lifted[::-1], means[::-1]
    of_subtree, result = lifted[0], []
    for level in range(tree.depth):
        own = variances.own[level]
        result.append(own * of_subtree)
        below = (1 - own) * of_subtree - means[level]
        of_subtree = lifted[level + 1] + _spread(tree, level, below)
    return [*result, variances.own[-1] * of_subtree]


def covariance(variances: Variances, first: Sequence[FloatArray], second: Sequence[FloatArray]) -> float:
    """Return the covariance of two sums, of which the coefficients are given."""
    return sum(
        float((a * b * np.where(np.isfinite(noise), noise, 0.0)).sum())
        for a, b, noise in zip(first, second, variances.noise, strict=True)
    )


def covariances_with_level(tree: Tree, variances: Variances, level: int) -> list[FloatArray]:
    """Return the covariance of each node of a level, and of the levels below, with its ancestor on the level.

    The ancestor is a function of a child c and its siblings through their sum S alone, of which
    :math:`z_c - (V_c / V_S) S` is independent: so the covariance of c is that of its parent times
    :math:`V_c / V_S`.
    """
    found = [variances.final[level]]
    for above in range(level, tree.depth):
        below = tree.spread(above, variances.children[above])
        found.append(_ratio(variances.subtree[above + 1], below) * tree.spread(above, found[-1]))
    return found


def variance(variances: Variances, of: Sequence[FloatArray]) -> float:
    """Return the variance of a sum, of which the coefficients are given."""
    return covariance(variances, of, of)


def moments(
    variances: Variances, fourth_cumulants: Sequence[npt.ArrayLike], of: Sequence[FloatArray]
) -> tuple[float, float, float]:
    """Return the variance, the fourth cumulant and the step of a sum: see `error_half_widths`.

    The fourth cumulants are those of the noise of each measurement, 0 where there is none.
    """
    fourth = sum(
        float((each**4 * np.asarray(cumulants)).sum())
        for each, cumulants in zip(of, fourth_cumulants, strict=True)
    )
    noisy = [
        np.where((noise > 0) & np.isfinite(noise), each, 0.0)
        for noise, each in zip(variances.noise, of, strict=True)
    ]
    step = sum(float((each**4).sum()) for each in noisy) ** 0.25
    return variance(variances, of), fourth, min(step, 1.0)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Return the share of a family's variance; 0 where all its members are known."""
    with np.errstate(invalid="ignore"):
        return np.where(whole > 0, part / whole, 0.0)


def _sums(tree: Tree, level: int, values: FloatArray) -> FloatArray:
    """Add up the values of the children of each node, one value for each node."""
    return np.broadcast_to(tree.sum_children(level, values), tree.level_sizes[level])


def _spread(tree: Tree, level: int, values: FloatArray) -> FloatArray:
    """Return the value of its parent for each node of the next level."""
    return np.broadcast_to(tree.spread(level, values), tree.level_sizes[level + 1])
