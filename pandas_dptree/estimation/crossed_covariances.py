r"""Exact covariances of any sum of cells of crossed hierarchies with all cells.

With C the covariance of the estimates of all cells, and R that of the measurements, least squares is
:math:`\hat x = C R^{-1} y` (beside what is known, which has no noise). So the covariances with the sum
:math:`w^\top \hat x` are the estimates of the measurements :math:`R w`, and the coefficients of the sum in
the measurements are :math:`R^{-1} C w`, whatever the form of the solver.

**Privacy**: functions of the shape and of the noise, which are public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.crossed import CrossedSquares
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.hierarchy.product_tree import Margin, spread_along, sum_along

__all__ = ["covariances_with_sum", "moments_of_sum"]


def covariances_with_sum(
    squares: CrossedSquares, weights: Mapping[Margin, FloatArray]
) -> list[FloatArray | None]:
    """Return the covariance of each cell of each margin with a sum of cells; None where there is none.

    `weights` has for some margins the weight of each cell. That of a margin that is not measured itself is
    one of cells of a finer margin, of which the cell is the sum.
    """
    product, precisions = squares.product, squares.precisions
    parts = {
        margin: np.zeros(product.cell_shape(margin))
        for margin, precision in zip(product.margins, precisions, strict=True)
        if precision
    }
    for margin, own in weights.items():
        finer = [each for each in parts if squares.is_sum_of(margin, each)]
        if finer:
            parts[finer[0]] += _moved(squares, own, margin, finer[0])
        elif squares.variances[product.level_of(margin)].any():  # others are known
            raise ArgumentError(
                "margin", "cannot be estimated from what is measured.", hint="choose another margin."
            )
    given: list[FloatArray | None] = [
        (parts[margin] / precision).reshape(-1) if precision else None
        for margin, precision in zip(product.margins, precisions, strict=True)
    ]
    found = squares.estimate(given)
    if squares.known is None:
        return found
    nothing = squares.estimate([None if each is None else np.zeros_like(each) for each in given])
    return [
        None if own is None or base is None else own - base for own, base in zip(found, nothing, strict=True)
    ]


def _moved(squares: CrossedSquares, weights: FloatArray, margin: Margin, finer: Margin) -> FloatArray:
    """Give each cell of a finer margin the weight of the cell that it is part of.

    A level that repeats one above, but for structural zeros, may be finer than it in name only.
    """
    product = squares.product
    table = weights.reshape(product.cell_shape(margin))
    for place, (axis, level, depth) in enumerate(zip(product.axes, margin, finer, strict=True)):
        kept = squares.axes[place].kept
        if kept is not None:
            table = table * kept[level].reshape(-1, *(1,) * (table.ndim - place - 1))
        for each in range(level, depth):
            table = spread_along(axis, each, table, place)
        for each in reversed(range(depth, level)):
            table = sum_along(axis, each, table, place)
    return table


def moments_of_sum(
    squares: CrossedSquares, fourth_cumulants: Sequence[float], weights: Mapping[Margin, FloatArray]
) -> tuple[float, float, float]:
    """Return the variance, the fourth cumulant and the step of a sum of cells: see `error_half_widths`.

    The fourth cumulants are those of the noise of each margin.
    """
    covariances = covariances_with_sum(squares, weights)
    variance = fourth = step = 0.0
    for margin, own in weights.items():
        found = covariances[squares.product.level_of(margin)]
        assert found is not None
        variance += float((own.reshape(-1) * found).sum())
    for found, precision, kappa in zip(covariances, squares.precisions, fourth_cumulants, strict=True):
        if precision and found is not None:
            powers = float(((found * precision) ** 4).sum())
            fourth, step = fourth + kappa * powers, step + powers
    return max(variance, 0.0), fourth, min(step**0.25, 1.0)
