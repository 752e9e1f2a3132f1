"""The lower bound for unit counts, beside all units of small trees and the bounds of additive counts."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning import unit_bound
from pandas_dptree.planning.gaussian_bound import gaussian_lower_bound
from pandas_dptree.planning.objective import OBJECTIVES, cost_weights, expected_cost
from pandas_dptree.planning.uniform_bound import possible_moves, uniform_lower_bound
from pandas_dptree.planning.unit_bound import unit_gap, unit_lower_bound
from pandas_dptree.planning.unit_split import unit_level_variances, unit_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.unit_sensitivity import unit_sensitivity
from tests.helpers_cases import each
from tests.helpers_planning import random_tree
from tests.helpers_random import each_seed
from tests.reference import membership

SMALL = [
    ((2, 2), (1, 2, 2)),
    ((3, 2), (1, 2, 3)),
    ((2, 3), (1, 1, 2)),
    ((2, 1, 2), (1, 2, 2, 3)),
    ((4,), (1, 3)),
]


def all_units(tree, max_nodes):
    """The nodes of every unit that keeps to the bounds, as rows of zeros and ones."""
    below = membership(tree)
    units = []
    for size in range(1, max_nodes[-1] + 1):
        for leaves in itertools.combinations(range(tree.n_leaves), size):
            levels = [matrix[:, list(leaves)].any(axis=1) for matrix in below]
            if all(level.sum() <= most for level, most in zip(levels, max_nodes, strict=True)):
                units.append(np.concatenate(levels))
    return np.array(units, dtype=float)


def images(tree, unit):
    """What automorphisms make of a unit, each as often as it occurs: by permuting children, recursively."""
    if not tree:
        return [[[1.0]]] if unit else [[[0.0]]]
    width, rest = tree[0], tree[1:]
    children = [
        images(rest, unit[1][child] if unit and child < len(unit[1]) else None) for child in range(width)
    ]
    found = []
    for order in itertools.permutations(range(width)):
        for chosen in itertools.product(*(children[child] for child in order)):
            below = [[*itertools.chain(*level)] for level in zip(*chosen, strict=True)]
            found.append([[1.0 if unit else 0.0], *below])
    return found


def nested(parents, level=0, node=0):
    """The subtree of a unit below one of its nodes, from the parents of its nodes on each level."""
    if level == len(parents):
        return (True, [])
    own = [at for at, parent in enumerate(parents[level]) if parent == node]
    return (True, [nested(parents, level + 1, at) for at in own])


@each("branching, max_nodes", SMALL)
def test_second_moments_are_the_means_over_all_automorphisms(branching, max_nodes):
    sizes = np.cumprod([1, *branching])
    weights = np.random.default_rng(0).random(len(sizes))
    roots = np.repeat(np.sqrt(weights / sizes), sizes)
    for unit in unit_bound._units(sizes.tolist(), max_nodes):
        every = np.array([np.concatenate(image) for image in images(branching, nested(unit))])
        assert set(every.sum(axis=1)) == {1 + sum(map(len, unit))}
        dense = roots[:, None] * (every.T @ every / len(every)) * roots
        expected = np.sort(np.linalg.eigvalsh(dense))
        spaces = unit_bound._second_moments(sizes.astype(float), unit)
        both = np.sqrt(weights / sizes)[:, None] * np.sqrt(weights / sizes)
        dimensions = np.diff(sizes, prepend=0)
        ours = [
            np.repeat(np.linalg.eigvalsh(space * both), n)
            for space, n in zip(spaces, dimensions, strict=True)
        ]
        values = np.sort(np.concatenate(ours))
        np.testing.assert_allclose(values[-len(expected) :], expected, atol=1e-12)
        np.testing.assert_allclose(values[: -len(expected)], 0, atol=1e-12)


@each("branching, max_nodes", SMALL)
def test_units_keep_to_the_bounds(branching, max_nodes):
    sizes = np.cumprod([1, *branching]).tolist()
    units = unit_bound._units(sizes, max_nodes)
    assert [max(map(len, level)) for level in zip(*units, strict=True)] == list(max_nodes[1:])
    for unit in units:
        for level, parents in enumerate(unit):
            assert len(parents) <= max_nodes[level + 1]
            assert set(parents) == set(range(len(unit[level - 1]) if level else 1))
            assert np.bincount(parents).max() <= branching[level]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@each("branching, max_nodes", SMALL)
def test_no_precision_matrix_beats_the_bound(branching, max_nodes, objective, neighbors):
    tree, rng = Tree.from_branching(list(branching)), np.random.default_rng(1)
    units = all_units(tree, max_nodes)
    if neighbors == "replace":
        units = np.concatenate([units, *(units - unit for unit in units)])
    weights = cost_weights(tree.level_sizes, objective)
    levels = np.repeat(np.arange(tree.depth + 1), tree.level_sizes)
    bound = unit_lower_bound(
        tree.level_sizes, max_nodes, weights, neighbors=neighbors, worst=objective == "worst"
    )

    def cost(precision):
        most = np.einsum("ui,ij,uj->u", units, precision, units).max()
        variances = most * np.linalg.inv(precision).diagonal()
        means = np.array([variances[levels == level].mean() for level in range(tree.depth + 1)])
        return expected_cost(means, weights, objective)

    costs = []
    mean = units.T @ units / len(units) + 1e-3 * np.eye(len(levels))
    values, vectors = np.linalg.eigh(mean)
    costs.append(
        cost((vectors / np.sqrt(values)) @ vectors.T)
    )  # nearly the best, for equal parts of all units
    for _ in range(20):
        strategy = rng.standard_normal((2 * len(levels), len(levels))) * rng.uniform(0, 0.5)
        costs.append(cost(np.diag(rng.uniform(0.2, 1, len(levels))) + strategy.T @ strategy))
    assert 0.3 * min(costs) < bound <= min(costs)


@each("branching", [[7], [2, 3, 4], [5, 1, 6], [2] * 6])
@each("objective", OBJECTIVES)
def test_one_node_for_each_unit_gives_the_bound_of_additive_counts(branching, objective):
    tree = Tree.from_branching(branching)
    given = np.random.default_rng(0).uniform(0.2, 2, tree.depth + 1)
    weights, worst = cost_weights(tree.level_sizes, objective, given), objective == "worst"
    ours = unit_lower_bound(tree.level_sizes, (1,) * (tree.depth + 1), weights, worst=worst)
    additive = gaussian_lower_bound(tree, objective=objective, level_weights=given)
    assert ours == pytest.approx(additive, rel=1e-6)
    replaced = unit_lower_bound(
        tree.level_sizes, (1,) * (tree.depth + 1), weights, neighbors="replace", worst=worst
    )
    moves = possible_moves(
        tree.level_sizes, [1] * (tree.depth + 1), rows=1, low=1, high=1, neighbors="replace", in_forest=False
    )
    least = uniform_lower_bound(tree.level_sizes, weights, moves, worst=worst)
    assert replaced <= least * (1 + 1e-6)  # a random node is sometimes the same one


@each_seed(3, 60)
def test_no_split_beats_the_bound(seed):
    rng = np.random.default_rng(seed)
    tree = Tree.from_branching(rng.integers(1, 6, 1 + seed % 4).tolist())
    most = np.minimum(np.sort(rng.integers(1, 6, tree.depth)), tree.level_sizes[1:])
    plan = a_plan(tree, (1, *most.tolist()), ["add_remove", "replace"][seed % 2], OBJECTIVES[seed % 3])
    gap, reason = unit_gap(plan)
    assert 1 - 1e-9 < gap < 5 and reason == (
        f"Gap: expected squared error is at most {gap:.4f} times the least of any additive Gaussian noise."
    )


def a_plan(tree, max_nodes, neighbors="add_remove", objective="levels", noise=None, loss=None):
    noise, loss = noise or Gaussian(), loss or PrivacyLoss(rho=1e-3)
    shares = unit_shares(tree, max_nodes, noise=noise, loss=loss, neighbors=neighbors, objective=objective)
    excess = (shares[tree.depth + 1 :] > 0).tolist()
    sensitivity = unit_sensitivity(max_nodes, neighbors=neighbors, excess=excess)
    scales = noise.noise_scales(loss, sensitivity, shares)
    means = unit_level_variances(tree, max_nodes, noise.variance(scales))
    listed = [tree.n_listed(level) for level in range(tree.depth + 1)]
    weights = cost_weights(listed, objective)
    return SimpleNamespace(
        tree=tree,
        max_nodes=max_nodes,
        loss=loss,
        noise=noise,
        neighbors=neighbors,
        sensitivity=sensitivity,
        known=Known.nothing(tree),
        objective=objective,
        level_weights=np.ones(tree.depth + 1),
        unit_noise_scales=scales,
        expected_error=expected_cost(np.nan_to_num(means), weights, objective) ** 0.5,
    )


def test_gaps_are_those_of_the_loss_that_is_spent():
    tree = Tree.from_branching([6, 6, 20])
    gaps = [
        unit_gap(a_plan(tree, (1, 4, 4, 4), loss=loss))[0]
        for loss in (PrivacyLoss(rho=1e-3), PrivacyLoss(rho=0.1), PrivacyLoss(epsilon=0.1, delta=1e-6))
    ]
    np.testing.assert_allclose(gaps, 1.236, atol=2e-3)


def test_gaps_that_are_not_known_have_a_reason():
    tree = Tree.from_branching([3, 4])
    known = Known.read(tree, {"total": 50})
    cases = {
        "laplace noise": a_plan(tree, (1, 2, 2), noise=Laplace(), loss=PrivacyLoss(epsilon=1.0)),
        "counts are public": SimpleNamespace(**{**vars(a_plan(tree, (1, 2, 2))), "known": known}),
        "scales of 1.5": a_plan(tree, (1, 2, 2), loss=PrivacyLoss(rho=20.0)),
        "ragged tree": a_plan(random_tree(np.random.default_rng(1), 3), (1, 2, 2, 2)),
    }
    for words, plan in cases.items():
        gap, reason = unit_gap(plan)
        assert gap is None and reason.startswith("Gap: unknown, as ") and words in reason
