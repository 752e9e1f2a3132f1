"""Tables of a database of duckdb: found by name, opened for reading, and closed afterwards."""

import subprocess
import sys

import pytest

from pandas_dptree.cli.commands import main
from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.files.records import open_records
from tests.helpers_cases import each

duckdb = pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "create table visits as select * from (values ('a', 1), ('b', 2), ('a', 3)) as t(k, who)"
        )
        connection.execute("create schema old")
        connection.execute("create table old.visits as select 'secret' as k, 1 as who")
        connection.execute("create table old.beds as select 'b' as k, 2::hugeint as who")
        connection.execute('create table "a ""b"".c;--" as select 5 as "k ""k"".1"')
        connection.execute("create view both_of_them as select * from visits union all select * from visits")
    return path


def rows(database, table, *columns):
    found = pyarrow.table(open_records([str(database)], columns, table))
    return list(zip(*(found[name].to_pylist() for name in columns), strict=True))


@each(
    ("table", "found"),
    [
        ("main.visits", ["a", "b", "a"]),
        ("old.visits", ["secret"]),
        ('"old"."visits"', ["secret"]),
        ("beds", ["b"]),
        ("both_of_them", ["a", "b", "a"] * 2),
    ],
)
def test_a_table_is_found_by_its_name(database, table, found):
    assert [key for (key,) in rows(database, table, "k")] == found


def test_names_with_quotes(database):
    assert rows(database, 'a "b".c;--', 'k "k".1') == rows(database, 'main.a "b".c;--', 'k "k".1') == [(5,)]


@each(
    ("table", "said"),
    [
        (None, "`--table` must be given for a database.\nHint: the database has the tables ['a \"b\".c;--',"),
        ("vists", "`--table` is not in the database: 'vists'.\nHint: it has the tables ["),
        ("visits", "`--table` means several tables: 'visits'.\nHint: name one of "),
        ("visits where k = 'a'", "`--table` is not in the database"),
        ("main.visits", "`records` lacks the columns: 'K'"),
    ],
)
def test_tables_that_are_not_found(database, table, said, capsys):
    more = [] if table is None else ["--table", table]
    assert main(["counts", str(database), *more, "--by", "K", "--domain", "observed", "--epsilon", "1"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(f"dptree: {said}") and "secret" not in printed.err


def released(database, epsilon):
    """Return the command that counts the visits in a database."""
    rest = f"--table main.visits --by k --domain observed --epsilon {epsilon}"
    return ["counts", str(database), *rest.split()]


def test_counts_from_a_database(database, capsys):
    for unit in ([], ["--privacy-unit", "who", "--max-contributions", "1"]):
        assert main([*released(database, "9000"), *unit]) == 0
        assert [line.split(",")[2] for line in capsys.readouterr().out.splitlines()[2:]] == ["2", "1"]
    before = database.read_bytes()
    with duckdb.connect(str(database)) as connection:  # it is neither open nor locked any more
        connection.execute("insert into visits values ('c', 4)")
    assert database.read_bytes() != before
    assert not list(database.parent.glob("*.tmp")) and not list(database.parent.glob("*.wal"))


def test_a_database_that_another_process_has_locked(database, capsys):
    program = f"""
import duckdb
connection = duckdb.connect({str(database)!r})
print("locked", flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        assert main(released(database, "1")) == 2
        other.communicate("\n")
    printed = capsys.readouterr().err
    assert "another process has locked the database.\nHint: " in printed and "PID" not in printed


@each("content", [b"", b"k\nsecret\n", b"SQLite format 3\0secret", b"12345678DUCKsecret"])
def test_files_that_are_no_database(tmp_path, content, capsys):
    """duckdb itself would read a file of CSV as a table, and look for an extension to read one of SQLite."""
    path = tmp_path / "rows.duckdb"
    path.write_bytes(content)
    given = [str(path), "--table", "rows", "--by", "k", "--domain", "observed", "--epsilon", "1"]
    assert main(["counts", *given]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("dptree: `records` ") and "Hint: " in printed and "secret" not in printed
    assert [each.name for each in tmp_path.iterdir()] == ["rows.duckdb"]


def test_a_database_that_is_missing(tmp_path):
    with pytest.raises(ArgumentError, match="cannot be read from"):
        open_records([str(tmp_path / "none.duckdb")], ["k"], "rows")
    assert not list(tmp_path.iterdir())


def test_one_database_at_a_time(database):
    other = database.with_name("other.duckdb")
    other.write_bytes(database.read_bytes())
    with pytest.raises(ArgumentError, match="are several databases"):
        open_records([str(database), str(other)], ["k"], "beds")


def test_without_duckdb(database, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    given = [str(database), "--table", "beds", "--by", "k", "--domain", "observed", "--epsilon", "1"]
    assert main(["counts", *given]) == 1
    assert "Reading DuckDB needs the package 'duckdb'" in capsys.readouterr().err


def test_a_large_table_is_read_a_part_at_a_time(tmp_path):
    path = tmp_path / "large.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "create table rows as select i % 7 as k, repeat('x', 90) || i as l from range(250000) t(i)"
        )
    reader = pyarrow.RecordBatchReader.from_stream(open_records([str(path)], ["k", "l"], "rows"))
    assert sum(batch.num_rows for batch in reader if batch.num_rows < 200_000) == 250_000
    stream = open_records([str(path)], ["k", "l"], "rows")
    reader = pyarrow.RecordBatchReader.from_stream(stream)
    reader.read_next_batch()
    del reader  # which ends the query, and closes the database
    with duckdb.connect(str(path)) as connection:
        connection.execute("drop table rows")
