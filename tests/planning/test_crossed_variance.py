"""The expected error of all margins, and targets that follow from it."""

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.crossed import crossed_squares
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.crossed_split import crossed_shares
from pandas_dptree.planning.crossed_targets import CrossedTarget
from pandas_dptree.planning.crossed_variance import MarginVariances
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_crossed_splits import RAGGED, WIDER, budget_of, moves_of

TWO, THREE = Tree.from_branching([2, 2]), Tree.from_branching([3])


def public(product, *stated):
    """What is known of the leaves of each axis; None where nothing is."""
    own = [
        Known.nothing(axis) if leaves is None else Known.read(axis, {f"level_{axis.depth}": leaves})
        for axis, leaves in zip(product.axes, stated, strict=True)
    ]
    return CrossedKnown(product, tuple(own))


@each("axes, shown, stated", [
    ((TWO, THREE), None, (None, None)),
    ((RAGGED, THREE), ((0, 1), (2, 0)), (None, None)),
    ((RAGGED, WIDER), None, (None, None)),
    ((RAGGED, WIDER), None, ([0, np.nan, np.nan], [np.nan, 0, np.nan, np.nan])),
    ((TWO, THREE), None, ([5, 3, np.nan, np.nan], None)),
])  # fmt: skip
@each("neighbors", ["add_remove", "replace"])
def test_mean_variances_are_those_of_least_squares(axes, shown, stated, neighbors):
    product = ProductTree(axes, shown)
    known = public(product, *stated)
    budget = budget_of(product, neighbors=neighbors)
    shares = crossed_shares(
        product, noise=Gaussian(), loss=budget.loss, sensitivity=budget.moves, known=known
    )
    variances = budget.variances(shares)
    found = MarginVariances(product, known, least_squares=True).means(variances)
    squares = crossed_squares(product, variances, known)
    for margin in product.shown:
        assert np.isclose(found[product.level_of(margin)], squares.mean_variance(margin), rtol=1e-7)


def target_of(product, std_errors, stated=None, **options):
    given = {
        "names": list(map(str, product.margins)),
        "sensitivity": moves_of(product),
        "split": "optimal",
        "least_squares": True,
        "public": stated or CrossedKnown.nothing(product),
    }
    return CrossedTarget(tree=product, std_errors=np.array(std_errors), **{**given, **options})


def check_smallest_loss(axes, noise, loss_of, **options):
    product = ProductTree(axes)
    target = target_of(product, [9.0, 8.0, np.inf, 5.0], **options)
    size = target.smallest_loss(noise, loss_of)
    shares = target.shares(noise, loss_of(size))
    variances = noise.variance(noise.noise_scales(loss_of(size), target.sensitivity, shares))
    errors = MarginVariances(product, target.public, least_squares=target.least_squares)
    ratios = np.sqrt(errors.means(variances)) / target.std_errors
    assert 1 - 1e-3 < ratios.max() <= 1
    assert "standard errors of {'(0, 0)'" in str(target.out_of_reach(noise, loss_of, size, size / 2))


def test_the_smallest_loss_is_just_enough():
    check_smallest_loss((THREE, THREE), Gaussian(), lambda rho: PrivacyLoss(rho=rho), split="uniform")


@pytest.mark.slow
@each("axes", [(THREE, Tree.from_branching([2])), (Tree((np.array([3]),)), Tree.from_branching([2]))])
@each("noise, loss_of", [
    (Gaussian(), lambda size: PrivacyLoss(rho=size)), (Laplace(), lambda size: PrivacyLoss(epsilon=size)),
])  # fmt: skip
@each("options", [{}, {"least_squares": False}, {"split": "uniform"}])
def test_the_smallest_loss_is_just_enough_for_other_noise_and_splits(axes, noise, loss_of, options):
    check_smallest_loss(axes, noise, loss_of, **options)


def test_no_target_of_known_margins_only():
    product = ProductTree((THREE, Tree.from_branching([2])))
    known = public(product, [1, 2, 3], None)
    with pytest.raises(ArgumentError, match="all known"):
        target_of(product, [np.inf, np.inf, 2.0, np.inf], known, known=known.exact)
    target = target_of(product, [np.inf, np.inf, np.inf, 2.0], known)
    assert 0 < target.smallest_loss(Gaussian(), lambda size: PrivacyLoss(rho=size)) < 1
