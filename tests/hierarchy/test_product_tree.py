"""Shapes of crossed hierarchies, against loops over pairs of nodes."""

import itertools

import numpy as np
import pytest

from pandas_dptree import Tree
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.product_tree import ProductTree, spread_along, sum_along

RAGGED = Tree.from_paths([[0, 0], [0, 1], [1, -1], [2, 0]])
AXES = (RAGGED, Tree.from_branching([3]), Tree(()))


def leaves_of(tree, level, node):
    """The leaves below a node, by what reaches it when they hold one record each."""
    return [leaf for leaf in range(tree.n_leaves) if tree.nodes_above(np.array([leaf]), level)[0] == node]


def test_every_cell_of_every_margin_sums_its_leaf_cells():
    product = ProductTree(AXES)
    table = np.random.default_rng(0).integers(0, 9, product.leaf_shape)
    rolled = product.roll_up(table.reshape(-1))
    assert [len(values) for values in rolled] == list(product.level_sizes)
    for level, margin in enumerate(product.margins):
        shape = product.cell_shape(margin)
        sums = [
            table[np.ix_(*(leaves_of(*each) for each in zip(AXES, margin, cell, strict=True)))].sum()
            for cell in np.ndindex(shape)
        ]
        assert rolled[level].tolist() == sums
        assert product.level_of(margin) == level


def test_margins_can_be_summed_from_each_other():
    product = ProductTree(AXES)
    table = np.arange(product.n_leaves).reshape(product.leaf_shape)
    alone = product.sum_margins(table, [(1, 0, 0)])
    assert (alone[1, 0, 0] == product.sum_margins(table, product.margins)[1, 0, 0]).all()
    assert set(alone) == {(1, 0, 0), (2, 1, 0)}


def test_values_of_axes_are_multiplied_in_every_cell():
    product = ProductTree(AXES)
    rng = np.random.default_rng(1)
    values = [[rng.random(size) for size in axis.level_sizes] for axis in AXES]
    for margin in product.margins:
        chosen = [each[level] for each, level in zip(values, margin, strict=True)]
        expected = [np.prod([each[node] for each, node in zip(chosen, cell, strict=True)])
                    for cell in itertools.product(*(range(len(each)) for each in chosen))]  # fmt: skip
        np.testing.assert_allclose(product.outer(values, margin), expected)
    folded = [[np.array([2.0])] * (axis.depth + 1) for axis in AXES]
    assert product.outer(folded, (1, 1, 0)).tolist() == [8.0]


def test_only_margins_of_the_table_are_listed():
    product = ProductTree(AXES, ((1, 1, 0), (2, 0, 0)))
    counts = [product.n_listed(level) for level in range(len(product.margins))]
    assert counts == [np.count_nonzero(product.listed(level)) for level in range(len(product.margins))]
    assert {product.margins[level]: n for level, n in enumerate(counts) if n} == {(1, 1, 0): 9, (2, 0, 0): 3}
    assert product.listed(product.level_of((2, 0, 0))).tolist() == [True, True, False, True]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_sums_and_copies_along_an_axis_of_a_table(place):
    table = np.moveaxis(np.arange(4 * 6).reshape(4, 2, 3), 0, place)
    summed = sum_along(RAGGED, 1, table, place)
    expected = np.add.reduceat(np.moveaxis(table, place, 0), [0, 2, 3])
    assert (np.moveaxis(summed, place, 0) == expected).all()
    copied = np.moveaxis(spread_along(RAGGED, 1, summed, place), place, 0)
    assert (copied == expected[[0, 0, 1, 2]]).all()


def test_equal_products_are_those_of_the_same_axes_and_margins():
    first, second = (
        ProductTree(AXES),
        ProductTree((Tree.from_paths([[0, 0], [0, 1], [1, -1], [2, 0]]), *AXES[1:])),
    )
    assert first == second
    assert hash(first) == hash(second)
    assert first != ProductTree(AXES, ((1, 1, 0),))
    assert first != ProductTree(AXES[::-1])
    assert repr(first) == "ProductTree(leaf_shape=(4, 3, 1), margins=6)"


@pytest.mark.parametrize(
    "shown", [(), ((0, 0, 1),), ((1, 0, 0), (0, 0, 0)), ((0, 0, 0), (0, 0, 0)), ((0, 0),)]
)
def test_margins_that_cannot_be_shown(shown):
    with pytest.raises(ArgumentError, match="shown"):
        ProductTree(AXES, shown)


def test_axes_that_cannot_be_crossed():
    for axes in ((), (RAGGED.copies(2),)):
        with pytest.raises(ArgumentError, match="axes"):
            ProductTree(axes)
    with pytest.raises(ArgumentError, match="leaf_values"):
        ProductTree(AXES).roll_up(np.zeros(5))


def test_a_tree_can_be_cut_off_below_a_level():
    cut = RAGGED.truncated(1)
    assert cut == Tree.from_branching([3])
    assert RAGGED.truncated(2) == RAGGED
    assert RAGGED.truncated(0) == Tree(())
    deep = Tree.from_paths([[0, 0, 0], [0, 0, 1], [1, -1, -1]])
    assert deep.truncated(2).leaf_levels.tolist() == [2, 1]
