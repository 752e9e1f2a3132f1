"""The shape of crossed hierarchies: every margin of a product of trees, without labels.

A *margin* takes one level of each tree, the *axes*, and has a cell for each combination of their nodes. The
margins of all combinations of levels are the *lattice*; they are the levels of this shape, in lexicographic
order, so the first is the grand total, and the last has the leaf cells. The cells of a margin are stored in C
order, the nodes of the last axis varying fastest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.shape import Shape, Values
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["Margin", "ProductTree", "spread_along", "sum_along"]

Margin = tuple[int, ...]
"""The level of each axis."""


@dataclass(frozen=True, eq=False, repr=False)
class ProductTree(Shape):
    """All margins of a product of trees, of which a table shows some.

    Parameters
    ----------
    axes : tuple of Tree
        At least one; an axis of depth 0 has one node.
    shown : tuple of tuple of int, optional
        The margins that a table shows, in lexicographic order; by default all.

    Examples
    --------
    >>> product = ProductTree((Tree.from_branching([2]), Tree.from_branching([3])))
    >>> product.margins, product.level_sizes
    (((0, 0), (0, 1), (1, 0), (1, 1)), (1, 3, 2, 6))
    >>> [margin.tolist() for margin in product.roll_up(np.arange(6))]
    [[15], [3, 5, 7], [3, 12], [0, 1, 2, 3, 4, 5]]
    """

    axes: tuple[Tree, ...]
    shown: tuple[Margin, ...] = None  # type: ignore[assignment]  # all, filled in below

    def __post_init__(self) -> None:
        """Check the axes and the margins."""
        if not self.axes or any(axis.n_roots != 1 for axis in self.axes):
            raise ArgumentError(
                "axes", "must be trees, at least one.", hint="for example Tree.from_branching([2, 3])."
            )
        shown = self.margins if self.shown is None else tuple(self.shown)
        if not shown or list(shown) != sorted(set(shown) & set(self.margins)):
            raise ArgumentError(
                "shown",
                "must list margins in lexicographic order: the level of each axis, at least one margin.",
                hint="leave it out to show all.",
            )
        object.__setattr__(self, "shown", shown)

    @property
    def lattice_shape(self) -> tuple[int, ...]:
        """Number of levels of each axis: numbers of all margins, in order, can be reshaped to it."""
        return tuple(axis.depth + 1 for axis in self.axes)

    @cached_property
    def margins(self) -> tuple[Margin, ...]:
        """All margins, in lexicographic order."""
        return tuple(itertools.product(*map(range, self.lattice_shape)))

    def level_of(self, margin: Margin) -> int:
        """Return the position of a margin among all of them."""
        return int(np.ravel_multi_index(margin, self.lattice_shape))

    def cell_shape(self, margin: Margin) -> tuple[int, ...]:
        """Return the number of nodes of each axis in a margin."""
        return tuple(axis.level_sizes[level] for axis, level in zip(self.axes, margin, strict=True))

    @property
    def leaf_shape(self) -> tuple[int, ...]:
        """Number of leaves of each axis."""
        return self.cell_shape(self.margins[-1])

    @cached_property
    def level_sizes(self) -> tuple[int, ...]:
        """Number of cells of each margin, those of no table included."""
        return tuple(math.prod(self.cell_shape(margin)) for margin in self.margins)

    def roll_up(self, leaf_values: npt.ArrayLike) -> tuple[Values, ...]:
        """Sum leaf cells, shape (n_leaves,), into the cells of every margin, each of shape (n_cells,)."""
        leaves = np.asarray(leaf_values)
        if leaves.shape != (self.n_leaves,):
            raise ArgumentError(
                "leaf_values",
                f"must have shape ({self.n_leaves},), not {leaves.shape}.",
                hint="pass one value per leaf cell, in C order of the axes.",
            )
        tables = self.sum_margins(leaves.reshape(self.leaf_shape), self.margins)
        return tuple(tables[margin].reshape(-1) for margin in self.margins)

    def sum_margins(
        self, table: npt.NDArray[Any], wanted: Iterable[Margin]
    ) -> dict[Margin, npt.NDArray[Any]]:
        """Sum a table of the leaf cells, shape `leaf_shape`, into some margins, each from a smallest one."""
        tables = {self.margins[-1]: table}
        for margin in sorted(wanted, reverse=True, key=sum):
            if margin not in tables:
                finer = [each for each in tables if all(map(int.__ge__, each, margin))]
                source = min(finer, key=lambda each: tables[each].size)
                tables[margin] = self._summed(tables[source], source, margin)
        return tables

    def _summed(self, table: npt.NDArray[Any], source: Margin, margin: Margin) -> npt.NDArray[Any]:
        """Sum the table of a margin into that of a coarser one, axis by axis."""
        for place, (axis, finer, coarser) in enumerate(zip(self.axes, source, margin, strict=True)):
            for level in reversed(range(coarser, finer)):
                table = sum_along(axis, level, table, place)
        return table

    def outer(self, of_axes: Sequence[Sequence[Values]], margin: Margin) -> Values:
        """Multiply values of the nodes of each axis in every cell of a margin, shape (n_cells,).

        `of_axes` has level values for each axis; the result is folded if all of them are.
        """
        chosen = [values[level] for values, level in zip(of_axes, margin, strict=True)]
        if all(len(values) == 1 for values in chosen):
            return np.asarray(math.prod(chosen))
        full = [
            np.broadcast_to(values, size)
            for values, size in zip(chosen, self.cell_shape(margin), strict=True)
        ]
        return np.asarray(reduce(np.multiply.outer, full)).reshape(-1)

    def listed(self, level: int) -> npt.NDArray[np.bool_]:
        """Whether each cell of a margin is shown: all, if the margin is, but those of nodes of no table."""
        margin = self.margins[level]
        if margin not in self._in_table:
            return np.zeros(self.level_sizes[level], dtype=bool)
        flags = [axis.listed(each) for axis, each in zip(self.axes, margin, strict=True)]
        return np.asarray(reduce(np.logical_and.outer, flags)).reshape(-1)

    def n_listed(self, level: int) -> int:
        """Count the cells of a margin that a table shows."""
        margin = self.margins[level]
        if margin not in self._in_table:
            return 0
        return math.prod(axis.n_listed(each) for axis, each in zip(self.axes, margin, strict=True))

    @cached_property
    def _in_table(self) -> frozenset[Margin]:
        return frozenset(self.shown)

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same axes and shows the same margins."""
        return self is other or (
            isinstance(other, ProductTree) and (self.axes, self.shown) == (other.axes, other.shown)
        )

    def __hash__(self) -> int:
        """Return the same for equal products."""
        return hash((self.axes, self.shown))

    def __repr__(self) -> str:
        """Describe the shape in a line."""
        return f"ProductTree(leaf_shape={self.leaf_shape}, margins={len(self.shown)})"


def sum_along(tree: Tree, level: int, table: npt.NDArray[Any], place: int) -> npt.NDArray[Any]:
    """Sum the children of the nodes of a level, which a table has along one of its axes."""
    counts = tree.child_counts[level]
    if len(counts) == 1:
        if counts[0] == 1:
            return table
        shape = table.shape
        split = (*shape[:place], tree.level_sizes[level], int(counts[0]), *shape[place + 1 :])
        return np.asarray(table.reshape(split).sum(axis=place + 1))
    return np.asarray(np.add.reduceat(table, np.cumsum(counts) - counts, axis=place))


def spread_along(tree: Tree, level: int, table: npt.NDArray[Any], place: int) -> npt.NDArray[Any]:
    """Copy the values of the nodes of a level, along one of the axes of a table, to all of their children."""
    counts = tree.child_counts[level]
    return np.repeat(table, int(counts[0]) if len(counts) == 1 else counts, axis=place)
