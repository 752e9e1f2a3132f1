"""All units of tiny worlds, and by enumeration: the largest costs and deltas of any two neighbours.

Nothing here is taken from the package: units are listed row by row, and deltas are summed over all outcomes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Parents = tuple[tuple[int, ...], ...]
Scales = Sequence[Sequence[float]]
"""The noise scale of each quantity and level, inf where it is not measured."""

COUNTED = ((1, 1),)

_FEW = 20_000
"""Up to so many sums of losses are listed as they are."""


@dataclass(frozen=True)
class World:
    """A tree, and what one unit can hold: rows in leaves, each with a whole number for every quantity.

    `parents` has for each level the place of each node's parent; that of the root is -1. `caps` has for each
    level the most rows of a unit in one node, or None. A row has between low and high of each quantity, its
    `bounds`; a count has (1, 1). Each known node is a quantity, a level and a place: it is not measured.
    """

    parents: Parents
    k: int
    caps: tuple[int | None, ...] = ()
    replace: bool = False
    bounds: tuple[tuple[int, int], ...] = COUNTED
    known: frozenset[tuple[int, int, int]] = frozenset()

    @property
    def sizes(self) -> list[int]:
        """The number of nodes of each level."""
        return list(map(len, self.parents))

    def levels_of(self, leaves: Sequence[int]) -> list[list[int]]:
        """Add up values of leaves over the nodes of each level, root first."""
        levels = [list(leaves)]
        for parents in reversed(self.parents[1:]):
            above = [0] * (max(parents) + 1)
            for parent, value in zip(parents, levels[0], strict=True):
                above[parent] += value
            levels.insert(0, above)
        return levels

    def _nodes_of(self, leaves: Sequence[int]) -> list[int]:
        return list(itertools.chain(*self.levels_of(leaves)))

    def placements(self) -> list[tuple[int, ...]]:
        """List the numbers of rows that one unit can have in the leaves: none too."""
        caps = [self.k if cap is None else cap for cap in self.caps or [None] * len(self.parents)]
        below = range(min(self.k, caps[-1]) + 1)
        return [
            rows
            for rows in itertools.product(below, repeat=len(self.parents[-1]))
            if sum(rows) <= self.k
            and all(max(level) <= cap for level, cap in zip(self.levels_of(rows), caps, strict=True))
        ]

    def units(self) -> IntArray:
        """List what one unit can add to each quantity and leaf: all sums of its rows' values."""
        found: list[tuple[tuple[int, ...], ...]] = []
        for rows in self.placements():
            sums = [
                itertools.product(*(range(n * low, n * high + 1) for n in rows)) for low, high in self.bounds
            ]
            found += itertools.product(*sums)
        return np.array(found, dtype=np.int64)

    @functools.cached_property
    def moves(self) -> list[list[IntArray]]:
        """List how far neighbours move the nodes of each quantity and level: each move once.

        All nodes of a level have the same noise, so moves are sizes in falling order: shape (n, nodes).
        """
        trees = np.array([[self._nodes_of(own) for own in unit] for unit in self.units().tolist()])
        ends = np.cumsum(self.sizes)[:-1]
        for quantity, level, place in self.known:
            trees[:, quantity, sum(self.sizes[:level]) + place] = 0
        units = np.unique(trees, axis=0)

        def in_order(moved: IntArray) -> IntArray:
            levels = np.split(-np.abs(moved), ends, axis=2)
            return np.unique(-np.concatenate([np.sort(each, axis=2) for each in levels], axis=2), axis=0)

        moves = in_order(units)  # one of them is absent, with zeros everywhere
        if self.replace:
            pairs = [in_order(units[place:] - unit) for place, unit in enumerate(units)]
            moves = np.unique(np.concatenate(pairs), axis=0)
        return [np.split(moves[:, quantity], ends, axis=1) for quantity in range(len(self.bounds))]

    def largest(self, cost: Callable[[int, int, int], float]) -> float:
        """Return the most that neighbours cost: the sum of cost(quantity, level, move) over all nodes."""
        return float(max(self.costs(cost)))

    def costs(self, cost: Callable[[int, int, int], float]) -> FloatArray:
        """Return what each of the moves costs."""
        total = np.zeros(len(self.moves[0][0]))
        for quantity, levels in enumerate(self.moves):
            for level, moved in enumerate(levels):
                table = [0.0, *(cost(quantity, level, move) for move in range(1, int(moved.max()) + 1))]
                total += np.array(table)[moved].sum(axis=1)
        return total

    def level_maxima(self) -> list[list[tuple[int, int, int]]]:
        """Return for each quantity and level the largest L1 norm, squared L2 norm and single move."""
        return [
            [(int(d.sum(axis=1).max()), int((d**2).sum(axis=1).max()), int(d.max())) for d in levels]
            for levels in self.moves
        ]

    def largest_squares(self, precisions: Scales) -> float:
        """Return the maximum of the sum over quantities, levels and nodes of precision times move squared."""
        return self.largest(lambda quantity, level, move: precisions[quantity][level] * move**2)

    def largest_absolute(self, scales: Scales) -> float:
        """Return the maximum of the sum of move / scale: the epsilon of Laplace noise."""
        return self.largest(lambda quantity, level, move: move / scales[quantity][level])

    def largest_delta(self, epsilon: float, scales: Scales, power: int) -> float:
        """Return the largest delta of any neighbours: `power` is 1 for Laplace noise, 2 for Gaussian."""
        return max(delta(epsilon, moves, scales, power) for moves in self._farthest(scales))

    def _farthest(self, scales: Scales) -> Iterator[list[list[tuple[int, ...]]]]:
        """Yield the moves that no other exceeds in every node, of the levels that are measured.

        A node's noise is log-concave: the farther the node moves, the larger is delta.
        """
        measured = [
            np.where(math.isfinite(scale), moved, 0)
            for own, levels in zip(scales, self.moves, strict=True)
            for scale, moved in zip(own, levels, strict=True)
        ]
        ends, n_levels = np.cumsum([part.shape[1] for part in measured])[:-1], len(self.parents)
        moves = np.unique(np.concatenate(measured, axis=1), axis=0)
        for move in moves:
            if (moves >= move).all(axis=1).sum() == 1:
                levels = [tuple(part[part > 0].tolist()) for part in np.split(move, ends)]
                yield [levels[start : start + n_levels] for start in range(0, len(levels), n_levels)]


def delta(epsilon: float, moves: Sequence[Sequence[Sequence[int]]], scales: Scales, power: int) -> float:
    """Sum the delta of nodes that move by these numbers over all outcomes.

    Noise has probabilities in proportion to exp(-rate abs(x)**power). Of each level only the sum over its
    nodes of the exponents' differences matters, a whole number. If sums over levels have too many values,
    they are lowered by up to 2**-10, which lowers delta.
    """
    parts = [
        _level_loss(tuple(moved), scale, power)
        for own, levels in zip(scales, moves, strict=True)
        for scale, moved in zip(own, levels, strict=True)
        if moved and math.isfinite(scale)
    ]
    if not parts:
        return max(0.0, -math.expm1(epsilon))
    *first, (last, weights) = sorted(parts, key=lambda part: len(part[0]))
    values, masses = np.zeros(1), np.ones(1)
    for more, own in first:
        sums = np.add.outer(values, more)
        sums = sums.round(11) if sums.size < _FEW else np.floor(sums * 2**10) / 2**10
        values, where = np.unique(sums, return_inverse=True)
        masses = np.bincount(where.ravel(), np.outer(masses, own).ravel())
        values, masses = values[masses > 1e-19], masses[masses > 1e-19]
    order = np.argsort(last)
    last, weights = last[order], weights[order]
    above = np.r_[np.cumsum(weights[::-1])[::-1], 0.0]
    tilted = np.r_[np.cumsum((weights * np.exp(-last))[::-1])[::-1], 0.0]
    place = np.searchsorted(last, epsilon - values, side="right")
    return float(masses @ (above[place] - np.exp(epsilon - values) * tilted[place]))


@functools.cache
def _level_loss(moves: tuple[int, ...], scale: float, power: int) -> tuple[FloatArray, FloatArray]:
    """Return the values of the loss of a level, and their probabilities."""
    rate = 1 / scale if power == 1 else 1 / (2 * scale**2)
    reach = math.ceil(45 * scale if power == 1 else 10 * scale) + max(moves)
    x = np.arange(-reach, reach + 1)
    noise = np.exp(-rate * np.abs(x) ** power)
    noise /= noise.sum()
    first, masses = 0, np.ones(1)
    for move in moves:
        differences = np.abs(x - move) ** power - np.abs(x) ** power
        masses = np.convolve(masses, np.bincount(differences - differences.min(), noise))
        first += int(differences.min())
    kept = np.flatnonzero(masses > 1e-22)
    return rate * (first + kept), masses[kept]


def random_parents(rng: np.random.Generator, depth: int, *, most: int = 6) -> Parents:
    """Draw a ragged tree with at most so many leaves; single children are chains as well."""
    while True:
        levels = [(-1,)]
        for _ in range(depth):
            levels.append(tuple(place for place in range(len(levels[-1])) for _ in range(rng.integers(1, 4))))
        if len(levels[-1]) <= most:
            return tuple(levels)


def random_caps(rng: np.random.Generator, n_levels: int, k: int) -> tuple[int | None, ...]:
    """Draw caps of at least one level below the root."""
    caps = [None if rng.random() < 0.5 else int(rng.integers(1, k + 1)) for _ in range(n_levels - 1)]
    if not any(caps):
        caps[-1] = int(rng.integers(1, k + 1))
    return (None, *caps)
