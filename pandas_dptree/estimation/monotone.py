"""Cumulative counts that never fall: whole, non-decreasing and ending in the total.

Everything here is a function of noisy numbers and of a public total: post-processing, free of privacy cost.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["Norm", "consistent_cdf", "consistent_cdfs"]

Norm = Literal["squared", "absolute"]
Values = npt.NDArray[Any]

_BLOCK = 2**16
"""Numbers that are corrected at a time, so that they stay in the cache."""

_LARGEST = 2**61
"""The largest count, so that twice a count fits into an int64."""

_GRID_BITS = 40
"""Numbers that are not whole are rounded to a grid of 2**-40, far finer than any noise."""

_ROOM_BITS = 63
"""Sums below 2**63 are computed in int64, others in Python's own whole numbers."""


def consistent_cdf(noisy: npt.ArrayLike, total: int, norm: Norm = "squared") -> IntArray:
    r"""Find the closest whole cumulative counts that never fall and end in the total.

    With the noisy cumulative sums :math:`y_1, …, y_K` and the total :math:`N` it solves, exactly,

    .. math:: \min \sum_{t=1}^{K-1} d(h_t - y_t) \quad\text{subject to}\quad
              0 \le h_1 \le … \le h_{K-1} \le h_K = N,\; h_t \text{ whole},

    where :math:`d(x)` is :math:`x^2` or :math:`|x|`. The last element of `noisy` has no effect.

    Parameters
    ----------
    noisy : array_like of int or float, shape (K,)
        Noisy cumulative sums, in counts. Those beyond ±2**61 are taken as ±2**61.
    total : int
        The number of records, from 0 to 2**61. It is public, or an estimate.
    norm : {"squared", "absolute"}
        Which sum is minimised: that of the squared or of the absolute changes.

    Returns
    -------
    numpy.ndarray of int64, shape (K,)
        Of several solutions the largest at every bin.

    Raises
    ------
    ArgumentError
        If `noisy` is empty or holds anything but finite numbers, `total` is not a whole number of at least 0,
        or `norm` is unknown.

    Notes
    -----
    **Thresholds.** Let :math:`c_j` be the first bin at which :math:`h` reaches :math:`j`: a non-decreasing
    whole sequence is given by :math:`c_1 \le c_2 \le … \le c_N`, and its cost is, up to a constant,

    .. math:: \sum_{j=1}^N G_j(c_j), \qquad G_j(c) = \sum_{t \ge c} \bigl(d(j - y_t) - d(j - 1 - y_t)\bigr).

    The summand is :math:`r = 2j - 1 - 2 y_t` for squares, and :math:`r` clipped to [-1, 1] for absolute
    values. It grows with :math:`j`, for :math:`d` is convex. Hence any best cut :math:`c` of one threshold
    :math:`m` can be kept: if a solution reaches some :math:`j < m` only at :math:`c_j > c`, moving it there
    to :math:`c` adds a sum over :math:`c \le t < c_j` that is at most the same sum for :math:`m`, which is
    :math:`G_m(c) - G_m(c_j) \le 0`; and likewise for :math:`j > m`. Left of :math:`c` all values are then
    below :math:`m`, from there on at least :math:`m`, and each side is a separate problem. Halving the range
    of values in this way finds one binary digit of every value in each round, for all parts at once, in whole
    numbers and :math:`O(K \log N)` time (Ahuja & Orlin, "A fast scaling algorithm for minimizing separable
    convex functions subject to chain constraints", 2001).

    **Squares are isotonic regression.** Let :math:`\hat x` be the isotonic regression of :math:`y`. Within
    each of its blocks :math:`y - \hat x` sums to 0, and every first part of the block sums to at least 0.
    With :math:`b = j - \tfrac12`, let :math:`c` be the first bin where :math:`\hat x_t \ge b`. Cutting at
    :math:`s < c` instead adds

    .. math:: 2\sum_{s \le t < c} (b - \hat x_t) + 2\sum_{s \le t < c} (\hat x_t - y_t) > 0,

    since the last sum runs over the last part of a block and over whole blocks. Cutting at :math:`s > c` adds

    .. math:: 2\sum_{c \le t < s} (\hat x_t - b) + 2\sum_{c \le t < s} (y_t - \hat x_t) \ge 0,

    since the last sum runs over whole blocks and the first part of one. So every :math:`G_j` is least where
    :math:`\hat x` reaches :math:`j - \tfrac12`: the solution is :math:`\hat x`, clipped to :math:`[0, N]` and
    rounded to the nearest whole number. Halves go up here; a block that stands at a half may go either way at
    the same cost. Rounding block means in floating point would go wrong close to a half.

    **Exactness.** Whole numbers are taken as they are. Other numbers are first put on a grid of 2**-40, or on
    the finest one on which sums of K of them fit into 63 bits.

    The problem is that of Rameshwar, Tandon & Sharma, "Optimal tree-based mechanisms for differentially
    private approximate CDFs", 2024, Section VI, whose dynamic programme takes O(K·N²) steps.

    Examples
    --------
    >>> consistent_cdf([2.2, -1.0, 4.0, 3.0, 9.0], total=8)
    array([1, 1, 4, 4, 8])
    >>> consistent_cdf([0, 9, 1, 1, 5], total=5), consistent_cdf([0, 9, 1, 1, 5], total=5, norm="absolute")
    (array([0, 4, 4, 4, 5]), array([0, 1, 1, 1, 5]))
    """
    most = _checked_total(total)
    if not isinstance(norm, str) or norm not in get_args(Norm):
        raise ArgumentError(
            "norm", f"must be 'squared' or 'absolute', not {quote(norm)}.", hint='norm="squared".'
        )
    free = _checked_numbers(noisy)[:-1]
    if norm == "absolute":
        free = np.clip(free, 0, most)  # beyond, every threshold costs the same
    bits, fits = _grid(int(np.abs(free).max(initial=0)), len(free), most, norm, free.dtype)
    limit = 1 << bits if norm == "absolute" else None
    reached = _reached(_on_a_grid(free[None], bits, fits), 1 << bits, most.bit_length(), limit)[0]
    return np.append(np.minimum(reached, most), np.int64(most))


def consistent_cdfs(noisy: npt.NDArray[np.float64], totals: IntArray) -> IntArray:
    """Correct many rows of cumulative counts at once, each as by `consistent_cdf` with squares."""
    found = np.empty(noisy.shape, dtype=np.int64)
    found[:, -1] = totals
    free = _checked_numbers(noisy.ravel()).reshape(noisy.shape)[:, :-1]
    if not free.size:
        return found
    alike: dict[tuple[int, bool, int], list[int]] = {}  # rows with the same grid and number of digits
    for row, (largest, most) in enumerate(zip(abs(free).max(axis=1).tolist(), totals.tolist(), strict=True)):
        grid = _grid(int(largest), free.shape[1], most, "squared", free.dtype)
        alike.setdefault((*grid, most.bit_length()), []).append(row)
    at_a_time = max(1, _BLOCK // free.shape[1])
    for (bits, fits, digits), places in alike.items():
        for start in range(0, len(places), at_a_time):
            rows = np.array(places[start : start + at_a_time])
            reached = _reached(_on_a_grid(free[rows], bits, fits), 1 << bits, digits, None)
            found[rows, :-1] = np.minimum(reached, totals[rows, None])
    return found


def _reached(rows: Values, unit: int, digits: int, limit: int | None) -> IntArray:
    """Find the best non-decreasing whole numbers of `digits` binary digits in each row, highest digit first.

    `rows` holds 2·y in units of 1/`unit`. A run is a stretch of bins with the same value so far; one of a
    single bin takes the number nearest to its y.
    """
    twice, bins = rows.ravel(), np.arange(rows.size)
    reached: IntArray = np.clip((twice + unit) // (2 * unit), 0, (1 << digits) - 1).astype(np.int64)
    lengths, values = np.full(len(rows), rows.shape[1]), np.zeros(len(rows), dtype=rows.dtype)
    for digit in reversed(range(digits)):
        shared = lengths > 1
        if not shared.all():
            free = np.repeat(shared, lengths)
            bins, twice, lengths, values = bins[free], twice[free], lengths[shared], values[shared]
        if not len(bins):
            break
        raised = values + (1 << digit)
        savings = twice - np.repeat((2 * raised - 1) * unit, lengths)
        if limit is not None:
            np.clip(savings, -limit, limit, out=savings)
        kept = _best_cuts(savings, lengths)
        lengths, values = np.stack([kept, lengths - kept], 1).ravel(), np.stack([values, raised], 1).ravel()
        lengths, values = lengths[lengths > 0], values[lengths > 0]
    reached[bins] = np.repeat(values, lengths)
    return reached.reshape(rows.shape)


def _best_cuts(savings: Values, lengths: IntArray) -> IntArray:
    """Return after how many bins to cut each run: where the running sum is first least."""
    starts = np.cumsum(lengths) - lengths
    sums = np.cumsum(savings)  # of many rows, modulo 2**64; within a run the sums fit
    sums -= np.repeat(np.append(np.zeros(1, dtype=sums.dtype), sums[starts[1:] - 1]), lengths)
    least = np.minimum.reduceat(sums, starts)
    attained = sums == np.repeat(least, lengths)
    times = np.add.reduceat(attained, starts, dtype=np.int64)
    first = np.flatnonzero(attained)[np.cumsum(times) - times]
    return np.where(least >= 0, 0, first - starts + 1)


def _grid(largest: int, n_bins: int, most: int, norm: Norm, dtype: np.dtype[Any]) -> tuple[int, bool]:
    """Choose the grid of numbers up to `largest`: the digits of its unit, and whether sums fit into int64."""
    step = 4 * most + 2 * largest + 4
    room = max(step, n_bins) if norm == "absolute" else step * max(n_bins, 1)
    bits = 0 if dtype.kind == "i" else min(_GRID_BITS, max(0, _ROOM_BITS - room.bit_length()))
    return bits, room << bits < 1 << _ROOM_BITS


def _on_a_grid(free: Values, bits: int, fits: bool) -> Values:
    """Return 2·y as whole numbers in units of 2**-bits."""
    whole = free.dtype.kind == "i"
    twice: Values = 2 * free if whole else np.rint(np.ldexp(free, bits + 1)).astype(np.int64)
    return twice if fits else twice.astype(object)


def _checked_numbers(noisy: npt.ArrayLike) -> Values:
    """Return the noisy numbers as int64 or float64, none beyond ±2**61."""
    numbers = np.asarray(noisy)
    if (
        numbers.ndim != 1
        or not len(numbers)
        or numbers.dtype.kind not in "iuf"
        or not np.isfinite(numbers).all()
    ):
        raise ArgumentError(
            "noisy",
            "must hold one finite number per bin, for at least one bin.",
            hint="pass an array of shape (K,), one cumulative sum per bin, without NaN.",
        )
    if numbers.dtype.kind == "u":
        numbers = np.minimum(numbers, np.uint64(_LARGEST))
    whole = numbers.dtype.kind in "iu"
    return np.clip(numbers.astype(np.int64 if whole else np.float64), -_LARGEST, _LARGEST)


def _checked_total(total: object) -> int:
    if not isinstance(total, int | np.integer) or isinstance(total, bool) or not 0 <= total <= _LARGEST:
        raise ArgumentError(
            "total",
            f"must be a whole number from 0 to 2**61, not {quote(total)}.",
            hint="it is the number of records; round a noisy one, and take 0 where it is negative.",
        )
    return int(total)
