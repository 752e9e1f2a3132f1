r"""Tails of the discrete Gaussian, P(x) proportional to :math:`e^{-x^2/2\sigma^2}` on the whole numbers.

**Privacy**: everything here is public and depends on no record.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["log_upper_tail", "upper_tail"]

FloatArray = npt.NDArray[np.float64]

_SUMMED = (
    64.0  # below this scale, tails are summed; above, the integral is off by less than 1e-3 at 10 scales
)
_REACH = 12.0  # terms so many scales beyond the first add less than 1e-31 of it each


def log_upper_tail(scale: float, bound: int) -> float:
    r"""Return :math:`\log P(X > t)`, rounded up, for a whole number t of at least 0.

    Below a scale of 64 the tail is summed. Above, for :math:`t + 1/2 \ge \sigma`, the density is convex from
    there on, so each term :math:`e^{-x^2/2\sigma^2}` of the tail is at most the integral of that function
    from :math:`x - 1/2` to :math:`x + 1/2`. The sum of all terms is at least :math:`\sigma\sqrt{2\pi}`, by
    Poisson summation. So :math:`P(X > t) \le P(Z > (t + 1/2)/\sigma)` with a standard normal variable Z. For
    smaller t, the function decreases, and t takes the place of :math:`t + 1/2`.
    """
    if scale < _SUMMED:
        first = bound + 1.0
        beyond = np.arange(math.ceil(_REACH * scale) + 1.0)
        # relative to the first term, which may be below the range of floats
        tail = math.fsum(np.exp(-beyond * (2 * first + beyond) / (2 * scale**2)))
        whole = 2 * math.fsum(np.exp(-((beyond / scale) ** 2) / 2)) - 1
        exponent = -(first**2) / (2 * scale**2)
        return exponent * (1 - 2**-48) + math.log(tail / whole) + 2**-40
    start = (bound + 0.5 if bound + 0.5 >= scale else bound) / scale
    if start > 30:
        return -(start**2) / 2 * (1 - 2**-48)  # P(Z > z) <= e**(-z**2 / 2) / 2
    return math.log(math.erfc(start / math.sqrt(2)) / 2) + 2**-40


def upper_tail(scale: float, bounds: npt.NDArray[np.int64]) -> FloatArray:
    r"""Return P(X > t) for each whole number t, to within 1e-8.

    From a scale of 64 on, by Euler and Maclaurin, with :math:`u = (t + 1/2)/\sigma`, it is
    :math:`P(Z > u) - u\varphi(u)/24\sigma^2`.
    """
    from scipy.special import ndtr  # costs a tenth of a second to import

    if scale < _SUMMED:
        reach = math.ceil(39 * scale)
        mass = np.exp(-((np.arange(-reach, reach + 1.0) / scale) ** 2) / 2)
        above = np.append(np.cumsum(mass[::-1])[::-1], 0.0) / mass.sum()
        return np.asarray(above[np.clip(bounds + 1 + reach, 0, 2 * reach + 1)])
    u = (bounds + 0.5) / scale
    correction = u * np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi) / (24 * scale**2)
    return np.asarray(np.clip(ndtr(-u) - correction, 0.0, 1.0))
