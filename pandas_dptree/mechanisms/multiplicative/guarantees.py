"""Guarantees that a user can ask for in place of a kind of noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.mechanisms.arguments import number_between
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds
from pandas_dptree.mechanisms.multiplicative.thresholds import (
    Calibration,
    Thresholds,
    approximate_loss,
    group_loss,
)
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["SMALLEST_ALPHA", "Multiplicative"]

SMALLEST_ALPHA = 0.001
_FAILURE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiplicative:
    r"""Ask for counts with bounded relative error, which depends little on the depth of the tree.

    With the exact count w of a node and the released count c,

    .. math:: P\bigl(|c - w| \le \alpha \max(w, \tau)\bigr) \ge 1 - \eta

    for each node. It needs an epsilon and a delta.

    Parameters
    ----------
    alpha : float
        Relative error, at least 0.001 and below 1.
    threshold : float, optional
        :math:`\tau`, in counts, at least 1: the errors of smaller counts are relative to it. By default, the
        smallest one found for which the guarantee is proven.
    failure_probability : float, optional
        :math:`\eta`, the probability that the error of a given node exceeds its bound; at least 1e-15 and
        below 1/2. By default 0.05. With `clip`, :math:`d^{-2}` for d levels including the root, as in the
        proof of Theorem 4.1, which keeps the bound on the mean error small (1/4 for the root alone, never
        below 1e-15). A plan shows the value that it uses.
    calibration : {"exact", "proof"}
        "exact" has thresholds as small as the discrete noise allows; "proof" those of the paper, corrected,
        which are larger by orders of magnitude.
    clip : bool, default False
        Spend half of the loss on keeping each count within a window of radius R around the truth (Lemma 3.3).
        Then no error exceeds 2R, and its mean square is bounded too. The smallest threshold about doubles. R
        grows with the number of levels, and clipping pays only where :math:`\alpha\tau < R`: with an epsilon
        of 1 and a delta of 1e-6 from 239 levels for an alpha of 0.25, and from 128 for 0.5. On shallower
        trees the window alone bounds the error, and a count of zero is released as about R.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or a threshold is given with `clip`, which finds its own.

    Notes
    -----
    **Privacy**: public; it depends on no record.

    **When to use it.** The error hardly grows with the depth, but starts high, so additive noise is more
    accurate on all but very deep trees. With an epsilon of 1, a delta of 1e-6 and an alpha of 0.25,
    :math:`\alpha\tau` is 1,522 for 4 levels and 1,986 for 1,024; raw Gaussian noise keeps within 17 and 265
    of the truth in 95% of the nodes.

    References
    ----------
    Ghazi, Kamath, Kumar, Manurangsi and Wu, *On differentially private counting on trees*, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas_dptree as dpt
    >>> tree = dpt.Tree.from_branching([4, 8])
    >>> plan = dpt.plan(tree, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.25))
    >>> counts = plan.release(np.full(32, 100_000))
    >>> counts.columns.tolist()
    ['level', 'level_1', 'level_2', 'count', 'error_bound']
    """

    alpha: float
    threshold: float | None = None
    failure_probability: float | None = None
    calibration: Calibration = "exact"
    clip: bool = False

    def __post_init__(self) -> None:
        """Check the arguments, and convert the numbers to floats."""
        for name, low, high, example in (
            ("alpha", SMALLEST_ALPHA, 1, 0.25),
            ("failure_probability", 1e-15, 0.5, 0.05),
            ("threshold", 1, math.inf, 10_000),
        ):
            value = getattr(self, name)
            if value is not None or name == "alpha":
                object.__setattr__(self, name, number_between(name, value, low, high, example=example))
        if not isinstance(self.calibration, str) or self.calibration not in ("exact", "proof"):
            raise ArgumentError(
                "calibration", f"is unknown: {quote(self.calibration)}.", hint='pass "exact" or "proof".'
            )
        if not isinstance(self.clip, bool):
            raise ArgumentError(
                "clip",
                f"must be True or False, not {quote(self.clip)}.",
                hint="True bounds the mean squared error too.",
            )
        if self.clip and self.threshold is not None:
            raise ArgumentError(
                "threshold",
                "cannot be chosen with clip=True.",
                hint="leave it out: the smallest one is used.",
            )

    def thresholds(self, loss: PrivacyLoss, depth: int) -> Thresholds | ClippedThresholds:
        """Return the chain of thresholds for which the guarantee holds, for one row added or removed.

        `depth` is the number of nodes on a path from the root to a leaf.
        """
        loss = approximate_loss(loss)
        assert loss.epsilon is not None
        if self.clip:
            return ClippedThresholds(
                alpha=self.alpha, epsilon=loss.epsilon, delta=loss.delta, depth=depth,
                eta=self.failure_probability,  # type: ignore[arg-type]  # None stands for the default, from the depth
                calibration=self.calibration,
            )  # fmt: skip
        chain = Thresholds(
            alpha=self.alpha, epsilon=loss.epsilon, delta=loss.delta, depth=depth,
            eta=_FAILURE if self.failure_probability is None else self.failure_probability,
            tau=self.threshold,  # type: ignore[arg-type]  # None stands for the smallest
            calibration=self.calibration,
        )  # fmt: skip
        if not chain.guaranteed:
            raise ArgumentError(
                "threshold",
                f"is too small for the guarantee: {quote(self.threshold)}.",
                hint=f"pass at least {math.ceil(chain.smallest_tau)}, or None for the smallest; "
                "a larger loss, alpha or failure probability allows a smaller one.",
            )
        return chain

    def affordable_thresholds(
        self, loss: PrivacyLoss, rows: int, depth: int
    ) -> Thresholds | ClippedThresholds | None:
        """Return the chain for a loss per unit, or None if the loss has no delta or is too small.

        Neighbouring data sets differ by `rows` rows, added or removed. `depth` is as for `thresholds`.
        """
        if loss.kind != "approximate":
            return None
        try:
            return self.thresholds(group_loss(loss, rows), depth)
        except ArgumentError:
            return None
