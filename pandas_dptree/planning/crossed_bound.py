r"""Lower bounds on the mean error of additive Gaussian noise on crossed hierarchies, and the gap of a plan.

The notation is that of `gaussian_bound`: an error :math:`\mathrm{tr}(U P^{-1})` of a mechanism with
:math:`P_{ii} \le 1` is at least :math:`(\mathrm{tr}\,W^{1/2})^2 / \sum_i y_i` with
:math:`W = D^{1/2} U D^{1/2}`, D = diag(y).

*Weights that are a product.* Then U is a product of those of the axes, and with a product y so is W: the
product of the bounds of the axes is a bound, for the largest error too.

*Uniform axes.* Any weights have :math:`U = \sum_k \lambda_k E_k` (`crossed_star`). With y = 1 the bound is
:math:`(\sum_k m_k \sqrt{\lambda_k})^2 / N` for N leaf cells. As in `uniform_bound`, differences x that units
make, permuted at random by automorphisms of the axes, prove more generally

.. math:: \text{error} \ge \Bigl(\sum_k \sqrt{m_k \lambda_k D_k}\Bigr)^2,

where :math:`D_k` is the mean square of the part of x in space k: the mixed difference of
:math:`|x_\ell|^2 / s_\ell`.

*Other weights.* No mechanism has a smaller sum of errors than the sum of their smallest errors, so weights
are written as a sum of products. Slices of the margins by the levels of an axis are grouped where they have
the same weights up to a factor: a group is the product of the factors on that axis and of the slice, which is
divided in the same way. The best axis is taken. The largest error is at least that of any group.

**Privacy**: everything here is a function of the product and the objective, which are public.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np

from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.crossed_lattice import summed_above, summed_below
from pandas_dptree.planning.crossed_product import factors
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.gaussian_bound import gaussian_lower_bound
from pandas_dptree.planning.objective import Objective, cost_weights
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import Quantity
from pandas_dptree.privacy.sensitivity import Neighbors, TreeSensitivity

__all__ = ["crossed_gap", "crossed_lower_bound", "uniform_crossed_bound"]

_MOST_KINDS = 20_000  # of nodes of an axis: takes at most a second
_MOST_SLICED = 6  # axes that are tried in any order to group weights; of more, the first is taken
_MOST_STEPS = 300
_TOLERANCE = 1e-9
_ROUNDING = 1e-12
_SAME = 1e-12


def uniform_crossed_bound(
    product: ProductTree, weights: FloatArray, squares: FloatArray, *, worst: bool = False
) -> float:
    """Bound the error of additive Gaussian noise with a rho of 1/2 on uniform axes from below.

    The weights are those of `cost_weights`. `squares` are the squared differences of the margins that units
    make, shape (n_moves, K).
    """
    shape, n_axes = product.lattice_shape, len(product.axes)
    sizes = np.array(product.level_sizes, dtype=np.float64).reshape(shape)
    leaves = sizes.max() / sizes
    dimensions = _differences(sizes, n_axes)
    units = weights.reshape(shape) / sizes * leaves
    moved = [np.maximum(_differences(each.reshape(shape) / leaves, n_axes), 0.0) for each in squares]
    parts = np.full(len(moved), 1 / len(moved))
    levels = np.where(units > 0, 1.0, 0.0)
    levels = levels / levels.sum() if worst else levels
    best = 0.0
    for _ in range(_MOST_STEPS):
        mixed = sum(part * each for part, each in zip(parts, moved, strict=True))
        detail = summed_above(levels * units, n_axes)
        roots = np.sqrt(dimensions * detail * mixed)
        before, best = best, max(best, float(roots.sum()))
        if best <= before * (1 + _TOLERANCE) or (len(moved) == 1 and not worst):
            break
        by_move = np.divide(roots, mixed, out=np.zeros(shape), where=mixed > 0)
        parts = parts * np.array([float((each * by_move).sum()) for each in moved]) / roots.sum()
        if worst:
            by_detail = np.divide(roots, detail, out=np.zeros(shape), where=detail > 0)
            levels = levels * units * summed_below(by_detail, n_axes) / roots.sum()
            levels = levels / levels.sum()
    return best**2 * (1 - _ROUNDING)


def _differences(table: FloatArray, n_axes: int) -> FloatArray:
    """Subtract from each entry that of the level above, along each axis."""
    for axis in range(n_axes):
        table = np.diff(table, axis=axis, prepend=0.0)
    return table


def crossed_lower_bound(product: ProductTree, weights: FloatArray, *, worst: bool) -> float | None:
    """Bound the cost of any additive Gaussian mechanism on crossed hierarchies from below.

    It is in units of the variance of a count with the whole budget, if rows are added or removed. The weights
    are those of `cost_weights`. None if an axis has too many kinds of nodes.
    """
    return _bound(product.axes, weights.reshape(product.lattice_shape), worst=worst)


def _bound(axes: tuple[Tree, ...], weights: FloatArray, *, worst: bool) -> float | None:
    """Bound the cost for any weights: as for those of sum 1, or of maximum 1 for the worst one."""
    total = float(weights.max() if worst else weights.sum())
    if len(axes) == 1:
        own = _axis_bound(axes[0], tuple(weights.tolist()), worst)
        return None if own is None else own * total
    best = 0.0
    for place in range(len(axes) if len(axes) <= _MOST_SLICED else 1):
        others = axes[:place] + axes[place + 1 :]
        bounds = []
        for factor, slice_ in _groups(np.moveaxis(weights, place, 0)):
            along, across = _bound((axes[place],), factor, worst=worst), _bound(others, slice_, worst=worst)
            if along is None or across is None:
                return None
            bounds.append(along * across)
        best = max(best, max(bounds) if worst else sum(bounds))
        if len(bounds) == 1:  # a product in this axis: no other order is better
            break
    return best


def _groups(slices: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Group slices that are in proportion: their factors, shape (n_slices,), and the first of them."""
    groups: list[tuple[FloatArray, FloatArray]] = []
    for place, own in enumerate(slices):
        if not own.any():
            continue
        for factor, first in groups:
            ratio = float(own.sum() / first.sum())
            if np.abs(own - ratio * first).max() <= _SAME * own.max():
                factor[place] = ratio
                break
        else:
            groups.append((np.eye(len(slices))[place], own))
    return groups


@lru_cache(maxsize=64)
def _axis_bound(axis: Tree, weights: tuple[float, ...], worst: bool) -> float | None:
    """Bound the cost on one axis, for weights of its levels in any unit."""
    objective: Objective = "worst" if worst else "levels"
    return gaussian_lower_bound(
        axis, objective=objective, level_weights=np.array(weights), max_kinds=_MOST_KINDS
    )


class CrossedPlan(Protocol):
    """The parts of a plan for crossed hierarchies that are compared with the lower bound."""

    @property
    def tree(self) -> ProductTree: ...
    @property
    def loss(self) -> PrivacyLoss: ...
    @property
    def noise(self) -> AdditiveNoise: ...
    @property
    def neighbors(self) -> Neighbors: ...
    @property
    def max_contributions(self) -> int: ...
    @property
    def sensitivity(self) -> TreeSensitivity: ...
    @property
    def quantity(self) -> Quantity: ...
    @property
    def known(self) -> CrossedKnown: ...
    @property
    def objective(self) -> Objective: ...
    @property
    def level_weights(self) -> FloatArray: ...
    @property
    def unit_noise_scales(self) -> FloatArray: ...
    @property
    def expected_error(self) -> float: ...


def crossed_gap(plan: CrossedPlan) -> tuple[float | None, str]:
    """Compare a plan with the lower bound: return its gap, if known, and a sentence on it."""
    product, moves = plan.tree, plan.sensitivity
    if not plan.noise.euclidean:
        return None, f"Gap: unknown, as no tight lower bound is known for {plan.noise.name} noise."
    if any(exact.any() for exact in plan.known.exact):
        return None, "Gap: unknown, as no tight lower bound is known where counts are public."
    if plan.unit_noise_scales.min() < 1.5:
        return None, "Gap: unknown, as the lower bound is for continuous noise: scales of 1.5 and more."
    squares = np.array([[float(level.l2_squared) for level in pattern] for pattern in moves.patterns])
    alike = len(squares) == 1 and bool((squares == float(moves.patterns[0][0].l1) ** 2).all())
    uniform = all(axis.is_uniform for axis in product.axes)
    attained = alike or (plan.neighbors == "replace" and _replaced_as_a_whole(plan, squares))
    if not attained or not (alike or uniform):
        what = "rows are limited by cell" if not attained else "rows are replaced on a ragged axis"
        return None, f"Gap: unknown, as no tight lower bound is known where {what}."
    listed = [product.n_listed(level) for level in range(len(product.margins))]
    weights, worst = cost_weights(listed, plan.objective, plan.level_weights), plan.objective == "worst"
    unit = float(plan.quantity.unit) ** 2
    if uniform:
        bound: float | None = uniform_crossed_bound(product, weights, squares, worst=worst)
        tight = True
    else:
        found = crossed_lower_bound(product, weights, worst=worst)
        bound = None if found is None else found * float(squares[0, 0])
        tight = factors(product, weights) is not None
    if bound is None:
        return None, "Gap: unknown, as the lower bound would take too long for so many kinds of nodes."
    # The rho that the margins share: exact with a rho, otherwise proven for an even split.
    even = plan.noise.noise_scales(plan.loss, moves, np.ones(len(product.margins)))
    spent = max(plan.noise.spent(plan.loss, moves, each) for each in (plan.unit_noise_scales, even))
    gap = plan.expected_error**2 / unit * float(2 * spent) / bound
    at_most = "" if tight else "at most "
    return (
        gap,
        f"Gap: expected squared error is {at_most}{gap:.4f} times the least of any additive Gaussian noise.",
    )


def _replaced_as_a_whole(plan: CrossedPlan, squares: FloatArray) -> bool:
    """Whether units attain the patterns: all rows leave a cell, and all or none enter one far away."""
    sizes = np.array(plan.tree.level_sizes)
    rows = float(plan.max_contributions * max(abs(plan.quantity.low), abs(plan.quantity.high))) ** 2
    leave = np.full(len(sizes), rows)
    moved = np.where(sizes > 1, 2 * rows, 0.0)
    one_sign = plan.quantity.low >= 0 or plan.quantity.high <= 0
    return one_sign and all(any(np.array_equal(ends, own) for own in squares) for ends in (leave, moved))
