"""Files of records, keys and tables, for the shell command."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, DPTreeError, MissingExtraError
from pandas_dptree.ingest.frames import check_columns

__all__ = ["check_out", "read", "write", "write_table"]


def read(path: Path, columns: list[Any] | None, argument: str) -> Any:
    """Read the columns that are needed, or all; keys from a CSV file as text."""
    try:
        if _suffix(path, argument, ".csv", ".csv.gz", ".parquet") == ".csv":
            with warnings.catch_warnings(action="ignore"):
                frame = _read_csv(path, columns, argument)
        elif argument == "records" and columns is not None:
            # In pandas, one missing number would round all others to floats.
            frame = importlib.import_module("pyarrow.parquet").read_table(path)
        else:
            frame = pd.read_parquet(path)
        if columns is None:
            return frame
        check_columns(frame, columns, argument=argument)
        return frame[columns] if isinstance(frame, pd.DataFrame) else frame.select(columns)
    except ImportError:
        raise MissingExtraError("Reading Parquet", package="pyarrow", extra="engines") from None
    except DPTreeError:
        raise
    except Exception:  # what a reader says may quote the file
        pass
    raise ArgumentError(
        argument, f"cannot be read from {str(path)!r}.", hint="check that the file is there and well-formed."
    )


def _read_csv(path: Path, columns: list[Any] | None, argument: str) -> pd.DataFrame:
    """Read each line by itself: what is too much in it is ignored, what it lacks is missing."""
    header = pd.read_csv(
        path, header=None, nrows=1, dtype=str, keep_default_na=False, skip_blank_lines=False
    ).iloc[0]
    wanted = [columns is None or name in columns for name in header]
    frame = pd.read_csv(
        path, header=None, skiprows=1, names=range(len(header)), index_col=False, dtype=str,
        keep_default_na=False, na_values=[""], on_bad_lines="skip",
        encoding_errors="replace" if argument == "records" else "strict",  # one record may not fail them all
        usecols=np.flatnonzero(wanted),
    )  # fmt: skip
    frame.columns = pd.Index(header[wanted])
    return frame


def _suffix(path: Path, argument: str, *known: str) -> str:
    suffix = ".csv" if path.name.lower().endswith(".csv.gz") else path.suffix.lower()
    if suffix not in known:
        raise ArgumentError(
            argument, f"is a file of unknown type: {str(path)!r}.", hint=f"use {' or '.join(known)}."
        )
    return suffix


def check_out(path: Path | None, *known: str) -> None:
    """Find out before the budget is spent whether the file can be written."""
    if path is None:
        return
    if not path.resolve().parent.is_dir():
        raise ArgumentError(
            "out", f"is in a folder that does not exist: {str(path)!r}.", hint="make it first."
        )
    suffix = _suffix(path, "out", *known)
    try:
        if path.is_dir():
            raise IsADirectoryError
        tempfile.TemporaryDirectory(dir=path.resolve().parent, prefix=".dptree-").cleanup()
    except OSError:
        raise _unwritable(path) from None
    if suffix == ".parquet":
        try:
            importlib.import_module("pyarrow")
        except ImportError:
            raise MissingExtraError(
                "Writing Parquet", package="pyarrow", extra="engines", hint="or write a .csv file"
            ) from None


def write_table(released: pd.DataFrame, path: Path | None) -> None:
    """Write a table, to standard output if no file is named."""
    if path is None:
        released.to_csv(sys.stdout, index=False)
    elif path.suffix.lower() == ".parquet":
        write(path, partial(released.to_parquet, index=False))
    else:
        write(path, partial(released.to_csv, index=False))


def write(path: Path, fill: Callable[[Path], object]) -> None:
    """Write the whole file or nothing."""
    try:
        with tempfile.TemporaryDirectory(dir=path.resolve().parent, prefix=".dptree-") as scratch:
            fill(Path(scratch) / path.name)
            os.replace(Path(scratch) / path.name, path)
    except OSError:
        raise _unwritable(path) from None


def _unwritable(path: Path) -> ArgumentError:
    return ArgumentError(
        "out", f"cannot be written: {str(path)!r}.", hint="name a file in a folder of yours."
    )
