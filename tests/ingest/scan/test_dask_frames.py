"""Records of dask have the values that they had before dask converted them, or they are refused by name."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.safe_errors import silence
from pandas_dptree.ingest.scan import dask_frames
from tests.helpers_cases import each

dask = pytest.importorskip("dask")
dataframe = pytest.importorskip("dask.dataframe")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ODD = 2**53 + 1
PARTS = [
    pd.DataFrame({"key": [5, ODD]}),
    pd.DataFrame({"key": pd.Series([5, "5", True, None], dtype=object)}),
    pd.DataFrame({"key": [5.0, 0.5]}),
]


def part_of(number):
    return PARTS[number]


def values(frame, column="key"):
    """List the values of a column, with their types."""
    with silence():
        read = [
            each for batch in Records(frame, [column]).batches() for each in batch.column(column).tolist()
        ]
    return sorted(f"{type(each).__name__} {each}" for each in read)


def refusal(frame, columns=("key",)):
    """Return the error that refuses a frame."""
    with silence(), pytest.raises(ArgumentError) as caught:
        Records(frame, columns)
    assert caught.value.__cause__ is None
    return caught.value


def read_json(folder):
    keys = ["01"] * 400 + ["1"] * 300 + ["x"]
    (folder / "a.json").write_text("\n".join(json.dumps({"key": key}) for key in keys))
    return dataframe.read_json(folder / "a.json", lines=True)


def read_orc(folder):
    orc = pytest.importorskip("pyarrow.orc")
    orc.write_table(
        pyarrow.table({"key": pyarrow.array([2**53, ODD, None], pyarrow.int64())}), folder / "a.orc"
    )
    return dataframe.read_orc(str(folder / "a.orc"))


def _read_sql_chunk(query):
    return pd.DataFrame({"key": [1.0, None]})


def read_sql(folder):
    """Make what dask.dataframe.read_sql_table makes, without SQLAlchemy."""
    parts = [dask.delayed(_read_sql_chunk)(query) for query in range(2)]
    return dataframe.from_delayed(parts, meta=pd.DataFrame({"key": [1]}))


def read_text(reader):
    def read(folder):
        (folder / "a.csv").write_text("key\n1\n2\n")
        return getattr(dataframe, reader)(folder / "a.csv")

    return read


class Reader:
    """A function of `from_map` may be any object that can be called."""

    def __call__(self, number):
        return PARTS[number]


def from_pandas(frame=PARTS[0], **options):
    return dataframe.from_pandas(frame, npartitions=2, **options)


MADE = {
    "read_json_file": read_json,
    "_read_orc": read_orc,
    "read_sql_chunk": read_sql,
    "_read_csv": read_text("read_csv"),
    "_read_csv ": read_text("read_table"),
    "_read_csv  ": read_text("read_fwf"),
    "part_of": lambda _: dataframe.from_map(part_of, range(3)),
    "part_of ": lambda _: dataframe.from_map(partial(part_of), range(3), meta=PARTS[1][:0]),
    "Reader": lambda _: dataframe.from_map(Reader(), range(3), meta=PARTS[0][:0]),
    "part_of  ": lambda _: dataframe.from_delayed([dask.delayed(part_of)(0)], meta=PARTS[0]),
    "<lambda>": lambda _: from_pandas().map_partitions(lambda part: part),
}


@each("text", [False, True])
@each("function, made", MADE.items())
def test_what_functions_make_is_refused_by_their_name(tmp_path, function, made, text):
    """They take types from the values of a partition, so one word or missing value changes all others."""
    with dask.config.set({"dataframe.convert-string": text}):
        frame = made(tmp_path)
    for records in (frame, frame[["key"]], frame.repartition(npartitions=1), frame[frame["key"] != 0]):
        error = refusal(records)
        assert f"is made by the function '{function.strip()}'" in str(error)
        assert "write it to Parquet first, with types that you state" in error.hint


STEPS = {
    "Assign": lambda frame: frame.assign(key=frame["key"] + 1),
    "Fillna": lambda frame: frame.fillna(0),
    "AsType": lambda frame: frame.astype({"key": float}),
    "Clip": lambda frame: frame.clip(0, 1),
    "Merge": lambda frame: frame.merge(frame, on="key", how="left"),
    "DropDuplicates": lambda frame: frame.drop_duplicates(),
    "Concat": lambda frame: dataframe.concat([frame, from_pandas(PARTS[2])]),
    "SetIndex": lambda frame: frame.assign(n=frame["key"]).set_index("n"),
    "SortValues": lambda frame: frame.sort_values("key"),
    "Shuffle": lambda frame: frame.shuffle("key"),
    "Head": lambda frame: frame.head(1, npartitions=-1, compute=False),
    "Tail": lambda frame: frame.tail(1, compute=False),
    "Sample": lambda frame: frame.sample(frac=0.5),
    "Query": lambda frame: frame.query("key > key.mean()"),
    "Mean": lambda frame: frame[frame["key"] > frame["key"].mean()],
    "Isin": lambda frame: frame[frame["key"].isin(frame["key"].repartition(npartitions=1))],
    "ResetIndex": lambda frame: frame.reset_index(),
    "Partitions": lambda frame: frame.partitions[:1],
    "FromGraph": lambda frame: frame.persist(),
    "FromArray": lambda frame: dataframe.from_array(np.zeros((2, 1)), columns=["key"]),
    "Fused": lambda frame: frame[frame["key"] > 0].optimize(),
}


@each("step, made", STEPS.items())
def test_steps_that_are_no_selections_are_refused_by_name(step, made):
    with silence():
        error = refusal(made(from_pandas()))
    assert "of dask, in which one record may affect others" in str(error), error
    named = str(error).partition("by the step '")[2].partition("'")[0]
    assert named.startswith(step) or step in ("Concat", "Merge", "SetIndex", "SortValues", "Shuffle"), named
    assert ("before persist()" in error.hint) == (step == "FromGraph")


def test_what_only_has_the_name_of_a_reader_is_refused():
    frame = from_pandas()
    kind, operands = type(frame.expr), [*frame.expr.operands]
    operands[frame.expr._parameters.index("npartitions")] = 1  # another name than that of the reader itself
    for module in (kind.__module__, "pandas_dptree"):
        forged = type(kind.__name__, (kind,), {"__module__": module})
        error = refusal(type(frame)(forged(*operands)))
        assert "is made by the step 'FromPandas' of dask" in str(error)


def test_columns_that_are_not_needed_may_be_made_by_anything():
    frame = from_pandas(PARTS[0].assign(n=1)).assign(other=1)
    assert values(frame) == ["int 5", f"int {ODD}"]


def test_objects_of_pandas_stay_what_they_are():
    """By default, dask turns partitions of objects into text, and so 5 into "5"."""
    frame = pd.DataFrame({"key": pd.Series([5, "5", None, True], dtype=object), "n": [1, 2, 3, 4]})
    read = dataframe.from_pandas(frame, npartitions=2)
    expected = sorted(["int 5", "str 5", "NoneType None", "bool True"])
    assert values(read) == expected
    assert values(read[read["n"] > 0]) == values(read[(read["n"] > 0) & ~(read["n"] == 9)]) == expected
    assert values(read.rename(columns={"key": "k"}), "k") == expected
    assert values(read.dropna(subset=["n"])[read["n"].between(1, 2)]) == ["int 5", "str 5"]
    assert values(dataframe.from_pandas(frame.iloc[::-1], npartitions=2, sort=False)) == expected
    for options in ({"npartitions": 1}, {"npartitions": 4}, {"partition_size": "1MB"}, {"divisions": [0, 3]}):
        assert values(read.repartition(**options)) == expected
    mixed = pd.DataFrame({"key": pd.Series([ODD, 0.5], dtype=object)})
    assert values(dataframe.from_pandas(mixed, npartitions=2)) == ["float 0.5", f"int {ODD}"]


@pytest.fixture(params=[None, "arrow"])
def numbers(request, tmp_path):
    """Whole numbers in two files, one of which lacks one, which dask reads as floats."""
    for name, held in {"a": [ODD, 7, None], "b": [ODD, 7, 8]}.items():
        table = pyarrow.table({"key": pyarrow.array(held, pyarrow.int64()), "n": [1, 2, 3]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    return partial(dataframe.read_parquet, tmp_path, filesystem=request.param)


def test_a_missing_number_does_not_round_others(numbers):
    expected = sorted(["NAType <NA>", f"int {ODD}", "int 7", f"int {ODD}", "int 7", "int 8"])
    assert values(numbers()) == values(numbers()[["key"]]) == expected
    assert values(numbers(dtype_backend="pyarrow")) == values(numbers(dtype_backend="numpy_nullable"))
    with silence():
        assert numbers().compute()["key"].tolist()[0] == 2**53
    assert values(numbers()[numbers()["n"] > 1]) == sorted(["NAType <NA>", "int 7", "int 7", "int 8"])
    assert values(numbers().repartition(npartitions=1)) == expected


def test_options_change_no_value(numbers):
    expected = values(numbers())
    options = {"types_mapper": {pyarrow.int64(): pd.Float64Dtype()}.get}
    assert values(numbers(arrow_to_pandas=options)) == expected
    assert values(numbers(categories=["key"], columns=["key"])) == expected


def test_a_large_number_does_not_stop_a_filter(numbers):
    """Arrow would convert whole numbers to the type of the number that they are compared with, or fail."""
    frame = numbers()
    assert values(frame[frame["key"] > 7.5]) == ["int 8", f"int {ODD}", f"int {ODD}"]
    assert values(frame[(frame["key"] > 7.5) | (frame["n"] < 0.5)]) == ["int 8", f"int {ODD}", f"int {ODD}"]


@each("number", [1.0, 0.5])
@each("filesystem", [None, "arrow"])
def test_no_value_decides_whether_files_of_other_types_can_be_read(tmp_path, number, filesystem):
    for place, column in enumerate([[ODD], [number]]):
        parquet.write_table(pyarrow.table({"key": column, "n": [1]}), tmp_path / f"{place}.parquet")
    frame = dataframe.read_parquet(tmp_path, filesystem=filesystem)
    assert "has files in which 'key' is of the type" in str(refusal(frame))
    assert values(frame, "n") == ["int 1", "int 1"]
    if number == 1:
        frame = dataframe.read_parquet(tmp_path, filesystem=filesystem, filters=[("key", ">", 0)])
        assert "has files in which 'key' is of the type" in str(refusal(frame, ["n"]))


@each("filesystem", [None, "arrow"])
def test_keys_in_names_of_directories_are_refused(tmp_path, filesystem):
    """dask guesses their type from all of them."""
    for key in ("1", "2"):
        (tmp_path / f"key={key}").mkdir(exist_ok=True)
        parquet.write_table(pyarrow.table({"n": [1]}), tmp_path / f"key={key}" / "a.parquet")
    frame = dataframe.read_parquet(tmp_path, filesystem=filesystem)
    error = refusal(frame)
    assert isinstance(error, ColumnsError) and "names of directories" in str(error)
    assert values(frame, "n") == ["int 1", "int 1"]


def test_another_engine_is_refused(numbers):
    engine = pytest.importorskip("dask.dataframe.io.parquet.arrow").ArrowDatasetEngine
    frame = numbers()
    if "engine" in frame.expr._parameters:
        other = type("ArrowDatasetEngine", (engine,), {})
        assert "by an engine that is not dask's own" in str(refusal(numbers(engine=other)))


def test_partitions_of_other_libraries_are_refused(monkeypatch):
    frame = from_pandas()
    monkeypatch.setattr(type(frame), "_meta", property(lambda self: object()))
    assert "whose partitions are not of pandas" in str(refusal(frame))


def test_each_partition_is_read_once_even_if_several_need_it():
    calls = []

    def part(number):
        calls.append(number)
        return number

    made = [dask.delayed(part)(number) for number in range(5)]
    joined = [dask.delayed(pd.DataFrame)({"key": [one, made[0]]}) for one in made]
    assert calls == []
    found = [frame["key"].tolist() for frame in dask_frames._here(joined)]
    assert sorted(found) == [[number, 0] for number in range(5)]
    assert sorted(calls) == [0, 1, 2, 3, 4]


def test_reading_can_stop_early():
    calls = []
    parts = [dask.delayed(calls.append)(number) for number in range(99)]
    batches = dask_frames._here(parts)
    assert next(batches) is None
    batches.close()
    assert len(calls) < 20


def test_errors_of_a_partition_arrive(tmp_path):
    parquet.write_table(pyarrow.table({"key": [1]}), tmp_path / "a.parquet")
    records = Records(dataframe.read_parquet(tmp_path), ["key"])
    (tmp_path / "a.parquet").write_bytes(b"nothing")
    with silence(), pytest.raises(pyarrow.ArrowInvalid):
        list(records.batches())


@pytest.mark.slow
def test_what_a_cluster_holds_already_is_refused(cluster):
    assert "before persist()" in refusal(from_pandas().persist()).hint
