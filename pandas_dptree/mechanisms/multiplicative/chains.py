r"""Two methods to choose a chain of thresholds and to divide the privacy loss over it.

`Thresholds` in `pandas_dptree.mechanisms.multiplicative.thresholds` states what they compute, and proves it
sufficient. There is one threshold :math:`\tau_i` between any two bounds :math:`M_{i-1}` and :math:`M_i`; the
largest bound is the first to reach 2**40.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["LARGEST_TOTAL", "Chain", "Exact", "Method", "Proof"]

FloatArray = npt.NDArray[np.float64]

LARGEST_TOTAL = 2**40
"""Larger counts are clipped to this. The chain ends here, which keeps its noise scales below 1e12."""

_LEAST_WEIGHT = 2.0**-13  # of the mean weight: it limits the noise of the largest thresholds
_MARGIN = 1e-9  # counts or fractions, above any rounding error of the formulas below


class Chain(NamedTuple):
    """The public part: M_0 … M_l, v_0 … v_l and τ_1 … τ_l."""

    bounds: IntArray
    estimates: IntArray
    thresholds: IntArray


class Method(Protocol):
    """A method to choose a chain and to divide the loss over it."""

    cutoff: int
    total_share: float

    def smallest_tau(self) -> float:
        """Return the smallest tau found for which the guarantee is proven."""

    def chain(self, tau: float) -> Chain:
        """Return the bounds, estimates and thresholds for a tau."""

    def weights(self, n_rounds: int) -> FloatArray:
        """Return the proportions of epsilon and delta for the first thresholds, if `n_rounds` are in use."""

    def slack(self, epsilons: FloatArray) -> IntArray:
        """Return how far below its threshold a count with a positive answer may be."""


class Proof:
    """The chain of Theorem A.1, corrected."""

    total_share = 0.5

    def __init__(self, alpha: float, eta: float, epsilon: float, delta: float, depth: int) -> None:
        self.alpha, self.epsilon, self.delta = alpha, epsilon, delta
        self.beta = alpha / (6 + 5 * alpha)
        self.growth = (1 + alpha) * (1 - self.beta) / (1 + self.beta)
        self.cutoff = math.ceil(1 + alpha)  # M_i / ((1 - beta) tau_i) is 1 + alpha
        self.log_failure = math.log(2 * depth / eta)

    def smallest_tau(self) -> float:
        """Return the smallest tau for which the guarantee is proven."""
        alpha, beta = self.alpha, self.beta
        share = (1 - 1 / self.growth) ** 2 / (1 + _LEAST_WEIGHT)
        epsilon, delta = self.epsilon * share, self.delta * share
        logs = max(48 * (self.log_failure + math.log(2)), 6 * _log_ratio(epsilon / 2, delta))
        return (1 + beta) / (alpha * beta) * (2 * (1 + alpha) * (1 - beta) / epsilon * logs + 4)

    def chain(self, tau: float) -> Chain:
        """Return the bounds, estimates and thresholds for a tau."""
        n_rounds = _most_rounds(self.alpha * tau, self.growth)
        powers = min(self.alpha * tau, LARGEST_TOTAL) * self.growth ** np.arange(n_rounds + 1.0)
        bounds = _down(powers)  # counts are whole, so nothing is lost, and the estimate is closer
        return Chain(bounds, bounds, _up(powers[:-1] / (1 + self.beta)))

    def weights(self, n_rounds: int) -> FloatArray:
        """Return the proportions of epsilon and delta."""
        i = np.arange(1.0, n_rounds + 1)
        return _lifted(i * self.growth ** (1 - i))

    def slack(self, epsilons: FloatArray) -> IntArray:
        """Return how far below its threshold a count with a positive answer may be."""
        logs = self.log_failure + math.log(2) * np.arange(1, len(epsilons) + 1)
        # an even number: half of it is for either noise, and a whole bound is as safe for discrete noise
        # as the formula says
        return 2 * _up(8 * self.cutoff / epsilons * logs)


class Exact:
    """The chain with the smallest thresholds that the discrete noise allows."""

    total_share = 0.01  # an error of the total only adds a few rounds, which cost next to nothing
    cutoff = 1

    def __init__(self, alpha: float, eta: float, epsilon: float, delta: float, depth: int) -> None:
        self.alpha, self.eta, self.depth = alpha, eta, depth
        self.epsilon, self.delta = epsilon, delta
        self.widest = min((1 + alpha) / (1 - alpha), 2.0)  # M_i / L_i
        losses = [self._cost(growth) for growth in self._growths()]
        self.growth = float(self._growths()[int(np.argmin(losses))])
        self.above, self.needed = self._distances()
        self.least_estimate = self._least_estimate()

    def _growths(self) -> FloatArray:
        """Return the values of r to try: at x = 0 nothing is gained, at 1 - 1/widest nothing grows."""
        return np.asarray(self.widest * (1 - np.linspace(0.2, 0.8, 61) * (1 - 1 / self.widest)))

    def _cost(self, growth: float) -> float:
        """Return the size of M_0 that a growth needs, up to rounding."""
        i = np.arange(1, _most_rounds(1.0, growth) + 1)
        return float((self._needs(i) * growth ** (1.0 - i)).sum() / (1 - growth / self.widest))

    def _failures(self, i: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of each wrong positive answer and of the negative answer that matters."""
        eta = self.eta / (i * (i + 1.0))
        return eta / (2 * max(self.depth - 1, 1)), eta / 2

    def _needs(self, i: IntArray) -> FloatArray:
        """Return the distance from M_{i-1} down to L_i, times epsilon_i, up to rounding."""
        positive, negative = self._failures(i)
        radius = _log_ratio(self.epsilon / 2, 2 * self.delta)
        return np.asarray(8 * np.log(4 / 9 / positive / negative) + 4 * radius)

    def weights(self, n_rounds: int) -> FloatArray:
        """Return the proportions of epsilon and delta."""
        return _lifted(self._plain_weights(n_rounds))

    def _plain_weights(self, n_rounds: int) -> FloatArray:
        i = np.arange(1, n_rounds + 1)
        return np.asarray(self._needs(i) * self.growth ** (1.0 - i))

    def slack(self, epsilons: FloatArray) -> IntArray:
        """Return how far below its threshold a count with a positive answer may be."""
        return self._slack(epsilons, self._failures(np.arange(1, len(epsilons) + 1))[0])

    @staticmethod
    def _slack(epsilons: FloatArray, failures: FloatArray) -> IntArray:
        """Return the least whole Δ at which P(X > Δ) is small enough."""
        size = np.expm1(-epsilons / 4) / np.expm1(-3 * epsilons / 8)  # (1 - a^2) / (1 - a^3)
        return np.maximum(_up(8 / epsilons * np.log(size / failures)) - 1, 0)

    def _distances(self) -> tuple[IntArray, IntArray]:
        """Return Δ' of each threshold, and the distance from M_{i-1} + 1 down to L_i, if all are in use."""
        shares = self._plain_weights(_most_rounds(1.0, self.growth))
        shares /= shares.sum() * (1 + _LEAST_WEIGHT)  # never less, however many thresholds are in use
        epsilons, deltas = self.epsilon * shares, self.delta * shares
        positive, negative = self._failures(np.arange(1, len(shares) + 1))
        below, above = self._slack(epsilons, positive), self._slack(epsilons, negative)
        return above, below + above + 2 * _radius(epsilons / 2, deltas)

    def _spare(self, first_estimate: int) -> IntArray:
        """Return how much the room from M_{i-1} + 1 down to L_i exceeds what is needed."""
        bounds, lowest, _ = self._intervals(first_estimate)
        return bounds[:-1] + 1 - lowest[1:] - self.needed[: len(bounds) - 1]

    def _fits(self, first_estimate: int) -> bool:
        return bool((self._spare(first_estimate) >= 0).all())

    def _least_estimate(self) -> int:
        """Find by bisection a v_0 that fits while v_0 - 1 does not; the chain of the largest total fits."""
        too_small, enough = 0, LARGEST_TOTAL
        while enough - too_small > 1:
            middle = (too_small + enough) // 2
            too_small, enough = (too_small, middle) if self._fits(middle) else (middle, enough)
        return enough

    def smallest_tau(self) -> float:
        """Return v_0 / alpha, rounded up."""
        tau = self.least_estimate / self.alpha
        exact = Fraction(tau) * Fraction(self.alpha)
        return tau if exact >= self.least_estimate else math.nextafter(tau, math.inf)

    def chain(self, tau: float) -> Chain:
        """Return the bounds, estimates and thresholds for a tau.

        As the intervals are rounded, a v_0 that is a little larger than one that fits may not fit itself. The
        smaller one then keeps the guarantee: that for its tau implies the one for any larger tau.
        """
        first_estimate = min(int(Fraction(self.alpha) * Fraction(tau)), LARGEST_TOTAL)
        while first_estimate > self.least_estimate and not self._fits(first_estimate):
            first_estimate -= 1
        bounds, _, estimates = self._intervals(first_estimate)
        above, spare = self.above[: len(bounds) - 1], self._spare(first_estimate)
        return Chain(bounds, estimates, np.maximum(bounds[:-1] + 1 - above - spare // 2, 1))

    def _intervals(self, first_estimate: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return M_i, L_i and v_i: the guarantee allows the distance of v_i to all counts from L_i to M_i."""
        widest = math.floor(first_estimate / (1 - self.alpha) * (1 - _MARGIN))
        first_bound = min(max(2 * first_estimate, widest), 2 * LARGEST_TOTAL)
        n_rounds = _most_rounds(max(first_bound, 1), self.growth)
        bounds = _down(max(first_bound, 1) * self.growth ** np.arange(n_rounds + 1.0))
        bounds[0] = first_bound
        estimates = _up(bounds * (2 / (1 + self.widest)))
        lowest = _up(estimates * ((1 + self.widest) / (2 * self.widest)))
        estimates[0], lowest[0] = first_estimate, 0
        return bounds, lowest, estimates


def _most_rounds(first_bound: float, growth: float) -> int:
    """Return the number of thresholds up to the largest total."""
    return max(0, math.ceil(math.log(LARGEST_TOTAL / first_bound) / math.log(growth)))


def _lifted(weights: FloatArray) -> FloatArray:
    """Raise weights to a small part of their mean at least; their sum grows by that part at most."""
    return np.maximum(weights, _LEAST_WEIGHT * weights.mean()) if len(weights) else weights


def _log_ratio(epsilon: float, delta: float) -> float:
    """Return ln(1 + (e^epsilon - 1) / delta), without overflow."""
    return float(np.logaddexp(0.0, epsilon + math.log(-math.expm1(-epsilon)) - math.log(delta)))


def _radius(epsilons: FloatArray, deltas: FloatArray) -> IntArray:
    """Return the radii of many `TruncatedLaplace`, none too small."""
    q = np.exp(-epsilons)
    return np.maximum(_up(np.log((-np.expm1(-epsilons) + 2 * deltas * q) / (deltas * (1 + q))) / epsilons), 1)


def _up(values: npt.NDArray[np.floating[Any]]) -> IntArray:
    """Round up, with a margin for earlier rounding errors."""
    return np.asarray(np.ceil(np.minimum(values * (1 + 2.0**-48) + _MARGIN, 2.0**61)), dtype=np.int64)


def _down(values: npt.NDArray[np.floating[Any]]) -> IntArray:
    return np.asarray(np.floor(values), dtype=np.int64)
