"""Least squares of every margin of crossed hierarchies, for noise whose variances are a product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import (
    FloatArray,
    Measurements,
    Variances,
    least_squares,
    propagate,
)
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.product_tree import ProductTree

__all__ = ["CrossedSquares", "crossed_squares"]


@dataclass(frozen=True, eq=False)
class CrossedSquares:
    """Exact least squares, one tree pass per axis; `variances` are those of the cells of each margin."""

    product: ProductTree
    of_axes: tuple[Variances, ...]
    scale: float

    @property
    def variances(self) -> list[FloatArray]:
        """The variance of the estimate of each cell, of each margin; folded where all agree."""
        final = [each.final for each in self.of_axes]
        return [self.scale * self.product.outer(final, margin) for margin in self.product.margins]

    def estimate(self, measurements: Measurements) -> list[FloatArray]:
        """Return the estimates of the cells of each margin."""
        shape = self.product.lattice_shape
        tables: dict[tuple[int, ...], FloatArray] = {
            margin: given.reshape(self.product.cell_shape(margin)).astype(np.float64)
            for margin, given in zip(self.product.margins, measurements, strict=True)
            if given is not None
        }
        for place, (axis, variances) in enumerate(zip(self.product.axes, self.of_axes, strict=True)):
            done: dict[tuple[int, ...], FloatArray] = {}
            for rest in {(*margin[:place], *margin[place + 1 :]) for margin in tables}:
                margins = [(*rest[:place], level, *rest[place:]) for level in range(shape[place])]
                along = [
                    np.moveaxis(tables[margin], place, 0) if margin in tables else None for margin in margins
                ]
                leaves = least_squares(axis, along, variances)[-1]
                done[margins[-1]] = np.moveaxis(leaves, 0, place)
            tables = done
        ((_, leaves),) = tables.items()
        summed = self.product.sum_margins(leaves, self.product.margins)
        return [summed[margin].reshape(-1) for margin in self.product.margins]


def crossed_squares(product: ProductTree, variances: FloatArray, known: CrossedKnown) -> CrossedSquares:
    """Return the exact least squares of margins that are measured with noise of these variances."""
    lattice = np.asarray(variances, dtype=np.float64).reshape(product.lattice_shape)
    leaf = lattice[(-1,) * lattice.ndim]
    factors = [
        lattice[tuple(slice(None) if each == place else -1 for each in range(lattice.ndim))] / leaf
        for place in range(lattice.ndim)
    ]
    product_of_factors = factors[0]
    for factor in factors[1:]:
        product_of_factors = np.multiply.outer(product_of_factors, factor)
    if any(flags.any() for flags in known.exact) or not np.allclose(product_of_factors * leaf, lattice, 1e-9):
        raise ArgumentError(
            "split",
            "gives the margins noise of which no exact estimate is known.",
            hint="choose another split.",
        )
    of_axes = (
        propagate(axis, list(factor[:, None])) for axis, factor in zip(product.axes, factors, strict=True)
    )
    return CrossedSquares(product, tuple(of_axes), float(leaf))
