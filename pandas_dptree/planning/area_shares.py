"""The split of the budget that is best for areas, sums of nodes that are no node of the tree.

**Privacy**: a function of the tree, the noise and the targets, which are public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.covariance import coefficients
from pandas_dptree.estimation.least_squares import LEAST_VARIANCE, FloatArray, propagate
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.planning.known_counts import Flags

__all__ = ["AreaTarget", "best_shares", "sums_of_squares"]


@dataclass(frozen=True, slots=True, eq=False)
class AreaTarget:
    """The standard error that an area may have, and the weight of each node in it, an array per level."""

    weights: Sequence[npt.NDArray[np.float64]]
    std_error: float


def sums_of_squares(
    tree: Tree,
    level_variances: FloatArray,
    weights: Sequence[npt.NDArray[np.float64]],
    *,
    least_squares: bool,
    known: Flags | None,
) -> FloatArray:
    r"""Return the sum of the squared coefficients of each level's measurements in an area's estimate.

    With the noise variances :math:`v_l`, the area's variance is :math:`\sum_l v_l s_l`. Its derivative by
    :math:`v_l` is :math:`s_l` as well, since the best linear estimate has the least variance of all: to first
    order, a change of its own coefficients changes nothing.
    """
    exact = [np.zeros(1, dtype=bool)] * (tree.depth + 1) if known is None else list(known)
    found = list(weights)
    if least_squares:
        noise = [
            np.where(flags, 0.0, np.maximum(variance, LEAST_VARIANCE))
            for flags, variance in zip(exact, level_variances, strict=True)
        ]
        found = coefficients(tree, propagate(tree, noise), weights)
    return np.array(
        [float((np.where(flags, 0.0, each) ** 2).sum()) for flags, each in zip(exact, found, strict=True)]
    )


def best_shares(
    starts: Sequence[FloatArray],
    variances_of: Callable[[FloatArray], FloatArray],
    excess_of: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    patterns: FloatArray | None = None,
) -> FloatArray:
    r"""Find the shares for which the largest logarithm of an excess is least, from several starts.

    `variances_of` maps shares to the noise variances of the levels, each a power of the level's own share.
    `excess_of` maps these variances to the logarithms of the excesses, shape (n,), and their derivatives by
    the logarithms of the variances, shape (n, n_levels). Of several `patterns`, shape (n_patterns, n_levels),
    each charges that part of the shares; all variances grow by the power of the largest charge, so there is
    an excess for each pattern. A level with share 0 at the starts keeps it.
    """
    from scipy.optimize import minimize  # costs a third of a second to import

    used = np.flatnonzero(starts[0] > 0)
    if len(used) == 1:
        return starts[0]

    def shares_of(point: FloatArray) -> FloatArray:
        shares = np.zeros_like(starts[0])
        shares[used] = np.exp(point - point.max())
        return np.asarray(shares / shares.sum())

    flat, tilted = np.zeros(len(used)), np.eye(len(used))[0]
    rates = (np.log(variances_of(shares_of(each))[used[0]]) for each in (tilted, flat))
    power = (next(rates) - next(rates)) / np.log(shares_of(tilted)[used[0]] / shares_of(flat)[used[0]])

    def excesses(point: FloatArray) -> tuple[FloatArray, FloatArray]:
        shares = shares_of(point)
        values, slopes = excess_of(variances_of(shares))
        slopes = power * slopes[:, used]
        slopes = slopes - slopes.sum(axis=1, keepdims=True) * shares[used]
        if patterns is None:
            return values, slopes
        parts = patterns[:, used] * shares[used]
        charges = parts.sum(axis=1)
        growth = parts / charges[:, None] - shares[used]  # of the logarithm of the charges
        return (
            np.add.outer(-power / 2 * np.log(charges), values).ravel(),
            (-power / 2 * growth[:, None] + slopes).reshape(-1, len(used)),
        )

    def improved(start: FloatArray) -> FloatArray:
        point = np.log(start[used])
        found = minimize(  # type: ignore[call-overload]
            lambda x: x[-1],
            np.append(point, excesses(point)[0].max()),
            jac=lambda _: np.append(np.zeros(len(used)), 1.0),
            constraints={
                "type": "ineq",
                "fun": lambda x: x[-1] - excesses(x[:-1])[0],
                "jac": lambda x: np.hstack([-(by := excesses(x[:-1])[1]), np.ones((len(by), 1))]),
            },
            bounds=[*((float(each) - 12, float(each) + 12) for each in point), (None, None)],
            method="SLSQP",
            options={"maxiter": 60, "ftol": 1e-9},
        )
        return shares_of(found.x[:-1])

    tried = [shares for start in starts for shares in (start, improved(start))]
    return min(tried, key=lambda shares: float(excesses(np.log(shares[used]))[0].max()))
