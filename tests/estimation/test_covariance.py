"""Sums of estimates as sums of measurements, beside the least squares that they transpose."""

import numpy as np
import pytest

from pandas_dptree.estimation.covariance import coefficients, covariance, moments, variance
from pandas_dptree.estimation.intervals import error_half_widths, estimate_cumulants, half_widths
from pandas_dptree.estimation.least_squares import least_squares, propagate
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_estimation import random_measurements, random_tree
from tests.helpers_random import each_seed


def whole(tree, levels):
    return [np.broadcast_to(each, size) for each, size in zip(levels, tree.level_sizes, strict=True)]


@each_seed(60, 200)
def test_a_sum_of_estimates_is_the_sum_of_the_measurements_with_the_coefficients(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, max_depth=5, max_leaves=60)
    values, noise = random_measurements(rng, tree, per_node=seed % 2 == 0)
    variances = propagate(tree, noise)
    estimates = least_squares(tree, values, variances)
    weights = [rng.normal(size=size) * (rng.random(size) < 0.5) for size in tree.level_sizes]
    found = coefficients(tree, variances, weights)
    assert [each.shape for each in found] == [(size,) for size in tree.level_sizes]
    measured = sum((c * y).sum() for c, y in zip(found, values, strict=True) if y is not None)
    stated = sum((w * x).sum() for w, x in zip(weights, estimates, strict=True))
    assert measured == pytest.approx(stated, rel=1e-9, abs=1e-9)
    unmeasured = [c for c, y in zip(found, values, strict=True) if y is None]
    assert all(np.abs(c).max() == 0 for c in unmeasured)


@each_seed(40, 100)
def test_moments_of_single_nodes_are_those_of_the_two_passes(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, max_depth=4, max_leaves=20)
    _, noise = random_measurements(rng, tree, per_node=seed % 2 == 0)
    variances = propagate(tree, noise)
    cumulants = [
        np.where(np.isfinite(v), 3 * np.where(np.isfinite(v), v, 0) ** 2, 0.0) for v in variances.noise
    ]
    fourth = whole(tree, estimate_cumulants(tree, variances, cumulants))
    final, widths = whole(tree, variances.final), whole(tree, half_widths(tree, variances, cumulants, 0.95))
    for level, size in enumerate(tree.level_sizes):
        node = int(rng.integers(size))
        weights = [np.zeros(n) for n in tree.level_sizes]
        weights[level][node] = 1.0
        found = coefficients(tree, variances, weights)
        assert variance(variances, found) == pytest.approx(final[level][node], rel=1e-9)
        moment = sum(float((c**4 * k).sum()) for c, k in zip(found, cumulants, strict=True))
        assert moment == pytest.approx(fourth[level][node], rel=1e-8)
        width = float(error_half_widths(*map(np.array, moments(variances, cumulants, found)), 0.95))
        assert width == pytest.approx(widths[level][node], rel=1e-6)


def test_the_closed_form_of_covariances_between_siblings_ancestors_and_cousins():
    tree = Tree(child_counts=(np.array([3]), np.array([2, 1, 3])))  # a chain below the second node
    rng = np.random.default_rng(3)
    variances = propagate(tree, [rng.random(size) + 0.1 for size in tree.level_sizes])

    def of(level, node):
        weights = [np.zeros(size) for size in tree.level_sizes]
        weights[level][node] = 1.0
        return coefficients(tree, variances, weights)

    (root,), (top,) = variances.final[0], variances.children[0]
    share = variances.subtree[1] / top
    for child in range(3):  # Cov(x_d, x_a) = rho(d -> a) Var(x_a)
        assert covariance(variances, of(1, child), of(0, 0)) == pytest.approx(share[child] * root)
    for first, second in [(0, 1), (1, 2), (0, 2)]:  # rho rho' (Var(x_p) - V_S)
        expected = share[first] * share[second] * (root - top)
        assert covariance(variances, of(1, first), of(1, second)) == pytest.approx(expected)
        assert expected < 0
    assert covariance(variances, of(2, 2), of(1, 1)) == pytest.approx(variances.final[1][1])  # a chain


def test_known_families_and_forests():
    tree = Tree.from_branching([2, 2]).copies(2)
    variances = propagate(tree, [0.0, [np.inf], np.array([0.0, 0.0, 1.0, 2.0, 1.0, 1.0, 0.0, 3.0])])
    every = coefficients(tree, variances, [0.0, 0.0, 1.0])
    assert variance(variances, every) == pytest.approx(0.0, abs=1e-12)  # both totals are known
    first = coefficients(tree, variances, [0.0, [1.0, 0.0, 0.0, 0.0], 0.0])
    assert variance(variances, first) == 0.0
    assert moments(variances, [0.0, 0.0, 0.0], first)[:2] == (0.0, 0.0)
