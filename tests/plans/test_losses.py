"""What plans spend, in both currencies: totals, levels, and how they are shown."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.mechanisms.sampling import SMALLEST_SCALE
from pandas_dptree.plans.losses import LevelItem, Losses
from pandas_dptree.privacy.conversions import zcdp_delta, zcdp_rho
from pandas_dptree.privacy.gated import gated_zcdp
from pandas_dptree.privacy.level_losses import (
    LevelLoss,
    approximate_level,
    float_above,
    gaussian_level,
    laplace_level,
    rho_of_epsilon,
)
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity, TreeSensitivity
from tests.helpers_json import resealed

BY = ["region", "district"]
TREE = dpt.Tree.from_branching([3, 4])
DOMAIN = dpt.Domain.from_frame(dpt.datasets.clinics()[BY].drop_duplicates(), by=BY)
UNIT = {"privacy_unit": "person", "max_contributions": 2}
PEOPLE = {"privacy_unit": "person", "max_nodes": 2}
EPSILON, DELTA, RHO = {"epsilon": 0.7}, {"epsilon": 0.7, "delta": 1e-6}, {"rho": 0.1}
COLUMNS = {"n": "count", "cost": dpt.mean("cost", bounds=(-1, 3)), "age": dpt.sum("age", bounds=(0, 90))}
MULTIPLICATIVE = dpt.Multiplicative(alpha=0.3)

PLANS = {
    "laplace": dpt.plan(TREE, **EPSILON),
    "laplace, composed": dpt.plan(TREE, split="uniform", mechanism="laplace", **DELTA),
    "laplace in rho": dpt.plan(TREE, mechanism="laplace", **RHO),
    "gaussian": dpt.plan(TREE, mechanism="gaussian", **RHO),
    "gaussian, composed": dpt.plan(TREE, mechanism="gaussian", **DELTA),
    "sums": dpt.plan_sums(DOMAIN, columns="cost", bounds=(-1, 3), neighbors="replace", **EPSILON, **UNIT),
    "joint": dpt.plan_agg(DOMAIN, COLUMNS, neighbors="replace", **EPSILON, **UNIT),
    "joint in rho": dpt.plan_agg(DOMAIN, COLUMNS, **RHO),
    "joint, composed": dpt.plan_agg(DOMAIN, COLUMNS, mechanism="gaussian", **DELTA),
    "units": dpt.plan_units(DOMAIN, neighbors="replace", **EPSILON, **PEOPLE),
    "units in rho": dpt.plan_units(DOMAIN, mechanism="laplace", **RHO, **PEOPLE),
    "units, composed": dpt.plan_units(DOMAIN, mechanism="gaussian", **DELTA, **PEOPLE),
    "crossed": dpt.plan(dpt.cross(one=TREE, other=TREE), neighbors="replace", **EPSILON),
    "crossed in rho": dpt.plan(dpt.cross(one=TREE, other=TREE), **RHO),
    "distribution": dpt.plan_distribution("age", bounds=(0, 80), bins=16, domain=DOMAIN, **EPSILON),
    "factorization": dpt.plan_distribution(
        "age", bounds=(0, 80), bins=64, domain=DOMAIN, strategy="factorization", **DELTA
    ),
    "quantiles": dpt.plan_quantiles("age", [0.25, 0.5, 0.75], bounds=(0, 900), **EPSILON),
    "quantiles of units": dpt.plan_quantiles("age", 0.5, bounds=(0, 900), neighbors="replace", **RHO, **UNIT),
    "quantiles, composed": dpt.plan_quantiles(
        "age", [0.2, 0.5, 0.6, 0.7], bounds=(0, 900), mechanism="exponential", confidence=0.9, bins=4, **DELTA
    ),
    "quantiles of groups": dpt.plan_quantiles(
        "age", [0.25, 0.5], bounds=(0, 900), mechanism="exponential", domain=DOMAIN, bins=4, **EPSILON
    ),
    "quantiles of groups in rho": dpt.plan_quantiles(
        "age", 0.5, bounds=(0, 900), mechanism="exponential", domain=DOMAIN, bins=4, confidence=0.9, **RHO
    ),
    "truncated": dpt.plan(
        DOMAIN, private_keys=["site"], mechanism="truncated_laplace", neighbors="replace", **DELTA, **UNIT
    ),
    "gated": dpt.plan(DOMAIN, private_keys=["site"], mechanism="gaussian", **DELTA, **UNIT),
    "gated in rho": dpt.plan(DOMAIN, private_keys=["site"], rho=0.1, delta=1e-6, **UNIT),
    "prefixes": dpt.plan(dpt.prefixes("ip", bits=[8, 16], notation="number"), **DELTA),
    "relative error": dpt.plan(TREE, mechanism=MULTIPLICATIVE, **DELTA),
    "relative error, two rows": dpt.plan(TREE, mechanism=MULTIPLICATIVE, neighbors="replace", **DELTA),
    "windows": dpt.plan(TREE, mechanism=dpt.Multiplicative(alpha=0.3, clip=True), **DELTA),
    "relative error of prefixes": dpt.plan(
        dpt.prefixes("ip", bits=[8, 16], notation="number"), mechanism=MULTIPLICATIVE, **DELTA
    ),
}


def summed(losses, name):
    return sum((getattr(item.loss, name) for item in losses.items), Fraction())


def total(losses, name):
    """That of all levels together: at most the sum, which no unit reaches if rows are replaced."""
    if losses.together is None:
        return summed(losses, name)
    assert getattr(losses.together, name) <= summed(losses, name)
    return getattr(losses.together, name)


def is_rounded_up(total, exact):
    return exact <= total <= exact * (1 + Fraction(1, 2**52)) and Fraction(float(total)) == total


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_totals(plan):
    losses, stated = plan.losses, plan.loss.exact
    assert losses is plan.losses and losses.stated == plan.loss
    if stated.rho is None:
        assert losses.in_epsilon == (stated.epsilon, stated.delta)
        rho, delta = losses.in_rho
        assert is_rounded_up(rho, total(losses, "rho")) and is_rounded_up(delta, total(losses, "delta"))
        assert 0 < rho <= float_above(rho_of_epsilon(stated.epsilon)) and delta <= stated.delta
    else:
        assert losses.in_rho == (stated.rho, stated.delta)
        assert total(losses, "rho") <= stated.rho * (1 + Fraction(1, 10**15))
        assert total(losses, "delta") <= stated.delta
        if any(item.loss.epsilon is None for item in losses.items):
            assert losses.in_epsilon is None
        else:
            assert is_rounded_up(losses.in_epsilon[0], total(losses, "epsilon"))


@pytest.mark.parametrize("name", ["laplace", "sums", "joint", "distribution", "truncated", "windows"])
def test_levels_of_one_epsilon_spend_it_together(name):
    plan = PLANS[name]
    epsilon, stated = total(plan.losses, "epsilon"), plan.loss.exact
    assert stated.epsilon * (1 - Fraction(1, 10**12)) < epsilon <= stated.epsilon
    assert plan.losses.in_rho[0] < rho_of_epsilon(stated.epsilon)  # less than what the total implies


@pytest.mark.parametrize("name", ["laplace, composed", "gaussian, composed", "joint, composed"])
def test_composed_noise_has_a_rho_of_its_own(name):
    """No conversion of the total: it is what the noise spends, which need not imply the stated loss."""
    rho, delta = PLANS[name].losses.in_rho
    assert delta == 0
    assert zcdp_rho(0.7, 1e-6) < rho < Fraction(1, 10)


def test_each_level_of_additive_noise():
    (sums,) = PLANS["sums"].plans.values()
    at_root = Sensitivity(l1=800_000, l2_squared=64 * 10**10, linf=800_000)  # a single node
    below = Sensitivity(l1=1_200_000, l2_squared=72 * 10**10, linf=800_000)
    assert sums.sensitivity == TreeSensitivity(((at_root, below, below),))
    for plan in (PLANS["laplace"], PLANS["gaussian"], sums):
        level = gaussian_level if plan.noise.name == "gaussian" else laplace_level
        assert plan.losses.items == tuple(
            LevelItem(key, level(scale, moves))
            for key, scale, moves in zip(
                plan.level_names, plan.unit_noise_scales.tolist(), plan.sensitivity.levels, strict=True
            )
        )


def test_each_quantity_of_a_joint_plan():
    plan = PLANS["joint"]
    assert [item.quantity for item in plan.losses.items] == [name for name in plan.plans for _ in range(3)]
    for name, part in plan.plans.items():
        assert [item.loss for item in plan.losses.items if item.quantity == name] == [
            item.loss for item in part.losses.items
        ]
    assert list(plan.losses.to_frame())[:2] == ["quantity", "level"]


def test_each_level_of_a_distribution():
    plan = PLANS["distribution"]
    measured = [scale for scale in plan.strategy.noise_scales if scale < math.inf]
    assert len(plan.losses.items) == len(plan.level_names) * len(measured) > len(measured)
    assert summed(plan.losses, "epsilon") == len(plan.level_names) * sum(1 / Fraction(b) for b in measured)
    factors = PLANS["factorization"]
    moved = factors.strategy.sensitivity(neighbors="add_remove", max_contributions=1)
    each = gaussian_level(factors.strategy.noise_scale, moved)
    assert factors.losses.items == tuple(LevelItem(name, each) for name in factors.level_names)


def divergence(scale, shift):
    """The Kullback-Leibler divergence of discrete Laplace noise from the same noise moved by `shift`."""
    x = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
    return float(np.exp(-abs(x) / scale) * math.tanh(0.5 / scale) @ (abs(x - shift) - abs(x)) / scale)


def test_truncated_noise_spends_less_level_by_level():
    """Shares of 1 : 2 : 4 at an epsilon of 1: 0.21, where one epsilon of 1 would cost 0.46."""
    tree = dpt.prefixes("ip", bits=[8, 16], notation="number")
    plan = dpt.plan(tree, mechanism="truncated_laplace", split="doubling", epsilon=1.0, delta=1e-6)
    (rho, delta), parts = plan.losses.in_rho, [1 / 7, 2 / 7, 4 / 7]
    assert float(rho) == pytest.approx(sum(x * math.tanh(x / 2) for x in parts), rel=1e-9)
    assert round(float(rho), 2) == 0.21 and round(math.tanh(1 / 2), 2) == 0.46
    assert Fraction(5, 10**7) < delta <= Fraction(1e-6)
    replaced = PLANS["truncated"].losses
    levels, noise = replaced.items, PLANS["truncated"].noise
    assert [item.loss.epsilon for item in levels] == [4 / Fraction(b) for b in noise.noise_scales]
    assert [float(item.loss.rho) for item in levels] == pytest.approx(
        [2 * divergence(b, 2) for b in noise.noise_scales]  # two nodes that move by 2 each
    )


@pytest.mark.parametrize("name", ["gated", "gated in rho"])
def test_gated_releases_have_the_loss_of_their_own_proof(name):
    plan = PLANS[name]
    rho, delta = gated_zcdp(
        plan.noise.noise_scales, plan.noise.thresholds, neighbors="add_remove", max_contributions=2
    )
    assert plan.losses.items[-1].level == "thresholds" and plan.losses.items[-1].loss.delta == Fraction(delta)
    spent = summed(plan.losses, "rho")
    assert spent <= Fraction(rho) <= spent * (1 + Fraction(1, 10**12))
    if name == "gated":
        assert float(plan.losses.in_rho[0]) == pytest.approx(rho) and plan.losses.in_rho[1] == Fraction(delta)


def test_bounded_relative_error():
    plan, windows = PLANS["relative error"], PLANS["windows"]
    rounds = plan.thresholds.loss_of_rounds
    assert plan.losses.items[1].loss == approximate_level(rounds.exact.epsilon, rounds.exact.delta)
    assert [item.level for item in windows.losses.items[2:]] == list(windows.level_names)
    assert PLANS["relative error, two rows"].losses.items == (
        LevelItem("all levels", approximate_level(plan.loss.exact.epsilon, plan.loss.exact.delta)),
    )


def test_no_number_of_rounds_spends_more_rho_than_one():
    """So one round with all of the loss stands for them, however many the noisy total asks for."""
    chain = PLANS["relative error"].thresholds
    most = rho_of_epsilon(chain.loss_of_rounds.exact.epsilon)
    for total in (1, *(int(bound) + 1 for bound in chain.bounds[:-1])):
        rounds = chain.rounds(total)
        assert sum((rho_of_epsilon(each.loss.exact.epsilon) for each in rounds), Fraction()) <= most


@pytest.mark.parametrize("own", [EPSILON, DELTA, RHO])
def test_public_counts_spend_nothing(own):
    known = dpt.datasets.clinics()[BY].drop_duplicates().assign(count=3)
    plan = dpt.plan_agg(DOMAIN, COLUMNS, known=known, **own)
    assert plan.plans["n"].losses.in_epsilon == plan.plans["n"].losses.in_rho == (0, 0)
    assert plan.losses.in_rho[0] > 0


def test_the_smallest_noise():
    plan = dpt.plan(TREE, epsilon=1e6)
    assert plan.unit_noise_scales.min() == SMALLEST_SCALE
    assert plan.losses.in_epsilon == (10**6, 0) and summed(plan.losses, "epsilon") <= 10**6


def test_a_year_of_releases():
    """36 releases within an epsilon of 1: by basic composition, and as a sum of rhos."""
    pure = [dpt.plan(dpt.Tree.from_branching([1]), epsilon=1 / 36, split={"level_1": 1.0})] * 36
    assert sum(float(plan.losses.in_epsilon[0]) for plan in pure) == pytest.approx(1)
    assert round(float(pure[0].noise.variance(pure[0].unit_noise_scales)[-1]) ** 0.5, 1) == 50.9
    rho = zcdp_rho(1.0, 1e-6)
    concentrated = [dpt.plan(dpt.Tree.from_branching([1]), rho=rho / 36, split={"level_1": 1.0})] * 36
    assert zcdp_delta(float(sum(plan.losses.in_rho[0] for plan in concentrated)), 1.0) <= 1e-6 * (1 + 1e-9)
    gaussian = dpt.plan(
        dpt.Tree.from_branching([1]), rho=rho / 36, split={"level_1": 1.0}, mechanism="gaussian"
    )
    assert round(float(gaussian.unit_noise_scales[-1]), 1) == 27.2


# --- how they are shown ----------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_frame_and_its_prints(plan):
    table = plan.losses.to_frame()
    assert list(table)[-5:] == ["level", "epsilon", "delta", "rho", "rho_delta"]
    assert (table.dtypes.iloc[-4:] == "float64").all() and len(table) == len(plan.losses.items) + 1
    last = table.iloc[-1]
    assert last["level"] == "all together"
    assert (last["rho"], last["rho_delta"]) == tuple(map(float, plan.losses.in_rho))
    assert pd.isna(last["epsilon"]) == (plan.losses.in_epsilon is None)
    printed, page = repr(plan.losses), plan.losses._repr_html_()
    assert printed.startswith("Losses of one release: ") and "nan" not in printed.lower() + page.lower()
    assert ("epsilon=" in printed) == (plan.losses.in_epsilon is not None) and "rho=" in page
    assert page.count("<tr") == len(table) + 1


def test_names_are_escaped_on_pages():
    item = LevelItem("<b>", laplace_level(1.0, Sensitivity(l1=1, l2_squared=1)))
    assert "&lt;b&gt;" in Losses(stated=PrivacyLoss(epsilon=1.0), items=(item,))._repr_html_()


def test_losses_are_pickled_with_their_plans():
    for name in ("laplace", "joint", "gated"):
        plan = PLANS[name]
        assert pickle.loads(pickle.dumps(plan.losses)) == plan.losses
        assert pickle.loads(pickle.dumps(plan)).losses == plan.losses


def test_all_kinds_of_plans_are_here():
    assert {plan.kind for plan in PLANS.values()} == dpt.Plan._kinds.keys()


def test_levels_that_are_not_measured_spend_nothing():
    plan = dpt.plan(TREE, split={"level_2": 1.0}, **RHO)
    found = [(item.loss.epsilon, item.loss.rho) for item in plan.losses.items[:2]]
    assert found == [(0, 0), (0, 0)] and plan.losses.items[2].loss.epsilon is None


@pytest.mark.parametrize(("neighbors", "rows"), list(itertools.product(("add_remove", "replace"), (1, 3))))
def test_replaced_rows_move_two_nodes(neighbors, rows):
    options = {"privacy_unit": "person", "max_contributions": rows, "neighbors": neighbors}
    plan = dpt.plan(DOMAIN, epsilon=3.0, split="uniform", **options)
    root, leaves = (divergence(plan.unit_noise_scales[place], rows) for place in (0, -1))
    assert float(plan.losses.items[0].loss.rho) == pytest.approx(root)  # the total moves only if rows leave
    assert float(plan.losses.items[-1].loss.rho) == pytest.approx(leaves * (1 + (neighbors == "replace")))


def test_gated_noise_charges_an_account_in_rho_what_its_proof_says():
    """Under replace, k rows of a unit leave one node and enter another: twice the rho, on every level."""
    for neighbors, rows in [("add_remove", 1), ("add_remove", 3), ("replace", 1), ("replace", 3)]:
        unit = {"privacy_unit": "person", "neighbors": neighbors, "max_contributions": rows}
        plan = dpt.plan(DOMAIN, private_keys=["site"], mechanism="gaussian", epsilon=0.7, delta=1e-6, **unit)
        scales, thresholds = plan.noise.noise_scales, plan.noise.thresholds
        rho, delta = gated_zcdp(scales, thresholds, neighbors=neighbors, max_contributions=rows)
        squares = (2 if neighbors == "replace" else 1) * rows**2
        least = sum(Fraction(squares) / (2 * Fraction(scale) ** 2) for scale in scales)
        charged, failure = plan.losses.in_rho
        assert least <= charged <= least * (1 + Fraction(1, 10**12)) and charged <= Fraction(rho)
        assert failure == Fraction(delta) and plan.losses.in_epsilon[0] == Fraction(0.7)


def test_each_depth_of_draws():
    """Permute-and-flip has the rho of its epsilon; the exponential mechanism has an eighth of its square."""
    pure, units, composed = (PLANS[f"quantiles{which}"] for which in ("", " of units", ", composed"))
    epsilon = Fraction(pure.draws.epsilon)
    assert pure.draws.permutes and pure.loss.exact.epsilon >= 2 * epsilon > pure.loss.exact.epsilon * 0.999
    each_loss = LevelLoss(epsilon=epsilon, rho=rho_of_epsilon(epsilon))
    assert pure.losses.items == tuple(LevelItem(f"total, draws {depth}", each_loss) for depth in (1, 2))
    epsilon = Fraction(units.draws.epsilon)
    assert units.losses.items == (LevelItem("total, draw", LevelLoss(epsilon=epsilon, rho=epsilon**2 / 8)),)
    assert Fraction(1, 10) >= epsilon**2 / 8 > Fraction(999, 10_000)
    assert len(composed.losses.items) == len(composed.trees.losses.items) + 3
    assert composed.losses.items[: len(composed.trees.losses.items)] == composed.trees.losses.items
    of_groups = PLANS["quantiles of groups in rho"]
    names = [item.level for item in of_groups.losses.items]
    assert names[-1] == "district, draw" and {name.split(",")[0] for name in names} == {"total", *BY}


def test_a_plan_states_how_much_a_record_counts():
    """So whoever edits the rows of a unit, or the relation, contradicts it."""
    plan = PLANS["quantiles of units"]  # a distance moves by 2 if one of 2 rows is replaced
    assert plan.to_dict()["draws"]["exponents"] == [plan.draws.epsilon / (2 * 2 * 2)]
    for name, other in (("max_contributions", 1), ("neighbors", "add_remove")):
        with pytest.raises(dpt.ArgumentError, match="do not follow from the others"):
            dpt.Plan.from_dict(resealed(plan.to_dict() | {name: other}), None)
