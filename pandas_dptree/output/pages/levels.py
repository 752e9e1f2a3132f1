"""Sections for the levels of tables: one section per level, with the rows grouped by what is above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import groupby

import numpy as np

from pandas_dptree.errors import ArgumentError, listed, quote
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.arguments import whole_number
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.rows import Group, Rows
from pandas_dptree.output.pages.setting import Section, Setting, note
from pandas_dptree.output.pages.texts import isolated
from pandas_dptree.output.pages.views import Column, View
from pandas_dptree.output.released import REMAINDER

__all__ = ["MAX_ROWS", "level_sections", "levels"]

MAX_ROWS = 5_000
"""The rows that a page shows of a table, unless its caller says otherwise."""

_MANY = 20
"""The rows of a section that has its uncertain numbers counted."""

_NAMED = 5
"""The names that a remark lists."""


def levels(
    page: Setting,
    tables: Sequence[str],
    *,
    columns: Hashable | list[Hashable] | None = None,
    max_rows: int | None = MAX_ROWS,
    order: str = "table",
) -> list[Section]:
    """Show the levels of one table, or of several side by side, row by row."""
    views = [page.view(name, columns) for name in tables]
    return level_sections(page, views, max_rows=max_rows, order=order)


def level_sections(
    page: Setting, views: Sequence[View], *, max_rows: int | None = MAX_ROWS, order: str = "table"
) -> list[Section]:
    """Show the levels of tables that were read already."""
    if order not in ("table", "value"):
        raise ArgumentError(
            "order", f"must be 'table' or 'value', not {quote(order)}.", hint='order="value": largest first.'
        )
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
    nested = _sorted(main, order == "value")
    sections = [_section(page, views, main, level, _grouped(main, rows, nested)) for level, rows in shown]
    if not sections:
        sections = [_section(page, views, main, ROOT, [])]
    if lost:
        sections[0] = sections[0]._replace(body=Markup(_left_out(page, main, lost) + sections[0].body))
    return sections


def _section(
    page: Setting, views: Sequence[View], main: View, level: Hashable, groups: list[Group]
) -> Section:
    """Show one level; without groups, the total alone."""
    texts, depth = page.texts, int(main.released.depth[groups[0][0]]) if groups else 0
    rows = Rows(page, main, _columns(views, depth), level, groups)
    remarks = [
        _ended(page, main, depth),
        _uncertain(page, main, rows.rows),
        texts["levels.bars"] if rows.has_bars else "",
        texts["levels.ends"] if rows.prints_ends() else "",
        *(texts[key] for key in rows.missing_numbers()),
    ]
    heading = main.labels.name(level)
    if len(views) == 1 and len(page.tables) > 1:
        heading = texts.fill(
            "levels.heading", table=page.table_name(main.name), level=isolated(main.labels.inline(level))
        )
    size = page.format.whole(len(rows.rows)) if groups else None
    return Section(heading, Markup((note(*remarks) or "") + rows.html()), size=size)


def _uncertain(page: Setting, view: View, rows: Sequence[int]) -> str:
    """Say how many of many rows are of the last two classes of reliability."""
    column = view.columns[0]
    if not column.graded or len(rows) < _MANY:
        return ""
    found = Counter(column.letter(row) for row in rows if column.style(row))
    counts = [
        page.texts.fill("levels.uncertain.class", n=page.format.whole(n), letter=letter)
        for letter, n in sorted(found.items())
    ]
    if not counts:
        return ""
    return page.texts.fill(
        "levels.uncertain", n=page.format.whole(len(rows)), counts=page.texts.joined(counts)
    )


def _left_out(page: Setting, view: View, lost: Sequence[Level]) -> Markup:
    """Say which levels are too long for the page."""
    named = [
        page.texts.fill(
            "levels.lost.level", name=isolated(view.labels.inline(name)), size=page.format.whole(len(rows))
        )
        for name, rows in lost
    ]
    words = page.texts.fill("levels.lost", levels=page.texts.joined(named))
    return element("p", words, class_="notice")


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


def _sorted(view: View, by_value: bool) -> IntArray:
    """Sort all rows, each followed by those below it; siblings as in the table, or the largest first."""
    released = view.released
    if not by_value:
        return released.nested
    largest = np.argsort(-np.nan_to_num(view.columns[0].shown.numbers), kind="stable")
    ranks = np.full(released.groups.shape, -1, dtype=np.int64)
    for level, group in enumerate(released.groups.T):
        own = largest[released.depth[largest] == level + 1]
        rank = np.full(group.max(initial=-1) + 1, len(group))
        rank[group[own]] = np.arange(len(own))
        ranks[group >= 0, level] = rank[group[group >= 0]]
    return np.lexsort((np.arange(len(ranks)), *ranks.T[::-1]))


def _grouped(view: View, rows: IntArray, nested: IntArray) -> list[Group]:
    """Sort the rows of a level, and group them by what is above them."""
    released, depth = view.released, int(view.released.depth[rows[0]])
    place = np.empty(len(nested), dtype=np.int64)
    place[nested] = np.arange(len(nested))
    ordered = rows[np.argsort(place[rows])].tolist()
    if depth == 1:
        return [ordered]
    return [list(each) for _, each in groupby(ordered, key=lambda row: released.groups[row, depth - 2])]


def _columns(views: Sequence[View], depth: int) -> list[tuple[View, Column]]:
    """List the columns of all tables with rows at a depth; what means were taken of is not repeated."""
    columns: list[tuple[View, Column]] = []
    for view in views:
        repeated = columns and view.means
        columns += [
            (view, column)
            for column in view.columns
            if (view.released.depth == depth).any() and not (repeated and column.shown.name == "count")
        ]
    return columns


def _ended(page: Setting, view: View, depth: int) -> str:
    """Name what is above a level and has no rows on it."""
    if depth < 2:
        return ""
    released, texts = view.released, page.texts
    above = np.flatnonzero(released.depth == depth - 1)
    used = np.unique(released.groups[released.depth == depth, depth - 2])
    ended = above[~np.isin(released.groups[above, depth - 2], used)].tolist()
    ended = [row for row in ended if released.name(row) != REMAINDER]
    names = [isolated(view.label(row)) for row in ended[:_NAMED]]
    if not names:
        return ""
    rest = len(ended) - len(names)
    listed_names = texts.joined(names)
    if rest:
        listed_names = texts.fill("levels.others", first=", ".join(names), n=page.format.whole(rest))
    return texts.fill("levels.ended", names=listed_names)
