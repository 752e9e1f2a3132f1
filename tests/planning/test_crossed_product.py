"""Splits whose noise variances are a product over the axes."""

import numpy as np

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.crossed_alternating import improved_splits
from pandas_dptree.planning.crossed_product import outer, product_variances
from pandas_dptree.planning.crossed_split import crossed_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_crossed_splits import (
    RAGGED,
    SMALL,
    WIDER,
    budget_of,
    costs_of,
    dense_optimum,
    dense_variances,
    moves_of,
    ragged_product,
)
from tests.helpers_random import each_seed


@each_seed(2, 8)
@each("objective", ["levels", "cells"])
def test_the_product_of_the_best_splits_of_ragged_axes_is_the_best_split(seed, objective):
    product = ragged_product(np.random.default_rng(seed), 1, 2)
    weights, moves = costs_of(product, objective), moves_of(product)
    best = dense_optimum(product, weights, moves)
    shares = crossed_shares(product, noise=Gaussian(), loss=SMALL, sensitivity=moves, objective=objective)
    variances = 1 / shares  # with a rho of 1/2
    assert np.isclose(weights @ dense_variances(product, variances), best, rtol=1e-6)


@each("loss, noise", [
    (PrivacyLoss(rho=0.1), Gaussian()),
    (PrivacyLoss(rho=30.0), Gaussian()),
    (PrivacyLoss(epsilon=60.0, delta=1e-6), Gaussian()),
    (PrivacyLoss(epsilon=30.0), Laplace()),
    (PrivacyLoss(rho=30.0), Laplace()),
    (PrivacyLoss(rho=3000.0), Gaussian()),
])  # fmt: skip
@each("neighbors", ["add_remove", "replace"])
def test_exact_noise_variances_are_a_product_whatever_the_loss(loss, noise, neighbors):
    product = ProductTree((RAGGED, WIDER))
    budget = budget_of(product, noise, loss, neighbors=neighbors, rows=2)
    shares = crossed_shares(product, noise=noise, loss=loss, sensitivity=budget.moves)
    variances = budget.variances(shares)
    table = variances.reshape(product.lattice_shape)
    expected = np.multiply.outer(table[:, -1], table[-1]) / table[-1, -1]
    expected[0, 0] = variances[0] if neighbors == "replace" else expected[0, 0]  # may have an extra precision
    assert np.allclose(variances, expected.reshape(-1), rtol=1e-9)
    if variances[0] > 1e-6 * variances[-1]:  # otherwise the matrices are nearly singular
        found = product_variances(product, variances, [None, None])
        assert np.allclose(found, dense_variances(product, variances), rtol=1e-7)


def test_structural_zeros_have_no_variance_and_say_nothing_of_the_total():
    """Wherever the grand total is more precise, too."""
    full = Tree((np.array([2]), np.array([2, 2])))
    flags = [np.array([False]), np.array([False, False]), np.array([True, False, False, False])]
    variances = np.array([0.1, 2, 3, 2, 2, 3, 4, 4, 6])
    kept = ProductTree((Tree((np.array([2]), np.array([1, 2]))), WIDER))
    expected = dense_variances(kept, variances) * np.repeat([1, 1, 3 / 4], 3)
    found = product_variances(ProductTree((full, WIDER)), variances, [flags, None])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@each("worst", [False, True])
def test_axes_are_improved_until_no_change_of_one_helps(worst):
    product = ProductTree((RAGGED, WIDER), ((0, 2), (1, 1), (2, 0), (2, 2)))
    weights = costs_of(product, "worst" if worst else "levels")
    start = [np.full(3, 1 / 3)] * 2
    found = improved_splits(
        product, start, noise=Gaussian(), loss=SMALL, weights=weights, worst=worst, zeros=[None, None]
    )

    def cost(splits):
        own = [split / split.sum() for split in splits]
        costs = weights * product_variances(product, 1 / outer(own), [None, None])
        return costs.max() if worst else costs.sum()

    least = cost(found)
    assert least < 0.98 * cost(start)
    for axis in range(2):
        for change in np.eye(3) * 0.02:
            for moved in (found[axis] * (1 + change), found[axis] / (1 + change)):
                assert cost([moved if place == axis else own for place, own in enumerate(found)]) > least * (
                    1 - (1e-3 if worst else 1e-6)
                )
