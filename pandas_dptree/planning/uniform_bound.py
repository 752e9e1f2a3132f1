r"""A lower bound on the mean error of additive Gaussian noise on a uniform tree, whatever a unit can move.

Unbiased estimates of the leaves with Gaussian errors of any covariance :math:`P^{-1}` keep to
:math:`\rho = \frac12` if :math:`x^\top P x \le 1` for every difference x that a unit makes to the leaves. Let
x be random: one of several differences, with its leaves then permuted by a random automorphism of the tree.
With :math:`M = \mathrm E\,x x^\top`, the mean of :math:`x^\top P x` is :math:`\mathrm{tr}(M P) \le 1`, so by
the Cauchy-Schwarz inequality the error is at least

.. math:: \mathrm{tr}(U P^{-1}) \ge \mathrm{tr}(U P^{-1})\,\mathrm{tr}(M P)
          \ge \bigl(\mathrm{tr}\,(M^{1/2} U M^{1/2})^{1/2}\bigr)^2.

Both M and U (see `gaussian_bound`) commute with all automorphisms, and so are multiples of the identity on
each detail space (`closed_form`). Space k has :math:`d_k` dimensions for each of n leaves. There, U is
:math:`\lambda_k / n`, and M is :math:`D_k / (n d_k)` with the mean square :math:`D_k` of the part of x in it:

.. math:: \text{error} \ge \Bigl(\sum_k \sqrt{d_k \lambda_k D_k}\Bigr)^2, \qquad
          D_k = \frac{\mathrm E\,|x_k|^2}{s_k} - \frac{\mathrm E\,|x_{k-1}|^2}{s_{k-1}},

where :math:`x_l` are the differences of the nodes of level l. This is the error of the best split by level
(`closed_form`) if that pools no spaces, and if the prices of the levels are those of differences that occur.
The sum is a concave function of the probabilities of the differences, and of the parts of the levels in the
error: of linear forms under square roots. Each step moves these to their parts in its derivative.

**Privacy**: everything here is a function of the tree, the limits on rows, and the objective.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pandas_dptree.planning.closed_form import Spaces
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.privacy.sensitivity import Neighbors

__all__ = ["possible_moves", "uniform_lower_bound"]

_MOST_STEPS = 300
_TOLERANCE = 1e-9  # of the gain of a step, relatively
_ROUNDING = 1e-12


def uniform_lower_bound(
    level_sizes: Sequence[int], weights: FloatArray, moves: FloatArray, *, worst: bool
) -> float:
    """Bound the cost of any additive Gaussian mechanism with a rho of 1/2 on a uniform tree from below.

    The weights are those of `cost_weights`; `worst` says whether the largest cost of a level matters or their
    sum. `moves` are the squared differences of the levels that units make, shape (n_moves, n_levels).
    """
    spaces = Spaces.of(level_sizes, weights)
    covered = np.tril(np.ones((len(weights), len(weights))))  # level l is about the spaces up to l
    errors = covered * (weights * spaces.leaves**2)[:, None] * spaces.dimensions
    squares = np.maximum(np.diff(moves / spaces.leaves, axis=1, prepend=0.0), 0.0)
    parts = np.full(len(moves), 1 / len(moves))
    levels = (weights > 0) / np.count_nonzero(weights) if worst else np.ones(len(weights))
    best = 0.0
    for _ in range(_MOST_STEPS):
        roots = np.sqrt((levels @ errors) * (parts @ squares))
        total, before = float(roots.sum()), best
        best = max(best, total)
        if total <= before * (1 + _TOLERANCE):
            break
        parts = _moved(parts, squares, roots)
        levels = _moved(levels, errors, roots) if worst else levels
    return best**2 * (1 - _ROUNDING)


def _moved(parts: FloatArray, forms: FloatArray, roots: FloatArray) -> FloatArray:
    """Move the parts of linear forms to their parts in the derivative of the sum of the roots."""
    mixed = parts @ forms
    slopes = np.divide(roots, mixed, out=np.zeros_like(roots), where=mixed > 0)
    return np.asarray(parts * (forms @ slopes) / roots.sum())


def possible_moves(
    level_sizes: Sequence[int],
    capacities: Sequence[int],
    *,
    rows: int,
    low: int,
    high: int,
    neighbors: Neighbors,
    in_forest: bool,
) -> FloatArray:
    """List differences that one unit makes to a uniform tree: squares by level, shape (n_moves, n_levels).

    A unit has at most so many rows, each of which adds from `low` to `high` units, and no more of them in a
    node than the `capacities` of the levels allow. Its rows fill nodes from the first one on, as far as they
    may go or only a few to each node of a level; those that replace them fill other nodes of every level that
    has several. `in_forest`, these may be in another tree.
    """
    most = max(abs(low), abs(high)) ** 2
    single = np.asarray(level_sizes) == 1 if not in_forest else np.zeros(len(level_sizes), dtype=bool)
    capped, moves = any(capacity < rows for capacity in capacities), []
    for held in _spreads(level_sizes, capacities) if capped else [capacities]:
        for kept in _powers(min(rows, held[0] * level_sizes[0])) if capped else [rows]:
            filled = _filled(held, kept)
            new = 0
            if neighbors == "replace":
                new = kept if in_forest or single.all() else _free_rows(level_sizes, held, kept)
            for b in {0, new}:
                moves.append(most * np.where(single, (kept - b) ** 2, filled + _filled(held, b)))
            if neighbors == "replace" and low < 0 < high:  # each row may stay, and change its value
                moves.append((high - low) ** 2 * filled)
    return np.unique(np.array(moves, dtype=np.float64), axis=0)


def _powers(most: int) -> list[int]:
    """List the powers of 2 below a number, and the number."""
    return [2**power for power in range((most - 1).bit_length())] + [most]


def _spreads(level_sizes: Sequence[int], capacities: Sequence[int]) -> list[list[int]]:
    """List capacities of which one level's is a power of 2, or as given, and the others at most as given."""
    found = []
    for level, capacity in enumerate(capacities):
        for most in _powers(capacity):
            held = [min(each, most) if at >= level else each for at, each in enumerate(capacities)]
            for at in reversed(range(level)):
                held[at] = min(held[at], held[at + 1] * level_sizes[at + 1] // level_sizes[at])
            found.append(held)
    return found


def _free_rows(level_sizes: Sequence[int], capacities: Sequence[int], rows: int) -> int:
    """Return how many of so many rows fit into other nodes of the first level that has several."""
    first = next(level for level, size in enumerate(level_sizes) if size > 1)
    return min(rows, (level_sizes[first] + rows // -capacities[first]) * capacities[first])


def _filled(capacities: Sequence[int], rows: int) -> FloatArray:
    """Return the sum of the squared numbers of rows in the nodes of each level."""
    nodes, squares = Counter({rows: 1}), []
    for capacity in capacities:
        below: Counter[int] = Counter()
        for held, number in nodes.items():
            below[capacity] += held // capacity * number
            below[held % capacity] += number
        nodes = below
        squares.append(float(sum(held**2 * number for held, number in nodes.items())))
    return np.array(squares)
