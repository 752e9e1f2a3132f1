"""Slow, obvious versions of what the package does fast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy.optimize

from pandas_dptree.hierarchy.tree import Tree


def membership(tree: Tree) -> list[np.ndarray]:
    """For each level, the 0/1 matrix that says which leaves stand below which node."""
    matrices = [np.eye(tree.n_leaves)]
    for level in reversed(range(tree.depth)):
        counts = np.broadcast_to(tree.child_counts[level], tree.level_sizes[level])
        parents = np.repeat(np.arange(len(counts)), counts)
        above = np.zeros((len(counts), tree.n_leaves))
        np.add.at(above, parents, matrices[-1])
        matrices.append(above)
    return matrices[::-1]


def dense_least_squares(
    tree: Tree, measurements: Sequence[np.ndarray | None], noise: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Solve the normal equations of generalised least squares: estimates and their variances."""
    matrices = membership(tree)
    normal, right = np.zeros((tree.n_leaves, tree.n_leaves)), np.zeros(tree.n_leaves)
    for matrix, measured, variance in zip(matrices, measurements, noise, strict=True):
        if measured is None:
            continue
        weight = 1 / np.broadcast_to(variance, len(matrix))
        weight = np.where(np.isfinite(weight), weight, 0.0)
        normal += matrix.T @ (weight[:, None] * matrix)
        right += matrix.T @ (weight * measured)
    covariance = np.linalg.inv(normal)
    leaves = covariance @ right
    estimates = [matrix @ leaves for matrix in matrices]
    return estimates, [np.einsum("ij,jk,ik->i", matrix, covariance, matrix) for matrix in matrices]


def project_family(estimates: np.ndarray, variances: np.ndarray, total: float) -> np.ndarray:
    """Find the non-negative values closest to the estimates that sum to the total, by a root search."""
    if total <= 0:
        return np.zeros_like(estimates)
    low = ((estimates - total) / variances).min() - 1
    high = (estimates / variances).max()
    theta = scipy.optimize.brentq(
        lambda t: np.maximum(estimates - t * variances, 0).sum() - total, low, high, xtol=1e-15, rtol=1e-15
    )
    return np.maximum(estimates - theta * variances, 0)


def count_leaves(frame: pd.DataFrame, by: Sequence[str], leaves: Sequence[tuple]) -> np.ndarray:
    """Count the rows of each leaf, one row after another."""
    counts = dict.fromkeys(leaves, 0)
    for row in frame[list(by)].itertuples(index=False, name=None):
        path = tuple(None if pd.isna(key) else key for key in row)
        if path in counts:
            counts[path] += 1
    return np.array([counts[leaf] for leaf in leaves])
