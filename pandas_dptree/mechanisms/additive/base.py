"""The interface of all kinds of additive noise, level by level.

Noise of scale b costs a level ``c / b**k`` of a budget that adds up over the levels (epsilon with Laplace
noise, otherwise rho), with c from the sensitivity; calibration is this one rule, in exact rational numbers.
If a unit can move the levels in several ways, the budget suffices for each of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from operator import mul
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE, SMALLEST_SCALE, ByteSource
from pandas_dptree.privacy.composition import largest_budget
from pandas_dptree.privacy.level_losses import LevelLoss, exact_sum, largest, together
from pandas_dptree.privacy.loss import PrivacyLoss, float_below
from pandas_dptree.privacy.sensitivity import Sensitivity, TreeSensitivity

__all__ = ["AdditiveNoise", "FloatArray", "Moves"]

FloatArray = npt.NDArray[np.float64]

Moves = Sensitivity | TreeSensitivity
"""How far one privacy unit can move the levels: each of them, or all together."""


@dataclass(frozen=True, slots=True)
class AdditiveNoise(ABC):
    """Noise added to every count of a level, independently and at the level's own scale."""

    name: ClassVar[str]
    """The name by which callers choose it, and which a release states."""

    euclidean: ClassVar[bool] = False
    """Whether privacy depends only on the Euclidean distance of neighbours, in units of the noise scales.

    Then weighted sums can be measured (`pandas_dptree.mechanisms.weighted_sums`), several quantities share a
    rho under an (epsilon, delta) too (`pandas_dptree.plans.joint`), and there is a tight lower bound on the
    error (`pandas_dptree.planning.gaussian_bound`). All three rely on proven properties of discrete Gaussian
    noise: its loss, and its variance.
    """

    @abstractmethod
    def budget(self, loss: PrivacyLoss) -> Fraction:
        """Return the exact quantity that the levels share, as it adds up over them: an epsilon or a rho.

        An (epsilon, delta) allows a little more, depending on the levels; `noise_scales` finds out how much.
        """

    def supports(self, loss: PrivacyLoss) -> bool:
        """Return whether this noise can give privacy of that kind: by default, any but a rho with a delta."""
        return loss.kind != "approximate_zcdp"

    def keeps_to(self, loss: PrivacyLoss, sensitivity: Moves, noise_scales: npt.ArrayLike) -> bool:
        """Return whether levels with these noise scales keep to a loss, as those of `noise_scales` do.

        The arguments are those of `spent`.
        """
        if not self.supports(loss):
            return False
        if self.spent(loss, sensitivity, noise_scales) <= self.accepted_budget(loss):
            return True
        least = loss.rounded_down
        return (
            least.epsilon is not None and self.delta(least.epsilon, noise_scales, sensitivity) <= least.delta
        )

    def accepted_budget(self, loss: PrivacyLoss) -> Fraction:
        """Return the largest budget with which given noise scales are accepted: at least `budget`."""
        return self.budget(loss)

    @abstractmethod
    def delta(self, epsilon: float, noise_scales: npt.ArrayLike, sensitivity: Moves) -> float:
        """Return a delta for which levels with these noise scales are (epsilon, delta)-private, rounded up.

        `noise_scales` has shape (n_levels,), with inf for a level that is not measured. The sensitivity is
        that of all levels, or of any one.
        """

    @abstractmethod
    def level_loss(self, noise_scale: float, sensitivity: Sensitivity) -> LevelLoss:
        """Return what noise of this scale on one level spends, as an epsilon and as a rho.

        The scale is inf for a level that is not measured. The sensitivity is that of the level.
        """

    @abstractmethod
    def _cost(self, loss: PrivacyLoss, sensitivity: Sensitivity) -> tuple[Fraction, int]:
        """Return (c, k): noise of scale b on one level costs c / b**k of the budget."""

    @abstractmethod
    def variance(self, noise_scales: npt.ArrayLike) -> FloatArray:
        """Return the exact variance of the noise, in squared counts, to machine precision.

        Noise scales are from 1e-3 to 1e12, or inf where nothing is measured. Variances below the range of
        floats are 0.
        """

    @abstractmethod
    def scales_of(self, variances: npt.ArrayLike) -> FloatArray:
        """Return the noise scales at which the noise has these variances, from 1e-30 on: see `variance`."""

    @abstractmethod
    def fourth_cumulant(self, noise_scales: npt.ArrayLike) -> FloatArray:
        """Return the exact fourth cumulant of the noise: its fourth moment less three squared variances.

        It is in counts to the fourth power, and 0 where nothing is measured, since that has no part in any
        estimate.
        """

    @abstractmethod
    def half_width(self, noise_scales: npt.ArrayLike, confidence: float) -> FloatArray:
        """Return the least whole number that bounds the noise's magnitude with the probability `confidence`.

        It is in counts, and inf where nothing is measured.
        """

    @abstractmethod
    def squared_excess(
        self, noise_scales: FloatArray, tolerance: FloatArray, *, continuous: bool = False
    ) -> FloatArray:
        r"""Return the mean squared excess of the noise over a tolerance t, :math:`E \max(|X| - t, 0)^2`.

        Scales, tolerances (at least 0) and results (in squared counts) have the same shape. With
        `continuous`, the noise is the continuous distribution of that scale, from 0, which the discrete one
        approaches from scale 10 on.
        """

    @abstractmethod
    def sample(self, noise_scale: float, size: int, source: ByteSource) -> IntArray:
        """Draw `size` independent noises of a scale from 1e-3 to 1e12, in counts."""

    def variance_power(self, loss: PrivacyLoss) -> int:
        """Return k such that a level's noise variance falls like ``share**-k`` (while above one count).

        2 where the levels share an epsilon, 1 where they share a rho.
        """
        return 2 // self._cost(loss, Sensitivity(l1=1, l2_squared=1))[1]

    def noise_scales(self, loss: PrivacyLoss, sensitivity: Moves, shares: npt.ArrayLike) -> FloatArray:
        """Return the noise scale of each level, rounded up, so that the levels stay within the budget.

        The shares are in proportion to what each level costs by itself, at most; only their proportions
        matter. A level with a share of 0 is not measured: its scale is inf. A scale below 1e-3, at which all
        noise is 0 for all practical purposes, is raised to 1e-3.

        **Privacy**: for a pure or zero-concentrated loss
        ``spent(loss, sensitivity, noise_scales) <= budget(loss)``, both exact rational numbers. For an
        approximate one, either that or, with ``least = loss.rounded_down``,
        ``delta(least.epsilon, noise_scales, sensitivity) <= least.delta``.
        """
        parts = np.asarray(shares, dtype=np.float64)
        if parts.ndim != 1 or not (np.isfinite(parts).all() and (parts >= 0).all() and parts.any()):
            raise ArgumentError(
                "split",
                f"must hold a share of at least 0 for each level, at least one of them positive, "
                f"not {quote(parts.tolist())}.",
                hint="for example equal shares.",
            )
        moves = sensitivity.on(len(parts))
        scales_of = partial(self._scales, loss, moves, parts)
        budget = self.budget(loss)
        if loss.kind == "approximate":
            least = loss.rounded_down
            epsilon = cast(float, least.epsilon)

            def delta_of(budget: float) -> float:
                scales = scales_of(budget)
                at_the_end = scales.min() <= SMALLEST_SCALE  # there, more budget changes nothing
                return 1.0 if at_the_end else self.delta(epsilon, scales, moves)

            found = largest_budget(delta_of, least.delta, at_least=float_below(budget))
            budget = max(budget, Fraction(found))
        scales = scales_of(budget)
        if (scales[parts > 0] > LARGEST_SCALE).any():
            raise ArgumentError(
                "epsilon" if loss.rho is None else "rho",
                f"is too small: a level would need noise of a scale above {LARGEST_SCALE:.0e}.",
                hint="allow a larger privacy loss, or give that level a larger share or none.",
            )
        return scales

    def _scales(
        self, loss: PrivacyLoss, moves: TreeSensitivity, parts: FloatArray, budget: Fraction | float
    ) -> FloatArray:
        """Return the scales, rounded up, at which levels with these shares stay within a budget."""
        shares, (costs, power) = list(map(Fraction, parts.tolist())), self._costs(loss, moves.levels)
        most = self._most(
            loss,
            moves,
            [share / alone if alone else Fraction() for share, alone in zip(shares, costs, strict=True)],
        )
        powered = [
            cost * most / (Fraction(budget) * share) if share else None
            for share, cost in zip(shares, costs, strict=True)
        ]
        return np.array([math.inf if each is None else _scale_up(each, power) for each in powered])

    def _costs(self, loss: PrivacyLoss, levels: Sequence[Sensitivity]) -> tuple[list[Fraction], int]:
        """Return the cost of each level and the power of the scale, as `_cost`."""
        costs, powers = zip(*(self._cost(loss, level) for level in levels), strict=True)
        return list(costs), powers[0]

    def level_costs(self, loss: PrivacyLoss, moves: TreeSensitivity) -> FloatArray:
        """Return the c of each level by itself: noise of scale b costs c / b**k of the budget, at most."""
        return np.array(list(map(float, self._costs(loss, moves.levels)[0])))

    def composition_gain(self, loss: PrivacyLoss, sensitivity: Moves, shares: npt.ArrayLike) -> float:
        """Return how many times less noise an (epsilon, delta) needs than the budget that implies it.

        It is the ratio of the noise scales of the last level, which must have a share; 1 for other losses.
        The arguments are those of `noise_scales`.
        """
        if loss.kind != "approximate":
            return 1.0
        parts = np.asarray(shares, dtype=np.float64)
        plain = self._scales(loss, sensitivity.on(len(parts)), parts, self.budget(loss))
        return float(plain[-1] / self.noise_scales(loss, sensitivity, shares)[-1])

    def spent(self, loss: PrivacyLoss, sensitivity: Moves, noise_scales: npt.ArrayLike) -> Fraction:
        """Return the exact cost of noise of these scales, in the quantity of `budget`.

        Only the kind of the loss matters. The sensitivity is that of all levels, or of any one: the cost is
        the most that one of its patterns has. A scale is inf where a level is not measured.
        """
        scales = np.asarray(noise_scales, dtype=np.float64).tolist()
        moves = sensitivity.on(len(scales))
        power = self._cost(loss, moves.patterns[0][0])[1]
        return self._most(
            loss, moves, [1 / Fraction(b) ** power if b < math.inf else Fraction() for b in scales]
        )

    def _most(self, loss: PrivacyLoss, moves: TreeSensitivity, precisions: Sequence[Fraction]) -> Fraction:
        """Return the most that a pattern costs in all, with so many times its cost for each level.

        Levels that move alike in all patterns are added up first.
        """
        alike: dict[tuple[Sensitivity, ...], list[Fraction]] = {}
        for own, precision in zip(zip(*moves.patterns, strict=True), precisions, strict=True):
            alike.setdefault(own, []).append(precision)
        totals = list(map(exact_sum, alike.values()))
        common = math.lcm(*(total.denominator for total in totals))
        multiples = [total.numerator * (common // total.denominator) for total in totals]
        most = max(
            sum(map(mul, self._costs(loss, pattern)[0], multiples), Fraction())
            for pattern in zip(*alike, strict=True)
        )
        return most / common

    def loss_together(self, noise_scales: npt.ArrayLike, moves: TreeSensitivity) -> LevelLoss:
        """Return what noise of these scales on all levels spends together at most, in each currency."""
        scales = np.asarray(noise_scales, dtype=np.float64).tolist()

        def spent(pattern: Sequence[Sensitivity]) -> LevelLoss:
            return together(map(self.level_loss, scales, pattern))

        most = largest(list(map(spent, moves.patterns)))
        if moves.squares and not self.euclidean:
            return replace(most, rho=spent(moves.levels).rho)
        return most


def _scale_up(powered: Fraction, power: int) -> float:
    """Round the scale b with ``b**power == powered`` up to a float, and to at least 1e-3."""
    if powered > Fraction(10) ** 300:
        return math.inf
    scale = max(float(float(powered) ** (1 / power)), SMALLEST_SCALE)
    while Fraction(scale) ** power < powered:  # floats are one or two units in the last place off
        scale = math.nextafter(scale, math.inf)
    return scale
