"""Named aggregation: counts, sums and means in one table, under one privacy loss."""

import copy
import dataclasses
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from tests.helpers_cases import each
from tests.helpers_plans import BY, DOMAIN, PLACES, spends_no_more

RECORDS = dpt.datasets.clinic_visits().dropna().reset_index(drop=True)
VISITS = RECORDS.assign(cost=RECORDS["cost"].clip(0, 500))
PEOPLE = {"privacy_unit": "cost", "max_contributions": 2}
COST, AGE = {"bounds": (0, 500)}, {"bounds": (0, 100)}
ASKED = {"visits": "count", "cost": dpt.mean("cost", **COST), "paid": dpt.sum("cost", **COST)}
LOSSES = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}]


def rng():
    return np.random.default_rng(20)


# What the table shows


def test_columns_are_those_asked_for_in_their_order():
    table = VISITS.dp.tree_agg(BY, ASKED, epsilon=1.0, domain=PLACES, rng=rng())
    errors = [[name, f"{name}_std_error"] for name in ASKED]
    assert [*table.columns] == ["level", *BY, *(each for pair in errors for each in pair)]
    whole = table.loc[0]
    np.testing.assert_allclose(whole["visits"], len(VISITS), atol=6 * whole["visits_std_error"])
    np.testing.assert_allclose(whole["cost"], VISITS["cost"].mean(), atol=6 * whole["cost_std_error"])
    np.testing.assert_allclose(whole["paid"], VISITS["cost"].sum(), atol=6 * whole["paid_std_error"])


def test_what_else_a_table_can_show_is_named_likewise():
    table = dpt.tree_agg(
        VISITS, BY, ASKED, rho=0.1, domain=PLACES, confidence=0.9, keep=["measurements"], rng=rng()
    )
    for name in ASKED:
        suffixes = ["", "_std_error", "_lower", "_upper", "_measurement", "_noise_scale"]
        assert {f"{name}{each}" for each in suffixes} <= {*table.columns}
        shown = table[table[name].notna()]
        assert (shown[f"{name}_lower"] <= shown[name]).all() and (shown[name] <= shown[f"{name}_upper"]).all()


def test_a_count_called_count_is_named_as_by_tree_counts():
    table = dpt.tree_agg(VISITS, BY, {"count": "count"}, epsilon=1.0, domain=PLACES, rng=rng())
    counts = dpt.tree_counts(VISITS, BY, epsilon=1.0, domain=PLACES, rng=rng())
    assert [*table.columns] == [*counts.columns]
    pd.testing.assert_series_equal(table["std_error"], counts["std_error"])


@each("loss", LOSSES)
def test_sums_alone_are_those_of_tree_sums(loss):
    asked = {"cost": dpt.sum("cost", **COST), "age": dpt.sum("age", **AGE)}
    ours = dpt.tree_agg(VISITS, BY, asked, domain=PLACES, rng=rng(), **loss)
    bounds = {"cost": COST["bounds"], "age": AGE["bounds"]}
    theirs = dpt.tree_sums(
        VISITS, BY, columns=["cost", "age"], bounds=bounds, domain=PLACES, rng=rng(), **loss
    )
    pd.testing.assert_frame_equal(ours, theirs)


@each("loss", LOSSES)
def test_means_without_a_count_are_those_of_tree_means(loss):
    ours = dpt.tree_agg(
        VISITS, BY, {"cost": dpt.mean("cost", **COST)}, domain=PLACES, rng=rng(), confidence=0.9, **loss
    )
    theirs = dpt.tree_means(
        VISITS, BY, columns="cost", bounds=COST["bounds"], domain=PLACES, rng=rng(), confidence=0.9, **loss
    )
    kept = [name for name in theirs if name not in ("count", "std_error", "lower", "upper")]
    pd.testing.assert_frame_equal(ours, theirs[kept], check_like=False)
    assert ours.attrs["dp"]["quantities"]["count"]["shown"] == "not shown"


def test_one_column_can_stand_in_several_places():
    asked = {
        "low": dpt.sum("cost", bounds=(0, 50)),
        "high": dpt.sum("cost", bounds=(0, 500)),
        "mean": dpt.mean("cost", **COST),
    }
    table = dpt.tree_agg(VISITS, BY, asked, epsilon=1e6, domain=PLACES, rng=rng())
    assert table.loc[0, "low"] == pytest.approx(VISITS["cost"].clip(0, 50).sum(), abs=1)
    assert table.loc[0, "high"] == pytest.approx(VISITS["cost"].sum(), abs=1)
    assert table.loc[0, "mean"] == pytest.approx(VISITS["cost"].mean(), abs=0.01)


def test_a_row_without_a_value_is_dropped_everywhere():
    visits = VISITS.assign(cost=VISITS["cost"].where(VISITS.index % 2 == 0))
    table = dpt.tree_agg(visits, BY, ASKED, epsilon=1e6, domain=PLACES, rng=rng())
    assert table.loc[0, "visits"] == visits["cost"].notna().sum()


@each("consistency", ["integer", "nonnegative", "linear", "none"])
def test_counts_and_sums_add_up(consistency):
    table = dpt.tree_agg(VISITS, BY, ASKED, rho=0.1, domain=PLACES, consistency=consistency, rng=rng())
    total, regions = table.loc[0], table[table["level"] == "region"]
    for name in ("visits", "paid"):
        assert (total[name] == pytest.approx(regions[name].sum(), rel=1e-9)) == (consistency != "none")


# How the budget is divided


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_all_of_it_spends_the_loss_once(loss, neighbors):
    plan = dpt.plan_agg(
        DOMAIN, ASKED, neighbors=neighbors, privacy_unit="person", max_contributions=3, **loss
    )
    assert spends_no_more(list(plan.plans.values()), plan.loss)
    stated = plan.loss.to_dict()
    assert {name: plan.provenance()[name] for name in stated} == stated


def test_plans_that_spend_more_together_are_refused():
    plan = dpt.plan_agg(DOMAIN, ASKED, epsilon=1.0, mechanism="laplace")
    short = type(plan.loss)(epsilon=math.nextafter(float(sum(map(Fraction, [
        each.loss.epsilon for each in plan.plans.values()]))), 0) * 0.999)  # fmt: skip
    with pytest.raises(dpt.ArgumentError, match="together spend more than the stated loss"):
        dpt.JointPlan(loss=short, plans=plan.plans, means=plan.means, count=plan.count)
    gaussian = dpt.plan_agg(DOMAIN, ASKED, epsilon=1.0, delta=1e-6, mechanism="gaussian")
    with pytest.raises(dpt.ArgumentError, match="together spend more than the stated loss"):
        dataclasses.replace(gaussian, loss=type(plan.loss)(epsilon=0.99, delta=1e-6))
    with pytest.raises(dpt.ArgumentError, match="together spend more than the stated loss"):
        dataclasses.replace(plan, loss=type(plan.loss)(rho=0.1))
    other = dpt.plan_agg(DOMAIN, ASKED, epsilon=1.0, mechanism="laplace", neighbors="replace")
    with pytest.raises(dpt.ArgumentError, match="differ in the hierarchy"):
        dpt.JointPlan(loss=plan.loss, plans={"a": plan.plans["visits"], "b": other.plans["paid"]})


def test_a_count_that_is_shown_gets_more_of_the_budget_than_one_for_means_alone():
    shares = [
        dpt.plan_agg(DOMAIN, asked, rho=0.1).plans[name].loss.rho
        for asked, name in (({"cost": ASKED["cost"]}, "count"), ({"n": "count", "cost": ASKED["cost"]}, "n"))
    ]
    assert shares[1] > 1.2 * shares[0]


def test_known_counts_leave_the_budget_to_the_rest():
    rows = VISITS.groupby(BY, dropna=False, as_index=False).size().rename(columns={"size": "count"})
    known = PLACES.merge(rows, how="left").fillna({"count": 0}).astype({"count": int})
    table = dpt.tree_agg(VISITS, BY, ASKED, epsilon=1.0, domain=PLACES, known=known, rng=rng())
    assert (table["visits_std_error"] == 0).all() and table.loc[0, "visits"] == known["count"].sum()
    assert table.attrs["dp"]["quantities"]["visits"]["epsilon"] == 0.0


@pytest.mark.nightly
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_standard_errors_are_what_repeated_releases_show(loss):
    plan = dpt.plan_agg(DOMAIN, ASKED, consistency="linear", **loss)
    generator = np.random.default_rng(7)
    tables = [plan.release(VISITS, rng=generator) for _ in range(300)]
    truth = VISITS["cost"].agg(["count", "mean", "sum"]).set_axis([*ASKED])
    for name in ASKED:
        off = np.array([table.loc[0, name] for table in tables]) - truth[name]
        assert np.sqrt(np.mean(off**2)) == pytest.approx(tables[0].loc[0, f"{name}_std_error"], rel=0.15)


# Plans


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_plan_is_shown_stored_and_released_later(loss):
    plan = VISITS.dp.plan_agg(BY, ASKED, domain=PLACES, **loss)
    assert all(name in repr(plan) and name in plan._repr_html_() for name in ASKED)
    assert plan.to_frame()["quantity"].unique().tolist() == [*ASKED]
    assert plan.compare().index.names == ["quantity", "mechanism", "split"]
    back = dpt.Plan.from_dict(json.loads(json.dumps(plan.to_dict(), allow_nan=False)), DOMAIN)
    assert back.to_dict() == plan.to_dict() and repr(back) == repr(plan)
    direct = dpt.tree_agg(VISITS, BY, ASKED, domain=PLACES, rng=rng(), **loss)
    for table in (plan.release(VISITS, rng=rng()), VISITS.dp.release(back, rng=rng())):
        pd.testing.assert_frame_equal(table, direct)
        assert table.attrs == direct.attrs


def test_sums_and_means_are_planned_likewise():
    sums = VISITS.dp.plan_sums(BY, columns=["cost", "age"], bounds=(0, 100), epsilon=1.0, domain=PLACES)
    direct = dpt.tree_sums(
        VISITS, BY, columns=["cost", "age"], bounds=(0, 100), epsilon=1.0, domain=PLACES, rng=rng()
    )
    pd.testing.assert_frame_equal(sums.release(VISITS, rng=rng()), direct)
    means = VISITS.dp.plan_means(BY, columns="age", bounds=(0, 100), rho=0.1, domain=PLACES)
    direct = dpt.tree_means(VISITS, BY, columns="age", bounds=(0, 100), rho=0.1, domain=PLACES, rng=rng())
    pd.testing.assert_frame_equal(means.release(VISITS, rng=rng()), direct)


def test_a_plan_of_variables_with_bounds_of_their_own_releases_no_records():
    wards = dpt.datasets.clinics()  # any frame
    array = xr.DataArray([3, 4], dims=["ward"], coords={"ward": ["A", "B"]})
    plan = xr.Dataset({"a": array, "b": array}).dp.plan(
        ["ward"], epsilon=1.0, max_contributions={"a": 1, "b": 2}
    )
    with pytest.raises(dpt.ArgumentError, match="different bounds on the rows of a unit"):
        plan.release(wards)


# What holds of a plan however it was made


def test_what_was_checked_cannot_be_changed():
    plan = dpt.plan_agg(DOMAIN, ASKED, epsilon=1.0)
    given = dict(plan.plans)
    made = dpt.JointPlan(loss=plan.loss, plans=given, means=plan.means, count=plan.count)
    given["more"] = given["paid"]
    assert [*made.plans] == [*ASKED]
    with pytest.raises(TypeError):
        made.plans["more"] = given["paid"]
    for part in made.plans.values():
        for array in (part.unit_noise_scales, part.budget_shares, part.level_weights):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0
    for copied in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan), copy.copy(plan)):
        assert copied.to_dict() == plan.to_dict()
        pd.testing.assert_frame_equal(copied.release(VISITS, rng=rng()), plan.release(VISITS, rng=rng()))


def test_what_is_measured_counts_and_not_what_shares_say():
    """A plan that spends cannot pass for one that does not."""
    dear = dpt.plan(DOMAIN, epsilon=5.0)
    cheap = dpt.plan(DOMAIN, epsilon=0.1)
    assert dear._spends and not dear.budget_shares.sum() == 0
    with pytest.raises(dpt.ArgumentError, match="spend more"):
        dpt.JointPlan(loss=cheap.loss, plans={"a": cheap, "b": dear})


@each(
    ("change", "argument"),
    [
        ({"means": (), "count": None}, "means"),
        ({"means": ("visits",)}, "means"),
        ({"means": ("no",)}, "means"),
        ({"count": None}, "means"),
        ({"count": "paid"}, "means"),
        ({"count": "no", "means": ()}, "means"),
        ({"shows_count": 1}, "count"),
        ({"plans": {}}, "plans"),
        ({"plans": {"a": "plan"}}, "plans"),
        ({"plans": {None: dpt.plan(DOMAIN, epsilon=0.1)}}, "plans"),
    ],
)
def test_what_a_table_cannot_show_is_refused(change, argument):
    plan = dpt.plan_agg(DOMAIN, ASKED, epsilon=1.0)
    with pytest.raises(dpt.ArgumentError) as caught:
        dataclasses.replace(plan, **change)
    assert caught.value.argument == argument and caught.value.hint


def test_names_that_clash_in_a_table_are_refused_when_it_is_made():
    plan = dpt.plan_agg(DOMAIN, {"a": dpt.sum("cost", **COST)}, epsilon=1.0)
    for name in ("level", "region", "std_error"):
        odd = dpt.JointPlan(loss=plan.loss, plans={name: plan.plans["a"]})
        with pytest.raises(dpt.ColumnsError, match="the same name"):
            odd.release(VISITS)


def test_a_column_may_be_called_as_no_column_of_the_table():
    records = VISITS.assign(count=VISITS["cost"], lower=VISITS["cost"])
    asked = {"a": dpt.sum("count", **COST), "b": dpt.mean("lower", **COST)}
    table = dpt.tree_agg(records, BY, asked, epsilon=1.0, domain=PLACES)
    assert {"a", "a_std_error", "b", "b_std_error"} <= {*table}
    with pytest.raises(dpt.ColumnsError, match="the same name"):
        dpt.plan(DOMAIN, column="count", **COST, epsilon=1.0)


def test_counts_that_are_all_public_leave_nothing_to_plan():
    known = PLACES.assign(count=3)
    with pytest.raises(dpt.ArgumentError, match="nothing to measure"):
        dpt.plan_agg(DOMAIN, {"n": "count"}, known=known, epsilon=1.0)
    plan = dpt.plan_agg(DOMAIN, ASKED, known=known, epsilon=1.0)
    assert "visits (public)" in plan.headline


def test_names_may_be_tuples():
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    plan = dpt.plan_sums(domain, columns=[("cost", "a"), ("cost", "b")], bounds=(0, 1), epsilon=1.0)
    assert plan.to_frame()["quantity"].iloc[0] == ("cost", "a")
    assert "('cost', 'b')" in repr(plan) and "cost" in plan._repr_html_() and len(plan.compare())


def test_a_unit_is_no_column_that_is_added_up():
    for make in (
        lambda: dpt.plan(DOMAIN, column="cost", **COST, epsilon=1.0, **PEOPLE),
        lambda: dpt.plan_agg(DOMAIN, ASKED, epsilon=1.0, **PEOPLE),
    ):
        with pytest.raises(dpt.ArgumentError, match="`privacy_unit` must name a column that is neither"):
            make()


def test_plans_for_records_are_not_for_datasets():
    array = xr.DataArray([3, 4], dims=["region"], coords={"region": ["A", "B"]})
    domain = dpt.Domain.from_frame(pd.DataFrame({"region": ["A", "B"]}), by=["region"])
    dataset = xr.Dataset({"cost": array, "paid": array, "count": array})
    for asked in ({"cost": dpt.mean("cost", **COST)}, {"paid": dpt.sum("cost", **COST)}):
        with pytest.raises(dpt.ArgumentError, match="only possible for tables of records"):
            dataset.dp.release(dpt.plan_agg(domain, asked, epsilon=1.0))


@each("statistic", ["median", "count", None])
def test_an_aggregation_is_a_sum_or_a_mean(statistic):
    with pytest.raises(dpt.ArgumentError, match="`statistic` is unknown"):
        dpt.Aggregation(statistic, dpt.sum("cost", **COST).quantity)
    for quantity in ("cost", dpt.sum("cost", **COST).quantity.centred()):
        with pytest.raises(dpt.ArgumentError, match="must describe the values of a column"):
            dpt.Aggregation("sum", quantity)


# What cannot be asked for


@each(
    ("asked", "message"),
    [
        ({}, "must be a mapping with at least one entry"),
        (["count"], "must be a mapping with at least one entry"),
        ("count", "must be a mapping with at least one entry"),
        ({"cost": "mean"}, "an invalid entry, 'cost': 'mean'; for a sum or a mean, give the column"),
        ({"cost": ("cost", "sum")}, "an invalid entry, 'cost': a tuple"),
        ({None: "count"}, "an invalid entry, None"),
        ({"count": dpt.sum("cost", bounds=(0, 1))}, "cannot name a sum or a mean 'count'"),
        ({"a": "count", "b": "count"}, "the same count more than once"),
        ({"region": "count"}, "would give two columns of the released table the same name: 'region'"),
        ({"a": "count", "a_std_error": dpt.sum("cost", bounds=(0, 1))}, "the same name"),
    ],
)
def test_bad_aggregations_are_named(asked, message):
    with pytest.raises(dpt.ArgumentError, match=message) as caught:
        dpt.tree_agg(VISITS, BY, asked, epsilon=1.0, domain=PLACES)
    assert caught.value.argument == "aggregations" and caught.value.hint


def test_bounds_must_be_given():
    with pytest.raises(dpt.CallError, match="`bounds` must be given to mean"):
        dpt.mean("cost")
    with pytest.raises(dpt.ArgumentError, match="`bounds` must be given for the column 'cost'"):
        dpt.sum("cost", bounds=None)
