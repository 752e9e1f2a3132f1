"""Units are the same if and only if their forms are, in columns of whatever type."""

import datetime
import sys
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.hierarchy import columns as columns_module
from pandas_dptree.hierarchy.values import UNKNOWN
from pandas_dptree.ingest import units as units_module
from pandas_dptree.ingest.units import Units, form_hashes, unit_form, units_of
from tests.helpers_cases import each
from tests.helpers_reading import encoded_units, forms_of
from tests.strategies import DEEP, ODD_VALUES, Hostile, objects, zoo

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

KEY = np.array([5, 2**64 - 1], dtype=np.uint64)
NANS = np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(float).tolist()
NUMBERS = [7, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 0, 1, -1]
LENGTHS = [
    "\0", "\0\0", "1" * 7, "1" * 8, "1" * 9, "1" * 15, "1" * 16, "1" * 16 + "\0", "1" * 8 + "\0", "é" * 4,
    "1" * 7 + "\x01", "1" * 5000, "1" * 5001, "\x01", "\x01\0", "a" * 7 + "\0\x01",
]  # fmt: skip
VALUES = [
    *ODD_VALUES, *NUMBERS, *map(float, NUMBERS), *map(Decimal, NUMBERS), *map(str, NUMBERS), *LENGTHS,
    *[text.encode() for text in LENGTHS], *NANS, b"7", b"\xed\xa0\x80", b"\xff", "\udcff", "\udfff", "(7,1)",
    "(0x7,0x1)", Fraction(7, 1), Fraction(7, 2), Decimal("3.5"), Decimal("7.00"), Decimal("-0.0"),
    1e300, 10**300,
    (7,), (7.0,), ("7",), (Decimal(7),), (b"7",), ((7,),), (7, 1), ("(7)",), (None,), ("None",),
    np.float16(7), np.uint8(7),
    datetime.datetime(2024, 2, 29, 0, 0, 1), np.datetime64("2024-02-29T00", "h"), "2024-02-29 00:00:00",
    pd.Interval(7, 8), pd.Interval(7.0, 8.0), 10**3999, 10**3999 + 1, Fraction(1, 10**3000),
]  # fmt: skip


def arrow(values, kind):
    return pd.Series(
        pd.arrays.ArrowExtensionArray(pyarrow.chunked_array([values[:2], values[2:]], type=kind))
    )


def unchecked(texts):
    """Call bytes a text, as files may."""
    held = pyarrow.array(texts, type=pyarrow.binary())
    held = pyarrow.Array.from_buffers(pyarrow.string(), len(held), held.buffers())
    return pd.Series(pd.arrays.ArrowExtensionArray(pyarrow.chunked_array([held])))


TEXTS = [text for text in VALUES if type(text) is str and not any("\ud800" <= c < "\ue000" for c in text)]
WHOLE = [number for number in NUMBERS if -(2**63) <= number < 2**63]
NATURAL = [number for number in NUMBERS if 0 <= number < 2**64]
FLOATS = [*map(float, NUMBERS), -0.0, 0.5, 3.5, 1e300, 5e-324, np.inf, -np.inf, np.nan, *NANS]
COLUMNS = {
    "objects": objects(VALUES),
    "text": objects(TEXTS),
    "text and missing": objects([*TEXTS, None]),
    "str": pd.Series(objects(TEXTS), dtype="str"),
    "string[python]": pd.Series(objects([*TEXTS, "\ud800", None]), dtype="string[python]"),
    "categories": pd.Series(pd.Categorical.from_codes([2, 0, -1, 1, 2], [7, 8, 9])),
    "categories of text": pd.Series(pd.Categorical.from_codes([1, 0, -1, 1, 2], ["7", "8", "\0"])),
    "categories of objects": pd.Series(pd.Categorical.from_codes([2, 0, -1, 1, 2], objects(["7", 7, b"7"]))),
    "i8": pd.Series(WHOLE),
    "u8": pd.Series(NATURAL, dtype="u8"),
    "i1": pd.Series([7, -1, 0, 1], dtype="i1"),
    "Int64": pd.Series([*WHOLE, None], dtype="Int64"),
    "UInt64": pd.Series([*NATURAL, None], dtype="UInt64"),
    "f8": pd.Series(FLOATS),
    "f4": pd.Series([7, 0.5, -0.0, np.inf, np.nan, 2**53], dtype="f4"),
    "f2": pd.Series([7, 0.5, -0.0, np.inf, np.nan], dtype="f2"),
    "Float64": pd.Series(pd.arrays.FloatingArray(np.array(FLOATS), np.arange(len(FLOATS)) == 3)),
    "longdouble": pd.Series([7, 2**53 + 1, 0.5], dtype="longdouble"),
    "bool": pd.Series([True, False]),
    "boolean": pd.Series([True, False, None], dtype="boolean"),
    "sparse": pd.Series(pd.arrays.SparseArray([7.0, np.nan, 0.5])),
    "times": pd.Series(pd.to_datetime(["2024-02-29 00:00:00", "2024-02-29 00:00:01", None])),
    "times in seconds": pd.Series(pd.to_datetime(["2024-02-29", None])).astype("M8[s]"),
    "zoned": pd.Series(pd.to_datetime(["2024-02-29"], utc=True)),
    "durations": pd.Series(pd.to_timedelta([1, 86_400 * 10**9])),
    "arrow text": arrow([*TEXTS, None], pyarrow.string()),
    "arrow large text": arrow([None, *TEXTS], pyarrow.large_string()),
    "arrow dictionary": arrow(["7", "8", None, "7"], pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
    "arrow no text": unchecked([b"7", b"\xed\xa0\x80", b"\xff", b"", None, b"\0", b"1" * 8]),
    "arrow bytes": arrow([b"7", b"\xed\xa0\x80", b"\xff", None], pyarrow.binary()),
    "arrow whole": arrow([*WHOLE, None], pyarrow.int64()),
    "arrow natural": arrow([*NATURAL, None], pyarrow.uint64()),
    "arrow floats": arrow([*FLOATS, None], pyarrow.float64()),
    "arrow half floats": arrow([np.float16(7), None, np.float16("nan")], pyarrow.float16()),
    "arrow decimals": arrow([Decimal(7), Decimal("3.5"), Decimal(-7), None], pyarrow.decimal128(9, 2)),
    "arrow dates": arrow([datetime.date(2024, 2, 29), None], pyarrow.date32()),
    "arrow bool": arrow([True, False, None], pyarrow.bool_()),
    "arrow null": arrow([None, None], pyarrow.null()),
    "nobody": pd.Series([], dtype=object),
    "nobody in arrow": arrow([], pyarrow.string()),
}  # fmt: skip


def check(columns):
    """Check, over all pairs of values in any columns, that units are equal if and only if their forms are."""
    unit_of, form_of = {}, {}
    for column in columns:
        for form, unit in zip(forms_of(column, unit_form), encoded_units(column), strict=True):
            assert (form is None) == (unit is None)
            if form is not None:
                assert unit_of.setdefault(form, unit) == unit
                assert form_of.setdefault(unit, form) == form
    return len(unit_of)


def test_units_are_equal_if_and_only_if_their_forms_are():
    alone = [objects([value]) for value in VALUES]
    assert check([*COLUMNS.values(), *alone, objects(VALUES[::-1])]) > 100


def test_polars_holds_the_same_units():
    series = [
        polars.Series([7, 2**53 + 1, None]), polars.Series([7.0, -0.0, 0.5, None]),
        polars.Series(["7", "\0", None]),
        polars.Series(["7", "8"], dtype=polars.Categorical), polars.Series([2**64 - 1], dtype=polars.UInt64),
        polars.Series([Decimal("7.00"), Decimal("3.50")]), polars.Series([b"7", None]),
        polars.Series([datetime.date(2024, 2, 29)]), polars.Series([7, "7", b"7"], dtype=polars.Object),
    ]  # fmt: skip
    assert check([*map(columns_module.to_pandas, map(narwhals_of, series)), *COLUMNS.values()]) > 100


def narwhals_of(series):
    return columns_module.nw.from_native(series, series_only=True)


@settings(derandomize=True)
@given(values=st.lists(zoo(), max_size=8), more=st.lists(zoo(), max_size=4))
def test_any_values_are_encoded_alike_in_any_company(values, more):
    columns = [objects(values), objects([*more, *values]), *(objects([value]) for value in values)]
    check(columns)
    assert encoded_units(columns[0]) == encoded_units(columns[1])[len(more) :]


@each(
    "same",
    [
        [1, 1.0, np.int8(1), Decimal("1.00"), Fraction(1)],
        [0, -0.0, Decimal("-0"), Decimal("0E+999999999999999999")],
        [0.5, Decimal("0.5"), Fraction(1, 2), np.float16(0.5)],
        [float("inf"), Decimal("Infinity")],
        [b"1", np.bytes_(b"1"), type("LyingBytes", (bytes,), {"hex": lambda _: "noon"})(b"1")],
        [datetime.time(9), type("LyingTime", (datetime.time,), {"isoformat": lambda _: "noon"})(9)],
        [(1, None), (1.0, np.nan), (np.int64(1), pd.NA), (Decimal(1), Decimal("NaN"))],
        [None, np.nan, Decimal("NaN"), Decimal("sNaN")],
    ],
)
def test_what_is_the_same_unit(same):
    assert {unit_form(value) for value in same} == {unit_form(same[0])} != {UNKNOWN}


def test_what_is_another_unit():
    different = [
        1,
        "1",
        b"1",
        (1,),
        True,
        0.1,
        Decimal("0.1"),
        Fraction(1, 3),
        uuid.UUID(int=1),
        datetime.time(1),
    ]
    known = [unit_form(value) for value in different]
    assert len(set(known)) == len(known) and UNKNOWN not in known


@each(
    "value",
    [DEEP, (1, []), (Hostile(),), Decimal("1E+999999999999999999"), Decimal("1E-999999999999999999"),
     Fraction(1, 10**5000)],
)  # fmt: skip
def test_what_is_no_unit(value):
    assert unit_form(value) == UNKNOWN


@each("person", [uuid.UUID(int=5), Decimal("12.50"), b"passport 7", ("ward 3", 12)])
def test_a_person_of_any_type_is_one_person(person):
    """Of 20 visits of one person, as many are kept as the bound says; of a person in another type, too."""
    others = [uuid.UUID(int=6), Decimal("12.51"), b"passport 8", ("ward 3", 13)]
    frame = pd.DataFrame({"unit": objects([person] * 20 + others * 20), "place": "a"})
    domain = pd.DataFrame({"place": ["a"]})
    for most in (1, 3):
        counts = dpt.tree_counts(
            frame, ["place"], domain=domain, privacy_unit="unit", max_contributions=most, epsilon=1e9
        )
        assert counts["count"].tolist() == [most * 5] * 2


def test_the_encodings_are_these():
    """So that a change of the encoding, and hence of every seeded release, does not go unnoticed."""
    text = int.from_bytes(b"7\x01", "little")
    assert encoded_units(objects([7, "7", b"7", 3.5, -1, "1" * 8])) == [
        (0, 7),
        (1, text),
        (2, *words_of(b"('bytes','37')")),
        (2, *words_of(b"(0x7,0x2)")),
        (0, 2**64 - 1),
        (1, *words_of(b"1" * 8)),
    ]


def words_of(data):
    padded = data + b"\x01" + bytes(7 - len(data) % 8)
    return np.frombuffer(padded, dtype="<u8").tolist()


def test_texts_need_no_arrow(monkeypatch):
    with_arrow = [encoded_units(COLUMNS[name]) for name in ("objects", "text", "text and missing")]

    def missing(*name):
        raise ImportError

    monkeypatch.setattr(columns_module, "_arrow", missing)
    assert [encoded_units(COLUMNS[name]) for name in ("objects", "text", "text and missing")] == with_arrow


def test_one_long_number_does_not_fail_the_others():
    """Python may be set to print integers of 640 digits at most."""
    limit = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(640)
        units = encoded_units(objects([10**700, 10**700 + 1, Fraction(1, 10**700), 7]))
    finally:
        sys.set_int_max_str_digits(limit)
    assert None not in units and len({*units}) == 4


@each("kind", range(3))
@each("key", [[0, 0], [2**64 - 1, 2**64 - 1]])
def test_hashes_are_of_each_unit_alone(kind, key):
    """Neither the rows around it nor the largest key matter, and nothing is said of overflows."""
    words = np.array([[0, 1], [2**64 - 1, 1], [0, 2]], dtype=np.uint64)
    key = np.array(key, dtype=np.uint64)
    with np.errstate(all="raise"):
        together = Units(kind, words).hashes(key).tolist()
        assert together == [Units(kind, words[[row]]).hashes(key)[0] for row in range(3)]
    assert len({*together}) == 3


def test_hashes_depend_on_the_key_and_the_kind():
    words = np.array([[3]], dtype=np.uint64)
    for pairs in ([(0, [1, 2]), (0, [1, 3]), (0, [2, 2])], [(kind, [1, 2]) for kind in range(3)]):
        found = {Units(kind, words).hashes(np.array(key, dtype=np.uint64)).item() for kind, key in pairs}
        assert len(found) == 3


def test_hashes_are_uniform():
    """Of whole numbers that follow each other, each bit is set in half of them."""
    hashes = Units(0, np.arange(2**14, dtype=np.uint64)[:, None]).hashes(KEY)
    bits = np.unpackbits(hashes.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert len(np.unique(hashes)) == len(hashes) and np.abs(bits - 0.5).max() < 5 * 0.5 / 2**7


def test_long_units_are_hashed_as_the_same_units_among_others():
    words = np.arange(60, dtype=np.uint64).reshape(6, 10)
    together = Units(1, words).hashes(KEY)
    assert [Units(1, words[[row]]).hashes(KEY)[0] for row in range(6)] == together.tolist()
    assert Units(1, np.tile(words, (3, 1))).hashes(KEY)[:6].tolist() == together.tolist()
    texts = ["a" * 100 + str(n) for n in range(9)] + ["b" * 100, "\0" * 101]
    alone = [encoded_units(objects([text]))[0] for text in texts]
    assert encoded_units(objects(texts * 20))[: len(texts)] == alone and len({*alone}) == len(texts)


def test_units_with_equal_hashes_have_numbers_of_their_own(monkeypatch):
    monkeypatch.setattr(units_module, "split_mix", np.zeros_like)
    for _, units in units_of(objects([f"{n % 5:09}" for n in range(20)])):
        number = units.numbers(units.hashes(KEY))
        assert len(units.words) == 20 and number.max() == 4
        assert (number == number[np.arange(20) % 5]).all() and len({*number[:5].tolist()}) == 5


@given(
    words=st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), min_size=1, max_size=12),
    n_hashes=st.integers(1, 4),
)
def test_numbers_are_those_of_equal_words(words, n_hashes):
    """Whichever different units have the same hash."""
    units = Units(1, np.array(words, dtype=np.uint64))
    number = units.numbers(np.array([sum(each) % n_hashes for each in words], dtype=np.uint64)).tolist()
    for one, here in zip(words, number, strict=True):
        for other, there in zip(words, number, strict=True):
            assert (one == other) == (here == there)
    assert set(number) <= set(range(len(words)))


def test_forms_are_hashed_by_value():
    forms = [7, 7.0, Fraction(7), "7", UNKNOWN, ("tuple", 7), ("tuple", 7.0), 0.5, Fraction(1, 2)]
    one, two, three, text, unknown, pair, other, half, ratio = form_hashes(forms).tolist()
    assert one == two == three != text and pair == other and half == ratio and unknown == 0
    assert form_hashes(forms[::-1]).tolist()[::-1] == form_hashes(forms).tolist()
