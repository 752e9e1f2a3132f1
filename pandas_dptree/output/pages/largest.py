"""Sections for the largest rows of a table, and for sums of chosen rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, is_name
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.output.derived.areas import combine as combine_areas
from pandas_dptree.output.derived.largest import top as largest
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.setting import Section, Setting, note, scrolled
from pandas_dptree.output.pages.texts import isolated
from pandas_dptree.output.pages.views import Column
from pandas_dptree.output.released import Released

__all__ = ["combine", "top"]


def top(
    page: Setting,
    tables: Sequence[str],
    *,
    n: int = 10,
    level: Any = None,
    column: Hashable | None = None,
) -> list[Section]:
    """Show the largest rows of a level, or of a margin, with intervals that hold at once."""
    texts, sections = page.texts, []
    for name in tables:
        released, first = page.first_column(name, column)
        value, confidence = first.shown.name, page.confidence(name)
        frame = largest(page.tables[name], n, level=level, column=value, confidence=confidence)
        told = texts.fill(
            "top.told",
            share=page.format.percent(confidence),
            n=page.format.whole(frame.attrs["dp_derived"]["competed"]),
        )
        keys = frame[released.keys].astype(object).itertuples(index=False, name=None)
        names = [_path(page, released.keys, path) for path in keys]
        heading = texts.fill("top.heading", table=isolated(page.table_name(name)))
        if level is not None:
            shown = isolated(page.labels.inline(level) if is_name(level) else _levels(page, level))
            heading = texts.fill("top.heading.level", table=isolated(page.table_name(name)), level=shown)
        body = _list(page, name, first, names, frame, ranks=True)
        sections.append(Section(heading, Markup((note(told) or "") + body)))
    return sections


def _levels(page: Setting, margin: Any) -> str:
    """Name the levels of a margin."""
    levels = margin.values() if isinstance(margin, Mapping) else margin
    names = [page.labels.inline(level) for level in levels if level != ROOT]
    return page.texts.joined(names or [page.labels.inline(ROOT)])


def _path(page: Setting, levels: Sequence[Hashable], path: Sequence[Any]) -> str:
    """Name a node by its keys, the last one first."""
    pairs = zip(levels, path, strict=True)
    labels = [page.labels.key(level, str(key)) for level, key in pairs if not pd.isna(key)]
    return ", ".join(isolated(label) for label in reversed(labels))


def combine(
    page: Setting,
    tables: Sequence[str],
    *,
    areas: Mapping[Hashable, Sequence[Any]] | None = None,
    column: Hashable | None = None,
) -> list[Section]:
    """Show sums of rows of a table, by the names and paths in `areas`."""
    if not isinstance(areas, Mapping) or not areas:
        raise ArgumentError(
            "show",
            "combines rows without naming the areas.",
            hint='for example {"table": "visits", "as": "combine", "areas": {"Coast": [["CA", "Marin"]]}}.',
        )
    texts, sections = page.texts, []
    for name in tables:
        released, first = page.first_column(name, column)
        paths: Mapping[Hashable, Any] = areas
        if isinstance(released, Released):
            paths = {area: [tuple(path) for path in each] for area, each in areas.items()}
        frame = combine_areas(
            page.tables[name], paths, column=first.shown.name, confidence=page.confidence(name)
        )
        names = [page.labels.inline(area) for area in frame["area"]]
        heading = texts.fill("combine.heading", table=isolated(page.table_name(name)))
        body = _list(page, name, first, names, frame, ranks=False)
        sections.append(Section(heading, Markup((note(texts["combine.told"]) or "") + body)))
    return sections


def _list(
    page: Setting, name: str, like: Column, names: Sequence[str], frame: pd.DataFrame, *, ranks: bool
) -> Markup:
    """Make a table of named numbers with bars, from a frame of them and their intervals."""
    own = like.shown.name
    prefix = "" if own == "count" else f"{own}_"
    numbers, error, lower, upper = (
        frame[each].to_numpy(dtype=np.float64)
        for each in (own, f"{prefix}std_error", f"{prefix}lower", f"{prefix}upper")
    )
    column = replace(
        like,
        error_heading=page.margin_head(name),
        shown=replace(like.shown, numbers=numbers, error=error, interval=(lower, upper)),
        lower=lower,
        upper=upper,
    )
    rows = np.arange(len(frame))
    digits, most = column.digits(rows), column.most(rows)
    first = page.texts["top.rank" if ranks else "combine.area"]
    heads = [element("th", first, scope="col"), *column.heads(page.texts)]
    labels = [f"{row + 1}. {label}" if ranks else label for row, label in enumerate(names)]
    body = [
        element("tr", element("th", label, scope="row"), column.cells(row, digits, most))
        for row, label in enumerate(labels)
    ]
    table = element(
        "table",
        element("caption", column.heading),
        element("thead", element("tr", heads)),
        element("tbody", body),
    )
    shown = scrolled(table, column.heading, page.texts, keep=True)
    return element("div", shown, class_="solo")
