"""The joint estimate beside a dense solver, known values in both fits, and all their certificates."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation import certify
from pandas_dptree.estimation.certificate import multipliers
from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import least_squares, propagate, subtree_estimates
from pandas_dptree.estimation.nonnegative import (
    least_values,
    nonnegative_totals,
    order_within,
    running_sum,
)
from pandas_dptree.hierarchy.tree import Tree
from tests import reference
from tests.strategies import trees

FITS = {"totals": nonnegative_totals, "joint": nonnegative_joint}


def random_tree(rng, max_depth=6, max_leaves=50):
    counts, size = [], 1
    for _ in range(rng.integers(1, max_depth + 1)):
        level = rng.integers(1, 5, size) if rng.random() < 0.7 else np.full(size, rng.integers(1, 5))
        if level.sum() > max_leaves:
            level = np.ones(size, dtype=int)
        counts.append(level)
        size = int(level.sum())
    return Tree(tuple(counts))


def random_problem(rng, tree, known_share=0.0, scale=3.0):
    """Noisy counts of a sparse table: folded, mixed and infinite variances, some nodes known exactly."""
    leaves = rng.poisson(scale, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.4)
    exact, values, noise = tree.roll_up(leaves), [], []
    for level, truth in enumerate(exact):
        if level < tree.depth and rng.random() < 0.25:
            values.append(None)
            noise.append(np.array([np.inf]))
            continue
        variance = scale**2 * rng.uniform(0.1, 9, 1 if rng.random() < 0.3 else len(truth))
        measured = truth + np.sqrt(variance) * rng.normal(size=len(truth))
        if known_share:
            variance = np.broadcast_to(variance, len(truth)).copy()
            known = rng.random(len(truth)) < known_share
            variance[known], measured[known] = 0, truth[known]
            if level < tree.depth:
                variance[rng.random(len(truth)) < 0.2] = np.inf
        values.append(measured)
        noise.append(variance)
    return values, noise, exact


def assert_table(tree, values, noise, estimates):
    """Every level is non-negative and adds up, and known values stand as they are."""
    for level, (x, y, v) in enumerate(zip(estimates, values, noise, strict=True)):
        assert (x >= 0).all()
        if y is not None:
            known = np.broadcast_to(v, len(x)) == 0
            assert (x[known] == y[known]).all()
        if level < tree.depth:
            np.testing.assert_allclose(
                tree.sum_children(level, estimates[level + 1]), x, rtol=1e-9, atol=1e-9
            )


@pytest.mark.parametrize("known_share", [0.0, 0.15, 0.5])
@pytest.mark.parametrize("seed", range(170))
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


@pytest.mark.parametrize("known_share", [0.0, 0.15, 0.5])
@pytest.mark.parametrize("seed", range(170))
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


@settings(max_examples=300)
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


@settings(max_examples=300)
@given(
    tree=trees(max_depth=6),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([1e-3, 3.0, 1e4, 1e9]),
    spread=st.sampled_from([1.0, 1e3, 1e6]),
    known_share=st.sampled_from([0.0, 0.2]),
)
def test_certificates_are_clean_at_any_scale(tree, seed, scale, spread, known_share):
    rng = np.random.default_rng(seed)
    values, noise, _ = random_problem(rng, tree, known_share, scale)
    noise = [v * spread ** rng.uniform(-0.5, 0.5, v.shape) for v in noise]
    variances = propagate(tree, noise)
    for fit, solve in FITS.items():
        estimates = solve(tree, values, variances)
        certificate = certify(tree, values, variances, estimates, fit=fit)
        assert certificate.ok, certificate


@pytest.mark.parametrize("fit", FITS)
def test_a_wrong_table_fails_its_certificate(fit):
    rng = np.random.default_rng(2)
    tree = Tree.from_branching([4, 5, 6])
    values, noise, _ = random_problem(rng, tree, known_share=0.05)
    variances = propagate(tree, noise)
    right = FITS[fit](tree, values, variances)
    assert certify(tree, values, variances, right, fit=fit).ok
    free = np.flatnonzero((np.broadcast_to(noise[-1], tree.n_leaves) > 0) & (right[-1] > 1))
    one, other = free[0], free[-1]

    def after(change):
        leaves = right[-1].copy()
        change(leaves)
        return certify(tree, values, variances, tree.roll_up(leaves), fit=fit)

    def move(leaves):
        leaves[[one, other]] += [1e-6, -1e-6]

    def below(leaves):
        leaves[one] = -1e-6

    assert not after(move).ok and after(move).slackness > 1e-12
    assert not after(below).ok and after(below).bounds > 1e-12
    torn = [level.copy() for level in right]
    torn[1][0] += 1e-6
    assert certify(tree, values, variances, torn, fit=fit).additivity > 1e-12
    other_fit = next(name for name in FITS if name != fit)
    assert not certify(tree, values, variances, FITS[other_fit](tree, values, variances), fit=fit).ok
    assert not certify(tree, values, variances, [0 * level for level in right], fit=fit).ok
    assert not certify(tree, values, variances, least_squares(tree, values, variances), fit=fit).ok


def test_multipliers_of_a_hand_made_table():
    tree, values = Tree.from_branching([2]), [np.array([10]), np.array([-3.0, 7.0])]
    known = propagate(tree, [0.0, np.array([1.0, 2.0])])
    estimates = nonnegative_joint(tree, values, known)
    assert [level.tolist() for level in estimates] == [[10], [0, 10]]
    dual = multipliers(tree, values, known, estimates, fit="joint")
    # One more person in the family costs (10 - 7) / 2; the known total takes that off again.
    assert dual.prices[0] == [1.5] and dual.gradients[0] == [-1.5]
    assert dual.reduced_costs[-1].tolist() == [1.5, 0]


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


@pytest.mark.parametrize(
    ("noise", "values"),
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


@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
@pytest.mark.parametrize("known", [[-1.0, 2.0], [9.0, 2.0]])
def test_known_values_that_leave_somebody_negative_are_refused(solve, known):
    tree = Tree.from_branching([2])
    variances = propagate(tree, [0.0, np.array([0.0, 1.0])])
    with pytest.raises(ArgumentError, match="known value that is negative or less than"):
        solve(tree, [np.array([8.0]), np.array(known)], variances)


def test_certify_refuses_what_is_not_a_table_or_a_fit():
    tree, values = Tree.from_branching([2]), [np.array([3]), np.array([1, 2])]
    variances = propagate(tree, [1.0, 1.0])
    for table in ([np.ones(1)], [np.ones(1), np.ones(3)], [np.ones(1), np.array([1, np.nan])]):
        with pytest.raises(ArgumentError, match="estimates"):
            certify(tree, values, variances, table)
    with pytest.raises(ArgumentError, match="'totals' or 'joint'"):
        certify(tree, values, variances, values, fit="best")


def large_problem(branching):
    rng = np.random.default_rng(0)
    tree = Tree.from_branching(branching)
    leaves = rng.geometric(0.05, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.05)
    values = [level + np.rint(rng.laplace(0, 4, level.shape)) for level in tree.roll_up(leaves)]
    return tree, values, propagate(tree, [32.0] * len(values))


@pytest.mark.slow
@pytest.mark.parametrize("branching", [[100, 100, 100], [2] * 20], ids=["wide", "deep"])
@pytest.mark.parametrize("fit", FITS)
def test_a_million_leaves_are_certified(fit, branching):
    tree, values, variances = large_problem(branching)
    estimates = FITS[fit](tree, values, variances)
    assert certify(tree, values, variances, estimates, fit=fit).ok
    leaves = estimates[-1].copy()
    leaves[np.argsort(leaves)[-2:]] += [0.001, -0.001]
    assert not certify(tree, values, variances, tree.roll_up(leaves), fit=fit).ok


@pytest.mark.slow
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
