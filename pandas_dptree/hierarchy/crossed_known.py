"""Counts of crossed hierarchies that are public beforehand: totals on one axis, and structural zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import Margin, ProductTree
from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["CrossedKnown"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class CrossedKnown:
    """What is known of each axis, and what follows for the cells of every margin.

    A node of an axis that is known to be empty makes a whole slice empty: a structural zero. Other counts
    are known of the nodes of one axis at most, over all others together.

    Attributes
    ----------
    product : ProductTree
    axes : tuple of Known
        For each axis the counts that are known of its own nodes.
    """

    product: ProductTree
    axes: tuple[Known, ...]

    def __post_init__(self) -> None:
        """Check that counts are known on one axis at most, and that there are no lower bounds."""
        totals = [axis for axis in self.axes if _has_totals(axis)]
        if len(totals) > 1:
            raise ArgumentError(
                "known",
                "holds counts of more than one axis.",
                hint="state those of one axis; structural zeros may be on all of them.",
            )

    @classmethod
    def nothing(cls, product: ProductTree) -> CrossedKnown:
        """Make one without any known count."""
        return cls(product, tuple(map(Known.nothing, product.axes)))

    @property
    def total_axis(self) -> int | None:
        """The axis on which counts other than 0 are known; None if there is none."""
        return next((place for place, axis in enumerate(self.axes) if _has_totals(axis)), None)

    @property
    def zeros(self) -> tuple[BoolArray, ...]:
        """For each axis, which of its leaves are structural zeros: shape (n_leaves,)."""
        return tuple(
            np.broadcast_to(_empty(known, axis.depth), axis.n_leaves)
            for known, axis in zip(self.axes, self.product.axes, strict=True)
        )

    @cached_property
    def exact(self) -> tuple[BoolArray, ...]:
        """For each margin, whether the count of a cell is known; folded where none is."""
        return tuple(exact for exact, _ in self._margins)

    @cached_property
    def least(self) -> tuple[IntArray, ...]:
        """For each margin, the counts that are known, and 0 for others; folded where none is."""
        return tuple(least for _, least in self._margins)

    @property
    def levels(self) -> BoolArray:
        """For each margin, whether all its cells are known, so that it need not be measured."""
        return np.array([exact.all() for exact in self.exact])

    @cached_property
    def _margins(self) -> list[tuple[BoolArray, IntArray]]:
        return [self._of_margin(margin) for margin in self.product.margins]

    def _of_margin(self, margin: Margin) -> tuple[BoolArray, IntArray]:
        shape = self.product.cell_shape(margin)
        empty = [_empty(known, level) for known, level in zip(self.axes, margin, strict=True)]
        exact = np.zeros(1, dtype=bool)
        if any(flags.any() for flags in empty):
            flags = [np.broadcast_to(flags, size) for flags, size in zip(empty, shape, strict=True)]
            exact = np.asarray(reduce(np.logical_or.outer, flags)).reshape(-1)
        least = np.zeros(len(exact), dtype=np.int64)
        for place, (known, level) in enumerate(zip(self.axes, margin, strict=True)):
            others = shape[:place] + shape[place + 1 :]
            if all(size == 1 for size in others) and known.exact[level].any():
                counts = np.where(known.exact[level], known.least[level], 0)
                exact, least = exact | known.exact[level], np.maximum(least, counts)
        return exact, np.broadcast_to(least, exact.shape)

    def to_dict(self) -> list[Any]:
        """Serialize what is known of each axis, as `Known.to_dict`."""
        return [axis.to_dict() for axis in self.axes]

    @classmethod
    def from_dict(cls, product: ProductTree, data: Sequence[Any]) -> CrossedKnown:
        """Restore what `to_dict` serialized for the same product."""
        axes = zip(product.axes, data, strict=True)
        return cls(product, tuple(Known.from_dict(tree, each) for tree, each in axes))


def _empty(known: Known, level: int) -> BoolArray:
    """Whether each node of a level is known to be empty."""
    return np.asarray(known.exact[level] & (known.least[level] == 0))


def _has_totals(known: Known) -> bool:
    """Whether a count other than 0 is known, or a lower bound."""
    return any(bool(least.any()) for least in known.least)
