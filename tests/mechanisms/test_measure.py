"""The one place where noise is added: its scale at each node, and what an audit finds."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from pandas_dptree.mechanisms.additive import NOISES as BY_NAME
from pandas_dptree.mechanisms.additive import AdditiveNoise, Gaussian, Laplace
from pandas_dptree.mechanisms.measure import measure
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.helpers_random import seeded_bytes
from tests.helpers_statistics import audited_epsilon

NOISES = list(BY_NAME.values())


@dataclass(frozen=True)
class Known(AdditiveNoise):
    """Noise that everybody knows."""

    name = "known"
    value: int

    def budget(self, loss):
        raise NotImplementedError

    _cost = variance = scales_of = fourth_cumulant = half_width = squared_excess = delta = level_loss = budget

    def sample(self, noise_scale, size, source):
        return np.full(size, self.value * int(noise_scale))


def test_measure_adds_noise_of_each_levels_scale_and_leaves_levels_out():
    counts = [np.array([7]), np.array([3, 4]), np.array([1, 2, 4])]
    noisy = measure(Known(10), counts, [2.0, math.inf, 1.0], byte_source(None))
    assert noisy[1] is None
    assert [noisy[0].tolist(), noisy[2].tolist()] == [[27], [11, 12, 14]]
    assert all(level.dtype == np.int64 for level in (noisy[0], noisy[2]))
    assert counts[0].tolist() == [7]


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_each_node_has_noise_of_its_own(noise):
    counts, source = np.arange(2000), byte_source(np.random.default_rng(6))
    (noisy,) = measure(noise, [counts], [1e9], source)
    drawn = noisy - counts
    assert len(np.unique(drawn)) > 1990
    assert np.mean(drawn.astype(float) ** 2) == pytest.approx(float(noise.variance(1e9)), rel=0.3)


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


RUNS = 100_000
# A tree of one leaf has two levels with the same count; an added row moves both by one.
ONE_ROW = count_sensitivity(neighbors="add_remove")


def measured(noise, scales, count, seed):
    """Both levels of many trees of one leaf: shape (RUNS, 2)."""
    levels = measure(noise, [np.full(RUNS, count)] * 2, scales, seeded_bytes(seed))
    return np.stack(levels, axis=1)


# Audits -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "loss"),
    [
        (Laplace(), PrivacyLoss(epsilon=2.0)),
        (Laplace(), PrivacyLoss(epsilon=1.0, delta=0.01)),
        (Gaussian(), PrivacyLoss(epsilon=2.0, delta=0.01)),
        (Gaussian(), PrivacyLoss(epsilon=1.0, delta=0.05)),
    ],
    ids=str,
)
def test_additive_noise_loses_no_more_than_it_claims_and_half_of_it_does(noise, loss):
    scales = noise.noise_scales(loss, ONE_ROW, [1.0, 2.0])
    audited, with_half = (
        audited_epsilon(measured(noise, each, 10, 1), measured(noise, each, 11, 2), delta=loss.delta)
        for each in (scales, scales / 2)
    )
    assert 0.5 * loss.epsilon < audited <= loss.epsilon < with_half
