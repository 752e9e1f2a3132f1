"""Columns of any type → numbers, each value separately. Secret: nothing here may leave the package.

No value has a say in how another one is read: there is no guess at the type of a whole column.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.columns import exact, may_hold_numbers, python_values
from pandas_dptree.hierarchy.levels.read_as import Numbers

__all__ = ["check_numbers", "numbers"]

FloatArray = npt.NDArray[np.float64]

_REAL: tuple[type, ...] = (Real, Decimal, np.bool_)


def numbers(column: pd.Series) -> FloatArray:
    """Read the values of a column as numbers.

    Parameters
    ----------
    column : pandas.Series
        Of any type. Numbers stand for themselves, true is 1; text is read as Python's ``float`` reads it;
        categories are read as their values.

    Returns
    -------
    numpy.ndarray of float64, shape (len(column),)
        NaN where there is no number. Whole numbers that a float cannot hold are rounded, or infinite.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = column.cat.categories.to_series()
        return np.append(numbers(categories), np.nan)[column.cat.codes.to_numpy()]
    column = exact(column)
    dtype: Any = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iufb":
        return column.to_numpy(dtype=np.float64)
    if dtype.kind in "iufb":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(dtype, pd.StringDtype):
        place, texts = pd.factorize(column)
        return np.append(_each(python_values(texts)), np.nan)[place]
    return _each(column.to_numpy(dtype=object))


def check_numbers(columns: Mapping[Hashable, tuple[Numbers, Any]], argument: str) -> None:
    """Refuse columns whose type tells that no value is a number, of which a level could be made.

    Parameters
    ----------
    columns : mapping
        For the name of each column, its pandas or narwhals data type, as the second of a pair.
    argument : str
        Where the columns stand.

    Raises
    ------
    ColumnsError
    """
    for name, (_, dtype) in columns.items():
        if not may_hold_numbers(dtype):
            raise ColumnsError(
                argument,
                "has no numbers to be cut in the columns",
                columns=[name],
                hint="convert them to numbers; `calendar` makes levels of dates.",
            )


def _each(values: Iterable[Any]) -> FloatArray:
    return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    """Read one value; whatever it is, it does not raise."""
    try:
        return _float(value)
    except Exception:  # an object may do anything when it is looked at
        return math.nan


def _float(value: Any) -> float:
    if isinstance(value, str):
        return float(str.__str__(value))
    number: Any = value if isinstance(value, _REAL) and not isinstance(value, np.timedelta64) else math.nan
    try:
        return float(number)
    except OverflowError:  # a whole number or fraction beyond all floats is clipped like an infinite one
        return math.inf if value > 0 else -math.inf
