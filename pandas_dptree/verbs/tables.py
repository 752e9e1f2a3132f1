"""Functions that release tables of hierarchies: counts, sums and means of every node."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Unpack

import pandas as pd

from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.plans.options import AGGREGATIONS, COUNTS, JOINT, RUNNING, SUMS, UNITS, Options, takes
from pandas_dptree.verbs import record_plans
from pandas_dptree.verbs.aggregations import Aggregation, Word
from pandas_dptree.verbs.domains import CrossedBy
from pandas_dptree.verbs.record_plans import released

__all__ = ["tree_agg", "tree_counts", "tree_means", "tree_sums", "tree_units"]


@takes(*COUNTS)
def tree_counts(frame: Any, by: By | CrossedBy | PrefixTree, **options: Unpack[Options]) -> pd.DataFrame:
    """Count the records of every node of a hierarchy, under differential privacy.

    Parameters
    ----------
    frame : dataframe
        The records, one row each: a dataframe of any supported engine.
    by : sequence of hashable, mapping, BitPrefixes or CharPrefixes
        The key columns, from the coarsest to the finest; a single one needs no list. A mapping crosses
        several hierarchies, by name: ``{"place": ["state", "county"], "sex": "sex"}``; see the notes.
        Derived levels are allowed too: from `calendar`, `cut`, `mapping` or `quadtree`, and in a list from
        `prefixes` or `binary`. Prefixes without a list are an implicit tree: see the notes.
    **options

    Returns
    -------
    pandas.DataFrame
        One row per node, from the root to the leaves: ``level`` (ordered categorical), the keys (missing
        below a node's depth), ``count`` and ``std_error`` (in counts; that of the unbiased linear estimate; 0
        for known counts). ``.dp.level(name)`` selects a level.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `DomainError` and `ColumnsError` are special cases. Bad values in
        the records never raise.

    Warns
    -----
    DPTreeWarning
        If the released total may be noise alone, the privacy loss protects nobody, or the frame is marked as
        a released table.

    Notes
    -----
    **Privacy**: the release is differentially private for the stated loss, with respect to the neighbouring
    relation and privacy unit. The domain is public: the rows, columns and types of the table follow from it.
    Records with keys outside the domain are dropped silently. A record without keys below some level belongs
    to the leaf of that shorter path, if the domain lists it. The times that the progress bar shows may depend
    on the records, so do not publish them.

    **Crossed hierarchies.** With a mapping as `by` the table has the cells of every margin: of each
    combination of a level of every hierarchy, all of which agree. `domain` maps the same names to public
    keys, and `margins` chooses which are released. See `CrossedPlan` for the table.

    **Private keys.** With `private_keys`, the last keys need no list. Only nodes with a large noisy count are
    released, each with a bound on its error; all others are pooled in rows with ``other=True``, so all totals
    are kept. That needs a delta, and `privacy_unit` must be stated: labels are published as they are. See
    `ImplicitPlan` for the table. A key that is absent is not zero.

    **Implicit trees.** A tree of all prefixes, not in a list, needs no domain either, and gives the same kind
    of table. Of the options from `split` to `known`, both accept only `split`, `confidence` and
    `keep`.

    **Counts with bounded relative error.** With ``mechanism=Multiplicative(alpha=0.25)`` the table has the
    columns ``count`` and ``error_bound``, and does not add up; of all prefixes it shows those that reach a
    threshold, and pools nothing. It needs an epsilon and a delta, and accepts none of the options from
    `split` to `known`. See `MultiplicativePlan` and `ImplicitMultiplicativePlan`.

    See Also
    --------
    plan : Plan the same release without spending anything.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits, clinics = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
    >>> counts = dpt.tree_counts(visits, ["region", "district"], epsilon=1.0,
    ...                          domain=clinics[["region", "district"]].drop_duplicates())
    >>> list(counts.columns)
    ['level', 'region', 'district', 'count', 'std_error']
    """
    table: pd.DataFrame = released(record_plans.plan, frame, by, **options)
    return table


@takes(*UNITS, "domain", *RUNNING)
def tree_units(frame: Any, by: By, **options: Unpack[Options]) -> pd.DataFrame:
    """Count the distinct privacy units of every node of a hierarchy: people, not their visits.

    Parameters
    ----------
    frame, by
        As for `tree_counts`.
    **options

    Returns
    -------
    pandas.DataFrame
        One row per node: ``level``, the keys, ``count`` and ``std_error``, the standard error of the unbiased
        estimate of what is counted. **Counts do not add up**: whoever is in two clinics is counted in both,
        and once in their region. Whole and non-negative estimates keep between the largest child and the sum
        of the children.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `DomainError` and `ColumnsError` are special cases. Bad values in
        the records never raise.

    Warns
    -----
    DPTreeWarning
        As for `tree_counts`.

    Notes
    -----
    The units that are counted are those that are protected, the values of `privacy_unit`: one unit changes
    each count by at most 1, and `max_nodes` counts of a level. (The distinct values of another column, such
    as diagnoses, may change in any number when one person's rows change.)

    *What is counted.* A unit in more nodes of a level than `max_nodes` allows keeps some of them, chosen at
    random. Nobody is missing from the total, and with one bound for all levels each level keeps as many nodes
    as it can; nodes are undercounted by units that are in more. `std_error` knows nothing of that. With
    ``max_nodes=1`` the counts add up.

    *What is measured.* Beside the counts, the excess of each node above the leaves is measured where it
    helps: the sum of its children's counts less its own. Under pure epsilon with Laplace noise, and with
    Gaussian noise, that costs nothing below the root, since a unit that is in many nodes of a level is in few
    above them. The counts are then estimated from all of that by least squares.

    **Privacy**: as for `tree_counts`, but the neighbouring data sets differ in a whole unit, with any number
    of rows.

    See Also
    --------
    plan_units : Plan the same release without spending anything.
    tree_agg : Count records and units together, with ``{"visits": "count", "visitors": "units"}``.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits, clinics = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
    >>> people = dpt.tree_units(visits, ["region", "district"], epsilon=1.0, privacy_unit="person",
    ...                         max_nodes=3, domain=clinics[["region", "district"]].drop_duplicates())
    >>> list(people.columns)
    ['level', 'region', 'district', 'count', 'std_error']
    """
    table: pd.DataFrame = released(record_plans.plan_units, frame, by, **options)
    return table


@takes(*SUMS, "domain", *RUNNING)
def tree_sums(
    frame: Any,
    by: By | CrossedBy,
    *,
    columns: Hashable | list[Hashable],
    bounds: Any,
    granularity: Any = None,
    **options: Unpack[Options],
) -> pd.DataFrame:
    """Add up columns over the records of every node of a hierarchy, under differential privacy.

    Parameters
    ----------
    frame : dataframe
        The records, one row each: a dataframe of any supported engine.
    by : sequence of hashable
        The key columns, from the coarsest to the finest.
    columns : hashable or list of hashable
        The column to add up, or several. Several columns share the budget so that the sum of their squared
        errors, each relative to the most that a row can add, is least. A column cannot have a name that the
        table uses itself (``level``, ``count``, ``std_error`` and the like, the keys, or a companion of
        another column, as in ``cost_std_error``).
    bounds : (float, float), or mapping from columns to such pairs
        The smallest and the largest value of a row; values outside are clipped. Noise is proportional to the
        larger absolute value of the two, so choose tight bounds, but never from the records.
    granularity : float, or mapping from columns to float, optional
        Values are rounded to its multiples, and noise is added in multiples of it. By default a power of ten,
        of which 100,000 to a million fit between the bounds.
    **options

    Returns
    -------
    pandas.DataFrame
        One row per node: ``level``, the keys, and for a column named ``cost`` its sum ``cost`` and
        ``cost_std_error``; if requested, ``cost_lower``, ``cost_upper``, ``cost_measurement`` and
        ``cost_noise_scale``.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `DomainError` and `ColumnsError` are special cases. Bad values in
        the records never raise.

    Notes
    -----
    A row that lacks one of the values is dropped from all sums, like a row outside the domain. NaN is a
    missing value; infinite values are clipped. Intervals hold the true sum of what was
    counted: of the clipped and rounded values.

    Sums of several columns may share a count of their rows, which the table does not show: where that is
    better, the differences from the middle of the bounds are measured, and a sum is theirs plus the middle
    times the count. ``cost_measurement`` and ``cost_noise_scale`` are then those of the differences, and
    ``attrs["dp"]["quantities"]["cost"]`` states the ``middle``; ``cost_std_error`` is that of the sum.

    **Privacy**: as for `tree_counts`. All columns together spend the stated loss once.

    See Also
    --------
    tree_means : Sums divided by counts, with the budget divided between the two.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits, clinics = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
    >>> sums = dpt.tree_sums(visits, ["region"], columns="cost", bounds=(0, 500), epsilon=1.0,
    ...                      domain=clinics[["region"]].drop_duplicates())
    >>> list(sums.columns)
    ['level', 'region', 'cost', 'cost_std_error']
    """
    values = {"columns": columns, "bounds": bounds, "granularity": granularity}
    table: pd.DataFrame = released(record_plans.plan_sums, frame, by, **values, **options)
    return table


@takes(*JOINT, "domain", *RUNNING)
def tree_means(
    frame: Any,
    by: By | CrossedBy,
    *,
    columns: Hashable | list[Hashable],
    bounds: Any,
    granularity: Any = None,
    **options: Unpack[Options],
) -> pd.DataFrame:
    """Average columns over the records of every node of a hierarchy, under differential privacy.

    Parameters
    ----------
    frame, by, columns, bounds, granularity
        As for `tree_sums`, which raises the same errors.
    **options

    Returns
    -------
    pandas.DataFrame
        One row per node: ``level``, the keys, for a column named ``cost`` its mean ``cost`` and
        ``cost_std_error``, and ``count`` and ``std_error`` of the averaged records. If requested, the ends of
        the intervals and the measurements follow; ``cost_measurement`` is a sum of differences from the
        middle of the bounds.

    Notes
    -----
    The budget is divided between the sums and the counts to make the means most accurate.

    The sums are those of the values' differences from the middle of their bounds, which at least halves the
    noise. A mean is such a sum divided by the released count, plus the middle, and clipped to the bounds. So
    means times counts add up as the counts do, wherever nothing is clipped or missing. The standard error is
    that of the quotient to first order (the delta method).

    A mean and its error are missing if the released count is less than one, or less than four times its
    standard error: the quotient would be noise, and its error unknown. So they are if that error is more than
    an eighth of the distance between the bounds, since the mean might be nearly anything.

    The interval surrounds the unbiased estimates, by a method that needs no large count (Fieller, "Some
    problems in interval estimation", 1954). It is never missing, and holds the true mean of what was
    counted, the clipped values, with the stated probability in every node that has records; where little is
    known of the count, it is as wide as the bounds. Among only the nodes that show a mean, the probability
    can be slightly lower.

    A row that lacks one of the values is dropped, like a row outside the domain. So `known` must count only
    rows without missing values: a published count of all rows makes the means wrong.

    **Privacy**: as for `tree_counts`. All sums and counts together spend the stated loss once.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits, clinics = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
    >>> means = dpt.tree_means(visits, ["region"], columns="cost", bounds=(0, 500), epsilon=1.0,
    ...                        domain=clinics[["region"]].drop_duplicates())
    >>> list(means.columns)
    ['level', 'region', 'cost', 'cost_std_error', 'count', 'std_error']
    """
    values = {"columns": columns, "bounds": bounds, "granularity": granularity}
    table: pd.DataFrame = released(record_plans.plan_means, frame, by, **values, **options)
    return table


@takes(*AGGREGATIONS, "domain", *RUNNING)
def tree_agg(
    frame: Any,
    by: By | CrossedBy,
    aggregations: Mapping[Hashable, Word | Aggregation],
    **options: Unpack[Options],
) -> pd.DataFrame:
    """Release counts, sums and means of every node of a hierarchy in one table, under one privacy loss.

    Parameters
    ----------
    frame, by
        As for `tree_sums`, which raises the same errors.
    aggregations : mapping
        The columns of the table: from their names to ``"count"``, ``"units"``, ``"count_per_unit"`` (each at
        most once), `sum` or `mean`, as in the named aggregation of pandas.
    **options

    Returns
    -------
    pandas.DataFrame
        One row per node: ``level``, the keys, and for each name, say ``paid``, the columns ``paid`` and
        ``paid_std_error``; if requested, ``paid_lower``, ``paid_upper``, ``paid_measurement`` and
        ``paid_noise_scale``. (For a count named ``"count"``, they are ``std_error``, ``lower`` and so on, as
        from `tree_counts`.)

    See Also
    --------
    plan_agg : Plan the same release without spending anything.

    Notes
    -----
    The budget is divided so that the sum of the squared errors is least, each relative to the most that a row
    can add (for a mean: to half the width of its bounds). A mean is missing where too little is known of the
    number of records: see `tree_means`. For means, the records are always counted, even if the table does not
    show the count.

    Where that is better, sums are measured from the middle of their bounds and share the noise of the count,
    as described for `tree_sums`: one sum of values from 0 on and a count then have .77 and .85 times the
    errors that separate noise would have.

    With ``"units"``, the distinct units of each node, all columns are of the rows that units keep in the
    nodes in which they are counted: one in each leaf, and others, chosen at random, up to
    `max_contributions`. So rows in further leaves than `max_nodes` allows are in no column, and of a unit
    that has more rows, those are favoured that are alone in their leaf: means can be other than without
    ``"units"``. A node has at least as many rows as units, but the two are estimated apart, and the table may
    show fewer.

    A row that lacks one of the values is dropped from all columns, including the count, like a row outside
    the domain. To count such rows, fill in their missing values first. `known` must not count them, since a
    wrong count makes sums and means wrong, too.

    **Privacy**: as for `tree_counts`. All columns together spend the stated loss once.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits, clinics = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
    >>> table = dpt.tree_agg(
    ...     visits, ["region"],
    ...     {"visits": "count", "cost": dpt.mean("cost", bounds=(0, 500))},
    ...     epsilon=1.0, domain=clinics[["region"]].drop_duplicates())
    >>> list(table.columns)
    ['level', 'region', 'visits', 'visits_std_error', 'cost', 'cost_std_error']
    """
    table: pd.DataFrame = released(record_plans.plan_agg, frame, by, aggregations, **options)
    return table
