"""The search for the best level-uniform tree, beside brute force and the theorems."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.theory import tree_search as search
from pandas_dptree.theory.best_levels import best_branching_factor
from pandas_dptree.theory.level_uniform import digit_sum, tree_error
from pandas_dptree.theory.tree_search import optimal_tree
from tests.helpers_cases import each

branchings = st.lists(st.integers(2, 6), min_size=1, max_size=4).filter(lambda b: math.prod(b) <= 300)


def equal_error(n_bins, factor, height):
    """Theorem IV.1 for equal factors and an epsilon of 1."""
    return 4 * n_bins * height**3 * (factor - 1)


def factorisations(whole, least=2):
    """All ways to write a number as a product, in rising order."""
    if whole >= least:
        yield (whole,)
    for factor in range(least, math.isqrt(whole) + 1):
        if whole % factor == 0:
            yield from ((factor, *rest) for rest in factorisations(whole // factor, factor))


def padded_trees(most):
    """All trees in which the first factor is the least that is enough, as what is below the root."""
    trees, done = [()], []
    while trees:
        done += trees
        trees = [(n, *tree) for tree in trees for n in range(2, (most - 1) // math.prod(tree) + 1)]
    return done


@pytest.mark.parametrize("most", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_the_search_finds_what_brute_force_finds(most):
    best = {}
    for below in padded_trees(most):
        levels = len(below) + 1
        size = math.prod(below)
        t = np.arange(most)
        digits, scale = [], 1
        for factor in reversed(below):
            digits.append(t // scale % factor)
            scale *= factor
        digits.append(t // scale)
        uses = np.cumsum(digits, axis=1)  # for K - 1 = 0 … most - 1
        objectives = {"even": levels**2 * uses.sum(axis=0), "optimal": np.cbrt(uses).sum(axis=0) ** 3}
        for name, values in objectives.items():
            for key in (None, levels):
                known = best.setdefault((name, key), np.full(most, np.inf))
                known[size:] = np.minimum(known[size:], values[size:])
    for (name, height), objective in best.items():
        for n_bins in range(2, most + 1, 5 if height else 1):
            if np.isfinite(objective[n_bins - 1]):
                found = optimal_tree(n_bins, height=height, budgets=name)
                assert found.error == pytest.approx(8 * objective[n_bins - 1], rel=1e-12)
                variances = 8 / np.array(found.budgets) ** 2
                error = tree_error(found.branching, variances, n_bins=n_bins)
                assert found.error == pytest.approx(error, rel=1e-12)
            elif height is not None:
                with pytest.raises(ArgumentError, match="too large"):
                    optimal_tree(n_bins, height=height, budgets=name)


@pytest.mark.parametrize("budgets", ["even", "optimal"])
@each("n_bins", [*range(2, 33), 720])
def test_without_padding_it_finds_the_best_factorisation(n_bins, budgets):
    check_factorisation(n_bins, budgets)


@pytest.mark.slow
@pytest.mark.parametrize("budgets", ["even", "optimal"])
@each("n_bins", [*range(33, 201), 1024, 30030, 46656, 999983])
def test_without_padding_it_finds_the_best_of_many_factorisations(n_bins, budgets):
    check_factorisation(n_bins, budgets)


def check_factorisation(n_bins, budgets):
    def error(factors):
        uses = n_bins / 2 * (np.array(factors) - 1)
        return 8 * (len(factors) ** 2 * uses.sum() if budgets == "even" else np.cbrt(uses).sum() ** 3)

    expected = {}
    for factors in factorisations(n_bins):
        for height in (None, len(factors)):
            expected[height] = min(expected.get(height, math.inf), error(factors))
    for height, least in expected.items():
        found = optimal_tree(n_bins, height=height, budgets=budgets, padding=False)
        assert math.prod(found.branching) == n_bins and list(found.branching) == sorted(found.branching)
        assert found.error == pytest.approx(least, rel=1e-12) == pytest.approx(error(found.branching))


@given(st.integers(2, 10**5), st.integers(1, 8), st.booleans(), st.integers(0, 10**6))
def test_bounds_of_the_search_are_bounds(n_bins, left, even, seed):
    rng = np.random.default_rng(seed)
    size = int(np.exp(rng.uniform(0, math.log(n_bins))))
    bound = float(search._least_rest(n_bins, np.array([size]), left, even=even)[0])
    above, cost = size, 0.0
    for level in range(left - 1, 0, -1):
        most = (n_bins - 1) // (above << (level - 1))
        if most < 2:
            return
        factor = int(np.exp(rng.uniform(math.log(2), math.log(most + 0.999))))
        cost += float(search._term(np.array(digit_sum(n_bins, above, factor)), even=even))
        above *= factor
    cost += float(search._term(np.array(digit_sum(n_bins, above, -(-n_bins // above))), even=even))
    assert cost >= bound * (1 - 1e-12)


def test_bounds_for_any_number_of_levels_are_close_to_the_tangent():
    factor = best_branching_factor()
    tangent = math.cbrt(factor - 1) / math.log(factor) * search._STEP * np.arange(len(search._least_costs()))
    assert 0.01 < (tangent - search._least_costs()).max() < 0.02


@each("prime, power", [(2, 11), (2, 20), (3, 7), (5, 6), (17, 4), (31, 3)])
def test_theorem_v_1_prime_powers(prime, power):
    for height in range(1, power + 1):
        whole, rest = divmod(power, height)
        expected = (prime**whole,) * (height - rest) + (prime ** (whole + 1),) * rest
        assert optimal_tree(prime**power, height=height, padding=False).branching == expected


@pytest.mark.parametrize("most", [10**3, pytest.param(10**5, marks=pytest.mark.slow)])
def test_theorem_v_2(most):
    for n_bins in {q**m for q in range(2, 40) for m in range(2, 9) if q**m < most}:
        best = len(optimal_tree(n_bins, padding=False).branching)
        for height in range(1, n_bins.bit_length()):
            root = round(n_bins ** (1 / height))
            if root**height == n_bins:
                assert best >= height if root >= 17 else best <= height


def test_corollaries_of_theorem_v_2():
    for prime, power in [(17, 5), (19, 3), (101, 4)]:
        assert optimal_tree(prime**power, padding=False).branching == (prime,) * power
    for n_bins in range(2, 17):
        assert optimal_tree(n_bins).branching == optimal_tree(n_bins, padding=False).branching == (n_bins,)
    assert len(optimal_tree(2**20, padding=False).branching) in (4, 5)
    assert optimal_tree(2**20).branching == (16,) * 5


@given(branchings)
def test_lemma_v_1_is_the_inequality_of_means(branching):
    n_bins, height = math.prod(branching), len(branching)
    bound = equal_error(n_bins, n_bins ** (1 / height), height)
    assert tree_error(branching, [8 * height**2] * height) >= bound * (1 - 1e-12)


@pytest.mark.parametrize("power", [11, 13, 17, *(pytest.param(n, marks=pytest.mark.slow) for n in (19, 23))])
def test_lemma_v_2_equal_factors_are_worse_by_more_than_three(power):
    n_bins = 2**power
    best = optimal_tree(n_bins, padding=False)
    assert 3 * best.error < min(equal_error(n_bins, 2, power), equal_error(n_bins, n_bins, 1))
    # With optimal budgets it gets better still; with padding it need not.
    assert optimal_tree(n_bins, padding=False, budgets="optimal").error < best.error
    assert optimal_tree(n_bins).error <= best.error


def test_a_step_of_the_proof_of_lemma_v_2_fails_at_2_to_the_11_and_equal_factors_with_padding_do_better():
    s = 2
    assert (s + 1) ** 2 * (15 * s + 7) > 16 * s**3 + 48 * s**2
    assert all((s + 1) ** 2 * (15 * s + 7) < 16 * s**3 + 48 * s**2 for s in range(3, 100))
    assert optimal_tree(2**11, padding=False).branching == (8, 16, 16)
    assert optimal_tree(2**11).branching == (13, 13, 13)
    assert tree_error([13] * 3, [72.0] * 3, n_bins=2**11) < optimal_tree(2**11, padding=False).error


def test_trees_over_one_bin_and_over_many():
    assert optimal_tree(1) == search.OptimalTree(branching=(), budgets=(), error=0.0)
    for padding, name in itertools.product([True, False], ["even", "optimal"]):
        found = optimal_tree(10**4, epsilon=0.5, padding=padding, budgets=name)
        assert sum(found.budgets) == pytest.approx(0.5)
        assert found.error == pytest.approx(4 * optimal_tree(10**4, padding=padding, budgets=name).error)
    assert optimal_tree(10**7).branching == (15, 15, 15, 15, 15, 14)
    assert optimal_tree(2**31, height=1).branching == (2**31,)
