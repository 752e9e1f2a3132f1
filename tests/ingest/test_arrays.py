"""Exact counts and sums that the caller made: clipped, never refused for their values."""

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.ingest.arrays import leaf_counts, leaf_sums
from tests.helpers_cases import each


def test_exact_counts_are_clipped_never_refused():
    tree = Tree.from_branching([4])
    counts = leaf_counts(np.array([-5, 0, 3, 2**63 - 1]), tree)
    assert counts.tolist() == [0, 0, 3, 2**59]
    assert leaf_counts(np.array([0, 1, 2, 2**64 - 1], dtype=np.uint64), tree)[3] == 2**59


@each("data", [np.zeros(3, dtype=int), np.zeros(4), np.zeros((4, 1), dtype=int)])
def test_exact_counts_must_be_whole_and_fit(data):
    with pytest.raises(ArgumentError, match=r"whole numbers of shape \(4,\)"):
        leaf_counts(data, Tree.from_branching([4]))


def test_leaf_sums_may_be_negative():
    tree = Tree.from_branching([4])
    assert leaf_sums(np.array([-5, 0, 2**63 - 1, -(2**63)]), tree).tolist() == [-5, 0, 2**59, -(2**59)]
    assert leaf_sums(np.array([-128, 0, 1, 127], dtype=np.int8), tree).tolist() == [-128, 0, 1, 127]
    assert leaf_sums(np.array([0, 1, 2, 2**64 - 1], dtype=np.uint64), tree).tolist() == [0, 1, 2, 2**59]
    with pytest.raises(ArgumentError, match=r"whole numbers of shape \(4,\), not float64"):
        leaf_sums(np.zeros(4), tree)
