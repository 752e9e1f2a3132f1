"""The least error of cumulative sums that any weighted sums with Gaussian noise allow."""

from __future__ import annotations

import math

import numpy as np

from pandas_dptree.mechanisms.arguments import whole_number

__all__ = ["cumulative_lower_bound"]


def cumulative_lower_bound(n_bins: int, noise_variance: float = 1.0, *, total_known: bool = False) -> float:
    r"""Bound the root mean variance of cumulative sums from below, for any linear measurements.

    Parameters
    ----------
    n_bins : int
        Number K of bins.
    noise_variance : float, default 1.0
        Variance of the Gaussian noise that a histogram of the bins would get with the whole budget:
        :math:`1/2\rho` with add/remove neighbours, :math:`1/\rho` with replace neighbours.
    total_known : bool, default False
        Whether the number of rows is public, as it is with replace neighbours.

    Returns
    -------
    float
        In counts.

    Raises
    ------
    ArgumentError
        If `n_bins` is not an integer from 1 to 2**53.

    Notes
    -----
    Let L be the K × K matrix of cumulative sums and :math:`L = B A` any factorization. If the measurements
    :math:`A x` have independent Gaussian noise, and no column of A is longer than 1, so that the noise has
    variance v, the cumulative sums have the variances :math:`v \sum_i B_{ti}^2`, and

    .. math:: \Bigl(\sum_j \sigma_j(L)\Bigr)^2 = \|B A\|_*^2 \le \|B\|_F^2 \|A\|_F^2 \le K\,\|B\|_F^2:

    the singular value bound (Li and Miklau, "Optimal error of query sets under the differentially-private
    matrix mechanism", 2013). Up to a constant it also bounds the error of any mechanism that adds noise
    (Edmonds, Nikolov and Ullman, "The power of factorization mechanisms in local and central differential
    privacy", 2020). The inverse of L takes differences, so the inverse of :math:`L^\top L` is the second
    difference with one free end, and

    .. math:: \sigma_j = \frac{1}{2 \sin\frac{(2j - 1)\pi}{4K + 2}}, \qquad j = 1 … K.

    If the total is public, only the part of L orthogonal to it must be estimated: the second difference with
    both ends fixed, :math:`\sigma_j = 1 / (2 \sin\frac{j\pi}{2K})` for j = 1 … K − 1. If all columns of A
    are at most :math:`\sqrt 2` apart, as those of a histogram are, their squared distances from their mean
    add up to at most K − 1, which replaces K above.

    Examples
    --------
    >>> round(cumulative_lower_bound(256), 2), round(cumulative_lower_bound(256, total_known=True), 2)
    (2.47, 2.03)
    """
    bins = whole_number("n_bins", n_bins, at_least=1, at_most=2**53, hint="for example 256.")
    if total_known:
        angles = np.arange(1, bins) * (math.pi / (2 * bins))
        squared_norm_bound = bins * max(bins - 1, 1)
    else:
        angles = np.arange(1, 2 * bins, 2) * (math.pi / (4 * bins + 2))
        squared_norm_bound = bins**2
    return float((0.5 / np.sin(angles)).sum() * math.sqrt(noise_variance / squared_norm_bound))
