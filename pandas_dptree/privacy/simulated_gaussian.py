r"""Continuous Gaussian noise that simulates discrete Gaussian noise, and its delta in closed form.

The simulation adds a discrete Gaussian kernel to continuous noise; the proofs are on the documentation page
*Calibration of noise over several levels*.

**Privacy**: everything here is public and depends on no record. All is rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["ROUNDINGS", "SimulatedGaussian", "Smoothing", "continuous_delta", "simulation"]

FloatArray = npt.NDArray[np.float64]

ROUNDINGS = 2**10
"""Roundings per mass before any summing (exponents end at 745), and for a final sum."""


class Smoothing(NamedTuple):
    """A continuous Gaussian mechanism that simulates discrete ones up to a factor of the masses."""

    mu: float  # distance between neighbours in standard deviations
    log_upper: float  # the real mass is at most e**log_upper times the simulated one ...
    log_ratio: float  # ... and at least e**(log_upper - log_ratio) times


class SimulatedGaussian:
    r"""Continuous Gaussian noise that simulates discrete Gaussian noise, whatever the counts move by.

    Counts that move by d are at the distance :math:`\mu = (\sum_i d_i^2 v_i)^{1/2}`, with the
    :math:`v_i = 1 / (\sigma_i^2 - \tau_i^2)` of `inverse_variances`. As no noise is chosen anew for another
    move, delta is a function of :math:`\mu` alone. The kernels are chosen for counts that move by `shifts`;
    they are valid for any other move. With `moves`, each scale and shift stands for at most so many counts:
    the shift is the root of the sum of their squares.
    """

    inverse_variances: FloatArray
    exists: bool
    """Whether the noise is large enough to be simulated."""

    def __init__(self, noise_scales: FloatArray, shifts: FloatArray, moves: int = 1) -> None:
        """Choose the kernels."""
        variances = noise_scales**2
        width = math.sqrt(math.fsum(shifts**2 / variances)) or 1.0
        kernels = _kernels(variances, moves, width)
        self.exists = bool((kernels <= 0.9 * variances).all())
        kernels = np.minimum(kernels, 0.9 * variances)
        self.inverse_variances = 1 / (variances - kernels) * (1 + 2**-48)
        self._log_upper = self._log_ratio = 0.0
        if self.exists:
            self._log_upper, self._log_ratio = _simulation_cost(variances, kernels, moves)

    def smoothing(self, mu_squared: float) -> Smoothing:
        """Return the simulation of a move at a distance."""
        return Smoothing(math.sqrt(mu_squared) * (1 + 2**-48), self._log_upper, self._log_ratio)

    def delta(self, epsilons: FloatArray, mu_squared: FloatArray) -> FloatArray:
        """Return the delta at each epsilon and squared distance, rounded up; 1 if the noise is too small."""
        if not self.exists:
            return np.ones(len(epsilons))
        mu = np.sqrt(mu_squared) * (1 + 2**-48)
        left = epsilons - 2.0**-44 * np.abs(epsilons) - self._log_ratio
        delta = continuous_delta(left, mu) * math.exp(self._log_upper) * (1 + 2.0**-52 * ROUNDINGS)
        return np.asarray(np.minimum(1.0, delta + 2.0**-200))


def simulation(
    variances: FloatArray,
    inverse_sum: Callable[[FloatArray], float],
    moves: int,
    l2_squared: int,
    width: float,
) -> Smoothing | None:
    r"""Return continuous Gaussian noise that simulates discrete Gaussian noise; None if there is none.

    Neighbours are at the squared distance `l2_squared` times `inverse_sum` of the kernels. Kernels of
    variance :math:`\tau^2` leave :math:`\sigma^2 - \tau^2` to the continuous noise. For each count that moves
    they cost a factor between :math:`1 - u` and :math:`1 + u + t^2/(1 - t)` (Lemma 3 of the documentation
    page), where :math:`t = 2\sum_m q^{m^2}` with :math:`q = e^{-2\pi^2\tau^2}`, and u is the same sum with
    :math:`q^{2 - \tau^2/\sigma^2}`. Every :math:`\tau` is valid; this one about balances the two costs.
    """
    kernels = _kernels(variances, moves, width)
    if (kernels > 0.9 * variances).any():  # the remaining variance would be small and inexact
        return None
    mu = math.sqrt(l2_squared * inverse_sum(kernels)) * (1 + 2**-48)
    return Smoothing(mu, *_simulation_cost(variances, kernels, moves))


def _kernels(variances: FloatArray, moves: int, width: float) -> FloatArray:
    """Return the variance of each level's kernel."""
    return np.asarray(np.log(np.maximum(16 * np.pi**2 * moves * variances / width, 20.0)) / (4 * np.pi**2))


def _simulation_cost(variances: FloatArray, kernels: FloatArray, moves: int) -> tuple[float, float]:
    """Return the logarithms of A and R, rounded up, if `moves` counts of each level move."""
    t, u = _theta(kernels), _theta(kernels * (2 - kernels / variances))
    up, down = -np.log1p(-u), np.log1p(u + t**2 / (1 - t))
    return moves * math.fsum(up) * (1 + 2**-40), moves * math.fsum(up + down) * (1 + 2**-40)


def _theta(variances: FloatArray) -> FloatArray:
    r"""Return :math:`2\sum_{m \ge 1} q^{m^2}` with :math:`q = e^{-2\pi^2\tau^2}`, rounded up."""
    q = np.exp(-2 * np.pi**2 * variances)
    return np.asarray(2 * q / (1 - q**3) * (1 + 2**-40))  # since m**2 >= 1 + 3 * (m - 1)


def continuous_delta(epsilon: FloatArray, mu: FloatArray | float) -> FloatArray:
    r"""Return the delta of continuous Gaussian noise if counts move by mu standard deviations, rounded up.

    Balle and Wang (2018, Theorem 8):
    :math:`\Phi(\mu/2 - \epsilon/\mu) - e^\epsilon\,\Phi(-\mu/2 - \epsilon/\mu)`, and by symmetry
    :math:`\delta(-\epsilon) = 1 - e^{-\epsilon} + e^{-\epsilon}\delta(\epsilon)`.
    """
    delta = np.zeros_like(epsilon)
    if np.any(mu > 0):
        mu = np.maximum(mu, 2.0**-500)  # no distance is as good as a tiny one
        size = np.minimum(np.abs(epsilon), mu * (mu + 100))  # from there on, delta is below e**-5000
        near, far = size / mu - mu / 2, size / mu + mu / 2
        tail = _upper_tail(near)
        delta = np.maximum(tail - np.exp(np.minimum(size, 600.0)) * _upper_tail(far), 0)
        delta += 2.0**-46 * (1 + far**2 + size) * tail  # a tail at z is off by less than 2**-48 * (1 + z**2)
    below = np.minimum(epsilon, 0)
    return np.asarray(-np.expm1(below) + np.exp(below) * delta)


def _upper_tail(z: FloatArray) -> FloatArray:
    """Return the probability that a standard normal variable exceeds z."""
    return np.fromiter(map(math.erfc, (z / math.sqrt(2)).tolist()), np.float64, len(z)) / 2
