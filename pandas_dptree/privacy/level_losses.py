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

**A node with Laplace noise.** Let a node move by a whole number d of at least 1 under noise of scale b. With
:math:`t = 1/b`, the smallest :math:`\rho` is the Kullback-Leibler divergence

.. math:: \rho(d) = dt - (1 - e^{-dt})\,\frac{t}{\sinh t}. \quad (2)

*Proof.* Let :math:`q = e^{-t}`. The noises up to 0, between 0 and d, and from d up have the losses
:math:`(d - 2j)\,t` with :math:`j = 0, \dots, d` and probabilities proportional to
:math:`1, (1 - q)\,q, \dots, (1 - q)\,q^{d - 1}, q^d`. With :math:`u = \alpha - 1/2` and
:math:`c = 1/(1 - q)`, the power of the ratio that :math:`D_\alpha` averages has the mean

.. math:: f(u) \propto c\,e^{udt} + e^{u(d - 2)t} + \dots + e^{-u(d - 2)t} + c\,e^{-udt},

because :math:`q^j e^{-(d - 2j)t/2}` is the same for all j. So :math:`(\alpha - 1)D_\alpha = \psi(u) = \log
f(u)` is even in u, it is 0 at :math:`u = 1/2`, and :math:`\alpha(\alpha - 1) = u^2 - 1/4`. As soon as
:math:`\psi` is concave in :math:`u^2`, it lies below its tangent at :math:`u = 1/2`:
:math:`(\alpha - 1)D_\alpha \le \alpha(\alpha - 1)\,\psi'(1/2)`, and :math:`\psi'(1/2)` is the mean loss,
which is (2). No smaller number does, since the tangent touches.

In :math:`z = e^{2ut}`, f is a power of z times :math:`p(z) = c(1 + z^d) + z + \dots + z^{d - 1}`. With
:math:`r = (c - 1)/c`, :math:`(z - 1)\,p(z) = 0` means :math:`z^d (z - r) = 1 - rz`. As :math:`c > 1/2`,
:math:`|r| < 1`: the left side is smaller in size within the unit circle, and larger outside. So all zeros of
p lie on the circle; none is 1, since :math:`p(1) > 0`. They come in conjugate pairs, but for -1. So f is, up
to a constant, a product of
:math:`\cosh 2ut - \cos\theta = (1 - \cos\theta)\prod_{n \in \mathbb Z}(1 + 4u^2t^2/(\theta + 2\pi n)^2)`, and
of :math:`\cosh ut` if d is odd, which is such a product too. The logarithm of each factor is concave in
:math:`u^2`. ∎

:math:`\rho(1) = t \tanh(t/2)`, as in (1). :math:`\rho(d)` increases with d, it is convex, and
:math:`\rho(0) = 0`.

**A level with Laplace noise.** Let neighbours move the nodes of a level by whole numbers d with
:math:`\|d\|_1 \le \Delta_1`, :math:`\|d\|_2 \le \Delta_2` and :math:`|d_i| \le \Delta_\infty`. Noise of scale
b has :math:`\epsilon = \Delta_1/b` and

.. math:: \rho = \min\Bigl(\lfloor \Delta_1/\Delta_\infty \rfloor\,\rho(\Delta_\infty)
          + \rho(\Delta_1 \bmod \Delta_\infty),\; \frac{\Delta_2^2}{2b^2}\Bigr). \quad (3)

*Proof.* The noises of the nodes are independent, so their divergences add up, and by (2) to at most
:math:`\alpha \sum_i \rho(|d_i|)`. The sum of a convex function that is 0 at 0 is largest where as many nodes
as possible move as far as possible, and one by the rest. And :math:`\rho(d) \le d^2/2b^2`: the loss is
between :math:`\pm dt`, so (1) applies, with :math:`\tanh x \le x`. ∎

If a unit with k rows is added or removed, :math:`\Delta_1 = \Delta_\infty = k`, and all rows in one node are
the worst. If it is replaced, :math:`\Delta_1 = 2k` and :math:`\Delta_\infty = k`: two nodes move by k each.

**Truncated Laplace noise** has a finite radius R. Some answers are possible under one data set alone. Let
their probability be at most delta (`pandas_dptree.mechanisms.truncated` computes it), the same under both
data sets by symmetry. Given that no node has such an answer, the nodes are still independent, and a node that
moves by d has a number from the common range, with probabilities proportional to :math:`q^{|x|}` and
:math:`q^{|x - d|}`. So the level is delta-approximately rho-zCDP with the rho of (3).

*Proof.* If :math:`d \le R`, the losses are those above, with :math:`c = 1 + q + \dots + q^{R - d}` instead of
:math:`1/(1 - q)`. That is above 1/2, so the proof of (2) holds. :math:`\psi'(1/2)` is a mean of
:math:`|d - 2j|\,t \tanh(|d - 2j|\,t/2)` over j in which the ends, where this is largest, have weights that
grow with c: it is at most what the larger :math:`1/(1 - q)` gives. If :math:`R < d \le 2R`, the common range
lies between both centres, and the losses are those of a move by :math:`2R - d < d` with :math:`c = 1`. In
fact R is at least :math:`\Delta_\infty`, so d is not above it. ∎

**Any mechanism that is (epsilon, delta)-DP** is delta-approximately :math:`\epsilon\tanh(\epsilon/2)`-zCDP.
It is obtained from randomized response that reveals the data set with the probability delta (Kairouz, Oh and
Viswanath). Given that it does not, (1) holds.

**Discrete Gaussian noise** of scale sigma has :math:`\rho = \Delta_2^2/2\sigma^2` (Canonne, Kamath and
Steinke, "The discrete Gaussian for differential privacy", 2020, Theorem 14), and no epsilon without a delta.

**Privacy**: everything here is public and depends on no record. Epsilons, and the rhos of Gaussian noise, are
exact fractions. What transcendental functions give is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from operator import add

from pandas_dptree.privacy.sensitivity import Sensitivity

__all__ = [
    "NOTHING",
    "LevelLoss",
    "approximate_level",
    "exact_sum",
    "float_above",
    "gaussian_level",
    "laplace_level",
    "laplace_rho",
    "largest",
    "rho_of_epsilon",
    "together",
]

# The argument is rounded to a float, which changes tanh by no more than the same relative error, and the
# error of math.tanh is below four units in the last place in all common libraries: less than 2**-49 together.
_MARGIN = Fraction(1, 2**48)
# Beyond these, other bounds on rho are as good as the exact one.
_TINY, _LARGE, _HUGE, _WIDE = Fraction(1, 10**30), 200, 10**4, 10**40


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLoss:
    """What one level of a release spends, in two currencies: (epsilon, delta) and (rho, delta)."""

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction = Fraction(0)


NOTHING = LevelLoss(epsilon=Fraction(0), rho=Fraction(0))
"""The loss of a level that is not measured."""


def together(levels: Iterable[LevelLoss]) -> LevelLoss:
    """Add up what the noise of several levels spends."""
    losses = list(levels)
    epsilons = [each.epsilon for each in losses if each.epsilon is not None]
    return LevelLoss(
        epsilon=exact_sum(epsilons) if len(epsilons) == len(losses) else None,
        rho=exact_sum([each.rho for each in losses]),
        delta=sum((each.delta for each in losses), Fraction()),
    )


def exact_sum(numbers: Sequence[Fraction]) -> Fraction:
    """Add up numbers in pairs, and these in pairs, so that few of the sums have large denominators."""
    sums = [*numbers]
    while len(sums) > 1:
        sums = [*map(add, sums[::2], sums[1::2]), *sums[len(sums) // 2 * 2 :]]
    return sums[0] if sums else Fraction()


def largest(losses: Sequence[LevelLoss]) -> LevelLoss:
    """Return the most that one of several spends, in each currency."""
    epsilons = [each.epsilon for each in losses if each.epsilon is not None]
    return LevelLoss(
        epsilon=max(epsilons) if len(epsilons) == len(losses) else None,
        rho=max(each.rho for each in losses),
        delta=max(each.delta for each in losses),
    )


def laplace_level(noise_scale: float, sensitivity: Sensitivity, delta: Fraction = Fraction(0)) -> LevelLoss:
    """Return what discrete Laplace noise on one level spends; `delta` is that of truncated noise."""
    if math.isinf(noise_scale) or not sensitivity.l1:
        return NOTHING
    b = Fraction(noise_scale)
    n_nodes, rest = divmod(sensitivity.l1, sensitivity.linf)
    rho = n_nodes * laplace_rho(b, sensitivity.linf) + laplace_rho(b, rest)
    return LevelLoss(
        epsilon=sensitivity.l1 / b, rho=min(rho, sensitivity.l2_squared / (2 * b**2)), delta=delta
    )


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


def laplace_rho(noise_scale: Fraction, shift: int) -> Fraction:
    r"""Return the smallest :math:`\rho` of discrete Laplace noise on a node that moves, rounded up.

    It is (2), at 120 digits. The difference in :math:`\sinh t` is off by :math:`10^{-119}/t` of itself, which
    moves rho by at most :math:`10^{-119}\epsilon/t = 10^{-119} d`; all else moves it less. Rho is at least
    :math:`\min(\epsilon, 1)^2/3`. So the margin of :math:`10^{-30}` suffices for any d if the scale is at
    most :math:`10^{40}`; beyond, rho is taken to be :math:`\epsilon^2/2`. Where t is large,
    :math:`t / \sinh t` is left out, which makes rho larger.
    """
    t = 1 / noise_scale
    epsilon = shift * t
    if shift == 1:
        return rho_of_epsilon(epsilon)
    square = epsilon**2 / 2  # bounds it, and is close to it for a small epsilon
    if epsilon < _TINY or noise_scale > _WIDE:
        return square
    if epsilon > _HUGE:
        return epsilon
    with localcontext(Context(prec=120, Emin=-999_999, Emax=999_999, traps=[])):
        e, step = (Decimal(each.numerator) / Decimal(each.denominator) for each in (epsilon, t))
        ratio = 2 * step / (step.exp() - (-step).exp()) if t < _LARGE else Decimal(0)
        rho = (e - (1 - (-e).exp()) * ratio) * (1 + Decimal(10) ** -30)
    return min(Fraction(rho), square)


def float_above(number: Fraction) -> float:
    """Return the smallest float that is not below a number."""
    rounded = float(number)
    return rounded if Fraction(rounded) >= number else math.nextafter(rounded, math.inf)


def _times_tanh(factor: Fraction, argument: Fraction) -> Fraction:
    """Return a number times the tanh of another, both at least 0, rounded up."""
    return factor * Fraction(math.tanh(float(argument))) * (1 + _MARGIN)
