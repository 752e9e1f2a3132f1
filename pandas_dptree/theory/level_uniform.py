r"""Errors of cumulative sums from level-uniform trees over bins.

A column is divided into K bins; :math:`C_t` is the number of rows in the first t of them. A level-uniform
tree with the branching factors :math:`(n_1, \dots, n_m)`, :math:`\prod n_i \ge K`, has noisy counts on each
level; a node of level i has :math:`s_i = n_{i+1} \cdots n_m` bins. In this mixed radix t is
:math:`\sum_i d_i(t)\,s_i`, and :math:`C_t` is the sum of :math:`d_i(t)` nodes of each level i (Lemma IV.1).
So every error here is

.. math:: \sum_{t=1}^{K} E\,(\hat C_t - C_t)^2
          = \sum_{i=1}^m w_i v_i + v_0, \qquad w_i = \sum_{t=1}^{K-1} d_i(t),

with the noise variance :math:`v_i` of a node of level i and the variance :math:`v_0` of the total,
:math:`C_K`. It is a *sum* over all of them, in squared counts. Their error is the square root of the sum
divided by K; the squared error of the cumulative distribution function :math:`C_t / N` is the sum divided by
:math:`N^2`. Only variances enter, so the formulas are exact for discrete noise:
``Laplace().variance(scale)`` returns its variance.

**The uses of a level.** With :math:`h(s) = r (s - r) / 2s`, where r is the remainder of K divided by s,

.. math:: w_i = \frac{K (n_i - 1)}{2} + h(s_i) - n_i\,h(n_i s_i).

If the product of the branching factors is K, all remainders are 0, the order of the levels does not matter,
and this is Theorem IV.1. Otherwise the nodes beyond the last bin are padding, known to be empty, and the
sums run over the K cumulative sums.

**Source**: Rameshwar, Tandon and Sharma, "Optimal tree-based mechanisms for differentially private
approximate CDFs", 2024. There the total N is public, neighbouring data sets differ in a replaced row, and
the noise is Laplace: a level with the budget :math:`\epsilon_i` has the variance :math:`8 / \epsilon_i^2`.

**Privacy**: everything here is a function of the bins and of parameters, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.mechanisms.arguments import number_between, real_numbers
from pandas_dptree.theory.checks import checked_bins, checked_branching

__all__ = [
    "histogram_error",
    "level_uses",
    "refined_error",
    "threshold_error",
    "tree_error",
]

FloatArray = npt.NDArray[np.float64]
Integer = TypeVar("Integer", int, npt.NDArray[np.int64])


def threshold_error(n_bins: int, variance: float, *, total_variance: float = 0.0) -> float:
    r"""Compute the squared error of all cumulative sums if each is measured separately (Lemma III.1).

    .. math:: (K - 1)\,v + v_0

    **Privacy.** A row that is replaced, or that is added with the total public, changes at most K - 1
    cumulative sums by one each. All but the last together have an :math:`L_1` sensitivity of K - 1, so the
    error is :math:`2 (K - 1)^3 / \epsilon^2` with Laplace noise. If a row is added or removed and the total
    is measured like the others, the sensitivity is K and the error :math:`2 K^3 / \epsilon^2`. The squares of
    the :math:`L_2` sensitivities are the same numbers, K - 1 and K.

    Parameters
    ----------
    n_bins : int
        K.
    variance : float
        The noise variance v of a cumulative sum, in squared counts.
    total_variance : float, default 0
        The noise variance of the last one, the total; 0 if the total is public.

    Returns
    -------
    float
        In squared counts.

    Examples
    --------
    >>> epsilon = 0.5
    >>> threshold_error(256, 2 * (255 / epsilon) ** 2) == 2 * 255**3 / epsilon**2
    True
    """
    noise, total = (
        _checked_variance("variance", variance),
        _checked_variance("total_variance", total_variance),
    )
    return (checked_bins(n_bins) - 1) * noise + total


def histogram_error(n_bins: int, variance: float, *, total_variance: float = 0.0) -> float:
    r"""Compute the squared error of all cumulative sums, each a sum of noisy bins (Lemma III.2).

    .. math:: \frac{K (K - 1)}{2}\,v + v_0

    The units and errors are those of `threshold_error`.

    Parameters
    ----------
    n_bins, variance : int, float
        K, and the noise variance v of a bin.
    total_variance : float, default 0
        The noise variance of the last one, the total: 0 if the total is public, and ``n_bins * variance``
        (:math:`K (K + 1)\,v / 2` in all) if it is the sum of all bins.

    Examples
    --------
    The noise of a bin has variance 8 if rows are replaced and epsilon is 1:

    >>> histogram_error(256, 8.0) == 4 * 256 * 255
    True
    """
    noise, total = (
        _checked_variance("variance", variance),
        _checked_variance("total_variance", total_variance),
    )
    return math.comb(checked_bins(n_bins), 2) * noise + total


def tree_error(
    branching: Sequence[int],
    variances: npt.ArrayLike,
    *,
    n_bins: int | None = None,
    total_variance: float = 0.0,
) -> float:
    r"""Compute the squared error of all cumulative sums, each of the fewest nodes (Theorem IV.1).

    .. math:: \sum_{i=1}^m w_i v_i + v_0, \qquad\text{which is}\qquad
              \frac K 2 \sum_{i=1}^m (n_i - 1)\,v_i + v_0 \quad\text{if } n_1 \cdots n_m = K.

    Parameters
    ----------
    branching : sequence of int
        Children of each node, from the root down, each at least 2.
    variances : array_like of float, shape (len(branching),)
        The noise variance of a node of each level below the root, in squared counts.
    n_bins : int, optional
        K; the other leaves are padding. By default the product of the branching factors.
    total_variance : float, default 0
        The variance of the total: 0 if it is public, the noise variance of the root if that is measured, and
        otherwise the number of nodes of level 1 times their variance.

    Returns
    -------
    float
        In squared counts. It is exact with padding, too.

    Examples
    --------
    Two levels of 16 share an epsilon of 1, 256 bins:

    >>> tree_error([16, 16], [8 / 0.5**2] * 2) == 4 * 256 * (15 + 15) / 0.5**2
    True

    For 997 bins, a prime number, two levels with padding have a quarter of the error of one level:

    >>> round(histogram_error(997, 8.0) / tree_error([32, 32], [32.0] * 2, n_bins=997), 2)
    4.08
    """
    uses = level_uses(branching, n_bins)
    noise, total = _level_variances(branching, variances), _checked_variance("total_variance", total_variance)
    return math.fsum([*(use * variance for use, variance in zip(uses, noise, strict=True)), total])


def refined_error(branching: Sequence[int], variances: npt.ArrayLike) -> float:
    r"""Compute the squared error of all cumulative sums, from both covers averaged (Lemma IV.4).

    Each node is first averaged with the sum of its children, by inverse variance, from the leaves up:

    .. math:: \frac 1 {V_i} = \frac 1 {v_i} + \frac 1 {n_{i+1} V_{i+1}}, \qquad V_m = v_m.

    Then :math:`C_t` is estimated by the mean of two sums: the nodes left of t, and N minus the nodes right of
    it. These use disjoint subtrees. A cumulative sum that ends between two children of level i has the
    variance :math:`\frac14 \bigl(V_i + \sum_{j \le i} (n_j - 1) V_j\bigr)`, and there are :math:`(n_i -
    1)\,n_1 \cdots n_{i-1}` of these, so the sum is

    .. math:: \frac K 4 \sum_{i=1}^m (n_i - 1)\,V_i.

    In the paper all :math:`n_i` are equal, and so are all :math:`v_i`.

    Parameters
    ----------
    branching, variances
        As for `tree_error`. The product of the branching factors is K (no padding); the total is public.

    Returns
    -------
    float
        In squared counts: at most half of `tree_error`. Least squares on the whole tree is better still.

    Examples
    --------
    >>> refined_error([16, 16], [32.0] * 2) / tree_error([16, 16], [32.0] * 2)  # doctest: +ELLIPSIS
    0.485294...
    """
    factors = checked_branching(branching)
    noise = _level_variances(branching, variances)
    below = math.inf
    refined = []
    for factor, variance in zip(reversed(factors), reversed(noise), strict=True):
        below = variance / (1 + variance / below) if variance else 0.0
        refined.append((factor - 1) * below)
        below *= factor
    return math.prod(factors) / 4 * math.fsum(refined)


def level_uses(branching: Sequence[int], n_bins: int | None = None) -> tuple[int, ...]:
    """Count how many nodes of each level all cumulative sums but the last use together, :math:`w_i`.

    `branching` and `n_bins` are those of `tree_error`. The result is exact, for each level below the root.
    """
    factors = checked_branching(branching)
    leaves = math.prod(factors)
    bins = leaves if n_bins is None else checked_bins(n_bins)
    if bins > leaves:
        raise ArgumentError(
            "branching",
            f"{quote(list(factors))} has {leaves} leaves, too few for {bins} bins.",
            hint="choose factors with a product of at least n_bins.",
        )
    uses, size = [], 1
    for factor in reversed(factors):
        uses.append(digit_sum(bins, size, factor))
        size *= factor
    return tuple(reversed(uses))


def digit_sum(n_bins: int, size: Integer, factor: Integer) -> Integer:
    """Sum the digit ``t // size % factor`` over ``t = 0 … n_bins - 1``, for numbers or arrays of them."""
    periods, rest = n_bins // (size * factor), n_bins % (size * factor)
    last, within = rest // size, rest % size
    total: Integer = size * (periods * (factor * (factor - 1) // 2) + last * (last - 1) // 2) + last * within
    return total


def _level_variances(branching: Sequence[int], variances: npt.ArrayLike) -> list[float]:
    """Check that there is one variance per level."""
    noise = real_numbers("variances", variances, hint="one for each level below the root.")
    if noise.shape != (len(branching),):
        raise ArgumentError(
            "variances",
            f"must be {len(branching)} numbers, one for each level below the root, "
            f"not {quote(noise.tolist())}.",
            hint="pass the variance of the total as total_variance.",
        )
    return [_checked_variance("variances", variance) for variance in noise.tolist()]


def _checked_variance(name: str, variance: float) -> float:
    """Check that a variance is finite and not negative."""
    return number_between(name, variance, 0, math.inf, example=8.0)
