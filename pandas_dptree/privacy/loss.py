"""Privacy loss of a release, and conversions between its definitions.

There are four: pure differential privacy (``epsilon``), approximate differential privacy (``epsilon`` and
``delta``), zero-concentrated differential privacy (``rho``) and its approximate form (``rho`` and ``delta``).
Conversions never overstate privacy: they are rounded outward by more than their own rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from pandas_dptree.errors import ArgumentError, quote, warn

__all__ = [
    "ExactLoss",
    "PrivacyLoss",
    "checked_shares",
    "exact",
    "float_below",
    "float_within",
    "ungated_loss",
    "warn_if_useless",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]

MOST_EPSILON, MOST_RHO, MOST_DELTA = 20.0, 10.0, 1e-3
"""Above one of these, a loss protects nobody: see `PrivacyLoss.objection`."""

# Each conversion below is a sum of at most four terms, each computed with at most eight roundings
# (2**-53 relative) and library functions (below 2**-52). 2**-47 times the sum of the absolute terms is more
# than ten times all these errors together.
_MARGIN = 2.0**-47


def exact(number: float) -> Fraction:
    """Return the exact value of a number that somebody typed: the float or its shortest decimal, if smaller.

    Whoever types 0.1 means one tenth. The nearest float is a little above it, that of 0.3 a little below
    three tenths. Noise is calibrated to the smaller of the two, so a release spends neither more than the
    decimal, by which budgets are added up, nor more than the float, which is what programs compare. Ten
    releases with an epsilon of 0.1 spend at most 1.

    Examples
    --------
    >>> exact(0.1)
    Fraction(1, 10)
    >>> Fraction(0.1) > exact(0.1), Fraction(0.3) == exact(0.3)
    (True, True)
    """
    return min(Fraction(number), Fraction(repr(float(number))))


class ExactLoss(NamedTuple):
    """The parameters of a `PrivacyLoss`, each by the rule of `exact`; epsilon or rho is None."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyLoss:
    r"""The privacy loss of one release: exactly one of `epsilon` and `rho`, with or without a `delta`.

    Parameters
    ----------
    epsilon : float, optional
        Pure differential privacy; together with `delta`, approximate differential privacy.
    delta : float, default 0.0
        Probability, below 1, with which the guarantee of `epsilon` or `rho` may fail.
    rho : float, optional
        Zero-concentrated differential privacy (zCDP); together with `delta`, approximate zCDP.

    Raises
    ------
    ArgumentError
        If none or both of `epsilon` and `rho` are given, one is not a positive finite number, or `delta`
        is not in [0, 1).

    Notes
    -----
    **Privacy**: the loss is public. It bounds how much the distribution of the release may depend on the
    records of one privacy unit.

    A release is :math:`\delta`-approximately :math:`\rho`-zCDP if for any two neighbouring data sets there
    are events, one under each, of probability at least :math:`1 - \delta`, given which the two distributions
    of the release are as close as :math:`\rho`-zCDP requires (Bun and Steinke, "Concentrated differential
    privacy", 2016, Definition 8.1). If :math:`\rho`-zCDP implies :math:`(\epsilon, \delta')`-DP, then such a
    release is :math:`(\epsilon, \delta + (1 - \delta)\delta')`-DP. Only releases gated by Gaussian thresholds
    have this kind of loss (`pandas_dptree.privacy.gated`); `ungated_loss` refuses it for all others.

    The parameters are shown as they were typed. What a release may spend is `exact`: no more than the float,
    and no more than the decimal number that was typed.

    Examples
    --------
    >>> PrivacyLoss(epsilon=1.0, delta=1e-6).kind
    'approximate'
    >>> PrivacyLoss(rho=0.1).to_dict()
    {'rho': 0.1}
    >>> PrivacyLoss(rho=0.02, delta=1e-6).kind
    'approximate_zcdp'
    """

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None

    def __post_init__(self) -> None:
        """Check that the three parameters are consistent."""
        if self.epsilon is None and self.rho is None:
            raise ArgumentError(
                "epsilon", "or `rho` must be given: neither was.", hint="for example epsilon=1.0, or rho=0.1."
            )
        if self.epsilon is not None and self.rho is not None:
            raise ArgumentError(
                "rho", "cannot be given together with `epsilon`.", hint="pass only one of the two."
            )
        delta = _number("delta", self.delta)
        if not 0 <= delta < 1:
            raise ArgumentError(
                "delta",
                f"must be at least 0 and below 1, not {quote(self.delta)}.",
                hint="for example delta=1e-6.",
            )
        object.__setattr__(self, "delta", delta)
        for name in ("epsilon", "rho"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _positive(name, getattr(self, name)))

    @property
    def kind(self) -> Literal["pure", "approximate", "zcdp", "approximate_zcdp"]:
        """Kind of differential privacy."""
        if self.rho is not None:
            return "approximate_zcdp" if self.delta else "zcdp"
        return "approximate" if self.delta else "pure"

    def to_dict(self) -> dict[str, float]:
        """Return the parameters by name, as in ``attrs`` and JSON."""
        if self.rho is not None:
            return {"rho": self.rho, "delta": self.delta} if self.delta else {"rho": self.rho}
        assert self.epsilon is not None
        return {"epsilon": self.epsilon, "delta": self.delta}

    @property
    def exact(self) -> ExactLoss:
        """The largest loss that a release may have: each parameter by the rule of `exact`.

        Examples
        --------
        >>> PrivacyLoss(epsilon=0.1, delta=1e-9).exact.delta
        Fraction(1, 1000000000)
        """
        return ExactLoss(
            epsilon=None if self.epsilon is None else exact(self.epsilon),
            delta=exact(self.delta),
            rho=None if self.rho is None else exact(self.rho),
        )

    @property
    def rounded_down(self) -> PrivacyLoss:
        """The largest loss in floats that is not above `exact` in any parameter, for computing with floats.

        It is the same loss, or one step below where a float is above its shortest decimal.

        Examples
        --------
        >>> PrivacyLoss(epsilon=0.1, delta=1e-6).rounded_down
        PrivacyLoss(epsilon=0.09999999999999999, delta=1e-06, rho=None)
        """
        return PrivacyLoss(**{name: float_below(exact(stated)) for name, stated in self.to_dict().items()})

    def epsilon_at(self, delta: float) -> float:
        r"""Return an epsilon for which a release with this loss is (epsilon, delta)-DP, rounded up.

        It is the parameter itself for a loss that is stated with an epsilon, and that of `zcdp_epsilon` for a
        rho. If the rho has a delta, :math:`\delta_0`, then :math:`(\delta - \delta_0)/(1 - \delta_0)` is left
        for the conversion.

        Parameters
        ----------
        delta : float
            The probability, below 1, with which the guarantee may fail: above 0 for a rho, and at least (with
            a rho above) the delta of the loss.

        Returns
        -------
        float

        Raises
        ------
        ArgumentError
            If no epsilon is proven for this delta.

        Examples
        --------
        >>> round(PrivacyLoss(rho=0.1).epsilon_at(1e-6), 4)
        2.1419
        >>> PrivacyLoss(epsilon=1.0, delta=1e-6).epsilon_at(1e-5)
        1.0
        """
        given, own = _number("delta", delta), Fraction(self.delta)
        least = f"at least {self.delta:g}" if self.rho is None else f"above {self.delta:g}"
        if not given < 1 or not (given >= self.delta if self.rho is None else given > self.delta):
            raise ArgumentError(
                "delta",
                f"must be {least}, the delta of the loss, and below 1, not {quote(delta)}.",
                hint="for example delta=1e-6." if self.delta < 1e-6 else f"for example {2 * self.delta:g}.",
            )
        if self.epsilon is not None:
            return self.epsilon
        assert self.rho is not None
        return zcdp_epsilon(self.rho, float_below((Fraction(given) - own) / (1 - own)))

    @property
    def in_words(self) -> str:
        """The parameters as in a headline, with a note if they protect nobody."""
        stated = ", ".join(f"{name}={value:g}" for name, value in self.to_dict().items() if value)
        return f"{stated} (protects nobody)" if self.objection else stated

    @property
    def objection(self) -> str:
        r"""Why the loss protects nobody; empty if it may protect.

        An epsilon allows the odds of any guess about a unit to change by a factor of :math:`e^\epsilon`: at
        20, from one in a million to 485 to 1. A rho of 10 implies an epsilon of 33 at a delta of 1e-6. A
        mechanism that publishes each record unchanged with probability delta satisfies an epsilon of 0, or a
        rho of 0, with that delta.
        """
        if self.epsilon is not None and self.epsilon > MOST_EPSILON:
            return (
                f"`epsilon` is {self.epsilon:g}, which protects nobody: a release may change the odds of any "
                f"guess about somebody by a factor of e**{self.epsilon:g}."
            )
        if self.rho is not None and self.rho > MOST_RHO:
            return (
                f"`rho` is {self.rho:g}, which protects nobody: at a delta of 1e-6"
                f"{' in addition to its own' if self.delta else ''} that is an epsilon of "
                f"{1.005 * zcdp_epsilon(self.rho, 1e-6):.3g}."  # rounded up: three digits are off by 0.5 %
            )
        if self.delta > MOST_DELTA:
            return (
                f"`delta` is {self.delta:g}, which protects nobody: it permits publishing each record "
                "unchanged with this probability."
            )
        return ""

    def divide(self, shares: int | Sequence[float]) -> list[PrivacyLoss]:
        r"""Divide the loss among releases of the same records, in equal parts or in proportion to the shares.

        What the parts may spend (`exact`) is together not more than what the whole may: each part is rounded
        down. Releases with these losses together have the whole loss, since epsilons, deltas and rhos add up
        (Dwork, Kenthapadi, McSherry, Mironov and Naor, "Our data, ourselves", 2006, Theorem 1; Bun and
        Steinke, "Concentrated differential privacy", 2016, Lemma 1.7). Rhos with deltas do as well (Lemma 8.2
        there): the events of all releases occur together with probability at least
        :math:`\prod_i (1 - \delta_i) \ge 1 - \sum_i \delta_i`.

        Parameters
        ----------
        shares : int or sequence of float
            The number of equal shares; or the sizes of the shares, in proportion.

        Returns
        -------
        list of PrivacyLoss

        Raises
        ------
        ArgumentError
            If a share is not positive.

        Examples
        --------
        >>> PrivacyLoss(epsilon=1.0).divide([1, 3])
        [PrivacyLoss(epsilon=0.25, delta=0.0, rho=None), PrivacyLoss(epsilon=0.75, delta=0.0, rho=None)]
        >>> PrivacyLoss(rho=0.5).divide(4)[0].rho
        0.125
        """
        sizes = checked_shares(shares)
        whole = sum(sizes)
        return [self.part(size / whole) for size in sizes]

    def part(self, share: Fraction) -> PrivacyLoss:
        """Return a share of the loss, above 0 and at most 1, rounded down.

        What the part may spend, its `exact` loss, is at most that share of the whole's.

        Examples
        --------
        >>> PrivacyLoss(epsilon=1.0, delta=1e-6).part(Fraction(1, 4)).epsilon
        0.25
        >>> PrivacyLoss(epsilon=0.1).part(Fraction(1, 1)).epsilon
        0.1
        """
        return PrivacyLoss(
            **{name: float_within(exact(total) * share) for name, total in self.to_dict().items()}
        )


def ungated_loss(loss: PrivacyLoss) -> PrivacyLoss:
    """Check that a release without gates can have a loss, and return it: a rho has no delta.

    Only a release that is gated by Gaussian thresholds needs both, for the probability that a key of a single
    unit is shown. All other noise would be computed from the rho alone, so a delta would have no effect.

    Raises
    ------
    ArgumentError
        If the loss is a rho with a delta.

    Examples
    --------
    >>> ungated_loss(PrivacyLoss(rho=0.1)).rho
    0.1
    """
    if loss.kind == "approximate_zcdp":
        raise ArgumentError(
            "delta",
            "cannot be given together with `rho`.",
            hint="leave `delta` out: a rho needs none. For an epsilon, dpt.plan(domain, epsilon=1.0, "
            "delta=1e-6) finds the noise.",
        )
    return loss


def warn_if_useless(loss: PrivacyLoss) -> None:
    """Warn if the privacy loss that a caller states protects nobody.

    For functions that plan a release, with the loss as the caller states it, not for losses that they try.
    """
    if loss.objection:
        warn(
            loss.objection,
            hint="choose an epsilon of about 1 or a rho of about 0.1, and a delta far below 1 / n for n "
            "people; larger values are for tests and simulations.",
        )


def checked_shares(shares: object) -> list[Fraction]:
    """Return the exact sizes of shares, which are given as numbers or as how many equal ones there are.

    Raises
    ------
    ArgumentError
        If there is no share, or one is not positive and finite.

    Examples
    --------
    >>> checked_shares(2), checked_shares([0.5, 3])
    ([Fraction(1, 1), Fraction(1, 1)], [Fraction(1, 2), Fraction(3, 1)])
    """
    hint = "for example divide(12), or divide([3, 1])."
    given = shares.tolist() if isinstance(shares, np.integer | np.ndarray) else shares
    sizes = [1] * given if isinstance(given, int) and not isinstance(given, bool) else given
    if isinstance(sizes, str) or not isinstance(sizes, Sequence) or not sizes:
        raise ArgumentError(
            "shares", f"must be a positive whole number or a list of numbers, not {quote(shares)}.", hint=hint
        )
    if not all(isinstance(size, int | float | Fraction) and 0 < size < math.inf for size in sizes):
        raise ArgumentError("shares", f"must be positive and finite numbers, not {quote(shares)}.", hint=hint)
    return [Fraction(size) for size in sizes]


def float_within(most: Fraction) -> float:
    """Return the largest number of at least 0 that can be passed as a loss and is charged at most this.

    A float is charged the smaller of its exact value and its shortest decimal. So what is left of 1 after
    eight times 0.1 is the float 0.2, although this float is above 2/10.

    Examples
    --------
    >>> float_within(Fraction(2, 10)), float_within(Fraction(1, 3)) <= Fraction(1, 3)
    (0.2, True)
    """
    number = max(float(most), 0.0)
    while number and exact(number) > most:
        number = math.nextafter(number, 0.0)
    return number


def float_below(number: Fraction) -> float:
    """Return the largest float that is not above a number."""
    rounded = float(number)
    return rounded if Fraction(rounded) <= number else math.nextafter(rounded, 0.0)


def zcdp_epsilon(rho: float, delta: float) -> float:
    r"""Return the smallest known epsilon for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Canonne, Kamath and Steinke ("The discrete Gaussian for differential privacy", 2020, Proposition 12
    and Corollary 13): rho-zCDP implies (epsilon, delta)-DP if for some :math:`\alpha > 1`

    .. math:: \epsilon = \alpha\rho + \frac{\log(1/\delta) - \log\alpha}{\alpha - 1}
              - \log\frac{\alpha}{\alpha - 1}.

    With :math:`a = \alpha - 1`, the derivative vanishes at the only root of the increasing function
    :math:`a^2\rho + \log(1 + a) - \log(1/\delta)`. Every other a is valid too, with a larger epsilon.

    Parameters
    ----------
    rho : float
        Zero-concentrated privacy loss, above 0.
    delta : float
        Above 0 and below 1.

    Returns
    -------
    float
        At least 0.

    Examples
    --------
    >>> round(zcdp_epsilon(0.1, 1e-6), 4)
    2.1419
    """
    rho, log_inverse = _positive("rho", rho), -math.log(_open_delta(delta))
    a = _increasing_root(lambda a: a * a * rho + math.log1p(a) - log_inverse)
    return max(0.0, _rounded(+1, (1 + a) * rho, log_inverse / a, -math.log1p(a) / a, -math.log1p(1 / a)))


def zcdp_delta(rho: float, epsilon: float) -> float:
    r"""Return the smallest known delta for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Canonne, Kamath and Steinke (2020, Proposition 12):

    .. math:: \delta = \min_{\alpha > 1} \frac{e^{(\alpha - 1)(\alpha\rho - \epsilon)}}{\alpha - 1}
              \left(1 - \frac{1}{\alpha}\right)^\alpha.

    With :math:`a = \alpha - 1`, the logarithm is convex in a, and its derivative
    :math:`(2a + 1)\rho - \epsilon - \log(1 + 1/a)` increases.

    Parameters
    ----------
    rho, epsilon : float
        Above 0.

    Returns
    -------
    float
        Above 0, at most 1.

    Examples
    --------
    >>> zcdp_delta(0.1, zcdp_epsilon(0.1, 1e-6))  # doctest: +ELLIPSIS
    1.00000...e-06
    """
    rho, epsilon = _positive("rho", rho), _positive("epsilon", epsilon)
    a = _increasing_root(lambda a: (2 * a + 1) * rho - epsilon - math.log1p(1 / a))
    log_delta = _rounded(+1, a * (1 + a) * rho, -a * epsilon, -a * math.log1p(1 / a), -math.log1p(a))
    return min(1.0, math.nextafter(math.exp(min(log_delta, 0.0)) * (1 + _MARGIN), 1.0))


def zcdp_rho(epsilon: float, delta: float) -> float:
    r"""Return the largest rho for which rho-zCDP is known to imply (epsilon, delta)-DP, rounded down.

    The formula of `zcdp_epsilon` solved for rho,

    .. math:: \rho = \frac{1}{\alpha}\left(\epsilon - \frac{\log(1/\delta) - \log\alpha}{\alpha - 1}
              + \log\frac{\alpha}{\alpha - 1}\right),

    holds for every :math:`\alpha = 1 + a > 1`; it is largest where
    :math:`(2a + 1)\rho - \epsilon - \log(1 + 1/a)` changes from negative to positive.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        Above 0 and below 1.

    Returns
    -------
    float
        0 if none is known, which is the case for an epsilon within rounding of 0.

    Examples
    --------
    >>> round(zcdp_rho(1.0, 1e-6), 6)
    0.024356
    """
    epsilon, log_inverse = _positive("epsilon", epsilon), -math.log(_open_delta(delta))

    def terms(a: float) -> tuple[float, ...]:
        return epsilon, -log_inverse / a, math.log1p(a) / a, math.log1p(1 / a)

    def slope(a: float) -> float:
        rho = math.fsum(terms(a)) / (1 + a)
        return (2 * a + 1) * rho - epsilon - math.log1p(1 / a)

    a = _increasing_root(slope)
    return max(0.0, _rounded(-1, *terms(a)) / (1 + a) * (1 - _MARGIN))


def _increasing_root(function: Callable[[float], float]) -> float:
    """Find, by bisection on a logarithmic scale, the positive a at which a function turns positive."""
    low, high = -80.0, 340.0  # from e**-80 to where a * a nearly overflows
    while high - low > 1e-9:  # the conversions are flat at the root: an error of 1e-9 changes them by 1e-18
        middle = (low + high) / 2
        low, high = (low, middle) if function(math.exp(middle)) > 0 else (middle, high)
    return math.exp(high)


def _rounded(direction: int, *terms: float) -> float:
    """Sum the terms, moved up (+1) or down (-1) by more than their rounding errors."""
    return math.fsum(terms) + direction * _MARGIN * math.fsum(map(abs, terms))


def _number(name: str, value: object) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentError(
            name,
            f"must be a number, not {quote(value)}.",
            hint=f"pass a plain number, for example {name}={'1e-6' if name == 'delta' else '0.5'}.",
        )
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _positive(name: str, value: object) -> float:
    number = _number(name, value)
    if not 0 < number < math.inf:
        raise ArgumentError(
            name, f"must be positive and finite, not {quote(value)}.", hint=f"for example {name}=0.5."
        )
    return number


def _open_delta(delta: object) -> float:
    number = _number("delta", delta)
    if not 0 < number < 1:
        raise ArgumentError(
            "delta", f"must be above 0 and below 1, not {quote(delta)}.", hint="for example delta=1e-6."
        )
    return number
