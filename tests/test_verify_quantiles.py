"""Tables of quantiles checked from outside: honest ones, and forgeries of all that is stated."""

import datetime
import json
import random

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree import verify
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.grid import BinMiddles
from pandas_dptree.mechanisms.quantiles import row_moves
from pandas_dptree.mechanisms.weighted_sums import WeightedSums
from pandas_dptree.plans.quantile_draws import Draws, fraction_of, steps_of
from pandas_dptree.plans.quantiles import QuantilePlan
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_verify import BY, PLACES, checked, edited, records, rows_of

DOMAIN = dpt.Domain.from_frame(PLACES, by=BY)
REGIONS = dpt.Domain.from_frame(PLACES[["region"]].drop_duplicates(), by=["region"])
RECORDS = records(600).assign(
    when=lambda frame: (
        pd.Timestamp("2024-03-30", tz="Europe/Berlin") + pd.to_timedelta(frame["age"] * 9, unit="D")
    ),
    day=lambda frame: frame["when"].dt.tz_localize(None).dt.normalize(),
    wait=lambda frame: pd.to_timedelta(frame["cost"], unit="h"),
)
BOUNDS = {
    "cost": {"bounds": (-50, 90), "granularity": 0.1},
    "age": {"bounds": (0.0, 1.0), "granularity": 1 / 3000},
    "when": {"bounds": list(pd.to_datetime(["2024-03-01", "2024-05-01"]).tz_localize("Europe/Berlin"))},
    "day": {"bounds": (datetime.date(2024, 3, 1), datetime.date(2024, 5, 1))},
    "wait": {
        "bounds": (pd.Timedelta(-30, "h"), pd.Timedelta(90, "h")),
        "granularity": pd.Timedelta(250, "ms"),
    },
}
LOSSES = [{"epsilon": 0.8}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}]
pytestmark = pytest.mark.filterwarnings("ignore:.*:pandas_dptree.DPTreeWarning")


def plan_of(seed):
    """A plan with options by chance."""
    choose = random.Random(seed)
    column = choose.choice([*BOUNDS])
    options = {"domain": choose.choice([None, REGIONS, DOMAIN]), **choose.choice(LOSSES)}
    options["neighbors"] = choose.choice(["add_remove", "replace"])
    options["confidence"] = choose.choice([None, 0.9])
    options["mechanism"] = choose.choice(["exponential", "exponential", "laplace", "auto"])
    q = choose.choice([[0.5], [0.25, 0.5, 0.75], [0.1, 1 / 3, 0.9, 0.95]])
    if options["mechanism"] == "laplace" or options["domain"] is not None or options["confidence"]:
        options["bins"] = choose.choice([5, 12])
    options |= {
        key: value for key, value in BOUNDS[column].items() if key == "bounds" or not choose.random() < 0.3
    }
    if choose.random() < 0.4:
        options |= {"privacy_unit": "person", "max_contributions": choose.choice([1, 3])}
    if options["mechanism"] == "laplace" or (
        options["mechanism"] == "auto" and ("bins" in options or len(q) > 3)
    ):
        options.pop("granularity", None)
    try:
        return dpt.plan_quantiles(column, q, **options)
    except dpt.ArgumentError:
        return plan_of(seed + 1000)


def released(plan, seed=0):
    table = plan.release(RECORDS, rng=np.random.default_rng(seed))
    return json.loads(json.dumps(plan.to_dict())), rows_of(table if "level" in table else table.reset_index())


def failures(printed):
    return [line.removeprefix("FAIL").strip() for line in printed.splitlines() if line.startswith("FAIL")]


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 200), marks=pytest.mark.slow)])
def test_honest_releases_pass(tmp_path, seeds):
    for seed in seeds:
        code, printed = checked(tmp_path, *released(plan_of(seed), seed))
        assert (code, failures(printed)) == (0, []), (seed, printed)
        assert "PASS        values are " in printed


# --- what is computed again -------------------------------------------------------------------------------


@each("neighbors", ["add_remove", "replace"])
@each("several", [False, True])
def test_draws_and_ranks_are_those_of_the_library(neighbors, several):
    for q in ([0.5], [0.1, 0.5], [0.05, 0.25, 1 / 3, 0.5, 0.999]):
        fractions = list(map(fraction_of, q))
        own = verify.parts_drawn(fractions, fractions[0] * 0, fractions[0] * 0 + 1)
        assert own == steps_of(fractions, fractions[0] * 0, fractions[0] * 0 + 1)
        for fact in own:
            moved = row_moves(fact, neighbors, several=several)
            assert verify.rank_moves(fact, neighbors, several) == moved


def test_weighted_sums_move_as_far_as_in_the_library():
    for n_bins, bits in ((1, 12), (2, 8), (3, 16), (7, 12), (40, 12)):
        known = WeightedSums(n_bins, bits).sensitivity(neighbors="add_remove")
        found = verify.move_of_sums(n_bins, bits)
        assert (found.l1, found.l2) == (known.l1, known.l2_squared)


def test_the_middles_of_bins_are_points(tmp_path):
    bins, loss = Bins.of("age", bounds=(0, 80), bins=4), PrivacyLoss(epsilon=1.0)
    draws = Draws.within(BinMiddles(bins), loss, 1, permutes=True)
    common = {"neighbors": "replace", "privacy_unit": None, "max_contributions": 1}
    plan = QuantilePlan(q=(0.9,), domain=None, draws=draws, trees=None, loss=loss, **common)
    stored = json.loads(json.dumps(plan.to_dict()))
    for value, code in (("30.0", 0), ("70", 0), ("40.0", 1), ("", 1), ("x", 1), ("1_0", 1)):
        assert checked(tmp_path, stored, [["q", "value"], ["0.9", value]])[0] == code
    moved = edited(
        stored, "draws", "exponents", 0, value=lambda g: g * 18 / 10
    )  # as if all rows were of one group
    assert failures(checked(tmp_path, moved, [["q", "value"], ["0.9", "30.0"]])[1])[0].startswith("exponents")


def test_many_weighted_sums_are_said_to_be_unchecked(tmp_path, monkeypatch):
    plan = dpt.plan_quantiles("age", 0.1, bounds=(0, 1), bins=6, strategy="factorization", rho=0.1)
    monkeypatch.setattr(verify, "MOST_SUMS", 5)
    code, printed = checked(tmp_path, *released(plan))
    assert code == 0 and "NOT CHECKED budget of the trees: weighted sums of more than 5 bins" in printed


# --- forgeries --------------------------------------------------------------------------------------------

OF_PEOPLE = {"neighbors": "replace", "privacy_unit": "person", "max_contributions": 2}
DRAWN, COSTS = {"mechanism": "exponential", "bins": 4}, {"bounds": (-50, 90), "granularity": 1}
PLANS = {
    "pure": dpt.plan_quantiles("cost", [0.25, 0.5, 0.75], epsilon=0.8, **COSTS, **OF_PEOPLE),
    "intervals": dpt.plan_quantiles(
        "cost", 0.5, epsilon=0.8, confidence=0.9, strategy=[2, 2], **COSTS, **DRAWN, **OF_PEOPLE
    ),
    "groups": dpt.plan_quantiles(
        "cost",
        [0.25, 0.5],
        rho=0.1,
        domain=DOMAIN,
        confidence=0.9,
        strategy="factorization",
        **COSTS,
        **DRAWN,
    ),
    "approximate": dpt.plan_quantiles(
        "cost", [0.1, 0.2, 0.3, 0.4], epsilon=1.0, delta=1e-6, domain=REGIONS, **COSTS, **DRAWN
    ),
    "concentrated": dpt.plan_quantiles(
        "cost",
        np.arange(1, 16) / 16,
        epsilon=0.2,
        delta=1e-3,
        bounds=(-50, 90),
        granularity=1,
        mechanism="exponential",
    ),
    "tail": dpt.plan_quantiles(
        "cost", 0.9, rho=0.1, domain=REGIONS, strategy=[2, 2], **COSTS, **DRAWN, **OF_PEOPLE
    ),
    "trees": dpt.plan_quantiles("cost", [0.0, 0.5, 1.0], bounds=(-50, 90), bins=4, epsilon=1.0, **OF_PEOPLE),
}
CONTENT = {name: released(plan) for name, plan in PLANS.items()}


def times(factor):
    return lambda number: number * factor


def rooted(number):
    return number * 0.1**0.5


TWO_DRAWS, EXPONENTS, TREES = "budget of the draws", "exponents of the draws", "budget of 'the trees'"
FORGERIES = [
    ("pure", ["draws", "epsilon"], times(1.001), TWO_DRAWS),
    ("pure", ["draws", "epsilon"], times(0.99), "draws spend all of their loss"),
    ("pure", ["draws", "epsilon"], times(2), TWO_DRAWS),  # as if one depth were all
    ("pure", ["draws", "exponents", 1], times(1.001), EXPONENTS),
    ("pure", ["max_contributions"], 1, EXPONENTS),
    ("pure", ["max_contributions"], 4, EXPONENTS),
    ("pure", ["neighbors"], "add_remove", EXPONENTS),
    ("pure", ["q"], [0.25, 0.5, 0.8], EXPONENTS),
    ("pure", ["q"], [0.25, 0.5], "format: there is not one exponent"),
    ("pure", ["q"], [0.25, 0.5, 0.5], "format: `q` are not different"),
    ("pure", ["q"], [0.25, 0.5, 0.7501], "format: `q` are not different"),
    ("pure", ["q"], [0.5, 0.25, 0.75], "format: `q` is not in order"),
    ("pure", ["loss", "epsilon"], 0.7, "epsilon of all together"),
    ("pure", ["loss", "epsilon"], 0.9, "epsilon of all together is used"),
    ("pure", ["loss"], {"rho": 0.1}, "budget of all together"),
    ("pure", ["draws", "loss"], {"rho": 0.1}, TWO_DRAWS),  # permute-and-flip has no such rho
    ("pure", ["draws", "selection"], "exponential", "format: `mechanism` is not"),
    ("pure", ["draws", "selection"], "laplace", "format: the plan has a malformed 'draws'"),
    ("pure", ["draws", "grid", "granularity"], [2, 0], "format: the plan has a malformed 'draws'"),
    ("pure", ["draws", "grid", "granularity"], [500, 1], "format: the grid does not have"),
    ("pure", ["draws", "grid", "bounds", "column"], "age", "format: the column of"),
    ("pure", ["confidence"], 0.9, "format: `trees` are not those of the levels"),
    ("pure", ["domain"], "0" * 64, "format: `nodes` does not have"),
    ("intervals", ["draws", "loss", "epsilon"], 0.8, "epsilon of all together: epsilon 1.2"),
    ("intervals", ["trees", "strategy", "noise_scales"], lambda each: [b and 0.9 * b for b in each], TREES),
    (
        "intervals",
        ["trees", "strategy", "noise_scales"],
        lambda each: [b and 1.1 * b for b in each],
        "noise of",
    ),
    (
        "intervals",
        ["trees", "strategy", "shares"],
        lambda each: [*each[:-1], each[-1] / 2],
        "noise of 'the trees'",
    ),
    ("intervals", ["trees", "strategy", "shares"], lambda each: each[1:], "format: the trees do not have"),
    (
        "intervals",
        ["trees", "strategy", "branching"],
        lambda each: [1 for _ in each],
        "format: the trees do not",
    ),
    ("intervals", ["trees", "strategy", "noise_scales"], lambda each: [None for _ in each], TREES),
    ("intervals", ["trees", "bins", "edges", 0], -60.0, "format: the bins of the trees are not cells"),
    ("intervals", ["trees", "levels"], 2, "format: `trees` are not those of the levels"),
    ("intervals", ["neighbors"], "add_remove", EXPONENTS),
    ("intervals", ["neighbors"], "add_remove", "noise of 'the trees' is not larger"),
    ("intervals", ["max_contributions"], 3, TREES),
    ("intervals", ["confidence"], None, "format: `trees` are not those of the levels"),
    ("groups", ["draws", "selection"], "permute_and_flip", "format: `mechanism` is not"),
    ("groups", ["draws", "epsilon"], times(1.001), TWO_DRAWS),
    ("groups", ["neighbors"], "replace", EXPONENTS),
    ("groups", ["max_contributions"], 2, TREES),
    ("groups", ["trees", "strategy", "noise_scale"], times(0.99), TREES),
    ("groups", ["trees", "strategy", "noise_scale"], times(1.01), "noise of 'the trees' is not larger"),
    ("groups", ["trees", "strategy", "bits"], 13, TREES),
    ("groups", ["trees", "loss", "rho"], times(1.01), "rho of all together"),
    ("groups", ["trees", "levels"], 3, "format: `trees` are not those of the levels"),
    ("groups", ["nodes", 1], 4, "rows by level"),
    ("approximate", ["draws", "epsilon"], times(1.001), TWO_DRAWS),
    ("approximate", ["draws", "epsilon"], times(0.99), "draws spend all of their loss"),
    ("approximate", ["draws", "loss", "delta"], times(0.5), "delta of all together is used"),
    ("approximate", ["trees", "loss", "delta"], times(2), "delta of all together"),
    ("approximate", ["loss", "delta"], times(0.5), "delta of all together"),
    ("concentrated", ["draws", "epsilon"], times(1.001), TWO_DRAWS),
    ("concentrated", ["draws", "epsilon"], times(0.99), "draws spend all of their loss"),
    ("tail", ["draws", "exponents", 0], times(1.8), EXPONENTS),  # as if a row could not change its group
    ("tail", ["trees", "strategy", "noise_scales"], lambda each: [b and b * 0.5**0.5 for b in each], TREES),
    ("trees", ["loss", "epsilon"], 0.9, "epsilon of all together"),
    ("trees", ["max_contributions"], 1, "noise of 'the trees' is not larger"),
    ("trees", ["max_contributions"], 3, TREES),
    ("trees", ["neighbors"], "add_remove", "noise of 'the trees' is not larger"),
    ("trees", ["trees", "strategy", "noise"], "gaussian", "format: `mechanism` is not"),
    ("trees", ["mechanism"], "gaussian", "format: `mechanism` is not"),
    ("trees", ["trees"], None, "format: `trees` are not those"),
    ("trees", ["trees", "extra"], 1, "format: the plan has a malformed 'trees'"),
]


@pytest.mark.parametrize("name", PLANS)
def test_forged_plans_fail(tmp_path, name):
    stored, rows = CONTENT[name]
    for path, value, expected in (forged for of, *forged in FORGERIES if of == name):
        code, printed = checked(tmp_path, edited(stored, *path, value=value), rows)
        assert code == 1 and any(fact.startswith(expected) for fact in failures(printed)), (path, printed)


def test_permute_and_flip_by_groups_or_with_a_rho_fails(tmp_path):
    """Also where all of the plan says so."""
    cases = {
        "groups": "format: permute-and-flip has no base measure",
        "concentrated": TWO_DRAWS,
        "rho": TWO_DRAWS,
    }
    for name, expected in cases.items():
        alone = released(dpt.plan_quantiles("cost", 0.5, rho=0.1, **COSTS)) if name == "rho" else None
        stored, rows = alone or CONTENT[name]
        forged = edited(
            edited(stored, "mechanism", value="permute_and_flip"),
            "draws",
            "selection",
            value="permute_and_flip",
        )
        assert any(fact.startswith(expected) for fact in failures(checked(tmp_path, forged, rows)[1]))


def test_more_depths_than_are_paid_fail(tmp_path):
    """As in a plan for three quantiles that claims that all of them are drawn at once."""
    stored, rows = CONTENT["pure"]
    forged = edited(stored, "draws", "epsilon", value=times(2))
    forged = edited(forged, "draws", "exponents", value=lambda fact: [2 * g for g in fact])
    assert failures(checked(tmp_path, forged, rows)[1])[0].startswith(TWO_DRAWS)


def changed(line, column, value):
    return lambda rows: [
        [value if (i, j) == (line, column) else cell for j, cell in enumerate(row)]
        for i, row in enumerate(rows)
    ]


TABLES = [
    ("pure", changed(1, 1, "-51.0"), "values are points of the grid"),
    ("pure", changed(1, 1, "-49.5"), "values are points of the grid"),
    ("pure", changed(3, 1, "91.0"), "values are points of the grid"),
    ("pure", changed(1, 1, "89"), "quantiles of a group are in order"),
    ("pure", changed(1, 1, ""), "groups have all quantiles or none"),
    ("pure", changed(1, 1, "nan"), "values are numbers"),
    ("pure", changed(1, 1, "1_0"), "values are numbers"),
    ("pure", changed(1, 0, "0.26"), "quantiles of each group"),
    ("pure", lambda rows: [*rows[:2], rows[3], rows[2]], "quantiles of each group"),
    ("pure", lambda rows: rows[:-1], "rows"),
    ("pure", lambda rows: [*rows, rows[1]], "rows"),
    ("pure", lambda rows: [row[::-1] for row in rows], "columns"),
    ("pure", lambda rows: [[*row, "0"] for row in rows], "columns"),
    ("intervals", changed(1, 2, "91"), "intervals contain the value"),
    ("intervals", changed(1, 3, "-50"), "intervals contain the value"),
    ("intervals", changed(1, 2, "-51"), "intervals contain the value"),
    ("intervals", changed(1, 2, ""), "values are numbers"),
    ("groups", changed(1, 0, "region"), "rows by level"),
    ("groups", changed(4, 1, "z"), "quantiles of each group"),
    ("groups", changed(6, 4, "0.25"), "quantiles of each group"),
    ("groups", lambda rows: [rows[0], *rows[3:], *rows[1:3]], "keys, parents and repeated nodes"),
    ("groups", lambda rows: rows[:-2], "rows by level"),
    ("trees", changed(1, 1, "-50.5"), "values are within the bounds"),
    ("trees", changed(3, 1, "90.5"), "values are within the bounds"),
]


@each("name, forge, expected", TABLES)
def test_forged_tables_fail(tmp_path, name, forge, expected):
    stored, rows = CONTENT[name]
    assert checked(tmp_path, stored, rows)[0] == 0
    code, printed = checked(tmp_path, stored, forge(rows))
    assert code == 1 and any(fact.startswith(expected) for fact in failures(printed)), printed


HOURS = [
    ("duration", "2 days 03:00:00.5", 51 * 3600 * 10**9 + 5 * 10**8), ("duration", "0 days", 0),
    ("duration", "-1 days +23:00:00", -3600 * 10**9), ("duration", "2024-01-01", None),
    ("duration", "1 days 1:00:00", None), ("duration", "१ days", None),
    ("timestamp", "1970-01-02", 86400 * 10**9),
    ("timestamp", "1969-12-31 23:59:59.999999999", -1), ("timestamp", "1970-02-30", None),
    ("timestamp", "1970-01-01 00:00:00+02:00", None), ("zoned", "1970-01-01", None),
    ("zoned", "1970-01-01 01:00:00+01:00", 0), ("zoned", "1969-12-31 23:30:00-00:30", 0),
    ("number", "1.5", 1.5), ("number", "inf", None), ("number", "١", None), ("number", "1e999", None),
]  # fmt: skip


@each("kind, text, expected", HOURS)
def test_times_are_read_to_the_nanosecond(kind, text, expected):
    zone = "Europe/Berlin" if kind == "zoned" else None
    found = verify.value_of(text, {"type": kind.replace("zoned", "timestamp"), "timezone": zone})
    assert found == expected
