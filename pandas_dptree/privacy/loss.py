"""Privacy loss of a release.

There are four: pure differential privacy (``epsilon``), approximate differential privacy (``epsilon`` and
``delta``), zero-concentrated differential privacy (``rho``) and its approximate form (``rho`` and ``delta``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from pandas_dptree.errors import ArgumentError, quote, warn
from pandas_dptree.privacy.conversions import checked_number, checked_positive, zcdp_epsilon

__all__ = [
    "ExactLoss",
    "PrivacyLoss",
    "checked_shares",
    "exact",
    "float_below",
    "float_within",
    "ungated_loss",
    "warn_if_useless",
]

MOST_EPSILON, MOST_RHO, MOST_DELTA = 20.0, 10.0, 1e-3
"""Above one of these, a loss protects nobody: see `PrivacyLoss.objection`."""


def exact(number: float) -> Fraction:
    """Return the exact value of a number that somebody typed: the float or its shortest decimal, if smaller.

    Whoever types 0.1 means one tenth. The nearest float is a little above it, that of 0.3 a little below
    three tenths. Noise is calibrated to the smaller of the two, so a release spends neither more than the
    decimal, by which budgets are added up, nor more than the float, which is what programs compare.

    >>> Fraction(0.1) > exact(0.1) == Fraction(1, 10), Fraction(0.3) == exact(0.3)
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
        delta = checked_number("delta", self.delta)
        if not 0 <= delta < 1:
            raise ArgumentError(
                "delta",
                f"must be at least 0 and below 1, not {quote(self.delta)}.",
                hint="for example delta=1e-6.",
            )
        object.__setattr__(self, "delta", delta)
        for name in ("epsilon", "rho"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checked_positive(name, getattr(self, name)))

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
        """The largest loss that a release may have: each parameter by the rule of `exact`."""
        return ExactLoss(
            epsilon=None if self.epsilon is None else exact(self.epsilon),
            delta=exact(self.delta),
            rho=None if self.rho is None else exact(self.rho),
        )

    @property
    def rounded_down(self) -> PrivacyLoss:
        """The largest loss in floats that is not above `exact` in any parameter."""
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
        given, own = checked_number("delta", delta), Fraction(self.delta)
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
        """Return a share of the loss, above 0 and at most 1, rounded down by the rule of `exact`."""
        return PrivacyLoss(
            **{name: float_within(exact(total) * share) for name, total in self.to_dict().items()}
        )


def ungated_loss(loss: PrivacyLoss) -> PrivacyLoss:
    """Refuse a rho with a delta, and return any other loss.

    Only a release that is gated by Gaussian thresholds needs both, for the probability that a key of a single
    unit is shown. All other noise would be computed from the rho alone, so a delta would have no effect.
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
    """Warn if the privacy loss that a caller states (not one that a search tries) protects nobody."""
    if loss.objection:
        warn(
            loss.objection,
            hint="choose an epsilon of about 1 or a rho of about 0.1, and a delta far below 1 / n for n "
            "people; larger values are for tests and simulations.",
        )


def checked_shares(shares: object) -> list[Fraction]:
    """Return the exact sizes of shares, which are given as numbers or as how many equal ones there are."""
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
    """
    number = max(float(most), 0.0)
    while number and exact(number) > most:
        number = math.nextafter(number, 0.0)
    return number


def float_below(number: Fraction) -> float:
    """Return the largest float that is not above a number."""
    rounded = float(number)
    return rounded if Fraction(rounded) <= number else math.nextafter(rounded, 0.0)
