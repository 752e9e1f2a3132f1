r"""Variances of cumulative sums and ranges of bins after least squares on a tree over the bins.

**Uniform trees.** If all nodes of a level are measured with one variance, the errors of the leaves decompose
into the orthogonal detail spaces of `pandas_dptree.planning.closed_form`, one for each level: what level k
adds to the level above. In space k every direction has the variance :math:`1/\lambda_k`,
:math:`\lambda_k = \sum_{j \ge k} s_j p_j`, with :math:`s_j` leaves below a node of level j and the precision
:math:`p_j` of its measurement. Averaging the indicator of the first t leaves over each node of level k
gives ones, one fraction :math:`r/s_k` with :math:`r = t \bmod s_k`, and zeros. So its energy in the spaces
up to k is

.. math:: E_k(t) = s_k \left( \left\lfloor t / s_k \right\rfloor + (r / s_k)^2 \right)
          = t - \frac{r\,(s_k - r)}{s_k},

and the variance of the cumulative sum is :math:`\sum_k (E_k(t) - E_{k-1}(t)) / \lambda_k` with
:math:`E_{-1} = 0`.

**Any tree.** Least squares makes the errors a Markov tree: given the error F of a node, those of its children
are :math:`w_c F + \rho_c` with :math:`w_c = V_c / S`, :math:`S = \sum_c V_c` and residuals of covariance
:math:`\mathrm{diag}(V) - V V^\top / S` that are independent of F and of each other family's. V is the
variance of the estimate from a subtree alone. The error of the part of a cumulative sum within a node is
:math:`a F + R`. If it ends in a child with variance V, and the children before that one have variance A
together, then one level up

.. math:: a' = \frac{A + a V}{S}, \qquad
          \mathrm{Var}(R') = \mathrm{Var}(R) + A + a^2 V - S a'^2,

starting with a = 1 and R = 0 at the leaf. The covariance of two such sums within a node follows similarly.

**Privacy**: all functions depend on the tree and the noise alone, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import FloatArray, Variances, propagate
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["cumulative_variances", "mean_energies", "padded_variances", "range_variances"]

Number = TypeVar("Number", np.float64, np.complex128)


def mean_energies(leaves: FloatArray, n_bins: int) -> FloatArray:
    r"""Compute mean energies from the numbers of leaves below a node, both of shape (n_levels, n_trees).

    The mean of :math:`E_k(t) = t - r (s - r)/s` over t = 1 … K is :math:`(K + 1)/2` minus a mean over
    the :math:`Q = \lfloor K/s \rfloor` whole nodes, each of which adds :math:`(s^2 - 1)/6`, and one with
    :math:`R = K \bmod s` leaves, which adds :math:`R (R + 1)(3s - 2R - 1) / 6s`.
    """
    whole, rest = n_bins // leaves, n_bins % leaves
    missed = whole * (leaves**2 - 1) / 6 + rest * (rest + 1) * (3 * leaves - 2 * rest - 1) / (6 * leaves)
    return np.diff((n_bins + 1) / 2 - missed / n_bins, axis=0, prepend=0.0)


def cumulative_variances(tree: Tree, node_variances: Sequence[npt.ArrayLike]) -> FloatArray:
    """Compute the variance of every cumulative sum of the leaves after least squares on any tree.

    Takes O(leaves · levels) time, in one vectorised step per level.

    Parameters
    ----------
    tree : Tree
    node_variances : sequence of array_like
        For each level the variance of its measurements, in squared counts: a number, or one per node. inf
        where nothing was measured, 0 where the count is known, as for padding. Leaves must be finite.

    Returns
    -------
    numpy.ndarray, shape (n_leaves,)
        The variance of the sum of the first 1, 2, … leaves, in squared counts.

    Raises
    ------
    ArgumentError
        If the number of variances does not fit the tree, or one of them is negative.

    Examples
    --------
    The total is known, and the last of the three leaves is known to be empty.

    >>> cumulative_variances(Tree.from_branching([3]), [0.0, [1.0, 1.0, 0.0]]).tolist()
    [0.5, 0.0, 0.0]
    """
    variances = propagate(tree, _checked_variances(tree, node_variances))
    return _covariances(tree, variances, np.arange(tree.n_leaves)[None])


def range_variances(
    tree: Tree, node_variances: Sequence[npt.ArrayLike], starts: npt.ArrayLike, stops: npt.ArrayLike
) -> FloatArray:
    """Compute the variances of sums over ranges of leaves after least squares on any tree.

    Takes O(nodes + ranges · levels) time, and O(ranges · levels) on a uniform tree with one variance per
    level.

    Parameters
    ----------
    tree : Tree
    node_variances : sequence of array_like
        As for `cumulative_variances`.
    starts, stops : array_like of int, shape (n_ranges,)
        The range is ``starts <= leaf < stops``, leaves numbered from 0; it may be empty.

    Returns
    -------
    numpy.ndarray, shape (n_ranges,)
        In squared counts.

    Raises
    ------
    ArgumentError
        As `cumulative_variances`; and if a start is above its stop, or either is not among the leaves.

    Examples
    --------
    >>> tree, noise = Tree.from_branching([2, 2]), [np.inf, 1.0, 1.0]
    >>> range_variances(tree, noise, [0, 1, 0], [1, 3, 4]).round(6).tolist()
    [0.666667, 1.333333, 1.333333]
    """
    ends = np.stack([np.asarray(starts, dtype=np.int64), np.asarray(stops, dtype=np.int64)])
    _check_bins("starts", ends[0], tree.n_leaves)
    _check_bins("stops", ends[1], tree.n_leaves)
    if (ends[0] > ends[1]).any():
        raise ArgumentError("starts", "must not be above `stops`.", hint="a range is start <= leaf < stop.")
    variances = propagate(tree, _checked_variances(tree, node_variances))
    last = np.maximum(ends - 1, 0)
    of_start, of_stop, of_both = (
        np.where(ends[rows[0]] > 0, _covariances(tree, variances, last[rows]), 0.0)
        for rows in ([0], [1], [0, 1])
    )
    # rounding may make it negative
    return np.asarray(np.maximum(of_start + of_stop - 2 * of_both, 0.0))


def padded_variances(
    leaves: FloatArray, precisions: npt.NDArray[Number], n_bins: int, *, total_known: bool = False
) -> npt.NDArray[Number]:
    """Compute the mean variances of cumulative sums on several padded trees of one depth, shape (n_trees,).

    `leaves` (below a node of each level, padding included) and `precisions` (one over the noise variance)
    have shape (n_levels, n_trees). Leaves beyond the bins are known to be empty; the root's count is known if
    `total_known`. At most one node of each level has both bins and padding, and the others with bins are
    equal, so sums over them are polynomials of their number. Derivatives can be taken by complex steps.
    """
    absent = _Kind(*np.zeros((5, *precisions.shape[1:]), dtype=precisions.dtype))
    one = np.ones_like(absent.leaves)
    whole, cut = _Kind(one, 1 / precisions[-1], one, one, absent.leaves), absent
    for above, below, precision in zip(leaves[-2::-1], leaves[:0:-1], precisions[-2::-1], strict=True):
        cut = _parent(n_bins % above // below, whole, cut, precision)
        whole = _parent(above / below, whole, absent, precision)
    is_cut = n_bins < leaves[0]
    squares, residuals, variance = (
        np.where(is_cut, getattr(cut, name), getattr(whole, name))
        for name in ("squares", "residuals", "variance")
    )
    return np.asarray((residuals + (0.0 if total_known else squares * variance)) / n_bins)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of nodes, by sums over the leaves below one, each of shape (n_trees,); see the module docstring.

    `leaves` is 0 for a node that does not exist, `variance` that of the estimate from the subtree; `factors`,
    `squares` and `residuals` are sums of a, a² and Var(R) over the cumulative sums that end in it.
    """

    leaves: npt.NDArray[Any]
    variance: npt.NDArray[Any]
    factors: npt.NDArray[Any]
    squares: npt.NDArray[Any]
    residuals: npt.NDArray[Any]


def _parent(n_whole: FloatArray, whole: _Kind, cut: _Kind, precision: npt.NDArray[Any]) -> _Kind:
    """Combine several equal whole children, and a cut one after them, into their parent."""
    has_cut = cut.leaves.real > 0
    before_cut = n_whole * whole.variance
    total = before_cut + cut.variance
    # The i children before a child have the total variance A = i V: sums of 1, A and A squared over i.
    ones = (n_whole, has_cut)
    before = (n_whole * (n_whole - 1) / 2 * whole.variance, has_cut * before_cut)
    squared = (
        n_whole * (n_whole - 1) * (2 * n_whole - 1) / 6 * whole.variance**2,
        has_cut * before_cut**2,
    )
    leaves = factors = squares = residuals = np.zeros_like(total)
    for child, n, a, a2 in zip((whole, cut), ones, before, squared, strict=True):
        leaves = leaves + n * child.leaves
        factors = factors + a * child.leaves + n * child.variance * child.factors
        squares = squares + a2 * child.leaves + 2 * a * child.variance * child.factors
        squares = squares + n * child.variance**2 * child.squares
        residuals = residuals + a * child.leaves + n * (child.variance * child.squares + child.residuals)
    known = ~(total.real > 0)  # or the node does not exist
    total = np.where(known, 1.0, total)
    return _Kind(
        leaves,
        np.where(known, 0.0, 1 / (precision + 1 / total)),
        factors / total,
        squares / total**2,
        residuals - squares / total,
    )


def _covariances(tree: Tree, variances: Variances, last: IntArray) -> FloatArray:
    """Compute the covariances of the errors of two cumulative sums, shape (n,).

    `last` has the last leaf of the shorter sum and of the longer one, shape (2, n); or one row for both.
    """
    node, factor, covariance = last, np.ones(last.shape), np.zeros(last.shape[1])
    for level in reversed(range(tree.depth)):
        parent, first_child = _parents(tree, level, node)
        own, family = variances.subtree[level + 1], variances.children[level]
        if len(own) == 1:
            before = (node - first_child) * own
        else:
            sums = np.concatenate([[0.0], np.cumsum(own)])
            before, own = sums[node] - sums[first_child], own[node]
        family = np.broadcast_to(family, tree.level_sizes[level])[parent]
        up = np.divide(before + factor * own, family, out=np.zeros_like(factor), where=family > 0)
        (up_short, up_long), own, family = up[[0, -1]], np.broadcast_to(own, up.shape)[0], family[0]
        same = covariance + before[0] + factor[0] * factor[-1] * own - family * up_short * up_long
        siblings = np.where(parent[0] == parent[-1], family * up_short * (1 - up_long), 0.0)
        covariance = np.where(node[0] == node[-1], same, siblings)
        node, factor = parent, up
    return np.asarray(covariance + factor[0] * factor[-1] * variances.final[0][0])


def _parents(tree: Tree, level: int, children: IntArray) -> tuple[IntArray, IntArray]:
    """Find the parent of each node below a level, and that parent's first child."""
    counts = tree.child_counts[level]
    if len(counts) == 1:
        parents = children // counts[0]
        return parents, parents * counts[0]
    parents = np.repeat(np.arange(len(counts)), counts)[children]
    return parents, (np.cumsum(counts) - counts)[parents]


def _check_bins(argument: str, bins: IntArray, n_leaves: int) -> None:
    """Check that bins are among the leaves."""
    if bins.size and not (bins.min() >= 0 and bins.max() <= n_leaves):
        raise ArgumentError(
            argument,
            f"must be from 0 to {n_leaves}, the number of leaves.",
            hint="bins are numbered from 0, and a stop is one past the last.",
        )


def _checked_variances(tree: Tree, node_variances: Sequence[npt.ArrayLike]) -> list[FloatArray]:
    """Check that there is one variance per level or node."""
    levels = [np.atleast_1d(np.asarray(level, dtype=np.float64)) for level in node_variances]
    shapes_fit = len(levels) == tree.depth + 1 and all(
        level.shape in {(1,), (size,)} for level, size in zip(levels, tree.level_sizes, strict=True)
    )
    if not shapes_fit or not all((level >= 0).all() for level in levels) or not np.isfinite(levels[-1]).all():
        raise ArgumentError(
            "variances",
            f"must hold, for each of {tree.depth + 1} levels, a number of at least 0 or one per node; "
            "those of the leaves must be finite.",
            hint="use inf for unmeasured nodes above the leaves, and 0 for known counts.",
        )
    return levels
