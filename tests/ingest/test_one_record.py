"""Each record is read as if it stood alone, in columns of every kind and by every reader.

That is stronger than any bound on what a record adds, and simpler to check: if no reading of a record depends
on what stands around it, one record more or less changes its own contribution alone. So a frame is read as a
whole and in parts, and what is read of each record must be the same.
"""

import enum
import math
import uuid
from collections import Counter
from decimal import Decimal
from functools import cache, partial
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import DPTreeError
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import derived_domain
from pandas_dptree.ingest.bins import binned_counts
from pandas_dptree.ingest.contributions import LeafTally, leaf_totals
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.prefixes import sorted_keys
from pandas_dptree.ingest.units import unit_form
from pandas_dptree.privacy.quantity import Quantity
from tests.helpers_cases import each
from tests.helpers_random import words
from tests.helpers_reading import encoded_units, forms_of, values_read
from tests.strategies import ODD_VALUES, fewer, objects

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

MOST_ROWS = 24

# Values that some library or other takes for the same, or cannot hold, or cannot express in Python.
TEXT = [
    "", "a", "A", "a\0", "a\0x", "\0", "a ", "é", "e\u0301", "ß", "ss", "nan", "None", "1", "1.0", "01",
    "\uff11", "2024-02-29", "10.0.0.1", "10.0.0.1\0", "a" * 40, "a" * 40 + "\0", None,
]  # fmt: skip
SURROGATES = [*TEXT, "\ud800", "'\\ud800'", "\ud800a"]
WHOLE = [0, 1, -1, 2**53, 2**53 + 1, 2**62, 2**62 + 1, 2**63 - 1, 1 - 2**63, None]
NATURAL = [0, 1, 2**53, 2**53 + 1, 2**63, 2**63 + 1, 2**64 - 1, None]
FLOATS = [0.0, -0.0, 1.0, 0.1, float(np.float32(0.1)), 5e-324, math.inf, math.nan, 2.0**53, 2.0**64, None]
FLOATS += np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(float).tolist()
HALVES = [None if each is None else np.float16(each) for each in FLOATS if each not in (2.0**53, 2.0**64)]
DECIMALS = [Decimal(text) for text in ("0.00", "-0.00", "1.00", "0.50", "123456.78")] + [None]
BYTES = [b"", b"a", b"a\0", b"\xff", b"\xc3", None]
BOOLEANS = [True, False, None]
TIMES = [0, 1, 86_400 * 10**3, 1_709_164_800 * 10**6, 2**62 + 1, -(2**62), 2**63 - 1, 1 - 2**63, None]
"""Times, durations and times of day by the whole number that stands for them."""


def in_pandas(make):
    return lambda values: pd.DataFrame({"c": make(values)})


def in_arrow(make):
    return lambda values: pyarrow.table({"c": make(values)})


ARROW_FRAMES = [in_arrow, lambda make: in_pandas(lambda values: pd.arrays.ArrowExtensionArray(make(values)))]
"""A table of Arrow is held by pandas before it is read; so each type is in one of the two."""


def in_polars(values, make, lazy):
    frame = polars.DataFrame({"c": make(values)})
    return frame.lazy() if lazy else frame


def missing(values):
    return np.array([value is None for value in values], dtype=bool)


def filled(values, dtype):
    return np.array([0 if value is None else value for value in values], dtype=dtype)


def sparse(values, dtype):
    return pd.arrays.SparseArray(np.array(values, dtype=dtype))


def stamps(values, dtype):
    return pd.Series(np.where(missing(values), np.iinfo("i8").min, filled(values, "i8")).view(dtype))


def categories(values, pool, index):
    """Make categories of a whole pool by hand, for pandas compares their values in its own way."""
    distinct = [each for each in dict.fromkeys(pool) if each is not None]
    codes = [-1 if value is None else distinct.index(value) for value in values]
    return pd.Categorical.from_codes(codes, categories=index(distinct))


def chunks(values, make):
    """Divide a column of Arrow into parts, of which the second begins within its memory."""
    middle = len(values) // 2
    parts = [make(values[:middle]), make([None, *values[middle:]]).slice(1)]
    return pyarrow.chunked_array(parts, type=parts[0].type)


def stored(kind, storage):
    return lambda values: pyarrow.array(values, type=storage).view(kind)


def dictionary(kind, values):
    """Encode by a dictionary that lists values twice, and a missing one."""
    words = [*reversed(values), None, *values]
    n = len(values)
    places = [n + 1 + place if place % 2 else n - 1 - place for place in range(n)]
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(places, type=pyarrow.int8()), pyarrow.array(words, type=kind)
    )


def runs(kind, values):
    ends = pyarrow.array(range(1, len(values) + 1), type=pyarrow.int32())
    return pyarrow.RunEndEncodedArray.from_arrays(ends, pyarrow.array(values, type=kind))


def unchecked_text(values):
    """Call bytes a text, as files may."""
    buffers = pyarrow.array(values, type=pyarrow.binary()).buffers()
    return pyarrow.Array.from_buffers(pyarrow.string(), len(values), buffers)


def arrow_kinds():
    """Give pools of values and how they become an array, by type."""
    for kind, pool in {
        pyarrow.string(): TEXT,
        pyarrow.large_string(): TEXT,
        pyarrow.binary(): BYTES,
        pyarrow.int64(): WHOLE,
        pyarrow.uint64(): NATURAL,
        pyarrow.float32(): FLOATS,
        pyarrow.float64(): FLOATS,
        pyarrow.float16(): HALVES,
        pyarrow.bool_(): BOOLEANS,
        pyarrow.decimal128(9, 2): DECIMALS,
        pyarrow.decimal256(60, 2): DECIMALS,
        pyarrow.list_(pyarrow.int64()): [[1], [], None],
    }.items():
        yield str(kind), pool, partial(pyarrow.array, type=kind)
    for kind in ("string_view", "binary_view"):
        if hasattr(pyarrow, kind):
            pool = TEXT if kind == "string_view" else BYTES
            yield kind, pool, partial(pyarrow.array, type=getattr(pyarrow, kind)())
    yield "string, not UTF-8", BYTES, unchecked_text
    for kind in (
        *[pyarrow.timestamp(unit, zone) for unit in ("s", "ns") for zone in (None, "America/New_York")],
        pyarrow.duration("s"), pyarrow.duration("ns"), pyarrow.date64(),
        pyarrow.time64("us"), pyarrow.time64("ns"),
    ):  # fmt: skip
        yield str(kind), TIMES, stored(kind, pyarrow.int64())
    days = [0, 1, 19_782, 2**31 - 1, -(2**31), None]
    yield "date32", days, stored(pyarrow.date32(), pyarrow.int32())
    yield "time32", days, stored(pyarrow.time32("s"), pyarrow.int32())
    for kind, pool in ((pyarrow.string(), TEXT), (pyarrow.int64(), WHOLE), (pyarrow.float64(), FLOATS)):
        yield f"dictionary of {kind}", pool, partial(dictionary, kind)
        yield f"runs of {kind}", pool, partial(runs, kind)
    if hasattr(pyarrow, "uuid"):
        pool = [uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes, None]
        fixed = partial(pyarrow.array, type=pyarrow.binary(16))
        yield "uuid", pool, lambda values: pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), fixed(values))
    if hasattr(pyarrow, "bool8"):
        byte = partial(pyarrow.array, type=pyarrow.int8())
        yield (
            "bool8",
            [0, 1, 2, None],
            lambda v: pyarrow.ExtensionArray.from_storage(pyarrow.bool8(), byte(v)),
        )


def polars_kinds():
    """Give pools of values and how they become a column, by type."""
    texts = [text for text in TEXT if text is not None]
    for kind, pool in {
        polars.String: TEXT,
        polars.Categorical: TEXT,
        polars.Enum(texts): TEXT,
        polars.Binary: BYTES,
        polars.Int64: WHOLE,
        polars.UInt64: NATURAL,
        **({polars.Int128: [*WHOLE, 2**100]} if hasattr(polars, "Int128") else {}),
        polars.Float32: FLOATS,
        polars.Float64: FLOATS,
        polars.Boolean: BOOLEANS,
        polars.Decimal(20, 2): DECIMALS,
        polars.List(polars.Int64): [[1], [], None],
    }.items():
        yield str(kind).split("(")[0], pool, partial(polars.Series, dtype=kind, strict=False)
    for kind in (
        polars.Date, polars.Datetime("ns"), polars.Datetime("ms", "America/New_York"), polars.Duration("us"),
    ):  # fmt: skip
        storage = polars.Int32 if kind == polars.Date else polars.Int64
        pool = [each for each in TIMES if each is None or storage == polars.Int64 or abs(each) < 2**31]
        yield str(kind), pool, lambda v, s=storage, k=kind: polars.Series(v, dtype=s).cast(k)
    # Of a list that begins with a member of an enumeration polars takes the `value` of all.
    odd = [value for value in ODD_VALUES if not isinstance(value, (np.generic, enum.Enum))]
    yield "Object", odd, lambda values: polars.Series("c", values, dtype=polars.Object)


def kinds():
    """Give for each kind of column a pool of values, and how some of them become a frame."""
    yield "pandas, text", SURROGATES, in_pandas(objects)
    bare = ["a", "a\0", "a\0x", "\0", "\ud800", "'\\ud800'", "\ud800a"]  # pandas hashes them as C strings
    yield "pandas, text alone", bare, in_pandas(objects)
    yield "pandas, objects", ODD_VALUES, in_pandas(objects)
    big = [*WHOLE, *NATURAL, 2**64 + 1, 10**400, 2.0**53, 2.0**63, "1"]
    yield "pandas, whole objects", big, in_pandas(objects)
    for storage, pool in (("python", SURROGATES), ("pyarrow", TEXT)):
        text = pd.StringDtype(storage)
        yield f"pandas, string[{storage}]", pool, in_pandas(lambda v, d=text: pd.Series(objects(v), dtype=d))
    if pd.__version__ >= "3":
        yield "pandas, str", TEXT, in_pandas(lambda v: pd.Series(objects(v), dtype="str"))
    whole = [each for each in WHOLE if each is not None]
    natural = [each for each in NATURAL if each is not None]
    floats = [each for each in FLOATS if each is not None]
    for dtype, pool in {
        "i8": whole, "u8": natural, "i1": [0, 1, -1, 127], "f8": floats, "f4": floats,
        "f2": [value for value in HALVES if value is not None], "?": [0, 1], "c16": [0j, 1j, 1],
    }.items():  # fmt: skip
        yield f"pandas, {dtype}", pool, in_pandas(lambda v, d=dtype: np.array(v, dtype=d))
        if dtype in ("i8", "u8", "f8", "?"):
            yield f"pandas, sparse {dtype}", pool, in_pandas(partial(sparse, dtype=dtype))
    for dtype, pool, array in (
        ("i8", WHOLE, pd.arrays.IntegerArray), ("u8", NATURAL, pd.arrays.IntegerArray),
        ("f8", FLOATS, pd.arrays.FloatingArray), ("?", BOOLEANS, pd.arrays.BooleanArray),
    ):  # fmt: skip
        make = in_pandas(lambda v, a=array, d=dtype: a(filled(v, d), missing(v)))
        yield f"pandas, nullable {dtype}", pool, make
    for dtype in ("M8[s]", "M8[ns]", "m8[ms]", "m8[ns]"):
        yield f"pandas, {dtype}", TIMES, in_pandas(partial(stamps, dtype=dtype))
    for unit in ("s", "ns"):
        yield (
            f"pandas, zoned {unit}",
            TIMES,
            in_pandas(
                lambda v, u=unit: (
                    stamps(v, f"M8[{u}]").dt.tz_localize("UTC").dt.tz_convert("America/New_York")
                )
            ),
        )
    yield "pandas, text categories", TEXT, in_pandas(partial(categories, pool=TEXT, index=objects))
    for name, pool in (("i8", WHOLE), ("u8", NATURAL)):
        index = partial(np.array, dtype=name)
        yield f"pandas, {name} categories", pool, in_pandas(partial(categories, pool=pool, index=index))
    months = [pd.Period("1970-01", "M"), pd.Period("2024-02", "M"), None]
    yield "pandas, periods", months, in_pandas(lambda v: pd.Series(v, dtype="period[M]"))
    ends = pd.arrays.IntervalArray.from_arrays
    yield (
        "pandas, intervals",
        [0.0, -0.0, 1.0, math.nan],
        in_pandas(lambda v: ends(np.array(v, dtype=float), np.array(v, dtype=float) + 1)),
    )
    for number, (name, pool, make) in enumerate(arrow_kinds()):
        column = partial(chunks, make=make)
        yield f"Arrow, {name}", pool, ARROW_FRAMES[number % 2](column)
    for number, (name, pool, make) in enumerate(polars_kinds()):
        lazy = number % 2 == 0
        yield f"polars, {name}", pool, partial(in_polars, make=make, lazy=lazy)


KINDS = {name: (pool, build) for name, pool, build in kinds()}


def with_rows(frame, rows):
    """Add the number of each row, and what is the same in all of them."""
    n = len(rows)
    if isinstance(frame, pyarrow.Table):
        whole = pyarrow.array(rows, type=pyarrow.int64())
        return frame.append_column("row", whole).append_column(
            "all", pyarrow.array(["x"] * n, pyarrow.string())
        )
    if isinstance(frame, pd.DataFrame):
        return frame.assign(row=np.array(rows, dtype=np.int64), all=objects(["x"] * n))
    row = polars.Series("row", rows, dtype=polars.Int64)
    return frame.with_columns(row, polars.lit("x").alias("all"))


ROW = Quantity.of("row", (0, MOST_ROWS), 1)
VALUE = Quantity.of("c", (-4, 4), 0.25)
ALL = Domain.from_frame(pd.DataFrame({"all": ["x"]}), by=["all"])
ROWS = Domain.from_frame(pd.DataFrame({"row": range(MOST_ROWS)}), by=["row"])
ADDRESSES = dpt.prefixes("c", bits=[4, 10], notation="ipv4")
INITIALS = dpt.prefixes("c", chars=[1], alphabet="aA1é")
DAYS = {"start": "1970-01-01", "end": "1972-12-31"}
TABLE = pd.DataFrame(
    {"kind": ["x", "y", "x"] * 3, "c": objects([1, "a", True, 0.5, "1", 2**53, "é", 0, "10.0.0.1"])}
)
DERIVED = {
    "cut": dpt.cut("c", [-1, 0, 0.1, 1, 2, 2**53, 2**60]),
    "calendar": dpt.calendar("c", ["year", "month"], **DAYS),
    "zoned calendar": dpt.calendar("c", ["day"], **DAYS, timezone="Europe/Berlin"),
    "mapping": dpt.mapping(TABLE, by=["kind", "c"]),
    "quadtree": dpt.quadtree("c", "row", depth=2, bounds=((-1, 2), (-1, MOST_ROWS))),
    "addresses": [ADDRESSES],
    "bits": [dpt.binary("c", bits=8)],
    "initials": [INITIALS],
}
DOMAINS = {name: derived_domain(by) for name, by in DERIVED.items()}
PUBLIC = [
    "", "a", "a\0", "A", "é", "1", "a" * 40, "\ud800", "2024-02-29", 0, 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1,
    2**64 - 1, 0.1, 0.5, math.inf, True, False, pd.Timestamp(0), pd.Timestamp(1), pd.Timestamp(0, tz="UTC"),
    pd.Timedelta(1), pd.Timedelta(1, "ms"), pd.Period("1970-01", "M"), pd.Interval(0, 1),
]  # fmt: skip
KEYS = Domain.from_frame(pd.DataFrame({"c": objects(PUBLIC)}), by=["c"])
BINS = {
    "bins": Bins.of("c", bounds=(-1, 2), bins=7),
    "bins of times": Bins.of("c", bounds=tuple(pd.to_datetime(["1970-01-01", "2030-01-01"])), bins=99),
    "bins of zoned times": Bins.of(
        "c", bounds=tuple(pd.to_datetime(["1970-01-01", "2030-01-01"], utc=True)), bins=99
    ),
    "bins of durations": Bins.of("c", bounds=tuple(pd.to_timedelta([0, 9], unit="D")), bins=99),
}


def added(frame, domain, *values):
    """Give the leaf of each row that is counted and what it adds."""
    leaf_totals(frame, domain, [ROW, *values])  # checks the types
    tally, places = LeafTally(domain, (ROW, *values)), {}
    for batch in Records(frame, tally.columns).batches():
        rows, inside = tally.read(batch.column)
        own = rows[inside]
        row, *rest = (each.tolist() for each in own.amounts)
        places |= dict(zip(row, zip(own.place.tolist(), *rest, strict=True), strict=True))
    return places


def units_read(frame):
    """Give the words that encode the unit of each row that has one."""
    leaf_totals(frame, ALL, privacy_unit="c", max_contributions=1, random_words=words())  # checks the types
    unit, row = (values_read(frame, *each) for each in (("c", encoded_units), ("row", list)))
    return {place: each for place, each in zip(row, unit, strict=True) if each is not None}


def binned(frame, bins):
    """Give the bin of each row that has one."""
    counts = binned_counts(frame, bins, ROWS)
    return dict(np.argwhere(counts).tolist())


def implicit(frame, tree):
    """Count the rows of each node that holds any."""
    keys, rows = sorted_keys(frame, tree)
    return Counter(dict(zip(keys.tolist(), rows.tolist(), strict=True)))


READERS = {
    "keys": partial(added, domain=KEYS),
    "units": units_read,
    "sums": lambda frame: added(frame, ALL, VALUE),
    **{name: partial(added, domain=domain) for name, domain in DOMAINS.items()},
    **{name: partial(binned, bins=bins) for name, bins in BINS.items()},
    "implicit addresses": partial(implicit, tree=ADDRESSES),
    "implicit initials": partial(implicit, tree=INITIALS),
}


def reading(frame, readers):
    """Tell by reader what it makes of the rows, or why it refuses the column."""
    outcomes = {}
    for name in readers:
        try:
            outcomes[name] = READERS[name](frame)
        except DPTreeError as error:
            outcomes[name] = str(error)
    return outcomes


@cache
def form_alone(kind, place):
    """Give the form of a value in a frame of its own; None for what is no unit."""
    pool, build = KINDS[kind]
    [form] = values_read(build([pool[place]]), "c", partial(forms_of, form_of=unit_form))
    return form


def check_rows(kind, places, n_parts, readers=tuple(READERS)):
    """Check that rows of these places of a pool are read in one frame as they are in several.

    The parts are made by the places, for what is easily confused stands side by side in the pools.
    """
    pool, build = KINDS[kind]
    everyone = range(len(places))
    parts = [[row for row in everyone if places[row] % n_parts == part] for part in range(n_parts)]
    whole, *read_apart = (
        reading(with_rows(build([pool[places[row]] for row in rows]), rows), readers)
        for rows in (everyone, *parts)
    )
    forms = [form_alone(kind, place) for place in places]
    for name, read in whole.items():
        apart = [reading[name] for reading in read_apart]
        if isinstance(read, str):
            assert all(each == read for each in apart), name
            continue
        assert not any(isinstance(each, str) for each in apart), name
        if name == "units":
            assert {*read} == {row for row in everyone if forms[row] is not None}
            unit_of = {forms[row]: unit for row, unit in read.items()}
            assert len(unit_of) == len({*unit_of.values()})
            assert read == {row: unit_of[forms[row]] for row in read}
        if isinstance(read, Counter):
            assert read == sum(apart, Counter()), name
        else:
            assert read == dict(chain.from_iterable(each.items() for each in apart)), name


FIRST, OTHERS = ["keys", "units", "sums"], list(READERS)[3:]


@pytest.mark.parametrize("others", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["half", "other half"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_record_is_read_separately(kind, others):
    """By default by every second of the readers, of which neighbouring kinds have different ones."""
    rng, n_values = np.random.default_rng(others), len(KINDS[kind][0])
    places = [*rng.permutation(n_values), *rng.integers(n_values, size=MOST_ROWS)][:MOST_ROWS]
    readers = [*FIRST, *OTHERS[(list(KINDS).index(kind) + others) % 2 :: 2]]
    check_rows(kind, rng.permutation(places).tolist(), n_parts=2 + others, readers=readers)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
@fewer(3)
@given(places=st.lists(st.integers(0, 999), min_size=1, max_size=MOST_ROWS), n_parts=st.integers(2, 5))
def test_each_of_many_records_is_read_separately(kind, places, n_parts):
    check_rows(kind, [place % len(KINDS[kind][0]) for place in places], n_parts)


@each("kind", ["string", "large_string", "dictionary"])
def test_no_text_of_a_table_of_arrow_fails_the_others(kind):
    """Arrow holds texts of any bytes; only who looks at them finds that they are no text."""
    raw = pyarrow.array([b"a", b"\xff", b"a", b"b", None, b"\xffa"])
    text = pyarrow.Array.from_buffers(pyarrow.string(), len(raw), raw.buffers())
    if kind == "dictionary":
        text = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, 2, 3, None, 4]), text.drop_null())
    elif kind == "large_string":
        text = text.cast(pyarrow.large_string())
    table = pyarrow.table({"k": text, "who": text, "cost": text})
    domain = Domain.from_frame(pd.DataFrame({"k": ["a", "b"]}), by=["k"])
    assert leaf_totals(table, domain)[0].tolist() == [2, 1]
    unit = values_read(table, "who", encoded_units)
    assert unit[0] == unit[2] and len({*unit}) == 5 and unit[4] is None
    sums = dpt.tree_sums(table, ["k"], columns="cost", bounds=(0, 1), epsilon=9000, domain=domain)
    assert sums["cost"].abs().max() < 0.1
