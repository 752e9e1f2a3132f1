"""What is wrong with a programme is said at once, with lines and hints, and nothing else happens."""
# ruff: noqa: E501

import random
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, DPTreeError
from pandas_dptree.privacy.loss import exact
from pandas_dptree.programmes.budgets import _part_of_cap, budget_of
from pandas_dptree.programmes.placeholders import Placeholder
from pandas_dptree.programmes.problems import Problems, Section
from tests.helpers_toml import CENSUS, PROGRAMMES, REPORT, WEBLOGS, make_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("programmes")
    make_files(made)
    return made


def check(folder, text, period="2025-03"):
    (folder / "report.toml").write_text(text, "utf-8")
    return dpt.Programme.from_file(folder / "report.toml").check(period)


def problems(folder, text, period="2025-03"):
    """All problems of a programme, each as its line, path, fact and hint."""
    with pytest.raises(dpt.ProgrammeError) as caught:
        check(folder, text, period)
    return [(each.line, ".".join(each.path), each.fact, each.hint) for each in caught.value.problems]


def test_the_report_is_right(folder):
    checked = check(folder, REPORT)
    assert checked.period.text == "2025-03" and list(checked.tables) == ["visits", "care", "costs"]
    assert [each.plan.rho for each in checked.tables.values()] == [0.01, 0.007, 0.003]
    assert [each.line for each in checked.tables.values()] == [21, 26, 33]
    assert checked.tables["care"].plan.level_names == ("total", "region", "district")
    source = checked.sources["visits"]
    assert source.files == (str(folder / "visits" / "2025-03.parquet"),)
    assert set(source.columns) == {"region", "district", "clinic", "person", "age", "cost"}
    assert (checked.budget.note, checked.budget.note_before) == ("2025-03", "2025-02")
    assert checked.outputs.folder == folder / "published" / "2025-03"
    assert checked.outputs.before == folder / "published" / "2025-02"
    assert checked.page.title == "Visits to clinics, 2025-03"
    assert checked.page.reliability == "statcan" and checked.page.blank == ()
    assert checked.account.n_charges == 0 and not (folder / "published").exists()


def test_classes_of_pages_begin_where_the_table_says(folder):
    """From 0.165 on a number is of class E, from 0.333 on of class F, which is blank."""
    classes = 'reliability = { E = 0.165, F = 0.333 }\nblank = ["F"]\n'
    page = check(folder, REPORT.replace("combine =", f"{classes}combine =")).page
    assert page.reliability == {"": 0.165, "E": 0.333, "F": float("inf")} and page.blank == ("F",)


def test_digests_do_not_depend_on_the_period(folder):
    march, april = check(folder, REPORT), check(folder, REPORT, "2025-04")
    for name, table in march.tables.items():
        assert table.plan.digest == april.tables[name].plan.digest


def test_the_weblogs_are_right(folder):
    checked = check(folder, WEBLOGS, "2025-W14")
    during = checked.sources["logs"].during
    assert (during.column, during.start.isoformat()) == ("time", "2025-03-31T00:00:00+02:00")
    assert (during.end.isoformat(), during.timezone) == ("2025-04-07T00:00:00+02:00", "Europe/Berlin")
    assert checked.hierarchies["pages"].private_keys == ("path",)
    assert checked.tables["hours"].plan.level_names[1:] == ("time_iso_week", "time_day", "time_hour")
    assert checked.tables["pages"].plan.delta == 7e-8
    hours = checked.tables["hours"].plan.domain.tree.level_sizes
    assert hours == (1, 1, 7, 7 * 24)


def census(folder, **changes):
    """Write what the census reads, and return its programme without a page."""
    places = pd.DataFrame(
        [("CA", "Kern", "1"), ("CA", "Kern", "2"), ("WA", "King", "3")], columns=["state", "county", "tract"]
    )
    places.assign(uninhabited=[False, True, False]).to_parquet(folder / "places.parquet")
    pd.DataFrame({"state": ["CA", "WA"], "name": ["California", "Washington"]}).to_csv(
        folder / "state_names.csv", index=False
    )
    pd.DataFrame({"state": ["CA", "WA"], "count": [40, 25]}).to_csv(folder / "state_totals.csv", index=False)
    people = places.loc[[0, 2]].assign(person=[1, 2], age=[3, 70], sex=["F", "M"])
    people.to_csv(folder / "persons.csv", index=False)
    text = CENSUS[: CENSUS.index("[page]")].replace("confidence = 0.90", "").replace(', "html"]', "]")
    text = text.replace('database = "census.duckdb"\ntable = "persons"', 'files = "persons.csv"')
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def test_the_census_crosses_its_hierarchies(folder):
    checked = check(folder, census(folder), None)
    plan = checked.tables["persons"].plan
    assert plan.margins == (
        {"place": "state", "age": "age_year", "sex": "sex"},
        {"place": "county", "age": "age_band", "sex": "sex"},
        {"place": "tract"},
    )
    assert checked.hierarchies["persons"].labels["state"]["CA"] == "California"
    assert plan.known.least[plan.level_names.index("state")].tolist() == [40, 25]
    assert checked.tables["persons"].hierarchy == ("place", "age", "sex")


@pytest.mark.parametrize(
    "old, new, fact",
    [
        ('sex = "sex" }          #', 'sex = "gender" }  #', "'gender' is no hierarchy"),
        ('sex = "sex" }          #', "sex = 3 }  #", "'sex' names no hierarchy"),
        ("consistency =", 'down_to = "county"\nconsistency =', "has no meaning for crossed"),
        ('{ place = "tract" }', '{ place = "town" }', "no level 'town'"),
        ('verb = "counts"', 'verb = "units"\nmax_nodes = 2', "crosses several"),
    ],
)
def test_mistakes_in_crossed_hierarchies(folder, old, new, fact):
    found = problems(folder, census(folder, **{old: new}), None)
    assert any(fact in each[2] for each in found), found
    assert all(each[0] is not None and each[3] for each in found)


def test_all_at_once(folder):
    text = REPORT.replace("max_contributions", "max_contribution")
    text = text.replace('down_to = "district"', 'down_to = "distrct"').replace("share = 0.15", "share = 0.25")
    (folder / "report.toml").write_text(text)
    with pytest.raises(dpt.ProgrammeError) as caught:
        dpt.Programme.from_file(folder / "report.toml").check("2025-03")
    assert (
        str(caught.value)
        == """\
report.toml has 3 errors. Nothing was read, charged or written.

  line 9, sources.visits.max_contribution: unknown key.
           Hint: did you mean max_contributions?
  line 29, tables.care.down_to: "distrct" is no level of the hierarchy place.
           Hint: its levels are region, district, clinic.
  line 38, tables.costs.share: the shares add up to 1.1, more than the budget of rho=0.02.
           Hint: lower one of tables.visits.share (line 24), tables.care.share (line 31), \
tables.costs.share (line 38)."""
    )


MEANS = """verb = "means"
by = "place"
down_to = "district"
columns = { age = { bounds = [0, 100] }, cost = { bounds = [0, 500] } }"""
MISTAKES = [
    ('format = "dptree 1"', 'format = "dptree 2"', 2, "format", "is unknown: 'dptree 2'", '"dptree 1"'),
    ('format = "dptree 1"', "", 1, "", "lacks format", "first line"),
    ('each = "month"', 'each = "months"', 4, "each", "is no period", "did you mean 'month'?"),
    ('each = "month"', 'eech = "month"', 4, "eech", "unknown key", "did you mean each?"),
    ("[sources.visits]", "[source.visits]", 6, "source", "unknown key", "did you mean sources?"),
    ('"visits/{month}.parquet"', '"visits/{week}.parquet"', 7, "sources.visits.files", "{week} is no pl", "{month}"),
    ('"visits/{month}.parquet"', '"visits/2025-03.parquet"', 6, "sources.visits", "the same records", "during"),
    ('"visits/{month}.parquet"', '"visit/{month}.parquet"', 7, "sources.visits.files", "not exist", "path"),
    ('"visits/{month}.parquet"', '"visits/{month}.txt"', 7, "sources.visits.files", "unknown type", ".parquet"),
    ('"visits/{month}.parquet"', "7", 7, "sources.visits.files", "a list of texts, not the number 7", "for ex"),
    ('privacy_unit = "person"', 'privacy_unit = "persn"', 7, "sources.visits.files", "'persn'", ""),
    ('privacy_unit = "person"', "", 6, "sources.visits", "lacks privacy_unit", "each_row = true"),
    ("[tables.visits]", '[tables."../visits"]', 21, "tables.../visits", "other characters", "rename"),
    ('each = "month"', 'each = "month"\nfirst = "2025"', 5, "first", "no month", "for example"),
    ("max_contributions = 2", "max_contributions = 2\n[sources.b]\nfiles = 'b/{month}.csv'\neach_row = true", 10,
     "sources.b", "protects others", "a programme for each"),
    ("max_contributions = 2", 'max_contributions = "2"', 9, "sources.visits.max_contributions", "whole", "write"),
    ("max_contributions = 2", "max_contributions = 0", 9, "sources.visits.max_contributions", "at least 1", "= 2"),
    ("max_contributions = 2", "max_contributions = true", 9, "sources.visits.max_contributions", "true", "write"),
    ("max_contributions = 2", 'max_contributions = 2\nengine = "polar"', 10, "sources.visits.engine", "", "'polars'?"),
    ("max_contributions = 2", "max_contributions = 2\nduring = { date = 3 }", 10, "sources.visits.during", "", "{month}"),
    ("max_contributions = 2", 'max_contributions = 2\nduring = { date = "{month}" }', 10, "sources.visits.during",
     "no time zone", "Europe/Berlin"),
    ("max_contributions = 2", 'max_contributions = 2\ntimezone = "Berlin"', 10, "sources.visits.timezone", "", "Europe"),
    ("max_contributions = 2", 'max_contributions = 2\ntypes = { age = "int64" }', 10, "sources.visits.types",
     "lacks [", "state the types"),
    ("columns = { age = { bounds = [0, 100] }, cost = { bounds = [0, 500] } }", 'columns = ["cost"]', 30,
     "tables.care.columns", "must be a table, not a list", "for example columns = { cost"),
    ('"clinics.csv"', '"clinic.csv"', 13, "hierarchies.place.domain", "'clinic.csv': it does not exist", "path"),
    ('"clinics.csv"', '"observed"', 13, "hierarchies.place.domain", "before any record is read", "file"),
    ('domain = "clinics.csv"', "", 11, "hierarchies.place", "lacks domain", "file"),
    ('domain = "clinics.csv"', 'domain = "clinics.csv"\ncut = { column = "age" }', 11, "hierarchies.place", "both", ""),
    ('"district", "clinic"]', '"distrikt", "clinic"]', 13, "hierarchies.place.domain", "distrikt", ""),
    ('ledger = "budget.sqlite"', 'ledger = "no.sqlite"', 16, "budget.ledger", "no.sqlite", ""),
    ('account = "patients"', 'account = "patient"', 17, "budget.account", "'patient'", "did you mean 'patients'?"),
    ('account = "patients"', "", 15, "budget", "lacks account", "for example"),
    ("rho = 0.02", "rho = -1", 18, "budget.rho", "", ""),
    ("rho = 0.02", "", 15, "budget", "lacks epsilon or rho", "rho = 0.02"),
    ("rho = 0.02", 'rho = "cap"', 18, "budget.rho", "part of the account's cap", "cap/12"),
    ("rho = 0.02", 'epsilon = "cap/12"', 18, "budget.epsilon", "adds up", 'rho = "cap/12"'),
    ('note = "{month}"', 'note = "visits"', 19, "budget.note", "the same in every period", "{month}"),
    ('verb = "counts"', 'verb = "count"', 22, "tables.visits.verb", "is unknown", "did you mean 'counts'?"),
    ('verb = "counts"', "", 21, "tables.visits", "lacks verb", "counts, units, sums"),
    ('verb = "counts"', 'verb = "units"', 21, "tables.visits", "lacks max_nodes", "max_nodes = { region = 1, clinic = 4 }"),
    ('verb = "counts"', 'verb = "units"\nmax_node = 2', 23, "tables.visits.max_node", "unknown key", "did you mean max_nodes?"),
    ('verb = "counts"', 'verb = "units"\nmax_nodes = 2.5', 23, "tables.visits.max_nodes", "a whole number or a table", "= 4, or"),
    ('verb = "counts"', 'verb = "units"\nmax_nodes = true', 23, "tables.visits.max_nodes", "a whole number or a table", "= 4, or"),
    ('verb = "counts"', 'verb = "units"\nmax_nodes = 0', 23, "tables.visits.max_nodes", "at least 1", ""),
    ('verb = "counts"', 'verb = "units"\nmax_nodes = { clinc = 2 }', 23, "tables.visits.max_nodes", "unknown levels", "'clinic'?"),
    ('verb = "counts"', 'verb = "units"\nmax_nodes = { region = 1 }', 23, "tables.visits.max_nodes", "deepest level", ""),
    ('verb = "counts"', 'verb = "units"\nmax_nodes = { clinic = "2" }', 23, "tables.visits.max_nodes", "whole number", ""),
    ('verb = "counts"', 'verb = "units"\nmax_nodes = 2\nmax_contributions = 2', 24, "tables.visits.max_contributions",
     "belongs to the source", "[sources.<name>]"),
    ('verb = "counts"', 'verb = "units"\nmax_nodes = 2\nmax_per_leaf = 2', 24, "tables.visits.max_per_leaf", "unknown key", ""),
    ('verb = "counts"', 'verb = "units"\nmax_nodes = 2\nknown = { region = 2 }', 24, "tables.visits.known", "total alone", "several"),
    ('verb = "counts"', 'verb = "counts"\nmax_nodes = 2', 23, "tables.visits.max_nodes", "does not count", 'verb = "units"'),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = { x = "count" }\nmax_nodes = 2', 30, "tables.care.max_nodes", "does not count",
     'verb = "units"'),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = { x = "units", n = "count" }', 26, "tables.care", "lacks max_nodes", "= 4, or"),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = { x = "units" }\nmax_nodes = 2', 29, "tables.care.columns", "alone", 'verb = "units"'),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = { x = "count_per_unit", n = "count" }', 29, "tables.care.columns", "lacks one", ""),
    (MEANS, 'verb = "agg"\nby = "place"\nmax_nodes = 3\ncolumns = { x = "units", n = "count" }', 26, "tables.care",
     "max_contributions must be at least", "lower max_nodes"),
    ('by = "place"', 'by = "plaice"', 23, "tables.visits.by", "is no hierarchy", "did you mean 'place'?"),
    ("share = 0.5 ", "share = 1.5 ", 24, "tables.visits.share", "not between 0 and 1", "0.5"),
    ("share = 0.5 ", "", 21, "tables.visits", "lacks a share", "target"),
    ("share = 0.5 ", "epsilon = 1.0 ", 24, "tables.visits.epsilon", "belongs to the budget", "share"),
    ('verb = "means"', 'verb = "agg"', 30, "tables.care.columns.age", 'must be "count", "units" or', "{ mean ="),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = {}', 26, "tables.care", "lacks columns", "{ mean ="),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = { x = "cont" }', 29, "tables.care.columns.x", 'must be "count"', "{ mean ="),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = { x = { sum = "age" } }', 29, "tables.care.columns.x", "lacks bounds", "[0, 500]"),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = { x = { sum = "age", bounds = [2, 1] } }', 29, "tables.care.columns.x.bounds", "", ""),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = { x = { sum = "age", mean = "age" } }', 29, "tables.care.columns.x", "one of", ""),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = { x = { sum = "age", bounds = [0, 9], of = 1 } }', 29, "tables.care.columns.x.of",
     "unknown key", ""),
    (MEANS, 'verb = "agg"\nby = "place"\ncolumns = { count = { sum = "age", bounds = [0, 9] } }', 29, "tables.care.columns", "cannot name", ""),
    ("share = 0.5 ", "target = { A = { paths = [], error = 40 } } ", 24, "tables.visits.target", "", ""),
    ("share = 0.5 ", 'target = { A = { paths = [["Nowhere"]], error = 40 } } ', 24, "tables.visits.target", "Nowhere", ""),
    ("share = 0.5 ", 'target = { A = { paths = [["Brenvale"]] } } ', 24, "tables.visits.target", "paths", "error = 25"),
    ("share = 0.5 ", "target = { region = { error = 40 } } ", 24, "tables.visits.target", "within", "error = 25"),
    ("share = 0.5 ", "share = 0.5\nsplit = { distrct = 1.0 } ", 25, "tables.visits.split", "distrct", ""),
    ("share = 0.5 ", 'share = 0.5\nconsistency = "integr" ', 25, "tables.visits.consistency", "is unknown", "integer"),
    ("share = 0.5 ", "target = { district = 0.1 } ", 24, "tables.visits.target", "more than the budget", "larger"),
    ("share = 0.5 ", 'share = 0.5\nknown = "known.csv" ', 25, "tables.visits.known", "does not exist", "path"),
    ("age = { bounds = [0, 100] }", "age = {}", 30, "tables.care.columns.age", "lacks bounds", "for example"),
    ("age = { bounds = [0, 100] }", "age = { bounds = [9, 1] }", 30, "tables.care.columns", "", ""),
    ("age = { bounds = [0, 100] }", "aeg = { bounds = [0, 9] }", 7, "sources.visits.files", "'aeg'", ""),
    ("bins = 100", "bins = 0", 37, "tables.costs.bins", "", ""),
    ('"xlsx", "html"]', '"excel", "html"]', 42, "outputs.write", "'excel' is unknown", "xlsx"),
    ('folder = "published/{month}"', 'folder = "published"', 41, "outputs.folder", "overwrite", "{month}"),
    ('as = "icicle"', 'as = "icycle"', 46, "page.show", "'icycle' is unknown", "did you mean 'icicle'?"),
    ('"visits", "care"]', '"visits", "car"]', 47, "page.show", "no table", "did you mean 'care'?"),
    ('[["Brenvale"]', '[["Brenval"]', 51, "page.combine", "which no table of counts has", "coarsest"),
    ("combine =", "blanck = []\ncombine =", 51, "page.blanck", "unknown key", "did you mean blank?"),
    ("combine =", 'language = "xx"\ncombine =', 51, "page.language", "", ""),
    ("combine =", "labels = { x = [] }\ncombine =", 51, "page.labels", "", ""),
    ('as = "icicle"', "as = []", 46, "page.show", "unknown", "icicle"),
    ("share = 0.5 ", "share = 0.5\nmechanism = { alpha = 0.5, zz = 1 } ", 25, "tables.visits.mechanism", "", "alpha"),
    ('"budget.sqlite"', '"budget\\u0000"', 16, "budget.ledger", "must be a text", ""),
    ("combine =", 'reliability = "statkan"\ncombine =', 51, "page.reliability", "unknown", "'statcan'?"),
    ("combine =", "reliability = { E = 0.5, F = 0.2 }\ncombine =", 51, "page.reliability", "do not increase", ""),
    ("combine =", 'blank = ["G"]\ncombine =', 51, "page.blank", "'G'", "A, B, C, D, E, F"),
    ('title = "Visits to clinics, {month}"', 'title = "Visits, {year}"', 3, "title", "{year} is no", "{month}"),
]  # fmt: skip


@pytest.mark.parametrize("part", range(3))
def test_mistakes(folder, part):
    """Each has its message, which quotes no record."""
    failed = []
    for old, new, line, path, fact, hint in MISTAKES[part::3]:
        assert old in REPORT
        found = problems(folder, REPORT.replace(old, new, 1))
        is_said = any(
            where == path and (number or 1) == line and fact in said and hint in advice
            for number, where, said, advice in found
        )
        if not is_said or "300" in str(found) or "2025-03-02" in str(found):
            failed.append((new, found))
    assert failed == []


@pytest.mark.parametrize(
    ("text", "line", "fact"),
    [
        ('format = "dptree 1"\n[budget\nrho = 1\n', 2, "cannot be read"),
        ('format = "dptree 1"\nby = ["a"\n', 3, "cannot be read"),
        ("rho = 1\nrho = 2\n", 2, "Cannot overwrite a value"),
    ],
)
def test_no_toml(folder, text, line, fact):
    [(number, _, said, _)] = problems(folder, text)
    assert number == line and fact in said


def test_no_file(folder):
    with pytest.raises(dpt.ProgrammeError, match="does not exist"):
        dpt.Programme.from_file(folder / "none.toml")
    (folder / "latin.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(dpt.ProgrammeError, match="not UTF-8"):
        dpt.Programme.from_file(folder / "latin.toml")


def test_a_period_made_by_hand_is_read_again(folder):
    """Its text becomes part of paths."""
    (folder / "report.toml").write_text(REPORT)
    programme = dpt.Programme.from_file(folder / "report.toml")
    march = programme.periods("2025-03")[0]
    assert programme.check(march).period == march
    for made in (replace(march, text="../.."), replace(march, text="2025", unit="year")):
        with pytest.raises(ArgumentError, match="is no month"):
            programme.check(made)
    assert programme.check(replace(march, start=date(2020, 1, 1))).period == march


def test_a_ledger_that_keeps_no_tables_is_refused(folder):
    options = {"rho": 1.0, "privacy_unit": "person", "keep_tables": False}
    dpt.Ledger.create(folder / "none.sqlite", account="patients", **options).close()
    [(line, path, fact, _)] = problems(folder, REPORT.replace("budget.sqlite", "none.sqlite"))
    assert (line, path) == (16, "budget.ledger") and fact.startswith("keeps no tables")


def test_what_is_due_of_a_part_of_an_account(tmp_path):
    """Releases that were charged to another part, or to the account itself, are not those of the programme."""
    path = tmp_path / "budget.sqlite"
    frame = pd.DataFrame({"region": ["N"] * 9, "u": range(9)})
    with dpt.Ledger.create(
        path, account="patients", epsilon=1.0, privacy_unit="u", parts=["north", "south"]
    ) as ledger:
        whole = ledger["patients"]
        charged = {"2025-01": whole.part("north"), "2025-02": whole.part("south"), "2025-03": whole}
        for month, account in charged.items():
            frame.dp.tree_counts(
                ["region"], domain="observed", epsilon=0.1, ledger=account, note=month, name="visits",
                privacy_unit="u", max_contributions=1,
            )  # fmt: skip
        charge = whole.part("north").charge
        charge(
            {
                "visits": frame.dp.plan(
                    ["region"], domain="observed", epsilon=0.1, privacy_unit="u", max_contributions=1
                )
            },
            "2025-04",
            allow_repeat=False,
            requested=datetime.now(UTC),
        )
    budget = {"ledger": "budget.sqlite", "account": "patients", "part": "north", "note": "{month}"}
    document = {"each": "month", "first": "2025-01", "tables": {"visits": {}}, "budget": budget}
    due = dpt.Programme.from_dict(document, folder=tmp_path).due(date(2025, 5, 1))
    assert [period.text for period in due] == ["2025-02", "2025-03", "2025-04"]
    del budget["part"]
    due = dpt.Programme.from_dict(document, folder=tmp_path).due(date(2025, 5, 1))
    assert [period.text for period in due] == ["2025-01", "2025-02", "2025-04"]
    document["tables"] = {"visits": {}, "care": {}}
    assert len(dpt.Programme.from_dict(document, folder=tmp_path).due(date(2025, 5, 1))) == 4


def test_as_many_parts_of_the_cap_fit_as_it_has(folder):
    with dpt.Ledger.open(folder / "budget.sqlite") as ledger:
        account, section = ledger["patients"], Section(Problems({}), (), {"ledger": ""})
        parts = {n: _part_of_cap(section, "rho", f"cap/{n}", account) for n in range(1, 60)}
    assert all(n * exact(part) <= Fraction("0.24") for n, part in parts.items())
    assert all(n * part == pytest.approx(0.24) for n, part in parts.items())


def test_the_account_of_a_budget_is_the_part_that_it_names(tmp_path):
    parts = {"parts": ["north", "south"], "fixed_records": True}
    dpt.Ledger.create(tmp_path / "b", account="a", rho=1.0, privacy_unit="u", **parts).close()
    stated = {"ledger": "b", "account": "a", "note": "once", "rho": 0.1}
    for part in ({"part": "north"}, {}):
        section = Section(Problems({}), (), {"budget": stated | part})
        assert ("north" in repr(budget_of(section, Placeholder(None), tmp_path)[1])) == bool(part)


def test_a_part_of_the_cap_and_even_shares(folder):
    text = REPORT.replace("rho = 0.02", 'rho = "cap/12"')
    for share in ("share = 0.5 ", "share = 0.35", "share = 0.15"):
        text = text.replace(share, "")
    checked = check(folder, text)
    assert checked.budget.loss.rho == 0.02
    assert {round(table.plan.rho * 3, 12) for table in checked.tables.values()} == {0.02}


def test_a_target_within_the_budget(folder):
    checked = check(folder, REPORT.replace("share = 0.5 ", "target = { district = 40 } "))
    assert checked.tables["visits"].plan.std_errors[2] <= 40 * 1.001
    assert checked.tables["visits"].plan.rho < 0.01


def test_stated_types_open_no_file(folder):
    columns = ("region", "district", "clinic", "person", "age", "cost")
    stated = ", ".join(name + ' = "x"' for name in columns)
    types = f"types = {{ {stated} }}"
    text = REPORT.replace("max_contributions = 2", f"max_contributions = 2\n{types}")
    assert check(folder, text, "2031-01").sources["visits"].types["age"] == "x"


def test_nested_and_derived_hierarchies(folder):
    text = REPORT.replace('by = "place"\nshare', 'by = ["ages", "place"]\nshare')
    text = text.replace(
        "[budget] ", '[hierarchies.ages]\ncut = { column = "age", bins = [0, 18, 65] }\n\n[budget] '
    )
    with pytest.raises(dpt.ProgrammeError, match="entry 2: sets tables of different levels"):
        check(folder, text[: text.index("combine =")])
    text = text[: text.index("[page]")]
    plan = check(folder, text).tables["visits"].plan
    assert len(plan.level_names) == 5 and plan.domain.sources == ("region", "district", "clinic", "age")


def variants(text):
    """Texts of which one line is left out, written twice, or has a value of another type."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        yield "\n".join(lines[:number] + lines[number + 1 :])
        yield "\n".join([*lines[:number], line, *lines[number:]])
        for value in ("1", '"x"', "[]", "{}", "true", "[1, {a = 2}]", "2025-01-01", "-0.5", "nan"):
            if "=" in line:
                yield "\n".join([*lines[:number], f"{line.partition('=')[0]}= {value}", *lines[number + 1 :]])


def run_variants(folder, texts):
    for period, text in texts:
        try:
            check(folder, text, period)
        except DPTreeError as error:
            assert str(error)


ALL = [(period, each) for text, period in PROGRAMMES.values() for each in variants(text)]


def test_changed_lines(folder):
    run_variants(folder, random.Random(0).sample(ALL, 25))


@pytest.mark.slow
def test_all_changed_lines(folder):
    run_variants(folder, ALL)
