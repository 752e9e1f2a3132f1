"""Sums that are measured from the middle of their bounds, and share the count: cost, errors, tables."""

import itertools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.joint_cumulants import cumulants_of_difference
from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.output.derived.estimates import Estimates
from pandas_dptree.planning.middles import best_middles
from pandas_dptree.plans import joint_search
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_cases import each
from tests.helpers_json import replaced
from tests.helpers_people import World
from tests.helpers_random import rng
from tests.helpers_verify import checked, rows_of

PLACES = pd.DataFrame({"a": ["x", "x", "y", "z"], "b": [1, 2, 1, 3]})
DOMAIN = dpt.Domain.from_frame(PLACES, by=["a", "b"])
WORLD = ((-1,), (0, 0, 0), (0, 0, 1, 2))
GAUSSIAN, LAPLACE = {"rho": 0.0005, "mechanism": "gaussian"}, {"epsilon": 0.01, "mechanism": "laplace"}
COST = dpt.sum("cost", bounds=(0, 1000), granularity=1)
MANY = dpt.Domain.from_frame(
    pd.DataFrame({"a": np.repeat(np.arange(2000), 2), "b": np.tile([0, 1], 2000)}), by=["a", "b"]
)


EMPTY = pd.DataFrame({"a": [0], "b": [0], "cost": [1.0]}).head(0)


def sums_of(bounds, count):
    asked = {f"x{place}": dpt.sum(f"x{place}", bounds=each) for place, each in enumerate(bounds)}
    return {"count": "count", **asked} if count else asked


def records(n=600, seed=0):
    draws = np.random.default_rng(seed)
    return PLACES.sample(n, replace=True, random_state=seed).reset_index(drop=True).assign(
        cost=draws.integers(0, 1001, n).astype(float), person=draws.integers(0, 200, n)
    )  # fmt: skip


# --- what is spent, and how it is divided ---------------------------------------------------------------


@each("bounds", [[(0, 3)], [(-1, 3)], [(0, 1), (0, 2)], [(2, 4)], [(-4, 1), (0, 2)]])
@each("loss", [GAUSSIAN, LAPLACE])
def test_no_unit_of_a_tiny_world_costs_more_than_the_loss_and_one_costs_all_of_it(bounds, loss):
    asked = {f"x{place}": dpt.sum("v", bounds=each, granularity=1) for place, each in enumerate(bounds)}
    options = {"split": {"total": 0.2, "a": 0.3, "b": 0.5}, "privacy_unit": "person", **loss}
    for k in (1, 2):
        plan = dpt.plan_agg(DOMAIN, {"n": "count", **asked}, **options, max_contributions=k)
        assert any(each.quantity.shift for each in plan.plans.values())
        moved = [(each.quantity.low, each.quantity.high) for each in plan.plans.values()]
        scales = [each.unit_noise_scales for each in plan.plans.values()]
        world = World(WORLD, k=k, bounds=tuple(moved))
        if "rho" in loss:
            spent = world.largest_squares([own**-2.0 for own in scales]) / 2 / loss["rho"]
        else:
            spent = world.largest_absolute(scales) / loss["epsilon"]
        assert 1 - 1e-6 < spent <= 1


@each("n, expected", [(1, (1, 0.765, 0.851)), (2, (0.854, 0.723, 0.778)), (3, (0.789, 0.697, 0.730)),
                      (4, (0.750, 0.680, 0.695)), (9, (0.667, 0.634, 0.591))])  # fmt: skip
def test_gaussian_errors_fall_by_the_factors_of_the_closed_form(n, expected, monkeypatch):
    check_factors([(0, 500)] * n, GAUSSIAN, expected, monkeypatch)


@each("n, expected", [(1, (1, 0.785, 0.792)), (2, (1, 0.726, 0.700)), (3, (0.901, 0.693, 0.642)),
                      (4, (0.825, 0.671, 0.600)), (9, (0.683, 0.617, 0.483))])  # fmt: skip
def test_laplace_errors_fall_by_the_factors_of_the_closed_form(n, expected, monkeypatch):
    check_factors([(0, 500)] * n, LAPLACE, expected, monkeypatch)


@each("bounds, expected", [((-30, 40), (0.916, 0.966)), ((-50, 50), (1, 1)), ((1900, 2025), (0.709, 0.715))])
def test_the_gain_depends_on_the_bounds(bounds, expected, monkeypatch):
    check_factors([bounds], GAUSSIAN, (1, *expected), monkeypatch)


def check_factors(bounds, loss, expected, monkeypatch):
    def errors(count):
        plans = dpt.plan_agg(DOMAIN, sums_of(bounds, count), **loss, split="uniform").plans
        return np.array([plans[name].expected_error for name in ("x0", "count")[: 1 + count]])

    found = np.r_[errors(False), errors(True)]
    with monkeypatch.context() as patch:
        patch.setattr(joint_search, "best_middles", lambda quantities, *_: quantities)
        plain = np.r_[errors(False), errors(True)]
    np.testing.assert_allclose(found / plain, expected, atol=0.0008)


@each("power", [1, 2])
def test_of_all_choices_of_middles_the_best_is_taken(power):
    draws = np.random.default_rng(power)

    def total(chosen, weights, count_weight):
        added = sum(w * float(q.origin) ** 2 for q, w in zip(chosen, weights, strict=True))
        counted = 0.0 if count_weight is None else (count_weight + added) ** (1 / (1 + power))
        moved = [w * max(abs(q.low), abs(q.high)) ** 2 for q, w in zip(chosen, weights, strict=True)]
        return counted + sum(each ** (1 / (1 + power)) for each in moved)

    for turn in range(40):
        ends = np.sort(draws.integers(-100, 300, (4, 2)), axis=1).tolist()
        plain = [Quantity.of("v", (low, high + (low == high)), 1) for low, high in ends]
        weights = (draws.exponential(size=4) / 100**2).tolist()
        count_weight = [None, 0.0, float(draws.exponential())][turn % 3]
        options = itertools.product(*([each, each.centred()] for each in plain))
        best = min(total(chosen, weights, count_weight) for chosen in options)
        found = total(best_middles(plain, weights, count_weight, power), weights, count_weight)
        assert found == pytest.approx(best, rel=1e-8)


def test_sums_stay_plain_where_that_is_better_or_nothing_more_is_proved():
    def shifts(asked, **options):
        plan = dpt.plan_agg(DOMAIN, asked, **options, split="uniform")
        return [each.quantity.shift for each in plan.plans.values()]

    both = {"n": "count", "x": COST}
    assert shifts(both, rho=0.1) == [0, 500]
    assert shifts(both, rho=0.1, neighbors="replace") == [0, 0]
    assert shifts({"x": COST}, rho=0.1) == [0]  # as good as from the middle, and nothing else to measure
    asked = {"m": dpt.mean("age", bounds=(0, 99), granularity=1), "x": COST}
    assert shifts(asked, rho=0.1) == [49, 500, 0]
    assert shifts(asked, rho=0.1, known={"total": 5}) == [
        49,
        0,
        0,
    ]  # the table would not show which are known
    two = dpt.plan_sums(DOMAIN, columns=["x", "y"], bounds=(0, 9), rho=0.1, split="uniform")
    assert (two.count, two.shows_count, list(two.plans)) == ("count", False, ["x", "y", "count"])
    pure = dpt.plan_sums(DOMAIN, columns=["x", "y"], bounds=(0, 9), epsilon=1.0, split="uniform")
    assert (pure.count, pure.shows_count, list(pure.plans)) == (None, True, ["x", "y"])


# --- errors ---------------------------------------------------------------------------------------------


def dense(plan):
    """The covariance of all nodes by the normal equations; what each measurement adds; fourth cumulants."""
    tree, depth = plan.tree, range(plan.tree.depth + 1)
    below = tree_rows(tree)
    scales = np.repeat(plan.unit_noise_scales, tree.level_sizes)
    known = np.concatenate(
        [np.broadcast_to(plan.known.exact[each], tree.level_sizes[each]) for each in depth]
    )
    noisy = np.isfinite(scales) & ~known
    variance = np.where(noisy, plan.noise.variance(np.where(noisy, scales, 1)), np.where(known, 1e-9, 1e30))
    weights = below / variance[:, None]
    gain = below @ np.linalg.solve(below.T @ weights, weights.T)
    if plan.consistency == "none":
        gain = np.eye(len(below))
    fourth = np.where(noisy, plan.noise.fourth_cumulant(np.where(noisy, scales, 1)), 0)
    return gain @ np.diag(np.where(noisy, variance, 0)) @ gain.T, gain, fourth


def flat(levels):
    """All nodes of the domain, one level after another."""
    return np.concatenate(list(map(np.broadcast_to, levels, DOMAIN.tree.level_sizes)))


def tree_rows(tree):
    """Which leaves are below each node."""
    leaves = np.eye(tree.n_leaves, dtype=np.int64)
    return np.concatenate([np.stack(level, axis=1) for level in zip(*map(tree.roll_up, leaves), strict=True)])


@each("consistency, loss, known", [
    ("linear", {"rho": 0.5, "mechanism": "gaussian"}, {"total": 600}),
    ("linear", {"epsilon": 2.0, "mechanism": "laplace"}, None),
    ("none", {"rho": 0.5, "mechanism": "gaussian"}, None),
    ("none", {"epsilon": 2.0, "mechanism": "laplace"}, {"total": 600}),
])  # fmt: skip
def test_errors_and_their_cumulants_are_those_of_the_differences_and_of_the_count(consistency, loss, known):
    asked = {"n": "count", "x": COST}
    plan = dpt.plan_agg(
        DOMAIN, asked, **loss, known=known, consistency=consistency, confidence=0.9, keep=["linear"],
        split={"total": 0.2, "a": 0.3, "b": 0.5} if known is None else "optimal",
    )  # fmt: skip
    sums, count = plan.plans["x"], plan.plans["n"]
    (cov_t, gain_t, fourth_t), (cov_n, gain_n, fourth_n) = dense(sums), dense(count)
    cov = cov_t + 500**2 * cov_n
    errors = flat(sums.node_std_errors)
    np.testing.assert_allclose(errors, np.sqrt(np.diag(cov)), rtol=1e-6)
    table = plan.release(records(), rng=rng(0))
    np.testing.assert_allclose(table["x_std_error"], errors, rtol=1e-6)
    estimates = Estimates.of(table, "x")
    fourth = gain_t**4 @ fourth_t + 500**4 * gain_n**4 @ fourth_n
    np.testing.assert_allclose(estimates.moments[0], np.diag(cov), rtol=1e-6)
    np.testing.assert_allclose(flat(sums.error_cumulants), fourth, rtol=1e-6, atol=1e-9 * fourth.max())
    if known is None:
        own, its = (np.minimum((gain**4).sum(axis=1) ** 0.25, 1) for gain in (gain_t, gain_n))
        for found in (estimates.moments[2], flat(sums._error_steps)):
            np.testing.assert_allclose(found, np.maximum(own, 500 * its), rtol=1e-6)
    np.testing.assert_allclose(estimates.moments[1], fourth, rtol=1e-6, atol=1e-9 * fourth.max())
    joint = estimates.joint_moments(0)
    np.testing.assert_allclose(joint[1], cov[:, 0], rtol=1e-6, atol=1e-6 * cov.max())
    change = gain_t - 0.3 * gain_t[0], gain_n - 0.3 * gain_n[0]
    expected = change[0] ** 4 @ fourth_t + 500**4 * change[1] ** 4 @ fourth_n
    np.testing.assert_allclose(
        cumulants_of_difference(joint, 0.3)[1], expected, rtol=1e-5, atol=1e-6 * fourth.max()
    )
    coast = {"coast": [("x", 1), ("y",)]}
    area = np.array([0, 0, 1, 0, 1, 0, 0, 0], dtype=float)
    summed = table.dp.combine(coast, column="x")
    assert summed["x_std_error"].item() == pytest.approx(math.sqrt(area @ cov @ area), rel=1e-6)
    planned = sums.area_std_error(dpt.combine([("x", 1), ("y",)]))
    assert planned == pytest.approx(summed["x_std_error"].item(), rel=1e-6)


@each("consistency", ["linear", "none"])
@each("loss", [{"rho": 0.01, "mechanism": "gaussian"}, {"epsilon": 0.2, "mechanism": "laplace"}])
def test_observed_errors_are_those_of_the_table(consistency, loss):
    """Of 2,000 pairs of leaves; the truth is 0, so all that the table shows is noise."""
    plan = dpt.plan_agg(
        MANY, {"n": "count", "x": COST}, **loss, consistency=consistency, confidence=0.9, split="uniform"
    )
    table = plan.release(EMPTY, rng=rng(3))
    widths = dict(zip(plan.level_names, plan.plans["x"].largest_half_widths(0.9), strict=True))
    for level in ("a", "b"):
        rows = table.dp.level(level)
        assert np.sqrt((rows["x"] ** 2).mean()) == pytest.approx(rows["x_std_error"].iloc[0], rel=0.05)
        assert (abs(rows["x"]) <= widths[level]).mean() == pytest.approx(0.9, abs=0.02)
        expected = 500 * rows["n_std_error"].iloc[0] ** 2
        assert (rows["x"] * rows["n"]).mean() == pytest.approx(expected, rel=0.12)


@pytest.mark.slow
@each("stated", [{"rho": 0.02}, {"epsilon": 1.0, "mechanism": "laplace"}, {"epsilon": 1.0, "delta": 1e-6}])
def test_observed_errors_of_2000_releases_are_those_of_the_table(stated):
    frame, truth = records(), None
    plan = dpt.plan_agg(DOMAIN, {"count": "count", "x": COST}, **stated, consistency="linear")
    tables = [plan.release(frame, rng=rng(seed)) for seed in range(2000)]
    truth = np.r_[len(frame), frame.groupby("a").size(), frame.groupby(["a", "b"]).size()]
    sums = np.r_[
        frame["cost"].sum(), frame.groupby("a")["cost"].sum(), frame.groupby(["a", "b"])["cost"].sum()
    ]
    for column, true, error in (("count", truth, "std_error"), ("x", sums, "x_std_error")):
        errors = np.stack([each[column] for each in tables]) - true
        np.testing.assert_allclose(np.sqrt((errors**2).mean(axis=0)), tables[0][error], rtol=0.045)
        ratio = np.sqrt((errors**2).mean() / (tables[0][error] ** 2).mean())
        assert ratio == pytest.approx(1, abs=0.03)


def test_what_could_be_planned_instead_has_the_errors_of_its_own_count():
    plan = dpt.plan_agg(DOMAIN, {"n": "count", "x": COST}, **GAUSSIAN)
    other = dpt.plan_agg(DOMAIN, {"n": "count", "x": COST}, **GAUSSIAN, split="uniform").plans["x"]
    row = plan.compare().loc[("x", "gaussian", "uniform")]
    np.testing.assert_allclose(row[["total", "a", "b"]].astype(float), other.std_errors, rtol=1e-9)
    sums = plan.plans["x"]
    assert row["gap"] is None or math.isnan(row["gap"])
    np.testing.assert_allclose(sums.alpha_rmse(0.0), [max(each) for each in sums.node_std_errors], rtol=1e-6)
    assert plan.to_frame().set_index(["quantity", "level"]).loc[("x", "a"), "std_error"] == sums.std_errors[1]


# --- what is shown --------------------------------------------------------------------------------------


@each("fit", ["totals", "adaptive", "joint"])
@each("consistency", ["integer", "nonnegative"])
def test_empty_cells_have_no_bias(consistency, fit):
    """Counts that are kept from being negative are too large there, and sums would be 500 times that."""
    plan = dpt.plan_agg(
        MANY, {"n": "count", "x": COST}, rho=0.02, consistency=consistency, fit=fit, keep=["linear"]
    )
    full = np.repeat(np.arange(1000), 80)
    table = plan.release(pd.DataFrame({"a": full, "b": 0, "cost": 500.0}), rng=rng(1))
    leaves = table.dp.level("b").iloc[2000:]
    assert abs(leaves["x_linear"].mean()) < 4 * leaves["x_std_error"].iloc[0] / math.sqrt(len(leaves))
    assert (table["x"] >= 0).all()
    if fit != "joint":
        assert table["x"].iloc[0] == pytest.approx(max(table["x_linear"].iloc[0], 0), abs=1)
    if consistency == "integer":
        assert (table["x"] == table["x"].round()).all()
    parents = table.dp.level("b")["x"].to_numpy().reshape(-1, 2).sum(axis=1)
    np.testing.assert_allclose(parents, table.dp.level("a")["x"], atol=1e-9 * table["x"].max())


def test_the_joint_fit_is_that_of_the_measurements():
    options = {"consistency": "nonnegative", "fit": "joint", "keep": ["measurements"]}
    plan = dpt.plan_agg(DOMAIN, {"n": "count", "x": COST}, rho=0.1, **options)
    table = plan.release(records(0), rng=rng(1))
    sums, ends = plan.plans["x"], np.cumsum(DOMAIN.tree.level_sizes)[:-1]
    noisy = (table["x_measurement"] + 500 * table["n_measurement"]).to_numpy()
    variances = sums.noise.variance(sums.unit_noise_scales) + 500**2 * sums.noise.variance(
        plan.plans["n"].unit_noise_scales
    )
    fitted = nonnegative_joint(
        DOMAIN.tree, np.split(noisy, ends), propagate(DOMAIN.tree, list(variances[:, None]))
    )
    np.testing.assert_allclose(table["x"], np.concatenate(fitted), atol=1e-6)
    assert (table["x"] == 0).any() and (table["x"] > 0).any()


def test_values_near_the_middle_are_not_mostly_noise():
    with warnings.catch_warnings(action="error"):
        dpt.tree_agg(
            records().assign(cost=500.0), ["a", "b"], {"n": "count", "x": COST}, domain=PLACES, rho=0.5
        )


PERSONS = {"privacy_unit": "person", "max_contributions": 3, "max_per_leaf": 1}


@each("consistency, options", [
    ("linear", {}), ("nonnegative", {"known": {"total": 600}}), ("integer", PERSONS), ("none", {}),
])  # fmt: skip
def test_without_noise_sums_counts_and_means_are_those_of_the_records(consistency, options):
    frame = records().assign(person=np.arange(600))
    asked = {"n": "count", "x": COST, "m": dpt.mean("cost", bounds=(0, 1000), granularity=1)}
    table = dpt.tree_agg(
        frame, ["a", "b"], asked, domain=PLACES, epsilon=1e9, consistency=consistency, **options
    )
    leaves = table.dp.level("b")
    grouped = frame.groupby(["a", "b"])["cost"]
    np.testing.assert_allclose(leaves["n"], grouped.size(), atol=1e-6)
    np.testing.assert_allclose(leaves["x"], grouped.sum(), atol=1e-3)
    np.testing.assert_allclose(leaves["m"], grouped.mean(), atol=1e-3)


def test_measurements_are_those_of_the_differences():
    asked = {"n": "count", "x": COST}
    table = dpt.tree_agg(
        records(), ["a", "b"], asked, domain=PLACES, rho=0.1, consistency="none", keep=["measurements"]
    )
    np.testing.assert_allclose(table["x"], table["x_measurement"] + 500 * table["n_measurement"])
    stated = table.attrs["dp"]["quantities"]["x"]
    assert (stated["middle"], stated["count"], stated["bounds"]) == (500.0, "n", [0.0, 1000.0])
    assert [*stated["noise_scale"].values()][-1] == table["x_noise_scale"].iloc[-1]
    assert "middle" not in table.attrs["dp"]["quantities"]["n"]


def test_a_hidden_count_leaves_no_column():
    frame = records().assign(y=900.0)
    table = dpt.tree_sums(
        frame, ["a", "b"], columns=["cost", "y"], bounds=(0, 1000), domain=PLACES, rho=0.1, keep=["linear"]
    )
    assert [name for name in table if "count" in name] == []
    assert table.attrs["dp"]["quantities"]["count"]["shown"] == "not shown"
    shares = table.dp.proportions(column="y", of="total")
    assert shares["proportion"].notna().any()
    whole = table.dp.combine({"all": [()]}, column="y")  # the middle is half a million steps of the grid
    assert whole["y_std_error"].item() == pytest.approx(table["y_std_error"].iloc[0], rel=1e-6)


def test_engines_agree():
    pl = pytest.importorskip("polars")
    asked = {"n": "count", "x": COST}
    options = {"domain": PLACES, "rho": 0.1, "privacy_unit": "person", "max_contributions": 2}
    tables = [
        dpt.tree_agg(frame, ["a", "b"], asked, **options, rng=rng(5))
        for frame in (records(), pl.from_pandas(records()))
    ]
    pd.testing.assert_frame_equal(*tables)


# --- plans as JSON --------------------------------------------------------------------------------------


def test_plans_are_read_again_and_only_with_their_count():
    plan = dpt.plan_agg(DOMAIN, {"n": "count", "x": COST}, rho=0.1, keep=["linear"])
    stored = plan.to_dict()
    for again in (dpt.Plan.from_dict(stored, DOMAIN), pickle.loads(pickle.dumps(plan))):
        assert again.digest == plan.digest and again.plans["x"].count is again.plans["n"]
        pd.testing.assert_frame_equal(
            again.release(records(), rng=rng(1)), plan.release(records(), rng=rng(1))
        )
    with pytest.raises(dpt.ArgumentError, match="count"):
        dpt.Plan.from_dict(replaced(stored, ("count",), None), DOMAIN)
    with pytest.raises(dpt.ArgumentError, match="count"):
        dpt.JointPlan(loss=plan.loss, plans={"x": plan.plans["x"]})
    with pytest.raises(dpt.ArgumentError, match="release the whole plan"):
        plan.plans["x"].release(records())
    other = dpt.plan(DOMAIN, rho=0.01, consistency="linear", split="uniform")
    with pytest.raises(dpt.ArgumentError, match="same records"):
        dpt.JointPlan(loss=plan.loss, plans={"n": other, "x": plan.plans["x"]}, count="n")


@each("options", [
    {"epsilon": 1.0, "mechanism": "laplace", "consistency": "none"},
    {"rho": 0.1, "known": {"total": 600}, "confidence": 0.9, "keep": ["measurements", "linear"]},
])  # fmt: skip
def test_the_verifier_passes_honest_tables_and_finds_other_errors(options, tmp_path):
    plan = dpt.plan_agg(DOMAIN, {"n": "count", "x": COST, "y": dpt.sum("cost", bounds=(-9, 30))}, **options)
    table = plan.release(records(), rng=rng(0))
    code, printed = checked(tmp_path, plan.to_dict(), rows_of(table))
    assert code == 0, printed
    own = table.assign(x_std_error=np.sqrt(table["x_std_error"] ** 2 - (500 * table["n_std_error"]) ** 2))
    code, printed = checked(tmp_path, plan.to_dict(), rows_of(own))
    assert code == 1 and "FAIL        standard errors of 'x'" in printed
    below = table.assign(x=-table["x"])
    if options.get("consistency") != "none":
        assert (
            "FAIL        values of 'x' are not negative"
            in checked(tmp_path, plan.to_dict(), rows_of(below))[1]
        )


def test_hidden_counts_of_the_verifier(tmp_path):
    plan = dpt.plan_sums(DOMAIN, columns=["cost", "person"], bounds=(0, 1000), rho=0.1)
    code, printed = checked(tmp_path, plan.to_dict(), rows_of(plan.release(records(), rng=rng(0))))
    assert code == 0, printed
    assert all(each.quantity == COUNT or each.count for each in plan.plans.values())
