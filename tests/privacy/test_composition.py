"""Delta of noise over several levels: above what brute force and peers find, and hardly above."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting import get_sigma_gaussian
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.privacy import composition
from pandas_dptree.privacy.composition import (
    GaussianProfile,
    gaussian_delta,
    joint_gaussian_delta,
    laplace_delta,
    largest_budget,
)
from pandas_dptree.privacy.conversions import zcdp_delta, zcdp_rho
from pandas_dptree.privacy.sensitivity import Sensitivity, count_sensitivity, sum_sensitivity
from pandas_dptree.privacy.simulated_gaussian import Smoothing, continuous_delta
from tests.helpers_cases import each
from tests.helpers_composition import (
    TARGETS,
    compose,
    laplace_budget,
    listed_profile,
    shares_of,
    smoothing_of,
)
from tests.helpers_privacy import ONE_ROW
from tests.reference import exact_delta, listed_delta


def vectors(sensitivity, length):
    """All whole vectors within the sensitivity, one for each choice of sizes."""
    for vector in itertools.combinations_with_replacement(range(sensitivity.l1 + 1), length):
        if (
            any(vector)
            and sum(vector) <= sensitivity.l1
            and sum(v**2 for v in vector) <= sensitivity.l2_squared
        ):
            yield [v for v in vector if v]


# --- discrete Gaussian noise: never below the exact delta ----------------------------------------------


@each("scale", [0.05, 0.3, 0.8, 1.5, 4.2])
@each("shift", [1, 2, 3])
def test_one_count_is_exact(scale, shift):
    sensitivity = Sensitivity(l1=shift, l2_squared=shift**2)
    for epsilon in (0.1, 1.0, 3.0, 9.0):
        exact = exact_delta("gaussian", epsilon, [(scale, shift)])
        bound = gaussian_delta(epsilon, [scale], sensitivity)
        assert exact <= bound
        assert bound <= exact * (1 + mpmath.mpf(10) ** -9) + mpmath.mpf(10) ** -30


@pytest.mark.parametrize(
    ("sensitivity", "moves"),
    [
        ((1, 1), [(1.3, 1), (0.7, 1)]),  # two levels
        ((1, 1), [(2.5, 1), (1.1, -1)]),
        ((2, 2), [(1.7, 1), (1.7, -1)]),  # two counts of one level
        ((2, 2), [(1.7, 1), (1.7, 1)]),
        ((3, 9), [(2.0, 3), (3.1, -3)]),
        ((3, 9), [(2.0, 2), (2.0, 1)]),
        ((4, 8), [(2.2, 2), (2.2, -2)]),
        ((6, 18), [(3.0, 3), (3.0, 3)]),  # no exact composition is known: simulated
        pytest.param((6, 18), [(3.0, 4), (3.0, -1)], marks=pytest.mark.slow),
        pytest.param((5, 13), [(2.5, 3), (2.5, 2)], marks=pytest.mark.slow),
    ],
)
def test_two_counts_are_bounded(sensitivity, moves):
    sensitivity = Sensitivity(l1=sensitivity[0], l2_squared=sensitivity[1])
    scales = [moves[0][0]] if moves[0][0] == moves[1][0] else [scale for scale, _ in moves]
    for epsilon in (0.4, 2.0):
        exact = exact_delta("gaussian", epsilon, moves)
        assert exact <= gaussian_delta(epsilon, scales, sensitivity)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@each("pair", [(1, 1), (2, 2), (3, 3), (3, 9), (4, 8), (4, 16), (4, 4), (6, 18), (3, 5), (6, 6)])
@each("scale", [0.6, 1.4, 2.7])
def test_every_move_of_a_level_is_bounded(noise, pair, scale):
    sensitivity = Sensitivity(l1=pair[0], l2_squared=pair[1])
    bound = gaussian_delta if noise == "gaussian" else laplace_delta
    for epsilon in (0.3, 2.0, 5.0):
        delta = bound(epsilon, [scale], sensitivity)
        for vector in vectors(sensitivity, 3):
            assert listed_delta(noise, epsilon, [(scale, v) for v in vector]) <= delta * (1 + 1e-10) + 1e-15


def test_the_worst_moves_are_those_of_counts():
    for neighbors, rows, shifts in [
        ("add_remove", 1, (1,)),
        ("add_remove", 7, (7,)),
        ("replace", 1, (1, 1)),
        ("replace", 2, (2, 2)),
        ("replace", 3, ()),  # (4, 1, 1) fits within l1 = 6 and l2_squared = 18 too
    ]:
        assert composition._shifts(count_sensitivity(neighbors=neighbors, max_contributions=rows)) == shifts
    assert composition._shifts(Sensitivity(l1=4, l2_squared=4)) == ()  # (2,) fits, four ones do not bound it


@each("scales", [(1.2, 1.2, 1.2), (0.5, 1.0, 2.0), (2.0, 3.0, 4.0), (0.9, 17.0)])
def test_the_grid_is_hardly_above_the_list(scales, monkeypatch):
    monkeypatch.setattr(composition, "_MANY_VALUES", 1)
    for epsilon in (0.2, 1.0, 4.0):
        listed = listed_delta("gaussian", epsilon, [(scale, 1) for scale in scales])
        bound = gaussian_delta(epsilon, scales, ONE_ROW)
        assert listed <= bound * (1 + 1e-10)
        assert bound <= max(listed * 1.01, 1e-20)


@each("cut", [1e-2, 1e-5])
def test_mass_that_is_cut_off_counts_as_failure(cut, monkeypatch):
    monkeypatch.setattr(composition, "_MANY_VALUES", 1)
    listed = listed_delta("gaussian", 2.0, [(1.4, 1)] * 3)
    whole = gaussian_delta(2.0, [1.4] * 3, ONE_ROW)
    monkeypatch.setattr(composition, "_FAILED", cut)
    losses = [composition._gaussian_loss(1.4, 1)._replace(failed=0.0)] * 3
    total = composition._grid_sum(losses, 0.01)
    assert total.failed == pytest.approx(6 * cut)
    assert total.masses.sum() < 1 - cut / 2
    assert total.masses.sum() + total.failed >= 1
    cut_off = total.masses @ -np.expm1(np.minimum(2.0 - total.values, 0))
    assert cut_off < whole
    assert listed <= cut_off + total.failed


@each("step", [1.0, 0.25, 2.0**-7])
def test_moving_a_loss_onto_the_grid_keeps_its_mass_and_the_mean_of_the_ratio(step):
    loss = composition._gaussian_loss(1.7, 2)
    first, masses = composition._on_grid(loss, step)
    values = step * np.arange(first, first + len(masses))
    assert masses.sum() == pytest.approx(1, rel=1e-14)
    assert masses @ np.exp(-values) == pytest.approx(loss.masses @ np.exp(-loss.values), rel=1e-12)
    for epsilon in (-1.0, 0.3, 2.0):
        before = loss.masses @ -np.expm1(np.minimum(epsilon - loss.values, 0))
        assert masses @ -np.expm1(np.minimum(epsilon - values, 0)) >= before * (1 - 1e-14)


# --- simulation ------------------------------------------------------------------------------------------


@each("neighbors", ["add_remove", "replace"])
@each("rows", [3, 10, 40])
def test_the_factor_is_paid_for_each_count_that_a_unit_may_move(rows, neighbors):
    """A row that comes or goes moves one count of a level, and one that is replaced moves two."""
    sensitivity = count_sensitivity(neighbors=neighbors, max_contributions=rows)
    scales, moves = np.array([8.0, 9.0]) * rows, rows if neighbors == "add_remove" else 2 * rows
    width = math.sqrt(sensitivity.l2_squared * math.fsum(scales**-2))
    smoothing = smoothing_of(scales, moves, sensitivity.l2_squared, width)
    expected = composition._delta(1.0, [], width, smoothing)
    found = {
        "several quantities": joint_gaussian_delta(1.0, [(scales, sensitivity)]),
        "beside a quantity of one row": joint_gaussian_delta(1.0, [([1e9], ONE_ROW), (scales, sensitivity)]),
    }
    if neighbors == "replace":  # otherwise no vector of moves is worse than one count that moves by all
        found["levels"] = gaussian_delta(1.0, scales, sensitivity)
    assert found == pytest.approx(dict.fromkeys(found, expected), rel=1e-8, abs=0)


def test_factors_enter_delta():
    smoothing = Smoothing(0.7, 0.1, 0.3)
    (expected,) = continuous_delta(np.array([1.0 - 0.3]), 0.7)
    assert composition._delta(1.0, [], 0.7, smoothing) == pytest.approx(math.exp(0.1) * expected, rel=1e-9)


# --- peers ------------------------------------------------------------------------------------------------


@each("scales", [[3.0], [4.0, 6.0], [2.0, 2.0, 2.0, 2.0], [1.0, 5.0, 9.0, 17.0]])
def test_gaussian_delta_lies_between_a_peers_estimates(scales):
    low, high = (
        compose(
            pld.from_discrete_gaussian_mechanism(
                scale, pessimistic_estimate=pessimistic, value_discretization_interval=1e-3
            )
            for scale in scales
        )
        for pessimistic in (False, True)
    )
    for epsilon in (0.2, 1.0, 2.0):
        bound = gaussian_delta(epsilon, scales, ONE_ROW)
        assert low.get_delta_for_epsilon(epsilon) <= bound <= high.get_delta_for_epsilon(epsilon) * 1.005


def gaussian_budget(epsilon, delta, sensitivity, shares):
    def delta_at(rho):
        return gaussian_delta(epsilon, np.sqrt(sensitivity.l2_squared / (2 * rho * shares)), sensitivity)

    rho = largest_budget(delta_at, delta, at_least=zcdp_rho(epsilon, delta))
    return rho, delta_at(rho)


# --- calibration ------------------------------------------------------------------------------------------


@each("epsilon, delta", TARGETS)
@each("kind", ["equal", "doubling", "one"])
@pytest.mark.parametrize(
    ("neighbors", "rows"), [("add_remove", 1), ("replace", 1), ("add_remove", 3), ("replace", 3)]
)
def test_noise_is_within_a_hundredth_of_the_continuous_mechanism(epsilon, delta, kind, neighbors, rows):
    sensitivity = count_sensitivity(neighbors=neighbors, max_contributions=rows)
    for levels in (1, 2, 4, 8):
        rho, found = gaussian_budget(epsilon, delta, sensitivity, shares_of(kind, levels))
        ratio = math.sqrt(1 / (2 * rho)) / get_sigma_gaussian(epsilon, delta)
        assert (1 - 3e-4) * delta <= found <= delta
        assert ratio <= 1.01
        assert (
            ratio >= 0.97
        )  # one count at (3, 1e-5) needs 0.972: exact, and by that much less than continuous
        assert rho >= zcdp_rho(epsilon, delta)


def test_calibration_far_from_the_usual():
    for epsilon, delta, levels in itertools.product(
        (1e-5, 0.01, 10.0, 30.0), (1e-40, 1e-15, 1e-3, 0.3), (1, 3)
    ):
        shares = shares_of("doubling", levels)
        rho, found = gaussian_budget(epsilon, delta, ONE_ROW, shares)
        assert rho >= zcdp_rho(epsilon, delta)
        assert found <= delta or rho == zcdp_rho(epsilon, delta)
        total, found = laplace_budget(epsilon, delta, ONE_ROW, shares)
        assert total >= epsilon
        assert found <= delta or total == epsilon


def test_largest_budget_falls_back_and_copes_with_jumps():
    assert largest_budget(lambda budget: 1.0, 1e-6, at_least=0.25) == 0.25
    assert largest_budget(lambda budget: 1e-9 if budget < 2 else 1.0, 1e-6, at_least=0.25) == pytest.approx(2)
    assert largest_budget(lambda budget: 1e-9 if budget < 2 else 1.0, 1e-6, at_least=0.25) < 2
    assert largest_budget(lambda budget: budget**3, 1e-6, at_least=1e-3) == pytest.approx(1e-2, rel=1e-4)


# --- properties -------------------------------------------------------------------------------------------


@given(
    scales=st.lists(st.floats(0.05, 80), min_size=1, max_size=4),
    epsilon=st.floats(0.01, 8),
    pair=st.sampled_from([(1, 1), (2, 2), (3, 9), (6, 18)]),
)
def test_delta_falls_with_epsilon_and_with_noise(scales, epsilon, pair):
    sensitivity, scales = Sensitivity(l1=pair[0], l2_squared=pair[1]), np.array(scales)
    for bound in (gaussian_delta, laplace_delta):
        delta = bound(epsilon, scales, sensitivity)
        assert 0 <= delta <= 1
        assert bound(1.01 * epsilon, scales, sensitivity) <= delta * (1 + 1e-9)
        assert bound(epsilon, np.append(scales, np.inf), sensitivity) == delta
        assert delta <= bound(epsilon, np.append(scales, 3.0), sensitivity) * 1.01 + 1e-29
        if bound is laplace_delta:
            assert bound(epsilon, 1.01 * scales, sensitivity) <= delta * (1 + 1e-9) + 1e-29
    rho = sensitivity.l2_squared * math.fsum(scales**-2.0) / 2
    assert gaussian_delta(epsilon, scales, sensitivity) <= zcdp_delta(rho, epsilon) * (1 + 1e-9)


@each("scales", [[4.0], [6.0, 15.0], [10.0, 12.0, 15.9], [3.0, 5.0, 8.0, 13.0]])
def test_gaussian_delta_falls_along_a_path_of_scales(scales):
    """Also where levels pass from exact to simulated noise and the grid changes its step."""
    for sensitivity in (ONE_ROW, Sensitivity(l1=2, l2_squared=2), Sensitivity(l1=6, l2_squared=18)):
        path = [gaussian_delta(0.5, np.array(scales) * 1.02**i, sensitivity) for i in range(30)]
        assert all(later < earlier for earlier, later in itertools.pairwise(path))


def test_nothing_measured_costs_nothing():
    assert gaussian_delta(1.0, [np.inf, np.inf], ONE_ROW) == 0
    assert laplace_delta(1.0, [np.inf], ONE_ROW) == 0
    assert laplace_delta(1.0, [], ONE_ROW) == 0


def test_extreme_scales_and_shifts():
    huge = Sensitivity(l1=10**9, l2_squared=10**18)
    assert 0 < gaussian_delta(1.0, [1e12, 1e10], huge) < 1e-6
    assert gaussian_delta(1.0, [1e-3], huge) == 1
    assert gaussian_delta(1.0, [1e-3] * 30, ONE_ROW) == 1
    assert gaussian_delta(1e-9, [1e12], ONE_ROW) < 1e-3
    assert 0 < laplace_delta(1.0, [1.6e9, 1.6e9], huge) < 0.2
    assert laplace_delta(1.0, [1e-3] * 30, ONE_ROW) == pytest.approx(1)


@each("bound", [gaussian_delta, laplace_delta])
def test_arguments_are_checked(bound):
    for epsilon in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ArgumentError, match=r"epsilon.*\nHint: "):
            bound(epsilon, [1.0], ONE_ROW)
    for scales in ([0.0], [1.0, -1.0], [math.nan], 1.0, [[1.0]]):
        with pytest.raises(ArgumentError, match=r"noise_scales.*\nHint: "):
            bound(1.0, scales, ONE_ROW)


@each("delta", [0.0, 1.0, -0.5, math.nan])
def test_the_delta_to_reach_is_checked(delta):
    with pytest.raises(ArgumentError, match=r"delta.*\nHint: "):
        largest_budget(lambda budget: 0.5, delta, at_least=1.0)


# --- several quantities -------------------------------------------------------------------------------------


@each("epsilon", [0.3, 1.0, 3.0])
@each(
    "first, second",
    [((6.0, 1), (9.0, 2)), ((18.0, 4), (25.0, 1)), ((30.0, 7), (14.0, 3)), ((40.0, 1), (40.0, 30))],
)
def test_joint_delta_is_hardly_above_that_of_the_exact_losses(first, second, epsilon):
    exact = listed_delta("gaussian", epsilon, [first, second])
    pairs = [([scale], sum_sensitivity(0, move, neighbors="add_remove")) for scale, move in (first, second)]
    bound = joint_gaussian_delta(epsilon, pairs)
    assert exact <= bound
    if min(first[0] / first[1], second[0] / second[1]) > 4 and exact > 1e-12:
        assert bound <= 1.06 * exact


def test_joint_delta_knows_the_case_of_one_quantity():
    one_row, scales = Sensitivity(l1=1, l2_squared=1), np.array([30.0, 41.0, math.inf, 25.0])
    for epsilon in (0.1, 0.5, 1.0):
        single = gaussian_delta(epsilon, scales, one_row)
        for cut in (1, 2, 3):
            pairs = [(scales[:cut], one_row), (scales[cut:], one_row)]
            assert joint_gaussian_delta(epsilon, pairs) == pytest.approx(single, rel=1e-6)
        moved = [(scales * 7, sum_sensitivity(0, 7, neighbors="add_remove"))]
        assert joint_gaussian_delta(epsilon, moved) == pytest.approx(single, rel=2e-3)


def test_joint_delta_agrees_with_a_peer():
    dp = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    pairs = [(2740.28, 250), (2863.81, 250), (14.43, 1), (15.08, 1)]
    peer = None
    for scale, move in pairs:
        each = dp.from_gaussian_mechanism(scale, sensitivity=move, value_discretization_interval=1e-4)
        peer = each if peer is None else peer.compose(each)
    quantities = [([scale], sum_sensitivity(0, move, neighbors="add_remove")) for scale, move in pairs]
    for epsilon in (0.3, 0.6):
        ours = joint_gaussian_delta(epsilon, quantities)
        assert ours == pytest.approx(peer.get_delta_for_epsilon(epsilon), rel=0.01)


# --- known moves, at any epsilon -----------------------------------------------------------------------


@each("moves", [[(1.3, 1)], [(1.3, 1), (2.1, 3)], [(0.4, 1), (2.0, 2)], [(20.0, 1)], [(20.0, 15), (2.0, 1)]])
def test_known_moves_are_bounded_at_any_epsilon(moves):
    profile = GaussianProfile(moves)
    for epsilon in (-2.0, -0.3, 0.0, 0.4, 1.5):
        exact = listed_profile(epsilon, moves)
        assert exact <= profile.delta(epsilon) * (1 + 1e-13)
        assert profile.delta(epsilon) <= exact * 1.01 + 1e-3 * (moves[0][0] >= 16)


def test_nothing_that_moves_loses_nothing():
    for moves in ([], [(3.0, 0)], [(math.inf, 2)]):
        assert GaussianProfile(moves).delta(0.5) < 1e-50
        assert GaussianProfile(moves).delta(-0.5) == pytest.approx(1 - math.exp(-0.5), rel=1e-12)
