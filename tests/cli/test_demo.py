"""`dptree demo --files` writes the files on which README's shell commands run."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main

README = Path(__file__).parents[2] / "README.md"


def test_files_hold_the_simulated_data(tmp_path, capsys):
    assert main(["demo", "--files", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"visits.csv", "places.csv"}
    places = pd.read_csv(tmp_path / "places.csv")
    pd.testing.assert_frame_equal(places, dpt.datasets.clinics(), check_dtype=False)
    visits = pd.read_csv(tmp_path / "visits.csv", parse_dates=["date"])
    pd.testing.assert_frame_equal(visits, dpt.datasets.clinic_visits(), check_dtype=False)
    assert "visits.csv" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["visits.csv", "places.csv"])
def test_existing_files_are_kept_without_force(tmp_path, capsys, name):
    (tmp_path / name).write_text("mine")
    assert main(["demo", "--files", "--out", str(tmp_path)]) == 2
    assert f"already holds {name}" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"
    assert main(["demo", "--files", "--out", str(tmp_path), "--force"]) == 0
    assert (tmp_path / name).read_text() != "mine"


def test_both_files_are_written_or_neither(tmp_path, monkeypatch, capsys):
    write = pd.DataFrame.to_csv

    def fail_for_visits(frame, path, **options):
        if "cost" in frame:
            raise OSError
        write(frame, path, **options)

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail_for_visits)
    assert main(["demo", "--files", "--out", str(tmp_path)]) == 2
    assert "`--out` cannot be written to" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_folder_must_exist(tmp_path, capsys):
    assert main(["demo", "--files", "--out", str(tmp_path / "new")]) == 2
    assert "Hint: name a folder that exists" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--out", "."], ["--force"]])
def test_options_of_files_need_files(more, capsys):
    assert main(["demo", *more]) == 2
    assert f"`{more[0]}` has no meaning without --files" in capsys.readouterr().err


def test_the_shell_block_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [block] = [
        block
        for block in re.findall(r"^```\n(.*?)^```$", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        if "dptree demo --files" in block
    ]
    commands = [shlex.split(line, comments=True) for line in block.replace("\\\n", " ").splitlines()]
    assert len(commands) >= 5
    for command in commands:
        assert command[0] == "dptree"
        assert main(command[1:]) == 0, (command, capsys.readouterr().err)
    assert pd.read_csv("counts.csv")["count"].iloc[0] > 20_000
