"""Least squares of every margin of crossed hierarchies: the exact estimates, and their exact variances.

Everything here is a function of noisy numbers and of the shape: post-processing, free of privacy cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.crossed_product import ProductSquares, factors_of
from pandas_dptree.estimation.least_squares import FloatArray, Measurements
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import Margin, ProductTree
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["CrossedSquares", "crossed_squares"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CrossedSquares:
    """Exact least squares of a product of trees, of which structural zeros are left out.

    `kept` says for each level of each axis which nodes hold other leaves than structural zeros, and `solver`
    is for the product of what remains.
    """

    product: ProductTree
    kept: tuple[list[BoolArray], ...]
    solver: ProductSquares

    @property
    def _whole(self) -> bool:
        return all(flags.all() for levels in self.kept for flags in levels)

    def _cells(self, margin: Margin) -> tuple[npt.NDArray[np.intp], ...]:
        """Return the indices of the cells of a margin that are kept."""
        return np.ix_(
            *(np.flatnonzero(levels[level]) for levels, level in zip(self.kept, margin, strict=True))
        )

    @cached_property
    def variances(self) -> list[FloatArray]:
        """The variance of the estimate of each cell, of each margin; folded where all agree."""
        found = []
        for margin in self.product.margins:
            variance = self.solver.variance(margin)
            if not self._whole:
                shape = self.solver.product.cell_shape(margin)
                table = np.zeros(self.product.cell_shape(margin))
                size = int(np.prod(shape))
                table[self._cells(margin)] = np.broadcast_to(variance, size).reshape(shape)
                variance = table.reshape(-1)
            found.append(variance)
        return found

    def mean_variance(self, margin: Margin) -> float:
        """Return the mean variance of the cells of a margin that a table can show, without listing them."""
        listed = [axis.listed(level) for axis, level in zip(self.product.axes, margin, strict=True)]
        kept = [levels[level] for levels, level in zip(self.kept, margin, strict=True)]
        chosen = [shown[flags] for shown, flags in zip(listed, kept, strict=True)]
        n_cells = math.prod(int(np.count_nonzero(shown)) for shown in listed)
        total = sum(
            factor
            * math.prod(
                float(np.broadcast_to(levels[level], flags.shape)[flags].sum())
                for levels, level, flags in zip(of_axes, margin, chosen, strict=True)
            )
            for factor, of_axes in self.solver.terms
        )
        return max(total, 0.0) / n_cells if n_cells else math.nan

    def estimate(self, measurements: Measurements) -> list[FloatArray | None]:
        """Return the estimates of the cells of each margin, None where there are none."""
        given = list(measurements)
        if not self._whole:
            for place, (margin, values) in enumerate(zip(self.product.margins, measurements, strict=True)):
                if values is not None:
                    given[place] = values.reshape(self.product.cell_shape(margin))[self._cells(margin)]
        leaves = self.solver.leaves(given)
        if not self._whole:
            table = np.zeros(self.product.leaf_shape)
            table[self._cells(self.product.margins[-1])] = leaves
            leaves = table
        summed = self.product.sum_margins(leaves, self.product.margins)
        return [summed[margin].reshape(-1) for margin in self.product.margins]


def crossed_squares(product: ProductTree, variances: FloatArray, known: CrossedKnown) -> CrossedSquares:
    """Return the exact least squares of margins that are measured with noise of these variances.

    The variances have shape (n_margins,), inf where nothing is measured; what they are where all cells of a
    margin are known does not matter. Raises an ArgumentError if no exact estimate is known for them.
    """
    kept = tuple(_kept(axis, zeros) for axis, zeros in zip(product.axes, known.zeros, strict=True))
    axes = tuple(_without(axis, flags) for axis, flags in zip(product.axes, kept, strict=True))
    lattice = np.asarray(variances, dtype=np.float64).reshape(product.lattice_shape)
    free = known.levels.reshape(product.lattice_shape)
    found = factors_of(lattice, free)
    if found is None:
        raise ArgumentError(
            "split",
            "gives the margins noise for which no exact estimate is known.",
            hint="choose another split.",
        )
    factors, extra = found
    place = known.total_axis
    totals = None if place is None else (place, _known_of(known.axes[place], kept[place]))
    return CrossedSquares(product, kept, ProductSquares(ProductTree(axes), factors, extra, totals))


def _kept(axis: Tree, zeros: BoolArray) -> list[BoolArray]:
    """Whether each node of each level of an axis has a leaf that is no structural zero."""
    return [sums > 0 for sums in axis.roll_up((~zeros).astype(np.int64))]


def _without(axis: Tree, kept: Sequence[BoolArray]) -> Tree:
    """Return what remains of an axis without the nodes that are not kept."""
    if all(flags.all() for flags in kept):
        return axis
    counts = (
        axis.sum_children(level, below.astype(np.int64))[here]
        for level, (here, below) in enumerate(pairwise(kept))
    )
    return Tree(tuple(counts))


def _known_of(known: Known, kept: Sequence[BoolArray]) -> Known:
    """Return what is known of the nodes that are kept."""
    chosen = [
        (np.broadcast_to(exact, flags.shape)[flags], np.broadcast_to(least, flags.shape)[flags])
        for exact, least, flags in zip(known.exact, known.least, kept, strict=True)
    ]
    return Known(tuple(exact for exact, _ in chosen), tuple(least for _, least in chosen))
