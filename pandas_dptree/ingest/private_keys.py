"""Find the nodes that hold a record, where the last keys are private. Secret: nothing here may leave.

Keys are compared by value, each read separately. A record counts on each level down to its last key before
the first that is missing, or is no key. It is dropped if its public keys belong to no leaf of the domain.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.hierarchy.rebuilt_labels import rebuilt_labels
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes, numbered_combinations, sort_key
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.labels import check_key_types
from pandas_dptree.ingest.leaves import check_records, leaves_of_domain
from pandas_dptree.ingest.reading import Bounding, opened, tallied
from pandas_dptree.ingest.tallies import BoolArray, Columns, Rows, Tally, add_up
from pandas_dptree.ingest.units import form_hashes, split_mix

__all__ = ["KeyNodes", "PathTally", "nodes_of_private_keys", "open_private_keys"]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class KeyNodes:
    """The nodes that hold a record on private levels, and all nodes on public ones.

    Nodes of a level are numbered from 0; on a private level those of one parent follow each other. `codes`
    are the positions of the nodes' keys in `forms`, the canonical forms of each private level.
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


def nodes_of_private_keys(frame: Any, tree: PrivateKeys, **bounding: Unpack[Bounding]) -> KeyNodes:
    """Find the nodes that hold a record, after bounding the records of each unit.

    **Privacy**: where a record is counted depends on that record alone, and records that are dropped are
    dropped before units are bounded.
    """
    return _nodes(tree, tallied(*open_private_keys(frame, tree, bounding), bounding))


def open_private_keys(frame: Any, tree: PrivateKeys, bounding: Bounding) -> tuple[Records, PathTally]:
    """Open the records for `nodes_of_private_keys`, and check the types of their columns."""
    tally = PathTally(tree)
    records = opened(frame, tally, bounding)
    if tree.domain is not None:
        check_records(records, tree.domain)
    check_key_types(records.types(tree.columns), "frame")
    return records, tally


@dataclass(frozen=True, slots=True, repr=False, eq=False, kw_only=True)
class PathRows(Rows):
    """Rows whose place is a path: the public leaf, then the code of each private key, -1 after the end."""

    forms: tuple[list[Hashable], ...]

    def __getitem__(self, rows: Any) -> PathRows:
        """Select records."""
        return PathRows(self.place[rows], forms=self.forms)

    @property
    def order(self) -> npt.NDArray[Any]:
        """Hashes of the paths, for other records may change the codes; with equal hashes, paths are ranked.

        **Privacy**: either way records of different paths have different numbers, and how two of them compare
        depends on these two alone.
        """
        leaf, *codes = self.place.T
        hashes = split_mix(leaf.astype(np.uint64))
        for code, known in zip(codes, self.forms, strict=True):
            hashes = split_mix(hashes ^ np.append(form_hashes(known), np.uint64(0))[code])
        number, distinct = pd.factorize(hashes)
        example = np.empty(len(distinct), dtype=np.int64)
        example[number] = np.arange(len(number))
        if (self.place == self.place[example[number]]).all():
            return hashes
        ranks = (np.append(_ranks(known), -1)[code] for code, known in zip(codes, self.forms, strict=True))
        keys = [hashes, *((rank + 1).astype(np.uint64) for rank in (leaf, *ranks))]
        return np.unique(np.column_stack(keys), axis=0, return_inverse=True)[1].reshape(-1)

    def compact(self) -> PathRows:
        """Leave out the keys that do not occur."""
        place, forms = self.place.copy(), []
        for level, known in enumerate(self.forms, 1):
            used = np.unique(place[:, level])
            used = used[used >= 0]
            place[:, level] = np.where(place[:, level] < 0, -1, np.searchsorted(used, place[:, level]))
            forms.append([known[code] for code in used.tolist()])
        return PathRows(place, forms=tuple(forms))


class PathCounts(NamedTuple):
    """Distinct paths, as in `PathRows`, and the number of records of each, an int64 array."""

    paths: IntArray
    rows: IntArray
    forms: tuple[list[Hashable], ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PathTally(Tally[PathCounts]):
    """Counts the records of each path of keys."""

    tree: PrivateKeys

    @property
    def columns(self) -> Sequence[Hashable]:
        """The columns of the public and the private keys."""
        sources = () if self.tree.domain is None else self.tree.domain.sources
        return list(dict.fromkeys([*sources, *self.tree.columns]))

    def read(self, column: Columns) -> tuple[Rows, BoolArray]:
        """Find the path of each record: from the first key on that is missing or no key, the codes are -1."""
        codes: list[IntArray] = []
        forms = []
        for name in self.tree.columns:
            code, known = canonical_codes(column(name))
            ends = np.array([*(form == UNKNOWN for form in known), True])[code]
            codes.append(np.where(ends | (codes[-1] < 0) if codes else ends, -1, code))
            forms.append(known)
        leaf = np.zeros(len(codes[0]), dtype=np.int64)
        if self.tree.domain is not None:
            leaf = leaves_of_domain(self.tree.domain, column)
        return PathRows(np.column_stack([leaf, *codes]), forms=tuple(forms)), leaf >= 0

    def together(self, rows: Sequence[Rows]) -> PathRows:
        """Join rows, and number their keys alike."""
        parts = [_path_rows(part).compact() for part in rows]
        paths, forms = _numbered_alike([part.place for part in parts], [part.forms for part in parts])
        return PathRows(np.concatenate(paths), forms=forms)

    def nodes(self, rows: Rows, level: int) -> IntArray:
        """Number the nodes of a public level, or the paths as far as a private one."""
        part, domain = _path_rows(rows), self.tree.domain
        leaf, *codes = part.place.T
        n_private = level - (0 if domain is None else domain.tree.depth)
        if n_private > 0:
            return _numbered([leaf, *codes[:n_private]], part.forms[:n_private])[0]
        assert domain is not None
        return domain.tree.nodes_above(leaf, level)

    def count(self, rows: Sequence[Rows]) -> PathCounts:
        """Count the rows of each path."""
        return self.merged(map(_distinct, rows))

    def merged(self, parts: Iterable[PathCounts]) -> PathCounts:
        """Add up the counts of equal paths."""
        width = len(self.tree.columns)
        none = PathCounts(
            np.zeros((0, 1 + width), dtype=np.int64), np.zeros(0, dtype=np.int64), ([],) * width
        )
        return add_up(parts, none, _together)


def _distinct(rows: Rows) -> PathCounts:
    """Count the rows of each path, all numbered alike."""
    part = _path_rows(rows).compact()
    return PathCounts(*_counted(part.place, np.ones(len(part), dtype=np.int64), part.forms), part.forms)


def _together(parts: Sequence[PathCounts]) -> PathCounts:
    """Number the keys of several parts alike, and add up the counts of equal paths."""
    paths, forms = _numbered_alike([part.paths for part in parts], [part.forms for part in parts])
    rows = np.concatenate([part.rows for part in parts])
    return PathCounts(*_counted(np.concatenate(paths), rows, forms), forms)


def _numbered_alike(
    paths: Sequence[IntArray], forms: Sequence[tuple[list[Hashable], ...]]
) -> tuple[list[IntArray], tuple[list[Hashable], ...]]:
    """Number the keys of several parts alike: return the paths of each, and the forms of all."""
    paths = [path.copy() for path in paths]
    common = []
    for level, each in enumerate(zip(*forms, strict=True), 1):
        known = dict.fromkeys(chain.from_iterable(each))
        code = dict(zip(known, range(len(known)), strict=True))
        common.append(list(known))
        for path, own in zip(paths, each, strict=True):
            path[:, level] = np.array([*map(code.__getitem__, own), -1], dtype=np.int64)[path[:, level]]
    return paths, tuple(common)


def _ranks(forms: Sequence[Hashable]) -> IntArray:
    """Rank distinct canonical forms."""
    ranks = np.empty(len(forms), dtype=np.int64)
    only_text = all(type(form) is str for form in forms)  # whose sort keys are in the order of the texts
    keys: Sequence[Any] = forms if only_text else list(map(sort_key, forms))
    ranks[sorted(range(len(forms)), key=keys.__getitem__)] = np.arange(len(forms))
    return ranks


def _path_rows(rows: Rows) -> PathRows:
    assert isinstance(rows, PathRows)
    return rows


def _numbered(path: Sequence[IntArray], forms: Sequence[list[Hashable]]) -> tuple[IntArray, IntArray]:
    """Number paths, column by column from the leaf: that of each row, and a row for each."""
    leaf, *_ = path
    return numbered_combinations(path, [int(leaf.max(initial=0)) + 1, *map(len, forms)])


def _counted(paths: IntArray, rows: IntArray, forms: Sequence[list[Hashable]]) -> tuple[IntArray, IntArray]:
    """Add up the rows of equal paths."""
    number, example = _numbered([*paths.T], forms)
    total = np.zeros(len(example), dtype=np.int64)
    np.add.at(total, number, rows)
    taken = np.flatnonzero(total)
    return paths[example[taken]], total[taken]


def _nodes(tree: PrivateKeys, found: PathCounts) -> KeyNodes:
    """Number the nodes of each level, in the order of their keys: so a seeded release depends on no other."""
    leaf, *codes = found.paths.T
    rows, forms = found.rows, []
    counts, parents = _public_nodes(tree.domain, leaf, rows)
    codes_of_nodes, node, path = [], leaf, np.arange(len(leaf))
    for code, known in zip(codes, found.forms, strict=True):
        ranks = _ranks(known)
        forms.append([known[place] for place in np.argsort(ranks).tolist()])
        reaches = code[path] >= 0
        node, path = node[reaches], path[reaches]
        width = max(len(known), 1)
        pairs, node = np.unique(node * width + ranks[code[path]], return_inverse=True)
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
