"""Whole, non-negative tables of crossed hierarchies."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pandas_dptree.estimation.crossed import crossed_squares
from pandas_dptree.estimation.crossed_fit import fit_crossed, flattest_leaves
from pandas_dptree.estimation.least_squares import least_squares, propagate
from pandas_dptree.estimation.nonnegative import nonnegative_totals
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity
from tests.helpers_cases import each
from tests.helpers_crossed_fit import SHAPES, known_on, membership, noisy_margins
from tests.helpers_random import each_seed, words
from tests.strategies import fewer, trees


def products(name):
    return ProductTree(SHAPES[name])


def variances_of(rng, product, *, as_product=True):
    if not as_product:
        return rng.uniform(0.5, 5, len(product.margins))
    of_axes = [[rng.uniform(0.5, 3, 1) for _ in range(axis.depth + 1)] for axis in product.axes]
    return np.array([product.outer(of_axes, margin)[0] for margin in product.margins])


@pytest.mark.parametrize("name", SHAPES)
@each("as_product, extra", [(True, 0.0), (True, 2.0), (False, 0.0)])
def test_without_negative_estimates_it_is_least_squares(name, as_product, extra):
    rng = np.random.default_rng(1)
    product = products(name)
    variances = variances_of(rng, product, as_product=as_product)
    variances[0] = 1 / (1 / variances[0] + extra)
    estimates = noisy_margins(rng, product, rng.integers(60, 90, product.n_leaves), variances)
    table = fit_crossed(product, estimates, variances)
    assert table.dtype == np.float64
    np.testing.assert_allclose(table, estimates[-1], rtol=1e-11)


@pytest.mark.parametrize("name", SHAPES)
@each_seed(2, 30)
def test_tables_are_whole_and_nonnegative_and_near_their_estimates(name, seed):
    rng = np.random.default_rng(seed)
    product = products(name)
    variances = variances_of(rng, product, as_product=seed % 2 == 0)
    estimates = noisy_margins(rng, product, rng.poisson(0.5, product.n_leaves), variances)
    table = fit_crossed(product, estimates, variances, words(seed))
    assert table.dtype == np.int64 and table.shape == (product.n_leaves,)
    assert (table >= 0).all()
    assert table.sum() == max(0, np.rint(estimates[0][0]))
    again = fit_crossed(product, estimates, variances, words(seed))
    np.testing.assert_array_equal(table, again)


@given(axes=st.lists(trees(max_depth=3, max_leaves=5), min_size=1, max_size=3), seed=st.integers(0, 2**32))
@fewer(2)
def test_any_estimates_make_a_table(axes, seed):
    rng = np.random.default_rng(seed)
    product = ProductTree(tuple(axes))
    variances = 10.0 ** rng.uniform(-3, 3, len(product.margins))
    leaves = rng.normal(0, 10.0 ** rng.integers(0, 19), product.n_leaves)
    estimates = list(product.roll_up(leaves))
    for draw in (None, words(seed)):
        table = fit_crossed(product, estimates, variances, draw)
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(), np.clip(estimates[0][0], 0, 2.0**61), rtol=1e-9, atol=1)


def test_negative_numbers_alone_make_an_empty_table():
    product = products("three")
    estimates = list(product.roll_up(np.full(product.n_leaves, -3.0)))
    assert not fit_crossed(product, estimates, np.ones(len(product.margins)), words()).any()


@each("fixed", [{}, {(2, 4): 1.0}, {(1, 0): 3.0, (2, 2): 1.0, (2, 3): 0.0}])
@each("seed", range(6))
def test_one_axis_is_a_single_hierarchy(fixed, seed):
    rng = np.random.default_rng(seed)
    tree = Tree((np.array([3]), np.array([2, 4, 1])))
    measured = [rng.normal(2, 3, size) for size in tree.level_sizes]
    noise = [
        np.full(size, variance) for size, variance in zip(tree.level_sizes, [1.0, 2.0, 0.5], strict=True)
    ]
    levels = [np.full(size, np.nan) for size in tree.level_sizes]
    for (level, node), count in fixed.items():
        measured[level][node], noise[level][node], levels[level][node] = count, 0.0, count
    variances = propagate(tree, noise)
    product = ProductTree((tree,))
    table = fit_crossed(
        product,
        least_squares(tree, measured, variances),
        np.array([1.0, 2.0, 0.5]),
        known=known_on(product, exact=(0, levels)),
    )
    np.testing.assert_allclose(table, nonnegative_totals(tree, measured, variances)[-1], atol=1e-9)


@pytest.mark.parametrize("draw", [None, words()])
@each_seed(3, 60)
def test_known_totals_and_empty_slices_are_kept(draw, seed):
    rng = np.random.default_rng(seed)
    product = products("three")
    leaves = rng.poisson(0.7, product.leaf_shape)
    leaves[:, :, 1] = 0
    exact = product.sum_margins(leaves, product.margins)
    place = seed % 3
    levels = [exact[tuple(level * (at == place) for at in range(3))] for level in range(3 - (place == 1))]
    share = [0.5, 1.0][seed % 2]
    kept = [np.where(rng.random(values.size) < share, values.reshape(-1), np.nan) for values in levels]
    known = known_on(product, exact=(place, kept), empty=[(2, 1)])
    variances = np.full(len(product.margins), 4.0)
    estimates = noisy_margins(rng, product, leaves.reshape(-1), variances)
    variances[known.levels] = 0.0
    table = fit_crossed(product, estimates, variances, draw, known=known)
    assert (table >= 0).all() and not table.reshape(product.leaf_shape)[:, :, 1].any()
    for level, margin in enumerate(product.roll_up(table)):
        fixed = np.broadcast_to(known.exact[level], margin.shape)
        np.testing.assert_allclose(
            margin[fixed], np.broadcast_to(known.least[level], margin.shape)[fixed], atol=1e-9
        )


def test_totals_beyond_all_measure_are_cut():
    product = products("two")
    estimates = list(product.roll_up(np.full(product.n_leaves, 1e19)))
    table = fit_crossed(product, estimates, np.ones(len(product.margins)), words())
    assert (table >= 0).all() and table.sum() == 2**61


@each_seed(4, 40)
def test_more_steps_never_take_a_table_away_from_the_estimates(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    product = ProductTree((Tree.from_branching([2]), Tree.from_branching([2, 2]), Tree.from_branching([6])))
    leaves = rng.poisson(0.4, product.leaf_shape) + rng.normal(0, 2, product.leaf_shape)
    estimates = list(product.roll_up(leaves.reshape(-1)))
    steps = []
    for n in range(9):
        monkeypatch.setattr("pandas_dptree.estimation.crossed_fit._STEPS", n)
        table = fit_crossed(product, estimates, np.ones(len(product.margins))).reshape(product.leaf_shape)
        finest = product.sum_margins(
            table - leaves, [margin for margin in product.margins if margin[-1] == 1]
        )
        steps.append(sum((each**2).sum() for margin, each in finest.items()))
    assert (np.diff(steps) <= 1e-9).all()


def test_rounding_errors_do_not_add_up_in_any_margin():
    product = ProductTree(tuple(Tree.from_branching([n]) for n in (10, 11, 12)))
    leaves = np.random.default_rng(0).uniform(5, 6, product.n_leaves)
    estimates = product.roll_up(leaves)
    whole = product.roll_up(fit_crossed(product, estimates, np.ones(8), words()))
    for table, real in zip(whole, estimates, strict=True):
        assert (table - real).std() < 0.6 and np.abs(table - real).max() < 2


def test_the_total_is_at_least_what_is_known():
    product = products("two")
    known = known_on(product, exact=(1, [[np.nan], [7, np.nan], [np.nan, np.nan, np.nan, np.nan]]))
    estimates = list(product.roll_up(np.full(product.n_leaves, -1.0)))
    table = fit_crossed(product, estimates, np.ones(len(product.margins)), words(), known=known)
    assert table.reshape(2, 4).sum(axis=0).tolist()[3] == 0
    assert product.sum_margins(table.reshape(2, 4), [(0, 1)])[0, 1].tolist() == [[7, 0]]


LISTS = [{(1, 0, 0), (0, 0, 2)}, {(2, 1, 0), (0, 1, 2)}, {(2, 0, 1), (1, 1, 0), (0, 1, 1)}]


@each("listed", LISTS)
@each("empty", [[], [(2, 1), (0, 2)]])
def test_leaf_cells_that_cannot_be_estimated_are_as_flat_as_the_margins_allow(listed, empty):
    rng = np.random.default_rng(0)
    product = products("three")
    known = known_on(product, empty=empty)
    variances = np.array([1.0 if margin in listed else np.inf for margin in product.margins])
    truth = rng.poisson(3, product.leaf_shape)
    for place, leaf in empty:
        truth[(slice(None),) * place + (leaf,)] = 0
    estimates = noisy_margins(rng, product, truth.reshape(-1), variances, ~known.exact[-1])
    leaves = flattest_leaves(product, estimates, known.zeros).reshape(-1)
    allowed = np.broadcast_to(~known.exact[-1], product.n_leaves)
    matrices = membership(product)
    rows = np.concatenate([m for m, each in zip(matrices, estimates, strict=True) if each is not None])
    values = np.concatenate([each for each in estimates if each is not None])
    expected = np.linalg.lstsq(rows * allowed, values, rcond=None)[0]
    np.testing.assert_allclose(leaves, expected, atol=1e-9)
    table = fit_crossed(product, estimates, variances, words(), known=known)
    assert table.dtype == np.int64 and (table >= 0).all() and table.sum() == np.rint(estimates[0][0])
    assert not table[~allowed].any()


def population(rng, sizes, mean, rough):
    """Counts of so many people in a cell on average, few of whom live in most of the places."""
    shares = reduce(np.multiply.outer, [rng.lognormal(0, spread, size) for size, spread in sizes])
    shares = shares * rng.lognormal(0, rough, shares.shape)
    return rng.poisson(shares / shares.sum() * mean * shares.size)


def draws_of(product, truth, variances, n_draws):
    """The exact margins, and the errors of those of whole tables and of least squares, draw by draw."""
    rng = np.random.default_rng(0)
    matrices = [sparse.csr_array(matrix) for matrix in membership(product)]
    rows = sparse.vstack([m / np.sqrt(v) for m, v in zip(matrices, variances, strict=True) if np.isfinite(v)])
    inverse = np.linalg.pinv((rows.T @ rows).toarray(), hermitian=True) @ rows.T
    exact = [matrix @ truth.reshape(-1) for matrix in matrices]
    finest = [product.margins[level] for level in np.flatnonzero(np.isfinite(variances))]
    down = [any(np.less_equal(margin, each).all() for each in finest) for margin in product.margins]
    for draw in range(n_draws):
        noisy = rows @ truth.reshape(-1) + rng.normal(size=rows.shape[0])
        leaves = inverse @ noisy
        estimates = [matrix @ leaves if flag else None for matrix, flag in zip(matrices, down, strict=True)]
        table = fit_crossed(product, estimates, variances, words(draw))
        yield (
            exact,
            [
                None if estimate is None else (matrix @ table - true, estimate - true)
                for matrix, true, estimate in zip(matrices, exact, estimates, strict=True)
            ],
        )


def errors_beside_linear(product, truth, variances, n_draws):
    """Root mean squared errors of whole tables, over those of least squares, for each margin."""
    squares = np.zeros((2, len(product.margins)))
    for _, errors in draws_of(product, truth, variances, n_draws):
        for level, both in enumerate(errors):
            if both is not None:
                squares[:, level] += [(each**2).sum() for each in both]
    with np.errstate(invalid="ignore"):
        return np.sqrt(squares[0] / squares[1])


def small_world(mean, rough):
    rng = np.random.default_rng(4)
    place = Tree((np.array([4]), np.array([6, 2, 9, 5])))
    product = ProductTree((Tree.from_branching([4]), Tree.from_branching([3, 2]), place))
    return product, population(rng, [(4, 0.1), (6, 0.3), (place.n_leaves, 1.5)], mean, rough)


@each("mean, rough, n_draws, of_cells", [(20, 0.3, 2, 0.8), (0.25, 1.5, 5, 0.2)])
def test_margins_are_hardly_less_accurate_than_least_squares(mean, rough, n_draws, of_cells):
    product, truth = small_world(mean, rough)
    ratios = errors_beside_linear(product, truth, np.full(len(product.margins), 90.0), n_draws)
    assert ratios.max() < 1.1
    assert ratios[-1] < of_cells


@each("listed", [[(1, 0, 2), (0, 2, 1)], [(1, 2, 0), (0, 1, 2), (1, 0, 2)]])
def test_lists_of_margins_are_hardly_less_accurate_than_least_squares(listed):
    product, truth = small_world(0.25, 1.5)
    variances = np.array([9.0 if margin in listed else np.inf for margin in product.margins])
    ratios = errors_beside_linear(product, truth, variances, 2)
    assert max(ratios[product.level_of(margin)] for margin in listed) < 1.15


def test_margins_off_the_chain_would_be_less_accurate_if_they_were_not_pulled(monkeypatch):
    product, truth = small_world(0.25, 1.5)
    variances = np.full(len(product.margins), 90.0)
    monkeypatch.setattr("pandas_dptree.estimation.crossed_fit._STEPS", 0)
    assert errors_beside_linear(product, truth, variances, 5).max() > 1.15


@pytest.mark.slow
def test_the_total_is_unbiased_and_small_and_large_cells_approach_each_other():
    product, truth = small_world(0.25, 1.5)
    variances = np.full(len(product.margins), 90.0)
    draws = list(draws_of(product, truth, variances, 200))
    exact = draws[0][0]
    bias = [np.mean([each[level][0] for _, each in draws], axis=0) for level in range(len(exact))]
    totals = [each[0][0][0] for _, each in draws]
    assert abs(bias[0][0]) < 4 * np.std(totals) / np.sqrt(len(draws))
    for margin in [(0, 0, 2), (1, 0, 2), (0, 2, 2), (1, 2, 2)]:
        level = product.level_of(margin)
        order = np.argsort(exact[level], kind="stable")
        few, many = np.array_split(order, [len(order) // 2])
        assert bias[level][few].mean() > 0.05 > -0.05 > bias[level][many].mean(), margin


def ragged(rng, *sizes):
    """A tree with so many nodes on each level, in families of very different sizes."""
    counts, above = [], 1
    for size in sizes:
        extra = rng.multinomial(size - above, rng.dirichlet(np.full(above, 0.6)))
        counts.append(1 + extra)
        above = size
    return Tree(tuple(counts))


AGE, PLACE = (6, 18), (50, 600)


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "rough", "of_cells"), [(20, 0.3, 0.9), (0.25, 1.5, 0.2)])
@pytest.mark.parametrize(
    ("spread", "place", "most"),
    [
        ((0.3, 1.5), PLACE, 1.05),
        ((0.1, 0.3, 1.5), PLACE, 1.05),
        ((0.1, 0.3, 0.1, 1.5), PLACE, 1.1),
        ((0.1, 0.3, 0.1, 0.5, 1.5), (20, 150), 1.15),
    ],
)
def test_whole_tables_of_two_to_five_axes(mean, rough, of_cells, spread, place, most):
    rng = np.random.default_rng(11)
    sex, month, kind = (Tree.from_branching([n]) for n in (2, 12, 8))
    age, places = ragged(rng, *AGE), ragged(rng, *place)
    axes = [(age, places), (sex, age, places), (sex, age, month, places), (sex, age, month, kind, places)]
    product = ProductTree(axes[len(spread) - 2])
    sizes = zip((axis.n_leaves for axis in product.axes), spread, strict=True)
    truth = product.roll_up(population(rng, sizes, mean, rough).reshape(-1))
    loss = PrivacyLoss(rho=0.1)
    shares = [
        optimal_shares(axis, Gaussian(), loss, Sensitivity(l1=1, l2_squared=1)) for axis in product.axes
    ]
    variances = 1 / (0.2 * reduce(np.multiply.outer, shares).reshape(-1))
    squares = crossed_squares(product, variances, CrossedKnown.nothing(product))
    errors = np.zeros((2, len(truth)))
    for draw in range(3):
        noisy = [np.rint(n + rng.normal(0, v**0.5, n.shape)) for n, v in zip(truth, variances, strict=True)]
        estimates = squares.estimate(noisy)
        fitted = product.roll_up(fit_crossed(product, estimates, variances, words(draw)))
        for row, tables in enumerate((fitted, estimates)):
            errors[row] += [((a - b) ** 2).mean() for a, b in zip(tables, truth, strict=True)]
    ratios = np.sqrt(errors[0] / errors[1])
    assert ratios[np.array(product.level_sizes) >= 50].max() < most
    assert ratios[-1] < of_cells


@each("name", ["two", "three"])
def test_families_are_fitted_by_themselves(name, monkeypatch):
    product, rng = products(name), np.random.default_rng(2)
    variances = variances_of(rng, product)
    estimates = noisy_margins(rng, product, rng.poisson(2, product.n_leaves), variances)
    together = fit_crossed(product, estimates, variances)
    monkeypatch.setattr("pandas_dptree.estimation.crossed_fit._CELLS", 1)
    np.testing.assert_allclose(fit_crossed(product, estimates, variances), together, atol=1e-9)


def test_equal_cells_are_rounded_up_equally_often():
    product = ProductTree((Tree.from_branching([2]), Tree.from_branching([3])))
    estimates = list(product.roll_up(np.full(6, 0.5)))
    draw, n = words(1), 100
    tables = np.array([fit_crossed(product, estimates, np.ones(4), draw) for _ in range(n)])
    np.testing.assert_allclose(tables.mean(axis=0), 0.5, atol=4.5 * 0.5 / np.sqrt(n))
