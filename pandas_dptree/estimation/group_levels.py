r"""Distributions of the groups of a hierarchy, made consistent: each is the sum of those of its groups.

On all levels groups are measured alike and independently, so the estimates :math:`\hat F` of the cumulative
counts of each have one covariance. If the total n of a group is known, what its error adds is gone: with
:math:`\hat F_t = a_t \hat n + R_t`, where :math:`R_t` is uncorrelated with :math:`\hat n`, the covariance of
the :math:`R_t` is the same in all groups, and :math:`\hat n` has one variance or none. A group without
records has no error. Sums over the groups of a family keep both parts apart. So least squares over the tree
of groups, with one weight for each group, is that of all measurements together: for :math:`R_t`, bin by bin,
with the variances 1, or 0 for a group without records; for :math:`\hat n` with 1, or 0 for a known total.

Everything here is a function of noisy numbers, public totals and the tree: post-processing, free of privacy
cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import Variances, least_squares, propagate
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["consistent_groups", "mean_variances_left", "variances_left"]

FloatArray = npt.NDArray[np.float64]

_BLOCK = 2**21
"""How many estimates of all groups are made consistent at a time."""


def variances_left(tree: Tree, totals: Sequence[IntArray]) -> list[FloatArray]:
    """Compute what is left of the variances of a group's own measurement, of shape (n_groups, 2) by level.

    The first number is for the variances with a known total, the second for what its error adds to them.
    `totals` has the known totals of each level, -1 where unknown. Without other levels both are 1, the second
    is 0 for a known total, and both are 0 for one of 0.
    """
    of_rest, of_total = _variances(tree, totals)
    return [
        np.stack([np.broadcast_to(each[level], size) for each in (of_rest.final, of_total.final)], axis=1)
        for level, size in enumerate(tree.level_sizes)
    ]


def mean_variances_left(
    left: Sequence[FloatArray], totals: Sequence[IntArray], shown: Sequence[npt.NDArray[np.bool_]]
) -> FloatArray:
    """Average `variances_left` over the shown groups of each level, shape (n_levels, 2).

    Groups of unknown total are meant, or if there are none those that are known to have records.
    """
    means = []
    for each, known, listed in zip(left, totals, shown, strict=True):
        kinds = [listed & (known < 0), listed & (known > 0), listed]
        means.append(each[next(kind for kind in kinds if kind.any())].mean(axis=0))
    return np.stack(means)


def consistent_groups(
    tree: Tree, estimates: Sequence[FloatArray], totals: Sequence[IntArray], slopes: FloatArray
) -> Iterator[tuple[slice, list[FloatArray]]]:
    """Estimate the cumulative counts of all groups from the measurements of all, some bins at a time.

    `estimates` from each group's own measurement have shape (n_groups, n_bins) by level, and `slopes` are
    :math:`a_t`, of shape (n_bins,). Yields which bins, and the estimates for them by level.
    """
    of_rest, of_total = _variances(tree, totals)
    own = [np.where(known < 0, each[:, -1], known) for each, known in zip(estimates, totals, strict=True)]
    sums = least_squares(tree, own, of_total)
    width = max(1, _BLOCK // sum(tree.level_sizes))
    for start in range(0, len(slopes), width):
        bins = slice(start, start + width)
        rest = [
            np.where((known == 0)[:, None], 0.0, each[:, bins] - np.outer(total, slopes[bins]))
            for each, total, known in zip(estimates, own, totals, strict=True)
        ]
        solved = least_squares(tree, rest, of_rest)
        yield bins, [each + np.outer(total, slopes[bins]) for each, total in zip(solved, sums, strict=True)]


def _variances(tree: Tree, totals: Sequence[IntArray]) -> tuple[Variances, Variances]:
    """Propagate the variances of both parts, relative to those of a group's own measurement."""
    return (
        propagate(tree, [np.where(known == 0, 0.0, 1.0) for known in totals]),
        propagate(tree, [np.where(known < 0, 1.0, 0.0) for known in totals]),
    )
