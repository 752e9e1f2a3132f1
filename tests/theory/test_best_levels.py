"""The best budgets and real branching factors: beside others, and the theorems."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from pandas_dptree.errors import ArgumentError
from pandas_dptree.theory.best_levels import (
    best_branching_factor,
    optimal_branching,
    optimal_budgets,
    optimal_real_tree,
)
from pandas_dptree.theory.level_uniform import level_uses
from tests.helpers_cases import each

branchings = st.lists(st.integers(2, 6), min_size=1, max_size=4).filter(lambda b: math.prod(b) <= 300)


@given(branchings, st.floats(0.01, 10), st.data())
def test_no_other_budgets_are_better(branching, epsilon, data):
    n_bins = data.draw(st.integers(2, math.prod(branching)))
    best = optimal_budgets(branching, epsilon, n_bins=n_bins)
    uses = np.array(level_uses(branching, n_bins), dtype=float)
    assert best.sum() == pytest.approx(epsilon)
    kept = uses > 0
    error = 8 * (uses[kept] / best[kept] ** 2).sum()
    assert error == pytest.approx(8 * np.cbrt(uses).sum() ** 3 / epsilon**2)
    change = np.array(data.draw(st.lists(st.floats(0.5, 2), min_size=len(uses), max_size=len(uses))))
    other = best * change * epsilon / (best * change).sum()
    assert 8 * (uses[kept] / other[kept] ** 2).sum() >= error * (1 - 1e-9)


def test_optimal_budgets_without_padding_are_theorem_iv_2():
    roots = np.cbrt([3, 8, 15])
    np.testing.assert_allclose(optimal_budgets([4, 9, 16], 0.7), 0.7 * roots / roots.sum())


@given(st.lists(st.floats(0.05, 1), min_size=1, max_size=5), st.integers(2, 10**6), st.integers(0, 99))
def test_no_other_real_factors_are_better_for_given_budgets(budgets, n_bins, seed):
    budgets = np.array(budgets)
    best = optimal_branching(budgets, n_bins)
    assert best.prod() == pytest.approx(n_bins)
    change = np.random.default_rng(seed).normal(size=len(best))
    other = best * np.exp(change - change.mean())
    assert ((other - 1) / budgets**2).sum() >= ((best - 1) / budgets**2).sum() * (1 - 1e-9) - 1e-6


@given(st.integers(1, 4), st.floats(0, 8), st.integers(0, 10**6))
def test_theorem_iv_3_equal_factors_and_budgets_are_best_if_all_factors_are_at_least_3(levels, spread, seed):
    rng = np.random.default_rng(seed)
    factors = 3 + np.exp(rng.uniform(-2, spread, levels))
    shares = rng.dirichlet(np.full(levels, 5.0)) + 1e-9
    n_bins = factors.prod()
    error = 4 * n_bins * ((factors - 1) / (shares / shares.sum()) ** 2).sum()
    equal = 4 * n_bins * levels**3 * (n_bins ** (1 / levels) - 1)
    assert error >= equal * (1 - 1e-9)
    factor, printed = optimal_real_tree(math.ceil(n_bins), levels)
    assert printed == pytest.approx(4 * math.ceil(n_bins) * levels**3 * (factor - 1))
    # Lemma IV.2, and the sandwich between one half of the larger expression and the whole of it.
    larger = 4 * n_bins * (factors / (shares / shares.sum()) ** 2).sum()
    assert larger / 2 <= error <= larger
    assert larger >= 4 * n_bins * levels**3 * n_bins ** (1 / levels) * (1 - 1e-9)


def test_theorem_iv_3_needs_its_condition():
    x = 1e-3
    unequal = np.cbrt([x, 4 / (1 + x) - 1]).sum() ** 3  # two levels, 4 bins, the best budgets
    assert unequal < np.cbrt([1, 1]).sum() ** 3
    with pytest.raises(ArgumentError, match="log"):
        optimal_real_tree(4, 2)
    assert optimal_real_tree(243, 5)[0] == pytest.approx(3)


def test_the_best_branching_factor():
    best = best_branching_factor()
    assert math.log(best) == pytest.approx(3 * (best - 1) / best)
    found = minimize_scalar(lambda b: (b - 1) / math.log(b) ** 3, bounds=(2, 100), method="bounded")
    assert best == pytest.approx(found.x, abs=1e-4)
    assert best == pytest.approx(16.8010161907083)  # the paper says "roughly 16.79"
    assert min(range(2, 1000), key=lambda b: (b - 1) / math.log(b) ** 3) == 17


def test_the_error_is_jointly_convex_from_factors_of_3_on_and_not_below():
    # The Hessian of (e^r - 1) / eps² at eps = 1; that of other eps is this one, scaled.
    def least_eigenvalue(factor):
        return np.linalg.eigvalsh([[factor, -2 * factor], [-2 * factor, 6 * (factor - 1)]])[0]

    assert all(least_eigenvalue(factor) >= 0 for factor in np.geomspace(3.0001, 1e6, 100))
    assert least_eigenvalue(3.0) == pytest.approx(0, abs=1e-12)
    assert all(least_eigenvalue(factor) < 0 for factor in np.linspace(1.1, 2.99, 50))


@each(
    "call, argument",
    [
        (lambda: optimal_budgets([2, 2], 0.0), "epsilon"),
        (lambda: optimal_branching([0.5, 0.0], 16), "budgets"),
        (lambda: optimal_branching([], 16), "budgets"),
        (lambda: optimal_branching([0.5], 0), "n_bins"),
        (lambda: optimal_real_tree(100, 0), "height"),
        (lambda: optimal_real_tree(100, 5), "height"),
    ],
)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(ArgumentError, match="Hint: ") as caught:
        call()
    assert caught.value.argument == argument
