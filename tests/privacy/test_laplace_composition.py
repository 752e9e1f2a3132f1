"""Delta of Laplace noise over several levels: optimal for equal noise, and between estimates of a peer."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from pandas_dptree.privacy.composition import laplace_delta
from pandas_dptree.privacy.sensitivity import Sensitivity, count_sensitivity, sum_sensitivity
from tests.helpers_cases import each
from tests.helpers_composition import TARGETS, compose, laplace_budget, shares_of
from tests.helpers_privacy import ONE_ROW
from tests.reference import exact_delta


def equal_composition(epsilon_each, times, epsilon):
    """Kairouz, Oh and Viswanath (2015), Theorem 3.3, at any epsilon, to 50 digits."""
    with mpmath.workdps(50):
        e = mpmath.mpf(epsilon_each)
        terms = [
            mpmath.binomial(times, i)
            * (mpmath.exp((times - i) * e) - mpmath.exp(mpmath.mpf(epsilon) + i * e))
            for i in range(times + 1)
            if (times - 2 * i) * e > epsilon
        ]
        return mpmath.fsum(terms) / (1 + mpmath.exp(e)) ** times


# --- discrete Laplace noise -----------------------------------------------------------------------------


@each("scale", [1.0, 4.0, 30.0])
@each("levels", [1, 2, 5, 12])
def test_equal_laplace_noises_compose_optimally(scale, levels):
    for part in (0.05, 0.3, 0.6, 0.95):
        epsilon = part * levels / scale
        exact = equal_composition(1 / mpmath.mpf(scale), levels, epsilon)
        bound = laplace_delta(epsilon, [scale] * levels, ONE_ROW)
        assert exact <= bound <= exact * (1 + mpmath.mpf(10) ** -9)


def test_many_laplace_noises_compose_almost_optimally():
    for levels, epsilon in itertools.product((14, 40), (0.3, 1.0, 2.0)):
        exact = equal_composition(mpmath.mpf(1) / 16, levels, epsilon)
        bound = laplace_delta(epsilon, [16.0] * levels, ONE_ROW)
        assert exact <= bound <= 1.01 * exact + mpmath.mpf(10) ** -29


@pytest.mark.parametrize(
    ("sensitivity", "moves"),
    [
        ((1, 1), [(1.3, 1)]),
        ((3, 9), [(2.0, 3)]),
        pytest.param((2, 2), [(1.1, 1), (1.1, -1)], marks=pytest.mark.slow),
        ((1, 1), [(0.6, 1), (1.0, 1)]),
    ],
)
def test_laplace_noise_of_few_counts_is_exact(sensitivity, moves):
    sensitivity = Sensitivity(l1=sensitivity[0], l2_squared=sensitivity[1])
    scales = sorted({scale for scale, _ in moves})
    for epsilon in (0.1, 0.7, 1.4):
        exact = exact_delta("laplace", epsilon, moves)
        bound = laplace_delta(epsilon, scales, sensitivity)
        assert exact * (1 - mpmath.mpf(10) ** -20) <= bound <= exact * (1 + mpmath.mpf(10) ** -10) + 1e-30


def delta_of_moves(epsilon, moves):
    """Sum over all losses of nodes that move, each from the three parts of the noise that decide it."""
    values, masses = np.zeros(1), np.ones(1)
    for scale, shift in moves:
        q, j = math.exp(-1 / scale), np.arange(shift + 1)
        mass = q**j * np.r_[1, np.full(shift - 1, 1 - q), 1] / (1 + q)
        values = np.add.outer(values, (shift - 2 * j) / scale).ravel()
        masses = np.multiply.outer(masses, mass).ravel()
    return float(masses @ np.maximum(-np.expm1(epsilon - values), 0))


@each("total, most", [(4, 3), (5, 2), (6, 3), (6, 6)])
@each("scale", [0.6, 2.0])
def test_the_worst_move_of_a_level_is_that_of_few_nodes(total, most, scale):
    """Lemma 4, alone and beside another level's loss: no way to spread the moves has a larger delta."""
    sensitivity = Sensitivity(l1=total, l2_squared=total**2, linf=most)
    worst = [most] * (total // most) + [total % most] * (total % most > 0)
    spread = [
        parts
        for length in range(1, 5)
        for parts in itertools.combinations_with_replacement(range(1, most + 1), length)
        if sum(parts) <= total
    ]
    for epsilon, others in itertools.product((0.2, 0.9, 0.4 * total / scale), ([], [(1.5, 2)])):
        most_delta = delta_of_moves(epsilon, [(scale, move) for move in worst] + others)
        for parts in spread:
            moves = [(scale, move) for move in parts] + others
            assert delta_of_moves(epsilon, moves) <= most_delta * (1 + 1e-12) + 1e-15
        if not others and epsilon < total / scale:
            bound = laplace_delta(epsilon, [scale], sensitivity)
            assert most_delta * (1 - 1e-10) <= bound <= most_delta * (1 + 1e-9) + 1e-30


def test_a_single_move_bounds_delta_where_that_is_closer():
    """Close to the sum of epsilons, two losses of randomized response are far above one."""
    several = sum_sensitivity(-30, 40, neighbors="replace", max_contributions=4)
    alone = Sensitivity(l1=several.l1, l2_squared=several.l1**2)
    scale = several.l1 / 200
    delta = laplace_delta(200 * 0.9999, [scale], alone)
    assert 0 < laplace_delta(200 * 0.9999, [scale], several) <= delta < 0.1


def test_laplace_noise_is_pure_when_the_epsilons_add_up():
    rng = np.random.default_rng(3)
    for sensitivity in (ONE_ROW, Sensitivity(l1=6, l2_squared=18), Sensitivity(l1=1000, l2_squared=10**6)):
        scales = rng.uniform(1, 9, 7) * sensitivity.l1
        exact = sum(sensitivity.l1 / Fraction(scale) for scale in scales.tolist())
        epsilon = float(exact)
        above = epsilon if Fraction(epsilon) >= exact else math.nextafter(epsilon, 9)
        assert laplace_delta(above, scales, sensitivity) == 0
        below = epsilon if Fraction(epsilon) < exact else math.nextafter(epsilon, 0)
        assert laplace_delta(below, scales, sensitivity) > 0  # they may add up to no more than it, exactly
        assert 0 < laplace_delta(0.9 * epsilon, scales, sensitivity) < 0.1


# --- peers ------------------------------------------------------------------------------------------------


@each("scales, rows", [([2.0, 3.0], 1), ([6.0] * 5, 2), ([10.0] * 14, 1), ([30.0] * 6, 3)])
def test_laplace_delta_lies_between_a_peers_estimates(scales, rows):
    low, high = (
        compose(
            pld.from_discrete_laplace_mechanism(
                1 / scale,
                sensitivity=rows,
                pessimistic_estimate=pessimistic,
                value_discretization_interval=1e-3,
            )
            for scale in scales
        )
        for pessimistic in (False, True)
    )
    sensitivity = count_sensitivity(neighbors="add_remove", max_contributions=rows)
    for epsilon in (0.1, 0.3, 0.7):
        bound = laplace_delta(epsilon, scales, sensitivity)
        assert low.get_delta_for_epsilon(epsilon) <= bound <= high.get_delta_for_epsilon(epsilon) * 1.005


# --- calibration ------------------------------------------------------------------------------------------


@each("levels", [1, 4, 12, 40])
def test_laplace_noise_uses_the_delta(levels):
    for epsilon, delta in TARGETS:
        total, found = laplace_budget(epsilon, delta, ONE_ROW, shares_of("equal", levels))
        assert total > epsilon
        assert (1 - 3e-4) * delta <= found <= delta
    assert levels < 40 or total > 1.4 * epsilon  # where it pays
