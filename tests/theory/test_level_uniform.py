"""Errors of level-uniform trees, beside dense algebra, draws and the theorems."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Laplace
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.theory.level_uniform import (
    histogram_error,
    level_uses,
    refined_error,
    threshold_error,
    tree_error,
)
from pandas_dptree.theory.tree_search import optimal_tree
from tests.helpers_cases import each
from tests.reference import membership

branchings = st.lists(st.integers(2, 6), min_size=1, max_size=4).filter(lambda b: math.prod(b) <= 300)


def cover(branching, end):
    """The fewest nodes that make up the leaves before `end`: (level, node), from the definition."""
    nodes, start = [], 0
    while start < end:
        size = math.prod(branching)
        level = 0
        while start % size or start + size > end:
            size //= branching[level]
            level += 1
        nodes.append((level, start // size))
        start += size
    return nodes


# -- errors ------------------------------------------------------------------------------------------


@given(branchings, st.data())
def test_tree_error_is_the_variance_of_the_covers(branching, data):
    leaves = math.prod(branching)
    n_bins = data.draw(st.integers(1, leaves))
    variances = data.draw(st.lists(st.floats(0, 100), min_size=len(branching), max_size=len(branching)))
    expected = sum(variances[level - 1] for t in range(1, n_bins) for level, _ in cover(branching, t))
    assert tree_error(branching, variances, n_bins=n_bins) == pytest.approx(expected)
    assert tree_error(branching, variances, n_bins=n_bins, total_variance=7.0) == pytest.approx(expected + 7)


@given(branchings, st.floats(0.1, 50))
def test_without_padding_it_is_theorem_iv_1_in_any_order(branching, epsilon):
    n_bins, budgets = math.prod(branching), epsilon * np.arange(1, len(branching) + 1)
    printed = 4 * n_bins * sum((n - 1) / e**2 for n, e in zip(branching, budgets, strict=True))
    assert tree_error(branching, 8 / budgets**2) == pytest.approx(printed)
    assert tree_error(branching[::-1], 8 / budgets[::-1] ** 2) == pytest.approx(printed)


@given(branchings, st.data())
def test_uses_of_a_level_by_remainders(branching, data):
    n_bins = data.draw(st.integers(1, math.prod(branching)))

    def h(size):
        rest = n_bins % size
        return rest * (size - rest) / (2 * size)

    sizes = [math.prod(branching[level:]) for level in range(len(branching) + 1)]
    expected = [
        n_bins * (n - 1) / 2 + h(below) - n * h(above)
        for n, above, below in zip(branching, sizes, sizes[1:], strict=False)
    ]
    assert level_uses(branching, n_bins) == pytest.approx(expected)
    assert all(h(size) <= size / 8 for size in sizes)


def test_one_level_is_the_histogram_and_many_thresholds_are_worse_from_four_bins_on():
    for n_bins in range(2, 50):
        assert tree_error([n_bins], [3.0]) == histogram_error(n_bins, 3.0)
        thresholds = threshold_error(n_bins, 2 * (n_bins - 1) ** 2)
        assert thresholds == 2 * (n_bins - 1) ** 3
        assert (histogram_error(n_bins, 8.0) < thresholds) == (n_bins >= 4)
    assert histogram_error(10, 3.0, total_variance=30.0) == 10 * 11 / 2 * 3.0
    assert threshold_error(10, 3.0, total_variance=3.0) == 30.0
    assert tree_error([2] * 8, [8 * 64.0] * 8) > histogram_error(256, 8.0)  # as Figure 1 says


def refined_by_matrices(branching, variances):
    """Lemma IV.4 from Appendix B: every estimate as a row of weights on the measurements."""
    tree = Tree.from_branching(branching)
    below = membership(tree)[1:]  # of each level, nodes by leaves
    noise = np.concatenate([np.full(len(rows), v) for rows, v in zip(below, variances, strict=True)])
    starts = np.cumsum([0, *map(len, below)])
    weights = [np.zeros((len(rows), len(noise))) for rows in below]
    for level in reversed(range(len(branching))):
        own = np.zeros_like(weights[level])
        own[:, starts[level] : starts[level + 1]] = np.eye(len(own))
        weights[level] = own
        if level + 1 < len(branching):
            children = weights[level + 1].reshape(len(own), -1, len(noise)).sum(axis=1)
            # Of two independent estimates, the mean with the least variance.
            a, b = (own**2 @ noise)[:, None], (children**2 @ noise)[:, None]
            weights[level] = (own * b + children * a) / (a + b)
    leaves, total = tree.n_leaves, 0.0
    for t in range(1, leaves):
        left = sum(weights[level - 1][node] for level, node in cover(branching, t))
        mirrored = cover(branching, leaves - t)
        right = sum(weights[level - 1][::-1][node] for level, node in mirrored)
        total += ((left - right) / 2) ** 2 @ noise
    return total


@each("branching", [[2, 2, 2], [3, 3], [4, 4, 4], [5], [2, 3, 4], [4, 3, 2]])
def test_refined_error_beside_matrices(branching):
    for variances in (np.full(len(branching), 8.0), np.arange(1.0, len(branching) + 1)):
        assert refined_error(branching, variances) == pytest.approx(refined_by_matrices(branching, variances))
        assert refined_error(branching, variances) <= tree_error(branching, variances) / 2 + 1e-9


@each("factor, height", [(2, 3), (16, 2), (3, 5), (7, 1)])
def test_refined_error_is_lemma_iv_4(factor, height):
    epsilon = 0.3 / height
    sums = sum(1 / sum(factor**-j for j in range(height - i + 1)) for i in range(1, height + 1))
    printed = 2 * factor**height * (factor - 1) / epsilon**2 * sums
    assert refined_error([factor] * height, [8 / epsilon**2] * height) == pytest.approx(printed)
    assert refined_error([factor] * height, [0.0] * height) == 0


# -- draws -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("branching", "n_bins"),
    [
        ([8, 8], 64),
        pytest.param([16, 16], 256, marks=pytest.mark.slow),
        ([4, 4, 4, 2], 128),
        pytest.param([5, 6, 7], 180, marks=pytest.mark.slow),
        ([64], 64),
    ],
)
def test_draws_have_the_error_of_a_tree(branching, n_bins):
    draws = 20_000 + 2_000_000 // n_bins  # 2 % are then three standard errors or more
    source, scale = byte_source(np.random.default_rng(1)), 0.9  # discreteness shows: 1.46, not 1.62
    scales = [scale * (level + 1) for level in range(len(branching))]
    expected = tree_error(branching, Laplace().variance(scales), n_bins=n_bins)
    errors, size = np.zeros((draws, n_bins - 1)), math.prod(branching)
    ends = np.arange(1, n_bins)
    for factor, noise_scale in zip(branching, scales, strict=True):
        above, size = size, size // factor
        nodes = math.prod(branching) // size
        noise = Laplace().sample(noise_scale, draws * nodes, source).reshape(draws, nodes)
        sums = np.concatenate([np.zeros((draws, 1)), noise.cumsum(axis=1)], axis=1)
        errors += sums[:, ends // size] - sums[:, ends // above * factor]
    assert (errors**2).sum(axis=1).mean() == pytest.approx(expected, rel=0.02)


def test_draws_have_the_errors_of_thresholds_and_histograms():
    source, draws, n_bins, scale = byte_source(np.random.default_rng(2)), 50_000, 64, 0.9
    variance = float(Laplace().variance(scale))
    noise = Laplace().sample(scale, draws * n_bins, source).reshape(draws, n_bins)
    public, measured = noise[:, :-1], noise
    assert (public**2).sum(axis=1).mean() == pytest.approx(threshold_error(n_bins, variance), rel=0.02)
    sums = (public.cumsum(axis=1) ** 2).sum(axis=1).mean()
    assert sums == pytest.approx(histogram_error(n_bins, variance), rel=0.02)
    sums = (measured.cumsum(axis=1) ** 2).sum(axis=1).mean()
    whole = histogram_error(n_bins, variance, total_variance=n_bins * variance)
    assert sums == pytest.approx(whole, rel=0.02)


def test_k_rows_a_user_cost_k_squared_in_counts_and_nothing_in_the_distribution_function():
    for rows in (2, 5):
        one = tree_error([16, 16], [8 / 0.5**2] * 2)
        many = tree_error([16, 16], [8 / (0.5 / rows) ** 2] * 2)
        assert many == pytest.approx(rows**2 * one)
        assert many / (rows * 1000) ** 2 == pytest.approx(one / 1000**2)


@each(
    "call, argument",
    [
        (lambda: threshold_error(0, 1.0), "n_bins"),
        (lambda: histogram_error(2.5, 1.0), "n_bins"),
        (lambda: threshold_error(4, -1.0), "variance"),
        (lambda: histogram_error(4, 1.0, total_variance=math.inf), "total_variance"),
        (lambda: tree_error([2, 1], [1.0, 1.0]), "branching"),
        (lambda: tree_error("22", [1.0, 1.0]), "branching"),
        (lambda: tree_error([2, 2], [1.0, 1.0], n_bins=5), "branching"),
        (lambda: tree_error([2, 2], [1.0]), "variances"),
        (lambda: tree_error([2, 2], [1.0, math.nan]), "variances"),
        (lambda: refined_error([2, 2.5], [1.0, 1.0]), "branching"),
        (lambda: optimal_tree(0), "n_bins"),
        (lambda: optimal_tree(2**31 + 1), "n_bins"),
        (lambda: optimal_tree(True), "n_bins"),
        (lambda: optimal_tree(16, height=0), "height"),
        (lambda: optimal_tree(16, height=5), "height"),
        (lambda: optimal_tree(7, height=2, padding=False), "height"),
        (lambda: optimal_tree(16, epsilon=-1.0), "epsilon"),
        (lambda: optimal_tree(16, budgets="best"), "budgets"),
    ],
)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(ArgumentError, match="Hint: ") as caught:
        call()
    assert caught.value.argument == argument
