r"""The delta of a gated release: noisy counts of a tree whose keys are not all public.

Some levels of the tree are *private*: nobody can list their keys. The others are *public*: the root, keys
that a domain lists, or children that every node has. The release

- adds discrete Gaussian noise of scale :math:`\sigma_l` to the counts of level l: on a private level to those
  of the nodes that hold a record, on a public level to those of all nodes, empty ones too;
- shows a node of a private level if its noisy count exceeds :math:`\tau_l` *and* its parent is shown, and a
  node of a public level if its parent is shown. It shows the root.

Adding noise only to nodes that can be shown gives the same distribution.

**Proof of the formula.** Let D and D' be neighbours. A node is *old* if each private node among it and its
ancestors holds a record in D and in D'. So empty public nodes are old unless a private node above them is
not. A node is *new in D'* if it can be shown under D' and is not old. A *top* one among these has an old
parent. It is a node of a private level, empty in D, and all its records in D' are of the unit in question.

With some probability :math:`q'` the noise of the top nodes that are new in D' leaves all of them hidden; it
is the product of :math:`P(X_l \le \tau_l - d_v)`, for :math:`d_v` records of the unit in node v. Then all
nodes below them are hidden too, since they are gated by them, and what is shown is a function of the noisy
counts of the old nodes, which are independent of it. So :math:`M(D') = q' G' + (1 - q') R'`, where G' depends
on the noisy counts of old nodes alone, and likewise :math:`M(D) = q G + (1 - q) R`. For every set S

.. math:: P(M(D') \in S) - e^\epsilon P(M(D) \in S) \le (1 - q') + q' G'(S) - e^\epsilon q\, G(S),

and so

.. math:: \delta(\epsilon) \le (1 - q') + q'\,\delta_{G', G}(\epsilon + \log q - \log q'). \quad (1)

:math:`\delta_{G', G}` is at most that of independent discrete Gaussian noise on counts that move by those of
the old nodes. As the right side of the first line shows, (1) increases with :math:`-\log q` and with
:math:`-\log q'`. Equality holds if the old nodes are certain to be shown and no R' is possible under D.
Under add/remove, nothing is new in the data set without the unit, so one of q and q' is 1.

**The worst unit.** At most k rows of a unit are counted, and at most :math:`C_l` in one node of level l. Of
the k rows of a unit in D', let :math:`n_l` be in top nodes of level l, so that :math:`m_l = k - \sum_{j \le
l} n_j` are in old nodes of level l, the sum being over private levels.

- *Old nodes.* The rows of D' raise the counts of level l by :math:`m'_l` in all, those of D lower them by
  :math:`m_l` in all, none by more than :math:`C_l`. By Lemma 1 of the documentation page *Calibration of
  noise over several levels*, counts of one level that all rise, or all fall, together by at most :math:`C_l`
  may be taken for one count that moves by their sum, and longer moves dominate shorter ones. So units with
  fewer than k rows are covered. If :math:`m_l \le C_l`, a single count moves by :math:`m_l`; if :math:`C_l
  \le 2`, as many by :math:`C_l` as possible, and one by the rest. Otherwise it is known that any two counts
  move together by more than :math:`C_l`, so that at most :math:`\max(1, 2 m_l/(C_l + 1))` move: summed over
  all pairs of p counts, :math:`(p - 1)\,m_l \ge \tfrac12 p\,(p - 1)(C_l + 1)`. And the sum of the squares is
  at most :math:`S_l(m_l)`, that of as many moves by :math:`C_l` as possible and one by the rest, as the
  squares are convex. That is what the simulation by continuous noise needs.
- *New nodes.* :math:`f_l(d) = -\log P(X_l \le \tau_l - d)` is convex in d, because the distribution
  function of a log-concave distribution on the whole numbers is log-concave. So in the worst case of n rows,
  at most one node has neither 1 nor :math:`C_l` of them, since moving a row from a smaller node to a larger
  one does not lower the sum of :math:`f_l`. If x rows are in that node, c nodes have :math:`C_l` and all
  others 1, the sum is convex in x: largest if x is 1 or :math:`C_l`, or if no node has 1. Without that node
  it is linear in c: largest if c is 0 or as large as possible. So with :math:`n = c\,C_l + r`, :math:`r <
  C_l` and :math:`f_l(0) := 0`, no n rows are more exposed than

  .. math:: h_l(n) = \max\bigl(n f_l(1),\; c f_l(C_l) + \max(f_l(r), r f_l(1))\bigr).

So (1) is to be evaluated for all :math:`(n_l)` with a sum of at most k, of both data sets under replace.

**Many cases.** If there are too many of these, they are bounded together. Simulated by continuous noise, (1)
depends only on :math:`\lambda = -\log q`, on :math:`\lambda'`, and on the squared distance :math:`\mu^2 =
\sum_l (S_l(m_l) + S_l(m'_l)) v_l`, and increases with all three. Linear bounds are

.. math:: S_l(n) \le C_l\,n, \qquad h_l(n) \le a_l\,n, \quad a_l = \max\bigl(f_l(1), f_l(C_l)/C_l\bigr),

since no node has more than :math:`C_l` rows, and :math:`f_l(r) \le a_l r` between 1 and :math:`C_l`, where it
is convex. They are attained by the multiples of :math:`C_l`. So each data set's pair of :math:`\lambda =
\sum_l h_l(n_l)` and :math:`\sum_l S_l(m_l) v_l` lies below a mean of the pairs in which all k rows or none
are in top nodes of one level, with weights :math:`n_l/k` and :math:`m_l/k`. The pairs on the upper right
boundary of their convex hull are covered by finitely many.

It does not follow that (1) itself is largest where all k rows go the same path, since it is not convex in
these pairs. No exception is known, but all ways are tried or covered, so that none matters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.privacy.composition import GaussianProfile
from pandas_dptree.privacy.discrete_gaussian import log_upper_tail
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity
from pandas_dptree.privacy.simulated_gaussian import SimulatedGaussian
from pandas_dptree.privacy.tree_sensitivity import (
    LevelCapacities,
    uncounted_levels,
    uncounted_sensitivity,
)

__all__ = [
    "bounded_together",
    "exposure",
    "gated_delta",
    "gated_zcdp",
    "largest_exposure",
    "old_nodes",
    "worse_order",
]

FloatArray = npt.NDArray[np.float64]

_MANY_UNITS = {"add_remove": 2**12, "replace": 2**8}  # ways in which their rows can lie; pairs under replace
_MOST_PROFILES = 2**8  # pairs of these for which the exact losses are composed
_EXACT_BELOW = 16.0  # from this noise scale on, exact losses would gain less than 1e-3 of the noise
_MOST_MOVES = 4  # counts of a level that enter with their exact losses, for the rows of one data set
_STEPS = 2**7  # pairs that cover a boundary; each costs about 1 / _STEPS of the thresholds' part of delta


class _Unit(NamedTuple):
    """How the rows of a unit lie in one of the data sets."""

    staying: tuple[int, ...]  # rows in old nodes, on each level
    exposure: float  # -log of the probability that all nodes that are new in this data set stay hidden


def gated_delta(
    epsilon: float,
    noise_scales: Sequence[float],
    thresholds: Sequence[int | None],
    *,
    neighbors: Neighbors,
    max_contributions: int = 1,
    caps: Sequence[int | None] = (),
) -> float:
    """Return a delta for which a gated release is (epsilon, delta)-DP, rounded up.

    A noise scale is inf on a public level that is not measured. Of one unit at most `max_contributions` rows
    are kept, and in one node of a level at most its cap, if there are `caps` and it has one. A threshold is
    None on a public level and at least as large as both of these, or as the smaller one, on a private one. Up
    to 4096 ways in which the rows of a unit can lie are tried one by one (256 in either data set under
    replace). Up to 256 of these cases are evaluated with the exact losses of noise of a scale below 16, worst
    ones first.

    >>> gated_delta(1.0, [7.4, 7.4, 7.4], [None, 36, 37], neighbors="add_remove")  # doctest: +ELLIPSIS
    7.926...e-07
    """
    if not 0 < epsilon < math.inf:
        raise ArgumentError(
            "epsilon", f"must be positive and finite, not {quote(epsilon)}.", hint="for example epsilon=0.5."
        )
    scales, levels = _checked(noise_scales, thresholds, neighbors, max_contributions, caps)
    k = max_contributions
    precisions, simulation = _simulated(scales, levels, k, neighbors)
    together = bounded_together(k, sum(threshold is not None for threshold in thresholds), neighbors)
    if not together:
        units = list(_units(scales, thresholds, levels, k))
        squares = [[float(level.squares(rows)) for rows in range(k + 1)] for level in levels]
        points = np.array([(each.exposure, _distance(each.staying, squares, precisions)) for each in units])
    else:
        points = _cover(_extremes(scales, thresholds, levels, k, precisions))
    first, second = _pairs(len(points), neighbors)
    absent = np.vstack([points, np.zeros((1, 2))])  # the last point: a data set without the unit
    own, other = absent[first], absent[second]
    deltas = _bound(
        simulation.delta(_shifted(epsilon, own[:, 0], other[:, 0]), own[:, 1] + other[:, 1]), own[:, 0]
    )
    order = np.argsort(-deltas)
    if together or (scales >= _EXACT_BELOW).all():
        return float(deltas[order[0]])
    nobody = _Unit((0,) * len(scales), 0.0)
    worst = 0.0
    for pair in order[:_MOST_PROFILES]:
        if deltas[pair] <= worst:
            return worst
        mine, yours = ([*units, nobody][place[pair]] for place in (first, second))
        profile = old_nodes(scales.tolist(), levels, [mine.staying, yours.staying])
        exact = profile.delta(float(_shifted(epsilon, mine.exposure, yours.exposure)))
        worst = max(worst, min(float(_bound(exact, mine.exposure)), float(deltas[pair])))
    left = order[_MOST_PROFILES:]
    return max(worst, float(deltas[left[0]])) if len(left) else worst


def gated_zcdp(
    noise_scales: Sequence[float],
    thresholds: Sequence[int | None],
    *,
    neighbors: Neighbors,
    max_contributions: int = 1,
    caps: Sequence[int | None] = (),
) -> tuple[float, float]:
    r"""Return (rho, delta) for which a gated release is delta-approximately rho-zCDP, rounded up.

    By the definition of Bun and Steinke ("Concentrated differential privacy", 2016, Definition 8.1), there
    are events of probability at least :math:`1 - \delta` under D and under D', given which the release is
    rho-zCDP. The events are that all top nodes that are new in D', or in D, stay hidden. Given these the
    releases are G' and G, functions of discrete Gaussian noise on counts that move by d. That is
    :math:`\sum d_v^2/2\sigma_l^2`-zCDP (Canonne, Kamath and Steinke, 2020, Theorem 14), the most if all rows
    are in old nodes. The probability of a failure is at most that of :math:`\lambda \le k \max_l a_l`. No
    unit attains both, but a pair of numbers for all units must cover both. The arguments are those of
    `gated_delta`.
    """
    scales, levels = _checked(noise_scales, thresholds, neighbors, max_contributions, caps)
    moved = uncounted_sensitivity(
        len(levels), neighbors=neighbors, max_contributions=max_contributions, caps=caps
    )
    rho = math.fsum([level.l2_squared for level in moved] * scales**-2.0) / 2 * (1 + 2**-48)
    worst = max(
        (
            largest_exposure(scale, threshold, max_contributions, level)
            for scale, threshold, level in zip(scales.tolist(), thresholds, levels, strict=True)
            if threshold is not None
        ),
        default=0.0,
    )
    return rho, min(1.0, -math.expm1(-worst) * (1 + 2**-48))


def exposure(noise_scale: float, threshold: int, rows: int, capacity: int) -> float:
    """Return :math:`h_l(n)`, rounded up: how likely n rows of a unit in new nodes of a level are shown.

    It is minus the logarithm of the probability that all new nodes stay hidden, the largest of all ways in
    which the rows can lie with at most `capacity` of them in one node. `threshold` is at least `capacity`.
    """
    if not rows:
        return 0.0

    def shown(rows: int) -> float:
        return -math.log1p(-math.exp(log_upper_tail(noise_scale, threshold - rows)))

    n_full, rest = divmod(rows, capacity)
    fullest = n_full * shown(capacity) if n_full else 0.0
    if rest:
        fullest += max(shown(rest), rest * shown(1))
    return max(rows * shown(1), fullest) * (1 + 2**-40)


def largest_exposure(noise_scale: float, threshold: int, rows: int, level: LevelCapacities) -> float:
    """Return :math:`a_l k`, rounded up, the linear bound on the `exposure` of k rows."""
    capacity = level.capacity
    return exposure(noise_scale, threshold, capacity, capacity) * (rows / capacity) * (1 + 2**-48)


def bounded_together(rows: int, n_private: int, neighbors: Neighbors) -> bool:
    """Whether so many rows on so many private levels lie in too many ways to be tried one by one."""
    return math.comb(rows + n_private, n_private) > _MANY_UNITS[neighbors]


def old_nodes(
    scales: Sequence[float],
    levels: Sequence[LevelCapacities],
    sides: Sequence[Sequence[int]],
    *,
    together: bool = False,
) -> GaussianProfile:
    """Return the profile of old nodes that hold so many rows of a unit on each level, in each data set.

    Where it is not known how far the counts of a level move, or where many do, they are simulated, with the
    linear bound of their squares if `together`.
    """
    known: list[tuple[float, int]] = []
    others: list[tuple[float, int, int]] = []
    for scale, level, rows in (each for side in sides for each in zip(scales, levels, side, strict=True)):
        n_moves, linear = -(-rows // level.capacity), level.capacity * rows
        if n_moves <= 1 or (level.capacity <= 2 and n_moves <= _MOST_MOVES):
            known += [(scale, held) for held, number in level.fill(rows) for _ in range(number)]
        else:
            others.append((scale, linear if together else level.squares(rows), _most_moves(level, rows)))
    return GaussianProfile(known, others)


def worse_order(epsilon: float, profile: GaussianProfile, new: float) -> float:
    """Return the larger delta of both orders of neighbours if only one data set has new nodes, rounded up.

    `profile` is that of the old nodes, `new` the `exposure` of the new ones.
    """
    shown = _bound(profile.delta(float(_shifted(epsilon, new, 0.0))), new)
    return max(float(shown), profile.delta(float(_shifted(epsilon, 0.0, new))))


def _shifted(epsilon: float, own: npt.ArrayLike, other: npt.ArrayLike) -> FloatArray:
    """Return epsilon + log(q) - log(q'), rounded down; `own` is -log(q'), `other` is -log(q)."""
    own, other = np.asarray(own), np.asarray(other)
    return np.asarray(epsilon + own - other - 2.0**-44 * (epsilon + own + other))


def _bound(delta: npt.ArrayLike, own: npt.ArrayLike) -> FloatArray:
    """Return (1 - q') + q' * delta, rounded up."""
    return np.asarray(
        np.minimum(1.0, (-np.expm1(-np.asarray(own)) + np.exp(-np.asarray(own)) * delta) * (1 + 2**-48))
    )


def _pairs(n: int, neighbors: Neighbors) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """List how the rows can lie in either data set; n stands for a data set without the unit."""
    all_of_them, nobody = np.arange(n), np.full(n, n)
    if neighbors == "replace":
        return np.repeat(all_of_them, n), np.tile(all_of_them, n)
    return np.concatenate([all_of_them, nobody]), np.concatenate([nobody, all_of_them])


def _simulated(
    scales: FloatArray, levels: Sequence[LevelCapacities], rows: int, neighbors: Neighbors
) -> tuple[FloatArray, SimulatedGaussian]:
    """Return the simulation of all levels, with counts of each for the rows of either data set.

    The precisions by which it multiplies squared moves are 0 on levels that are not measured.
    """
    measured = np.isfinite(scales)
    sides = 1 if neighbors == "add_remove" else 2
    farthest = np.sqrt([float(level.squares(rows)) for level in levels])[measured]
    n_moves = max(_most_moves(level, rows) for level in levels)
    simulation = SimulatedGaussian(np.tile(scales[measured], sides), np.tile(farthest, sides), n_moves)
    precisions = np.zeros(len(scales))
    precisions[measured] = simulation.inverse_variances[: measured.sum()]
    return precisions, simulation


def _most_moves(level: LevelCapacities, rows: int) -> int:
    """Return the largest number of counts of a level that have to be taken to move, for one data set."""
    return max(1, 2 * rows // (level.capacity + 1))


def _units(
    scales: FloatArray, thresholds: Sequence[int | None], levels: Sequence[LevelCapacities], rows: int
) -> Iterator[_Unit]:
    """List all ways in which the rows can lie, with `rows` of them at most in top nodes."""
    table = [
        None
        if threshold is None
        else [exposure(scale, threshold, n, level.capacity) for n in range(rows + 1)]
        for scale, threshold, level in zip(scales.tolist(), thresholds, levels, strict=True)
    ]
    choices = [range(1) if exposures is None else range(rows + 1) for exposures in table]

    def below(place: int, staying: tuple[int, ...], left: int, exposed: float) -> Iterator[_Unit]:
        if place == len(table):
            yield _Unit(staying, exposed * (1 + 2**-44))
            return
        for n in itertools.takewhile(lambda n: n <= left, choices[place]):
            exposures = table[place]
            more = exposures[n] if exposures else 0.0
            yield from below(place + 1, (*staying, left - n), left - n, exposed + more)

    return below(0, (), rows, 0.0)


def _extremes(
    scales: FloatArray,
    thresholds: Sequence[int | None],
    levels: Sequence[LevelCapacities],
    rows: int,
    precisions: FloatArray,
) -> FloatArray:
    """Bound the pairs in which all rows or none are in top nodes of one level, by the linear bounds."""
    n = len(scales)
    squares = [[0.0, float(level.capacity * rows)] for level in levels]
    nothing_new = [(0.0, _distance([1] * n, squares, precisions))]
    return np.array(
        nothing_new
        + [
            (
                largest_exposure(scale, threshold, rows, level),
                _distance([1] * place + [0] * (n - place), squares, precisions),
            )
            for place, (scale, threshold, level) in enumerate(
                zip(scales.tolist(), thresholds, levels, strict=True)
            )
            if threshold is not None
        ]
    )


def _distance(staying: Sequence[int], squares: Sequence[Sequence[float]], precisions: FloatArray) -> float:
    """Return the squared distance of old nodes, rounded up, from the squares of each number of rows."""
    moved = np.array([each[rows] for each, rows in zip(squares, staying, strict=True)])
    return math.fsum(moved * precisions) * (1 + 2**-48)


def _cover(points: FloatArray) -> FloatArray:
    """Return points such that each mean of the given points is at most one of them, in both coordinates."""
    hull: list[FloatArray] = []
    for point in points[np.lexsort((points[:, 1], points[:, 0]))]:  # the upper boundary, from the left
        while len(hull) > 1 and _turn(hull[-2], hull[-1], point) >= 0:
            hull.pop()
        hull.append(point)
    heights = [point[1] for point in hull]
    highest = len(hull) - 1 - int(np.argmax(heights[::-1]))  # from there on, the boundary falls
    edges = list(itertools.pairwise(hull[highest:]))
    steps = np.linspace(0, 1, _STEPS // max(len(edges), 1) + 2)[:, None]
    falling = np.vstack([hull[highest], *((1 - steps) * start + steps * end for start, end in edges)])
    # between two points, the boundary is no further right than the lower one, and no higher than the other
    cover = np.column_stack([np.append(falling[1:, 0], falling[-1, 0]), falling[:, 1]])
    return np.asarray(cover * (1 + 2**-40))


def _turn(a: FloatArray, b: FloatArray, c: FloatArray) -> float:
    """Return a number above 0 if the way from a by b to c turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _checked(
    noise_scales: Sequence[float],
    thresholds: Sequence[int | None],
    neighbors: Neighbors,
    max_contributions: int,
    caps: Sequence[int | None],
) -> tuple[FloatArray, list[LevelCapacities]]:
    """Check the arguments, and return the scales and how many rows of a unit the nodes of a level hold."""
    count_sensitivity(neighbors=neighbors, max_contributions=max_contributions)
    scales = np.asarray(noise_scales, dtype=np.float64)
    if scales.ndim != 1 or not len(scales) or not (scales > 0).all():
        raise ArgumentError(
            "noise_scales",
            f"must be one positive number for each level, not {quote(scales.tolist())}.",
            hint="inf for a public level that is not measured.",
        )
    levels = uncounted_levels(len(scales), max_contributions, caps)
    if len(levels) != len(scales):
        raise ArgumentError(
            "caps",
            f"must have an entry for each of {len(scales)} levels, not be {quote(list(caps))}.",
            hint="None for a level without a cap.",
        )
    whole = len(thresholds) == len(scales) and all(
        threshold is None or (isinstance(threshold, int) and threshold >= level.capacity)
        for threshold, level in zip(thresholds, levels, strict=True)
    )
    if not whole:
        raise ArgumentError(
            "thresholds",
            f"must be None for each public level, and for each private one a whole number, at least the rows "
            f"that a unit can have in a node: {[level.capacity for level in levels]} on the levels. It is "
            f"{quote(list(thresholds))}.",
            hint="a node that holds the rows of one unit alone must stay hidden, or the unit is exposed.",
        )
    if any(math.isinf(scale) for scale, t in zip(scales, thresholds, strict=True) if t is not None):
        raise ArgumentError(
            "noise_scales",
            "must be finite on private levels: their noise hides nodes that few units share.",
            hint="give each private level a share of the loss.",
        )
    return scales, levels
