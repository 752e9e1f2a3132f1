"""Prepare counts and sums that the caller has already made. Secret: nothing here may leave the package.

Each function returns the int64 array that is measured, or raises an ArgumentError if the given one has
another shape or does not hold whole numbers. Only the shape and the type decide that.

**Privacy.** Values are clipped so that no total can overflow. The bound, ``2**61 / n_leaves``, depends on the
tree alone. Clipping to an interval around zero does not change the sensitivity of any level: see the notes of
`sum_sensitivity`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.shape import IntArray, Shape

__all__ = ["bin_counts", "clear_zeros", "clip_leaves", "leaf_counts", "leaf_sums"]


def bin_counts(data: npt.NDArray[Any], n_groups: int, n_bins: int) -> IntArray:
    """Prepare counts in bins, shape (n_groups, n_bins); for a single group also (n_bins,).

    They are clipped as by `leaf_counts`, with ``n_groups * n_bins`` leaves.
    """
    shape = (n_groups, n_bins)
    if data.shape not in {shape, shape[n_groups == 1 :]} or data.dtype.kind not in "iu":
        raise ArgumentError(
            "data",
            f"must be whole numbers of shape {shape}, not {data.dtype} of shape {data.shape}.",
            hint="pass one number per group and bin, in the order of the plan, as an integer array.",
        )
    return np.maximum(clip_leaves(data.reshape(-1)), 0).reshape(shape)


def leaf_counts(data: npt.NDArray[Any], tree: Shape) -> IntArray:
    """Prepare leaf counts, shape (n_leaves,): clip them to the range from 0 to ``2**61 / n_leaves``."""
    return np.maximum(leaf_sums(data, tree), 0)


def leaf_sums(data: npt.NDArray[Any], tree: Shape) -> IntArray:
    """Prepare leaf sums, shape (n_leaves,), in units of the quantity; clip them to ±``2**61 / n_leaves``.

    Those of crossed hierarchies may also have the shape of the leaf cells.
    """
    shapes = [tree.leaf_shape] if isinstance(tree, ProductTree) else []
    shapes.append((tree.n_leaves,))
    if data.shape not in shapes or data.dtype.kind not in "iu":
        raise ArgumentError(
            "data",
            f"must be whole numbers of shape {' or '.join(map(str, shapes))}, not {data.dtype} of shape "
            f"{data.shape}.",
            hint="pass one number per leaf, in the order of the tree, as an integer array.",
        )
    return clip_leaves(data.reshape(-1))


def clear_zeros(leaves: IntArray, domain: Domain | CrossedDomain) -> IntArray:
    """Set the leaves that are empty by definition to 0, in place."""
    if isinstance(domain, Domain):
        leaves[domain.structural_zeros] = 0
        return leaves
    table = leaves.reshape(domain.tree.leaf_shape)
    for place, empty in enumerate(domain.zeros):
        np.moveaxis(table, place, 0)[empty] = 0
    return leaves


def clip_leaves(sums: npt.NDArray[Any]) -> IntArray:
    """Clip leaf sums to ±``2**61 / n_leaves``."""
    largest = 2**61 // len(sums)
    return np.asarray(np.clip(sums, -largest, largest), dtype=np.int64)
