"""The ``.dp`` accessors of xarray, without state: each method is one call."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Unpack

import xarray as xr

from pandas_dptree import arrays
from pandas_dptree.arrays import several
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.options import (
    CELL_DISTRIBUTION,
    CELLS,
    RUNNING,
    NoisyOptions,
    Options,
    Running,
    takes,
)

__all__ = ["DataArrayAccessor", "DatasetAccessor"]


class DataArrayAccessor:
    """Differentially private releases of an array of counts or of values."""

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    @takes(*CELLS, "known", *RUNNING)
    def tree_counts(self, by: By, **options: Unpack[Options]) -> xr.DataTree:
        """Count the records of every node of a hierarchy: see `pandas_dptree.arrays.tree_counts`."""
        return arrays.tree_counts(self._array, by, **options)

    @takes(*CELLS, *RUNNING)
    def tree_sums(
        self, by: By, *, bounds: Any, granularity: Any = None, **options: Unpack[Options]
    ) -> xr.DataTree:
        """Add up the values of every node of a hierarchy: see `pandas_dptree.arrays.tree_sums`."""
        return arrays.tree_sums(self._array, by, bounds=bounds, granularity=granularity, **options)

    @takes(*CELLS, "known", "target")
    def plan(
        self, by: By, *, bounds: Any = None, granularity: Any = None, **options: Unpack[NoisyOptions]
    ) -> AdditivePlan:
        """Plan a release of this array: see `pandas_dptree.arrays.plan`."""
        return arrays.plan(self._array, by, bounds=bounds, granularity=granularity, **options)

    @takes(*RUNNING)
    def release(self, plan: AdditivePlan, **options: Unpack[Running]) -> xr.DataTree:
        """Spend the budget of a plan on this array: see `pandas_dptree.arrays.release`."""
        return arrays.release(plan, self._array, **options)

    @takes(*CELL_DISTRIBUTION)
    def plan_distribution(
        self,
        dim: Hashable,
        *,
        edges: Sequence[Any] | None = None,
        **options: Unpack[NoisyOptions],
    ) -> DistributionPlan:
        """Plan a release of a distribution: see `pandas_dptree.arrays.plan_distribution`."""
        return arrays.plan_distribution(self._array, dim, edges=edges, **options)

    @takes("confidence", *CELL_DISTRIBUTION, *RUNNING)
    def cdf(
        self,
        dim: Hashable,
        *,
        edges: Sequence[Any] | None = None,
        plan: DistributionPlan | None = None,
        **options: Unpack[Options],
    ) -> xr.Dataset:
        """Estimate the cumulative distribution along a dimension: see `pandas_dptree.arrays.cdf`."""
        return arrays.cdf(self._array, dim, edges=edges, plan=plan, **options)

    @takes("confidence", *CELL_DISTRIBUTION, *RUNNING, confidence=0.95)
    def quantiles(
        self,
        dim: Hashable,
        q: Any,
        *,
        edges: Sequence[Any] | None = None,
        plan: DistributionPlan | None = None,
        **options: Unpack[Options],
    ) -> xr.Dataset:
        """Estimate quantiles along a dimension: see `pandas_dptree.arrays.quantiles`."""
        return arrays.quantiles(self._array, dim, q, edges=edges, plan=plan, **options)


class DatasetAccessor:
    """Differentially private releases of several variables, which share one privacy loss."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    @takes(*CELLS, *RUNNING)
    def tree_counts(
        self,
        by: By,
        *,
        variables: Sequence[Hashable] | None = None,
        **options: Unpack[Options],
    ) -> xr.DataTree:
        """Count the records of several variables: see `pandas_dptree.arrays.several.tree_counts`."""
        return several.tree_counts(self._dataset, by, variables=variables, **options)

    @takes(*CELLS, *RUNNING)
    def tree_sums(
        self,
        by: By,
        *,
        bounds: Any,
        granularity: Any = None,
        variables: Sequence[Hashable] | None = None,
        **options: Unpack[Options],
    ) -> xr.DataTree:
        """Add up the values of several variables: see `pandas_dptree.arrays.several.tree_sums`."""
        return several.tree_sums(
            self._dataset,
            by,
            bounds=bounds,
            granularity=granularity,
            variables=variables,
            **options,
        )

    @takes(*CELLS)
    def plan(
        self,
        by: By,
        *,
        variables: Sequence[Hashable] | None = None,
        bounds: Any = None,
        granularity: Any = None,
        **options: Unpack[NoisyOptions],
    ) -> JointPlan:
        """Plan a release of several variables: see `pandas_dptree.arrays.several.plan`."""
        return several.plan(
            self._dataset,
            by,
            variables=variables,
            bounds=bounds,
            granularity=granularity,
            **options,
        )

    @takes(*RUNNING)
    def release(self, plan: JointPlan, **options: Unpack[Running]) -> xr.DataTree:
        """Spend the budget of a plan on this dataset: see `pandas_dptree.arrays.several.release`."""
        return several.release(plan, self._dataset, **options)
