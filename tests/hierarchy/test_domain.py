"""Public domains: names and labels on a tree."""

import datetime
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, ColumnsError, DomainError
from pandas_dptree.hierarchy.domain import Domain, fingerprint, level_names
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes, positions
from pandas_dptree.ingest.contributions import leaf_totals
from tests.helpers_cases import each
from tests.strategies import ODD_VALUES, domains_and_rows, frame_of, names, objects, paths, zoo

PLACES = pd.DataFrame(
    {"zip": [1, 2, 3, 4], "state": ["WA", "CA", "CA", "WY"], "city": ["Seattle", "Oakland", "Fresno", None]}
)


def test_a_domain_is_sorted_as_groupby_sorts():
    domain = Domain.from_frame(PLACES, by=["state", "city"])
    full = PLACES.dropna()
    expected = full.groupby(["state", "city"]).size().index
    pd.testing.assert_index_equal(pd.MultiIndex.from_frame(domain.keys(2)), expected)
    assert domain.keys(1)["state"].tolist() == ["CA", "WA", "WY"]
    assert level_names(domain) == ("total", "state", "city")
    assert repr(domain) == "Domain(by=('state', 'city'), level_sizes=(1, 3, 4))"


@given(leaves=paths())
def test_each_leaf_finds_itself(leaves):
    by = names(len(leaves[0]))
    domain = Domain.from_frame(frame_of(leaves, by), by=by)
    assert domain.tree.n_leaves == len(leaves)
    found = domain.find_leaves(domain.path_codes(domain.tree.depth))
    assert found.tolist() == list(range(len(leaves)))


@given(drawn=domains_and_rows())
def test_observed_keys_are_the_complete_paths_of_the_records(drawn):
    _, rows = drawn
    by = list(rows.columns)
    wanted = set()
    for row in rows.itertuples(index=False, name=None):
        keys = [key for key in row if key is not None]
        if keys and list(row[: len(keys)]) == keys:
            wanted.add(row)
    wanted = {
        path
        for path in wanted
        if not any(
            other != path and all(a in (None, b) for a, b in zip(path, other, strict=True))
            for other in wanted
        )
    }
    if not wanted:
        with pytest.raises(DomainError, match="no leaves"):
            Domain.observed(rows, by=by)
        return
    domain = Domain.observed(rows, by=by)
    leaves = domain.path_codes(domain.tree.depth)
    listed = {
        tuple(None if code < 0 else label[code] for label, code in zip(domain.labels, leaf, strict=True))
        for leaf in zip(*leaves, strict=True)
    }
    assert listed == wanted


def test_a_multiindex_or_an_index_is_a_domain():
    index = pd.MultiIndex.from_frame(PLACES[["state", "city"]].dropna())
    assert Domain.from_frame(index, by=["state", "city"]).tree.n_leaves == 3
    assert Domain.from_frame(pd.Index([3, 1, 2], name="id"), by=["id"]).keys(1)["id"].tolist() == [1, 2, 3]


def test_frames_of_other_libraries_are_domains():
    polars = pytest.importorskip("polars")
    places = PLACES[["state", "city"]]
    domain = Domain.from_frame(polars.from_pandas(places), by=["state", "city"])
    assert domain.tree.level_sizes == Domain.from_frame(places, by=["state", "city"]).tree.level_sizes


def test_categories_make_the_product():
    keys = pd.DataFrame({"a": pd.Categorical([], ["x", "y"]), "b": pd.Categorical([], [3, 1, 2])})
    domain = Domain.from_categories(keys, by=["a", "b"])
    assert domain.tree.is_uniform
    assert domain.keys(2)["b"].tolist() == [3, 1, 2, 3, 1, 2]  # in the order of the categories


def test_ten_levels_and_one():
    deep = pd.DataFrame({f"k{i}": [0, 1] for i in range(10)})
    assert Domain.from_frame(deep, by=list(deep)).tree.level_sizes == (1, *[2] * 10)
    assert Domain.from_frame(deep, by=["k0"]).tree.level_sizes == (1, 2)


def test_labels_that_have_no_order_stay_in_order_of_appearance():
    day = datetime.date(2024, 2, 29)
    odd = pd.DataFrame({"k": objects([day, "b", 1])})
    assert set(Domain.from_frame(odd, by=["k"]).keys(1)["k"]) == {day, "b", 1}


@each("odd", [Decimal("0.1"), Fraction(1, 3), uuid.UUID(int=1), b"a", (1, "a"), datetime.time(9), object()])
def test_types_that_nobody_publishes_are_no_keys(odd):
    """They are refused as keys; as values of records they equal none, and change nothing."""
    message = rf"a key \('k' holds an? {type(odd).__name__}\): 'k'.\n?.*turn them into text"
    keys = objects(["a", odd])
    with pytest.raises(ColumnsError, match=message):
        Domain.from_frame(pd.DataFrame({"k": keys}), by=["k"])
    with pytest.raises(ColumnsError, match=message):
        Domain.from_categories(pd.DataFrame({"k": pd.Categorical([], keys)}), by=["k"])
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    with pytest.raises(ColumnsError, match=f"`known`.*{message}"):
        dpt.plan(domain, epsilon=1.0, known=pd.DataFrame({"k": keys, "count": 1}))
    [counts] = leaf_totals(pd.DataFrame({"k": keys}), domain)
    assert counts.tolist() == [1]
    assert Domain.observed(pd.DataFrame({"k": keys}), by=["k"]).keys(1)["k"].tolist() == ["a"]


def test_a_bare_tree_is_numbered():
    domain = Domain.from_tree(Tree.from_paths([[0, 0], [0, 1], [1, -1]]))
    assert domain.by == ("level_1", "level_2")
    assert domain.keys(2).to_numpy().tolist() == [[0, 0], [0, 1]]


def test_places_with_the_same_name_are_distinguished_by_their_path():
    domain = Domain.from_frame(
        pd.DataFrame({"state": ["CA", "WA"], "city": ["Springfield", "Springfield"]}), by=["state", "city"]
    )
    assert domain.find_leaves([np.array([0, 1, 1]), np.array([0, 0, -1])]).tolist() == [0, 1, -1]


@each(
    "places, by, error, message",
    [
        (PLACES.iloc[:0], ["state"], DomainError, "no leaves"),
        (PLACES, ["state"], DomainError, "same leaf more than once"),
        (pd.concat([PLACES, PLACES.assign(city=None)[:1]]), ["state", "city"], DomainError, "inner node"),
        (PLACES.assign(state=None), ["state", "city"], DomainError, "without its first key"),
        (
            PLACES,
            ["city", "zip", "state"],
            DomainError,
            r"without its first key\.\nHint: check that `by` goes from coarse to fine; if it does, drop",
        ),
        (PLACES, ["state", "city", "zip"], DomainError, "gap"),
        (
            PLACES,
            ["State", "City"],
            ColumnsError,
            r"'State', 'City'\.\nHint: did you mean 'state' for 'State' and 'city' for 'City'\?$",
        ),
        (
            PLACES,
            ["province"],
            ColumnsError,
            r"'province'\.\nHint: .* has \['zip', 'state', 'city'\]",
        ),
        (PLACES, ["state", "state"], ColumnsError, "twice: 'state'"),
        (PLACES.rename(columns={"city": "count"}), ["state", "count"], ColumnsError, "'count'"),
        (PLACES.rename(columns={"state": "total"}), ["total"], ColumnsError, "'total'"),
        (PLACES, "state", DomainError, "same leaf more than once"),
        (PLACES, [], ArgumentError, "names no column"),
        (PLACES.set_axis(["state", "state", "city"], axis=1), ["state"], ColumnsError, "several columns"),
        (pd.DataFrame({"k": [[1], [2]]}), ["k"], ColumnsError, r"cannot be a key \('k' holds a list\): 'k'"),
        (
            pd.DataFrame({"k": [datetime.date(2024, 1, 1), pd.Timestamp("2024-01-01")]}),
            ["k"],
            DomainError,
            "more than once",
        ),
        (PLACES, [["state"]], ColumnsError, "cannot name a column"),
        (PLACES, None, ArgumentError, "must be a list of column names"),
        (PLACES["state"].to_xarray(), ["state"], DomainError, "not a DataArray"),
        (
            PLACES.set_axis(pd.MultiIndex.from_product([["a"], list("xyz")]), axis=1),
            ["a"],
            ColumnsError,
            "'a'",
        ),
        ([("WA", "Seattle")], ["state", "city"], DomainError, "not a list"),
        (
            ["CA"],
            ["state", "city"],
            DomainError,
            r"list\.\nHint: .*for example pd\.DataFrame\({'state': \[\.\.\.\], 'city': \[\.\.\.\]}\)\.$",
        ),
        ({"state": ["CA"]}, ["state"], DomainError, "not a dict.*\nHint: .*pd.DataFrame"),
        (np.array([["CA"]]), ["state"], DomainError, "not an ndarray.*\nHint: .*pd.DataFrame"),
        (pd.Series(["CA"], name="city"), ["state"], ColumnsError, r"'state'\.\nHint: .* has \['city'\]"),
        (
            "observed",
            ["state"],
            DomainError,
            r"must be a table that can be read, not a str\.\nHint: pass a frame or a",
        ),
    ],
)
def test_bad_domains(places, by, error, message):
    with pytest.raises(error, match=message) as caught:
        Domain.from_frame(places, by=by)
    assert "Hint: " in str(caught.value)


def test_categories_need_categories():
    with pytest.raises(ColumnsError, match="not categorical: 'state', 'city'"):
        Domain.from_categories(PLACES, by=["state", "city"])
    with pytest.raises(DomainError, match="no leaves"):
        Domain.from_categories(pd.DataFrame({"a": pd.Categorical([])}), by=["a"])


def test_a_product_of_categories_that_is_too_large_is_refused():
    wide = pd.DataFrame({name: pd.Categorical([], range(1000)) for name in "abc"})
    with pytest.raises(DomainError, match="1,000,000,000 leaves"):
        Domain.from_categories(wide, by=list("abc"))


def test_nothing_of_the_records_keys_is_left_over_for_observed():
    with pytest.raises(DomainError, match="no leaves"):
        Domain.observed(pd.DataFrame({"a": [None], "b": ["x"]}), by=["a", "b"])


@settings(derandomize=True)
@given(rows=st.lists(st.tuples(zoo(), zoo()), max_size=6))
def test_observed_keys_may_be_anything(rows):
    keys = pd.DataFrame({"a": objects([one for one, _ in rows]), "b": objects([two for _, two in rows])})
    (one, first), (two, second) = (canonical_codes(keys[name]) for name in "ab")
    known = [
        (first[i], second[j] if j >= 0 else None)
        for i, j in zip(one, two, strict=True)
        if i >= 0 and first[i] != UNKNOWN and (j < 0 or second[j] != UNKNOWN)
    ]
    wanted = {path for path in known if path[1] is not None or sum(path[0] == a for a, _ in set(known)) == 1}
    if not wanted:
        with pytest.raises(DomainError, match="no leaves"):
            Domain.observed(keys, by=["a", "b"])
        return
    domain = Domain.observed(keys, by=["a", "b"])
    a, b = domain.path_codes(2)
    assert wanted == {
        (domain.forms[0][i], None if j < 0 else domain.forms[1][j]) for i, j in zip(a, b, strict=True)
    }
    assert fingerprint(domain) == fingerprint(Domain.observed(keys[::-1], by=["a", "b"]))


def test_all_odd_values_at_once_are_observed():
    keys = pd.DataFrame({"a": objects(ODD_VALUES)})
    domain = Domain.observed(keys, by=["a"])
    assert UNKNOWN not in domain.forms[0]
    assert domain.tree.n_leaves == len({form for form in canonical_codes(keys["a"])[1]} - {UNKNOWN})


def test_the_type_of_a_number_does_not_change_the_fingerprint():
    held = [objects([1, 2]), objects([np.int64(1), np.int64(2)]), pd.Series([1, 2], dtype="int8"),
            pd.Series([1.0, 2.0]), objects([1, 2.0]), pd.Series([1, 2], dtype="Int64"), pd.Series([1, 2],
            dtype="uint64")]  # fmt: skip
    assert len({fingerprint(Domain.from_frame(column.to_frame("k"), by=["k"])) for column in held}) == 1


@each(
    "categories, message",
    [
        ([datetime.date(2024, 2, 29), pd.Timestamp("2024-02-29")], "the same key in the columns: 'a'"),
        ([1j, "x"], r"cannot be a key \('a' holds a complex\): 'a'"),
        ([frozenset(), frozenset({1})], "holds a frozenset"),
    ],
)
def test_categories_must_be_keys(categories, message):
    keys = pd.DataFrame({"a": pd.Categorical([], pd.Index(categories, dtype=object))})
    with pytest.raises(ColumnsError, match=message):
        Domain.from_categories(keys, by=["a"])


@pytest.mark.parametrize("arrow", [False, True])
def test_a_category_that_does_not_occur_is_never_shown(arrow):
    column = pd.Series(pd.Categorical(["x", "y"], categories=["y", "secret-value", "x"]))
    if arrow:
        pyarrow = pytest.importorskip("pyarrow")
        held = pyarrow.DictionaryArray.from_arrays(pyarrow.array([2, 0]), ["y", "secret-value", "x"])
        column = pd.Series(pd.arrays.ArrowExtensionArray(pyarrow.chunked_array([held])))
    keys = column.to_frame("k")
    for domain in ("observed", keys):
        counts = keys.dp.tree_counts(["k"], epsilon=1.0, domain=domain)
        assert set(counts["k"].dropna()) == {"x", "y"}
        if arrow:
            assert "dictionary" not in str(counts["k"].dtype)
        else:
            assert list(counts["k"].cat.categories) == ["y", "x"]


FLAGGED = PLACES.assign(nobody=[False, False, True, False])  # Fresno


def test_structural_zeros_are_listed_and_empty():
    domain = Domain.from_frame(FLAGGED, by=["state", "city"], structural_zeros="nobody")
    assert domain.keys(2).iloc[domain.structural_zeros].to_numpy().tolist() == [["CA", "Fresno"]]
    assert domain.tree.level_sizes == Domain.from_frame(PLACES, by=["state", "city"]).tree.level_sizes
    paths = domain.path_codes(2)
    assert domain.find_nodes(paths).tolist() == [0, 1, 2, 3]
    assert domain.find_leaves(paths).tolist() == [-1, 1, 2, 3]
    assert leaf_totals(FLAGGED, domain)[0].tolist() == [0, 1, 1, 1]


def test_a_short_path_may_be_impossible():
    places = PLACES.assign(nobody=PLACES["city"].isna())
    domain = Domain.from_frame(places, by=["state", "city"], structural_zeros="nobody")
    assert domain.structural_zeros.tolist() == [3]
    assert leaf_totals(places, domain)[0].tolist() == [1, 1, 1, 0]


@given(leaves=paths(), data=st.data())
def test_flags_follow_their_leaves(leaves, data):
    flags = data.draw(st.lists(st.booleans(), min_size=len(leaves), max_size=len(leaves)))
    by = names(len(leaves[0]))
    places = frame_of(leaves, by).assign(nobody=flags)
    domain = Domain.from_frame(places, by=by, structural_zeros="nobody")
    plain = Domain.from_frame(places, by=by)
    codes = [
        np.append(positions(keys, forms), -1)[code]
        for (code, keys), forms in zip((canonical_codes(places[key]) for key in by), plain.forms, strict=True)
    ]
    places_of_rows = plain.find_leaves(codes)
    assert domain.structural_zeros.tolist() == sorted(places_of_rows[flags].tolist())
    assert domain.find_leaves(codes).tolist() == np.where(flags, -1, places_of_rows).tolist()


def test_nodes_are_found_on_every_level():
    domain = Domain.from_frame(PLACES, by=["state", "city"])
    for level in (1, 2):
        found = domain.find_nodes(domain.path_codes(level))
        assert found.tolist() == list(range(domain.tree.level_sizes[level]))
    assert domain.find_nodes([np.array([2, 0, -1, -2])]).tolist() == [2, 0, -1, -1]


def test_what_is_impossible_is_in_the_fingerprint():
    by = ["state", "city"]
    none = FLAGGED.assign(nobody=False)
    prints = [
        fingerprint(Domain.from_frame(PLACES, by=by)),
        fingerprint(Domain.from_frame(none, by=by, structural_zeros="nobody")),
        fingerprint(Domain.from_frame(FLAGGED, by=by, structural_zeros="nobody")),
        fingerprint(Domain.from_frame(FLAGGED[::-1], by=by, structural_zeros="nobody")),
        fingerprint(
            Domain.from_frame(FLAGGED.assign(nobody=~FLAGGED["nobody"]), by=by, structural_zeros="nobody")
        ),
    ]
    # Plans that were written down hold the first.
    assert prints[0] == "4a4c8590abd51efad2c4ab9aca738ec45096f7cae962f9c62017dedfe9279952"
    assert prints[0] == prints[1]
    assert prints[2] == prints[3]
    assert len(set(prints)) == 3


@each("dtype", ["bool", "boolean", "object", "category", "bool[pyarrow]", "polars", "arrow"])
def test_flags_of_every_type(dtype):
    if dtype in ("polars", "arrow", "bool[pyarrow]"):
        pytest.importorskip("pyarrow")
    if dtype == "polars":
        places = pytest.importorskip("polars").from_pandas(FLAGGED)
    elif dtype == "arrow":
        places = pytest.importorskip("pyarrow").Table.from_pandas(FLAGGED)
    else:
        places = FLAGGED.astype({"nobody": dtype})
    assert Domain.from_frame(
        places, by=["state", "city"], structural_zeros="nobody"
    ).structural_zeros.tolist() == [0]


@each(
    "flags, column, message",
    [
        ([False, None, True, False], "nobody", "must be true or false in every row of the column: 'nobody'"),
        ([0, 0, 1, 0], "nobody", "must be true or false in every row of the column: 'nobody'"),
        (["no", "no", "yes", "no"], "nobody", "must be true or false"),
        ([object()] * 4, "nobody", "must be true or false"),
        ([False] * 4, "nowhere", "lacks the columns: 'nowhere'"),
        ([False] * 4, ("nobody",), r"lacks the columns: \('nobody',\)"),
    ],
)
def test_flags_must_be_true_or_false(flags, column, message):
    with pytest.raises(ColumnsError, match=message):
        Domain.from_frame(PLACES.assign(nobody=flags), by=["state", "city"], structural_zeros=column)


def test_flags_are_named_not_passed():
    with pytest.raises(ArgumentError, match="must name a column, not be a Series") as caught:
        Domain.from_frame(PLACES, by=["state", "city"], structural_zeros=FLAGGED["nobody"])
    assert caught.value.argument == "structural_zeros"


def test_public_keys_may_have_any_encoding():
    pyarrow = pytest.importorskip("pyarrow")
    chunks = [pyarrow.array(chunk).dictionary_encode() for chunk in (["b", "a"], ["c", "a"])]
    views = pyarrow.array(["b", "a", "c", "a"], type=pyarrow.string_view())
    plain = Domain.from_frame(pd.DataFrame({"k": ["b", "a", "c"]}), by=["k"])
    for column in (pyarrow.chunked_array(chunks), pyarrow.chunked_array([views])):
        held = pd.Series(pd.arrays.ArrowExtensionArray(column[:3]))
        sparse = pd.Series(["b", "a", "c"], dtype=object).astype("Sparse[object]")
        for places in (
            pyarrow.table({"k": column[:3]}),
            pd.DataFrame({"k": held}),
            pd.DataFrame({"k": sparse}),
        ):
            domain = Domain.from_frame(places, by=["k"])
            assert domain.forms == plain.forms and domain.labels[0].tolist() == ["a", "b", "c"]
        with pytest.raises(DomainError):
            Domain.from_frame(pyarrow.table({"k": column}), by=["k"])


def test_a_series_is_the_domain_of_the_key_that_it_is_named_by():
    domain = Domain.from_frame(pd.Series(["WA", "CA"], name="state"), by=["state"])
    assert fingerprint(domain) == fingerprint(
        Domain.from_frame(pd.DataFrame({"state": ["CA", "WA"]}), by=["state"])
    )
    with pytest.raises(ColumnsError, match="lacks the columns: 'city'"):
        Domain.from_frame(pd.Series(["WA"], name="state"), by=["state", "city"])


@each("name", ["level", "count", "std_error", "lower", "upper", "measurement", "total"])
def test_keys_may_not_be_named_as_the_table_names_its_columns(name):
    with pytest.raises(dpt.ColumnsError, match="has names that the released table uses itself"):
        dpt.Domain.from_frame(pd.DataFrame({name: ["a", "b"]}), by=[name])
