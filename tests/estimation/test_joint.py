"""The joint estimate beside a dense solver, with known values and lower bounds."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import least_squares, propagate
from pandas_dptree.estimation.nonnegative import nonnegative_totals
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.theory import certify
from tests import reference
from tests.helpers_estimation import (
    assert_bounded_table,
    assert_table,
    bounded_problem,
    large_problem,
    ragged_tree,
    random_problem,
    random_tree,
)
from tests.helpers_random import each_seed
from tests.strategies import trees

FITS = {"totals": nonnegative_totals, "joint": nonnegative_joint}


@pytest.mark.parametrize("known_share", [0.0, 0.15, 0.5])
@each_seed(20, 170)
def test_joint_is_the_dense_solution(seed, known_share):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    values, noise, _ = random_problem(rng, tree, known_share)
    variances = propagate(tree, noise)
    estimates = nonnegative_joint(tree, values, variances)
    dense = reference.nonnegative_least_squares(tree, values, noise)
    for ours, theirs in zip(estimates, dense, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    assert_table(tree, values, noise, estimates)
    assert certify(tree, values, variances, estimates, fit="joint").ok


@given(tree=trees(), seed=st.integers(0, 2**32), known_share=st.sampled_from([0.0, 0.3]))
def test_joint_is_closer_to_the_truth_than_least_squares_in_every_draw(tree, seed, known_share):
    rng = np.random.default_rng(seed)
    values, noise, exact = random_problem(rng, tree, known_share)
    variances = propagate(tree, noise)

    def error(estimates):
        precisions = [np.divide(1, v, out=np.zeros_like(v), where=v > 0) for v in noise]
        return sum((p * (x - t) ** 2).sum() for p, x, t in zip(precisions, estimates, exact, strict=True))

    linear = error(least_squares(tree, values, variances))
    assert error(nonnegative_joint(tree, values, variances)) <= linear * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
def test_a_known_total_is_shared_out_among_the_others(solve):
    tree = Tree.from_branching([3])
    variances = propagate(tree, [0.0, np.array([0.0, 1.0, 1.0])])
    total, leaves = solve(tree, [np.array([10]), np.array([4, 1, 3])], variances)
    assert total == [10] and leaves.tolist() == [4, 2, 4]


@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
def test_a_node_holds_at_least_what_is_known_below_it(solve):
    tree = Tree.from_branching([2, 2])
    variances = propagate(tree, [1.0, 1.0, np.array([0.0, 1.0, 1.0, 1.0])])
    values = [np.array([-50]), np.array([-9, -9]), np.array([5, -9, -9, -9])]
    assert [level.tolist() for level in solve(tree, values, variances)] == [[5], [5, 0], [5, 0, 0, 0]]


@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
def test_where_nothing_is_negative_both_are_least_squares(solve):
    rng = np.random.default_rng(7)
    tree = random_tree(rng)
    exact = tree.roll_up(rng.integers(1000, 2000, tree.n_leaves))
    values = [level + rng.normal(0, 1, level.shape) for level in exact]
    variances = propagate(tree, [1.0] * len(values))
    linear = least_squares(tree, values, variances)
    for ours, theirs in zip(solve(tree, values, variances), linear, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
def test_chains_average_their_measurements(solve):
    tree = Tree.from_branching([1, 1, 1])
    variances = propagate(tree, [4.0] * 4)
    for shift, expected in ((0, 3), (-4, 0)):
        levels = solve(tree, [np.array([v + shift]) for v in (1, 2, 3, 6)], variances)
        assert all(level == pytest.approx([expected]) for level in levels)


@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
@pytest.mark.parametrize("known", [[-1.0, 2.0], [9.0, 2.0]])
def test_known_values_that_leave_somebody_negative_are_refused(solve, known):
    tree = Tree.from_branching([2])
    variances = propagate(tree, [0.0, np.array([0.0, 1.0])])
    with pytest.raises(ArgumentError, match="known value that is negative, or less than"):
        solve(tree, [np.array([8.0]), np.array(known)], variances)


@pytest.mark.nightly
@pytest.mark.parametrize("fit", FITS)
def test_time_grows_little_faster_than_the_tree(fit):
    def seconds(branching):
        problem = large_problem(branching)
        times = []
        for _ in range(5):
            start = time.process_time()
            FITS[fit](*problem)
            times.append(time.process_time() - start)
        return min(times)

    small, large = seconds([30, 30, 30]), seconds([100, 100, 100])
    assert np.log(large / small) / np.log(1e6 / 27e3) <= 1.3  # n log n on these sizes: 1.08


@pytest.mark.parametrize(("known_share", "bounded_share"), [(0.0, 0.4), (0.0, 1.0), (0.15, 0.4), (0.3, 0.9)])
@each_seed(15, 100)
def test_joint_with_bounds_is_the_dense_solution(seed, known_share, bounded_share):
    rng = np.random.default_rng(seed)
    tree = ragged_tree(rng)
    values, noise, least, _ = bounded_problem(rng, tree, known_share, bounded_share)
    if not known_share:  # without known values no bound is too high
        least = [b * rng.choice([1.0, 3.0], len(b)) for b in least]
    variances = propagate(tree, noise)
    estimates = nonnegative_joint(tree, values, variances, least=least)
    dense = reference.bounded_least_squares(tree, values, noise, least)
    for ours, theirs in zip(estimates, dense, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    assert_bounded_table(tree, values, noise, least, estimates)
    certificate = certify(tree, values, variances, estimates, fit="joint", least=least)
    assert certificate.ok, certificate


@given(tree=trees(), seed=st.integers(0, 2**32), known_share=st.sampled_from([0.0, 0.3]))
def test_joint_with_bounds_is_closer_to_the_truth_than_least_squares_in_every_draw(tree, seed, known_share):
    rng = np.random.default_rng(seed)
    values, noise, least, exact = bounded_problem(rng, tree, known_share, 0.5)
    variances = propagate(tree, noise)

    def error(estimates):
        precisions = [np.divide(1, v, out=np.zeros_like(v), where=v > 0) for v in noise]
        return sum((p * (x - t) ** 2).sum() for p, x, t in zip(precisions, estimates, exact, strict=True))

    linear = error(least_squares(tree, values, variances))
    bounded = error(nonnegative_joint(tree, values, variances, least=least))
    assert bounded <= linear * (1 + 1e-9) + 1e-9
