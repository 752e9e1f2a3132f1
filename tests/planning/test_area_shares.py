"""Targets for areas that are no node of the tree."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests import reference
from tests.helpers_cases import each

KEYS = pd.DataFrame(
    [
        (region, f"{region}{number}", f"{region}{number}{place}")
        for region, n_districts in (("N", 3), ("E", 2), ("S", 4))
        for number in range(n_districts)
        for place in range(1 + (n_districts + number) % 3)
    ],
    columns=["region", "district", "place"],
)
DOMAIN = dpt.Domain.from_frame(KEYS, by=["region", "district", "place"])
COAST = dpt.combine(["N", ["E", "E0"], ("S", "S1", "S10"), ["S", "S3"]])


def dense_error(plan, area):
    """Return the standard error of an area, from the covariance of all leaves."""
    rows = np.vstack(reference.membership(plan.tree))
    noise = plan.noise.variance(plan.unit_noise_scales)[:, None]
    every = np.concatenate([np.broadcast_to(v, n) for v, n in zip(noise, plan.tree.level_sizes, strict=True)])
    exact = np.concatenate(
        [np.broadcast_to(v, n) for v, n in zip(plan.known.exact, plan.tree.level_sizes, strict=True)]
    )
    every = np.where(exact, 1e-9, every)  # as good as known
    measured = np.isfinite(every)
    information = rows[measured].T @ (rows[measured] / every[measured][:, None])
    weights = np.concatenate(area.weights(plan.domain))
    if plan.consistency == "none":
        return float(np.sqrt(weights**2 @ np.where(exact, 0.0, every)))
    leaves = weights @ rows
    return float(np.sqrt(leaves @ np.linalg.inv(information) @ leaves)) * float(plan.quantity.unit)


@each("options", [
    {"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 1.0, "split": "uniform"},
    {"epsilon": 1.0, "split": {"district": 0.5, "place": 0.5}}, {"epsilon": 1.0, "consistency": "none"},
    {"epsilon": 1.0, "known": {"total": 900}}, {"rho": 0.5, "privacy_unit": "u", "max_contributions": 3},
    {"epsilon": 1.0, "neighbors": "replace"}, {"rho": 0.1, "neighbors": "replace"},
])  # fmt: skip
def test_the_error_of_an_area_is_that_of_the_dense_covariance(options):
    plan = dpt.plan(DOMAIN, **options)
    assert plan.area_std_error(COAST) == pytest.approx(dense_error(plan, COAST), rel=1e-6)
    for level, name in enumerate(plan.level_names[1:], start=1):
        node = dpt.combine([tuple(KEYS.iloc[0, :level])])
        place = int(np.argmax(node.weights(DOMAIN)[level]))
        errors = np.broadcast_to(plan.node_std_errors[level], plan.tree.level_sizes[level])
        assert plan.area_std_error(node) == pytest.approx(errors[place]), name


def test_the_error_of_sums_is_in_the_unit_of_the_column():
    plan = dpt.plan(DOMAIN, column="cost", bounds=(0, 500), epsilon=1.0)
    assert plan.area_std_error(COAST) == pytest.approx(dense_error(plan, COAST), rel=1e-6)


@each("options", [
    {}, {"mechanism": "gaussian"}, {"delta": 1e-6}, {"split": "uniform"}, {"known": {"total": 900}},
    {"consistency": "none"}, {"neighbors": "replace", "mechanism": "gaussian"},
])  # fmt: skip
def test_a_target_of_an_area_is_reached_and_not_passed(options):
    plan = dpt.plan(DOMAIN, target={COAST: 25}, **options)
    assert 24.99 < plan.area_std_error(COAST) <= 25 * (1 + 1e-9)
    back = dpt.Plan.from_dict(plan.to_dict(), DOMAIN)
    assert back.digest == plan.digest
    assert back.area_std_error(COAST) == pytest.approx(plan.area_std_error(COAST))


@each("mechanism", ["laplace", "gaussian"])
@each("neighbors", ["add_remove", "replace"])
def test_no_other_split_of_the_same_loss_is_better(mechanism, neighbors):
    size = "epsilon" if mechanism == "laplace" else "rho"
    plan = dpt.plan(DOMAIN, target={COAST: 25, "place": 40}, mechanism=mechanism, neighbors=neighbors)
    loss = {
        size: getattr(plan, size),
        "mechanism": mechanism,
        "consistency": plan.consistency,
        "neighbors": neighbors,
    }
    random = np.random.default_rng(1)
    names = plan.level_names
    reached = max(plan.area_std_error(COAST) / 25, plan.std_errors[-1] / 40)
    assert reached == pytest.approx(1.0, abs=1e-4)
    tried = []
    for spread in (0.02, 0.1, 0.5, 2.0):
        for _ in range(5):
            shares = (plan.budget_shares + 1e-4) * np.exp(spread * random.normal(size=len(names)))
            other = dpt.plan(DOMAIN, split=dict(zip(names, shares / shares.sum(), strict=True)), **loss)
            tried.append(max(other.area_std_error(COAST) / 25, other.std_errors[-1] / 40))
    assert min(tried) > reached * (1 - 1e-3)


def test_releases_have_the_stated_error():
    plan = dpt.plan(DOMAIN, target={COAST: 25}, consistency="linear")
    weights = np.concatenate(COAST.weights(DOMAIN))
    draws = [plan.release(KEYS.iloc[:0])["count"].to_numpy() @ weights for _ in range(60)]
    assert np.std(draws) == pytest.approx(25, rel=0.4)  # its own standard error is 9 %


@each("paths", [
    "N", 3, [], [[]], [["N"], ["N", "N0"]], [["N"], "N"], [[["N"]]], [None],
])  # fmt: skip
def test_paths_that_are_no_area_are_refused(paths):
    with pytest.raises(ArgumentError, match="paths") as caught:
        dpt.combine(paths)
    assert "example" in str(caught.value) or "once" in str(caught.value)


@each("target, message", [
    ({dpt.combine(["W"]): 25}, "does not list"), ({dpt.combine([["N", "E0"]]): 25}, "does not list"),
    ({dpt.combine([["N", "N0", "N00", "x"]]): 25}, "does not list"), ({COAST: 0}, "above 0"),
    ({COAST: dpt.within(50, confidence=0.95)}, "above 0"), ({COAST: True}, "above 0"),
    ({COAST: 1e-9}, "standard error from"),
])  # fmt: skip
def test_targets_that_cannot_be_met_are_refused(target, message):
    with pytest.raises(ArgumentError, match=message):
        dpt.plan(DOMAIN, target=target)
    with pytest.raises(ArgumentError, match="area 1"):
        dpt.plan(DOMAIN, target={COAST: 0.5}, epsilon=0.1)
    with pytest.raises(ArgumentError, match="bare tree"):
        dpt.plan(dpt.Tree.from_branching([2]), target={COAST: 25})
