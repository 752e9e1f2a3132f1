"""How far one privacy unit can move all levels of a tree of unit counts together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity, TreeSensitivity, sum_sensitivity

__all__ = ["unit_sensitivity"]

_MOST = 256
"""Patterns take time. If there are more, levels of excesses are charged the most they move, root first."""

IntArray = npt.NDArray[np.int64]
Shape = tuple[int, ...]
"""The number of a unit's nodes on each level, root first; then that of its rows, if they are counted."""


def unit_sensitivity(
    max_nodes: Sequence[int], *, neighbors: Neighbors, excess: Sequence[bool], rows: int | None = None
) -> TreeSensitivity:
    r"""Return the sensitivity of unit counts, of their excesses, and of row counts of the same kept rows.

    The levels are those of the counts :math:`D_0, \dots, D_L` of units in each node, then of the excesses
    :math:`E_0, \dots, E_{L - 1}`: E(v) is the sum of D over the children of v, less D(v). With `rows`, those
    of the row counts :math:`A_0, \dots, A_L` come first. `excess` states for each level of excesses whether
    it is charged jointly with the others; one that is not is charged the most it moves, whatever the others
    do. There is one root; the bounds `max_nodes` are 1 for the root and do not decrease.

    *A unit's shape.* Let a unit have kept rows in :math:`t_l` nodes of level l. As each of them has a kept
    row in a child, :math:`1 = t_0 \le t_1 \le \dots \le t_L`, and :math:`t_l \le m_l` of `max_nodes`. The
    unit adds

    - to D of level l, ones in :math:`t_l` nodes;
    - to E of level s, :math:`c_v - 1 \ge 0` in each of its nodes, with its :math:`c_v` nodes among the
      children of v: whole numbers of sum :math:`t_{s + 1} - t_s`;
    - to A of level l, at least 1 in each of :math:`t_l` nodes: whole numbers of sum r, the unit's kept rows,
      where :math:`t_L \le r \le k` of `rows`.

    Let the cost be a sum of convex functions :math:`\varphi` of the moves of single nodes, one function for
    each level, even and 0 at 0. Of all vectors with the same sum, those cost most in which one node has as
    much of it as it can. So E of level s costs at most :math:`\varphi(t_{s + 1} - t_s)`, and A of level l at
    most :math:`\varphi(r - t_l + 1) + (t_l - 1)\,\varphi(1)`. All this is convex in (t, r), and grows with r.
    So the maximum is at r = k and a vertex of the polytope of shapes, of all real numbers that keep to these
    inequalities. At a vertex every run of equal :math:`t_l` but the first, of ones, is at the bound of one of
    its levels, and thus of its first: :math:`t_{l + 1}` is :math:`t_l` or :math:`m_{l + 1}`.

    *Add/remove.* Each vertex is a pattern. Any neighbours cost at most what one of the patterns costs, though
    they may keep to none of them: they lie in the `hull` of the patterns. Without excesses that are charged
    jointly, and without rows, all levels move furthest for t = m, which is the only pattern.

    *Replace.* A unit may leave the domain, or enter it: that is the above. Otherwise it has the shape t and r
    rows, and then t' and b rows, say :math:`1 \le b \le r`. D of the root keeps still, its E moves by
    :math:`|t_1 - t'_1|`, and its A by :math:`r - b`. All others move by the difference of two vectors without
    negative numbers. No node moves further than the larger of both numbers; and since
    :math:`\varphi(|x - x'|) \le \varphi(\max(x, x')) \le \varphi(x) + \varphi(x')`, the difference costs at
    most what the two cost side by side. These bounds are convex in (t, r, t', b), and grow with r. So the
    maximum is at r = k, a vertex t, and a vertex (t', b) of shapes in which b is one more level, of bound k.
    If b = k, these cost F(t) + F(t') and what E of the root costs. If that keeps still, twice one of them is
    no less. So two different vertices are a pattern only if b < k, or if :math:`t_1 \ne t'_1`.

    *Vertices left out* are those for which another one moves all levels at least as far. Among the first
    levels, this is decided between vertices of the same :math:`t_l`, since both continue alike. Under
    replace, the two have the same :math:`t_1`, as E of the root may move further for a smaller one.

    **Privacy**: a function of public bounds. Every pattern charges every level, also those that `excess`
    does not name, so that whatever is measured is charged enough.

    >>> moves = unit_sensitivity([1, 3, 3], neighbors="add_remove", excess=[False, True])
    >>> [[level.l1 for level in pattern] for pattern in moves.patterns]  # of D, D, D, E, E
    [[1, 1, 3, 2, 2], [1, 3, 3, 2, 0]]
    """
    _check(max_nodes, neighbors, excess, rows)
    bounds = [*max_nodes] if rows is None else [*(min(most, rows) for most in max_nodes), rows]
    joint = list(map(bool, excess))
    while True:
        units = _Units(tuple(map(int, bounds)), tuple(joint), neighbors == "replace")
        shapes = units.vertices()
        patterns = tuple(itertools.islice(units.patterns(shapes), _MOST + 1))
        if 0 < len(patterns) <= _MOST:
            return TreeSensitivity(patterns, hull=len(shapes) > 1)
        if units.counted:  # all levels are charged the most they move
            apart = _Units(units.bounds, (False,) * len(joint), units.replace)
            return TreeSensitivity((TreeSensitivity(tuple(apart.patterns(apart.ends))).levels,))
        joint[joint.index(True)] = False


@dataclass(frozen=True, slots=True)
class _Units:
    """What units can have: at most so many nodes on each level, and rows, if they are counted."""

    bounds: Shape
    joint: tuple[bool, ...]
    """Whether the excesses of each level are charged jointly with the others."""
    replace: bool

    @property
    def n_levels(self) -> int:
        """Number of levels of the tree."""
        return len(self.joint) + 1

    @property
    def counted(self) -> bool:
        """Whether rows are counted."""
        return len(self.bounds) > self.n_levels

    @property
    def root_excess(self) -> bool:
        """Whether it matters in which two shapes a unit is if the excess of the root moves."""
        return self.replace and any(self.joint[:1])

    @property
    def ends(self) -> list[Shape]:
        """The shapes of units with all rows, in as few nodes as possible and in as many."""
        return [(*[1] * self.n_levels, *self.bounds[self.n_levels :]), self.bounds]

    def vertices(self) -> list[Shape]:
        """Return the vertices of the polytope of shapes that may cost most; none if there are too many."""
        shapes = np.ones((1, 1), dtype=np.int64)
        for level, bound in enumerate(self.bounds[1:], 1):
            ends = shapes[:, -1], np.full(len(shapes), bound)
            shapes = np.unique(np.vstack([np.column_stack([shapes, end]) for end in ends]), axis=0)
            if not self.counted:
                moves = [shapes, np.diff(shapes)[:, np.array(self.joint[:level])]]
                moves += [-shapes[:, -1:]] * (level < len(self.joint)) + [-shapes[:, 1:2]] * self.root_excess
                shapes = shapes[_undominated(np.hstack(moves))]
            if len(shapes) > _MOST:
                return []
        return [tuple(shape) for shape in shapes.tolist()]

    def patterns(self, shapes: Sequence[Shape]) -> Iterator[tuple[Sensitivity, ...]]:
        """Yield how far all levels move for units of these shapes: one that comes or goes, or is replaced."""
        most = [shape for shape in shapes if not self.counted or shape[-1] == self.bounds[-1]]
        yield from map(self.moves, most)
        for one, other in itertools.product(most, shapes) if self.replace else ():
            fewer = self.counted and other[-1] < one[-1]
            apart = self.root_excess and one[1] < other[1]
            if one == other or fewer or apart:
                yield self.replaced(one, other)

    def moves(self, shape: Shape) -> tuple[Sensitivity, ...]:
        """Return how far all levels move if a unit of this shape comes or goes."""
        nodes, rows = shape[: self.n_levels], shape[self.n_levels :]
        excesses = [
            end - start if joint else bound - 1
            for start, end, bound, joint in zip(nodes, nodes[1:], self.bounds[1:], self.joint, strict=False)
        ]
        return (
            *(
                Sensitivity(l1=r, l2_squared=(r - t + 1) ** 2 + t - 1, linf=r - t + 1)
                for r in rows
                for t in nodes
            ),
            *(Sensitivity(l1=t, l2_squared=t, linf=1) for t in nodes),
            *map(_single, excesses),
        )

    def replaced(self, one: Shape, other: Shape) -> tuple[Sensitivity, ...]:
        """Return how far all levels move at most if a unit of one shape is replaced by one of another."""
        moves = list(map(_beside, self.moves(one), self.moves(other)))
        if self.counted:
            moves[0] = _single(one[-1] - other[-1])
        moves[self.n_levels * self.counted] = _single(0)
        if self.joint:
            moves[-len(self.joint)] = _single(
                abs(one[1] - other[1]) if self.root_excess else self.bounds[1] - 1
            )
        return tuple(moves)


def _single(move: int) -> Sensitivity:
    """Return the moves of a level if those of its nodes have one sign and this sum."""
    return Sensitivity(l1=move, l2_squared=move**2, linf=move)


def _beside(one: Sensitivity, other: Sensitivity) -> Sensitivity:
    """Return the moves of a level if it moves in two ways at once, in other nodes."""
    return Sensitivity(
        l1=one.l1 + other.l1, l2_squared=one.l2_squared + other.l2_squared, linf=max(one.linf, other.linf)
    )


def _undominated(moves: IntArray) -> npt.NDArray[np.bool_]:
    """Return which rows, all different, no other one exceeds or equals in every column."""
    return np.asarray((moves[:, None] <= moves).all(axis=2).sum(axis=1) == 1)


def _check(max_nodes: Sequence[int], neighbors: Neighbors, excess: Sequence[bool], rows: int | None) -> None:
    """Check the arguments of `unit_sensitivity`."""
    sum_sensitivity(1, 1, neighbors=neighbors, max_contributions=1 if rows is None else rows)
    whole = all(isinstance(most, (int, np.integer)) and not isinstance(most, bool) for most in max_nodes)
    if not whole or list(max_nodes[:1]) != [1] or any(a > b for a, b in itertools.pairwise(max_nodes)):
        raise ArgumentError(
            "max_nodes",
            f"must hold whole numbers that do not decrease, 1 for the root, not {quote(list(max_nodes))}.",
            hint="for example [1, 4, 4].",
        )
    if len(excess) != len(max_nodes) - 1:
        raise ArgumentError(
            "excess",
            f"must hold one truth value for each level but the last, not {quote(list(excess))}.",
            hint="for example [False, True].",
        )
