"""Keys of a column of a public table, numbered in order: tens of millions of numbers or texts in arrays."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.columns import exact, text_column
from pandas_dptree.hierarchy.forms import ArrayForms
from pandas_dptree.hierarchy.values import canonical_codes

__all__ = ["sorted_keys"]

IntArray = npt.NDArray[np.int64]

_SAMPLE = 2**16
"""Values that tell whether most of a column are different."""

_DIFFERENT = 0.9
"""Share of the sample: from here on, sorting all values takes less memory than a table of the distinct ones,
and for numbers less time."""

_TEXT_OR_MISSING = {str, float, type(None), type(pd.NA), type(pd.NaT)}


def sorted_keys(column: pd.Series) -> tuple[IntArray, Sequence[Hashable]]:
    """Return what ``canonical_codes(column, sort=True)`` returns, in less memory."""
    numbered = None
    if not isinstance(column.dtype, pd.CategoricalDtype):
        values = exact(column)
        dtype: Any = values.dtype
        if dtype.kind in "iu":
            numbered = _number_integers(values)
        elif dtype in (np.dtype(np.float32), np.dtype(np.float64)):
            numbered = pd.factorize(values.to_numpy(), sort=True)
        elif (texts := _texts(values)) is not None:
            numbered = _number_texts(texts)
    if numbered is None:
        codes, keys = canonical_codes(column, sort=True)
        return codes, tuple(keys)
    return numbered[0], ArrayForms(numbered[1])


def _number_integers(column: pd.Series) -> tuple[IntArray, npt.NDArray[Any]]:
    dtype: Any = column.dtype
    if isinstance(dtype, np.dtype):
        return _number(column.to_numpy())
    missing = column.isna().to_numpy()
    values = column.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
    if not missing.any():
        return _number(values)
    codes = np.full(len(values), -1)
    codes[~missing], distinct = _number(values[~missing])
    return codes, distinct


def _number(values: npt.NDArray[Any]) -> tuple[IntArray, npt.NDArray[Any]]:
    """Number whole numbers in order; return the distinct ones."""
    sample = values[:: len(values) // _SAMPLE + 1]
    if len(pd.unique(sample)) < _DIFFERENT * len(sample):
        return pd.factorize(values, sort=True)
    order = np.argsort(values)
    ordered = values[order]
    first = np.append(np.ones(min(1, len(values)), dtype=bool), ordered[1:] != ordered[:-1])
    return _ranks(first, order, len(values)), ordered if first.all() else ordered[first]


def _texts(column: pd.Series) -> Any:
    """Return an Arrow array of the texts of a column; None if it may hold anything else."""
    dtype: Any = column.dtype
    if dtype == np.dtype(object):
        values = column.to_numpy()
        text = text_column(values) if set(map(type, values)) <= _TEXT_OR_MISSING else None
    else:
        text = column if isinstance(dtype, pd.StringDtype) else None
    if text is None:
        return None
    native = text.array.__arrow_array__().cast("large_string")
    texts = native.chunk(0) if native.num_chunks == 1 else native.combine_chunks()
    try:
        texts.validate(full=True)  # Arrow does not check that texts are UTF-8
    except Exception:
        return None
    return texts


def _number_texts(texts: Any) -> tuple[IntArray, Any]:
    """Number texts in an Arrow array in order; return the distinct ones.

    The order of the bytes of UTF-8, which Arrow compares, is that of the code points, which Python compares.
    """
    sample = texts[:: len(texts) // _SAMPLE + 1]
    if len(sample.unique()) < _DIFFERENT * len(sample):
        encoded = texts.dictionary_encode()
        ranks, distinct = _sorted_texts(encoded.dictionary)
        places = encoded.indices.fill_null(len(ranks)).to_numpy(zero_copy_only=False)
        return np.append(ranks, -1)[places], distinct
    return _sorted_texts(texts)


def _sorted_texts(texts: Any) -> tuple[IntArray, Any]:
    compute = importlib.import_module("pyarrow.compute")
    order = compute.array_sort_indices(texts)[: len(texts) - texts.null_count]  # missing values come last
    ordered = texts.take(order)
    first = np.append(
        np.ones(min(1, len(ordered)), dtype=bool),
        compute.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False),
    )
    codes = _ranks(first, order.to_numpy(), len(texts))
    return codes, ordered if first.all() else ordered.filter(first)


def _ranks(first: npt.NDArray[np.bool_], order: npt.NDArray[Any], n: int) -> IntArray:
    """Number values by their order, in which `first` marks the first of equal ones; -1 for all others."""
    codes = np.full(n, -1)
    codes[order] = np.cumsum(first) - 1
    return codes
