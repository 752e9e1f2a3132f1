"""Public descriptions of how the values of a column are read, as derived levels require it.

For each kind, `ingest.readers` has the function that reads a column.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["MISSING", "Keys", "Labels", "Numbers", "ReadAs", "Texts", "Times", "WholeNumbers"]

Keys = npt.NDArray[Any]

MISSING = np.iinfo(np.int64).min
"""Represents a missing time among seconds."""


@dataclass(frozen=True)
class ReadAs:
    """How to read a column. Each kind defines the arrays that the `find` of the levels receives for it."""


@dataclass(frozen=True)
class Times(ReadAs):
    """Read times as an int64 array of seconds since 1970: local time without a time zone, else UTC.

    Values that are no time are `MISSING`. The format of text is None for ISO 8601.
    """

    zoned: bool = False
    format: str | None = None


@dataclass(frozen=True)
class Numbers(ReadAs):
    """Read numbers as a float64 array: NaN for values that are not numbers."""


@dataclass(frozen=True, eq=False)
class Labels(ReadAs):
    """Look values up in a public list: an int64 array of positions, -1 if missing, -2 if not listed."""

    labels: pd.Index
    forms: Sequence[Hashable]


@dataclass(frozen=True)
class WholeNumbers(ReadAs):
    """Read whole numbers as a uint64 array, and a bool array that is False for all other values."""

    width: int
    addresses: bool = False


@dataclass(frozen=True)
class Texts(ReadAs):
    """Read texts as an array of encoded texts, and a bool array that is False where that is impossible.

    `encode` turns a list of texts into the two arrays, each text separately.
    """

    encode: Callable[[Sequence[str]], tuple[Keys, npt.NDArray[np.bool_]]]
