"""How far one privacy unit can move all margins of crossed hierarchies together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pandas_dptree.privacy.sensitivity import Neighbors, TreeSensitivity
from pandas_dptree.privacy.tree_sensitivity import LevelCapacities, tree_sensitivity

__all__ = ["MarginCells", "crossed_sensitivity"]

_ALL_NUMBERS = 7
"""Up to so many rows there is a pattern for each number of rows that replace them."""


class MarginCells(NamedTuple):
    """How many cells of a margin are measured."""

    measured: int
    single: bool
    """Whether the margin has one cell, measured or not, which holds all rows that are kept."""


def crossed_sensitivity(
    margins: Sequence[MarginCells], rows: int, *, low: int = 1, high: int = 1, neighbors: Neighbors
) -> TreeSensitivity:
    r"""Return the sensitivity of counts or sums of all margins; each row adds from `low` to `high` units.

    A row that is kept is in one cell of each margin, and one that is dropped in none; of one unit at most
    `rows` are kept. So each margin is as a level of a tree, and the proof of `tree_sensitivity`, which is
    about each level by itself and about numbers of rows common to all, holds for all margins together.

    >>> total, others = MarginCells(1, single=True), MarginCells(6, single=False)
    >>> moves = crossed_sensitivity([total, others, others], 1, neighbors="replace")
    >>> [[level.l1 for level in pattern] for pattern in moves.patterns]
    [[1, 1, 1], [0, 2, 2]]
    """
    kinds = sorted(set(margins))
    levels = [LevelCapacities(((rows, each.measured),) * (each.measured > 0), each.single) for each in kinds]
    moves = tree_sensitivity(levels, rows, low=low, high=high, neighbors=neighbors)
    places = [kinds.index(each) for each in margins]
    patterns = tuple(tuple(pattern[place] for place in places) for pattern in moves.patterns)
    if len(patterns) > _ALL_NUMBERS + 1:  # the cost is convex in the number of new rows
        return TreeSensitivity((patterns[0], patterns[-1]), between=True)
    return TreeSensitivity(patterns, moves.between, moves.hull)
