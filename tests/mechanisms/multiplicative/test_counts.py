"""Counts with bounded relative error: the algorithm, its accuracy, and what it reveals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.multiplicative import thresholds
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds, clipped_counts, threshold_counts
from pandas_dptree.mechanisms.multiplicative.sparse_vector import SparseVector
from pandas_dptree.mechanisms.multiplicative.thresholds import LARGEST_TOTAL, Round
from tests.helpers_cases import each
from tests.helpers_multiplicative import chain_of, clipped_runs_of, silence
from tests.strategies import trees


class Slowly:
    """Algorithms 1 and 2 without noise, node by node; `printed` carries over what the paper prints."""

    def __init__(self, tree: Tree, levels: Sequence[np.ndarray], rounds: Sequence[Round], least: int) -> None:
        self.count = {(k, i): int(w) for k, level in enumerate(levels) for i, w in enumerate(level)}
        self.parent: dict[tuple[int, int], tuple[int, int] | None] = {(0, 0): None}
        for k, counts in enumerate(tree.child_counts):
            families = np.repeat(np.arange(tree.level_sizes[k]), np.broadcast_to(counts, tree.level_sizes[k]))
            self.parent |= {(k + 1, i): (k, int(p)) for i, p in enumerate(families)}
        self.children = {node: [c for c, p in self.parent.items() if p == node] for node in self.parent}
        self.rounds, self.least, self.deepest = rounds, least, tree.depth

    def below(self, node: tuple[int, int]) -> list[tuple[int, int]]:
        return [node, *(n for child in self.children[node] for n in self.below(child))]

    def classify(self, root: tuple[int, int], round_: Round) -> set[tuple[int, int]]:
        inside, reached, positive = set(self.below(root)), set(), 0
        cut, least = round_.cut(round_.node_noise.radius), round_.out_of_reach
        for k in reversed(range(self.deepest + 1)):
            if k < root[0]:
                break
            asked = [node for node in inside if node[0] == k and node not in reached]
            largest = max(map(self.count.get, asked), default=0)
            if positive < round_.cutoff and max(largest, least) >= round_.threshold:
                positive += 1
                for node in asked:
                    if self.count[node] >= cut:
                        at: tuple[int, int] | None = node
                        while at in inside:
                            reached.add(at)
                            at = self.parent[at]
        return reached

    def run(self, *, printed: bool = False) -> dict[tuple[int, int], int]:
        estimates = dict.fromkeys(self.parent, self.least)
        forest = [(0, 0)]
        for round_ in reversed(self.rounds):
            following = []
            for root in forest:
                reached = self.classify(root, round_)
                estimates |= dict.fromkeys(reached, round_.estimate)
                for node in self.below(root):
                    if printed and node in reached and not reached & set(self.children[node]):
                        following += self.children[node]
                    if not printed and node not in reached and (node == root or self.parent[node] in reached):
                        following.append(node)
            forest = following
        return estimates


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch)


@st.composite
def counted_trees(draw: st.DrawFn) -> tuple[Tree, np.ndarray]:
    tree = draw(trees(max_depth=4, max_leaves=15))
    size = st.one_of(st.just(0), st.integers(0, 20), st.integers(0, 2**16), st.integers(2**14, 2**24))
    return tree, np.array(draw(st.lists(size, min_size=tree.n_leaves, max_size=tree.n_leaves)))


# --- the algorithm, without noise, against a slow one ---


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@given(case=counted_trees(), tau=st.sampled_from([1.0, 300.0, 1e4]))
def test_decides_as_the_slow_algorithm(calibration: str, case: tuple[Tree, np.ndarray], tau: float) -> None:
    tree, leaves = case
    chain = chain_of(depth=tree.depth + 1, calibration=calibration, tau=tau)
    levels = tree.roll_up(leaves)
    rounds = chain.rounds(int(levels[0][0]) + chain.total_noise.radius)
    with pytest.MonkeyPatch.context() as patch:
        silence(patch)
        expected = Slowly(tree, levels, rounds, int(chain.estimates[0])).run()
        estimates = threshold_counts(tree, levels, chain)
    assert {(k, i): v for k, level in enumerate(estimates) for i, v in enumerate(level)} == expected


@pytest.mark.usefixtures("no_noise")
def test_carries_over_every_subtree() -> None:
    """What Algorithm 2 prints forgets what hangs beside the lowest decided node."""
    tree = Tree.from_branching([2, 2])
    chain = chain_of(calibration="proof")
    top = int(chain.bounds[30])
    levels = tree.roll_up(np.array([top, 0, top // 20, 0]))
    total = int(levels[0][0]) + chain.total_noise.radius
    slowly = Slowly(tree, levels, chain.rounds(total), int(chain.estimates[0]))
    right, printed = slowly.run(), slowly.run(printed=True)
    estimates = threshold_counts(tree, levels, chain)
    for node, count in slowly.count.items():
        allowed = chain.alpha * max(count, chain.tau)
        assert abs(int(estimates[node[0]][node[1]]) - count) <= allowed
        assert right[node] == estimates[node[0]][node[1]]
    sibling = slowly.count[1, 1]
    assert abs(printed[1, 1] - sibling) > chain.alpha * max(sibling, chain.tau)


# --- accuracy ---


@pytest.mark.parametrize("calibration", ["proof", "exact"])
def test_the_whole_algorithm_is_right_on_skewed_data(calibration: str) -> None:
    tree = Tree.from_branching([5, 8, 10])
    rng = np.random.default_rng(3)
    levels = tree.roll_up((rng.pareto(0.6, tree.n_leaves) * 300).clip(max=1e9).astype(np.int64))
    chain = chain_of(0.25, 4, calibration)
    estimates = threshold_counts(tree, levels, chain, rng=rng)
    wrong = [
        (abs(estimate - exact) > 0.25 * np.maximum(exact, chain.tau)).mean()
        for exact, estimate in zip(levels, estimates, strict=True)
    ]
    assert max(wrong) <= 0.05
    assert all(np.isin(estimate, chain.estimates).all() for estimate in estimates)


@given(case=counted_trees(), calibration=st.sampled_from(["proof", "exact"]), seed=st.integers(0, 99))
def test_clipped_counts_stay_in_their_windows(
    case: tuple[Tree, np.ndarray], calibration: str, seed: int
) -> None:
    tree, leaves = case
    plan = ClippedThresholds(
        alpha=0.5, epsilon=1.0, delta=1e-3, depth=tree.depth + 1, calibration=calibration
    )
    levels = tree.roll_up(leaves)
    for exact, estimate in zip(
        levels, clipped_counts(tree, levels, plan, rng=np.random.default_rng(seed)), strict=True
    ):
        assert (abs(estimate - exact) <= 2 * plan.window_noise.radius).all()


def test_clipping_spends_the_whole_and_bounds_the_mean_error() -> None:
    plan = ClippedThresholds(alpha=0.5, epsilon=1.0, delta=1e-6, depth=64)
    assert plan.eta == 64**-2
    chain, window = plan.thresholds, plan.window_noise
    assert chain.epsilon + 64 * window.epsilon == pytest.approx(1.0)
    assert chain.delta + 64 * window.delta == pytest.approx(1e-6)
    assert chain.epsilon == pytest.approx(0.5)
    expected = math.sqrt((0.5 * chain.tau) ** 2 + (2 * window.radius / 64) ** 2)
    assert plan.rmse_bound == pytest.approx(min(expected, 2 * window.radius))
    tree, rng = Tree.from_branching([2, 3]), np.random.default_rng(8)
    levels = tree.roll_up(np.array([0, 5000, 700, 0, 40, 90_000]))
    plan = ClippedThresholds(alpha=0.5, epsilon=1.0, delta=1e-6, depth=3)
    for runs, exact in zip(clipped_runs_of(plan, tree, levels[-1], 60, rng), levels, strict=True):
        beyond = np.maximum(abs(runs - exact) - 0.5 * exact, 0)
        assert (np.sqrt((beyond**2).mean(axis=0)) <= plan.rmse_bound).all()


@each("depth", [1, 2, 3, 7, 10**9])
def test_the_windows_of_all_levels_spend_half_and_not_more(depth: int) -> None:
    plan = ClippedThresholds(alpha=0.5, epsilon=0.7, delta=1e-6, depth=depth)
    for name in ("epsilon", "delta"):
        whole, chain, window = (
            Fraction(getattr(each, name)) for each in (plan, plan.thresholds, plan.window_noise)
        )
        assert whole * Fraction(1 - 1e-15) < chain + depth * window <= whole
    assert plan.eta == max(1e-15, {1: 0.25}.get(depth, depth**-2))


def test_the_bound_on_the_mean_error_falls_with_the_count() -> None:
    plan = ClippedThresholds(alpha=0.5, epsilon=1.0, delta=1e-6, depth=300)
    tau, radius = plan.thresholds.tau, plan.window_noise.radius
    counts = np.concatenate([np.linspace(0, 1.2 * tau, 50), [1e6, 2.0**40]])
    for count, bound in zip(counts, plan.alpha_rmse(counts), strict=True):
        near, far = 0.5 * max(tau - count, 0), max(2 * radius - 0.5 * count, 0)
        assert bound == pytest.approx(min(math.sqrt(near**2 + plan.eta * far**2), far))
    assert (np.diff(plan.alpha_rmse(counts)) <= 0).all()
    assert plan.alpha_rmse(0).shape == () and plan.rmse_bound == plan.alpha_rmse(0)
    tree, rng = Tree.from_branching([2, 3]), np.random.default_rng(6)
    levels = tree.roll_up(np.array([0, 800, 40, 0, 1500, 90_000]))
    for runs, exact in zip(clipped_runs_of(plan, tree, levels[-1], 40, rng), levels, strict=True):
        beyond = np.maximum(abs(runs - exact) - 0.5 * exact, 0)
        assert (np.sqrt((beyond**2).mean(axis=0)) <= plan.alpha_rmse(exact)).all()


# --- privacy ---


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("tau", [1.0, 40.0, None])
def test_empty_nodes_are_never_decided(calibration: str, tau: float | None) -> None:
    tree, rng = Tree.from_branching([4, 30]), np.random.default_rng(2)
    chain = chain_of(depth=3, calibration=calibration, **({} if tau is None else {"tau": tau}))
    leaves = np.zeros(tree.n_leaves, dtype=np.int64)
    leaves[[0, 31]] = 3000, 10**6
    for _ in range(5):
        estimates = threshold_counts(tree, tree.roll_up(leaves), chain, rng=rng)
        assert (estimates[2][leaves == 0] == chain.estimates[0]).all()
        assert (estimates[1][2:] == chain.estimates[0]).all()


def test_printed_cut_decides_empty_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm 1 prints the cut tau - Delta - R alone, which a small tau takes below R."""
    monkeypatch.setattr(Round, "cut", lambda self, radius: self.threshold - self.slack - radius)
    with pytest.raises(AssertionError):
        test_empty_nodes_are_never_decided("proof", 40.0)


@pytest.mark.parametrize("calibration", ["proof", "exact"])
def test_no_tree_has_more_positive_answers_than_its_cutoff(
    calibration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a long path of large counts every question is one that could be answered positively."""
    asked: list[SparseVector] = []

    class Recorded(SparseVector):
        def __init__(self, **arguments: object) -> None:
            super().__init__(**arguments)
            asked.append(self)

    monkeypatch.setattr(thresholds, "SparseVector", Recorded)
    monkeypatch.setattr(Round, "out_of_reach", 0)
    monkeypatch.setattr(Round, "cut", lambda self, radius: 2**61)  # so that nothing is ever decided
    tree = Tree.from_branching([1, 3, 1, 2, 1, 1])
    chain = chain_of(depth=7, calibration=calibration)
    levels = tree.roll_up(np.full(tree.n_leaves, 10**8))
    threshold_counts(tree, levels, chain, rng=np.random.default_rng(1))
    assert len(asked) == len(chain.rounds(6 * 10**8))
    for large in asked:
        assert large.n_streams == 1
        assert large.n_positive.tolist() == [large.cutoff]
    assert {large.cutoff for large in asked} == {2 if calibration == "proof" else 1}


@each("total", [0, 5, 10**6])
def test_totals_are_never_underestimated(total: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The noisy total is an upper bound, with certainty."""
    seen: list[int] = []
    chain = chain_of(depth=1)
    spy = SimpleNamespace(
        depth=1, total_noise=chain.total_noise, estimates=chain.estimates,
        rounds=lambda noisy: seen.append(noisy) or (),
    )  # fmt: skip
    rng = np.random.default_rng(4)
    for _ in range(300):
        threshold_counts(Tree(()), (np.array([total]),), spy, rng=rng)
    assert total <= min(seen) < max(seen) <= total + 2 * chain.total_noise.radius


# --- arguments ---


def test_huge_and_negative_counts_do_no_harm() -> None:
    tree = Tree.from_branching([3])
    levels = (np.array([2**62]), np.array([2**62, -(2**62), 0]))
    estimates = threshold_counts(tree, levels, chain_of(), rng=np.random.default_rng(1))
    assert estimates[0][0] >= LARGEST_TOTAL // 2
    assert estimates[1][1:].tolist() == [chain_of().estimates[0]] * 2


def test_bad_arguments() -> None:
    tree = Tree.from_branching([2, 2])
    levels = tree.roll_up(np.arange(4))
    with pytest.raises(ArgumentError, match="`tree` has 3 levels"):
        threshold_counts(tree, levels, chain_of(depth=2))
    with pytest.raises(ArgumentError, match="one count for each node"):
        threshold_counts(tree, levels[1:], chain_of())
    with pytest.raises(ArgumentError, match="integer type"):
        threshold_counts(tree, [level * 1.0 for level in levels], chain_of())
    with pytest.raises(ArgumentError, match="delta"):
        ClippedThresholds(alpha=0.5, epsilon=1.0, delta=0.0, depth=3)
