r"""The strategy that measures `WeightedSums`, estimates of cumulative sums, and their variances.

The measurement is :math:`z = G D x` plus noise. The cosine transform :math:`C = C^{-1}` of type IV
diagonalises :math:`G = C\,\mathrm{diag}(\lambda)\,C`, where :math:`\lambda` is the cosine transform of type
III of the integers h(0), …, h(K − 1). So :math:`A D^{-1} G^{-1} z` are unbiased estimates of the cumulative
sums. They use the inverse of exactly the matrix that was measured, including its rounding.

**Privacy**: post-processing of noisy numbers and public parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.distribution.strategy import FloatArray, Strategy
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive import AdditiveNoise, Gaussian
from pandas_dptree.mechanisms.sampling import ByteSource
from pandas_dptree.mechanisms.weighted_sums import WeightedSums, antiperiodic, measure_weighted_sums
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity

__all__ = ["FactorizationStrategy", "cumulative_estimates", "cumulative_variances", "range_variances"]


@dataclass(frozen=True)
class FactorizationStrategy(Strategy):
    """Weighted sums of bins with Gaussian noise, from which cumulative counts are estimated.

    `noise_scale` is in the unit of what is measured.
    """

    sums: WeightedSums
    noise_scale: float

    @property
    def n_bins(self) -> int:  # type: ignore[override]
        """Number of bins."""
        return self.sums.n_bins

    @property
    def noise(self) -> AdditiveNoise:  # type: ignore[override]
        """The kind of noise."""
        return Gaussian()

    @property
    def noise_scales(self) -> tuple[float, ...]:  # type: ignore[override]
        """The scale of the noise of all weighted sums."""
        return (self.noise_scale,)

    def sensitivity(self, *, neighbors: Neighbors, max_contributions: int) -> Sensitivity:
        """Return the sensitivity of all weighted sums together."""
        return self.sums.sensitivity(neighbors=neighbors, max_contributions=max_contributions)

    def to_dict(self) -> dict[str, Any]:
        """Serialize the kind of strategy and the noise scale; the bins and bits determine the weights."""
        return {"kind": "factorization", "bits": self.sums.bits, "noise_scale": self.noise_scale}

    @property
    def description(self) -> str:
        """The kind of measurement."""
        return "factorization"

    def estimates(self, counts: IntArray, totals: IntArray, source: ByteSource) -> FloatArray:
        """Measure each group, and solve for the cumulative counts."""
        measured = [measure_weighted_sums(self.sums, row, self.noise_scale, source) for row in counts]
        return self._solved(measured, totals)

    def errors(self, n_groups: int, source: ByteSource, *, known_total: bool) -> FloatArray:
        """Draw the errors of groups, shape (n_groups, n_bins)."""
        noise = Gaussian().sample(self.noise_scale, n_groups * self.n_bins, source)
        return self._solved(noise.reshape(n_groups, -1), np.full(n_groups, 0 if known_total else -1))

    def _solved(self, measured: Sequence[IntArray] | IntArray, totals: IntArray) -> FloatArray:
        return np.stack(
            [
                cumulative_estimates(self.sums, row, total=None if total < 0 else total)
                for row, total in zip(measured, totals.tolist(), strict=True)
            ]
        )

    def variances(self, *, known_total: bool) -> FloatArray:
        """Compute the variances of the estimates of a group, shape (n_bins,)."""
        return cumulative_variances(self.sums, self.noise_scale, known_total=known_total)

    def range_variances(self, starts: IntArray, stops: IntArray, *, known_total: bool) -> FloatArray:
        """Compute the variances of differences of the estimates."""
        return range_variances(self.sums, self.noise_scale, starts, stops, known_total=known_total)


def cumulative_estimates(
    sums: WeightedSums, measured: npt.ArrayLike, *, total: float | None = None
) -> FloatArray:
    r"""Estimate the cumulative sums without bias, in counts; they need not be monotone.

    If the number of all records is public, pass it as `total`. The estimates are then the best linear
    unbiased ones that end in it: with the covariances c of all estimates with the last one, :math:`\hat C_t -
    \frac{c_t}{c_K} (\hat C_K - \text{total})`.
    """
    values = np.asarray(measured, dtype=np.float64)
    if values.shape != (sums.n_bins,) or not np.isfinite(values).all():
        raise ArgumentError(
            "measured",
            f"must be one finite number for each of the {sums.n_bins} bins.",
            hint="pass the result of measure_weighted_sums for these sums.",
        )
    estimates = np.cumsum(_solve(sums, values, power=1) / sums.weights)
    if total is None:
        return estimates
    covariances = _covariances_with_total(sums)
    return np.asarray(estimates - covariances / covariances[-1] * (estimates[-1] - total))


def cumulative_variances(sums: WeightedSums, noise_scale: float, *, known_total: bool = False) -> FloatArray:
    r"""Compute the exact variances of `cumulative_estimates`, in squared counts.

    With :math:`u_j = 1 / d_j` and :math:`P = G^{-2}`, the variance of the t-th estimate is
    :math:`\sigma^2 \sum_{i, j \le t} u_i P_{ij} u_j`, in time :math:`O(K \log^2 K)`. `noise_scale` is that of
    the discrete Gaussian noise, in the unit of the measured values.
    """
    from scipy.fft import idct

    u = 1 / sums.weights
    p = antiperiodic(idct(_eigenvalues(sums) ** -2.0, type=3))
    before = _sums_over_earlier(u, p)
    variances = np.cumsum(u * (u * (p[0] + p[1::2]) + 2 * before))
    if known_total:
        covariances = _covariances_with_total(sums)
        variances = np.maximum(variances - covariances**2 / covariances[-1], 0.0)
        variances[-1] = 0.0
    return np.asarray(variances * Gaussian().variance(noise_scale))


def _eigenvalues(sums: WeightedSums) -> FloatArray:
    from scipy.fft import dct

    return np.asarray(dct(sums.coefficients.astype(np.float64), type=3))


def _solve(sums: WeightedSums, values: FloatArray, *, power: int) -> FloatArray:
    """Multiply a vector by the inverse of a power of G."""
    from scipy.fft import dct

    spectrum = dct(values, type=4, norm="ortho") / _eigenvalues(sums) ** power
    return np.asarray(dct(spectrum, type=4, norm="ortho"))


def _covariances_with_total(sums: WeightedSums) -> FloatArray:
    """Compute the covariances of all estimates with the last one, for noise of variance 1."""
    u = 1 / sums.weights
    return np.cumsum(u * _solve(sums, u, power=2))


def _sums_over_earlier(u: FloatArray, p: FloatArray) -> FloatArray:
    r"""Compute :math:`\sum_{j < t} (p(t - j) + p(t + j + 1))\,u_j` for every t, for an antiperiodic p.

    For each block size 1, 2, 4, …, every second block adds the sums over the block before it. There t − j and
    t + j depend on the positions of t and j within their blocks, so both sums are convolutions.
    """
    from scipy.fft import irfft, rfft

    n = 1 << (len(u) - 1).bit_length()
    padded, sums = np.append(u, np.zeros(n - len(u))), np.zeros(n)
    for size in (1 << level for level in range(n.bit_length() - 1)):
        earlier = padded.reshape(-1, 2, size)[:, 0]
        lags = np.arange(2 * size)
        mirrored = np.arange(0, n, 2 * size)[:, None] * 2 + size + lags
        differences = rfft(p[lags % len(p)]) * rfft(earlier, 2 * size)
        totals = rfft(p[mirrored % len(p)]) * rfft(earlier[:, ::-1], 2 * size)
        sums.reshape(-1, 2, size)[:, 1] += irfft(differences + totals, 2 * size)[:, size:]
    return sums[: len(u)]


def range_variances(
    sums: WeightedSums,
    noise_scale: float,
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
    *,
    known_total: bool = False,
) -> FloatArray:
    r"""Compute the exact variances of the sums over ranges ``starts <= bin < stops``, in squared counts.

    With the indicator 1 of these bins, the variance is :math:`\sigma^2 \|G^{-1} D^{-1} 1\|^2`. For single
    bins it is :math:`\sigma^2 P_{ii} / d_i^2`, computed in one step. No range is empty.
    """
    from scipy.fft import idct

    u = 1 / sums.weights
    single = stops == starts + 1
    p = antiperiodic(idct(_eigenvalues(sums) ** -2.0, type=3))
    variances = (u**2 * (p[0] + p[1::2]))[starts]
    bins = np.arange(sums.n_bins)
    for row in np.flatnonzero(~single):
        inside = (bins >= starts[row]) & (bins < stops[row])
        variances[row] = (_solve(sums, np.where(inside, u, 0.0), power=1) ** 2).sum()
    if known_total:
        covariances = np.insert(_covariances_with_total(sums), 0, 0.0)
        moved = covariances[stops] - covariances[starts]
        variances = np.maximum(variances - moved**2 / covariances[-1], 0.0)
    return np.asarray(variances * Gaussian().variance(noise_scale))
