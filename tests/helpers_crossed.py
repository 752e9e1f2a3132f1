"""Crossed hierarchies as matrices: least squares of margins by dense linear algebra."""

from functools import reduce

import numpy as np

from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_estimation import random_tree


def level_matrices(tree):
    """For each level, the matrix that sums leaves into its nodes."""
    return [
        np.array(level) for level in zip(*(tree.roll_up(unit) for unit in np.eye(tree.n_leaves)), strict=True)
    ]


def margin_matrices(product):
    """For each margin, the matrix that sums leaf cells into its cells."""
    axes = [[matrix.T for matrix in level_matrices(axis)] for axis in product.axes]
    return [
        reduce(np.kron, [levels[level] for levels, level in zip(axes, margin, strict=True)])
        for margin in product.margins
    ]


def dense_crossed(product, variances, measurements, known):
    """Estimates and covariances of the cells of every margin, None where a margin cannot be estimated.

    A table is a particular one that agrees with what is known plus a combination of all that change nothing
    of it; the coefficients follow from the measurements.
    """
    matrices = margin_matrices(product)
    exact = np.concatenate([np.broadcast_to(e, len(m)) for e, m in zip(known.exact, matrices, strict=True)])
    counts = np.concatenate([np.broadcast_to(c, len(m)) for c, m in zip(known.least, matrices, strict=True)])
    rows, counts = np.vstack(matrices)[exact], counts[exact].astype(float)
    particular, free = np.zeros(product.n_leaves), np.eye(product.n_leaves)
    if len(rows):
        particular = np.linalg.lstsq(rows, counts)[0]
        _, sizes, directions = np.linalg.svd(rows)
        free = directions[np.count_nonzero(sizes > 1e-9 * sizes[0]) :].T
    used = [level for level, v in enumerate(variances) if np.isfinite(v) and not known.levels[level]]
    weights = [variances[level] ** -0.5 for level in used]
    design = np.vstack(
        [
            np.zeros((1, product.n_leaves)),
            *(w * matrices[level] for w, level in zip(weights, used, strict=True)),
        ]
    )
    given = np.concatenate(
        [[0.0], *(w * measurements[level] for w, level in zip(weights, used, strict=True))]
    )
    seen = np.round(design @ free, 12)
    inverse = np.linalg.pinv(seen, rcond=1e-10)
    leaves = particular + free @ inverse @ (given - design @ particular)
    covariance = free @ inverse @ inverse.T @ free.T
    spanned = free @ inverse @ seen
    return [
        (matrix @ leaves, matrix @ covariance @ matrix.T)
        if np.allclose(matrix @ spanned, matrix @ free, atol=1e-7)
        else None
        for matrix in matrices
    ]


def random_axis(rng, *, ragged):
    """Make a small tree: ragged and with chains, or of equal families, also of one node a level."""
    if not ragged:
        return Tree.from_branching(rng.integers(1, 4, rng.integers(0, 3)).tolist())
    while (tree := random_tree(rng, max_depth=3, max_leaves=7)).is_uniform:
        pass
    return tree


def random_product(rng, n_ragged, n_uniform):
    """Make a small product of ragged and uniform trees, in any order."""
    while True:
        ragged = rng.permutation([True] * n_ragged + [False] * n_uniform).tolist()
        product = ProductTree(tuple(random_axis(rng, ragged=each) for each in ragged))
        if product.n_leaves <= 80:
            return product


def random_known(rng, product, *, zeros, totals):
    """Draw leaf cells, and state structural zeros of the axes and counts of the nodes of one of them."""
    table = rng.poisson(5, product.leaf_shape)
    empty = [zeros * rng.random(axis.n_leaves) < 0.2 * zeros for axis in product.axes]
    empty = [flags & ~flags.all() for flags in empty]
    for place, flags in enumerate(empty):
        np.moveaxis(table, place, 0)[flags] = 0
    total_axis, axes = rng.integers(len(product.axes)) if totals else -1, []
    for place, (axis, flags) in enumerate(zip(product.axes, empty, strict=True)):
        others = tuple(each for each in range(table.ndim) if each != place)
        counts = axis.roll_up(table.sum(axis=others))
        share = rng.choice([0.4, 1.0], len(counts)) if place == total_axis else np.zeros(len(counts))
        share[-1] *= rng.random() < 0.3
        exact = [rng.random(len(level)) < each for level, each in zip(counts, share, strict=True)]
        exact[-1] |= flags
        least = [np.where(here, level, 0) for here, level in zip(exact, counts, strict=True)]
        axes.append(Known.from_levels(axis, exact, least))
    return CrossedKnown(product, tuple(axes)), table.reshape(-1)


def noisy_margins(rng, product, table, variances, known):
    """Noisy counts of the margins that are measured, as they are where they are known."""
    noise = [rng.normal(size=size) for size in product.level_sizes]
    return [
        np.where(exact, counts, np.rint(counts + each * v**0.5)).astype(np.int64) if np.isfinite(v) else None
        for v, counts, exact, each in zip(variances, product.roll_up(table), known.exact, noise, strict=True)
    ]


def product_variances(rng, product, *, missing=0.3):
    """Draw variances that are a product, the leaves of each axis measured."""
    factors = []
    for axis in product.axes:
        own = rng.uniform(0.5, 4, axis.depth + 1)
        own[:-1][rng.random(axis.depth) < missing] = np.inf
        factors.append(own)
    return reduce(np.multiply.outer, factors).reshape(-1)


def star_variances(rng, product, ragged):
    """Draw any variances of margins above the top on one ragged axis at most."""
    return np.array(
        [
            rng.uniform(0.5, 4)
            if sum(margin[place] > 0 for place in ragged) <= 1 and rng.random() < 0.6
            else np.inf
            for margin in product.margins
        ]
    )
