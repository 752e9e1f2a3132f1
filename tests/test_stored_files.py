"""Files that an earlier version wrote can still be read, charged, verified and released."""

import json
import re
import shutil
from html.parser import HTMLParser

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main
from tests.helpers_cases import each
from tests.seeded.data import domain, visits
from tests.seeded.described import described, differences
from tests.stored_files.contents import PAGES, TABLES, VERIFIED, hierarchies, released, shape
from tests.stored_files.write import STORED

RECORDED = json.loads((STORED / "recorded.json").read_text(encoding="utf-8"))
PLANS = sorted(RECORDED["digests"])
ONE_OF_EACH_KIND = {
    "additive": "counts",
    "joint": "several",
    "distribution": "distribution",
    "implicit": "private_keys",
    "multiplicative": "relative_error",
    "implicit_multiplicative": "prefixes_relative_error",
}

pytestmark = pytest.mark.skipif(
    int(pd.__version__.split(".")[0]) < 3, reason="types and texts were recorded with pandas 3"
)


def read_plan(name):
    """Read a stored plan with its hierarchy."""
    stored = json.loads((STORED / "plans" / f"{name}.json").read_text(encoding="utf-8"))
    return dpt.Plan.from_dict(stored, hierarchies().get(name, domain()), digest=RECORDED["digests"][name])


def as_json(value):
    return json.loads(json.dumps(value))


@pytest.fixture
def path(tmp_path):
    """Copy the ledger, which would be changed otherwise."""
    return shutil.copy(STORED / "ledger.sqlite", tmp_path / "budget.sqlite")


@pytest.fixture
def ledger(path):
    with dpt.Ledger.open(path) as opened:
        yield opened


# Plans ---------------------------------------------------------------------------------------------------


def test_every_plan_was_recorded():
    assert PLANS == sorted(file.stem for file in (STORED / "plans").glob("*.json"))
    for kind, name in ONE_OF_EACH_KIND.items():
        assert json.loads((STORED / "plans" / f"{name}.json").read_text("utf-8"))["kind"] == kind


@each("name", PLANS)
def test_plans_are_read(name):
    assert read_plan(name).digest == RECORDED["digests"][name]


@each("name", ONE_OF_EACH_KIND.values())
def test_a_plan_of_each_kind_releases(name):
    assert as_json(shape(released(name, read_plan(name)))) == RECORDED["shapes"][name]


@pytest.mark.slow
@each("name", PLANS)
def test_plans_release(name):
    assert as_json(shape(released(name, read_plan(name)))) == RECORDED["shapes"][name]


# Tables --------------------------------------------------------------------------------------------------


def test_every_table_was_recorded():
    assert sorted(RECORDED["tables"]) == sorted(TABLES)
    assert {file.name.partition(".")[0] for file in (STORED / "tables").iterdir()} == set(TABLES)


@each(("name", "suffix"), [(name, suffix) for name in TABLES for suffix in ("csv", "parquet")])
def test_tables_are_read(name, suffix, tmp_path):
    shutil.copytree(STORED / "tables", tmp_path, dirs_exist_ok=True)
    table = dpt.read_file(tmp_path / f"{name}.{suffix}")
    assert differences(RECORDED["tables"][name], as_json(described(table))) == []


@each("name", VERIFIED)
def test_tables_are_verified(name, capsys):
    plan, table = STORED / "plans" / f"{name}.json", STORED / "tables" / f"{name}.csv"
    assert main(["verify", str(plan), str(table), "--digest", RECORDED["digests"][name]]) == 0
    assert " 0 failed" in capsys.readouterr().out


# Pages ---------------------------------------------------------------------------------------------------


class Cells(HTMLParser):
    """The texts in the cells of a page, and the elements that were not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.cells, self.wrong = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "link", "img", "hr", "col"):
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if "td" in self.open:
            self.cells[-1] += data

    def numbers(self):
        found = [re.findall(r"-?\d[\d,]*\.?\d*", cell) for cell in self.cells]
        return [float(number.replace(",", "")) for each in found for number in each]


@each("name", PAGES)
def test_pages_hold_the_numbers_of_their_tables(name):
    """A page is made anew, too, from the stored table."""
    stored = (STORED / "pages" / f"{name}.html").read_text(encoding="utf-8")
    table = dpt.read_file(STORED / "tables" / f"{name}.parquet")
    column = "visits" if name == "several" else "count"
    expected = set(table.loc[table["level"].isin(["total", "region"]), column].astype(float))
    for page in (stored, table.dp.to_html(max_rows=20)):
        cells = Cells(page)
        assert cells.wrong == cells.open == []
        assert expected <= set(cells.numbers())


def test_page_of_a_ledger_holds_its_charges(ledger):
    stored = (STORED / "pages" / "ledger.html").read_text(encoding="utf-8")
    for page in (stored, ledger.to_html()):
        cells = Cells(page)
        assert cells.wrong == cells.open == []
        assert {"Zählung 2024", "private_keys_alone", "lost"} <= {cell.strip() for cell in cells.cells}
        assert 0.1 in cells.numbers()


# The ledger ----------------------------------------------------------------------------------------------


def test_ledger_is_as_it_was_written(ledger):
    assert list(ledger.verify()) == RECORDED["ledger"]["head"] == list(ledger.head)
    accounts = {name: [described(ledger[name].spent.to_dict()), ledger[name].n_charges] for name in ledger}
    assert accounts == RECORDED["ledger"]["accounts"]
    recorded = RECORDED["ledger"]["charges"]
    names = [column["name"] for column in recorded["columns"]]
    assert differences(recorded, as_json(described(ledger.to_frame()[names]))) == []


def test_ledger_is_charged_again(ledger):
    number, digest = ledger.head
    patients, plan = ledger["patients"], read_plan("counts")
    spent, one = patients.spent.rho, plan.losses.in_rho[0]
    visits().dp.release(plan, ledger=patients, note="counts again")
    visits().dp.release(read_plan("sums"), ledger=patients, note="sums again")
    assert patients.spent.rho == pytest.approx(spent + float(one) + 0.1, rel=1e-12)
    assert patients.n_charges == RECORDED["ledger"]["accounts"]["patients"][1] + 2
    assert ledger.verify(digest).number == number + 4
    assert ledger.to_frame()["released"].tolist() == [
        *RECORDED["ledger"]["charges"]["columns"][5]["values"], True, True,
    ]  # fmt: skip


@each(
    ("account", "name", "note"),
    [
        ("patients", "counts", "counts of visits"),
        ("patients", "sums", "sums of visits"),
        ("patients", "several", "several of visits"),
        ("patients", "distribution", "distribution of visits"),
        ("studies", "private_keys", "private_keys"),
        ("studies", "private_keys_alone", "private_keys_alone"),
        ("studies", "relative_error", "relative_error"),
    ],
)
def test_same_plan_with_the_same_note_was_charged_before(ledger, account, name, note):
    before = ledger.head
    with pytest.raises(dpt.RepeatedReleaseError):
        visits().dp.release(read_plan(name), ledger=ledger[account], note=note)
    assert ledger.head == before


def test_caps_still_hold(ledger):
    plan = read_plan("counts")
    surveys = ledger["surveys"].part("2024")
    for place in range(8):
        visits().dp.release(plan, ledger=surveys, note=f"again {place}")
    with pytest.raises(dpt.InsufficientBudgetError):
        visits().dp.release(plan, ledger=surveys, note="once more")
    assert ledger["surveys"].part("2025").remaining.epsilon == 8.0
    ledger.verify(RECORDED["ledger"]["head"][1])


def test_shell_reads_the_ledger(path, capsys):
    assert main(["ledger", "verify", str(path), "--head", RECORDED["ledger"]["head"][1]]) == 0
    assert main(["ledger", "show", str(path)]) == 0
    assert RECORDED["ledger"]["head"][1] in capsys.readouterr().out
