r"""Least squares of trees that share their root: one-way tables of several axes, of which the total is one.

The subtrees below the root are independent. So the root is the average of its own measurement and of what the
levels below say about it in each tree, by their precisions; and to one tree, all others are a more precise
measurement of its root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pandas_dptree.estimation.covariance import covariances_with_level
from pandas_dptree.estimation.least_squares import (
    FloatArray,
    Variances,
    least_squares,
    propagate,
    subtree_estimates,
)
from pandas_dptree.estimation.residual_classes import Tables
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import Margin
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["GluedTrees", "Term", "stated"]

Term = tuple[float, Sequence[FloatArray]]
"""A factor, and values of the nodes of each axis at some level, whose product is a part of a variance."""


def stated(known: Known | None, level: int, table: FloatArray | None) -> FloatArray | None:
    """Put the known counts of a level in their places, beside 0 where nothing is measured."""
    if known is None or not known.exact[level].any():
        return table
    shape = known.exact[level].shape if table is None else table.shape
    along = (-1, *(1,) * (len(shape) - 1))
    own = np.zeros(shape) if table is None else table
    return np.where(known.exact[level].reshape(along), known.least[level].reshape(along), own)


@dataclass(frozen=True, eq=False)
class GluedTrees:
    """Least squares where each margin that is measured is above the root of one tree at most.

    `precisions` are those of all margins of the trees, 0 where nothing is measured; `known` says what is
    known of the nodes of one tree, by its place.
    """

    trees: Sequence[Tree]
    precisions: FloatArray
    known: tuple[int, Known] | None = None

    @staticmethod
    def fits(precisions: FloatArray) -> bool:
        """Whether all margins that are measured are of one tree, its root, or the root that all share."""
        return bool((np.count_nonzero(np.argwhere(precisions), axis=1) <= 1).all())

    def _known(self, place: int) -> Known | None:
        return self.known[1] if self.known is not None and self.known[0] == place else None

    @property
    def _total(self) -> int | None:
        """The count of the root, if it is known."""
        if self.known is None or not self.known[1].exact[0][0]:
            return None
        return int(self.known[1].least[0][0])

    @cached_property
    def _noise(self) -> list[list[FloatArray]]:
        """Noise variances of the levels of each tree below the root, to the last that can be estimated."""
        found = []
        for place, tree in enumerate(self.trees):
            known, levels, depth = self._known(place), [], 0
            for level in range(1, tree.depth + 1):
                precision = float(self.precisions[self._margin(place, level)])
                noise = np.array([1 / precision if precision else np.inf])
                if known is not None and known.exact[level].any():
                    noise = np.where(known.exact[level], 0.0, noise)
                levels.append(noise)
                depth = level if np.isfinite(noise).all() else depth
            found.append(levels[:depth])
        return found

    @cached_property
    def _cut(self) -> list[Tree]:
        return [tree.truncated(len(levels)) for tree, levels in zip(self.trees, self._noise, strict=True)]

    def _margin(self, place: int, level: int) -> Margin:
        return tuple(level if each == place else 0 for each in range(len(self.trees)))

    @cached_property
    def _below(self) -> list[Variances]:
        """Variances of the passes along each tree, its root not measured."""
        pairs = zip(self._cut, self._noise, strict=True)
        return [propagate(tree, [np.array([np.inf]), *levels]) for tree, levels in pairs]

    @cached_property
    def _precisions_of_root(self) -> FloatArray:
        """What is measured of the root itself, then what each tree says about it."""
        own = float(self.precisions.reshape(-1)[0])
        if self._total is not None:
            return np.array([own] + [0.0] * len(self.trees))
        return np.array([own, *(1 / float(each.subtree[0][0]) for each in self._below)])

    @cached_property
    def _variances(self) -> list[Variances]:
        """Variances of the passes along each tree, its root measured with all that others say about it."""
        found = []
        for place, (tree, levels) in enumerate(zip(self._cut, self._noise, strict=True)):
            others = float(np.delete(self._precisions_of_root, place + 1).sum())
            noise = 0.0 if self._total is not None else 1 / others if others else np.inf
            found.append(propagate(tree, [np.array([noise]), *levels]))
        return found

    def terms(self, margin: Margin) -> list[Term]:
        """Return the variances of the cells of a margin; nothing if it cannot be estimated."""
        above = [place for place, level in enumerate(margin) if level]
        place = above[0] if above else 0
        if len(above) > 1 or margin[place] > len(self._noise[place]):
            return []
        final = self._variances[place].final[margin[place]]
        ones: list[FloatArray] = [np.ones(1)] * len(margin)
        ones[place] = final
        return [(1.0, ones)] if np.isfinite(final).all() else []

    def covariance_terms(self, margin: Margin, place: int, level: int) -> list[Term]:
        """Return the terms of the covariances of cells with those above them at a level of one axis."""
        terms = self.terms(margin)
        if not terms:
            return []
        ones: list[FloatArray] = [np.ones(1)] * len(margin)
        above = covariances_with_level(self._cut[place], self._variances[place], level)
        ones[place] = above[margin[place] - level]
        return [(1.0, ones)]

    def estimate(self, tables: Tables) -> Tables:
        """Return the estimates of all margins that have one; tables may have further axes after the trees."""
        beyond = next(iter(tables.values())).shape[len(self.trees) :] if tables else ()
        levels = [self._levels(place, tables) for place in range(len(self.trees))]
        own = tables.get(self._margin(0, 0))
        said = [np.zeros(1) if own is None else own.reshape(1, -1)]
        for tree, below, given in zip(self._cut, self._below, levels, strict=True):
            said.append(subtree_estimates(tree, [None, *given], below)[0][0] if given else np.zeros(1))
        found: Tables = {}
        for place, (tree, variances, given) in enumerate(
            zip(self._cut, self._variances, levels, strict=True)
        ):
            root = self._root(place, said)
            if np.isfinite(variances.final[0]).all():
                for level, values in enumerate(least_squares(tree, [root, *given], variances)):
                    shape = [1] * len(self.trees)
                    shape[place] = len(values)
                    found[self._margin(place, level)] = values.reshape(*shape, *beyond)
        return found

    def _levels(self, place: int, tables: Tables) -> list[FloatArray | None]:
        """Return what is measured or known of the levels of a tree below its root, the nodes first."""
        found = []
        for level in range(1, len(self._noise[place]) + 1):
            table = tables.get(self._margin(place, level))
            given = None if table is None else table.reshape(self.trees[place].level_sizes[level], -1)
            given = stated(self._known(place), level, given)
            found.append(given if given is None or given.ndim == 2 else given[:, None])
        return found

    def _root(self, place: int, said: Sequence[FloatArray]) -> FloatArray | None:
        """Return the average of what is said about the root, but for what one tree says itself."""
        if self._total is not None:
            return np.full((1, 1), float(self._total))
        precisions = self._precisions_of_root.copy()
        precisions[place + 1] = 0.0
        if not precisions.any():
            return None
        weighted = sum(
            precision * values for precision, values in zip(precisions, said, strict=True) if precision
        )
        return np.asarray(weighted / precisions.sum())
