"""Among the strategies that the arguments allow, the best is taken."""

import math

import numpy as np
import pytest

from tests.helpers_distribution import plan

APPROXIMATE = {"epsilon": 1, "delta": 1e-6}


@pytest.mark.parametrize("bins", [16, pytest.param(32, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("loss", "neighbors"),
    [
        ({"epsilon": 1}, "add_remove"),
        ({"epsilon": 1}, "replace"),
        ({"rho": 0.5}, "add_remove"),
        ({"rho": 0.5}, "replace"),
        (APPROXIMATE, "add_remove"),
        pytest.param(APPROXIMATE, "replace", marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_the_best_is_taken_and_a_known_total_helps(loss, neighbors, bins):
    options = {"bins": bins, "neighbors": neighbors, **loss}
    best = plan(**options)
    trees = [plan(**options, strategy=strategy) for strategy in ("tree", [4, bins // 4], [bins])]
    others = [*trees, plan(**options, strategy="tree", mechanism="laplace")]
    if "epsilon" not in loss or "delta" in loss:
        others += [plan(**options, strategy="factorization"), plan(**options, mechanism="gaussian")]
    assert best.errors in [other.errors for other in others if other.strategy != trees[1].strategy]
    assert all(best.errors <= other.errors * 1.005 for other in others)
    assert plan(**options, known={"total": 5}).errors < best.errors
    assert trees[1].strategy.branching == (4, bins // 4) and trees[1].strategy.noise_scales[0] == math.inf


@pytest.mark.parametrize("sizes", [(1, 2, 3, 16), pytest.param((32, 100), marks=pytest.mark.slow)])
@pytest.mark.parametrize("rho", [0.1, 0.5, 2, 50])
def test_no_other_strategy_is_better_however_large_the_loss(rho, sizes):
    for n_bins in sizes:
        best = plan(n_bins, rho=rho)
        for strategy in ("tree", "factorization"):
            for mechanism in ("gaussian", "laplace")[: 1 + (strategy == "tree")]:
                other = plan(n_bins, rho=rho, strategy=strategy, mechanism=mechanism)
                assert best.errors <= other.errors * 1.005


@pytest.mark.parametrize("strategy", [[16, 16], (np.int64(16), 16), np.array([16, 16])], ids=repr)
def test_a_given_tree_is_measured_evenly(strategy):
    measured = plan(256, epsilon=1, strategy=strategy).strategy
    assert measured.branching == (16, 16) and measured.noise_scales == (math.inf, 2, 2)
    assert plan(200, epsilon=1, strategy=strategy).strategy.n_bins == 200
