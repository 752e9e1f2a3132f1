r"""Prefix sums from the noisy values of a `PrefixStrategy`, and their variances.

The measurement is :math:`z = G D x` plus noise. The cosine transform :math:`C = C^{-1}` of type IV
diagonalises :math:`G = C\,\mathrm{diag}(\lambda)\,C`, where :math:`\lambda` is the cosine transform of type
III of the integers h(0), …, h(K − 1). So :math:`A D^{-1} G^{-1} z` are unbiased estimates of the prefix
sums. They use the inverse of exactly the matrix that was measured, including its rounding.

**Privacy**: post-processing of noisy numbers and public parameters.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.mechanisms.prefix_sums import PrefixStrategy, antiperiodic
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors

__all__ = ["prefix_estimates", "prefix_rmse", "prefix_variances", "range_variances"]

FloatArray = npt.NDArray[np.float64]


def prefix_estimates(
    strategy: PrefixStrategy, measured: npt.ArrayLike, *, total: float | None = None
) -> FloatArray:
    r"""Estimate the prefix sums without bias, in counts; they need not be monotone.

    If the number of all records is public, pass it as `total`. The estimates are then the best linear
    unbiased ones that end in it: with the covariances c of all estimates with the last one, :math:`\hat C_t -
    \frac{c_t}{c_K} (\hat C_K - \text{total})`.
    """
    values = np.asarray(measured, dtype=np.float64)
    if values.shape != (strategy.n_bins,) or not np.isfinite(values).all():
        raise ArgumentError(
            "measured",
            f"must be one finite number for each of the {strategy.n_bins} bins.",
            hint="pass the result of measure_prefix_sums for this strategy.",
        )
    estimates = np.cumsum(_solve(strategy, values, power=1) / strategy.weights)
    if total is None:
        return estimates
    covariances = _covariances_with_total(strategy)
    return np.asarray(estimates - covariances / covariances[-1] * (estimates[-1] - total))


def prefix_variances(
    strategy: PrefixStrategy, noise_scale: float, *, known_total: bool = False
) -> FloatArray:
    r"""Compute the exact variances of `prefix_estimates`, in squared counts.

    With :math:`u_j = 1 / d_j` and :math:`P = G^{-2}`, the variance of the t-th estimate is
    :math:`\sigma^2 \sum_{i, j \le t} u_i P_{ij} u_j`, in time :math:`O(K \log^2 K)`. `noise_scale` is that of
    the discrete Gaussian noise, in the unit of the measured values.

    >>> strategy = PrefixStrategy(4)
    >>> noise_scale = strategy.noise_scale(PrivacyLoss(rho=0.5), neighbors="add_remove")
    >>> prefix_variances(strategy, noise_scale).round(2).tolist()
    [1.43, 1.61, 1.73, 2.13]
    >>> prefix_variances(strategy, noise_scale, known_total=True).round(2).tolist()
    [1.28, 1.19, 0.83, 0.0]
    """
    from scipy.fft import idct

    u = 1 / strategy.weights
    p = antiperiodic(idct(_eigenvalues(strategy) ** -2.0, type=3))
    before = _sums_over_earlier(u, p)
    variances = np.cumsum(u * (u * (p[0] + p[1::2]) + 2 * before))
    if known_total:
        covariances = _covariances_with_total(strategy)
        variances = np.maximum(variances - covariances**2 / covariances[-1], 0.0)
        variances[-1] = 0.0
    return np.asarray(variances * Gaussian().variance(noise_scale))


def prefix_rmse(
    strategy: PrefixStrategy,
    loss: PrivacyLoss,
    *,
    neighbors: Neighbors,
    max_contributions: int = 1,
    known_total: bool = False,
) -> float:
    """Predict the error of a release, in counts: the square root of the mean of `prefix_variances`.

    `loss` is that of the whole release: a rho, or an epsilon with a delta.

    >>> round(prefix_rmse(PrefixStrategy(256), PrivacyLoss(rho=0.5), neighbors="add_remove"), 3)
    2.529
    """
    noise_scale = strategy.noise_scale(loss, neighbors=neighbors, max_contributions=max_contributions)
    return math.sqrt(prefix_variances(strategy, noise_scale, known_total=known_total).mean())


def _eigenvalues(strategy: PrefixStrategy) -> FloatArray:
    from scipy.fft import dct

    return np.asarray(dct(strategy.coefficients.astype(np.float64), type=3))


def _solve(strategy: PrefixStrategy, values: FloatArray, *, power: int) -> FloatArray:
    """Multiply a vector by the inverse of a power of G."""
    from scipy.fft import dct

    spectrum = dct(values, type=4, norm="ortho") / _eigenvalues(strategy) ** power
    return np.asarray(dct(spectrum, type=4, norm="ortho"))


def _covariances_with_total(strategy: PrefixStrategy) -> FloatArray:
    """Compute the covariances of all estimates with the last one, for noise of variance 1."""
    u = 1 / strategy.weights
    return np.cumsum(u * _solve(strategy, u, power=2))


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
    strategy: PrefixStrategy,
    noise_scale: float,
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
    *,
    known_total: bool = False,
) -> FloatArray:
    r"""Compute the exact variances of the sums over ranges ``starts <= bin < stops``, in squared counts.

    With the indicator 1 of these bins, the variance is :math:`\sigma^2 \|G^{-1} D^{-1} 1\|^2`. For single
    bins it is :math:`\sigma^2 P_{ii} / d_i^2`, computed in one step. No range is empty.

    >>> strategy = PrefixStrategy(4)
    >>> noise_scale = strategy.noise_scale(PrivacyLoss(rho=0.5), neighbors="add_remove")
    >>> range_variances(strategy, noise_scale, np.array([0, 0, 3]), np.array([1, 4, 4])).round(2).tolist()
    [1.43, 2.13, 1.09]
    """
    from scipy.fft import idct

    u = 1 / strategy.weights
    single = stops == starts + 1
    p = antiperiodic(idct(_eigenvalues(strategy) ** -2.0, type=3))
    variances = (u**2 * (p[0] + p[1::2]))[starts]
    bins = np.arange(strategy.n_bins)
    for row in np.flatnonzero(~single):
        inside = (bins >= starts[row]) & (bins < stops[row])
        variances[row] = (_solve(strategy, np.where(inside, u, 0.0), power=1) ** 2).sum()
    if known_total:
        sums = np.insert(_covariances_with_total(strategy), 0, 0.0)
        variances = np.maximum(variances - (sums[stops] - sums[starts]) ** 2 / sums[-1], 0.0)
    return np.asarray(variances * Gaussian().variance(noise_scale))
