"""Edges of bins, and where values lie between them: as in numpy and by bisection."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given

from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.times import times
from tests.helpers_cases import each
from tests.helpers_ingest import PARIS, STAMP, ZONED, bins_of
from tests.strategies import TOKYO, Hostile, objects

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(low=FINITE, high=FINITE, n_bins=st.integers(1, 40))
@example(low=0.0, high=5e-324, n_bins=1)
@example(low=-1e300, high=1e300, n_bins=7)
def test_edges_are_those_of_numpy(low, high, n_bins):
    assume(low < high and math.isfinite(high - low))
    with np.errstate(all="ignore"):
        expected = np.linspace(low, high, n_bins + 1)
    if not (np.diff(expected) > 0).all():
        with pytest.raises(ArgumentError, match="too many"):
            bins_of((low, high), n_bins)
        return
    assert bins_of((low, high), n_bins).edges.tolist() == expected.tolist()
    with np.errstate(all="ignore"):
        assert np.histogram_bin_edges([], bins=n_bins, range=(low, high)).tolist() == expected.tolist()


def test_bounds_of_times_may_be_further_apart_than_an_int64_holds():
    ends = pd.Timestamp.min.ceil("D"), pd.Timestamp.max.floor("D")
    low, high = (each.value for each in ends)
    for n_bins in (1, 2, 3, 1000):
        expected = [low + i * (high - low) // n_bins for i in range(n_bins + 1)]
        assert bins_of(ends, n_bins).edges.view(np.int64).tolist() == expected


@given(edges=st.lists(FINITE, min_size=2, max_size=9, unique_by=lambda edge: edge + 0.0), data=st.data())
@example(edges=[0.0, 5e-324, 1e-323, 1.7e308], data=None)
@example(edges=[0.0, 1e-320], data=None)
def test_values_are_found_as_by_bisection(edges, data):
    assume(math.isfinite(max(edges) - min(edges)))
    bins = bins_of(bins=sorted(edges))
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
        bins = bins_of((low, low + width), n_bins)
    except ArgumentError:
        return
    values = np.concatenate([bins.edges, low + width * np.random.default_rng(seed).random(50)])
    expected = np.clip(np.searchsorted(bins.edges, values, side="right") - 1, 0, n_bins - 1)
    assert bins.find(values).tolist() == expected.tolist()
    inside = values[(values >= bins.edges[0]) & (values <= bins.edges[-1])]
    if width > 1e-300:  # narrower ones are nothing for numpy
        assert bins.count(inside).tolist() == np.histogram(inside, bins.edges)[0].tolist()


def test_blocks_do_not_show():
    bins, values = bins_of((0, 1), 3), np.random.default_rng(0).random(200_000)
    assert bins.count(values).tolist() == np.histogram(values, bins.edges)[0].tolist()
    assert bins.find(values).tolist() == np.minimum(values * 3, 2).astype(int).tolist()
    assert bins.find(np.zeros(0)).tolist() == [] and bins.count(np.zeros(0)).tolist() == [0, 0, 0]


@each(
    "bounds",
    [
        (0, 2), (np.float32(0), 2.0), [Fraction(0), Decimal(2)], np.array([0, 2]), pd.Series([0, 2]),
        range(0, 3, 2),
    ],
)  # fmt: skip
def test_bounds_of_any_numbers(bounds):
    assert bins_of(bounds, np.int64(4)).edges.tolist() == [0, 0.5, 1, 1.5, 2]


@each("bins", [[0, 1, 5], (0, 1.0, 5), np.array([0, 1, 5]), pd.Index([0, 1, 5]), pd.Series([0, 1, 5])])
def test_edges_of_any_row(bins):
    made = bins_of(bins=bins)
    assert made.edges.tolist() == [0, 1, 5] and made.n_bins == 2 and not made.is_time
    assert made.index.tolist() == pd.IntervalIndex.from_breaks([0.0, 1.0, 5.0], closed="left").tolist()


DAY = pd.Timedelta(days=1)


@each(
    "low, high",
    [
        (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-05")),
        (datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 5)),
        (np.datetime64("2024-01-01"), pd.Timestamp("2024-01-05").as_unit("s")),
        (pd.Timestamp("2024-01-01", tz=PARIS), pd.Timestamp("2024-01-05", tz=PARIS)),
        (datetime.datetime(2024, 1, 1, tzinfo=TOKYO), datetime.datetime(2024, 1, 5, tzinfo=TOKYO)),
        (pd.Timedelta(0), datetime.timedelta(4)),
        (np.timedelta64(0, "s"), np.timedelta64(4, "D")),
    ],
)
def test_bounds_of_any_times(low, high):
    bins = bins_of((low, high), 4)
    kind = pd.Timedelta if isinstance(low, (datetime.timedelta, np.timedelta64)) else pd.Timestamp
    expected = [kind(low) + DAY * i for i in range(5)]
    assert bins.is_time and list(bins.values_at(range(5))) == expected
    assert bins.index.left.tolist() == expected[:4] and bins.index.right.tolist() == expected[1:]
    assert bins.edge_numbers("ranges", expected).tolist() == [0, 1, 2, 3, 4]


def test_bins_of_times_know_of_daylight_saving():
    low, high = pd.Timestamp("2024-03-31", tz=PARIS), pd.Timestamp("2024-04-01", tz=PARIS)
    bins = bins_of((low, high), 23)  # the day has that many hours
    assert [edge.hour for edge in bins.values_at(range(4))] == [0, 1, 3, 4]
    column = pd.Series(pd.date_range(low, high, freq="h", inclusive="left"))
    assert bins.count(times(column, bins)).tolist() == [1] * 23
    elsewhere = pd.Series(column.dt.tz_convert("Asia/Tokyo"))
    assert bins.count(times(elsewhere, bins)).tolist() == [1] * 23
    assert bins.count(times(objects(list(column)), bins)).tolist() == [1] * 23


def test_times_are_cut_to_the_nanosecond():
    low, high = pd.Timestamp.min, pd.Timestamp.max
    bins = bins_of((low, high), 7)
    whole = high.value - low.value
    assert bins.edges.view(np.int64).tolist() == [low.value + whole * i // 7 for i in range(8)]
    assert bins.values_at([0, 7]).tolist() == [low.value, high.value]
    assert bins_of((pd.Timedelta(0), pd.Timedelta(3)), 3).edges.view(np.int64).tolist() == [0, 1, 2, 3]


@given(places=st.lists(st.floats(0, 4), min_size=1, max_size=9).map(sorted))
@pytest.mark.parametrize(
    "bins",
    [
        bins_of((0.1, 0.7), 4),
        bins_of((-1e300, 1e300), 4),
        bins_of(bins=[-4e307, 0, 1, 2, 4e307]),
        bins_of((0, 2e-323), 4),
        bins_of((pd.Timestamp.min, pd.Timestamp.max), 4),
        bins_of((pd.Timedelta(0), pd.Timedelta(4)), 4),
        bins_of(bins=[pd.Timestamp.min, *map(pd.Timestamp, (2**62, 2**62 + 1, 2**63 - 2)), pd.Timestamp.max]),
        bins_of((pd.Timestamp(0, tz=PARIS), pd.Timestamp(9, tz=PARIS)), 4),
    ],
    ids=lambda bins: str(bins.edges[-1]),
)
def test_values_at_places_rise_within_their_bins(bins, places):
    edges = bins.values_at(range(5))
    values = bins.values_at(places)
    assert (values[1:] >= values[:-1]).all()
    below = np.minimum(np.array(places).astype(int), 3)
    assert (edges[below] <= values).all() and (values <= edges[below + 1]).all()
    missing = bins.values_at([np.nan, places[0]])
    assert pd.isna(missing[0]) and missing[1] == values[0]


def test_values_at_places_in_the_middle():
    assert bins_of(bins=[0, 1, 5]).values_at([[0.5, 1.5]]).tolist() == [[0.5, 3.0]]
    bins = bins_of((pd.Timestamp(0), pd.Timestamp(100)), 2)
    assert bins.values_at([0.5, 1.5]).astype(int).tolist() == [25, 75]
    assert bins.values_at(0.5).astype(int) == 25 and np.isnat(bins.values_at(np.nan))


def test_edges_are_known_by_their_values():
    bins = bins_of((0, 1), 10)
    assert bins.edge_numbers("ranges", [0.3, 0.1 + 0.2, 1, 0, Fraction(7, 10)]).tolist() == [3, 3, 10, 0, 7]
    assert bins_of(bins=[0, 1e-12, 1]).edge_numbers("ranges", [1e-12, 0, 1]).tolist() == [1, 0, 2]
    assert bins_of(bins=[-4e307, 4e307]).edge_numbers("ranges", [-4e307, 4e307]).tolist() == [0, 1]
    assert bins_of((0, 2e-323), 4).edge_numbers("ranges", [5e-324, 2e-323]).tolist() == [1, 4]


@each(
    "bins, wrong",
    [
        (bins_of((0, 1), 10), 0.35),
        (bins_of((0, 1), 10), -0.1),
        (bins_of((0, 1), 10), 1.1),
        (bins_of((0, 1), 10), 1e308),
        (bins_of((0, 1), 10), STAMP),
        (bins_of((0, 1), 10), "0"),
        (bins_of((0, 1), 10), math.nan),
        (bins_of((0, 1), 10), None),
        (bins_of(bins=[0, 1e-12, 1]), 5e-13),
        (bins_of(bins=[-4e307, 4e307]), 0),
        (bins_of((0, 2e-323), 2), 5e-324),
        (bins_of((STAMP, STAMP + DAY), 2), STAMP + DAY / 3),
        (bins_of((STAMP, STAMP + DAY), 2), pd.Timestamp.min),
        (bins_of((STAMP, STAMP + DAY), 2), ZONED),
        (bins_of((ZONED, ZONED + DAY), 2), STAMP),
        (bins_of((STAMP, STAMP + DAY), 2), DAY),
        (bins_of((STAMP, STAMP + DAY), 2), 1),
        (bins_of((0 * DAY, DAY), 2), 1),
        (bins_of((pd.Timestamp.min, pd.Timestamp.max), 2), pd.Timestamp(7)),
    ],
)
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
    (DAY, 0 * DAY), (DAY, np.timedelta64("NaT", "ns")), (np.array([1]).view("m8")[0], 5),
    (np.timedelta64(1, "Y"), DAY),
    (datetime.date.min, STAMP), (STAMP, datetime.datetime.max), (0 * DAY, datetime.timedelta.max),
    (np.datetime64(2**62, "Y"), STAMP), (objects([[0]]), 1), (Hostile(), 1),
]  # fmt: skip


@each("bounds", BAD_BOUNDS)
def test_bounds_that_cannot_be_used(bounds):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        bins_of(bounds, 4)
    assert error.value.argument == "bounds"


@each(
    "bins",
    [0, -1, 2.0, True, np.True_, "4", b"4", None, math.nan, 10**9, np.array(4), {1, 2}, pd.DataFrame()],
)
def test_numbers_of_bins_that_cannot_be_used(bins):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        bins_of((0, 1), bins)
    assert error.value.argument == "bins"


def test_bins_that_are_equal_in_floats_are_refused():
    for bounds, bins in [((0, 5e-324), 2), ((1e16, 1e16 + 4), 3), ((STAMP, STAMP + pd.Timedelta(3)), 4)]:
        with pytest.raises(ArgumentError, match="too many") as error:
            bins_of(bounds, bins)
        assert error.value.argument == "bins"


@each(
    "bins", [[], [1], [0, 0], [0, 2, 1], [0, math.nan, 1], [0, math.inf], [0, "1"], [False, True], [[0, 1]],
             np.zeros((2, 2)), [STAMP, 1], [STAMP, STAMP], [STAMP, pd.NaT], [-0.0, 0.0],
             [-1e308, 0, 1e308]],
)  # fmt: skip
def test_edges_that_cannot_be_used(bins):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        bins_of(bins=bins)
    assert error.value.argument == "bins"


def test_bounds_and_edges_are_one_too_many():
    with pytest.raises(ArgumentError, match="cannot be combined") as error:
        bins_of((0, 1), [0, 1])
    assert error.value.argument == "bounds"
