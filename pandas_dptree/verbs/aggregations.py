"""Named aggregations for `tree_agg`, and the plan for them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack

from pandas_dptree.errors import ArgumentError, check_choice, is_name, kind_of_object, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.output.frames import check_names
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.joint_search import plan_jointly, scale_of_count, scale_of_mean, scale_of_sum
from pandas_dptree.plans.options import NoisyOptions
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.signatures import public
from pandas_dptree.verbs.quantities import quantity_of

__all__ = ["Aggregation", "mean", "plan_aggregations", "sum"]

_FORMS = '"count", dpt.sum("cost", bounds=(0, 500)) or dpt.mean("cost", bounds=(0, 500))'


@dataclass(frozen=True)
class Aggregation:
    """The `statistic` ("sum" or "mean") of a `quantity`, for `tree_agg`. Made by `sum` and `mean`."""

    statistic: Literal["sum", "mean"]
    quantity: Quantity

    def __post_init__(self) -> None:
        """Check the statistic and the quantity."""
        check_choice("statistic", self.statistic, ("sum", "mean"))
        quantity = self.quantity
        if not isinstance(quantity, Quantity) or quantity.column is None or quantity.shift:
            raise ArgumentError(
                "quantity",
                "must describe the values of a column.",
                hint='use dpt.sum("cost", bounds=(0, 500)) or dpt.mean("cost", bounds=(0, 500)).',
            )


@public
def sum(column: Hashable, *, bounds: Any, granularity: Any = None) -> Aggregation:
    """Describe the sum of a column, for `tree_agg`.

    Parameters
    ----------
    column : hashable
        The column of the records.
    bounds : (float, float)
        The smallest and the largest value of a row; values outside are clipped. Never computed from the
        records.
    granularity : float, optional
        Values are rounded to its multiples; by default as for `tree_sums`.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> dpt.sum("cost", bounds=(0, 500)).statistic
    'sum'
    """
    return Aggregation("sum", quantity_of(column, bounds, granularity))


@public
def mean(column: Hashable, *, bounds: Any, granularity: Any = None) -> Aggregation:
    """Describe the mean of a column, for `tree_agg`.

    Parameters
    ----------
    column, bounds, granularity
        As for `sum`, which raises the same errors.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> dpt.mean("cost", bounds=(0, 500)).quantity.column
    'cost'
    """
    return Aggregation("mean", quantity_of(column, bounds, granularity))


def plan_aggregations(
    domain: Domain, aggregations: Mapping[Hashable, Any], **options: Unpack[NoisyOptions]
) -> JointPlan:
    """Plan a release of named aggregations: see `pandas_dptree.plan_agg`."""
    counts, means = _checked(aggregations)
    check_names(domain.by, [name for name in aggregations if name != COUNT.name], argument="aggregations")
    count = next(iter(counts), COUNT.name)
    quantities: dict[Hashable, Quantity] = {}
    scales: list[float] = []
    for name, given in aggregations.items():
        if name in counts:
            quantities[name] = COUNT
            scales.append(scale_of_count(len(means), shown=True))
        elif name in means:
            quantities[name] = given.quantity.centred()
            scales.append(scale_of_mean(quantities[name]))
        else:
            quantities[name] = given.quantity
            scales.append(scale_of_sum(given.quantity))
    if means and not counts:
        quantities[count] = COUNT
        scales.append(scale_of_count(len(means)))
    if not means:
        return plan_jointly(domain, quantities, scales, **options)
    return plan_jointly(
        domain,
        quantities,
        scales,
        means=tuple(means),
        count=count,
        shows_count=bool(counts),
        **options,
    )


def _checked(aggregations: Mapping[Hashable, Any]) -> tuple[list[Hashable], list[Hashable]]:
    """Check the aggregations, and list the names of counts and of means."""
    if not isinstance(aggregations, Mapping) or not aggregations:
        raise ArgumentError(
            "aggregations",
            f"must be a mapping with at least one entry, not {quote(aggregations)}.",
            hint=f'for example {{"visits": "count"}}; the values are {_FORMS}.',
        )
    for name, given in aggregations.items():
        is_count = isinstance(given, str) and given == "count"
        if not is_name(name) or name is None or not (is_count or isinstance(given, Aggregation)):
            shown = quote(given, of=aggregations) if isinstance(given, str) else kind_of_object(given)
            missing = (
                "; for a sum or a mean, give the column and its bounds" if isinstance(given, str) else ""
            )
            raise ArgumentError(
                "aggregations",
                f"has an invalid entry, {quote(name, of=aggregations)}: {shown}{missing}.",
                hint=f"map names for the columns of the released table to {_FORMS}.",
            )
        if name == COUNT.name and not is_count:
            raise ArgumentError(
                "aggregations",
                f"cannot name a sum or a mean {quote(COUNT.name)}: tables use it for the count of records.",
                hint="choose another name.",
            )
    counts = [name for name, given in aggregations.items() if not isinstance(given, Aggregation)]
    if len(counts) > 1:
        raise ArgumentError(
            "aggregations", "has the same count more than once.", hint='pass "count" for only one name.'
        )
    means = [
        name
        for name, given in aggregations.items()
        if isinstance(given, Aggregation) and given.statistic == "mean"
    ]
    return counts, means
