"""The text of CSV files in which an empty text differs from a missing value.

A missing value is an empty field, an empty text ``""``; other fields are quoted only if they hold a comma, a
quote or a line break. Lines end in a line feed, and the first names the columns.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from pandas_dptree.output.column_types import Cells

__all__ = ["join_columns", "split_columns", "split_in_arrow"]

_SPECIAL: Final = re.compile('[",\r\n]')


def join_columns(names: Sequence[str], columns: Sequence[Cells]) -> str:
    """Return the text of a table from the fields of its columns, None where missing."""
    rows = map(",".join, zip(*map(_fields, columns), strict=True))
    return "\n".join([",".join(_fields(names)), *rows, ""])


def split_columns(text: str, n_columns: int) -> Iterator[tuple[str | None, Cells]]:
    """Split the text that `join_columns` returned into the name and the values of each column."""
    encoding, dtype = ("ascii", np.uint8) if text.isascii() else ("utf-32-le", np.uint32)
    characters = np.frombuffer(text.encode(encoding), dtype)
    line_feed = characters == ord("\n")
    separator = line_feed | (characters == ord(","))
    quote = characters == ord('"')
    if quote.any():
        separator &= ~np.logical_xor.accumulate(quote)  # not within quotes
    ends = np.flatnonzero(separator).reshape(-1, n_columns)
    starts = np.append(0, ends.reshape(-1)[:-1] + 1).reshape(-1, n_columns)
    last = np.arange(n_columns) == n_columns - 1
    if not len(ends) or ends[-1, -1] != len(text) - 1 or (line_feed[ends] != last).any():
        raise ValueError("lines with another number of fields")
    for start, end in zip(starts.T, ends.T, strict=True):
        cells: Cells = [text[i:j] for i, j in zip(start.tolist(), end.tolist(), strict=True)]
        for row in np.flatnonzero(quote[start]).tolist():
            cells[row] = text[start[row] + 1 : end[row] - 1].replace('""', '"')
        for row in np.flatnonzero(start == end).tolist():
            cells[row] = None
        yield cells[0], cells[1:]


def split_in_arrow(content: bytes, n_columns: int) -> Iterator[tuple[str | None, Any]]:
    """Split the same text, in UTF-8, as `split_columns` does, but faster and into arrays of pyarrow.

    The whole text is one block, since pyarrow drops a line feed that is the first character of a later block.
    """
    arrow, csv = map(importlib.import_module, ("pyarrow", "pyarrow.csv"))
    names = list(map(str, range(n_columns)))
    options = {
        "read_options": csv.ReadOptions(column_names=names, block_size=len(content)),
        "parse_options": csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        "convert_options": csv.ConvertOptions(
            column_types=dict.fromkeys(names, arrow.large_string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    }
    table = csv.read_csv(arrow.BufferReader(content), **options)
    return ((column[0].as_py(), column[1:].combine_chunks()) for column in table.columns)


def _fields(cells: Sequence[str | None]) -> list[str]:
    """Return the fields of texts."""
    if "" not in cells and not _SPECIAL.search("".join(filter(None, cells))):
        return ["" if cell is None else cell for cell in cells]
    fields = {cell: _field(cell) for cell in set(cells)}
    return [fields[cell] for cell in cells]


def _field(cell: str | None) -> str:
    if cell is None:
        return ""
    quoted = not cell or _SPECIAL.search(cell)
    return '"' + cell.replace('"', '""') + '"' if quoted else cell
