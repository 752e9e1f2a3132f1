"""Public tables in files: keys, and counts that are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pandas_dptree.errors import ArgumentError, DPTreeError, MissingExtraError, why_unreadable
from pandas_dptree.ingest.files.csv_files import read_csv
from pandas_dptree.ingest.frames import check_columns

__all__ = ["checked_suffix", "read_known", "read_places", "read_table"]


def read_table(path: Path, columns: list[Any] | None, argument: str) -> pd.DataFrame:
    """Read columns of a public .csv, .csv.gz or .parquet file; all of them if `columns` is None.

    A CSV file is UTF-8 with commas, its first line names the columns, and its values are read as text.
    `argument` names the file in errors.
    """
    try:
        if checked_suffix(path, argument, ".csv", ".csv.gz", ".parquet") == ".csv":
            return read_csv(path, columns, argument)
        frame = pd.read_parquet(path)
        if columns is None:
            return frame
        check_columns(frame, columns, argument=argument)
        return frame[columns]
    except ImportError:
        raise MissingExtraError("Reading Parquet", package="pyarrow") from None
    except DPTreeError:
        raise
    except Exception:  # a reader's message may quote the file
        pass
    why = why_unreadable(path, "it is not well-formed")
    raise ArgumentError(
        argument, f"cannot be read from {str(path)!r}: {why}.", hint="correct the path, or the file."
    )


def checked_suffix(path: Path, argument: str, *known: str) -> str:
    """Return how the name of a file ends, which must be known; ``.csv.gz`` counts as ``.csv``."""
    suffix = ".csv" if path.name.lower().endswith(".csv.gz") else path.suffix.lower()
    if suffix not in known:
        raise ArgumentError(
            argument, f"is a file of unknown type: {str(path)!r}.", hint=f"use {' or '.join(known)}."
        )
    return suffix


def read_places(path: Path, by: Sequence[Any], structural_zeros: str | None) -> pd.DataFrame:
    """Read public keys, and the flags of structural zeros: in a CSV file true or false, in any case."""
    flags = [] if structural_zeros is None else [structural_zeros]
    places = read_table(path, list(dict.fromkeys([*by, *flags])), "domain")
    if flags and pd.api.types.is_string_dtype(places[structural_zeros]):  # as from a CSV file
        read = places[structural_zeros].str.lower().map({"true": True, "false": False})
        places = places.assign(**{flags[0]: read})
    return places


def read_known(path: Path, by: Sequence[Any]) -> pd.DataFrame:
    """Read public counts; in a CSV file, keys are text and counts are numbers."""
    counts = read_table(path, None, "known")
    for name in {"count", "at_least"} & set(counts.columns) - set(by):
        try:
            counts[name] = pd.to_numeric(counts[name])
        except (ValueError, TypeError):
            raise ArgumentError(
                "known", f"has a {name} that is not a number.", hint="leave it empty where nothing is known."
            ) from None
    return counts
