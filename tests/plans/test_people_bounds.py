"""What plans charge for units with several rows, beside all units of tiny trees: no less than the truth.

Nor more than it was when every level was charged as if all rows of a unit were in one node of it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree import verify
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.planning.capacities import sensitivity_on
from pandas_dptree.privacy import composition
from pandas_dptree.privacy.level_losses import laplace_rho
from pandas_dptree.privacy.quantity import Quantity
from pandas_dptree.privacy.sensitivity import Sensitivity, TreeSensitivity, sum_sensitivity
from pandas_dptree.privacy.tree_sensitivity import LevelCapacities, tree_sensitivity
from tests.helpers_cases import each
from tests.helpers_people import World, delta, random_caps, random_parents

BOUNDS = [(0, 2), (-1, 2), (-1, 1), (1, 2), (-2, -1)]
NAMES = ("total", "a", "b", "c")


class Case(NamedTuple):
    """A plan, the plans of its quantities, and all that one unit can do to them."""

    plan: Any
    parts: list[Any]
    world: World

    @property
    def scales(self) -> list[list[float]]:
        return [part.unit_noise_scales.tolist() for part in self.parts]


def random_case(seed: int) -> Case | None:
    """Draw a tiny plan: counts, sums or both, of which some nodes are known; None if all are."""
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    parents = random_parents(rng, choose.choice([1, 2, 2]), most=5)
    kind = choose.choice(["counts", "counts", "sums", "joint"])
    capped = choose.random() < 0.5
    k = choose.randint(1, (4 if capped else 3) if kind == "counts" else 2)
    caps = random_caps(rng, len(parents), k) if capped else ()
    keys = keys_of(parents, choose)
    names = list(keys)
    noise, loss = choose.choice(
        [
            ("laplace", {"epsilon": choose.uniform(0.5, 4)}),
            ("laplace", {"rho": choose.uniform(0.1, 2)}),
            ("gaussian", {"rho": choose.uniform(0.2, 2)}),
            (
                choose.choice(["laplace", "gaussian", "gaussian"]),
                {"epsilon": choose.uniform(1, 4), "delta": 0.01},
            ),
        ]
    )
    options: dict[str, Any] = {
        **loss,
        "mechanism": noise,
        "neighbors": choose.choice(["add_remove", "replace"]),
        "privacy_unit": "person",
        "max_contributions": k,
        "split": choose.choice(
            ["optimal", "uniform", {"total": (share := choose.random()), names[-1]: 1 - share}]
        ),
    }
    if caps:
        of = dict(zip(names, caps[1:], strict=True))
        options |= {"max_per_leaf": of.pop(names[-1]), "max_per_node": {n: m for n, m in of.items() if m}}
    domain, bounds = dpt.Domain.from_frame(keys, by=names), choose.choice(BOUNDS)
    if kind != "sums" and choose.random() < 0.4:
        options["known"] = keys.sample(1, random_state=seed).assign(count=0)
    summed = {"bounds": bounds, "granularity": 1}
    try:
        if kind == "joint":
            plan = dpt.plan_agg(domain, {"n": "count", "s": dpt.sum("x", **summed)}, **options)
        else:
            plan = dpt.plan(domain, **options, **({"column": "x", **summed} if kind == "sums" else {}))
    except ArgumentError as error:
        assert "all" in str(error)
        return None
    return case_of(plan, k, caps)


def keys_of(parents: Any, choose: random.Random) -> pd.DataFrame:
    """Return the keys of the leaves, of which some end above the deepest level."""
    paths = [(place,) for place in range(len(parents[1]))]
    for below in parents[2:]:
        alone = {place for place in below if below.count(place) == 1 and choose.random() < 0.5}
        paths = [(*paths[up], None if up in alone else place) for place, up in enumerate(below)]
    texts = [[None if key is None else str(key) for key in path] for path in paths]
    return pd.DataFrame(texts, columns=NAMES[1 : len(parents)], dtype=object)


def case_of(plan: Any, k: int, caps: tuple[int | None, ...] = ()) -> Case:
    """Return a plan with all units of its tree."""
    parts = list(getattr(plan, "plans", {"": plan}).values())
    tree = parts[0].tree
    above = [tree.spread(level, np.arange(size)) for level, size in enumerate(tree.level_sizes[:-1])]
    ups = [np.broadcast_to(up, size).tolist() for up, size in zip(above, tree.level_sizes[1:], strict=True)]
    known = {
        (quantity, level, place)
        for quantity, part in enumerate(parts)
        for level, flags in enumerate(part.known.exact)
        for place in np.flatnonzero(np.broadcast_to(flags, tree.level_sizes[level])).tolist()
    }
    bounds = tuple((part.quantity.low, part.quantity.high) for part in parts)
    replace = parts[0].neighbors == "replace"
    return Case(plan, parts, World(((-1,), *map(tuple, ups)), k, caps, replace, bounds, frozenset(known)))


@functools.cache
def rho_of(scale: float, move: int) -> float:
    return float(laplace_rho(Fraction(scale), move))


def truth(case: Case) -> dict[str, float]:
    """Return the largest cost of any two neighbours, in each currency."""
    scales, laplace = case.scales, case.parts[0].noise.name == "laplace"
    if not laplace:
        return {"rho": case.world.largest_squares([[0.5 / b**2 for b in own] for own in scales])}
    return {
        "epsilon": case.world.largest_absolute(scales),
        "rho": case.world.largest(
            lambda q, level, move: rho_of(scales[q][level], move) if scales[q][level] < math.inf else 0.0
        ),
    }


def levels_alike(part: Any) -> Any:
    """Return the sensitivity of any level, as if all rows of a unit were in one node."""
    low, high = part.quantity.low, part.quantity.high
    return sum_sensitivity(low, high, neighbors=part.neighbors, max_contributions=part.max_contributions)


def charged_alike(case: Case) -> dict[str, float]:
    """Return what the levels cost in sum, each moving as far as any."""
    losses = [
        part.noise.level_loss(scale, levels_alike(part))
        for part in case.parts
        for scale in part.unit_noise_scales
    ]
    found = {"rho": float(sum(loss.rho for loss in losses))}
    if case.parts[0].noise.name == "laplace":
        found["epsilon"] = float(sum(loss.epsilon for loss in losses))
    if not case.plan.loss.delta:
        stated = [
            part.noise.spent(part.loss, levels_alike(part), part.unit_noise_scales) for part in case.parts
        ]
        found["rho" if case.plan.loss.rho else "epsilon"] = float(sum(stated))
    return found


def charges(case: Case) -> dict[str, float]:
    losses = case.plan.losses
    found = {"rho": float(losses.in_rho[0])}
    return found | (
        {"epsilon": float(losses.in_epsilon[0])} if losses.in_epsilon and not losses.in_epsilon[1] else {}
    )


def check_charges(case: Case) -> bool:
    """Check the charges, and return whether one of them is the truth."""
    new, old, least = charges(case), charged_alike(case), truth(case)
    assert new.keys() <= old.keys() == least.keys()
    for name in new:
        assert least[name] <= new[name] * (1 + 1e-12), name
        assert new[name] <= old[name] * (1 + 1e-9), name
    return any(new[name] <= least[name] * (1 + 1e-9) for name in new)


def check_levels(case: Case) -> bool:
    """Check the norms of each level, and return whether one of them with several nodes is attained."""
    met = False
    for part, levels in zip(case.parts, case.world.level_maxima(), strict=True):
        for moves, (l1, l2_squared, linf) in zip(part.sensitivity.levels, levels, strict=True):
            assert l1 <= moves.l1 and l2_squared <= moves.l2_squared and linf <= moves.linf
            met |= l2_squared == moves.l2_squared > linf**2
            if not case.world.replace and (part.quantity.low, part.quantity.high) == (1, 1):
                assert (l1, l2_squared, linf) == (moves.l1, moves.l2_squared, moves.linf)
    return met


def check_verifier(case: Case) -> None:
    """Check that the verifier finds the same patterns by its own code."""
    stored = case.plan.to_dict()
    rows = [list(range(size)) for size in case.world.sizes]
    tree = verify.Tree(rows, [[], *map(list, case.world.parents[1:])])
    for quantity, part in zip(verify.quantities_of(stored), case.parts, strict=True):
        own = verify.moving(quantity, stored, tree)
        measured = np.isfinite(part.unit_noise_scales)
        patterns = part.sensitivity.part(measured).patterns
        assert own.between == part.sensitivity.between
        assert [[(move.l1, move.l2_squared, move.linf) for move in pattern] for pattern in patterns] == [
            [tuple(move) for move in pattern] for pattern in own.patterns
        ]


def check_delta(case: Case, seed: int) -> float:
    """Check delta at the stated epsilon, or at another one, and return the true one over the claim."""
    scales, laplace = case.scales, case.parts[0].noise.name == "laplace"
    if len(case.parts) > 1 and case.world.replace:
        return 0.0  # the truth takes seconds
    power, loss = (1 if laplace else 2), case.plan.loss
    heard = [[scale if scale < 1e3 else math.inf for scale in own] for own in scales]  # less is not summed
    if loss.delta:
        assert case.world.largest_delta(loss.epsilon, heard, power) <= loss.delta
    if len(case.parts) > 1 and laplace:
        return 0.0  # nothing is claimed for another epsilon
    most = case.world.largest_absolute(scales) if laplace else 2 * truth(case)["rho"]
    epsilon = random.Random(seed).uniform(0.2, 0.9) * most
    claimed = case.plan._certified_delta(epsilon)
    alike = [(part.unit_noise_scales, levels_alike(part)) for part in case.parts]
    before = (
        composition.joint_gaussian_delta(epsilon, alike)
        if len(alike) > 1
        else case.parts[0].noise.delta(epsilon, *alike[0])
    )
    true = case.world.largest_delta(epsilon, heard, power)
    assert true <= claimed * (1 + 1e-9) + 1e-12
    assert claimed <= before * (1 + 1e-6)
    return true / claimed if claimed else 1.0


@pytest.mark.tripwire
@pytest.mark.parametrize("seeds", [range(24), pytest.param(range(24, 700), marks=pytest.mark.slow)])
def test_charges_are_not_below_the_truth_nor_above_those_of_levels_alike(seeds):
    met, seen = Counter[str](), Counter[str]()
    for seed in seeds:
        case = random_case(seed)
        if case is None:
            continue
        try:
            met["charge"] += check_charges(case)
            met["level"] += check_levels(case)
            met["delta"] += check_delta(case, seed) > 1 - 1e-6
            check_verifier(case)
        except AssertionError as error:
            error.add_note(f"seed {seed}: {case.world}")
            raise
        seen["all"] += 1
        seen["replace"] += case.world.replace
        seen["Laplace"] += case.parts[0].noise.name == "laplace"
        seen["joint"] += len(case.parts) > 1
        seen["capped"] += bool(case.world.caps)
    assert min(seen.values()) >= len(seeds) / 6 and seen["all"] >= 0.9 * len(seeds)
    assert met["charge"] > 0.8 * seen["all"] and min(met.values()) > 0.2 * seen["all"]


FLAT = Tree.from_branching([2])


def most(world: World, moves: TreeSensitivity, weights: list[float]) -> tuple[float, float]:
    """Return the truth and the claim for a weighted sum of squares of the levels."""
    claimed = max(
        sum(weight * move.l2_squared for weight, move in zip(weights, pattern, strict=True))
        for pattern in moves.patterns
    )
    return world.largest_squares([weights]), claimed


@each(
    ("bounds", "k", "cap", "weights", "true", "refuted"),
    [
        ((-1, 1), 1, None, [1, 1], 8, 2),  # a row stays and flips: no node is still
        ((-1, 1), 3, 2, [0, 1], 20, 10),  # more than 2 S m**2
        ((-2, 5), 3, 2, [0, 1], 288, 250),  # more than S max((high - low)**2, 2 m**2)
    ],
)
def test_replaced_rows_of_both_signs_move_every_level(bounds, k, cap, weights, true, refuted):
    caps = (None, cap) if cap else ()
    world = World(((-1,), (0, 0)), k, caps, True, (bounds,))
    quantity = Quantity(column="x", low=bounds[0], high=bounds[1])
    moves = sensitivity_on(FLAT, quantity, neighbors="replace", max_contributions=k, caps=caps)
    found, claimed = most(world, moves, weights)
    assert refuted < found == true <= claimed
    assert len(moves.patterns) == 1


def test_rows_of_both_signs_are_charged_what_they_reach():
    """Each bound is attained by some units: by all rows in one node, and by both fills of opposite ends."""
    for low, high, k, cap in [(-1, 1, 2, None), (-1, 1, 3, 2), (-1, 3, 1, None), (-1, 1, 2, 1)]:
        caps = (None, cap) if cap else ()
        world = World(((-1,), (0, 0)), k, caps, True, ((low, high),))
        quantity = Quantity(column="x", low=low, high=high)
        moves = sensitivity_on(FLAT, quantity, neighbors="replace", max_contributions=k, caps=caps)
        assert [each[1] for each in world.level_maxima()[0]] == [each.l2_squared for each in moves.levels]


def test_known_nodes_count_among_the_nodes_of_a_level():
    """A is public and B is measured, as are the leaves of both: a row that leaves B moves 3 nodes."""
    tree = Tree.from_branching([2, 1])
    known = frozenset({(0, 0, 0), (0, 1, 0)})
    world = World(((-1,), (0, 0), (0, 1)), 1, (), True, known=known)
    flags = [np.array([True]), np.array([True, False]), np.array([False, False])]
    moves = sensitivity_on(tree, Quantity(), neighbors="replace", max_contributions=1, known=flags)
    assert most(world, moves, [1, 1, 1]) == (3, 3)


@each(("neighbors", "nodes"), [("add_remove", 3), ("replace", 6)])
def test_simulated_noise_is_that_of_as_many_nodes_as_rows_move(monkeypatch, neighbors, nodes):
    """With at most 2 rows a leaf the fill of 3 rows has two nodes, but a unit can move three."""
    tree, seen = Tree.from_branching([9]), []
    simulation = composition.simulation

    def noted(variances, inverse_sum, moves, *rest):
        seen.append(moves)
        return simulation(variances, inverse_sum, moves, *rest)

    monkeypatch.setattr(composition, "simulation", noted)
    moves = sensitivity_on(tree, Quantity(), neighbors=neighbors, max_contributions=3, caps=(None, 2))
    composition.gaussian_delta(0.1, [20.0, 20.0], moves)
    composition.joint_gaussian_delta(0.1, [([20.0, 20.0], moves)])
    assert set(seen) == {nodes}


def test_a_unit_that_leaves_may_be_worse_than_one_that_moves():
    scales = [1 / 0.9, 2.0, 2.0]
    moves = sensitivity_on(Tree.from_branching([2, 1]), Quantity(), neighbors="replace", max_contributions=1)
    leaving = delta(1.0, [[(1,), (1,), (1,)]], [scales], 1)
    moving = delta(1.0, [[(), (1, 1), (1, 1)]], [scales], 1)
    assert (round(leaving, 4), round(moving, 4)) == (0.1635, 0.0949)
    assert composition.laplace_delta(1.0, scales, moves) == pytest.approx(leaving, rel=1e-9)


@each("scales", [[0.9, 2.0, 2.0], [3.0, 1.5, 1.5], [20.0, 60.0, 60.0], [60.0, 17.0, 17.0]])
@each(
    "of", [composition.gaussian_delta, lambda epsilon, *own: composition.joint_gaussian_delta(epsilon, [own])]
)
def test_gaussian_noise_suffices_for_the_worst_pattern(of, scales):
    moves = sensitivity_on(Tree.from_branching([2, 1]), Quantity(), neighbors="replace", max_contributions=1)
    epsilon = 2 / min(scales)
    patterns = [(1,), (1,), (1,)], [(), (1, 1), (1, 1)]
    true = max(delta(epsilon, [pattern], [scales], 2) for pattern in patterns)
    assert true <= of(epsilon, scales, moves)


@each("share", [0.02, 0.5, 0.98])
@each("loss", [{"rho": 0.5}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-5, "mechanism": "gaussian"}])
def test_less_noise_than_the_worst_pattern_needs_is_refused(share, loss):
    options = {"neighbors": "replace", "privacy_unit": "person", "max_contributions": 2, **loss}
    domain = dpt.Domain.from_frame(pd.DataFrame({"a": [*"xyz"]}), by=["a"])
    plan = dpt.plan(domain, split={"total": share, "a": 1 - share}, **options)
    enough = plan.unit_noise_scales
    dataclasses.replace(plan, unit_noise_scales=enough)
    with pytest.raises(ArgumentError, match="spend more"):
        dataclasses.replace(plan, unit_noise_scales=0.97 * enough)


def test_ranges_of_many_rows_cover_each_number():
    """One region of 100 clinics and many of one: most is moved by rows that fill the large one again."""
    k, levels = 150, [LevelCapacities(((150, 1),), True), LevelCapacities(((100, 1), (1, 200)), False)]
    moves = tree_sensitivity(levels, k, neighbors="replace")
    for root in (0.1, 0.3, 0.6, 1.0):
        claimed = max(root * above.l2_squared + below.l2_squared for above, below in moves.patterns)
        for b in range(k + 1):
            both = sorted([n for fill in map(levels[1].fill, (k, b)) for n in fill], reverse=True)
            squares = sum(rows**2 * n for rows, n in both)
            assert root * (k - b) ** 2 + squares <= claimed
    assert len(moves.patterns) == 34


@each("k", [2, 32, 33, 40, 500])
@each("caps", [{}, {"max_per_leaf": 1}, {"max_per_leaf": 2, "max_per_node": {"a": 5}}])
def test_the_verifier_finds_the_patterns_of_many_rows(k, caps):
    keys = pd.DataFrame({"a": [*"xxxxxxyyyz"], "b": [*"1234567890"]})
    known = keys.tail(2).assign(count=0)
    options = {"privacy_unit": "person", "max_contributions": k, "neighbors": "replace", "rho": 1.0}
    plan = dpt.plan(dpt.Domain.from_frame(keys, by=["a", "b"]), known=known, **options, **caps)
    check_verifier(case_of(plan, k))


@each(("low", "high"), [(1, 1), (0, 3)])
@each("k", [1, 3, 20, 100])
def test_a_few_patterns_cover_all_and_what_lies_between(k, low, high):
    quantity = Quantity(column=None if low else "x", low=low, high=high)
    caps = (None, None, 2)
    moves = sensitivity_on(
        Tree.from_branching([9, 7]), quantity, neighbors="replace", max_contributions=k, caps=caps
    )
    few = norms_of(moves.covered(8))
    assert len(few) <= 8
    every = norms_of(moves)
    for here, there in zip(every, every[1:] if moves.between else every, strict=False):
        assert any((here <= cover).all() and (there <= cover).all() for cover in few)


def norms_of(moves: TreeSensitivity) -> list[npt.NDArray[np.int64]]:
    return [
        np.array([(level.l1, level.l2_squared, level.linf) for level in pattern])
        for pattern in moves.patterns
    ]


def test_moves_are_not_split_evenly_if_one_node_may_move_further():
    """Both have the L1 norm 6 and the squared L2 norm 12."""
    evenly, unevenly = (delta(4.0, [[moves]], [[1.0]], 2) for moves in [(2, 2, 2), (3, 1, 1, 1)])
    assert 1.04 * evenly < unevenly
    assert unevenly <= composition.gaussian_delta(4.0, [1.0], Sensitivity(l1=6, l2_squared=12, linf=3))
    assert verify.worst_moves(verify.Move(6, 12, 3)) == []
    assert verify.worst_moves(verify.Move(6, 12, 2)) == [2, 2, 2]
