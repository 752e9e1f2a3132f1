"""Sensitivities of all margins of crossed hierarchies together, beside all units of small products."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Laplace
from pandas_dptree.planning.capacities import crossed_sensitivity_on, sensitivity_on
from pandas_dptree.privacy.level_losses import laplace_rho
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.tree_sensitivity import LevelCapacities
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


@each("neighbors", ["add_remove", "replace"])
@each("low, high", [(0, 2), (-1, 2), (-2, 2), (-2, -1)])
@each("cap", [None, 1])
def test_sums_are_never_undercharged(low, high, cap, neighbors):
    product = ProductTree(PRODUCTS["2 x 2"])
    moves = crossed_sensitivity_on(
        product,
        Quantity(column="x", low=low, high=high),
        neighbors=neighbors,
        max_contributions=2,
        max_per_leaf=cap,
    )
    _covers(moves, product, units_of(product, 2, low, high, cap), neighbors, random_weights(4))


def _covers(moves, product, units, neighbors, weights):
    """Check all costs at random prices, and each margin by itself."""
    for power in (1, 2):
        costs = move_costs(units, neighbors, power)
        assert (costs.max(axis=0) <= claimed(moves, np.eye(len(product.margins)), power)).all()
        assert ((weights @ costs.T).max(axis=1) <= claimed(moves, weights, power) * (1 + 1e-12)).all()
    most = [np.ptp(level, axis=0).max() if neighbors == "replace" else np.abs(level).max() for level in units]
    assert (np.array(most) <= [level.linf for level in moves.levels]).all()


def capped(product, rows, cap, neighbors="add_remove", **others):
    return crossed_sensitivity_on(
        product, COUNT, neighbors=neighbors, max_contributions=rows, max_per_leaf=cap, **others
    )


@each("neighbors", ["add_remove", "replace"])
@each("rows, cap", [(2, 1), (3, 1), (3, 2)])
@each("name", list(PRODUCTS))
def test_no_unit_with_few_rows_a_cell_costs_more_than_the_patterns(name, rows, cap, neighbors):
    product = ProductTree(PRODUCTS[name])
    if product.n_leaves < 8 or neighbors == "add_remove" or rows == 2:
        moves = capped(product, rows, cap, neighbors)
        weights = random_weights(len(product.margins))
        _covers(moves, product, units_of(product, rows, cap=cap), neighbors, weights)


@pytest.mark.slow
@each("neighbors", ["add_remove", "replace"])
@each("rows, cap", [(3, 1), (4, 1), (4, 2), (4, 3)])
@each("name", [*PRODUCTS, "2 x 4", "pairs x 2"])
def test_no_unit_of_four_rows_costs_more_than_the_patterns(name, rows, cap, neighbors):
    more = {"2 x 4": (FLAT[2], FLAT[4]), "pairs x 2": (Tree.from_branching([2, 2]), FLAT[2])}
    product = ProductTree({**PRODUCTS, **more}[name])
    moves = capped(product, rows, cap, neighbors)
    weights = random_weights(len(product.margins))
    _covers(moves, product, units_of(product, rows, cap=cap), neighbors, weights)


@each("rows, cap", [(2, 1), (3, 1), (3, 2)])
def test_caps_are_exact_where_each_axis_has_leaves_enough(rows, cap):
    product = ProductTree((FLAT[3], Tree.from_paths([[0, 0], [0, 1], [0, 2], [1, 3]])))
    units = units_of(product, rows, cap=cap)
    weights = random_weights(len(product.margins))
    truth = (weights @ move_costs(units, "add_remove", 2).T).max(axis=1)
    np.testing.assert_allclose(truth, claimed(capped(product, rows, cap), weights, 2))


def test_caps_of_a_single_axis_are_those_of_its_levels():
    axis = Tree.from_branching([2, 2, 2])
    [pattern] = capped(ProductTree((axis,)), 7, 1).patterns
    [own] = sensitivity_on(
        axis, COUNT, neighbors="add_remove", max_contributions=7, caps=(None, None, None, 1)
    ).patterns
    assert pattern == own and [level.l2_squared for level in own] == [49, 25, 13, 7]


@each("rows, times", [(4, 1.35), (12, 1.44), (52, 1.22)])
def test_margins_by_themselves_would_be_charged_more_than_all_together(rows, times):
    """Sex, age and place, one row a cell: no unit moves each margin as far as it can move that one."""
    product = ProductTree(tuple(Tree.from_branching([n]) for n in (2, 18, 600)))
    fills = [LevelCapacities(((21600 // n, n),), n == 1).squares(rows) for n in product.level_sizes]
    [together] = claimed(capped(product, rows, 1), np.ones((1, 8)), 2)
    assert sum(fills) / together == pytest.approx(times, abs=0.005)


def test_squares_of_margins_by_themselves_do_not_limit_a_pattern():
    """Six places with both sexes hold 12 rows: a pattern cut at 24 squares for places misses other units."""
    product = ProductTree((FLAT[2], Tree.from_branching([6]), Tree.from_branching([6])))
    moves = capped(product, 12, 1)
    unit = np.zeros((2, 6, 6), dtype=int)
    unit[:, :, 0] = 1
    squares = np.array([float((level**2).sum()) for level in product.roll_up(unit.ravel())])
    weights = random_weights(8)
    assert (weights @ squares <= claimed(moves, weights, 2)).all()


def test_only_squares_lie_in_the_hull():
    """Four rows in the four cells of 2 x 2: Laplace noise spends more rho than under any single pattern."""
    moves = capped(ProductTree((FLAT[2], FLAT[2])), 4, 1)
    scales = np.array([np.inf, 0.2, 0.2, np.inf])
    truth = 4 * laplace_rho(Fraction(0.2), 2)
    assert truth > laplace_rho(Fraction(0.2), 4) + 4 * laplace_rho(Fraction(0.2), 1)
    assert moves.hull and moves.squares and moves.part(np.isfinite(scales)).squares
    assert Laplace().loss_together(scales, moves).rho >= truth
    assert Laplace().loss_together(scales, moves).epsilon == 8 / Fraction(0.2)


def test_many_axes_and_rows_have_few_patterns():
    product = ProductTree((Tree.from_branching([2] * 4),) * 4)
    for neighbors, most in [("add_remove", 16), ("replace", 32)]:
        assert 4 <= len(capped(product, 1000, 2, neighbors).patterns) <= most
        assert len(capped(product, 1000, None, neighbors).patterns) <= 2
