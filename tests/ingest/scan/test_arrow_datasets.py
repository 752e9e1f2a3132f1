"""Datasets of Arrow: files of one type, and of several."""

import decimal

import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.safe_errors import ReadingError, discreetly
from pandas_dptree.ingest.scan import arrow_datasets
from tests.helpers_ingest import forms, lengths

pyarrow = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")


def test_only_the_columns_needed_are_read(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a.b": [1, 2], "key": ["x", "y"], "broken": [[1], [2]]})
    parquet.write_table(table, tmp_path / "a.parquet")
    wrong = table.schema.set(2, pyarrow.field("broken", pyarrow.struct([("no", pyarrow.int8())])))
    frame = dataset.dataset(tmp_path, schema=wrong)
    batches = list(Records(frame, ["a.b", "key"]).batches())
    assert [each.table.column_names for each in batches] == [["a.b", "key"]]
    assert batches[0].column("a.b").tolist() == [1, 2]


CODES = pyarrow.dictionary(pyarrow.int8(), pyarrow.string())
SHORT, LONG = pyarrow.decimal128(5), pyarrow.decimal128(9, 2)
MICROSECONDS, NANOSECONDS = pyarrow.timestamp("us"), pyarrow.timestamp("ns")
ONE = decimal.Decimal(1)


def two_files(folder, first, second):
    """Make a dataset of two files, each described by the type and the values of its column."""
    parquet = pytest.importorskip("pyarrow.parquet")
    for place, (kind, values) in enumerate([first, second]):
        column = pyarrow.array(values, type=kind)
        parquet.write_table(
            pyarrow.table({"key": column, "n": [1] * len(column)}), folder / f"{place}.parquet"
        )
    return dataset.dataset(folder)


@pytest.mark.parametrize("is_odd", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "odd"),
    [
        ((pyarrow.float64(), 1), (pyarrow.int64(), 1), 2**53 + 1),
        ((pyarrow.int32(), 1), (pyarrow.int64(), 1), 2**31),
        ((pyarrow.int64(), 1), (pyarrow.uint64(), 1), 2**63),
        ((pyarrow.int64(), 1), (pyarrow.float64(), 1), 0.5),
        ((pyarrow.float32(), 1), (pyarrow.float64(), 1), 0.1),
        ((pyarrow.int64(), 1), (pyarrow.string(), "1"), "x"),
        ((pyarrow.string(), "1"), (pyarrow.int64(), 1), 2),
        ((pyarrow.string(), "1"), (pyarrow.binary(), b"1"), b"\xff"),
        ((CODES, "1"), (pyarrow.string(), "1"), "x"),
        ((SHORT, ONE), (LONG, ONE), ONE / 4),
        ((NANOSECONDS, 0), (MICROSECONDS, 0), 2**62),
        ((pyarrow.date32(), 0), (MICROSECONDS, 0), 1),
    ],
    ids=str,
)
def test_no_value_decides_whether_files_of_other_types_can_be_read(tmp_path, first, second, odd, is_odd):
    """Arrow converts the second file to the types of the first, which alters some values, or fails."""
    kind, regular = second
    values = [regular, odd] if is_odd else [regular]
    frame = two_files(tmp_path, (first[0], [first[1]]), (kind, values))
    for records in (frame, frame.filter(dataset.field("n") > 0)):
        with pytest.raises(ReadingError, match="has files in which 'key' is of the type") as caught:
            discreetly(["key"], lambda records=records: lengths(records))
        assert f"{kind}, not {frame.schema.field('key').type} as in the dataset" in str(caught.value)
        assert sum(lengths(records, ["n"])) == 1 + len(values)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        (pyarrow.int64(), pyarrow.int32(), -(2**31)),
        (pyarrow.int64(), pyarrow.uint32(), 2**32 - 1),
        (pyarrow.uint64(), pyarrow.uint8(), 255),
        (pyarrow.float64(), pyarrow.float32(), 0.5),
        (pyarrow.string(), pyarrow.large_string(), "x"),
        (pyarrow.large_binary(), pyarrow.binary(), b"x"),
        (pyarrow.string(), CODES, "x"),
        (pyarrow.string(), pyarrow.null(), None),
        (LONG, SHORT, decimal.Decimal(99_999)),
    ],
    ids=str,
)
def test_types_to_which_every_value_is_converted_are_read(tmp_path, first, second, value):
    frame = two_files(tmp_path, (first, [value]), (second, [value]))
    one, other = forms(frame)
    assert one == other and (one is not None or value is None)


@pytest.mark.parametrize(("format", "lines"), [("csv", "key\n1\n2\n"), ("json", '{"key": 1}\n')])
def test_types_are_not_guessed_from_the_values_of_text_files(tmp_path, format, lines):
    """One word among numbers would make all of them text, or stop Arrow."""
    (tmp_path / f"a.{format}").write_text(lines)
    frame = dataset.dataset(tmp_path, format=format)
    for records in (frame, frame.filter(dataset.field("key") > 0)):
        with pytest.raises(ArgumentError, match=f"is a dataset of '{format.title()}FileFormat'"):
            lengths(records)


def test_formats_with_types_are_read(tmp_path):
    table = pyarrow.table({"key": [2**53 + 1, None], "n": [1, 2]})
    for format in ("parquet", "feather", "orc"):
        if format == "orc":
            pytest.importorskip("pyarrow.orc").write_table(table, tmp_path / "a.orc")
            frame = dataset.dataset(tmp_path / "a.orc", format=format)
        else:
            dataset.write_dataset(table, tmp_path / format, format=format)
            frame = dataset.dataset(tmp_path / format, format=format)
        assert forms(frame) == [2**53 + 1, None]
        assert forms(frame.filter(dataset.field("n") < 2)) == [2**53 + 1]
    memory = dataset.dataset(table)
    for frame in (memory, dataset.dataset([memory, memory])):
        assert forms(frame.filter(dataset.field("n") > 1))[0] is None


def test_parts_of_another_library_are_refused():
    """What they do with types is not known."""

    class Other:
        physical_schema = pyarrow.schema([("key", pyarrow.int64())])

    with pytest.raises(ReadingError, match="is a dataset of 'Other'"):
        arrow_datasets.check_parts(Other.physical_schema, [Other()], ["key"], "frame")


def test_the_bytes_of_a_file_are_not_kept(tmp_path):
    """Arrow would keep them until the whole file is read. What the caller has stated stays as it is."""
    table = pyarrow.table({"key": ["a", "b"]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a")
    stated = dataset.ParquetFragmentScanOptions(use_buffered_stream=True)
    format = dataset.ParquetFileFormat(default_fragment_scan_options=stated)
    usual, unusual = dataset.dataset(tmp_path), dataset.dataset(tmp_path, format=format)
    assert arrow_datasets._options(usual).pre_buffer is False and forms(usual) == ["a", "b"]
    dataset.write_dataset(table, tmp_path / "more", format="feather")
    others = [unusual, dataset.dataset(tmp_path / "more", format="feather"), dataset.dataset(table)]
    for other in (*others, dataset.dataset(others[:2])):
        assert arrow_datasets._options(other) is None and forms(other)[:2] == ["a", "b"]
