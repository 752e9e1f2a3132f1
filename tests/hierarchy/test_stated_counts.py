"""Known counts, read from any form: levels, totals and frames of any library."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_cases import each
from tests.helpers_known_counts import PLACES, frame, quote, true_statements

BY = ["state", "county", "city"]
DOMAIN = Domain.from_frame(PLACES, by=BY)  # states CA WA WY; counties Alameda Kern King -


def as_pandas(frame):
    return frame


def as_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def as_lazy(frame):
    return as_polars(frame).lazy()


def as_pyarrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


LIBRARIES = [as_pandas, as_polars, as_lazy, as_pyarrow]


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


@each(
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
)
def test_counts_of_a_level_in_every_form(states):
    assert quote(Known.read(DOMAIN, {"state": states}))[:2] == [[77], [40, 30, 7]]


@each("missing", [np.nan, None, pd.NA])
def test_a_count_that_is_missing_is_unknown(missing):
    for states in ({"CA": 40, "WA": missing}, [40, missing, missing], STATES.astype(object).where(
        STATES == 40, missing)):  # fmt: skip
        assert quote(Known.read(DOMAIN, {"state": states}))[:2] == [[(40,)], [40, (0,), (0,)]]
    assert quote(Known.read(DOMAIN, {"total": missing})) == [[(0,)]] * 4


@each(
    "total",
    [
        77,
        77.0,
        np.int8(77),
        Decimal(77),
        [77],
        pd.Series([77]),
        np.array([77]),
        pd.DataFrame({"count": [77]}),
    ],
)
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
        with pytest.raises(ArgumentError, match=r"state='CA' holds .*10\.5.*, which is not a count"):
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
    for keys in ([2024.0], pd.array([2024], dtype="Int64")):
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


@each(
    "known, message",
    [
        # contradictions
        ({"total": 5, "state": {"CA": 4, "WA": 2}}, "the total holds 5, but .* together hold at least 6"),
        ({"total": 5, "state": [4, 2, 0]}, "the total holds 5, but its children together hold 6"),
        ({"total": 7, "state": [4, 2, 0]}, "the total holds 7, but its children together hold 6"),
        (frame(state=["CA", "CA"], county=[None, "Alameda"], count=[3, None], at_least=[None, 4]),
         "state='CA' holds 3, but its children together hold at least 4"),
        (frame(state=["CA", "WA", "WY", None], count=[1, 1, 1, None], at_least=[None, None, None, 4]),
         "the total holds at least 4, but its children together hold 3"),
        ({"county": {("CA", "Alameda"): 1, ("WA", "King"): 2}, "city": {("CA", "Alameda", "Oakland"): 2,
          ("WA", "King", "Seattle"): 3}}, "state='CA', county='Alameda' holds 1, .* hold .*2, and 1 more "
         "contradiction"),
        ({"state": {"WY": 1}, "city": [np.nan] * 4 + [2]}, "state='WY' holds 1, but .* together hold 2"),
        ({"state": {"WA": 1}, "county": {("CA", "Kern"): 1}, "city": [np.nan, np.nan, 2, 9, np.nan]},
         "county='Kern' holds 1, .* together hold .*2, and 1 more contradiction\\."),
        ({"total": 5, "state": {"CA": 1}, "county": {("CA", "Kern"): 9}}, "'CA' holds 1, .* at least 9\\."),
        (frame(state=["CA", "CA"], count=[4, 5]), "gives state='CA' two counts, 4 and 5"),
        (frame(state=["CA", "CA", "CA", "WA", "WA"], count=[4, 5, 3, 0, 1]), "and 2 more contradictions"),
        (frame(state=["CA"], count=[4], at_least=[5]), "says that state='CA' holds 4, and at least 5"),
        # numbers that are no counts
        ({"total": -1}, "the total holds -1, which is not a count"),
        ({"total": 0.5}, "the total holds 0.5, which is not a count"),
        ({"total": True}, "the total holds True, which is not a count"),
        ({"total": "7"}, "the total holds '7', which is not a count"),
        ({"total": 1j}, "the total holds 1j, which is not a count"),
        ({"total": np.inf}, "the total holds inf, which is not a count"),
        ({"total": 2**61 + 1}, "which is not a count"),
        ({"total": np.array([2**61 + 2**10])}, "the total holds 2305843009213694976, which is not a count"),
        ({"total": np.array([1e30])}, "which is not a count"),
        ({"total": Decimal("1.5")}, "which is not a count"),
        ({"city": [2**61, 1, 1, 1, 1]}, "'Fremont' holds 2305843009213693952, not a number from 0 to 461168"),
        ({"state": STATES.astype(str)}, "state='CA' holds '40', which is not a count"),
        ({"state": STATES > 10}, "state='CA' holds True, which is not a count"),
        ({"state": STATES.astype(complex)}, "not a count"),
        ({"state": STATES - 20}, "state='WY' holds -13, which is not a count"),
        ({"state": STATES / 7}, "state='CA' holds 5.7.*, which is not a count"),
        ({"state": [40, 30, []]}, r"state='WY' holds \[\], which is not a count"),
        # nodes that there are not
        ({"State": STATES}, r"an unknown level: 'State'\.\nHint: the levels are \['total', 'state'"),
        ({"state": {"CA": 1, "OR": 2, "NV": 3}}, "does not list: state='OR'; state='NV'"),
        (frame(state=list("abcdef"), count=range(6)), "state='a'; state='b'; state='c'; and 3 more"),
        (frame(state=["CA"], county=["King"], count=[1]), "state='CA', county='King'"),
        (frame(state=[None], county=["King"], count=[1]), "state=None, county='King'|state=nan"),
        (frame(state=["WY"], county=[None], city=["Taft"], count=[1]), "state='WY', county=.*, city='Taft'"),
        (frame(state=[1], count=[1]), "state=1"),
        (frame(state=[object()], count=[1]), "holds an object"),
        ({"county": pd.Series([1], index=pd.MultiIndex.from_tuples([("CA", None)]))}, "list: state='CA'"),
        ({"state": frame(state=["CA"], county=["Kern"], count=[1])}, "list: state='CA', county='Kern'"),
        # other forms
        ({"state": 5}, "not an int"),
        ({"state": [1, 2]}, r"numbers of shape \(3,\), not \(2,\)"),
        ({"total": np.array(5)}, r"numbers of shape \(1,\), not \(\)"),
        ({"county": STATES}, r"a series indexed by \['state', 'county'\], not by \['state'\]"),
        ({"state": STATES.rename_axis("county")}, r"indexed by \['state'\], not by \['county'\]"),
        (STATES, "not a Series"),
        (77, "not an int"),
        ("public", "not a str"),
    ],
)  # fmt: skip
def test_what_cannot_be_known(known, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        Known.read(DOMAIN, known)
    assert caught.value.argument == "known"
    assert "Hint: " in str(caught.value)


@each(
    "known, message",
    [
        (frame(county=["Kern"], count=[1]), "lacks the columns: 'state'"),
        (
            frame(state=["CA"], city=["Taft"], count=[1]),
            r"lacks the columns: 'county'.\nHint: it needs each key with all coarser ones",
        ),
        ({"county": frame(state=["CA"], count=[1])}, "lacks the columns: 'county'"),
        (frame(count=[1]), "lacks the columns: 'state'"),
        (frame(state=["CA"]), "lacks the columns: 'count', 'at_least'"),
        (frame(state=["CA"], County=["Kern"], count=[1]), "columns of unknown meaning: 'County'"),
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


def test_what_was_made_for_another_tree():
    known = Known.read(Tree.from_branching([2]), {"level_1": [1, 2]})
    for tree in (Tree.from_branching([3]), Tree.from_branching([2, 2])):
        with pytest.raises(ArgumentError, match="another tree"):
            Known.read(tree, known)
