"""Trees of datasets from a forest of equal trees, with the dimensions of the original array."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from pandas_dptree.arrays.coordinates import centres_of, kept_coordinates
from pandas_dptree.output.datatree import release_tree, unmasked
from pandas_dptree.output.frames import prefix_of
from pandas_dptree.plans.additive import AdditivePlan

__all__ = ["lay_out_forest"]


def lay_out_forest(
    plan: AdditivePlan,
    array: xr.DataArray,
    others: Sequence[Hashable],
    columns: Mapping[Hashable, Sequence[npt.NDArray[Any]]],
    provenance: Mapping[str, Any],
) -> xr.DataTree:
    """Make a tree of datasets from the columns of a forest of equal trees, each planned by `plan`.

    Of `array`, only the shape and the coordinates are read. `others` are the dimensions with a tree for each
    index; `columns` those of `columns_of` for the forest.
    """
    assert plan.domain is not None
    shape = [array.sizes[dim] for dim in others]
    n_trees = math.prod(shape)
    nodes = {
        name: [
            unmasked(np.broadcast_to(values, max(1, n_trees) * size, subok=True)).reshape(-1, size)
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
