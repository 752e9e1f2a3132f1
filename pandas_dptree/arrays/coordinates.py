"""The public part of an array: its dimensions and coordinates, as keys, leaves and labels of the result."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from pandas_dptree.errors import ArgumentError, ColumnsError, did_you_mean, kind_of_object, listed
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.combine import By, Derived, combined, named, sole
from pandas_dptree.hierarchy.public_labels import check_keys
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes, located
from pandas_dptree.ingest.leaves import check_types, codes_of
from pandas_dptree.ingest.leaves import leaves_of as derived_leaves_of
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.output.datatree import check_groups, check_held
from pandas_dptree.output.datatree import plain as to_plain_array

__all__ = [
    "centres_of",
    "check_array",
    "check_domain",
    "check_lengths",
    "dims_of",
    "domain_of",
    "kept_coordinates",
    "leaves_of",
]

FloatArray = npt.NDArray[np.float64]


def labels_of(array: xr.DataArray, name: Hashable) -> tuple[Hashable, pd.Series]:
    """Return the dimension of a key, and its labels along it."""
    coordinate = array.coords[name]
    return coordinate.dims[0], pd.Series(coordinate.variable.to_index_variable().to_index())


def check_array(array: object) -> None:
    """Check that a single array was passed."""
    if not isinstance(array, xr.DataArray):
        raise ArgumentError(
            "array",
            f"must be an xarray.DataArray, not {kind_of_object(array)}.",
            hint="for several variables, call dataset.dp.tree_counts(by, ...), or "
            "dpt.arrays.several.tree_counts."
            if isinstance(array, xr.Dataset)
            else "for the records themselves, one row each, call dpt.tree_counts.",
        )


def dims_of(array: xr.DataArray, names: Sequence[Hashable], *, argument: str = "by") -> tuple[Hashable, ...]:
    """List the dimensions of names, after a check that each has one label per index of one dimension."""
    check_array(array)
    present = dict.fromkeys([*array.dims, *array.coords])
    absent = [name for name in names if name not in present]
    if absent:
        raise ColumnsError(
            argument, "has names that are neither dimensions nor coordinates of the array", columns=absent,
            hint=f"{did_you_mean(absent, present)}the array has {listed(present)}.",
        )  # fmt: skip
    check_lengths(array.sizes, argument="array")
    invalid = [
        name
        for name in names
        if array.coords[name].ndim != 1
        or isinstance(array.coords[name].variable.to_index_variable().to_index(), pd.MultiIndex)
    ]
    if invalid:
        raise ColumnsError(
            argument, "names coordinates that are not one-dimensional, or are a MultiIndex",
            columns=invalid,
            hint="flatten them with array.stack(...), give a single label a dimension with "
            "array.expand_dims(...), or name the levels of a MultiIndex instead.",
        )  # fmt: skip
    return tuple(dict.fromkeys(array.coords[name].dims[0] for name in names))


def check_lengths(sizes: Mapping[Hashable, int], *, argument: str) -> None:
    """Refuse dimensions of a length that dask does not know."""
    unknown = [dim for dim, size in sizes.items() if size != size]
    if unknown:
        raise ColumnsError(
            argument, "has dimensions of unknown length", columns=unknown,
            hint="compute the lengths before the array is made, with data.compute_chunk_sizes().",
        )  # fmt: skip


def domain_of(array: xr.DataArray, by: By) -> Domain:
    """Make the domain of an array from its coordinates, and from the levels derived from them."""
    each = by if isinstance(by, (list, tuple)) else [by]
    if any(isinstance(levels, DerivedLevels) and levels.implicit for levels in each):
        raise ArgumentError(
            "by",
            "holds a tree of prefixes, which is for records only.",
            hint="call dpt.tree_counts on the records, or name coordinates and other derived levels.",
        )
    names, derived = named(by)
    made = {name for levels in derived for name in levels.names}
    plain = [name for name in names if name not in made]
    check_groups(names)
    dims_of(array, [*plain, *(name for levels in derived for name in levels.columns)])
    derived = tuple(
        levels.over_array(
            dims_of(array, levels.columns), [array.coords[name].size for name in levels.columns]
        )
        for levels in derived
    )
    public = _observed(array, plain) if plain else None
    domain = combined(names, derived, public) if derived or public is None else public
    check_domain(array, domain)
    _check_not_empty(array, derived)
    return domain


def _check_not_empty(array: xr.DataArray, derived: Sequence[Derived]) -> None:
    """Refuse derived levels that contain no cell; coordinates are public, and all counts would be 0."""
    for levels in derived:
        leaf = _derived_leaves(array, dims_of(array, levels.columns), levels)
        if leaf.size and (leaf < 0).all():
            raise ColumnsError(
                "by", "has levels without a single cell, derived from", columns=levels.columns,
                hint="check their bounds, and the type of the coordinates: times of cftime, for example, "
                'can be converted with array.convert_calendar("standard", use_cftime=False).',
            )  # fmt: skip


def check_domain(array: xr.DataArray, domain: Domain) -> tuple[Hashable, ...]:
    """Check that an array has the keys of a domain, and return the dimensions to sum over."""
    check_groups(domain.by)
    dims = dims_of(array, domain.sources, argument="plan")
    types = {name: labels_of(array, name)[1].dtype for name in domain.sources}
    for levels in domain.derived:
        if levels.cells is not None:
            found = tuple(array.coords[name].size for name in levels.columns)
            if found != levels.cells:
                planned, present = (" x ".join(map(str, sizes)) for sizes in (levels.cells, found))
                raise ArgumentError(
                    "plan",
                    f"divides {planned} cells, but the array has {present}.",
                    hint="make a new plan, or give the quadtree `bounds`.",
                )
            types |= dict.fromkeys(levels.columns, np.dtype(np.int64))  # positions, whatever the labels
    check_types(domain, types, argument="array")
    kept = [name for name, each in array.coords.items() if set(each.dims).isdisjoint(dims)]
    check_held(kept, argument="array")
    clashing = [name for name in domain.by if name in kept or name in set(array.dims).difference(dims)]
    if clashing:
        raise ColumnsError(
            "array", "has other dimensions or coordinates with the names of derived keys", columns=clashing,
            hint="rename them with array.rename(...).",
        )  # fmt: skip
    return dims


def leaves_of(array: xr.DataArray, dims: Sequence[Hashable], domain: Domain) -> IntArray:
    """Find the leaf of each cell: an array of the shape of the dimensions, -1 if there is none.

    Raises an `ArgumentError` if no cell has a leaf; coordinates are public, and all counts would be 0.
    """
    leaf = _leaves_of(array, dims, domain)
    if leaf.size and (leaf < 0).all():
        raise ArgumentError(
            "array",
            "has no cell with a key of the plan's domain.",
            hint="compare its labels with plan.domain.keys(1): text must match exactly.",
        )
    return leaf


def _leaves_of(array: xr.DataArray, dims: Sequence[Hashable], domain: Domain) -> IntArray:
    codes = {}
    for levels in domain.derived:
        own = dims_of(array, levels.columns)
        leaf = _derived_leaves(array, own, levels)
        if sole(domain):
            return leaf
        for name, code in codes_of(levels, leaf).items():
            codes[name] = _along(array, dims, own, code)
    forms = dict(zip(domain.by, domain.forms, strict=True))
    for name in domain.plain:
        dim, labels = labels_of(array, name)
        codes[name] = _along(array, dims, (dim,), located(labels, forms[name]))
    shape = [array.sizes[dim] for dim in dims]
    return domain.find_leaves([codes[name].ravel() for name in domain.by]).reshape(shape)


def centres_of(array: xr.DataArray, domain: Domain) -> dict[Hashable, list[FloatArray]]:
    """Compute the centres of the nodes of each level, along each of their dimensions that has numbers.

    There are none if the nodes of a level lie along one dimension.
    """
    levels = sole(domain)
    if levels is None or levels.plane is None:
        return {}
    centres: dict[Hashable, list[FloatArray]] = {}
    for name, edges in levels.plane.edges.items():
        if levels.cells is None:
            centres[name] = [_midpoints(ends) for ends in edges]
            continue
        _, labels = labels_of(array, name)
        if name in array.coords and pd.api.types.is_any_real_numeric_dtype(labels.dtype):
            values = numbers(labels)
            centres[name] = [_means(values, starts.astype(np.int64)) for starts in edges]
    return centres


def _midpoints(ends: FloatArray) -> FloatArray:
    return ends[:-1] + np.diff(ends) / 2


def _means(values: FloatArray, starts: IntArray) -> FloatArray:
    """Compute the mean of each part; for parts of equal size exactly that of xarray's ``coarsen``."""
    sizes = np.diff(starts)
    if (sizes == sizes[0]).all():
        return np.asarray(values.reshape(len(sizes), -1).mean(axis=1))
    return np.asarray(np.add.reduceat(values, starts[:-1]) / sizes)


def _observed(array: xr.DataArray, plain: Sequence[Hashable]) -> Domain:
    """Make a domain from the labels of all cells."""
    dims = dims_of(array, plain)
    found = [labels_of(array, name) for name in plain]
    columns = [labels for _, labels in found]
    forms = [canonical_codes(labels)[1] for labels in columns]
    check_keys("by", plain, columns, forms)
    keys = {
        name: _each_cell(array, dims, dim, labels) for name, (dim, labels) in zip(plain, found, strict=True)
    }
    return Domain.observed(pd.DataFrame(keys), by=plain)


def _derived_leaves(array: xr.DataArray, own: Sequence[Hashable], levels: Derived) -> IntArray:
    """Find the leaf, in the domain of derived levels, of each cell of the dimensions that they read."""

    def column(name: Hashable) -> pd.Series:
        dim, labels = labels_of(array, name)
        if levels.cells is not None:
            labels = pd.Series(np.arange(len(labels)))
        return _each_cell(array, own, dim, labels)

    return derived_leaves_of(levels, column).reshape([array.sizes[dim] for dim in own])


def _each_cell(array: xr.DataArray, dims: Sequence[Hashable], dim: Hashable, labels: pd.Series) -> pd.Series:
    """Broadcast the labels along one dimension to all cells."""
    row = _along(array, dims, (dim,), np.arange(len(labels)))
    return labels.iloc[row.ravel()].reset_index(drop=True)


def _along(
    array: xr.DataArray, dims: Sequence[Hashable], own: Sequence[Hashable], values: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Broadcast values along some dimensions to all cells."""
    own = list(own)
    transposed = values.transpose([own.index(dim) for dim in dims if dim in own])
    places = transposed.reshape([array.sizes[dim] if dim in own else 1 for dim in dims])
    return np.broadcast_to(places, [array.sizes[dim] for dim in dims])


def kept_coordinates(array: xr.DataArray, others: Sequence[Hashable]) -> xr.Dataset:
    """Return the coordinates of the dimensions that are not summed over, as a file can hold them."""
    stacked = [dim for dim in others if isinstance(array.indexes.get(dim), pd.MultiIndex)]
    coordinates = array.reset_index(stacked).coords
    kept = {name: each for name, each in coordinates.items() if set(each.dims) <= set(others)}
    return xr.Dataset(coords={name: _plain_variable(each.variable) for name, each in kept.items()})


def _plain_variable(variable: xr.Variable) -> xr.Variable:
    """Convert one-dimensional text and categories to types that every file format can hold."""
    if variable.ndim != 1 or (isinstance(variable.dtype, np.dtype) and variable.dtype.kind not in "UT"):
        return variable
    labels = pd.Series(variable.to_index_variable().to_index())
    return xr.Variable(variable.dims, to_plain_array(labels), variable.attrs)
