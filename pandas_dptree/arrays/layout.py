"""What a forest of equal trees shows, with the dimensions of the array that it comes from."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from pandas_dptree.arrays.coordinates import centres_of, kept_coordinates
from pandas_dptree.output.datatree import release_tree
from pandas_dptree.output.frames import prefix_of
from pandas_dptree.plans.additive import AdditivePlan

__all__ = ["laid_out"]


def laid_out(
    plan: AdditivePlan,
    array: xr.DataArray,
    others: Sequence[Hashable],
    columns: Mapping[Hashable, Sequence[npt.NDArray[Any]]],
    provenance: Mapping[str, Any],
) -> xr.DataTree:
    """Make a tree of datasets from what a forest of equal trees shows.

    Parameters
    ----------
    plan : AdditivePlan
        Of one tree.
    array : xarray.DataArray
        Only its shape and coordinates are looked at.
    others : sequence of hashable
        The dimensions that have a tree for each index.
    columns : mapping of sequences of numpy.ndarray
        As `columns_of` gives them for the forest (of one tree, if there is no index at all).
    provenance : mapping
        The provenance of the release.

    Returns
    -------
    xarray.DataTree
    """
    assert plan.domain is not None
    shape = [array.sizes[dim] for dim in others]
    n_trees = math.prod(shape)
    nodes = {
        name: [
            _unmasked(np.broadcast_to(values, max(1, n_trees) * size, subok=True)).reshape(-1, size)
            for values, size in zip(levels, plan.tree.level_sizes, strict=True)
        ]
        for name, levels in columns.items()
    }
    public = {f"{prefix_of(plan.quantity.column)}{what}" for what in ("std_error", "noise_scale")}
    return release_tree(
        plan.domain,
        {
            name: [values[:n_trees].reshape(*shape, values.shape[1]) for values in levels]
            for name, levels in nodes.items()
            if name not in public
        },
        {name: [values[0] for values in levels] for name, levels in nodes.items() if name in public},
        others,
        kept_coordinates(array, others),
        provenance,
        {name: each.attrs for name, each in array.coords.items()},
        centres_of(array, plan.domain),
    )


def _unmasked(nodes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give masked whole numbers as floats, missing where they were not measured."""
    if not isinstance(nodes, np.ma.MaskedArray):
        return nodes
    return np.where(np.ma.getmaskarray(nodes), np.nan, nodes.data)
