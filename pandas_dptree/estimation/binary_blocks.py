r"""Families with a total and upper bounds: the blocks of which crossed tables are made.

A block has the children of a node as its rows and two columns. The sum of each row is fixed, and so is
that of each column: the first column alone says the rest. So a block is a family of numbers
:math:`0 \le x_c \le r_c` with a given total, where :math:`r_c` is the sum of a row. As long as the total is
at least 0 and at most :math:`\sum_c r_c` there is a solution, in whole numbers too. A table of many columns
has such a block for each node and each split of its columns in two.

Everything here is a function of noisy numbers and of public shapes: post-processing, free of privacy cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.estimation.nonnegative import order_within
from pandas_dptree.hierarchy.shape import IntArray, Values
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["BinarySplit", "RandomWords", "binary_splits", "fit_bounded", "round_bounded", "split_columns"]

RandomWords = Callable[[int], npt.NDArray[np.uint64]]
Table = npt.NDArray[Any]

_BLOCK = 2**16
"""Cells fitted at a time, so that they fit into the processor's cache."""

_PARTS = 32
"""At most in so many parts copies are rounded, each with what the ones before it lost."""

_STEPS = 60
"""More than are needed, unless rounding errors stop them: then what is left is shared."""

_WHOLE = 2.0**-24
"""Fits this close to a whole number are taken for it."""

_TIE = 2.0**-28
"""Fractions are compared on this grid, and by chance where they are equal."""


@dataclass(frozen=True, slots=True)
class BinarySplit:
    """A partition of the columns of a table into runs, and a finer one that splits some of these in two."""

    coarse: IntArray
    """Boundaries of the coarser runs, from 0 to the number of columns."""

    finer: IntArray
    """Boundaries of the finer runs."""

    variances: FloatArray
    """Variance of the sum over each finer run, up to a common factor."""

    copies: int
    """In so many parts of the columns the same is done: the leaf cells of the axes before the one divided."""


def binary_splits(axes: Sequence[Tree], variances: Sequence[Sequence[Values]]) -> list[BinarySplit]:
    """Divide the crossed leaves of some axes, axis by axis and level by level, each run in two at a time.

    `variances` has level values for each axis. Nodes with more than two children are divided in the middle.
    """
    width = math.prod(axis.n_leaves for axis in axes)
    inner, above, chain = width, np.ones(1), []
    for axis, of_axis in zip(axes, variances, strict=True):
        inner //= axis.n_leaves
        first = np.arange(len(above))[:, None] * axis.n_leaves
        for level in range(1, axis.depth + 1):
            size = axis.level_sizes[level]
            ends = first + np.cumsum(np.broadcast_to(axis.leaves_below(level), size))
            spread = np.multiply.outer(above, np.broadcast_to(of_axis[level], size))
            chain.append((np.append(0, ends * inner), spread.reshape(-1), len(above)))
        above = chain[-1][1] if axis.depth else above
    current, splits = np.array([0, width]), []
    for edges, spread, copies in chain:
        while len(current) < len(edges):
            place = np.searchsorted(edges, current)
            middle = edges[(place[:-1] + place[1:]) // 2][np.diff(place) > 1]
            finer = np.union1d(current, middle)
            sums = np.add.reduceat(spread, np.searchsorted(edges, finer[:-1]))
            splits.append(BinarySplit(current, finer, sums, copies))
            current = finer
    return splits


def split_columns(
    splits: Sequence[BinarySplit],
    estimates: FloatArray,
    variances: FloatArray,
    sums: Table,
    above: Table,
    counts: IntArray,
    random_words: RandomWords | None = None,
) -> Table:
    r"""Fit a table, shape (columns, nodes of a level), to the sums of its rows and to the level above it.

    `sums` has one number for each node, `above` the table of the level above, and `counts` the numbers of
    children. In each block the first column minimises :math:`\sum_c (x_c - w_c)^2 / v_c`, with w and v those
    of the least-squares estimate from the `estimates` of both columns, whose variances are those of the node
    times those of the columns, given that they add up to the row.

    With `random_words`, which returns so many 64-bit words, the table is whole; its sums and the level above
    it then are, too. What the first columns lose by rounding is carried on to the next copies of the same
    split, so that the errors of sums over the copies do not grow with their number.
    """
    size = len(variances)
    table = sums[None] if random_words is not None else sums[None].astype(np.float64)
    runs = zip(splits, _sums_of_runs(splits, estimates), _sums_of_runs(splits, above), strict=True)
    for split, estimated, given in runs:
        place = np.searchsorted(split.finer, split.coarse)
        divided = np.flatnonzero(np.diff(place) == 2)
        finer = np.empty((len(split.finer) - 1, size), dtype=table.dtype)
        finer[place[:-1]] = table
        copies = divided.reshape(split.copies if random_words is not None else len(divided), -1)
        parts = 1 + copies.size * size // _BLOCK if random_words is None else _PARTS
        carried = np.zeros((copies.shape[1], size))
        for part in np.array_split(copies, min(len(copies), parts)):
            n, rows = len(part), part.reshape(-1)
            left = place[rows]
            first, second = split.variances[left, None], split.variances[left + 1, None]
            most = table[rows]
            weight = second / (first + second)
            target = estimated[left] * weight + (most - estimated[left + 1]) * (1 - weight)
            target += np.tile(carried / n, (n, 1))
            spread = variances * (first * weight)
            totals, families = given[left].reshape(-1), np.tile(counts, len(rows))
            limits: Table = most.reshape(-1)
            fitted: Table = fit_bounded(target.reshape(-1), spread.reshape(-1), limits, totals, families)
            if random_words is not None:
                fitted = round_bounded(fitted, limits, totals, families, random_words)
            finer[left] = fitted.reshape(most.shape)
            finer[left + 1] = most - finer[left]
            if random_words is not None:
                lost = estimated[left] - estimated[left + 1] - (finer[left] - finer[left + 1])
                carried += lost.reshape(n, -1, size).sum(axis=0) / 2
        table = finer
    return table


def _sums_of_runs(splits: Sequence[BinarySplit], table: Table) -> list[Table]:
    """Sum the columns of a table over the finer runs of each split."""
    sums = [table]
    for split in reversed(splits[1:]):
        first = np.searchsorted(split.finer, split.coarse[:-1])
        pairs = np.diff(first, append=len(split.finer) - 1) == 2
        coarse = sums[-1][first]
        coarse[pairs] += sums[-1][first[pairs] + 1]
        sums.append(coarse)
    return sums[: len(splits)][::-1]


def fit_bounded(
    estimates: FloatArray, variances: FloatArray, most: Table, totals: Table, counts: IntArray
) -> FloatArray:
    r"""Fit families that follow one another to their totals, within 0 and the most that each member can hold.

    The minimiser of :math:`\sum_c (x_c - z_c)^2 / V_c` is :math:`x_c = \min(\max(0, z_c + \theta V_c), r_c)`,
    whose sum grows with :math:`\theta` in linear pieces: Newton's method finds it, kept within a bracket that
    shrinks by half where a step would leave it. Where numbers are so large that no float comes close enough,
    all members share what is left.

    >>> fit_bounded(np.array([-1.0, 4.0, 5.0]), np.ones(3), np.array([2, 2, 9]), np.array([6]), np.array([3]))
    array([0., 2., 4.])
    """
    start = np.cumsum(counts) - counts
    full = np.add.reduceat(most, start, dtype=np.float64)
    fitted = np.where(np.repeat(totals >= full, counts), most, 0.0)
    undecided = (totals > 0) & (totals < full)
    at = np.flatnonzero(np.repeat(undecided, counts) & (most > 0))
    if not len(at):
        return fitted
    family = np.repeat(np.arange(len(counts)), counts)[at]
    z, v, r = estimates[at], variances[at], most[at].astype(np.float64)
    start = np.flatnonzero(np.diff(family, prepend=-1))
    counts = np.diff(start, append=len(at))
    total, tolerance = totals[undecided].astype(np.float64), 1e-13 * full[undecided]
    low, high = np.minimum.reduceat(-z / v, start), np.maximum.reduceat((r - z) / v, start)
    theta = np.clip((total - np.add.reduceat(z, start)) / np.add.reduceat(v, start), low, high)
    for _ in range(_STEPS):
        moved = z + np.repeat(theta, counts) * v
        x = np.minimum(np.maximum(moved, 0.0), r)
        over = np.add.reduceat(x, start) - total
        fitted[at] = x
        going = np.abs(over) > tolerance
        if not going.any():
            return fitted
        slope = np.add.reduceat(v * ((moved > 0) & (moved < r)), start)
        high, low = np.where(over > 0, theta, high), np.where(over > 0, low, theta)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = theta - over / slope
        theta = np.where((step > low) & (step < high), step, (low + high) / 2)
        if 4 * np.count_nonzero(going) < 3 * len(going):
            stays = np.repeat(going, counts)
            at, z, v, r, counts = at[stays], z[stays], v[stays], r[stays], counts[going]
            total, tolerance, low, high, theta = (x[going] for x in (total, tolerance, low, high, theta))
            start = np.cumsum(counts) - counts
    x = fitted[at]
    held = np.add.reduceat(x, start)
    room = np.add.reduceat(r, start) - held
    taken = np.repeat(np.minimum(total / np.where(held > 0, held, 1.0), 1.0), counts)
    filled = np.repeat(np.clip((total - held) / np.where(room > 0, room, 1.0), 0.0, 1.0), counts)
    fitted[at] = x * taken + (r - x) * filled
    return fitted


def round_bounded(
    fitted: FloatArray, most: IntArray, totals: IntArray, counts: IntArray, random_words: RandomWords
) -> IntArray:
    """Round families to whole numbers with the given totals, within 0 and the most that each member can hold.

    Each member has its floor, and the largest fractions of a family are rounded up, ties broken by chance.
    Floats beyond 2**53 have no fractions, and their sums are not exact: what then is lacking, or too much,
    which is little, is made up by the first members that have room for it.
    """
    start = np.cumsum(counts) - counts
    floors = np.floor(fitted + _WHOLE)
    fractions = fitted - floors
    whole = np.minimum(floors.astype(np.int64), most)
    lacking = totals - np.add.reduceat(whole, start)
    candidates = np.flatnonzero((fractions > _WHOLE) & (whole < most) & np.repeat(lacking > 0, counts))
    if len(candidates):
        family = np.repeat(np.arange(len(counts)), counts)[candidates]
        ties = (random_words(len(candidates)) >> np.uint64(11)) * 2.0**-53
        order = order_within(family, -(np.rint(fractions[candidates] / _TIE) + ties))
        rank = np.arange(len(family)) - np.searchsorted(family, family)
        whole[candidates[order[rank < lacking[family]]]] += 1
        lacking = totals - np.add.reduceat(whole, start)
    if lacking.any():
        for sign, room in ((1, most - whole), (-1, whole)):
            needed = np.repeat(np.maximum(sign * lacking, 0), counts)
            room = np.minimum(room, needed)
            before = np.cumsum(room) - room
            before -= np.repeat(before[start], counts)
            whole += sign * np.clip(needed - before, 0, room)
    return whole
