"""Means of columns: quotients of noisy sums and counts, their errors and intervals, how budgets divide."""

import math

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import pandas_dptree as dpt
from pandas_dptree.estimation.ratios import ratio_intervals
from pandas_dptree.plans import joint as combined
from pandas_dptree.plans.joint import JointPlan, plan_means, plan_sums
from pandas_dptree.privacy.composition import joint_gaussian_delta
from pandas_dptree.privacy.loss import PrivacyLoss, zcdp_rho
from pandas_dptree.privacy.quantity import Quantity

BY = ["region", "district", "clinic"]
NO_NOISE = {"epsilon": 1e12}
OPTIONS = {
    "split": "optimal", "neighbors": "add_remove", "max_contributions": 1, "level_weights": None,
    "objective": "levels", "consistency": "integer",
}  # fmt: skip


@pytest.fixture(scope="module")
def visits():
    return dpt.datasets.clinic_visits(20_000)


@pytest.fixture(scope="module")
def clinics():
    return dpt.datasets.clinics()


def rng(seed=0):
    return np.random.default_rng(seed)


def wards(sizes, seed=0):
    """Make records of wards of given sizes, whose means differ, and the public list of the wards."""
    places = pd.DataFrame({"ward": np.arange(len(sizes))})
    ward = np.repeat(places["ward"].to_numpy(), sizes)
    middle = rng(seed).uniform(0, 100, len(sizes))[ward]
    return places, pd.DataFrame({"ward": ward, "x": np.clip(rng(seed).normal(middle, 10), 0, 100)})


# --- what is averaged ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(0, 200), (-1000, -3), (20, 20.5)])
def test_with_hardly_any_noise_means_are_those_of_the_clipped_values(bounds, visits, clinics):
    means = dpt.tree_means(visits, ["cost", "age"], BY, bounds=bounds, domain=clinics, confidence=0.9,
                           **NO_NOISE)  # fmt: skip
    kept = visits.dropna(subset=["cost"]).assign(
        cost=lambda f: f["cost"].clip(*bounds), age=lambda f: f["age"].clip(*bounds)
    )
    step = (bounds[1] - bounds[0]) / 1e5
    for depth in (1, 2, 3):
        groups = kept.dropna(subset=BY[:depth]).groupby(BY[:depth])
        shown = means.dp.level(BY[depth - 1])
        assert (shown["count"].reindex(groups.size().index) == groups.size()).all()
        for name in ("cost", "age"):
            exact = groups[name].mean()
            np.testing.assert_allclose(shown[name].reindex(exact.index), exact, atol=step)
            np.testing.assert_allclose(shown[f"{name}_lower"].reindex(exact.index), exact, atol=step)
            np.testing.assert_allclose(shown[f"{name}_upper"].reindex(exact.index), exact, atol=step)
            nobody = shown.drop(exact.index)
            assert nobody[[name, f"{name}_std_error"]].isna().all(axis=None) and (nobody["count"] == 0).all()
            assert (nobody[f"{name}_lower"] == bounds[0]).all() and (
                nobody[f"{name}_upper"] == bounds[1]
            ).all()


@pytest.mark.parametrize("granularity", [None, 0.1, 0.01])
@pytest.mark.parametrize("bounds", [(0.1, 0.7), (0, 0.3), (-0.3, 1.1), (100, 100.1)])
def test_means_and_intervals_are_within_the_bounds(bounds, granularity):
    places, records = wards([30, 900, 1, 0, 50])
    records["x"] = np.repeat([-np.inf, np.inf], 491)[: len(records)]
    for seed in range(5):
        means = dpt.tree_means(records, "x", ["ward"], bounds=bounds, granularity=granularity,
                               domain=places, epsilon=1.0, confidence=0.9, rng=rng(seed))  # fmt: skip
        assert means["x"].dropna().between(*bounds).all() and means["x"].notna().any()
        assert means["x_lower"].ge(bounds[0]).all() and means["x_upper"].le(bounds[1]).all()


def test_nobody_has_no_mean(clinics, visits):
    means = dpt.tree_means(visits.head(0), "cost", BY, bounds=(0, 500), domain=clinics, **NO_NOISE)
    assert means["cost"].isna().all() and (means["count"] == 0).all()
    assert means["cost"].dtype == np.float64


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), consistency=st.sampled_from(["linear", "nonnegative", "integer"]))
def test_means_weighted_by_counts_add_up(seed, consistency):
    places, records = wards([400, 900, 250, 700])
    places["half"] = np.array(["a", "a", "b", "b"])
    records["half"] = places["half"].to_numpy()[records["ward"]]
    means = dpt.tree_means(records, "x", ["half", "ward"], bounds=(-50, 150), domain=places, epsilon=2.0,
                           consistency=consistency, rng=rng(seed))  # fmt: skip
    assert means["x"].notna().all() and means["x"].between(-49, 149).all()  # neither missing nor clipped
    sums = (means["x"] * means["count"]).to_numpy()
    expected = [sums[1:3].sum(), sums[3:5].sum(), sums[5:].sum()]
    np.testing.assert_allclose(sums[:3], expected, rtol=1e-9)


def test_a_mean_is_shown_where_its_count_is_known_well_enough(visits, clinics):
    means = dpt.tree_means(visits, "cost", BY, bounds=(0, 500), domain=clinics, epsilon=0.5, rng=rng(1))
    known = means["count"] >= np.maximum(1, 4 * means["std_error"])
    assert 0.05 < known.mean() < 0.8
    assert (means["cost"].notna() == known).all() and (means["cost_std_error"].notna() == known).all()
    assert means["cost"][known].between(0, 500).all()


def test_known_counts_are_kept_and_sharpen_the_means():
    places, records = wards([300, 50, 20, 700])
    sizes = records.groupby("ward").size()
    options = {"bounds": (0, 100), "domain": places, "epsilon": 0.5, "confidence": 0.9}
    plain = dpt.tree_means(records, "x", ["ward"], **options, rng=rng(2))
    known = dpt.tree_means(records, "x", ["ward"], known={"ward": sizes.iloc[:3]}, **options,
                           rng=rng(2))  # fmt: skip
    assert known["count"].tolist()[1:4] == [300, 50, 20] and (known["std_error"][1:4] == 0).all()
    assert known["x"].notna().all() and plain["x"].isna().any()
    assert (known["x_std_error"] <= plain["x_std_error"] * 1.01).where(plain["x"].notna(), True).all()
    assert known.attrs["dp"]["quantities"]["count"]["known"] == {"ward": 3}
    assert "known" not in known.attrs["dp"] and not known.attrs["dp"]["quantities"]["x"]["known"]


@pytest.mark.parametrize("consistency", ["none", "linear", "nonnegative", "integer"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    "stated", [{"epsilon": 0.5}, {"rho": 0.02}, {"epsilon": 0.5, "delta": 1e-6}], ids=repr
)
def test_where_all_counts_are_known_the_sums_get_the_whole_loss(stated, mechanism, consistency):
    mechanism = "laplace" if set(stated) == {"epsilon"} else mechanism
    places, records = wards([300, 50, 20, 700])
    plan = plan_of(places, known={"ward": records.groupby("ward").size()}, consistency=consistency,
                   mechanism=mechanism, confidence=0.9, keep_measurements=True, **stated)  # fmt: skip
    means = plan.release(records, rng=rng())
    for name in ("count", "lower", "upper"):
        assert means[name].tolist() == [1070, 300, 50, 20, 700]
    assert (means["std_error"] == 0).all() and means[["measurement", "noise_scale"]].isna().all(axis=None)
    whole, of_sums, of_counts = (
        {name: told[name] for name in ("epsilon", "delta", "rho") if name in told}
        for told in (means.attrs["dp"], *means.attrs["dp"]["quantities"].values())
    )
    assert whole == {**({} if "rho" in stated else {"delta": 0.0}), **stated}
    assert of_counts == dict.fromkeys(of_sums, 0.0)
    if "delta" in stated and mechanism == "gaussian":  # told as the rho of its noise
        sums = next(iter(plan.plans.values()))
        spent = joint_gaussian_delta(0.5, [(np.concatenate(sums.node_noise_scales), sums.sensitivity)])
        assert list(of_sums) == ["rho"] and 0.999e-6 <= spent <= 1e-6
    else:
        assert of_sums == whole


def plan_of(places, **options):
    """Plan what `tree_means` would release of wards."""
    return plan_means(
        dpt.Domain.from_frame(places, by=["ward"]), [Quantity.of("x", (0, 100))],
        **{**OPTIONS, "epsilon": None, "delta": 0.0, "rho": None, "mechanism": "auto", **options},
    )  # fmt: skip


# --- how accurate they are -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stated", [{"epsilon": 0.3}, {"rho": 0.02}, {"epsilon": 0.5, "delta": 1e-6}], ids=repr
)
def test_std_error_is_what_repeated_releases_show_where_counts_are_large(stated):
    places, records = wards([1000, 3000, 800, 2000] * 3)
    truth = np.append(records["x"].mean(), records.groupby("ward")["x"].mean())
    plan = plan_of(places, confidence=None, **stated)
    source, scores = rng(3), []
    for _ in range(400):
        means = plan.release(records, rng=source)
        scores.append((means["x"] - truth) / means["x_std_error"])
    seen = np.sqrt(np.mean(np.square(scores), axis=0))
    assert seen.mean() == pytest.approx(1, abs=0.05)
    assert np.abs(seen - 1).max() < 0.25


@pytest.mark.parametrize(("stated", "confidence"), [({"epsilon": 0.2}, 0.95), ({"rho": 0.02}, 0.8)], ids=repr)
def test_intervals_hold_the_means_however_small_the_counts(stated, confidence):
    """The standard errors of the counts are 34 and 12: a quotient's own error often says nothing."""
    sizes = np.repeat([1, 10, 40, 100, 400, 2000], 8)
    places, records = wards(sizes)
    truth = records.groupby("ward")["x"].mean().to_numpy()
    plan = plan_of(places, confidence=confidence, **stated)
    source, held, shown = rng(4), [], []
    for _ in range(150):
        means = plan.release(records, rng=source).dp.level("ward")
        held.append((means["x_lower"] - 1e-9 <= truth) & (truth <= means["x_upper"] + 1e-9))
        shown.append(means["x"].notna())
        inside = means["x"].between(means["x_lower"], means["x_upper"]) | means["x"].isna()
        assert inside.all() and means["x_lower"].ge(0).all() and means["x_upper"].le(100).all()
    of_size = np.mean(held, axis=0).reshape(6, 8).mean(axis=1)
    assert (of_size > confidence - 0.035).all(), of_size  # 1200 intervals each
    assert of_size.mean() > confidence - 0.005
    assert (of_size[-2:] < confidence + 0.035).all(), of_size  # not wider than need be
    assert np.array(held)[np.array(shown)].mean() > confidence - 0.03


@given(
    total=st.floats(-1e6, 1e6), count=st.floats(-50, 1000), count_variance=st.floats(0, 1e3),
    sum_variance=st.floats(1e-3, 1e9), bounds=st.sampled_from([(-500, 500), (-3, 2), (0, 1000)]),
)  # fmt: skip
def test_an_interval_holds_just_the_ratios_that_are_not_refuted(
    total, count, count_variance, sum_variance, bounds
):
    """Checked one by one: noise alone is normal, so the sum less t times the count is within 1.96 errors."""
    lower, upper = (
        float(end[0])
        for end in ratio_intervals(
            np.array([total]), np.array([count]),
            variances=(np.array([sum_variance]), np.array([count_variance])),
            fourth_cumulants=(np.zeros(1), np.zeros(1)), bounds=bounds, confidence=0.95,
        )
    )  # fmt: skip
    assert bounds[0] <= lower <= upper <= bounds[1]
    ratios = np.linspace(*bounds, 2001)
    distance = np.abs(total - ratios * count) / np.sqrt(sum_variance + ratios**2 * count_variance)
    assert ((distance > 1.96 - 1e-3) | ((ratios >= lower) & (ratios <= upper))).all()
    if count > 2 * math.sqrt(count_variance) + 1e-3:
        assert ((distance < 1.96 + 1e-3) | (ratios <= lower) | (ratios >= upper)).all()


# --- the division of the budget ------------------------------------------------------------------------

LOSSES = [
    {"epsilon": 1.0, "mechanism": "laplace"}, {"rho": 0.1, "mechanism": "gaussian"},
    {"rho": 0.1, "mechanism": "laplace"}, {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian"},
]  # fmt: skip


@pytest.mark.parametrize("stated", LOSSES, ids=repr)
@pytest.mark.parametrize(("neighbors", "columns"), [("add_remove", 1), ("replace", 1), ("add_remove", 3)])
def test_no_other_division_between_sums_and_counts_is_better(
    stated, neighbors, columns, clinics, monkeypatch
):
    domain = dpt.Domain.from_frame(clinics, by=BY)
    quantities = [Quantity.of(f"c{i}", (0, 10.0**i)) for i in range(columns)]
    options = {**OPTIONS, "neighbors": neighbors, "epsilon": None, "delta": 0.0, "rho": None, **stated}

    def squared_error():
        *sums, counts = plan_means(domain, quantities, **options).plans.values()
        halves = [float((each.high - each.low) * each.unit) / 2 for each in (plan.quantity for plan in sums)]
        ratios = np.linspace(-1, 1, 2001)  # of the mean to half the width of its bounds: spread evenly
        return sum(
            np.mean((plan.expected_error / half) ** 2 + ratios**2 * counts.expected_error**2)
            for plan, half in zip(sums, halves, strict=True)
        )

    ours = squared_error()
    others = []
    for share in np.linspace(0.1, 0.6, 11):
        monkeypatch.setattr(combined, "_shares", lambda *_, s=share: [*[(1 - s) / columns] * columns, s])
        others.append(squared_error())
    assert ours <= 1.0005 * min(others)
    assert max(others) > 1.1 * ours


def test_sums_are_taken_from_the_middle_of_the_bounds(clinics):
    domain = dpt.Domain.from_frame(clinics, by=BY)
    loss = {"epsilon": 1.0, "delta": 0.0, "rho": None, "mechanism": "laplace"}
    for bounds, gain in (((0, 500), 2), ((400, 500), 10), ((-30, 30), 1)):
        quantity = Quantity.of("cost", bounds)
        centred, counts = plan_means(domain, [quantity], **OPTIONS, **loss).plans.values()
        part = {**loss, "epsilon": centred.loss.epsilon}
        plain = plan_sums(domain, [quantity], **OPTIONS, **part).plans["cost"]
        np.testing.assert_allclose(plain.std_errors, gain * centred.std_errors, rtol=1e-6)
        assert counts.loss.epsilon + centred.loss.epsilon <= 1


def test_approximate_privacy_is_used_up(clinics):
    domain = dpt.Domain.from_frame(clinics, by=BY)
    both = plan_means(domain, [Quantity.of("cost", (0, 500))], **OPTIONS,
                      epsilon=1.0, delta=1e-6, rho=None, mechanism="gaussian")  # fmt: skip
    pairs = [(np.concatenate(plan.node_noise_scales), plan.sensitivity) for plan in both.plans.values()]
    assert 0.999e-6 <= joint_gaussian_delta(1.0, pairs) <= 1e-6
    assert sum(plan.loss.rho for plan in both.plans.values()) > 1.1 * zcdp_rho(1.0, 1e-6)


@pytest.mark.parametrize(("mechanism", "part", "kept"), [
    ("laplace", 0.99, True), ("laplace", 1.05, False), ("gaussian", 1.05, True), ("gaussian", 1.2, False),
])  # fmt: skip
def test_only_gaussian_noise_may_spend_more_than_the_rho_that_implies_the_loss(mechanism, part, kept):
    loss = PrivacyLoss(epsilon=1.0, delta=1e-6)
    rho = part * zcdp_rho(1.0, 1e-6) / 2
    plan = dpt.plan(dpt.Tree.from_branching([10]), rho=rho, mechanism=mechanism, split="uniform")
    plans = {"a": plan, "b": plan}
    if kept:
        assert JointPlan(loss=loss, plans=plans).loss == loss
    else:
        with pytest.raises(dpt.ArgumentError, match="spend more than the stated loss"):
            JointPlan(loss=loss, plans=plans)
