"""Slow, obvious versions of what the package does fast."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pandas as pd
import scipy.linalg
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


def project_family(
    estimates: np.ndarray, variances: np.ndarray, total: float, least: np.ndarray | float = 0.0
) -> np.ndarray:
    """Find the values closest to the estimates that sum to the total, by a root search for the multiplier.

    None falls below its least value, and members without variance keep theirs.
    """
    projected = np.broadcast_to(least, estimates.shape).astype(float)
    free, spare = variances > 0, total - projected.sum()
    if spare <= 0 or not free.any():
        return projected
    z, v = (estimates - projected)[free], variances[free]
    low = ((z - spare) / v).min() - 1
    high = (z / v).max()
    theta = scipy.optimize.brentq(
        lambda t: np.maximum(z - t * v, 0).sum() - spare, low, high, xtol=1e-15, rtol=1e-15
    )
    projected[free] += np.maximum(z - theta * v, 0)
    return projected


def fit_unit_family(
    estimates: np.ndarray,
    variances: np.ndarray,
    excess: float,
    excess_variance: float,
    total: float,
    cap: int,
) -> np.ndarray:
    """Fit the distinct units of siblings to those of their parent, by a root search for the multiplier.

    Each is at most the parent's, and their excess over it at most `cap` times as much: infinite variance
    leaves it free, none says that there is none.
    """

    def fitted(theta: float) -> np.ndarray:
        return np.clip(estimates + theta * variances, 0, total)

    def beyond(theta: float) -> float:
        """The sum of the children beyond what the parent and the excess allow; it grows with theta."""
        most = cap * total if excess_variance else 0.0
        if math.isinf(excess_variance):
            above = fitted(theta).sum() - total
            return above - np.clip(fitted(0).sum() - total, 0, most)
        return fitted(theta).sum() - total - np.clip(excess - theta * excess_variance, 0, most)

    reach = (np.abs(estimates).max() + abs(excess) + (cap + 1) * total + 1) / min(
        variances.min(), excess_variance or math.inf
    )
    if beyond(0) == 0:
        return fitted(0)
    return fitted(scipy.optimize.brentq(beyond, -reach, reach, xtol=1e-300, rtol=1e-15))


def nonnegative_least_squares(
    tree: Tree, measurements: Sequence[np.ndarray | None], noise: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Solve the joint problem densely over the leaves, with known nodes as heavy weights.

    Where some are known, the solver's answer only tells which leaves are positive; the equations of
    these are then solved with the known values as exact constraints.
    """
    matrices = membership(tree)
    measured = [
        (matrix, values, np.broadcast_to(variance, len(matrix)))
        for matrix, values, variance in zip(matrices, measurements, noise, strict=True)
        if values is not None
    ]
    rows, targets, variances = (np.concatenate(parts) for parts in zip(*measured, strict=True))
    known = variances == 0
    with np.errstate(divide="ignore"):
        weights = np.sqrt(1 / variances)
    weights[known] = 1e4 * weights[~known].max(initial=1.0)
    leaves, _ = scipy.optimize.nnls(weights[:, None] * rows, weights * targets)
    if known.any():
        positive = leaves > 1e-6
        fixed, free = rows[known][:, positive], (weights[:, None] * rows)[~known][:, positive]
        zero = np.zeros((len(fixed), len(fixed)))
        system = np.block([[free.T @ free, fixed.T], [fixed, zero]])
        right = np.concatenate([free.T @ (weights * targets)[~known], targets[known]])
        leaves = np.zeros(len(leaves))
        leaves[positive] = np.linalg.lstsq(system, right, rcond=None)[0][: positive.sum()]
    return [matrix @ leaves for matrix in matrices]


def count_leaves(frame: pd.DataFrame, by: Sequence[str], leaves: Sequence[tuple]) -> np.ndarray:
    """Count the rows of each leaf, one row after another."""
    counts = dict.fromkeys(leaves, 0)
    for row in frame[list(by)].itertuples(index=False, name=None):
        path = tuple(None if pd.isna(key) else key for key in row)
        if path in counts:
            counts[path] += 1
    return np.array([counts[leaf] for leaf in leaves])


def bounded_least_squares(
    tree: Tree,
    measurements: Sequence[np.ndarray | None],
    noise: Sequence[np.ndarray],
    least: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Solve least squares over the leaves densely, with a lower bound on every node.

    Known nodes are taken out by a basis of what they leave free. In coordinates where the squares are a
    distance, the nearest point above the bounds is found by non-negative least squares on its multipliers
    (least distance programming: Lawson & Hanson, Solving Least Squares Problems, 1974, chapter 23).
    """
    matrices = membership(tree)
    nodes = np.concatenate(matrices)
    lowest = np.concatenate([np.broadcast_to(b, n) for b, n in zip(least, tree.level_sizes, strict=True)])
    variances = np.concatenate([np.broadcast_to(v, n) for v, n in zip(noise, tree.level_sizes, strict=True)])
    targets = np.concatenate(
        [np.zeros(n) if y is None else y for y, n in zip(measurements, tree.level_sizes, strict=True)]
    )
    known, weighed = variances == 0, (variances > 0) & np.isfinite(variances)
    start, basis = np.zeros(tree.n_leaves), np.eye(tree.n_leaves)
    if known.any():
        start = np.linalg.lstsq(nodes[known], targets[known], rcond=None)[0]
        basis = scipy.linalg.null_space(nodes[known])
    if basis.shape[1]:
        root = 1 / np.sqrt(variances[weighed])
        orthogonal, upper = np.linalg.qr(root[:, None] * (nodes[weighed] @ basis))
        centre = orthogonal.T @ (root * (targets - nodes @ start)[weighed])
        into = basis @ np.linalg.inv(upper)
        rows, short = nodes @ into, lowest - nodes @ (start + into @ centre)
        free = np.abs(nodes @ basis).max(axis=1) > 1e-9
        rows, short = rows[free], short[free]
        size = np.abs(short).max() or 1.0
        push = np.append(np.zeros(rows.shape[1]), 1.0)
        pressed = scipy.optimize.nnls(np.vstack([rows.T, short / size]), push)[0] > 1e-9
        step = np.linalg.lstsq(rows[pressed], short[pressed], rcond=None)[0] if pressed.any() else 0.0
        start = start + into @ (centre + step)
    return [matrix @ start for matrix in matrices]


def pmf(noise, scale, reach):
    """The probabilities of -reach, ..., reach, to 50 digits."""
    weights = [
        mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(scale) ** 2))
        if noise == "gaussian"
        else mpmath.exp(-abs(mpmath.mpf(x)) / mpmath.mpf(scale))
        for x in range(-reach, reach + 1)
    ]
    total = mpmath.fsum(weights)
    return [weight / total for weight in weights]


def exact_delta(noise, epsilon, moves):
    """Sum (P - e^epsilon Q)_+ over all outcomes; `moves` are pairs (scale, shift), one for each count."""
    with mpmath.workdps(50):
        pairs = []
        for scale, shift in moves:
            reach = math.ceil((13 if noise == "gaussian" else 80) * scale) + 2 * abs(shift)
            p = pmf(noise, scale, reach)
            inside = range(abs(shift), len(p) - abs(shift))
            pairs.append([(p[i], p[i - shift]) for i in inside])
        factor = mpmath.exp(epsilon)
        total = mpmath.mpf(0)
        for outcome in itertools.product(*pairs):
            gain = mpmath.fprod(p for p, _ in outcome) - factor * mpmath.fprod(q for _, q in outcome)
            total += max(gain, 0)
        return total


def listed_delta(noise, epsilon, moves):
    """The same in floating point and cut off, by listing the sums of the losses: for three counts."""
    losses, masses = np.zeros(1), np.ones(1)
    for scale, shift in moves:
        if noise == "gaussian":
            x = np.arange(-math.ceil(9 * scale), math.ceil(9 * scale) + 1)
            mass = np.exp(-((x / scale) ** 2) / 2)
            mass, loss = mass / mass.sum(), ((x - shift) ** 2 - x**2) / (2 * scale**2)
        else:
            x = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
            mass, loss = (
                np.exp(-np.abs(x) / scale) * math.tanh(0.5 / scale),
                (abs(x - shift) - abs(x)) / scale,
            )
        masses = np.multiply.outer(masses, mass).ravel()
        losses = np.add.outer(losses, loss).ravel()
    return float(masses @ -np.expm1(np.minimum(epsilon - losses, 0)))
