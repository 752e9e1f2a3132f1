"""How the budget is split over margins: which form is chosen, named and given splits, and corrections."""

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.capacities import crossed_sensitivity_on
from pandas_dptree.planning.crossed_budget import Budget
from pandas_dptree.planning.crossed_product import product_shares, product_variances
from pandas_dptree.planning.crossed_split import crossed_shares
from pandas_dptree.planning.crossed_variance import MarginVariances
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import COUNT
from tests.helpers_cases import each
from tests.helpers_crossed_splits import (
    DEEPER,
    RAGGED,
    SMALL,
    WIDER,
    capped_moves,
    costs_of,
    dense_optimum,
    dense_variances,
    inverse,
    moves_of,
    uniform_product,
)

EPSILON = PrivacyLoss(epsilon=0.01)
TWO, THREE = Tree.from_branching([2, 2]), Tree.from_branching([3])


def shares_of(product, **options):
    moves = options.pop("sensitivity", None) or moves_of(product, options.pop("neighbors", "add_remove"))
    noise, loss = options.pop("noise", Gaussian()), options.pop("loss", SMALL)
    return crossed_shares(product, noise=noise, loss=loss, sensitivity=moves, **options)


def error_of(product, moves, shares, weights, noise=None, loss=SMALL):
    """The weighted error, for a budget of one."""
    variances = Budget(noise or Gaussian(), loss, moves).variances(shares)
    return weights @ dense_variances(product, variances) * (2 * loss.rho if loss.rho else loss.epsilon**2 / 2)


# --- corrections ----------------------------------------------------------------------------------------


def test_correction_1_the_product_is_not_optimal_where_rows_are_replaced():
    product = uniform_product([2], [2])
    moves, weights = moves_of(product, "replace"), costs_of(product, "levels")
    of_axes = product_shares(
        product, Budget(Gaussian(), SMALL, moves_of(product)), split="optimal", weights=weights,
        objective="levels", zeros=[None, None],
    )  # fmt: skip
    plain = Budget(Gaussian(), SMALL, moves).shares_of(inverse(of_axes))
    least = dense_optimum(product, weights, moves)
    assert round(error_of(product, moves, plain, weights) / least, 2) == 1.46
    best = shares_of(product, neighbors="replace")
    assert np.isclose(error_of(product, moves, best, weights), least, rtol=1e-5)


@each("axes", [(RAGGED, WIDER), (DEEPER, WIDER), (DEEPER, RAGGED)])
@each("objective", ["levels", "cells"])
def test_correction_1_extra_precision_of_the_total_where_rows_are_replaced(axes, objective):
    product = ProductTree(axes)
    moves, weights = moves_of(product, "replace"), costs_of(product, objective)
    found = shares_of(product, neighbors="replace", objective=objective)
    error = error_of(product, moves, found, weights)
    assert error < 1.024 * dense_optimum(product, weights, moves)


def check_correction_2(branchings, rows, worse, most):
    product = uniform_product(*branchings)
    moves, weights = capped_moves(product, rows, 1), costs_of(product, "cells")
    errors = MarginVariances(product, CrossedKnown.nothing(product), least_squares=True)
    budget = Budget(Gaussian(), SMALL, moves)
    of_axes = product_shares(
        product, budget, split="optimal", weights=weights, objective="cells", zeros=[None] * len(branchings)
    )
    refined = crossed_shares_in_product(product, moves, "cells")
    best = shares_of(product, sensitivity=moves, objective="cells")
    plain, product_form, exact = (
        weights @ errors.means(budget.variances(each)) for each in (of_axes, refined, best)
    )
    assert plain > worse * exact
    assert exact <= product_form < most * exact


def test_correction_2_the_product_is_not_optimal_where_rows_of_a_cell_are_limited():
    check_correction_2(([2], [3]), 3, worse=1.05, most=1.02)


@pytest.mark.slow
@each("branchings, rows, worse, most", [
    (([2], [6], [30]), 12, 2.19, 1.025), (([2], [18], [600]), 4, 1.35, 1.033),
    (([2], [18], [600]), 12, 1.44, 1.033), (([2], [18], [600]), 52, 1.22, 1.033),
])  # fmt: skip
def test_correction_2_more_rows_and_cells(branchings, rows, worse, most):
    check_correction_2(branchings, rows, worse, most)


def crossed_shares_in_product(product, moves, objective):
    """The best product form, as for axes that are ragged."""
    from pandas_dptree.planning.crossed_split import _product_shares

    budget = Budget(Gaussian(), SMALL, moves)
    zeros = [None] * len(product.axes)
    return _product_shares(product, budget, "optimal", costs_of(product, objective), objective, zeros)


def test_limited_rows_with_two_ragged_axes():
    product = ProductTree((RAGGED, WIDER))
    moves, weights = capped_moves(product, 3, 1), costs_of(product, "cells")
    found = shares_of(product, sensitivity=moves, objective="cells")
    error = error_of(product, moves, found, weights)
    assert error < 1.033 * dense_optimum(product, weights, moves)


def test_correction_4_variances_are_a_product_and_not_scales():
    """For b = 1 and 1, the product of variances is that of 1.70, and the product of scales has 1.84."""
    laplace = Laplace()
    one = float(laplace.variance([1.0])[0])
    assert (round(one**2 / 2, 2), round(one, 2)) == (1.70, 1.84)
    assert np.isclose(laplace.variance(laplace.scales_of([one**2 / 2]))[0], one**2 / 2)
    product = ProductTree((RAGGED, WIDER))
    found = Budget(laplace, PrivacyLoss(epsilon=9.0), moves_of(product))
    variances = found.variances(shares_of(product, noise=laplace, loss=found.loss)).reshape(3, 3)
    measured = np.isfinite(variances)
    expected = np.multiply.outer(variances[:, -1], variances[-1]) / variances[-1, -1]
    np.testing.assert_allclose(variances[measured], expected[measured], rtol=1e-9)


# --- forms ----------------------------------------------------------------------------------------------


@each("noise, loss", [(Gaussian(), SMALL), (Laplace(), EPSILON)])
def test_lists_of_two_ragged_axes_have_the_best_product(noise, loss):
    shown = ((0, 2), (1, 1), (2, 0), (2, 2))
    product = ProductTree((RAGGED, WIDER), shown)
    weights, moves = costs_of(product, "levels"), moves_of(product)
    found = shares_of(product, noise=noise, loss=loss)
    variances = Budget(noise, loss, moves).variances(found)
    means = np.where(weights > 0, product_variances(product, variances, [None, None]), 0.0)
    np.testing.assert_allclose(means, dense_variances(product, variances), rtol=1e-7)  # the form is exact
    of_all = crossed_shares(
        product, noise=noise, loss=loss, sensitivity=moves, weights=np.ones(9), split="uniform"
    )
    errors = [error_of(product, moves, each, weights, noise, loss) for each in (found, of_all)]
    assert errors[0] < errors[1]
    if loss is SMALL:
        assert errors[0] < 1.05 * dense_optimum(product, weights, moves)


def test_the_worst_error_of_a_list_of_two_ragged_axes():
    product = ProductTree((RAGGED, WIDER), ((0, 2), (2, 0), (2, 2)))
    weights = costs_of(product, "worst")
    found = weights * dense_variances(product, inverse(shares_of(product, objective="worst")))
    other = weights * dense_variances(product, inverse(shares_of(product)))
    assert found.max() < other.max()
    assert np.sort(found)[-2] > 0.99 * found.max()  # two errors are the largest


def test_known_totals_are_not_measured():
    product = uniform_product([2], [3])
    some = Known.read(product.axes[0], {"level_1": [4, 5]})
    known = CrossedKnown(product, (some, Known.nothing(product.axes[1])))
    moves = crossed_sensitivity_on(
        product, COUNT, neighbors="add_remove", max_contributions=1, known=known.exact
    )
    for least_squares in (True, False):
        for split in ("optimal", "uniform", "geometric"):
            found = shares_of(
                product, sensitivity=moves, known=known, least_squares=least_squares, split=split
            )
            assert (found > 0).tolist() == [False, True, False, True]


def test_structural_zeros_make_the_best_split_that_of_what_remains():
    """Their axis is ragged; the means of the two axes have cells of variance 0 alike on all of its levels."""
    full = Tree((np.array([2]), np.array([2, 2])))
    empty = Known((np.zeros(1, bool), np.zeros(1, bool), np.array([True, False, False, False])),
                  (np.zeros(1, int), np.zeros(1, int), np.zeros(4, int)))  # fmt: skip
    product = ProductTree((full, WIDER))
    known = CrossedKnown(product, (empty, Known.nothing(WIDER)))
    kept = ProductTree((Tree((np.array([2]), np.array([1, 2]))), WIDER))
    weights = np.repeat([1.0, 1.0, 3 / 4], 3)  # of the leaves, three in four have an error
    np.testing.assert_allclose(shares_of(product, known=known), shares_of(kept, weights=weights), rtol=1e-5)


# --- named and given splits -----------------------------------------------------------------------------


@each("shown, split, expected", [
    (None, "uniform", np.full(6, 1 / 6)),
    (((0, 1), (1, 0), (2, 1)), "uniform", [0, 1 / 3, 1 / 3, 0, 0, 1 / 3]),
    (((1, 0), (2, 0)), "geometric", np.sqrt([0, 0, 2, 0, 4, 0]) / np.sqrt([2, 4]).sum()),
])  # fmt: skip
def test_named_splits_are_over_the_margins_that_are_shown(shown, split, expected):
    np.testing.assert_allclose(shares_of(ProductTree((TWO, THREE), shown), split=split), expected)


def test_even_shares_are_even_where_rows_are_replaced():
    for axes in ((TWO, THREE), (RAGGED, WIDER)):
        found = shares_of(ProductTree(axes), split="uniform", neighbors="replace")
        np.testing.assert_allclose(found, 1 / len(found))


def test_given_shares_are_those_of_the_levels_of_each_axis():
    of_axes = [np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6])]
    found = shares_of(ProductTree((TWO, THREE)), split=of_axes)
    np.testing.assert_allclose(found, np.multiply.outer(*of_axes).reshape(-1))
    with pytest.raises(ArgumentError, match="leaves no share"):
        shares_of(ProductTree((TWO, THREE)), split=[np.array([0.5, 0.5, 0.0]), of_axes[1]])


# --- without least squares ------------------------------------------------------------------------------


def test_without_least_squares_all_margins_that_are_shown_are_measured():
    product = ProductTree((RAGGED, WIDER), ((0, 2), (1, 1), (2, 2)))
    shown = np.array([margin in product.shown for margin in product.margins])
    for split in ("optimal", "uniform", "geometric"):
        for objective in ("levels", "cells", "worst"):
            found = shares_of(product, split=split, objective=objective, least_squares=False)
            assert ((found > 0) == shown).all()
    cells = np.array([product.n_listed(level) for level in range(9)])
    best = shares_of(product, objective="cells", least_squares=False)
    np.testing.assert_allclose(best[shown], np.sqrt(cells[shown]) / np.sqrt(cells[shown]).sum(), rtol=1e-5)
    worst = shares_of(product, objective="worst", least_squares=False)
    np.testing.assert_allclose(worst[shown], 1 / 3, rtol=1e-5)


def test_without_least_squares_given_shares_may_not_leave_a_margin_out():
    of_axes = [np.array([0.0, 0.5, 0.5]), np.array([0.4, 0.6])]
    product = ProductTree((TWO, THREE), ((1, 0), (2, 1)))
    found = shares_of(product, split=of_axes, least_squares=False)
    np.testing.assert_allclose(found, [0, 0, 0.4, 0, 0, 0.6])
    with pytest.raises(ArgumentError, match="gives a margin no share"):
        shares_of(ProductTree((TWO, THREE)), split=of_axes, least_squares=False)
