"""Noise calibrated within the budget, its exact variance, and the one place where it is added."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.additive import NOISES as BY_NAME
from pandas_dptree.mechanisms.additive import AdditiveNoise, Gaussian, Laplace, Mechanism, candidate_noises
from pandas_dptree.mechanisms.measure import measure
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity, count_sensitivity

ONE_ROW = Sensitivity(l1=1, l2_squared=1)
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
    if not noise.can_give(loss):
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


@pytest.mark.parametrize("parts", [[], [0.0, 0.0], [0.5, -0.5], [math.nan], [math.inf, 1], [[0.5, 0.5]]])
def test_shares_that_are_none_are_refused(parts):
    with pytest.raises(ArgumentError, match="split"):
        Laplace().noise_scales(PrivacyLoss(epsilon=1.0), ONE_ROW, parts)


EXPONENTS = {"laplace": lambda x: x, "gaussian": lambda x: x**2 / 2}
"""Of the probabilities, by the name of the noise."""


@pytest.mark.parametrize("scale", [0.02, 0.05, 0.1, 0.3, 0.7, 1.0, 1.5, 1.99, 2.0, 2.01, 3.0, 10.0])
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
    assert all(noise.name == name and noise.in_words for name, noise in BY_NAME.items())


def test_auto_leaves_the_kinds_to_choose_from_that_can_give_the_loss():
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


@dataclass(frozen=True)
class Known(AdditiveNoise):
    """Noise that everybody knows."""

    name = "known"
    value: int

    def budget(self, loss):
        raise NotImplementedError

    _cost = variance = fourth_cumulant = half_width = squared_excess = delta = budget

    def sample(self, noise_scale, size, source):
        return np.full(size, self.value * int(noise_scale))


def test_measure_adds_noise_of_each_levels_scale_and_leaves_levels_out():
    counts = [np.array([7]), np.array([3, 4]), np.array([1, 2, 4])]
    noisy = measure(Known(10), counts, [2.0, math.inf, 1.0], byte_source(None))
    assert noisy[1] is None
    assert [noisy[0].tolist(), noisy[2].tolist()] == [[27], [11, 12, 14]]
    assert all(level.dtype == np.int64 for level in (noisy[0], noisy[2]))
    assert counts[0].tolist() == [7]


def test_measure_leaves_single_nodes_of_a_level_out():
    counts = [np.array([3, 4, 5, 6]), np.array([8, 9])]
    scales = [np.array([2.0, math.inf, 1.0, 2.0]), np.array([math.inf, math.inf])]
    some, none = measure(Known(10), counts, scales, byte_source(None))
    assert some.tolist() == [23, 0, 15, 26] and none is None


@pytest.mark.parametrize("scales", [[1e9], [1e9, 3e9]])
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_each_node_has_noise_of_its_own_and_of_its_scale(noise, scales):
    counts, source = np.arange(2000), byte_source(np.random.default_rng(6))
    each = np.array(scales) if len(scales) == 1 else np.resize(scales, len(counts))
    (noisy,) = measure(noise, [counts], [each], source)
    drawn = noisy - counts
    assert len(np.unique(drawn)) > 1990
    for scale in scales:
        of_scale = drawn[np.broadcast_to(each, len(counts)) == scale]
        assert np.mean(of_scale.astype(float) ** 2) == pytest.approx(float(noise.variance(scale)), rel=0.3)


@pytest.mark.parametrize("noise", [2**62, -(2**62)])
def test_measure_ends_at_the_largest_integer(noise):
    counts = np.array([0, 1, 2**61 - 1, 2**61])
    (noisy,) = measure(Known(noise), [counts], [1.0], byte_source(None))
    assert noisy.tolist() == [2**61 if noise > 0 else -(2**61)] * len(counts)


def test_measure_wants_one_scale_a_level():
    with pytest.raises(ValueError, match="zip"):
        measure(Known(1), [np.array([1])], [1.0, 1.0], byte_source(None))


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_measured_counts_are_unbiased(noise):
    counts = np.full(100_000, 1000)
    (noisy,) = measure(noise, [counts], [5.0], byte_source(np.random.default_rng(3)))
    assert noisy.mean() == pytest.approx(1000, abs=5 * math.sqrt(float(noise.variance(5.0)) / len(counts)))
