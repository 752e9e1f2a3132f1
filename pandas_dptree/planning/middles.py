r"""Which sums are measured from the middle of their bounds, and shown with the count of the same records.

Let a record add from a to b to a sum, and let h be the middle. Measured from 0, it moves the sum by up to
:math:`M = \max(|a|, |b|)`; from the middle by :math:`m = (b - a)/2`, but the count n is measured too, and the
table shows :math:`x = t + h n` with :math:`\mathrm{Var}\,x = \mathrm{Var}\,t + h^2\,\mathrm{Var}\,n`. So the
count has the weight :math:`w_n + \sum_j w_j h_j^2` in the sum of weighted errors. A quantity of weight
:math:`\alpha` that a record moves by m and that has the share s of the budget has an error in proportion to
:math:`\alpha m^2 s^{-k}`, and the best shares give :math:`(\sum_i (\alpha_i m_i^2)^p)^{1/p}` with :math:`p =
1/(1 + k)`: k = 1 for shares of a rho, 2 for those of an epsilon.

**Privacy**: a function of bounds and weights, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from pandas_dptree.privacy.quantity import Quantity

__all__ = ["best_middles"]

_EQUAL = 1e-9
"""Forms whose errors differ by less are equal: the sums are then measured from 0."""


def best_middles(
    quantities: Sequence[Quantity], weights: Sequence[float], count_weight: float | None, power: int
) -> list[Quantity]:
    r"""Return each quantity as it is measured: from 0, or from the middle of its bounds.

    `count_weight` is the weight of the count's own error, 0 if nobody asked for it, None if the count is
    public, and `power` the k above. Only the total :math:`\sum_j w_j h_j^2` of those that are measured from
    their middles costs something, and its p-th power is concave. So those of the best choice have the largest
    ratios of what they gain to what they add to it: all n + 1 choices of that kind are compared.
    """
    p = 1 / (1 + power)
    centred = [each.centred() for each in quantities]

    def errors(of: Sequence[Quantity]) -> list[float]:
        return [(weight * _move(each) ** 2) ** p for each, weight in zip(of, weights, strict=True)]

    gains = [plain - own for plain, own in zip(errors(quantities), errors(centred), strict=True)]
    added = [weight * float(each.origin) ** 2 for each, weight in zip(centred, weights, strict=True)]
    order = [place for place in range(len(gains)) if gains[place] > 0 and added[place] > 0]
    order.sort(key=lambda place: gains[place] / added[place], reverse=True)
    saved = [0.0, *accumulate(gains[place] for place in order)]
    if count_weight is not None:
        totals = accumulate((added[place] for place in order), initial=count_weight)
        saved = [gain - (total**p - count_weight**p) for gain, total in zip(saved, totals, strict=True)]
    best = max(range(len(saved)), key=saved.__getitem__)
    chosen = order[:best] if saved[best] > _EQUAL * sum(errors(quantities)) else []
    return [centred[place] if place in chosen else quantity for place, quantity in enumerate(quantities)]


def _move(quantity: Quantity) -> float:
    """Return the most that a row can add or take away, in the scale of the column."""
    return float(max(abs(quantity.low), abs(quantity.high)) * quantity.unit)
