"""The ``.dp`` accessors of xarray, without state: each method is one call."""

from __future__ import annotations

from typing import Unpack

import xarray as xr

from pandas_dptree import arrays
from pandas_dptree.accessors.methods import method
from pandas_dptree.arrays import several
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.options import RUNNING, Running, takes

__all__ = ["DataArrayAccessor", "DatasetAccessor"]


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
    def release(self, plan: AdditivePlan, **options: Unpack[Running]) -> xr.DataTree:
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
