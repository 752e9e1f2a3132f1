"""Records are read from files a part at a time, and each by its own file's type."""

import gzip
import sys
import tracemalloc
from pathlib import Path

import pandas as pd
import pytest

from pandas_dptree.cli.commands import main
from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.files import records
from pandas_dptree.ingest.files.records import RecordStream, open_records
from pandas_dptree.ingest.frames import Records
from tests.helpers_cases import each

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write(path, **columns):
    """Write a file of Parquet, or of CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.table(columns), path)
    else:
        text = pd.DataFrame(columns, dtype=object).to_csv(index=False).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def rows(given, *columns, table=None):
    """Read the rows of files."""
    found = pyarrow.table(open_records([str(each) for each in given], columns, table))
    return list(zip(*(found[name].to_pylist() for name in columns), strict=True))


def count(tmp_path, keys, *arguments):
    """Count by the shell command with hardly any noise: the counts of the keys, and what was printed."""
    pd.DataFrame({"k": keys}).to_parquet(tmp_path / "keys.of.k.parquet")
    domain = ["--by", "k", "--domain", str(tmp_path / "keys.of.k.parquet"), "--epsilon", "9000"]
    out = tmp_path / "out.of.k.csv"
    status = main(["counts", *map(str, arguments), *domain, "--out", str(out), "--force"])
    return [] if status else pd.read_csv(out)["count"].tolist()[1:]


# Several files.


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_all_files_of_a_pattern_are_counted(tmp_path, suffix, capsys):
    for number, keys in enumerate((["a", "b"], ["a"], [], ["c", "a"])):
        columns = {"k": keys, "who": [f"{number}{key}" for key in keys]}
        if suffix == "csv":  # each file is read by its own header
            columns = dict(list(columns.items())[:: (-1) ** number])
        write(tmp_path / "in" / f"{number}.{suffix}", **columns)
    pattern = tmp_path / "in" / f"*.{suffix}"
    unit = ["--privacy-unit", "who", "--max-contributions", "1"]
    for given in ([pattern], [pattern.parent], sorted(pattern.parent.iterdir())):
        assert count(tmp_path, ["a", "b", "c"], *given) == [3, 1, 1]
        assert count(tmp_path, ["a", "b", "c"], *given, *unit) == [3, 1, 1]
    assert main(["counts", str(pattern), "--by", "k", "--domain", "observed", "--epsilon", "9000"]) == 0
    lines = [line.split(",") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [line[1:3] for line in lines] == [["a", "3"], ["b", "1"], ["c", "1"]]


def test_a_stored_plan_is_released_from_several_files(tmp_path, capsys):
    for number in range(3):
        write(tmp_path / "in" / f"{number}.csv", k=["a", "b"], cost=[1, 2])
    keys = write(tmp_path / "keys.csv", k=["a", "b"])
    plan = [
        "--by",
        "k",
        "--domain",
        str(keys),
        "--column",
        "cost",
        "--bounds",
        "0",
        "9",
        "--epsilon",
        "90000",
    ]
    assert main(["plan", *plan, "--out", str(tmp_path / "plan.json")]) == 0
    given = [str(tmp_path / "in" / "*.csv"), "--plan", str(tmp_path / "plan.json"), "--domain", str(keys)]
    capsys.readouterr()
    assert main(["release", *given]) == 0
    assert [round(float(line.split(",")[2])) for line in capsys.readouterr().out.splitlines()[1:]] == [
        9,
        3,
        6,
    ]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"l": ["a"]}, "lacks the columns: 'k' (in '{folder}': file 2 of 2, sorted by path)."),
        ({}, "(in '{folder}': file 2 of 2, sorted by path)."),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_errors_say_which_file_it_is(tmp_path, columns, said, suffix):
    write(tmp_path / "in" / f"a.{suffix}", k=["a"])
    write(tmp_path / "in" / f"secret.{suffix}", **columns)
    with pytest.raises(ArgumentError) as caught:
        open_records([str(tmp_path / "in")], ["k"])
    assert said.format(folder=tmp_path / "in") in caught.value.fact
    assert "secret" not in str(caught.value)


def test_a_file_that_turns_out_to_be_damaged(tmp_path, capsys):
    """Its header can be read, so it is found out only when the records are read."""
    whole = write(tmp_path / "in" / "a.csv.gz", k=["a"])
    content = gzip.compress(b"k\n" + b"".join(b"secret%d\n" % each for each in range(9**5)))
    damaged = whole.with_name("b.csv.gz")
    damaged.write_bytes(content[:-9])
    assert count(tmp_path, ["a"], whole.parent) == []
    assert count(tmp_path, ["a"], damaged) == []
    printed = capsys.readouterr().err
    assert (
        f"`records` cannot be read from '{whole.parent}': file 2 of 2, sorted by path: it is damaged"
        in printed
    )
    assert f"`records` cannot be read from '{damaged}': it is damaged, or was changed" in printed
    print(printed)
    file = write(tmp_path / "c.parquet", k=[f"secret{each}" for each in range(10**5)])
    content = bytearray(file.read_bytes())
    content[100:5000] = bytes(4900)
    file.write_bytes(content)
    assert count(tmp_path, ["a"], file) == []
    printed = capsys.readouterr().err
    assert "`records` cannot be read from" in printed and "secret" not in printed


# A part at a time.


def test_the_records_are_never_in_memory_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_CSV_BATCHES", 4)
    file = tmp_path / "rows.csv"
    line = b"a," + b"x" * 200 + b"\n"
    file.write_bytes(b"k,l\n" + line * 20_000)
    stream = open_records([str(file)], ["k", "l"])
    reader = pyarrow.RecordBatchReader.from_stream(stream)
    tracemalloc.start()
    try:
        before, n_rows = pyarrow.total_allocated_bytes(), 0
        for batch in reader:
            assert pyarrow.total_allocated_bytes() - before < file.stat().st_size / 2
            n_rows += batch.num_rows
        assert tracemalloc.get_traced_memory()[1] < file.stat().st_size / 2
    finally:
        tracemalloc.stop()
    assert n_rows == 20_000


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_each_file_is_read_once(tmp_path, monkeypatch, suffix):
    """Twice only if the keys are observed: first for the keys, then for what is counted."""
    file, starts = write(tmp_path / f"rows.{suffix}", k=["a", "b"], who=["1", "2"]), []
    whole = RecordStream._batches
    monkeypatch.setattr(RecordStream, "_batches", lambda self: [starts.append(1), whole(self)][1])
    more = ["--by", "k", "--epsilon", "1", "--privacy-unit", "who", "--max-contributions", "1"]
    assert count(tmp_path, ["a"], file) and len(starts) == 1
    assert main(["counts", str(file), *more, "--domain", "observed"]) == 0 and len(starts) == 3


def test_a_stream_that_is_left_closes_its_file(tmp_path):
    file = write(tmp_path / "rows.csv", k=["a"] * 50_000)
    batches = Records(open_records([str(file)], ["k"]), ["k"]).batches(rows=1000)
    next(batches)
    held = Path("/proc/self/fd")
    if held.exists():
        assert str(file) in {str(each.resolve()) for each in held.iterdir()}
        batches.close()
        del batches
        assert str(file) not in {str(each.resolve()) for each in held.iterdir()}


def test_columns_that_are_not_needed_are_not_read(tmp_path):
    file = write(tmp_path / "rows.parquet", k=["a"], other=["b"], **{"k.l": ["c"], "k l": ["d"]})
    stream = open_records([str(file)], ["k.l", "k l"])
    assert pyarrow.table(stream).to_pydict() == {"k.l": ["c"], "k l": ["d"]}


# Types.


@each(
    ("types", "joint"),
    [
        (["int8", "int64"], "int64"),
        (["uint32", "int16"], "int64"),
        (["uint8", "uint64"], "uint64"),
        (["null", "int32"], "int32"),
        (["null", "date32", "null"], "date32[day]"),
        (["string", "large_string"], "large_string"),
    ],
)
def test_types_that_are_joined_without_a_change(tmp_path, types, joint):
    folder = tmp_path / " and ".join(types)
    for number, kind in enumerate(types):
        values = [None] if kind == "null" else [5] if "int" in kind or "date" in kind else ["5"]
        array = (
            pyarrow.array(values).cast("int32").cast(kind)
            if kind == "date32"
            else pyarrow.array(values, kind)
        )
        write(folder / f"{number}.parquet", k=array)
    table = pyarrow.table(open_records([str(folder)], ["k"]))
    assert str(table.schema.field("k").type) == joint
    assert table["k"].null_count == types.count("null") and len(table["k"].drop_null().unique()) == 1


def test_dictionaries_are_read_beside_plain_texts_and_missing_ones(tmp_path):
    text = pyarrow.array(["a", None, "b"])
    write(tmp_path / "in" / "0.parquet", k=text.dictionary_encode())
    write(tmp_path / "in" / "1.parquet", k=pyarrow.nulls(2))
    assert [key for (key,) in rows([tmp_path / "in"], "k")] == ["a", None, "b", None, None]
    write(tmp_path / "in" / "2.parquet", k=text)
    assert count(tmp_path, ["a", "b"], tmp_path / "in") == [2, 2]


@each(
    ("one", "other"),
    [
        ("int64", "double"),
        ("uint64", "int8"),
        ("int64", "string"),
        ("timestamp[us]", "timestamp[ns]"),
        ("timestamp[us]", "date32"),
        ("double", "float"),
        ("bool", "int8"),
    ],
)
def test_types_that_are_not_joined(tmp_path, one, other):
    """As in 2**53 + 1, which is 2**53 as a float."""
    for number, kind in enumerate((one, other)):
        write(
            tmp_path / "in" / f"{number}.parquet", k=pyarrow.nulls(1, pyarrow.type_for_alias(kind)), l=["x"]
        )
    with pytest.raises(ArgumentError, match="has files with different types for the column 'k'") as caught:
        open_records([str(tmp_path / "in")], ["l", "k"])
    assert all(str(pyarrow.type_for_alias(kind)) in caught.value.fact for kind in (one, other))
    assert rows([tmp_path / "in"], "l") == [("x",), ("x",)]


def test_whole_numbers_stay_themselves(tmp_path):
    large = [2**53, 2**53 + 1, -(2**63), 2**63 - 1]
    write(tmp_path / "in" / "0.parquet", k=pyarrow.array([5, None], "int8"))
    write(tmp_path / "in" / "1.parquet", k=pyarrow.array([*large, None], "int64"))
    assert [key for (key,) in rows([tmp_path / "in"], "k")] == [5, None, *large, None]
    assert count(tmp_path, large[:2], tmp_path / "in") == [1, 1]


def test_no_record_of_a_parquet_file_fails_or_rounds_the_others(tmp_path, capsys):
    keys = [2**53, 2**53 + 1]
    days = pyarrow.array([1, 2, 2**31 - 1], pyarrow.date32())  # the last is beyond Python's calendar
    number = pyarrow.array([2**53 + 1, 2**53 + 1, None])  # as floats, both would be 2**53
    parquet.write_table(
        pyarrow.table({"k": number, "day": days, "kind": number.dictionary_encode()}),
        tmp_path / "rows.parquet",
    )
    for key in ("k", "kind"):
        pd.DataFrame({key: keys}).to_parquet(tmp_path / "keys.parquet")
        assert main(
            ["counts", str(tmp_path / "rows.parquet"), "--by", key, "--domain",
            str(tmp_path / "keys.parquet"),
             "--epsilon", "9000", "--privacy-unit", "day", "--max-contributions", "1"]
        ) == 0  # fmt: skip
        lines = capsys.readouterr().out.splitlines()[2:]
        assert [line.split(",")[2] for line in lines] == ["0", "2"]


@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_no_text_fails_the_others(tmp_path, kind):
    """Arrow writes and reads texts of any bytes; only who looks at them finds that they are no text."""
    raw = pyarrow.array([b"a", b"\xff", b"a", b"b", None, b"\xffa"])
    text = pyarrow.Array.from_buffers(pyarrow.string(), len(raw), raw.buffers()).cast(kind)
    file = write(tmp_path / "in" / "rows.parquet", k=text)
    assert count(tmp_path, ["a", "b"], file) == [2, 1]
    write(tmp_path / "in" / "more.parquet", k=pyarrow.array(["b"], "large_string"))
    assert count(tmp_path, ["a", "b"], file.parent) == [2, 2]


# Keys that folders state.


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_keys_that_only_folders_state_are_texts(tmp_path, suffix):
    """Neither the names of folders nor the first file decide of which type a column is."""
    for day, names in (("1", ["a", "b"]), ("02", ["a"])):
        write(tmp_path / "in" / f"day={day}" / f"part.{suffix}", k=names)
    expected = [("02", "a"), ("1", "a"), ("1", "b")]
    assert rows([tmp_path / "in"], "day", "k") == expected
    assert rows([tmp_path / "in"], "day") == [("02",), ("1",), ("1",)]  # the files are not needed for that
    for more in ("one more", "__HIVE_DEFAULT_PARTITION__"):
        write(tmp_path / "in" / f"day={more}" / f"part.{suffix}", k=["c"])
    assert sorted(rows([tmp_path / "in"], "k", "day"), key=str)[-2:] == [("c", "one more"), ("c", None)]
    write(tmp_path / "in" / f"part.{suffix}", k=["a"])
    with pytest.raises(ArgumentError, match="lacks the columns: 'day'"):
        open_records([str(tmp_path / "in")], ["k", "day"])


def test_a_column_in_the_file_is_what_counts(tmp_path):
    file = write(tmp_path / "k=x" / "rows.parquet", k=[1, 2])
    assert rows([file], "k") == [(1,), (2,)]
    write(tmp_path / "k=3" / "rows.parquet", l=["y"])
    with pytest.raises(ArgumentError, match="different types for the column 'k': large_string, int64"):
        open_records([str(tmp_path)], ["k"])


# Options, and what is not installed.


def test_a_folder_for_temporary_files(tmp_path, capsys):
    file = write(tmp_path / "rows.csv", k=["a"], who=["1"])
    unit = ["--privacy-unit", "who", "--max-contributions", "1"]
    assert count(tmp_path, ["a"], file, *unit, "--temp-folder", tmp_path) == [1]
    assert count(tmp_path, ["a"], file, *unit, "--temp-folder", tmp_path / "none") == []
    printed = capsys.readouterr().err
    assert "`--temp-folder` must be a folder that can be written to, not '" in printed
    assert "tempfile." not in printed
    assert "Hint: " in printed


def test_the_bar_shows_no_number_of_records(tmp_path, capsys):
    pytest.importorskip("tqdm")
    file = write(tmp_path / "rows.csv", k=["a"] * 4321)
    assert count(tmp_path, ["a"], file, "--progress")
    printed = capsys.readouterr().err
    assert "reading the records" in printed and "4321" not in printed


def test_without_arrow_csv_is_read_into_memory(tmp_path, monkeypatch, capsys):
    for day, keys in (("1", ["a", "b"]), ("2", ["a"])):
        write(tmp_path / f"day={day}" / "rows.csv", k=keys)
    file = write(tmp_path / "rows.parquet", k=["a"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pd.option_context("mode.string_storage", "python"):
        found = open_records([str(tmp_path / "day=*")], ["day", "k"])
    assert found.astype(object).to_numpy().tolist() == [["1", "a"], ["1", "b"], ["2", "a"]]
    assert main(["counts", str(file), "--by", "k", "--domain", "observed", "--epsilon", "1"]) == 1
    assert "pip install pyarrow" in capsys.readouterr().err


def test_tables_are_those_of_databases(tmp_path, capsys):
    file = write(tmp_path / "rows.csv", k=["a"])
    assert count(tmp_path, ["a"], file, "--table", "visits") == []
    assert "`--table` has no meaning for CSV files" in capsys.readouterr().err
