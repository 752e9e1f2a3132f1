"""How the values of a column are to be read: what derived levels ask for, and the readers of records answer.

This is the public side, a description. For each kind, `ingest.readers` has the function that reads a column.
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
"""Stands for a missing time among seconds."""


@dataclass(frozen=True)
class ReadAs:
    """A way to read a column. Each kind tells which arrays the `find` of the levels gets for a column."""


@dataclass(frozen=True)
class Times(ReadAs):
    """Read times, as an array of int64.

    It holds seconds since 1970, on the clocks of the place, or in UTC if there is a time zone; `MISSING`
    where there is no time.

    Attributes
    ----------
    zoned : bool
        Whether times with a time zone are wanted, or times without.
    format : str or None
        How text is written, in the codes of ``datetime.datetime.strptime``; None for ISO 8601.
    """

    zoned: bool = False
    format: str | None = None


@dataclass(frozen=True)
class Numbers(ReadAs):
    """Read numbers, as an array of float64: NaN where there is none."""


@dataclass(frozen=True, eq=False)
class Labels(ReadAs):
    """Look values up in a public list, as an array of int64.

    It holds their places there: -1 for a missing value, -2 for one that is not listed.

    Attributes
    ----------
    labels : pandas.Index
        The list.
    forms : sequence of hashable
        Their canonical forms, by which keys are compared.
    """

    labels: pd.Index
    forms: Sequence[Hashable]


@dataclass(frozen=True)
class WholeNumbers(ReadAs):
    """Read whole numbers of so many bits, as an array of uint64, and one of bool that tells which are some.

    Attributes
    ----------
    width : int
        How many bits a number has, 64 at most.
    addresses : bool
        Whether texts are read as IPv4 addresses.
    """

    width: int
    addresses: bool = False


@dataclass(frozen=True)
class Texts(ReadAs):
    """Read texts, as an array that encodes them, and one of bool that tells which could be encoded.

    Attributes
    ----------
    encode : callable
        Turns a list of texts into the two arrays, each text separately.
    """

    encode: Callable[[Sequence[str]], tuple[Keys, npt.NDArray[np.bool_]]]
