"""Discrete Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive.base import AdditiveNoise, FloatArray, Moves
from pandas_dptree.mechanisms.sampling import ByteSource, discrete_gaussian
from pandas_dptree.privacy.composition import gaussian_delta
from pandas_dptree.privacy.conversions import zcdp_rho
from pandas_dptree.privacy.level_losses import LevelLoss, gaussian_level
from pandas_dptree.privacy.loss import PrivacyLoss, ungated_loss
from pandas_dptree.privacy.sensitivity import Sensitivity

__all__ = ["Gaussian"]

_SUMMED = 10.0
"""The mean squared excess is summed term by term below this scale."""

_NEWTON_STEPS = 8
"""Enough for the scale of any variance to be exact."""

_REACH = 39.0
"""The density is below the range of floats this many scales from 0."""


@dataclass(frozen=True, slots=True)
class Gaussian(AdditiveNoise):
    r"""Discrete Gaussian noise: P(k) proportional to :math:`e^{-k^2/2\sigma^2}` on the whole numbers.

    Its scale :math:`\sigma` gives zero-concentrated differential privacy with
    :math:`\rho = \Delta_2^2 / 2\sigma^2` (Canonne, Kamath and Steinke, "The discrete Gaussian for
    differential privacy", 2020, Theorem 14).

    Examples
    --------
    >>> one_row, loss = Sensitivity(l1=1, l2_squared=1), PrivacyLoss(rho=0.5)
    >>> Gaussian().noise_scales(loss, one_row, [0.25, 0.0, 0.75]).tolist()
    [2.0, inf, 1.1547005383792517]
    """

    name: ClassVar[str] = "gaussian"
    euclidean: ClassVar[bool] = True

    def supports(self, loss: PrivacyLoss) -> bool:
        """Return whether this noise can give privacy of that kind: a delta or a rho, not both."""
        return loss.kind in ("approximate", "zcdp")

    def budget(self, loss: PrivacyLoss) -> Fraction:
        """Return the rho that the levels share: as stated, or the largest that implies (epsilon, delta)."""
        loss = ungated_loss(loss)
        exact, least = loss.exact, loss.rounded_down
        if exact.rho is not None:
            return exact.rho
        assert least.epsilon is not None
        if not least.delta:
            raise ArgumentError(
                "mechanism",
                "is Gaussian noise, which never gives pure differential privacy.",
                hint='add a delta, for example delta=1e-6, state a rho instead of epsilon, or use "laplace".',
            )
        rho = zcdp_rho(least.epsilon, least.delta)
        if not rho > 0:
            raise ArgumentError(
                "epsilon", f"is too small: {quote(loss.epsilon)}.", hint="allow a larger privacy loss."
            )
        return Fraction(rho)

    def accepted_budget(self, loss: PrivacyLoss) -> Fraction:
        """Return the budget, or what another mathematical library may have computed for it.

        `zcdp_rho` is rounded down by more than 2**-48, and libraries differ by much less. So the rho is still
        below the largest that implies (epsilon, delta).
        """
        budget = self.budget(loss)
        return budget * (1 + Fraction(1, 2**48)) if loss.kind == "approximate" else budget

    def delta(self, epsilon: float, noise_scales: npt.ArrayLike, sensitivity: Moves) -> float:
        """Return a delta for an epsilon: see `pandas_dptree.privacy.composition.gaussian_delta`."""
        return gaussian_delta(epsilon, noise_scales, sensitivity)

    def level_loss(self, noise_scale: float, sensitivity: Sensitivity) -> LevelLoss:
        """Return what one level spends: see `pandas_dptree.privacy.level_losses.gaussian_level`."""
        return gaussian_level(noise_scale, sensitivity)

    def _cost(self, loss: PrivacyLoss, sensitivity: Sensitivity) -> tuple[Fraction, int]:
        return Fraction(sensitivity.l2_squared, 2), 2

    def variance(self, noise_scales: npt.ArrayLike) -> FloatArray:
        r"""Return the exact variance of the noise.

        It is :math:`\sum k^2 e^{-k^2/2\sigma^2} / \sum e^{-k^2/2\sigma^2}` over all whole k. By Poisson
        summation it falls short of :math:`\sigma^2` by less than
        :math:`(4\pi\sigma^2)^2 e^{-2\pi^2\sigma^2}`, which is negligible from :math:`\sigma = 2` on.
        """
        scales, where = _each_once(noise_scales)
        k = np.arange(1, 25)  # beyond, less than e**-72 of the mass
        mass = np.exp(-((k / np.minimum(scales, 2.0)[..., None]) ** 2) / 2)
        summed = 2 * (k**2 * mass).sum(axis=-1) / (1 + 2 * mass.sum(axis=-1))
        return np.asarray(np.where(scales < 2.0, summed, scales**2)[where])

    def scales_of(self, variances: npt.ArrayLike) -> FloatArray:
        r"""Return the scales of given variances: :math:`\sigma^2` is the variance from :math:`\sigma = 2` on.

        Below, Newton's method finds the logarithm of the scale. That of the variance is a concave function of
        it, with the derivative :math:`\mathrm{Var}(X^2) / \sigma^2 \mathrm{Var}(X)`.
        """
        wanted, where = _each_once(variances)
        small = wanted < 4.0
        target = wanted[small]
        scales = np.sqrt(np.maximum(target, 0.5 / np.log1p(2 / target)))
        for _ in range(_NEWTON_STEPS):
            variance = self.variance(scales)
            slope = (self.fourth_cumulant(scales) + 2 * variance**2) / (variance * scales**2)
            scales = scales * np.exp(np.log(target / variance) / slope)
        wanted = np.sqrt(wanted)
        wanted[small] = scales
        return np.asarray(wanted[where])

    def fourth_cumulant(self, noise_scales: npt.ArrayLike) -> FloatArray:
        r"""Return the exact fourth cumulant of the noise, to within 1e-13, by the sums of `variance`.

        From :math:`\sigma = 2` on it is 0: by Poisson summation it is about
        :math:`2 (2\pi\sigma^2)^4 e^{-2\pi^2\sigma^2}`.
        """
        scales, where = _each_once(noise_scales)
        k = np.arange(1, 25)
        mass = np.exp(-((k / np.minimum(scales, 2.0)[..., None]) ** 2) / 2)
        total = 1 + 2 * mass.sum(axis=-1)
        second, fourth = (2 * (k**power * mass).sum(axis=-1) / total for power in (2, 4))
        return np.asarray(np.where(scales < 2.0, fourth - 3 * second**2, 0.0)[where])

    def half_width(self, noise_scales: npt.ArrayLike, confidence: float) -> FloatArray:
        r"""Return the least whole t with :math:`P(|X| \le t) \ge c`.

        Below :math:`\sigma = 10` it is summed term by term. Above, by Euler and Maclaurin,
        :math:`P(|X| \le t) = P(|Z| \le u) + u\varphi(u)/12\sigma^2` to within 1e-7, with a normal variable Z,
        its density :math:`\varphi`, and :math:`u = (t + 1/2)/\sigma`. So u is the normal quantile z less
        :math:`z/24\sigma^2`.
        """
        from scipy.special import ndtri  # costs a tenth of a second to import

        scales, where = _each_once(noise_scales)
        mass = np.exp(-((np.arange(125) / np.minimum(scales, 10.0)[..., None]) ** 2) / 2)
        within = 2 * np.cumsum(mass, axis=-1) - 1
        summed = (within < confidence * within[..., -1:]).sum(axis=-1)
        z = -ndtri((1 - confidence) / 2)
        beyond = np.ceil(z * (scales - 1 / (24 * scales)) - 0.5)
        return np.asarray(np.where(scales < 10.0, summed, beyond)[where])

    def squared_excess(
        self, noise_scales: FloatArray, tolerance: FloatArray, *, continuous: bool = False
    ) -> FloatArray:
        r"""Return the mean squared excess of the noise over a tolerance.

        Below :math:`\sigma = 10` it is summed over the whole numbers above t. Above, the sum is approximated
        by an integral with two corrections (Euler and Maclaurin), to within :math:`2 \cdot 10^{-8}\sigma^2`.
        For continuous noise, with :math:`u = t/\sigma`, it is
        :math:`2\sigma^2 \bigl((1 + u^2)\,\Phi(-u) - u\,\varphi(u)\bigr)`.
        """
        if continuous:
            return _continuous_excess(noise_scales, tolerance)
        excess = np.empty(noise_scales.shape)
        small = noise_scales < _SUMMED
        excess[small] = _summed_excess(noise_scales[small], tolerance[small])
        excess[~small] = _integrated_excess(noise_scales[~small], tolerance[~small])
        return excess

    def sample(self, noise_scale: float, size: int, source: ByteSource) -> IntArray:
        """Draw discrete Gaussian noise."""
        return discrete_gaussian(noise_scale, size, source)


def _each_once(noise_scales: npt.ArrayLike) -> tuple[FloatArray, IntArray]:
    """List the distinct scales, and the position of each scale among them."""
    scales = np.asarray(noise_scales, dtype=np.float64)
    distinct, where = np.unique(scales, return_inverse=True)
    return distinct, where.reshape(scales.shape)  # numpy before 2.0 gives it flat


def _summed_excess(scale: FloatArray, t: FloatArray) -> FloatArray:
    """Sum (k - t)² over k > t, from sums of 1, k and k² over the tails of each scale."""
    excess = np.zeros(len(scale))
    order = np.argsort(scale)
    groups = np.split(order, np.flatnonzero(np.diff(scale[order])) + 1)
    for rows in groups if len(order) else []:
        sigma, tolerance = scale[rows[0]], t[rows]
        k = np.arange(np.ceil(_REACH * sigma) + 2)
        mass = np.exp(-((k / sigma) ** 2) / 2)
        mass /= 2 * mass.sum() - 1
        first = np.minimum(np.floor(tolerance) + 1, len(k) - 1).astype(np.int64)
        none, one, two = (np.cumsum((k**power * mass)[::-1])[::-1][first] for power in range(3))
        excess[rows] = 2 * np.maximum(two - 2 * tolerance * one + tolerance**2 * none, 0.0)
    return excess


def _integrated_excess(scale: FloatArray, t: FloatArray) -> FloatArray:
    """Correct the excess of continuous noise by the first terms of Euler and Maclaurin."""
    f = np.floor(t) + 1 - t
    u = t / scale
    density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi) / scale
    slope = -u / scale * density
    third, fourth = f * (f - 0.5) * (f - 1), f**2 * (f - 1) ** 2 - 1 / 30  # Bernoulli's polynomials
    corrections = 2 * (third * density / 3 + fourth * slope / 4)
    return np.asarray(np.maximum(_continuous_excess(scale, t) - corrections, 0.0))


def _continuous_excess(scale: FloatArray, t: FloatArray) -> FloatArray:
    """Return the mean squared excess of a normal variable over t."""
    from scipy.special import ndtr  # costs a tenth of a second to import

    u = np.divide(t, scale, out=np.full(scale.shape, _REACH), where=scale > t / _REACH)
    density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(2 * scale**2 * np.maximum((1 + u**2) * ndtr(-u) - u * density, 0.0))
