"""Columns of any type are read as numbers, each value separately."""

import datetime
import math
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_cases import each
from tests.helpers_ingest import LIBRARIES, PANDAS, counted, encoded, summed
from tests.strategies import Hostile, objects, zoo

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
READ = [
    (1, 1.0), (-2.5, -2.5), (True, 1.0), (np.bool_(False), 0.0), (np.float32(0.5), 0.5), (np.int8(3), 3.0),
    (Decimal("1.5"), 1.5), (Fraction(1, 4), 0.25), (2**53 + 1, 2.0**53), (10**400, math.inf),
    (-(10**400), -math.inf), (Fraction(-(10**400)), -math.inf), (Decimal("1e999999"), math.inf),
    (np.uint64(2**64 - 1), 2.0**64), (math.inf, math.inf), ("3", 3.0), (" -4e0\n", -4.0), ("1_000", 1000.0),
    ("-inf", -math.inf), ("1" * 5000, math.inf),
    *[(nothing, None) for nothing in (
        math.nan, np.float64("nan"), None, pd.NA, pd.NaT, Decimal("nan"), Decimal("sNaN"), "nan", "", "x",
        "0x1", "1,5", b"1", 1j, [1], (1,), {"a": 1}, np.array([1]), pd.Series([1]), pd.Timestamp(0),
        Hostile(), np.timedelta64(5, "s"), np.timedelta64(5, "ns"), np.array([5]).view("m8")[0],
        pd.Timedelta(1), datetime.date(2024, 1, 1), uuid.UUID(int=1), object(),
    )],
]  # fmt: skip


def same(found, expected):
    return [None if math.isnan(number) else number for number in found] == expected


def test_each_object_is_read_separately():
    values, expected = map(list, zip(*READ, strict=True))
    assert same(numbers(objects(values)), expected)
    for value, number in READ:
        assert same(numbers(objects([value])), [number])


@given(values=st.lists(zoo(), min_size=1, max_size=5))
def test_no_object_changes_how_another_is_read(values):
    together = numbers(objects(values))
    alone = [numbers(objects([value])) for value in values]
    np.testing.assert_array_equal(together, np.concatenate(alone))


NUMERIC = {
    pyarrow.int64(): [1, 2**53 + 1, None, -(2**63)],
    pyarrow.uint64(): [1, 2**64 - 1, None],
    pyarrow.int8(): [1, -128, None],
    pyarrow.float64(): [0.5, -0.0, float("nan"), None, float("inf"), 1e308],
    pyarrow.float32(): [0.5, 0.1, float("nan"), None, float("-inf")],
    pyarrow.bool_(): [True, False, None],
    pyarrow.decimal128(9, 2): [Decimal("0.50"), Decimal("-1"), None],
    pyarrow.string(): ["a", "a\0", "", None, "1.5", " 7", "nan", "-inf", "1.5"],
    pyarrow.dictionary(pyarrow.int32(), pyarrow.string()): ["a", "2", None, "2"],
    pyarrow.dictionary(pyarrow.int32(), pyarrow.bool_()): [True, None, False, True],
    pyarrow.float16(): [np.float16(0.5), None, np.float16("inf")],
    pyarrow.null(): [None, None],
}


@pytest.mark.parametrize("library", LIBRARIES)
@each("kind", NUMERIC)
def test_every_library_reads_the_same_numbers(library, kind):
    if library.startswith("pandas") and library != "pandas-arrow" and kind not in PANDAS:
        return  # pandas has no such type
    values = NUMERIC[kind]
    table = pyarrow.table(
        {
            "k": pyarrow.array(range(len(values))),
            "x": encoded(values, kind),
            "u": ["me"] * len(values),
        }
    )
    domain = Domain.from_frame(pd.DataFrame({"k": range(len(values))}), by=["k"])
    quantity = Quantity.of("x", (-100, 100), 0.01)
    expected = [0] * len(values)
    for place, value in enumerate(values):
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        if not math.isnan(number):
            expected[place] = round(min(max(number, -100.0), 100.0) * 100)
    frame = LIBRARIES[library](table)
    assert summed(frame, domain, [quantity])[0].tolist() == expected
    (sums,) = summed(frame, domain, [quantity], privacy_unit="u", k=len(values))
    assert sums.tolist() == expected


def test_objects_of_polars_are_read_too():
    values = ["3", 4, None, [1], Hostile()]
    frame = polars.DataFrame({"k": ["a"] * 5, "x": polars.Series(values, dtype=polars.Object)})
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    assert [s.tolist() for s in summed(frame, domain, [Quantity.of("x", (0, 9), 1), COUNT])] == [[7], [2]]


@each(
    "column",
    [
        pd.Series(pd.to_datetime(["2024-01-01"])),
        pd.Series(pd.to_datetime(["2024-01-01"], utc=True)),
        pd.Series(pd.to_timedelta([1])),
        pd.Series([1j]),
        pd.Series(pd.period_range("2024", periods=1)),
        pd.Series(pd.interval_range(0, 1)),
        pd.Series(pd.to_datetime(["2024-01-01"])).astype("category"),
        pd.Series([[1]], dtype=pd.ArrowDtype(pyarrow.list_(pyarrow.int64()))),
        pd.Series([b"1"], dtype=pd.ArrowDtype(pyarrow.binary())),
        polars.Series([datetime.date(2024, 1, 1)]),
        polars.Series([datetime.timedelta(1)]),
        polars.Series([datetime.time(1)]),
        polars.Series([b"1"]),
        polars.Series([[1]]),
        polars.Series([{"a": 1}]),
    ],
)
def test_types_that_hold_no_numbers_are_refused(column):
    make = pd.DataFrame if isinstance(column, pd.Series) else polars.DataFrame
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    for frame in (make({"k": ["a"], "x": column}), make({"k": ["a"], "x": column})[:0]):
        with pytest.raises(ColumnsError, match="cannot be added up in the columns: 'x'") as error:
            leaf_totals(frame, domain, [Quantity.of("x", (0, 1))])
        assert error.value.hint.startswith("convert")


@each("state", ["raise", "print", "warn", "call"])
def test_no_value_is_shown_by_warnings_of_numpy(state, capfd):
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    extremes = [1.0, 5e-324, 1e308, math.inf, -math.inf, math.nan, -0.0]
    frame = pd.DataFrame({"k": "a", "e": extremes, "x": extremes})
    wide = frame.assign(x=np.array([1, "1e-4930", "1e4900"] + [0] * 4, dtype=np.longdouble))
    frames = (
        frame,
        frame.astype(object),
        frame.astype({"x": "Sparse[float64]"}),
        wide,
        polars.from_pandas(frame),
    )
    public = Domain.from_frame(pd.DataFrame({"e": extremes[:5]}), by=["e"])
    values = [Quantity.of("x", (low, 1e6), 0.01) for low in (-1, 0)]
    errors = []
    with np.errstate(all=state, call=lambda *error: errors.append(error)):
        for made in frames:
            summed(made, domain, values, privacy_unit="e")
            counted(made, public)
    assert capfd.readouterr() == ("", "") and not errors


@each("kind", ["M8[ns]", "M8[s]", "m8[ns]", "m8[s]"])
def test_no_time_is_too_far_away_to_be_no_number(kind):
    """pandas fails to make an object of a time in a zone where that is beyond the last one."""
    column = pd.Series(np.array([0, 2**63 - 1]).view(kind))
    columns = (
        [column] if kind[0] == "m" else [column, column.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")]
    )
    for made in columns:
        assert same(numbers(made), [None, None])
