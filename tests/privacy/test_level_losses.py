"""What a level spends: against randomized response, all outcomes of small worlds, and dp-accounting."""

import itertools
import math
from fractions import Fraction

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.privacy.composition import gaussian_delta, laplace_delta
from pandas_dptree.privacy.conversions import zcdp_delta
from pandas_dptree.privacy.level_losses import (
    NOTHING,
    approximate_level,
    float_above,
    gaussian_level,
    laplace_level,
    laplace_rho,
    rho_of_epsilon,
)
from pandas_dptree.privacy.sensitivity import Sensitivity, count_sensitivity, sum_sensitivity
from tests.helpers_cases import each

ALPHAS = [1.0001, 1.05, 1.5, 2.0, 4.0, 16.0, 64.0]
ONE_ROW = Sensitivity(l1=1, l2_squared=1)


# --- from epsilon to rho ---------------------------------------------------------------------------------


@given(epsilon=st.floats(1e-9, 100.0))
def test_rho_is_rounded_up_and_hardly(epsilon):
    with mpmath.workdps(60):
        exact = mpmath.mpf(epsilon) * mpmath.tanh(mpmath.mpf(epsilon) / 2)
        found = rho_of_epsilon(Fraction(epsilon))
        found = mpmath.mpf(found.numerator) / found.denominator
        assert exact <= found <= exact * (1 + mpmath.mpf(2) ** -47)
    assert rho_of_epsilon(Fraction(epsilon)) <= Fraction(epsilon) ** 2 / 2


def response_divergence(epsilon, alpha):
    """The Rényi divergence of randomized response, from its two probabilities."""
    p = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
    return mpmath.log(p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)) / (alpha - 1)


@each("epsilon", [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0])
def test_rho_bounds_randomized_response_and_no_smaller_one_does(epsilon):
    rho = rho_of_epsilon(Fraction(epsilon))
    with mpmath.workdps(60):
        rho, epsilon = mpmath.mpf(rho.numerator) / rho.denominator, mpmath.mpf(epsilon)
        for alpha in [1 + mpmath.mpf(10) ** power for power in np.linspace(-12, 3, 46)]:
            assert response_divergence(epsilon, alpha) <= alpha * rho
        close = 1 + mpmath.mpf(10) ** -12
        assert response_divergence(epsilon, close) > rho * close * (1 - mpmath.mpf(10) ** -10)


@each("scale", ["0.003", "0.3", "1", "7.5", "1e3", "1e12", "9e39", "8e59", "7e88"])
@each("shift", [1, 2, 3, 12, 10**6, 2**31, 2**80, 2**130, 2**199])
def test_rho_of_a_shift_is_rounded_up_and_hardly(scale, shift):
    found = laplace_rho(Fraction(scale), shift)
    with mpmath.workdps(400):
        t = mpmath.mpf(Fraction(scale).denominator) / Fraction(scale).numerator
        exact = shift * t - (1 - mpmath.exp(-shift * t)) * t / mpmath.sinh(t)
        found = mpmath.mpf(found.numerator) / found.denominator
        if Fraction(scale) > 10**40:
            assert exact <= found <= (shift * t) ** 2 / 2 * (1 + mpmath.mpf(10) ** -300)
            return
        wide = {True: 2.0**-47, False: 10.0**-29}[shift == 1] if shift * t < 10**4 else 1 / (shift * t - 1)
        assert exact <= found <= exact * (1 + mpmath.mpf(wide))


@each("scale", [0.2, 1.0, 3.7, 60.0])
@each("shift", [1, 2, 3, 5, 12, 40])
def test_rho_bounds_a_shift_and_no_smaller_one_does(scale, shift):
    q = math.exp(-1 / scale)
    losses = (shift - 2 * np.arange(shift + 1)) / scale
    masses = q ** np.arange(shift + 1) * np.r_[1, np.full(shift - 1, 1 - q), 1] / (1 + q)
    assert math.fsum(masses) == pytest.approx(1)
    rho = float(laplace_rho(Fraction(scale), shift))
    for alpha in 1 + np.geomspace(1e-3, 400, 60):
        spent = np.logaddexp.reduce(np.log(masses) + (alpha - 1) * losses) / (alpha - 1)
        assert spent <= alpha * rho * (1 + 1e-10)
    assert masses @ losses == pytest.approx(rho, rel=1e-9)  # the limit as alpha falls to 1


def parts_of(total, most):
    """All ways to write a number as a sum of smaller ones in falling order."""
    if total == 0:
        yield ()
    for first in range(min(total, most), 0, -1):
        for rest in parts_of(total - first, first):
            yield first, *rest


@each("most", [1, 2, 3, 5, 12])
@each("total", [1, 4, 9, 12])
def test_the_worst_move_of_a_level(total, most):
    for scale in (0.3, 1.0, 20.0):
        each_part = [laplace_rho(Fraction(scale), move) for move in range(most + 1)]
        worst = max(sum(each_part[part] for part in parts) for parts in parts_of(total, most))
        sensitivity = Sensitivity(l1=total, l2_squared=total**2, linf=min(most, total))
        level = laplace_level(scale, sensitivity).rho
        assert worst <= level <= worst * (1 + Fraction(1, 10**20))


@given(number=st.fractions(min_value=0, max_value=10**9, max_denominator=10**30))
def test_floats_above(number):
    above = float_above(number)
    assert Fraction(above) >= number > Fraction(math.nextafter(above, -math.inf))


def test_the_parts_of_a_level_loss():
    assert laplace_level(math.inf, ONE_ROW) == gaussian_level(math.inf, ONE_ROW) == NOTHING
    assert laplace_level(0.3, ONE_ROW).epsilon == 1 / Fraction(0.3)  # exactly
    assert gaussian_level(0.3, Sensitivity(l1=3, l2_squared=7)).rho == 7 / (2 * Fraction(0.3) ** 2)
    assert gaussian_level(0.3, ONE_ROW).epsilon is None
    tenth = Fraction(1, 10)
    assert approximate_level(tenth, tenth**6) == laplace_level(10.0, ONE_ROW, tenth**6)


# --- all outcomes of small worlds ------------------------------------------------------------------------


def log_masses(kind, scale, reach=400):
    """The distribution of the noise on the whole numbers up to a reach, beyond which there is hardly any."""
    x = np.arange(-reach, reach + 1.0)
    logs = -abs(x) / scale if kind == "laplace" else -((x / scale) ** 2) / 2
    return logs - np.logaddexp.reduce(logs)


def divergence(p, q, alpha):
    """The Rényi divergence of two distributions on the same outcomes, from the logarithms of their masses."""
    return np.logaddexp.reduce((alpha * p + (1 - alpha) * q).ravel()) / (alpha - 1)


def shift_divergence(logs, shift, alpha):
    """That of noise on one node which moves; the tails that are cut off hold next to nothing."""
    return divergence(logs[shift:], logs[: len(logs) - shift], alpha)


def all_moves(low, high, rows, neighbors):
    """All moves of the levels of a root with two leaves, by units of up to k rows with these values."""
    tree = Tree.from_branching([2])
    row = [(0, 0), *((v, 0) for v in range(low, high + 1)), *((0, v) for v in range(low, high + 1))]
    units = {tuple(np.sum(some, axis=0).tolist()) for some in itertools.product(row, repeat=rows)}
    others = units if neighbors == "replace" else {(0, 0)}
    gaps = {tuple(np.subtract(a, b).tolist()) for a, b in itertools.product(units, others)}
    return [[level.tolist() for level in tree.roll_up(np.array(gap))] for gap in gaps]


def test_moves_are_listed():
    moves = all_moves(1, 1, 2, "replace")
    assert [[0], [2, -2]] in moves and [[0], [1, -1]] in moves and [[2], [1, 1]] in moves


@each("kind", ["laplace", "gaussian"])
@each("neighbors", ["add_remove", "replace"])
@each("low, high, rows", [(1, 1, 1), (1, 1, 2), (1, 1, 3), (0, 3, 2), (-1, 3, 1), (-1, 3, 2), (-2, 2, 1)])
@each("scales", [(1.0, 2.5), (6.0, 4.0)])
def test_no_unit_moves_two_levels_further_than_their_rhos(kind, neighbors, low, high, rows, scales):
    sensitivity = sum_sensitivity(low, high, neighbors=neighbors, max_contributions=rows)
    level = laplace_level if kind == "laplace" else gaussian_level
    rho = float(sum(level(scale, sensitivity).rho for scale in scales))
    noise = [log_masses(kind, scale) for scale in scales]
    moves = all_moves(low, high, rows, neighbors)
    for alpha in ALPHAS:
        shifts = {(place, abs(d)) for move in moves for place in (0, 1) for d in move[place]}
        alone = {each: shift_divergence(noise[each[0]], each[1], alpha) for each in shifts}
        most = max(sum(alone[place, abs(d)] for place in (0, 1) for d in move[place]) for move in moves)
        assert most <= alpha * rho * (1 + 1e-9) + 1e-10
    if (low, high, rows) == (1, 1, 1) or kind == "gaussian":  # the sum of two levels' worst moves exists
        close = max(
            sum(shift_divergence(noise[place], abs(d), ALPHAS[0]) for place in (0, 1) for d in move[place])
            for move in moves
        )
        root_stays = {"add_remove": 1.0, "replace": 0.4}[
            neighbors
        ]  # a replaced unit moves one of the levels less
        assert close > root_stays * rho * (0.99 if min(scales) > 2 else 0.9)


def test_divergences_of_nodes_add_up_over_all_outcomes():
    """The whole output of a root with two leaves, which one row moves: not node by node."""
    scales, reach = (1.0, 0.8), 14
    root, leaf = (log_masses("laplace", scale, reach) for scale in scales)
    p = root[1:, None, None] + leaf[None, 1:, None] + leaf[None, None, :]
    q = root[:-1, None, None] + leaf[None, :-1, None] + leaf[None, None, :]
    rho = float(sum(laplace_level(scale, ONE_ROW).rho for scale in scales))
    for alpha in ALPHAS:
        for one, other in ((p, q), (q, p)):
            assert divergence(one, other, alpha) <= alpha * rho * (1 + 1e-5)
        alone = shift_divergence(root, 1, alpha) + shift_divergence(leaf, 1, alpha)
        assert divergence(p, q, alpha) == pytest.approx(alone, rel=1e-6)


@each("neighbors", ["add_remove", "replace"])
@each("rows", [1, 2])
@each("epsilon, delta", [(1.0, 1e-3), (0.3, 0.05), (4.0, 1e-6)])
def test_truncated_noise_is_approximately_concentrated(neighbors, rows, epsilon, delta):
    """Definition 8.1: events of probability 1 - delta, given which the outcomes of both nodes are close."""
    sensitivity = count_sensitivity(neighbors=neighbors, max_contributions=rows)
    noise = TruncatedLaplace(epsilon, delta, sensitivity.l1)
    level = laplace_level(noise.noise_scale, sensitivity, Fraction(noise.delta_spent))
    assert level.epsilon <= Fraction(epsilon) and level.delta <= Fraction(delta)
    x = np.arange(-noise.radius, noise.radius + 1.0)
    logs = -abs(x) / noise.noise_scale
    logs -= np.logaddexp.reduce(logs)
    for a, b in {tuple(move[1]) for move in all_moves(1, 1, rows, neighbors)}:
        shared = [(logs[abs(d) :], logs[: len(logs) - abs(d)]) for d in (a, b)]  # of both nodes' answers
        within = [(np.logaddexp.reduce(p), np.logaddexp.reduce(q)) for p, q in shared]
        for one in zip(*within, strict=True):  # under either data set
            assert -math.expm1(sum(one)) <= float(level.delta) * (1 + 1e-6)
        for alpha in ALPHAS:
            spent = sum(
                divergence(p - p_within, q - q_within, alpha)
                for (p, q), (p_within, q_within) in zip(shared, within, strict=True)
            )
            assert spent <= alpha * float(level.rho) * (1 + 1e-9) + 1e-10


def test_a_smaller_rho_would_fail():
    """The checks above can fail: randomized response alone reaches the bound, and two nodes twice of it."""
    logs = log_masses("laplace", 2.0)
    alone = shift_divergence(logs, 1, ALPHAS[0])
    assert alone > 0.999 * float(laplace_level(2.0, ONE_ROW).rho)
    replaced = laplace_level(2.0, count_sensitivity(neighbors="replace"))
    assert 2 * alone > 0.999 * float(replaced.rho)
    assert replaced.rho < Fraction(54, 100) * rho_of_epsilon(replaced.epsilon)  # as one epsilon


# --- against the composition of exact losses, and dp-accounting ------------------------------------------


@each(
    "sensitivity",
    [
        *(count_sensitivity(neighbors="add_remove", max_contributions=k) for k in (1, 2, 5)),
        *(count_sensitivity(neighbors="replace", max_contributions=k) for k in (1, 2)),
    ],
)
@each("scales", [[1.0], [3.0, 5.0], [20.0, 30.0, 25.0, 40.0]])
def test_the_exact_delta_is_below_that_of_rho(sensitivity, scales):
    for level, delta_of in ((laplace_level, laplace_delta), (gaussian_level, gaussian_delta)):
        rho = float_above(sum(level(scale, sensitivity).rho for scale in scales))
        for factor in (0.3, 0.7, 1.0, 3.0):
            epsilon = factor * (rho + math.sqrt(rho))
            assert delta_of(epsilon, scales, sensitivity) <= zcdp_delta(rho, epsilon)


@each("sigma", [0.7, 2.0, 15.0])
def test_gaussian_levels_against_dp_accounting(sigma):
    accountant = rdp_privacy_accountant.RdpAccountant(orders=ALPHAS)
    accountant.compose(dp_accounting.GaussianDpEvent(sigma), 3)
    rho = float(sum(gaussian_level(sigma, ONE_ROW).rho for _ in range(3)))
    np.testing.assert_allclose(accountant._rdp, rho * np.array(ALPHAS), rtol=1e-12)
    discrete = pld.from_discrete_gaussian_mechanism(sigma, use_connect_dots=True).self_compose(3)
    for epsilon in (0.5 * rho, rho + math.sqrt(rho), 3 * rho + 2 * math.sqrt(rho)):
        assert discrete.get_delta_for_epsilon(epsilon) <= zcdp_delta(rho, epsilon) * (1 + 1e-3)


@each("scale", [0.5, 1.0, 4.0])
@each("shift", [1, 3])
def test_laplace_levels_against_dp_accounting(scale, shift):
    sensitivity = Sensitivity(l1=shift, l2_squared=shift**2)
    rho = 2 * float_above(laplace_level(scale, sensitivity).rho)
    discrete = pld.from_discrete_laplace_mechanism(1 / scale, sensitivity=shift, use_connect_dots=True)
    twice = discrete.self_compose(2)
    for epsilon in (0.3 * rho, rho, 1.5 * rho, 1.9 * shift / scale):
        assert twice.get_delta_for_epsilon(epsilon) <= zcdp_delta(rho, epsilon) * (1 + 1e-3)
    accountant = rdp_privacy_accountant.RdpAccountant(orders=ALPHAS)
    accountant.compose(dp_accounting.LaplaceDpEvent(scale / shift), 2)  # continuous noise
    assert (accountant._rdp <= rho * np.array(ALPHAS) * (1 + 1e-9)).all()


@each("epsilon", [0.1, 1.0, 3.0])
def test_randomized_response_against_dp_accounting(epsilon):
    accountant = rdp_privacy_accountant.RdpAccountant(
        orders=ALPHAS, neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    )
    accountant.compose(dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2))
    bounds = float(rho_of_epsilon(Fraction(epsilon))) * np.array(ALPHAS)
    assert (accountant._rdp <= bounds * (1 + 1e-9)).all()
    assert accountant._rdp[0] > bounds[0] * (1 - 1e-3)
