"""Columns of public tables as the labels of keys."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ColumnsError, kind_of_object, quote
from pandas_dptree.hierarchy.columns import decoded, python_values
from pandas_dptree.hierarchy.forms import ArrayForms
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes, key_form

__all__ = ["check_keys", "drop_unused", "labels_of_keys", "read_flags"]

BoolArray = npt.NDArray[np.bool_]


def read_flags(name: Hashable, column: pd.Series) -> BoolArray:
    """Read a column of true and false, of any type."""
    codes, forms = canonical_codes(column)
    if not set(forms) <= {("boolean", True), ("boolean", False)} or (codes < 0).any():
        raise ColumnsError(
            "structural_zeros",
            "must be true or false in every row of the column",
            columns=[name],
            hint="convert it to booleans and fill missing values with False.",
        )
    return np.array([form == ("boolean", True) for form in forms], dtype=bool)[codes]


def drop_unused(column: pd.Series) -> pd.Series:
    """Remove categories that do not occur: they may come from elsewhere."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.remove_unused_categories()
    return decoded(column)


def check_keys(
    argument: str,
    by: Sequence[Hashable],
    columns: Sequence[pd.Series],
    forms: Sequence[Sequence[Hashable]],
) -> None:
    """Refuse labels that are no keys, since each would equal every other value that is no key."""
    odd = {
        name: next(label for label in python_values(column) if key_form(label) == UNKNOWN)
        for name, column, known in zip(by, columns, forms, strict=False)
        if UNKNOWN in known
    }
    if odd:
        kinds = ", ".join(f"{quote(name)} holds {kind_of_object(label)}" for name, label in odd.items())
        raise ColumnsError(
            argument,
            f"has labels of a type that cannot be a key ({kinds})",
            columns=odd,
            hint="turn them into text, numbers or dates.",
        )


def labels_of_keys(column: pd.Series, codes: IntArray, forms: Sequence[Hashable]) -> pd.Index:
    """Return each key as it first occurs in the column."""
    labels: pd.Index[Any]
    dtype: Any = column.dtype
    if isinstance(forms, ArrayForms):  # where equal values are the same, the labels share their memory
        if isinstance(dtype, np.dtype) and dtype.kind in "iu":
            labels = pd.Index(forms.array, copy=False)
            return labels
        if isinstance(column.dtype, pd.StringDtype) and dtype.storage != "python":
            labels = pd.Index(dtype.__from_arrow__(forms.array))
            return labels
    row = np.zeros(len(forms) + 1, dtype=np.int64)  # the last is that of missing keys
    row[codes[::-1]] = np.arange(len(codes))[::-1]
    first = column.iloc[row[:-1]]
    # Objects stay as they are: pandas would guess a type.
    is_object = first.dtype == np.dtype(object)
    labels = pd.Index(first.array, dtype=object) if is_object else pd.Index(first.array)
    return labels
