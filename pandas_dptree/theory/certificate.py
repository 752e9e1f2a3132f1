"""Proof that a non-negative estimate is optimal, from its multipliers alone.

Both estimates minimise a sum of squares over non-negative tables. Such a table is optimal if and only if each
family of children has a *price* at which no member would rather hold more, and no member above its lower
bound would rather hold less (the Karush-Kuhn-Tucker conditions). Prices follow from the table itself, so a
certificate needs nothing from the algorithm that made it.

Everything here is a function of noisy numbers and of the tree: post-processing, free of privacy cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.estimation.least_squares import (
    FloatArray,
    Measurements,
    Variances,
    check_measurements,
    subtree_estimates,
)
from pandas_dptree.estimation.nonnegative import Bounds, least_values
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["Certificate", "Fit", "Multipliers", "certify", "multipliers"]

Fit = Literal["totals", "joint"]

_TOLERANCE = 1e-12
"""Rounding leaves residuals of about 1e-15, even in a table of a million leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Multipliers:
    """The dual variables of an estimate: one array per level, from the root down."""

    gradients: tuple[FloatArray, ...]
    """Half the derivative of each node's own square, or the multiplier of a known value.

    It is (estimate - target) / variance. The targets of "joint" are the measurements, those of "totals" the
    estimates from the subtrees.
    """
    prices: tuple[FloatArray, ...]
    """For every level but the last, the price of each family: half the cost of one more person in it."""
    reduced_costs: tuple[FloatArray, ...]
    """Multipliers of the lower bounds: how much a member costs more than its family's price.

    For "joint" they are those of leaves, and of nodes bounded by more than their children together.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """How far a table is from optimal, relative to the size of the numbers it was computed from.

    Attributes
    ----------
    additivity : float
        Largest difference between a node and the sum of its children.
    bounds : float
        Most that a node falls below its least value, or a known node is off its value.
    dual : float
        Most that a member costs less than its family's price, in people (times the variance).
    slackness : float
        Most that a member above its bound costs more than its family's price, in people.
    gap : float
        Difference between the objective and its dual bound.
    """

    additivity: float
    bounds: float
    dual: float
    slackness: float
    gap: float

    @property
    def ok(self) -> bool:
        """Whether the table is optimal up to rounding: no residual is above 1e-12."""
        residuals = (self.additivity, self.bounds, self.dual, self.slackness, self.gap)
        return all(residual <= _TOLERANCE for residual in residuals)


def certify(
    tree: Tree,
    measurements: Measurements,
    variances: Variances,
    estimates: Sequence[FloatArray],
    *,
    fit: Fit = "totals",
    least: Bounds | None = None,
) -> Certificate:
    r"""Check that a table is the non-negative estimate that it is said to be.

    With gradients :math:`g`, prices :math:`\mu` and least values :math:`b`, a member of a family is optimal
    if its reduced cost :math:`m` is at least 0, and 0 unless :math:`x = b`. For "totals" that is
    :math:`m_c = g_c - \mu_{parent}` for every child; for "joint" :math:`m_c = g_c + \mu_c - \mu_{parent}`,
    where leaves have no :math:`\mu_c`. So a node that is bounded only by its children, whose :math:`m_c` is
    0, passes on the price less its own gradient. The root's own price is 0.

    Parameters
    ----------
    tree : Tree
    measurements : sequence of numpy.ndarray or None
        For each level, the noisy values of its nodes; None where the level was not measured.
    variances : Variances
        From `propagate`.
    estimates : sequence of numpy.ndarray, shape (level_sizes[l],)
        The table to be checked.
    fit : {"totals", "joint"}
        Whether it should be that of `nonnegative_totals` or of `nonnegative_joint`.
    least : sequence of numpy.ndarray, shape (level_sizes[l],) or (1,), optional
        For each level, the lower bounds of its nodes that the estimate used.

    Examples
    --------
    >>> from pandas_dptree.estimation.least_squares import propagate
    >>> from pandas_dptree.estimation.nonnegative import nonnegative_totals
    >>> tree, measurements = Tree.from_branching([3]), [np.array([9]), np.array([-4, 2, 8])]
    >>> variances = propagate(tree, [1.0, 1.0])
    >>> total, leaves = nonnegative_totals(tree, measurements, variances)
    >>> certify(tree, measurements, variances, [total, leaves]).ok
    True
    >>> certify(tree, measurements, variances, [total, leaves + [0.001, 0, -0.001]]).ok
    False
    """
    multiplier = multipliers(tree, measurements, variances, estimates, fit=fit, least=least)
    targets, spreads = _problem(tree, measurements, variances, fit)
    lowest = least_values(tree, measurements, variances, least=least)
    people = float(sum(np.abs(levels[-1]).sum() + np.abs(levels[0]).sum() for levels in (estimates, targets)))
    sharpest = max(float(_inverse(spread).max()) for spread in spreads)
    additivity = bounds = infeasible = slack = primal = dual = size = 0.0
    for level, (x, y, v, b) in enumerate(zip(estimates, targets, spreads, lowest, strict=True)):
        g, m = multiplier.gradients[level], multiplier.reduced_costs[level]
        if level < tree.depth:
            additivity = max(additivity, _largest(x - tree.sum_children(level, estimates[level + 1])))
        known = variances.noise[level] == 0
        bounds = max(bounds, _largest(np.where(known, x - b, np.minimum(x - b, 0.0))))
        # With a reduced cost m, a member is Vm people off, V being the variance from its subtree. Rounding
        # errors of prices are multiplied by the sharpest precision.
        variance = variances.subtree[level]
        off, rounding = variance * m, 1 + variance * sharpest
        infeasible = max(infeasible, _largest(np.minimum(off, 0.0) / rounding))
        slack = max(slack, _largest(np.clip(np.minimum(x - b, off), 0.0, None) / rounding))
        squares = float((g * (x - y)).sum())
        primal += squares / 2
        dual += float((m * b).sum() - (g * y).sum()) - squares / 2
        if fit == "totals" and level < tree.depth:
            dual += float((multiplier.prices[level] * x).sum())
        size += float(((np.abs(g) + _inverse(v) * (np.abs(x) + np.abs(y))) * (np.abs(x) + np.abs(y))).sum())
    return Certificate(
        additivity=_relative(additivity, people),
        bounds=_relative(bounds, people),
        dual=_relative(infeasible, people),
        slackness=_relative(slack, people),
        gap=_relative(abs(primal - dual), size),
    )


def multipliers(
    tree: Tree,
    measurements: Measurements,
    variances: Variances,
    estimates: Sequence[FloatArray],
    *,
    fit: Fit = "totals",
    least: Bounds | None = None,
) -> Multipliers:
    """Compute the dual variables of a table: those that prove it optimal, if it is.

    Arguments and errors are those of `certify`.
    """
    check_measurements(tree, measurements, variances)
    shapes = [np.shape(level) for level in estimates]
    if shapes != [(n,) for n in tree.level_sizes] or not all(np.isfinite(level).all() for level in estimates):
        raise ArgumentError(
            "estimates",
            f"must hold {tree.level_sizes} finite numbers, level by level.",
            hint="pass the list of arrays that nonnegative_totals or nonnegative_joint returns.",
        )
    targets, spreads = _problem(tree, measurements, variances, fit)
    gradients = [_inverse(v) * (x - y) for x, y, v in zip(estimates, targets, spreads, strict=True)]
    if fit == "totals":
        return _family_multipliers(tree, spreads, gradients)
    return _joint_multipliers(
        tree, spreads, gradients, least_values(tree, measurements, variances, least=least)
    )


def _family_multipliers(tree: Tree, spreads: list[FloatArray], gradients: list[FloatArray]) -> Multipliers:
    """Set the price of each family to the cost of its cheapest member; a known member costs exactly that."""
    prices, costs = [], [gradients[0]]
    for level in range(tree.depth):
        free = spreads[level + 1] > 0
        cheapest = _least_of_children(tree, level, np.where(free, gradients[level + 1], np.inf))
        prices.append(np.where(np.isfinite(cheapest), cheapest, 0.0))
        price = np.broadcast_to(tree.spread(level, prices[level]), tree.level_sizes[level + 1])
        gradients[level + 1] = np.where(free, gradients[level + 1], price)
        costs.append(gradients[level + 1] - price)
    return Multipliers(gradients=tuple(gradients), prices=tuple(prices), reduced_costs=tuple(costs))


def _joint_multipliers(
    tree: Tree, spreads: list[FloatArray], gradients: list[FloatArray], lowest: list[FloatArray]
) -> Multipliers:
    """Pass the prices down, from 0 at the root; known and bounded nodes set that of their cheapest leaf."""
    cheapest = [np.where(spreads[-1] > 0, gradients[-1], np.inf)]  # path down from a node, itself included
    prices = []
    for level in reversed(range(tree.depth)):
        prices.append(_least_of_children(tree, level, cheapest[-1]))
        cheapest.append(np.where(spreads[level] > 0, gradients[level] + prices[-1], np.inf))
    prices.reverse()
    price, costs = np.zeros(1), []
    for level in range(tree.depth):
        own_price = np.where(np.isfinite(prices[level]), prices[level], 0.0)
        known, bounded = spreads[level] == 0, lowest[level] > tree.sum_children(level, lowest[level + 1])
        prices[level] = np.where(known | bounded, own_price, price - gradients[level])
        gradients[level] = np.where(known, price - own_price, gradients[level])
        costs.append(np.where(bounded & ~known, gradients[level] + own_price - price, 0.0))
        price = np.broadcast_to(tree.spread(level, prices[level]), tree.level_sizes[level + 1])
    gradients[-1] = np.where(spreads[-1] == 0, price, gradients[-1])
    costs.append(gradients[-1] - price)
    return Multipliers(gradients=tuple(gradients), prices=tuple(prices), reduced_costs=tuple(costs))


def _problem(
    tree: Tree, measurements: Measurements, variances: Variances, fit: Fit
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return targets and variances of the squares that a fit minimises; 0 and inf where there is none."""
    if fit == "totals":
        return subtree_estimates(tree, measurements, variances)[0], list(variances.subtree)
    if fit != "joint":
        raise ArgumentError(
            "fit", f"must be 'totals' or 'joint', not {quote(fit)}.", hint='for example fit="totals".'
        )
    targets = [np.zeros(1) if y is None else np.asarray(y, dtype=np.float64) for y in measurements]
    return targets, list(variances.noise)


def _least_of_children(tree: Tree, level: int, values: FloatArray) -> FloatArray:
    """Return the least of the values of each node's children."""
    counts = np.broadcast_to(tree.child_counts[level], tree.level_sizes[level])
    return np.asarray(np.minimum.reduceat(values, np.cumsum(counts) - counts))


def _inverse(variances: FloatArray) -> FloatArray:
    """Return precisions; 0 for known nodes, which have no square."""
    return np.divide(1.0, variances, out=np.zeros(variances.shape), where=variances > 0)


def _largest(residuals: FloatArray) -> float:
    return float(np.abs(residuals).max())


def _relative(residual: float, size: float) -> float:
    return residual / size if size > 0 else residual
