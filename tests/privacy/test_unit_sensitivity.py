"""Sensitivities of unit counts, their excesses and row counts, beside all units of small trees."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.privacy.conversions import zcdp_delta
from pandas_dptree.privacy.level_losses import laplace_level, together
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import TreeSensitivity
from pandas_dptree.privacy.unit_sensitivity import unit_sensitivity
from tests.helpers_cases import each
from tests.helpers_people import delta
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
    UnitWorld(tree_of(3), (1, 2), rows=4),
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
        scales = np.round(rng.choice([0.8, 1.2, 2.0], n_levels) * (1 + rng.random(n_levels)), 2)
        scales[rng.random(n_levels) < 0.6] = math.inf
        epsilon = float(rng.choice([0.2, 1.0, 2.0]))
        claim = noise.delta(epsilon, scales, sensitivity_of(world, excess.tolist()))
        assert max(world.deltas(epsilon, scales.tolist(), power)) <= claim * (1 + 1e-9) + 1e-12, scales


@each("world", [WORLDS[0], WORLDS[2], WORLDS[4], COUNTED[1]])
@each("replace", [False, True])
def test_no_two_neighbours_have_a_larger_delta(world, replace):
    check_deltas(dataclasses.replace(world, replace=replace), 1)


@pytest.mark.slow
@each("seed", range(4))
@each("world", [*WORLDS, *COUNTED])
@each("replace", [False, True])
def test_no_two_neighbours_of_any_world_cost_more_or_have_a_larger_delta(world, replace, seed):
    world = dataclasses.replace(world, replace=replace)
    check_costs(world, seed, n=10)
    check_deltas(world, seed)


@pytest.mark.slow
@each(
    "world",
    [
        UnitWorld(tree_of(3, 2, 2), (1, 2, 2, 3), replace=True),
        UnitWorld(tree_of(2, 3), (1, 2, 3), replace=True, rows=3),
        UnitWorld(tree_of(1, 2, 2), (1, 1, 2, 2), replace=True, rows=4),
        UnitWorld(RAGGED, (1, 2, 2, 3), replace=True, rows=3),
    ],
)
def test_no_neighbours_of_larger_worlds_cost_more(world):
    check_costs(world, 0, n=20)


ROOMY = [
    UnitWorld(tree_of(4, 2), (1, 2, 2)),
    UnitWorld(tree_of(6), (1, 3)),
    UnitWorld(tree_of(4), (1, 1)),
    UnitWorld(tree_of(4, 2), (1, 2, 2), rows=2),
    UnitWorld(tree_of(4), (1, 1), rows=4),
    UnitWorld(tree_of(4), (1, 2), rows=3),
]


@each("world", ROOMY)
@each("replace", [False, True])
def test_where_a_tree_has_room_some_neighbours_cost_as_much(world, replace):
    laplace = [] if world.rows else ["rho of Laplace noise"]  # one node is charged for row counts, or several
    world = dataclasses.replace(world, replace=replace)
    check_costs(world, 2, tight=["epsilon", "rho of Gaussian noise", *laplace], n=3)


def squares_of(t, r, precisions):
    """What a unit of a shape costs: of row counts (if any), of units, of excesses."""
    rows, units, excesses = precisions
    return (
        sum(w * ((r - nodes + 1) ** 2 + nodes - 1) for w, nodes in zip(rows, t, strict=False))
        + sum(w * nodes for w, nodes in zip(units, t, strict=True))
        + sum(w * (b - a) ** 2 for w, a, b in zip(excesses, t, t[1:], strict=False))
    )


def all_shapes(max_nodes, rows):
    below = itertools.product(*(range(1, most + 1) for most in max_nodes[1:]))
    shapes = [(1, *t) for t in below if list(t) == sorted(t)]
    return [(t, r) for t in shapes for r in range(t[-1], rows + 1)] if rows else [(t, 0) for t in shapes]


def largest_squares(max_nodes, neighbors, rows, precisions):
    """What the worst neighbours cost, over all whole shapes before and after."""
    a, w, u = precisions
    shapes = all_shapes(max_nodes, rows)
    best = max(squares_of(t, r, precisions) for t, r in shapes)
    if neighbors == "add_remove":
        return best
    still = ([0.0, *a[1:]], [0.0, *w[1:]], [0.0, *u[1:]])
    costs = [squares_of(t, r, still) for t, r in shapes]
    root_rows, root_excess = (a[0] if rows else 0.0), (u[0] if u else 0.0)
    return max(
        best,
        *(
            one + other + root_rows * (r - b) ** 2 + root_excess * (t[1:2] != s[1:2] and (t[1] - s[1]) ** 2)
            for (one, (t, r)), (other, (s, b)) in itertools.product(zip(costs, shapes, strict=True), repeat=2)
        ),
    )


def check_shapes(max_nodes, rows, seed):
    rng = np.random.default_rng(seed)
    n = len(max_nodes)
    for neighbors in ("add_remove", "replace"):
        excess = rng.random(n - 1) < 0.7
        moves = unit_sensitivity(max_nodes, neighbors=neighbors, excess=excess.tolist(), rows=rows)
        for _ in range(4):
            a, w, u = (rng.exponential(size=size) * (rng.random(size) < 0.7) for size in (n, n, n - 1))
            u *= excess * rng.choice([0.1, 1.0])
            precisions = (a.tolist() if rows else [], w.tolist(), u.tolist())
            flat = list(itertools.chain(*precisions))
            claim = max(
                sum(p * level.l2_squared for p, level in zip(flat, pattern, strict=True))
                for pattern in moves.patterns
            )
            most = largest_squares(max_nodes, neighbors, rows, precisions)
            assert math.isclose(claim, most, rel_tol=1e-9), (neighbors, excess, precisions)


BOUNDS = [
    ((1,), None), ((1, 1, 1), None), ((1, 2, 4), None), ((1, 3, 3), None), ((1, 1, 3), 4), ((1, 2, 3), 3),
    ((1,), 3), ((1, 1), 4), ((1, 2), 4), ((1, 1, 2, 3), None),
]  # fmt: skip


@each("max_nodes, rows", BOUNDS)
def test_no_whole_shape_costs_more_than_the_patterns_and_one_costs_as_much(max_nodes, rows):
    check_shapes(max_nodes, rows, 3)


@pytest.mark.slow
@each("max_nodes, rows", [((1, 2, 3, 5), None), ((1, 2, 2, 4, 4), None), ((1, 2, 3), 5), ((1, 2, 3, 3), 4)])
@each("seed", range(5))
def test_no_whole_shape_of_larger_bounds_costs_more(max_nodes, rows, seed):
    check_shapes(max_nodes, rows, seed)


def test_each_pattern_charges_excesses_of_which_nothing_was_said_the_most_they_move():
    """So whoever measures them all the same spends enough."""
    world = UnitWorld(tree_of(4, 2), (1, 2, 2), replace=True)
    moves = sensitivity_of(world, [False, False])
    assert not moves.hull and len(moves.patterns) == 2
    for scales in ([1.0, 2.0, 3.0, 1.5, 0.5], [math.inf, 2.0, math.inf, 0.5, 0.5]):
        for kind, cost in COSTS.items():
            assert world.costs(cost, scales).max() <= charged(moves, kind, scales) * (1 + 1e-9)


def gaussian_scales(weights):
    """Noise of scale 1 / sqrt(w) costs w times the squared moves, twice the rho; inf for no weight."""
    return [math.inf if not w else w**-0.5 for w in weights]


def twice_rho(moves, weights):
    return 2 * charged(moves, "rho of Gaussian noise", gaussian_scales(weights))


@each("neighbors", ["add_remove", "replace"])
@each("k, depth", [(2, 2), (4, 3), (8, 2), (3, 5)])
def test_excesses_below_the_root_cost_nothing_with_a_rho_of_gaussian_or_an_epsilon_of_laplace_noise(
    neighbors, k, depth
):
    rng = np.random.default_rng(k)
    counts = rng.exponential(size=depth + 1)
    below = np.cumsum(counts[1:])[:-1]  # w_1 + ... + w_s of the levels s of excesses from 1 on
    moves = unit_sensitivity([1] + [k] * depth, neighbors=neighbors, excess=[False] + [True] * (depth - 1))
    nothing, sides = np.zeros(depth), 1 if neighbors == "add_remove" else 2
    root = counts[0] if sides == 1 else 0.0
    alone = twice_rho(moves, [*counts, *nothing])
    leaves = counts[0] + k * counts[1:].sum()
    assert math.isclose(alone, max(root + sides * k * counts[1:].sum(), leaves), rel_tol=1e-9)
    free = [0.0, *below / (k - 1)]
    assert math.isclose(twice_rho(moves, [*counts, *free]), alone, rel_tol=1e-9)
    assert twice_rho(moves, [*counts, *(1.02 * np.array(free))]) > alone * (1 + 1e-6)

    def epsilon(excesses):
        with np.errstate(divide="ignore"):
            return charged(moves, "epsilon", (1 / np.array([*counts, *excesses])).tolist())

    assert math.isclose(epsilon([0.0, *below]), epsilon(nothing), rel_tol=1e-9)
    assert epsilon([0.0, *(1.02 * below)]) > epsilon(nothing) * (1 + 1e-6)


@each(
    "k, rate, depth, alone, beside",
    [(4, 0.1, 2, 0.0450, 0.0712), (8, 0.05, 2, 0.0212, 0.0673), (4, 0.1, 3, 0.0649, 0.1868)],
)
def test_excesses_are_not_free_with_a_rho_of_laplace_noise(k, rate, depth, alone, beside):
    """One count that moves by k - 1 costs more than k - 1 counts that move by 1."""
    scales = [1 / rate] * (depth + 1) + [math.inf]
    free = [1 / (rate * s) for s in range(1, depth)]
    moves = unit_sensitivity([1] + [k] * depth, neighbors="add_remove", excess=[False] + [True] * (depth - 1))
    nothing = [math.inf] * (depth - 1)
    assert round(charged(moves, "rho of Laplace noise", scales + nothing), 4) == alone
    assert round(charged(moves, "rho of Laplace noise", scales + free), 4) == beside
    moves_of_worst = [1] * depth + [k]
    divergence = sum(n * laplace_divergence(1 / rate, 1) for n in moves_of_worst)
    divergence += laplace_divergence(free[-1], k - 1)
    assert math.isclose(charged(moves, "rho of Laplace noise", scales + free), divergence, rel_tol=1e-9)


def test_excesses_are_not_free_beside_row_counts():
    world = UnitWorld(tree_of(2, 2), (1, 2, 2), rows=2)
    moves = sensitivity_of(world, [False, True])
    visits, visitors = [0, 1, 0.5], [0, 1, 1]
    for excess, most in ([0, 0], 8), ([0, 1], 9):
        weights = [*visits, *visitors, *excess]
        assert math.isclose(twice_rho(moves, weights), most, rel_tol=1e-9)
        cost = COSTS["rho of Gaussian noise"]
        assert math.isclose(2 * world.costs(cost, gaussian_scales(weights)).max(), most, rel_tol=1e-9)


def test_excesses_cost_more_on_levels_of_fewer_nodes_than_the_bound():
    moves = unit_sensitivity([1, 2, 8], neighbors="add_remove", excess=[False, True])
    assert math.isclose(twice_rho(moves, [0, 1, 0.2, 0, 0]), 3.6, rel_tol=1e-9)
    assert math.isclose(twice_rho(moves, [0, 1, 0.2, 0, 1 / 7]), 9.6, rel_tol=1e-9)
    constant = unit_sensitivity([1, 8, 8], neighbors="add_remove", excess=[False, True])
    assert math.isclose(twice_rho(constant, [0, 1, 0.2, 0, 1 / 7]), 9.6, rel_tol=1e-9)


def test_a_unit_may_be_replaced_by_one_with_fewer_rows():
    """Neither one that leaves nor one with as many rows costs most."""
    world = UnitWorld(tree_of(3), (1, 1), replace=True, rows=4)
    weights = [1, 0.5, 0, 10, 0]
    moves = sensitivity_of(world)
    assert math.isclose(twice_rho(moves, weights), 37.5, rel_tol=1e-9)
    costs = world.costs(COSTS["rho of Gaussian noise"], gaussian_scales(weights))
    assert math.isclose(2 * costs.max(), 37.5, rel_tol=1e-9)
    extremes = [
        sum(w * level.l2_squared for w, level in zip(weights, pattern, strict=True))
        for pattern in moves.patterns
        if pattern[0].l1 in (0, 4)
    ]
    assert max(extremes) == 36


def test_the_sums_of_epsilons_do_not_decide_which_pattern_has_the_larger_delta():
    world = UnitWorld(tree_of(6), (1, 3), replace=True)
    scales = [1 / 1.1, 2.5, math.inf]
    moves = sensitivity_of(world, [False])
    epsilons = [sum(level.l1 / b for level, b in zip(p, scales, strict=True)) for p in moves.patterns]
    assert epsilons[0] < epsilons[1]  # whoever leaves, and whoever moves
    deltas = [Laplace().delta(1.0, scales, TreeSensitivity((p,))) for p in moves.patterns]
    assert deltas[0] > 1.05 * deltas[1]
    assert Laplace().delta(1.0, scales, moves) == max(deltas)
    assert math.isclose(max(world.deltas(1.0, scales, 1)), max(deltas), rel_tol=1e-6)


def test_a_unit_between_the_patterns_may_have_a_larger_delta_than_any_of_them():
    """So the exact losses of single patterns do not bound delta; those of all levels at their largest do."""
    scales, epsilon = [math.inf, 3.7, math.inf, math.inf, 5.1], 1.75
    moves = unit_sensitivity([1, 8, 8], neighbors="add_remove", excess=[False, True])
    assert moves.hull and len(moves.patterns) == 2
    least = max(Laplace().delta(epsilon, scales, TreeSensitivity((p,))) for p in moves.patterns)
    between = delta(epsilon, [[(), (1,) * 4, (), (), (4,)]], [scales], 1)  # in 4 districts, and 8 clinics
    assert 1.5 * least < between <= Laplace().delta(epsilon, scales, moves)
    assert moves.covered(8) == TreeSensitivity((moves.levels,))
    assert moves.part(np.isfinite(scales)).hull


def test_laplace_noise_has_the_delta_of_its_rho_if_that_is_smaller():
    moves = unit_sensitivity([1] + [8] * 6, neighbors="add_remove", excess=[False] + [True] * 5)
    scales = [100.0] * 7 + [math.inf, *(100.0 / s for s in range(1, 6))]
    by_rho = zcdp_delta(charged(moves, "rho of Laplace noise", scales), 0.45)
    cover = Laplace().delta(0.45, scales, TreeSensitivity((moves.levels,)))
    assert 0 < by_rho < cover
    assert math.isclose(Laplace().delta(0.45, scales, moves), by_rho, rel_tol=1e-6)


@each("loss", [PURE, RHO, PrivacyLoss(epsilon=1.0, delta=1e-6)])
@each("noise", [Laplace(), Gaussian()])
@each("neighbors", ["add_remove", "replace"])
def test_noise_is_calibrated_to_the_worst_shape(loss, noise, neighbors):
    if not noise.supports(loss):
        return
    moves = unit_sensitivity([1, 4, 4], neighbors=neighbors, excess=[False, True])
    scales = noise.noise_scales(loss, moves, [0.3, 1.0, 1.0, 0.0, 0.6])
    assert noise.keeps_to(loss, moves, scales)
    assert not noise.keeps_to(loss, moves, 0.98 * scales)


@each("neighbors", ["add_remove", "replace"])
@each("rows", [None, 2**40])
def test_many_shapes_are_covered_by_few_patterns(neighbors, rows):
    max_nodes = [2**level for level in range(11)]
    moves = unit_sensitivity(max_nodes, neighbors=neighbors, excess=[True] * 10, rows=rows)
    assert len(moves.patterns) == 1 if rows else 1 < len(moves.patterns) <= 256
    if not rows:  # the deepest excesses are still charged jointly, those of the root as if all were at once
        above, deepest = zip(*((pattern[11].l1, pattern[-1].l1) for pattern in moves.patterns), strict=True)
        assert set(above) == {1} and len(set(deepest)) > 4
    rng = np.random.default_rng(3)
    own = np.array([[float(level.l2_squared) for level in pattern] for pattern in moves.patterns])
    for _ in range(60):  # some vertices
        t = [1]
        for most in max_nodes[1:]:
            t.append(most if rng.random() < rng.choice([0.1, 0.5]) else t[-1])
        a, w, u = rng.exponential(size=(3, 11)) * (rng.random((3, 11)) < 0.4)
        if rows:
            a *= rng.choice([0.0, 1.0]) / rows**2
        precisions = (a.tolist() if rows else [], w.tolist(), u[1:].tolist())
        cost = squares_of(t, rows or 0, precisions)
        assert cost <= (own @ list(itertools.chain(*precisions))).max() * (1 + 1e-9)


@each("noise", [Laplace(), Gaussian()])
def test_levels_that_never_move_may_be_measured_alone(noise):
    moves = unit_sensitivity([1, 1, 3], neighbors="replace", excess=[True, True])
    assert noise.delta(1.0, [math.inf, math.inf, math.inf, 2.0, math.inf], moves) == 0


def test_bounds_are_lowered_to_the_number_of_rows():
    shared = dict(neighbors="replace", excess=[True, True])
    assert unit_sensitivity([1, 3, 9], rows=4, **shared) == unit_sensitivity([1, 3, 4], rows=4, **shared)


@each(
    "arguments, name",
    [
        (dict(max_nodes=[2, 2]), "max_nodes"),
        (dict(max_nodes=[1, 0]), "max_nodes"),
        (dict(max_nodes=[1, 3, 2], excess=[True, True]), "max_nodes"),
        (dict(max_nodes=[1, 2.5]), "max_nodes"),
        (dict(max_nodes=[1, True]), "max_nodes"),
        (dict(max_nodes=[], excess=[]), "max_nodes"),
        (dict(excess=[True, True]), "excess"),
        (dict(neighbors="both"), "neighbors"),
        (dict(rows=0), "max_contributions"),
    ],
)
def test_bad_arguments_are_named(arguments, name):
    given = dict(max_nodes=[1, 2], neighbors="replace", excess=[True]) | arguments
    with pytest.raises(ArgumentError) as error:
        unit_sensitivity(given.pop("max_nodes"), **given)
    assert f"`{name}`" in str(error.value)
