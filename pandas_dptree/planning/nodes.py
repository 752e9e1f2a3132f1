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

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE, SMALLEST_SCALE
from pandas_dptree.planning.closed_form import uniform_tree_shares
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.known_counts import Flags, levels_to_measure
from pandas_dptree.planning.objective import Objective, cost_weights
from pandas_dptree.planning.variance import node_variances_and_vjp
from pandas_dptree.privacy.composition import largest_budget, node_gaussian_delta
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity

__all__ = ["check_paths", "node_noise_scales", "node_shares", "nodes_keep_to"]

_WHOLE = 2**52  # shares are multiples of 1 / _WHOLE, so that they are floats and add up exactly
_SMALLEST_LEAF = _WHOLE >> 30  # every leaf is measured, even if its error has no weight
_NEGLIGIBLE = _WHOLE >> 34  # smaller shares are set to 0

_COST_UNIT = 2**61  # of a budget: sums of two costs, each cut off there, fit into 64 bits
_MOST_SCALES = 500  # of a tree: if there are more, they are rounded up to a grid
_GRID = 693.5  # steps per octave, of a thousandth each
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
    return tuple((part[:, 0] / _WHOLE)[kind] for part, kind in zip(units, orbits.kinds, strict=True))


def node_noise_scales(
    tree: Tree, loss: PrivacyLoss, sensitivity: Sensitivity, shares: Sequence[FloatArray]
) -> tuple[FloatArray, ...]:
    r"""Return the scale of each node's Gaussian noise, rounded up so that every path stays within the budget.

    Parameters
    ----------
    tree : Tree
    loss : PrivacyLoss
        That of the whole release: a rho, or an epsilon with a delta.
    sensitivity : Sensitivity
        That of the counts of one level.
    shares : sequence of numpy.ndarray, shape (level_sizes[l],) or (1,)
        For each level, the part of the budget that each node spends, as from `node_shares`: a multiple of
        2**-52 from 0 to 1, above 0 for a leaf. A node whose share is 0 is not measured.

    Returns
    -------
    tuple of numpy.ndarray, shape (level_sizes[l],) or (1,)
        In counts; inf for a node that is not measured. A scale below 1e-3 is raised to 1e-3.

    Raises
    ------
    ArgumentError
        If the shares are no such shares or sum to more than 1 along a path, Gaussian noise cannot give this
        kind of privacy, or a node would need a noise scale above 1e12.

    Notes
    -----
    **Privacy**: counts plus discrete Gaussian noise of scales
    :math:`\sigma_v \ge \Delta_2 / \sqrt{2 \rho a_v}` are rho-zero-concentrated differentially private, for
    every neighbouring relation of `pandas_dptree.privacy.sensitivity.count_sensitivity` with its
    :math:`\Delta_2^2`.

    *Proof.* If the counts of neighbouring data sets differ by d, the release satisfies rho'-zCDP with
    :math:`\rho' = \sum_v d_v^2 / 2 \sigma_v^2 \le (\rho / \Delta_2^2)\,\lVert d \rVert_a^2`, where
    :math:`\lVert d \rVert_a^2 = \sum_v a_v d_v^2` (Canonne, Kamath and Steinke, "The discrete Gaussian for
    differential privacy", 2020, Theorem 14, which has a scale for each coordinate). It remains to show
    :math:`\lVert d \rVert_a \le \Delta_2`.

    *One row, added or removed.* It adds the indicator :math:`1_P` of one path P:
    :math:`\lVert 1_P \rVert_a^2 = \sum_{v \in P} a_v \le 1 = \Delta_2^2`.

    *Up to k rows, added or removed.* Whatever leaves they fall into, they add the sum of at most k such
    indicators, and by the triangle inequality for this (semi)norm its norm is at most
    :math:`k \max_P \lVert 1_P \rVert_a \le k = \Delta_2`.

    *Up to k rows, replaced.* The counts move by b − b' with two such sums. They are not negative, so
    :math:`(b_v - b'_v)^2 \le b_v^2 + b_v'^2` in every node, shared ancestors included, and
    :math:`\lVert b - b' \rVert_a^2 \le \lVert b \rVert_a^2 + \lVert b' \rVert_a^2 \le 2k^2 = \Delta_2^2`. ∎

    *Approximate loss.* With the norm's weights :math:`1 / (\sigma_v^2 - \tau_l^2)` in place of :math:`a_v`
    the same three steps bound the distance of neighbours under the continuous Gaussian noise that simulates
    the discrete one; `pandas_dptree.privacy.composition.node_gaussian_delta` has the rest. The rho used is
    the largest whose scales are proven to keep to delta, and never less than the rho that implies (epsilon,
    delta).

    *Rounding.* Shares are whole multiples of 2**-52, so the sums along all paths are checked in whole
    numbers, exactly. With u = 2**-53 and c a float not below :math:`\Delta_2^2 / 2\rho`, computing
    :math:`\sqrt{c / a}` loses at most the factor (1 − u)^(3/2), and multiplying by 1 + 4u, itself rounded,
    gains at least (1 + 4u)(1 − u); the product of the two is above 1. (c / a is in the normal range of
    floats, or the scale is one of the two limits.) So :math:`\Delta_2^2 / 2\sigma_v^2 \le \rho a_v` holds
    exactly for the floats that are returned.

    Examples
    --------
    >>> tree, one_row = Tree.from_branching([2]), Sensitivity(l1=1, l2_squared=1)
    >>> root, leaves = node_noise_scales(
    ...     tree, PrivacyLoss(rho=0.5), one_row, [np.array([0.25]), np.array([0.75, 0.5])]
    ... )
    >>> root.round(6).tolist(), leaves.round(6).tolist()
    ([2.0], [1.154701, 1.414214])
    """
    check_paths(tree, shares)
    parts = [np.asarray(part, dtype=np.float64) for part in shares]
    rho: Fraction | float = Gaussian().budget(loss)
    if loss.kind == "approximate":
        epsilon = cast(float, loss.epsilon)
        rho = largest_budget(
            lambda rho: _delta(tree, _scales(rho, sensitivity, parts), epsilon, sensitivity),
            loss.delta,
            at_least=float(rho),
        )
    scales = _scales(rho, sensitivity, parts)
    if any((scale[part > 0] > LARGEST_SCALE).any() for scale, part in zip(scales, parts, strict=True)):
        raise ArgumentError(
            "epsilon" if loss.rho is None else "rho",
            f"is too small: a node would need noise of a scale above {LARGEST_SCALE:.0e}.",
            hint="allow a larger privacy loss, or split the budget by level.",
        )
    return scales


def nodes_keep_to(
    tree: Tree, loss: PrivacyLoss, sensitivity: Sensitivity, scales: Sequence[FloatArray]
) -> bool:
    r"""Return whether Gaussian noise of these scales keeps to a loss, as that of `node_noise_scales` does.

    Parameters
    ----------
    tree, loss, sensitivity
        As for `node_noise_scales`.
    scales : sequence of numpy.ndarray, shape (level_sizes[l],) or (1,)
        In counts; inf for a node that is not measured.

    Notes
    -----
    **Privacy**: by the proof of `node_noise_scales`, the loss is at most the largest sum of
    :math:`\Delta_2^2 / 2 \sigma_v^2` along a path. It is computed in whole multiples of 2**-61 of the budget,
    each rounded up. Scales from `node_noise_scales` are larger than required by more than these roundings,
    on paths of up to 768 nodes: a cost is smaller than its part of the budget by 3 · 2**-53 of it.
    """
    if not Gaussian().supports(loss):
        return False
    budget = Gaussian().accepted_budget(loss)
    largest = np.zeros(1, dtype=np.int64)
    for level in reversed(range(tree.depth + 1)):
        below = tree.max_children(level, largest) if level < tree.depth else largest
        largest = np.minimum(_costs(scales[level], sensitivity, budget) + below, _COST_UNIT + 1)
    if largest.max() <= _COST_UNIT or loss.kind != "approximate":
        return bool(largest.max() <= _COST_UNIT)
    return _delta(tree, tuple(scales), cast(float, loss.epsilon), sensitivity) <= loss.delta


def _costs(scales: FloatArray, sensitivity: Sensitivity, budget: Fraction) -> IntArray:
    """Return the part of the budget that each node spends, rounded up."""
    distinct, where = np.unique(scales, return_inverse=True)
    unit = Fraction(sensitivity.l2_squared * _COST_UNIT, 2) / budget
    costs = [
        min(math.ceil(unit / Fraction(scale) ** 2), _COST_UNIT + 1) if math.isfinite(scale) else 0
        for scale in distinct.tolist()
    ]
    return np.array(costs, dtype=np.int64)[where.reshape(scales.shape)]


def _scales(
    rho: Fraction | float, sensitivity: Sensitivity, parts: list[FloatArray]
) -> tuple[FloatArray, ...]:
    """Return the scales for a rho, rounded up."""
    exact = Fraction(sensitivity.l2_squared) / (2 * Fraction(rho))
    cost = float(min(exact, Fraction(10) ** 300))
    cost = cost if Fraction(cost) >= exact else float(np.nextafter(cost, np.inf))
    with np.errstate(divide="ignore", over="ignore"):
        scales = [np.maximum(np.sqrt(cost / part) * (1 + 2.0**-51), SMALLEST_SCALE) for part in parts]
    if sum(len(np.unique(scale)) for scale in scales) > _MOST_SCALES:
        scales = [_on_grid(scale) for scale in scales]
    return tuple(scales)


def _on_grid(scales: FloatArray) -> FloatArray:
    """Round scales up to powers of 1.001, since the noise of all nodes of one scale is drawn together."""
    steps = np.ceil(np.log2(scales) * _GRID)
    grid = np.exp2(steps / _GRID)
    return np.asarray(np.where(grid < scales, np.exp2((steps + 1) / _GRID), grid))


def _delta(tree: Tree, scales: tuple[FloatArray, ...], epsilon: float, sensitivity: Sensitivity) -> float:
    """Return a delta for these scales; 1 where more budget would change nothing."""
    least = np.array([scale.min() for scale in scales])
    measured = np.flatnonzero(np.isfinite(least))
    if least.min() <= SMALLEST_SCALE:
        return 1.0

    def inverse_sum(kernels: FloatArray) -> float:
        taken = np.zeros(len(scales))
        taken[measured] = kernels
        largest = 1 / (scales[-1] ** 2 - taken[-1])
        for level in reversed(range(tree.depth)):
            largest = 1 / (scales[level] ** 2 - taken[level]) + tree.max_children(level, largest)
        return float(largest.max())

    return node_gaussian_delta(epsilon, least[measured], inverse_sum, sensitivity)


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
    left: IntArray = np.full((1, 1), _WHOLE, dtype=np.int64)
    units = []
    for level, odd in enumerate(_barred(orbits, odds)):
        taken = np.minimum((left / (1 + np.exp(-odd))).astype(np.int64), left - _SMALLEST_LEAF)
        taken = np.where(taken < _NEGLIGIBLE, 0, taken)
        units.append(taken)
        left = orbits.spread(level, left - taken)
    return [*units, left]


def check_paths(tree: Tree, shares: Sequence[FloatArray]) -> None:
    """Check, exactly, that no path spends more than the whole and that every leaf is measured."""
    hint = "take them from node_shares."
    given = [np.asarray(part, dtype=np.float64) for part in shares]
    fits = len(given) == tree.depth + 1 and all(
        part.shape in {(1,), (size,)} for part, size in zip(given, tree.level_sizes, strict=True)
    )
    if not fits or not all(((part >= 0) & (part <= 1) & (part * _WHOLE % 1 == 0)).all() for part in given):
        raise ArgumentError("split", "must give every node a multiple of 2**-52 from 0 to 1.", hint=hint)
    if not (given[-1] > 0).all():
        raise ArgumentError("split", "gives a leaf no share, but the leaves are always measured.", hint=hint)
    spent: IntArray = np.zeros(1, dtype=np.int64)
    for level, part in enumerate(given):
        above = tree.spread(level - 1, spent) if level else spent
        spent = above + (part * _WHOLE).astype(np.int64)
        if (spent > _WHOLE).any():  # checked on every level, so that the sums stay far below 2**63
            raise ArgumentError("split", "spends more than the budget along a path.", hint=hint)
