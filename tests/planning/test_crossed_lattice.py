"""The expected error of margins where none has cells of two ragged axes."""

import numpy as np

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.planning.crossed_lattice import Lattice, ragged_axes, wanted_margins
from tests.helpers_cases import each
from tests.helpers_crossed_splits import DEEPER, RAGGED, WIDER, dense_variances, uniform_product
from tests.helpers_random import each_seed

TWO, CHAIN = Tree.from_branching([2, 2]), Tree.from_branching([1, 2])
LISTS = [
    ((TWO, Tree.from_branching([3])), None),
    ((CHAIN, Tree.from_branching([3]), Tree.from_branching([1])), None),
    ((DEEPER, CHAIN), None),
    ((TWO, RAGGED), None),
    ((RAGGED, WIDER), ((0, 0), (0, 1), (0, 2), (1, 0), (2, 0))),
    ((RAGGED, DEEPER, TWO), ((0, 1, 1), (0, 3, 0), (1, 0, 2), (2, 0, 0))),
    ((RAGGED, TWO, DEEPER), ((0, 1, 2), (2, 2, 0))),
    ((RAGGED, WIDER, DEEPER), ((0, 0, 2), (0, 2, 0), (1, 0, 0))),
    ((RAGGED,), None),
]


@each_seed(2, 12)
@each("axes, shown", LISTS)
def test_variances_and_gradient_are_those_of_dense_matrices(seed, axes, shown):
    rng = np.random.default_rng(seed)
    product = ProductTree(axes, shown)
    zeros = [None] * len(axes)
    lattice = Lattice(product, ragged_axes(product, zeros), zeros)
    useful, needed = wanted_margins(product)
    precisions = np.where(useful & (rng.random(len(useful)) < 0.7), rng.exponential(size=len(useful)), 0.0)
    precisions[needed] += 0.1
    with np.errstate(divide="ignore"):
        expected = dense_variances(product, 1 / precisions)
    means, vjp = lattice.means_and_vjp(np.stack([precisions, 2 * precisions], axis=1))
    listed = np.array([product.n_listed(level) > 0 for level in range(len(useful))])
    np.testing.assert_allclose(means[listed, 0], expected[listed], rtol=1e-9)
    np.testing.assert_allclose(2 * means[:, 1], means[:, 0])
    weights = rng.random(len(useful)) * listed
    gradient = vjp(np.stack([weights, weights], axis=1))[:, 0]
    direction = rng.random(len(useful)) * (precisions > 0)
    step = 1e-6 * direction[:, None]
    ahead, behind = (lattice.means_and_vjp(precisions[:, None] + sign * step)[0] for sign in (1, -1))
    assert np.isclose(gradient @ direction, weights @ (ahead - behind)[:, 0] / 2e-6, rtol=1e-5)


def test_structural_zeros_make_an_axis_ragged():
    product = uniform_product([3], [2])
    flags = [np.array([False]), np.array([True, False, False])]
    assert ragged_axes(product, [flags, None]) == [0]
    assert ragged_axes(product, [None, flags]) == [1]
    assert ragged_axes(product, [flags, flags]) is None
    found, _ = Lattice(product, [0], [flags, None]).means_and_vjp(np.ones((4, 1)))
    kept, _ = Lattice(uniform_product([2], [2]), [], [None, None]).means_and_vjp(np.ones((4, 1)))
    np.testing.assert_allclose(found, kept * [[1], [1], [2 / 3], [2 / 3]])  # the mean has cells of variance 0


def test_margins_that_help_and_those_that_are_needed():
    product = uniform_product([2, 2], [2], shown=((0, 1), (1, 0)))
    useful, needed = wanted_margins(product)
    assert [product.margins[level] for level in np.flatnonzero(useful)] == [(0, 0), (0, 1), (1, 0)]
    assert [product.margins[level] for level in np.flatnonzero(needed)] == [(0, 1), (1, 0)]


def test_an_axis_counts_as_ragged_only_if_a_margin_has_its_cells():
    two = ProductTree((RAGGED, WIDER))
    assert ragged_axes(two, [None, None]) is None
    assert ragged_axes(ProductTree((RAGGED, WIDER), ((0, 2), (2, 0))), [None, None]) == [0, 1]
    assert ragged_axes(ProductTree((RAGGED.truncated(1), WIDER)), [None, None]) == [1]
