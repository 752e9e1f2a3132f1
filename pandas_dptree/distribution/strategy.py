"""What strategies for measuring the cumulative counts of many groups at once have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
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

_BATCH = 2**21
"""How many bins of simulated groups are processed at a time."""


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
        n_draws = max(_FEWEST_DRAWS, math.ceil(10 / (1 - confidence)))
        rank = confidence * n_draws + 2 * math.sqrt(confidence * (1 - confidence) * n_draws)
        largest = np.sort(_largest_errors(self, known_total, n_draws))
        return np.asarray(largest[math.ceil(rank) - 1] * errors)


@lru_cache(maxsize=64)
def _largest_errors(strategy: Strategy, known_total: bool, n_draws: int) -> FloatArray:
    """Draw the noise of groups without values, and return each group's largest standardised error."""
    source = byte_source(np.random.default_rng(0))
    errors = np.sqrt(strategy.variances(known_total=known_total))
    largest = []
    for start in range(0, n_draws, step := max(_BATCH // strategy.n_bins, 1)):
        drawn = np.abs(strategy.errors(min(step, n_draws - start), source, known_total=known_total))
        ratios = np.divide(drawn, errors, out=np.zeros_like(drawn), where=errors > 0)
        largest.append(ratios.max(axis=1))
    return np.concatenate(largest)
