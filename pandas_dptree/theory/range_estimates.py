"""Counts of intervals of bins from the noisy counts of a level-uniform tree, and bounds on their errors.

The leaves of the tree are the bins, in order. Intervals are half-open: bins ``start <= bin < stop``, from 0.

**Privacy**: post-processing of noisy numbers and the tree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.theory.reconstruction import branching_of, check_levels, checked_noise, every_node

__all__ = [
    "IntervalEstimate",
    "NodeRange",
    "Queries",
    "cover",
    "expected_maximum_bound",
    "interval_estimates",
]

Queries = Literal["cumulative", "intervals"]


class NodeRange(NamedTuple):
    """Adjacent nodes of one level: ``first <= node < stop``."""

    level: int
    first: int
    stop: int


def cover(tree: Tree, start: int, stop: int, *, with_root: bool = True) -> list[NodeRange]:
    """Find the fewest nodes whose disjoint union is the bins ``start <= bin < stop``.

    At each level, the nodes at both ends are taken whose parent extends beyond the interval: at most 2(b − 1)
    nodes on a level with branching b.

    Parameters
    ----------
    tree, start, stop : Tree, int, int
        Level-uniform, with 0 ≤ start ≤ stop ≤ n_leaves.
    with_root : bool
        Whether the root may be used for the whole range; otherwise its children are.

    Returns
    -------
    list of NodeRange
        From left to right, at most two ranges per level; empty if `start` equals `stop`.

    Examples
    --------
    >>> [tuple(nodes) for nodes in cover(Tree.from_branching([2, 2, 2]), 1, 6)]
    [(3, 1, 2), (2, 1, 2), (2, 2, 3)]
    """
    branchings = branching_of(tree)
    _check_interval(tree, start, stop)
    first, last = int(start), int(stop)
    left: list[NodeRange] = []
    right: list[NodeRange] = []
    top = 0 if with_root else min(1, tree.depth)
    for level in range(tree.depth, top, -1):
        branching = branchings[level - 1]
        inner_first = min(-(-first // branching) * branching, last)
        inner_last = max(last // branching * branching, inner_first)
        left.append(NodeRange(level, first, inner_first))
        right.append(NodeRange(level, inner_last, last))
        first, last = inner_first // branching, inner_last // branching
    middle = NodeRange(top, first, last)
    return [nodes for nodes in [*left, middle, *reversed(right)] if nodes.first < nodes.stop]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalEstimate:
    """One unbiased estimate of the count of an interval, by its method.

    It is the sum of the interval's own cover ("cover"), the difference of two cumulative sums, in which
    shared nodes cancel ("cumulative"), or the total minus what lies outside ("complement").
    """

    method: str
    value: float
    variance: float


def interval_estimates(
    tree: Tree,
    measurements: Sequence[npt.NDArray[Any] | None],
    noise_variances: Sequence[npt.ArrayLike],
    start: int,
    stop: int,
) -> list[IntervalEstimate]:
    """Estimate the count of one interval from the raw measurements by several methods, the best first.

    Each estimate needs only a few numbers. None is better than least squares, which uses all measurements.

    Parameters
    ----------
    tree, start, stop
        As for `cover`.
    measurements : sequence of numpy.ndarray or None
        For each level, the noisy counts of its nodes; None for a root that was not measured.
    noise_variances : sequence of array_like
        For each level, the variance of its independent noise, a number or one per node: 0 if the count is
        known, ``inf`` for a root that was not measured.

    Returns
    -------
    list of IntervalEstimate
        By ascending variance; without "complement" if the root was not measured.

    Examples
    --------
    The textbook example f(1, 6) = f(1, 4) + f(5, 6) = f(1, 8) − f(7, 8), with 8 bins and a known total:

    >>> tree, noise = Tree.from_branching([2, 2, 2]), [0.0, 1.0, 1.0, 1.0]
    >>> counts = tree.roll_up(np.array([1, 2, 3, 4, 5, 6, 7, 8]))
    >>> [(found.method, found.variance) for found in interval_estimates(tree, counts, noise, 0, 6)]
    [('complement', 1.0), ('cover', 2.0), ('cumulative', 2.0)]
    """
    check_levels(tree, "measurements", measurements)
    noise = every_node(tree, checked_noise(tree, noise_variances))
    _check_interval(tree, start, stop)
    has_total = measurements[0] is not None and bool(np.isfinite(noise[0][0]))

    def nodes(sign: int, first: int, last: int) -> list[tuple[int, NodeRange]]:
        return [(sign, found) for found in cover(tree, first, last, with_root=has_total)]

    bins = tree.n_leaves
    covers = {
        "cover": nodes(1, start, stop),
        "cumulative": nodes(1, 0, stop) + nodes(-1, 0, start),
        "complement": nodes(1, 0, bins) + nodes(-1, 0, start) + nodes(-1, stop, bins),
    }
    if not has_total:
        del covers["complement"]
    estimates = []
    for method, signed in covers.items():
        value = variance = 0.0
        for sign, (level, first, last) in _net(signed):
            measured = measurements[level]
            assert measured is not None  # only the root may be None, and then no cover uses it
            value += sign * float(measured[first:last].sum())
            variance += float(noise[level][first:last].sum())
        estimates.append(IntervalEstimate(method=method, value=value, variance=variance))
    return sorted(estimates, key=lambda estimate: estimate.variance)


def _net(signed: Sequence[tuple[int, NodeRange]]) -> Iterator[tuple[int, NodeRange]]:
    """Cancel nodes that are both added and subtracted, and yield disjoint ranges with the remaining sign.

    Added ranges are disjoint, and so are subtracted ones, so no sign exceeds ±1.
    """
    changes: Counter[tuple[int, int]] = Counter()
    for sign, nodes in signed:
        changes[nodes.level, nodes.first] += sign
        changes[nodes.level, nodes.stop] -= sign
    positions = sorted(changes)
    sign = 0
    for here, after in pairwise(positions):
        sign += changes[here]
        if sign:  # the sign is 0 again at the end of every level
            yield sign, NodeRange(here[0], here[1], after[1])


def expected_maximum_bound(
    tree: Tree, noise_scales: Sequence[float], queries: Queries = "cumulative"
) -> float:
    r"""Bound the expected largest absolute error over all cumulative sums, or all intervals, of a noisy tree.

    Each cumulative sum or interval is the sum of its `cover`. The nodes of level :math:`l` have independent
    Laplace noise of scale :math:`b_l`. The result is the smaller of two bounds.

    *From the largest noise.* The largest absolute value of :math:`M` Laplace variables has the expectation
    :math:`b \sum_{i \le M} 1/i \le b (1 + \ln M)`. The cover of a cumulative sum has at most :math:`n_l - 1`
    of the :math:`M_l` nodes of a level, an interval's cover twice as many. So the error is at most
    :math:`\sum_l k (n_l - 1)\, b_l (1 + \ln M_l)`, with :math:`k` = 1 or 2.

    *From the moments.* For :math:`0 < \lambda < 1 / \max b_l` a node's noise :math:`Z` has
    :math:`E e^{\lambda Z} = q_l = 1 / (1 - \lambda^2 b_l^2)`. By Jensen's inequality, with a sum in place of
    the maximum,

    .. math:: E \max_t |e_t| \le \frac1\lambda \ln \sum_t E (e^{\lambda e_t} + e^{-\lambda e_t})
              \le \frac1\lambda \ln \Bigl( 2 q_0 + 2 \prod_l \bigl(1 + q_l + … + q_l^{n_l - 1}\bigr)^k \Bigr).

    For cumulative sums the product equals the sum: the digits of :math:`t` in the mixed radix :math:`n_1, …,
    n_m` are the numbers of nodes of each level in its cover. The cover of an interval has, on each level, no
    more nodes than two covers together: that of the cumulative sum with the same end, and that of the suffix
    with the same start. Such a pair is one of the terms of the squared product. :math:`q_0` is the term of
    the whole range, :math:`q_1^{n_1}` if the root was not measured. The bound is minimised over many
    :math:`\lambda`.

    For the binary tree over :math:`M \ge 4` bins, root included, with :math:`d = \log_2 M + 1` levels of
    scale :math:`d / \varepsilon`, the choice :math:`\lambda = \varepsilon / (\sqrt2\, d)` gives
    :math:`q = 2` and

    .. math:: E \max_t |e_t| \le \frac{\sqrt2\, d}{\varepsilon} \ln \bigl(4 + 2 \cdot 3^{d - 1}\bigr)
              \le \frac{\sqrt2 \ln 3 \; d^2}{\varepsilon},

    and twice that for intervals. The first bound is :math:`O(d^3 / \varepsilon)`, and with the root of the
    sum of squares in place of the sum :math:`O(d^{2.5} / \varepsilon)`.

    Parameters
    ----------
    tree : Tree
        Level-uniform.
    noise_scales : sequence of float
        For each level, the scale :math:`b_l` of its Laplace noise, in counts: 0 if the counts are known,
        ``inf`` for a root that was not measured. Both bounds also hold for discrete Laplace noise.
    queries : {"cumulative", "intervals"}

    Returns
    -------
    float
        In counts.

    Examples
    --------
    >>> binary = Tree.from_branching([2] * 10)
    >>> round(expected_maximum_bound(binary, [11.0] * 11), 1)
    181.2
    """
    if queries not in get_args(Queries):
        raise ArgumentError(
            "queries",
            f"must be 'cumulative' or 'intervals', not {quote(queries)}.",
            hint='queries="cumulative".',
        )
    branching, scales = branching_of(tree), _checked_scales(tree, noise_scales)
    sides = 1 if queries == "cumulative" else 2
    has_total = math.isfinite(scales[0])
    total = (scales[0], 1) if has_total else (scales[1], branching[0])
    largest = max([total[0], *scales[1:]])
    if largest == 0:
        return 0.0
    levels = list(zip(branching, scales[1:], tree.level_sizes[1:], strict=True))
    from_largest = total[0] * total[1] * (1 + math.log(total[1]))
    from_largest += sum(sides * (n - 1) * b * (1 + math.log(size)) for n, b, size in levels)
    fractions = np.geomspace(1e-6, 0.999, 1000)
    log_sum = sides * sum(
        (_log_geometric(_log_moment(fractions * b / largest), n) for n, b, _ in levels), 0.0
    )
    log_total = total[1] * _log_moment(fractions * total[0] / largest)
    from_moments = largest / fractions * (math.log(2) + np.logaddexp(log_sum, log_total))
    return float(min(from_largest, from_moments.min()))


def _log_moment(fractions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute log E exp(λZ) for Laplace noise of scale b, from λb."""
    return -np.log1p(-(fractions**2))


def _log_geometric(log_ratio: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.float64]:
    """Compute log(1 + q + … + q^(n − 1)) without overflow."""
    if not log_ratio.any():
        return np.full_like(log_ratio, math.log(n))
    return n * log_ratio + np.log(-np.expm1(-n * log_ratio)) - np.log(np.expm1(log_ratio))


def _checked_scales(tree: Tree, noise_scales: Sequence[float]) -> list[float]:
    scales = [float(scale) for scale in noise_scales]
    fits = len(scales) == tree.depth + 1 and all(scale >= 0 for scale in scales)
    if not fits or not all(math.isfinite(scale) for scale in scales[min(1, tree.depth) :]):
        raise ArgumentError(
            "noise_scales",
            f"must hold a number of at least 0 for each of {tree.depth + 1} levels.",
            hint="use 0 for known counts, and inf for a root that is not measured but has levels below it.",
        )
    return scales


def _check_interval(tree: Tree, start: object, stop: object) -> None:
    for name, value, least in (("start", start, 0), ("stop", stop, start)):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not least <= value <= tree.n_leaves:  # type: ignore[operator]
            raise ArgumentError(
                name,
                f"must be a whole number from {least} to {tree.n_leaves}, not {quote(value)}.",
                hint="bins are counted from 0; an interval is start, start + 1, … up to stop - 1.",
            )
