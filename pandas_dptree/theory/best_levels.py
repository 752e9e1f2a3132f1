"""The budgets and branching factors of level-uniform trees that are best in theory, as real numbers.

Errors and sources are those of `pandas_dptree.theory.level_uniform`.

**Privacy**: functions of public parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.mechanisms.arguments import real_numbers, whole_number
from pandas_dptree.theory.checks import checked_bins, checked_epsilon
from pandas_dptree.theory.level_uniform import level_uses

__all__ = ["best_branching_factor", "optimal_branching", "optimal_budgets", "optimal_real_tree"]

FloatArray = npt.NDArray[np.float64]


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
    return np.asarray(checked_epsilon(epsilon) * roots / (roots.sum() or 1.0))


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
    return np.asarray(np.exp(logs - logs.mean() + math.log(checked_bins(n_bins)) / len(shares)))


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
    bins, levels = checked_bins(n_bins), whole_number("height", height, at_least=1, hint="for example 2.")
    factor = bins ** (1 / levels)
    if factor < 3 and 3**levels > bins:
        raise ArgumentError(
            "height",
            f"is too large: {levels} levels for {bins} bins make branching factors below 3.",
            hint="choose a height of at most log(n_bins) / log(3), or use optimal_tree.",
        )
    return factor, 4 * bins * levels**3 * (factor - 1) / checked_epsilon(epsilon) ** 2


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
