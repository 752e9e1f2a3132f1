"""The strategy that counts the nodes of a tree over the bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.distribution import cumulative
from pandas_dptree.distribution.strategy import FloatArray, Strategy
from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import LEAST_VARIANCE, least_squares, propagate
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.mechanisms.measure import measure
from pandas_dptree.mechanisms.sampling import ByteSource
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity, count_sensitivity

__all__ = ["TreeStrategy"]


@dataclass(frozen=True)
class TreeStrategy(Strategy):
    """Counts of the nodes of a tree over the bins, combined by least squares; other leaves are empty.

    `noise_scales` are those of the root and each level of the `branching`, inf where nothing is measured;
    `shares` are the parts of the budget that determine them, empty if the scales were given.
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
        found = cumulative.cumulative_variances(tree, nodes)[: self.n_bins]
        return np.maximum(found, 0.0)

    def range_variances(self, starts: IntArray, stops: IntArray, *, known_total: bool) -> FloatArray:
        """Compute the variances of differences of the estimates."""
        tree = Tree.from_branching(list(self.branching))
        nodes = self._node_variances(known_total=known_total)
        return cumulative.range_variances(tree, nodes, starts, stops)
