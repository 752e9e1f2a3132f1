r"""Joint cumulants of the least-squares estimates of each node and of an ancestor, in O(n).

All are sums over the measurements, of products of powers of their weights, which follow from the tree and the
noise: public.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import FloatArray, Variances
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["cumulants_of_difference", "joint_cumulants"]


def joint_cumulants(
    tree: Tree,
    variances: Variances,
    cumulants: Sequence[tuple[FloatArray, FloatArray]],
    renew: Sequence[bool],
) -> list[list[FloatArray]]:
    r"""Return the joint cumulants of each node's error with that of an ancestor, of orders 2 and 4.

    `cumulants` are pairs for each level, of the variances and of the fourth cumulants of the measurements, 0
    where there is none or the value is known. The ancestor of the nodes below a level is on that level if
    `renew` is true there, and else that of the level. For each level the result has eight arrays:
    :math:`\kappa(x, x), \kappa(x, a), \kappa(a, a)`, then :math:`\kappa(x, x, x, x), \kappa(x, x, x, a)` to
    :math:`\kappa(a, a, a, a)`.

    Both errors are sums of independent parts: :math:`x = X z + B` and :math:`a = A z + B'` with the subtree
    estimate z of the node, and B, B' of measurements outside of its subtree. For a child c of the node, with
    the share r of its family's variance, and o the weight of the measurement y in z, the two passes give

    .. math::
        x_c = (1 - b)\,z_c - b \textstyle\sum_{s \ne c} z_s + r\,(X o\,y + B), \quad b = r\,(1 - X(1 - o)), \\
        a = A(1 - o)\,(z_c + \textstyle\sum_{s \ne c} z_s) + A o\,y + B'.
    """
    return [
        [*second, *fourth]
        for second, fourth in zip(
            *(
                _joint(tree, variances, [pair[place] for pair in cumulants], renew, order)
                for place, order in enumerate((2, 4))
            ),
            strict=True,
        )
    ]


def _joint(
    tree: Tree, variances: Variances, noise: Sequence[FloatArray], renew: Sequence[bool], order: int
) -> list[list[FloatArray]]:
    """Return the joint cumulants of one order, in the notation of `joint_cumulants`."""
    powers = range(order + 1)
    subtree, children = [noise[-1]], []
    for level in reversed(range(tree.depth)):
        own = variances.own[level]
        children.append(tree.sum_children(level, subtree[-1]))
        subtree.append(own**order * noise[level] + (1 - own) ** order * children[-1])
    subtree, children = subtree[::-1], children[::-1]
    x, a, rest = np.ones(1), np.ones(1), [np.zeros(1) for _ in powers]
    result = [[subtree[0]] * (order + 1)]
    for level in range(tree.depth):
        if renew[level]:
            a, rest = x, [rest[0]] * (order + 1)
        own, ratio = variances.own[level], _ratio_below(tree, variances, level)
        siblings = tree.spread(level, children[level]) - subtree[level + 1]
        above = [
            (x * own) ** (order - k) * (a * own) ** k * noise[level] + each for k, each in enumerate(rest)
        ]
        given = -ratio * (1 - tree.spread(level, x * (1 - own)))
        x, a = 1 + given, tree.spread(level, a * (1 - own))
        rest = [
            given ** (order - k) * a**k * siblings + ratio ** (order - k) * tree.spread(level, above[k])
            for k in powers
        ]
        result.append([x ** (order - k) * a**k * subtree[level + 1] + rest[k] for k in powers])
    return result


def cumulants_of_difference(
    joint: Sequence[npt.NDArray[np.float64]], t: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    r"""Return the variance and the fourth cumulant of :math:`x - t a`, from the eight `joint_cumulants`."""
    t = np.asarray(t, dtype=np.float64)
    second, fourth = (
        sum((comb(order, k) * (-t) ** k * each for k, each in enumerate(part)), np.zeros(1))
        for order, part in ((2, joint[:3]), (4, joint[3:]))
    )
    return np.maximum(second, 0.0), np.maximum(fourth, 0.0)


def _ratio_below(tree: Tree, variances: Variances, level: int) -> FloatArray:
    """Return the share of its family's variance of each node below a level; 0 where all are known."""
    part, whole = variances.subtree[level + 1], tree.spread(level, variances.children[level])
    with np.errstate(invalid="ignore"):
        return np.where(whole > 0, part / whole, 0.0)
