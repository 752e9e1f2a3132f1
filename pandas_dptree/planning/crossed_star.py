r"""The best split over margins of which none has cells of two ragged axes, whatever their weights.

Estimates are exact there for any noise variances (`crossed_lattice`), so each margin has a share of its own.
If all axes are uniform and precisions cost the same everywhere, the least error of the details in the spaces
k, :math:`\sum_k m_k \lambda_k / \mu_k` with :math:`\lambda_k = \sum_{\ell \ge k} w_\ell s_\ell`, has
:math:`\mu_k \propto \sqrt{\lambda_k}`, which attains the singular-value bound. These are the
:math:`\mu_k = \sum_{\ell \ge k} s_\ell p_\ell` of precisions

.. math:: p_\ell = \frac{1}{s_\ell} \sum_{e \in \{0,1\}^D} (-1)^{|e|} \sqrt{\lambda_{\ell + e}},

if none of them is negative. Otherwise, and on ragged axes, the problem is convex for Gaussian noise, and
solved by descent; for Laplace noise under an epsilon there are many local minima, of which the best of
several descents is taken.

**Privacy**: a function of the product, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.planning.alternating import Problem, VarianceFunction
from pandas_dptree.planning.crossed_budget import Budget
from pandas_dptree.planning.crossed_lattice import Lattice, summed_above, wanted_margins
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.known_counts import Flags
from pandas_dptree.planning.objective import Objective, expected_cost
from pandas_dptree.planning.patterns import relative_costs, undominated

__all__ = ["closed_form", "detail_weights", "star_shares"]

_SMALLEST_SHARE = 1e-3  # of what must be measured even if its error has no weight
_NEGLIGIBLE = 1e-5  # margins with smaller shares are left out, if that changes nothing
_NO_LOSS = 1e-6
_STEPS = 3000
_FIRST_STEPS = 60  # enough to compare splits; most are then at their minimum
_RANDOM = 128  # splits from which the search starts
_KEPT = 6
_NUMBERS = 2**18  # as many as are worth processing in a step of the search


def detail_weights(product: ProductTree, weights: FloatArray) -> FloatArray:
    r"""Return the :math:`\lambda_k` of uniform axes, shape (K,), for weights of the margins' mean errors."""
    sizes = np.array(product.level_sizes, dtype=np.float64)
    leaves = product.n_leaves / sizes
    table = (weights / sizes * leaves).reshape(product.lattice_shape)
    return summed_above(table, table.ndim).reshape(-1)


def closed_form(product: ProductTree, weights: FloatArray) -> FloatArray:
    """Return the precisions of the margins of uniform axes of which the formula says that they are best."""
    leaves = product.n_leaves / np.array(product.level_sizes, dtype=np.float64)
    mixed = np.sqrt(detail_weights(product, weights)).reshape(product.lattice_shape)
    for axis in range(mixed.ndim):
        mixed = np.flip(np.diff(np.flip(mixed, axis), axis=axis, prepend=0.0), axis)
    return np.asarray(mixed.reshape(-1) / leaves)


def star_shares(
    product: ProductTree,
    budget: Budget,
    *,
    ragged: Sequence[int],
    zeros: Sequence[Flags | None],
    weights: FloatArray,
    objective: Objective,
    starts: Sequence[FloatArray],
) -> FloatArray:
    """Return the best share of each margin, of sum 1, for weights from `cost_weights`.

    The result is never worse than the `starts`, which have a share for each margin that must be measured.
    """
    worst = objective == "worst"
    measurable = wanted_margins(product)[0] & (budget.alone > 0)
    even = measurable / measurable.sum()
    best = np.where(measurable, np.maximum(closed_form(product, weights), 0.0) * budget.alone, 0.0)
    best = best / best.sum()
    problem = _problem(product, budget, ragged, zeros, weights, worst=worst, calibrated_at=even)
    if budget.power == 1 and not ragged and not worst and problem.patterns is None:
        precisions = closed_form(product, weights)
        if np.ptp(budget.alone[measurable]) == 0 and (precisions >= -_NO_LOSS * precisions.max()).all():
            starts = [*starts, problem.normalise(best[:, None])[:, 0]]
            if problem.variance.is_linear:
                return starts[-1]
    splits = np.stack([*starts, (best + even) / 2], axis=1)
    if budget.power == 2:
        similar = _problem(product, budget, [], [None] * len(zeros), weights, worst=worst, calibrated_at=even)
        splits = np.concatenate([splits, _search(similar, measurable)], axis=1)
    splits, costs = problem.descend(problem.normalise(splits), steps=_STEPS)
    found = splits[:, int(np.argmin(costs))]
    if budget.loss.kind == "approximate":  # what composition gains depends on which margins are measured
        again = _problem(product, budget, ragged, zeros, weights, worst=worst, calibrated_at=found)
        found = again.descend(found[:, None], steps=_STEPS)[0][:, 0]
    found = _reduced(problem, found)

    def cost(shares: FloatArray) -> float:
        means, _ = problem.model(1 / budget.variances(shares)[:, None])
        return expected_cost(means[:, 0], weights, objective)

    return min([found, *starts], key=cost)


def _problem(
    product: ProductTree,
    budget: Budget,
    ragged: Sequence[int],
    zeros: Sequence[Flags | None],
    weights: FloatArray,
    *,
    worst: bool,
    calibrated_at: FloatArray,
) -> Problem:
    """Return the problem of the best shares."""
    _, needed = wanted_margins(product)
    costs = budget.costs[undominated(budget.costs)]
    return Problem(
        model=Lattice(product, ragged, zeros).means_and_vjp,
        variance=VarianceFunction.calibrated(budget.noise, budget.loss, budget.moves, calibrated_at),
        weights=weights[:, None],
        worst=worst,
        floor=np.where(needed & (budget.alone > 0), _SMALLEST_SHARE / needed.sum(), 0.0)[:, None],
        patterns=relative_costs(costs) if len(costs) > 1 else None,
    )


def _search(problem: Problem, measurable: npt.NDArray[np.bool_]) -> FloatArray:
    """Search local minima for noise whose variance falls faster than the share grows; return the best first.

    It starts from random sets of margins and from random shares, the same each time, and then adds or leaves
    out one margin of the best so far.
    """
    n = min(_RANDOM, max(_NUMBERS // len(measurable), 2 * _KEPT))
    random = np.random.default_rng(0)  # fixed: the same margins give the same plan
    chosen = random.random((len(measurable), n)) < random.uniform(0.1, 0.9, n)
    starts = np.where(np.arange(n) % 2, chosen, random.exponential(size=chosen.shape) ** 2)
    splits, costs = _minima(problem, starts * measurable[:, None])
    changes = np.eye(len(measurable), dtype=bool)[:, measurable]
    while changes.size <= _NUMBERS:
        nearby = np.where(changes, splits[:, :1] == 0, splits[:, :1] > 0) * measurable[:, None]
        more, values = _minima(problem, nearby.astype(np.float64))
        improved = values[0] < costs[0] * (1 - _NO_LOSS)
        splits, costs = np.concatenate([more, splits], axis=1), np.concatenate([values, costs])
        order = np.argsort(costs, kind="stable")[:_KEPT]
        splits, costs = splits[:, order], costs[order]
        if not improved:
            break
    return splits


def _minima(problem: Problem, starts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Descend a little from several starts, and return the best splits and their costs."""
    splits, costs = problem.descend(problem.normalise(starts + (problem.floor > 0)), steps=_FIRST_STEPS)
    order = np.argsort(costs, kind="stable")[:_KEPT]
    return splits[:, order], costs[order]


def _reduced(problem: Problem, split: FloatArray) -> FloatArray:
    """Leave out margins with hardly a share, if the split is as good without them."""
    fewer = np.where((split >= _NEGLIGIBLE) | (problem.floor[:, 0] > 0), split, 0.0)
    both = problem.normalise(np.stack([fewer, split], axis=1))
    both, costs = problem.descend(both, steps=_FIRST_STEPS)
    return both[:, 0 if costs[0] <= costs[1] * (1 + _NO_LOSS) else 1]
