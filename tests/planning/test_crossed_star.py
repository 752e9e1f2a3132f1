"""The best split where no margin has cells of two ragged axes."""

import itertools

import numpy as np
import pytest

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.crossed_bound import uniform_crossed_bound
from pandas_dptree.planning.crossed_lattice import Lattice, ragged_axes, wanted_margins
from pandas_dptree.planning.crossed_product import product_shares
from pandas_dptree.planning.crossed_star import closed_form, star_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_crossed_splits import (
    DEEPER,
    RAGGED,
    SMALL,
    WIDER,
    budget_of,
    costs_of,
    dense_optimum,
    dense_variances,
    inverse,
    uniform_product,
)
from tests.helpers_random import each_seed

LOW_EPSILON = PrivacyLoss(epsilon=0.01)
TWO = Tree.from_branching([2, 2])
CPS, ADULT, LOANS = (
    [50, 100, 7, 4, 2],
    [100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2],
    [101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15],
)


def best(product, budget, weights, objective="levels", starts=()):
    zeros = [None] * len(product.axes)
    return star_shares(
        product, budget, ragged=ragged_axes(product, zeros), zeros=zeros, weights=weights,
        objective=objective, starts=starts,
    )  # fmt: skip


def means_of(product, variances):
    zeros = [None] * len(product.axes)
    return Lattice(product, ragged_axes(product, zeros), zeros).means_and_vjp(1 / variances[:, None])[0][:, 0]


def in_units(product, budget, weights, shares):
    """The root mean square error, in units of continuous noise with the whole budget."""
    one = budget.noise.variance(budget.noise.noise_scales(budget.loss, budget.moves.part(
        np.arange(len(shares)) == 0), [1.0]))[0]  # fmt: skip
    unit = one if budget.power == 1 else one / 2
    return np.sqrt(weights @ means_of(product, budget.variances(shares)) / unit)


def ways(sizes, *numbers):
    """All margins of so many of these attributes."""
    margins = itertools.product((0, 1), repeat=len(sizes))
    return uniform_product(*([size] for size in sizes), shown=tuple(m for m in margins if sum(m) in numbers))


# --- uniform axes ---------------------------------------------------------------------------------------


@each("branchings", [((2, 3, 4), (3, 2)), ((50, 60), (12,), (3, 6), (2,)), ((2,) * 6, (2,) * 6)])
@each("objective", ["levels", "cells"])
def test_all_margins_of_uniform_axes_attain_the_lower_bound(branchings, objective):
    product = uniform_product(*branchings)
    weights, budget = costs_of(product, objective), budget_of(product)
    shares = best(product, budget, weights, objective)
    bound = uniform_crossed_bound(product, weights, np.ones((1, len(weights))))
    assert np.isclose(weights @ means_of(product, inverse(shares)), bound, rtol=1e-9)


@each_seed(2, 10)
@each("rows, neighbors", [(1, "add_remove"), (2, "replace")])
def test_the_split_is_the_best_of_all_on_uniform_axes(seed, rows, neighbors):
    rng = np.random.default_rng(seed)
    margins = list(itertools.product(range(3), range(2), range(2)))
    shown = tuple(sorted(map(tuple, rng.permutation(margins)[:4].tolist())))
    product = uniform_product([2, 2], [3], [1], shown=shown)
    budget = budget_of(product, neighbors=neighbors, rows=rows)
    weights = costs_of(product, "levels", rng.random(len(margins)))
    shares = best(product, budget, weights)
    least = dense_optimum(product, weights, budget.moves)
    cost = weights @ means_of(product, budget.variances(shares)) * 2 * SMALL.rho
    assert cost < least * (1 + 2e-4)  # margins with a weight of 0 have a share, too


def test_weights_without_negative_differences_have_a_closed_form():
    product = uniform_product([4], [3])
    weights = costs_of(product, "levels", np.array([3.0, 1, 1, 1]))
    precisions = closed_form(product, weights)
    assert (precisions >= 0).all()
    shares = best(product, budget_of(product), weights)
    np.testing.assert_allclose(shares, precisions / precisions.sum(), atol=1e-12)


def check_workload(sizes, numbers, bound, ours):
    product = ways(sizes, *numbers)
    weights = costs_of(product, "cells")
    found = np.sqrt(uniform_crossed_bound(product, weights, np.ones((1, len(weights)))))
    assert round(float(found), 4) == bound
    if ours is not None:
        shares = best(product, budget_of(product), weights, "cells")
        useful, _ = wanted_margins(product)
        assert not shares[~useful].any()
        assert round(float(np.sqrt(weights @ means_of(product, inverse(shares)))), 3) == ours


@each("numbers, bound, ours", [
    ([1], 1.7439, 1.757), ([2], 2.0346, 2.065), ([3], 2.0477, 2.089), ([0, 1, 2, 3], 2.2759, 2.278),
])  # fmt: skip
def test_workloads_of_five_attributes_are_those_of_residual_planner(numbers, bound, ours):
    check_workload(CPS, numbers, bound, ours)


@pytest.mark.slow
@each("sizes, numbers, bound, ours", [
    (ADULT, [1], 3.0468, 3.081), (ADULT, [2], 6.3587, 6.504),
    (ADULT, [3], 10.5153, None), (ADULT, [0, 1, 2, 3], 10.6650, None),
    (LOANS, [1], 2.8753, 2.903), (LOANS, [2], 5.6343, 5.747),
    (LOANS, [3], 8.7019, 8.970), (LOANS, [0, 1, 2, 3], 8.8756, 9.034),
])  # fmt: skip
def test_workloads_of_many_attributes_are_those_of_residual_planner(sizes, numbers, bound, ours):
    check_workload(sizes, numbers, bound, ours)


@each("sizes, even, most", [(CPS, 30.46, 18.7), pytest.param([10] * 5, 35.66, 27.5, id="10^5")])
def test_laplace_noise_is_better_than_hdmm(sizes, even, most):
    """HDMM has 20.13, as the product of the axes, and 30.09."""
    product = uniform_product(*([size] for size in sizes))
    budget, weights = budget_of(product, Laplace(), LOW_EPSILON), costs_of(product, "levels")
    equal = np.full(len(weights), 1 / len(weights))
    assert round(float(in_units(product, budget, weights, equal)), 2) == even
    assert in_units(product, budget, weights, best(product, budget, weights)) < most


def test_laplace_noise_is_never_worse_than_the_product():
    product = uniform_product([2, 3], [4])
    for objective in ("levels", "cells", "worst"):
        budget, weights = budget_of(product, Laplace(), LOW_EPSILON), costs_of(product, objective)
        start = product_shares(
            product, budget, split="optimal", weights=weights, objective=objective, zeros=[None, None]
        )
        shares = best(product, budget, weights, objective, [start])
        after, before = (weights * means_of(product, budget.variances(each)) for each in (shares, start))
        of = max if objective == "worst" else sum
        assert of(after) <= of(before)


# --- ragged axes ----------------------------------------------------------------------------------------


@each("axes, shown", [
    ((RAGGED, Tree.from_branching([3])), None),
    ((TWO, DEEPER), ((0, 2), (1, 1), (1, 3), (2, 0))),
    ((RAGGED, WIDER, Tree.from_branching([2])), ((0, 2, 1), (1, 0, 0), (2, 0, 1))),
])  # fmt: skip
@each("neighbors", ["add_remove", "replace"])
def test_the_split_is_the_best_of_all_with_one_ragged_axis_in_each_margin(axes, shown, neighbors):
    product = ProductTree(axes, shown)
    budget = budget_of(product, neighbors=neighbors)
    weights = costs_of(product, "levels")
    shares = best(product, budget, weights)
    variances = budget.variances(shares)
    means = means_of(product, variances)
    listed = weights > 0
    np.testing.assert_allclose(means[listed], dense_variances(product, variances)[listed], rtol=1e-9)
    least = dense_optimum(product, weights, budget.moves)
    assert weights @ means * 2 * SMALL.rho < least * (1 + 1e-5)


def test_correction_3_lists_of_ragged_axes_are_not_forced_into_a_product():
    """The product form would measure margins that nobody asked for."""
    product = ProductTree((DEEPER, WIDER), ((0, 1), (0, 2), (1, 0), (2, 0), (3, 0)))
    budget, weights = budget_of(product), costs_of(product, "levels")
    shares = best(product, budget, weights)
    in_product = product_shares(
        product, budget, split="optimal", weights=weights, objective="levels", zeros=[None, None]
    )
    both_axes = np.array([all(margin) for margin in product.margins])
    assert not shares[both_axes].any() and (in_product[both_axes] > 0).any()
    ratio = (weights @ dense_variances(product, inverse(in_product))) / (
        weights @ means_of(product, inverse(shares))
    )
    assert 1.15 < ratio < 1.4


def test_worst_errors_are_balanced():
    product = ProductTree((RAGGED, TWO), ((0, 2), (1, 1), (2, 0)))
    weights = costs_of(product, "worst", np.array([1.0, 1, 1, 1, 4, 1, 2, 1, 1]))
    budget = budget_of(product)
    costs = weights * means_of(product, budget.variances(best(product, budget, weights, "worst")))
    assert np.ptp(costs[weights > 0]) < 1e-4 * costs.max()
    assert costs.max() < (weights * means_of(product, budget.variances(np.full(9, 1 / 9)))).max()


@each("loss, noise", [(PrivacyLoss(epsilon=1.0, delta=1e-6), Laplace()), (PrivacyLoss(rho=30.0), Gaussian())])
def test_no_loss_has_worse_shares_than_even_ones(loss, noise):
    product = uniform_product([3], [2, 2])
    budget, weights = budget_of(product, noise, loss), costs_of(product, "levels")
    found, even = best(product, budget, weights), np.full(6, 1 / 6)
    costs = [weights @ means_of(product, budget.variances(each)) for each in (found, even)]
    assert costs[0] < costs[1]
