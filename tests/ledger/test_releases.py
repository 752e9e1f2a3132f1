"""Tables that are released together, and releases as a new user would try them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.errors import (
    ArgumentError,
    CallError,
    InsufficientBudgetError,
    LedgerError,
)
from tests.helpers_cases import each
from tests.helpers_ledger import create

NOTE = "2026-03"
PROTECTED = {"privacy_unit": "person", "max_contributions": 2}
PLACES = dpt.datasets.clinics()[["region", "district"]].drop_duplicates()
DOMAIN = dpt.Domain.from_frame(PLACES, by=["region", "district"])
COUNTS = dpt.plan(DOMAIN, rho=0.1, **PROTECTED)
COSTS = dpt.plan_means(DOMAIN, columns="cost", bounds=(0, 500), rho=0.2, **PROTECTED)
SMALL = dpt.plan(dpt.Tree.from_branching([2]), epsilon=0.25)


@pytest.fixture
def visits():
    frame = dpt.datasets.clinic_visits(2_000)
    return frame.assign(cost=np.arange(len(frame)) % 500)


@pytest.fixture
def no_noise(monkeypatch):
    """Fail if noise is drawn, or records are chosen."""

    def fail(size):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(os, "urandom", fail)


def test_several_tables_are_charged_together(ledger, patients, visits):
    tables = patients.release({"counts": COUNTS, "costs": COSTS}, visits, note=NOTE)
    assert list(tables) == ["counts", "costs"]
    charged = [tables[name].attrs["dp"]["ledger"] for name in tables]
    assert [each["charge"] for each in charged] == [3, 4]
    assert ledger.head.number == 6  # two charges, and their tables
    assert patients.spent.rho == 0.3
    frame = ledger.to_frame()
    assert list(frame["name"]) == ["counts", "costs"] and frame["released"].all()
    assert list(frame["what"]) == ["counts by region, district", "means of cost, counts by region, district"]
    assert ledger.verify(charged[0]["digest"]) == ledger.head


def test_counts_of_rows_and_of_units_are_charged_together(ledger, patients, visits):
    """Those of one table by what they cost jointly, which is less than the sum of both."""
    people = dpt.plan_units(DOMAIN, rho=0.1, privacy_unit="person", max_nodes={"region": 1, "district": 2})
    both = dpt.plan_agg(
        DOMAIN, {"visits": "count", "people": "units"}, rho=0.2, max_nodes=people.max_nodes[-1], **PROTECTED
    )
    plans = {"visits": COUNTS, "people": people, "both": both}
    tables = patients.release(plans, visits, note=NOTE)
    assert [tables[name].attrs["dp"]["ledger"]["charge"] for name in plans] == [3, 4, 5]
    assert patients.spent.amount.loss == sum(each.losses.in_rho[0] for each in plans.values())
    assert patients.spent.rho == 0.4 and sum(each.rho for each in both.plans.values()) > 0.2
    assert list(ledger.to_frame()["what"]) == [
        "counts by region, district", "distinct person by region, district",
        "counts, distinct person by region, district",
    ]  # fmt: skip
    with pytest.warns(dpt.DPTreeWarning, match="was released before"):
        again = patients.release(plans, visits, note=NOTE)
    for name in plans:
        pd.testing.assert_frame_equal(again[name], tables[name])
    assert patients.n_charges == 3


def test_a_cap_that_is_reached_in_the_middle(ledger, patients, visits, no_noise):
    third = dpt.plan(DOMAIN, rho=0.8, **PROTECTED)
    with pytest.raises(InsufficientBudgetError, match="the release 'third', after 2 others in the same call"):
        patients.release({"counts": COUNTS, "costs": COSTS, "third": third}, "never read", note=NOTE)
    assert patients.n_charges == 0 and ledger.head.number == 2


def test_records_that_cannot_be_read_cost_nothing(patients, visits):
    with pytest.raises(ArgumentError):
        patients.release({"counts": COUNTS, "costs": COSTS}, visits.drop(columns="cost"), note=NOTE)
    assert patients.n_charges == 0


def test_data_of_each_plan(patients, visits):
    january, february = visits[:1000], visits[1000:]
    again = {"january": COUNTS, "february": COUNTS}
    tables = patients.release(again, {"january": january, "february": february}, note=NOTE)
    assert list(tables) == ["january", "february"] and patients.n_charges == 2


def test_arrays_and_datasets(tmp_path):
    cells = xr.Dataset(
        {name: (["city", "age"], np.full((3, 3), 900)) for name in ("visits", "deaths")},
        coords={"city": ["Fresno", "Oakland", "Seattle"]},
    )
    account = create(tmp_path, epsilon=2.0, privacy_unit=dpt.ROWS)["patients"]
    one = cells["visits"].dp.plan(["city"], epsilon=0.5)
    both = cells.dp.plan(["city"], epsilon=1.0)
    tables = account.release(
        {"one": one, "both": both, "leaves": SMALL},
        {"one": cells["visits"], "both": cells, "leaves": np.array([3, 4])},
        note=NOTE,
    )
    assert isinstance(tables["one"], xr.DataTree) and isinstance(tables["leaves"], pd.DataFrame)
    assert account.spent.epsilon == 1.75
    distribution = cells["visits"].dp.plan_distribution("age", edges=[0, 18, 40, 65], epsilon=0.1)
    with pytest.raises(ArgumentError, match=r"array.dp.cdf\(dim, plan=plan\)"):
        account.release({"ages": distribution}, cells["visits"], note=NOTE)


def test_several_accounts(ledger, patients, visits):
    rows = ledger.add_account("rows", epsilon=1.0, privacy_unit=dpt.ROWS)
    of_rows = dpt.plan(DOMAIN, epsilon=0.5)
    plans = {"patients": {"counts": COUNTS, "costs": COSTS}, "rows": {"counts": of_rows}}
    tables = ledger.release(plans, visits, note=NOTE)
    names = {name: list(each) for name, each in tables.items()}
    assert names == {"patients": ["counts", "costs"], "rows": ["counts"]}
    assert (patients.spent.rho, rows.spent.epsilon) == (0.3, 0.5)
    assert ledger.to_frame()["released"].all()
    head = ledger.head
    more = {"patients": {"counts": COUNTS}, "rows": {"counts": dpt.plan(DOMAIN, epsilon=0.6)}}
    with pytest.raises(InsufficientBudgetError, match=r"The account 'rows' has 0\.5 of epsilon=1"):
        ledger.release(more, visits, note="next")
    assert ledger.head == head
    by_account = {"patients": {"counts": visits}, "rows": visits}
    ledger.release({"patients": {"counts": COUNTS}, "rows": {"counts": of_rows}}, by_account, note="next")
    assert not rows.remaining


@each(
    ("plans", "data", "argument"),
    [
        ({}, None, "plans"),
        ([COUNTS], None, "plans"),
        (COUNTS, None, "plans"),
        ({"counts": "plan.json"}, None, "plans"),
        ({"counts": COUNTS}, {"costs": 1}, "data"),
        ({"counts": COUNTS}, {"counts": 1, "costs": 1}, "data"),
        ({"counts": COUNTS}, {}, "data"),
    ],
)
def test_arguments_of_releases(ledger, patients, plans, data, argument):
    with pytest.raises(ArgumentError) as error:
        patients.release(plans, data, note=NOTE)
    assert error.value.argument == argument
    with pytest.raises(ArgumentError):
        ledger.release({"patients": plans}, {"patients": data}, note=NOTE)
    with pytest.raises(ArgumentError, match="`account` is unknown: 'people'"):
        ledger.release({"people": plans}, data, note=NOTE)
    with pytest.raises(CallError, match="`note` must be given to release"):
        patients.release({"counts": COUNTS}, data)
    with pytest.raises(ArgumentError, match="`note`"):
        patients.release({"counts": COUNTS}, "never read", note=None)
    assert patients.n_charges == 0


@pytest.mark.parametrize(
    ("currency", "plan", "loss"),
    [
        ("epsilon", {"epsilon": 0.1}, "1/10"),
        ("rho", {"rho": 0.1}, "1/10"),
        ("rho", {"epsilon": 0.1}, None),
        ("epsilon", {"rho": 0.1, "mechanism": "laplace"}, None),
    ],
)
def test_currencies(tmp_path, visits, currency, plan, loss):
    account = create(tmp_path, **{currency: 1.0}, privacy_unit=dpt.ROWS)["patients"]
    plan = dpt.plan(DOMAIN, **plan)
    plan.release(visits, ledger=account, note=NOTE)
    exact, delta = plan.losses.in_epsilon if currency == "epsilon" else plan.losses.in_rho
    assert account.spent.amount.loss == exact and account.spent.amount.delta == delta
    assert loss is None or str(exact) == loss


def test_gaussian_noise_has_no_epsilon(tmp_path, visits):
    account = create(tmp_path, epsilon=1.0, privacy_unit=dpt.ROWS)["patients"]
    with pytest.raises(LedgerError, match="adds up epsilon, and the plan states its loss only in rho"):
        visits.dp.tree_counts(
            ["region"], domain="observed", rho=0.1, mechanism="gaussian", ledger=account, note=NOTE
        )
    assert account.n_charges == 0


def test_a_ledger_is_not_an_account(ledger, visits):
    with pytest.raises(ArgumentError, match="`ledger` must be an account of a ledger, not a Ledger"):
        COUNTS.release(visits, ledger=ledger, note=NOTE)


SCRIPT = """
import pandas_dptree as dpt
visits = dpt.datasets.clinic_visits(2_000)
account = dpt.Ledger.open("budget.sqlite")["patients"]
options = {"rho": 0.1, "domain": "observed", "privacy_unit": "person", "max_contributions": 2}
counts = visits.dp.tree_counts(["region"], **options, ledger=account, note="2026-03")
counts.to_csv("counts.csv")
"""


def test_a_script_that_runs_twice_spends_once(tmp_path, monkeypatch):
    ledger = create(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(SCRIPT, {})
    first = (tmp_path / "counts.csv").read_bytes()
    with pytest.warns(dpt.DPTreeWarning, match=r"was released before, as requested at 20.* \(charge 3\)"):
        exec(SCRIPT, {})
    assert ledger["patients"].spent.rho == 0.1 and (tmp_path / "counts.csv").read_bytes() == first


@pytest.mark.slow
def test_a_script_that_is_started_twice_spends_once(tmp_path):
    ledger = create(tmp_path)
    env = {**os.environ, "PYTHONPATH": str(Path(dpt.__file__).parents[1])}
    runs = [
        subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, env=env, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert [run.returncode for run in runs] == [0, 0]
    assert "was released before, as requested at 20" in runs[1].stderr and not runs[0].stderr
    assert ledger["patients"].spent.rho == 0.1
