"""Bins: what is public of a numeric column, its bounds and where they are cut."""

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
"""More would not fit into memory together with what is computed from them."""

_BLOCK = 2**16
"""So many values at a time stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Intervals side by side, each with its left end; the last one with its right end, too.

    Make one with `Bins.of`.

    Attributes
    ----------
    column : hashable
        The name of the column; None for values without one.
    edges : numpy.ndarray, shape (n_bins + 1,)
        Rising. float64 for numbers; datetime64[ns] or timedelta64[ns] for times.
    timezone : object
        Of timestamps that have one; None otherwise.

    Examples
    --------
    >>> bins = Bins.of("fare", bounds=(0, 200), bins=4)
    >>> bins.edges.tolist()
    [0.0, 50.0, 100.0, 150.0, 200.0]
    >>> bins.find(np.array([-3.0, 49.9, 50.0, 200.0, np.nan])).tolist()
    [0, 0, 1, 3, -1]
    """

    column: Hashable
    edges: npt.NDArray[Any]
    timezone: Any = None

    @classmethod
    def of(cls, column: Hashable, *, bounds: Any, bins: Any) -> Bins:
        """Cut what lies between two bounds.

        Parameters
        ----------
        column : hashable
        bounds : pair
            The least and the greatest value: numbers, timestamps or durations. Public, never from the
            records. None if `bins` lists all edges.
        bins : int or sequence
            How many bins of equal width; or their edges, rising, one more than there are bins.

        Returns
        -------
        Bins

        Raises
        ------
        ArgumentError
            If the bounds are no two finite values, the lower one first; if the bins are no whole number of at
            least 1, more than can be told apart, or no rising edges.
        """
        if (listed := _listed(bins)) is not None:
            if bounds is not None:
                raise ArgumentError(
                    "bounds", "has no meaning beside a list of edges.", hint="leave one of the two out."
                )
            edges, timezone = _values("bins", listed)
            if len(edges) < 2 or not (edges[1:] > edges[:-1]).all():
                raise ArgumentError(
                    "bins",
                    "must be edges that rise, at least two.",
                    hint="for example bins=[0, 18, 65, 120].",
                )
            return cls(column, edges, timezone)
        n_bins = _number_of_bins(bins)
        if bounds is None:
            raise ArgumentError(
                "bounds",
                "must be given with a number of bins.",
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
                hint="for example bounds=(0, 200); equal ones leave nothing to cut.",
            )
        return cls(column, _cut(ends, n_bins), timezone)

    def to_dict(self) -> dict[str, Any]:
        """Write the bins down, in plain JSON.

        Returns
        -------
        dict
            ``column``; ``type`` of the edges (``"number"``, ``"timestamp"`` or ``"duration"``); ``unit`` and
            ``timezone``, of times alone; and ``edges``, times as whole nanoseconds (since 1970 in UTC).

        Raises
        ------
        ArgumentError
            If JSON cannot hold the name of the column, or the time zone has no name.
        """
        if not isinstance(self.column, (str, int)):
            raise ArgumentError(
                "column",
                f"cannot be written down: {quote(self.column)}.",
                hint="give the column a name that is text.",
            )
        written: dict[str, Any] = {"column": self.column, "type": "number", "unit": None, "timezone": None}
        if not self.is_time:
            return {**written, "edges": self.edges.tolist()}
        if self.timezone is not None:
            written["timezone"] = _zone_name(self.timezone)
        kind = "timestamp" if self.edges.dtype.kind == "M" else "duration"
        return {**written, "type": kind, "unit": "ns", "edges": self.edges.view(np.int64).tolist()}

    @classmethod
    def from_dict(cls, data: Any) -> Bins:
        """Read what `to_dict` wrote.

        Raises
        ------
        ArgumentError, LookupError, TypeError or ValueError
            If `data` is nothing of the kind.
        """
        edges, kind, zone = data["edges"], data["type"], data["timezone"]
        own = {"number": (float, int), "timestamp": (int,), "duration": (int,)}[kind]
        if not isinstance(edges, list) or any(type(edge) not in own for edge in edges):
            raise ValueError(f"edges are no list of {kind}s")
        if data["unit"] != (None if kind == "number" else "ns") or (zone and kind != "timestamp"):
            raise ValueError(f"a unit or time zone does not fit to {kind}s")
        if kind == "timestamp":
            edges = [pd.Timestamp(edge, unit="ns", tz=zone) for edge in edges]
        elif kind == "duration":
            edges = [pd.Timedelta(edge, unit="ns") for edge in edges]
        return cls.of(data["column"], bounds=None, bins=edges)

    @property
    def n_bins(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    @property
    def is_time(self) -> bool:
        """Whether values are timestamps or durations."""
        return self.edges.dtype.kind in "mM"

    @property
    def index(self) -> pd.IntervalIndex:
        """The bins as intervals that hold their left ends; the last one holds its right end, too."""
        return pd.IntervalIndex.from_breaks(
            self.values_at(np.arange(self.n_bins + 1)), closed="left", name=self.column
        )

    def values_at(self, places: npt.ArrayLike) -> Any:
        """Give the values at places that are counted in bins, such as 1.5 for the middle of the second one.

        Parameters
        ----------
        places : array_like of float, of any shape
            From 0 to `n_bins`; nan for no place.

        Returns
        -------
        numpy.ndarray or pandas.DatetimeIndex
            Of the shape of `places`; the latter for timestamps with a time zone, which has one dimension.
        """
        places = np.asarray(places, dtype=np.float64)
        missing = np.isnan(places)
        below = np.where(missing, 0, np.minimum(places, self.n_bins - 1)).astype(np.int64)
        low, high = self.edges[below], self.edges[below + 1]
        part = np.where(missing, 0.0, places - below)
        if not self.is_time:
            inside = np.where(part == 1, high, low + part * (high - low))
            return np.where(missing, np.nan, np.minimum(inside, high))
        # Modulo 2**64 no bin is too wide. A float has 53 bits: a wide bin is divided to within a microsecond.
        start = np.asarray(low).view(np.uint64)
        width = np.asarray(high).view(np.uint64) - start
        passed = np.rint(np.where(part == 1, 0.0, part) * width).astype(np.uint64)
        inside = (start + np.minimum(passed, width)).view(self.edges.dtype)
        values = np.where(missing, np.array("NaT", dtype=inside.dtype), np.where(part == 1, high, inside))
        if self.timezone is None:
            return values
        return pd.DatetimeIndex(values.reshape(-1)).tz_localize("UTC").tz_convert(self.timezone)

    def find(self, values: npt.NDArray[Any]) -> IntArray:
        """Find the bin of each value.

        Parameters
        ----------
        values : numpy.ndarray, shape (n,)
            Of the type of `edges`. What lies outside is clipped.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
            -1 for nan and missing times.
        """
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._found(values)])

    def count(self, values: npt.NDArray[Any]) -> IntArray:
        """Count the values in each bin, shape (n_bins,), without those that `find` finds in none."""
        counts = np.zeros(self.n_bins + 1, dtype=np.int64)
        for places in self._found(values):
            counts += np.bincount(places + 1, minlength=self.n_bins + 1)
        return counts[1:]

    def _found(self, values: npt.NDArray[Any]) -> Iterator[IntArray]:
        """Find the bins of some values at a time."""
        find = self._find_times if self.is_time else self._find_numbers
        size = max(_BLOCK, self.n_bins)
        return (find(values[start : start + size]) for start in range(0, len(values), size))

    def _find_times(self, values: npt.NDArray[Any]) -> IntArray:
        places = np.searchsorted(self.edges[1:-1].view(np.int64), values.view(np.int64), side="right")
        return np.where(np.isnat(values), -1, places)

    def _find_numbers(self, values: npt.NDArray[np.float64]) -> IntArray:
        """Guess by arithmetic, as bins are mostly of equal width, and correct by the edges."""
        low, high = self.edges[0], self.edges[-1]
        inside = np.clip(values, low, math.nextafter(high, low))
        present = inside == inside
        with np.errstate(all="ignore"):  # where all is next to 0, the guess is no number
            guess = (inside - low) * (self.n_bins / (high - low))
        places = np.where((guess >= 0) & (guess < self.n_bins), guess, 0).astype(np.int64)
        wrong = present & ((inside < self.edges[places]) | (inside >= self.edges[places + 1]))
        if wrong.any():
            places[wrong] = np.searchsorted(self.edges, inside[wrong], side="right") - 1
        places[~present] = -1
        return places

    def edge_numbers(self, argument: str, ends: Sequence[Any]) -> IntArray:
        """Find which edges some values are.

        Raises
        ------
        ArgumentError
            If one of them is no edge, under the name of `argument`.
        """
        values, timezone = _values(argument, list(ends))
        if values.dtype != self.edges.dtype or (timezone is None) != (self.timezone is None):
            raise ArgumentError(
                argument,
                "must be of the type of the bounds.",
                hint="numbers for numbers, times for times; with a time zone if the bounds have one.",
            )
        before = np.clip(np.searchsorted(self.edges, values, side="right") - 1, 0, self.n_bins - 1)
        low, high = self.edges[before], self.edges[before + 1]
        if self.is_time:
            nearest = before + (values == high)
            off = values != self.edges[nearest]
        else:
            with np.errstate(over="ignore", under="ignore"):  # a distance beyond all floats is too far
                nearest = before + (values - low > high - values)
                off = np.abs(values - self.edges[nearest]) > 1e-9 * (high - low)
        if off.any():
            wrong = ends[int(np.flatnonzero(off)[0])]
            raise ArgumentError(
                argument,
                f"must be edges of the bins, which {quote(wrong)} is not.",
                hint=f"the first of {self.n_bins} bins ends at {self.values_at([1])[0]}; "
                "cut finer, or list the edges as `bins`.",
            )
        return np.asarray(nearest, dtype=np.int64)


def _zone_name(timezone: Any) -> str:
    """Give the name of a time zone under which it is found again."""
    name = str(timezone)
    try:
        found = str(pd.Timestamp(0, tz=name).tz)
    except (LookupError, ValueError):
        found = ""
    if found != name:
        raise ArgumentError(
            "bins",
            f"have a time zone that cannot be written down: {quote(name)}.",
            hint='plan with edges in a zone that has a name, such as "UTC" or "Europe/Berlin".',
        )
    return name


def _listed(values: Any) -> list[Any] | None:
    """List values if they stand in a row; None if they do not."""
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
    """Read numbers, or times as nanoseconds since 1970 in their time zone, which they have to share."""
    if all(isinstance(value, (np.datetime64, datetime.date)) for value in values) and values:
        if (stamps := _in_nanoseconds(pd.Timestamp, values)) is not None:
            if len({str(stamp.tz) for stamp in stamps}) > 1:
                raise ArgumentError(
                    argument, "must have one time zone, or none.", hint="for example bounds in UTC."
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
    """Read timestamps or durations; None if one of them is missing, or beyond what nanoseconds can hold."""
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
    except (ValueError, OverflowError):  # of a signalling nan, and of a whole number beyond all floats
        return None
    return number if math.isfinite(number) else None


def _cut(ends: npt.NDArray[Any], n_bins: int) -> npt.NDArray[Any]:
    """Cut into bins of equal width, numbers as `numpy.histogram` does, and times to the nanosecond."""
    if ends.dtype.kind == "f":
        with np.errstate(all="ignore"):
            edges = np.linspace(ends[0], ends[1], n_bins + 1)
    else:
        low, high = ends.view(np.int64).tolist()
        whole, rest = divmod(high - low, n_bins)
        places = np.arange(n_bins + 1, dtype=np.int64)
        edges = (low + places * whole + places * rest // n_bins).view(ends.dtype)
    if not (edges[1:] > edges[:-1]).all():
        raise ArgumentError(
            "bins", f"are too many between such bounds: {n_bins:,}.", hint="pass fewer, or wider bounds."
        )
    return edges
