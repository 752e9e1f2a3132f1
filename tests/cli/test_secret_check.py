"""``dptree secret-check``: what it prints and writes, and where the records must not appear."""

import gzip
import io
import json
import os
import stat
import sys
from contextlib import redirect_stdout

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main
from pandas_dptree.plans.base import Plan
from tests.helpers_cli import BY, run

PLANTED = "planted value 4711 \u00e9"
UNIT = ["--privacy-unit", "person", "--max-contributions", "3"]


@pytest.fixture
def check(files):
    """Plan sums, and check other records, with a planted text in each column."""
    visits = pd.read_csv(files / "visits.csv", dtype=str)
    for name in ("person", "region", "district", "cost"):
        visits.loc[len(visits)] = visits.loc[0].to_dict() | {name: PLANTED}
    visits.to_csv(files / "planted.csv", index=False)
    values = ["--column", "cost", "--bounds", "0", "100"]
    with redirect_stdout(io.StringIO()):
        assert run(files, "plan", *values, "--epsilon", "1", *UNIT, "--out", str(files / "plan.json")) == 0

    def run_check(*more, records="planted.csv"):
        where = ["--plan", str(files / "plan.json"), "--domain", str(files / "places.csv")]
        return main(["secret-check", str(files / records), *where, *more])

    return run_check


def in_python(files):
    domain = dpt.Domain.from_frame(pd.read_csv(files / "places.csv"), by=BY[1::2])
    plan = Plan.from_dict(json.loads((files / "plan.json").read_text()), domain)
    return plan.secret_check(pd.read_csv(files / "planted.csv", dtype=str))


def test_it_prints_what_python_says_and_writes_nothing(check, files, capsys):
    before = {path: path.read_bytes() for path in files.iterdir()}
    assert check() == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].startswith("SECRET: publish nothing of this")
    assert PLANTED in printed.out and printed.err == ""
    assert printed.out == in_python(files).to_text() + "\n"
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_out_is_a_file_for_the_user_alone(check, files, capsys):
    out = files / "check.txt"
    assert check("--out", str(out)) == 0
    assert capsys.readouterr() == ("", "")
    assert out.read_text("utf-8") == in_python(files).to_text() + "\n"
    if os.name == "posix":
        assert stat.S_IMODE(out.stat().st_mode) == 0o600
    out.write_text("kept")
    out.chmod(0o644)
    assert check("--out", str(out)) == 2
    assert "already exists" in (said := capsys.readouterr().err) and "budget" not in said
    assert out.read_text() == "kept"
    assert check("--out", str(out), "--force") == 0
    assert os.name != "posix" or stat.S_IMODE(out.stat().st_mode) == 0o600
    assert check("--out", str(files / "check.csv")) == 2
    assert "use .txt" in capsys.readouterr().err


def test_a_terminal_that_cannot_show_a_text_gets_its_code(check, monkeypatch, capsys):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert check() == 0
    assert b"planted value 4711 \\xe9" in raw.getvalue()
    assert capsys.readouterr().err == ""


def test_nothing_of_the_records_is_in_other_files_or_messages(check, files, capfd, monkeypatch, tmp_path):
    """Not in the ledger that a release of the same plan charges, and not if the records break off."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    terms = ["--privacy-unit", "person", "--epsilon", "9"]
    assert main(["ledger", "create", str(files / "l.sqlite"), "--account", "a", *terms]) == 0
    assert check("--temp-folder", str(tmp_path / "temporary"), "--out", str(files / "check.txt")) == 0
    charged = [
        "--ledger",
        str(files / "l.sqlite"),
        "--account",
        "a",
        "--note",
        "n",
        "--out",
        str(files / "t.csv"),
    ]
    plan = ["--plan", str(files / "plan.json"), "--domain", str(files / "places.csv")]
    assert main(["release", str(files / "planted.csv"), *plan, *charged, "--out", str(files / "t.csv")]) == 0
    whole = gzip.compress((files / "planted.csv").read_bytes())
    (files / "broken.csv.gz").write_bytes(whole[:-100])
    assert check(records="broken.csv.gz") == 2
    assert "4711" not in "".join(capfd.readouterr())
    holding = {path.name for path in files.rglob("*") if path.is_file() and b"4711" in path.read_bytes()}
    assert holding == {"planted.csv", "check.txt"}
    assert list((tmp_path / "temporary").iterdir()) == []


def test_parquet_and_approved_digests(check, files, capsys):
    pd.read_csv(files / "planted.csv", dtype=str).to_parquet(files / "planted.parquet")
    assert check(records="planted.parquet") == 0
    from_parquet = capsys.readouterr().out
    assert check() == 0
    assert capsys.readouterr().out == from_parquet
    assert check("--digest", "0" * 64) == 2
    assert "digest" in capsys.readouterr().err
