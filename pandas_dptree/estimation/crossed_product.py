r"""Least squares of crossed hierarchies, for noise whose variances are a product over the axes.

If the precision of each margin is :math:`p_\ell = \prod_d p_d(\ell_d)`, the information matrix of the leaf
cells is the Kronecker product of those of the axes, and so is its inverse: one pass of least squares along
each axis is the exact estimate, and its covariance is :math:`V = \bigotimes_d V_d`. Two things may be known
beside that.

*A more precise grand total*, by e. The information matrix gains :math:`e 1 1^\top`. With :math:`o = V 1`, the
product of the covariances :math:`o_d` of the nodes of each axis with its root, Sherman and Morrison give

.. math:: \hat x = x + \frac{e\,(y_0 - 1^\top x)}{1 + e\,1^\top o}\,o, \qquad
          \mathrm{Var} = V - \frac{e}{1 + e\,1^\top o}\,o o^\top.

*Totals of nodes of one axis A*, over all others, B. The estimate is conditioned on
:math:`(S_A \otimes 1^\top) x = t`. With :math:`P_A = V_A S_A^\top (S_A V_A S_A^\top)^{-1} S_A V_A` and
:math:`P_B = o_B o_B^\top / 1^\top o_B`,

.. math:: \hat x = x + (a' - a) \otimes \frac{o_B}{1^\top o_B}, \qquad
          \mathrm{Var} = V_A \otimes V_B - P_A \otimes P_B,

where a and a' are the estimates of A's leaves over all of B, without and with what is known, and
:math:`V_A - P_A` is the covariance of a'. (A known level is not measured. Any measurement of it beside an
exact constraint is irrelevant, so the known values are put in its place.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import (
    FloatArray,
    Measurements,
    Variances,
    least_squares,
    propagate,
)
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import Margin, ProductTree
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["ProductSquares", "factors_of"]

OfAxes = Sequence[Sequence[FloatArray]]
"""Level values of each axis."""

_TOLERANCE = 1e-7
"""How far, relatively, the variance of a margin may be from the product."""


def factors_of(lattice: FloatArray, free: npt.NDArray[np.bool_]) -> tuple[list[FloatArray], float] | None:
    """Write variances of all margins as a product over the axes, and a precision beside that of the total.

    Those of margins that are `free` are ignored. None if there is no such product, of which the last level of
    each axis is measured.
    """
    known = ~free & np.isfinite(lattice)
    leaf = (-1,) * lattice.ndim
    if not known[leaf]:
        return None
    factors = []
    for place, size in enumerate(lattice.shape):
        ratios = np.full(size, np.inf)
        for level in range(size):
            here = np.moveaxis(lattice, place, 0)
            flags = np.moveaxis(known, place, 0)
            both = np.array(flags[level] & flags[-1])
            both[(0,) * both.ndim] &= level > 0 or size == 1  # the grand total may be more precise
            found = np.argwhere(both)
            if len(found):
                at = tuple(found[-1])
                ratios[level] = here[level][at] / here[-1][at]
        factors.append(ratios)
    factors[0] = factors[0] * lattice[leaf]
    whole = reduce(np.multiply.outer, factors)
    differs = ~free & ~_close(whole, lattice)
    total = (0,) * lattice.ndim
    extra = 0.0
    if differs[total] and lattice[total] < whole[total]:
        extra = 1 / lattice[total] - 1 / whole[total]
        differs[total] = False
    return None if differs.any() else (factors, float(extra))


def _close(first: FloatArray, second: FloatArray) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray((first == second) | (np.abs(first - second) <= _TOLERANCE * np.abs(second)))


@dataclass(frozen=True, eq=False)
class ProductSquares:
    """Least squares for variances that are a product of `factors`, one for each level of each axis.

    `extra` is the precision of the grand total beside its product, and `known` what is known of the nodes of
    one axis, by its place.
    """

    product: ProductTree
    factors: Sequence[FloatArray]
    extra: float = 0.0
    known: tuple[int, Known] | None = None

    @cached_property
    def of_axes(self) -> list[Variances]:
        """Variances of the two passes along each axis."""
        return [
            propagate(axis, list(factor[:, None]))
            for axis, factor in zip(self.product.axes, self.factors, strict=True)
        ]

    @cached_property
    def _conditioned(self) -> Variances | None:
        """The variances of the axis on which counts are known, over all others."""
        if self.known is None:
            return None
        place, known = self.known
        factor = self.factors[place]
        noise = [np.where(exact, 0.0, v) for exact, v in zip(known.exact, factor[:, None], strict=True)]
        return propagate(self.product.axes[place], noise)

    @cached_property
    def _with_root(self) -> list[list[FloatArray]]:
        """Covariance of the nodes of each axis with its root."""
        pairs = zip(self.product.axes, self.of_axes, strict=True)
        return [_covariances_with_root(*each) for each in pairs]

    @cached_property
    def _with_total(self) -> list[list[FloatArray]]:
        """Factors of the covariance of each cell with the grand total."""
        factors = list(self._with_root)
        if self.known is not None and self._conditioned is not None:
            place, _ = self.known
            factors[place] = _covariances_with_root(self.product.axes[place], self._conditioned)
        return factors

    @property
    def _gain(self) -> float:
        """The e / (1 + e 1'o) of the module's notes."""
        root = float(np.prod([factor[0][0] for factor in self._with_total]))
        return self.extra / (1 + self.extra * root)

    @cached_property
    def terms(self) -> list[tuple[float, OfAxes]]:
        """The terms of the variances of all cells: a factor, and values of each axis to be multiplied."""
        final = [each.final for each in self.of_axes]
        terms: list[tuple[float, OfAxes]] = [(1.0, final)]
        if self.known is not None and self._conditioned is not None:
            place, _ = self.known
            projected: list[Sequence[FloatArray]] = [
                [square**2 / root[0][0] for square in root] for root in self._with_root
            ]
            projected[place] = [
                np.maximum(own - left, 0.0)
                for own, left in zip(final[place], self._conditioned.final, strict=True)
            ]
            terms.append((-1.0, projected))
        if self.extra:
            terms.append((-self._gain, [[each**2 for each in levels] for levels in self._with_total]))
        return terms

    def variance(self, margin: Margin) -> FloatArray:
        """Return the variance of the estimates of the cells of a margin, folded where all agree."""
        terms = (factor * self.product.outer(of_axes, margin) for factor, of_axes in self.terms)
        return np.maximum(reduce(np.add, terms), 0.0)

    def leaves(self, measurements: Measurements) -> FloatArray:
        """Return the estimates of the leaf cells, in the shape of the axes."""
        product = self.product
        tables = {
            margin: values.reshape(product.cell_shape(margin))
            for margin, values in zip(product.margins, measurements, strict=True)
            if values is not None
        }
        total = tables.get(product.margins[0])
        order = list(range(len(product.axes)))
        if self.known is not None:  # its axis comes last, when all others are settled
            order.append(order.pop(self.known[0]))
        for place in order[:-1]:
            tables = self._pass(place, tables)
        leaves = self._last_pass(order[-1], tables)
        if self.extra and total is not None:
            missing = float(total.reshape(-1)[0]) - leaves.sum()
            of_leaves = product.outer(self._with_total, product.margins[-1])
            leaves = leaves + self._gain * missing * np.broadcast_to(of_leaves, product.n_leaves).reshape(
                product.leaf_shape
            )
        return leaves

    def _levels(
        self, place: int, tables: dict[Margin, npt.NDArray[Any]], rest: Margin
    ) -> list[npt.NDArray[Any] | None]:
        """Return the tables of the levels of an axis beside given levels of the others, that axis first."""
        margins = (
            (*rest[:place], level, *rest[place:]) for level in range(self.product.lattice_shape[place])
        )
        found = (tables.get(margin) for margin in margins)
        finite = np.isfinite(self.factors[place])
        return [
            None if table is None or not measured else np.moveaxis(table, place, 0)
            for table, measured in zip(found, finite, strict=True)
        ]

    def _pass(self, place: int, tables: dict[Margin, npt.NDArray[Any]]) -> dict[Margin, npt.NDArray[Any]]:
        """Turn the tables of all levels of an axis into estimates of its leaves."""
        axis, variances = self.product.axes[place], self.of_axes[place]
        done: dict[Margin, npt.NDArray[Any]] = {}
        for rest in dict.fromkeys((*margin[:place], *margin[place + 1 :]) for margin in tables):
            levels = self._levels(place, tables, rest)
            if levels[-1] is not None:
                leaves = least_squares(axis, levels, variances)[-1]
                done[(*rest[:place], axis.depth, *rest[place:])] = np.moveaxis(leaves, 0, place)
        return done

    def _last_pass(self, place: int, tables: dict[Margin, npt.NDArray[Any]]) -> FloatArray:
        """Return the estimates of the leaf cells from those of the leaves of all axes but one."""
        axis, variances = self.product.axes[place], self.of_axes[place]
        ground = self.product.margins[-1]
        rest = (*ground[:place], *ground[place + 1 :])
        levels = self._levels(place, tables, rest)
        leaves = least_squares(axis, levels, variances)[-1]
        if self.known is not None and self._conditioned is not None:
            over_others = tuple(range(1, leaves.ndim))
            totals = [None if level is None else level.sum(axis=over_others) for level in levels]
            stated = [
                np.where(exact, least, 0.0 if own is None else own)
                if exact.any() or own is not None
                else None
                for exact, least, own in zip(self.known[1].exact, self.known[1].least, totals, strict=True)
            ]
            given = [
                None if own is None else np.broadcast_to(own, size)
                for own, size in zip(stated, axis.level_sizes, strict=True)
            ]
            known = least_squares(axis, given, self._conditioned)[-1]
            others = [each for each in range(len(self.product.axes)) if each != place]
            weights = [
                np.broadcast_to(self._with_root[each][-1], self.product.axes[each].n_leaves)
                / self._with_root[each][0][0]
                for each in others
            ]
            correction = known - leaves.sum(axis=over_others)
            leaves = leaves + reduce(np.multiply.outer, [correction, *weights])
        return np.moveaxis(leaves, 0, place)


def _covariances_with_root(axis: Tree, variances: Variances) -> list[FloatArray]:
    """Return the covariance of the estimate of each node with that of the root.

    The root is a function of a child c and its siblings through their sum S alone, of which
    :math:`z_c - (V_c / V_S) S` is independent: so the covariance of c is that of its parent times
    :math:`V_c / V_S`.
    """
    covariances = [variances.final[0]]
    for level in range(axis.depth):
        below = axis.spread(level, variances.children[level])
        with np.errstate(invalid="ignore"):
            ratio = np.where(below > 0, variances.subtree[level + 1] / below, 0.0)
        covariances.append(ratio * axis.spread(level, covariances[level]))
    return covariances
