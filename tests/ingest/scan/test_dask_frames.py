"""Records of dask have the values that they had before dask converted them, or they are refused."""

import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.safe_errors import silence
from pandas_dptree.ingest.scan import dask_frames

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


EXPECTED = sorted(
    ["int 5", f"int {ODD}", "int 5", "str 5", "bool True", "NoneType None", "float 5.0", "float 0.5"]
)
MADE = {
    "from_map": lambda: dataframe.from_map(part_of, range(3)),
    "with meta of numbers": lambda: dataframe.from_map(part_of, range(3), meta=PARTS[0][:0]),
    "with meta of objects": lambda: dataframe.from_map(part_of, range(3), meta=PARTS[1][:0]),
    "from_delayed": lambda: dataframe.from_delayed(
        [dask.delayed(part) for part in PARTS], meta=PARTS[1][:0], verify_meta=False
    ),
}
MAPPED = {
    "mapped": lambda: dataframe.from_pandas(pd.DataFrame({"n": [0, 1, 2]}), npartitions=3).map_partitions(
        lambda part: PARTS[part["n"].iloc[0]], meta=PARTS[0][:0]
    )
}


@pytest.mark.parametrize("made", MADE)
def test_a_text_makes_no_text_of_other_values(made):
    """By default, dask turns partitions of objects into text, and so 5 into "5"."""
    frame = MADE[made]()
    assert "'5', '5', 'True'" in str(frame.partitions[1].compute()["key"].tolist())
    assert values(frame) == EXPECTED


def test_objects_of_pandas_stay_what_they_are():
    frame = pd.DataFrame({"key": pd.Series([5, "5", None, True], dtype=object), "n": [1, 2, 3, 4]})
    read = dataframe.from_pandas(frame, npartitions=2)
    expected = sorted(["int 5", "str 5", "NoneType None", "bool True"])
    assert values(read) == expected
    assert values(read[read["n"] > 0]) == expected
    assert values(read.rename(columns={"key": "k"}), "k") == expected
    assert values(read.repartition(npartitions=1)) == expected
    assert values(read.dropna(subset=["n"]).partitions[:1]) == ["int 5", "str 5"]
    indexed = frame.set_index("key").loc[[5, "5", True]].iloc[:3]
    unsorted = dataframe.from_pandas(indexed, npartitions=2, sort=False)
    assert values(unsorted.reset_index()) == expected[1:]


@pytest.fixture(params=[None, "arrow"])
def numbers(request, tmp_path):
    """Whole numbers in two files, one of which lacks one, which dask reads as floats."""
    for name, held in {"a": [ODD, 7, None], "b": [ODD, 7, 8]}.items():
        table = pyarrow.table({"key": pyarrow.array(held, pyarrow.int64()), "n": [1, 2, 3]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    return lambda **options: dataframe.read_parquet(tmp_path, filesystem=request.param, **options)


def test_a_missing_number_does_not_round_others(numbers):
    expected = sorted(["NAType <NA>", f"int {ODD}", "int 7", f"int {ODD}", "int 7", "int 8"])
    assert values(numbers()) == values(numbers()[["key"]]) == expected
    assert values(numbers(dtype_backend="pyarrow")) == values(numbers(dtype_backend="numpy_nullable"))
    with silence():
        assert numbers().compute()["key"].tolist()[0] == 2**53
    assert values(numbers()[numbers()["n"] > 1]) == sorted(["NAType <NA>", "int 7", "int 7", "int 8"])


REFUSED = {
    "computed": lambda frame: frame.assign(key=frame["key"].fillna(0)),
    "mapped": lambda frame: frame.map_partitions(lambda part: part),
    "grouped": lambda frame: frame.drop_duplicates(subset=["key"]),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_was_computed_from_converted_values_is_refused(how, numbers):
    text = dataframe.from_map(part_of, range(3), meta=PARTS[1][:0])
    for frame in (text, numbers()):
        with pytest.raises(
            ColumnsError, match="values that it may have converted, in the columns: 'key'"
        ) as caught:
            Records(REFUSED[how](frame), ["key"])
        assert "convert-string" in caught.value.hint
    unconverted = REFUSED[how](numbers(dtype_backend="pyarrow"))
    assert len(values(unconverted)) in (4, 6)
    with dask.config.set({"dataframe.convert-string": False}):
        text = dataframe.from_map(part_of, range(3), meta=PARTS[1][:0])
        assert len(values(REFUSED["computed"](text))) == 8


def test_what_was_persisted_is_refused_if_it_may_be_converted(numbers):
    with silence():
        for persisted in (dataframe.from_map(part_of, [1]).persist(), numbers().persist()):
            with pytest.raises(ColumnsError, match="may have converted") as caught:
                Records(persisted, ["key"])
            assert "before persist()" in caught.value.hint
        exact = dataframe.from_pandas(PARTS[0].convert_dtypes(dtype_backend="pyarrow"), npartitions=2)
        assert values(exact.persist()) == ["int 5", f"int {ODD}"]


def test_each_partition_is_read_once_even_if_several_need_it(monkeypatch):
    calls = []

    def part(number):
        calls.append(number)
        return pd.DataFrame({"key": [number] * 3, "other": 1})

    frame = dataframe.from_map(part, range(5), meta=pd.DataFrame({"key": [0], "other": [0]}))
    Records(frame, ["key"]).types(["key"])
    assert calls == []
    assert len(values(frame)) == 15
    assert sorted(calls) == [0, 1, 2, 3, 4]
    calls.clear()
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dataframe.from_map(part, range(5), meta=pd.DataFrame({"key": [0], "other": [0]}))
    monkeypatch.setattr(dask_frames, "_MADE", frozenset())  # as if all were of one type
    assert len(values(frame.shuffle("key", npartitions=3))) == 15
    assert sorted(calls) == [0, 1, 2, 3, 4]


def test_reading_can_stop_early():
    calls = []

    def part(number):
        calls.append(number)
        return pd.DataFrame({"key": [number]})

    batches = Records(dataframe.from_map(part, range(99), meta=PARTS[0][:0]), ["key"]).batches()
    assert len(next(batches)) == 1
    batches.close()
    assert len(calls) < 20


def test_errors_of_a_partition_arrive():
    def fail(number):
        raise RuntimeError("of a partition")

    with pytest.raises(RuntimeError, match="of a partition"):
        list(Records(dataframe.from_map(fail, range(3), meta=PARTS[0][:0]), ["key"]).batches())


@pytest.mark.parametrize("reader", ["read_csv", "read_table", "read_fwf"])
def test_types_are_not_guessed_from_the_values_of_text_files(tmp_path, reader):
    """One word among numbers would make all of them text, and a quotation mark joins lines."""
    (tmp_path / "a.csv").write_text("key\n1\n2\n")
    frame = getattr(dataframe, reader)(tmp_path / "a.csv")
    for records in (frame, frame[frame["key"] > 0]):
        with pytest.raises(ArgumentError, match="is read by dask from text files"):
            Records(records, ["key"])


JOINED = {
    "repartition": lambda frame: frame.repartition(npartitions=1),
    "of a size": lambda frame: frame.repartition(partition_size="1MB"),
    "sort_values": lambda frame: frame.sort_values("key"),
    "shuffle": lambda frame: frame.shuffle("key"),
    "set_index": lambda frame: frame.assign(n=1).set_index("n"),
    "drop_duplicates": lambda frame: frame.drop_duplicates(),
    "head": lambda frame: frame.head(9, npartitions=3, compute=False),
}


@pytest.mark.parametrize("made", ["with meta of numbers", "from_delayed", "mapped"])
@pytest.mark.parametrize("joined", JOINED)
@pytest.mark.parametrize("text", [False, True])
def test_partitions_of_any_types_are_not_joined(made, joined, text):
    """A missing value makes floats of one partition, which then would make floats of another."""
    with dask.config.set({"dataframe.convert-string": text}):
        frame = (MADE | MAPPED)[made]()
        with pytest.raises(ArgumentError, match=r"joins partitions made by functions|may have converted"):
            Records(JOINED[joined](frame), ["key"])
        assert len(values(frame.partitions[:2])) == 6


def test_partitions_of_one_type_may_be_joined():
    frame = pd.DataFrame({"key": [ODD, ODD, 5]})
    joined = dataframe.from_pandas(frame, npartitions=2).repartition(npartitions=1)
    assert values(joined) == ["int 5", f"int {ODD}", f"int {ODD}"]


@pytest.mark.parametrize("number", [1.0, 0.5])
def test_no_value_decides_whether_files_of_other_types_can_be_read(tmp_path, number):
    for place, column in enumerate([[ODD], [number]]):
        parquet.write_table(pyarrow.table({"key": column, "n": [1]}), tmp_path / f"{place}.parquet")
    frame = dataframe.read_parquet(tmp_path, filesystem="arrow")
    with pytest.raises(ArgumentError, match="has files in which 'key' is of the type"):
        Records(frame, ["key"])
    assert values(frame, "n") == ["int 1", "int 1"]


def test_partitions_of_other_libraries_are_refused(monkeypatch):
    frame = dataframe.from_pandas(PARTS[0], npartitions=1)
    monkeypatch.setattr(type(frame), "_meta", property(lambda self: object()))
    with pytest.raises(ArgumentError, match="whose partitions are not of pandas"):
        Records(frame, ["key"])


@pytest.mark.slow
def test_a_cluster_sends_each_partition_once(cluster):
    frame = dataframe.from_map(
        lambda number: pd.DataFrame({"key": [number] * 2}), range(5), meta=PARTS[0][:0]
    )
    assert values(frame) == sorted(f"int {number}" for number in range(5) for _ in range(2))
