"""Distributions along a dimension of an array whose indices are bins."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pandas_dptree.arrays.coordinates import dims_of, kept_coordinates
from pandas_dptree.distribution.ways import Ways
from pandas_dptree.errors import ArgumentError, ColumnsError, did_you_mean, is_name, listed, told
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.ingest.cells import check_cells, sum_cells
from pandas_dptree.ingest.frames import warn_if_released
from pandas_dptree.mechanisms.additive import Mechanism
from pandas_dptree.mechanisms.arguments import noise_source
from pandas_dptree.output.datatree import check_free
from pandas_dptree.output.distribution import Distribution
from pandas_dptree.output.emptiness import totals_of_groups, usual_causes, warn_if_empty
from pandas_dptree.plans.distribution import DistributionPlan, Strategy
from pandas_dptree.privacy.loss import PrivacyLoss, warn_if_useless
from pandas_dptree.privacy.quantity import COUNT
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.privacy.unit import protected
from pandas_dptree.signatures import public

__all__ = ["cdf", "quantiles"]


@public
def cdf(
    array: xr.DataArray,
    dim: Hashable,
    *,
    edges: Sequence[Any] | None = None,
    confidence: float | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    max_contributions: int | None = None,
    mechanism: Mechanism = "auto",
    tree: Strategy | Sequence[int] = "auto",
    rng: np.random.Generator | None = None,
) -> xr.Dataset:
    """Tell how many records, and what part of them, lie below the end of each bin along a dimension.

    Parameters
    ----------
    array : xarray.DataArray
        Counts, each record in exactly one cell.
    dim : hashable
        The dimension whose indices are bins, side by side and rising.
    edges : sequence, optional
        Where the bins begin and end: one value more than there are bins. By default the ends of the
        intervals that are their labels.
    confidence : float, optional
        For example 0.95: adds ``lower`` and ``upper``, between which all true counts of one of the other
        indices lie at once with this probability. At most 0.999.
    epsilon, delta, rho, neighbors, mechanism, tree
        As for `plan_distribution`.
    max_contributions : int, optional
        As for `tree_counts`.
    rng : numpy.random.Generator, optional
        Makes the release repeatable, for tests and simulation: it is then not private.

    Returns
    -------
    xarray.Dataset
        ``count``, whole and rising; ``cdf``, its part of the total (missing where nobody is counted); and
        ``std_error`` of the counts before they were made so. The coordinate of the dimension holds the ends
        of the bins. All other dimensions are kept, with a distribution for each of their indices.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `ColumnsError` is a special case. Bad counts never raise.

    Notes
    -----
    **Privacy**: as for `tree_counts`. Edges and coordinates are public, and the stated loss covers all
    distributions together.

    Examples
    --------
    >>> ages = xr.DataArray(np.full((2, 4), 100), dims=["state", "age"])
    >>> table = cdf(ages, "age", edges=[0, 18, 40, 65, 120], epsilon=1.0)
    >>> dict(table.sizes), table["age"].values.tolist()
    ({'state': 2, 'age': 4}, [18.0, 40.0, 65.0, 120.0])
    """
    dims_of(array, ())  # it is an array
    check_free(array, {"count", "cdf", "std_error", "lower", "upper"})
    found, others = _distribution(
        array, dim, edges, epsilon=epsilon, delta=delta, rho=rho, neighbors=neighbors,
        max_contributions=max_contributions, mechanism=mechanism, tree=tree, rng=rng,
    )  # fmt: skip
    ends = found.bins.values_at(np.arange(1, found.bins.n_bins + 1))
    table = _unfolded(array, others, found.cdf(confidence=confidence), dim, ends)
    return table.assign(std_error=(dim, found.std_errors[0]))


@public
def quantiles(
    array: xr.DataArray,
    dim: Hashable,
    q: Any,
    *,
    edges: Sequence[Any] | None = None,
    confidence: float = 0.95,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    max_contributions: int | None = None,
    mechanism: Mechanism = "auto",
    tree: Strategy | Sequence[int] = "auto",
    rng: np.random.Generator | None = None,
) -> xr.Dataset:
    """Tell below which value a part of the records lies, along a dimension of bins.

    Parameters
    ----------
    array, dim, edges, epsilon, delta, rho, neighbors, max_contributions, mechanism, tree, rng
        As for `cdf`.
    q : float or sequence of float
        The parts, from 0 to 1; 0.5 for the median.
    confidence : float, default 0.95
        How often all true quantiles of one of the other indices lie within ``lower`` and ``upper`` at once.

    Returns
    -------
    xarray.Dataset
        ``value``, ``lower`` and ``upper``, as `Distribution.quantiles` tells, along a dimension ``q`` and
        all dimensions but that of the bins.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `ColumnsError` is a special case. Bad counts never raise.

    Examples
    --------
    >>> ages = xr.DataArray(np.full((2, 4), 100), dims=["state", "age"])
    >>> dict(quantiles(ages, "age", [0.25, 0.5], edges=[0, 18, 40, 65, 120], epsilon=1.0).sizes)
    {'state': 2, 'q': 2}
    """
    dims_of(array, ())  # it is an array
    check_free(array, {"q", "value", "lower", "upper"})
    found, others = _distribution(
        array, dim, edges, epsilon=epsilon, delta=delta, rho=rho, neighbors=neighbors,
        max_contributions=max_contributions, mechanism=mechanism, tree=tree, rng=rng,
    )  # fmt: skip
    return _unfolded(array, others, found.quantiles(q, confidence=confidence), "q", np.atleast_1d(q))


def _distribution(
    array: xr.DataArray,
    dim: Hashable,
    edges: Sequence[Any] | None,
    *,
    epsilon: float | None,
    delta: float,
    rho: float | None,
    neighbors: Neighbors,
    max_contributions: int | None,
    mechanism: Mechanism,
    tree: Strategy | Sequence[int],
    rng: np.random.Generator | None,
) -> tuple[Distribution, list[Hashable]]:
    """Measure the distribution at each index of the other dimensions, which are named beside it.

    Without any index, nobody is measured as one group, so that the answer has its types.
    """
    source = noise_source(rng)
    bins = _bins(array, dim, edges)
    check_cells(array)
    warn_if_released(array)
    loss = PrivacyLoss(epsilon=epsilon, delta=delta, rho=rho)
    unit, most = protected(None, max_contributions)
    ways = Ways(bins.n_bins, loss, neighbors, most, 1)
    best = ways.best(mechanism, tree, known_total=False)
    warn_if_useless(loss)
    others = [name for name in array.dims if name != dim]
    n_groups = max(1, math.prod(array.sizes[name] for name in others))
    unknown = np.full(n_groups, -1, dtype=np.int64)
    counts = sum_cells(array, [dim], np.arange(bins.n_bins), bins.n_bins, COUNT)
    if not counts.size:
        counts = np.zeros((1, bins.n_bins), dtype=np.int64)
    planned = DistributionPlan(
        bins=bins,
        domain=None,
        loss=loss,
        neighbors=neighbors,
        privacy_unit=unit,
        max_contributions=most,
        totals=(unknown,),
        measuring=best,
    )
    released = Distribution(
        bins=bins,
        groups=pd.DataFrame({"group": np.arange(n_groups)}),
        estimates=best.estimates(counts.reshape(n_groups, bins.n_bins), unknown, source),
        totals=unknown,
        measuring=best,
        account=planned.account(rng)
        | {"domain_source": "given" if edges is not None and not others else "observed"},
    )
    warn_if_empty(released, totals_of_groups(released, slice(None)), usual_causes())
    return released, others


def _bins(array: xr.DataArray, dim: Hashable, edges: Sequence[Any] | None) -> Bins:
    """Read the bins from their edges, or from the intervals that are the labels of the dimension."""
    if not is_name(dim):
        raise ArgumentError("dim", f"must name one dimension, not {told(dim)}.", hint='for example "age".')
    dims_of(array, [dim], argument="dim")
    if dim not in array.dims:
        raise ColumnsError(
            "dim",
            "is no dimension of the array",
            columns=[dim],
            hint=f"{did_you_mean([dim], array.dims)}it has {listed(array.dims)}.",
        )
    if edges is None:
        index = array.indexes.get(dim)
        if not isinstance(index, pd.IntervalIndex) or not (index.right[:-1] == index.left[1:]).all():
            raise ArgumentError(
                "edges",
                f"must be given: the labels of {told(dim)} are no intervals side by side.",
                hint="for example edges=[0, 18, 65, 120], one more than there are bins.",
            )
        edges = [*index.left, *index.right[-1:]]
    bins = Bins.of(dim, bounds=None, bins=edges)
    if bins.n_bins != array.sizes[dim]:
        raise ArgumentError(
            "edges",
            f"make {bins.n_bins} bins, and the dimension {told(dim)} has {array.sizes[dim]}.",
            hint="list one value more than there are bins.",
        )
    return bins


def _unfolded(
    array: xr.DataArray, others: Sequence[Hashable], table: pd.DataFrame, dim: Hashable, labels: Any
) -> xr.Dataset:
    """Give each column of a table, which lists group after group, the dimensions of the array."""
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
