"""Workbooks of released tables for spreadsheet programs: to read, to filter and to print."""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.atomic_files import write_whole
from pandas_dptree.output.derived.reliability import KNOWN
from pandas_dptree.output.protection import objections, statement, undercount
from pandas_dptree.output.released import REMAINDER, provenance_of, share_of
from pandas_dptree.output.sheets import (
    HEADS,
    PROPORTION,
    Cell,
    Column,
    Layout,
    Sheet,
    sheets_of,
    titles_of,
)
from pandas_dptree.output.table_digest import alteration

__all__ = ["write_workbook"]


_DEEPEST_GROUP: Final = 7
_SHOWN_DEPTH: Final = 2
"""Rows of deeper levels are folded away."""
_README: Final = "Read me"


def write_workbook(
    tables: Mapping[str, pd.DataFrame],
    path: Path,
    *,
    layout: Layout = "nested",
    replace: bool = True,
    estimates: Mapping[str, pd.DataFrame] | None = None,
) -> None:
    """Write released tables to one workbook: a sheet that explains them, and a sheet per table or level.

    `estimates` has tables with their unbiased estimates, of which proportions are computed.
    """
    found = {**tables, **(estimates or {})}
    sheets = {name: list(sheets_of(name, table, layout, found[name])) for name, table in tables.items()}
    titles = iter(titles_of([_README, *(sheet.name for each in sheets.values() for sheet in each)])[1:])
    named = {name: [(next(titles), sheet) for sheet in each] for name, each in sheets.items()}
    book = importlib.import_module("openpyxl").Workbook(write_only=True)
    _write_readme(book, tables, named)
    for title, sheet in (pair for each in named.values() for pair in each):
        _write_sheet(book, title, sheet)
    write_whole(path, book.save, replace=replace)


def _write_readme(
    book: Any, tables: Mapping[str, pd.DataFrame], sheets: Mapping[str, Sequence[tuple[str, Sheet]]]
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
    if any(head.endswith(HEADS["std_error"]) for head in heads):
        yield (
            "± standard error: that of the unbiased estimate, before anything made it whole or "
            "non-negative. The noise moves about two of three values by less than it."
        )
    if any(head.endswith(HEADS["error_bound"]) for head in heads):
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
    if any(head == "class" or head.endswith(" class") for head in heads):
        yield (
            "class: the standard error divided by the value. A below 5 %, B below 10 %, C below 15 %, D "
            "below 25 %, E below 50 % (use with caution), F from 50 % on and for 0 (too unreliable to be "
            f"published); {KNOWN} where the value is known."
        )
    if PROPORTION in heads:
        yield (
            f"{PROPORTION}: the quotient of the numbers shown, and one standard error. It is missing if the "
            "base is too small."
        )
    yield (
        "Sums of rows are not given as formulas, and their errors are not sums of errors. An empty cell is a "
        f"number that is not known or not shown, never 0. {REMAINDER} is what is not shown by name."
    )


def _write_sheet(book: Any, title: str, sheet: Sheet) -> None:
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


def _width(column: Column) -> float:
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
