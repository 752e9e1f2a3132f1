"""Sections for the levels of tables: one section per level, with the rows grouped by what is above them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from pandas_dptree.errors import ArgumentError, listed, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.arguments import whole_number
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.numbers import MISSING
from pandas_dptree.output.pages.setting import Section, Setting, note, scrolled
from pandas_dptree.output.pages.texts import isolated
from pandas_dptree.output.pages.views import Column, View

__all__ = ["MAX_ROWS", "levels"]

MAX_ROWS = 5_000
"""The rows that a page shows of a table, unless its caller says otherwise."""

_LONGEST = 60
"""The rows up to which a level is one table with bars."""


def levels(
    page: Setting,
    tables: Sequence[str],
    *,
    columns: Hashable | list[Hashable] | None = None,
    max_rows: int | None = MAX_ROWS,
    order: str = "table",
) -> list[Section]:
    """Show the levels of one table, or of several side by side, row by row."""
    if order not in ("table", "value"):
        raise ArgumentError(
            "order", f"must be 'table' or 'value', not {quote(order)}.", hint='order="value": largest first.'
        )
    views = [page.view(name, columns) for name in tables]
    main = max(views, key=lambda view: len(view.released.table))
    for view in views:
        if list(map(str, view.released.keys)) != list(
            map(str, main.released.keys[: len(view.released.keys)])
        ):
            raise ArgumentError(
                "show",
                f"sets tables of different levels side by side: {listed(view.released.keys)} and "
                f"{listed(main.released.keys)}.",
                hint="show them one after the other.",
            )
    shown, lost = _within(main, max_rows)
    beside = _Beside(page, views, main, order == "value")
    sections = [beside.section(level, rows) for level, rows in shown]
    if not sections:
        sections = [Section(main.labels.name("total"), beside.table("total", [], []))]
    if lost:
        named = [
            page.texts.fill(
                "levels.lost.level",
                name=isolated(main.labels.inline(name)),
                size=page.format.whole(len(rows)),
            )
            for name, rows in lost
        ]
        words = page.texts.fill("levels.lost", levels=page.texts.joined(named))
        first = sections[0]
        sections[0] = first._replace(body=Markup(element("p", words, class_="notice") + first.body))
    return sections


Level = tuple[Hashable, IntArray]


def _within(view: View, max_rows: int | None) -> tuple[list[Level], list[Level]]:
    """Split the levels into the first ones, which have up to `max_rows` rows, and the others."""
    if max_rows is not None:
        max_rows = whole_number("max_rows", max_rows, at_least=1, hint="None shows all rows.")
    total = [0] if view.root is None else [1]
    sizes = np.cumsum([*total, *(len(rows) for _, rows in view.levels)])[1:]
    kept = len(sizes) if max_rows is None else int(np.searchsorted(sizes, max_rows, side="right"))
    if not kept and len(sizes) and view.root is None:
        raise ArgumentError(
            "max_rows",
            f"is {max_rows}, but the first level alone has {sizes[0]:,} rows.",
            hint="allow more rows; None shows all.",
        )
    return view.levels[:kept], view.levels[kept:]


@dataclass(frozen=True)
class _Beside:
    """Tables side by side: `main` has the rows, to which those of the other `views` are matched."""

    page: Setting
    views: Sequence[View]
    main: View
    by_value: bool

    def section(self, level: Hashable, rows: IntArray) -> Section:
        """Show one level."""
        texts, depth = self.page.texts, int(self.main.released.depth[rows[0]])
        groups = self._groups(rows)
        if len(rows) <= _LONGEST:
            body = self.table(level, groups, rows.tolist())
        elif depth > 2:
            by_first = groupby(groups, key=lambda group: self.main.released.groups[group[0], 0])
            body = Markup(
                "".join(
                    self._folded(level, list(members), opened=not place)
                    for place, (_, members) in enumerate(by_first)
                )
            )
        else:
            body = self._blocks(level, groups)
        remarks = [
            self._ended(depth),
            texts["levels.bars"] if len(rows) <= _LONGEST and self._columns[0][1].lengths else "",
            texts["levels.ends"] if self._prints_ends(rows.tolist()) else "",
            texts["levels.missing"] if f">{MISSING}<" in body else "",
        ]
        heading = self.main.labels.name(level)
        return Section(heading, Markup((note(*remarks) or "") + body), size=self.page.format.whole(len(rows)))

    def _prints_ends(self, rows: Sequence[int]) -> bool:
        """Whether an error of some rows is printed as an interval."""
        return any(
            column.error(at, 0)[:1] not in ("", "±")
            for view, column in self._columns
            for row in rows
            if (at := self._row_in(view, row)) is not None
        )

    @property
    def _columns(self) -> list[tuple[View, Column]]:
        """All columns, from left to right."""
        return [(view, column) for view in self.views for column in view.columns]

    def _groups(self, rows: IntArray) -> list[list[int]]:
        """Sort the rows of a level, and group them by what is above them."""
        released = self.main.released
        place = np.empty(len(released.table), dtype=np.int64)
        place[self._nested] = np.arange(len(place))
        ordered = rows[np.argsort(place[rows])].tolist()
        depth = int(released.depth[rows[0]])
        if depth == 1:
            return [ordered]
        return [list(each) for _, each in groupby(ordered, key=lambda row: released.groups[row, depth - 2])]

    @property
    def _nested(self) -> IntArray:
        """All rows, each followed by those below it; siblings in the order of the table or by value."""
        released = self.main.released
        if not self.by_value:
            return released.nested
        largest = np.argsort(-np.nan_to_num(self._columns[0][1].shown.numbers), kind="stable")
        ranks = np.zeros((len(released.table), released.groups.shape[1]), dtype=np.int64)
        for level in range(released.groups.shape[1]):
            group = released.groups[largest, level]
            own = released.depth[largest] == level + 1
            rank = np.full(group.max() + 2, len(group))
            rank[group[own]] = np.arange(own.sum())
            ranks[:, level] = np.where(released.groups[:, level] < 0, -1, rank[released.groups[:, level]])
        return np.lexsort((np.arange(len(ranks)), *ranks.T[::-1]))

    def _row_in(self, view: View, row: int) -> int | None:
        """Return the row of another table that belongs to a row of the main one."""
        return row if view is self.main else view.row_of.get(self.main.released.keys_of(row))

    def _digits(self, rows: Sequence[int]) -> list[int]:
        """Return the decimals of each column in some rows."""
        places = {
            view.name: np.array(
                [each for row in rows if (each := self._row_in(view, row)) is not None], dtype=np.int64
            )
            for view in self.views
        }
        return [column.digits(places[view.name]) for view, column in self._columns]

    def _cells(self, row: int, digits: Sequence[int], most: float | None) -> Iterator[Iterator[Markup]]:
        """Make the cells of a row; only the first column has bars."""
        for place, (view, column) in enumerate(self._columns):
            yield column.cells(self._row_in(view, row), digits[place], None if place else most)

    def _class(self, row: int) -> str:
        """Return the letter of a row if it is drawn otherwise."""
        view, column = self._columns[0]
        at = self._row_in(view, row)
        letter = "" if at is None else column.letter(at)
        return letter if letter in ("E", "F") else ""

    def _row(
        self,
        row: int,
        digits: Sequence[int],
        most: float | None,
        *,
        name: Markup | str | None = None,
        class_: str = "",
    ) -> Markup:
        head = element("th", self.main.label(row) if name is None else name, scope="row")
        classes = " ".join(filter(None, [class_, self._class(row)])) or None
        return element("tr", head, self._cells(row, digits, most), class_=classes)

    def _above(self, row: int, *, since: int = 0) -> str:
        """Return the labels of what is above a row, from the coarsest down."""
        released = self.main.released
        keys = released.keys_of(row)[since:-1]
        return " · ".join(
            isolated(self.main.labels.key(level, key))
            for level, key in zip(released.keys[since:], keys, strict=False)
        )

    def _with_total(self, row: int) -> Markup | None:
        """Return the first number of the row above, with its error, in small."""
        parent = int(self.main.released.parent[row])
        view, column = self._columns[0]
        at = self._row_in(view, parent) if parent >= 0 else None
        if at is None:
            return None
        digits = column.digits(np.array([at]))
        return element("small", f"{column.value(at, digits)} {column.error(at, digits)}", class_="e")

    def table(self, level: Hashable, groups: Sequence[Sequence[int]], rows: Sequence[int]) -> Markup:
        """Make one table with bars, grouped by what is above the rows; the total is last."""
        texts, main = self.page.texts, self.main
        root = main.root
        digits = self._digits(rows or [root] if root is not None else rows)
        view, first = self._columns[0]
        drawn = [each for row in rows if (each := self._row_in(view, row)) is not None]
        most = first.most(np.array(drawn, dtype=np.int64))
        alone = bool(groups) and main.released.depth[groups[0][0]] == 1
        width = 1 + sum(2 + column.graded for _, column in self._columns)
        bodies = [self._body(group, digits, most, width, grouped=not alone) for group in groups]
        if root is not None and (alone or not groups):
            bodies.append(element("tbody", self._row(root, digits, None, class_="t")))
        named = texts.joined([main.labels.inline(column.shown.name) for _, column in self._columns])
        caption = texts.fill("levels.caption", columns=named, level=isolated(main.labels.inline(level)))
        top = None
        if len(self.views) > 1:
            spans = [sum(2 + column.graded for column in each.columns) for each in self.views]
            top = element(
                "tr",
                element("td"),
                [
                    element("th", self.page.table_name(each.name), scope="colgroup", colspan=str(span))
                    for each, span in zip(self.views, spans, strict=True)
                ],
            )
        heads = element(
            "tr",
            element("th", main.labels.name(level), scope="col"),
            [column.heads(texts) for _, column in self._columns],
        )
        return scrolled(
            element("table", element("caption", _capital(caption)), element("thead", top, heads), bodies),
            _capital(caption),
            texts,
        )

    def _body(
        self, group: Sequence[int], digits: Sequence[int], most: float | None, width: int, *, grouped: bool
    ) -> Markup:
        """Make the rows of one group; a single one is named together with what is above it."""
        if not grouped:
            return element("tbody", [self._row(row, digits, most) for row in group])
        above = self._above(group[0])
        if len(group) == 1:
            name = f"{above} · {isolated(self.main.label(group[0]))}"
            return element("tbody", self._row(group[0], digits, most, name=name))
        head = element("th", above, " ", self._with_total(group[0]), scope="rowgroup", colspan=str(width))
        rows = [self._row(row, digits, most) for row in group]
        return element("tbody", element("tr", head, class_="g"), rows, class_="k")

    def _folded(self, level: Hashable, groups: Sequence[Sequence[int]], *, opened: bool) -> Markup:
        """Make what is below one node of the first level, folded away."""
        first = self.main.released
        label = self.main.labels.key(first.keys[0], first.keys_of(groups[0][0])[0])
        size = sum(map(len, groups))
        words = self.page.texts.fill("levels.group.size", n=self.page.format.whole(size))
        error = self._common_error([row for group in groups for row in group])
        if error is not None:
            words = f"{words}; {error}"
        summary = element("summary", isolated(label), " ", element("small", words))
        return element(
            "details", summary, self._blocks(level, groups, since=1, stated_above=True), open=opened
        )

    def _common_error(self, rows: Sequence[int]) -> str | None:
        """Return the error of the only column in words, if it is printed alike in all rows."""
        if len(self._columns) > 1:
            return None
        _, column = self._columns[0]
        digits = self._digits(rows)[0]
        errors = {column.error(row, digits) for row in rows}
        if len(errors) != 1 or not (error := errors.pop()).startswith("±"):
            return None
        return self.page.texts.fill("levels.group.errors", error=error)

    def _blocks(
        self, level: Hashable, groups: Sequence[Sequence[int]], *, since: int = 0, stated_above: bool = False
    ) -> Markup:
        """Make a small table for each group, in columns; a common error is words once."""
        rows = [row for group in groups for row in group]
        digits, common = self._digits(rows), self._common_error(rows)
        heading = self.main.labels.name(level)
        blocks = [
            self._block(heading, each, digits, without_error=common is not None, since=since)
            for _, each in groupby(groups, key=lambda group: len(group) == 1)
        ]
        stated = note(f"{_capital(common)}.") if common is not None and not stated_above else None
        classes = "cols" if common is not None else "cols wide" if len(self._columns) == 1 else "cols one"
        return Markup((stated or "") + element("div", blocks, class_=classes))

    def _block(
        self,
        heading: str,
        groups: Iterator[Sequence[int]],
        digits: Sequence[int],
        *,
        without_error: bool,
        since: int,
    ) -> list[Markup]:
        """Make the tables of consecutive groups; groups of one row share a table."""
        listed_groups = list(groups)
        if len(listed_groups[0]) == 1:
            listed_groups = [[row for group in listed_groups for row in group]]
        made = []
        for group in listed_groups:
            alone = [row for row in group if self._above(row)] and len(
                {self._above(row) for row in group}
            ) > 1
            caption = None if alone else self._above(group[0], since=since) or self._above(group[0])
            single = len(group) == 1
            made.append(
                element(
                    "table",
                    element("caption", caption, " ", self._with_total(group[0]))
                    if caption and not single
                    else None,
                    element("thead", self._plain_heads(heading, without_error), class_="sr"),
                    element(
                        "tbody",
                        [
                            self._dense(row, digits, without_error, named=bool(alone) or single)
                            for row in group
                        ],
                    ),
                )
            )
        return made

    def _plain_heads(self, heading: str, without_error: bool) -> Markup:
        cells = [each for _, column in self._columns for each in column.heads(self.page.texts)]
        if without_error:
            del cells[1]
        return element("tr", element("th", heading, scope="col"), cells)

    def _dense(self, row: int, digits: Sequence[int], without_error: bool, *, named: bool) -> Markup:
        """Make a row without bars."""
        name = (
            f"{self._above(row)} · {isolated(self.main.label(row))}" if named and self._above(row) else None
        )
        if not without_error:
            return self._row(row, digits, None, name=name)
        _, column = self._columns[0]
        letter = element("td", column.letter(row), class_="r") if column.graded else None
        head = element("th", self.main.label(row) if name is None else name, scope="row")
        value = element("td", column.value(row, digits[0]), class_="n")
        return element("tr", head, value, letter, class_=self._class(row) or None)

    def _ended(self, depth: int) -> str:
        """Name what is above a level and has no rows on it."""
        released, texts = self.main.released, self.page.texts
        above = np.flatnonzero(released.depth == depth - 1)
        if depth < 2:
            return ""
        used = np.unique(released.groups[released.depth == depth, depth - 2])
        ended = above[~np.isin(released.groups[above, depth - 2], used)].tolist()
        if not ended:
            return ""
        names = [isolated(self.main.label(row)) for row in ended[:5]]
        if len(ended) > 5:
            rest = self.page.format.whole(len(ended) - 5)
            return texts.fill(
                "levels.ended", names=texts.fill("levels.others", first=", ".join(names), n=rest)
            )
        return texts.fill("levels.ended", names=texts.joined(names))


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
