"""Strategies for measuring the cumulative counts of many groups at once, and their errors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.distribution import factorization, prefix
from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import LEAST_VARIANCE, least_squares, propagate
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise, Gaussian
from pandas_dptree.mechanisms.measure import measure
from pandas_dptree.mechanisms.prefix_sums import PrefixStrategy, measure_prefix_sums
from pandas_dptree.mechanisms.sampling import ByteSource, byte_source
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity, count_sensitivity

__all__ = ["FactorizedPrefixes", "Strategy", "TreePrefixes"]

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


@dataclass(frozen=True)
class TreePrefixes(Strategy):
    """Counts of the nodes of a tree over the bins, combined by least squares.

    `branching` has the children per node, from the root down. Leaves beyond the bins are known to be empty.
    `noise_scales` are those of the root and each level below it; inf where nothing is measured. `shares` are
    the parts of the budget that determine the scales; empty if the scales were given.
    """

    n_bins: int
    noise: AdditiveNoise
    branching: tuple[int, ...]
    noise_scales: tuple[float, ...]
    shares: tuple[float, ...] = ()

    def sensitivity(self, *, neighbors: Neighbors, max_contributions: int) -> Sensitivity:
        """Return the sensitivity of one level of the tree, on which each row is counted once."""
        return count_sensitivity(neighbors=neighbors, max_contributions=max_contributions)

    def to_dict(self) -> dict[str, Any]:
        """Serialize the tree, the shares of the budget, and the noise scales."""
        if not self.shares:
            raise ArgumentError(
                "strategy",
                "cannot be serialized: its noise does not follow from shares of the budget.",
                hint="make the plan with plan_distribution.",
            )
        return {
            "kind": "tree",
            "noise": self.noise.name,
            "branching": list(self.branching),
            "shares": list(self.shares),
            "noise_scales": [None if scale == math.inf else scale for scale in self.noise_scales],
        }

    @property
    def description(self) -> str:
        """The tree, by its numbers of children."""
        return f"tree {'x'.join(map(str, self.branching))}"

    @cached_property
    def _empty(self) -> list[npt.NDArray[np.bool_]]:
        """For each level of a group's tree, which nodes have no bins."""
        sizes = np.cumprod([1, *self.branching])
        first = [np.arange(size) * (sizes[-1] // size) for size in sizes.tolist()]
        return [start >= self.n_bins for start in first]

    def _node_variances(self, *, known_total: bool) -> list[FloatArray]:
        """Compute the variances of the measurements of a group's tree: 0 for what is known."""
        levels = []
        for level, (scale, empty) in enumerate(zip(self.noise_scales, self._empty, strict=True)):
            variance = float(self.noise.variance(scale)) if np.isfinite(scale) else np.inf
            fixed = empty if empty.any() else np.array([known_total and level == 0])
            levels.append(np.where(fixed, 0.0, max(variance, LEAST_VARIANCE)))
        return levels

    def estimates(self, counts: IntArray, totals: IntArray, source: ByteSource) -> FloatArray:
        """Measure the nodes of all trees, and solve them by least squares; those with known totals apart."""
        n_groups, n_leaves = len(counts), len(self._empty[-1])
        forest = Tree.from_branching([n_groups, *self.branching])
        padded = np.pad(counts, [(0, 0), (0, n_leaves - self.n_bins)])
        exact = forest.roll_up(padded.reshape(-1))
        _, *measured = measure(self.noise, exact, [np.inf, *self.noise_scales], source)
        noisy = [None if level is None else level.reshape(n_groups, -1).T for level in measured]
        for level, empty in enumerate(self._empty):
            if empty.any():  # these have no noise, even on a level that is not measured
                values = noisy[level]
                zeros = np.zeros((len(empty), n_groups), dtype=np.int64)
                noisy[level] = zeros if values is None else np.where(empty[:, None], 0, values)
        estimates = np.empty(counts.shape)
        for known_total in (False, True):
            groups = np.flatnonzero((totals >= 0) == known_total)
            if not len(groups):
                continue
            own = [None if level is None else level[:, groups] for level in noisy]
            if known_total:
                own[0] = totals[None, groups]
            leaves = self._solved(own, known_total=known_total)
            estimates[groups] = np.cumsum(leaves[: self.n_bins], axis=0).T
        return estimates

    def _solved(self, noisy: list[IntArray | None], *, known_total: bool) -> FloatArray:
        """Estimate the leaves of trees with the same variances, from levels of shape (n_nodes, n_groups)."""
        tree = Tree.from_branching(list(self.branching))
        variances = propagate(tree, self._node_variances(known_total=known_total))
        return least_squares(tree, noisy, variances)[-1]

    def variances(self, *, known_total: bool) -> FloatArray:
        """Compute the variances of the estimates of a group, shape (n_bins,)."""
        tree = Tree.from_branching(list(self.branching))
        nodes = self._node_variances(known_total=known_total)
        found = prefix.prefix_variances(tree, nodes)[: self.n_bins]
        return np.maximum(found, 0.0)

    def range_variances(self, starts: IntArray, stops: IntArray, *, known_total: bool) -> FloatArray:
        """Compute the variances of differences of the estimates."""
        tree = Tree.from_branching(list(self.branching))
        nodes = self._node_variances(known_total=known_total)
        return prefix.range_variances(tree, nodes, starts, stops)


@dataclass(frozen=True)
class FactorizedPrefixes(Strategy):
    """Weighted sums of bins with Gaussian noise, from which cumulative counts are estimated.

    `noise_scale` is in the unit of what is measured.
    """

    strategy: PrefixStrategy
    noise_scale: float

    @property
    def n_bins(self) -> int:  # type: ignore[override]
        """Number of bins."""
        return self.strategy.n_bins

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
        return self.strategy.sensitivity(neighbors=neighbors, max_contributions=max_contributions)

    def to_dict(self) -> dict[str, Any]:
        """Serialize the kind of strategy and the noise scale; the bins and bits determine the weights."""
        return {"kind": "factorization", "bits": self.strategy.bits, "noise_scale": self.noise_scale}

    @property
    def description(self) -> str:
        """The kind of measurement."""
        return "factorization"

    def estimates(self, counts: IntArray, totals: IntArray, source: ByteSource) -> FloatArray:
        """Measure each group, and solve for the cumulative counts."""
        measured = [measure_prefix_sums(self.strategy, row, self.noise_scale, source) for row in counts]
        return self._solved(measured, totals)

    def errors(self, n_groups: int, source: ByteSource, *, known_total: bool) -> FloatArray:
        """Draw the errors of groups, shape (n_groups, n_bins)."""
        noise = Gaussian().sample(self.noise_scale, n_groups * self.n_bins, source)
        return self._solved(noise.reshape(n_groups, -1), np.full(n_groups, 0 if known_total else -1))

    def _solved(self, measured: Sequence[IntArray] | IntArray, totals: IntArray) -> FloatArray:
        return np.stack(
            [
                factorization.prefix_estimates(self.strategy, row, total=None if total < 0 else total)
                for row, total in zip(measured, totals.tolist(), strict=True)
            ]
        )

    def variances(self, *, known_total: bool) -> FloatArray:
        """Compute the variances of the estimates of a group, shape (n_bins,)."""
        return factorization.prefix_variances(self.strategy, self.noise_scale, known_total=known_total)

    def range_variances(self, starts: IntArray, stops: IntArray, *, known_total: bool) -> FloatArray:
        """Compute the variances of differences of the estimates."""
        return factorization.range_variances(
            self.strategy, self.noise_scale, starts, stops, known_total=known_total
        )
