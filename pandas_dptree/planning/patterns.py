r"""What a split costs where one privacy unit can move the levels in several patterns.

Pattern r charges a level of precision p the amount :math:`A_{rl}\,p`, and a release keeps to its budget if no
pattern exceeds it: :math:`A p \le 1`. For any mixture :math:`\theta` of the patterns, of sum 1, the prices
:math:`\theta^\top A` add up to one constraint that follows from these. So the least error under the one
constraint is a lower bound; it is a concave function of :math:`\theta`, and by duality the best mixture
attains the optimum. Its derivatives are in proportion to what the patterns charge.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import TreeSensitivity

__all__ = ["Mixture", "pattern_costs", "relative_costs", "undominated"]

_LEAST = 1e-30  # of charges and parts: keeps logarithms finite
_LARGEST_STEP = 3.0  # of the logarithm of a part
_RATES = (0.01, 100.0)  # the least and the largest multiple
_EVEN = 1e-9  # how far charges may differ, relatively
_MOST_MOVES = 12  # from a mixture that is nearly right, two or three are enough


class Mixture:
    """A mixture of patterns for each of several splits, which moves to the patterns that charge most.

    `parts` have shape (n_patterns, n_splits) and sum 1. Their logarithms move by a multiple of those of the
    charges: by the secant of the last two moves (Barzilai and Borwein, "Two-point step size gradient
    methods", 1988), which for two patterns is the secant method for the mixture under which they charge the
    same.
    """

    def __init__(self, patterns: FloatArray, n_splits: int) -> None:
        """Start with equal parts of all patterns."""
        self._patterns = patterns
        self.parts = np.full((len(patterns), n_splits), 1 / len(patterns))
        self._rate = np.full(n_splits, 2.0)
        self._last: tuple[FloatArray, FloatArray] | None = None

    @property
    def prices(self) -> FloatArray:
        """The price of each level: shape (n_levels, n_splits)."""
        return np.asarray(self._patterns.T @ self.parts)

    def move(self, charges: FloatArray) -> None:
        """Move towards patterns that charge more than others, shape (n_patterns, n_splits)."""
        logs = np.log(np.maximum(charges, _LEAST))
        logs -= (self.parts * logs).sum(axis=0)
        if self._last is not None:
            step, before = self._last
            length = (self.parts * step**2).sum(axis=0)
            fall = (self.parts * step * (before - logs)).sum(axis=0)
            secant = np.divide(length, fall, out=2 * self._rate, where=fall > 0)
            self._rate = np.clip(secant, _RATES[0], np.minimum(2 * self._rate, _RATES[1]))
        step = np.clip(self._rate * logs, -_LARGEST_STEP, _LARGEST_STEP)
        self.parts = np.maximum(self.parts * np.exp(step), _LEAST)
        self.parts /= self.parts.sum(axis=0)
        self._last = step, logs

    def balanced_shares(self, shares_at: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Move to where the patterns that matter charge the same, and return the shares at their prices.

        `shares_at` maps prices to shares, both of shape (n_levels, n_splits).
        """
        self._last = None
        for _ in range(_MOST_MOVES):
            shares = shares_at(self.prices)
            charges = self._patterns @ shares
            if (charges.max(axis=0) <= (self.parts * charges).sum(axis=0) * (1 + _EVEN)).all():
                break
            self.move(charges)
        return shares


def pattern_costs(noise: AdditiveNoise, loss: PrivacyLoss, moves: TreeSensitivity) -> FloatArray:
    """Return what noise of scale 1 on each level costs under each pattern: shape (n_patterns, n_levels)."""
    return np.array([noise.level_costs(loss, TreeSensitivity((each,))) for each in moves.patterns])


def relative_costs(costs: FloatArray) -> FloatArray:
    """Return what patterns charge of a level's share: their costs over the largest one, which may be 0."""
    alone = costs.max(axis=0)
    return np.asarray(np.divide(costs, alone, out=np.zeros_like(costs), where=alone > 0))


def undominated(patterns: FloatArray) -> npt.NDArray[np.intp]:
    r"""Return the places of patterns, without those that never charge more than a mixture of two that stay.

    Both are among those that charge a level most. Of the k + 1 patterns of replaced counts usually the first
    and the last stay: :math:`(1 - b/k)^2` of the first with the rest of the last covers pattern b, unless the
    b rows that appear could add more than :math:`1 - (1 - b/k)^2` of the squares of k rows.
    """
    distinct, places = np.unique(patterns, axis=0, return_index=True)
    peaks = np.unique(distinct.argmax(axis=0))
    kept = np.ones(len(distinct), dtype=bool)
    for one, other in combinations_with_replacement(peaks.tolist(), 2):
        kept &= ~_below_mixture(distinct, distinct[one], distinct[other])
    kept[peaks] = True
    return places[kept]


def _below_mixture(rows: FloatArray, one: FloatArray, other: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which rows are nowhere above ``t * one + (1 - t) * other``, for some t from 0 to 1 of each."""
    slope = one - other
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (rows - other) / slope
    low = np.where(slope > 0, at, 0.0).max(axis=1)
    high = np.where(slope < 0, at, 1.0).min(axis=1)
    flat = ((slope != 0) | (rows <= other)).all(axis=1)
    return np.asarray(flat & (np.maximum(low, 0.0) <= np.minimum(high, 1.0)))
