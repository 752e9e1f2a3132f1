"""Plans and releases of distinct units: what they spend, their errors, and what their tables keep to."""

import json

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, ColumnsError
from tests.helpers_cases import each

BY = ["region", "district", "clinic"]
CLINICS = dpt.datasets.clinics()
DOMAIN = dpt.Domain.from_frame(CLINICS, by=BY)
DISTRICTS = dpt.Domain.from_frame(CLINICS[BY[:2]].drop_duplicates(), by=BY[:2])
UNIT = {"privacy_unit": "person", "max_nodes": 4}
LOSSES = [{"epsilon": 0.8}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}]
NO_NOISE = {"epsilon": None, "rho": 1e9, "mechanism": "gaussian"}


def plan_of(domain=DISTRICTS, **options):
    return dpt.plan_units(domain, **{"epsilon": 1.0, **UNIT, **options})


def truth(visits):
    """Count the people of each district and above, in the order of a table, without any bound and noise."""
    table = plan_of(**NO_NOISE, max_nodes=50).release(visits)
    return table["count"].to_numpy()


# --- what is spent --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@each("mechanism", ["laplace", "gaussian"])
@each("neighbors", ["add_remove", "replace"])
@each("max_nodes", [1, 3, {"region": 1, "district": 4}])
def test_all_levels_and_excesses_together_keep_to_the_loss(loss, mechanism, neighbors, max_nodes):
    if mechanism == "gaussian" and loss == {"epsilon": 0.8}:
        with pytest.raises(ArgumentError, match="Hint: "):
            plan_of(**loss, mechanism=mechanism)
        return
    options = {"epsilon": None, **loss, "mechanism": mechanism, "neighbors": neighbors}
    plan = plan_of(**options, max_nodes=max_nodes)
    noise, scales = plan.noise, plan.unit_noise_scales
    spent = noise.spent(plan.loss, plan.sensitivity, scales)
    assert np.isfinite(scales).any()
    if plan.loss.delta and spent > noise.budget(plan.loss):
        assert noise.delta(plan.epsilon, scales, plan.sensitivity) <= plan.delta
    else:
        assert spent <= noise.budget(plan.loss)
        assert plan.loss.delta or spent >= noise.budget(plan.loss) * (1 - 1e-9)


def test_excesses_are_free_below_the_root():
    """The counts have the noise that they would have alone."""
    for options in ({"epsilon": 1.0}, {"rho": 0.1, "epsilon": None}):
        plan = plan_of(**options, split="uniform")
        alone = plan.noise.noise_scales(plan.loss, plan.sensitivity, plan.budget_shares * (np.arange(5) < 3))
        assert np.isfinite(plan.excess_noise_scales[1])
        assert plan.noise_scales == pytest.approx(alone[:3], rel=1e-9)


def test_losses_add_up_to_less_than_their_items():
    losses = plan_of(epsilon=None, rho=0.1).losses
    assert [item.level for item in losses.items] == [
        "total", "region", "district", "excess of total", "excess of region",
    ]  # fmt: skip
    assert losses.in_rho[0] <= 0.1 < sum(item.loss.rho for item in losses.items)


# --- errors ---------------------------------------------------------------------------------------------


def test_observed_errors_are_those_of_the_plan():
    """Over releases of the same records, for estimates that are linear."""
    visits = dpt.datasets.clinic_visits(300)
    plan = plan_of(epsilon=2.0, consistency="linear", max_nodes=9)
    rng = np.random.default_rng(1)
    tables = [plan.release(visits, rng=rng) for _ in range(60)]
    errors = np.array([table["count"] for table in tables]) - truth(visits)
    z = errors / tables[0]["std_error"].to_numpy()
    assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(60)
    levels = tables[0]["level"].to_numpy()
    for level in ("region", "district"):
        assert 0.85 < np.sqrt((z[:, levels == level] ** 2).mean()) < 1.15


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_observed_errors_and_coverage_over_400_releases(loss, neighbors):
    visits = dpt.datasets.clinic_visits(2_000)
    options = {"epsilon": None, **loss, "neighbors": neighbors, "confidence": 0.9, "keep": ["linear"]}
    plan = plan_of(**options, max_nodes=9)
    rng, true = np.random.default_rng(2), truth(visits)
    tables = [plan.release(visits, rng=rng) for _ in range(400)]
    errors = np.array([table["linear"] for table in tables]) - true
    z = errors / tables[0]["std_error"].to_numpy()
    assert np.abs(z.mean(axis=0)).max() < 5 / 20
    inside = np.array([(table["lower"] <= true) & (true <= table["upper"]) for table in tables])
    for level in tables[0]["level"].cat.categories:
        rows = (tables[0]["level"] == level).to_numpy()
        assert 0.93 < np.sqrt((z[:, rows] ** 2).mean()) < 1.07
        assert 0.88 < inside[:, rows].mean() < 0.97


def test_a_known_total_costs_nothing_and_is_shown():
    visits = dpt.datasets.clinic_visits(2_000)
    plan, without = plan_of(known={"total": 2_000}), plan_of()
    assert np.isinf(plan.noise_scales[0]) and plan.std_errors[0] == 0
    assert (plan.std_errors[1:] < without.std_errors[1:]).all()
    table = plan.release(visits)
    assert table["count"].iloc[0] == 2_000 and table["std_error"].iloc[0] == 0


def test_one_node_each_is_a_tree_that_adds_up():
    plan = plan_of(max_nodes=1)
    additive = dpt.plan(DISTRICTS, epsilon=1.0, privacy_unit="person", max_contributions=1)
    assert plan.std_errors == pytest.approx(additive.std_errors, rel=1e-6)
    table = plan.release(dpt.datasets.clinic_visits(500))
    regions, districts = (table.dp.level(name)["count"] for name in ("region", "district"))
    assert table["count"].iloc[0] == regions.sum()
    assert districts.groupby(level="region").sum().equals(regions.drop("By telephone"))


# --- tables ---------------------------------------------------------------------------------------------


def test_with_hardly_any_noise_people_are_counted_once_in_each_node():
    visits = dpt.datasets.clinic_visits(400)
    table = visits.dp.tree_units(BY, domain=CLINICS, privacy_unit="person", max_nodes=50, **NO_NOISE)
    assert table["count"].iloc[0] == visits["person"].nunique()
    for depth, name in enumerate(BY, 1):
        people = visits.groupby(BY[:depth])["person"].nunique()
        shown = table.dp.level(name)["count"]
        assert shown[shown > 0].to_dict() == people.to_dict()


@each("consistency", ["integer", "nonnegative"])
@each("loss", [{"epsilon": 0.05}, {"rho": 0.5}])
def test_a_node_lies_between_its_largest_child_and_their_sum(consistency, loss):
    plan = plan_of(**{"epsilon": None, **loss}, consistency=consistency)
    table = plan.release(dpt.datasets.clinic_visits(1_000), rng=np.random.default_rng(3))
    total, regions, districts = (table.dp.level(name)["count"] for name in ("total", "region", "district"))
    assert (table["count"] >= 0).all()
    for above, below in [
        (total, regions.groupby(lambda _: 0)),
        (regions.drop("By telephone"), districts.groupby(level="region")),
    ]:
        assert (below.max().to_numpy() <= above.to_numpy() + 1e-9).all()
        assert (above.to_numpy() <= below.sum().to_numpy() + 1e-9).all()


def test_columns_and_provenance():
    table = plan_of(confidence=0.95, keep=["measurements", "linear"]).release(dpt.datasets.clinic_visits(50))
    assert list(table.columns) == [
        "level", "region", "district", "count", "std_error", "lower", "upper", "measurement", "noise_scale",
        "excess_measurement", "excess_noise_scale", "linear",
    ]  # fmt: skip
    leaves = table["level"].eq("district")
    assert table.loc[leaves, "excess_measurement"].isna().all()
    assert table.loc[~leaves, "excess_noise_scale"].notna().any()
    described = table.attrs["dp"]
    assert described["counted"] == "units" and described["additive"] is False
    assert described["max_nodes"] == {"region": 4, "district": 4}


# --- plans ----------------------------------------------------------------------------------------------


@each("options", [{}, {"max_nodes": {"region": 2, "district": 3}}, {"known": {"total": 9}},
                  {"epsilon": None, "rho": 0.1, "neighbors": "replace", "consistency": "linear"},
                  {"split": {"total": 0.2, "region": 0.3, "district": 0.5}, "keep": ["linear"]}])  # fmt: skip
def test_plans_are_read_back_from_json(options):
    plan = plan_of(**options)
    stored = json.loads(json.dumps(plan.to_dict()))
    again = dpt.Plan.from_dict(stored, DISTRICTS, digest=plan.digest)
    assert type(again) is dpt.UnitPlan and repr(again) == repr(plan) and again.digest == plan.digest
    visits = dpt.datasets.clinic_visits(50)
    one, two = (each.release(visits, rng=np.random.default_rng(4)) for each in (plan, again))
    pd.testing.assert_frame_equal(one, two)


def forged(plan, change):
    stored = json.loads(json.dumps(plan.to_dict()))
    change(stored)
    from pandas_dptree.plans.serialize import digest_of

    return stored | {"digest": digest_of(stored)}


@each("change", [
    lambda stored: stored["noise_scales"].__setitem__(0, [0.5 * stored["noise_scales"][0][0]]),
    lambda stored: stored["noise_scales"].__setitem__(4, [0.5 * stored["noise_scales"][4][0]]),
    lambda stored: stored.update(noise_scales=[[each and each / 1.01] for (each,) in stored["noise_scales"]]),
    lambda stored: stored["max_nodes"].__setitem__(2, 3),
    lambda stored: stored["max_nodes"].__setitem__(0, 2),
    lambda stored: stored.update(max_contributions=3),
    lambda stored: stored["shares"].__setitem__(4, [0.0]),
    lambda stored: stored.update(loss={"epsilon": 0.9, "delta": 0.0}),
    lambda stored: stored.update(privacy_unit=None, max_contributions=1, max_nodes=[1, 1, 1]),
    lambda stored: stored.update(neighbors="replace"),
    lambda stored: stored.update(unknown=1),
])  # fmt: skip
def test_plans_that_were_changed_are_refused(change):
    with pytest.raises(ArgumentError):
        dpt.Plan.from_dict(forged(plan_of(), change), DISTRICTS)


def test_bounds_are_compared():
    plan = plan_of(epsilon=None, rho=0.1)
    bounds = plan.compare(max_nodes=[1, 4, {"district": 4, "region": 1}])
    assert list(bounds.columns) == ["total", "region", "district", "objective", "gap"]
    assert (bounds["district"].iloc[1:] > bounds["district"].iloc[0]).all()
    assert bounds["district"].iloc[1] == pytest.approx(plan.std_errors[2])
    others = plan.compare()
    assert (
        others.index[0] == ("gaussian", "optimal")
        and others["objective"].min() == others["objective"].iloc[0]
    )
    with pytest.raises(ArgumentError, match="must list bounds"):
        plan.compare(max_nodes=4)


def test_uniform_trees_state_how_close_they_are_to_the_best():
    plan = dpt.plan_units(dpt.Tree.from_branching([8, 8, 8]), rho=0.1, **UNIT)
    assert 1.1 < plan.gap < 1.19
    assert plan_of(epsilon=None, rho=0.1).gap is None
    assert "Gap" in plan_of(epsilon=None, rho=0.1).gap_reason


@pytest.mark.parametrize("mechanism", [pytest.param("laplace", marks=pytest.mark.slow), "gaussian"])
def test_targets_are_reached_by_the_smallest_loss(mechanism):
    target = {"total": 20, "region": 12, "district": dpt.within(30, confidence=0.9)}
    plan = plan_of(epsilon=None, target=target, mechanism=mechanism)
    reached = [*plan.std_errors[:2] / [20, 12], plan.largest_half_widths(0.9)[2] / 30]
    assert 0.99 < max(reached) <= 1.0001
    (stated, size), *_ = [each for each in plan.loss.to_dict().items() if each[1]]
    options = {"epsilon": None, "target": target, "mechanism": mechanism}
    assert plan_of(**options | {stated: 2 * size}).std_errors[0] < plan.std_errors[0]
    with pytest.raises(ArgumentError, match="Hint: "):
        plan_of(**options | {stated: size / 2})


@each("target, message", [
    ({"clinic": 3}, "clinic"),
    ({"region": -1}, "target"),
    ({dpt.combine([["Aldmark"]]): 3}, "names an area"),
])  # fmt: skip
def test_unusable_targets_are_named(target, message):
    with pytest.raises(ArgumentError, match=message):
        plan_of(epsilon=None, target=target)


@each("options, message", [
    ({"max_nodes": None}, "`max_nodes` must be given"),
    ({"max_nodes": 0}, "whole number of at least 1"),
    ({"max_nodes": 1.5}, "whole number of at least 1"),
    ({"max_nodes": {"region": 2}}, "must bound the deepest level"),
    ({"max_nodes": {"clinic": 2}}, "names unknown levels"),
    ({"max_nodes": {"region": 5, "district": 2}}, "allows a unit more nodes"),
    ({"max_nodes": {"total": 2, "district": 2}}, "which has one"),
    ({"privacy_unit": None}, "`privacy_unit` must name the column"),
    ({"privacy_unit": dpt.ROWS}, "`privacy_unit` must name the column"),
    ({"privacy_unit": "region"}, "neither a key nor counted"),
    ({"known": {"region": {"Aldmark": 3}}}, "the total alone"),
    ({"consistency": "whole"}, "consistency"),
    ({"max_contributions": 3}, "max_nodes bounds its nodes"),
    ({"private_keys": ["district"]}, "only records can be counted by private keys"),
    ({"split": {"total": 0.5}}, "split"),
])  # fmt: skip
def test_unusable_options_are_named(options, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        plan_of(**options)
    assert "Hint: " in str(caught.value)


def test_what_cannot_be_released():
    tree = dpt.Tree.from_branching([2, 3])
    plan = dpt.plan_units(tree, epsilon=1.0, **UNIT)
    with pytest.raises(ArgumentError, match="in how many nodes each unit is"):
        plan.release(np.ones(6))
    with pytest.raises(ArgumentError, match="made from a Tree"):
        plan.release(pd.DataFrame({"person": [1]}))
    with pytest.raises(ColumnsError, match="person"):
        plan_of().release(CLINICS)
