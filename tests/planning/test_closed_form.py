"""The best split of a uniform tree, in closed form."""

import numpy as np
import pytest

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.planning.levels import optimal_shares
from tests.helpers_cases import each
from tests.helpers_planning import RHO, cost_of
from tests.helpers_privacy import ONE_ROW


@each(
    "objective, expected",
    [("cells", [0.061, 0.101, 0.198, 0.641]), ("levels", [0.195, 0.230, 0.252, 0.323])],
)
def test_gaussian_split_of_a_uniform_tree_is_the_closed_form(objective, expected):
    shares = optimal_shares(Tree.from_branching([2, 3, 4]), Gaussian(), RHO, ONE_ROW, objective=objective)
    np.testing.assert_allclose(shares, expected, atol=6e-4)


@each("branching", [[2, 3, 4], [50, 60, 30], [2] * 8, [1, 5, 1, 3]])
@each("objective", ["cells", "levels"])
def test_gaussian_split_of_a_uniform_tree_attains_the_singular_value_bound(branching, objective):
    tree = Tree.from_branching(branching)
    sizes = np.array(tree.level_sizes, dtype=float)
    weights = np.ones(len(sizes)) / len(sizes) if objective == "levels" else sizes / sizes.sum()
    # The workload's Gram matrix is sum_l u_l A_l' A_l. Its eigenvalues, level by level: sum of the u_k s_k
    # from l down, as often as level l has more nodes than the one above.
    leaves = sizes[-1] / sizes
    eigenvalues = np.cumsum((weights / sizes * leaves)[::-1])[::-1]
    bound = (np.diff(sizes, prepend=0) * np.sqrt(eigenvalues)).sum() ** 2 / sizes[-1] / (2 * RHO.rho)
    shares = optimal_shares(tree, Gaussian(), RHO, ONE_ROW, objective=objective)
    assert cost_of(tree, Gaussian(), RHO, shares, objective) == pytest.approx(bound, rel=1e-9)
