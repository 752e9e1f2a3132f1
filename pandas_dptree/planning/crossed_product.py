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

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.crossed_alternating import improved_splits
from pandas_dptree.planning.crossed_budget import Budget
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.known_counts import Flags
from pandas_dptree.planning.objective import Objective
from pandas_dptree.planning.split import Split, level_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity

__all__ = [
    "axis_moments",
    "factors",
    "lines_of",
    "moved_total",
    "nearest_product",
    "orbits_of",
    "outer",
    "product_shares",
    "product_variances",
]

_SMALL = {1: PrivacyLoss(rho=1e-4), 2: PrivacyLoss(epsilon=1e-3)}
"""Losses, by the power of a budget, for which noise is so large that its steps do not matter."""

_ONE = Sensitivity(l1=1, l2_squared=1)
_SAME = 1e-12


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
    turn. `zeros` has the structural zeros of each axis. The best split is that for margins of equal prices.
    """
    shares = _axis_shares(
        product, budget.noise, budget.power, tuple(weights.tolist()), objective,
        split if isinstance(split, str) else tuple(tuple(own.tolist()) for own in split),
        tuple(None if flags is None else tuple(level.tobytes() for level in flags) for flags in zeros),
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        variances = outer([own ** -float(budget.power) for own in shares])
    optimal = isinstance(split, str) and split == "optimal"
    if not optimal:
        variances[0] *= min(1.0, budget.alone[0] / budget.alone[-1]) ** budget.power
    return budget.shares_of(variances, free_total=optimal)


@lru_cache(maxsize=32)  # the same for any loss, and for the other noise variances of a search
def _axis_shares(
    product: ProductTree,
    noise: AdditiveNoise,
    power: int,
    weights: tuple[float, ...],
    objective: Objective,
    split: Split | tuple[tuple[float, ...], ...],
    flags: tuple[tuple[bytes, ...] | None, ...],
) -> list[FloatArray]:
    """Return the shares of the levels of each axis, for noise so large that it is continuous.

    The `flags` are the bytes of those of structural zeros.
    """
    loss, worst = _SMALL[power], objective == "worst"
    zeros = [None if own is None else [np.frombuffer(each, dtype=bool) for each in own] for own in flags]
    of_margins = np.array(weights)
    of_axes = factors(product, of_margins)
    splits = [split] * len(product.axes) if isinstance(split, str) else list(map(np.array, split))
    shares = [
        level_shares(
            axis, noise=noise, loss=loss, sensitivity=_ONE, split=of_axis, level_weights=its_weights,
            objective="worst" if worst else "levels", known=empty,
        )
        for axis, of_axis, its_weights, empty in zip(
            product.axes, splits, of_axes or _marginal(product, of_margins), zeros, strict=True
        )
    ]  # fmt: skip
    if split != "optimal" or of_axes is not None:
        return shares
    return improved_splits(
        product, shares, noise=noise, loss=loss, weights=of_margins, worst=worst, zeros=zeros
    )


def _marginal(product: ProductTree, weights: FloatArray) -> list[FloatArray]:
    """Sum the weights of margins over the other axes."""
    table = weights.reshape(product.lattice_shape)
    axes = range(table.ndim)
    return [table.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]


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
    lines = lines_of(product, variances)
    kinds = map(orbits_of, product.axes, zeros)
    moments = [axis_moments(own, line) for own, line in zip(kinds, lines, strict=True)]
    whole = variances[-1] * math.prod(float(line[0]) for line in lines)
    extra = (1 / variances[0] - 1 / whole) * variances[-1]
    return np.asarray(moved_total(moments, extra) * variances[-1])


def moved_total(moments: Sequence[tuple[FloatArray, FloatArray]], extra: float) -> FloatArray:
    """Return the mean variances of margins, for moments of the axes and an extra precision of the total."""
    means = outer([mean for mean, _ in moments])
    if extra * means[0] > _SAME:
        squares = outer([square for _, square in moments])
        means = means - squares * extra / (1 + extra * means[0])
    return np.asarray(means)


def lines_of(product: ProductTree, variances: FloatArray) -> list[FloatArray]:
    """Return the variances of the levels of each axis where the others are at their leaves, over the last."""
    return [variances[line] / variances[-1] for line in _lines(product)]


def nearest_product(product: ProductTree, variances: FloatArray) -> FloatArray:
    """Return the product that noise variances are where all axes but one are at their leaves."""
    return np.asarray(outer(lines_of(product, variances)) * variances[-1])


def axis_moments(orbits: Orbits, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean variance of each level, and the mean squared covariance with the root.

    Going down, an estimate is a part of its parent's and of what is independent of the parent: its covariance
    with the root is the same part of the parent's. The means are over the nodes that a table shows.
    """
    levels = zip(orbits.listed, orbits.known, variances, strict=True)
    noise = [np.where(known, 0.0, np.full_like(listed, own)) for listed, known, own in levels]
    subtree, below = [noise[-1]], []
    with np.errstate(divide="ignore"):
        for level in reversed(range(orbits.depth)):
            below.append(orbits.sum_children(level, subtree[-1]))
            subtree.append(1 / (1 / noise[level] + 1 / below[-1]))
    subtree, below = subtree[::-1], below[::-1]
    final, with_root = [subtree[0]], [subtree[0]]
    for level in range(orbits.depth):
        whole = orbits.spread(level, below[level])
        part = np.divide(subtree[level + 1], whole, out=np.zeros_like(subtree[level + 1]), where=whole > 0)
        final.append(subtree[level + 1] * (1 - part) + part**2 * orbits.spread(level, final[-1]))
        with_root.append(part * orbits.spread(level, with_root[-1]))
    return _listed_means(orbits, final), _listed_means(orbits, [own**2 for own in with_root])


def _listed_means(orbits: Orbits, values: Sequence[FloatArray]) -> FloatArray:
    """Return the mean over the nodes of each level that a table shows; 0 where it shows none."""
    sums = [float((own * listed).sum()) for own, listed in zip(values, orbits.listed, strict=True)]
    return np.array(sums) / np.maximum(orbits.n_listed, 1)


def orbits_of(axis: Tree, zeros: Flags | None) -> Orbits:
    """Return the kinds of nodes of an axis with structural zeros, if it has any."""
    return _orbits(axis, None if zeros is None else tuple(level.tobytes() for level in zeros))


@lru_cache(maxsize=16)
def _orbits(axis: Tree, flags: tuple[bytes, ...] | None) -> Orbits:
    return Orbits.of(axis, None if flags is None else [np.frombuffer(own, dtype=bool) for own in flags])
