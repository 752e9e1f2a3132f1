"""Distributions of groups on several levels, beside least squares of all measurements at once."""

import numpy as np
import pytest

from pandas_dptree.estimation import group_levels
from pandas_dptree.estimation.group_levels import consistent_groups, mean_variances_left, variances_left
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_cases import each
from tests.helpers_random import each_seed, rng

RAGGED = Tree.from_paths(np.array([[0, 0], [0, 1], [0, 2], [1, -1], [2, 0]]))
TREES = {"ragged": RAGGED, "even": Tree.from_branching([2, 2]), "deep": Tree.from_branching([1, 3, 1])}
NONE = -1
SIZES = np.array([5, 0, 7, 2, 4, 9])


def known_totals(tree, pattern):
    """Known totals of each level that belong together."""
    exact = [level.astype(np.int64) for level in tree.roll_up(SIZES[: tree.n_leaves])]
    known = [np.full(len(level), NONE) for level in exact]
    if pattern == "root":
        known[0] = exact[0]
    elif pattern == "middle":
        known[1][:1] = exact[1][:1]
    elif pattern == "all":
        known = exact
    for level, sums in zip(known, exact, strict=True):
        if pattern == "empty groups":
            level[sums == 0] = 0
    return known


def errors_of_bins(n_bins, seed):
    """A covariance of the cumulative counts: what the total explains, and the rest."""
    slopes = np.append(np.sort(rng(seed).random(n_bins - 1)), 1.0)
    root = rng(seed + 1).normal(size=(n_bins, n_bins))
    root[-1] = 0
    return slopes, root @ root.T, 3.0


def at_once(tree, slopes, rest, of_total, totals):
    """The matrix of the estimates of all nodes from all measurements, and the covariance of the estimates."""
    n_bins, n_leaves = len(slopes), tree.n_leaves
    rows = np.concatenate([np.concatenate(tree.roll_up(leaf))[None]
                           for leaf in np.eye(n_leaves)]).T  # fmt: skip
    design = np.kron(rows, np.eye(n_bins))
    known = np.concatenate(totals)
    tiny = 1e-9 * np.eye(n_bins)
    blocks = [tiny + (n != 0) * rest + (n < 0) * of_total * np.outer(slopes, slopes) for n in known]
    weights = np.zeros((len(known) * n_bins,) * 2)
    for node, block in enumerate(blocks):
        place = slice(node * n_bins, (node + 1) * n_bins)
        weights[place, place] = np.linalg.inv(block)
    covariance = np.linalg.inv(design.T @ weights @ design)
    return design @ covariance @ design.T @ weights, design @ covariance @ design.T


@pytest.mark.parametrize("name", TREES)
@each("pattern", ["nothing", "root", "middle", "all", "empty groups"])
def test_estimates_and_variances_are_those_of_all_measurements_at_once(name, pattern):
    tree, n_bins = TREES[name], 3
    totals = known_totals(tree, pattern)
    slopes, rest, of_total = errors_of_bins(n_bins, 1)
    matrix, covariance = at_once(tree, slopes, rest, of_total, totals)
    measured = [rng(level).normal(10, 3, (size, n_bins)) for level, size in enumerate(tree.level_sizes)]
    for level, known in zip(measured, totals, strict=True):
        level[known >= 0, -1] = known[known >= 0]
        level[known == 0] = 0
    expected = (matrix @ np.concatenate(measured).reshape(-1)).reshape(-1, n_bins)
    ((bins, levels),) = consistent_groups(tree, measured, totals, slopes)
    assert bins == slice(0, bins.stop) and bins.stop >= n_bins
    np.testing.assert_allclose(np.concatenate(levels), expected, rtol=1e-5, atol=1e-5)
    left = np.concatenate(variances_left(tree, totals))
    parts = [np.diag(rest), of_total * slopes**2]
    np.testing.assert_allclose(left @ parts, np.diag(covariance).reshape(-1, n_bins), rtol=1e-5, atol=1e-5)


def test_groups_are_the_sums_of_their_groups():
    measured = [rng(level).normal(10, 3, (size, 9)) for level, size in enumerate(RAGGED.level_sizes)]
    slopes = np.linspace(0.1, 1, 9)
    ((_, levels),) = consistent_groups(RAGGED, measured, known_totals(RAGGED, "nothing"), slopes)
    for level in range(RAGGED.depth):
        np.testing.assert_allclose(RAGGED.sum_children(level, levels[level + 1]), levels[level])


def test_estimates_do_not_depend_on_blocks(monkeypatch):
    measured = [rng(level).normal(10, 3, (size, 9)) for level, size in enumerate(RAGGED.level_sizes)]
    totals, slopes = known_totals(RAGGED, "root"), np.linspace(0.1, 1, 9)
    ((_, whole),) = consistent_groups(RAGGED, measured, totals, slopes)
    monkeypatch.setattr(group_levels, "_BLOCK", 2 * sum(RAGGED.level_sizes))
    blocks = list(consistent_groups(RAGGED, measured, totals, slopes))
    assert [(bins.start, bins.stop) for bins, _ in blocks] == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    for level, together in enumerate(whole):
        assert (np.concatenate([each[level] for _, each in blocks], axis=1) == together).all()


def test_a_single_level_keeps_its_variances():
    forest = Tree((), n_roots=3)
    (left,) = variances_left(forest, [np.array([-1, 4, 0])])
    assert left.tolist() == [[1, 1], [1, 0], [0, 0]]
    everything = np.ones(3, dtype=bool)
    totals = [np.array([-1, 4, 0]), np.array([5, 4, 0]), np.zeros(3, dtype=int)]
    shown = [everything, np.array([False, True, True]), everything]
    means = mean_variances_left([left] * 3, totals, shown)
    assert means.tolist() == [[1, 1], [1, 0], [2 / 3, 1 / 3]]


@each_seed(3, 40)
def test_less_is_left_the_more_is_measured(seed):
    sizes = rng(seed).integers(1, 5, 2)
    tree = Tree.from_branching(sizes.tolist())
    left = variances_left(tree, [np.full(size, -1) for size in tree.level_sizes])
    assert all(((each > 0) & (each < 1)).all() for each in left)
    assert all((each[:, 0] == each[:, 1]).all() for each in left)
    # a level of its own, and the sum over the next ones
    alone = variances_left(tree.truncated(1), [np.full(size, -1) for size in tree.level_sizes[:2]])
    assert all((more < less).all() for more, less in zip(left, alone, strict=False))
