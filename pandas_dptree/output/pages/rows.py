"""The rows of one level as HTML: one table with bars, or small tables for each group in columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.setting import Setting, capital, note, scrolled
from pandas_dptree.output.pages.texts import isolated
from pandas_dptree.output.pages.views import Column, View

__all__ = ["LONGEST", "Group", "Rows"]

LONGEST = 60
"""The rows up to which a level is drawn with bars."""

_KEPT, _KEPT_IN_COLUMNS = 20, 12
"""The rows up to which a table is not broken over printed pages, or columns."""

Group = Sequence[int]
"""Rows of one level with the same parent."""


@dataclass(frozen=True)
class Rows:
    """The rows of one level, in groups, and the columns to show of them, each with its table.

    The rows are those of the table `main`; in other tables, the row with the same keys is shown.
    """

    page: Setting
    main: View
    columns: Sequence[tuple[View, Column]]
    level: Hashable
    groups: Sequence[Group]

    def html(self) -> Markup:
        """Return the rows as one table, or as small ones in columns; deep levels are folded."""
        if len(self.rows) <= LONGEST and (len(self.columns) > 1 or self._is_first):
            return self._table()
        if len(self.rows) <= LONGEST or self._depth < 3:
            return self._blocks(self.groups)
        first = self.main.released.groups
        folds = groupby(self.groups, key=lambda group: first[group[0], 0])
        return Markup("".join(self._folded(list(each), not place) for place, (_, each) in enumerate(folds)))

    @cached_property
    def rows(self) -> list[int]:
        """All rows."""
        return [row for group in self.groups for row in group]

    @property
    def has_bars(self) -> bool:
        """Whether bars are drawn."""
        return self._most is not None

    def prints_ends(self) -> bool:
        """Whether an error is printed as an interval."""
        columns = [(view, column) for view, column in self.columns if not column.shows_ends]
        cells = ((column, self._row_in(view, row)) for view, column in columns for row in self.rows)
        return any(column.error(row, 0)[:1] not in ("", "±") for column, row in cells if row is not None)

    def missing_numbers(self) -> list[str]:
        """List the texts that explain the numbers that are missing."""
        missing = [
            column.missing
            for view, column in self.columns
            if np.isnan(column.shown.numbers[self._rows_in(view)]).any()
        ]
        return list(dict.fromkeys(missing))

    @property
    def _depth(self) -> int:
        return int(self.main.released.depth[self.rows[0]]) if self.rows else 0

    @property
    def _is_first(self) -> bool:
        return self._depth < 2

    def _row_in(self, view: View, row: int) -> int | None:
        """Return the row of a table that belongs to a row of the main one."""
        return row if view is self.main else view.row_of.get(self.main.released.keys_of(row))

    def _rows_in(self, view: View) -> IntArray:
        """Return the rows of a table that belong to the rows shown."""
        found = (self._row_in(view, row) for row in self.rows)
        return np.array([row for row in found if row is not None], dtype=np.int64)

    @cached_property
    def _digits(self) -> list[int]:
        """The decimals of each column."""
        if not self.rows:
            return [column.digits(np.arange(len(view.released.table))) for view, column in self.columns]
        return [column.digits(self._rows_in(view)) for view, column in self.columns]

    @cached_property
    def _most(self) -> float | None:
        """The end of the scale of bars, which only the first column has; None if there are none."""
        view, column = self.columns[0]
        return column.most(self._rows_in(view)) if 0 < len(self.rows) <= LONGEST else None

    @cached_property
    def _common_error(self) -> str | None:
        """The error of the only column, if it is printed alike in more rows than have bars."""
        if len(self.columns) > 1 or len(self.rows) <= LONGEST:
            return None
        errors = {self.columns[0][1].error(row, self._digits[0]) for row in self.rows}
        error = errors.pop()
        return error if not errors and error.startswith("±") else None

    def _above(self, row: int, since: int = 0) -> str:
        """Return the labels of what is above a row, from the coarsest down."""
        released = self.main.released
        keys = zip(released.keys[since:], released.keys_of(row)[since:-1], strict=False)
        return " · ".join(isolated(self.main.labels.key(level, key)) for level, key in keys)

    def _group_head(self, row: int, since: int = 0) -> list[Markup | str]:
        """Return what is above a row, with its first number in small."""
        above = self._above(row, since) or self._above(row)
        parent = int(self.main.released.parent[row])
        view, column = self.columns[0]
        at = self._row_in(view, parent) if parent >= 0 else None
        if at is None or column.shows_ends:
            return [above]
        digits = column.digits(np.array([at]))
        shown = f"{column.value(at, digits)} {column.error(at, digits)}"
        return [above, " ", element("small", shown, class_="e")]

    def _row(self, row: int, *, bars: bool = True, alone: bool = False, class_: str = "") -> Markup:
        """Make a row; one that is `alone` below its parent is named together with what is above it."""
        above = self._above(row) if alone else ""
        label = self.main.label(row)
        head = element("th", f"{above} · {isolated(label)}" if above else label, scope="row")
        cells = [
            column.cells(
                self._row_in(view, row),
                digits,
                self._most if bars and not place else None,
                with_error=self._common_error is None,
            )
            for place, ((view, column), digits) in enumerate(zip(self.columns, self._digits, strict=True))
        ]
        first, column = self.columns[0]
        at = self._row_in(first, row)
        classes = " ".join(filter(None, [class_, None if at is None else column.style(at)]))
        return element("tr", head, cells, class_=classes or None)

    def _heads(self) -> Markup:
        """Make the head of the columns."""
        cells = [
            column.heads(self.page.texts, with_error=self._common_error is None) for _, column in self.columns
        ]
        return element("tr", element("th", self.main.labels.name(self.level), scope="col"), cells)

    def _table(self) -> Markup:
        """Make one table with bars, in which the total is last."""
        texts, main, root = self.page.texts, self.main, self.main.root
        bodies = [self._body(group) for group in self.groups]
        if root is not None and self._is_first:
            bodies.append(element("tbody", self._row(root, bars=False, class_="t")))
        named = texts.joined([main.labels.inline(column.shown.name) for _, column in self.columns])
        caption = texts.fill("levels.caption", columns=named, level=isolated(main.labels.inline(self.level)))
        table = element(
            "table",
            element("caption", capital(caption)),
            element("thead", self._table_names(), self._heads()),
            bodies,
        )
        several = len(self.page.tables) > 1
        name = texts.fill("of.table", name=self.page.table_name(main.name), words=caption)
        shown = scrolled(table, name if several else capital(caption), texts, keep=len(self.rows) <= _KEPT)
        few = {1: "solo", 2: "duo"}.get(len(self.columns))
        return element("div", shown, class_=few) if few else shown

    def _table_names(self) -> Markup | None:
        """Make the names of several tables above their columns."""
        spans = [
            (view, sum(column.width for _, column in columns))
            for view, columns in groupby(self.columns, key=lambda each: each[0])
        ]
        if len(spans) < 2:
            return None
        cells = [
            element("th", self.page.table_name(view.name), scope="colgroup", colspan=str(span))
            for view, span in spans
        ]
        return element("tr", element("td"), cells)

    def _body(self, group: Group) -> Markup:
        """Make the rows of one group."""
        if self._is_first:
            return element("tbody", [self._row(row) for row in group])
        if len(group) == 1:
            return element("tbody", self._row(group[0], alone=True))
        width = 1 + sum(column.width for _, column in self.columns)
        head = element("th", self._group_head(group[0]), scope="rowgroup", colspan=str(width))
        rows = [self._row(row) for row in group]
        return element("tbody", element("tr", head, class_="g"), rows, class_="k")

    def _folded(self, groups: Sequence[Group], opened: bool) -> Markup:
        """Make what is below one node of the first level, folded away."""
        released, texts = self.main.released, self.page.texts
        label = self.main.labels.key(released.keys[0], released.keys_of(groups[0][0])[0])
        size = texts.fill("levels.group.size", n=self.page.format.whole(sum(map(len, groups))))
        summary = element("summary", isolated(label), " ", element("small", size))
        return element("details", summary, self._blocks(groups, since=1), open=opened)

    def _blocks(self, groups: Sequence[Group], since: int = 0) -> Markup:
        """Make a small table for each group, in columns, with a common error above them."""
        error = self._common_error
        above = note(self.page.texts.fill("levels.errors", error=error)) if error is not None else None
        if len(self.columns) > 2:
            return element("div", self._long_table(groups), class_="cols one")
        shape = "cols two" if len(self.columns) > 1 else "cols" if error is not None else "cols wide"
        shape = "cols bars" if self.has_bars else shape
        tables = self._small_tables(groups, since)
        return Markup((above or "") + element("div", tables, class_=shape, style=self._widths()))

    def _widths(self) -> str | None:
        """Return the widths of numbers and errors, so that the bars of all small tables begin alike."""
        if not self.has_bars:
            return None
        view, column = self.columns[0]
        rows, digits = self._rows_in(view).tolist(), self._digits[0]
        longest = max(len(column.value(row, digits)) for row in rows)
        errors = max(len(column.error(row, digits)) for row in rows)
        return f"--n:{longest + 1}ch;--e:{errors + 1}ch"

    def _small_tables(self, groups: Iterable[Group], since: int) -> list[Markup]:
        """Make the tables; consecutive groups of one row share one, and only the first shows its head."""
        made: list[Markup] = []
        for alone, members in groupby(groups, key=lambda group: len(group) == 1):
            tables = list(members)
            for rows in [[row for group in tables for row in group]] if alone else tables:
                caption = None if alone else element("caption", self._group_head(rows[0], since))
                head = element("thead", self._heads(), class_="sr" if made else None)
                body = element("tbody", [self._row(row, alone=alone) for row in rows])
                kept = "keep" if len(rows) <= _KEPT_IN_COLUMNS else None
                made.append(element("table", caption, head, body, class_=kept))
        return made

    def _long_table(self, groups: Iterable[Group]) -> Markup:
        """Make one table of several columns, without bars."""
        bodies = [self._body(group) for group in groups]
        table = element("table", element("thead", self._table_names(), self._heads()), bodies)
        return scrolled(table, self.main.labels.name(self.level), self.page.texts)
