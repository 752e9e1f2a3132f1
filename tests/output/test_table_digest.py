"""The digest of the values of a table: the same wherever they are, and another one for others."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree import verify
from pandas_dptree.output.table_digest import alteration, how_altered, table_digest
from tests.helpers_arrays import visits_of_the_world
from tests.helpers_cases import each
from tests.helpers_files import SUFFIXES, column
from tests.helpers_kinds import PLANS, RECORDS, REGIONS
from tests.helpers_ledger import create
from tests.helpers_random import rng
from tests.strategies import ODD_VALUES, objects


def digest_of_csv(path):
    """What the verifier computes from a file and its description."""
    described = json.loads(path.with_name(f"{path.name}.json").read_text())
    names, cells = verify.read_cells(path.read_bytes())
    floats = [verify.is_float(each["type"]) for each in described["columns"]]
    return verify.digest_of_values(names, cells, floats)


def test_the_digest_is_what_it_says_it_is():
    table = pd.DataFrame({"key": ["é", None, "é"], "count": [5, -1, 0], "error": [0.5, np.nan, -0.0]})
    numbers = np.array([5, -1, 0], "<i8").tobytes() + b"\0\0\0"
    halves = np.array([0.5, np.nan, 0.0], "<f8").tobytes()
    text = np.array([0, -1, 0], "<i4").tobytes() + (2).to_bytes(8, "little") + "é".encode()
    written = (
        b'["key", "text", 3]\n'
        + text
        + b'["count", "whole", 3]\n'
        + numbers
        + b'["error", "number", 3]\n'
        + halves
    )
    assert table_digest(table) == hashlib.sha256(written).hexdigest()


@pytest.mark.parametrize("name", list(PLANS))
def test_releases_state_it_and_files_keep_it(name, tmp_path):
    released = PLANS[name].release(RECORDS)
    assert released.attrs["dp"]["table_digest"] == table_digest(released) and not alteration(released)
    table = released.cdf(confidence=0.9) if isinstance(released, dpt.Distribution) else released
    digest = table_digest(table)
    assert table.attrs["dp"]["table_digest"] == digest
    for suffix in SUFFIXES:
        dpt.to_file(table, tmp_path / f"table{suffix}")
        assert table_digest(dpt.read_file(tmp_path / f"table{suffix}")) == digest
    assert digest_of_csv(tmp_path / "table.csv") == digest
    assert "altered" not in json.loads((tmp_path / "table.csv.json").read_text())


def test_programs_that_know_no_types_keep_it(counts, tmp_path):
    digest, path = table_digest(counts), tmp_path / "counts.csv"
    counts.dp.to_file(path)
    keys = dict.fromkeys(["level", "region", "district", "clinic"], str)
    plain = pd.read_csv(path, dtype=keys, keep_default_na=False, na_values=[""])
    assert plain.dtypes.tolist() != counts.dtypes.tolist() and table_digest(plain) == digest
    assert table_digest(plain.astype({"level": "category"}).set_index("level")) == digest
    assert table_digest(plain.astype(dict.fromkeys(keys, object) | {"count": float})) == digest
    pytest.importorskip("pyarrow")
    counts.to_parquet(tmp_path / "counts.parquet")
    assert table_digest(pd.read_parquet(tmp_path / "counts.parquet")) == digest
    assert table_digest(counts.convert_dtypes(dtype_backend="pyarrow")) == digest
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "counts.duckdb")) as connection:
        connection.register("released", counts)
        connection.execute("create table counts as select * from released")
        assert table_digest(connection.sql("from counts").df()) == digest


def test_sqlite_keeps_it(counts):
    import sqlite3

    with sqlite3.connect(":memory:") as connection:
        counts.astype({"level": str}).to_sql("counts", connection, index=False)
        assert table_digest(pd.read_sql("select * from counts", connection)) == table_digest(counts)


def test_trees_of_datasets():
    tree = visits_of_the_world().dp.tree_counts(["state", "city"], epsilon=1.0)
    stated = json.loads(tree.attrs["dp"])["table_digest"]
    assert stated == table_digest(tree) == table_digest(tree.copy(deep=True))
    tree["city"]["count"].values[0] += 1
    assert stated != table_digest(tree)


@each(
    "one, other",
    [
        (["ab", "c"], ["a", "bc"]),
        (["a", None], ["a", ""]),
        (["a", "b"], ["b", "a"]),
        (["1", "01"], ["1", "1"]),
        (["1.0"], ["1"]),
        (["a", "a"], ["a"]),
        ([1, None], [1, 0]),
        ([0.1], [0.1 + 2**-56]),
        ([2**63 - 1], [2**63 - 2]),
        ([2**53 + 1], [2**53]),
        ([2**63 + 1], [2**63]),
        (["True"], ["true"]),
        ([pd.Timestamp(0)], [pd.Timestamp(1)]),
    ],
)
def test_other_values_have_another_digest(one, other):
    assert table_digest(column(one)) != table_digest(column(other))


def test_names_and_the_order_of_columns_count():
    table = pd.DataFrame({"a": [1], "b": [2]})
    others = [table[["b", "a"]], table.rename(columns={"a": "c"}), table[["a"]], table.iloc[:0]]
    assert len({table_digest(each) for each in [table, *others]}) == 5


@each(
    "values",
    [
        objects(["a\x00", "\ud800", "", np.nan, "a\n", 'b"', ","]),
        objects([1, "1", True, None]),
        pd.Series([0.1, -0.0, np.inf, -np.inf, np.nan, 1e300]),
        pd.Series([1.0, np.nan, -0.0]),
        pd.Series([0.1, 3.0], dtype="float32"),
        pd.Series(pd.date_range("2024-10-27", periods=4, freq="h", tz="Europe/Berlin", unit="s")),
        pd.Series(pd.arrays.IntervalArray.from_tuples([(0.0, 1.5), np.nan])),
        pd.Series(pd.period_range("2024-01", periods=2, freq="W")),
        pd.Series(pd.Categorical([1.5, None, 1.0], categories=[2.0, 1.0, 1.5])),
        pd.Series(pd.Categorical(["b", None, "b"], categories=["never", "b"])),
        pd.Series([True, None], dtype="boolean"),
        pd.Series([2**63 + 1, None], dtype="UInt64"),
        pd.Series([2**62 + 1, None], dtype="Int64"),
        pd.Series(["", None, "NA", "001"]),
        pd.Series([None, None], dtype="Int64"),
        pd.Series([], dtype="float64"),
    ],
)
def test_every_type_in_every_file(tmp_path, values):
    table = column(values)
    for suffix in SUFFIXES:
        dpt.to_file(table, tmp_path / f"table{suffix}")
        assert table_digest(dpt.read_file(tmp_path / f"table{suffix}")) == table_digest(table)
    assert digest_of_csv(tmp_path / "table.csv") == table_digest(table)


def test_no_column_raises():
    odd = pd.DataFrame({"a": objects([{}, object]), "b": [1j, 2], "c": objects([[], {1}])}, index=["x", "y"])
    assert len(table_digest(odd)) == 64
    for value in ODD_VALUES:
        table = pd.DataFrame({"key": objects([value, "a"]), "more": objects([None, value])})
        assert len(table_digest(table)) == 64


EDITS = [
    lambda counts: counts.assign(count=counts["count"] * 3),
    lambda counts: counts[counts["level"] != "total"],
    lambda counts: counts.iloc[::-1],
    lambda counts: counts.drop(columns="std_error"),
    lambda counts: counts.assign(region=counts["region"].str.upper()),
]


@each("edit", EDITS)
def test_edited_tables_are_seen_in_files(counts, tmp_path, edit):
    table = edit(counts)
    assert alteration(table).startswith("not the whole released table") and not alteration(counts)
    for suffix in SUFFIXES:
        dpt.to_file(table, tmp_path / f"table{suffix}")
        assert alteration(dpt.read_file(tmp_path / f"table{suffix}")) == alteration(table)
    described = json.loads((tmp_path / "table.csv.json").read_text())
    assert described["altered"] == alteration(table)


def test_edited_tables_are_seen_on_pages():
    counts = dpt.tree_counts(RECORDS, ["region"], domain=REGIONS, epsilon=1.0, rng=rng())
    assert "not the whole" not in counts.dp.to_html()
    for edit in EDITS[:2]:
        assert "This is not the whole released table" in edit(counts).dp.to_html()
    old = counts.copy()
    del old.attrs["dp"]["table_digest"]
    assert not alteration(old) and not alteration(EDITS[0](old))


@pytest.fixture
def charged(tmp_path):
    """A table and the ledger that keeps it."""
    with create(tmp_path, privacy_unit=dpt.ROWS) as ledger:
        yield PLANS["AdditivePlan"].release(RECORDS, ledger=ledger["patients"], note="one"), ledger


def test_the_ledger_tells_selected_rows_from_changed_values(charged):
    counts, ledger = charged
    assert "not the whole" not in counts.dp.to_html(ledger=ledger)
    for edit, words in [
        (EDITS[0], "values were changed after the release."),
        (EDITS[1], "rows were selected or moved; their values are those of the release."),
        (EDITS[2], "rows were selected or moved; their values are those of the release."),
    ]:
        table = edit(counts)
        table.attrs["dp"]["table_digest"] = table_digest(table)  # as a forger would
        assert not alteration(table)
        assert f"This is not the whole released table: {words}" in table.dp.to_html(ledger=ledger)


def test_ledgers_that_are_not_those_of_the_table(charged, tmp_path):
    counts, ledger = charged
    with pytest.raises(dpt.ArgumentError, match="must be a ledger, not a str"):
        how_altered(counts, "budget.sqlite")
    with pytest.raises(dpt.ArgumentError, match="as the table states"):
        how_altered(PLANS["AdditivePlan"].release(RECORDS), ledger)
    with create(tmp_path, "other.sqlite", privacy_unit=dpt.ROWS) as other:
        PLANS["AdditivePlan"].release(RECORDS, ledger=other["patients"], note="one")
        with pytest.raises(dpt.ArgumentError, match="its charge has another digest"):
            how_altered(counts, other)


def test_edited_distributions_are_seen():
    released = RECORDS.dp.release_distribution("cost", bounds=(0, 500), bins=4, epsilon=1.0, rng=rng())
    assert repr(released) == "Distribution of 'cost' in 4 bins"
    released.estimates[0, 0] += 1
    assert "in 4 bins: not the whole released table" in repr(released)
