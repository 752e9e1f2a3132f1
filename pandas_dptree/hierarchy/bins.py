"""Bins of a numeric column: its public bounds and the edges between them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["Bins"]

MOST_BINS = 10**8
"""More bins, and the arrays computed from them, would not fit into memory."""

_BLOCK = 2**16
"""Number of values processed at a time, so that they stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Adjacent intervals, closed on the left; the last one is closed on both sides. Make one with `Bins.of`.

    The edges increase: float64 for numbers; datetime64[ns] or timedelta64[ns] for times.

    >>> bins = Bins.of("fare", bounds=(0, 200), bins=4)
    >>> bins.find(np.array([-3.0, 49.9, 50.0, 200.0, np.nan])).tolist()
    [0, 0, 1, 3, -1]
    """

    column: Hashable
    edges: npt.NDArray[Any]
    timezone: Any = None

    @classmethod
    def of(cls, column: Hashable, *, bounds: Any, bins: Any) -> Bins:
        """Cut the range between two public bounds into bins of equal width, or read the bins' edges.

        Bounds are numbers, timestamps or durations; None if `bins` lists all edges, one more than there are
        bins.
        """
        if (listed := _listed(bins)) is not None:
            if bounds is not None:
                raise ArgumentError(
                    "bounds", "cannot be combined with a list of edges.", hint="leave one of the two out."
                )
            edges, timezone = _values("bins", listed)
            if len(edges) < 2 or not (edges[1:] > edges[:-1]).all():
                raise ArgumentError(
                    "bins",
                    "must list at least two edges in increasing order.",
                    hint="for example bins=[0, 18, 65, 120].",
                )
            return cls(column, edges, timezone)
        n_bins = _number_of_bins(bins)
        if bounds is None:
            raise ArgumentError(
                "bounds",
                "must be given if `bins` is a number.",
                hint="for example bounds=(0, 200), known without looking at the records; or list the edges.",
            )
        pair = _listed(bounds)
        if pair is None or len(pair) != 2:
            raise ArgumentError(
                "bounds",
                f"must be a pair of values, the lower one first, not {quote(bounds)}.",
                hint="for example bounds=(0, 200), known without looking at the records.",
            )
        ends, timezone = _values("bounds", pair)
        if not ends[0] < ends[1]:
            raise ArgumentError(
                "bounds",
                f"must have the lower one first, not {quote(bounds)}.",
                hint="for example bounds=(0, 200); equal bounds leave nothing to cut.",
            )
        return cls(column, _cut(ends, n_bins), timezone)

    def to_dict(self) -> dict[str, Any]:
        """Serialize the bins to plain JSON types; edges of times are nanoseconds (since 1970 in UTC)."""
        if not isinstance(self.column, (str, int)):
            raise ArgumentError(
                "column",
                f"cannot be serialized: {quote(self.column)}.",
                hint="rename the column to a string.",
            )
        data: dict[str, Any] = {"column": self.column, "type": "number", "unit": None, "timezone": None}
        if not self.is_time:
            return {**data, "edges": self.edges.tolist()}
        if self.timezone is not None:
            data["timezone"] = _zone_name(self.timezone)
        kind = "timestamp" if self.edges.dtype.kind == "M" else "duration"
        return {**data, "type": kind, "unit": "ns", "edges": self.edges.view(np.int64).tolist()}

    @classmethod
    def from_dict(cls, data: Any) -> Bins:
        """Restore the bins that `to_dict` serialized; `data` of any other form raises an error."""
        column, edges, kind, zone = data["column"], data["edges"], data["type"], data["timezone"]
        if not isinstance(column, (str, int)):
            raise TypeError("the column is neither text nor a whole number")
        types = {"number": (float, int), "timestamp": (int,), "duration": (int,)}[kind]
        if not isinstance(edges, list) or any(type(edge) not in types for edge in edges):
            raise ValueError(f"edges are not a list of {kind}s")
        if data["unit"] != (None if kind == "number" else "ns") or (zone and kind != "timestamp"):
            raise ValueError(f"a unit or time zone does not fit {kind}s")
        if kind == "timestamp":
            edges = [pd.Timestamp(edge, unit="ns", tz=zone) for edge in edges]
        elif kind == "duration":
            edges = [pd.Timedelta(edge, unit="ns") for edge in edges]
        return cls.of(column, bounds=None, bins=edges)

    def same_as(self, other: Bins) -> bool:
        """Whether the bins of another column, or the same, have the same edges, of the same type."""
        same_type = self.edges.dtype == other.edges.dtype and (self.timezone is None) == (
            other.timezone is None
        )
        return same_type and np.array_equal(self.edges, other.edges)

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def is_time(self) -> bool:
        """Whether the values are timestamps or durations."""
        return self.edges.dtype.kind in "mM"

    @property
    def index(self) -> pd.IntervalIndex:
        """The bins as left-closed intervals; the right end of the last one belongs to it too."""
        return pd.IntervalIndex.from_breaks(
            self.values_at(np.arange(self.n_bins + 1)), closed="left", name=self.column
        )

    def values_at(self, places: npt.ArrayLike) -> Any:
        """Convert positions, counted in bins, to values: 1.5 is the middle of the second bin."""
        places = np.asarray(places, dtype=np.float64)
        missing = np.isnan(places)
        below = np.where(missing, 0, np.minimum(places, self.n_bins - 1)).astype(np.int64)
        low, high = self.edges[below], self.edges[below + 1]
        part = np.where(missing, 0.0, places - below)
        if not self.is_time:
            inside = np.where(part == 1, high, low + part * (high - low))
            return np.where(missing, np.nan, np.minimum(inside, high))
        # Modulo 2**64 no bin is too wide. A float has 53 bits, so positions in a wide bin are exact to within
        # a microsecond.
        start = np.asarray(low).view(np.uint64)
        width = np.asarray(high).view(np.uint64) - start
        offset = np.rint(np.where(part == 1, 0.0, part) * width).astype(np.uint64)
        inside = (start + np.minimum(offset, width)).view(self.edges.dtype)
        values = np.where(missing, np.array("NaT", dtype=inside.dtype), np.where(part == 1, high, inside))
        if self.timezone is None:
            return values
        return pd.DatetimeIndex(values.reshape(-1)).tz_localize("UTC").tz_convert(self.timezone)

    def find(self, values: npt.NDArray[Any]) -> IntArray:
        """Find the bin of each value; values outside the bounds are clipped.

        `values` has the type of `edges` and shape (n,). nan and missing times get -1.
        """
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._find_in_blocks(values)])

    def count(self, values: npt.NDArray[Any]) -> IntArray:
        """Count the values in each bin, shape (n_bins,); nan and missing times are not counted."""
        counts = np.zeros(self.n_bins + 1, dtype=np.int64)
        for places in self._find_in_blocks(values):
            counts += np.bincount(places + 1, minlength=self.n_bins + 1)
        return counts[1:]

    def _find_in_blocks(self, values: npt.NDArray[Any]) -> Iterator[IntArray]:
        """Find the bins of the values, block by block."""
        find = self._find_times if self.is_time else self._find_numbers
        size = max(_BLOCK, self.n_bins)
        return (find(values[start : start + size]) for start in range(0, len(values), size))

    def _find_times(self, values: npt.NDArray[Any]) -> IntArray:
        places = np.searchsorted(self.edges[1:-1].view(np.int64), values.view(np.int64), side="right")
        return np.where(np.isnat(values), -1, places)

    def _find_numbers(self, values: npt.NDArray[np.float64]) -> IntArray:
        """Estimate the bin by arithmetic, since most bins have equal width, and correct it by the edges."""
        low, high = self.edges[0], self.edges[-1]
        inside = np.clip(values, low, math.nextafter(high, low))
        present = inside == inside
        with np.errstate(all="ignore"):  # where all values are close to 0, the guess may be nan
            guess = (inside - low) * (self.n_bins / (high - low))
        places = np.where((guess >= 0) & (guess < self.n_bins), guess, 0).astype(np.int64)
        wrong = present & ((inside < self.edges[places]) | (inside >= self.edges[places + 1]))
        if wrong.any():
            places[wrong] = np.searchsorted(self.edges, inside[wrong], side="right") - 1
        places[~present] = -1
        return places

    def edge_numbers(self, argument: str, ends: Sequence[Any]) -> IntArray:
        """Return the positions of values among the edges; the error names `argument`."""
        values, timezone = _values(argument, list(ends))
        if values.dtype != self.edges.dtype or (timezone is None) != (self.timezone is None):
            raise ArgumentError(
                argument,
                "must have the type of the bounds.",
                hint="numbers for numbers, times for times; with a time zone if the bounds have one.",
            )
        before = np.clip(np.searchsorted(self.edges, values, side="right") - 1, 0, self.n_bins - 1)
        low, high = self.edges[before], self.edges[before + 1]
        if self.is_time:
            nearest = before + (values == high)
            off = values != self.edges[nearest]
        else:
            with np.errstate(over="ignore", under="ignore"):  # a distance that overflows is too far
                nearest = before + (values - low > high - values)
                off = np.abs(values - self.edges[nearest]) > 1e-9 * (high - low)
        if off.any():
            wrong = ends[int(np.flatnonzero(off)[0])]
            raise ArgumentError(
                argument,
                f"must be edges of the bins; {quote(wrong)} is not one.",
                hint=f"the first of {self.n_bins} bins ends at {self.values_at([1])[0]}; "
                "use more bins, or list the edges as `bins`.",
            )
        return np.asarray(nearest, dtype=np.int64)


def _zone_name(timezone: Any) -> str:
    """Return the name of a time zone, checked to restore the same zone."""
    name = str(timezone)
    try:
        found = str(pd.Timestamp(0, tz=name).tz)
    except (LookupError, ValueError):
        found = ""
    if found != name:
        raise ArgumentError(
            "bins",
            f"have a time zone that cannot be serialized: {quote(name)}.",
            hint='use edges in a named time zone, such as "UTC" or "Europe/Berlin".',
        )
    return name


def _listed(values: Any) -> list[Any] | None:
    """Return the values as a list if they are a sequence or an array, else None."""
    row = isinstance(values, (Sequence, np.ndarray, pd.Index, pd.Series)) and np.iterable(values)
    return list(values) if row and not isinstance(values, (str, bytes, bytearray)) else None


def _number_of_bins(bins: Any) -> int:
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or not 1 <= bins <= MOST_BINS:
        raise ArgumentError(
            "bins",
            f"must be a whole number from 1 to {MOST_BINS:,}, or a list of edges, not {quote(bins)}.",
            hint="for example bins=100.",
        )
    return int(bins)


def _values(argument: str, values: list[Any]) -> tuple[npt.NDArray[Any], Any]:
    """Read numbers, or times as nanoseconds since 1970 together with their common time zone."""
    if all(isinstance(value, (np.datetime64, datetime.date)) for value in values) and values:
        if (stamps := _in_nanoseconds(pd.Timestamp, values)) is not None:
            if len({str(stamp.tz) for stamp in stamps}) > 1:
                raise ArgumentError(
                    argument, "must all have the same time zone, or none.", hint="for example bounds in UTC."
                )
            return np.array([stamp.to_datetime64() for stamp in stamps]), stamps[0].tz
    elif all(isinstance(value, (np.timedelta64, datetime.timedelta)) for value in values) and values:
        if (spans := _in_nanoseconds(pd.Timedelta, values)) is not None:
            return np.array([span.to_timedelta64() for span in spans]), None
    else:
        numbers = [_finite(value) for value in values]
        if None not in numbers:
            found: list[Any] = numbers
            if math.isinf(max(found, default=0) - min(found, default=0)):
                raise ArgumentError(
                    argument, "are too far apart: no float can hold the distance.", hint="narrow them."
                )
            return np.array(numbers, dtype=np.float64), None
    raise ArgumentError(
        argument,
        f"must hold finite numbers, or timestamps, or durations, not {quote(values)}.",
        hint="for example (0, 200), or (pd.Timestamp('2024-01-01'), pd.Timestamp('2025-01-01')); "
        "times lie between 1678 and 2262.",
    )


def _in_nanoseconds(kind: Any, values: list[Any]) -> list[Any] | None:
    """Read timestamps or durations; None if one is missing or out of the range of nanoseconds."""
    try:
        times = [kind(value) for value in values]
        return None if any(time is pd.NaT for time in times) else [time.as_unit("ns") for time in times]
    except (ValueError, OverflowError):
        return None


def _finite(value: Any) -> float | None:
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, (Real, Decimal)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):  # a signalling nan, or an integer beyond the range of floats
        return None
    return number if math.isfinite(number) else None


def _cut(ends: npt.NDArray[Any], n_bins: int) -> npt.NDArray[Any]:
    """Cut into bins of equal width: numbers as `numpy.histogram` does, times to the nanosecond."""
    if ends.dtype.kind == "f":
        with np.errstate(all="ignore"):
            edges = np.linspace(ends[0], ends[1], n_bins + 1)
    else:
        low, high = ends.view(np.int64).tolist()
        whole, rest = divmod(high - low, n_bins)
        places = np.arange(n_bins + 1, dtype=np.uint64)
        # Modulo 2**64: bounds that are 300 years apart are further apart than an int64 can hold.
        beyond = places * np.uint64(whole) + places * np.uint64(rest) // np.uint64(n_bins)
        edges = (beyond + np.uint64(low % 2**64)).view(ends.dtype)
    if not (edges[1:] > edges[:-1]).all():
        raise ArgumentError(
            "bins", f"are too many for these bounds: {n_bins:,}.", hint="pass fewer bins, or wider bounds."
        )
    return edges
