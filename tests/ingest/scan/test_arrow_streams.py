"""Tables, readers and streams of Arrow."""

import gc
import io

import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError, MissingExtraError
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.observed_keys import key_frame
from pandas_dptree.ingest.safe_errors import discreetly
from pandas_dptree.ingest.scan import arrow_streams, base
from tests.helpers_engines import Exported
from tests.helpers_ingest import ARROW, encoded, forms, lengths

pyarrow = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")

SCHEMA = pyarrow.schema([("key", pyarrow.string()), ("other", pyarrow.list_(pyarrow.int64()))])


def batch(*keys):
    return pyarrow.record_batch({"key": list(keys), "other": [[1]] * len(keys)}, schema=SCHEMA)


class Counted:
    """Batches that are counted as they are taken."""

    def __init__(self, batches):
        self.batches, self.taken = batches, 0

    def reader(self):
        return pyarrow.RecordBatchReader.from_batches(SCHEMA, self)

    def __iter__(self):
        for each in self.batches:
            self.taken += 1
            yield each


def test_large_batches_are_cut_and_small_ones_joined():
    table = pyarrow.table({"key": ["a"] * 100})
    assert lengths(table, rows=30) == [25] * 4
    assert lengths(table.to_reader(max_chunksize=1), rows=40) == [10] * 10
    assert lengths(table.to_reader(max_chunksize=7), rows=10) == [7] * 14 + [2]
    assert lengths(table.to_reader(), rows=99) == [50, 50]
    assert lengths(pyarrow.table({"key": []}), rows=10) == []
    assert lengths(pyarrow.table({"key": ["a"]}).to_reader(), rows=10) == [1]
    assert lengths(pyarrow.RecordBatchReader.from_batches(SCHEMA, [batch(), batch()])) == []


def test_wide_batches_are_not_joined(monkeypatch):
    monkeypatch.setattr("pandas_dptree.ingest.scan.batches.MOST_BYTES", 1000)
    wide = [pyarrow.record_batch({"key": ["a" * 600]}) for _ in range(4)]
    assert lengths(pyarrow.RecordBatchReader.from_batches(wide[0].schema, wide)) == [2, 2]


@pytest.mark.parametrize("kind", ARROW, ids=str)
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_every_type_survives_cuts_and_joins(kind, rows):
    column = pyarrow.chunked_array([pyarrow.array(ARROW[kind] * 9, type=kind)])
    table = pyarrow.table({"key": column})
    expected = forms(table)
    assert forms(table, rows=rows) == expected
    assert forms(table.to_reader(max_chunksize=1), rows=rows) == expected
    assert forms(Exported(table), rows=rows) == expected
    assert forms(dataset.dataset(table), rows=rows) == expected


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
        pyarrow.run_end_encoded(pyarrow.int32(), pyarrow.string()),
        pyarrow.string_view(),
        pyarrow.large_string(),
    ],
    ids=str,
)
def test_encodings_may_differ_between_batches(kind):
    values = [None, *(f"{number % 30}" for number in range(200)), None]
    table = pyarrow.table({"key": encoded(values, kind)})
    assert forms(table, rows=7) == values
    parts = [part for size in (1, 100) for part in table.slice(0, size).to_batches(1)]
    stream = pyarrow.RecordBatchReader.from_batches(table.schema, parts)
    assert forms(stream, rows=50) == [*values[:1], *values[:100]]


def test_a_reader_is_read_once_and_when_it_is_needed():
    counted = Counted([batch("a"), batch("b", None)])
    reader = counted.reader()
    records = Records(reader, ["key"])
    assert records.read_once and records.n_rows is None and not records.in_memory
    records.types(["key"])
    batches = records.batches()
    assert counted.taken == 0
    assert [each.column("key").tolist() for each in batches] == [["a", "b", pd.NA]]
    assert counted.taken == 2
    for again in (lambda: Records(reader, ["key"]), lambda: list(records.batches())):
        with pytest.raises(ArgumentError, match="is a stream of batches that was read before") as caught:
            again()
        assert "pyarrow.table(frame)" in caught.value.hint
    with pytest.raises(ArgumentError, match="was read before"):
        discreetly(["key"], lambda: list(records.batches()))


def in_blocks(format, values):
    """Open a reader of text with blocks of a few lines."""
    line = {"csv": "{}\n", "json": '{{"key": {}}}\n'}[format]
    text = "key\n" * (format == "csv") + "".join(map(line.format, values))
    module = pytest.importorskip(f"pyarrow.{format}")
    if not hasattr(module, f"open_{format}"):
        pytest.skip("this version of Arrow has no reader of such files in blocks")
    options = module.ReadOptions(block_size=200)
    return getattr(module, f"open_{format}")(io.BytesIO(text.encode()), read_options=options)


@pytest.mark.parametrize("format", ["csv", "json"])
def test_types_are_not_guessed_from_the_first_block_of_text(format):
    """One word in it makes text of all numbers; in a later block, it stops Arrow."""
    word = {"csv": "x", "json": '"x"'}[format]
    for values in ([1] * 100, [word] * 100, [*[1] * 100, word]):
        for check in (lambda frame: Records(frame, ["key"]), lengths):
            with pytest.raises(ArgumentError, match=f"'{format.upper()}StreamingReader', in which") as caught:
                check(in_blocks(format, values))
            assert "convert the file to Parquet" in caught.value.hint


def test_streams_of_types_are_read():
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(batch("a", None))
    assert forms(pyarrow.ipc.open_stream(sink.getvalue())) == ["a", None]


def test_readers_are_not_kept():
    before = len(arrow_streams._started)
    lengths(Counted([batch("a")]).reader())
    gc.collect()
    assert len(arrow_streams._started) <= before


def test_the_keys_of_a_reader_cannot_be_listed_first():
    counted = Counted([batch("a")])
    with pytest.raises(ArgumentError, match="can be read only once"):
        key_frame(counted.reader(), ["key"])
    assert counted.taken == 0


def test_a_dataset_of_a_reader_is_read_once():
    counted = Counted([batch("a"), batch("b", None)])
    try:
        frame = dataset.dataset(counted.reader())
    except TypeError:
        pytest.skip("this version of Arrow makes no datasets of readers")
    assert sum(lengths(frame)) == 3
    assert counted.taken == 2


class Library:
    """A frame of another library, which counts how often it is exported."""

    def __init__(self, table):
        self.table, self.times = table, 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.times += 1
        return self.table.__arrow_c_stream__(requested_schema)


class WithSchema(Library):
    def __arrow_c_schema__(self):
        return self.table.schema.__arrow_c_schema__()


class Measured(Library):
    def __len__(self):
        return len(self.table)


class Stream(Measured):
    def __next__(self):
        raise AssertionError


class Unhashable(Library):
    __hash__ = None


@pytest.mark.parametrize(
    ("kind", "opened"), [(Library, 1), (WithSchema, 0), (Measured, 1), (Stream, 1), (Unhashable, 1)]
)
def test_a_stream_of_another_library_is_opened_once(kind, opened):
    frame = kind(pyarrow.table({"key": ["a", "b"], "other": [1, 2]}))
    records = Records(frame, ["key"])
    records.types(["key"])
    assert frame.times == opened
    assert [len(each) for each in records.batches()] == [2]
    assert frame.times == 1
    assert records.read_once == (kind is not Measured)


def test_only_what_has_a_length_is_exported_again():
    """A stream that is used up would be exported as one without batches."""
    table = pyarrow.table({"key": ["a", "b"]})
    for _ in range(2):
        frame = Measured(table)
        assert forms(frame) == forms(frame) == ["a", "b"]
        frame = Exported(table.to_reader())
        assert forms(frame) == ["a", "b"]
        with pytest.raises(ArgumentError, match="was read before"):
            Records(frame, ["key"])


def test_what_is_no_table_is_not_read():
    numbers = Library(pyarrow.chunked_array([[1, 2]]))
    with pytest.raises(ArgumentError, match="cannot be read") as caught:
        Records(numbers, ["key"])
    assert caught.value.__cause__ is None


def test_arrow_is_needed_for_streams(monkeypatch):
    def fail(name):
        raise ImportError(name)

    monkeypatch.setattr(base.importlib, "import_module", fail)
    with pytest.raises(MissingExtraError, match="reading streams needs the package 'pyarrow'") as caught:
        Records(Library(pyarrow.table({"key": ["a"]})), ["key"])
    assert "pip install pyarrow" in caught.value.hint and caught.value.__context__ is None
