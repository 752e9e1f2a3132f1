"""The ``.dp`` accessors of xarray, without state: each method is one call."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Unpack

import xarray as xr

from pandas_dptree import arrays
from pandas_dptree.arrays import several
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.options import CellDistributionOptions, CellOptions, Running
from pandas_dptree.signatures import public
from pandas_dptree.verbs.options import (
    PlanArray,
    ReleaseArrayCounts,
    ReleaseArraySums,
    ReleaseCells,
    ReleaseSeveral,
)

__all__ = ["DataArrayAccessor", "DatasetAccessor"]


@xr.register_dataarray_accessor("dp")  # type: ignore[no-untyped-call]
class DataArrayAccessor:
    """Differentially private releases of an array of counts or of values."""

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    @public
    def tree_counts(self, by: By, **options: Unpack[ReleaseArrayCounts]) -> xr.DataTree:
        """Count the records of every node of a hierarchy: see `pandas_dptree.arrays.tree_counts`."""
        return arrays.tree_counts(self._array, by, **options)

    @public
    def tree_sums(
        self, by: By, *, bounds: Any, granularity: Any = None, **options: Unpack[ReleaseArraySums]
    ) -> xr.DataTree:
        """Add up the values of every node of a hierarchy: see `pandas_dptree.arrays.tree_sums`."""
        return arrays.tree_sums(self._array, by, bounds=bounds, granularity=granularity, **options)

    @public
    def plan(
        self, by: By, *, bounds: Any = None, granularity: Any = None, **options: Unpack[PlanArray]
    ) -> AdditivePlan:
        """Plan a release of this array: see `pandas_dptree.arrays.plan`."""
        return arrays.plan(self._array, by, bounds=bounds, granularity=granularity, **options)

    @public
    def release(self, plan: AdditivePlan, **options: Unpack[Running]) -> xr.DataTree:
        """Spend the budget of a plan on this array: see `pandas_dptree.arrays.release`."""
        return arrays.release(plan, self._array, **options)

    @public
    def plan_distribution(
        self,
        dim: Hashable,
        *,
        edges: Sequence[Any] | None = None,
        **options: Unpack[CellDistributionOptions],
    ) -> DistributionPlan:
        """Plan a release of a distribution: see `pandas_dptree.arrays.plan_distribution`."""
        return arrays.plan_distribution(self._array, dim, edges=edges, **options)

    @public
    def cdf(
        self,
        dim: Hashable,
        *,
        edges: Sequence[Any] | None = None,
        plan: DistributionPlan | None = None,
        confidence: float | None = None,
        **options: Unpack[ReleaseCells],
    ) -> xr.Dataset:
        """Estimate the cumulative distribution along a dimension: see `pandas_dptree.arrays.cdf`."""
        return arrays.cdf(self._array, dim, edges=edges, plan=plan, confidence=confidence, **options)

    @public
    def quantiles(
        self,
        dim: Hashable,
        q: Any,
        *,
        edges: Sequence[Any] | None = None,
        plan: DistributionPlan | None = None,
        confidence: float = 0.95,
        **options: Unpack[ReleaseCells],
    ) -> xr.Dataset:
        """Estimate quantiles along a dimension: see `pandas_dptree.arrays.quantiles`."""
        return arrays.quantiles(self._array, dim, q, edges=edges, plan=plan, confidence=confidence, **options)


@xr.register_dataset_accessor("dp")  # type: ignore[no-untyped-call]
class DatasetAccessor:
    """Differentially private releases of several variables, which share one privacy loss."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    @public
    def tree_counts(
        self,
        by: By,
        *,
        variables: Sequence[Hashable] | None = None,
        max_contributions: int | Mapping[Hashable, int] | None = None,
        **options: Unpack[ReleaseSeveral],
    ) -> xr.DataTree:
        """Count the records of several variables: see `pandas_dptree.arrays.several.tree_counts`."""
        return several.tree_counts(
            self._dataset, by, variables=variables, max_contributions=max_contributions, **options
        )

    @public
    def tree_sums(
        self,
        by: By,
        *,
        bounds: Any,
        granularity: Any = None,
        variables: Sequence[Hashable] | None = None,
        max_contributions: int | Mapping[Hashable, int] | None = None,
        **options: Unpack[ReleaseSeveral],
    ) -> xr.DataTree:
        """Add up the values of several variables: see `pandas_dptree.arrays.several.tree_sums`."""
        return several.tree_sums(
            self._dataset,
            by,
            bounds=bounds,
            granularity=granularity,
            variables=variables,
            max_contributions=max_contributions,
            **options,
        )

    @public
    def plan(
        self,
        by: By,
        *,
        variables: Sequence[Hashable] | None = None,
        bounds: Any = None,
        granularity: Any = None,
        max_contributions: int | Mapping[Hashable, int] | None = None,
        **options: Unpack[CellOptions],
    ) -> JointPlan:
        """Plan a release of several variables: see `pandas_dptree.arrays.several.plan`."""
        return several.plan(
            self._dataset,
            by,
            variables=variables,
            bounds=bounds,
            granularity=granularity,
            max_contributions=max_contributions,
            **options,
        )

    @public
    def release(self, plan: JointPlan, **options: Unpack[Running]) -> xr.DataTree:
        """Spend the budget of a plan on this dataset: see `pandas_dptree.arrays.several.release`."""
        return several.release(plan, self._dataset, **options)
