"""Random trees, and expected errors by dense linear algebra."""

from fractions import Fraction

import numpy as np

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.planning.variance import level_variances
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_privacy import ONE_ROW
from tests.reference import membership

EPSILON, RHO = PrivacyLoss(epsilon=1.0), PrivacyLoss(rho=0.005)


def even_errors(tree, loss, noise):
    return np.sqrt(noise.variance(noise.noise_scales(loss, ONE_ROW, np.ones(tree.depth + 1))))


def workload(tree):
    return np.concatenate(membership(tree))


def flags_of(tree, *known_levels):
    return [np.array([level in known_levels]) for level in range(tree.depth + 1)]


def random_tree(rng, depth, widest=4):
    """Draw a ragged tree, a fifth of whose inner nodes are leaves that continue as chains."""
    counts, ends = [], np.array([depth])
    for level in range(depth):
        count = np.where(ends <= level, 1, rng.integers(1, widest + 1, len(ends)))
        counts.append(count)
        ends = np.repeat(ends, count)
        ends = np.where((ends == depth) & (rng.random(len(ends)) < 0.2), level + 1, ends)
    return Tree(tuple(counts), ends)


def dense_level_variances(tree, precisions):
    """Invert the normal equations over the leaves, and average over the listed nodes of each level."""
    matrices = membership(tree)
    normal = sum(p * matrix.T @ matrix for p, matrix in zip(precisions, matrices, strict=True))
    covariance = np.linalg.inv(normal)
    nodes = [np.einsum("ij,jk,ik->i", matrix, covariance, matrix) for matrix in matrices]
    shown = [tree.listed(level) for level in range(tree.depth + 1)]
    return np.array([v[s].mean() if s.any() else np.nan for v, s in zip(nodes, shown, strict=True)])


def listed_counts(tree):
    return np.array([np.count_nonzero(tree.listed(level)) for level in range(tree.depth + 1)])


def cost(variances, sizes, objective, weights=None):
    """What the objective makes of the levels' variances."""
    weights = (sizes > 0) * (1.0 if weights is None else weights)
    costs = np.where(weights > 0, weights * np.nan_to_num(variances), 0.0)
    if objective == "worst":
        return costs.max() / weights.sum()
    by_node = sizes if objective == "cells" else 1
    return (costs * by_node).sum() / (weights * by_node).sum()


def cost_of(tree, noise, loss, shares, objective, weights=None, sensitivity=ONE_ROW):
    noise_variances = noise.variance(noise.noise_scales(loss, sensitivity, shares))
    return cost(level_variances(tree, noise_variances), listed_counts(tree), objective, weights)


def unfolded(tree, levels):
    return [np.broadcast_to(part, size) for part, size in zip(levels, tree.level_sizes, strict=True)]


def path_sums(tree, levels):
    """Sum exact numbers along the path to each leaf."""
    sums = np.zeros(tree.n_leaves, dtype=object)
    for matrix, part in zip(membership(tree), levels, strict=True):
        above = matrix.argmax(axis=0)  # which node each leaf is below
        sums = sums + np.array([Fraction(share) for share in part.tolist()], dtype=object)[above]
    return sums
