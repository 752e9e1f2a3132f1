"""The adaptive fit: what it solves, what it keeps, and how it compares with the projection."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.estimation.adaptive import (
    _best_density,
    _Families,
    _linear_prices,
    _risk,
    _tilted,
    nonnegative_adaptive,
)
from pandas_dptree.estimation.least_squares import least_squares, propagate
from pandas_dptree.estimation.nonnegative import nonnegative_totals, project_families
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_cases import each
from tests.helpers_estimation import BRANCHINGS, SPARSE_TREES, assert_table, random_problem, sparse_leaves
from tests.helpers_random import each_seed
from tests.strategies import trees


def solve(families, density):
    _, means, spreads = _tilted(families, density, _linear_prices(families))
    return means, spreads


def tilted_by_quadrature(estimates, variances, density, total):
    """Tilt the posterior of each member of one family on a fine grid until the means add up."""
    counts = np.linspace(0, estimates.max() + 10 * variances.max() ** 0.5, 200_001)
    width = counts[1]
    weight = np.full(len(counts), density * width)
    weight[[0, -1]] /= 2
    weight[0] += 1

    def moments(price):
        exponent = -((counts - estimates[:, None]) ** 2) / (2 * variances[:, None]) - price * counts
        chances = np.exp(exponent - exponent.max(axis=1, keepdims=True)) * weight
        chances /= chances.sum(axis=1, keepdims=True)
        means = chances @ counts
        return means, chances @ counts**2 - means**2

    price = scipy.optimize.brentq(lambda price: moments(price)[0].sum() - total, -20, 20, xtol=1e-14)
    return moments(price)


@each_seed(2, 12)
def test_members_are_means_of_the_posterior_tilted_until_they_add_up(seed):
    rng = np.random.default_rng(seed)
    estimates, variances = rng.normal(3, 6, 5), rng.uniform(1, 9, 5)
    density, total = 10 ** rng.uniform(-2.5, 1), rng.uniform(0.2, 30)
    family = _Families(estimates, variances, np.array([total]), np.array([5]))
    for ours, expected in zip(
        solve(family, density), tilted_by_quadrature(estimates, variances, density, total), strict=True
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


@given(
    seed=st.integers(0, 2**32),
    total=st.sampled_from([1e-9, 1e-3, 1.0, 50.0, 1e4, 1e12]),
    centre=st.sampled_from([-1e6, -20.0, 0.0, 20.0, 1e6]),
    density=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]),
)
def test_families_add_up_however_far_their_estimates_are_off(seed, total, centre, density):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 20)
    n = int(sizes.sum())
    totals = total * rng.uniform(0.5, 2, 20)
    estimates = centre + rng.normal(0, 5, n)
    estimates[1] = estimates[0]
    variances = np.full(n, 4.0) if seed % 2 else rng.uniform(0.5, 9, n)
    variances[1] = variances[0]
    sizes[0] += sizes[1]
    families = _Families(estimates, variances, np.delete(totals, 1), np.delete(sizes, 1))
    means, _ = solve(families, density)
    assert (means >= 0).all() and means[0] == means[1]
    np.testing.assert_allclose(families.sum(means), families.totals, rtol=1e-8)


@given(tree=trees(max_depth=6), seed=st.integers(0, 2**32), known_share=st.sampled_from([0.0, 0.3]))
def test_tables_add_up_and_keep_what_is_known_and_the_root(tree, seed, known_share):
    rng = np.random.default_rng(seed)
    values, noise, exact = random_problem(rng, tree, known_share)
    variances = propagate(tree, noise)
    least = [np.floor(level * rng.uniform(0, 1, len(level))) for level in exact]
    for bounds in (None, least):
        estimates = nonnegative_adaptive(tree, values, variances, least=bounds)
        assert_table(tree, values, noise, estimates)
        assert estimates[0] == nonnegative_totals(tree, values, variances, least=bounds)[0]
        if bounds is not None:
            assert all((x >= b).all() for x, b in zip(estimates, bounds, strict=True))


def sparse_problem(rng, tree, occupied=0.05, draw="normal", clustered=False):
    exact = tree.roll_up(sparse_leaves(rng, tree, occupied, clustered))
    scale = {"normal": 32**0.5, "laplace": 4.0}[draw]
    variances = propagate(tree, [32.0] * (tree.depth + 1))
    return exact, variances, lambda: [x + np.rint(getattr(rng, draw)(0, scale, x.shape)) for x in exact]


@each("factor", [1e-3, 1e4])
def test_estimates_scale_with_their_unit(factor):
    tree = Tree.from_branching([5, 20])
    _, variances, measure = sparse_problem(np.random.default_rng(3), tree, occupied=0.1)
    values = measure()
    scaled = propagate(tree, [factor**2 * 32.0] * 3)
    one = nonnegative_adaptive(tree, values, variances)
    other = nonnegative_adaptive(tree, [factor * level for level in values], scaled)
    assert not np.allclose(one[-1], nonnegative_totals(tree, values, variances)[-1])
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(factor * a, b, rtol=1e-6, atol=1e-9 * factor)


def test_levels_that_are_full_are_projected():
    rng = np.random.default_rng(7)
    tree = Tree.from_branching([4, 30])
    values = [level + rng.integers(-5, 6, level.shape) for level in tree.roll_up(np.full(120, 1000))]
    variances = propagate(tree, [10.0] * 3)
    tables = (fit(tree, values, variances) for fit in (nonnegative_adaptive, nonnegative_totals))
    for ours, projected in zip(*tables, strict=True):
        np.testing.assert_array_equal(ours, projected)


def test_a_family_whose_total_is_a_rounding_error_leaves_its_level_alone():
    """Its projection holds every member at 0, which says nothing of the other families."""
    rng = np.random.default_rng(0)
    truth = np.zeros((300, 40))
    truth[:, 0] = 30
    estimates, variances = (truth + rng.normal(0, 3, truth.shape)).ravel(), np.full(truth.size, 9.0)
    densities = []
    for first in (30.0, 4.44e-16):
        totals = np.r_[first, np.full(299, 30.0)]
        families = _Families(estimates, variances, totals, np.full(300, 40))
        projected = project_families(Tree.from_branching([300, 40]), 1, estimates, variances, totals)
        densities.append(_best_density(families, projected))
    assert densities[0] == densities[1] > 0


def test_few_of_very_many_families_decide():
    tree = Tree.from_branching([20_000, 2])
    _, variances, measure = sparse_problem(np.random.default_rng(5), tree)
    values = measure()
    adaptive, projected = (f(tree, values, variances)[-1] for f in (nonnegative_adaptive, nonnegative_totals))
    assert (adaptive > 0).mean() > (projected > 0).mean()


@pytest.mark.slow
@pytest.mark.parametrize("density", [0.01, 0.3])
def test_the_estimated_risk_is_unbiased_under_normal_noise(density):
    rng = np.random.default_rng(1)
    sizes, n, draws = np.full(20, 10), 200, 3_000
    truth = rng.geometric(0.1, n) * (rng.random(n) < 0.3)
    totals = np.add.reduceat(truth, np.arange(0, n, 10)) + 1.0
    truth = truth + 0.1
    variances = rng.uniform(4, 20, n)
    whole = np.repeat(np.add.reduceat(variances, np.arange(0, n, 10)), 10)
    constant = (variances * (1 - variances / whole)).sum()
    gaps = np.empty(draws)
    for draw in range(draws):
        families = _Families(rng.normal(truth, variances**0.5), variances, totals, sizes)
        means, spreads = solve(families, density)
        gaps[draw] = _risk(families, means, spreads) - constant - ((means - truth) ** 2).sum()
    error = gaps.std() / draws**0.5
    assert abs(gaps.mean()) <= 4 * error
    assert error < 0.01 * constant


@pytest.mark.slow
@pytest.mark.parametrize("draw", ["laplace", pytest.param("normal", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("shape", "ragged", "occupied", "clustered"), SPARSE_TREES)
def test_squared_errors_are_no_worse_than_the_projection_s_and_far_below_where_leaves_are_empty(
    shape, ragged, occupied, clustered, draw
):
    rng = np.random.default_rng(12)
    counts, size = [], 1
    for width in BRANCHINGS[shape]:
        counts.append(rng.integers(1, 2 * width, size) if ragged else np.array([width]))
        size = int(np.broadcast_to(counts[-1], size).sum())
    tree = Tree(tuple(counts))
    exact, variances, measure = sparse_problem(rng, tree, occupied, draw, clustered)
    fits, repeats = (least_squares, nonnegative_totals, nonnegative_adaptive), 24
    squares, moduli = np.zeros((2, 3, repeats, tree.depth + 1))
    for repeat in range(repeats):
        values = measure()
        for row, fit in enumerate(fits):
            gaps = [x - t for x, t in zip(fit(tree, values, variances), exact, strict=True)]
            squares[row, repeat] = [(gap**2).sum() for gap in gaps]
            moduli[row, repeat] = [np.abs(gap).sum() for gap in gaps]
    linear, projected, adaptive = squares.mean(axis=1)
    noise = (squares[2] - squares[1]).std(axis=0) / repeats**0.5
    assert (adaptive <= 1.01 * projected + 3 * noise).all(), adaptive / projected
    assert (adaptive <= 1.05 * linear).all(), adaptive / linear
    assert adaptive[-1] < projected[-1]
    if occupied <= 0.05:
        assert adaptive[-1] <= 0.95 * projected[-1]
        assert moduli[2].mean(axis=0)[-1] <= 0.97 * moduli[1].mean(axis=0)[-1]
        assert adaptive.sum() <= 0.25 * linear.sum()
