"""Checks of arguments that a user passes to a mechanism directly, without a plan."""

from __future__ import annotations

import math
from collections.abc import Sized

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, kind_of_object, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE, SMALLEST_SCALE, ByteSource, byte_source
from pandas_dptree.privacy.loss import PrivacyLoss

FloatArray = npt.NDArray[np.float64]

__all__ = [
    "exact_values",
    "laplace_scale",
    "noise_source",
    "number_between",
    "real_numbers",
    "released_counts",
    "whole_number",
]


def whole_number(
    name: str, value: object, *, at_least: int, at_most: int = LARGEST_COUNT, hint: str, of: Sized = ()
) -> int:
    """Return a whole number between two limits as an int; `at_most` is a power of two."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not at_least <= value <= at_most:  # type: ignore[operator]
        least = "-2**61" if at_least == -LARGEST_COUNT else at_least
        most = f"2**{at_most.bit_length() - 1}" if at_most > 1024 else str(at_most)
        raise ArgumentError(
            name, f"must be a whole number from {least} to {most}, not {quote(value, of=of)}.", hint=hint
        )
    return int(value)  # type: ignore[call-overload, no-any-return]


def number_between(name: str, value: object, low: float, high: float, *, example: float) -> float:
    """Return a number of at least `low` and below `high` as a float."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if not low <= number < high:
        raise ArgumentError(
            name,
            f"must be at least {low} and below {high}, not {quote(number if is_number else value)}.",
            hint=f"for example {name}={example}.",
        )
    return number


def real_numbers(name: str, values: npt.ArrayLike, *, hint: str) -> FloatArray:
    """Return numbers as an array of floats; the error quotes none of them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(name, "must hold only numbers.", hint=hint) from None


def released_counts(counts: npt.ArrayLike) -> IntArray:
    """Check counts that the caller read from a release or made up, and return them as int64."""
    released = np.asarray(counts)
    if released.dtype.kind not in "iu" or (released < 0).any():
        raise ArgumentError(
            "counts",
            "must be whole numbers of an integer type, at least 0, none of them missing.",
            hint="pass the column `count` of a release, or for example [0, 1000].",
        )
    return np.minimum(released.astype(np.uint64), LARGEST_COUNT).astype(np.int64)


def exact_values(values: npt.ArrayLike) -> IntArray:
    """Return exact values as an array of int64; those beyond ±2**61 become ±2**61.

    Only the type decides whether they are accepted, so the error reveals nothing about the records. Clipping
    never moves two whole numbers further apart.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ArgumentError(
            "values",
            f"must be whole numbers of an integer type, not {array.dtype}.",
            hint="round and convert other numbers, and state the sensitivity of the result.",
        )
    if array.dtype.kind == "u":
        array = np.minimum(array, np.array(LARGEST_COUNT, dtype=np.uint64))
    return np.asarray(np.clip(array.astype(np.int64), -LARGEST_COUNT, LARGEST_COUNT))


def laplace_scale(epsilon: float, distance: int) -> float:
    """Return the scale of discrete Laplace noise for whole numbers that move by a distance, rounded up.

    It spends at most the exact value of the epsilon (`pandas_dptree.privacy.loss.exact`).
    """
    most = PrivacyLoss(epsilon=epsilon).exact.epsilon
    assert most is not None
    exact = distance / most
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
    """Check the generator, and return its `byte_source`."""
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise ArgumentError(
            "rng",
            f"must be a numpy.random.Generator, not {kind_of_object(rng)}.",
            hint="leave it out for a private release; numpy.random.default_rng(0) for a repeatable test.",
        )
    return byte_source(rng)
