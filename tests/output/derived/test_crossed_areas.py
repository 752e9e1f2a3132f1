"""Sums of cells of crossed tables have the errors that dense covariances give."""

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from tests.helpers_cases import each
from tests.helpers_crossed_derived import OPTIONS, covariance_of_rows, plan_of, release

COAST = [("CA", "Marin"), "DC"]


def rows_of(table, **wanted):
    """The rows of cells, given by the last key on each axis, "" for its total."""
    last = table[["state", "county", "sex"]].astype(object).where(table.notna(), "")
    place = last["county"].where(last["county"] != "", last["state"])
    return np.flatnonzero(place.isin(wanted["place"]) & last["sex"].isin(wanted["sex"]))


@each("options", OPTIONS)
def test_errors_are_those_of_the_dense_covariance(options):
    plan = plan_of(options)
    table, covariance = release(plan), covariance_of_rows(plan)
    one_way = "margins" in options
    places, names = (["CA", "DC"], ["CA", "DC"]) if one_way else (COAST, ["Marin", "DC"])
    areas = {
        "coast": {"place": places, "sex": ["F", "M"]},
        "men": {"sex": ["M"]},
        "all": {},
        "less": [{"sex": ["F"]}, {"place": ["NY"], "sex": ["F"]}],
    }
    rows = [
        [*rows_of(table, place=names, sex=["F", "M"])],
        [*rows_of(table, place=[""], sex=["M"])],
        [*rows_of(table, place=[""], sex=[""])],
        [*rows_of(table, place=["", "NY"], sex=["F"])],
    ]
    found = table.dp.combine(areas, weights={"less": [1, -2]}, confidence=0.9)
    assert found["area"].tolist() == list(areas)
    for (_, got), own in zip(found.iterrows(), rows, strict=True):
        factors = np.array([1, -2]) if got["area"] == "less" else np.ones(len(own))
        assert len(own) == (4 if got["area"] == "coast" else len(factors))
        assert got["count"] == pytest.approx((factors * table["count"].to_numpy()[own]).sum())
        error = max(factors @ covariance[np.ix_(own, own)] @ factors, 0) ** 0.5
        assert got["std_error"] == pytest.approx(error, rel=1e-6, abs=1e-6)
        assert got["lower"] <= got["count"] <= got["upper"]


@each(
    "area",
    [
        [], ["CA"], 3, {"town": ["CA"]}, {"place": ["Kern"]}, {"place": []},
        {"place": ["CA", ("CA", "Kern")]}, {"sex": ["F", "F"]}, [{"sex": ["F"]}, {"place": ["CA"]}], [{}, {}],
    ],
)  # fmt: skip
def test_areas_that_cannot_be_added_up_are_refused(area):
    with pytest.raises(ArgumentError, match=r"(?s)`areas`.*Hint: "):
        release(plan_of({})).dp.combine({"coast": area})


def test_blocks_that_meet_on_one_axis_only_are_apart():
    table = release(plan_of({}))
    found = table.dp.combine({"all": [{"place": ["CA"], "sex": ["F"]}, {"place": ["CA"], "sex": ["M"]}]})
    women_and_men = table.dp.margin(place="state", sex="sex").loc["CA"]["count"]
    assert found["count"].tolist() == [women_and_men[["F", "M"]].sum()]


def test_margins_that_are_not_shown_are_named():
    table = release(plan_of({"margins": [{"place": "state"}, {"place": "county"}, {"sex": "sex"}]}))
    with pytest.raises(ArgumentError, match=r"(?s)does not show.*Hint: "):
        table.dp.combine({"coast": {"place": [("CA", "Marin")], "sex": ["F"]}})


def test_nodes_that_no_margin_shows_are_missed():
    """DC has no county: without states, the table does not show it."""
    table = release(plan_of({"margins": [{"place": "county"}, {"sex": "sex"}]}))
    with pytest.raises(ArgumentError, match=r"(?s)does not show all nodes.*Hint: "):
        table.dp.combine({"women": {"sex": ["F"]}})


def test_differences_may_be_negative():
    table = release(plan_of({}))
    areas = {"more men": [{"sex": ["M"]}, {"sex": ["F"]}]}
    (found,) = table.dp.combine(areas, weights={"more men": [1, -1]}).to_dict("records")
    assert found["lower"] < found["count"] < found["upper"] < 0
