"""Estimates for the released nodes of an implicit tree."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.estimation.sparse_tree import SparseLevel, count_bounds, sparse_estimates
from pandas_dptree.mechanisms.sampling import byte_source, random_words


@given(st.lists(st.integers(11, 60), min_size=1, max_size=12), st.integers(0, 100))
def test_a_chain_is_fitted_by_isotonic_regression(noisy, seed):
    from scipy.optimize import isotonic_regression

    yes, no = np.ones(1, dtype=bool), np.zeros(1, dtype=bool)
    levels = [SparseLevel(np.zeros(1, dtype=np.int64), np.array([y]), yes, no, 4.0, 10) for y in noisy]
    if len(levels) == 1:
        levels.append(levels[0])
        noisy = noisy * 2
    free = [np.zeros(1, dtype=np.int64)] * len(levels)
    counts, rests = sparse_estimates(levels, free, lambda n: random_words(byte_source(None), n))
    fitted = isotonic_regression(noisy, increasing=False).x
    assert np.abs(np.concatenate(counts) - fitted).max() < 1
    assert [above - below for above, below in itertools.pairwise(counts)] == rests


def test_bounds_of_a_family_tighten_one_another():
    root = SparseLevel(np.array([0]), np.array([100]), np.array([True]), np.array([False]), 4.0, 10)
    nodes = SparseLevel(
        np.array([0, 0]), np.array([70, 45]), np.array([True, True]), np.array([False] * 2), 4.0, 10
    )
    lower, upper = count_bounds([root, nodes])
    assert [bound.tolist() for bound in lower] == [[95], [60, 35]]
    assert [bound.tolist() for bound in upper] == [[110], [75, 50]]
