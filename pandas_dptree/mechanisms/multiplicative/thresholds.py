r"""Sizes of the thresholds for counts with bounded relative error, and their shares of the loss.

Counts are compared with a rising chain of thresholds :math:`\tau_1 < \tau_2 < \dots`, from the largest down.
The count of a node that reaches :math:`\tau_i`, but no larger threshold, lies between :math:`L_i` and
:math:`M_i`, and one number :math:`v_i` stands for all of these counts. Everything computed here is public: it
depends on the privacy loss and the requested accuracy, and on the records through a noisy total alone. "The
paper" is Ghazi, Kamath, Kumar, Manurangsi and Wu, *On differentially private counting on trees*, 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.arguments import laplace_scale, number_between, whole_number
from pandas_dptree.mechanisms.multiplicative.chains import LARGEST_TOTAL, Exact, Method, Proof
from pandas_dptree.mechanisms.multiplicative.sparse_vector import SparseVector
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["LARGEST_TOTAL", "Calibration", "Round", "Thresholds", "approximate_loss", "group_loss"]

FloatArray = npt.NDArray[np.float64]
Calibration = Literal["proof", "exact"]

_LARGEST_EPSILON, _SMALLEST_DELTA = 1e300, 1e-280
"""Within these limits, no part, sum or quotient of a divided loss is out of the range of floats."""


class Round(NamedTuple):
    """One threshold, and its part of the privacy loss."""

    threshold: int
    """The questions are whether counts reach it."""
    cutoff: int
    """The maximum number of positive answers of each tree."""
    slack: int
    """After a positive answer the count is at least threshold - slack, up to the failure probability."""
    loss: PrivacyLoss
    """Half of epsilon is for the questions, the rest for the nodes with a positive answer."""
    estimate: int
    """The estimate for the nodes that reach the threshold."""

    def questions(self, n_trees: int, rng: np.random.Generator | None = None) -> SparseVector:
        """Start the sparse vector technique on the trees of a forest, with half of epsilon."""
        half = self.loss.part(Fraction(1, 2)).epsilon
        assert half is not None
        return SparseVector(
            threshold=self.threshold,
            cutoff=self.cutoff,
            epsilon=half,
            n_streams=n_trees,
            rng=rng,
        )

    @property
    def node_noise(self) -> TruncatedLaplace:
        """The noise of the nodes' counts after each positive answer: a part of the other half of epsilon."""
        half = self.loss.part(Fraction(1, 2 * self.cutoff)).epsilon
        assert half is not None
        return TruncatedLaplace(half, self.loss.part(Fraction(1, self.cutoff)).delta)

    def cut(self, radius: int) -> int:
        r"""Return the least noisy count at which a node is decided to reach the threshold.

        **Correction** of Algorithm 1, which has :math:`\tau - \Delta - R` alone: a noisy count above R is
        impossible for a node without records. So such nodes never reach any threshold, however small. Where
        they are not listed, privacy depends on it.
        """
        return max(self.threshold - self.slack - radius, radius + 1)

    @property
    def out_of_reach(self) -> int:
        """The largest count, at least 0, whose noisy count never reaches the cut."""
        radius = self.node_noise.radius
        return self.cut(radius) - radius - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Thresholds:
    r"""A chain of thresholds for counts with bounded relative error, and its division of the loss.

    It guarantees, for each node u of a tree with the exact count :math:`w_u` and the estimate
    :math:`\tilde w_u`,

    .. math:: P\bigl(|\tilde w_u - w_u| \le \alpha \max(w_u, \tau)\bigr) \ge 1 - \eta.

    `alpha` is the relative error, at least 0.001; `eta` the failure probability of each node; `depth` the
    number of nodes on a path from the root to a leaf. The loss is for one row that is added or removed
    (`group_loss` has that of several, or of replaced ones). With a `tau` below `smallest_tau` the chain is as
    private, but nothing is guaranteed. The calibration "proof" is the chain of the paper, corrected; "exact"
    is one with thresholds as small as the discrete noise allows.

    Attributes
    ----------
    smallest_tau : float
        The smallest tau found for which the guarantee is proven. (With "exact", rounding may let one that is
        smaller by a few counts divided by alpha do as well, which the search by bisection misses.)
    bounds : numpy.ndarray of int64, shape (n_thresholds + 1,)
        :math:`M_0 < M_1 < \dots`: a node that does not reach :math:`\tau_{i+1}` counts at most :math:`M_i`.
    estimates : numpy.ndarray of int64, shape (n_thresholds + 1,)
        :math:`v_i`, the only values of the estimates.
    thresholds : numpy.ndarray of int64, shape (n_thresholds,)
        :math:`\tau_1, \tau_2, \dots`, rounded up to whole numbers, which separate counts just as well.
    total_noise : TruncatedLaplace
        The noise of the total that determines the number of thresholds.

    **Privacy**: public; computed from the arguments alone.

    *Proof calibration*, Theorem A.1 and Corollary 4.7 with :math:`\beta = \alpha/(6 + 5\alpha)` and
    :math:`r = (1+\alpha)(1-\beta)/(1+\beta) > 1`:

    .. math::
        M_i = \alpha\tau r^i, \quad \tau_i = \frac{\alpha\tau}{1+\beta} r^{i-1}, \quad
        \eta_i = \frac{\eta}{2^i}, \quad
        \epsilon_i = \frac\epsilon2 \frac{w_i}{\sum_j w_j}, \quad
        \delta_i = \frac\delta2 \frac{w_i}{\sum_j w_j}, \quad w_i = i\,r^{-(i-1)},

    the sums being over the thresholds in use. (No weight is taken below :math:`2^{-13}` of the mean, which
    limits the noise scales of long chains.)

    **Corrections** of the paper: its exponent of r in the weights is i - 1, whose series diverges, so that
    the losses add up to more than the whole. Algorithm 4 has :math:`r^i` in :math:`\tau_i`, with which
    condition (4), :math:`M_{i-1} \ge (1+\beta)\tau_i`, fails. The cutoff
    :math:`M_i/(1-\beta)\tau_i = 1 + \alpha` has to be a whole number, 2. And the constants 162 and 324 are
    too small, so the smallest tau is computed from condition (2) itself,

    .. math::
        \beta\tau_1 \ge \frac{2(1+\alpha)(1-\beta)}{\epsilon_1} \max\Bigl\{48 \ln\frac{4d}\eta,\;
        6 \ln\Bigl(1 + \frac{e^{\epsilon_1/2} - 1}{\delta_1}\Bigr)\Bigr\} + 4.

    It is enough to look at i = 1 and the infinite series :math:`\sum_i w_i = (1 - 1/r)^{-2}`, increased by
    that part. Divided by the growth of :math:`\tau_i \epsilon_i \propto i`, the first logarithm falls with i.
    So does the second, :math:`h(x) = \ln(1 + (e^x - 1)/\kappa x)` with :math:`x = \epsilon_i/2` and
    :math:`\kappa = 2\delta/\epsilon`: as :math:`0 \le h' \le 1` and :math:`x_i \le i x_1`, it is at most
    :math:`h(x_1) + (i - 1)x_1 \le i h(x_1)`, for :math:`\delta_1 \le 1` makes :math:`x_1 \le h(x_1)`. With
    fewer thresholds all losses grow by a factor, and :math:`h(x)/x` falls likewise. The 4 makes room for
    whole numbers: :math:`\Delta` is rounded up to an even one, R to a whole one.

    *Exact calibration*: the same questions at the same loss, with five savings.

    1. The estimate is not the upper end of :math:`[L_i, M_i]` but the point of equal relative error to both
       ends. So the ratio of the ends may be :math:`(1+\alpha)/(1-\alpha)` instead of :math:`1 + \alpha`.
       Likewise for :math:`[0, M_0]`, where :math:`M_0 \ge 2\alpha\tau` instead of :math:`\alpha\tau`.
    2. The ratio is kept at 2 or below, so one positive answer per tree is enough. Let all answers be right.
       After the positive one, some node of at least :math:`\tau_i - \Delta_i > M_i/2` is decided with its
       ancestors; all others beside them count less than that together.
    3. With a single positive answer the questions are not adaptive: they are the d maxima from the bottom up,
       or `Round.out_of_reach` where that is more, which is below :math:`\tau_i - \Delta_i`. Call those of at
       least :math:`\tau_i + \Delta_i'` large. The answers are right if no question before the first large one
       is answered positively although it is below :math:`\tau_i - \Delta_i`, and the first large one is not
       answered negatively. With the noises of threshold and question of scales :math:`4/\epsilon_i` and
       :math:`8/\epsilon_i` and :math:`a = e^{-\epsilon_i/8}`, each of these errors has a probability of at
       most

       .. math:: P(X > \Delta) \le \frac{1 - a^2}{1 - a^3}\, a^{\Delta + 1},

       since the distribution of the sum of the two is known. The former errors may have :math:`\eta_i/2` in
       all, the latter too.
    4. The distances satisfy only what is needed: :math:`M_{i-1} \ge \tau_i + \Delta_i' - 1` and
       :math:`L_i \le \tau_i - \Delta_i - 2R_i`, R being the exact radius.
    5. The total gets a hundredth of the loss instead of half. :math:`\eta_i = \eta/i(i+1)`, and
       :math:`\epsilon_i`, :math:`\delta_i` follow what the distances cost at a constant growth r, which is
       chosen for the smallest tau.

    Rounding to whole numbers may leave too little room for a tau just above one that has enough. The chain is
    then that of the next smaller tau with enough room, whose guarantee implies the requested one.
    """

    alpha: float
    eta: float
    epsilon: float
    delta: float
    depth: int
    tau: float = None  # type: ignore[assignment]  # the smallest, filled in below
    calibration: Calibration = "exact"
    smallest_tau: float = field(init=False)
    bounds: IntArray = field(init=False, repr=False)
    estimates: IntArray = field(init=False, repr=False)
    thresholds: IntArray = field(init=False, repr=False)
    total_noise: TruncatedLaplace = field(init=False, repr=False)
    _rest: PrivacyLoss = field(init=False, repr=False)
    _method: Method = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments and compute the chain."""
        alpha = number_between("alpha", self.alpha, 0.001, 1, example=0.1)
        eta = number_between("eta", self.eta, 1e-15, 0.5, example=0.05)
        depth = whole_number("depth", self.depth, at_least=1, hint="the root alone has depth 1.")
        loss = approximate_loss(PrivacyLoss(epsilon=self.epsilon, delta=self.delta))
        if not isinstance(self.calibration, str) or self.calibration not in ("proof", "exact"):
            raise ArgumentError(
                "calibration", f"is unknown: {quote(self.calibration)}.", hint='pass "exact" or "proof".'
            )
        kind = Proof if self.calibration == "proof" else Exact
        total, rest = loss.divide([kind.total_share, 1 - kind.total_share])
        least = rest.rounded_down
        assert total.epsilon is not None and least.epsilon is not None
        total_noise = TruncatedLaplace(total.epsilon, total.delta)
        method: Method = kind(alpha, eta, least.epsilon, least.delta, depth)
        smallest = method.smallest_tau()
        tau = smallest if self.tau is None else self.tau
        tau = number_between("tau", tau, 1, math.inf, example=math.ceil(smallest))
        for name, value in {
            "alpha": alpha, "eta": eta, "epsilon": loss.epsilon, "delta": loss.delta, "depth": depth,
            "tau": tau, "smallest_tau": smallest, **method.chain(tau)._asdict(),
            "total_noise": total_noise, "_rest": rest, "_method": method,
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)
        shares = method.weights(len(self.thresholds))
        smallest_part = float(shares.min() / shares.sum()) if len(shares) else 1.0
        if 16 * method.cutoff / LARGEST_SCALE > least.epsilon * smallest_part:
            raise ArgumentError(
                "epsilon",
                f"is too small to be divided over {len(shares)} thresholds.",
                hint="pass a larger epsilon, alpha or tau.",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return what a release depends on as plain JSON: the rounds are those of the largest total."""
        rounds = self.rounds(int(self.bounds[-1]) + 1)
        return {
            "tau": self.tau,
            "bounds": self.bounds.tolist(),
            "estimates": self.estimates.tolist(),
            "total_noise": self.total_noise.to_dict(),
            "rounds": [{**each._asdict(), "loss": each.loss.to_dict()} for each in rounds],
        }

    @property
    def loss_of_rounds(self) -> PrivacyLoss:
        """What all rounds spend together, however many there are: the loss without that of the total."""
        return self._rest

    @property
    def guaranteed(self) -> bool:
        """Whether `alpha`, `tau` and `eta` are proven to hold, for totals of 2**40 at most."""
        return self.tau >= self.smallest_tau

    def rounds(self, total: int) -> tuple[Round, ...]:
        """Divide the loss over the thresholds that a noisy total, not below the exact one, needs.

        They come from the smallest to the largest: none if the total is at most ``bounds[0]``. Their losses
        and that of `total_noise` sum to at most `epsilon` and `delta`, exactly.
        """
        n_rounds = min(int(np.searchsorted(self.bounds, total)), len(self.thresholds))
        if n_rounds == 0:
            return ()
        losses = self._rest.divide(self._method.weights(n_rounds).tolist())
        epsilons = np.array([loss.rounded_down.epsilon for loss in losses], dtype=np.float64)
        slack = self._method.slack(epsilons)
        return tuple(
            Round(
                threshold=int(self.thresholds[i]),
                cutoff=self._method.cutoff,
                slack=int(slack[i]),
                loss=losses[i],
                estimate=int(self.estimates[i + 1]),
            )
            for i in range(n_rounds)
        )


def group_loss(loss: PrivacyLoss, rows: int) -> PrivacyLoss:
    r"""Return the loss for one row that implies a given loss for groups of rows, rounded down.

    **Correction**: the rows of one unit may lie in several trees, so their losses do not compose in parallel,
    as those of the paper's trees do for a single row. A mechanism that is
    :math:`(\epsilon/k,\; \delta\,(e^{\epsilon/k} - 1)/(e^\epsilon - 1))`-DP for one row is
    :math:`(\epsilon, \delta)`-DP for k (Fact 2.2). k is the number of a unit's rows, and twice that if they
    are replaced: ``Sensitivity.l1`` of the counts.
    """
    loss = approximate_loss(loss)
    k = whole_number("rows", rows, at_least=1, hint="1 where a unit is one row that is added or removed.")
    if k == 1:
        return loss
    assert loss.epsilon is not None
    each = loss.part(Fraction(1, k)).epsilon
    assert each is not None
    # (e^s - 1)/(e^t - 1) = e^-(t - s) (1 - e^-s)/(1 - e^-t). The result is not subnormal, so t - s is
    # below 700, and rounded by 2**-44 at most; 1e-12 is above all errors together, and above the distance of
    # the floats from the exact values of the loss.
    part = math.expm1(-each) / math.expm1(-loss.epsilon) * math.exp(each - loss.epsilon)
    delta = loss.delta * part * (1 - 1e-12)
    if delta < _SMALLEST_DELTA:
        raise _too_small(f"to be divided among {k} rows")
    return PrivacyLoss(epsilon=each, delta=delta)


def approximate_loss(loss: PrivacyLoss) -> PrivacyLoss:
    """Check that a loss has an epsilon and a delta that are in the range in which they can be divided."""
    if loss.kind != "approximate":
        raise ArgumentError(
            "delta", "must be above 0, and epsilon given.", hint="for example epsilon=1.0 and delta=1e-6."
        )
    assert loss.epsilon is not None
    laplace_scale(loss.epsilon, 1)  # raises if no noise is large enough
    if loss.epsilon > _LARGEST_EPSILON:
        raise ArgumentError(
            "epsilon",
            f"is too large: {quote(loss.epsilon)}.",
            hint="an epsilon of more than a few protects nobody; for example epsilon=1.0.",
        )
    if loss.delta < _SMALLEST_DELTA:
        raise _too_small(f"to be divided: {quote(loss.delta)}")
    return loss


def _too_small(why: str) -> ArgumentError:
    return ArgumentError(
        "delta",
        f"is too small {why}.",
        hint=f"no part may be below {_SMALLEST_DELTA:g}; pass a larger delta, or divide it into fewer parts.",
    )
