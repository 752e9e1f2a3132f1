"""Programmes from files and mappings, what is due, and what a run would do."""
# ruff: noqa: E501

import tomllib
from datetime import UTC, date, datetime

import pytest

import pandas_dptree as dpt
from tests.helpers_toml import REPORT, make_files


@pytest.fixture
def programme(tmp_path):
    make_files(tmp_path)
    (tmp_path / "report.toml").write_text(REPORT)
    return dpt.Programme.from_file(tmp_path / "report.toml")


def test_a_mapping_is_the_same(programme, tmp_path):
    same = dpt.Programme.from_dict(tomllib.loads(REPORT), folder=tmp_path)
    tables = same.check("2025-03").tables
    for name, table in programme.check("2025-03").tables.items():
        assert table.plan.digest == tables[name].plan.digest and tables[name].line is None


def test_what_a_run_would_do(programme):
    text = programme.describe("2025-03")
    assert text.splitlines()[0] == (
        "report.toml for month 2025-03. Nothing is read from visits/2025-03.parquet but column names and types."
    )
    for part in (
        "visits   counts by region, district, clinic (7 rows)",
        "rho 0.01    plan ",
        "standard error: total ",
        "care     means of age and cost by region, district (5 rows)",
        "costs    distribution of cost, 100 bins from 0 to 200",
        "Together rho 0.02 (exactly the budget), protecting each person with at most 2 rows, add_remove.",
        "Account patients of budget.sqlite, note 2025-03: not yet charged.\n"
        "         now left 0.24 of rho 0.24    after this run 0.22, which is 11 more runs of this kind.",
        "Would write  published/2025-03/visits.{parquet,csv,xlsx}  care.{parquet,csv,xlsx}  "
        "costs.{parquet,csv,xlsx}  index.html",
        "visits.change compares with published/2025-02 (not found: left out). 1 note:\n",
        "line 21: at a standard error",
        'Hint: down_to = "district", or a larger share.',
        "Dry run: nothing was read, charged or written.",
    ):
        assert part in text, part


def test_the_account_refuses(programme):
    folder = programme.path.parent
    plan = programme.check("2025-03").tables["visits"].plan
    account = dpt.Ledger.open(folder / "budget.sqlite")["patients"]
    for month in range(24):
        options = {"allow_repeat": False, "requested": datetime(2025, 1, 1, tzinfo=UTC)}
        account.charge({"visits": plan}, f"early {month}", **options)
    assert "a run would be refused" in programme.describe("2025-03")


def test_what_is_due(programme):
    def due(of=programme):
        return [each.text for each in of.due(date(2025, 5, 31))]

    with pytest.raises(dpt.ArgumentError, match="no period is released yet"):
        due()
    folder = programme.path.parent
    (folder / "report.toml").write_text('first = "2025-02"\n' + REPORT)
    assert due(dpt.Programme.from_file(folder / "report.toml")) == ["2025-02", "2025-03", "2025-04"]
    checked = programme.check("2025-03")
    for name, table in checked.tables.items():
        records = dpt.datasets.clinic_visits(50)[["region", "district", "clinic", "person", "age", "cost"]]
        table.plan.release(records, ledger=checked.account, note="2025-03", name=name)
    assert due() == ["2025-04"]


def test_without_periods(tmp_path):
    once = dpt.Programme.from_dict({}, folder=tmp_path)
    for call in (once.due, lambda: once.periods("2025-03")):
        with pytest.raises(dpt.ArgumentError, match="has no periods"):
            call()
    with pytest.raises(dpt.ProgrammeError, match="lacks each"):
        once.check("2025-03")


def test_the_errors_of_means(programme):
    """A mean of 500 rows in the middle of the bounds has the stated error; one of too few rows is blank."""
    keys = programme.check("2025-03").hierarchies["visits"].domain.keys(3)
    plan = programme.check("2025-03").tables["care"].plan
    places = keys.iloc[[0] * 500 + [-1] * 100]
    records = places.assign(person=range(600), age=50, cost=250.0)
    table = plan.release(records)
    [line] = [line for line in programme.describe("2025-03").splitlines() if "Means of fewer" in line]
    stated = dict(part.split() for part in line.partition("rows: ")[2].partition(". ")[0].split(", "))
    rows = table[table["level"].eq("district")].set_index("district")
    for column, error in stated.items():
        released = rows.loc["Mill", f"{column}_std_error"] * rows.loc["Mill", "count"]
        assert released == pytest.approx(float(error) * 500, rel=0.2)
    least = int(line.split("fewer than about ")[1].split()[0])
    assert 100 < least < 500 and rows["cost"].isna().tolist() == [False, True]
