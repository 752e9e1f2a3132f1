"""How many records of any library lie in each bin, and how far one unit moves the counts."""

import datetime
import math
import traceback
from decimal import Decimal
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.bins import binned_counts
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.times import times
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.helpers_cases import each
from tests.helpers_ingest import STAMP, ZONED, bins_of
from tests.helpers_random import fixed_words, words
from tests.strategies import ODD_VALUES, Hostile, objects, zoo

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


def counted(frame, bins, domain=None, *, unit=None, k=1, random_words=None):
    return binned_counts(
        frame, bins, domain, privacy_unit=unit, max_contributions=k, random_words=random_words or words()
    )


DAY = pd.Timedelta(days=1)
LIBRARIES = {
    "pandas": lambda table: table.to_pandas(),
    "pandas-arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas-object": lambda table: pd.DataFrame(
        {name: objects(table[name].to_pylist()) for name in table.column_names}
    ),
    "pandas-category": lambda table: table.to_pandas().astype("category"),
    "polars": polars.from_arrow,
    "lazy": lambda table: polars.from_arrow(table).lazy(),
    "pyarrow": lambda table: table,
}
FIVE = bins_of((0, 5), 5)
INSTANT = datetime.datetime(2024, 1, 1)
FIVE_DAYS, FIVE_ZONED, SPANS = (
    bins_of((low, low + 5 * DAY), 5) for low in (STAMP, pd.Timestamp("2024-01-01", tz="UTC"), 0 * DAY)
)
COLUMNS = {
    pyarrow.int64(): (FIVE, [-(2**62), 0, 1, 4, 2**62, None]),
    pyarrow.uint8(): (FIVE, [0, 0, 1, 4, 255, None]),
    pyarrow.float64(): (FIVE, [-math.inf, 0.5, 1.0, 4.0, math.inf, math.nan]),
    pyarrow.float32(): (FIVE, [-1.0, 0.5, 1.5, 5.0, 4.9, None]),
    pyarrow.string(): (FIVE, ["-3", " 0.5 ", "1e0", "4", "1e400", "four"]),
    pyarrow.decimal128(9, 2): (FIVE, [*map(Decimal, ("-3.00", "0.99", "1.00", "4.00", "99.00")), None]),
    pyarrow.date32(): (FIVE_DAYS, [INSTANT.date() + datetime.timedelta(d) for d in (-9, 0, 1, 4,
    99)] + [None]),
    **{
        pyarrow.timestamp(unit): (FIVE_DAYS, [INSTANT + datetime.timedelta(d) for d in (-9, 0, 1, 4,
        99)] + [None])
        for unit in ("s", "ms", "us", "ns")
    },
    **{
        pyarrow.timestamp(unit, "Asia/Tokyo"): (
            FIVE_ZONED,
            [INSTANT.replace(tzinfo=datetime.UTC) + datetime.timedelta(d) for d in (-9, 0, 1, 4,
            99)] + [None],
        )
        for unit in ("s", "us", "ns")
    },
    **{
        pyarrow.duration(unit): (SPANS, [datetime.timedelta(d) for d in (-9, 0, 1, 4, 99)] + [None])
        for unit in ("s", "ns")
    },
}  # fmt: skip


# --- records in bins -----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
@each("kind", COLUMNS)
def test_every_library_gives_the_same_counts(library, kind):
    bins, values = COLUMNS[kind]
    n = len(values)
    table = pyarrow.table(
        {"x": pyarrow.array(values, type=kind), "k": ["a", "b", "a", "b", "c", "a"], "u": list(range(n))}
    )
    frame = LIBRARIES[library](table)
    assert counted(frame, bins).tolist() == [[2, 1, 0, 0, 2]]
    assert counted(frame, bins, unit="u").tolist() == [[2, 1, 0, 0, 2]]
    domain = Domain.from_frame(pd.DataFrame({"k": ["b", "a", "z"]}), by=["k"])
    by_key = counted(frame, bins, domain)
    order = [domain.labels[0].tolist().index(key) for key in "abz"]
    assert by_key[order].tolist() == [[1, 1, 0, 0, 0], [1, 0, 0, 0, 1], [0] * 5]


@each(
    "values",
    [
        pd.array([True, False, None], dtype="boolean"), pd.array([1, 0, None], dtype="Int8"),
        pd.array([1.0, 0.0, None], dtype="Float64"), pd.arrays.SparseArray([1.0, 0.0, math.nan]),
        np.array([1, 0, math.nan], dtype=np.float16), ["1", "0", None], [1, "0", []],
        [Fraction(3, 2), Decimal("0.5"), Decimal("sNaN")],
    ],
)  # fmt: skip
def test_columns_of_pandas(values):
    assert counted(pd.DataFrame({"x": values}), FIVE).tolist() == [[1, 1, 0, 0, 0]]


@given(values=st.lists(zoo(), max_size=6))
@pytest.mark.parametrize("bins", [FIVE, FIVE_DAYS, FIVE_ZONED, SPANS], ids=lambda bins: str(bins.index.dtype))
def test_each_value_is_read_separately_and_none_raises(bins, values):
    def of(column):
        return counted(pd.DataFrame({"x": objects(column)}), bins)[0]

    together = of(values)
    assert together.shape == (5,)
    assert together.tolist() == sum((of([value]) for value in values), np.zeros(5, dtype=int)).tolist()


@each("bins", [FIVE, FIVE_DAYS, FIVE_ZONED, SPANS])
def test_odd_values_are_counted_where_they_lie_or_not_at_all(bins):
    read = times if bins.is_time else lambda column, _: numbers(column)
    for value in ODD_VALUES:
        place = bins.find(read(objects([value]), bins)).tolist()
        assert len(place) == 1 and -1 <= place[0] < 5
    late = objects([datetime.date.max, datetime.datetime.max, np.datetime64(2**62, "s")])
    assert FIVE_DAYS.find(times(late, FIVE_DAYS)).tolist() == [4, 4, 4]
    assert SPANS.find(times(objects([datetime.timedelta.max, datetime.timedelta.min]), SPANS)).tolist() == [
        4,
        0,
    ]
    awkward = objects(
        [datetime.datetime.min, STAMP, ZONED, pd.NaT, np.datetime64("NaT", "D"), None, 1, "2024-01-01"]
    )
    assert FIVE_DAYS.find(times(awkward, FIVE_DAYS)).tolist() == [0, 0, -1, -1, -1, -1, -1, -1]
    assert FIVE_ZONED.find(times(awkward, FIVE_ZONED)).tolist()[1:3] == [-1, 0]


REFUSED = {
    "numbers": [
        pd.Series([STAMP]), pd.Series([ZONED]), pd.Series([DAY]), pd.Series(pd.period_range("2024",
        periods=1)),
        pd.Series(pd.interval_range(0, 1)), pd.Series([1j]), pd.Series([STAMP]).astype("category"),
        pd.Series([b"1"], dtype=pd.ArrowDtype(pyarrow.binary())), polars.Series([INSTANT.date()]),
        polars.Series([datetime.time(1)]), polars.Series([b"1"]), polars.Series([[1]]),
        polars.Series([{"a": 1}]),
    ],
    "times": [
        pd.Series([1]), pd.Series(["2024-01-01"], dtype="string"), pd.Series([ZONED]), pd.Series([DAY]),
        pd.Series([True]),
        pd.Series(pd.period_range("2024", periods=1)), polars.Series([1.0]), polars.Series([[INSTANT]]),
    ],
    "zoned": [pd.Series([1]), pd.Series([STAMP]), polars.Series([INSTANT]), polars.Series(["a"])],
    "durations": [pd.Series([1]), pd.Series([STAMP]), polars.Series([INSTANT]), polars.Series([b"1"])],
}  # fmt: skip


@each(
    "bins, column",
    [
        pytest.param(bins, column, id=f"{kind}-{type(column).__module__.split('.')[0]}-{column.dtype}")
        for bins, (kind, columns) in zip((FIVE, FIVE_DAYS, FIVE_ZONED, SPANS), REFUSED.items(), strict=True)
        for column in columns
    ],
)
def test_whether_a_column_is_refused_depends_on_its_type(bins, column):
    make = pd.DataFrame if isinstance(column, pd.Series) else polars.DataFrame
    for frame in (make({"x": column}), make({"x": column})[:0]):
        with pytest.raises(ColumnsError, match="a different type than the bounds") as error:
            counted(frame, bins)
        assert error.value.columns == ("x",) and error.value.argument == "frame"


HELD = {
    "object": [1, "x", STAMP, ZONED, DAY, None, [1], Hostile(), 10**400, math.nan],
    "float64": [1.0, math.nan, math.inf, 1e308, -0.0], "Int64": [1, None, 2**62], "string": ["1", "x", None],
    "datetime64[ns]": [0, 2**62, None], "datetime64[s]": [0, 2**55],
    "datetime64[us, UTC]": [0, 2**60, None], "timedelta64[s]": [0, 2**55, None], "complex128": [1j, 1,
    math.nan],
    "period[D]": ["2020-01-01", None], "boolean": [True, None], "Sparse[float64]": [1.0, math.inf],
    "date32[pyarrow]": [0, 2**31 - 1], "timestamp[s][pyarrow]": [0, 2**55, None],
    "timestamp[ns][pyarrow]": [0, None],
    "null[pyarrow]": [None], "string[pyarrow]": ["1", "x"], "double[pyarrow]": [1.0, None, math.inf],
    "time64[us][pyarrow]": [0, None],
}  # fmt: skip


@pytest.mark.parametrize("bins", [FIVE, FIVE_DAYS, FIVE_ZONED, SPANS], ids=lambda bins: str(bins.index.dtype))
@each("dtype", HELD)
def test_no_value_decides_whether_records_can_be_counted(dtype, bins):
    values = HELD[dtype]
    answers = set()
    for held in ([], [None] * 2, values[:1], values, [None, *values], *([value] for value in values)):
        try:
            column = objects(held).astype(dtype)
        except (TypeError, ValueError):
            continue
        try:
            shape = counted(pd.DataFrame({"x": column}), bins).shape
        except ColumnsError as refused:
            shape = str(refused)
        answers.add(shape)
    assert len(answers) == 1


@each(
    "frame, error, text",
    [
        (5, ArgumentError, "must be a dataframe, not an int"),
        (pd.DataFrame({"y": [1]}), ColumnsError, "lacks the columns: 'x'"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), ColumnsError, "several columns named: 'x'"),
        (polars.LazyFrame({"y": [1]}), ColumnsError, "lacks the columns: 'x'"),
    ],
)
def test_frames_that_cannot_be_counted(frame, error, text):
    with pytest.raises(error, match=text) as raised:
        counted(frame, FIVE)
    assert raised.value.argument == "frame"


def test_nothing_that_is_raised_holds_the_records(monkeypatch):
    def fail(column):
        raise RuntimeError(f"secret: {column.tolist()}")

    monkeypatch.setattr("pandas_dptree.ingest.bins.numbers", fail)
    with pytest.raises(ArgumentError) as error:
        counted(pd.DataFrame({"x": [123.0]}), FIVE)
    assert "secret" not in "".join(traceback.format_exception(error.value))


def test_a_lazy_frame_is_collected_once():
    calls = []

    def received(column):
        calls.append(len(column))
        return column

    frame = polars.LazyFrame({"x": [1.0, 2.0], "u": [1, 2], "k": ["a", "a"]}).with_columns(
        polars.col("x").map_batches(received, return_dtype=polars.Float64)
    )
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    assert counted(frame, FIVE, domain, unit="u").tolist() == [[0, 1, 1, 0, 0]]
    assert calls == [2]


def test_no_value_is_shown_by_warnings_of_numpy(capfd):
    extremes = [1.0, 5e-324, 1e308, math.inf, -math.inf, math.nan, -0.0]
    errors = []
    for state in ("raise", "print", "warn", "call"):
        with np.errstate(all=state, call=lambda *error: errors.append(error)):
            for bins in (FIVE, bins_of(bins=[-4e307, 0, 4e307]), bins_of(bins=[0, 5e-324, 1e-323])):
                for held in (extremes, objects(extremes), pd.arrays.SparseArray(extremes)):
                    assert counted(pd.DataFrame({"x": held}), bins).sum() == 6
                bins.find(np.array(extremes))
    assert capfd.readouterr() == ("", "") and not errors


PLACES = pd.DataFrame({"a": ["s", "s", "t"], "b": ["u", "v", None]})
DOMAIN = Domain.from_frame(PLACES, by=["a", "b"])
ROWS = st.tuples(
    st.sampled_from([("s", "u"), ("s", "v"), ("t", None), ("t", "u"), ("z", "u"), (None, None)]),
    st.sampled_from([0.5, 1.5, 4.0, -9, math.inf, math.nan, None, "2", "x", []]),
)


def records(rows, units):
    return pd.DataFrame({
        "a": objects([key[0] for key, _ in rows]), "b": objects([key[1] for key, _ in rows]),
        "x": objects([value for _, value in rows]), "u": objects(units),
    })  # fmt: skip


# --- how far one unit moves the counts -----------------------------------------------------------------


@given(
    others=st.lists(st.tuples(ROWS, st.integers(0, 2)), max_size=12), own=st.lists(ROWS, max_size=6),
    new=st.lists(ROWS, max_size=6), replace=st.booleans(), k=st.integers(1, 3), seed=st.integers(0, 2**32),
    grouped=st.booleans(),
)  # fmt: skip
def test_one_unit_moves_the_bins_by_no_more_than_the_sensitivity(others, own, new, replace, k, seed, grouped):
    """For every key: neighbours through the real way of the data."""
    domain = DOMAIN if grouped else None
    base, units = [row for row, _ in others], [unit for _, unit in others]

    def counts(rows):
        frame = records([*base, *rows], [*units, *["me"] * len(rows)]).sample(frac=1, random_state=len(rows))
        return counted(frame, FIVE, domain, unit="u", k=k, random_words=fixed_words(seed))

    here, there = counts(own), counts(new if replace else [])
    claimed = count_sensitivity(neighbors="replace" if replace else "add_remove", max_contributions=k)
    move = np.abs(here - there)
    assert move.sum() <= claimed.l1 and (move**2).sum() <= claimed.l2_squared
    if not replace:
        assert (here >= there).all()


@given(rows=st.lists(ROWS, min_size=1, max_size=8), new=ROWS, at=st.integers(0, 7), grouped=st.booleans())
def test_one_row_moves_the_bins_by_no_more_than_the_sensitivity(rows, new, at, grouped):
    domain, at = (DOMAIN if grouped else None), at % len(rows)

    def counts(rows):
        return counted(records(rows, list(range(len(rows)))), FIVE, domain)

    here = counts(rows)
    assert np.abs(here - counts(rows[:at] + rows[at + 1 :])).sum() <= 1
    assert np.abs(here - counts([*rows[:at], new, *rows[at + 1 :]])).sum() <= 2


def test_the_worst_records_reach_the_sensitivity():
    rows = [(("s", "u"), 0.5)] * 3
    moved = [(("s", "u"), 4.5)] * 3
    here, there = (counted(records(each, ["me"] * 3), FIVE, DOMAIN, unit="u", k=2) for each in (rows, moved))
    claimed = count_sensitivity(neighbors="replace", max_contributions=2)
    assert np.abs(here - there).sum() == claimed.l1 and ((here - there) ** 2).sum() == claimed.l2_squared


def test_rows_that_do_not_count_replace_no_others():
    rows = [(("z", "u"), 1)] * 40 + [(("s", "u"), "x")] * 40 + [(("s", "u"), 1)]
    assert counted(records(rows, ["me"] * 81), FIVE, DOMAIN, unit="u").sum() == 1
    assert counted(records(rows[40:], [None] * 40 + ["me"]), FIVE, unit="u").sum() == 1
    assert counted(records(rows[80:], [None]), FIVE, unit="u").sum() == 0


def test_a_key_may_be_the_unit_but_the_column_may_not():
    rows = [(("s", "u"), 1)] * 3 + [(("t", None), 4)] * 2
    assert counted(records(rows, range(5)), FIVE, DOMAIN, unit="a").sum() == 2
    with pytest.raises(ArgumentError, match="also the column") as error:
        counted(records(rows, range(5)), FIVE, DOMAIN, unit="x")
    assert error.value.argument == "privacy_unit"
