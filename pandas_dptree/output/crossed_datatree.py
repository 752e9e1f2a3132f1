"""Released trees of xarray datasets for crossed hierarchies: one dataset per margin, with real dimensions.

A group is called like the levels of its margin, with commas, as in ``tree["county,sex"]``: such names are
typed easily and read as a list, and files of groups can hold them. The grand total is ``tree["total"]``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from pandas_dptree.errors import ArgumentError, ColumnsError, did_you_mean, is_name, listed, quote
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.margin_names import CROSS, Keys, example, margin_name, margin_of_call
from pandas_dptree.hierarchy.product_tree import Margin
from pandas_dptree.output.datatree import Attributes, Centres, Layout, check_groups, layout_of, unmasked

__all__ = ["check_crossed_groups", "crossed_tree", "select_level_of", "select_margin_of", "views_of"]


def check_crossed_groups(domain: CrossedDomain) -> None:
    """Check that the names of levels can be parts of the names of groups."""
    check_groups(domain.by)
    if commas := [name for name in domain.by if "," in str(name)]:
        raise ColumnsError(
            "by", "has names with commas, which stand between the levels of a margin", columns=commas,
            hint="rename the coordinates.",
        )  # fmt: skip


def crossed_tree(
    domain: CrossedDomain,
    values: Mapping[Hashable, Sequence[npt.NDArray[Any] | None]],
    coordinates: xr.Dataset,
    attrs: Mapping[str, Any],
    described: Attributes,
    centres: Sequence[Centres],
) -> xr.DataTree:
    """Make a tree of one dataset per shown margin, whose shape depends on the domain alone.

    `values` are those of each margin of the lattice, one per cell or one for all. The nodes of each axis lie
    along a dimension of its own, called like the level; an axis that is a quadtree has two, at its `centres`.
    `coordinates` are those of the whole array.
    """
    shape, groups = domain.tree, {}
    for margin in shape.shown:
        axes = zip(domain.axes.values(), margin, centres, strict=True)
        layouts = [layout_of(axis, level, own, described) for axis, level, own in axes]
        dims = [dim for layout in layouts for dim in layout.dims]
        cells, level = shape.cell_shape(margin), shape.level_of(margin)
        group = coordinates.assign(
            {name: (dims, _laid_out(margins[level], cells, layouts)) for name, margins in values.items()}
        )
        for layout in layouts:
            group = layout.labelled(group)
        groups[f"/{_group(domain.keys, margin)}"] = group
    tree = xr.DataTree.from_dict(groups)
    tree.attrs["dp"] = json.dumps(attrs)
    return tree


def _laid_out(
    values: npt.NDArray[Any] | None, cells: Sequence[int], layouts: Sequence[Layout]
) -> npt.NDArray[Any]:
    """Arrange the values of a margin along the dimensions of each axis; one for all cells stays one."""
    table = np.broadcast_to(unmasked(np.asanyarray(values)), math.prod(cells)).reshape(cells)
    for layout in layouts:  # the next axis is always the first one
        table = layout.pick(np.moveaxis(table, 0, -1))
    return table


def _group(axes: Keys, margin: Margin) -> str:
    """Return the name of the group of a margin."""
    return margin_name(axes, margin).replace(f" {CROSS} ", ",")


def select_margin_of(released: xr.DataTree, /, *levels: Any, **of_axes: Hashable) -> xr.Dataset:
    """Return the dataset of a margin of a released tree."""
    axes = _axes_of(released)
    if axes is None:
        raise ArgumentError(
            "released",
            "has no margins: it was not released for crossed hierarchies.",
            hint='select a level by its name, with tree.dp.level("county").',
        )
    group = _group(axes, margin_of_call(axes, levels, of_axes))
    return _dataset(released, group, "levels")


def select_level_of(released: xr.DataTree, name: Hashable) -> xr.Dataset:
    """Return the dataset of a level of a released tree."""
    axes = _axes_of(released)
    if axes is not None:
        raise ArgumentError(
            "released",
            f"was released for crossed hierarchies, with the axes {listed(axes)}.",
            hint=f"select a margin, with the level of each axis: tree.dp.margin({example(axes)}).",
        )
    return _dataset(released, name, "name")


def views_of(released: xr.DataTree) -> list[str]:
    """List by what parts of a tree can be selected; none if it is not a released one."""
    try:
        return ["level"] if _axes_of(released) is None else ["margin"]
    except ArgumentError:
        return []


def _dataset(released: xr.DataTree, group: Hashable, argument: str) -> xr.Dataset:
    """Return the dataset of a group."""
    if not is_name(group) or group not in released.children:
        raise ArgumentError(
            argument,
            f"is not in the tree: {quote(group)}.",
            hint=f"{did_you_mean([group], released.children)}it has {listed(released.children)}.",
        )
    return released.children[str(group)].to_dataset()


def _axes_of(released: xr.DataTree) -> Keys | None:
    """Return the keys of each axis, as the tree states them; None if it was released for one hierarchy."""
    try:
        provenance = json.loads(released.attrs.get("dp", ""))
    except (TypeError, ValueError):
        provenance = None
    if not isinstance(provenance, dict):
        raise ArgumentError(
            "released",
            'is not a released tree: it lacks attrs["dp"].',
            hint="call it on the tree that tree_counts returned for an array, with its attrs.",
        )
    axes = provenance.get("axes")
    return axes if isinstance(axes, dict) else None
