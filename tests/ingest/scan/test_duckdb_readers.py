"""What a relation of duckdb reads is known from its plan, and everything else is refused."""

import glob
import json

import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.scan import duckdb_readers
from tests.helpers_cases import each
from tests.helpers_ingest import forms

duckdb = pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def connection():
    with duckdb.connect() as connection:
        connection.execute("create table numbers as select * from (values (1), (2)) t(key)")
        connection.execute("create view above as select * from numbers where key > 0")
        yield connection


def refusal(relation):
    with pytest.raises(ArgumentError) as caught:
        Records(relation, ["key"])
    assert caught.value.__cause__ is None
    return str(caught.value)


def written(folder, *columns, name="a'b [c] AS d"):
    """Write a file of Parquet for each column; return a pattern for all, and the files."""
    folder = folder / name
    folder.mkdir()
    files = [str(folder / f"{place} AS.parquet") for place in range(len(columns))]
    for file, column in zip(files, columns, strict=True):
        parquet.write_table(pyarrow.table({"key": column, "n": [1] * len(column)}), file)
    return f"{glob.escape(str(folder))}/*.parquet", files


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


OBJECTS = pd.DataFrame({"key": pd.Series([1, 1.0, "1"], dtype=object)})
ARROW = pyarrow.table({"key": [1, 2]})


def registered(connection, frame):
    connection.register("registered", frame)
    return connection.table("registered") if hasattr(frame, "schema") else connection.sql("from registered")


def replaced(connection, frame):
    records = frame  # noqa: F841
    return connection.sql("select key from records where key is not null")


GUESSED = {
    "from_df": lambda connection: connection.from_df(OBJECTS),
    "replaced": lambda connection: replaced(connection, OBJECTS),
    "registered": lambda connection: registered(connection, OBJECTS),
    "projected": lambda connection: connection.from_df(OBJECTS).filter("key = 1").project("key"),
    "joined": lambda connection: connection.table("numbers").join(connection.from_df(OBJECTS), "key"),
    "under an empty table": lambda connection: connection.sql("select * from numbers where key > 9").join(
        connection.from_df(OBJECTS), "key"
    ),
}


@each("made", GUESSED.values())
def test_types_are_not_guessed_from_objects_of_pandas(connection, made):
    """From a thousand of them, duckdb guesses one type, in which 1 and 1.0 may be one key."""
    message = refusal(made(connection))
    assert "reads by 'pandas_scan', in which one record may decide" in message
    assert "pyarrow.Table.from_pandas(frame)" in message


def test_text_files_are_refused(connection, tmp_path):
    (tmp_path / "a.csv").write_text("key\n1\n2\n")
    (tmp_path / "a.json").write_text('{"key": 1}\n')
    path = str(tmp_path / "a.csv")
    for relation in (
        connection.read_csv(path),
        connection.sql(f"from {quoted(path)}"),
        connection.sql(f"with a as (select * from read_csv({quoted(path)}, all_varchar=true)) from a"),
    ):
        assert "reads by 'read_csv" in refusal(relation)
    for relation in (
        connection.read_json(str(tmp_path / "a.json")),
        connection.sql(f"from '{tmp_path}/a.json'"),
    ):
        assert "reads by 'read_json" in refusal(relation)
    connection.execute(f"create view text as select * from read_csv({quoted(path)})")
    assert "reads by 'read_csv" in refusal(connection.view("text"))
    assert "reads by 'glob'" in refusal(connection.sql("select file as key from glob('*')"))


def test_what_a_function_returns_is_refused(connection):
    relation = connection.table("numbers").map(lambda frame: frame, schema={"key": int})
    assert "reads by 'python_map_function'" in refusal(relation)


SOUND = {
    "table": lambda connection: connection.table("numbers"),
    "view": lambda connection: connection.view("above"),
    "filtered": lambda connection: connection.table("numbers").filter("key > 0").project("key"),
    "never": lambda connection: connection.sql("select * from numbers where key > 0 or (false and key > 1)"),
    "values": lambda connection: connection.sql("select * from (values (1), (2)) t(key)"),
    "range": lambda connection: connection.sql("select range as key from range(1, 3)"),
    "unnest": lambda connection: connection.sql("select unnest([1, 2]) as key"),
    "cte": lambda connection: connection.sql(
        "with a as (select * from above) select a.key from a join a as b using (key)"
    ),
    "union": lambda connection: connection.sql("select 1 as key union all select 2"),
    "subquery": lambda connection: connection.sql(
        "select key from numbers where key in (select key from above)"
    ),
    "group": lambda connection: connection.sql("select key from numbers group by key"),
    "arrow": lambda connection: connection.from_arrow(ARROW),
    "arrow replaced": lambda connection: replaced(connection, ARROW),
    "arrow registered": lambda connection: registered(connection, ARROW),
    "polars": lambda connection: replaced(
        connection, pytest.importorskip("polars").DataFrame({"key": [1, 2]})
    ),
}


@each("made", SOUND.values())
def test_tables_views_and_arrow_are_read(connection, made):
    relation = made(connection)
    before = connection.sql("select current_setting('explain_output')").fetchall()[0][0].lower()
    views = connection.sql("select count(*) from duckdb_views()").fetchall()
    assert sorted(forms(relation)) == [1, 2]
    assert connection.sql("select current_setting('explain_output')").fetchall()[0][0].lower() == before
    assert connection.sql("select count(*) from duckdb_views()").fetchall() == views


def over_files(connection, pattern, files):
    """List relations over files, by all that duckdb has for that."""
    listed = ", ".join(map(quoted, files))
    for view, query in {
        "direct": f"select key from read_parquet({quoted(pattern)}) where n > 0",
        "x AS y": f"select * from parquet_scan([{listed}], union_by_name=true)",
        "nested": 'select key from "x AS y"',
    }.items():
        connection.execute(f'create or replace view "{view}" as {query}')
    return {
        "pattern": connection.from_parquet(pattern),
        "list": connection.read_parquet(files),
        "united": connection.from_parquet(pattern, union_by_name=True),
        "sql": connection.sql(f"select key from (from read_parquet([{listed}])) where key > 0"),
        "name": connection.sql(f"with a as (select * from {quoted(pattern)}) select * from a"),
        "view": connection.view("direct"),
        "views": connection.sql("select * from nested"),
        "joined": connection.table("numbers").join(connection.view("nested").set_alias("v"), "key"),
    }


@pytest.mark.parametrize("odd", [2, 2**40])
def test_no_value_decides_whether_files_of_other_types_can_be_read(connection, tmp_path, odd):
    """duckdb converts all files to the types of the first, which fails for some values."""
    columns = [pyarrow.array([1], pyarrow.int32()), pyarrow.array([odd], pyarrow.int64())]
    for name, relation in over_files(connection, *written(tmp_path, *columns)).items():
        assert "over files in which 'key' is of different types" in refusal(relation), name


def test_files_of_one_type_are_read(connection, tmp_path):
    columns = [pyarrow.array(keys, pyarrow.int64()) for keys in ([1, None], [2, 2**53 + 1])]
    expected = [1, 2, 2**53 + 1]
    for name, relation in over_files(connection, *written(tmp_path, *columns)).items():
        found = sorted(key for key in forms(relation) if key is not None)
        assert found == (expected[:2] if name == "joined" else expected), name
    _, [file] = written(tmp_path, columns[0], name="one")
    assert forms(connection.sql(f"from {quoted(file)}")) == [1, None]


def test_nested_columns_are_compared_too(connection, tmp_path):
    columns = [pyarrow.array([[1]], pyarrow.list_(kind)) for kind in (pyarrow.int32(), pyarrow.int64())]
    pattern, _ = written(tmp_path, *columns)
    assert "is of different types" in refusal(connection.from_parquet(pattern))


def test_files_that_cannot_be_listed_are_refused(connection, tmp_path):
    """They may be in a macro, which duckdb before version 2.0 does say, if it says what it reads at all."""
    columns = [pyarrow.array([1], pyarrow.int32()), pyarrow.array([2], pyarrow.int64())]
    pattern, _ = written(tmp_path, *columns)
    connection.execute("create macro files_of(pattern) as table select * from read_parquet(pattern)")
    message = refusal(connection.sql(f"select * from files_of({quoted(pattern)})"))
    assert "that cannot be listed" in message or "is of different types" in message


def test_the_check_runs_no_query(connection):
    def fail(value):
        raise AssertionError

    connection.create_function("fail", fail, ["BIGINT"], "BIGINT", side_effects=True)
    records = Records(connection.sql("select fail(key) as key from numbers"), ["key"])
    assert records.columns == ["key"]
    taken = []

    def batches():
        taken.append(1)
        yield ARROW.to_batches()[0]

    relation = connection.from_arrow(pyarrow.RecordBatchReader.from_batches(ARROW.schema, batches()))
    Records(relation, ["key"])
    assert not taken


def test_plans_of_any_form_are_walked():
    nested = json.loads('[{"a": [{"b": {}}, 1, "c"]}, 2]')
    assert len(list(duckdb_readers._walk(nested))) == 3


def test_files_in_a_macro_are_not_taken_for_others_that_the_query_names(tmp_path):
    """A file that is named and not used must not stand in for files of different types that are not named."""
    duckdb, pyarrow, parquet = map(pytest.importorskip, ("duckdb", "pyarrow", "pyarrow.parquet"))
    for name, kind in {"narrow": "int32", "wide": "int64", "unused": "int64"}.items():
        parquet.write_table(pyarrow.table({"a": pyarrow.array([1], kind)}), tmp_path / f"{name}.parquet")
    files = ", ".join(f"'{tmp_path}/{name}.parquet'" for name in ("narrow", "wide"))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE MACRO hidden() AS TABLE SELECT * FROM read_parquet([{files}])")
        unused = f"WITH unused AS (SELECT * FROM '{tmp_path}/unused.parquet')"
        with pytest.raises(ArgumentError, match=r"of Parquet that cannot be listed|of different types"):
            duckdb_readers.check_readers(connection.sql(f"{unused} SELECT * FROM hidden()"), "frame")
