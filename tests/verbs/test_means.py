"""Means of columns, through the public functions: their values, errors and intervals."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import pandas_dptree as dpt
from pandas_dptree.plans import joint
from pandas_dptree.plans.joint_search import plan_means
from pandas_dptree.privacy.composition import joint_gaussian_delta
from pandas_dptree.privacy.quantity import Quantity
from tests.helpers_cases import each
from tests.helpers_plans import OPTIONS
from tests.helpers_random import rng

BY = ["region", "district", "clinic"]
NO_NOISE = {"epsilon": 1e12}


@pytest.fixture(scope="module")
def visits():
    return dpt.datasets.clinic_visits(20_000)


def wards(sizes, seed=0):
    """Make records of wards of given sizes, whose means differ, and the public list of the wards."""
    places = pd.DataFrame({"ward": np.arange(len(sizes))})
    ward = np.repeat(places["ward"].to_numpy(), sizes)
    middle = rng(seed).uniform(0, 100, len(sizes))[ward]
    return places, pd.DataFrame({"ward": ward, "x": np.clip(rng(seed).normal(middle, 10), 0, 100)})


# --- what is averaged ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(0, 200), (-1000, -3), (20, 20.5)])
def test_with_hardly_any_noise_means_are_those_of_the_clipped_values(bounds, visits, clinics):
    means = dpt.tree_means(visits, BY, columns=["cost", "age"], bounds=bounds, domain=clinics, confidence=0.9,
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
            empty = shown.drop(exact.index)
            assert empty[[name, f"{name}_std_error"]].isna().all(axis=None) and (empty["count"] == 0).all()
            assert (empty[f"{name}_lower"] == bounds[0]).all() and (empty[f"{name}_upper"] == bounds[1]).all()


@each("granularity", [None, 0.1, 0.01])
@each("bounds", [(0.1, 0.7), (0, 0.3), (-0.3, 1.1), (100, 100.1)])
def test_means_and_intervals_are_within_the_bounds(bounds, granularity):
    places, records = wards([30, 900, 1, 0, 50])
    records["x"] = np.repeat([-np.inf, np.inf], 491)[: len(records)]
    for seed in range(2):
        means = dpt.tree_means(records, ["ward"], columns="x", bounds=bounds, granularity=granularity,
                               domain=places, epsilon=1.0, confidence=0.9, rng=rng(seed))  # fmt: skip
        assert means["x"].dropna().between(*bounds).all() and means["x"].notna().any()
        assert means["x_lower"].ge(bounds[0]).all() and means["x_upper"].le(bounds[1]).all()


def test_an_empty_node_has_no_mean(clinics, visits):
    means = dpt.tree_means(visits.head(0), BY, columns="cost", bounds=(0, 500), domain=clinics, **NO_NOISE)
    assert means["cost"].isna().all() and (means["count"] == 0).all()
    assert means["cost"].dtype == np.float64


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32), consistency=st.sampled_from(["linear", "nonnegative", "integer"]))
def test_means_weighted_by_counts_add_up(seed, consistency):
    places, records = wards([400, 900, 250, 700])
    places["half"] = np.array(["a", "a", "b", "b"])
    records["half"] = places["half"].to_numpy()[records["ward"]]
    means = dpt.tree_means(records, ["half", "ward"], columns="x", bounds=(-50, 150), domain=places,
                           epsilon=2.0, consistency=consistency, rng=rng(seed))  # fmt: skip
    assert means["x"].notna().all() and means["x"].between(-49, 149).all()  # neither missing nor clipped
    sums = (means["x"] * means["count"]).to_numpy()
    expected = [sums[1:3].sum(), sums[3:5].sum(), sums[5:].sum()]
    np.testing.assert_allclose(sums[:3], expected, rtol=1e-9)


def test_a_mean_is_shown_where_its_count_is_known_well_enough(visits, clinics):
    means = dpt.tree_means(
        visits, BY, columns="cost", bounds=(0, 500), domain=clinics, epsilon=0.5, rng=rng(1)
    )
    known, shown = means["count"] >= np.maximum(1, 4 * means["std_error"]), means["cost"].notna()
    assert 0.05 < shown.mean() < known.mean() < 0.8
    assert known[shown].all() and (means["cost_std_error"].notna() == shown).all()
    assert means["cost"][shown].between(0, 500).all()
    assert means["cost_std_error"].max() <= 500 / 8


def test_a_group_that_is_known_to_be_empty_has_no_mean():
    places, frame = wards([0, 40, 60])
    means = dpt.tree_means(frame, "ward", columns="x", bounds=(0, 100), domain=places, epsilon=1.0,
                           confidence=0.9, known={"ward": {0: 0}}, rng=rng(3)).dp.level("ward")  # fmt: skip
    assert means.loc[0, ["x", "x_std_error"]].isna().all() and means.loc[[1, 2], "x"].notna().all()
    assert means.loc[0, ["x_lower", "x_upper", "count"]].tolist() == [0, 100, 0]


def test_known_counts_are_kept_and_sharpen_the_means():
    places, records = wards([300, 50, 20, 700])
    sizes = records.groupby("ward").size()
    options = {"bounds": (0, 100), "domain": places, "epsilon": 0.5, "confidence": 0.9}
    plain = dpt.tree_means(records, ["ward"], columns="x", **options, rng=rng(2))
    known = dpt.tree_means(records, ["ward"], columns="x", known={"ward": sizes.iloc[:3]}, **options,
                           rng=rng(2))  # fmt: skip
    assert known["count"].tolist()[1:4] == [300, 50, 20] and (known["std_error"][1:4] == 0).all()
    assert known["x"].notna().all() and plain["x"].isna().any()
    assert (known["x_std_error"] <= plain["x_std_error"] * 1.01).where(plain["x"].notna(), True).all()
    assert known.attrs["dp"]["quantities"]["count"]["known"] == {"ward": 3}
    assert "known" not in known.attrs["dp"] and not known.attrs["dp"]["quantities"]["x"]["known"]


@each("consistency", ["none", "linear", "nonnegative", "integer"])
@each("mechanism", ["laplace", "gaussian"])
@each("stated", [{"epsilon": 0.5}, {"rho": 0.02}, {"epsilon": 0.5, "delta": 1e-6}])
def test_where_all_counts_are_known_the_sums_get_the_whole_loss(stated, mechanism, consistency):
    mechanism = "laplace" if set(stated) == {"epsilon"} else mechanism
    places, records = wards([300, 50, 20, 700])
    plan = plan_of(places, known={"ward": records.groupby("ward").size()}, consistency=consistency,
                   mechanism=mechanism, confidence=0.9, keep=["measurements"], **stated)  # fmt: skip
    means = plan.release(records, rng=rng())
    for name in ("count", "lower", "upper"):
        assert means[name].tolist() == [1070, 300, 50, 20, 700]
    assert (means["std_error"] == 0).all() and means[["measurement", "noise_scale"]].isna().all(axis=None)
    whole, of_sums, of_counts = (
        {name: provenance[name] for name in ("epsilon", "delta", "rho") if name in provenance}
        for provenance in (means.attrs["dp"], *means.attrs["dp"]["quantities"].values())
    )
    assert whole == {**({} if "rho" in stated else {"delta": 0.0}), **stated}
    assert of_counts == dict.fromkeys(of_sums, 0.0)
    if "delta" in stated and mechanism == "gaussian":  # stated as the rho of its noise
        sums = next(iter(plan.plans.values()))
        spent = joint_gaussian_delta(0.5, [(sums.unit_noise_scales, sums.sensitivity)])
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


def test_the_error_of_a_mean_at_its_bound_is_that_of_the_mean_shown():
    """Where noise takes the quotient beyond the bounds, the count's part of the error follows the bound."""
    places = pd.DataFrame({"ward": range(40)})
    full = places.loc[places.index.repeat(60)].assign(x=10.0)
    plan = dpt.plan_means(dpt.Domain.from_frame(places, by="ward"), columns="x", bounds=(0, 10), epsilon=1.0)
    means = plan.release(full, rng=rng(1)).dp.level("ward")
    assert 10 <= (means["x"] == 10).sum() <= 30
    error = np.hypot(plan.plans["x"].node_std_errors[1], (means["x"] - 5) * means["std_error"])
    np.testing.assert_allclose(means["x_std_error"], error / means["count"])


def test_intervals_hold_the_means_that_are_shown():
    """They are laid around unbiased estimates, which differ where counts are made whole and non-negative."""
    places = pd.DataFrame({"ward": range(200)})
    records = pd.DataFrame({"ward": np.repeat(np.arange(25), 80), "x": np.repeat(np.arange(25) % 10, 80)})
    table = dpt.tree_means(records, "ward", columns="x", bounds=(0, 10), domain=places, epsilon=1.0,
                           confidence=0.5, mechanism="laplace", rng=rng(1))  # fmt: skip
    shown = table.dropna(subset=["x"])
    assert (shown["x_lower"] <= shown["x"]).all() and (shown["x"] <= shown["x_upper"]).all()
    # in this release some means are outside of the interval around the estimates, and become ends
    assert (shown["x_lower"] == shown["x"]).sum() > 1 and (shown["x"] == shown["x_upper"]).sum() > 1


@pytest.fixture
def _read_once(monkeypatch):
    """Read the records at the first release only, which takes most of its time."""
    read, held = joint.exact_leaves, []

    def read_once(*arguments):
        held[:] = held or [read(*arguments)]
        return held[0]

    monkeypatch.setattr(joint, "exact_leaves", read_once)


@pytest.mark.usefixtures("_read_once")
@pytest.mark.parametrize("n_releases", [250, pytest.param(400, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "stated", [{"epsilon": 0.3}, {"rho": 0.02}, {"epsilon": 0.5, "delta": 1e-6}], ids=repr
)
def test_std_error_is_what_repeated_releases_show_where_counts_are_large(stated, n_releases):
    places, records = wards([1000, 3000, 800, 2000] * 3)
    truth = np.append(records["x"].mean(), records.groupby("ward")["x"].mean())
    plan = plan_of(places, confidence=None, **stated)
    source, scores = rng(3), []
    for _ in range(n_releases):
        means = plan.release(records, rng=source)
        scores.append((means["x"] - truth) / means["x_std_error"])
    seen = np.sqrt(np.mean(np.square(scores), axis=0))
    assert seen.mean() == pytest.approx(1, abs=0.05)
    assert np.abs(seen - 1).max() < 0.25


@pytest.mark.usefixtures("_read_once")
@pytest.mark.parametrize(("stated", "confidence"), [({"epsilon": 0.2}, 0.95), ({"rho": 0.02}, 0.8)], ids=repr)
@pytest.mark.parametrize("n_releases", [75, pytest.param(150, marks=pytest.mark.nightly)])
def test_intervals_hold_the_means_however_small_the_counts(stated, confidence, n_releases):
    """The standard errors of the counts are 34 and 12: a quotient's own error often says nothing."""
    sizes = np.repeat([1, 10, 40, 100, 400, 2000], 8)
    places, records = wards(sizes)
    truth = records.groupby("ward")["x"].mean().to_numpy()
    plan = plan_of(places, confidence=confidence, **stated)
    source, held, shown = rng(4), [], []
    for _ in range(n_releases):
        means = plan.release(records, rng=source).dp.level("ward")
        held.append((means["x_lower"] - 1e-9 <= truth) & (truth <= means["x_upper"] + 1e-9))
        shown.append(means["x"].notna())
        inside = means["x"].between(means["x_lower"], means["x_upper"]) | means["x"].isna()
        assert inside.all() and means["x_lower"].ge(0).all() and means["x_upper"].le(100).all()
    of_size = np.mean(held, axis=0).reshape(6, 8).mean(axis=1)
    assert (of_size > confidence - 0.035).all(), of_size  # 8 intervals of each release
    assert of_size.mean() > confidence - 0.005
    assert (of_size[-2:] < confidence + 0.035).all(), of_size  # not wider than need be
    assert np.array(held)[np.array(shown)].mean() > confidence - 0.03
