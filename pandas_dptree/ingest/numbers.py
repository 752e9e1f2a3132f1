"""Read columns of any type as numbers, each value separately. Secret: nothing here may leave the package.

No value affects how another one is read: the type of a whole column is never guessed.
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
from pandas_dptree.hierarchy.columns import categories_of, exact, may_hold_numbers, python_values
from pandas_dptree.hierarchy.levels.read_as import Numbers

__all__ = ["check_numbers", "numbers"]

FloatArray = npt.NDArray[np.float64]

_REAL: tuple[type, ...] = (Real, Decimal, np.bool_)


def numbers(column: pd.Series) -> FloatArray:
    """Read each value of a column of any type as a float, NaN if it is no number.

    True is 1; text is read as Python's ``float`` reads it; categories are read by value. Integers that a
    float cannot represent are rounded, or infinite.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = categories_of(column)
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
    if dtype.kind in "mM":  # pandas cannot make an object of each time
        return np.full(len(column), np.nan)
    return _each(column.to_numpy(dtype=object))


def check_numbers(columns: Mapping[Hashable, tuple[Numbers, Any]], argument: str) -> None:
    """Refuse columns of a type without numbers; arguments as for `check_times`."""
    for name, (_, dtype) in columns.items():
        if not may_hold_numbers(dtype):
            raise ColumnsError(
                argument,
                "has no numbers in the columns",
                columns=[name],
                hint="convert them to numbers; `calendar` makes levels of dates.",
            )


def _each(values: Iterable[Any]) -> FloatArray:
    return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    """Read one value; never raises."""
    try:
        return _float(value)
    except Exception:  # accessing an arbitrary object may raise anything
        return math.nan


def _float(value: Any) -> float:
    if isinstance(value, str):
        return float(str.__str__(value))
    number: Any = value if isinstance(value, _REAL) and not isinstance(value, np.timedelta64) else math.nan
    try:
        return float(number)
    except OverflowError:  # an integer or fraction beyond the range of floats is clipped like an infinite one
        return math.inf if value > 0 else -math.inf
