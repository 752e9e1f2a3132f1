"""How the privacy budget is split over the margins of crossed hierarchies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.objective import Objective
from pandas_dptree.planning.split import Split, level_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity, TreeSensitivity

__all__ = ["crossed_shares"]


def crossed_shares(
    product: ProductTree,
    *,
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    sensitivity: TreeSensitivity,
    split: Split | Sequence[FloatArray],
    weights: FloatArray,
    objective: Objective,
    least_squares: bool,
    known: CrossedKnown,
) -> FloatArray:
    """Return each margin's share of the budget: the product of those of the axes by themselves."""
    one_row = Sensitivity(l1=1, l2_squared=1)
    of_axes = (
        [
            level_shares(axis, noise=noise, loss=loss, sensitivity=one_row, split=split, objective=objective)
            for axis in product.axes
        ]
        if isinstance(split, str)
        else split
    )
    return np.asarray(reduce(np.multiply.outer, of_axes)).reshape(-1)
