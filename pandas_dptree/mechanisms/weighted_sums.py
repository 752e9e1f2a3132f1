r"""Cumulative sums of counts, measured through a factorization of their workload in whole numbers.

Let :math:`x_0, \dots, x_{K-1}` be the counts of K bins and A the lower triangular matrix of ones, so that
:math:`A x` are the cumulative sums. Noise on :math:`Q x`, for an invertible Q, gives the unbiased estimates
:math:`A Q^{-1} (Q x + \text{noise})` (Li, Miklau, Hay, McGregor and Rastogi, "The matrix mechanism:
optimizing linear counting queries under differential privacy", 2015). Under Gaussian noise their total error
is least if :math:`Q^\top Q` is a multiple of the matrix X that minimises :math:`\mathrm{tr}(A X^{-1} A^\top)`
among those with ones on the diagonal.

**The factor.** If only the mean of the diagonal were fixed, :math:`X = (A^\top A)^{1/2}` would be best.
:math:`(A^\top A)^{-1}` is the matrix of second differences, reflected at the first bin and held at zero
behind the last. Its inverse fourth root is, up to a detail at the last bin, a matrix of cosines,

.. math:: G_{ij} = h(i - j) + h(i + j + 1), \qquad
          h(n) = \frac1K \sum_{m=0}^{K-1} \lambda_m \cos\frac{(2m + 1)\pi n}{2K}, \qquad
          \lambda_m = \Bigl(2 \sin\frac{(2m + 1)\pi}{4K}\Bigr)^{-1/2},

so :math:`h(-n) = h(n) = -h(2K - n)`: it is given by K numbers. :math:`Q = G D`, with the diagonal matrix D
that makes the norms of all columns equal. From 2 to 256 bins the error is at most 0.4 % above that of the
best X, found numerically.

**Whole numbers.** Here h and D are whole numbers, roundings of multiples of the above. So Q is a matrix of
whole numbers, and :math:`Q x` and the norms of the columns are computed exactly. Rounding does not affect
privacy: everything is proven for the Q that is used. Rounded or not, G keeps its form, and so the cosine
transform diagonalises it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.mechanisms.arguments import exact_values, whole_number
from pandas_dptree.mechanisms.measure import LARGEST_COUNT, measure
from pandas_dptree.mechanisms.sampling import ByteSource
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity, count_sensitivity

__all__ = ["LARGEST_BIN", "WeightedSums", "antiperiodic", "measure_weighted_sums"]

LARGEST_BIN = 2**40
"""Larger counts of a bin are clipped to this."""

_MOST_BINS = 2**20
_Whole = npt.NDArray[np.object_]  # Python integers, which are unbounded


@dataclass(frozen=True)
class WeightedSums:
    r"""The matrix Q by which the counts of K bins are measured, so that their cumulative sums are accurate.

    :math:`Q_{ij} = (h(i - j) + h(i + j + 1))\,d_j`, where h is even and :math:`h(n) = -h(2K - n)`. It depends
    on no record, and so do all its methods. h and d are rounded to multiples of about ``2**-bits`` of their
    size; with 12 bits, that adds less than 0.1 % to the error for all K up to 65,536.
    """

    n_bins: int
    bits: int = 12

    def __post_init__(self) -> None:
        """Check both parameters."""
        n_bins = whole_number(
            "n_bins",
            self.n_bins,
            at_least=1,
            at_most=_MOST_BINS,
            hint="it is the number of bins, for example 256.",
        )
        bits = whole_number("bits", self.bits, at_least=8, at_most=16, hint="leave it out: 12 is enough.")
        object.__setattr__(self, "n_bins", n_bins)
        object.__setattr__(self, "bits", bits)

    @cached_property
    def coefficients(self) -> IntArray:
        """The whole numbers h(0) ≥ h(1) ≥ … ≥ h(K − 1) ≥ 0."""
        from scipy.fft import idct

        frequencies = (2 * np.arange(self.n_bins) + 1) * (np.pi / (4 * self.n_bins))
        h = np.rint(2.0**self.bits * idct((2 * np.sin(frequencies)) ** -0.5, type=3)).astype(np.int64)
        return _frozen(np.minimum.accumulate(np.maximum(h, 0)))  # it falls already, up to rounding errors

    @cached_property
    def weights(self) -> IntArray:
        """The whole numbers d_0, …, d_{K − 1}: inversely proportional to the norms of the columns of G."""
        squares = self._column_squares.astype(np.float64)
        return _frozen(np.floor(2.0**self.bits * np.sqrt(squares.min() / squares)).astype(np.int64))

    def sensitivity(self, *, neighbors: Neighbors, max_contributions: int = 1) -> Sensitivity:
        r"""Return the exact sensitivity of Q x, for units of at most `max_contributions` counted rows.

        **Privacy.** Let :math:`q_j` be the columns of Q, k `max_contributions`, and m the largest of the
        columns' norms, the 1-norm or the 2-norm.

        *add/remove*: Q x moves by a sum of at most k columns, so by at most k m. It is reached if all rows
        fall into that bin.

        *replace*: it moves by a sum of at most k vectors :math:`q_i - q_j`, or :math:`\pm q_i` where the
        other row is outside of all bins. The 1-norm of the former is at most 2m. All entries of Q are at
        least 0, for h falls and :math:`|i - j| < 2K - (i + j + 1)`. So :math:`q_i^\top q_j \ge 0`, and

        .. math:: \|q_i - q_j\|_2^2 \le \|q_i\|_2^2 + \|q_j\|_2^2 \le 2 m^2.

        This is nearly reached by the first and the last bin, whose columns are nearly orthogonal.

        *Clipping* a count, or an entry of Q x, turns every move of it into one that is no longer and has the
        same sign: of fewer rows in the former case, so that the above holds for them.
        """
        rows = count_sensitivity(neighbors=neighbors, max_contributions=max_contributions)
        weights = self.weights.astype(object)
        column_sums = 2 * np.cumsum(self.coefficients)[::-1] - self.coefficients[0]  # of G: the rest cancels
        return Sensitivity(
            l1=rows.l1 * int((weights * column_sums).max()),
            l2_squared=rows.l2_squared * int((weights**2 * self._column_squares).max()),
        )

    def l2_squared(self, *, neighbors: Neighbors, max_contributions: int = 1) -> int:
        """Return the square of the L2 sensitivity of Q x: see `sensitivity`."""
        return self.sensitivity(neighbors=neighbors, max_contributions=max_contributions).l2_squared

    def noise_scale(
        self, loss: PrivacyLoss, *, neighbors: Neighbors, max_contributions: int = 1, n_levels: int = 1
    ) -> float:
        r"""Return the scale of the discrete Gaussian noise that Q x needs, in its unit, rounded up.

        Each row is measured `n_levels` times: once on each level of groups, with the same noise.

        **Privacy.** Neighbours move Q x by a vector of whole numbers of a norm up to :math:`\Delta_2`.
        Independent discrete Gaussian noise on its entries costs :math:`\rho = \Delta_2^2 / 2\sigma^2`,
        whatever the vector (Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy",
        2020, Theorem 14).

        For an (epsilon, delta), `gaussian_delta` bounds the delta of any such vector as well: all of the
        noise is simulated by continuous Gaussian noise, whose delta depends on the norm alone, at a cost that
        grows with the number of entries that move, which is at most :math:`\Delta_1`. The exact losses of
        single counts, which `gaussian_delta` uses for little noise, enter only if
        :math:`\Delta_1 = \Delta_2`, as with one bin; a move is then no worse than that of one count by
        :math:`\Delta_1`.
        """
        sensitivity = self.sensitivity(neighbors=neighbors, max_contributions=max_contributions)
        return float(Gaussian().noise_scales(loss, sensitivity, np.ones(n_levels))[0])

    @cached_property
    def _column_squares(self) -> _Whole:
        """The squared norms of the columns of G.

        G² is of the form of G, with p in the place of h: the norms are p(0) + p(2j + 1). Its first column is
        p(i) + p(i + 1), and p(K) = 0, so p follows from the last to the first.
        """
        h = self.coefficients
        first_column = _transform(h, h + np.append(h[1:], 0), 2 * int(h[0]))
        signs = (-1) ** np.arange(self.n_bins)
        p = signs * np.cumsum((signs * first_column)[::-1])[::-1]
        return np.asarray(p[0] + antiperiodic(p)[1::2])


def measure_weighted_sums(
    strategy: WeightedSums, counts: npt.ArrayLike, noise_scale: float, source: ByteSource
) -> IntArray:
    """Measure Q x: compute it exactly and add discrete Gaussian noise to every entry.

    The counts are clipped to 0 … 2**40, and the results to ±2**61: with 12 bits no entry gets there below
    2**36 records in total.

    **Privacy**: this is the one place where exact counts become noisy ones in the measurement of cumulative
    sums. The release is as private as `WeightedSums.noise_scale` states for this scale. No step depends on
    floating point: Q x is computed in whole numbers, the noise is drawn exactly, and a clipped entry moves no
    more than it would have.
    """
    exact = exact_values(counts)
    if exact.shape != (strategy.n_bins,):
        raise ArgumentError(
            "counts",
            f"must be one number for each of the {strategy.n_bins} bins, not of the shape {exact.shape}.",
            hint="an empty bin has the count 0.",
        )
    weighted = np.clip(exact, 0, LARGEST_BIN) * strategy.weights
    values = _transform(strategy.coefficients, weighted, LARGEST_BIN << strategy.bits)
    clipped = np.clip(values, -LARGEST_COUNT, LARGEST_COUNT).astype(np.int64)
    (noisy,) = measure(Gaussian(), [clipped], [noise_scale], source)
    assert noisy is not None
    return noisy


def antiperiodic(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Continue h(0), …, h(K − 1) to h(0), …, h(2K − 1), where h(n) = −h(2K − n)."""
    return np.concatenate([values, [0], -values[:0:-1]])


def _transform(h: IntArray, x: IntArray, largest: int) -> _Whole:
    """Return G x exactly, for whole numbers x from 0 to `largest`.

    With the convolutions c of h and x, and r of h and x backwards, the entry i is the sum of

    - h(i − j) x_j over j ≤ i, which is c(i),
    - h(j − i) x_j over j > i, which is r(K − 1 − i) − h(0) x_i,
    - h(i + j + 1) x_j over j < K − 1 − i, which is r(K + i),
    - −h(2K − 1 − i − j) x_j over j ≥ K − i, which is −c(2K − 1 − i).
    """
    size, bound = len(h), len(h) * int(h[0]) * largest
    forward, backward = _convolve(h, x, bound), _convolve(h, x[::-1], bound)
    near = forward[:size] + backward[size - 1 :: -1] - int(h[0]) * x.astype(object)
    return np.asarray(near + backward[size:] - forward[: size - 1 : -1])


def _convolve(first: IntArray, second: IntArray, bound: int) -> _Whole:
    """Return the convolution of two arrays of n whole numbers from 0 on, exactly, and one zero: 2n numbers.

    The numbers are the digits of two long decimal numbers, in a base above all digits of the product, which
    `bound` limits (Kronecker substitution). The product is exact by number-theoretic transforms.
    """
    half = -(-len(str(bound)) // 2)  # decimal digits
    n_digits = 4 * half * len(first)

    def packed(values: IntArray) -> Decimal:
        return Decimal("".join([f"{value:0{2 * half}d}" for value in values[::-1].tolist()]))

    exact = Context(prec=n_digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])
    digits = f"{exact.multiply(packed(first), packed(second)):0>{n_digits}f}"
    halves = np.frombuffer(digits.encode(), dtype=f"S{half}").astype(np.int64)
    high, low = halves.reshape(-1, 2)[::-1].T.astype(object)
    return np.asarray(high * 10**half + low)


def _frozen(values: IntArray) -> IntArray:
    values.setflags(write=False)
    return values
