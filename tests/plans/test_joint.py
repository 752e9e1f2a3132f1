"""Several quantities under one privacy loss: what is spent together, and how it is divided."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.additive import Gaussian, gaussian
from pandas_dptree.plans import joint_search
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.joint_search import plan_means, plan_sums
from pandas_dptree.privacy.composition import joint_gaussian_delta
from pandas_dptree.privacy.conversions import zcdp_rho
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import Quantity
from tests.helpers_cases import each
from tests.helpers_json import replaced
from tests.helpers_plans import LOSSES, OPTIONS, spends_no_more

BY = ["region", "district", "clinic"]
PLACES = pd.DataFrame({"a": ["x", "x", "y", "z"], "b": [1, 2, 1, 3]})
DIVIDED_LOSSES = [
    {"epsilon": 1.0, "mechanism": "laplace"}, {"rho": 0.1, "mechanism": "gaussian"},
    {"rho": 0.1, "mechanism": "laplace"}, {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian"},
]  # fmt: skip


# --- the division of the budget ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "neighbors", "columns"),
    [
        (DIVIDED_LOSSES[0], "add_remove", 3),
        (DIVIDED_LOSSES[1], "replace", 1),
        (DIVIDED_LOSSES[2], "add_remove", 1),
        (DIVIDED_LOSSES[3], "replace", 1),
    ],
)
def test_no_other_division_between_sums_and_counts_is_better(stated, neighbors, columns, monkeypatch):
    domain = dpt.Domain.from_frame(PLACES, by=["a", "b"])
    check_division(domain, stated, neighbors, columns, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("stated", DIVIDED_LOSSES, ids=repr)
@pytest.mark.parametrize(("neighbors", "columns"), [("add_remove", 1), ("replace", 1), ("add_remove", 3)])
def test_no_other_division_of_three_levels_is_better(stated, neighbors, columns, clinics, monkeypatch):
    domain = dpt.Domain.from_frame(clinics, by=BY)
    check_division(domain, stated, neighbors, columns, monkeypatch)


def check_division(domain, stated, neighbors, columns, monkeypatch):
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
        monkeypatch.setattr(joint_search, "_shares", lambda *_, s=share: [*[(1 - s) / columns] * columns, s])
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
    pairs = [(plan.unit_noise_scales, plan.sensitivity) for plan in both.plans.values()]
    assert 0.999e-6 <= joint_gaussian_delta(1.0, pairs) <= 1e-6
    assert sum(plan.loss.rho for plan in both.plans.values()) > 1.1 * zcdp_rho(1.0, 1e-6)


@each("mechanism, part, kept", [
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


def test_it_states_the_most_rows_that_a_unit_has_in_any_of_its_parts():
    tree = dpt.Domain.from_tree(dpt.Tree.from_branching([2, 3]))
    plans = {f"up to {k}": dpt.plan(tree, epsilon=0.5, max_contributions=k) for k in (3, 1)}
    for named in (plans, dict(reversed(plans.items()))):
        joint = JointPlan(loss=PrivacyLoss(epsilon=1.0), plans=named)
        stored = joint.to_dict()
        assert joint.max_contributions == stored["max_contributions"] == 3
        assert dpt.Plan.from_dict(stored, tree).max_contributions == 3
        with pytest.raises(ArgumentError, match="different bounds on the rows of a unit"):
            dpt.Plan.from_dict(replaced(stored, ("max_contributions",), 1), tree)


# --- what is spent -------------------------------------------------------------------------------------


KINDS = list(itertools.product(LOSSES, ["auto", "laplace", Gaussian()]))
JOINT_OPTIONS = [
    {}, {"neighbors": "replace", "max_contributions": 3}, {"consistency": "none"},
    {"split": {"total": 0.2, "a": 0.1, "b": 0.7}},
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(JOINT_OPTIONS)))
@pytest.mark.parametrize("kinds", [KINDS[start : start + 3] for start in range(0, len(KINDS), 3)])
def test_all_quantities_together_keep_to_the_loss(kinds, place):
    """Each option with each kind of loss, and with each mechanism."""
    stated, mechanism = kinds[(place + KINDS.index(kinds[0]) // 3) % 3]
    check_quantities_together(stated, mechanism, JOINT_OPTIONS[place])


@pytest.mark.slow
@pytest.mark.parametrize("options", JOINT_OPTIONS, ids=repr)
@each("stated, mechanism", KINDS)
def test_all_quantities_together_keep_to_every_loss(stated, mechanism, options):
    check_quantities_together(stated, mechanism, options)


def check_quantities_together(stated, mechanism, options):
    domain = dpt.Domain.from_frame(PLACES, by=["a", "b"])
    quantities = [Quantity.of("v", (0, 500)), Quantity.of("w", (-3, 2), 0.5), Quantity.of("u", (0, 1), 1)]
    loss = PrivacyLoss(**stated)
    impossible = loss.kind == "pure" and mechanism == Gaussian()
    given_loss = {"epsilon": None, "delta": 0.0, "rho": None, **stated}
    for planned in (plan_sums, plan_means):
        arguments = {**OPTIONS, **given_loss, "mechanism": mechanism, **options}
        if impossible:
            with pytest.raises(ArgumentError, match="Hint: "):
                planned(domain, quantities, **arguments)
            continue
        combined = planned(domain, quantities, **arguments)
        counted = planned is plan_means or any(each.count for each in combined.plans.values())
        assert combined.loss == loss and len(combined.plans) == 3 + counted
        assert spends_no_more(list(combined.plans.values()), loss)


def test_noise_keeps_to_the_loss_in_units_of_any_size():
    """Scales in euros would not be floats; those that are used are in units."""
    domain = dpt.Domain.from_frame(PLACES, by=["a", "b"])
    options = {**OPTIONS, "split": "uniform", "mechanism": "gaussian", "privacy_unit": "p",
               "max_contributions": 10**8, "epsilon": 1.0, "delta": 1e-6, "rho": None}  # fmt: skip
    plans = plan_sums(domain, [Quantity.of("v", (0, 9e99), 9e99), Quantity.of("w", (0, 1), 1)],
                      **options).plans.values()  # fmt: skip
    pairs = [(plan.unit_noise_scales, plan.sensitivity) for plan in plans]
    assert np.isfinite([scales for scales, _ in pairs]).all()
    assert 0.999e-6 <= joint_gaussian_delta(1.0, pairs) <= 1e-6
    with pytest.raises(ArgumentError, match="Hint: "):
        Quantity.of("v", (0, 9e299), 9e299)


@each("towards", [-math.inf, math.inf])
def test_a_plan_can_be_read_where_another_library_computes_logarithms(towards, clinics, monkeypatch):
    domain = dpt.Domain.from_frame(clinics, by=BY)
    plan = dpt.plan_sums(
        domain,
        columns=["cost"],
        bounds={"cost": (0, 9)},
        epsilon=1.0,
        delta=1e-6,
        mechanism="gaussian",
        split="uniform",
    )
    written = plan.to_dict()
    for module in (gaussian, joint_search):
        monkeypatch.setattr(module, "zcdp_rho", lambda *loss: math.nextafter(zcdp_rho(*loss), towards))
    assert dpt.Plan.from_dict(written, domain).digest == plan.digest


def test_a_joint_delta_is_compared_with_the_decimal_where_the_float_is_above_it(clinics):
    """What is spent is stated to the last digit, so any excess of a float over its decimal decides."""
    from dataclasses import replace
    from fractions import Fraction

    from pandas_dptree.plans.joint import joint_delta

    domain, outcomes = dpt.Domain.from_frame(clinics[["region"]].drop_duplicates(), by=["region"]), []
    bounds = {"cost": (0, 9), "age": (0, 2)}
    for size in range(1, 13):
        plan = dpt.plan_sums(
            domain, columns=["cost", "age"], bounds=bounds, epsilon=1.0, delta=size * 1e-6,
            mechanism="gaussian", split="uniform",
        )  # fmt: skip
        loss = PrivacyLoss(epsilon=1.0, delta=joint_delta(1.0, list(plan.plans.values())))
        outcomes.append(Fraction(loss.delta) <= loss.exact.delta)
        if outcomes[-1]:
            assert replace(plan, loss=loss).loss == loss
        else:
            with pytest.raises(ArgumentError, match="together spend more than the stated loss"):
                replace(plan, loss=loss)
    assert {*outcomes} == {True, False}
