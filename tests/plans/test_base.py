"""What every kind of plan has: it is shown, compared, stored and released in the same way."""

import dataclasses
import inspect
import json

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.hierarchy import domain
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_json import replaced
from tests.helpers_kinds import DOMAIN, KINDS, PLANS, RECORDS

BOTH = PrivacyLoss(rho=0.02, delta=1e-6)
every_kind = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)


def test_every_kind_is_tried():
    assert KINDS.keys() == {kind.__name__ for kind in dpt.Plan._kinds.values()}
    assert set(KINDS) <= set(dpt.__all__) and all(isinstance(plan, dpt.Plan) for plan in PLANS.values())


def test_the_common_class_is_no_plan_itself():
    with pytest.raises(TypeError, match="abstract"):
        dpt.Plan(loss=PLANS["AdditivePlan"].loss, privacy_unit=None, max_contributions=1)


@every_kind
def test_it_says_what_it_costs_and_whom_it_protects(plan):
    assert plan.headline.startswith("Plan ") or plan.headline.startswith("Plan: ")
    whom = {None: "each row (1 row", "person": "each person ("}[plan.privacy_unit]
    assert f"epsilon=1, delta=1e-06, protecting {whom}" in plan.headline and ", add_remove)" in plan.headline
    assert (plan.epsilon, plan.delta, plan.rho) == (1.0, 1e-6, None)
    assert repr(plan).startswith(plan.headline) and len(repr(plan).splitlines()) > 1
    html = plan._repr_html_()
    assert html.startswith("<p>Plan") and "<table" in html and "epsilon=1, delta=1e-06" in html
    assert len(plan.to_frame()) and all(isinstance(name, str) for name in plan.level_names)


@every_kind
def test_with_a_unit_it_says_that_rows_may_be_missing(plan):
    if plan.privacy_unit is not None:
        assert (
            "ounts distinct person: each once in every node, in at most 3 of the level district"
            in plan.headline
        )
        assert ("Counts at most 3 rows of each person: " in plan.headline) == (plan.kind == "joint")
        return
    if "plans" not in vars(plan):
        trees = vars(plan).get("trees")
        own = {} if trees is None else {"trees": dataclasses.replace(trees, privacy_unit="person")}
        people = dataclasses.replace(plan, privacy_unit="person", **own)
        words = "Counts at most 1 row of each person: real totals can be higher"
        if plan.kind == "quantiles":
            words = "Uses at most 1 row of each person: quantiles of all rows can differ"
        assert people.headline == f"{plan.headline.replace('each row', 'each person')}. {words}"
    assert "real totals" not in plan.headline


@every_kind
def test_alternatives_stand_side_by_side(plan):
    table = plan.compare()
    only = isinstance(plan, dpt.QuantilePlan) and plan.trees is None
    assert isinstance(table, pd.DataFrame) and len(table) > 1 - only and table.index.is_unique
    assert not table.isna().all(axis=None)


@every_kind
def test_it_is_stored_and_released_later(plan):
    stored = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert stored["kind"] == plan.kind and stored["mechanism"] == plan.mechanism_name
    back = dpt.Plan.from_dict(stored, plan.hierarchy)
    assert type(back) is type(plan) and repr(back) == repr(plan) and back.to_dict() == stored
    tables = []
    for one in (plan, back):
        released = RECORDS.dp.release(one, rng=np.random.default_rng(3))
        tables.append(released.cdf() if isinstance(released, dpt.Distribution) else released)
    pd.testing.assert_frame_equal(*tables)
    assert tables[0].attrs == tables[1].attrs


@every_kind
def test_a_rho_with_a_delta_is_refused_by_plans_that_were_not_made_for_it(plan):
    with pytest.raises(dpt.ArgumentError):
        dataclasses.replace(plan, loss=BOTH)
    for forged in (
        replaced(plan.to_dict(), ("loss",), BOTH.to_dict()),
        replaced(plan.to_dict(), ("loss", "rho"), 0.02),
    ):
        with pytest.raises(dpt.ArgumentError, match="`data` is not a valid plan") as caught:
            dpt.Plan.from_dict(forged, plan.hierarchy)
        assert caught.value.argument == "data" and caught.value.hint


@each(
    "plan",
    [
        dpt.plan(DOMAIN, rho=0.02),
        dpt.plan(DOMAIN, rho=0.02, split="geometric"),
        dpt.plan(DOMAIN, rho=0.02, mechanism="laplace"),
        dpt.plan_distribution("cost", bounds=(0, 500), bins=16, rho=0.02),
        dpt.plan_quantiles("cost", 0.5, bounds=(0, 500), confidence=0.9, rho=0.02),
        dpt.plan_agg(DOMAIN, {"n": "count", "cost": dpt.mean("cost", bounds=(0, 500))}, rho=0.02),
    ],
)
def test_no_delta_is_added_to_a_rho_afterwards(plan):
    with pytest.raises(dpt.ArgumentError, match="`delta` cannot be given together with `rho`"):
        dataclasses.replace(plan, loss=BOTH)
    stored = plan.to_dict()
    assert dpt.Plan.from_dict(stored, plan.hierarchy).loss == plan.loss
    parts = [("plans", place, 1, "loss", "delta") for place in range(len(stored.get("plans", ())))]
    for place in (("loss", "delta"), *parts):
        with pytest.raises(dpt.ArgumentError, match="valid plan: `delta` cannot be given together"):
            dpt.Plan.from_dict(replaced(stored, place, 1e-6), plan.hierarchy)


@every_kind
def test_what_the_table_says_of_itself_is_known_beforehand(plan):
    released = plan.release(RECORDS)
    table = released.histogram() if isinstance(released, dpt.Distribution) else released
    said = plan.provenance()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert said.items() <= table.attrs["dp"].items()
    shared = {"mechanism", "epsilon", "delta", "neighbors", "privacy_unit", "max_contributions"}
    assert shared | {"domain_source", "rng", "version"} <= said.keys()
    assert said["rng"] == "operating system"


@every_kind
def test_all_are_released_by_the_same_call(plan):
    parameters = inspect.signature(plan.release).parameters
    assert [*parameters] == [
        "data",
        "rng",
        "progress",
        "ledger",
        "note",
        "name",
        "allow_repeat",
        "temp_folder",
    ]
    with pytest.raises(dpt.ArgumentError, match="Hint: "):
        plan.release("records.csv")


@every_kind
@each("broken", [None, {}, [], "plan", {"format": "pandas_dptree plan, version 1"}])
def test_what_is_no_plan_is_refused(plan, broken):
    with pytest.raises(dpt.ArgumentError, match="`data` is not a") as caught:
        type(plan).from_dict(broken, plan.hierarchy)
    assert caught.value.hint


@every_kind
def test_another_hierarchy_is_refused(plan):
    other = dpt.Domain.from_frame(pd.DataFrame({"region": ["X"]}), by=["region"])
    others = [
        other,
        dpt.Tree.from_branching([2]),
        dpt.prefixes("ip", bits=[8], notation="number"),
        None,
        "clinics",
    ]
    for hierarchy in (other for other in others if other is not plan.hierarchy):
        with pytest.raises(dpt.DomainError, match="the one that this plan was made for"):
            dpt.Plan.from_dict(plan.to_dict(), hierarchy)


def test_arrays_of_a_plan_are_read_only_copies():
    plan = dpt.plan(DOMAIN, epsilon=1.0)
    shares, weights = plan.budget_shares.copy(), plan.level_weights.copy()
    made = dataclasses.replace(plan, budget_shares=shares, level_weights=weights)
    for given in (shares, weights):
        given[:] = 9.0  # what was passed stays writeable
    assert made.budget_shares.tolist() == plan.budget_shares.tolist()
    assert made.level_weights.tolist() == plan.level_weights.tolist()
    for kept in (made.budget_shares, made.unit_noise_scales, made.level_weights):
        with pytest.raises(ValueError, match="read-only"):
            kept[:] = 9.0


def test_many_labels_are_hashed_once(monkeypatch):
    made = []
    monkeypatch.setattr(domain, "_fingerprint", lambda hierarchy: made.append(hierarchy) or "0" * 64)
    places = dpt.Domain.from_frame(pd.DataFrame({"a": ["x", "y"]}), by=["a"])
    for plan in (
        dpt.plan(places, epsilon=1.0),
        dpt.plan_sums(places, columns=["v", "w"], bounds=(0, 1), epsilon=1.0),
    ):
        assert plan._attrs() == plan._attrs() and plan.digest == plan.to_dict()["digest"]
        assert dpt.Plan.from_dict(plan.to_dict(), places).digest == plan.digest
    assert made == [places]


def test_changes_to_a_stored_plan_do_not_change_the_plan():
    plan = dpt.plan(dpt.Tree.from_branching([2, 3]), epsilon=1.0)
    stored = plan.to_dict()
    stored["noise_scales"][2][0] = 0.1
    assert plan.to_dict() != stored and plan.to_dict()["digest"] == plan.digest


def test_an_old_name_of_a_plan_is_an_error_that_gives_the_new_one():
    plan = dpt.plan(dpt.Tree.from_branching([2, 3]), epsilon=1.0)
    with pytest.raises(
        AttributeError, match=r"`plan.shares` no longer exists.\nHint: use plan.budget_shares"
    ):
        plan.shares  # noqa: B018
    assert not [name for name in dir(plan) if name.startswith("to_") and name not in ("to_dict", "to_frame")]
