r"""Minimise the expected error of a release over the shares of its levels.

The error J of the best linear estimate is a *concave* function of the levels' noise variances: it is a
minimum, over linear estimators, of something linear in them. It lies below its tangent, so minimising the
tangent,

.. math:: \min_s \sum_l c_l\,v_l(s_l), \qquad c_l = \partial J / \partial v_l, \qquad \sum_l s_l = 1,

never increases the error. Two steps alternate: least squares is the best estimator for the current noise, and
the tangent's minimum is the best noise for the current estimator. With variances that fall like
:math:`s^{-k}` it is at :math:`s_l \propto c_l^{1/(k+1)}`. Where each level's share equals its part of the
error,

.. math:: s_l = \frac{k_l c_l v_l}{\sum_j k_j c_j v_j}, \qquad k_l = -\frac{d \log v_l}{d \log s_l},

a (local) minimum is reached. If several patterns limit the shares (`patterns`), it is the price of the share
that equals the part of the error; each tangent has its own best mixture of the patterns. If the largest error
of a level is minimised instead of their sum, J is the sum with multipliers, which rise and fall in proportion
to the errors during the descent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from pandas_dptree.mechanisms.additive import AdditiveNoise, Moves
from pandas_dptree.mechanisms.sampling import SMALLEST_SCALE
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.patterns import Mixture, pattern_costs, relative_costs
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["Model", "Problem", "VarianceFunction", "promising_splits"]

Model = Callable[[FloatArray], tuple[FloatArray, Callable[[FloatArray], FloatArray]]]
"""From the precisions of the levels to their mean variances, and their vector-Jacobian product."""

_NEGLIGIBLE = 1e-9  # smaller shares are set to 0
_EXHAUSTIVE = 10  # up to this depth, every set of measured levels is tried
_SEARCH_STEPS = 40  # enough to compare sets of levels; most are then at their minimum


@dataclass(frozen=True, slots=True)
class VarianceFunction:
    """The noise variance of each level as a function of its share of the budget.

    The variance falls like ``share**-power`` while it is well above one squared count. The `unit_scales`,
    those with the whole budget, have shape (n_levels, 1), or (1, 1) if all levels are alike.
    """

    noise: AdditiveNoise
    unit_scales: FloatArray
    power: int

    @classmethod
    def calibrated(
        cls, noise: AdditiveNoise, loss: PrivacyLoss, sensitivity: Moves, shares: FloatArray
    ) -> VarianceFunction:
        """Return the function for the budget that the loss of the whole release allows.

        The budget of an (epsilon, delta) depends on the `shares` of the levels, of which only the proportions
        matter. The sensitivity is that of all levels, or of any one.
        """
        return _calibrated(noise, loss, sensitivity, tuple(shares.tolist()))

    @property
    def is_linear(self) -> bool:
        """Whether precision is proportional to the share, to six digits and up to the whole budget.

        The error is a convex function of the precisions, so the best split is then the only minimum.
        """
        return bool((self.elasticities(np.ones_like(self.unit_scales)) < 1 + 1e-5).all())

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return the exact noise variances, in squared counts; inf where the share is 0."""
        with np.errstate(divide="ignore"):
            scales = np.maximum(self.unit_scales / shares ** (self.power / 2), SMALLEST_SCALE)
        return np.maximum(self.noise.variance(scales), 1e-100)  # keeps products of precisions finite

    def elasticities(self, shares: FloatArray) -> FloatArray:
        """Return the percentage by which variances fall if shares rise by one percent; at least `power`."""
        step = 1e-4
        with np.errstate(invalid="ignore"):
            fall = self(shares * np.exp(-step)) / self(shares * np.exp(step))
        return np.fmax(np.log(fall) / (2 * step), self.power)  # a share of 0 has no ratio, and needs none


@lru_cache(maxsize=64)  # that of equal shares is needed repeatedly, and takes a root search
def _calibrated(
    noise: AdditiveNoise, loss: PrivacyLoss, sensitivity: Moves, shares: tuple[float, ...]
) -> VarianceFunction:
    """Compute the scale of each level if it had the whole budget, from that of the largest share."""
    power, largest = noise.variance_power(loss), int(np.argmax(shares))
    scale = noise.noise_scales(loss, sensitivity, shares)[largest]
    costs = pattern_costs(noise, loss, sensitivity.on(len(shares)))
    alone = costs.max(axis=0)
    part = shares[largest] / math.fsum(shares)
    if len(costs) > 1:
        part = shares[largest] / float((relative_costs(costs) @ np.array(shares)).max())
    relative = np.where(alone > 0, alone / alone[largest], 1.0) ** (power / 2)  # 0 where all counts are known
    relative = relative[:1] if (relative == 1).all() else relative
    return VarianceFunction(noise, scale * part ** (power / 2) * relative[:, None], power)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Minimize the costs of the levels' errors over splits of the budget, shape (n_levels, n_splits).

    `model` maps precisions to the mean variances of the levels, `weights` are the costs of a unit of these,
    `worst` says whether to minimize the largest cost or their sum, and `floor` has the smallest shares. Of
    several `patterns`, shape (n_patterns, n_levels), each charges that part of the levels' shares; the whole
    budget is what the largest charge may be. With None, shares add up to it.
    """

    model: Model
    variance: VarianceFunction
    weights: FloatArray
    worst: bool
    floor: FloatArray
    patterns: FloatArray | None = None

    @property
    def _patterns(self) -> FloatArray:
        return np.ones((1, len(self.floor))) if self.patterns is None else self.patterns

    def normalise(self, shares: FloatArray) -> FloatArray:
        """Scale each split to sum to one, with no share below its floor."""
        raised = np.maximum(shares / shares.sum(axis=0), self.floor)
        return np.asarray(raised / raised.sum(axis=0))

    def spent(self, shares: FloatArray) -> FloatArray:
        """Scale each split so that the largest charge is the whole budget."""
        return shares if self.patterns is None else shares / (self.patterns @ shares).max(axis=0)

    def _updated(
        self, spent: FloatArray, parts: FloatArray, rates: FloatArray, prices: FloatArray
    ) -> FloatArray:
        """Move shares by powers of the ratios of the parts that levels have in the error and in the price."""
        priced = spent * prices
        moved = spent * np.divide(parts, priced, out=np.zeros_like(spent), where=priced > 0) ** rates
        return self.normalise(np.where(moved < _NEGLIGIBLE, 0.0, moved))

    def descend(
        self, splits: FloatArray, *, steps: int, tolerance: float = 3e-7
    ) -> tuple[FloatArray, FloatArray]:
        """Improve splits, in turn by the best estimator and the best noise, and return their costs too.

        They are never worse than the start, where a share of 0 stays. It stops when no level's part of the
        error exceeds the price of its share by more than the tolerance, relatively: by convexity, within this
        of the minimum of a sum, if precision is proportional to the share.
        """
        shares, best, least = splits, splits, np.full(splits.shape[1], np.inf)
        multipliers = np.ones((len(self.weights), splits.shape[1]))
        mixture = Mixture(self._patterns, splits.shape[1])
        for step in range(steps):
            spent = self.spent(shares)
            variances, elasticities = self.variance(spent), self.variance.elasticities(spent)
            means, vjp = self.model(1 / variances)
            costs = self.weights * means
            values = costs.max(axis=0) if self.worst else costs.sum(axis=0)
            best, least = np.where(values < least, shares, best), np.minimum(values, least)
            if not values.any():  # the known counts determine everything with a weight, whatever the shares
                break
            if self.worst:
                multipliers = np.maximum(multipliers * costs / values, 1e-12)  # so that none is lost for good
                multipliers = multipliers / multipliers.sum(axis=0)
            # Derivatives by log share; rounding can leave those of useless levels below 0.
            parts = np.maximum(-vjp(multipliers * self.weights) / variances * elasticities, 0.0)
            parts = parts / parts.sum(axis=0)
            priced = spent * mixture.prices
            ratios = np.divide(parts, priced, out=np.zeros_like(shares), where=priced > 0)
            slack = values / (multipliers * costs).sum(axis=0)
            free = 1 - np.where(shares > self.floor, 0.0, priced).sum(axis=0)  # left above the floors
            if max((ratios * free).max(), slack.max()) < 1 + tolerance:
                break
            # An error that shrinks by 1 - r in one step shrinks by (1 - r)(1 - 3r) in a step and a threefold
            # one: twice as fast where r is small. The multipliers of the worst level would not keep up.
            stride = 3 if step % 2 and not self.worst else 1
            shares = mixture.balanced_shares(
                partial(self._updated, spent, parts, stride / (1 + elasticities))
            )
        return best, least


def promising_splits(
    problem: Problem,
    depth: int,
    *,
    keep: int,
    unknown: npt.NDArray[np.bool_] | None = None,
    others: FloatArray | None = None,
) -> FloatArray:
    """Search the sets of levels that might be measured, for a cheap problem, and return the best first.

    Up to ten `unknown` levels above the leaves all sets are tried; beyond, every level, every second, every
    third, … from the leaves up, and then what differs by one or two levels from the best so far. The leaves
    are always measured. The `others` are the shares from which all levels start that are not unknown: 0 by
    default.
    """
    measurable = np.arange(depth + 1) if unknown is None else np.flatnonzero(unknown)

    def minima(measured: FloatArray) -> tuple[FloatArray, FloatArray]:
        starts = np.zeros_like(measured, shape=(len(problem.floor), measured.shape[1]))
        starts += 0.0 if others is None else others[:, None]
        starts[measurable] = measured
        splits, values = problem.descend(problem.normalise(starts), steps=_SEARCH_STEPS)
        order = np.argsort(values, kind="stable")
        return splits[:, order], values[order]

    depth = len(measurable) - 1  # from here on, the other levels are ignored
    levels = np.arange(depth + 1)
    if depth <= _EXHAUSTIVE:
        below = np.arange(2**depth) >> levels[:-1, None] & 1
        return minima(np.vstack([below, np.ones((1, 2**depth))]))[0][:, :keep]
    splits, values = minima(
        np.stack([(depth - levels) % gap == 0 for gap in levels[1:]], axis=1).astype(float)
    )
    changes = np.array(
        [np.isin(levels, change) for size in (1, 2) for change in combinations(range(depth), size)]
    ).T
    while True:
        nearby, costs = minima(((splits[measurable, :1] > 0) ^ changes).astype(float))
        order = np.argsort(np.concatenate([values, costs]), kind="stable")[:keep]
        improved = costs[0] < values[0] * (1 - 1e-9)
        splits = np.concatenate([splits, nearby], axis=1)[:, order]
        values = np.concatenate([values, costs])[order]
        if not improved:
            return splits
