"""How quantiles are drawn: from which points, and what the draws spend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from pandas_dptree.hierarchy.grid import BinMiddles, Points, points_from_dict
from pandas_dptree.mechanisms.quantiles import Drawing, n_depths
from pandas_dptree.plans import serialize
from pandas_dptree.privacy.conversions import zcdp_rho
from pandas_dptree.privacy.level_losses import LevelLoss, rho_of_epsilon
from pandas_dptree.privacy.loss import PrivacyLoss, float_below
from pandas_dptree.privacy.sensitivity import Neighbors

__all__ = ["Draws", "drawable", "exponents_of", "fraction_of", "steps_of"]

LARGEST_DENOMINATOR = 1000
"""Of the quantiles that are drawn: a larger one would need a longer table of weights."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """How quantiles are drawn from a grid.

    Attributes
    ----------
    grid : Grid or BinMiddles
        The column, and the points between its bounds; for counts in bins, the middles of these.
    loss : PrivacyLoss
        What all draws may spend together.
    epsilon : float
        What the draws of one depth spend: half of the quantiles are drawn at the last depth, half of the
        others at the one before, and so on.
    permutes : bool
        Whether by permute-and-flip, which is more accurate, but spends epsilon, not epsilon**2 / 8 of a rho.
    """

    grid: Points
    loss: PrivacyLoss
    epsilon: float
    permutes: bool

    @classmethod
    def within(cls, grid: Points, loss: PrivacyLoss, n_quantiles: int, *, permutes: bool) -> Draws:
        """Return draws with the largest epsilon that a loss allows; permuting ones only if they may."""
        depths, exact = n_depths(n_quantiles), loss.exact
        concentrated = _depth_epsilon(_rho(loss), depths)
        if exact.epsilon is None:
            return cls(grid=grid, loss=loss, epsilon=concentrated, permutes=False)
        alone = float_below(exact.epsilon / depths)
        permutes = permutes and alone >= concentrated
        return cls(grid=grid, loss=loss, epsilon=max(alone, concentrated), permutes=permutes)

    def keeps_to_loss(self, n_quantiles: int) -> bool:
        """Whether they spend no more than their loss."""
        exact, spent = self.loss.exact, Fraction(self.epsilon)
        depths = n_depths(n_quantiles)
        if exact.epsilon is not None and depths * spent <= exact.epsilon:
            return True
        return not self.permutes and depths * spent**2 <= 8 * _rho(self.loss)

    def drawing(self, neighbors: Neighbors, max_contributions: int, *, several: bool) -> Drawing:
        """Return what the draws of one depth are like, of one quantile of all records or of `several`."""
        return Drawing(
            epsilon=Fraction(self.epsilon),
            neighbors=neighbors,
            max_contributions=max_contributions,
            several=several or isinstance(self.grid, BinMiddles),
            permutes=self.permutes,
        )

    @property
    def level_loss(self) -> LevelLoss:
        """What the draws of one depth spend."""
        epsilon = Fraction(self.epsilon)
        return LevelLoss(epsilon=epsilon, rho=rho_of_epsilon(epsilon) if self.permutes else epsilon**2 / 8)

    @property
    def name(self) -> str:
        """The name of the mechanism."""
        return "permute_and_flip" if self.permutes else "exponential"

    def to_dict(self) -> dict[str, Any]:
        """Serialize the draws to plain JSON types."""
        return {
            "grid": self.grid.to_dict(),
            "loss": self.loss.to_dict(),
            "epsilon": self.epsilon,
            "selection": self.name,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Draws:
        """Restore the draws that `to_dict` serialized."""
        selection = serialize.choice(data["selection"], ("exponential", "permute_and_flip"))
        return cls(
            grid=points_from_dict(data["grid"]),
            loss=PrivacyLoss(**data["loss"]),
            epsilon=float(data["epsilon"]),
            permutes=selection == "permute_and_flip",
        )


def _rho(loss: PrivacyLoss) -> Fraction:
    """Return the rho that a loss states, or that implies its epsilon and delta; 0 if there is none."""
    if loss.rho is not None:
        assert loss.exact.rho is not None
        return loss.exact.rho
    least = loss.rounded_down
    assert least.epsilon is not None
    return Fraction(zcdp_rho(least.epsilon, least.delta)) if least.delta else Fraction(0)


def _depth_epsilon(rho: Fraction, depths: int) -> float:
    """Return the largest float with ``depths * epsilon**2 <= 8 * rho``."""
    epsilon = math.sqrt(8 * rho / depths)
    while depths * Fraction(epsilon) ** 2 > 8 * rho:
        epsilon = math.nextafter(epsilon, 0.0)
    return epsilon


def fraction_of(q: float) -> Fraction:
    """Return the fraction with a small denominator that a quantile means: 1/3 for the nearest float."""
    return Fraction(q).limit_denominator(LARGEST_DENOMINATOR)


def drawable(quantiles: Sequence[float]) -> list[Fraction] | None:
    """Return the fractions that quantiles mean, if they can be drawn: they increase, between 0 and 1."""
    fractions = list(map(fraction_of, quantiles))
    exact = all(abs(float(each) - q) < 1e-9 for each, q in zip(fractions, quantiles, strict=True))
    increasing = all(before < after for before, after in pairwise([Fraction(0), *fractions, Fraction(1)]))
    return fractions if fractions and exact and increasing else None


def exponents_of(drawing: Drawing, q: Sequence[float]) -> list[Fraction]:
    """Return the exponents of the draws of quantiles: how much a distance counts."""
    fractions = list(map(fraction_of, q))
    return list(map(drawing.exponent, steps_of(fractions, Fraction(0), Fraction(1))))


def steps_of(quantiles: Sequence[Fraction], below: Fraction, above: Fraction) -> list[Fraction]:
    """List the fractions of parts at which `draw_quantiles` divides them."""
    if not quantiles:
        return []
    middle = len(quantiles) // 2
    own = quantiles[middle]
    return [
        *steps_of(quantiles[:middle], below, own),
        (own - below) / (above - below),
        *steps_of(quantiles[middle + 1 :], own, above),
    ]
