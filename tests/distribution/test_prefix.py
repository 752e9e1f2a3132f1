"""Errors of prefix sums and ranges after least squares, and the tree that makes them small."""

from __future__ import annotations

import math
import time

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from hypothesis import given, settings

from pandas_dptree.distribution.optimal import (
    PrefixTree,
    best_tree,
    linear_prefix_shares,
    prefix_lower_bound,
)
from pandas_dptree.distribution.prefix import (
    mean_prefix_variance,
    prefix_energies,
    prefix_variances,
    range_variances,
    uniform_prefix_variances,
)
from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import least_squares, propagate
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise, Gaussian, Laplace
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity
from tests.reference import membership
from tests.strategies import trees

ONE_ROW = Sensitivity(l1=1, l2_squared=1)
EPSILON, RHO = PrivacyLoss(epsilon=1.0), PrivacyLoss(rho=0.5)

branchings = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@st.composite
def noisy_trees(draw: st.DrawFn) -> tuple[Tree, list[np.ndarray]]:
    """Draw a tree with variances, some 0 where the count is known, some inf where nothing is measured."""
    tree = draw(trees(max_depth=4, max_leaves=20))
    noise = []
    for level, size in enumerate(tree.level_sizes):
        values = st.floats(0.25, 4.0) | st.just(0.0)
        if level < tree.depth:
            values |= st.just(math.inf)
        n = draw(st.sampled_from([1, size]))
        noise.append(np.array(draw(st.lists(values, min_size=n, max_size=n))))
    return tree, noise


def dense_prefix_covariance(tree: Tree, noise: list[np.ndarray]) -> np.ndarray:
    """Solve generalised least squares within what the known nodes leave free; prefixes of 0 … n leaves."""
    rows = np.concatenate(membership(tree))
    v = np.concatenate([np.broadcast_to(level, n) for level, n in zip(noise, tree.level_sizes, strict=True)])
    known, measured = v == 0, (v > 0) & np.isfinite(v)
    basis = scipy.linalg.null_space(rows[known]) if known.any() else np.eye(tree.n_leaves)
    design = (rows @ basis)[measured]
    leaves = basis @ np.linalg.inv(design.T @ (design / v[measured, None])) @ basis.T
    sums = np.tri(tree.n_leaves + 1, tree.n_leaves, -1)
    return sums @ leaves @ sums.T


def numeric_energies(branching: list[int], prefix: int) -> np.ndarray:
    """Project the indicator of a prefix on the functions that are constant on each level's nodes."""
    indicator = (np.arange(math.prod(branching)) < prefix).astype(float)
    within = [
        (indicator.reshape(math.prod(branching[:level]), -1).mean(axis=1) ** 2).sum()
        * math.prod(branching[level:])
        for level in range(len(branching) + 1)
    ]
    return np.diff(within, prepend=0.0)


@given(branchings, st.data())
def test_mean_energies_are_those_of_projections(branching, data):
    n_bins = data.draw(st.integers(1, math.prod(branching)))
    expected = np.mean([numeric_energies(branching, t) for t in range(1, n_bins + 1)], axis=0)
    np.testing.assert_allclose(prefix_energies(branching, n_bins), expected, atol=1e-12)


def test_energies_of_a_tree_too_large_to_list():
    assert prefix_energies([1000] * 4).sum() == pytest.approx((10**12 + 1) / 2)


@given(noisy_trees())
@settings(max_examples=150, deadline=None)
def test_prefixes_and_ranges_agree_with_dense_least_squares(case):
    tree, noise = case
    covariance = dense_prefix_covariance(tree, noise)
    np.testing.assert_allclose(prefix_variances(tree, noise), np.diag(covariance)[1:], atol=1e-9)
    starts, stops = np.triu_indices(tree.n_leaves + 1)
    variance = np.diag(covariance)
    expected = variance[starts] + variance[stops] - 2 * covariance[starts, stops]
    np.testing.assert_allclose(range_variances(tree, noise, starts, stops), expected, atol=1e-9)


@given(branchings, st.data())
@settings(max_examples=100, deadline=None)
def test_uniform_trees_in_closed_form(branching, data):
    tree, n_levels = Tree.from_branching(branching), len(branching) + 1
    noise = data.draw(st.lists(st.floats(0.25, 4.0), min_size=n_levels, max_size=n_levels))
    noise[0] = data.draw(st.sampled_from([noise[0], 0.0, math.inf]))
    every = np.arange(1, tree.n_leaves + 1)
    exact = prefix_variances(tree, noise)
    np.testing.assert_allclose(uniform_prefix_variances(branching, noise, every), exact, atol=1e-12)
    n_bins = data.draw(st.integers(1, tree.n_leaves))
    padded = [
        np.where(np.arange(n) * (tree.n_leaves // n) < n_bins, v, 0.0)
        for v, n in zip(noise, tree.level_sizes, strict=True)
    ]
    expected = prefix_variances(tree, padded)[:n_bins].mean()
    assert mean_prefix_variance(branching, noise, n_bins) == pytest.approx(expected, abs=1e-12)
    assert expected <= exact[:n_bins].mean() + 1e-12  # to know the padding only helps


def test_ranges_on_a_tree_too_large_to_list():
    tree, noise = Tree.from_branching([100] * 4), [0.0, 3.0, 2.0, 1.0, 1.0]
    bins = np.array([1, 99, 12_345_678, 99_999_999, 100_000_000])
    np.testing.assert_allclose(
        range_variances(tree, noise, np.zeros(5), bins),
        uniform_prefix_variances([100] * 4, noise, bins),
        atol=1e-9,
    )


@given(st.lists(st.integers(2, 5), min_size=1, max_size=4), st.data())
@settings(max_examples=30, deadline=None)
def test_linear_shares_are_the_best_there_are(branching, data):
    n_levels = len(branching) + 1
    energies = np.array(
        data.draw(st.lists(st.floats(0.01, 5.0), min_size=n_levels, max_size=n_levels), label="energies")
    )
    leaves = np.cumprod([1.0, *branching[::-1]])[::-1]

    def cost(shares: np.ndarray) -> float:
        return float((energies / np.cumsum((leaves * shares)[::-1])[::-1]).sum())

    shares = linear_prefix_shares(leaves[:, None], energies[:, None])[:, 0]
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
    shares = linear_prefix_shares(np.array([[8.0], [4.0], [1.0]]), np.array([[0.0], [1.0], [1.0]]))
    assert shares[0, 0] == 0.0


@pytest.mark.parametrize("n_bins", [1, 2, 7, 256])
def test_lower_bound_is_the_singular_value_bound(n_bins):
    sums = np.tri(n_bins)
    bound = np.linalg.svd(sums, compute_uv=False).sum() / n_bins
    assert prefix_lower_bound(n_bins) == pytest.approx(bound)
    assert prefix_lower_bound(n_bins, 4.0) == pytest.approx(2 * bound)
    centred = sums - sums.mean(axis=1, keepdims=True)
    known = np.linalg.svd(centred, compute_uv=False).sum() / math.sqrt(n_bins * max(n_bins - 1, 1))
    assert prefix_lower_bound(n_bins, total_known=True) == pytest.approx(known, abs=1e-12)


def tree_for(n_bins: int, noise: AdditiveNoise, loss: PrivacyLoss, **options: bool) -> PrefixTree:
    return best_tree(n_bins, noise=noise, loss=loss, sensitivity=ONE_ROW, **options)


@pytest.mark.parametrize(
    ("n_bins", "noise", "loss", "options", "error"),
    [
        (256, Laplace(), EPSILON, {}, 8.24),
        (256, Laplace(), EPSILON, {"padding": False}, 8.363),
        (256, Laplace(), EPSILON, {"total_known": True}, 6.25),
        (1024, Laplace(), EPSILON, {}, 10.76),
        (1024, Laplace(), EPSILON, {"padding": False}, 10.856),
        (65536, Laplace(), EPSILON, {}, 20.13),
        (256, Gaussian(), RHO, {}, 2.956),
        (256, Gaussian(), RHO, {"padding": False}, 2.978),
        (256, Gaussian(), RHO, {"total_known": True}, 2.519),
    ],
)
def test_errors_of_the_best_trees(n_bins, noise, loss, options, error):
    assert tree_for(n_bins, noise, loss, **options).error <= error


@pytest.mark.parametrize("noise", [Laplace(), Gaussian()], ids=lambda noise: noise.name)
@pytest.mark.parametrize("total_known", [False, True])
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("n_bins", [1, 2, 3, 17, 64, 97, 210])
def test_error_is_what_the_tree_gives(n_bins, padding, total_known, noise):
    loss = PrivacyLoss(epsilon=1.0, delta=1e-6)
    found = tree_for(n_bins, noise, loss, padding=padding, total_known=total_known)
    size = math.prod(found.branching)
    assert size == n_bins if not padding else size >= n_bins
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
    assert found.error == pytest.approx(math.sqrt(prefix_variances(tree, padded)[:n_bins].mean()), abs=1e-9)


@pytest.mark.parametrize("total_known", [False, True])
@pytest.mark.parametrize("n_bins", [16, 50, 97])
def test_no_tree_of_two_or_three_levels_and_no_split_is_better(n_bins, total_known):
    found = tree_for(n_bins, Laplace(), EPSILON, total_known=total_known)

    def error(tree: tuple[int, ...], shares: np.ndarray) -> float:
        scales = Laplace().noise_scales(EPSILON, ONE_ROW, shares)
        variances = Laplace().variance(scales)
        variances[0] = 0.0 if total_known else variances[0]
        return math.sqrt(mean_prefix_variance(tree, variances, n_bins))

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
@pytest.mark.parametrize("n_bins", [2, 17, 100])
def test_more_budget_is_never_worse(n_bins, noise, name):
    errors = [tree_for(n_bins, noise, PrivacyLoss(**{name: b})).error for b in np.geomspace(0.05, 10, 6)]
    assert (np.diff(errors) < 0).all()


@pytest.mark.parametrize("noise", [Laplace(), Gaussian()], ids=lambda noise: noise.name)
@pytest.mark.parametrize("n_bins", [5, 36, 100, 256])
def test_what_is_known_and_room_for_padding_help(n_bins, noise):
    loss = EPSILON if noise == Laplace() else RHO
    plain = tree_for(n_bins, noise, loss)
    assert tree_for(n_bins, noise, loss, total_known=True).error < plain.error
    assert plain.error <= tree_for(n_bins, noise, loss, padding=False).error * (1 + 1e-6)


@pytest.mark.parametrize("n_bins", [2, 10, 64, 1000])
@pytest.mark.parametrize("total_known", [False, True])
def test_no_gaussian_tree_is_below_the_lower_bound(n_bins, total_known):
    loss = PrivacyLoss(rho=0.01)  # so much noise that it is as good as continuous
    found = tree_for(n_bins, Gaussian(), loss, total_known=total_known)
    sensitivity = Sensitivity(l1=2, l2_squared=2)
    replaced = best_tree(
        n_bins, noise=Gaussian(), loss=loss, sensitivity=sensitivity, total_known=total_known
    )
    assert found.error >= prefix_lower_bound(n_bins, 50.0, total_known=total_known) * (1 - 1e-9)
    assert replaced.error == pytest.approx(found.error * math.sqrt(2), rel=1e-6)


def test_search_is_fast_and_small():
    started = time.perf_counter()
    found = tree_for(10_000_000, Laplace(), EPSILON)
    assert time.perf_counter() - started < 30
    assert found.error < 33.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "loss", "total_known"), [(Laplace(), EPSILON, False), (Gaussian(), RHO, True)]
)
def test_simulated_prefix_errors(noise, loss, total_known):
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


@pytest.mark.parametrize(
    "call",
    [
        lambda: prefix_energies([2, 2], 5),
        lambda: prefix_energies([2, 2], 0),
        lambda: mean_prefix_variance([2], [1.0, 1.0], True),
        lambda: uniform_prefix_variances([2], [1.0], [1]),
        lambda: uniform_prefix_variances([2], [1.0, 1.0], [3]),
        lambda: uniform_prefix_variances([2], [1.0, math.inf], [1]),
        lambda: prefix_variances(Tree.from_branching([2]), [1.0, [1.0, -1.0]]),
        lambda: prefix_variances(Tree.from_branching([2]), [1.0, [1.0, 1.0, 1.0]]),
        lambda: range_variances(Tree.from_branching([2]), [1.0, 1.0], [1], [0]),
        lambda: range_variances(Tree.from_branching([2]), [1.0, 1.0], [-1], [0]),
        lambda: best_tree(0, noise=Laplace(), loss=EPSILON, sensitivity=ONE_ROW),
        lambda: best_tree(2.5, noise=Laplace(), loss=EPSILON, sensitivity=ONE_ROW),
        lambda: best_tree(8, noise=Gaussian(), loss=EPSILON, sensitivity=ONE_ROW),
        lambda: prefix_lower_bound(0),
    ],
)
def test_bad_arguments_are_told_apart(call):
    with pytest.raises(ArgumentError, match="Hint:"):
        call()
