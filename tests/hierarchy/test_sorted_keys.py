"""Keys numbered in order, in arrays."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.hierarchy import columns as columns_module
from pandas_dptree.hierarchy import sorted_keys as sorted_keys_module
from pandas_dptree.hierarchy.forms import ArrayForms
from pandas_dptree.hierarchy.sorted_keys import sorted_keys
from pandas_dptree.hierarchy.values import canonical_codes
from tests.strategies import ODD_VALUES, fewer, objects, zoo

MISSING = [None, np.nan, pd.NA, pd.NaT]


def check(column):
    """Compare with the slow way, for which every key is an object."""
    codes, keys = sorted_keys(column)
    expected, forms = canonical_codes(column, sort=True)
    assert codes.tolist() == expected.tolist() and codes.dtype == np.int64
    assert list(keys) == forms and list(map(type, keys)) == list(map(type, forms))
    return keys


@given(values=st.lists(zoo(), max_size=8))
def test_odd_objects_are_numbered_as_ever(values):
    check(objects(values))


@given(values=st.lists(st.text(max_size=3) | st.sampled_from([*MISSING, "a\0", "\ud800", "é", "e\u0301"])))
def test_texts_are_numbered_as_ever(values):
    check(objects(values))


@pytest.mark.parametrize("all_sorted", [True, False])
@given(values=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3) | st.none(), max_size=8))
def test_texts_in_arrow_are_numbered_as_ever(all_sorted, values):
    arrow = pytest.importorskip("pyarrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_keys_module, "_DIFFERENT", 0.0 if all_sorted else 2.0)
        for column in (
            pd.Series(values, dtype="string[pyarrow]"),
            pd.Series(values, dtype=pd.ArrowDtype(arrow.string())),
            pd.Series(values, dtype=pd.ArrowDtype(arrow.string())).astype(
                pd.ArrowDtype(arrow.dictionary(arrow.int32(), arrow.string()))
            ),
        ):
            assert isinstance(check(column), ArrayForms)
            assert isinstance(check(pd.concat([column, column[:2]], ignore_index=True)), ArrayForms)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint64", "Int64", "UInt8", "float64", "float32"])
@fewer(2)
@given(values=st.lists(st.integers(0, 100), max_size=8), missing=st.lists(st.booleans(), min_size=8))
def test_numbers_are_numbered_as_ever(dtype, values, missing):
    column = pd.Series(values, dtype=dtype)
    if not dtype.startswith(("int", "uint")):
        column[[absent for absent, _ in zip(missing, values, strict=False)]] = None
    for different in (0.0, 2.0):  # all are sorted, or only the distinct ones
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sorted_keys_module, "_DIFFERENT", different)
            assert isinstance(check(column), ArrayForms)


def test_the_largest_numbers_and_both_zeros():
    check(pd.Series([2**64 - 1, 0, 2**63], dtype=np.uint64))
    check(pd.Series([2**63 - 1, None, -(2**63)], dtype="Int64"))
    assert str(list(check(pd.Series([-0.0, 0.0, 1.0])))) == "[-0.0, 1.0]"


def test_texts_that_are_not_utf8_are_bytes():
    arrow = pytest.importorskip("pyarrow")
    buffers = [None, arrow.py_buffer(np.array([0, 1, 2], dtype=np.int32)), arrow.py_buffer(b"b\xff")]
    invalid = arrow.Array.from_buffers(arrow.string(), 2, buffers)
    assert not isinstance(check(columns_module.arrow_column(arrow.chunked_array([invalid]))), ArrayForms)


def test_other_columns_have_a_tuple_of_forms():
    for column in (objects(ODD_VALUES), pd.Series(["b", "a"], dtype="category"), pd.Series([True, False])):
        assert isinstance(check(column), tuple)


def test_without_arrow_texts_are_objects(monkeypatch):
    def absent(name="pyarrow"):
        raise ImportError(name)

    monkeypatch.setattr(columns_module, "_arrow", absent)
    assert check(objects(["b", "a", None, "b"])) == ("a", "b")
