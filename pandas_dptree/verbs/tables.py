"""The verbs, as plain typed functions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, is_name, told
from pandas_dptree.estimation.consistency import Consistency, Fit
from pandas_dptree.hierarchy.columns import kind_of
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import By, derived_domain, named
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.ingest.contributions import key_frame
from pandas_dptree.ingest.frames import check_columns, check_frame
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.mechanisms.guarantees import Multiplicative
from pandas_dptree.planning.objective import Objective
from pandas_dptree.planning.split import Split
from pandas_dptree.plans.additive import Plan
from pandas_dptree.plans.joint import plan_means, plan_sums
from pandas_dptree.plans.multiplicative import MultiplicativePlan
from pandas_dptree.plans.search import Mechanism, find_best_plan, find_implicit_plan
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.signatures import public

__all__ = ["domain_of", "plan", "tree_counts", "tree_means", "tree_sums"]


@public
def tree_counts(
    frame: Any,
    by: By | PrefixTree,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    privacy_unit: Hashable | None = None,
    max_contributions: int | None = None,
    domain: Any = None,
    mechanism: Mechanism | Literal["truncated_laplace"] | AdditiveNoise | Multiplicative = "auto",
    alpha: float | None = None,
    split: Split | Mapping[Hashable, float] = "optimal",
    level_weights: Mapping[Hashable, float] | None = None,
    objective: Objective = "levels",
    consistency: Consistency = "integer",
    fit: Fit = "totals",
    known: Any = None,
    confidence: float | None = None,
    keep_measurements: bool = False,
    rng: np.random.Generator | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Count the records of every node of a hierarchy, under differential privacy.

    Parameters
    ----------
    frame : dataframe
        The records, one row each: pandas, polars (eager or lazy) or pyarrow.
    by : sequence of hashable, BitPrefixes or CharPrefixes
        The key columns, from the coarsest to the finest; a single one needs no list. Among them, or alone,
        may be levels that are made of columns: by `calendar`, `cut`, `mapping` or `quadtree`, and in a list
        by `prefixes` or `binary`. Without a list, prefixes are a tree that nobody lists: see the notes.
    epsilon, delta, rho : float, optional
        The privacy loss of this release: `epsilon` alone is pure differential privacy, with `delta`
        approximate; `rho` is zero-concentrated.
    neighbors : {"add_remove", "replace"}
        What may differ between neighbouring data sets: that a privacy unit is there, or what it is.
    privacy_unit : hashable or dpt.ROWS, optional
        The column that names whom to protect. By default each row is a unit of its own, which `dpt.ROWS`
        states explicitly.
    max_contributions : int, optional
        How many rows of one unit are kept, chosen uniformly at random. It must be given with a column as
        `privacy_unit`. Noise grows in proportion to it; and of a unit with more rows, those beyond are
        dropped, so that the table counts less than all rows.
    domain : DataFrame, MultiIndex, Domain, "observed" or "categories"
        The public keys: one row per leaf; of a single key column, any list of them. Or the statement that the
        keys that stand in the records are public (``"observed"``), or that the categories of the categorical
        key columns are, in every combination (``"categories"``).
        Derived levels have domains of their own, and are crossed with what is
        given for the other keys; if there are none, leave it out.
    mechanism : {"auto", "laplace", "gaussian"}, AdditiveNoise or Multiplicative
        The noise. ``"auto"``: whichever promises the smaller error; only Laplace noise gives pure
        differential privacy. Or `Multiplicative`: counts that are right up to a factor; see the notes.
    alpha : float, optional
        Up to which share of a true count an error counts as none. It takes the place of `objective` and
        `level_weights`: what is made small is the largest error beyond it of all nodes, whatever they count
        (the alpha-mRMSE, see `Plan.alpha_rmse`). ``mechanism="auto"`` then takes `Multiplicative` with clip
        into account, which wins on very deep trees alone.
    split : {"optimal", "uniform", "geometric", "nodes"} or mapping
        How the budget is split over the levels, or with ``"nodes"`` (Gaussian noise) over the nodes of each
        path; or each level's share (by name; 0 if left out), which sum to one.
    level_weights : mapping, optional
        How much the error of a level matters, by name; 1 for those left out.
    objective : {"levels", "cells", "worst"}
        What ``split="optimal"`` makes small: the mean variance of a level averaged over the levels, the
        mean variance over all nodes, or the variance of the worst level.
    consistency : {"integer", "nonnegative", "linear", "none"}
        Whole numbers that add up; non-negative and additive; unbiased and additive; raw noisy nodes.
    fit : {"totals", "adaptive", "joint"}
        How negative estimates are mended. ``"totals"``: family by family from the top, which keeps the totals
        as good as least squares makes them. ``"adaptive"``: likewise, but large counts are left alone and
        small ones made smaller, as far as the noisy counts of a level speak for it; more accurate where
        most leaves are empty, and a few times slower. ``"joint"``: in one least-squares fit of all
        nodes, closest to the truth as a whole, but with totals that are too large where most leaves are
        empty.
    known : mapping or DataFrame, optional
        Counts that are public already, kept exactly: by level, as in ``{"total": 81203}`` or
        ``{"state": populations}`` (indexed like ``groupby(["state"]).size()``); or a frame of keys with a
        column ``count``, and perhaps ``at_least`` for the least that a node can hold. They come from the
        caller alone, are never compared with the records, and take none of the budget.
    confidence : float, optional
        For example 0.95: adds the columns ``lower`` and ``upper``, an interval that holds the true count with
        this probability.
    keep_measurements : bool, default False
        Adds ``measurement`` and ``noise_scale``: the noisy counts that the estimates were made from.
    rng : numpy.random.Generator, optional
        Makes the release repeatable, for tests and simulation: it is then not private.
    progress : bool, default False
        Shows the steps of the work on a bar, on standard error. Needs tqdm. See the notes.

    Returns
    -------
    pandas.DataFrame
        One row per node, from the root to the leaves: ``level`` (ordered categorical), the keys
        (missing below a node's depth), ``count`` and ``std_error`` (in counts; that of the unbiased
        linear estimate; 0 for what is known). ``.dp.level(name)`` selects a level.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `DomainError` and `ColumnsError` are special cases. Bad values in
        the records never raise.
    MissingExtraError
        If a bar is asked for, and tqdm is not installed.

    Warns
    -----
    DPTreeWarning
        If the released total may be noise alone, the privacy loss protects nobody, or the frame says that it
        was released itself.

    Notes
    -----
    **Privacy**: the release is differentially private for the stated loss, with respect to the neighbouring
    relation and privacy unit. The domain is public: rows, columns and types of the answer follow from it.
    Records whose keys it does not list are dropped silently; keys that are missing from some level on
    belong to the leaf of the shorter path, if the domain lists that. The steps of the progress bar follow
    from the plan alone. The time that it shows may depend on the records, so it is for whoever runs the
    release, and not for publishing.

    **Prefixes.** A tree of all prefixes, not in a list, needs no domain, and nobody can list it: only nodes
    with a large noisy count are released, each with a bound that holds for certain, and everything else is
    pooled. It needs an epsilon and a delta; see `plan_implicit` for its plan and `ImplicitPlan.release` for
    the table. With `Multiplicative` the nodes that reach a threshold are released, and nothing is pooled; see
    `ImplicitMultiplicativePlan.release`.

    **Counts right up to a factor.** With ``mechanism=Multiplicative(alpha=0.25)`` the table has the columns
    ``count`` and ``error_bound``, and does not add up. It needs an epsilon and a delta, and of the options
    from `split` on it takes `rng` and `progress` alone; see `MultiplicativePlan.release` for the table.

    See Also
    --------
    plan : the same release, described before anything is spent.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits, clinics = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
    >>> counts = dpt.tree_counts(visits, ["region", "district"], epsilon=1.0,
    ...                          domain=clinics[["region", "district"]].drop_duplicates())
    >>> list(counts.columns)
    ['level', 'region', 'district', 'count', 'std_error']
    """
    check_frame(frame)
    options: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "rho": rho,
        "neighbors": neighbors,
        "privacy_unit": privacy_unit,
        "max_contributions": max_contributions,
        "mechanism": mechanism,
        "alpha": alpha,
        "split": split,
        "level_weights": level_weights,
        "objective": objective,
        "consistency": consistency,
        "fit": fit,
        "known": known,
        "confidence": confidence,
        "keep_measurements": keep_measurements,
    }
    if isinstance(by, PrefixTree):
        return find_implicit_plan(by, domain=domain, **options).release(frame, rng=rng, progress=progress)
    return find_best_plan(domain_of(frame, by, domain), **options).release(frame, rng=rng, progress=progress)


@public
def tree_sums(
    frame: Any,
    columns: Hashable | list[Hashable],
    by: By,
    *,
    bounds: Any,
    granularity: Any = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    privacy_unit: Hashable | None = None,
    max_contributions: int | None = None,
    domain: Any = None,
    mechanism: Mechanism | AdditiveNoise = "auto",
    split: Split | Mapping[Hashable, float] = "optimal",
    level_weights: Mapping[Hashable, float] | None = None,
    objective: Objective = "levels",
    consistency: Consistency = "integer",
    fit: Fit = "totals",
    confidence: float | None = None,
    keep_measurements: bool = False,
    rng: np.random.Generator | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Add up columns over the records of every node of a hierarchy, under differential privacy.

    Parameters
    ----------
    frame : dataframe
        The records, one row each: pandas, polars (eager or lazy) or pyarrow.
    columns : hashable or list of hashable
        The column to add up, or several, which share the budget such that their squared errors, each beside
        the most that a row can add, have the least sum. Under add/remove these errors are then alike. A
        column may not be called as the table calls its own columns (``level``, ``count``, ``std_error`` and
        the like, the keys, or what is told of another column, as in ``cost_std_error``).
    by : sequence of hashable
        The key columns, from the coarsest to the finest.
    bounds : (float, float), or mapping from columns to such pairs
        The least and the greatest value of a row; what lies outside is clipped. Noise is in proportion to the
        larger of the two in size, so choose them tight; but never from the records.
    granularity : float, or mapping from columns to float, optional
        Values are brought to its nearest multiple, and noise lives on these multiples. By default a power of
        ten, of which 100,000 to a million fit between the bounds.
    epsilon, delta, rho, neighbors, privacy_unit, max_contributions, domain, mechanism, split, \
level_weights, objective, fit, keep_measurements, rng, progress
        As for `tree_counts`.
    consistency : {"integer", "nonnegative", "linear", "none"}
        Multiples of the granularity that add up; non-negative and additive; unbiased and additive; raw noisy
        nodes. Sums are kept non-negative only where no value can be negative.
    confidence : float, optional
        For example 0.95: adds the ends of an interval that holds the true sum, of the values as they were
        clipped and brought to the grid, with this probability.

    Returns
    -------
    pandas.DataFrame
        One row per node: ``level``, the keys, and for a column named ``cost`` its sum ``cost`` and
        ``cost_std_error``; if asked for, ``cost_lower``, ``cost_upper``, ``cost_measurement`` and
        ``cost_noise_scale``.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `DomainError` and `ColumnsError` are special cases. Bad values in
        the records never raise.

    Notes
    -----
    A row that lacks one of the values is dropped from all sums, like a row outside the domain. What is no
    number is missing; infinite values are clipped.

    **Privacy**: as for `tree_counts`. All columns together spend the stated loss once.

    See Also
    --------
    tree_means : sums divided by counts, with the budget divided between the two.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits, clinics = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
    >>> sums = dpt.tree_sums(visits, "cost", ["region"], bounds=(0, 500), epsilon=1.0,
    ...                      domain=clinics[["region"]].drop_duplicates())
    >>> list(sums.columns)
    ['level', 'region', 'cost', 'cost_std_error']
    """
    check_frame(frame)
    _check_order("tree_sums", frame, columns, by, domain)
    return plan_sums(
        domain_of(frame, by, domain),
        _quantities(columns, bounds, granularity),
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        privacy_unit=privacy_unit,
        max_contributions=max_contributions,
        mechanism=mechanism,
        split=split,
        level_weights=level_weights,
        objective=objective,
        consistency=consistency,
        fit=fit,
        confidence=confidence,
        keep_measurements=keep_measurements,
    ).release(frame, rng=rng, progress=progress)


@public
def tree_means(
    frame: Any,
    columns: Hashable | list[Hashable],
    by: By,
    *,
    bounds: Any,
    granularity: Any = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    privacy_unit: Hashable | None = None,
    max_contributions: int | None = None,
    domain: Any = None,
    mechanism: Mechanism | AdditiveNoise = "auto",
    split: Split | Mapping[Hashable, float] = "optimal",
    level_weights: Mapping[Hashable, float] | None = None,
    objective: Objective = "levels",
    consistency: Consistency = "integer",
    fit: Fit = "totals",
    known: Any = None,
    confidence: float | None = None,
    keep_measurements: bool = False,
    rng: np.random.Generator | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Average columns over the records of every node of a hierarchy, under differential privacy.

    Parameters
    ----------
    frame, columns, by, bounds, granularity
        As for `tree_sums`.
    epsilon, delta, rho, neighbors, privacy_unit, max_contributions, domain, mechanism, split, \
level_weights, objective, consistency, fit, known, confidence, keep_measurements, rng, progress
        As for `tree_counts`. The budget is divided between the sums and the counts such that the means will
        be most accurate.

    Returns
    -------
    pandas.DataFrame
        One row per node: ``level``, the keys, for a column named ``cost`` its mean ``cost`` and
        ``cost_std_error``, and ``count`` and ``std_error`` of the records that were averaged (then the ends
        of the intervals, and the measurements, if asked for; ``cost_measurement`` is a sum of differences
        from the middle of the bounds).

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `DomainError` and `ColumnsError` are special cases. Bad values in
        the records never raise.

    Notes
    -----
    What is added up is how much values differ from the middle of their bounds, which halves the noise, or
    better. The quotient of that sum and the released count, plus the middle, is the mean; it is cut to the
    bounds. So means times counts add up as the counts do, wherever nothing is cut or missing. (Quotients of
    the unbiased estimates, which do not add up, are more accurate by up to a tenth where a count is less than
    ten of its standard errors, and as accurate above.) The standard error is that of the quotient to first
    order (the delta method).

    A mean is missing, with its error, where the released count is less than one or less than four times its
    standard error: there a quotient would be noise, and its error unknown.

    The interval is laid around the unbiased estimates, by a method that needs no large count (Fieller, "Some
    problems in interval estimation", 1954). It is never missing, and holds the true mean of the clipped
    values with the stated probability in every node that has records; where little is known of the count,
    it is as wide as the bounds. Among those nodes alone whose mean is shown it may hold a little less often.

    A row that lacks one of the values is dropped, like a row outside the domain. So what is `known` must be
    counts of rows that lack none: with a published count of all rows, means are off by what is missing.

    **Privacy**: as for `tree_counts`. All sums and counts together spend the stated loss once.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits, clinics = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
    >>> means = dpt.tree_means(visits, "cost", ["region"], bounds=(0, 500), epsilon=1.0,
    ...                        domain=clinics[["region"]].drop_duplicates())
    >>> list(means.columns)
    ['level', 'region', 'cost', 'cost_std_error', 'count', 'std_error']
    """
    check_frame(frame)
    _check_order("tree_means", frame, columns, by, domain)
    return plan_means(
        domain_of(frame, by, domain),
        _quantities(columns, bounds, granularity),
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        privacy_unit=privacy_unit,
        max_contributions=max_contributions,
        mechanism=mechanism,
        split=split,
        level_weights=level_weights,
        objective=objective,
        consistency=consistency,
        fit=fit,
        known=known,
        confidence=confidence,
        keep_measurements=keep_measurements,
    ).release(frame, rng=rng, progress=progress)


@overload
def plan(
    domain: Domain | Tree,
    *,
    epsilon: float,
    delta: float,
    neighbors: Neighbors = ...,
    privacy_unit: Hashable | None = ...,
    max_contributions: int | None = ...,
    mechanism: Multiplicative,
) -> MultiplicativePlan: ...
@overload
def plan(
    domain: Domain | Tree,
    *,
    epsilon: float | None = ...,
    delta: float = ...,
    rho: float | None = ...,
    neighbors: Neighbors = ...,
    privacy_unit: Hashable | None = ...,
    max_contributions: int | None = ...,
    mechanism: Mechanism | AdditiveNoise = ...,
    alpha: None = ...,
    split: Split | Mapping[Hashable, float] = ...,
    level_weights: Mapping[Hashable, float] | None = ...,
    objective: Objective = ...,
    target: Mapping[Hashable, float] | None = ...,
    consistency: Consistency = ...,
    fit: Fit = ...,
    known: Any = ...,
    confidence: float | None = ...,
    keep_measurements: bool = ...,
    column: Hashable | None = ...,
    bounds: Any = ...,
    granularity: Any = ...,
) -> Plan: ...
@overload
def plan(
    domain: Domain | Tree,
    *,
    epsilon: float | None = ...,
    delta: float = ...,
    rho: float | None = ...,
    neighbors: Neighbors = ...,
    privacy_unit: Hashable | None = ...,
    max_contributions: int | None = ...,
    mechanism: Mechanism | AdditiveNoise = ...,
    alpha: float,
    split: Split | Mapping[Hashable, float] = ...,
    consistency: Consistency = ...,
    fit: Fit = ...,
    known: Any = ...,
    confidence: float | None = ...,
    keep_measurements: bool = ...,
    column: Hashable | None = ...,
    bounds: Any = ...,
    granularity: Any = ...,
) -> Plan | MultiplicativePlan: ...
@public
def plan(
    domain: Domain | Tree,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    privacy_unit: Hashable | None = None,
    max_contributions: int | None = None,
    mechanism: Mechanism | AdditiveNoise | Multiplicative = "auto",
    alpha: float | None = None,
    split: Split | Mapping[Hashable, float] = "optimal",
    level_weights: Mapping[Hashable, float] | None = None,
    objective: Objective = "levels",
    target: Mapping[Hashable, float] | None = None,
    consistency: Consistency = "integer",
    fit: Fit = "totals",
    known: Any = None,
    confidence: float | None = None,
    keep_measurements: bool = False,
    column: Hashable | None = None,
    bounds: Any = None,
    granularity: Any = None,
) -> Plan | MultiplicativePlan:
    """Describe a release before it happens. Spends nothing, and sees no records.

    Parameters
    ----------
    domain : Domain or Tree
        What is public: the labelled leaves, or for numbers alone the bare shape of the hierarchy.
    epsilon, delta, rho, neighbors, privacy_unit, max_contributions, mechanism, alpha, split, \
level_weights, objective, consistency, fit, known, confidence, keep_measurements
        As for `tree_counts`. The levels of a bare tree are called ``"total"``, ``"level_1"``, …, and what is
        known of one is an array with nan where nothing is.
    target : mapping, optional
        The standard errors that are wanted, by level, in counts (`relative` makes them from a share of a
        stated count). Finds the smallest epsilon for them, or with Gaussian noise and no `delta` the
        smallest rho, and the split that needs it. If `epsilon` or `rho` is stated too, it must be enough.
    column, bounds, granularity
        As for `tree_sums`: a column to add up, instead of counting records.

    Returns
    -------
    Plan
        With ``mechanism=Multiplicative(...)``, or where `alpha` speaks for it, a `MultiplicativePlan`.

    Raises
    ------
    ArgumentError
        If an argument cannot be used.

    Notes
    -----
    **Privacy**: a function of public arguments alone.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> tree = dpt.Tree.from_branching([50, 60, 30])
    >>> dpt.plan(tree, rho=0.5, split="uniform").noise_scales.round(3).tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    if column is None and (bounds is not None or granularity is not None):
        raise ArgumentError(
            "column",
            "must be given with bounds or a granularity: records are counted without.",
            hint='for example column="cost".',
        )
    options: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "rho": rho,
        "neighbors": neighbors,
        "privacy_unit": privacy_unit,
        "max_contributions": max_contributions,
        "mechanism": mechanism,
        "alpha": alpha,
        "split": split,
        "level_weights": level_weights,
        "objective": objective,
        "target": target,
        "consistency": consistency,
        "fit": fit,
        "known": known,
        "confidence": confidence,
        "keep_measurements": keep_measurements,
        "quantity": COUNT if column is None else _quantity(column, bounds, granularity),
    }
    return find_best_plan(domain, **options)


def domain_of(frame: Any, by: By, domain: Any) -> Domain:
    """Make the public domain of a release of records.

    Parameters
    ----------
    frame : dataframe
        The records. Their keys are looked at only for ``"observed"``, their types for ``"categories"``.
    by, domain
        As for `tree_counts`.

    Returns
    -------
    Domain

    Raises
    ------
    ArgumentError
        If no domain is given, or one that cannot be used.
    """
    names, derived = named(by)
    if isinstance(domain, Domain) and domain.by == names:
        if [levels.definition for levels in domain.derived] != [levels.definition for levels in derived]:
            raise ArgumentError(
                "domain",
                "has levels that are derived in another way.",
                hint="pass the public keys of the plain columns alone.",
            )
        return domain
    plain = [name for name in names if not any(name in levels.names for levels in derived)]
    if plain and isinstance(domain, str) and domain == "observed":
        domain = Domain.observed(key_frame(frame, plain), by=plain)
    elif plain and isinstance(domain, str) and domain == "categories":
        check_columns(frame, plain)
        domain = Domain.from_categories(frame, by=plain)
    elif plain and (domain is None or isinstance(domain, str)):
        raise ArgumentError(
            "domain",
            f"must be given for the keys {told(list(plain))}"
            f"{'; derived levels have their own' * bool(derived)}: "
            "which keys exist is itself information about the records."
            if domain is None
            else f"is unknown: {told(domain)}.",
            hint='pass a frame of the public keys, one row per leaf; or "observed" to state that the keys in '
            'the records are public, or "categories" that the categories of categorical keys are.',
        )
    return derived_domain(by, domain)


def _check_order(verb: str, frame: Any, columns: Any, by: Any, domain: Any) -> None:
    """Refuse what is added up and the keys, if each stands in the other's place.

    That is so if the domain has the one as keys and not the other; or if a list of texts was to be added up
    by a single column of numbers.
    """
    summed, named = (each if isinstance(each, list) else [each] for each in (columns, by))
    if not summed or not all(map(is_name, [*summed, *named])):
        return
    keys = list(domain) if isinstance(domain, pd.DataFrame) else list(getattr(domain, "by", ()))
    types = dict(frame.dtypes) if isinstance(frame, pd.DataFrame) else {}
    kinds = [{kind_of(types[name]) for name in names if name in types} for names in (summed, named)]
    swapped = isinstance(columns, list) and not isinstance(by, list) and kinds == [{"text"}, {"numbers"}]
    if swapped or (all(name in keys for name in summed) and not any(name in keys for name in named)):
        raise ArgumentError(
            "by",
            f"and `columns` seem to stand in each other's place: {told(by)} and {told(columns)}.",
            hint=f"first what is added up, then the keys: {verb}({told(by)}, {told(columns)}, ...).",
        )


def _quantity(column: Hashable, bounds: Any, granularity: Any) -> Quantity:
    """Describe one column that is to be added up."""
    if bounds is None:
        raise ArgumentError(
            "bounds",
            f"must be given for the column {told(column)}: how far one row can move its sum depends on them.",
            hint="for example bounds=(0, 500), known without looking at the records.",
        )
    return Quantity.of(column, bounds, granularity)


def _quantities(columns: Any, bounds: Any, granularity: Any) -> list[Quantity]:
    """Describe the columns that are to be added up; what a mapping lists, each column has of its own."""
    names = list(columns) if isinstance(columns, (list, pd.Index, np.ndarray)) else [columns]
    if not names:
        raise ArgumentError("columns", "names no column.", hint='for example "cost", or ["cost", "days"].')
    odd = [name for name in names if name is None or not is_name(name)]
    if odd:
        raise ColumnsError(
            "columns", "holds what cannot name a column", columns=odd, hint='for example ["cost", "days"].'
        )
    repeated = [name for place, name in enumerate(names) if name in names[:place]]
    if repeated:
        raise ColumnsError("columns", "names columns twice", columns=repeated, hint="name each column once.")
    own = {"bounds": bounds, "granularity": granularity}
    for argument, given in own.items():
        unlike = set(names) ^ set(given) if isinstance(given, Mapping) else set()
        if unlike:
            raise ColumnsError(
                argument, "must have an entry for each column and no other", columns=unlike,
                hint="pass a mapping from the columns, or one value for all of them.",
            )  # fmt: skip
    return [
        _quantity(name, *(given[name] if isinstance(given, Mapping) else given for given in own.values()))
        for name in names
    ]
