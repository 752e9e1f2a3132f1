"""The quantity that is added up in each node: the rows, or the values of a column in whole units.

Exact noise needs whole numbers, so a column is summed in units: each value is clipped to its bounds and
rounded to the nearest multiple of a public granularity before anything is added.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, is_name, naming, quote
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity, sum_sensitivity

__all__ = ["COUNT", "MAX_UNITS", "Quantity", "granularity_between"]

MAX_UNITS = 2**31
"""Most units that one row may add. Sums of fewer than 2**32 rows then fit into 64 bits, and floats
distinguish the multiples of the granularity (see `Quantity.to_units`)."""

_LARGEST = 10**100
"""Largest numerator or denominator of a granularity, so that squared errors are in the range of floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """The quantity that is added up in each node: the rows, or the values of a column on a grid.

    Make one with `Quantity.of`; `COUNT` counts the rows. A row adds from `low` to `high` units of value
    `unit`, after `shift` units were subtracted (see `centred`).

    >>> income = Quantity.of("income", (0, 500), granularity=0.01)
    >>> income.to_units(np.array([0.07, 12.34, 9999.0]))
    array([    7,  1234, 50000])
    """

    column: Hashable | None = None
    low: int = 1
    high: int = 1
    unit: Fraction = Fraction(1)
    shift: int = 0

    def __post_init__(self) -> None:
        """Check that a row adds something that fits into 64 bits."""
        whole = all(type(number) is int for number in (self.low, self.high, self.shift))
        if not (whole and self.low <= self.high):
            raise ArgumentError(
                "bounds",
                f"must be whole numbers of units, in order, not {quote(self.low)} to {quote(self.high)}"
                f" after a shift of {quote(self.shift)}.",
                hint='write Quantity.of("income", bounds=(0, 500)).',
            )
        if (
            not isinstance(self.unit, Fraction)
            or self.unit <= 0
            or max(self.unit.as_integer_ratio()) > _LARGEST
        ):
            raise ArgumentError(
                "granularity",
                f"must be a positive number with few digits, not {quote(self.unit)}.",
                hint="for example granularity=0.01 to add up cents.",
            )
        if self.low == self.high == 0:
            raise ArgumentError(
                "bounds", "leave nothing to add up: both are 0.", hint="for example bounds=(0, 500)."
            )
        largest = max(abs(end + shift) for end in (self.low, self.high) for shift in (0, self.shift))
        if largest > MAX_UNITS:
            raise ArgumentError(
                "granularity",
                f"of {float(self.unit):g} lets one row add {largest:,} units, more than {MAX_UNITS:,}.",
                hint="pass a coarser granularity, or subtract the lower bound from the column first.",
            )

    @classmethod
    def of(cls, column: Hashable, bounds: tuple[Any, Any], granularity: Any = None) -> Quantity:
        """Describe the values of a column, clipped to public bounds and rounded to a granularity.

        The bounds are rounded to its nearest multiples, too. The default granularity is the power of ten that
        makes 100,000 to a million steps between them: 0.001 for bounds of (0, 500), 1 for (0, 500_000).
        """
        if column is None or not is_name(column):
            raise ArgumentError(
                "column",
                f"must name a column, not {quote(column)}.",
                hint=naming("column", "income", column),
            )
        lower, upper = _pair(bounds)
        unit = granularity_between(bounds, granularity)
        low, high = round(lower / unit), round(upper / unit)
        if low == high:
            raise ArgumentError(
                "granularity",
                f"of {quote(granularity)} leaves a single value between the bounds {quote(bounds)}.",
                hint="pass a finer granularity, or leave it out.",
            )
        return cls(column=column, low=low, high=high, unit=unit)

    def centred(self) -> Quantity:
        """Measure the same column from `origin`, the multiple of the granularity nearest to its middle.

        So the noise of a sum is the least that the bounds allow; a mean is `origin` plus the sum divided by
        the count.
        """
        middle = (self.low + self.high) // 2
        return replace(self, low=self.low - middle, high=self.high - middle, shift=self.shift + middle)

    def from_zero(self) -> Quantity:
        """Add up the same column itself: what `centred` measures, and `shift` for each row."""
        return replace(self, low=self.low + self.shift, high=self.high + self.shift, shift=0)

    @property
    def origin(self) -> Fraction:
        """What is subtracted from each value, in the scale of the column."""
        return self.shift * self.unit

    @property
    def name(self) -> Hashable:
        """Name of the column, or "count"."""
        return "count" if self.column is None else self.column

    @property
    def non_negative(self) -> bool:
        """Whether no row adds a negative value, so that no sum is negative."""
        return self.low >= 0

    def sensitivity(self, *, neighbors: Neighbors, max_contributions: int = 1) -> Sensitivity:
        """Return the sensitivity of the sums of one level, in units: see `sum_sensitivity`."""
        return sum_sensitivity(self.low, self.high, neighbors=neighbors, max_contributions=max_contributions)

    def to_units(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Clip values without NaN to the bounds, and return the nearest multiples of `unit`, minus `shift`.

        **Privacy**: each unit depends on its own value alone, so clipping and rounding are part of the
        record, and the sensitivity holds for all values.

        The quotient by the float nearest to the unit is off by at most three relative roundings of 2**-53,
        hence by less than 2**-20 for a quotient below 2**31 (about the same with a shift). So a float that is
        nearest to a multiple of the unit is always converted to that multiple. Every step is monotone.
        """
        multiples = self._multiples(values)
        np.clip(multiples, self.low + self.shift, self.high + self.shift, out=multiples)
        multiples -= self.shift
        return multiples.astype(np.int64)

    def clipped(self, values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which values `to_units` clips to the lower bound, and which to the upper one."""
        multiples = self._multiples(values)
        return multiples < self.low + self.shift, multiples > self.high + self.shift

    def _multiples(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the nearest multiples of `unit`, as numbers of units."""
        with np.errstate(over="ignore"):  # overflow is clipped
            multiples = values / float(self.unit)
        return np.rint(multiples, out=multiples)

    def from_units(self, units: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Convert units to values: the nearest float to units × `unit`, so that 7 cents are 0.07.

        That holds if the numerator and denominator of the unit and the units times the former are whole
        numbers below 2**53. `origin` is not added: it belongs to every row, not to a sum.
        """
        numerator, denominator = self.unit.as_integer_ratio()
        # Below 2**53 the product is exact and the quotient the only rounding.
        return np.asarray(units, dtype=np.float64) * float(numerator) / float(denominator)


COUNT = Quantity()
"""Each row counts 1."""


def _pair(bounds: Any) -> tuple[Fraction, Fraction]:
    numbers = (
        [_exact(bound) for bound in bounds]
        if isinstance(bounds, (tuple, list, np.ndarray)) and len(bounds) == 2
        else [None]
    )
    match numbers:
        case [Fraction() as lower, Fraction() as upper] if lower < upper:
            return lower, upper
    raise ArgumentError(
        "bounds",
        f"must be two finite numbers, the lower one first, not {quote(bounds)}.",
        hint="for example bounds=(0, 500); they must not come from the records.",
    )


def _exact(number: Any) -> Fraction | None:
    """Read a number in decimal notation; None if it is no finite number."""
    known = isinstance(number, (int, float, Decimal, Fraction, np.integer, np.floating))
    if not known or isinstance(number, (bool, np.timedelta64)):
        return None
    try:
        size = abs(float(number))
    except (ValueError, OverflowError):
        return None
    if not size < _LARGEST or (number != 0 and not size * _LARGEST > 1):
        return None  # a short text such as 1e-999999999 may need more digits than fit into memory
    return Fraction(str(number))


def granularity_between(bounds: tuple[Any, Any], granularity: Any = None) -> Fraction:
    """Return the granularity of values between two bounds as an exact number, that given or the default."""
    lower, upper = _pair(bounds)
    unit = _default_granularity(upper - lower) if granularity is None else _exact(granularity)
    if unit is None or unit <= 0:
        raise ArgumentError(
            "granularity",
            f"must be a positive number, not {quote(granularity)}.",
            hint="for example granularity=0.01 for amounts in cents.",
        )
    return unit


def _default_granularity(width: Fraction) -> Fraction:
    """Return the power of ten of which 10**5 to 10**6 fit into a width."""
    exponent = len(str(width.numerator)) - len(str(width.denominator))  # of ten; right or one too large
    if Fraction(10) ** exponent > width:
        exponent -= 1
    return Fraction(10) ** (exponent - 5)
