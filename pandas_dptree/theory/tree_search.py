r"""The best level-uniform tree over a number of bins, with integer branching factors.

A tree is a chain of sizes: the number of bins below a node of a level, :math:`1 = s_m < \dots < s_1 < K`,
each dividing the one before. With padding, the first factor is the least that reaches the last bin,
:math:`n_1 = \lceil K / s_1 \rceil`, since further children of the root would be empty. The error is a sum
over levels (of :math:`w_i`, or with the best budgets the third power of a sum of :math:`w_i^{1/3}`), and a
term depends on :math:`s_i` and :math:`n_i` only. So among all partial trees, built from the leaves up, with
the same size after as many levels, only the best can be part of the best tree: the search keeps one per
size. It drops a partial tree if its error would be too large even with the best possible rest.

**A bound for the rest.** Let j levels be missing, from s up to K: integers :math:`n_2, \dots, n_j`
and the top with the *real* factor :math:`x = K / s_1 > 1`, whose product is R = K / s. Here 1 is the
top level, as elsewhere. From :math:`w_i = K (n_i - 1) / 2 + h(s_i) - n_i h(n_i s_i)` with
:math:`0 \le h(s) \le s / 8`,

.. math:: \frac{2 w_1}{K} \ge x - 1, \qquad
          \frac{2 w_i}{K} \ge n_i \Bigl(1 - \frac{n_i s_i}{4K}\Bigr) - 1 \ge
          n_i \Bigl(1 - \frac{2^{2-i}}{4x}\Bigr) - 1 =: y_i - 1 \quad (i \ge 2),

since :math:`n_i s_i = s_{i-1} \le 2^{2-i} s_1`. If :math:`a \le x \le 2a`, the product of all :math:`y_i` is
at least :math:`R c_a / x` with :math:`c_a = \prod_{i=2}^j (1 - 2^{2-i}/4a)`. A term is
:math:`\varphi(\log y)`, with :math:`\varphi(r) = e^r - 1` for even budgets, which is convex, and
:math:`(e^r - 1)^{1/3}` for the best budgets, which is at least its convex envelope: the tangent through the
origin up to :math:`\log\beta^*`, where the two touch (this makes :math:`\beta^*` the best factor, Lemma
IV.3), and the function itself from there on. By Jensen's inequality for the envelope :math:`\bar\varphi`,
the missing levels cost at least, in units of K / 2 and of its third root,

.. math:: \bar\varphi(\log x) + (j - 1)\,\bar\varphi\Bigl(\frac{\log (R c_a / x)}{j - 1}\Bigr).

This is convex in :math:`\log x`, with its minimum at :math:`\log (R c_a) / j` or at the nearer end of
:math:`[\log a, \log 2a]`. The least of these over a = 1, 2, 4, … is the bound. With even budgets and without
padding it is the inequality of arithmetic and geometric means, Lemma V.1.

**A bound for any number of levels.** With the best budgets the tangent makes a top level with x close to 1
look free, so the bound is loose. In units of K / 2, a level costs at least :math:`n (1 - f (1 - f) / z') -
1`, with :math:`z' = K / ns` and f its fractional part; that depends on :math:`z = K / s = n z'` alone. So the
least cost of all levels above satisfies :math:`G(z) \ge \min(\sqrt[3]{z - 1}, \min_n \sqrt[3]{n (1 - f (1 -
f) / z') - 1} + G(z / n))`. It is bounded from below by this on a grid of :math:`\log z`, once for all K; the
result is within 0.02 of the tangent :math:`\log z\,\sqrt[3]{\beta^* - 1} / \log\beta^*`. The larger of the
two bounds is used.

**Privacy**: everything here is a function of the bins and of parameters, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.mechanisms.arguments import whole_number
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.theory.best_levels import best_branching_factor, optimal_budgets
from pandas_dptree.theory.level_uniform import digit_sum, level_uses

__all__ = ["OptimalTree", "optimal_tree"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MOST_BINS = 2**31  # sums of digits stay below 2**63
_SLACK = 1 + 1e-9  # more than the rounding error, which must never drop the best tree
_STEP = 1e-3  # the step of the logarithm of a ratio, in the table of bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalTree:
    """A level-uniform tree over bins, and the epsilon of each of its levels below the root.

    `branching` has the children of each node, from the root down. `error` is the squared error of all
    cumulative sums in squared counts, with a public total and continuous Laplace noise of the variance
    ``8 / budget**2``, which replaced rows need.
    """

    branching: tuple[int, ...]
    budgets: tuple[float, ...]
    error: float


def optimal_tree(
    n_bins: int,
    *,
    height: int | None = None,
    epsilon: float = 1.0,
    budgets: Literal["even", "optimal"] = "even",
    padding: bool = True,
) -> OptimalTree:
    """Find the level-uniform tree with the least error of cumulative sums, with integer branching factors.

    The error is that of `tree_error`, exact with padding, for the cumulative sums of the K bins. The search
    is exhaustive: its bounds never exclude the best tree. With padding the order of the factors matters, and
    is searched. Another constant in the variance, for other neighbours, does not change the tree. The source,
    Rameshwar, Tandon and Sharma, "Optimal tree-based mechanisms for differentially private approximate CDFs",
    2024, Section V, has no padding but up to the next power of a prime.

    Parameters
    ----------
    n_bins : int
        K, up to 2**31.
    height : int, optional
        The number of levels below the root. By default the best one.
    epsilon : float, default 1
        Shared by these levels. The tree does not depend on it.
    budgets : {"even", "optimal"}
        Whether all levels get the same or the optimal budgets (Theorem IV.2).
    padding : bool, default True
        Whether there may be more leaves than bins, known to be empty. If not, the product of the branching
        factors is K, as in Theorem IV.1 and Section V.

    Returns
    -------
    OptimalTree
        One bin needs no level. If order makes no difference, because the product is K, factors ascend from
        the root down.

    Examples
    --------
    >>> optimal_tree(256).branching
    (16, 16)
    >>> optimal_tree(997).branching, optimal_tree(997, padding=False).branching
    ((10, 10, 10), (997,))
    >>> optimal_tree(2**11, padding=False).branching
    (8, 16, 16)
    """
    bins = whole_number(
        "n_bins", n_bins, at_least=1, at_most=MOST_BINS, hint="it is the number of bins, for example 256."
    )
    most = (bins - 1).bit_length()  # with more levels, the first would have a single node with bins
    heights = list(range(min(most, 1), most + 1))
    if height is not None:
        hint = f"{bins} bins allow at most {most} levels that branch; leave it out to get the best height."
        heights = [whole_number("height", height, at_least=min(most, 1), hint=hint)]
        if heights[0] > most:
            raise ArgumentError("height", f"is too large: {heights[0]}.", hint=hint)
    if not isinstance(budgets, str) or budgets not in ("even", "optimal"):
        raise ArgumentError(
            "budgets",
            f"must be 'even' or 'optimal', not {quote(budgets)}.",
            hint="for example budgets='even'.",
        )
    PrivacyLoss(epsilon=epsilon)
    branching = _search(bins, heights, even=budgets == "even", padding=padding)
    if branching is None:
        raise ArgumentError(
            "height",
            f"cannot be {height}: {bins} is not a product of {height} whole numbers above 1.",
            hint="allow padding, or leave out height.",
        )
    if math.prod(branching) == bins:
        branching = tuple(sorted(branching))
    shares = (
        np.full(len(branching), epsilon / max(len(branching), 1))
        if budgets == "even"
        else optimal_budgets(branching, epsilon, n_bins=bins)
    )
    error = 8 * _objective(level_uses(branching, bins), even=budgets == "even") / epsilon**2
    return OptimalTree(branching=branching, budgets=tuple(shares.tolist()), error=error)


def _objective(uses: tuple[int, ...], *, even: bool) -> float:
    """Compute the error for an epsilon of 1 and noise variances of 1 / budget²."""
    return float(len(uses) ** 2 * sum(uses)) if even else math.fsum(np.cbrt(uses)) ** 3


def _search(n_bins: int, heights: list[int], *, even: bool, padding: bool) -> tuple[int, ...] | None:
    """Find the best branching factors over all heights; None if there are none."""
    known = {}
    if padding:
        near = [_near_equal(n_bins, height) for height in heights]
        known = {each: _objective(level_uses(each, n_bins), even=even) for each in near}
        heights = sorted(heights, key=lambda height: known[near[heights.index(height)]])
    for height in heights:
        best = min(known.values(), default=math.inf)
        limit = (best / max(height, 1) ** 2 if even else best ** (1 / 3)) * _SLACK
        found = _search_height(n_bins, height, limit, even=even, padding=padding)
        if found is not None:
            known[found] = _objective(level_uses(found, n_bins), even=even)
    return min(known, key=lambda each: (known[each], len(each), each), default=None)


def _near_equal(n_bins: int, height: int) -> tuple[int, ...]:
    """Return factors that differ by at most one, with the least sufficient product."""
    factor = max(2, math.floor(n_bins ** (1 / height))) if height else 2
    factor += (factor + 1) ** height <= n_bins  # the float may be just below an integer
    larger = next(k for k in range(height + 1) if factor ** (height - k) * (factor + 1) ** k >= n_bins)
    return (factor,) * (height - larger) + (factor + 1,) * larger


def _search_height(
    n_bins: int, height: int, limit: float, *, even: bool, padding: bool
) -> tuple[int, ...] | None:
    """Find the best branching factors of one height with a sum of terms of at most `limit`; None if none."""
    if height == 0:
        return ()
    candidates = None if padding else _divisors(n_bins)
    sizes, costs = np.ones(1, dtype=np.int64), np.zeros(1)
    steps: list[
        tuple[IntArray, IntArray]
    ] = []  # for each level: the factors, and the positions of the sizes below
    for left in range(height - 1, 0, -1):
        before, factors = _factors(n_bins, sizes, limit - costs, left, candidates, even=even)
        reached = sizes[before] * factors
        terms = costs[before] + _term(digit_sum(n_bins, sizes[before], factors), even=even)
        kept = terms + _least_rest(n_bins, reached, left, even=even) <= limit
        order = np.flatnonzero(kept)[np.lexsort((terms[kept], reached[kept]))]
        first = order[np.diff(reached[order], prepend=0) > 0]  # the best of each size
        sizes, costs = reached[first], terms[first]
        steps.append((factors[first], before[first]))
    top = -(-n_bins // sizes)
    costs = costs + _term(digit_sum(n_bins, sizes, top), even=even)
    if not len(costs):
        return None
    at = int(np.argmin(costs))
    branching = [int(top[at])]
    for factors, before in reversed(steps):
        branching.append(int(factors[at]))
        at = int(before[at])
    return tuple(branching)


def _factors(
    n_bins: int, sizes: IntArray, spare: FloatArray, left: int, candidates: IntArray | None, *, even: bool
) -> tuple[IntArray, IntArray]:
    """List all factors that may come above each size: the positions of the sizes, and the factors.

    The top level needs two nodes, when each of the `left` levels above but the top has a factor of at least
    2. A level, used at least (3n - 4) K / 8 times, must not cost more than `spare` minus the cost of the
    rest, which is at least that after the largest possible factor.
    """
    most = (n_bins - 1) // (sizes << (left - 1))
    for _ in range(10 if np.isfinite(spare).all() else 0):  # each step may lower the largest factor
        rest = _least_rest(n_bins, sizes * np.maximum(most, 1), left, even=even)
        uses = np.maximum(spare - rest, 0) ** (1 if even else 3)
        most = np.minimum(most, (8 * uses / n_bins + 4) / 3).astype(np.int64)
    if candidates is None:
        counts = np.maximum(most - 1, 0)
        before = np.repeat(np.arange(len(sizes)), counts)
        return before, np.arange(counts.sum()) - (np.cumsum(counts) - counts)[before] + 2
    before, which = np.nonzero((candidates <= most[:, None]) & (n_bins % (sizes[:, None] * candidates) == 0))
    return before, candidates[which]


def _term(uses: npt.NDArray[np.int64] | FloatArray, *, even: bool) -> FloatArray:
    """Compute what a level adds to the sum that the search minimises."""
    return np.asarray(uses, dtype=np.float64) if even else np.cbrt(uses)


def _least_rest(n_bins: int, sizes: IntArray, left: int, *, even: bool) -> FloatArray:
    """Bound from below what the `left` levels above each size add."""
    envelope = np.expm1 if even else _envelope()
    log_ratio = np.log(n_bins / sizes)
    least = np.full(len(sizes), np.inf)
    below = left - 1  # levels below the top
    for power in range(int(np.max(log_ratio, initial=0.0) / math.log(2)) + 1):
        log_loss = math.fsum(math.log1p(-(2.0**-level) / 4 / 2**power) for level in range(below))
        low, high = power * math.log(2), (power + 1) * math.log(2)
        top = np.clip((log_ratio + log_loss) / left, low, high)
        rest = below * envelope(np.maximum(log_ratio + log_loss - top, 0) / max(below, 1))
        least = np.where(log_ratio >= low, np.minimum(least, envelope(top) + rest), least)
    if not even:
        least = np.maximum(least, _least_costs()[(log_ratio / _STEP).astype(np.int64)])
    return least * float(_term(np.array(n_bins / 2), even=even))


@cache
def _least_costs() -> FloatArray:
    """Bound from below what any number of levels above a size costs, for the ratios K / s of each cell.

    Cell k has the ratios from ``exp(k * _STEP)`` to ``exp((k + 1) * _STEP)``.
    """
    cells = int(math.log(MOST_BINS) / _STEP) + 2
    ratios = np.exp(np.arange(cells) * _STEP)
    least: FloatArray = np.cbrt(ratios - 1)  # a top level, and nothing below it
    best_factor = best_branching_factor()
    slope = math.cbrt(best_factor - 1) / math.log(best_factor)
    width = int(math.log(2) / _STEP) - 1  # so that z / n is in a finished cell
    deficit = 0.0  # how far the bounds of finished cells are below the tangent
    for start in range(width, cells, width):
        done, block = least[:start], slice(start, min(start + width, cells))
        cell = np.arange(block.start, block.stop)
        tangent = slope * _STEP * (cell + 1)
        deficit = max(deficit, float((slope * _STEP * np.arange(1, start + 1) - done).max()))
        for factor in range(2, int(ratios[block][-1] * math.exp(_STEP)) + 1):
            # From 23 on the excess rises with the factor: no larger one can lower any bound of the block.
            excess = math.cbrt(0.75 * factor - 1) - slope * math.log(factor) - deficit - slope * _STEP
            if factor >= 23 and excess >= (least[block] - tangent).max():
                break
            low = cell - math.ceil(math.log(factor) / _STEP)
            rest = np.minimum(done[np.maximum(low, 0)], done[np.maximum(low + 1, 0)])
            above = np.maximum(ratios[block] / factor, 1)
            part = above % 1  # within a cell, part (1 - part) changes by no more than the ratio
            loss = np.minimum(part * (1 - part) + above * math.expm1(_STEP), 0.25) / above
            own = factor * (1 - loss) - 1
            least[block] = np.where(low + 1 >= 0, np.minimum(least[block], np.cbrt(own) + rest), least[block])
    return least


def _envelope() -> Callable[[FloatArray], FloatArray]:
    """Return the convex envelope of ``cbrt(expm1(r))`` over ``r >= 0``."""
    factor = best_branching_factor()
    bend = math.log(factor)
    slope = np.cbrt(factor - 1) / bend
    return lambda r: np.where(r < bend, slope * r, np.cbrt(np.expm1(r)))


def _divisors(whole: int) -> IntArray:
    """List the divisors of an integer that are above 1, ascending."""
    low = np.arange(1, math.isqrt(whole) + 1)
    low = low[whole % low == 0]
    return np.union1d(low, whole // low)[1:]
