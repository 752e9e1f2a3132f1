"""Error measures in closed form, beside exact sums and draws."""

import math

import mpmath
import numpy as np
import pytest

import pandas_dptree as dpt
from pandas_dptree import Gaussian, Laplace, Tree, theory
from pandas_dptree.estimation.least_squares import least_squares
from pandas_dptree.mechanisms.sampling import byte_source
from tests.helpers_cases import each
from tests.helpers_statistics import gaussian_cdf, laplace_cdf

NOISES = [Laplace(), Gaussian()]
ALPHAS = [0.0, 0.05, 0.3, 1.0]
TRUTHS = np.array([0, 1, 3, 10, 40, 333, 2000])


def exact_excess(noise, scale, t):
    """Mean squared excess of the discrete distribution over t, in 50 digits, by summation by parts."""
    cdf = laplace_cdf(scale) if noise == Laplace() else gaussian_cdf(scale)
    first, reach = math.floor(t) + 1, math.ceil(130 * scale) + 5
    beyond = [1 - cdf(k - 1) for k in range(first, first + reach)]
    t = mpmath.mpf(t)
    gains = [(k - t) ** 2 - (max(k - 1 - t, 0)) ** 2 for k in range(first, first + reach)]
    return float(2 * sum(gain * tail for gain, tail in zip(gains, beyond, strict=True)))


@pytest.mark.parametrize(
    "scale", [0.05, 0.6, 1.0, 4.3, 9.9, 10.0, pytest.param(30.0, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_prediction_is_the_exact_sum(noise, scale):
    for t in [0.0, 0.4, 1.0, 2.5, 3 * scale, 5.3 * scale]:
        exact = exact_excess(noise, scale, t)
        predicted = float(theory.predicted_alpha_rmse(noise, scale, t, 1.0)) ** 2
        absolute = 2e-8 * scale**2 if noise == Gaussian() and scale >= 10 else 0
        assert predicted == pytest.approx(exact, rel=1e-9, abs=max(absolute, 1e-25))


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_prediction_is_what_draws_show(noise, continuous):
    n, scale, rng = 400_000, 7.3, np.random.default_rng(5)
    if continuous:
        draws = rng.laplace(scale=scale, size=n) if noise == Laplace() else rng.normal(scale=scale, size=n)
    else:
        draws = noise.sample(scale, n, byte_source(rng))
    truth = np.array([0, 20, 100, 150])
    excess = np.maximum(np.abs(draws[:, None]) - 0.1 * truth, 0) ** 2
    error = excess.std(axis=0) / math.sqrt(n)
    predicted = theory.predicted_alpha_rmse(noise, scale, truth, 0.1, continuous=continuous)
    assert (np.abs(predicted**2 - excess.mean(axis=0)) < 4.5 * error).all()
    assert (error < 0.02 * predicted**2).all()  # so that the line above says something


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_no_tolerance_helps_where_the_count_is_zero(noise):
    scales = np.array([0.01, 0.5, 3.0, 12.0, 1e6, 1e12])[:, None]
    std_errors = np.sqrt(noise.variance(scales))
    for alpha in ALPHAS:
        for continuous in (False, True):
            rmse = theory.predicted_alpha_rmse(noise, scales, TRUTHS, alpha, continuous=continuous)
            assert (np.diff(rmse, axis=1) <= 1e-12 * rmse[:, :-1]).all()  # the larger, the better
            if not continuous:
                assert rmse[:, :1] == pytest.approx(std_errors, rel=1e-8)
        estimate = theory.estimate_alpha_rmse(std_errors**2, noise.fourth_cumulant(scales), TRUTHS, alpha)
        assert (np.diff(estimate, axis=1) <= 1e-12 * estimate[:, :-1]).all()
        assert estimate[:, :1] == pytest.approx(std_errors, rel=1e-8)


def test_scales_may_differ_and_inf_is_no_measurement():
    scales = np.array([[3.0, math.inf, 12.0], [1.0, 3.0, 1e12]])
    truth = np.array([5.0, 50.0, 500.0])
    for noise in NOISES:
        rmse = theory.predicted_alpha_rmse(noise, scales, truth, 0.2)
        assert rmse.shape == (2, 3)
        assert math.isinf(rmse[0, 1])
        for place in np.ndindex(2, 3):
            alone = theory.predicted_alpha_rmse(noise, scales[place], -truth[place[1]], 0.2)
            assert alone == rmse[place]
    assert theory.predicted_alpha_rmse(Gaussian(), np.zeros(0), np.zeros(0), 0.1).shape == (0,)


def test_estimates_of_known_and_unmeasured_counts():
    rmse = theory.estimate_alpha_rmse([0.0, math.inf, 2.0, 1e-300], [0.0, 0.0, -1e-9, 1.0], 3.0, 0.1)
    assert rmse[0] == 0
    assert math.isinf(rmse[1])
    normal = theory.predicted_alpha_rmse(Gaussian(), math.sqrt(2), 3.0, 0.1, continuous=True)
    assert rmse[2] == pytest.approx(normal, rel=1e-12)
    assert 0 <= rmse[3] < 1e-100


@each("alpha", ALPHAS)
def test_estimate_of_a_single_continuous_noise_is_exact(alpha):
    laplace = theory.estimate_alpha_rmse(2 * 81.0, 12 * 9.0**4, TRUTHS, alpha)
    expected = theory.predicted_alpha_rmse(Laplace(), 9.0, TRUTHS, alpha, continuous=True)
    assert laplace == pytest.approx(expected, rel=1e-6, abs=1e-9)
    normal = theory.estimate_alpha_rmse(81.0, 0.0, TRUTHS, alpha)
    expected = theory.predicted_alpha_rmse(Gaussian(), 9.0, TRUTHS, alpha, continuous=True)
    assert normal == pytest.approx(expected, rel=1e-6, abs=1e-9)


@each("weights", [[1, 1], [1, 1, 1], [1] * 5, [1, 0.5], [1, 0.7, 0.2], [1] + [0.1] * 20])
@each("normal", [0.0, 0.5, 2.0])
def test_estimates_from_several_laplace_variables(weights, normal):
    # The distribution on a fine grid, from its characteristic function.
    n, span = 2**16, 300.0
    x = (np.arange(n) - n // 2) * (span / n)
    frequency = 2 * np.pi * np.fft.fftfreq(n, span / n)
    transform = np.exp(-((frequency * normal) ** 2) / 2)
    for weight in weights:
        transform = transform / (1 + (weight * frequency) ** 2)
    mass = np.fft.fftshift(np.fft.ifft(transform).real)
    variance = 2 * sum(w**2 for w in weights) + normal**2
    tolerance = np.linspace(0, 8, 30) * math.sqrt(variance)
    excess = (mass[:, None] * np.maximum(np.abs(x)[:, None] - tolerance, 0) ** 2).sum(axis=0)
    rmse = theory.estimate_alpha_rmse(variance, 12 * sum(w**4 for w in weights), tolerance, 1.0)
    exact = np.sqrt(np.maximum(excess, 0))
    assert np.abs(rmse - exact).max() < 0.006 * math.sqrt(variance)
    single = theory.predicted_alpha_rmse(Laplace(), math.sqrt(variance / 2), tolerance, 1.0, continuous=True)
    if normal or len(weights) > 2:
        assert np.abs(rmse - exact).max() < np.abs(single - exact).max() / 3  # the cumulant matters


def test_a_plan_predicts_the_alpha_rmse_of_its_estimates():
    tree = Tree(tuple(map(np.array, ([3], [1, 2, 4]))))
    plan = dpt.plan(tree, epsilon=0.3, consistency="linear")
    truth = tree.roll_up(np.array([0, 3, 200, 40, 0, 1000, 7]))
    predicted = [
        theory.estimate_alpha_rmse(variance, fourth, z, 0.02)
        for variance, fourth, z in zip(plan._variances.final, plan.error_cumulants, truth, strict=True)
    ]
    rng, n = np.random.default_rng(1), 4000
    noise = [
        plan.noise.sample(scale, n * size, byte_source(rng)).reshape(n, size)
        if math.isfinite(scale)
        else np.zeros((n, size))
        for scale, size in zip(plan.noise_scales, tree.level_sizes, strict=True)
    ]
    errors = [
        least_squares(tree, [level[release] for level in noise], plan._variances) for release in range(n)
    ]
    for level, z in enumerate(truth):
        estimates = np.array([error[level] for error in errors]) + z
        squares = np.maximum(np.abs(estimates - z) - 0.02 * z, 0) ** 2
        spread = squares.std(axis=0) / math.sqrt(n) + 0.01 * squares.mean(axis=0)
        assert (np.abs(predicted[level] ** 2 - squares.mean(axis=0)) < 4.5 * spread).all()
        assert (squares.mean(axis=0) > 0).all()
