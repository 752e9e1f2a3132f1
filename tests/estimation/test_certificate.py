"""Lower bounds on any node, beside dense solvers; whole tables that keep them; signed tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation import certify
from pandas_dptree.estimation.certificate import multipliers
from pandas_dptree.estimation.consistency import CONSISTENCIES, estimate
from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import least_squares, propagate, subtree_estimates
from pandas_dptree.estimation.nonnegative import least_values, nonnegative_totals
from pandas_dptree.estimation.rounding import round_to_whole
from pandas_dptree.hierarchy.tree import Tree
from tests import reference
from tests.strategies import trees

FITS = {"totals": nonnegative_totals, "joint": nonnegative_joint}


def random_tree(rng, max_depth=5, max_leaves=40):
    counts, size = [], 1
    for _ in range(rng.integers(1, max_depth + 1)):
        level = rng.integers(1, 5, size)
        if level.sum() > max_leaves:
            level = np.ones(size, dtype=int)
        counts.append(level)
        size = int(level.sum())
    return Tree(tuple(counts))


def random_problem(rng, tree, known_share, bounded_share, scale=3.0):
    """Noisy counts with known nodes and lower bounds that hold in truth, some of them just so."""
    exact = tree.roll_up(rng.poisson(scale, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.4))
    values, noise, least = [], [], []
    for level, truth in enumerate(exact):
        n = len(truth)
        least.append(np.floor(truth * rng.choice([0.5, 0.9, 1.0], n)) * (rng.random(n) < bounded_share))
        if level < tree.depth and rng.random() < 0.25:
            values.append(None)
            noise.append(np.array([np.inf]))
            continue
        known = rng.random(n) < known_share * rng.choice([0, 1, 3])
        variance = np.where(known, 0.0, scale**2 * rng.uniform(0.1, 9, n))
        if level < tree.depth and known_share:
            variance[~known & (rng.random(n) < 0.2)] = np.inf
        values.append(np.where(known, truth, truth + scale * rng.uniform(0.3, 3) * rng.normal(size=n)))
        noise.append(variance)
    return values, noise, least, exact


def words(rng):
    return lambda n: rng.integers(2**64, size=n, dtype=np.uint64)


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


def assert_bounded_table(tree, values, noise, least, estimates):
    """It adds up, no node is below its bound, known values stand as they are."""
    for level, (x, y, v, b) in enumerate(zip(estimates, values, noise, least, strict=True)):
        known = np.broadcast_to(v, len(x)) == 0
        assert (x >= b).all()
        assert not known.any() or (x[known] == y[known]).all()
        if level < tree.depth:
            np.testing.assert_allclose(
                tree.sum_children(level, estimates[level + 1]), x, rtol=1e-9, atol=1e-9
            )


@pytest.mark.parametrize(("known_share", "bounded_share"), [(0.0, 0.4), (0.0, 1.0), (0.15, 0.4), (0.3, 0.9)])
@pytest.mark.parametrize("seed", range(100))
def test_joint_with_bounds_is_the_dense_solution(seed, known_share, bounded_share):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    values, noise, least, _ = random_problem(rng, tree, known_share, bounded_share)
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


@pytest.mark.parametrize(("known_share", "bounded_share"), [(0.0, 0.4), (0.0, 1.0), (0.15, 0.4), (0.3, 0.9)])
@pytest.mark.parametrize("seed", range(50))
def test_totals_with_bounds_solve_a_quadratic_programme_per_family(seed, known_share, bounded_share):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    values, noise, least, _ = random_problem(rng, tree, known_share, bounded_share)
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


@settings(max_examples=100)
@given(tree=trees(), seed=st.integers(0, 2**32), known_share=st.sampled_from([0.0, 0.3]))
def test_least_values_close_the_bounds_upwards(tree, seed, known_share):
    rng = np.random.default_rng(seed)
    values, noise, least, _ = random_problem(rng, tree, known_share, 0.5)
    ours = least_values(tree, values, propagate(tree, noise), least=least)
    for bound, expected in zip(ours, effective(tree, values, noise, least), strict=True):
        np.testing.assert_array_equal(np.broadcast_to(bound, len(expected)), expected)


@settings(max_examples=300)
@given(tree=trees(), seed=st.integers(0, 2**32), known_share=st.sampled_from([0.0, 0.3]))
def test_joint_with_bounds_is_closer_to_the_truth_than_least_squares_in_every_draw(tree, seed, known_share):
    rng = np.random.default_rng(seed)
    values, noise, least, exact = random_problem(rng, tree, known_share, 0.5)
    variances = propagate(tree, noise)

    def error(estimates):
        precisions = [np.divide(1, v, out=np.zeros_like(v), where=v > 0) for v in noise]
        return sum((p * (x - t) ** 2).sum() for p, x, t in zip(precisions, estimates, exact, strict=True))

    linear = error(least_squares(tree, values, variances))
    bounded = error(nonnegative_joint(tree, values, variances, least=least))
    assert bounded <= linear * (1 + 1e-9) + 1e-9


@settings(max_examples=500)
@given(
    tree=trees(),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([0.5, 3.0, 1e5]),
    fit=st.sampled_from(list(FITS)),
    known_share=st.sampled_from([0.0, 0.3]),
    bounded_share=st.sampled_from([0.2, 1.0]),
)
def test_whole_tables_keep_their_bounds_and_known_values(tree, seed, scale, fit, known_share, bounded_share):
    rng = np.random.default_rng(seed)
    values, noise, least, _ = random_problem(rng, tree, known_share, bounded_share, scale)
    variances = propagate(tree, noise)
    tables = {
        consistency: estimate(tree, values, variances, consistency, fit, words(rng), least=least)
        for consistency in CONSISTENCIES[1:]
    }
    for level, (whole, y, v, b) in enumerate(zip(tables["integer"], values, noise, least, strict=True)):
        known = np.broadcast_to(v, len(whole)) == 0
        assert whole.dtype == np.int64
        assert (whole >= b).all()
        assert (np.abs(whole - tables["nonnegative"][level]) < 1 + 1e-9 * scale).all()
        for table in tables.values():
            assert not known.any() or (table[level][known] == y[known]).all()
        if level < tree.depth:
            assert (tree.sum_children(level, tables["integer"][level + 1]) == whole).all()


@settings(max_examples=200)
@given(
    tree=trees(max_depth=6),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([1e-3, 3.0, 1e4, 1e9]),
    spread=st.sampled_from([1.0, 1e3, 1e6]),
    known_share=st.sampled_from([0.0, 0.2]),
)
def test_certificates_with_bounds_are_clean_at_any_scale(tree, seed, scale, spread, known_share):
    rng = np.random.default_rng(seed)
    values, noise, least, _ = random_problem(rng, tree, known_share, 0.5, scale)
    noise = [v * spread ** rng.uniform(-0.5, 0.5, v.shape) for v in noise]
    variances = propagate(tree, noise)
    for fit, solve in FITS.items():
        estimates = solve(tree, values, variances, least=least)
        certificate = certify(tree, values, variances, estimates, fit=fit, least=least)
        assert certificate.ok, certificate


@pytest.mark.parametrize("fit", FITS)
def test_certificates_tell_the_bounds_of_a_table(fit):
    rng = np.random.default_rng(2)
    tree = Tree.from_branching([4, 5, 6])
    values, noise, least, exact = random_problem(rng, tree, 0.0, 0.0)
    variances = propagate(tree, noise)
    least[1][0], least[2][7] = exact[1][0] + 40, exact[2][7] + 20
    free, bounded = FITS[fit](tree, values, variances), FITS[fit](tree, values, variances, least=least)
    assert bounded[1][0] == least[1][0] and bounded[2][7] == least[2][7]
    assert certify(tree, values, variances, bounded, fit=fit, least=least).ok
    assert certify(tree, values, variances, free, fit=fit, least=least).bounds > 1e-3
    assert not certify(tree, values, variances, bounded, fit=fit).ok
    for lower in (1, 2):  # a node that holds more than its bound for no reason, or less than its bound
        for change in (1e-6, -1e-6):
            leaves = bounded[-1].copy()
            leaves[np.flatnonzero(leaves[:30] > 1)[0] if lower == 1 else 42 + leaves[42:48].argmax()] += (
                change
            )
            assert not certify(tree, values, variances, tree.roll_up(leaves), fit=fit, least=least).ok


def test_multipliers_of_a_hand_made_bound():
    tree, values = Tree.from_branching([2]), [np.array([4.0]), np.array([1.0, 3.0])]
    variances = propagate(tree, [1.0, 1.0])
    least = [np.array([10.0]), np.zeros(1)]
    estimates = nonnegative_joint(tree, values, variances, least=least)
    assert [level.tolist() for level in estimates] == [[10], [4, 6]]
    dual = multipliers(tree, values, variances, estimates, fit="joint", least=least)
    # One person more costs 10 - 4 at the root and 3 at either leaf.
    assert dual.reduced_costs[0] == [9] and dual.prices[0] == [3]
    assert dual.reduced_costs[1].tolist() == [0, 0]


@pytest.mark.parametrize("solve", FITS.values(), ids=FITS)
def test_bounds_that_do_not_bind_change_nothing(solve):
    rng = np.random.default_rng(3)
    tree = random_tree(rng)
    values, noise, _, _ = random_problem(rng, tree, 0.1, 0.0)
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
        with pytest.raises(ArgumentError, match="known value that is negative or less than"):
            solve(tree, values, propagate(tree, noise), least=least)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("known", [4.9999999999, 5.0000000001])
def test_what_is_whole_up_to_rounding_error_stays_so(known):
    rng = np.random.default_rng(0)
    tree = Tree.from_branching([2, 2])
    for rest in (0.0, 0.3, 0.5, 0.9999999999):
        _, groups, leaves = round_to_whole(tree, np.array([2.5, known - 2.5, rest, 7.0]), words(rng))
        assert groups[0] == 5 and leaves[3] == 7


@settings(max_examples=500)
@given(
    tree=trees(),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([0.0, 0.3, 20.0, 1e6, 1e14]),
    grid=st.sampled_from([None, 1, 0.5, 0.25]),
)
def test_signed_tables_are_rounded_to_a_floor_or_a_ceiling(tree, seed, scale, grid):
    rng = np.random.default_rng(seed)
    leaves = rng.laplace(0, scale, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.7)
    leaves = leaves if grid is None else np.rint(leaves / grid) * grid
    whole, estimates = round_to_whole(tree, leaves, words(rng)), tree.roll_up(leaves)
    slack = 1e-9 * max(1.0, scale)
    for level, (w, x) in enumerate(zip(whole, estimates, strict=True)):
        assert w.dtype == np.int64
        assert (w >= np.floor(x - slack)).all() and (w <= np.ceil(x + slack)).all()
        assert (w[x == 0] == 0).all() or grid is None
        if level < tree.depth:
            assert (tree.sum_children(level, whole[level + 1]) == w).all()
    assert (whole[-1][leaves == 0] == 0).all()


@settings(max_examples=300)
@given(
    tree=trees(),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([3.0, 1e5]),
    known_share=st.sampled_from([0.0, 0.2]),
)
def test_signed_estimates_are_least_squares_and_its_rounding(tree, seed, scale, known_share):
    rng = np.random.default_rng(seed)
    exact = tree.roll_up(np.rint(rng.laplace(0, scale, tree.n_leaves)))
    known = [rng.random(level.shape) < known_share for level in exact]
    values = [np.where(k, t, t + rng.normal(0, scale, t.shape)) for k, t in zip(known, exact, strict=True)]
    variances = propagate(tree, [np.where(k, 0, scale**2) for k in known])
    linear = least_squares(tree, values, variances)
    tables = {
        consistency: estimate(tree, values, variances, consistency, "totals", words(rng), signed=True)
        for consistency in CONSISTENCIES
    }
    for level, k in enumerate(known):
        np.testing.assert_array_equal(tables["nonnegative"][level], linear[level])
        assert (np.abs(tables["integer"][level] - linear[level]) < 1 + 1e-9 * scale).all()
        for table in tables.values():
            assert (table[level][k] == exact[level][k]).all()
        if level < tree.depth:
            below = tree.sum_children(level, tables["integer"][level + 1])
            assert (below == tables["integer"][level]).all()


def test_signed_tables_have_no_lower_bounds():
    tree = Tree.from_branching([2])
    values, variances = [np.array([1]), np.array([2, -1])], propagate(tree, [1.0, 1.0])
    least = [np.zeros(1), np.zeros(1)]
    with pytest.raises(ArgumentError, match="signed"):
        estimate(tree, values, variances, "integer", "totals", lambda n: None, least=least, signed=True)


@pytest.mark.slow
@pytest.mark.parametrize("branching", [[100, 100, 100], [2] * 20], ids=["wide", "deep"])
@pytest.mark.parametrize("fit", FITS)
def test_a_million_leaves_with_bounds_are_certified(fit, branching):
    rng = np.random.default_rng(0)
    tree = Tree.from_branching(branching)
    exact = tree.roll_up(rng.geometric(0.05, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.05))
    values = [level + np.rint(rng.laplace(0, 4, level.shape)) for level in exact]
    variances = propagate(tree, [32.0] * len(values))
    least = [np.floor(level * (rng.random(level.shape) < 0.3)) for level in exact]
    estimates = FITS[fit](tree, values, variances, least=least)
    certificate = certify(tree, values, variances, estimates, fit=fit, least=least)
    assert certificate.ok, certificate
