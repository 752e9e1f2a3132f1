"""A tree in which equal siblings are counted instead of listed, one node of each kind having all variances.

A uniform tree of any size shrinks to one node per level; in a ragged tree, at least the leaves of a family
become one. Whether a node's count is known is part of the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.planning.known_counts import Flags

__all__ = ["FloatArray", "Orbits"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Orbits:
    """The kinds of nodes of a tree, themselves a tree whose nodes stand for many.

    Each kind has `child_counts` kinds of children, with `copies` of each, and `listed` nodes in a table;
    `kinds` has the kind of each node, folded where all are equal, and `known` those whose counts are public.
    Level values have shape (n_kinds, n_batch).
    """

    child_counts: tuple[IntArray, ...]
    copies: tuple[FloatArray, ...]
    listed: tuple[FloatArray, ...]
    kinds: tuple[IntArray, ...]
    known: tuple[npt.NDArray[np.bool_], ...]

    @classmethod
    def of(cls, tree: Tree, known: Flags | None = None) -> Orbits:
        """Sort the nodes of a tree by kind: first by that of their parent, then by the shape below."""
        flags = [np.zeros(1, dtype=bool)] * (tree.depth + 1) if known is None else list(map(_fold, known))
        kind: IntArray = np.zeros(1, dtype=np.int64)
        sizes: FloatArray = np.ones(1)
        child_counts, copies, listed, all_kinds = [], [], [_count_listed(tree, 0, kind, sizes)], [kind]
        for level, shape in enumerate(_subtree_shapes(tree, flags)[1:]):
            n_shapes = int(shape.max()) + 1
            if len(shape) == 1:  # then there is one kind below each, and nothing to sort
                kinds, kind = np.arange(len(sizes)), tree.spread(level, kind)
            else:
                kinds, kind = np.unique(tree.spread(level, kind) * n_shapes + shape, return_inverse=True)
            parent, above = kinds // n_shapes, sizes
            repeats = tree.level_sizes[level + 1] / len(kind)  # where `kind` is folded
            sizes = np.bincount(kind).astype(np.float64) * repeats
            child_counts.append(np.bincount(parent))
            copies.append((sizes / above[parent])[:, None])
            listed.append(_count_listed(tree, level + 1, kind, sizes))
            all_kinds.append(kind)
        known_kinds = tuple(map(_known_kinds, flags, all_kinds))
        return cls(tuple(child_counts), tuple(copies), tuple(listed), tuple(all_kinds), known_kinds)

    @classmethod
    def from_sizes(cls, level_sizes: Sequence[int], unknown: npt.NDArray[np.bool_] | None = None) -> Orbits:
        """Return the orbits of a uniform tree with these level sizes, which need not divide one another."""
        one, zero = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        copies = tuple(np.array([[below / above]]) for above, below in pairwise(level_sizes))
        listed = tuple(np.array([[float(size)]]) for size in level_sizes)
        known = np.zeros(len(listed), dtype=bool) if unknown is None else ~unknown
        return cls((one,) * len(copies), copies, listed, (zero,) * len(listed), tuple(known[:, None, None]))

    @property
    def n_kinds(self) -> int:
        """Number of kinds of nodes, on all levels."""
        return sum(len(level) for level in self.listed)

    @property
    def depth(self) -> int:
        """Level of the leaves; the root has level 0."""
        return len(self.copies)

    @cached_property
    def n_listed(self) -> FloatArray:
        """Number of nodes of each level that a table shows: shape (n_levels,)."""
        return np.array([level.sum() for level in self.listed])

    @cached_property
    def part_unknown(self) -> FloatArray:
        """Fraction of the nodes shown by a table whose counts are not known: shape (n_levels,).

        For a level of which it shows none, 0 if all nodes are known and 1 if not.
        """
        parts = [
            (listed * ~known).sum() / listed.sum() if listed.any() else float(not known.all())
            for listed, known in zip(self.listed, self.known, strict=True)
        ]
        return np.array(parts)

    @cached_property
    def has_known(self) -> bool:
        """Whether any count is known."""
        return any(level.any() for level in self.known)

    @cached_property
    def single_child(self) -> tuple[npt.NDArray[np.bool_], ...]:
        """Which kinds of each level but the last have one child: shape (n_kinds, 1)."""
        return tuple(self.sum_kinds(level, copies) == 1 for level, copies in enumerate(self.copies))

    @cached_property
    def _first_child(self) -> tuple[IntArray, ...]:
        return tuple(np.cumsum(counts) - counts for counts in self.child_counts)

    def sum_kinds(self, level: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum values over the kinds of children of each kind of node, each kind once."""
        return np.asarray(np.add.reduceat(values, self._first_child[level], axis=0))

    def kind_sizes(self) -> list[FloatArray]:
        """Count the nodes of each kind: for each level shape (n_kinds, 1)."""
        sizes: list[FloatArray] = [np.ones((1, 1))]
        for level in range(self.depth):
            sizes.append(self.copies[level] * self.spread(level, sizes[-1]))
        return sizes

    def sum_children(self, level: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum values over the children of each kind of node, each kind as often as it occurs."""
        return self.sum_kinds(level, self.copies[level] * values)

    def spread(self, level: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Give the values of each kind of node to all kinds of its children."""
        if len(self.child_counts[level]) == len(self.copies[level]):
            return values
        return np.repeat(values, self.child_counts[level], axis=0)


def _fold(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Keep one flag of a level where all are equal."""
    return flags[:1] if (flags == flags[0]).all() else flags


def _known_kinds(flags: npt.NDArray[np.bool_], kind: IntArray) -> npt.NDArray[np.bool_]:
    """Return the flag of each kind of nodes, which is the same for all of them."""
    if len(flags) == 1:
        return flags[:, None]
    known = np.zeros((int(kind.max()) + 1, 1), dtype=bool)
    known[kind[flags]] = True
    return known


def _subtree_shapes(tree: Tree, known: Flags) -> list[IntArray]:
    """Number the shapes of the subtrees of each level, root first; folded where all are equal.

    A leaf's is the level on which its path ends (and whether it is known); any other the multiset of its
    children's, identified by the sum, modulo 2**64, of a random number per shape. Two multisets agree with a
    probability of about 2**-64, and two expected errors would then be replaced by their mean.
    """
    random = np.random.default_rng(0)  # fixed: the same tree gives the same plan
    shapes = [_distinguished(np.unique(tree.leaf_levels, return_inverse=True)[1], known[-1])]
    for level in reversed(range(tree.depth)):
        codes = random.integers(-(2**63), 2**63 - 1, size=int(shapes[-1].max()) + 1)
        sums = tree.sum_children(level, codes[shapes[-1]])
        shapes.append(_distinguished(np.unique(sums, return_inverse=True)[1], known[level]))
    return shapes[::-1]


def _distinguished(shape: IntArray, flags: npt.NDArray[np.bool_]) -> IntArray:
    """Renumber shapes so that nodes with different flags differ."""
    return shape if len(flags) == 1 else np.unique(2 * shape + flags, return_inverse=True)[1]


def _count_listed(tree: Tree, level: int, kind: IntArray, sizes: FloatArray) -> FloatArray:
    """Count the nodes of each kind that a table shows."""
    if len(tree.leaf_levels) == 1:  # then all nodes of a level are shown, or none
        return sizes[:, None] * bool(tree.leaf_levels[0] >= level)
    shown = tree.listed(level)
    counts = np.bincount(np.broadcast_to(kind, shown.shape), weights=shown, minlength=len(sizes))
    return np.asarray(counts[:, None], dtype=np.float64)
