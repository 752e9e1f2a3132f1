"""Counts with bounded relative error: their error hardly grows with the depth of the tree.

`pandas_dptree.mechanisms.multiplicative.rounds` has the algorithm. This module has the guarantees and the
releases: of trees whose nodes are all listed, and of implicit trees, of which few nodes are released.
Theorems and algorithms are those of Ghazi, Kamath, Kumar, Manurangsi and Wu, *On differentially private
counting on trees*, 2023.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.mechanisms.arguments import exact_values, noise_source, whole_number
from pandas_dptree.mechanisms.multiplicative.rounds import Lister, Nodes, decide_nodes
from pandas_dptree.mechanisms.multiplicative.thresholds import (
    LARGEST_TOTAL,
    Calibration,
    Thresholds,
    approximate_loss,
)
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = [
    "ClippedThresholds",
    "clipped_counts",
    "sparse_clipped_counts",
    "sparse_threshold_counts",
    "threshold_counts",
]

FloatArray = npt.NDArray[np.float64]
ReleasedNodes = list[tuple[npt.NDArray[Any], IntArray]]
"""For each level, the root's first, the names of some nodes and the estimates of their counts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClippedThresholds:
    r"""Counts with bounded relative error, within a window around the truth that bounds their mean error.

    Half of the loss is for the chain of thresholds, half for one noisy count of each node, which is never
    more than R, the radius of `window_noise`, from the truth. An estimate further than R from it is moved
    to R (Lemma 3.3). So it never gets further from the truth, and is never more than 2R from it. With

    .. math:: \mathrm{RMSE}_\alpha = \sqrt{\mathrm{E}\bigl[\max(|\tilde w - w| - \alpha w,\, 0)^2\bigr]}

    this gives a bound for each node,
    :math:`\mathrm{RMSE}_\alpha \le \min\bigl(\sqrt{(\alpha\tau)^2 + \eta\,(2R)^2},\; 2R\bigr)`; `alpha_rmse`
    has a smaller one for large counts. All of it is public, computed from the arguments alone. The default
    :math:`\eta` is :math:`d^{-2}`, as in the proof of Theorem 4.1 (1/4 for a single node, never below 1e-15).
    """

    alpha: float
    epsilon: float
    delta: float
    depth: int
    eta: float = None  # type: ignore[assignment]  # filled in below
    calibration: Calibration = "exact"
    thresholds: Thresholds = field(init=False, repr=False)
    window_noise: TruncatedLaplace = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Divide the loss."""
        depth = whole_number("depth", self.depth, at_least=1, hint="the root alone has depth 1.")
        loss = approximate_loss(PrivacyLoss(epsilon=self.epsilon, delta=self.delta))
        chain, nodes = loss.divide([1, 1])
        each = nodes.part(Fraction(1, depth))
        assert each.epsilon is not None
        thresholds = Thresholds(
            alpha=self.alpha,
            eta=max(max(depth, 2) ** -2, 1e-15) if self.eta is None else self.eta,
            depth=depth,
            calibration=self.calibration,
            **chain.to_dict(),
        )
        for name, value in {
            "alpha": thresholds.alpha, "epsilon": loss.epsilon, "delta": loss.delta, "depth": depth,
            "eta": thresholds.eta, "thresholds": thresholds,
            "window_noise": TruncatedLaplace(each.epsilon, each.delta),
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return what a release depends on as plain JSON."""
        return {**self.thresholds.to_dict(), "window_noise": self.window_noise.to_dict()}

    @property
    def rmse_bound(self) -> float:
        """The bound on every node's alpha-multiplicative RMSE, in counts; for totals of 2**40 at most."""
        return float(self.alpha_rmse(0))

    def alpha_rmse(self, counts: npt.ArrayLike) -> FloatArray:
        r"""Bound the alpha-multiplicative root mean squared error of nodes with (guessed) counts.

        With probability :math:`1 - \eta` or more, an estimate is within :math:`\alpha \max(w, \tau)` of the
        count w, and in any case within 2R. So for one node, for totals of 2**40 at most,

        .. math:: \mathrm{RMSE}_\alpha \le \min\Bigl(
                  \sqrt{\alpha^2 \max(\tau - w,\, 0)^2 + \eta\,\max(2R - \alpha w,\, 0)^2},\;
                  \max(2R - \alpha w,\, 0)\Bigr).
        """
        sizes = np.asarray(counts, dtype=np.float64)
        missing = self.alpha * np.maximum(self.thresholds.tau - sizes, 0)
        largest = np.maximum(2 * self.window_noise.radius - self.alpha * sizes, 0)
        return np.asarray(np.minimum(np.hypot(missing, math.sqrt(self.eta) * largest), largest))


def threshold_counts(
    tree: Tree,
    levels: Sequence[IntArray],
    thresholds: Thresholds,
    *,
    rng: np.random.Generator | None = None,
) -> tuple[IntArray, ...]:
    """Estimate the count of every node with bounded relative error (Algorithms 2 and 4).

    The counts are clipped to 0 … 2**40; each estimate is one of ``thresholds.estimates``.

    **Privacy**: (epsilon, delta)-DP with those of `thresholds`, if neighbouring data sets differ in one row
    added or removed, which moves one count of each level by one. For units of several rows, or rows that are
    replaced, state the `thresholds` with the loss that `group_loss` gives. The proof is that of
    `pandas_dptree.mechanisms.multiplicative.rounds.decide_nodes`.

    **Corrections** of Algorithm 2. It carries over only the subtrees below the lowest decided nodes; here all
    largest subtrees without a decided node are carried over, and the whole tree if it has none. The
    threshold's estimate is given to all nodes that reach it, and to none outside their tree of the forest:
    nodes decided before keep theirs.
    """
    counts = _checked_levels(tree, levels, thresholds.depth)
    estimates = tuple(np.full(len(level), thresholds.estimates[0]) for level in counts)
    released = sparse_threshold_counts(int(counts[0][0]), partial(_above, tree, counts), thresholds, rng=rng)
    for level, (nodes, found) in zip(estimates, released, strict=True):
        level[nodes] = found
    return estimates


def sparse_threshold_counts(
    total: int,
    nodes_above: Lister,
    thresholds: Thresholds,
    *,
    rng: np.random.Generator | None = None,
) -> ReleasedNodes:
    """Estimate the counts of the nodes that reach a threshold, in a tree that may be implicit.

    ``nodes_above(least)`` lists, level by level from the one below the root, the nodes that count more than
    `least`, with their ancestors. The result has for each level the names of the nodes that reached a
    threshold, and the estimates of their counts. The root, named 0, is always among them.

    **Privacy**: as in `threshold_counts`: the names and estimates have the same distribution as if all nodes
    of the tree, empty ones too, had been listed. The set of possible names must be public.
    `pandas_dptree.mechanisms.multiplicative.rounds.decide_nodes` has the proof.
    """
    levels, estimates = _decided_nodes(total, nodes_above, thresholds, rng)
    return [
        (nodes.names[estimate >= 0], estimate[estimate >= 0])
        for nodes, estimate in zip(levels, estimates, strict=True)
    ]


def clipped_counts(
    tree: Tree,
    levels: Sequence[IntArray],
    plan: ClippedThresholds,
    *,
    rng: np.random.Generator | None = None,
) -> tuple[IntArray, ...]:
    """Estimate every count with bounded relative error, within a window around the truth (Lemma 3.3).

    The estimates are never more than twice ``plan.window_noise.radius`` from the exact counts.

    **Privacy**: (epsilon, delta)-DP with those of `plan`, as in `threshold_counts`. A row moves one noisy
    count of each level by one; moving the estimates into the windows is post-processing. All nodes are given
    noise, those without records too, so the tree has to be a public one.
    """
    estimates = threshold_counts(tree, levels, plan.thresholds, rng=rng)
    return tuple(
        _into_window(estimate, exact, plan.window_noise, rng)
        for estimate, exact in zip(estimates, _checked_levels(tree, levels, plan.depth), strict=True)
    )


def sparse_clipped_counts(
    total: int,
    nodes_above: Lister,
    plan: ClippedThresholds,
    *,
    rng: np.random.Generator | None = None,
) -> ReleasedNodes:
    """Estimate as `sparse_threshold_counts` does, and keep the estimates within windows (Lemma 3.3).

    No estimate is more than twice ``plan.window_noise.radius`` from the exact count.

    **Privacy**: (epsilon, delta)-DP with those of `plan`, where neighbouring data sets differ in one row.
    *Proof.* Deciding the nodes spends half of the loss, as in `sparse_threshold_counts`. Given that, the root
    and the decided nodes of each level are a fixed set of nodes, each of which gets one noisy count. The row
    lies in one of them at most, and moves its count by one, which spends the level's part. That the set was
    chosen by the first answer is adaptive composition: the parts sum to the whole. Moving the estimates into
    the windows is post-processing. No other node is given noise or released.
    """
    released: ReleasedNodes = []
    for nodes, estimate in zip(*_decided_nodes(total, nodes_above, plan.thresholds, rng), strict=True):
        found = estimate >= 0
        near = _into_window(estimate[found], nodes.counts[found], plan.window_noise, rng)
        released.append((nodes.names[found], near))
    return released


def _decided_nodes(
    total: int, nodes_above: Lister, thresholds: Thresholds, rng: np.random.Generator | None
) -> tuple[list[Nodes], list[IntArray]]:
    """Decide which nodes reach a threshold, and give the root the lowest estimate if it does not."""
    levels, estimates = decide_nodes(min(max(total, 0), LARGEST_TOTAL), nodes_above, thresholds, rng)
    if len(levels) > thresholds.depth:
        raise _too_deep("nodes_above", len(levels), thresholds.depth)
    estimates[0] = np.maximum(estimates[0], thresholds.estimates[0])
    return levels, estimates


def _into_window(
    estimates: IntArray, exact: IntArray, noise: TruncatedLaplace, rng: np.random.Generator | None
) -> IntArray:
    """Give each node a noisy count, and move its estimate to within the radius of that."""
    noisy = exact + noise.sample(len(exact), noise_source(rng))
    return np.clip(estimates, noisy - noise.radius, noisy + noise.radius)


def _above(tree: Tree, counts: Sequence[IntArray], least: int) -> list[Nodes]:
    """List the nodes below the root that count more than a number, and their ancestors, by position."""
    listed = [counts[-1] > least]
    for level in reversed(range(tree.depth)):
        listed.insert(0, (counts[level] > least) | tree.max_children(level, listed[0]))
    listed[0][:] = True  # the root is there in any case
    levels: list[Nodes] = []
    for level in range(1, tree.depth + 1):
        nodes = np.flatnonzero(listed[level])
        above = tree.spread(level - 1, np.cumsum(listed[level - 1]) - 1)
        levels.append(Nodes(nodes, counts[level][nodes], np.broadcast_to(above, len(counts[level]))[nodes]))
    return levels


def _checked_levels(tree: Tree, levels: Sequence[IntArray], depth: int) -> list[IntArray]:
    """Clip the counts to 0 … 2**40; this never moves two counts further apart."""
    if tree.depth + 1 > depth:
        raise _too_deep("tree", tree.depth + 1, depth)
    counts = [np.clip(exact_values(level), 0, LARGEST_TOTAL) for level in levels]
    if [level.shape for level in counts] != [(size,) for size in tree.level_sizes]:
        raise ArgumentError(
            "levels", "must hold one count for each node of the tree.", hint="pass tree.roll_up(leaves)."
        )
    return counts


def _too_deep(argument: str, n_levels: int, depth: int) -> ArgumentError:
    return ArgumentError(
        argument,
        f"has {n_levels} levels, the root included, but the thresholds are for {depth}.",
        hint=f"pass thresholds with depth={n_levels}.",
    )
