"""The best noise variances that are a product over the axes, for weights of the margins that are none.

While the splits of the other axes are fixed, the error is that of one axis, whose levels have the weights of
the margins times the variances of the other axes. So each axis is improved in turn, which never increases the
error. If the largest error counts, it is the sum with multipliers, which rise and fall with the errors.

**Privacy**: a function of the product, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.alternating import Problem, VarianceFunction
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.known_counts import Flags
from pandas_dptree.planning.variance import level_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity

__all__ = ["improved_splits"]

_ONE = Sensitivity(l1=1, l2_squared=1)
_ROUNDS = {False: 60, True: 400}
_STEPS = 20
_CONVERGED = 1e-7
_SMALLEST_SHARE = 1e-4  # of the leaves of an axis


def improved_splits(
    product: ProductTree,
    splits: Sequence[FloatArray],
    *,
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    weights: FloatArray,
    worst: bool,
    zeros: Sequence[Flags | None],
) -> list[FloatArray]:
    """Improve the shares of the levels of each axis until that changes the error of all margins no more.

    The weights of the margins are those of `cost_weights`, and all margins are equally expensive. With the
    loss, noise should be large.
    """
    shares = [split[:, None] for split in splits]
    problems = [
        _problem(Orbits.of(axis, flags), noise, loss) for axis, flags in zip(product.axes, zeros, strict=True)
    ]
    table = weights.reshape(product.lattice_shape)
    means = [_means(problem, own) for problem, own in zip(problems, shares, strict=True)]
    multipliers = np.ones_like(table)
    best, least = shares, np.inf
    for _ in range(_ROUNDS[worst]):
        costs = _product(table, means)
        value = float(costs.max() if worst else costs.sum())
        converged = value >= least * (1 - _CONVERGED) and not worst
        if value < least:
            best, least = list(shares), value
        if worst:
            multipliers = np.maximum(multipliers * costs / value, 1e-12)
            multipliers /= multipliers.sum()
            converged = value <= float((multipliers * costs).sum()) * (1 + _CONVERGED)
        if converged:
            break
        for place, problem in enumerate(problems):
            others = [own if each != place else np.ones(len(own)) for each, own in enumerate(means)]
            parts = _product(table * multipliers, others)
            own = parts.sum(axis=tuple(each for each in range(parts.ndim) if each != place))
            turn = replace(problem, weights=(own / own.sum())[:, None])
            shares[place] = turn.descend(shares[place], steps=2 if worst else _STEPS)[0]
            means[place] = _means(problem, shares[place])
    return [own[:, 0] for own in best]


def _problem(orbits: Orbits, noise: AdditiveNoise, loss: PrivacyLoss) -> Problem:
    """Return the problem of the shares of one axis, of which the weights are still missing."""
    last = np.arange(orbits.depth + 1) == orbits.depth
    return Problem(
        model=partial(level_variances_and_vjp, orbits),
        variance=VarianceFunction.calibrated(noise, loss, _ONE, np.ones(len(last))),
        weights=np.zeros((len(last), 1)),
        worst=False,
        floor=np.where(last, _SMALLEST_SHARE, 0.0)[:, None],
    )


def _means(problem: Problem, shares: FloatArray) -> FloatArray:
    return np.asarray(problem.model(1 / problem.variance(shares))[0][:, 0])


def _product(table: FloatArray, of_axes: Sequence[FloatArray]) -> FloatArray:
    """Multiply numbers of all margins by numbers of the levels of each axis."""
    for place, own in enumerate(of_axes):
        table = table * own.reshape(-1, *(1,) * (table.ndim - 1 - place))
    return table
