"""Errors of cumulative sums and ranges after least squares, beside dense algebra and closed forms."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given

from pandas_dptree.distribution.cumulative import (
    cumulative_variances,
    mean_energies,
    padded_variances,
    range_variances,
)
from pandas_dptree.distribution.optimal import best_tree
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_distribution import branchings
from tests.helpers_privacy import ONE_ROW
from tests.reference import membership
from tests.strategies import trees

EPSILON, RHO = PrivacyLoss(epsilon=1.0), PrivacyLoss(rho=0.5)


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


def dense_covariance(tree: Tree, noise: list[np.ndarray]) -> np.ndarray:
    """Solve generalised least squares within what the known nodes leave free; sums of 0 … n leaves."""
    rows = np.concatenate(membership(tree))
    v = np.concatenate([np.broadcast_to(level, n) for level, n in zip(noise, tree.level_sizes, strict=True)])
    known, measured = v == 0, (v > 0) & np.isfinite(v)
    basis = scipy.linalg.null_space(rows[known]) if known.any() else np.eye(tree.n_leaves)
    design = (rows @ basis)[measured]
    leaves = basis @ np.linalg.inv(design.T @ (design / v[measured, None])) @ basis.T
    sums = np.tri(tree.n_leaves + 1, tree.n_leaves, -1)
    return sums @ leaves @ sums.T


def numeric_energies(branching: list[int], n_bins: int) -> np.ndarray:
    """Project the indicator of the first bins on the functions that are constant on each level's nodes."""
    indicator = (np.arange(math.prod(branching)) < n_bins).astype(float)
    within = [
        (indicator.reshape(math.prod(branching[:level]), -1).mean(axis=1) ** 2).sum()
        * math.prod(branching[level:])
        for level in range(len(branching) + 1)
    ]
    return np.diff(within, prepend=0.0)


def leaves_below(branching: list[int]) -> np.ndarray:
    """Count the leaves below a node of each level: shape (n_levels, 1), for one tree."""
    return np.cumprod([1.0, *branching[::-1]])[::-1, None]


def uniform_variances(branching: list[int], noise: list[float], bins: np.ndarray) -> np.ndarray:
    """The closed form for uniform trees, whose leaves all count as unknown."""
    leaves = leaves_below(branching)
    with np.errstate(divide="ignore"):
        spread = 1 / np.cumsum((leaves[:, 0] / noise)[::-1])[::-1]
    rest = bins % leaves
    return spread @ np.diff(bins - rest * (1 - rest / leaves), axis=0, prepend=0.0)


@given(branchings, st.data())
def test_mean_energies_are_those_of_projections(branching, data):
    n_bins = data.draw(st.integers(1, math.prod(branching)))
    expected = np.mean([numeric_energies(branching, t) for t in range(1, n_bins + 1)], axis=0)
    np.testing.assert_allclose(mean_energies(leaves_below(branching), n_bins)[:, 0], expected, atol=1e-12)


def test_energies_of_a_tree_too_large_to_list():
    assert mean_energies(leaves_below([1000] * 4), 10**12).sum() == pytest.approx((10**12 + 1) / 2)


@given(noisy_trees())
def test_sums_and_ranges_agree_with_dense_least_squares(case):
    tree, noise = case
    covariance = dense_covariance(tree, noise)
    np.testing.assert_allclose(cumulative_variances(tree, noise), np.diag(covariance)[1:], atol=1e-9)
    starts, stops = np.triu_indices(tree.n_leaves + 1)
    variance = np.diag(covariance)
    expected = variance[starts] + variance[stops] - 2 * covariance[starts, stops]
    np.testing.assert_allclose(range_variances(tree, noise, starts, stops), expected, atol=1e-9)


@given(branchings, st.data())
def test_uniform_trees_in_closed_form(branching, data):
    tree, n_levels = Tree.from_branching(branching), len(branching) + 1
    noise = data.draw(st.lists(st.floats(0.25, 4.0), min_size=n_levels, max_size=n_levels))
    noise[0] = data.draw(st.sampled_from([noise[0], 0.0, math.inf]))
    every = np.arange(1, tree.n_leaves + 1)
    exact = cumulative_variances(tree, noise)
    np.testing.assert_allclose(uniform_variances(branching, noise, every), exact, atol=1e-12)
    n_bins = data.draw(st.integers(1, tree.n_leaves))
    padded = [
        np.where(np.arange(n) * (tree.n_leaves // n) < n_bins, v, 0.0)
        for v, n in zip(noise, tree.level_sizes, strict=True)
    ]
    expected = cumulative_variances(tree, padded)[:n_bins].mean()
    with np.errstate(divide="ignore"):
        precisions = 1 / np.array(noise)[:, None]
        padded = padded_variances(leaves_below(branching), precisions, n_bins)
    assert padded == pytest.approx(expected, abs=1e-12)
    assert expected <= exact[:n_bins].mean() + 1e-12  # to know the padding only helps


def test_ranges_on_a_tree_too_large_to_list():
    tree, noise = Tree.from_branching([100] * 4), [0.0, 3.0, 2.0, 1.0, 1.0]
    bins = np.array([1, 99, 12_345_678, 99_999_999, 100_000_000])
    np.testing.assert_allclose(
        range_variances(tree, noise, np.zeros(5), bins),
        uniform_variances([100] * 4, noise, bins),
        atol=1e-9,
    )


@each(
    "call",
    [
        lambda: cumulative_variances(Tree.from_branching([2]), [1.0, [1.0, -1.0]]),
        lambda: cumulative_variances(Tree.from_branching([2]), [1.0, [1.0, 1.0, 1.0]]),
        lambda: cumulative_variances(Tree.from_branching([2]), [1.0]),
        lambda: cumulative_variances(Tree.from_branching([2]), [1.0, math.inf]),
        lambda: range_variances(Tree.from_branching([2]), [1.0, 1.0], [1], [0]),
        lambda: range_variances(Tree.from_branching([2]), [1.0, 1.0], [0], [3]),
        lambda: range_variances(Tree.from_branching([2]), [1.0, 1.0], [-1], [0]),
        lambda: best_tree(0, noise=Laplace(), loss=EPSILON, sensitivity=ONE_ROW),
        lambda: best_tree(2.5, noise=Laplace(), loss=EPSILON, sensitivity=ONE_ROW),
        lambda: best_tree(8, noise=Gaussian(), loss=EPSILON, sensitivity=ONE_ROW),
    ],
)
def test_bad_arguments_are_named(call):
    with pytest.raises(ArgumentError, match="Hint:"):
        call()
