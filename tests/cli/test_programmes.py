"""The command ``dptree run``."""

import os

import pytest

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main
from tests.helpers_toml import REPORT, make_files


@pytest.fixture
def file(tmp_path):
    make_files(tmp_path)
    path = tmp_path / "report.toml"
    path.write_text(REPORT.partition("[page]")[0].replace('["parquet", "csv", "xlsx", "html"]', '["csv"]'))
    return path


def charges(file):
    with dpt.Ledger.open(file.parent / "budget.sqlite") as ledger:
        return ledger["patients"].n_charges


def test_a_dry_run_does_nothing(file, capsys):
    before = sorted(os.listdir(file.parent))
    assert main(["run", str(file), "--for", "2025-03..2025-04", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("Dry run: nothing was read, charged or written.") == 2
    assert "report.toml for month 2025-04." in printed
    assert sorted(os.listdir(file.parent)) == before and charges(file) == 0


@pytest.mark.filterwarnings("always::pandas_dptree.DPTreeWarning")
def test_a_run_and_another(file, capsys):
    assert main(["run", str(file), "--for", "2025-03"]) == 0
    names = sorted(os.listdir(file.parent / "published" / "2025-03"))
    assert {"visits.csv", "care.csv", "costs.csv"} <= set(names) and charges(file) == 3
    assert main(["run", str(file), "--for", "2025-03"]) == 0 and charges(file) == 3
    capsys.readouterr()
    assert main(["run", str(file), "--for", "2025-03", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "released. A run makes the outputs again, and charges nothing." in printed
    assert "Taken: visits as kept on 20" in printed and ", charge " in printed


def test_what_is_due_up_to_the_first_failure(file, capsys):
    """May has no records; what was released needs none."""
    assert main(["run", str(file), "--for", "2025-03"]) == 0
    (file.parent / "visits" / "2025-03.parquet").unlink()
    assert main(["run", str(file), "--for", "2025-03"]) == 0
    capsys.readouterr()
    assert main(["run", str(file), "--due"]) == 2
    printed = capsys.readouterr()
    assert "2025-04" in printed.out and "visits/2025-05.parquet" in printed.err
    assert charges(file) == 6


def test_an_edited_plan_is_refused(file, capsys):
    assert main(["run", str(file), "--for", "2025-03"]) == 0
    file.write_text(file.read_text().replace("bins = 100", "bins = 101"))
    assert main(["run", str(file), "--for", "2025-03", "--dry-run"]) == 3
    assert main(["run", str(file), "--for", "2025-03"]) == 3
    assert charges(file) == 3
    assert main(["run", str(file), "--for", "2025-03", "--allow-repeat", "costs"]) == 0
    assert charges(file) == 4


def test_what_is_wrong(file, capsys):
    file.write_text(REPORT.replace("max_contributions", "max_contribution"))
    assert main(["run", str(file), "--for", "2025-03"]) == 2
    assert capsys.readouterr().err == (
        "report.toml has 1 error. Nothing was read, charged or written.\n\n"
        "  line 9, sources.visits.max_contribution: unknown key.\n"
        "           Hint: did you mean max_contributions?\n"
    )
    for arguments in ([], ["--for", "2025-13"], ["--for", "march"]):
        assert main(["run", str(file), *arguments]) == 2
        assert capsys.readouterr().err.startswith("dptree: --for")
    assert main(["run", str(file.parent / "none.toml")]) == 2
    assert "\n  cannot be read: it does not exist" in capsys.readouterr().err
    (file.parent / "budget.sqlite").unlink()
    file.write_text(REPORT)
    assert main(["run", str(file), "--for", "2025-03"]) == 2
    assert "create it with `dptree ledger create`" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["run", str(file), "--for", "2025-03", "--due"])
    assert stopped.value.code == 2
