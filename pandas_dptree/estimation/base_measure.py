r"""Base measures for the quantiles of small groups, from the released curve of the group above them.

Let F be the released cumulative distribution of the parent, mixed with 2 % of the uniform one. On its scale
:math:`p = F(x)`, the quantile q of a child is expected near q:

.. math:: H(p) = 0.9 \int_{-\infty}^p \frac{1}{2s} e^{-|t - q|/s}\,dt + 0.1\,p, \qquad s = 0.1.

The mass of a cell is the increase of H(F(x)) in it, so that it follows the shape of the parent; the uniform
parts keep every place possible. This is post-processing of a release, and public.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["densities"]

FloatArray = npt.NDArray[np.float64]

_WIDTH, _UNIFORM_RANKS, _UNIFORM_VALUES = 0.1, 0.1, 0.02
_SCALE = 2.0**16
"""The mass of a point where the measure is uniform."""


def densities(cumulative: IntArray, starts: IntArray, quantile: Fraction) -> IntArray:
    """Return whole masses of the points in each cell, at least 1, shape (n_curves, n_cells).

    `cumulative` has the released numbers of records in each cell and those before it, non-decreasing, of the
    same shape; an empty curve is taken to be uniform. The cells begin at the points `starts`, which end with
    the number of points; each has at least one.
    """
    sizes = np.diff(starts)
    even = starts[1:] / starts[-1]
    total = cumulative[:, -1:].astype(np.float64)
    curve = np.divide(cumulative, total, out=np.broadcast_to(even, cumulative.shape).copy(), where=total > 0)
    ranks = (1 - _UNIFORM_VALUES) * curve + _UNIFORM_VALUES * even
    masses = np.diff(_expected(np.insert(ranks, 0, 0.0, axis=1), float(quantile)), axis=1)
    relative = np.maximum(masses, 0.0) * (starts[-1] / sizes)
    return np.asarray(1 + np.floor(_SCALE * relative), dtype=np.int64)


def _expected(ranks: FloatArray, quantile: float) -> FloatArray:
    """Return H at ranks from 0 to 1."""
    distance = np.abs(ranks - quantile) / _WIDTH
    laplace = np.where(ranks < quantile, 0.5 * np.exp(-distance), 1 - 0.5 * np.exp(-distance))
    return (1 - _UNIFORM_RANKS) * laplace + _UNIFORM_RANKS * ranks
