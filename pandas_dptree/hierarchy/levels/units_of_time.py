"""Units of time as whole numbers, counted from 1970, or within the unit in which they come again."""

from __future__ import annotations

import datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["DAY", "HOUR", "Unit", "exist", "labels_of", "numbers_of", "starts_of"]

Unit = Literal["year", "quarter", "month", "iso_year", "iso_week", "day", "hour", "weekday", "hour_of_day"]

HOUR, DAY = 3_600, 86_400
"""Seconds."""

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def numbers_of(unit: Unit, seconds: IntArray) -> IntArray:
    """Number the units that contain the times, counted from that of 1970-01-01."""
    days = seconds // DAY
    match unit:
        case "hour":
            return seconds // HOUR
        case "day":
            return days
        case "hour_of_day":
            return seconds // HOUR % 24
        case "iso_week":  # 1970-01-01 was a Thursday, and weeks begin on Mondays
            return (days + 3) // 7
        case "weekday":
            return (days + 3) % 7
        case "iso_year":  # a week belongs to the year of its Thursday
            return numbers_of("year", (days + 3) // 7 * 7 * DAY)
        case "quarter":
            return numbers_of("month", seconds) // 3
    return days.view("M8[D]").astype("M8[M]" if unit == "month" else "M8[Y]").view(np.int64)


def starts_of(unit: Unit, numbers: IntArray) -> IntArray:
    """Return a second at the start of each unit; for an iso_year, some second within it."""
    match unit:
        case "hour":
            return numbers * HOUR
        case "day":
            return numbers * DAY
        case "iso_week":
            return (numbers * 7 - 3) * DAY
        case "iso_year":  # 4 January always belongs to it
            return starts_of("year", numbers) + 3 * DAY
        case "quarter":
            return starts_of("month", numbers * 3)
    months = numbers.view("M8[M]" if unit == "month" else "M8[Y]")
    return months.astype("M8[D]").view(np.int64) * DAY


def labels_of(unit: Unit, numbers: IntArray) -> pd.Index:
    """Return the keys of units, in the order of time."""
    labels: pd.Index = pd.Index(_unit_keys(unit, numbers))
    return pd.CategoricalIndex(labels, categories=labels, ordered=True) if unit == "weekday" else labels


def _unit_keys(unit: Unit, numbers: IntArray) -> list[Any]:
    """Return the keys of units as numbers and texts."""
    match unit:
        case "year" | "iso_year":
            return [1970 + number for number in numbers.tolist()]
        case "quarter":
            return [f"{1970 + number // 4}Q{number % 4 + 1}" for number in numbers.tolist()]
        case "iso_week":
            starts = starts_of("iso_week", numbers)
            years = numbers_of("iso_year", starts)
            week = numbers - numbers_of("iso_week", starts_of("iso_year", years)) + 1
            return [f"{1970 + y}-W{w:02}" for y, w in zip(years.tolist(), week.tolist(), strict=True)]
        case "weekday":
            return [_WEEKDAYS[number] for number in numbers.tolist()]
        case "hour_of_day":
            return [f"{number:02}:00" for number in numbers.tolist()]
        case "hour":
            return [hour.replace("T", " ") + ":00" for hour in np.datetime_as_string(numbers.view("M8[h]"))]
    texts: list[str] = np.datetime_as_string(numbers.view("M8[M]" if unit == "month" else "M8[D]")).tolist()
    return texts


def exist(starts: IntArray, size: int, timezone: datetime.tzinfo) -> npt.NDArray[np.bool_]:
    """Whether each unit exists on local clocks, at its start or at its end."""
    ends = [
        pd.DatetimeIndex((starts + second).view("M8[s]")).tz_localize(
            timezone, nonexistent="NaT", ambiguous=np.zeros(len(starts), dtype=bool)
        )
        for second in (0, size - 1)
    ]
    exist: npt.NDArray[np.bool_] = ~(np.asarray(ends[0].isna()) & np.asarray(ends[1].isna()))
    return exist
