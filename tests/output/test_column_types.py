"""Types of columns as JSON, and values as text."""

import datetime
import importlib.util
import json
import zoneinfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from pandas_dptree.output.column_types import (
    decode,
    decode_arrow,
    decode_value,
    encode,
    encode_value,
    printable,
)
from tests.helpers_cases import each
from tests.helpers_files import assert_same, stated
from tests.strategies import objects, zoo

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def restored(column):
    """The column made of its type and texts, after these have been JSON."""
    kind, cells = json.loads(json.dumps(encode(column)))
    assert all(cell is None or isinstance(cell, str) for cell in cells)
    assert len({cell for cell in cells if cell is not None}) == len(set(map(repr, column[column.notna()])))
    assert_same(stated(decode(kind, cells).to_frame("x")), stated(column.to_frame("x")))
    if importlib.util.find_spec("pyarrow") is not None:
        texts = importlib.import_module("pyarrow").array(cells, "large_string")
        assert_same(stated(decode_arrow(kind, texts).to_frame("x")), stated(column.to_frame("x")))
    return kind


@each("dtype", "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
def test_whole_numbers(dtype):
    ends = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0]
    assert restored(pd.Series(ends, dtype=dtype)) == dtype
    masked = dtype.replace("i", "I").replace("uI", "UI")
    assert restored(pd.Series([*ends, None], dtype=masked)) == masked


@each("dtype", ["float16", "float32", "float64", "Float32", "Float64"])
def test_floats_are_kept_bit_for_bit(dtype):
    values = np.array([0.1, -0.0, 0.0, np.inf, -np.inf, 1 / 3, np.pi * 1e-4], dtype=dtype.lower())
    assert restored(pd.Series(values).astype(dtype)) == dtype
    assert restored(pd.Series([*values, None], dtype=dtype)) == dtype


def test_extreme_floats_are_kept():
    restored(pd.Series([5e-324, np.finfo(float).max, 2.0**53 + 2, 1e16, 1e-5]))


def test_booleans():
    assert restored(pd.Series([True, False])) == "bool"
    assert restored(pd.Series([True, None], dtype="boolean")) == "boolean"


TEXTS = [
    "a",
    "",
    " ",
    "NA",
    "None",
    "nan",
    "00501",
    'q"q',
    "a,b",
    "line\nfeed",
    "\r",
    "\r\n",
    "é",
    "😀",
    "שלום",
]


@each("dtype", ["object", "string", "string[python]", None])
def test_text(dtype):
    restored(pd.Series(TEXTS, dtype=dtype))
    restored(pd.Series([*TEXTS, np.nan], dtype=dtype))


@each("missing", [None, pd.NA, pd.NaT, np.nan])
def test_missing_objects_stay_what_they_are(missing):
    restored(objects(["a", missing, "a\x00"]))
    restored(objects([1, missing]))


def test_text_that_files_cannot_hold_is_escaped():
    assert printable("a\x00\ud800b") == r"a\x00\ud800b"
    column = objects(["a\x00", "a\\x00", "\ud800", None and "", "a", np.nan])
    kind, cells = encode(column[[0, 1, 2, 4, 5]])
    assert cells == [r"a\x00 (2)", r"a\x00", r"\ud800", "a", None]
    assert kind == {"text": "object", "escaped": [[r"a\x00 (2)", "a\x00"], [r"\ud800", "\ud800"]]}
    restored(pd.Series(["a\x00", "a", "\x00", r"\x00"]))


@each("unit", ["s", "ms", "us", "ns"])
def test_times(unit):
    days = np.array(["2024-02-29", "NaT", "1969-12-31"], dtype=f"M8[{unit}]")
    for times in (days, days + np.timedelta64(1, unit)):
        assert restored(pd.Series(times)) == f"datetime64[{unit}]"
    assert restored(pd.Series(np.array([1, -86_401, "NaT"], dtype=f"m8[{unit}]"))) == f"timedelta64[{unit}]"


@each("unit", ["s", "ms", "us", "ns"])
@each("zone", ["UTC", "Europe/Berlin", datetime.timezone(datetime.timedelta(hours=-5))])
def test_times_with_a_zone(zone, unit):
    twice = np.array(["2024-10-27T00:30:01", "2024-10-27T01:30:01", "NaT"], dtype=f"M8[{unit}]")
    restored(pd.Series(pd.DatetimeIndex(twice).tz_localize("UTC").tz_convert(zone)))


def test_times_that_text_does_not_restore_are_refused():
    seconds = np.array([10**12], dtype="m8[s]")  # more nanoseconds than 64 bits hold
    with pytest.raises(ValueError, match="cannot read back"):
        encode(pd.Series(seconds))


def test_times_are_written_as_by_pandas():
    hours = pd.Series(pd.to_datetime(["2024-02-29 09:00", None]))
    for column in (
        hours,
        hours.dt.normalize(),
        hours.dt.tz_localize("Europe/Berlin"),
        hours.dt.to_period("M"),
    ):
        assert encode(column)[1][0] == column.to_csv(index=False, header=False).splitlines()[0]


@each("frequency", ["M", "W", "W-WED", "Q", "Q-JAN", "Y", "D", "h", "min", "s", "ns", "2M"])
def test_periods(frequency):
    values = [pd.Period("2024-02-01", frequency), None, pd.Period("1969-03-05", frequency)]
    restored(pd.Series(values, dtype=pd.PeriodDtype(frequency)))


@each("closed", ["left", "right", "both", "neither"])
@each(
    "edges",
    [
        np.array([0, 1, 2**62]),
        np.array([-np.inf, -0.0, 0.1, np.inf]),
        np.array(["2024-01-01", "2024-01-02"], dtype="M8[s]"),
        np.array(["2024-01-01", "2024-01-02T00:00:00.000000001"], dtype="M8[ns]"),
        pd.DatetimeIndex(["2024-03-31", "2024-04-01"]).tz_localize("Europe/Berlin"),
        pd.TimedeltaIndex(["-1 days", "1 days 01:00:00.5"]),
    ],
)
def test_intervals(edges, closed):
    intervals = pd.arrays.IntervalArray.from_breaks(edges, closed=closed)
    assert restored(pd.Series(intervals))["closed"] == closed
    if edges.dtype.kind != "i":
        restored(pd.Series(intervals.take([0, -1], allow_fill=True)))


def test_an_interval_is_written_as_by_pandas():
    bins = pd.Series(pd.interval_range(0.0, 1.0, periods=4, closed="left"))
    assert encode(bins)[1] == list(map(str, bins))


@each(
    "categories",
    [
        ["b", "a", "", "\x00"], [3, 1], [0.5, -0.0], [True, False], ["total", 1, "1", ("a", 1)],
        pd.to_datetime(["2024-01-01", "2023-01-01"]), pd.interval_range(0, 2), pd.to_timedelta(["2h", "1D"]),
        pd.period_range("2024-01", periods=2, freq="M"), [],
    ],
)  # fmt: skip
@each("ordered", [True, False])
def test_categories_keep_their_order(categories, ordered):
    categories = pd.Index(categories, tupleize_cols=False)
    codes = [1, -1, 0] if len(categories) else [-1]
    column = pd.Series(pd.Categorical.from_codes(codes, categories=categories, ordered=ordered))
    kind, cells = json.loads(json.dumps(encode(column)))
    back = decode(kind, cells)
    pd.testing.assert_series_equal(back, column)
    assert back.cat.categories.dtype == categories.dtype


VALUES = [
    1, "1", 1.0, True, "True", -0.0, 0.0, float("inf"), 2**200, datetime.date(2024, 1, 1), "2024-01-01",
    datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), (1, "a"), (),
    (True, (None, 2.5)), pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01", tz="Asia/Tokyo"),
    pd.Timedelta("1D"), pd.Period("2024-01", "M"), pd.Interval(0, 1), pd.Interval(2**60 + 1, 2**60 + 3),
    pd.Interval(0.5, 1.0), np.int64(1), np.uint8(1), np.bool_(True), np.float32(0.1), None,
]  # fmt: skip


def test_objects_of_many_types():
    kind, cells = encode(objects(VALUES))
    assert len({*cells}) == len(VALUES) and cells[:4] == ["1", "1 (2)", "1.0", "True"]
    back = decode(*json.loads(json.dumps([kind, cells])))
    assert list(map(type, back)) == list(map(type, VALUES)) and list(map(str, back)) == list(map(str, VALUES))


def test_columns_of_pyarrow():
    arrow = pytest.importorskip("pyarrow")
    for values, kind in [
        (["a", "", None], arrow.large_string()), ([1.5, None], arrow.float64()),
        ([datetime.date(2024, 1, 1), None], arrow.date32()),
        ([datetime.datetime(2024, 1, 1)], arrow.timestamp("ns", "UTC")),
    ]:  # fmt: skip
        column = pd.Series(pd.arrays.ArrowExtensionArray(arrow.chunked_array([arrow.array(values, kind)])))
        back = decode(*json.loads(json.dumps(encode(column))))
        pd.testing.assert_series_equal(back, column)
    with pytest.raises((TypeError, ValueError)):
        encode(pd.Series([[1]], dtype=pd.ArrowDtype(arrow.list_(arrow.int64()))))


REFUSED = {
    "complex": pd.Series([1j]),
    "sparse": pd.Series([1], dtype="Sparse[int64]"),
    "long double": pd.Series([1], dtype=np.longdouble),
    "lists": objects([[1]]),
    "any object": objects([object()]),
    "bytes": objects([b"a"]),
    "within a tuple": objects([(1, object())]),
    "too many digits": objects([10**5000]),
    "surrogates that JSON joins": objects(["\ud83d\ude00"]),
    "missing in two ways": objects(["a", None, np.nan]),
}


@each("name", REFUSED)
def test_what_cannot_be_kept_is_refused(name):
    with pytest.raises((TypeError, ValueError)):
        encode(REFUSED[name])


@given(value=zoo())
def test_a_value_is_kept_or_refused(value):
    try:
        encoded = encode_value(value)
    except (TypeError, ValueError, RecursionError):
        return
    back = decode_value(json.loads(json.dumps(encoded)))
    assert type(back) is type(value) and repr(back) == repr(value)


@each(
    "kind, cells",
    [
        ("int64", ["a"]), ("int64", [None]), ("int64", [str(2**63)]), ("Int64", ["1.5"]), ("bool", ["1"]),
        ("float64", ["a"]),
        ("datetime64[ns]", ["a"]), ("datetime64[ns, Nowhere]", ["2024-01-01"]), ("timedelta64[s]", ["a"]),
        ("period[M]", ["a"]), ("period[a]", ["2024-01"]), ("complex128", ["1j"]), ("O", ["a"]),
        (None, ["a"]),
        ([], ["a"]), ({}, ["a"]), ({"text": "str", "interval": "int64"}, ["a"]),
        ({"interval": "int64", "closed": "left"}, ["(0, 1]"]),
        ({"interval": "int64", "closed": "left"}, ["[0)"]),
        ({"category": "str", "labels": ["a"], "ordered": True}, ["b"]),
        ({"category": "str", "labels": ["a"]}, ["a"]),
        ({"category": "str", "labels": ["a", "a"], "ordered": True}, ["a"]),
        ({"objects": [["a", {"nothing": "b"}]], "missing": "NaN"}, ["a"]),
        ({"objects": [], "missing": "NaN"}, ["a"]),
        ({"objects": [["a", 1]], "missing": 1}, ["a"]), ({"text": "str", "escaped": 1}, ["a"]),
    ],
)  # fmt: skip
def test_texts_of_another_type_are_refused(kind, cells):
    with pytest.raises(Exception):  # noqa: B017  # any: the caller catches all
        decode(kind, cells)
