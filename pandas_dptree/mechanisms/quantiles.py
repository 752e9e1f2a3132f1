r"""Quantiles of many groups at once by the exponential mechanism on a public grid.

**One quantile.** Let a group have n records, L of them below a point c of the grid and U at it or below. For
the quantile a/b the distance of c is

.. math:: D(c) = \max(bL - an,\; an - bU).

Where there are no records it is the distance of the rank; at the value that has the rank an/b it is at most
0, and the smaller the deeper the rank lies among the equal records. *One row moves it by at most*
:math:`\max(a, b - a)` if it is added or removed, and *by at most b* if it is replaced. Proof: a new record
below c moves the two terms by :math:`b - a` and :math:`a - b`, one at c by -a and :math:`a - b`, one above by
-a and a. If n stays, L and U move by at most 1, and the terms by b. The larger of two terms moves at most as
far as one of them. ∎ Known totals have no part in it: n and U count the records.

A candidate gets the weight of :math:`D(c) - \min D`, which is not negative. If D moves by amounts in an
interval of length 2s around 0, then so does its minimum, and the difference by amounts in an interval of
length 2s that contains 0: that is all that `pandas_dptree.mechanisms.exponential` needs.

**Several groups.** A privacy unit with k rows has :math:`k_j` of them in group j. If it is added or removed,
the distances of the group move by :math:`k_j \max(a, b - a)`, so with :math:`g = \epsilon / 2k\max(a, b - a)`
the draw of this group has a range of :math:`\epsilon k_j / k`. The draws are independent, so ranges add up to
:math:`\epsilon`, and the :math:`(\epsilon k_j/k)^2/8` of zCDP to at most :math:`\epsilon^2/8`. If the unit is
replaced, k rows leave their groups and k enter others, so this holds with 2k instead of k. Only for one draw
from all records g may be :math:`\epsilon/2kb`.

**Several quantiles** (Kaplan, Schnapp and Stemmer, "Differentially private approximate quantiles", 2022): the
middle one is drawn first; it divides the records, and the grid, for those below it and those above it. So m
quantiles take :math:`h = \lceil \log_2 (m + 1) \rceil` depths, each with its part of the budget: a row is in
one part of a depth, so the parts are like groups, also for a unit whose rows are in several. Equal values
cannot be divided; therefore each point is divided into places, and each record gets one of its point at
random, once and independently of all others. Draws after which nothing is divided are from points.

**Base measures** are whole masses of the points, at least 1, which are public: they multiply the weights, and
the ranges above do not change.

Secret: only the points that are drawn may leave this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import NamedTuple

import numpy as np

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.exponential import Entries, choose, permute_and_flip, weight_table
from pandas_dptree.mechanisms.rejection_sampling import ByteSource, uniform_words
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity

__all__ = ["BaseMeasure", "Drawing", "draw_quantiles", "n_depths", "row_moves"]

_MOST_PLACES = 2**20
"""The largest number of places into which each point is divided if there are several quantiles."""

_MOST = 2**62
"""Places and masses stay below it."""


def n_depths(n_quantiles: int) -> int:
    """Return how many times a record is used for so many quantiles."""
    return n_quantiles.bit_length()


def row_moves(fraction: Fraction, neighbors: Neighbors, *, several: bool) -> int:
    """Return how far a row moves distances at most, in all groups or parts together if there are several."""
    rows = count_sensitivity(neighbors=neighbors).l1  # a row that is replaced leaves a part and enters one
    if rows == 2 and not several:
        return fraction.denominator
    return rows * max(fraction.numerator, fraction.denominator - fraction.numerator)


class BaseMeasure(NamedTuple):
    """Masses of the points of each group, constant within cells of the grid.

    The cells of all groups start at the points `starts`, shape (n_cells + 1,), from 0 to the size of the
    grid; `densities`, shape (n_curves, n_cells), has the mass of each point in a cell, at least 1, and
    `curve`, shape (n_groups,), the row of each group.
    """

    starts: IntArray
    densities: IntArray
    curve: IntArray

    @property
    def heaviest(self) -> int:
        """The largest sum of the masses of all points."""
        return int((self.densities * np.diff(self.starts)).sum(axis=1).max(initial=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    r"""How quantiles are drawn: the epsilon of each depth, and what neighbours are.

    `permutes` means permute-and-flip, which has no base measure and no :math:`\epsilon^2/8`.
    """

    epsilon: Fraction
    neighbors: Neighbors
    max_contributions: int
    several: bool
    permutes: bool

    def exponent(self, fraction: Fraction) -> Fraction:
        """Return the exponent g of a draw."""
        moves = row_moves(fraction, self.neighbors, several=self.several)
        return self.epsilon / (2 * self.max_contributions * moves)


def draw_quantiles(
    places: IntArray,
    rows: IntArray,
    *,
    n_groups: int,
    size: int,
    quantiles: Sequence[Fraction],
    drawing: Drawing,
    measures: Sequence[BaseMeasure] | None,
    source: ByteSource,
) -> IntArray:
    """Draw quantiles of each group, and return points of the grid, shape (n_groups, n_quantiles).

    `places`, increasing, are ``group * size + point``, and `rows` how many records there are at each. The
    quantiles increase, between 0 and 1; each has a base measure, or none has.

    **Privacy**: as the module's description proves, each depth has an epsilon-bounded range, or is
    epsilon-DP if `drawing` permutes. The shape of the result depends on public arguments alone.
    """
    if drawing.permutes and measures is not None:
        raise ValueError("permute-and-flip has no base measure")
    finer = 1
    if len(quantiles) > 1:
        heaviest = max((each.heaviest for each in measures or ()), default=1)
        finer = min(_MOST_PLACES, _power_of_two(_MOST // max(size * n_groups, heaviest)))
        places, rows = _divided(places, rows, finer, source)
    values = _Values(places, np.insert(np.cumsum(rows), 0, 0), size * finer)
    groups = np.arange(n_groups, dtype=np.int64)
    ends = np.searchsorted(places, np.arange(n_groups + 1) * values.size)
    lows = groups * values.size
    drawn = np.empty((n_groups, len(quantiles)), dtype=np.int64)

    def solve(first: int, last: int, below: Fraction, above: Fraction, parts: _Parts) -> None:
        """Draw the quantiles from `first` to before `last`, of records between the two that enclose them."""
        if first == last:
            return
        middle = (first + last) // 2
        fraction = (quantiles[middle] - below) / (above - below)
        measure = None if measures is None else measures[middle]
        if last - first == 1:
            drawn[:, middle] = _draw(
                *_undivided(values, parts, finer), fraction, drawing, _masses(measure), source
            )
            return
        found = _draw(values, parts, fraction, drawing, _masses(measure, finer), source)
        drawn[:, middle] = found // finer
        cut = np.searchsorted(values.places, found)
        under = np.maximum(found - 1, parts.low)
        solve(first, middle, below, quantiles[middle], parts._replace(stop=cut, high=under))
        solve(middle + 1, last, quantiles[middle], above, parts._replace(start=cut, low=found))

    everything = _Parts(groups, ends[:-1], ends[1:], lows, lows + values.size - 1)
    solve(0, len(quantiles), Fraction(0), Fraction(1), everything)
    return drawn - (groups * size)[:, None]


class _Values(NamedTuple):
    """The distinct places in increasing order, the number of records before each, and the size of a group."""

    places: IntArray
    before: IntArray
    size: int


class _Parts(NamedTuple):
    """For each group a part of its records, and of its grid.

    Places with the numbers from `start` to before `stop`, and the places from `low` to `high` that may be
    drawn.
    """

    group: IntArray
    start: IntArray
    stop: IntArray
    low: IntArray
    high: IntArray


class _Masses(NamedTuple):
    """The mass of places: `upto` sums that of a group up to a place, and `find` inverts it, for one group."""

    upto: Callable[[IntArray, IntArray], IntArray]
    find: Callable[[int, int], int]


def _divided(places: IntArray, rows: IntArray, finer: int, source: ByteSource) -> tuple[IntArray, IntArray]:
    """Divide each point into finer places, and give each record one of them at random."""
    words = uniform_words(source, int(rows.sum()), np.dtype(np.uint64)) & np.uint64(finer - 1)
    found, counts = np.unique(np.repeat(places, rows) * finer + words.astype(np.int64), return_counts=True)
    return found, counts


def _power_of_two(most: int) -> int:
    """Return the largest power of two up to a positive number."""
    return 1 << (most.bit_length() - 1)


def _undivided(values: _Values, parts: _Parts, finer: int) -> tuple[_Values, _Parts]:
    """Return the records of parts at the points that were divided into places."""
    if finer == 1:
        return values, parts
    sizes = parts.stop - parts.start
    chosen = np.arange(sizes.sum()) + np.repeat(parts.start - (np.cumsum(sizes) - sizes), sizes)
    point = values.places[chosen] // finer
    new = np.flatnonzero(np.diff(point, prepend=-1))
    rows = np.diff(values.before)[chosen]
    before = np.append(np.insert(np.cumsum(rows), 0, 0)[new], rows.sum())
    size = values.size // finer
    group = point[new] // size
    start, stop = (np.searchsorted(group, parts.group, side=side) for side in ("left", "right"))
    return _Values(point[new], before, size), _Parts(
        parts.group, start, stop, parts.low // finer, parts.high // finer
    )


def _masses(measure: BaseMeasure | None, finer: int = 1) -> _Masses:
    """Return the masses of places by a base measure; without one, each place has a mass of 1."""
    if measure is None:
        return _Masses(lambda group, place: place, lambda group, mass: mass)
    starts = measure.starts * finer
    before = np.insert(np.cumsum(measure.densities * np.diff(starts), axis=1), 0, 0, axis=1)

    def upto(group: IntArray, place: IntArray) -> IntArray:
        row, cell = measure.curve[group], np.searchsorted(starts[1:-1], place, side="right")
        found: IntArray = before[row, cell] + measure.densities[row, cell] * (place - starts[cell])
        return found

    def find(group: int, mass: int) -> int:
        row = int(measure.curve[group])
        cell = int(np.searchsorted(before[row, 1:-1], mass, side="right"))
        beyond = (mass - int(before[row, cell])) // int(measure.densities[row, cell])
        return int(starts[cell]) + beyond

    return _Masses(upto, find)


def _draw(
    values: _Values, parts: _Parts, fraction: Fraction, drawing: Drawing, masses: _Masses, source: ByteSource
) -> IntArray:
    """Draw one quantile of each part; return places."""
    weights = weight_table(drawing.exponent(fraction))
    part, first, distance = _entries(values, parts, fraction, len(weights) - 1)
    offset = parts.group * values.size
    last = np.append(np.flatnonzero(np.diff(part)), len(part) - 1)  # the last entry of each part
    after = np.append(first[1:], 0)
    after[last] = parts.high + 1
    upto = masses.upto(parts.group[part], first - offset[part])
    mass = masses.upto(parts.group[part], after - offset[part]) - upto
    begins = np.insert(last[:-1] + 1, 0, 0)
    least = np.minimum.reduceat(np.where(mass > 0, distance, len(weights)), begins)
    place = np.minimum(distance - least[part], len(weights) - 1)
    weight = list(map(weights.__getitem__, place.tolist()))
    sizes, mass_before = mass.tolist(), upto.tolist()
    totals = list(map(mul, weight, sizes))
    take = permute_and_flip if drawing.permutes else choose
    drawn = np.empty(len(parts.group), dtype=np.int64)
    begin = 0
    for number, end in enumerate((last + 1).tolist()):
        own = slice(begin, end)
        entry, within = take(Entries(list(accumulate(totals[own])), weight[own], sizes[own]), source)
        drawn[number] = masses.find(int(parts.group[number]), mass_before[begin + entry] + within)
        begin = end
    return drawn + offset


def _entries(
    values: _Values, parts: _Parts, fraction: Fraction, largest: int
) -> tuple[IntArray, IntArray, IntArray]:
    """List the entries of all parts: the part, the first place, and the distance of each.

    The entries of a part are those of its values whose distance may be below `largest`, with the gaps before,
    between and after them; and at both ends all places beyond, whose distance is at least :math:`an - bU` or
    :math:`bL - an` of the value next to them, and is taken to be `largest`. As the least distance is at most
    0, the difference from it is above `largest` too.
    """
    a, b = fraction.as_integer_ratio()
    before = values.before
    base = before[parts.start]
    n = before[parts.stop] - base
    begin = np.searchsorted(before[1:], base + (a * n - largest) // b, side="right")
    end = np.searchsorted(before[:-1], base - (-(a * n + largest) // b))
    begin = np.clip(begin, parts.start, parts.stop)
    end = np.clip(end, begin, parts.stop)
    n_entries = 2 * (end - begin) + 3
    part = np.repeat(np.arange(len(n)), n_entries)
    place = np.arange(len(part)) - np.repeat(np.cumsum(n_entries) - n_entries, n_entries)
    value = begin[part] + (place - 1) // 2  # the value after a gap, or of a value; garbage at both ends
    known = np.append(values.places, 0)
    is_value = (place > 0) & (place % 2 == 0)
    low_end, high_end = place == 0, place == n_entries[part] - 1
    is_value &= ~high_end
    value = np.where(is_value, value, np.minimum(value, end[part]))
    first = np.where(is_value, known[value], known[np.maximum(value, 1) - 1] + 1)
    first = np.where(~is_value & (value == parts.start[part]), parts.low[part], first)
    first = np.where(low_end, parts.low[part], first)
    beyond = np.where(end < parts.stop, known[end], parts.high + 1)
    first = np.where(high_end, beyond[part], first)
    under = before[value] - base[part]
    upper = np.where(is_value, before[np.minimum(value + 1, len(before) - 1)] - base[part], under)
    middle = a * n[part]
    distance = np.maximum(b * under - middle, middle - b * upper)
    return part, first, np.where(low_end | high_end, largest, distance)
