"""Commands charge an account before they release."""

import json

import pytest

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main
from tests.helpers_cases import each
from tests.helpers_cli import BY, counts, run


@pytest.fixture
def ledger(tmp_path):
    with dpt.Ledger.create(
        tmp_path / "budget.sqlite", account="rows", epsilon=1.0, privacy_unit=dpt.ROWS
    ) as created:
        created.add_account("people", rho=0.02, delta=1e-6, privacy_unit="person")
        yield created


def charging(ledger, *more, account="rows", note="2026-03"):
    return ["--ledger", ledger.path, "--account", account, "--note", note, *more]


def spent(ledger):
    return ledger["rows"].spent.epsilon, ledger["rows"].n_charges


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("counts", []),
        ("sums", ["--column", "cost", "--bounds", "0", "500"]),
        ("means", ["--column", "cost", "--bounds", "0", "500"]),
    ],
)
def test_a_release_is_charged_and_names_its_charge(files, ledger, verb, more, tmp_path, capsys):
    out = tmp_path / "table.csv"
    assert run(files, verb, *more, "--epsilon", "0.4", "--out", str(out), *charging(ledger)) == 0
    assert spent(ledger) == (0.4, 1)
    assert f"Charged. {ledger['rows']}\n" in capsys.readouterr().err
    (row,) = ledger.to_frame().to_dict("records")
    stated = json.loads(out.with_name("table.csv.json").read_text())["attrs"]
    assert stated["ledger"] == {"account": "rows", "charge": row["number"], "digest": row["digest"]}
    assert row["note"] == "2026-03" and row["released"] and row["plan"] == stated["digest"]


def test_a_stored_plan_is_charged(files, ledger, tmp_path):
    plan = tmp_path / "plan.json"
    domain = ["--domain", str(files / "places.csv")]
    unit = ["--privacy-unit", "person", "--max-contributions", "2"]
    assert main(["plan", *BY, *domain, "--rho", "0.005", *unit, "--out", str(plan)]) == 0
    release = ["release", str(files / "visits.csv"), "--plan", str(plan), *domain]
    assert main([*release, *charging(ledger, account="people")]) == 0
    assert ledger["people"].spent.rho == 0.005


def test_a_script_that_is_run_twice_spends_once(files, ledger, tmp_path, capsys):
    command = ["--epsilon", "0.4", "--out", str(tmp_path / "table.csv"), "--force", *charging(ledger)]
    assert counts(files, *command) == 0
    before = (tmp_path / "table.csv").read_text()
    assert counts(files, *command) == 0
    message = capsys.readouterr().err
    assert "This table was released before, as requested at 20" in message and "--allow-repeat" in message
    assert spent(ledger) == (0.4, 1) and (tmp_path / "table.csv").read_text() == before
    assert counts(files, *command, "--allow-repeat") == 0
    assert spent(ledger) == (0.8, 2)


def test_what_the_account_cannot_pay_for_is_not_written(files, ledger, tmp_path, capsys):
    out = tmp_path / "table.csv"
    assert counts(files, "--epsilon", "1.5", "--out", str(out), *charging(ledger)) == 3
    assert "1 of epsilon=1 left" in capsys.readouterr().err
    assert not out.exists() and spent(ledger) == (0.0, 0)


@each(
    ("options", "message"),
    [
        (["--note", "2026-03"], "`--note` has no meaning without --ledger"),
        (["--account", "rows"], "`--account` has no meaning without --ledger"),
        (["--part", "january"], "`--part` has no meaning without --ledger"),
        (["--allow-repeat"], "`--allow-repeat` has no meaning without --ledger"),
    ],
)
def test_options_of_a_ledger_need_one(files, options, message, capsys):
    assert counts(files, "--epsilon", "0.4", *options) == 2
    assert message in capsys.readouterr().err


@each(
    ("drop", "message"),
    [
        ("--note", "`--note` must be given with --ledger"),
        ("--account", "`--account` must be given with --ledger.\nHint: the ledger has ['rows', 'people']"),
    ],
)
def test_a_ledger_needs_an_account_and_a_note(files, ledger, drop, message, capsys):
    options = charging(ledger)
    place = options.index(drop)
    del options[place : place + 2]
    assert counts(files, "--epsilon", "0.4", *options) == 2
    assert message in capsys.readouterr().err and spent(ledger) == (0.0, 0)


def test_a_part_is_charged(files, tmp_path):
    path = tmp_path / "parts.sqlite"
    with dpt.Ledger.create(
        path, account="rows", epsilon=1.0, privacy_unit=dpt.ROWS, parts=["january", "february"]
    ) as ledger:
        for month in ("january", "february"):
            assert counts(files, "--epsilon", "0.9", *charging(ledger, "--part", month)) == 0
        assert ledger["rows"].remaining.epsilon == 0.1
        assert counts(files, "--epsilon", "0.2", *charging(ledger, "--part", "january", note="more")) == 3


def test_a_missing_ledger_or_account_is_named(files, ledger, tmp_path, capsys):
    assert counts(files, "--epsilon", "0.4", *charging(ledger, account="row")) == 2
    assert "did you mean 'rows'?" in capsys.readouterr().err
    missing = ["--ledger", str(tmp_path / "none.sqlite"), "--account", "rows", "--note", "2026-03"]
    assert counts(files, "--epsilon", "0.4", *missing) == 1
    assert "does not exist" in capsys.readouterr().err and not (tmp_path / "none.sqlite").exists()
