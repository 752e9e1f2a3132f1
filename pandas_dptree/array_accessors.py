"""``.dp`` on xarray DataArrays: stateless, one line a method."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import xarray as xr

from pandas_dptree import arrays
from pandas_dptree.plan import Plan
from pandas_dptree.signatures import with_options_of

__all__ = ["DataArrayAccessor"]


@xr.register_dataarray_accessor("dp")  # type: ignore[no-untyped-call]
class DataArrayAccessor:
    """Differentially private verbs on an array of counts, or of values."""

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    @with_options_of(arrays.tree_counts)
    def tree_counts(self, by: Sequence[Hashable], **options: Any) -> xr.DataTree:
        """Count the records of every node of a hierarchy: see `pandas_dptree.arrays.tree_counts`."""
        return arrays.tree_counts(self._array, by, **options)

    @with_options_of(arrays.tree_sums)
    def tree_sums(self, by: Sequence[Hashable], **options: Any) -> xr.DataTree:
        """Add up values over every node of a hierarchy: see `pandas_dptree.arrays.tree_sums`."""
        return arrays.tree_sums(self._array, by, **options)

    @with_options_of(arrays.plan)
    def plan(self, by: Sequence[Hashable], **options: Any) -> Plan:
        """Describe a release of this array before it happens: see `pandas_dptree.arrays.plan`."""
        return arrays.plan(self._array, by, **options)

    @with_options_of(arrays.release)
    def release(self, plan: Plan, **options: Any) -> xr.DataTree:
        """Spend the budget of a plan on this array: see `pandas_dptree.arrays.release`."""
        return arrays.release(plan, self._array, **options)

    @with_options_of(arrays.cdf)
    def cdf(self, dim: Hashable, **options: Any) -> xr.Dataset:
        """Tell what part of the records lies below the end of each bin: see `pandas_dptree.arrays.cdf`."""
        return arrays.cdf(self._array, dim, **options)

    @with_options_of(arrays.quantiles)
    def quantiles(self, dim: Hashable, q: Any, **options: Any) -> xr.Dataset:
        """Tell below which value a part of the records lies: see `pandas_dptree.arrays.quantiles`."""
        return arrays.quantiles(self._array, dim, q, **options)
