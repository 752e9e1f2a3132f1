"""Reading and writing of files for the shell command: records, keys and tables."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import importlib
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, DPTreeError, MissingExtraError
from pandas_dptree.ingest.frames import check_columns
from pandas_dptree.output.atomic_files import check_writable, write_whole
from pandas_dptree.output.files import TableFile, check_parquet, description_path

__all__ = ["check_out", "read", "write", "write_table"]

_BATCH: Final = 512
"""Lines to split at a time: so few lists do not trigger Python's garbage collection, which takes longer."""

_MAX_SHARED: Final = 2**16
"""The maximum number of texts to remember, so that equal texts share one object."""


def read(path: Path, columns: list[Any] | None, argument: str) -> Any:
    """Read columns of a .csv, .csv.gz or .parquet file; all of them if `columns` is None.

    A CSV file is UTF-8 with commas, its first line names the columns, and its values are read as text.
    `argument` names the file in errors: ``"records"`` are secret, all other files are public. Records from
    Parquet are returned as a pyarrow table, since in pandas one missing number would round all others to
    floats.

    Raises
    ------
    ArgumentError
        If the file or its header cannot be read, or a line of a public file cannot; `ColumnsError` if a
        column is missing or repeated.
    MissingExtraError
        If Parquet is to be read without pyarrow.

    Notes
    -----
    **Privacy.** One line of a CSV file is one record. A line ends at a line feed, within quotes too; one
    carriage return before it is removed. Each line is split and decoded separately, so that one more line of
    any bytes adds at most one record and changes no other. A field that is empty or lacking is missing;
    fields beyond those of the header are ignored. A field of a record that is not UTF-8 equals only fields of
    the same bytes, so that two units never become one. Blank lines are no records. A line of records that
    cannot be split, such as one with an open quote, is dropped like a record outside the domain. So a quoted
    text with line breaks is several lines, and up to as many records.

    The header is public. So are the schema of a Parquet file, and whether a file is damaged: any text can be
    compressed, so a compressed file that ends too early reveals nothing about the records.
    """
    try:
        if _suffix(path, argument, ".csv", ".csv.gz", ".parquet") == ".csv":
            return _read_csv(path, columns, argument)
        if argument == "records":
            return _read_parquet(path, columns, argument)
        frame = pd.read_parquet(path)
        if columns is None:
            return frame
        check_columns(frame, columns, argument=argument)
        return frame[columns]
    except ImportError:
        raise MissingExtraError("Reading Parquet", package="pyarrow", extra="engines") from None
    except DPTreeError:
        raise
    except Exception:  # a reader's message may quote the file
        pass
    raise ArgumentError(
        argument, f"cannot be read from {str(path)!r}.", hint="check that the file exists and is well-formed."
    )


def _read_csv(path: Path, columns: list[Any] | None, argument: str) -> pd.DataFrame:
    """Read columns of a CSV file."""
    with contextlib.ExitStack() as files:
        stream: IO[bytes] = files.enter_context(path.open("rb"))
        if path.suffix.lower() == ".gz":
            stream = io.BufferedReader(files.enter_context(gzip.GzipFile(fileobj=stream)))
        header = stream.readline().removeprefix(codecs.BOM_UTF8)
        names = next(_split([header], argument), [])
        if not names:
            raise ArgumentError(
                argument,
                "cannot be read: its first line is blank.",
                hint="the first line must name the columns.",
            )
        if len(names) == 1 and not {";", "\t"}.isdisjoint(names[0]):
            raise ArgumentError(
                argument,
                "has a single column, with a semicolon or a tab in its name.",
                hint="separate the fields by commas.",
            )
        wanted = names if columns is None else columns
        check_columns(pd.DataFrame(columns=names), wanted, argument=argument)
        found = [(names.index(name), _Texts()) for name in wanted]
        last = max((position for position, _ in found), default=0)
        refused = None if argument == "records" else argument
        lines = _split(stream, refused, first=2, most=last + 1, width=len(names))
        while batch := list(islice(lines, _BATCH)):
            for position, texts in found:
                texts.extend(
                    [fields[position] or None if position < len(fields) else None for fields in batch]
                )
    return pd.DataFrame({name: texts.to_pandas() for name, (_, texts) in zip(wanted, found, strict=True)})


def _split(
    lines: Iterable[bytes], argument: str | None, *, first: int = 1, most: int = -1, width: int | None = None
) -> Iterator[list[str]]:
    """Split each line into its fields, independently of the others. Blank lines are left out.

    If `argument` is None, lines may be records, and one that cannot be read is dropped; otherwise an error
    names its number, counted from `first`. Text after `most` commas need not be split (-1: all of it). A line
    of a public file may have at most `width` fields.
    """
    pending: list[str] = []  # the only line that the reader gets: an open quote asks for another in vain
    quoted = csv.reader(iter(pending.pop, None), strict=True)
    for number, line in enumerate(lines, first):
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            text, is_utf8 = line.decode("utf-8"), True
        except UnicodeDecodeError:
            if argument is not None:
                raise _unreadable(argument, number, "it is not UTF-8", "save the file as UTF-8.") from None
            text, is_utf8 = line.decode("latin-1"), False  # one character per byte
        try:
            if argument is None and '"' not in text:
                fields = text.split(",", most)
            else:
                pending.append(text)
                fields = next(quoted)
        except (csv.Error, IndexError):
            if argument is not None:
                raise _bad_quotes(argument, number, line) from None
            continue
        if argument is not None and width is not None and any(fields[width:]):
            reason = f"it has more fields than the {width} of the first line"
            raise _unreadable(argument, number, reason, "put quotes around fields that hold commas.")
        if text.strip(" \t"):
            yield fields if is_utf8 else list(map(_decoded, fields))


def _decoded(field: str) -> str:
    """Decode a field that has one character per byte.

    What is not UTF-8 becomes a text that begins with a line feed, as no other field can.
    """
    try:
        return field.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return f"\n{field}"


def _unreadable(argument: str, number: int, reason: str, hint: str) -> ArgumentError:
    """Return the error for a line of a public file."""
    return ArgumentError(argument, f"cannot be read at line {number}: {reason}.", hint=hint)


def _bad_quotes(argument: str, number: int, line: bytes) -> ArgumentError:
    """Return the error for a line of a public file that cannot be split."""
    if b"\r" in line:
        reason = "it holds a carriage return"
        hint = r"end each line with a line feed, for example with tr '\r' '\n'."
    else:
        reason = "a quote is not closed, or does not enclose a whole field"
        hint = "one line is one record: put quotes around whole fields, without line breaks."
    return _unreadable(argument, number, reason, hint)


class _Texts:
    """A growing column of texts, with the dtype of text in pandas.

    It saves memory: with Arrow each piece is copied at once, and without Arrow equal texts share one object.
    """

    def __init__(self) -> None:
        self._dtype: Any = pd.Series([""]).dtype
        in_arrow = getattr(self._dtype, "storage", None) == "pyarrow"
        self._arrow: Any = importlib.import_module("pyarrow") if in_arrow else None
        self._pieces: list[Any] = []
        self._known: dict[str, str] = {}

    def extend(self, texts: list[str | None]) -> None:
        if self._arrow is not None:
            self._pieces.append(self._arrow.array(texts, self._arrow.large_string()))
            return
        if len(self._known) > _MAX_SHARED:
            self._known.clear()
        known = self._known.setdefault
        self._pieces += [np.nan if text is None else known(text, text) for text in texts]

    def to_pandas(self) -> pd.Series:
        texts: Any = self._pieces
        if self._arrow is not None:
            texts = self._arrow.chunked_array(texts, self._arrow.large_string())
        column: pd.Series = pd.Series(texts, dtype=self._dtype)
        return column


def _read_parquet(path: Path, columns: list[Any] | None, argument: str) -> Any:
    """Read columns of a Parquet file, or of a folder of them, as a pyarrow table.

    Folder names (``day=2024-01-31``) do not become a column: its type would depend on all of them. Nor does
    the first file decide the type to which the values of the others are converted.
    """
    files = importlib.import_module("pyarrow.parquet").ParquetDataset(path, partitioning=None)
    columns = files.schema.names if columns is None else columns
    check_columns(files.schema.empty_table(), columns, argument=argument)
    schemas = [part.physical_schema for part in files.fragments]
    if any(schema.field(name).type != schemas[0].field(name).type for schema in schemas for name in columns):
        raise ArgumentError(
            argument, "has files with columns of different types.", hint="write all files with one schema."
        )
    return files.read(columns=columns)


def _suffix(path: Path, argument: str, *known: str) -> str:
    suffix = ".csv" if path.name.lower().endswith(".csv.gz") else path.suffix.lower()
    if suffix not in known:
        raise ArgumentError(
            argument, f"is a file of unknown type: {str(path)!r}.", hint=f"use {' or '.join(known)}."
        )
    return suffix


def check_out(path: Path | None, *known: str, force: bool) -> None:
    """Check before anything is read or spent that the output file can be written.

    An existing file is kept unless `force` is given: a script that runs twice would release twice, and spend
    its privacy loss twice.
    """
    if path is None:
        return
    if not path.resolve().parent.is_dir():
        raise ArgumentError(
            "out", f"is in a folder that does not exist: {str(path)!r}.", hint="create the folder first."
        )
    suffix = _suffix(path, "out", *known)
    for each in [path, description_path(path)] if suffix == ".csv" else [path]:
        try:
            check_writable(each)
        except OSError:
            raise _unwritable(each) from None
        if os.path.lexists(each) and not force:
            raise _already_exists(each)
    if suffix == ".parquet":
        check_parquet("Writing Parquet")


def write_table(released: pd.DataFrame, path: Path | None, *, force: bool) -> None:
    """Write a table with its description, by default its CSV text to standard output."""
    try:
        table = TableFile.of(released)
    except ArgumentError as error:  # the budget is spent: the values alone are better than nothing
        why = error.fact.partition(" ")[2]
        print(f"dptree: the table is written without a description, since it {why}", file=sys.stderr)
        _write_values(released, path, force=force)
        return
    if path is None:
        sys.stdout.write(table.csv)
    else:
        _write(path, partial(table.write, path, replace=force))


def _write_values(released: pd.DataFrame, path: Path | None, *, force: bool) -> None:
    """Write a table whose keys have a type that its description cannot keep."""
    if path is None:
        released.to_csv(sys.stdout, index=False)
    elif path.suffix.lower() == ".parquet":
        write(path, partial(released.to_parquet, index=False), force=force)
    else:
        write(path, partial(released.to_csv, index=False), force=force)


def write(path: Path, fill: Callable[[Path], object], *, force: bool) -> None:
    """Write the whole file or nothing; without `force`, only if the file does not exist."""
    _write(path, partial(write_whole, path, fill, replace=force))


def _write(path: Path, save: Callable[[], object]) -> None:
    """Call what writes to a path, and report what went wrong."""
    try:
        save()
    except FileExistsError as error:
        raise _already_exists(Path(error.filename)) from None
    except OSError:
        raise _unwritable(path.resolve()) from None


def _already_exists(path: Path) -> ArgumentError:
    if path.name.lower().endswith(".csv.json"):
        fact = f"needs a second file, for the description of the table, which already exists: {str(path)!r}."
        hint = "remove it if its table is gone, name another file, or add --force to replace it."
    else:
        warning = "" if path.suffix.lower() == ".json" else "a second release spends the budget again; "
        fact = f"is a file that already exists: {str(path)!r}."
        hint = f"{warning}keep the file, name another one, or add --force to replace it."
    return ArgumentError("out", fact, hint=hint)


def _unwritable(path: Path) -> ArgumentError:
    return ArgumentError(
        "out", f"cannot be written: {str(path)!r}.", hint="name a file in a folder that you can write to."
    )
