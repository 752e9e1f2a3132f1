r"""Errors of cumulative sums from level-uniform trees over bins, and the trees that are best in theory.

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
from pandas_dptree.mechanisms.arguments import number_between, real_numbers, whole_number
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = [
    "best_branching_factor",
    "histogram_error",
    "level_uses",
    "optimal_branching",
    "optimal_budgets",
    "optimal_real_tree",
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
    return (_checked_bins(n_bins) - 1) * noise + total


def histogram_error(n_bins: int, variance: float, *, total_variance: float = 0.0) -> float:
    r"""Compute the squared error of all cumulative sums of sums of noisy bins (Lemma III.2).

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
    return math.comb(_checked_bins(n_bins), 2) * noise + total


def tree_error(
    branching: Sequence[int],
    variances: npt.ArrayLike,
    *,
    n_bins: int | None = None,
    total_variance: float = 0.0,
) -> float:
    r"""Compute the squared error of all cumulative sums of sums of the fewest nodes (Theorem IV.1).

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
    r"""Compute the squared error of all cumulative sums of averaged left and right covers (Lemma IV.4).

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
    factors = _checked_branching(branching)
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

    Examples
    --------
    The cumulative sums of 6 bins but the last end at 01, 02, 10, 11, 12 in the radix of the tree; of 5 bins,
    at 01, 02, 10, 11:

    >>> level_uses([2, 3]), level_uses([2, 3], n_bins=5)
    ((3, 6), (2, 4))
    """
    factors = _checked_branching(branching)
    leaves = math.prod(factors)
    bins = leaves if n_bins is None else _checked_bins(n_bins)
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


def optimal_budgets(branching: Sequence[int], epsilon: float, *, n_bins: int | None = None) -> FloatArray:
    r"""Compute the Laplace budgets of the levels that minimize `tree_error` (Theorem IV.2).

    .. math:: \epsilon_i = \epsilon\,\frac{w_i^{1/3}}{\sum_j w_j^{1/3}}, \qquad\text{which is}\qquad
              \epsilon\,\frac{(n_i - 1)^{1/3}}{\sum_j (n_j - 1)^{1/3}} \quad\text{without padding.}

    This is for noise of variance :math:`c / \epsilon_i^2`, such as continuous Laplace noise. The error is
    then :math:`c\,(\sum_i w_i^{1/3})^3 / \epsilon^2`. The variance of discrete Laplace noise is smaller by at
    most 1/6, with c = 2 times the squared sensitivity.

    Parameters
    ----------
    branching, n_bins
        As for `tree_error`.
    epsilon : float
        Shared by the levels below the root.

    Returns
    -------
    numpy.ndarray, shape (len(branching),)
        Their sum is `epsilon`. A level gets 0 if no cumulative sum but the last uses it.

    Examples
    --------
    >>> optimal_budgets([9, 28], epsilon=1.0).round(9).tolist()
    [0.4, 0.6]
    """
    roots = np.cbrt(np.array(level_uses(branching, n_bins), dtype=np.float64))
    return np.asarray(_checked_epsilon(epsilon) * roots / (roots.sum() or 1.0))


def optimal_branching(budgets: npt.ArrayLike, n_bins: int) -> FloatArray:
    r"""Compute the real branching factors that minimize the error for given Laplace budgets (Theorem IV.2).

    .. math:: n_i = K^{1/m}\,\epsilon_i^2 \Bigm/ \Bigl(\prod_j \epsilon_j^2\Bigr)^{1/m}

    Parameters
    ----------
    budgets : array_like of float, shape (m,)
        The epsilon of each level, positive.
    n_bins : int
        K.

    Returns
    -------
    numpy.ndarray, shape (m,)
        Positive, with the product K. A factor below 2 belongs to no tree: its level has too little budget.

    Examples
    --------
    >>> optimal_branching([0.5, 0.5], 256).round(9).tolist()
    [16.0, 16.0]
    """
    shares = real_numbers("budgets", budgets, hint="for example budgets=[0.5, 0.5].")
    if shares.ndim != 1 or not shares.size or not (np.isfinite(shares) & (shares > 0)).all():
        raise ArgumentError(
            "budgets",
            f"must be a list of positive numbers, not {quote(shares.tolist())}.",
            hint="for example budgets=[0.5, 0.5]: the epsilon of each level below the root.",
        )
    logs = 2 * np.log(shares)
    return np.asarray(np.exp(logs - logs.mean() + math.log(_checked_bins(n_bins)) / len(shares)))


def optimal_real_tree(n_bins: int, height: int, *, epsilon: float = 1.0) -> tuple[float, float]:
    r"""Compute the best tree of a given height with real branching factors (Theorem IV.3, Lemma IV.2).

    All factors are :math:`\beta = K^{1/m}` and all budgets :math:`\epsilon / m`; the error is

    .. math:: \frac{4 K m^3}{\epsilon^2} (K^{1/m} - 1)
              = \frac{4 K (\log K)^3}{\epsilon^2} \cdot \frac{\beta - 1}{(\log\beta)^3}.

    The same tree minimises the larger expression with :math:`n_i` in place of :math:`n_i - 1`, for every K
    and m (Lemma IV.2); the error is between one half and all of that if all :math:`n_i \ge 2`.

    Parameters
    ----------
    n_bins : int
        K.
    height : int
        The number m of levels below the root.
    epsilon : float, default 1
        Shared by these levels.

    Returns
    -------
    factor, error : float
        The branching factor of every level and the squared error of all cumulative sums in squared counts,
        with a public total and continuous Laplace noise for replaced rows.

    Examples
    --------
    >>> optimal_real_tree(256, height=2)
    (16.0, 122880.0)
    """
    bins, levels = _checked_bins(n_bins), whole_number("height", height, at_least=1, hint="for example 2.")
    factor = bins ** (1 / levels)
    if factor < 3 and 3**levels > bins:
        raise ArgumentError(
            "height",
            f"is too large: {levels} levels for {bins} bins make branching factors below 3.",
            hint="choose a height of at most log(n_bins) / log(3), or use optimal_tree.",
        )
    return factor, 4 * bins * levels**3 * (factor - 1) / _checked_epsilon(epsilon) ** 2


def best_branching_factor() -> float:
    r"""Compute the real branching factor that is best for every number of bins, :math:`\beta^*` (Lemma IV.3).

    It minimises :math:`(\beta - 1) / (\log\beta)^3`, and solves :math:`\log\beta = 3 (\beta - 1) / \beta`.
    With :math:`u = -3 / \beta` this is :math:`u e^u = -3 e^{-3}`, so :math:`\beta^* = -3 / W(-3 e^{-3})`
    with Lambert's function W (whose other branch gives :math:`\beta = 1`).

    Examples
    --------
    >>> round(best_branching_factor(), 4)
    16.801

    The best integer is 17. (The paper has "roughly 16.79".)
    """
    from scipy.special import lambertw  # costs a tenth of a second to import

    return float(-3 / lambertw(-3 * math.exp(-3)).real)


def _checked_bins(n_bins: int) -> int:
    """Check that the number of bins is a positive integer."""
    return whole_number("n_bins", n_bins, at_least=1, hint="it is the number of bins, for example 256.")


def _checked_branching(branching: Sequence[int]) -> tuple[int, ...]:
    """Check that branching factors are integers of at least 2."""
    hint = "for example branching=[16, 16]: children of each node, from the root down."
    if not isinstance(branching, list | tuple | np.ndarray):
        raise ArgumentError(
            "branching", f"must be a list of whole numbers, not {quote(branching)}.", hint=hint
        )
    return tuple(
        whole_number("branching", factor, at_least=2, hint=hint, of=branching) for factor in branching
    )


def _checked_epsilon(epsilon: float) -> float:
    """Check that an epsilon is a positive number."""
    PrivacyLoss(epsilon=epsilon)
    return float(epsilon)


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
