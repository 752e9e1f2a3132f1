"""Which files records are read from: paths, patterns and folders."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from pandas_dptree.errors import ArgumentError

__all__ = ["RecordFile", "record_files"]

KINDS: Final = {".csv": "CSV", ".csv.gz": "CSV", ".parquet": "Parquet", ".duckdb": "DuckDB"}
"""The kind of a file, by how its name ends."""

_MISSING: Final = "__HIVE_DEFAULT_PARTITION__"
"""What programs write in the name of a folder whose records lack the key."""


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A file of records of the kind CSV, Parquet or DuckDB.

    Errors show its `place`, as the caller wrote it, not names that were found: those of folders may be keys.
    """

    path: Path
    place: str
    kind: str

    def folder_keys(self) -> Mapping[str, str | None]:
        """Return the keys that the names of its folders state for all of its records, such as ``state=CA``.

        They are texts, so the names of other folders cannot change their type.
        """
        pairs = [part.partition("=") for part in self.path.parts[:-1] if "=" in part]
        return {
            unquote(name, errors="strict"): None if text in ("", _MISSING) else unquote(text, errors="strict")
            for name, _, text in pairs
        }


def record_files(given: Sequence[str]) -> list[RecordFile]:
    """List the files that are meant by paths, patterns such as ``data/*.csv``, and folders.

    A file that is named twice is refused: each of its records would count twice.
    """
    files = [file for each in given for file in _meant(each)]
    kinds = sorted({file.kind for file in files})
    if len(kinds) > 1:
        raise ArgumentError(
            "records", f"are files of several kinds: {' and '.join(kinds)}.", hint="name files of one kind."
        )
    seen: set[tuple[int, int]] = set()
    for file in files:
        try:
            status = file.path.stat()
        except OSError:  # reading it will say so
            continue
        if not stat.S_ISREG(status.st_mode):  # a pipe, for example, cannot be opened twice
            raise ArgumentError(
                "records", f"is not a regular file: {file.place}.", hint="write the records to a file first."
            )
        if (status.st_dev, status.st_ino) in seen:
            raise ArgumentError(
                "records",
                f"names a file twice, the second time as {file.place}.",
                hint="name each file once, and no link to it: each of its records would count twice.",
            )
        seen.add((status.st_dev, status.st_ino))
    return files


def _meant(given: str) -> Iterator[RecordFile]:
    """Yield the files that one argument means, in sorted order."""
    if os.path.isdir(given):
        found = sorted(_within(given, given))
    elif glob.has_magic(given) and not os.path.lexists(given):
        matches = glob.glob(given, recursive=True)
        folders = [_within(path, given) if os.path.isdir(path) else [path] for path in matches]
        found = sorted(chain.from_iterable(folders))
    else:
        yield RecordFile(Path(given), repr(given), _kind(given, repr(given)))
        return
    if not found:
        raise ArgumentError(
            "records",
            f"matches no file: {given!r}.",
            hint="check the folder; files whose names begin with a dot or an underscore are left out.",
        )
    for number, path in enumerate(found, 1):
        place = f"{given!r}: file {number} of {len(found)}, sorted by path"
        yield RecordFile(Path(path), place, _kind(path, place))


def _within(folder: str, given: str) -> list[str]:
    """List the files of a folder and of those within it, `given` by the caller.

    Names that begin with a dot or an underscore are left out: programs keep notes of their own there.
    """

    def fail(_: OSError) -> None:
        raise ArgumentError(
            "records",
            f"cannot be read from {given!r}: a folder cannot be listed.",
            hint="check that you may read all folders in it.",
        )

    found: list[str] = []
    seen: set[tuple[int, int]] = set()
    for path, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        status = os.stat(path)
        if (status.st_dev, status.st_ino) in seen:  # a link back to it
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [os.path.join(path, name) for name in names if not name.startswith((".", "_"))]
    return found


def _kind(path: str, place: str) -> str:
    """Return the kind of a file."""
    for suffix, kind in KINDS.items():
        if path.lower().endswith(suffix):
            return kind
    hint = "use .csv, .csv.gz, .parquet or .duckdb" + (
        "; standard input is not read." if path == "-" else "."
    )
    raise ArgumentError("records", f"is a file of unknown type: {place}.", hint=hint)
