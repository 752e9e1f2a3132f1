r"""Quantiles of values in bins, and the bins in which they may lie, from cumulative counts.

With :math:`F_t` values in the bins up to t, of n, the quantile p lies in the first bin k with
:math:`F_k \ge p n`, and so :math:`F_{k-1} < p n`; the quantile 0 in the first with :math:`F_k \ge 1`. If
p = a/b, then :math:`b F_{k-1} - a n` is a whole number, so :math:`F_{k-1} - p n \le -1/b`.

**Intervals.** Let :math:`T_t = \hat F_t - p\,\hat n`, and let :math:`w_t` be exceeded by the errors of
:math:`T_t`, which are symmetric, with a probability of at most α, half of it on each side. The interval is
from the first bin with :math:`T_t + w_t \ge 0` to the last with :math:`T_{t-1} - w_{t-1} \le -1/b`. If it
begins behind the true bin k, then :math:`T_k + w_k < 0`, though :math:`F_k - p n \ge 0`: an error beyond
:math:`w_k`. If it ends before k, then :math:`T_{k-1} - w_{k-1} > -1/b`, though
:math:`F_{k-1} - p n \le -1/b`. So whatever the values are, it misses k with a probability of at most α. Other
bins do not matter, since k is not random. Half widths below 1/2b are raised to 1/2b, which is between whole
numbers, so that noise of nearly no variance does not matter.

If hardly anything is far above the noise, some of many bins are not excluded by chance. Let the errors exceed
:math:`u_t` in any bin at all with a probability of at most β. Then k is behind all bins with
:math:`T_t + u_t < 0`, and not behind the first with :math:`T_t - u_t > -1/b`. Both hold with a probability of
at least 1 - α - β.

Everything here is a function of noisy numbers and of public totals: post-processing, free of privacy cost.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["possible_bins", "quantile_bins", "quantile_positions"]

FloatArray = npt.NDArray[np.float64]

_ROUNDING = 1e-6
"""Estimates are exact to this, in counts."""

_LARGEST_DENOMINATOR = 1000
"""Fractions with smaller ones are read off floats, and are far apart compared with `_ROUNDING`."""


def quantile_bins(counts: IntArray, shares: FloatArray) -> IntArray:
    """Find the bin of each quantile of each group; one beyond the last for groups without values.

    `counts` are whole cumulative counts of shape (n_groups, n_bins); the result has (n_groups, n_shares).
    """
    wanted = np.maximum(shares * counts[:, -1:], 1)
    # shares of a total are exact to 2**-52: a smaller excess is due to rounding
    least = np.ceil(wanted * (1 - 2.0**-50)).astype(np.int64)
    return np.stack([np.count_nonzero(counts < each[:, None], axis=1) for each in least.T], axis=1)


def quantile_positions(counts: IntArray, shares: FloatArray) -> FloatArray:
    """Find where each share of the values of each group ends, in bins; nan for groups without values."""
    totals = counts[:, -1:]
    place = quantile_bins(counts, shares)
    ends = np.insert(counts, 0, 0, axis=1)
    before = np.take_along_axis(ends, place, axis=1)
    within = np.take_along_axis(ends, np.minimum(place + 1, counts.shape[1]), axis=1) - before
    part = np.divide(shares * totals - before, within, out=np.zeros(place.shape), where=within > 0)
    return np.where(totals > 0, place + np.clip(part, 0.0, 1.0), np.nan)


def possible_bins(
    estimates: FloatArray, totals: FloatArray, share: float, half_widths: tuple[FloatArray, FloatArray]
) -> tuple[IntArray, IntArray]:
    r"""Find the first and the last bin in which a quantile of each group may lie, by the intervals above.

    `estimates` of the cumulative counts have shape (n_groups, n_bins), `totals`, public or estimated,
    (n_groups,), and the half widths :math:`w_t` and :math:`u_t` (n_bins,). The last may be before the first
    if they contradict each other.
    """
    wanted = share * totals if share > 0 else np.ones(len(totals))
    fraction = Fraction(share).limit_denominator(_LARGEST_DENOMINATOR)
    step = 1 / fraction.denominator if float(fraction) == share else 0.0
    excess = estimates - wanted[:, None]
    of_one, of_all = (np.maximum(half, step / 2) for half in half_widths)
    reached, reached_for_sure = excess + of_one >= -_ROUNDING, excess - of_all > _ROUNDING - step
    reached[:, -1] = reached_for_sure[:, -1] = True  # a quantile lies in some bin
    begun, begun_for_sure = np.ones_like(reached), np.ones_like(reached)  # it is not before the first
    begun[:, 1:] = (excess - of_one <= _ROUNDING - step)[:, :-1]
    begun_for_sure[:, 1:] = (excess + of_all < -_ROUNDING)[:, :-1]
    first = np.maximum(reached.argmax(axis=1), _last(begun_for_sure))
    return first, np.minimum(reached_for_sure.argmax(axis=1), _last(begun))


def _last(found: npt.NDArray[np.bool_]) -> IntArray:
    """Return the last place in each row, which has one."""
    last: IntArray = found.shape[1] - 1 - found[:, ::-1].argmax(axis=1)
    return last
