"""Workbooks of released tables for spreadsheet programs: to read, to filter and to print."""

from __future__ import annotations

import datetime
import importlib
import itertools
import math
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError, DPTreeError
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.atomic_files import write_whole
from pandas_dptree.output.derived.proportions import proportions
from pandas_dptree.output.frames import parts_of, prefix_of
from pandas_dptree.output.html import clean
from pandas_dptree.output.protection import objections, statement, undercount
from pandas_dptree.output.released import REMAINDER, Released, provenance_of, share_of
from pandas_dptree.output.table_digest import alteration

__all__ = ["LAYOUTS", "Layout", "write_workbook"]

Layout = Literal["nested", "levels"]
LAYOUTS: Final = ("nested", "levels")

_MOST_ROWS: Final = 2**20 - 1
"""Rows of a sheet below its head."""
_MOST_COLUMNS: Final = 2**14
_LONGEST_TEXT: Final = 2**15 - 1
_LONGEST_NAME: Final = 31
_DEEPEST_GROUP: Final = 7
_SHOWN_DEPTH: Final = 2
"""Rows of deeper levels are folded away."""
_EXACT: Final = 10**15
"""Spreadsheet programs keep 15 digits of a number."""
_README: Final = "Read me"

Cell = str | int | float | bool | datetime.datetime | None


def write_workbook(
    tables: Mapping[str, pd.DataFrame], path: Path, *, layout: Layout = "nested", replace: bool = True
) -> None:
    """Write released tables to one workbook: a sheet that explains them, and a sheet per table or level."""
    sheets = {name: list(_sheets_of(name, table, layout)) for name, table in tables.items()}
    titles = _titles([_README, *(sheet.name for each in sheets.values() for sheet in each)])[1:]
    rest = iter(titles)
    named = {name: [(next(rest), sheet) for sheet in each] for name, each in sheets.items()}
    book = importlib.import_module("openpyxl").Workbook(write_only=True)
    _write_readme(book, tables, named)
    for title, sheet in (pair for each in named.values() for pair in each):
        _write_sheet(book, title, sheet)
    write_whole(path, book.save, replace=replace)


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of a sheet: its head, its cells from top to bottom, and their number format."""

    head: str
    cells: list[Cell]
    format: str


@dataclass(frozen=True, eq=False)
class _Sheet:
    """A table as it is written; rows of a depth are folded under the row of a smaller one before them."""

    name: str
    columns: list[_Column]
    depth: IntArray


# From tables to sheets.


def _sheets_of(name: str, table: pd.DataFrame, layout: Layout) -> Iterator[_Sheet]:
    """Lay a table out: its rows nested on one sheet, or a sheet per level."""
    table = _with_derived(table)
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


def _with_derived(table: pd.DataFrame) -> pd.DataFrame:
    """Add the proportions of the parent of the first column, if the table has what they are computed from."""
    with suppress(DPTreeError):
        derived = proportions(table)
        names = {"proportion": _PROPORTION, "std_error": f"{_PROPORTION}, ±"}
        return table.assign(**{names[each]: derived[each] for each in names})
    return table


def _tree_of(table: pd.DataFrame) -> Released | None:
    """Read a table as a tree of groups, each of one row or of many bins; None if it has no levels."""
    try:
        keys, _, columns = parts_of(table)
    except DPTreeError:
        return None
    depth = pd.Index([ROOT, *keys], dtype=object).get_indexer(pd.Index(table["level"], dtype=object))
    if not {*keys} <= {*table} or (depth < 0).any() or not len(table):
        return None
    return Released(table, keys, columns, depth.astype(np.int64))


def _sheet(
    name: str, table: pd.DataFrame, depth: IntArray, keys: Sequence[Hashable] = (), *, folded: bool = False
) -> _Sheet:
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
            columns.append(_Column(head, _keys(column, own), "0"))
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
    return _Sheet(name, columns, depth if folded else np.zeros_like(depth))


def _ordered(table: pd.DataFrame) -> Iterator[tuple[Hashable, str]]:
    """List the columns and their heads; the error and the interval of a value follow it."""
    values = {
        each: prefix_of(None if each == "count" else each)
        for each in table
        if each == "count" or f"{each}_std_error" in table
    }
    companions = {f"{prefix}{kind}" for prefix in values.values() for kind in _HEADS}
    for each in table:
        if each in companions:
            continue
        yield each, str(each)
        for kind, head in _HEADS.items():
            if each in values and f"{values[each]}{kind}" in table:
                yield f"{values[each]}{kind}", head if each == "count" else f"{each} {head}"


_HEADS: Final = {
    "std_error": "± standard error", "error_bound": "± error bound", "lower": "lower", "upper": "upper"
}  # fmt: skip
"""Suffixes of the columns that belong to a value, and their heads."""


def _column(head: str, values: pd.Series) -> _Column:
    """Make a column of numbers, times or texts."""
    return _Column(head, [_cell(each) for each in values.tolist()], _format(str(head), values))


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
    if head == "cdf" or head.startswith(_PROPORTION):
        return "0.0 %"
    sizes = np.abs(values.to_numpy(dtype=np.float64, na_value=np.nan))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    digits = min(max(2 - math.floor(math.log10(np.median(sizes))), 0), 9) if len(sizes) else 0
    return f"#,##0.{'0' * digits}".rstrip(".")


_PROPORTION: Final = "proportion of the level above"
_TIME: Final = "yyyy-mm-dd hh:mm:ss"


# Names of sheets.


def _titles(names: Sequence[str]) -> list[str]:
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


# Writing.


def _write_readme(
    book: Any, tables: Mapping[str, pd.DataFrame], sheets: Mapping[str, Sequence[tuple[str, _Sheet]]]
) -> None:
    """Write the sheet that says what protects each table, and how its numbers are read."""
    sheet = book.create_sheet(_README)
    sheet.column_dimensions["A"].width = 110
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = _part("worksheet.properties").PageSetupProperties(fitToPage=True)
    for name, table in tables.items():
        provenance = provenance_of(table)
        sheet.append([_text_cell(sheet, name, bold=True)])
        altered = alteration(table)
        plan, digest = provenance.get("digest"), provenance.get("table_digest")
        lines = [
            f"{len(table):,} rows, on {'sheets' if len(sheets[name]) > 1 else 'the sheet'} "
            + ", ".join(f"“{title}”" for title, _ in sheets[name])
            + ".",
            *objections(provenance),
            *([f"This is {altered}."] if altered else []),
            undercount(provenance),
            *statement(provenance),
            f"Digest of the plan: SHA-256 {plan}." if plan else "",
            f"Digest of the released values: SHA-256 {digest}." if digest else "",
            *_reading({column.head for _, sheet in sheets[name] for column in sheet.columns}, provenance),
        ]
        for line in filter(None, lines):
            sheet.append([_text_cell(sheet, line)])
        sheet.append([])
    sheet.append([_text_cell(sheet, f"Written by pandas_dptree {__version__}. {_ORIGIN}")])


_ORIGIN: Final = (
    "This workbook repeats what its tables say of themselves, which proves nothing. It is for reading; the "
    ".csv or .parquet file of a table keeps it exactly."
)


def _reading(heads: Collection[str], provenance: Mapping[str, Any]) -> Iterator[str]:
    """Explain the columns of errors."""
    if any(head.endswith(_HEADS["std_error"]) for head in heads):
        yield (
            "± standard error: that of the unbiased estimate, before anything made it whole or "
            "non-negative. The noise moves about two of three values by less than it."
        )
    if any(head.endswith(_HEADS["error_bound"]) for head in heads):
        failure = provenance.get("failure_probability")
        held = f"with a probability of {1 - failure:.4g}" if isinstance(failure, float) else "nearly always"
        yield f"± error bound: a value is off by no more than this; for a single row that holds {held}."
    share = share_of(provenance)
    if any(head.endswith(f"lower {share}".strip()) for head in heads):
        yield (
            "lower and upper: the ends of an interval that holds the true value of what was counted in at "
            f"least about {share or 'a stated share'} of all releases. This applies to each interval "
            "separately; in a table of a distribution, to all of a group together."
        )
    if _PROPORTION in heads:
        yield (
            f"{_PROPORTION}: the quotient of the numbers shown, and one standard error. It is missing if the "
            "base is too small."
        )
    yield (
        "Sums of rows are not given as formulas, and their errors are not sums of errors. An empty cell is a "
        f"number that is not known or not shown, never 0. {REMAINDER} is what is not shown by name."
    )


def _write_sheet(book: Any, title: str, sheet: _Sheet) -> None:
    """Write the rows of a sheet, folded by depth, below a head that stays and is printed on each page."""
    page = book.create_sheet(title)
    page.freeze_panes, page.print_title_rows = "A2", "1:1"
    properties = _part("worksheet.properties")
    page.sheet_properties.outlinePr = properties.Outline(summaryBelow=False)
    page.sheet_properties.pageSetUpPr = properties.PageSetupProperties(fitToPage=True)
    page.page_setup.fitToHeight = 0
    page.sheet_format.outlineLevelRow = min(int(sheet.depth.max(initial=0)), _DEEPEST_GROUP)
    letter = _part("utils").get_column_letter
    for place, column in enumerate(sheet.columns, start=1):
        page.column_dimensions[letter(place)].width = _width(column)
    page.auto_filter.ref = f"A1:{letter(len(sheet.columns))}{len(sheet.depth) + 1}"
    _fold(page, sheet.depth)
    page.append([_text_cell(page, column.head, bold=True) for column in sheet.columns])
    for row in zip(*(column.cells for column in sheet.columns), strict=True):
        page.append(
            [_value_cell(page, cell, column.format) for cell, column in zip(row, sheet.columns, strict=True)]
        )


def _fold(page: Any, depth: IntArray) -> None:
    """Group the rows of each depth, and fold those away that are below depth 2."""
    dimension = _part("worksheet.dimensions").RowDimension
    deeper = np.append(depth[1:], 0) > np.maximum(depth, _SHOWN_DEPTH)
    for row, (level, above) in enumerate(zip(depth.tolist(), deeper.tolist(), strict=True), start=2):
        if level or above:
            page.row_dimensions[row] = dimension(
                page,
                index=row,
                outlineLevel=min(level, _DEEPEST_GROUP),
                hidden=level > _SHOWN_DEPTH,
                collapsed=above and level <= _SHOWN_DEPTH,
            )


def _width(column: _Column) -> float:
    """Choose the width of a column, in letters, from its first rows."""
    texts = [column.head, *(str(cell) for cell in column.cells[:1000] if isinstance(cell, str))]
    return float(min(max(map(len, texts)) + 3, 50))


def _value_cell(sheet: Any, value: Cell, number_format: str) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        return _text_cell(sheet, value)
    cell = _part("cell").WriteOnlyCell(sheet, value)
    cell.number_format = number_format
    return cell


def _text_cell(sheet: Any, text: str, *, bold: bool = False) -> Any:
    """Make a cell that is text, whatever it begins with, and stays so when it is edited."""
    text = _ESCAPE.sub(r"_x005F\g<0>", text)
    cell = _part("cell").WriteOnlyCell(sheet, text)
    cell.data_type = "s"  # not a formula, nor an error
    cell.quotePrefix = text.startswith(("=", "+", "-", "@"))
    if bold:
        cell.font = _part("styles").Font(bold=True)
    return cell


_ESCAPE: Final = re.compile("_x[0-9A-Fa-f]{4}_")
"""What spreadsheet programs read as the number of a character."""


def _part(name: str) -> Any:
    return importlib.import_module(f"openpyxl.{name}")
