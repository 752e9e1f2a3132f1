"""The best tree for cumulative sums: beside other trees and splits, lower bounds and simulation."""

from __future__ import annotations

import functools
import math
import time

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given

from pandas_dptree import theory
from pandas_dptree.distribution.cumulative import cumulative_variances, padded_variances
from pandas_dptree.distribution.optimal import BinTree, best_tree, linear_shares
from pandas_dptree.estimation.least_squares import least_squares, propagate
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise, Gaussian, Laplace
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity
from tests.helpers_privacy import ONE_ROW

EPSILON, RHO = PrivacyLoss(epsilon=1.0), PrivacyLoss(rho=0.5)
APPROXIMATE = PrivacyLoss(epsilon=1.0, delta=1e-6)


def slowly(*values: object) -> object:
    """Mark a case as slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


@given(st.lists(st.integers(2, 5), min_size=1, max_size=4), st.data())
def test_linear_shares_are_the_best_there_are(branching, data):
    n_levels = len(branching) + 1
    energies = np.array(
        data.draw(st.lists(st.floats(0.01, 5.0), min_size=n_levels, max_size=n_levels), label="energies")
    )
    leaves = np.cumprod([1.0, *branching[::-1]])[::-1]

    def cost(shares: np.ndarray) -> float:
        return float((energies / np.cumsum((leaves * shares)[::-1])[::-1]).sum())

    shares = linear_shares(leaves[:, None], energies[:, None])[:, 0]
    solved = scipy.optimize.minimize(
        lambda roots: cost(roots**2 / (roots**2).sum()),
        np.ones(n_levels),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1.0)
    assert cost(shares) <= solved.fun * (1 + 1e-9)
    assert cost(shares) == pytest.approx(solved.fun, rel=1e-4)


def test_a_known_total_is_not_measured():
    shares = linear_shares(np.array([[8.0], [4.0], [1.0]]), np.array([[0.0], [1.0], [1.0]]))
    assert shares[0, 0] == 0.0


@functools.cache
def tree_for(n_bins: int, noise: AdditiveNoise, loss: PrivacyLoss, **options: bool) -> BinTree:
    return best_tree(n_bins, noise=noise, loss=loss, sensitivity=ONE_ROW, **options)


@pytest.mark.parametrize(
    ("n_bins", "noise", "loss", "options", "error"),
    [
        (256, Laplace(), EPSILON, {}, 8.24),
        (256, Laplace(), EPSILON, {"total_known": True}, 6.25),
        (1024, Laplace(), EPSILON, {}, 10.76),
        slowly(65536, Laplace(), EPSILON, {}, 20.13),
        (256, Gaussian(), RHO, {}, 2.956),
        (256, Gaussian(), RHO, {"total_known": True}, 2.519),
    ],
)
def test_errors_of_the_best_trees(n_bins, noise, loss, options, error):
    assert tree_for(n_bins, noise, loss, **options).error <= error


@pytest.mark.parametrize(
    ("noise", "loss"),
    [
        (Laplace(), EPSILON),
        (Gaussian(), RHO),
        pytest.param(Laplace(), APPROXIMATE, marks=pytest.mark.nightly),
        pytest.param(Gaussian(), APPROXIMATE, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("total_known", [False, True])
@pytest.mark.parametrize("n_bins", [1, 2, 3, 17, slowly(64), slowly(97), slowly(210)])
def test_error_is_what_the_tree_gives(n_bins, total_known, noise, loss):
    found = tree_for(n_bins, noise, loss, total_known=total_known)
    size = math.prod(found.branching)
    assert size >= n_bins
    assert (size - n_bins) * found.branching[0] < size  # no child of the root is empty
    assert sum(found.shares) == pytest.approx(1.0)
    assert all(share > 0 for share in found.shares[1:])
    assert found.shares[0] == 0 or not total_known
    variances = noise.variance(noise.noise_scales(loss, ONE_ROW, found.shares))
    variances[0] = 0.0 if total_known else variances[0]
    tree = Tree.from_branching(found.branching)
    padded = [
        np.where(np.arange(n) * (size // n) < n_bins, v, 0.0)
        for v, n in zip(variances, tree.level_sizes, strict=True)
    ]
    assert found.error == pytest.approx(
        math.sqrt(cumulative_variances(tree, padded)[:n_bins].mean()), abs=1e-9
    )


@pytest.mark.parametrize("total_known", [False, True])
@pytest.mark.parametrize("n_bins", [16, 50, slowly(97)])
def test_no_tree_of_two_or_three_levels_and_no_split_is_better(n_bins, total_known):
    found = tree_for(n_bins, Laplace(), EPSILON, total_known=total_known)

    def error(tree: tuple[int, ...], shares: np.ndarray) -> float:
        scales = Laplace().noise_scales(EPSILON, ONE_ROW, shares)
        variances = Laplace().variance(scales)
        variances[0] = 0.0 if total_known else variances[0]
        leaves = np.cumprod([1.0, *tree[::-1]])[::-1, None]
        with np.errstate(divide="ignore"):
            return math.sqrt(padded_variances(leaves, 1 / variances[:, None], n_bins)[0])

    inner = [(b,) for b in range(2, n_bins)] + [(b, c) for b in range(2, 9) for c in range(2, 9)]
    for lower in inner:
        root = -(-n_bins // math.prod(lower))
        if root > 1:
            even = np.append(0.0, np.ones(len(lower) + 1))
            assert found.error <= error((root, *lower), even) * (1 + 1e-3)
    generator = np.random.default_rng(20)
    for _ in range(100):
        shares = np.array(found.shares) * generator.uniform(0.8, 1.25, len(found.shares))
        assert found.error <= error(found.branching, shares) * (1 + 1e-6)


@pytest.mark.parametrize(("noise", "name"), [(Laplace(), "epsilon"), (Gaussian(), "rho")])
@pytest.mark.parametrize(("n_bins", "n_budgets"), [(2, 6), (17, 3), slowly(17, 6), slowly(100, 6)])
def test_more_budget_is_never_worse(n_bins, n_budgets, noise, name):
    budgets = np.geomspace(0.05, 10, n_budgets)
    errors = [tree_for(n_bins, noise, PrivacyLoss(**{name: budget})).error for budget in budgets]
    assert (np.diff(errors) < 0).all()


@pytest.mark.parametrize("noise", [Laplace(), Gaussian()], ids=lambda noise: noise.name)
@pytest.mark.parametrize("n_bins", [5, 36, slowly(100), slowly(256)])
def test_a_known_total_helps(n_bins, noise):
    loss = EPSILON if noise == Laplace() else RHO
    plain = tree_for(n_bins, noise, loss)
    assert tree_for(n_bins, noise, loss, total_known=True).error < plain.error


@pytest.mark.parametrize("n_bins", [2, 10, slowly(64), slowly(1000)])
@pytest.mark.parametrize("total_known", [False, True])
def test_no_gaussian_tree_is_below_the_lower_bound(n_bins, total_known):
    loss = PrivacyLoss(rho=0.01)  # so much noise that it is as good as continuous
    found = tree_for(n_bins, Gaussian(), loss, total_known=total_known)
    sensitivity = Sensitivity(l1=2, l2_squared=2)
    replaced = best_tree(
        n_bins, noise=Gaussian(), loss=loss, sensitivity=sensitivity, total_known=total_known
    )
    assert found.error >= theory.cumulative_lower_bound(n_bins, 50.0, total_known=total_known) * (1 - 1e-9)
    assert replaced.error == pytest.approx(found.error * math.sqrt(2), rel=1e-6)


@pytest.mark.slow
def test_search_is_fast_and_small():
    started = time.perf_counter()
    found = tree_for(10_000_000, Laplace(), EPSILON)
    assert time.perf_counter() - started < 30
    assert found.error < 33.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "loss", "total_known"), [(Laplace(), EPSILON, False), (Gaussian(), RHO, True)]
)
def test_simulated_errors(noise, loss, total_known):
    n_bins, runs, generator = 50, 3000, np.random.default_rng(5)
    found = tree_for(n_bins, noise, loss, total_known=total_known)
    size = math.prod(found.branching)
    tree = Tree.from_branching(found.branching)
    scales = noise.noise_scales(loss, ONE_ROW, found.shares)
    counts = np.append(generator.poisson(30, n_bins), np.zeros(size - n_bins, dtype=int))
    present = [np.arange(n) * (size // n) < n_bins for n in tree.level_sizes]
    variances = noise.variance(scales)
    variances[0] = 0.0 if total_known else variances[0]
    levels = propagate(tree, [np.where(here, v, 0.0) for here, v in zip(present, variances, strict=True)])
    exact, squares = tree.roll_up(counts), np.zeros(n_bins)
    for _ in range(runs):
        noisy = []
        for level, here, scale, v in zip(exact, present, scales, variances, strict=True):
            error = noise.sample(scale, len(here), generator.bytes) if 0 < v < math.inf else 0
            noisy.append(level + here * error if v < math.inf else None)
        estimate = least_squares(tree, noisy, levels)[-1]
        squares += np.cumsum(estimate - counts)[:n_bins] ** 2
    assert math.sqrt(squares.mean() / runs) == pytest.approx(found.error, rel=0.02)
