"""Counts with bounded relative error, in many runs: what is spent, and what audits find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.multiplicative import thresholds
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds, clipped_counts
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.mechanisms.multiplicative.sparse_vector import SparseVector
from pandas_dptree.mechanisms.multiplicative.thresholds import Round, Thresholds
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.plans.multiplicative import MultiplicativePlan
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_multiplicative import (
    TOTALS,
    TREES,
    Levels,
    Spending,
    as_claimed,
    chains,
    clipped_runs_of,
    decide_forest,
    decided,
    hard_counts,
    lax_chain_of,
    runs_of,
    spent,
    tripled,
)
from tests.helpers_statistics import audited_epsilon

RUNS = 100_000
FEW_RUNS = [20_000, pytest.param(RUNS, marks=pytest.mark.nightly)]


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


def decide_nothing(patch: pytest.MonkeyPatch) -> None:
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
    decide_forest(tree, tree.roll_up(leaves), rounds, int(chain.estimates[0]), rng)


# --- the cutoff ---


@pytest.mark.parametrize("n", FEW_RUNS)
@pytest.mark.parametrize("calibration", ["proof", "exact"])
def test_no_run_has_more_positive_answers_than_the_cutoff_far_above_all_thresholds(
    calibration: str, n: int, opened: list[Tallied], monkeypatch: pytest.MonkeyPatch
) -> None:
    decide_nothing(monkeypatch)
    chain = lax_chain_of(depth=6, calibration=calibration)
    rounds = chain.rounds(10**9)[-2:]
    classify(chain, np.full(n, 10**9), rounds)
    for large, round_ in zip(opened, reversed(rounds), strict=True):
        assert large.tally.shape == (n,)
        assert (large.tally == round_.cutoff).all()  # all are used, and none more
    monkeypatch.setattr(thresholds, "SparseVector", Leaking)
    opened.clear()
    classify(chain, np.full(100, 10**9), rounds)
    assert all((large.tally > large.allowed).all() for large in opened)


@pytest.mark.parametrize("n", FEW_RUNS)
@pytest.mark.parametrize("decides", [True, False])
@pytest.mark.parametrize("calibration", ["proof", "exact"])
def test_no_run_has_more_positive_answers_than_the_cutoff_around_the_thresholds(
    calibration: str, decides: bool, n: int, opened: list[Tallied], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not decides:
        decide_nothing(monkeypatch)
    chain = lax_chain_of(depth=6, calibration=calibration, tau=300.0)
    rounds = chain.rounds(2000)[:3]
    classify(chain, np.random.default_rng(8).integers(0, 2000, n), rounds)
    assert opened[0].tally.shape == (n,)
    for large, round_ in zip(opened, reversed(rounds), strict=True):
        assert large.tally.max() == round_.cutoff
        assert len(np.unique(large.tally)) == round_.cutoff + 1


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


# --- what is spent ---


@pytest.mark.tripwire
@pytest.mark.parametrize("calibration", ["proof", "exact"])
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


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@given(
    neighbors=st.sampled_from(["add_remove", "replace"]),
    data=st.data(),
    total=TOTALS,
    loss=st.builds(PrivacyLoss, epsilon=st.floats(0.1, 20), delta=st.floats(1e-9, 0.1)),
    rows=st.integers(1, 6),
    clip=st.booleans(),
)
def test_plans_never_spend_more_than_the_whole_of_a_unit(
    calibration: str,
    neighbors: str,
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


def estimates_of_the_last_path(levels: Levels) -> np.ndarray:
    """Give the estimates of the last leaf and of what is above it: shape (n, n_levels).

    The rows that are moved here are in this leaf. An audit may look at a part of what comes out.
    """
    return np.stack([level[:, -1] for level in levels], axis=1)


def barely_reported(chain: Thresholds, spending: Spending, total: int) -> int:
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
    chain = lax_chain_of(
        calibration=calibration,
        eta=0.49,
        epsilon=4.0 if exact else 1.0,
        delta=1e-3,
        depth={"six levels": 6, "several rounds": 3}.get(case, 2),
        tau=900.0 if exact else 2000.0 if case == "several rounds" else 240.0,
    )
    below = chain.bounds - chain.total_noise.radius  # whether such totals are above depends on the noise
    x = barely_reported(chain, spending, int(chain.bounds[0]) + 1) if exact else int(below[0])
    if case == "at a threshold":
        return chain, Tree.from_branching([2]), [0, x]
    if case == "empty leaf":
        return chain, Tree.from_branching([2]), [x, 0]
    if case == "six levels":
        return chain, Tree.from_branching([1] * 5), [x]
    x = barely_reported(chain, spending, int(chain.bounds[4]) + 1)
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


# --- what is seen to be lost ---


@pytest.mark.parametrize("n", FEW_RUNS)
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


@pytest.mark.parametrize("n", FEW_RUNS)
def test_the_audit_catches_the_printed_exponents(n: int) -> None:
    """The losses of Algorithm 4 as printed grow with the threshold, far beyond the whole."""
    chain = lax_chain_of(depth=2, calibration="proof", tau=40.0, delta=1e-3, eta=0.49)
    third_largest = chain.rounds(4000)[-3].threshold
    tree, leaves = Tree.from_branching([2]), [2500, third_largest - 1]
    assert audited(chain, tree, leaves, n) <= chain.epsilon
    assert audited(chain, tree, leaves, n, printed) > 3 * chain.epsilon


def test_the_chain_alone_loses_no_more_than_its_part() -> None:
    """With a given total, half of the loss is left to the chain of the proof."""
    chain = lax_chain_of(depth=2, calibration="proof", tau=40.0, delta=1e-3)
    rounds, tree = chain.rounds(4000), Tree.from_branching([2])

    def outcomes(losses: Sequence[Round], more: int) -> np.ndarray:
        leaves = np.array([2000, rounds[-3].threshold - 1 + more])
        rng = np.random.default_rng(more)
        return estimates_of_the_last_path(decided(chain, tree, leaves, 20_000, losses, rng))

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


@pytest.mark.parametrize("n", FEW_RUNS)
@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("depth", [3, 6])
@pytest.mark.parametrize("empty", [True, False])
def test_no_more_is_lost_than_claimed_with_windows(calibration: str, depth: int, empty: bool, n: int) -> None:
    plan = ClippedThresholds(
        alpha=0.5, eta=0.49, epsilon=2.0, delta=0.01, depth=depth, calibration=calibration
    )
    chain = plan.thresholds
    count = 0 if empty else barely_reported(chain, as_claimed, int(chain.bounds[0]) + 1)
    assert 0.1 * plan.epsilon < audited_with_windows(plan, count, n) <= plan.epsilon
    # as if a row did not move a count of each level
    each_level_spends_all = TruncatedLaplace(plan.epsilon / 2, plan.delta / 2)
    assert audited_with_windows(plan, count, n, each_level_spends_all) > plan.epsilon
