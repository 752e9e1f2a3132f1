"""Least squares beside a dense solver, and measurements that are refused."""

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import least_squares, propagate
from pandas_dptree.estimation.nonnegative import nonnegative_totals
from pandas_dptree.hierarchy.tree import Tree
from tests import reference
from tests.helpers_cases import each
from tests.helpers_distinct import dense_variances, dense_weights, flat, units_problem
from tests.helpers_estimation import random_measurements, random_tree
from tests.helpers_random import each_seed


@each_seed(100, 200)
def test_least_squares_is_the_dense_solution(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, max_depth=5, max_leaves=60)
    values, noise = random_measurements(rng, tree, per_node=seed % 2 == 0)
    variances = propagate(tree, noise)
    estimates = least_squares(tree, values, variances)
    dense, dense_variances = reference.dense_least_squares(tree, values, noise)
    for ours, theirs in zip(estimates, dense, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(variances.final, dense_variances, strict=True):
        np.testing.assert_allclose(np.broadcast_to(ours, theirs.shape), theirs, rtol=1e-9)


def test_each_entry_of_an_array_is_estimated_like_a_number():
    tree, rng = Tree.from_branching([3, 2]), np.random.default_rng(0)
    variances = propagate(tree, [np.inf, rng.random(3), np.append(0.0, rng.random(5))])
    measured = [None, rng.normal(size=(3, 4)), rng.normal(size=(6, 4))]
    together = least_squares(tree, measured, variances)
    for entry in range(4):
        alone = least_squares(tree, [None, *(level[:, entry] for level in measured[1:])], variances)
        for level, numbers in zip(together, alone, strict=True):
            np.testing.assert_allclose(level[:, entry], numbers, rtol=1e-12, atol=1e-12)
    with pytest.raises(ArgumentError, match="at level 1"):
        least_squares(tree, [None, measured[1][:, :2], measured[2]], variances)


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


FITS = {"totals": nonnegative_totals, "joint": nonnegative_joint}


@each(
    "noise, values",
    [
        ([1, 1, 1], [[9], [4, 5], [2, np.nan, 2, 2]]),
        ([1, 1, 1], [[9], [4, np.inf], [2, 2, 2, 2]]),
        ([1, 1, 1], [[np.nan], [4, 5], [2, 2, 2, 2]]),
        ([1, 1, 1], [[9], None, [2, 2, 2, 2]]),
        ([1, 1, np.inf], [[9], [4, 5], [2, 2, 2, 2]]),
        ([1, 1, 1], [[9], [4, 5], [2, 2, 2]]),
        ([1, 1, 1], [[9], [4, 5], None]),
        ([1, 1, -1], [[9], [4, 5], [2, 2, 2, 2]]),
    ],
)
@pytest.mark.parametrize("solve", [least_squares, *FITS.values()])
def test_measurements_that_cannot_be_used_are_refused(solve, noise, values):
    tree = Tree.from_branching([2, 2])
    with np.errstate(all="ignore"):
        variances = propagate(tree, [float(v) for v in noise])
    with pytest.raises(ArgumentError, match="must hold one finite number"):
        solve(tree, [None if level is None else np.array(level) for level in values], variances)


@pytest.mark.parametrize("solve", [least_squares, *FITS.values()])
def test_known_values_that_contradict_each_other_are_refused(solve):
    tree = Tree.from_branching([2, 2])
    variances = propagate(tree, [0.0, 0.0, 1.0])
    with pytest.raises(ArgumentError, match="level 0 has a known value that is"):
        solve(tree, [np.array([8]), np.array([4, 5]), np.ones(4)], variances)
    solve(tree, [np.array([0.3]), np.array([0.1, 0.2]), np.ones(4)], variances)  # as sums of floats go


# Counts of distinct units, measured with the excess of the sum over the children.


@each_seed(60, 300)
def test_least_squares_with_an_excess_is_the_dense_solution(seed):
    rng = np.random.default_rng(seed)
    tree, values, noise, excess, excess_noise, _ = units_problem(rng, known_total=0.3)
    variances = propagate(tree, noise, excess_noise)
    weights, dense = dense_weights(tree, noise, excess_noise), dense_variances(tree, noise, excess_noise)
    counted = np.append(np.ones(tree.n_nodes, dtype=bool), dense[tree.n_nodes :] > 0)
    expected = weights @ (flat(tree, [*values, *excess]) * counted)
    estimates = least_squares(tree, values, variances, excess)
    np.testing.assert_allclose(np.concatenate(estimates), expected, rtol=1e-9, atol=1e-9)
    expected = weights**2 @ np.where(np.isfinite(dense), dense, 0.0)
    np.testing.assert_allclose(flat(tree, variances.final), expected, rtol=1e-9, atol=1e-9)


def test_an_excess_that_is_known_to_be_0_everywhere_makes_the_tree_additive():
    tree, rng = Tree.from_branching([3, 1, 2]), np.random.default_rng(0)
    noise = [np.inf, rng.random(3), 1.0, rng.random(6)]
    additive, units = propagate(tree, noise), propagate(tree, noise, [0.0, np.inf, 0.0])  # a single child
    values = [None, *(rng.normal(size=n) for n in tree.level_sizes[1:])]
    unused = [np.full(n, np.nan) for n in tree.level_sizes[:-1]]
    for excess in (None, [None] * 3, unused):
        for ours, plain in zip(
            least_squares(tree, values, units, excess), least_squares(tree, values, additive), strict=True
        ):
            np.testing.assert_array_equal(ours, plain)
    for ours, plain in zip(units.final, additive.final, strict=True):
        np.testing.assert_array_equal(ours, plain)


def test_levels_without_an_excess_between_them_say_nothing_about_each_other():
    tree = Tree.from_branching([2, 2])
    variances = propagate(tree, [0.0, 2.0, 3.0], [np.inf, np.inf])
    assert [level.tolist() for level in variances.final] == [[0.0], [2.0], [3.0]]
    assert [level.tolist() for level in variances.children] == [[np.inf], [np.inf]]
    values = [np.array([9.0]), np.array([4.0, -5.0]), np.array([2.0, 2.0, 8.0, 1.0])]
    for ours, given in zip(least_squares(tree, values, variances), values, strict=True):
        assert ours.tolist() == given.tolist()


def test_each_entry_of_an_array_has_an_excess_of_its_own():
    tree, rng = Tree.from_branching([3, 2]), np.random.default_rng(0)
    variances = propagate(tree, [np.inf, 2.0, 1.0], [rng.random(1), rng.random(3)])
    measured = [None, rng.normal(size=(3, 4)), rng.normal(size=(6, 4))]
    excess = [rng.normal(size=(1, 4)), rng.normal(size=(3, 4))]
    together = least_squares(tree, measured, variances, excess)
    for entry in range(4):
        alone = least_squares(
            tree,
            [None, *(each[:, entry] for each in measured[1:])],
            variances,
            [each[:, entry] for each in excess],
        )
        for level, numbers in zip(together, alone, strict=True):
            np.testing.assert_allclose(level[:, entry], numbers, rtol=1e-12, atol=1e-12)


@each(
    "noise, excess",
    [
        ([np.inf, 1.0, 1.0], [np.inf, 1.0]),
        ([np.inf, np.inf, 1.0], [1.0, np.inf]),
        ([1.0, np.inf, 1.0], [1.0, [1.0, np.inf]]),
        ([1.0, [1.0, np.inf], 1.0], [1.0, [1.0, np.inf]]),
        ([1.0, 1.0, np.inf], [1.0, 1.0]),
    ],
)
def test_nodes_that_nothing_tells_about_are_refused(noise, excess):
    with pytest.raises(ArgumentError, match=r"`noise_variances` at level \d leave out nodes"):
        propagate(Tree.from_branching([2, 2]), noise, excess)


@each("excess", [[1.0], [1.0, 1.0, 1.0], [1.0, [1.0] * 3], [-1.0, 1.0], [np.nan, 1.0]])
def test_variances_of_an_excess_that_cannot_be_used_are_refused(excess):
    with pytest.raises(ArgumentError, match="`excess` must hold variances of at least 0"):
        propagate(Tree.from_branching([2, 2]), [1.0, 1.0, 1.0], excess)


@each(
    "variances, excess, message",
    [
        ([1.0, 1.0], None, "level 0 must hold one finite number"),
        ([1.0, 1.0], [np.zeros(1), None], "level 1 must hold one finite number"),
        ([1.0, 1.0], [np.zeros(1), np.zeros(3)], "level 1 must hold one finite number"),
        ([1.0, 1.0], [np.zeros(1), np.array([1.0, np.inf])], "level 1 must hold one finite number"),
        ([1.0, 1.0], [np.zeros((1, 2)), np.zeros(2)], "level 0 must hold one finite number"),
        ([1.0, 1.0], [np.zeros(1)], "the measurements of 2 level"),
        (None, [np.zeros(1), np.zeros(2)], "the measurements of 0 level"),
    ],
)
def test_an_excess_that_cannot_be_used_is_refused(variances, excess, message):
    tree = Tree.from_branching([2, 2])
    with pytest.raises(ArgumentError, match=f"`excess` .*{message}"):
        least_squares(tree, tree.roll_up(np.ones(4)), propagate(tree, [1.0] * 3, variances), excess)
