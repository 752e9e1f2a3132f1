"""Exit statuses, and what a script that is run again finds."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import pandas_dptree as dpt
from pandas_dptree import errors
from pandas_dptree.cli import main
from pandas_dptree.cli.statuses import EXPLANATION, Status, status_of
from pandas_dptree.ingest.safe_errors import ReadingError
from tests.helpers_cases import each
from tests.helpers_cli import BY, counts


@pytest.fixture
def ledger(files):
    with dpt.Ledger.create(files / "b.sqlite", account="a", epsilon=1.0, privacy_unit=dpt.ROWS) as ledger:
        yield ledger


def charging(files, *more):
    ledger = ["--ledger", str(files / "b.sqlite"), "--account", "a", "--note", "2026-03"]
    return ["--epsilon", "0.4", *ledger, *more]


@each(
    ("error", "status"),
    [
        (errors.ArgumentError("epsilon", "is bad.", hint="good."), 2),
        (errors.DomainError("is bad.", hint="good."), 2),
        (ReadingError("frame", "needs more memory.", hint="free some."), 1),
        (errors.MissingExtraError("This", package="pyarrow"), 1),
        (errors.LedgerError("It is locked.", hint="wait."), 1),
        (errors.RefusedReleaseError("No.", hint="wait."), 3),
        (errors.ChargedError("It failed.", charges=(), hint="wait."), 4),
    ],
)
def test_errors_have_a_status(error, status):
    assert status_of(error) == status and f"{int(status)} " in EXPLANATION


def test_help_explains_the_statuses(capsys):
    for command in ([], ["counts"], ["release"]):
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        assert " ".join(EXPLANATION.split()) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_command_that_is_run_again_has_its_table(files, ledger, capsys, suffix):
    out = files / f"out.{suffix}"
    command = charging(files, "--out", str(out))
    assert counts(files, *command) == Status.DONE
    first = out.read_bytes()
    capsys.readouterr()
    assert counts(files, *command) == Status.DONE
    said = capsys.readouterr().err
    assert "holds this table already" in said and "Nothing was charged. Account 'a'" in said
    other = files / f"other.{suffix}"
    assert counts(files, *charging(files, "--out", str(other))) == Status.DONE
    assert dpt.read_file(other).equals(dpt.read_file(out)) and ledger["a"].n_charges == 1
    out.write_bytes(first + b"\n")
    assert counts(files, *command) == Status.ARGUMENTS
    assert "already exists" in capsys.readouterr().err and out.read_bytes() == first + b"\n"
    assert counts(files, *command, "--force") == Status.DONE and out.read_bytes() == first
    assert counts(files, *charging(files, "--epsilon", "0.3")) == Status.REFUSED
    assert ledger["a"].spent.epsilon == 0.4


def test_an_output_that_exists_allows_no_new_release(files, ledger, capsys):
    out = files / "out.csv"
    out.write_text("mine")
    for more in ([], ["--allow-repeat"]):
        assert counts(files, *charging(files, "--out", str(out), *more)) == Status.ARGUMENTS
        assert "is a file that already exists" in capsys.readouterr().err
    assert ledger["a"].n_charges == 0 and out.read_text() == "mine"


def test_a_failure_after_the_charge(files, ledger, capsys, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("pandas_dptree.plans.measurement.release_frame", fail)
    assert counts(files, *charging(files)) == Status.CHARGED
    assert "failed after it was charged (account 'a', charge 3, note '2026-03')" in capsys.readouterr().err
    monkeypatch.undo()
    assert counts(files, *charging(files)) == Status.REFUSED
    assert "may still be running" in capsys.readouterr().err
    assert counts(files, *charging(files, "--allow-repeat")) == Status.DONE


def test_a_table_that_cannot_be_written_is_printed(files, ledger, capsys, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    assert counts(files, *charging(files, "--out", str(files / "out.csv"))) == Status.CHARGED
    printed = capsys.readouterr()
    assert printed.out.startswith("level,region,district,count,std_error\ntotal,")
    assert "Charged." in printed.err
    monkeypatch.undo()
    assert counts(files, *charging(files, "--out", str(files / "out.csv"))) == Status.DONE
    assert (files / "out.csv").read_text() == printed.out and ledger["a"].n_charges == 1


def test_the_log_tells_steps_and_nothing_of_records(files, ledger, caplog):
    with caplog.at_level(logging.DEBUG, "pandas_dptree"):
        assert counts(files, *charging(files)) == 0 == counts(files, *charging(files))
    assert {each.name for each in caplog.records} == {"pandas_dptree.cli.commands", "pandas_dptree.ledger"}
    plan = ledger.to_frame()["plan"][0]
    domain = str(files / "places.csv")
    assert caplog.messages == [
        f"reading the public keys in {domain!r}",
        f"charge 3: account 'a', note '2026-03', counts by region, district, plan {plan}",
        "kept the tables of charges [3]",
        "wrote standard output",
        f"reading the public keys in {domain!r}",
        "the table of charge 3 is returned as it was kept",
        "wrote standard output",
    ]


def test_the_log_of_a_process(files, ledger, capsys):
    script = "import sys; from pandas_dptree.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "--log-level", "info", "plan", *BY, "--domain"]
    done = subprocess.run([*command, str(files / "places.csv"), "--rho", "1"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.startswith("INFO pandas_dptree.cli.commands: reading the public keys in ")
    assert main(["ledger", "show", str(files / "b.sqlite"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entries"][1]["content"]["kind"] == "account"


def test_the_verifier_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "pandas_dptree.verify"], capture_output=True, text=True)
    assert done.returncode == 2 and "plan table" in done.stderr


@each(
    ("make", "why"),
    [
        (lambda path: None, "it does not exist"),
        (lambda path: path.write_bytes(b""), "it is empty"),
        (lambda path: path.write_bytes(b"PAR1 PAR1"), "it is not well-formed"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_cause(tmp_path, capsys, make, why):
    path = tmp_path / "places.parquet"
    make(path)
    (tmp_path / "r.csv").write_text("k\na\n")
    arguments = ["--by", "k", "--domain", str(path), "--epsilon", "1"]
    assert main(["counts", str(tmp_path / "r.csv"), *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"dptree: `--domain` cannot be read from {str(path)!r}: {why}.\nHint: ")
    path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)


def test_columns_of_a_schema_are_suggested_and_those_of_a_header_are_not(tmp_path, capsys):
    frame = dpt.datasets.clinic_visits(100)[["region"]]
    frame.to_parquet(tmp_path / "v.parquet")
    frame.to_csv(tmp_path / "v.csv", index=False)
    arguments = ["--by", "regoin", "--domain", "observed", "--epsilon", "1"]
    for suffix, hint in {"parquet": "did you mean 'region'?", "csv": "compare the spelling"}.items():
        assert main(["counts", str(tmp_path / f"v.{suffix}"), *arguments]) == 2
        assert f"lacks the columns: 'regoin'.\nHint: {hint}" in capsys.readouterr().err


@pytest.mark.parametrize("reader", ["csv_batches", "csv_header"])  # in a stream of pyarrow, and outside of it
def test_a_command_that_was_stopped_says_so(files, ledger, capsys, monkeypatch, reader):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"pandas_dptree.ingest.files.records.{reader}", stop)
    assert counts(files, *charging(files)) == Status.STOPPED == 130
    said = capsys.readouterr().err
    assert said.startswith("dptree: Stopped by Ctrl-C.\nHint: `dptree ledger show`") and said.count("\n") == 2
    assert ledger.to_frame().empty


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("kept", [True, False])
def test_a_full_output_is_no_failure_without_a_charge(files, kept):
    path = files / "b.sqlite"
    dpt.Ledger.create(path, account="a", epsilon=1.0, privacy_unit=dpt.ROWS, keep_tables=kept).close()
    script = "import sys; from pandas_dptree.cli import main; sys.exit(main())"
    places, visits = str(files / "places.csv"), str(files / "visits.csv")
    command = [sys.executable, "-c", script, "counts", visits, *BY, "--domain", places, *charging(files)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == Status.CHARGED and "Standard output cannot be written" in done.stderr
    assert "Traceback" not in done.stderr and dpt.Ledger.open(path)["a"].n_charges == 1
    with open("/dev/full", "w") as full:  # what is kept costs nothing
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == (Status.FAILED if kept else Status.REFUSED) and "Traceback" not in done.stderr
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == (Status.DONE if kept else Status.REFUSED)
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True)
    assert closed.returncode == Status.ARGUMENTS and "standard output is closed" in closed.stderr
