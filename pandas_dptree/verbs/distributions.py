"""Functions for the distribution of one column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np
import pandas as pd

from pandas_dptree.output.distribution import Distribution, checked_confidence, edges_of_ranges
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.options import GROUPS, QUANTILE_GROUPS, DistributionOptions, takes
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
    if confidence is not None:
        checked_confidence(confidence)
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
    ranges = list(ranges) if np.iterable(ranges) and not isinstance(ranges, str) else ranges
    check = partial(_check_ranges, ranges)
    found: Distribution = released(
        record_plans.plan_distribution, frame, column, bins=bins, check=check, **options
    )
    return found.range_counts(ranges)


def _check_ranges(ranges: Sequence[Any], plan: DistributionPlan) -> None:
    """Refuse ranges that are none of the bins of a plan."""
    edges_of_ranges(plan.bins, ranges)


@takes(*QUANTILE_GROUPS)
def quantiles(
    frame: Any,
    column: Hashable,
    q: Any,
    *,
    granularity: Any = None,
    bins: Any = None,
    **options: Unpack[DistributionOptions],
) -> pd.DataFrame:
    """Estimate quantiles of a column.

    Parameters
    ----------
    frame, column
        As for `release_distribution`.
    q : float or sequence of float
        The probabilities of the quantiles, from 0 to 1; 0.5 for the median. The table lists them in
        increasing order.
    granularity : float or duration, optional
        The distance of the points of the grid, to which values are rounded. By default 1, if both bounds are
        whole numbers at least 100 apart; one day between dates; and for other bounds a power of ten, or a
        unit of time, that makes at least 100,000 steps. It decides how accurate drawn quantiles of round
        values are: choose 100 for amounts that are mostly multiples of 100.
    bins : int or sequence, optional
        Of trees, as for `release_distribution`; 1000 by default. Quantiles that are read from them are no
        finer. For quantiles that are drawn, it must be a number.
    **options

    Returns
    -------
    pandas.DataFrame
        ``value``, and with a confidence ``lower`` and ``upper``, indexed by ``q``. With groups also their
        ``level``, their keys and ``q`` as columns. In a group without records, a value that is drawn is one
        of the group above; a value that is read from a tree is missing.

    Notes
    -----
    ``mechanism="exponential"`` draws quantiles from the points of a grid: best for one to three quantiles
    that are neither small nor large. They must be above 0 and below 1, with denominators up to 1000.
    ``"laplace"`` and ``"gaussian"`` read them from a tree over bins with that noise: better for many
    quantiles, or extreme ones. ``"auto"`` draws up to three quantiles with gaps of at least a quarter, 0 and
    1 included, if neither `bins` nor `strategy` is given, and otherwise reads them from a tree. With a
    `confidence`, quantiles that are drawn share the budget with a tree, which has the intervals.

    **Privacy**: as for `release_distribution`, of which one is measured. With groups, those of the last level
    are drawn, and those above read from trees, each level with the same share of the budget; the curve of
    the group above a group, as released, makes some points more probable beforehand.

    Quantiles are drawn by permute-and-flip (McKenna and Sheldon, 2020) under an epsilon, without groups, and
    otherwise by the exponential mechanism (McSherry and Talwar, 2007); several recursively (Kaplan, Schnapp
    and Stemmer, 2022). `pandas_dptree.mechanisms.quantiles` has the proofs. How long that takes depends on
    the records: do not publish the time.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits = dpt.datasets.clinic_visits()
    >>> quantiles(visits, "cost", [0.25, 0.5, 0.75], bounds=(0, 500), epsilon=1.0).index.tolist()
    [0.25, 0.5, 0.75]
    """
    found: pd.DataFrame = released(
        record_plans.plan_quantiles,
        frame,
        column,
        q,
        granularity=granularity,
        bins=bins,
        **options,
    )
    return found
