"""Counts with bounded relative error, in many runs: they keep their promise, and reveal what they may."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms import multiplicative, thresholds
from pandas_dptree.mechanisms.guarantees import Multiplicative
from pandas_dptree.mechanisms.multiplicative import ClippedThresholds, clipped_counts, threshold_counts
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.mechanisms.sparse_vector import SparseVector
from pandas_dptree.mechanisms.thresholds import LARGEST_TOTAL, Round, Thresholds
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.metrics import alpha_rmse
from pandas_dptree.plans.multiplicative import MultiplicativePlan
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_statistics import audited_epsilon, same_law
from tests.mechanisms.test_multiplicative import copies, settle_copies, settle_forest
from tests.mechanisms.test_thresholds import TOTALS, chains, spent

RUNS = 100_000
ETA = 0.2  # large enough to be seen in some hundred runs
CONFIDENCE = 0.999  # with which a mechanism that keeps a promise passes its test, for all nodes together

Levels = list[np.ndarray]
Spending = Callable[[Thresholds, Sequence[Round]], Sequence[Round]]


def chain_of(alpha: float = 0.5, depth: int = 3, calibration: str = "exact", **more: float) -> Thresholds:
    given_ = {"alpha": alpha, "eta": ETA, "epsilon": 1.0, "delta": 1e-6, "depth": depth, **more}
    return Thresholds(calibration=calibration, **given_)


# --- many runs at once ---


def as_claimed(chain: Thresholds, rounds: Sequence[Round]) -> Sequence[Round]:
    return rounds


def tripled(chain: Thresholds, rounds: Sequence[Round]) -> Sequence[Round]:
    """Give each threshold three times the epsilon that it may spend."""
    losses = [PrivacyLoss(epsilon=3 * each.loss.epsilon, delta=each.loss.delta) for each in rounds]
    return [
        each._replace(loss=loss, slack=each.slack // 3) for each, loss in zip(rounds, losses, strict=True)
    ]


def printed(chain: Thresholds, rounds: Sequence[Round]) -> Sequence[Round]:
    """Give each threshold the loss of Algorithm 4 as it is printed."""
    alpha = chain.alpha
    beta = alpha / (6 + 5 * alpha)
    r = (1 + alpha) * (1 - beta) / (1 + beta)
    losses = [(1 - r) ** 2 / 2 * i * r ** (i - 1) for i in range(1, len(rounds) + 1)]
    return [
        round_._replace(
            loss=PrivacyLoss(epsilon=chain.epsilon * part, delta=min(chain.delta * part, 0.4)),
            slack=2 * math.ceil(16 / part * (math.log(4 / 0.05) + i * math.log(2))),
        )
        for i, (round_, part) in enumerate(zip(rounds, losses, strict=True), start=1)
    ]


def settled(
    chain: Thresholds,
    tree: Tree,
    leaves: np.ndarray,
    n: int,
    rounds: Sequence[Round],
    rng: np.random.Generator,
) -> Levels:
    """Settle n copies of a tree at once; nodes that no round can settle are left out, as in `settle`."""
    above = min((each.out_of_reach for each in rounds), default=LARGEST_TOTAL)
    return settle_copies(tree, leaves, n, rounds, int(chain.estimates[0]), rng, above=above)


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
        estimates = settled(chain, tree, leaves, len(runs), spending(chain, rounds), rng)
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
    """Run `clipped_counts` n times at once: it moves each node by itself, with its own noise."""
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


@pytest.mark.slow
def test_runs_at_once_follow_the_law_of_single_runs() -> None:
    """Where the noise of the total decides on half of the runs, and that of the questions on the others."""
    tree, n = Tree.from_branching([2]), 4000
    chain = chain_of(depth=2, calibration="proof", tau=200.0, delta=1e-3, eta=0.49)
    leaves = np.array([60, int(chain.bounds[1]) - 60 - chain.total_noise.radius])
    levels, rng = tree.roll_up(leaves), np.random.default_rng(1)
    single = np.array([np.concatenate(threshold_counts(tree, levels, chain, rng=rng)) for _ in range(n)])
    at_once = np.hstack(runs_of(chain, tree, leaves, n, rng))
    patterns, codes = np.unique(np.vstack([single, at_once]), axis=0, return_inverse=True)
    edges = list(range(len(patterns)))
    assert len(patterns) > 5
    assert same_law(*np.split(codes.reshape(-1), 2), edges) > 1e-3
    # with a total that is exact, or a loss that is larger, the law is another one
    exact = settled(chain, tree, leaves, n, chain.rounds(int(leaves.sum())), np.random.default_rng(2))
    overspent = runs_of(chain, tree, leaves, n, rng, tripled)
    for wrong in (exact, overspent):
        _, codes = np.unique(np.vstack([single, np.hstack(wrong)]), axis=0, return_inverse=True)
        assert same_law(*np.split(codes.reshape(-1), 2), list(range(codes.max() + 1))) < 1e-9


# --- trees and counts ---

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


def places(real_data: Path) -> Tree:
    """States, counties and cities of three small states."""
    by = ["state", "county", "city"]
    codes = pd.read_csv(real_data / "zipcodes.csv", dtype=str, keep_default_na=False)[by].drop_duplicates()
    codes = codes[codes["state"].isin(["DE", "RI", "VT"])].apply(lambda column: pd.factorize(column)[0])
    return Tree.from_paths(codes.to_numpy())


@pytest.fixture(params=[*TREES, "places"])
def tree(request: pytest.FixtureRequest) -> Tree:
    return TREES.get(request.param) or places(request.getfixturevalue("real_data"))


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


# --- the promise of each node ---


def failures(
    chain: Thresholds, tree: Tree, leaves: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Count for each node the runs that fail it: shape (n_nodes,)."""
    return np.concatenate(
        [
            (abs(estimates - exact) > chain.alpha * np.maximum(exact, chain.tau) * (1 + 1e-12)).sum(axis=0)
            for exact, estimates in zip(
                tree.roll_up(leaves), runs_of(chain, tree, leaves, n, rng), strict=True
            )
        ]
    )


def most_failures(n: int, n_nodes: int) -> float:
    """Give what n runs exceed at any of the nodes with a probability of 1 - CONFIDENCE, at most."""
    return float(binom.isf((1 - CONFIDENCE) / n_nodes, n, ETA))


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.5])
def test_each_node_keeps_the_promise(tree: Tree, alpha: float, calibration: str) -> None:
    """No node fails significantly more often than with eta, at the smallest tau."""
    chain = chain_of(alpha, tree.depth + 1, calibration)
    rng = np.random.default_rng([tree.n_nodes, round(100 * alpha)])
    n = min(1000, max(400, 60_000 // tree.n_nodes))
    counts = hard_counts(chain, tree, rng)
    failed = np.concatenate([failures(chain, tree, leaves, n, rng) for leaves in counts.values()])
    assert failed.max() <= most_failures(n, len(failed))
    if calibration == "proof":
        assert failed.sum() == 0  # its thresholds are that generous


def test_each_node_keeps_the_promise_in_few_runs(tree: Tree) -> None:
    chain = chain_of(0.5, tree.depth + 1)
    rng, n = np.random.default_rng(tree.n_nodes), 100
    counts = hard_counts(chain, tree, rng)
    failed = np.concatenate([failures(chain, tree, counts[name], n, rng) for name in ("past", "near")])
    assert failed.max() <= most_failures(n, len(failed))


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("name", ["binary", "ternary", "ragged"])
def test_smaller_thresholds_break_the_promise(name: str, calibration: str) -> None:
    """The tests above can fail: at 6/10 of the smallest tau, where that is chosen exactly, they would."""
    tree, n, rng = TREES[name], 400, np.random.default_rng(5)
    smallest = chain_of(0.25, tree.depth + 1, calibration).smallest_tau
    factor = 0.6 if calibration == "exact" else 0.001
    chain = chain_of(0.25, tree.depth + 1, calibration, tau=smallest * factor)
    assert not chain.guaranteed
    counts = hard_counts(chain, tree, rng)
    failed = np.concatenate([failures(chain, tree, counts[name], n, rng) for name in ("near", "beside")])
    assert failed.max() > most_failures(n, 5 * tree.n_nodes)


# --- the mean error of clipped counts ---


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.5])
def test_mean_errors_are_within_their_bound(tree: Tree, alpha: float, calibration: str) -> None:
    """The bound is twice the radius for the tree's own depth, and that of the thresholds for a large one."""
    for depth, eta in ((tree.depth + 1, None), (512, None), (512, ETA)):
        plan = ClippedThresholds(
            alpha=alpha, epsilon=1.0, delta=1e-6, depth=depth, eta=eta, calibration=calibration
        )
        rng = np.random.default_rng([tree.n_nodes, round(100 * alpha), depth])
        counts = hard_counts(plan.thresholds, tree, rng)
        for leaves in (counts["zeros"], counts["past"], counts["near"]):
            runs = clipped_runs_of(plan, tree, leaves, 40, rng)
            for exact, estimates in zip(tree.roll_up(leaves), runs, strict=True):
                assert alpha_rmse(estimates, exact, alpha).max() <= plan.rmse_bound


@pytest.mark.parametrize("alpha", [0.25, 0.5])
def test_empty_nodes_reach_the_bound_on_mean_errors(alpha: float) -> None:
    """So a bound that is smaller by a hundredth would fail the test above."""
    tree, rng = TREES["ragged"], np.random.default_rng(6)
    plan = ClippedThresholds(alpha=alpha, epsilon=1.0, delta=1e-6, depth=512)
    assert plan.rmse_bound < plan.window_noise.radius
    for estimates in clipped_runs_of(plan, tree, np.zeros(tree.n_leaves, dtype=np.int64), 20, rng):
        errors = alpha_rmse(estimates, np.zeros(estimates.shape[1]), alpha)
        assert (0.99 * plan.rmse_bound <= errors).all() and (errors <= plan.rmse_bound).all()


DEPTHS = [4, 64, 512, 4096]
LOSSES = [(0.1, 1e-12), (1.0, 1e-6), (10.0, 0.01)]


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25, 0.5, 0.9])
def test_the_bound_has_the_form_of_theorem_4_1(alpha: float, calibration: str) -> None:
    r"""Theorem 4.1: an alpha-mRMSE of O(alpha^-3 (log(2d / delta) / epsilon + 1)).

    The constant follows from the corrected smallest tau, at a quarter of the loss and the eta of d^-2. There
    ln(4d / eta) <= 3 ln(2d), and the first threshold has the share (1 - 1/r)^2 = (2 alpha / (3 + 2 alpha))^2.
    So alpha tau is at most

        (1 + beta) / beta * 8 (1 + alpha)(1 - beta) / epsilon * ((3 + 2 alpha) / (2 alpha))^2 * 144 ln(2d)

    where the first of the two logarithms is the larger, which it is for a large d, and rounding adds
    4 (1 + beta) / beta. The part of the windows is at most 2R / d = O(log(1 / delta) / epsilon + 1).
    """
    beta = alpha / (6 + 5 * alpha)
    constant = 1152 * (1 + alpha) * (1 - beta**2) * (alpha / beta) * (1.5 + alpha) ** 2
    for epsilon, delta in LOSSES:
        plans = [
            ClippedThresholds(alpha=alpha, epsilon=epsilon, delta=delta, depth=d, calibration=calibration)
            for d in DEPTHS
        ]
        chains_alone = np.array([alpha * plan.thresholds.tau for plan in plans])
        windows = np.array([2 * math.sqrt(plan.eta) * plan.window_noise.radius for plan in plans])
        stated = np.array([alpha**-3 * (math.log(2 * d / delta) / epsilon + 1) for d in DEPTHS])
        most = constant if calibration == "proof" else constant / 1000
        assert all(plan.rmse_bound <= most * form for plan, form in zip(plans, stated, strict=True))
        # nor is it the radius alone that keeps within it
        assert (np.hypot(chains_alone, windows) <= most * stated).all()
        # d enters through ln(4d / eta) at most, where additive noise would grow with the root of d
        assert (
            chains_alone[-1] / chains_alone[0]
            <= math.log(4 * 4096**3) / math.log(4 * 4**3)
            < math.sqrt(4096 / 4) / 6
        )
        if (calibration, delta) == ("proof", 0.01):
            assert chains_alone[-1] > constant / 3 * stated[-1]  # the constant is no empty one


@pytest.mark.parametrize("eta", [None, 0.2, 1e-6])
@pytest.mark.parametrize(("epsilon", "delta"), LOSSES)
def test_the_bound_has_the_form_of_lemma_3_3(eta: float | None, epsilon: float, delta: float) -> None:
    """Lemma 3.3: O(alpha tau + d sqrt(eta) (1 + log(1 / delta) / epsilon)), constants as in its proof."""
    for d in DEPTHS:
        plan = ClippedThresholds(alpha=0.25, epsilon=epsilon, delta=delta, depth=d, eta=eta)
        radius = 2 * d / epsilon * math.log1p(math.expm1(epsilon / 2) / delta)
        assert 0.9 * (radius - d) <= plan.window_noise.radius <= radius + 1
        assert plan.rmse_bound <= 0.25 * plan.thresholds.tau + math.sqrt(plan.eta) * 2 * (radius + 1)
        assert radius <= 2 * d * (0.5 + math.log(1 / delta) / epsilon)


# --- the cutoff ---


class Tallied(SparseVector):
    """Counts the positive answers of each stream for itself."""

    opened: list[Tallied] = []  # noqa: RUF012  # emptied by the fixture

    def __init__(self, **arguments: object) -> None:
        super().__init__(**arguments)
        self.tally = np.zeros(self.n_streams, dtype=np.int64)
        self.allowed = self.cutoff
        Tallied.opened.append(self)

    def ask(self, values: np.ndarray, streams: np.ndarray | None = None) -> np.ndarray:
        answers = super().ask(values, streams)
        self.tally[slice(None) if streams is None else streams] += answers
        return answers


class Leaking(Tallied):
    """Lets one positive answer more through."""

    def __init__(self, **arguments: object) -> None:
        super().__init__(**arguments)
        self.cutoff += 1


def settle_nothing(patch: pytest.MonkeyPatch) -> None:
    """Let no node reach a threshold, so that all are asked about on each level."""
    patch.setattr(Round, "out_of_reach", 0)
    patch.setattr(Round, "cut", lambda self, radius: 2**61)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Tallied]:
    monkeypatch.setattr(thresholds, "SparseVector", Tallied)
    monkeypatch.setattr(Tallied, "opened", [])
    return Tallied.opened


def classify(chain: Thresholds, leaves: np.ndarray, rounds: Sequence[Round]) -> None:
    """Take some rounds on as many paths of five nodes as there are leaves."""
    tree = Tree.from_branching([len(leaves), 1, 1, 1, 1])
    rng = np.random.default_rng(7)
    settle_forest(tree, tree.roll_up(leaves), rounds, int(chain.estimates[0]), rng)


@pytest.mark.parametrize("calibration", ["proof", "exact"])
def test_no_run_has_more_positive_answers_than_the_cutoff_far_above_all_thresholds(
    calibration: str, opened: list[Tallied], monkeypatch: pytest.MonkeyPatch
) -> None:
    settle_nothing(monkeypatch)
    chain = chain_of(depth=6, calibration=calibration)
    rounds = chain.rounds(10**9)[-2:]
    classify(chain, np.full(RUNS, 10**9), rounds)
    for large, round_ in zip(opened, reversed(rounds), strict=True):
        assert large.tally.shape == (RUNS,)
        assert (large.tally == round_.cutoff).all()  # all are used, and none more
    monkeypatch.setattr(thresholds, "SparseVector", Leaking)
    opened.clear()
    classify(chain, np.full(100, 10**9), rounds)
    assert all((large.tally > large.allowed).all() for large in opened)


@pytest.mark.parametrize("settles", [True, False])
@pytest.mark.parametrize("calibration", ["proof", "exact"])
def test_no_run_has_more_positive_answers_than_the_cutoff_around_the_thresholds(
    calibration: str, settles: bool, opened: list[Tallied], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not settles:
        settle_nothing(monkeypatch)
    chain = chain_of(depth=6, calibration=calibration, tau=300.0)
    rounds = chain.rounds(2000)[:3]
    classify(chain, np.random.default_rng(8).integers(0, 2000, RUNS), rounds)
    assert opened[0].tally.shape == (RUNS,)
    for large, round_ in zip(opened, reversed(rounds), strict=True):
        assert large.tally.max() == round_.cutoff
        assert len(np.unique(large.tally)) == round_.cutoff + 1


# --- what is spent ---


def spent_with_windows(plan: ClippedThresholds, total: int) -> tuple[Fraction, Fraction]:
    """Add up what the chain and the noisy counts of one path reveal."""
    epsilon, delta = spent(plan.thresholds, total)
    noise = plan.window_noise
    return epsilon + plan.depth / Fraction(noise.noise_scale), delta + plan.depth * Fraction(
        noise.delta_spent
    )


@st.composite
def clipped_plans(draw: st.DrawFn, calibration: str) -> ClippedThresholds:
    chain = draw(chains(calibration))
    return ClippedThresholds(
        alpha=chain.alpha, epsilon=chain.epsilon, delta=chain.delta, depth=chain.depth,
        eta=draw(st.one_of(st.none(), st.just(chain.eta))), calibration=calibration,
    )  # fmt: skip


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@settings(max_examples=25)
@given(data=st.data(), total=TOTALS)
def test_clipped_counts_never_spend_more_than_the_whole(
    calibration: str, data: st.DataObject, total: int
) -> None:
    plan = data.draw(clipped_plans(calibration))
    epsilon, delta = spent_with_windows(plan, total)
    assert epsilon <= Fraction(plan.epsilon)
    assert delta <= Fraction(plan.delta)
    if plan.thresholds.rounds(total):
        assert epsilon > Fraction(plan.epsilon) * Fraction(1 - 1e-9) or plan.epsilon > 10


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("calibration", ["proof", "exact"])
@settings(max_examples=20)
@given(
    data=st.data(),
    total=TOTALS,
    loss=st.builds(PrivacyLoss, epsilon=st.floats(0.1, 20), delta=st.floats(1e-9, 0.1)),
    rows=st.integers(1, 6),
    clip=st.booleans(),
)
def test_plans_never_spend_more_than_the_whole_of_a_unit(
    neighbors: str,
    calibration: str,
    data: st.DataObject,
    total: int,
    loss: PrivacyLoss,
    rows: int,
    clip: bool,
) -> None:
    """By group privacy: k rows lose k epsilon, and delta (e^(k epsilon) - 1) / (e^epsilon - 1)."""
    depth = data.draw(st.integers(0, 6))
    plan = MultiplicativePlan(
        tree=Tree.from_branching([2] * depth), domain=None, loss=loss, neighbors=neighbors,
        mechanism=Multiplicative(alpha=data.draw(st.floats(0.1, 0.9)), calibration=calibration, clip=clip),
        privacy_unit=None, max_contributions=rows,
    )  # fmt: skip
    k = rows * (2 if neighbors == "replace" else 1)
    epsilon, delta = (spent_with_windows if clip else spent)(plan.chain, total)
    assert k * epsilon <= Fraction(loss.epsilon)
    with mpmath.workdps(60):
        exactly = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        growth = mpmath.expm1(k * exactly) / mpmath.expm1(exactly)
        assert growth * delta.numerator / delta.denominator <= mpmath.mpf(loss.delta)


@pytest.mark.parametrize("calibration", ["proof", "exact"])
def test_a_run_draws_the_noise_that_is_accounted_for(
    calibration: str, opened: list[Tallied], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is drawn in a run adds up to no more than the whole: a tree's share of each, exactly."""
    drawn: list[TruncatedLaplace] = []
    sample = TruncatedLaplace.sample
    monkeypatch.setattr(
        TruncatedLaplace, "sample", lambda self, *rest: drawn.append(self) or sample(self, *rest)
    )
    tree, rng = TREES["ragged"], np.random.default_rng(9)
    plan = ClippedThresholds(alpha=0.5, epsilon=1.0, delta=1e-6, depth=4, calibration=calibration)
    leaves = hard_counts(plan.thresholds, tree, rng)["near"]
    clipped_counts(tree, tree.roll_up(leaves), plan, rng=rng)
    total, windows = drawn[0], [noise for noise in drawn if noise is plan.window_noise]
    of_nodes = list({id(noise): noise for noise in drawn[1 : -len(windows)]}.values())
    assert len(windows) == 4
    assert 5 < len(of_nodes) <= len(opened)
    cutoff = opened[0].cutoff
    losses = [(1, total)] + [(1, noise) for noise in windows] + [(cutoff, noise) for noise in of_nodes]
    questions = sum(
        cutoff * (1 / Fraction(large.threshold_scale) + 2 / Fraction(large.query_scale)) for large in opened
    )
    assert questions + sum(times / Fraction(noise.noise_scale) for times, noise in losses) <= 1
    assert sum(times * Fraction(noise.delta_spent) for times, noise in losses) <= Fraction(1e-6)


# --- what is seen to be lost ---


def estimates_of_the_last_path(levels: Levels) -> np.ndarray:
    """Give the estimates of the last leaf and of what is above it: shape (n, n_levels).

    The rows that are moved here are in this leaf. An audit may look at a part of what comes out.
    """
    return np.stack([level[:, -1] for level in levels], axis=1)


def in_the_balance(chain: Thresholds, spending: Spending, total: int) -> int:
    """Give a count that is found at the smallest threshold only if all noise favours it."""
    first = spending(chain, chain.rounds(total))[0]
    return first.cut(first.node_noise.radius) - 1


def neighbours(
    case: str, calibration: str, spending: Spending = as_claimed
) -> tuple[Thresholds, Tree, list[int]]:
    """Give a chain, a tree, and counts of its leaves; the neighbour has one row more in the last leaf.

    With the chain of the proof, half of the loss is the total's. There the counts are such that its noise
    decides whether one more threshold is in use.
    """
    exact = calibration == "exact"
    chain = chain_of(
        calibration=calibration,
        eta=0.49,
        epsilon=4.0 if exact else 1.0,
        delta=1e-3,
        depth={"six levels": 6, "several rounds": 3}.get(case, 2),
        tau=900.0 if exact else 2000.0 if case == "several rounds" else 240.0,
    )
    below = chain.bounds - chain.total_noise.radius  # whether such totals are above depends on the noise
    x = in_the_balance(chain, spending, int(chain.bounds[0]) + 1) if exact else int(below[0])
    if case == "at a threshold":
        return chain, Tree.from_branching([2]), [0, x]
    if case == "empty leaf":
        return chain, Tree.from_branching([2]), [x, 0]
    if case == "six levels":
        return chain, Tree.from_branching([1] * 5), [x]
    x = in_the_balance(chain, spending, int(chain.bounds[4]) + 1)
    return chain, Tree.from_branching([2, 2]), [int(below[4]) - x, 0, 0, x]


CASES = ["at a threshold", "empty leaf", "six levels", "several rounds"]


def audited(
    chain: Thresholds, tree: Tree, leaves: Sequence[int], n: int, spending: Spending = as_claimed
) -> float:
    """Audit `threshold_counts` where the last leaf has one row more: n runs for each side."""
    one, other = np.array(leaves), np.array(leaves)
    other[-1] += 1
    return audited_epsilon(
        *(
            estimates_of_the_last_path(runs_of(chain, tree, each, n, np.random.default_rng(seed), spending))
            for seed, each in enumerate((one, other))
        ),
        delta=chain.delta,
    )


@pytest.mark.parametrize("n", [20_000, pytest.param(RUNS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("case", CASES)
def test_no_more_is_lost_than_claimed(case: str, calibration: str, n: int) -> None:
    chain, tree, leaves = neighbours(case, calibration)
    assert audited(chain, tree, leaves, n) <= chain.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["proof", "exact"])
def test_the_audit_sees_a_large_part_of_the_loss(calibration: str) -> None:
    chain, tree, leaves = neighbours("at a threshold", calibration)
    assert audited(chain, tree, leaves, RUNS) > 0.4 * chain.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[:3])
def test_the_audit_catches_thresholds_that_spend_too_much(case: str) -> None:
    chain, tree, leaves = neighbours(case, "exact", tripled)
    assert audited(chain, tree, leaves, RUNS, tripled) > chain.epsilon
    assert audited(chain, tree, leaves, RUNS) <= chain.epsilon


@pytest.mark.parametrize("n", [20_000, pytest.param(RUNS, marks=pytest.mark.slow)])
def test_the_audit_catches_the_printed_exponents(n: int) -> None:
    """The losses of Algorithm 4 as printed grow with the threshold, far beyond the whole."""
    chain = chain_of(depth=2, calibration="proof", tau=40.0, delta=1e-3, eta=0.49)
    third_largest = chain.rounds(4000)[-3].threshold
    tree, leaves = Tree.from_branching([2]), [2500, third_largest - 1]
    assert audited(chain, tree, leaves, n) <= chain.epsilon
    assert audited(chain, tree, leaves, n, printed) > 3 * chain.epsilon


def test_the_chain_alone_loses_no_more_than_its_part() -> None:
    """With a given total, half of the loss is left to the chain of the proof."""
    chain = chain_of(depth=2, calibration="proof", tau=40.0, delta=1e-3)
    rounds, tree = chain.rounds(4000), Tree.from_branching([2])

    def outcomes(losses: Sequence[Round], more: int) -> np.ndarray:
        leaves = np.array([2000, rounds[-3].threshold - 1 + more])
        rng = np.random.default_rng(more)
        return estimates_of_the_last_path(settled(chain, tree, leaves, 20_000, losses, rng))

    right, wrong = (
        audited_epsilon(outcomes(losses, 0), outcomes(losses, 1), delta=chain.delta)
        for losses in (rounds, printed(chain, rounds))
    )
    assert right <= chain.epsilon / 2
    assert wrong > chain.epsilon


def audited_with_windows(
    plan: ClippedThresholds, count: int, n: int, window_noise: TruncatedLaplace | None = None
) -> float:
    """Audit `clipped_counts` on a path, with one row more.

    An estimate that is moved is at the end of its window, and gives away the noisy count. So what is looked
    at is how many estimates are moved down to it, and how many noisy counts are above the exact ones.
    """
    tree = Tree.from_branching([1] * (plan.depth - 1))
    radius = (window_noise or plan.window_noise).radius

    def outcomes(rows: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        clipped = np.hstack(clipped_runs_of(plan, tree, np.array([rows]), n, rng, window_noise))
        down = clipped > count
        noisy = np.where(down, clipped - radius, clipped + radius)
        return np.stack([down.sum(axis=1), (noisy > count).sum(axis=1)], axis=1)

    return audited_epsilon(outcomes(count, 1), outcomes(count + 1, 2), delta=plan.delta)


@pytest.mark.parametrize("n", [20_000, pytest.param(RUNS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("depth", [3, 6])
@pytest.mark.parametrize("empty", [True, False])
def test_no_more_is_lost_than_claimed_with_windows(calibration: str, depth: int, empty: bool, n: int) -> None:
    plan = ClippedThresholds(
        alpha=0.5, eta=0.49, epsilon=2.0, delta=0.01, depth=depth, calibration=calibration
    )
    chain = plan.thresholds
    count = 0 if empty else in_the_balance(chain, as_claimed, int(chain.bounds[0]) + 1)
    assert 0.1 * plan.epsilon < audited_with_windows(plan, count, n) <= plan.epsilon
    # as if a row did not move a count of each level
    each_level_spends_all = TruncatedLaplace(plan.epsilon / 2, plan.delta / 2)
    assert audited_with_windows(plan, count, n, each_level_spends_all) > plan.epsilon
