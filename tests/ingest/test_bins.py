"""Where a column is cut into bins, and how many records of any library lie in each."""

import datetime
import math
import traceback
from decimal import Decimal
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.bins import binned_counts
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.times import times
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.strategies import ODD_VALUES, TOKYO, Hostile, objects, zoo

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def words(seed=0):
    rng = np.random.default_rng(seed)
    return lambda n: rng.integers(2**64, size=n, dtype=np.uint64)


def counted(frame, bins, domain=None, *, unit=None, k=1, random_words=None):
    return binned_counts(
        frame, bins, domain, privacy_unit=unit, max_contributions=k, random_words=random_words or words()
    )


def cut(bounds=None, bins=4):
    return Bins.of("x", bounds=bounds, bins=bins)


# --- edges ---------------------------------------------------------------------------------------------


@given(low=FINITE, high=FINITE, n_bins=st.integers(1, 40))
@example(low=0.0, high=5e-324, n_bins=1)
@example(low=-1e300, high=1e300, n_bins=7)
def test_edges_are_those_of_numpy(low, high, n_bins):
    assume(low < high and math.isfinite(high - low))
    with np.errstate(all="ignore"):
        expected = np.linspace(low, high, n_bins + 1)
    if not (np.diff(expected) > 0).all():
        with pytest.raises(ArgumentError, match="too many"):
            cut((low, high), n_bins)
        return
    assert cut((low, high), n_bins).edges.tolist() == expected.tolist()
    with np.errstate(all="ignore"):
        assert np.histogram_bin_edges([], bins=n_bins, range=(low, high)).tolist() == expected.tolist()


@given(edges=st.lists(FINITE, min_size=2, max_size=9, unique_by=lambda edge: edge + 0.0), data=st.data())
@example(edges=[0.0, 5e-324, 1e-323, 1.7e308], data=None)
@example(edges=[0.0, 1e-320], data=None)
def test_values_are_found_as_by_bisection(edges, data):
    assume(math.isfinite(max(edges) - min(edges)))
    bins = cut(bins=sorted(edges))
    beside = [math.nextafter(edge, way) for edge in bins.edges for way in (-np.inf, np.inf)]
    drawn = [] if data is None else data.draw(st.lists(st.floats(), max_size=9))
    values = np.array([*bins.edges, *beside, *drawn, np.inf, -np.inf, np.nan, -0.0, 0.0])
    expected = np.clip(np.searchsorted(bins.edges, values, side="right") - 1, 0, bins.n_bins - 1)
    expected[np.isnan(values)] = -1
    assert bins.find(values).tolist() == expected.tolist()
    present = expected[expected >= 0]
    assert bins.count(values).tolist() == np.bincount(present, minlength=bins.n_bins).tolist()


@given(
    low=st.sampled_from([0.0, -1.0, 1e300, -1e300, 1e-310, 3.3]), width=st.sampled_from([1e-308, 1.0, 1e299]),
    n_bins=st.integers(1, 1000), seed=st.integers(0, 99),
)  # fmt: skip
def test_values_in_equal_bins_are_found_as_by_bisection(low, width, n_bins, seed):
    try:
        bins = cut((low, low + width), n_bins)
    except ArgumentError:
        return
    values = np.concatenate([bins.edges, low + width * np.random.default_rng(seed).random(50)])
    expected = np.clip(np.searchsorted(bins.edges, values, side="right") - 1, 0, n_bins - 1)
    assert bins.find(values).tolist() == expected.tolist()
    inside = values[(values >= bins.edges[0]) & (values <= bins.edges[-1])]
    if width > 1e-300:  # narrower ones are nothing for numpy
        assert bins.count(inside).tolist() == np.histogram(inside, bins.edges)[0].tolist()


def test_blocks_do_not_show():
    bins, values = cut((0, 1), 3), np.random.default_rng(0).random(200_000)
    assert bins.count(values).tolist() == np.histogram(values, bins.edges)[0].tolist()
    assert bins.find(values).tolist() == np.minimum(values * 3, 2).astype(int).tolist()
    assert bins.find(np.zeros(0)).tolist() == [] and bins.count(np.zeros(0)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "bounds",
    [
        (0, 2), (np.float32(0), 2.0), [Fraction(0), Decimal(2)], np.array([0, 2]), pd.Series([0, 2]),
        range(0, 3, 2),
    ],
    ids=repr,
)  # fmt: skip
def test_bounds_of_any_numbers(bounds):
    assert cut(bounds, np.int64(4)).edges.tolist() == [0, 0.5, 1, 1.5, 2]


@pytest.mark.parametrize(
    "bins", [[0, 1, 5], (0, 1.0, 5), np.array([0, 1, 5]), pd.Index([0, 1, 5]), pd.Series([0, 1, 5])]
)
def test_edges_of_any_row(bins):
    made = cut(bins=bins)
    assert made.edges.tolist() == [0, 1, 5] and made.n_bins == 2 and not made.is_time
    assert made.index.tolist() == pd.IntervalIndex.from_breaks([0.0, 1.0, 5.0], closed="left").tolist()


DAY = pd.Timedelta(days=1)
PARIS = "Europe/Paris"


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-05")),
        (datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 5)),
        (np.datetime64("2024-01-01"), pd.Timestamp("2024-01-05").as_unit("s")),
        (pd.Timestamp("2024-01-01", tz=PARIS), pd.Timestamp("2024-01-05", tz=PARIS)),
        (datetime.datetime(2024, 1, 1, tzinfo=TOKYO), datetime.datetime(2024, 1, 5, tzinfo=TOKYO)),
        (pd.Timedelta(0), datetime.timedelta(4)),
        (np.timedelta64(0, "s"), np.timedelta64(4, "D")),
    ],
    ids=repr,
)
def test_bounds_of_any_times(low, high):
    bins = cut((low, high), 4)
    kind = pd.Timedelta if isinstance(low, (datetime.timedelta, np.timedelta64)) else pd.Timestamp
    expected = [kind(low) + DAY * i for i in range(5)]
    assert bins.is_time and list(bins.values_at(range(5))) == expected
    assert bins.index.left.tolist() == expected[:4] and bins.index.right.tolist() == expected[1:]
    assert bins.edge_numbers("ranges", expected).tolist() == [0, 1, 2, 3, 4]


def test_bins_of_times_know_of_daylight_saving():
    low, high = pd.Timestamp("2024-03-31", tz=PARIS), pd.Timestamp("2024-04-01", tz=PARIS)
    bins = cut((low, high), 23)  # the day has that many hours
    assert [edge.hour for edge in bins.values_at(range(4))] == [0, 1, 3, 4]
    column = pd.Series(pd.date_range(low, high, freq="h", inclusive="left"))
    assert bins.count(times(column, bins)).tolist() == [1] * 23
    elsewhere = pd.Series(column.dt.tz_convert("Asia/Tokyo"))
    assert bins.count(times(elsewhere, bins)).tolist() == [1] * 23
    assert bins.count(times(objects(list(column)), bins)).tolist() == [1] * 23


def test_times_are_cut_to_the_nanosecond():
    low, high = pd.Timestamp.min, pd.Timestamp.max
    bins = cut((low, high), 7)
    whole = high.value - low.value
    assert bins.edges.view(np.int64).tolist() == [low.value + whole * i // 7 for i in range(8)]
    assert bins.values_at([0, 7]).tolist() == [low.value, high.value]
    assert cut((pd.Timedelta(0), pd.Timedelta(3)), 3).edges.view(np.int64).tolist() == [0, 1, 2, 3]


@given(places=st.lists(st.floats(0, 4), min_size=1, max_size=9).map(sorted))
@pytest.mark.parametrize(
    "bins",
    [
        cut((0.1, 0.7), 4), cut((-1e300, 1e300), 4), cut(bins=[-4e307, 0, 1, 2, 4e307]), cut((0, 2e-323), 4),
        cut((pd.Timestamp.min, pd.Timestamp.max), 4), cut((pd.Timedelta(0), pd.Timedelta(4)), 4),
        cut(bins=[pd.Timestamp.min, *map(pd.Timestamp, (2**62, 2**62 + 1, 2**63 - 2)), pd.Timestamp.max]),
        cut((pd.Timestamp(0, tz=PARIS), pd.Timestamp(9, tz=PARIS)), 4),
    ],
    ids=lambda bins: str(bins.edges[-1]),
)  # fmt: skip
def test_values_at_places_rise_within_their_bins(bins, places):
    edges = bins.values_at(range(5))
    values = bins.values_at(places)
    assert (values[1:] >= values[:-1]).all()
    below = np.minimum(np.array(places).astype(int), 3)
    assert (edges[below] <= values).all() and (values <= edges[below + 1]).all()
    missing = bins.values_at([np.nan, places[0]])
    assert pd.isna(missing[0]) and missing[1] == values[0]


def test_values_at_places_in_the_middle():
    assert cut(bins=[0, 1, 5]).values_at([[0.5, 1.5]]).tolist() == [[0.5, 3.0]]
    bins = cut((pd.Timestamp(0), pd.Timestamp(100)), 2)
    assert bins.values_at([0.5, 1.5]).astype(int).tolist() == [25, 75]
    assert bins.values_at(0.5).astype(int) == 25 and np.isnat(bins.values_at(np.nan))


def test_edges_are_known_by_their_values():
    bins = cut((0, 1), 10)
    assert bins.edge_numbers("ranges", [0.3, 0.1 + 0.2, 1, 0, Fraction(7, 10)]).tolist() == [3, 3, 10, 0, 7]
    assert cut(bins=[0, 1e-12, 1]).edge_numbers("ranges", [1e-12, 0, 1]).tolist() == [1, 0, 2]
    assert cut(bins=[-4e307, 4e307]).edge_numbers("ranges", [-4e307, 4e307]).tolist() == [0, 1]
    assert cut((0, 2e-323), 4).edge_numbers("ranges", [5e-324, 2e-323]).tolist() == [1, 4]


STAMP, ZONED = pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01", tz=PARIS)


@pytest.mark.parametrize(
    ("bins", "wrong"),
    [
        (cut((0, 1), 10), 0.35), (cut((0, 1), 10), -0.1), (cut((0, 1), 10), 1.1), (cut((0, 1), 10), 1e308),
        (cut((0, 1), 10), STAMP), (cut((0, 1), 10), "0"), (cut((0, 1), 10), math.nan), (cut((0, 1), 10),
        None),
        (cut(bins=[0, 1e-12, 1]), 5e-13), (cut(bins=[-4e307, 4e307]), 0), (cut((0, 2e-323), 2), 5e-324),
        (cut((STAMP, STAMP + DAY), 2), STAMP + DAY / 3), (cut((STAMP, STAMP + DAY), 2), pd.Timestamp.min),
        (cut((STAMP, STAMP + DAY), 2), ZONED), (cut((ZONED, ZONED + DAY), 2), STAMP), (cut((STAMP,
        STAMP + DAY), 2), DAY),
        (cut((STAMP, STAMP + DAY), 2), 1), (cut((0 * DAY, DAY), 2), 1),
        (cut((pd.Timestamp.min, pd.Timestamp.max), 2), pd.Timestamp(7)),
    ],
    ids=repr,
)  # fmt: skip
def test_other_values_are_no_edges(bins, wrong):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        bins.edge_numbers("ranges", [wrong])
    assert error.value.argument == "ranges"


BAD_BOUNDS = [
    (1, 0), (0, 0), (0.0, -0.0), (0, math.inf), (-math.inf, 0), (math.nan, 1), (0, None), (0, pd.NA), ("0",
    "1"),
    "01", b"01", (False, True), (np.False_, 5), (0,), (0, 1, 2), (), 5, None, {0, 1}, {0: 1}, np.array(5),
    [[0, 1], [2, 3]],
    (0, 10**400), (0, Decimal("sNaN")), (0, 1j), (-1e308, 1e308), (pd.NaT, STAMP), (pd.NaT, pd.NaT), (STAMP,
    5),
    (STAMP, ZONED), (STAMP, DAY), (ZONED, ZONED.tz_convert("UTC") + DAY), (STAMP, STAMP), (STAMP,
    STAMP - DAY),
    (DAY, 0 * DAY), (DAY, np.timedelta64("NaT", "ns")), (np.timedelta64(1), 5), (np.timedelta64(1, "Y"), DAY),
    (datetime.date.min, STAMP), (STAMP, datetime.datetime.max), (0 * DAY, datetime.timedelta.max),
    (np.datetime64(2**62, "Y"), STAMP), (objects([[0]]), 1), (Hostile(), 1),
]  # fmt: skip


@pytest.mark.parametrize("bounds", BAD_BOUNDS, ids=lambda bounds: repr(bounds)[:60])
def test_bounds_that_cannot_be_used(bounds):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        cut(bounds, 4)
    assert error.value.argument == "bounds"


@pytest.mark.parametrize(
    "bins",
    [0, -1, 2.0, True, np.True_, "4", b"4", None, math.nan, 10**9, np.array(4), {1, 2}, pd.DataFrame()],
    ids=repr,
)
def test_numbers_of_bins_that_cannot_be_used(bins):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        cut((0, 1), bins)
    assert error.value.argument == "bins"


def test_bins_that_cannot_be_told_apart():
    for bounds, bins in [((0, 5e-324), 2), ((1e16, 1e16 + 4), 3), ((STAMP, STAMP + pd.Timedelta(3)), 4)]:
        with pytest.raises(ArgumentError, match="too many") as error:
            cut(bounds, bins)
        assert error.value.argument == "bins"


@pytest.mark.parametrize(
    "bins", [[], [1], [0, 0], [0, 2, 1], [0, math.nan, 1], [0, math.inf], [0, "1"], [False, True], [[0, 1]],
             np.zeros((2, 2)), [STAMP, 1], [STAMP, STAMP], [STAMP, pd.NaT], [-0.0, 0.0],
             [-1e308, 0, 1e308]], ids=repr,
)  # fmt: skip
def test_edges_that_cannot_be_used(bins):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        cut(bins=bins)
    assert error.value.argument == "bins"


def test_bounds_and_edges_are_one_too_many():
    with pytest.raises(ArgumentError, match="no meaning beside") as error:
        cut((0, 1), [0, 1])
    assert error.value.argument == "bounds"


# --- records in bins -----------------------------------------------------------------------------------

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
FIVE = cut((0, 5), 5)
INSTANT = datetime.datetime(2024, 1, 1)
FIVE_DAYS, FIVE_ZONED, SPANS = (
    cut((low, low + 5 * DAY), 5) for low in (STAMP, pd.Timestamp("2024-01-01", tz="UTC"), 0 * DAY)
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


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", COLUMNS, ids=str)
def test_every_library_counts_alike(library, kind):
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


@pytest.mark.parametrize(
    "values",
    [
        pd.array([True, False, None], dtype="boolean"), pd.array([1, 0, None], dtype="Int8"),
        pd.array([1.0, 0.0, None], dtype="Float64"), pd.arrays.SparseArray([1.0, 0.0, math.nan]),
        np.array([1, 0, math.nan], dtype=np.float16), ["1", "0", None], [1, "0", []],
        [Fraction(3, 2), Decimal("0.5"), Decimal("sNaN")],
    ],
    ids=lambda values: str(getattr(values, "dtype", values)),
)  # fmt: skip
def test_columns_of_pandas(values):
    assert counted(pd.DataFrame({"x": values}), FIVE).tolist() == [[1, 1, 0, 0, 0]]


@given(values=st.lists(zoo(), max_size=6))
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("bins", [FIVE, FIVE_DAYS, FIVE_ZONED, SPANS], ids=lambda bins: str(bins.index.dtype))
def test_each_value_is_read_by_itself_and_none_raises(bins, values):
    def of(column):
        return counted(pd.DataFrame({"x": objects(column)}), bins)[0]

    together = of(values)
    assert together.shape == (5,)
    assert together.tolist() == sum((of([value]) for value in values), np.zeros(5, dtype=int)).tolist()


@pytest.mark.parametrize("bins", [FIVE, FIVE_DAYS, FIVE_ZONED, SPANS], ids=lambda bins: str(bins.index.dtype))
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
        [datetime.datetime.min, STAMP, ZONED, pd.NaT, np.datetime64("NaT"), None, 1, "2024-01-01"]
    )
    assert FIVE_DAYS.find(times(awkward, FIVE_DAYS)).tolist() == [0, 0, -1, -1, -1, -1, -1, -1]
    assert FIVE_ZONED.find(times(awkward, FIVE_ZONED)).tolist()[1:3] == [-1, 0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_times_of_any_unit_are_clipped_exactly(unit, kind):
    factor = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    make = pd.Timestamp if kind == "datetime64" else pd.Timedelta
    for low, high in [(make.min.value, make.max.value), (-7, 8), (10**9 + 1, 10**9 + 9), (-(10**18), 10**18)]:
        bins = cut((make(low), make(high)), 5)
        near = [low // factor + d for d in (-2, -1, 0, 1, 2)] + [
            high // factor + d for d in (-2, -1, 0, 1, 2)
        ]
        values = [v for v in [*near, 0, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1] if abs(v) < 2**63]
        column = pd.Series(np.array(values, dtype=np.int64).view(f"{kind}[{unit}]"))
        edges = bins.edges.view(np.int64).tolist()
        expected = [sum(v * factor >= edge for edge in edges[1:-1]) for v in values]
        assert bins.find(times(column, bins)).tolist() == expected
        assert (times(column, bins).dtype == bins.edges.dtype) and len(times(column[:0], bins)) == 0


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


@pytest.mark.parametrize(
    ("bins", "column"),
    [
        pytest.param(bins, column, id=f"{kind}-{type(column).__module__.split('.')[0]}-{column.dtype}")
        for bins, (kind, columns) in zip((FIVE, FIVE_DAYS, FIVE_ZONED, SPANS), REFUSED.items(), strict=True)
        for column in columns
    ],
)
def test_whether_a_column_is_refused_depends_on_its_type(bins, column):
    make = pd.DataFrame if isinstance(column, pd.Series) else polars.DataFrame
    for frame in (make({"x": column}), make({"x": column})[:0]):
        with pytest.raises(ColumnsError, match="another type than the bounds") as error:
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
@pytest.mark.parametrize("dtype", HELD)
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


@pytest.mark.parametrize(
    ("frame", "error", "text"),
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

    def heard(column):
        calls.append(len(column))
        return column

    frame = polars.LazyFrame({"x": [1.0, 2.0], "u": [1, 2], "k": ["a", "a"]}).with_columns(
        polars.col("x").map_batches(heard, return_dtype=polars.Float64)
    )
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    assert counted(frame, FIVE, domain, unit="u").tolist() == [[0, 1, 1, 0, 0]]
    assert calls == [2]


def test_no_value_is_told_by_the_arithmetic_of_numpy(capfd):
    extremes = [1.0, 5e-324, 1e308, math.inf, -math.inf, math.nan, -0.0]
    told = []
    for state in ("raise", "print", "warn", "call"):
        with np.errstate(all=state, call=lambda *error: told.append(error)):
            for bins in (FIVE, cut(bins=[-4e307, 0, 4e307]), cut(bins=[0, 5e-324, 1e-323])):
                for held in (extremes, objects(extremes), pd.arrays.SparseArray(extremes)):
                    assert counted(pd.DataFrame({"x": held}), bins).sum() == 6
                bins.find(np.array(extremes))
    assert capfd.readouterr() == ("", "") and not told


# --- how far one unit moves the counts -----------------------------------------------------------------

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


@given(
    others=st.lists(st.tuples(ROWS, st.integers(0, 2)), max_size=12), own=st.lists(ROWS, max_size=6),
    new=st.lists(ROWS, max_size=6), replace=st.booleans(), k=st.integers(1, 3), seed=st.integers(0, 2**32),
    grouped=st.booleans(),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_one_unit_moves_the_bins_by_no_more_than_the_sensitivity(others, own, new, replace, k, seed, grouped):
    """Neighbours through the real way of the data, the priorities of all other units carried over."""
    rng = np.random.default_rng(seed)
    domain = DOMAIN if grouped else None

    def counts(rows, units, priorities):
        frame = records(rows, units)
        stays = [  # what of the records is asked for priorities: each row by itself
            counted(frame.iloc[[row]], FIVE, domain).sum() > 0 for row in range(len(frame))
        ]
        asked = priorities[np.array(stays, dtype=bool)]

        def random_words(n):
            assert n == len(asked)
            return asked

        return counted(frame, FIVE, domain, unit="u", k=k, random_words=random_words)

    base = [row for row, _ in others]
    units = [unit for _, unit in others]
    priorities = rng.integers(2**64, size=len(base), dtype=np.uint64)

    def with_unit(rows):
        drawn = np.append(priorities, rng.integers(2**64, size=len(rows), dtype=np.uint64))
        return counts([*base, *rows], [*units, *["me"] * len(rows)], drawn)

    here = with_unit(own)
    there = with_unit(new) if replace else counts(base, units, priorities)
    claimed = count_sensitivity(neighbors="replace" if replace else "add_remove", max_contributions=k)
    move = np.abs(here - there)
    assert move.sum() <= claimed.l1 and (move**2).sum() <= claimed.l2_squared
    if not replace:
        assert (here >= there).all()


@given(rows=st.lists(ROWS, min_size=1, max_size=8), new=ROWS, at=st.integers(0, 7), grouped=st.booleans())
@settings(max_examples=100, deadline=None)
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


def test_rows_that_do_not_count_take_nobodys_place():
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
