"""Cumulative sums from noisy trees: against dense algebra, closed forms and simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.theory.range_estimates import cover, expected_maximum_bound, interval_estimates
from pandas_dptree.theory.reconstruction import (
    average_covers,
    average_covers_variances,
    least_squares_sums,
    left_cover,
    left_cover_variances,
)
from tests.helpers_cases import each
from tests.helpers_distribution import branchings, coefficients, draw_noise, variance_of
from tests.reference import dense_least_squares, membership


def total_known(branching: list[int], *levels: float) -> tuple[Tree, list[float]]:
    """Make a level-uniform tree with a known total and the variances of its other levels."""
    return Tree.from_branching(branching), [0.0, *levels]


@given(branchings, st.data())
def test_exact_counts_give_exact_prefixes(branching: list[int], data: st.DataObject) -> None:
    tree = Tree.from_branching(branching)
    counts = np.array(
        data.draw(st.lists(st.integers(0, 99), min_size=tree.n_leaves, max_size=tree.n_leaves)),
        dtype=np.int64,
    )
    levels = list(tree.roll_up(counts))
    root = data.draw(st.sampled_from([0.0, 2.0, math.inf]))
    noise = [root, *(float(level + 1) for level in range(tree.depth))]
    measured = [None if root == math.inf else levels[0], *levels[1:]]
    exact = np.cumsum(counts)
    assert np.array_equal(left_cover(tree, measured), exact)
    assert np.allclose(average_covers(tree, measured, noise), exact)
    assert np.allclose(least_squares_sums(tree, measured, noise), exact)
    start = data.draw(st.integers(0, tree.n_leaves))
    stop = data.draw(st.integers(start, tree.n_leaves))
    ways = interval_estimates(tree, measured, noise, start, stop)
    assert {way.value for way in ways} == {float(counts[start:stop].sum())}
    assert len(ways) == (2 if root == math.inf else 3)


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3))
def test_left_cover_is_that_of_the_lemma(branching: list[int]) -> None:
    """The nodes that sum up prefix t are those of `cover(0, t)`, each once."""
    tree = Tree.from_branching(branching)
    matrices = coefficients(lambda values: left_cover(tree, values), tree)
    for t in range(1, tree.n_leaves + 1):
        found = [np.zeros(size) for size in tree.level_sizes]
        for level, first, stop in cover(tree, 0, t):
            found[level][first:stop] = 1.0
        for matrix, expected in zip(matrices, found, strict=True):
            assert np.array_equal(matrix[t - 1], expected)


@given(branchings, st.sampled_from([0.0, 3.0]), st.lists(st.floats(0.1, 9), min_size=4, max_size=4))
def test_variances_are_those_of_the_linear_estimates(
    branching: list[int], root: float, levels: list[float]
) -> None:
    tree = Tree.from_branching(branching)
    noise = [root, *levels[: tree.depth]]
    left = coefficients(lambda values: left_cover(tree, values), tree)
    assert np.allclose(variance_of(left, noise), left_cover_variances(tree, noise))
    for weights in ("precision", "equal"):
        both = coefficients(lambda v, w=weights: average_covers(tree, v, noise, weights=w), tree)
        assert np.allclose(variance_of(both, noise), average_covers_variances(tree, noise, weights=weights))


@given(branchings, st.sampled_from([0.0, 3.0, math.inf]), st.lists(st.floats(0.1, 9), min_size=4, max_size=4))
def test_more_measurements_are_better(branching: list[int], root: float, levels: list[float]) -> None:
    tree = Tree.from_branching(branching)
    noise = [root, *levels[: tree.depth]]
    left = left_cover_variances(tree, noise)
    both = average_covers_variances(tree, noise)
    # least squares, densely: a known total as one of tiny variance, an unknown one left out
    dense = [np.array([max(v, 1e-7)]) for v in noise]
    measured = [
        np.zeros(size) if np.isfinite(v) else None for size, v in zip(tree.level_sizes, noise, strict=True)
    ]
    weights = [
        np.zeros(len(m)) if values is None else np.full(len(m), 1 / v[0])
        for m, values, v in zip(membership(tree), measured, dense, strict=True)
    ]
    normal = sum(m.T @ (w[:, None] * m) for m, w in zip(membership(tree), weights, strict=True))
    prefixes = np.tril(np.ones((tree.n_leaves, tree.n_leaves)))
    best = np.diag(prefixes @ np.linalg.inv(normal) @ prefixes.T)
    assert (best <= both + 1e-5).all()
    assert (both <= left * (1 + 1e-9) + 1e-12).all()
    if np.isfinite(root):
        assert (both <= average_covers_variances(tree, noise, weights="equal") + 1e-9).all()


@given(branchings, st.integers(0, 2**32 - 1), st.sampled_from([2.0, math.inf]))
def test_least_squares_prefixes_against_dense_algebra(branching: list[int], seed: int, root: float) -> None:
    rng = np.random.default_rng(seed)
    tree = Tree.from_branching(branching)
    noise = [root, *rng.uniform(0.1, 5, tree.depth)]
    measured = [rng.normal(10, 5, size) for size in tree.level_sizes]
    given_levels = [None if root == math.inf else measured[0], *measured[1:]]
    leaves = dense_least_squares(tree, given_levels, [np.array([v]) for v in noise])[0][-1]
    assert np.allclose(least_squares_sums(tree, given_levels, noise), np.cumsum(leaves))


def test_proposition_b1_and_lemma_iv4() -> None:
    """Equal noise v, branching b, m levels: K(b − 1)/4 · Σ_i v / Σ_j b^−j in all, half of it one-sided."""
    for b, m in ((2, 5), (3, 4), (16, 2), (7, 1)):
        tree, noise = total_known([b] * m, *[8.0] * m)
        refined = [8.0 / sum(b**-j for j in range(m - i + 1)) for i in range(1, m + 1)]
        assert np.allclose(np.concatenate(propagate(tree, noise).subtree[1:]), refined)
        variances = average_covers_variances(tree, noise, weights="equal")
        assert variances.sum() == pytest.approx(tree.n_leaves * (b - 1) / 4 * sum(refined))


@given(branchings, st.lists(st.floats(0.1, 9), min_size=4, max_size=4))
def test_mean_variances_in_closed_form(branching: list[int], levels: list[float]) -> None:
    """Theorem IV.1 and Lemma IV.4 for any branching and any level variances."""
    tree, noise = total_known(branching, *levels[: len(branching)])
    fan = np.array(branching) - 1
    assert left_cover_variances(tree, noise).mean() == pytest.approx((fan * noise[1:]).sum() / 2, abs=1e-12)
    subtree = np.concatenate(propagate(tree, noise).subtree[1:])
    equal = average_covers_variances(tree, noise, weights="equal")
    assert equal.mean() == pytest.approx((fan * subtree).sum() / 4, abs=1e-12)


def test_padding_known_to_be_empty_costs_nothing() -> None:
    """Seven bins on eight leaves: nodes of padding are known zeros, and the last prefixes are the total."""
    tree = Tree.from_branching([2, 2, 2])
    noise = [np.zeros(1), np.full(2, 4.0), np.full(4, 4.0), np.append(np.full(6, 4.0), [0.0, 0.0])]
    noise[2][3] = 0.0
    counts = np.array([5, 1, 0, 2, 7, 3, 0, 0])
    rng = np.random.default_rng(5)
    noisy = [
        level + np.where(v > 0, rng.normal(0, 2, len(level)), 0)
        for level, v in zip(tree.roll_up(counts), noise, strict=True)
    ]
    assert left_cover_variances(tree, noise)[[5, 6, 7]].tolist() == [8.0, 8.0, 0.0]
    assert average_covers_variances(tree, noise)[5:].tolist() == [0.0, 0.0, 0.0]
    assert average_covers(tree, noisy, noise)[5:].tolist() == [18.0, 18.0, 18.0]
    assert [way.variance for way in interval_estimates(tree, noisy, noise, 0, 6)] == [0.0, 8.0, 8.0]


def test_simulated_errors_match_their_formulas() -> None:
    """Mean square prefix errors within 2 % of what the formulas say, for both ways and for least squares."""
    rng = np.random.default_rng(6)
    tree, scales, runs = Tree.from_branching([4, 3, 5]), [0.0, 3.0, 2.0, 4.0], 40_000
    noise = [2 * scale**2 for scale in scales]
    drawn = draw_noise(rng, tree, scales, runs)
    normal = sum(m.T @ m / max(v, 1e-7) for m, v in zip(membership(tree), noise, strict=True))
    prefixes = np.tril(np.ones((tree.n_leaves, tree.n_leaves)))
    best = np.diag(prefixes @ np.linalg.inv(normal) @ prefixes.T)
    ways: list[tuple[Callable[[list[np.ndarray]], np.ndarray], np.ndarray]] = [
        (lambda v: left_cover(tree, v), left_cover_variances(tree, noise)),
        (lambda v: average_covers(tree, v, noise), average_covers_variances(tree, noise)),
        (
            lambda v: average_covers(tree, v, noise, weights="equal"),
            average_covers_variances(tree, noise, weights="equal"),
        ),
        (lambda v: least_squares_sums(tree, v, noise), best),
    ]
    for estimate, variances in ways:
        # linear, so its matrix tells the error of every run
        errors = sum(d @ m.T for d, m in zip(drawn, coefficients(estimate, tree), strict=True))
        simulated = (errors**2).mean()
        assert simulated == pytest.approx(variances.mean(), rel=0.02)
        assert simulated != pytest.approx(1.1 * variances.mean(), rel=0.02)


def test_millions_of_bins_take_one_step_per_level() -> None:
    tree = Tree.from_branching([16] * 5)
    noise = [0.0, *[2.0] * 5]
    assert left_cover_variances(tree, noise).mean() == pytest.approx(5 * 15)
    assert average_covers_variances(tree, noise).shape == (16**5,)


TREE = Tree.from_branching([2, 2])
LEVELS = [np.zeros(size) for size in TREE.level_sizes]
NOISE = [0.0, 1.0, 1.0]


@each(
    "argument, call",
    [
        (
            "tree",
            lambda: left_cover(Tree.from_paths([[0, 0], [0, 1], [1, 0]]), [np.zeros(n) for n in (1, 2, 3)]),
        ),
        ("tree", lambda: cover(Tree.from_paths([[0, 0], [0, 1], [1, 0]]), 0, 1)),
        ("values", lambda: left_cover(TREE, LEVELS[:2])),
        ("values", lambda: left_cover(TREE, [LEVELS[0], None, LEVELS[2]])),
        ("values", lambda: left_cover(TREE, [*LEVELS[:2], np.zeros(3)])),
        ("values", lambda: left_cover(Tree.from_branching([]), [None])),
        ("noise_variances", lambda: left_cover_variances(TREE, [0.0, 1.0])),
        ("noise_variances", lambda: left_cover_variances(TREE, [0.0, -1.0, 1.0])),
        ("noise_variances", lambda: left_cover_variances(TREE, [0.0, 1.0, math.inf])),
        ("noise_variances", lambda: average_covers_variances(TREE, [0.0, math.nan, 1.0])),
        ("noise_variances", lambda: average_covers(TREE, LEVELS, [0.0, np.ones(3), 1.0])),
        ("weights", lambda: average_covers_variances(TREE, NOISE, weights="best")),  # type: ignore[arg-type]
        ("weights", lambda: average_covers_variances(TREE, [math.inf, 1.0, 1.0], weights="equal")),
        ("measurements", lambda: average_covers(TREE, [None, *LEVELS[1:]], NOISE)),
        ("measurements", lambda: least_squares_sums(TREE, [*LEVELS[:2], np.zeros(3)], NOISE)),
        ("measurements", lambda: interval_estimates(TREE, LEVELS[:2], NOISE, 0, 1)),
        ("start", lambda: cover(TREE, -1, 2)),
        ("start", lambda: cover(TREE, 0.0, 2)),  # type: ignore[arg-type]
        ("stop", lambda: cover(TREE, 3, 2)),
        ("stop", lambda: interval_estimates(TREE, LEVELS, NOISE, 0, 5)),
        ("noise_scales", lambda: expected_maximum_bound(TREE, [1.0, 1.0])),
        ("noise_scales", lambda: expected_maximum_bound(TREE, [1.0, -1.0, 1.0])),
        ("noise_scales", lambda: expected_maximum_bound(TREE, [1.0, math.inf, 1.0])),
        ("queries", lambda: expected_maximum_bound(TREE, NOISE, "all")),  # type: ignore[arg-type]
    ],
)
def test_errors_name_the_argument(argument: str, call: Callable[[], object]) -> None:
    with pytest.raises(ArgumentError, match=f"`{argument}`") as caught:
        call()
    assert caught.value.argument == argument
