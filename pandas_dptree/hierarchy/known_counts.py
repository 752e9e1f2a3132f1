"""Counts that are already public, and need no noise: exact counts, lower bounds and structural zeros.

They come from the caller, never from the records: a published total, or a school with at least one pupil.
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
    level_facts,
    merge_facts,
    node_names,
    raise_contradiction,
)
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["Known"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Known:
    r"""Public exact counts and lower bounds of a tree, with everything that follows from them.

    Make one with `read`, `from_levels` or `nothing`. For each level, `exact` says whether a node's count is
    known, and `least` is that count, else its lower bound. Both arrays have length one if nothing is known.

    A *table* is a whole number :math:`x_v \ge 0` for each node such that each parent holds the sum of its
    children. One pass up and one pass down find the tables that agree with what was given.

    *Up.* Considering its subtree alone, a node holds either exactly :math:`a_v` (it is *determined*) or any
    number from :math:`a_v` on. This is clear for a leaf. The children of an inner node hold
    :math:`S_v = \sum_c a_c` together if all are determined, and any number from :math:`S_v` on otherwise.
    Together with what is given for the node itself, this leaves nothing (a contradiction), one number, or all
    numbers from :math:`a_v = \max(\text{given}, S_v)` on. Without a contradiction up to the root, some table
    therefore agrees with everything.

    *Down.* Considering the whole tree, a node holds one number or an interval of numbers. Its slack
    :math:`x_v - S_v` goes to the children that are not determined, split in any way, since each may hold any
    number from :math:`a_c` on. A single such child receives all of it. If the slack is known to be zero, no
    child receives any. Otherwise each may hold :math:`a_c` or more, which again is an interval of more than
    one number. Hence `exact` is true for exactly the nodes whose count is the same in all tables, and `least`
    and `most` are the smallest and the largest count in any of them.

    **Privacy**: what is known is public because the caller says so; it must not be computed from the records.

    >>> tree = Tree.from_branching([2, 2])
    >>> known = Known.read(tree, {"total": 9, "level_1": [4, np.nan], "level_2": [0, np.nan, 2, np.nan]})
    >>> [level.tolist() for level in known.least]
    [[9], [4, 5], [0, 4, 2, 3]]
    """

    exact: tuple[BoolArray, ...]
    least: tuple[IntArray, ...]

    @classmethod
    def nothing(cls, tree: Tree) -> Known:
        """Make a `Known` without any known count or lower bound."""
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
        """Take counts, or else lower bounds, of the nodes, and add what follows from them.

        `name_of` gives a node's name in messages from its level and position.
        """
        name = name_of or node_names(tree)
        fixed, low = _checked(tree, exact, least, name)
        message, n_clashes = "", 0
        for level in reversed(range(tree.depth)):
            below, n_open = _children(tree, level, fixed, low)
            clash = (fixed[level] & (low[level] < below)) | ((n_open == 0) & (low[level] > below))
            if clash.any():
                n_clashes += int(np.count_nonzero(clash))
                message = message or _describe_clash(
                    level, clash, fixed[level], low[level], below, n_open, name
                )
            low[level] = np.where(fixed[level], low[level], np.maximum(low[level], below))
            fixed[level] = fixed[level] | (n_open == 0)
        if message:
            raise_contradiction(message, n_clashes)
        for level in range(tree.depth):
            below, n_open = _children(tree, level, fixed, low)
            slack = low[level] - below
            rest = tree.spread(level, np.where(n_open == 1, slack, 0))
            determined = tree.spread(level, fixed[level] & ((n_open == 1) | (slack == 0)))
            low[level + 1] = low[level + 1] + np.where(fixed[level + 1], 0, rest)
            fixed[level + 1] = fixed[level + 1] | determined
        for level, size in enumerate(tree.level_sizes):
            shape = size if fixed[level].any() or low[level].any() else 1
            fixed[level] = np.broadcast_to(fixed[level][:shape], shape).copy()
            low[level] = np.broadcast_to(low[level][:shape], shape).copy()
        return cls(tuple(fixed), tuple(low))

    @classmethod
    def read(cls, hierarchy: Domain | Tree, known: Any) -> Known:
        """Read what a caller knows, and add what follows from it and from the structural zeros of the domain.

        It is a mapping from level names to counts: ``{"total": 81203}``, or for any level a Series indexed as
        ``groupby`` by the keys down to that level would index it, a dict from these keys to counts, a frame
        with these keys, or an array with one number per node of the tree, nan where it is unknown.

        Or it is one frame for all levels, in any order: key columns (the coarsest ones of `by`; missing below
        the node of the row, all missing for the total), and ``count``, ``at_least`` or both, missing where
        nothing is known. Other columns of a released table are ignored. Any further column is an error, since
        it may be a misspelt key. Of several lower bounds for a node, the largest applies.
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
            zeros = np.zeros(len(hierarchy.structural_zeros), dtype=np.int64)
            facts.append(Facts(tree.depth, hierarchy.structural_zeros, zeros, zeros))
        return cls.from_levels(tree, *merge_facts(tree, facts, name), name)

    @property
    def levels(self) -> BoolArray:
        """For each level, whether all its nodes are known, so that it need not be measured."""
        return np.array([exact.all() for exact in self.exact])

    def most(self, tree: Tree) -> list[FloatArray]:
        """Return the largest possible count of each node, given what is known; inf where nothing bounds it.

        It is the most that the parent can hold minus the least that the siblings can.
        """
        most: list[FloatArray] = [np.where(self.exact[0], self.least[0], math.inf)]
        for level in range(tree.depth):
            slack = most[-1] - tree.sum_children(level, self.least[level + 1])
            spare: FloatArray = np.where(self.exact[level + 1], 0.0, tree.spread(level, slack))
            here = spare + self.least[level + 1]
            most.append(here[:1].copy() if np.isinf(here).all() else here)
        return most

    def to_dict(self) -> dict[str, Any]:
        """Serialize to plain JSON types: for each level, pairs of a node's position and a number.

        ``exact`` holds the known counts, and ``at_least`` the lower bounds above 0 of the other nodes.
        """
        serialized: dict[str, Any] = {"exact": [], "at_least": []}
        for exact, least in zip(self.exact, self.least, strict=True):
            for kind, public in (("exact", exact), ("at_least", ~exact & (least > 0))):
                serialized[kind].append(np.column_stack([np.flatnonzero(public), least[public]]).tolist())
        return serialized

    @classmethod
    def from_dict(cls, tree: Tree, data: Any) -> Known:
        """Restore what `to_dict` serialized for the same tree."""
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
                    f"has no valid entry {quote(kind)} for this tree.",
                    hint="pass what Known.to_dict() returned.",
                )
            for level, pairs in enumerate(levels):
                nodes, numbers = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
                absent = np.full(len(nodes), -1 if kind == "at_least" else 0)
                counts, at_least = (numbers, absent) if kind == "exact" else (absent, numbers)
                facts.append(Facts(level, nodes, counts, at_least))
        name = node_names(tree)
        return cls.from_levels(tree, *merge_facts(tree, facts, name), name)

    def _facts(self, tree: Tree) -> list[Facts]:
        """Convert to facts, after a check that the shapes fit the tree."""
        shapes = [(exact.shape, least.shape) for exact, least in zip(self.exact, self.least, strict=True)]
        fits = len(shapes) == tree.depth + 1 and all(
            exact == least and exact in {(1,), (size,)}
            for (exact, least), size in zip(shapes, tree.level_sizes, strict=True)
        )
        if not fits:
            raise ArgumentError(
                "known", "was made for another tree.", hint="make a new one with Known.read(domain, ...)."
            )
        facts = []
        for level, (exact, least) in enumerate(zip(self.exact, self.least, strict=True)):
            nodes = np.flatnonzero(exact | (least > 0))
            facts.append(Facts(level, nodes, np.where(exact, least, -1)[nodes], least[nodes]))
        return facts

    def __repr__(self) -> str:
        """Summarize the number of known counts and lower bounds per level."""
        exact = tuple(int(np.count_nonzero(level)) for level in self.exact)
        bounds = zip(self.exact, self.least, strict=True)
        at_least = tuple(int(np.count_nonzero(~level & (least > 0))) for level, least in bounds)
        return f"Known(exact={exact}, at_least={at_least})"


def _checked(
    tree: Tree, exact: Sequence[npt.NDArray[Any]], least: Sequence[npt.NDArray[Any]], name: NameOf
) -> tuple[list[BoolArray], list[IntArray]]:
    """Check that each level has one array of booleans and one of possible counts."""
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
                f"says that {name(level, node)} holds {_value_at(numbers, node)}, "
                f"not a number from 0 to {_value_at(largest, node)}.",
                hint="counts are at least 0, and at most 2**61 / n_leaves for each leaf below the node.",
            )
    return fixed, [numbers.astype(np.int64) for numbers in low]


def _children(
    tree: Tree, level: int, exact: list[BoolArray], least: list[IntArray]
) -> tuple[IntArray, IntArray]:
    """For each node of a level, sum the lower bounds of its children and count the unknown ones."""
    n_open = tree.sum_children(level, (~exact[level + 1]).astype(np.int64))
    return tree.sum_children(level, least[level + 1]), n_open


def _describe_clash(
    level: int, clash: BoolArray, exact: BoolArray, own: IntArray, below: IntArray, n_open: IntArray,
    name: NameOf,
) -> str:  # fmt: skip
    """Describe the first node that cannot hold what its children do."""
    node = int(np.argmax(clash))
    stated = f"{'' if _value_at(exact, node) else 'at least '}{_value_at(own, node)}"
    parts = f"{'at least ' if _value_at(n_open, node) else ''}{_value_at(below, node)}"
    return f"says that {name(level, node)} holds {stated}, but its children together hold {parts}"


def _value_at(values: npt.NDArray[Any], node: int) -> Any:
    return values[node if len(values) > 1 else 0]


def _are_facts(pairs: Any, n_nodes: int) -> bool:
    """Whether a value read from JSON is a list of pairs: the position of a node, and a count."""
    return isinstance(pairs, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(type(number) is int for number in pair)
        and 0 <= pair[0] < n_nodes
        and 0 <= pair[1] <= LARGEST
        for pair in pairs
    )
