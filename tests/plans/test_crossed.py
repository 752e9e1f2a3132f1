"""Plans and releases of crossed hierarchies: what they spend, what they promise, and what they refuse."""

import json

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, DPTreeError
from tests.helpers_cases import each

PLACES = pd.DataFrame(
    {"state": ["CA", "CA", "DC", "WA", "WA"], "county": ["Kern", "Marin", None, "King", "Kern"]}
)
BY = {"place": ["state", "county"], "sex": "sex", "age": dpt.cut("age", levels={"band": [0, 18, 65, 120]})}
KEYS = {"place": PLACES, "sex": ["F", "M"]}
DOMAIN = dpt.cross(
    place=dpt.Domain.from_frame(PLACES, by=["state", "county"]),
    sex=dpt.Domain.from_frame(["F", "M"], by=["sex"]),
    age=dpt.derived_domain(BY["age"]),
)
LOSSES = [{"epsilon": 0.8}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}]
NO_NOISE = {"rho": 1e9}
GAUSSIAN = {"rho": 0.1, "mechanism": "gaussian"}
SOME = [{"place": "county"}, ("state", "age_band"), "sex"]


def records(n=500, seed=0):
    rng = np.random.default_rng(seed)
    rows = PLACES.iloc[rng.integers(0, len(PLACES), n)].reset_index(drop=True)
    return rows.assign(
        sex=rng.choice(["F", "M"], n, p=[0.8, 0.2]),
        age=rng.integers(0, 110, n),
        cost=rng.integers(0, 50, n),
        person=rng.integers(0, n // 4, n),
    )


RECORDS = records()


def plan_of(domain=DOMAIN, **options):
    return dpt.plan(domain, **options or {"rho": 0.1})


# --- what is spent --------------------------------------------------------------------------------------


@pytest.mark.parametrize("margins", [None, pytest.param(SOME, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@each("neighbors", ["add_remove", "replace"])
def test_all_margins_together_keep_to_the_loss(loss, mechanism, neighbors, margins):
    if mechanism == "gaussian" and loss == {"epsilon": 0.8}:
        with pytest.raises(ArgumentError, match="Hint: "):
            plan_of(**loss, mechanism=mechanism)
        return
    plan = plan_of(**loss, mechanism=mechanism, neighbors=neighbors, margins=margins)
    noise, scales = plan.noise, plan.unit_noise_scales
    spent = noise.spent(plan.loss, plan.sensitivity, scales)
    if plan.loss.delta and spent > noise.budget(plan.loss):
        assert noise.delta(plan.epsilon, scales, plan.sensitivity) <= plan.delta
    else:
        assert spent <= noise.budget(plan.loss)
        assert plan.loss.delta or spent >= noise.budget(plan.loss) * (1 - 1e-6)


def test_the_budget_of_a_ledger_is_charged_once_and_the_table_kept(tmp_path):
    account = dpt.Ledger.create(tmp_path / "a.ledger", account="all", rho=1.0, privacy_unit=dpt.ROWS)["all"]
    options = {"domain": KEYS, "rho": 0.25, "privacy_unit": dpt.ROWS, "ledger": account, "note": "1"}
    first = RECORDS.dp.tree_counts(BY, **options)
    with pytest.warns(dpt.DPTreeWarning, match="was released before"):
        again = RECORDS.dp.tree_counts(BY, **options)
    pd.testing.assert_frame_equal(first, again)
    assert account.remaining.amount.loss == 0.75


# --- what is released -----------------------------------------------------------------------------------


@each("consistency", ["none", "linear", "nonnegative", "integer"])
@each("margins", [None, SOME])
def test_the_table_is_the_groupby_without_noise(consistency, margins):
    table = RECORDS.dp.tree_counts(BY, domain=KEYS, **NO_NOISE, consistency=consistency, margins=margins)
    band = pd.cut(RECORDS["age"], [0, 18, 65, 120], right=False)
    for margin, by in [({"place": "state", "age": "age_band"}, ["state"]), ({"sex": "sex"}, ["sex"])]:
        found = table.dp.margin(margin)["count"]
        keys = [RECORDS[key] for key in by] + ([band] if "age" in margin else [])
        expected = RECORDS.groupby(keys, observed=False).size()
        near = 0.5 if consistency == "nonnegative" and margins else 1e-3  # what no margin says is spread out
        assert np.allclose(found.to_numpy(dtype=float), expected.to_numpy(), atol=near)
    assert (table["std_error"] < 1e-3).all()


def test_all_margins_agree_and_are_whole_and_not_negative():
    table = RECORDS.dp.tree_counts(BY, domain=KEYS, rho=0.01, rng=np.random.default_rng(0))
    assert table["count"].dtype == "int64"
    assert (table["count"] >= 0).all()
    total = table.dp.margin()["count"].item()
    for margin in [{"place": "state"}, {"sex": "sex"}, {"place": "state", "sex": "sex"}, {"age": "age_band"}]:
        assert table.dp.margin(margin)["count"].sum() == total
    by_state = table.dp.margin(place="state", sex="sex")["count"]
    for name, margin in {"state": {"place": "state"}, "sex": {"sex": "sex"}}.items():
        assert (by_state.groupby(name).sum() == table.dp.margin(margin)["count"]).all()
    counties = (
        table.dp.margin(place="county", age="age_band")["count"]
        .groupby(["state", "age_band"], observed=True)
        .sum()
    )
    states = table.dp.margin(place="state", age="age_band")["count"]
    assert (states.drop("DC") == counties).all()


@pytest.mark.parametrize("n_releases", [12, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "options", [{}, {"margins": SOME}, {"neighbors": "replace"}, {"mechanism": "laplace"}]
)
def test_releases_are_as_accurate_as_the_plan_promises(options, n_releases):
    plan = plan_of(**{"rho": 0.1, "consistency": "linear", **options})
    rng = np.random.default_rng(0)
    leaves = np.full(plan.tree.leaf_shape, 20)
    exact = plan_of(rho=1e12, consistency="linear", margins=options.get("margins")).release(leaves)["count"]
    squares = np.array([(plan.release(leaves, rng=rng)["count"] - exact) ** 2 for _ in range(n_releases)])
    ratio = squares.mean(axis=0) / plan.release(leaves)["std_error"] ** 2
    assert abs(ratio.mean() - 1) < 1.2 / np.sqrt(n_releases)
    assert n_releases < 100 or ((ratio > 0.7) & (ratio < 1.4)).all()


def test_the_plan_states_the_errors_of_the_table():
    plan = plan_of(rho=0.1)
    table = plan.release(RECORDS)
    frame = plan.to_frame()
    assert list(frame.columns) == [
        "place_level",
        "sex_level",
        "age_level",
        "cells",
        "share",
        "noise_scale",
        "std_error",
    ]
    levels = ["place_level", "sex_level", "age_level"]
    mean_square = (table["std_error"] ** 2).groupby([table[name].astype(str) for name in levels]).mean()
    stated = frame.set_index(levels)["std_error"] ** 2
    np.testing.assert_allclose(stated.sort_index(), mean_square.sort_index(), rtol=1e-9)


def test_counts_of_leaf_cells_are_released_as_records_are():
    plan = plan_of(**NO_NOISE)
    from_records = plan.release(RECORDS)
    band = pd.cut(RECORDS["age"], [0, 18, 65, 120], right=False)
    keys = [RECORDS["state"].str.cat(RECORDS["county"].fillna("-"), ";"), RECORDS["sex"], band]
    leaves = RECORDS.groupby(keys, observed=False).size().to_numpy().reshape(plan.tree.leaf_shape)
    pd.testing.assert_frame_equal(plan.release(leaves), from_records)
    pd.testing.assert_frame_equal(plan.release(leaves.reshape(-1)), from_records)
    with pytest.raises(ArgumentError, match="data"):
        plan.release(leaves[:1])


def test_sums_and_means_of_a_column_over_all_margins():
    table = RECORDS.dp.tree_agg(
        BY,
        {
            "people": "count",
            "mean_cost": dpt.mean("cost", bounds=(0, 50)),
            "paid": dpt.sum("cost", bounds=(0, 50)),
        },
        domain=KEYS,
        rho=1e8,
    )
    expected = RECORDS.groupby("sex")["cost"].agg(["size", "mean", "sum"])
    found = table.dp.margin(sex="sex")[["people", "mean_cost", "paid"]]
    np.testing.assert_allclose(found.to_numpy(dtype=float), expected.to_numpy(), rtol=1e-2)
    sums = RECORDS.dp.tree_sums(BY, columns="cost", bounds=(-10, 50), domain=KEYS, rho=1e8, margins=["sex"])
    np.testing.assert_allclose(sums["cost"], expected["sum"], rtol=1e-3)
    means = RECORDS.dp.tree_means(BY, columns="cost", bounds=(0, 50), domain=KEYS, rho=1e8)
    np.testing.assert_allclose(means.dp.margin()["cost"], RECORDS["cost"].mean(), rtol=1e-3)


def test_known_totals_and_structural_zeros_are_shown_exactly():
    states = pd.Series([100, 50, 150], index=pd.Index(["CA", "DC", "WA"], name="state"))
    sexes = pd.DataFrame({"sex": ["F", "M", "X"], "none": [False, False, True]})
    domain = dpt.cross(
        place=dpt.Domain.from_frame(PLACES, by=["state", "county"]),
        sex=dpt.Domain.from_frame(sexes, by=["sex"], structural_zeros="none"),
    )
    for consistency in ("linear", "nonnegative", "integer"):
        plan = dpt.plan(domain, rho=0.1, known={"state": states}, consistency=consistency)
        table = plan.release(RECORDS, rng=np.random.default_rng(0))
        shown = table.dp.margin(place="state")
        np.testing.assert_allclose(shown["count"], states, atol=1e-9)
        assert (shown["std_error"] == 0).all()
        zeros = table[table["sex"] == "X"]
        assert (zeros[["count", "std_error"]] == 0).all(axis=None)
        beside = table.dp.margin(place="state", sex="sex")
        assert (beside["std_error"].drop("X", level="sex") > 0).all()
        np.testing.assert_allclose(beside["count"].groupby("state").sum(), states, atol=1e-9)


# --- plans ----------------------------------------------------------------------------------------------


@each(
    "options",
    [
        {"rho": 0.1},
        {"epsilon": 1.0, "margins": SOME, "neighbors": "replace"},
        {"rho": 0.1, "known": {"total": 500}},
    ],
)
def test_a_plan_is_read_from_json_as_it_was_written(options):
    plan = dpt.plan(DOMAIN, **options)
    stored = json.loads(json.dumps(plan.to_dict()))
    read = dpt.Plan.from_dict(stored, DOMAIN, digest=plan.digest)
    assert read.digest == plan.digest
    assert read.tree == plan.tree
    first, second = (each.release(RECORDS, rng=np.random.default_rng(1)) for each in (plan, read))
    pd.testing.assert_frame_equal(first, second)


def test_margins_do_not_change_the_fingerprint_of_the_domain():
    stored = dpt.plan(DOMAIN, rho=0.1, margins=SOME).to_dict()
    assert stored["domain"] == dpt.plan(DOMAIN, rho=0.1).to_dict()["domain"]
    read = dpt.Plan.from_dict(stored, DOMAIN)
    assert read.margins == ({"sex": "sex"}, {"place": "state", "age": "age_band"}, {"place": "county"})


def test_only_what_margins_need_is_measured():
    plan = dpt.plan(DOMAIN, rho=0.1, margins=["sex"])
    measured = [name for name, share in zip(plan.level_names, plan.budget_shares, strict=True) if share]
    assert set(measured) <= {"total", "sex"}
    table = plan.release(RECORDS)
    assert list(table["sex"]) == ["F", "M"]


def test_weights_make_the_margins_that_matter_more_accurate():
    errors = {
        weight: dpt.plan(DOMAIN, **GAUSSIAN, level_weights={"place": {"state": weight}})
        for weight in (1.0, 9.0)
    }
    state = DOMAIN.level_names.index("state")
    assert errors[9.0].std_errors[state] < errors[1.0].std_errors[state]


@pytest.mark.slow
def test_weights_of_margins_make_those_more_accurate():
    listed = [
        dpt.plan(DOMAIN, **GAUSSIAN, margins={"state": weight, ("county", "sex"): 1}) for weight in (1, 9)
    ]
    shown = [dict(zip(each.level_names, each.std_errors, strict=True))["state"] for each in listed]
    assert shown[1] < shown[0]


def test_a_split_is_given_by_axis():
    given = {
        "place": {"state": 0.5, "county": 0.5},
        "sex": {"sex": 1.0},
        "age": {"total": 0.5, "age_band": 0.5},
    }
    plan = dpt.plan(DOMAIN, rho=0.1, split=given)
    measured = {
        name: share for name, share in zip(plan.level_names, plan.budget_shares, strict=True) if share
    }
    assert measured == {
        name: 0.25
        for name in ("state × sex", "state × sex × age_band", "county × sex", "county × sex × age_band")
    }
    assert plan.split == "given"
    with pytest.raises(ArgumentError, match="sum to 1"):
        dpt.plan(DOMAIN, rho=0.1, split={**given, "sex": {"sex": 0.5}})


def test_other_mechanisms_and_splits_are_compared():
    plan = dpt.plan(DOMAIN, rho=0.1)
    table = plan.compare()
    assert table.index[0] == ("gaussian", "optimal")
    assert list(table.columns[-2:]) == ["objective", "gap"]
    assert (table["objective"].iloc[0] <= table["objective"] * (1 + 1e-9)).all()
    assert list(table.index[-2:]) == [("gaussian", "nested"), ("gaussian", "separate")]
    path = ["total", "state", "county", "county × sex"]  # of the concatenated hierarchy
    assert (table.loc[("gaussian", "nested"), path] < table.iloc[0][path]).all()
    assert 1 <= plan.gap < 1.01


@pytest.mark.slow
def test_a_target_names_margins_and_costs_as_little_as_it_must():
    target = {"state": 5.0, ("county", "sex"): 4.0}
    plan = dpt.plan(DOMAIN, target=target, margins=list(target), mechanism="gaussian")
    reached = dict(zip(plan.level_names, plan.std_errors, strict=True))
    excess = [reached["state"] / 5, reached["county × sex"] / 4]
    assert 1 - 1e-3 < max(excess) <= 1
    with pytest.raises(ArgumentError, match="target"):
        dpt.plan(DOMAIN, rho=plan.rho / 2, target=target, margins=list(target), mechanism="gaussian")


def test_a_target_of_one_margin_is_met_exactly():
    plan = dpt.plan(DOMAIN, target={"sex": 4.0}, margins=["sex"], mechanism="gaussian")
    shown = plan.std_errors[plan.level_names.index("sex")]
    assert 4 * (1 - 1e-6) < shown <= 4


@each(
    "target, fact",
    [
        ({"town": 3}, "no level 'town'"),
        ({"state": dpt.within(9, confidence=0.9)}, "half widths"),
        ({dpt.combine([("CA",)]): 3}, "areas"),
        ({"county": 3}, "not released"),
    ],
)
def test_targets_that_cannot_be_planned_for(target, fact):
    with pytest.raises(ArgumentError, match=f"(?s)target.*{fact}.*Hint: "):
        dpt.plan(DOMAIN, target=target, margins=["state"])


def test_the_plan_reads_well():
    text = repr(dpt.plan(DOMAIN, rho=0.1, margins=["state", ("county", "sex")]))
    assert text.startswith(
        "Plan for 2 margins of place × sex × age: gaussian noise, rho=0.1, protecting each row"
    )
    assert dpt.plan(DOMAIN, rho=0.1).subject == "counts by state, county × sex × age_band"


def test_a_secret_check_counts_records_by_their_keys():
    wrong = RECORDS.assign(sex=RECORDS["sex"].str.lower())
    check = repr(dpt.plan(DOMAIN, rho=0.1).secret_check(wrong))
    assert check.startswith("SECRET")
    assert "the key is not in the domain" in check


# --- what is refused ------------------------------------------------------------------------------------


@each(
    "options, named",
    [
        ({"max_per_node": {"state": 1}}, "max_per_node"),
        ({"fit": "joint"}, "fit"),
        ({"confidence": 0.9}, "confidence"),
        ({"split": "best"}, "split"),
        ({"split": {"state": 1.0}}, "split"),
        ({"level_weights": {"state": 1.0}}, "level_weights"),
        ({"level_weights": {"place": {"town": 1.0}}}, "level_weights"),
        ({"known": {"town": [1]}}, "known"),
        ({"known": 5}, "known"),
        ({"known": {"sex": [1, 2], "state": [1, 1, 1]}}, "known"),
        ({"margins": ["town"]}, "margins"),
        ({"margins": []}, "margins"),
        ({"mechanism": dpt.Multiplicative(alpha=0.1)}, "mechanism"),
        ({"objective": "best"}, "objective"),
        ({"max_per_leaf": 1}, "max_per_leaf"),
    ],
)
def test_options_that_crossed_hierarchies_do_not_take(options, named):
    with pytest.raises(DPTreeError, match=f"(?s){named}.*Hint: ") as caught:
        dpt.plan(DOMAIN, rho=0.1, **options)
    assert "\nHint: " in str(caught.value)


def test_margins_have_no_meaning_for_one_hierarchy():
    with pytest.raises(ArgumentError, match="margins"):
        RECORDS.dp.tree_counts(["state", "county"], domain=PLACES, rho=0.1, margins=["state"])


def test_verbs_that_need_one_hierarchy_refuse_several():
    with pytest.raises(ArgumentError, match="crosses several"):
        RECORDS.dp.tree_units(BY, domain=KEYS, rho=0.1, privacy_unit="person", max_nodes=2)
    with pytest.raises(ArgumentError, match="crosses several"):
        RECORDS.dp.quantiles("cost", [0.5], by=BY, domain=KEYS, bounds=(0, 50), bins=10, rho=0.1)


def test_the_grand_total_alone_is_a_table():
    table = plan_of(**NO_NOISE, margins=[{}]).release(RECORDS)
    assert table["count"].tolist() == [len(RECORDS)]


def test_what_is_known_as_a_whole_is_not_planned():
    domain = dpt.cross(
        sex=dpt.Domain.from_frame(["F", "M"], by=["sex"]), one=dpt.Domain.from_frame(["x"], by=["one"])
    )
    with pytest.raises(ArgumentError, match="covers all leaf cells"):
        dpt.plan(domain, rho=1.0, known={"sex": [3, 4]})


def test_margins_that_a_table_lacks_are_named():
    table = dpt.plan(DOMAIN, rho=0.1, margins=["sex", ("state", "age_band")]).release(RECORDS)
    with pytest.raises(ArgumentError, match=r"(?s)without rows.*'sex', 'state × age_band'"):
        table.dp.margin(place="state")


def test_rows_in_a_leaf_cell_are_not_bounded_where_there_is_one():
    with pytest.raises(ArgumentError, match=r"(?s)`max_per_leaf` bounds.*one cell"):
        dpt.plan(DOMAIN, rho=0.1, margins=[{}], privacy_unit="who", max_contributions=2, max_per_leaf=1)


def test_a_bound_on_the_rows_in_a_leaf_cell_lessens_the_noise():
    unit = {"privacy_unit": "person", "max_contributions": 8}
    free, bounded = (dpt.plan(DOMAIN, **GAUSSIAN, **unit, max_per_leaf=m) for m in (None, 1))
    assert bounded.expected_error < 0.9 * free.expected_error
    assert bounded.max_per_leaf == 1
    assert dpt.Plan.from_dict(bounded.to_dict(), DOMAIN).digest == bounded.digest
