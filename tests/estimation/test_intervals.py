"""Confidence intervals: the moments against dense algebra, the quantiles against exact distributions."""

import math
from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given

from pandas_dptree.estimation.estimators import CONSISTENCIES, estimator_for
from pandas_dptree.estimation.intervals import (
    error_half_widths,
    error_steps,
    estimate_cumulants,
    half_widths,
    intervals,
)
from pandas_dptree.estimation.least_squares import least_squares, propagate
from pandas_dptree.estimation.nonnegative import least_values
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.mechanisms.measure import measure
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.planning.split import level_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_distinct import dense_variances, dense_weights, flat, units_problem
from tests.helpers_estimation import ALL_NOISES, CONFIDENCES, probabilities
from tests.helpers_privacy import ONE_ROW
from tests.helpers_random import each_seed
from tests.reference import membership
from tests.strategies import trees


def coefficients(tree, noise):
    """Weights of all measurements in the estimates of each level, where known values bind exactly."""
    matrices = membership(tree)
    rows = np.concatenate(matrices)
    variances = np.concatenate(
        [np.broadcast_to(v, size) for v, size in zip(noise, tree.level_sizes, strict=True)]
    )
    free = np.eye(tree.n_leaves)
    if (variances == 0).any():
        free = scipy.linalg.null_space(rows[variances == 0])
    precisions = np.divide(1, variances, out=np.zeros(len(rows)), where=variances > 0)
    weighted = (rows @ free).T * precisions
    leaves = free @ np.linalg.solve(weighted @ rows @ free, weighted)
    return [matrix @ leaves for matrix in matrices]


@given(tree=trees(max_leaves=30), seed=st.integers(0, 2**32), known=st.sampled_from([0.0, 0.2]))
def test_cumulants_are_those_of_the_dense_solution(tree, seed, known):
    rng = np.random.default_rng(seed)
    noise, fourth = [], []
    for level, size in enumerate(tree.level_sizes):
        size = rng.choice([1, size])
        variance = np.where(rng.random(size) < known, 0.0, rng.uniform(0.3, 5.0, size))
        if level < tree.depth and rng.random() < 0.3:
            variance = np.full(1, np.inf)
        noise.append(variance)
        has_noise = (variance > 0) & np.isfinite(variance)
        fourth.append(np.where(has_noise, rng.uniform(0.1, 10.0, size if len(variance) > 1 else 1), 0.0))
    found = estimate_cumulants(tree, propagate(tree, noise), fourth)
    spread = np.concatenate(
        [np.broadcast_to(f, size) for f, size in zip(fourth, tree.level_sizes, strict=True)]
    )
    for cumulants, dense in zip(found, coefficients(tree, noise), strict=True):
        np.testing.assert_allclose(
            np.broadcast_to(cumulants, len(dense)), dense**4 @ spread, rtol=1e-9, atol=1e-13
        )


@given(tree=trees(max_leaves=30), seed=st.integers(0, 2**32))
def test_steps_are_those_of_the_largest_coefficient_or_more(tree, seed):
    """Of small noise, whose steps of one count decide how wide an interval must be."""
    rng = np.random.default_rng(seed)
    scales = [rng.uniform(0.1, 0.5, size) for size in tree.level_sizes]
    noise = [Laplace().variance(scale) for scale in scales]
    fourth = [Laplace().fourth_cumulant(scale) for scale in scales]
    variances = propagate(tree, noise)
    found = half_widths(tree, variances, fourth, 0.9)
    cumulants = estimate_cumulants(tree, variances, fourth)
    for level, dense in enumerate(coefficients(tree, noise)):
        largest = np.abs(dense).max(axis=1)
        needed = error_half_widths(variances.final[level], cumulants[level], largest, 0.9)
        assert (found[level] >= needed * (1 - 1e-9)).all()


@each_seed(30, 200)
def test_cumulants_and_steps_of_distinct_units_are_those_of_the_dense_solution(seed):
    """The noise of the excess counts as that of one more child."""
    rng = np.random.default_rng(seed)
    tree, _, noise, _, excess_noise, _ = units_problem(rng, known_total=0.3)
    variances = propagate(tree, noise, excess_noise)
    fourth, excess = (
        [np.where(np.isfinite(v) & (v > 0), rng.uniform(0.1, 10.0, v.shape), 0.0) for v in levels]
        for levels in (noise, excess_noise)
    )
    weights, dense = dense_weights(tree, noise, excess_noise), dense_variances(tree, noise, excess_noise)
    noisy = (dense > 0) & np.isfinite(dense)
    found = flat(tree, estimate_cumulants(tree, variances, fourth, excess))
    expected = weights**4 @ (flat(tree, [*fourth, *excess]) * noisy)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    steps = flat(tree, error_steps(tree, variances))
    np.testing.assert_allclose(steps**4, np.minimum(weights**4 @ noisy, 1), rtol=1e-9, atol=1e-12)
    widths = flat(tree, half_widths(tree, variances, fourth, 0.9, excess))
    expected = error_half_widths(flat(tree, variances.final), found, steps, 0.9)
    np.testing.assert_array_equal(widths, expected)


def test_levels_whose_nodes_agree_stay_folded():
    tree = Tree.from_branching([3, 4, 2])
    scales = [2.0, np.inf, 5.0, 7.0]
    folded = half_widths(
        tree, propagate(tree, Laplace().variance(scales)), Laplace().fourth_cumulant(scales), 0.9
    )
    assert all(level.shape == (1,) for level in folded)
    each = [np.full(size, scale) for size, scale in zip(tree.level_sizes, scales, strict=True)]
    full = half_widths(
        tree,
        propagate(tree, [Laplace().variance(scale) for scale in each]),
        [Laplace().fourth_cumulant(scale) for scale in each],
        0.9,
    )
    for one, all_nodes in zip(folded, full, strict=True):
        np.testing.assert_allclose(all_nodes, np.broadcast_to(one, all_nodes.shape), rtol=1e-12)


def test_where_values_are_known_there_is_no_width():
    tree = Tree.from_branching([2])
    variances = propagate(tree, [0.0, np.array([0.0, 50.0])])
    widths = half_widths(tree, variances, [0.0, np.array([0.0, 7500.0])], 0.95)
    assert [level.tolist() for level in widths] == [[0.0], [0.0, 0.0]]


_FREQUENCIES = (np.arange(6000) + 0.5) * (2 * np.pi / 90)


def continuous_coverage(shares, half_width):
    """P(|error| <= w) where Laplace variables have these shares of the variance 1, and a normal one the rest.

    The midpoint rule on the inversion integral: exact but for what lies beyond 45 standard errors.
    """
    t = _FREQUENCIES
    rest = 1 - sum(shares)
    transform = np.exp(-max(rest, 0.0) * t**2 / 2) / np.prod([1 + s / 2 * t**2 for s in shares], axis=0)
    return 2 / np.pi * (np.sin(t * half_width) / t * transform).sum() * (t[1] - t[0])


def share_families():
    rng = np.random.default_rng(8)
    for n in range(1, 9):
        yield from ([part / n] * n for part in np.linspace(0.1, 1, 10))
        yield from ([a, *[(1 - a) / n] * n] for a in np.linspace(0, 1, 21))
    for _ in range(300):
        parts = rng.gamma(rng.choice([0.3, 1.0, 3.0]), size=rng.integers(2, 8))
        yield (parts / parts.sum() * rng.choice([1.0, rng.random()])).tolist()


# Quantiles of continuous errors, against their characteristic functions.


@pytest.mark.parametrize("confidence", [0.5, *CONFIDENCES])
def test_continuous_errors_are_held_as_often_as_promised(confidence):
    shares = list(share_families())
    fourth = 3 * np.array([sum(s**2 for s in each) for each in shares])
    widths = error_half_widths(np.ones(len(shares)), fourth, np.zeros(len(shares)), confidence)
    held = np.array([continuous_coverage(s, w) for s, w in zip(shares, widths.tolist(), strict=True)])
    assert held.min() > confidence - (1e-4 if confidence >= 0.8 else 1e-3)
    assert held.max() < confidence + (0.004 if confidence >= 0.8 else 0.016)


LATTICES = {
    "one": ([1], 1),
    "two alike": ([1, 1], 2),
    "part of two": ([2, 1, -1], 3),
    "three alike": ([1, 1, 1], 3),
    "sum of two": ([1, 1], 1),
    "sum of ten": ([1] * 10, 1),
    "sum of a hundred": ([1] * 100, 1),
    "one and a little": ([97, 3], 100),
    "one and some": ([8, 2, 2, -2], 10),
    "part of four": ([6, 2, 1, -1, -1], 8),
}


def lattice_error(noise, weights, scales):
    """Probabilities of the distance from 0 of the error, a sum of noises times whole weights."""
    spread = math.sqrt(sum(w**2 * float(noise.variance(s)) for w, s in zip(weights, scales, strict=True)))
    size = 2 ** math.ceil(math.log2(80 * spread + 200 * max(map(abs, weights))))
    transform = np.ones(size // 2 + 1)
    for (weight, scale), times in Counter(zip(map(abs, weights), scales, strict=True)).items():
        k, mass = probabilities(noise, scale)
        placed = np.bincount(k * weight % size, mass, size)
        transform = transform * np.fft.rfft(placed).real ** times
    mass = np.fft.irfft(transform, size)[: size // 2]
    return np.concatenate([mass[:1], 2 * mass[1:]])


# Errors in steps, against exact convolutions.


@pytest.mark.parametrize("noise", ALL_NOISES, ids=lambda noise: noise.name)
@pytest.mark.parametrize("case", LATTICES)
def test_errors_in_steps_are_held_almost_as_often_as_promised(case, noise):
    weights, divisor = LATTICES[case]
    parts = np.array(weights) / divisor
    step = np.minimum((parts**4).sum() ** 0.25, 1.0)
    for scale in np.geomspace(0.05, 40.0, 40).tolist():
        for ratio in (1.0, 3.0):
            scales = [scale, *[scale * ratio] * (len(weights) - 1)]
            within = np.cumsum(lattice_error(noise, weights, scales))
            variance = parts**2 @ noise.variance(scales)
            fourth = parts**4 @ noise.fourth_cumulant(scales)
            for confidence in CONFIDENCES:
                width = float(error_half_widths(variance, fourth, step, confidence))
                held = within[math.floor(width * divisor + 1e-9)]
                assert held > confidence - min(0.005, (1 - confidence) / 2), (scale, ratio, confidence)


@pytest.mark.parametrize(("noise", "widening"), [(Laplace(), 0.031), (Gaussian(), 0.053)])
def test_steps_widen_little_from_a_scale_of_five_and_nothing_from_forty(noise, widening):
    def relative(scale, confidence):
        moments = noise.variance(scale), noise.fourth_cumulant(scale)
        stepped, smooth = (error_half_widths(*moments, np.array(h), confidence) for h in (1.0, 0.0))
        return stepped / smooth - 1

    for confidence in (0.9, 0.95, 0.99):
        assert 0 <= relative(5.0, confidence) < widening
        assert relative(40.0, confidence) == 0


reals = st.floats(-1e6, 1e6)


# Ends of intervals.


@given(
    nodes=st.lists(
        st.tuples(reals, st.floats(0, 1e3), reals, st.integers(0, 9), st.integers(0, 9)), min_size=1
    ),
    whole=st.booleans(),
)
def test_no_truth_is_cut_away(nodes, whole):
    estimates, widths, shown, below, above = map(np.array, zip(*nodes, strict=True))
    truths = np.maximum(np.round(estimates + widths * np.linspace(-1, 1, len(nodes))), 0)
    least, most = np.maximum(truths - below, 0), np.where(above < 9, truths + above, np.inf)
    lower, upper = intervals(estimates, widths, least, most, whole=whole)
    assert (lower <= upper).all()
    assert (lower >= least).all()
    assert (upper <= most).all()
    was_in = np.abs(estimates - truths) <= widths
    assert ((lower <= truths) & (truths <= upper))[was_in].all()
    if whole:
        assert (lower == np.round(lower)).all()
        assert (upper == np.round(upper)).all()
    wider = np.array(intervals(estimates, widths, least, most, whole=whole, shown=shown))
    if not whole:
        np.testing.assert_array_equal(wider, [np.minimum(lower, shown), np.maximum(upper, shown)])
    else:  # what is shown may miss a whole number by its rounding error
        assert (wider == np.round(wider)).all()
        assert (wider[0] <= np.minimum(lower, shown + 1e-6)).all()
        assert (wider[0] > np.minimum(lower, shown) - 1).all()
        assert (wider[1] >= np.maximum(upper, shown - 1e-6)).all()
        assert (wider[1] < np.maximum(upper, shown) + 1).all()


def test_ends_in_every_case():
    estimates = np.array([5.5, -9.0, 40.0, 2.5, 7.0 + 1e-12])
    most = np.array([np.inf, np.inf, 30.0, np.inf, 7.0])
    least = np.array([0.0, 0.0, 0.0, 0.0, 7.0])
    widths = np.array([2.2, 3.0, 4.0, 0.3, 0.0])
    lower, upper = intervals(estimates, widths, least, most, whole=True)
    assert lower.tolist() == [4, 0, 30, 2, 7]
    assert upper.tolist() == [7, 0, 30, 3, 7]
    lower, upper = intervals(estimates, widths, least, most)
    np.testing.assert_allclose(lower, [3.3, 0, 30, 2.2, 7])
    np.testing.assert_allclose(upper, [7.7, 0, 30, 2.8, 7])


def test_rounding_takes_no_whole_number_out_of_an_interval():
    for nearly_three in (3 + 4e-15, 3 - 4e-15):
        lower, upper = intervals(np.array([nearly_three]), np.array([2.0]), whole=True)
        assert (lower.item(), upper.item()) == (1, 5)


TREES = {
    "flat": Tree.from_branching([6]),
    "uniform": Tree.from_branching([3, 4]),
    "one by one": Tree.from_branching([1, 2, 1]),
    "deep binary": Tree.from_branching([2, 2, 2, 2]),
    "wide": Tree.from_branching([25]),
    "narrow above": Tree.from_branching([2, 10]),
    "ragged": Tree((np.array([3]), np.array([1, 2, 5]))),
    "ragged below": Tree((np.array([2]), np.array([2, 1]), np.array([4, 1, 2]))),
    "chains": Tree((np.array([4]), np.array([1, 1, 1, 6]), np.ones(9, dtype=int))),
    "lopsided": Tree((np.array([2]), np.array([1, 2]), np.array([1, 1, 2]), np.array([1, 1, 1, 7]))),
}


def copies(tree, times):
    """Many copies of a tree under a root that is not measured, and so tells none about the others."""
    counts = [
        np.tile(np.broadcast_to(c, n), times)
        for c, n in zip(tree.child_counts, tree.level_sizes, strict=False)
    ]
    return Tree((np.array([times]), *counts))


def planned_scales(tree, noise, epsilon, *, linear):
    loss = PrivacyLoss(epsilon=epsilon) if noise == Laplace() else PrivacyLoss(rho=epsilon**2 / 2)
    shares = level_shares(tree, noise=noise, loss=loss, sensitivity=ONE_ROW, least_squares=linear)
    return noise.noise_scales(loss, ONE_ROW, shares)


# Coverage of whole releases.


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, *(pytest.param(e, marks=pytest.mark.nightly) for e in (10.0, 0.1))])
@pytest.mark.parametrize("noise", ALL_NOISES, ids=lambda noise: noise.name)
@pytest.mark.parametrize("shape", TREES)
def test_coverage_of_least_squares_and_of_noisy_counts(shape, noise, epsilon):
    """Half a percentage point is allowed, of which chance takes a tenth (one standard error) at 90 %."""
    tree, times = TREES[shape], 100_000
    source = byte_source(np.random.default_rng([*map(ord, shape + noise.name), int(100 * epsilon)]))
    for linear in (True, False):
        scales = planned_scales(tree, noise, epsilon, linear=linear)
        if linear:
            many, scales = copies(tree, times), np.array([np.inf, *scales])
            levels = [np.zeros(size, dtype=np.int64) for size in many.level_sizes]
            variances = propagate(many, noise.variance(scales))
            errors = least_squares(many, measure(noise, levels, scales, source), variances)
        else:
            errors = [noise.sample(float(scale), times, source) for scale in scales]
        for confidence in (0.9, 0.95, 0.99):
            if linear:
                widths = half_widths(many, variances, noise.fourth_cumulant(scales), confidence)
            else:
                widths = noise.half_width(scales, confidence)
            for error, width in list(zip(errors, widths, strict=True))[linear:]:
                assert np.mean(np.abs(error) <= width + 1e-9) >= confidence - 0.005


@pytest.mark.parametrize("noise", ALL_NOISES, ids=lambda noise: noise.name)
@pytest.mark.parametrize("shape", TREES)
def test_shown_intervals_hold_every_truth_that_the_plain_ones_hold(shape, noise):
    """In every mode: so their coverage is that of least squares, or of the noisy counts, or more."""
    rng = np.random.default_rng(list(map(ord, shape)))
    tree = copies(TREES[shape], 300)
    leaves = rng.integers(0, 30, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.3)
    truth = tree.roll_up(leaves)
    for epsilon in (10.0, 1.0, 0.1):
        scales = [np.inf, *planned_scales(TREES[shape], noise, epsilon, linear=True)]
        noisy = measure(noise, truth, scales, byte_source(rng))
        variances = propagate(tree, noise.variance(scales))
        least = least_values(tree, noisy, variances)
        exact = least_squares(tree, noisy, variances)
        widths = half_widths(tree, variances, noise.fourth_cumulant(scales), 0.9)
        for mode in CONSISTENCIES[1:]:
            shown = estimator_for(mode).estimate(
                tree, noisy, variances, lambda n: rng.integers(0, 2**64, n, np.uint64)
            )
            for level, count in enumerate(truth):
                lower, upper = intervals(
                    exact[level], widths[level], least[level], whole=mode == "integer", shown=shown[level]
                )
                held = (lower <= count) & (count <= upper)
                assert held[np.abs(exact[level] - count) <= widths[level]].all()
                assert ((lower <= shown[level]) & (shown[level] <= upper)).all()
