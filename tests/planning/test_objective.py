"""Weights and objectives: what the best shares depend on."""

import numpy as np

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.planning.objective import OBJECTIVES
from pandas_dptree.planning.variance import level_variances
from tests.helpers_cases import each
from tests.helpers_planning import EPSILON, RHO, random_tree
from tests.helpers_privacy import ONE_ROW


@each("noise, loss", [(Gaussian(), RHO), (Laplace(), EPSILON)])
@each("objective", OBJECTIVES)
def test_leaves_are_measured_although_no_table_shows_them(noise, loss, objective):
    tree = Tree.from_branching([10, 10])
    shares = optimal_shares(
        tree, noise, loss, ONE_ROW, objective=objective, level_weights=np.array([0.0, 1.0, 0.0])
    )
    assert 0 < shares[-1] < 0.05
    assert shares[1] > 0.7


def test_more_weight_means_less_error():
    tree = random_tree(np.random.default_rng(4), depth=3)
    errors = []
    for weight in (0.1, 1.0, 10.0):
        shares = optimal_shares(
            tree, Gaussian(), RHO, ONE_ROW, level_weights=np.array([1.0, weight, 1.0, 1.0])
        )
        noise = Gaussian().noise_scales(RHO, ONE_ROW, shares)
        errors.append(level_variances(tree, Gaussian().variance(noise))[1])
    assert errors[0] > errors[1] > errors[2]
