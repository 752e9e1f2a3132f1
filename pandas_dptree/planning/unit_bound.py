r"""A lower bound on the mean error of additive Gaussian noise for unit counts on a uniform tree.

Unbiased estimates of the counts D of all nodes with Gaussian errors of any covariance :math:`P^{-1}` keep to
:math:`\rho = \frac12` if :math:`x^\top P x \le 1` for every difference x that a unit makes: ones at the nodes
that it is in. As in `uniform_bound`, let x be random, with its nodes then permuted by a random automorphism
of the tree, and :math:`M = \mathrm E\,x x^\top`. With :math:`U` the weights of the nodes on its diagonal,

.. math:: \mathrm{tr}(U P^{-1}) \ge \mathrm{tr}(U P^{-1})\,\mathrm{tr}(M P)
          \ge \bigl(\mathrm{tr}\,(U^{1/2} M U^{1/2})^{1/2}\bigr)^2.

Here the counts do not add up, so the nodes, not the leaves, are the coordinates. Both M and U commute with
all automorphisms. Detail space j, that of sums over nodes of level j which are 0 over those above, occurs
once in each level :math:`l \ge j`, so there M is one matrix over these levels, for each of
:math:`n_j - n_{j-1}` dimensions: with :math:`a_v^l` the number of a unit's nodes of level l below v,

.. math:: \frac{\sqrt{n_j / n_l}\,\sqrt{n_j / n_k}}{n_j - n_{j-1}}
          \Bigl(\sum_{v \text{ of level } j} a_v^l a_v^k - \frac{n_{j-1}}{n_j}
          \sum_{v \text{ of level } j-1} a_v^l a_v^k\Bigr).

If a unit is replaced by one of the same shape in random nodes, space 0 vanishes and all others count twice.
The trace of the root is a concave function of the probabilities of the shapes, and of the parts of the levels
in the error, and homogeneous of degree 1/2. Each step moves these to their parts in its derivative. Whatever
they are, the bound holds.

**Privacy**: everything here is a function of the tree, the bounds on nodes, and the objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.objective import Objective, cost_weights
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, TreeSensitivity

__all__ = ["unit_gap", "unit_lower_bound"]

_MOST_STEPS = 300
_TOLERANCE = 1e-9  # of the gain of a step, relatively
_ROUNDING = 1e-10
_MOST_NODES = 64  # of a unit on a level, among those that make up the bound


def unit_lower_bound(
    level_sizes: Sequence[int],
    max_nodes: Sequence[int],
    weights: FloatArray,
    *,
    neighbors: Neighbors = "add_remove",
    worst: bool = False,
) -> float:
    """Bound the cost of any additive Gaussian mechanism with a rho of 1/2 on a uniform tree from below.

    The weights are those of `cost_weights`; `worst` says whether the largest cost of a level matters or their
    sum.
    """
    sizes = np.asarray(level_sizes, dtype=np.float64)
    dimensions = np.diff(sizes, prepend=0.0)
    spaces = np.array([_second_moments(sizes, unit) for unit in _units(level_sizes, max_nodes)])
    if neighbors == "replace":
        moved = 2 * spaces
        moved[:, 0] = 0.0
        spaces = np.concatenate([spaces, moved])
    units = np.full(len(spaces), 1 / len(spaces))
    levels = (weights > 0) / np.count_nonzero(weights) if worst else np.ones(len(weights))
    best = 0.0
    for _ in range(_MOST_STEPS):
        roots_of_costs = np.sqrt(levels * weights / sizes)
        both = roots_of_costs[:, None] * roots_of_costs
        values, vectors = np.linalg.eigh(np.tensordot(units, spaces, 1) * both)
        roots = np.sqrt(np.maximum(values, 0.0))
        total, before = float(dimensions @ roots.sum(axis=1)), best
        best = max(best, total)
        if total <= before * (1 + _TOLERANCE):
            break
        shown = roots > 1e-7 * roots.max()  # elsewhere, no unit has any part
        slopes = np.divide(dimensions[:, None], roots, out=np.zeros_like(roots), where=shown)
        inverse = (vectors * slopes[:, None]) @ vectors.transpose(0, 2, 1)
        units = units * np.einsum("ujlk,jlk,lk->u", spaces, inverse, both) / total
        units /= units.sum()
        if worst:
            levels = np.einsum("j,jlr,jr->l", dimensions, vectors**2, roots) / total
    return best**2 * (1 - _ROUNDING)


def _units(level_sizes: Sequence[int], max_nodes: Sequence[int]) -> list[list[list[int]]]:
    """List units that may cost most, each as the parents of its nodes on each level but the first.

    On every level they have as many nodes as above, or as many as possible: of those above, the first ones
    then have all their children. Only one level makes the difference, or all from one on do.
    """
    widths = [below // above for above, below in pairwise(level_sizes)]
    found = {}
    for first in range(len(widths) + 1):
        for last in range(first, len(widths) + 1):
            unit, nodes = [], 1
            for level, width in enumerate(widths):
                most = min(max_nodes[level + 1], _MOST_NODES) if first <= level < last else nodes
                extra, parents = max(most - nodes, 0), []
                for parent in range(nodes):
                    more = min(extra, width - 1)
                    parents += [parent] * (1 + more)
                    extra -= more
                unit.append(parents)
                nodes = len(parents)
            found[str(unit)] = unit
    return list(found.values())


def _second_moments(sizes: FloatArray, unit: Sequence[Sequence[int]]) -> FloatArray:
    """Return the matrix of a unit in each detail space: shape (n_levels, n_levels, n_levels).

    The unit's nodes are permuted by a random automorphism of a tree with these level sizes.
    """
    n_levels = len(sizes)
    within, found = np.zeros((n_levels, n_levels)), []
    for space in range(n_levels):
        nodes = 1 if not space else len(unit[space - 1])
        counts, place = [np.ones(nodes)], np.arange(nodes)  # of the nodes of levels below each of this one
        for parents in unit[space:]:
            place = place[np.asarray(parents)]
            counts.append(np.bincount(place, minlength=nodes).astype(np.float64))
        below = np.zeros((n_levels, nodes))
        below[space:] = counts
        above, within = within, below @ below.T
        size, size_above = sizes[space], sizes[space - 1] if space else 0.0
        scale = np.where(np.arange(n_levels) >= space, np.sqrt(size / sizes), 0.0)
        detail = (within - above * size_above / size) * scale[:, None] * scale
        found.append(detail / (size - size_above) if size > size_above else np.zeros_like(detail))
    return np.array(found)


class BoundedUnitPlan(Protocol):
    """The parts of a plan for unit counts that are compared with the lower bound."""

    @property
    def tree(self) -> Tree: ...
    @property
    def max_nodes(self) -> Sequence[int]: ...
    @property
    def loss(self) -> PrivacyLoss: ...
    @property
    def noise(self) -> AdditiveNoise: ...
    @property
    def neighbors(self) -> Neighbors: ...
    @property
    def sensitivity(self) -> TreeSensitivity: ...
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


def unit_gap(plan: BoundedUnitPlan) -> tuple[float | None, str]:
    """Compare a plan for unit counts with the lower bound: return its gap, if known, and a sentence on it."""
    if not plan.noise.euclidean:
        return None, f"Gap: unknown, as no tight lower bound is known for {plan.noise.name} noise."
    if any(exact.any() for exact in plan.known.exact):
        return None, "Gap: unknown, as no tight lower bound is known where counts are public."
    if plan.unit_noise_scales.min() < 1.5:
        return None, "Gap: unknown, as the lower bound is for continuous noise: scales of 1.5 and more."
    if not plan.tree.is_uniform:
        return None, "Gap: unknown, as no tight lower bound is known for unit counts on a ragged tree."
    sizes = plan.tree.level_sizes
    listed = [plan.tree.n_listed(level) for level in range(plan.tree.depth + 1)]
    weights = cost_weights(listed, plan.objective, plan.level_weights)
    worst = plan.objective == "worst"
    bound = unit_lower_bound(sizes, plan.max_nodes, weights, neighbors=plan.neighbors, worst=worst)
    # The rho that the levels share: exact with a rho, otherwise proven for an even split.
    counts = np.arange(len(plan.unit_noise_scales)) <= plan.tree.depth
    even = plan.noise.noise_scales(plan.loss, plan.sensitivity, counts)
    spent = max(
        plan.noise.spent(plan.loss, plan.sensitivity, each) for each in (plan.unit_noise_scales, even)
    )
    gap = plan.expected_error**2 * float(2 * spent) / bound
    return (
        gap,
        f"Gap: expected squared error is at most {gap:.4f} times the least of any additive Gaussian noise.",
    )
