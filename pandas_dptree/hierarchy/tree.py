"""The shape of a hierarchy: numbers of children, without labels.

A tree is stored level by level, root first, the children of a node adjacent and in the order of their
parents, so every operation is one vectorised step per level. *Level values* have one entry per node of a
level, or a single one if all nodes agree (the array is *folded*, as child counts may be). So a regular tree
of any size costs no more than its number of levels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, DomainError, quote
from pandas_dptree.hierarchy.paths import Level, Paths
from pandas_dptree.hierarchy.shape import IntArray, Shape, Values

__all__ = ["IntArray", "Tree"]


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Shape):
    """A rooted tree whose leaves are all on the deepest level.

    A path that ends early is continued as a chain of single children, so that each level contains every
    record exactly once. Chain nodes are measured like any other; `listed` excludes them from the nodes that a
    table shows. Trees of the same shape are equal.

    Parameters
    ----------
    child_counts : tuple of numpy.ndarray of int64
        For each level but the deepest, the number of children (at least 1) of each node: shape ``(n_l,)``, or
        ``(1,)`` if all nodes of the level have equally many.
    leaf_levels : numpy.ndarray of int64, optional
        For each leaf, the level on which its path really ends: shape ``(n_leaves,)`` or ``(1,)``.
        By default all end on the deepest level.
    n_roots : int, default 1
        Number of nodes of level 0; more than one in a forest, as `copies` makes it.

    Examples
    --------
    >>> tree = Tree.from_branching([2, 3])
    >>> tree.level_sizes, tree.n_leaves, tree.n_nodes
    ((1, 2, 6), 6, 9)
    >>> [level.tolist() for level in tree.roll_up(np.array([1, 2, 3, 4, 5, 6]))]
    [[21], [6, 15], [1, 2, 3, 4, 5, 6]]
    """

    child_counts: tuple[IntArray, ...]
    leaf_levels: IntArray = None  # type: ignore[assignment]  # the depth, filled in below
    n_roots: int = 1

    def __post_init__(self) -> None:
        """Check the shapes, and fold every level that can be folded."""
        whole = isinstance(self.n_roots, (int, np.integer)) and not isinstance(self.n_roots, bool)
        if not whole or self.n_roots < 1:
            raise ArgumentError(
                "n_roots",
                f"must be a whole number >= 1, not {quote(self.n_roots)}.",
                hint="for example n_roots=1.",
            )
        counts, size = [], int(self.n_roots)
        for level, given in enumerate(self.child_counts):
            count = np.asarray(given)
            if count.dtype.kind not in "iu" or count.shape not in {(1,), (size,)} or count.min() < 1:
                raise ArgumentError(
                    "child_counts",
                    f"at level {level} must hold whole numbers >= 1, one for each of the {size} node(s).",
                    hint="pass an integer array per level, of length 1 where all nodes have equally many.",
                )
            counts.append(_fold(count.astype(np.int64)))
            size = size * int(count[0]) if len(count) == 1 else int(count.sum())
        object.__setattr__(self, "child_counts", tuple(counts))
        ends = np.asarray([len(counts)] if self.leaf_levels is None else self.leaf_levels)
        if (
            ends.dtype.kind not in "iu"
            or ends.shape not in {(1,), (size,)}
            or ends.min() < min(1, len(counts))
            or ends.max() > len(counts)
        ):
            raise ArgumentError(
                "leaf_levels",
                f"must hold a level from 1 to {len(counts)} for each of the {size} leaves.",
                hint="leave it out when every path reaches the deepest level.",
            )
        object.__setattr__(self, "leaf_levels", _fold(ends.astype(np.int64)))
        if len(self.leaf_levels) > 1 and not self._short_paths_are_chains():
            raise ArgumentError(
                "leaf_levels",
                "ends a path at a node that has several leaves.",
                hint="a short path continues downwards as a chain of single children.",
            )

    def _short_paths_are_chains(self) -> bool:
        for level in range(self.depth):
            below = np.broadcast_to(self.leaves_below(level), self.level_sizes[level])
            if (np.repeat(below, below)[self.leaf_levels == level] > 1).any():
                return False
        return True

    @classmethod
    def from_branching(cls, branching: Sequence[int] | IntArray) -> Tree:
        """Make the uniform tree in which every node of level ``l`` has ``branching[l]`` children.

        Parameters
        ----------
        branching : sequence of int
            Children per node, from the root down; each at least 1. No memory of the size of the tree is
            allocated.

        Raises
        ------
        ArgumentError
            If a branching factor is not a whole number of at least 1, or there are more than 2**62 leaves.

        Examples
        --------
        >>> Tree.from_branching([100] * 4).n_leaves
        100000000
        """
        if not isinstance(branching, (list, tuple, np.ndarray)):
            raise ArgumentError(
                "branching",
                f"must be a list of whole numbers, not {quote(branching)}.",
                hint="for example Tree.from_branching([50, 60, 30]).",
            )
        leaves = 1
        for factor in branching:
            if isinstance(factor, bool) or not isinstance(factor, (int, np.integer)) or factor < 1:
                raise ArgumentError(
                    "branching",
                    f"must hold whole numbers >= 1, not {quote(factor, of=branching)}.",
                    hint="for example Tree.from_branching([50, 60, 30]).",
                )
            leaves *= int(factor)
        if leaves > 2**62:
            raise ArgumentError(
                "branching", "makes more than 2**62 leaves.", hint="use fewer levels or smaller factors."
            )
        return cls(tuple(np.array([factor], dtype=np.int64) for factor in branching))

    @classmethod
    def from_paths(cls, paths: npt.ArrayLike) -> Tree:
        """Make the tree whose leaves are the given paths.

        Parameters
        ----------
        paths : array_like of int, shape (n_leaves, depth)
            One row per leaf: the codes of its ancestors at levels 1, 2, … and its own. A row may end early,
            with -1 from some level on. Leaf ``i`` of the tree is the ``i``-th row in lexicographic order.

        Raises
        ------
        DomainError
            If there is no path, a path is empty or has a gap, a leaf is listed twice, or a leaf is also an
            inner node.

        Examples
        --------
        >>> Tree.from_paths([[0, 0], [0, 1], [1, -1]]).level_sizes
        (1, 2, 3)
        """
        codes = np.asarray(paths)
        if codes.ndim != 2 or codes.size == 0:
            raise _no_leaves()
        if codes.dtype.kind not in "iu":
            raise DomainError(
                f"must hold whole numbers, not {codes.dtype}.", hint="use Domain.from_frame for labels."
            )
        given = Paths()
        for column in np.maximum(codes.astype(np.int64), -1).T:
            if column.max() > len(column):  # their ranks serve as well
                column = np.unique(column, return_inverse=True)[1] - int(column.min() < 0)
            given.append(column, int(column.max()) + 1)
        given.sort()
        return cls.from_levels(list(given.levels()))

    @classmethod
    def from_levels(cls, levels: Sequence[Level]) -> Tree:
        """Make the tree from the levels of sorted paths; raises as `from_paths` does."""
        missing = [level.missing for level in levels]
        if not missing[0].size:
            raise _no_leaves()
        if missing[0].any():
            raise DomainError(
                "has a path without its first key.",
                hint="check that `by` goes from coarse to fine; if it does, drop the rows whose first key is "
                "missing.",
            )
        if any((above & ~here).any() for above, here in pairwise(missing)):
            raise DomainError(
                "has a path with a gap: a missing key above one that is present.",
                hint="a path may end early, with missing keys from some level on, but not skip a level.",
            )
        if not levels[-1].begins.all():
            raise DomainError(
                "lists the same leaf more than once.",
                hint="drop the duplicates, for example with places.drop_duplicates(by).",
            )
        for above, here in pairwise(levels):
            ended = here.missing & ~above.missing  # these sort before the paths that continue them
            if (ended[:-1] & ~above.begins[1:]).any():
                raise DomainError(
                    "has a leaf that is also an inner node: one path continues another.",
                    hint="give the shorter path a key of its own on the next level, or leave it out.",
                )
        first_children = [np.zeros(1, dtype=np.int64)]
        first_children += [np.flatnonzero(above.begins[here.begins]) for above, here in pairwise(levels)]
        counts = [
            np.diff(first, append=len(here.codes)) for first, here in zip(first_children, levels, strict=True)
        ]
        if not missing[-1].any():
            return cls(tuple(counts))
        ends = np.full(len(missing[0]), len(levels))
        for absent in missing:
            ends -= absent
        return cls(tuple(counts), ends)

    def copies(self, n: int) -> Tree:
        """Make a forest of `n` trees of this shape, whose nodes are adjacent on each level.

        >>> Tree.from_branching([2, 3]).copies(10).level_sizes
        (10, 20, 60)
        """
        tiled = (self.tile(values, n) for values in (*self.child_counts, self.leaf_levels))
        *counts, ends = tiled
        return Tree(tuple(counts), ends, self.n_roots * n)

    def truncated(self, level: int) -> Tree:
        """Make the tree of the levels down to one; a path that ended above it still does.

        >>> Tree.from_branching([2, 3]).truncated(1).level_sizes
        (1, 2)
        """
        ends = self.leaf_levels
        if len(ends) > 1:
            below = np.broadcast_to(self.leaves_below(level), self.level_sizes[level])
            ends = ends[np.cumsum(below) - below]
        return Tree(self.child_counts[:level], np.minimum(ends, level), self.n_roots)

    @staticmethod
    def tile(values: Values, n: int) -> Values:
        """Repeat level values for each of `n` copies; folded values stay folded."""
        return values if len(values) == 1 else np.tile(values, n)

    @cached_property
    def level_sizes(self) -> tuple[int, ...]:
        """Number of nodes of each level, chain nodes included."""
        sizes = [self.n_roots]
        for counts in self.child_counts:
            sizes.append(sizes[-1] * int(counts[0]) if len(counts) == 1 else int(counts.sum()))
        return tuple(sizes)

    @property
    def is_uniform(self) -> bool:
        """Whether all nodes of a level have equally many children, on every level."""
        return all(len(counts) == 1 for counts in self.child_counts)

    def sum_children(self, level: int, values: Values) -> Values:
        """Sum values of the level below over the children of each node; folded ones may stay folded."""
        counts = self.child_counts[level]
        if len(values) == 1:
            return values * counts
        if len(counts) == 1:
            return np.asarray(values.reshape(-1, int(counts[0]), *values.shape[1:]).sum(axis=1))
        return np.asarray(np.add.reduceat(values, self._starts(level)))

    def max_children(self, level: int, values: Values) -> Values:
        """Return the largest value among the children of each node; shapes as in `sum_children`."""
        if len(values) == 1:
            return values
        return np.asarray(np.maximum.reduceat(values, self._starts(level)))

    def _starts(self, level: int) -> IntArray:
        """Return the position of the first child of each node of a level."""
        counts = np.broadcast_to(self.child_counts[level], self.level_sizes[level])
        return np.cumsum(counts) - counts

    def spread(self, level: int, values: Values) -> Values:
        """Copy the value of each node, shape (level_sizes[level], ...) or (1,), to all of its children."""
        if len(values) == 1:
            return values
        counts = self.child_counts[level]
        return np.repeat(values, int(counts[0]) if len(counts) == 1 else counts, axis=0)

    def roll_up(self, leaf_values: npt.ArrayLike) -> tuple[Values, ...]:
        """Sum leaf values into every node.

        Parameters
        ----------
        leaf_values : array_like, shape (n_leaves,)

        Returns
        -------
        tuple of numpy.ndarray
            One array per level, from the root to the leaves; the last is `leaf_values` itself.

        Raises
        ------
        ArgumentError
            If there is not one value per leaf.
        """
        levels = [np.asarray(leaf_values)]
        if levels[0].shape != (self.n_leaves,):
            raise ArgumentError(
                "leaf_values",
                f"must have shape ({self.n_leaves},), not {levels[0].shape}.",
                hint="pass one value per leaf, in the order of the tree.",
            )
        for level in reversed(range(self.depth)):
            levels.append(self.sum_children(level, levels[-1]))
        return tuple(reversed(levels))

    def leaves_below(self, level: int) -> IntArray:
        """Count the leaves below each node of a level: shape (level_sizes[level],) or (1,)."""
        leaves: Values = np.ones(1, dtype=np.int64)
        for above in reversed(range(level, self.depth)):
            leaves = self.sum_children(above, leaves)
        return leaves

    def nodes_above(self, leaves: IntArray, level: int) -> IntArray:
        """Return the node of a level that each of some leaves is below, or is."""
        below = self.leaves_below(level)
        if len(below) == 1:
            return leaves // int(below[0])
        if len(leaves) * 64 > self.n_leaves:  # then a list of all leaves is faster than a search
            return np.repeat(np.arange(len(below)), below)[leaves]
        return np.searchsorted(np.cumsum(below), leaves, side="right")

    def listed(self, level: int) -> npt.NDArray[np.bool_]:
        """Whether each node of a level is shown in a table: all but those that only continue a short path."""
        size = self.level_sizes[level]
        if len(self.leaf_levels) == 1:
            return np.full(size, self.leaf_levels[0] >= level)
        leaves = np.broadcast_to(self.leaves_below(level), size)
        return np.asarray(self.leaf_levels[np.cumsum(leaves) - leaves] >= level)

    def n_listed(self, level: int) -> int:
        """Count the nodes of a level that a table shows."""
        if len(self.leaf_levels) == 1:
            return self.level_sizes[level] if self.leaf_levels[0] >= level else 0
        return int(np.count_nonzero(self.listed(level)))

    @cached_property
    def _digest(self) -> bytes:
        """SHA-256 digest of the shape."""
        digest = hashlib.sha256(f"{self.n_roots};".encode())
        for values in (*self.child_counts, self.leaf_levels):
            digest.update(f"{len(values)};".encode() + values.tobytes())
        return digest.digest()

    def __eq__(self, other: object) -> bool:
        """Whether the other is a tree of the same shape."""
        return self is other or (isinstance(other, Tree) and self._digest == other._digest)

    def __hash__(self) -> int:
        """Return the same for trees of the same shape."""
        return hash(self._digest)

    def __repr__(self) -> str:
        """Describe the shape in a line."""
        kind = "uniform" if self.is_uniform else "ragged"
        return f"Tree({kind}, level_sizes={self.level_sizes})"


def _fold(values: IntArray) -> IntArray:
    """Keep one entry of an array whose entries are all equal."""
    return values[:1] if (values == values[0]).all() else values


def _no_leaves() -> DomainError:
    return DomainError("has no leaves.", hint="list at least one leaf path, one key per level.")
