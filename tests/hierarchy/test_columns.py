"""Columns of Arrow and polars, brought into pandas without changing a value."""

from decimal import Decimal

import narwhals as nw
import pandas as pd
import pytest

from pandas_dptree.hierarchy.columns import decoded, kind_of, to_pandas
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes


def arrow_columns():
    pyarrow = pytest.importorskip("pyarrow")
    day, far = 86_400_000, 2**55 // 86_400_000 * 86_400_000
    columns = {
        pyarrow.date32(): ([2**31 - 1, 1], [("time", (2**31 - 1) * day * 10**6), ("time", day * 10**6)]),
        pyarrow.date64(): ([far, day], [("time", far * 10**6), ("time", day * 10**6)]),
        pyarrow.timestamp("s"): ([2**61, 1], [("time", 2**61 * 10**9), ("time", 10**9)]),
        pyarrow.timestamp("ns"): ([2**62 + 1, 1], [("time", 2**62 + 1), ("time", 1)]),
        pyarrow.timestamp("s", "Asia/Tokyo"): ([2**61], [("zoned time", 2**61 * 10**9)]),
        pyarrow.duration("s"): ([2**61], [("duration", 2**61 * 10**9)]),
        pyarrow.time64("ns"): ([1000], [UNKNOWN]),
        pyarrow.float64(): ([float("nan"), -0.0, 0.5], [None, 0, 0.5]),
        pyarrow.float32(): ([float("nan"), 0.5], [None, 0.5]),
        pyarrow.uint64(): ([2**64 - 1], [2**64 - 1]),
        pyarrow.decimal128(5, 2): ([Decimal("1.50"), Decimal("2")], [UNKNOWN, UNKNOWN]),
        pyarrow.binary(): ([b"a"], [UNKNOWN]),
        pyarrow.large_string(): (["a", ""], ["a", ""]),
        pyarrow.bool_(): ([True, False], [("boolean", True), ("boolean", False)]),
        pyarrow.list_(pyarrow.int64()): ([[1], []], [UNKNOWN, UNKNOWN]),
        pyarrow.struct([("a", pyarrow.int64())]): ([{"a": 1}], [UNKNOWN]),
    }
    for kind, (values, forms) in columns.items():
        yield pyarrow.array([*values, None], type=kind), [*forms, None]


def test_no_value_of_arrow_is_too_much_for_pandas():
    """Some of these lie beyond what Python can express; one such record must not fail the others."""
    pyarrow = pytest.importorskip("pyarrow")
    for array, forms in arrow_columns():
        columns = [
            pd.Series(pd.array(array, dtype=pd.ArrowDtype(array.type))),
            to_pandas(nw.from_native(pyarrow.chunked_array([array]), series_only=True)),
        ]
        for column in columns:
            codes, keys = canonical_codes(column)
            assert [None if code < 0 else keys[code] for code in codes] == forms, array.type


def test_a_dictionary_of_arrow_is_written_out():
    pyarrow = pytest.importorskip("pyarrow")
    array = pyarrow.DictionaryArray.from_arrays(pyarrow.array([1, None]), pyarrow.array([7, 8]))
    column = pd.Series(pd.arrays.ArrowExtensionArray(pyarrow.chunked_array([array])))
    assert kind_of(column.dtype) == "numbers"
    assert canonical_codes(column)[1] == [8]
    assert "dictionary" not in str(decoded(column).dtype)


def test_polars_keeps_nanoseconds_and_wide_numbers():
    polars = pytest.importorskip("polars")
    for dtype, forms in {
        polars.Datetime("ns"): [("time", 2**62 + 1), ("time", 1)],
        polars.Datetime("ns", "Asia/Tokyo"): [("zoned time", 2**62 + 1), ("zoned time", 1)],
        polars.Datetime("ms"): [("time", (2**62 + 1) * 10**6), ("time", 10**6)],
        polars.Duration("ns"): [("duration", 2**62 + 1), ("duration", 1)],
        polars.Int128: [2**62 + 1, 1],
    }.items():
        column = polars.Series([2**62 + 1, 1, None]).cast(dtype)
        codes, keys = canonical_codes(to_pandas(nw.from_native(column, series_only=True)))
        assert keys == forms and codes.tolist() == [0, 1, -1]
