"""Means from noisy sums and counts: the columns that a table shows."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.ratios import independent, ratio_intervals
from pandas_dptree.plans.execute import column_prefix, measurement_columns, unbiased
from pandas_dptree.plans.measurement import Levels, Measured, Measurement

__all__ = ["blank_below", "mean_columns", "mean_error", "quotient_columns"]

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
    name: Hashable, plan: Measurement, sums: Measured, count_plan: Measurement, counts: Measured
) -> dict[Hashable, Levels]:
    """Divide sums by counts, with the quotients' errors to first order: see `tree_means`."""
    bounds = plan.quantity.low, plan.quantity.high
    columns = quotient_columns(name, (plan, sums), (count_plan, counts), bounds=bounds)
    prefix = column_prefix(name)
    return columns | (measurement_columns(plan, sums, prefix) if "measurements" in plan.keep else {})


def quotient_columns(
    name: Hashable,
    numerator: tuple[Measurement, Measured],
    denominator: tuple[Measurement, Measured],
    *,
    bounds: tuple[int, int],
) -> dict[Hashable, Levels]:
    """Divide what one plan measured by the counts of another, in units of the former between `bounds`."""
    (plan, sums), (count_plan, counts) = numerator, denominator
    unit = float(plan.quantity.unit)
    means, errors = [], []
    for total, count, error, count_error in zip(
        sums.shown, counts.shown, plan.node_std_errors, count_plan.node_std_errors, strict=True
    ):
        records = np.where(count >= np.maximum(1.0, _MIN_COUNT * count_error), count, np.nan)
        mean = np.clip(total / records, *bounds)
        of_mean = np.hypot(error, unit * mean * count_error) / records
        enough = of_mean <= _MOST_ERROR * unit * (bounds[1] - bounds[0])
        means.append(_from_middle(plan, np.where(enough, mean, np.nan), bounds))
        errors.append(np.where(enough, of_mean, np.nan))
    prefix = column_prefix(name)
    columns: dict[Hashable, Levels] = {name: means, f"{prefix}std_error": errors}
    if plan.confidence is not None:
        ends = [
            [_from_middle(plan, end, bounds) for end in level]
            for level in _quotient_intervals(plan, sums, count_plan, counts, bounds)
        ]
        # They surround the unbiased estimates, and are extended to the means that are shown.
        columns[f"{prefix}lower"] = [np.fmin(low, mean) for (low, _), mean in zip(ends, means, strict=True)]
        columns[f"{prefix}upper"] = [np.fmax(high, mean) for (_, high), mean in zip(ends, means, strict=True)]
    return columns


def mean_error(plan: Measurement, n_rows: float) -> float:
    """Return the error of a mean of so many rows on the last level, near the middle of the bounds."""
    return float(plan.std_errors[-1]) / n_rows


def blank_below(plan: Measurement, count_plan: Measurement) -> float:
    """Return about how many rows of a node on the finest level are enough for its mean to be shown."""
    width = float(plan.quantity.unit) * (plan.quantity.high - plan.quantity.low)
    enough = float(plan.std_errors[-1]) / (_MOST_ERROR * width)
    return max(1.0, _MIN_COUNT * float(count_plan.std_errors[-1]), enough)


def _from_middle(plan: Measurement, units: FloatArray, bounds: tuple[int, int]) -> FloatArray:
    """Convert units from the middle of the bounds to values, clipped to the bounds as floats."""
    quantity = plan.quantity
    low, high = (float((end + quantity.shift) * quantity.unit) for end in bounds)
    return np.clip(float(quantity.origin) + plan._in_column_units(units), low, high)


def _quotient_intervals(
    plan: Measurement, sums: Measured, count_plan: Measurement, counts: Measured, bounds: tuple[int, int]
) -> list[tuple[FloatArray, FloatArray]]:
    """Return the ends of the intervals around the quotients of each level, in units of the sums."""
    assert plan.confidence is not None
    unit = float(plan.quantity.unit)
    return [
        ratio_intervals(
            total,
            count,
            joint_cumulants=independent(((error / unit) ** 2, count_error**2), (fourth, count_fourth)),
            bounds=bounds,
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
