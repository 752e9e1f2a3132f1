"""Plans of releases of records, from the keys and the domain as the verbs take them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Unpack

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.ingest.frames import check_frame
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.options import (
    AGGREGATIONS,
    DISTRIBUTION,
    JOINT,
    PLAN,
    QUANTILES,
    RUNNING,
    SUMS,
    UNIT_PLAN,
    NoisyOptions,
    takes,
)
from pandas_dptree.plans.quantiles import QuantilePlan
from pandas_dptree.plans.units import UnitPlan
from pandas_dptree.verbs import plans
from pandas_dptree.verbs.aggregations import Aggregation, Word
from pandas_dptree.verbs.domains import CrossedBy, domain_of, hierarchy_of, keys_of

__all__ = [
    "plan", "plan_agg", "plan_distribution", "plan_means", "plan_quantiles", "plan_sums", "plan_units",
    "released",
]  # fmt: skip


@takes(*PLAN)
def plan(
    frame: Any,
    by: By | PrefixTree,
    *,
    domain: Any = None,
    private_keys: Sequence[Hashable] | None = None,
    column: Hashable | None = None,
    bounds: Any = None,
    granularity: Any = None,
    **options: Unpack[NoisyOptions],
) -> plans.AnyTablePlan:
    """Plan a release of these records: see `pandas_dptree.plan`.

    Spends nothing. The records are read only if `domain` is ``"observed"``.
    """
    hierarchy, private = hierarchy_of(frame, by, domain, private_keys)
    make: Callable[..., plans.AnyTablePlan] = plans.plan
    return make(
        hierarchy, private_keys=private, column=column, bounds=bounds, granularity=granularity, **options
    )


@takes(*SUMS)
def plan_sums(
    frame: Any,
    by: By | CrossedBy,
    *,
    columns: Hashable | list[Hashable],
    bounds: Any,
    granularity: Any = None,
    domain: Any = None,
    **options: Unpack[NoisyOptions],
) -> JointPlan:
    """Plan a release of sums of several columns: see `pandas_dptree.plan_sums`."""
    keys = keys_of(frame, by, domain)
    return plans.plan_sums(keys, columns=columns, bounds=bounds, granularity=granularity, **options)


@takes(*JOINT)
def plan_means(
    frame: Any,
    by: By | CrossedBy,
    *,
    columns: Hashable | list[Hashable],
    bounds: Any,
    granularity: Any = None,
    domain: Any = None,
    **options: Unpack[NoisyOptions],
) -> JointPlan:
    """Plan a release of means of columns: see `pandas_dptree.plan_means`."""
    keys = keys_of(frame, by, domain)
    return plans.plan_means(keys, columns=columns, bounds=bounds, granularity=granularity, **options)


@takes(*AGGREGATIONS)
def plan_agg(
    frame: Any,
    by: By | CrossedBy,
    aggregations: Mapping[Hashable, Word | Aggregation],
    *,
    domain: Any = None,
    **options: Unpack[NoisyOptions],
) -> JointPlan:
    """Plan a release of counts, sums and means together: see `pandas_dptree.plan_agg`."""
    return plans.plan_agg(keys_of(frame, by, domain), aggregations, **options)


@takes(*UNIT_PLAN)
def plan_units(frame: Any, by: By, *, domain: Any = None, **options: Unpack[NoisyOptions]) -> UnitPlan:
    """Plan a release of counts of distinct units: see `pandas_dptree.plan_units`."""
    return plans.plan_units(domain_of(frame, by, domain), **options)


@takes(*DISTRIBUTION)
def plan_distribution(
    frame: Any,
    column: Hashable,
    *,
    bins: Any,
    bounds: Any = None,
    by: By | None = None,
    domain: Any = None,
    **options: Unpack[NoisyOptions],
) -> DistributionPlan:
    """Plan a release of a distribution: see `pandas_dptree.plan_distribution`.

    Spends nothing. `by` and `domain` are those of `pandas_dptree.release_distribution`; the records are read
    only if `domain` is ``"observed"``.
    """
    groups = _groups(frame, by, domain)
    return plans.plan_distribution(column, bins=bins, bounds=bounds, domain=groups, **options)


@takes(*QUANTILES)
def plan_quantiles(
    frame: Any,
    column: Hashable,
    q: Any,
    *,
    bounds: Any = None,
    granularity: Any = None,
    bins: Any = None,
    by: By | None = None,
    domain: Any = None,
    **options: Unpack[NoisyOptions],
) -> QuantilePlan:
    """Plan a release of quantiles: see `pandas_dptree.plan_quantiles`.

    Spends nothing. `by` and `domain` are those of `pandas_dptree.quantiles`; the records are read only if
    `domain` is ``"observed"``.
    """
    return plans.plan_quantiles(
        column,
        q,
        bounds=bounds,
        granularity=granularity,
        bins=bins,
        domain=_groups(frame, by, domain),
        **options,
    )


def _groups(frame: Any, by: By | None, domain: Any) -> Domain | None:
    """Make the groups of a column; None for all records together."""
    if by is None and domain is not None:
        raise ArgumentError(
            "domain", "has no meaning without groups.", hint='name the key columns, for example by=["state"].'
        )
    return None if by is None else domain_of(frame, by, domain)


def released(
    planned: Callable[..., Any],
    frame: Any,
    *arguments: Any,
    check: Callable[[Any], object] = lambda plan: None,
    **options: Any,
) -> Any:
    """Release records by the plan that a function above makes of them, with the options of both.

    `check` may refuse the plan before anything is charged.
    """
    check_frame(frame)
    running = {name: options.pop(name) for name in RUNNING if name in options}
    plan = planned(frame, *arguments, **options)
    check(plan)
    return plan.release(frame, **running)
