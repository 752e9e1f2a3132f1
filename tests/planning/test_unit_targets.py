"""Targets of unit counts: they are met, with hardly more loss than is needed."""

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.unit_split import unit_level_variances, unit_shares
from pandas_dptree.planning.unit_targets import UnitTarget
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.unit_sensitivity import unit_sensitivity
from tests.helpers_cases import each
from tests.helpers_planning import flags_of, random_tree

KINDS = [
    (Laplace(), lambda size: PrivacyLoss(epsilon=size)),
    (Gaussian(), lambda size: PrivacyLoss(rho=size)),
    (Gaussian(), lambda size: PrivacyLoss(epsilon=size, delta=1e-6)),
]


def target(tree, max_nodes, std_errors, **changes):
    neighbors = changes.get("neighbors", "add_remove")
    alone = unit_sensitivity(max_nodes, neighbors=neighbors, excess=[False] * tree.depth)
    arguments = {"split": "optimal", "least_squares": True, "neighbors": neighbors, **changes}
    return UnitTarget(
        tree=tree,
        max_nodes=max_nodes,
        names=[f"level {level}" for level in range(tree.depth + 1)],
        std_errors=np.array(std_errors),
        sensitivity=alone.part(np.arange(2 * tree.depth + 1) <= tree.depth),
        **arguments,
    )


def errors_of(goal, noise, loss):
    """The standard errors of the split of a target, under some loss."""
    shares = goal.shares(noise, loss)
    excess = (shares[goal.tree.depth + 1 :] > 0).tolist()
    moves = unit_sensitivity(goal.max_nodes, neighbors=goal.neighbors, excess=excess)
    variances = noise.variance(noise.noise_scales(loss, moves, shares))
    if not goal.least_squares:
        return np.sqrt(variances[: goal.tree.depth + 1])
    return np.sqrt(unit_level_variances(goal.tree, goal.max_nodes, variances, known=goal.known))


CASES = [(KINDS[0], "add_remove", 30.0), (KINDS[1], "replace", np.inf), (KINDS[2], "add_remove", np.inf)]


@each("kind, neighbors, of_total", CASES)
def test_a_target_is_met_and_hardly_more(kind, neighbors, of_total):
    tree, (noise, loss_of) = Tree.from_branching([3, 4]), kind
    std_errors = np.array([of_total, 25.0, 20.0])
    goal = target(tree, (1, 3, 3), std_errors, neighbors=neighbors)
    size = goal.smallest_loss(noise, loss_of)
    assert (errors_of(goal, noise, loss_of(size)) <= std_errors).all()
    assert (errors_of(goal, noise, loss_of(size * 0.998)) > std_errors).any()
    even = target(tree, (1, 3, 3), std_errors, neighbors=neighbors, split="uniform")
    assert size < even.smallest_loss(noise, loss_of)


def test_all_levels_with_a_target_reach_it_together():
    tree, max_nodes, wanted = Tree.from_branching([5, 6]), (1, 2, 2), np.array([50.0, 10.0, 20.0])
    goal = target(tree, max_nodes, wanted)
    noise, loss_of = KINDS[1]
    size = goal.smallest_loss(noise, loss_of)
    reached = errors_of(goal, noise, loss_of(size)) / wanted
    assert reached.max() == pytest.approx(1, abs=1e-5) and (reached > 0.999).sum() >= 2
    for seed in range(3):  # by any other weights of the levels, more loss is needed
        weights = goal.weights * np.exp(np.random.default_rng(seed).normal(0, 0.3, 3))
        shares = unit_shares(
            tree, max_nodes, noise=noise, loss=loss_of(size), neighbors="add_remove", level_weights=weights
        )
        assert target(tree, max_nodes, wanted, split=shares[:3] / shares[:3].sum()).smallest_loss(
            noise, loss_of
        ) > size * (1 - 1e-6)


@each("least_squares", [True, False])
def test_a_known_total_and_ragged_trees(least_squares):
    tree = random_tree(np.random.default_rng(3), depth=2)
    max_nodes, known = (1, 2, 2), flags_of(tree, 0)
    noise, loss_of = KINDS[1]
    sizes = []
    for flags, std_errors in ((None, [9.0, 9, 9]), (known, [9.0, 9, 9]), (known, [np.inf, 9, 9])):
        goal = target(tree, max_nodes, std_errors, known=flags, least_squares=least_squares)
        sizes.append(goal.smallest_loss(noise, loss_of))
        assert (errors_of(goal, noise, loss_of(sizes[-1]))[1:] <= 9).all()
    assert sizes[1] < sizes[0] and sizes[2] == pytest.approx(sizes[1], rel=1e-6)
    with pytest.raises(ArgumentError, match="known"):
        target(tree, max_nodes, [1.0, np.inf, np.inf], known=known)
    error = goal.out_of_reach(noise, loss_of, 5.0, 1.0)
    assert "rho=5" in str(error) and "level 2" in str(error)
