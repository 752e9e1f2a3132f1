"""Random trees and noisy counts on them, for tests of estimates."""

import math

import numpy as np

from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import NOISES, Laplace

CONFIDENCES = [0.8, 0.9, 0.95, 0.99, 0.999]

ALL_NOISES = list(NOISES.values())

BRANCHINGS = {"even": [10, 12, 30], "square": [20, 20, 20], "deep": [4] * 6}

FITS = ["totals", "adaptive", "joint"]

SPARSE_TREES = [
    ("even", False, 1.0, False),
    ("even", False, 0.5, False),
    ("square", False, 0.2, False),
    ("square", False, 0.05, False),
    ("square", False, 0.005, False),
    ("deep", False, 0.05, True),
    ("even", True, 1.0, False),
    ("square", True, 0.05, True),
    ("deep", True, 0.2, False),
    ("deep", True, 0.05, False),
]


def ragged_tree(rng, max_depth=5, max_leaves=40):
    counts, size = [], 1
    for _ in range(rng.integers(1, max_depth + 1)):
        level = rng.integers(1, 5, size)
        if level.sum() > max_leaves:
            level = np.ones(size, dtype=int)
        counts.append(level)
        size = int(level.sum())
    return Tree(tuple(counts))


def bounded_problem(rng, tree, known_share, bounded_share, scale=3.0):
    """Noisy counts with known nodes and lower bounds that hold in truth, some of them just so."""
    exact = tree.roll_up(rng.poisson(scale, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.4))
    values, noise, least = [], [], []
    for level, truth in enumerate(exact):
        n = len(truth)
        least.append(np.floor(truth * rng.choice([0.5, 0.9, 1.0], n)) * (rng.random(n) < bounded_share))
        if level < tree.depth and rng.random() < 0.25:
            values.append(None)
            noise.append(np.array([np.inf]))
            continue
        known = rng.random(n) < known_share * rng.choice([0, 1, 3])
        variance = np.where(known, 0.0, scale**2 * rng.uniform(0.1, 9, n))
        if level < tree.depth and known_share:
            variance[~known & (rng.random(n) < 0.2)] = np.inf
        values.append(np.where(known, truth, truth + scale * rng.uniform(0.3, 3) * rng.normal(size=n)))
        noise.append(variance)
    return values, noise, least, exact


def words_from(rng):
    return lambda n: rng.integers(2**64, size=n, dtype=np.uint64)


def assert_bounded_table(tree, values, noise, least, estimates):
    """It adds up, no node is below its bound, known values stand as they are."""
    for level, (x, y, v, b) in enumerate(zip(estimates, values, noise, least, strict=True)):
        known = np.broadcast_to(v, len(x)) == 0
        assert (x >= b).all()
        assert not known.any() or (x[known] == y[known]).all()
        if level < tree.depth:
            np.testing.assert_allclose(
                tree.sum_children(level, estimates[level + 1]), x, rtol=1e-9, atol=1e-9
            )


def probabilities(noise, scale):
    """Whole numbers and their probabilities, as far as any matter."""
    reach = math.ceil(40 * scale) + 40
    k = np.arange(-reach, reach + 1)
    power = 1 if noise == Laplace() else 2
    mass = np.exp(-(np.abs(k / scale) ** power) / power)
    return k, mass / mass.sum()


def random_tree(rng, max_depth=6, max_leaves=50):
    counts, size = [], 1
    for _ in range(rng.integers(1, max_depth + 1)):
        level = rng.integers(1, 5, size) if rng.random() < 0.7 else np.full(size, rng.integers(1, 5))
        if level.sum() > max_leaves:
            level = np.ones(size, dtype=int)
        counts.append(level)
        size = int(level.sum())
    return Tree(tuple(counts))


def random_problem(rng, tree, known_share=0.0, scale=3.0):
    """Noisy counts of a sparse table: folded, mixed and infinite variances, some nodes known exactly."""
    leaves = rng.poisson(scale, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.4)
    exact, values, noise = tree.roll_up(leaves), [], []
    for level, truth in enumerate(exact):
        if level < tree.depth and rng.random() < 0.25:
            values.append(None)
            noise.append(np.array([np.inf]))
            continue
        variance = scale**2 * rng.uniform(0.1, 9, 1 if rng.random() < 0.3 else len(truth))
        measured = truth + np.sqrt(variance) * rng.normal(size=len(truth))
        if known_share:
            variance = np.broadcast_to(variance, len(truth)).copy()
            known = rng.random(len(truth)) < known_share
            variance[known], measured[known] = 0, truth[known]
            if level < tree.depth:
                variance[rng.random(len(truth)) < 0.2] = np.inf
        values.append(measured)
        noise.append(variance)
    return values, noise, exact


def assert_table(tree, values, noise, estimates):
    """Every level is non-negative and adds up, and known values stand as they are."""
    for level, (x, y, v) in enumerate(zip(estimates, values, noise, strict=True)):
        assert (x >= 0).all()
        if y is not None:
            known = np.broadcast_to(v, len(x)) == 0
            assert (x[known] == y[known]).all()
        if level < tree.depth:
            np.testing.assert_allclose(
                tree.sum_children(level, estimates[level + 1]), x, rtol=1e-9, atol=1e-9
            )


def large_problem(branching):
    rng = np.random.default_rng(0)
    tree = Tree.from_branching(branching)
    leaves = rng.geometric(0.05, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.05)
    values = [level + np.rint(rng.laplace(0, 4, level.shape)) for level in tree.roll_up(leaves)]
    return tree, values, propagate(tree, [32.0] * len(values))


def random_measurements(rng, tree, per_node):
    """Noisy values and variances of every level; levels above the leaves may be unmeasured."""
    values, noise = [], []
    for level, size in enumerate(tree.level_sizes):
        if level < tree.depth and rng.random() < 0.25:
            values.append(None)
            noise.append(np.array([np.inf]))
        else:
            values.append(rng.normal(0, 50, size).round())
            noise.append(rng.uniform(0.1, 9, size if per_node else 1))
    return values, noise


def sparse_leaves(rng, tree, occupied, clustered):
    """Counts of mean 20 in some of the leaves, which may crowd together in a few branches."""
    chance = np.full(1, occupied)
    for level in range(tree.depth):
        chance = np.broadcast_to(tree.spread(level, chance), tree.level_sizes[level + 1])
        chance = chance * (rng.gamma(0.3, 1 / 0.3, len(chance)) if clustered else 1)
    return rng.geometric(0.05, len(chance)) * (rng.random(len(chance)) < chance)
