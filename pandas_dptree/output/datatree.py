"""Released trees of xarray datasets, one dataset per level."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.domain import Domain, level_names
from pandas_dptree.hierarchy.levels.base import Plane
from pandas_dptree.hierarchy.levels.combine import sole
from pandas_dptree.output.frames import COMPANIONS, prefix_of

__all__ = [
    "Attributes", "Centres", "Layout", "check_free", "check_groups", "check_held", "companions_of", "is_hash",
    "layout_of", "plain", "release_tree", "unmasked",
]  # fmt: skip

Attributes = Mapping[Hashable, Mapping[Any, Any]]
Centres = Mapping[Hashable, Sequence[npt.NDArray[np.float64]]]


def check_groups(by: Sequence[Hashable]) -> None:
    """Check that each level's name can name a group."""
    invalid = [
        name for name in by if not isinstance(name, str) or not name or "/" in name or name in (".", "..")
    ]
    if invalid:
        raise ColumnsError(
            "by", "has names that cannot be groups of the result", columns=invalid,
            hint="rename the coordinates: each level becomes a group, named by a string without slashes.",
        )  # fmt: skip


def check_free(array: xr.DataArray, taken: Collection[Hashable]) -> None:
    """Check that no dimension or coordinate has the name of a variable of the result."""
    clashing = [name for name in dict.fromkeys([*array.dims, *array.coords]) if name in taken]
    if clashing:
        raise ColumnsError(
            "array", "has dimensions or coordinates with names of variables of the result", columns=clashing,
            hint="rename them with array.rename(...).",
        )  # fmt: skip


def check_held(names: Iterable[Hashable], *, argument: str) -> None:
    """Check that no name has a slash, so that a tree of datasets can hold it."""
    slashed = [name for name in names if isinstance(name, str) and "/" in name]
    if slashed:
        raise ColumnsError(
            argument, "has names with slashes, which separate the groups of the result", columns=slashed,
            hint="rename them with rename(...).",
        )  # fmt: skip


def is_hash(name: Hashable) -> bool:
    """Check whether dask made a name: it ends in a hash of the cells, and is as secret as they are.

    If a dask array has no name, xarray takes the name of its graph.
    """
    return isinstance(name, str) and re.search("-[0-9a-f]{32}$", name) is not None


def companions_of(column: Hashable | None) -> set[Hashable]:
    """Return the names of the variables about a column, or about the records."""
    return {"count" if column is None else column, *(f"{prefix_of(column)}{what}" for what in COMPANIONS)}


def release_tree(
    domain: Domain,
    values: Mapping[Hashable, Sequence[npt.NDArray[Any]]],
    public: Mapping[Hashable, Sequence[npt.NDArray[Any]]],
    dims: Sequence[Hashable],
    coordinates: xr.Dataset,
    attrs: Mapping[str, Any],
    described: Attributes,
    centres: Centres,
) -> xr.DataTree:
    """Make a tree of one dataset per level, whose shape depends on the domain and the coordinates alone.

    The nodes of a level lie along a dimension of its name; those of a quadtree that is the whole domain along
    y and x, at the `centres`. `values` are those of each slice, `public` ones the same in all; `dims` come
    before the nodes.
    """
    groups = {}
    for level, name in enumerate(level_names(domain)):
        layout = layout_of(domain, level, centres, described)
        group = coordinates.assign(
            {key: ((*dims, *layout.dims), layout.pick(levels[level])) for key, levels in values.items()}
            | {key: (layout.dims, layout.pick(levels[level])) for key, levels in public.items()}
        )
        groups[f"/{name}"] = layout.labelled(group)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs["dp"] = json.dumps(attrs)
    return tree


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of the nodes of one level.

    `pick` arranges values of shape (..., level_sizes[l]) along `dims`, with the labels `coordinates`.
    `indexed` names the coordinates that get an index besides those named like a dimension.
    """

    dims: tuple[Hashable, ...]
    pick: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
    coordinates: Mapping[Hashable, Any] = field(default_factory=dict)
    indexed: Sequence[str] = ()

    def labelled(self, group: xr.Dataset) -> xr.Dataset:
        """Give a dataset these coordinates."""
        group = group.assign_coords(self.coordinates)
        for key in self.indexed:
            group = group.set_xindex(key)
        return group


def layout_of(domain: Domain, level: int, centres: Centres, described: Attributes) -> Layout:
    """Lay out the nodes of a level: along a dimension of its name, or in the plane of a quadtree."""
    only = sole(domain)
    if not level:
        return _root()
    if only is not None and only.plane is not None:
        return _grid(only.plane, level, centres, described)
    return _line(domain, level, described)


def _root() -> Layout:
    """Lay out the total alone."""
    return Layout((), lambda nodes: nodes[..., 0])


def _line(domain: Domain, level: int, described: Attributes) -> Layout:
    """Lay out nodes along one dimension, with their keys."""
    listed, name = domain.tree.listed(level), domain.by[level - 1]
    keys = domain.keys(level)
    coordinates: dict[Hashable, Any] = {
        key: ((name,), plain(keys[key]), described.get(key)) for key in keys.columns
    }
    return Layout((name,), lambda nodes: nodes[..., listed], coordinates, list(keys.columns[:-1]))


def _grid(plane: Plane, level: int, centres: Centres, described: Attributes) -> Layout:
    """Lay out nodes in the plane, with their centres."""
    coordinates = {name: ((name,), along[level - 1], described.get(name)) for name, along in centres.items()}
    return Layout(tuple(plane.edges), partial(plane.lay, level), coordinates)


def unmasked(nodes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert masked integers to floats, nan where they were not measured."""
    if not isinstance(nodes, np.ma.MaskedArray):
        return nodes
    return np.where(np.ma.getmaskarray(nodes), np.nan, nodes.data)


def plain(labels: pd.Series) -> npt.NDArray[Any]:
    """Convert labels to an array for any file format: categories as values, text as objects."""
    if isinstance(labels.dtype, pd.CategoricalDtype):
        labels = labels.astype(labels.cat.categories.dtype)
    return labels.to_numpy(dtype=object) if isinstance(labels.dtype, pd.StringDtype) else labels.to_numpy()
