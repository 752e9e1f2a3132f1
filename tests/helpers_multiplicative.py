"""Many runs at once of the mechanism for counts with bounded relative error."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.multiplicative import counts as multiplicative
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds, clipped_counts
from pandas_dptree.mechanisms.multiplicative.rounds import decide_rounds
from pandas_dptree.mechanisms.multiplicative.thresholds import LARGEST_TOTAL, Round, Thresholds
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.privacy.loss import PrivacyLoss


@functools.cache
def chain_of(alpha: float = 0.5, depth: int = 3, calibration: str = "exact", **more: float) -> Thresholds:
    given_ = {"alpha": alpha, "eta": 0.05, "epsilon": 1.0, "delta": 1e-6, "depth": depth, **more}
    return Thresholds(calibration=calibration, **given_)


def copies(tree: Tree, n: int) -> Tree:
    """Hang copies of a tree below a common root."""
    below = [
        np.tile(np.broadcast_to(counts, size), n)
        for counts, size in zip(tree.child_counts, tree.level_sizes, strict=False)
    ]
    return Tree((np.array([n]), *below))


def decide_forest(
    tree: Tree,
    levels: Sequence[np.ndarray],
    rounds: Sequence[Round],
    least: int,
    rng: np.random.Generator,
    *,
    above: int = -1,
) -> list[np.ndarray]:
    """Decide what hangs below the root of a tree; nodes that count no more than `above` are left out."""
    listed = multiplicative._above(tree, levels, above)
    estimates = [np.full(size, least) for size in tree.level_sizes]
    for level, nodes, found in zip(estimates[1:], listed, decide_rounds(listed, rounds, rng), strict=True):
        level[nodes.names] = np.maximum(found, least)
    return estimates


def decide_copies(
    tree: Tree,
    leaves: np.ndarray,
    n: int,
    rounds: Sequence[Round],
    least: int,
    rng: np.random.Generator,
    *,
    above: int = -1,
) -> list[np.ndarray]:
    """Decide n copies of a tree at once, without their common root: shape (n, size) for each level."""
    forest = copies(tree, n)
    estimates = decide_forest(forest, forest.roll_up(np.tile(leaves, n)), rounds, least, rng, above=above)
    return [level.reshape(n, -1) for level in estimates[1:]]


def silence(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = lambda *arguments: np.zeros(arguments[-2], dtype=np.int64)  # noqa: E731
    monkeypatch.setattr("pandas_dptree.mechanisms.multiplicative.sparse_vector.discrete_laplace", zeros)
    monkeypatch.setattr(TruncatedLaplace, "sample", zeros)


ETA = 0.2  # large enough to be seen in some hundred runs
Levels = list[np.ndarray]
Spending = Callable[[Thresholds, Sequence[Round]], Sequence[Round]]


@functools.cache
def lax_chain_of(alpha: float = 0.5, depth: int = 3, calibration: str = "exact", **more: float) -> Thresholds:
    given_ = {"alpha": alpha, "eta": ETA, "epsilon": 1.0, "delta": 1e-6, "depth": depth, **more}
    return Thresholds(calibration=calibration, **given_)


def as_claimed(chain: Thresholds, rounds: Sequence[Round]) -> Sequence[Round]:
    return rounds


def tripled(chain: Thresholds, rounds: Sequence[Round]) -> Sequence[Round]:
    """Give each threshold three times the epsilon that it may spend."""
    losses = [PrivacyLoss(epsilon=3 * each.loss.epsilon, delta=each.loss.delta) for each in rounds]
    return [
        each._replace(loss=loss, slack=each.slack // 3) for each, loss in zip(rounds, losses, strict=True)
    ]


def decided(
    chain: Thresholds,
    tree: Tree,
    leaves: np.ndarray,
    n: int,
    rounds: Sequence[Round],
    rng: np.random.Generator,
) -> Levels:
    """Decide n copies of a tree at once, without nodes that no round can decide, as in `decide_nodes`."""
    above = min((each.out_of_reach for each in rounds), default=LARGEST_TOTAL)
    return decide_copies(tree, leaves, n, rounds, int(chain.estimates[0]), rng, above=above)


def runs_of(
    chain: Thresholds,
    tree: Tree,
    leaves: np.ndarray,
    n: int,
    rng: np.random.Generator,
    spending: Spending = as_claimed,
) -> Levels:
    """Run `threshold_counts` n times at once: shape (n, size) for each level.

    A run draws the noise of its total; what it does then depends on its own total through the rounds alone,
    which are the same for totals between the same two bounds. Runs with the same rounds are trees of one
    forest here. Each tree of a forest has its own noisy thresholds, questions and noisy counts, and the
    common root is outside of the forest. So the runs are independent of each other, and each has the law of
    `threshold_counts`; their order is that in which their totals were drawn.
    """
    total, noise = int(leaves.sum()), chain.total_noise
    assert leaves.min() >= 0 and total <= LARGEST_TOTAL
    totals = total + noise.radius + noise.sample(n, byte_source(rng))
    needed = np.searchsorted(chain.bounds, totals)
    levels = [np.empty((n, size), dtype=np.int64) for size in tree.level_sizes]
    for each in np.unique(needed):
        runs = np.flatnonzero(needed == each)
        rounds = chain.rounds(int(totals[runs].min()))
        assert rounds == chain.rounds(int(totals[runs].max()))
        estimates = decided(chain, tree, leaves, len(runs), spending(chain, rounds), rng)
        for level, estimate in zip(levels, estimates, strict=True):
            level[runs] = estimate
    return levels


def clipped_runs_of(
    plan: ClippedThresholds,
    tree: Tree,
    leaves: np.ndarray,
    n: int,
    rng: np.random.Generator,
    window_noise: TruncatedLaplace | None = None,
) -> Levels:
    """Run `clipped_counts` n times at once: it moves each node separately, with its own noise."""
    estimates = runs_of(plan.thresholds, tree, leaves, n, rng)
    forest = copies(tree, n)
    stand_in = SimpleNamespace(
        depth=plan.depth + 1, thresholds=None, window_noise=window_noise or plan.window_noise
    )
    with pytest.MonkeyPatch.context() as patch:
        flat = (np.zeros(1, dtype=np.int64), *(level.reshape(-1) for level in estimates))
        patch.setattr(multiplicative, "threshold_counts", lambda *_, **__: flat)
        clipped = clipped_counts(forest, forest.roll_up(np.tile(leaves, n)), stand_in, rng=rng)
    return [level.reshape(n, -1) for level in clipped[1:]]


TREES = {
    "single node": Tree(()),
    "path": Tree.from_branching([1] * 9),
    "binary": Tree.from_branching([2] * 5),
    "star": Tree.from_branching([200]),
    "ternary": Tree.from_branching([3] * 3),
    "caterpillar": Tree.from_paths(
        [[0] * k + [1] + [-1] * (10 - k) for k in range(11)] + [[0] * 11]  # one leaf beside each inner node
    ),
    "ragged": Tree((np.array([3]), np.array([1, 4, 2]), np.array([2, 1, 3, 1, 1, 5, 1]))),
    "skewed": Tree.from_branching([50, 1, 2]),
    "wide": Tree.from_branching([30, 8]),
}


def hard_counts(chain: Thresholds, tree: Tree, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Give counts of leaves that are hard to tell apart, or extreme.

    "past": one leaf has the smallest count that has to be found, on all levels. "near": leaves are at the
    thresholds, and at the ends of what they tell apart. "beside": they are, beside a very large one, so that
    all thresholds share the loss.
    """
    n, past = tree.n_leaves, int(chain.bounds[0]) + 1
    total = int(chain.bounds[min(12, len(chain.bounds) - 1)])
    rounds = chain.rounds(total)
    hard = [chain.bounds, chain.bounds + 1]
    hard += [
        [r.threshold, r.threshold - 1, r.threshold - r.slack, r.cut(r.node_noise.radius)] for r in rounds
    ]
    values = np.unique(np.concatenate(hard))
    values = values[(values >= 0) & (values <= total)]

    def leaves(first: int, *, last: int | None = None, of: np.ndarray, share: float) -> np.ndarray:
        counts = np.where(rng.random(n) < share, rng.choice(of, n), 0)
        counts[0] = first
        return counts if last is None else np.append(counts[:-1], last)

    return {
        "zeros": leaves(0, of=values, share=0),
        "past": leaves(past, of=values, share=0),
        "near": leaves(int(chain.bounds[8]) + 1, of=values, share=0.6),
        "beside": leaves(past, last=2**39, of=values[values <= chain.bounds[3]], share=0.6),
        "large": rng.multinomial(LARGEST_TOTAL, rng.dirichlet(np.full(n, 0.3))),
    }


ALPHAS = st.floats(0.03, 0.95)
EPSILONS = st.floats(0.01, 20)
DELTAS = st.floats(1e-12, 0.1)
ETAS = st.floats(1e-6, 0.49)
DEPTHS = st.integers(1, 70)
TOTALS = st.one_of(st.integers(-(2**61), 2**62), st.sampled_from([0, 1, LARGEST_TOTAL, 2**61]))


@st.composite
def chains(draw: st.DrawFn, calibration: str, *, tau: bool = False) -> Thresholds:
    return Thresholds(
        alpha=draw(ALPHAS),
        eta=draw(ETAS),
        epsilon=draw(EPSILONS),
        delta=draw(DELTAS),
        depth=draw(DEPTHS),
        tau=draw(st.one_of(st.none(), st.floats(1, 1e300))) if tau else None,
        calibration=calibration,
    )


def proof_numbers(alpha: float) -> tuple[float, float]:
    beta = alpha / (6 + 5 * alpha)
    return beta, (1 + alpha) * (1 - beta) / (1 + beta)


def inverse(scale: float) -> Fraction:
    """Return 1 / scale, rounded up: many exact ones would add up to a fraction of very many digits."""
    unit = Fraction(1, 2**300)
    return unit * math.ceil(1 / (unit * Fraction(scale)))


def spent(chain: Thresholds, total: int) -> tuple[Fraction, Fraction]:
    """Add up what the noises that are really drawn reveal."""
    epsilon = inverse(chain.total_noise.noise_scale)
    delta = Fraction(chain.total_noise.delta_spent)
    for round_ in chain.rounds(total):
        questions, nodes = round_.questions(1), round_.node_noise
        each = inverse(questions.threshold_scale) + 2 * inverse(questions.query_scale)
        epsilon += round_.cutoff * (each + inverse(nodes.noise_scale))
        delta += round_.cutoff * Fraction(nodes.delta_spent)
    return epsilon, delta
