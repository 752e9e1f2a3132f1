"""Whole, non-negative tables of crossed hierarchies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.product_tree import ProductTree

__all__ = ["fit_crossed"]


def fit_crossed(
    product: ProductTree,
    estimates: Sequence[FloatArray | None],
    variances: FloatArray,
    random_words: Callable[[int], npt.NDArray[np.uint64]] | None = None,
    *,
    known: CrossedKnown,
) -> npt.NDArray[np.int64] | FloatArray:
    """Return the leaf cells: their linear estimates, without negative ones."""
    leaves = estimates[-1]
    assert leaves is not None
    cut = np.maximum(leaves, 0.0)
    return cut if random_words is None else np.rint(cut).astype(np.int64)
