"""Released tables as the sheets of a workbook: their columns, cells and formats, and the names of sheets."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, DPTreeError
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.derived.proportions import proportions
from pandas_dptree.output.derived.reliability import reliability
from pandas_dptree.output.frames import parts_of, prefix_of
from pandas_dptree.output.html import clean
from pandas_dptree.output.released import REMAINDER, Released, provenance_of, share_of

__all__ = ["HEADS", "LAYOUTS", "PROPORTION", "Cell", "Column", "Layout", "Sheet", "sheets_of", "titles_of"]

Layout = Literal["nested", "levels"]
LAYOUTS: Final = ("nested", "levels")

_MOST_ROWS: Final = 2**20 - 1
"""Rows of a sheet below its head."""
_MOST_COLUMNS: Final = 2**14
_LONGEST_TEXT: Final = 2**15 - 1
_LONGEST_NAME: Final = 31
_EXACT: Final = 10**15
"""Spreadsheet programs keep 15 digits of a number."""

Cell = str | int | float | bool | datetime.datetime | None


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a sheet: its head, its cells from top to bottom, and their number format."""

    head: str
    cells: list[Cell]
    format: str


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table as it is written; rows of a depth are folded under the row of a smaller one before them."""

    name: str
    columns: list[Column]
    depth: IntArray


# From tables to sheets.


def sheets_of(name: str, table: pd.DataFrame, layout: Layout, estimates: pd.DataFrame) -> Iterator[Sheet]:
    """Lay a table out: its rows nested on one sheet, or a sheet per level."""
    table = _with_derived(table, estimates)
    released = _tree_of(table)
    if released is None:
        named = [each for each in table.index.names if each is not None]
        flat = table.reset_index(named) if named else table
        yield _sheet(name, flat, np.zeros(len(flat), dtype=np.int64))
    elif layout == "nested":
        order = released.nested
        yield _sheet(name, released.table.iloc[order], released.depth[order], released.keys, folded=True)
    else:
        for level, rows in released.levels:
            keys = released.keys[: released.depth[rows[0]]]
            below = released.keys[len(keys) :]
            columns = released.table.iloc[rows].drop(columns=["level", *below])
            yield _sheet(f"{name} {level}", columns, released.depth[rows], keys)


def _with_derived(table: pd.DataFrame, estimates: pd.DataFrame) -> pd.DataFrame:
    """Add classes, and the proportions of the first column, if the table has what they are computed from."""
    added: dict[str, Any] = {}
    with suppress(DPTreeError):
        classes = reliability(table)
        for column in parts_of(table)[2]:
            added[f"{_prefix(column)}{_CLASS}"] = classes[column].to_numpy()
    with suppress(DPTreeError):
        shares = proportions(estimates)
        added[PROPORTION] = shares["proportion"].to_numpy()
        added[f"{PROPORTION}, ±"] = shares["std_error"].to_numpy()
    return table.assign(**added)


def _tree_of(table: pd.DataFrame) -> Released | None:
    """Read a table as a tree of groups, each of one row or of many bins; None if it has no levels."""
    try:
        keys, _, columns = parts_of(table)
    except DPTreeError:
        return None
    depth = pd.Index([ROOT, *keys], dtype=object).get_indexer(pd.Index(table["level"], dtype=object))
    if not {*keys} <= {*table} or (depth < 0).any() or not len(table):
        return None
    return Released(table, columns, keys, depth.astype(np.int64))


def _sheet(
    name: str, table: pd.DataFrame, depth: IntArray, keys: Sequence[Hashable] = (), *, folded: bool = False
) -> Sheet:
    """Make the columns of a sheet; `depth` is the number of keys of each row."""
    if len(table) > _MOST_ROWS:
        raise ArgumentError(
            "released",
            f"has {len(table):,} rows for one sheet of a workbook, which takes {_MOST_ROWS:,}.",
            hint='write a .csv or .parquet file, pass layout="levels", or leave out the finest level.',
        )
    share = share_of(provenance_of(table))
    columns = []
    for each, head in _ordered(table):
        column = table[each].reset_index(drop=True)
        if each in keys:
            own = depth == [*keys].index(each) + 1
            columns.append(Column(head, _keys(column, own), "0"))
        elif isinstance(column.dtype, pd.IntervalDtype):
            ends = pd.IntervalIndex(column.array)
            columns += [_column(f"{head} from", pd.Series(ends.left))]
            columns += [_column(f"{head} below", pd.Series(ends.right))]
        else:
            interval = share if head.endswith(("lower", "upper")) else ""
            columns.append(_column(f"{head} {interval}".strip(), column))
    if len(columns) > _MOST_COLUMNS:
        raise ArgumentError(
            "released",
            f"has {len(columns):,} columns for a workbook, which takes {_MOST_COLUMNS:,}.",
            hint="write a .csv or .parquet file.",
        )
    return Sheet(name, columns, depth if folded else np.zeros_like(depth))


def _ordered(table: pd.DataFrame) -> Iterator[tuple[Hashable, str]]:
    """List the columns and their heads; the error and the interval of a value follow it."""
    values = {each: _prefix(each) for each in table if each == "count" or f"{each}_std_error" in table}
    companions = {f"{prefix}{kind}" for prefix in values.values() for kind in HEADS}
    for each in table:
        if each in companions:
            continue
        yield each, str(each)
        for kind, head in HEADS.items():
            if each in values and f"{values[each]}{kind}" in table:
                yield f"{values[each]}{kind}", head if each == "count" else f"{each} {head}"


def _prefix(column: Hashable) -> str:
    """Return how the names of the columns begin that belong to a value."""
    return prefix_of(None if column == "count" else column)


_CLASS: Final = "class of reliability"
HEADS: Final = {
    "std_error": "± standard error", "error_bound": "± error bound", "lower": "lower", "upper": "upper",
    _CLASS: "class",
}  # fmt: skip
"""Suffixes of the columns that belong to a value, and their heads."""


def _column(head: str, values: pd.Series) -> Column:
    """Make a column of numbers, times or texts."""
    return Column(head, [_cell(each) for each in values.tolist()], _format(str(head), values))


def _keys(keys: pd.Series, own: npt.NDArray[np.bool_]) -> list[Cell]:
    """Make the cells of a key; where it is missing in rows of its own level, these are remainders."""
    missing = keys.isna().to_numpy()
    return [
        REMAINDER if other else _cell(key)
        for key, other in zip(keys.tolist(), (own & missing).tolist(), strict=True)
    ]


def _cell(value: Any) -> Cell:
    """Convert a value to what a spreadsheet holds exactly, or else to text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, pd.Timestamp) and value.tzinfo is None and value.year > 1900:
        return value.floor("us").to_pydatetime()
    text = clean(str(value)).replace("\t", " ")
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


def _format(head: str, values: pd.Series) -> str:
    """Choose the format of a column: whole numbers, times, shares, or as many decimals as its values need."""
    if pd.api.types.is_integer_dtype(values.dtype):
        return "#,##0"
    if isinstance(values.dtype, np.dtype) and values.dtype.kind == "M":
        return "yyyy-mm-dd" if (values.dropna() == values.dropna().dt.normalize()).all() else _TIME
    if not pd.api.types.is_float_dtype(values.dtype):
        return "General"
    if head == "cdf" or head.startswith(PROPORTION):
        return "0.0 %"
    sizes = np.abs(values.to_numpy(dtype=np.float64, na_value=np.nan))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    digits = min(max(2 - math.floor(math.log10(np.median(sizes))), 0), 9) if len(sizes) else 0
    return f"#,##0.{'0' * digits}".rstrip(".")


PROPORTION: Final = "proportion of the level above"
_TIME: Final = "yyyy-mm-dd hh:mm:ss"


# Names of sheets.


def titles_of(names: Sequence[str]) -> list[str]:
    """Turn names into names of sheets: valid, at most 31 letters, each once whatever their case."""
    titles: list[str] = []
    for name in names:
        plain = re.sub(r"[\[\]:*?/\\\t\n]", "_", clean(name)).strip(" '") or "Table"
        plain = "History_" if plain.casefold() == "history" else plain  # reserved by Excel
        taken = {title.casefold() for title in titles}
        ends = itertools.chain([""], (f" ({number})" for number in itertools.count(2)))
        titles.append(
            next(each for each in (_shortened(plain, end) for end in ends) if each.casefold() not in taken)
        )
    return titles


def _shortened(name: str, end: str) -> str:
    """Cut a name so that it has at most 31 UTF-16 units with its end."""
    while len(f"{name}{end}".encode("utf-16-le")) > 2 * _LONGEST_NAME:
        name = name[:-1]
    return f"{name.strip(chr(39) + ' ')}{end}"
