"""Joint cumulants of nodes and ancestors, against the contrasts of the dense least-squares matrix."""

import numpy as np
import pytest

from pandas_dptree.estimation.joint_cumulants import cumulants_of_difference, joint_cumulants
from pandas_dptree.estimation.least_squares import least_squares, propagate
from tests.helpers_estimation import random_problem, random_tree


def contrasts(tree, variances):
    """The coefficient of each measurement in each estimate, from unit vectors: shape (nodes, nodes)."""
    n = tree.n_nodes
    ends = np.cumsum(tree.level_sizes)[:-1]
    noisy = [
        np.broadcast_to(each > 0, size) for each, size in zip(variances.noise, tree.level_sizes, strict=True)
    ]
    columns = [
        np.concatenate(least_squares(tree, np.split(unit, ends), variances))
        if here
        else np.zeros(n)  # of a known value, whose coefficient does not matter
        for unit, here in zip(np.eye(n), np.concatenate(noisy), strict=True)
    ]
    return np.column_stack(columns)


def flat(tree, levels):
    return np.concatenate(
        [np.broadcast_to(each, n) for each, n in zip(levels, tree.level_sizes, strict=True)]
    )


def world(seed):
    """A small tree with chains, unmeasured levels and nodes, and known ones; its noise has any cumulants."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, max_depth=5, max_leaves=14)
    _, noise, _ = random_problem(rng, tree, known_share=0.3 * (seed % 3 > 0))
    variances = propagate(tree, noise)
    second = [np.where(np.isfinite(each), each, 0.0) for each in variances.noise]
    fourth = [each**2 * rng.uniform(-0.5, 4, each.shape) for each in second]
    return rng, tree, variances, second, fourth


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("of", ["parent", 0, 1])
def test_the_cumulants_of_a_node_with_its_ancestor_are_those_of_the_dense_matrix(seed, of):
    rng, tree, variances, second, fourth = world(seed)
    dense = contrasts(tree, variances)
    of = of if of == "parent" else min(of, tree.depth)
    renew = [of == "parent" or level <= of for level in range(tree.depth)]
    result = joint_cumulants(tree, variances, list(zip(second, fourth, strict=True)), renew)
    start = np.concatenate([[0], np.cumsum(tree.level_sizes)])
    ancestor = [np.arange(tree.n_roots)]
    for level in range(tree.depth):
        here = start[level] + np.arange(tree.level_sizes[level]) if renew[level] else ancestor[-1]
        counts = np.broadcast_to(tree.child_counts[level], tree.level_sizes[level])
        ancestor.append(np.repeat(here, counts))
    for level in range(1, tree.depth + 1):
        mine = dense[start[level] : start[level + 1]]
        above = dense[ancestor[level]]
        for place, (k, order) in enumerate([(k, n) for n in (2, 4) for k in range(n + 1)]):
            expected = (mine ** (order - k) * above**k) @ flat(tree, second if order == 2 else fourth)
            np.testing.assert_allclose(
                np.broadcast_to(result[level][place], len(mine)), expected, rtol=1e-7, atol=1e-7
            )
        t = rng.uniform(0, 2, len(mine))
        variance, cumulant = cumulants_of_difference(result[level], t)
        contrast = mine - t[:, None] * above
        np.testing.assert_allclose(variance, contrast**2 @ flat(tree, second), rtol=1e-7, atol=1e-7)
        expected = np.maximum(contrast**4 @ flat(tree, fourth), 0)
        np.testing.assert_allclose(cumulant, expected, rtol=1e-7, atol=1e-6)
