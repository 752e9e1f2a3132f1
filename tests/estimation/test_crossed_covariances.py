"""Covariances of the cells of crossed hierarchies with those above them, beside dense linear algebra."""

import numpy as np
import pytest

from pandas_dptree.estimation.crossed import crossed_squares
from pandas_dptree.estimation.crossed_covariances import covariances_with_sum, moments_of_sum
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_crossed import (
    dense_crossed,
    noisy_margins,
    product_variances,
    random_known,
    random_product,
    star_variances,
)
from tests.helpers_random import each_seed

SIZES = [(2, 0), (1, 1), (2, 1), (0, 2), (1, 2), (1, 0)]
"""Numbers of ragged and of uniform axes."""


def above(product, margin, place, level):
    """The cell of a margin that is above each cell of a finer one, along an axis."""
    upper = (*margin[:place], level, *margin[place + 1 :])
    cells = np.arange(product.level_sizes[product.level_of(upper)]).reshape(product.cell_shape(upper))
    axis = product.axes[place]
    for depth in range(level, margin[place]):
        counts = np.broadcast_to(axis.child_counts[depth], axis.level_sizes[depth])
        cells = np.repeat(cells, counts, axis=place)
    return product.level_of(upper), cells.reshape(-1)


def measured(rng, product, variances, known):
    return noisy_margins(rng, product, rng.poisson(5, product.n_leaves), variances, known)


def compare(rng, product, variances, known):
    """Compare all covariances of cells with those above them with dense linear algebra."""
    variances = np.where(known.levels, np.inf, variances)
    measurements = measured(rng, product, variances, known)
    squares = crossed_squares(product, variances, known)
    # the covariance of all leaf cells, and of their sums, if the leaf cells can be estimated
    whole = dense_crossed(product, variances, measurements, known)[-1]
    matrices = [product.roll_up(unit) for unit in np.eye(product.n_leaves)]
    sums = [np.array(each).T for each in zip(*matrices, strict=True)]
    if whole is None:
        return
    for here, margin in enumerate(product.margins):
        if not np.isfinite(squares.variances[here]).all():
            continue
        for place in range(len(margin)):
            for level in range(margin[place] + 1):
                upper, cells = above(product, margin, place, level)
                expected = ((sums[here] @ whole[1]) * sums[upper][cells]).sum(axis=1)
                found = squares.covariances(margin, place, level)
                np.testing.assert_allclose(
                    np.broadcast_to(found, expected.shape), expected, rtol=1e-8, atol=1e-8
                )


@each_seed(12, 120)
def test_covariances_of_products_with_an_extra_total(seed):
    rng = np.random.default_rng(seed)
    product = random_product(rng, *SIZES[seed % len(SIZES)])
    variances = product_variances(rng, product)
    if seed // len(SIZES) % 2:
        variances[0] = 1 / (1 / variances[0] + rng.uniform(0.1, 3))
    compare(rng, product, variances, CrossedKnown.nothing(product))


@each_seed(8, 80)
def test_covariances_where_the_leaf_cells_are_measured_beside_a_star(seed):
    rng = np.random.default_rng(seed)
    product = random_product(rng, *[(1, 1), (0, 2), (1, 2), (1, 0)][seed % 4])
    ragged = [place for place, axis in enumerate(product.axes) if not axis.is_uniform]
    variances = star_variances(rng, product, ragged)
    variances[-1] = 2.0
    compare(rng, product, variances, CrossedKnown.nothing(product))


@each_seed(8, 80)
def test_covariances_beside_known_totals_and_structural_zeros(seed):
    rng = np.random.default_rng(seed)
    product = random_product(rng, *SIZES[seed % len(SIZES)])
    known, _ = random_known(rng, product, zeros=seed % 3 > 0, totals=seed % 2 == 0)
    compare(rng, product, product_variances(rng, product), known)


@each_seed(6, 60)
def test_sums_of_cells_have_the_moments_of_their_coefficients(seed):
    rng = np.random.default_rng(seed)
    product = random_product(rng, *SIZES[seed % len(SIZES)])
    known, _ = random_known(rng, product, zeros=seed % 3 > 0, totals=seed % 2 == 0)
    variances = np.where(known.levels, np.inf, product_variances(rng, product))
    if not np.isfinite(variances).any():
        return
    squares = crossed_squares(product, variances, known)
    whole = dense_crossed(product, variances, measured(rng, product, variances, known), known)[-1]
    if whole is None:
        return
    weights = {
        margin: rng.integers(-1, 2, product.cell_shape(margin)).astype(float)
        for margin in product.margins
        if rng.random() < 0.5
    }
    levels = [product.level_of(margin) for margin in weights]
    sums = [np.array(each) for each in zip(*map(product.roll_up, np.eye(product.n_leaves)), strict=True)]
    row = sum(
        (sums[level] @ own.reshape(-1) for level, own in zip(levels, weights.values(), strict=True)),
        np.zeros(product.n_leaves),
    )
    variance, fourth, step = moments_of_sum(squares, [0.0] * len(variances), weights)
    np.testing.assert_allclose(variance, row @ whole[1] @ row, rtol=1e-8, atol=1e-8)
    assert fourth == 0
    assert 0 <= step <= 1


def test_fourth_cumulants_are_those_of_the_coefficients():
    product = ProductTree((Tree.from_branching([2]), Tree.from_branching([3])))
    variances = np.array([1.0, 2.0, 3.0, 6.0])
    known = CrossedKnown.nothing(product)
    squares = crossed_squares(product, variances, known)
    weights = {(1, 1): np.array([[1.0, 0, 0], [0, 2, 0]]), (0, 1): np.array([0, 0, 1.0])}
    units = np.eye(sum(product.level_sizes))
    ends = np.cumsum(product.level_sizes)[:-1]
    coefficients = []
    for unit in units:
        found = squares.estimate(np.split(unit, ends))
        coefficients.append(
            sum((own.reshape(-1) * found[product.level_of(each)]).sum() for each, own in weights.items())
        )
    kappa = np.array([5.0, 7.0, 11.0, 13.0])
    each_cell = np.repeat(kappa, product.level_sizes)
    noise = np.repeat(variances, product.level_sizes)
    variance, fourth, step = moments_of_sum(squares, kappa, weights)
    np.testing.assert_allclose(variance, (np.square(coefficients) * noise).sum())
    np.testing.assert_allclose(fourth, (np.power(coefficients, 4) * each_cell).sum())
    np.testing.assert_allclose(step, min(np.power(coefficients, 4).sum() ** 0.25, 1))


@each_seed(6, 60)
def test_covariances_of_one_way_tables_are_those_of_sums(seed):
    """Also where leaf cells cannot be estimated."""
    rng = np.random.default_rng(seed)
    product = random_product(rng, *[(2, 0), (2, 1), (1, 1)][seed % 3])
    ragged = [place for place, axis in enumerate(product.axes) if not axis.is_uniform]
    variances = star_variances(rng, product, ragged)
    variances[1] = 1.0
    if sum(product.margins[1][place] > 0 for place in ragged) > 1:
        return
    squares = crossed_squares(product, variances, CrossedKnown.nothing(product))
    for here, margin in enumerate(product.margins):
        if not np.isfinite(squares.variances[here]).all():
            continue
        cell = rng.integers(product.level_sizes[here])
        unit = np.eye(product.level_sizes[here])[cell]
        of_all = covariances_with_sum(squares, {margin: unit})
        for place in range(len(margin)):
            for level in range(margin[place] + 1):
                upper, cells = above(product, margin, place, level)
                found = np.broadcast_to(squares.covariances(margin, place, level), len(unit))[cell]
                np.testing.assert_allclose(found, of_all[upper][cells[cell]], rtol=1e-8, atol=1e-9)


def test_weights_of_structural_zeros_count_for_nothing():
    """A level of which one node remains repeats the one above, which is measured in its place."""
    product = ProductTree((Tree.from_branching([2]), Tree.from_branching([3])))
    known = CrossedKnown(
        product,
        (
            Known.from_levels(
                product.axes[0],
                [np.array([False]), np.array([False, True])],
                [np.zeros(1, int), np.zeros(2, int)],
            ),
            Known.nothing(product.axes[1]),
        ),
    )
    squares = crossed_squares(product, np.array([np.inf, 2.0, np.inf, np.inf]), known)
    weights = {(1, 1): np.array([[1.0, 0, 0], [5, 5, 5]])}
    variance, _, _ = moments_of_sum(squares, [0.0] * 4, weights)
    assert variance == pytest.approx(2.0)
