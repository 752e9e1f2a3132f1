"""Errors that a strategy predicts, beside those of draws."""

import math

import numpy as np
import pytest

from pandas_dptree.distribution import strategy
from pandas_dptree.distribution.factorization import FactorizationStrategy
from pandas_dptree.distribution.tree_strategy import TreeStrategy
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.mechanisms.weighted_sums import WeightedSums
from tests.helpers_cases import each
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


QUANTILES = (0.0, 0.5, 0.9)
OF_ONE = 0.1 * 0.8  # of the misses, those for the errors of one bin


def n_drawn(way):
    return 500 if way.startswith("factorization") else 2000


@pytest.mark.parametrize("way", [way for way in SCALES if way not in ("factorization-100", "one")])
@each("known", [False, True])
def test_errors_of_quantiles_are_bounded(way, known):
    """Bin by bin, and in all bins for all quantiles, in other draws than the bounds come from."""
    made, n = SCALES[way], n_drawn(way)
    drawn = made.errors(n, byte_source(rng(6)), known_total=known)
    for shares in ((0.5,), QUANTILES):
        widths = made.quantile_half_widths(shares, 0.9, known_total=known)
        missed, missed_at_once = np.zeros(drawn.shape, dtype=bool), np.zeros(n, dtype=bool)
        for p, (of_one, of_all) in zip(shares, widths, strict=True):
            errors = np.abs(drawn - p * drawn[:, -1:])
            seen = (errors > of_one + 1e-9).mean(axis=0)
            slack = 5 * math.sqrt(OF_ONE / n)
            assert (seen <= OF_ONE / len(shares) + slack).all() and seen.mean() <= OF_ONE / len(shares) * 1.1
            missed |= errors > of_one + 1e-9
            at_once = 0.1 if np.isinf(of_one).all() else 0.02
            missed_at_once |= (errors > of_all + 1e-9).any(axis=1)
        assert missed.mean() <= OF_ONE and missed_at_once.mean() <= at_once + 3 * math.sqrt(at_once / n)


@pytest.mark.parametrize("way", WAYS)
def test_the_total_explains_its_slopes_times_its_error(way):
    """What is left is uncorrelated with it, and has the variance for a known total."""
    made, n = SCALES[way], n_drawn(way)
    drawn = made.errors(n, byte_source(rng(9)), known_total=False)
    total, left = drawn[:, -1:], drawn - made.slopes * drawn[:, -1:]
    variances, of_total = made.variances(known_total=True), made.variances(known_total=False)[-1]
    slack = 5 * np.sqrt((12 if way == "little" else 1.5) * variances * of_total / n)
    assert (np.abs((left * total).mean(axis=0)) <= slack + 1e-9).all()
    np.testing.assert_allclose((left**2).mean(axis=0).mean(), variances.mean(), rtol=0.2, atol=1e-9)
    assert made.slopes[-1] == 1 and (np.diff(made.slopes) > 0).all()


@pytest.mark.parametrize("way", ["laplace-13", "factorization-13"])
@each("known", [False, True])
def test_many_quantiles_have_a_bound_for_all_bins_at_once(way, known):
    made, n = SCALES[way], n_drawn(way)
    shares = tuple(np.linspace(0, 1, 99).tolist())
    drawn = made.errors(n, byte_source(rng(7)), known_total=known)
    missed = np.zeros(n, dtype=bool)
    of_one, of_all = map(
        np.stack, zip(*made.quantile_half_widths(shares, 0.9, known_total=known), strict=True)
    )
    assert np.isinf(of_one).all()
    for p, half in zip(shares, of_all, strict=True):
        errors = drawn - p * drawn[:, -1:]
        missed |= (np.abs(errors) > half + 1e-9).any(axis=1)
        seen = errors.std(axis=0)[half > 1e-6] / half[half > 1e-6]
        np.testing.assert_allclose(seen, seen.mean(), rtol=0.2)  # a multiple of the standard errors
    assert missed.mean() <= 0.1 + 3 * math.sqrt(0.1 / n)
    band = made.half_widths(0.9, known_total=known)
    of_band = (band + np.array(shares)[:, None] * band[-1]).mean()
    assert of_all.mean() <= of_band * (1 + 1e-9 if known else 0.8)


def test_what_would_take_too_many_draws_is_bounded_for_all_bins_at_once(monkeypatch):
    made = SCALES["laplace-13"]
    ((of_one, narrow),) = made.quantile_half_widths((0.5,), 0.9, known_total=False)
    monkeypatch.setattr(strategy, "_MOST_SORTED", 1000 * 13 - 1)
    ((infinite, wide),) = made.quantile_half_widths((0.5,), 0.9, known_total=False)
    assert np.isinf(infinite).all() and (of_one < wide).all() and (wide < narrow).all()


@each("pieces", [1, 3, 10])
def test_of_the_drawn_errors_only_the_largest_are_kept(monkeypatch, pieces):
    made = TreeStrategy(13, Laplace(), (4, 4), (5.0, 3.0, 2.0 + pieces))  # of its own, for it is remembered
    drawn = made.errors(1000, byte_source(rng(8)), known_total=False)
    monkeypatch.setattr(strategy, "_drawn_errors", lambda *_: np.array_split(drawn, pieces))
    rank = math.ceil(960 + 2 * math.sqrt(1000 * 0.96 * 0.04))  # of 1000, which leave 40 beyond
    for p, (half, _) in zip(
        (0.25, 0.5), made.quantile_half_widths((0.25, 0.5), 0.9, known_total=False), strict=True
    ):
        assert (half == np.sort(np.abs(drawn - p * drawn[:, -1:]), axis=0)[rank - 1]).all()
