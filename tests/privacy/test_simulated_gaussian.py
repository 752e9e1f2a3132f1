"""Continuous noise in place of discrete noise, beside sums over the discrete one."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import get_sigma_gaussian

from pandas_dptree.privacy import simulated_gaussian
from pandas_dptree.privacy.simulated_gaussian import SimulatedGaussian, continuous_delta
from tests.helpers_cases import each
from tests.helpers_composition import TARGETS, listed_profile, smoothing_of


@each("scale", [0.7, 1.5, 4.0])
@each("width", [1e9, 20.0, 2.0])
def test_continuous_noise_simulates_discrete_noise_up_to_the_stated_factor(scale, width):
    smoothing = smoothing_of(np.array([scale]), 1, 1, width)
    rest = 1 / smoothing.mu
    kernel = math.sqrt(scale**2 - rest**2)
    assert kernel > 0.27
    y, step = np.linspace(-12 * rest, 12 * rest, 20001, retstep=True)  # trapezoid rule: error below 1e-13
    continuous = np.exp(-((y / rest) ** 2) / 2) / (rest * math.sqrt(2 * math.pi)) * step
    whole = np.exp(-((np.arange(-60, 61)[:, None] - y) ** 2) / (2 * kernel**2)).sum(axis=0)
    mass = np.exp(-((np.arange(-60, 61) / scale) ** 2) / 2)
    mass /= mass.sum()
    ratios = [
        mass[60 + z] / (continuous @ (np.exp(-((z - y) ** 2) / (2 * kernel**2)) / whole))
        for z in range(math.ceil(4 * scale))
    ]
    upper, lower = smoothing.log_upper, smoothing.log_upper - smoothing.log_ratio
    assert lower - 1e-12 <= math.log(min(ratios)) <= math.log(max(ratios)) <= upper + 1e-12
    assert math.log(max(ratios) / min(ratios)) > smoothing.log_ratio / 100  # the factor is not idle


def test_factors_multiply_over_levels_and_counts():
    one, other = (smoothing_of(np.array([scale]), 1, 1, 0.5) for scale in (1.1, 3.0))
    both = smoothing_of(np.array([1.1, 3.0]), 4, 4, 2.0)
    assert both.log_upper == pytest.approx(4 * (one.log_upper + other.log_upper), rel=1e-9)
    assert both.log_ratio == pytest.approx(4 * (one.log_ratio + other.log_ratio), rel=1e-9)
    assert both.mu == pytest.approx(2 * math.hypot(one.mu, other.mu), rel=1e-12)
    assert smoothing_of(np.array([0.2, 3.0]), 1, 1, 0.5) is None  # no noise would be left


@each("variance", [0.08, 0.3, 1.0])
def test_theta_is_rounded_up(variance):
    with mpmath.workdps(40):
        exact = 2 * mpmath.nsum(lambda m: mpmath.exp(-2 * mpmath.pi**2 * variance * m**2), [1, mpmath.inf])
        (found,) = simulated_gaussian._theta(np.array([variance]))
        assert exact <= found <= exact * mpmath.mpf("1.0001")


@each("mu", [1e-5, 0.02, 0.24, 1.0, 4.0, 30.0])
def test_continuous_delta_against_50_digits(mu):
    with mpmath.workdps(50):
        for times in (-8.0, -1.0, -0.1, 0.0, 0.5, 3.0, 6.0, 9.0):
            epsilon = times * mu
            e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
            exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            (found,) = continuous_delta(np.array([epsilon]), mu)
            assert exact <= mpmath.mpf(found) * (1 + mpmath.mpf(2) ** -50)
            assert found <= exact * (1 + mpmath.mpf(10) ** -5) + mpmath.mpf(10) ** -60


def test_the_root_of_the_continuous_delta_is_that_of_a_peer():
    for epsilon, delta in TARGETS:
        (found,) = continuous_delta(np.array([epsilon]), 1 / get_sigma_gaussian(epsilon, delta))
        assert found == pytest.approx(delta, rel=1e-6)


def test_simulated_moves_are_bounded_whatever_they_are():
    scales = np.array([18.0, 3.0])
    simulation = SimulatedGaussian(scales, np.array([2.0, 1.0]))
    shifts = [(2, 1), (0, 1), (5, 0), (0, 0)]
    for epsilon in (-0.5, 0.3, 1.0):
        distances = np.array([np.square(shift) @ simulation.inverse_variances for shift in shifts])
        for shift, bound in zip(
            shifts, simulation.delta(np.full(len(shifts), epsilon), distances), strict=True
        ):
            exact = listed_profile(epsilon, list(zip(scales.tolist(), shift, strict=True)))
            assert exact <= bound * (1 + 1e-13) and bound <= 1.2 * exact + 1e-3
    assert SimulatedGaussian(np.array([0.1]), np.ones(1)).delta(np.ones(2), np.ones(2)).tolist() == [1, 1]
