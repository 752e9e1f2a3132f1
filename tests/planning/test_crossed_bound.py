"""Lower bounds for crossed hierarchies, and the gap of a plan."""

import numpy as np
import pytest

import pandas_dptree as dpt
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.planning import crossed_bound
from pandas_dptree.planning.crossed_bound import crossed_lower_bound, uniform_crossed_bound
from pandas_dptree.planning.crossed_split import crossed_shares
from pandas_dptree.planning.gaussian_bound import gaussian_lower_bound
from tests.helpers_cases import each
from tests.helpers_crossed_splits import (
    DEEPER,
    RAGGED,
    SMALL,
    WIDER,
    costs_of,
    dense_optimum,
    dense_variances,
    inverse,
    margin_matrices,
    moves_of,
    uniform_product,
)
from tests.helpers_random import each_seed

TWO, THREE = Tree.from_branching([2, 2]), Tree.from_branching([3])


def dense_bound(product, weights):
    """The singular-value bound, for the best weights of the leaf cells."""
    workload = sum(
        each / max(product.n_listed(level), 1) * (matrix * product.listed(level)[:, None]).T @ matrix
        for level, (matrix, each) in enumerate(zip(margin_matrices(product), weights, strict=True))
    )
    parts = np.full(len(workload), 1 / len(workload))
    for _ in range(300):
        roots = np.sqrt(parts)
        values, vectors = np.linalg.eigh(roots[:, None] * workload * roots)
        root = np.sqrt(values.clip(0))
        parts = np.einsum("ij,j,ij->i", vectors, root, vectors) / root.sum()
    return root.sum() ** 2


@each_seed(2, 10)
def test_the_bound_of_uniform_axes_is_that_of_singular_values(seed):
    product = uniform_product([2, 2], [3])
    weights = costs_of(product, "levels", np.random.default_rng(seed).random(6))
    found = uniform_crossed_bound(product, weights, np.ones((1, 6)))
    assert np.isclose(found, dense_bound(product, weights), rtol=1e-9)
    assert crossed_lower_bound(product, weights, worst=False) <= found * (1 + 1e-9)


@each("objective", ["levels", "cells"])
def test_the_bound_of_weights_that_are_a_product_is_the_product_of_bounds(objective):
    product = ProductTree((RAGGED, WIDER))
    weights = costs_of(product, objective)
    found = crossed_lower_bound(product, weights, worst=False)
    of_axes = [gaussian_lower_bound(axis, objective=objective) for axis in product.axes]
    assert np.isclose(found, np.prod(of_axes))
    assert np.isclose(found, dense_bound(product, weights), rtol=1e-4)


@each_seed(2, 10)
def test_no_split_is_better_than_the_bound_of_groups(seed):
    rng = np.random.default_rng(seed)
    product = ProductTree((RAGGED, WIDER))
    weights = costs_of(product, "levels", rng.random(9) * (rng.random(9) < 0.6) + (np.arange(9) == 8) * 0.1)
    found = crossed_lower_bound(product, weights, worst=False)
    assert 0.5 < found / dense_bound(product, weights) <= 1 + 1e-6
    assert found <= dense_optimum(product, weights, moves_of(product)) * (1 + 1e-6)


@pytest.mark.slow
@each_seed(2, 10)
def test_no_split_has_a_smaller_worst_error_than_the_bound_of_groups(seed):
    rng = np.random.default_rng(seed)
    product = ProductTree((RAGGED, WIDER))
    weights = costs_of(product, "levels", rng.random(9) * (rng.random(9) < 0.6) + (np.arange(9) == 8) * 0.1)
    weights = weights / weights.max()
    bound = crossed_lower_bound(product, weights, worst=True)
    shares = crossed_shares(
        product,
        noise=Gaussian(),
        loss=SMALL,
        sensitivity=moves_of(product),
        weights=weights,
        objective="worst",
    )
    assert 0 < bound <= (weights * dense_variances(product, inverse(shares))).max() * (1 + 1e-6)


def test_slices_in_proportion_are_one_group():
    """Lists of ways to cross are a few products: here total and one way, and one way and both."""
    product = uniform_product([4], [3], [2])
    weights = np.array([sum(margin) < 3 for margin in product.margins], dtype=np.float64)
    groups = crossed_bound._groups(weights.reshape(2, 2, 2))
    assert [factor.tolist() for factor, _ in groups] == [[1, 0], [0, 1]]
    doubled = np.multiply.outer([1.0, 2.0, 0.0], weights)
    assert [factor.tolist() for factor, _ in crossed_bound._groups(doubled)] == [[1, 2, 0]]


# --- the gap of a plan ----------------------------------------------------------------------------------


def plan_of(*axes, **options):
    names = ("place", "sex", "age")
    return dpt.plan(dpt.cross(dict(zip(names, axes, strict=False))), **{"rho": 0.01, **options})


@each("axes, options, least, most", [
    ((TWO, THREE), {}, 1, 1 + 1e-9),
    ((TWO, THREE), {"objective": "cells"}, 1, 1 + 1e-9),
    ((TWO, THREE), {"objective": "worst"}, 1, 1 + 1e-6),
    ((TWO, THREE), {"split": "uniform"}, 1.001, 1.1),
    ((TWO, THREE), {"privacy_unit": "id", "max_contributions": 3}, 1, 1 + 1e-9),
    ((TWO, THREE), {"neighbors": "replace"}, 1, 1.1),
    ((RAGGED, WIDER), {}, 1, 1.02),
    ((RAGGED, WIDER), {"privacy_unit": "id", "max_contributions": 3}, 1, 1.02),
    ((RAGGED, DEEPER), {"objective": "worst"}, 1, 1.05),
])  # fmt: skip
def test_gap_of_plans(axes, options, least, most):
    plan = plan_of(*axes, **options)
    assert least - 1e-9 <= plan.gap <= most
    assert plan.gap_reason == (
        f"Gap: expected squared error is {plan.gap:.4f} times the least of any additive Gaussian noise."
    )


def test_the_gap_of_sums_is_that_of_counts():
    domain = dpt.cross(place=TWO, sex=THREE)
    plan = dpt.plan(domain, column="cost", bounds=(0, 50), granularity=0.5, rho=0.01)
    assert np.isclose(plan.gap, 1, rtol=1e-6)


def test_a_bound_of_groups_says_that_it_may_be_too_low():
    margins = [{"place": "place_1"}, {"place": "place_2", "sex": "sex_2"}]
    plan = plan_of(RAGGED, WIDER, margins=margins)
    assert 1 < plan.gap < 2
    assert f"is at most {plan.gap:.4f} times" in plan.gap_reason


@each("axes, options, reason", [
    ((TWO, THREE), {"rho": None, "epsilon": 1.0}, "laplace noise"),
    ((TWO, THREE), {"known": {"place_1": [3, 4]}}, "counts are public"),
    ((TWO, THREE), {"rho": 10.0}, "1.5 and more"),
    ((RAGGED, THREE), {"neighbors": "replace"}, "replaced on a ragged axis"),
])  # fmt: skip
def test_reasons_why_there_is_no_gap(axes, options, reason):
    plan = plan_of(*axes, **options)
    assert plan.gap is None
    assert reason in plan.gap_reason


def test_too_many_kinds_of_nodes(monkeypatch):
    monkeypatch.setattr(crossed_bound, "_MOST_KINDS", 2)
    crossed_bound._axis_bound.cache_clear()
    assert "too long" in plan_of(RAGGED, WIDER).gap_reason
    crossed_bound._axis_bound.cache_clear()


@pytest.mark.slow
def test_no_split_is_better_than_the_bound_where_rows_are_replaced():
    for branchings in (([2, 2], [3]), ([1, 2], [2]), ([4], [1])):
        product = uniform_product(*branchings)
        moves = moves_of(product, "replace")
        squares = np.array([[float(each.l2_squared) for each in pattern] for pattern in moves.patterns])
        weights = costs_of(product, "levels")
        found = uniform_crossed_bound(product, weights, squares)
        least = dense_optimum(product, weights, moves)
        assert 0.9 < found / least <= 1 + 1e-6
