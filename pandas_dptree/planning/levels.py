"""Shares of the budget that are the same for all nodes of a level.

**Privacy**: a split is a function of the tree, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise, Moves
from pandas_dptree.planning.alternating import Problem, VarianceFunction, promising_splits
from pandas_dptree.planning.closed_form import best_uniform_split
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.known_counts import Flags, levels_to_measure
from pandas_dptree.planning.objective import Objective, cost_weights
from pandas_dptree.planning.patterns import pattern_costs, relative_costs, undominated
from pandas_dptree.planning.variance import level_variances_and_vjp, unrelated_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["geometric_shares", "optimal_shares", "uniform_shares"]

# The least share of a level that has to be measured even if its error has no weight.
_SMALLEST_SHARE = 1e-3
_WORTHWHILE = 1.002  # a smaller gain in budget cannot change which split is best by more than that
_CALIBRATIONS = 3  # of the budget, each followed by a descent
_NO_LOSS = 1e-6  # a larger cost, relatively, is not as good
_FINAL_STEPS = 3000  # trees of practical shapes need less than a hundred


def uniform_shares(tree: Tree, *, known: Flags | None = None) -> FloatArray:
    """Give every level the same share, and none to a level whose counts are all known."""
    unknown = levels_to_measure(tree, known)
    return np.where(unknown, 1 / np.count_nonzero(unknown), 0.0)


def geometric_shares(tree: Tree, variance_power: int, *, known: Flags | None = None) -> FloatArray:
    """Give each level of n nodes a share proportional to n**(1 / (1 + k)), with k the `variance_power`.

    If all levels cost the same, it is the best split for all nodes equally without least squares, since it
    minimizes the sum of ``n * share**-k``. A level whose counts are all known gets no share.
    """
    sizes = np.where(levels_to_measure(tree, known), np.asarray(tree.level_sizes, dtype=np.float64), 0.0)
    shares = sizes ** (1 / (1 + variance_power))
    return np.asarray(shares / shares.sum())


def optimal_shares(
    tree: Tree,
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    sensitivity: Moves,
    *,
    objective: Objective = "levels",
    level_weights: FloatArray | None = None,
    least_squares: bool = True,
    known: Flags | None = None,
) -> FloatArray:
    """Find the shares, of sum 1, for which the estimates are most accurate, by the exact variances.

    The sensitivity is that of all levels, or of any one; the share of a level is in proportion to what it
    costs by itself. That of the leaves is at least 1e-3 (without least squares, every share is); that of a
    level whose counts are all `known` is 0. Where precision is proportional to the share, the problem is
    convex, with a closed form for uniform trees (`closed_form`); other trees are solved to within 1e-6. For
    Laplace noise under an epsilon, the sets of measured levels are searched on a uniform tree of the same
    level sizes, and the best refined on the tree itself: the best of many local minima, never worse than
    the uniform, the geometric and the closed-form split. If the worst measurement is to be good and all
    levels matter equally, the split is even.
    """
    sizes = [tree.n_listed(level) for level in range(tree.depth + 1)]
    weights = tuple(cost_weights(sizes, objective, level_weights).tolist())
    flags = None if known is None else tuple(level.tobytes() for level in known)
    return _search(tree, flags, noise, loss, sensitivity, weights, objective == "worst", least_squares).copy()


@lru_cache(maxsize=16)  # all public: a monthly report has the same tree and budget, and trees may be large
def _search(
    tree: Tree,
    flags: tuple[bytes, ...] | None,
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    sensitivity: Moves,
    level_weights: tuple[float, ...],
    worst: bool,
    least_squares: bool,
) -> FloatArray:
    """Search the best split, for weights from `cost_weights` and the bytes of the flags of known nodes."""
    known = None if flags is None else [np.frombuffer(level, dtype=bool) for level in flags]
    unknown = levels_to_measure(tree, known)
    even = uniform_shares(tree, known=known)
    orbits = Orbits.of(tree, known)
    weights = np.array(level_weights)
    moves = sensitivity.on(tree.depth + 1)
    costs = pattern_costs(noise, loss, moves) * unknown
    places = undominated(costs)
    costs = costs[places] / costs.max()
    if len(moves.patterns) > 1:  # the others hardly matter for a delta, which takes longer to compute
        chosen = tuple(moves.patterns[place] for place in places.tolist())
        moves = replace(moves, patterns=chosen, between=False)
    alone = costs.max(axis=0)
    if worst and not least_squares and np.ptp((weights * orbits.part_unknown)[unknown]) == 0:
        return np.asarray(alone / alone.sum())
    must_measure = unknown & (np.arange(tree.depth + 1) >= (tree.depth if least_squares else 0))
    problem = Problem(
        model=(
            partial(level_variances_and_vjp, orbits)
            if least_squares
            else partial(unrelated_variances_and_vjp, orbits.part_unknown)
        ),
        variance=VarianceFunction.calibrated(noise, loss, moves, even),
        weights=weights[:, None],
        worst=worst,
        floor=np.where(must_measure, _SMALLEST_SHARE, 0.0)[:, None],
        patterns=relative_costs(costs) if len(costs) > 1 else None,
    )
    closed_form = best_uniform_split(tree.level_sizes, weights, costs)[0] * alone
    closed_form = problem.normalise((closed_form if closed_form.any() else even)[:, None])[:, 0]
    by_level = all(level.all() == level.any() for level in orbits.known)
    raised = len(costs) > 1 and bool((closed_form < problem.floor[:, 0]).any())
    linear = problem.variance.is_linear
    if linear and least_squares and tree.is_uniform and by_level and not (worst or raised):
        return closed_form
    pooled = unknown & (closed_form == 0) & (np.cumsum(weights[::-1])[::-1] > 0)
    reconsider = linear and pooled.any() and np.ptp(costs[:, unknown]) > 0
    if reconsider and worst:  # a level without a share would never get one
        closed_form = problem.normalise(np.where(pooled, _SMALLEST_SHARE, closed_form)[:, None])[:, 0]
    geometric = geometric_shares(tree, problem.variance.power, known=known)
    splits = np.stack([even, geometric, closed_form], axis=1)
    if least_squares and not linear:
        # A level that is mostly known is treated as known, except for the leaves.
        useful = unknown & (orbits.part_unknown > 0.5) | (np.arange(tree.depth + 1) == tree.depth)
        imagined = Orbits.from_sizes(tree.level_sizes, useful)
        similar = replace(problem, model=partial(level_variances_and_vjp, imagined))
        keep = max(4, 2**17 // orbits.n_kinds)  # as many as are cheap to refine
        splits = np.concatenate(
            [splits, promising_splits(similar, tree.depth, keep=keep, unknown=useful)], axis=1
        )
    tight = not linear and noise.composition_gain(loss, moves, even) > _WORTHWHILE
    if tight:  # then many levels share a budget that adds up like a rho
        splits = np.concatenate([splits, problem.normalise(np.sqrt(closed_form[:, None]))], axis=1)
    finalists = 6 if tight else 1
    while splits.shape[1] > finalists:
        splits, values = problem.descend(splits, steps=1 if linear else 8)
        splits = splits[:, np.argsort(values, kind="stable")[: max(splits.shape[1] // 2, finalists)]]
    if not tight:
        split = problem.descend(splits, steps=_FINAL_STEPS)[0]
        if reconsider:
            split = _reduced(problem, split) if worst else _completed(problem, split, unknown)
        return split[:, 0]

    def calibrated(split: FloatArray) -> Problem:
        return replace(problem, variance=VarianceFunction.calibrated(noise, loss, moves, split))

    # What tight composition gains depends on the levels that are measured: calibrate and descend in turn.
    best = list(splits.T)
    for _ in range(_CALIBRATIONS):
        best = [calibrated(split).descend(split[:, None], steps=_FINAL_STEPS)[0][:, 0] for split in best]
    best += [problem.normalise(split[:, None])[:, 0] for split in (even, geometric, closed_form)]
    return min(best, key=lambda split: float(calibrated(split).descend(split[:, None], steps=1)[1][0]))


def _completed(problem: Problem, split: FloatArray, unknown: npt.NDArray[np.bool_]) -> FloatArray:
    """Measure levels with a share of 0 as well, as long as that improves a split, shape (n_levels, 1)."""
    for _ in range(len(split)):
        idle = np.flatnonzero(unknown & (split[:, 0] == 0))
        more = np.where(np.arange(len(split))[:, None] == idle, _SMALLEST_SHARE, split)
        costs = problem.descend(np.hstack([split, problem.normalise(more)]), steps=1)[1]
        useful = idle[costs[1:] < costs[0]]
        if not useful.size:
            break
        start = split.copy()
        start[useful] = _SMALLEST_SHARE
        better, cost = problem.descend(problem.normalise(start), steps=_FINAL_STEPS)
        if not cost < costs[0]:
            break
        split = better
    return split


def _reduced(problem: Problem, split: FloatArray) -> FloatArray:
    """Leave out levels with hardly a share, if a split, shape (n_levels, 1), is as good without them."""
    useful = (split >= _SMALLEST_SHARE) | (problem.floor > 0)
    fewer, cost = problem.descend(problem.normalise(np.where(useful, split, 0.0)), steps=_FINAL_STEPS)
    return fewer if cost <= problem.descend(split, steps=1)[1] * (1 + _NO_LOSS) else split
