"""Means from noisy sums and counts: the columns that a table shows."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.ratios import independent, ratio_intervals
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.execute import Levels, Measured, column_prefix, measurement_columns, unbiased

__all__ = ["blank_below", "mean_columns", "mean_error"]

FloatArray = npt.NDArray[np.float64]

_MIN_COUNT = 4.0
"""A mean is shown if the count is at least this many of its standard errors, and at least one record.

In a sparse table chance makes small counts look larger than they are. At 3 to 4 standard errors, the errors
of means were up to 1.4 times those in the table; at 4 to 5, up to 1.1 times; from 5 on, as in the table.
"""

_MOST_ERROR = 1 / 8
"""And if its standard error is at most this part of the distance between the bounds.

Two standard errors to both sides are then at most half of it. Otherwise the noise of the sum is so large that
the mean may be anything, and is often one of the bounds.
"""


def mean_columns(
    name: Hashable, plan: AdditivePlan, sums: Measured, count_plan: AdditivePlan, counts: Measured
) -> dict[Hashable, Levels]:
    """Divide sums by counts, with the quotients' errors to first order: see `tree_means`."""
    unit = float(plan.quantity.unit)
    means, errors = [], []
    for total, count, error, count_error in zip(
        sums.shown, counts.shown, plan.node_std_errors, count_plan.node_std_errors, strict=True
    ):
        records = np.where(count >= np.maximum(1.0, _MIN_COUNT * count_error), count, np.nan)
        mean = np.clip(total / records, plan.quantity.low, plan.quantity.high)
        of_mean = np.hypot(error, unit * mean * count_error) / records
        enough = of_mean <= _MOST_ERROR * unit * (plan.quantity.high - plan.quantity.low)
        means.append(_from_middle(plan, np.where(enough, mean, np.nan)))
        errors.append(np.where(enough, of_mean, np.nan))
    prefix = column_prefix(name)
    columns: dict[Hashable, Levels] = {name: means, f"{prefix}std_error": errors}
    if plan.confidence is not None:
        ends = [
            [_from_middle(plan, end) for end in level]
            for level in _mean_intervals(plan, sums, count_plan, counts)
        ]
        # They surround the unbiased estimates, and are extended to the means that are shown.
        columns[f"{prefix}lower"] = [np.fmin(low, mean) for (low, _), mean in zip(ends, means, strict=True)]
        columns[f"{prefix}upper"] = [np.fmax(high, mean) for (_, high), mean in zip(ends, means, strict=True)]
    return columns | (measurement_columns(plan, sums, prefix) if "measurements" in plan.keep else {})


def mean_error(plan: AdditivePlan, n_rows: float) -> float:
    """Return the error of a mean of so many rows on the last level, near the middle of the bounds."""
    return float(plan.std_errors[-1]) / n_rows


def blank_below(plan: AdditivePlan, count_plan: AdditivePlan) -> float:
    """Return about how many rows of a node on the finest level are enough for its mean to be shown."""
    width = float(plan.quantity.unit) * (plan.quantity.high - plan.quantity.low)
    enough = float(plan.std_errors[-1]) / (_MOST_ERROR * width)
    return max(1.0, _MIN_COUNT * float(count_plan.std_errors[-1]), enough)


def _from_middle(plan: AdditivePlan, units: FloatArray) -> FloatArray:
    """Convert units from the middle of the bounds to values, clipped to the bounds as floats."""
    quantity = plan.quantity
    low, high = (float((end + quantity.shift) * quantity.unit) for end in (quantity.low, quantity.high))
    return np.clip(float(quantity.origin) + plan._in_column_units(units), low, high)


def _mean_intervals(
    plan: AdditivePlan, sums: Measured, count_plan: AdditivePlan, counts: Measured
) -> list[tuple[FloatArray, FloatArray]]:
    """Return the ends of the intervals around the means of each level, in units of the sums."""
    assert plan.confidence is not None
    unit = float(plan.quantity.unit)
    return [
        ratio_intervals(
            total,
            count,
            joint_cumulants=independent(((error / unit) ** 2, count_error**2), (fourth, count_fourth)),
            bounds=(plan.quantity.low, plan.quantity.high),
            confidence=plan.confidence,
        )
        for total, count, error, count_error, fourth, count_fourth in zip(
            unbiased(plan, sums),
            unbiased(count_plan, counts),
            plan.node_std_errors,
            count_plan.node_std_errors,
            plan.error_cumulants,
            count_plan.error_cumulants,
            strict=True,
        )
    ]
