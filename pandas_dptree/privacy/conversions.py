"""Conversions between concentrated and approximate differential privacy, and checks of their numbers.

Conversions never overstate privacy: they are rounded outward by more than their own rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pandas_dptree.errors import ArgumentError, quote

__all__ = ["checked_number", "checked_positive", "zcdp_delta", "zcdp_epsilon", "zcdp_rho"]

# Each conversion below is a sum of at most four terms, each computed with at most eight roundings
# (2**-53 relative) and library functions (below 2**-52). 2**-47 times the sum of the absolute terms is more
# than ten times all these errors together.
_MARGIN = 2.0**-47


def zcdp_epsilon(rho: float, delta: float) -> float:
    r"""Return the smallest known epsilon for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Canonne, Kamath and Steinke ("The discrete Gaussian for differential privacy", 2020, Proposition 12
    and Corollary 13): rho-zCDP implies (epsilon, delta)-DP if for some :math:`\alpha > 1`

    .. math:: \epsilon = \alpha\rho + \frac{\log(1/\delta) - \log\alpha}{\alpha - 1}
              - \log\frac{\alpha}{\alpha - 1}.

    With :math:`a = \alpha - 1`, the derivative vanishes at the only root of the increasing function
    :math:`a^2\rho + \log(1 + a) - \log(1/\delta)`. Every other a is valid too, with a larger epsilon.

    >>> round(zcdp_epsilon(0.1, 1e-6), 4)
    2.1419
    """
    rho, log_inverse = checked_positive("rho", rho), -math.log(_open_delta(delta))
    a = _increasing_root(lambda a: a * a * rho + math.log1p(a) - log_inverse)
    return max(0.0, _rounded(+1, (1 + a) * rho, log_inverse / a, -math.log1p(a) / a, -math.log1p(1 / a)))


def zcdp_delta(rho: float, epsilon: float) -> float:
    r"""Return the smallest known delta for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Canonne, Kamath and Steinke (2020, Proposition 12):

    .. math:: \delta = \min_{\alpha > 1} \frac{e^{(\alpha - 1)(\alpha\rho - \epsilon)}}{\alpha - 1}
              \left(1 - \frac{1}{\alpha}\right)^\alpha.

    With :math:`a = \alpha - 1`, the logarithm is convex in a, and its derivative
    :math:`(2a + 1)\rho - \epsilon - \log(1 + 1/a)` increases.
    """
    rho, epsilon = checked_positive("rho", rho), checked_positive("epsilon", epsilon)
    a = _increasing_root(lambda a: (2 * a + 1) * rho - epsilon - math.log1p(1 / a))
    log_delta = _rounded(+1, a * (1 + a) * rho, -a * epsilon, -a * math.log1p(1 / a), -math.log1p(a))
    return min(1.0, math.nextafter(math.exp(min(log_delta, 0.0)) * (1 + _MARGIN), 1.0))


def zcdp_rho(epsilon: float, delta: float) -> float:
    r"""Return the largest rho for which rho-zCDP is known to imply (epsilon, delta)-DP, rounded down, or 0.

    The formula of `zcdp_epsilon` solved for rho,

    .. math:: \rho = \frac{1}{\alpha}\left(\epsilon - \frac{\log(1/\delta) - \log\alpha}{\alpha - 1}
              + \log\frac{\alpha}{\alpha - 1}\right),

    holds for every :math:`\alpha = 1 + a > 1`; it is largest where
    :math:`(2a + 1)\rho - \epsilon - \log(1 + 1/a)` changes from negative to positive.
    """
    epsilon, log_inverse = checked_positive("epsilon", epsilon), -math.log(_open_delta(delta))

    def terms(a: float) -> tuple[float, ...]:
        return epsilon, -log_inverse / a, math.log1p(a) / a, math.log1p(1 / a)

    def slope(a: float) -> float:
        rho = math.fsum(terms(a)) / (1 + a)
        return (2 * a + 1) * rho - epsilon - math.log1p(1 / a)

    a = _increasing_root(slope)
    return max(0.0, _rounded(-1, *terms(a)) / (1 + a) * (1 - _MARGIN))


def _increasing_root(function: Callable[[float], float]) -> float:
    """Find, by bisection on a logarithmic scale, the positive a at which a function turns positive."""
    low, high = -80.0, 340.0  # from e**-80 to where a * a nearly overflows
    while high - low > 1e-9:  # the conversions are flat at the root: an error of 1e-9 changes them by 1e-18
        middle = (low + high) / 2
        low, high = (low, middle) if function(math.exp(middle)) > 0 else (middle, high)
    return math.exp(high)


def _rounded(direction: int, *terms: float) -> float:
    """Sum the terms, moved up (+1) or down (-1) by more than their rounding errors."""
    return math.fsum(terms) + direction * _MARGIN * math.fsum(map(abs, terms))


def checked_number(name: str, value: object) -> float:
    """Read an argument as a float; whole numbers beyond its range become inf."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentError(
            name,
            f"must be a number, not {quote(value)}.",
            hint=f"pass a plain number, for example {name}={'1e-6' if name == 'delta' else '0.5'}.",
        )
    try:
        return float(value)
    except OverflowError:
        return math.inf


def checked_positive(name: str, value: object) -> float:
    """Read an argument as a positive and finite float."""
    given = checked_number(name, value)
    if not 0 < given < math.inf:
        raise ArgumentError(
            name, f"must be positive and finite, not {quote(value)}.", hint=f"for example {name}=0.5."
        )
    return given


def _open_delta(delta: object) -> float:
    given = checked_number("delta", delta)
    if not 0 < given < 1:
        raise ArgumentError(
            "delta", f"must be above 0 and below 1, not {quote(delta)}.", hint="for example delta=1e-6."
        )
    return given
