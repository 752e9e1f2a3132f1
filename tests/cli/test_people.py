"""Bounds on the rows and nodes of a person in the words of the shell, and counts of distinct people."""

import json

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main
from tests.helpers_cases import each
from tests.helpers_cli import run
from tests.helpers_ledger import create

PERSON = ["--privacy-unit", "person"]
ROWS = [*PERSON, "--max-contributions", "3"]
TWO = ["--max-nodes", "2"]
EXACT = ["--epsilon", "1e5"]
"""So little noise that the table is the truth."""


def released(files, verb, *more):
    """Release a table, and read it."""
    assert run(files, verb, *more, "--out", str(files / "out.csv"), "--force") == 0
    return pd.read_csv(files / "out.csv")


def planned(files, *more):
    """Plan, and read the plan that is written."""
    out = files / "plan.json"
    assert run(files, "plan", *more, "--out", str(out), "--force") == 0
    domain = dpt.Domain.from_frame(pd.read_csv(files / "places.csv"), by=["region", "district"])
    return dpt.Plan.from_dict(json.loads(out.read_text()), domain)


@pytest.fixture
def visits(files):
    """Visits of few people, of whom some are in several nodes, and some have several visits in one."""
    frame = pd.read_csv(files / "visits.csv", dtype=str)
    frame = frame.assign(person=frame["person"].astype(int) % 40)
    frame.to_csv(files / "visits.csv", index=False)
    return frame


# Rows


@pytest.mark.filterwarnings("ignore::pandas_dptree.DPTreeWarning")
def test_caps_of_rows(files, visits):
    few = ["--max-contributions", "1000", "--max-per-leaf", "1", "--max-per-node", "region=2"]
    table = released(files, "counts", *EXACT, *PERSON, *few)
    pairs = visits.drop_duplicates(["person", "district"])
    in_region = pairs.groupby(["person", "region"]).size().clip(upper=2)
    assert table["count"][0] == in_region.sum() < len(pairs) < len(visits)
    for verb, more in {"sums": ["--column", "cost", "--bounds", "0", "9"], "counts": []}.items():
        assert len(released(files, verb, *more, "--epsilon", "1", *ROWS, "--max-per-leaf", "2"))
    plan = planned(files, "--epsilon", "1", *ROWS, "--max-per-leaf", "1", "--max-per-node", "region=2")
    assert plan.caps == (None, 2, 1)


@each(
    "more, said",
    [
        (["--max-per-leaf", "0"], "`--max-per-leaf` must be a whole number"),
        (["--max-per-node", "region"], "`--max-per-node` must be LEVEL=NUMBER, not ['region']"),
        (["--max-per-node", "region=1.5"], "`--max-per-node` must be LEVEL=NUMBER, not ['region=1.5']"),
        (["--max-per-node", "town=1"], "`--max-per-node` "),
        (
            ["--max-per-node", "region=1", "--max-per-node", "region=2"],
            "`--max-per-node` names a level twice",
        ),
    ],
)
def test_caps_that_cannot_be_used(files, capsys, more, said):
    assert run(files, "counts", "--epsilon", "1", *ROWS, *more) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(f"dptree: {said}") and "Hint: " in printed.err


@each("more", [["--max-per-leaf", "1"], ["--max-per-node", "region=1"]])
def test_caps_of_rows_have_no_meaning_for_units(files, capsys, more):
    with pytest.raises(SystemExit) as caught:
        run(files, "units", "--epsilon", "1", *PERSON, *TWO, *more)
    assert caught.value.code == 2
    assert run(files, "plan", "--units", "--epsilon", "1", *PERSON, *TWO, *more) == 2
    assert f"`{more[0]}` has no meaning for a plan for distinct units" in capsys.readouterr().err


# Distinct people


@pytest.mark.filterwarnings("ignore::pandas_dptree.DPTreeWarning")
def test_people_are_counted_once_in_each_node(files, visits):
    table = released(files, "units", *EXACT, *PERSON, "--max-nodes", "1000")
    assert list(table) == ["level", "region", "district", "count", "std_error"]
    by = ["region", "district"]
    expected = [visits["person"].nunique()]
    for depth in (1, 2):
        expected += visits.groupby(by[:depth])["person"].nunique().tolist()
    counts = table["count"]
    assert counts[counts > 0].tolist() == expected and sum(expected[1:7]) > expected[0]


@pytest.mark.filterwarnings("ignore::pandas_dptree.DPTreeWarning")
def test_bounds_by_level(files, visits):
    bounds = ["--max-nodes", "region=1", "--max-nodes", "district=2"]
    table = released(files, "units", *EXACT, *PERSON, *bounds)
    sums = table.groupby("level", sort=False)["count"].sum()
    assert sums["total"] == sums["region"] == visits["person"].nunique() < sums["district"]
    plan = planned(files, "--units", "--epsilon", "1", *PERSON, *bounds)
    assert isinstance(plan, dpt.UnitPlan) and plan.max_nodes == (1, 1, 2)
    assert planned(files, "--units", "--epsilon", "1", *PERSON, "--max-nodes", "district=2").max_nodes[1] == 2
    assert planned(files, "--units", "--epsilon", "1", *PERSON, "--max-nodes", "2").max_nodes == (1, 2, 2)


@each(
    "given, said",
    [
        ([], "must be given"),
        (["2.5"], "must be one whole number, or LEVEL=NUMBER for each level, not ['2.5']"),
        (["many"], "must be one whole number, or LEVEL=NUMBER for each level, not ['many']"),
        (["-1"], "must be one whole number, or LEVEL=NUMBER for each level, not ['-1']"),
        (["1", "2"], "must be one whole number, or LEVEL=NUMBER for each level, not ['1', '2']"),
        (["2", "region=1"], "must be one whole number, or LEVEL=NUMBER for each level"),
        (["region"], "must be one whole number, or LEVEL=NUMBER"),
        (["region=x"], "must be LEVEL=NUMBER, not ['region=x']"),
        (["region=1", "region=2"], "names a level twice"),
        (["region=1"], "must bound the deepest level, 'district'"),
        (["town=1", "district=2"], "names unknown levels: ['town']"),
        (["region=3", "district=2"], "allows a unit more nodes of 'region', 3, than of 'district', 2"),
        (["0"], "must be a whole number of at least 1"),
        (["district=0"], "must be a whole number of at least 1"),
    ],
)
@pytest.mark.parametrize("verb", ["units", "plan"])
def test_bounds_that_cannot_be_used(files, capsys, verb, given, said):
    flags = [each for bound in given for each in ("--max-nodes", bound)]
    more = ["--units"] if verb == "plan" else []
    assert run(files, verb, *more, "--epsilon", "1", *PERSON, *flags) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(f"dptree: `--max-nodes` {said}")
    assert printed.err.count("Hint: ") == 1 and "max_nodes" not in printed.err


@each(
    "more, said",
    [
        (TWO, "`--max-nodes` bounds the nodes of distinct units, which are not counted.\n"
         "Hint: add --units"),
        (["--units", *TWO, "--column", "cost", "--bounds", "0", "9"], "`--column` has no meaning"),
        (["--units", *TWO, "--max-contributions", "2"], "`--max-contributions` has no meaning for"
         " a plan for distinct units.\nHint: leave it out; --max-nodes bounds"),
        (["--units", *TWO, "--private-key", "district"], "`--private-key` has no meaning"),
        (["--units", *TWO, "--known", "known.csv"], "`--known` must be the total alone"),
        (["--units", *TWO, "--delta", "1e-6", "--mechanism", "multiplicative", "--alpha", "0.5"],
         "`--mechanism` is unknown"),
    ],
)  # fmt: skip
def test_options_of_plans_that_do_not_fit(files, public, capsys, monkeypatch, more, said):
    monkeypatch.chdir(files)
    assert run(files, "plan", "--epsilon", "1", *PERSON, *more, "--out", "plan.json") == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(f"dptree: {said}")
    assert not (files / "plan.json").exists()


def test_the_loss_that_a_target_needs(files):
    target = ["--target", "district=10", "--mechanism", "gaussian"]
    plan = planned(files, "--units", *PERSON, "--max-nodes", "2", *target)
    assert plan.rho < 0.2 and plan.std_errors[-1] == pytest.approx(10, rel=1e-3)


@each("whom, said", [([], "for example --privacy-unit"), (["--each-row"], "are counted by `dptree counts`")])
def test_whose_distinct_values_are_counted_must_be_said(files, capsys, whom, said):
    assert run(files, "units", "--epsilon", "1", "--max-nodes", "2", *whom) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("dptree: `--privacy-unit` must name the column") and said in printed


def test_a_known_total_in_a_file(files):
    (files / "known.csv").write_text("region,count\n,500\n")
    known = ["--known", str(files / "known.csv"), "--confidence", "0.9", "--keep", "measurements"]
    table = released(files, "units", "--rho", "0.5", *PERSON, "--max-nodes", "2", *known)
    assert table.loc[0, ["count", "std_error", "lower", "upper"]].tolist() == [500, 0, 500, 500]
    assert {"measurement", "noise_scale", "excess_measurement", "excess_noise_scale"} < set(table)


def test_plans_are_released_checked_and_charged(files, visits, capsys):
    bounds = ["--max-nodes", "region=1", "--max-nodes", "district=2"]
    plan = planned(files, "--units", "--epsilon", "1", *PERSON, *bounds)
    assert "Plan for distinct person" in capsys.readouterr().out
    where = [
        str(files / "visits.csv"),
        "--domain",
        str(files / "places.csv"),
        "--plan",
        str(files / "plan.json"),
    ]
    create(files, epsilon=1.5, privacy_unit="person").close()
    charged = ["--ledger", str(files / "budget.sqlite"), "--account", "patients", "--note", "2026-03"]
    release = ["release", *where, "--digest", plan.digest, *charged]
    printed = []
    for _ in range(2):
        assert main(release) == 0
        printed.append(capsys.readouterr())
    assert printed[0].out == printed[1].out and printed[0].out.startswith("level,region,district,count,")
    assert "Charged. " in printed[0].err and "Nothing was charged. " in printed[1].err
    assert main([*release, "--name", "another"]) == 3
    capsys.readouterr()
    assert main(["secret-check", *where]) == 0
    shown = capsys.readouterr().out
    in_python = plan.secret_check(visits).to_text().splitlines()
    assert shown.splitlines()[: len(in_python) // 2] == in_python[: len(in_python) // 2]
    assert "Nodes that units keep" in shown and "rows of each unit:" not in shown


def test_released_tables_are_verified(files, capsys):
    plan = planned(files, "--units", "--rho", "0.1", *PERSON, "--max-nodes", "2", "--confidence", "0.9")
    where = ["--domain", str(files / "places.csv"), "--plan", str(files / "plan.json")]
    out = str(files / "out.csv")
    assert main(["release", str(files / "visits.csv"), *where, "--out", out]) == 0
    assert main(["verify", "--digest", plan.digest, str(files / "plan.json"), out]) == 0
    assert "FAIL" not in capsys.readouterr().out


def test_help_names_the_options(capsys):
    for verb, names in {"units": ["--max-nodes LEVEL=M"], "plan": ["--units", "--max-nodes LEVEL=M"]}.items():
        with pytest.raises(SystemExit):
            main([verb, "--help"])
        printed = capsys.readouterr().out
        assert all(name in printed for name in names)
        assert ("--max-contributions" in printed) == (verb == "plan")
