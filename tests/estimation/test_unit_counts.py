"""Distinct units within their bounds: beside solvers for a family, and units that have the counts."""

import itertools

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.estimation.least_squares import least_squares, propagate, subtree_estimates
from pandas_dptree.estimation.nonnegative import nonnegative_totals
from pandas_dptree.estimation.unit_counts import multipliers, nonnegative_units
from pandas_dptree.hierarchy.tree import Tree
from tests import reference
from tests.helpers_cases import each
from tests.helpers_distinct import distinct, excess_of, parents, units_problem
from tests.helpers_estimation import random_measurements, random_tree
from tests.helpers_random import each_seed, words
from tests.strategies import trees


def caps(tree, variances, max_nodes):
    """How many times its own count the children of each node may have together, less one."""
    return [
        np.where(beyond == 0, 0, np.minimum(counts, most) - 1)
        for beyond, counts, most in zip(variances.excess, tree.child_counts, max_nodes[1:], strict=True)
    ]


def assert_possible(tree, variances, max_nodes, counts, slack=0):
    """No count is negative or above its parent's; sums over children are within theirs, up to the slack."""
    assert [len(level) for level in counts] == list(tree.level_sizes)
    assert (counts[0] >= 0).all()
    for level, cap in enumerate(caps(tree, variances, max_nodes)):
        x, below = counts[level], counts[level + 1]
        sums = tree.sum_children(level, below)
        assert (below >= 0).all() and (below <= x[parents(tree, level)]).all()
        assert (sums >= x - slack).all() and (sums <= x * (1 + cap) + slack).all()
        alone = np.broadcast_to(tree.child_counts[level] == 1, len(x))
        assert (sums[alone] == x[alone]).all()


def bounds_of(rng, tree):
    return [1, *np.sort(rng.choice([1, 2, 3, 4, 99], tree.depth)).tolist()]


@each_seed(25, 150)
def test_each_family_is_fitted_as_by_a_search_for_its_multiplier(seed):
    rng = np.random.default_rng(seed)
    tree, values, noise, excess, excess_noise, _ = units_problem(rng, known_total=0.3)
    variances, max_nodes = propagate(tree, noise, excess_noise), bounds_of(rng, tree)
    found = nonnegative_units(tree, values, variances, excess, max_nodes)
    subtree, _ = subtree_estimates(tree, values, variances, excess)
    assert found[0] == pytest.approx(np.maximum(subtree[0], 0))
    for level, cap in enumerate(caps(tree, variances, max_nodes)):
        above, size = parents(tree, level), tree.level_sizes[level]
        spread = np.broadcast_to(variances.subtree[level + 1], len(above))
        cap, beyond = (np.broadcast_to(each, size) for each in (cap, variances.excess[level]))
        for node in range(size):
            here = above == node
            e = 0.0 if excess[level] is None else excess[level][node]
            expected = reference.fit_unit_family(
                subtree[level + 1][here], spread[here], e, beyond[node], found[level][node], cap[node]
            )
            np.testing.assert_allclose(found[level + 1][here], expected, rtol=1e-9, atol=1e-8)
    assert_possible(tree, variances, max_nodes, found, slack=1e-8)


@each_seed(12, 60)
def test_a_family_is_the_solution_of_its_quadratic_programme(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 6)
    tree, cap = Tree.from_branching([n]), rng.integers(1, n)
    z, e, total = rng.normal(2, 5, n), rng.normal(4, 6), rng.uniform(0.5, 6)
    v, beyond = rng.uniform(0.2, 3, n), rng.uniform(0.2, 3) if seed % 3 else np.inf
    variances = propagate(tree, [0.0, v], [beyond])
    _, found = nonnegative_units(tree, [np.array([total]), z], variances, [np.array([e])], [1, cap + 1])

    def squares(x):
        return ((x - z) ** 2 / v).sum() + (x.sum() - total - e) ** 2 / beyond

    solved = scipy.optimize.minimize(
        squares,
        np.full(n, total * (1 + cap / 2) / n),
        jac=lambda x: 2 * (x - z) / v + 2 * (x.sum() - total - e) / beyond,
        bounds=[(0, total)] * n,
        constraints=scipy.optimize.LinearConstraint(np.ones((1, n)), total, (1 + cap) * total),
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert solved.success
    np.testing.assert_allclose(found, solved.x, atol=2e-5)
    assert squares(found) <= squares(solved.x) + 1e-8


@each_seed(20, 100)
def test_units_in_one_node_of_each_level_are_counted_like_records(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, max_depth=5, max_leaves=60)
    values, noise = random_measurements(rng, tree, per_node=seed % 2 == 0)
    units = propagate(tree, noise, [0.0] * tree.depth)
    found = nonnegative_units(tree, values, units, None, [1] * (tree.depth + 1))
    for ours, theirs in zip(found, nonnegative_totals(tree, values, propagate(tree, noise)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def noisy_units(rng, tree, units, share):
    """Units in random leaves, measured with noise of variance 1 to 9, and the excess of some levels."""
    exact = distinct(tree, rng.random((units, tree.n_leaves)) < share)
    noise, excess_noise = (
        [rng.uniform(1, 9, len(x)) for x in each] for each in (exact, excess_of(tree, exact))
    )
    values = [x + np.sqrt(v) * rng.normal(size=len(x)) for x, v in zip(exact, noise, strict=True)]
    excess = [
        x + np.sqrt(v) * rng.normal(size=len(x))
        for x, v in zip(excess_of(tree, exact), excess_noise, strict=True)
    ]
    for level in np.flatnonzero(rng.random(tree.depth) < 0.3):
        excess[level], excess_noise[level] = None, np.full(1, np.inf)
    return exact, values, excess, propagate(tree, noise, excess_noise)


@each_seed(20, 100)
def test_where_nothing_is_out_of_bounds_the_fit_is_least_squares(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, max_depth=4, max_leaves=30)
    _, values, excess, variances = noisy_units(rng, tree, 3000, 0.3)
    found = nonnegative_units(tree, values, variances, excess, [1] + [99] * tree.depth)
    for ours, theirs in zip(found, least_squares(tree, values, variances, excess), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def dealt(tree, counts):
    """Deal the units of each node to its children in turn: which unit is in which leaf."""
    held = [[list(range(int(n))) for n in counts[0]]]
    for level in range(tree.depth):
        above, below, used = parents(tree, level), [], [0] * tree.level_sizes[level]
        for node, n in zip(above.tolist(), counts[level + 1].tolist(), strict=True):
            units = held[-1][node]
            below.append([units[(used[node] + place) % len(units)] for place in range(n)])
            used[node] += n
        held.append(below)
    visits = np.zeros((int(counts[0].max()), tree.n_leaves), dtype=bool)
    for leaf, units in enumerate(held[-1]):
        visits[units, leaf] = True
    return visits


@given(tree=trees(max_leaves=25), seed=st.integers(0, 2**32), scale=st.sampled_from([1.0, 9.0]))
def test_whole_counts_without_a_bound_are_those_of_some_units(tree, seed, scale):
    rng = np.random.default_rng(seed)
    _, values, excess, variances = noisy_units(rng, tree, 20, 0.2)
    values = [y + scale * rng.normal(size=len(y)) for y in values]
    whole = nonnegative_units(tree, values, variances, excess, [1] + [99] * tree.depth, words(seed))
    for ours, theirs in zip(whole, distinct(tree, dealt(tree, whole)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@each("branching, units", [([2], 3), ([3], 2), ([2, 2], 2)])
def test_the_counts_that_units_can_have_are_all_whole_numbers_within_the_bounds(branching, units):
    """Every set of leaves of every unit, and every whole point of the polytope."""
    tree = Tree.from_branching(branching)
    sets = [np.array(each) for each in itertools.product([False, True], repeat=tree.n_leaves)][1:]
    worlds = itertools.combinations_with_replacement(sets, units)
    made = {tuple(np.concatenate(distinct(tree, np.array(world))).tolist()) for world in worlds}
    first = np.cumsum([0, *tree.level_sizes])
    within = set()
    for point in itertools.product([units], *[range(units + 1)] * (tree.n_nodes - 1)):
        levels = [np.array(point[a:b]) for a, b in itertools.pairwise(first)]
        families = [
            (levels[level + 1] <= levels[level][parents(tree, level)]).all()
            and (tree.sum_children(level, levels[level + 1]) >= levels[level]).all()
            for level in range(tree.depth)
        ]
        within |= {point} if all(families) else set()
    assert made == within


@given(
    tree=trees(max_leaves=40),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([0.0, 0.3, 20.0, 1e6, 1e13, 1e19]),
    shift=st.sampled_from([0.0, -1e3, 1e3]),
    known=st.sampled_from([0.0, 0.4]),
    measured=st.booleans(),
)
def test_counts_stay_within_their_bounds_whatever_was_measured(tree, seed, scale, shift, known, measured):
    rng = np.random.default_rng(seed)
    max_nodes = bounds_of(rng, tree)

    def noisy(size):
        return rng.choice([0.0, 0.0, 0.5, 1.0, 7.0, 30.0], size) + rng.laplace(0, 1, size) * scale + shift

    def variances_of(size, known):
        return np.where(rng.random(size) < known, 0.0, 10 ** rng.uniform(-6, 6, size))

    values = [noisy(size) for size in tree.level_sizes]
    excess = [noisy(size) if measured else None for size in tree.level_sizes[:-1]]
    beyond = [variances_of(size, known) if measured else [np.inf] for size in tree.level_sizes[:-1]]
    # Known values contradict each other here: those of one level do not.
    level = rng.integers(tree.depth + 1)
    noise = [variances_of(size, known * (place == level)) for place, size in enumerate(tree.level_sizes)]
    variances = propagate(tree, noise, beyond)
    fitted = nonnegative_units(tree, values, variances, excess, max_nodes)
    assert_possible(tree, variances, max_nodes, fitted, slack=1e-12 * (scale + 1e4) * tree.n_leaves)
    whole = nonnegative_units(tree, values, variances, excess, max_nodes, words(seed))
    assert all(each.dtype == np.int64 for each in whole)
    assert_possible(tree, variances, max_nodes, whole)


@given(tree=trees(max_leaves=40), seed=st.integers(0, 2**32))
def test_whole_families_are_rounded_down_or_up(tree, seed):
    rng = np.random.default_rng(seed)
    _, values, excess, variances = noisy_units(rng, tree, 20, 0.2)
    values[0] = np.rint(values[0])
    exact = propagate(tree, [0.0, *variances.noise[1:]], variances.excess)
    for bound in (1, 2, 99):
        max_nodes = [1] + [bound] * tree.depth
        fitted = nonnegative_units(tree, values, exact, excess, max_nodes)
        whole = nonnegative_units(tree, values, exact, excess, max_nodes, words(seed))
        assert whole[0] == np.maximum(values[0], 0)
        assert (np.abs(whole[1] - fitted[1]) < 1).all()
        assert (whole[1][fitted[1] == 0] == 0).all()
        assert abs(whole[1].sum() - fitted[1].sum()) <= 0.5 + 1e-9


def whole_leaves(total, leaves, seed, bound=9, excess=None):
    tree = Tree.from_branching([len(leaves)])
    variances = propagate(tree, [0.0, 1.0], [np.inf if excess is None else 1e-9])
    measured = [None if excess is None else np.array([excess])]
    return nonnegative_units(
        tree, [np.array([total]), np.array(leaves)], variances, measured, [1, bound], words(seed)
    )[1].tolist()


@each(
    "total, leaves, whole",
    [
        (2, [0.2, 0.9, 0.0, 2.0], [0, 1, 0, 2]),
        (2, [1.6, 1.7, 1.7], [1, 2, 2]),
        (2, [-3.0, 0.4, 0.4], [0, 1, 1]),  # their sum is moved up to 2
        (3, [7.0, 2.2, -1.0], [3, 2, 0]),
        (0, [5.0, 0.4], [0, 0]),
    ],
)
def test_the_largest_fractions_are_rounded_up(total, leaves, whole):
    assert whole_leaves(total, leaves, 0) == whole


def test_the_sum_of_a_family_stays_within_what_a_unit_can_be_in():
    assert sorted(whole_leaves(3, [2.0, 2.5, 2.5], 1, bound=2)) == [2, 2, 2]
    assert whole_leaves(3, [9.0, 9.0, 9.0, 9.0], 1, bound=2).count(3) <= 2
    assert sum(whole_leaves(3, [1.0, 1.0, 1.0, 1.0], 1, excess=2.0)) == 5
    assert sum(whole_leaves(3, [1.0, 1.0, 1.0, 1.0], 1, bound=1, excess=2.0)) == 3


def test_ties_are_broken_by_chance():
    draws = np.array([whole_leaves(2, [0.5] * 4, seed) for seed in range(400)])
    assert (draws.sum(axis=1) == 2).all()
    np.testing.assert_allclose(draws.mean(axis=0), 0.5, atol=4 * 0.5 / np.sqrt(400))


def test_where_the_excess_is_not_measured_the_children_stay_as_they_are():
    tree = Tree.from_branching([3])
    variances = propagate(tree, [0.0, [1.0, 1.0, 2.0]], [np.inf])
    for leaves, expected in (
        ([4.0, -1.0, 6.5], [4.0, 0.0, 6.5]),
        ([12.0, 3.0, 2.0], [10.0, 3.0, 2.0]),
        ([4.0, -3.0, 3.0], [5.0, 0.0, 5.0]),  # three are missing
        ([9.0, 9.0, 8.0], [7.5, 7.5, 5.0]),  # six too many
    ):
        found = nonnegative_units(tree, [np.array([10.0]), np.array(leaves)], variances, None, [1, 2])
        assert found[1] == pytest.approx(expected)


def test_the_search_ends_for_counts_of_all_sizes():
    """Members reach their bounds one after another."""
    rng = np.random.default_rng(5)
    tree = Tree.from_branching([300])
    z = np.append(-(2.0 ** np.arange(0, 60, 0.4)), 2.0 ** np.arange(0, 60, 0.4))
    for total in (1.0, 1e6, 1e15):
        v = 10 ** rng.uniform(-6, 6, 300)
        variances = propagate(tree, [0.0, v], [2.0])
        _, found = nonnegative_units(tree, [np.array([total]), z], variances, [np.array([5.0])], [1, 99])
        expected = reference.fit_unit_family(z, v, 5.0, 2.0, total, 98)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * total)


@each("seed", range(6))
def test_multipliers_are_exact_where_members_reach_their_bounds_up_to_rounding(seed):
    """Variances of very different sizes, and values that add up to what is wanted, or nearly so."""
    rng, n = np.random.default_rng(seed), 4000
    family = np.append(np.repeat(np.arange(n), rng.integers(2, 8, n)), np.arange(n))
    size, children, total = len(family), len(family) - n, rng.choice([0.7, 1.0, 4.9, 110.0], n)
    values = total[family] * rng.choice([0, 1, 0.1, 0.2, 0.3, 0.7, 0.5, -0.1, 1.3, 1 / 3], size)
    values += rng.choice([0, 0, 0, 1e-9, 0.3], size) * rng.normal(size=size)
    variances = rng.choice([1e-30, 1e-20, 1.0], size) * rng.choice([1.0, 0.9], size)
    values[children:] = -total * rng.choice([0, 1, 0.5, 2, 0.1], n)
    least, most = np.zeros(size), total[family]
    least[children:], most[children:] = -total * rng.integers(0, 3, n), 0.0
    theta = multipliers(values, variances, least, most, family, total)
    sums = np.bincount(family, np.clip(values + theta[family] * variances, least, most))
    np.testing.assert_allclose(sums, total, rtol=1e-12)


def assert_possible_when_whole(seed, counts, size, smaller, beyond, max_nodes):
    rng, tree = np.random.default_rng(seed), Tree((np.array([3]), np.array(counts)))
    values = [size * rng.uniform(0.5, 2, n) / smaller**level for level, n in enumerate(tree.level_sizes)]
    excess = [size * rng.uniform(0, 2, n) for n in tree.level_sizes[:-1]]
    variances = propagate(tree, [rng.uniform(1, 9, n) for n in tree.level_sizes], [beyond] * 2)
    fitted = nonnegative_units(tree, values, variances, excess, max_nodes)
    whole = nonnegative_units(tree, values, variances, excess, max_nodes, words(seed))
    assert_possible(tree, variances, max_nodes, whole)
    most = 2**62 // (1 + max(cap.max() for cap in caps(tree, variances, max_nodes)))
    assert whole[0] == pytest.approx(np.minimum(fitted[0], most))


@each("seed", range(20))
def test_counts_of_any_size_are_rounded_within_their_bounds(seed):
    """Beyond 2^53 floats miss whole numbers, and sums over families may exceed 64 bits."""
    for beyond, max_nodes in ((0.0, [1, 2, 2]), (1.0, [1, 1, 1]), (1.0, [1, 2, 99]), (np.inf, [1, 2, 99])):
        size = 10 ** (15 + 6 * seed / 20)
        assert_possible_when_whole(seed, [40, 1, 7], size, 1 + seed % 2, beyond, max_nodes)
    for size in (1e16, 3e16, 1e17, 3e17):  # parents that are no floats
        assert_possible_when_whole(seed, [2, 2, 2], size, 1, 1.0, [1, 1, 3])


def people(rng, tree, n, most):
    """People in 1 to `most` leaves, the first of which are visited more often."""
    chance = np.arange(1, tree.n_leaves + 1) ** -0.7
    kept = rng.integers(1, most + 1, n)
    order = np.argsort(rng.exponential(size=(n, tree.n_leaves)) / chance, axis=1)
    visits = np.zeros((n, tree.n_leaves), dtype=bool)
    for place in range(most):
        visits[np.arange(n), order[:, place]] = kept > place
    return visits


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True])
def test_errors_are_those_stated_and_the_fit_is_better_at_every_level(known):
    """Over 1,500 releases; at empty leaves the excess takes away most of the bias of the fit."""
    rng = np.random.default_rng(3)
    tree = Tree((np.array([5]), np.array([12, 1, 30, 8, 12])))
    exact = distinct(tree, people(rng, tree, 300, 4))
    beyond = excess_of(tree, exact)
    noise, excess_noise = [0.0 if known else 40.0, 50.0, 60.0], [30.0, 20.0]
    variances = propagate(tree, noise, excess_noise)
    blind = propagate(tree, noise, [np.inf, np.inf])
    max_nodes, runs = [1, 4, 4], 1500
    squares, bias = np.zeros((4, 3)), np.zeros((4, 3))
    for _ in range(runs):
        values = [x + np.sqrt(v) * rng.normal(size=len(x)) for x, v in zip(exact, noise, strict=True)]
        excess = [x + np.sqrt(v) * rng.normal(size=len(x)) for x, v in zip(beyond, excess_noise, strict=True)]
        tables = (
            least_squares(tree, values, variances, excess),
            nonnegative_units(tree, values, variances, excess, max_nodes),
            nonnegative_units(tree, values, variances, excess, max_nodes, words(rng)),
            nonnegative_units(tree, values, blind, None, max_nodes),
        )
        for place, table in enumerate(tables):
            errors = [level - x for level, x in zip(table, exact, strict=True)]
            squares[place] += [(each**2).mean() / runs for each in errors]
            bias[place] += [each.mean() / runs for each in errors]
    stated = [np.mean(np.broadcast_to(v, n)) for v, n in zip(variances.final, tree.level_sizes, strict=True)]
    np.testing.assert_allclose(squares[0], stated, rtol=0.12, atol=1e-12)
    assert (squares[1] <= 1.02 * squares[0]).all() and squares[1, 2] < 0.8 * squares[0, 2]
    assert (squares[2] <= squares[1] + 0.25).all()  # rounding adds a twelfth where errors are independent
    assert (squares[1] <= squares[3]).all()
    assert abs(bias[1, 2]) < 0.1 < 0.5 < bias[3, 2]


def test_a_single_node_is_its_own_count():
    tree = Tree(())
    variances = propagate(tree, [1.0], [])
    for noisy, fitted, whole in ((2.5, 2.5, 3), (-4.0, 0.0, 0)):
        given = tree, [np.array([noisy])], variances, [], [1]
        assert nonnegative_units(*given) == [np.array([fitted])]
        assert nonnegative_units(*given, words()) == [np.array([whole])]


def test_known_counts_stay_unless_nothing_else_can_change():
    for total, leaves, noise, bound, expected in (
        (5.0, [3.0, 9.0], [0.0, 1.0], 1, [3.0, 2.0]),
        (5.0, [1.0, 1.0], [0.0, 0.0], 1, [2.5, 2.5]),
        (1.0, [0.0, 0.99999307], [0.0, 0.004], 2, [0.0, 1.0]),  # the first step meets the sum by rounding
    ):
        variances = propagate(Tree.from_branching([2]), [0.0, noise], [np.inf])
        given = Tree.from_branching([2]), [np.array([total]), np.array(leaves)], variances, None
        assert nonnegative_units(*given, [1, bound])[1] == pytest.approx(expected, abs=1e-12)
