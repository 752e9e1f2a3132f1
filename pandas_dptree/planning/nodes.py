r"""Shares of the budget that differ from node to node.

One row is counted once on every level, in the nodes of one path from the root to a leaf. So the shares need
not add up to the budget level by level, but along each path, and a node above few leaves may spend
differently from its neighbour above many. With shares :math:`a_v` of a rho, Gaussian noise has precision
:math:`p_v \propto a_v`, and the task is

.. math:: \min_a J(p), \qquad \sum_{v \in \text{path}} a_v \le 1 \text{ for every path},\; a \ge 0,

which is convex. It is solved by the two alternating steps of `pandas_dptree.planning.alternating`: J is
concave in the noise variances, so it lies below its tangent with slopes :math:`\partial J / \partial v_v`,
and the noise that minimises the tangent,

.. math:: \min_a \sum_v c_v / a_v, \qquad c_v = a_v^2 h_v, \quad h_v = -\partial J / \partial a_v,

is never worse than the present one. On a tree that minimum has a closed form: a subtree with all of the
budget costs :math:`C_v = (\sqrt{c_v} + \sqrt{\sum_c C_c})^2`, and of what its ancestors left, a node takes

.. math:: f_v = \sqrt{c_v} / \sqrt{C_v}, \qquad f_v / (1 - f_v) = \sqrt{c_v} / \sqrt{\textstyle\sum_c C_c}.

J falls like one over the budget, hence no shares cost less than :math:`J^2 / M`, with M the most that a
path-wise budget of one can make of the slopes: :math:`M_v = \max(h_v, \sum_c M_c)`. This bound decides when
to stop. A node whose count is known takes nothing: its slope is 0, and all of this holds for the others.

**Privacy**: shares are a function of the tree and the objective, which are public.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.planning.closed_form import uniform_tree_shares
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.known_counts import Flags, levels_to_measure
from pandas_dptree.planning.objective import Objective, cost_weights
from pandas_dptree.planning.variance import node_variances_and_vjp

__all__ = ["WHOLE", "node_shares"]

WHOLE = 2**52  # shares are multiples of 1 / WHOLE, so that they are floats and add up exactly
_SMALLEST_LEAF = WHOLE >> 30  # every leaf is measured, even if its error has no weight
_NEGLIGIBLE = WHOLE >> 34  # smaller shares are set to 0

_TOLERANCE = 5e-7  # of the cost, relative; a proven bound, usually too large by orders of magnitude
_MOST_STEPS = 3000  # most trees need less than a hundred; unusual weights and the worst level need many more
_MOST_WORK = 2**26  # steps times kinds of nodes: about five seconds, then the search on a large tree ends
# Log odds move towards the tangent's minimum by these multiples of the distance, in turn. A single step
# leaves 1 - r of the error, with r from 0 to 1; where r is small, the four together leave 1 - 11.5 r, as much
# as eleven single steps, and where it is not, at most the product of all |1 - stride * r|, which is 0.27.
_STRIDES = (1.0, 1.5, 3.0, 6.0)
_MOST_ODDS = 25.0  # log odds: beyond, a node takes all or nothing
_FIRST_ODDS = 7.0  # a node without a share at the start would take many steps to get one


def node_shares(
    tree: Tree,
    *,
    objective: Objective = "levels",
    level_weights: FloatArray | None = None,
    known: Flags | None = None,
) -> tuple[FloatArray, ...]:
    """Find the shares, node by node, for which least-squares estimates are most accurate.

    Parameters
    ----------
    tree : Tree
    objective : {"levels", "cells", "worst"}
        What is minimised; see `pandas_dptree.planning.objective.cost_weights`.
    level_weights : numpy.ndarray, shape (n_levels,), optional
        How much the error of a level matters, at least 0. By default all matter equally.
    known : Flags, optional
        The nodes whose counts are public: they have no error, and are informative about the others. By
        default none.

    Returns
    -------
    tuple of numpy.ndarray, shape (level_sizes[l],) or (1,)
        For each level the shares of its nodes, folded where all are equal. They are at least 0, those of the
        leaves above 0, and along every path from the root to a leaf they sum to 1: exactly, since all of them
        are multiples of 2**-52. A known node above the leaves has the share 0; a known leaf has what is left,
        which need not be spent.

    Raises
    ------
    ArgumentError
        If the objective is unknown, the weights are invalid, or all leaves are known.

    Notes
    -----
    **Privacy**: a function of the tree, which is public. `node_noise_scales` proves what the shares
    guarantee.

    The cost is within 5e-7 of its minimum over all shares, relatively, for noise whose precision is
    proportional to the share: Gaussian noise of a scale above 1. (On trees of more than 20,000 kinds of nodes
    the search may end before.) The minimum is not above that of any split by level, and on a uniform tree
    equal to it. Nodes with subtrees of the same shape below parents of the same kind get the same share,
    which costs nothing since the problem is convex.

    Examples
    --------
    The first county has one city, so that both are measured for the sake of one count; the second has three.

    >>> tree = Tree((np.array([2]), np.array([1, 3])))
    >>> for shares in node_shares(tree):
    ...     print(shares.round(3).tolist())
    [0.271]
    [0.278, 0.245]
    [0.45, 0.484, 0.484, 0.484]
    """
    unknown = levels_to_measure(tree, known)
    orbits = Orbits.of(tree, known)
    weights = cost_weights(orbits.n_listed, objective, level_weights)
    odds = _descend(orbits, weights, unknown, worst=objective == "worst")
    units = _whole_shares(orbits, odds)
    return tuple((part[:, 0] / WHOLE)[kind] for part, kind in zip(units, orbits.kinds, strict=True))


def _descend(
    orbits: Orbits, weights: FloatArray, unknown: npt.NDArray[np.bool_], *, worst: bool
) -> list[FloatArray]:
    """Find, for each kind of node above the leaves, the best log odds of taking what is left."""
    uniform = all(len(kind) == 1 for kind in orbits.listed)
    odds = _first_odds(orbits, weights, unknown, _MOST_ODDS if uniform else _FIRST_ODDS)
    multipliers = np.where(weights > 0, 1.0, 0.0) / (np.count_nonzero(weights) if worst else 1)
    best, least, bound = odds, np.inf, 0.0
    for step in range(min(_MOST_STEPS, max(_MOST_WORK // orbits.n_kinds, 100))):
        shares = _shares(orbits, odds)
        means, vjp = node_variances_and_vjp(orbits, shares)
        costs = weights * means[:, 0]
        value = float(costs.max() if worst else costs.sum())
        if value < least:
            best, least = odds, value
        if value == 0:  # the known counts determine everything with a weight, whatever the shares
            break
        slopes = [np.maximum(-slope, 0.0) for slope in vjp((multipliers * weights)[:, None])]
        # The largest cost is at least any mean of the costs; with multipliers, J is that mean.
        bound = max(bound, float((multipliers * costs).sum()) ** 2 / _most_of(orbits, slopes))
        if least <= bound * (1 + _TOLERANCE):
            break
        stride = _STRIDES[step % len(_STRIDES)]
        if worst:  # multipliers rise and fall with the costs, at the pace of the shares
            multipliers = np.where(
                weights > 0, np.maximum(multipliers * (costs / value) ** (stride / 2), 1e-12), 0.0
            )
            multipliers = multipliers / multipliers.sum()
        aims = _tangent_minimum(orbits, shares, slopes)
        odds = [
            np.clip(here + stride * (aim - here), -_MOST_ODDS, _MOST_ODDS)
            for here, aim in zip(odds, aims, strict=True)
        ]
    return best


def _first_odds(
    orbits: Orbits, weights: FloatArray, unknown: npt.NDArray[np.bool_], most: float
) -> list[FloatArray]:
    """Start with the shares by level that are best on a uniform tree of these level sizes."""
    sizes = np.array([kind.sum() for kind in orbits.kind_sizes()])
    shares = uniform_tree_shares(sizes, weights, unknown)
    left = np.cumsum(shares[::-1])[::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.clip(np.nan_to_num(np.log(shares[:-1] / left[1:])), -most, most)
    return [np.full((len(kind), 1), odd) for kind, odd in zip(orbits.listed[:-1], odds, strict=True)]


def _shares(orbits: Orbits, odds: list[FloatArray]) -> list[FloatArray]:
    """Compute shares from log odds, passing down what each node leaves."""
    left: FloatArray = np.ones((1, 1))
    shares = []
    for level, odd in enumerate(_barred(orbits, odds)):
        shares.append(left / (1 + np.exp(-odd)))
        left = orbits.spread(level, left / (1 + np.exp(odd)))
    return [*shares, left]


def _barred(orbits: Orbits, odds: list[FloatArray]) -> list[FloatArray]:
    """Set the odds so that known nodes take nothing."""
    if not orbits.has_known:
        return odds
    return [np.where(known, -np.inf, odd) for known, odd in zip(orbits.known[:-1], odds, strict=True)]


def _tangent_minimum(orbits: Orbits, shares: list[FloatArray], slopes: list[FloatArray]) -> list[FloatArray]:
    """Return the log odds at which the tangent at these shares is least."""
    roots = [share * np.sqrt(slope) for share, slope in zip(shares, slopes, strict=True)]  # of c_v
    whole, odds = roots[-1], []
    for level in reversed(range(orbits.depth)):
        below = np.sqrt(orbits.sum_kinds(level, whole**2))
        odds.append(np.log(np.maximum(roots[level], 1e-150) / np.maximum(below, 1e-150)))
        whole = roots[level] + below
    return odds[::-1]


def _most_of(orbits: Orbits, slopes: list[FloatArray]) -> float:
    """Return the largest sum of slopes times shares, over all shares that stay within the budget."""
    most = slopes[-1]
    for level in reversed(range(orbits.depth)):
        most = np.maximum(slopes[level], orbits.sum_kinds(level, most))
    return float(most.item())


def _whole_shares(orbits: Orbits, odds: list[FloatArray]) -> list[IntArray]:
    """Pass down a whole number of units, of which each node takes its part: every remainder is exact."""
    left: IntArray = np.full((1, 1), WHOLE, dtype=np.int64)
    units = []
    for level, odd in enumerate(_barred(orbits, odds)):
        taken = np.minimum((left / (1 + np.exp(-odd))).astype(np.int64), left - _SMALLEST_LEAF)
        taken = np.where(taken < _NEGLIGIBLE, 0, taken)
        units.append(taken)
        left = orbits.spread(level, left - taken)
    return [*units, left]
