"""What is public about the counts: read from any form, closed under addition, never contradictory."""

import itertools
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from tests.strategies import trees

PLACES = pd.DataFrame(
    {
        "state": ["WA", "CA", "CA", "CA", "WY"],
        "county": ["King", "Alameda", "Alameda", "Kern", None],
        "city": ["Seattle", "Oakland", "Fremont", "Taft", None],
    }
)
BY = ["state", "county", "city"]
DOMAIN = Domain.from_frame(PLACES, by=BY)  # states CA WA WY; counties Alameda Kern King -
# cities, in order: Fremont Oakland | Taft | Seattle | (Wyoming)


def as_pandas(frame):
    return frame


def as_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def as_lazy(frame):
    return as_polars(frame).lazy()


def as_pyarrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


LIBRARIES = [as_pandas, as_polars, as_lazy, as_pyarrow]


def quote(known):
    """For each level, what is known of each node: a count, or the least it can be in a tuple."""
    return [
        [count if exact else (count,) for exact, count in zip(*level, strict=True)]
        for level in zip(
            (exact.tolist() for exact in known.exact), (least.tolist() for least in known.least), strict=True
        )
    ]


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


@st.composite
def statements(draw, largest=3, max_leaves=5):
    """Draw a tree, and counts and lower bounds for some of its nodes, true or not."""
    tree = draw(trees(max_depth=3, max_leaves=max_leaves))
    exact, least = [], []
    for size in tree.level_sizes:
        kinds = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
        numbers = draw(st.lists(st.integers(0, largest), min_size=size, max_size=size))
        exact.append(np.array(kinds) == 1)
        least.append(np.where(np.isin(kinds, [1, 2]), numbers, 0))
    return tree, exact, least


@st.composite
def true_statements(draw, largest=2, max_leaves=4):
    """Draw a tree, a table on it, and what somebody knows of the table."""
    tree, exact, doubts = draw(statements(largest, max_leaves))
    leaves = draw(st.lists(st.integers(0, largest), min_size=tree.n_leaves, max_size=tree.n_leaves))
    table = tree.roll_up(np.array(leaves))
    least = [
        np.where(fixed, counts, np.minimum(doubt, counts))
        for fixed, doubt, counts in zip(exact, doubts, table, strict=True)
    ]
    return tree, exact, least, table


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


@settings(deadline=None, derandomize=True)
@given(drawn=true_statements())
def test_just_what_is_the_same_in_all_tables_is_known(drawn):
    tree, exact, least, table = drawn
    known = check_against_all_tables(tree, exact, least)
    for fixed, low, most, counts in zip(known.exact, known.least, known.most(tree), table, strict=True):
        assert np.where(fixed, counts == low, counts >= low).all()
        assert (counts <= most).all()
    assert known.levels.tolist() == [bool(fixed.all()) for fixed in known.exact]


@settings(deadline=None, derandomize=True, max_examples=300)
@given(drawn=statements())
def test_contradictions_are_just_what_no_table_agrees_with(drawn):
    tree, exact, least = drawn
    if len(agreeing(tree, exact, least, max(int(low.max()) for low in least))[0]):
        check_against_all_tables(tree, exact, least)
    else:
        with pytest.raises(ArgumentError, match="`known` says that") as caught:
            Known.from_levels(tree, exact, least)
        assert caught.value.argument == "known"


@settings(deadline=None)
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


@settings(deadline=None)
@given(drawn=true_statements(largest=5, max_leaves=30), seed=st.integers(0, 99))
@example(drawn=(Tree.from_branching([1]), [np.array([True])] * 2, [np.array([3])] * 2, [np.array([3])] * 2),
         seed=0)  # fmt: skip
def test_a_frame_says_the_same_as_arrays(drawn, seed):
    tree, exact, least, _ = drawn
    domain = Domain.from_tree(tree)
    rows = []
    for level, (fixed, low) in enumerate(zip(exact, least, strict=True)):
        keys = domain.keys(level) if level else pd.DataFrame(index=[0])
        numbers = {"count": np.where(fixed, low, np.nan), "at_least": np.where(fixed, np.nan, low)}
        rows.append(keys.assign(**numbers))
    frame = pd.concat(rows).sample(frac=1, random_state=seed)
    wanted = quote(Known.from_levels(tree, exact, least))
    assert quote(Known.read(tree, frame)) == wanted
    assert quote(Known.read(domain, frame)) == wanted


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


def test_a_short_path_is_known_all_the_way_down():
    known = Known.read(DOMAIN, {"state": {"WY": 7}})
    assert quote(known) == [
        [(7,)],
        [(0,), (0,), 7],
        [(0,), (0,), (0,), 7],
        [(0,), (0,), (0,), (0,), 7],
    ]
    assert quote(Known.read(DOMAIN, {"city": [np.nan] * 4 + [7]})) == quote(known)


def test_a_known_zero_empties_what_is_below():
    known = Known.read(DOMAIN, {"state": {"CA": 0}})
    assert quote(known)[2:] == [[0, 0, (0,), (0,)], [0, 0, 0, (0,), (0,)]]


STATES = pd.Series([40, 30, 7], index=pd.Index(["CA", "WA", "WY"], name="state"))
COUNTIES = pd.Series(
    [30, 10], index=pd.MultiIndex.from_tuples([("CA", "Alameda"), ("CA", "Kern")], names=BY[:2])
)


@pytest.mark.parametrize(
    "states",
    [
        STATES,
        STATES[::-1],
        STATES.rename_axis(None),
        STATES.astype("Int64"),
        STATES.astype("uint8"),
        STATES.astype(float),
        STATES.astype(object),
        STATES.astype("category"),
        STATES.map(Decimal),
        STATES.set_axis(STATES.index.astype("category")),
        STATES.to_dict(),
        STATES.to_frame("count"),
        STATES.reset_index(name="count"),
        STATES.reset_index(name="at_least").assign(count=[40, 30, 7.0]),
        STATES.to_frame("count").assign(std_error=1.5),
        [40, 30, 7],
        (40, 30, 7),
        np.array([40, 30, 7]),
        np.array([40.0, 30.0, 7.0]),
        np.array([40, 30, 7], dtype=object),
        [np.int64(40), 30.0, Decimal(7)],
    ],
    ids=lambda given: type(given).__name__,
)
def test_counts_of_a_level_in_every_form(states):
    assert quote(Known.read(DOMAIN, {"state": states}))[:2] == [[77], [40, 30, 7]]


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
def test_a_count_that_is_missing_is_unknown(missing):
    for states in ({"CA": 40, "WA": missing}, [40, missing, missing], STATES.astype(object).where(
        STATES == 40, missing)):  # fmt: skip
        assert quote(Known.read(DOMAIN, {"state": states}))[:2] == [[(40,)], [40, (0,), (0,)]]
    assert quote(Known.read(DOMAIN, {"total": missing})) == [[(0,)]] * 4


@pytest.mark.parametrize("total", [77, 77.0, np.int8(77), Decimal(77), [77], pd.Series([77]), np.array([77]),
                                   pd.DataFrame({"count": [77]})], ids=repr)  # fmt: skip
def test_the_total_in_every_form(total):
    assert quote(Known.read(DOMAIN, {"total": total})) == [[77], [(0,)], [(0,)], [(0,)]]
    assert quote(Known.read(DOMAIN.tree, {"total": total})) == [[77], [(0,)], [(0,)], [(0,)]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_level_in_a_frame_of_any_library(library):
    known = Known.read(DOMAIN, {"county": library(COUNTIES.reset_index(name="at_least"))})
    assert quote(known)[2] == [(30,), (10,), (0,), (0,)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_all_levels_in_a_frame_of_any_library(library):
    frame = pd.DataFrame(
        {
            "state": [None, "CA", "WY", "CA", "CA"],
            "county": [None, None, None, "Alameda", "Kern"],
            "count": [77, None, 7, 30, None],
            "at_least": [None, 45, 3, None, None],
        }
    ).astype({"count": "Int64", "at_least": "Int64"})
    known = Known.read(DOMAIN, library(frame))
    assert quote(known)[:3] == [[77], [(45,), (0,), 7], [30, (15,), (0,), 7]]
    assert [level.tolist() for level in known.most(DOMAIN.tree)][1:3] == [[70, 25, 7], [30, 40, 25, 7]]


def test_keys_may_be_a_multiindex_in_any_order():
    wanted = quote(Known.read(DOMAIN, {"county": [30, 10, np.nan, np.nan]}))
    swapped = COUNTIES.swaplevel()
    for counties in (COUNTIES, swapped, COUNTIES.rename_axis([None, None]), COUNTIES.to_dict(),
                     swapped.to_frame("count"), swapped.reset_index(name="count")):  # fmt: skip
        assert quote(Known.read(DOMAIN, {"county": counties})) == wanted
    assert quote(Known.read(DOMAIN, swapped.to_frame("count"))) == wanted


def test_groupby_with_missing_keys_counts_short_paths():
    records = PLACES.loc[[0, 1, 1, 2, 4, 4, 4]]
    for depth in (1, 2, 3):
        counts = records.groupby(BY[:depth], dropna=False).size()
        known = Known.read(DOMAIN, {BY[depth - 1]: counts})
        assert quote(known)[1] == [3 if depth == 1 else (3,), 1, 3]


@pytest.mark.parametrize("dtype", ["int64", "float64", "decimal128(9, 2)"])
def test_counts_may_be_arrow_columns(dtype):
    pyarrow = pytest.importorskip("pyarrow")
    kind = pyarrow.decimal128(9, 2) if "decimal" in dtype else getattr(pyarrow, dtype)()
    values = [Decimal(40), None, Decimal(7)] if "decimal" in dtype else [40, None, 7]
    states = pd.Series(values, index=STATES.index, dtype=pd.ArrowDtype(kind))
    assert quote(Known.read(DOMAIN, {"state": states}))[1] == [40, (0,), 7]
    if dtype != "int64":
        with pytest.raises(ArgumentError, match=r"state='CA' holds .*10\.5.*, which is no count"):
            Known.read(DOMAIN, {"state": states - Decimal("29.5") if "decimal" in dtype else states - 29.5})


def test_a_released_table_is_read_as_it_is():
    records = PLACES.loc[[0, 1, 1, 2, 4, 4, 4]]
    released = dpt.tree_counts(records, BY, epsilon=1e3, domain=PLACES, rng=np.random.default_rng(0))
    known = Known.read(DOMAIN, released)
    assert known.levels.all()
    assert quote(known)[3] == [1, 2, 0, 1, 3]
    by_level = {name: released.dp.level(name) for name in ("total", *BY)}
    assert quote(Known.read(DOMAIN, by_level)) == quote(known)
    rows = {name: released[released["level"] == name] for name in ("total", *BY)}
    assert quote(Known.read(DOMAIN, rows)) == quote(known)


def test_keys_are_the_same_whatever_holds_them():
    domain = Domain.from_frame(pd.DataFrame({"year": [2023, 2024]}), by=["year"])
    for keys in ([2024.0], [Decimal(2024)], pd.array([2024], dtype="Int64")):
        known = Known.read(domain, pd.DataFrame({"year": keys, "count": [3]}))
        assert quote(known)[1] == [(0,), 3]


def test_a_bare_tree_is_keyed_by_place():
    tree = Tree.from_branching([2, 2])
    frame = pd.DataFrame({"level_1": [1, 1], "level_2": [None, 0], "count": [5, 2]})
    assert quote(Known.read(tree, frame)) == [[(5,)], [(0,), 5], [(0,), (0,), 2, 3]]
    assert quote(Known.read(tree, {"level_2": {(1, 0): 2}}))[2] == [(0,), (0,), 2, (0,)]


def test_the_same_thing_may_be_said_twice():
    rows = pd.DataFrame({"state": ["CA", "CA", "WA", "WA"], "count": [4, 4, np.nan, np.nan],
                         "at_least": [np.nan, 3, 5, 6]})  # fmt: skip
    assert quote(Known.read(DOMAIN, rows))[1] == [4, (6,), (0,)]


def test_large_numbers_stay_whole():
    large = 2**55 + 1
    for given_ in (large, [large], pd.Series([large], dtype="Int64"), [Decimal(large)]):
        assert Known.read(DOMAIN, {"total": given_}).least[0].tolist() == [large]


def frame(**columns):
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        # contradictions
        ({"total": 5, "state": {"CA": 4, "WA": 2}}, "the total holds 5, but .* holds at least 6 together"),
        ({"total": 5, "state": [4, 2, 0]}, "the total holds 5, but what is below it holds 6 together"),
        ({"total": 7, "state": [4, 2, 0]}, "the total holds 7, but what is below it holds 6 together"),
        (frame(state=["CA", "CA"], county=[None, "Alameda"], count=[3, None], at_least=[None, 4]),
         "state='CA' holds 3, but what is below it holds at least 4 together"),
        (frame(state=["CA", "WA", "WY", None], count=[1, 1, 1, None], at_least=[None, None, None, 4]),
         "the total holds at least 4, but what is below it holds 3 together"),
        ({"county": {("CA", "Alameda"): 1, ("WA", "King"): 2}, "city": {("CA", "Alameda", "Oakland"): 2,
          ("WA", "King", "Seattle"): 3}}, "state='CA', county='Alameda' holds 1, .* 2 together, and 1 more "
         "contradiction"),
        ({"state": {"WY": 1}, "city": [np.nan] * 4 + [2]}, "state='WY' holds 1, but .* 2 together"),
        ({"state": {"WA": 1}, "county": {("CA", "Kern"): 1}, "city": [np.nan, np.nan, 2, 9, np.nan]},
         "county='Kern' holds 1, .* 2 together, and 1 more contradiction\\."),
        ({"total": 5, "state": {"CA": 1}, "county": {("CA", "Kern"): 9}}, "'CA' holds 1, .* 9 together\\."),
        (frame(state=["CA", "CA"], count=[4, 5]), "gives state='CA' two counts, 4 and 5"),
        (frame(state=["CA", "CA", "CA", "WA", "WA"], count=[4, 5, 3, 0, 1]), "and 2 more contradictions"),
        (frame(state=["CA"], count=[4], at_least=[5]), "says that state='CA' holds 4, but at least 5"),
        # numbers that are no counts
        ({"total": -1}, "the total holds -1, which is no count"),
        ({"total": 0.5}, "the total holds 0.5, which is no count"),
        ({"total": True}, "the total holds True, which is no count"),
        ({"total": "7"}, "the total holds '7', which is no count"),
        ({"total": 1j}, "the total holds 1j, which is no count"),
        ({"total": np.inf}, "the total holds inf, which is no count"),
        ({"total": 2**61 + 1}, "which is no count"),
        ({"total": np.array([2**61 + 2**10])}, "the total holds 2305843009213694976, which is no count"),
        ({"total": np.array([1e30])}, "which is no count"),
        ({"total": Decimal("1.5")}, "which is no count"),
        ({"city": [2**61, 1, 1, 1, 1]}, "'Fremont' holds 2305843009213693952, not a number from 0 to 461168"),
        ({"state": STATES.astype(str)}, "state='CA' holds '40', which is no count"),
        ({"state": STATES > 10}, "state='CA' holds True, which is no count"),
        ({"state": STATES.astype(complex)}, "no count"),
        ({"state": STATES - 20}, "state='WY' holds -13, which is no count"),
        ({"state": STATES / 7}, "state='CA' holds 5.7.*, which is no count"),
        ({"state": [40, 30, []]}, r"state='WY' holds \[\], which is no count"),
        # nodes that there are not
        ({"State": STATES}, r"a level that there is not: 'State'\.\nHint: the levels are \['total', 'state'"),
        ({"state": {"CA": 1, "OR": 2, "NV": 3}}, "does not list: state='OR'; state='NV'"),
        (frame(state=list("abcdef"), count=range(6)), "state='a'; state='b'; state='c'; and 3 more"),
        (frame(state=["CA"], county=["King"], count=[1]), "state='CA', county='King'"),
        (frame(state=[None], county=["King"], count=[1]), "state=None, county='King'|state=nan"),
        (frame(state=["WY"], county=[None], city=["Taft"], count=[1]), "state='WY', county=.*, city='Taft'"),
        (frame(state=[1], count=[1]), "state=1"),
        (frame(state=[object()], count=[1]), "state=an object"),
        ({"county": pd.Series([1], index=pd.MultiIndex.from_tuples([("CA", None)]))}, "list: state='CA'"),
        ({"state": frame(state=["CA"], county=["Kern"], count=[1])}, "list: state='CA', county='Kern'"),
        # other forms
        ({"state": 5}, "cannot be an int"),
        ({"state": [1, 2]}, r"numbers of shape \(3,\), not \(2,\)"),
        ({"total": np.array(5)}, r"numbers of shape \(1,\), not \(\)"),
        ({"county": STATES}, r"a series indexed by \['state', 'county'\], not by \['state'\]"),
        ({"state": STATES.rename_axis("county")}, r"indexed by \['state'\], not by \['county'\]"),
        (STATES, "cannot be a Series"),
        (77, "cannot be an int"),
        ("public", "cannot be a str"),
    ],
)  # fmt: skip
def test_what_cannot_be_known(known, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        Known.read(DOMAIN, known)
    assert caught.value.argument == "known"
    assert "Hint: " in str(caught.value)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (frame(county=["Kern"], count=[1]), "lacks the columns: 'state'"),
        (
            frame(state=["CA"], city=["Taft"], count=[1]),
            r"lacks the columns: 'county'.\nHint: it needs a key with all those above it",
        ),
        ({"county": frame(state=["CA"], count=[1])}, "lacks the columns: 'county'"),
        (frame(count=[1]), "lacks the columns: 'state'"),
        (frame(state=["CA"]), "lacks the columns: 'count', 'at_least'"),
        (frame(state=["CA"], County=["Kern"], count=[1]), "neither keys nor numbers: 'County'"),
        (
            pd.DataFrame([["CA", 1, 2]], columns=["state", "count", "count"]),
            "several columns named: 'count'",
        ),
    ],
)
def test_columns_that_do_not_fit(known, message):
    with pytest.raises(ColumnsError, match=message) as caught:
        Known.read(DOMAIN, known)
    assert caught.value.argument == "known"


def test_nodes_of_a_bare_tree_are_named_by_place():
    with pytest.raises(ArgumentError, match=r"node 1 of level_1 holds 1, but .* at least 2"):
        Known.read(Tree.from_branching([2, 2]), {"level_1": [0, 1], "level_2": [np.nan, np.nan, 2, np.nan]})


FALSE, ZERO = np.array([False]), np.array([0])


@pytest.mark.parametrize(
    ("exact", "least", "message"),
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


def test_what_was_made_for_another_tree():
    known = Known.read(Tree.from_branching([2]), {"level_1": [1, 2]})
    for tree in (Tree.from_branching([3]), Tree.from_branching([2, 2])):
        with pytest.raises(ArgumentError, match="another tree"):
            Known.read(tree, known)


@pytest.mark.parametrize(
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
    with pytest.raises(ArgumentError, match=r"does not say in '(exact|at_least)'") as caught:
        Known.from_dict(Tree.from_branching([2]), data)
    assert caught.value.argument == "data"


@pytest.mark.parametrize(
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


def test_nobody_is_where_nobody_can_be():
    domain = Domain.from_frame(FLAGGED, by=BY, structural_zeros="nobody")
    for known in (None, Known.nothing(domain.tree), {}, {"city": [0, np.nan, 0, np.nan, np.nan]}):
        assert quote(Known.read(domain, known))[2:] == [[(0,), 0, (0,), (0,)], [0, (0,), 0, (0,), (0,)]]
    assert quote(Known.read(domain, {"state": {"CA": 9}}))[3] == [0, 9, 0, (0,), (0,)]


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (
            {"city": {("CA", "Kern", "Taft"): 1}},
            "city='Taft' two counts, .*structural zeros of the domain hold 0",
        ),
        (
            frame(state=["CA"], county=["Kern"], city=["Taft"], at_least=[1]),
            "city='Taft' holds 0, but at least 1",
        ),
        ({"county": {("CA", "Kern"): 1}}, "county='Kern' holds 1, but what is below it holds 0 together"),
    ],
)
def test_nobody_can_be_known_to_be_there(known, message):
    domain = Domain.from_frame(FLAGGED, by=BY, structural_zeros="nobody")
    with pytest.raises(ArgumentError, match=rf"(?s){message}"):
        Known.read(domain, known)
