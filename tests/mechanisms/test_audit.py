"""Mechanisms run on neighbouring inputs: what they are seen to lose is no more than they claim."""

import math

import numpy as np
import pytest

from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.mechanisms.measure import measure
from pandas_dptree.mechanisms.sampling import byte_source, truncated_discrete_laplace
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.helpers_statistics import audited_epsilon

RUNS = 100_000


def seeded(*seed):
    return byte_source(np.random.default_rng(seed))


# The helper ---------------------------------------------------------------------------------------------


def responses(epsilon, truth, size, rng):
    """Randomised response, whose loss is exactly epsilon."""
    return (rng.random(size) < 1 / (1 + math.exp(-epsilon))) == truth


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_audit_comes_close_to_the_truth(epsilon):
    rng = np.random.default_rng(1)
    found = audited_epsilon(responses(epsilon, True, RUNS, rng), responses(epsilon, False, RUNS, rng))
    assert 0.7 * epsilon < found < epsilon


def test_the_audit_is_seldom_above_the_truth():
    rng = np.random.default_rng(2)
    above = [
        audited_epsilon(responses(1.0, True, 2000, rng), responses(1.0, False, 2000, rng), confidence=0.8) > 1
        for _ in range(300)
    ]
    assert np.mean(above) < 0.2


def test_the_audit_finds_nothing_where_nothing_is():
    rng = np.random.default_rng(3)
    assert audited_epsilon(rng.integers(0, 50, 10_000), rng.integers(0, 50, 10_000)) < 0.1


def test_the_audit_sees_what_only_one_of_two_can_give():
    always = np.zeros((20_000, 2), dtype=int)
    sometimes = always.copy()
    sometimes[::10] = 1
    for one, other in ((always, sometimes), (sometimes, always)):
        assert audited_epsilon(one, other) > 4
        assert audited_epsilon(one, other, delta=0.05) > 4
        assert audited_epsilon(one, other, delta=0.11) < 0.1


# The mechanisms -----------------------------------------------------------------------------------------

# A tree of one leaf has two levels with the same count; an added row moves both by one.
ONE_ROW = count_sensitivity(neighbors="add_remove")


def measured(noise, scales, count, seed):
    """Both levels of many trees of one leaf: shape (RUNS, 2)."""
    levels = measure(noise, [np.full(RUNS, count)] * 2, scales, seeded(seed))
    return np.stack(levels, axis=1)


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity"), [(1.0, 0.02, 1), (0.5, 0.05, 1), (1.0, 0.02, 3)]
)
def test_truncated_noise_loses_no_more_than_it_claims(epsilon, delta, sensitivity):
    noise = TruncatedLaplace(epsilon, delta, sensitivity)

    def audited(scale, radius):
        one, other = (truncated_discrete_laplace(scale, radius, RUNS, seeded(seed)) for seed in (1, 2))
        return audited_epsilon(one, other + sensitivity, delta=delta)

    assert 0.5 * epsilon < audited(noise.noise_scale, noise.radius) <= epsilon
    assert audited(noise.noise_scale / 2, noise.radius) > epsilon
    assert audited(noise.noise_scale, noise.radius * 2 // 3) > epsilon
