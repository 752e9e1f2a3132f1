"""What is public about the counts already: exact counts, lower bounds and structural zeros.

A published total, a district known to be empty, a school known to have at least one pupil: whatever the
public knows needs no noise. It comes from the caller, never from the records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.stated_counts import (
    LARGEST,
    BoolArray,
    Facts,
    NameOf,
    check_levels,
    frame_facts,
    gathered,
    level_facts,
    node_names,
    refuse,
)
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["Known"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Known:
    r"""What is public about the counts of a tree already: exact counts and lower bounds.

    Make one with `read`, `from_levels` or `nothing`. Whatever follows from what was given is in it too.

    Attributes
    ----------
    exact : tuple of numpy.ndarray of bool, shape (level_sizes[l],) or (1,)
        For each level, whether the node's count is known.
    least : tuple of numpy.ndarray of int64, shape (level_sizes[l],) or (1,)
        For each level, the count where it is known, and the least that it can be elsewhere. Both arrays
        of a level have length one if nothing is known of any of its nodes.

    Notes
    -----
    A *table* is a whole number :math:`x_v \ge 0` for each node, where each parent has the sum of its
    children. The tables that agree with what was given are found in one pass up and one pass down.

    *Up.* Seen from its subtree alone, a node may hold any number from :math:`a_v` on, or, if it is
    *determined*, :math:`a_v` and nothing else. This is plain for a leaf. An inner node's children hold
    :math:`S_v = \sum_c a_c` together if all are determined, and anything from :math:`S_v` on if one is
    not. What is given of the node itself then leaves either nothing, which is a contradiction, or again
    one number, or all from :math:`a_v = \max(\text{given}, S_v)` on. Without a contradiction up to the
    root there is therefore a table that agrees with everything.

    *Down.* Let the whole tree leave a node one number or an interval. It hands :math:`x_v - S_v`, its
    slack, to those of its children that are not determined, who may share it in any way, since each may hold
    anything from :math:`a_c` on. So the slack goes to the only such child, if there is just one; none has
    any, if the slack is known to be zero; and else each may hold :math:`a_c` or more, whereby its range
    is again an interval of more than one number. Hence what the second pass leaves open is open: `exact` is
    true for just the nodes whose count is the same in all tables, and `least` and `most` are the least and
    the most that it is in any.

    **Privacy**: what is known is public because the caller says so; it must not be computed from the records.

    Examples
    --------
    >>> tree = Tree.from_branching([2, 2])
    >>> known = Known.read(tree, {"total": 9, "level_1": [4, np.nan], "level_2": [0, np.nan, 2, np.nan]})
    >>> [level.tolist() for level in known.exact]
    [[True], [True, True], [True, True, True, True]]
    >>> [level.tolist() for level in known.least]
    [[9], [4, 5], [0, 4, 2, 3]]
    """

    exact: tuple[BoolArray, ...]
    least: tuple[IntArray, ...]

    @classmethod
    def nothing(cls, tree: Tree) -> Known:
        """Know nothing: no count is known, and none is above 0 for sure."""
        levels = tree.depth + 1
        return cls((np.zeros(1, dtype=bool),) * levels, (np.zeros(1, dtype=np.int64),) * levels)

    @classmethod
    def from_levels(
        cls,
        tree: Tree,
        exact: Sequence[npt.NDArray[Any]],
        least: Sequence[npt.NDArray[Any]],
        name_of: NameOf | None = None,
    ) -> Known:
        """Take what is given of the nodes, and add what follows from it.

        Parameters
        ----------
        tree : Tree
        exact : sequence of numpy.ndarray of bool, shape (level_sizes[l],) or (1,)
            For each level, whether the node's count is given.
        least : sequence of numpy.ndarray of whole numbers, shape (level_sizes[l],) or (1,)
            The count where it is given, and the least that it can be elsewhere (0 if nothing is given).
        name_of : callable, optional
            Gives the name of a node, by its level and position, for messages.

        Returns
        -------
        Known

        Raises
        ------
        ArgumentError
            If the arrays do not fit the tree, or no table of counts agrees with what is given.
        """
        name = name_of or node_names(tree)
        fixed, low = _checked(tree, exact, least, name)
        message, n_clashes = "", 0
        for level in reversed(range(tree.depth)):
            below, n_open = _children(tree, level, fixed, low)
            clash = (fixed[level] & (low[level] < below)) | ((n_open == 0) & (low[level] > below))
            if clash.any():
                n_clashes += int(np.count_nonzero(clash))
                message = message or _clash(level, clash, fixed[level], low[level], below, n_open, name)
            low[level] = np.where(fixed[level], low[level], np.maximum(low[level], below))
            fixed[level] = fixed[level] | (n_open == 0)
        if message:
            refuse(message, n_clashes)
        for level in range(tree.depth):
            below, n_open = _children(tree, level, fixed, low)
            slack = low[level] - below
            rest = tree.spread(level, np.where(n_open == 1, slack, 0))
            settled = tree.spread(level, fixed[level] & ((n_open == 1) | (slack == 0)))
            low[level + 1] = low[level + 1] + np.where(fixed[level + 1], 0, rest)
            fixed[level + 1] = fixed[level + 1] | settled
        for level, size in enumerate(tree.level_sizes):
            shape = size if fixed[level].any() or low[level].any() else 1
            fixed[level] = np.broadcast_to(fixed[level][:shape], shape).copy()
            low[level] = np.broadcast_to(low[level][:shape], shape).copy()
        return cls(tuple(fixed), tuple(low))

    @classmethod
    def read(cls, hierarchy: Domain | Tree, known: Any) -> Known:
        """Read what a caller knows, and add what follows from it and from the structural zeros of the domain.

        Parameters
        ----------
        hierarchy : Domain or Tree
        known : None, Known, mapping or dataframe
            A mapping from the names of levels to counts: ``{"total": 81203}``, or for any level a Series
            indexed as ``groupby`` by the keys down to that level would index it, a dict from these keys to
            counts, a frame with these keys, or an array with one number per node of the tree, nan where
            none is known. Or one frame for all levels, in any order: key columns (the first so many of
            `by`, missing below the node of the row, all missing for the total), and ``count``, ``at_least``
            or both, missing where nothing is known. Columns that a released table has besides are ignored;
            any other column is refused, since it may be a key that is misspelt. Of several lower bounds for
            a node the largest counts.

        Returns
        -------
        Known

        Raises
        ------
        ArgumentError
            If `known` is none of these, speaks of nodes that there are not, holds numbers that are no
            counts, or contradicts itself or the domain.
        ColumnsError
            If columns of a frame are missing, repeated or strange.

        Examples
        --------
        >>> import pandas as pd
        >>> places = pd.DataFrame({"state": ["CA", "CA", "WA"], "city": ["Fresno", "Oakland", "Seattle"]})
        >>> domain = Domain.from_frame(places, by=["state", "city"])
        >>> Known.read(domain, {"total": 81203, "state": {"WA": 70000}}).least[1].tolist()
        [11203, 70000]
        >>> Known.read(domain, pd.DataFrame({"state": ["CA"], "at_least": [12]})).least[0].tolist()
        [12]
        """
        tree = hierarchy if isinstance(hierarchy, Tree) else hierarchy.tree
        name = node_names(hierarchy)
        if known is None:
            facts = []
        elif isinstance(known, Known):
            facts = known._facts(tree)
        elif isinstance(known, Mapping):
            check_levels(hierarchy, known)
            facts = [
                fact for level, given in known.items() for fact in level_facts(hierarchy, level, given, name)
            ]
        else:
            facts = frame_facts(hierarchy, known, name)
        if isinstance(hierarchy, Domain) and len(hierarchy.structural_zeros):
            nobody = np.zeros(len(hierarchy.structural_zeros), dtype=np.int64)
            facts.append(Facts(tree.depth, hierarchy.structural_zeros, nobody, nobody))
        return cls.from_levels(tree, *gathered(tree, facts, name), name)

    @property
    def levels(self) -> BoolArray:
        """Whether every node of a level is known, so that the level need not be measured; per level."""
        return np.array([exact.all() for exact in self.exact])

    def most(self, tree: Tree) -> list[FloatArray]:
        """Give the most that each node can hold, given what is known: inf where nothing bounds it.

        Parameters
        ----------
        tree : Tree
            The tree that this was made for.

        Returns
        -------
        list of numpy.ndarray of float64, shape (level_sizes[l],) or (1,)
            A known node holds its count; any other at most what its parent can hold less the least that
            its siblings can.
        """
        most: list[FloatArray] = [np.where(self.exact[0], self.least[0], math.inf)]
        for level in range(tree.depth):
            slack = most[-1] - tree.sum_children(level, self.least[level + 1])
            spare: FloatArray = np.where(self.exact[level + 1], 0.0, tree.spread(level, slack))
            here = spare + self.least[level + 1]
            most.append(here[:1].copy() if np.isinf(here).all() else here)
        return most

    def to_dict(self) -> dict[str, Any]:
        """Write down what is known, in plain JSON: for each level, pairs of a node's position and a number.

        Returns
        -------
        dict
            ``exact``, the known counts, and ``at_least``, the lower bounds above 0 of the other nodes.
        """
        written: dict[str, Any] = {"exact": [], "at_least": []}
        for exact, least in zip(self.exact, self.least, strict=True):
            for kind, public in (("exact", exact), ("at_least", ~exact & (least > 0))):
                written[kind].append(np.column_stack([np.flatnonzero(public), least[public]]).tolist())
        return written

    @classmethod
    def from_dict(cls, tree: Tree, data: Any) -> Known:
        """Read what `to_dict` wrote for the same tree.

        Raises
        ------
        ArgumentError
            If `data` is nothing of the kind, or contradicts itself.
        """
        facts = []
        for kind in ("exact", "at_least"):
            levels = data.get(kind) if isinstance(data, Mapping) else None
            if (
                not isinstance(levels, list)
                or len(levels) != tree.depth + 1
                or not all(map(_are_facts, levels, tree.level_sizes))
            ):
                raise ArgumentError(
                    "data",
                    f"does not say in {quote(kind)} what is known of this tree.",
                    hint="pass what Known.to_dict() returned.",
                )
            for level, pairs in enumerate(levels):
                nodes, numbers = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
                absent = np.full(len(nodes), -1 if kind == "at_least" else 0)
                counts, at_least = (numbers, absent) if kind == "exact" else (absent, numbers)
                facts.append(Facts(level, nodes, counts, at_least))
        name = node_names(tree)
        return cls.from_levels(tree, *gathered(tree, facts, name), name)

    def _facts(self, tree: Tree) -> list[Facts]:
        """Tell this as facts, if it fits the tree."""
        shapes = [(exact.shape, least.shape) for exact, least in zip(self.exact, self.least, strict=True)]
        fits = len(shapes) == tree.depth + 1 and all(
            exact == least and exact in {(1,), (size,)}
            for (exact, least), size in zip(shapes, tree.level_sizes, strict=True)
        )
        if not fits:
            raise ArgumentError(
                "known", "was made for another tree.", hint="make it anew with Known.read(domain, ...)."
            )
        facts = []
        for level, (exact, least) in enumerate(zip(self.exact, self.least, strict=True)):
            nodes = np.flatnonzero(exact | (least > 0))
            facts.append(Facts(level, nodes, np.where(exact, least, -1)[nodes], least[nodes]))
        return facts

    def __repr__(self) -> str:
        """Tell in a line how much is known on each level."""
        exact = tuple(int(np.count_nonzero(level)) for level in self.exact)
        bounds = zip(self.exact, self.least, strict=True)
        at_least = tuple(int(np.count_nonzero(~level & (least > 0))) for level, least in bounds)
        return f"Known(exact={exact}, at_least={at_least})"


def _checked(
    tree: Tree, exact: Sequence[npt.NDArray[Any]], least: Sequence[npt.NDArray[Any]], name: NameOf
) -> tuple[list[BoolArray], list[IntArray]]:
    """Check that there is one array of booleans and one of possible counts per level."""
    fixed, low = list(map(np.asarray, exact)), list(map(np.asarray, least))
    if not len(fixed) == len(low) == tree.depth + 1 or any(
        known.dtype != bool or low[level].dtype.kind not in "iu" or not {known.shape, low[level].shape}
        <= {(1,), (tree.level_sizes[level],)}
        for level, known in enumerate(fixed)
    ):  # fmt: skip
        raise ArgumentError(
            "known",
            "must have an array of booleans and one of whole numbers for each level of the tree.",
            hint="pass one entry per node, or arrays of length 1 for a level whose nodes all agree.",
        )
    for level, numbers in enumerate(low):
        largest = LARGEST // tree.n_leaves * tree.leaves_below(level)
        odd = (numbers < 0) | (numbers > largest)
        if odd.any():
            node = int(np.argmax(odd))
            raise ArgumentError(
                "known",
                f"says that {name(level, node)} holds {_at(numbers, node)}, "
                f"not a number from 0 to {_at(largest, node)}.",
                hint="counts are not negative, and at most 2**61 over the number of leaves for each leaf.",
            )
    return fixed, [numbers.astype(np.int64) for numbers in low]


def _children(
    tree: Tree, level: int, exact: list[BoolArray], least: list[IntArray]
) -> tuple[IntArray, IntArray]:
    """For each node of a level: what its children hold at least, and how many of them are not known."""
    n_open = tree.sum_children(level, (~exact[level + 1]).astype(np.int64))
    return tree.sum_children(level, least[level + 1]), n_open


def _clash(
    level: int, clash: BoolArray, exact: BoolArray, own: IntArray, below: IntArray, n_open: IntArray,
    name: NameOf,
) -> str:  # fmt: skip
    """Tell the first of the nodes that cannot hold what their children do."""
    node = int(np.argmax(clash))
    said = f"{'' if _at(exact, node) else 'at least '}{_at(own, node)}"
    parts = f"{'at least ' if _at(n_open, node) else ''}{_at(below, node)}"
    return f"says that {name(level, node)} holds {said}, but what is below it holds {parts} together"


def _at(values: npt.NDArray[Any], node: int) -> Any:
    return values[node if len(values) > 1 else 0]


def _are_facts(pairs: Any, n_nodes: int) -> bool:
    """Whether what was read from JSON is a list of pairs: the position of a node, and a count."""
    return isinstance(pairs, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(type(number) is int for number in pair)
        and 0 <= pair[0] < n_nodes
        and 0 <= pair[1] <= LARGEST
        for pair in pairs
    )
