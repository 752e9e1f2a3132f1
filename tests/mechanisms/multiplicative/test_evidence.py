"""Counts with bounded relative error, in many runs: each node and the mean error keep the promise."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds, threshold_counts
from pandas_dptree.mechanisms.multiplicative.thresholds import Thresholds
from pandas_dptree.theory import alpha_rmse
from tests.helpers_cases import each
from tests.helpers_multiplicative import (
    ETA,
    TREES,
    clipped_runs_of,
    decided,
    hard_counts,
    lax_chain_of,
    runs_of,
    tripled,
)
from tests.helpers_statistics import same_distribution

CONFIDENCE = 0.999  # with which a mechanism that keeps a promise passes its test, for all nodes together

ALPHAS = [0.25, *(pytest.param(alpha, marks=pytest.mark.nightly) for alpha in (0.1, 0.5))]


# --- many runs at once ---


@pytest.mark.slow
def test_runs_at_once_follow_the_distribution_of_single_runs() -> None:
    """Where the noise of the total decides on half of the runs, and that of the questions on the others."""
    tree, n = Tree.from_branching([2]), 4000
    chain = lax_chain_of(depth=2, calibration="proof", tau=200.0, delta=1e-3, eta=0.49)
    leaves = np.array([60, int(chain.bounds[1]) - 60 - chain.total_noise.radius])
    levels, rng = tree.roll_up(leaves), np.random.default_rng(1)
    single = np.array([np.concatenate(threshold_counts(tree, levels, chain, rng=rng)) for _ in range(n)])
    at_once = np.hstack(runs_of(chain, tree, leaves, n, rng))
    patterns, codes = np.unique(np.vstack([single, at_once]), axis=0, return_inverse=True)
    edges = list(range(len(patterns)))
    assert len(patterns) > 5
    assert same_distribution(*np.split(codes.reshape(-1), 2), edges) > 1e-3
    # with a total that is exact, or a loss that is larger, the law is another one
    exact = decided(chain, tree, leaves, n, chain.rounds(int(leaves.sum())), np.random.default_rng(2))
    overspent = runs_of(chain, tree, leaves, n, rng, tripled)
    for wrong in (exact, overspent):
        _, codes = np.unique(np.vstack([single, np.hstack(wrong)]), axis=0, return_inverse=True)
        assert same_distribution(*np.split(codes.reshape(-1), 2), list(range(codes.max() + 1))) < 1e-9


def places(real_data: Path) -> Tree:
    """States, counties and cities of three small states."""
    by = ["state", "county", "city"]
    codes = pd.read_csv(real_data / "zipcodes.csv", dtype=str, keep_default_na=False)[by].drop_duplicates()
    codes = codes[codes["state"].isin(["DE", "RI", "VT"])].apply(lambda column: pd.factorize(column)[0])
    return Tree.from_paths(codes.to_numpy())


@pytest.fixture(params=[*TREES, "places"])
def tree(request: pytest.FixtureRequest) -> Tree:
    return TREES.get(request.param) or places(request.getfixturevalue("real_data"))


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


# --- the promise of each node ---


@pytest.mark.nightly
@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_each_node_keeps_the_promise(tree: Tree, alpha: float, calibration: str) -> None:
    """No node fails significantly more often than with eta, at the smallest tau."""
    chain = lax_chain_of(alpha, tree.depth + 1, calibration)
    rng = np.random.default_rng([tree.n_nodes, round(100 * alpha)])
    n = min(1000, max(400, 60_000 // tree.n_nodes))
    counts = hard_counts(chain, tree, rng)
    failed = np.concatenate([failures(chain, tree, leaves, n, rng) for leaves in counts.values()])
    assert failed.max() <= most_failures(n, len(failed))
    if calibration == "proof":
        assert failed.sum() == 0  # its thresholds are that generous


def test_each_node_keeps_the_promise_in_few_runs(tree: Tree) -> None:
    chain = lax_chain_of(0.5, tree.depth + 1)
    rng, n = np.random.default_rng(tree.n_nodes), 100
    counts = hard_counts(chain, tree, rng)
    failed = np.concatenate([failures(chain, tree, counts[name], n, rng) for name in ("past", "near")])
    assert failed.max() <= most_failures(n, len(failed))


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("name", ["binary", "ternary", "ragged"])
def test_smaller_thresholds_break_the_promise(name: str, calibration: str) -> None:
    """The tests above can fail: at 6/10 of the smallest tau, where that is chosen exactly, they would."""
    tree, n, rng = TREES[name], 200, np.random.default_rng(5)
    smallest = lax_chain_of(0.25, tree.depth + 1, calibration).smallest_tau
    factor = 0.6 if calibration == "exact" else 0.001
    chain = lax_chain_of(0.25, tree.depth + 1, calibration, tau=smallest * factor)
    assert not chain.guaranteed
    counts = hard_counts(chain, tree, rng)
    failed = np.concatenate([failures(chain, tree, counts[name], n, rng) for name in ("near", "beside")])
    assert failed.max() > most_failures(n, 5 * tree.n_nodes)


# --- the mean error of clipped counts ---


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("alpha", ALPHAS)
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
@each("alpha", [0.05, 0.1, 0.25, 0.5, 0.9])
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


@each("eta", [None, 0.2, 1e-6])
@each("epsilon, delta", LOSSES)
def test_the_bound_has_the_form_of_lemma_3_3(eta: float | None, epsilon: float, delta: float) -> None:
    """Lemma 3.3: O(alpha tau + d sqrt(eta) (1 + log(1 / delta) / epsilon)), constants as in its proof."""
    for d in DEPTHS:
        plan = ClippedThresholds(alpha=0.25, epsilon=epsilon, delta=delta, depth=d, eta=eta)
        radius = 2 * d / epsilon * math.log1p(math.expm1(epsilon / 2) / delta)
        assert 0.9 * (radius - d) <= plan.window_noise.radius <= radius + 1
        assert plan.rmse_bound <= 0.25 * plan.thresholds.tau + math.sqrt(plan.eta) * 2 * (radius + 1)
        assert radius <= 2 * d * (0.5 + math.log(1 / delta) / epsilon)
