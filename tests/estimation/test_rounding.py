"""Rounding to whole numbers that add up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.estimation.nonnegative import nonnegative_totals
from pandas_dptree.estimation.rounding import round_to_whole
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_cases import each
from tests.helpers_estimation import words_from
from tests.strategies import trees


@each("known", [4.9999999999, 5.0000000001])
def test_what_is_whole_up_to_rounding_error_stays_so(known):
    rng = np.random.default_rng(0)
    tree = Tree.from_branching([2, 2])
    for rest in (0.0, 0.3, 0.5, 0.9999999999):
        _, groups, leaves = round_to_whole(tree, np.array([2.5, known - 2.5, rest, 7.0]), words_from(rng))
        assert groups[0] == 5 and leaves[3] == 7


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
    whole, estimates = round_to_whole(tree, leaves, words_from(rng)), tree.roll_up(leaves)
    slack = 1e-9 * max(1.0, scale)
    for level, (w, x) in enumerate(zip(whole, estimates, strict=True)):
        assert w.dtype == np.int64
        assert (w >= np.floor(x - slack)).all() and (w <= np.ceil(x + slack)).all()
        assert (w[x == 0] == 0).all() or grid is None
        if level < tree.depth:
            assert (tree.sum_children(level, whole[level + 1]) == w).all()
    assert (whole[-1][leaves == 0] == 0).all()


@given(tree=trees(), seed=st.integers(0, 2**32), scale=st.sampled_from([0.1, 3.0, 1000.0, 1e9]))
def test_tables_are_whole_nonnegative_and_add_up(tree, seed, scale):
    rng = np.random.default_rng(seed)
    exact = tree.roll_up(rng.poisson(2, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.3))
    values = [level + np.rint(rng.laplace(0, scale, level.shape)).astype(int) for level in exact]
    estimates = nonnegative_totals(tree, values, propagate(tree, [2 * scale**2] * len(values)))
    whole = round_to_whole(tree, estimates[-1], words_from(rng))
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
        whole = round_to_whole(tree, estimates[-1], words_from(rng))
        for level, (w, k, e) in enumerate(zip(whole, known, exact, strict=True)):
            assert (w[k] == e[k]).all()
            assert (w >= 0).all()
            if level < tree.depth:
                assert (tree.sum_children(level, whole[level + 1]) == w).all()


def test_rounding_breaks_ties_by_chance():
    rng = np.random.default_rng(3)
    tree = Tree.from_branching([4])
    draws = np.array([round_to_whole(tree, np.full(4, 0.5), words_from(rng))[1] for _ in range(4000)])
    assert (draws.sum(axis=1) == 2).all()
    np.testing.assert_allclose(draws.mean(axis=0), 0.5, atol=4 * 0.5 / np.sqrt(4000))


@each("leaves, whole", [([0.2, 0.9, 0.0], [0, 1, 0]), ([1.6, 1.7, 1.7], [1, 2, 2])])
def test_the_largest_fractions_are_rounded_up(leaves, whole):
    rng = np.random.default_rng(0)
    assert round_to_whole(Tree.from_branching([3]), np.array(leaves), words_from(rng))[1].tolist() == whole


def test_rounding_takes_tables_of_any_size():
    rng = np.random.default_rng(0)
    tree = Tree.from_branching([2])
    for huge in (2.0**61, 2.0**62):
        total, leaves = round_to_whole(tree, np.array([huge / 2, huge / 2]), words_from(rng))
        assert total == [huge] and leaves.sum() == huge
