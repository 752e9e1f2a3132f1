"""How many rows of one privacy unit the nodes of a tree can hold, and how far it can move all levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.planning.known_counts import Flags
from pandas_dptree.privacy.crossed_sensitivity import (
    CellRows,
    MarginCells,
    capped_sensitivity,
    crossed_sensitivity,
)
from pandas_dptree.privacy.quantity import Quantity
from pandas_dptree.privacy.sensitivity import Neighbors, TreeSensitivity
from pandas_dptree.privacy.tree_sensitivity import LevelCapacities, tree_sensitivity

__all__ = ["capacities", "crossed_sensitivity_on", "sensitivity_on"]


def sensitivity_on(
    tree: Tree,
    quantity: Quantity,
    *,
    neighbors: Neighbors,
    max_contributions: int,
    caps: Sequence[int | None] = (),
    known: Flags | None = None,
    in_forest: bool = False,
) -> TreeSensitivity:
    """Return how far one unit moves the levels of a tree: see `tree_sensitivity`.

    Of one unit at most `max_contributions` rows are kept, and on each level at most its cap of `caps` in one
    node. Nodes whose counts are `known` are not measured. If the tree is one of several, `in_forest`, among
    which the rows of a unit may be spread, no level has a single node. The time is proportional to the number
    of nodes if there are caps.
    """
    most = capacities(tree, max_contributions, caps)
    flags = [np.zeros(1, dtype=bool)] * (tree.depth + 1) if known is None else known
    trees = 2 * max_contributions if in_forest else 1  # no row need share its node with another
    levels = [
        LevelCapacities(
            tuple((rows, trees * n) for rows, n in _counted(each, flag, size)), single=size * trees == 1
        )
        for each, flag, size in zip(most, flags, tree.level_sizes, strict=True)
    ]
    kept = min(max_contributions, int(most[0].sum()) * (tree.n_roots if len(most[0]) == 1 else 1))
    return tree_sensitivity(levels, kept, low=quantity.low, high=quantity.high, neighbors=neighbors)


def crossed_sensitivity_on(
    product: ProductTree,
    quantity: Quantity,
    *,
    neighbors: Neighbors,
    max_contributions: int,
    max_per_leaf: int | None = None,
    known: Flags | None = None,
) -> TreeSensitivity:
    """Return how far one unit moves all margins of crossed hierarchies: see `pandas_dptree.privacy`.

    Of one unit at most `max_contributions` rows are kept, and at most `max_per_leaf` in each leaf cell. Cells
    whose values are `known` are not measured.
    """
    flags = [np.zeros(1, dtype=bool)] * len(product.margins) if known is None else known
    sizes = product.level_sizes
    margins = [
        MarginCells(size if not flag.any() else int((~np.broadcast_to(flag, size)).sum()), single=size == 1)
        for flag, size in zip(flags, sizes, strict=True)
    ]
    ends = {"low": quantity.low, "high": quantity.high}
    if max_per_leaf is None or max_per_leaf >= max_contributions:
        return crossed_sensitivity(margins, max_contributions, neighbors=neighbors, **ends)
    cells = CellRows(max_per_leaf, tuple(map(_most_leaves, product.axes)))
    kept = min(max_contributions, max_per_leaf * product.n_leaves)
    return capped_sensitivity(margins, kept, cells=cells, neighbors=neighbors, **ends)


def _most_leaves(axis: Tree) -> tuple[int, ...]:
    """Return the most leaves below a node of each level."""
    below = [np.ones(1, dtype=np.int64)]
    for level in reversed(range(axis.depth)):
        below.append(axis.sum_children(level, below[-1]))
    return tuple(int(each.max()) for each in below[::-1])


def capacities(tree: Tree, max_contributions: int, caps: Sequence[int | None] = ()) -> list[IntArray]:
    """Return the most rows of one unit in each node of each level, folded where all are equal.

    The rows of a leaf are at most its cap, those of any other node at most its cap and what its children can
    hold together, and those of any node at most what its parent can hold, in all `max_contributions`. A level
    without a cap has None, and without `caps` none has one.
    """
    if not any(cap is not None for cap in caps):
        return [np.array([max_contributions])] * (tree.depth + 1)
    k = min(max_contributions, 2**62 // tree.n_leaves)  # more rows than a frame has
    most = [np.array([k])]
    for level in reversed(range(tree.depth + 1)):
        held = most[-1] if level == tree.depth else tree.sum_children(level, most[-1])
        cap = caps[level]
        most.append(np.minimum(held, k if cap is None else min(cap, k)))
    most = most[:0:-1]
    for level in range(tree.depth):
        most[level + 1] = np.minimum(most[level + 1], tree.spread(level, most[level]))
    return most


def _counted(most: IntArray, known: npt.NDArray[np.bool_], size: int) -> list[tuple[int, int]]:
    """Count the measured nodes of each capacity on a level of so many nodes, largest first."""
    if len(most) == len(known) == 1:  # both are folded
        return [] if known[0] else [(int(most[0]), size)]
    sizes, numbers = np.unique(np.broadcast_to(most, size)[~np.broadcast_to(known, size)], return_counts=True)
    pairs = zip(sizes[::-1].tolist(), numbers[::-1].tolist(), strict=True)
    return [(rows, number) for rows, number in pairs if rows]
