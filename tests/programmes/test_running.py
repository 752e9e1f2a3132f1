"""A run reads, charges, draws, keeps and writes; the next one goes on from what is on disk."""

import contextlib
import io
import json
import os
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree import verify
from pandas_dptree.cli.statuses import Status, status_of
from pandas_dptree.errors import (
    ArgumentError,
    ChargedError,
    DPTreeError,
    InsufficientBudgetError,
    RefusedReleaseError,
    RepeatedReleaseError,
)
from pandas_dptree.ledger.accounts import Account
from pandas_dptree.output.files import read_file
from pandas_dptree.programmes import running
from pandas_dptree.programmes.describing import described
from pandas_dptree.programmes.keeping import locked, shelf_of
from pandas_dptree.programmes.outputs import as_tree
from pandas_dptree.programmes.problems import ProgrammeError
from tests.helpers_programmes import counts, is_empty, records


def failed(visits, programme, error, **options):
    with pytest.raises(error) as raised:
        visits.run(programme, **options)
    return raised.value


@pytest.mark.parametrize("ledger", [True, False])
def test_a_run_and_the_same_again(visits, ledger):
    """The second run reads no records, charges nothing, and writes the same files."""
    programme = visits.programme(ledger=ledger)
    first = visits.run(programme)
    assert first.released == ("visits", "costs")
    assert set(first.files) == {"visits.csv", "visits.csv.json", "costs.csv", "costs.csv.json"}
    files = visits.files()
    for path in (visits.folder / "2025-03.parquet", *(visits.folder / "published/2025-03").glob("*.csv*")):
        path.unlink()
    second = visits.run(programme)
    assert second.released == ()
    assert visits.files() == files
    pd.testing.assert_frame_equal(second.tables["visits"], first.tables["visits"])
    words = "Month 2025-03: all tables were released before; no records were read, and nothing was charged."
    assert visits.said[-1].startswith(words)
    origin = r" by '.+', charge 3\.\n.* charge 4\." if ledger else r"\."
    assert re.search(rf"\nTaken: visits.* as kept on 20\d\d-.* UTC{origin}", visits.said[-1])

    assert visits.said[-1].endswith("Wrote published/2025-03/: costs.{csv,csv.json}  visits.{csv,csv.json}")
    if ledger:
        assert visits.n_charges == 2
        assert "0.04 of rho=0.06 left" in visits.said[-1]


def test_a_release_is_identified_without_its_source(visits):
    """Another programme with the same note, name and plan is told whose release it publishes."""
    visits.run()
    records(n=4).to_parquet(visits.folder / "other.parquet")
    other = visits.programme(files=(str(visits.folder / "other.parquet"),), bins=5)
    assert "Taken: visits as kept on 20" in described(other) and "costs as kept" not in described(other)
    ran = visits.run(other, allow_repeat=["costs"])
    assert ran.released == ("costs",) and "Taken: visits as kept on 20" in ran.text
    assert "costs as kept" not in ran.text


def test_the_tables_are_those_of_the_records(visits):
    """Hardly any noise: the counts are those of the records, and files hold the same table."""
    visits.ledger(rho=1000.0)
    table = visits.run(visits.programme(rho=500.0)).tables["visits"]
    assert table["count"].tolist() == [40, 27, 13, 14, 13, 13]
    pd.testing.assert_frame_equal(read_file(visits.folder / "published/2025-03/visits.csv"), table)


def test_without_a_ledger_the_run_says_so_first(visits):
    visits.run(visits.programme(ledger=False))
    assert visits.said[0].startswith("No ledger: nobody adds up")
    assert len(list((visits.folder / "published/2025-03/.released").iterdir())) == 2
    visits.run(visits.programme(ledger=False))
    assert not any("No ledger" in each for each in visits.said[2:])


@pytest.mark.parametrize("ledger", [True, False])
def test_an_edited_plan_is_refused_unless_it_is_named(visits, ledger):
    first = visits.run(visits.programme(ledger=ledger))
    files, edited = visits.files(), visits.programme(ledger=ledger, bins=5)
    error = failed(visits, edited, RefusedReleaseError)
    assert status_of(error) == Status.REFUSED and "--allow-repeat costs" in error.hint
    assert "visits" not in error.hint and "costs" in error.fact
    several = visits.programme(ledger=ledger, bins=5, rho=0.005)
    error = failed(visits, several, RefusedReleaseError, allow_repeat=["costs"])
    assert "plan of visits is not that of the earlier release" in error.fact
    assert visits.files() == files
    again = visits.run(edited, allow_repeat=["costs"])
    assert again.released == ("costs",)
    pd.testing.assert_frame_equal(again.tables["visits"], first.tables["visits"])
    with shelf_of(edited, frozenset()) as shelf:  # the estimates are those of the plan, not the last ones
        plan = visits.programme(ledger=ledger).tables["costs"].plan
        old = shelf.with_estimates("costs", plan, None).cdf()
    assert len(old) == len(first.tables["costs"].cdf()) != len(again.tables["costs"].cdf())
    assert visits.files()["costs.csv"] != files["costs.csv"]
    assert visits.run(edited).released == visits.run(edited, allow_repeat=["costs"]).released == ()
    if ledger:
        assert visits.n_charges == 3


def test_a_title_costs_nothing(visits):
    visits.run()
    assert visits.run(visits.programme(title="Another", write=("csv", "parquet"))).released == ()
    assert visits.n_charges == 2


def test_only_named_tables_of_the_programme_are_repeated(visits):
    error = failed(visits, None, ArgumentError, allow_repeat=["cost"])
    assert "costs" in error.hint and visits.n_charges == 0


def test_an_account_that_is_too_small_refuses_all(visits):
    visits.ledger(rho=0.015)
    assert status_of(failed(visits, None, InsufficientBudgetError)) == Status.REFUSED
    assert visits.n_charges == 0 and is_empty(visits.folder / "published/2025-03")


@pytest.mark.parametrize("ledger", [True, False])
def test_what_was_charged_and_never_saved(visits, ledger, monkeypatch):
    """The noise of one table fails: the other is kept and written, and the next run says what is lost."""
    kind = type(visits.programme().tables["costs"].plan)
    real = kind._prepared

    def fail(*_):
        raise OverflowError("no")

    def prepared(plan, data):
        return replace(real(plan, data), read=lambda _: fail)

    monkeypatch.setattr(kind, "_prepared", prepared)
    error = failed(visits, visits.programme(ledger=ledger), ChargedError if ledger else OverflowError)
    monkeypatch.undo()
    if not ledger:  # nothing was shown to anybody
        assert visits.run(visits.programme(ledger=False)).released == ("visits", "costs")
        return
    assert status_of(error) == Status.CHARGED and visits.n_charges == 2
    for _ in range(2):
        error = failed(visits, None, ChargedError)
        assert status_of(error) == Status.CHARGED and visits.n_charges == 2
        assert "'costs': charge 4" in error.fact and "visits" not in error.fact
        assert set(visits.files()) == {"visits.csv", "visits.csv.json"}
    paged = visits.programme(write=("csv", "html"), bins=5)  # another plan changes nothing about it
    failed(visits, paged, ChargedError)
    assert visits.n_charges == 2 and "index.html" not in visits.files()
    assert visits.run(allow_repeat=["costs"]).released == ("costs",)
    assert visits.n_charges == 3
    assert visits.run().released == ()
    failed(visits, paged, RefusedReleaseError)  # by now there is a table


def test_kept_tables_are_on_disk(visits, monkeypatch):
    """What a run without a ledger keeps is synced before it has its name."""
    synced = set()

    def fsync(number, real=os.fsync):
        synced.add(os.fstat(number).st_ino)
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    visits.run(visits.programme(ledger=False))
    kept = visits.folder / "published/2025-03/.released"
    assert {path.stat().st_ino for path in (kept, *kept.iterdir())} <= synced


def test_two_runs_at_once(visits):
    programme = visits.programme()
    with locked(programme.outputs.folder):
        error = failed(visits, programme, DPTreeError)
        assert status_of(error) == Status.FAILED and "Another run" in error.fact
    assert visits.n_charges == 0
    visits.run(programme)


def test_files_that_cannot_be_written_cost_nothing_later(visits, monkeypatch):
    """The tables are kept: the next run writes the files."""

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(running, "write_outputs", full)
    error = failed(visits, None, DPTreeError)
    assert status_of(error) == Status.FAILED and "No space left" in error.fact
    monkeypatch.undo()
    assert visits.run().released == () and visits.n_charges == 2


def test_records_that_cannot_be_opened_cost_nothing(visits):
    error = failed(visits, visits.programme(files=("nowhere.parquet",)), ArgumentError)
    assert error.argument == "sources.visits.files"
    assert visits.n_charges == 0 and is_empty(visits.folder / "published/2025-03")


def test_a_new_table_of_the_programme_is_charged_alone(visits):
    whole = visits.programme()
    visits.run(replace(whole, tables={"visits": whole.tables["visits"]}))
    assert visits.run(whole).released == ("costs",)
    assert visits.n_charges == 2


@pytest.mark.parametrize("ledger", [True, False])
def test_the_table_of_the_month_before(visits, ledger):
    records("2025-02").to_parquet(visits.folder / "2025-02.parquet")
    february = visits.run(visits.programme("2025-02", ledger=ledger))
    with shelf_of(visits.programme(before="2025-02", ledger=ledger), frozenset()) as shelf:
        before = shelf.before("visits")
        pd.testing.assert_frame_equal(before.drop(columns="linear"), february.tables["visits"])
        assert len(before.dp.proportions())  # which needs the unbiased estimates
        assert shelf.before("nothing") is None
    with shelf_of(visits.programme(ledger=ledger), frozenset()) as shelf:
        assert shelf.before("visits") is None


def test_a_ledger_of_parts(visits):
    visits.ledger(parts=["east", "west"], fixed_records=True)
    programme = visits.programme()
    for part in ("east", "west"):
        folder = visits.folder / part
        own = replace(
            programme, budget=replace(programme.budget, part=part),
            outputs=replace(programme.outputs, folder=folder),
        )  # fmt: skip
        assert visits.run(own).released == ("visits", "costs")
        assert visits.run(own).released == ()
    assert visits.n_charges == 4


def test_the_last_of_several_releases_counts(visits):
    """That of the month before is the last that was kept; a lost one of this plan is no edit of another."""
    records(n=3000).to_parquet(visits.folder / "2025-03.parquet")
    visits.run()
    visits.run(visits.programme(rho=0.005), allow_repeat=["visits"])
    with shelf_of(visits.programme("2025-04", before="2025-03"), frozenset()) as shelf:
        assert shelf.before("visits").attrs["dp"]["rho"] == 0.005
    edited = visits.programme(bins=5)
    with dpt.Ledger.open(visits.folder / "budget.sqlite") as ledger:
        plans = {"costs": edited.tables["costs"].plan}
        ledger["patients"].charge(plans, "2025-03", allow_repeat=True, requested=datetime.now(UTC))
    assert "Charged earlier" in failed(visits, edited, ChargedError).fact


def test_releases_of_other_parts_and_accounts_are_not_earlier_ones(visits):
    """Their plan is another one, which would be refused as an edit, or as a charge without a table."""
    path = visits.ledger(parts=["north", "south"], fixed_records=True)
    with dpt.Ledger.open(path) as ledger:
        ledger.add_account("others", rho=0.06, privacy_unit="person")
    programme = visits.programme()
    north = replace(programme, budget=replace(programme.budget, part="north"))
    assert visits.run(north).released == ("visits", "costs")
    edited = visits.programme(bins=5)
    south = replace(edited, budget=replace(edited.budget, part="south"))
    assert visits.run(south).released == ("visits", "costs")
    visits.run(visits.programme(bins=7))
    others = replace(visits.programme(bins=6), budget=replace(edited.budget, account="others"))
    assert visits.run(others).released == ("visits", "costs")


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_lock_that_is_a_link_locks_no_ledger(visits, link):
    programme = visits.programme()
    programme.outputs.folder.mkdir(parents=True)
    link(visits.folder / "budget.sqlite", programme.outputs.folder / ".lock")
    assert "is a link" in failed(visits, programme, DPTreeError).fact


def test_the_ledger_refuses_without_the_lock(visits, monkeypatch):
    """Another run charges between the question and the charge of this one."""
    real, called = Account.charge, []

    def charge(account, *arguments, **options):
        if not called:
            called.append(True)
            real(account, *arguments, **options)
        return real(account, *arguments, **options)

    monkeypatch.setattr(Account, "charge", charge)
    failed(visits, None, RefusedReleaseError)
    assert visits.n_charges == 2
    assert dpt.Ledger.open(visits.ledger()).to_frame()["released"].sum() == 0


@pytest.mark.parametrize("ledger", [True, False])
def test_a_page_is_made_again_from_what_is_kept(visits, ledger):
    """An edited title costs nothing; the page has all tables, and says who is protected."""
    programme = visits.programme(ledger=ledger, write=("html",), show=[{"table": "visits"}])
    visits.run(programme)
    first = visits.files()
    assert list(first) == ["index.html"] and b"<h1" in first["index.html"]
    edited = visits.programme(ledger=ledger, write=("html",), show=[{"table": "visits"}], title="Another")
    (visits.folder / "2025-03.parquet").unlink()
    assert visits.run(edited).released == ()
    assert b"Another" in visits.files()["index.html"] and b"Another" not in first["index.html"]
    assert visits.run(programme).released == () and visits.files() == first
    if ledger:
        assert visits.n_charges == 2


def test_a_page_obeys_its_classes(visits):
    programme = visits.programme(write=("csv", "html"), show=[{"table": "visits"}])
    visits.run(programme)
    files = visits.files()
    graded = replace(programme.page, reliability={"fine": 1e-9, "poor": 9.0}, blank=("poor",))
    visits.run(replace(programme, page=graded))
    plain, blank = (each["index.html"].decode() for each in (files, visits.files()))
    assert ">poor</td>" in blank and "Numbers of class poor are not shown" in blank
    assert ">poor</td>" not in plain
    assert visits.files()["visits.csv"] == files["visits.csv"]


@pytest.mark.parametrize("ledger", [True, False])
def test_workbooks(visits, ledger):
    """They have classes and proportions, and the digest of the table as it is in the other files."""
    openpyxl = pytest.importorskip("openpyxl")
    records(n=3000).to_parquet(visits.folder / "2025-03.parquet")
    table = visits.run(visits.programme(ledger=ledger, write=("xlsx", "parquet"))).tables["visits"]
    assert set(visits.files()) == {
        f"{name}.{end}" for name in ("visits", "costs") for end in ("xlsx", "parquet")
    }
    book = openpyxl.load_workbook(visits.folder / "published/2025-03/visits.xlsx", read_only=True)
    told = " ".join(str(cell) for row in book["Read me"].values for cell in row)
    assert table.attrs["dp"]["table_digest"] in told
    heads, *rows = book["visits"].values
    share = "proportion of the level above"
    assert heads[2:] == ("clinic", "count", "± standard error", "class", share, f"{share}, ±")
    assert sum(row[6] for row in rows if row[0] == "region") == pytest.approx(1)


def test_trees_of_zarr(visits):
    """Each level is a dataset with a row for each of its nodes."""
    tables = visits.run().tables
    tree = as_tree(tables["visits"])
    assert set(tree.children) == {"total", "region", "clinic"}
    assert tree["region"]["region"].values.tolist() == ["N", "S"]
    table = tables["visits"]
    assert tree["clinic"]["count"].values.tolist() == table[table["level"] == "clinic"]["count"].tolist()
    assert json.loads(tree.attrs["dp"])["rho"] == 0.01
    assert as_tree(tables["costs"].cdf()).dataset.sizes == {"row rows": len(tables["costs"].cdf())}


@pytest.mark.parametrize("ledger", [True, False])
def test_changes_since_the_month_before(visits, ledger):
    """The page says since when; without a table of the month before, it leaves the changes out."""
    records("2025-02").to_parquet(visits.folder / "2025-02.parquet")
    show = [{"table": "visits"}, {"table": "visits", "as": "change"}]
    visits.run(visits.programme("2025-02", ledger=ledger, write=("html",), show=show))
    assert any("changes of visits are left out" in each for each in visits.said)
    march = visits.programme(ledger=ledger, write=("html",), show=show, before="2025-02")
    visits.run(march)
    text = visits.files()["index.html"].decode()
    assert "change since 2025-02" in text
    assert "change since" not in visits.files("2025-02")["index.html"].decode()


@pytest.mark.parametrize("ledger", [True, False])
def test_a_page_that_cannot_be_made_costs_no_other_file(visits, ledger):
    """The status is that of a run that failed, not of wrong arguments: something was charged."""
    wrong = [{"table": "visits", "as": "proportions", "of": "nowhere"}]
    error = failed(visits, visits.programme(ledger=ledger, write=("csv", "html"), show=wrong), DPTreeError)
    assert status_of(error) == Status.FAILED and "page" in error.fact and "nothing" in error.hint
    assert {"visits.csv", "costs.csv"} <= set(visits.files()) and "index.html" not in visits.files()
    assert visits.run(visits.programme(ledger=ledger, write=("csv", "html"))).released == ()
    assert "index.html" in visits.files()


def test_a_page_of_changes_alone_shows_all_tables_in_the_first_period(visits):
    show = [{"table": "visits", "as": "change"}]
    ran = visits.run(visits.programme(write=("html",), show=show, before="2025-02"))
    assert "index.html" in ran.files
    assert any("left out" in each for each in visits.said)
    assert b"Clinic" in visits.files()["index.html"]


def test_a_folder_of_the_user_is_not_replaced(visits):
    precious = visits.folder / "published/2025-03/visits.csv/precious"
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    error = failed(visits, None, DPTreeError)
    assert status_of(error) == Status.FAILED and precious.read_text() == "mine"


def test_only_named_tables_are_charged_again_whoever_runs_between(visits, monkeypatch):
    """Another run releases all tables after this one looked, and before it charges."""
    visits.run()
    edited = visits.programme(bins=5)
    visits.run(visits.programme(bins=6), allow_repeat=["costs"])
    for step, called in (("check", Account.check), ("charge", Account.charge)):

        def late(account, plans, note, real=called, **options):
            monkeypatch.undo()
            return real(account, {"visits": counts(0.01), **plans}, note, **options)

        monkeypatch.setattr(Account, step, late)
        failed(visits, edited, RepeatedReleaseError, allow_repeat=["costs"])
    assert visits.n_charges == 3


def test_a_period_that_is_not_over_is_said(visits):
    programme = visits.programme()
    tomorrow = date.today() + timedelta(days=1)
    visits.run(replace(programme, period=replace(programme.period, end=tomorrow)))
    assert any("is not over" in each for each in visits.said)
    assert not any("is not over" in each for each in visits.said[1:])


OF_QUANTILES = """
format = "dptree 1"
[sources.visits]
files = "visits.parquet"
privacy_unit = "person"
max_contributions = 2
[hierarchies.place]
domain = "places.csv"
by = ["region"]
[budget]
epsilon = 4
ledger = "budget.sqlite"
account = "patients"
note = "once"
[tables]
median = { verb = "quantiles", column = "cost", q = 0.5, bounds = [0, 10], granularity = 0.01 }
costs = { verb = "quantiles", column = "cost", q = [0.25, 0.5], bounds = [0, 10], granularity = 0.01, by = "place", bins = 4, confidence = 0.9, mechanism = "exponential" }
days = { verb = "quantiles", column = "day", q = 0.5, bounds = [2026-01-01, 2026-12-31], granularity = "1D", by = "place", bins = 4, mechanism = "exponential" }
[outputs]
folder = "published"
write = ["csv", "html"]
"""  # noqa: E501


def test_quantiles_are_released_shown_and_verified(tmp_path):
    n = 300
    frame = pd.DataFrame(
        {"region": ["N", "S", "S"] * (n // 3), "person": range(n), "cost": [1.0, 2.5, 4.0] * (n // 3)}
    )
    frame["day"] = pd.Timestamp("2026-02-01") + pd.to_timedelta(frame["person"], unit="D")
    frame.to_parquet(tmp_path / "visits.parquet")
    pd.DataFrame({"region": ["N", "S"]}).to_csv(tmp_path / "places.csv", index=False)
    dpt.Ledger.create(
        tmp_path / "budget.sqlite", account="patients", privacy_unit="person", epsilon=9.0
    ).close()
    (tmp_path / "report.toml").write_text(OF_QUANTILES)
    programme = dpt.Programme.from_file(tmp_path / "report.toml")
    said = programme.describe()
    assert "q = 0.25, 0.5: tree 4, 4 bins; exponential, granularity 0.01." in said
    assert "exponential, granularity 1 d. Errors depend on the records." in said
    first = programme.run()
    assert first.released == ("median", "costs", "days")
    folder = tmp_path / "published"
    for name, table in first.tables.items():
        pd.testing.assert_frame_equal(read_file(folder / f"{name}.csv"), table)
        with contextlib.redirect_stdout(io.StringIO()):
            assert verify.main([str(folder / f"{name}.csv.json"), str(folder / f"{name}.csv")]) == 0
    assert list(first.tables["costs"]) == ["level", "region", "q", "value", "lower", "upper"]
    page = (folder / "index.html").read_text()
    assert all(f">{heading}<" in page for heading in ("Median", "Costs by region", "Day by region"))
    with pytest.raises(ProgrammeError, match="lacks q"):
        (tmp_path / "report.toml").write_text(OF_QUANTILES.replace("q = 0.5, ", ""))
        dpt.Programme.from_file(tmp_path / "report.toml").check()
