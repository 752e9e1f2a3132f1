"""Least squares of crossed hierarchies beside dense linear algebra, and beside simulated releases."""

from functools import reduce

import numpy as np
import pytest

from pandas_dptree.estimation.crossed import crossed_squares
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_crossed import dense_crossed, noisy_margins, random_known, random_product
from tests.helpers_random import each_seed

RAGGED = Tree((np.array([2]), np.array([1, 3])))
UNEVEN = Tree((np.array([3]), np.array([2, 1, 1])))
UNIFORM = Tree.from_branching([2, 2])
FLAT = Tree.from_branching([3])
ONE = Tree(())
CHAIN = Tree((np.array([2]), np.array([1, 1])))


def compare(rng, product, variances, known=None, table=None):
    """Compare estimates, variances and mean variances with those of dense linear algebra."""
    known = CrossedKnown.nothing(product) if known is None else known
    table = rng.poisson(5, product.n_leaves) if table is None else table
    variances = np.where(known.levels, np.inf, variances)
    measurements = noisy_margins(rng, product, table, variances, known)
    squares = crossed_squares(product, variances, known)
    estimates = squares.estimate(measurements)
    dense = dense_crossed(product, variances, measurements, known)
    for level, (ours, theirs) in enumerate(zip(estimates, dense, strict=True)):
        variance, margin = squares.variances[level], product.margins[level]
        if theirs is None:
            assert ours is None, margin
        if ours is None:
            assert variance.tolist() == [np.inf], margin
            assert theirs is None or known.total_axis is not None, margin
            continue
        assert theirs is not None, margin
        np.testing.assert_allclose(ours, theirs[0], rtol=1e-9, atol=1e-8)
        expected = np.diag(theirs[1])
        full = np.broadcast_to(variance, expected.shape)
        np.testing.assert_allclose(full, expected, rtol=1e-9, atol=1e-9)
        exact = np.broadcast_to(known.exact[level], expected.shape)
        assert (full[exact] == 0).all()
        assert (ours[exact] == np.broadcast_to(known.least[level], expected.shape)[exact]).all()
        listed = product.listed(level)
        if listed.any():
            assert squares.mean_variance(margin) == pytest.approx(full[listed].mean(), rel=1e-9, abs=1e-12)


def product_variances(rng, product, *, missing=0.3):
    """Draw variances that are a product, the leaves of each axis measured."""
    factors = []
    for axis in product.axes:
        own = rng.uniform(0.5, 4, axis.depth + 1)
        own[:-1][rng.random(axis.depth) < missing] = np.inf
        factors.append(own)
    return reduce(np.multiply.outer, factors).reshape(-1)


def star_variances(rng, product, ragged):
    """Draw any variances of margins above the top on one ragged axis at most."""
    return np.array(
        [
            rng.uniform(0.5, 4)
            if sum(margin[place] > 0 for place in ragged) <= 1 and rng.random() < 0.6
            else np.inf
            for margin in product.margins
        ]
    )


SIZES = [(1, 0), (2, 0), (1, 1), (2, 1), (0, 2), (1, 2), (2, 0)]
"""Numbers of ragged and of uniform axes."""


def random_case(seed):
    rng = np.random.default_rng(seed)
    product = random_product(rng, *SIZES[seed % len(SIZES)])
    ragged = [place for place, axis in enumerate(product.axes) if not axis.is_uniform]
    known, table = random_known(rng, product, zeros=seed % 2 == 0, totals=seed % 3 == 0)
    zeros = {place for place, flags in enumerate(known.zeros) if flags.any()}
    ragged = {*ragged, *zeros, *({known.total_axis} - {None})}
    if seed % 5 < 3:
        variances = product_variances(rng, product)
        if seed % 5 == 2:
            variances[0] = rng.uniform(0.01, 5)
    else:
        variances = star_variances(rng, product, ragged)
        if not np.isfinite(variances).any():
            variances[0] = 1.0
    return rng, product, variances, known, table


@each_seed(30, 200)
def test_estimates_and_variances_are_those_of_dense_least_squares(seed):
    compare(*random_case(seed))
