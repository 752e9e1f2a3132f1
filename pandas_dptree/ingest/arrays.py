"""Exact counts and sums that the caller has made already. Secret: nothing here may leave the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["bin_counts", "clip_leaves", "leaf_counts", "leaf_sums"]


def bin_counts(data: npt.NDArray[Any], n_groups: int, n_bins: int) -> IntArray:
    """Bring an array of counts in bins into the form that is measured.

    Parameters
    ----------
    data : numpy.ndarray of whole numbers, shape (n_groups, n_bins)
        Of a single group also of shape (n_bins,).
    n_groups, n_bins : int

    Returns
    -------
    numpy.ndarray of int64, shape (n_groups, n_bins)
        Clipped as `leaf_counts` tells, of all groups together: the sensitivity stands.

    Raises
    ------
    ArgumentError
        If the array has another shape or does not hold whole numbers. Only its shape and type are
        looked at.
    """
    shape = (n_groups, n_bins)
    if data.shape not in {shape, shape[n_groups == 1 :]} or data.dtype.kind not in "iu":
        raise ArgumentError(
            "data",
            f"must be whole numbers of shape {shape}, not {data.dtype} of shape {data.shape}.",
            hint="pass one number per group and bin, in the order of the plan, as an integer array.",
        )
    return np.maximum(clip_leaves(data.reshape(-1)), 0).reshape(shape)


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
    return np.maximum(leaf_sums(data, tree), 0)


def leaf_sums(data: npt.NDArray[Any], tree: Tree) -> IntArray:
    """Bring an array of leaf sums into the form that is measured.

    Parameters
    ----------
    data : numpy.ndarray of whole numbers, shape (n_leaves,)
        In units of the quantity that is added up; they may be negative.
    tree : Tree

    Returns
    -------
    numpy.ndarray of int64, shape (n_leaves,)
        Clipped as `clip_leaves` tells.

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
            hint="pass one number per leaf, in the order of the tree, as an integer array.",
        )
    return clip_leaves(data)


def clip_leaves(sums: npt.NDArray[Any]) -> IntArray:
    """Clip leaf sums so that no total can overflow.

    Parameters
    ----------
    sums : numpy.ndarray of whole numbers, shape (n_leaves,)

    Returns
    -------
    numpy.ndarray of int64, shape (n_leaves,)
        Within ±``2**61 / n_leaves``.

    Notes
    -----
    **Privacy.** The bound depends on the tree alone, and clipping to an interval around zero leaves the
    sensitivity of every level as it is: see the notes of `sum_sensitivity`.
    """
    largest = 2**61 // len(sums)
    return np.asarray(np.clip(sums, -largest, largest), dtype=np.int64)
