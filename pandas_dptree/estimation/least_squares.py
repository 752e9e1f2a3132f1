r"""Generalised least squares on a tree, exactly, in two passes over its levels.

A measurement :math:`y_v` of a node's count has variance :math:`v_v`. The best linear unbiased estimate from
all measurements at once follows from inverse-variance averaging: going up, a node's own measurement is
averaged with the sum of its children's estimates; going down, the excess or deficit of a family is divided in
proportion to its members' variances (Hay, Rastogi, Miklau & Suciu, PVLDB 3(1), 2010, for equal variances on a
regular tree; here for any variances on any tree).

Counts of distinct units do not add up: a unit in several children of a node is counted once in the node, and
once in each of them. The excess :math:`E_v = \sum_c D_c - D_v` can be measured too, and :math:`-E_v` is one
more child of the node, a leaf, with which its family adds up. All that is said of trees holds for this one.

Everything here is a function of noisy numbers and of the tree: post-processing, free of privacy cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree

__all__ = [
    "LEAST_VARIANCE",
    "ROUNDING",
    "FloatArray",
    "Measurements",
    "Variances",
    "check_measurements",
    "independent_nodes",
    "least_squares",
    "propagate",
    "subtree_estimates",
]

FloatArray = npt.NDArray[np.float64]
Measurements = Sequence[npt.NDArray[np.int64] | FloatArray | None]

LEAST_VARIANCE = 1e-30
"""Replaces a noise variance that is 0 in floating point, so that averages are defined.

Noise of a scale of 0.1 or more has a variance of at least 1e-22; and the inverse of this can be squared.
"""

ROUNDING = 1e-9
"""Known values agree if their relative difference is below this: sums of floats are not exact."""


@dataclass(frozen=True, slots=True)
class Variances:
    """Variances of the two passes, folded where nodes agree: of a measurement, of subtrees, of the estimates.

    `noise` is inf where there is no measurement, 0 where the value is known; `own` its weight in the estimate
    from the subtree, of the variance `subtree`; `children` that of the sum of the children's subtree
    estimates; `final` that of the least-squares estimate.

    `excess` is that of the measured excess of the children's sum over the node, for every level but the last:
    inf where it is not measured, 0 where there is none. Without any, the tree is additive.
    """

    noise: tuple[FloatArray, ...]
    own: tuple[FloatArray, ...]
    subtree: tuple[FloatArray, ...]
    children: tuple[FloatArray, ...]
    final: tuple[FloatArray, ...]
    excess: tuple[FloatArray, ...] = ()


def propagate(
    tree: Tree, noise_variances: Sequence[npt.ArrayLike], excess: Sequence[npt.ArrayLike] | None = None
) -> Variances:
    r"""Carry the variances of the measurements through the two passes.

    With :math:`V_S = \sum_c V_c` over the children of a node measured with variance :math:`v`,

    .. math::
        V = \frac{v\,V_S}{v + V_S}, \qquad
        \mathrm{Var}(x_c) = V_c + (V_c / V_S)^2\,(\mathrm{Var}(x_{parent}) - V_S),

    starting from :math:`V = v` at the leaves and :math:`\mathrm{Var}(x) = V` at the root. The variance is inf
    where nothing was measured, 0 where the value is known; leaves must be finite.

    The variances of measurements of the `excess` of each node, for every level but the last, make the counts
    those of distinct units: each is one more term of :math:`V_S`, which is inf where it was not measured. The
    children then say nothing about the node, nor the node about them. A single child has no excess, whatever
    was measured. Every node must be measured, or have a measured excess above nodes for which this holds.
    """
    noise = [np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in noise_variances]
    beyond = None if excess is None else _excess_variances(tree, excess)
    own, subtree, children = [np.ones(1)], [noise[-1]], []
    for level in reversed(range(tree.depth)):
        below = tree.sum_children(level, subtree[-1])
        if beyond is not None:
            below = below + beyond[level]
        weight, variance = _average(noise[level], below)
        own.append(weight)
        subtree.append(variance)
        children.append(below)
    own, subtree, children = own[::-1], subtree[::-1], children[::-1]
    if beyond is not None:
        _check_measured(subtree)
    final = [subtree[0]]
    for level in range(tree.depth):
        ratio = _ratio(subtree[level + 1], tree.spread(level, children[level]))
        gained = final[level] - children[level]
        if beyond is not None:
            gained = np.where(np.isfinite(children[level]), gained, 0.0)
        final.append(subtree[level + 1] + ratio**2 * tree.spread(level, gained))
    return Variances(*map(tuple, (noise, own, subtree, children, final, beyond or ())))


def _excess_variances(tree: Tree, given: Sequence[npt.ArrayLike]) -> list[FloatArray]:
    """Return the variances of the excess of each node: 0 where a single child leaves none."""
    variances = [np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in given]
    shapes = [{(1,), (size,)} for size in tree.level_sizes[:-1]]
    if len(variances) != tree.depth or not all(
        v.shape in fits and (v >= 0).all() for v, fits in zip(variances, shapes, strict=True)
    ):
        raise ArgumentError(
            "excess",
            f"must hold variances of at least 0 for each of the {tree.depth} level(s) above the leaves, one "
            "for the level or one for each of its nodes.",
            hint="inf stands for an excess that was not measured.",
        )
    return [
        np.where(counts == 1, 0.0, v) if (counts == 1).any() else v
        for counts, v in zip(tree.child_counts, variances, strict=True)
    ]


def _check_measured(subtree: Sequence[FloatArray]) -> None:
    """Refuse nodes without an estimate from their own subtree."""
    for level, variance in enumerate(subtree):
        if not np.isfinite(variance).all():
            raise ArgumentError(
                "noise_variances",
                f"at level {level} leave out nodes that do not follow from the nodes below them.",
                hint="measure the level, or the excess of its nodes and all that these are made of.",
            )


def independent_nodes(tree: Tree, variances: Sequence[FloatArray]) -> Variances:
    """Describe estimates of nodes that are not averaged with those of their children, by their variances."""
    alone = tuple(variances)
    children = tuple(tree.sum_children(level, alone[level + 1]) for level in range(tree.depth))
    return Variances(alone, (np.ones(1),) * len(alone), alone, children, alone)


def subtree_estimates(
    tree: Tree, measurements: Measurements, variances: Variances, excess: Measurements | None = None
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Estimate every node from the measurements of its own subtree: the upward pass.

    Besides the estimates, the sums of the children's estimates are returned, less the excess if it is
    measured, for every level but the last.
    """
    check_measurements(tree, measurements, variances)
    leaves = measurements[-1]
    assert leaves is not None  # the leaf level is always measured
    beyond = _excess_values(tree, excess, variances, leaves.shape[1:])
    estimates, children = [np.asarray(leaves, dtype=np.float64)], []
    for level in reversed(range(tree.depth)):
        below = tree.sum_children(level, estimates[-1])
        if beyond is not None:
            below = below - beyond[level]
        measured, own = measurements[level], _beside(below, variances.own[level])
        if measured is None:
            estimates.append(below)
        else:
            _check_agreement(level, measured, below, variances)
            estimates.append(np.where(own == 1, measured, below + own * (measured - below)))
        children.append(below)
    return estimates[::-1], children[::-1]


def _excess_values(
    tree: Tree, given: Measurements | None, variances: Variances, of_a_node: tuple[int, ...]
) -> list[FloatArray] | None:
    """Return the measured excess of each node, 0 where it does not count; None if the tree is additive."""
    if given is None and not variances.excess:
        return None
    levels = [None] * tree.depth if given is None else given
    if len(levels) != len(variances.excess):
        raise ArgumentError(
            "excess",
            f"must hold the measurements of {len(variances.excess)} level(s), those with stated variances.",
            hint="None stands for a level that was not measured.",
        )
    values = []
    for level, (measured, noise) in enumerate(zip(levels, variances.excess, strict=True)):
        shape = (tree.level_sizes[level], *of_a_node)
        value = _counted(measured, (noise > 0) & np.isfinite(noise), shape)
        if value is None:
            raise ArgumentError(
                "excess",
                f"at level {level} must hold one finite number for each of the {shape[0]} node(s).",
                hint="only an excess that was not measured may be left out: None, with the variance inf.",
            )
        values.append(value)
    return values


def _counted(
    measured: npt.NDArray[Any] | None, counts: npt.NDArray[np.bool_], shape: tuple[int, ...]
) -> FloatArray | None:
    """Return the measurements of the nodes that count, 0 for others; None if they cannot be used."""
    if measured is None:
        return None if counts.any() else np.zeros((1, *shape[1:]))
    if measured.shape != shape:
        return None
    values = np.where(_beside(measured, counts), measured, 0.0)
    return values if np.isfinite(values).all() else None


def least_squares(
    tree: Tree, measurements: Measurements, variances: Variances, excess: Measurements | None = None
) -> list[FloatArray]:
    r"""Estimate every node from all measurements: unbiased, of least variance, and additive.

    The minimiser of :math:`\sum_v (x_v - y_v)^2 / v_v` subject to :math:`x_{parent} = \sum_c x_c`. Going down
    from :math:`x_{root} = z_{root}`,

    .. math:: x_c = z_c + (V_c / V_S)\,(x_{parent} - \textstyle\sum_c z_c),

    with :math:`z` the estimates of the upward pass. Time and memory are O(n). The measurements of a level
    that was not measured are None; the value of a node may be an array, each of its entries estimated by
    itself.

    Counts of distinct units have an `excess` besides, measured for each node of every level but the last
    (None where it was not), of which `variances` has the variances: see `propagate`. It is subtracted from
    the sum over the children.

    >>> tree = Tree.from_branching([2])
    >>> variances = propagate(tree, [1.0, 1.0])
    >>> total, leaves = least_squares(tree, [np.array([12]), np.array([4, 5])], variances)
    >>> total.round(6).tolist(), leaves.round(6).tolist()
    ([11.0], [5.0, 6.0])
    """
    subtree, children = subtree_estimates(tree, measurements, variances, excess)
    estimates = [subtree[0]]
    for level in range(tree.depth):
        ratio = _ratio(variances.subtree[level + 1], tree.spread(level, variances.children[level]))
        missing = tree.spread(level, estimates[level] - children[level])
        estimates.append(subtree[level + 1] + _beside(missing, ratio) * missing)
    return estimates


def check_measurements(tree: Tree, measurements: Measurements, variances: Variances) -> None:
    """Refuse measurements of the wrong shape, not finite, or missing where a variance is finite."""
    leaves = measurements[-1]
    of_a_node = () if leaves is None else leaves.shape[1:]
    for level, (measured, noise) in enumerate(zip(measurements, variances.noise, strict=True)):
        if measured is None:
            fits = level < tree.depth and bool(np.isposinf(noise).all())
        else:
            shape = (tree.level_sizes[level], *of_a_node)
            fits = measured.shape == shape and bool(np.isfinite(measured).all())
        if not fits or not (noise >= 0).all() or (level == tree.depth and not np.isfinite(noise).all()):
            raise ArgumentError(
                "measurements",
                f"at level {level} must hold one finite number, of variance at least 0, for each of the "
                f"{tree.level_sizes[level]} node(s).",
                hint="only levels above the leaves may be left out: None, with the variance inf.",
            )


def _check_agreement(
    level: int, measured: npt.NDArray[np.int64] | FloatArray, below: FloatArray, variances: Variances
) -> None:
    """Refuse a known value that differs from the sum of its children where all of these are known."""
    known = (variances.noise[level] == 0) & (variances.children[level] == 0)
    if known.any() and not np.isclose(below, measured, rtol=ROUNDING, atol=0)[_full(known, below)].all():
        raise ArgumentError(
            "measurements",
            f"at level {level} has a known value that is not the sum of the known values below it.",
            hint="correct one of the known values, or leave one of them out.",
        )


def _full(folded: npt.NDArray[Any], values: FloatArray) -> npt.NDArray[Any]:
    return np.broadcast_to(_beside(values, folded), values.shape)


def _beside(values: FloatArray, of_nodes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Shape a number for each node such that it applies to the node's whole value."""
    return of_nodes.reshape(-1, *(1,) * (values.ndim - 1))


def _average(noise: FloatArray, below: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weight of a measurement beside the children's sum, and the variance of their average."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(below > 0, 1 / (1 + noise / below), np.where(noise == 0, 1.0, 0.0))
        return weight, np.where(np.isfinite(noise), weight * noise, below)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Return the share of a family's variance; 0 where all its members are known."""
    with np.errstate(invalid="ignore"):
        return np.where(whole > 0, part / whole, 0.0)
