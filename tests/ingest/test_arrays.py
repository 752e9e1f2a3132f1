"""Exact counts and sums that the caller made: clipped, never refused for their values."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.ingest.arrays import clear_zeros, leaf_counts, leaf_sums
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


SEXES = pd.DataFrame({"sex": ["f", "m"], "never": [False, True]})
PLACES = Domain.from_frame(pd.DataFrame({"state": [0, 0, 1], "city": [0, 1, 2]}), by=["state", "city"])
CROSSED = dpt.cross(sex=Domain.from_frame(SEXES, by=["sex"], structural_zeros="never"), place=PLACES)


def test_leaf_cells_may_have_the_shape_of_the_axes():
    table = np.arange(6).reshape(3, 2).T  # not in C order
    assert leaf_counts(table, CROSSED.tree).tolist() == [0, 2, 4, 1, 3, 5]
    assert leaf_sums(-table.flatten(), CROSSED.tree).tolist() == [0, -2, -4, -1, -3, -5]
    for other in (table.T, table[:, :2], table.astype(float)):
        with pytest.raises(ArgumentError, match=r"whole numbers of shape \(2, 3\) or \(6,\), not"):
            leaf_counts(other, CROSSED.tree)


def test_structural_zeros_of_an_axis_are_slices():
    assert clear_zeros(np.arange(6), CROSSED).tolist() == [0, 1, 2, 0, 0, 0]
    assert clear_zeros(np.arange(2), CROSSED.axes["sex"]).tolist() == [0, 0]
    assert clear_zeros(np.arange(3), CROSSED.with_margins(["city"])).tolist() == [0, 1, 2]
    flags = PLACES.keys(2).assign(never=[True, True, False])
    places = Domain.from_frame(flags, by=["state", "city"], structural_zeros="never")
    crossed = dpt.cross(place=places, sex=dpt.Tree.from_branching([2]))
    assert clear_zeros(np.arange(1, 7), crossed).tolist() == [0, 0, 0, 0, 5, 6]
    assert clear_zeros(np.arange(1, 5), crossed.with_margins([("state", "sex")])).tolist() == [0, 0, 3, 4]
