"""Discrete Laplace and discrete Gaussian noise, level by level.

A release spends a budget that adds up over its levels: epsilon for pure (and approximate) privacy with
Laplace noise, rho for everything that is zero-concentrated. Noise of scale b costs a level ``c / b**k``
of it, with c from the sensitivity; that one law, in exact rational numbers, is all there is to
calibration.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, told
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.sampling import (
    LARGEST_SCALE,
    SMALLEST_SCALE,
    ByteSource,
    discrete_gaussian,
    discrete_laplace,
)
from pandas_dptree.privacy.composition import gaussian_delta, laplace_delta, largest_budget
from pandas_dptree.privacy.loss import PrivacyLoss, zcdp_rho
from pandas_dptree.privacy.sensitivity import Sensitivity

__all__ = ["AdditiveNoise", "FloatArray", "Gaussian", "Laplace"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AdditiveNoise(ABC):
    """Noise that is added to every count of a level, independently and at the level's own scale."""

    name: ClassVar[str]

    @abstractmethod
    def budget(self, loss: PrivacyLoss) -> Fraction:
        """Give the quantity that the levels share, as it adds up over them.

        Parameters
        ----------
        loss : PrivacyLoss
            The privacy loss of the whole release.

        Returns
        -------
        Fraction
            An epsilon or a rho, exactly as the float says. An (epsilon, delta) allows a little more, which
            depends on the levels; `noise_scales` finds out how much.

        Raises
        ------
        ArgumentError
            If this noise cannot give privacy of that kind.
        """

    def can_give(self, loss: PrivacyLoss) -> bool:
        """Tell whether this noise can give privacy of that kind."""
        return True

    @abstractmethod
    def delta(self, epsilon: float, noise_scales: npt.ArrayLike, sensitivity: Sensitivity) -> float:
        """Give a delta for which levels with noise of these scales are (epsilon, delta)-private, rounded up.

        Parameters
        ----------
        epsilon : float
        noise_scales : array_like of float, shape (n_levels,)
            inf for a level that is not measured.
        sensitivity : Sensitivity
            That of one level.

        Returns
        -------
        float
        """

    @abstractmethod
    def _cost(self, loss: PrivacyLoss, sensitivity: Sensitivity) -> tuple[Fraction, int]:
        """Give (c, k): noise of scale b on one level costs c / b**k of the budget."""

    @abstractmethod
    def variance(self, noise_scales: npt.ArrayLike) -> FloatArray:
        """Give the exact variance of the noise.

        Parameters
        ----------
        noise_scales : array_like of float
            Scales from 1e-3 to 1e12, or inf where nothing is measured.

        Returns
        -------
        numpy.ndarray
            In squared counts, of the same shape, to machine precision. It is 0 where it is below the
            range of floats.
        """

    @abstractmethod
    def fourth_cumulant(self, noise_scales: npt.ArrayLike) -> FloatArray:
        """Give the exact fourth cumulant of the noise: its fourth moment less three squared variances.

        Parameters
        ----------
        noise_scales : array_like of float
            Scales from 1e-3 to 1e12, or inf where nothing is measured.

        Returns
        -------
        numpy.ndarray
            In counts to the fourth power, of the same shape. It is 0 where nothing is measured, since what
            is not measured has no part in any estimate.
        """

    @abstractmethod
    def half_width(self, noise_scales: npt.ArrayLike, confidence: float) -> FloatArray:
        """Give the least whole number that the noise's magnitude does not exceed with a probability.

        Parameters
        ----------
        noise_scales : array_like of float
            Scales from 1e-3 to 1e12, or inf where nothing is measured.
        confidence : float
            That probability: above 0 and below 1.

        Returns
        -------
        numpy.ndarray
            In counts, of the same shape; inf where nothing is measured.
        """

    @abstractmethod
    def sample(self, noise_scale: float, size: int, source: ByteSource) -> IntArray:
        """Draw noise, in counts.

        Parameters
        ----------
        noise_scale : float
            From 1e-3 to 1e12.
        size : int
            Number of draws.
        source : callable
            Where random bytes come from.

        Returns
        -------
        numpy.ndarray of int64, shape (size,)
        """

    def variance_power(self, loss: PrivacyLoss) -> int:
        """Give k such that a level's noise variance falls like ``share**-k`` (while it is above one count).

        2 where the levels share an epsilon, 1 where they share a rho.
        """
        return 2 // self._cost(loss, Sensitivity(l1=1, l2_squared=1))[1]

    def noise_scales(self, loss: PrivacyLoss, sensitivity: Sensitivity, shares: npt.ArrayLike) -> FloatArray:
        """Give the noise scale of each level, rounded up, so that the levels stay within the budget.

        Parameters
        ----------
        loss : PrivacyLoss
            The privacy loss of the whole release.
        sensitivity : Sensitivity
            That of one level, the same for all.
        shares : array_like of float, shape (n_levels,)
            The part of the budget that each level gets, at least 0. Only their proportions matter. A
            level whose share is 0 is not measured.

        Returns
        -------
        numpy.ndarray, shape (n_levels,)
            In counts; inf for a level that is not measured. A scale below 1e-3, where all noise is
            0 for certain as far as anyone can tell, is raised to 1e-3.

        Raises
        ------
        ArgumentError
            If the shares are no shares, the noise cannot give this kind of privacy, or a level would need
            a noise scale above 1e12.

        Notes
        -----
        **Privacy**: for a pure or zero-concentrated loss ``spent(loss, sensitivity, noise_scales) <=
        budget(loss)``, both exact rational numbers. For an approximate one, either that or
        ``delta(loss.epsilon, noise_scales, sensitivity) <= loss.delta``.
        """
        parts = np.asarray(shares, dtype=np.float64)
        if parts.ndim != 1 or not (np.isfinite(parts).all() and (parts >= 0).all() and parts.any()):
            raise ArgumentError(
                "split",
                f"must give every level a share of at least 0, and one of them more, "
                f"not {told(parts.tolist())}.",
                hint="for example equal shares.",
            )
        cost, power = self._cost(loss, sensitivity)
        whole = sum(map(Fraction, parts.tolist()), Fraction())

        def scales_of(budget: Fraction | float) -> FloatArray:
            costs = [
                cost * whole / (Fraction(budget) * Fraction(part)) if part else None
                for part in parts.tolist()
            ]
            return np.array([math.inf if each is None else _scale_up(each, power) for each in costs])

        budget: Fraction | float = self.budget(loss)
        if loss.kind == "approximate":
            epsilon = cast(float, loss.epsilon)

            def delta_of(budget: float) -> float:
                scales = scales_of(budget)
                at_the_end = scales.min() <= SMALLEST_SCALE  # where more budget changes nothing
                return 1.0 if at_the_end else self.delta(epsilon, scales, sensitivity)

            budget = largest_budget(delta_of, loss.delta, at_least=float(budget))
        scales = scales_of(budget)
        if (scales[parts > 0] > LARGEST_SCALE).any():
            raise ArgumentError(
                "epsilon" if loss.rho is None else "rho",
                f"is too small: a level would need noise of a scale above {LARGEST_SCALE:.0e}.",
                hint="allow a larger privacy loss, or give that level a larger share or none.",
            )
        return scales

    def spent(self, loss: PrivacyLoss, sensitivity: Sensitivity, noise_scales: npt.ArrayLike) -> Fraction:
        """Give what noise of these scales costs, in the quantity of `budget`.

        Parameters
        ----------
        loss : PrivacyLoss
            The privacy loss of the whole release; only its kind matters.
        sensitivity : Sensitivity
            That of one level.
        noise_scales : array_like of float, shape (n_levels,)
            inf for a level that is not measured.

        Returns
        -------
        Fraction
            Exact.
        """
        cost, power = self._cost(loss, sensitivity)
        scales = np.asarray(noise_scales, dtype=np.float64)
        measured = scales[np.isfinite(scales)].tolist()
        return sum((cost / Fraction(scale) ** power for scale in measured), Fraction())


@dataclass(frozen=True, slots=True)
class Laplace(AdditiveNoise):
    r"""Discrete Laplace noise: P(k) proportional to :math:`e^{-|k|/b}` on the whole numbers.

    Its scale b gives pure differential privacy with :math:`\epsilon = \Delta_1 / b` (Ghosh, Roughgarden
    and Sundararajan, "Universally utility-maximizing privacy mechanisms", 2009). Under a rho it is
    accounted for by the fact that epsilon-DP implies (epsilon²/2)-zCDP (Bun and Steinke,
    "Concentrated differential privacy", 2016, Proposition 1.4): a count that moves by d costs
    :math:`d^2 / 2b^2`, and all of them together at most :math:`\rho = \Delta_2^2 / 2b^2`.

    Examples
    --------
    >>> one_row, loss = Sensitivity(l1=1, l2_squared=1), PrivacyLoss(epsilon=1.0)
    >>> Laplace().noise_scales(loss, one_row, [0.25, 0.0, 0.75]).tolist()
    [4.0, inf, 1.3333333333333335]
    """

    name: ClassVar[str] = "laplace"

    def budget(self, loss: PrivacyLoss) -> Fraction:
        """Give the epsilon, or the rho, that the levels share."""
        return Fraction(loss.rho if loss.epsilon is None else loss.epsilon)  # type: ignore[arg-type]

    def delta(self, epsilon: float, noise_scales: npt.ArrayLike, sensitivity: Sensitivity) -> float:
        """Give a delta for an epsilon: see `pandas_dptree.privacy.composition.laplace_delta`."""
        return laplace_delta(epsilon, noise_scales, sensitivity)

    def _cost(self, loss: PrivacyLoss, sensitivity: Sensitivity) -> tuple[Fraction, int]:
        if loss.kind == "zcdp":
            return Fraction(sensitivity.l2_squared, 2), 2
        return Fraction(sensitivity.l1), 1

    def variance(self, noise_scales: npt.ArrayLike) -> FloatArray:
        r"""Give the exact variance of the noise, :math:`2q/(1-q)^2` with :math:`q = e^{-1/b}`.

        Parameters
        ----------
        noise_scales : array_like of float
            Scales b from 1e-3 to 1e12, or inf where nothing is measured.

        Returns
        -------
        numpy.ndarray
            In squared counts.
        """
        rate = 1 / np.asarray(noise_scales, dtype=np.float64)
        with np.errstate(divide="ignore"):  # where nothing is measured, the variance is infinite
            return np.asarray(2 * np.exp(-rate) / np.expm1(-rate) ** 2)

    def fourth_cumulant(self, noise_scales: npt.ArrayLike) -> FloatArray:
        r"""Give the exact fourth cumulant, :math:`2q(1 + 4q + q^2)/(1-q)^4` with :math:`q = e^{-1/b}`.

        It is twice that of a geometric variable, for the noise is the difference of two.

        Parameters
        ----------
        noise_scales : array_like of float
            Scales b from 1e-3 to 1e12, or inf where nothing is measured.

        Returns
        -------
        numpy.ndarray
            In counts to the fourth power; 0 where nothing is measured.
        """
        scales = np.asarray(noise_scales, dtype=np.float64)
        rate = 1 / scales
        q = np.exp(-rate)
        with np.errstate(divide="ignore"):
            return np.where(np.isinf(scales), 0.0, 2 * q * (1 + 4 * q + q**2) / np.expm1(-rate) ** 4)

    def half_width(self, noise_scales: npt.ArrayLike, confidence: float) -> FloatArray:
        r"""Give the least whole t with :math:`P(|X| > t) = 2q^{t+1}/(1+q) \le 1 - c`."""
        scales = np.asarray(noise_scales, dtype=np.float64)
        beyond = math.log(2) - np.log1p(np.exp(-1 / scales)) - math.log1p(-confidence)
        return np.maximum(np.ceil(scales * beyond - 1), 0.0)

    def sample(self, noise_scale: float, size: int, source: ByteSource) -> IntArray:
        """Draw discrete Laplace noise."""
        return discrete_laplace(noise_scale, size, source)


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

    def can_give(self, loss: PrivacyLoss) -> bool:
        """Tell whether this noise can give privacy of that kind: of any but the pure one."""
        return loss.kind != "pure"

    def budget(self, loss: PrivacyLoss) -> Fraction:
        """Give the rho that the levels share: as stated, or the largest that implies (epsilon, delta)."""
        if loss.rho is not None:
            return Fraction(loss.rho)
        assert loss.epsilon is not None
        if not loss.delta:
            raise ArgumentError(
                "mechanism",
                "is Gaussian noise, which never gives pure differential privacy.",
                hint='add a delta, for example delta=1e-6, state a rho instead of epsilon, or use "laplace".',
            )
        rho = zcdp_rho(loss.epsilon, loss.delta)
        if not rho > 0:
            raise ArgumentError(
                "epsilon", f"is too small: {told(loss.epsilon)}.", hint="allow a larger privacy loss."
            )
        return Fraction(rho)

    def delta(self, epsilon: float, noise_scales: npt.ArrayLike, sensitivity: Sensitivity) -> float:
        """Give a delta for an epsilon: see `pandas_dptree.privacy.composition.gaussian_delta`."""
        return gaussian_delta(epsilon, noise_scales, sensitivity)

    def _cost(self, loss: PrivacyLoss, sensitivity: Sensitivity) -> tuple[Fraction, int]:
        return Fraction(sensitivity.l2_squared, 2), 2

    def variance(self, noise_scales: npt.ArrayLike) -> FloatArray:
        r"""Give the exact variance of the noise.

        It is :math:`\sum k^2 e^{-k^2/2\sigma^2} / \sum e^{-k^2/2\sigma^2}` over all whole k. By Poisson
        summation it falls short of :math:`\sigma^2` by less than
        :math:`(4\pi\sigma^2)^2 e^{-2\pi^2\sigma^2}`, which counts for nothing from :math:`\sigma = 2` on.

        Parameters
        ----------
        noise_scales : array_like of float
            Scales sigma from 1e-3 to 1e12, or inf where nothing is measured.

        Returns
        -------
        numpy.ndarray
            In squared counts.
        """
        scales, where = _each_once(noise_scales)
        k = np.arange(1, 25)  # beyond, less than e**-72 of the mass
        mass = np.exp(-((k / np.minimum(scales, 2.0)[..., None]) ** 2) / 2)
        summed = 2 * (k**2 * mass).sum(axis=-1) / (1 + 2 * mass.sum(axis=-1))
        return np.asarray(np.where(scales < 2.0, summed, scales**2)[where])

    def fourth_cumulant(self, noise_scales: npt.ArrayLike) -> FloatArray:
        r"""Give the exact fourth cumulant of the noise, by the sums of `variance`.

        From :math:`\sigma = 2` on it is 0: by Poisson summation it is about
        :math:`2 (2\pi\sigma^2)^4 e^{-2\pi^2\sigma^2}`.

        Parameters
        ----------
        noise_scales : array_like of float
            Scales sigma from 1e-3 to 1e12, or inf where nothing is measured.

        Returns
        -------
        numpy.ndarray
            In counts to the fourth power, to within 1e-13; 0 where nothing is measured.
        """
        scales, where = _each_once(noise_scales)
        k = np.arange(1, 25)
        mass = np.exp(-((k / np.minimum(scales, 2.0)[..., None]) ** 2) / 2)
        total = 1 + 2 * mass.sum(axis=-1)
        second, fourth = (2 * (k**power * mass).sum(axis=-1) / total for power in (2, 4))
        return np.asarray(np.where(scales < 2.0, fourth - 3 * second**2, 0.0)[where])

    def half_width(self, noise_scales: npt.ArrayLike, confidence: float) -> FloatArray:
        r"""Give the least whole t with :math:`P(|X| \le t) \ge c`.

        Summed term by term below :math:`\sigma = 10`. Above, by Euler and Maclaurin,
        :math:`P(|X| \le t) = P(|Z| \le u) + u\varphi(u)/12\sigma^2` to within 1e-7, with a normal
        variable Z, its density :math:`\varphi`, and :math:`u = (t + 1/2)/\sigma`. So u is the normal
        quantile z less :math:`z/24\sigma^2`.
        """
        from scipy.special import ndtri  # costs a tenth of a second to import

        scales, where = _each_once(noise_scales)
        mass = np.exp(-((np.arange(125) / np.minimum(scales, 10.0)[..., None]) ** 2) / 2)
        within = 2 * np.cumsum(mass, axis=-1) - 1
        summed = (within < confidence * within[..., -1:]).sum(axis=-1)
        z = -ndtri((1 - confidence) / 2)
        beyond = np.ceil(z * (scales - 1 / (24 * scales)) - 0.5)
        return np.asarray(np.where(scales < 10.0, summed, beyond)[where])

    def sample(self, noise_scale: float, size: int, source: ByteSource) -> IntArray:
        """Draw discrete Gaussian noise."""
        return discrete_gaussian(noise_scale, size, source)


def _scale_up(powered: Fraction, power: int) -> float:
    """Round the scale b with ``b**power == powered`` up to a float, and to at least 1e-3."""
    if powered > Fraction(10) ** 300:
        return math.inf
    scale = max(float(float(powered) ** (1 / power)), SMALLEST_SCALE)
    while Fraction(scale) ** power < powered:  # floats are a unit in the last place or two off
        scale = math.nextafter(scale, math.inf)
    return scale


def _each_once(noise_scales: npt.ArrayLike) -> tuple[FloatArray, IntArray]:
    """List the scales that occur, and where among these each one is."""
    scales = np.asarray(noise_scales, dtype=np.float64)
    distinct, where = np.unique(scales, return_inverse=True)
    return distinct, where.reshape(scales.shape)  # numpy before 2.0 gives it flat
