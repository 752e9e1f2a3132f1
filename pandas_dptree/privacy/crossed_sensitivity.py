"""How far one privacy unit can move all margins of crossed hierarchies together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity, TreeSensitivity, sum_sensitivity
from pandas_dptree.privacy.tree_sensitivity import LevelCapacities, both_signs_squared, tree_sensitivity

__all__ = ["CellRows", "MarginCells", "capped_sensitivity", "crossed_sensitivity"]

_ALL_NUMBERS = 7
"""Up to so many rows there is a pattern for each number of rows that replace them."""

_MOST = 16
"""The most patterns, as they take time; with more choices of the worst axes, the bound is coarser."""

Steps = tuple[tuple[int, int, int], ...]
"""For each number of pairs of rows, an axis and a level of it: they lie in different nodes of that level."""


class MarginCells(NamedTuple):
    """How many cells of a margin are measured."""

    measured: int
    single: bool
    """Whether the margin has one cell, measured or not, which holds all rows that are kept."""


class CellRows(NamedTuple):
    """How many rows of one privacy unit are kept in a leaf cell, and how many leaf cells there are."""

    most: int
    leaves: tuple[tuple[int, ...], ...]
    """For each axis, the most leaves below a node of each level, from the root on."""

    def capacity(self, margin: Sequence[int]) -> int:
        """Return the most rows in a cell of a margin."""
        return self.most * math.prod(axis[level] for axis, level in zip(self.leaves, margin, strict=True))

    def squares(self, rows: int, margin: Sequence[int]) -> int:
        """Return the largest sum of squares of the numbers of rows in a margin, together at most `rows`."""
        capacity = self.capacity(margin)
        full, rest = divmod(rows, capacity)
        return full * capacity**2 + rest**2


def crossed_sensitivity(
    margins: Sequence[MarginCells], rows: int, *, low: int = 1, high: int = 1, neighbors: Neighbors
) -> TreeSensitivity:
    r"""Return the sensitivity of counts or sums of all margins; each row adds from `low` to `high` units.

    A row that is kept is in one cell of each margin, and one that is dropped in none; of one unit at most
    `rows` are kept. So each margin is as a level of a tree, and the proof of `tree_sensitivity`, which is
    about each level by itself and about numbers of rows common to all, holds for all margins together. It is
    exact for counts.

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


def capped_sensitivity(
    margins: Sequence[MarginCells],
    rows: int,
    *,
    cells: CellRows,
    low: int = 1,
    high: int = 1,
    neighbors: Neighbors,
) -> TreeSensitivity:
    r"""Return the sensitivity of `crossed_sensitivity` if the rows of a unit in each leaf cell are limited.

    `margins` are those of the lattice, in lexicographic order. Of one unit at most k = `rows` rows are kept,
    in a cell of margin l at most the capacity :math:`C_l`, of `cells`. Let
    :math:`S_l(b) = \lfloor b / C_l \rfloor C_l^2 + (b \bmod C_l)^2`. Numbers up to :math:`C_l` that sum to b
    have squares that sum to at most that (see `tree_sensitivity`), also if b is no whole number.

    *Pairs of rows.* Let :math:`p_l \ge 0` be the price of a square on margin l, and N the squares of a unit's
    counts on all margins at these prices. For rows r and s let t be the deepest level of each axis on which
    they share a node. They share a cell of margin l if and only if :math:`l \le t` on every axis. So

    .. math:: N = \sum_{r, s} P(t(r, s)), \qquad P(t) = \sum_{l \le t} p_l,

    over all ordered pairs, r = s too. Take a chain of margins from that of the leaf cells to the grand total,
    :math:`L = l^0 \ge l^1 \ge \dots \ge l^n = 0`. At most :math:`S_{l^j}(k)` pairs have
    :math:`t \ge l^j`. Any other pair has :math:`t_d < l^j_d` for some axis d, so that P(t) is at most
    :math:`Q_j = \max_d \sum_{l: l_d < l^j_d} p_l`, which falls with j. The sum of the prices of the pairs is
    largest if as many pairs as possible have large ones, so

    .. math:: N \le S_L(k) \sum_l p_l + \sum_{j < n} (S_{l^{j+1}}(k) - S_{l^j}(k))\,Q_j =: J(k).
        \quad (1)

    For each choice of the axes that attain all :math:`Q_j` this is linear in the prices: a pattern. If the
    axis of :math:`Q_j` keeps its level in :math:`l^{j + 1}`, it attains :math:`Q_{j + 1}` too. The chain
    lowers one axis by one level at a time, such that the capacity grows as little as possible. It may jump
    from any :math:`l^j` to the grand total, and does so before there are too many patterns. From :math:`l^0`
    on, the patterns would be :math:`S_L` for margins with the leaves of axis d, and :math:`k^2` for all
    others. That is exact if each axis has leaves enough for all rows below the parent of one; with a single
    axis, (1) is :math:`\sum_l p_l S_l(k)`.

    *Sums.* Let rows add :math:`v_r` of one sign or both, of size at most m. Then N has the factors
    :math:`v_r v_s \le |v_r| |v_s|`, and the sum of these over pairs with :math:`t \ge l` is at most
    :math:`m^2 S_l(b)`, if the sizes of all rows sum to :math:`m b`. So :math:`N \le m^2 J(b)`.

    *Replace, values of one sign.* Let the sizes sum to :math:`m k'` before, and :math:`m b` after, with
    :math:`b \le k' \le k`. A margin with a single cell moves by :math:`m (k' - b) \le m (k - b)`. In any
    other cell the numbers before and after have one sign, so the square of their difference is at most the
    sum of their squares: all these cost at most :math:`m^2 (J'(k) + J'(b))`, where J' leaves out the prices
    of single cells. With :math:`\beta = b / k`,

    .. math:: S_l(b) \le (2\beta - \beta^2)\,S_l(k). \quad (2)

    Since J' is a sum of the :math:`S_l` with factors of at least 0, all cost at most
    :math:`(1 - \beta)^2` times what they do for b = 0, and :math:`2\beta - \beta^2` times what they do for
    b = k. These factors add up to 1.

    *Proof of (2)*, for C = :math:`C_l`, k = qC + r with q ≥ 1 and r < C (if k < C it is
    :math:`\beta^2 \le 2\beta - \beta^2`). The right side is concave in b; the left one is convex between
    multiples of C, and between the last one and k. So it suffices that (2) holds at these. It does at 0 and
    at k. At b = jC, where :math:`2 - \beta \ge 1 + r/k`, it states :math:`kC \le (2 - \beta)(kC - r(C - r))`,
    and :math:`(1 + r/k)(kC - r(C - r)) = kC + r^2 (1 - (C - r)/k) \ge kC`. ∎

    *Replace, values of both signs.* As for `tree_sensitivity`, but with the 2-norm of all margins together at
    the prices p: that of the larger numbers of rows is at most :math:`\sqrt{2 J(k)}`, and that of the numbers
    before and after together at most :math:`2\sqrt{J(k)}`. So the squares of each pattern grow by the same
    factor as there.

    *Other costs.* No cell of margin l moves by more than :math:`C_l` rows, or the values of so many, and all
    sums of moves are those of `crossed_sensitivity`. But only `squares` lie in the hull of the patterns. Let
    two leaves cross two, with a row in each: both one-way margins move by 2 and 2. At
    :math:`\varphi(x) = \max(x - 1, 0)` this costs 4, and one cell of four rows beside four of one costs 3.

    >>> total, others = MarginCells(1, single=True), MarginCells(6, single=False)
    >>> one_row = CellRows(1, leaves=((9, 1), (9, 1)))
    >>> margins = [total, others, others, others]
    >>> moves = capped_sensitivity(margins, 3, cells=one_row, neighbors="add_remove")
    >>> [[level.l2_squared for level in pattern] for pattern in moves.patterns]
    [[9, 9, 3, 3], [9, 3, 9, 3]]
    """
    widest = sum_sensitivity(low, high, neighbors=neighbors, max_contributions=rows)  # checks the arguments
    lattice = np.array(list(itertools.product(*(range(len(axis)) for axis in cells.leaves))))
    capacities = [min(rows, cells.capacity(margin)) for margin in lattice.tolist()]
    largest = max(abs(low), abs(high))
    both = neighbors == "replace" and low < 0 < high

    @cache
    def moves(margin: MarginCells, capacity: int, squares: int, new: int) -> Sensitivity:
        if not margin.measured:
            return Sensitivity(l1=0, l2_squared=0)
        if margin.single:
            most = (high - low) * rows if both else largest * (rows - new)
            return Sensitivity(l1=most, l2_squared=most**2)
        if both:
            squared = both_signs_squared(squares, low, high)
            return Sensitivity(l1=widest.l1, l2_squared=squared, linf=(high - low) * capacity)
        times = 2 if new else 1
        l1, l2_squared = times * largest * rows, times * largest**2 * squares
        return Sensitivity(l1=l1, l2_squared=l2_squared, linf=largest * capacity)

    patterns = dict.fromkeys(
        tuple(moves(*each, new) for each in zip(margins, capacities, squares, strict=True))
        for new in ((0, rows) if neighbors == "replace" and not both else (0,))
        for squares in _joint_squares(lattice, rows, cells)
    )
    return TreeSensitivity(tuple(patterns), hull=True, squares=True)


def _joint_squares(lattice: npt.NDArray[np.int64], rows: int, cells: CellRows) -> Iterator[list[int]]:
    """Yield the squares of each margin in every pattern of (1)."""
    held = cells.squares(rows, lattice[-1].tolist())
    for steps in _choices(rows, cells):
        apart = ((lattice[:, axis] < level).astype(object) * pairs for axis, level, pairs in steps)
        yield list(sum(apart, np.full(len(lattice), held, dtype=object)))


def _choices(rows: int, cells: CellRows) -> list[Steps]:
    """Choose the axes that may attain the maxima of (1), for each step of a chain of margins."""
    margin = tuple(len(axis) - 1 for axis in cells.leaves)
    held = cells.squares(rows, margin)
    chosen: set[tuple[Steps, int]] = {((), axis) for axis, level in enumerate(margin) if level}
    while held < rows**2:
        below = {
            axis: (*margin[:axis], level - 1, *margin[axis + 1 :])
            for axis, level in enumerate(margin)
            if level
        }
        lowered = min(below, key=lambda axis: cells.capacity(below[axis]))
        after = {axis: [axis] for axis in below}
        after[lowered] = [axis for axis, level in enumerate(below[lowered]) if level] or [lowered]
        few = sum(len(after[axis]) for _, axis in chosen) <= _MOST
        more = cells.squares(rows, below[lowered]) if few else rows**2
        chosen = {
            (steps + ((axis, margin[axis], more - held),) * (more > held), other)
            for steps, axis in chosen
            for other in after[axis]
        }
        margin, held = below[lowered], more
    return sorted({steps for steps, _ in chosen}) or [()]
