"""Grids: the nearest point of any value, the value of any point, and what JSON may say."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.grid import MOST_POINTS, BinMiddles, Grid, points_from_dict
from tests.helpers_cases import each

F, DAY = Fraction, 86_400 * 10**9
DATES = (pd.Timestamp("2024-03-30"), pd.Timestamp("2024-04-02"))
ZONED = tuple(each.tz_localize("Europe/Berlin") for each in DATES)  # a day of 23 hours is among them
SPANS = (pd.Timedelta(-10, "ns"), pd.Timedelta(11, "ns"))
AGES = (pd.Timestamp("1700-01-01"), pd.Timestamp("2262-01-01"))


def grid_of(bounds, unit):
    return Grid(Bins.of("x", bounds=bounds, bins=1), F(unit))


GRIDS = {
    "whole": ((0, 120), 1),
    "cents": ((0, 2), "0.01"),
    "thirds": ((-1, 2), F(1, 3)),
    "negative": ((-300.5, -2), "0.5"),
    "huge": ((-1e300, 1e300), 10**298),
    "tiny": ((0, 1e-290), F(1, 10**292)),
    "off the grid": ((0.04, 0.96), "0.1"),
    "dates": (DATES, DAY),
    "zoned": (ZONED, DAY),
    "spans": (SPANS, 3),
    "ages": (AGES, 100 * 365 * DAY),
}


@each("name", GRIDS)
def test_each_point_is_found_at_its_value_and_survives_json(name):
    grid = grid_of(*GRIDS[name])
    points = np.arange(grid.size)
    values = grid.values_at(points)
    assert grid.find(values).tolist() == points.tolist()
    assert values.dtype == grid.bounds.edges.dtype
    assert (values[1:] > values[:-1]).all()
    again = points_from_dict(json.loads(json.dumps(grid.to_dict())))
    assert (again.size, again.low, again.unit) == (grid.size, grid.low, grid.unit)
    assert again.values_at(points).tolist() == values.tolist()
    assert again.to_dict() == grid.to_dict()


@given(value=st.floats(-50, 50), unit=st.sampled_from(["0.01", "0.1", "0.07", "1", "2.5", F(1, 3)]))
def test_numbers_go_to_the_nearest_point(value, unit):
    grid = grid_of((-10, 10), unit)
    exact = min(max(F(value) / grid.unit, grid.low), grid.low + grid.size - 1)
    (point,) = grid.find(np.array([value])).tolist()
    assert 0 <= point < grid.size
    assert abs(point + grid.low - exact) <= F(1, 2) + F(1, 10**9)


def test_odd_numbers_are_clipped_or_missing():
    grid = grid_of((0, 1), "0.01")
    values = [0.07, 0.57, 1.1, -0.0, 1e308, -1e308, math.inf, -math.inf, math.nan, 5e-324]
    assert grid.find(np.array(values)).tolist() == [7, 57, 100, 0, 100, 0, 100, 0, -1, 0]
    assert grid.values_at([7, 57]).tolist() == [0.07, 0.57]
    assert grid.find(np.zeros(0)).tolist() == []
    with np.errstate(all="raise"):  # whether an error is raised must not depend on a record
        assert grid_of((0, 1e300), 10**298).find(np.array([5e-324, 1e308, math.nan])).tolist() == [0, 100, -1]
    small = grid_of((0, 1e-290), F(1, 10**292))
    assert small.find(np.array([1e300, -1e300, math.inf, math.nan])).tolist() == [100, 0, 100, -1]


@given(
    name=st.sampled_from(["dates", "spans", "ages"]),
    nanoseconds=st.one_of(st.integers(1 - 2**63, 2**63 - 1), st.integers(0, 10**5).map(lambda n: n * 10**13)),
)
def test_times_go_to_the_nearest_point(name, nanoseconds):
    grid = grid_of(*GRIDS[name])
    first, last = grid.bounds.edges.view(np.int64).tolist()
    value = np.array([nanoseconds]).view(grid.bounds.edges.dtype)
    inside = min(max(nanoseconds, first), last)
    points = [first + i * int(grid.unit) for i in range(grid.size)]
    (point,) = grid.find(value).tolist()
    assert abs(points[point] - inside) == min(abs(each - inside) for each in points)
    assert grid.values_at([point]).view(np.int64).tolist() == [points[point]]


@each("name", ["dates", "zoned", "spans"])
def test_missing_times_have_no_point(name):
    grid = grid_of(*GRIDS[name])
    assert grid.find(np.array(["NaT"], dtype=grid.bounds.edges.dtype)).tolist() == [-1]
    assert np.isnat(grid.missing) and grid.missing.dtype == grid.bounds.edges.dtype


def test_days_of_a_time_zone_have_24_hours_and_are_shown_in_it():
    grid = grid_of(*GRIDS["zoned"])
    shown = grid.labels(grid.values_at(np.arange(grid.size)))
    assert shown[0] == ZONED[0] and shown[1] == ZONED[0] + pd.Timedelta(1, "D")
    assert grid.size == 3  # 71 hours
    assert grid_of(*GRIDS["dates"]).labels(np.array([1, 2])).tolist() == [1, 2]


@each("n_cells", [1, 2, 3, 7, 1000])
@each("name", GRIDS)
def test_cells_hold_each_point_once_and_bins_agree(name, n_cells):
    grid = grid_of(*GRIDS[name])
    starts = grid.cells(n_cells)
    sizes = np.diff(starts)
    assert (starts[0], starts[-1]) == (0, grid.size)
    assert len(sizes) == min(n_cells, grid.size)
    assert sizes.min() >= 1 and sizes.max() - sizes.min() <= 1
    if name not in ("ages", "zoned"):
        points = np.arange(grid.size)
        found = grid.bins(n_cells).find(grid.values_at(points))
        assert found.tolist() == (np.searchsorted(starts, points, side="right") - 1).tolist()


@each("unit", [0, -1, F(-1, 3), F(1, 10**301), F(10**301), F(10**301 + 1, 10**301)])
def test_units_must_be_positive_and_within_the_range_of_floats(unit):
    with pytest.raises(ArgumentError, match=r"granularity.*positive"):
        grid_of((0, 1), unit)


@each("unit", [F(1, 2), F(3, 2), 2**63, 0, -5])
def test_units_of_times_are_whole_nanoseconds(unit):
    with pytest.raises(ArgumentError, match=r"granularity.*whole nanoseconds"):
        grid_of(DATES, unit)


@each(
    "bounds, unit",
    [
        ((0, 1), 3), ((0, MOST_POINTS), 1), ((2**54, 2**54 + 100), 1), ((0, 1e300), 1), (DATES, 5 * DAY),
        (DATES, 1),
    ],
)  # fmt: skip
def test_grids_have_at_least_two_points_and_not_too_many(bounds, unit):
    with pytest.raises(ArgumentError, match=r"granularity.*makes [0-9,]+ points"):
        grid_of(bounds, unit)


def test_the_largest_grid():
    grid = grid_of((1, MOST_POINTS), 1)
    values = np.array([1.0, 2.0, MOST_POINTS - 1, MOST_POINTS, 1e300, 1234567890.4])
    assert grid.size == MOST_POINTS
    assert grid.find(values).tolist() == [0, 1, MOST_POINTS - 2, MOST_POINTS - 1, MOST_POINTS - 1, 1234567889]


@each(
    "granularity",
    [[1.0, 2], [True, 1], ["1", "2"], "1", [1], [1, 2, 3], [1, 0], [-1, 100], [1, -100], None, []],
)
def test_other_granularities_in_json_are_refused(granularity):
    data = {**grid_of((0, 1), "0.01").to_dict(), "granularity": granularity}
    with pytest.raises((ArithmeticError, AttributeError, LookupError, TypeError, ValueError)):
        points_from_dict(data)


def test_a_grid_has_one_bin():
    with pytest.raises(ArgumentError, match="granularity"):
        Grid(Bins.of("x", bounds=(0, 1), bins=2), F(1, 10))


@each("bounds, n_bins", [((0, 10), 4), (DATES, 3), (ZONED, 2), (SPANS, 3), ((-1e300, 1e300), 5)])
def test_middles_lie_in_their_bins_and_survive_json(bounds, n_bins):
    middles = BinMiddles(Bins.of("x", bounds=bounds, bins=n_bins))
    values = middles.values_at(np.arange(n_bins))
    assert middles.size == n_bins and middles.column == "x"
    assert values.dtype == middles.missing.dtype == middles.bins.edges.dtype
    assert middles.bins.find(values).tolist() == list(range(n_bins))
    again = points_from_dict(json.loads(json.dumps(middles.to_dict())))
    assert isinstance(again, BinMiddles) and again.bins.same_as(middles.bins)
    assert getattr(middles.labels(values), "tz", None) == middles.bins.timezone


@each("name", [name for name in GRIDS if name != "ages"])  # half a step before these is no time any more
def test_intervals_of_cells_end_at_their_points(name):
    grid = grid_of(*GRIDS[name])
    cells, edges = grid.cells(7), grid.bins(7).edges
    lower, upper = grid.ends(edges[:-1], edges[1:])
    assert lower.tolist() == cells[:-1].tolist() and upper.tolist() == (cells[1:] - 1).tolist()
