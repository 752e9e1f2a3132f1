"""Records of any library are found and read in the same way, whatever their values."""

import datetime
import math
from collections import Counter
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy import columns as columns_module
from pandas_dptree.hierarchy.columns import NO_KEYS, kind_of
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.units import unit_form
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests import reference
from tests.helpers_ingest import (
    ARROW,
    DAY,
    LIBRARIES,
    PUBLIC,
    counted,
    encoded,
    listed_leaves,
    summed,
    typed_domain,
    types_in,
)
from tests.helpers_reading import forms_of, values_read
from tests.strategies import ODD_VALUES, domains_and_rows, fewer, frame_of, objects

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
BACKENDS = {
    "pandas-object": lambda frame: frame,
    "pandas-str": lambda frame: frame.astype("string"),
    "pandas-arrow": lambda frame: frame.astype("string[pyarrow]"),
    "pandas-category": lambda frame: frame.astype("category"),
    "polars": lambda frame: polars.DataFrame(
        frame.to_dict("list"), schema=dict.fromkeys(frame, polars.String)
    ),
    "polars-lazy": lambda frame: BACKENDS["polars"](frame).lazy(),
    "polars-categorical": lambda frame: BACKENDS["polars"](frame).cast(polars.Categorical),
    "pyarrow": lambda frame: BACKENDS["polars"](frame).to_arrow(),
}


@fewer(2)
@given(drawn=domains_and_rows())
def test_every_library_gives_the_same_counts(drawn):
    domain, rows = drawn
    expected = reference.count_leaves(rows, domain.by, listed_leaves(domain)).tolist()
    found = {backend: counted(build(rows), domain).tolist() for backend, build in BACKENDS.items()}
    assert found == dict.fromkeys(BACKENDS, expected)


def as_categories(frame):
    """Make a frame categorical by hand: ``astype`` would compare the texts."""
    made = {}
    for name in frame:
        texts = list(dict.fromkeys(frame[name]))
        codes = list(map(texts.index, frame[name]))
        made[name] = pd.Categorical.from_codes(codes, categories=pd.Index(texts, dtype=object))
    return pd.DataFrame(made)


@pytest.fixture
def without_arrow(monkeypatch):
    def missing(*name):
        raise ImportError

    monkeypatch.setattr(columns_module, "_arrow", missing)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_record_whose_text_has_a_nul_is_counted_separately(backend):
    """One row in front took fifty others with it: texts were C strings in pandas up to 3.0.0."""
    build = {**BACKENDS, "pandas-category": as_categories}[backend]
    check_nul(build)
    check_nul(lambda rows: build(rows.astype("string[python]")))


@pytest.mark.parametrize("backend", [name for name in BACKENDS if "arrow" not in name])
def test_a_nul_needs_no_arrow(without_arrow, backend):
    check_nul({**BACKENDS, "pandas-category": as_categories}[backend])


def check_nul(build):
    """Check that keys and units that differ after a NUL alone are two, whichever comes first."""
    rows = frame_of(
        [(key, f"{key}\0{row % 2}") for key in ("a\0", "a", "b") for row in range(6)], ["k", "unit"]
    )
    for frame in (build(rows[5:]), build(rows[5:][::-1]), build(rows[5:].sample(frac=1, random_state=0))):
        for places, expected in ((["a", "b"], [6, 6]), (["a", "a\0", "b"], [6, 1, 6])):
            domain = Domain.from_frame(pd.DataFrame({"k": places}, dtype=object), by=["k"])
            assert counted(frame, domain).tolist() == expected
            assert counted(frame, domain, privacy_unit="unit", k=3).tolist() == expected
            bounded = [min(count, 4) for count in expected]
            assert counted(frame, domain, privacy_unit="unit", k=2).tolist() == bounded


# Sums: what each record adds, and how far one unit can move the sums.


def test_columns_may_be_used_twice_but_no_unit_is_added_up():
    frame = pd.DataFrame({"k": [1, 2, 2, 3], "u": [1, 2, 3, 4], "x": [1.0, 2.0, np.nan, 9.0]})
    domain = Domain.from_frame(pd.DataFrame({"k": [1, 2]}), by=["k"])
    key, x = Quantity.of("k", (0, 9), 1), Quantity.of("x", (0, 10), 1)
    for made in (frame, polars.from_pandas(frame, nan_to_null=True).lazy()):
        sums = summed(made, domain, [key, x, x.centred(), COUNT])
        assert [s.tolist() for s in sums] == [[1, 2], [1, 2], [-4, -3], [1, 1]]
        with pytest.raises(ArgumentError, match="also a column to be added up: 'x'") as error:
            summed(made, domain, [x], privacy_unit="x")
        assert error.value.argument == "privacy_unit"
        with pytest.raises(ColumnsError, match=r"lacks the columns: 'y'\."):
            leaf_totals(made, domain, [COUNT, Quantity.of("y", (0, 1)), Quantity.of("y", (0, 2))])


def test_a_key_may_be_the_privacy_unit():
    frame = pd.DataFrame({"k": ["a", "a", "b", "c"], "x": [1, 1, 2, 3]})
    domain = Domain.from_frame(pd.DataFrame({"k": ["a", "b"]}), by=["k"])
    for made in (frame, polars.from_pandas(frame)):
        assert counted(made, domain, privacy_unit="k").tolist() == [1, 1]
        sums = summed(made, domain, [COUNT, Quantity.of("x", (0, 9), 1)], privacy_unit="k")
        assert [s.tolist() for s in sums] == [[1, 1], [1, 2]]


def check_counts(frame, domain, unit):
    """Check the counts of a domain of one level against the canonical forms of the keys and the units."""
    names = [domain.by[0], *([] if unit is None else [unit])]
    readers = [forms_of, partial(forms_of, form_of=unit_form)]
    forms = [values_read(frame, name, read) for name, read in zip(names, readers, strict=False)]
    inside = [row for row in zip(*forms, strict=True) if row[0] in domain.forms[0]]
    counts = Counter(key for key, *whose in inside if whose != [None])
    expected = [counts[domain.forms[0][code]] for code in domain.path_codes(1)[0].tolist()]
    assert counted(frame, domain, privacy_unit=unit, k=999).tolist() == expected
    if unit is not None:
        units = {whose for _, whose in inside} - {None}
        assert counted(frame, domain, privacy_unit=unit).sum() == len(units)
    return sum(expected)


@pytest.mark.parametrize("library", LIBRARIES)
def test_keys_and_units_of_every_type_are_compared_by_value(library):
    for kind in types_in(library):
        held = pyarrow.array(ARROW[kind] * 2, type=kind)
        other = pyarrow.array((["a", "b", None] * len(held))[: len(held)])
        frame = LIBRARIES[library](pyarrow.table({"k": held, "l": other}))
        values = [value for value in ARROW[kind] if value is not None and value == value]
        text = Domain.from_frame(pd.DataFrame({"l": ["a", "b"]}), by=["l"])
        cases = [(text, None), (text, "k")]
        if kind_of(pd.ArrowDtype(kind)) not in NO_KEYS:
            domain = typed_domain(kind, list(dict.fromkeys(values))[:2])
            cases += [(domain, None), (domain, "l")]
        for where, unit in cases:
            assert check_counts(frame, where, unit) > 0


@pytest.mark.parametrize(
    "make",
    [
        lambda held: pd.DataFrame({name: objects(values) for name, values in held.items()}),
        lambda held: polars.DataFrame(
            {name: polars.Series(values, dtype=polars.Object) for name, values in held.items()}
        ),
    ],
    ids=["pandas", "polars"],
)
def test_odd_keys_and_units_are_compared_by_value(make):
    frame = make({"k": ODD_VALUES * 2, "u": [*ODD_VALUES, *ODD_VALUES[::-1]]})
    domain = Domain.from_frame(pd.DataFrame({"k": objects(PUBLIC["objects"])}), by=["k"])
    for unit in (None, "u"):
        assert check_counts(frame, domain, unit) > 20


class Marked(pyarrow.ExtensionType):
    """Days under another name."""

    def __init__(self):
        super().__init__(pyarrow.date32(), "marked")

    def __hash__(self):
        return hash(type(self))

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


INSTANT, WORD = datetime.date(2020, 1, 1), "9" * 5000
VALUES = {
    pyarrow.int8(): [1, -128, 127],
    pyarrow.uint64(): [1, 2**64 - 1],
    pyarrow.int64(): [1, -(2**63)],
    pyarrow.float16(): [np.float16(1), np.float16("nan"), np.float16("inf")],
    pyarrow.float32(): [1.0, math.nan, math.inf],
    pyarrow.float64(): [1.0, 5e-324, 1e308, math.nan, -math.inf, -0.0],
    pyarrow.bool_(): [True, False],
    pyarrow.string(): ["1", "", "x", "\x00", "1e5", WORD, "nan"],
    pyarrow.large_string(): ["1", "x"],
    pyarrow.string_view(): ["1", "x", "é", WORD],
    pyarrow.decimal128(38, 0): [Decimal(1), Decimal(10**37)],
    pyarrow.decimal256(76, 0): [Decimal(1), Decimal(10**75)],
    pyarrow.binary(): [b"1", b"\xff"],
    pyarrow.large_binary(): [b"1", b"\xff"],
    pyarrow.binary(2): [b"12", b"\xff1"],
    pyarrow.binary_view(): [b"12", b"\xff1" * 99],
    pyarrow.date32(): [INSTANT, -(2**31), 2**31 - 1],
    pyarrow.date64(): [INSTANT, 2**55 // DAY * DAY],
    pyarrow.time32("s"): [datetime.time(1), datetime.time(23)],
    pyarrow.time64("ns"): [1, 2**40],
    pyarrow.timestamp("s"): [0, 2**55, -(2**55)],
    pyarrow.timestamp("ns"): [0, 2**62],
    pyarrow.timestamp("us", "Europe/Paris"): [0, 2**60, -(2**60)],
    pyarrow.duration("s"): [0, 2**61],
    Marked(): [1, 2**31 - 1],
    pyarrow.month_day_nano_interval(): [(1, 1, 1)],
    pyarrow.null(): [None],
    pyarrow.list_(pyarrow.timestamp("s")): [[1], [], [2**55]],
    pyarrow.map_(pyarrow.string(), pyarrow.date32()): [[("a", 1)], [], [("a", 2**31 - 1)]],
    pyarrow.struct([("a", pyarrow.int64())]): [{"a": 1}, {"a": None}],
}
BARE = [
    pyarrow.int64(), pyarrow.float16(), pyarrow.bool_(), pyarrow.string(), pyarrow.string_view(),
    pyarrow.decimal128(38, 0), pyarrow.binary(), pyarrow.binary_view(), pyarrow.timestamp("s"),
]  # fmt: skip
ENCODED = {pyarrow.dictionary(pyarrow.int8(), kind): kind for kind in BARE}
ENCODED |= {pyarrow.run_end_encoded(pyarrow.int32(), kind): kind for kind in BARE}
VALUES |= {kind: VALUES[bare] for kind, bare in ENCODED.items()}
NOT_IN_POLARS = ("month", "decimal256", "map", "run_end", "extension")
TYPED = {
    "object": [1, *ODD_VALUES, pd.Series([1, 2]), np.longdouble("1e4000")],
    "string[python]": ["1", "x", "\ud800"],
    "string[pyarrow]": ["1", "x"],
    "str": ["1", "x"],
    "category": ["1", "x", 1],
    "Int64": [1, 2**62],
    "uint64": [1, 2**64 - 1],
    "boolean": [True, False],
    "Float32": [1.0, math.inf],
    "float16": [1.0, math.inf],
    "longdouble": [1.0, np.longdouble("1e4000")],
    "complex128": [1, 1j, math.nan],
    "Sparse[float64]": [1.0, math.inf],
    "Sparse[object]": ["1", "x", 1, (1,)],
    "datetime64[ns]": [0, 2**62],
    "datetime64[s]": [0, 2**55],
    "datetime64[us, UTC]": [0, 2**60],
    "timedelta64[s]": [0, 2**55],
    "period[D]": ["2020-01-01", "1900-01-01"],
}  # fmt: skip


def variants(values, at_once=1):
    """List columns of the first value, and of odd ones and none beside it, so many of them at once."""
    first = values[0]
    yield from (
        [first, first],
        [first],
        [],
        [first, None],
        [None, first],
        [None, None],
        [None, *values, None],
    )
    yield from ([first, *values[place : place + at_once]] for place in range(1, len(values), at_once))


def in_arrow(kind, values, role):
    n = len(values)
    columns = {"k": ["a"] * n, "u": range(n), "x": [1.0] * n}
    types = {"k": pyarrow.string(), "u": pyarrow.int64(), "x": pyarrow.float64()}
    held = {name: pyarrow.array(column, type=types[name]) for name, column in columns.items()}
    return pyarrow.table(held | {role: encoded(values, kind)})


def in_pandas(dtype, values, role):
    """Make a frame of pandas; None if the type cannot hold the values."""
    n = len(values)
    try:
        column = objects(values).astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return None
    held = {"k": ["a"] * n, "u": range(n), "x": [1.0] * n}
    return pd.DataFrame(held).astype({"k": object}).assign(**{role: column})


OUTCOME_LIBRARIES = {
    "pyarrow": lambda table: table,
    "pandas-arrow": lambda table: pd.DataFrame(
        {name: pd.Series(pd.arrays.ArrowExtensionArray(table[name])) for name in table.column_names}
    ),
    "polars": polars.from_arrow,
}


def outcome(frame, domain, **options):
    """Tell what shows of an answer, or the refusal, and then the answer itself."""
    values = options.pop("values", [COUNT])
    try:
        sums = summed(frame, domain, values, **options)
    except ColumnsError as refused:
        return str(refused), None
    return len(sums), [each.tolist() for each in sums]


def libraries_of(kind):
    """List the libraries that have a type of Arrow."""
    foreign = any(name in str(kind) for name in NOT_IN_POLARS)
    return [library for library in OUTCOME_LIBRARIES if not (library == "polars" and foreign)]


def library_of(number, kind):
    """Choose one library for a type, each of them equally often."""
    return libraries_of(kind)[number % len(libraries_of(kind))]


OUTCOMES = {
    f"{library}-{kind}": (
        lambda values, role, kind=kind, make=OUTCOME_LIBRARIES[library]: make(in_arrow(kind, values, role)),
        held,
    )
    for kind, held in VALUES.items()
    for library in libraries_of(kind)
} | {f"pandas-{dtype}": (partial(in_pandas, dtype), held) for dtype, held in TYPED.items()}
BY_DEFAULT = [f"{library_of(number, kind)}-{kind}" for number, kind in enumerate(VALUES)]
BY_DEFAULT += [f"pandas-{dtype}" for dtype in TYPED]


# Whether records can be counted at all: this shows, so it may depend on the types of columns alone.


@pytest.mark.parametrize(
    ("name", "at_once"),
    [
        *((name, 1) for name in BY_DEFAULT if name != "pandas-object"),
        ("pandas-object", 12),
        *(pytest.param(name, 99, marks=pytest.mark.slow) for name in OUTCOMES if name not in BY_DEFAULT),
        pytest.param("pandas-object", 1, marks=pytest.mark.slow),
    ],
)
def test_no_value_decides_whether_records_can_be_counted(name, at_once):
    build, values = OUTCOMES[name]
    text = Domain.from_frame(pd.DataFrame({"k": ["a", "b"]}), by=["k"])
    mixed = Domain.from_frame(pd.DataFrame({"k": objects(["a", 1])}), by=["k"])
    amount = Quantity.of("x", (0, 5), 1)
    ways = {
        "x": [(text, {"values": [amount]})],
        "u": [(text, {"privacy_unit": "u"})],
        "k": [(text, {}), (mixed, {})],
    }
    for role, questions in ways.items():
        frames = [build(column, role) for column in variants(values, at_once)]
        for where, options in questions:
            outcomes = {outcome(frame, where, **options)[0] for frame in frames if frame is not None}
            assert len(outcomes) == 1, role


@pytest.mark.parametrize(
    ("everywhere", "alone"),
    [
        pytest.param(False, False, id="in one library"),
        pytest.param(True, False, id="in every library", marks=pytest.mark.slow),
        pytest.param(True, True, id="one by one", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("library", OUTCOME_LIBRARIES)
def test_how_values_are_encoded_makes_no_difference(library, everywhere, alone):
    """By default each type in one library, and all its odd values at once."""
    domain = Domain.from_frame(pd.DataFrame({"k": objects(["a", 1, "1", "x"])}), by=["k"])
    amount = Quantity.of("x", (-5, 5), 1)
    for number, (kind, bare) in enumerate(ENCODED.items()):
        if library not in (libraries_of(kind) if everywhere else [library_of(number, kind)]):
            continue
        for role, options in (
            ("x", {"values": [amount]}),
            ("u", {"privacy_unit": "u"}),
            ("k", {"values": [COUNT]}),
        ):
            if role == "k" and bare == pyarrow.binary():
                continue  # only the type of bare bytes says that they are no keys
            columns = list(variants([*VALUES[kind], VALUES[kind][0]], at_once=1 if alone else 99))
            for values in columns if alone else columns[::2]:
                make = OUTCOME_LIBRARIES[library]
                plain, other = (make(in_arrow(one, values, role)) for one in (bare, kind))
                assert outcome(other, domain, **options) == outcome(plain, domain, **options), (kind, role)
