"""Least squares, non-negative and whole estimates, each beside a slow and obvious reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import least_squares, propagate, subtree_estimates
from pandas_dptree.estimation.nonnegative import nonnegative_totals
from pandas_dptree.estimation.rounding import round_to_whole
from pandas_dptree.hierarchy.tree import Tree
from tests import reference
from tests.strategies import trees


def random_tree(rng, max_depth=5, max_leaves=60):
    counts, size = [], 1
    for _ in range(rng.integers(1, max_depth + 1)):
        level = rng.integers(1, 5, size) if rng.random() < 0.7 else np.full(size, rng.integers(1, 5))
        if level.sum() > max_leaves:
            level = np.ones(size, dtype=int)
        counts.append(level)
        size = int(level.sum())
    return Tree(tuple(counts))


def random_measurements(rng, tree, per_node):
    """Noisy values and variances of every level; levels above the leaves may be unmeasured."""
    values, noise = [], []
    for level, size in enumerate(tree.level_sizes):
        if level < tree.depth and rng.random() < 0.25:
            values.append(None)
            noise.append(np.array([np.inf]))
        else:
            values.append(rng.normal(0, 50, size).round())
            noise.append(rng.uniform(0.1, 9, size if per_node else 1))
    return values, noise


def words(rng):
    return lambda n: rng.integers(2**64, size=n, dtype=np.uint64)


@pytest.mark.parametrize("seed", range(200))
def test_least_squares_is_the_dense_solution(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    values, noise = random_measurements(rng, tree, per_node=seed % 2 == 0)
    variances = propagate(tree, noise)
    estimates = least_squares(tree, values, variances)
    dense, dense_variances = reference.dense_least_squares(tree, values, noise)
    for ours, theirs in zip(estimates, dense, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(variances.final, dense_variances, strict=True):
        np.testing.assert_allclose(np.broadcast_to(ours, theirs.shape), theirs, rtol=1e-9)


def test_least_squares_takes_known_values_as_they_are():
    tree = Tree.from_branching([2, 2])
    variances = propagate(tree, [0.0, 2.0, 1.0])
    total, groups, leaves = least_squares(
        tree, [np.array([100]), np.array([30, 50]), np.array([10, 10, 30, 30])], variances
    )
    assert total == pytest.approx([100])
    assert groups.sum() == pytest.approx(100)
    assert variances.final[0] == [0]
    np.testing.assert_allclose(tree.sum_children(1, leaves), groups)


def test_a_chain_of_single_children_is_one_count_measured_often():
    tree = Tree.from_branching([1, 1, 1])
    variances = propagate(tree, [4.0, 4.0, 4.0, 4.0])
    assert all(level == pytest.approx([1.0]) for level in variances.final)
    levels = least_squares(tree, [np.array([v]) for v in (1, 2, 3, 6)], variances)
    assert all(level == pytest.approx([3.0]) for level in levels)


@pytest.mark.parametrize("seed", range(100))
def test_each_family_is_projected_onto_what_its_parent_has(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
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
    tree = random_tree(rng)
    exact = tree.roll_up(rng.integers(1000, 2000, tree.n_leaves))
    values = [level + rng.normal(0, 1, level.shape) for level in exact]
    variances = propagate(tree, [1.0] * len(values))
    for ours, linear in zip(
        nonnegative_totals(tree, values, variances), least_squares(tree, values, variances), strict=True
    ):
        np.testing.assert_allclose(ours, linear, rtol=1e-12)


@settings(max_examples=2000, deadline=None)
@given(tree=trees(), seed=st.integers(0, 2**32), scale=st.sampled_from([0.1, 3.0, 1000.0, 1e9]))
def test_tables_are_whole_nonnegative_and_add_up(tree, seed, scale):
    rng = np.random.default_rng(seed)
    exact = tree.roll_up(rng.poisson(2, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.3))
    values = [level + np.rint(rng.laplace(0, scale, level.shape)).astype(int) for level in exact]
    estimates = nonnegative_totals(tree, values, propagate(tree, [2 * scale**2] * len(values)))
    whole = round_to_whole(tree, estimates[-1], words(rng))
    for level in range(tree.depth + 1):
        assert (estimates[level] >= 0).all()
        assert whole[level].dtype == np.int64
        assert (whole[level] >= 0).all()
        assert (np.abs(whole[level] - estimates[level]) < 1 + 1e-9 * scale).all()
        assert (whole[level][estimates[level] == 0] == 0).all()
        if level < tree.depth:
            np.testing.assert_allclose(
                tree.sum_children(level, estimates[level + 1]), estimates[level], rtol=1e-9, atol=1e-9 * scale
            )
            assert (tree.sum_children(level, whole[level + 1]) == whole[level]).all()


@settings(max_examples=300, deadline=None)
@given(tree=trees(), seed=st.integers(0, 2**32), scale=st.sampled_from([3.0, 1e5]))
def test_whole_tables_keep_known_counts(tree, seed, scale):
    rng = np.random.default_rng(seed)
    exact = tree.roll_up(rng.poisson(scale, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.3))
    known = [rng.random(level.shape) < 0.2 for level in exact]
    values = [np.where(k, e, e + rng.normal(0, scale, e.shape)) for k, e in zip(known, exact, strict=True)]
    variances = propagate(tree, [np.where(k, 0, scale**2) for k in known])
    for estimates in (
        nonnegative_totals(tree, values, variances),
        nonnegative_joint(tree, values, variances),
    ):
        whole = round_to_whole(tree, estimates[-1], words(rng))
        for level, (w, k, e) in enumerate(zip(whole, known, exact, strict=True)):
            assert (w[k] == e[k]).all()
            assert (w >= 0).all()
            if level < tree.depth:
                assert (tree.sum_children(level, whole[level + 1]) == w).all()


def test_a_negative_total_leaves_an_empty_table():
    tree = Tree.from_branching([3, 2])
    values = [np.array([-50]), np.array([-9, 3, -1]), np.array([2, -2, 1, 1, -4, 0])]
    estimates = nonnegative_totals(tree, values, propagate(tree, [1.0, 1.0, 1.0]))
    assert all((level == 0).all() for level in estimates)


def test_rounding_breaks_ties_by_chance():
    rng = np.random.default_rng(3)
    tree = Tree.from_branching([4])
    draws = np.array([round_to_whole(tree, np.full(4, 0.5), words(rng))[1] for _ in range(4000)])
    assert (draws.sum(axis=1) == 2).all()
    np.testing.assert_allclose(draws.mean(axis=0), 0.5, atol=4 * 0.5 / np.sqrt(4000))


@pytest.mark.parametrize(("leaves", "whole"), [([0.2, 0.9, 0.0], [0, 1, 0]), ([1.6, 1.7, 1.7], [1, 2, 2])])
def test_the_largest_fractions_are_rounded_up(leaves, whole):
    rng = np.random.default_rng(0)
    assert round_to_whole(Tree.from_branching([3]), np.array(leaves), words(rng))[1].tolist() == whole


def test_rounding_takes_tables_of_any_size():
    rng = np.random.default_rng(0)
    tree = Tree.from_branching([2])
    for huge in (2.0**61, 2.0**62):
        total, leaves = round_to_whole(tree, np.array([huge / 2, huge / 2]), words(rng))
        assert total == [huge] and leaves.sum() == huge


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
        whole = round_to_whole(tree, nonnegative_totals(tree, values, variances)[-1], words(rng))
        for row, estimates in enumerate((linear, whole)):
            errors[row] += [((e - t) ** 2).sum() for e, t in zip(estimates, exact, strict=True)]
    assert (errors[1] <= 1.05 * errors[0]).all(), errors[1] / errors[0]
    assert errors[1].sum() <= 0.25 * errors[0].sum()


BRANCHINGS = {"even": [10, 12, 30], "square": [20, 20, 20], "deep": [4] * 6}


def sparse_leaves(rng, tree, occupied, clustered):
    """Counts of mean 20 in some of the leaves, which may crowd together in a few branches."""
    chance = np.full(1, occupied)
    for level in range(tree.depth):
        chance = np.broadcast_to(tree.spread(level, chance), tree.level_sizes[level + 1])
        chance = chance * (rng.gamma(0.3, 1 / 0.3, len(chance)) if clustered else 1)
    return rng.geometric(0.05, len(chance)) * (rng.random(len(chance)) < chance)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "ragged", "occupied", "clustered"),
    [
        ("even", False, 1.0, False),
        ("even", False, 0.5, False),
        ("square", False, 0.2, False),
        ("square", False, 0.05, False),
        ("square", False, 0.005, False),
        ("deep", False, 0.05, True),
        ("even", True, 1.0, False),
        ("square", True, 0.05, True),
        ("deep", True, 0.2, False),
        ("deep", True, 0.05, False),
    ],
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
