"""All units of tiny trees whose distinct units are counted, and by enumeration what neighbours cost.

Nothing here is taken from the package: units are listed leaf by leaf, losses summed over all outcomes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.helpers_people import Parents, delta

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def tree_of(*branching: int) -> Parents:
    """Return the parents of the nodes of a uniform tree."""
    sizes = itertools.accumulate((1, *branching), lambda size, children: size * children)
    return (
        (-1,),
        *(
            tuple(node // children for node in range(size * children))
            for size, children in zip(sizes, branching, strict=False)
        ),
    )


RAGGED: Parents = ((-1,), (0, 0, 0), (0, 0, 1, 2, 2), (0, 0, 1, 2, 3, 4, 4))
"""With a chain of single children, and nodes of one child among others of two."""


@dataclass(frozen=True)
class UnitWorld:
    """A tree, and the most nodes of each level that one unit has rows in.

    The values are those of the levels of units in each node, then of the excesses; with `rows`, at most so
    many of a unit, those of row counts come first.
    """

    parents: Parents
    max_nodes: tuple[int, ...]
    replace: bool = False
    rows: int | None = None

    def _nodes_of(self, leaves: Sequence[int]) -> list[list[int]]:
        levels = [list(leaves)]
        for parents in reversed(self.parents[1:]):
            above = [0] * (max(parents) + 1)
            for parent, value in zip(parents, levels[0], strict=True):
                above[parent] += value
            levels.insert(0, above)
        return levels

    def values(self) -> list[list[list[int]]]:
        """List what one unit can add to the nodes of all levels: nothing too."""
        found = []
        most = 1 if self.rows is None else self.rows
        for leaves in itertools.product(range(most + 1), repeat=len(self.parents[-1])):
            if self.rows is not None and sum(leaves) > self.rows:
                continue
            rows = self._nodes_of(leaves)
            units = [[int(n > 0) for n in level] for level in rows]
            if all(sum(level) <= bound for level, bound in zip(units, self.max_nodes, strict=True)):
                excesses = [
                    [
                        sum(below[child] for child, parent in enumerate(parents) if parent == node) - unit
                        for node, unit in enumerate(level)
                    ]
                    for level, below, parents in zip(units, units[1:], self.parents[1:], strict=False)
                ]
                found.append([*(rows if self.rows is not None else []), *units, *excesses])
        return found

    @functools.cached_property
    def moves(self) -> list[IntArray]:
        """List how far neighbours move the nodes of each level, furthest first: one array for each level."""
        values = self.values()
        ends = np.cumsum([len(level) for level in values[0]])[:-1]
        units = np.array([list(itertools.chain(*levels)) for levels in values])

        def in_order(moved: IntArray) -> IntArray:
            levels = np.split(-np.abs(moved), ends, axis=1)
            return np.unique(-np.hstack([np.sort(level, axis=1) for level in levels]), axis=0)

        moved = in_order(units)
        if self.replace:
            pairs = [in_order(units[place:] - unit) for place, unit in enumerate(units)]
            moved = np.unique(np.vstack(pairs), axis=0)
        return np.split(moved, ends, axis=1)

    def costs(self, cost: Callable[[float, int], float], scales: Sequence[float]) -> FloatArray:
        """Return the sum of cost(scale, move) over all nodes of measured levels, for all neighbours."""
        total = np.zeros(len(self.moves[0]))
        for scale, moved in zip(scales, self.moves, strict=True):
            if scale < math.inf:
                table = [0.0, *(cost(scale, move) for move in range(1, int(moved.max(initial=0)) + 1))]
                total += np.array(table)[moved].sum(axis=1)
        return total

    def deltas(self, epsilon: float, scales: Sequence[float], power: int) -> list[float]:
        """Return the delta of all neighbours whose nodes move furthest; `power` is 1 for Laplace noise.

        The noise is log-concave: delta grows with the move of any node.
        """
        measured = [moved * (scale < math.inf) for scale, moved in zip(scales, self.moves, strict=True)]
        moves = np.unique(np.hstack(measured), axis=0)
        furthest = moves[(moves[:, None] <= moves).all(axis=2).sum(axis=1) == 1]
        ends = np.cumsum([level.shape[1] for level in measured])[:-1]
        return [
            delta(
                epsilon,
                [[tuple(part[part > 0].tolist()) for part in np.split(move, ends)]],
                [scales],
                power,
            )
            for move in furthest
        ]


def laplace_divergence(scale: float, move: int) -> float:
    """Return the Kullback-Leibler divergence of discrete Laplace noise that moves, from all outcomes."""
    x = np.arange(-60 * math.ceil(scale), 60 * math.ceil(scale) + move + 1)
    masses = np.exp(-np.abs(x) / scale)
    return float(masses @ (np.abs(x - move) - np.abs(x)) / scale / masses.sum())
