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

**The worst unit.** Of the k rows of a unit in D', let :math:`n_l` be in top nodes of level l, so that
:math:`m_l = k - \sum_{j \le l} n_j` are in old nodes of level l, the sum being over private levels.

- *Old nodes.* The rows of D' raise the counts of level l by :math:`m'_l` in all, those of D lower them by
  :math:`m_l` in all. So the nodes that rise move by at most :math:`m'_l` in all, and those that fall by at
  most :math:`m_l`. By Lemma 1 of the documentation page *Calibration of noise over several levels*, one count
  that moves by :math:`m'_l` and one that moves by :math:`m_l` dominate that, and longer moves dominate
  shorter ones. So units with fewer than k rows are covered.
- *New nodes.* :math:`f_l(d) = -\log P(X_l \le \tau_l - d)` is convex in d, because the distribution
  function of a log-concave distribution on the whole numbers is log-concave. So p nodes with n rows in all
  have at most :math:`(p - 1) f_l(1) + f_l(n - p + 1)`, which is convex in p: largest for one node of n rows
  or for n nodes of one, :math:`h_l(n) = \max(f_l(n), n f_l(1))`.

So (1) is to be evaluated for all :math:`(n_l)` with a sum of at most k, of both data sets under replace.

**Many cases.** If there are too many of these, they are bounded together. Simulated by continuous noise, (1)
depends only on :math:`\lambda = -\log q`, on :math:`\lambda'`, and on the squared distance :math:`\mu^2 =
\sum_l (m_l^2 + m_l'^2) v_l`, and increases with all three. With :math:`h_l(0) = 0`, :math:`h_l` is convex,
and so are :math:`\lambda = \sum_l h_l(n_l)` and :math:`\sum_l m_l^2 v_l` as functions of :math:`(n_l)`. Hence
each data set's pair of these lies below a mean of those pairs where all k rows or none are in top nodes of
one level. The pairs on the upper right boundary of their convex hull are covered by finitely many.

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

__all__ = ["exposure", "gated_delta", "gated_zcdp", "worse_order"]

FloatArray = npt.NDArray[np.float64]

_MANY_UNITS = {"add_remove": 2**12, "replace": 2**8}  # ways in which their rows can lie; pairs under replace
_MOST_PROFILES = 2**8  # pairs of these for which the exact losses are composed
_EXACT_BELOW = 16.0  # from this noise scale on, exact losses would gain less than 1e-3 of the noise
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
) -> float:
    """Return a delta for which a gated release is (epsilon, delta)-DP, rounded up.

    A noise scale is inf on a public level that is not measured; a threshold is None on a public level and at
    least `max_contributions` on a private one. Up to 4096 ways in which the rows of a unit can lie are tried
    one by one (256 in either data set under replace). Up to 256 of these cases are evaluated with the exact
    losses of noise of a scale below 16, worst ones first.

    >>> gated_delta(1.0, [7.4, 7.4, 7.4], [None, 36, 37], neighbors="add_remove")  # doctest: +ELLIPSIS
    7.926...e-07
    """
    if not 0 < epsilon < math.inf:
        raise ArgumentError(
            "epsilon", f"must be positive and finite, not {quote(epsilon)}.", hint="for example epsilon=0.5."
        )
    scales, k = _checked(noise_scales, thresholds, neighbors, max_contributions)
    levels = [place for place, threshold in enumerate(thresholds) if threshold is not None]
    measured = np.isfinite(scales)
    # under replace, one count of each level for the rows of either data set
    counts = scales[measured] if neighbors == "add_remove" else np.tile(scales[measured], 2)
    simulation = SimulatedGaussian(counts, np.full(len(counts), float(k)))
    precisions = np.zeros(len(scales))
    precisions[measured] = simulation.inverse_variances[: measured.sum()]
    few = math.comb(k + len(levels), len(levels)) <= _MANY_UNITS[neighbors]
    units = list(_units(scales, thresholds, k)) if few else _extremes(scales, thresholds, k)
    points = np.array([(unit.exposure, _distance(unit.staying, precisions)) for unit in units])
    if not few:
        points = _cover(points)
    first, second = _pairs(len(points), neighbors)
    absent = np.vstack([points, np.zeros((1, 2))])  # the last point: a data set without the unit
    own, other = absent[first], absent[second]
    deltas = _bound(
        simulation.delta(_shifted(epsilon, own[:, 0], other[:, 0]), own[:, 1] + other[:, 1]), own[:, 0]
    )
    order = np.argsort(-deltas)
    if not few or (scales >= _EXACT_BELOW).all():
        return float(deltas[order[0]])
    nobody = _Unit((0,) * len(scales), 0.0)
    worst = 0.0
    for pair in order[:_MOST_PROFILES]:
        if deltas[pair] <= worst:
            return worst
        mine, yours = ([*units, nobody][place[pair]] for place in (first, second))
        moves = [
            (scale, shift)
            for unit in (mine, yours)
            for scale, shift in zip(scales, unit.staying, strict=True)
        ]
        exact = GaussianProfile(moves).delta(float(_shifted(epsilon, mine.exposure, yours.exposure)))
        worst = max(worst, min(float(_bound(exact, mine.exposure)), float(deltas[pair])))
    left = order[_MOST_PROFILES:]
    return max(worst, float(deltas[left[0]])) if len(left) else worst


def gated_zcdp(
    noise_scales: Sequence[float],
    thresholds: Sequence[int | None],
    *,
    neighbors: Neighbors,
    max_contributions: int = 1,
) -> tuple[float, float]:
    r"""Return (rho, delta) for which a gated release is delta-approximately rho-zCDP, rounded up.

    By the definition of Bun and Steinke ("Concentrated differential privacy", 2016, Definition 8.1), there
    are events of probability at least :math:`1 - \delta` under D and under D', given which the release is
    rho-zCDP. The events are that all top nodes that are new in D', or in D, stay hidden. Given these the
    releases are G' and G, functions of discrete Gaussian noise on counts that move by d. That is
    :math:`\sum d_v^2/2\sigma_l^2`-zCDP (Canonne, Kamath and Steinke, 2020, Theorem 14), the most if all rows
    are in old nodes. The probability of a failure is largest if all rows are in top nodes of one level,
    because :math:`\lambda = \sum_l h_l(n_l)` is convex. No unit attains both, but a pair of numbers for all
    units must cover both. The arguments are those of `gated_delta`.
    """
    scales, k = _checked(noise_scales, thresholds, neighbors, max_contributions)
    moved = count_sensitivity(neighbors=neighbors, max_contributions=k).l2_squared
    rho = moved * math.fsum(scales**-2.0) / 2 * (1 + 2**-48)
    worst = max((unit.exposure for unit in _extremes(scales, thresholds, k)), default=0.0)
    return rho, min(1.0, -math.expm1(-worst) * (1 + 2**-48))


def exposure(noise_scale: float, threshold: int, rows: int) -> float:
    """Return :math:`h_l(n)`, rounded up: how likely n rows of a unit in new nodes of a level are shown.

    It is minus the logarithm of the probability that one node of n rows, or n nodes of one row, stay hidden,
    the larger of the two. `threshold` is at least `rows`.
    """
    if not rows:
        return 0.0
    one_node, one_row = (log_upper_tail(noise_scale, threshold - d) for d in (rows, 1))
    return max(-math.log1p(-math.exp(one_node)), -rows * math.log1p(-math.exp(one_row))) * (1 + 2**-40)


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


def _units(scales: FloatArray, thresholds: Sequence[int | None], rows: int) -> Iterator[_Unit]:
    """List all ways in which the rows can lie, with `rows` of them at most in top nodes."""
    table = [
        None if threshold is None else [exposure(scale, threshold, n) for n in range(rows + 1)]
        for scale, threshold in zip(scales.tolist(), thresholds, strict=True)
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


def _extremes(scales: FloatArray, thresholds: Sequence[int | None], rows: int) -> list[_Unit]:
    """List the ways in which all rows or none are in top nodes of one level."""
    n = len(scales)
    return [_Unit((rows,) * n, 0.0)] + [
        _Unit((rows,) * place + (0,) * (n - place), exposure(float(scale), threshold, rows))
        for place, (scale, threshold) in enumerate(zip(scales, thresholds, strict=True))
        if threshold is not None
    ]


def _distance(staying: Sequence[int], precisions: FloatArray) -> float:
    """Return the squared distance of old nodes, rounded up."""
    return math.fsum(np.array(staying, dtype=np.float64) ** 2 * precisions) * (1 + 2**-48)


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
) -> tuple[FloatArray, int]:
    """Check the arguments, and return the scales and the rows of a unit."""
    count_sensitivity(neighbors=neighbors, max_contributions=max_contributions)
    scales = np.asarray(noise_scales, dtype=np.float64)
    if scales.ndim != 1 or not len(scales) or not (scales > 0).all():
        raise ArgumentError(
            "noise_scales",
            f"must be one positive number for each level, not {quote(scales.tolist())}.",
            hint="inf for a public level that is not measured.",
        )
    whole = all(
        threshold is None or (isinstance(threshold, int) and threshold >= max_contributions)
        for threshold in thresholds
    )
    if len(thresholds) != len(scales) or not whole:
        raise ArgumentError(
            "thresholds",
            f"must be one whole number of at least {max_contributions} for each private level and None for "
            f"each public one, not {quote(list(thresholds))}.",
            hint="a node that holds the rows of one unit alone must stay hidden, or the unit is exposed.",
        )
    if any(math.isinf(scale) for scale, t in zip(scales, thresholds, strict=True) if t is not None):
        raise ArgumentError(
            "noise_scales",
            "must be finite on private levels: their noise hides nodes that few units share.",
            hint="give each private level a share of the loss.",
        )
    return scales, max_contributions
