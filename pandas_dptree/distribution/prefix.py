r"""How far prefix sums and ranges of bins are off after least squares on a tree over the bins.

**Uniform trees.** If all nodes of a level are measured with one variance, the errors of the leaves fall apart
into the orthogonal detail spaces of `pandas_dptree.planning.closed_form`: what level k tells beyond the level
above. In space k every direction has the variance :math:`1/\lambda_k`, :math:`\lambda_k = \sum_{j \ge k} s_j
p_j`, with :math:`s_j` leaves below a node of level j and the precision :math:`p_j` of its measurement. The
means over the nodes of level k turn the indicator of the first t leaves into ones, one fraction
:math:`r/s_k` with :math:`r = t \bmod s_k`, and zeros. So its energy in the spaces up to k is

.. math:: E_k(t) = s_k \left( \left\lfloor t / s_k \right\rfloor + (r / s_k)^2 \right)
          = t - \frac{r\,(s_k - r)}{s_k},

and the variance of the prefix sum is :math:`\sum_k (E_k(t) - E_{k-1}(t)) / \lambda_k` with
:math:`E_{-1} = 0`.

**Any tree.** Least squares makes the errors a Markov tree: given the error F of a node, those of its children
are :math:`w_c F + \rho_c` with :math:`w_c = V_c / S`, :math:`S = \sum_c V_c` and residuals of covariance
:math:`\mathrm{diag}(V) - V V^\top / S` that are independent of F and of each other family's. V is the
variance of the estimate from a subtree alone. The error of the part of a prefix within a node is
:math:`a F + R`. If it ends in a child with variance V, before which there are children of variance A in all,
then one level up

.. math:: a' = \frac{A + a V}{S}, \qquad
          \mathrm{Var}(R') = \mathrm{Var}(R) + A + a^2 V - S a'^2,

from a = 1 and R = 0 at the leaf. The covariance of two prefixes within a node follows in the same way.

**Privacy**: all functions of the tree and the noise, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.estimation.least_squares import FloatArray, Variances, propagate
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = [
    "mean_prefix_energies",
    "mean_prefix_variance",
    "padded_prefix_variances",
    "prefix_energies",
    "prefix_variances",
    "range_variances",
    "uniform_prefix_variances",
]

Number = TypeVar("Number", np.float64, np.complex128)


def prefix_energies(branching: Sequence[int], n_bins: int | None = None) -> FloatArray:
    """Give the mean energy of the indicators of the prefixes in each detail space of a uniform tree.

    Parameters
    ----------
    branching : sequence of int
        Children per node, from the root down.
    n_bins : int, optional
        Number K of bins: the mean is over the prefixes of 1 … K leaves. By default all leaves. Those beyond
        are leaves like any other here: that they are known to be empty is not made use of.

    Returns
    -------
    numpy.ndarray, shape (n_levels,)
        With sum ``(K + 1) / 2``.

    Raises
    ------
    ArgumentError
        If there are no bins, or more than leaves.

    Examples
    --------
    >>> prefix_energies([2]).tolist()
    [1.25, 0.25]
    """
    leaves = _leaves_below(branching)
    bins = _checked_bins(leaves, n_bins)
    return mean_prefix_energies(leaves.astype(np.float64)[:, None], bins)[:, 0]


def mean_prefix_energies(leaves: FloatArray, n_bins: int) -> FloatArray:
    r"""Give the mean energies from the numbers of leaves below the nodes of each level.

    The mean of :math:`E_k(t) = t - r (s - r)/s` over t = 1 … K is :math:`(K + 1)/2` less a mean over
    the :math:`Q = \lfloor K/s \rfloor` whole nodes, each of which adds :math:`(s^2 - 1)/6`, and one with
    :math:`R = K \bmod s` leaves, which adds :math:`R (R + 1)(3s - 2R - 1) / 6s`.

    Parameters
    ----------
    leaves : numpy.ndarray, shape (n_levels, n_trees)
        Falling from level to level; 1 for the leaves.
    n_bins : int
        Number of bins, at most that of leaves.

    Returns
    -------
    numpy.ndarray, shape (n_levels, n_trees)

    Examples
    --------
    >>> mean_prefix_energies(np.array([[4.0], [2.0], [1.0]]), 4).ravel().tolist()
    [1.875, 0.375, 0.25]
    """
    whole, rest = n_bins // leaves, n_bins % leaves
    missed = whole * (leaves**2 - 1) / 6 + rest * (rest + 1) * (3 * leaves - 2 * rest - 1) / (6 * leaves)
    return np.diff((n_bins + 1) / 2 - missed / n_bins, axis=0, prepend=0.0)


def uniform_prefix_variances(
    branching: Sequence[int], variances: npt.ArrayLike, prefixes: npt.ArrayLike
) -> FloatArray:
    """Give the variances of single prefix sums after least squares on a uniform tree.

    Parameters
    ----------
    branching : sequence of int
        Children per node, from the root down.
    variances : array_like of float, shape (n_levels,)
        Variance of each level's noise, in squared counts: inf for a level that is not measured, 0 for one
        that is known. That of the leaves must be finite.
    prefixes : array_like of int
        How many bins t each prefix sums, from 0 to the number of leaves.

    Returns
    -------
    numpy.ndarray
        In squared counts, of the shape of `prefixes`. Every leaf counts as unknown.

    Raises
    ------
    ArgumentError
        If there is not one variance of at least 0 per level, or a prefix has too many bins.

    Examples
    --------
    A total measured together with its two parts.

    >>> uniform_prefix_variances([2], [1.0, 1.0], [1, 2]).round(6).tolist()
    [0.666667, 0.666667]
    """
    tree = Tree.from_branching(list(branching))
    noise = np.concatenate(_checked_variances(tree, list(np.asarray(variances, dtype=np.float64))))
    bins = np.asarray(prefixes, dtype=np.int64)
    _check_bins("prefixes", bins, tree.n_leaves)
    leaves = _leaves_below(branching)
    with np.errstate(divide="ignore"):
        spread = 1 / np.cumsum((leaves / noise)[::-1])[::-1]  # 1/lambda
    rest = bins % leaves[:, *(None,) * bins.ndim]
    energies = bins - rest * (1 - rest / leaves[:, *(None,) * bins.ndim])
    return np.tensordot(spread, np.diff(energies, axis=0, prepend=0.0), axes=1)


def prefix_variances(tree: Tree, node_variances: Sequence[npt.ArrayLike]) -> FloatArray:
    """Give the variance of every prefix sum of the leaves after least squares on any tree.

    Parameters
    ----------
    tree : Tree
    node_variances : sequence of array_like
        For each level the variance of its measurements, in squared counts: a number, or one per node. inf
        where nothing was measured, 0 where the count is known, as that of padding. Leaves must be finite.

    Returns
    -------
    numpy.ndarray, shape (n_leaves,)
        The variance of the sum of the first 1, 2, … leaves, in squared counts.

    Raises
    ------
    ArgumentError
        If there are not as many variances as nodes, or one of them is none.

    Notes
    -----
    Time is O(leaves · levels), in one vectorised step per level.

    Examples
    --------
    The total is known, and so is that the last of the three leaves is empty.

    >>> prefix_variances(Tree.from_branching([3]), [0.0, [1.0, 1.0, 0.0]]).tolist()
    [0.5, 0.0, 0.0]
    """
    variances = propagate(tree, _checked_variances(tree, node_variances))
    return _prefix_covariances(tree, variances, np.arange(tree.n_leaves)[None])


def range_variances(
    tree: Tree, node_variances: Sequence[npt.ArrayLike], starts: npt.ArrayLike, stops: npt.ArrayLike
) -> FloatArray:
    """Give the variances of sums over ranges of leaves after least squares on any tree.

    Parameters
    ----------
    tree : Tree
    node_variances : sequence of array_like
        As for `prefix_variances`.
    starts, stops : array_like of int, shape (n_ranges,)
        The range is ``starts <= leaf < stops``, leaves numbered from 0; it may be empty.

    Returns
    -------
    numpy.ndarray, shape (n_ranges,)
        In squared counts.

    Raises
    ------
    ArgumentError
        As `prefix_variances`; and if starts and stops are not in this order and among the leaves.

    Notes
    -----
    Time is O(nodes + ranges · levels), and O(ranges · levels) on a uniform tree with one variance per level.

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
        np.where(ends[rows[0]] > 0, _prefix_covariances(tree, variances, last[rows]), 0.0)
        for rows in ([0], [1], [0, 1])
    )
    # rounding may leave less than nothing
    return np.asarray(np.maximum(of_start + of_stop - 2 * of_both, 0.0))


def mean_prefix_variance(branching: Sequence[int], variances: npt.ArrayLike, n_bins: int) -> float:
    """Give the mean variance of the prefix sums of the first bins, the leaves beyond known to be empty.

    Parameters
    ----------
    branching : sequence of int
        Children per node, from the root down.
    variances : array_like of float, shape (n_levels,)
        Variance of each level's noise, in squared counts: inf for a level that is not measured, 0 for one
        that is known. That of the leaves must be finite.
    n_bins : int
        Number K of bins, from 1 to the number of leaves.

    Returns
    -------
    float
        Mean over t = 1 … K, in squared counts: that of `prefix_variances` of the padded tree.

    Raises
    ------
    ArgumentError
        If there is not one variance of at least 0 per level, or no bin, or more than leaves.

    Notes
    -----
    Time and memory are O(levels).

    Examples
    --------
    >>> mean_prefix_variance([3], [0.0, 1.0], 2)
    0.25
    """
    tree = Tree.from_branching(list(branching))
    noise = np.concatenate(_checked_variances(tree, list(np.asarray(variances, dtype=np.float64))))
    leaves = _leaves_below(branching)
    bins = _checked_bins(leaves, n_bins)
    with np.errstate(divide="ignore"):
        return float(padded_prefix_variances(leaves.astype(np.float64)[:, None], 1 / noise[:, None], bins)[0])


def padded_prefix_variances(
    leaves: FloatArray, precisions: npt.NDArray[Number], n_bins: int, *, total_known: bool = False
) -> npt.NDArray[Number]:
    """Give the mean variances of the prefix sums on several padded trees of one depth side by side.

    At most one node of each level has both bins and padding: it is cut. All others that have bins are whole
    and alike, so that sums over them are polynomials of how many there are.

    Parameters
    ----------
    leaves : numpy.ndarray, shape (n_levels, n_trees)
        Number of leaves below a node of each level, padding included.
    precisions : numpy.ndarray of float or complex, shape (n_levels, n_trees)
        One over the noise variance of each level. Nothing but sums, products and quotients is taken, so
        that complex numbers differentiate.
    n_bins : int
        Number of bins, at most that of leaves; the last ones are known to be empty.
    total_known : bool, default False
        Whether the root's count is public, whatever its precision.

    Returns
    -------
    numpy.ndarray, shape (n_trees,)
    """
    nothing = _Kind(*np.zeros((5, *precisions.shape[1:]), dtype=precisions.dtype))
    one = np.ones_like(nothing.leaves)
    whole, cut = _Kind(one, 1 / precisions[-1], one, one, nothing.leaves), nothing
    for above, below, precision in zip(leaves[-2::-1], leaves[:0:-1], precisions[-2::-1], strict=True):
        cut = _parent(n_bins % above // below, whole, cut, precision)
        whole = _parent(above / below, whole, nothing, precision)
    is_cut = n_bins < leaves[0]
    squares, residuals, variance = (
        np.where(is_cut, getattr(cut, name), getattr(whole, name))
        for name in ("squares", "residuals", "variance")
    )
    return np.asarray((residuals + (0.0 if total_known else squares * variance)) / n_bins)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of nodes: sums over the leaves below one, for several trees side by side.

    Attributes
    ----------
    leaves : numpy.ndarray, shape (n_trees,)
        How many bins there are; 0 for no node at all.
    variance : numpy.ndarray, shape (n_trees,)
        That of the estimate from the subtree alone.
    factors, squares, residuals : numpy.ndarray, shape (n_trees,)
        Sums of a, a² and Var(R) over the prefixes that end in the subtree; see the head of the module.
    """

    leaves: npt.NDArray[Any]
    variance: npt.NDArray[Any]
    factors: npt.NDArray[Any]
    squares: npt.NDArray[Any]
    residuals: npt.NDArray[Any]


def _parent(n_whole: FloatArray, whole: _Kind, cut: _Kind, precision: npt.NDArray[Any]) -> _Kind:
    """Put together the node above some whole children, alike, and a cut one that stands last."""
    has_cut = cut.leaves.real > 0
    before_cut = n_whole * whole.variance
    total = before_cut + cut.variance
    # The children before the i-th have the variance A = i V in all: sums of 1, A and A squared over i.
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
    known = ~(total.real > 0)  # or there is no such node
    total = np.where(known, 1.0, total)
    return _Kind(
        leaves,
        np.where(known, 0.0, 1 / (precision + 1 / total)),
        factors / total,
        squares / total**2,
        residuals - squares / total,
    )


def _prefix_covariances(tree: Tree, variances: Variances, last: IntArray) -> FloatArray:
    """Give the covariance of the errors of two prefix sums.

    Parameters
    ----------
    tree : Tree
    variances : Variances
        From `propagate`.
    last : numpy.ndarray of int64, shape (1, n) or (2, n)
        The last leaf of the shorter prefix, and of the longer one; a single row stands for both.

    Returns
    -------
    numpy.ndarray, shape (n,)
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
    """Give the parent of each node below a level, and that parent's first child."""
    counts = tree.child_counts[level]
    if len(counts) == 1:
        parents = children // counts[0]
        return parents, parents * counts[0]
    parents = np.repeat(np.arange(len(counts)), counts)[children]
    return parents, (np.cumsum(counts) - counts)[parents]


def _leaves_below(branching: Sequence[int]) -> IntArray:
    """Count the leaves below a node of each level."""
    return np.cumprod([1, *list(branching)[::-1]], dtype=np.int64)[::-1]


def _checked_bins(leaves: IntArray, n_bins: int | None) -> int:
    """Check how many leaves are bins."""
    bins = int(leaves[0]) if n_bins is None else n_bins
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or not 1 <= bins <= leaves[0]:
        raise ArgumentError(
            "n_bins",
            f"must be a whole number from 1 to {leaves[0]}, the number of leaves, not {quote(n_bins)}.",
            hint="take a tree with at least one leaf for each bin.",
        )
    return int(bins)


def _check_bins(argument: str, bins: IntArray, n_leaves: int) -> None:
    """Check numbers of bins."""
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
            "those of the leaves are finite.",
            hint="inf above the leaves where nothing was measured, and 0 where the count is known.",
        )
    return levels
