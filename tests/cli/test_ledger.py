"""The command ``dptree ledger``."""

import sqlite3
from contextlib import closing

import pytest

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main
from tests.helpers_cases import each
from tests.helpers_ledger import StandIn, charge

TERMS = ["--account", "patients", "--rho", "0.02", "--privacy-unit", "person"]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "budget.sqlite")


def run(*arguments):
    return main(["ledger", *arguments])


def test_create_and_add(path, capsys):
    assert run("create", path, *TERMS, "--delta", "5e-7") == 0
    assert (
        run("add", path, "--account", "rows", "--epsilon", "1", "--each-row", "--neighbors", "replace") == 0
    )
    parts = ["--part", "a", "--part", "b"]
    assert run("add", path, "--account", "parts", "--rho", "1", "--each-row", *parts, "--fixed-records") == 0
    printed = capsys.readouterr().out
    ledger = dpt.Ledger.open(path)
    assert printed.splitlines()[-1] == f"Head: {ledger.head.digest} (entry 4; note it elsewhere)"
    assert ledger["patients"].cap.to_dict() == {"rho": 0.02, "delta": 5e-7}
    assert (ledger["rows"].privacy_unit, ledger["rows"].neighbors) == (None, "replace")
    assert ledger["parts"].parts == ("a", "b") and ledger["parts"].fixed_records


def test_show(path, tmp_path, capsys):
    run("create", path, "--account", "patients", "--epsilon", "1", "--privacy-unit", "person", "--part", "a")
    assert run("show", path) == 0
    assert "1 of epsilon=1 left, 0 charges\n  part 'a': 1 of epsilon=1 left\n" in capsys.readouterr().out
    charge(dpt.Ledger.open(path)["patients"].part("a"), StandIn("1/4"), note="2026-03")
    assert run("show", path) == 0
    printed = capsys.readouterr().out
    assert "0.75 of epsilon=1 left, 1 charge\n" in printed
    assert "2026-03-01 12:30:15 patients    a 2026-03 counts by state     0.25      0     False" in printed
    assert f"Head: {dpt.Ledger.open(path).head.digest}" in printed
    assert run("show", path, "--html", str(tmp_path / "page.html")) == 0
    assert "2026-03" in (tmp_path / "page.html").read_text("utf-8")


def test_verify(path, capsys):
    run("create", path, *TERMS)
    head = dpt.Ledger.open(path).head.digest
    capsys.readouterr()
    assert run("verify", path) == run("verify", path, "--head", head) == 0
    assert f"as it was written: 2 entries. Head: {head}" in capsys.readouterr().out
    assert run("verify", path, "--head", "0" * 64) == 1
    assert "no entry has the digest 0000000000000000" in capsys.readouterr().err
    assert run("verify", path, "--head", "abc") == 2
    assert "`--head` must be a digest" in capsys.readouterr().err
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entry_kept")
        connection.execute("DELETE FROM entry WHERE number = 2")
    assert run("verify", path, "--head", head) == 1
    printed = capsys.readouterr().err
    assert (
        printed.startswith("dptree: The ledger 'budget.sqlite' was changed")
        and "\nHint: keep a copy" in printed
    )


@each(
    ("arguments", "message"),
    [
        (["show"], "does not exist"),
        (["verify"], "does not exist"),
        (["add", *TERMS], "does not exist"),
        (["create", *TERMS[:2], "--privacy-unit", "person"], "`--epsilon` or `--rho` must be given"),
        (["create", *TERMS, "--part", "a"], "`--fixed-records` must be True"),
        (["create", *TERMS, "--fixed-records"], "`--fixed-records` is given without `--part`"),
    ],
)
def test_errors(path, tmp_path, capsys, arguments, message):
    command, *more = arguments
    assert run(command, path, *more) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_existing_ledger_is_kept(path, capsys):
    run("create", path, *TERMS)
    head = dpt.Ledger.open(path).head
    assert run("create", path, *TERMS) == run("add", path, *TERMS) == 2
    printed = capsys.readouterr().err
    assert "exists already.\nHint: use it" in printed and "`--account` exists already: 'patients'" in printed
    assert dpt.Ledger.open(path).head == head


def test_the_privacy_unit_must_be_stated(path, capsys):
    with pytest.raises(SystemExit):
        run("create", path, *TERMS[:4])
    assert "one of the arguments --privacy-unit --each-row is required" in capsys.readouterr().err
