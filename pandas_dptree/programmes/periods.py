"""Periods: days, weeks, months, quarters and years of the calendar."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Final, NamedTuple

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.programmes.programme import Period

__all__ = ["UNITS", "after", "before", "last_complete", "period_of", "periods_of"]


class _Unit(NamedTuple):
    """How periods of one length are written, begin and follow each other."""

    example: str
    pattern: str
    start: Callable[..., date]
    text: Callable[[date], str]
    first: Callable[[date], date]


def _month(day: date) -> date:
    return day.replace(day=1)


_UNITS: Final[Mapping[str, _Unit]] = {
    "day": _Unit("2025-03-31", r"(\d{4})-(\d\d)-(\d\d)", date, date.isoformat, lambda day: day),
    "week": _Unit(
        "2025-W14", r"(\d{4})-W(\d\d)", lambda year, week: date.fromisocalendar(year, week, 1),
        lambda day: "{:04}-W{:02}".format(*day.isocalendar()[:2]), lambda day: day - timedelta(day.weekday()),
    ),
    "month": _Unit(
        "2025-03", r"(\d{4})-(\d\d)", lambda year, month: date(year, month, 1),
        lambda day: f"{day:%Y-%m}", _month,
    ),
    "quarter": _Unit(
        "2025-Q1", r"(\d{4})-Q([1-4])", lambda year, quarter: date(year, 3 * quarter - 2, 1),
        lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
        lambda day: date(day.year, (day.month - 1) // 3 * 3 + 1, 1),
    ),
    "year": _Unit(
        "2025", r"(\d{4})", lambda year: date(year, 1, 1), lambda day: f"{day.year:04}",
        lambda day: date(day.year, 1, 1),
    ),
}  # fmt: skip

UNITS: Final = tuple(_UNITS)

_LONGER: Final = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
"""A number of days after which the next period has begun, and not ended."""

_MOST: Final = 10_000


def _holding(unit: str, day: date) -> Period:
    """Return the period that holds a day."""
    start = _UNITS[unit].first(day)
    end = _UNITS[unit].first(start + timedelta(_LONGER[unit]))
    return Period(unit=unit, text=_UNITS[unit].text(start), start=start, end=end)


def period_of(unit: str, text: str) -> Period:
    """Read a period, such as ``2025-03`` of the unit month."""
    found = re.fullmatch(_UNITS[unit].pattern, text, re.ASCII)
    try:
        if found is None or not 1000 <= int(found[1]) < 9998:
            raise ValueError
        return _holding(unit, _UNITS[unit].start(*map(int, found.groups())))
    except ValueError:
        raise ArgumentError(
            "period", f"is no {unit}: {quote(text)}.", hint=f"for example {_UNITS[unit].example}."
        ) from None


def periods_of(unit: str, text: str) -> list[Period]:
    """Read a period, or all from a first to a last: ``2025-01..2025-03``."""
    first, dots, last = text.partition("..")
    found = [period_of(unit, first)]
    end = period_of(unit, last) if dots else found[0]
    if end.start < found[0].start:
        raise ArgumentError(
            "period", f"ends before it begins: {quote(text)}.", hint="write the earlier first."
        )
    while found[-1].start < end.start:
        if len(found) == _MOST:
            raise ArgumentError(
                "period", f"has more than {_MOST:,} {unit}s: {quote(text)}.", hint="name fewer."
            )
        found.append(after(found[-1]))
    return found


def after(period: Period) -> Period:
    """Return the next period."""
    return _holding(period.unit, period.end)


def before(period: Period) -> Period:
    """Return the period before."""
    return _holding(period.unit, period.start - timedelta(1))


def last_complete(unit: str, today: date) -> Period:
    """Return the last period that is over."""
    return before(_holding(unit, today))
