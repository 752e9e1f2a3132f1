"""Plans judged by their errors beyond a share of the count, beside counts with bounded relative error."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.additive import NOISES
from pandas_dptree.mechanisms.multiplicative.thresholds import group_loss
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.theory import predicted_alpha_rmse
from tests.helpers_cases import each
from tests.helpers_plans import by_node, copies, even_split

RAGGED = dpt.Tree.from_paths(np.array([[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, -1], [2, 3, 3], [2, 3, 4]]))
BOTH = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def clinics():
    return dpt.Domain.from_frame(dpt.datasets.clinics(), by=["region", "district", "clinic"])


# What a plan says of itself -----------------------------------------------------------------------------


@each("consistency", ["none", "linear", "integer"])
@each("tree", [RAGGED, dpt.Tree.from_branching([3, 2, 4])])
def test_at_a_count_of_zero_it_is_the_standard_error_of_the_worst_node(tree, consistency):
    plan = dpt.plan(tree, **BOTH, consistency=consistency)
    worst = [errors.max() for errors in plan.node_std_errors]
    for alpha in (0.0, 0.1, 2.0):
        np.testing.assert_allclose(plan.alpha_rmse(alpha), worst, rtol=1e-9)


def test_raw_counts_have_the_formula_of_their_noise():
    plan = dpt.plan(RAGGED, **BOTH, consistency="none", split="uniform")
    counts = {"total": 90.0, "level_1": 40, "level_2": 7}
    expected = predicted_alpha_rmse(plan.noise, plan.noise_scales[:3], [90, 40, 7], 0.1)
    np.testing.assert_allclose(plan.alpha_rmse(0.1, counts)[:3], expected)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_releases_are_as_far_off_as_predicted(noise):
    times, levels = 3000, range(1, RAGGED.depth + 2)
    split = even_split(levels, "linear")
    plan = dpt.plan(copies(RAGGED, times), **BOTH, mechanism=noise, split=split, consistency="linear")
    leaves = np.full(RAGGED.n_leaves, 8)
    shown = [RAGGED.listed(level) for level in range(RAGGED.depth + 1)]
    exact = np.concatenate(RAGGED.roll_up(leaves))[np.concatenate(shown)]
    table = plan.release(np.tile(leaves, times), rng=np.random.default_rng(4))
    estimates, errors = (by_node(table, column, RAGGED) for column in ("count", "std_error"))
    ends = np.cumsum([level.sum() for level in shown])
    for level, nodes in zip(levels, np.split(np.arange(ends[-1]), ends[:-1]), strict=True):
        worst = nodes[errors[0, nodes].argmax()]
        beyond = np.maximum(abs(estimates[:, worst] - exact[worst]) - 0.1 * exact[worst], 0)
        predicted = plan.alpha_rmse(0.1, {f"level_{level}": exact[worst]})[level]
        assert np.sqrt((beyond**2).mean()) == pytest.approx(predicted, rel=0.08)


def test_it_falls_with_tolerance_and_count(clinics):
    plan = dpt.plan(clinics, **BOTH)
    by_alpha = [plan.alpha_rmse(alpha, {"clinic": 50}).max() for alpha in (0.0, 0.05, 0.2)]
    by_count = [plan.alpha_rmse(0.1, {"clinic": count})[-1] for count in (0, 10, 100)]
    assert by_alpha[1] <= by_alpha[0]
    assert by_count == sorted(by_count, reverse=True)
    assert len(set(by_count)) == 3


def test_what_is_known_has_no_error(clinics):
    plan = dpt.plan(clinics, **BOTH, known={"total": 9000})
    assert plan.alpha_rmse(0.1)[0] == 0
    assert (plan.alpha_rmse(0.1)[1:] > 0).all()


def test_sums_are_judged_in_what_the_column_is_in(clinics):
    options = {"epsilon": 1.0, "column": "cost", "bounds": (0, 500)}
    for consistency in ("none", "linear"):
        plan = dpt.plan(clinics, **options, consistency=consistency)
        worst = [errors.max() for errors in plan.node_std_errors]
        np.testing.assert_allclose(plan.alpha_rmse(0.3), worst, rtol=1e-6)
        assert plan.alpha_rmse(0.3, {"total": 1e6})[0] < worst[0] / 100


# Side by side -------------------------------------------------------------------------------------------


def test_compare_by_alpha(clinics):
    plan = dpt.plan(clinics, **BOTH)
    table = plan.compare(alpha=0.1)
    assert table.index[0] == (plan.noise.name, plan.split)
    assert table.index.is_unique
    assert list(table.columns) == [*plan.level_names, "alpha_mrmse"]
    assert table["alpha_mrmse"].iloc[1:].is_monotonic_increasing
    np.testing.assert_allclose(table["alpha_mrmse"], table[list(plan.level_names)].max(axis=1))
    for calibration in ("exact", "proof"):
        wish = dpt.Multiplicative(alpha=0.1, clip=True, calibration=calibration)
        clipped = dpt.plan(clinics, **BOTH, mechanism=wish)
        assert table.loc[("multiplicative", calibration), "alpha_mrmse"] == clipped.rmse_bound


def test_compare_counts_whole_units(clinics):
    plan = dpt.plan(clinics, **BOTH, privacy_unit="person", max_contributions=3, neighbors="replace")
    loss = group_loss(PrivacyLoss(**BOTH), 6)
    bound = dpt.plan(clinics, **loss.to_dict(), mechanism=dpt.Multiplicative(alpha=0.1, clip=True)).rmse_bound
    assert plan.compare(alpha=0.1).loc[("multiplicative", "exact"), "alpha_mrmse"] == bound


def test_compare_at_other_counts(clinics):
    plan = dpt.plan(clinics, **BOTH)
    worst, large = (plan.compare(alpha=0.1, counts=counts) for counts in (None, {"total": 10_000}))
    assert (large["total"] < worst.loc[large.index, "total"]).all()
    assert (large["clinic"] == worst.loc[large.index, "clinic"]).all()
    chain = dpt.plan(clinics, **BOTH, mechanism=dpt.Multiplicative(alpha=0.1, clip=True)).chain
    assert large.loc[("multiplicative", "exact"), "total"] == chain.alpha_rmse(10_000)


@each("consistency", ["none", "linear"])
def test_each_alternative_is_the_plan_that_was_asked_for_so(consistency):
    """With the same known counts, weights and objective."""
    options = {
        **BOTH, "consistency": consistency, "objective": "cells", "level_weights": {"level_1": 3.0},
        "known": {"total": 40, "level_1": [9, np.nan, 5]},
    }  # fmt: skip
    table = dpt.plan(RAGGED, **options).compare()
    assert len(table) >= 6
    for noise, split in table.index:
        plan = dpt.plan(RAGGED, **options, mechanism=noise, split=split)
        np.testing.assert_allclose(table.loc[(noise, split), list(plan.level_names)], plan.std_errors)
        assert table.loc[(noise, split), "objective"] == pytest.approx(plan.expected_error)


@each(
    "options",
    [{"epsilon": 1.0}, {"rho": 0.1}, {**BOTH, "column": "cost", "bounds": (0, 5)}],
)
def test_compare_leaves_out_what_cannot_be_planned(clinics, options):
    table = dpt.plan(clinics, **options).compare(alpha=0.1)
    assert set(table.index.get_level_values("mechanism")) <= {*NOISES}


# The best by alpha --------------------------------------------------------------------------------------


def test_equal_raw_levels_are_split_evenly():
    tree = dpt.Tree.from_branching([1] * 60)
    plan = dpt.plan(tree, **BOTH, mechanism="laplace", consistency="none", objective="worst")
    np.testing.assert_array_equal(plan.budget_shares, np.full(61, 1 / 61))
    skewed = dpt.plan(RAGGED, epsilon=1.0, consistency="none", objective="worst", level_weights={"total": 4})
    np.testing.assert_allclose(
        np.ptp(skewed.std_errors**2 * [4, 1, 1, 1][: len(skewed.budget_shares)]), 0, atol=1
    )


def test_other_errors(clinics):
    plan = dpt.plan(clinics, **BOTH)
    with pytest.raises(ArgumentError, match="`counts`"):
        plan.compare(counts={"total": 5})
    with pytest.raises(ArgumentError, match="`counts`"):
        plan.compare(alpha=0.1, counts={"city": 5})
    with pytest.raises(ArgumentError, match="`counts`"):
        plan.alpha_rmse(0.1, [5])
    with pytest.raises(ArgumentError, match=r'`alpha`[^$]*use objective="worst"'):
        dpt.plan(clinics, **BOTH, alpha=0.1)


# Bounds on the rows of a unit ----------------------------------------------------------------------------


def test_bounds_are_compared_as_if_each_were_planned(clinics):
    unit = {"privacy_unit": "person", "rho": 0.1}
    plan = dpt.plan(clinics, **unit, max_contributions=12)
    table = plan.compare(max_contributions=[1, 12], max_per_leaf=[None, 1])
    assert table.index.names == ["max_contributions", "max_per_leaf"]
    pairs = [(1, None), (1, 1), (12, None), (12, 1)]
    assert table.index.to_list() == [(most, pd.NA if cap is None else cap) for most, cap in pairs]
    for (most, cap), errors in zip(pairs, table[["total", "clinic"]].to_numpy(), strict=True):
        planned = dpt.plan(clinics, **unit, max_contributions=most, max_per_leaf=cap)
        np.testing.assert_allclose(errors, planned.std_errors[[0, -1]])
    assert table["objective"].iloc[0] == pytest.approx(table["objective"].iloc[1])  # one row is one in a leaf
    assert table["clinic"].iloc[3] < table["clinic"].iloc[2] / 2
    own = dpt.plan(clinics, **unit, max_contributions=12, max_per_leaf=2).compare(max_contributions=[12])
    assert own.index.to_list() == [(12, 2)]


def test_bounds_are_compared_for_several_quantities(clinics):
    asked = {"n": "count", "cost": dpt.sum("cost", bounds=(0, 500))}
    unit = {"privacy_unit": "person", "rho": 0.1}
    plan = dpt.plan_agg(clinics, asked, **unit, max_contributions=12)
    assert plan.plans["cost"].count is not None  # its errors are in those of the sum
    table = plan.compare(max_contributions=[12], max_per_leaf=[1])
    for name in asked:
        part = plan.plans[name].compare(max_contributions=[12], max_per_leaf=[1])
        np.testing.assert_allclose(table.loc[name].to_numpy(dtype=float), part.to_numpy(dtype=float))
        bounded = dpt.plan_agg(clinics, asked, **unit, max_contributions=12, max_per_leaf=1).plans[name]
        np.testing.assert_allclose(part["clinic"], bounded.std_errors[-1], rtol=0.02)


@each(
    "given",
    [
        {"max_contributions": 3},
        {"max_per_leaf": []},
        {"max_per_leaf": "12"},
        {"max_per_leaf": [0]},
        {"max_contributions": [None]},
        {"max_contributions": [1], "alpha": 0.1},
    ],
)
def test_bounds_to_compare_are_lists_of_whole_numbers(given, clinics):
    plan = dpt.plan(clinics, rho=0.1, privacy_unit="person", max_contributions=3)
    with pytest.raises(ArgumentError) as caught:
        plan.compare(**given)
    assert caught.value.hint


@each(
    "branching, rows, expected",
    [
        ([10, 10], 3, {None: [11.2, 10.7, 10.7], 1: [10.3, 9.8, 7.1]}),
        ([10, 10], 12, {None: [44.9, 42.8, 42.9], 3: [40.4, 38.5, 24.8], 1: [36.5, 31.8, 12.0]}),
        ([10, 10], 52, {None: [194.4, 185.5, 185.8], 1: [132.7, 70.8, 23.1]}),
        ([50, 60], 3, {None: [11.5, 11.4, 11.5], 1: [10.7, 10.6, 8.0]}),
        ([50, 60], 12, {None: [46.2, 45.7, 45.8], 1: [40.1, 39.7, 20.3]}),
        ([50, 60], 52, {None: [200.2, 198.2, 198.5], 1: [165.7, 164, 37.2]}),
        ([50, 60, 10], 12, {None: [52.8, 52.3, 52.2, 50.3], 1: [45.8, 45.4, 41.7, 15.1]}),
        ([50, 60, 10], 52, {None: [228.7, 226.4, 226.3, 218.1], 1: [180.7, 179, 113.8, 36.2]}),
    ],
)
def test_noise_by_level_where_rows_are_bounded(branching, rows, expected):
    unit = {"privacy_unit": "person", "max_contributions": rows}
    plan = dpt.plan(dpt.Tree.from_branching(branching), rho=0.1, **unit)
    table = plan.compare(max_per_leaf=[*expected]).drop(columns="objective")
    assert (table.to_numpy() <= np.array([*expected.values()]) + 0.05).all()
