"""The programmes of docs/examples run from nothing, and again from what they left."""

import importlib.util
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree import datasets

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
for package in ("openpyxl", "polars", "pyarrow", "scipy.fft"):
    pytest.importorskip(package)  # here, so that no test takes the time of it
pytestmark = pytest.mark.filterwarnings("ignore::pandas_dptree.DPTreeWarning")
SIZES = [5000, pytest.param(None, marks=pytest.mark.slow)]
"""Numbers of people; None for those of the example."""


def example(name, monkeypatch, size):
    """Import an example as a module, which simulates fewer people."""
    if size is not None:
        simulated = datasets.web_visits
        monkeypatch.setattr(datasets, "web_visits", lambda **_: simulated(size))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / name / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names(folder):
    return {path.name for path in folder.iterdir()}


def charges(folder):
    with dpt.Ledger.open(folder / "budget.sqlite") as ledger:
        return len(ledger.to_frame())


@pytest.mark.slow
def test_clinics(tmp_path, capsys, monkeypatch):
    run = example("clinics", monkeypatch, None)
    run.main(tmp_path)
    printed = capsys.readouterr().out
    assert "exactly the budget" in printed and "11 more runs" in printed
    visits = datasets.clinic_visits(n_people=200_000)
    for month in run.MONTHS:
        folder = tmp_path / "published" / month
        tables = {
            f"{table}.{kind}"
            for table in ("visits", "visitors", "care", "costs")
            for kind in ("csv", "parquet", "xlsx")
        }
        assert {*tables, "index.html"} <= names(folder)
        counts = dpt.read_file(folder / "visits.parquet")
        true = (visits["date"].dt.strftime("%Y-%m") == month).sum()
        error = 6 * counts["std_error"][0]
        assert 0.8 * true - error < counts["count"][0] < true + error  # at most two rows of each person
        people = dpt.read_file(folder / "visitors.parquet")
        true = visits.loc[visits["date"].dt.strftime("%Y-%m") == month, "person"].nunique()
        assert abs(people["count"][0] - true) < 6 * people["std_error"][0]  # nobody is missing from the total
    assert charges(tmp_path) == 4 * len(run.MONTHS)
    run.main(tmp_path)
    assert charges(tmp_path) == 4 * len(run.MONTHS)


@pytest.mark.parametrize("size", SIZES)
def test_web_logs(tmp_path, capsys, monkeypatch, size):
    run = example("weblogs", monkeypatch, size)
    run.main(tmp_path)
    printed = capsys.readouterr().out
    assert "exactly the budget" in printed and "25 more runs" in printed and charges(tmp_path) == 2
    folder = tmp_path / "published" / "2025-W14"
    assert {"pages.parquet", "pages.xlsx", "hours.parquet", "hours.xlsx", "index.html"} <= names(folder)
    shown = set(dpt.read_file(folder / "pages.parquet")["path"].dropna())
    assert "/articles/1" in shown and not any(path.startswith("/account") for path in shown)
    assert len(dpt.read_file(folder / "hours.parquet")) == 1 + 7 + 7 * 24


def test_census(tmp_path, capsys, monkeypatch):
    run = example("census", monkeypatch, None)
    monkeypatch.setattr(run, "persons", partial(run.persons, n=4000))
    run.main(tmp_path)
    assert "exactly the budget" in capsys.readouterr().out
    assert {"persons.parquet", "persons.xlsx", "index.html"} <= names(tmp_path / "published")
    table = dpt.read_file(tmp_path / "published" / "persons.parquet")
    people = pd.read_parquet(tmp_path / "persons.parquet")
    states = table.dp.margin(place="state")["count"]
    assert (states == people.groupby("state").size()).all()
    by_age = table.dp.margin(place="state", age="age_year", sex="sex")["count"]
    assert (by_age.groupby("state").sum() == states).all()
    assert (table.dp.margin(place="county")["count"].groupby("state").sum() == states).all()
    empty = pd.read_parquet(tmp_path / "places.parquet").query("uninhabited")["tract"]
    assert (table.dp.margin(place="tract")["count"][lambda each: each.index.isin(empty, "tract")] == 0).all()
