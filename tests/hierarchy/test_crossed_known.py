"""Counts that are known on the axes of crossed hierarchies."""

import numpy as np
import pytest

from pandas_dptree import Tree
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import ProductTree

PRODUCT = ProductTree((Tree.from_branching([2, 2]), Tree.from_branching([2])))
NAN = np.nan


def known(*axes):
    return CrossedKnown(
        PRODUCT, tuple(Known.read(tree, given) for tree, given in zip(PRODUCT.axes, axes, strict=True))
    )


def by_margin(public):
    """The known counts of each margin, None where a cell is not known."""
    return {
        margin: [
            int(count) if exact else None for exact, count in zip(*np.broadcast_arrays(*each), strict=True)
        ]
        for margin, each in zip(PRODUCT.margins, zip(public.exact, public.least, strict=True), strict=True)
    }


def test_nothing_is_known():
    public = CrossedKnown.nothing(PRODUCT)
    assert not public.levels.any()
    assert public.total_axis is None
    assert [zeros.tolist() for zeros in public.zeros] == [[False] * 4, [False] * 2]


def test_totals_of_one_axis_are_known_of_its_own_margins_alone():
    public = known({"level_1": [4, 5]}, None)
    found = by_margin(public)
    assert found[1, 0] == [4, 5]
    assert found[0, 0] == [9]
    assert found[1, 1] == [None]
    assert public.levels.tolist() == [True, False, True, False, False, False]
    assert public.total_axis == 0


def test_a_structural_zero_empties_a_slice():
    public = known({"level_2": [0, NAN, 0, 0]}, {"level_1": [NAN, 0]})
    found = by_margin(public)
    assert found[1, 0] == [None, 0]
    assert found[1, 1] == [None, 0, 0, 0]
    assert found[2, 1] == [0, 0, None, 0, 0, 0, 0, 0]
    assert found[0, 1] == [None, 0]
    assert public.total_axis is None
    assert [zeros.tolist() for zeros in public.zeros] == [[True, False, True, True], [False, True]]


def test_zeros_of_all_axes_go_with_totals_of_one():
    found = by_margin(known({"level_2": [0, NAN, NAN, NAN]}, {"total": 8}))
    assert found[0, 0] == [8]
    assert found[2, 0] == [0, None, None, None]


def test_totals_of_two_axes_are_refused():
    with pytest.raises(ArgumentError, match="more than one axis"):
        known({"level_1": [4, NAN]}, {"level_1": [3, NAN]})


def test_what_is_known_is_read_from_json():
    public = known({"level_1": [4, NAN], "level_2": [NAN, NAN, 0, NAN]}, {"level_1": [NAN, 0]})
    assert by_margin(CrossedKnown.from_dict(PRODUCT, public.to_dict())) == by_margin(public)
