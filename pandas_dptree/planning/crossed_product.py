r"""Splits of the budget over margins whose noise variances are a product of numbers of the axes.

If the weights of the margins are a product, :math:`w_\ell = \prod_d w_d(\ell_d)`, the outer product of the
best splits of the axes is the best of all splits of a budget that adds up over the margins at equal prices:
with the information matrix :math:`H = \bigotimes_d H_d`, the inverse, the error and its derivatives by the
precisions :math:`\mathrm{tr}(G_\ell H^{-1} W H^{-1})` all are products, so that the conditions of optimality
on the axes imply those of the whole, and the problem is convex. The same is true of the largest error, which
has a saddle point of products, and where a margin costs a product of prices of the axes.

If rows are replaced, they leave the grand total alone: its measurement is free, until those patterns cost as
much in which rows only leave. An extra precision e on the grand total changes the covariance V of the leaf
cells into :math:`V - o o^\top e / (1 + e\,1^\top o)` with :math:`o = V 1`, in which all parts are products.

**Privacy**: a function of the product, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, reduce

import numpy as np

from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.crossed_alternating import improved_splits
from pandas_dptree.planning.crossed_budget import Budget
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.known_counts import Flags
from pandas_dptree.planning.objective import Objective, expected_cost
from pandas_dptree.planning.split import Split, level_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity, TreeSensitivity

__all__ = ["axis_moments", "factors", "nearest_product", "outer", "product_shares", "product_variances"]

_SMALL = {1: PrivacyLoss(rho=1e-4), 2: PrivacyLoss(epsilon=1e-3)}
"""Losses, by the power of a budget, for which noise is so large that its steps do not matter."""

_SAME = 1e-12

Prices = tuple[tuple[int, ...], ...]
"""For each axis, what a unit of its levels' precision costs, up to a common factor."""


def outer(of_axes: Sequence[FloatArray]) -> FloatArray:
    """Multiply numbers of the levels of each axis in every margin: shape (K,)."""
    return np.asarray(reduce(np.multiply.outer, of_axes)).reshape(-1)


def factors(product: ProductTree, numbers: FloatArray) -> list[FloatArray] | None:
    """Return numbers of the levels of each axis of which those of the margins are the product, if any."""
    total = numbers.sum()
    parts = [sums / total for sums in _marginal(product, numbers)]
    same = np.abs(outer(parts) - numbers / total).max() <= _SAME * numbers.max() / total
    return parts if same else None


def product_shares(
    product: ProductTree,
    budget: Budget,
    *,
    split: Split | Sequence[FloatArray],
    weights: FloatArray,
    objective: Objective,
    zeros: Sequence[Flags | None],
) -> FloatArray:
    """Return the share of each margin, of sum 1, with noise variances that are a product over the axes.

    The weights of the margins are those of `cost_weights`. If they are no product, the axes are improved in
    turn. `zeros` has the structural zeros of each axis. If a unit can move the margins in several patterns,
    each pattern is the price once, and the best of the splits is taken.
    """
    found = []
    for prices in _prices(product, budget):
        shares = _axis_shares(
            product, budget.noise, budget.power, prices, tuple(weights.tolist()), objective,
            split if isinstance(split, str) else tuple(tuple(own.tolist()) for own in split),
            tuple(None if flags is None else tuple(level.tobytes() for level in flags) for flags in zeros),
        )  # fmt: skip
        with np.errstate(divide="ignore"):
            variances = outer(
                [(np.array(own) / each) ** budget.power for own, each in zip(prices, shares, strict=True)]
            )
        if split != "optimal":
            variances[0] *= min(1.0, budget.alone[0] / budget.alone[-1]) ** budget.power
        found.append(budget.shares_of(variances, free_total=split == "optimal"))
    if len(found) == 1:
        return found[0]

    def cost(shares: FloatArray) -> float:
        means = product_variances(product, budget.variances(shares), zeros)
        return expected_cost(means, weights, objective)

    return min(found, key=cost)


@lru_cache(maxsize=32)  # the same for any loss, and for the other noise variances of a search
def _axis_shares(
    product: ProductTree,
    noise: AdditiveNoise,
    power: int,
    prices: Prices,
    weights: tuple[float, ...],
    objective: Objective,
    split: Split | tuple[tuple[float, ...], ...],
    flags: tuple[tuple[bytes, ...] | None, ...],
) -> list[FloatArray]:
    """Return the shares of the levels of each axis at some prices, for noise so large that it is continuous.

    The `flags` are the bytes of those of structural zeros.
    """
    loss, worst = _SMALL[power], objective == "worst"
    zeros = [None if own is None else [np.frombuffer(each, dtype=bool) for each in own] for own in flags]
    of_margins = np.array(weights)
    of_axes = factors(product, of_margins)
    splits = [split] * len(product.axes) if isinstance(split, str) else list(map(np.array, split))
    moves = [_moves(own) for own in prices]
    shares = [
        level_shares(
            axis, noise=noise, loss=loss, sensitivity=own, split=of_axis, level_weights=its_weights,
            objective="worst" if worst else "levels", known=empty,
        )
        for axis, own, of_axis, its_weights, empty in zip(
            product.axes, moves, splits, of_axes or _marginal(product, of_margins), zeros, strict=True
        )
    ]  # fmt: skip
    if split != "optimal" or of_axes is not None:
        return shares
    return improved_splits(
        product, shares, noise=noise, loss=loss, moves=moves, weights=of_margins, worst=worst, zeros=zeros
    )


def _marginal(product: ProductTree, weights: FloatArray) -> list[FloatArray]:
    """Sum the weights of margins over the other axes."""
    table = weights.reshape(product.lattice_shape)
    axes = range(table.ndim)
    return [table.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]


def _moves(prices: tuple[int, ...]) -> TreeSensitivity:
    """Return the sensitivity of the levels of an axis that has these prices."""
    return TreeSensitivity((tuple(Sensitivity(l1=price, l2_squared=price) for price in prices),))


def _prices(product: ProductTree, budget: Budget) -> list[Prices]:
    """List the prices of the levels of each axis under each pattern, where the other axes are at the leaves.

    The grand total costs nothing in some patterns, which say nothing about its price among others.
    """
    cover = budget.moves.levels
    found: dict[Prices, None] = {}
    for pattern in budget.moves.patterns:
        prices = []
        for line in _lines(product):
            moves = [pattern[level] if pattern[level].l1 else cover[level] for level in line]
            own = [move.l1 if budget.power == 2 else move.l2_squared for move in moves]
            least = min((each for each in own if each), default=1)
            own = [each or least for each in own]
            divisor = math.gcd(*own)
            prices.append(tuple(each // divisor for each in own))
        found[tuple(prices)] = None
    return list(found)


def _lines(product: ProductTree) -> list[list[int]]:
    """List, for each axis, the margins of its levels that have the leaves of all other axes."""
    last = product.margins[-1]
    return [
        [product.level_of((*last[:axis], level, *last[axis + 1 :])) for level in range(depth + 1)]
        for axis, depth in enumerate(last)
    ]


def product_variances(
    product: ProductTree, variances: FloatArray, zeros: Sequence[Flags | None]
) -> FloatArray:
    """Return the mean variance of the estimates of each margin, where noise variances are a product.

    The grand total may have any extra precision. The mean is over the cells that a table would show.
    """
    lines = [variances[line] / variances[-1] for line in _lines(product)]
    moments = [axis_moments(axis, *each) for axis, *each in zip(product.axes, lines, zeros, strict=True)]
    means = outer([mean for mean, _ in moments]) * variances[-1]
    extra = 1 / variances[0] - 1 / (variances[-1] * math.prod(float(line[0]) for line in lines))
    if extra * means[0] > _SAME:
        means = means - outer([square for _, square in moments]) * variances[-1] ** 2 * extra / (
            1 + extra * means[0]
        )
    return np.asarray(means)


def nearest_product(product: ProductTree, variances: FloatArray) -> FloatArray:
    """Return the product that noise variances are where all axes but one are at their leaves."""
    return np.asarray(outer([variances[line] / variances[-1] for line in _lines(product)]) * variances[-1])


def axis_moments(axis: Tree, variances: FloatArray, zeros: Flags | None) -> tuple[FloatArray, FloatArray]:
    """Return the mean variance of each level, and the mean squared covariance with the root.

    Going down, an estimate is a part of its parent's and of what is independent of the parent: its covariance
    with the root is the same part of the parent's.
    """
    noise = [
        np.atleast_1d(variance) if zeros is None else np.where(zeros[level], 0.0, variance)
        for level, variance in enumerate(variances.tolist())
    ]
    passes = propagate(axis, noise)
    squares = [passes.final[0] ** 2]
    for level in range(axis.depth):
        whole = axis.spread(level, passes.children[level])
        part = np.divide(
            passes.subtree[level + 1],
            whole,
            out=np.zeros_like(whole + passes.subtree[level + 1]),
            where=whole > 0,
        )
        squares.append(part**2 * axis.spread(level, squares[-1]))
    return _listed_means(axis, passes.final), _listed_means(axis, squares)


def _listed_means(axis: Tree, values: Sequence[FloatArray]) -> FloatArray:
    """Return the mean over the nodes of each level that a table shows; 0 where it shows none."""
    return np.array(
        [
            float(np.broadcast_to(each, flags.shape)[flags].mean()) if flags.any() else 0.0
            for each, flags in ((each, axis.listed(level)) for level, each in enumerate(values))
        ]
    )
