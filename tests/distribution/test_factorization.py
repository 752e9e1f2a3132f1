"""Cumulative sums from a factorization: exact without noise, variances as predicted, near the least error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pandas_dptree.distribution.factorization import cumulative_estimates, cumulative_variances
from pandas_dptree.mechanisms.sampling import byte_source, discrete_gaussian
from pandas_dptree.mechanisms.weighted_sums import WeightedSums, measure_weighted_sums
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_distribution import exactly, matrix

HALF = PrivacyLoss(rho=0.5)


def error_of(sums: WeightedSums, loss: PrivacyLoss, *, known_total: bool = False, **unit: Any) -> float:
    """Predict the root of the mean variance of a release."""
    variances = cumulative_variances(sums, sums.noise_scale(loss, **unit), known_total=known_total)
    return math.sqrt(variances.mean())


def dense_covariance(strategy: WeightedSums) -> np.ndarray:
    """The covariance of the estimates for noise of variance 1, by a dense inverse."""
    rows = np.cumsum(np.linalg.inv(np.array(matrix(strategy), dtype=float)), axis=0)
    return rows @ rows.T


# Estimates ----------------------------------------------------------------------------------------------


@each("n_bins", [1, 2, 3, 7, 64, 1_000])
def test_without_noise_the_estimates_are_the_cumulative_sums(n_bins: int) -> None:
    strategy = WeightedSums(n_bins)
    counts = np.random.default_rng(n_bins).integers(0, 10**6, n_bins)
    measured = exactly(strategy, counts)
    assert cumulative_estimates(strategy, measured) == pytest.approx(np.cumsum(counts), abs=1e-6)
    known = cumulative_estimates(strategy, measured, total=int(counts.sum()) + 100)
    assert known[-1] == pytest.approx(counts.sum() + 100)


@each("n_bins", [1, 2, 3, 7, 16, 33, 100])
def test_variances_are_those_of_the_dense_inverse(n_bins: int) -> None:
    strategy = WeightedSums(n_bins, 10)
    covariance = dense_covariance(strategy)
    free, last = np.diag(covariance), covariance[:, -1]
    scale = 1e6
    assert cumulative_variances(strategy, scale) / scale**2 == pytest.approx(free, rel=1e-9)
    known = cumulative_variances(strategy, scale, known_total=True) / scale**2
    assert known == pytest.approx(free - last**2 / last[-1], rel=1e-9, abs=1e-12 * free.max())
    assert known[-1] == 0


@pytest.mark.slow  # by default, those of tests/distribution/test_strategy.py are compared
def test_estimates_are_unbiased_and_vary_as_predicted() -> None:
    strategy, source, n_runs = WeightedSums(24), byte_source(np.random.default_rng(3)), 6_000
    counts = np.random.default_rng(4).integers(0, 50, 24)
    truth, scale = np.cumsum(counts), strategy.noise_scale(HALF, neighbors="add_remove")
    runs = [measure_weighted_sums(strategy, counts, scale, source) for _ in range(n_runs)]
    for total in (None, int(truth[-1])):
        errors = np.array([cumulative_estimates(strategy, run, total=total) for run in runs]) - truth
        variances = cumulative_variances(strategy, scale, known_total=total is not None)
        assert (np.abs(errors.mean(axis=0)) <= 4 * np.sqrt(variances / n_runs)).all()
        assert (errors**2).mean() == pytest.approx(variances.mean(), rel=0.02)
        assert (errors**2).mean(axis=0) == pytest.approx(variances, rel=0.08, abs=1e-9)


def test_known_totals_are_the_best_linear_correction() -> None:
    """The dense formula of conditioning on the last cumulative sum."""
    strategy = WeightedSums(12)
    measured = discrete_gaussian(1e9, 12, byte_source(np.random.default_rng(5)))
    free, last = cumulative_estimates(strategy, measured), dense_covariance(strategy)[:, -1]
    expected = free - last / last[-1] * (free[-1] - 77.0)
    assert cumulative_estimates(strategy, measured, total=77.0) == pytest.approx(expected, rel=1e-9)


def nuclear_bound(n_bins: int) -> float:
    """No unbiased estimates from Gaussian noise have a smaller error: the nuclear norm of A, by K."""
    return float((0.5 / np.sin((2 * np.arange(n_bins) + 1) * np.pi / (4 * n_bins + 2))).mean())


def least_error(n_bins: int) -> float:
    """The same for any weights of the columns, at about those for which it is the least error there is."""
    ones = np.tril(np.ones((n_bins, n_bins)))
    weights = np.full(n_bins, 1 / n_bins)
    for _ in range(10):
        root = np.sqrt(weights)
        squares, vectors = np.linalg.eigh(root[:, None] * (ones.T @ ones) * root)
        singular = np.sqrt(squares)
        weights = vectors**2 @ singular / singular.sum()
    return float(singular.sum() / math.sqrt(n_bins))


# How accurate -------------------------------------------------------------------------------------------


def test_the_references() -> None:
    ones = np.tril(np.ones((40, 40)))
    assert nuclear_bound(40) == pytest.approx(np.linalg.svd(ones, compute_uv=False).sum() / 40)
    assert nuclear_bound(40) < least_error(40)


@each("n_bins", [2, 4, 16, 64, 256])
def test_no_factorisation_is_much_better(n_bins: int) -> None:
    error = error_of(WeightedSums(n_bins), HALF, neighbors="add_remove")
    assert least_error(n_bins) < error < least_error(n_bins) * 1.004


def test_figures() -> None:
    strategy = WeightedSums(256)
    assert error_of(strategy, HALF, neighbors="add_remove") == pytest.approx(2.529, abs=1e-3)
    assert error_of(strategy, HALF, neighbors="add_remove", known_total=True) == pytest.approx(
        2.360, abs=1e-3
    )
    for n_bins in (1_024, 16_384):
        error = error_of(WeightedSums(n_bins), HALF, neighbors="add_remove")
        assert nuclear_bound(n_bins) < error < 1.02 * nuclear_bound(n_bins)


def test_errors_scale_as_the_sensitivity_does() -> None:
    strategy = WeightedSums(50)
    error = error_of(strategy, HALF, neighbors="add_remove")
    assert error_of(strategy, HALF, neighbors="replace", max_contributions=3) == pytest.approx(
        3 * math.sqrt(2) * error
    )
    assert error_of(strategy, PrivacyLoss(rho=0.005), neighbors="add_remove") == pytest.approx(10 * error)
