"""Counts of intervals of bins: covers by nodes, variances by brute force, and the largest of many errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.theory.range_estimates import Queries, cover, expected_maximum_bound, interval_estimates
from tests.helpers_cases import each
from tests.helpers_distribution import branchings, coefficients, draw_noise, variance_of


@given(branchings, st.data(), st.booleans())
def test_cover_is_a_partition_and_small(branching: list[int], data: st.DataObject, with_root: bool) -> None:
    tree = Tree.from_branching(branching)
    start = data.draw(st.integers(0, tree.n_leaves))
    stop = data.draw(st.integers(start, tree.n_leaves))
    found = cover(tree, start, stop, with_root=with_root)
    widths = [tree.n_leaves // size for size in tree.level_sizes]
    bins = [b for level, first, last in found for b in range(first * widths[level], last * widths[level])]
    assert bins == list(range(start, stop))
    for level, n in enumerate(branching, start=1):
        used = sum(nodes.stop - nodes.first for nodes in found if nodes.level == level)
        whole_range = level == 1 and not with_root and stop - start == tree.n_leaves
        assert used <= (n if whole_range else 2 * (n - 1))


@given(st.lists(st.integers(2, 3), min_size=1, max_size=3), st.data())
def test_cover_has_the_fewest_nodes(branching: list[int], data: st.DataObject) -> None:
    tree = Tree.from_branching(branching)
    start = data.draw(st.integers(0, tree.n_leaves - 1))
    stop = data.draw(st.integers(start + 1, tree.n_leaves))
    widths = [tree.n_leaves // size for size in tree.level_sizes]
    fewest = {start: 0}
    for here in range(start, stop):
        for width in widths:
            if here % width == 0 and here + width <= stop:
                fewest[here + width] = min(fewest.get(here + width, 10**6), fewest[here] + 1)
    assert sum(nodes.stop - nodes.first for nodes in cover(tree, start, stop)) == fewest[stop]


@given(branchings, st.data(), st.sampled_from([0.0, 2.0]))
def test_interval_variances_by_brute_force(branching: list[int], data: st.DataObject, root: float) -> None:
    tree = Tree.from_branching(branching)
    start = data.draw(st.integers(0, tree.n_leaves))
    stop = data.draw(st.integers(start, tree.n_leaves))
    noise = [root, *(float(level + 2) for level in range(tree.depth))]

    def value(values: list[np.ndarray]) -> np.ndarray:
        ways = interval_estimates(tree, values, noise, start, stop)
        return np.array([estimate.value for estimate in ways])

    ways = interval_estimates(tree, [np.zeros(n) for n in tree.level_sizes], noise, start, stop)
    variances = [way.variance for way in ways]
    assert np.allclose(variance_of(coefficients(value, tree), noise), variances)
    assert variances == sorted(variances)


def largest_errors(drawn: list[np.ndarray], tree: Tree, queries: Queries, *, root: bool) -> np.ndarray:
    """Largest absolute error of each run, every query from its own cover."""
    bins = tree.n_leaves
    starts = [0] if queries == "cumulative" else range(bins)
    largest = np.zeros(len(drawn[-1]))
    sums = [np.cumsum(np.insert(level, 0, 0, axis=1), axis=1) for level in drawn]
    for start in starts:
        for stop in range(start + 1, bins + 1):
            found = cover(tree, start, stop, with_root=root)
            error = sum(sums[n.level][:, n.stop] - sums[n.level][:, n.first] for n in found)
            largest = np.maximum(largest, np.abs(error))
    return largest


@pytest.mark.parametrize("queries", ["cumulative", "intervals"])
@each("branching", [[2] * 6, [4, 4, 4], [40], [2, 20], [1, 3], [2]])
def test_expected_maximum_is_bounded(branching: list[int], queries: Queries) -> None:
    rng = np.random.default_rng(7)
    tree, runs = Tree.from_branching(branching), 300
    levels = [float(len(branching) + 1)] * len(branching)
    for root in (0.0, levels[0], math.inf):
        scales = [root, *levels]
        finite = [0.0 if root == math.inf else root, *levels]
        bound = expected_maximum_bound(tree, scales, queries)
        mean = largest_errors(draw_noise(rng, tree, finite, runs), tree, queries, root=root < math.inf).mean()
        assert mean < bound < 12 * mean


def test_expected_maximum_of_discrete_noise() -> None:
    """A coarse scale, where discrete and continuous Laplace noise differ most."""
    rng = np.random.default_rng(8)
    tree = Tree.from_branching([2, 2, 2, 2])
    for scale in (0.3, 1.0):
        stop = 1 - math.exp(-1 / scale)
        drawn = [
            (rng.geometric(stop, (2000, size)) - rng.geometric(stop, (2000, size))).astype(float)
            for size in tree.level_sizes
        ]
        mean = largest_errors(drawn, tree, "cumulative", root=True).mean()
        assert mean < expected_maximum_bound(tree, [scale] * 5)


def test_expected_maximum_of_the_binary_tree_grows_with_the_square_of_its_levels() -> None:
    for depth in (2, 4, 10, 20, 40, 60):
        levels = depth + 1
        tree, scales = Tree.from_branching([2] * depth), [float(levels)] * (levels)
        explicit = math.sqrt(2) * math.log(3) * levels**2
        assert expected_maximum_bound(tree, scales) <= explicit
        assert expected_maximum_bound(tree, scales, "intervals") <= 2 * explicit


def test_expected_maximum_of_two_bins_follows_from_the_largest_noise() -> None:
    """There it is the smaller bound. A prefix takes nodes on one side, an interval on both."""
    tree, one_side = Tree.from_branching([2]), 1 + math.log(2)
    assert expected_maximum_bound(tree, [0.0, 1.0], "cumulative") == pytest.approx(one_side)
    assert expected_maximum_bound(tree, [0.0, 1.0], "intervals") == pytest.approx(2 * one_side)


def test_expected_maximum_of_known_counts_is_zero() -> None:
    assert expected_maximum_bound(Tree.from_branching([3]), [0.0, 0.0]) == 0.0
    assert expected_maximum_bound(Tree.from_branching([]), [2.0]) >= 2.0
