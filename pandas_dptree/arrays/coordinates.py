"""What is public of an array: its dimensions and coordinates, as keys, leaves and labels of the answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import Domain, check_by
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes, located
from pandas_dptree.output.datatree import check_free, check_groups, plain, told_of

__all__ = ["dims_of", "domain_of", "kept_coordinates", "leaves_of"]


def labels_of(array: xr.DataArray, name: Hashable) -> tuple[Hashable, pd.Series]:
    """Find a key of the array: its dimension, and its labels along it."""
    coordinate = array[name]
    return coordinate.dims[0], pd.Series(coordinate.variable.to_index_variable().to_index())


def dims_of(array: xr.DataArray, by: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """List the dimensions that the keys are on, after a check that they are keys of the array."""
    if not isinstance(array, xr.DataArray):
        raise ArgumentError(
            "array",
            f"must be an xarray.DataArray, not {type(array).__name__}.",
            hint="for the records themselves, one row each, call dpt.tree_counts.",
        )
    absent = [name for name in by if name not in array.dims and name not in array.coords]
    if absent:
        raise ColumnsError(
            "by", "names neither dimensions nor coordinates of the array", columns=absent,
            hint=f"it has {list(dict.fromkeys([*array.dims, *array.coords]))!r}.",
        )  # fmt: skip
    unfit = [
        name
        for name in by
        if array[name].ndim != 1
        or isinstance(array[name].variable.to_index_variable().to_index(), pd.MultiIndex)
    ]
    if unfit:
        raise ColumnsError(
            "by", "names coordinates that do not have one label for each index of one dimension",
            columns=unfit,
            hint="flatten them with array.stack(...), give a single label a dimension with "
            "array.expand_dims(...), and name the levels of a MultiIndex.",
        )  # fmt: skip
    return tuple(dict.fromkeys(array[name].dims[0] for name in by))


def _along(
    array: xr.DataArray, dims: Sequence[Hashable], dim: Hashable, values: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Hand what belongs to an index of one dimension to all cells there."""
    shape = tuple(array.sizes[each] for each in dims)
    return np.broadcast_to(values.reshape([-1 if each == dim else 1 for each in dims]), shape)


def domain_of(array: xr.DataArray, by: Sequence[Hashable]) -> Domain:
    """Make the domain of an array from its coordinates."""
    names = check_by(by)
    dims = dims_of(array, names)
    check_groups(names)
    check_free(array, told_of(None))
    found = [labels_of(array, name) for name in names]
    odd = [
        name for name, (_, labels) in zip(names, found, strict=True) if UNKNOWN in canonical_codes(labels)[1]
    ]
    if odd:
        raise ColumnsError(
            "by",
            "names coordinates with labels of a type that cannot be a key",
            columns=odd,
            hint="turn them into strings, numbers or dates.",
        )
    keys = {
        name: labels.iloc[_along(array, dims, dim, np.arange(len(labels))).ravel()].reset_index(drop=True)
        for name, (dim, labels) in zip(names, found, strict=True)
    }
    return Domain.observed(pd.DataFrame(keys), by=names)


def leaves_of(array: xr.DataArray, dims: Sequence[Hashable], domain: Domain) -> IntArray:
    """Find the leaf of each cell."""
    codes = []
    for name, forms in zip(domain.by, domain.forms, strict=True):
        dim, labels = labels_of(array, name)
        codes.append(_along(array, dims, dim, located(labels, forms)))
    return domain.find_leaves([code.ravel() for code in codes]).reshape(codes[0].shape)


def kept_coordinates(array: xr.DataArray, others: Sequence[Hashable]) -> xr.Dataset:
    """Keep the coordinates of the dimensions that are not added up, as a file can hold them."""
    stacked = [dim for dim in others if isinstance(array.indexes.get(dim), pd.MultiIndex)]
    coordinates = array.reset_index(stacked).coords
    kept = {name: each for name, each in coordinates.items() if set(each.dims) <= set(others)}
    return xr.Dataset(coords={name: _plain_variable(each.variable) for name, each in kept.items()})


def _plain_variable(variable: xr.Variable) -> xr.Variable:
    """Hold text and categories along one dimension as every file format can."""
    if variable.ndim != 1 or (isinstance(variable.dtype, np.dtype) and variable.dtype.kind not in "UT"):
        return variable
    labels = pd.Series(variable.to_index_variable().to_index())
    return xr.Variable(variable.dims, plain(labels), variable.attrs)
