"""Tables of crossed hierarchies checked from outside: honest ones, and forgeries of all that is stated."""

import json
import random

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_verify import checked, edited, rows_of, signed

PLACES = pd.DataFrame({"state": ["CA", "CA", "DC", "WA"], "county": ["Kern", "Marin", None, "King"]})
DOMAIN = dpt.cross(
    place=dpt.Domain.from_frame(PLACES, by=["state", "county"]),
    sex=dpt.Domain.from_frame(["F", "M"], by=["sex"]),
)
ONE_STATE = pd.DataFrame({"state": ["CA", "CA"], "county": ["Kern", "Marin"]})
ALONE = dpt.cross(
    place=dpt.Domain.from_frame(ONE_STATE, by=["state", "county"]),
    sex=dpt.Domain.from_frame(["F", "M"], by=["sex"]),
)
SOME = [("county", "sex"), {"place": "state"}]
LOSSES = [{"epsilon": 0.8}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}]
RNG = np.random.default_rng(0)
RECORDS = (
    PLACES.iloc[RNG.integers(0, len(PLACES), 300)]
    .reset_index(drop=True)
    .assign(sex=RNG.choice(["F", "M"], 300), cost=RNG.normal(20, 30, 300), person=RNG.integers(0, 90, 300))
)


def released(domain=DOMAIN, verb=dpt.plan, *, seed=1, **options):
    plan = verb(domain, **{"rho": 0.1, "consistency": "integer", **options} if verb is dpt.plan else options)
    table = plan.release(RECORDS, rng=np.random.default_rng(seed))
    return json.loads(json.dumps(plan.to_dict())), rows_of(table)


def failures(printed):
    return [line.removeprefix("FAIL").strip() for line in printed.splitlines() if line.startswith("FAIL")]


# --- honest releases ------------------------------------------------------------------------------------


def random_options(seed):
    choose = random.Random(seed)
    options = dict(choose.choice(LOSSES))
    options["mechanism"] = choose.choice(["laplace", "gaussian"]) if len(options) > 1 else None
    options["mechanism"] = "gaussian" if "rho" in options else options["mechanism"] or "laplace"
    options["neighbors"] = choose.choice(["add_remove", "replace"])
    options["consistency"] = choose.choice(["none", "linear", "nonnegative", "integer"])
    options["split"] = choose.choice(["optimal", "uniform"])
    options["margins"] = choose.choice([None, SOME])
    options["keep"] = choose.choice([None, ["measurements"], ["linear"], ["measurements", "linear"]])
    if options["consistency"] == "none":
        options["keep"] = None
    if choose.random() < 0.4:
        options |= {"privacy_unit": "person", "max_contributions": choose.choice([1, 3])}
    if choose.random() < 0.3:
        options["known"] = {"total": 300}
    return {key: value for key, value in options.items() if value is not None}


SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 120)]


@pytest.mark.parametrize("seed", [*range(4), *SLOW])
def test_an_honest_table_passes(seed, tmp_path):
    options = random_options(seed)
    domain = random.Random(seed).choice([DOMAIN, ALONE])
    data = RECORDS if domain is DOMAIN else RECORDS[RECORDS.state == "CA"]
    options |= {"known": {"total": len(data)}} if "known" in options else {}
    plan = dpt.plan(domain, **options)
    rows = rows_of(plan.release(data, rng=np.random.default_rng(seed)))
    code, printed = checked(tmp_path, json.loads(json.dumps(plan.to_dict())), rows)
    assert not failures(printed) and code == 0, printed
    assert "PASS        budget of" in printed
    assert "standard errors" in printed and "NOT CHECKED" in printed
    assert ("PASS        margins agree" in printed) == (options["consistency"] != "none")


def test_sums_and_several_quantities_are_not_checked(tmp_path):
    """They are refused as what cannot be checked: neither passed nor called forged."""
    plan = dpt.plan_sums(DOMAIN, columns="cost", bounds=(0, 50), rho=0.1)
    rows = rows_of(plan.release(RECORDS, rng=np.random.default_rng(0)))
    code, printed = checked(tmp_path, json.loads(json.dumps(plan.to_dict())), rows)
    assert code == 3 and not failures(printed) and "several quantities of crossed hierarchies" in printed


def test_a_limit_by_leaf_cell_is_said_to_be_unchecked(tmp_path):
    stored, rows = released(privacy_unit="person", max_contributions=3, max_per_leaf=1, split="uniform")
    code, printed = checked(tmp_path, stored, rows)
    assert code == 0 and "limited by leaf cell" in printed and "budget of" not in printed


# --- forgeries ------------------------------------------------------------------------------------------

STORED, ROWS = released()
COUNT = ROWS[0].index("count")


def refused(folder, stored, rows, reason):
    code, printed = checked(folder, stored, rows)
    assert code == 1 and any(reason in each for each in failures(printed)), printed


@pytest.mark.parametrize("row", [1, 5, len(ROWS) - 1])
def test_a_changed_cell_is_found(row, tmp_path):
    rows = [list(each) for each in ROWS]
    rows[row][COUNT] = str(int(rows[row][COUNT]) + 1)
    refused(tmp_path, STORED, rows, "margins agree")


@pytest.mark.parametrize("margin", range(6))
def test_less_noise_in_one_margin_is_found(margin, tmp_path):
    scales = [list(each) for each in STORED["noise_scales"]]
    scales[margin] = [scales[margin][0] / 1.05]
    refused(tmp_path, edited(STORED, "noise_scales", value=scales), ROWS, "budget of")


def test_a_smaller_loss_is_found(tmp_path):
    refused(tmp_path, edited(STORED, "loss", "rho", value=0.099), ROWS, "budget of")


def test_more_rows_per_unit_are_found(tmp_path):
    stored, rows = released(privacy_unit="person", max_contributions=2)
    refused(tmp_path, edited(stored, "max_contributions", value=3), rows, "budget of")


def test_replacement_with_the_noise_of_adding_is_found(tmp_path):
    refused(tmp_path, edited(STORED, "neighbors", value="replace"), ROWS, "budget of")


def test_the_single_node_of_an_axis_is_recognized(tmp_path):
    """Where all rows share a cell, replacing one changes nothing: its noise is free, and only its."""
    data = RECORDS[RECORDS.state == "CA"]
    plan = dpt.plan(ALONE, rho=0.1, neighbors="replace", split="uniform")
    rows = rows_of(plan.release(data, rng=np.random.default_rng(0)))
    stored = json.loads(json.dumps(plan.to_dict()))
    code, printed = checked(tmp_path, stored, rows)
    assert code == 0, printed
    finest = stored["levels"].index("county × sex")
    forged = [list(each) for each in stored["noise_scales"]]
    forged[finest] = [forged[finest][0] / 1.05]
    refused(tmp_path, edited(stored, "noise_scales", value=forged), rows, "budget of")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: rows.pop(), "cells of each margin"),
        (lambda rows: rows.append(rows[-1]), "cells of each margin"),
        (lambda rows: rows.insert(1, rows.pop()), "order of the rows"),
        (lambda rows: rows[-1].__setitem__(2, "XX"), "cells of each margin"),
        (lambda rows: rows[-1].__setitem__(0, "village"), "cells of each margin"),
        (lambda rows: rows[1].__setitem__(2, "CA"), "cells of each margin"),
        (lambda rows: rows[0].__setitem__(COUNT, "people"), "columns"),
        (lambda rows: rows[1].__setitem__(COUNT, ""), "values"),
        (lambda rows: rows[1].__setitem__(COUNT, rows[1][COUNT] + ".5"), "are whole"),
        (lambda rows: rows[-1].__setitem__(COUNT, "-1"), "not negative"),
        (lambda rows: [row.pop() for row in rows], "columns"),
    ],
)  # fmt: skip
def test_other_rows_are_found(change, reason, tmp_path):
    rows = [list(each) for each in ROWS]
    change(rows)
    refused(tmp_path, STORED, rows, reason)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["levels"], lambda names: names[::-1]),
        (["levels"], lambda names: names[:-1]),
        (["noise_scales"], lambda scales: scales[:-1]),
        (["nodes"], lambda nodes: [*nodes, 1]),
        (["axes"], {}),
        (["axes", "sex"], []),
        (["margins"], [[3, 1]]),
        (["margins"], [[0, 0, 0]]),
        (["margins"], []),
        (["quantity", "high"], 2.0),
        (["loss"], {"epsilon": "1"}),
        (["max_contributions"], 0),
        (["consistency"], "all"),
    ],
)  # fmt: skip
def test_plans_out_of_order_are_refused(path, value, tmp_path):
    refused(tmp_path, edited(STORED, *path, value=value), ROWS, "format")


def test_a_margin_that_is_shown_must_be_there(tmp_path):
    stored, rows = released(margins=SOME, split="uniform")
    code, printed = checked(tmp_path, stored, rows)
    assert code == 0, printed
    refused(tmp_path, edited(stored, "margins", value=[[2, 1]]), rows, "cells of each margin")
    refused(tmp_path, signed({**stored, "margins": None}), rows, "cells of each margin")


def test_shares_that_do_not_belong_to_the_noise_are_found(tmp_path):
    shares = STORED["shares"]
    swapped = [shares[-1], *shares[1:-1], shares[0]]
    refused(tmp_path, edited(STORED, "shares", value=swapped), ROWS, "share")


def test_a_state_left_out_of_all_margins_is_found(tmp_path):
    rows = [row for row in ROWS if row[2] != "WA"]
    refused(tmp_path, STORED, rows, "cells of each margin")


def test_one_node_below_two_is_not_single(tmp_path):
    """The only county is one of two states: who replaces another one may move out of it."""
    places = pd.DataFrame({"state": ["CA", "DC"], "county": ["Kern", None]})
    domain = dpt.cross(place=dpt.Domain.from_frame(places, by=["state", "county"]), sex=DOMAIN.axes["sex"])
    plan = dpt.plan(domain, rho=0.1, neighbors="replace", split="uniform")
    data = places.iloc[[0, 0, 1]].assign(sex=["F", "M", "F"])
    rows = rows_of(plan.release(data, rng=np.random.default_rng(0)))
    stored = json.loads(json.dumps(plan.to_dict()))
    code, printed = checked(tmp_path, stored, rows)
    assert code == 0, printed
    forged = [[scale and scale / 1.05] for (scale,) in stored["noise_scales"]]
    refused(tmp_path, edited(stored, "noise_scales", value=forged), rows, "budget of")
