r"""The errors of what one would release without crossed hierarchies, on the same margins, with the same loss.

*One concatenated hierarchy* nests the axes in their order: below each leaf of the first axis is a copy of the
second, and so on. Let the axes from d on be such a tree without a measurement of its root: with variance S of
the root, V(w) of a cell w of a margin, and c(w) of its covariance with the root. Below the leaves a of a tree
A, whose own measurements are averaged with what the copies say about the leaves, the part of a cell in what
its copy says beside the root has the variance :math:`V(w) - c(w)^2 / S`, independent of everything else, and
the rest is a share of the leaf of A. So a cell (u, w), a sum over the leaves below node u of A, has

.. math:: V(u, w) = n_u \Bigl(V(w) - \frac{c(w)^2}{S}\Bigr) + V_A(u) \frac{c(w)^2}{S^2}, \qquad
          c(u, w) = c_A(u) \frac{c(w)}{S}.

*Separate tables* share the budget equally, and each margin has only its own noise.

**Privacy**: a function of the product, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import accumulate

import numpy as np

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.alternating import Problem, VarianceFunction, promising_splits
from pandas_dptree.planning.crossed_product import axis_moments
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.planning.patterns import pattern_costs, relative_costs, undominated
from pandas_dptree.planning.variance import level_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import TreeSensitivity

__all__ = ["concatenated_variances", "separate_variances"]

_MOST_LEAVES = (
    10**6
)  # of the concatenated tree, if its best split is searched; else it is as for a uniform one
_SMALLEST_SHARE = 1e-3


def separate_variances(
    product: ProductTree, noise: AdditiveNoise, loss: PrivacyLoss, sensitivity: TreeSensitivity
) -> FloatArray:
    """Return the variance of a cell of each margin in a table of its own; inf if none is shown."""
    shown = np.array([product.n_listed(level) > 0 for level in range(len(product.margins))])
    each_alone = TreeSensitivity((sensitivity.part(shown).levels,))
    scales = noise.noise_scales(loss, each_alone, np.ones(np.count_nonzero(shown)))
    variances = np.full(len(shown), np.inf)
    variances[shown] = noise.variance(scales)
    return variances


def concatenated_variances(
    product: ProductTree, noise: AdditiveNoise, loss: PrivacyLoss, sensitivity: TreeSensitivity
) -> FloatArray:
    """Return the mean variance of the cells of each margin in the best hierarchy that nests the axes.

    The levels of that hierarchy matter equally.
    """
    path = [
        (*product.margins[-1][:place], level, *(0,) * (len(product.axes) - place - 1))
        for place, axis in enumerate(product.axes)
        for level in range(place > 0, axis.depth + 1)
    ]
    chosen = np.isin(np.arange(len(product.margins)), [product.level_of(margin) for margin in path])
    moves = sensitivity.part(chosen)
    variances = noise.variance(noise.noise_scales(loss, moves, _path_shares(product, noise, loss, moves)))
    ends = list(accumulate((axis.depth for axis in product.axes), initial=0))
    means: FloatArray = np.zeros(())
    squares: FloatArray = np.ones(())
    below = math.inf
    for place in reversed(range(len(product.axes))):
        own = variances[ends[place] : ends[place + 1] + 1].copy()
        if place:
            own[0] = math.inf
        own[-1] = 1 / (1 / own[-1] + 1 / below)
        tree = product.axes[place]
        of_axis, with_root = axis_moments(Orbits.of(tree), own)
        first = place == len(product.axes) - 1
        part = squares if first else squares / below**2
        beside = means if first else means - squares / below
        means = np.multiply.outer(_mean_leaves(tree), beside) + np.multiply.outer(of_axis, part)
        squares = np.multiply.outer(with_root, part)
        below = float(of_axis[0])
    return np.asarray(means).reshape(-1)


def _mean_leaves(axis: Tree) -> FloatArray:
    """Return the mean number of leaves below the nodes of each level that a table shows."""
    means = []
    for level in range(axis.depth + 1):
        flags = axis.listed(level)
        below = np.broadcast_to(axis.leaves_below(level), flags.shape)
        means.append(float(below[flags].mean()) if flags.any() else 0.0)
    return np.array(means)


def _path_shares(
    product: ProductTree, noise: AdditiveNoise, loss: PrivacyLoss, moves: TreeSensitivity
) -> FloatArray:
    """Return the best shares of the levels of the concatenated hierarchy."""
    if product.n_leaves <= _MOST_LEAVES:
        counts, copies = [], 1
        for axis in product.axes:
            counts += [np.asarray(Tree.tile(own, copies)) for own in axis.child_counts]
            copies *= axis.n_leaves
        return optimal_shares(Tree(tuple(counts)), noise, loss, moves)
    sizes, copies = [1], 1
    for axis in product.axes:
        sizes += [size * copies for size in axis.level_sizes[1:]]
        copies *= axis.n_leaves
    costs = pattern_costs(noise, loss, moves)
    costs = costs[undominated(costs)]
    last = np.arange(len(sizes)) == len(sizes) - 1
    problem = Problem(
        model=partial(level_variances_and_vjp, Orbits.from_sizes(sizes)),
        variance=VarianceFunction.calibrated(noise, loss, moves, np.ones(len(sizes))),
        weights=np.full((len(sizes), 1), 1 / len(sizes)),
        worst=False,
        floor=np.where(last, _SMALLEST_SHARE, 0.0)[:, None],
        patterns=relative_costs(costs) if len(costs) > 1 else None,
    )
    return promising_splits(problem, len(sizes) - 1, keep=1)[:, 0]
