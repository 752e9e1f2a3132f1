"""Relations of duckdb."""

import pytest

import pandas_dptree as dpt
from pandas_dptree.hierarchy.columns import kind_of
from pandas_dptree.hierarchy.values import canonical_codes
from pandas_dptree.ingest.frames import Records
from tests.helpers_cases import each

duckdb = pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture
def connection():
    with duckdb.connect() as connection:
        yield connection


def read(relation, name, **options):
    return [key for batch in Records(relation, [name]).batches(**options) for key in forms(batch, name)]


def forms(batch, name):
    codes, keys = canonical_codes(batch.column(name))
    return [None if code < 0 else keys[code] for code in codes.tolist()]


def test_names_may_be_anything(connection):
    names = ["a", "A", 'quo"ted', "a.b", "x y", "select", ""]
    table = pyarrow.table({name: [place] for place, name in enumerate(names)})
    relation = connection.from_arrow(table)
    listed = relation.columns
    assert len(set(listed)) == len(names)
    for place, name in enumerate(listed):
        assert read(relation, name) == [place]
    [batch] = Records(relation, listed).batches()
    assert [batch.column(name).tolist() for name in listed] == [[place] for place in range(len(names))]


VALUES = {
    "true": "booleans", "1::tinyint": "numbers", "1::smallint": "numbers", "1::integer": "numbers",
    "1::bigint": "numbers", "1::utinyint": "numbers", "1::usmallint": "numbers", "1::uinteger": "numbers",
    "1::ubigint": "numbers", "1::hugeint": "numbers", "1::uhugeint": "numbers", "1::float": "numbers",
    "1::double": "numbers", "1::decimal(5, 2)": "decimals", "1::decimal(38, 2)": "decimals", "'a'": "text",
    "'a'::enumerated": "text", "'a'::blob": "bytes", "date '2024-01-01'": "times",
    "time '10:00'": "times of day", "timestamp '2024-01-01'": "times", "timestamp_s '2024-01-01'": "times",
    "timestamp_ms '2024-01-01'": "times", "timestamp_ns '2024-01-01'": "times",
    "timestamptz '2024-01-01'": "times with a time zone", "uuid()": "objects", "interval 1 day": "objects",
    "'101'::bit": "objects", "[1]": "objects", "{'x': 1}": "objects", "map {1: 2}": "objects",
    "[1, 2]::integer[2]": "objects", "null": None,
}  # fmt: skip


@each("value", VALUES)
def test_types_are_those_of_the_values(value, connection):
    if value == "'a'::enumerated":
        connection.execute("create type enumerated as enum ('a', 'b')")
    relation = connection.sql(f"select {value} as k union all select null")
    records = Records(relation, ["k"])
    kind = kind_of(records.types(["k"])["k"])
    assert kind == VALUES[value] or VALUES[value] is None
    [batch] = records.batches()
    if "hugeint" in value:
        return  # decimals without places, or bytes before version 1.3
    assert kind_of(batch.column("k").dtype) == kind or kind == "objects"
    found, missing = forms(batch, "k")
    assert missing is None and (found is not None or value == "null")


def test_large_numbers_stay_what_they_are(connection):
    numbers = [2**53 + 1, 2**63 - 1, -(2**63), None]
    listed = ", ".join(f"({'null' if each is None else repr(str(each))}::bigint)" for each in numbers)
    assert read(connection.sql(f"select * from (values {listed}) t(k)"), "k") == numbers
    assert read(connection.sql(f"select {2**100}::hugeint as k"), "k") == [2**100]


def test_a_collation_changes_no_value(connection):
    connection.execute("create table t (k varchar collate nocase)")
    connection.execute("insert into t values ('a'), ('A'), ('A '), ('a')")
    assert read(connection.table("t"), "k") == ["a", "A", "A ", "a"]


def test_a_query_is_run_once_and_when_it_is_needed(connection):
    """Each batch is read when it is needed, and another query can be run afterwards."""
    taken = []

    def batches():
        for start in range(3):
            taken.append(start)
            yield pyarrow.record_batch({"k": [start], "other": [[1]]})

    schema = pyarrow.schema([("k", pyarrow.int64()), ("other", pyarrow.list_(pyarrow.int64()))])
    relation = connection.from_arrow(pyarrow.RecordBatchReader.from_batches(schema, batches()))
    records = Records(relation, ["k"])
    records.types(["k"])
    started = records.batches(rows=2)
    assert taken == []
    assert sum(len(each) for each in started) == 3
    assert taken == [0, 1, 2]
    assert connection.sql("select 1").fetchall() == [(1,)]


def test_reading_can_stop_early(connection):
    batches = Records(connection.sql("select range as k from range(1000000)"), ["k"]).batches(rows=1000)
    assert len(next(batches)) <= 1000
    batches.close()
    assert connection.sql("select 1").fetchall() == [(1,)]


def test_rows_that_were_fetched_before_are_read_too(connection):
    relation = connection.sql("select range as k from range(5)")
    if hasattr(relation, "fetchone"):  # before version 2.0
        relation.fetchone()
    assert sorted(read(relation, "k")) == list(range(5))
    assert sorted(read(relation, "k")) == list(range(5))


def test_older_versions_name_the_reader_differently(connection, monkeypatch):
    relation = connection.sql("select range as k from range(5)")
    read_older = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else None

    class Older:
        """A relation as before version 1.4."""

        columns, types, query, explain = relation.columns, relation.types, relation.query, relation.explain

        def project(self, listed):
            assert listed == '#1 AS "c0"'
            return self

        def fetch_arrow_reader(self, rows):
            return (read_older or relation.fetch_arrow_reader)(rows)

    Older.__module__, Older.__qualname__ = "duckdb.duckdb", "DuckDBPyRelation"
    assert read(Older(), "k") == list(range(5))


def test_whole_numbers_of_128_bits_are_observed_keys():
    relation = duckdb.sql("select (i % 2)::HUGEINT as k from range(10) as t(i)")
    table = dpt.tree_counts(relation, ["k"], domain="observed", epsilon=50.0)
    assert table["count"].tolist() == [10, 5, 5]
