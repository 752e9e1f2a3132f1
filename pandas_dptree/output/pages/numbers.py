"""How numbers are printed: decimals by the margins of a column, separators by the language."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from pandas_dptree.output.pages.texts import Texts

__all__ = ["MISSING", "Format", "decimals", "exact_decimals"]

FloatArray = npt.NDArray[np.float64]

MISSING: Final = "–"

_MOST_DECIMALS: Final = 9
_SKEWED: Final = 0.1


class Format:
    """Numbers as text in a language."""

    def __init__(self, texts: Texts) -> None:
        self._signs = str.maketrans(
            {
                ",": texts["sign.thousands"],
                ".": texts["sign.decimal"],
                "-": texts["sign.minus"],
            }
        )
        self._between = texts["numbers.interval"]

    def number(self, value: float, digits: int = 0) -> str:
        """Format a number, with a dash if it is missing; 0 has no sign."""
        if value != value:
            return MISSING
        if math.isinf(value):
            return "∞" if value > 0 else "-∞".translate(self._signs)
        return f"{round(value, digits) + 0.0:,.{digits}f}".translate(self._signs)

    def signed(self, value: float, digits: int = 0) -> str:
        """Format a change with its sign; 0 has none."""
        return f"{'+' if round(value, digits) > 0 else ''}{self.number(value, digits)}"

    def whole(self, value: int) -> str:
        """Format a whole number of any size."""
        return f"{value:,}".translate(self._signs)

    def percent(self, share: float) -> str:
        """Format a share of 1 in per cent, to four digits."""
        return f"{100 * share:.4g} %".translate(self._signs)

    def interval(self, lower: float, upper: float, digits: int = 0) -> str:
        """Format both ends of an interval."""
        return self._between.format(
            lower=self._end(lower, digits, upper - lower), upper=self._end(upper, digits, upper - lower)
        )

    def margin(self, value: float, digits: int = 0) -> str:
        """Format the number after ±, so that no margin looks like none."""
        return f"± {self._end(value, digits, value)}"

    def error(self, value: float, lower: float, upper: float, digits: int = 0) -> str:
        """Format an error: ± the margin, or both ends of an interval that is skewed or cut."""
        if lower != lower or upper != upper:
            return ""
        width = upper - lower
        if abs(lower + upper - 2 * value) > 2 * _SKEWED * width or (value != value):
            return self.interval(lower, upper, digits)
        return self.margin(width / 2, digits)

    def _end(self, value: float, digits: int, size: float) -> str:
        """Format a number with enough decimals to show a difference of `size`."""
        if 0 < size < 0.5 * 10.0**-digits:
            digits = min(-math.floor(math.log10(size)), 300)
        return self.number(value, digits)


def decimals(margins: npt.ArrayLike, *, whole: bool = False) -> int:
    """Return the decimals at which a column's median margin has two significant digits."""
    if whole:
        return 0
    sizes = np.asarray(margins, dtype=np.float64)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if not len(sizes):
        return 2
    return min(max(0, 1 - math.floor(math.log10(float(np.median(sizes))))), _MOST_DECIMALS)


def exact_decimals(values: npt.ArrayLike) -> int:
    """Return the decimals at which edges are exact, at most three digits of their least difference."""
    numbers = np.unique(np.asarray(values, dtype=np.float64))
    numbers = numbers[np.isfinite(numbers)]
    least = float(np.diff(numbers).min()) if len(numbers) > 1 else 1.0
    most = min(max(0, 2 - math.floor(math.log10(least))), _MOST_DECIMALS)
    exact = (np.allclose(np.round(numbers, digits), numbers, rtol=1e-12, atol=0) for digits in range(most))
    return next((digits for digits, holds in enumerate(exact) if holds), most)
