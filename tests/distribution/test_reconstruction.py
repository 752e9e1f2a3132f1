"""Prefix sums and intervals rebuilt from noisy trees: against dense algebra, closed forms and simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.distribution.intervals import (
    Queries,
    cover,
    expected_maximum_bound,
    interval_estimates,
)
from pandas_dptree.distribution.reconstruction import (
    average_covers,
    average_covers_variances,
    least_squares_prefixes,
    left_cover,
    left_cover_variances,
)
from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.hierarchy.tree import Tree
from tests.reference import dense_least_squares, membership

branchings = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def total_known(branching: list[int], *levels: float) -> tuple[Tree, list[float]]:
    """Make a level-uniform tree with a known total and the variances of its other levels."""
    return Tree.from_branching(branching), [0.0, *levels]


def draw_noise(rng: np.random.Generator, tree: Tree, scales: list[float], runs: int) -> list[np.ndarray]:
    """Draw Laplace noise for every node, many times: arrays of shape (runs, level size)."""
    return [
        rng.laplace(0, 1, (runs, size)) * scale for size, scale in zip(tree.level_sizes, scales, strict=True)
    ]


def coefficients(function: Callable[[list[np.ndarray]], np.ndarray], tree: Tree) -> list[np.ndarray]:
    """Read the matrix of a linear function of the level values off its values at unit vectors."""
    matrices = []
    for level, size in enumerate(tree.level_sizes):
        columns = []
        for node in range(size):
            values = [np.zeros(n) for n in tree.level_sizes]
            values[level][node] = 1.0
            columns.append(function(values))
        matrices.append(np.stack(columns, axis=1))
    return matrices


def variance_of(matrices: list[np.ndarray], noise: list[float]) -> np.ndarray:
    return sum((matrix**2).sum(axis=1) * v for matrix, v in zip(matrices, noise, strict=True))


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
    assert np.allclose(least_squares_prefixes(tree, measured, noise), exact)
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
    assert np.allclose(least_squares_prefixes(tree, given_levels, noise), np.cumsum(leaves))


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
        (lambda v: least_squares_prefixes(tree, v, noise), best),
    ]
    for estimate, variances in ways:
        # linear, so its matrix tells the error of every run
        errors = sum(d @ m.T for d, m in zip(drawn, coefficients(estimate, tree), strict=True))
        simulated = (errors**2).mean()
        assert simulated == pytest.approx(variances.mean(), rel=0.02)
        assert simulated != pytest.approx(1.1 * variances.mean(), rel=0.02)


@given(branchings, st.data(), st.booleans())
def test_cover_is_a_partition_and_small(branching: list[int], data: st.DataObject, with_root: bool) -> None:
    tree = Tree.from_branching(branching)
    start = data.draw(st.integers(0, tree.n_leaves))
    stop = data.draw(st.integers(start, tree.n_leaves))
    found = cover(tree, start, stop, with_root=with_root)
    widths = [tree.n_leaves // size for size in tree.level_sizes]
    bins = [b for level, first, last in found for b in range(first * widths[level], last * widths[level])]
    assert bins == list(range(start, stop))
    for level, n in enumerate(branching, start=1):
        used = sum(nodes.stop - nodes.first for nodes in found if nodes.level == level)
        whole_range = level == 1 and not with_root and stop - start == tree.n_leaves
        assert used <= (n if whole_range else 2 * (n - 1))


@given(st.lists(st.integers(2, 3), min_size=1, max_size=3), st.data())
def test_cover_has_the_fewest_nodes(branching: list[int], data: st.DataObject) -> None:
    tree = Tree.from_branching(branching)
    start = data.draw(st.integers(0, tree.n_leaves - 1))
    stop = data.draw(st.integers(start + 1, tree.n_leaves))
    widths = [tree.n_leaves // size for size in tree.level_sizes]
    fewest = {start: 0}
    for here in range(start, stop):
        for width in widths:
            if here % width == 0 and here + width <= stop:
                fewest[here + width] = min(fewest.get(here + width, 10**6), fewest[here] + 1)
    assert sum(nodes.stop - nodes.first for nodes in cover(tree, start, stop)) == fewest[stop]


@given(branchings, st.data(), st.sampled_from([0.0, 2.0]))
def test_interval_variances_by_brute_force(branching: list[int], data: st.DataObject, root: float) -> None:
    tree = Tree.from_branching(branching)
    start = data.draw(st.integers(0, tree.n_leaves))
    stop = data.draw(st.integers(start, tree.n_leaves))
    noise = [root, *(float(level + 2) for level in range(tree.depth))]

    def value(values: list[np.ndarray]) -> np.ndarray:
        ways = interval_estimates(tree, values, noise, start, stop)
        return np.array([estimate.value for estimate in ways])

    ways = interval_estimates(tree, [np.zeros(n) for n in tree.level_sizes], noise, start, stop)
    variances = [way.variance for way in ways]
    assert np.allclose(variance_of(coefficients(value, tree), noise), variances)
    assert variances == sorted(variances)


def largest_errors(drawn: list[np.ndarray], tree: Tree, queries: Queries, *, root: bool) -> np.ndarray:
    """Largest absolute error of each run, every query from its own cover."""
    bins = tree.n_leaves
    starts = [0] if queries == "prefixes" else range(bins)
    largest = np.zeros(len(drawn[-1]))
    sums = [np.cumsum(np.insert(level, 0, 0, axis=1), axis=1) for level in drawn]
    for start in starts:
        for stop in range(start + 1, bins + 1):
            found = cover(tree, start, stop, with_root=root)
            error = sum(sums[n.level][:, n.stop] - sums[n.level][:, n.first] for n in found)
            largest = np.maximum(largest, np.abs(error))
    return largest


@pytest.mark.parametrize("queries", ["prefixes", "intervals"])
@pytest.mark.parametrize("branching", [[2] * 6, [4, 4, 4], [40], [2, 20], [1, 3], [2]])
def test_expected_maximum_is_bounded(branching: list[int], queries: Queries) -> None:
    rng = np.random.default_rng(7)
    tree, runs = Tree.from_branching(branching), 300
    levels = [float(len(branching) + 1)] * len(branching)
    for root in (0.0, levels[0], math.inf):
        scales = [root, *levels]
        finite = [0.0 if root == math.inf else root, *levels]
        bound = expected_maximum_bound(tree, scales, queries)
        mean = largest_errors(draw_noise(rng, tree, finite, runs), tree, queries, root=root < math.inf).mean()
        assert mean < bound < 12 * mean


def test_expected_maximum_of_discrete_noise() -> None:
    """A coarse scale, where discrete and continuous Laplace noise differ most."""
    rng = np.random.default_rng(8)
    tree = Tree.from_branching([2, 2, 2, 2])
    for scale in (0.3, 1.0):
        stop = 1 - math.exp(-1 / scale)
        drawn = [
            (rng.geometric(stop, (2000, size)) - rng.geometric(stop, (2000, size))).astype(float)
            for size in tree.level_sizes
        ]
        mean = largest_errors(drawn, tree, "prefixes", root=True).mean()
        assert mean < expected_maximum_bound(tree, [scale] * 5)


def test_expected_maximum_of_the_binary_tree_grows_with_the_square_of_its_levels() -> None:
    for depth in (2, 4, 10, 20, 40, 60):
        levels = depth + 1
        tree, scales = Tree.from_branching([2] * depth), [float(levels)] * (levels)
        explicit = math.sqrt(2) * math.log(3) * levels**2
        assert expected_maximum_bound(tree, scales) <= explicit
        assert expected_maximum_bound(tree, scales, "intervals") <= 2 * explicit


def test_expected_maximum_of_known_counts_is_zero() -> None:
    assert expected_maximum_bound(Tree.from_branching([3]), [0.0, 0.0]) == 0.0
    assert expected_maximum_bound(Tree.from_branching([]), [2.0]) >= 2.0


def test_millions_of_bins_take_one_step_per_level() -> None:
    tree = Tree.from_branching([16] * 5)
    noise = [0.0, *[2.0] * 5]
    assert left_cover_variances(tree, noise).mean() == pytest.approx(5 * 15)
    assert average_covers_variances(tree, noise).shape == (16**5,)


TREE = Tree.from_branching([2, 2])
LEVELS = [np.zeros(size) for size in TREE.level_sizes]
NOISE = [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("argument", "call"),
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
        ("measurements", lambda: least_squares_prefixes(TREE, [*LEVELS[:2], np.zeros(3)], NOISE)),
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
