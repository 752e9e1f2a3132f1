"""Which keys are the same key."""

import datetime
import itertools
import uuid
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.hierarchy import columns as columns_module
from pandas_dptree.hierarchy.columns import kind_of
from pandas_dptree.hierarchy.lookup import Lookup
from pandas_dptree.hierarchy.values import (
    UNKNOWN,
    canonical_codes,
    located,
    positions,
    sort_key,
)
from pandas_dptree.ingest.units import units_of
from tests.helpers_cases import each
from tests.strategies import (
    DEEP,
    ODD_VALUES,
    Flatterer,
    Hostile,
    HostileText,
    Number,
    Shade,
    Word,
    objects,
    zoo,
)


def form(value):
    """Give the canonical form of a value that stands alone; None if it is missing."""
    codes, keys = canonical_codes(objects([value]))
    assert (codes.tolist(), len(keys)) in [([0], 1), ([-1], 0)]
    return keys[0] if keys else None


FORMS = [form(value) for value in ODD_VALUES]


@pytest.mark.parametrize("sort", [False, True])
@settings(derandomize=True)
@given(values=st.lists(zoo(), max_size=8))
def test_the_form_of_a_value_depends_on_that_value_alone(sort, values):
    codes, keys = canonical_codes(objects(values), sort=sort)
    assert len(set(keys)) == len(keys)
    found = [None if code < 0 else keys[code] for code in codes]
    assert found == [form(value) for value in values]
    backwards, same = canonical_codes(objects(values[::-1]), sort=sort)
    assert [None if code < 0 else same[code] for code in backwards[::-1]] == found
    if sort:
        assert same == keys  # their order does not depend on that of the rows


def test_no_pair_of_odd_values_changes_either():
    for (i, one), (j, other) in itertools.combinations(enumerate(ODD_VALUES), 2):
        codes, keys = canonical_codes(objects([one, other]))
        assert [None if code < 0 else keys[code] for code in codes] == [FORMS[i], FORMS[j]]


def test_on_forms_equality_is_an_equivalence():
    present = [known for known in FORMS if known is not None]
    equal = np.array([[one == other for other in present] for one in present])
    assert equal.diagonal().all() and (equal == equal.T).all()
    assert ((equal.astype(int) @ equal > 0) == equal).all()  # transitive
    hashes = np.array([hash(known) for known in present])
    assert (hashes[:, None] == hashes)[equal].all()


@settings(derandomize=True)
@given(values=st.lists(zoo(), max_size=8))
def test_forms_have_one_order(values):
    known = [form(value) for value in values] + FORMS[:: len(FORMS) // 12]
    known = [one for one in known if one is not None]
    keys = [sort_key(one) for one in known]
    for (one, here), (other, there) in itertools.product(zip(known, keys, strict=True), repeat=2):
        assert (here < there) + (there < here) + (one == other) == 1
    assert sorted(keys) == sorted(keys[::-1])


@each(
    "same",
    [
        [1, 1.0, np.int8(1), np.float32(1), Number.ONE],
        [True, np.True_],
        [0, 0.0, -0.0],
        [0.5, np.float16(0.5)],
        [float("inf"), np.float32("inf")],
        ["a", np.str_("a"), Word.A],
        [datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29), pd.Timestamp("2024-02-29"),
         np.datetime64("2024-02-29"), np.datetime64("2024-02-29", "ns")],
        [np.datetime64("2024-02-29", "W"), np.datetime64("2024-02-29", "W").astype("M8[D]")],
        [datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC), pd.Timestamp("2024-02-29 09:00",
        tz="Asia/Tokyo")],
        [datetime.timedelta(days=7), pd.Timedelta(days=7), np.timedelta64(1, "W")],
        [datetime.datetime(1970, 1, 1, 0, 0, 50), np.datetime64(50, "s"), np.datetime64(5, "10s"),
         np.datetime64(2, "25s")],
        [datetime.timedelta(hours=-42), np.timedelta64(-6, "7h"), np.timedelta64(-3, "14h")],
        [datetime.date(1990, 1, 1), np.datetime64(2, "10Y"), np.datetime64(20, "12M")],
        [pd.Interval(0, 1), pd.Interval(0.0, 1.0)],
        [None, np.nan, pd.NaT, pd.NA, Decimal("NaN"), Decimal("sNaN"), np.datetime64("NaT", "D")],
    ],
)  # fmt: skip
def test_what_is_the_same_key(same):
    assert {form(value) for value in same} == {form(same[0])} != {UNKNOWN}


@each(
    "different",
    [
        [1, True, "1", np.timedelta64(1, "ns"), np.datetime64(1, "ns"), None],
        [2**53, 2**53 + 1],
        [0.1, np.float32(0.1)],
        ["", " ", None, "None", "nan"],
        ["é", "e\u0301"],
        [pd.Timestamp("2024-02-29"), pd.Timestamp("2024-02-29", tz="UTC"), "2024-02-29",
        pd.Period("2024-02-29")],
        [pd.Interval(0, 1), pd.Interval(0, 1, closed="both"), 0.5],
        [Flatterer("b"), "a"],
        [datetime.datetime.max.replace(tzinfo=datetime.UTC),
         datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-5)))],
    ],
)  # fmt: skip
def test_what_is_another_key(different):
    known = [form(value) for value in different]
    assert len(set(known)) == len(known) and UNKNOWN not in known


@each(
    "value",
    [[], {}, {1}, object(), Hostile(), 1j, Shade.DARK, (), (1,), DEEP, np.array([1]), 10**5000, Decimal(1),
     Decimal("0.1"), Decimal("Infinity"), Fraction(1, 2), b"1", uuid.UUID(int=1), datetime.time(9),
     np.array([1]).view("m8")[0], np.timedelta64(1, "Y"), np.timedelta64(2**62, "W"),
     np.datetime64(2**62, "25s"), pd.Interval(0, 10**5000)],
)  # fmt: skip
def test_what_is_no_key(value):
    assert form(value) == UNKNOWN


def test_text_that_cannot_be_hashed_is_its_text():
    assert form(HostileText("a")) == "a"


def test_sorting_is_that_of_groupby():
    codes, keys = canonical_codes(objects(["b", 2, None, "a", 1.5]), sort=True)
    assert keys == [1.5, 2, "a", "b"] and codes.tolist() == [3, 1, -1, 2, 0]
    listed = pd.Series(pd.Categorical(["x", None, "y"], categories=["y", "x", "z"]))
    codes, keys = canonical_codes(listed, sort=True)
    assert keys == ["y", "x", "z"] and codes.tolist() == [1, -1, 0]


TYPED = {
    "int64": [3, 1, -(2**63), 2**63 - 1],
    "uint64": [2**64 - 1, 0],
    "Int64": [2**53 + 1, None, 2**53],
    "float64": [0.1, -0.0, 0.0, np.nan, np.inf],
    "float32": [0.1, np.nan],
    "Float64": [0.1, None],
    "bool": [True, False],
    "boolean": [True, None],
    "str": ["a", None, ""],
    "string": ["a", None, ""],
    "datetime64[s]": [np.datetime64(2**61, "s"), None, np.datetime64(0, "s")],
    "datetime64[ns]": [pd.Timestamp.max, pd.NaT, pd.Timestamp(1)],
    "datetime64[ns, Asia/Tokyo]": [pd.Timestamp(1, tz="UTC"), pd.NaT],
    "timedelta64[s]": np.array([2**61, "NaT"], dtype="m8[s]"),
    "timedelta64[ns]": [pd.Timedelta.max, pd.Timedelta.min],
    "period[M]": [pd.Period("2024-02", "M"), pd.NaT],
    "interval[float64]": [pd.Interval(0.0, 1.0), np.nan],
    "complex128": [1j, 2j],
    "category": ["b", "a", None],
    "Sparse[float]": [0.5, np.nan],
}


@each("sort", [False, True])
@each("dtype", TYPED)
def test_a_typed_column_holds_the_same_keys_as_its_values(dtype, sort):
    column = pd.Series(TYPED[dtype], dtype=dtype)
    for part in (column, column[::-1], column[:1], column[:0]):
        codes, keys = canonical_codes(part, sort=sort)
        found = [None if code < 0 else keys[code] for code in codes]
        assert found == [form(value) for value in part.astype(object)]
        assert kind_of(column.dtype) == kind_of(part.dtype)


def test_times_and_durations_beyond_those_of_pandas_are_exact():
    for kind, name in (("M", "time"), ("m", "duration")):
        whole = np.array([-(2**63) + 1, 2**63 - 1])
        for unit, factor in {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}.items():
            column = pd.Series(whole.view(f"{kind}8[{unit}]"))
            assert canonical_codes(column)[1] == [(name, number * factor) for number in whole.tolist()]


TEXTS = [
    "a",
    None,
    "",
    "\x00",
    "a\x00",
    Flatterer("b"),
    HostileText("a"),
    np.str_("c"),
    "é",
    "b",
    np.nan,
    "\ud800",
]


@pytest.fixture(params=[True, False], ids=["with pyarrow", "without"])
def arrow(request, monkeypatch):
    """Let there be Arrow, or none."""

    def missing(*name):
        raise ImportError

    if not request.param:
        monkeypatch.setattr(columns_module, "_arrow", missing)


OF_PYTHON = [object, "string[python]"]
"""Types of columns that hold Python's own texts."""
if not pd.__version__.startswith("2.2."):
    OF_PYTHON.append(pd.StringDtype("python", na_value=np.nan))


@each("dtype", OF_PYTHON)
def test_text_is_compared_by_its_characters(arrow, dtype):
    """Columns of Python's own text may hold subclasses, which say of their equality what they like."""
    for texts in (TEXTS, TEXTS[:-1], TEXTS[:5], TEXTS[8:11]):
        column = objects(texts).astype(dtype)
        codes, keys = canonical_codes(column)
        expected = [form(text) for text in texts]
        assert [None if code < 0 else keys[code] for code in codes] == expected
        assert {type(key) for key in keys} == {str}
        found = located(column, ["b", "a", 1, "\x00"])
        wanted = {None: -1, "b": 0, "a": 1, "\x00": 3}
        assert found.tolist() == [wanted.get(text, -2) for text in expected]


def test_text_beside_tuples_nested_without_end():
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    codes, keys = canonical_codes(objects(["a", deep, "b"]))
    assert [keys[code] for code in codes] == ["a", UNKNOWN, "b"]


FEW = [
    st.sampled_from(["a", "b", "", "\x00", "\ud800"]),
    st.sampled_from([0, 1, -1, 2**63 - 1, 2**63, -(2**63)]),
    st.sampled_from([0, 1.0, 0.5, 2**53 + 1, 2.0**53, "1", ("boolean", True)]),
]


@settings(derandomize=True)
@given(data=st.data(), few=st.sampled_from(FEW))
def test_positions_are_those_of_equal_forms(data, few):
    keys, wanted = data.draw(st.lists(few, unique=True)), data.draw(st.lists(few))
    expected = [keys.index(one) if one in keys else -2 for one in wanted]
    assert positions(wanted, keys).tolist() == expected


BEYOND_A_NUL = ["a\0", "a", "a\0x", "b", "", "\0", "\0\0"]


@each("sort", [False, True])
@each("dtype", [*OF_PYTHON, "category"])
def test_a_text_does_not_end_at_a_nul(arrow, dtype, sort):
    """It did in pandas up to 3.0.0, where a column of nothing but texts became one of C strings."""
    for texts in (BEYOND_A_NUL, BEYOND_A_NUL[::-1]):
        if dtype == "category":  # astype would compare the texts, too
            listed = pd.Index(texts, dtype=object)
            column = pd.Series(pd.Categorical.from_codes([*range(len(texts))] * 2, categories=listed))
        else:
            column = objects(texts * 2).astype(dtype)
        codes, keys = canonical_codes(column, sort=sort)
        assert [keys[code] for code in codes] == texts * 2 and len(keys) == len(texts)
        assert sort is False or dtype == "category" or keys == sorted(texts)
        assert located(column, ["b", "a"]).tolist() == [{"b": 0, "a": 1}.get(text, -2) for text in texts * 2]


def as_c_strings(values, cut=lambda text: text.split("\0")[0], factorize=pd.factorize, **options):
    """Number values as pandas does up to 3.0.0, whatever its version."""
    if not isinstance(values, np.ndarray) or {*map(type, values)} != {str}:
        return factorize(values, **options)
    place, _ = factorize(objects([*map(cut, values), None]).to_numpy())
    return place[:-1], values[np.unique(place[:-1], return_index=True)[1]]


@each("cut", [lambda text: text.split("\0")[0], str.lower, lambda text: text[:1]])
def test_pandas_does_not_decide_which_texts_are_equal(monkeypatch, arrow, cut):
    """Not even a version that makes one key of texts which differ: each row has its own text."""
    monkeypatch.setattr(pd, "factorize", partial(as_c_strings, cut=cut))
    texts = ["a", "A", "a\0", "b", "a", "ab"]
    with pytest.raises(AssertionError):  # the version is as bad as it should be
        place, distinct = pd.factorize(objects(texts).to_numpy())
        assert distinct[place].tolist() == texts
    codes, keys = canonical_codes(objects(texts))
    assert keys == ["a", "A", "a\0", "b", "ab"] and codes.tolist() == [0, 1, 2, 3, 0, 4]
    assert located(objects(texts), ["a"]).tolist() == [0, -2, -2, -2, 0, -2]


LONE, ITS_REPR = "\ud800", repr("\ud800")


@each("first", [LONE, ITS_REPR])
@each("more", [[], [7], [None]])
def test_a_lone_surrogate_is_not_the_text_of_its_representation(first, more):
    second = ITS_REPR if first == LONE else LONE
    column = pd.Series([first, second, first, *more], dtype=object)
    assert located(column, [second, "a"])[:3].tolist() == [-2, 0, -2]
    assert canonical_codes(column)[1][:2] == [first, second]


def test_a_lone_surrogate_among_categories_stops_nothing():
    column = pd.Series(pd.Categorical(objects(["x", LONE, "x"]), categories=objects([LONE, "x"])))
    assert located(column, ["x"]).tolist() == [0, -2, 0]
    codes, keys = canonical_codes(column)
    assert [keys[code] for code in codes] == ["x", LONE, "x"]
    assert Lookup(["x"]).codes(column).tolist() == [0, -2, 0]
    units = pd.concat([part for part in map(_rows_and_words, units_of(column))])
    assert units[0] == units[2] != units[1]


def _rows_and_words(part):
    rows, units = part
    return pd.Series(list(map(tuple, units.words.tolist())), index=rows)
