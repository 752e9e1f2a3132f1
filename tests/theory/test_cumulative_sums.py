"""Counts on a tree from cumulative sums of its leaves."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree import theory
from tests.helpers_cases import each
from tests.helpers_planning import random_tree, workload
from tests.strategies import trees


@given(trees(), st.integers(0, 2**32 - 1))
def test_running_totals_give_every_node(tree, seed):
    leaves = np.random.default_rng(seed).integers(0, 100, tree.n_leaves)
    for ours, summed in zip(
        theory.from_thresholds(tree, np.cumsum(leaves)), tree.roll_up(leaves), strict=True
    ):
        assert ours.dtype == leaves.dtype
        np.testing.assert_array_equal(ours, summed)


@each("seed", range(4))
def test_noisy_thresholds_cost_each_node_two_of_them(seed):
    tree = random_tree(np.random.default_rng(seed), depth=3)
    columns = [np.concatenate(theory.from_thresholds(tree, unit)) for unit in np.eye(tree.n_leaves)]
    variances = (np.array(columns) ** 2).sum(axis=0)  # of a linear map, per unit of variance
    with_first = workload(tree)[:, 0] > 0
    np.testing.assert_array_equal(variances, np.where(with_first, 1, 2))
