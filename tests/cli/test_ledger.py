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
    ("arguments", "status", "message"),
    [
        (["show"], 1, "does not exist"),
        (["verify"], 1, "does not exist"),
        (["add", *TERMS], 1, "does not exist"),
        (["create", *TERMS[:2], "--privacy-unit", "person"], 2, "`--epsilon` or `--rho` must be given"),
        (["create", *TERMS, "--part", "a"], 2, "`--fixed-records` must be True"),
        (["create", *TERMS, "--fixed-records"], 2, "`--fixed-records` is given without `--part`"),
    ],
)
def test_errors(path, tmp_path, capsys, arguments, status, message):
    command, *more = arguments
    assert run(command, path, *more) == status
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_existing_ledger_is_kept(path, capsys):
    run("create", path, *TERMS)
    head = dpt.Ledger.open(path).head
    assert (run("create", path, *TERMS), run("add", path, *TERMS)) == (1, 2)
    printed = capsys.readouterr().err
    assert "exists already.\nHint: use it" in printed and "`--account` exists already: 'patients'" in printed
    assert dpt.Ledger.open(path).head == head


def test_the_privacy_unit_must_be_stated(path, capsys):
    with pytest.raises(SystemExit):
        run("create", path, *TERMS[:4])
    assert "one of the arguments --privacy-unit --each-row is required" in capsys.readouterr().err


def test_what_a_terminal_would_obey_is_not_printed(tmp_path, path, capsys):
    from tests.helpers_cli import CONTROLS, is_safe

    for odd in CONTROLS:
        name = f"a{odd}b"
        for wrong in (["--account", name], [*TERMS[:4], "--part", name]):
            assert run("create", path, "--epsilon", "1", "--each-row", *wrong) == 2
        if odd not in "\x00\ud800":  # which no name of a file holds
            assert run("show", str(tmp_path / f"{name}.sqlite")) == 1
        with pytest.raises(SystemExit):
            run("verify", path, name)
        printed = capsys.readouterr()
        assert is_safe(printed.out) and is_safe(printed.err), odd
    unit = "".join(each for each in CONTROLS if each < "\ud800")
    assert run("create", path, "--account", "a", "--epsilon", "1", "--privacy-unit", unit) == 0
    assert run("show", path) == run("verify", path) == 0
    assert run("verify", path, "--head", unit) == 2
    printed = capsys.readouterr()
    assert r"protects each '\x1b[2J" in printed.out
    assert is_safe(printed.out) and is_safe(printed.err)


def test_a_changed_ledger_prints_nothing_that_a_terminal_would_obey(path, tmp_path, capsys):
    """Whoever can write the file can store any text in it, and forge lines of what is printed."""
    from tests.helpers_cli import CONTROLS, is_safe

    odd = f"{''.join(CONTROLS[:-2]).replace(chr(0), '')}<i>\nThe ledger is as it was written: 4 entries."
    run("create", path, "--account", "a", "--epsilon", "1", "--each-row", "--part", "part")
    plan = StandIn("1/4", privacy_unit=None)
    with dpt.Ledger.open(path) as ledger:
        charge(ledger["a"].part("part"), plan, note="a note")
        ledger.add_account("b", rho=1.0, privacy_unit="unit")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entry_unchanged")
        for place, name in [
            (2, "name"), (2, "parts[0]"), (2, "neighbors"), (4, "privacy_unit"), (3, "account"), (3, "part"),
            (3, "note"), (3, "name"), (3, "what"), (3, "user"), (3, "plan"),
        ]:  # fmt: skip
            connection.execute(
                f"UPDATE entry SET content = json_set(content, '$.{name}', ?) WHERE number = {place}", (odd,)
            )
        connection.execute("UPDATE entry SET digest = ?", (odd,))
        connection.execute("UPDATE spent SET account = ?, part = ?", (odd, odd))
        connection.execute(f'CREATE TABLE "{odd}" (x)')
    capsys.readouterr()
    assert run("show", path) == 0, capsys.readouterr().err
    assert run("verify", path) == 1
    printed = capsys.readouterr()
    assert "x1b[2J" in printed.out and "\n- entry 1" in printed.err
    with dpt.Ledger.open(path) as ledger, pytest.raises(dpt.errors.LedgerIntegrityError) as caught:
        ledger.verify()
    assert all(map(str.isprintable, caught.value.problems)) and "x1b[2J" in caught.value.problems[-1]
    assert is_safe(printed.out) and is_safe(printed.err)
    assert not [line for line in (printed.out + printed.err).splitlines() if line.startswith("The ledger is")]
    page = str(tmp_path / "page.html")
    assert run("show", path, "--html", page) == 0
    with open(page, encoding="utf-8") as file:
        text = file.read()
    assert is_safe(text) and "<i>" not in text and text.count("&lt;i&gt;\\nThe ledger") >= 9
