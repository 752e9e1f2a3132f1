"""Levels of a date: years, months, weeks, weekdays, hours and so on, listed without looking at records."""

from __future__ import annotations

import datetime
import re
import warnings
import zoneinfo
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, is_name, naming, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.read_as import MISSING, Times
from pandas_dptree.hierarchy.levels.units_of_time import (
    DAY,
    HOUR,
    Unit,
    exist,
    labels_of,
    numbers_of,
    starts_of,
)  # fmt: skip
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.signatures import public

__all__ = ["Calendar", "calendar"]

_CHAINS = (("year", "quarter", "month", "day", "hour"), ("iso_year", "iso_week", "day", "hour"))
"""Nested units, from the coarsest to the finest."""

_CYCLES = {"weekday": 7, "hour_of_day": 24}
"""Units that come again, and how many of them there are; they may follow any unit that is longer."""

_SOME_WEEK = np.array(["2001-01-01", "2001-01-07"], dtype="M8[D]")
"""Has each weekday and each hour of the day."""

_FIRST_YEAR, _LAST_YEAR = 1000, 9998
"""In this range, years have four digits, and times in any zone stay within the years of Python."""


@dataclass(frozen=True, eq=False)
class Calendar(DerivedLevels[Domain]):
    """Nested units of time, from the coarsest, between a first and a last day. Made by `calendar`.

    Times are read in the time zone, or without a zone; text in the format, or as ISO 8601.
    """

    pitfall: ClassVar[str] = 'dates outside the calendar, or text in another format, such as "31/12/2024"'
    """What to check if records belong to no leaf."""

    column: Hashable
    units: tuple[Unit, ...]
    start: np.datetime64 | None
    end: np.datetime64 | None
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
    def _listed(self) -> tuple[IntArray, IntArray]:
        """The numbers of the leaves, increasing, and a second within each."""
        days = _SOME_WEEK if self.start is None or self.end is None else np.array([self.start, self.end])
        ends = (days.astype(np.int64) + np.array([0, 1])) * DAY - np.array([0, 1])
        size = {"day": DAY, "weekday": DAY, "hour": HOUR, "hour_of_day": HOUR}.get(self.units[-1])
        unit: Unit = {DAY: "day", HOUR: "hour"}.get(size or 0, self.units[-1])  # type: ignore[assignment]
        first, last = numbers_of(unit, ends)
        seconds = starts_of(unit, np.arange(first, last + 1))
        if size is not None and self.timezone is not None and self.start is not None:
            seconds = seconds[exist(seconds, size, self.timezone)]
        numbers, place = np.unique(self._number(seconds), return_index=True)
        return numbers, seconds[place]

    def _number(self, seconds: IntArray) -> IntArray:
        """Number the leaves in which local times lie, in the order of the leaves."""
        dated = [unit for unit in self._units if unit not in _CYCLES]
        numbers = numbers_of(dated[-1], seconds) if dated else np.zeros_like(seconds)
        for unit in self._units[len(dated) :]:
            numbers = numbers * _CYCLES[unit] + numbers_of(unit, seconds)
        return numbers

    @cached_property
    def _units(self) -> tuple[Unit, ...]:
        """The units; an hour of a weekday is an hour of the day."""
        of_weekday = self.units[-2:] == ("weekday", "hour")
        return (*self.units[:-1], "hour_of_day") if of_weekday else self.units

    @cached_property
    def domain(self) -> Domain:
        """The public leaves."""
        _, seconds = self._listed
        found = [np.unique(numbers_of(unit, seconds), return_inverse=True) for unit in self._units]
        labels = [labels_of(unit, numbers) for unit, (numbers, _) in zip(self._units, found, strict=True)]
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
        first, last = self._days
        inside = (seconds >= first * DAY) & (seconds < (last + 1) * DAY)
        leaves, _ = self._listed
        numbers = self._number(np.where(inside, seconds, 0))
        place = np.minimum(np.searchsorted(leaves, numbers), len(leaves) - 1)
        return np.where(inside & (leaves[place] == numbers), place, -1)

    @property
    def _days(self) -> tuple[int, int]:
        """The first and the last day that are counted, since 1970."""
        start = np.datetime64(f"{_FIRST_YEAR}-01-01", "D") if self.start is None else self.start
        end = np.datetime64(f"{_LAST_YEAR}-12-31", "D") if self.end is None else self.end
        return int(start.astype(np.int64)), int(end.astype(np.int64))

    def _to_local(self, seconds: IntArray) -> IntArray:
        """Convert UTC to local time; times more than two days outside the calendar become `MISSING`."""
        low, high = DAY * (np.array(self._days) + np.array([-2, 3]))
        inside = (seconds >= low) & (seconds < high)
        times = pd.DatetimeIndex(np.where(inside, seconds, low).view("M8[s]")).tz_localize("UTC")
        local = times.tz_convert(self.timezone).tz_localize(None).to_numpy().astype("M8[s]").view(np.int64)
        return np.where(inside, local, MISSING)


@public
def calendar(
    column: Hashable,
    units: Unit | Sequence[Unit],
    *,
    start: Any = None,
    end: Any = None,
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
        iso_week, day, hour. Other combinations are not nested. Last may come units that come again: weekday,
        hour_of_day, or both; after weekday, hour means the same as hour_of_day.
    start, end : date or str
        The first and the last day, both included; public, and never taken from the records. Weekdays and
        hours of the day alone need none: all days are counted.
    timezone : str or tzinfo, optional
        For times with a time zone: the zone in which days and hours are read.
    format : str, optional
        Format of text, in the codes of ``datetime.datetime.strptime``, as in ``"%m/%d/%Y %H:%M"``. By
        default ISO 8601. Hours of the day alone may be read from times without a date, as in ``"%I:%M%p"``
        for ``"9:27AM"``.

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
    ``1990-03-25 14:00`` (except for weeks, as pandas prints its periods). Weekdays are an ordered categorical
    from Monday, and hours of the day are text, as in ``14:00``.

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
    known = {*_CYCLES, *(unit for chain in _CHAINS for unit in chain)}
    odd = [unit for unit in listed if not isinstance(unit, str) or unit not in known]
    close = get_close_matches(odd[0], sorted(known), 2) if odd and isinstance(odd[0], str) else []
    meant = " or ".join(close)
    if not listed or odd:
        raise ArgumentError(
            "units",
            f"must list units of time, not {quote(odd[0], of=units) if odd else quote(units)}.",
            hint="choose from year, quarter, month, day, hour, iso_year, iso_week, weekday and hour_of_day, "
            "for example "
            f'["year", "month", "day"]{f"; did you mean {meant}?" if meant else "."}',
        )
    if not any([unit for unit in chain if unit in listed] == list(listed) for chain in _nested()):
        raise ArgumentError(
            "units",
            f"must be nested, from coarse to fine, not {quote(list(listed))}.",
            hint="a month lies within a quarter and a year, a week only within an iso_year, a day within "
            "a month or a week, an hour within a day; weekday may follow any of them but a day, and "
            "hour_of_day any but an hour.",
        )
    first, last = _dates(start, end, needed=listed[0] not in _CYCLES)
    zone = None if timezone is None else _zone(timezone)
    if format is not None:
        _check_format(format, zone, hours_alone=first is None and listed == ("hour_of_day",))
    return Calendar(column, listed, first, last, zone, format)


def _dates(start: Any, end: Any, *, needed: bool) -> tuple[np.datetime64, np.datetime64] | tuple[None, None]:
    """Read the first and the last day; unless they are needed, both may be missing."""
    given = {"start": start, "end": end}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == 2 and not needed:
        return None, None
    if missing:
        raise ArgumentError(
            missing[0],
            "and `end` " * (len(missing) - 1) + "must be given to calendar.",
            hint='for example start="2024-01-01", end="2025-12-31".',
        )
    first, last = (_date(name, value) for name, value in given.items())
    if first > last:
        raise ArgumentError(
            "end", f"must not be before `start`: {last} is before {first}.", hint="swap the two."
        )
    return first, last


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


def _check_format(format: Any, timezone: datetime.tzinfo | None, *, hours_alone: bool) -> None:
    """Check that a format has the year, or the hour if that suffices; and a time zone if there is one."""
    moment = datetime.datetime(2001, 1, 1, 13, tzinfo=datetime.UTC)
    try:
        with warnings.catch_warnings(action="ignore"):  # about days without a year
            read = datetime.datetime.strptime(moment.strftime(format), format)
    except (TypeError, ValueError, re.error):  # re.error if a code is repeated
        read = datetime.datetime.min
    if hours_alone and timezone is None and read.hour != moment.hour:
        raise ArgumentError(
            "format",
            f"must contain the hour of the day, in codes that `strptime` knows, not be {quote(format)}.",
            hint='for example format="%I:%M%p" for "9:27AM", or format="%H:%M" for "09:27".',
        )
    if read.year != moment.year and not (hours_alone and timezone is None):
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


def _nested() -> Iterator[tuple[str, ...]]:
    """Return the chains of units, with those that come again in place of what is shorter."""
    for chain in _CHAINS:
        yield chain
        day, hour = chain.index("day"), chain.index("hour")
        yield (*chain[:day], "weekday", "hour")
        yield (*chain[:day], "weekday", "hour_of_day")
        yield (*chain[:hour], "hour_of_day")
