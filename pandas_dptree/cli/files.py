"""Files that the shell command writes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from pandas_dptree.errors import ArgumentError, DPTreeError, visible
from pandas_dptree.ingest.files.public_tables import checked_suffix
from pandas_dptree.output.atomic_files import check_writable, write_whole
from pandas_dptree.output.files import TableFile, check_packages, read_file, write_book
from pandas_dptree.output.restored import description_path

__all__ = ["already_exists", "check_out", "holds", "write", "write_table"]


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
    suffix = checked_suffix(path, "out", *known)
    for each in _files_of(path):
        try:
            check_writable(each)
        except OSError:
            raise _unwritable(each) from None
    refusal = already_exists(path)
    if refusal is not None and not force:
        raise refusal
    check_packages(suffix, "Writing")


def already_exists(path: Path | None) -> ArgumentError | None:
    """Return the error that an output file exists, or the description that belongs to it; None if not."""
    return next((_already_exists(each) for each in _files_of(path) if os.path.lexists(each)), None)


def _files_of(path: Path | None) -> list[Path]:
    if path is None:
        return []
    return [path, description_path(path)] if path.name.lower().endswith((".csv", ".csv.gz")) else [path]


def holds(path: Path, released: pd.DataFrame) -> bool:
    """Whether a file holds a released table, unchanged."""
    try:
        return bool(read_file(path).equals(released))
    except (DPTreeError, OSError, ValueError):
        return False


def write_table(released: pd.DataFrame, path: Path | None, *, force: bool) -> None:
    """Write a table with its description, by default its CSV text to standard output."""
    if path is not None and path.suffix.lower() == ".xlsx":
        _write(path, partial(write_book, released, path, replace=force))
        return
    try:
        table = TableFile.of(released)
    except ArgumentError as error:  # the budget is spent: the values alone are better than nothing
        why = error.fact.partition(" ")[2]
        message = visible(f"dptree: the table is written without a description, since it {why}")
        print(message, file=sys.stderr)
        _write_values(released, path, force=force)
        return
    if path is None:
        _print_table(table.csv)
    else:
        _write(path, partial(table.write, path, replace=force))


def _print_table(text: str) -> None:
    """Write CSV text to standard output: exactly, unless that is a terminal, which would obey its labels."""
    if sys.stdout.isatty():
        text = re.sub('"[^"]*"', lambda quoted: visible(quoted[0]), text)  # line breaks within fields, too
        text = visible(text, lines=True)
    sys.stdout.write(text)


def _write_values(released: pd.DataFrame, path: Path | None, *, force: bool) -> None:
    """Write a table whose keys have a type that its description cannot keep."""
    if path is None:
        _print_table(released.to_csv(index=False, lineterminator="\n"))
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
        warning = (
            "" if path.suffix.lower() in (".json", ".txt") else "a second release spends the budget again; "
        )
        fact = f"is a file that already exists: {str(path)!r}."
        hint = f"{warning}keep the file, name another one, or add --force to replace it."
    return ArgumentError("out", fact, hint=hint)


def _unwritable(path: Path) -> ArgumentError:
    return ArgumentError(
        "out", f"cannot be written: {str(path)!r}.", hint="name a file in a folder that you can write to."
    )
