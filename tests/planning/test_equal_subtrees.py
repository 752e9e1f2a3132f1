"""Trees in which equal siblings are counted instead of listed."""

import numpy as np
from hypothesis import given

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.planning.equal_subtrees import Orbits
from tests.helpers_planning import listed_counts
from tests.strategies import trees


@given(trees())
def test_orbits_count_every_node_once(tree):
    orbits = Orbits.of(tree)
    np.testing.assert_array_equal(orbits.n_listed, listed_counts(tree))
    assert orbits.depth == tree.depth
    leaves = np.ones((len(orbits.listed[-1]), 1))
    for level in reversed(range(tree.depth)):
        leaves = orbits.sum_children(level, leaves)
    assert leaves.item() == tree.n_leaves


def test_orbits_merge_equal_subtrees():
    assert Orbits.of(Tree.from_branching([100] * 4)).n_kinds == 5
    assert Orbits.of(Tree.from_branching([2] * 62)).n_listed[-1] == 2.0**62
    # Two of the three subtrees are the same multiset of shapes, in another order.
    mirrored = Tree((np.array([3]), np.array([2, 2, 2]), np.array([1, 5, 5, 1, 5, 5])))
    assert [len(level) for level in Orbits.of(mirrored).listed] == [1, 2, 3, 3]


@given(trees())
def test_kinds_say_of_each_node_what_it_is(tree):
    orbits = Orbits.of(tree)
    for level, (kind, listed) in enumerate(zip(orbits.kinds, orbits.listed, strict=True)):
        kind = np.broadcast_to(kind, tree.level_sizes[level])
        shown = np.bincount(kind, weights=tree.listed(level), minlength=len(listed))
        np.testing.assert_array_equal(shown, listed[:, 0])
        assert set(shown / np.bincount(kind)) <= {0.0, 1.0}  # all nodes of a kind are shown, or none
