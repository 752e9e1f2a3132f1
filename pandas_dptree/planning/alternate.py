r"""Minimise the expected error of a release over the shares of its levels, by alternating least squares.

The error of the best linear estimate is a *concave* function J of the noise variances, since it is a minimum
over linear estimators of something linear in them. Its tangent therefore lies above it, and minimising the
tangent instead,

.. math:: \min_s \sum_l c_l\,v_l(s_l), \qquad c_l = \partial J / \partial v_l, \qquad \sum_l s_l = 1,

never makes matters worse: it finds the best noise for the present estimator, as least squares finds the best
estimator for the present noise. With noise variances that fall like :math:`s^{-k}` its solution is
:math:`s_l \propto c_l^{1/(k+1)}`. It is reached when each level's share equals its part of the error,

.. math:: s_l = \frac{c_l v_l k_l}{\sum_j c_j v_j k_j}, \qquad k_l = -\frac{d \log v_l}{d \log s_l}.

For the largest error among the levels, J is the sum of the levels' errors with multipliers, and these are
raised in proportion to the errors on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from pandas_dptree.mechanisms.additive import SMALLEST_SCALE, AdditiveNoise
from pandas_dptree.planning.orbits import FloatArray, Orbits
from pandas_dptree.planning.variance import level_variances_and_vjp

__all__ = ["NoiseLaw", "Problem", "promising_shares"]

_NEGLIGIBLE = 1e-9  # a smaller share is none
_EXHAUSTIVE = 10  # up to this depth, every set of measured levels is tried


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """How the noise variance of a level depends on its share.

    Parameters
    ----------
    noise : AdditiveNoise
    unit_scale : float
        The noise scale of a level that has the whole budget.
    power : int
        Noise variance falls like ``share**-power`` while it is above one count.
    """

    noise: AdditiveNoise
    unit_scale: float
    power: int

    def variances(self, shares: FloatArray) -> FloatArray:
        """Give the exact noise variances, in squared counts; inf where the share is 0."""
        with np.errstate(divide="ignore"):
            scales = np.maximum(self.unit_scale / shares ** (self.power / 2), SMALLEST_SCALE)
        return np.maximum(self.noise.variance(scales), 1e-100)  # keeps products of precisions finite

    def elasticities(self, shares: FloatArray) -> FloatArray:
        """By how many per cent the variances fall if the shares rise by one, at least `power`."""
        step = 1e-4
        with np.errstate(invalid="ignore"):
            fall = self.variances(shares * np.exp(-step)) / self.variances(shares * np.exp(step))
        return np.fmax(np.log(fall) / (2 * step), self.power)  # fmax: a share of 0 has no ratio


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be minimised.

    Parameters
    ----------
    orbits : Orbits
        The tree.
    law : NoiseLaw
        The noise.
    weights : numpy.ndarray, shape (n_levels, 1)
        What a unit of each level's mean variance costs.
    worst : bool
        Whether the largest cost of a level counts, or the sum over the levels.
    floor : numpy.ndarray, shape (n_levels, 1)
        Smallest share of each level that is measured.
    least_squares : bool
        Whether estimates are least squares on the tree, or the measurements themselves.
    """

    orbits: Orbits
    law: NoiseLaw
    weights: FloatArray
    worst: bool
    floor: FloatArray
    least_squares: bool = True

    def descend(
        self, shares: FloatArray, *, steps: int, tolerance: float = 1e-10
    ) -> tuple[FloatArray, FloatArray]:
        """Improve several splits side by side.

        Parameters
        ----------
        shares : numpy.ndarray, shape (n_levels, n_batch)
            Where to start. A level whose share is 0 keeps it.
        steps : int
            At most how many steps to take.
        tolerance : float
            How far, relatively, the shares may be from the levels' parts of the error. If the variances
            fall in inverse proportion to the shares, the problem is convex, and the objective is then
            within this of the least there is.

        Returns
        -------
        shares : numpy.ndarray, shape (n_levels, n_batch)
            The best splits on the way, never worse than the start.
        values : numpy.ndarray, shape (n_batch,)
            The objective there.
        """
        best, least = shares, np.full(shares.shape[1], np.inf)
        multipliers = np.ones_like(shares)
        for _ in range(steps):
            variances, elasticities = self.law.variances(shares), self.law.elasticities(shares)
            costs, vjp = self._costs_and_vjp(1 / variances)
            values = costs.max(axis=0) if self.worst else costs.sum(axis=0)
            best, least = np.where(values < least, shares, best), np.minimum(values, least)
            if self.worst:
                multipliers = multipliers * (costs / values)
                multipliers = multipliers / multipliers.sum(axis=0)
            parts = vjp(multipliers) / variances * elasticities
            ratios = np.divide(parts / parts.sum(axis=0), shares, out=np.zeros_like(shares), where=shares > 0)
            if max(ratios.max(), (values / (multipliers * costs).sum(axis=0)).max()) < 1 + tolerance:
                break
            shares = shares * ratios ** (1 / (1 + elasticities))
            shares = np.where(shares < _NEGLIGIBLE, 0.0, shares)
            shares = np.maximum(shares / shares.sum(axis=0), self.floor)
            shares = shares / shares.sum(axis=0)
        return best, least

    def _costs_and_vjp(self, precisions):  # type: ignore
        if self.least_squares:
            means, vjp = level_variances_and_vjp(self.orbits, precisions)
            return self.weights * means, lambda u: vjp(u * self.weights)
        ...


def promising_shares(problem: Problem) -> FloatArray:
    raise NotImplementedError
