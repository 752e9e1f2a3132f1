"""Find the smallest privacy loss with which unit counts reach a target accuracy.

**Privacy**: a function of the tree, the bounds, the noise and the targets, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pandas_dptree.estimation.least_squares import LEAST_VARIANCE
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.objective import Objective
from pandas_dptree.planning.split import Split
from pandas_dptree.planning.targets import Target
from pandas_dptree.planning.unit_split import no_excess, unit_model, unit_shares
from pandas_dptree.planning.variance import unrelated_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.privacy.unit_sensitivity import unit_sensitivity

__all__ = ["UnitTarget"]


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitTarget(Target):
    """Target standard errors of unit counts, whose levels and excesses share the budget.

    As `Target`, with the `sensitivity` of the counts alone. There are no targets of areas: their counts are
    not the sums of those of their nodes.
    """

    max_nodes: Sequence[int]
    neighbors: Neighbors

    def _level_shares(
        self,
        noise: AdditiveNoise,
        loss: PrivacyLoss,
        split: Split | FloatArray,
        weights: FloatArray,
        objective: Objective,
    ) -> FloatArray:
        return unit_shares(
            self.tree, self.max_nodes, noise=noise, loss=loss, neighbors=self.neighbors, split=split,
            level_weights=weights, objective=objective, least_squares=self.least_squares, known=self.known,
        )  # fmt: skip

    def _noise_variances(self, noise: AdditiveNoise, loss: PrivacyLoss, shares: FloatArray) -> FloatArray:
        excess = (shares[self.tree.depth + 1 :] > 0).tolist()
        moves = unit_sensitivity(self.max_nodes, neighbors=self.neighbors, excess=excess)
        return np.maximum(noise.variance(noise.noise_scales(loss, moves, shares)), LEAST_VARIANCE)

    def _means(self, precisions: FloatArray) -> FloatArray:
        """Return the mean variance of each level; excesses are not measured where they have no precision."""
        counts, of_excess = np.split(precisions, [self.tree.depth + 1])
        if not self.least_squares:
            means, _ = unrelated_variances_and_vjp(self._orbits.part_unknown, counts[:, None])
            return means[:, 0]
        every = np.append(counts, of_excess if of_excess.size else np.zeros(self.tree.depth))
        means, _ = unit_model(self._orbits, no_excess(self.tree, self.max_nodes), every[:, None])
        return means[:, 0]
