"""The section with the icicle: a hierarchy from left to right, each box as high as its number."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.setting import Section, Setting
from pandas_dptree.output.pictures.boxes import Box, boxes_of
from pandas_dptree.output.pictures.icicle_svg import icicle_svg
from pandas_dptree.output.released import Released

__all__ = ["fits_an_icicle", "icicle"]

_LEVELS = (2, 4)
"""A page shows an icicle by itself for so many levels below the total."""


def icicle(page: Setting, tables: Sequence[str], *, column: Hashable | None = None) -> list[Section]:
    """Draw tables whose numbers add up, one section for each."""
    return [_section(page, name, column, number) for number, name in enumerate(tables)]


def fits_an_icicle(table: pd.DataFrame) -> bool:
    """Whether the first numbers of a table can be drawn as areas, and its levels are few."""
    released = Released.of(table)
    if not _LEVELS[0] <= len(released.keys) <= _LEVELS[1] or not len(table):
        return False
    try:
        boxes_of(released, released.shown(None), 100.0)
    except ArgumentError:
        return False
    return True


def _section(page: Setting, name: str, column: Hashable | None, number: int) -> Section:
    texts, labels, format_ = page.texts, page.labels, page.format
    view = page.view(name, column)
    first = view.columns[0]
    digits = 0 if first.shown.whole else 1

    def name_of(released: Released, box: Box) -> str:
        if box.pooled:
            pooled = "icicle.smaller" if box.beside else "icicle.all"
            return texts.fill(pooled, n=format_.whole(len(box.rows)))
        return " · ".join(label(released, row) for row in box.rows)

    def label(released: Released, row: int) -> str:
        depth = int(released.depth[row])
        if not depth:
            return labels.name(ROOT)
        return labels.key(released.keys[depth - 1], released.name(row))

    def number_of(box: Box) -> str:
        hidden = not box.pooled and first.is_blank(box.rows[0])
        return first.letter(box.rows[0]) if hidden else format_.number(box.value, digits)

    released = Released.of(page.tables[name])
    levels = texts.joined([labels.inline(key) for key in released.keys])
    caption = texts.fill("icicle.caption", levels=levels)
    drawing = icicle_svg(
        page.tables[name],
        first.shown.name,
        title=texts.fill("icicle.title", name=first.heading, levels=levels),
        description="; ".join(
            f"{label(released, row)} {first.value(row, digits)}"
            for _, rows in released.levels[:2]
            for row in rows[:12].tolist()
        ),
        identifier=f"icicle-{number}-{len(name)}-{_letters(name)}",
        name=name_of,
        number=number_of,
    )
    heading = texts.fill("icicle.heading", name=page.table_name(name)) if name else texts["icicle.overview"]
    body = element("figure", drawing, element("figcaption", caption), class_="keep")
    return Section(heading, Markup(body))


def _letters(name: str) -> str:
    """Return a part of an identifier that another name is unlikely to have."""
    return "".join(each if each.isascii() and each.isalnum() else f"{ord(each):x}" for each in name[:24])
