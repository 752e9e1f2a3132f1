"""Checks of what is handed to a mechanism by its user, and not by a plan."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE, SMALLEST_SCALE, ByteSource, byte_source
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["check_between", "exact_values", "laplace_scale", "noise_source", "whole_number"]


def whole_number(name: str, value: object, *, at_least: int, hint: str) -> int:
    """Give a whole number from `at_least` to 2**61 as an int; the error names the argument."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not at_least <= value <= LARGEST_COUNT:  # type: ignore[operator]
        least = "-2**61" if at_least == -LARGEST_COUNT else at_least
        raise ArgumentError(name, f"must be a whole number from {least} to 2**61, not {value!r}.", hint=hint)
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_between(name: str, value: object, low: float, high: float, *, example: float) -> None:
    """Check that a number is at least `low` and below `high`; the error names the argument."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not low <= value < high:  # type: ignore[operator]
        raise ArgumentError(
            name,
            f"must be at least {low} and below {high}, not {value!r}.",
            hint=f"for example {name}={example}.",
        )


def exact_values(values: npt.ArrayLike) -> IntArray:
    """Give exact values as an array of int64; those beyond ±2**61 become ±2**61.

    Only the type decides whether they are accepted, so the error tells nothing about the records. Two
    whole numbers are no further apart after clipping than before.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ArgumentError(
            "values",
            f"must be whole numbers of an integer type, not {array.dtype}.",
            hint="counts are; round and convert other numbers, and state the sensitivity of the result.",
        )
    if array.dtype.kind == "u":
        array = np.minimum(array, np.array(LARGEST_COUNT, dtype=np.uint64))
    return np.asarray(np.clip(array.astype(np.int64), -LARGEST_COUNT, LARGEST_COUNT))


def laplace_scale(epsilon: float, distance: int) -> float:
    """Give the scale of discrete Laplace noise for whole numbers that move by a distance, rounded up."""
    checked = PrivacyLoss(epsilon=epsilon).epsilon
    assert checked is not None
    exact = distance / Fraction(checked)
    if exact > LARGEST_SCALE:
        raise ArgumentError(
            "epsilon",
            f"is too small: the noise would need a scale above {LARGEST_SCALE:.0e}.",
            hint="allow a larger privacy loss, or a smaller sensitivity or cutoff.",
        )
    nearest = float(exact)
    rounded_up = nearest if nearest >= exact else math.nextafter(nearest, math.inf)
    return max(rounded_up, SMALLEST_SCALE)


def noise_source(rng: np.random.Generator | None) -> ByteSource:
    """Give `byte_source` after a check of its argument."""
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise ArgumentError(
            "rng",
            f"must be a numpy.random.Generator, not {type(rng).__name__}.",
            hint="leave it out for a private release; numpy.random.default_rng(0) for a repeatable test.",
        )
    return byte_source(rng)
