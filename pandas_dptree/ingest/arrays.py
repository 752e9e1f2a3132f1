"""Exact leaf counts that the caller has counted already. Secret: nothing here may leave the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["leaf_counts"]


def leaf_counts(data: npt.NDArray[Any], tree: Tree) -> IntArray:
    """Bring an array of leaf counts into the form that is measured.

    Parameters
    ----------
    data : numpy.ndarray of whole numbers, shape (n_leaves,)
    tree : Tree

    Returns
    -------
    numpy.ndarray of int64, shape (n_leaves,)
        Clipped to the range from 0 to ``2**61 / n_leaves``, so that no total can overflow. Clipping
        moves no two counts further apart, so the sensitivity stands.

    Raises
    ------
    ArgumentError
        If the array has another shape or does not hold whole numbers. Only its shape and type are
        looked at.
    """
    if data.shape != (tree.n_leaves,) or data.dtype.kind not in "iu":
        raise ArgumentError(
            "data",
            f"must be whole numbers of shape ({tree.n_leaves},), not {data.dtype} of shape {data.shape}.",
            hint="pass one count per leaf, in the order of the tree, as an integer array.",
        )
    return np.asarray(np.clip(data, 0, 2**61 // tree.n_leaves), dtype=np.int64)
