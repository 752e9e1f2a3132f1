"""A run never writes over what it reads, nor where the next run would read it."""

import os

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.programmes.problems import ProgrammeError
from tests.helpers_cases import each

VISITS = pd.DataFrame({"person": range(9), "region": list("NSNSNSNSN"), "day": ["2025-03-02"] * 9})


@pytest.fixture
def folder(tmp_path):
    VISITS.to_csv(tmp_path / "visits.csv", index=False)
    for name in ("v/sub", "visits.parquet"):
        (tmp_path / name).mkdir(parents=True)
    VISITS.to_parquet(tmp_path / "v" / "old.parquet")
    (tmp_path / "visits.parquet" / "precious").write_text("mine")
    pd.DataFrame({"region": ["N", "S"]}).to_csv(tmp_path / "places.csv", index=False)
    return tmp_path


def programme(folder, files, outputs, *, table="visits", write=("csv",), **more):
    document = {
        "format": "dptree 1",
        "sources": {"s": {"files": files, "privacy_unit": "person", "max_contributions": 1}},
        "hierarchies": {"place": {"by": ["region"], "domain": "places.csv"}},
        "budget": {"rho": 0.1},
        "tables": {table: {"verb": "counts", "by": "place"}},
        "outputs": {"folder": outputs, "write": list(write)},
        **more,
    }
    return dpt.Programme.from_dict(document, folder=folder)


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@each("files, outputs, table, write", [
    ("visits.csv", ".", "visits", ["csv"]), ("visits.csv", "./v/..", "visits", ["csv"]),
    ("visits.csv", ".", "places", ["csv"]), ("v/*.parquet", "v", "new", ["parquet"]),
    ("v", "v/sub", "new", ["parquet"]), ("v/**/*.parquet", "v/sub", "new", ["parquet"]),
    ("v/*", "v/sub", "new", ["parquet"]), ("visits.csv", ".", "visits", ["parquet"]),
    ("v", "v", "new", ["html"]),
])  # fmt: skip
def test_outputs_that_would_replace_or_join_what_is_read_are_refused(folder, files, outputs, table, write):
    before = everything(folder)
    made = programme(folder, files, outputs, table=table, write=write)
    with pytest.raises(ProgrammeError, match=r"outputs\.folder") as caught:
        made.run()
    assert "folder of its own" in str(caught.value) or "published" in str(caught.value)
    assert everything(folder) == before


def test_links_to_what_is_read_are_seen(folder):
    (folder / "out").mkdir()
    os.link(folder / "visits.csv", folder / "out" / "other.csv")  # another name of the same file
    (folder / "link").symlink_to(folder)
    before = everything(folder)
    with pytest.raises(ProgrammeError, match=r"outputs\.folder"):
        programme(folder, "visits.csv", "link").run()
    programme(folder, "visits.csv", "out", table="other").run()  # a new file takes the name, not the content
    assert (folder / "visits.csv").read_bytes() == before[folder / "visits.csv"]


@each("files, outputs, write", [
    ("visits.csv", "published", ["csv", "parquet", "html"]), ("vis*.csv", "published", ["csv"]),
    ("v/*.parquet", "v/sub", ["parquet"]), ("v/*.parquet", "v", ["csv"]),
])  # fmt: skip
def test_outputs_beside_what_is_read_are_written_twice_over(folder, files, outputs, write):
    made = programme(folder, files, outputs, table=f"t{len(files)}{len(outputs)}", write=write)
    assert len(made.run().released) == 1
    assert made.run().released == ()


@each("name", [".lock", "visits.csv", "visits.csv.json"])
def test_a_ledger_among_the_outputs_is_not_written_over(folder, name):
    (folder / "out").mkdir(exist_ok=True)
    dpt.Ledger.create(folder / "out" / name, account="a", rho=1.0, privacy_unit="person").close()
    budget = {"ledger": f"out/{name}", "account": "a", "note": "once", "rho": 0.1}
    with pytest.raises(ProgrammeError, match=f"write '{name}' over a file that the programme reads"):
        programme(folder, "visits.csv", "out", budget=budget).check()


def test_tables_whose_names_differ_in_capitals_alone_are_refused(folder):
    tables = {name: {"verb": "counts", "by": "place"} for name in ("visits", "Visits")}
    with pytest.raises(ProgrammeError, match="but for capitals"):
        programme(folder, "visits.csv", "published", tables=tables).check()
