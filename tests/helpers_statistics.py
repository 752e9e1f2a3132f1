"""Goodness of fit for integer samples, against probabilities that are known to 50 digits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import mpmath
import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv
from scipy.stats import chi2

Cdf = Callable[[int], mpmath.mpf]

PRECISION = mpmath.mp.clone()
PRECISION.dps = 50

FEWEST_EXPECTED = 20.0  # draws per bin: enough for the chi-square approximation
IMPOSSIBLE = 1e-13  # a draw where all draws together expect fewer than this refutes the distribution


def laplace_cdf(noise_scale: float) -> Cdf:
    """P(X <= k) of the discrete Laplace distribution."""
    q = PRECISION.exp(-1 / PRECISION.mpf(noise_scale))
    return lambda k: q ** (-k) / (1 + q) if k < 0 else 1 - q ** (k + 1) / (1 + q)


def truncated_laplace_cdf(noise_scale: float, bound: int) -> Cdf:
    """P(X <= k) of the discrete Laplace distribution on -bound … bound."""
    q = PRECISION.exp(-1 / PRECISION.mpf(noise_scale))
    below = q ** (bound + 1) / (1 + q)
    whole = laplace_cdf(noise_scale)
    return lambda k: (whole(min(max(k, -bound - 1), bound)) - below) / (1 - 2 * below)


@functools.cache
def gaussian_cdf(noise_scale: float) -> Cdf:
    """P(X <= k) of the discrete Gaussian distribution.

    Summed term by term up to scale 200. Above, the sum of w up to k is the integral up to k + 1/2, less
    w'(k + 1/2)/24 (Euler and Maclaurin); the next term is of the order of scale**-4.
    """
    t = PRECISION.mpf(noise_scale)

    def weight(x: float) -> mpmath.mpf:
        return PRECISION.exp(-((x / t) ** 2) / 2)

    if noise_scale > 200:

        def cdf(k: int) -> mpmath.mpf:
            end = PRECISION.mpf(k) + 0.5
            slope = -end / t**2 * weight(end)
            return PRECISION.ncdf(end / t) - slope / (24 * t * PRECISION.sqrt(2 * PRECISION.pi))

        return cdf

    reach = math.ceil(16 * noise_scale) + 1  # w(reach) < 1e-50
    sums = [PRECISION.mpf(0)]
    for x in range(-reach, reach + 1):
        sums.append(sums[-1] + weight(x))
    return lambda k: sums[min(max(k + reach + 1, 0), len(sums) - 1)] / sums[-1]


def edges(noise_scale: float, *, farthest: float = 7.0) -> list[int]:
    """Upper ends of bins: every integer near zero, and multiples of the scale further out."""
    near = range(-4, 4)
    far = np.arange(0.25, farthest, 0.25) * noise_scale
    return sorted({*near, *(round(x) for x in far), *(-1 - round(x) for x in far)})


def fit(draws: npt.NDArray[np.int64], cdf: Cdf, bin_edges: Sequence[int]) -> float:
    """p-value of the chi-square test that the draws follow a distribution.

    Parameters
    ----------
    draws : numpy.ndarray of int64, shape (n,)
        Independent draws.
    cdf : callable
        P(X <= k) for whole numbers k.
    bin_edges : sequence of int
        Rising upper ends of the bins (inclusive); the last bin has none. Neighbouring bins are joined until
        20 draws are expected in each.

    Returns
    -------
    float
        0.0 at once if a draw is where practically none may be, even if its bin was joined to others.
    """
    ends = [PRECISION.mpf(0), *(cdf(k) for k in bin_edges), PRECISION.mpf(1)]
    expected = np.array([float(len(draws) * (b - a)) for a, b in pairwise(ends)])
    observed = np.bincount(np.searchsorted(bin_edges, draws), minlength=len(expected)).astype(float)
    if observed[expected < IMPOSSIBLE].any():
        return 0.0
    return _chi_square(*_joined(expected, observed, by=expected))


def same_distribution(
    one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], bin_edges: Sequence[int]
) -> float:
    """p-value of the two-sample chi-square test that two sets of draws follow the same distribution."""
    counts = [
        np.bincount(np.searchsorted(bin_edges, draws), minlength=len(bin_edges) + 1).astype(float)
        for draws in (one, other)
    ]
    pooled = sum(counts)
    shares = np.array([len(one), len(other)]) / (len(one) + len(other))
    bins = [
        _joined(pooled * share, count, by=pooled * shares.min())
        for share, count in zip(shares, counts, strict=True)
    ]
    statistic = sum(((observed - expected) ** 2 / expected).sum() for expected, observed in bins)
    return float(chi2.sf(statistic, max(len(bins[0][0]) - 1, 1)))


def _joined(
    expected: npt.NDArray, observed: npt.NDArray, *, by: npt.NDArray
) -> tuple[npt.NDArray, npt.NDArray]:
    """Join neighbouring bins until `by` sums to enough in each; what is left over joins the last."""
    starts, mass = [0], 0.0
    for i, more in enumerate(by):
        if mass >= FEWEST_EXPECTED:
            starts.append(i)
            mass = 0.0
        mass += more
    if mass < FEWEST_EXPECTED and len(starts) > 1:
        starts.pop()
    return np.add.reduceat(expected, starts), np.add.reduceat(observed, starts)


def _chi_square(expected: npt.NDArray, observed: npt.NDArray) -> float:
    if len(expected) == 1:
        return 1.0
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def audited_epsilon(
    outcomes_a: npt.ArrayLike, outcomes_b: npt.ArrayLike, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Lower bound on the epsilon of a mechanism, from its outcomes on two neighbouring data sets.

    If it is (epsilon, delta)-private, then P_a(S) <= e**epsilon P_b(S) + delta for every set S of outcomes.
    The first half of the runs picks a set; the second half, independent of it, bounds both probabilities
    (Clopper and Pearson).

    Parameters
    ----------
    outcomes_a, outcomes_b : array_like, shape (n_runs,) or (n_runs, k)
        One outcome, a number or a row of numbers, per independent run.
    delta : float, default 0.0
    confidence : float, default 0.95
        Probability with which the bound is not above the true epsilon at this delta.

    Returns
    -------
    float
        At least 0.
    """
    a, b = np.asarray(outcomes_a), np.asarray(outcomes_b)
    distinct, kinds = np.unique(np.concatenate([a, b]), axis=0, return_inverse=True)
    kinds_a, kinds_b = np.split(kinds.reshape(-1), [len(a)])

    def counts(kinds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.bincount(kinds, minlength=len(distinct))

    picking, judging = (
        (counts(kinds_a[part_a]), counts(kinds_b[part_b]))
        for part_a, part_b in zip(_halves(a), _halves(b), strict=True)
    )
    error = (1 - confidence) / 2  # of each of the two probabilities
    best, found = -math.inf, 0.0
    for one, other in ((0, 1), (1, 0)):
        order = np.argsort(-(picking[one] + 1) / (picking[other] + 1), kind="stable")
        picked, judged = (
            _epsilon_of_sets(np.cumsum(half[one][order]), np.cumsum(half[other][order]), delta, error)
            for half in (picking, judging)
        )
        at = int(np.argmax(picked))
        if picked[at] > best:
            best, found = float(picked[at]), float(judged[at])
    return max(0.0, found)


def _halves(runs: npt.NDArray) -> tuple[slice, slice]:
    return slice(None, len(runs) // 2), slice(len(runs) // 2, None)


def _epsilon_of_sets(
    in_a: npt.NDArray[np.int64], in_b: npt.NDArray[np.int64], delta: float, error: float
) -> npt.NDArray[np.float64]:
    """Bound epsilon from below by each of some growing sets; the last one holds all runs."""
    n_a, n_b = in_a[-1], in_b[-1]
    lowest_a = np.where(in_a > 0, betaincinv(np.maximum(in_a, 1), n_a - in_a + 1, error), 0.0)
    highest_b = np.where(in_b < n_b, betaincinv(in_b + 1, np.maximum(n_b - in_b, 1), 1 - error), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(lowest_a - delta, 0.0) / highest_b)
