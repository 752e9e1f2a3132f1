"""Counts of distinct units beside counts and sums of the same records, under one loss."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.plans.joint_charge import joint_delta, spent_together
from pandas_dptree.plans.measurement import FROM_SHARES
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.simulated_gaussian import continuous_delta
from tests.helpers_cases import each

BY = ["region", "district"]
CLINICS = dpt.datasets.clinics()[BY].drop_duplicates()
DOMAIN = dpt.Domain.from_frame(CLINICS, by=BY)
COLUMNS = {"visits": "count", "visitors": "units", "visits_each": "count_per_unit"}
UNIT = {"privacy_unit": "person", "max_nodes": 3, "max_contributions": 6}
COST = {"cost": dpt.sum("cost", bounds=(0, 500)), "average": dpt.mean("cost", bounds=(0, 500))}


def plan_of(columns=COLUMNS, **options):
    return dpt.plan_agg(DOMAIN, columns, **{**UNIT, **options})


@pytest.mark.parametrize("loss", [{"epsilon": 0.8}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}], ids=repr)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS | COST], ids=["counts", "sums"])
@pytest.mark.parametrize("mechanism", ["auto", "laplace"])
def test_all_quantities_together_keep_to_the_loss_and_spend_it(loss, neighbors, mechanism, columns):
    plan = plan_of(columns, **loss, neighbors=neighbors, mechanism=mechanism)
    plans = list(plan.plans.values())
    if plan.loss.kind == "approximate" and plans[0].noise.euclidean:
        assert 0.9 * plan.delta < joint_delta(plan.epsilon, plans) <= plan.delta
    elif plan.loss.kind == "zcdp" and plans[0].noise.euclidean:
        assert 0.999 < float(spent_together(plan.loss, plans)) / plan.rho <= 1
    else:
        spent = [(each.loss.epsilon or 0.0) + (each.loss.rho or 0.0) for each in plans]
        assert sum(spent) <= (plan.loss.epsilon or plan.loss.rho) * (1 + 1e-12)


def test_visits_and_visitors_share_gaussian_noise():
    """Whoever is in many nodes moves the visits of each by less, so both cost less than one by one."""
    plan = plan_of(rho=0.1)
    alone = sum(each.loss.rho for each in plan.plans.values())
    assert 1.1 * plan.rho < alone
    assert float(plan.losses.in_rho[0]) <= plan.rho
    epsilon = plan_of(epsilon=1.0)
    assert sum(each.loss.epsilon for each in epsilon.plans.values()) == pytest.approx(1.0)


def test_with_hardly_any_noise_both_are_of_the_same_rows():
    visits = dpt.datasets.clinic_visits(300)
    table = visits.dp.tree_agg(
        BY, COLUMNS, domain=CLINICS, rho=1e9, confidence=0.9, **{**UNIT, "max_nodes": 6}
    )
    rows = visits[visits["region"].isin(CLINICS["region"])]
    per_person = rows.groupby("person").size().clip(upper=6)
    total = table.iloc[0]
    assert total["visits"] == per_person.sum() and total["visitors"] == len(per_person)
    assert total["visits_each"] == pytest.approx(per_person.mean(), abs=1e-4)
    leaves = table[table["level"] == "district"]
    assert (leaves["visits"] >= leaves["visitors"]).all()
    shown = leaves["visits_each"].notna()
    assert (leaves["visits_each_lower"] <= leaves["visits"] / leaves["visitors"] + 1e-4)[shown].all()
    assert leaves.loc[shown, "visits_each"].between(1, 6).all()


def test_intervals_of_visits_per_visitor_hold_the_truth():
    visits = dpt.datasets.clinic_visits(4_000)
    rows = visits.groupby("person").size().clip(upper=6)
    plan = plan_of(epsilon=1.0, confidence=0.9)
    rng = np.random.default_rng(5)
    tables = [plan.release(visits, rng=rng).iloc[0] for _ in range(40)]
    inside = sum(row["visits_each_lower"] <= rows.mean() <= row["visits_each_upper"] for row in tables)
    assert inside >= 31  # of 36 expected


@pytest.mark.parametrize(
    "options", [{"rho": 0.1}, {"epsilon": 1.0, "neighbors": "replace"}, {"epsilon": 1.0, "delta": 1e-6}]
)
@pytest.mark.parametrize(
    "columns", [COLUMNS, {"n": "count", "visitors": "units"} | COST], ids=["counts", "sums"]
)
def test_plans_are_read_back_from_json(options, columns):
    plan = plan_of(columns, **options)
    again = dpt.Plan.from_dict(json.loads(json.dumps(plan.to_dict())), DOMAIN, digest=plan.digest)
    assert repr(again) == repr(plan)
    visits = dpt.datasets.clinic_visits(50)
    one, two = (each.release(visits, rng=np.random.default_rng(6)) for each in (plan, again))
    pd.testing.assert_frame_equal(one, two)
    assert set(plan.to_frame()["quantity"]) == set(plan.plans)


@each("columns, options, message", [
    ({"visitors": "units"}, {}, "counts distinct units alone"),
    ({"visits": "count", "kinds": "nunique"}, {}, "only privacy units can be counted"),
    ({"visits": "count", "each": "count_per_unit"}, {}, "lacks one of them"),
    ({"a": "units", "b": "units", "visits": "count"}, {}, "the same count more than once"),
    ({"count": "units", "visits": "count"}, {}, "cannot name counts of units"),
    (COLUMNS, {"max_nodes": None}, "`max_nodes` must be given"),
    ({"visits": "count"}, {}, "distinct units, which are not counted"),
    (COLUMNS, {"max_per_leaf": 1}, "`max_per_leaf` cannot be stated"),
    (COLUMNS, {"max_per_node": {"region": 1}}, "`max_per_node` cannot be stated"),
    (COLUMNS, {"max_contributions": 2}, "at least the bound of the deepest level"),
    (COLUMNS, {"max_contributions": None}, "`max_contributions` must be given"),
    (COLUMNS, {"privacy_unit": None}, "privacy_unit"),
    (COLUMNS, {"known": {"total": 3}}, "`known` cannot be stated"),
])  # fmt: skip
def test_unusable_columns_and_options_are_named(columns, options, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        plan_of(columns, epsilon=1.0, **options)
    assert "Hint: " in str(caught.value)


def test_a_part_that_was_changed_is_refused():
    stored = json.loads(json.dumps(plan_of(rho=0.1).to_dict()))
    from pandas_dptree.plans.serialize import digest_of

    for name, part in stored["plans"]:
        changed = json.loads(json.dumps(stored))
        scales = dict(changed["plans"])[name]["noise_scales"]
        scales[-1][0] = 0.9 * scales[-1][0] if scales[-1][0] else 5.0
        with pytest.raises(ArgumentError):
            dpt.Plan.from_dict(changed | {"digest": digest_of(changed)}, DOMAIN)
        assert part["noise_scales"]


def test_bounds_are_compared_for_the_quantities_that_they_bound():
    """Those of rows for what is added up over rows, those of nodes for distinct units."""
    plan = plan_of(epsilon=1.0)
    rows, nodes, both = plan.compare(max_contributions=[6, 4]), plan.compare(max_nodes=[1, 3]), plan.compare()
    assert set(rows.index.get_level_values("quantity")) == {"visits"}
    assert nodes.index.tolist() == [("visitors", "1"), ("visitors", "3")]
    assert set(both.index.get_level_values("quantity")) == {"visits", "visitors"}
    kept = nodes.loc[("visitors", "3")]
    assert kept["objective"] == pytest.approx(plan.plans["visitors"].expected_error, rel=1e-6)
    without = dpt.plan_agg(
        DOMAIN, {"visits": "count"}, epsilon=1.0, privacy_unit="person", max_contributions=6
    )
    for other, bounds in [(without, {}), (plan, {"max_contributions": [6]})]:
        with pytest.raises(ArgumentError, match="`max_nodes` bounds the nodes") as caught:
            other.compare(max_nodes=[1], **bounds)
        assert caught.value.hint


# --- against all people of a small world ------------------------------------------------------------------


SMALL = pd.DataFrame({"a": list("xxxyy"), "b": list("12345"), "person": 0})


def moves_of(rows):
    """Return what a person with rows in these leaves adds to all nodes: rows, people, and excesses."""
    leaves = np.bincount(rows, minlength=5) if rows else np.zeros(5)
    above = [leaves[:3].sum(), leaves[3:].sum()]
    counts = [[leaves.sum()], above, leaves]
    total, (x, y), present = (np.minimum(level, 1) for level in counts)
    excess = [[x + y - total[0]], [present[:3].sum() - x, present[3:].sum() - y]]
    return [*counts, total, [x, y], present, *excess]


def worst_cost(plan, power):
    """Return the largest cost of two neighbours: half the squares over variances, or sizes over scales."""
    scales = np.concatenate([plan.plans[name].unit_noise_scales for name in ("visits", "visitors")])
    k, m = plan.max_contributions, plan.units.max_nodes
    people = np.array([
        np.concatenate([np.divide(*level) for level in zip(moves_of(rows), scales, strict=True)])
        for n in range(k + 1)
        for rows in itertools.combinations_with_replacement(range(5), n)
        if len(set(rows)) <= m[2] and len({row > 2 for row in rows}) <= m[1]
    ])  # fmt: skip
    others = people if plan.neighbors == "replace" else people[:1]  # the first has no rows
    costs = (np.abs(people[:, None] - others) ** power).sum(axis=-1)
    return float(costs.max()) / power


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(
    "bounds",
    [(2, {"a": 1, "b": 2}), (3, 2), pytest.param((3, {"a": 1, "b": 3}), marks=pytest.mark.slow)],
    ids=str,
)
def test_the_charge_is_that_of_the_worst_person_of_a_small_world(neighbors, bounds):
    k, m = bounds
    options = {"privacy_unit": "person", "max_contributions": k, "max_nodes": m, "neighbors": neighbors}
    domain = dpt.Domain.from_frame(SMALL, by=["a", "b"])
    of = {"visits": "count", "visitors": "units"}
    plan = dpt.plan_agg(domain, of, rho=0.1, mechanism="gaussian", **options)
    worst, charged = worst_cost(plan, 2), float(plan.losses.in_rho[0])
    assert worst <= charged * (1 + 1e-9) <= plan.rho * (1 + 1e-9)
    assert worst <= float(plan._loss_together().rho) * (1 + 1e-9)
    if neighbors == "add_remove":  # elsewhere the world is too small for what is charged
        assert worst >= 0.999 * plan.rho
    plan = dpt.plan_agg(domain, of, epsilon=0.5, mechanism="laplace", **options)
    assert worst_cost(plan, 1) <= min(plan.epsilon, float(plan._loss_together().epsilon)) * (1 + 1e-9)
    assert plan.losses.in_rho[0] <= 0.5**2 / 2
    plan = dpt.plan_agg(domain, of, epsilon=0.5, delta=1e-6, mechanism="gaussian", **options)
    mu = math.sqrt(2 * worst_cost(plan, 2))
    assert continuous_delta(np.array([0.5]), mu)[0] <= plan.delta * (1 + 1e-6)


@pytest.mark.parametrize("loss", [{"rho": 0.1}, {"epsilon": 0.5}, {"epsilon": 0.5, "delta": 1e-6}], ids=str)
@each("mechanism", ["gaussian", "laplace"])
def test_parts_that_together_spend_more_are_refused(loss, mechanism):
    if mechanism == "gaussian" and loss == {"epsilon": 0.5}:
        return
    plan = plan_of(mechanism=mechanism, **loss)
    for name, part in plan.plans.items():
        larger = {key: 1.05 * size for key, size in part.loss.to_dict().items() if size and key != "delta"}
        more = replace(
            part, loss=PrivacyLoss(**{**part.loss.to_dict(), **larger}), unit_noise_scales=FROM_SHARES
        )
        with pytest.raises(ArgumentError, match="spend more than the stated loss"):
            replace(plan, plans={**plan.plans, name: more})


def test_sums_beside_units_are_charged_on_top():
    plan = plan_of(COLUMNS | COST, rho=0.1)
    pair = [each for each in plan.plans.values() if each.statistic != "sum"]
    sums = [each.loss.rho for each in plan.plans.values() if each.statistic == "sum"]
    assert len(pair) == len(sums) == 2
    assert 0.999 * plan.rho <= sum(sums) + float(spent_together(plan.loss, pair)) <= plan.rho * (1 + 1e-9)
    assert float(plan._loss_together().rho) >= 0.999 * plan.rho


def test_units_get_their_part_of_a_large_loss():
    for rho in (1e3, 1e300):
        assert plan_of(rho=rho, mechanism="gaussian").rho == rho
    for epsilon in (1.0, 50.0):
        rows, people = plan_of(epsilon=epsilon, mechanism="laplace").plans.values()
        assert 0.1 < people.loss.epsilon / rows.loss.epsilon < 10


@each("change", [
    lambda plan: {"plans": {name: each for name, each in plan.plans.items() if name != "visitors"}},
    lambda plan: {"per_unit": "visits"},
    lambda plan: {"per_unit": ["each"]},
    lambda plan: {"count": None},
])  # fmt: skip
def test_rows_per_unit_need_both_counts_and_a_name(change):
    """Else a release would fail after it was charged."""
    plan = plan_of(rho=0.1)
    with pytest.raises(ArgumentError, match="per_unit"):
        replace(plan, **change(plan))
    odd = replace(plan, per_unit="visits_std_error")
    with pytest.raises(ArgumentError, match="same name"):
        odd.release(dpt.datasets.clinic_visits(20))
