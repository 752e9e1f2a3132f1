"""One concatenated hierarchy and separate tables, in place of crossed hierarchies."""

import numpy as np

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning import crossed_alternatives
from pandas_dptree.planning.crossed_alternatives import concatenated_variances, separate_variances
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_crossed_splits import RAGGED, WIDER, dense_variances, moves_of, uniform_product
from tests.helpers_privacy import ONE_ROW

RHO, EPSILON = PrivacyLoss(rho=0.1), PrivacyLoss(epsilon=1.0)
NESTED = [
    ((RAGGED, WIDER), [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]),
    ((Tree.from_branching([1, 2]), RAGGED), [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]),
]


@each("axes, path", NESTED)
@each("neighbors", ["add_remove", "replace"])
@each("noise, loss", [(Gaussian(), RHO), (Laplace(), EPSILON)])
def test_margins_off_the_path_are_sums_of_cells_of_the_concatenated_hierarchy(
    axes, path, neighbors, noise, loss
):
    product = ProductTree(axes)
    moves = moves_of(product, neighbors)
    chosen = np.isin(np.arange(9), [product.level_of(margin) for margin in path])
    first, second = axes
    copies = [np.tile(np.broadcast_to(own, size), first.n_leaves) for own, size in zip(
        second.child_counts, second.level_sizes, strict=False
    )]  # fmt: skip
    nested = Tree((*first.child_counts, *copies))
    of_path = moves.part(chosen)
    shares = optimal_shares(nested, noise, loss, of_path)
    variances = np.full(9, np.inf)
    variances[chosen] = noise.variance(noise.noise_scales(loss, of_path, shares))
    found = concatenated_variances(product, noise, loss, moves)
    np.testing.assert_allclose(found, dense_variances(product, variances), rtol=1e-9)


def test_large_hierarchies_are_split_as_uniform_ones(monkeypatch):
    product = uniform_product([2, 3], [4])
    cases = [(Gaussian(), RHO), (Laplace(), EPSILON)]
    searched = [concatenated_variances(product, *case, moves_of(product)) for case in cases]
    monkeypatch.setattr(crossed_alternatives, "_MOST_LEAVES", 1)
    quick = [concatenated_variances(product, *case, moves_of(product)) for case in cases]
    np.testing.assert_allclose(quick, searched, rtol=1e-3)


def test_separate_tables_share_the_budget_equally():
    product = uniform_product([2], [3], shown=((0, 1), (1, 1)))
    found = separate_variances(product, Gaussian(), RHO, ONE_ROW.on(4))
    np.testing.assert_allclose(found, [np.inf, 10, np.inf, 10])
    with_total = uniform_product([2], [3], shown=((0, 0), (1, 1)))
    replaced = separate_variances(with_total, Gaussian(), RHO, moves_of(with_total, "replace"))
    np.testing.assert_allclose(replaced, [10, np.inf, np.inf, 20])  # each by itself
