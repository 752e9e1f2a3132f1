"""Levels made of a date: keys as in pandas, clocks of any zone, and text of any format."""

import datetime
import re
import zoneinfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.ingest.leaves import leaves_of
from tests.helpers_cases import each
from tests.helpers_levels import LIBRARIES, ODD_TIMES, UTC, leaf_keys, rng
from tests.strategies import Hostile, objects

UNITS = {
    "year": lambda times: times.dt.year,
    "quarter": lambda times: times.dt.to_period("Q").astype(str),
    "month": lambda times: times.dt.to_period("M").astype(str),
    "iso_year": lambda times: times.dt.isocalendar()["year"].astype("int64"),
    "iso_week": lambda times: times.dt.strftime("%G-W%V"),
    "day": lambda times: times.dt.to_period("D").astype(str),
    "hour": lambda times: times.dt.to_period("h").astype(str),
    "weekday": lambda times: times.dt.day_name(),
    "hour_of_day": lambda times: times.dt.strftime("%H:00"),
}
NESTED = [
    ["year"],
    ["month"],
    ["year", "quarter", "month", "day", "hour"],
    ["year", "day"],
    ["quarter", "month"],
    ["iso_year", "iso_week"],
    ["iso_year", "iso_week", "day"],
    ["iso_year", "day", "hour"],
]


def calendar_of(values, units=("day",), start="2000-01-01", end="2000-12-31", timezone=None, format=None):
    """Which leaf each value of a column has in a calendar, as its finest key; None for none."""
    levels = dpt.calendar("t", list(units), start=start, end=end, timezone=timezone, format=format)
    leaf = leaves_of(levels, {"t": values}.__getitem__)
    finest = levels.paths().iloc[:, -1]
    return [None if place < 0 else finest[place] for place in leaf]


@pytest.mark.parametrize("units", NESTED, ids="-".join)
@each("unit", ["s", "ms", "us", "ns"])
def test_keys_are_those_of_pandas(units, unit):
    generator = rng()
    span = np.array(["1959-12-20", "1976-01-20"], dtype="M8[s]").astype(np.int64)
    times = pd.Series(generator.integers(*span, size=500).astype("M8[s]"))
    times.iloc[:3] = pd.to_datetime(
        ["1960-02-29", "1969-12-31T23:59:59", "1971-01-01"], format="ISO8601"
    )  # leap day, W53
    times = times.astype(f"M8[{unit}]")
    calendar = dpt.calendar("t", units, start="1960-01-01", end="1975-12-31")
    found = leaf_keys(pd.DataFrame({"t": times}), calendar)
    inside = times[(times >= "1960-01-01") & (times < "1976-01-01")].reset_index(drop=True)
    expected = pd.DataFrame({f"t/{unit}": UNITS[unit](inside) for unit in units})
    assert found.values.tolist() == expected.values.tolist()


@each("units", NESTED)
def test_leaves_are_all_units_of_the_days(units):
    days = pd.Series(pd.date_range("1999-12-28", "2001-01-03 23:00", freq="h"))
    expected = pd.DataFrame({f"t/{unit}": UNITS[unit](days) for unit in units}).drop_duplicates()
    paths = dpt.calendar("t", units, start="1999-12-28", end="2001-01-03").paths()
    assert paths.values.tolist() == expected.values.tolist()
    assert paths.values.tolist() == sorted(paths.values.tolist())


def test_weeks_that_cross_years():
    paths = dpt.calendar("t", ["iso_year", "iso_week", "day"], start="2020-12-27", end="2021-01-04").paths()
    assert paths.iloc[[0, 1, 7, 8]].values.tolist() == [
        [2020, "2020-W52", "2020-12-27"],
        [2020, "2020-W53", "2020-12-28"],
        [2020, "2020-W53", "2021-01-03"],
        [2021, "2021-W01", "2021-01-04"],
    ]


@given(day=st.dates(datetime.date(1000, 1, 1), datetime.date(9998, 12, 31)))
def test_any_day_of_a_thousand_years(day):
    calendar = dpt.calendar("t", ["iso_year", "iso_week", "day"], start=day, end=day)
    year, week, _ = day.isocalendar()
    assert calendar.paths().values.tolist() == [[year, f"{year}-W{week:02}", day.isoformat()]]
    months = dpt.calendar("t", ["year", "quarter", "month"], start=day, end=day)
    quarter = f"{day.year}Q{(day.month + 2) // 3}"
    assert months.paths().values.tolist() == [[day.year, quarter, f"{day:%Y-%m}"]]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_zones_are_those_of_python(zone):
    """Every quarter of an hour of a year, its gaps and overlaps included."""
    instants = pd.date_range("2023-12-30", "2025-01-02", freq="15min", tz="UTC")
    local = [time.astimezone(zoneinfo.ZoneInfo(zone)) for time in instants.to_pydatetime()]
    inside = [f"{time:%Y-%m-%d %H}:00" for time in local if time.year == 2024]
    options = {"start": "2024-01-01", "end": "2024-12-31", "timezone": zone}
    calendar = dpt.calendar("t", ["day", "hour"], **options)
    for given_zone in ("UTC", "Asia/Tokyo"):
        frame = pd.DataFrame({"t": instants.tz_convert(given_zone)})
        assert leaf_keys(frame, calendar)["t_hour"].tolist() == inside
    assert calendar.paths()["t_hour"].tolist() == sorted(set(inside))


def test_hours_that_clocks_skip_and_show_twice():
    hours = dpt.calendar("t", ["hour"], start="2024-03-31", end="2024-03-31", timezone="Europe/Berlin")
    assert hours.paths()["t_hour"].tolist()[1:3] == ["2024-03-31 01:00", "2024-03-31 03:00"]
    assert len(hours.paths()) == 23
    assert len(dpt.calendar("t", ["hour"], start="2024-03-31", end="2024-03-31").paths()) == 24
    autumn = pd.Series(pd.to_datetime(["2024-10-27T00:30Z", "2024-10-27T01:30Z", "2024-10-27T02:30Z"]))
    keys = calendar_of(autumn, ["hour"], "2024-10-27", "2024-10-27", "Europe/Berlin")
    assert keys == ["2024-10-27 02:00", "2024-10-27 02:00", "2024-10-27 03:00"]


ODD_ZONES = {  # and a moment when their clocks were set
    "Pacific/Apia": datetime.datetime(2011, 12, 30, 10),  # from -10 to +14: there was no 30th of December
    "Africa/Monrovia": datetime.datetime(1972, 1, 7, 0, 44, 30),  # by 44 minutes and 30 seconds
    "America/Caracas": datetime.datetime(2007, 12, 9, 7),  # back by half an hour
    "Asia/Kathmandu": datetime.datetime(1985, 12, 31, 18, 30),  # on by a quarter
    "Australia/Lord_Howe": datetime.datetime(2024, 10, 5, 15, 30),  # on by half an hour
    "Antarctica/Troll": datetime.datetime(2024, 3, 31, 1),  # on by two hours
    "Europe/Amsterdam": datetime.datetime(1937, 6, 30, 22, 40, 28),  # by 28 seconds, or one of its links
    "America/St_Johns": datetime.datetime(2006, 4, 2, 3, 31),  # at one past midnight
    "Europe/Berlin": datetime.datetime(2900, 3, 28, 1),  # by a rule that holds on
}


@given(
    zone=st.sampled_from(list(ODD_ZONES)),
    minutes=st.lists(st.integers(-3 * 1440, 3 * 1440), min_size=1, max_size=10),
    units=st.sampled_from([["day"], ["year", "month", "day", "hour"], ["iso_year", "iso_week"]]),
)
def test_any_moment_has_the_keys_of_the_clocks_of_its_place(zone, minutes, units):
    moments = [ODD_ZONES[zone].replace(tzinfo=UTC) + datetime.timedelta(minutes=each) for each in minutes]
    local = [moment.astimezone(zoneinfo.ZoneInfo(zone)) for moment in moments]
    start, end = min(local).date(), max(local).date()
    written = {"day": "%Y-%m-%d", "hour": "%Y-%m-%d %H:00", "iso_week": "%G-W%V"}[units[-1]]
    column = pd.Series(moments, dtype="M8[s, UTC]")
    assert calendar_of(column, units, start, end, zone) == [f"{time:{written}}" for time in local]


@pytest.mark.parametrize("zone", ODD_ZONES)
def test_days_and_hours_are_listed_that_the_clocks_show(zone):
    """Seen every ten seconds, for two days before and after."""
    instants = np.datetime64(ODD_ZONES[zone], "s") + 10 * np.arange(-2 * 8640, 2 * 8640)
    shown = pd.Series(instants).dt.tz_localize("UTC").dt.tz_convert(zoneinfo.ZoneInfo(zone))
    first, last = shown.iloc[0].date(), shown.iloc[-1].date()
    one = datetime.timedelta(1)
    shown = shown[shown.dt.date.between(first + one, last - one)]
    for unit, written in (("day", "%Y-%m-%d"), ("hour", "%Y-%m-%d %H:00")):
        calendar = dpt.calendar("t", [unit], start=first + one, end=last - one, timezone=zone)
        assert calendar.paths()[f"t_{unit}"].tolist() == sorted(set(shown.dt.strftime(written)))


@given(order=st.permutations(range(len(ODD_TIMES))), kept=st.integers(1, len(ODD_TIMES)))
def test_each_time_is_read_separately(order, kept):
    chosen = [ODD_TIMES[place] for place in order[:kept]]
    column = objects([value for value, _, _ in chosen])
    assert calendar_of(column) == [naive for _, naive, _ in chosen]
    assert calendar_of(column, timezone="Europe/Berlin") == [zoned for _, _, zoned in chosen]


def test_text_is_read_as_iso_in_every_type():
    texts = ["2000-03-01", None, "1/8/90 0:00", "2000-12-31T23:00"]
    expected = ["2000-03-01", None, None, "2000-12-31"]
    for dtype in (object, "str", "string", "category", "string[pyarrow]"):
        assert calendar_of(pd.Series(texts, dtype=dtype)) == expected


@given(
    texts=st.lists(
        st.datetimes(datetime.datetime(1999, 12, 1), datetime.datetime(2001, 1, 31)).map(
            "{0.month}/{0.day}/{0.year} {0.hour}:{0.minute:02}".format
        )
        | st.sampled_from(["2000-03-01", "2/29/2000 0:00", "2/30/2000 0:00", "", "\ud800", "1/8/00 0:00"]),
        max_size=10,
    ),
    dtype=st.sampled_from([object, "str", "category"]),
)
def test_text_is_read_by_its_format(texts, dtype):
    if dtype is not object:  # pandas cannot make such a column
        texts = [text for text in texts if text != "\ud800"]
    pattern = re.compile(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4}) ([0-9]{1,2}):([0-9]{1,2})")

    def read(text):
        try:
            month, day, year, hour, minute = map(int, pattern.fullmatch(text).groups())
            time = datetime.datetime(year, month, day, hour, minute)
        except (ValueError, AttributeError):
            return None
        return time.date().isoformat() if time.year == 2000 else None

    found = calendar_of(pd.Series(texts, dtype=dtype), format="%m/%d/%Y %H:%M")
    assert found == [read(text) for text in texts]


def test_a_format_is_for_text_alone():
    column = objects(["1/2/2000", "2000-01-02", datetime.date(2000, 1, 2), None, 5, Hostile()])
    assert calendar_of(column, format="%m/%d/%Y") == ["2000-01-02", None, "2000-01-02", None, None, None]
    zoned = objects(["1/2/2000 +0000", "1/2/2000 -0800", "1/2/2000", "1/2/2000 +9900"])
    found = calendar_of(zoned, ["hour"], timezone="Europe/Berlin", format="%m/%d/%Y %z")
    assert found == ["2000-01-02 01:00", "2000-01-02 09:00", None, None]
    assert calendar_of(objects(["Q2", "2000 05"]), ["month"], format="%Y %m") == [None, "2000-05"]


def test_parts_of_a_second_before_1970_are_rounded_down_in_every_type():
    text = "1969-12-31T23:59:59.500"
    stamp = pd.Timestamp(text)
    for column in (
        objects([stamp, stamp.to_pydatetime(), np.datetime64(text), text]),
        pd.Series([stamp] * 4).astype("category"),
        *(pd.Series([stamp] * 4).astype(f"M8[{unit}]") for unit in ("ms", "us", "ns")),
    ):
        assert calendar_of(column, ["hour"], "1969-01-01", "1970-12-31") == ["1969-12-31 23:00"] * 4
    zoned = objects([stamp.tz_localize("UTC"), f"{text}+00:00"])
    found = calendar_of(zoned, ["hour"], "1969-01-01", "1970-12-31", timezone="Asia/Tokyo")
    assert found == ["1970-01-01 08:00"] * 2


@each("unit", ["s", "us", "ns"])
@each("zone", [None, "Asia/Tokyo"])
def test_times_at_the_ends_of_their_types_are_dropped(unit, zone):
    ends = np.array([np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max, np.iinfo(np.int64).min])
    column = pd.Series(ends.view(f"M8[{unit}]"))
    if zone is not None:
        column = pd.Series(pd.arrays.DatetimeArray._simple_new(  # no zone can be computed for these
            ends.view(f"M8[{unit}]"), dtype=pd.DatetimeTZDtype(unit, zone)
        ))  # fmt: skip
    assert calendar_of(column, timezone=zone) == [None] * 3


@each("unit", ["s", "ms", "us", "ns"])
def test_missing_times_are_of_no_year(unit):
    """The number that stands for them would be one of 1677 in nanoseconds."""
    column = pd.Series(["NaT", "1677-12-01"], dtype=f"M8[{unit}]")
    assert calendar_of(column, ["year"], "1000-01-01", "9998-12-31") == [None, 1677]


@each("dtype", [object, "str", "float64", "M8[ns]"])
def test_no_records_give_zeros(dtype):
    counts = pd.DataFrame({"t": pd.Series([], dtype=dtype)}).dp.tree_counts(
        dpt.calendar("t", ["year"], start="2000-01-01", end="2001-12-31"), epsilon=1e7
    )
    assert counts["count"].tolist() == [0, 0, 0]


# Units that come again.

AGAIN = [
    ["weekday"],
    ["hour_of_day"],
    ["weekday", "hour_of_day"],
    ["month", "weekday"],
    ["iso_week", "weekday", "hour_of_day"],
    ["quarter", "hour_of_day"],
    ["day", "hour_of_day"],
]


@pytest.mark.parametrize("units", AGAIN, ids="-".join)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "Australia/Lord_Howe"])
def test_weekdays_and_hours_are_those_of_pandas(units, zone):
    """In a month in which clocks are set, leaves are what the clocks show, and records are found there."""
    start, end = {"Australia/Lord_Howe": ("2024-04-01", "2024-04-30")}.get(zone, ("2024-03-15", "2024-04-14"))
    instants = pd.Series(pd.date_range("2024-03-10", "2024-05-05", freq="30min", tz="UTC"))
    local = instants.dt.tz_localize(None) if zone is None else instants.dt.tz_convert(zone)
    inside = local[
        local.dt.date.between(datetime.date.fromisoformat(start), datetime.date.fromisoformat(end))
    ]
    inside = inside.dt.tz_localize(None).reset_index(drop=True)
    expected = pd.DataFrame({unit: UNITS[unit](inside) for unit in units}).values.tolist()
    calendar = dpt.calendar("t", units, start=start, end=end, timezone=zone)
    assert leaf_keys(pd.DataFrame({"t": local}), calendar).values.tolist() == expected
    days = {
        name: place for place, name in enumerate(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"])
    }
    paths = calendar.paths().values.tolist()
    ordered = sorted(
        {tuple(path) for path in expected},
        key=lambda path: [{**days, "Saturday": 5, "Sunday": 6}.get(key, key) for key in path],
    )
    assert paths == list(map(list, ordered))


def test_an_hour_of_a_weekday_is_one_of_the_day():
    week = {"start": "2025-03-31", "end": "2025-04-06"}
    one = dpt.calendar("t", ["iso_week", "weekday", "hour"], **week)
    other = dpt.calendar("t", ["iso_week", "weekday", "hour_of_day"], **week)
    assert one.names == ("t_iso_week", "t_weekday", "t_hour")
    assert one.paths().values.tolist() == other.paths().values.tolist()
    assert one.paths().iloc[25].tolist() == ["2025-W14", "Tuesday", "01:00"] and len(one.paths()) == 168


def test_an_hour_that_clocks_skipped_is_no_hour_of_that_day():
    options = {"timezone": "Europe/Berlin", "start": "2024-03-31", "end": "2024-03-31"}
    assert dpt.calendar("t", ["hour_of_day"], **options).paths()["t_hour_of_day"].tolist()[1:3] == [
        "01:00", "03:00"
    ]  # fmt: skip
    options["end"] = "2024-04-01"
    assert len(dpt.calendar("t", ["hour_of_day"], **options).paths()) == 24


@pytest.mark.parametrize("zone", [None, "Asia/Kathmandu"])
def test_weekdays_and_hours_without_dates_count_all_days(zone):
    calendar = dpt.calendar("t", ["weekday", "hour"], timezone=zone)
    assert len(calendar.paths()) == 168 and calendar.paths()["t_weekday"].cat.ordered
    texts = ["1066-10-14T09:30", "2024-10-27T23:59", "9998-12-31T12:00", "0999-12-30T00:00", "NaT"]
    times = pd.Series(np.array(texts, dtype="M8[s]"))
    local = times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)
    found = leaf_keys(pd.DataFrame({"t": local}), calendar)
    inside = local.iloc[:3].dt.tz_localize(None)
    expected = pd.DataFrame({unit: UNITS[unit](inside) for unit in ("weekday", "hour_of_day")})
    assert found.values.tolist() == expected.values.tolist()


CLOCKS = {  # by "%I:%M%p"
    "9:27AM": "09:00", "12:00AM": "00:00", "12:59am": "00:00", "12:00PM": "12:00", "11:59PM": "23:00",
    "1:05pm": "13:00", "09:27AM": "09:00", "13:00PM": None, "0:30AM": None, "9:60AM": None, "9:27": None,
    "9:27AM ": None, "": None, "noon": None, "2024-01-01T09:27": None, None: None,
}  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
def test_times_of_day_are_read_by_their_format(library):
    calendar = dpt.calendar("t", "hour_of_day", format="%I:%M%p")
    frame = LIBRARIES[library](pd.DataFrame({"t": list(CLOCKS)}))
    assert leaf_keys(frame, calendar)["t_hour_of_day"].tolist() == [
        hour for hour in CLOCKS.values() if hour is not None
    ]


def test_each_time_of_day_is_read_separately():
    for text, hour in CLOCKS.items():
        counts = pd.DataFrame({"t": [text, "9:27AM"]}).dp.tree_counts(
            dpt.calendar("t", ["hour_of_day"], format="%I:%M%p"), epsilon=100.0, rng=rng()
        )
        assert counts["count"].iloc[0] == 1 + (hour is not None)


@each(
    "units, options, fact",
    [
        (["weekday", "day"], {}, "must be nested"),
        (["hour_of_day", "weekday"], {}, "must be nested"),
        (["hour", "hour_of_day"], {}, "must be nested"),
        (["day", "weekday"], {}, "must be nested"),
        (["month", "weekday"], {"start": None, "end": None}, "`start` and `end` must be given"),
        (["hour"], {"start": None, "end": None}, "`start` and `end` must be given"),
        (["weekday"], {"end": None}, "`end` must be given"),
        (["hour_of_day"], {"format": "%I:%M%p"}, "must contain the year"),
        (["weekday"], {"start": None, "end": None, "format": "%A"}, "must contain the year"),
        (["hour_of_day"], {"start": None, "end": None, "format": "%I:%M"}, "must contain the hour"),
        (["hour_of_day"], {"start": None, "end": None, "format": "%H:%M", "timezone": "UTC"}, "the year"),
    ],
)
def test_what_is_refused_of_units_that_come_again(units, options, fact):
    with pytest.raises(dpt.ArgumentError, match=fact):
        dpt.calendar("t", units, **{"start": "2024-01-01", "end": "2024-12-31", **options})


def test_a_calendar_may_begin_in_1970():
    times = pd.Series(pd.to_datetime(["1969-12-31", "1970-01-01"]))
    assert calendar_of(times, ["weekday"], "1970-01-01", "1970-12-31") == [None, "Thursday"]
