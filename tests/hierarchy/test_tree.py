"""The shape of a tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError, DomainError
from pandas_dptree.hierarchy.tree import Tree
from tests import reference
from tests.helpers_cases import each
from tests.strategies import trees


@given(tree=trees(), seed=st.integers(0, 2**32))
def test_roll_up_is_the_membership_matrix(tree, seed):
    leaves = np.random.default_rng(seed).integers(-(2**40), 2**40, tree.n_leaves)
    for matrix, rolled in zip(reference.membership(tree), tree.roll_up(leaves), strict=True):
        assert rolled.dtype == np.int64
        assert (rolled == matrix.astype(np.int64) @ leaves).all()


@given(tree=trees())
def test_sizes_leaves_and_spread_agree(tree):
    assert tree.n_nodes == sum(tree.level_sizes)
    for level, size in enumerate(tree.level_sizes):
        below = np.broadcast_to(tree.leaves_below(level), size)
        assert below.sum() == tree.n_leaves
        assert (below == reference.membership(tree)[level].sum(axis=1)).all()
        assert (tree.nodes_above(np.arange(tree.n_leaves), level) == np.repeat(np.arange(size), below)).all()
        assert tree.listed(level).all()
        if level < tree.depth:
            handed = tree.spread(level, np.arange(size))
            counts = np.broadcast_to(tree.child_counts[level], size)
            expected = np.repeat(np.arange(size), counts)
            assert (np.broadcast_to(handed, len(expected)) == expected).all()


def test_nodes_above_few_leaves_of_many():
    tree = Tree((np.array([3]), np.array([1, 200, 99])))
    for leaves in (np.array([299, 0, 200, 201]), np.array([1]), np.arange(300), np.zeros(0, dtype=np.int64)):
        assert tree.nodes_above(leaves, 1).tolist() == ((leaves > 0) * 1 + (leaves > 200)).tolist()


@given(tree=trees(), value=st.integers(-9, 9))
def test_folded_values_are_the_same_as_full_ones(tree, value):
    for level in range(tree.depth):
        size = tree.level_sizes[level]
        full = tree.sum_children(level, np.full(tree.level_sizes[level + 1], value))
        assert (np.broadcast_to(tree.sum_children(level, np.array([value])), size) == full).all()


def test_a_tree_too_large_to_list_costs_nothing():
    tree = Tree.from_branching([1000] * 6)
    assert tree.n_leaves == 10**18
    assert tree.is_uniform
    assert tree.leaves_below(1).tolist() == [10**15]


def test_from_paths_sorts_and_continues_short_paths_as_chains():
    tree = Tree.from_paths([[1, -1, -1], [0, 1, 0], [0, 0, 2], [0, 0, 1]])
    assert tree.level_sizes == (1, 2, 3, 4)
    assert tree.leaf_levels.tolist() == [3, 3, 3, 1]
    assert [tree.listed(level).tolist() for level in range(4)] == [
        [True],
        [True, True],
        [True, True, False],
        [True, True, True, False],
    ]


def test_from_paths_folds_what_is_uniform():
    tree = Tree.from_paths([[i, j] for i in range(3) for j in range(4)])
    assert tree.is_uniform and [c.tolist() for c in tree.child_counts] == [[3], [4]]
    assert repr(tree) == "Tree(uniform, level_sizes=(1, 3, 12))"


@each(
    "paths, message",
    [
        (np.empty((0, 2)), "no leaves"),
        ([], "no leaves"),
        ([[0, 1], [0, 1]], "same leaf more than once"),
        ([[0, -1], [0, 1]], "also an inner node"),
        ([[0, -1, -1], [0, 1, -1]], "also an inner node"),
        ([[0, 1], [1, 0], [0, -1]], "also an inner node"),
        ([[0, -1, 1]], "gap"),
        ([[-1, 1]], "without its first key"),
        ([[-1]], "without its first key"),
        ([[0.7], [0.2]], "whole numbers"),
        ([["a"]], "whole numbers"),
    ],
)
def test_paths_that_are_no_tree(paths, message):
    with pytest.raises(DomainError, match=message) as caught:
        Tree.from_paths(paths)
    assert caught.value.argument == "domain" and caught.value.hint


@each("branching", [[0], [2, -1], [1.5], [True], ["3"], 3, "33"])
def test_branching_must_be_whole(branching):
    with pytest.raises(ArgumentError, match="whole numbers"):
        Tree.from_branching(branching)


def test_branching_must_not_overflow():
    with pytest.raises(ArgumentError, match="2\\*\\*62"):
        Tree.from_branching([10] * 19)


@each("counts", [([2], [1, 2, 3]), ([0],), ([1.5],), ([[2]],), ([2], [1, 0])])
def test_child_counts_must_fit(counts):
    with pytest.raises(ArgumentError, match="child_counts"):
        Tree(tuple(np.array(level) for level in counts))


@each("ends", [[0, 1], [3, 3], [2, 2, 2], [1, 2]])
def test_leaf_levels_must_fit(ends):
    with pytest.raises(ArgumentError, match="leaf_levels"):
        Tree((np.array([1]), np.array([2])), np.array(ends))


def test_roll_up_wants_one_value_per_leaf():
    with pytest.raises(ArgumentError, match=r"shape \(6,\), not \(5,\)"):
        Tree.from_branching([2, 3]).roll_up(np.arange(5))


@each("n", [0, -1, 1.5, True, None])
def test_a_forest_has_at_least_one_tree(n):
    with pytest.raises(ArgumentError, match="`n_roots` must be a whole number >= 1"):
        Tree((np.array([2]),), n_roots=n)
    if n is not None and n is not True:
        with pytest.raises(ArgumentError, match="`n_roots`"):
            Tree.from_branching([2]).copies(n)


def test_copies_of_a_ragged_tree() -> None:
    tree = Tree.from_paths([[0, 0], [0, 1], [1, -1]]).copies(2)
    assert [values.tolist() for values in tree.roll_up(np.arange(6))] == [
        [3, 12], [1, 2, 7, 5], [0, 1, 2, 3, 4, 5],
    ]  # fmt: skip
    assert tree.listed(2).tolist() == [True, True, False] * 2


def test_trees_of_one_shape_are_equal() -> None:
    tree = Tree.from_branching([2, 3])
    assert (
        len(
            {
                tree,
                Tree((np.array([2]), np.array([3, 3]))),
                Tree.from_paths(np.indices((2, 3)).reshape(2, 6).T),
            }
        )
        == 1
    )
    others = Tree.from_branching([3, 2]), Tree.from_branching([2, 3, 1]), tree.copies(2), "tree"
    short = (
        Tree.from_branching([2, 1]),
        Tree.from_paths([[0, -1], [1, -1]]),
        Tree.from_paths([[0, 0], [1, -1]]),
    )
    assert tree not in others and len(set(short)) == 3
