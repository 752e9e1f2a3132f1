"""The largest nodes, and intervals that hold for all that competed."""

import numpy as np
import pytest

import pandas_dptree as dpt
from tests.helpers_derived import KEYS, counts


def test_the_largest_come_first():
    table = counts()
    largest = table.dp.top(3)
    assert largest.columns.tolist() == ["level", *KEYS, "rank", "count", "std_error", "lower", "upper"]
    towns = table[table["level"] == "town"]
    assert largest["count"].tolist() == sorted(towns["count"], reverse=True)[:3]
    assert largest["rank"].tolist() == [1, 2, 3]
    assert largest.attrs["dp_derived"]["competed"] == len(towns)
    assert len(table.dp.top(50)) == len(towns)
    assert table.dp.top(1, level="state")["state"].tolist() == ["CA"]


def test_intervals_are_as_wide_as_those_of_a_table_with_that_confidence():
    table = counts(confidence=1 - 0.05 / 15)
    largest = table.dp.top(15)
    same = table[table["level"] == "town"].sort_values("count", ascending=False, kind="stable")
    np.testing.assert_array_equal(largest[["lower", "upper"]], same[["lower", "upper"]])


@pytest.mark.parametrize("options", [{"n": 0}, {"n": True}, {"level": "town "}, {"column": "cost"}])
def test_what_cannot_be_selected_is_refused(options):
    with pytest.raises(dpt.ArgumentError):
        counts().dp.top(**options)
