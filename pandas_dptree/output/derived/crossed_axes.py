"""The nodes of an axis of a released crossed table as a tree, in the order of its release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.output.released import Released

__all__ = ["WHOLE_TABLE", "AxisNodes"]

WHOLE_TABLE: Final = (
    "use the table as it was released or read by dpt.read_file, and select rows of the result."
)


@dataclass(frozen=True, eq=False)
class AxisNodes:
    """The tree of an axis, and where in it the nodes are that a table shows.

    `position` has the place of each node on its level. `paths` has for each node a number of its ancestor
    (or itself) on each level below the root, -1 below the node.
    """

    tree: Tree
    depth: IntArray
    position: IntArray
    paths: IntArray

    @classmethod
    def of(cls, axis: Released, argument: str) -> AxisNodes:
        """Read the nodes of an axis that a table shows; other levels follow from deeper ones."""
        order = np.argsort(axis.depth, kind="stable")
        coarsest_first = Released(axis.table.iloc[order], [], axis.keys, axis.depth[order])
        paths = np.empty_like(coarsest_first.groups)
        paths[order] = coarsest_first.groups
        position = np.zeros(len(order), dtype=np.int64)
        nodes, ends, counts = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), []
        for level in range(1, int(axis.depth.max()) + 1):
            nodes, own = _below(coarsest_first.groups, level, nodes, argument)
            counts.append(own)
            ends = np.where(nodes >= 0, level, np.repeat(ends, own))
            place = np.empty(nodes.max() + 1, dtype=np.int64)
            place[nodes[nodes >= 0]] = np.flatnonzero(nodes >= 0)
            here = axis.depth == level
            position[here] = place[paths[here, level - 1]]
        return cls(Tree(tuple(counts), ends), axis.depth, position, paths)

    def above(self, level: int) -> IntArray:
        """Return the ancestor of each node on a level, or the node itself; -1 if the table shows none."""
        here = np.flatnonzero(self.depth == level)
        if level == 0:
            return np.full(len(self.depth), here[0] if len(here) else -1)
        node = np.full(self.paths[:, level - 1].max() + 2, -1)  # the last place is that of -1
        node[self.paths[here, level - 1]] = here
        return node[self.paths[:, level - 1]]

    def leaves_below(self, nodes: Sequence[int]) -> IntArray:
        """Return for each leaf of the tree how many of the nodes it is below (or is)."""
        total = np.zeros(self.tree.n_leaves, dtype=np.int64)
        for level in np.unique(self.depth[nodes]):
            here = np.zeros(self.tree.level_sizes[level], dtype=np.int64)
            np.add.at(here, self.position[[node for node in nodes if self.depth[node] == level]], 1)
            for each in range(int(level), self.tree.depth):
                here = np.broadcast_to(self.tree.spread(each, here), self.tree.level_sizes[each + 1])
            total += here
        return total


def _below(paths: IntArray, level: int, above: IntArray, argument: str) -> tuple[IntArray, IntArray]:
    """Return the nodes of a level of the tree, and how many each of the level `above` has; -1 ends a path."""
    shown, first = np.unique(paths[:, level - 1], return_index=True)
    first = first[shown >= 0]
    parent = paths[first, level - 2] if level > 1 else np.zeros(len(first), dtype=np.int64)
    n_children = np.bincount(parent, minlength=int(above.max()) + 1)
    own = np.where(above >= 0, n_children[above], 0)
    counts = np.maximum(own, 1)
    inner = np.repeat(own > 0, counts)
    if np.count_nonzero(inner) != len(first) or (np.repeat(above, counts)[inner] != parent).any():
        raise ArgumentError(argument, "does not have all rows in the order of its release.", hint=WHOLE_TABLE)
    nodes = np.full(len(inner), -1, dtype=np.int64)
    nodes[inner] = np.arange(len(first))
    return nodes, counts
