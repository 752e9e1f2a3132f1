"""Counts of distinct units on random trees, measured with their excess, and their dense least squares."""

import numpy as np

from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_estimation import ragged_tree


def parents(tree: Tree, level: int) -> np.ndarray:
    """The parent, on this level, of each node of the next."""
    return np.broadcast_to(
        tree.spread(level, np.arange(tree.level_sizes[level])), tree.level_sizes[level + 1]
    )


def distinct(tree: Tree, visits: np.ndarray) -> list[np.ndarray]:
    """Count the units in each node, from which unit is in which leaf: shape (units, n_leaves)."""
    levels = [visits.astype(bool)]
    for level in reversed(range(tree.depth)):
        above = np.zeros((tree.level_sizes[level], len(visits)), dtype=bool)
        np.logical_or.at(above, parents(tree, level), levels[-1].T)
        levels.append(above.T)
    return [each.sum(axis=0) for each in levels[::-1]]


def excess_of(tree: Tree, counts: list[np.ndarray]) -> list[np.ndarray]:
    return [tree.sum_children(level, counts[level + 1]) - counts[level] for level in range(tree.depth)]


def units_problem(rng, max_leaves=25, known_total=0.0):
    """Noisy counts of units and their excess, some of each not measured, some of the excess known to be 0.

    A level of counts may go without measurements where all excess from there on is measured.
    """
    tree = ragged_tree(rng, max_depth=4, max_leaves=max_leaves)
    visits = rng.random((rng.integers(1, 60), tree.n_leaves)) < rng.random(tree.n_leaves) * 0.5
    exact = distinct(tree, visits)
    values, noise, excess, excess_noise = [], [], [], []
    for truth in excess_of(tree, exact):
        variance = 9 * rng.uniform(0.1, 9, 1 if rng.random() < 0.3 else len(truth))
        if len(variance) > 1:
            variance[rng.random(len(truth)) < 0.1] = rng.choice([0.0, np.inf])
        if rng.random() < 0.3:
            variance = np.array([np.inf])
        excess.append(None if np.isinf(variance).all() else truth + 3 * rng.normal(size=len(truth)))
        excess_noise.append(variance)
    for level, truth in enumerate(exact):
        variance = 9 * rng.uniform(0.1, 9, 1 if rng.random() < 0.3 else len(truth))
        if np.isfinite(np.concatenate([np.zeros(1), *excess_noise[level:]])).all() and level < tree.depth:
            variance[rng.random(len(variance)) < rng.choice([0.0, 0.2, 1.0])] = np.inf
        if level == 0 and rng.random() < known_total:
            variance = np.zeros(1)
        noise.append(variance)
        error = np.sqrt(np.where(np.isfinite(variance), variance, 0.0)) * rng.normal(size=len(truth))
        values.append(None if np.isinf(variance).all() else truth + error)
    return tree, values, noise, excess, excess_noise, exact


def flat(tree: Tree, levels) -> np.ndarray:
    """Values of the counts of all nodes, or of these and of their excess, one after another."""
    sizes = [*tree.level_sizes, *tree.level_sizes[:-1]]
    return np.concatenate(
        [np.broadcast_to(0.0 if each is None else each, n) for each, n in zip(levels, sizes, strict=False)]
    )


def dense_weights(tree: Tree, noise, excess_noise) -> np.ndarray:
    """The weight of each measurement (of counts, then of excess) in the least-squares estimate of each node.

    The minimum of the squares over the counts of all nodes, of which some are known and single children equal
    their parents, from the equations of Lagrange's multipliers.
    """
    n, first = tree.n_nodes, np.cumsum([0, *tree.level_sizes])
    rows = [np.eye(n)]
    for level, size in enumerate(tree.level_sizes[:-1]):
        sums = np.zeros((size, n))
        sums[np.arange(size), first[level] + np.arange(size)] = -1
        sums[parents(tree, level), first[level + 1] + np.arange(tree.level_sizes[level + 1])] = 1
        rows.append(sums)
    rows, variances = np.concatenate(rows), dense_variances(tree, noise, excess_noise)
    known, weighed = variances == 0, (variances > 0) & np.isfinite(variances)
    precision = np.divide(1, variances, out=np.zeros(len(rows)), where=weighed)
    fixed = rows[known]
    system = np.block([[rows.T @ (precision[:, None] * rows), fixed.T], [fixed, np.zeros((len(fixed),) * 2)]])
    return np.linalg.solve(system, np.vstack([rows.T * precision, np.eye(len(rows))[known]]))[:n]


def dense_variances(tree: Tree, noise, excess_noise) -> np.ndarray:
    """The variances of all measurements, 0 where a single child leaves no excess."""
    alone = [
        np.broadcast_to(counts == 1, n)
        for counts, n in zip(tree.child_counts, tree.level_sizes[:-1], strict=True)
    ]
    return np.where(
        np.concatenate([np.zeros(tree.n_nodes, dtype=bool), *alone]),
        0.0,
        flat(tree, [*noise, *excess_noise]),
    )
