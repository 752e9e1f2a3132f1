"""Find the smallest privacy loss with which the margins of crossed hierarchies reach a target accuracy.

**Privacy**: a function of the product, the noise and the targets, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.crossed_split import crossed_shares
from pandas_dptree.planning.crossed_variance import MarginVariances
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.objective import Objective
from pandas_dptree.planning.split import Split
from pandas_dptree.planning.targets import Target
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["CrossedTarget"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossedTarget(Target):
    """Target standard errors of the margins of crossed hierarchies.

    As `Target`, with the standard errors and the names of all margins, and `public` counts; `known` is not
    used. Given shares are those of the levels of each axis. There are no targets of areas.
    """

    tree: ProductTree  # type: ignore[assignment]
    split: Split | Sequence[FloatArray]  # type: ignore[assignment]
    public: CrossedKnown

    @cached_property
    def _variances(self) -> MarginVariances:
        return MarginVariances(self.tree, self.public, least_squares=self.least_squares)

    def _level_shares(
        self,
        noise: AdditiveNoise,
        loss: PrivacyLoss,
        split: Any,
        weights: FloatArray,
        objective: Objective,
    ) -> FloatArray:
        return crossed_shares(
            self.tree, noise=noise, loss=loss, sensitivity=self.sensitivity, split=split,
            weights=weights, objective=objective, least_squares=self.least_squares, known=self.public,
        )  # fmt: skip

    def _means(self, precisions: FloatArray) -> FloatArray:
        """Return the mean variance of each margin, 0 where it is known."""
        with np.errstate(divide="ignore"):
            return self._variances.means(1 / precisions)
