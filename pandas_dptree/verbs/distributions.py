"""The verbs on the distribution of one column, as plain typed functions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.mechanisms.additive import Mechanism
from pandas_dptree.output.distribution import Distribution
from pandas_dptree.plans.distribution import Strategy, plan_distribution
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.signatures import public, with_options_of
from pandas_dptree.verbs.domains import domain_of

__all__ = ["cdf", "groups_of", "histogram", "quantiles", "range_counts", "release_distribution"]


class Options(TypedDict, total=False):
    """What all verbs here hand on to `release_distribution`."""

    bounds: Any
    by: By | None
    domain: Any
    epsilon: float | None
    delta: float
    rho: float | None
    neighbors: Neighbors
    privacy_unit: Hashable | None
    max_contributions: int | None
    mechanism: Mechanism
    tree: Strategy | Sequence[int]
    known: Any
    rng: np.random.Generator | None
    progress: bool


@public
def release_distribution(
    frame: Any,
    column: Hashable,
    *,
    bins: Any,
    bounds: Any = None,
    by: By | None = None,
    domain: Any = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    privacy_unit: Hashable | None = None,
    max_contributions: int | None = None,
    mechanism: Mechanism = "auto",
    tree: Strategy | Sequence[int] = "auto",
    known: Any = None,
    rng: np.random.Generator | None = None,
    progress: bool = False,
) -> Distribution:
    """Measure the distribution of a column once, to make any number of tables of it.

    Parameters
    ----------
    frame : dataframe
        The records, one row each: pandas, polars (eager or lazy) or pyarrow.
    column : hashable
        The name of the column: numbers, timestamps or durations.
    bins, bounds, epsilon, delta, rho, neighbors, privacy_unit, max_contributions, mechanism, tree, known
        As for `plan_distribution`.
    by : sequence of hashable, optional
        Key columns and derived levels, from the coarsest to the finest, as for `tree_counts`: the
        distribution of each group, on every level.
        The levels share the budget evenly; the groups of a level do not cost each other anything.
    domain : DataFrame, MultiIndex, Domain, "observed" or "categories"
        The public keys, if there are groups by plain columns; as for `tree_counts`.
    rng : numpy.random.Generator, optional
        Makes the release repeatable, for tests and simulation: it is then not private.
    progress : bool, default False
        As for `tree_counts`.

    Returns
    -------
    Distribution
        With the methods `cdf`, `histogram`, `quantiles` and `range_counts`.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `DomainError` and `ColumnsError` are special cases. Bad values in
        the records never raise.

    Notes
    -----
    Values outside the bounds are clipped. Rows without a value are dropped, and so are those whose keys the
    domain does not list.

    **Privacy**: the stated loss is spent once. Bounds, bins and domain are public, and must not be made from
    the records; rows, columns and types of all tables follow from them.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits = dpt.datasets.clinic_visits()
    >>> costs = dpt.release_distribution(visits, "cost", bounds=(0, 500), bins=100, epsilon=1.0)
    >>> costs.range_counts([(0, 100), (100, 500)]).columns.tolist()
    ['count', 'std_error']
    """
    return plan_distribution(
        column,
        bounds=bounds,
        bins=bins,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        privacy_unit=privacy_unit,
        max_contributions=max_contributions,
        mechanism=mechanism,
        tree=tree,
        domain=groups_of(frame, by, domain),
        known=known,
    ).release(frame, rng=rng, progress=progress)


def groups_of(frame: Any, by: By | None, domain: Any) -> Domain | None:
    """Make the public domain of the groups of a distribution, as `domain_of` does; None without groups."""
    if by is not None:
        return domain_of(frame, by, domain)
    if domain is not None:
        raise ArgumentError(
            "domain", "has no meaning without groups.", hint='name the key columns, for example by=["state"].'
        )
    return None


@with_options_of(release_distribution)
def cdf(
    frame: Any, column: Hashable, *, bins: Any, confidence: float | None = None, **options: Unpack[Options]
) -> pd.DataFrame:
    """Tell how many values of a column, and what part of them, lie below the end of each bin.

    Parameters
    ----------
    frame, column, bins
        As for `release_distribution`.
    confidence : float, optional
        For example 0.95: adds ``lower`` and ``upper``, between which all true counts lie at once with this
        probability.
    **options
        As for `release_distribution`.

    Returns
    -------
    pandas.DataFrame
        As `Distribution.cdf` tells: ``count``, ``cdf`` and ``std_error``, indexed by the bins.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> cdf(dpt.datasets.clinic_visits(), "cost", bounds=(0, 500), bins=5, epsilon=1).columns.tolist()
    ['count', 'cdf', 'std_error']
    """
    return release_distribution(frame, column, bins=bins, **options).cdf(confidence=confidence)


@with_options_of(release_distribution)
def histogram(frame: Any, column: Hashable, *, bins: Any, **options: Unpack[Options]) -> pd.DataFrame:
    """Tell how many values of a column lie in each bin.

    Parameters
    ----------
    frame, column, bins
        As for `release_distribution`.
    **options
        As for `release_distribution`.

    Returns
    -------
    pandas.DataFrame
        As `Distribution.histogram` tells: ``count`` and ``std_error``, indexed by the bins.

    Notes
    -----
    The bins are measured such that sums over many of them are accurate. Where only single bins matter,
    ``tree=[n_bins]`` measures nothing else.
    """
    return release_distribution(frame, column, bins=bins, **options).histogram()


@with_options_of(release_distribution)
def range_counts(
    frame: Any, column: Hashable, ranges: Sequence[Any], *, bins: Any, **options: Unpack[Options]
) -> pd.DataFrame:
    """Tell how many values of a column lie in some ranges, which may overlap.

    Parameters
    ----------
    frame, column, bins
        As for `release_distribution`.
    ranges : sequence of pairs
        The ends of each, which must be edges of bins.
    **options
        As for `release_distribution`.

    Returns
    -------
    pandas.DataFrame
        As `Distribution.range_counts` tells: ``count`` and ``std_error``, indexed by the ranges.
    """
    return release_distribution(frame, column, bins=bins, **options).range_counts(ranges)


@with_options_of(release_distribution)
def quantiles(
    frame: Any,
    column: Hashable,
    q: Any,
    *,
    bins: Any = 1000,
    confidence: float = 0.95,
    **options: Unpack[Options],
) -> pd.DataFrame:
    """Tell below which value of a column a part of the values lies.

    Parameters
    ----------
    frame, column
        As for `release_distribution`.
    q : float or sequence of float
        The parts, from 0 to 1; 0.5 for the median.
    bins : int or sequence, default 1000
        As for `release_distribution`: values are told apart no finer than that.
    confidence : float, default 0.95
        How often all true quantiles of a group lie within ``lower`` and ``upper`` at once.
    **options
        As for `release_distribution`.

    Returns
    -------
    pandas.DataFrame
        As `Distribution.quantiles` tells: ``value``, ``lower`` and ``upper``, indexed by ``q``.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits = dpt.datasets.clinic_visits()
    >>> quantiles(visits, "cost", [0.25, 0.5, 0.75], bounds=(0, 500), epsilon=1.0).index.tolist()
    [0.25, 0.5, 0.75]
    """
    return release_distribution(frame, column, bins=bins, **options).quantiles(q, confidence=confidence)
