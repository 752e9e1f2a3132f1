"""Least squares of crossed hierarchies beside dense linear algebra, and beside simulated releases."""

import math
from functools import reduce

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.crossed import crossed_squares
from pandas_dptree.estimation.least_squares import LEAST_VARIANCE, propagate
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_cases import each
from tests.helpers_crossed import (
    dense_crossed,
    margin_matrices,
    noisy_margins,
    product_variances,
    random_known,
    random_product,
    star_variances,
)
from tests.helpers_random import each_seed

RAGGED = Tree((np.array([2]), np.array([1, 3])))
UNEVEN = Tree((np.array([3]), np.array([2, 1, 1])))
SHORT = Tree.from_paths([[0, 0], [0, 1], [1, -1], [2, -1]])
UNIFORM = Tree.from_branching([2, 2])
FLAT = Tree.from_branching([2])
CHAIN = Tree.from_branching([1, 2, 1])
ONE = Tree(())


def compare(rng, product, variances, known=None, table=None):
    """Compare estimates, variances and mean variances with those of dense linear algebra."""
    known = CrossedKnown.nothing(product) if known is None else known
    table = rng.poisson(5, product.n_leaves) if table is None else table
    variances = np.where(known.levels, np.inf, variances)
    measurements = noisy_margins(rng, product, table, variances, known)
    squares = crossed_squares(product, np.where(known.levels, rng.choice([0.7, np.inf]), variances), known)
    estimates = squares.estimate(measurements)
    dense = dense_crossed(product, variances, measurements, known)
    for level, (ours, theirs) in enumerate(zip(estimates, dense, strict=True)):
        variance, margin = squares.variances[level], product.margins[level]
        if theirs is None:
            assert ours is None, margin
        if ours is None:
            assert variance.tolist() == [np.inf], margin
            assert theirs is None or (known.total_axis is not None and not known.levels[level]), margin
            continue
        assert theirs is not None, margin
        np.testing.assert_allclose(ours, theirs[0], rtol=1e-9, atol=1e-8)
        expected = np.diag(theirs[1])
        full = np.broadcast_to(variance, expected.shape)
        np.testing.assert_allclose(full, expected, rtol=1e-9, atol=1e-9)
        exact = np.broadcast_to(known.exact[level], expected.shape)
        assert (full[exact] == 0).all()
        assert (ours[exact] == np.broadcast_to(known.least[level], expected.shape)[exact]).all()
        listed = product.listed(level)
        if listed.any():
            assert squares.mean_variance(margin) == pytest.approx(full[listed].mean(), rel=1e-9, abs=1e-12)


SIZES = [(1, 0), (2, 0), (1, 1), (2, 1), (0, 2), (1, 2), (2, 0)]
"""Numbers of ragged and of uniform axes."""


def random_case(seed):
    rng = np.random.default_rng(seed)
    product = random_product(rng, *SIZES[seed % len(SIZES)])
    ragged = [place for place, axis in enumerate(product.axes) if not axis.is_uniform]
    known, table = random_known(rng, product, zeros=seed % 2 == 0, totals=seed % 3 == 0)
    zeros = {place for place, flags in enumerate(known.zeros) if flags.any()}
    ragged = {*ragged, *zeros, *({known.total_axis} - {None})}
    if seed % 5 < 3:
        variances = product_variances(rng, product)
        if seed % 5 == 2:
            variances[0] = rng.uniform(0.01, 5)
    else:
        variances = star_variances(rng, product, ragged)
        if not np.isfinite(variances).any():
            variances[0] = 1.0
    return rng, product, variances, known, table


@each_seed(30, 200)
def test_estimates_and_variances_are_those_of_dense_least_squares(seed):
    compare(*random_case(seed))


def of_axes(*factors):
    """Variances of all margins that are a product of numbers of the axes."""
    return reduce(np.multiply.outer, map(np.array, factors)).reshape(-1)


def covariance(product, variances):
    """The covariance of the estimates of leaf cells, by dense linear algebra."""
    zeros = [np.zeros(size) for size in product.level_sizes]
    return dense_crossed(product, variances, zeros, CrossedKnown.nothing(product))[-1][1]


def diagonals(product, leaves):
    """Variances of the cells of every margin, from the covariance of the leaf cells."""
    return [np.diag(matrix @ leaves @ matrix.T) for matrix in margin_matrices(product)]


def assert_variances(product, variances, expected, known=None):
    known = CrossedKnown.nothing(product) if known is None else known
    found = crossed_squares(product, variances, known).variances
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.broadcast_to(ours, theirs.shape), theirs, rtol=1e-9, atol=1e-12)


# --- the two forms ---------------------------------------------------------------------------------------


def test_variances_of_a_product_are_the_product_of_those_of_the_axes():
    product, factors = ProductTree((RAGGED, UNEVEN)), ([1.0, 2.0, 3.0], [0.5, np.inf, 4.0])
    finals = [propagate(axis, own).final for axis, own in zip(product.axes, factors, strict=True)]
    expected = [
        np.outer(*(np.broadcast_to(f[level], n) for f, level, n in zip(finals, margin, shape, strict=True)))
        for margin in product.margins
        for shape in [product.cell_shape(margin)]
    ]
    assert_variances(product, of_axes(*factors), [each.reshape(-1) for each in expected])


@each("extra", [0.3, 40.0, -1 / 18, -1 / 9])
def test_a_more_precise_total_is_a_correction_of_rank_one(extra):
    product = ProductTree((RAGGED, UNEVEN, FLAT))
    variances = of_axes([3.0, 2.0, 3.0], [2.0, np.inf, 4.0], [1.5, 1.0])
    leaves = covariance(product, variances)
    with_total = leaves.sum(axis=0)
    corrected = leaves - np.outer(with_total, with_total) * extra / (1 + extra * with_total.sum())
    precision = 1 / variances[0] + extra
    variances[0] = 1 / precision if precision > 1e-12 else np.inf
    assert_variances(product, variances, diagonals(product, corrected))
    compare(np.random.default_rng(0), product, variances)


def test_margins_of_a_single_cell_all_measure_the_grand_total():
    product = ProductTree((CHAIN, RAGGED, UNEVEN, ONE))
    variances = of_axes([2.0, 1.0, 3.0, 0.5], [3.0, 2.0, 3.0], [2.0, 1.0, 4.0], [1.0])
    variances.reshape(product.lattice_shape)[0, 0, 0] = 0.1
    compare(np.random.default_rng(0), product, variances)
    variances.reshape(product.lattice_shape)[:2, 0, 0] = [[0.3], [0.2]]
    compare(np.random.default_rng(1), product, variances)


def test_trees_that_share_their_root_add_their_precisions_there():
    product = ProductTree((RAGGED, UNEVEN))
    variances = np.full(product.lattice_shape, np.inf)
    variances[:, 0], variances[0, 1:] = [2.0, 1.0, 3.0], [np.inf, 0.5]
    compare(np.random.default_rng(0), product, variances.reshape(-1))
    found = crossed_squares(product, variances.reshape(-1), CrossedKnown.nothing(product))
    said = [
        1 / 2.0,
        *(
            1 / propagate(axis, own).final[0][0]
            for axis, own in [(RAGGED, [np.inf, 1.0, 3.0]), (UNEVEN, [np.inf, np.inf, 0.5])]
        ),
    ]
    assert found.variances[0] == pytest.approx([1 / sum(said)], rel=1e-12)
    assert [each[0] for each in map(np.isinf, found.variances)] == [0, 0, 0, 0, 1, 1, 0, 1, 1]


@each("axes", [(RAGGED, UNIFORM, FLAT), (UNIFORM, FLAT, RAGGED), (UNIFORM, RAGGED), (UNIFORM, FLAT, CHAIN)])
def test_one_uneven_axis_has_exact_estimates_for_any_noise(axes):
    rng, product = np.random.default_rng(0), ProductTree(axes)
    variances = rng.uniform(0.1, 9.0, len(product.margins))
    compare(rng, product, variances)
    variances[rng.random(len(variances)) < 0.6] = np.inf
    compare(rng, product, variances)


def test_axes_that_are_uneven_only_below_what_is_measured_count_as_uniform():
    uneven = Tree((*UNIFORM.child_counts, np.array([2, 1, 1, 1])))
    product = ProductTree((uneven, UNEVEN))
    variances = np.full(product.lattice_shape, np.inf)
    variances[:3, :2] = [[1.0, 2.0], [3.0, 0.5], [0.2, 0.7]]
    compare(np.random.default_rng(0), product, variances.reshape(-1))


def test_two_uneven_axes_need_one_of_the_two_forms():
    product = ProductTree((RAGGED, UNEVEN))
    variances = of_axes([3.0, 2.0, 3.0], [2.0, 1.0, 4.0])
    for level in range(1, 9):
        other = variances.copy()
        other[level] *= 1.001
        with pytest.raises(ArgumentError, match="`split` gives the margins noise"):
            crossed_squares(product, other, CrossedKnown.nothing(product))
    variances[4] *= 1 + 1e-9
    compare(np.random.default_rng(0), product, variances * (1 + 1e-10))


def test_short_paths_are_measured_and_only_listed_cells_are_averaged():
    product = ProductTree((SHORT, FLAT, Tree(CHAIN.child_counts, np.array([2, 3]))))
    compare(np.random.default_rng(0), product, np.random.default_rng(1).uniform(1, 4, 24))
    unlisted = ProductTree((Tree.from_paths([[0, -1], [1, -1]]),))
    assert math.isnan(
        crossed_squares(unlisted, np.ones(3), CrossedKnown.nothing(unlisted)).mean_variance((2,))
    )


# --- known counts ----------------------------------------------------------------------------------------


def known_of(product, *axes):
    """State counts of the nodes of axes, as mappings from levels to counts, nan where nothing is known."""
    return CrossedKnown(product, tuple(map(Known.read, product.axes, axes)))


def test_known_totals_of_one_axis_condition_the_estimates():
    product, factors = ProductTree((RAGGED, UNEVEN)), ([3.0, np.inf, 3.0], [2.0, 1.0, 4.0])
    known = known_of(product, {"level_1": [7, 9]}, None)
    first, second = (
        covariance(ProductTree((axis,)), np.array(own))
        for axis, own in zip(product.axes, factors, strict=True)
    )
    states = margin_matrices(ProductTree((RAGGED,)))[1]
    of_states = first @ states.T @ np.linalg.inv(states @ first @ states.T) @ states @ first
    of_total = np.outer(second.sum(axis=0), second.sum(axis=0)) / second.sum()
    expected = diagonals(product, np.kron(first, second) - np.kron(of_states, of_total))
    assert_variances(product, of_axes(*factors), expected, known)
    assert expected[5].min() > 0.5  # (states, leaves of the other): none of these is known


TOTALS = [
    {"level_1": [7, 9]},
    {"level_1": [7, np.nan]},
    {"total": [16]},
    {"level_2": [7, np.nan, 2, np.nan]},
    {"level_2": [7, 3, 2, 4]},
]


@each("totals", TOTALS)
@each("others", [(), (UNEVEN,), (UNEVEN, FLAT)])
@each("form", ["extra", "star"])
def test_known_totals_beside_other_axes(totals, others, form):
    rng, product = np.random.default_rng(0), ProductTree((*others, RAGGED))
    known = known_of(product, *(None for _ in others), totals)
    table = np.zeros(product.leaf_shape, dtype=np.int64)
    table[(0,) * len(others)] = [7, 3, 2, 4]
    variances = product_variances(rng, product)
    if form == "extra":
        variances[0] = 0.2
    if form == "star":
        ragged = [place for place, axis in enumerate(product.axes) if not axis.is_uniform]
        variances = star_variances(rng, product, ragged)
    compare(rng, product, variances, known, table.reshape(-1))


def test_known_counts_are_as_they_are_whatever_is_measured():
    rng, product = np.random.default_rng(0), ProductTree((RAGGED, UNEVEN))
    known = known_of(product, {"level_2": [7, 3, 2, 4]}, None)
    table = np.array([[7, 0, 0, 0], [3, 0, 0, 0], [2, 0, 0, 0], [4, 0, 0, 0]]).reshape(-1)
    compare(rng, product, of_axes([3.0, 2.0, np.inf], [2.0, 1.0, 4.0]), known, table)
    known = known_of(product, {"level_1": [7, 9]}, None)
    for _ in range(30):
        variances = product_variances(rng, product, missing=0.0)
        assert (crossed_squares(product, variances, known).variances[3] == 0).all()


def test_structural_zeros_leave_a_product_a_product():
    product = ProductTree((RAGGED, UNEVEN, FLAT))
    known = known_of(product, {"level_2": [np.nan, 0, 0, 0]}, {"level_2": [0, 0, np.nan, np.nan]}, None)
    table = np.multiply.outer(np.outer([3, 0, 0, 0], [0, 0, 1, 4]), [2, 1])
    variances = of_axes([3.0, 2.0, 3.0], [2.0, 1.0, 4.0], [1.5, 1.0])
    compare(np.random.default_rng(0), product, variances, known, table.reshape(-1))


def test_nothing_is_left_of_an_axis_of_structural_zeros():
    product = ProductTree((RAGGED, FLAT))
    squares = crossed_squares(product, np.full(6, np.inf), known_of(product, None, {"level_1": [0, 0]}))
    assert all((each == 0).all() for each in squares.variances)
    assert [len(each) for each in squares.estimate([None] * 6)] == list(product.level_sizes)
    assert squares.mean_variance((2, 1)) == 0


# --- measurements ----------------------------------------------------------------------------------------


@each("axes", [(RAGGED, UNEVEN), (UNIFORM, FLAT, RAGGED)])
@each("precise", [[], [0], [-1], [0, -1]])
def test_noise_that_is_0_in_floating_point_leaves_what_was_counted(axes, precise):
    product = ProductTree(axes)
    variances = np.ones(len(product.margins))
    variances[precise or slice(None)] = LEAST_VARIANCE
    if len(axes) == 2 and -1 in precise:
        variances[:] = LEAST_VARIANCE
    exact = product.roll_up(np.random.default_rng(0).integers(0, 10**9, product.n_leaves))
    squares = crossed_squares(product, variances, CrossedKnown.nothing(product))
    for level in precise or range(len(exact)):
        np.testing.assert_allclose(squares.estimate(exact)[level], exact[level], rtol=1e-9)
        assert (squares.variances[level] < 1e-25).all()


def test_measurements_of_the_wrong_size_are_refused():
    product = ProductTree((RAGGED, FLAT))
    squares = crossed_squares(product, np.ones(6), CrossedKnown.nothing(product))
    for wrong in (None, np.zeros(3, dtype=np.int64)):
        given = [np.zeros(size, dtype=np.int64) for size in product.level_sizes]
        given[4] = wrong
        with pytest.raises(ArgumentError, match="`measurements` must hold 4 numbers"):
            squares.estimate(given)


def test_what_is_measured_is_not_changed():
    product = ProductTree((RAGGED, UNIFORM, FLAT))
    rng = np.random.default_rng(0)
    given = [rng.normal(size=size) for size in product.level_sizes]
    kept = [each.copy() for each in given]
    crossed_squares(product, np.ones(len(given)), CrossedKnown.nothing(product)).estimate(given)
    assert all((each == before).all() for each, before in zip(given, kept, strict=True))


@pytest.mark.slow
@each("seed", range(10))
def test_errors_of_simulated_releases_are_those_that_are_stated(seed):
    rng, product, variances, known, table = random_case(seed)
    variances = np.where(known.levels, np.inf, variances)
    squares, exact = crossed_squares(product, variances, known), product.roll_up(table)
    squared = [np.zeros(size) for size in product.level_sizes]
    for _ in range(2000):
        estimates = squares.estimate(noisy_margins(rng, product, table, variances, known))
        for total, ours, theirs in zip(squared, estimates, exact, strict=True):
            if ours is not None:
                total += (ours - theirs) ** 2 / 2000
    for found, stated in zip(squared, squares.variances, strict=True):
        if np.isfinite(stated).all():
            expected = np.broadcast_to(stated, found.shape)
            assert (np.abs(found - expected) <= 6 * expected * math.sqrt(2 / 2000) + 1e-9).all()
