"""The lower bound: beside dense linear algebra, generic maximisers, and what plans achieve."""

import math

import numpy as np
import pytest
import scipy.optimize

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.planning import gaussian_bound as bounds
from pandas_dptree.planning.equal_subtrees import Orbits
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.planning.objective import OBJECTIVES, cost_weights
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity
from pandas_dptree.theory import gaussian_lower_bound
from tests.helpers_cases import each
from tests.helpers_planning import random_tree
from tests.helpers_random import each_seed
from tests.reference import membership

ONE_ROW, RHO = Sensitivity(l1=1, l2_squared=1), PrivacyLoss(rho=0.0005)


def cost_of(tree, shares, objective, weights=None):
    """What noise of these shares of a unit precision costs, after least squares."""
    with np.errstate(divide="ignore"):
        final = propagate(tree, [1 / part for part in shares]).final
    costs = cost_weights(Orbits.of(tree).n_listed, objective, weights)
    shown = [tree.listed(level) for level in range(tree.depth + 1)]
    means = [
        np.broadcast_to(v, len(s))[s].mean() if s.any() else 0.0 for v, s in zip(final, shown, strict=True)
    ]
    return (costs * means).max() if objective == "worst" else (costs * means).sum()


def by_level(tree, objective, weights=None):
    return optimal_shares(tree, Gaussian(), RHO, ONE_ROW, objective=objective, level_weights=weights)[:, None]


def workload(tree, objective, weights=None):
    """For each level, the matrix of its part in the total error, given the covariance of the leaves."""
    costs = cost_weights(Orbits.of(tree).n_listed, objective, weights)
    rows = [matrix[tree.listed(level)] for level, matrix in enumerate(membership(tree))]
    return np.array([cost * row.T @ row / max(len(row), 1) for cost, row in zip(costs, rows, strict=True)])


def dense_root(total, leaf_parts):
    scaled = np.sqrt(leaf_parts)
    values, vectors = np.linalg.eigh(scaled[:, None] * total * scaled)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


# -- the integral ------------------------------------------------------------------------------------


@each("seed", range(20))
def test_trace_and_its_derivatives_are_those_of_dense_matrices(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 6)), widest=3)
    orbits = Orbits.of(tree)
    dual = bounds._Dual(orbits, cost_weights(orbits.n_listed, "levels", None))
    leaf_parts, level_parts = rng.uniform(0.1, 1, dual.sizes[-1].shape), rng.uniform(0.1, 1, tree.depth + 1)
    trace, leaf_aims, level_aims = dual.evaluate(leaf_parts, level_parts, *bounds._FINE)
    parts = workload(tree, "levels") * level_parts[:, None, None]
    kind = np.broadcast_to(orbits.kinds[-1], tree.n_leaves)

    def dense_trace(levels):
        return dense_root((parts * levels[:, None, None]).sum(axis=0), leaf_parts[kind, 0]).trace()

    root = dense_root(parts.sum(axis=0), leaf_parts[kind, 0])
    assert trace == pytest.approx(root.trace(), rel=1e-9)
    np.testing.assert_allclose(leaf_aims[kind, 0], root.diagonal() / root.trace(), rtol=1e-8)
    slopes = scipy.optimize.approx_fprime(np.ones(tree.depth + 1), dense_trace, 1e-6)
    np.testing.assert_allclose(level_aims, 2 * slopes / trace, rtol=1e-4, atol=1e-5)
    assert level_aims.sum() == pytest.approx(1, rel=1e-9)


@each("step", [0.4, 0.8, 1.6])
def test_integration_errs_no_more_than_stated(step):
    points = np.exp(step * np.arange(-60 // step, 60 // step))
    errors = [
        (2 / math.pi * step * root**2 * points / (root**2 + points**2)).sum() / root - 1
        for root in np.exp(np.linspace(0, step, 50))
    ]
    limit = 4.1 * math.exp(-(math.pi**2) / step)
    assert 0.5 * limit < max(errors) < limit


# -- uniform trees -----------------------------------------------------------------------------------


@each("branching", [[], [1], [7], [2, 3, 4], [5, 1, 6, 10], [100] * 4, [2] * 40])
@each("objective", ["levels", "cells"])
def test_uniform_trees_attain_the_singular_value_bound(branching, objective):
    tree = Tree.from_branching(branching)
    weights = np.random.default_rng(len(branching)).uniform(0.1, 2, tree.depth + 1)
    bound = gaussian_lower_bound(tree, objective=objective, level_weights=weights)
    sizes = np.array(tree.level_sizes, dtype=float)
    costs = cost_weights(Orbits.of(tree).n_listed, objective, weights)
    leaves = sizes[-1] / sizes
    # Vectors that are constant within nodes of level k and sum to 0 within those above are eigenvectors.
    values = np.cumsum((costs / sizes * leaves)[::-1])[::-1]
    multiplicity = np.diff(sizes, prepend=0)
    exact = (multiplicity * np.sqrt(values)).sum() ** 2 / sizes[-1]
    assert exact * (1 - 1e-9) < bound < exact
    # The split in closed form, after least squares: level k has the variance of its k + 1 eigenspaces.
    shares = by_level(tree, objective, weights)[:, 0]
    precisions = np.cumsum((shares * leaves)[::-1])[::-1]
    variances = leaves / sizes * np.cumsum(multiplicity / precisions)
    assert (costs * variances).sum() == pytest.approx(bound, rel=1e-9)


@each("branching", [[7], [2, 3, 4], [16, 16], [50, 60, 30]])
def test_the_worst_level_of_a_uniform_tree(branching):
    tree = Tree.from_branching(branching)
    for weights in (None, np.linspace(1, 3, tree.depth + 1)):
        bound = gaussian_lower_bound(tree, objective="worst", level_weights=weights)
        achieved = cost_of(tree, by_level(tree, "worst", weights), "worst", weights)
        assert bound <= achieved <= bound * (1 + 1e-6)


# -- ragged trees ------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
@each("seed", range(8))
def test_the_best_bound_is_a_generic_maximisers(seed, objective):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 5)), widest=3)
    weights = rng.uniform(0.2, 3, tree.depth + 1)
    parts, leaves = workload(tree, objective, weights), tree.n_leaves

    def loss(logarithms):
        leaf_parts, level_parts = np.exp(logarithms[:leaves]), np.exp(logarithms[leaves:])
        if objective != "worst":
            level_parts = np.ones_like(level_parts)
        total = (parts * level_parts[:, None, None]).sum(axis=0)
        scale = level_parts.sum() if objective == "worst" else 1
        return -2 * np.log(dense_root(total, leaf_parts).trace()) + np.log(leaf_parts.sum() * scale)

    found = scipy.optimize.minimize(loss, np.zeros(leaves + tree.depth + 1), options={"gtol": 1e-7})
    bound = gaussian_lower_bound(tree, objective=objective, level_weights=weights)
    assert bound == pytest.approx(math.exp(-found.fun), rel=2e-6)


@each("seed", range(5))
def test_some_gaussian_mechanism_attains_the_bound_and_none_beats_it(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=4)
    total = workload(tree, "levels").sum(axis=0)
    bound = gaussian_lower_bound(tree)

    def cost(precision):  # with as much of it as each leaf's row allows
        worst = precision.diagonal().max()
        return worst * np.trace(total @ np.linalg.inv(precision))

    leaf_parts = np.ones(tree.n_leaves)
    for _ in range(100):
        leaf_parts = dense_root(total, leaf_parts).diagonal()
    scaled = np.sqrt(leaf_parts)
    best = dense_root(total, leaf_parts) / scaled / scaled[:, None]
    assert cost(best) == pytest.approx(bound, rel=1e-5)
    for _ in range(20):
        strategy = rng.standard_normal((2 * tree.n_leaves, tree.n_leaves)) * rng.uniform(0, 0.3)
        assert cost(best + strategy.T @ strategy) >= bound
        assert cost(strategy.T @ strategy) >= bound


def gap(seed, objective):
    """Achieved cost of the best split by level, over the lower bound."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(2, 6)), widest=int(rng.integers(2, 8)))
    bound = gaussian_lower_bound(tree, objective=objective)
    return cost_of(tree, by_level(tree, objective), objective) / bound


@pytest.mark.slow
@pytest.mark.parametrize("n_trees", [20, pytest.param(200, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_split_beats_the_bound_and_the_best_come_close(objective, n_trees):
    found = np.array([gap(seed, objective) for seed in range(n_trees)])
    assert found.min() >= 1
    assert np.median(found) <= 1.02 and found.max() <= 1.10


@pytest.mark.parametrize("objective", OBJECTIVES)
@each_seed(2, 12)
def test_strange_weights_leave_the_bound_below(seed, objective):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(2, 6)))
    weights = 10 ** rng.uniform(-2, 2, tree.depth + 1) * (rng.random(tree.depth + 1) < 0.6)
    weights[1] = 1.0
    bound = gaussian_lower_bound(tree, objective=objective, level_weights=weights)
    shares = by_level(tree, objective, weights)
    assert 0 < bound <= cost_of(tree, shares, objective, weights) < 1.2 * bound


def test_bound_does_not_depend_on_the_size_of_a_batch(monkeypatch):
    tree = random_tree(np.random.default_rng(3), depth=4)
    bound = gaussian_lower_bound(tree)
    monkeypatch.setattr(bounds, "_BATCH", 1)
    assert gaussian_lower_bound(tree) == pytest.approx(bound, rel=1e-12)


def test_a_short_path_counts_once():
    # One county that is a leaf, and its continuation that no table shows: both levels' noise serves it.
    tree = Tree.from_paths([[0, -1]])
    assert gaussian_lower_bound(tree) == pytest.approx(1, rel=1e-9)
    tree = Tree.from_paths([[0, -1], [1, 0]])
    assert gaussian_lower_bound(tree) <= cost_of(tree, by_level(tree, "levels"), "levels")


def test_too_many_kinds_and_wrong_arguments():
    tree = random_tree(np.random.default_rng(3), depth=4)
    assert gaussian_lower_bound(tree, max_kinds=5) is None
    assert gaussian_lower_bound(Tree.from_branching([100] * 4), max_kinds=5) is not None
    with pytest.raises(ArgumentError, match="objective"):
        gaussian_lower_bound(tree, objective="best")
    with pytest.raises(ArgumentError, match="level_weights"):
        gaussian_lower_bound(tree, level_weights=np.zeros(5))


@pytest.mark.slow
def test_thirty_thousand_leaves_take_little_time():
    rng = np.random.default_rng(1)
    counts = [np.array([51]), rng.poisson(60, 51) + 1]
    counts.append(rng.geometric(1 / 10, int(counts[1].sum())))
    tree = Tree(tuple(counts))
    bound = gaussian_lower_bound(tree)
    achieved = cost_of(tree, by_level(tree, "levels"), "levels")
    assert bound <= achieved <= 1.02 * bound
