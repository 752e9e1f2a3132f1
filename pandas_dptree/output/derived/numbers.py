"""The numbers of one column with the errors of each row: of counts and sums exactly, of means as they are."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.output.crossed_columns import axes_of
from pandas_dptree.output.crossed_tables import CrossedTable
from pandas_dptree.output.derived.estimates import Estimates, Quantity, check_whole, linear_of, quantity_of
from pandas_dptree.output.released import Released

__all__ = ["Numbers"]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers and the moments of their errors, row by row, in the column's unit.

    `kind` is "count", "units", "sum" or "mean"; `bounds` are the least and the most that a number can be;
    `steps` are those of the noise in each error, and `unit` that of the shown numbers, 0 for means.
    """

    released: Released | CrossedTable
    column: Hashable
    kind: str
    bounds: tuple[float, float]
    unit: float
    shown: FloatArray
    linear: FloatArray
    variance: FloatArray
    fourth: FloatArray
    steps: FloatArray

    @classmethod
    def of(cls, table: pd.DataFrame, column: Hashable | None, *, argument: str = "released") -> Numbers:
        """Read a column of a whole released table."""
        if axes_of(table):
            return cls._of_crossed(table, column, argument)
        released = Released.of(table)
        shown = released.shown(column, argument="column")
        quantity = quantity_of(table, shown.name, argument)
        if quantity.shown == "mean":
            check_whole(table, argument)
            if shown.error is None:
                raise ArgumentError(argument, "lacks standard errors.", hint="keep the column.")
            variance, fourth = _moments(shown.error, quantity)
            return cls(
                released, shown.name, "mean", quantity.bounds, 0.0, shown.numbers, shown.numbers, variance,
                fourth, np.zeros(len(table)),
            )  # fmt: skip
        found = Estimates.of(table, shown.name, argument=argument, released=released)
        unit = quantity.unit
        variance, fourth, steps = found.moments
        return cls(
            released, shown.name, quantity.shown, (found.least, np.inf), unit, found.shown * unit,
            found.linear * unit, variance * unit**2, fourth * unit**4, steps * unit,
        )  # fmt: skip

    @classmethod
    def _of_crossed(cls, table: pd.DataFrame, column: Hashable | None, argument: str) -> Numbers:
        """Read a column of a whole crossed table: its errors are those that it states."""
        released = CrossedTable.of(table)
        shown = released.shown(column, argument="column")
        quantity = quantity_of(table, shown.name, argument)
        check_whole(table, argument)
        if shown.error is None:
            raise ArgumentError(argument, "lacks standard errors.", hint="keep the column.")
        linear, is_mean = shown.numbers, quantity.shown == "mean"
        if not is_mean and not quantity.is_linear:
            linear = linear_of(table, shown.name, argument)
        variance, fourth = _moments(shown.error, quantity)
        bounds = quantity.bounds if is_mean else (-np.inf if quantity.signed else 0.0, np.inf)
        unit = 0.0 if is_mean else quantity.unit  # no weight of a measurement is above 1
        return cls(
            released, shown.name, quantity.shown, bounds, unit, shown.numbers,
            linear, variance, fourth, np.full(len(table), unit),
        )  # fmt: skip


def _moments(error: FloatArray, quantity: Quantity) -> tuple[FloatArray, FloatArray]:
    r"""Return the variances and bounds on the fourth cumulants of errors that are sums of independent noise.

    Laplace noise of variance v has the fourth cumulant 3 v², so a sum of it with variance V has at most
    :math:`3 \sum_i v_i^2 \le 3 V^2`. That of Gaussian noise is 0, up to the rounding of small scales.
    """
    variance = error**2
    return variance, 3.0 * variance**2 if quantity.mechanism == "laplace" else 0.0 * variance
