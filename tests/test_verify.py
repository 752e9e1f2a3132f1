"""Releases checked from outside: honest ones pass, forged ones do not, even with a digest to match."""

import ast
import copy
import dataclasses
import hashlib
import io
import json
import random
import shutil
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree import verify
from pandas_dptree.cli.commands import main
from pandas_dptree.planning import capacities
from pandas_dptree.privacy import loss as loss_module
from pandas_dptree.privacy import tree_sensitivity
from tests.helpers_cases import each
from tests.helpers_verify import BY, PLACES, checked, edited, released, rows_of, signed

LOSSES = [{"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}]


@pytest.fixture(
    scope="module",
    params=[*LOSSES, LOSSES[2] | {"mechanism": "gaussian"}],
    ids=["pure", "rho", "approximate", "gaussian"],
)
def release(request):
    """A small release of counts, whose total was known to be at least 10 and one site empty.

    A test may not change it.
    """
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    known = pd.DataFrame({"region": ["a", None], "district": ["b", None], "site": ["d", None]})
    known = known.assign(count=[60, None], at_least=[None, 10])
    options = {"privacy_unit": "person", "max_contributions": 4, "split": "uniform", **request.param}
    plan = dpt.plan(domain, known=known, **options)
    return released(plan)


def random_plan(seed):
    """A plan with random options; None if they exclude each other."""
    choose, places = random.Random(seed), PLACES.copy()
    zeros = choose.random() < 0.3
    if zeros:
        places["closed"] = [False, True, False, False, False, False, False, True]
    domain = dpt.Domain.from_frame(places, by=BY, structural_zeros="closed" if zeros else None)
    loss = choose.choice(
        [*LOSSES, {"epsilon": 0.1, "delta": 1e-9}, {"epsilon": 3.0, "delta": 1e-4}, {"rho": 3.0}]
    )
    pure = loss.keys() == {"epsilon"}
    by_level = {"total": 0.25, "region": 0.5, "site": 0.25}
    options = {
        **loss,
        "neighbors": choose.choice(["add_remove", "replace"]),
        "privacy_unit": "person",
        "max_contributions": choose.randint(1, 5),
        "max_per_leaf": choose.choice([None, None, 1, 2]),
        "max_per_node": choose.choice([None, None, {"region": 2}, {"region": 3, "district": 2}]),
        "mechanism": choose.choice(["auto", "laplace"] if pure else ["auto", "laplace", "gaussian"]),
        "split": choose.choice(["optimal", "uniform", "geometric", by_level]),
        "consistency": choose.choice(["none", "linear", "nonnegative", "integer"]),
        "objective": choose.choice(["levels", "cells", "worst"]),
        "confidence": choose.choice([None, 0.9]),
        "keep": ["measurements"] if choose.random() < 0.3 else [],
    }
    bounds = choose.choice([(0, 50), (-20, 50), (-30, 30)])
    aggregations = {
        "n": "count",
        "cost": dpt.mean("cost", bounds=bounds),
        "age": dpt.sum("age", bounds=(0, 1)),
    }
    known = {"total": 400} if choose.random() < 0.4 else None
    try:
        match choose.choice(["counts", "counts", "sum", "sums", "agg"]):
            case "counts":
                return dpt.plan(domain, known=known, **options)
            case "sum":
                step = choose.choice([0.01, 1, None])
                return dpt.plan(domain, column="cost", bounds=bounds, granularity=step, **options)
            case "sums":
                limits = {"cost": bounds, "age": (0, 1)}
                return dpt.plan_sums(domain, columns=["cost", "age"], bounds=limits, **options)
            case _:
                return dpt.plan_agg(domain, aggregations, known=known, **options)
    except dpt.DPTreeError:
        return None


@pytest.mark.parametrize(
    "seeds",
    [
        [*range(8), 12, 17],  # the last two are sums of both signs, where a row is replaced
        pytest.param(range(8, 60), marks=pytest.mark.slow),
        pytest.param(range(60, 300), marks=pytest.mark.nightly),
    ],
    ids=["", "more", "all"],
)
def test_honest_releases_pass(tmp_path, seeds):
    plans = {seed: random_plan(seed) for seed in seeds}
    made = {seed: plan for seed, plan in plans.items() if plan is not None}
    assert len(made) > 0.7 * len(plans)
    for seed, plan in made.items():
        code, printed = checked(tmp_path, *released(plan, seed))
        assert code == 0, f"{seed}: {printed}"


def test_the_report(tmp_path, release):
    stored, rows = release
    code, printed = checked(tmp_path, stored, rows, "--digest", stored["digest"])
    assert code == 0 and "0 failed" in printed and "secret source" in printed and "noted one" not in printed
    code, printed = checked(tmp_path, stored, rows)
    assert code == 0 and "noted one" in printed
    code, printed = checked(tmp_path, stored, rows, "--digest", "0" * 64)
    assert code == 1 and "FAIL        noted digest" in printed


def forged_plans(stored):
    """Plans that are not that of the release, each with its digest."""
    levels = range(len(stored["levels"]))
    measured = [level for level in levels if stored["noise_scales"][level][0] is not None]
    first, last = measured[0], measured[-1]
    yield "a share", edited(stored, "shares", last, 0, value=lambda share: share * 0.9)
    power = 1 if stored["mechanism"] == "laplace" and "epsilon" in stored["loss"] else 2
    two = edited(stored, "shares", last, 0, value=lambda share: share - 0.01)
    two = edited(two, "shares", first, 0, value=lambda share: share + 0.01)
    yield "two shares", two
    for level in (first, last):
        ratio = stored["shares"][level][0] / two["shares"][level][0]
        two = edited(two, "noise_scales", level, 0, value=lambda scale, r=ratio: scale * r ** (1 / power))
    yield "two shares with their noise", two
    for level in measured:
        yield (
            f"less noise on level {level}",
            edited(stored, "noise_scales", level, 0, value=lambda scale: scale * 0.9),
        )
    yield (
        "all noise",
        signed(
            stored | {"noise_scales": [[s and s * 0.95 for s in level] for level in stored["noise_scales"]]}
        ),
    )
    yield "half of the rows", edited(stored, "max_contributions", value=2)
    yield "more rows", edited(stored, "max_contributions", value=5)
    other = {"add_remove": "replace", "replace": "add_remove"}[stored["neighbors"]]
    yield "another relation", edited(stored, "neighbors", value=other)
    name = "rho" if "rho" in stored["loss"] else "epsilon"
    yield "a smaller loss", edited(stored, "loss", name, value=lambda loss: loss * 0.95)
    yield "a larger loss", edited(stored, "loss", name, value=lambda loss: loss * 1.05)
    if name == "rho":
        yield "a delta with a rho", edited(stored, "loss", "delta", value=1e-6)
    if stored["loss"].get("delta") and stored["mechanism"] == "gaussian":  # else it hardly matters
        yield "a smaller delta", edited(stored, "loss", "delta", value=lambda delta: delta / 2)
        yield "a larger delta", edited(stored, "loss", "delta", value=lambda delta: delta * 4)
    yield (
        "another mechanism",
        edited(
            stored, "mechanism", value={"laplace": "gaussian", "gaussian": "laplace"}[stored["mechanism"]]
        ),
    )
    yield "a known count", edited(stored, "known", "exact", len(levels) - 1, 0, 1, value=61)
    yield "an unknown known node", edited(stored, "known", "exact", len(levels) - 1, 0, 0, value=3)
    yield "a lower bound", edited(stored, "known", "at_least", 0, value=[[0, 10_000]])
    yield "an unknown key", signed(stored | {"comment": "approved"})
    yield "a missing key", signed({key: value for key, value in stored.items() if key != "fit"})
    for path, value in [
        (("max_contributions",), True), (("keep_measurements",), 0), (("levels", 1), "province"),
        (("levels", 1), "total"), (("nodes", 1), 2), (("quantity",), []), (("quantity", "high"), 2),
        (("quantity", "low"), 3), (("known", "exact"), []), (("loss", "rho"), 1.0), (("shares", 0, 0), -0.1),
        (("noise_scales", 1), lambda scales: scales * 2), (("quantity", "shift"), 1), (("confidence",), 1),
        (("split",), "x"), (("objective",), "x"), (("domain",), None), (("domain_source",), None),
        (("level_weights", 0), -1.0), (("kind",), "x"), (("format",), "pandas_dptree plan, version 2"),
    ]:  # fmt: skip
        yield f"{path}: {value}", edited(stored, *path, value=value)
    if stored["mechanism"] == "laplace":
        by_leaf = {
            key: [*stored[key][:-1], stored[key][-1] * len(PLACES)] for key in ("shares", "noise_scales")
        }
        yield "noise by node", signed(stored | by_leaf)


def test_forged_plans_fail(tmp_path, release):
    stored, rows = release
    missed = [what for what, forged in forged_plans(stored) if checked(tmp_path, forged, rows)[0] != 1]
    assert missed == []


@pytest.mark.parametrize("own", [{"epsilon": 0.07}, {"rho": 0.56}])
def test_noise_of_the_float_fails_where_the_decimal_is_smaller(tmp_path, monkeypatch, own):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    stored, rows = released(dpt.plan(domain, split="uniform", **own))
    assert checked(tmp_path, stored, rows)[0] == 0
    monkeypatch.setattr(loss_module, "exact", Fraction)
    stored, rows = released(dpt.plan(domain, split="uniform", **own))
    code, printed = checked(tmp_path, stored, rows)
    assert code == 1 and "FAIL        budget of 'count'" in printed


def test_the_relation_fails_in_both_directions(tmp_path):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    for loss in LOSSES:
        stored, rows = released(
            dpt.plan(domain, neighbors="replace", max_contributions=2, privacy_unit="person", **loss)
        )
        assert checked(tmp_path, stored, rows)[0] == 0
        code, printed = checked(tmp_path, edited(stored, "neighbors", value="add_remove"), rows)
        assert code == 1 and "not larger than" in printed


CAPPED = {"privacy_unit": "person", "max_contributions": 4, "max_per_leaf": 1, "max_per_node": {"region": 3}}


@each("neighbors", ["add_remove", "replace"])
@each("loss", [LOSSES[1], LOSSES[2] | {"mechanism": "gaussian"}])
def test_forged_caps_fail(tmp_path, neighbors, loss):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    stored, rows = released(dpt.plan(domain, neighbors=neighbors, split="uniform", **CAPPED, **loss))
    assert checked(tmp_path, stored, rows)[0] == 0
    forged = {
        "no cap of leaves": {key: value for key, value in stored.items() if key != "max_per_leaf"},
        "no caps": {key: value for key, value in stored.items() if not key.startswith("max_per")},
        "another cap of leaves": stored | {"max_per_leaf": 2},
        "no rows in a leaf": stored | {"max_per_leaf": 0},
        "a lower cap of a node": stored | {"max_per_node": {"region": 1}},
        "a cap of the root": stored | {"max_per_node": {"region": 3, "total": 3}},
        "a cap of leaves twice": stored | {"max_per_node": {"region": 3, "site": 1}},
        "a cap of no level": stored | {"max_per_node": {"region": 3, "x": 2}},
        "no caps at all": stored | {"max_per_node": {}},
    }
    for level in range(4 * ("rho" in loss)):  # less noise on one level, more on another
        for other in {0, 3} - {level}:
            scales = copy.deepcopy(stored["noise_scales"])
            scales[level][0], scales[other][0] = scales[level][0] / 1.3, scales[other][0] * 1.3
            forged[f"level {level} for {other}"] = stored | {"noise_scales": scales}
    missed = [what for what, plan in forged.items() if checked(tmp_path, signed(plan), rows)[0] != 1]
    assert missed == []


@each(("chosen", "heavy"), [(slice(0, 1), "site"), (slice(-1, None), "total"), (slice(1, None), "total")])
@each("loss", [LOSSES[0], LOSSES[1]])
def test_noise_for_some_of_the_patterns_fails(tmp_path, monkeypatch, chosen, heavy, loss):
    """As if a unit whose rows are replaced only left, or only moved, or left one row at least."""
    every = tree_sensitivity.tree_sensitivity

    def some(*arguments, **options):
        moves = every(*arguments, **options)
        return dataclasses.replace(moves, patterns=moves.patterns[chosen])

    split = {"total": 0.05, "site": 0.05, heavy: 0.95}
    options = {"neighbors": "replace", "privacy_unit": "person", "max_contributions": 2}
    monkeypatch.setattr(capacities, "tree_sensitivity", some)
    stored, rows = released(dpt.plan(dpt.Domain.from_frame(PLACES, by=BY), split=split, **options, **loss))
    code, printed = checked(tmp_path, stored, rows)
    assert code == 1 and "FAIL        budget of 'count'" in printed


def test_a_digest_that_was_not_recomputed_fails(tmp_path, release):
    stored, rows = release
    assert checked(tmp_path, {**stored, "fit": "joint"}, rows)[0] == 1
    assert checked(tmp_path, {**stored, "version": "1.2.3"}, rows)[0] == 0  # is not covered


def forged_tables(rows):
    """Tables that are not the released one."""
    header, *body = rows
    count, error = header.index("count"), header.index("std_error")
    for place, row in enumerate(body):
        for step in (1, -1):
            changed = [*row[:count], str(int(row[count]) + step), *row[count + 1 :]]
            yield f"count {place}", [header, *body[:place], changed, *body[place + 1 :]]
        changed = [*row[:error], str(float(row[error]) * 1.001 + 1e-5), *row[error + 1 :]]
        yield f"error {place}", [header, *body[:place], changed, *body[place + 1 :]]
        yield f"without {place}", [header, *body[:place], *body[place + 1 :]]
        yield f"twice {place}", [header, *body[: place + 1], *body[place:]]
        yield f"empty {place}", [header, *body[:place], [*row[:count], "", row[error]], *body[place + 1 :]]
    for level in ("total", *BY):
        yield f"without {level}", [header, *(row for row in body if row[0] != level)]
    yield "another order", [header, body[0], body[2], body[1], *body[3:]]
    yield "another key", [header, *body[:1], ["region", "x", *body[1][2:]], *body[2:]]
    yield "another column", [[*header[:-1], "error"], *body]
    yield "a cut row", [header, *body[:-1], body[-1][:-1]]


def test_forged_tables_fail(tmp_path, release):
    stored, rows = release
    missed = [what for what, forged in forged_tables(rows) if checked(tmp_path, stored, forged)[0] != 1]
    assert missed == []


@each("consistency", ["linear", "nonnegative"])
def test_fractions_that_do_not_add_up_fail(tmp_path, consistency):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    stored, rows = released(dpt.plan(domain, rho=0.1, consistency=consistency))
    assert checked(tmp_path, stored, rows)[0] == 0
    for place in range(1, len(rows)):
        forged = copy.deepcopy(rows)
        forged[place][-2] = str(float(rows[place][-2]) + 0.001)
        assert checked(tmp_path, stored, forged)[0] == 1


def test_sums_are_added_in_whole_units(tmp_path):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    options = {
        "column": "cost",
        "bounds": (0, 50),
        "granularity": 0.01,
        "keep": ["measurements"],
        "confidence": 0.9,
    }
    stored, rows = released(dpt.plan(domain, rho=0.1, **options))
    assert checked(tmp_path, stored, rows)[0] == 0
    column = {name: place for place, name in enumerate(rows[0])}
    for name, step in [
        ("cost", 0.01), ("cost", 0.001), ("cost_noise_scale", 0.01), ("cost_lower", 1e6),
        ("cost_std_error", 0.01),
    ]:  # fmt: skip
        forged = copy.deepcopy(rows)
        forged[3][column[name]] = str(float(rows[3][column[name]]) + step)
        assert checked(tmp_path, stored, forged)[0] == 1, name


def test_joint_releases_are_checked_together(tmp_path):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    aggregations = {
        "n": "count",
        "cost": dpt.mean("cost", bounds=(0, 50)),
        "age": dpt.sum("age", bounds=(0, 1)),
    }
    common = {"split": "uniform"}
    for loss in LOSSES:
        for mechanism in ["laplace"] if loss == LOSSES[0] else ["laplace", "gaussian"]:
            stored, rows = released(dpt.plan_agg(domain, aggregations, mechanism=mechanism, **common, **loss))
            code, printed = checked(tmp_path, stored, rows)
            assert code == 0 and "NOT CHECKED values and errors of 'cost'" in printed
            name = "rho" if "rho" in loss else "epsilon"
            for factor in (0.95, 1.05):
                forged = edited(stored, "loss", name, value=lambda x, f=factor: x * f)
                assert checked(tmp_path, forged, rows)[0] == 1
            part = edited(stored, "plans", 0, 1, "noise_scales", 0, 0, value=lambda x: x * 0.9)
            assert checked(tmp_path, part, rows)[0] == 1
            other = {"epsilon": 1.0, "delta": 0.0} if "rho" in stored["plans"][1][1]["loss"] else {"rho": 0.1}
            assert checked(tmp_path, edited(stored, "plans", 1, 1, "loss", value=other), rows)[0] == 1
            assert checked(tmp_path, edited(stored, "plans", 1, 1, value=[]), rows)[0] == 1
            part = edited(stored, "plans", 1, 1, "noise_scales", value=[[None]] * 4)
            part = edited(
                part, "plans", 1, 1, "shares", value=[[0.0]] * 4
            )  # the mean, of which little is shown
            assert "FAIL        budget of 'cost'" in checked(tmp_path, part, rows)[1]
            missing = edited(
                stored, "plans", 2, 1, value=lambda x: {k: v for k, v in x.items() if k != "fit"}
            )
            assert checked(tmp_path, missing, rows)[0] == 1


def test_names_of_joint_plans_are_checked(tmp_path):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    aggregations = {
        "n": "count",
        "cost": dpt.mean("cost", bounds=(0, 50)),
        "sum": dpt.sum("cost", bounds=(0, 5)),
    }
    stored, rows = released(dpt.plan_agg(domain, aggregations, rho=0.1))
    assert checked(tmp_path, stored, rows)[0] == 0
    for path, value in [
        (("count",), "x"), (("count",), None), (("count",), "sum"), (("means",), ["cost", "x"]),
        (("means",), 1), (("plans", 1, 0), "sum"), (("plans", 1, 1, "known", "exact", 3), [[0, 2]]),
    ]:  # fmt: skip
        code, printed = checked(tmp_path, edited(stored, *path, value=value), rows)
        assert code == 1 and "FAIL        format" in printed, path
    for path, value, column in [
        (("means",), [], "cost"), (("plans", 2, 1, "quantity", "shift"), 1, "sum"),
        (("plans", 2, 1, "quantity", "shift"), 0, "sum"),
    ]:  # fmt: skip
        code, printed = checked(tmp_path, edited(stored, *path, value=value), rows)
        assert code == 1 and f"FAIL        standard errors of {column!r}" in printed, path


def test_counts_beyond_the_whole_numbers_of_floats_are_added_exactly(tmp_path):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    leaves = 2**61 // np.arange(8, 16)
    plan = dpt.plan(domain, epsilon=1.0)
    stored = json.loads(json.dumps(plan.to_dict()))
    rows = rows_of(plan.release(leaves, rng=np.random.default_rng(0)))
    assert checked(tmp_path, stored, rows)[0] == 0
    column = rows[0].index("count")
    rows[-1][column] = str(int(rows[-1][column]) + 1)
    code, printed = checked(tmp_path, stored, rows)
    assert code == 1 and "FAIL        sums of 'count'" in printed


@each("shown", ["{}_0", " {}", "{} ", "\uff11"])
def test_only_plain_digits_are_numbers(tmp_path, shown):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    stored, rows = released(dpt.plan(domain, epsilon=1.0, consistency="none"))
    for column in ("count", "std_error"):
        forged = copy.deepcopy(rows)
        place = rows[0].index(column)
        forged[3][place] = shown.format(rows[3][place])
        assert checked(tmp_path, stored, forged)[0] == 1


def test_keys_are_printed_whatever_the_terminal_can_show(tmp_path, monkeypatch, capfd):
    stored, rows = released(dpt.plan(dpt.Domain.from_frame(PLACES, by=BY), epsilon=1.0))
    twice = [*rows, *[["region", "\xe9", "", "", *rows[-1][4:]]] * 2]
    assert checked(tmp_path, stored, twice)[0] == 1
    with io.TextIOWrapper(io.BytesIO(), encoding="ascii") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["verify", str(tmp_path / "plan.json"), str(tmp_path / "counts.csv")]) == 1
        monkeypatch.undo()
        assert b"repeats the node ('\\xe9',)" in terminal.buffer.getvalue()
    assert capfd.readouterr().err == ""


def test_with_raw_measurements_sums_are_not_checked(tmp_path):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    stored, rows = released(dpt.plan(domain, epsilon=1.0, consistency="none"))
    code, printed = checked(tmp_path, stored, rows)
    assert code == 0 and "NOT CHECKED sums of 'count'" in printed


def test_the_smallest_noise_is_not_checked_for_use(tmp_path):
    domain = dpt.Domain.from_frame(PLACES, by=BY)
    with pytest.warns(dpt.DPTreeWarning):
        plan = dpt.plan(domain, rho=1e9)
    code, printed = checked(tmp_path, *released(plan))
    assert code == 0 and "some noise has the smallest possible scale" in printed


def test_files_beside_the_table(tmp_path, release):
    stored, rows = release
    checked(tmp_path, stored, rows)
    table, beside = tmp_path / "counts.csv", tmp_path / "counts.csv.json"
    good = {
        "format": "pandas_dptree table, version 1",
        "sha256": hashlib.sha256(table.read_bytes()).hexdigest(),
        "columns": [],
        "attrs": {"digest": stored["digest"]},
        "plan": stored,
    }
    for change, code in [
        ({}, 0), ({"sha256": "0" * 64}, 1), ({"attrs": {}}, 1), ({"attrs": None}, 1), ({"plan": None}, 2),
        ({"attrs": {"digest": "0" * 64}}, 1), ({"plan": stored | {"version": "0", "fit": "joint"}}, 1),
    ]:  # fmt: skip
        beside.write_text(json.dumps(good | change))
        assert verify.main([str(beside), str(table)]) == code


@each("shown", ["1e999999999", "1e-999999999", "nan", "inf", "1/0", "9" * 5000, "x", "-1"])
def test_odd_numbers_in_the_table(tmp_path, release, shown):
    stored, rows = release
    forged = copy.deepcopy(rows)
    for column in ("count", "std_error"):
        forged[-1] = [*rows[-1]]
        forged[-1][rows[0].index(column)] = shown
        assert checked(tmp_path, stored, forged)[0] == 1


def test_levels_that_cannot_be_estimated_fail(tmp_path, release):
    stored, rows = release
    for level, error in ((-1, ""), (-1, "inf"), (-1, "nan")):
        forged = edited(stored, "noise_scales", level, value=[None])
        forged = edited(forged, "shares", level, value=[0.0])
        changed = [rows[0], *([*row[:-1], error] for row in rows[1:])]
        assert checked(tmp_path, forged, changed)[0] == 1
    nothing = edited(stored, "nodes", value=[0] * len(stored["nodes"]))
    assert checked(tmp_path, nothing, rows[:1])[0] == 1


def test_numbers_out_of_range_are_refused(tmp_path, release, capsys):
    stored, rows = release
    code, _ = checked(tmp_path, edited(stored, "max_contributions", value=10**400), rows)
    assert code in (1, 2) and (code == 1 or "Hint: " in capsys.readouterr().err)


def test_other_kinds_are_not_called_checked(tmp_path, capsys):
    stored = signed({"format": "pandas_dptree plan, version 3", "kind": "implicit", "version": "0"})
    code, printed = checked(tmp_path, stored, [["a"]])
    assert code == 3 and "NOT CHECKED budget and table: the kind of plan is implicit" in printed
    for kind in ("unknown", ["implicit"]):
        assert checked(tmp_path, signed({**stored, "kind": kind}), [["a"]])[0] == 1
    assert checked(tmp_path, {**stored, "loss": 1}, [["a"]])[0] == 1


@each(
    "text", ["", "[]", "nothing", '{"a": NaN}', '{"a": 1e999}', '{"a": 1, "a": 1}', '{"a": Infinity}', "\xff"]
)
def test_unreadable_plans(tmp_path, text, capsys):
    (tmp_path / "plan.json").write_bytes(text.encode("latin-1"))
    assert verify.main([str(tmp_path / "plan.json"), str(tmp_path / "counts.csv")]) == 2
    assert "Hint: " in capsys.readouterr().err


@each("raw", [None, b"", b"\xff", b'level\n"open'])
def test_unreadable_tables(tmp_path, release, raw, capsys):
    stored, rows = release
    checked(tmp_path, stored, rows)
    (tmp_path / "counts.csv").unlink()
    if raw is not None:
        (tmp_path / "counts.csv").write_bytes(raw)
    assert verify.main([str(tmp_path / "plan.json"), str(tmp_path / "counts.csv")]) == 2
    assert "Hint: " in capsys.readouterr().err


def test_a_repeated_key_is_refused(tmp_path, release):
    stored, rows = release
    repeated = json.dumps(stored)[:-1] + ', "max_contributions": 4}'
    assert checked(tmp_path, repeated, rows)[0] == 2


def test_the_file_works_alone(tmp_path, release):
    stored, rows = release
    assert checked(tmp_path, stored, rows)[0] == 0
    (tmp_path / "alone").mkdir()
    shutil.copy(verify.__file__, tmp_path / "alone" / "copied_verify.py")
    command = [sys.executable, "-I", "-S", "copied_verify.py", "../plan.json", "../counts.csv"]
    done = subprocess.run(command, cwd=tmp_path / "alone", capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "" and "0 failed" in done.stdout


def test_only_the_standard_library_is_imported():
    with open(verify.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    imported = {
        each.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for each in node.names
    }
    assert {name.partition(".")[0] for name in imported} <= set(sys.stdlib_module_names)


def test_nothing_that_a_terminal_would_obey_is_printed(tmp_path, capsys):
    """A publisher who would deceive can write anything into a plan, a table and their names."""
    from tests.helpers_cli import CONTROLS, is_safe

    plan, rows = released(dpt.plan(dpt.Domain.from_frame(PLACES, by=BY), epsilon=1.0))
    for odd in ["".join(CONTROLS[:-2]), *CONTROLS[-2:]]:
        forged = f"x{odd}\nPASS        everything: as it was approved\n- nothing"
        in_table = forged if odd.isascii() or odd < "\ud800" else "x"
        for stored, table in [
            ({**plan, "digest": forged}, rows),
            ({**plan, "format": forged}, rows),
            ({**plan, "kind": forged}, rows),
            ({**plan, forged: 1}, rows),
            ({**plan, "levels": ["total", *BY[:2], forged]}, rows),
            (plan, [["level", *BY[:2], in_table, *rows[0][4:]], *rows[1:]]),
            (plan, [*rows[:-1], [in_table, *rows[-1][1:]]]),
            (plan, [*rows[:-1], [*rows[-1][:3], in_table, *rows[-1][4:]], rows[-1]]),
            (plan, [*rows[:-1], [*rows[-1][:4], in_table, rows[-1][5]]]),
            (plan, [*rows[:-1], [*rows[-1][:5], in_table]]),
            (f"{{{in_table}", rows),
        ]:
            stored = (
                stored
                if isinstance(stored, str)
                else signed(stored)
                if stored["digest"] != forged
                else stored
            )
            code, printed = checked(tmp_path, stored, table, "--digest", forged)
            printed += capsys.readouterr().err
            assert code in (1, 2) and is_safe(printed)
            assert not [
                line for line in printed.splitlines() if line.startswith(("PASS        every", "- noth"))
            ]
    for odd in CONTROLS:
        if odd != "\x00":
            assert verify.main([f"{tmp_path}/x{odd}\nverify: fine", "counts.csv"]) == 2
        with pytest.raises(SystemExit):
            verify.main(["plan.json", "counts.csv", f"x{odd}\nverify: fine"])
        printed = capsys.readouterr().err
        assert is_safe(printed) and "\nverify: fine" not in printed
