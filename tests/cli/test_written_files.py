"""Files that the command writes: whole or not at all, and never over another file without ``--force``."""

import io
import os
import warnings
from pathlib import Path

import pandas as pd
import pytest

import pandas_dptree as dpt
import pandas_dptree.cli.commands
from pandas_dptree.cli.commands import main
from pandas_dptree.output import empty_tables
from tests.helpers_cli import BY, counts


@pytest.fixture
def verbs(files):
    """Every command that writes a file, without the file."""
    domain = ["--domain", str(files / "places.csv")]
    where, visits, loss = [*BY, *domain], str(files / "visits.csv"), ["--epsilon", "1"]
    column = ["--column", "cost", "--bounds", "0", "500"]
    assert main(["plan", *where, *loss, "--out", str(files / "made.json")]) == 0
    return {
        "counts": ["counts", visits, *where, *loss],
        "sums": ["sums", visits, *where, *loss, *column],
        "means": ["means", visits, *where, *loss, *column],
        "plan": ["plan", *where, *loss],
        "release": ["release", visits, "--plan", str(files / "made.json"), *domain],
    }


VERBS = ["counts", "sums", "means", "plan", "release"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_that_is_there_stays_without_force(files, verbs, capsys, monkeypatch, verb):
    out = files / ("out.json" if verb == "plan" else "out.csv")
    arguments = [*verbs[verb], "--out", str(out)]
    assert main(arguments) == 0
    first = out.read_bytes()
    capsys.readouterr()
    with monkeypatch.context() as nothing:  # nothing is read
        nothing.setattr("pandas_dptree.cli.commands.read_places", None)
        nothing.setattr("pandas_dptree.cli.commands._read_plan", None)
        assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("dptree: `--out` is a file that already exists")
    assert "--force" in printed.err and ("second release" in printed.err) == (verb != "plan")
    assert out.read_bytes() == first
    assert main([*arguments, "--force"]) == 0
    assert (out.read_bytes() == first) == (verb == "plan")  # the noise is new
    assert not list(files.glob(".dptree-*"))


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_file_that_appears_meanwhile_stays(files, verbs, capsys, monkeypatch, verb, links):
    out = files / ("out.json" if verb == "plan" else "out.parquet")

    def no_links(*_):
        raise PermissionError("a file system without links")

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    check = pandas_dptree.cli.commands.check_out

    def and_then_it_appears(*args, **kwargs):
        check(*args, **kwargs)
        out.write_text("of another run")

    arguments = [*verbs[verb], "--out", str(out)]
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("pandas_dptree.cli.commands.check_out", and_then_it_appears)
        assert main(arguments) == 2
        printed = capsys.readouterr()
        assert printed.err.splitlines()[-2].startswith("dptree: `--out` is a file that already exists")
        assert printed.out == "" and out.read_text() == "of another run"
        assert main([*arguments, "--force"]) == 0
    out.unlink()
    assert main(arguments) == 0 and out.stat().st_size > len("of another run")
    assert not list(files.glob(".dptree-*"))


def test_links_that_lead_nowhere_and_devices_stay(files, capsys):
    out = files / "out.csv"
    out.symlink_to(files / "nowhere.csv")
    assert counts(files, "--epsilon", "1", "--out", str(out)) == 2
    assert out.is_symlink() and not (files / "nowhere.csv").exists()
    for device in ("/dev/stdout", "/dev/null"):
        assert counts(files, "--epsilon", "1", "--out", device, "--force") == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("is a file of unknown type") == 2


def test_with_force_what_a_link_leads_to_is_replaced(files):
    out, target = files / "out.csv", files / "elsewhere" / "target.csv"
    target.parent.mkdir()
    target.write_text("old")
    out.symlink_to(target)
    assert counts(files, "--epsilon", "1", "--out", str(out), "--force") == 0
    assert out.is_symlink() and target.read_text().startswith("level,")
    assert len(dpt.read_file(out)) and not (files / "elsewhere" / "target.csv.json").exists()


def test_nothing_is_left_behind_where_neither_links_nor_renames_work(files, monkeypatch):
    def fails(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", fails)
    monkeypatch.setattr(os, "replace", fails)
    assert counts(files, "--epsilon", "1", "--out", str(files / "out.csv")) == 4
    assert not (files / "out.csv").exists() and not list(files.glob(".dptree-*"))


def test_a_table_is_written_even_where_warnings_are_errors(files, capsys, monkeypatch):
    monkeypatch.setattr(empty_tables, "FEWEST", 30)  # whatever the noise is, as it has no seed here
    (files / "nobody.csv").write_text((files / "visits.csv").read_text().splitlines()[0] + "\n")
    out = files / "out.csv"
    with warnings.catch_warnings(action="error"):
        assert counts(files, "--epsilon", "1", "--out", str(out), records="nobody.csv") == 0
    assert "nearly empty" in capsys.readouterr().err and out.exists()


@pytest.mark.parametrize("failure", [ZeroDivisionError, OSError])
def test_an_old_table_stays_if_the_new_one_fails(files, monkeypatch, failure):
    out = files / "out.csv"
    out.write_text("old")

    def fails(*_, **__):
        raise failure

    monkeypatch.setattr(Path, "write_bytes", fails)
    arguments = ["--epsilon", "1", "--out", str(out), "--force"]
    if failure is OSError:
        assert counts(files, *arguments) == 4
    else:
        with pytest.raises(failure):
            counts(files, *arguments)
    assert out.read_text() == "old" and not list(files.glob(".dptree-*"))
    assert not (files / "out.csv.json").exists()


def test_where_nothing_can_be_written_nothing_is_spent(files, capsys, monkeypatch):
    monkeypatch.setattr(dpt.Plan, "release", None)
    (files / "folder.csv").mkdir()
    assert counts(files, "--epsilon", "1", "--out", str(files / "folder.csv")) == 2
    assert "`--out` cannot be written" in capsys.readouterr().err

    def full(**_):
        raise PermissionError("no")

    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    assert counts(files, "--epsilon", "1", "--out", str(files / "out.csv")) == 2
    assert "`--out` cannot be written" in capsys.readouterr().err


def test_a_full_disk_is_reported(files, capsys, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert counts(files, "--epsilon", "1", "--out", str(files / "out.csv")) == 4
    printed = capsys.readouterr()
    assert "`--out` cannot be written" in printed.err and "follows on standard output" in printed.err
    assert printed.out.startswith("level,region,district,count,std_error\ntotal,")  # it is not lost
    assert not (files / "out.csv").exists() and not list(files.glob(".dptree-*"))


@pytest.mark.parametrize("verb", ["counts", "sums", "means", "release"])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_tables_keep_their_meaning(files, verbs, verb, name):
    assert main([*verbs[verb], "--out", str(files / name)]) == 0
    table = dpt.read_file(files / name)
    assert table.attrs["dp"]["epsilon"] == 1.0
    assert table["level"].cat.categories.tolist() == ["total", "region", "district"]
    assert (files / "out.csv.json").exists() == (name == "out.csv")


def test_the_shell_prints_what_it_writes(files, capsys):
    texts = []
    for more in ([], ["--out", str(files / "out.csv")]):
        assert counts(files, "--epsilon", "1e9", *more) == 0
        texts.append(capsys.readouterr().out)
    assert texts[1] == "" and texts[0] == (files / "out.csv").read_text()
    frame = dpt.read_file(files / "out.csv")
    assert frame.to_csv(index=False, lineterminator="\n") == texts[0]
    assert pd.read_csv(io.StringIO(texts[0]))["count"].tolist() == frame["count"].tolist()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_description_that_is_there_stays_without_force(files, capsys, monkeypatch, kind):
    out, beside = files / "out.csv", files / "out.csv.json"
    if kind == "file":
        beside.write_text("other")
    else:
        beside.mkdir()
    with monkeypatch.context() as nothing:
        nothing.setattr(dpt.Plan, "release", None)
        assert counts(files, "--epsilon", "1", "--out", str(out)) == 2
    printed = capsys.readouterr().err
    assert "out.csv.json" in printed and ("already exists" in printed) == (kind == "file")
    assert not out.exists()
    if kind == "file":
        assert beside.read_text() == "other"
        assert counts(files, "--epsilon", "1", "--out", str(out), "--force") == 0
        assert len(dpt.read_file(out))


def test_a_description_that_appears_meanwhile_stays(files, capsys, monkeypatch):
    check = pandas_dptree.cli.commands.check_out

    def and_then_it_appears(*args, **kwargs):
        check(*args, **kwargs)
        (files / "out.csv.json").write_text("of another run")

    monkeypatch.setattr("pandas_dptree.cli.commands.check_out", and_then_it_appears)
    assert counts(files, "--epsilon", "1", "--out", str(files / "out.csv")) == 2
    assert "description of the table, which already exists" in capsys.readouterr().err
    assert (files / "out.csv.json").read_text() == "of another run" and not (files / "out.csv").exists()


@pytest.mark.parametrize("name", [None, "out.csv", "out.parquet"])
def test_a_release_that_cannot_be_described_is_written_all_the_same(files, capsys, monkeypatch, name):
    """Its budget is spent."""

    def fails(_):
        raise TypeError("a type without a text")

    monkeypatch.setattr("pandas_dptree.output.files.encode", fails)
    assert counts(files, "--epsilon", "1", *([] if name is None else ["--out", str(files / name)])) == 0
    printed = capsys.readouterr()
    assert (
        "dptree: the table is written without a description, since it has a column that a file cannot keep"
        in printed.err
    )
    assert not (files / "out.csv.json").exists()
    if name is None:
        assert printed.out.startswith("level,region,")
    else:
        table = pd.read_parquet(files / name) if name == "out.parquet" else pd.read_csv(files / name)
        assert table["level"].iloc[0] == "total"


def test_a_workbook(files, verbs, capsys):
    openpyxl = pytest.importorskip("openpyxl")
    out = files / "out.xlsx"
    assert main([*verbs["counts"], "--out", str(out)]) == 0
    assert openpyxl.load_workbook(out).sheetnames == ["Read me", "out"]
    assert main([*verbs["counts"], "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
