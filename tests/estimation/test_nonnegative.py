"""Non-negative estimates that keep their totals: beside a solver per family, with bounds and known values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import least_squares, propagate, subtree_estimates
from pandas_dptree.estimation.nonnegative import least_values, nonnegative_totals, order_within, running_sum
from pandas_dptree.estimation.rounding import round_to_whole
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.theory import certify
from tests import reference
from tests.helpers_cases import each
from tests.helpers_estimation import (
    BRANCHINGS,
    SPARSE_TREES,
    assert_bounded_table,
    assert_table,
    bounded_problem,
    ragged_tree,
    random_measurements,
    random_problem,
    random_tree,
    sparse_leaves,
    words_from,
)
from tests.helpers_random import each_seed
from tests.strategies import trees

FITS = {"totals": nonnegative_totals, "joint": nonnegative_joint}


def effective(tree, values, noise, least):
    """Close the bounds upwards, one node after another."""
    bounds = [None] * (tree.depth + 1)
    for level in reversed(range(tree.depth + 1)):
        n = tree.level_sizes[level]
        own, variance = np.broadcast_to(least[level], n), np.broadcast_to(noise[level], n)
        bounds[level] = np.zeros(n)
        ends = np.cumsum(np.broadcast_to(tree.child_counts[level], n)) if level < tree.depth else None
        for node in range(n):
            below = 0.0 if ends is None else np.split(bounds[level + 1], ends[:-1])[node].sum()
            known = values[level] is not None and variance[node] == 0
            bounds[level][node] = values[level][node] if known else max(own[node], below)
    return bounds


@pytest.mark.parametrize(("known_share", "bounded_share"), [(0.0, 0.4), (0.0, 1.0), (0.15, 0.4), (0.3, 0.9)])
@each_seed(10, 50)
def test_totals_with_bounds_solve_a_quadratic_programme_per_family(seed, known_share, bounded_share):
    rng = np.random.default_rng(seed)
    tree = ragged_tree(rng)
    values, noise, least, _ = bounded_problem(rng, tree, known_share, bounded_share)
    variances = propagate(tree, noise)
    estimates = nonnegative_totals(tree, values, variances, least=least)
    bounds, (subtree, _) = effective(tree, values, noise, least), subtree_estimates(tree, values, variances)
    assert estimates[0] == pytest.approx(np.maximum(subtree[0], bounds[0]))
    for level in range(tree.depth):
        ends = np.cumsum(np.broadcast_to(tree.child_counts[level], tree.level_sizes[level]))
        spread = np.broadcast_to(variances.subtree[level + 1], ends[-1])
        for family, total in zip(np.split(np.arange(ends[-1]), ends[:-1]), estimates[level], strict=True):
            expected = reference.bounded_least_squares(
                Tree.from_branching([len(family)]),
                [np.array([total]), subtree[level + 1][family]],
                [np.zeros(1), spread[family]],
                [np.zeros(1), bounds[level + 1][family]],
            )[-1]
            np.testing.assert_allclose(estimates[level + 1][family], expected, rtol=1e-8, atol=1e-8)
    assert_bounded_table(tree, values, noise, least, estimates)
    assert certify(tree, values, variances, estimates, least=least).ok


@given(tree=trees(), seed=st.integers(0, 2**32), known_share=st.sampled_from([0.0, 0.3]))
def test_least_values_close_the_bounds_upwards(tree, seed, known_share):
    rng = np.random.default_rng(seed)
    values, noise, least, _ = bounded_problem(rng, tree, known_share, 0.5)
    ours = least_values(tree, values, propagate(tree, noise), least=least)
    for bound, expected in zip(ours, effective(tree, values, noise, least), strict=True):
        np.testing.assert_array_equal(np.broadcast_to(bound, len(expected)), expected)


@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
def test_bounds_that_do_not_bind_change_nothing(solve):
    rng = np.random.default_rng(3)
    tree = ragged_tree(rng)
    values, noise, _, _ = bounded_problem(rng, tree, 0.1, 0.0)
    variances = propagate(tree, noise)
    plain = solve(tree, values, variances)
    for least in ([np.zeros(1)] * (tree.depth + 1), [np.floor(x * 0.9) for x in plain]):
        for ours, theirs in zip(solve(tree, values, variances, least=least), plain, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
def test_a_bound_under_a_bound_under_a_known_total(solve):
    tree = Tree.from_branching([2, 2])
    variances = propagate(tree, [0.0, np.inf, np.array([1.0, 1.0, 1.0, 0.0])])
    values = [np.array([20]), None, np.array([-9, -5, 30, 2])]
    least = [np.zeros(1), np.array([15, 2]), np.array([0, 4, 0, 2])]
    total, groups, leaves = solve(tree, values, variances, least=least)
    assert total == [20] and groups.tolist() == [15, 5]
    assert leaves == pytest.approx([5.5, 9.5, 3, 2])


@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
def test_known_values_below_a_bound_are_refused(solve):
    tree = Tree.from_branching([2, 2])
    values = [np.array([9]), np.array([4, 5]), np.array([1, 3, 2, 3])]
    for noise, least in (
        ([1.0, np.array([0.0, 1.0]), 1.0], [np.zeros(1), np.array([5, 0]), np.zeros(1)]),
        ([1.0, np.array([0.0, 1.0]), 1.0], [np.zeros(1), np.zeros(1), np.array([4, 1, 0, 0])]),
        ([1.0, 1.0, np.array([0.0, 0.0, 1.0, 1.0])], [np.zeros(1), np.array([5]), np.zeros(1)]),
        ([1.0, 1.0, 0.0], [np.array([10]), np.zeros(1), np.zeros(1)]),
    ):
        with pytest.raises(ArgumentError, match="known value that is negative, or less than"):
            solve(tree, values, propagate(tree, noise), least=least)


@each(
    "least",
    [
        [[0], [0]],
        [[0], [0, 0], [0] * 3],
        [[0], [0, -1], [0]],
        [[0], [0, np.nan], [0]],
        [[np.inf], [0], [0]],
        [0, [0], [0]],
    ],
)
@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
def test_bounds_that_cannot_be_used_are_refused(solve, least):
    tree = Tree.from_branching([2, 2])
    variances = propagate(tree, [1.0] * 3)
    with pytest.raises(ArgumentError, match="`least` must hold"):
        solve(tree, tree.roll_up(np.ones(4)), variances, least=[np.array(level) for level in least])


@pytest.mark.parametrize("known_share", [0.0, 0.15, 0.5])
@each_seed(20, 170)
def test_totals_are_the_dense_solution_of_each_family(seed, known_share):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    values, noise, _ = random_problem(rng, tree, known_share)
    variances = propagate(tree, noise)
    estimates = nonnegative_totals(tree, values, variances)
    subtree, _ = subtree_estimates(tree, values, variances)
    least = least_values(tree, values, variances)
    for level in range(tree.depth):
        ends = np.cumsum(np.broadcast_to(tree.child_counts[level], tree.level_sizes[level]))
        spread, bound = (np.broadcast_to(a[level + 1], ends[-1]) for a in (variances.subtree, least))
        for family, total in zip(np.split(np.arange(ends[-1]), ends[:-1]), estimates[level], strict=True):
            expected = reference.project_family(
                subtree[level + 1][family], spread[family], total, bound[family]
            )
            np.testing.assert_allclose(estimates[level + 1][family], expected, rtol=1e-8, atol=1e-8)
    assert_table(tree, values, noise, estimates)
    assert certify(tree, values, variances, estimates).ok


def test_families_are_ordered_one_by_one():
    rng = np.random.default_rng(4)
    for sizes in (rng.integers(1, 9, 60_000), np.array([5, 150_000, 3]), rng.integers(1, 50_000, 9)):
        family = np.repeat(np.arange(len(sizes)) * 3, sizes)
        keys = rng.normal(size=len(family))
        assert (order_within(family, keys) == np.lexsort((keys, family))).all()


def test_running_sums_of_a_small_family_are_exact_beside_a_large_one():
    values = np.array([1e17, 3.0, 1.0, 2.0, 3.0, 0.5])
    sums = running_sum(values, np.array([0, 2, 5]), np.array([2, 3, 1]))
    assert sums[2:].tolist() == [1, 3, 6, 0.5]


@each("seed", range(100))
def test_each_family_is_projected_onto_what_its_parent_has(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, max_depth=5, max_leaves=60)
    values, noise = random_measurements(rng, tree, per_node=seed % 2 == 0)
    variances = propagate(tree, noise)
    estimates = nonnegative_totals(tree, values, variances)
    subtree, _ = subtree_estimates(tree, values, variances)
    assert estimates[0] == pytest.approx(np.maximum(subtree[0], 0))
    for level in range(tree.depth):
        ends = np.cumsum(np.broadcast_to(tree.child_counts[level], tree.level_sizes[level]))
        spread = np.broadcast_to(variances.subtree[level + 1], subtree[level + 1].shape)
        for family, total in zip(np.split(np.arange(ends[-1]), ends[:-1]), estimates[level], strict=True):
            expected = reference.project_family(subtree[level + 1][family], spread[family], total)
            np.testing.assert_allclose(estimates[level + 1][family], expected, rtol=1e-9, atol=1e-8)


def test_where_nothing_is_negative_the_projection_is_least_squares():
    rng = np.random.default_rng(7)
    tree = random_tree(rng, max_depth=5, max_leaves=60)
    exact = tree.roll_up(rng.integers(1000, 2000, tree.n_leaves))
    values = [level + rng.normal(0, 1, level.shape) for level in exact]
    variances = propagate(tree, [1.0] * len(values))
    for ours, linear in zip(
        nonnegative_totals(tree, values, variances), least_squares(tree, values, variances), strict=True
    ):
        np.testing.assert_allclose(ours, linear, rtol=1e-12)


def test_a_negative_total_leaves_an_empty_table():
    tree = Tree.from_branching([3, 2])
    values = [np.array([-50]), np.array([-9, 3, -1]), np.array([2, -2, 1, 1, -4, 0])]
    estimates = nonnegative_totals(tree, values, propagate(tree, [1.0, 1.0, 1.0]))
    assert all((level == 0).all() for level in estimates)


@pytest.mark.slow
def test_on_an_empty_tree_the_projection_gains_below_and_loses_nothing_above():
    """95 % of the leaves are empty: ≤ 1.05 × linear at every level, ≤ 0.25 × over all nodes."""
    rng = np.random.default_rng(5)
    tree = Tree.from_branching([20, 20, 20])
    leaves = rng.geometric(0.05, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.05)
    exact = tree.roll_up(leaves)
    variances = propagate(tree, [32.0] * 4)
    errors = np.zeros((2, 4))
    for _ in range(60):
        values = [level + np.rint(rng.laplace(0, 4, level.shape)) for level in exact]
        linear = least_squares(tree, values, variances)
        whole = round_to_whole(tree, nonnegative_totals(tree, values, variances)[-1], words_from(rng))
        for row, estimates in enumerate((linear, whole)):
            errors[row] += [((e - t) ** 2).sum() for e, t in zip(estimates, exact, strict=True)]
    assert (errors[1] <= 1.05 * errors[0]).all(), errors[1] / errors[0]
    assert errors[1].sum() <= 0.25 * errors[0].sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "ragged", "occupied", "clustered"),
    SPARSE_TREES,
)
def test_keeping_the_totals_is_never_worse_than_least_squares_at_any_level(
    shape, ragged, occupied, clustered
):
    rng = np.random.default_rng(11)
    counts, size = [], 1
    for width in BRANCHINGS[shape]:
        counts.append(rng.integers(1, 2 * width, size) if ragged else np.array([width]))
        size = int(np.broadcast_to(counts[-1], size).sum())
    tree = Tree(tuple(counts))
    exact = tree.roll_up(sparse_leaves(rng, tree, occupied, clustered))
    variances = propagate(tree, [32.0] * (tree.depth + 1))
    errors, totals = np.zeros((2, tree.depth + 1)), []
    for _ in range(60):
        values = [level + np.rint(rng.laplace(0, 4, level.shape)) for level in exact]
        tables = least_squares(tree, values, variances), nonnegative_totals(tree, values, variances)
        for row, table in enumerate(tables):
            errors[row] += [((x - t) ** 2).sum() for x, t in zip(table, exact, strict=True)]
        totals.append(tables[1][0][0] - exact[0][0])
    assert (errors[1] <= 1.05 * errors[0]).all(), errors[1] / errors[0]
    assert abs(np.mean(totals)) <= 4 * np.std(totals) / np.sqrt(len(totals))
    if occupied <= 0.05:
        assert errors[1].sum() <= 0.25 * errors[0].sum()
