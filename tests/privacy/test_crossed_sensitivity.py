"""Sensitivities of all margins of crossed hierarchies together, beside all units of small products."""

import itertools

import numpy as np

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.planning.capacities import crossed_sensitivity_on
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_cases import each

FLAT = {n: Tree.from_branching([n]) for n in range(1, 5)}
RAGGED = Tree.from_paths([[0, 0], [0, 1], [1, 2]])
PRODUCTS = {
    "2 x 2": (FLAT[2], FLAT[2]),
    "one cell": (FLAT[1], FLAT[1]),
    "ragged": (RAGGED, FLAT[2]),
    "a chain above": (Tree.from_branching([1, 2]), FLAT[2]),
    "a chain below": (Tree.from_branching([2, 1]), FLAT[2]),
    "a single node and no level": (FLAT[1], FLAT[3], Tree.from_branching([])),
    "three axes": (FLAT[2], FLAT[2], FLAT[2]),
}


def units_of(product, rows, low=1, high=1, cap=None):
    """The values of all cells, margin by margin, of each unit with at most so many rows, some dropped."""
    one_row = list(itertools.product(range(product.n_leaves), range(low, high + 1)))
    found = set()
    for n in range(rows + 1):
        for chosen in itertools.combinations_with_replacement(one_row, n):
            cells, values = (
                np.array(each, dtype=int) for each in (list(zip(*chosen, strict=True)) or [[], []])
            )
            if cap is None or np.bincount(cells, minlength=1).max() <= cap:
                found.add(tuple(np.bincount(cells, values, product.n_leaves).astype(int).tolist()))
    leaves = np.array(sorted(found))
    return [np.stack(level) for level in zip(*map(product.roll_up, leaves), strict=True)]


def move_costs(units, neighbors, power):
    """What each pair of units costs on each margin: shape (n_pairs, n_margins)."""
    costs = []
    for level in units:
        others = level if neighbors == "replace" else 0 * level[:1]
        costs.append((np.abs(level[:, None] - others) ** power).sum(axis=-1).ravel())
    return np.unique(np.stack(costs, axis=1), axis=0)


def claimed(moves, weights, power):
    norms = [
        [level.l1 if power == 1 else level.l2_squared for level in pattern] for pattern in moves.patterns
    ]
    return (weights @ np.array(norms).T).max(axis=1)


def random_weights(n_margins, n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(n, n_margins)) * (rng.random((n, n_margins)) < 0.7)


@each("neighbors", ["add_remove", "replace"])
@each("rows", [1, 2])
@each("name", list(PRODUCTS))
def test_counts_cost_what_the_worst_unit_does(name, rows, neighbors):
    product = ProductTree(PRODUCTS[name])
    moves = crossed_sensitivity_on(product, COUNT, neighbors=neighbors, max_contributions=rows)
    weights = random_weights(len(product.margins))
    for power in (1, 2):
        costs = move_costs(units_of(product, rows), neighbors, power)
        np.testing.assert_allclose((weights @ costs.T).max(axis=1), claimed(moves, weights, power))


def test_sums_of_both_signs_are_never_undercharged():
    product = ProductTree(PRODUCTS["2 x 2"])
    for low, high in [(0, 2), (-1, 2), (-2, 2), (-2, -1)]:
        quantity = Quantity(column="x", low=low, high=high)
        for neighbors in ("add_remove", "replace"):
            moves = crossed_sensitivity_on(product, quantity, neighbors=neighbors, max_contributions=2)
            weights = random_weights(4)
            for power in (1, 2):
                costs = move_costs(units_of(product, 2, low, high), neighbors, power)
                most, all_of_it = (weights @ costs.T).max(axis=1), claimed(moves, weights, power)
                assert (most <= all_of_it * (1 + 1e-12)).all()
