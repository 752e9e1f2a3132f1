r"""The best split of a uniform tree for noise whose precision is proportional to the share.

As all nodes of a level are equal, the leaf counts decompose into orthogonal detail spaces, one for each level
k: the information of level k beyond the level above. Space k has :math:`d_k = 1/s_k - 1/s_{k-1}` dimensions
for each leaf of the tree, with :math:`s_l` leaves below a node of level l and :math:`1/s_{-1} = 0`. Level l
is informative about the spaces :math:`k \le l`, so the precision in space k is
:math:`\mu_k = \sum_{l \ge k} s_l p_l`. With weights :math:`w_l` of the levels' mean variances, and prices
:math:`c_l` of a unit of precision, the task is

.. math:: \min \sum_k \frac{d_k \lambda_k}{\mu_k}, \qquad \lambda_k = \sum_{l \ge k} w_l s_l^2, \qquad
          \sum_l c_l p_l = \sum_k D_k \mu_k = 1, \qquad D_k = \frac{c_k}{s_k} - \frac{c_{k-1}}{s_{k-1}},

as :math:`p_l = (\mu_l - \mu_{l+1}) / s_l`. These must not be negative: :math:`\mu_k` must not rise with k.
Without that condition the answer would be :math:`\mu_k^2 \propto d_k \lambda_k / D_k`. Where these rise, or
:math:`D_k \le 0`, neighbours are pooled as in isotonic regression: they get the sum of their errors over the
sum of their prices, and the levels between them are not measured.

If all prices are equal, :math:`D_k = d_k`, and nothing is pooled, since the :math:`\lambda_k` never rise with
k. This attains the singular-value lower bound of the matrix mechanism (Li and Miklau, "Optimal error of query
sets under the differentially-private matrix mechanism", 2013). Where level m is known, its price is 0: it is
pooled with all levels above, at an infinite precision, and the price of :math:`\mu_{m+1}` is
:math:`c_{m+1}/s_{m+1}`.

If several patterns each limit the precisions (`patterns`), the best mixture of them is the price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.patterns import Mixture

__all__ = ["Spaces", "best_uniform_split"]

_TOLERANCE = 1e-11  # of the squared error, relatively
_MOST_STEPS = 500  # a few dozen are enough, unless a tiny change of prices moves the split a lot


@dataclass(frozen=True, slots=True)
class Spaces:
    r"""The detail spaces of a uniform tree, shape (n_levels,) each.

    `leaves` are the :math:`s_l`, `squares` the :math:`\lambda_k` and `dimensions` the :math:`d_k`.
    """

    leaves: FloatArray
    squares: FloatArray
    dimensions: FloatArray

    @classmethod
    def of(cls, level_sizes: Sequence[float] | FloatArray, weights: FloatArray) -> Spaces:
        """Decompose a tree; level sizes never fall, but need not divide one another.

        The weights are the costs of a unit of each level's mean variance.
        """
        sizes = np.asarray(level_sizes, dtype=np.float64)
        leaves = sizes[-1] / sizes
        squares = np.cumsum((weights * leaves**2)[::-1])[::-1]
        return cls(leaves, squares, np.diff(1 / leaves, prepend=0.0))

    def prices(self, level_prices: FloatArray) -> FloatArray:
        """Return the :math:`D_k`, for prices of the levels."""
        return np.diff(level_prices / self.leaves, prepend=0.0)

    def cost(self, precisions: FloatArray, known: npt.NDArray[np.bool_]) -> float:
        """Return the weighted sum of the levels' mean variances, if some levels are known."""
        below = ~np.logical_or.accumulate(known[::-1])[::-1]
        spread = np.cumsum((precisions * self.leaves)[::-1])[::-1]
        errors = self.dimensions * self.squares
        return float(np.divide(errors, spread, out=np.zeros_like(errors), where=below & (errors > 0)).sum())

    def best_precisions(self, prices: FloatArray) -> FloatArray:
        """Return the best precisions of the levels, at least 0, up to a common factor.

        Prices are at least 0. A level whose price is 0 is known, and not measured. All are 0 where no error
        with a weight remains.
        """
        costs = self.prices(prices)

        def value(first: int, last: int, error: float) -> float:
            """Return the square of the precision in the spaces from first to last, pooled."""
            if first == last and prices[last] and costs[first] == self.dimensions[first]:
                return float(self.squares[first])
            above = prices[first - 1] / self.leaves[first - 1] if first else 0.0
            price = prices[last] - above * self.leaves[last]
            return float(error * self.leaves[last] / price) if price > 0 else math.inf

        pooled: list[tuple[int, float, float]] = []  # first space, error, value
        for space, error in enumerate((self.dimensions * self.squares).tolist()):
            first, own = space, value(space, space, error)
            while pooled and own > pooled[-1][2]:
                first, before, _ = pooled.pop()
                error += before
                own = value(first, space, error)
            pooled.append((first, error, own))
        lengths = np.diff([first for first, _, _ in pooled], append=len(prices))
        roots = np.sqrt(np.repeat([own for _, _, own in pooled], lengths))
        measurable = np.isfinite(roots)
        roots = np.where(measurable, roots, 0.0)
        return np.where(measurable, (roots - np.append(roots[1:], 0.0)) / self.leaves, 0.0)


def best_uniform_split(
    level_sizes: Sequence[float] | FloatArray, weights: FloatArray, patterns: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the best precisions of the levels of a uniform tree, and a mixture of the patterns: its prices.

    The precisions are up to a common factor, and all 0 where no error with a weight remains. Patterns have
    shape (n_patterns, n_levels); a level that all charge 0 is known. By duality, the prices prove that the
    cost is within 1e-11 of the least, relatively.
    """
    spaces, mixture = Spaces.of(level_sizes, weights), Mixture(patterns, 1)
    known = np.asarray(~patterns.any(axis=0))
    best, proof, least, bound = np.zeros(len(weights)), mixture.prices[:, 0], math.inf, 0.0
    for _ in range(_MOST_STEPS):
        prices = mixture.prices[:, 0]
        precisions = spaces.best_precisions(prices)
        charges = patterns @ precisions
        most, mean = float(charges.max()), float(prices @ precisions)
        unit = spaces.cost(precisions, known)
        if most * unit < least and most:
            best, least = precisions, most * unit
        if mean * unit > bound:
            proof, bound = prices, mean * unit
        if least <= bound * (1 + _TOLERANCE) or not most:
            break
        mixture.move(charges[:, None])
    return best, proof
