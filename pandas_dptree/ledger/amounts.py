"""Exact amounts of privacy loss, and what is shown of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal

from pandas_dptree.privacy.loss import PrivacyLoss, float_within

__all__ = ["Amount", "Balance", "Currency", "cap_of", "currency_of", "exact_cap"]

_CRUMB = Fraction(1, 10**12)
"""Of a cap: the float 1e-6 is below a millionth, so a release with this delta leaves 5e-23 of it."""

Currency = Literal["epsilon", "rho"]
"""What an account adds up, besides delta."""


@dataclass(frozen=True, slots=True)
class Amount:
    """An exact privacy loss: an epsilon or a rho, and a delta."""

    loss: Fraction = Fraction()
    delta: Fraction = Fraction()

    def __add__(self, other: Amount) -> Amount:
        """Add both components."""
        return Amount(self.loss + other.loss, self.delta + other.delta if other.delta else self.delta)

    def __sub__(self, other: Amount) -> Amount:
        """Subtract both components."""
        return Amount(self.loss - other.loss, self.delta - other.delta if other.delta else self.delta)

    def fits(self, within: Amount) -> bool:
        """Whether neither component is larger than that of another amount."""
        return self.loss <= within.loss and self.delta <= within.delta

    @classmethod
    def largest(cls, amounts: Iterable[Amount]) -> Amount:
        """Return the largest of each component, at least 0: a unit that is in one part may be in any."""
        losses, deltas = [Fraction()], [Fraction()]
        for amount in amounts:
            losses.append(amount.loss)
            deltas.append(amount.delta)
        return cls(max(losses), max(deltas))


def currency_of(cap: PrivacyLoss) -> Currency:
    """Return what an account with this cap adds up."""
    return "epsilon" if cap.rho is None else "rho"


def exact_cap(cap: PrivacyLoss) -> Amount:
    """Return a cap exactly. What somebody types is a decimal, so 0.3 is three times 0.1."""
    typed = getattr(cap, currency_of(cap))
    return Amount(Fraction(repr(typed)), Fraction(repr(cap.delta)))


def cap_of(currency: Currency, amount: Amount) -> PrivacyLoss:
    """Return the cap whose exact amount this is: the inverse of `exact_cap`."""
    loss, delta = float(amount.loss), float(amount.delta)
    return (
        PrivacyLoss(epsilon=loss, delta=delta)
        if currency == "epsilon"
        else PrivacyLoss(rho=loss, delta=delta)
    )


def _float_covering(least: Fraction) -> float:
    """Return the smallest number of which the float or the shortest decimal is not below this."""
    number = float(least)
    while max(Fraction(number), Fraction(repr(number))) < least:
        number = math.nextafter(number, math.inf)
    return number


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Balance:
    """What is spent or left of an account: as floats on the safe side, and exactly (`amount`).

    It is false if no loss is spent, or none is left. It follows from plans, never from records.

    >>> left = Balance(amount=Amount(Fraction(15, 1000)), cap=PrivacyLoss(rho=0.02), state="left")
    >>> left, left.rho, left.to_dict()
    (0.015 of rho=0.02 left, 0.015, {'rho': 0.015})
    """

    amount: Amount
    cap: PrivacyLoss
    state: Literal["spent", "left", "requested"]

    @property
    def epsilon(self) -> float | None:
        """The epsilon: rounded down if left, otherwise up. None for an account in rho."""
        return self._rounded(self.usable.loss) if self.cap.rho is None else None

    @property
    def rho(self) -> float | None:
        """The rho: rounded down if left, otherwise up. None for an account in epsilon."""
        return None if self.cap.rho is None else self._rounded(self.usable.loss)

    @property
    def delta(self) -> float:
        """The delta: rounded down if left, otherwise up."""
        return self._rounded(self.usable.delta)

    @property
    def usable(self) -> Amount:
        """The amount, without what rounding has left over: less than a trillionth of the cap is nothing."""
        if self.state != "left":
            return self.amount
        cap = exact_cap(self.cap)
        return Amount(
            self.amount.loss if self.amount.loss >= cap.loss * _CRUMB else Fraction(),
            self.amount.delta if self.amount.delta >= cap.delta * _CRUMB else Fraction(),
        )

    def to_dict(self) -> dict[str, float]:
        """Return the parameters by name, in the form in which verbs take them."""
        stated: dict[str, float] = {currency_of(self.cap): self._rounded(self.usable.loss)}
        return {**stated, "delta": self.delta} if self.cap.delta or self.amount.delta else stated

    def _rounded(self, number: Fraction) -> float:
        return float_within(number) if self.state == "left" else _float_covering(number)

    def __bool__(self) -> bool:
        """Whether any loss is spent, or left."""
        return self._rounded(self.usable.loss) > 0

    def __repr__(self) -> str:
        """Format the balance: how much of the cap is spent, or left."""
        return f"{self.in_words} {self.state}"

    @property
    def in_words(self) -> str:
        """How much of the cap it is."""
        shares = [
            f"{self._short(number)} of {name}={typed:g}"
            for name, number, typed in (
                (currency_of(self.cap), self.usable.loss, getattr(self.cap, currency_of(self.cap))),
                ("delta", self.usable.delta, self.cap.delta),
            )
            if name != "delta" or typed or number
        ]
        return " and ".join(shares)

    def _short(self, number: Fraction) -> str:
        """Format a number with six digits, on the safe side."""
        context = Context(prec=6, rounding=ROUND_FLOOR if self.state == "left" else ROUND_CEILING)
        quotient = context.divide(Decimal(number.numerator), Decimal(number.denominator))
        return f"{float(quotient):g}" if quotient else "nothing"
