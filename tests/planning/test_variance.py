"""Expected errors of levels, beside dense least squares."""

import numpy as np
import pytest

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.planning.equal_subtrees import Orbits
from pandas_dptree.planning.variance import level_variances, level_variances_and_vjp
from tests.helpers_cases import each
from tests.helpers_planning import dense_level_variances, random_tree


@each("seed", range(200))
def test_level_variances_are_those_of_dense_least_squares(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 5)), widest=3)
    precisions = 10 ** rng.uniform(-2, 2, tree.depth + 1)
    precisions[:-1][rng.random(tree.depth) < 0.3] = 0
    with np.errstate(divide="ignore"):
        ours = level_variances(tree, 1 / precisions)
    np.testing.assert_allclose(ours, dense_level_variances(tree, precisions), rtol=1e-9)


def test_known_levels_have_no_variance_and_sharpen_the_others():
    tree = Tree.from_branching([2, 2])
    np.testing.assert_allclose(level_variances(tree, [0.0, np.inf, 1.0]), [0, 1, 0.75], rtol=1e-12)
    np.testing.assert_array_equal(level_variances(tree, [0.0, 0.0, 0.0]), [0, 0, 0])
    nearly = dense_level_variances(tree, [1e8, 0, 1])
    np.testing.assert_allclose(level_variances(tree, [0.0, np.inf, 1.0])[1:], nearly[1:], rtol=1e-6)


@each("seed", range(30))
def test_gradient_is_that_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 5)))
    orbits, levels = Orbits.of(tree), tree.depth + 1
    weights = rng.random((levels, 1))
    precisions = rng.uniform(0.5, 2, (levels, 1))
    precisions[:-1][rng.random(tree.depth) < 0.3] = 0
    gradient = level_variances_and_vjp(orbits, precisions)[1](weights)[:, 0]

    def value(level, step):
        moved = precisions.copy()
        moved[level] += step
        return float((weights * level_variances_and_vjp(orbits, moved)[0]).sum())

    for level in range(levels):
        h = 1e-4  # one-sided, of second order: an unmeasured level has nothing to lose
        slope = (-3 * value(level, 0) + 4 * value(level, h) - value(level, 2 * h)) / (2 * h)
        assert gradient[level] == pytest.approx(slope, rel=1e-5, abs=1e-6 * abs(gradient).max())


def test_several_precisions_are_dealt_with_side_by_side():
    tree = random_tree(np.random.default_rng(1), depth=4)
    orbits = Orbits.of(tree)
    rng = np.random.default_rng(2)
    precisions, weights = rng.random((5, 7)) + 0.1, rng.random((5, 7))
    means, vjp = level_variances_and_vjp(orbits, precisions)
    gradient = vjp(weights)
    for i in range(7):
        one, one_vjp = level_variances_and_vjp(orbits, precisions[:, [i]])
        np.testing.assert_allclose(means[:, [i]], one, rtol=1e-14)
        np.testing.assert_allclose(gradient[:, [i]], one_vjp(weights[:, [i]]), rtol=1e-13)
