"""Cells of an array are read by rule: bad, huge and fractional counts."""

import numpy as np
import pytest
import xarray as xr

from pandas_dptree import ArgumentError
from pandas_dptree.ingest.cells import sum_cells
from pandas_dptree.privacy.quantity import COUNT
from tests.helpers_arrays import EXACT, level
from tests.helpers_cases import each

BAD = np.array([-3, np.nan, 2.9, np.inf, -np.inf, 4])


def test_bad_counts_are_read_by_rule_and_without_a_warning() -> None:
    array = xr.DataArray(BAD, dims=["place"])
    tree = array.dp.tree_counts(["place"], epsilon=EXACT)
    counts = level(tree, "place")["count"].values.tolist()
    assert counts == [0, 0, 3, 2**53, 0, 4]


@each("dtype", ["int8", "uint8", "int32", "uint64", "int64", "float16", "float32", "bool"])
def test_types_of_counts(dtype: str) -> None:
    array = xr.DataArray(np.array([0, 1, 1]).astype(dtype), dims=["place"])
    assert level(array.dp.tree_counts(["place"], epsilon=EXACT), "place")["count"].values.tolist() == [
        0,
        1,
        1,
    ]


@each("dtype, whole", [("float16", 2**11), ("float32", 2**24), ("float64", 2**53), ("longdouble", 2**53)])
def test_a_record_more_moves_a_count_in_floats_by_one_at_most(dtype: str, whole: int) -> None:
    true = np.array([*range(whole - 5, whole + 40), *range(2 * whole - 5, 2 * whole + 40)], dtype=object)
    read = sum_cells(
        xr.DataArray(true.astype(dtype), dims=["cell"]), ["cell"], np.arange(len(true)), len(true), COUNT
    )
    assert set(np.diff(read)) == {0, 1}
    assert read[:6].tolist() == true[:6].tolist()


def test_huge_counts_do_not_overflow() -> None:
    array = xr.DataArray(np.full((2, 3), 2**64 - 1, dtype=np.uint64), dims=["a", "place"])
    tree = array.dp.tree_counts(["place"], epsilon=EXACT)
    assert (level(tree, "total")["count"] > 0).all()


@each("dtype", ["int64", "uint64", "float64"])
@each("n", [1, 3, 4, 5, 1024])
def test_sums_of_the_largest_counts_never_wrap_around(dtype: str, n: int) -> None:
    for most in (2**61, 2**63 - 1024):  # both are floats
        array = xr.DataArray(np.full(n, most).astype(dtype), dims=["cell"])
        one_leaf = sum_cells(array, ["cell"], np.zeros(n, dtype=int), 1, COUNT)
        leaves = sum_cells(array, ["cell"], np.arange(n), n, COUNT)
        assert one_leaf.tolist() == [leaves.sum()]
        assert 0.999 * min(2**61, n * 2**53) <= one_leaf[0] <= 2**61


@each("values", [np.array(["a", "b"]), np.array([1, None], dtype=object), np.array([1j, 2])])
def test_cells_of_a_type_that_holds_no_numbers(values: np.ndarray) -> None:
    with pytest.raises(ArgumentError, match="must hold numbers"):
        xr.DataArray(values, dims=["place"]).dp.tree_counts(["place"], epsilon=1.0)


@each("dtype", [np.float16, np.float32, np.float64])
def test_fractions_are_rounded_and_one_record_moves_a_whole_count_by_one(dtype: type) -> None:
    largest = 2 ** (np.finfo(dtype).nmant + 1)
    whole = np.array([0, 1, 2, 1000, largest - 2, largest - 1, largest])
    read = sum_cells(xr.DataArray(whole.astype(dtype), dims="cell"), ["cell"], np.arange(7), 7, COUNT)
    assert read.tolist() == whole.tolist()
    cells = xr.DataArray(np.array([0.25, 0.5, 1.5, 2.9975586, 3.0019531], dtype=dtype), dims="cell")
    assert sum_cells(cells, ["cell"], np.arange(5), 5, COUNT).tolist() == [0, 1, 2, 3, 3]
    assert sum_cells(cells + dtype(1), ["cell"], np.arange(5), 5, COUNT).tolist() == [1, 2, 3, 4, 4]
