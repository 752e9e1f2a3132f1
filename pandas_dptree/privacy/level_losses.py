r"""What the noise of one level spends, in both currencies in which budgets add up.

One is (epsilon, delta), differential privacy; the other (rho, delta), delta-approximate zero-concentrated
differential privacy (Bun and Steinke, "Concentrated differential privacy", 2016, Definition 8.1). The losses
of all levels of a release add up in either (Dwork, Kenthapadi, McSherry, Mironov and Naor, "Our data,
ourselves", 2006, Theorem 1; Bun and Steinke, Lemma 8.2).

**From epsilon to rho.** Let the probabilities of P and Q differ by factors of at most :math:`e^\epsilon`.
Then for every :math:`\alpha > 1` the Rényi divergence is

.. math:: D_\alpha(P \| Q) \le \alpha \, \epsilon \tanh(\epsilon/2). \quad (1)

*Proof.* P and Q are obtained from randomized response by a random map that is the same for both (Kairouz, Oh
and Viswanath, "The composition theorem for differential privacy", 2015), and such maps never increase
:math:`D_\alpha`. Randomized response gives one of two answers with the probabilities
:math:`e^\epsilon/(1 + e^\epsilon)` and :math:`1/(1 + e^\epsilon)`, in the other case with these exchanged. So

.. math:: D_\alpha = \frac{1}{\alpha - 1}\,
          \log\frac{e^{\epsilon\alpha} + e^{\epsilon(1 - \alpha)}}{1 + e^\epsilon}
          = \frac{\log\cosh((2\alpha - 1)\,\epsilon/2) - \log\cosh(\epsilon/2)}{\alpha - 1}.

Let :math:`u = (2\alpha - 1)^2`, so that :math:`u - 1 = 4\alpha(\alpha - 1)`, and
:math:`h(u) = \log\cosh(\sqrt u\,\epsilon/2)`. Its derivative
:math:`h'(u) = \frac{\epsilon}{4\sqrt u}\tanh(\sqrt u\,\epsilon/2)` falls, because :math:`\tanh(x)/x` does. So
h is concave, and :math:`h(u) - h(1) \le h'(1)(u - 1) = \alpha(\alpha - 1)\,\epsilon\tanh(\epsilon/2)`. ∎

This is the smallest such bound, since the two sides agree as :math:`\alpha \to 1`. It is below
:math:`\epsilon^2/2` (Bun and Steinke, Proposition 1.4), and close to it for small epsilon.

**A level with Laplace noise.** Let neighbours move the nodes of a level by whole numbers d with
:math:`\|d\|_1 \le \Delta_1`, :math:`\|d\|_2 \le \Delta_2` and :math:`|d_i| \le \Delta_\infty`. Noise of scale
b has :math:`\epsilon = \Delta_1/b` and

.. math:: \rho = \min\Bigl(\frac{\Delta_1}{b}\tanh\frac{\Delta_\infty}{2b},\;
          \frac{\Delta_2^2}{2b^2}\Bigr). \quad (2)

*Proof.* The noises of the nodes are independent, so their divergences add up. A node that moves by
:math:`d_i` changes probabilities by factors of at most :math:`e^{|d_i|/b}`. By (1) the sum is at most
:math:`\alpha \sum_i \frac{|d_i|}{b}\tanh\frac{|d_i|}{2b}`. Since tanh increases and :math:`\tanh x \le x`,
both terms of (2) bound it. ∎

If a unit with k rows is added or removed, :math:`\Delta_1 = \Delta_\infty = k`, and (2) is what (1) gives if
all rows are in one node. If it is replaced, :math:`\Delta_1 = 2k` and :math:`\Delta_\infty = k`, and (2) is
what (1) gives for two nodes that move by k each. By (2), no other way to spread the rows is worse. (The
divergence of the noise itself is a little smaller than (1) where k is above 1.)

**Truncated Laplace noise** has a finite radius R. Some answers are possible under one data set alone. Let
their probability be at most delta (`pandas_dptree.mechanisms.truncated` computes it), the same under both
data sets by symmetry. Given that no node has such an answer, node i has a number from the common range of
answers, with probabilities proportional to :math:`q^{|x - v_i|}` and :math:`q^{|x - v_i - d_i|}`. Mirrored,
one is the other, so their sums over the range are equal; and their ratios are at most
:math:`q^{-|d_i|} = e^{|d_i|/b}`. The nodes are still independent. So the level is delta-approximately
rho-zCDP with the rho of (2).

**Any mechanism that is (epsilon, delta)-DP** is delta-approximately :math:`\epsilon\tanh(\epsilon/2)`-zCDP.
It is obtained from randomized response that reveals the data set with the probability delta (Kairouz, Oh and
Viswanath). Given that it does not, (1) holds.

**Discrete Gaussian noise** of scale sigma has :math:`\rho = \Delta_2^2/2\sigma^2` (Canonne, Kamath and
Steinke, "The discrete Gaussian for differential privacy", 2020, Theorem 14), and no epsilon without a delta.

**Privacy**: everything here is public and depends on no record. Epsilons, and the rhos of Gaussian noise, are
exact fractions. Where tanh is computed, the result is rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from pandas_dptree.privacy.sensitivity import Sensitivity

__all__ = [
    "NOTHING",
    "LevelLoss",
    "approximate_level",
    "float_above",
    "gaussian_level",
    "laplace_level",
    "rho_of_epsilon",
]

# The argument is rounded to a float, which changes tanh by no more than the same relative error, and the
# error of math.tanh is below four units in the last place in all common libraries: less than 2**-49 together.
_MARGIN = Fraction(1, 2**48)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLoss:
    """What one level of a release spends, in two currencies: (epsilon, delta) and (rho, delta)."""

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction = Fraction(0)


NOTHING = LevelLoss(epsilon=Fraction(0), rho=Fraction(0))
"""The loss of a level that is not measured."""


def laplace_level(noise_scale: float, sensitivity: Sensitivity, delta: Fraction = Fraction(0)) -> LevelLoss:
    """Return what discrete Laplace noise on one level spends; `delta` is that of truncated noise."""
    if math.isinf(noise_scale):
        return NOTHING
    b = Fraction(noise_scale)
    epsilon = sensitivity.l1 / b
    rho = min(_times_tanh(epsilon, sensitivity.linf / (2 * b)), sensitivity.l2_squared / (2 * b**2))
    return LevelLoss(epsilon=epsilon, rho=rho, delta=delta)


def gaussian_level(noise_scale: float, sensitivity: Sensitivity) -> LevelLoss:
    """Return what discrete Gaussian noise on one level spends."""
    if math.isinf(noise_scale):
        return NOTHING
    return LevelLoss(epsilon=None, rho=sensitivity.l2_squared / (2 * Fraction(noise_scale) ** 2))


def approximate_level(epsilon: Fraction, delta: Fraction) -> LevelLoss:
    """Return what a mechanism spends of which no more is known than that it is (epsilon, delta)-DP."""
    return LevelLoss(epsilon=epsilon, rho=rho_of_epsilon(epsilon), delta=delta)


def rho_of_epsilon(epsilon: Fraction) -> Fraction:
    r"""Return :math:`\epsilon\tanh(\epsilon/2)`, rounded up: the rho of a mechanism that is epsilon-DP."""
    return min(_times_tanh(epsilon, epsilon / 2), epsilon**2 / 2)


def float_above(number: Fraction) -> float:
    """Return the smallest float that is not below a number."""
    rounded = float(number)
    return rounded if Fraction(rounded) >= number else math.nextafter(rounded, math.inf)


def _times_tanh(factor: Fraction, argument: Fraction) -> Fraction:
    """Return a number times the tanh of another, both at least 0, rounded up."""
    return factor * Fraction(math.tanh(float(argument))) * (1 + _MARGIN)
