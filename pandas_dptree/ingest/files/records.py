"""Reading of records from files, a part of them at a time. Secret: nothing here may leave."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar

import pandas as pd

from pandas_dptree.errors import ArgumentError, DPTreeError, MissingExtraError, quote, why_unreadable
from pandas_dptree.ingest.files.csv_files import csv_batches, csv_header, read_csv
from pandas_dptree.ingest.files.duckdb_tables import open_table
from pandas_dptree.ingest.files.record_paths import RecordFile, record_files
from pandas_dptree.ingest.frames import check_columns

__all__ = ["RecordStream", "open_records", "reported"]

_ROWS: Final = 2**17
"""How many rows of a Parquet file are decoded at a time."""

_CSV_BATCHES: Final = 32
"""How many batches of a CSV file are joined."""

Answer = TypeVar("Answer")

Batches = Iterator[Any]
"""Batches of Arrow, one after the other."""


class RecordStream:
    """Records in files, as a stream of Arrow that opens the files anew each time that it is read.

    Only the needed columns are read, a part of one file at a time, each part with its place for errors.
    `failure` is why reading ended too early; `begins_anew` that of `ingest.scan.arrow_streams.ArrowStream`.
    """

    begins_anew = True

    def __init__(self, schema: Any, parts: Sequence[tuple[str, Callable[[], Batches]]]) -> None:
        self._schema, self._parts = schema, parts
        self.failure: ArgumentError | KeyboardInterrupt | None = None

    def __arrow_c_schema__(self) -> Any:
        """Export the types of the columns. Nothing is read."""
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Export a new stream of all records."""
        reader = importlib.import_module("pyarrow").RecordBatchReader
        return reader.from_batches(self._schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Batches:
        for place, read in self._parts:
            try:
                yield from read()
            except (ArgumentError, KeyboardInterrupt) as error:  # pyarrow would hide the latter, too
                self.failure = error
                raise
            except Exception:  # a reader's message may quote the file
                self.failure = _unreadable(place, "it is damaged, or was changed meanwhile")
                raise


@contextmanager
def reported(records: Any) -> Iterator[None]:
    """Run a verb; if a file could not be read, that is the error."""
    try:
        yield
    except ArgumentError:
        failure = getattr(records, "failure", None)
        if failure is None:
            raise
        raise failure from None


def open_records(given: Sequence[str], columns: Sequence[str], table: str | None = None) -> Any:
    """Open records in files for reading some columns; all headers and types are checked now.

    The files are CSV (`csv_files.read_csv` describes how they are read) or Parquet, or one database of
    duckdb. The result is a frame if they are CSV and pyarrow is not installed: then all records are in
    memory.

    **Privacy.** The schema of a Parquet file or of a database is public, and so is whether a file is damaged.
    If files have different types for a column, no file decides how the values of the others are read: the
    types are joined if each value stays what it is, otherwise they are refused. A key that only the name of a
    folder states, as in ``state=CA/part-0.parquet``, is a text.
    """
    files = record_files(given)
    kind = files[0].kind
    if table is not None and kind != "DuckDB":
        raise ArgumentError("table", f"has no meaning for {kind} files.", hint="leave it out.")
    if kind == "DuckDB":
        if len(files) > 1:
            raise ArgumentError("records", "are several databases.", hint="name one .duckdb file.")
        schema, read = _placed(files[0], True, partial(open_table, files[0].path, table, columns))
        return RecordStream(schema, [(files[0].place, read)])
    try:
        pyarrow = importlib.import_module("pyarrow")
    except ImportError:
        if kind == "CSV":
            return _in_memory(files, columns)
        raise MissingExtraError("Reading Parquet", package="pyarrow") from None
    open_file = _open_csv if kind == "CSV" else _open_parquet
    opened = [_placed(file, len(files) == 1, partial(open_file, file, columns)) for file in files]
    schema = pyarrow.schema(
        [(name, _joint_type(name, [each.types[name] for each in opened])) for name in columns]
    )
    parts = [(file.place, partial(each.batches, schema)) for file, each in zip(files, opened, strict=True)]
    return RecordStream(schema, parts)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A file whose columns are known.

    `read` yields a number of rows, and their columns as arrays, but for those that only the names of its
    folders state.
    """

    types: dict[str, Any]
    read: Callable[[], Iterator[tuple[int, dict[str, Any]]]]
    stated: Mapping[str, str | None]

    def batches(self, schema: Any) -> Batches:
        """Read all records, with columns of these types."""
        pyarrow = importlib.import_module("pyarrow")
        for n_rows, found in self.read():
            for name, text in self.stated.items():
                found[name] = pyarrow.repeat(pyarrow.scalar(text, pyarrow.large_string()), n_rows)
            arrays = [found[field.name].cast(field.type) for field in schema]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _open_csv(file: RecordFile, columns: Sequence[str]) -> _Opened:
    """Read the header of a CSV file. All columns are texts."""
    text = importlib.import_module("pyarrow").large_string()
    names = csv_header(file.path, "records")
    own, stated = _columns_of(file, columns, names)
    return _Opened(dict.fromkeys(columns, text), partial(_read_csv, file.path, own), stated)


def _read_csv(path: Path, columns: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read columns of a CSV file; a few lines become arrays together."""
    pyarrow = importlib.import_module("pyarrow")
    batches = csv_batches(path, columns, "records")
    while held := list(islice(batches, _CSV_BATCHES)):
        joined = [
            list(chain.from_iterable(texts)) for texts in zip(*(texts for _, texts in held), strict=True)
        ]
        arrays = [pyarrow.array(texts, pyarrow.large_string()) for texts in joined]
        yield sum(n_rows for n_rows, _ in held), dict(zip(columns, arrays, strict=True))


def _open_parquet(file: RecordFile, columns: Sequence[str]) -> _Opened:
    """Read the schema of a Parquet file."""
    pyarrow = importlib.import_module("pyarrow")
    datasets = importlib.import_module("pyarrow.dataset")
    dataset = datasets.dataset(file.path, format="parquet", partitioning=None)
    own, stated = _columns_of(file, columns, dataset.schema.names)
    types = dict.fromkeys(stated, pyarrow.large_string())
    types |= {name: dataset.schema.field(name).type for name in own}
    return _Opened(types, partial(_scan, dataset, own), stated)


def _scan(dataset: Any, columns: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read columns of a Parquet file."""
    field = importlib.import_module("pyarrow.dataset").field
    scanner = dataset.scanner(
        columns={name: field(name) for name in columns}, batch_size=_ROWS, batch_readahead=4
    )
    for batch in scanner.to_batches():
        yield batch.num_rows, dict(zip(columns, batch.columns, strict=True))


def _columns_of(
    file: RecordFile, columns: Sequence[str], names: Sequence[str]
) -> tuple[list[str], dict[str, str | None]]:
    """Divide the columns into those that a file has, and those that only the names of its folders state."""
    keys = file.folder_keys()
    stated = {name: keys[name] for name in columns if name not in names and name in keys}
    own = [name for name in columns if name not in stated]
    check_columns(pd.DataFrame(columns=list(names)), own, argument="records", public=file.kind == "Parquet")
    return own, stated


def _joint_type(name: str, types: Sequence[Any]) -> Any:
    """Return an Arrow type to which the values of a column in several files are converted unchanged."""
    known = importlib.import_module("pyarrow.types")
    pyarrow = importlib.import_module("pyarrow")
    different = list(dict.fromkeys(each for each in types if not known.is_null(each))) or [pyarrow.null()]
    if len(different) == 1:
        return different[0]
    if all(map(known.is_integer, different)):
        signed = [each.bit_width for each in different if known.is_signed_integer(each)]
        unsigned = [each.bit_width for each in different if known.is_unsigned_integer(each)]
        if not signed:
            return pyarrow.uint64()
        if max(unsigned, default=0) < 64:
            return pyarrow.int64()
    if all(_is_text(each.value_type if known.is_dictionary(each) else each) for each in different):
        return pyarrow.large_string()
    raise ArgumentError(
        "records",
        f"has files with different types for the column {quote(name)}: {', '.join(map(str, different[:8]))}.",
        hint="write the column with one type in all files. (pandas makes whole numbers floats if one of them "
        'is missing, unless they are of type "Int64".)',
    )


def _is_text(kind: Any) -> bool:
    known = importlib.import_module("pyarrow.types")
    return bool(known.is_string(kind) or known.is_large_string(kind))


def _in_memory(files: Sequence[RecordFile], columns: Sequence[str]) -> pd.DataFrame:
    """Read CSV files without Arrow."""
    frames = [_placed(file, len(files) == 1, partial(_csv_frame, file, columns)) for file in files]
    return pd.concat(frames, ignore_index=True)


def _csv_frame(file: RecordFile, columns: Sequence[str]) -> pd.DataFrame:
    """Read a CSV file without Arrow."""
    own, stated = _columns_of(file, columns, csv_header(file.path, "records"))
    frame = read_csv(file.path, own, "records")
    for name, text in stated.items():
        frame[name] = pd.Series([text] * len(frame), dtype=pd.Series([""]).dtype)
    return frame[list(columns)]


def _placed(file: RecordFile, alone: bool, read: Callable[[], Answer]) -> Answer:
    """Read something of a file; errors say where it is if it is not `alone`, and nothing else about it."""
    try:
        return read()
    except ArgumentError as error:
        if alone:
            raise
        fact = error.fact.partition(" ")[2].rstrip(".")
        failure = ArgumentError("records", f"{fact} (in {file.place}).", hint=error.hint)
    except DPTreeError:
        raise
    except Exception:  # a reader's message may quote the file, so the error raised below has no context
        failure = _unreadable(file.place, why_unreadable(file.path, f"it is no well-formed {file.kind} file"))
    raise failure


def _unreadable(place: str, why: str) -> ArgumentError:
    return ArgumentError(
        "records", f"cannot be read from {place}: {why}.", hint="correct the path, or the file."
    )
