"""From options to the plan of a hierarchy that nobody can list."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.planning.private_split import best_noise
from pandas_dptree.plans.implicit_search import find_implicit_plan
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_implicit import HALF, ZIPS
from tests.helpers_privacy import LOSS

STATES = dpt.Domain.from_frame(pd.DataFrame({"state": ["CA", "NY"]}), by=["state"])
BELOW = PrivateKeys(columns=("city", "product"), domain=STATES)
ALONE = PrivateKeys(columns=("city",))
WHOLE = {**LOSS, "privacy_unit": dpt.ROWS}


@pytest.mark.parametrize("mechanism", ["auto", "truncated_laplace", "gaussian"])
@each("tree", [BELOW, ALONE])
def test_the_plan_has_the_best_noise_and_its_shares(tree, mechanism):
    for split in ("optimal", "doubling", "uniform"):
        plan = find_implicit_plan(tree, mechanism=mechanism, split=split, **WHOLE)
        n_levels = len(tree.level_names)
        best = best_noise(mechanism, split, PrivacyLoss(**LOSS), n_levels, tree.n_public,
                          neighbors="add_remove", max_contributions=1)  # fmt: skip
        assert (plan.noise, plan.budget_shares) == best and plan.tree is tree
        assert (plan.confidence, plan.keep, plan.privacy_unit) == (0.95, (), None)
        assert plan.n_public == tree.n_public and plan.level_names == tree.level_names


def test_shares_by_name_reach_the_plan():
    shares = {"total": 0.125, "product": np.float64(0.5), "state": 0.125, "city": 0.25}
    assert find_implicit_plan(BELOW, mechanism="auto", split=shares, **WHOLE).budget_shares == (
        0.125,
        0.125,
        0.25,
        0.5,
    )


@each(
    "split",
    [
        "geometric", "nodes", 7, None, [0.25] * 4, {}, {"total": 1.0},
        {"total": 0.25, "state": 0.25, "city": 0.25, "product": 0.2},
        {"total": 0.5, "state": 0.5, "city": 0.5, "product": -0.5},
        {"total": 0.25, "state": 0.25, "city": 0.25, "product": 0.25, "street": 0.0},
        {"total": 0.25, "state": 0.25, "city": 0.25, "product": "0.25"},
        {"total": 0.25, "state": 0.25, "city": 0.25, "product": float("nan")},
    ],
)  # fmt: skip
def test_other_splits_are_refused(split):
    with pytest.raises(ArgumentError, match="`split` must be") as error:
        find_implicit_plan(BELOW, mechanism="auto", split=split, **WHOLE)
    assert "'product'" in error.value.hint


def test_private_keys_need_a_stated_unit_and_a_delta():
    with pytest.raises(ArgumentError, match="`privacy_unit` must be given") as error:
        find_implicit_plan(ALONE, mechanism="auto", **LOSS)
    assert "dpt.ROWS" in error.value.hint
    for loss in ({"epsilon": 1.0}, {"rho": 0.1}):
        with pytest.raises(ArgumentError, match="`delta` must be above 0"):
            find_implicit_plan(ALONE, mechanism="auto", **loss, privacy_unit=dpt.ROWS)
    plan = find_implicit_plan(ALONE, mechanism="auto", **LOSS, privacy_unit="person", max_contributions=2)
    assert (plan.privacy_unit, plan.max_contributions) == ("person", 2)
    with pytest.raises(ArgumentError, match="`privacy_unit`"):
        find_implicit_plan(ALONE, mechanism="auto", **LOSS, privacy_unit="city", max_contributions=2)


def test_relative_errors_are_for_prefixes_alone():
    assert isinstance(find_implicit_plan(ZIPS, mechanism=HALF, **LOSS), dpt.ImplicitMultiplicativePlan)
    with pytest.raises(ArgumentError, match="`mechanism`") as error:
        find_implicit_plan(ALONE, mechanism=HALF, **WHOLE)
    assert "Multiplicative(" not in error.value.hint
    for option in ({"split": "uniform"}, {"confidence": 0.9}, {"keep": ["measurements"]}, {"rho": 0.1}):
        with pytest.raises(ArgumentError, match=f"`{next(iter(option))}`"):
            find_implicit_plan(ZIPS, mechanism=HALF, **LOSS, **option)


def test_a_confidence_and_measurements_reach_the_plan():
    plan = find_implicit_plan(ALONE, mechanism="gaussian", **WHOLE, confidence=0.5, keep=["measurements"])
    assert (plan.confidence, plan.keep) == (0.5, ("measurements",))


@each("tree", [ZIPS, ALONE])
@each(
    "option",
    [{"consistency": "none"}, {"objective": "cells"}, {"level_weights": {"total": 2.0}}, {"fit": "joint"},
     {"known": {"total": 9}}],
)  # fmt: skip
def test_options_of_other_plans_are_refused_by_name(tree, option):
    [name] = option
    with pytest.raises(ArgumentError, match=f"`{name}`") as error:
        find_implicit_plan(tree, **WHOLE, **option)
    assert "leave it out" in error.value.hint


def test_defaults_of_other_plans_may_be_given():
    given = find_implicit_plan(ALONE, **WHOLE, consistency="integer", objective="levels", known=None)
    assert given.to_dict() == find_implicit_plan(ALONE, mechanism="auto", **WHOLE).to_dict()


def test_a_single_private_key_needs_no_list():
    """A text is one name, not a list of letters."""
    assert dpt.plan(None, private_keys="city", **WHOLE).level_names == ("total", "city")
    frame = pd.DataFrame({"city": ["Bergen"] * 90})
    table = frame.dp.tree_counts("city", private_keys="city", **WHOLE)
    assert table.attrs["dp"]["private_keys"] == ["city"]


@each(
    "tree, caps, within",
    [
        (BELOW, {"max_per_leaf": 1}, (None, None, None, 1)),
        (BELOW, {"max_per_node": {"city": 3}}, (None, None, 3, None)),
        (dpt.binary("ip", bits=4), {"max_per_leaf": 1}, (16, 8, 4, 2, 1)),
        (dpt.binary("ip", bits=3), {"max_per_leaf": 2, "max_per_node": {"ip/2": 3}}, (12, 6, 3, 2)),
        (dpt.binary("ip", bits=2), {"max_per_node": {"ip/1": 3}}, (6, 3, None)),
        (dpt.prefixes("zip", chars=[1, 2], alphabet="ab"), {"max_per_leaf": 1}, (None, None, 1)),
    ],
)
def test_gaussian_noise_is_for_the_rows_that_nodes_can_hold(tree, caps, within):
    unit = {"privacy_unit": "person", "max_contributions": 12}
    plan = find_implicit_plan(
        tree, mechanism="gaussian", split="uniform", rho=0.1, delta=1e-6, **unit, **caps
    )
    loss = PrivacyLoss(rho=0.1, delta=1e-6)
    expected, _ = best_noise("gaussian", "uniform", loss, len(within), tree.n_public,
                             neighbors="add_remove", max_contributions=12, caps=within)  # fmt: skip
    assert plan.noise == expected and plan.caps == plan.from_dict(plan.to_dict(), plan.hierarchy).caps
    assert float(sum(item.loss.rho for item in plan.losses.items)) == pytest.approx(0.1)
    with pytest.raises(ArgumentError, match="`noise`"):
        dataclasses.replace(plan, caps=())


def test_auto_turns_to_gaussian_noise_where_a_unit_has_one_row_in_a_leaf():
    unit = {**LOSS, "privacy_unit": "person", "max_contributions": 12}
    plain, capped = (find_implicit_plan(ALONE, **unit, max_per_leaf=cap) for cap in (None, 1))
    assert (plain.noise.name, capped.noise.name) == ("truncated_laplace", "gaussian_thresholds")
    found = [plan.noise.found_from(0.05)[-1] for plan in (plain, capped)]
    assert found[0] > 2 * found[1]
    assert capped.compare().loc[("gaussian", "", "city"), "found_from"] == found[1]
