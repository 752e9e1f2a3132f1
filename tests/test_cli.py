"""The shell command."""

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.cli import main

BY = ["--by", "region", "--by", "district"]


@pytest.fixture
def files(tmp_path):
    visits = dpt.datasets.clinic_visits(500)
    places = dpt.datasets.clinics()[["region", "district"]].drop_duplicates()
    visits.to_csv(tmp_path / "visits.csv", index=False)
    visits.to_parquet(tmp_path / "visits.parquet")
    places.to_csv(tmp_path / "places.csv", index=False)
    return tmp_path


def counts(files, *more, records="visits.csv"):
    return main(["counts", str(files / records), *BY, "--domain", str(files / "places.csv"), *more])


def test_csv_to_csv_and_parquet(files, capsys):
    assert counts(files, "--epsilon", "1") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("level,region,district,count,std_error\ntotal,,,")
    assert counts(files, "--epsilon", "1", "--out", str(files / "out.csv")) == 0
    assert counts(files, "--rho", "0.5", "--out", str(files / "out.parquet"), records="visits.parquet") == 0
    table = pd.read_parquet(files / "out.parquet")
    assert table.dp.level("region")["count"].sum() == table.dp.level("total")["count"].item()
    assert len(pd.read_csv(files / "out.csv")) == len(table)
    assert not list(files.glob(".dptree-*"))


def test_keys_from_a_csv_are_text(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("zip,who\n00501,1\n00501,2\nNA,3\n,4\n")
    (tmp_path / "zips.csv").write_text("zip\n00501\nNA\n")
    arguments = ["counts", str(tmp_path / "rows.csv"), "--by", "zip", "--domain", str(tmp_path / "zips.csv")]
    assert main([*arguments, "--epsilon", "9000", "--privacy-unit", "who"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines[1:]] == ["total,,3", "zip,00501,2", "zip,NA,1"]


def test_demo_needs_no_file(capsys):
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert "simulated" in printed and "noise_scale" in printed and "std_error" in printed


@pytest.mark.parametrize(
    ("more", "records", "message"),
    [
        ([], "visits.csv", "`epsilon` or `rho` must be given"),
        (["--epsilon", "-1"], "visits.csv", "`epsilon` must be positive"),
        (["--epsilon", "1"], "nothing.csv", "`records` cannot be read"),
        (["--epsilon", "1"], "visits.xlsx", "`records` is a file of unknown type"),
        (["--epsilon", "1", "--out", "nowhere/out.csv"], "visits.csv", "`out` is in a folder"),
        (["--epsilon", "1", "--out", "out.xlsx"], "visits.csv", "`out` is a file of unknown type"),
        (["--epsilon", "1", "--privacy-unit", "nobody"], "visits.csv", "lacks the columns: 'nobody'"),
        (["--epsilon", "1", "--by", "town"], "visits.csv", "lacks the columns: 'town'"),
    ],
)
def test_errors_are_told_in_one_piece(files, capsys, more, records, message):
    assert counts(files, *more, records=records) == 2
    told = capsys.readouterr()
    assert told.out == "" and message in told.err and "Hint: " in told.err
    assert "Traceback" not in told.err


def test_a_broken_file_is_not_quoted(files, capsys):
    (files / "broken.csv").write_text('region,district\nsecret,"x\nsecret,y,z,w\n')
    assert counts(files, "--epsilon", "1", records="broken.csv") == 2
    assert "secret" not in capsys.readouterr().err


def test_parquet_without_pyarrow_is_told_before_anything_is_spent(files, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert counts(files, "--epsilon", "1", "--out", str(files / "out.parquet")) == 2
    assert 'pip install "pandas_dptree[engines]"' in capsys.readouterr().err


def test_an_old_table_stays_if_the_new_one_fails(files, monkeypatch):
    out = files / "out.csv"
    out.write_text("old")
    monkeypatch.setattr(pd.DataFrame, "to_csv", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        counts(files, "--epsilon", "1", "--out", str(out))
    assert out.read_text() == "old" and not list(files.glob(".dptree-*"))
