"""Tables of the paths of a domain: the child of a node by the code of its label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.hash_tables import WholeTable

__all__ = ["Children"]

IntArray = npt.NDArray[np.int64]
Nodes = npt.NDArray[np.int32]
Codes = npt.NDArray[Any]

_DENSE = 4
"""All pairs of parent and code are listed if they are at most so many times the nodes, or below `_SMALL`."""

_SMALL = 2**16


class _Complete:
    """Every parent has a child of every code."""

    def __init__(self, n_codes: int) -> None:
        self._n_codes = n_codes

    def find(self, parents: Nodes, codes: Codes) -> Codes:
        return np.where((parents >= 0) & (codes >= 0), parents * self._n_codes + codes, -1)


class _ByPair:
    """A table of all pairs of parent and code."""

    def __init__(
        self, n_parents: int, n_codes: int, parents: IntArray, codes: IntArray, nodes: Nodes
    ) -> None:
        self._width = n_codes + 2  # the codes -2 and -1 come first; the row of the parent -1 is the last
        self._nodes = np.full((n_parents + 1) * self._width, -1, dtype=np.int32)
        self._nodes[parents * self._width + codes + 2] = nodes

    def find(self, parents: Nodes, codes: Codes) -> Nodes:
        found: Nodes = self._nodes.take(parents.astype(np.int64) * self._width + (codes + 2))
        return found


class _ByCode:
    """At most one parent has a child of each code."""

    def __init__(self, n_codes: int, parents: IntArray, codes: IntArray, nodes: Nodes) -> None:
        self._parents = np.full(n_codes + 2, -2, dtype=np.int32)  # the codes -2 and -1 are at the end
        self._nodes = np.full(n_codes + 2, -1, dtype=np.int32)
        self._parents[codes], self._nodes[codes] = parents, nodes

    def find(self, parents: Nodes, codes: Codes) -> Nodes:
        return np.where(self._parents.take(codes) == parents, self._nodes.take(codes), np.int32(-1))


class _ByHash:
    """A hash table of the pairs of parent and code that there are."""

    def __init__(self, parents: IntArray, codes: IntArray, nodes: Nodes) -> None:
        self._nodes = np.append(nodes, np.int32(-1))  # what is not there is found at -1
        self._pairs = WholeTable(_pairs(parents, codes))

    def find(self, parents: Nodes, codes: Codes) -> Nodes:
        found: Nodes = self._nodes.take(self._pairs.find(_pairs(parents, codes)))
        return found


def _pairs(parents: Codes, codes: Codes) -> npt.NDArray[np.uint64]:
    """Pack pairs of numbers from -2 to below 2**31 into one number each."""
    return (parents.astype(np.int64) << 32 | codes.astype(np.int64) & 0xFFFFFFFF).view(np.uint64)


class Children:
    """The nodes of one level, found by their parents and codes.

    The codes, positions of the nodes' labels, are different among siblings and increasing; -1 for a node that
    only continues a short path.

    >>> children = Children(2, 3, np.array([0, 0, 1]), np.array([0, 2, -1]))
    >>> children.find(np.array([0, 0, 1, 1, -1]), np.array([2, 1, -1, 0, 0])).tolist()
    [1, -1, 2, -1, -1]
    """

    def __init__(self, n_parents: int, n_codes: int, parents: IntArray, codes: IntArray) -> None:
        short = np.flatnonzero(codes < 0)
        self._ends = None
        if len(short):
            self._ends = np.full(n_parents + 1, -1, dtype=np.int32)
            self._ends[parents[short]] = short
        nodes = np.flatnonzero(codes >= 0).astype(np.int32)
        parents, codes = parents[nodes], codes[nodes]
        self._table: _Complete | _ByPair | _ByCode | _ByHash
        if not len(short) and len(nodes) == n_parents * n_codes:
            self._table = _Complete(n_codes)
        elif n_parents * n_codes <= max(_DENSE * len(nodes), _SMALL):
            self._table = _ByPair(n_parents, n_codes, parents, codes, nodes)
        elif np.bincount(codes).max(initial=0) <= 1:
            self._table = _ByCode(n_codes, parents, codes, nodes)
        else:
            self._table = _ByHash(parents, codes, nodes)

    def find(self, parents: Codes, codes: Codes) -> Codes:
        """Find the child of each parent with each code; -1 if there is none, or `parents` is -1.

        The code is -1 for the child that only continues a short path, and -2 for none.
        """
        found = self._table.find(parents, codes)
        if self._ends is not None and len(rows := np.flatnonzero(codes == -1)):
            found[rows] = self._ends[parents[rows]]
        return found
