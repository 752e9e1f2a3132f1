"""Confidence intervals for ratios of two estimates: means, proportions, changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.intervals import error_half_widths
from pandas_dptree.estimation.joint_cumulants import cumulants_of_difference
from pandas_dptree.estimation.least_squares import FloatArray

__all__ = ["independent", "ratio_intervals"]


def ratio_intervals(
    sums: npt.NDArray[np.int64] | FloatArray,
    counts: npt.NDArray[np.int64] | FloatArray,
    *,
    joint_cumulants: Sequence[FloatArray],
    bounds: tuple[float, float],
    confidence: float,
    steps: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Return an interval around each ratio of a true sum to a true count, within the ratio's bounds.

    With the true ratio t, the error of :math:`S - tN` is :math:`dS - t\,dN`, however small the count is: the
    sum and t times the count cancel. So the set of all t with

    .. math:: (S - tN)^2 \le q^2 (\mathrm{Var}\,S - 2t\,\mathrm{Cov} + t^2\,\mathrm{Var}\,N)

    contains the true one as often as an error is within q of its standard deviations (Fieller, "Some problems
    in interval estimation", 1954). Where the count is more than q of its own standard deviations, that is an
    interval; elsewhere the data say almost nothing, and the interval becomes the bounds. For q, the
    distribution of the error is that at the estimated ratio: see `error_half_widths`. The eight joint
    cumulants of S and N are those of `joint_cumulants`; `independent` makes them. `steps` are those of the
    discrete noise in S and in N; the error of :math:`S - tN` comes in no coarser ones than the larger of the
    first and t times the second. Without them the noise counts as continuous.
    """
    sum_variance, covariance, count_variance = joint_cumulants[:3]
    sums, counts = sums.astype(np.float64), counts.astype(np.float64)
    with np.errstate(over="ignore"):  # what overflows is clipped
        ratio = np.clip(np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0), *bounds)
    variance, fourth = cumulants_of_difference(joint_cumulants, ratio)
    step = np.zeros(1) if steps is None else np.fmax(steps[0], np.abs(ratio) * steps[1])
    width = error_half_widths(variance, fourth, step, confidence)
    factor = np.divide(width**2, variance, out=np.zeros_like(variance), where=variance > 0)
    # The ends solve a quadratic equation, with this in front of its square.
    leading = counts * np.abs(counts) - factor * count_variance
    bounded = leading > 0
    leading = np.where(bounded, leading, 1.0)
    middle = sums * counts - factor * covariance
    under = count_variance * sums**2 + sum_variance * leading - covariance * (sums * counts + middle)
    reach = np.sqrt(np.where(bounded, factor * np.maximum(under, 0.0), 0.0))
    lower, upper = (
        np.where(bounded, np.clip((middle + side * reach) / leading, *bounds), end)
        for side, end in zip((-1, 1), bounds, strict=True)
    )
    return lower, upper


def independent(
    variances: tuple[FloatArray, FloatArray], fourth_cumulants: tuple[FloatArray, FloatArray]
) -> list[FloatArray]:
    """Return the eight joint cumulants of two independent errors."""
    none = np.zeros(1)
    return [variances[0], none, variances[1], fourth_cumulants[0], none, none, none, fourth_cumulants[1]]
