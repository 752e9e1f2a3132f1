"""Discrete Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive.base import AdditiveNoise, FloatArray, Moves
from pandas_dptree.mechanisms.sampling import ByteSource, discrete_laplace
from pandas_dptree.privacy.composition import laplace_delta
from pandas_dptree.privacy.level_losses import LevelLoss, laplace_level
from pandas_dptree.privacy.loss import PrivacyLoss, ungated_loss
from pandas_dptree.privacy.sensitivity import Sensitivity

__all__ = ["Laplace"]


@dataclass(frozen=True, slots=True)
class Laplace(AdditiveNoise):
    r"""Discrete Laplace noise: P(k) proportional to :math:`e^{-|k|/b}` on the whole numbers.

    Its scale b gives pure differential privacy with :math:`\epsilon = \Delta_1 / b` (Ghosh, Roughgarden and
    Sundararajan, "Universally utility-maximizing privacy mechanisms", 2009). Under a rho, epsilon-DP implies
    (epsilon²/2)-zCDP (Bun and Steinke, "Concentrated differential privacy", 2016, Proposition 1.4): a count
    that moves by d costs :math:`d^2 / 2b^2`, and all of them together at most
    :math:`\rho = \Delta_2^2 / 2b^2`.

    Examples
    --------
    >>> one_row, loss = Sensitivity(l1=1, l2_squared=1), PrivacyLoss(epsilon=1.0)
    >>> Laplace().noise_scales(loss, one_row, [0.25, 0.0, 0.75]).tolist()
    [4.0, inf, 1.3333333333333335]
    """

    name: ClassVar[str] = "laplace"

    def budget(self, loss: PrivacyLoss) -> Fraction:
        """Return the epsilon, or the rho, that the levels share."""
        exact = ungated_loss(loss).exact
        budget = exact.rho if exact.epsilon is None else exact.epsilon
        assert budget is not None
        return budget

    def delta(self, epsilon: float, noise_scales: npt.ArrayLike, sensitivity: Moves) -> float:
        """Return a delta for an epsilon: see `pandas_dptree.privacy.composition.laplace_delta`."""
        return laplace_delta(epsilon, noise_scales, sensitivity)

    def level_loss(self, noise_scale: float, sensitivity: Sensitivity) -> LevelLoss:
        """Return what one level spends: see `pandas_dptree.privacy.level_losses.laplace_level`."""
        return laplace_level(noise_scale, sensitivity)

    def _cost(self, loss: PrivacyLoss, sensitivity: Sensitivity) -> tuple[Fraction, int]:
        if loss.rho is not None:
            return Fraction(sensitivity.l2_squared, 2), 2
        return Fraction(sensitivity.l1), 1

    def variance(self, noise_scales: npt.ArrayLike) -> FloatArray:
        """Return the exact variance of the noise, :math:`2q/(1-q)^2` with :math:`q = e^{-1/b}`."""
        rate = 1 / np.asarray(noise_scales, dtype=np.float64)
        with np.errstate(divide="ignore"):  # where nothing is measured, the variance is infinite
            return np.asarray(2 * np.exp(-rate) / np.expm1(-rate) ** 2)

    def scales_of(self, variances: npt.ArrayLike) -> FloatArray:
        r"""Return the scales of given variances: the variance is :math:`1 / 2 \sinh^2(1/2b)`."""
        rate = 2 * np.arcsinh(np.sqrt(0.5 / np.asarray(variances, dtype=np.float64)))
        with np.errstate(divide="ignore"):  # the scale of an infinite variance is infinite
            return np.asarray(1 / rate)

    def fourth_cumulant(self, noise_scales: npt.ArrayLike) -> FloatArray:
        """Return the exact fourth cumulant, :math:`2q(1 + 4q + q^2)/(1-q)^4` with :math:`q = e^{-1/b}`.

        It is twice that of a geometric variable, since the noise is the difference of two.
        """
        scales = np.asarray(noise_scales, dtype=np.float64)
        rate = 1 / scales
        q = np.exp(-rate)
        with np.errstate(divide="ignore"):
            return np.where(np.isinf(scales), 0.0, 2 * q * (1 + 4 * q + q**2) / np.expm1(-rate) ** 4)

    def half_width(self, noise_scales: npt.ArrayLike, confidence: float) -> FloatArray:
        r"""Return the least whole t with :math:`P(|X| > t) = 2q^{t+1}/(1+q) \le 1 - c`."""
        scales = np.asarray(noise_scales, dtype=np.float64)
        beyond = math.log(2) - np.log1p(np.exp(-1 / scales)) - math.log1p(-confidence)
        return np.maximum(np.ceil(scales * beyond - 1), 0.0)

    def squared_excess(
        self, noise_scales: FloatArray, tolerance: FloatArray, *, continuous: bool = False
    ) -> FloatArray:
        r"""Return the mean squared excess of the noise over a tolerance.

        With :math:`q = e^{-1/b}`, the first whole number m above t, and :math:`f = m - t`:
        :math:`\frac{2 q^m}{1 + q} \bigl(f^2 + \frac{2fq}{1 - q} + \frac{q(1 + q)}{(1 - q)^2}\bigr)`. For
        continuous noise it is :math:`2 b^2 e^{-t/b}`.
        """
        if continuous:
            return np.asarray(2 * noise_scales**2 * np.exp(-tolerance / noise_scales))
        first = np.floor(tolerance) + 1
        f = first - tolerance
        q, rest = np.exp(-1 / noise_scales), -np.expm1(-1 / noise_scales)
        tail = 2 * np.exp(-first / noise_scales) / (1 + q)
        return np.asarray(tail * (f**2 + 2 * f * q / rest + q * (1 + q) / rest**2))

    def sample(self, noise_scale: float, size: int, source: ByteSource) -> IntArray:
        """Draw discrete Laplace noise."""
        return discrete_laplace(noise_scale, size, source)
