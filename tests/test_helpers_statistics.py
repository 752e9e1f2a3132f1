"""The statistics of the tests: they accept what is right and reject what is slightly wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pandas_dptree.mechanisms.sampling import discrete_laplace
from tests.helpers_random import seeded_bytes
from tests.helpers_sampling import ACCEPT, KINDS, bound_for, cdf_of, draw
from tests.helpers_statistics import (
    audited_epsilon,
    edges,
    fit,
    gaussian_cdf,
    laplace_cdf,
    same_distribution,
    truncated_laplace_cdf,
)

RUNS = 100_000


def responses(epsilon, truth, size, rng):
    """Randomised response, whose loss is exactly epsilon."""
    return (rng.random(size) < 1 / (1 + math.exp(-epsilon))) == truth


# Audits ---------------------------------------------------------------------------------------------


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


REJECT = 1e-9


# Goodness of fit --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise_scale", [0.3, 2.0, 20.0])
@pytest.mark.parametrize("power", [1, 2])
def test_cdfs_are_the_sums_of_the_weights(power: int, noise_scale: float) -> None:
    reach = round(40 * noise_scale) + 40
    weights = np.exp(-(np.abs(np.arange(-reach, reach + 1) / noise_scale) ** power) / power)
    cdf = {1: laplace_cdf, 2: gaussian_cdf}[power](noise_scale)
    for k in range(-5, 6):
        assert float(cdf(k)) == pytest.approx(weights[: k + reach + 1].sum() / weights.sum(), rel=1e-12)
    if power == 1:
        inside = weights[reach - 3 : reach + 4]
        cut = truncated_laplace_cdf(noise_scale, 3)
        assert [float(cut(k)) for k in range(-4, 5)] == pytest.approx(
            [0, *np.cumsum(inside) / inside.sum(), 1], abs=1e-12
        )


def test_gaussian_cdf_of_large_scales_continues_the_sum() -> None:
    summed, expanded = gaussian_cdf(200.0), gaussian_cdf(math.nextafter(200.0, 201.0))
    for k in (-900, -250, -1, 0, 130, 700):
        assert abs(summed(k) - expanded(k)) < 1e-11


@pytest.mark.parametrize("noise_scale", [0.7, 10.0, 1e6])
@pytest.mark.parametrize("kind", KINDS)
def test_fit_accepts_the_right_scale_and_rejects_its_neighbours(kind: str, noise_scale: float) -> None:
    draws = draw(kind, noise_scale, 100_000, seeded_bytes(1))
    assert fit(draws, cdf_of(kind, noise_scale), edges(noise_scale)) > ACCEPT
    for wrong in (0.9, 1.1):
        if kind == "truncated":
            cdf = truncated_laplace_cdf(wrong * noise_scale, bound_for(noise_scale))
        else:
            cdf = cdf_of(kind, wrong * noise_scale)
        assert fit(draws, cdf, edges(noise_scale)) < REJECT


@pytest.mark.parametrize("wrong", [0.9, 1.1])
def test_same_distribution_accepts_the_right_scale_and_rejects_its_neighbours(wrong: float) -> None:
    one = discrete_laplace(10.0, 100_000, seeded_bytes(2))
    assert same_distribution(one, discrete_laplace(10.0, 30_000, seeded_bytes(3)), edges(10.0)) > ACCEPT
    assert (
        same_distribution(one, discrete_laplace(10.0 * wrong, 30_000, seeded_bytes(3)), edges(10.0)) < REJECT
    )


def test_fit_rejects_a_doubled_zero_a_shift_and_the_impossible() -> None:
    draws = discrete_laplace(10.0, 100_000, seeded_bytes(4))
    cdf = laplace_cdf(10.0)
    q = math.exp(-1 / 10)
    geometric = np.random.default_rng(4).geometric(1 - q, 100_000) - 1
    doubled = geometric * np.random.default_rng(5).choice([-1, 1], 100_000)
    assert fit(doubled, cdf, edges(10.0)) < REJECT
    assert fit(draws + 1, cdf, edges(10.0)) < REJECT
    one_outlier = np.append(draws, 2000)
    assert fit(one_outlier, cdf, [*edges(10.0), 1500]) == 0.0


def test_p_values_are_uniform() -> None:
    source, cdf = seeded_bytes(6), laplace_cdf(3.0)
    p = np.array([fit(discrete_laplace(3.0, 5_000, source), cdf, edges(3.0)) for _ in range(200)])
    assert 0.42 < p.mean() < 0.58  # four standard deviations
    assert 0.02 < (p < 0.1).mean() < 0.19
