"""The smallest whole number from which on a condition holds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

__all__ = ["smallest"]


def smallest(holds: Callable[[int], bool], *, start: int, step: int = 1) -> int:
    """Find the smallest whole number of at least `start` from which on a condition holds.

    The first numbers that are tried are `step` apart, and each distance is twice the one before.
    """
    low, high = start, start + step
    while not holds(high):
        low, high = high, high + 2 * (high - low)
    return low + bisect_left(range(low, high), True, key=holds)
