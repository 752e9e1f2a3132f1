"""The expected error of all margins of crossed hierarchies, without listing their cells.

**Privacy**: a function of the product, what is public, and the noise.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pandas_dptree.estimation.crossed import crossed_squares
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.planning.crossed_lattice import Lattice, ragged_axes
from pandas_dptree.planning.crossed_product import nearest_product, product_variances
from pandas_dptree.planning.crossed_split import parts_unknown, structural_zeros
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.variance import unrelated_variances_and_vjp

__all__ = ["MarginVariances"]


class MarginVariances:
    """The mean variance of each margin of a table, as a function of the variances of the noise."""

    def __init__(self, product: ProductTree, known: CrossedKnown, *, least_squares: bool) -> None:
        """Find out which formula is exact."""
        self._product, self._known, self._least_squares = product, known, least_squares
        self._zeros = structural_zeros(product, known)

    @cached_property
    def _lattice(self) -> Lattice | None:
        ragged = ragged_axes(self._product, self._zeros)
        totals = self._known.total_axis is not None
        return None if totals or ragged is None else Lattice(self._product, ragged, self._zeros)

    def means(self, noise_variances: FloatArray) -> FloatArray:
        """Return the mean variance of each margin that a table shows, shape (K,); 0 for many others.

        Noise variances are inf where nothing is measured. Those of a product form that are not quite a
        product are replaced by one.
        """
        product, precisions = self._product, 1 / noise_variances[:, None]
        if not self._least_squares:
            parts = parts_unknown(product, self._known)
            return unrelated_variances_and_vjp(parts, precisions)[0][:, 0]
        if self._lattice is not None:
            return self._lattice.means_and_vjp(precisions)[0][:, 0]
        if self._known.total_axis is None:
            return product_variances(product, noise_variances, self._zeros)
        nearest = nearest_product(product, noise_variances)
        nearest[0] = min(nearest[0], noise_variances[0])  # the grand total may be more precise
        squares = crossed_squares(product, nearest, self._known)
        return np.nan_to_num([squares.mean_variance(margin) for margin in product.margins])
