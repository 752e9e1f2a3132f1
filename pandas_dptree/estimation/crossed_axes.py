"""What is unknown of an axis of crossed hierarchies: no structural zeros, and no level twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["UnknownAxis"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class UnknownAxis:
    """An axis without structural zeros, where no level has the nodes of the one above, to the last one used.

    `levels` says which level of `tree` each level of the axis is (beyond its depth if nothing is measured
    there), and `kept` which nodes of the axis remain; None if all do.
    """

    tree: Tree
    levels: tuple[int, ...]
    kept: tuple[BoolArray, ...] | None

    @classmethod
    def of(cls, axis: Tree, zeros: BoolArray, used: BoolArray) -> UnknownAxis:
        """Reduce an axis, some leaves of which are `zeros`, and of which some levels are used."""
        counts: Sequence[IntArray] = axis.child_counts
        kept = None
        if zeros.any():
            kept = tuple(sums > 0 for sums in axis.roll_up((~zeros).astype(np.int64)))
            counts = [
                axis.sum_children(level, below.astype(np.int64))[here]
                for level, (here, below) in enumerate(pairwise(kept))
            ]
        new = [bool((own > 1).any()) for own in counts]
        levels = tuple(np.cumsum([0, *new]).tolist())
        depth = max((level for level, here in zip(levels, used, strict=True) if here), default=0)
        tree = Tree(tuple(own for own, here in zip(counts, new, strict=True) if here)[:depth])
        return cls(tree, levels, kept)

    def nodes(self, level: int) -> IntArray | slice:
        """Return the nodes of a level of the axis that remain."""
        return slice(None) if self.kept is None else np.flatnonzero(self.kept[level])

    def known(self, known: Known) -> Known:
        """Return what is known of the nodes of `tree`."""
        exact: list[npt.NDArray[Any]] = [np.zeros(size, dtype=bool) for size in self.tree.level_sizes]
        least: list[npt.NDArray[Any]] = [np.zeros(size, dtype=np.int64) for size in self.tree.level_sizes]
        for level, own in enumerate(self.levels):
            if own <= self.tree.depth:
                for all_of, given in ((exact, known.exact[level]), (least, known.least[level])):
                    size = all_of[own].shape if self.kept is None else self.kept[level].shape
                    all_of[own] = np.broadcast_to(given, size)[self.nodes(level)]
        return Known(tuple(exact), tuple(least))
