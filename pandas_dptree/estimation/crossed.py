r"""Least squares of every margin of crossed hierarchies: the exact estimates, and their exact variances.

Structural zeros and levels that repeat the one above are left out. Uneven axes, and that on which counts are
known, are *trees*; what is measured is divided into the residual classes of all others, the *uniform* ones,
which can be estimated one by one: see `residual_classes`. (If all are uniform, the largest serves as a tree.)
In a class, each margin of the trees has one precision. Two forms of these have exact estimates: those of
one-way tables (`glued_trees`), of which a single tree is a case, and products (`crossed_product`).

With :math:`V_k` the variances of the nodes of trees in class k, of which
:math:`m_k` dimensions are equal, the variance of each of :math:`n_\ell` cells of a margin, of :math:`s_\ell`
leaf cells, is :math:`(s_\ell / n_\ell) \sum_{k \le \ell} m_k V_k`.

Everything here is a function of noisy numbers and of the shape: post-processing, free of privacy cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.crossed_axes import UnknownAxis
from pandas_dptree.estimation.crossed_product import ProductSquares
from pandas_dptree.estimation.glued_trees import GluedTrees, Term, stated
from pandas_dptree.estimation.least_squares import FloatArray, Measurements
from pandas_dptree.estimation.residual_classes import Tables, add_coarser, split_coarser
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import Margin, ProductTree

__all__ = ["CrossedSquares", "crossed_squares"]

Solver = GluedTrees | ProductSquares


@dataclass(frozen=True, eq=False)
class CrossedSquares:
    """Exact least squares of the margins of a product of trees.

    Attributes
    ----------
    product : ProductTree
    precisions : numpy.ndarray, shape (n_margins,)
        Of what is measured; 0 where nothing is.
    axes : tuple of UnknownAxis
        The axes without what is known, in their order.
    order : tuple of int
        The axes of `unknown` in its order: first the `n_trees` trees, then the uniform ones.
    unknown : ProductTree
    known : tuple of (int, Known), optional
        What is known of the nodes of one axis of `unknown`, by its place.
    empty : bool
        Whether all leaves of an axis are structural zeros, so that all counts are 0.
    """

    product: ProductTree
    precisions: FloatArray
    axes: tuple[UnknownAxis, ...]
    order: tuple[int, ...]
    n_trees: int
    unknown: ProductTree
    known: tuple[int, Known] | None
    empty: bool

    def __post_init__(self) -> None:
        """Refuse precisions of which no exact estimate is known."""
        self._solvers  # noqa: B018

    # The lattice of what is unknown

    def _reduced(self, margin: Margin) -> Margin:
        return tuple(self.axes[place].levels[margin[place]] for place in self.order)

    @cached_property
    def _leaves_of_cells(self) -> FloatArray:
        """The number of leaf cells in a cell of each margin of the uniform axes."""
        return reduce(np.multiply.outer, [n[-1] / n for n in self._sizes], np.ones(()))

    @cached_property
    def _sizes(self) -> list[FloatArray]:
        """Number of nodes of each level of each uniform axis."""
        return [np.array(axis.level_sizes, dtype=np.float64) for axis in self.unknown.axes[self.n_trees :]]

    @cached_property
    def _dimensions(self) -> FloatArray:
        """The number of dimensions of each class."""
        return reduce(np.multiply.outer, [np.diff(n, prepend=0.0) for n in self._sizes], np.ones(()))

    @property
    def _uniform(self) -> range:
        return range(self.n_trees, len(self.order))

    @cached_property
    def _of_classes(self) -> FloatArray:
        """The precision of each class, for each margin of the trees."""
        table = np.zeros(self.unknown.lattice_shape)
        for margin, precision in zip(self.product.margins, self.precisions, strict=True):
            if precision:
                table[self._reduced(margin)] += precision
        table *= self._leaves_of_cells
        for place in self._uniform:
            table = np.flip(np.cumsum(np.flip(table, place), axis=place), place)
        return table

    @cached_property
    def _solvers(self) -> dict[Margin, Solver]:
        """The least squares of the trees in each class."""
        trees, found = self.unknown.axes[: self.n_trees], {}
        for k in np.ndindex(self._dimensions.shape):
            precisions = self._of_classes[(..., *k)]
            known = None if any(k) else self.known
            solver: Solver | None
            if GluedTrees.fits(precisions):
                solver = GluedTrees(trees, precisions, known)
            else:
                solver = ProductSquares.of(trees, precisions, known)
            if solver is None:
                raise ArgumentError(
                    "split",
                    "gives the margins noise for which no exact estimate is known.",
                    hint="choose another split.",
                )
            found[k] = solver
        return found

    def _known_of(self, k: Margin, trees: Margin) -> tuple[int, Known, int] | None:
        """Return what is known of a level of an axis, if a margin of the trees in a class is that level."""
        if self.known is None or any(k) or any(np.delete(trees, self.known[0])):
            return None
        place, known = self.known
        return (place, known, trees[place]) if known.exact[trees[place]].any() else None

    # Variances

    def _terms(self, k: Margin, trees: Margin) -> list[Term]:
        """Return the terms of the variances of the cells of a margin of the trees in a class."""
        return self._known_terms(k, trees, self._solvers[k].terms(trees))

    def _known_terms(self, k: Margin, trees: Margin, terms: list[Term]) -> list[Term]:
        """Return terms without those of nodes whose counts are known."""
        found = self._known_of(k, trees)
        if found is None:
            return terms
        place, known, level = found
        unknown = ~known.exact[level]
        if not terms and not unknown.any():
            terms = [(0.0, [np.ones(1)] * self.n_trees)]
        return [
            (factor, [*values[:place], values[place] * unknown, *values[place + 1 :]])
            for factor, values in terms
        ]

    @cached_property
    def variances(self) -> list[FloatArray]:
        """The variance of the estimate of each cell, of each margin; folded where all agree.

        It is inf for margins that cannot be estimated, and 0 for cells that are known. Where a level of an
        axis is neither measured nor known as a whole, what would follow for its nodes by subtracting known
        counts from others is not looked for.
        """
        if self.empty:
            return [np.zeros(1)] * len(self.product.margins)
        of_trees: dict[Margin, FloatArray] = {}
        found = []
        for margin in self.product.margins:
            reduced = self._reduced(margin)
            trees, k = reduced[: self.n_trees], reduced[self.n_trees :]
            variance = np.array([np.inf])
            if not self._beyond(reduced):
                if trees not in of_trees:
                    of_trees[trees] = self._over_classes(
                        [self._variance(self._terms(each, trees), trees) for each in self._solvers]
                    )
                variance = of_trees[trees][k]
            finite = np.isfinite(variance).all()
            found.append(self._unfolded(margin, variance) if finite else np.array([np.inf]))
        return found

    def _unfolded(self, margin: Margin, values: FloatArray) -> FloatArray:
        """Return values of a margin of the trees for all cells of a margin, folded if they agree."""
        if len(values) == 1 and not self._has_zeros:
            return values
        shape = self.unknown.cell_shape(self._reduced(margin))
        along = (*shape[: self.n_trees], *(1 for _ in self._uniform))
        along = along if len(values) > 1 else (1,) * len(shape)
        return self._restored(margin, np.broadcast_to(values.reshape(along), shape))

    def covariances(self, margin: Margin, place: int, level: int) -> FloatArray:
        """Return the covariance of each cell of a margin with the cell above it, at a level of one axis.

        Folded where all agree, and inf where cells cannot be estimated. On a uniform axis, the cells below
        one have equal covariances with it, of which the sum is its variance.
        """
        of_cells = self.variances[self.product.level_of(margin)]
        reduced, own, top = self._reduced(margin), self.order.index(place), self.axes[place].levels[level]
        if self.empty or reduced[own] == top or not np.isfinite(of_cells).all():
            return of_cells
        if own < self.n_trees:
            trees, k = reduced[: self.n_trees], reduced[self.n_trees :]
            terms = [
                self._known_terms(each, trees, self._solvers[each].covariance_terms(trees, own, top))
                for each in self._solvers
            ]
            values = self._over_classes([self._variance(each, trees, signed=True) for each in terms])[k]
        else:
            upper = (*reduced[:own], top, *reduced[own + 1 :])
            trees, k = upper[: self.n_trees], upper[self.n_trees :]
            values = self._over_classes(
                [self._variance(self._terms(each, trees), trees) for each in self._solvers]
            )[k]
            sizes = self._sizes[own - self.n_trees]
            values = values * (sizes[top] / sizes[reduced[own]])
        return self._unfolded(margin, values)

    def is_sum_of(self, margin: Margin, finer: Margin) -> bool:
        """Whether the cells of a margin are sums of those of another one, beside structural zeros."""
        return all(a <= b for a, b in zip(self._reduced(margin), self._reduced(finer), strict=True))

    def _beyond(self, reduced: Margin) -> bool:
        """Whether a margin is below all that is measured on some axis."""
        return any(level > axis.depth for level, axis in zip(reduced, self.unknown.axes, strict=True))

    def _variance(self, terms: Sequence[Term], trees: Margin, *, signed: bool = False) -> FloatArray:
        """Add up terms of the variances of the cells of a margin of the trees; inf without any."""
        total: FloatArray = np.zeros(1) if terms else np.array([np.inf])
        for factor, values in terms:
            if any(len(each) > 1 for each in values):
                sizes = (
                    axis.level_sizes[level] for axis, level in zip(self.unknown.axes, trees, strict=False)
                )
                values = [np.broadcast_to(each, size) for each, size in zip(values, sizes, strict=True)]
            total = total + factor * np.asarray(reduce(np.multiply.outer, values)).reshape(-1)
        return total if signed else np.maximum(total, 0.0)

    def _over_classes(self, of_classes: Sequence[FloatArray]) -> FloatArray:
        """Add up values of each class to those of a cell of each margin of the uniform axes."""
        shape = self._dimensions.shape
        total = np.stack(np.broadcast_arrays(*of_classes)).reshape(*shape, -1) * self._dimensions[..., None]
        for place in range(len(shape)):
            total = np.cumsum(total, axis=place)
        return np.asarray(total * (self._leaves_of_cells**2 / self._leaves_of_cells.flat[0])[..., None])

    def mean_variance(self, margin: Margin) -> float:
        """Return the mean variance of the cells of a margin that a table can show, without listing them."""
        listed = [axis.listed(level) for axis, level in zip(self.product.axes, margin, strict=True)]
        n_cells = math.prod(int(np.count_nonzero(shown)) for shown in listed)
        reduced = self._reduced(margin)
        if not n_cells or self.empty:
            return 0.0 if n_cells else math.nan
        if self._beyond(reduced):
            return math.inf
        kept = [
            shown[axis.nodes(level)] for axis, level, shown in zip(self.axes, margin, listed, strict=True)
        ]
        kept = [kept[place] for place in self.order]
        levels = tuple(margin[place] for place in self.order[: self.n_trees])
        if levels not in self._sums:
            trees = reduced[: self.n_trees]
            self._sums[levels] = self._over_classes(
                [_sum(self._terms(k, trees), kept[: self.n_trees]) for k in self._solvers]
            )
        n_uniform = math.prod(int(np.count_nonzero(flags)) for flags in kept[self.n_trees :])
        return float(self._sums[levels][reduced[self.n_trees :]][0]) * n_uniform / n_cells

    @cached_property
    def _sums(self) -> dict[Margin, FloatArray]:
        """What `mean_variance` has found for levels of the trees."""
        return {}

    # Estimates

    def estimate(self, measurements: Measurements) -> list[FloatArray | None]:
        """Return the estimates of the cells of each margin, None where it cannot be estimated."""
        if self.empty:
            return [np.zeros(size) for size in self.product.level_sizes]
        weighted = self._weighted(measurements)
        split_coarser(self.unknown, self._uniform, weighted)
        of_classes: dict[Margin, Tables] = {k: {} for k in self._solvers}
        for margin in list(weighted):
            trees, k = margin[: self.n_trees], margin[self.n_trees :]
            of_classes[k][trees] = weighted.pop(margin) / self._of_classes[margin]
        found: Tables = {}
        for k, solver in self._solvers.items():
            tables = solver.estimate(of_classes.pop(k))
            found |= {(*trees, *k): table for trees, table in self._with_known(k, tables).items()}
        add_coarser(self.unknown, self._uniform, found)
        reduced = map(self._reduced, self.product.margins)
        return [
            self._restored(margin, found[each]) if each in found else None
            for margin, each in zip(self.product.margins, reduced, strict=True)
        ]

    def _weighted(self, measurements: Measurements) -> Tables:
        """Return the measurements of each margin of `unknown`, weighted by precision."""
        found: Tables = {}
        for margin, values, precision in zip(
            self.product.margins, measurements, self.precisions, strict=True
        ):
            if precision:
                shape = self.product.cell_shape(margin)
                if values is None or values.size != math.prod(shape):
                    raise ArgumentError(
                        "measurements",
                        f"must hold {math.prod(shape)} numbers for the margin {margin}.",
                        hint="None, with the variance inf, stands for a margin that was not measured.",
                    )
                table = values.reshape(shape)
                if self._has_zeros:
                    table = table[self._nodes(margin)]
                reduced = self._reduced(margin)
                weight = precision * self._leaves_of_cells[reduced[self.n_trees :]]
                own = np.multiply(table.transpose(self.order), weight, order="C")
                own = own.reshape(self.unknown.cell_shape(reduced))
                found[reduced] = found[reduced] + own if reduced in found else own
        return found

    def _with_known(self, k: Margin, tables: Tables) -> Tables:
        """Put known counts in the place of their estimates, which differ by roundings, in a class."""
        for trees in np.ndindex(self.unknown.lattice_shape[: self.n_trees]):
            found = self._known_of(k, trees)
            if found is not None:
                _, known, level = found
                shape = self.unknown.cell_shape((*trees, *k))
                own = None if trees not in tables else tables[trees].reshape(-1)
                if own is not None or known.exact[level].all():
                    tables[trees] = np.asarray(stated(known, level, own)).reshape(shape)
        return tables

    # Structural zeros

    @property
    def _has_zeros(self) -> bool:
        return any(axis.kept is not None for axis in self.axes)

    def _nodes(self, margin: Margin) -> tuple[npt.NDArray[np.intp], ...]:
        """Return the indices of the cells of a margin that are no structural zeros."""
        pairs = zip(self.axes, margin, self.product.cell_shape(margin), strict=True)
        return np.ix_(*(np.arange(size)[axis.nodes(level)] for axis, level, size in pairs))

    def _restored(self, margin: Margin, table: FloatArray) -> FloatArray:
        """Put the axes of a table of `unknown` in order, and structural zeros in their places; flatten it."""
        table = table.transpose(np.argsort(self.order))
        if not self._has_zeros:
            return table.reshape(-1)
        full = np.zeros(self.product.cell_shape(margin))
        full[self._nodes(margin)] = table
        return full.reshape(-1)


def _sum(terms: Sequence[Term], shown: Sequence[npt.NDArray[np.bool_]]) -> FloatArray:
    """Add up the variances of the cells of a margin of the trees whose nodes are shown; inf without terms."""
    sums = (
        factor
        * math.prod(
            float(np.broadcast_to(each, flags.shape)[flags].sum())
            for each, flags in zip(values, shown, strict=True)
        )
        for factor, values in terms
    )
    return np.array([max(sum(sums), 0.0) if terms else np.inf])


def crossed_squares(product: ProductTree, variances: FloatArray, known: CrossedKnown) -> CrossedSquares:
    """Return the exact least squares of margins that are measured with noise of these variances.

    The variances have shape (n_margins,), inf where nothing is measured; what they are where all cells of a
    margin are known does not matter. Raises an ArgumentError if no exact estimate is known for them.
    """
    given = np.asarray(variances, dtype=np.float64)
    with np.errstate(divide="ignore"):
        precisions = np.where(known.levels, 0.0, 1 / given)
    used = precisions.reshape(product.lattice_shape) > 0
    axes, empty = [], any(zeros.all() for zeros in known.zeros)
    for place, (axis, zeros, own) in enumerate(zip(product.axes, known.zeros, known.axes, strict=True)):
        others = tuple(each for each in range(used.ndim) if each != place)
        needed = used.any(axis=others) | np.array([exact.all() for exact in own.exact])
        axes.append(UnknownAxis.of(axis, zeros, needed))
    total_axis = known.total_axis
    trees = [place for place, axis in enumerate(axes) if place == total_axis or not axis.tree.is_uniform] or [
        max(range(len(axes)), key=lambda place: axes[place].tree.n_leaves)
    ]
    order = (*trees, *(place for place in range(len(axes)) if place not in trees))
    totals = None
    if total_axis is not None:
        totals = (order.index(total_axis), axes[total_axis].known(known.axes[total_axis]))
    unknown = ProductTree(tuple(axes[place].tree for place in order))
    return CrossedSquares(product, precisions, tuple(axes), order, len(trees), unknown, totals, empty)
