"""The search for the best plan of a distribution."""

import math

import numpy as np
import pytest

from pandas_dptree.distribution.strategy import TreePrefixes
from pandas_dptree.errors import ArgumentError
from tests.helpers_distribution import plan


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"bins": 256, "epsilon": 1}, 8.42),
        ({"bins": 1024, "epsilon": 1}, 10.92),
        ({"bins": 256, "rho": 0.5}, 2.68),
        ({"bins": 256, "epsilon": 1, "known": {"total": 100}}, 6.26),
    ],
    ids=repr,
)
def test_errors_are_as_small_as_promised(options, most):
    assert plan(**options).errors <= most


@pytest.mark.parametrize("loss", [{"epsilon": 1}, {"rho": 0.5}, {"epsilon": 1, "delta": 1e-6}], ids=repr)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_the_best_is_taken_and_a_known_total_helps(loss, neighbors):
    options = {"bins": 32, "neighbors": neighbors, **loss}
    best = plan(**options)
    trees = [plan(**options, tree=tree) for tree in ("tree", [4, 8], [32])]
    others = [*trees, plan(**options, tree="tree", mechanism="laplace")]
    if "epsilon" not in loss or "delta" in loss:
        others += [plan(**options, tree="factorization"), plan(**options, mechanism="gaussian")]
    assert best.errors in [other.errors for other in others if other.strategy != trees[1].strategy]
    assert all(best.errors <= other.errors * 1.005 for other in others)
    assert plan(**options, known={"total": 5}).errors < best.errors
    assert trees[1].strategy.branching == (4, 8) and trees[1].strategy.noise_scales[0] == math.inf


@pytest.mark.parametrize("rho", [0.1, 0.5, 2, 50])
def test_no_other_strategy_is_better_however_large_the_loss(rho):
    for n_bins in (1, 2, 3, 32, 100):
        best = plan(n_bins, rho=rho)
        for tree in ("tree", "factorization"):
            for mechanism in ("gaussian", "laplace")[: 1 + (tree == "tree")]:
                other = plan(n_bins, rho=rho, tree=tree, mechanism=mechanism)
                assert best.errors <= other.errors * 1.005


@pytest.mark.parametrize("tree", [[16, 16], (np.int64(16), 16), np.array([16, 16])], ids=repr)
def test_a_given_tree_is_measured_evenly(tree):
    measured = plan(256, epsilon=1, tree=tree).strategy
    assert measured.branching == (16, 16) and measured.noise_scales == (math.inf, 2, 2)
    assert plan(200, epsilon=1, tree=tree).strategy.n_bins == 200


def test_many_bins_and_few():
    assert plan(2**20 + 1, rho=1, tree=[1024, 1025]).errors > 0
    assert isinstance(plan(1, epsilon=1, rho=None).strategy, TreePrefixes)
    assert plan(1, epsilon=1, known={"total": 3}).errors == 0
    for tiny in ({"epsilon": 1e-9, "delta": 1e-6}, {"rho": 1e-16}):  # too little for a factorization
        assert isinstance(plan(5, **tiny).strategy, TreePrefixes)
    with pytest.raises(ArgumentError, match="n_bins"):
        plan(2**20 + 1, rho=1, tree="factorization")
