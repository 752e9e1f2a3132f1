"""The rows of a released table that are the nodes of given keys."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes, located, numbered_combinations
from pandas_dptree.output.crossed_tables import CrossedTable
from pandas_dptree.output.released import Released

__all__ = ["as_paths", "rows_of_nodes", "rows_of_paths"]


def rows_of_nodes(released: Released | CrossedTable, keys: Sequence[pd.Series], depth: IntArray) -> IntArray:
    """Return the row of each node, -1 if there is none: a column for each key, and how many of them count.

    Of crossed tables, `depth` has the number of the margin instead.
    """
    codes = [np.concatenate([released.depth, depth])]
    sizes = [int(codes[0].max(initial=0)) + 1]
    for name, wanted in zip(released.keys, keys, strict=True):
        own, known = canonical_codes(released.table[name])
        codes.append(np.concatenate([own, located(wanted, known)]))
        sizes.append(len(known))
    node = numbered_combinations(codes, sizes)[0]
    row = np.full(node.max() + 1, -1)
    row[node[: len(own)]] = np.arange(len(own))
    return row[node[len(own) :]]


def rows_of_paths(released: Released, paths: Sequence[Sequence[Hashable]], argument: str) -> IntArray:
    """Return the row of each path of keys from the coarsest down; raise if one is no node of the table."""
    n_keys = len(released.keys)
    depth = np.array([len(path) for path in paths], dtype=np.int64)
    keys = [
        pd.Series([path[place] if place < len(path) else None for path in paths], dtype=object)
        for place in range(n_keys)
    ]
    rows = np.full(len(paths), -1) if (depth > n_keys).any() else rows_of_nodes(released, keys, depth)
    if (rows < 0).any():
        wrong = paths[int(np.argmax((depth > n_keys) | (rows < 0)))]
        raise ArgumentError(
            argument,
            f"has a path that is no node of the table: {quote(tuple(wrong))}.",
            hint="a path has a key of each level, from the coarsest down to that of the node, as in "
            '("CA", "Alameda").',
        )
    return rows


def as_paths(given: object, argument: str) -> list[tuple[Hashable, ...]]:
    """Return paths as tuples; a single key is the path of a node of the first level."""
    if not isinstance(given, (list, tuple)) or isinstance(given, Mapping) or not given:
        raise ArgumentError(
            argument,
            "must map names to lists of paths, at least one each.",
            hint='for example {"Coast": [("CA", "Alameda"), ("CA", "Marin")]}.',
        )
    return [tuple(path) if isinstance(path, (list, tuple)) else (path,) for path in given]
