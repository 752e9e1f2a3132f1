"""How the privacy budget is split over the margins of crossed hierarchies.

**Privacy**: a split is a function of the product, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.mechanisms.additive import AdditiveNoise, Moves
from pandas_dptree.planning.alternating import Problem, VarianceFunction
from pandas_dptree.planning.crossed_budget import Budget
from pandas_dptree.planning.crossed_lattice import ragged_axes
from pandas_dptree.planning.crossed_product import factors, orbits_of, outer, product_shares
from pandas_dptree.planning.crossed_refined import refined_variances
from pandas_dptree.planning.crossed_star import star_shares
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.known_counts import Flags
from pandas_dptree.planning.objective import Objective, cost_weights
from pandas_dptree.planning.patterns import relative_costs, undominated
from pandas_dptree.planning.split import Split
from pandas_dptree.planning.variance import unrelated_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["crossed_shares", "parts_unknown", "structural_zeros"]

_SMALLEST_SHARE = 1e-3  # of margins that have to be measured even if their errors have no weight
_STEPS = 3000
_MOST_KINDS = 50_000  # of nodes, for which splits are refined


def crossed_shares(
    product: ProductTree,
    *,
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    sensitivity: Moves,
    split: Split | Sequence[FloatArray] = "optimal",
    weights: FloatArray | None = None,
    objective: Objective = "levels",
    least_squares: bool = True,
    known: CrossedKnown | None = None,
) -> FloatArray:
    """Return each margin's share of the budget: shape (K,), of sum 1, in proportion to what it costs alone.

    `weights` say how much the error of each cell of a margin matters, at least 0. Given shares are those of
    the levels of each axis, whose product is that of the margin.

    The best split is exact in two cases: where the weights are a product and margins are equally expensive,
    or there are no two ragged axes of which a margin has cells. Otherwise it is the best of those whose noise
    variances are a product over the axes, with which least squares is exact. Without least squares, every
    margin that a table shows has a share.

    >>> from pandas_dptree.hierarchy.tree import Tree
    >>> from pandas_dptree.mechanisms.additive import Gaussian
    >>> from pandas_dptree.privacy.sensitivity import Sensitivity
    >>> product = ProductTree((Tree.from_branching([2]), Tree.from_branching([3])))
    >>> one_row = Sensitivity(l1=1, l2_squared=1)
    >>> shares = crossed_shares(product, noise=Gaussian(), loss=PrivacyLoss(rho=0.1), sensitivity=one_row)
    >>> shares.round(3).tolist()
    [0.16, 0.222, 0.259, 0.359]
    """
    budget = Budget(noise, loss, sensitivity.on(len(product.margins)))
    listed = np.array([product.n_listed(level) for level in range(len(product.margins))], dtype=np.float64)
    costs = cost_weights(listed, objective, weights)
    if not least_squares:
        return _unrelated_shares(product, budget, split, costs, objective, known)
    zeros = structural_zeros(product, known)
    ragged = ragged_axes(product, zeros) if known is None or known.total_axis is None else None
    if isinstance(split, str) and split != "optimal" and ragged is not None and not listed.all():
        return _simple_shares(budget, split, np.where(budget.alone > 0, listed, 0.0))
    of_axes = factors(product, costs)
    if (
        split != "optimal"
        or ragged is None
        or (of_axes is not None and budget.equal_prices and budget.power == 1)
    ):
        return _product_shares(product, budget, split, costs, objective, zeros)
    starts = []
    if of_axes is not None:
        starts.append(
            product_shares(product, budget, split=split, weights=costs, objective=objective, zeros=zeros)
        )
    return star_shares(
        product, budget, ragged=ragged, zeros=zeros, weights=costs, objective=objective, starts=starts
    )


def _product_shares(
    product: ProductTree,
    budget: Budget,
    split: Split | Sequence[FloatArray],
    weights: FloatArray,
    objective: Objective,
    zeros: Sequence[Flags | None],
) -> FloatArray:
    """Return shares with noise variances that are a product, if possible the best ones at the real prices."""
    shares = product_shares(product, budget, split=split, weights=weights, objective=objective, zeros=zeros)
    if not isinstance(split, str) or split != "optimal" or budget.equal_prices:
        return shares
    if (
        sum(orbits_of(axis, flags).n_kinds for axis, flags in zip(product.axes, zeros, strict=True))
        > _MOST_KINDS
    ):
        return shares
    better = refined_variances(
        product, budget, budget.variances(shares), weights=weights, worst=objective == "worst", zeros=zeros
    )
    return budget.shares_of(better, free_total=True)


def structural_zeros(product: ProductTree, known: CrossedKnown | None) -> list[Flags | None]:
    """Return, for each axis that has any, which nodes of its levels are known to be empty."""
    if known is None:
        return [None] * len(product.axes)
    flags = [
        [exact & (least == 0) for exact, least in zip(axis.exact, axis.least, strict=True)]
        for axis in known.axes
    ]
    return [levels if levels[-1].any() else None for levels in flags]


def _simple_shares(budget: Budget, split: Split, sizes: FloatArray) -> FloatArray:
    """Return equal shares, or geometric ones, of the margins of these sizes; those of size 0 have none."""
    shares = np.where(sizes > 0, 1.0, 0.0) if split == "uniform" else sizes ** (1 / (1 + budget.power))
    return np.asarray(shares / shares.sum())


def _unrelated_shares(
    product: ProductTree,
    budget: Budget,
    split: Split | Sequence[FloatArray],
    weights: FloatArray,
    objective: Objective,
    known: CrossedKnown | None,
) -> FloatArray:
    """Return the shares where measurements are published as they are: of all margins that are shown."""
    parts = parts_unknown(product, known)
    measured = (parts > 0) & (budget.alone > 0)
    if not isinstance(split, str):
        given = np.where(measured, outer(split), 0.0)
        if (given[measured] == 0).any():
            raise ArgumentError(
                "split",
                "gives a margin no share.",
                hint='with consistency="none", every margin that the table shows is measured.',
            )
        return np.asarray(given / given.sum())
    sizes = np.where(measured, np.array(product.level_sizes, dtype=np.float64), 0.0)
    if split != "optimal":
        return _simple_shares(budget, split, sizes)
    costs = budget.costs[undominated(budget.costs)]
    even = measured / measured.sum()
    problem = Problem(
        model=partial(unrelated_variances_and_vjp, parts),
        variance=VarianceFunction.calibrated(budget.noise, budget.loss, budget.moves, even),
        weights=weights[:, None],
        worst=objective == "worst",
        floor=_SMALLEST_SHARE * even[:, None],
        patterns=relative_costs(costs) if len(costs) > 1 else None,
    )
    start = (weights * parts * measured * budget.alone**budget.power) ** (1 / (1 + budget.power))
    splits = problem.normalise(np.stack([start / start.sum(), even], axis=1))
    splits, values = problem.descend(splits, steps=_STEPS)
    return np.asarray(splits[:, int(np.argmin(values))])


def parts_unknown(product: ProductTree, known: CrossedKnown | None) -> FloatArray:
    """Return the fraction of the cells of each margin that are shown, and not known; 0 if none is shown."""
    parts = []
    for level in range(len(product.margins)):
        shown = float(product.n_listed(level) > 0)
        exact: npt.NDArray[np.bool_] = np.zeros(1, dtype=bool) if known is None else known.exact[level]
        if shown and exact.any():
            flags = product.listed(level)
            shown = float((flags & ~exact).sum() / flags.sum())
        parts.append(shown)
    return np.array(parts)
