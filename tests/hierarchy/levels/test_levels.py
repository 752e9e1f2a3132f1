"""Levels made of columns: dates, numbers, public tables and places, each with a domain of its own."""

import datetime
import math
import re
import zoneinfo
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, ColumnsError, DomainError
from pandas_dptree.hierarchy.domain import fingerprint
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.read_as import Numbers, ReadAs
from pandas_dptree.ingest.contributions import contributions
from pandas_dptree.ingest.leaves import leaves_of
from pandas_dptree.ingest.prefixes import nonempty_levels, sorted_keys
from pandas_dptree.ingest.readers import READERS
from pandas_dptree.verbs.tables import domain_of
from tests.strategies import Hostile, objects

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: polars.from_pandas(frame),
    "polars-lazy": lambda frame: polars.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pyarrow.Table.from_pandas(frame),
}
UNITS = {
    "year": lambda times: times.dt.year,
    "quarter": lambda times: times.dt.to_period("Q").astype(str),
    "month": lambda times: times.dt.to_period("M").astype(str),
    "iso_year": lambda times: times.dt.isocalendar()["year"].astype("int64"),
    "iso_week": lambda times: times.dt.strftime("%G-W%V"),
    "day": lambda times: times.dt.to_period("D").astype(str),
    "hour": lambda times: times.dt.to_period("h").astype(str),
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


def rng():
    return np.random.default_rng(0)


def leaf_keys(frame, by, places=None):
    """The keys of the leaf of each record that has one, in the order of the records."""
    domain = dpt.derived_domain(by, places)
    records = frame.assign(row=range(len(frame)))
    found = contributions(records, domain, privacy_unit="row")
    return domain.keys(len(domain.by)).iloc[found.leaf].reset_index(drop=True)


def calendar_of(values, units=("day",), start="2000-01-01", end="2000-12-31", timezone=None, format=None):
    """Which leaf each value of a column has in a calendar, as its finest key; None for none."""
    levels = dpt.calendar("t", list(units), start=start, end=end, timezone=timezone, format=format)
    leaf = leaves_of(levels, {"t": values}.__getitem__)
    finest = levels.paths().iloc[:, -1]
    return [None if place < 0 else finest[place] for place in leaf]


# --- calendars -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", NESTED, ids="-".join)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
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


@pytest.mark.parametrize("units", NESTED, ids="-".join)
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


@settings(max_examples=150, deadline=None)
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


UTC = datetime.UTC
ODD_TIMES = [
    ("2000-02-29", "2000-02-29", None),
    ("2000-02-29T23:59:59.999999", "2000-02-29", None),
    ("2000-02-29T23:30+00:00", None, "2000-03-01"),
    (datetime.date(2000, 12, 31), "2000-12-31", None),
    (datetime.datetime(2000, 1, 1, 12), "2000-01-01", None),
    (datetime.datetime(2000, 1, 1, 12, tzinfo=UTC), None, "2000-01-01"),
    (pd.Timestamp("2000-05-05", tz="Asia/Tokyo"), None, "2000-05-04"),
    (np.datetime64("2000-06-01T05", "h"), "2000-06-01", None),
    (np.datetime64("2000-06", "M"), "2000-06-01", None),
    *((value, None, None) for value in ("1999-12-31", "2001-01-01", "2000-02-30", "3/5/00", "", "NaT")),
    *((value, None, None) for value in (None, pd.NaT, pd.NA, math.nan, 2000, True, ("2000-01-01",), b"2000")),
    *((value, None, None) for value in (datetime.timedelta(1), datetime.time(1), Hostile(), object())),
    *((value, None, None) for value in (datetime.date.min, datetime.datetime.max, np.datetime64(2**60, "D"))),
]


@settings(max_examples=60, deadline=None)
@given(order=st.permutations(range(len(ODD_TIMES))), kept=st.integers(1, len(ODD_TIMES)))
def test_each_time_is_read_by_itself(order, kept):
    chosen = [ODD_TIMES[place] for place in order[:kept]]
    column = objects([value for value, _, _ in chosen])
    assert calendar_of(column) == [naive for _, naive, _ in chosen]
    assert calendar_of(column, timezone="Europe/Berlin") == [zoned for _, _, zoned in chosen]


def test_text_is_read_as_iso_in_every_type():
    texts = ["2000-03-01", None, "1/8/90 0:00", "2000-12-31T23:00"]
    expected = ["2000-03-01", None, None, "2000-12-31"]
    for dtype in (object, "str", "string", "category", "string[pyarrow]"):
        assert calendar_of(pd.Series(texts, dtype=dtype)) == expected


@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_times_at_the_ends_of_their_types_are_dropped(unit, zone):
    ends = np.array([np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max, np.iinfo(np.int64).min])
    column = pd.Series(ends.view(f"M8[{unit}]"))
    if zone is not None:
        column = pd.Series(pd.arrays.DatetimeArray._simple_new(  # no zone can be computed for these
            ends.view(f"M8[{unit}]"), dtype=pd.DatetimeTZDtype(unit, zone)
        ))  # fmt: skip
    assert calendar_of(column, timezone=zone) == [None] * 3


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_missing_times_are_of_no_year(unit):
    """The number that stands for them would be one of 1677 in nanoseconds."""
    column = pd.Series(["NaT", "1677-12-01"], dtype=f"M8[{unit}]")
    assert calendar_of(column, ["year"], "1000-01-01", "9998-12-31") == [None, 1677]


@pytest.mark.parametrize("dtype", [object, "str", "float64", "M8[ns]"])
def test_nobody_is_an_answer_too(dtype):
    counts = pd.DataFrame({"t": pd.Series([], dtype=dtype)}).dp.tree_counts(
        dpt.calendar("t", ["year"], start="2000-01-01", end="2001-12-31"), epsilon=1e7
    )
    assert counts["count"].tolist() == [0, 0, 0]


# --- intervals -------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats() | st.sampled_from([0.0, 18.0, 65.0, 120.0, 0.1 + 0.2]), max_size=20),
    edges=st.sampled_from([[0, 18, 65, 120], [-1.5, 0, 0.3], np.array([1, 2]), range(5)]),
)
def test_intervals_are_those_of_pandas(values, edges):
    column = pd.Series(values, dtype=float)
    low, high = edges[0], edges[len(edges) - 1]
    clipped = column.clip(low, np.nextafter(high, low)).dropna()
    expected = pd.cut(clipped, list(edges), right=False, labels=False).astype(int).tolist()
    levels = dpt.cut("x", edges)
    found = leaves_of(levels, {"x": column}.__getitem__)
    assert found[column.notna()].tolist() == expected
    assert (found[column.isna()] == -1).all()


def test_intervals_are_written_and_ordered():
    counts = dpt.tree_counts(
        pd.DataFrame({"age": [3, 7, "12", 200, -1, None, "old"]}),
        dpt.cut("age", levels={"group": [0, 10, 20], "band": 5}), epsilon=1e6, rng=rng(),
    )  # fmt: skip
    bands = counts.dp.level("age_band")["count"]
    assert bands.index.tolist() == [
        ("[0, 10)", "[0, 5)"), ("[0, 10)", "[5, 10)"), ("[10, 20]", "[10, 15)"), ("[10, 20]", "[15, 20]")
    ]  # fmt: skip
    assert bands.tolist() == [2, 1, 1, 1]
    assert counts["age_band"].cat.ordered
    assert counts["age_band"].cat.categories.tolist() == ["[0, 5)", "[5, 10)", "[10, 15)", "[15, 20]"]


def test_widths_meet_listed_ends_whatever_floats_do():
    levels = dpt.cut("x", levels={"coarse": [0, 0.3, 0.7, 1], "fine": 0.1, "finest": 0.05})
    assert dpt.derived_domain(levels).tree.level_sizes == (1, 3, 10, 20)
    assert levels.paths()["x_fine"].unique()[2:4].tolist() == ["[0.2, 0.3)", "[0.3, 0.4)"]
    value = pd.Series([0.3, np.nextafter(0.3, 0)])
    [above, below] = leaves_of(levels, {"x": value}.__getitem__)
    assert levels.paths().iloc[[above, below], 0].tolist() == ["[0.3, 0.7)", "[0, 0.3)"]
    close = dpt.cut("x", [1, 1 + 2**-52, 2])
    assert close.paths()["x_bin"].tolist() == ["[1.0, 1.0000000000000002)", "[1.0000000000000002, 2.0]"]


@given(
    low=st.integers(-500, 500),
    steps=st.integers(1, 60),
    hundredths=st.sampled_from([1, 2, 5, 10, 25, 30, 70]),
)
def test_ends_made_with_a_width_are_the_numbers_that_are_written(low, steps, hundredths):
    """So that 0.3 lies in [0.3, 0.4), though three times 0.1 is more than 0.3."""
    width, ends = hundredths / 100, (low * hundredths / 100, (low + steps) * hundredths / 100)
    levels = dpt.cut("x", width=width, bounds=ends)
    [edges] = levels.edges
    assert edges.tolist() == [(low + step) * hundredths / 100 for step in range(steps + 1)]
    texts = [text[1:-1].split(", ") for text in levels.paths()["x_bin"]]
    assert [(float(start), float(end)) for start, end in texts] == list(pairwise(edges.tolist()))


@pytest.mark.parametrize("ends", [(0, 1e-310), (1e300, 1.5e300), (2**53, 2**53 + 6), (0, 1e-5 / 3)])
def test_ends_of_any_size_rise(ends):
    levels = dpt.cut("x", width=(ends[1] - ends[0]) / 3, bounds=ends)
    assert np.allclose(levels.edges[0], np.linspace(*ends, 4), rtol=1e-9, atol=0)
    assert len(set(levels.paths()["x_bin"])) == 3


def test_a_width_between_bounds():
    assert len(dpt.cut("age", width=5, bounds=(0, 120)).paths()) == 24
    assert dpt.cut("age", width=60, bounds=(0, 120)).names == ("age_bin",)


# --- tables ----------------------------------------------------------------------------------------------

PRODUCTS = pd.DataFrame(
    {
        "kind": ["fruit", "tool", "fruit", "tool"],
        "shelf": [2, 1, 1, 1],
        "product": ["pear", "saw", "kiwi", "axe"],
    }
)


def test_a_mapping_is_a_merge():
    frame = pd.DataFrame(
        {"product": rng().choice(["pear", "kiwi", "saw", "axe", "gun", None], 200), "kind": "?"}
    )
    by = ["kind", "shelf", "product"]
    found = leaf_keys(frame, dpt.mapping(PRODUCTS, by))
    expected = frame[["product"]].dropna().merge(PRODUCTS, on="product")[by]
    assert found.values.tolist() == expected.values.tolist()


def test_another_table_is_another_mapping():
    tables = [pd.DataFrame({"kind": kinds, "code": [10, 20]}) for kinds in (["a", "b"], ["b", "a"])]
    first, second = (dpt.mapping(table, ["kind", "code"]) for table in tables)
    assert (
        first.definition
        == dpt.mapping(tables[0].iloc[::-1], ["kind", "code"]).definition
        != second.definition
    )
    with pytest.raises(ArgumentError, match="derived in another way"):
        domain_of(None, first, dpt.derived_domain(second))


def test_a_mapping_takes_values_of_any_type():
    table = pd.DataFrame({"kind": ["a", "b"], "code": [10, 20]})
    frame = pd.DataFrame({"code": objects([10, 20.0, "10", True, None, Hostile(), np.int8(20)])})
    assert leaf_keys(frame, dpt.mapping(table, ["kind", "code"]))["kind"].tolist() == ["a", "b", "b"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_text_with_a_nul_is_looked_up_by_itself(library):
    """One row in front took all others with it: texts were C strings in pandas up to 3.0.0."""
    table = pd.DataFrame({"kind": ["x", "x", "y"], "code": objects(["a", "b", "a\0b"])})
    frame = pd.DataFrame({"code": objects(["a\0", "a", "a", "a\0b", "a\0bc", "b", "12\0", "12"])})
    domain = dpt.derived_domain([dpt.mapping(table, ["kind", "code"])])
    found = contributions(LIBRARIES[library](frame), domain)
    assert np.bincount(found.leaf, found.rows, 3).tolist() == [2, 1, 1]
    domain = dpt.derived_domain([dpt.prefixes("code", chars=[1, 2], alphabet="12")])
    found = contributions(LIBRARIES[library](frame), domain)
    counts = np.bincount(found.leaf, found.rows, 4).tolist()
    assert dict(zip(domain.keys(2)["code/2"], counts, strict=True)) == {"11": 0, "12": 2, "21": 0, "22": 0}


# --- squares ---------------------------------------------------------------------------------------------

COORDINATES = st.floats(-1, 5) | st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, math.nan, math.inf])


@settings(max_examples=60, deadline=None)
@given(
    points=st.lists(st.tuples(COORDINATES, COORDINATES), max_size=20),
    depth=st.integers(1, 4),
)
def test_every_point_lies_in_its_squares(points, depth):
    frame = pd.DataFrame(points, columns=["y", "x"], dtype=float)
    levels = dpt.quadtree("y", "x", depth=depth, bounds=((0, 4), (1, 3)))
    found = leaf_keys(frame, levels)
    inside = frame[frame["y"].between(0, 4) & frame["x"].between(1, 3)]
    assert len(found) == len(inside)
    for (y, x), keys in zip(inside.values.tolist(), found.values.tolist(), strict=True):
        for level, key in enumerate(keys, 1):
            assert len(key) == level and keys[-1].startswith(key)
            (y0, y1), (x0, x1) = levels.square(key)
            assert y0 <= y < y1 or y == y1 == 4
            assert x0 <= x < x1 or x == x1 == 3


def test_all_squares_are_listed():
    levels = dpt.quadtree("y", "x", depth=3, bounds=((0, 8), (0, 8)), name="place")
    assert levels.names == ("place_1", "place_2", "place_3")
    squares = {levels.square(key) for key in levels.paths()["place_3"]}
    assert squares == {((y, y + 1), (x, x + 1)) for y in range(8) for x in range(8)}
    assert levels.square("1") == ((0, 4), (4, 8))


# --- prefixes --------------------------------------------------------------------------------------------

BASES = dpt.prefixes("x", chars=[1, 3], alphabet="TCGA")
BITS = dpt.prefixes("x", bits=[2, 3, 6], width=8)
BLOCKS = dpt.prefixes("x", bits=[4, 8])
ADDRESSES = dpt.prefixes("x", bits=[3, 8], notation="ipv4")
VALUES = {
    BASES: st.text("TCGA", max_size=5) | st.sampled_from(["", "TCX", "TCGX", "tcg", None, 5, "TCG\ud800"]),
    BITS: st.integers(-2, 300)
    | st.sampled_from([7.0, 7.5, "7", None, math.nan, math.inf, True])
    | st.builds(Hostile),
    BLOCKS: st.sampled_from([0, 255, 256, np.int8(5), Fraction(10, 2), 2**70, np.uint64(2**64 - 1)]),
    ADDRESSES: st.sampled_from(["0.0.0.0", "10.1.2.3", "255.0.0.1", "10.0.0", "a", 2**31, 2**32, None]),
}
COLUMNS = st.sampled_from(list(VALUES)).flatmap(
    lambda tree: st.tuples(st.just(tree), st.lists(VALUES[tree], max_size=30))
)


@settings(max_examples=150, deadline=None)
@given(column=COLUMNS)
@example(column=(BITS, [1.0, 2.0, 255.0]))
def test_prefixes_hold_whom_they_hold_in_the_tree_that_nobody_lists(column):
    """But for texts that are too short to have a leaf."""
    tree, values = column
    frame = pd.DataFrame({"x": objects(values)})
    domain = dpt.derived_domain([tree])
    found = contributions(frame, domain)
    listed = domain.tree.roll_up(np.bincount(found.leaf, found.rows, domain.tree.n_leaves).astype(np.int64))
    if tree is BASES:
        long = frame["x"].map(lambda value: isinstance(value, str) and len(value) >= 3).astype(bool)
        frame = frame[long]
    keys, rows = sorted_keys(frame, tree, random_words=lambda n: np.zeros(n, dtype=np.uint64))
    for level, (prefixes, counts) in zip((3, 2, 1), nonempty_levels(keys, rows, tree), strict=False):
        level -= 3 - len(tree.lengths)
        name, length = tree.level_names[level], tree.lengths[level - 1]
        held = dict(zip(tree.labels(prefixes, length), counts.tolist(), strict=True))
        labels = domain.keys(level)[name]
        assert labels.is_unique
        assert {label: n for label, n in zip(labels, listed[level].tolist(), strict=True) if n} == held


def test_prefixes_are_listed_in_their_order():
    paths = BASES.paths()
    assert paths.columns.tolist() == ["x/1", "x/3"] and len(paths) == 64
    assert paths.iloc[[0, 1, 16]].values.tolist() == [["T", "TTT"], ["T", "TTC"], ["C", "CTT"]]
    assert BITS.paths().iloc[[0, 9, 63]].values.tolist() == [[0, 0, 0], [0, 1, 9], [3, 7, 63]]
    assert ADDRESSES.paths().iloc[33].tolist() == ["32.0.0.0/3", "33.0.0.0/8"]
    assert dpt.derived_domain([BASES, BLOCKS.__class__("y", (1,), 4)]).tree.level_sizes == (1, 4, 64, 128)


def test_types_of_prefixes_are_those_of_the_tree_that_nobody_lists():
    frame = pd.DataFrame({"x": [200] * 500 + [3] * 500})
    listed = frame.dp.tree_counts([BLOCKS], epsilon=1e6, rng=rng())
    sparse = frame.dp.tree_counts(BLOCKS, epsilon=1.0, delta=1e-6, rng=rng())
    assert (listed.dtypes[["x/4", "x/8"]] == sparse.dtypes[["x/4", "x/8"]]).all()
    assert len(listed) == 1 + 16 + 256
    level = listed.dp.level("x/8")["count"]
    assert level[level > 0].to_dict() == {(0, 3): 500, (12, 200): 500}


def test_prefixes_that_are_made_in_another_way():
    told = [
        each.definition
        for each in (BITS, BASES, BLOCKS, dpt.prefixes("x", bits=[2, 3, 6], width=9), ADDRESSES,
                     dpt.prefixes("x", chars=[1, 3], alphabet="ACGT"))
    ]  # fmt: skip
    assert len(set(told)) == len(told)
    assert told[0] == ("prefixes", "x", (2, 3, 6), 8, "number")


# --- together --------------------------------------------------------------------------------------------

VISITS = dpt.datasets.clinic_visits(2_000)
CLINICS = dpt.datasets.clinics()
REGIONS = CLINICS[["region"]].drop_duplicates()
MONTHS = dpt.calendar("date", ["year", "month"], start="2024-01-01", end="2025-06-30")
AGES = dpt.cut("age", [0, 18, 65, 120])
KINDS = dpt.mapping(
    pd.DataFrame({"part": ["north", "north", "south"], "region": ["Aldmark", "Corrow", "Estholm"]}),
    by=["part", "region"],
)
WITH_KEYS = VISITS.assign(
    **{
        "date_year": VISITS["date"].dt.year,
        "date_month": VISITS["date"].dt.strftime("%Y-%m"),
        "age_bin": pd.cut(VISITS["age"], [0, 18, 65, 120], right=False).map(
            lambda each: f"[{each.left}, {each.right}{']' if each.right == 120 else ')'}"
        ).astype(AGES.domain.labels[0].dtype),
        "age/3": VISITS["age"] // 16,
        "age/7": VISITS["age"],
        "region/1": VISITS["region"].str[:1],
        "region/2": VISITS["region"].str[:2],
        "part": VISITS["region"].map({"Aldmark": "north", "Corrow": "north", "Estholm": "south"}),
    }
)  # fmt: skip
AGE_BITS = dpt.prefixes("age", bits=[3, 7])
INITIALS = dpt.prefixes("region", chars=[1, 2], alphabet="ABCDElorsu")
SEXES = pd.DataFrame({"sex": ["f", "m"]})
COMPOSED = {
    "alone": (MONTHS, None),
    "listed": ([MONTHS], None),
    "below": (["region", MONTHS], REGIONS),
    "above": ([MONTHS, "region"], REGIONS),
    "between": (["region", AGES, "sex"], REGIONS.merge(SEXES, how="cross")),
    "several": ([KINDS, AGES, MONTHS], None),
    "observed": ([AGES, "region"], "observed"),
    "prefixes": (["region", AGE_BITS, "sex"], REGIONS.merge(SEXES, how="cross")),
    "several prefixes": ([INITIALS, AGE_BITS], None),
    "prefixes below": (["sex", MONTHS, INITIALS], SEXES),
    "early ends": ([AGES, "region", "district", "clinic"], dpt.datasets.clinics()),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("how", COMPOSED)
@pytest.mark.filterwarnings("ignore:Mismatched null-like values:FutureWarning")  # pandas 2 has several
def test_the_release_is_that_of_keys_made_beforehand(how, library):
    """The same noise on the same counts: also where polars counts, and where units are bounded."""
    by, domain = COMPOSED[how]
    columns = ["person", "region", "district", "clinic", "date", "age", "cost", "sex"]
    records = WITH_KEYS.assign(sex=np.where(WITH_KEYS["person"] % 2, "f", "m"))
    full = domain_of(records, by, domain)
    places = pd.DataFrame(
        {
            name: label.to_series().reset_index(drop=True).reindex(codes).array
            for name, label, codes in zip(full.by, full.labels, full.path_codes(len(full.by)), strict=True)
        }
    )
    made = dpt.Domain.from_frame(places, by=full.by)
    native = LIBRARIES[library](records[columns])
    for unit, k in ((None, 1), ("person", 2)):
        options = {"epsilon": 0.5, "privacy_unit": unit, "max_contributions": k}
        derived = dpt.tree_counts(native, by, domain=domain, **options, rng=rng())
        plain = dpt.tree_counts(records, list(full.by), domain=made, **options, rng=rng())
        pd.testing.assert_frame_equal(derived, plain, check_dtype=False)


def test_all_verbs_take_derived_levels():
    by = ["region", MONTHS]
    counts = VISITS.dp.tree_counts(by, domain=REGIONS, epsilon=1e7, rng=rng())
    months = VISITS["date"].dt.strftime("%Y-%m").rename("date_month")
    years = VISITS["date"].dt.year.rename("date_year")
    inside = VISITS["date"] < "2025-07-01"
    exact = VISITS[inside].groupby(["region", years, months]).size()
    level = counts.dp.level("date_month")["count"]
    assert level.sum() == inside.sum()
    assert level[exact.index].tolist() == exact.tolist()
    sums = VISITS.dp.tree_sums("cost", by, bounds=(0, 500), domain=REGIONS, epsilon=1e9, rng=rng())
    exact_sums = VISITS[inside].assign(cost=VISITS["cost"].clip(0, 500)).groupby("region")["cost"].sum()
    assert np.allclose(sums.dp.level("region")["cost"], exact_sums, atol=0.01)
    means = VISITS.dp.tree_means("age", AGES, bounds=(0, 120), epsilon=1e9, rng=rng())
    ages = pd.cut(VISITS["age"], [0, 18, 65, 120], right=False)
    exact_means = VISITS.groupby(ages, observed=True)["age"].mean()
    assert np.allclose(means.dp.level("age_bin")["age"], exact_means, atol=0.01)
    cut = VISITS.dp.histogram("cost", bins=4, bounds=(0, 400), by=[AGES], epsilon=1e7, rng=rng())
    assert cut["count"].sum() == pytest.approx(2 * VISITS["cost"].notna().sum(), abs=5)
    plan = VISITS.dp.plan(by, domain=REGIONS, epsilon=1.0)
    pd.testing.assert_frame_equal(
        plan.release(VISITS, rng=rng()),
        VISITS.dp.tree_counts(by, domain=REGIONS, epsilon=1.0, rng=rng()),
    )
    factors = VISITS.dp.tree_counts(
        AGES, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.5), rng=rng()
    )
    assert factors["level"].tolist() == ["total", "age_bin", "age_bin", "age_bin"]


def test_known_counts_are_named_by_the_derived_levels():
    known = {"date_year": pd.Series({2024: 1000, 2025: 700}).rename_axis("date_year")}
    counts = VISITS.dp.tree_counts(MONTHS, epsilon=1.0, known=known)
    assert counts.dp.level("date_year")["count"].tolist() == [1000, 700]
    assert counts["count"].iloc[0] == 1700


def test_a_written_plan_belongs_to_one_way_of_deriving():
    berlin, tokyo = (
        dpt.derived_domain(dpt.calendar("t", ["day"], start="2024-01-01", end="2024-01-31", timezone=zone))
        for zone in ("Europe/Berlin", "Asia/Tokyo")
    )
    assert fingerprint(berlin) != fingerprint(tokyo)
    written = dpt.plan(berlin, epsilon=1.0).to_dict()
    assert dpt.Plan.from_dict(written, berlin).level_names == ("total", "t_day")
    with pytest.raises(ArgumentError):
        dpt.Plan.from_dict(written, tokyo)


def test_sizes_of_domains():
    days = dpt.calendar("t", ["year", "month", "day"], start="1990-01-01", end="2000-12-31")
    assert dpt.derived_domain(days).tree.level_sizes == (1, 11, 132, 4018)
    squares = dpt.quadtree("y", "x", depth=6, bounds=((0, 1), (0, 1)))
    assert dpt.derived_domain(squares).tree.level_sizes == tuple(4**level for level in range(7))
    assert dpt.derived_domain([AGES, KINDS]).tree.level_sizes == (1, 3, 6, 9)
    order = dpt.derived_domain([KINDS, AGES])
    assert order.by == ("part", "region", "age_bin") and order.tree.level_sizes == (1, 2, 3, 9)


def test_impossible_leaves_stay_impossible():
    wards = pd.DataFrame({"ward": ["eye", "labour"], "closed": [False, True]})
    domain = dpt.Domain.from_frame(wards, by=["ward"], structural_zeros="closed")
    crossed = dpt.derived_domain([AGES, "ward"], domain)
    assert crossed.keys(2).iloc[crossed.structural_zeros]["ward"].tolist() == ["labour"] * 3
    frame = pd.DataFrame({"ward": ["eye", "labour"], "age": [20, 30]})
    assert contributions(frame, crossed).rows.sum() == 1


def test_a_column_that_bears_the_name_of_a_key_is_not_read():
    frame = VISITS.assign(**{"date_month": "1990-01"})
    counts = frame.dp.tree_counts(MONTHS, epsilon=1e7, rng=rng())
    assert counts["count"].iloc[0] == (VISITS["date"] < "2025-07-01").sum()


def test_records_outside_are_dropped_before_the_bound():
    frame = pd.DataFrame({"t": pd.to_datetime(["1999-01-01"] * 50 + ["2000-06-01"]), "who": 1})
    year = dpt.calendar("t", ["year"], start="2000-01-01", end="2000-12-31")
    counts = frame.dp.tree_counts(year, epsilon=1e7, privacy_unit="who", max_contributions=1, rng=rng())
    assert counts["count"].tolist() == [1, 1]


TIMES = [value for value, _, _ in ODD_TIMES]
AGES_READ = [5, "17", 18.0, math.inf, None, "x", Hostile(), 10**400, True]
PLACES = st.tuples(st.integers(0, len(TIMES) - 1), st.integers(0, len(AGES_READ) - 1))


@settings(max_examples=100, deadline=None)
@given(places=st.lists(PLACES, min_size=1, max_size=8), drop=st.integers(0, 7))
def test_one_record_moves_one_leaf_by_one(places, drop):
    """Brute-force neighbours: without a record, each leaf has what it had, but for that record's own."""
    months = dpt.calendar("t", ["month"], start="2000-01-01", end="2000-12-31")
    domain = dpt.derived_domain([months, dpt.cut("age", [0, 18, 65]), dpt.prefixes("id", bits=[4], width=5)])
    rows = [(TIMES[time], AGES_READ[age]) for time, age in places]
    drop %= len(rows)

    def counted(kept):
        times, ages = (objects(list(column)) for column in (list(zip(*kept, strict=True)) or [[], []]))
        frame = pd.DataFrame({"t": times, "age": ages, "id": ages})
        found = contributions(frame, domain)
        return np.bincount(found.leaf, found.rows, domain.tree.n_leaves)

    moved = counted(rows) - counted(rows[:drop] + rows[drop + 1 :])
    assert moved.tolist() == counted([rows[drop]]).tolist()
    assert 0 <= moved.sum() <= 1


# --- mistakes --------------------------------------------------------------------------------------------

ZONED = pd.Series(pd.to_datetime(["2000-01-01T00:00Z"]))
DATES = {"start": "2000-01-01", "end": "2000-12-31"}
MISTAKES = [
    (lambda: dpt.calendar("t", ["year", "iso_week"], **DATES), "must lie within each other"),
    (lambda: dpt.calendar("t", ["month", "iso_week"], **DATES), "must lie within each other"),
    (lambda: dpt.calendar("t", ["month", "year"], **DATES), "must lie within each other"),
    (lambda: dpt.calendar("t", ["month", "month"], **DATES), "must lie within each other"),
    (lambda: dpt.calendar("t", ["minute"], **DATES), "must list units of time, not 'minute'"),
    (lambda: dpt.calendar("t", ["week"], **DATES), r"'week'\.\nHint: .*; did you mean iso_week\?$"),
    (lambda: dpt.calendar("t", 5, **DATES), "must list units of time, not 5"),
    (lambda: dpt.calendar("t", [], **DATES), "must list units"),
    (lambda: dpt.calendar(None, ["year"], **DATES), "must name a column"),
    (lambda: dpt.calendar("t", ["year"], start="2000-01-01", end="1999-01-01"), "must not be before"),
    (lambda: dpt.calendar("t", ["year"], start="1/1/2000", end="2000-12-31"), "must be a date"),
    (lambda: dpt.calendar("t", ["year"], start=2000, end="2000-12-31"), "must be a date"),
    (lambda: dpt.calendar("t", ["year"], start=pd.NaT, end="2000-12-31"), "must be a date"),
    (lambda: dpt.calendar("t", ["year"], start="2000-01-01", end=pd.Timestamp("2000-12-31T12")), "be a date"),
    (lambda: dpt.calendar("t", ["year"], start=ZONED[0], end="2000-12-31"), "must be a date"),
    (lambda: dpt.calendar("t", ["year"], **DATES, timezone="Mars/Olympus"), "`timezone` is unknown"),
    (lambda: dpt.calendar("t", ["year"], **DATES, timezone=1), "`timezone` is unknown"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format="%d.%m."), "must tell the year"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format="%Q"), "must tell the year"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format="%Y %Y"), "must tell the year"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format="%Y-%-m"), "must tell the year"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format=5), "must tell the year"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format="%Y%z"), "tells a time zone, unlike"),
    (lambda: dpt.calendar("t", ["year"], **DATES, timezone="UTC", format="%Y"), "tells no time zone"),
    (lambda: dpt.cut("x"), "one of them"),
    (lambda: dpt.cut("x", [-math.inf, 0, math.inf]), "must be finite"),
    (lambda: dpt.cut("x", width=10**400, bounds=(0, 120)), "must divide"),
    (lambda: dpt.cut("x", width=Fraction(1, 10**400), bounds=(0, 120)), "must divide"),
    (lambda: dpt.cut("x", levels={"a": [0, 1, 1 + 1e-12, 2], "b": [0, 1, 2]}), "is no end there"),
    (lambda: dpt.mapping(5, ["kind"]), "`table` cannot be an int"),
    (lambda: dpt.mapping(pd.DataFrame({"kind": [object()]}), ["kind"]), "`table` has labels of a type"),
    (lambda: dpt.cut("x", [0, 1], width=1), "one of them"),
    (lambda: dpt.cut(["x"], [0, 1]), "must name a column"),
    (lambda: dpt.cut("x", [0, 2, 1]), "edges that rise"),
    (lambda: dpt.cut("x", [0, 2], bounds=(0, 2)), "no meaning beside listed ends"),
    (lambda: dpt.cut("x", width=5), "must be given with a width"),
    (lambda: dpt.cut("x", width=7, bounds=(0, 120)), "must divide what lies between 0 and 120"),
    (lambda: dpt.cut("x", width=0, bounds=(0, 120)), "must divide"),
    (lambda: dpt.cut("x", width="5", bounds=(0, 120)), "must divide"),
    (lambda: dpt.cut("x", levels=[0, 1]), "must map names"),
    (lambda: dpt.cut("x", levels={}), "must map names"),
    (lambda: dpt.cut("x", levels={"a": [0, 5, 9], "b": [0, 4, 9]}), "5 is no end there"),
    (lambda: dpt.cut("x", levels={"a": [0, 5, 9], "b": [0, 5, 10]}), "9 is no end there"),
    (lambda: dpt.cut("x", levels={"a": [0, 5], "b": [-1, 0, 5]}), "they do not end alike"),
    (lambda: dpt.cut("x", pd.to_datetime(["2000-01-01", "2001-01-01"])), "must be numbers"),
    (lambda: dpt.mapping(PRODUCTS, ["kind", "colour"]), "lacks the columns: 'colour'"),
    (lambda: dpt.mapping(PRODUCTS, ["shelf", "kind"]), "`table` lists the same leaf more than once"),
    (lambda: dpt.mapping(PRODUCTS.assign(kind=["a", "b", None, "c"]), ["kind", "product"]), "first key"),
    (lambda: dpt.mapping(PRODUCTS.assign(product=["a", "b", "b", "c"]), ["kind", "product"]), "two places"),
    (lambda: dpt.mapping(PRODUCTS.assign(product=["a", "b", None, "c"]), ["kind", "product"]), "inner node"),
    (lambda: dpt.quadtree("y", "y", depth=2, bounds=((0, 1), (0, 1))), "another column than y"),
    (lambda: dpt.quadtree("y", "x", depth=14, bounds=((0, 1), (0, 1))), "from 1 to 13, not 14"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=(0, 1)), "pair of values"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=0), "pair of pairs"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=((1, 0), (0, 1))), "lower one first"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=((0, 1), (0, 1)), name=1), "must be text"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=((0, 1), (0, 1))).square("012"), "1 to 2 digits"),
    (lambda: dpt.derived_domain([MONTHS, MONTHS]), "names columns twice: 'date_year', 'date_month'"),
    (
        lambda: dpt.derived_domain([dpt.calendar("t", [unit], **DATES) for unit in ("quarter", "month")]),
        r"makes levels twice.*: 't'\.\nHint: make them at once: calendar\(",
    ),
    (
        lambda: VISITS.dp.tree_counts(
            ["region", dpt.cut("age", [0, 18, 99]), dpt.cut("age", levels={"band": [0, 9, 99]})],
            domain=REGIONS, epsilon=1.0,
        ),
        "makes levels twice.*: 'age'",
    ),
    (
        lambda: dpt.derived_domain(
            [dpt.prefixes("product", bits=[2]), dpt.mapping(PRODUCTS, ["kind", "product"])]
        ),
        "makes levels twice.*: 'product'",
    ),
    (lambda: dpt.derived_domain(dpt.binary("id", bits=4)), "a tree of prefixes that nobody lists"),
    (lambda: VISITS.dp.tree_sums("cost", AGE_BITS, bounds=(0, 9), epsilon=1.0), "that nobody lists"),
    (lambda: dpt.prefixes("id", bits=[32]).paths(), "more than 100,000,000 leaves, all prefixes of 'id'"),
    (lambda: dpt.derived_domain([AGES, dpt.prefixes("id", bits=[8, 64])]), r"about 10\*\*20 leaves"),
    (
        lambda: dpt.derived_domain(["region", dpt.binary("id", bits=30)], REGIONS),
        "all combinations of 6 and 1,073,741,824",
    ),
    (lambda: dpt.derived_domain(["region", MONTHS]), r"the keys \['region'\]; derived levels have their own"),
    (lambda: dpt.derived_domain(MONTHS, REGIONS), "has no meaning where all levels are derived"),
    (lambda: dpt.derived_domain(["region", "district", "clinic", AGES], CLINICS), "above a derived level"),
    (lambda: dpt.derived_domain(["region", MONTHS], dpt.derived_domain(AGES)), "has the keys"),
    (
        lambda: VISITS.dp.tree_counts(["region", MONTHS], epsilon=1.0),
        r"`domain` must be given for the keys \['region'\]; derived levels have their own",
    ),
    (lambda: VISITS.dp.tree_counts([MONTHS], epsilon=1.0, domain="observed"), "no meaning where all"),
    (lambda: VISITS.dp.tree_counts([MONTHS], epsilon=1.0, domain=dpt.derived_domain(AGES)), "no meaning"),
    (lambda: VISITS.drop(columns="date").dp.tree_counts(MONTHS, epsilon=1.0), "lacks the columns: 'date'"),
    (
        lambda: VISITS.dp.tree_counts(
            dpt.calendar("date", ["year", "month"], start="2024-01-01", end="2025-06-30", timezone="UTC"),
            domain=dpt.derived_domain(MONTHS), epsilon=1.0,
        ),
        "derived in another way",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MISTAKES)
def test_mistakes_are_told(call, message):
    with pytest.raises(ArgumentError, match=message) as raised:
        call()
    assert raised.value.hint


def test_too_many_leaves_are_refused():
    hours = dpt.calendar("t", ["hour"], start="2000-01-01", end="2000-12-31")
    squares = dpt.quadtree("y", "x", depth=7, bounds=((0, 1), (0, 1)))
    with pytest.raises(DomainError, match="143,917,056 leaves"):
        dpt.derived_domain([hours, squares])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("levels", "column", "message"),
    [
        (dpt.calendar("v", ["year"], **DATES), pd.Series([1, 2]), "holds numbers, not times"),
        (dpt.calendar("v", ["year"], **DATES), pd.Series([True]), "holds booleans, not times"),
        (dpt.calendar("v", ["year"], **DATES), ZONED, "tell `calendar` whose clocks count"),
        (
            dpt.calendar("v", ["year"], **DATES, timezone="UTC"),
            ZONED.dt.tz_localize(None),
            "leave `timezone`",
        ),
        (dpt.cut("v", [0, 1]), ZONED, "no numbers to be cut"),
        ([dpt.prefixes("v", bits=[4])], pd.Series(["5"], dtype="string"), "another type than the tree"),
        ([dpt.prefixes("v", chars=[1])], pd.Series([5]), "another type than the tree"),
        (dpt.quadtree("v", "w", depth=1, bounds=((0, 1), (0, 1))), ZONED, "no numbers to be cut"),
        (
            dpt.mapping(PRODUCTS.rename(columns={"product": "v"}).astype({"v": "string"}), ["kind", "v"]),
            pd.Series([1]),
            "another type",
        ),
    ],
)
def test_types_that_cannot_be_read_are_refused(library, levels, column, message):
    frame = LIBRARIES[library](pd.DataFrame({"v": column, "w": 0.5}))
    with pytest.raises(ColumnsError, match=message):
        dpt.tree_counts(frame, levels, epsilon=1.0)


class Thousands(DerivedLevels[dpt.Domain]):
    """The smallest kind of levels: the thousands of a number, from 0 to 3."""

    pitfall = "numbers of another kind"
    columns = ("pay",)
    names = ("thousands",)
    definition = ("thousands",)
    read_as = Numbers()
    domain = dpt.Domain.from_frame(pd.DataFrame({"thousands": range(4)}), by=["thousands"])

    def find(self, pay):
        return np.where((pay >= 0) & (pay < 4000), np.nan_to_num(pay) // 1000, -1).astype(np.int64)


@pytest.mark.parametrize("build", LIBRARIES.values(), ids=LIBRARIES)
def test_a_new_kind_of_levels_is_a_class_of_its_own(build):
    records = build(pd.DataFrame({"sex": list("fmfmf"), "pay": [500.0, 999, 3000, 4000, np.nan]}))
    exact = {"epsilon": 1e4, "rng": np.random.default_rng(0)}
    alone = dpt.tree_counts(records, Thousands(), **exact)
    assert alone["count"].tolist() == [3, 2, 0, 0, 1]
    both = dpt.tree_counts(records, ["sex", Thousands()], domain=pd.DataFrame({"sex": list("fm")}), **exact)
    assert both["count"].tolist() == [3, 2, 1, 1, 0, 0, 1, 1, 0, 0, 0]
    assert Thousands().paths()["thousands"].tolist() == [0, 1, 2, 3]
    with pytest.raises(ColumnsError, match="has no numbers to be cut"):
        dpt.tree_counts(
            build(pd.DataFrame({"pay": pd.to_datetime(["2024-01-01"])})), [Thousands()], epsilon=1
        )


def test_a_new_kind_of_levels_is_made_of_arrays_as_well():
    array = xr.DataArray([1, 2, 4], coords={"pay": [500, 1000, 9000]}, dims="pay")
    tree = dpt.arrays.tree_counts(array, [Thousands()], epsilon=1e4, rng=np.random.default_rng(0))
    assert tree["thousands"]["count"].values.tolist() == [1, 2, 0, 0]


def test_every_way_to_read_a_column_has_a_reader():
    assert set(READERS) == set(ReadAs.__subclasses__())
