r"""From the noise variances that margins should have to their shares of the budget.

Estimates of crossed hierarchies are exact where noise variances are a product of numbers of the axes
(`crossed_product`). The variance of discrete noise is no power of its scale, so products of scales would not
do: variances are chosen, and each margin's scale is that of its variance. Only their common factor is left
for the budget to decide.

**Privacy**: a function of the product, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pandas_dptree.estimation.least_squares import LEAST_VARIANCE
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.patterns import pattern_costs
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import TreeSensitivity

__all__ = ["Budget"]

_ROUNDS = 12  # the budget of an (epsilon, delta) depends on the split; usually two are enough
_CONVERGED = 1e-13


@dataclass(frozen=True, eq=False)
class Budget:
    """What noise on all margins may cost, where a privacy unit moves them in several patterns."""

    noise: AdditiveNoise
    loss: PrivacyLoss
    moves: TreeSensitivity

    @cached_property
    def costs(self) -> FloatArray:
        """What noise of scale 1 on each margin costs under each pattern: shape (n_patterns, K)."""
        return pattern_costs(self.noise, self.loss, self.moves)

    @cached_property
    def alone(self) -> FloatArray:
        """What each margin costs by itself, at most; 0 if all its cells are known."""
        return np.asarray(self.costs.max(axis=0))

    @property
    def equal_prices(self) -> bool:
        """Whether the same precision costs the same on all margins that are not known, in any pattern."""
        alone = self.alone[self.alone > 0]
        return len(self.costs) == 1 and bool(np.ptp(alone) == 0)

    @property
    def power(self) -> int:
        """The power of the share with which the variance of large noise falls."""
        return self.noise.variance_power(self.loss)

    def scales(self, shares: FloatArray) -> FloatArray:
        """Return the noise scale of each margin, inf where the share is 0."""
        return self.noise.noise_scales(self.loss, self.moves, shares)

    def variances(self, shares: FloatArray) -> FloatArray:
        """Return the noise variance of each margin as least squares uses it, inf where the share is 0."""
        return np.maximum(self.noise.variance(self.scales(shares)), LEAST_VARIANCE)

    def shares_of(self, variances: FloatArray, *, free_total: bool = False) -> FloatArray:
        """Return the shares, of sum 1, for which noise variances are in proportion to the given ones.

        Margins with an infinite variance, or without unknown cells, have no share. With `free_total`, the
        grand total, margin 0, has the least noise that costs nothing, since the patterns that move it cost
        less than others. If the smallest variance would be 0 for all practical purposes, all are equal.
        """
        measured = np.isfinite(variances) & (self.alone > 0)
        wanted = np.where(measured, variances, np.inf)
        with np.errstate(divide="ignore"):
            shares = np.where(measured, self.alone / wanted ** (1 / self.power), 0.0)
        shares = shares / shares.sum()
        for _ in range(_ROUNDS):
            amount = self._amount(start := self.scales(shares))
            scales = self._scales_within(amount, wanted, start)
            if scales is None:
                shares = np.where(measured, self.alone, 0.0)
                return np.asarray(shares / shares.sum())
            if free_total and measured[0]:
                scales[0] = min(scales[0], self._free_scale(amount, scales))
            before, shares = shares, self._shares_at(scales)
            if np.abs(shares - before).max() < _CONVERGED * shares.max():
                break
        return shares

    def _amount(self, scales: FloatArray) -> float:
        """Return the budget that the margins share: an epsilon or a rho; of an (epsilon, delta), as spent."""
        if self.loss.kind == "approximate":
            return float(self.noise.spent(self.loss, self.moves, scales))
        return float(self.noise.budget(self.loss))

    def _shares_at(self, scales: FloatArray) -> FloatArray:
        """Return the shares of noise scales."""
        with np.errstate(divide="ignore"):
            charges = self.alone / scales ** (2 // self.power)
        return np.asarray(charges / charges.sum())

    def _scales_within(self, amount: float, wanted: FloatArray, scales: FloatArray) -> FloatArray | None:
        """Return the scales of the wanted variances times the least factor that keeps to an amount.

        None if that leaves a variance below the smallest that is not treated as 0.
        """
        from scipy.optimize import brentq  # costs a third of a second to import

        finest = int(np.argmin(wanted))
        relative = wanted / wanted[finest]

        def excess(log_variance: float) -> float:
            scales = self.noise.scales_of(math.exp(log_variance) * relative)
            charges = (self.costs / scales ** (2 // self.power)).sum(axis=1)
            return math.log(float(charges.max()) / amount)

        low = math.log(LEAST_VARIANCE)
        if excess(low) <= 0:
            return None
        guess = math.log(max(float(self.noise.variance(scales[finest])), LEAST_VARIANCE))
        below, above = max(guess - 1.0, low), max(guess + 1.0, low + 1.0)
        while excess(below) <= 0:
            below = max(below - 2.0, low)
        while excess(above) > 0:
            above += 2.0
        found = brentq(excess, below, above, xtol=1e-14, rtol=1e-15)
        return self.noise.scales_of(math.exp(found) * relative)

    def _free_scale(self, amount: float, scales: FloatArray) -> float:
        """Return the least scale of the grand total for which no pattern costs more than an amount."""
        charges = self.costs[:, 1:] / scales[1:] ** (2 // self.power)
        left = amount - charges.sum(axis=1)
        own = self.costs[:, 0]
        if (left[own > 0] <= 0).any():
            return math.inf
        return float((own[own > 0] / left[own > 0]).max() ** (self.power / 2))
