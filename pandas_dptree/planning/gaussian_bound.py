r"""A lower bound on the mean error of additive Gaussian noise, for comparison with a plan.

Unbiased estimates of the leaves with Gaussian errors of any covariance C protect a row in leaf i with
:math:`\rho = P_{ii} / 2`, where :math:`P = C^{-1}`. This holds for every strategy, with trees or without,
and for correlated noise too. The total error of the nodes, with weight :math:`u_v` for node v, is
:math:`\mathrm{tr}(U C)` with :math:`U = \sum_v u_v 1_v 1_v^\top` (:math:`1_v`: the indicator of the leaves
below v). By the Cauchy-Schwarz inequality, for every y > 0 over the leaves and D = diag(y),

.. math:: \mathrm{tr}(U P^{-1}) \cdot \sum_i y_i P_{ii} \ge \bigl(\mathrm{tr}\,W^{1/2}\bigr)^2,
          \qquad W = D^{1/2} U D^{1/2},

so with :math:`P_{ii} \le 1` the error is at least :math:`(\mathrm{tr}\,W^{1/2})^2 / \sum_i y_i`. With y = 1
this is the singular value bound (Li and Miklau, "Optimal error of query sets under the
differentially-private matrix mechanism", 2013), which uniform trees attain; the best y makes it tight for
any tree, by duality. There the derivative is 0: y is proportional to the diagonal of :math:`W^{1/2}`.
The largest weighted error of a level is at least every weighted mean of them; the best weights are searched
as well.

No matrix is formed. For every w > 0, substituting :math:`t = e^s`,

.. math:: \sqrt w = \frac 2 \pi \int_0^\infty \frac{w}{w + t^2}\,dt
                  = \frac{\sqrt w}{\pi} \int_{-\infty}^\infty \frac{ds}{\cosh(s - \frac12 \log w)},

and the trapezoidal rule of step h has a relative error below :math:`4.1 e^{-\pi^2 / h}` (Poisson summation;
the Fourier transform of 1/cosh is of the same form). For each t, only the diagonal of
:math:`W (W + t^2)^{-1}` is needed, which is the derivative of log det(W + t²) with respect to log y. That
determinant is computed from the leaves to the root, each node being a rank-one update (Sherman and Morrison):

.. math:: \log\det = \sum_{\text{leaves}} \log(u_i y_i + t^2) + \sum_{\text{others}} \log(1 + u_v S_v),
          \quad S_v = \sum_c F_c, \quad F_v = \frac{S_v}{1 + u_v S_v}, \quad F_i = \frac{y_i}{u_i y_i + t^2}.

All terms are positive, so nothing cancels. The time is proportional to the number of kinds of nodes.

**Privacy**: everything here is a function of the tree and the objective, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.capacities import capacities
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.objective import Objective, cost_weights
from pandas_dptree.planning.uniform_bound import possible_moves, uniform_lower_bound
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import Quantity
from pandas_dptree.privacy.sensitivity import Neighbors, TreeSensitivity

__all__ = ["MAX_KINDS", "gap_of", "gaussian_lower_bound"]

MAX_KINDS = 100_000  # takes about five seconds on one core
_MOST_KINDS = 20_000  # for the gap of a plan, which every plan shows: takes at most a second

_MOST_STEPS = 100  # usually fewer than ten are needed, and fewer than fifty for the worst level
_TOLERANCE = 1e-7  # the search ends when the relative gain of a step is smaller
_COARSE, _FINE = (0.8, 10.0), (0.4, 23.0)  # (step, margin beyond the spectrum) of the integration
# The upward error of the integration, 4.1 exp(-pi**2 / 0.4) = 8e-11 of the integral, twice since it is
# squared. Floats add 1e-13; what is cut off at the ends of the integration only lowers the bound.
_ROUNDING = 2e-10
_BATCH = 2**19  # how many numbers to process at a time


def gaussian_lower_bound(
    tree: Tree,
    *,
    objective: Objective = "levels",
    level_weights: FloatArray | None = None,
    max_kinds: int = MAX_KINDS,
) -> float | None:
    r"""Bound the cost of any additive Gaussian mechanism on a tree from below.

    Parameters
    ----------
    tree : Tree
    objective : {"levels", "cells", "worst"}
        The cost; see `pandas_dptree.planning.objective.cost_weights`.
    level_weights : numpy.ndarray, shape (n_levels,), optional
        How much the error of a level matters, at least 0. By default all levels have equal weights.
    max_kinds : int
        Give up on trees with more kinds of nodes. Nodes with subtrees of the same shape, below parents of
        the same kind, are of one kind: a uniform tree has one kind per level.

    Returns
    -------
    float or None
        In units of :math:`\Delta_2^2 / 2\rho`, the variance of a count with the whole budget. Its relative
        distance below the true bound is at most 1e-9 for uniform trees; below the best bound of this form it
        is about 1e-6 for other trees. None if the tree has too many kinds of nodes.

    Raises
    ------
    ArgumentError
        If the objective is unknown, or the weights are not numbers of at least 0, one of them positive.

    Notes
    -----
    **Privacy**: a function of the tree, which is public.

    The bound covers the expected squared error of unbiased linear estimates after continuous Gaussian noise
    of any covariance on any linear measurements, if up to k rows are added or removed (:math:`\Delta_2^2 =
    k^2`). It does not cover mechanisms that look at the records to choose what to measure, estimates that use
    constraints on counts (non-negative, whole), and other noise. If rows are replaced (:math:`\Delta_2^2 =
    2k^2`), it covers only mechanisms that protect each leaf's row separately, :math:`P_{ii} \le 2\rho /
    \Delta_2^2`, as all in this package do: a row that moves within a node does not change that node's count,
    which other mechanisms might use.

    Examples
    --------
    The best split by level of a uniform tree is as good as any mechanism can be:

    >>> tree = Tree.from_branching([2, 3, 4])
    >>> round(gaussian_lower_bound(tree), 6)
    2.3979
    >>> shares = [0.195, 0.230, 0.252, 0.323]
    >>> from pandas_dptree.planning.variance import level_variances
    >>> float(level_variances(tree, [1 / share for share in shares]).mean().round(4))
    2.3979
    """
    orbits = Orbits.of(tree)
    weights = cost_weights(orbits.n_listed, objective, level_weights)
    if orbits.n_kinds > max_kinds:
        return None
    dual = _Dual(orbits, weights)
    leaf_parts = np.full_like(dual.sizes[-1], 1 / dual.sizes[-1].sum())
    level_parts = np.where(weights > 0, 1.0, 0.0)
    if objective == "worst":
        level_parts /= level_parts.sum()
    best, least_square = (leaf_parts, level_parts), 0.0
    for _ in range(_MOST_STEPS):
        nuclear, leaf_targets, level_targets = dual.evaluate(leaf_parts, level_parts, *_COARSE)
        if nuclear**2 > least_square:
            best = leaf_parts, level_parts
        if nuclear**2 < least_square * (1 + _TOLERANCE):
            break
        least_square = nuclear**2
        # The diagonal of W**(1/2) is proportional to y**(1/2) if U is diagonal, and close to it otherwise.
        # A step of twice the length compensates for that.
        leaf_parts = _extrapolated(leaf_parts, leaf_targets)
        leaf_parts = leaf_parts / (leaf_parts * dual.sizes[-1]).sum()
        if objective == "worst":
            level_parts = _extrapolated(level_parts, level_targets)
            level_parts = level_parts / level_parts.sum()
    return dual.evaluate(*best, *_FINE)[0] ** 2 * (1 - _ROUNDING)


def _extrapolated(parts: FloatArray, targets: FloatArray) -> FloatArray:
    """Move positive numbers to the given ones and as far again, in proportion; 0 stays."""
    return targets * np.divide(targets, parts, out=np.zeros_like(parts), where=parts > 0)


class _Dual:
    """The bound, as a function of y and of the parts that the levels have in the cost.

    `weights` are the costs of a unit of each level's mean variance, shape (n_levels,). `sizes` are the
    numbers of nodes of each kind, shape (n_kinds, 1) for each level.
    """

    def __init__(self, orbits: Orbits, weights: FloatArray) -> None:
        """Count the nodes of each kind, and the leaves below one."""
        self.orbits = orbits
        self.sizes = orbits.kind_sizes()
        leaves = [np.ones_like(self.sizes[-1])]
        for level in reversed(range(orbits.depth)):
            leaves.append(orbits.sum_children(level, leaves[-1]))
        self._has_one_leaf = [below == 1 for below in reversed(leaves)]
        self._unit_costs = [  # of one node's variance
            weight / max(total, 1) * listed / size
            for weight, total, listed, size in zip(
                weights, orbits.n_listed, orbits.listed, self.sizes, strict=True
            )
        ]

    def evaluate(
        self, leaf_parts: FloatArray, level_parts: FloatArray, step: float, margin: float
    ) -> tuple[float, FloatArray, FloatArray]:
        """Integrate the trace of W**(1/2); return it and its logarithmic derivatives by leaves and levels.

        The shapes are (n_kinds, 1) and (n_levels,); the parts of the levels have sum 1. With steps of `step`,
        to `margin` beyond the logarithms of the spectrum's roots, the trace is too large by less than ``4.1 *
        exp(-pi**2 / step)``, relatively.
        """
        costs = [part * unit for part, unit in zip(level_parts, self._unit_costs, strict=True)]
        low, high = self._spectrum(costs, leaf_parts)
        first, last = math.log(low) / 2 - margin, math.log(high) / 2 + margin
        points = np.exp(step * np.arange(first // step, last // step + 2))  # t; ds = dt / t
        by_leaf, by_level = np.zeros_like(leaf_parts), np.zeros(len(costs))
        at_once = max(1, _BATCH // max(len(kind) for kind in self.sizes))
        for batch in np.split(points, range(at_once, len(points), at_once)):
            leaves, levels = self._derivatives(costs, leaf_parts, batch**2)
            by_leaf += leaves @ (2 / math.pi * step * batch)[:, None]
            by_level += levels @ (2 / math.pi * step * batch)
        trace = float((by_leaf * self.sizes[-1]).sum())
        return trace, by_leaf / trace, by_level / trace

    def _spectrum(self, costs: list[FloatArray], leaf_parts: FloatArray) -> tuple[float, float]:
        """Bound the eigenvalues of W from both sides; those below contribute less than 1e-10 together."""
        all_above, single = costs[0], costs[0] * self._has_one_leaf[0]
        for level in range(self.orbits.depth):
            all_above = self.orbits.spread(level, all_above) + costs[level + 1]
            single = self.orbits.spread(level, single) + costs[level + 1] * self._has_one_leaf[level + 1]
        diagonal = all_above * leaf_parts
        high = float((diagonal * self.sizes[-1]).sum())  # the trace of W
        low = float((single * leaf_parts)[diagonal > 0].min())  # W is at least this diagonal
        return max(low, high * (1e-10 / float(self.sizes[-1].sum())) ** 2), high

    def _derivatives(
        self, costs: list[FloatArray], leaf_parts: FloatArray, squares: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Differentiate log det(W + t²) with respect to the logarithms of y, and of the levels' parts.

        The former are the diagonal of W / (W + t²), shape (n_kinds, n_squares), the latter have shape
        (n_levels, n_squares).
        """
        orbits = self.orbits
        own = costs[-1] * leaf_parts + squares
        ratio = leaf_parts / own
        below, resolvent = [], ratio  # S and F
        for level in reversed(range(orbits.depth)):
            below.append(orbits.sum_children(level, resolvent))
            resolvent = below[-1] / (1 + costs[level] * below[-1])
        below = below[::-1]
        slope = np.zeros((1, len(squares)))  # of log det by F
        by_level = []
        for level in range(orbits.depth):
            shrink = 1 / (1 + costs[level] * below[level])
            by_level.append(self._by_cost(level, costs[level], below[level] * shrink, slope))
            slope = orbits.spread(level, (costs[level] + slope * shrink) * shrink)
        by_level.append(self._by_cost(-1, costs[-1], ratio, slope))
        by_leaf = ratio * (costs[-1] + slope * squares / own)
        return by_leaf, np.stack(by_level)

    def _by_cost(self, level: int, cost: FloatArray, resolvent: FloatArray, slope: FloatArray) -> FloatArray:
        """Differentiate log det(W + t²) with respect to the logarithm of a level's part."""
        return np.asarray((self.sizes[level] * cost * resolvent * (1 - slope * resolvent)).sum(axis=0))


class BoundedPlan(Protocol):
    """The parts of a plan that are compared with the lower bound: see `pandas_dptree.AdditivePlan`."""

    @property
    def tree(self) -> Tree: ...
    @property
    def loss(self) -> PrivacyLoss: ...
    @property
    def noise(self) -> AdditiveNoise: ...
    @property
    def neighbors(self) -> Neighbors: ...
    @property
    def max_contributions(self) -> int: ...
    @property
    def caps(self) -> Sequence[int | None]: ...
    @property
    def in_forest(self) -> bool: ...
    @property
    def sensitivity(self) -> TreeSensitivity: ...
    @property
    def quantity(self) -> Quantity: ...
    @property
    def known(self) -> Known: ...
    @property
    def objective(self) -> Objective: ...
    @property
    def level_weights(self) -> FloatArray: ...
    @property
    def unit_noise_scales(self) -> FloatArray: ...
    @property
    def expected_error(self) -> float: ...


def gap_of(plan: BoundedPlan) -> tuple[float | None, str]:
    """Compare a plan with the lower bound: return its gap, if known, and a sentence on it."""
    if not plan.noise.euclidean:
        return None, f"Gap: unknown, as no tight lower bound is known for {plan.noise.name} noise."
    if any(exact.any() for exact in plan.known.exact):
        return None, "Gap: unknown, as no tight lower bound is known where counts are public."
    if plan.unit_noise_scales.min() < 1.5:
        return None, "Gap: unknown, as the lower bound is for continuous noise: scales of 1.5 and more."
    moves = plan.sensitivity.patterns[0]
    alike = plan.neighbors == "add_remove" and all(level.l2_squared == moves[0].l1 ** 2 for level in moves)
    if not alike and not plan.tree.is_uniform:
        what = "rows are replaced" if plan.neighbors == "replace" else "rows are limited by node"
        return None, f"Gap: unknown, as no tight lower bound is known where {what} on a ragged tree."
    bound = (
        _cached_bound(plan.tree, plan.objective, tuple(plan.level_weights.tolist()))
        if alike
        else _uniform_bound(plan)
    )
    if bound is None:
        return None, "Gap: unknown, as the lower bound would take too long for so many kinds of nodes."
    # The rho that the levels share: exact with a rho, otherwise proven for an even split.
    even = plan.noise.noise_scales(plan.loss, plan.sensitivity, np.ones(plan.tree.depth + 1))
    spent = max(
        plan.noise.spent(plan.loss, plan.sensitivity, each) for each in (plan.unit_noise_scales, even)
    )
    error = plan.expected_error / float(plan.quantity.unit)
    unit_square = moves[0].l2_squared if alike else 1
    gap = error**2 * float(2 * spent / unit_square) / bound
    return (
        gap,
        f"Gap: expected squared error is {gap:.4f} times the least of any additive Gaussian noise.",
    )


def _uniform_bound(plan: BoundedPlan) -> float:
    """Return the lower bound for a uniform tree, in squared units for a rho of 1/2."""
    tree, quantity = plan.tree, plan.quantity
    held = [int(level[0]) for level in capacities(tree, plan.max_contributions, plan.caps)]
    moves = possible_moves(
        tree.level_sizes, held, rows=min(plan.max_contributions, held[0] * tree.level_sizes[0]),
        low=quantity.low, high=quantity.high, neighbors=plan.neighbors, in_forest=plan.in_forest,
    )  # fmt: skip
    listed = [tree.n_listed(level) for level in range(tree.depth + 1)]
    weights = cost_weights(listed, plan.objective, plan.level_weights)
    return uniform_lower_bound(tree.level_sizes, weights, moves, worst=plan.objective == "worst")


@lru_cache(maxsize=4)
def _cached_bound(tree: Tree, objective: Objective, level_weights: tuple[float, ...]) -> float | None:
    """Cache the lower bound for the other plans of a comparison."""
    return gaussian_lower_bound(
        tree, objective=objective, level_weights=np.array(level_weights), max_kinds=_MOST_KINDS
    )
