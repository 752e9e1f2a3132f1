"""Additive noise: calibrated within the budget, with exact moments."""

import math
from fractions import Fraction
from typing import get_args

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtri

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.additive import NOISES as BY_NAME
from pandas_dptree.mechanisms.additive import Gaussian, Laplace, Mechanism, candidate_noises
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity, count_sensitivity
from tests.helpers_cases import each
from tests.helpers_estimation import ALL_NOISES, CONFIDENCES, probabilities
from tests.helpers_privacy import ONE_ROW
from tests.helpers_statistics import gaussian_cdf, laplace_cdf

NOISES = list(BY_NAME.values())
sizes = st.floats(1e-5, 1e4)
losses = st.one_of(
    st.builds(lambda e: PrivacyLoss(epsilon=e), sizes),
    st.builds(lambda e, d: PrivacyLoss(epsilon=e, delta=d), sizes, st.floats(1e-12, 0.5)),
    st.builds(lambda r: PrivacyLoss(rho=r), sizes),
)
shares = st.lists(st.one_of(st.just(0.0), st.floats(1e-4, 1)), min_size=1, max_size=12).filter(any)


@given(
    st.sampled_from(NOISES), losses, st.sampled_from(["add_remove", "replace"]), st.integers(1, 40), shares
)
@example(Laplace(), PrivacyLoss(epsilon=0.1), "add_remove", 1, [0.1] * 10)
@example(Gaussian(), PrivacyLoss(rho=0.1), "replace", 7, [1.0] * 3)
def test_levels_never_spend_more_than_the_budget(noise, loss, neighbors, rows, parts):
    if not noise.supports(loss):
        return
    sensitivity = count_sensitivity(neighbors=neighbors, max_contributions=rows)
    scales = noise.noise_scales(loss, sensitivity, parts)
    spent, budget = noise.spent(loss, sensitivity, scales), noise.budget(loss)
    if loss.kind == "approximate":
        assert spent <= budget or noise.delta(loss.epsilon, scales, sensitivity) <= loss.delta
    else:
        assert spent <= budget
    if scales.min() > 1e-3:
        assert spent > budget * Fraction(1 - 1e-14)
    assert [math.isinf(scale) for scale in scales] == [part == 0 for part in parts]


@pytest.mark.parametrize("noise", NOISES)
def test_a_rho_with_a_delta_is_not_taken_for_a_rho(noise):
    loss, scales = PrivacyLoss(rho=0.5, delta=1e-6), [1e12]
    assert not noise.supports(loss) and not noise.keeps_to(loss, ONE_ROW, scales)
    assert noise.keeps_to(PrivacyLoss(rho=0.5), ONE_ROW, scales)
    assert candidate_noises("auto", loss) == []
    for calibrate in (
        lambda: noise.budget(loss),
        lambda: noise.accepted_budget(loss),
        lambda: noise.noise_scales(loss, ONE_ROW, [1.0]),
    ):
        with pytest.raises(ArgumentError, match="`delta` cannot be given together with `rho`"):
            calibrate()


@pytest.mark.parametrize(
    ("noise", "loss", "sensitivity", "expected"),
    [
        (Laplace(), PrivacyLoss(epsilon=2.0), Sensitivity(l1=6, l2_squared=18), 3.0),
        (Laplace(), PrivacyLoss(rho=0.5), Sensitivity(l1=6, l2_squared=18), math.sqrt(18)),
        (Gaussian(), PrivacyLoss(rho=0.5), Sensitivity(l1=6, l2_squared=18), math.sqrt(18)),
    ],
)
def test_scale_of_a_single_level(noise, loss, sensitivity, expected):
    assert noise.noise_scales(loss, sensitivity, [1.0]) == pytest.approx([expected], rel=1e-15)


def test_shares_count_by_their_proportions():
    loss = PrivacyLoss(epsilon=1.0)
    np.testing.assert_array_equal(
        Laplace().noise_scales(loss, ONE_ROW, [1, 3]), Laplace().noise_scales(loss, ONE_ROW, [0.25, 0.75])
    )


def test_variance_power_tells_how_variance_falls_with_the_share():
    for noise, loss in [
        (Laplace(), PrivacyLoss(epsilon=1e-3)),
        (Laplace(), PrivacyLoss(rho=1e-6)),
        (Gaussian(), PrivacyLoss(rho=1e-6)),
    ]:
        one, three = noise.variance(noise.noise_scales(loss, ONE_ROW, [1.0, 3.0]))
        assert one / three == pytest.approx(3 ** noise.variance_power(loss), rel=1e-5)


def test_gaussian_noise_is_never_pure():
    with pytest.raises(ArgumentError, match="delta=1e-6") as error:
        Gaussian().budget(PrivacyLoss(epsilon=1.0))
    assert error.value.argument == "mechanism"


@pytest.mark.parametrize(("loss", "argument"), [({"epsilon": 1e-13}, "epsilon"), ({"rho": 1e-25}, "rho")])
def test_a_loss_too_small_to_be_had_is_refused(loss, argument):
    with pytest.raises(ArgumentError, match="too small") as error:
        Laplace().noise_scales(PrivacyLoss(**loss), ONE_ROW, [1.0])
    assert error.value.argument == argument


def test_extreme_losses_keep_the_scales_in_range():
    assert Laplace().noise_scales(PrivacyLoss(epsilon=1e300), ONE_ROW, [1.0]) == [1e-3]
    assert Gaussian().noise_scales(PrivacyLoss(rho=1e300), ONE_ROW, [1.0]) == [1e-3]
    with pytest.raises(ArgumentError, match="too small"):
        Gaussian().noise_scales(PrivacyLoss(rho=1e-300), ONE_ROW, [1.0, 1e-300])


@each("parts", [[], [0.0, 0.0], [0.5, -0.5], [math.nan], [math.inf, 1], [[0.5, 0.5]]])
def test_invalid_shares_are_refused(parts):
    with pytest.raises(ArgumentError, match="split"):
        Laplace().noise_scales(PrivacyLoss(epsilon=1.0), ONE_ROW, parts)


EXPONENTS = {"laplace": lambda x: x, "gaussian": lambda x: x**2 / 2}
"""Of the probabilities, by the name of the noise."""


@each("scale", [0.02, 0.05, 0.1, 0.3, 0.7, 1.0, 1.5, 1.99, 2.0, 2.01, 3.0, 10.0])
@pytest.mark.parametrize("noise", [BY_NAME[name] for name in EXPONENTS], ids=lambda noise: noise.name)
def test_variance_is_that_of_the_discrete_distribution(noise, scale):
    with mpmath.workdps(30):
        b = mpmath.mpf(scale)
        mass = [mpmath.exp(-EXPONENTS[noise.name](k / b)) for k in range(1, int(80 * scale) + 30)]
        exact = 2 * sum(k**2 * m for k, m in enumerate(mass, 1)) / (1 + 2 * sum(mass))
    if exact > 1e-300:
        assert float(noise.variance(scale) / exact) == pytest.approx(1, rel=1e-13)
    else:
        assert noise.variance(scale) == 0


@pytest.mark.parametrize(("noise", "factor"), [(Laplace(), 2.0), (Gaussian(), 1.0)])
def test_variance_at_both_ends(noise, factor):
    scales = np.array([1e6, 1e12])
    np.testing.assert_allclose(noise.variance(scales), factor * scales**2, rtol=1e-12)
    assert noise.variance([1e-3, math.inf]).tolist() == [0.0, math.inf]


@pytest.mark.parametrize("scale", [0.4, 1.0, 30.0])
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_variance_is_that_of_the_draws(noise, scale):
    draws = noise.sample(scale, 400_000, byte_source(np.random.default_rng(5)))
    # The standard error of the ratio is sqrt((kurtosis - 1) / n), below 0.5 % here.
    assert np.mean(draws.astype(float) ** 2) / noise.variance(scale) == pytest.approx(1, abs=0.02)


def test_every_kind_is_chosen_by_its_name():
    assert get_args(Mechanism) == ("auto", *BY_NAME)
    assert all(noise.name == name for name, noise in BY_NAME.items())


def test_auto_leaves_the_kinds_to_choose_from_that_support_the_loss():
    pure, approximate = PrivacyLoss(epsilon=1.0), PrivacyLoss(epsilon=1.0, delta=1e-6)
    assert candidate_noises("auto", pure) == [noise for noise in NOISES if noise != Gaussian()]
    assert candidate_noises("auto", approximate) == NOISES
    assert candidate_noises("gaussian", pure) == [Gaussian()]  # which then says what is wrong


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_composition_gain_is_the_noise_that_tight_composition_spares(noise):
    loss, even = PrivacyLoss(epsilon=1.0, delta=1e-6), np.ones(20)
    scales = noise.noise_scales(loss, ONE_ROW, even)
    plain = scales * noise.composition_gain(loss, ONE_ROW, even)
    assert noise.spent(loss, ONE_ROW, plain) == pytest.approx(noise.budget(loss), rel=1e-9)
    assert plain[0] > scales[0]
    assert noise.composition_gain(PrivacyLoss(rho=1.0), ONE_ROW, even) == 1


@each("scale", [0.05, 0.3, 0.7, 1.0, 1.9, 2.1, 30.0])
@pytest.mark.parametrize("noise", ALL_NOISES, ids=lambda noise: noise.name)
def test_fourth_cumulant_is_that_of_the_discrete_distribution(noise, scale):
    k, mass = probabilities(noise, scale)
    second, fourth = (k**2 * mass).sum(), (k.astype(float) ** 4 * mass).sum()
    rounding = 1e-12 * fourth  # of the difference
    assert noise.fourth_cumulant(scale) == pytest.approx(fourth - 3 * second**2, rel=1e-11, abs=rounding)


@pytest.mark.parametrize("noise", ALL_NOISES, ids=lambda noise: noise.name)
def test_scales_keep_their_shape_and_inf_stands_for_no_measurement(noise):
    scales = np.array([[1e-3, 1.0, math.inf], [1.0, 1e12, 3.0]])
    fourth, widths = noise.fourth_cumulant(scales), noise.half_width(scales, 0.9)
    assert fourth.shape == widths.shape == scales.shape
    assert fourth[0, 0] == fourth[0, 2] == widths[0, 0] == 0
    assert math.isinf(widths[0, 2])
    assert fourth[0, 1] == fourth[1, 0] == noise.fourth_cumulant(1.0)
    relative = {"laplace": math.log(10), "gaussian": ndtri(0.95)}[noise.name]
    assert widths[1, 1] == pytest.approx(relative * 1e12, rel=1e-9)


@each("scale", [0.05, 0.2, 0.45, 1.0, 2.5, 9.99, 10.0, 10.01, 37.0, 190.0, 1000.0])
@pytest.mark.parametrize(("noise", "cdf"), [(Laplace(), laplace_cdf), (Gaussian(), gaussian_cdf)])
def test_half_width_is_the_least_that_holds_the_noise(noise, cdf, scale):
    below = cdf(scale)
    for confidence in [0.5, *CONFIDENCES]:
        t = int(noise.half_width(scale, confidence))
        assert below(t) - below(-t - 1) >= confidence - 2e-7
        assert t == 0 or below(t - 1) - below(-t) < confidence + 2e-7
