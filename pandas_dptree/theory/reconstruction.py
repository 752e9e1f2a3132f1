"""Cumulative counts from the noisy counts of a level-uniform tree.

The leaves of the tree are the bins, in order. Cumulative sum :math:`t` counts the bins 1 … t. All cumulative
sums are computed together, one level at a time from the root. In every function a level's noise variances are
a number, or one per node; the root's is 0 if the total is known and ``inf`` if it was not measured. The
noises are independent.

**Privacy**: post-processing of noisy numbers and the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.estimation.least_squares import (
    FloatArray,
    Measurements,
    least_squares,
    propagate,
    subtree_estimates,
)
from pandas_dptree.hierarchy.tree import Tree

__all__ = [
    "CoverWeights",
    "average_covers",
    "average_covers_variances",
    "branching_of",
    "check_levels",
    "checked_noise",
    "every_node",
    "least_squares_sums",
    "left_cover",
    "left_cover_variances",
]

Values = npt.NDArray[Any]
CoverWeights = Literal["precision", "equal"]


def left_cover(tree: Tree, values: Sequence[Values | None]) -> Values:
    """Sum level values over the left cover of every cumulative sum: the fewest nodes that make it up.

    For the sum that ends before leaf `t`, these are the preceding siblings of the nodes on the path from
    the root to leaf `t` (Rameshwar, Tandon & Sharma, "Optimal tree-based mechanisms for differentially
    private approximate CDFs", 2024, Lemma IV.1); for the whole range it is the root.

    Parameters
    ----------
    tree : Tree
        Level-uniform: all nodes of a level have equally many children.
    values : sequence of numpy.ndarray or None
        For each level, one value per node; None for a root that was not measured, which is then replaced by
        the sum of its children.

    Returns
    -------
    numpy.ndarray, shape (n_leaves,)
        Sums over the bins 1 … t for t = 1 … n_leaves. Integers stay integers.

    Examples
    --------
    >>> tree = Tree.from_branching([2, 2])
    >>> left_cover(tree, [np.array([100]), np.array([60, 40]), np.array([10, 20, 30, 40])])
    array([ 10,  60,  90, 100])
    """
    check_levels(tree, "values", values)
    before = np.zeros(1, dtype=np.asarray(values[-1]).dtype)
    for level, branching in enumerate(branching_of(tree)):
        children = np.reshape(np.asarray(values[level + 1]), (-1, branching))
        preceding = np.zeros_like(children)
        np.cumsum(children[:, :-1], axis=1, out=preceding[:, 1:])
        before = (before[:, None] + preceding).ravel()
    total = values[0] if values[0] is not None else np.sum(np.asarray(values[1]), keepdims=True)
    return np.append(before[1:], np.asarray(total))


def left_cover_variances(tree: Tree, noise_variances: Sequence[npt.ArrayLike]) -> FloatArray:
    r"""Compute the variance of every cumulative sum of `left_cover`.

    With a known total, level variances :math:`v_l` and branching :math:`n_1, …, n_m`, their mean over the
    cumulative sums is :math:`\sum_l v_l (n_l - 1) / 2` (Theorem IV.1 for any level variances).

    Parameters
    ----------
    tree, noise_variances : Tree, sequence of array_like
        Level-uniform, and the variance of the measurements of each level.

    Examples
    --------
    >>> left_cover_variances(Tree.from_branching([2, 2]), [0.0, 3.0, 5.0])
    array([5., 3., 8., 0.])
    """
    noise = every_node(tree, checked_noise(tree, noise_variances))
    return left_cover(tree, [None if np.isinf(noise[0][0]) else noise[0], *noise[1:]])


def average_covers(
    tree: Tree,
    measurements: Measurements,
    noise_variances: Sequence[npt.ArrayLike],
    *,
    weights: CoverWeights = "precision",
) -> FloatArray:
    r"""Estimate every cumulative sum from both sides: its cover, and the total minus the cover of the rest.

    First every node is averaged with what is below it, which leaves variances :math:`V_l`; with equal noise
    :math:`v` and branching :math:`b` on m levels, :math:`V_l = v / \sum_{j=0}^{m-l} b^{-j}` (Rameshwar,
    Tandon & Sharma, 2024, Proposition B.1). The nodes left and right of the end of a cumulative sum share no
    measurement, so its two estimates are independent. They are averaged.

    Parameters
    ----------
    tree, noise_variances
        As for `left_cover_variances`.
    measurements : sequence of numpy.ndarray or None
        For each level, the noisy counts of its nodes; None for a root that was not measured.
    weights : {"precision", "equal"}
        Of the two estimates: in proportion to their precisions, which is best, or one half each, as in the
        paper's Appendix B.

    Examples
    --------
    >>> tree, noise = Tree.from_branching([2, 2]), [0.0, 1.0, 1.0]
    >>> noisy = [np.array([100]), np.array([60, 42]), np.array([10, 20, 30, 40])]
    >>> average_covers(tree, noisy, noise).round(3).tolist()
    [17.0, 49.333, 67.5, 100.0]
    """
    noise = checked_noise(tree, noise_variances)
    weight, _ = _cover_weights(tree, noise, weights)
    estimates, _ = subtree_estimates(tree, measurements, propagate(tree, noise))
    left, rest = left_cover(tree, estimates), _right_cover(tree, estimates)
    if measurements[0] is None:
        return left
    return np.asarray(left + weight * (measurements[0] - rest - left))


def average_covers_variances(
    tree: Tree, noise_variances: Sequence[npt.ArrayLike], *, weights: CoverWeights = "precision"
) -> FloatArray:
    r"""Compute the variance of every cumulative sum of `average_covers`.

    With a known total and equal weights, their mean over the cumulative sums is :math:`\sum_l V_l (n_l - 1) /
    4` (Lemma IV.4 for any level variances and branching); with weights by precision it is at most that.

    Parameters
    ----------
    tree, noise_variances, weights
        As for `average_covers`.

    Examples
    --------
    >>> average_covers_variances(Tree.from_branching([2]), [0.0, 1.0]).tolist()
    [0.5, 0.0]
    """
    return _cover_weights(tree, checked_noise(tree, noise_variances), weights)[1]


def least_squares_sums(
    tree: Tree, measurements: Measurements, noise_variances: Sequence[npt.ArrayLike]
) -> FloatArray:
    """Estimate every cumulative sum from all measurements together: unbiased, with the least variance.

    Parameters
    ----------
    tree, measurements, noise_variances
        As for `average_covers`.

    Examples
    --------
    >>> tree, noise = Tree.from_branching([2, 2]), [0.0, 1.0, 1.0]
    >>> noisy = [np.array([100]), np.array([60, 42]), np.array([10, 20, 30, 40])]
    >>> least_squares_sums(tree, noisy, noise).round(3).tolist()
    [19.667, 49.333, 69.667, 100.0]
    """
    variances = propagate(tree, checked_noise(tree, noise_variances))
    return left_cover(tree, least_squares(tree, measurements, variances))


def _right_cover(tree: Tree, values: Sequence[Values]) -> Values:
    """Sum level values over the cover of what follows each leaf: the mirror image of `left_cover`."""
    return np.append(left_cover(tree, [level[::-1] for level in values])[-2::-1], 0)


def _cover_weights(
    tree: Tree, noise: Sequence[FloatArray], weights: CoverWeights
) -> tuple[FloatArray, FloatArray]:
    """Compute the weight of the right estimate for each cumulative sum, and the variance of the average.

    The whole range has only one estimate: the root averaged with what is below it.
    """
    if weights not in get_args(CoverWeights):
        raise ArgumentError(
            "weights", f"must be 'precision' or 'equal', not {quote(weights)}.", hint='weights="precision".'
        )
    subtree = every_node(tree, propagate(tree, noise).subtree)
    left, right = left_cover(tree, subtree), noise[0] + _right_cover(tree, subtree)
    if weights == "precision":
        weight = np.divide(left, left + right, out=np.zeros_like(left), where=left > 0)
    elif np.isfinite(noise[0][0]):
        weight = np.full_like(left, 0.5)
    else:
        raise ArgumentError(
            "weights",
            "cannot be 'equal' if the total was not measured: there is no estimate from the right.",
            hint='use weights="precision".',
        )
    weight[-1] = 0.0
    right = np.where(weight > 0, right, 0.0)
    return weight, (1 - weight) ** 2 * left + weight**2 * right


def branching_of(tree: Tree) -> list[int]:
    """Return how many children the nodes of each level have; refuse a tree that is not level-uniform."""
    if not tree.is_uniform:
        raise ArgumentError(
            "tree",
            "is not level-uniform: nodes of one level have different numbers of children.",
            hint="make it with Tree.from_branching.",
        )
    return [int(counts[0]) for counts in tree.child_counts]


def check_levels(tree: Tree, argument: str, values: Sequence[Values | None]) -> None:
    """Check that there is one value per node; only a root above other levels may be missing."""
    fits = len(values) == tree.depth + 1 and all(
        np.shape(level) == (size,) if level is not None else depth == 0 < tree.depth
        for depth, (level, size) in enumerate(zip(values, tree.level_sizes, strict=False))
    )
    if not fits:
        raise ArgumentError(
            argument,
            f"must hold an array for each level, of lengths {tree.level_sizes}.",
            hint="only the root may be None.",
        )


def checked_noise(tree: Tree, noise_variances: Sequence[npt.ArrayLike]) -> list[FloatArray]:
    """Check variances, and return those of each level as an array of length one or one per node."""
    noise = [np.atleast_1d(np.asarray(level, dtype=np.float64)) for level in noise_variances]
    fits = len(noise) == tree.depth + 1 and np.isfinite(noise[-1]).all()
    if not fits or not all(
        level.shape in {(1,), (size,)} and (level >= 0).all()
        for level, size in zip(noise, tree.level_sizes, strict=True)
    ):
        raise ArgumentError(
            "noise_variances",
            f"must hold, for each of {tree.depth + 1} levels, a variance of at least 0 or one per node.",
            hint="use 0 for known counts and inf for unmeasured nodes; the leaves must be finite.",
        )
    return noise


def every_node(tree: Tree, levels: Sequence[FloatArray]) -> list[FloatArray]:
    """Broadcast level values to one per node."""
    return [np.broadcast_to(level, size) for level, size in zip(levels, tree.level_sizes, strict=True)]
