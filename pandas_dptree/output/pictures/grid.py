"""The two finest levels of a table as a grid: a line for each node above, a column for each key below."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.pictures.drawn import places_of
from pandas_dptree.output.released import Released

__all__ = ["MOST_CELLS", "Grid", "grid_of"]

MOST_CELLS = 5_000
"""Grids of more cells cannot be read."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Rows of a table by line and column: `cells` has shape (n_lines, n_columns), -1 where there is none.

    `lines` are the rows of the nodes above, and `columns` the texts of the keys below.
    """

    lines: IntArray
    columns: list[str]
    cells: IntArray


def grid_of(released: Released, *, argument: str) -> Grid:
    """Lay out the two finest levels of a table; keys keep the order of time, or that of the table."""
    if len(released.keys) < 2 or not len(released.levels[-1][1]):
        raise ArgumentError(
            argument,
            "cannot be shown as a heat map: that takes two levels, for lines and columns.",
            hint='as="levels" and plot.levels() show any table.',
        )
    leaves, lines = released.levels[-1][1], released.levels[-2][1]
    if len(released.levels) < 2 or int(released.depth[lines[0]]) + 1 != int(released.depth[leaves[0]]):
        raise ArgumentError(
            argument,
            "cannot be shown as a heat map: it lacks the rows above the finest level.",
            hint="keep the rows of the two finest levels.",
        )
    keys = released.table[released.keys[int(released.depth[leaves[0]]) - 1]].iloc[leaves]
    places = places_of(keys)
    codes, columns = pd.factorize(np.array([released.name(row) for row in leaves.tolist()], dtype=object))
    if places is not None:
        first = np.array([places[codes == code].min() for code in range(len(columns))])
        order = np.argsort(first, kind="stable")
        codes, columns = np.argsort(order)[codes], columns[order]
    if len(lines) * len(columns) > MOST_CELLS:
        raise ArgumentError(
            argument,
            f"cannot be shown as a heat map: {len(lines):,} times {len(columns):,} cells are too many.",
            hint=f"a grid may have {MOST_CELLS:,} cells; choose coarser levels.",
        )
    line_of = {row: place for place, row in enumerate(lines.tolist())}
    cells = np.full((len(lines), len(columns)), -1, dtype=np.int64)
    for row, column in zip(leaves.tolist(), codes.tolist(), strict=True):
        if (line := line_of.get(int(released.parent[row]))) is not None:
            cells[line, column] = row
    return Grid(lines, [str(each) for each in columns], cells)
