"""Whom a release protects: `privacy_unit`, `max_contributions` and `dpt.ROWS`."""

import copy
import dataclasses
import inspect
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main
from pandas_dptree.plans.measurement import FROM_SHARES
from pandas_dptree.plans.search import find_plan
from pandas_dptree.privacy.unit import MOST_ROWS, check_rows_of_records, protected
from pandas_dptree.verbs import tables as api
from tests.helpers_cases import each
from tests.helpers_json import replaced
from tests.helpers_privacy import LOSS
from tests.helpers_verbs import (
    CLASSES,
    DOMAIN,
    FUNCTIONS,
    PUBLIC,
    SPENDING,
    VALUES,
    VISITS,
    called,
    tables,
    takes,
)

FACTOR = dpt.Multiplicative(alpha=0.25)
TREE = VALUES["tree"]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# The rule, wherever both are parameters


def test_all_verbs_and_plans_are_found():
    """Should the search fail, the tests below would pass without a call."""
    verbs = [
        "tree_agg",
        "tree_counts",
        "tree_sums",
        "tree_means",
        "cdf",
        "histogram",
        "range_counts",
        "quantiles",
    ]
    assert {*verbs, *(f"frame.dp.{verb}" for verb in verbs), "release_distribution"} <= {*SPENDING}
    plans = ["plan", "plan_agg", "plan_distribution", "plan_means", "plan_quantiles", "plan_sums"]
    both = {*plans, *(f"frame.dp.{plan}" for plan in plans)}
    assert {*FUNCTIONS} - {*SPENDING} == both
    assert set(CLASSES) - {"UnitPlan"} == set(PLANS)  # a unit counts once in a node, whatever its rows


@each("name", [name for name, each in PUBLIC.items() if takes("max_contributions", of=each)])
def test_no_bound_on_the_rows_of_a_unit_is_a_default(name):
    default = inspect.signature(PUBLIC[name]).parameters["max_contributions"].default
    is_class = isinstance(PUBLIC[name], type)
    assert default is None or (is_class and default is inspect.Parameter.empty)


def names_what_is_missing(error: pytest.ExceptionInfo) -> bool:
    text = str(error.value)
    both = "`max_contributions` must be given with `privacy_unit`" in text and "max_contributions=3" in text
    sides = "Noise is proportional" in error.value.hint and "dropped at random" in error.value.hint
    return error.value.argument == "max_contributions" and both and sides


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_unit_needs_a_bound_on_its_rows(name, monkeypatch):
    monkeypatch.setattr("pandas_dptree.plans.execute.exact_leaves", None)  # it is never read
    with pytest.raises(dpt.ArgumentError) as error:
        called(name, privacy_unit="person")
    assert names_what_is_missing(error)


OF_FACTORS = {"mechanism": FACTOR, "delta": 1e-6}


@each("name", ["tree_counts", "plan", "frame.dp.plan", "frame.dp.tree_counts"])
@each("more", [OF_FACTORS, {"objective": "worst", "delta": 1e-6}, {"target": {"region": 5.0}}])
def test_so_it_does_for_every_kind_of_plan(name, more):
    if "target" in more and not takes("target", of=FUNCTIONS[name]):
        return
    with pytest.raises(dpt.ArgumentError) as error:
        called(name, privacy_unit="person", **more)
    assert names_what_is_missing(error)


def test_so_it_does_behind_the_verbs():
    with pytest.raises(dpt.ArgumentError) as error:
        find_plan(DOMAIN, epsilon=1.0, privacy_unit="person")
    assert names_what_is_missing(error)


@pytest.mark.parametrize("mechanism", ["auto", "truncated_laplace", "gaussian", FACTOR])
def test_so_it_does_where_the_tree_is_too_large_to_be_listed(mechanism):
    for release in (dpt.tree_counts, pd.DataFrame.dp.tree_counts):
        of = VISITS if release is dpt.tree_counts else VISITS.dp
        with pytest.raises(dpt.ArgumentError) as error:
            release(of, TREE, **LOSS, mechanism=mechanism, privacy_unit="clinic")
        assert names_what_is_missing(error)


PLANS = {
    "AdditivePlan": dpt.plan(DOMAIN, **LOSS),
    "CrossedPlan": dpt.plan(dpt.cross(place=DOMAIN), **LOSS),
    "MultiplicativePlan": dpt.plan(DOMAIN, **LOSS, mechanism=FACTOR),
    "ImplicitPlan": dpt.plan(TREE, **LOSS),
    "ImplicitMultiplicativePlan": dpt.plan(TREE, **LOSS, mechanism=FACTOR),
    "DistributionPlan": dpt.plan_distribution("cost", bins=[0, 100, 500], epsilon=1.0),
    "QuantilePlan": dpt.plan_quantiles("cost", 0.5, bounds=(0, 500), epsilon=1.0),
}


@pytest.mark.parametrize("kind", PLANS)
def test_plans_that_are_made_directly_keep_the_rule(kind):
    plan = PLANS[kind]
    assert isinstance(plan, CLASSES[kind])
    with pytest.raises(dpt.ArgumentError) as error:
        dataclasses.replace(plan, privacy_unit="who", max_contributions=None)
    assert names_what_is_missing(error)
    for odd in (
        ["who"],
        {"DistributionPlan": "cost", "AdditivePlan": "region", "CrossedPlan": "region"}.get(
            kind, VISITS["person"]
        ),
    ):
        with pytest.raises(dpt.ArgumentError, match="`privacy_unit` must name a column"):
            dataclasses.replace(plan, privacy_unit=odd, max_contributions=2)
    rows = dataclasses.replace(plan, privacy_unit=dpt.ROWS, max_contributions=None)
    assert (rows.privacy_unit, rows.max_contributions, repr(rows)) == (None, 1, repr(plan))
    more = {"privacy_unit": "who", "max_contributions": np.int64(3)}
    additive = kind in ("AdditivePlan", "CrossedPlan")
    anew = {"unit_noise_scales": FROM_SHARES} if additive else {}
    if anew or kind in ("DistributionPlan", "ImplicitPlan"):  # whose noise is part of it, and would not do
        with pytest.raises(dpt.ArgumentError, match=r"less noise than the privacy|more than the privacy"):
            dataclasses.replace(plan, **more)
    if kind == "DistributionPlan":
        people = dpt.plan_distribution("cost", bins=[0, 100, 500], epsilon=1.0, **more)
    elif kind == "ImplicitPlan":
        people = dpt.plan(TREE, **LOSS, **more)
    else:
        people = dataclasses.replace(plan, **more, **anew)
    assert people.privacy_unit == "who" and type(people.max_contributions) is int
    assert "each who (up to 3 rows" in repr(people)


def test_with_a_bound_all_is_as_before():
    for name in SPENDING:
        assert (
            tables(name, privacy_unit="person", max_contributions=1, rng=rng())[0].attrs["dp"]["privacy_unit"]
            == "person"
        )


# One function decides


@each("bound", [0, -1, 1.0, 1.5, True, "2", [1], MOST_ROWS + 1, 10**30])
@each("unit", [None, dpt.ROWS, "who"])
def test_a_bound_is_a_whole_number(unit, bound):
    with pytest.raises(dpt.ArgumentError, match="`max_contributions` must be a whole number") as error:
        protected(unit, bound)
    assert error.value.argument == "max_contributions"


@each("unit", [["who"], {}, float("nan"), VISITS["person"], "region", "cost"])
@each("bound", [None, 2])
def test_a_unit_is_a_column_of_its_own(unit, bound):
    with pytest.raises(dpt.ArgumentError, match="Hint: ") as error:
        protected(unit, bound, taken=["region", "cost"])
    assert error.value.argument == "privacy_unit"


def test_rows_that_were_counted_already_are_bounded_by_the_caller():
    assert protected(None, 4) == (None, 4) == protected(dpt.ROWS, 4)
    check_rows_of_records(None, 1)
    check_rows_of_records("who", 4)
    with pytest.raises(dpt.ArgumentError, match="needs a `privacy_unit`"):
        check_rows_of_records(None, 2)


# ROWS


def test_rows_is_one_and_only():
    assert repr(dpt.ROWS) == str(dpt.ROWS) == "dpt.ROWS"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps({"unit": dpt.ROWS}, protocol))["unit"] is dpt.ROWS
    assert copy.copy(dpt.ROWS) is dpt.ROWS and copy.deepcopy([dpt.ROWS])[0] is dpt.ROWS
    assert {dpt.ROWS: 1}[dpt.ROWS] == 1 and dpt.ROWS is not None and dpt.ROWS != "rows"
    assert "ROWS" in dpt.__all__


@pytest.mark.parametrize("name", SPENDING)
def test_rows_releases_what_none_releases(name):
    found = tables(name, privacy_unit=dpt.ROWS, rng=rng())
    for stated, silent in zip(found, tables(name, rng=rng()), strict=True):
        pd.testing.assert_frame_equal(stated, silent)
        assert stated.attrs == silent.attrs and stated.attrs["dp"]["privacy_unit"] is None
        assert json.loads(json.dumps(stated.attrs["dp"])) == stated.attrs["dp"]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in SPENDING])
def test_rows_plans_what_none_plans(name):
    stated, silent = called(name, privacy_unit=dpt.ROWS), called(name)
    assert repr(stated) == repr(silent) and (stated.privacy_unit, stated.max_contributions) == (None, 1)
    if isinstance(stated, dpt.Plan):
        assert json.dumps(stated.to_dict()) == json.dumps(silent.to_dict())


@pytest.mark.parametrize("mechanism", ["truncated_laplace", FACTOR])
def test_so_it_does_with_large_trees_and_factors(mechanism):
    options = {**LOSS, "mechanism": mechanism}
    where = {"by": TREE} if mechanism == "truncated_laplace" else {"by": ["region"], "domain": DOMAIN}
    stated = dpt.tree_counts(VISITS, **where, **options, privacy_unit=dpt.ROWS, rng=rng())
    silent = dpt.tree_counts(VISITS, **where, **options, rng=rng())
    pd.testing.assert_frame_equal(stated, silent)
    assert stated.attrs == silent.attrs


@each("unit", [None, dpt.ROWS])
def test_several_rows_of_each_row_are_as_with_none(unit):
    """Counts that the caller has made may hold several rows of a unit; of records nobody can tell."""
    plan = dpt.plan(
        dpt.Tree.from_branching([2]), epsilon=1.0, split="uniform", privacy_unit=unit, max_contributions=3
    )
    assert plan.release(np.array([50, 70]), rng=rng()).attrs["dp"]["max_contributions"] == 3
    assert plan.noise_scales.tolist() == [6.0, 6.0]
    bins = {"bins": [0, 100, 500], "epsilon": 1.0, "privacy_unit": unit, "max_contributions": 3}
    shape = dpt.plan_distribution("cost", strategy=[2], **bins)
    assert shape.release(np.array([50, 70]), rng=rng()).provenance["max_contributions"] == 3
    assert shape.strategy.noise_scales == (math.inf, 3.0)
    with pytest.raises(dpt.ArgumentError, match="needs a `privacy_unit`"):
        shape.release(VISITS)
    implicit = {"domain": TREE, "delta": 1e-6}
    of_prefixes = [("plan", implicit), ("plan", {**implicit, "mechanism": FACTOR})]
    for name, more in (*((name, {}) for name in SPENDING), *of_prefixes):
        with pytest.raises(dpt.ArgumentError, match="needs a `privacy_unit`") as error:
            called(name, privacy_unit=unit, max_contributions=3, **more)
        assert error.value.argument == "max_contributions"


# The shell


@pytest.fixture
def files(tmp_path):
    VISITS.to_csv(tmp_path / "visits.csv", index=False)
    DOMAIN.keys(1).to_csv(tmp_path / "regions.csv", index=False)
    return tmp_path


COMMANDS = {
    "plan": [],
    "counts": ["visits.csv"],
    "sums": ["visits.csv", "--column", "cost", "--bounds", "0", "500"],
    "means": ["visits.csv", "--column", "cost", "--bounds", "0", "500"],
}


def shell(files, command, *options):
    first, *more = [command, *COMMANDS[command]]
    paths = [str(files / each) if each.endswith(".csv") else each for each in more]
    public = ["--by", "region", "--domain", str(files / "regions.csv")]
    return main([first, *paths, *public, "--epsilon", "1", *options])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_shell_keeps_the_rule(files, capsys, command):
    assert shell(files, command, "--privacy-unit", "person") == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "`--max-contributions` must be given with `--privacy-unit`" in printed.err
    assert shell(files, command, "--privacy-unit", "person", "--max-contributions", "2") == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_each_row_is_what_the_shell_does_without(files, capsys, monkeypatch, command):
    for verb in (api.tree_counts, api.tree_sums, api.tree_means):
        repeatable = lambda *args, verb=verb, **options: verb(*args, **options, rng=rng())  # noqa: E731
        monkeypatch.setattr(api, verb.__name__, repeatable)
    assert shell(files, command) == 0
    silent = capsys.readouterr().out
    assert shell(files, command, "--each-row") == 0
    assert capsys.readouterr().out == silent


@pytest.mark.parametrize("command", COMMANDS)
def test_each_row_and_a_unit_exclude_each_other(files, capsys, command):
    for options in (["--each-row", "--privacy-unit", "person"], ["--privacy-unit", "person", "--each-row"]):
        with pytest.raises(SystemExit, match="2"):
            shell(files, command, *options, "--max-contributions", "2")
        assert "not allowed with argument" in capsys.readouterr().err


def test_a_plan_file_says_the_same_for_each_row(files, capsys):
    for name, options in {"silent": [], "stated": ["--each-row"]}.items():
        assert shell(files, "plan", *options, "--out", str(files / f"{name}.json")) == 0
    silent, stated = ((files / f"{name}.json").read_text() for name in ("silent", "stated"))
    assert silent == stated and json.loads(stated)["privacy_unit"] is None
    public = ["--plan", str(files / "stated.json"), "--domain", str(files / "regions.csv")]
    assert main(["release", str(files / "visits.csv"), *public]) == 0
    assert "protecting each row (1 row" in capsys.readouterr().err


def test_a_plan_file_leaves_no_bound_to_a_default():
    for unit in (None, "person"):
        written = replaced(dpt.plan(DOMAIN, epsilon=1.0).to_dict(), ("privacy_unit",), unit)
        written = replaced(written, ("max_contributions",), None)
        with pytest.raises(dpt.ArgumentError, match="`data` is not a valid plan"):
            dpt.Plan.from_dict(written, DOMAIN)


def test_the_key_of_a_group_cannot_be_the_unit_of_its_distribution():
    with pytest.raises(dpt.ArgumentError, match="neither a key nor counted") as caught:
        dpt.plan_distribution(
            "cost", bounds=(0, 10), bins=4, epsilon=1.0, domain=DOMAIN,
            privacy_unit=DOMAIN.by[0], max_contributions=1,
        )  # fmt: skip
    assert caught.value.argument == "privacy_unit"
