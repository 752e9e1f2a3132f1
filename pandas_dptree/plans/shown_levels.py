"""What the table of an implicit tree, or of private keys, shows: released nodes and their ancestors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import LEAST_VARIANCE
from pandas_dptree.estimation.sparse_tree import SparseLevel
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.prefixes import PrefixNodes
from pandas_dptree.ingest.private_keys import KeyNodes
from pandas_dptree.mechanisms.private_levels.base import ReleasedLevel
from pandas_dptree.output.frames import key_column, take_labels
from pandas_dptree.output.sparse import ShownLevel

__all__ = ["shown_levels"]

Hierarchy = PrefixTree | PrivateKeys


def shown_levels(
    tree: Hierarchy,
    nodes: KeyNodes | PrefixNodes,
    released: Sequence[ReleasedLevel],
    variances: Sequence[float],
    radii: Sequence[int],
) -> list[ShownLevel]:
    """Add the ancestors of released nodes, and arrange all by parent and label.

    Of `nodes`, only the parents and labels of released nodes are read.
    """
    keys = [level[0] for level in released]
    for place in reversed(range(tree.n_public + 1, len(keys))):
        keys[place - 1] = np.union1d(keys[place - 1], nodes.parents_of(place, keys[place]))
    parents: list[IntArray] = []
    positions: list[IntArray] = []
    labels, listed = [], []
    for place, own in enumerate(keys):
        above = nodes.parents_of(place, own) if place else np.zeros(1, dtype=np.int64)
        parent = positions[-1][np.searchsorted(keys[place - 1], above)] if place else above
        label, rank, has_row = _named(tree, nodes, place, own)
        order = np.lexsort((rank, parent))
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        parents.append(parent[order])
        positions.append(position)
        labels.append(label.take(order))
        listed.append(has_row[order])
    levels = []
    for place, (radius, variance) in enumerate(zip(radii, variances, strict=True)):
        n = len(parents[place])
        where = positions[place][np.searchsorted(keys[place], released[place][0])]
        noisy, measured = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
        noisy[where], measured[where] = released[place][1], True
        complete = np.zeros(n, dtype=bool)
        n_children = _n_children(tree, place)
        if n_children is not None and place + 1 < len(parents):
            complete = np.bincount(parents[place + 1], minlength=n) == n_children
        sparse = SparseLevel(
            parents[place],
            noisy,
            measured,
            complete,
            max(variance, LEAST_VARIANCE),
            radius,
            least=int(place >= tree.n_public),
        )
        levels.append(ShownLevel(sparse, labels[place], listed[place]))
    return levels


def _named(
    tree: Hierarchy, nodes: KeyNodes | PrefixNodes, place: int, keys: npt.NDArray[Any]
) -> tuple[Any, npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the labels of shown nodes, their order within a family, and which of them have a row."""
    everything = np.ones(len(keys), dtype=bool)
    if place >= tree.n_public:
        return *nodes.labels(place, keys), everything
    domain = tree.domain if isinstance(tree, PrivateKeys) else None
    if not place or domain is None:
        return keys, keys, everything
    labels = key_column(take_labels(domain.labels[place - 1], domain.codes[place - 1]))
    return labels.array, keys, domain.tree.listed(place)


def _n_children(tree: Hierarchy, place: int) -> npt.NDArray[np.int64] | int | None:
    """Return how many children nodes of a level can have; None if nobody knows."""
    if isinstance(tree, PrefixTree):
        return tree.n_children(place) if place < len(tree.lengths) else None
    if tree.domain is None or place + 1 >= tree.n_public:
        return None
    return tree.domain.tree.child_counts[place]
