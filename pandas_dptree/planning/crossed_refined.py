r"""The best noise variances that are a product over the axes, where units move margins in several patterns.

The charge of a pattern for a product is no product, and the largest one counts. So the logarithms of what the
levels of each axis contribute, and of the total's own precision, are refined together: the least t for which

.. math:: \log J + k \log \sum_\ell c_{r\ell}\,s_\ell \le t

for each pattern r, where the error J falls like the k-th power of the budget (sequential quadratic
programming, from the best split for margins of equal prices).

**Privacy**: a function of the product, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.planning.crossed_budget import Budget
from pandas_dptree.planning.crossed_product import axis_moments, lines_of, moved_total, orbits_of, outer
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.known_counts import Flags

__all__ = ["refined_variances"]

_STEP = 1e-6  # of finite differences
_LEAST = 1e-6  # of the largest rate of an axis: levels with a smaller one are not measured
_MOST_STEPS = 60
_RESTARTS = 8  # since it stops early where the pattern that costs most changes
_WORTHWHILE = 1e-4
_REACH = 8.0  # how far logarithms may move

Moments = tuple[FloatArray, FloatArray]


def refined_variances(
    product: ProductTree,
    budget: Budget,
    variances: FloatArray,
    *,
    weights: FloatArray,
    worst: bool,
    zeros: Sequence[Flags | None],
) -> FloatArray:
    """Improve noise variances that are a product, with any variance of the grand total, as far as possible.

    The weights are those of `cost_weights`. A *rate* is what a share is proportional to: the power of a
    variance that the budget adds up.
    """
    from scipy.optimize import minimize  # costs a third of a second to import

    problem = _Refinement(product, budget, weights, worst, zeros, lines_of(product, variances))
    with np.errstate(divide="ignore"):
        total = (variances[0] / variances[-1]) ** (-1 / budget.power)
    start = np.append(problem.start, np.log(max(float(total), _LEAST)))
    best, least = start, float(problem.excesses(start).max())
    for _ in range(_RESTARTS):
        found = minimize(  # type: ignore[call-overload]
            lambda x: x[-1],
            np.append(best, least),
            jac=lambda _: np.append(np.zeros(len(start)), 1.0),
            constraints={
                "type": "ineq",
                "fun": lambda x: x[-1] - problem.excesses(x[:-1]),
                "jac": lambda x: np.hstack([-(by := problem.slopes(x[:-1])), np.ones((len(by), 1))]),
            },
            bounds=[*((each - _REACH, each + _REACH) for each in best.tolist()), (None, None)],
            method="SLSQP",
            options={"maxiter": _MOST_STEPS, "ftol": 1e-9},
        ).x[:-1]
        value = float(problem.excesses(found).max())
        if not value < least - _WORTHWHILE:
            break
        best, least = found, value
    with np.errstate(divide="ignore"):
        return np.asarray(problem.rates(best) ** -float(budget.power))


class _Refinement:
    """The logarithms of the error times the charge of each pattern, as functions of those of the rates.

    A point has the logarithms of the rates of all levels of each axis that are measured, and of that of the
    grand total, which counts if it is more than the product.
    """

    def __init__(
        self,
        product: ProductTree,
        budget: Budget,
        weights: FloatArray,
        worst: bool,
        zeros: Sequence[Flags | None],
        lines: Sequence[FloatArray],
    ) -> None:
        """Find out which levels are measured."""
        self._budget = budget
        self._orbits = list(map(orbits_of, product.axes, zeros))
        self._weights = np.diag(weights)[weights > 0] if worst else weights[None]
        with np.errstate(divide="ignore"):
            rates = [line ** (-1 / budget.power) for line in lines]
        self._used = [own > _LEAST * own.max() for own in rates]
        self._axis = np.repeat(np.arange(len(lines)), [np.count_nonzero(own) for own in self._used])
        self.start = np.log(np.concatenate([own[used] for own, used in zip(rates, self._used, strict=True)]))

    def _of_axis(self, point: FloatArray, axis: int) -> FloatArray:
        """Return the rates of the levels of an axis."""
        rates = np.zeros(len(self._used[axis]))
        rates[self._used[axis]] = np.exp(point[:-1][self._axis == axis])
        return rates

    def _moments(self, point: FloatArray, axis: int) -> Moments:
        with np.errstate(divide="ignore"):
            variances = self._of_axis(point, axis) ** -float(self._budget.power)
        return axis_moments(self._orbits[axis], variances)

    def rates(self, point: FloatArray) -> FloatArray:
        """Return the rate of each margin."""
        rates = outer([self._of_axis(point, axis) for axis in range(len(self._used))])
        rates[0] = max(float(rates[0]), float(np.exp(point[-1])))
        return rates

    def excesses(self, point: FloatArray, moments: Sequence[Moments] | None = None) -> FloatArray:
        """Return the logarithm for each error that counts and each pattern."""
        if moments is None:
            moments = [self._moments(point, axis) for axis in range(len(self._used))]
        power = self._budget.power
        rates = self.rates(point)
        alone = float(np.prod([self._of_axis(point, axis)[0] for axis in range(len(self._used))]))
        means = moved_total(moments, float(rates[0]) ** power - alone**power)
        errors = np.log(self._weights @ means)
        charges = power * np.log(self._budget.costs @ rates)
        return np.asarray(np.add.outer(errors, charges)).reshape(-1)

    def slopes(self, point: FloatArray) -> FloatArray:
        """Return the derivatives of the excesses by finite differences; one axis changes at a time."""
        moments = [self._moments(point, axis) for axis in range(len(self._used))]
        base, columns = self.excesses(point, moments), []
        for place in range(len(point)):
            moved, changed = point.copy(), list(moments)
            moved[place] += _STEP
            if place < len(self._axis):
                axis = int(self._axis[place])
                changed[axis] = self._moments(moved, axis)
            columns.append((self.excesses(moved, changed) - base) / _STEP)
        return np.stack(columns, axis=1)
