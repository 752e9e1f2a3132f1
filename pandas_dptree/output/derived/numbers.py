"""The numbers of one column with the errors of each row: of counts and sums exactly, of means as they are."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.output.derived.estimates import Estimates, check_whole, quantity_of
from pandas_dptree.output.released import Released

__all__ = ["Numbers"]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers and the moments of their errors, row by row, in the column's unit.

    `kind` is "count", "units", "sum" or "mean"; `bounds` are the least and the most that a number can be;
    `steps` are those of the noise in each error, and `unit` that of the shown numbers, 0 for means.
    """

    released: Released
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
        released = Released.of(table)
        shown = released.shown(column, argument="column")
        quantity = quantity_of(table, shown.name, argument)
        if quantity.shown == "mean":
            check_whole(table, argument)
            if shown.error is None:
                raise ArgumentError(argument, "lacks standard errors.", hint="keep the column.")
            variance = shown.error**2
            fourth = 3.0 * variance**2 if quantity.mechanism == "laplace" else 0.0 * variance
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
