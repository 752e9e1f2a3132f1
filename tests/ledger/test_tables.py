"""Released tables that a ledger keeps, and returns when the release is repeated."""

import json
import os
import shutil
import sqlite3
import tempfile
import warnings
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.errors import (
    ArgumentError,
    ChargedError,
    InsufficientBudgetError,
    LedgerError,
    RepeatedReleaseError,
)
from pandas_dptree.ledger import tables
from pandas_dptree.ledger.tables import kept_output
from pandas_dptree.output.distribution import Distribution
from pandas_dptree.output.table_digest import stated_digest, table_digest
from pandas_dptree.plans import measurement
from tests.helpers_cases import each
from tests.helpers_kinds import DOMAIN, PLANS, RECORDS
from tests.helpers_ledger import change, create, edited, forked, killed_at, problems

NOTE = "2026-03"
ROWS = {"account": "patients", "privacy_unit": dpt.ROWS, "epsilon": 100.0, "delta": 0.1}


def same(one, other):
    """Whether two released objects are equal, with types and attributes."""
    if isinstance(one, xr.DataTree):
        xr.testing.assert_identical(one, other)
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
        assert one.attrs == other.attrs
    else:
        assert type(one) is type(other) is Distribution
        assert repr(one) == repr(other) and one.attrs == other.attrs
        for field in ("estimates", "totals", "cumulative"):
            assert np.array_equal(getattr(one, field), getattr(other, field))
        assert np.array_equal(one.bins.edges, other.bins.edges)
        assert np.array_equal(one.strategy.noise_scales, other.strategy.noise_scales)
        assert one.groups is other.groups is None or same(one.groups, other.groups)
    return True


@pytest.fixture
def account(tmp_path):
    with create(tmp_path, **ROWS) as ledger:
        yield ledger["patients"]


def unread(*_):
    raise AssertionError("records were read")


@pytest.fixture
def plan():
    return dpt.plan(DOMAIN, epsilon=1.0)


def again(call):
    with pytest.warns(dpt.DPTreeWarning, match=r"was released before, as requested at 20.*charge 3") as seen:
        table = call()
    assert same(seen[0].message.released, table)
    return table


@pytest.mark.parametrize("name", PLANS)
def test_a_repeated_release_returns_what_was_kept(tmp_path, name, monkeypatch):
    plan = PLANS[name]
    terms = {"privacy_unit": plan.privacy_unit or dpt.ROWS, "neighbors": plan.neighbors, "delta": 0.1}
    ledger = create(tmp_path, **{("rho" if plan.rho else "epsilon"): 100.0}, **terms)
    first = plan.release(RECORDS, ledger=ledger["patients"], note=NOTE)
    head, spent = ledger.head, ledger["patients"].spent
    ledger.close()
    monkeypatch.setattr(os, "urandom", unread)
    opened = dpt.Ledger.open(ledger.path)
    second = again(lambda: plan.release(RECORDS.iloc[:0], ledger=opened["patients"], note=f" {NOTE} "))
    assert same(first, second) and same(first, opened.table(3))
    assert opened.head == head == opened.verify() and opened["patients"].spent == spent
    assert opened.to_frame()["table"].tolist() == [stated_digest(second)] == [table_digest(second)]


def test_a_table_of_an_array_comes_back_as_one(account):
    cells = xr.DataArray(np.full((3, 3), 900), dims=["city", "age"], coords={"city": list("FOS")})
    plan = cells.dp.plan(["city"], epsilon=0.5)
    options = {"ledger": account, "note": NOTE}
    first = cells.dp.release(plan, **options)
    assert same(first, again(lambda: cells.dp.release(plan, **options)))
    records = pd.DataFrame({"city": ["F"]})
    with pytest.raises(RepeatedReleaseError, match="as a DataTree of another form or other dimensions"):
        plan.release(records, **options)
    plan.release(records, **options, name="records")
    for other in (cells.rename(age="sex"), cells.isel(age=slice(2)), cells.isel(age=0, drop=True)):
        with pytest.raises(RepeatedReleaseError, match="other dimensions: charge 3"):
            other.dp.release(plan, **options)
    assert account.n_charges == 2


def test_trees_of_several_variables_come_back_for_the_same_dimensions(account):
    cells = xr.Dataset(
        {"visits": (["city", "age"], np.full((2, 2), 900)), "deaths": (["city"], np.full(2, 90))},
        coords={"city": ["F", "O"], "age": [1, 2]},
    )
    plan, options = cells.dp.plan(["city"], epsilon=0.5), {"ledger": account, "note": NOTE}
    first = cells.dp.release(plan, **options)
    assert same(first, again(lambda: cells.dp.release(plan, **options)))
    for other in (cells.assign_coords(age=[1, 3]), cells.isel(age=0, drop=True)):
        with pytest.raises(RepeatedReleaseError, match="other dimensions: charge 3"):
            other.dp.release(plan, **options)


def test_linear_estimates_are_kept(account, plan):
    table = plan.release(RECORDS, ledger=account, note=NOTE)
    with account._store.reading() as connection:
        kept = kept_output(connection, account._store.path, 3)
    linear = kept.linear
    assert dpt.Plan.from_dict(json.loads(kept.plan), DOMAIN).digest == plan.digest
    assert list(linear) == ["count"] and [len(each) for each in linear["count"]] == [*plan.tree.level_sizes]
    for above, below in zip(linear["count"][:-1], linear["count"][1:], strict=True):
        assert above.sum() == pytest.approx(below.sum())
    assert abs(linear["count"][0][0] - table["count"].iloc[0]) < 1
    plan = dpt.plan(DOMAIN, epsilon=1.0, consistency="linear")
    plan.release(RECORDS, ledger=account, note="linear")
    with account._store.reading() as connection:
        assert kept_output(connection, account._store.path, 5).linear == {}


def test_what_is_new_of_several_is_charged_alone(account, plan):
    other = dpt.plan(DOMAIN, epsilon=2.0)
    first = account.release({"a": plan}, RECORDS, note=NOTE)
    with pytest.warns(dpt.DPTreeWarning, match="^The table 'a' was released before"):
        both = account.release({"b": other, "a": plan}, RECORDS, note=NOTE)
    assert list(both) == ["b", "a"] and same(both["a"], first["a"])
    assert account.spent.epsilon == 3.0 and account.n_charges == 2
    ledger = dpt.Ledger.open(account._store.path)
    with pytest.warns(dpt.DPTreeWarning, match="released before"):
        again = ledger.release({"patients": {"a": plan, "b": other}}, RECORDS, note=NOTE)
    assert same(again["patients"]["b"], both["b"]) and account.n_charges == 2


def test_names_and_repeats_make_new_tables(account, plan):
    options = {"ledger": account, "note": NOTE}
    plan.release(RECORDS, **options)
    plan.release(RECORDS, **options, name="second")
    third = plan.release(RECORDS, **options, allow_repeat=True)
    dpt.plan(DOMAIN, epsilon=2.0).release(RECORDS, **options, allow_repeat=True)
    assert account.n_charges == 4
    with pytest.warns(dpt.DPTreeWarning, match="charge 7"):
        assert same(plan.release(RECORDS, **options), third)
    for name, text in {"cafe\u0301": "caf\u00e9", " second ": "second"}.items():  # one name
        plan.release(RECORDS, **options, name=name, allow_repeat=True)
        with pytest.warns(dpt.DPTreeWarning, match="was released before"):
            plan.release(RECORDS, **options, name=text)
    for name in ("", "a\u200b", "a\nb", "x" * 201):  # names that would be stored like others
        with pytest.raises(ArgumentError, match="`name` "):
            plan.release(RECORDS, **options, name=name)
    for name in (3, b"x"):
        with pytest.raises(ArgumentError, match="`name` must be text"):
            plan.release(RECORDS, **options, name=name)
    with pytest.raises(ArgumentError, match="`name` has no meaning without `ledger`"):
        plan.release(RECORDS, name="x")


def test_a_ledger_without_tables(tmp_path, plan):
    ledger = create(tmp_path, **ROWS, keep_tables=False)
    plan.release(RECORDS, ledger=ledger["patients"], note=NOTE)
    assert ledger.head.number == 3 and ledger.to_frame()["released"].all()
    with pytest.raises(RepeatedReleaseError, match="and was released") as error:
        plan.release(RECORDS, ledger=ledger["patients"], note=NOTE)
    assert error.value.hint.startswith("use the table that was released then")
    with pytest.raises(ArgumentError, match="`charge` is not the number of a charge whose table was kept: 3"):
        ledger.table(3)
    ledger.verify()
    with pytest.raises(ArgumentError, match="`keep_tables` must be True or False, not 0"):
        create(tmp_path, "other.sqlite", **ROWS, keep_tables=0)


def test_large_tables_are_kept_beside_the_ledger(tmp_path, plan, monkeypatch):
    monkeypatch.setattr(tables, "MOST_INSIDE", 100)
    ledger = create(tmp_path, **ROWS)
    first = plan.release(RECORDS, ledger=ledger["patients"], note=NOTE)
    folder = Path(f"{ledger.path}-tables")
    [file] = folder.iterdir()
    time = ledger.to_frame()["time"][0].timestamp()
    assert file.stat().st_mtime == folder.stat().st_mtime == time
    ledger.verify()
    assert same(first, again(lambda: plan.release(RECORDS, ledger=ledger["patients"], note=NOTE)))
    whole = file.read_bytes()
    for damage, fact in ((whole[:-1], "its bytes are not"), (None, "cannot be read")):
        file.unlink() if damage is None else file.write_bytes(damage)
        with pytest.raises(LedgerError, match=f"charge 3 cannot be read: its .*{fact.removeprefix('its ')}"):
            plan.release(RECORDS, ledger=ledger["patients"], note=NOTE)
        with pytest.raises(dpt.LedgerIntegrityError, match="the table of charge 3: its"):
            ledger.verify()
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("in the way")
    with pytest.raises(dpt.DPTreeWarning, match=r"beside the ledger cannot be written.*charge 5") as caught:
        plan.release(RECORDS, ledger=ledger["patients"], note=NOTE, allow_repeat=True)
    assert isinstance(caught.value.released, pd.DataFrame)


def test_changes_of_tables_are_found(tmp_path, plan):
    with create(tmp_path, **ROWS) as ledger:
        plan.release(RECORDS, ledger=ledger["patients"], note=NOTE)
    assert ledger.head.number == 4
    for statement, fact in {
        "UPDATE kept SET data = x'00'": "the table of charge 3: its bytes are not those that were kept",
        "UPDATE kept SET data = NULL": "the table of charge 3: its file",
        "UPDATE kept SET entry = 2": "the table of charge 3 is not that of an entry",
        "UPDATE kept SET charge = 1": "the table of charge 3 is missing",
        "DELETE FROM kept": "the table of charge 3 is missing",
        change(4, stored="0" * 64): "entry 4 does not have the digest",
        change(4, table="x"): "entry 4 is not one that a ledger writes",
        change(4, time="2026-03-01T00:00:00Z"): "entry 4 is not one that a ledger writes",
        change(4, charge=1): "is a table of entry 1, which is not a charge without one",
    }.items():
        assert fact in problems(edited(ledger, tmp_path, statement))


def test_a_ledger_of_the_first_format_is_used_on(tmp_path, plan):
    path = shutil.copy(Path(__file__).parents[1] / "stored_files" / "ledger.sqlite", tmp_path / "b.sqlite")
    ledger = dpt.Ledger.open(path)
    ledger.add_account("more", epsilon=9.0, privacy_unit=dpt.ROWS)
    head = ledger.verify()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    first = plan.release(RECORDS, ledger=ledger["more"], note=NOTE)
    assert ledger.verify(head).number == head.number + 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert same(first, plan.release(RECORDS, ledger=ledger["more"], note=NOTE))
    new = create(tmp_path, **ROWS)
    query = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(new.path)) as fresh:
        assert old.execute(query).fetchall() == fresh.execute(query).fetchall()


def test_a_failure_after_the_charge_says_what_was_charged(account, plan, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("Ann")

    monkeypatch.setattr("pandas_dptree.plans.measurement.release_frame", fail)
    with pytest.raises(ChargedError, match=r"account 'patients', charge 3, note '2026-03'") as error:
        plan.release(RECORDS, ledger=account, note=NOTE)
    assert [each.number for each in error.value.charges] == [3] and "Ann" not in str(error.value)
    assert isinstance(error.value.__cause__, MemoryError)
    with pytest.raises(RepeatedReleaseError, match="no table was kept: the process may still be running"):
        plan.release(RECORDS, ledger=account, note=NOTE)
    assert account.n_charges == 1


@each("currency, loss", [("epsilon", {"epsilon": 0.5}), ("rho", {"epsilon": 0.5}), ("rho", {"rho": 0.05})])
def test_quantiles_of_zoned_times_are_charged_and_kept_in_either_currency(tmp_path, currency, loss):
    records = RECORDS.assign(when=RECORDS["date"].dt.tz_localize("Europe/Berlin"))
    bounds = pd.to_datetime(["2023-12-01", "2026-03-29"]).tz_localize("Europe/Berlin")
    ask = partial(records.dp.quantiles, "when", [0.25, 0.5, 0.75], bounds=bounds, **loss)
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    with create(folder, account="patients", privacy_unit=dpt.ROWS, **{currency: 0.6}) as ledger:
        first = ask(ledger=ledger["patients"], note=NOTE)
        assert isinstance(first["value"].dtype, pd.DatetimeTZDtype)
        assert same(first, again(lambda: ask(ledger=ledger["patients"], note=NOTE)))
        plan = records.dp.plan_quantiles("when", [0.25, 0.5, 0.75], bounds=bounds, **loss)
        spent = getattr(plan.losses, f"in_{currency}")[0]
        assert ledger["patients"].spent.amount.loss == spent
        if currency == "epsilon":
            with pytest.raises(InsufficientBudgetError):
                ask(ledger=ledger["patients"], note="more")


def test_a_failure_between_the_charge_and_the_draw_is_charged(account, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("Ann")

    plan = PLANS["QuantilePlan"]
    monkeypatch.setattr("pandas_dptree.plans.quantiles.draw_quantiles", fail)
    with pytest.raises(ChargedError, match=r"account 'patients', charge 3, note '2026-03'") as error:
        plan.release(RECORDS, ledger=account, note=NOTE)
    assert "Ann" not in str(error.value)
    monkeypatch.undo()
    with pytest.raises(RepeatedReleaseError, match="no table was kept: the process may still be running"):
        plan.release(RECORDS, ledger=account, note=NOTE)
    plan.release(RECORDS, ledger=account, note=NOTE, allow_repeat=True)
    assert account.n_charges == 2


def test_a_failure_of_the_second_table_keeps_the_first(account, plan, monkeypatch):
    made = measurement.release_frame

    def fail(*arguments):
        monkeypatch.setattr(measurement, "release_frame", lambda *_: 1 / 0)
        return made(*arguments)

    monkeypatch.setattr(measurement, "release_frame", fail)
    with pytest.raises(ChargedError, match=r"charge 4, note .*ZeroDivisionError") as error:
        account.release({"a": plan, "b": plan}, RECORDS, note=NOTE)
    assert [each.number for each in error.value.charges] == [4]
    monkeypatch.undo()
    again(lambda: account.release({"a": plan}, RECORDS, note=NOTE)["a"])
    with pytest.raises(RepeatedReleaseError, match="no table was kept"):
        account.release({"a": plan, "b": plan}, RECORDS, note=NOTE)
    assert account.n_charges == 2


def test_a_failure_before_the_charge_costs_nothing(account, plan):
    with pytest.raises(ArgumentError):
        plan.release(RECORDS.drop(columns="region"), ledger=account, note=NOTE)
    assert account.n_charges == 0


@pytest.mark.filterwarnings(
    "ignore:.*fork.*:DeprecationWarning", "ignore:.*released before:pandas_dptree.DPTreeWarning"
)
@pytest.mark.parametrize(
    "most_inside", [2**20, pytest.param(0, marks=pytest.mark.slow)], ids=["inside", "beside"]
)
def test_a_release_killed_at_every_statement_is_repeated(tmp_path, plan, monkeypatch, most_inside):
    """The second run returns the table of the first, or releases it, or says that one may be missing."""
    monkeypatch.setattr(tables, "MOST_INSIDE", most_inside)
    created = create(tmp_path, **ROWS)
    created.close()
    found = []
    for statement in range(1, 100):
        folder = tmp_path / str(statement)
        folder.mkdir()
        shutil.copy(created.path, folder / "budget.sqlite")
        ledger = dpt.Ledger.open(folder / "budget.sqlite")
        account = ledger["patients"]

        def run(account=account, statement=statement, folder=folder):
            with account._store.reading() as connection:
                killed_at(statement + 1, connection)
            table = plan.release(RECORDS, ledger=account, note=NOTE)
            table.to_pickle(folder / "table")

        status = forked(run)
        charged = account.n_charges
        try:
            table = plan.release(RECORDS, ledger=account, note=NOTE)
        except RepeatedReleaseError as error:
            assert "no table was kept" in str(error) and not error.released
            found.append("missing")
        else:
            found.append("kept" if charged else "new")
            assert same(table, ledger.table(3))
            assert not (folder / "table").exists() or same(table, pd.read_pickle(folder / "table"))
        assert account.n_charges == 1
        ledger.verify()
        ledger.close()
        shutil.rmtree(folder)
        if status == 0:
            break
    assert list(dict.fromkeys(found)) == ["new", "missing", "kept"] and len(found) > 15


@pytest.mark.parametrize("error", [MemoryError, KeyError])
def test_whatever_fails_while_a_table_is_kept_loses_it_not(account, plan, monkeypatch, error):
    def fail(*_):
        raise error("Ann")

    monkeypatch.setattr("pandas_dptree.ledger.accounts.packed", fail)
    with pytest.raises(
        dpt.DPTreeWarning, match=f"because of a {error.__name__}.*charge 3.* save it now"
    ) as caught:
        plan.release(RECORDS, ledger=account, note=NOTE)
    assert isinstance(caught.value.released, pd.DataFrame) and "Ann" not in str(caught.value)
    assert account.n_charges == 1
