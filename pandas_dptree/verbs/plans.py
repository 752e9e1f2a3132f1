"""Functions that plan releases."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Unpack, cast, overload

from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.names import check_by
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise, Mechanism
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.mechanisms.private_levels import PrivateMechanism
from pandas_dptree.plans import joint_search
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.crossed import CrossedPlan
from pandas_dptree.plans.crossed_search import find_crossed_plan
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.distribution_search import find_distribution_plan
from pandas_dptree.plans.implicit import ImplicitPlan
from pandas_dptree.plans.implicit_multiplicative import ImplicitMultiplicativePlan
from pandas_dptree.plans.implicit_search import find_implicit_plan
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.multiplicative import MultiplicativePlan
from pandas_dptree.plans.options import (
    AGGREGATIONS,
    DISTRIBUTION,
    JOINT,
    PLAN,
    QUANTILES,
    SUMS,
    UNIT_PLAN,
    NoisyOptions,
    PlanOptions,
    takes,
)
from pandas_dptree.plans.quantile_search import find_quantile_plan
from pandas_dptree.plans.quantiles import QuantilePlan
from pandas_dptree.plans.search import find_best_plan
from pandas_dptree.plans.unit_search import find_unit_plan
from pandas_dptree.plans.units import UnitPlan
from pandas_dptree.privacy.quantity import COUNT
from pandas_dptree.verbs.aggregations import Aggregation, Word, plan_aggregations
from pandas_dptree.verbs.quantities import quantities_of, quantity_of

__all__ = ["plan", "plan_agg", "plan_distribution", "plan_means", "plan_quantiles", "plan_sums", "plan_units"]

AnyTablePlan = AdditivePlan | CrossedPlan | MultiplicativePlan | ImplicitPlan | ImplicitMultiplicativePlan


@overload
def plan(
    domain: Domain | Tree, *, mechanism: Multiplicative, **options: Unpack[PlanOptions]
) -> MultiplicativePlan: ...
@overload
def plan(
    domain: PrefixTree, *, mechanism: Multiplicative, **options: Unpack[PlanOptions]
) -> ImplicitMultiplicativePlan: ...
@overload
def plan(
    domain: Domain | Tree,
    *,
    private_keys: None = ...,
    mechanism: Mechanism | AdditiveNoise = ...,
    column: Hashable | None = ...,
    bounds: Any = ...,
    granularity: Any = ...,
    **options: Unpack[PlanOptions],
) -> AdditivePlan: ...
@overload
def plan(
    domain: CrossedDomain,
    *,
    private_keys: None = ...,
    mechanism: Mechanism | AdditiveNoise = ...,
    column: Hashable | None = ...,
    bounds: Any = ...,
    granularity: Any = ...,
    **options: Unpack[PlanOptions],
) -> CrossedPlan: ...
@overload
def plan(
    domain: PrefixTree, *, mechanism: PrivateMechanism = ..., **options: Unpack[PlanOptions]
) -> ImplicitPlan: ...
@overload
def plan(
    domain: Domain | None,
    *,
    private_keys: Sequence[Hashable],
    mechanism: PrivateMechanism = ...,
    **options: Unpack[PlanOptions],
) -> ImplicitPlan: ...
@takes(*PLAN)
def plan(
    domain: Domain | CrossedDomain | Tree | PrefixTree | None,
    *,
    private_keys: Sequence[Hashable] | None = None,
    column: Hashable | None = None,
    bounds: Any = None,
    granularity: Any = None,
    **options: Any,
) -> AnyTablePlan:
    """Plan a release of counts, or of sums of one column.

    **Privacy**: a plan is a function of public arguments alone. It spends nothing, and sees no records.

    Parameters
    ----------
    domain : Domain, CrossedDomain, Tree, BitPrefixes or CharPrefixes
        The public hierarchy: its labelled leaves, those of several that `cross` crosses, only its shape, or
        all prefixes. The levels of a tree without labels are called ``"total"``, ``"level_1"``, …; their
        `known` counts are arrays with nan for unknown ones. None if all keys are private.
    private_keys : sequence of hashable, optional
        The columns below those of `domain` whose keys nobody can list, as for `tree_counts`.
    column, bounds, granularity
        As for `tree_sums`: a column to add up, instead of counting records.
    **options

    Returns
    -------
    AdditivePlan
        Of crossed hierarchies a `CrossedPlan`. With prefixes or `private_keys` an `ImplicitPlan`. With
        ``mechanism=Multiplicative(...)``, a `MultiplicativePlan`, or an `ImplicitMultiplicativePlan` of
        prefixes.

    Examples
    --------
    >>> import pandas as pd
    >>> import pandas_dptree as dpt
    >>> tree = dpt.Tree.from_branching([50, 60, 30])
    >>> dpt.plan(tree, rho=0.5, split="uniform").noise_scales.round(3).tolist()
    [2.0, 2.0, 2.0, 2.0]
    >>> addresses = dpt.prefixes("ip", bits=[8, 16, 24, 32], notation="ipv4")
    >>> visits = pd.DataFrame({"ip": ["10.0.0.1"] * 500 + ["10.0.7.7"] * 3})
    >>> counts = dpt.plan(addresses, epsilon=1.0, delta=1e-6).release(visits)
    >>> counts.loc[counts["level"].eq("ip/32") & ~counts["other"], "ip/32"].tolist()
    ['10.0.0.1/32']
    """
    values = {"column": column, "bounds": bounds, "granularity": granularity}
    if isinstance(domain, CrossedDomain) and private_keys is None:
        quantity = COUNT if column is None else quantity_of(column, bounds, granularity)
        return find_crossed_plan(domain, quantity, **options)
    if private_keys is not None or isinstance(domain, PrefixTree):
        keys = "a tree of all prefixes" if private_keys is None else "private keys"
        for name, given in values.items():
            if given is not None:
                raise ArgumentError(
                    name,
                    f"has no meaning with {keys}: only records can be counted.",
                    hint="leave it out; for sums, release the counts first, and then pass "
                    "domain=counts.dp.domain().",
                )
        if private_keys is None:
            return find_implicit_plan(cast(PrefixTree, domain), **options)
        columns = check_by(private_keys, argument="private_keys")
        tree = PrivateKeys(columns=columns, domain=cast(Domain | None, domain))
        return find_implicit_plan(tree, **options)
    _check_public(domain)
    if column is None and (bounds is not None or granularity is not None):
        raise ArgumentError(
            "column",
            "must be given with `bounds` or `granularity`; without a column, records are counted.",
            hint='for example column="cost".',
        )
    quantity = COUNT if column is None else quantity_of(column, bounds, granularity)
    return find_best_plan(cast(Domain | Tree, domain), quantity, **options)


@takes(*SUMS)
def plan_sums(
    domain: Domain | CrossedDomain,
    *,
    columns: Hashable | list[Hashable],
    bounds: Any,
    granularity: Any = None,
    **options: Unpack[NoisyOptions],
) -> JointPlan:
    """Plan a release of sums of several columns.

    **Privacy**: a plan is a function of public arguments alone. It spends nothing, and sees no records.

    Parameters
    ----------
    domain : Domain
        The public keys.
    columns, bounds, granularity
        As for `tree_sums`.
    **options

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> regions = dpt.Domain.from_frame(dpt.datasets.clinics()[["region"]].drop_duplicates(), by=["region"])
    >>> list(dpt.plan_sums(regions, columns=["cost", "age"], bounds=(0, 500), epsilon=1.0).plans)
    ['cost', 'age']
    """
    _check_public(domain, allowed=(Domain, CrossedDomain))
    return joint_search.plan_sums(domain, quantities_of(columns, bounds, granularity), **options)


@takes(*JOINT)
def plan_means(
    domain: Domain | CrossedDomain,
    *,
    columns: Hashable | list[Hashable],
    bounds: Any,
    granularity: Any = None,
    **options: Unpack[NoisyOptions],
) -> JointPlan:
    """Plan a release of means of columns.

    **Privacy**: a plan is a function of public arguments alone. It spends nothing, and sees no records.

    Parameters
    ----------
    domain, columns, bounds, granularity
        As for `plan_sums`, which raises the same errors.
    **options

    Returns
    -------
    JointPlan
        With a plan for each column, of the differences of its values from the middle of their bounds, and one
        named ``"count"`` for the records.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> regions = dpt.Domain.from_frame(dpt.datasets.clinics()[["region"]].drop_duplicates(), by=["region"])
    >>> list(dpt.plan_means(regions, columns="cost", bounds=(0, 500), epsilon=1.0).plans)
    ['cost', 'count']
    """
    _check_public(domain, allowed=(Domain, CrossedDomain))
    return joint_search.plan_means(domain, quantities_of(columns, bounds, granularity), **options)


@takes(*AGGREGATIONS)
def plan_agg(
    domain: Domain | CrossedDomain,
    aggregations: Mapping[Hashable, Word | Aggregation],
    **options: Unpack[NoisyOptions],
) -> JointPlan:
    """Plan a release of counts, sums and means together.

    **Privacy**: a plan is a function of public arguments alone. It spends nothing, and sees no records.

    Parameters
    ----------
    domain : Domain
        The public keys.
    aggregations : mapping
        As for `tree_agg`, which raises the same errors.
    **options

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> regions = dpt.Domain.from_frame(dpt.datasets.clinics()[["region"]].drop_duplicates(), by=["region"])
    >>> plan = dpt.plan_agg(
    ...     regions, {"visits": "count", "cost": dpt.mean("cost", bounds=(0, 500))}, epsilon=1.0)
    >>> plan.means, plan.count
    (('cost',), 'visits')
    """
    _check_public(domain, allowed=(Domain, CrossedDomain))
    return plan_aggregations(domain, aggregations, **options)


@takes(*UNIT_PLAN)
def plan_units(domain: Domain | Tree, **options: Unpack[NoisyOptions]) -> UnitPlan:
    """Plan a release of the number of distinct units in every node.

    **Privacy**: a plan is a function of public arguments alone. It spends nothing, and sees no records.

    Parameters
    ----------
    domain : Domain or Tree
        The public hierarchy. A plan for a `Tree`, which has no labels, shows errors and cannot be released.
    **options

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> tree = dpt.Tree.from_branching([6, 6, 20])
    >>> plan = dpt.plan_units(tree, epsilon=1.0, privacy_unit="person", max_nodes=4)
    >>> plan.max_nodes
    (1, 4, 4, 4)
    """
    _check_public(domain)
    return find_unit_plan(domain, **options)


@takes(*DISTRIBUTION)
def plan_distribution(
    column: Hashable,
    *,
    bins: Any,
    bounds: Any = None,
    domain: Domain | None = None,
    **options: Unpack[NoisyOptions],
) -> DistributionPlan:
    """Plan a release of the distribution of a column.

    **Privacy**: a plan is a function of public arguments alone. It spends nothing, and sees no records. In a
    release, a row is counted once on each level of the tree over the bins, for each level of groups. These
    measurements compose; more groups in a level cost nothing.

    Parameters
    ----------
    column, bounds, bins
        As for `release_distribution`.
    domain : Domain, optional
        The groups. Their levels share the budget evenly, which minimizes the mean variance of a level,
        averaged over the levels. Each level is estimated separately: groups need not agree with the groups
        they contain.
    **options

    Returns
    -------
    DistributionPlan
        Without a privacy unit, one with `max_contributions` above 1 is for releases of exact counts.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> dpt.plan_distribution("fare", bounds=(0, 200), bins=256, epsilon=1.0).errors.round(2).tolist()
    [8.23]
    """
    return find_distribution_plan(column, bins=bins, bounds=bounds, domain=domain, **options)


@takes(*QUANTILES)
def plan_quantiles(
    column: Hashable,
    q: Any,
    *,
    bounds: Any = None,
    granularity: Any = None,
    bins: Any = None,
    domain: Domain | None = None,
    **options: Unpack[NoisyOptions],
) -> QuantilePlan:
    """Plan a release of quantiles of a column.

    **Privacy**: a plan is a function of public arguments alone. It spends nothing, and sees no records.

    Parameters
    ----------
    column, q, bounds, granularity, bins
        As for `quantiles`, which raises the same errors.
    domain : Domain, optional
        The groups, on each level of a hierarchy.
    **options

    Returns
    -------
    QuantilePlan
        Its `release` returns what `quantiles` does.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> plan = dpt.plan_quantiles("age", [0.25, 0.5, 0.75], bounds=(0, 120), epsilon=1.0)
    >>> plan.mechanism_name, plan.to_frame()["measured"].tolist()
    ('permute_and_flip', ['permute_and_flip, granularity 1'])
    """
    return find_quantile_plan(
        column,
        q,
        bounds=bounds,
        granularity=granularity,
        bins=bins,
        domain=domain,
        **options,
    )


def _check_public(domain: object, *, allowed: tuple[type[Any], ...] = (Domain, Tree)) -> None:
    """Raise unless `domain` is a public description of the hierarchy: records are not allowed."""
    if not isinstance(domain, allowed):
        kinds = " or ".join(f"a {kind.__name__}" for kind in allowed)
        raise ArgumentError(
            "domain",
            f"must be {kinds}, not {kind_of_object(domain)}: a plan never sees records.",
            hint="make one from public keys with dpt.Domain.from_frame(places, by=[...]), or from derived "
            "levels with dpt.derived_domain; for an array, use array.dp.plan.",
        )
