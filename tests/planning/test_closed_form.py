"""The best split of a uniform tree, in closed form."""

import numpy as np
import pytest
import scipy.optimize

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.planning.closed_form import Spaces, best_uniform_split
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.planning.patterns import undominated
from tests.helpers_cases import each
from tests.helpers_planning import RHO, cost_of
from tests.helpers_privacy import ONE_ROW


@each(
    "objective, expected",
    [("cells", [0.061, 0.101, 0.198, 0.641]), ("levels", [0.195, 0.230, 0.252, 0.323])],
)
def test_gaussian_split_of_a_uniform_tree_is_the_closed_form(objective, expected):
    shares = optimal_shares(Tree.from_branching([2, 3, 4]), Gaussian(), RHO, ONE_ROW, objective=objective)
    np.testing.assert_allclose(shares, expected, atol=6e-4)


@each("branching", [[2, 3, 4], [50, 60, 30], [2] * 8, [1, 5, 1, 3]])
@each("objective", ["cells", "levels"])
def test_gaussian_split_of_a_uniform_tree_attains_the_singular_value_bound(branching, objective):
    tree = Tree.from_branching(branching)
    sizes = np.array(tree.level_sizes, dtype=float)
    weights = np.ones(len(sizes)) / len(sizes) if objective == "levels" else sizes / sizes.sum()
    # The workload's Gram matrix is sum_l u_l A_l' A_l. Its eigenvalues, level by level: sum of the u_k s_k
    # from l down, as often as level l has more nodes than the one above.
    leaves = sizes[-1] / sizes
    eigenvalues = np.cumsum((weights / sizes * leaves)[::-1])[::-1]
    bound = (np.diff(sizes, prepend=0) * np.sqrt(eigenvalues)).sum() ** 2 / sizes[-1] / (2 * RHO.rho)
    shares = optimal_shares(tree, Gaussian(), RHO, ONE_ROW, objective=objective)
    assert cost_of(tree, Gaussian(), RHO, shares, objective) == pytest.approx(bound, rel=1e-9)


# -- levels of different prices ----------------------------------------------------------------------


def largest_fill(sizes, rows, cap):
    """For each level of a uniform tree, the squares of the fullest nodes that a unit's rows can fill."""
    leaves = sizes[-1] // np.asarray(sizes)
    held = np.maximum(np.minimum(rows, cap * leaves), 1)
    return rows // held * held**2 + (rows % held) ** 2


def replaced(sizes, rows, cap):
    """The squares of all levels if a unit's rows disappear and b other rows appear, for each b."""
    single = np.asarray(sizes) == 1
    before = largest_fill(sizes, rows, cap)
    return np.array(
        [np.where(single, (rows - b) ** 2, before + largest_fill(sizes, b, cap)) for b in range(rows + 1)],
        dtype=float,
    )


def mean_variances(sizes, precisions):
    """Least squares on a uniform tree, from the roots of its spaces."""
    sizes = np.asarray(sizes, dtype=float)
    leaves = sizes[-1] / sizes
    spread = np.cumsum((precisions * leaves)[::-1])[::-1]
    more = np.diff(sizes, prepend=0)
    return leaves / sizes * np.cumsum(np.divide(more, spread, out=np.zeros_like(spread), where=more > 0))


def solved(sizes, weights, patterns):
    """The least cost that a generic solver finds over the logarithms of precisions."""
    largest = patterns.max(axis=0)

    def log_cost(logs):
        return np.log(weights @ mean_variances(sizes, np.exp(logs)))

    limits = {
        "type": "ineq",
        "fun": lambda logs: 1 - patterns @ np.exp(logs),
        "jac": lambda logs: -patterns * np.exp(logs),
    }
    found = scipy.optimize.minimize(
        log_cost, -np.log(largest * len(sizes)), method="SLSQP", constraints=[limits],
        bounds=[(low, low + 30) for low in -np.log(largest) - 25],
        options={"ftol": 1e-13, "maxiter": 300},
    )  # fmt: skip
    precisions = np.exp(found.x)
    return weights @ mean_variances(sizes, precisions / max(1, (patterns @ precisions).max()))


def random_case(rng):
    sizes = np.cumprod(np.append(1, rng.integers(2, 7, rng.integers(1, 5))))
    return sizes, rng.exponential(size=len(sizes))


@each("seed", range(12))
def test_split_under_prices_is_a_generic_solvers(seed):
    rng = np.random.default_rng(seed)
    sizes, weights = random_case(rng)
    prices = rng.exponential(size=len(sizes)) ** 2
    precisions, _ = best_uniform_split(sizes, weights, prices[None])
    cost = prices @ precisions * (weights @ mean_variances(sizes, precisions))
    assert cost == pytest.approx(solved(sizes, weights, prices[None]), rel=1e-6)


@each("seed", range(8))
def test_a_known_level_is_one_whose_price_is_0(seed):
    rng = np.random.default_rng(seed)
    sizes, weights = np.array([1, 3, 12, 24, 96]), rng.exponential(size=5)
    prices, known = rng.exponential(size=5) * [1, 1, 0, 1, 1], np.arange(5) == 2
    precisions, _ = best_uniform_split(sizes, weights, prices[None])
    assert not precisions[:3].any()
    cost = prices @ precisions * Spaces.of(sizes, weights).cost(precisions, known)
    weights[:3] = weights[:3].sum() * np.array([0, 0, 1e-9])  # have no error
    as_if = np.where(known, 1e-9, prices)
    assert cost == pytest.approx(solved(sizes, weights, as_if[None]), rel=1e-3)


@each("seed", range(12))
def test_split_under_several_patterns_is_a_generic_solvers_and_proved(seed):
    rng = np.random.default_rng(seed)
    sizes, weights = random_case(rng)
    if seed % 2:
        rows = int(rng.integers(1, 14))
        patterns = replaced(sizes, min(rows, sizes[-1]), int(rng.integers(1, rows + 1)))
    else:
        patterns = rng.exponential(size=(3, len(sizes))) * (rng.random((3, len(sizes))) < 0.8) + 0.01
    precisions, prices = best_uniform_split(sizes, weights, patterns)
    cost = (patterns @ precisions).max() * (weights @ mean_variances(sizes, precisions))
    assert cost <= solved(sizes, weights, patterns) * (1 + 1e-6)
    # The prices are a mixture of the patterns, so that what they allow at best is a lower bound.
    parts, rest = scipy.optimize.nnls(patterns.T / prices.max(), prices / prices.max())
    assert rest < 1e-9 and parts.sum() == pytest.approx(1)
    best = Spaces.of(sizes, weights).best_precisions(prices)
    bound = prices @ best * (weights @ mean_variances(sizes, best))
    assert bound * (1 - 1e-12) <= cost <= bound * (1 + 1e-9)


@each("seed", range(20))
def test_equal_prices_leave_the_singular_values_as_they_are(seed):
    """The precision of a space is the root of its squares; below a known level, spaces are pooled."""
    rng = np.random.default_rng(seed)
    sizes = np.cumsum(np.append(1, rng.integers(1, 30, 6)))
    weights, leaves = rng.exponential(size=7), sizes[-1] / sizes
    squares = np.cumsum((weights * leaves**2)[::-1])[::-1]
    first = seed % 4
    pooled = leaves * np.cumsum(np.diff(1 / leaves, prepend=0.0) * np.where(np.arange(7) < first, 0, squares))
    limit = pooled[first:].max() if first else np.inf
    roots = np.sqrt(np.minimum(squares, limit))
    expected = np.where(np.arange(7) < first, 0.0, (roots - np.append(roots[1:], 0.0)) / leaves)
    precisions, _ = best_uniform_split(sizes, weights, (np.arange(7) >= first).astype(float)[None])
    np.testing.assert_array_equal(precisions, expected)


def std_errors(sizes, patterns):
    """By level, for rho = 0.1 and levels that matter equally."""
    precisions, _ = best_uniform_split(sizes, np.ones(len(sizes)), patterns[undominated(patterns)])
    return np.sqrt(mean_variances(sizes, precisions * 0.2 / (patterns @ precisions).max()))


@each(
    "sizes, rows, cap, expected",
    [
        ((1, 10, 100), 3, 3, [11.2, 10.7, 10.7]),
        ((1, 10, 100), 3, 1, [10.3, 9.8, 7.1]),
        ((1, 10, 100), 12, 12, [44.9, 42.8, 42.9]),
        ((1, 10, 100), 12, 3, [40.4, 38.5, 24.8]),
        ((1, 10, 100), 12, 1, [36.5, 31.8, 12.0]),
        ((1, 10, 100), 52, 52, [194, 185, 186]),
        ((1, 10, 100), 52, 1, [133, 70.8, 23.1]),
        ((1, 50, 3000), 3, 1, [10.7, 10.6, 8.0]),
        ((1, 50, 3000), 12, 1, [40.1, 39.7, 20.3]),
        ((1, 50, 3000), 52, 1, [166, 164, 37.2]),
        ((1, 50, 3000, 30000), 12, 12, [52.8, 52.3, 52.2, 50.3]),
        ((1, 50, 3000, 30000), 12, 1, [45.8, 45.4, 41.7, 15.1]),
        ((1, 50, 3000, 30000), 52, 1, [181, 179, 114, 36]),
    ],
)
def test_noise_by_level_where_rows_are_bounded_by_leaf(sizes, rows, cap, expected):
    errors = std_errors(sizes, largest_fill(sizes, rows, cap)[None].astype(float))
    np.testing.assert_allclose(errors, expected, rtol=7e-3)


@each(
    "sizes, rows, cap, alike, together",
    [
        ((1, 10, 100), 1, 1, 5.13, 3.83),
        ((1, 10, 100), 12, 12, 61.6, 45.9),
        ((1, 10, 100), 12, 1, None, 28.8),
        (2 ** np.arange(9), 1, 1, 5.98, 5.15),
        (2 ** np.arange(9), 12, 12, 71.7, 61.8),
        (2 ** np.arange(9), 12, 1, None, 40.3),
    ],
)
def test_replaced_rows_need_less_noise_on_the_root(sizes, rows, cap, alike, together):
    def rms(patterns):
        return np.sqrt((std_errors(sizes, patterns) ** 2).mean())

    assert rms(replaced(sizes, rows, cap)) == pytest.approx(together, rel=2e-3)
    if alike is not None:
        assert rms(np.full((1, len(sizes)), 2.0 * rows**2)) == pytest.approx(alike, rel=2e-3)


def test_families_that_are_smaller_than_a_units_rows_hide_their_parents():
    sizes = (1, 10, 100)
    precisions, prices = best_uniform_split(sizes, np.ones(3), largest_fill(sizes, 52, 1)[None].astype(float))
    shares = precisions * prices / (precisions @ prices)
    np.testing.assert_allclose(shares, [0.52, 0, 0.48], atol=5e-3)
