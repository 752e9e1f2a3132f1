"""What strategies for measuring the cumulative counts of many groups at once have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.mechanisms.sampling import ByteSource, byte_source
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity

__all__ = ["Strategy"]

FloatArray = npt.NDArray[np.float64]

_FEWEST_DRAWS = 1000
"""The least number of draws of the noise, to find a quantile of the largest error."""

_BATCH = 2**20
"""How many bins of simulated groups are processed at a time."""

_FOR_EACH = 0.8
"""The part of the probability of a miss for intervals of one quantile that use the errors of one bin."""

_MOST_DRAWS = 10_000
"""The most draws of the noise that only make intervals of quantiles narrower."""

_MOST_SORTED = 2**27
"""The most errors, of all draws, quantiles and bins, of which the largest are searched for."""

_ROUNDING = 1e-9
"""What is left of a variance, relative to it, if there is nothing left."""


class Strategy(ABC):
    """A strategy for measuring the bins of disjoint groups: the same for all, with independent noise."""

    n_bins: int
    noise: AdditiveNoise
    noise_scales: tuple[float, ...]

    @abstractmethod
    def sensitivity(self, *, neighbors: Neighbors, max_contributions: int) -> Sensitivity:
        """Return the sensitivity of the values that get noise of one of the scales."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Serialize what is measured, and with which noise, to plain JSON: see `Strategies.read`."""

    @property
    @abstractmethod
    def description(self) -> str:
        """A short description of what is measured."""

    @abstractmethod
    def estimates(self, counts: IntArray, totals: IntArray, source: ByteSource) -> FloatArray:
        """Measure exact, secret counts, and estimate the cumulative counts without bias.

        `counts` and the result have shape (n_groups, n_bins). `totals`, shape (n_groups,), has the number of
        values in each group if it is public, otherwise -1. `source` is the source of random bytes.
        """

    @abstractmethod
    def variances(self, *, known_total: bool) -> FloatArray:
        """Compute the variances of the estimates of a group, shape (n_bins,)."""

    @abstractmethod
    def range_variances(self, starts: IntArray, stops: IntArray, *, known_total: bool) -> FloatArray:
        """Compute the variances of the numbers of values in the bins ``starts <= bin < stops``."""

    @property
    def slopes(self) -> FloatArray:
        r"""The part of the error of the total in that of each estimate, shape (n_bins,).

        With :math:`\text{error}_t = a_t\,\text{error}_n + \rho_t`, where :math:`\rho_t` is uncorrelated with
        the error of the total, a known total lowers the variance from :math:`V_t` to
        :math:`V'_t = \mathrm{Var}(\rho_t)`, as it is one more measurement, without noise. So
        :math:`a_t^2 = (V_t - V'_t) / V_n`.
        """
        variances = self.variances(known_total=False)
        explained = np.maximum(variances - self.variances(known_total=True), 0.0)
        return np.asarray(np.sqrt(explained / explained[-1]))

    def errors(self, n_groups: int, source: ByteSource, *, known_total: bool) -> FloatArray:
        """Draw the errors of groups, shape (n_groups, n_bins): the estimates for groups without values."""
        no_values = np.zeros((n_groups, self.n_bins), dtype=np.int64)
        return self.estimates(no_values, np.full(n_groups, 0 if known_total else -1), source)

    def half_widths(self, confidence: float, *, known_total: bool) -> FloatArray:
        r"""Compute half widths of a simultaneous band for the errors of a group, shape (n_bins,).

        `confidence` is above 0 and below 1. The errors are those of a group without values, so they can be
        drawn: the noise is public. With standard errors :math:`\sigma_t` the half widths are :math:`z
        \sigma_t`, where z is an upper end of the confidence interval (two standard errors) of the quantile of
        the largest :math:`|\text{error}_t| / \sigma_t` in 1000 draws, or in as many as leave 10 of them
        beyond it.
        """
        errors = np.sqrt(self.variances(known_total=known_total))
        largest = _largest_errors(self, known_total, n_draws := _n_draws(confidence))
        return np.asarray(largest[_rank(confidence, n_draws)] * errors)

    def quantile_half_widths(
        self, shares: tuple[float, ...], confidence: float, *, known_total: bool
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        r"""Compute two half widths for the intervals of each of several quantiles, of shape (n_bins,).

        The errors that matter for the quantile p are :math:`D_t = \text{error}_t - p\,\text{error}_n`: see
        `pandas_dptree.estimation.quantiles`. The first are quantiles of :math:`|D_t|`, bin by bin, for an
        equal part of the probability of a miss for each of the shares. The second are :math:`z` standard
        errors of :math:`D_t`, which those of no bin and of no quantile at all exceed. Four fifths of the
        probability are for the first ones; none, so that they are infinite, if that makes the second ones
        narrower, on average over bins and shares, or if they would take too many draws. All are found as for
        `half_widths`, from four times as many draws if these are not too many, and public.

        **Standard errors.** With the `slopes` :math:`a_t`,

        .. math:: \mathrm{Var}(D_t) = V'_t + (a_t - p)^2 V_n, \qquad
            \frac{D_t^2}{\mathrm{Var}(D_t)} \le \frac{\rho_t^2}{V'_t} + \frac{\text{error}_n^2}{V_n}

        for all p, by Cauchy and Schwarz.
        """
        each, of_all = (1 - part * (1 - confidence) for part in (_FOR_EACH / len(shares), 1 - _FOR_EACH))
        most = min(_MOST_DRAWS, _MOST_SORTED // (len(shares) * self.n_bins))
        n_draws = next((n for n in (_n_draws(each, 40), _n_draws(each)) if n <= most), None)
        if n_draws is not None and _n_draws(of_all) <= _MOST_DRAWS:
            of_one = _upper_quantiles_of_bins(self, known_total, shares, each, n_draws)
            alone = np.mean(list(_half_widths_of_all(self, known_total, shares, confidence)))
            if of_one.mean() < alone:
                return zip(of_one, _half_widths_of_all(self, known_total, shares, of_all), strict=True)
        infinite = np.full(self.n_bins, np.inf)
        return ((infinite, half) for half in _half_widths_of_all(self, known_total, shares, confidence))


def _n_draws(confidence: float, n_beyond: int = 10) -> int:
    """Return how many draws of the noise leave so many beyond a quantile."""
    return max(_FEWEST_DRAWS, math.ceil(n_beyond / (1 - confidence)))


def _rank(confidence: float, n_draws: int) -> int:
    """Return the rank among draws, from 0, of an upper bound for a quantile: two standard errors above it."""
    return math.ceil(confidence * n_draws + 2 * math.sqrt(confidence * (1 - confidence) * n_draws)) - 1


def _drawn_errors(strategy: Strategy, known_total: bool, n_draws: int) -> Iterator[FloatArray]:
    """Draw the noise of groups without values, some groups at a time."""
    source = byte_source(np.random.default_rng(0))
    for start in range(0, n_draws, step := max(_BATCH // strategy.n_bins, 1)):
        yield strategy.errors(min(step, n_draws - start), source, known_total=known_total)


@lru_cache(maxsize=64)
def _largest_errors(strategy: Strategy, known_total: bool, n_draws: int) -> FloatArray:
    """Draw the noise of groups without values, and sort their largest standardised errors."""
    errors = np.sqrt(strategy.variances(known_total=known_total))
    largest = []
    for drawn in _drawn_errors(strategy, known_total, n_draws):
        ratios = np.divide(np.abs(drawn), errors, out=np.zeros_like(drawn), where=errors > 0)
        largest.append(ratios.max(axis=1))
    return np.sort(np.concatenate(largest))


def _parts_of_variance(strategy: Strategy, known_total: bool) -> tuple[FloatArray, FloatArray, float]:
    """Return the slopes a of the errors on that of the total, the variances of the rest, and of the total."""
    variances = strategy.variances(known_total=True)
    residual = np.where(variances > _ROUNDING * strategy.variances(known_total=False), variances, 0.0)
    if known_total:
        return np.zeros(strategy.n_bins), residual, 0.0
    return strategy.slopes, residual, float(strategy.variances(known_total=False)[-1])


@lru_cache(maxsize=64)
def _largest_of_quantiles(strategy: Strategy, known_total: bool, n_draws: int) -> FloatArray:
    """Draw groups like `_largest_errors`, and sort bounds for their standardised errors for all quantiles."""
    slopes, residual, of_total = _parts_of_variance(strategy, known_total)
    largest = []
    for drawn in _drawn_errors(strategy, known_total, n_draws):
        total = drawn[:, -1:]
        rest = (drawn - slopes * total) ** 2
        squares = np.divide(rest, residual, out=np.zeros_like(rest), where=residual > 0).max(axis=1)
        largest.append(np.sqrt(squares + (total[:, 0] ** 2 / of_total if of_total > 0 else 0.0)))
    return np.sort(np.concatenate(largest))


def _half_widths_of_all(
    strategy: Strategy, known_total: bool, shares: tuple[float, ...], confidence: float
) -> Iterator[FloatArray]:
    """Compute half widths that no error of any bin and any quantile exceeds, one row for each share."""
    largest = _largest_of_quantiles(strategy, known_total, n_draws := _n_draws(confidence))
    z = largest[_rank(confidence, n_draws)]
    slopes, residual, of_total = _parts_of_variance(strategy, known_total)
    return (z * np.sqrt(residual + (slopes - share) ** 2 * of_total) for share in shares)


@lru_cache(maxsize=64)
def _upper_quantiles_of_bins(
    strategy: Strategy, known_total: bool, shares: tuple[float, ...], confidence: float, n_draws: int
) -> FloatArray:
    """Draw groups like `_largest_errors`, and bound a quantile of each bin's errors for each share.

    Only the largest errors are kept, from the bound on.
    """
    kept = np.zeros((len(shares), n_draws - _rank(confidence, n_draws), strategy.n_bins))
    for drawn in _drawn_errors(strategy, known_total, n_draws):
        for place, share in enumerate(shares):
            sizes = np.concatenate([kept[place], np.abs(drawn - share * drawn[:, -1:])])
            kept[place] = np.partition(sizes, len(drawn), axis=0)[len(drawn) :]
    return np.asarray(kept.min(axis=1))
