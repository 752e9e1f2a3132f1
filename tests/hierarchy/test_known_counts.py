"""What is public about the counts: closed under addition, never contradictory."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_cases import each
from tests.helpers_known_counts import PLACES, frame, quote, statements, true_statements

BY = ["state", "county", "city"]


def tables(tree, largest):
    """Every table whose leaves hold up to `largest`: per level, shape (n_tables, level_sizes[l])."""
    leaves = np.array(list(itertools.product(range(largest + 1), repeat=tree.n_leaves)))
    rolled = [tree.roll_up(np.arange(tree.n_leaves) == leaf) for leaf in range(tree.n_leaves)]
    return [
        leaves @ np.array([matrix[level] for matrix in rolled]).astype(int) for level in range(tree.depth + 1)
    ]


def agreeing(tree, exact, least, largest):
    """Every table among them that agrees with what is given."""
    levels = tables(tree, largest)
    agrees = np.all(
        [
            np.where(fixed, level == low, level >= low).all(axis=1)
            for level, fixed, low in zip(levels, exact, least, strict=True)
        ],
        axis=0,
    )
    return [level[agrees] for level in levels]


def check_against_all_tables(tree, exact, least):
    # The tables with the smallest numbers hold nowhere more than the largest number that is given: a node
    # holds what is given of it, or just what its children must. One more shows what is not settled.
    largest = max(int(low.max()) for low in least) + 1
    some, more = (agreeing(tree, exact, least, most) for most in (largest, largest + 1))
    assert len(some[0]) > 0
    known = Known.from_levels(tree, exact, least)
    for level, size in enumerate(tree.level_sizes):
        low, high = more[level].min(axis=0), more[level].max(axis=0)
        unbounded = high > some[level].max(axis=0)
        fixed, floor = (np.broadcast_to(values[level], size) for values in (known.exact, known.least))
        np.testing.assert_array_equal(fixed, low == high)
        np.testing.assert_array_equal(floor, low)
        most = np.broadcast_to(known.most(tree)[level], size)
        np.testing.assert_array_equal(most, np.where(unbounded, np.inf, high))
        for node in range(size):  # and every number in between
            assert len(set(more[level][:, node])) == high[node] - low[node] + 1
    return known


@settings(derandomize=True)
@given(drawn=true_statements())
def test_just_what_is_the_same_in_all_tables_is_known(drawn):
    tree, exact, least, table = drawn
    known = check_against_all_tables(tree, exact, least)
    for fixed, low, most, counts in zip(known.exact, known.least, known.most(tree), table, strict=True):
        assert np.where(fixed, counts == low, counts >= low).all()
        assert (counts <= most).all()
    assert known.levels.tolist() == [bool(fixed.all()) for fixed in known.exact]


@settings(derandomize=True)
@given(drawn=statements())
def test_contradictions_are_just_what_no_table_agrees_with(drawn):
    tree, exact, least = drawn
    if len(agreeing(tree, exact, least, max(int(low.max()) for low in least))[0]):
        check_against_all_tables(tree, exact, least)
    else:
        with pytest.raises(ArgumentError, match="`known` says that") as caught:
            Known.from_levels(tree, exact, least)
        assert caught.value.argument == "known"


@given(drawn=true_statements(largest=9, max_leaves=40))
def test_what_is_known_is_closed_and_survives_json(drawn):
    tree, exact, least, _ = drawn
    known = Known.from_levels(tree, exact, least)
    written = json.loads(json.dumps(known.to_dict()))
    for again in (
        Known.from_levels(tree, known.exact, known.least),
        Known.from_dict(tree, written),
        Known.read(tree, known),
    ):
        assert repr(again) == repr(known)
        for one, other in zip((*known.exact, *known.least), (*again.exact, *again.least), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other, strict=True)


def test_nothing_costs_nothing():
    tree = Tree.from_branching([100] * 4)
    for known in (Known.nothing(tree), Known.read(tree, None), Known.from_dict(tree, {
        "exact": [[]] * 5, "at_least": [[]] * 5})):  # fmt: skip
        assert quote(known) == [[(0,)]] * 5
        assert not known.levels.any()
        assert [level.tolist() for level in known.most(tree)] == [[np.inf]] * 5
    total = Known.read(tree, {"total": 10**9})
    assert quote(total) == [[10**9], [(0,)], [(0,)], [(0,)], [(0,)]]
    assert [level.tolist() for level in total.most(tree)] == [[1e9]] * 5
    assert repr(total) == "Known(exact=(1, 0, 0, 0, 0), at_least=(0, 0, 0, 0, 0))"


FALSE, ZERO = np.array([False]), np.array([0])


@each(
    "exact, least, message",
    [
        ([FALSE], [ZERO], "an array of booleans"),
        ([FALSE] * 2, [ZERO] * 3, "an array of booleans"),
        ([FALSE] * 2, [ZERO, np.zeros(3, dtype=int)], "an array of booleans"),
        ([FALSE, ZERO], [ZERO] * 2, "an array of booleans"),
        ([FALSE] * 2, [ZERO, np.zeros(2)], "an array of booleans"),
        ([FALSE] * 2, [ZERO, np.array([3, -3])], "node 1 of level_1 holds -3, not a number from 0 to"),
        ([FALSE] * 2, [ZERO, np.array([2**60 + 1])], "node 0 of level_1 holds 1152921504606846977, not"),
        ([FALSE] * 2, [ZERO, np.array([2**64 - 1], dtype=np.uint64)], "not a number from 0 to"),
    ],
)
def test_arrays_that_do_not_fit_the_tree(exact, least, message):
    with pytest.raises(ArgumentError, match=message):
        Known.from_levels(Tree.from_branching([2]), exact, least)


def test_the_largest_numbers_do_not_overflow():
    tree = Tree.from_branching([3, 1, 1, 1, 1])
    known = Known.from_levels(tree, [FALSE] * 6, [np.array([2**61 // 3])] * 6)
    assert known.least[0].tolist() == [2**61 // 3 * 3]


def test_one_entry_may_stand_for_a_level():
    known = Known.from_levels(Tree.from_branching([2, 3]), [FALSE, FALSE, ~FALSE], [ZERO, ZERO, ZERO + 4])
    assert quote(known) == [[24], [12, 12], [4] * 6]


@each(
    "data",
    [
        None,
        [],
        {},
        {"exact": [[], []]},
        {"exact": [[], []], "at_least": [[]]},
        {"exact": [[], []], "at_least": {}},
        {"exact": [[], [[0, True]]], "at_least": [[], []]},
        {"exact": [[], [[0, 1.0]]], "at_least": [[], []]},
        {"exact": [[], [[0, -1]]], "at_least": [[], []]},
        {"exact": [[], [[0, 2**61 + 1]]], "at_least": [[], []]},
        {"exact": [[], [[2, 1]]], "at_least": [[], []]},
        {"exact": [[], [[-1, 1]]], "at_least": [[], []]},
        {"exact": [[], [[0, 1, 2]]], "at_least": [[], []]},
        {"exact": [[], ["01"]], "at_least": [[], []]},
        {"exact": [[], "01"], "at_least": [[], []]},
    ],
)
def test_data_that_is_nothing_of_the_kind(data):
    with pytest.raises(ArgumentError, match=r"has no valid entry '(exact|at_least)'") as caught:
        Known.from_dict(Tree.from_branching([2]), data)
    assert caught.value.argument == "data"


@each(
    "data",
    [
        {"exact": [[[0, 3]], [[0, 1], [1, 1]]], "at_least": [[], []]},
        {"exact": [[], [[0, 1], [0, 2]]], "at_least": [[], []]},
        {"exact": [[], [[0, 1]]], "at_least": [[], [[0, 2]]]},
        {"exact": [[], []], "at_least": [[], [[0, 2**61]]]},
    ],
)
def test_data_that_contradicts_itself(data):
    with pytest.raises(ArgumentError) as caught:
        Known.from_dict(Tree.from_branching([2]), data)
    assert caught.value.argument == "known"


FLAGGED = PLACES.assign(nobody=[False, False, True, True, False])  # Fremont, Taft


def test_structural_zeros_are_zero():
    domain = Domain.from_frame(FLAGGED, by=BY, structural_zeros="nobody")
    for known in (None, Known.nothing(domain.tree), {}, {"city": [0, np.nan, 0, np.nan, np.nan]}):
        assert quote(Known.read(domain, known))[2:] == [[(0,), 0, (0,), (0,)], [0, (0,), 0, (0,), (0,)]]
    assert quote(Known.read(domain, {"state": {"CA": 9}}))[3] == [0, 9, 0, (0,), (0,)]


@each(
    "known, message",
    [
        (
            {"city": {("CA", "Kern", "Taft"): 1}},
            "city='Taft' two counts, .*structural zeros of the domain hold 0",
        ),
        (
            frame(state=["CA"], county=["Kern"], city=["Taft"], at_least=[1]),
            "city='Taft' holds 0, and at least 1",
        ),
        ({"county": {("CA", "Kern"): 1}}, "county='Kern' holds 1, but its children together hold 0"),
    ],
)
def test_counts_at_structural_zeros_cannot_be_positive(known, message):
    domain = Domain.from_frame(FLAGGED, by=BY, structural_zeros="nobody")
    with pytest.raises(ArgumentError, match=rf"(?s){message}"):
        Known.read(domain, known)
