"""Crossed hierarchies over the cells of an array: each axis reads its keys from coordinates."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import xarray as xr

from pandas_dptree.arrays.coordinates import centres_of, check_domain, domain_of, kept_coordinates, leaves_of
from pandas_dptree.errors import ArgumentError, listed, quote
from pandas_dptree.hierarchy.axes import check_axis_names
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.cells import sum_cells
from pandas_dptree.output.crossed_datatree import check_crossed_groups, crossed_tree
from pandas_dptree.output.empty_tables import usual_causes
from pandas_dptree.plans.crossed import CrossedPlan
from pandas_dptree.plans.execute import Levels, exact_leaves, prepared_with
from pandas_dptree.plans.running import Origin, Release, Resources

__all__ = ["CrossedBy", "cells_of", "crossed_domain_of", "dims_of_axes", "of_crossed"]

CrossedBy = Mapping[str, By]
"""The keys of each axis."""


def crossed_domain_of(array: xr.DataArray, by: CrossedBy) -> CrossedDomain:
    """Make the domain of an array from its coordinates, each axis separately."""
    check_axis_names(by, argument="by")
    return CrossedDomain({axis: domain_of(array, levels) for axis, levels in by.items()})


def dims_of_axes(array: xr.DataArray, domain: CrossedDomain) -> list[tuple[Hashable, ...]]:
    """Check that an array has the keys of all axes and no other dimensions; list the dimensions of each."""
    check_crossed_groups(domain)
    dims = [check_domain(array, axis) for axis in domain.axes.values()]
    if others := [dim for dim in array.dims if not any(dim in own for own in dims)]:
        raise ArgumentError(
            "array",
            f"has dimensions that no axis uses: {listed(others)}.",
            hint=f"give each an axis of its own in `by`, or add them up with array.sum({quote(others)}).",
        )
    return dims


def cells_of(array: xr.DataArray, domain: CrossedDomain) -> IntArray:
    """Find the leaf cell of each cell of an array, -1 if there is none, in the shape of the array."""
    leaves = []
    for axis, dims in zip(domain.axes.values(), dims_of_axes(array, domain), strict=True):
        own = [dim for dim in array.dims if dim in dims]
        leaf = leaves_of(array, dims, axis).transpose([dims.index(dim) for dim in own])
        leaves.append(leaf.reshape([array.sizes[dim] if dim in own else 1 for dim in array.dims]))
    return domain.find_cells(leaves)


def of_crossed(plan: CrossedPlan, array: xr.DataArray) -> Release:
    """Prepare the release of an array, whose names and types have been checked; no cells are read."""
    name, cells = plan.quantity.name, cells_of(array, plan.domain)

    def exact(resources: Resources) -> Sequence[IntArray]:
        sums = sum_cells(array, array.dims, cells, plan.tree.n_leaves, plan.quantity)
        return exact_leaves(plan, [plan.quantity], sums, resources)

    def lay_out(columns: Mapping[Hashable, Levels], origin: Origin) -> xr.DataTree:
        return crossed_tree(
            plan.domain,
            columns,
            kept_coordinates(array, []),
            plan.provenance(origin),
            {key: each.attrs for key, each in array.coords.items()},
            [centres_of(array, axis) for axis in plan.domain.axes.values()],
        )

    def returns(kept: object) -> bool:
        return isinstance(kept, xr.DataTree) and name in next(iter(kept.children.values()))

    return prepared_with(plan, exact, lay_out, usual_causes(), returns=returns)
