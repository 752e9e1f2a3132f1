"""Tables of distinct units checked from outside: costs, estimates, and forgeries of all that is stated."""

import dataclasses
import itertools
import json
import random
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree import verify
from pandas_dptree.plans import units
from pandas_dptree.privacy.sensitivity import Sensitivity, TreeSensitivity
from pandas_dptree.privacy.unit_sensitivity import unit_sensitivity
from tests.helpers_cases import each
from tests.helpers_unit_counts import RAGGED, UnitWorld, tree_of
from tests.helpers_verify import BY, PLACES, checked, edited, records, released, signed

LOSSES = [{"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}]
SMALL = {"epsilon": 0.1, "delta": 1e-9}
DOMAIN = dpt.Domain.from_frame(PLACES, by=BY)
FULL = dpt.Domain.from_frame(PLACES.dropna(), by=BY)
WIDE = dpt.Domain.from_frame(pd.DataFrame(itertools.product("abcd", "ef", "gh"), columns=BY), by=BY)
ALL = ["measurements", "linear"]

pytestmark = pytest.mark.filterwarnings("ignore:.*table is:pandas_dptree.DPTreeWarning")


def planned(domain=FULL, **options):
    """A plan with noise on all that can be measured."""
    defaults = {"privacy_unit": "person", "max_nodes": 3, "split": "uniform"}
    return dpt.plan_units(domain, **{**defaults, **options})


def failures(printed):
    return [line.removeprefix("FAIL").strip() for line in printed.splitlines() if line.startswith("FAIL")]


# --- honest releases ------------------------------------------------------------------------------------


def random_plan(seed):
    """A plan with random options; None if they exclude each other."""
    choose, places = random.Random(seed), PLACES.copy()
    places = places.dropna() if choose.random() < 0.4 else places
    zeros = choose.random() < 0.3
    if zeros:
        places["closed"] = [False, True] + [False] * (len(places) - 3) + [True]
    domain = dpt.Domain.from_frame(places, by=BY, structural_zeros="closed" if zeros else None)
    loss = choose.choice(
        [*LOSSES, {"epsilon": 0.1, "delta": 1e-9}, {"epsilon": 3.0, "delta": 1e-4}, {"rho": 3.0}]
    )
    pure = loss.keys() == {"epsilon"}
    unequal = [{"region": 1, "site": 3}, {"region": 1, "district": 2, "site": 5}]
    unequal += [{"region": 2, "district": 3, "site": 4}]
    try:
        return dpt.plan_units(
            domain,
            privacy_unit="person",
            max_nodes=choose.choice([1, 2, 3, 4, 8, *unequal]),
            neighbors=choose.choice(["add_remove", "replace"]),
            mechanism=choose.choice(["auto", "laplace"] if pure else ["auto", "laplace", "gaussian"]),
            split=choose.choice(["optimal", "optimal", "uniform", "geometric"]),
            consistency=choose.choice(["none", "linear", "nonnegative", "integer"]),
            objective=choose.choice(["levels", "cells", "worst"]),
            confidence=choose.choice([None, 0.9]),
            known={"total": 400} if choose.random() < 0.4 else None,
            keep=choose.choice([[], ["measurements"], ["linear"], ALL]),
            **loss,
        )
    except dpt.DPTreeError:
        return None


def all_pass(tmp_path, seeds):
    plans = {seed: random_plan(seed) for seed in seeds}
    made = {seed: plan for seed, plan in plans.items() if plan is not None}
    assert len(made) > 0.7 * len(plans)
    for seed, plan in made.items():
        code, printed = checked(tmp_path, *released(plan, seed))
        assert code == 0, f"{seed}: {printed}"


@each("seed", [2, 4, 30, 49, 55, 58])
def test_honest_releases_pass(tmp_path, seed):
    all_pass(tmp_path, [seed])


@pytest.mark.slow
@each("seeds", [range(60), range(60, 120)])
def test_more_honest_releases_pass(tmp_path, seeds):
    all_pass(tmp_path, seeds)


def passes_with_delta(tmp_path, neighbors, max_nodes, split):
    gaussian = {"epsilon": 3.0, "delta": 1e-4, "mechanism": "gaussian"}
    plan = planned(max_nodes=max_nodes, neighbors=neighbors, split=split, **gaussian)
    assert np.isfinite(plan.excess_noise_scales).any()
    code, printed = checked(tmp_path, *released(plan))
    assert code == 0, printed


def test_delta_of_units_of_one_shape(tmp_path):
    """Nobody is in several of the nodes whose excess is measured: all levels move furthest at once."""
    passes_with_delta(tmp_path, "replace", {"region": 1, "site": 2}, "uniform")


@pytest.mark.slow
@each("neighbors", ["add_remove", "replace"])
@each("max_nodes", [{"region": 1, "site": 2}, {"region": 1, "district": 2, "site": 5}, 2])
def test_delta_of_units_of_all_shapes(tmp_path, neighbors, max_nodes):
    passes_with_delta(tmp_path, neighbors, max_nodes, "optimal")


@pytest.mark.slow
def test_plans_that_charge_some_excesses_by_themselves_pass(tmp_path):
    """A unit can have hundreds of shapes in nine levels, each with a bound of its own."""
    names = [f"level {level}" for level in range(9)]
    domain = dpt.Domain.from_frame(
        pd.DataFrame(itertools.product(range(3), *[range(2)] * 8), columns=names), by=names
    )
    bounds = {name: level + 2 for level, name in enumerate(names)}
    plan = planned(domain, max_nodes=bounds, rho=0.1, neighbors="replace", split="optimal")
    one = pd.DataFrame({name: [0] for name in names}).assign(person=[1])
    stored, rows = released(plan, data=one)
    code, printed = checked(tmp_path, stored, rows)
    assert code == 0 and "99." in printed and "of rho are spent" in printed, printed
    for rho, fails in [(0.0998, False), (0.099, True), (0.103, True)]:
        found = failures(checked(tmp_path, edited(stored, "loss", "rho", value=rho), rows)[1])
        assert bool(found) == fails, (rho, found)


# --- what a unit costs ------------------------------------------------------------------------------------

WORLDS = [
    UnitWorld(tree_of(3, 3), (1, 3, 3)), UnitWorld(tree_of(3, 2), (1, 1, 2)), UnitWorld(RAGGED, (1, 2, 3, 3)),
    UnitWorld(tree_of(2, 2), (1, 2, 3)), UnitWorld(tree_of(3), (1, 3)), UnitWorld(RAGGED, (1, 1, 2, 4)),
]  # fmt: skip


@each("world", WORLDS)
@each("replace", [False, True])
def test_no_neighbours_cost_more_than_the_largest_shape(world, replace):
    world = dataclasses.replace(world, replace=replace)
    rng = np.random.default_rng(len(world.moves[0]))
    tight = 0
    for power, _ in itertools.product((1, 2), range(8)):
        weights = rng.integers(1, 20, len(world.moves)) * rng.integers(0, 2, len(world.moves))
        scales = [1 / weight if weight else np.inf for weight in weights.tolist()]
        spent = world.costs(lambda scale, move, p=power: move**p / scale, scales).max()
        charged = verify.largest_of_shapes(world.max_nodes, weights.tolist(), power, replace)
        assert spent <= charged + 1e-9
        tight += spent > charged - 1e-9
    assert tight >= (8 if world is WORLDS[0] else 1)


def test_the_largest_shape_is_found_among_all_of_them():
    rng = np.random.default_rng(5)
    for max_nodes in ((1, 4, 4), (1, 2, 3, 5), (1, 1, 3, 3), (1, 3)):
        n = len(max_nodes)
        shapes = [t for t in itertools.product(*(range(1, m + 1) for m in max_nodes)) if list(t) == sorted(t)]
        for power in (1, 2):
            weights = rng.integers(0, 9, 2 * n - 1).tolist()

            def cost(t, first, power=power, weights=weights, n=n):
                jumps = zip(weights[n + first :], np.diff(t)[first:].tolist(), strict=True)
                levels = zip(weights[first:n], t[first:], strict=True)
                return sum(w * x for w, x in levels) + sum(w * x**power for w, x in jumps)

            leaves = max(cost(t, 0) for t in shapes)
            moves = max(
                cost(t, 1) + cost(u, 1) + weights[n] * abs(t[1] - u[1]) ** power
                for t, u in itertools.product(shapes, repeat=2)
            )
            assert verify.largest_of_shapes(max_nodes, weights, power, False) == leaves
            assert verify.largest_of_shapes(max_nodes, weights, power, True) == max(leaves, moves)


@each("neighbors", ["add_remove", "replace"])
def test_levels_move_as_the_library_says(neighbors):
    """Each by itself, and, where one shape is that of all neighbours that cost most, together."""
    for max_nodes in ([1, 3, 3], [1, 1, 3], [1, 2, 5], [1, 4], [1]):
        n = len(max_nodes)
        tree = verify.Tree([[0] * m for m in max_nodes], [])
        for excess in itertools.product([False, True], repeat=n - 1):
            if any(own and most == 1 for own, most in zip(excess, max_nodes[1:], strict=True)):
                continue
            scales = [[1.0]] * n + [[1.0 if own else None] for own in excess]
            part = {"noise_scales": scales, "max_nodes": max_nodes}
            quantity = verify.Quantity("count", part, "values", 1, replace=neighbors == "replace")
            found = verify.moving(quantity, {}, tree)
            moves = unit_sensitivity(max_nodes, neighbors=neighbors, excess=excess)
            measured = [True] * n + list(excess)
            by_itself, *patterns = (
                [(each.l1, each.l2_squared, each.linf) for each in itertools.compress(levels, measured)]
                for levels in (moves.levels, *moves.patterns)
            )
            assert verify.cover(found.patterns) == by_itself
            assert found.between == moves.hull
            assert found.between or found.patterns == patterns


def with_scales(stored, scales, budget):
    """The plan with these scales, multiplied so that levels of a total `budget` of the loss spend all of it.

    The shares belong to the scales: what each would cost by itself.
    """
    pure, twice = "epsilon" in stored["loss"], 1 + (stored["neighbors"] == "replace")
    bounds, power = stored["max_nodes"], 1 if "epsilon" in stored["loss"] else 2
    alone = [1, *(twice * m for m in bounds[1:])]
    alone += [(twice if s else 1) * (m - 1) ** power for s, m in enumerate(bounds[1:])]
    costs = [c / b**power if b else 0.0 for c, b in zip(alone, scales, strict=True)]
    (loss,) = (value for name, value in stored["loss"].items() if name in ("epsilon", "rho"))
    charged = sum(c for c, counts in zip(costs, budget, strict=True) if counts) / (1 if pure else 2)
    times = (charged / loss) ** (1 / power) * (1 + 1e-9)
    return signed(
        stored
        | {"noise_scales": [[b and b * times] for b in scales], "shares": [[c / sum(costs)] for c in costs]}
    )


SHAPES = {"add_remove": [True] * 4 + [False] * 3, "replace": [False] + [True] * 3 + [False] * 3}


@each("neighbors", ["add_remove", "replace"])
@each("loss, mechanism", [(LOSSES[0], "laplace"), (LOSSES[1], "laplace"), (LOSSES[1], "gaussian")])
def test_excesses_that_are_charged_to_nobody_fail(tmp_path, neighbors, loss, mechanism):
    """They are free only up to their precision, below the root, and less for Laplace noise in rho."""
    stored, rows = released(planned(WIDE, max_nodes=4, neighbors=neighbors, mechanism=mechanism, **loss))
    pure = "epsilon" in loss
    first, second = (1.0, 0.5) if pure else (3**0.5, 1.5**0.5)  # beside scales of 1 of all levels
    cases = [
        ((None, None, None), True),
        ((None, first, second), True),
        ((None, first * 0.99, None), False),
        ((None, None, second * 0.99), False),
        ((10.0, None, None), neighbors == "replace"),
        ((0.5, None, None), False),
        ((None, 1.0, 0.5), pure),
    ]
    for excess, free in cases:
        forged = with_scales(stored, [1.0] * 4 + list(excess), SHAPES[neighbors])
        found = failures(checked(tmp_path, forged, rows)[1])
        assert not any("shares" in line or "format" in line for line in found), found
        assert any(line.startswith("budget") for line in found) != free, (excess, found)


@each("forgotten, loss", [
    ("excess", LOSSES[0]), ("excess", SMALL), ("excess of the root", LOSSES[1]), ("jumps", SMALL),
    ("leaves", LOSSES[1]), ("leaves", LOSSES[0]),
])  # fmt: skip
def test_noise_for_some_of_the_shapes_fails(tmp_path, monkeypatch, forgotten, loss):
    """As if the library forgot what moves together: its own checks would repeat the mistake."""

    def wrong(max_nodes, **options):
        moves, n = unit_sensitivity(max_nodes, **options), len(max_nodes)
        still = Sensitivity(l1=0, l2_squared=0)
        if forgotten.startswith("excess"):
            apart = slice(n, n + 1 if forgotten.endswith("root") else None)
            patterns = [[*each] for each in moves.patterns]
            for pattern in patterns:
                pattern[apart] = [still] * len(pattern[apart])
        elif forgotten == "jumps":
            patterns = [each for each in moves.patterns if not each[n].l1]
        else:
            patterns = [each for each in moves.patterns if not each[0].l1]
        alone = [[still] * place + [each] for place, each in enumerate(moves.levels)]
        alone = [(each + [still] * 2 * n)[: 2 * n - 1] for each in alone]
        return TreeSensitivity((*map(tuple, patterns), *map(tuple, alone)), hull=True)

    noise = "laplace" if loss == LOSSES[0] else "gaussian"
    options = {"max_nodes": 4, "mechanism": noise, "neighbors": "replace", **loss}
    if forgotten != "leaves":
        options["neighbors"] = "add_remove"
    plan = planned(WIDE, **options)
    shares = [0.5, 0.05, 0.05, 0.2, 0.1, 0.05, 0.05]
    if forgotten == "leaves":
        shares = [0.9, 0.01, 0.01, 0.02, 0.02, 0.02, 0.02]
    made = partial(dataclasses.replace, plan, budget_shares=np.array(shares))
    assert checked(tmp_path, *released(made(unit_noise_scales=units.FROM_SHARES)))[0] == 0
    with monkeypatch.context() as patched:
        patched.setattr(units, "unit_sensitivity", wrong)
        found = failures(checked(tmp_path, *released(made(unit_noise_scales=units.FROM_SHARES)))[1])
    assert len(found) == 1 and found[0].startswith("budget"), found


# --- estimates ------------------------------------------------------------------------------------------


def test_estimates_and_variances_are_those_of_dense_least_squares():
    """All counts are linear functions of those of leaves and of the excesses, which are measured too."""
    rng = np.random.default_rng(3)
    parents = [[], [0, 0, 0], [0, 0, 1, 2, 2], [0, 0, 1, 2, 3, 4, 4, 4]]
    sizes = [1, 3, 5, 8]
    tree = verify.Tree([list(range(n)) for n in sizes], parents)
    several = [np.bincount(below, minlength=n) > 1 for below, n in zip(parents[1:], sizes, strict=False)]
    free = [np.eye(8 + 9)[:8]]  # each node as a function of leaves and excesses
    for level in (2, 1, 0):
        start = 8 + sum(sizes[:level])
        sums = [free[0][np.array(parents[level + 1]) == node].sum(axis=0) for node in range(sizes[level])]
        free.insert(0, np.array(sums) - np.eye(17)[start : start + sizes[level]] * several[level][:, None])
    nodes, of_excess = np.vstack(free), np.eye(17)[8:][np.concatenate(several)]
    for missing in (None, 1, 0):
        noise = [rng.uniform(0.5, 3, n) for n in sizes]
        excess = [np.where(own, rng.uniform(0.5, 3, len(own)), 0.0) for own in several]
        if missing is not None:
            noise[missing][:] = np.inf
            excess[1 - missing] = np.where(several[1 - missing], np.inf, 0.0)
        measured = [rng.normal(0, 5, n) for n in sizes]
        beyond = [rng.normal(0, 5, n) for n in sizes[:-1]]
        precision = 1 / np.concatenate([*noise, np.concatenate(excess)[np.concatenate(several)]])
        rows = np.vstack([nodes, of_excess])
        y = np.concatenate([*measured, np.concatenate(beyond)[np.concatenate(several)]])
        inverse = np.linalg.pinv(rows.T @ (precision[:, None] * rows))
        best = nodes @ inverse @ rows.T @ (precision * y)
        levels = [[each.tolist() for each in own] for own in (noise, excess, measured, beyond)]
        found = verify.estimates(tree, *levels)
        _, final, _ = verify.least_squares(tree, *levels[:2])
        np.testing.assert_allclose(np.concatenate(found), best, atol=1e-8)
        np.testing.assert_allclose(np.concatenate(final), np.diag(nodes @ inverse @ nodes.T), atol=1e-8)


# --- forgeries ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[LOSSES[0], LOSSES[1], SMALL], ids=["pure", "rho", "approximate"])
def release(request):
    """A release with noise on all that is not known; a test may not change it."""
    gaussian = {"mechanism": "laplace" if request.param == LOSSES[0] else "gaussian"}
    plan = planned(WIDE, confidence=0.9, keep=ALL, known={"total": 150}, **gaussian, **request.param)
    return released(plan)


def forged_plans(stored):
    """Plans that are not that of the release, each with its digest."""
    name = "rho" if "rho" in stored["loss"] else "epsilon"
    for part, (scale,) in enumerate(stored["noise_scales"]):
        if scale is not None:
            yield f"less noise {part}", edited(stored, "noise_scales", part, 0, value=scale * 0.9)
            yield f"more noise {part}", edited(stored, "noise_scales", part, 0, value=scale * 1.1)
            unmeasured = edited(stored, "noise_scales", part, 0, value=None)
            yield f"no noise {part}", edited(unmeasured, "shares", part, 0, value=0.0)
    scales = [scale for (scale,) in stored["noise_scales"]]
    for excess in range(4, 7):
        scale = (scales[excess] or 30.0) * 0.8
        all_scales = [*scales[:excess], scale, *scales[excess + 1 :]]
        counted = [True] * 4 + [False] * 3 if excess == 4 else [True] * 7
        yield f"another excess {excess}", with_scales(stored, all_scales, counted)
    yield "all noise", signed(stored | {"noise_scales": [[b and b * 0.95] for b in scales]})
    yield "all noise is larger", signed(stored | {"noise_scales": [[b and b * 1.05] for b in scales]})
    for bounds in ([1, 2, 2, 2], [1, 4, 4, 4], [1, 1, 3, 3], [1, 3, 3, 4], [1, 2, 3, 3]):
        smaller = stored | {"max_nodes": bounds, "max_contributions": bounds[-1]}
        yield f"bounds {bounds}", signed(smaller)
    for bounds in ([2, 3, 3, 3], [1, 3, 2, 3], [1, 3, 3], [1, 3, 3, 3, 3], [1, 3, 3, 17], [1, 3, 3, True], 3):
        yield f"bounds {bounds}", signed(stored | {"max_nodes": bounds})
    yield "bounds above the nodes", signed(stored | {"max_nodes": [1, 5, 5, 5], "max_contributions": 5})
    yield "another number of leaves", signed(stored | {"max_contributions": 2})
    yield "another relation", signed(stored | {"neighbors": "replace"})
    for factor in (0.95, 1.05) if stored["loss"].get("delta") else (0.95, 1.0001):
        yield f"the loss times {factor}", edited(stored, "loss", name, value=lambda x, f=factor: x * f)
    other = {"laplace": "gaussian", "gaussian": "laplace"}[stored["mechanism"]]
    yield "another mechanism", signed(stored | {"mechanism": other})
    yield "another total", edited(stored, "known", "exact", 0, value=[[0, 151]])
    yield "a known region", edited(stored, "known", "exact", 1, value=[[0, 20]])
    yield "a least region", edited(stored, "known", "at_least", 1, value=[[0, 1]])
    yield "an empty leaf", edited(stored, "known", "exact", 3, value=[[0, 0]])
    yield "no known total", edited(stored, "known", "exact", 0, value=[])
    yield "additive", signed(stored | {"kind": "additive"})
    counted = {"quantity": verify.COUNT, "fit": "totals", "kind": "additive"}
    plain = {key: value for key, value in stored.items() if key not in ("max_nodes", "keep_linear")} | counted
    yield (
        "counts of rows",
        signed(plain | {"shares": plain["shares"][:4], "noise_scales": plain["noise_scales"][:4]}),
    )
    for key, value in [
        ("privacy_unit", None), ("keep_linear", 1), ("fit", "totals"), ("quantity", verify.COUNT),
        ("max_per_leaf", 1), ("shares", lambda shares: shares[:4]),
        ("noise_scales", lambda scales: [*scales, [None]]),
        ("in_forest", True), ("nodes", [1, 4, 8, 15]), ("keep_measurements", False), ("confidence", None),
    ]:  # fmt: skip
        yield f"{key}: {value}", edited({key: None} | stored, key, value=value)
    yield "no bounds", signed({key: value for key, value in stored.items() if key != "max_nodes"})


def test_forged_plans_fail(tmp_path, release):
    stored, rows = release
    assert checked(tmp_path, stored, rows)[0] == 0
    assert any(scale for (scale,) in stored["noise_scales"][4:])
    passed = [
        what for what, forged in forged_plans(stored) if not failures(checked(tmp_path, forged, rows)[1])
    ]
    assert passed == []


def test_plans_that_contradict_themselves_are_named(tmp_path):
    stored, rows = released(planned(WIDE, max_nodes={"region": 1, "site": 3}, rho=0.1))
    bounds, units_known = "`max_nodes` is not 1 for the root", "more is known than the total"
    for path, value, message in [
        (("max_nodes",), [2, 2, 3, 3], bounds), (("max_nodes",), [1, 3, 1, 3], bounds),
        (("max_nodes",), [1, 1, 3], bounds), (("max_nodes",), [1, 1, 3, 4], bounds),
        (("noise_scales", 4, 0), 9.0, "an excess is measured where no unit is in two nodes"),
        (("known", "exact", 1), [[0, 20]], units_known), (("known", "at_least", 1), [[0, 20]], units_known),
        (("privacy_unit",), None, "malformed 'privacy_unit'"), (("max_nodes",), [], "malformed 'max_nodes'"),
        (("shares",), [[0.25]] * 4, "one entry for each level"),
        (("noise_scales",), [[9.0]] * 8, "one entry for each level"),
    ]:  # fmt: skip
        (found,) = failures(checked(tmp_path, edited(stored, *path, value=value), rows)[1])
        assert found.startswith("format: ") and message in found, (path, found)
    several = edited(edited(stored, "max_nodes", value=[1, 1, 9, 9]), "max_contributions", value=9)
    (found,) = failures(checked(tmp_path, several, rows)[1])
    assert found.startswith(
        "plan of 'count': its known counts, or bounds, do not fit levels of [1, 4, 8, 16]"
    )
    nobody = edited(stored, "known", "exact", 3, value=[[0, 0]])
    assert not any("format" in line for line in failures(checked(tmp_path, nobody, rows)[1]))


FAILS = {
    "count": "standard errors|known values|not additive|intervals", "std_error": "standard errors",
    "lower": "intervals", "upper": "intervals", "noise_scale": "noise scales",
    "linear": "estimates of 'count'",
    "measurement": "estimates of 'count'", "excess_measurement": "estimates of 'count'",
    "excess_noise_scale": "excess noise scales",
}  # fmt: skip


def test_forged_tables_fail(tmp_path, release):
    stored, (header, *body) = release
    for column, expected in FAILS.items():
        place = header.index(column)
        for row in (0, 1, 7, len(body) - 1):
            shown = body[row][place]
            step = {"count": 10**6, "lower": 10**6, "upper": -(10**6)}.get(
                column, 0.25 + abs(float(shown or 1)) / 50
            )
            forged = [[*each] for each in body]
            forged[row][place] = str(
                (int if column in ("count", "lower", "upper") else float)(shown or 0) + step
            )
            if not shown and column.endswith("measurement"):
                continue  # nothing is measured there
            found = failures(checked(tmp_path, stored, [header, *forged])[1])
            assert any(re.match(f"({expected})|.*not additive", line) for line in found), (column, row, found)
    without = [each for each in body if each[1:4] != body[-1][1:4]]
    moved = [body[0], body[2], body[1], *body[3:]]
    for what, forged in {"a row": without, "twice": [*body, body[-1]], "order": moved}.items():
        assert failures(checked(tmp_path, stored, [header, *forged])[1]), what


def with_counts(rows, counts):
    """The table with other counts, some of them by the line that shows them."""
    header, *body = [[*row] for row in rows]
    for row, count in counts.items():
        body[row][header.index("count")] = str(count)
    return [header, *body]


@each("consistency", ["integer", "nonnegative"])
def test_counts_that_no_units_have_fail(tmp_path, consistency):
    """A node, its largest child and the sum of its children; a unit is in at most two children of a node."""
    domain = dpt.Domain.from_frame(pd.DataFrame({"a": [*"xxxyyy"], "b": [*"pqrpqr"]}), by=["a", "b"])
    plan = dpt.plan_units(domain, privacy_unit="person", max_nodes=2, rho=1.0, consistency=consistency)
    one = pd.DataFrame({"a": ["x"], "b": ["p"], "person": [1]})
    stored, rows = released(plan, data=one)
    counts = [12, 8, 6, 8, 2, 3, 4, 1, 1]  # total, x and y, the children of x, and those of y
    possible = with_counts(rows, dict(enumerate(counts)))
    code, printed = checked(tmp_path, stored, possible)
    assert code == 0, printed
    for changed, fails in [
        ({0: 14}, False), ({0: 15}, True), ({0: 7}, True), ({0: 8}, False), ({1: 7}, True), ({1: 13}, True),
        ({1: 12}, False), ({2: 5}, False), ({2: 7}, True), ({3: 9}, True), ({4: 8, 5: 1}, True),
        ({4: 5, 5: 3}, False), ({6: 5}, False), ({7: 0}, True), ({6: 6, 7: 6, 8: 1}, True), ({8: -1}, True),
    ]:  # fmt: skip
        found = failures(checked(tmp_path, stored, with_counts(possible, changed))[1])
        assert bool(found) == fails, (changed, found)
        assert (
            not fails or "is not negative" in found[0] or "'count', not additive: largest child" in found[-1]
        )


@each("consistency", ["linear", "none"])
def test_unbiased_counts_follow_from_the_measurements(tmp_path, consistency):
    plan = planned(WIDE, rho=0.1, consistency=consistency, keep=["measurements"])
    stored, rows = released(plan)
    code, printed = checked(tmp_path, stored, rows)
    assert code == 0 and "NOT CHECKED 'count', not additive" in printed
    place = rows[0].index("count")
    for row in (1, 2, 9, 20):
        forged = [[*each] for each in rows]
        forged[row][place] = str((int if consistency == "none" else float)(rows[row][place]) + 1)
        (found,) = failures(checked(tmp_path, stored, forged)[1])
        assert found.startswith("estimates of 'count' from its measurements: 1 wrong")


def test_what_cannot_be_computed_again_is_said(tmp_path):
    for domain, options in [(DOMAIN, {"keep": ALL}), (FULL, {"keep": ["measurements"]})]:
        code, printed = checked(tmp_path, *released(planned(domain, rho=0.1, **options)))
        assert code == 0 and "NOT CHECKED estimates of 'count' from its measurements" in printed
    plan = dpt.plan_agg(
        FULL,
        {"visits": "count", "people": "units"},
        privacy_unit="person",
        max_contributions=4,
        max_nodes=2,
        rho=0.1,
    )
    code, printed = checked(tmp_path, *released(plan))
    assert code == 3 and "joint (distinct units beside other quantities" in printed


def test_a_description_that_calls_the_counts_additive_fails(tmp_path):
    plan = planned(rho=0.1)
    table = plan.release(records(), rng=np.random.default_rng(0))
    dpt.to_file(table, tmp_path / "counts.csv")
    beside = tmp_path / "counts.csv.json"
    described = json.loads(beside.read_text())
    assert verify.main([str(beside), str(tmp_path / "counts.csv")]) == 0
    for key, value in {"additive": True, "max_nodes": {"region": 1, "district": 3, "site": 3}}.items():
        beside.write_text(json.dumps(described | {"attrs": described["attrs"] | {key: value}}))
        assert verify.main([str(beside), str(tmp_path / "counts.csv")]) == 1
