"""What a page refuses is an error of the check: nothing is charged for a page that cannot be made."""

import pytest

import pandas_dptree as dpt
from tests.helpers_programmes import records

TEXT = """\
format = "dptree 1"
[sources.visits]
files = "visits.csv"
privacy_unit = "person"
max_contributions = 2
[hierarchies.place]
by = ["region", "clinic"]
domain = [["N", "a"], ["N", "b"], ["S", "c"]]
[hierarchies.clinic]
by = ["region", "clinic"]
domain = ["N", "S"]
private_keys = ["clinic"]
[budget]
ledger = "budget.sqlite"
account = "patients"
note = "once"
epsilon = 1
delta = 1e-6
[tables]
visits = { verb = "counts", by = "place" }
regions = { verb = "counts", by = "place", down_to = "region" }
ages = { verb = "sums", by = "place", columns = { cost = { bounds = [-1, 9] } } }
care = { verb = "means", by = "place", columns = { cost = { bounds = [0, 10] } } }
costs = { verb = "distribution", column = "cost", bounds = [0, 10], bins = 4 }
hidden = { verb = "counts", by = "clinic" }
[outputs]
folder = "published"
write = ["html"]
[page]
combine = { Coast = [["N"], ["S", "c"]] }
show = [
  { table = "visits" },
  { table = "visits" },
]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("rehearsals")
    records().to_csv(made / "visits.csv", index=False)
    loss = {"epsilon": 10.0, "delta": 1e-4}
    dpt.Ledger.create(made / "budget.sqlite", account="patients", privacy_unit="person", **loss).close()
    return made


def check(folder, old, new):
    assert old in TEXT
    (folder / "report.toml").write_text(TEXT.replace(old, new, 1))
    return dpt.Programme.from_file(folder / "report.toml").check()


LAST = '{ table = "visits" },\n]'
REFUSED = [
    ('table = "visits", as = "proportions", of = "nowhere"', "of is not a level: 'nowhere'"),
    ('table = "costs", as = "proportions"', "wants a table of levels"),
    ('table = "hidden", as = "proportions"', "private keys"),
    ('table = "care", as = "proportions", column = "cost"', "holds means"),
    ('table = "ages", as = "proportions"', "may be negative"),
    ('table = "visits", as = "change", before = "regions"', "other levels"),
    ('table = "visits", as = "change", before = "costs"', "wants a table of levels"),
    ('table = "visits", as = "change", before = "visits"', "the same release"),
    ('table = "hidden", as = "change"', "private keys"),
    ('tables = ["visits", "ages"], as = "change"', "compares one table"),
    ('table = "visits", order = "size"', "must be 'table' or 'value'"),
    ('table = "visits", columns = ["age"]', "is not a column of values"),
    ('table = "visits", as = "quantiles"', "wants a table of the quantiles"),
    ('table = "visits", as = "distribution"', "wants a distribution"),
    ('table = "visits", as = "top", n = 0', "must be a whole number"),
    ('table = "visits", as = "top", level = "city"', "is not a level"),
    ('table = "hidden", as = "top", level = "clinic"', "private keys"),
    ('table = "visits", as = "combine"', "without naming the areas"),
    ('table = "visits", as = "combine", areas = { A = [["N", "c"]] }', "no node of the table"),
    ('table = "visits", as = "combine", areas = { A = [["N"], ["N", "b"]] }', "overlapping"),
]


def test_entries_that_the_page_refuses(folder):
    """All at once, each with its line."""
    several = "".join(f"  {{ {entry} }},\n" for entry, _ in REFUSED)
    with pytest.raises(dpt.ProgrammeError) as caught:
        check(folder, LAST, f"{several}]")
    found = caught.value.problems
    assert [(each.line, ".".join(each.path)) for each in found] == [
        (33 + number, "page.show") for number in range(len(REFUSED))
    ]
    for number, ((_, fact), each) in enumerate(zip(REFUSED, found, strict=True), start=2):
        assert each.fact.startswith(f"entry {number}: ") and fact in each.fact and each.hint
    assert not (folder / "published").exists()


@pytest.mark.parametrize(
    ("paths", "fact"),
    [('[["N", "c"]]', "has the path ['N', 'c'], which no table"), ('[["N"], ["N", "a"]]', "has overlapping")],
)
def test_areas_that_the_page_refuses(folder, paths, fact):
    with pytest.raises(dpt.ProgrammeError) as caught:
        check(folder, '[["N"], ["S", "c"]]', paths)
    [each] = {problem.fact: problem for problem in caught.value.problems}.values()
    assert (each.line, each.path) == (30, ("page", "combine")) and fact in each.fact


def test_files_without_a_page_need_no_page_that_can_be_made(folder):
    check(folder, TEXT[TEXT.index("write") :], f'write = ["csv"]\n[page]\nshow = [{{ {REFUSED[0][0]} }}]\n')
    with pytest.raises(dpt.ProgrammeError, match="no table"):  # its keys are checked all the same
        check(folder, TEXT[TEXT.index("write") :], 'write = ["csv"]\n[page]\nshow = [{ table = "visit" }]\n')


def test_the_release_of_the_period_before_is_compared(tmp_path):
    """It may be of other levels, since the programme was another one."""
    for month in ("01", "02"):
        records().to_csv(tmp_path / f"2025-{month}.csv", index=False)
    text = TEXT[: TEXT.index("[hierarchies.clinic]")].replace("visits.csv", "{month}.csv")
    text = text.replace("[sources", 'each = "month"\n[sources', 1)
    text += "[budget]\nrho = 1\n[tables]\nvisits = { verb = 'counts', by = 'place' }\n"
    text += "[outputs]\nfolder = '{month}'\n[page]\nshow = [\n{ table = 'visits', as = 'change' }]\n"
    (tmp_path / "r.toml").write_text(text.replace("by = 'place'", "by = 'place', down_to = 'region'"))
    programme = dpt.Programme.from_file(tmp_path / "r.toml")
    programme.run("2025-01")
    programme.check("2025-02")
    (tmp_path / "r.toml").write_text(text)
    programme = dpt.Programme.from_file(tmp_path / "r.toml")
    programme.check("2025-01")
    with pytest.raises(dpt.ProgrammeError, match=r"line 18, page.show: entry 1: before has other levels"):
        programme.check("2025-02")
