"""Sums of nodes: their errors, which are those of nodes where a sum is one, and paths that overlap."""

import numpy as np
import pytest

import pandas_dptree as dpt
from tests.helpers_derived import DOMAIN, KEYS, RECORDS, counts
from tests.helpers_random import rng

COUNTIES = [("CA", "a"), ("CA", "b"), ("CA", "c")]


@pytest.mark.parametrize("consistency", ["linear", "nonnegative", "integer"])
@pytest.mark.parametrize("loss", [{"epsilon": 1.0}, {"rho": 0.1}])
def test_the_children_of_a_node_are_as_accurate_as_the_node(consistency, loss):
    table = counts(3, consistency=consistency, confidence=0.95, **loss)
    areas = table.dp.combine({"counties": COUNTIES, "CA": ["CA"], "all": [()]})
    node = table[(table["level"] == "state") & (table["state"] == "CA")].iloc[0]
    for row in (0, 1):
        found = areas.loc[row, ["count", "std_error", "lower", "upper"]].to_numpy(dtype=float)
        stated = node[["count", "std_error", "lower", "upper"]].to_numpy(dtype=float)
        np.testing.assert_allclose(found, stated, rtol=1e-9)
    assert areas["std_error"][2] == pytest.approx(table["std_error"][0])


def test_independent_measurements_add_their_variances():
    table = counts(3, consistency="none")
    areas = table.dp.combine({"x": [*COUNTIES, "AZ"]})
    errors = table["std_error"][table["level"].isin(["county"])].iloc[0], table["std_error"][1]
    assert areas["std_error"][0] == pytest.approx(np.sqrt(3 * errors[0] ** 2 + errors[1] ** 2))


def test_weights_make_differences():
    table = counts(3)
    without = table.dp.combine({"CA without a": [("CA", "b"), ("CA", "c")]})
    difference = table.dp.combine({"x": ["CA", ("CA", "a")]}, weights={"x": [1, -1]})
    np.testing.assert_allclose(difference.iloc[:, 1:3], without.iloc[:, 1:3], rtol=1e-9)
    half = table.dp.combine({"x": ["CA"]}, weights={"x": [0.5]})
    assert half["std_error"][0] == pytest.approx(table.loc[2, "std_error"] / 2)


def test_sums_are_in_the_unit_of_the_column():
    table = RECORDS.dp.tree_sums(
        KEYS, columns="cost", bounds=(0, 9), domain=DOMAIN, epsilon=1.0, rng=rng(), keep=["linear"]
    )
    areas = table.dp.combine({"counties": COUNTIES})
    assert areas.columns.tolist() == ["area", "cost", "cost_std_error", "cost_lower", "cost_upper"]
    row = table[(table["level"] == "state") & (table["state"] == "CA")].iloc[0]
    assert areas["cost"][0] == pytest.approx(row["cost"])
    assert areas["cost_std_error"][0] == pytest.approx(row["cost_std_error"])
    assert areas["cost_lower"][0] < row["cost"] < areas["cost_upper"][0]


@pytest.mark.parametrize(
    ("areas", "options", "message"),
    [
        ({"x": ["CA", ("CA", "a")]}, {}, "overlapping"),
        ({"x": [("CA", "a", "a1"), "CA"]}, {}, "overlapping"),
        ({"x": ["CA", "CA"]}, {}, "overlapping"),
        ({"x": ["OR"]}, {}, r"no node of the table: \('OR',\)"),
        ({"x": [("CA", "k")]}, {}, "no node"),
        ({"x": [("CA", "a", "a1", "z")]}, {}, "no node"),
        ({"x": []}, {}, "at least one"),
        ({}, {}, "must map names"),
        ({"x": ["CA"]}, {"weights": {"y": [1]}}, "names of areas"),
        ({"x": ["CA"]}, {"weights": {"x": [1, 2]}}, "a number for each path"),
        ({"x": ["CA"]}, {"confidence": 1}, "between 0 and 1"),
    ],
)
def test_areas_that_cannot_be_added_up_are_refused(areas, options, message):
    with pytest.raises(dpt.ArgumentError, match=message):
        counts().dp.combine(areas, **options)
