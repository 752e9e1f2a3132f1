"""No guess between two neighbouring data sets finds more than the bound says: small worlds are listed."""

import functools
import itertools
import math
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

import pandas_dptree as dpt
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.risk import found_at_most, stated_delta, suspicion_after
from tests.helpers_cases import each
from tests.helpers_gated import Release, TooManyError, all_worlds, joint_masses, without_shift
from tests.helpers_risk import gaussian, laplace, moved, moves_of_a_flat_tree, power, product

SHARES = [0.001, 0.01, 0.05, 0.1, 0.3005, 0.7]
TAILS = 1e-11  # what the lists leave out
TREE = dpt.Tree.from_branching([2])
slow = functools.partial(pytest.param, marks=pytest.mark.slow)
PURE, APPROXIMATE = {"epsilon": 1.0}, {"epsilon": 2.0, "delta": 1e-3}


@pytest.mark.parametrize(
    "rows, neighbors", [(1, "add_remove"), (1, "replace"), slow(2, "add_remove"), slow(2, "replace")]
)
@each(
    "mechanism, loss",
    [("laplace", PURE), ("laplace", APPROXIMATE), ("gaussian", APPROXIMATE)]
    + [("gaussian", {"rho": rho}) for rho in (0.01, 0.5, 3.0)],
)
def test_nobody_finds_more_by_the_counts_of_a_tree(mechanism, loss, rows, neighbors):
    unit = {"privacy_unit": "person", "max_contributions": rows, "neighbors": neighbors}
    plan = dpt.plan(TREE, mechanism=mechanism, split="uniform", **loss, **unit)
    bound = np.array(plan.risk(SHARES).found)
    scales, masses = plan.unit_noise_scales[[0, 1, 1]], laplace if mechanism == "laplace" else gaussian
    most, n = np.zeros(len(SHARES)), 0
    for moves in {*moves_of_a_flat_tree(rows, neighbors)}:
        pairs = [moved(masses, scale, shift) for scale, shift in zip(scales, moves, strict=True) if shift]
        if math.prod(len(p) for p, _ in pairs) < (40_000 if rows == 1 else 400_000):
            most, n = np.maximum(most, power(*product(pairs), SHARES)), n + 1
    assert n and (most <= bound + TAILS).all()
    if loss is not PURE and (rows, neighbors) == (1, "add_remove"):  # close, if it follows from the noise
        assert (bound <= 1.05 * most + 0.002).all()


def test_the_formula_of_continuous_noise_would_be_wrong():
    plan = dpt.plan(TREE, rho=0.5, split={"total": 0, "level_1": 1})
    assert plan.unit_noise_scales[1] == 1
    p, q = moved(gaussian, 1.0, 1)[::-1]
    accused = [0.30052886]
    finds = power(p, q, accused)[0]
    assert finds == pytest.approx(0.69947, abs=1e-5) and ndtr(ndtri(accused[0]) + 1) < 0.6834
    assert finds <= plan.risk(accused).found[0] <= finds + 1e-3


def test_under_pure_epsilon_randomized_response_finds_all_that_the_bound_allows():
    for epsilon in (0.1, 1.0, 5.0):
        p = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
        found = found_at_most(SHARES, PrivacyLoss(epsilon=epsilon))
        assert found == pytest.approx(power(p, p[::-1], SHARES), rel=1e-9)
        assert (found >= power(p, p[::-1], SHARES)).all()


@pytest.mark.filterwarnings("ignore:`delta` is")
@pytest.mark.parametrize("rows, neighbors", [(1, "add_remove"), slow(1, "replace"), slow(2, "add_remove")])
@pytest.mark.parametrize(
    "loss, n_public",
    [
        ({"rho": 0.3, "delta": 0.02}, 1),
        slow({"rho": 0.3, "delta": 0.02}, 0),
        slow({"epsilon": 1.0, "delta": 0.01}, 0),
        slow({"epsilon": 1.0, "delta": 0.01}, 1),
    ],
)
def test_nobody_finds_more_where_thresholds_hide_keys(loss, neighbors, rows, n_public):
    columns = ["a", "b"]
    domain = dpt.Domain.from_frame(pd.DataFrame({"a": [0, 1]}), by=["a"]) if n_public else None
    unit = {"privacy_unit": "person", "max_contributions": rows, "neighbors": neighbors}
    plan = dpt.plan(domain, private_keys=columns[n_public:], mechanism="gaussian", **loss, **unit)
    release = Release(tuple(plan.noise.noise_scales), tuple(plan.noise.thresholds))
    bound, most, n = np.array(plan.risk(SHARES).found), np.zeros(len(SHARES)), 0
    worlds = all_worlds(release, rows, neighbors, [0, min(t for t in plan.noise.thresholds if t)])
    for nodes in {tuple(without_shift(node, release) for node in nodes) for nodes in worlds}:
        with suppress(TooManyError):
            p, q = map(
                np.concatenate, zip(*(joint for _, joint in joint_masses(nodes, release)), strict=True)
            )
            most = np.maximum(most, np.maximum(power(p, q, SHARES), power(q, p, SHARES)))
            n += 1
    assert n > 1 and (most <= bound + TAILS).all()


@pytest.mark.filterwarnings("ignore:`delta` is")
def test_nobody_finds_more_where_truncated_noise_hides_keys():
    loss = {"epsilon": 4.0, "delta": 0.03, "privacy_unit": dpt.ROWS}
    plan = dpt.plan(None, private_keys=["a", "b"], mechanism="truncated_laplace", **loss)
    bound, worlds = np.array(plan.risk(SHARES).found), 0

    def shown(noise, count, private):
        """The masses of each noisy count; those of a private key up to the radius look alike."""
        answers = np.zeros(4 * noise.radius + 3)
        place = noise.radius + count + np.arange(-noise.radius, noise.radius + 1)
        answers[place] = np.exp(-np.abs(place - noise.radius - count) / noise.noise_scale)
        answers /= answers.sum()
        if not private:
            return answers
        if not count:
            return np.eye(1, len(answers) - 2 * noise.radius)[0]
        return np.insert(answers[2 * noise.radius + 1 :], 0, answers[: 2 * noise.radius + 1].sum())

    for counts in itertools.product((0, 1), (0, 1, 3), (0, 1, 3)):
        pairs = [
            [shown(noise, min(count + own, 2 * noise.radius + 2), place > 0) for own in (0, 1)]
            for place, (noise, count) in enumerate(zip(plan.noise.levels, counts, strict=True))
        ]
        p, q = product(pairs)
        most = np.maximum(power(p, q, SHARES), power(q, p, SHARES))
        assert (most <= bound + TAILS).all()
        worlds += bool((most > SHARES).all())
    assert worlds > 9


def test_what_a_loss_alone_says():
    pure, some = PrivacyLoss(epsilon=1.0), PrivacyLoss(epsilon=1.0, delta=0.01)
    rho, gated = PrivacyLoss(rho=0.1), PrivacyLoss(rho=0.1, delta=0.01)
    assert [stated_delta(pure, each) for each in (0.9, 1.0, 2.0)] == [1.0, 0.0, 0.0]
    assert [stated_delta(some, each) for each in (0.9, 1.0, 2.0)] == [1.0, 0.01, 0.01]
    assert stated_delta(gated, 1.0) == pytest.approx(0.01 + 0.99 * stated_delta(rho, 1.0))
    assert found_at_most([0.05], pure)[0] == pytest.approx(0.05 * math.e)
    assert found_at_most([0.05], some)[0] == pytest.approx(0.05 * math.e + 0.01)
    assert found_at_most([0.9], pure)[0] == pytest.approx(1 - 0.1 / math.e)
    assert found_at_most([0.05], rho) < found_at_most([0.05], gated)
    for loss in ({"epsilon": 800.0}, {"rho": 1e6}, {"epsilon": 1e-9, "delta": 0.5}):
        assert all(
            share < found <= 1
            for share, found in zip(SHARES, found_at_most(SHARES, PrivacyLoss(**loss)), strict=True)
        )


@each("epsilon", [0.01, 1.0, 30.0, 1000.0])
def test_what_a_suspicion_becomes(epsilon):
    """An answer of randomized response changes the odds by the whole factor."""
    for before in (1e-6, 0.01, 0.5, 0.99):
        odds = before / (1 - before) * math.exp(min(epsilon, 700))
        after = suspicion_after(before, epsilon)
        assert odds / (1 + odds) <= after <= 1 and after == pytest.approx(odds / (1 + odds))
    assert round(suspicion_after(0.01, 1.0), 4) == 0.0267


@each("share", [0, 1, -0.1, True, "0.05", math.nan])
def test_shares_are_between_0_and_1(share):
    with pytest.raises(dpt.ArgumentError, match="`falsely_accused`"):
        dpt.plan(TREE, epsilon=1.0).risk([share])
    if not isinstance(share, str):
        with pytest.raises(dpt.ArgumentError, match="`falsely_accused`"):
            dpt.plan(TREE, epsilon=1.0).risk(share)
