"""The lower bound for several rows of a unit: beside all units of tiny worlds, and beside plans."""

import itertools

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.planning.capacities import capacities
from pandas_dptree.planning.objective import cost_weights
from pandas_dptree.planning.uniform_bound import possible_moves, uniform_lower_bound
from tests.helpers_cases import each
from tests.helpers_people import World
from tests.reference import membership

TINY = [
    ([3], 3, (None, 1)),
    ([3], 3, (None, 2)),
    ([2, 2], 2, ()),
    ([2, 2], 3, (None, None, 1)),
    ([2, 2], 3, (None, 2, 1)),
    ([1, 3], 2, (None, None, 1)),
    ([2, 1], 3, (None, 1, None)),
    ([1, 1], 2, ()),
]


def world_of(branching, k, caps, neighbors, bounds=(1, 1)):
    parents, size = [(-1,)], 1
    for children in branching:
        parents.append(tuple(place // children for place in range(size * children)))
        size *= children
    return World(tuple(parents), k, caps, neighbors == "replace", (bounds,))


def moves_of(branching, k, caps, neighbors, bounds=(1, 1)):
    tree = Tree.from_branching(branching)
    held = [int(level[0]) for level in capacities(tree, k, caps)]
    moves = possible_moves(
        tree.level_sizes, held, rows=min(k, held[0]), low=bounds[0], high=bounds[1],
        neighbors=neighbors, in_forest=False,
    )  # fmt: skip
    return tree, moves


@each("branching, k, caps", TINY)
@each("neighbors", ["add_remove", "replace"])
def test_some_unit_makes_each_of_the_moves(branching, k, caps, neighbors):
    for bounds in [(1, 1), *([(-2, 3)] if k < 3 else [])]:
        _, moves = moves_of(branching, k, caps, neighbors, bounds)
        (levels,) = world_of(branching, k, caps, neighbors, bounds).moves
        real = {tuple(row) for row in np.stack([(moved**2).sum(axis=1) for moved in levels], axis=1).tolist()}
        assert {tuple(map(int, row)) for row in moves.tolist()} <= real


@each("branching, k, caps", TINY[1:6])
@each("neighbors", ["add_remove", "replace"])
@each("objective", ["levels", "worst"])
def test_no_gaussian_noise_beats_the_bound(branching, k, caps, neighbors, objective):
    tree, moves = moves_of(branching, k, caps, neighbors)
    rng = np.random.default_rng(len(branching) + k)
    weights = cost_weights(tree.level_sizes, objective, rng.uniform(0.3, 2, tree.depth + 1))
    bound = uniform_lower_bound(tree.level_sizes, weights, moves, worst=objective == "worst")
    units = world_of(branching, k, caps, neighbors).units()[:, 0]
    pairs = [a - b for a, b in itertools.combinations(units, 2)] if neighbors == "replace" else units
    differences = np.unique(np.array(pairs), axis=0)
    rows = membership(tree)

    def cost(precision):
        covariance = np.linalg.inv(precision)
        costs = [
            weight * np.einsum("ij,jk,ik->", row, covariance, row) / len(row)
            for weight, row in zip(weights, rows, strict=True)
        ]
        most = np.einsum("ij,jk,ik->i", differences, precision, differences).max()
        return most * (max(costs) if objective == "worst" else sum(costs))

    def spread(levels):
        return sum(each * row.T @ row for each, row in zip(levels, rows, strict=True))

    tried = [cost(spread(rng.exponential(size=len(rows)) ** 2 + 1e-3)) for _ in range(100)]
    assert min(tried) >= bound * (1 - 1e-9)
    for _ in range(30):
        other = rng.standard_normal((tree.n_leaves, tree.n_leaves))
        assert cost(spread(rng.exponential(size=len(rows))) + 0.1 * other.T @ other) >= bound


def domain_of(branching):
    names = [f"level {level}" for level in range(len(branching))]
    keys = itertools.product(*map(range, branching))
    return dpt.Domain.from_frame(pd.DataFrame(keys, columns=names), by=names)


@each(
    "branching, options, most",
    [
        ([2] * 5, {"neighbors": "replace", "max_contributions": 12}, 1 + 1e-6),
        ([10, 10], {"neighbors": "replace", "max_contributions": 1}, 1 + 1e-6),
        ([10, 10], {"max_contributions": 12, "max_per_leaf": 1}, 1 + 1e-5),
        ([10, 10], {"max_contributions": 52, "max_per_leaf": 1, "objective": "worst"}, 1 + 1e-5),
        ([10, 10], {"max_contributions": 12, "max_per_leaf": 1, "neighbors": "replace"}, 1 + 1e-5),
        ([10, 10], {"max_contributions": 12, "max_per_node": {"level 0": 3}}, 1 + 1e-5),
    ],
)
def test_plans_come_close_to_the_bound(branching, options, most):
    plan = dpt.plan(domain_of(branching), rho=0.01, mechanism="gaussian", privacy_unit="u", **options)
    assert 1 - 1e-9 <= plan.gap <= most and "times the least" in plan.gap_reason
    even = dpt.plan(
        domain_of(branching), rho=0.01, mechanism="gaussian", privacy_unit="u", split="uniform", **options
    )
    assert even.gap == pytest.approx((even.expected_error / plan.expected_error) ** 2 * plan.gap)


def test_sums_are_compared_in_their_units():
    options = {"rho": 0.01, "mechanism": "gaussian", "neighbors": "replace", "privacy_unit": "u"}
    counts = dpt.plan(domain_of([4, 5]), max_contributions=3, **options)
    sums = dpt.plan(domain_of([4, 5]), max_contributions=3, column="x", bounds=(0, 500), **options)
    assert sums.gap == pytest.approx(counts.gap, rel=1e-9)
    signed = dpt.plan(domain_of([4, 5]), max_contributions=3, column="x", bounds=(-10, 40), **options)
    assert 1 <= signed.gap < 1.5
