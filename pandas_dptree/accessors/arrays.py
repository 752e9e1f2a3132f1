"""The ``.dp`` accessors of xarray, without state: each method is one call."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Unpack

import xarray as xr

from pandas_dptree import arrays
from pandas_dptree.accessors.methods import method
from pandas_dptree.arrays import several
from pandas_dptree.output.crossed_datatree import select_level_of, select_margin_of, views_of
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.crossed import CrossedPlan
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.options import RUNNING, Running, takes

__all__ = ["DataArrayAccessor", "DataTreeAccessor", "DatasetAccessor"]


class DataArrayAccessor:
    """Differentially private releases of an array of counts or of values."""

    def __init__(self, array: xr.DataArray) -> None:
        self._data = array

    tree_counts = method(arrays.tree_counts)
    tree_sums = method(arrays.tree_sums)
    cdf = method(arrays.cdf)
    quantiles = method(arrays.quantiles)
    plan = method(arrays.plan)
    plan_distribution = method(arrays.plan_distribution)

    @takes(*RUNNING)
    def release(self, plan: AdditivePlan | CrossedPlan, **options: Unpack[Running]) -> xr.DataTree:
        """Spend the budget of a plan on this array: see `pandas_dptree.arrays.release`."""
        return arrays.release(plan, self._data, **options)


class DatasetAccessor:
    """Differentially private releases of several variables, which share one privacy loss."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._data = dataset

    tree_counts = method(several.tree_counts)
    tree_sums = method(several.tree_sums)
    plan = method(several.plan)

    @takes(*RUNNING)
    def release(self, plan: JointPlan, **options: Unpack[Running]) -> xr.DataTree:
        """Spend the budget of a plan on this dataset: see `pandas_dptree.arrays.several.release`."""
        return several.release(plan, self._data, **options)


class DataTreeAccessor:
    """Views of a released tree of datasets."""

    def __init__(self, tree: xr.DataTree) -> None:
        self._data = tree

    def __dir__(self) -> list[str]:
        """List what a released tree has, for completion: margins or levels."""
        return views_of(self._data)

    def level(self, name: Hashable) -> xr.Dataset:
        """Select one level of a released tree: that of ``"total"`` or of a key, as in ``tree["county"]``.

        Raises
        ------
        ArgumentError
            If the tree is not a released one, is that of crossed hierarchies, or has no such level.
        """
        return select_level_of(self._data, name)

    def margin(self, *levels: Any, **of_axes: Hashable) -> xr.Dataset:
        """Select one margin of a released tree of crossed hierarchies.

        Parameters
        ----------
        *levels
            Names of levels of different axes, as in ``margin("county", "sex")``, or one mapping or list of
            them: ``{"place": "county", "sex": "sex"}``. Axes that are left out have the level ``"total"``;
            without any level, this is the grand total.
        **of_axes
            The same by keywords: ``margin(place="county", sex="sex")``.

        Returns
        -------
        xarray.Dataset
            The same as ``tree["county,sex"].to_dataset()``: values and errors along a dimension for each
            axis, called like the level, with the keys of the level and those above as coordinates.

        Raises
        ------
        ArgumentError
            If the tree is not one of crossed hierarchies, or has no such axis, level or margin.
        """
        return select_margin_of(self._data, *levels, **of_axes)
