"""The quantities to add up, made from the arguments of a call."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, is_name, quote
from pandas_dptree.privacy.quantity import Quantity

__all__ = ["quantities_of", "quantity_of"]


def quantity_of(column: Hashable, bounds: Any, granularity: Any) -> Quantity:
    """Describe one column to add up."""
    if bounds is None:
        raise ArgumentError(
            "bounds",
            f"must be given for the column {quote(column)}: they limit how much a row can change its sum.",
            hint="for example bounds=(0, 500), known without looking at the records.",
        )
    return Quantity.of(column, bounds, granularity)


def quantities_of(columns: Any, bounds: Any, granularity: Any) -> list[Quantity]:
    """Describe the columns to add up; bounds and granularity may be mappings with an entry for each."""
    names = list(columns) if isinstance(columns, (list, pd.Index, np.ndarray)) else [columns]
    if not names:
        raise ArgumentError("columns", "names no column.", hint='for example "cost", or ["cost", "days"].')
    invalid = [name for name in names if name is None or not is_name(name)]
    if invalid:
        raise ColumnsError(
            "columns",
            "holds values that cannot name a column",
            columns=invalid,
            hint='for example ["cost", "days"].',
        )
    repeated = [name for position, name in enumerate(names) if name in names[:position]]
    if repeated:
        raise ColumnsError("columns", "names columns twice", columns=repeated, hint="name each column once.")
    own = {"bounds": bounds, "granularity": granularity}
    for argument, given in own.items():
        mismatched = set(names) ^ set(given) if isinstance(given, Mapping) else set()
        if mismatched:
            raise ColumnsError(
                argument, "must have an entry for each column and no other", columns=mismatched,
                hint="pass a mapping with all columns, or one value for all of them.",
            )  # fmt: skip
    return [
        quantity_of(name, *(given[name] if isinstance(given, Mapping) else given for given in own.values()))
        for name in names
    ]
