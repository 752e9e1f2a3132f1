"""Sensitivities of unit counts, their excesses and row counts, beside all units of small trees."""

import dataclasses
import math

import numpy as np

from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.privacy.level_losses import laplace_level, together
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.unit_sensitivity import unit_sensitivity
from tests.helpers_cases import each
from tests.helpers_unit_counts import RAGGED, UnitWorld, laplace_divergence, tree_of

PURE, RHO = PrivacyLoss(epsilon=1.0), PrivacyLoss(rho=1.0)

COSTS = {
    "epsilon": lambda scale, move: move / scale,
    "rho of Gaussian noise": lambda scale, move: move**2 / (2 * scale**2),
    "rho of Laplace noise": laplace_divergence,
}


def charged(moves, kind, scales):
    """What the sensitivity charges for noise of these scales."""
    if kind == "epsilon":
        return float(Laplace().spent(PURE, moves, scales))
    if kind == "rho of Gaussian noise":
        return float(Gaussian().spent(RHO, moves, scales))
    return max(float(together(map(laplace_level, scales, pattern)).rho) for pattern in moves.patterns)


def sensitivity_of(world, excess=None):
    return unit_sensitivity(
        world.max_nodes,
        neighbors="replace" if world.replace else "add_remove",
        excess=[True] * (len(world.max_nodes) - 1) if excess is None else excess,
        rows=world.rows,
    )


def random_scales(rng, n_levels):
    scales = np.round(rng.choice([0.4, 1.0, 3.0, 9.0], n_levels) * (1 + rng.random(n_levels)), 3)
    scales[rng.random(n_levels) < 0.3] = math.inf
    return scales.tolist()


def check_costs(world, seed, *, tight=(), n=6):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        excess = [True] * (len(world.max_nodes) - 1) if tight else rng.random(len(world.max_nodes) - 1) < 0.6
        moves = sensitivity_of(world, list(excess))
        for level, moved in zip(moves.levels, world.moves, strict=True):
            assert moved.sum(axis=1).max() <= level.l1 and moved.max() <= level.linf
            assert (moved**2).sum(axis=1).max() <= level.l2_squared
        scales = random_scales(rng, len(moves.levels))
        for kind, cost in COSTS.items():
            most, claim = world.costs(cost, scales).max(), charged(moves, kind, scales)
            assert most <= claim * (1 + 1e-9), (kind, scales)
            if kind in tight:
                assert math.isclose(most, claim, rel_tol=1e-9), (kind, scales)


WORLDS = [
    UnitWorld(tree_of(4, 2), (1, 2, 2)),
    UnitWorld(tree_of(3, 3), (1, 2, 3)),
    UnitWorld(tree_of(3, 3), (1, 1, 3)),
    UnitWorld(tree_of(2, 2, 2), (1, 2, 2, 2)),
    UnitWorld(tree_of(5), (1, 3)),
    UnitWorld(RAGGED, (1, 2, 3, 3)),
    UnitWorld(RAGGED, (1, 1, 2, 4)),
    UnitWorld(tree_of(1, 4), (1, 1, 3)),
]


@each("world", WORLDS)
@each("replace", [False, True])
def test_no_unit_costs_more_than_the_patterns(world, replace):
    check_costs(dataclasses.replace(world, replace=replace), 1, n=3)


COUNTED = [
    UnitWorld(tree_of(2, 2), (1, 2, 2), rows=2),
    UnitWorld(tree_of(2, 2), (1, 1, 2), rows=3),
    UnitWorld(tree_of(4), (1, 1), rows=4),
]


@each("world", COUNTED)
@each("replace", [False, True])
def test_no_unit_whose_rows_are_counted_costs_more_than_the_patterns(world, replace):
    check_costs(dataclasses.replace(world, replace=replace), 1, n=3)


def check_deltas(world, seed, *, n=2):
    rng = np.random.default_rng(seed)
    for noise, power in [(Laplace(), 1), (Gaussian(), 2)] * n:
        excess = rng.random(len(world.max_nodes) - 1) < 0.6
        n_levels = len(world.moves)
        scales = np.round(rng.choice([1.0, 2.0, 4.0], n_levels) * (1 + rng.random(n_levels)), 2)
        scales[rng.random(n_levels) < 0.5] = math.inf
        epsilon = float(rng.choice([0.2, 1.0, 2.0]))
        claim = noise.delta(epsilon, scales, sensitivity_of(world, excess.tolist()))
        assert max(world.deltas(epsilon, scales.tolist(), power)) <= claim * (1 + 1e-9) + 1e-12, scales


@each("world", [WORLDS[0], WORLDS[2], WORLDS[4], COUNTED[1]])
@each("replace", [False, True])
def test_no_two_neighbours_have_a_larger_delta(world, replace):
    check_deltas(dataclasses.replace(world, replace=replace), 1)
