"""How far one privacy unit can move all levels of a tree together, with a limited number of rows a node."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity, TreeSensitivity, sum_sensitivity

__all__ = [
    "LevelCapacities",
    "both_signs_squared",
    "tree_sensitivity",
    "uncounted_levels",
    "uncounted_sensitivity",
]

_ALL_NUMBERS = 32
"""Up to so many rows there is a pattern for each number of rows that replace them."""

Fill = list[tuple[int, int]]
"""Pairs of the rows in a node and the number of nodes with so many, none of them 0, largest first."""


class LevelCapacities(NamedTuple):
    """How many rows of one privacy unit the measured nodes of a level can hold."""

    nodes: tuple[tuple[int, int], ...]
    """The capacities above 0 and the number of nodes of each, largest capacity first."""
    single: bool
    """Whether the level has one node, measured or not, so that all rows that are kept lie below it."""

    @property
    def n_nodes(self) -> int:
        """Number of measured nodes that can hold a row."""
        return sum(number for _, number in self.nodes)

    @property
    def capacity(self) -> int:
        """The most rows of the unit in one node."""
        return self.nodes[0][0]

    def fill(self, rows: int) -> Fill:
        """Put rows into the nodes, as many as it holds into the largest one first."""
        filled = []
        for capacity, number in self.nodes:
            full = min(number, rows // capacity)
            rows -= full * capacity
            filled.append((capacity, full))
            if rows and full < number:
                filled.append((rows, 1))
                break
        return [each for each in filled if each[1]]

    def squares(self, rows: int) -> int:
        """Return the largest sum of squares of numbers of rows in the nodes, together at most `rows`."""
        return sum(held**2 * number for held, number in self.fill(rows))


def uncounted_levels(n_levels: int, rows: int, caps: Sequence[int | None] = ()) -> list[LevelCapacities]:
    """Return the capacities of levels of which nobody knows how many nodes they have, the root first.

    Each level has as many nodes as the `rows` of two data sets can fill. A node holds no more rows of a unit
    than its cap, if there are `caps` and it has one, and no more than the nodes above it.
    """
    most = itertools.accumulate((rows if cap is None else min(cap, rows) for cap in caps), min)
    return [
        LevelCapacities(((capacity, 2 * rows),), single=False)
        for capacity in (most if caps else [rows] * n_levels)
    ]


def uncounted_sensitivity(
    n_levels: int, *, neighbors: Neighbors, max_contributions: int, caps: Sequence[int | None] = ()
) -> tuple[Sensitivity, ...]:
    """Return the sensitivity of the counts of each of the `uncounted_levels`."""
    levels = uncounted_levels(n_levels, max_contributions, caps)
    return tree_sensitivity(levels, max_contributions, neighbors=neighbors).levels


def tree_sensitivity(
    levels: Sequence[LevelCapacities], rows: int, *, low: int = 1, high: int = 1, neighbors: Neighbors
) -> TreeSensitivity:
    r"""Return the sensitivity of counts or sums of a tree; each row adds from `low` to `high` units.

    Of one unit at most k = `rows` rows are kept, and at most :math:`C_v` below node v: the capacities of
    `levels`. Let :math:`f_l(b)` be the largest-first fill of level l by b rows (`LevelCapacities.fill`),
    :math:`S_l(b)` the sum of its squares, and :math:`m = \max(|\text{low}|, |\text{high}|)`.

    *One data set.* The fill majorises the numbers of rows :math:`c_v` of any unit with b rows: j nodes hold
    at most b, and at most the j largest capacities, and the j fullest nodes of the fill hold the smaller of
    both. So of all units the fill has the largest 1-norm, 2-norm and maximum, and the largest sum of any
    convex function. A sum moves by at most :math:`m\,c_v`. Under *add/remove* the norms are therefore those
    of :math:`m f_l(k)`; a single pattern covers all neighbours, and is attained on each level.

    *Replace, values of one sign.* Let the unit add :math:`A_v` before and :math:`B_v` after, all of one sign,
    the sizes of which sum to :math:`m k'` and :math:`m b`, with real numbers :math:`b \le k' \le k` (or the
    other way round). Of any j nodes, those with :math:`|A_v| \ge |B_v|` move by no more than :math:`|A_v|`,
    hence together by no more than the fullest of :math:`m f_l(k)`; the others by no more than the fullest of
    :math:`m f_l(b)`. So the moves are weakly majorised by both fills side by side, of which the largest
    remain if the level has fewer measured nodes. A level with a single node moves by
    :math:`m (k' - b) \le m (k - b)`. That is one pattern for each b. If rows are counted, b is a whole
    number. Otherwise neighbours lie `between` the patterns of whole b: while b grows between them, one node
    of :math:`f_l(b)` grows, and the single nodes shrink, all of them linearly, so that the cost is convex in
    b.

    There is a pattern for each whole b up to 32 rows. With more rows, either no node holds fewer than k, so
    :math:`f_l(b)` is a single node for any b, and all neighbours lie between b = 0 and b = k; or each of 32
    steps of b has a pattern that covers it: the fills of its end, with the single nodes of its beginning.

    *Replace, values of both signs.* With :math:`a = \min(|\text{low}|, |\text{high}|)`, a node of c rows
    before and c' after moves by at most
    :math:`m \max(c, c') + a \min(c, c') = (m - a)\max(c, c') + a(c + c')`. The 2-norm of the maxima is at
    most :math:`\sqrt{2 S_l(k)}` and that of :math:`c + c'` at most :math:`2\sqrt{S_l(k)}`. So that of the
    moves is at most :math:`\sqrt{S_l(k)}\,(\sqrt 2\,m + (2 - \sqrt 2)\,a)`, and also at most that of
    `sum_sensitivity`; the 1-norm is at most :math:`2 m k`, and no node moves by more than
    :math:`C_v (\text{high} - \text{low})`. No row need leave its node to be moved, so there is no pattern in
    which single nodes keep still.

    Leaves may be clipped to intervals around zero: that acts as if each row in a leaf had a value closer to
    zero (see `sum_sensitivity`).

    >>> flat = [LevelCapacities(((3, 1),), single=True), LevelCapacities(((1, 5),), single=False)]
    >>> tree_sensitivity(flat, 3, neighbors="add_remove").levels
    (Sensitivity(l1=3, l2_squared=9, linf=3), Sensitivity(l1=3, l2_squared=3, linf=1))
    """
    widest = sum_sensitivity(low, high, neighbors=neighbors, max_contributions=rows)  # checks the arguments
    most = max(abs(low), abs(high))
    if neighbors == "add_remove":
        return TreeSensitivity((tuple(_moves(level.fill(rows), most) for level in levels),))
    if low < 0 < high:
        return TreeSensitivity((tuple(_of_both_signs(level, rows, low, high, widest) for level in levels),))
    capped = any(capacity < rows for level in levels for capacity, _ in level.nodes)
    steps = _steps(rows, capped=capped)
    patterns = tuple(
        tuple(_replaced(level, rows, fewer, more, most) for level in levels) for fewer, more in steps
    )
    exact = all(fewer == more for fewer, more in steps)
    every = exact and len(steps) == rows + 1
    return TreeSensitivity(patterns, between=exact and not (every and most == 1))


def _steps(rows: int, *, capped: bool) -> list[tuple[int, int]]:
    """List the first and the last number of new rows that each pattern covers."""
    if rows <= _ALL_NUMBERS:
        return [(b, b) for b in range(rows + 1)]
    if not capped:
        return [(0, 0), (rows, rows)]
    ends = [rows * step // _ALL_NUMBERS for step in range(_ALL_NUMBERS + 1)]
    return [(0, 0), *itertools.pairwise(ends), (rows, rows)]


def _moves(fill: Fill, most: int) -> Sensitivity:
    """Return the norms of the moves of a level if each row adds `most` units."""
    return Sensitivity(
        l1=most * sum(rows * number for rows, number in fill),
        l2_squared=most**2 * sum(rows**2 * number for rows, number in fill),
        linf=most * max((rows for rows, _ in fill), default=0),
    )


def _replaced(level: LevelCapacities, rows: int, fewer: int, more: int, most: int) -> Sensitivity:
    """Return the moves of a level if `rows` rows are replaced by at least `fewer` and at most `more`."""
    if level.single:
        return _moves(level.fill(rows - fewer), most)
    both = sorted(level.fill(rows) + level.fill(more), reverse=True)
    left, largest = level.n_nodes, []
    for size, number in both:
        largest.append((size, min(number, left)))
        left -= largest[-1][1]
    return _moves([each for each in largest if each[1]], most)


def _of_both_signs(
    level: LevelCapacities, rows: int, low: int, high: int, widest: Sensitivity
) -> Sensitivity:
    """Return the moves of a level if rows are replaced that may add or subtract."""
    fill = level.fill(rows)
    squares = level.squares(rows)
    linf = (high - low) * max((held for held, _ in fill), default=0)
    m = max(-low, high)
    return Sensitivity(
        l1=min(2 * m * sum(held * number for held, number in fill), level.n_nodes * linf),
        l2_squared=min(both_signs_squared(squares, low, high), widest.l2_squared, level.n_nodes * linf**2),
        linf=linf,
    )


def both_signs_squared(squares: int, low: int, high: int) -> int:
    r"""Return :math:`S (\sqrt 2\,m + (2 - \sqrt 2)\,a)^2`, rounded up, for squares S of numbers of rows."""
    a, m = sorted((-low, high))
    # It is S (2 m**2 - 4 m a + 6 a**2) + sqrt(32) S a (m - a).
    root = 32 * (squares * a * (m - a)) ** 2
    return squares * (2 * m**2 - 4 * m * a + 6 * a**2) + math.isqrt(root) + (math.isqrt(root) ** 2 < root)
