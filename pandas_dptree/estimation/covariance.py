r"""Errors of sums and ratios of least-squares estimates, exactly, in O(n) and without a matrix.

The errors of the estimates of one tree depend on each other: those of siblings nearly cancel if their
parent is accurate. Every estimate is a weighted sum of independent measurements, so the k-th cumulant of
:math:`\sum_v w_v x_v` is :math:`\sum_v c_v^k\,\kappa_k(\xi_v)`, with the coefficients c of `coefficients`.
For pairs of a node and its ancestor, `joint_cumulants` gives all cumulants of one order in two passes.

Everything here is a function of the tree and of the noise, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import FloatArray, Variances
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["coefficients", "cumulant_of_sum", "cumulants_of_difference", "joint_cumulants"]


def coefficients(tree: Tree, variances: Variances, weights: Sequence[npt.ArrayLike]) -> list[FloatArray]:
    r"""Return the coefficient of each measurement in :math:`T = \sum_v w_v x_v`, level by level.

    The transpose of the two passes of least squares. With :math:`r_c = V_c/V_S`, going up the weight of a
    node takes in what its children receive of its estimate, :math:`W_p = w_p + \sum_c r_c W_c`. Going down,
    the subtree estimate of a child has in T the coefficient

    .. math:: G_c = W_c - \textstyle\sum_s r_s W_s + (1 - o_p)\,G_p, \qquad G_{root} = W_{root},

    with the sum over its siblings and itself, and :math:`o_p` the weight of the parent's own measurement in
    its subtree estimate. The coefficient of a measurement is :math:`c_v = o_v G_v`.

    >>> from pandas_dptree.estimation.least_squares import propagate
    >>> tree = Tree.from_branching([2])
    >>> root, leaves = coefficients(tree, propagate(tree, [1.0, 1.0]), [[0.0], [1.0, 0.0]])
    >>> root.round(3).tolist(), leaves.round(3).tolist()
    ([0.333], [0.667, -0.333])
    """
    total = [np.atleast_1d(np.asarray(level, dtype=np.float64)) for level in weights]
    means: list[FloatArray] = []
    for level in reversed(range(tree.depth)):
        received = tree.sum_children(level, _ratio_below(tree, variances, level) * total[level + 1])
        total[level] = total[level] + received
        means.append(received)
    subtree = [total[0]]
    for level, received in enumerate(reversed(means)):
        given = (1 - variances.own[level]) * subtree[level] - received
        subtree.append(total[level + 1] + tree.spread(level, given))
    return [own * level for own, level in zip(variances.own, subtree, strict=True)]


def cumulant_of_sum(coefficients: Sequence[FloatArray], cumulants: Sequence[FloatArray], order: int) -> float:
    """Return a cumulant of a weighted sum of measurements, whose own cumulants are given, level by level."""
    return float(sum(np.sum(each**order * own) for each, own in zip(coefficients, cumulants, strict=True)))


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
