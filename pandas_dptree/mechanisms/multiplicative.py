"""Counts that are right up to a factor: additive noise no longer grows with the depth of the tree.

Thresholds are taken from the largest down. At each, the sparse vector technique finds the nodes that reach
it, in every tree of a forest at once; these are settled, and what hangs below them is the next forest.

References
----------
Ghazi, Kamath, Kumar, Manurangsi and Wu, *On differentially private counting on trees*, 2023.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.mechanisms.arguments import exact_values, noise_source, whole_number
from pandas_dptree.mechanisms.thresholds import (
    LARGEST_TOTAL,
    Calibration,
    Round,
    Thresholds,
    approximate_loss,
)
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["ClippedThresholds", "clipped_counts", "threshold_counts"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClippedThresholds:
    r"""Counts right up to a factor, kept within a window around the truth: a bound on their mean error.

    Half of the loss is for the chain of thresholds, half for one noisy count of each node, which is never
    more than R from the truth. An estimate further than R from it is moved to R (Lemma 3.3). So it never
    gets further from the truth, and is never more than 2R from it. With

    .. math:: \mathrm{RMSE}_\alpha = \sqrt{\mathrm{E}\bigl[\max(|\tilde w - w| - \alpha w,\, 0)^2\bigr]}

    this gives a bound for each node,
    :math:`\mathrm{RMSE}_\alpha \le \min\bigl(\sqrt{(\alpha\tau)^2 + \eta\,(2R)^2},\; 2R\bigr)`.

    Parameters
    ----------
    alpha, epsilon, delta, depth, calibration
        As in `Thresholds`, the loss being that of the whole.
    eta : float, optional
        By default :math:`d^{-2}`, as in the proof of Theorem 4.1 (1/4 for a single node).

    Attributes
    ----------
    thresholds : Thresholds
        The chain, at half of the loss.
    window_noise : TruncatedLaplace
        The noise of each node's own count; its `radius` is R.
    rmse_bound : float
        The bound, in counts; for totals of 2**40 at most.

    Raises
    ------
    ArgumentError
        As in `Thresholds`.

    Notes
    -----
    **Privacy**: public; computed from the arguments alone.

    Examples
    --------
    >>> plan = ClippedThresholds(alpha=0.5, epsilon=1.0, delta=1e-6, depth=4)
    >>> plan.rmse_bound <= 2 * plan.window_noise.radius
    True
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
        chain, *nodes = approximate_loss(PrivacyLoss(epsilon=self.epsilon, delta=self.delta)).divide(
            [depth] + [1] * depth
        )
        eta = max(depth, 2) ** -2 if self.eta is None else self.eta
        thresholds = Thresholds(
            alpha=self.alpha, eta=eta, depth=depth, calibration=self.calibration, **chain.to_dict()
        )
        object.__setattr__(self, "eta", eta)
        object.__setattr__(self, "thresholds", thresholds)
        assert nodes[0].epsilon is not None
        object.__setattr__(self, "window_noise", TruncatedLaplace(nodes[0].epsilon, nodes[0].delta))

    @property
    def rmse_bound(self) -> float:
        """The bound on the alpha-multiplicative root mean squared error of every node, in counts."""
        largest = 2.0 * self.window_noise.radius
        return min(math.hypot(self.alpha * self.thresholds.tau, math.sqrt(self.eta) * largest), largest)


def threshold_counts(
    tree: Tree,
    levels: Sequence[IntArray],
    thresholds: Thresholds,
    *,
    rng: np.random.Generator | None = None,
) -> tuple[IntArray, ...]:
    r"""Estimate the count of every node up to a factor (Algorithms 2 and 4).

    Parameters
    ----------
    tree : Tree
        The shape, of at most ``thresholds.depth`` levels, the root's included.
    levels : sequence of numpy.ndarray of int64, shapes (level_sizes[l],)
        The exact counts, as `Tree.roll_up` gives them. Those beyond 2**40 are taken for 2**40, those below 0
        for 0.
    thresholds : Thresholds
        What is promised, and how much may be spent on it.
    rng : numpy.random.Generator, optional
        For repeatable tests only. The noise comes from the operating system by default.

    Returns
    -------
    tuple of numpy.ndarray of int64, shapes (level_sizes[l],)
        The estimates: each is one of ``thresholds.estimates``.

    Raises
    ------
    ArgumentError
        If there is not one count per node, they are not of an integer type, or the tree is too deep.

    Notes
    -----
    **Privacy**: (epsilon, delta)-DP with those of `thresholds`, if neighbouring data sets differ in one row
    added or removed, which moves one count of each level by one. For units of several rows, or rows that
    are replaced, state the `thresholds` with the loss that `group_loss` gives.

    *Proof.* Let a row be added. The noisy total spends its own part. Given all answers before, the trees of
    a round are the same with the row and without, and it stands in one of them at most. There it moves each
    maximum that is asked about by one at most, which spends half of the round's epsilon; and in each of the
    c levels answered positively at most, it moves one count by one, which spends the c-th part of the other
    half and of delta. The parts sum to the whole at most, exactly.

    **Corrections** of Algorithm 2. It carries over only what hangs below the lowest settled nodes; here all
    largest subtrees without a settled node are carried over, and the whole tree if it has none. All nodes
    that reach the threshold, and none outside their tree of the forest, are given its estimate: nodes that
    were settled before keep theirs.

    Examples
    --------
    >>> tree = Tree.from_branching([2, 3])
    >>> levels = tree.roll_up(np.array([0, 500_000, 90_000, 0, 10, 2_000_000]))
    >>> chain = Thresholds(alpha=0.25, eta=0.05, epsilon=1.0, delta=1e-6, depth=3)
    >>> estimates = threshold_counts(tree, levels, chain, rng=np.random.default_rng(1))
    >>> bool(abs(estimates[0][0] - 2_590_010) <= 0.25 * 2_590_010)
    True
    """
    counts = _checked_levels(tree, levels, thresholds.depth)
    noise, source = thresholds.total_noise, noise_source(rng)
    total = int(counts[0][0]) + noise.radius + int(noise.sample(1, source)[0])
    everywhere = [np.ones(len(level), dtype=np.bool_) for level in counts]
    return _settled(tree, counts, everywhere, thresholds.rounds(total), int(thresholds.estimates[0]), rng)


def _settled(
    tree: Tree,
    counts: Sequence[IntArray],
    forest: Sequence[BoolArray],
    rounds: Sequence[Round],
    least: int,
    rng: np.random.Generator | None,
) -> tuple[IntArray, ...]:
    """Settle the nodes of a forest, threshold by threshold from the largest down (Algorithm 2).

    With a node, all below it are in the forest too.
    """
    unsettled = [inside.copy() for inside in forest]
    estimates = [np.full(len(level), least) for level in counts]
    for round_ in reversed(rounds):
        for level, nodes in enumerate(_reaching(tree, counts, unsettled, round_, rng)):
            estimates[level][nodes] = round_.estimate
            unsettled[level] &= ~nodes
    return tuple(estimates)


def _reaching(
    tree: Tree,
    counts: Sequence[IntArray],
    unsettled: Sequence[BoolArray],
    round_: Round,
    rng: np.random.Generator | None,
) -> list[BoolArray]:
    """Tell which nodes of a forest reach a threshold, the lowest first, and their ancestors (Algorithm 1)."""
    trees, n_trees = _numbered_trees(tree, unsettled)
    large = round_.questions(n_trees, rng)
    noise, source = round_.node_noise, noise_source(rng)
    cut = round_.cut(noise.radius)
    reached: list[BoolArray] = []
    for level in reversed(range(tree.depth + 1)):
        here = np.zeros(len(counts[level]), dtype=np.bool_)
        if reached:
            here |= tree.max_children(level, reached[-1])  # those of an earlier round may be among these
            here &= unsettled[level]
        asked = np.flatnonzero(unsettled[level] & ~here)
        reached.append(here)
        if not len(asked):
            continue
        # the nodes of one tree stand next to each other
        of_tree, exact = trees[level][asked], counts[level][asked]
        first = np.flatnonzero(np.diff(of_tree, prepend=-1))
        positive = large.ask(np.maximum.reduceat(exact, first), of_tree[first])
        nodes = np.flatnonzero(np.repeat(positive, np.diff(first, append=len(asked))))
        noisy = exact[nodes] + noise.sample(len(nodes), source)
        here[asked[nodes[noisy >= cut]]] = True
    return reached[::-1]


def _numbered_trees(tree: Tree, unsettled: Sequence[BoolArray]) -> tuple[list[IntArray], int]:
    """Number the trees of a forest: each unsettled node below a settled one is a root. Elsewhere -1."""
    numbers: list[IntArray] = []
    n_trees = 0
    for level, inside in enumerate(unsettled):
        above = np.broadcast_to(tree.spread(level - 1, numbers[-1]) if level else np.int64(-1), len(inside))
        roots = np.flatnonzero(inside & (above < 0))
        here = above.copy()
        here[roots] = np.arange(n_trees, n_trees + len(roots))
        n_trees += len(roots)
        numbers.append(here)
    return numbers, n_trees


def clipped_counts(
    tree: Tree,
    levels: Sequence[IntArray],
    plan: ClippedThresholds,
    *,
    rng: np.random.Generator | None = None,
) -> tuple[IntArray, ...]:
    """Estimate every count up to a factor, and keep it within a window around the truth (Lemma 3.3).

    Parameters
    ----------
    tree, levels, rng
        As in `threshold_counts`.
    plan : ClippedThresholds
        What is promised, and how much may be spent on it.

    Returns
    -------
    tuple of numpy.ndarray of int64, shapes (level_sizes[l],)
        The estimates, never more than twice ``plan.window_noise.radius`` from the exact counts.

    Raises
    ------
    ArgumentError
        As in `threshold_counts`.

    Notes
    -----
    **Privacy**: (epsilon, delta)-DP with those of `plan`, as in `threshold_counts`. A row moves one noisy
    count of each level by one; moving the estimates into the windows is post-processing. All nodes are given
    noise, those without records too, so the tree has to be a public one.

    Examples
    --------
    >>> tree = Tree.from_branching([2, 3])
    >>> levels = tree.roll_up(np.array([0, 500, 90, 0, 10, 2000]))
    >>> plan = ClippedThresholds(alpha=0.25, epsilon=1.0, delta=1e-6, depth=3)
    >>> [level.shape for level in clipped_counts(tree, levels, plan)]
    [(1,), (2,), (6,)]
    """
    source, radius = noise_source(rng), plan.window_noise.radius
    estimates = threshold_counts(tree, levels, plan.thresholds, rng=rng)
    noisy = [
        exact + plan.window_noise.sample(len(exact), source)
        for exact in _checked_levels(tree, levels, plan.depth)
    ]
    return tuple(
        np.clip(estimate, near - radius, near + radius)
        for estimate, near in zip(estimates, noisy, strict=True)
    )


def _checked_levels(tree: Tree, levels: Sequence[IntArray], depth: int) -> list[IntArray]:
    """Give the counts from 0 to 2**40; clipped counts are no further apart than the counts were."""
    if tree.depth + 1 > depth:
        raise ArgumentError(
            "tree",
            f"has {tree.depth + 1} levels, the root included, where {depth} are accounted for.",
            hint=f"state the thresholds with depth={tree.depth + 1}.",
        )
    counts = [np.clip(exact_values(level), 0, LARGEST_TOTAL) for level in levels]
    if [level.shape for level in counts] != [(size,) for size in tree.level_sizes]:
        raise ArgumentError(
            "levels", "must hold one count for each node of the tree.", hint="pass tree.roll_up(leaves)."
        )
    return counts
