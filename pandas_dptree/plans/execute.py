"""The execution of plans: records → exact values → noisy values → estimates → the released table.

Everything secret is in the result of `exact_leaves`, and in `measured` before the call of `measure`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.intervals import intervals
from pandas_dptree.estimation.least_squares import (
    Measurements,
    Variances,
    independent_nodes,
    propagate,
)
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.arrays import clear_zeros, leaf_counts, leaf_sums
from pandas_dptree.ingest.contributions import LeafTally, leaf_totals, open_leaves
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.mechanisms.measure import measure
from pandas_dptree.mechanisms.sampling import ByteSource, random_words
from pandas_dptree.output.empty_tables import totals_of, usual_causes
from pandas_dptree.output.frames import check_names, prefix_of
from pandas_dptree.output.progress import Done, Step, nothing
from pandas_dptree.plans.doubts import doubts_of
from pandas_dptree.plans.measurement import Levels, Measured, Measurement
from pandas_dptree.plans.running import Finish, Origin, Outcome, Release, Resources
from pandas_dptree.plans.tree_plan import TreePlan
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.unit import check_rows_of_counts, check_rows_of_records

__all__ = [
    "Levels",
    "Measured",
    "causes_of",
    "column_prefix",
    "columns_of",
    "exact_leaves",
    "finishing_steps",
    "linear_estimates",
    "measured",
    "measurement_columns",
    "opened_leaves",
    "prepared",
    "prepared_with",
    "unbiased",
]


def prepared(plan: Measurement, data: Any) -> Release:
    """Prepare the release of records by a plan: see `AdditivePlan`."""
    if plan.count is not None:
        raise ArgumentError(
            "plan",
            "is a part of another one, which counts the records too.",
            hint="release the whole plan.",
        )
    if plan.quantity.column is not None:
        check_names(plan._key_columns, [plan.quantity.column], argument="column")

    return prepared_with(
        plan,
        lambda resources: exact_leaves(plan, [plan.quantity], data, resources),
        lambda columns, origin: plan._laid_out(columns, plan._attrs(origin)),
        usual_causes() if isinstance(data, np.ndarray) else causes_of([plan]),
    )


def prepared_with(
    plan: Measurement,
    exact: Callable[[Resources], Sequence[IntArray]],
    lay_out: Callable[[Mapping[Hashable, Levels], Origin], Any],
    causes: str,
    **details: Any,
) -> Release:
    """Prepare a release of what `exact` reads, into what `lay_out` makes of the columns.

    `causes` are those of a nearly empty table, and `details` further ones of the `Release`.
    """
    name = plan.quantity.name

    def read(resources: Resources) -> Finish:
        return partial(finish, exact(resources))

    def finish(leaves: Sequence[IntArray], origin: Origin, done: Done) -> Outcome:
        (values,) = measured([plan], leaves, origin.source, done)
        done()
        columns = columns_of(name, plan, values)
        doubts = doubts_of({name: (plan, values)}, plan.domain)
        linear = linear_estimates({name: plan}, [values], origin)
        total, error = plan._total(values)
        totals = totals_of({name: total, f"{column_prefix(name)}std_error": error}, {name: plan.quantity})
        del values  # measurements that the table does not show
        return Outcome(lay_out(columns, origin), totals, causes, doubts, linear)

    steps = finishing_steps({name: plan})
    return Release(plan=plan, read=read, effort=plan._shape.n_leaves, steps=steps, **details)


def causes_of(plans: Sequence[Measurement]) -> str:
    """Hint at the likely causes of a nearly empty release by plans for the same records."""
    columns = [plan.quantity.column for plan in plans if plan.quantity.column is not None]
    return usual_causes(plans[0].domain, values=columns, privacy_unit=plans[0].privacy_unit)


def finishing_steps(plans: Mapping[Hashable, Measurement]) -> list[Step]:
    """List the steps that release several quantities: those of `measured`, and one for the table."""
    n_nodes = sum(next(iter(plans.values()))._shape.level_sizes)
    steps = []
    for name in sorted(plans, key=lambda name: plans[name].count is not None):  # as in `measured`
        plan = plans[name]
        steps += [
            (f"adding noise to {name}", n_nodes),
            (f"estimating {name}", plan._estimator.passes * n_nodes),
        ]
    return [*steps, ("laying out the table", 4 * n_nodes)]  # takes about as long as integer estimates


def measured(
    plans: Sequence[Measurement], values: Sequence[Any], source: ByteSource, done: Done = nothing
) -> list[Measured]:
    """Measure exact values by plans that agree on all but the quantity and the noise.

    `values` are from `exact_leaves`. `done` is called between the `finishing_steps`, except before the last.
    Sums that are made of differences and of a count come after that count.
    """
    words = partial(random_words, source)
    results: dict[int, Measured] = {}
    for place in sorted(range(len(plans)), key=lambda place: plans[place].count is not None):
        plan = plans[place]
        if results:
            done()
        exact = plan._exact(values[place])
        measurements = measure(plan.noise, exact, plan.unit_noise_scales.tolist(), source)
        levels, excess = measurements[: plan.tree.depth + 1], measurements[plan.tree.depth + 1 :] or None
        noisy = _with_known(plan, levels)
        done()
        counts = None if plan.count is None else results[plans.index(plan.count)]
        if plan._estimator.linear:
            shown = _linear(plan, noisy, counts, excess)
        else:
            given = (noisy, plan._variances) if counts is None else sums_from_middle(plan, noisy, counts)
            shown = plan._estimates(given, excess, words)
        leaves_measured = levels[-1] if plan._covers_known_leaves else None
        results[place] = Measured(noisy, shown, leaves_measured, counts, excess)
    return [results[place] for place in range(len(plans))]


def column_prefix(name: Hashable) -> str:
    """Return the prefix of the columns that describe a value's accuracy."""
    return prefix_of(None if name == COUNT.name else name)


def columns_of(name: Hashable, plan: Measurement, values: Measured) -> dict[Hashable, Levels]:
    """Return the columns of a quantity by name, in the unit of the column."""
    prefix = column_prefix(name)
    columns: dict[Hashable, Levels] = {
        name: list(map(plan._in_column_units, values.shown)),
        f"{prefix}std_error": plan.node_std_errors,
    }
    if plan.confidence is not None:
        columns |= _interval_columns(plan, values, prefix)
    if "measurements" in plan.keep:
        columns |= measurement_columns(plan, values, prefix)
    if "linear" in plan.keep:
        columns[f"{prefix}linear"] = [
            np.asarray(plan._in_column_units(level), dtype=np.float64) for level in unbiased(plan, values)
        ]
    return columns


def _with_known(plan: Measurement, noisy: Sequence[IntArray | None]) -> list[IntArray | None]:
    """Replace measurements by known values; what is neither is 0, without precision."""
    return [
        np.where(exact, least, np.zeros(size, dtype=np.int64) if values is None else values)
        if exact.any()
        else values
        for values, exact, least, size in zip(
            noisy, plan.known.exact, plan.known.least, plan._shape.level_sizes, strict=True
        )
    ]


def sums_from_middle(
    plan: Measurement, noisy: Sequence[IntArray | None], counts: Measured
) -> tuple[Measurements, Variances]:
    r"""Return what an estimator is given to make sums of differences from a middle h, and of counts.

    Sums are :math:`x = t + h n` with the linear estimates t and n: an estimate that is kept from being
    negative has a mean above 0 in empty nodes, which h would multiply. The noise of t and n is independent,
    so least squares of each gives the best linear estimate of x. Non-negative estimates of a family depend on
    the linear ones, and on the variances :math:`V_t + h^2 V_n` of those from each child's subtree alone; but
    some need the measurements, :math:`t_v + h n_v` in each node that has both.
    """
    assert plan.count is not None
    if plan._estimator.of_measurements:
        both = [
            None if own is None or count is None else own + plan.quantity.shift * count
            for own, count in zip(noisy, counts.noisy, strict=True)
        ]
        if not plan._estimator.combines_levels:
            return both, plan._variances
        noise = plan._beside_count(plan._variances.noise, plan.count._variances.noise, 2)
        return both, propagate(plan.tree, noise)
    subtree = plan._beside_count(plan._variances.subtree, plan.count._variances.subtree, 2)
    return _linear(plan, noisy, counts), independent_nodes(plan.tree, subtree)


def _linear(
    plan: Measurement,
    noisy: Sequence[IntArray | None],
    counts: Measured | None,
    excess: Sequence[IntArray | None] | None = None,
) -> Levels:
    """Return the least-squares estimates; of sums, from those of the differences and of the counts."""
    own = plan._least_squares(noisy, excess)
    if plan.count is None or counts is None:
        return own
    return plan._beside_count(own, unbiased(plan.count, counts))


def unbiased(plan: Measurement, values: Measured) -> Levels:
    """Return the estimates to which `Measurement.node_std_errors` applies, in units."""
    if plan._estimator.unbiased:
        return values.shown
    return _linear(plan, values.noisy, values.count, values.excess)


def linear_estimates(
    plans: Mapping[Hashable, Measurement], values: Sequence[Measured], origin: Origin
) -> dict[str, Levels]:
    """Return the estimates of `unbiased` that tables do not show, in column units, for a ledger to keep."""
    if not origin.keeps_linear:
        return {}
    return {
        str(name): list(map(plan._in_column_units, plan._kept(unbiased(plan, each))))
        for (name, plan), each in zip(plans.items(), values, strict=True)
        if not plan._estimator.unbiased
    }


def _interval_columns(plan: Measurement, values: Measured, prefix: str) -> dict[Hashable, Levels]:
    """Compute an interval around each unbiased estimate, within the possible range."""
    ends = [
        intervals(*level, whole=True, shown=shown)
        for *level, shown in zip(
            unbiased(plan, values), plan._node_half_widths, *plan._possible_range, values.shown, strict=True
        )
    ]
    lower, upper = (
        [plan._in_column_units(end.astype(np.int64)) for end in levels] for levels in zip(*ends, strict=True)
    )
    return {f"{prefix}lower": lower, f"{prefix}upper": upper}


def measurement_columns(plan: Measurement, values: Measured, prefix: str) -> dict[Hashable, Levels]:
    """Return the noisy values and their noise scales, missing where nothing was measured."""
    measurements: list[npt.NDArray[Any]] = []
    scales = []
    for noisy, exact, scale, size in zip(
        values.noisy, plan.known.exact, plan._level_scales[:, None], plan._shape.level_sizes, strict=True
    ):
        unknown = np.broadcast_to(np.isfinite(scale) & ~exact, size)
        scales.append(np.where(unknown, plan._in_column_units(scale), np.nan))
        filled = np.zeros(size, dtype=np.int64) if noisy is None else noisy
        if plan.quantity == COUNT:
            measurements.append(np.ma.array(filled, mask=~unknown))
        else:
            measurements.append(np.where(unknown, plan._in_column_units(filled), np.nan))
    columns: dict[Hashable, Levels] = {f"{prefix}measurement": measurements, f"{prefix}noise_scale": scales}
    return columns if values.excess is None else columns | _excess_columns(plan, values.excess, prefix)


def _excess_columns(
    plan: Measurement, excess: Sequence[IntArray | None], prefix: str
) -> dict[Hashable, Levels]:
    """Return what was measured of the excess of each node above the leaves; missing for all others."""
    sizes = plan._shape.level_sizes
    measurements: list[npt.NDArray[Any]] = [
        np.ma.array(np.zeros(size, dtype=np.int64), mask=True) if values is None else np.ma.array(values)
        for values, size in zip([*excess, None], sizes, strict=True)
    ]
    scales = [*plan.unit_noise_scales[len(sizes) :], np.inf]
    return {
        f"{prefix}excess_measurement": measurements,
        f"{prefix}excess_noise_scale": [
            np.full(size, scale if np.isfinite(scale) else np.nan)
            for scale, size in zip(scales, sizes, strict=True)
        ],
    }


def exact_leaves(
    plan: TreePlan, quantities: Sequence[Quantity], data: Any, resources: Resources
) -> Sequence[IntArray]:
    """Add up each quantity over the records of each leaf, exactly. The result is secret."""
    if isinstance(data, np.ndarray) and len(quantities) == 1:
        return [_leaves_from_array(plan, quantities[0], data)]
    return leaf_totals(data, _domain_of_records(plan), quantities, **resources.bounding(plan))


def opened_leaves(
    plan: TreePlan, quantities: Sequence[Quantity], data: Any, bounding: Bounding
) -> tuple[Records, LeafTally]:
    """Open the records for `exact_leaves`; nothing is read yet."""
    return open_leaves(data, _domain_of_records(plan), quantities, bounding)


def _domain_of_records(plan: TreePlan) -> Domain:
    """Return the domain of a plan, or refuse records if it has none."""
    if plan.domain is None:
        raise ArgumentError(
            "data",
            f"must be an array of the {plan._shape.n_leaves} leaf counts, for a plan made from a Tree.",
            hint="plan with a Domain to release a frame of records.",
        )
    check_rows_of_records(plan.privacy_unit, plan.max_contributions)
    return plan.domain


def _leaves_from_array(plan: TreePlan, quantity: Quantity, data: npt.NDArray[Any]) -> IntArray:
    """Check leaf values that the caller has added up; structural zeros become 0."""
    check_rows_of_counts(plan.privacy_unit)
    leaves = (leaf_counts if quantity.non_negative else leaf_sums)(data, plan.tree)
    return leaves if plan.domain is None else clear_zeros(leaves, plan.domain)
