"""Distributions along a dimension of bins."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pandas as pd
import xarray as xr

from pandas_dptree.arrays.coordinates import dims_of, kept_coordinates
from pandas_dptree.errors import ArgumentError, ColumnsError, did_you_mean, is_name, listed, quote
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.arrays import bin_counts
from pandas_dptree.ingest.cells import check_cells, sum_cells
from pandas_dptree.ingest.frames import warn_if_released
from pandas_dptree.ingest.grid import PointCounts, points_of_counts
from pandas_dptree.output.datatree import check_free
from pandas_dptree.output.distribution import Distribution, checked_confidence, levels_of_quantiles
from pandas_dptree.output.empty_tables import usual_causes
from pandas_dptree.output.table_digest import state_digest
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.distribution_search import find_distribution_plan
from pandas_dptree.plans.options import (
    CELL_DISTRIBUTION,
    RUNNING,
    NoisyOptions,
    Options,
    taken_from,
    takes,
)
from pandas_dptree.plans.quantile_search import find_middles_plan
from pandas_dptree.plans.running import Resources, carry_out
from pandas_dptree.privacy.quantity import COUNT

__all__ = ["cdf", "plan_distribution", "quantiles"]


@takes(*CELL_DISTRIBUTION)
def plan_distribution(
    array: xr.DataArray,
    dim: Hashable,
    *,
    edges: Sequence[Any] | None = None,
    **options: Unpack[NoisyOptions],
) -> DistributionPlan:
    """Plan the release of a distribution along a dimension. Spends nothing, and reads no cell.

    **Privacy**: a function of public arguments alone. The noise is that of one distribution, whatever the
    other dimensions of an array: see `DistributionPlan`.

    Parameters
    ----------
    array : xarray.DataArray
        Only the size and the labels of the dimension are read.
    dim : hashable
        The dimension of the bins, which are adjacent and ascending.
    edges : sequence, optional
        The ends of the bins: one value more than there are bins. By default the ends of the intervals that
        are their labels.
    **options

    Returns
    -------
    DistributionPlan
        For one distribution. `cdf` and `quantiles` release any number of parallel distributions with it, of
        this array or of others with the same bins; its own `release` takes the counts of one.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `ColumnsError` is a special case.

    Examples
    --------
    >>> ages = xr.DataArray(np.full((2, 4), 100), dims=["state", "age"])
    >>> plan = plan_distribution(ages, "age", edges=[0, 18, 40, 65, 120], epsilon=1.0)
    >>> dict(cdf(ages, "age", plan=plan).sizes), dict(quantiles(ages, "age", 0.5, plan=plan).sizes)
    ({'state': 2, 'age': 4}, {'state': 2, 'q': 1})
    """
    bins = _bins(array, dim, edges)
    found = find_distribution_plan(dim, bins=bins, **options)
    return replace(found, source="observed") if edges is None else found


@takes("confidence", *CELL_DISTRIBUTION, *RUNNING)
def cdf(
    array: xr.DataArray,
    dim: Hashable,
    *,
    edges: Sequence[Any] | None = None,
    plan: DistributionPlan | None = None,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Release how many records, and what share of them, lie below the end of each bin along a dimension.

    **Privacy**: as for `tree_counts`. Edges and coordinates are public, and the stated loss covers all
    distributions together.

    Parameters
    ----------
    array : xarray.DataArray
        Counts, each record in exactly one cell. Bad counts never raise.
    dim, edges
        As for `plan_distribution`, which raises the same errors.
    plan : DistributionPlan, optional
        From `plan_distribution`, or any other without groups and without a privacy unit, for the same
        dimension and bins. It replaces the edges and the options of a plan, and saves most of the time.
    confidence : float, optional
        For example 0.95: adds ``lower`` and ``upper``, which contain all true counts of a distribution
        simultaneously with this probability. At most 0.999.
    **options

    Returns
    -------
    xarray.Dataset
        ``count``, whole and non-decreasing; ``cdf``, its share of the total (missing for a total of 0); and
        ``std_error`` of the counts before this correction. The coordinate of the dimension has the ends of
        the bins. All other dimensions are kept, with a distribution for each of their indices.

    Examples
    --------
    >>> ages = xr.DataArray(np.full((2, 4), 100), dims=["state", "age"])
    >>> table = cdf(ages, "age", edges=[0, 18, 40, 65, 120], epsilon=1.0)
    >>> dict(table.sizes), table["age"].values.tolist()
    ({'state': 2, 'age': 4}, [18.0, 40.0, 65.0, 120.0])
    """
    dims_of(array, ())  # checks that it is an array
    check_free(array, {"count", "cdf", "std_error", "lower", "upper"})
    confidence = options.pop("confidence", None)
    if confidence is not None:
        checked_confidence(confidence)
    found, others = _released(array, dim, plan, edges, options)
    ends = found.bins.values_at(np.arange(1, found.bins.n_bins + 1))
    table = _reshaped(array, others, found.cdf(confidence=confidence), dim, ends)
    return state_digest(table.assign(std_error=(dim, found.std_errors[0])))


@takes("confidence", *CELL_DISTRIBUTION, *RUNNING)
def quantiles(
    array: xr.DataArray,
    dim: Hashable,
    q: Any,
    *,
    edges: Sequence[Any] | None = None,
    plan: DistributionPlan | None = None,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Release quantiles of the records along a dimension of bins.

    Parameters
    ----------
    array, dim, edges, plan
        As for `cdf`, which raises the same errors.
    q : float or sequence of float
        The levels, from 0 to 1; 0.5 for the median.
    **options

    Returns
    -------
    xarray.Dataset
        ``value``, and with a `confidence` ``lower`` and ``upper``, as from `Distribution.quantiles`, along a
        dimension ``q`` and all dimensions but that of the bins.

    Notes
    -----
    Quantiles are read from trees over the bins. ``mechanism="exponential"`` draws a single one from the
    middles of the bins instead, which is more accurate for a quantile that is neither small nor large, where
    bins are as fine as the answer must be; it has no interval.

    Examples
    --------
    >>> ages = xr.DataArray(np.full((2, 4), 100), dims=["state", "age"])
    >>> dict(quantiles(ages, "age", [0.25, 0.5], edges=[0, 18, 40, 65, 120], epsilon=1.0).sizes)
    {'state': 2, 'q': 2}
    """
    dims_of(array, ())  # checks that it is an array
    check_free(array, {"q", "value", "lower", "upper"})
    if isinstance(options.get("mechanism"), str) and options["mechanism"] == "exponential":
        return _drawn(array, dim, q, edges, plan, options)
    levels_of_quantiles(q)
    confidence: Any = options.pop("confidence", None)
    if confidence is not None:
        checked_confidence(confidence)
    found, others = _released(array, dim, plan, edges, options)
    return state_digest(
        _reshaped(array, others, found.quantiles(q, confidence=confidence), "q", np.atleast_1d(q))
    )


def _bins(array: xr.DataArray, dim: Hashable, edges: Sequence[Any] | None) -> list[Any]:
    """Return the edges of the bins of a dimension: those given, or those of its labels."""
    _check_dim(array, dim)
    given = _labels(array, dim) if edges is None else edges
    if given is None:
        raise ArgumentError(
            "edges",
            f"must be given: the labels of {quote(dim)} are not adjacent intervals.",
            hint="for example edges=[0, 18, 65, 120], one more than there are bins.",
        )
    bins = Bins.of(dim, bounds=None, bins=given)
    if bins.n_bins != array.sizes[dim]:
        raise ArgumentError(
            "edges",
            f"make {bins.n_bins} bins, but the dimension {quote(dim)} has {array.sizes[dim]}.",
            hint="list one value more than there are bins.",
        )
    return list(given)


def _drawn(
    array: xr.DataArray,
    dim: Hashable,
    q: Any,
    edges: Sequence[Any] | None,
    plan: DistributionPlan | None,
    options: Mapping[str, Any],
) -> xr.Dataset:
    """Draw a quantile at each index of the other dimensions; of one empty group, if there is no index."""
    check_cells(array)
    own = taken_from(CELL_DISTRIBUTION, options)
    if plan is not None:
        raise ArgumentError("plan", "has trees, from which nothing is drawn.", hint="leave out `mechanism`.")
    if options.get("confidence") is not None:
        raise ArgumentError(
            "confidence",
            "has no meaning for quantiles that are drawn from counts in bins.",
            hint='leave it out, or pass mechanism="laplace" for intervals.',
        )
    bins = Bins.of(dim, bounds=None, bins=_bins(array, dim, edges))
    others = [name for name in array.dims if name != dim]
    n_groups = max(1, math.prod(array.sizes[name] for name in others))
    observed = edges is None or bool(others)
    drawn = find_middles_plan(bins, q, source="observed" if observed else "given", **own)
    warn_if_released(array)

    def exact(resources: Resources) -> PointCounts:
        counts = sum_cells(array, [dim], np.arange(bins.n_bins), bins.n_bins, COUNT)
        if not counts.size:
            counts = np.zeros(bins.n_bins, dtype=np.int64)
        return points_of_counts(counts.reshape(n_groups, bins.n_bins))

    release = drawn._prepared_by(exact, usual_causes(), n_groups)
    table = carry_out({None: release}, taken_from(RUNNING, options))[None]
    return state_digest(_reshaped(array, others, table, "q", np.atleast_1d(q)))


def _released(
    array: xr.DataArray,
    dim: Hashable,
    plan: DistributionPlan | None,
    edges: Sequence[Any] | None,
    options: Mapping[str, Any],
) -> tuple[Distribution, list[Hashable]]:
    """Release the distribution at each index of the other dimensions, and return these as well.

    If there is no index, one empty group is measured, so that the result has its types.
    """
    check_cells(array)
    own = taken_from(CELL_DISTRIBUTION, options)
    if plan is None:
        plan = plan_distribution(array, dim, edges=edges, **own)
    else:
        _check_plan(array, dim, plan, [*own, *(["edges"] if edges is not None else [])])
    warn_if_released(array)
    others = [name for name in array.dims if name != dim]
    n_bins, n_groups = plan.bins.n_bins, max(1, math.prod(array.sizes[name] for name in others))
    side_by_side = plan
    if others:  # their indices come from the array
        unknown = np.full(n_groups, -1, dtype=np.int64)
        side_by_side = replace(plan, totals=(unknown,), source="observed")

    def exact(resources: Resources) -> IntArray:
        counts = sum_cells(array, [dim], np.arange(n_bins), n_bins, COUNT)
        if not counts.size:
            counts = np.zeros(n_bins, dtype=np.int64)
        return bin_counts(counts.reshape(n_groups, n_bins), n_groups, n_bins)

    release = replace(side_by_side._prepared_by(exact, usual_causes()), plan=plan)
    return carry_out({None: release}, taken_from(RUNNING, options))[None], others


def _check_plan(array: xr.DataArray, dim: Hashable, plan: DistributionPlan, given: Sequence[str]) -> None:
    """Check that a plan can be used for an array."""
    if given:
        raise ArgumentError(
            given[0],
            "cannot be combined with a plan, which already contains it.",
            hint="leave it out, or make a new plan with array.dp.plan_distribution.",
        )
    if not isinstance(plan, DistributionPlan) or plan.domain is not None or plan.privacy_unit is not None:
        raise ArgumentError(
            "plan",
            "must be a plan for a distribution, without groups or a privacy unit: cells do not show "
            "whose records they hold.",
            hint="make one with array.dp.plan_distribution(dim, ...), and state max_contributions.",
        )
    _check_dim(array, dim)
    if dim != plan.bins.column:
        raise ArgumentError(
            "dim",
            f"is {quote(dim)}, but the plan is for {quote(plan.bins.column)}.",
            hint="name the dimension of the plan, or rename the dimension with array.rename.",
        )
    labels = _labels(array, dim)
    if plan.bins.n_bins != array.sizes[dim] or (labels is not None and not _are_edges(plan.bins, labels)):
        raise ArgumentError(
            "plan",
            f"has {plan.bins.n_bins} bins that are not those of the dimension {quote(dim)}.",
            hint="make a new plan with array.dp.plan_distribution.",
        )
    if array.ndim > 1 and plan.totals[0][0] >= 0:
        raise ArgumentError(
            "plan",
            "has a known total, but does not say which distribution it is for.",
            hint="plan without `known`, or release one distribution at a time.",
        )


def _check_dim(array: xr.DataArray, dim: Hashable) -> None:
    """Check that an array has a dimension."""
    if not is_name(dim):
        raise ArgumentError("dim", f"must name one dimension, not {quote(dim)}.", hint='for example "age".')
    dims_of(array, [dim], argument="dim")
    if dim not in array.dims:
        raise ColumnsError(
            "dim",
            "is not a dimension of the array",
            columns=[dim],
            hint=f"{did_you_mean([dim], array.dims)}the array has {listed(array.dims)}.",
        )


def _labels(array: xr.DataArray, dim: Hashable) -> list[Any] | None:
    """Read the edges of bins from labels that are adjacent intervals; None if they are not."""
    index = array.indexes.get(dim)
    if not isinstance(index, pd.IntervalIndex) or not (index.right[:-1] == index.left[1:]).all():
        return None
    return [*index.left, *index.right[-1:]]


def _are_edges(bins: Bins, labels: list[Any]) -> bool:
    """Check whether the labels of a dimension, read as edges, are those of some bins."""
    return bins.same_as(Bins.of(bins.column, bounds=None, bins=labels))


def _reshaped(
    array: xr.DataArray, others: Sequence[Hashable], table: pd.DataFrame, dim: Hashable, labels: Any
) -> xr.Dataset:
    """Reshape each column of a table, which lists the groups in order, to the dimensions of the array."""
    shape = [array.sizes[name] for name in others]
    shown = [name for name in ("count", "cdf", "value", "lower", "upper") if name in table]
    dataset = kept_coordinates(array, others).assign(
        {
            name: (
                (*others, dim),
                table[name].to_numpy()[: math.prod(shape) * len(labels)].reshape(*shape, len(labels)),
            )
            for name in shown
        }
    )
    return dataset.assign_coords({dim: labels}).assign_attrs(dp=json.dumps(table.attrs["dp"]))
