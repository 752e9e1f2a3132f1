"""Reading of CSV files: each line separately, so that no record can change how another one is read."""

from __future__ import annotations

import codecs
import csv
import gzip
import importlib
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.frames import check_columns

__all__ = ["csv_batches", "csv_header", "read_csv"]

_BATCH: Final = 512
"""Lines to split at a time: so few lists do not trigger Python's garbage collection, which takes longer."""

_MAX_SHARED: Final = 2**16
"""The maximum number of texts to remember, so that equal texts share one object."""

Texts = list[str | None]


def read_csv(path: Path, columns: list[Any] | None, argument: str) -> pd.DataFrame:
    """Read columns of a CSV file into memory; all columns if `columns` is None.

    `argument` names the file in errors: ``"records"`` are secret, all other files are public.

    **Privacy.** One line is one record. A line ends at a line feed, within quotes too; one carriage return
    before it is removed. Each line is split and decoded separately, so that one more line of any bytes adds
    at most one record and changes no other. A field that is empty or lacking is missing; fields beyond those
    of the header are ignored. A field of a record that is not UTF-8 equals only fields of the same bytes, so
    that two units never become one. Blank lines are no records. A line of records that cannot be split, such
    as one with an open quote, is dropped like a record outside the domain. So a quoted text with line breaks
    is several lines, and up to as many records.

    The header is public. So is whether a file is damaged: any text can be compressed, so a compressed file
    that ends too early reveals nothing about the records.
    """
    wanted = csv_header(path, argument) if columns is None else columns
    found = [_Texts() for _ in wanted]
    for _, batch in csv_batches(path, wanted, argument):
        for texts, more in zip(found, batch, strict=True):
            texts.extend(more)
    return pd.DataFrame({name: texts.to_pandas() for name, texts in zip(wanted, found, strict=True)})


def csv_header(path: Path, argument: str) -> list[str]:
    """Read the names of the columns of a CSV file."""
    with _opened(path) as stream:
        return _header(stream, argument)


def csv_batches(path: Path, columns: Sequence[Any], argument: str) -> Iterator[tuple[int, list[Texts]]]:
    """Read a CSV file a few lines at a time: yield how many, and a list of texts for each of the columns."""
    with _opened(path) as stream:
        names = _header(stream, argument)
        check_columns(pd.DataFrame(columns=names), columns, argument=argument)
        found = [names.index(name) for name in columns]
        refused = None if argument == "records" else argument
        lines = _split(stream, refused, first=2, most=max(found, default=0) + 1, width=len(names))
        while batch := list(islice(lines, _BATCH)):
            texts = [
                [fields[position] or None if position < len(fields) else None for fields in batch]
                for position in found
            ]
            yield len(batch), texts


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, and decompress it if its name says so."""
    with ExitStack() as files:
        stream: IO[bytes] = files.enter_context(path.open("rb"))
        if path.suffix.lower() == ".gz":
            stream = io.BufferedReader(files.enter_context(gzip.GzipFile(fileobj=stream)))
        yield stream


def _header(stream: IO[bytes], argument: str) -> list[str]:
    """Read the first line."""
    names = next(_split([stream.readline().removeprefix(codecs.BOM_UTF8)], argument), [])
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
    return names


_BINARY = {b"PAR1": "a Parquet file", b"\x1f\x8b": "a compressed file", b"PK": "a workbook or an archive"}
"""How files of other kinds begin, which lack the ending that tells so."""


def _split(
    lines: Iterable[bytes], argument: str | None, *, first: int = 1, most: int = -1, width: int | None = None
) -> Iterator[list[str]]:
    """Split each line into its fields, independently of the others. Blank lines are left out.

    Without an `argument`, lines may be records, and one that cannot be read is dropped; otherwise an error
    names its number, from `first`. Text after `most` commas need not be split (-1: all of it); a public line
    has at most `width` fields.
    """
    pending: list[str] = []  # the only line that the reader gets: an open quote asks for another in vain
    quoted = csv.reader(iter(pending.pop, None), strict=True)
    for number, line in enumerate(lines, first):
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            text, is_utf8 = line.decode("utf-8"), True
        except UnicodeDecodeError:
            if argument is not None:
                what = next(
                    (kind for start, kind in _BINARY.items() if number == 1 and line.startswith(start)), ""
                )
                hint = f"it is {what}: name it as one." if what else "save the file as UTF-8."
                raise _unreadable(argument, number, "it is not UTF-8", hint) from None
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
