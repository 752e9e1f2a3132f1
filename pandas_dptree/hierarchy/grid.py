"""The grid of a column: the public values from which quantiles are drawn."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["MOST_POINTS", "BinMiddles", "Grid", "Points", "duration_in_words", "points_from_dict"]

MOST_POINTS = 2**31
"""Of so many points the quotient of floats finds the nearest one, as `Quantity.to_units` explains."""

_UNITS = {"d": 86_400 * 10**9, "h": 3_600 * 10**9, "min": 60 * 10**9, "s": 10**9, "ms": 10**6, "µs": 10**3}
"""Units of time in nanoseconds, from the longest down."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Points between two public bounds: the multiples of a granularity; of times, those from the first bound.

    `bounds` has the column and its bounds as a single bin; `unit` is the granularity, in nanoseconds for
    times. Points are numbered from 0.

    >>> grid = Grid(Bins.of("age", bounds=(0, 120), bins=1), Fraction(1))
    >>> grid.find(np.array([-3.0, 41.2, 500.0, np.nan])).tolist(), grid.values_at([0, 41]).tolist()
    ([0, 41, 120, -1], [0.0, 41.0])
    """

    bounds: Bins
    unit: Fraction

    def __post_init__(self) -> None:
        """Check that there are at least two points, and not too many."""
        parts, largest = self.unit.as_integer_ratio(), 2**62 if self.bounds.is_time else 10**300
        whole = not self.bounds.is_time or parts[1] == 1
        if self.bounds.n_bins != 1 or self.unit <= 0 or max(parts) > largest or not whole:
            raise ArgumentError(
                "granularity",
                f"must be positive, within the range of floats, and whole nanoseconds for times, "
                f"not {quote(self.unit)}.",
                hint="for example granularity=0.01, or pd.Timedelta(1, 'D') for dates.",
            )
        if not 2 <= self.size <= MOST_POINTS or abs(self.low) > 2**53:
            raise ArgumentError(
                "granularity",
                f"makes {self.size:,} points between the bounds; there must be at least 2, and at most "
                f"{MOST_POINTS:,}, and whole multiples must be below 2**53.",
                hint="pass a coarser or a finer granularity, or other bounds.",
            )

    @property
    def column(self) -> Hashable:
        """The name of the column."""
        return self.bounds.column

    @property
    def low(self) -> int:
        """The first point, as a multiple of the granularity; 0 for times."""
        return 0 if self.bounds.is_time else self._multiple(0)

    @property
    def size(self) -> int:
        """The number of points."""
        if self.bounds.is_time:
            first, last = self.bounds.edges.view(np.int64).tolist()
            return int((last - first) // self.unit) + 1
        return self._multiple(1) - self.low + 1

    def _multiple(self, end: int) -> int:
        return round(Fraction(repr(float(self.bounds.edges[end]))) / self.unit)

    def find(self, values: npt.NDArray[Any]) -> IntArray:
        """Number the point nearest to each value, which is clipped to the bounds; -1 for a missing one.

        `values` are floats, or times as `bounds` has them. The point depends on the value alone.
        """
        if self.bounds.is_time:
            first, last = self.bounds.edges.view(np.int64).tolist()
            since = np.clip(values.view(np.int64), first, last).view(np.uint64) - np.uint64(first % 2**64)
            unit = int(self.unit)
            nearest = since // np.uint64(unit) + (since % np.uint64(unit) >= np.uint64(unit - unit // 2))
            points = np.minimum(nearest.astype(np.int64), self.size - 1)
            return np.where(np.isnat(values), -1, points)
        low, high = self.low, self.low + self.size - 1
        with np.errstate(all="ignore"):  # overflow is clipped, and nan replaced
            units = np.clip(np.rint(values / float(self.unit)), low, high) - low
        return np.where(np.isnan(values), -1, np.nan_to_num(units)).astype(np.int64)

    def values_at(self, points: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the values of points: floats, or times in UTC."""
        units = np.asarray(points, dtype=np.int64) + self.low
        if self.bounds.is_time:
            nanoseconds = self.bounds.edges[0].view(np.int64) + units * int(self.unit)
            return np.asarray(nanoseconds).view(self.bounds.edges.dtype)
        numerator, denominator = self.unit.as_integer_ratio()
        return units * float(numerator) / float(denominator)

    @property
    def missing(self) -> Any:
        """A missing value, of the type of `values_at`."""
        return np.array("NaT", self.bounds.edges.dtype) if self.bounds.is_time else np.array(np.nan)

    def labels(self, values: npt.NDArray[Any]) -> Any:
        """Return values as they are shown: times in the time zone of the bounds."""
        return in_zone(values, self.bounds)

    def cells(self, n_cells: int) -> IntArray:
        """Divide the points into cells of about equal size, at most one for each: the points they start at.

        The result has the shape (n_cells + 1,) and ends with the number of points.
        """
        n = min(n_cells, self.size)
        return np.arange(n + 1) * self.size // n

    def bins(self, n_cells: int) -> Bins:
        """Return the cells as bins, whose edges lie halfway between points."""
        first, half = self.cells(n_cells), self.unit / 2
        edges: list[Any]
        if self.bounds.is_time:
            start = self.bounds.edges[0].view(np.int64)
            edges = list((start + first * int(self.unit) - int(half)).view(self.bounds.edges.dtype))
            if self.bounds.timezone is not None:
                edges = list(pd.DatetimeIndex(edges).tz_localize("UTC").tz_convert(self.bounds.timezone))
        else:
            edges = [float((self.low + int(point)) * self.unit - half) for point in first]
        return Bins.of(self.column, bounds=None, bins=edges)

    def ends(self, lower: npt.NDArray[Any], upper: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Return the first and the last point between edges of the cells: values, with at least one point."""
        if not self.bounds.is_time:
            half = float(self.unit / 2)
            return self.find(lower + half), self.find(upper - half)
        below = int(self.unit) // 2  # edges lie so far before the points
        return self.find(lower + np.timedelta64(below)), self.find(
            upper - np.timedelta64(int(self.unit) - below)
        )

    @property
    def granularity(self) -> str:
        """How far apart the points are, as text."""
        return duration_in_words(int(self.unit)) if self.bounds.is_time else f"{float(self.unit):.10g}"

    @property
    def in_words(self) -> str:
        """What the points are."""
        return f"granularity {self.granularity}"

    def to_dict(self) -> dict[str, Any]:
        """Serialize the grid to plain JSON types."""
        return {"bounds": self.bounds.to_dict(), "granularity": list(self.unit.as_integer_ratio())}


@dataclass(frozen=True, slots=True, eq=False)
class BinMiddles:
    """The middles of bins, for counts of records whose values are not known any closer."""

    bins: Bins

    @property
    def column(self) -> Hashable:
        """The name of the column."""
        return self.bins.column

    @property
    def size(self) -> int:
        """The number of points."""
        return self.bins.n_bins

    @property
    def missing(self) -> Any:
        """A missing value, of the type of `values_at`."""
        return np.array("NaT", self.bins.edges.dtype) if self.bins.is_time else np.array(np.nan)

    def values_at(self, points: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the values of points: floats, or times in UTC."""
        plain = Bins(self.bins.column, self.bins.edges)
        middles: npt.NDArray[Any] = plain.values_at(np.asarray(points, dtype=np.int64) + 0.5)
        return middles

    def labels(self, values: npt.NDArray[Any]) -> Any:
        """Return values as they are shown: times in the time zone of the bins."""
        return in_zone(values, self.bins)

    @property
    def in_words(self) -> str:
        """What the points are."""
        return f"middles of {self.size} bins"

    def to_dict(self) -> dict[str, Any]:
        """Serialize the points to plain JSON types."""
        return {"middles": self.bins.to_dict()}


Points = Grid | BinMiddles
"""Public values, numbered from 0, from which quantiles are drawn."""


def duration_in_words(nanoseconds: int) -> str:
    """Return a duration as a number of the longest unit of which it is a multiple."""
    fitting = ((symbol, unit) for symbol, unit in _UNITS.items() if nanoseconds % unit == 0)
    symbol, unit = next(fitting, ("ns", 1))
    return f"{nanoseconds // unit} {symbol}"


def points_from_dict(data: Any) -> Points:
    """Restore the points that `to_dict` serialized."""
    if "middles" in data:
        return BinMiddles(Bins.from_dict(data["middles"]))
    numerator, denominator = data["granularity"]
    if type(numerator) is not int or type(denominator) is not int:
        raise TypeError("the granularity is no pair of whole numbers")
    return Grid(Bins.from_dict(data["bounds"]), Fraction(numerator, denominator))


def in_zone(values: npt.NDArray[Any], bins: Bins) -> Any:
    """Return values as they are shown: times in the time zone of bins."""
    if bins.timezone is None:
        return values
    return pd.DatetimeIndex(values).tz_localize("UTC").tz_convert(bins.timezone)
