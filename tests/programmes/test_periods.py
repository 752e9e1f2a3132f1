"""Periods follow each other without gaps, and are read as they are written."""

from datetime import date, timedelta

import pytest

import pandas_dptree as dpt
from pandas_dptree.programmes.periods import UNITS, after, before, last_complete, period_of, periods_of


@pytest.mark.parametrize("unit", UNITS)
def test_every_day_is_in_one_period(unit):
    period = last_complete(unit, date(2019, 12, 30))
    for _ in range(400):
        following = after(period)
        assert period.end == following.start > period.start
        assert before(following) == period == period_of(unit, period.text)
        assert last_complete(unit, period.end) == last_complete(unit, following.end - timedelta(1)) == period
        period = following


@pytest.mark.parametrize(
    ("unit", "text", "start", "end"),
    [
        ("day", "2024-02-29", "2024-02-29", "2024-03-01"),
        ("week", "2025-W01", "2024-12-30", "2025-01-06"),
        ("week", "2026-W53", "2026-12-28", "2027-01-04"),
        ("month", "2025-12", "2025-12-01", "2026-01-01"),
        ("quarter", "2025-Q4", "2025-10-01", "2026-01-01"),
        ("year", "2024", "2024-01-01", "2025-01-01"),
    ],
)
def test_their_days(unit, text, start, end):
    period = period_of(unit, text)
    assert (period.start.isoformat(), period.end.isoformat(), period.text) == (start, end, text)


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("day", "2025-02-29"), ("week", "2025-W53"), ("month", "2025-13"), ("month", "2025-3"),
        ("quarter", "2025-Q5"), ("year", "25"), ("year", "0001"), ("month", "٢٠٢٥-٠٣"), 
        ("month", "2025-03\n"),
        ("month", "2025-03..2025-02"), ("day", "1900-01-01..2025-01-01"), ("month", ".."),
    ],
)  # fmt: skip
def test_others_are_refused(unit, text):
    with pytest.raises(dpt.ArgumentError, match="period"):
        periods_of(unit, text)


def test_several():
    assert [each.text for each in periods_of("month", "2024-11..2025-02")] == [
        "2024-11", "2024-12", "2025-01", "2025-02",
    ]  # fmt: skip
