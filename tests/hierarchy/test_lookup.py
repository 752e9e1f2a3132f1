"""Tables of labels find what `located` finds, in columns of every type."""

import datetime
import pickle
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.hierarchy import columns as columns_module
from pandas_dptree.hierarchy import lookup as lookup_module
from pandas_dptree.hierarchy.lookup import Lookup
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes, located
from tests.helpers_cases import each
from tests.strategies import Flatterer, fewer, objects, zoo

pyarrow = pytest.importorskip("pyarrow")

LARGE = [-(2**63), 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**53, 2**53 + 1, -1, 0, 1, 10**30]
TEXTS = ["", "a", "a\0", "\0", "é", "a" * 8, "a" * 9, "a" * 16, "a" * 40, "a" * 39 + "b", "\ud800", "1", "b"]
ODD = [b"\xff", b"a", b"\xed\xa0\x80", b"", True, datetime.date(2024, 2, 29), (1, "a"), None]
LABELS = [*LARGE, *TEXTS, *ODD, 0.5, -0.0, 1e300, np.inf, Fraction(1, 3), Decimal("0.1"), 2.0**63, 2.0**64]


def forms_of(values):
    """The distinct canonical forms of values, as a domain has them."""
    return [form for form in canonical_codes(objects(values))[1] if form != UNKNOWN]


def lists_of(values):
    return st.lists(st.sampled_from(values), max_size=30)


def check(column, forms):
    """Check that both ways agree, on the column and on its parts."""
    labels = Lookup(forms)
    for part in (column, column[3:], column[:0]):
        assert labels.codes(part).tolist() == located(part, forms).tolist()


@settings(derandomize=True)
@given(
    labels=st.lists(st.one_of(zoo(), st.sampled_from(LABELS)), max_size=12),
    values=st.lists(zoo(), max_size=12),
)
def test_objects_of_all_kinds(labels, values):
    check(objects([*values, *labels[:3]]), forms_of(labels))


def arrow_text(values, kind):
    """A column of Arrow's text, of bytes that need not be text."""
    raw = [None if value is None else value.encode("utf-8", "surrogatepass") for value in values]
    large = pyarrow.array(raw, type=pyarrow.large_binary())
    native = (
        large.view(pyarrow.large_string())
        if kind.startswith("large")
        else large.cast("binary").view("string")
    )
    if kind.endswith("dictionary"):
        native = native.dictionary_encode()
    if kind.endswith("view"):
        native = native.cast(pyarrow.string_view())
    return columns_module.arrow_column(pyarrow.chunked_array([native[:5], native[5:7], native[7:]]))


@pytest.mark.parametrize("per_label", [0, 1e-9], ids=["own table", "Arrow's table"])
@pytest.mark.parametrize("kind", ["string", "large", "dictionary", "large dictionary", "view"])
@fewer(2, derandomize=True)
@given(labels=lists_of(LABELS), values=lists_of([*TEXTS, *TEXTS[:10], None, "nowhere", "z" * 100]))
def test_texts_of_arrow(per_label, kind, labels, values):
    """In our table and in that of Arrow; a lone surrogate stands for its bytes."""
    if kind == "view":
        values = [value for value in values if value != "\ud800"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup_module, "_PER_LABEL", per_label)
        check(arrow_text(values, kind), forms_of(labels))


@settings(derandomize=True)
@given(labels=lists_of(LABELS), values=lists_of([*TEXTS[:10], None, "nowhere"]))
def test_texts_of_pandas(labels, values):
    for dtype in ("str", "string", "string[pyarrow]", "category", "string[python]"):
        check(pd.Series(values, dtype=dtype), forms_of(labels))


INTEGERS = [
    "int8",
    "int64",
    "uint8",
    "uint64",
    "Int16",
    "Int64",
    "UInt64",
    "int64[pyarrow]",
    "uint64[pyarrow]",
]


@pytest.mark.parametrize("dtype", INTEGERS)
@fewer(2, derandomize=True)
@given(data=st.data())
def test_whole_numbers(dtype, data):
    """In tables of a narrow and of a wide range, also of labels that are floats."""
    bits = np.iinfo(dtype.lower().split("[")[0])
    numbers = [number for number in range(-3, 12) if number >= bits.min]
    numbers += [number for number in LARGE if bits.min <= number <= bits.max]
    labels = data.draw(lists_of([*LABELS, *range(-3, 12), 7.0, Fraction(8), Decimal(9)]))
    missing = [] if dtype in ("int8", "int64", "uint8", "uint64") else [None]
    values = data.draw(lists_of([*numbers, *missing]))
    check(pd.Series(values, dtype=dtype), forms_of(labels))
    check(pd.Series(values, dtype=dtype), forms_of(range(-2, 9)))


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "Float32", "Float64", "double[pyarrow]", "float128"]
)
@fewer(2, derandomize=True)
@given(
    labels=lists_of([*LABELS, 1, 2, 3, 0.1]),
    values=lists_of([0.0, -0.0, 1.0, 2.5, 0.1, np.nan, np.inf, 2.0**53, 2.0**63, 5e-324]),
)
def test_floats(dtype, labels, values):
    if dtype == "float128" and not hasattr(np, "float128"):
        pytest.skip("numpy has no such type here")
    with np.errstate(over="ignore"):
        column = pd.Series(np.array(values), dtype=dtype) if values else pd.Series([], dtype=dtype)
    check(column, forms_of(labels))


@each("dtype", ["boolean", "bool[pyarrow]", "datetime64[ns]", "datetime64[s, UTC]", "timedelta64[us]"])
def test_other_types(dtype):
    column = pd.Series([1, 0, None, 1], dtype="Int64").astype(object).where(lambda x: x.notna(), None)
    column = (
        pd.Series([None if value is None else bool(value) for value in column]) if "bool" in dtype else column
    )
    column = column.astype(dtype)
    check(column, forms_of(column))
    check(column, forms_of(column[:1]))


def test_objects_that_are_shared_by_many_rows():
    """They are looked up by their addresses, whatever stride the array has."""
    values = np.array(["a", Flatterer("b"), 1, None, b"a", "a\0", 1.0, np.nan], dtype=object)
    rows = np.random.default_rng(0).integers(0, len(values), 1000)
    block = np.stack([values[rows], values[rows]], axis=1)
    forms = forms_of(["b", b"a", 1, "a"])
    for column in (pd.Series(values[rows], dtype=object), pd.Series(block[:, 1], dtype=object)):
        check(column, forms)


def test_objects_need_no_arrow(monkeypatch):
    def missing(*name):
        raise ImportError

    monkeypatch.setattr(columns_module, "_arrow", missing)
    check(objects([*TEXTS, None, "nowhere"] * 3), forms_of(LABELS))


def test_tables_are_made_once_and_are_not_sent():
    labels = Lookup([f"label {i}" for i in range(1000)])
    columns = [pd.Series([f"label {i}" for i in range(part, 1000, 4)], dtype="str") for part in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(labels.codes, columns))
    assert [codes.tolist() for codes in found] == [list(range(part, 1000, 4)) for part in range(4)]
    assert labels._tables is labels._tables
    sent = pickle.loads(pickle.dumps(labels))
    assert vars(sent) == {"forms": labels.forms}
    assert sent.codes(columns[1]).tolist() == found[1].tolist()
