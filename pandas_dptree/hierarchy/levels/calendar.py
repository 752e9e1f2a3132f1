"""Levels of a date: years, quarters, months, weeks, days and hours, listed without looking at the records."""

from __future__ import annotations

import datetime
import re
import warnings
import zoneinfo
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, is_name, naming, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.read_as import MISSING, Times
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.signatures import public

__all__ = ["Calendar", "calendar"]

Unit = Literal["year", "quarter", "month", "iso_year", "iso_week", "day", "hour"]

_CHAINS = (("year", "quarter", "month", "day", "hour"), ("iso_year", "iso_week", "day", "hour"))
"""Nested units, from the coarsest to the finest."""

_FIRST_YEAR, _LAST_YEAR = 1000, 9998
"""In this range, years have four digits, and times in any zone stay within the years of Python."""

_HOUR, _DAY = 3_600, 86_400


@dataclass(frozen=True, eq=False)
class Calendar(DerivedLevels[Domain]):
    """Nested units of time, from the coarsest, between a first and a last day. Made by `calendar`.

    Times are read in the time zone, or without a zone; text in the format, or as ISO 8601.
    """

    pitfall: ClassVar[str] = 'dates outside the calendar, or text in another format, such as "31/12/2024"'
    """What to check if records belong to no leaf."""

    column: Hashable
    units: tuple[Unit, ...]
    start: np.datetime64
    end: np.datetime64
    timezone: datetime.tzinfo | None
    format: str | None

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Columns of the records that are read."""
        return (self.column,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the keys, as in ``"date_month"``."""
        return tuple(f"{self.column}_{unit}" for unit in self.units)

    @property
    def definition(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python types."""
        zone = None if self.timezone is None else str(self.timezone)
        return ("calendar", self.column, self.units, str(self.start), str(self.end), zone, self.format)

    @cached_property
    def leaves(self) -> IntArray:
        """Numbers of the finest units, increasing, counted from 1970."""
        days = np.array([self.start, self.end]).astype(np.int64)
        ends = (days + np.array([0, 1])) * _DAY - np.array([0, 1])
        first, last = _numbers(self.units[-1], ends)
        numbers = np.arange(first, last + 1)
        size = {"day": _DAY, "hour": _HOUR}.get(self.units[-1])
        if size is not None and self.timezone is not None:
            return numbers[_exist(numbers * size, size, self.timezone)]
        return numbers

    @cached_property
    def domain(self) -> Domain:
        """The public leaves."""
        seconds = _starts(self.units[-1], self.leaves)
        found = [np.unique(_numbers(unit, seconds), return_inverse=True) for unit in self.units]
        labels = [
            pd.Index(_unit_labels(unit, numbers))
            for unit, (numbers, _) in zip(self.units, found, strict=True)
        ]
        forms = [tuple(label.tolist()) for label in labels]
        return Domain.from_codes(self.names, labels, forms, [codes for _, codes in found])

    @property
    def read_as(self) -> Times:
        """Values are read as times, with a time zone or without."""
        return Times(zoned=self.timezone is not None, format=self.format)

    def find(self, seconds: IntArray) -> IntArray:
        """Find the leaf of each time in seconds since 1970; -1 if it is missing or outside the calendar."""
        if self.timezone is not None:
            seconds = self._to_local(seconds)
        days = seconds // _DAY
        inside = (days >= self.start.astype(np.int64)) & (days <= self.end.astype(np.int64))
        numbers = _numbers(self.units[-1], np.where(inside, seconds, 0))
        place = np.minimum(np.searchsorted(self.leaves, numbers), len(self.leaves) - 1)
        return np.where(inside & (self.leaves[place] == numbers), place, -1)

    def _to_local(self, seconds: IntArray) -> IntArray:
        """Convert UTC to local time; times more than two days outside the calendar become `MISSING`."""
        low, high = _DAY * (np.array([self.start, self.end]).astype(np.int64) + np.array([-2, 3]))
        inside = (seconds >= low) & (seconds < high)
        times = pd.DatetimeIndex(np.where(inside, seconds, low).view("M8[s]")).tz_localize("UTC")
        local = times.tz_convert(self.timezone).tz_localize(None).to_numpy().astype("M8[s]").view(np.int64)
        return np.where(inside, local, MISSING)


@public
def calendar(
    column: Hashable,
    units: Unit | Sequence[Unit],
    *,
    start: Any,
    end: Any,
    timezone: Any = None,
    format: str | None = None,
) -> Calendar:
    """Describe levels of time: a column of dates or times as years, months, days and so on.

    Parameters
    ----------
    column : hashable
        The column that holds the dates or times.
    units : str or sequence of str
        From the coarsest to the finest, some of year, quarter, month, day, hour; or some of iso_year,
        iso_week, day, hour. Other combinations are not nested.
    start, end : date or str
        The first and the last day, both included; public, and never taken from the records.
    timezone : str or tzinfo, optional
        For times with a time zone: the zone in which days and hours are read.
    format : str, optional
        Format of text, in the codes of ``datetime.datetime.strptime``, as in ``"%m/%d/%Y %H:%M"``. By
        default ISO 8601.

    Returns
    -------
    Calendar
        To be used in `by`.

    Raises
    ------
    ArgumentError
        If the units are not nested, or the dates, the time zone or the format are invalid.

    Notes
    -----
    Keys are named as in ``"date_month"``. Years are whole numbers. All others are text that
    contains the whole time and sorts by it: ``1990Q1``, ``1990-03``, ``1990-W12``, ``1990-03-25``,
    ``1990-03-25 14:00`` (except for weeks, as pandas prints its periods).

    The units that overlap the dates are listed, and no domain is needed for them. With a time zone, days and
    hours that its clocks skip are not listed, and a repeated hour is a single unit.

    **Privacy.** Each value is read separately: times of all types, and text as
    ``datetime.datetime.fromisoformat`` or, with a `format`, ``strptime`` reads it. Records outside the dates
    are dropped silently. So are records with any other value and, in a column of objects or text, times with
    a time zone where none is expected, or without one where one is.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> months = dpt.calendar("date", ["year", "month"], start="2024-11-01", end="2025-02-28")
    >>> months.paths().values.tolist()
    [[2024, '2024-11'], [2024, '2024-12'], [2025, '2025-01'], [2025, '2025-02']]
    """
    if column is None or not is_name(column):
        raise ArgumentError(
            "column",
            f"must name a column, not {quote(column)}.",
            hint=naming("column", "date", column),
        )
    listed = tuple(units) if isinstance(units, (list, tuple)) else (units,) if isinstance(units, str) else ()
    known = {unit for chain in _CHAINS for unit in chain}
    odd = [unit for unit in listed if not isinstance(unit, str) or unit not in known]
    meant = get_close_matches(odd[0], sorted(known), 1) if odd and isinstance(odd[0], str) else []
    if not listed or odd:
        raise ArgumentError(
            "units",
            f"must list units of time, not {quote(odd[0], of=units) if odd else quote(units)}.",
            hint="choose from year, quarter, month, day, hour, iso_year and iso_week, for example "
            f'["year", "month", "day"]{f"; did you mean {meant[0]}?" if meant else "."}',
        )
    if not any([unit for unit in chain if unit in listed] == list(listed) for chain in _CHAINS):
        raise ArgumentError(
            "units",
            f"must be nested, from coarse to fine, not {quote(list(listed))}.",
            hint="a month lies within a quarter and a year, a week only within an iso_year, a day within "
            "a month or a week, an hour within a day.",
        )
    first, last = _date("start", start), _date("end", end)
    if first > last:
        raise ArgumentError(
            "end", f"must not be before `start`: {last} is before {first}.", hint="swap the two."
        )
    zone = None if timezone is None else _zone(timezone)
    if format is not None:
        _check_format(format, zone)
    return Calendar(column, listed, first, last, zone, format)


def _date(argument: str, value: Any) -> np.datetime64:
    """Read a public date."""
    if isinstance(value, (str, datetime.date, np.datetime64)):
        try:
            stamp = pd.Timestamp(datetime.date.fromisoformat(value) if isinstance(value, str) else value)
            whole = stamp.tz is None and stamp == stamp.floor("D")
            if whole and _FIRST_YEAR <= stamp.year <= _LAST_YEAR:
                return np.datetime64(stamp.date(), "D")
        except (ValueError, TypeError, OverflowError):
            pass
    raise ArgumentError(
        argument,
        f"must be a date between the years {_FIRST_YEAR} and {_LAST_YEAR}, not {quote(value)}.",
        hint=f'for example {argument}="1990-01-01", known without looking at the records.',
    )


def _zone(timezone: Any) -> datetime.tzinfo:
    """Read a time zone, given as an object or by its name."""
    try:
        if isinstance(timezone, str):  # pandas might make a zone whose rules end in 2037
            return zoneinfo.ZoneInfo(timezone)
        if isinstance(timezone, datetime.tzinfo):
            return pd.DatetimeTZDtype("ns", timezone).tz
    except Exception:  # several libraries, each with errors of its own
        pass
    raise ArgumentError(
        "timezone", f"is unknown: {quote(timezone)}.", hint='for example timezone="Europe/Berlin", or "UTC".'
    )


def _check_format(format: Any, timezone: datetime.tzinfo | None) -> None:
    """Check that a format has the year, and a time zone if and only if there is a `timezone`."""
    moment = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    try:
        with warnings.catch_warnings(action="ignore"):  # about days without a year
            read = datetime.datetime.strptime(moment.strftime(format), format)
    except (TypeError, ValueError, re.error):  # re.error if a code is repeated
        read = datetime.datetime.min
    if read.year != moment.year:
        raise ArgumentError(
            "format",
            f"must contain the year, in codes that `strptime` knows, not be {quote(format)}.",
            hint='for example format="%m/%d/%Y %H:%M".',
        )
    if (read.tzinfo is None) != (timezone is None):
        raise ArgumentError(
            "format",
            f"has {'no' if timezone else 'a'} time zone, which does not fit `timezone`: {quote(format)}.",
            hint='a format needs "%z" if and only if a `timezone` is given.',
        )


def _numbers(unit: Unit, seconds: IntArray) -> IntArray:
    """Number the units that contain the times, counted from that of 1970-01-01."""
    days = seconds // _DAY
    match unit:
        case "hour":
            return seconds // _HOUR
        case "day":
            return days
        case "iso_week":  # 1970-01-01 was a Thursday, and weeks begin on Mondays
            return (days + 3) // 7
        case "iso_year":  # a week belongs to the year of its Thursday
            return _numbers("year", (days + 3) // 7 * 7 * _DAY)
        case "quarter":
            return _numbers("month", seconds) // 3
    return days.view("M8[D]").astype("M8[M]" if unit == "month" else "M8[Y]").view(np.int64)


def _starts(unit: Unit, numbers: IntArray) -> IntArray:
    """Return a second at the start of each unit; for an iso_year, some second within it."""
    match unit:
        case "hour":
            return numbers * _HOUR
        case "day":
            return numbers * _DAY
        case "iso_week":
            return (numbers * 7 - 3) * _DAY
        case "iso_year":  # 4 January always belongs to it
            return _starts("year", numbers) + 3 * _DAY
        case "quarter":
            return _starts("month", numbers * 3)
    months = numbers.view("M8[M]" if unit == "month" else "M8[Y]")
    return months.astype("M8[D]").view(np.int64) * _DAY


def _unit_labels(unit: Unit, numbers: IntArray) -> list[Any]:
    """Return the keys of units, in the order of time."""
    match unit:
        case "year" | "iso_year":
            return [1970 + number for number in numbers.tolist()]
        case "quarter":
            return [f"{1970 + number // 4}Q{number % 4 + 1}" for number in numbers.tolist()]
        case "iso_week":
            starts = _starts("iso_week", numbers)
            years = _numbers("iso_year", starts)
            week = numbers - _numbers("iso_week", _starts("iso_year", years)) + 1
            return [f"{1970 + y}-W{w:02}" for y, w in zip(years.tolist(), week.tolist(), strict=True)]
        case "hour":
            return [hour.replace("T", " ") + ":00" for hour in np.datetime_as_string(numbers.view("M8[h]"))]
    texts: list[str] = np.datetime_as_string(numbers.view("M8[M]" if unit == "month" else "M8[D]")).tolist()
    return texts


def _exist(starts: IntArray, size: int, timezone: datetime.tzinfo) -> npt.NDArray[np.bool_]:
    """Whether each unit exists on local clocks, at its start or at its end."""
    ends = [
        pd.DatetimeIndex((starts + second).view("M8[s]")).tz_localize(
            timezone, nonexistent="NaT", ambiguous=np.zeros(len(starts), dtype=bool)
        )
        for second in (0, size - 1)
    ]
    exist: npt.NDArray[np.bool_] = ~(np.asarray(ends[0].isna()) & np.asarray(ends[1].isna()))
    return exist
