"""Functions for the distribution of one column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Unpack

import pandas as pd

from pandas_dptree.output.distribution import Distribution
from pandas_dptree.plans.options import GROUPS, DistributionOptions, takes
from pandas_dptree.verbs import record_plans
from pandas_dptree.verbs.record_plans import released

__all__ = ["cdf", "histogram", "quantiles", "range_counts", "release_distribution"]


@takes(*GROUPS)
def release_distribution(
    frame: Any,
    column: Hashable,
    *,
    bins: Any,
    **options: Unpack[DistributionOptions],
) -> Distribution:
    """Measure the distribution of a column once, for any number of tables.

    Parameters
    ----------
    frame : dataframe
        The records, one row each: a dataframe of any supported engine.
    column : hashable
        The name of a column of numbers, timestamps or durations.
    bins : int or sequence
        The number of bins of equal width, or their edges instead of `bounds`.
    **options

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
    **Privacy**: the stated loss is spent once. Bounds, bins and domain are public, and must not be made from
    the records; the rows, columns and types of all tables follow from them. Rows without a value, and rows
    with keys outside the domain, are dropped.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits = dpt.datasets.clinic_visits()
    >>> costs = dpt.release_distribution(visits, "cost", bounds=(0, 500), bins=100, epsilon=1.0)
    >>> costs.range_counts([(0, 100), (100, 500)]).columns.tolist()
    ['count', 'std_error']
    """
    found: Distribution = released(record_plans.plan_distribution, frame, column, bins=bins, **options)
    return found


@takes("confidence", *GROUPS)
def cdf(
    frame: Any,
    column: Hashable,
    *,
    bins: Any,
    **options: Unpack[DistributionOptions],
) -> pd.DataFrame:
    """Estimate the cumulative distribution of a column at the end of each bin.

    Parameters
    ----------
    frame, column, bins
        As for `release_distribution`.
    confidence : float, optional
        For example 0.95: adds ``lower`` and ``upper``, which bound all true counts at once with this
        probability.
    **options

    Returns
    -------
    pandas.DataFrame
        As from `Distribution.cdf`: ``count``, ``cdf`` and ``std_error``, indexed by the bins.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> cdf(dpt.datasets.clinic_visits(), "cost", bounds=(0, 500), bins=5, epsilon=1).columns.tolist()
    ['count', 'cdf', 'std_error']
    """
    confidence = options.pop("confidence", None)
    return release_distribution(frame, column, bins=bins, **options).cdf(confidence=confidence)


@takes(*GROUPS)
def histogram(
    frame: Any, column: Hashable, *, bins: Any, **options: Unpack[DistributionOptions]
) -> pd.DataFrame:
    """Count the values of a column in each bin.

    By default, sums over many bins are accurate. If only single bins matter, pass ``strategy=[n_bins]``.

    Parameters
    ----------
    frame, column, bins
        As for `release_distribution`.
    **options

    Returns
    -------
    pandas.DataFrame
        As from `Distribution.histogram`: ``count`` and ``std_error``, indexed by the bins.
    """
    return release_distribution(frame, column, bins=bins, **options).histogram()


@takes(*GROUPS)
def range_counts(
    frame: Any, column: Hashable, ranges: Sequence[Any], *, bins: Any, **options: Unpack[DistributionOptions]
) -> pd.DataFrame:
    """Count the values of a column in ranges, which may overlap.

    Parameters
    ----------
    frame, column, bins
        As for `release_distribution`.
    ranges : sequence of pairs
        The ends of each range, which must be edges of bins.
    **options

    Returns
    -------
    pandas.DataFrame
        As from `Distribution.range_counts`: ``count`` and ``std_error``, indexed by the ranges.
    """
    return release_distribution(frame, column, bins=bins, **options).range_counts(ranges)


@takes("confidence", *GROUPS, confidence=0.95)
def quantiles(
    frame: Any,
    column: Hashable,
    q: Any,
    *,
    bins: Any = 1000,
    **options: Unpack[DistributionOptions],
) -> pd.DataFrame:
    """Estimate quantiles of a column.

    Parameters
    ----------
    frame, column
        As for `release_distribution`.
    q : float or sequence of float
        The probabilities of the quantiles, from 0 to 1; 0.5 for the median.
    bins : int or sequence, default 1000
        As for `release_distribution`. Quantiles are no finer than the bins.
    confidence : float, default 0.95
        The probability that ``lower`` and ``upper`` hold all true quantiles of a group at once.
    **options

    Returns
    -------
    pandas.DataFrame
        As from `Distribution.quantiles`: ``value``, ``lower`` and ``upper``, indexed by ``q``.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits = dpt.datasets.clinic_visits()
    >>> quantiles(visits, "cost", [0.25, 0.5, 0.75], bounds=(0, 500), epsilon=1.0).index.tolist()
    [0.25, 0.5, 0.75]
    """
    confidence: Any = options.pop("confidence")
    return release_distribution(frame, column, bins=bins, **options).quantiles(q, confidence=confidence)
