"""The factorization norm of a tree: beside dense linear algebra and what mechanisms achieve."""

import math

import numpy as np
import pytest
import scipy.optimize

from pandas_dptree import theory
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.planning.variance import level_variances
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.theory import factorization_bound as factorization
from tests.helpers_cases import each
from tests.helpers_planning import even_errors, random_tree, workload
from tests.helpers_privacy import ONE_ROW
from tests.helpers_random import each_seed
from tests.reference import membership

UNIFORM = [[], [1], [7], [2, 2], [2, 3, 4], [5, 1, 6], [2] * 6, [16, 16]]


def nuclear(matrix, nodes, leaves):
    return np.linalg.norm(np.sqrt(nodes)[:, None] * matrix * np.sqrt(leaves), "nuc")


@each("branching", UNIFORM)
def test_norm_of_uniform_trees_is_that_of_a_factorization_and_of_a_witness(branching):
    tree = Tree.from_branching(branching)
    matrix, shares = workload(tree), theory.worst_node_shares(tree)
    lower, upper = theory.factorization_norm(tree)
    strategy = np.concatenate([np.sqrt(s) * m for s, m in zip(shares, membership(tree), strict=True)])
    answers = matrix @ np.linalg.solve(strategy.T @ strategy, strategy.T)
    np.testing.assert_allclose(answers @ strategy, matrix, atol=1e-9)
    product = np.linalg.norm(answers, axis=1).max() * np.linalg.norm(strategy, axis=0).max()
    sizes = np.array(tree.level_sizes, dtype=float)
    roots = 1 / (sizes + np.append(0, sizes[:-1]))
    squares = roots**2
    level = sizes * (squares - np.append(squares[1:], 0))  # a_l / n_l
    nodes = np.repeat(level, tree.level_sizes)
    witnessed = nuclear(matrix, nodes / nodes.sum(), np.full(tree.n_leaves, 1 / tree.n_leaves))
    assert lower == pytest.approx(product, rel=1e-9) == pytest.approx(witnessed, rel=1e-9)
    assert upper == pytest.approx(lower, rel=1e-12)
    assert lower**2 == pytest.approx(1 + sum((b - 1) / (b + 1) for b in branching))
    general = theory.gaussian_lower_bound(tree, objective="worst")
    assert lower == pytest.approx(math.sqrt(general), rel=1e-6)


@each("branching", UNIFORM)
def test_witness_in_print_is_a_nuclear_norm_and_nearly_the_best(branching):
    tree = Tree.from_branching(branching)
    levels = tree.depth + 1
    nodes = np.repeat([1 / (levels * size) for size in tree.level_sizes], tree.level_sizes)
    printed = theory.witness(tree)
    assert printed == pytest.approx(nuclear(workload(tree), nodes, np.full(tree.n_leaves, 1 / tree.n_leaves)))
    assert 0.97 * theory.factorization_norm(tree)[0] < printed <= theory.factorization_norm(tree)[0] + 1e-12


@each_seed(3, 6)
def test_norm_of_ragged_trees_is_between_its_bounds(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 4)), widest=3)
    matrix = workload(tree)
    n_nodes = len(matrix)

    def loss(logarithms):
        nodes, leaves = np.exp(logarithms[:n_nodes]), np.exp(logarithms[n_nodes:])
        return -nuclear(matrix, nodes / nodes.sum(), leaves / leaves.sum())

    best = -scipy.optimize.minimize(loss, np.zeros(n_nodes + tree.n_leaves), options={"gtol": 1e-5}).fun
    lower, upper = theory.factorization_norm(tree)
    assert lower <= best * (1 + 1e-5) and best <= upper * (1 + 1e-6)
    assert upper <= 1.25 * lower
    for _ in range(20):
        nodes, leaves = rng.dirichlet(np.ones(n_nodes)), rng.dirichlet(np.ones(tree.n_leaves))
        assert nuclear(matrix, nodes, leaves) <= upper


def test_norm_of_a_tree_with_too_many_kinds(monkeypatch):
    tree = Tree((np.array([2]), np.array([2, 9])))
    better = theory.factorization_norm(tree)[0]
    monkeypatch.setattr(factorization, "_MOST_KINDS", 1)
    assert theory.factorization_norm(tree)[0] == theory.factorization_norm(Tree.from_branching([2, 2]))[0]
    assert theory.factorization_norm(tree)[0] < better


def test_norm_grows_with_the_root_of_the_levels():
    norms = [theory.factorization_norm(Tree.from_branching([2] * d))[0] for d in range(63)]
    np.testing.assert_allclose(np.array(norms) ** 2, (np.arange(63) + 3) / 3)


@pytest.mark.parametrize("branching", [[2] * 8, [50, 60, 30], [4, 1, 9], [200]])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_mechanisms_respect_every_bound(branching, epsilon):
    tree = Tree.from_branching(branching)
    pure, approximate = PrivacyLoss(epsilon=epsilon), PrivacyLoss(epsilon=epsilon, delta=1e-6)
    for loss, noise in ((pure, Laplace()), (approximate, Gaussian()), (approximate, Laplace())):
        shares = optimal_shares(tree, noise, loss, ONE_ROW, objective="worst")
        scales = noise.noise_scales(loss, ONE_ROW, shares)
        least_squares = math.sqrt(level_variances(tree, noise.variance(scales)).max())
        private = {"epsilon": epsilon, "delta": loss.delta}
        floors = [
            theory.packing_error(tree, **private),
            theory.factorization_error(tree, **private),
            theory.single_count_error(**private),
        ]
        assert max(floors) <= min(least_squares, even_errors(tree, loss, noise).max())


def test_the_best_gaussian_noise_is_as_far_from_the_bound_as_one_count_is():
    tree, loss = Tree.from_branching([2] * 12), PrivacyLoss(epsilon=0.1, delta=1e-6)
    scales = Gaussian().noise_scales(loss, ONE_ROW, theory.worst_node_shares(tree))
    error = math.sqrt(level_variances(tree, scales**2).max())
    alone = even_errors(Tree.from_branching([]), loss, Gaussian())[0]
    bound = theory.factorization_error(tree, epsilon=0.1, delta=1e-6)
    assert error / bound == pytest.approx(alone / theory.noise_floor(epsilon=0.1, delta=1e-6), rel=1e-3)
