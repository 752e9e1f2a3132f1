"""Shares of the budget that are the same for all nodes of a level.

**Privacy**: a split is a function of the tree, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.alternate import NoiseLaw, Problem, promising_splits
from pandas_dptree.planning.objective import Objective, cost_weights
from pandas_dptree.planning.orbits import FloatArray, Orbits
from pandas_dptree.planning.variance import level_variances_and_vjp, unrelated_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity

__all__ = ["geometric_shares", "optimal_shares", "uniform_shares"]

# A level that has to be measured though nobody asks for its error gets this much at least.
_SMALLEST_SHARE = 1e-3
_WORTHWHILE = 1.002  # a smaller gain in budget cannot change which split is best by more than that
_CALIBRATIONS = 3  # of the budget, each followed by a descent
_FINAL_STEPS = 3000  # trees of practical shapes take less than a hundred


def uniform_shares(tree: Tree) -> FloatArray:
    """Give every level the same share.

    Examples
    --------
    >>> uniform_shares(Tree.from_branching([50, 60, 30])).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return np.full(tree.depth + 1, 1 / (tree.depth + 1))


def geometric_shares(tree: Tree, variance_power: int) -> FloatArray:
    """Give each level a share by its size: the best split for all nodes alike, were there no least squares.

    With noise variances ``share**-k`` and n nodes on a level, the sum of ``n * share**-k`` is least for
    shares proportional to ``n**(1 / (1 + k))``: the cube root for Laplace noise under an epsilon, the
    square root under a rho.

    Parameters
    ----------
    tree : Tree
    variance_power : int
        The k above; see `AdditiveNoise.variance_power`.

    Returns
    -------
    numpy.ndarray, shape (n_levels,)

    Examples
    --------
    >>> (7 * geometric_shares(Tree.from_branching([8, 8]), 2)).round(6).tolist()
    [1.0, 2.0, 4.0]
    """
    shares = np.asarray(tree.level_sizes, dtype=np.float64) ** (1 / (1 + variance_power))
    return np.asarray(shares / shares.sum())


def optimal_shares(
    tree: Tree,
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    sensitivity: Sensitivity,
    *,
    objective: Objective = "levels",
    level_weights: FloatArray | None = None,
    least_squares: bool = True,
) -> FloatArray:
    r"""Find the shares for which the estimates will be most accurate.

    Parameters
    ----------
    tree : Tree
    noise : AdditiveNoise
    loss : PrivacyLoss
        That of the whole release.
    sensitivity : Sensitivity
        That of one level.
    objective : {"levels", "cells", "worst"}
        What is to be small, the variance of a level being the mean over the nodes that a table shows:
        ``"levels"``, its weighted mean over the levels; ``"cells"``, the mean over all nodes, a
        node's weight being that of its level; ``"worst"``, the largest weight times variance of a level.
    level_weights : numpy.ndarray, shape (n_levels,), optional
        How much the error of a level matters, at least 0. By default all matter alike.
    least_squares : bool
        Whether the estimates will be least squares on the tree, or the measurements as they are.

    Returns
    -------
    numpy.ndarray, shape (n_levels,)
        At least 0, with sum 1. That of the leaves is at least 1e-3; without least squares, every share is.

    Raises
    ------
    ArgumentError
        If the objective is unknown, or the weights are not numbers of at least 0, one of them more.

    Notes
    -----
    Where precision is proportional to the share (Gaussian noise), the problem is convex. On a uniform tree
    its solution is known: a node of level l having :math:`s_l` leaves and level l the weight :math:`w_l`,

    .. math:: p_k \propto \frac{\sqrt{\lambda_k} - \sqrt{\lambda_{k+1}}}{s_k},
              \qquad \lambda_k = \sum_{l \ge k} w_l s_l^2,

    which attains the singular-value lower bound of the matrix mechanism (Li and Miklau, "Optimal error of
    query sets under the differentially-private matrix mechanism", 2013). Other trees are solved
    numerically, to within 1e-6 of the least cost there is.

    For Laplace noise under an epsilon the problem is not convex, and often it is best to leave levels out.
    The sets of levels are searched on a uniform tree with the same level sizes, and the most promising ones
    refined on the tree itself. The answer is a local minimum, the best of many; it is never worse than the
    uniform, the geometric and the closed-form split above.

    All comparisons use the exact variances of the discrete noise.
    """
    orbits = Orbits.of(tree)
    weights = cost_weights(orbits.n_listed, objective, level_weights)
    law = _calibrated_law(noise, loss, sensitivity, uniform_shares(tree))
    must_measure = np.arange(tree.depth + 1) >= (tree.depth if least_squares else 0)
    problem = Problem(
        model=partial(level_variances_and_vjp, orbits) if least_squares else unrelated_variances_and_vjp,
        law=law,
        weights=weights[:, None],
        worst=objective == "worst",
        floor=np.where(must_measure, _SMALLEST_SHARE, 0.0)[:, None],
    )
    closed_form = problem.normalise(_closed_form(tree, weights)[:, None])[:, 0]
    if problem.law.is_linear and least_squares and tree.is_uniform and not problem.worst:
        return closed_form
    even, geometric = uniform_shares(tree), geometric_shares(tree, problem.law.power)
    splits = np.stack([even, geometric, closed_form], axis=1)
    if least_squares and not problem.law.is_linear:
        similar = replace(
            problem, model=partial(level_variances_and_vjp, Orbits.from_sizes(tree.level_sizes))
        )
        keep = max(4, 2**17 // orbits.n_kinds)  # as many as cost little to refine
        splits = np.concatenate([splits, promising_splits(similar, tree.depth, keep=keep)], axis=1)
    tight = not problem.law.is_linear and _gain(noise, loss, sensitivity, even) > _WORTHWHILE
    if tight:  # then many levels share a budget that adds up like a rho
        splits = np.concatenate([splits, problem.normalise(np.sqrt(closed_form[:, None]))], axis=1)
    finalists = 6 if tight else 1
    while splits.shape[1] > finalists:
        splits, values = problem.descend(splits, steps=1 if problem.law.is_linear else 8)
        splits = splits[:, np.argsort(values, kind="stable")[: max(splits.shape[1] // 2, finalists)]]
    if not tight:
        return problem.descend(splits, steps=_FINAL_STEPS)[0][:, 0]

    def calibrated(split: FloatArray) -> Problem:
        return replace(problem, law=_calibrated_law(noise, loss, sensitivity, split))

    # What tight composition gains depends on the levels that are measured: calibrate and descend in turn.
    best = list(splits.T)
    for _ in range(_CALIBRATIONS):
        best = [calibrated(split).descend(split[:, None], steps=_FINAL_STEPS)[0][:, 0] for split in best]
    best += [problem.normalise(split[:, None])[:, 0] for split in (even, geometric, closed_form)]
    return min(best, key=lambda split: float(calibrated(split).descend(split[:, None], steps=1)[1][0]))


def _calibrated_law(
    noise: AdditiveNoise, loss: PrivacyLoss, sensitivity: Sensitivity, shares: FloatArray
) -> NoiseLaw:
    """Give the law of the noise under the budget that these shares allow."""
    power, largest = noise.variance_power(loss), shares.argmax()
    scale = noise.noise_scales(loss, sensitivity, shares)[largest]
    return NoiseLaw(noise, float(scale * shares[largest] ** (power / 2)), power)


def _gain(noise: AdditiveNoise, loss: PrivacyLoss, sensitivity: Sensitivity, shares: FloatArray) -> float:
    """How much more budget tight composition finds in a delta than there is without."""
    if loss.kind != "approximate":
        return 1.0
    plain = noise.noise_scales(PrivacyLoss(epsilon=loss.epsilon), sensitivity, shares)
    return float(plain[0] / noise.noise_scales(loss, sensitivity, shares)[0])


def _closed_form(tree: Tree, weights: FloatArray) -> FloatArray:
    """Shares that are best on a uniform tree of these level sizes if precision is proportional to share."""
    leaves = tree.n_leaves / np.asarray(tree.level_sizes, dtype=np.float64)
    roots = np.sqrt(np.cumsum((weights * leaves**2)[::-1])[::-1])
    return np.asarray((roots - np.append(roots[1:], 0.0)) / leaves)
