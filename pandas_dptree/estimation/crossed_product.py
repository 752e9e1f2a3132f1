r"""Least squares of crossed hierarchies, for noise whose variances are a product over the axes.

If the precision of each margin is :math:`p_\ell = \prod_d p_d(\ell_d)`, the information matrix of the leaf
cells is the Kronecker product of those of the axes, and so is its inverse: one pass of least squares along
each axis is the exact estimate, and its covariance is :math:`V = \bigotimes_d V_d`. Two things may be known
beside that.

*A more (or less) precise grand total*, by e. The information matrix gains :math:`e 1 1^\top`. With
:math:`o = V 1`, the product of the covariances :math:`o_d` of the nodes of each axis with its root, Sherman
and Morrison give

.. math:: \hat x = x + \frac{e\,(y_0 - 1^\top x)}{1 + e\,1^\top o}\,o, \qquad
          \mathrm{Var} = V - \frac{e}{1 + e\,1^\top o}\,o o^\top.

*Totals of nodes of one axis A*, over all others, B. The estimate is conditioned on
:math:`(S_A \otimes 1^\top) x = t`. With :math:`P_A = V_A S_A^\top (S_A V_A S_A^\top)^{-1} S_A V_A` and
:math:`P_B = o_B o_B^\top / 1^\top o_B`,

.. math:: \hat x = x + (a' - a) \otimes \frac{o_B}{1^\top o_B}, \qquad
          \mathrm{Var} = V_A \otimes V_B - P_A \otimes P_B,

where a and a' are the estimates of A's leaves over all of B, without and with what is known, and
:math:`V_A - P_A` is the covariance of a'. (Where all nodes of a level of A are known, a measurement of them
is irrelevant, of whatever precision: the known counts are put in its place.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.covariance import covariances_with_level
from pandas_dptree.estimation.glued_trees import Term, stated
from pandas_dptree.estimation.least_squares import FloatArray, Variances, least_squares, propagate
from pandas_dptree.estimation.residual_classes import Tables
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import Margin, ProductTree
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["ProductSquares", "factors_of"]

_TOLERANCE = 1e-7
"""How far, relatively, the precision of a margin may be from the product: as far variances may be off."""


def factors_of(precisions: FloatArray, free: npt.NDArray[np.bool_]) -> tuple[list[FloatArray], float] | None:
    """Write precisions of all margins as a product over the axes, but for the grand total's excess.

    Those of margins that are `free` are ignored. None if there is no such product. The last margin is
    measured.
    """
    counted = ~free
    counted[(0,) * counted.ndim] = False
    factors = []
    for place, size in enumerate(precisions.shape):
        along, flags = np.moveaxis(precisions, place, 0), np.moveaxis(counted, place, 0)
        ratios = np.zeros(size)
        for level in range(size):
            both = np.argwhere(flags[level] & flags[-1] & (along[-1] > 0))
            if len(both):
                at = tuple(both[-1])
                ratios[level] = along[level][at] / along[-1][at]
        factors.append(ratios)
    factors[0] = factors[0] * precisions[(-1,) * precisions.ndim]
    whole = reduce(np.multiply.outer, factors)
    if (np.abs(whole - precisions) > _TOLERANCE * whole)[counted].any():
        return None
    own = float(whole.reshape(-1)[0])
    extra = 0.0 if free.reshape(-1)[0] else float(precisions.reshape(-1)[0]) - own
    return factors, extra if abs(extra) > _TOLERANCE * own else 0.0


@dataclass(frozen=True, eq=False)
class ProductSquares:
    """Least squares for precisions that are a product of `factors`, one for each level of each axis.

    `extra` is the precision of the grand total beside its product, and `known` what is known of the nodes of
    one axis, by its place. The last level of each axis is measured.
    """

    product: ProductTree
    factors: Sequence[FloatArray]
    extra: float = 0.0
    known: tuple[int, Known] | None = None

    @classmethod
    def of(
        cls, trees: Sequence[Tree], precisions: FloatArray, known: tuple[int, Known] | None
    ) -> ProductSquares | None:
        """Find the factors of precisions of margins; None if they are no product."""
        top = np.argwhere(precisions).max(axis=0)
        cut = precisions[tuple(slice(level + 1) for level in top)]
        free = np.zeros(cut.shape, dtype=bool)
        if known is not None:
            place, counts = known
            along = np.array([exact.all() for exact in counts.exact[: top[place] + 1]])
            free[tuple(slice(None) if each == place else 0 for each in range(free.ndim))] = along
        found = factors_of(cut, free)
        if found is None:
            return None
        axes = (tree.truncated(int(level)) for tree, level in zip(trees, top, strict=True))
        return cls(ProductTree(tuple(axes)), *found, known)

    def _noise(self, place: int) -> list[FloatArray]:
        with np.errstate(divide="ignore"):
            return list(1 / self.factors[place][:, None])

    @cached_property
    def _of_axes(self) -> list[Variances]:
        """Variances of the two passes along each axis."""
        return [propagate(axis, self._noise(place)) for place, axis in enumerate(self.product.axes)]

    @cached_property
    def _conditioned(self) -> Variances | None:
        """The variances of the axis on which counts are known, over all others."""
        if self.known is None:
            return None
        place, known = self.known
        noise = [
            np.where(exact, 0.0, own) if exact.any() else own
            for exact, own in zip(known.exact, self._noise(place), strict=False)
        ]
        return propagate(self.product.axes[place], noise)

    @cached_property
    def _with_root(self) -> list[list[FloatArray]]:
        """Covariance of the nodes of each axis with its root."""
        pairs = zip(self.product.axes, self._of_axes, strict=True)
        return [covariances_with_level(*each, 0) for each in pairs]

    @cached_property
    def _with_total(self) -> list[list[FloatArray]]:
        """Factors of the covariance of each cell with the grand total."""
        factors = list(self._with_root)
        if self.known is not None and self._conditioned is not None:
            place, _ = self.known
            factors[place] = covariances_with_level(self.product.axes[place], self._conditioned, 0)
        return factors

    @property
    def _gain(self) -> float:
        """The e / (1 + e 1'o) of the module's notes."""
        root = float(np.prod([factor[0][0] for factor in self._with_total]))
        return self.extra / (1 + self.extra * root)

    @cached_property
    def _terms(self) -> list[tuple[float, list[Sequence[FloatArray]]]]:
        """The terms of the variances of all cells: a factor, and values of each axis to be multiplied."""
        final: list[Sequence[FloatArray]] = [each.final for each in self._of_axes]
        terms = [(1.0, final)]
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

    def terms(self, margin: Margin) -> list[Term]:
        """Return the terms of the variances of the cells of a margin; nothing if it cannot be estimated."""
        if any(level > axis.depth for level, axis in zip(margin, self.product.axes, strict=True)):
            return []
        return [
            (factor, [values[level] for values, level in zip(of_axes, margin, strict=True)])
            for factor, of_axes in self._terms
        ]

    def covariance_terms(self, margin: Margin, place: int, level: int) -> list[Term]:
        """Return the terms of the covariances of cells with those above them at a level of one axis."""
        axis, depth = self.product.axes[place], margin[place]

        def of_axis(variances: Variances) -> FloatArray:
            return covariances_with_level(axis, variances, level)[depth - level]

        def with_above(values: Sequence[FloatArray]) -> FloatArray:
            above = values[level]
            for each in range(level, depth):
                above = axis.spread(each, above)
            return values[depth] * above

        terms = self.terms(margin)
        factors = [of_axis(self._of_axes[place])] if terms else []
        if terms and self.known is not None and self._conditioned is not None:
            factors.append(
                factors[0] - of_axis(self._conditioned)
                if place == self.known[0]
                else with_above(self._with_root[place]) / self._with_root[place][0][0]
            )
        if terms and self.extra:
            factors.append(with_above(self._with_total[place]))
        return [
            (factor, [*values[:place], own, *values[place + 1 :]])
            for (factor, values), own in zip(terms, factors, strict=True)
        ]

    def estimate(self, tables: Tables) -> Tables:
        """Return the estimates of all margins that have one; tables may have further axes after the trees."""
        tables = self._completed(tables)
        counted = tuple(range(len(self.product.axes)))
        total = tables[self.product.margins[0]].sum(axis=counted) if self.extra else 0.0
        order = list(counted)
        if self.known is not None:  # its axis comes last
            order.append(order.pop(self.known[0]))
        for place in order:
            tables = self._pass(place, tables)
        leaves = tables[self.product.margins[-1]]
        if self.extra:
            missing = total - leaves.sum(axis=counted)
            leaves = leaves + self._gain * np.multiply.outer(self._leaves_with_total, missing)
        return self.product.sum_margins(leaves, self.product.margins)

    def _completed(self, tables: Tables) -> Tables:
        """Add what the product has beyond what is measured: known counts, and a total of no weight."""
        n_axes = len(self.product.axes)
        beyond = next(iter(tables.values())).shape[n_axes:]
        completed = {self.product.margins[0]: np.zeros((1,) * n_axes + beyond), **tables}
        if self.known is not None:
            place, known = self.known
            for level in range(self.product.axes[place].depth + 1):
                if known.exact[level].all():
                    margin = tuple(level if each == place else 0 for each in range(n_axes))
                    counts = known.least[level].astype(np.float64)
                    completed[margin] = counts.reshape(*self.product.cell_shape(margin), *beyond)
        return completed

    @property
    def _leaves_with_total(self) -> FloatArray:
        """The covariances of the leaf cells with the grand total."""
        pairs = zip(self._with_total, self.product.leaf_shape, strict=True)
        return np.asarray(
            reduce(np.multiply.outer, [np.broadcast_to(levels[-1], size) for levels, size in pairs])
        )

    def _pass(self, place: int, tables: Tables) -> Tables:
        """Turn the tables of all levels of an axis into estimates of its leaves."""
        axis, done = self.product.axes[place], {}
        for rest in dict.fromkeys((*margin[:place], *margin[place + 1 :]) for margin in tables):
            margins = [(*rest[:place], level, *rest[place:]) for level in range(axis.depth + 1)]
            levels = [
                np.moveaxis(tables[margin], place, 0) if margin in tables and factor else None
                for margin, factor in zip(margins, self.factors[place], strict=True)
            ]
            if levels[-1] is not None:
                leaves = least_squares(axis, levels, self._of_axes[place])[-1]
                if self.known is not None and self.known[0] == place:
                    leaves = self._with_known(levels, leaves)
                done[margins[-1]] = np.moveaxis(leaves, 0, place)
        return done

    def _with_known(self, levels: Sequence[FloatArray | None], leaves: FloatArray) -> FloatArray:
        """Correct the leaf cells, the axis on which counts are known first, for what is known."""
        assert self.known is not None
        assert self._conditioned is not None
        place, known = self.known
        axis, over_others = self.product.axes[place], tuple(range(1, leaves.ndim))
        totals = [
            stated(known, level, None if table is None else table.sum(axis=over_others))
            for level, table in enumerate(levels)
        ]
        correction = least_squares(axis, totals, self._conditioned)[-1] - leaves.sum(axis=over_others)
        parts = [correction]
        for other, size in enumerate(self.product.leaf_shape):
            if other != place:
                root = self._with_root[other]
                parts.append(np.broadcast_to(root[-1] / root[0][0], size))
        return np.asarray(leaves + reduce(np.multiply.outer, parts).reshape(leaves.shape))
