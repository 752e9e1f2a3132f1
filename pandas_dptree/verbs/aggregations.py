"""Named aggregations for `tree_agg`, and the plan for them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

from pandas_dptree.errors import ArgumentError, check_choice, is_name, kind_of_object, quote
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.output.frames import check_names
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.joint_search import plan_jointly, scale_of_count, scale_of_mean, scale_of_sum
from pandas_dptree.plans.options import NoisyOptions
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.signatures import public
from pandas_dptree.verbs.quantities import quantity_of

__all__ = ["Aggregation", "Word", "mean", "plan_aggregations", "sum"]

_FORMS = (
    '"count", "units", "count_per_unit", dpt.sum("cost", bounds=(0, 500)) or '
    'dpt.mean("cost", bounds=(0, 500))'
)

Word = Literal["count", "units", "count_per_unit"]
"""What is released of records and their units, without a column."""

_WORDS: tuple[Word, ...] = get_args(Word)


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
    domain: Domain | CrossedDomain, aggregations: Mapping[Hashable, Any], **options: Unpack[NoisyOptions]
) -> JointPlan:
    """Plan a release of named aggregations: see `pandas_dptree.plan_agg`."""
    counts, means, units, per_unit = _checked(aggregations)
    check_names(domain.by, [name for name in aggregations if name != COUNT.name], argument="aggregations")
    count = next(iter(counts), COUNT.name)
    quantities: dict[Hashable, Quantity | None] = {}
    scales: list[float] = []
    for name, given in aggregations.items():
        if name in per_unit:
            continue
        if name in counts:
            quantities[name] = COUNT
            scales.append(scale_of_count(len(means), shown=True))
        elif name in units:
            quantities[name] = None
            scales.append(1.0)
        elif name in means:
            centred = given.quantity.centred()
            quantities[name] = centred
            scales.append(scale_of_mean(centred))
        else:
            quantities[name] = given.quantity
            scales.append(scale_of_sum(given.quantity))
    if means and not counts:
        quantities[count] = COUNT
        scales.append(scale_of_count(len(means)))
    if not means and not per_unit:
        return plan_jointly(domain, quantities, scales, **options)
    return plan_jointly(
        domain,
        quantities,
        scales,
        means=tuple(means),
        count=count,
        shows_count=bool(counts),
        per_unit=next(iter(per_unit), None),
        **options,
    )


def _checked(aggregations: Mapping[Hashable, Any]) -> tuple[list[Hashable], ...]:
    """Check the aggregations: list the names of counts, of means, of distinct units, and of rows per unit."""
    if not isinstance(aggregations, Mapping) or not aggregations:
        raise ArgumentError(
            "aggregations",
            f"must be a mapping with at least one entry, not {quote(aggregations)}.",
            hint=f'for example {{"visits": "count"}}; the values are {_FORMS}.',
        )
    for name, given in aggregations.items():
        is_word = isinstance(given, str) and given in _WORDS
        if not is_name(name) or name is None or not (is_word or isinstance(given, Aggregation)):
            shown = quote(given, of=aggregations) if isinstance(given, str) else kind_of_object(given)
            missing = (
                "; for a sum or a mean, give the column and its bounds" if isinstance(given, str) else ""
            )
            if isinstance(given, str) and given == "nunique":
                missing = (
                    '; of distinct values, only privacy units can be counted, as "units": how many values of '
                    "another column one unit brings is not bounded"
                )
            raise ArgumentError(
                "aggregations",
                f"has an invalid entry, {quote(name, of=aggregations)}: {shown}{missing}.",
                hint=f"map names for the columns of the released table to {_FORMS}.",
            )
        if name == COUNT.name and given != "count":
            other = "a sum or a mean" if isinstance(given, Aggregation) else "counts of units"
            raise ArgumentError(
                "aggregations",
                f"cannot name {other} {quote(COUNT.name)}: tables use it for the count of records.",
                hint="choose another name.",
            )
    named = {word: [name for name, given in aggregations.items() if given == word] for word in _WORDS}
    for word, names in named.items():
        if len(names) > 1:
            raise ArgumentError(
                "aggregations",
                f"has the same count more than once: {quote(word)}.",
                hint="pass it for only one name.",
            )
    if named["units"] and len(named["units"]) == len(aggregations):
        raise ArgumentError(
            "aggregations",
            "counts distinct units alone.",
            hint='use tree_units, or add the number of their rows: {"visits": "count", "visitors": "units"}.',
        )
    if named["count_per_unit"] and not (named["units"] and named["count"]):
        raise ArgumentError(
            "aggregations",
            'divides "count" by "units", and lacks one of them.',
            hint='for example {"visits": "count", "visitors": "units", "visits_each": "count_per_unit"}.',
        )
    means = [
        name
        for name, given in aggregations.items()
        if isinstance(given, Aggregation) and given.statistic == "mean"
    ]
    return named["count"], means, named["units"], named["count_per_unit"]
