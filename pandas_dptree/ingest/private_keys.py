"""Find the nodes that hold a record, where the last keys are private. Secret: nothing here may leave.

Keys are compared by value, each read separately. A record counts on each level down to its last key before
the first that is missing, or is no key. It is dropped if its public keys belong to no leaf of the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.hierarchy.rebuilt_labels import rebuilt_labels
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes, numbered_combinations, numbered_units
from pandas_dptree.ingest.contribution_bounding import bound_contributions
from pandas_dptree.ingest.frames import Records, warn_if_released
from pandas_dptree.ingest.leaves import check_records, leaves_of_domain
from pandas_dptree.ingest.safe_errors import discreetly

__all__ = ["KeyNodes", "nodes_of_private_keys"]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class KeyNodes:
    """The nodes that hold a record on private levels, and all nodes on public ones.

    Nodes of a level are numbered from 0; on a private level those of one parent follow each other.

    Attributes
    ----------
    counts : list of numpy.ndarray of int64
        The records in each node, for each level from the root down; at least 1 on private levels.
    parents : list of numpy.ndarray of int64
        The number of each node's parent, for each level from the root down; 0 for the root.
    codes : list of numpy.ndarray of int64
        For each private level, the positions of the nodes' keys in its `forms`.
    forms : list of list of hashable
        For each private level, the canonical forms of its keys.
    """

    counts: list[IntArray]
    parents: list[IntArray]
    codes: list[IntArray]
    forms: list[list[Hashable]]

    @property
    def n_public(self) -> int:
        """Number of public levels, including the root."""
        return len(self.counts) - len(self.codes)

    def public_counts(self) -> list[IntArray]:
        """Count the records of all nodes of each public level, from the root down."""
        return self.counts[: self.n_public]

    def upward(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the nodes that hold a record, and their counts, of each private level from the deepest."""
        for counts in reversed(self.counts[self.n_public :]):
            yield np.arange(len(counts)), counts

    def below(self, level: int, shown: IntArray) -> tuple[IntArray, IntArray]:
        """Return the nodes of a private level that hold a record and whose parents are in `shown`."""
        is_shown = np.zeros(len(self.counts[level - 1]), dtype=bool)
        is_shown[shown] = True
        nodes = np.flatnonzero(is_shown[self.parents[level]])
        return nodes, self.counts[level][nodes]

    def parents_of(self, level: int, nodes: IntArray) -> IntArray:
        """Return the parents of nodes of a level."""
        return self.parents[level][nodes]

    def labels(self, level: int, nodes: IntArray) -> tuple[Any, IntArray]:
        """Return the labels of nodes of a private level, made afresh, and the rank of each among its values.

        **Privacy**: both depend on the keys of these nodes alone, so they may leave with nodes that were
        released.
        """
        place = level - self.n_public
        codes, key_of_node = np.unique(self.codes[place][nodes], return_inverse=True)
        labels, rank = rebuilt_labels([self.forms[place][code] for code in codes.tolist()])
        ranks = rank[key_of_node]
        return labels.take(ranks), ranks


def nodes_of_private_keys(
    frame: Any,
    tree: PrivateKeys,
    *,
    privacy_unit: Hashable | None = None,
    max_contributions: int = 1,
    random_words: Callable[[int], npt.NDArray[np.uint64]],
) -> KeyNodes:
    """Find the nodes that hold a record, after bounding the records of each unit.

    Parameters
    ----------
    frame : dataframe
        pandas, polars (eager or lazy) or pyarrow.
    tree : PrivateKeys
    privacy_unit : hashable, optional
        Name of the column that identifies the unit of a record; None if each record is a unit of its own.
    max_contributions : int, default 1
        Number of records kept per unit, if there is a `privacy_unit`.
    random_words : callable
        ``random_words(n)`` draws ``n`` uniform 64-bit words.

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe or cannot be counted.
    ColumnsError
        If a column is missing or repeated, or its type cannot match the labels of the domain.

    Notes
    -----
    **Privacy**: where a record is counted depends on that record alone, and records that are dropped are
    dropped before units are bounded.
    """
    sources = () if tree.domain is None else tree.domain.sources
    keys = list(dict.fromkeys([*sources, *tree.columns]))
    unit = [] if privacy_unit is None else [privacy_unit]
    records = Records(frame, [*keys, *unit])
    warn_if_released(frame)
    if tree.domain is not None:
        check_records(records, tree.domain)

    def find() -> KeyNodes:
        if privacy_unit is None and not isinstance(records.table, pd.DataFrame):
            distinct, rows = records.distinct(keys)
            column = dict(zip(keys, distinct, strict=True)).__getitem__
        else:
            column, rows = records.column, None
        leaf, codes, forms = _paths(tree, column)
        n_leaves = 1 if tree.domain is None else tree.domain.tree.n_leaves
        cell, row_of_cell = numbered_combinations([leaf, *codes], [n_leaves, *map(len, forms)])
        inside = leaf >= 0
        if privacy_unit is not None:
            number = numbered_units(column(privacy_unit))
            inside &= number >= 0
            words = random_words(int(inside.sum()))
            inside[inside] = bound_contributions(number[inside], words, max_contributions)
        weights = None if rows is None else rows[inside]
        counts = np.bincount(cell[inside], weights, len(row_of_cell)).astype(np.int64)
        taken = np.flatnonzero(counts)
        path = row_of_cell[taken]
        return _nodes(tree, leaf[path], [code[path] for code in codes], counts[taken], forms)

    return discreetly([*keys, *unit], find)


def _paths(
    tree: PrivateKeys, column: Callable[[Hashable], pd.Series]
) -> tuple[IntArray, list[IntArray], list[list[Hashable]]]:
    """Find the public leaf of each record, -1 if it has none, and the codes of its private keys.

    From the first key on that is missing or no key, the codes are -1. The codes' canonical forms follow.
    """
    codes: list[IntArray] = []
    forms = []
    for name in tree.columns:
        code, known = canonical_codes(column(name))
        if UNKNOWN in known:
            code = np.where(code == known.index(UNKNOWN), -1, code)
        codes.append(code if not codes else np.where(codes[-1] < 0, -1, code))
        forms.append(known)
    if tree.domain is None:
        return np.broadcast_to(np.int64(0), len(codes[0])), codes, forms
    return leaves_of_domain(tree.domain, column), codes, forms


def _nodes(
    tree: PrivateKeys,
    leaf: IntArray,
    codes: Sequence[IntArray],
    rows: IntArray,
    forms: list[list[Hashable]],
) -> KeyNodes:
    """Number the nodes of each level; `leaf`, `codes` and `rows` describe distinct paths."""
    counts, parents = _public_nodes(tree.domain, leaf, rows)
    codes_of_nodes, node, path = [], leaf, np.arange(len(leaf))
    for code, known in zip(codes, forms, strict=True):
        reaches = code[path] >= 0
        node, path = node[reaches], path[reaches]
        width = max(len(known), 1)
        pairs, node = np.unique(node * width + code[path], return_inverse=True)
        counts.append(np.bincount(node, rows[path], len(pairs)).astype(np.int64))
        parents.append(pairs // width)
        codes_of_nodes.append(pairs % width)
    return KeyNodes(counts, parents, codes_of_nodes, forms)


def _public_nodes(
    domain: Domain | None, leaf: IntArray, rows: IntArray
) -> tuple[list[IntArray], list[IntArray]]:
    """Count the records of all nodes of the public levels, and find the parents of these."""
    n_leaves = 1 if domain is None else domain.tree.n_leaves
    counts, parents = [np.bincount(leaf, rows, n_leaves).astype(np.int64)], [np.zeros(1, dtype=np.int64)]
    if domain is None:
        return counts, parents
    sizes = domain.tree.level_sizes
    for level, size in enumerate(sizes[:-1]):
        parents.append(np.broadcast_to(domain.tree.spread(level, np.arange(size)), sizes[level + 1]))
    rolled = domain.tree.roll_up(counts[0])
    return [np.broadcast_to(values, size) for values, size in zip(rolled, sizes, strict=True)], parents
