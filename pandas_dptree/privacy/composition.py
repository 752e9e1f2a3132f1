r"""The delta of a release over several levels at a given epsilon, and the largest budget for a given delta.

A level adds independent noise to all its counts. The *privacy loss* is the logarithm of the ratio of the
probabilities of the noisy counts under one data set and under its neighbour. Losses of independent noises add
up. For their sum L under the first data set

.. math:: \delta(\epsilon) = \mathrm{E}\bigl[(1 - e^{\epsilon - L})_+\bigr].

This module computes the distribution of the sum itself, not a bound on its moments, and moves every error to
the safe side. The proofs are on the documentation page *Calibration of noise over several levels*.

**Privacy**: everything here is public and depends on no record. The returned deltas hold for every pair of
neighbours and all levels together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.privacy.conversions import zcdp_delta
from pandas_dptree.privacy.level_losses import float_above, laplace_level, together
from pandas_dptree.privacy.sensitivity import Sensitivity, TreeSensitivity
from pandas_dptree.privacy.simulated_gaussian import (
    ROUNDINGS,
    SimulatedGaussian,
    Smoothing,
    continuous_delta,
    simulation,
)

__all__ = [
    "GaussianProfile",
    "gaussian_delta",
    "joint_gaussian_delta",
    "laplace_delta",
    "largest_budget",
]

FloatArray = npt.NDArray[np.float64]

_EXACT_BELOW = 16.0  # a discrete Gaussian of at least this scale matches a continuous one within 1e-3
_TAIL = 12.0  # beyond so many standard deviations, the mass of a discrete Gaussian counts as failure
_FAILED = 2.0**-102  # 2.0e-31: above both tails together, 2 * (e**(-12**2 / 2) + Phi(-12)) = 1.1e-31
_LONGEST_SHIFT = 512  # a Laplace loss with more values is replaced by randomised response
_MANY_NODES = 64  # a unit that can change more nodes of a level counts as if it changed one by all of it
_MANY_PATTERNS = 8  # of the moves of all levels; more are covered by so many
_MANY_VALUES = 2**13  # sums of losses with at most so many values are listed, not put on a grid
_FINENESS = 0.035  # the grid widens the summed loss by about 0.035**2 / 6 = 0.02 % of its variance
_CLOSE = 1e-4  # a delta short by twice this fraction wastes less than 1e-5 of the noise


class _Loss(NamedTuple):
    """The distribution of a privacy loss."""

    values: FloatArray
    masses: FloatArray  # their probabilities
    failed: float  # the probability without a value
    roundings: int  # the relative error of each mass is at most this times 2**-52


def laplace_delta(
    epsilon: float, noise_scales: npt.ArrayLike, sensitivity: Sensitivity | TreeSensitivity
) -> float:
    r"""Return a delta for which discrete Laplace noise on several levels is (epsilon, delta)-DP, rounded up.

    If one row is added or removed, a level's loss is one of the two values :math:`\pm 1/b`, the upper one
    with probability :math:`e^{1/b}/(1 + e^{1/b})`. That is randomised response, for which the sum of the
    losses gives the smallest possible delta (Kairouz, Oh and Viswanath, "The composition theorem for
    differential privacy", 2015; Murtagh and Vadhan, "The complexity of computing the optimal composition of
    differential privacy", 2016). It is exactly 0 if the levels' epsilons add up to at most `epsilon`.

    Of all moves of a level, delta is largest if as many nodes as possible move as far as possible, and one by
    the rest: that is Lemma 4 of the documentation page. By Lemma 1, a single node that moves by all of it
    is a bound too; it is used if it is smaller, since fewer losses can be added up more closely. The delta is
    the largest of all patterns in which the levels move. If neighbours lie in the `hull` of the patterns, all
    levels count as if each moved by its largest; the bound by concentrated privacy, `zcdp_delta`, is used if
    it is smaller, because there the sum over the levels (`laplace_level`) is largest for one of the patterns,
    unless only `squares` lie in the hull.

    >>> laplace_delta(0.9, [2.0, 2.0], Sensitivity(l1=1, l2_squared=1))  # doctest: +ELLIPSIS
    0.0368...
    """
    epsilon, scales, moves = _checked(epsilon, noise_scales, sensitivity)
    spent = (
        sum((level.l1 / Fraction(b) for level, b in zip(pattern, scales.tolist(), strict=True)), Fraction())
        for pattern in moves.patterns
    )
    if max(spent) <= Fraction(epsilon):
        return 0.0
    patterns = moves.covered(_MANY_PATTERNS).patterns
    listed = max(_laplace_delta(epsilon, scales.tolist(), pattern) for pattern in patterns)
    if not moves.hull or moves.squares:
        return listed
    rho = max(together(map(laplace_level, scales.tolist(), pattern)).rho for pattern in moves.patterns)
    return min(listed, zcdp_delta(float_above(rho), epsilon))


def gaussian_delta(
    epsilon: float, noise_scales: npt.ArrayLike, sensitivity: Sensitivity | TreeSensitivity
) -> float:
    r"""Return a delta for which discrete Gaussian noise on several levels is (epsilon, delta)-DP, rounded up.

    Levels with little noise enter with their exact privacy loss: for counts that move by s it is
    :math:`(s^2 + 2sx)/2\sigma^2` with x from the noise. Levels with much noise enter as the continuous
    Gaussian mechanism that simulates them up to a factor close to 1; its delta is known in closed form (Balle
    and Wang, "Improving the Gaussian mechanism for differential privacy", 2018, Theorem 8). The bound by
    concentrated privacy, `zcdp_delta`, is used if it is smaller. Both, and the simulation of all levels,
    depend only on the squared distance, a sum of convex functions of the moves of nodes.

    >>> gaussian_delta(1.0, [6.0, 6.0], Sensitivity(l1=1, l2_squared=1))  # doctest: +ELLIPSIS
    9.004...e-07
    """
    epsilon, scales, moves = _checked(epsilon, noise_scales, sensitivity)
    if len(moves.patterns) == 1:
        return _gaussian_delta(epsilon, scales, moves.patterns[0])
    simulated = joint_gaussian_delta(epsilon, [(scales, moves)])
    if (scales >= _EXACT_BELOW).all():
        return simulated
    patterns = moves.covered(_MANY_PATTERNS).patterns
    return min(simulated, max(_gaussian_delta(epsilon, scales, pattern) for pattern in patterns))


def joint_gaussian_delta(
    epsilon: float,
    quantities: Sequence[tuple[npt.ArrayLike, Sensitivity | TreeSensitivity]],
) -> float:
    r"""Return a delta for discrete Gaussian noise on several quantities of the same records, rounded up.

    All of it is simulated by continuous Gaussian noise, under which the distance between neighbours is
    :math:`\mu = (\sum_q \sum_l \Delta_{ql}^2 / (\sigma_{ql}^2 - \tau_{ql}^2))^{1/2}`, each quantity being in
    the pattern for which that is largest. The bound by concentrated privacy, `zcdp_delta`, is used if it is
    smaller. Each quantity has its noise scales and its sensitivity, that of all levels or of any one, both in
    its own units.
    """
    checked = []
    for noise_scales, sensitivity in quantities:
        epsilon, scales, moves = _checked(epsilon, noise_scales, sensitivity)
        checked.append((scales**2, moves))
    variances = np.concatenate([each for each, _ in checked])
    if not variances.size:
        return 0.0
    squares = [
        np.array([[float(level.l2_squared) for level in pattern] for pattern in moves.patterns])
        for _, moves in checked
    ]
    ends = np.cumsum([len(each) for each, _ in checked])[:-1]

    def worst(weights: FloatArray) -> FloatArray:
        """Return the squares of the pattern in which the weighted sum of squares is largest."""
        parts = zip(squares, np.split(weights, ends), strict=True)
        return np.concatenate([own[np.argmax(own @ part)] for own, part in parts])

    n_moves = max(min(level.l1, level.l2_squared) for _, moves in checked for level in moves.levels)

    def inverse_sum(kernels: FloatArray) -> float:
        weights = 1 / (variances - kernels)
        return math.fsum(worst(weights) / (variances - kernels)) * (1 + 2**-48)

    precision = inverse_sum(np.zeros(len(variances)))
    if not precision:
        return 0.0
    concentrated = zcdp_delta(precision / 2, epsilon)
    smoothing = simulation(variances, inverse_sum, n_moves, 1, math.sqrt(precision))
    return concentrated if smoothing is None else min(concentrated, _delta(epsilon, [], 0.0, smoothing))


class GaussianProfile:
    r"""The delta, at any real epsilon, of discrete Gaussian noise on counts that move by known whole numbers.

    Each count that moves has the scale of its noise and how far it moves. Counts with little noise enter with
    their exact privacy loss, the others by simulation, as in `gaussian_delta`. So do counts of which less is
    known, the `others`: several of one noise scale, with the most that the squares of their moves add up to
    and their largest number. If there are any, `zcdp_delta` is used where it is smaller. An epsilon below 0
    is meaningful: :math:`\delta(\epsilon) = \max_S P(S) - e^\epsilon Q(S)` is then at least
    :math:`1 - e^\epsilon`.
    """

    def __init__(
        self, moves: Sequence[tuple[float, int]], others: Sequence[tuple[float, int, int]] = ()
    ) -> None:
        """Compute the distribution of the summed loss once, for all epsilons."""
        moved = [(scale, shift) for scale, shift in moves if shift and scale < math.inf]
        exact = [(scale, shift) for scale, shift in moved if scale < _EXACT_BELOW]
        apart = [(scale, math.sqrt(squares)) for scale, squares, _ in others if squares and scale < math.inf]
        smooth = np.array([*(each for each in moved if each[0] >= _EXACT_BELOW), *apart]).reshape(-1, 2)
        width = math.sqrt(math.fsum((shift / scale) ** 2 for scale, shift in (*moved, *apart)))
        simulated = SimulatedGaussian(smooth[:, 0], smooth[:, 1], max((n for *_, n in others), default=1))
        self._exists, self._rho = simulated.exists, width**2 / 2 * (1 + 2**-40) if apart else math.inf
        self._smoothing = simulated.smoothing(float(smooth[:, 1] ** 2 @ simulated.inverse_variances))
        self._loss = _summed_loss([_gaussian_loss(scale, shift) for scale, shift in exact], width)

    def delta(self, epsilon: float) -> float:
        """Return the delta at an epsilon, rounded up."""
        summed = _delta_of_sum(epsilon, self._loss, self._smoothing) if self._exists else 1.0
        return min(summed, zcdp_delta(self._rho, epsilon)) if epsilon > 0 and self._rho < math.inf else summed


def largest_budget(delta_at: Callable[[float], float], delta: float, *, at_least: float) -> float:
    """Find the largest budget with at most a given delta, rounded down.

    It is `at_least`, known by other means, or one for which ``delta_at(budget) <= delta`` was computed
    (approximately increasing, by the noise scales that the budget buys), a few parts in a million below the
    limit.
    """
    if not 0 < delta < 1:
        raise ArgumentError(
            "delta", f"must be above 0 and below 1, not {quote(delta)}.", hint="for example delta=1e-6."
        )

    def excess(budget: float) -> float:
        return math.log(max(delta_at(budget) / (delta * (1 - _CLOSE)), 1e-9))

    low, below = at_least, excess(at_least)
    if below > -_CLOSE:
        return at_least
    high, above = 1.1 * low, excess(1.1 * low)
    while above < 0 and high < 1e300:
        low, below, high = high, above, high * (2 * high / at_least - 1)  # 1.1, 1.32, 2.16, 7.2, ... times
        above = excess(high)
    # Regula falsi on logarithms, where the curve is almost straight. The value at an end that was kept twice
    # is halved (the Illinois variant), so that both ends converge.
    last = 0.0
    while high > low * (1 + 1e-9):
        middle = low * math.pow(high / low, min(max(below / (below - above), 1e-3), 1 - 1e-3))
        value = excess(middle)
        if abs(value) < 0.9 * _CLOSE:  # then delta_at(middle) is below delta
            return middle
        if value < 0:
            low, below, above = middle, value, above / 2 if last < 0 else above
        else:
            high, above, below = middle, value, below / 2 if last > 0 else below
        last = value
    return low


def _laplace_delta(epsilon: float, scales: Sequence[float], pattern: Sequence[Sensitivity]) -> float:
    """Return a delta of Laplace noise if the levels move in one pattern."""
    alone = [[level.l1] for level in pattern]
    moves = [_several(level) for level in pattern]
    return min(
        _laplace_delta_of(epsilon, scales, each) for each in ([alone] if moves == alone else [alone, moves])
    )


def _several(level: Sensitivity) -> list[int]:
    """Return the moves of as many nodes of a level as possible, or of one if these are too many."""
    n_nodes, rest = divmod(level.l1, level.linf or 1)
    return [level.linf] * n_nodes + [rest] * (rest > 0) if n_nodes < _MANY_NODES else [level.l1]


def _laplace_delta_of(epsilon: float, scales: Sequence[float], moves: Sequence[Sequence[int]]) -> float:
    """Return a delta of Laplace noise if the counts of each level move by these whole numbers."""
    losses = [
        _laplace_loss(scale, shift)
        for scale, shifts in zip(scales, moves, strict=True)
        for shift in shifts
        if shift
    ]
    width = math.sqrt(math.fsum(loss.values[0] ** 2 for loss in losses))
    return _delta(epsilon, losses, width, Smoothing(0.0, 0.0, 0.0)) if losses else 0.0


def _gaussian_delta(epsilon: float, noise_scales: FloatArray, pattern: Sequence[Sensitivity]) -> float:
    """Return a delta of Gaussian noise if the levels move in one pattern."""
    moved = np.array([level.l1 > 0 for level in pattern], dtype=bool)
    levels, scales = list(itertools.compress(pattern, moved)), noise_scales[moved]
    if not levels:
        return 0.0
    most = max(level.l2_squared for level in levels)
    parts = np.array([level.l2_squared / most for level in levels])
    precision = most * math.fsum(parts * scales**-2) * (1 + 2**-48)
    concentrated, width = zcdp_delta(precision / 2, epsilon), math.sqrt(precision)
    shifts = [_shifts(level) for level in levels]
    smooth = np.array(
        [scale >= (_EXACT_BELOW if own else 0.0) for scale, own in zip(scales, shifts, strict=True)]
    )
    n_moves = max(
        len(own) or min(level.l1, level.l2_squared) for own, level in zip(shifts, levels, strict=True)
    )
    smoothing = simulation(
        scales[smooth] ** 2,
        lambda kernels: math.fsum(parts[smooth] / (scales[smooth] ** 2 - kernels)),
        n_moves,
        most,
        width,
    )
    if smoothing is None:
        return concentrated
    losses = [
        _gaussian_loss(scale, shift)
        for scale, own, simulated in zip(scales.tolist(), shifts, smooth, strict=True)
        if not simulated
        for shift in own
    ]
    return min(concentrated, _delta(epsilon, losses, width, smoothing))


def _laplace_loss(scale: float, shift: int) -> _Loss:
    """Return the loss of a count that moves by `shift` under discrete Laplace noise."""
    if shift > _LONGEST_SHIFT:  # randomised response of the same epsilon dominates any mechanism
        scale, shift = scale / shift, 1
    x = np.arange(shift + 1.0)  # noise of 0 or less, 1, ..., shift - 1, shift or more
    masses = np.exp(-x / scale) / (1 + math.exp(-1 / scale))
    masses[1:-1] *= -math.expm1(-1 / scale)
    return _Loss((shift - 2 * x) / scale, masses, 0.0, ROUNDINGS)


def _gaussian_loss(scale: float, shift: int) -> _Loss:
    """Return the loss of a count that moves by `shift` under discrete Gaussian noise."""
    reach = math.floor(_TAIL * scale)
    x = np.arange(-reach, reach + 1.0)
    masses = np.exp(-((x / scale) ** 2) / 2)  # divided below by too small a sum, which only raises them
    return _Loss(shift * (shift + 2 * x) / (2 * scale**2), masses / masses.sum(), _FAILED, ROUNDINGS)


def _shifts(sensitivity: Sensitivity) -> tuple[int, ...]:
    """Return moves that dominate any of a level with Gaussian noise; empty if none are known.

    By Lemma 1 of the documentation page, a move by a vector is no worse than the move of one count by the
    vector's L1 norm. So n counts that move by s each are the worst case if every permitted vector can be
    split into n parts of L1 norm up to s. That holds for n = 1, and if s is at most 2 and no coordinate can
    exceed it.
    """
    l1, l2_squared = sensitivity.l1, sensitivity.l2_squared
    n, shift = l1**2 // l2_squared, l2_squared // l1
    if n * shift != l1 or n * shift**2 != l2_squared:
        return ()
    if n == 1 or (shift <= 2 and sensitivity.linf <= shift):
        return (shift,) * n
    return ()


def _delta(epsilon: float, losses: Sequence[_Loss], width: float, smoothing: Smoothing) -> float:
    r"""Return the delta of independent losses together with simulated Gaussian noise, rounded up.

    A value of a loss is off by less than :math:`2^{-50}` of the loss's largest; epsilon is lowered by that.
    The masses are sums and products of positive numbers, so their relative errors add up.
    """
    return _delta_of_sum(epsilon, _summed_loss(losses, width), smoothing)


def _summed_loss(losses: Sequence[_Loss], width: float) -> tuple[_Loss, float]:
    """Return the sum of independent losses, listed or on a grid, and the sum of their largest values."""
    listed = math.prod(len(loss.values) for loss in losses) <= _MANY_VALUES
    total = _sum(losses) if listed else _grid_sum(losses, _FINENESS * width / math.sqrt(len(losses)))
    return total, math.fsum(np.abs(loss.values).max() for loss in losses)


def _delta_of_sum(epsilon: float, summed: tuple[_Loss, float], smoothing: Smoothing) -> float:
    """Return the delta of a summed loss together with simulated Gaussian noise, rounded up."""
    total, largest = summed
    slack = 2.0**-44 * (abs(epsilon) + largest)
    left = epsilon - slack - smoothing.log_ratio - total.values
    expected = float(total.masses @ continuous_delta(left, smoothing.mu))
    relative = 2.0**-52 * (total.roundings + len(total.values) + ROUNDINGS)
    bound = (expected * math.exp(smoothing.log_upper) + total.failed) * (1 + relative)
    return min(1.0, bound + 2.0**-200)  # 2**-200 covers underflow, times e**600


def _sum(losses: Sequence[_Loss]) -> _Loss:
    """List all sums of independent losses."""
    total = _Loss(np.zeros(1), np.ones(1), 0.0, 0)
    for loss in losses:
        total = _Loss(
            np.add.outer(total.values, loss.values).ravel(),
            np.multiply.outer(total.masses, loss.masses).ravel(),
            total.failed + loss.failed,
            total.roundings + loss.roundings,
        )
    return total


def _grid_sum(losses: Sequence[_Loss], step: float) -> _Loss:
    """Return the sum of independent losses on a grid, pessimistically."""
    step = 2.0 ** math.floor(math.log2(step))  # multiples of a power of two are exact
    first, masses, failed, roundings = 0, np.ones(1), 0.0, 0
    for loss in losses:
        start, kernel = _on_grid(loss, step)
        masses = np.convolve(masses, kernel)
        below, above = np.cumsum(masses), np.cumsum(masses[::-1])[::-1]
        kept = np.flatnonzero((below > _FAILED) & (above > _FAILED))
        first, masses = first + start + int(kept[0]), masses[kept[0] : kept[-1] + 1]
        failed += loss.failed + 2 * _FAILED
        roundings += loss.roundings + len(kernel)
    return _Loss(step * np.arange(float(first), first + len(masses)), masses, failed, roundings)


def _on_grid(loss: _Loss, step: float) -> tuple[int, FloatArray]:
    r"""Move a loss onto multiples of `step`: return the first multiple, and the masses from there on.

    The mass at v goes to the two neighbouring multiples such that the mean of :math:`e^{-v}` is unchanged. By
    Lemma 2 of the documentation page this can only raise delta, by no more than the order of the step
    squared.
    """
    position = loss.values / step
    cell = np.floor(position)
    upper = np.minimum(np.expm1((cell - position) * step) / math.expm1(-step) + 2.0**-50, 1.0)
    first, size = int(cell.min()), int(cell.max() - cell.min()) + 2
    index = (cell - first).astype(np.int64)
    masses = np.zeros(size)
    np.add.at(masses, index, loss.masses * (1 - upper))
    np.add.at(masses, index + 1, loss.masses * upper)
    return first, masses


def _checked(
    epsilon: float, noise_scales: npt.ArrayLike, sensitivity: Sensitivity | TreeSensitivity
) -> tuple[float, FloatArray, TreeSensitivity]:
    """Check epsilon and the scales, and return the scales and the moves of the levels that are measured."""
    if not 0 < epsilon < math.inf:
        raise ArgumentError(
            "epsilon", f"must be positive and finite, not {quote(epsilon)}.", hint="for example epsilon=0.5."
        )
    scales = np.asarray(noise_scales, dtype=np.float64)
    if scales.ndim != 1 or not (scales > 0).all():
        raise ArgumentError(
            "noise_scales",
            f"must be one positive number for each level, not {quote(scales.tolist())}.",
            hint="inf for a level that is not measured.",
        )
    measured = scales < math.inf
    return float(epsilon), scales[measured], sensitivity.on(len(scales)).part(measured)
