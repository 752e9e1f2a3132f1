"""Released tables, restored from their files; see `pandas_dptree.output.files` for the formats."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.output.column_types import (
    Cells,
    decode,
    decode_arrow,
    decode_value,
    is_plain_text,
    names_as_text,
)
from pandas_dptree.output.csv_text import split_columns, split_in_arrow

__all__ = [
    "FORMAT",
    "METADATA",
    "description_path",
    "is_kept_as_text",
    "read_csv",
    "read_parquet",
    "values_alone",
]

FORMAT: Final = "pandas_dptree table, version 1"
METADATA: Final = b"pandas_dptree"
_LARGEST_BLOCK: Final = 2**31 - 1
"""Bytes that pyarrow splits at once."""


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table and its description, which states the digest of the CSV file."""
    content, beside = path.read_bytes(), description_path(path)
    try:
        described = beside.read_bytes()
    except OSError:
        raise ArgumentError(
            "path",
            f"lacks its description: {str(beside)!r} cannot be read.",
            hint=f"move and rename the two files together; {values_alone(path)}",
        ) from None
    data = _parsed(described, beside)
    if data["sha256"] != hashlib.sha256(content).hexdigest():
        raise ArgumentError(
            "path",
            f"was changed after it was written: its SHA-256 is not the one in {str(beside)!r}.",
            hint=f"restore the original file, and edit only copies of it; {values_alone(path)}",
        )
    names, columns, fields = [], [], data["columns"]
    split, restore = _split(content, len(fields))
    for (name, cells), field in zip(split, fields, strict=True):
        names.append(name)
        columns.append(restore(field["type"], cells))
    return _frame_of(data, names, columns)


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a table from a Parquet file that holds its description."""
    content = io.BytesIO(path.read_bytes())
    metadata = importlib.import_module("pyarrow.parquet").read_schema(content).metadata or {}
    if METADATA not in metadata:
        raise ArgumentError(
            "path",
            f"is not a file of a released table: {str(path)!r} has no description.",
            hint="name a file that DataFrame.dp.to_file wrote; pd.read_parquet reads other files.",
        )
    data = _parsed(metadata[METADATA], path)
    stored = pd.read_parquet(content, engine="pyarrow")
    columns = [
        _from_parquet(column, field["type"])
        for (_, column), field in zip(stored.items(), data["columns"], strict=True)
    ]
    return _frame_of(data, list(stored.columns), columns)


def description_path(path: Path) -> Path:
    """Return the path of the JSON file beside a CSV file."""
    return path.with_name(f"{path.name}.json")


def is_kept_as_text(kind: Any) -> bool:
    """Whether values of a type are stored as text in Parquet too, as intervals of zoned times are."""
    if isinstance(kind, dict):
        return "interval" not in kind or "," in kind["interval"]
    return is_plain_text(kind)


def values_alone(path: Path) -> str:
    """Return the end of a hint: how to read a table without its description."""
    if path.suffix.lower() == ".parquet":
        return "pd.read_parquet reads the values alone."
    # keep_default_na: a key may be "NA"
    return f"pd.read_csv({path.name!r}, dtype=str, keep_default_na=False) reads the values alone, as text."


def _split(content: bytes, n_columns: int) -> tuple[Iterator[Any], Callable[[Any, Any], pd.Series]]:
    """Split a CSV file into columns, with pyarrow if possible; and return the function that restores one."""
    if len(content) <= _LARGEST_BLOCK:
        with suppress(ImportError):
            return split_in_arrow(content, n_columns), decode_arrow
    return split_columns(content.decode(), n_columns), decode


def _from_parquet(column: pd.Series, kind: Any) -> pd.Series:
    """Restore a column; Parquet stores seconds as milliseconds."""
    if is_kept_as_text(kind):
        cells: Cells = column.astype(object).where(column.notna(), None).tolist()
        if not all(cell is None or isinstance(cell, str) for cell in cells):
            raise TypeError("other values than text")
        return decode(kind, cells)
    dtype: Any = decode(kind, []).dtype
    if column.dtype != dtype and column.dtype.kind not in "Mm" and not isinstance(dtype, pd.IntervalDtype):
        raise TypeError("another type")
    return column.astype(dtype)


def _parsed(text: bytes, path: Path) -> dict[str, Any]:
    """Parse a description; `path` is the file that holds it."""
    try:
        data = json.loads(text)
        found = data["format"]
    except (ValueError, LookupError, TypeError, RecursionError):
        found = None
    if found != FORMAT:
        raise ArgumentError(
            "path",
            f"has no description of the format {FORMAT!r} in {str(path)!r}.",
            hint="restore the description that was written with the table. If another version of "
            "pandas_dptree wrote it, read it with that version.",
        )
    return data  # type: ignore[no-any-return]


def _frame_of(data: dict[str, Any], header: list[Any], columns: list[pd.Series]) -> pd.DataFrame:
    """Make the table of a description and its columns."""
    fields, attrs, plan = data["columns"], data["attrs"], data["plan"]
    names = [decode_value(field["name"]) for field in fields]
    if names_as_text(names) != header:
        raise ValueError("other names")
    if not isinstance(attrs, dict) or not isinstance(plan, dict | None):
        raise TypeError("attrs or a plan that are not objects")
    frame = pd.DataFrame(dict(enumerate(columns)), copy=False)
    indexed = [place for place, field in enumerate(fields) if field.get("index")]
    if indexed:
        frame = frame.set_index(indexed)
        frame.index.names = [names[place] for place in indexed]
    frame.columns = _index_of([name for place, name in enumerate(names) if place not in indexed])
    frame.attrs["dp"] = attrs
    if plan is not None:
        frame.attrs["dp_plan"] = json.dumps(plan)
    return frame


def _index_of(names: list[Hashable]) -> pd.Index:
    try:
        return pd.Index(names, tupleize_cols=False)
    except UnicodeEncodeError:  # lone surrogates
        return pd.Index(names, tupleize_cols=False, dtype=object)
