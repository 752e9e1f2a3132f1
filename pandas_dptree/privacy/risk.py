r"""What an attacker gains by one release: how many they find, and what a suspicion becomes.

An attacker knows everything but one unit, and must guess from the release which of two neighbouring data sets
it was made from. A guess is a set S of releases after which they accuse. If the release has the distribution
Q under the innocent data set and P under the other, they falsely accuse with the probability :math:`\alpha =
Q(S)`, and find with the probability :math:`\beta = P(S)`. (Whoever tosses coins too takes a mean of such
sets, for which the same bounds hold, since they are linear.)

**How many are found.** A release is :math:`(\epsilon, \delta)`-DP if :math:`P(S) \le e^\epsilon Q(S) +
\delta` for all S and either order of neighbours. That for S is the first bound; that for the complement of S
in the other order, :math:`1 - \alpha \le e^\epsilon (1 - \beta) + \delta`, is the second:

.. math:: \beta \le e^\epsilon \alpha + \delta, \qquad
          \beta \le 1 - e^{-\epsilon}(1 - \alpha - \delta). \quad (1)

(Wasserman and Zhou, "A statistical framework for differential privacy", 2010, Theorem 2.4, for
:math:`\delta = 0`; Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", 2015,
Theorem 2.1, who show that a mechanism can attain the smaller of the two.) Let :math:`\delta(\epsilon)` be
such that the release is :math:`(\epsilon, \delta(\epsilon))`-DP for every :math:`\epsilon \ge 0`. Then (1)
holds for each of them, and so does the least of these bounds. If :math:`\delta(\epsilon)` is the smallest
possible for a pair of P and Q, that least bound is attained by the best guess: the largest :math:`\beta` is a
concave function of :math:`\alpha`, and each tangent of it is one of these lines (Dong, Roth and Su, "Gaussian
differential privacy", 2022, Section 2.3). For continuous Gaussian noise it is
:math:`\Phi(\Phi^{-1}(\alpha) + \mu)`, if neighbours are :math:`\mu = \sqrt{2\rho}` standard deviations apart.
That formula is *not* used here. It can be too small for discrete noise (at :math:`\sigma = 1`, whoever
accuses where a count of 0 or 1 is shown as 1 or more has :math:`\alpha = .3005` and finds .6995, not .6834),
and wherever thresholds hide nodes.

Every :math:`\epsilon` gives a valid bound. So only finitely many are tried, and how they are chosen affects
how close the bound is, never whether it holds.

**What a suspicion becomes.** Under pure :math:`\epsilon`, each release is at most :math:`e^\epsilon` times as
probable under P as under Q. By Bayes' rule, the odds of a suspicion grow by no more than that, and a
probability p becomes

.. math:: \frac{e^\epsilon p}{1 - p + e^\epsilon p} \quad (2)

at most. If neighbours differ by one unit more or fewer, the suspicion is that the unit *is in the data*,
with whatever rows: under that, the distribution of the release is a mean over the rows that the attacker
thinks possible, each at most :math:`e^\epsilon Q`. If neighbours have other rows of one unit, it is any
suspicion about *what its rows are*: a mean over the rows for which it is true against one over those for
which it is false. (A suspicion about the rows of a unit that may be absent compares two units with each
other, if neighbours differ by one more or fewer: its odds grow by :math:`e^{2\epsilon}` at most.) In either
case the attacker must not believe that the rows of others depend on this unit; what they learn about people
in general is not bounded by anything here. With a :math:`\delta`, or a :math:`\rho`, some releases reveal
everything, however rarely, so no such bound exists.

**Privacy**: everything here is public and depends on no record. All is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.privacy.conversions import zcdp_delta
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["found_at_most", "stated_delta", "suspicion_after"]

_EPSILONS = np.geomspace(2.0**-8, 2.0**3, 89).tolist()
"""The epsilons that are tried, each 9 % above the one before: at 7, the bound from 1 of 1000 is all."""

_MARGIN = 2.0**-40
"""Far more than the relative error of any sum, product or exponential here, each of numbers up to 1."""


def found_at_most(
    falsely_accused: Sequence[float],
    loss: PrivacyLoss,
    certified: Callable[[float], float] = lambda epsilon: 1.0,
) -> list[float]:
    """Return the largest share that is found by whoever falsely accuses each share, rounded up.

    `certified` returns a delta of the release at an epsilon, if more is known of it than its loss.

    >>> [round(found, 4) for found in found_at_most([0.01, 0.05], PrivacyLoss(epsilon=1.0))]
    [0.0272, 0.1359]
    """
    shares = [_share("falsely_accused", each) for each in falsely_accused]
    if loss.kind == "pure":  # by (1), no other epsilon gives less
        curve = [(loss.epsilon or 0.0, 0.0)]
    else:
        epsilons = sorted({*_EPSILONS, *([] if loss.epsilon is None else [loss.epsilon])})
        curve = [(epsilon, min(stated_delta(loss, epsilon), certified(epsilon))) for epsilon in epsilons]
    return [min(1.0, *(_bound(share, *point) for point in curve)) for share in shares]


def stated_delta(loss: PrivacyLoss, epsilon: float) -> float:
    """Return a delta at an epsilon that follows from a loss alone, rounded up; 1 if none does."""
    if loss.rho is not None:  # of a rho with a delta, see `PrivacyLoss`
        return min(1.0, (loss.delta + (1 - loss.delta) * zcdp_delta(loss.rho, epsilon)) * (1 + _MARGIN))
    assert loss.epsilon is not None
    return loss.delta if epsilon >= loss.epsilon else 1.0


def suspicion_after(before: float, epsilon: float) -> float:
    """Return the largest probability that one becomes by a release with a pure epsilon, rounded up.

    >>> round(suspicion_after(0.01, 1.0), 4)
    0.0267
    """
    before = _share("before", before)
    # (2), divided by e**epsilon, which may be too large for a float
    return min(1.0, before / (before + (1 - before) * math.exp(-epsilon)) * (1 + _MARGIN))


def _bound(share: float, epsilon: float, delta: float) -> float:
    """Return the smaller bound of (1), rounded up."""
    first = (math.exp(min(epsilon, 700.0)) * share + delta) * (1 + _MARGIN)
    return min(first, 1 - math.exp(-epsilon) * (1 - share - delta) + _MARGIN)


def _share(name: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float, np.number)) or not 0 < given < 1:
        raise ArgumentError(
            name, f"must hold shares between 0 and 1, not {quote(given)}.", hint="for example 0.05."
        )
    return float(given)
