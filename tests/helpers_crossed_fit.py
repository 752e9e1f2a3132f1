"""Small crossed hierarchies, noisy margins of them, and their least-squares estimates, computed densely."""

from functools import reduce

import numpy as np

from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree

PADDED = Tree.from_paths([[0, 0], [0, 1], [1, -1], [2, 0]])
"""One path ends early, and goes on as a chain of single children."""

SHAPES = {
    "one axis": (Tree.from_branching([3, 2]),),
    "two": (Tree.from_branching([2]), Tree((np.array([2]), np.array([3, 1])))),
    "padded": (PADDED, Tree.from_branching([3])),
    "nothing to divide": (Tree(()), Tree.from_branching([2]), Tree(())),
    "levels of one node": (
        Tree.from_branching([1, 3]),
        Tree.from_branching([1]),
        Tree.from_branching([2, 1]),
    ),
    "three": (Tree((np.array([2]), np.array([1, 3]))), Tree.from_branching([2]), PADDED),
    "four": (Tree.from_branching([2]), Tree.from_branching([2]), PADDED, Tree.from_branching([3])),
}


def membership(product):
    """For each margin, the 0/1 matrix that sums leaf cells into its cells."""
    of_axes = []
    for axis in product.axes:
        rows = [np.eye(axis.n_leaves)]
        for level in reversed(range(axis.depth)):
            rows.append(axis.sum_children(level, rows[-1]) if axis.n_leaves > 1 else rows[-1])
        of_axes.append([np.asarray(each).reshape(-1, axis.n_leaves) for each in reversed(rows)])
    return [
        reduce(np.kron, [matrices[level] for matrices, level in zip(of_axes, margin, strict=True)])
        for margin in product.margins
    ]


def dense_estimates(product, noisy, variances, allowed=True):
    """Least squares from the margins of finite variance; None for those that it leaves undetermined."""
    matrices = [matrix * allowed for matrix in membership(product)]
    measured = [level for level, variance in enumerate(variances) if np.isfinite(variance)]
    scales = [np.sqrt(variances[level]) for level in measured]
    rows = np.concatenate([matrices[level] / scale for level, scale in zip(measured, scales, strict=True)])
    values = np.concatenate([noisy[level] / scale for level, scale in zip(measured, scales, strict=True)])
    leaves = np.linalg.lstsq(rows, values, rcond=None)[0]
    spanned = np.linalg.pinv(rows) @ rows
    return [
        matrix @ leaves if np.allclose(matrix @ spanned, matrix, atol=1e-8) else None for matrix in matrices
    ]


def noisy_margins(rng, product, leaves, variances, allowed=True):
    """Add noise to the margins of a table, and estimate all of them."""
    exact = product.roll_up(leaves)
    noisy = [
        margin + rng.normal(0, np.sqrt(variance) if np.isfinite(variance) else 0, len(margin))
        for margin, variance in zip(exact, variances, strict=True)
    ]
    return dense_estimates(product, noisy, variances, allowed)


def known_on(product, *, exact=None, empty=()):
    """Know the counts of one axis, where they are not nan, and that some leaves of axes are empty."""
    axes = []
    for place, axis in enumerate(product.axes):
        levels = [np.full(size, np.nan) for size in axis.level_sizes]
        if exact is not None and exact[0] == place:
            levels = [np.array(values, dtype=float) for values in exact[1]]
        for at, leaf in empty:
            if at == place:
                levels[-1][leaf] = 0
        fixed = [~np.isnan(values) for values in levels]
        least = [np.nan_to_num(values).astype(np.int64) for values in levels]
        axes.append(Known.from_levels(axis, fixed, least))
    return CrossedKnown(product, tuple(axes))
