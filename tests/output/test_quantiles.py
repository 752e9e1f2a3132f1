"""Tables of drawn quantiles: rows, types, and intervals that hold the values."""

import datetime
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.grid import Grid
from pandas_dptree.output.quantiles import quantile_table
from tests.helpers_cases import each

GRID = Grid(Bins.of("v", bounds=(0, 100), bins=1), Fraction(1, 2))
DAYS = (datetime.date(2024, 3, 1), datetime.date(2024, 5, 1))


def times(timezone=None):
    ends = [pd.Timestamp(day, tz=timezone) for day in DAYS]
    return Grid(Bins.of("at", bounds=ends, bins=1), Fraction(86_400 * 10**9))


def laid_out(grid, q, drawn, groups=None, read=None, rows=None):
    drawn = np.asarray(drawn)
    rows = np.arange(len(drawn)) if rows is None else np.array(rows)
    return quantile_table(grid, q, groups=groups, read=read, drawn=drawn, rows=rows)


def test_a_single_group_is_indexed_by_q():
    table = laid_out(GRID, [0.25, 0.5], [[3, 40]])
    expected = pd.DataFrame({"value": [1.5, 20.0]}, index=pd.Index([0.25, 0.5], name="q"))
    pd.testing.assert_frame_equal(table, expected)


@each("timezone", [None, "Europe/Berlin", "UTC"])
def test_times_keep_their_zone(timezone):
    """Days of a grid are 24 hours long, also where clocks change."""
    table = laid_out(times(timezone), [0.5, 0.75], [[0, 31]])
    first = pd.Timestamp(DAYS[0], tz=timezone)
    assert table["value"].tolist() == [first, first + pd.Timedelta("31D")]
    assert str(table["value"].dt.tz) == str(timezone)


def test_durations_stay_durations():
    grid = Grid(Bins.of("wait", bounds=(pd.Timedelta(0), pd.Timedelta("1h")), bins=1), Fraction(10**9))
    assert laid_out(grid, [0.5], [[90]])["value"].tolist() == [pd.Timedelta(90, "s")]


GROUPS = pd.DataFrame({"level": ["total", "a", "a", "b", "b", "b"], "a": [None, "x", "y", "x", "x", "x"]})


def of_levels(values, lower=None, upper=None):
    columns = {"value": values, "lower": lower, "upper": upper}
    return pd.DataFrame({name: each for name, each in columns.items() if each is not None})


def test_leaves_stand_in_their_rows_and_those_that_cannot_be_have_no_value():
    """The second leaf is the row of `y`, above the last level; the last is empty by definition."""
    table = laid_out(
        GRID,
        [0.25, 0.5],
        [[2, 4], [6, 8], [14, 16], [10, 12]],
        groups=GROUPS,
        read=of_levels([50.1, 60.26, 7.0, np.nan, 90.0, 91.0]),
        rows=[3, 2, 5, -1],
    )
    assert table.columns.tolist() == ["level", "a", "q", "value"]
    assert table["q"].tolist() == [0.25, 0.5] * 6
    expected = [50.0, 60.5, 7.0, np.nan, 3.0, 4.0, 1.0, 2.0, np.nan, np.nan, 7.0, 8.0]
    np.testing.assert_array_equal(table["value"], expected)
    assert table["level"].tolist() == np.repeat(GROUPS["level"], 2).tolist()


def test_intervals_end_at_points_and_are_widened_to_hold_what_was_drawn():
    """Edges of bins lie halfway between points: the first interval has the points from 4.5 to 6."""
    read = of_levels([5.0, 5.0, 5.0], [4.25, 4.25, 4.25], [6.25, 6.25, 6.25])
    table = laid_out(GRID, [0.2, 0.5, 0.7], [[10, 20, 0]], read=read)
    assert table["value"].tolist() == [5.0, 10.0, 0.0]
    assert table["lower"].tolist() == [4.5, 4.5, 0.0]
    assert table["upper"].tolist() == [6.0, 10.0, 6.0]


@each("timezone", [None, "America/New_York"])
def test_intervals_of_times_are_widened_too(timezone):
    first = pd.Timestamp(DAYS[0], tz=timezone)
    days = [first + pd.Timedelta(n, "D") for n in (10, 8.5, 11.5)]
    read = of_levels(*([day] for day in days))
    table = laid_out(times(timezone), [0.5], [[14]], read=read)
    assert table["lower"].tolist() == [first + pd.Timedelta(9, "D")]
    assert (table["upper"] - table["lower"]).tolist() == [pd.Timedelta("5D")]
    assert len({*table.dtypes}) == 1 and (table["value"] == table["upper"]).all()


# Tables of releases


RECORDS = pd.DataFrame({"state": list("aab") * 100, "county": list("xyz") * 100, "v": np.arange(300) % 101})
PLACES = pd.DataFrame({"state": list("aab"), "county": list("xyz")})


def test_a_table_of_groups_is_taken_by_the_accessor_and_as_a_file(tmp_path):
    domain = dpt.Domain.from_frame(PLACES, by=["state", "county"])
    options = {"mechanism": "exponential", "bins": 8, "strategy": [2, 4], "confidence": 0.9}
    plan = dpt.plan_quantiles("v", 0.5, bounds=(0, 100), domain=domain, epsilon=10.0, **options)
    table = plan.release(RECORDS, rng=np.random.default_rng(0))
    assert table.columns.tolist() == ["level", "state", "county", "q", "value", "lower", "upper"]
    assert table["level"].tolist() == ["total", "state", "state", "county", "county", "county"]
    assert table["county"].isna().tolist() == [True] * 3 + [False] * 3
    assert table.dp.level("county").shape[0] == 3
    path = tmp_path / "table.csv"
    table.dp.to_file(path)
    back = pd.read_csv(path)
    np.testing.assert_allclose(back["value"], table["value"])


def test_what_the_table_says_of_itself():
    table = RECORDS.dp.quantiles("v", [0.75, 0.5], bounds=(0, 100), epsilon=1.0, rng=np.random.default_rng(0))
    said = table.attrs["dp"]
    assert (said["q"], said["column"], said["mechanism"]) == ([0.5, 0.75], "v", "permute_and_flip")
    assert dpt.Plan.from_dict(json.loads(table.attrs["dp_plan"])).digest == said["digest"]
    with pytest.raises(dpt.ArgumentError, match="not a released table"):
        table.dp.level("total")
