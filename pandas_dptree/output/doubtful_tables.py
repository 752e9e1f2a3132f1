r"""What the noisy numbers of a release say about mistakes that are no errors.

A value of a key that is coded otherwise in the records, a known count that is wrong, and bounds that are far
too wide all give a table that looks like any other. What was measured shows them.

**Privacy**: everything here is a function of noisy measurements of public nodes and of the plan, so it is
post-processing. A warning may show noisy numbers that the table does not, measured within the same loss.

**False alarms.** Estimates of the nodes of one level, each from its own subtree, have independent errors:
weighted sums of Laplace or Gaussian noise. For such a sum X with variance :math:`\sigma^2`, as :math:`1 - u
\le e^{-u}` and :math:`1 - \sum_i u_i \le \prod_i (1 - u_i)`,

.. math:: E\,e^{sX} \le \frac{1}{1 - s^2 \sigma^2 / 2},
    \qquad\text{so}\qquad P(X \ge t \sigma) \le \frac{r + 1}{2}\, e^{1 - r},
    \quad r = \sqrt{1 + 2 t^2},

at the best s. (Discrete Laplace noise has slightly heavier tails, so one step is added for each number.)
`noise_reach` inverts this, for all comparisons of a table together, which therefore are wrong
in fewer than one table in a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import MOST_ENTRIES, listed, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.stated_counts import NameOf
from pandas_dptree.hierarchy.tree import IntArray

__all__ = [
    "NEARLY_ALL", "WIDEST_END", "Doubt", "Level", "contradictions", "drawn_at_bounds", "empty_values",
    "mostly_noise", "noise_reach", "quantiles_at_bounds", "wide_intervals",
]  # fmt: skip

FloatArray = npt.NDArray[np.float64]

_FALSE_ALARMS = 1e-3
"""The most tables in which noise alone may cause a warning."""

_RARE = 0.1
"""A value with at least this part of what others typically hold under the same parents is not rare."""

_RARE_AT_FIRST = 0.01
"""The same for the first key, whose values have one parent: their sizes often differ."""

WIDEST_END = 0.05
"""The widest bin at a bound, as a part of the range, in which quantiles are not expected."""

_FINE = 100
"""So many points of a grid are hardly ever drawn at a bound by chance."""

NEARLY_ALL = 0.9
"""An interval of at least this part of the range says nothing."""

_SPIKE = 3
"""How many times as many values a bin at a bound must have as that beside it."""


class Doubt(NamedTuple):
    """What is probably wrong with a table, and what to do."""

    fact: str
    hint: str


class Level(NamedTuple):
    """Unbiased estimates of the nodes of a level, with independent errors, and their variances.

    The variances may be folded. They are 0 for public nodes, which are ignored.
    """

    estimates: FloatArray
    variances: FloatArray


def noise_reach(n_comparisons: int) -> float:
    """Return how many standard errors the noise exceeds in one direction in at most one table in a thousand.

    >>> round(noise_reach(1), 1), round(noise_reach(1000), 1)
    (6.7, 12.0)
    """
    p, r = _FALSE_ALARMS / n_comparisons, 10.0
    for _ in range(20):  # of which each makes the error ten times smaller
        r = 1 + math.log((r + 1) / (2 * p))
    return math.sqrt((r * r - 1) / 2)


def empty_values(domain: Domain, levels: Sequence[Level]) -> list[Doubt]:
    """Find values of keys with next to nothing in them under all parents, while other values have more.

    Doubtful is one that most parents have as a child and whose sum is within the noise, if a tenth (of the
    first key a hundredth) of what half of the others hold would be twice the noise, and not more than two
    thirds are that small. The estimates may be those of several parallel trees.
    """
    sums = {
        key: _sums_of_values(domain, place, level)
        for place, (key, level) in enumerate(zip(domain.by, levels[1:], strict=False))
        if key in domain.plain
    }
    reach = noise_reach(max(1, sum(len(codes) for codes, *_ in sums.values())))
    doubts = []
    for key, (codes, nodes, total, variance) in sums.items():
        noise = reach * np.sqrt(variance) + 1  # and one step of the noise
        low = total <= noise
        others = np.sort((total / nodes)[~low])
        if not len(others) or len(others) * 2 < np.count_nonzero(low):
            continue
        part = _RARE if key != domain.by[0] else _RARE_AT_FIRST
        rare = codes[low & (part * others[len(others) // 2] * nodes >= 2 * noise)]
        if len(rare):
            labels = domain.labels[domain.by.index(key)].take(rare[: MOST_ENTRIES + 1])
            values = listed(labels.tolist())
            doubts.append(
                Doubt(
                    f"The released table has next to nothing for {values} of {quote(key)}, while other "
                    "values have more: truly rare, or coded otherwise in the records.",
                    f"compare these values of {quote(key)} with the codes of the records: rows with other "
                    "codes were dropped. Correct the domain or the records, and release again.",
                )
            )
    return doubts


def _sums_of_values(
    domain: Domain, place: int, level: Level
) -> tuple[npt.NDArray[np.intp], FloatArray, FloatArray, FloatArray]:
    """Sum a level's estimates by key: codes of values to compare, and their nodes, sums and variances."""
    codes, n = domain.codes[place], len(domain.labels[place])
    shown = codes >= 0
    labelled = codes if shown.all() else np.where(shown, codes, n)  # the others together in the end
    parents = np.count_nonzero(domain.tree.sum_children(place, shown.astype(np.int64)))
    usual = 2 * np.bincount(labelled, minlength=n + 1) > parents
    estimates, variances = (
        each.sum(axis=0) if len(each) > 1 else each[0]
        for each in (part.reshape(-1, min(len(part), len(codes))) for part in level)
    )
    if len(variances) > 1:  # else the nodes agree
        labelled = np.where(variances > 0, labelled, n)

    def by_value(weights: FloatArray | None) -> FloatArray:
        return np.bincount(labelled, weights, n + 1).astype(np.float64)

    nodes, sums = by_value(None), by_value(estimates)
    n_trees = len(level.estimates) // len(codes)
    noise = by_value(variances) if len(variances) > 1 else nodes * variances * n_trees
    compared = np.flatnonzero(usual[:n] & (noise[:n] > 0))
    return compared, nodes[compared], sums[compared], noise[compared]


def contradictions(known: Known, measured: Sequence[Level], name_of: NameOf) -> list[Doubt]:
    """Find known counts that differ from what was measured by more than noise explains.

    `measured` has estimates of every node that do not use its own known count. The variance is 0 where all
    that was measured is known too, and inf where nothing was.
    """
    parts = []
    for level, (exact, least, (estimates, variances)) in enumerate(
        zip(known.exact, known.least, measured, strict=True)
    ):
        variance = np.broadcast_to(variances, estimates.shape)
        at = np.flatnonzero(exact & (variance > 0) & np.isfinite(variance))
        stated = np.broadcast_to(least, estimates.shape)[at]
        parts.append((np.full(len(at), level), at, stated, estimates[at], np.sqrt(variance[at])))
    levels, nodes, stated, estimates, errors = map(np.concatenate, zip(*parts, strict=True))
    excess = np.abs(estimates - stated) - noise_reach(max(1, 2 * len(nodes))) * errors - 1
    n_wrong = np.count_nonzero(excess > 0)
    if not n_wrong:
        return []
    worst = int(np.argmax(excess))
    node = name_of(int(levels[worst]), int(nodes[worst]))
    more = f", as for {n_wrong - 1} more" if n_wrong > 1 else ""
    dropped = (
        "or rows were dropped: those with keys that are missing or not in the domain, without a unit, or "
        "beyond `max_contributions`"
        if estimates[worst] < stated[worst]
        else "for example out of date, or that of other records"
    )
    return [
        Doubt(
            f"The noisy counts contradict `known`: it says that {node} holds {stated[worst]}, but "
            f"{estimates[worst]:.0f} were counted, with a standard error of {errors[worst]:.3g}{more}. "
            "The table was made to agree with `known`.",
            f"the known count is wrong, {dropped}.",
        )
    ]


def mostly_noise(name: Hashable, levels: Sequence[Level], hint: str) -> list[Doubt]:
    r"""Find a table in which the values of no level below the total are larger than their noise.

    Of a level with estimates x and variances v, the mean of :math:`x^2` is about :math:`2 v` if its values
    are as large as their standard errors. More is allowed for chance, where there are few nodes. Estimates
    that are missing (nan) are noise.
    """
    compared = False
    for estimates, folded in levels[1:] or levels:
        variances = np.broadcast_to(folded, estimates.shape)
        unknown = (variances > 0) & np.isfinite(variances)
        if not unknown.any():
            compared |= bool(np.isnan(estimates).any())
            continue
        largest = variances[unknown].max()
        noise, squares = variances[unknown] / largest, estimates[unknown] ** 2 / largest
        n_equal = noise.sum() ** 2 / (noise**2).sum()
        if squares.sum() > noise.sum() * (2 + 3 / math.sqrt(n_equal)):
            return []
        compared = True
    fact = (
        "The released table is mostly noise: on no level below its total are the values of "
        f"{quote(name)} larger than their standard errors."
    )
    return [Doubt(fact, hint)] if compared else []


def quantiles_at_bounds(column: Hashable, levels: FloatArray, ranges: Level) -> list[Doubt]:
    r"""Find quantiles that certainly lie in the first or the last bin, where that is a spike.

    `levels` are between 0 and 1. `ranges` has for each group the first and the last bin, those beside them,
    and all values. A quantile with a part p of all N values on its outer side lies in an outermost bin that
    holds R if :math:`R > p N`. The standard error of :math:`R - p N` is at most the sum of both.
    """
    parts = (slice(0, 2), slice(2, 4), slice(4, 5))
    ends, beside, total = (ranges.estimates[:, None, part] for part in parts)
    errors, errors_beside, error = (np.sqrt(ranges.variances)[:, None, part] for part in parts)
    beyond = np.stack([levels, 1 - levels], axis=1)  # the first bin, and the last
    reach = noise_reach(2 * ends.size * len(levels))
    spike = ends - _SPIKE * beside > reach * (errors + _SPIKE * errors_beside) + 1 + _SPIKE
    within = spike & (ends - beyond * total > reach * (errors + beyond * error) + 1 + beyond)
    doubts = []
    for end, (place, values) in enumerate([("first", "smaller"), ("last", "larger")]):
        n_groups = np.count_nonzero(within[:, :, end].any(axis=1))
        if n_groups:
            found = listed(levels[within[:, :, end].any(axis=0)].tolist())
            groups = f" in {n_groups} of {len(within)} groups" if len(within) > 1 else ""
            doubts.append(
                Doubt(
                    f"Quantiles of {quote(column)} lie in the {place} bin, at the bound: {found}{groups}.",
                    f"choose wider bounds if many values are {values}, which count as the bound; or "
                    "tighter ones, or more bins, if one holds nearly all. Many may really equal the bound.",
                )
            )
    return doubts


def drawn_at_bounds(column: Hashable, levels: FloatArray, drawn: IntArray, n_points: int) -> list[Doubt]:
    """Find quantiles that were drawn at a bound of a fine grid, in most groups.

    By chance alone, a single point is hardly ever drawn from so many. `drawn` has the shape (n_groups,
    n_levels).
    """
    doubts = []
    for end, values in ((0, "smaller"), (n_points - 1, "larger")):
        often = (drawn == end).mean(axis=0) > 0.5
        if often.any() and n_points >= _FINE:
            place = "lower" if end == 0 else "upper"
            groups = " in most groups" if len(drawn) > 1 else ""
            doubts.append(
                Doubt(
                    f"Quantiles of {quote(column)} are equal to the {place} bound: "
                    f"{listed(levels[often].tolist())}{groups}.",
                    f"choose wider bounds if many values are {values}, which count as the bound. Many may "
                    "really equal the bound.",
                )
            )
    return doubts


def wide_intervals(
    column: Hashable, wide: npt.NDArray[np.bool_], of_level: npt.NDArray[np.intp]
) -> list[Doubt]:
    """Find quantiles whose intervals are nearly the range, in most groups of each level below the first.

    `of_level` has the number of each group's level. If there is only one level, that is meant.
    """
    levels = np.unique(of_level)
    below = levels[1:] if len(levels) > 1 else levels
    if any(wide[of_level == level].mean() <= 0.5 for level in below):
        return []
    where = " in most groups of every level" if len(wide) > 1 else ""
    return [
        Doubt(
            f"The released table is mostly noise: the intervals of quantiles of {quote(column)} are nearly "
            f"as wide as its bounds{where}.",
            "choose fewer or larger groups, a smaller max_contributions or a larger privacy loss.",
        )
    ]
