r"""The expected error of crossed hierarchies in which no margin has two ragged axes, and its gradient.

On a *uniform* axis, all nodes of a level have equally many children; the others are *ragged*. Let
:math:`\ell` be a level of each uniform axis, with :math:`n_\ell` cells of :math:`s_\ell` leaf cells each. The
sums of these are :math:`M_\ell`, with :math:`M_\ell^\top M_\ell = s_\ell \sum_{k \le \ell} E_k`: orthogonal
projections on spaces of residuals, the details of level :math:`k_d` of each axis beyond the level above,
with :math:`m_k = \prod_d (n_{k_d} - n_{k_d - 1})` dimensions. In one of these dimensions, a margin of a node
of a ragged axis is a measurement of one number of the node with the precision :math:`p\,s_\ell`. All margins
together are measurements of a tree: the trees of the ragged axes, which share the root, with the precisions

.. math:: q_k(j) = \sum_{\ell \ge k} s_\ell\,p_{j,\ell}

for level j of one of them. If :math:`V_k(j)` is the mean variance of its least-squares estimates, that of the
cells of a margin is

.. math:: V(j, \ell) = \frac{s_\ell}{n_\ell} \sum_{k \le \ell} m_k V_k(j).

**Privacy**: everything here is a function of the product and of the margins that a table shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.known_counts import Flags
from pandas_dptree.planning.variance import level_variances_and_vjp

__all__ = ["Lattice", "ragged_axes", "summed_above", "summed_below", "wanted_margins"]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


def summed_above(table: FloatArray, n_axes: int) -> FloatArray:
    """Sum over all levels from each on, along the first axes."""
    for axis in range(n_axes):
        table = np.flip(np.cumsum(np.flip(table, axis), axis), axis)
    return table


def summed_below(table: FloatArray, n_axes: int) -> FloatArray:
    """Sum over all levels up to each, along the first axes."""
    for axis in range(n_axes):
        table = np.cumsum(table, axis)
    return table


def wanted_margins(product: ProductTree) -> tuple[BoolArray, BoolArray]:
    """Return which margins may help those that a table shows, and which of them cannot be left out.

    The former are coarser than a margin that is shown, or it; the latter are not coarser than another one.
    Both have shape (K,).
    """
    shape = product.lattice_shape
    shown = np.array([product.n_listed(level) > 0 for level in range(len(product.margins))]).reshape(shape)
    finer = summed_above(shown.astype(np.float64), len(shape))
    return (finer > 0).reshape(-1), (shown & (finer == 1)).reshape(-1)


def ragged_axes(product: ProductTree, zeros: Sequence[Flags | None]) -> list[int] | None:
    """Return the axes that are ragged; None if a margin that a table shows has cells of two of them.

    An axis with structural zeros is ragged.
    """
    both = zip(product.axes, zeros, strict=True)
    ragged = [place for place, (axis, empty) in enumerate(both) if empty is not None or not axis.is_uniform]
    most = max(sum(margin[place] > 0 for place in ragged) for margin in product.shown)
    return ragged if most < 2 else None


class Lattice:
    """The margins of a product, of which none that is wanted has cells of two ragged axes.

    A *stem* is a level of a ragged axis below its root, or, first of all, the root. Numbers of margins become
    tables with an axis for the stems, one for each uniform axis, and one for a batch.
    """

    def __init__(self, product: ProductTree, ragged: Sequence[int], zeros: Sequence[Flags | None]) -> None:
        """Sort the margins by stems and the levels of the uniform axes."""
        self.n_margins = len(product.margins)
        self._uniform = [place for place in range(len(product.axes)) if place not in ragged]
        uniform = [product.axes[place] for place in self._uniform]
        sizes = [np.array(axis.level_sizes, dtype=np.float64) for axis in uniform]
        shape = tuple(len(each) for each in sizes)
        one = np.ones(())
        self.cells = np.asarray(reduce(np.multiply.outer, sizes, one))[None, ..., None]
        self.leaves = self.cells.max() / self.cells
        details = [np.diff(each, prepend=0.0) for each in sizes]
        self.dimensions = np.asarray(reduce(np.multiply.outer, details, one))[None, ..., None]
        places = np.arange(self.n_margins).reshape(product.lattice_shape)
        roots = np.moveaxis(places, list(ragged), range(len(ragged)))
        stems = [roots[(0,) * len(ragged)]]
        self._stems: list[list[int]] = []  # of each ragged axis, the root first
        for order, place in enumerate(ragged):
            own = [0]
            for level in range(1, product.axes[place].depth + 1):
                own.append(len(stems))
                stems.append(roots[(0,) * order + (level,) + (0,) * (len(ragged) - order - 1)])
            self._stems.append(own)
        self.places: IntArray = np.stack(stems).reshape(len(stems), *shape)
        self.useful, _ = wanted_margins(product)
        wanted = self.useful[self.places].astype(np.float64)[..., None]
        self._needed: BoolArray = (self._above(wanted) > 0) & (self.dimensions > 0)
        self._groups = [self._grouped(product, *each, zeros) for each in enumerate(ragged)]

    def _above(self, table: FloatArray) -> FloatArray:
        return np.moveaxis(summed_above(np.moveaxis(table, 0, -1), len(self._uniform)), -1, 0)

    def _below(self, table: FloatArray) -> FloatArray:
        return np.moveaxis(summed_below(np.moveaxis(table, 0, -1), len(self._uniform)), -1, 0)

    def _grouped(
        self, product: ProductTree, order: int, place: int, zeros: Sequence[Flags | None]
    ) -> list[tuple[Orbits, IntArray, IntArray]]:
        """Group the spaces by how far down a ragged axis they matter: trees, stems, spaces."""
        own, empty = self._stems[order], zeros[place]
        needed = self._needed[own].reshape(len(own), -1)
        deepest = np.where(needed.any(axis=0), len(own) - 1 - np.argmax(needed[::-1], axis=0), 0)
        groups = []
        for level in np.unique(deepest[deepest > 0]).tolist():
            orbits = Orbits.of(
                product.axes[place].truncated(level), None if empty is None else empty[: level + 1]
            )
            stems = np.array(own[: level + 1])[:, None]
            groups.append((orbits, stems, np.flatnonzero(deepest == level)))
        return groups

    def tables(self, numbers: FloatArray) -> FloatArray:
        """Arrange numbers of margins, shape (K, n_batch)."""
        return np.asarray(numbers[self.places])

    def means_and_vjp(self, precisions: FloatArray) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Return the mean variance of each margin, and its vector-Jacobian product by the precisions.

        These have shape (K, n_batch), as in `level_variances_and_vjp`; the variance is 0 where a margin is
        finer than all that are wanted.
        """
        spread = self._above(self.leaves * self.tables(precisions))
        shape = spread.shape
        variances, backwards = self._tree_variances(spread.reshape(shape[0], -1, shape[-1]))
        of_spaces = np.where(self._needed, variances.reshape(shape), 0.0)
        ratio = self.leaves / self.cells
        means = np.zeros((self.n_margins, shape[-1]))
        means[self.places] = ratio * self._below(self.dimensions * of_spaces)
        means[~self.useful] = 0.0

        def vjp(weights: FloatArray) -> FloatArray:
            own = np.where(self.useful[:, None], weights, 0.0)
            by_variance = self.dimensions * self._above(ratio * self.tables(own)) * self._needed
            by_spread = backwards(by_variance.reshape(shape[0], -1, shape[-1])).reshape(shape)
            gradient = np.zeros((self.n_margins, shape[-1]))
            gradient[self.places] = self.leaves * self._below(by_spread)
            return gradient

        return means, vjp

    def _tree_variances(self, spread: FloatArray) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Return the variance of each stem in each space, and the product of their Jacobian with weights.

        All have shape (n_stems, n_spaces, n_batch). Each tree is seen with all that the others say about the
        root as a measurement of the root.
        """
        n_batch = spread.shape[-1]
        variances = np.zeros_like(spread)
        from_below = [np.zeros_like(spread[0]) for _ in self._groups]  # precisions of the root
        first: list[list[Callable[[FloatArray], FloatArray]]] = []
        several = len(self._groups) > 1
        for said, groups in zip(from_below, self._groups, strict=True):
            backwards = []
            for orbits, stems, spaces in groups if several else []:
                own = spread[stems, spaces]
                own[0] = 0.0
                means, vjp = level_variances_and_vjp(orbits, own.reshape(len(stems), -1))
                said[spaces] = (1 / means[0]).reshape(-1, n_batch)
                backwards.append(vjp)
            first.append(backwards)
        total = spread[0] + sum(from_below)
        with np.errstate(divide="ignore"):
            variances[0] = 1 / total
        second: list[list[Callable[[FloatArray], FloatArray]]] = []
        for said, groups in zip(from_below, self._groups, strict=True):
            backwards = []
            for orbits, stems, spaces in groups:
                own = spread[stems, spaces]
                own[0] = (total - said)[spaces]
                means, vjp = level_variances_and_vjp(orbits, own.reshape(len(stems), -1))
                variances[stems, spaces] = means.reshape(len(stems), -1, n_batch)
                backwards.append(vjp)
            second.append(backwards)

        def product(weights: FloatArray) -> FloatArray:
            gradient = np.zeros_like(spread)
            taken = np.zeros(spread.shape[1], dtype=bool)  # spaces whose root has been differentiated
            others = []  # the derivative by what the other trees say about the root
            for groups, backwards in zip(self._groups, second, strict=True):
                by_root = np.zeros_like(spread[0])
                for (_, stems, spaces), back in zip(groups, backwards, strict=True):
                    own = weights[stems, spaces]
                    own[0] *= ~taken[spaces, None]
                    taken[spaces] = True
                    slopes = back(own.reshape(len(stems), -1)).reshape(len(stems), -1, n_batch)
                    gradient[stems[1:], spaces] += slopes[1:]
                    by_root[spaces] = slopes[0]
                others.append(by_root)
            root = np.where(weights[0] == 0, 0.0, variances[0])
            alone = np.where(taken[:, None], 0.0, -weights[0] * root**2)
            whole = sum(others) + alone
            gradient[0] += whole
            for place, (groups, backwards) in enumerate(zip(self._groups, first, strict=True)):
                for (_, stems, spaces), back in zip(groups, backwards, strict=False):
                    by_said = (whole - others[place] - alone)[spaces]
                    own = np.zeros((len(stems), *by_said.shape))
                    own[0] = -by_said * from_below[place][spaces] ** 2
                    slopes = back(own.reshape(len(stems), -1)).reshape(len(stems), -1, n_batch)
                    gradient[stems[1:], spaces] += slopes[1:]
            return gradient

        return variances, product
