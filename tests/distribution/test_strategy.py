"""Errors that a strategy predicts, beside those of draws."""

import math

import numpy as np
import pytest

from pandas_dptree.distribution.factorization import FactorizationStrategy
from pandas_dptree.distribution.tree_strategy import TreeStrategy
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.mechanisms.weighted_sums import WeightedSums
from tests.helpers_random import rng

SCALES = {
    "laplace": TreeStrategy(16, Laplace(), (4, 4), (math.inf, 3.0, 2.0)),
    "laplace-root": TreeStrategy(8, Laplace(), (2, 4), (4.0, 3.0, 2.0)),
    "laplace-13": TreeStrategy(13, Laplace(), (4, 4), (5.0, 3.0, 2.0)),
    "gaussian-13": TreeStrategy(13, Gaussian(), (3, 5), (math.inf, 3.0, 4.0)),
    "gaussian-100": TreeStrategy(100, Gaussian(), (3, 6, 6), (9.0, 7.0, 5.0, 6.0)),
    "little": TreeStrategy(6, Laplace(), (2, 3), (math.inf, 0.4, 0.3)),
    "one": TreeStrategy(1, Laplace(), (1,), (math.inf, 3.0)),
    "factorization-13": FactorizationStrategy(WeightedSums(13), 2e6),
    "factorization-100": FactorizationStrategy(WeightedSums(100), 9e6),
}


WAYS = [pytest.param(way, marks=pytest.mark.slow) if way == "factorization-100" else way for way in SCALES]


@pytest.mark.parametrize("way", WAYS)
def test_predicted_errors_are_observed(way):
    """Of prefixes and ranges, where some totals are known: seeded, within five standard errors."""
    each = SCALES[way]
    n_bins, n = each.n_bins, 1500 if way.startswith("factorization") else 6000
    counts = np.tile(rng(1).integers(0, 9, n_bins), (n, 1))
    exact = counts[0].cumsum()
    known = np.arange(n) % 2 == 0
    estimates = each.estimates(counts, np.where(known, exact[-1], -1), byte_source(rng(2)))
    assert estimates.shape == (n, n_bins)
    np.testing.assert_allclose(estimates[known, -1], exact[-1], atol=1e-6)
    starts, stops = np.triu_indices(n_bins + 1, 1)
    if n_bins > 20:
        chosen = rng(3).choice(len(starts), 200, replace=False)
        starts, stops = starts[chosen], stops[chosen]
    for is_known in (False, True):
        errors = (estimates - exact)[known == is_known]
        variances = each.variances(known_total=is_known)
        ranges = np.diff(np.insert(errors, 0, 0, axis=1)[:, np.stack([starts, stops])], axis=1)[:, 0]
        of_ranges = each.range_variances(starts, stops, known_total=is_known)
        singles = each.range_variances(np.arange(n_bins), np.arange(n_bins) + 1, known_total=is_known)
        np.testing.assert_allclose(
            of_ranges[starts == 0], variances[stops[starts == 0] - 1], rtol=1e-6, atol=1e-9
        )
        bins = np.diff(errors, axis=1, prepend=0)
        for seen, expected in ((errors, variances), (ranges, of_ranges), (bins, singles)):
            kurtosis = 6 if way != "little" else 40
            assert (np.abs(seen.mean(axis=0)) <= 5 * np.sqrt(expected / len(seen)) + 1e-6).all()
            spread = (seen**2).mean(axis=0)
            np.testing.assert_allclose(spread, expected, rtol=5 * math.sqrt(kurtosis / len(seen)), atol=1e-9)
            assert spread.mean() == pytest.approx(expected.mean(), rel=0.06, abs=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_drawn_errors_are_those_of_the_estimates(way):
    each = SCALES[way]
    for known in (False, True):
        drawn = each.errors(2000, byte_source(rng(4)), known_total=known)
        np.testing.assert_allclose(
            (drawn**2).mean(axis=0), each.variances(known_total=known), rtol=0.5, atol=1e-9
        )
        narrow, wide = (each.half_widths(confidence, known_total=known) for confidence in (0.5, 0.99))
        assert (wide >= narrow).all() and (narrow >= 0).all()
        inside = (np.abs(drawn) <= narrow + 1e-9).all(axis=1).mean()
        assert inside >= 0.48


def test_a_surer_band_holds_rarer_errors():
    each = SCALES["laplace-13"]
    drawn = np.abs(each.errors(40_000, byte_source(rng(5)), known_total=False))
    outside = (drawn > each.half_widths(0.999, known_total=False)).any(axis=1).mean()
    assert outside < 0.0013


def test_padding_is_empty_on_levels_that_are_not_measured():
    way = TreeStrategy(3, Laplace(), (2, 2, 2), (1.0, 2.0, math.inf, 0.001))
    counts = np.array([[5, 0, 7], [1, 2, 3]])
    estimates = way.estimates(counts, np.full(2, -1), byte_source(np.random.default_rng(0)))
    np.testing.assert_allclose(estimates, np.cumsum(counts, axis=1), atol=0.1)
