"""Confidence intervals for counts, from the known distribution of the noise: post-processing, without cost.

An error of least squares is a weighted sum of independent noises; its quantiles are those of a distribution
with the same variance and fourth cumulant, widened where the steps of one count show.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import FloatArray, Variances
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["error_half_widths", "error_steps", "estimate_cumulants", "half_widths", "intervals"]

_LOG_KURTOSES = np.linspace(np.log(1e-4), np.log(1e9), 200)
"""Logarithms of the excess kurtoses at which quantiles are tabulated: from normal to almost always 0."""

_UNSEEN = 0.003
"""The confidence that may be lost to steps of the noise before intervals are widened."""


def half_widths(
    tree: Tree,
    variances: Variances,
    fourth_cumulants: Sequence[npt.ArrayLike],
    confidence: float,
    excess: Sequence[npt.ArrayLike] = (),
) -> list[FloatArray]:
    """Return half the width of a central confidence interval around each least-squares estimate, in counts.

    The fourth cumulants are those of the noise of each measurement, 0 where nothing was measured or the value
    is known; `excess` are those of the excess of distinct units. `error_half_widths` has the method and its
    accuracy.
    """
    fourth = estimate_cumulants(tree, variances, fourth_cumulants, excess)
    return [
        error_half_widths(*moments, confidence)
        for moments in zip(variances.final, fourth, error_steps(tree, variances), strict=True)
    ]


def error_steps(tree: Tree, variances: Variances) -> list[FloatArray]:
    """Return about the largest weight of a measurement in each least-squares estimate, from 0 to 1.

    It is the fourth root of the sum of their fourth powers.
    """
    noisy, excess = (
        [np.where((noise > 0) & np.isfinite(noise), 1.0, 0.0) for noise in levels]
        for levels in (variances.noise, variances.excess)
    )
    return [np.minimum(powers**0.25, 1.0) for powers in estimate_cumulants(tree, variances, noisy, excess)]


def error_half_widths(
    variances: FloatArray, fourth_cumulants: FloatArray, steps: FloatArray, confidence: float
) -> FloatArray:
    r"""Return half the width of the central interval that contains an error with a probability.

    The error is a weighted sum of independent discrete Laplace or discrete Gaussian variables, the largest
    weight being about `steps`. It is modelled as a normal variable whose variance is itself random, so that
    its own variance and excess kurtosis :math:`\kappa` are right. That random variance is either gamma
    distributed (the error is then like the sum of :math:`3/\kappa` equal Laplace variables), or a constant
    plus an exponential variable (a normal and a Laplace variable). The wider of the two intervals is used.

    Discrete noise comes in steps of one count, and an estimate in steps no coarser than the largest
    coefficient h of a measurement in it. With :math:`w(c)` from above, half such a step more is always
    enough, and none is needed where the error is so wide that half a step changes little:

    .. math:: \max\bigl(w(c),\; w(c - \delta) + h/2\bigr),

    where :math:`\delta` is 0.3 percentage points, and at most a fifth of :math:`1 - c`.

    For sums of continuous Laplace and normal variables in any proportions, of which a single one is exact,
    the coverage is at least the confidence, and at most 0.4 percentage points above it from 80 % on (1.5 at
    50 %). For discrete noise from scale 0.05 on, and a confidence from 80 % on, it is at most half a
    percentage point below; where noise is small against one count, far above. Steps widen it by 3 % (Laplace)
    or 5 % (Gaussian) at most where all scales are 5 and the confidence is 90 % or more, and not at all from
    scale 40 on.
    """
    surer = _standard_half_widths(confidence)
    looser = _standard_half_widths(confidence - min(_UNSEEN, (1 - confidence) / 5))
    std = np.sqrt(np.maximum(variances, 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kurtosis = np.log(np.where(std > 0, np.maximum(fourth_cumulants, 0.0) / std**2 / std**2, 0.0))
    continuous = std * np.interp(kurtosis, _LOG_KURTOSES, surer)
    in_steps = std * np.interp(kurtosis, _LOG_KURTOSES, looser) + steps / 2
    return np.where(std > 0, np.maximum(continuous, in_steps), 0.0)


def estimate_cumulants(
    tree: Tree,
    variances: Variances,
    fourth_cumulants: Sequence[npt.ArrayLike],
    excess: Sequence[npt.ArrayLike] = (),
) -> list[FloatArray]:
    r"""Carry the fourth cumulants of the measurements through the two passes of least squares.

    The fourth cumulant of :math:`\sum_i c_i \xi_i` with independent :math:`\xi_i` is
    :math:`\sum_i c_i^4 \kappa_4(\xi_i)`. So estimates are written as sums of independent parts: that of a
    parent, which has the subtree estimates :math:`z_c` of its children, as

    .. math:: x_p = a_p \textstyle\sum_c z_c + R_p,

    where :math:`R_p` collects the measurements outside its children's subtrees. For a child with the share
    :math:`r_c = V_c / V_S` of the family's variance, and :math:`b_c = r_c (1 - a_p)`, this gives

    .. math:: x_c = (1 - b_c)\,z_c - b_c \textstyle\sum_{s \ne c} z_s + r_c R_p,
              \qquad a_c = (1 - b_c)(1 - o_c),

    where :math:`o_c` is the weight of the child's own measurement in :math:`z_c`. The measured `excess` of
    distinct units is one more child of each node, without an estimate of its own.

    >>> from pandas_dptree.estimation.least_squares import propagate
    >>> tree = Tree.from_branching([2])
    >>> variances = propagate(tree, [1.0, 1.0])
    >>> [level.round(6).tolist() for level in estimate_cumulants(tree, variances, [0.0, 81.0])]
    [[2.0], [17.0]]
    """
    noise = [np.atleast_1d(np.asarray(fourth, dtype=np.float64)) for fourth in fourth_cumulants]
    beyond = [
        np.where((variance > 0) & np.isfinite(variance), fourth, 0.0)  # a single child leaves no excess
        for variance, fourth in zip(variances.excess, excess, strict=True)
    ]
    subtree, children = [noise[-1]], []
    for level in reversed(range(tree.depth)):
        own = variances.own[level]
        below = tree.sum_children(level, subtree[-1])
        children.append(below + beyond[level] if beyond else below)
        subtree.append(own**4 * noise[level] + (1 - own) ** 4 * children[-1])
    subtree, children = subtree[::-1], children[::-1]
    final = [subtree[0]]
    from_children, rest = 1 - variances.own[0], variances.own[0] ** 4 * noise[0]
    for level in range(tree.depth):
        share = _share(variances.subtree[level + 1], tree.spread(level, variances.children[level]))
        given = share * (1 - tree.spread(level, from_children))
        siblings = np.maximum(tree.spread(level, children[level]) - subtree[level + 1], 0.0)
        others = given**4 * siblings + share**4 * tree.spread(level, rest)
        final.append((1 - given) ** 4 * subtree[level + 1] + others)
        own = variances.own[level + 1]
        from_children = (1 - given) * (1 - own)
        rest = (1 - given) ** 4 * own**4 * noise[level + 1] + others
    return final


def intervals(
    estimates: npt.NDArray[np.int64] | FloatArray,
    half_widths: FloatArray,
    least: npt.ArrayLike = 0.0,
    most: npt.ArrayLike = np.inf,
    *,
    whole: bool = False,
    shown: npt.NDArray[np.int64] | FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return an interval around each estimate of a level, within what is publicly known.

    Cut to `least` and `most`, and then inwards to whole numbers, it holds the truth whenever it did before,
    so no confidence is lost. One outside of the bounds becomes the nearer of them, one without a whole number
    is widened to the two around it, and all contain the numbers that a table shows.
    """
    lower = np.clip(estimates - half_widths, least, most)
    upper = np.clip(estimates + half_widths, least, most)
    if whole:
        # Sums of floats may miss a whole number.
        rounding = np.minimum(1e-9 + 1e-13 * np.abs(estimates), 0.25)
        inwards = np.ceil(lower - rounding) + 0.0, np.floor(upper + rounding) + 0.0  # not -0.0
        lower, upper = np.minimum(*inwards), np.maximum(*inwards)
    if shown is None:
        return lower, upper
    if not whole:
        return np.minimum(lower, shown), np.maximum(upper, shown)
    rounding = np.minimum(1e-9 + 4 * np.spacing(np.abs(shown, dtype=np.float64)), 0.25)
    return np.minimum(lower, np.floor(shown + rounding)), np.maximum(upper, np.ceil(shown - rounding))


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Return the share of a family's variance; 0 where all its members are known."""
    with np.errstate(invalid="ignore"):
        return np.where(whole > 0, part / whole, 0.0)


@lru_cache(maxsize=32)
def _standard_half_widths(confidence: float) -> FloatArray:
    """Return half the width of the interval of a distribution with variance 1, for each tabulated kurtosis.

    A normal variable with the random variance G, of mean 1, has the excess kurtosis 3 Var(G).
    """
    kurtoses = np.exp(_LOG_KURTOSES)
    several = _gamma(3 / kurtoses)
    share = np.sqrt(np.minimum(kurtoses / 3, 1.0))[:, None]
    exponential, masses = _gamma(np.ones(1))
    one = 1 - share + share * exponential, masses
    return np.maximum(_quantiles(*several, confidence), _quantiles(*one, confidence))


def _gamma(shapes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return points and masses that represent gamma distributions of mean 1.

    By the logarithm, the density decays so fast that the trapezoidal rule is exact to many digits; to the
    left of small shapes, what is omitted lies so near 0 that it does not matter.
    """
    from scipy.special import gammaln  # costs a tenth of a second to import

    k = shapes[:, None]
    spread = 1 / np.sqrt(np.maximum(k, 1.0))
    x = np.linspace(-30, 8, 300) * spread - np.log(np.minimum(k, 1.0))
    density = np.exp(k * np.log(k) - gammaln(k) + k * (x - np.exp(x)))
    return np.exp(x), density * (x[:, 1:2] - x[:, :1])


def _quantiles(variances: FloatArray, masses: FloatArray, confidence: float) -> FloatArray:
    """Solve P(-w < Y < w) = confidence for normal Y of random variance, by bisection.

    Chebyshev's inequality bounds w from above, since the mean variance is 1.
    """
    from scipy.special import erfc  # as above

    rates = 1 / np.sqrt(2 * variances)
    low = np.zeros(len(variances))
    high = np.full(len(variances), 1 / np.sqrt(1 - confidence))
    for _ in range(40):
        middle = (low + high) / 2
        outside = (masses * erfc(middle[:, None] * rates)).sum(axis=1)
        low = np.where(outside > 1 - confidence, middle, low)
        high = np.where(outside > 1 - confidence, high, middle)
    return high
