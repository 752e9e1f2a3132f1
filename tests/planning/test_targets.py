"""Targets: what meets them with known levels, and which are refused."""

import numpy as np
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.planning.targets import Target
from pandas_dptree.planning.variance import level_variances
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_planning import flags_of, random_tree
from tests.helpers_privacy import ONE_ROW


def target(tree, std_errors, known, **changes):
    names = [f"level {level}" for level in range(tree.depth + 1)]
    arguments = {"sensitivity": ONE_ROW, "split": "optimal", "least_squares": True, **changes}
    return Target(tree=tree, names=names, std_errors=np.array(std_errors), known=known, **arguments)


@each("least_squares", [True, False])
def test_a_known_level_meets_every_target(least_squares):
    tree = random_tree(np.random.default_rng(1), depth=2)

    def smallest(std_errors, known):
        wanted = target(tree, std_errors, known, least_squares=least_squares)
        return wanted.smallest_loss(Gaussian(), lambda size: PrivacyLoss(rho=size))

    total_known = flags_of(tree, 0)
    alone = smallest([np.inf, 5.0, 5.0], total_known)
    assert smallest([1e-3, 5.0, 5.0], total_known) == pytest.approx(alone, rel=1e-6)
    assert alone < smallest([np.inf, 5.0, 5.0], None)
    shares = optimal_shares(
        tree, Gaussian(), PrivacyLoss(rho=alone), ONE_ROW, objective="worst",
        level_weights=np.array([0.0, 1.0, 1.0]), known=total_known, least_squares=least_squares,
    )  # fmt: skip
    variances = Gaussian().variance(Gaussian().noise_scales(PrivacyLoss(rho=alone), ONE_ROW, shares))
    if least_squares:
        variances = level_variances(tree, variances, known=total_known)
    assert np.sqrt(variances[1:].max()) == pytest.approx(5.0, rel=1e-5)


def test_a_target_for_known_levels_alone_is_refused():
    tree = Tree.from_branching([2, 3])
    with pytest.raises(ArgumentError, match="known") as error:
        target(tree, [1.0, np.inf, np.inf], flags_of(tree, 0))
    assert error.value.argument == "target"
    with pytest.raises(ArgumentError, match="known"):
        target(tree, [1.0, np.inf, np.inf], flags_of(tree, 1), least_squares=True)


@each("share, of", [(0, 5), (0.1, -1), (True, 5), (0.1, float("inf")), ("x", 1)])
def test_bad_relative_targets(share, of):
    with pytest.raises(dpt.ArgumentError, match="positive number"):
        dpt.relative(share, of=of)
