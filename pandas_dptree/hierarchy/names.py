"""Names of keys and levels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, quote

__all__ = ["RESERVED_NAMES", "ROOT", "check_by"]

ROOT = "total"
"""Name of the level above the first key."""

RESERVED_NAMES = (
    "level", "count", "std_error", "lower", "upper", "measurement", "noise_scale", "excess_measurement",
    "excess_noise_scale", "error_bound", ROOT,
)  # fmt: skip
"""Names that a release uses itself; no key may have one of them."""


def check_by(by: Sequence[Hashable], *, argument: str = "by") -> tuple[Hashable, ...]:
    """Check the names of the keys, from the coarsest to the finest; a single one needs no list."""
    if isinstance(by, str) or (by is not None and pd.api.types.is_scalar(by)):
        by = [by]
    if not isinstance(by, (Sequence, pd.Index, np.ndarray)):
        raise ArgumentError(
            argument,
            f"must be a list of column names, from coarse to fine, not {quote(by)}.",
            hint=f'for example {argument}=["state", "county", "city"].',
        )
    names = tuple(by)
    odd = [name for name in names if not isinstance(name, Hashable) or name != name]
    if odd:
        raise ColumnsError(
            argument, "holds values that cannot name a column", columns=odd, hint="name one column per level."
        )
    if not names:
        raise ArgumentError(
            argument, "names no column.", hint=f'for example {argument}=["state", "county", "city"].'
        )
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise ColumnsError(argument, "names columns twice", columns=repeated, hint="name each column once.")
    reserved = [name for name in names if name in RESERVED_NAMES]
    if reserved:
        raise ColumnsError(
            argument,
            "has names that the released table uses itself",
            columns=reserved,
            hint="rename the columns in the records and in the domain.",
        )
    return names
