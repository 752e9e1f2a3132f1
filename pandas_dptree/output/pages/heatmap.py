"""The section with a heat map: a line for each node, a column for each key below it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.cross import cross, is_crossed
from pandas_dptree.output.pages.setting import Section, Setting, note, scrolled
from pandas_dptree.output.pages.views import View
from pandas_dptree.output.pictures.grid import grid_of
from pandas_dptree.output.released import Released

__all__ = ["heatmap"]

_KEPT = 20
"""The lines up to which a heat map is not broken over printed pages."""


def heatmap(
    page: Setting, tables: Sequence[str], *, column: Hashable | None = None, margin: Any = None
) -> list[Section]:
    """Show the two finest levels of tables as heat maps, or a margin of crossed ones; a section for each."""
    if margin is not None or any(is_crossed(page.tables[name]) for name in tables):
        return cross(page, tables, margin=margin, column=column, shaded=True)
    return [_section(page, name, page.view(name, column)) for name in tables]


def _section(page: Setting, name: str, view: View) -> Section:
    texts, labels = page.texts, page.labels
    released = Released.of(page.tables[name])
    grid = grid_of(released, argument="show")
    first, above, below = view.columns[0], *released.keys[-2:]
    rows = grid.cells[grid.cells >= 0]
    digits = first.digits(rows)
    strong = np.sqrt(np.maximum(np.nan_to_num(first.shown.numbers), 0.0))
    most = float(strong[rows].max(initial=0.0)) or 1.0

    def cell(row: int) -> Markup:
        if row < 0:
            return element("td")
        return element(
            "td",
            first.value(row, digits),
            element("small", first.error(row, digits)),
            style=f"--h:{0 if first.is_blank(row) else strong[row] / most:.3f}",
            class_=first.style(row),
        )

    heads = [element("th", labels.key(below, key), scope="col") for key in grid.columns]
    lines = [
        element(
            "tr",
            element("th", element("bdi", view.label(line)), scope="row"),
            [cell(row) for row in cells],
            element("td", first.value(line, digits), element("small", first.error(line, digits)), class_="m"),
        )
        for line, cells in zip(grid.lines.tolist(), grid.cells.tolist(), strict=True)
    ]
    caption = texts.fill(
        "heatmap.caption", name=first.heading, above=labels.inline(above), below=labels.inline(below)
    )
    table = element(
        "table",
        element("caption", caption),
        element(
            "thead", element("tr", element("td"), heads, element("th", texts["heatmap.all"], scope="col"))
        ),
        element("tbody", lines),
        class_="h",
    )
    remarks = [texts["heatmap.told"]]
    if first.graded:
        remarks.append(texts.fill("heatmap.hatched", classes=", ".join([*first.classes][1:][-2:])))
    heading = texts.fill(
        "heatmap.heading",
        table=page.table_name(name) if name else first.heading,
        above=labels.inline(above),
        below=labels.inline(below),
    )
    return Section(
        heading, Markup(f"{note(*remarks) or ''}{scrolled(table, caption, texts, keep=len(lines) <= _KEPT)}")
    )
