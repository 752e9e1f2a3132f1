"""Noise that ends at a radius: its privacy, its moments, its distribution, and what is refused."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.sampling import byte_source, truncated_discrete_laplace
from pandas_dptree.mechanisms.truncated import TruncatedLaplace, _lowest, _power_sums
from tests.helpers_cases import each
from tests.helpers_random import seeded_bytes
from tests.helpers_statistics import audited_epsilon, edges, fit, truncated_laplace_cdf

ratios = st.fractions(0, 1, max_denominator=50).filter(lambda q: 0 < q < 1)


def probabilities(q, radius):
    """The probabilities of -radius … radius."""
    weights = {x: q ** abs(x) for x in range(-radius, radius + 1)}
    total = sum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


def hockey_stick(masses, moved, factor):
    """The exact delta: the most by which P(S) exceeds factor * P'(S)."""
    return sum(max(mass - factor * moved.get(x, 0), 0) for x, mass in masses.items())


@given(ratios, st.integers(1, 12), st.data())
def test_delta_of_a_shift_is_exact_in_rational_numbers(q, radius, data):
    shift = data.draw(st.integers(1, radius))
    masses = probabilities(q, radius)
    delta = _lowest(shift, q, radius)
    for sign in (-1, 1):
        moved = {x + sign * shift: mass for x, mass in masses.items()}
        assert hockey_stick(masses, moved, q**-shift) == delta
    assert _lowest(1, q, radius) == q**radius * (1 - q) / (1 + q - 2 * q ** (radius + 1))


@given(ratios, st.integers(2, 5), st.data())
def test_several_values_cost_no_more_than_one_that_moves_as_far(q, radius, data):
    one = data.draw(st.integers(1, radius - 1))
    other = data.draw(st.integers(1, radius - one))
    masses = probabilities(q, radius)
    both = {(x, y): p * r for x, p in masses.items() for y, r in masses.items()}
    moved = {(x + one, y - other): p for (x, y), p in both.items()}
    assert hockey_stick(both, moved, q ** -(one + other)) <= _lowest(one + other, q, radius)


@given(ratios, st.integers(1, 30))
def test_power_sums_are_exact_in_rational_numbers(q, radius):
    assert _power_sums(q, radius) == [sum(x**m * q**x for x in range(1, radius + 1)) for m in range(5)]


@given(
    st.floats(1e-9, 50),
    st.floats(1e-30, 0.999) | st.floats(1e-300, 1e-30),
    st.integers(1, 9) | st.just(10**6),
)
@example(1.1e-12, 0.1, 1)
@example(1e-6, 1e-300, 1)
@example(5.0, math.nextafter(1.0, 0.0), 7)
@example(1.0, 0.5, 2)
def test_the_radius_is_the_smallest_that_is_private(epsilon, delta, sensitivity):
    if sensitivity / epsilon > 1e12:
        return
    noise = TruncatedLaplace(epsilon, delta, sensitivity)
    assert Fraction(noise.noise_scale) >= sensitivity / Fraction(epsilon)
    assert noise.noise_scale == pytest.approx(sensitivity / epsilon, rel=1e-15)

    def delta_of(radius):
        with mpmath.workdps(80):
            q = mpmath.exp(-1 / mpmath.mpf(noise.noise_scale))
            over = q ** (radius + 1 - sensitivity) * (1 - q**sensitivity)
            return over / (1 + q - 2 * q ** (radius + 1))

    spent = delta_of(noise.radius)
    assert spent <= noise.delta_spent <= delta
    assert float(spent) == pytest.approx(noise.delta_spent, rel=3e-16)
    assert noise.radius >= sensitivity
    if noise.radius > sensitivity:
        assert delta_of(noise.radius - 1) > delta


@given(st.floats(1e-6, 20), st.floats(1e-20, 0.999))
def test_the_radius_is_the_continuous_one_rounded_to_the_nearest_at_most(epsilon, delta):
    continuous = math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon
    radius = TruncatedLaplace(epsilon, delta).radius
    slack = 1e-9 * continuous
    assert continuous - 1 - slack <= radius < max(continuous + 0.5 + slack, 1.5)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity"),
    [(1.0, 1e-6, 1), (0.01, 1e-9, 3), (1e-4, 1e-9, 1), (1e-6, 0.1, 1), (1e-6, 0.4, 1), (2e-6, 1e-6, 1),
     (40.0, 1e-9, 1), pytest.param(1e-6, 1e-6, 4, marks=pytest.mark.slow), (300.0, 1e-200, 1)],
)  # fmt: skip
def test_moments_are_those_of_the_distribution(epsilon, delta, sensitivity):
    noise = TruncatedLaplace(epsilon, delta, sensitivity)
    if noise.radius <= 20_000:
        with mpmath.workdps(60):
            q = mpmath.exp(-1 / mpmath.mpf(noise.noise_scale))
            weights = [q**x for x in range(1, noise.radius + 1)]
            total = 1 + 2 * mpmath.fsum(weights)
            second, fourth = (
                2 * mpmath.fsum(x**m * weight for x, weight in enumerate(weights, 1)) / total for m in (2, 4)
            )
            exact, tolerance = (second, fourth - 3 * second**2), 1e-15
    else:
        x = np.arange(1, noise.radius + 1, dtype=np.longdouble)
        weights = np.exp(-x / noise.noise_scale)
        total = 1 + 2 * weights.sum()
        second, fourth = (2 * (x**m * weights).sum() / total for m in (2, 4))
        exact, tolerance = (second, fourth - 3 * second**2), 1e-12
    assert noise.variance == pytest.approx(float(exact[0]), rel=tolerance, abs=0)
    assert noise.fourth_cumulant == pytest.approx(float(exact[1]), rel=tolerance, abs=0)


def test_moments_of_noise_of_any_size_are_finite():
    nothing = TruncatedLaplace(1e300, 1e-6, 7)
    assert (nothing.radius, nothing.variance, nothing.fourth_cumulant) == (7, 0.0, 0.0)
    assert 0 < nothing.delta_spent < 1e-300
    wide = TruncatedLaplace(1.01e-12, 1e-300)
    assert wide.variance == pytest.approx(2 * wide.noise_scale**2, rel=1e-9)
    assert wide.fourth_cumulant == pytest.approx(12 * wide.noise_scale**4, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 0.01), (0.1, 1e-3), (0.1, 1e-6), (1e-5, 1e-6)])
def test_draws_follow_the_distribution(epsilon, delta):
    noise = TruncatedLaplace(epsilon, delta)
    draws = noise.sample(100_000, byte_source(np.random.default_rng(3)))
    scale, bins = noise.noise_scale, edges(noise.noise_scale)
    assert fit(draws, truncated_laplace_cdf(scale, noise.radius), bins) > 1e-3
    for wrong in (0.9, 1.1):
        assert fit(draws, truncated_laplace_cdf(wrong * scale, noise.radius), bins) < 1e-9
    error = math.sqrt((noise.fourth_cumulant / noise.variance**2 + 2) / len(draws))
    assert np.mean(draws.astype(float) ** 2) == pytest.approx(noise.variance, rel=5 * error)


def test_release_adds_the_noise_and_never_leaves_the_radius():
    noise = TruncatedLaplace(1.0, 0.05)
    values = np.arange(40_000).reshape(4, -1)
    noisy = noise.release(values, rng=np.random.default_rng(1))
    assert noisy.shape == values.shape
    assert noisy.dtype == np.int64
    np.testing.assert_array_equal(
        (noisy - values).ravel(), noise.sample(40_000, byte_source(np.random.default_rng(1)))
    )
    assert abs(noisy - values).max() == noise.radius
    low, high = noise.interval(noisy)
    assert ((low <= values) & (values <= high)).all()
    assert (high - low == 2 * noise.radius).all()


@each("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.int64])
def test_values_of_every_integer_type_are_released_as_int64(dtype):
    noisy = TruncatedLaplace(1.0, 1e-6).release(np.array([100, 0], dtype=dtype))
    assert noisy.dtype == np.int64
    assert (abs(noisy - [100, 0]) <= 14).all()


def test_the_largest_values_neither_overflow_nor_leave_their_interval():
    noise = TruncatedLaplace(1e-11, 1e-300)
    values = np.array([2**63 - 1, 2**64 - 1], dtype=np.uint64)
    for clipped, noisy in [
        (2**61, noise.release(values)),
        (-(2**61), noise.release(np.array([-(2**63), -(2**61)]))),
    ]:
        assert (abs(noisy - clipped) <= noise.radius).all()
        low, high = noise.interval(noisy)
        assert ((low <= clipped) & (clipped <= high)).all()


def test_release_of_one_number_and_of_none():
    noise = TruncatedLaplace(1.0, 1e-6)
    assert abs(int(noise.release(5)) - 5) <= 14
    assert noise.release(np.zeros((0, 3), dtype=int)).shape == (0, 3)


@each(
    "arguments, name",
    [
        ((0, 1e-6), "epsilon"), ((-1.0, 1e-6), "epsilon"), ((math.nan, 1e-6), "epsilon"),
        ((math.inf, 1e-6), "epsilon"), (("1", 1e-6), "epsilon"), ((1e-13, 1e-6), "epsilon"),
        ((1.0, 0.0), "delta"), ((1.0, 1.0), "delta"), ((1.0, -0.1), "delta"), ((1.0, math.nan), "delta"),
        ((1.0, 1e-6, 0), "sensitivity"), ((1.0, 1e-6, 1.5), "sensitivity"),
        ((1.0, 1e-6, True), "sensitivity"), ((1.0, 1e-6, 2**62), "sensitivity"),
    ],
)  # fmt: skip
def test_arguments_out_of_range_are_refused(arguments, name):
    with pytest.raises(ArgumentError, match="Hint") as error:
        TruncatedLaplace(*arguments)
    assert error.value.argument == name


def test_values_and_generators_of_another_type_are_refused():
    noise = TruncatedLaplace(1.0, 1e-6)
    for values in ([1.0], ["1"], [True], None):
        with pytest.raises(ArgumentError, match="Hint") as error:
            noise.release(values)
        assert error.value.argument == "values"
    with pytest.raises(ArgumentError, match="default_rng") as error:
        noise.release([1], rng=0)
    assert error.value.argument == "rng"


RUNS = 100_000


# Audits -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity"), [(1.0, 0.02, 1), (0.5, 0.05, 1), (1.0, 0.02, 3)]
)
def test_truncated_noise_loses_no_more_than_it_claims(epsilon, delta, sensitivity):
    noise = TruncatedLaplace(epsilon, delta, sensitivity)

    def audited(scale, radius):
        one, other = (truncated_discrete_laplace(scale, radius, RUNS, seeded_bytes(seed)) for seed in (1, 2))
        return audited_epsilon(one, other + sensitivity, delta=delta)

    assert 0.5 * epsilon < audited(noise.noise_scale, noise.radius) <= epsilon
    assert audited(noise.noise_scale / 2, noise.radius) > epsilon
    assert audited(noise.noise_scale, noise.radius * 2 // 3) > epsilon


def test_delta_is_that_of_the_decimal_where_the_float_is_above_it():
    """These deltas are spent to the last digit, so the least by which a float exceeds its decimal decides."""
    decided = 0
    for epsilon in (0.3, 1.0, 2.5):
        for radius in range(3, 60, 4):
            for k in (1, 3):
                tight = TruncatedLaplace(epsilon, 0.01 * math.exp(-epsilon * radius / k), k)
                noise = TruncatedLaplace(epsilon, tight.delta_spent, k)
                allowed = min(Fraction(noise.delta), Fraction(repr(noise.delta)))
                assert Fraction(noise.delta_spent) <= allowed
                above = Fraction(noise.delta) > allowed
                assert noise.radius == tight.radius + above
                decided += above
    assert decided > 20
