"""The section with a cross table: a margin of a crossed table, with the totals of its rows and columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, listed, quote
from pandas_dptree.hierarchy.margin_names import margin_named
from pandas_dptree.hierarchy.product_tree import Margin
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.crossed_columns import axes_of
from pandas_dptree.output.crossed_tables import CrossedTable
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.setting import Section, Setting, note, scrolled
from pandas_dptree.output.pages.texts import isolated
from pandas_dptree.output.pages.views import Column, columns_of

__all__ = ["cross", "is_crossed"]

_KEPT = 20
"""The lines up to which a table is not broken over printed pages."""

_MOST_COLUMNS = 40
"""The nodes of the axis whose nodes are columns, at most."""

_MOST_CELLS = 20_000
"""The cells of a section, at most."""


def is_crossed(table: object) -> bool:
    """Whether a released table has the margins of crossed hierarchies."""
    return isinstance(table, pd.DataFrame) and bool(axes_of(table))


def cross(
    page: Setting,
    tables: Sequence[str],
    *,
    margin: Any = None,
    column: Hashable | None = None,
    shaded: bool = False,
) -> list[Section]:
    """Show a margin of crossed tables, one section for each; by default the finest one that fits.

    The last axis of the margin that has a level makes the columns, all others the rows.
    """
    return [_section(page, name, margin, column, shaded=shaded) for name in tables]


def _section(page: Setting, name: str, margin: Any, column: Hashable | None, *, shaded: bool) -> Section:
    if not is_crossed(page.tables[name]):
        raise ArgumentError(
            "show",
            f"wants a margin of {quote(name)}, which is no table of crossed hierarchies.",
            hint="leave out `margin`, and show it as levels or as a heat map of its last two.",
        )
    table = CrossedTable.of(page.tables[name])
    (shown, *_) = columns_of(
        table, page.provenances[name], page.labels, page.texts, column, page.classes, page.blank
    )
    levels = _levels(table, margin)
    grid = Grid.of(table, levels, _ordered(table, levels, margin))
    return Drawn(page, table, grid, shown, shaded=shaded).section(name)


def _levels(table: CrossedTable, margin: Any) -> Margin:
    """Return the level of each axis in a margin that has rows; by default the largest that fits."""
    released = {each: len(rows) for each, rows in table.margins if any(each)}
    named = listed([_named(table, each) for each in sorted(released)])
    if margin is not None:
        chosen = margin_named({axis: own.keys for axis, own in table.axes.items()}, margin, "margin")
        if chosen in released:
            return chosen
        raise ArgumentError(
            "margin", f"is not in the table: {quote(margin)}.", hint=f"the table has {named}."
        )
    fitting = {
        each: n for each, n in released.items() if n <= _MOST_CELLS and sum(level > 0 for level in each) <= 2
    }
    if not fitting:
        raise ArgumentError(
            "margin",
            "must be given: none of at most two axes fits on a page.",
            hint=f"choose one of {named}.",
        )
    return max(fitting, key=lambda each: (fitting[each], each))


def _named(table: CrossedTable, margin: Margin) -> dict[str, Hashable]:
    levels = zip(table.axes.items(), margin, strict=True)
    return {axis: own.keys[level - 1] for (axis, own), level in levels if level}


def _ordered(table: CrossedTable, levels: Margin, margin: Any) -> list[int]:
    """Return the axes of a margin, that of the columns last: as stated, or the one with fewest nodes."""
    axes = list(table.axes)
    used = [place for place, level in enumerate(levels) if level]
    if isinstance(margin, Mapping):
        return [place for place in map(axes.index, margin) if place in used]
    n_nodes = {place: np.count_nonzero(table.axes[axes[place]].depth == levels[place]) for place in used}
    return sorted(used, key=lambda place: -n_nodes[place])


@dataclass(frozen=True, eq=False)
class Grid:
    """The rows of a table that are the cells of a margin, and their totals; -1 where the table has none.

    Lines are combinations of nodes of the axes `by`, and columns are nodes of the axis `across`, if the
    margin has more than one axis. The total of a line is over that axis, that of a column over the others.
    """

    levels: Margin
    by: list[int]
    across: int | None
    lines: IntArray
    columns: IntArray
    cells: IntArray
    line_totals: IntArray
    column_totals: IntArray
    total: int

    @classmethod
    def of(cls, table: CrossedTable, levels: Margin, axes: list[int]) -> Grid:
        """Find the cells of a margin; an ArgumentError if they are too many for a page."""
        by, across = (axes[:-1], axes[-1]) if len(axes) > 1 else (axes, None)
        own = table.nodes[(table.margin == levels).all(axis=1)]
        lines = np.unique(own[:, by], axis=0)
        columns = np.zeros(0, dtype=np.int64) if across is None else np.unique(own[:, across])
        if len(columns) > _MOST_COLUMNS or len(lines) * max(len(columns), 1) > _MOST_CELLS:
            raise ArgumentError(
                "margin",
                f"would have {len(lines):,} lines and {len(columns):,} columns on the page.",
                hint=f"choose a coarser one, or name the axis with the fewest nodes last: at most "
                f"{_MOST_COLUMNS} columns and {_MOST_CELLS:,} cells are shown.",
            )
        tops = [np.flatnonzero(axis.depth == 0) for axis in table.axes.values()]
        top = np.array([found[0] if len(found) else -1 for found in tops])
        of_lines = np.tile(top, (len(lines), 1))
        of_lines[:, by] = lines
        of_columns = np.tile(top, (len(columns), 1))
        cells = np.repeat(of_lines[:, None], len(columns), axis=1)
        if across is not None:
            of_columns[:, across] = cells[:, :, across] = columns
        found = table.rows_at(cells.reshape(-1, len(top))).reshape(len(lines), len(columns))
        return cls(
            levels=levels, by=by, across=across, lines=lines, columns=columns, cells=found,
            line_totals=table.rows_at(of_lines), column_totals=table.rows_at(of_columns),
            total=int(table.rows_at(top[None])[0]),
        )  # fmt: skip

    @property
    def inner(self) -> IntArray:
        """The rows of the cells."""
        rows = self.line_totals if self.across is None else self.cells.reshape(-1)
        return rows[rows >= 0]


class Drawn:
    """A grid as HTML, with the numbers of one column, perhaps shaded by their size."""

    def __init__(
        self, page: Setting, table: CrossedTable, grid: Grid, column: Column, *, shaded: bool
    ) -> None:
        self.page, self.grid, self.column, self.shaded = page, grid, column, shaded
        self.axes = list(table.axes.values())
        self.digits = column.digits(grid.inner)
        strong = np.sqrt(np.maximum(np.nan_to_num(column.shown.numbers), 0.0))
        self.strong = strong / (strong[grid.inner].max(initial=0.0) or 1.0)
        self.has_line_totals = grid.across is None or bool((grid.line_totals >= 0).any())

    def section(self, name: str) -> Section:
        """Make the section of a table."""
        page, grid, texts = self.page, self.grid, self.page.texts
        names = [self._level(place) for place in grid.by]
        rows = texts.joined(names)
        if grid.across is None:
            caption = texts.fill("cross.caption.rows", name=self.column.heading, rows=rows)
        else:
            names.append(self._level(grid.across))
            caption = texts.fill("cross.caption", name=self.column.heading, rows=rows, columns=names[-1])
        heading = texts.fill(
            "cross.heading",
            table=page.table_name(name) if name else self.column.heading,
            axes=texts.joined(names),
        )
        table = element(
            "table",
            element("caption", caption),
            element("thead", self._heads()),
            [self._body(list(each)) for _, each in groupby(range(len(grid.lines)), key=self._group)],
            self._foot(),
            class_="h",
        )
        remarks = [texts["heatmap.told"]] if self.shaded else []
        if self.column.graded:
            classes = ", ".join([*self.column.classes][1:][-2:])
            remarks.append(texts.fill("heatmap.hatched", classes=classes))
        shown = scrolled(table, caption, texts, keep=len(grid.lines) <= _KEPT)
        return Section(heading, Markup(f"{note(*remarks) or ''}{shown}"))

    def _level(self, place: int) -> str:
        return self.page.labels.inline(self.axes[place].keys[self.grid.levels[place] - 1])

    def _label(self, place: int, node: int) -> str:
        """Return the keys of a node, from the coarsest, as the page shows them."""
        axis = self.axes[place]
        pairs = zip(axis.keys, axis.keys_of(node), strict=False)
        return " · ".join(isolated(self.page.labels.key(level, key)) for level, key in pairs)

    def _group(self, line: int) -> tuple[int, ...]:
        """Return the nodes of all axes but the last that makes lines: those of a group agree."""
        return tuple(self.grid.lines[line, :-1].tolist())

    def _heads(self) -> Markup:
        grid = self.grid
        cells = [
            element("th", self._label(grid.across, node), scope="col")
            for node in grid.columns.tolist()
            if grid.across is not None
        ]
        last = self.column.heading if grid.across is None else self.page.texts["heatmap.all"]
        total = element("th", last, scope="col") if self.has_line_totals else None
        return element("tr", element("td"), cells, total)

    def _body(self, lines: list[int]) -> Markup:
        """Make the lines of a group, below its name if there are several axes."""
        grid, above = self.grid, None
        if len(grid.by) > 1:
            nodes = zip(grid.by, self._group(lines[0]), strict=False)
            span = str(1 + len(grid.columns) + self.has_line_totals)
            named = " · ".join(self._label(*each) for each in nodes)
            above = element("tr", element("th", named, scope="rowgroup", colspan=span), class_="g")
        rows = []
        for line in lines:
            label = element("bdi", self._label(grid.by[-1], int(grid.lines[line, -1])))
            cells = [self._cell(row) for row in grid.cells[line].tolist()]
            total = self._cell(int(grid.line_totals[line]), total=grid.across is not None)
            rows.append(
                element(
                    "tr", element("th", label, scope="row"), cells, total if self.has_line_totals else None
                )
            )
        return element("tbody", above, rows, class_="k" if above is not None else None)

    def _foot(self) -> Markup | None:
        """Make the line of the totals of the columns, if the table has any."""
        grid = self.grid
        rows = [*grid.column_totals.tolist(), *([grid.total] if self.has_line_totals else [])]
        if not any(row >= 0 for row in rows):
            return None
        head = element("th", self.page.texts["heatmap.all"], scope="row")
        return element(
            "tbody", element("tr", head, [self._cell(row, total=True) for row in rows], class_="t")
        )

    def _cell(self, row: int, *, total: bool = False) -> Markup:
        """Make a cell: the number with its error, shaded unless it is a total."""
        if row < 0:
            return element("td")
        strong = 0.0 if self.column.is_blank(row) else float(self.strong[row])
        classes = " ".join(filter(None, ["m" if total else "", self.column.style(row)]))
        return element(
            "td",
            self.column.value(row, self.digits),
            element("small", self.column.error(row, self.digits)),
            style=f"--h:{strong:.3f}" if self.shaded and not total else None,
            class_=classes or None,
        )
