"""The sparse vector technique: find which of many counts reach a threshold, paying only for those."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.arguments import exact_values, laplace_scale, noise_source, whole_number
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.sampling import discrete_laplace

__all__ = ["SparseVector"]

BoolArray = npt.NDArray[np.bool_]


class SparseVector:
    r"""Decide for one count after another whether it reaches a threshold, as long as few do.

    An answer is positive if the noisy count is at least the noisy threshold. The noise of the threshold is
    renewed after each positive answer, and after `cutoff` positive answers all further ones are negative,
    whatever the counts. With c the cutoff and k the sensitivity, the noise is discrete Laplace of scale
    :math:`2ck/\epsilon` for the threshold and of scale :math:`4ck/\epsilon` for each count. Negative answers
    are free: any number of counts may be asked about, and each may depend on the answers before.

    Parameters
    ----------
    threshold : int
        In counts; a fractional threshold means the same as the next whole number above.
    cutoff : int
        The maximum number of positive answers of a stream, at least 1.
    epsilon : float
        Above 0.
    sensitivity : int, default 1
        The most k by which one privacy unit moves any of the counts.
    n_streams : int, default 1
        Number of independent streams of counts, each with its own noisy threshold and its own `cutoff`.
    rng : numpy.random.Generator, optional
        For repeatable tests only. The noise comes from the operating system by default.

    Attributes
    ----------
    threshold_scale, query_scale : float
        The scales of the noise, in counts, rounded up.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or `epsilon` so small that a noise scale would be above 1e12.

    Notes
    -----
    **Privacy**: epsilon-DP for all answers together, if one privacy unit moves the counts of a single stream
    only (streams over disjoint data). The caller is responsible for that, and for the sensitivity. The noisy
    thresholds inside the object are secret: do not publish it, and do not use a copy of it, which would use
    the same noise twice.

    *Proof.* Take neighbouring data x and x', and fix the answers. Given those before, the next question is
    the same for both, so their probability is the product of those of *rounds*: the questions from one draw
    of the threshold noise to the next positive answer. Let the round's counts be :math:`f_i` for x and
    :math:`f_i'` for x', with :math:`|f_i - f_i'| \le k`, and let it end with the positive answer m. With r
    the noise of the threshold :math:`\tau`, and :math:`\nu_i` those of the counts, its probability is

    .. math:: \sum_r P(r) \prod_{i<m} P(f_i + \nu_i < \tau + r) \; P(f_m + \nu_m \ge \tau + r).

    Compare the term of r for x with the term of r + k for x'. As k is whole, this pairs all terms; and

    - :math:`P(r) \le e^{\epsilon/2c}\, P(r + k)`, for a shift by k at the scale :math:`2ck/\epsilon`;
    - :math:`P(f_i + \nu_i < \tau + r) \le P(f_i' + \nu_i < \tau + r + k)`, as :math:`f_i' \le f_i + k`;
    - :math:`P(f_m + \nu_m \ge \tau + r) \le e^{\epsilon/2c}\, P(f_m + \nu_m \ge \tau + r + 2k)`, for a shift
      by 2k at the scale :math:`4ck/\epsilon`; and that is at most
      :math:`e^{\epsilon/2c}\, P(f_m' + \nu_m \ge \tau + r + k)`, as :math:`f_m' \ge f_m - k`.

    So a round costs :math:`\epsilon/c` at most; one without a positive answer, to which only the first two
    lines apply, :math:`\epsilon/2c`. There are c rounds at most, and no noise decides the answers after them.
    The answers of the other streams are as likely under x as under x', however the questions were chosen from
    all answers so far. Whole numbers matter: the discrete noise has these ratios for shifts by whole numbers
    only. Magnitudes of noise above 2**62 are cut off, which a draw exceeds with a probability below
    10**-2000000.

    Renewing the threshold's noise is not what protects: drawn once, it would cost :math:`\epsilon/2c` once,
    by the same comparison (Lyu, Su and Li, "Understanding the sparse vector technique for differential
    privacy", 2017). It keeps one unlucky threshold from spoiling all answers of a stream.

    **Correction**: the cutoff must be a whole number. Lemma 2.9 of the paper takes any :math:`c \ge 1`; but
    with a fractional c, ``t < c`` lets ⌈c⌉ positive answers through, while the noise pays for c.

    References
    ----------
    Ghazi, Kamath, Kumar, Manurangsi and Wu, *On differentially private counting on trees*, 2023, Algorithm 3;
    after Dwork and Roth, *The algorithmic foundations of differential privacy*, 2014, Theorem 3.25.

    Examples
    --------
    >>> large = SparseVector(threshold=1000, cutoff=2, epsilon=1.0, rng=np.random.default_rng(1))
    >>> [bool(large.ask(count)) for count in (30, 2500, 410, 1800, 3000)]
    [False, True, False, True, False]
    >>> large.exhausted.tolist()
    [True]
    """

    def __init__(
        self,
        *,
        threshold: int,
        cutoff: int,
        epsilon: float,
        sensitivity: int = 1,
        n_streams: int = 1,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.threshold = whole_number(
            "threshold", threshold, at_least=-LARGEST_COUNT, hint="round a fractional threshold up."
        )
        self.cutoff = whole_number(
            "cutoff",
            cutoff,
            at_least=1,
            hint="round up: a fraction would allow one more positive answer than the noise pays for.",
        )
        self.sensitivity = whole_number(
            "sensitivity", sensitivity, at_least=1, hint="1 where a unit is one row."
        )
        self.n_streams = whole_number("n_streams", n_streams, at_least=0, hint="1 for a single stream.")
        self.threshold_scale = laplace_scale(epsilon, 2 * self.cutoff * self.sensitivity)
        self.query_scale = laplace_scale(epsilon, 4 * self.cutoff * self.sensitivity)
        self.epsilon = float(epsilon)
        self._source = noise_source(rng)
        self._n_positive = np.zeros(self.n_streams, dtype=np.int64)
        self._noisy_threshold = self._draw_thresholds(self.n_streams)

    @property
    def n_positive(self) -> IntArray:
        """Number of positive answers of each stream so far: shape (n_streams,)."""
        return self._n_positive.copy()

    @property
    def exhausted(self) -> BoolArray:
        """Which streams have had all their positive answers: shape (n_streams,)."""
        return self._n_positive >= self.cutoff

    def ask(self, values: npt.ArrayLike, streams: npt.ArrayLike | None = None) -> BoolArray:
        """Ask about the next count of each stream, or of some of them.

        Parameters
        ----------
        values : array_like of an integer type, shape (n_asked,)
            Exact counts, one for each stream asked. Those beyond ±2**61 are clipped.
        streams : array_like of int, shape (n_asked,), optional
            The streams they belong to, from 0 to n_streams - 1, each at most once. All by default.

        Returns
        -------
        numpy.ndarray of bool, of the shape of `values`
            True where the noisy count is at least the noisy threshold; False for an exhausted stream.

        Notes
        -----
        **Privacy**: which streams are asked, and about what, may depend on earlier answers, and on the
        records in no other way.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> large = SparseVector(threshold=500, cutoff=1, epsilon=1.0, n_streams=3, rng=rng)
        >>> large.ask([0, 900, 100])
        array([False,  True, False])
        >>> large.ask([900, 100], streams=[0, 2])
        array([ True, False])
        """
        exact = exact_values(values)
        asked = self._checked_streams(streams, exact.shape)
        answers = np.zeros(len(asked), dtype=np.bool_)
        open_ = self._n_positive[asked] < self.cutoff
        asked = asked[open_]
        noisy = exact.reshape(-1)[open_] + discrete_laplace(self.query_scale, len(asked), self._source)
        answers[open_] = noisy >= self._noisy_threshold[asked]
        positive = asked[answers[open_]]
        self._n_positive[positive] += 1
        self._noisy_threshold[positive] = self._draw_thresholds(len(positive))
        return answers.reshape(exact.shape)

    def error_bound(self, n_queries: int, failure_probability: float, *, exact: bool = False) -> float:
        r"""Return a bound on the distance from the threshold of counts that get a wrong answer.

        With probability at least ``1 - failure_probability``, the following holds for the first `n_queries`
        answers of one stream, up to the one that exhausts it: a count answered positively is at least
        ``threshold - D``, and a count answered negatively is below ``threshold + D``, D being the bound.

        Parameters
        ----------
        n_queries : int
            d, at least 1.
        failure_probability : float
            :math:`\eta`, above 0 and below 1. For all streams together, divide it by their number.
        exact : bool, default False
            Return the smallest D that the tails of the discrete noise imply, a whole number, instead of the
            formula of Lemma 2.9, :math:`8ck/\epsilon \cdot \ln(2d/\eta)`. Both are in counts.

        Notes
        -----
        A wrong answer to a count D or more off needs :math:`|\rho - \nu| > D` for the noise :math:`\rho` of
        the threshold and :math:`\nu` of the count. So for any split of D into whole numbers a and b, one of
        two things happens. Either :math:`|\rho| > a` for one of the min(c, d) thresholds in use; or
        :math:`\nu` is beyond b on one side, the one that depends on where the count lies. As :math:`\nu` is
        drawn afterwards, all of that has a probability of at most

        .. math:: 2 \min(c, d) \frac{q_1^{a+1}}{1 + q_1} + d\,\frac{q_2^{b+1}}{1 + q_2},

        with :math:`q = e^{-1/\text{scale}}` of the threshold and of the counts. The exact bound is the
        smallest D with a split for which this is at most :math:`\eta`. It is below the formula, which
        therefore holds for discrete noise too.

        Examples
        --------
        >>> large = SparseVector(threshold=1000, cutoff=2, epsilon=1.0)
        >>> round(large.error_bound(100, 0.05), 1), large.error_bound(100, 0.05, exact=True)
        (132.7, 77.0)
        """
        d = whole_number("n_queries", n_queries, at_least=1, hint="it is the number of counts asked about.")
        if not isinstance(failure_probability, float | np.floating) or not 0 < failure_probability < 1:
            raise ArgumentError(
                "failure_probability",
                f"must be above 0 and below 1, not {quote(failure_probability)}.",
                hint="for example failure_probability=0.05.",
            )
        if not exact:
            factor = 8 * self.cutoff * self.sensitivity
            return factor / self.epsilon * math.log(2 * d / failure_probability)

        s, t = self.threshold_scale, self.query_scale
        # The logarithms of both terms of the sum at a = b = 0.
        of_threshold = math.log(2 * min(self.cutoff, d)) - 1 / s - math.log1p(math.exp(-1 / s))
        of_queries = math.log(d) - 1 / t - math.log1p(math.exp(-1 / t))

        def least_failure(bound: int) -> float:
            """Split the bound: the sum is convex in a, and its derivative vanishes at `best`."""
            best = (bound / t + of_threshold - math.log(s) - of_queries + math.log(t)) / (1 / s + 1 / t)
            return min(
                math.exp(of_threshold - a / s) + math.exp(of_queries - (bound - a) / t)
                for a in (min(max(near, 0), bound) for near in (math.floor(best), math.ceil(best)))
            )

        too_small, enough = (
            -1,
            math.ceil(s * math.log(4 * d / failure_probability))
            + math.ceil(t * math.log(2 * d / failure_probability)),
        )
        while enough - too_small > 1:
            middle = (too_small + enough) // 2
            too_small, enough = (
                (too_small, middle) if least_failure(middle) <= failure_probability else (middle, enough)
            )
        return float(enough)

    def _draw_thresholds(self, size: int) -> IntArray:
        return self.threshold + discrete_laplace(self.threshold_scale, size, self._source)

    def _checked_streams(self, streams: npt.ArrayLike | None, shape: tuple[int, ...]) -> IntArray:
        """Return the streams to which values of a shape belong."""
        asked = np.arange(self.n_streams) if streams is None else np.asarray(streams)
        if asked.dtype.kind not in "iu" or asked.ndim != 1:
            raise ArgumentError(
                "streams",
                f"must be a flat array of whole numbers, not {asked.dtype} of shape {asked.shape}.",
                hint="for example streams=[0, 2]; for a mask, numpy.flatnonzero(mask).",
            )
        if len(asked) and not 0 <= asked.min() <= asked.max() < self.n_streams:
            raise ArgumentError(
                "streams",
                f"must be from 0 to {self.n_streams - 1}.",
                hint="streams are numbered from 0.",
            )
        if len(np.unique(asked)) < len(asked):
            raise ArgumentError(
                "streams",
                "must list each stream at most once per call.",
                hint="ask one count after the other, in several calls.",
            )
        if shape != asked.shape and not (shape == () and len(asked) == 1):
            raise ArgumentError(
                "values",
                f"must hold one number for each of the {len(asked)} streams asked, not have shape {shape}.",
                hint="name the streams: streams=[...].",
            )
        return asked.astype(np.int64, copy=False)
