"""How the privacy budget is split over the margins of crossed hierarchies.

**Privacy**: a split is a function of the product, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.mechanisms.additive import AdditiveNoise, Moves
from pandas_dptree.planning.crossed_budget import Budget
from pandas_dptree.planning.crossed_product import factors, product_shares
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.known_counts import Flags
from pandas_dptree.planning.objective import Objective, cost_weights
from pandas_dptree.planning.split import Split
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["crossed_shares"]


def crossed_shares(
    product: ProductTree,
    *,
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    sensitivity: Moves,
    split: Split | Sequence[FloatArray] = "optimal",
    weights: FloatArray | None = None,
    objective: Objective = "levels",
    least_squares: bool = True,
    known: CrossedKnown | None = None,
) -> FloatArray:
    """Return each margin's share of the budget: shape (K,), of sum 1, in proportion to what it costs alone.

    Given shares are those of the levels of each axis, whose product is that of the margin. `weights` say how
    much the error of each cell of a margin matters, at least 0.
    """
    budget = Budget(noise, loss, sensitivity.on(len(product.margins)))
    n_listed = [product.n_listed(level) for level in range(len(product.margins))]
    costs = cost_weights(n_listed, objective, weights)
    of_axes = factors(product, costs)
    if of_axes is None:
        of_axes = [np.ones(axis.depth + 1) for axis in product.axes]
    return product_shares(
        product,
        budget,
        split=split,
        of_axes=of_axes,
        weights=costs,
        objective=objective,
        zeros=structural_zeros(product, known),
    )


def structural_zeros(product: ProductTree, known: CrossedKnown | None) -> list[Flags | None]:
    """Return, for each axis that has any, which nodes of its levels are known to be empty."""
    if known is None:
        return [None] * len(product.axes)
    flags = [
        [exact & (least == 0) for exact, least in zip(axis.exact, axis.least, strict=True)]
        for axis in known.axes
    ]
    return [levels if levels[-1].any() else None for levels in flags]
