"""Find the smallest privacy loss that reaches a target accuracy.

**Privacy**: a function of the tree, the noise and the targets, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from statistics import NormalDist

import numpy as np

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.estimation.least_squares import LEAST_VARIANCE
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise, Moves
from pandas_dptree.planning.area_shares import AreaTarget, best_shares, sums_of_squares
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.known_counts import Flags
from pandas_dptree.planning.objective import Objective
from pandas_dptree.planning.patterns import pattern_costs, relative_costs, undominated
from pandas_dptree.planning.split import Split, level_shares
from pandas_dptree.planning.variance import level_variances_and_vjp, unrelated_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.signatures import public

__all__ = ["LARGEST_LOSS", "Target", "Within", "relative", "within"]

_SMALLEST_LOSS = 1e-9

LARGEST_LOSS = 1000.0
"""The largest meaningful epsilon or rho: beyond it, there is hardly any protection."""

_LEAST_SHARE = 1e-3
"""With targets of areas, a level whose best share is smaller is not measured, unless it is the last one."""

_ROUNDS = 8  # of choosing the shares and then the loss; usually two or three


@public
def relative(share: float, *, of: float) -> float:
    """Return the standard error that is a share of a count, as a target.

    Parameters
    ----------
    share : float
        For example 0.05, for a standard error of five per cent.
    of : float
        The count, as publicly known or guessed; never read from the records.

    Returns
    -------
    float
        The standard error, in counts.

    Raises
    ------
    ArgumentError
        If one of them is not a positive finite number.

    Examples
    --------
    >>> relative(0.05, of=2000)
    100.0
    """
    for name, value in (("share", share), ("of", of)):
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float, np.number))
            or not 0 < value < np.inf
        ):
            raise ArgumentError(
                name,
                f"must be a positive number, not {quote(value)}.",
                hint="for example relative(0.05, of=2000).",
            )
    return float(share * of)


@dataclass(frozen=True, slots=True)
class Within:
    """The half width that the intervals of a level may have, at a confidence. Made by `within`."""

    half_width: float
    confidence: float

    @property
    def normal_std_error(self) -> float:
        """The standard error of normal errors whose intervals have this half width."""
        return self.half_width / -NormalDist().inv_cdf((1 - self.confidence) / 2)


@public
def within(half_width: float, *, confidence: float) -> Within:
    """Return the half width of an interval, as a target: every node of the level is within it.

    Parameters
    ----------
    half_width : float
        In counts, or in the unit of a column that is added up: 50 for intervals of ± 50.
    confidence : float
        The share of releases, above 0 and below 1, in which the interval of a node must hold the true value
        of what was counted: as the option `confidence` of a plan.

    Returns
    -------
    Within
        A target, in place of a standard error.

    Raises
    ------
    ArgumentError
        If the half width is not positive and finite, or the confidence not between 0 and 1.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> target = {"level_2": dpt.within(50, confidence=0.95)}
    >>> round(dpt.plan(dpt.Tree.from_branching([3, 4]), target=target).epsilon, 2)
    0.06
    """
    for name, value, most in (("half_width", half_width, np.inf), ("confidence", confidence, 1.0)):
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < most:
            raise ArgumentError(
                name,
                f"must be a {'positive number' if most > 1 else 'number between 0 and 1'}, "
                f"not {quote(value)}.",
                hint="for example within(50, confidence=0.95).",
            )
    return Within(float(half_width), float(confidence))


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """Target standard errors of a tree's levels, and how the budget may be split to reach them.

    `std_errors` are the largest expected ones, in units of what is added up, inf without a target, and those
    of `areas`; `names`, `unit` and `widths`, the targets that were stated as half widths, are for messages.
    """

    tree: Tree
    names: Sequence[Hashable]
    std_errors: FloatArray
    sensitivity: Moves
    split: Split | FloatArray
    least_squares: bool
    known: Flags | None = None
    unit: float = 1.0
    widths: Mapping[Hashable, Within] = field(default_factory=dict)
    areas: Sequence[AreaTarget] = ()

    @property
    def weights(self) -> FloatArray:
        """Level weights for which the worst level is the one furthest from its target."""
        return np.asarray(self.std_errors**-2.0)

    def __post_init__(self) -> None:
        """Check that there is a target, and that noise of that size exists."""
        of_areas = [area.std_error for area in self.areas]
        wanted = np.append(self.std_errors[np.isfinite(self.std_errors)], of_areas)
        one_unit = float(max(level.l1 for level in self.sensitivity.on(len(self.names)).levels))
        least, most = 1e-6, min(1e5 * one_unit, 1e11)  # there is no noise of a scale above 1e12
        if not len(wanted) or wanted.min() < least or wanted.max() > most:
            raise ArgumentError(
                "target",
                f"must name a level and a standard error from {least * self.unit:g} to {most * self.unit:g}, "
                f"not {self._in_units(wanted)}.",
                hint=f"for example {{{quote(self.names[-1])}: {min(25 * one_unit, most) * self.unit:g}}}, "
                "or dpt.relative(0.05, of=2000).",
            )
        if (
            self.known is not None
            and not self.areas
            and not self._means(np.ones(len(self.names)))[np.isfinite(self.std_errors)].any()
        ):
            raise ArgumentError(
                "target",
                "names only levels whose counts are all known, so they have no error.",
                hint="state a standard error for another level.",
            )

    @cached_property
    def _orbits(self) -> Orbits:
        return Orbits.of(self.tree, self.known)

    def smallest_loss(self, noise: AdditiveNoise, loss_of: Callable[[float], PrivacyLoss]) -> float:
        """Find the smallest epsilon or rho for which every level reaches its target; it may be inf.

        `loss_of` maps the number to the privacy loss. Split and loss are found in turn, until neither moves.
        The result is too large by a few parts in a million at most, by about a thousandth where the leaves
        have no target, since they get that share anyway.
        """
        size = 1.0
        for _ in range(_ROUNDS):
            shares = self.shares(noise, loss_of(size))
            before, size = size, _crossing(partial(self._excess, noise, loss_of, shares), size)
            if size <= _SMALLEST_LOSS:
                raise ArgumentError(
                    "target",
                    f"{self._in_units(self.std_errors)} is met by delta alone, whatever the epsilon.",
                    hint="choose a smaller delta: the probability with which epsilon may fail.",
                )
            if math.isinf(size):
                return size
            if abs(size / before - 1) < 1e-6:
                break
        step = 1e-7  # the split is accurate to a few parts in ten million, and depends on the loss a little
        while self._excess(noise, loss_of, self.shares(noise, loss_of(size)), size) > 1:
            size, step = size * (1 + step), 2 * step
        return size

    def out_of_reach(
        self, noise: AdditiveNoise, loss_of: Callable[[float], PrivacyLoss], size: float, limit: float
    ) -> ArgumentError:
        """Return the error that the target needs a larger loss than allowed, and what the limit gives."""
        kind = "rho" if loss_of(limit).kind == "zcdp" else "epsilon"
        variances = self._noise_variances(noise, loss_of(limit), self.shares(noise, loss_of(limit)))
        stated = zip(self.names, self._errors(variances), self.std_errors, strict=True)
        possible = ", ".join(
            [
                f"{quote(name)}: {self._in_words(name, error, wanted)}"
                for name, error, wanted in stated
                if math.isfinite(wanted)
            ]
            + [
                f"area {number}: {float(f'{error * self.unit:.4g}')}"
                for number, error in enumerate(self._area_errors(variances), start=1)
            ]
        )
        what = "about" if self.widths else "standard errors of"
        needed = f"{kind}={size:.4g}" if math.isfinite(size) else f"a huge {kind}"
        return ArgumentError(
            "target",
            f"needs {needed} with {noise.name} noise, more than {limit:g}.",
            hint=f"{kind}={limit:g} would give {what} {{{possible}}}.",
        )

    def _in_words(self, name: Hashable, error: float, wanted: float) -> str:
        """Format a standard error as the target of its level was stated."""
        if (stated := self.widths.get(name)) is None:
            return f"{float(f'{error * self.unit:.4g}')}"
        return f"within({stated.half_width * error / wanted:.4g}, confidence={stated.confidence:g})"

    def _in_units(self, errors: FloatArray) -> list[float]:
        """Return standard errors in the reader's unit, without rounding errors of the unit."""
        return [float(f"{error * self.unit:.12g}") for error in errors]

    def shares(self, noise: AdditiveNoise, loss: PrivacyLoss) -> FloatArray:
        """Return the share of the budget of each level: the best ones, or those that the split states."""
        if self.areas and isinstance(self.split, str) and self.split == "optimal":
            return self._best_for_areas(noise)
        return self._level_shares(noise, loss, self.split, self.weights, "worst")

    def _level_shares(
        self,
        noise: AdditiveNoise,
        loss: PrivacyLoss,
        split: Split | FloatArray,
        weights: FloatArray,
        objective: Objective,
    ) -> FloatArray:
        return level_shares(
            self.tree, noise=noise, loss=loss, sensitivity=self.sensitivity, split=split,
            level_weights=weights, objective=objective, least_squares=self.least_squares, known=self.known,
        )  # fmt: skip

    def _best_for_areas(self, noise: AdditiveNoise) -> FloatArray:
        """Find the best shares for noise so large that its steps do not matter; the loss does not, either.

        The errors of several splits have local minima, so three splits are starts. Without least squares each
        level that the table shows must be measured; otherwise a level with hardly any share is not.
        """
        if (found := self._shares_for_areas.get(noise.name)) is None:
            small = [PrivacyLoss(epsilon=0.01), PrivacyLoss(rho=1e-4)]
            loss = next(each for each in small if noise.supports(each))
            even = np.ones(len(self.names))
            uniform = self._level_shares(noise, loss, "uniform", even, "levels")
            leaves = np.where(np.arange(len(even)) < len(even) - 1, 0.1, 1.0) * (uniform > 0)
            optimal = self._level_shares(noise, loss, "optimal", even, "levels")
            optimal = np.where(uniform > 0, np.maximum(optimal, 1e-3), 0.0)
            starts = [each / each.sum() for each in (uniform, leaves, optimal)]
            costs = pattern_costs(noise, loss, self.sensitivity.on(len(even)))
            costs = costs[undominated(costs)]
            patterns = relative_costs(costs) if len(costs) > 1 else None

            def own_variances(shares: FloatArray) -> FloatArray:
                """Return the variances of the levels as if the shares added up to the whole budget."""
                variances = self._noise_variances(noise, loss, shares)
                if patterns is None:
                    return variances
                charged = float((patterns @ shares).max() / shares.sum())
                return variances / charged ** noise.variance_power(loss)

            found = best_shares(starts, own_variances, self._excesses_and_slopes, patterns)
            if self.least_squares:
                found = np.where((found < _LEAST_SHARE) & (even.cumsum() < len(even)), 0.0, found)
            self._shares_for_areas[noise.name] = found = found / found.sum()
        return found

    @cached_property
    def _shares_for_areas(self) -> dict[str, FloatArray]:
        return {}

    def _noise_variances(self, noise: AdditiveNoise, loss: PrivacyLoss, shares: FloatArray) -> FloatArray:
        variances = noise.variance(noise.noise_scales(loss, self.sensitivity, shares))
        return np.maximum(variances, LEAST_VARIANCE)

    def _errors(self, variances: FloatArray) -> FloatArray:
        """Return the standard error of each level, from the variances of its noise."""
        return np.sqrt(self._means(1 / variances))

    def _sums_of_squares(self, area: AreaTarget, variances: FloatArray) -> FloatArray:
        return sums_of_squares(
            self.tree, variances, area.weights, least_squares=self.least_squares, known=self.known
        )

    def _area_errors(self, variances: FloatArray) -> FloatArray:
        """Return the standard error of each area, from the variances of the noise of the levels."""
        finite = np.where(np.isfinite(variances), variances, 0.0)
        return np.sqrt([float(finite @ self._sums_of_squares(area, variances)) for area in self.areas])

    def _excesses_and_slopes(self, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the logarithms of errors over targets, and their derivatives by those of the variances."""
        named = np.flatnonzero(np.isfinite(self.std_errors))
        means, vjp = (
            level_variances_and_vjp(self._orbits, 1 / variances[:, None])
            if self.least_squares
            else unrelated_variances_and_vjp(self._orbits.part_unknown, 1 / variances[:, None])
        )
        logs, slopes = [], []
        for level in named.tolist():
            mean = float(means[level, 0])
            if mean > 0:
                gradient = vjp((np.arange(len(means)) == level).astype(np.float64)[:, None])[:, 0]
                logs.append(np.log(mean) / 2 - np.log(self.std_errors[level]))
                slopes.append(-gradient / variances / (2 * mean))
        finite = np.where(np.isfinite(variances), variances, 0.0)
        for area in self.areas:
            parts = finite * self._sums_of_squares(area, variances)
            if (whole := float(parts.sum())) > 0:
                logs.append(np.log(whole) / 2 - np.log(area.std_error))
                slopes.append(parts / (2 * whole))
        return np.array(logs), np.array(slopes)

    def _means(self, precisions: FloatArray) -> FloatArray:
        """Return the mean variance of each level."""
        if self.least_squares:
            means, _ = level_variances_and_vjp(self._orbits, precisions[:, None])
        else:
            means, _ = unrelated_variances_and_vjp(self._orbits.part_unknown, precisions[:, None])
        return means[:, 0]

    def _excess(
        self, noise: AdditiveNoise, loss_of: Callable[[float], PrivacyLoss], shares: FloatArray, size: float
    ) -> float:
        """Return the largest ratio of an error to its target."""
        variances = self._noise_variances(noise, loss_of(size), shares)
        of_levels = float((self._errors(variances) / self.std_errors).max())
        areas = zip(self._area_errors(variances).tolist(), self.areas, strict=True)
        return max([of_levels, *(float(error) / area.std_error for error, area in areas)])


def _crossing(falling: Callable[[float], float], guess: float) -> float:
    """Find where a positive falling function reaches 1; inf if beyond every meaningful loss."""
    from scipy.optimize import brentq  # costs a third of a second to import

    low = high = guess
    while falling(low) <= 1 and low > _SMALLEST_LOSS:
        low /= 4
    while falling(high) > 1 and high < 10 * LARGEST_LOSS:
        high *= 4
    if falling(low) <= 1 or falling(high) > 1:
        return low if falling(low) <= 1 else math.inf
    return math.exp(
        brentq(lambda size: math.log(falling(math.exp(size))), math.log(low), math.log(high), xtol=1e-8)
    )
