"""Gaussian noise whose scales differ from node to node: from shares of the budget, and back.

**Privacy**: scales are a function of the tree, the shares and the privacy loss, which are public.
`node_noise_scales` proves what they guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

import numpy as np

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE, SMALLEST_SCALE
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.nodes import WHOLE
from pandas_dptree.privacy.composition import largest_budget, node_gaussian_delta
from pandas_dptree.privacy.level_losses import NOTHING, LevelLoss, gaussian_level
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity

__all__ = ["check_paths", "node_noise_scales", "nodes_keep_to", "nodes_loss"]

_COST_UNIT = 2**61  # of a budget: sums of two costs, each cut off there, fit into 64 bits
_MOST_SCALES = 500  # of a tree: if there are more, they are rounded up to a grid
_GRID = 693.5  # steps per octave, of a thousandth each


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
        least = loss.rounded_down
        epsilon = cast(float, least.epsilon)
        rho = largest_budget(
            lambda rho: _delta(tree, _scales(rho, sensitivity, parts), epsilon, sensitivity),
            least.delta,
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
    largest = _largest_cost(tree, sensitivity, scales, Gaussian().accepted_budget(loss))
    if largest <= _COST_UNIT or loss.kind != "approximate":
        return largest <= _COST_UNIT
    least = loss.rounded_down
    return _delta(tree, tuple(scales), cast(float, least.epsilon), sensitivity) <= least.delta


def nodes_loss(tree: Tree, sensitivity: Sensitivity, scales: Sequence[FloatArray]) -> LevelLoss:
    r"""Return what Gaussian noise of these scales spends, on all levels together: that of the worst path.

    The arguments are those of `nodes_keep_to`. By the proof of `node_noise_scales` its rho is the largest sum
    of :math:`\Delta_2^2 / 2 \sigma_v^2` along a path, here rounded up by :math:`2^{-60}` of itself for each
    level at most.

    Examples
    --------
    >>> one_row = Sensitivity(l1=1, l2_squared=1)
    >>> scales = np.array([2.0]), np.array([1.0, 2.0])
    >>> round(float(nodes_loss(Tree.from_branching([2]), one_row, scales).rho), 9)  # 1/8 + 1/2
    0.625
    """
    least = [gaussian_level(float(scale.min()), sensitivity).rho for scale in scales]
    bound = 2 * sum(least, Fraction())  # no path spends more than half of it, so no sum of costs is cut off
    if not bound:
        return NOTHING
    return LevelLoss(
        epsilon=None, rho=bound * Fraction(_largest_cost(tree, sensitivity, scales, bound), _COST_UNIT)
    )


def _largest_cost(
    tree: Tree, sensitivity: Sensitivity, scales: Sequence[FloatArray], budget: Fraction
) -> int:
    """Return the largest part of the budget that a path spends, or something larger than the whole."""
    largest = np.zeros(1, dtype=np.int64)
    for level in reversed(range(tree.depth + 1)):
        below = tree.max_children(level, largest) if level < tree.depth else largest
        largest = np.minimum(_costs(scales[level], sensitivity, budget) + below, _COST_UNIT + 1)
    return int(largest.max())


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


def check_paths(tree: Tree, shares: Sequence[FloatArray]) -> None:
    """Check, exactly, that no path spends more than the whole and that every leaf is measured."""
    hint = "take them from node_shares."
    given = [np.asarray(part, dtype=np.float64) for part in shares]
    fits = len(given) == tree.depth + 1 and all(
        part.shape in {(1,), (size,)} for part, size in zip(given, tree.level_sizes, strict=True)
    )
    if not fits or not all(((part >= 0) & (part <= 1) & (part * WHOLE % 1 == 0)).all() for part in given):
        raise ArgumentError("split", "must give every node a multiple of 2**-52 from 0 to 1.", hint=hint)
    if not (given[-1] > 0).all():
        raise ArgumentError("split", "gives a leaf no share, but the leaves are always measured.", hint=hint)
    spent: IntArray = np.zeros(1, dtype=np.int64)
    for level, part in enumerate(given):
        above = tree.spread(level - 1, spent) if level else spent
        spent = above + (part * WHOLE).astype(np.int64)
        if (spent > WHOLE).any():  # checked on every level, so that the sums stay far below 2**63
            raise ArgumentError("split", "spends more than the budget along a path.", hint=hint)
