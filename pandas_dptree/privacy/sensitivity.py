"""Sensitivity: how far one privacy unit can move the counts or the sums of a level, or of all levels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote

__all__ = [
    "Neighbors",
    "Sensitivity",
    "TreeSensitivity",
    "count_sensitivity",
    "sum_sensitivity",
]

Neighbors = Literal["add_remove", "replace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The largest distance between the values of one level in neighbouring data sets, exactly.

    `l1` is the largest sum of absolute differences over the nodes of the level, `l2_squared` that of squared
    differences, and `linf` the largest difference in a single node: by default, what the other two allow. All
    three are 0 for a level that does not move.
    """

    l1: int
    l2_squared: int
    linf: int = None  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        """Check that they are positive whole numbers, or all 0."""
        if self.l1 == self.l2_squared == 0 and self.linf in (0, None):
            object.__setattr__(self, "linf", 0)
            return
        object.__setattr__(self, "l1", _whole("l1", self.l1))
        object.__setattr__(self, "l2_squared", _whole("l2_squared", self.l2_squared))
        most = min(self.l1, math.isqrt(self.l2_squared)) if self.linf is None else self.linf
        object.__setattr__(self, "linf", _whole("linf", most))

    def on(self, n_levels: int) -> TreeSensitivity:
        """Return the sensitivity of `n_levels` levels that each move this far, whatever the others do."""
        return TreeSensitivity(((self,) * n_levels,))


@dataclass(frozen=True, slots=True)
class TreeSensitivity:
    """How far the values of all levels of a tree move together in neighbouring data sets.

    Each pattern has one `Sensitivity` per level, and any two neighbouring data sets keep to one of the
    patterns on all levels at once, or, if `between`, lie between two consecutive ones: what they cost is then
    at most what one of the two costs, wherever the cost is a sum of convex functions of the moves of single
    nodes. If they lie anywhere in the `hull` of all patterns, such a cost is at most what one of all patterns
    costs, and each level by itself moves at most as far as in the one that moves it furthest. If only
    `squares` lie in the hull, this holds of sums of squares, and of sums of moves, but of no other cost.
    """

    patterns: tuple[tuple[Sensitivity, ...], ...]
    between: bool = False
    hull: bool = False
    squares: bool = False

    @property
    def levels(self) -> tuple[Sensitivity, ...]:
        """The sensitivity of each level by itself."""
        return _cover(self.patterns)

    def on(self, n_levels: int) -> TreeSensitivity:
        """Return the sensitivity itself, after a check of the number of its levels."""
        assert all(len(pattern) == n_levels for pattern in self.patterns)
        return self

    def part(self, levels: npt.NDArray[np.bool_]) -> TreeSensitivity:
        """Return the sensitivity of some of the levels."""
        chosen = tuple(tuple(itertools.compress(pattern, levels)) for pattern in self.patterns)
        return replace(self, patterns=chosen)

    def covered(self, most: int) -> TreeSensitivity:
        """Return at most so many patterns, 3 or more, to one of which any two neighbouring data sets keep."""
        patterns = (self.levels,) if self.hull else self.patterns
        if self.between and len(patterns) > 1:
            patterns = tuple(map(_cover, itertools.pairwise(patterns)))
        if len(patterns) > most:
            first, *middle, last = patterns
            size = math.ceil(len(middle) / (most - 2))
            groups = [middle[start : start + size] for start in range(0, len(middle), size)]
            patterns = (first, *map(_cover, groups), last)
        return TreeSensitivity(patterns)


def _cover(patterns: Sequence[Sequence[Sensitivity]]) -> tuple[Sensitivity, ...]:
    """Return the pattern that moves each level as far as the one of some patterns that moves it furthest."""
    return tuple(map(cache(_largest), zip(*patterns, strict=True)))


def _largest(alternatives: Sequence[Sensitivity]) -> Sensitivity:
    """Return the sensitivity of a level that moves in one of several ways."""
    return Sensitivity(
        l1=max(each.l1 for each in alternatives),
        l2_squared=max(each.l2_squared for each in alternatives),
        linf=max(each.linf for each in alternatives),
    )


def count_sensitivity(*, neighbors: Neighbors, max_contributions: int = 1) -> Sensitivity:
    r"""Return the sensitivity of the counts of one level, the same for every level of any tree.

    A count is the sum of a column of ones, so this is `sum_sensitivity` with ``low = high = 1``:
    :math:`\Delta_1 = \Delta_2 = k` under add/remove, :math:`\Delta_1 = 2k` and
    :math:`\Delta_2 = \sqrt 2\,k` under replace.
    """
    return sum_sensitivity(1, 1, neighbors=neighbors, max_contributions=max_contributions)


def sum_sensitivity(low: int, high: int, *, neighbors: Neighbors, max_contributions: int = 1) -> Sensitivity:
    r"""Return the sensitivity of the sums of one level, in units; each row adds from `low` to `high` units.

    Neighbouring data sets differ in that one privacy unit is present or not ("add_remove"), or in that its
    rows are replaced by other rows ("replace"). Of one unit, k = `max_contributions` rows are added up.

    Let :math:`m = \max(|\text{low}|, |\text{high}|)`, and let :math:`e_i` be the vector with a one at node
    i of the level. A row of value v below node i adds :math:`v\,e_i`; a row that is dropped adds the zero
    vector. So a unit adds the sum of k such vectors, some of them zero if it has fewer rows.

    *add/remove*: the sums move by k vectors :math:`v\,e_i` or zero, each of 1-norm and 2-norm at most m.
    By the triangle inequality they move by at most :math:`k\,m` in either norm, wherever the rows lie.
    Both bounds are reached if all k rows have the value of largest size and are in one node.

    *replace*: pair the k vectors of the unit with the k vectors that replace them. The sums move by
    the sum of k differences, so by the triangle inequality at most by k times the largest of one pair:

    - the row stays in its node, :math:`(v - w)\,e_i`: both norms are at most high − low;
    - it moves to another node, :math:`v\,e_i - w\,e_j`: the 1-norm is at most 2m, the 2-norm
      :math:`\sqrt{v^2 + w^2} \le \sqrt 2\,m`;
    - it enters or leaves the domain: both norms are at most m.

    Since high − low ≤ 2m, :math:`\Delta_1 = 2 k m` and
    :math:`\Delta_2 = k \max(\text{high} - \text{low}, \sqrt 2\,m)`. The former is reached by k rows of
    the largest size that move from one node to another; the latter likewise, or by k rows that change from
    low to high within one node. A single node moves by at most high − low or m for each pair, so
    :math:`\Delta_\infty = k \max(\text{high} - \text{low}, m)`: that is k m if no value is negative.

    *Clipped leaves*: the bounds hold if each leaf sum is then clipped to an interval around zero, also for
    the levels above. Clipping turns the move :math:`d_i` of a leaf into :math:`c_i d_i` with some
    :math:`0 \le c_i \le 1`; so it acts on the vectors above as if each row in leaf i had the value
    :math:`c_i v`. These lie between min(low, 0) and max(high, 0), where no new value is of larger size. Two
    of them in the same node of a level above, :math:`c_i v` and :math:`c_j w`, differ by at most m if they
    have the same sign, and by at most :math:`|v| + |w| = |v - w| \le` high − low if they do not.

    >>> sum_sensitivity(-30, 40, neighbors="replace")
    Sensitivity(l1=80, l2_squared=4900, linf=70)
    """
    rows = _whole("max_contributions", max_contributions)
    if not (isinstance(low, int) and isinstance(high, int) and low <= high) or low == high == 0:
        raise ArgumentError(
            "low",
            f"and `high` must be whole numbers in this order and not both 0, "
            f"not {quote(low)} and {quote(high)}.",
            hint="pass the least and the most that one row adds, in units, for example 0 and 500.",
        )
    largest = max(abs(low), abs(high))
    chosen = neighbors if isinstance(neighbors, str) else ""
    if chosen == "add_remove":
        return Sensitivity(l1=rows * largest, l2_squared=(rows * largest) ** 2, linf=rows * largest)
    if chosen == "replace":
        widest_squared = max((high - low) ** 2, 2 * largest**2)
        return Sensitivity(
            l1=2 * rows * largest,
            l2_squared=rows**2 * widest_squared,
            linf=rows * max(high - low, largest),
        )
    raise ArgumentError(
        "neighbors", f"is unknown: {quote(neighbors)}.", hint='pass "add_remove" or "replace".'
    )


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ArgumentError(
            name, f"must be a whole number of at least 1, not {quote(value)}.", hint=f"for example {name}=1."
        )
    return int(value)
