"""Paths of codes, one per leaf, packed into one number each and sorted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Level", "Paths"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_LARGEST = 2**62
"""Packed paths stay below this, so that a bit is left for a flag."""


class Level(NamedTuple):
    """One level of sorted paths.

    `begins`, shape (n_paths,): whether each path differs from the previous one down to this level, so that a
    node begins. `missing`, shape (n_paths,): whether it has ended above. `codes`: that of each node.
    """

    begins: BoolArray
    missing: BoolArray
    codes: IntArray


class Paths:
    """Paths of codes, given a level at a time from the coarsest.

    The codes are the digits of one number, replaced by its rank where it grows too large, so that sorting the
    numbers sorts the paths.
    """

    def __init__(self) -> None:
        self._packed: IntArray | None = None
        self._n_prefixes = 1
        self._widths: list[int] = []
        self._ranked: list[tuple[IntArray, list[int]]] = []  # the distinct numbers, and their widths

    def append(self, codes: IntArray, n_codes: int) -> None:
        """Add the codes of the next level, shape (n_paths,), from -1 (missing) to below `n_codes`."""
        width = n_codes + 1
        if self._packed is None:
            self._packed = codes + 1
        else:
            if self._n_prefixes * math.prod(self._widths) * width > _LARGEST:
                distinct, self._packed = np.unique(self._packed, return_inverse=True)
                self._ranked.append((distinct, self._widths))
                self._n_prefixes, self._widths = len(distinct), []
            self._packed *= width
            self._packed += codes
            self._packed += 1
        self._widths.append(width)

    def sort(self, flags: BoolArray | None = None) -> BoolArray | None:
        """Sort the paths, with one flag of each if there are any, which are returned in that order."""
        assert self._packed is not None
        if flags is None:
            self._packed.sort()
            return None
        self._packed *= 2
        self._packed += flags
        self._packed.sort()
        flags = (self._packed & 1).astype(bool)
        self._packed >>= 1
        return flags

    def levels(self) -> Iterator[Level]:
        """Yield the levels of the sorted paths, from the coarsest."""
        assert self._packed is not None
        parts = [(self._packed, self._widths)]
        for distinct, widths in reversed(self._ranked):
            packed, below = parts[-1]
            parts.append((distinct[packed // math.prod(below)], widths))
        for packed, widths in reversed(parts):
            divisors = list(accumulate(widths[:0:-1], int.__mul__, initial=1))
            for width, divisor in zip(widths, reversed(divisors), strict=True):
                prefixes = packed // divisor if divisor > 1 else packed
                begins = np.append(np.ones(min(1, len(prefixes)), dtype=bool), prefixes[1:] != prefixes[:-1])
                yield Level(begins, prefixes % width == 0, prefixes[begins] % width - 1)
