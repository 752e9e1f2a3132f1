"""Sections for shares: the numbers of a table, and which part they are of those above them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.output.derived.proportions import proportions as shares_of
from pandas_dptree.output.html import Markup
from pandas_dptree.output.pages.levels import MAX_ROWS, level_sections
from pandas_dptree.output.pages.setting import Section, Setting, note
from pandas_dptree.output.pages.texts import isolated
from pandas_dptree.output.pages.views import Column
from pandas_dptree.output.released import Shown

__all__ = ["proportions"]


def proportions(
    page: Setting,
    tables: Sequence[str],
    *,
    of: Hashable = "parent",
    column: Hashable | None = None,
    max_rows: int | None = MAX_ROWS,
    order: str = "table",
) -> list[Section]:
    """Show the numbers of tables together with their shares, level by level."""
    texts = page.texts
    whole = texts["proportions.parent"] if of == "parent" else isolated(page.labels.inline(of))
    told = note(texts.fill("proportions.told", of=whole)) or ""
    sections = []
    for name in tables:
        view = page.view(name, column)
        first = view.columns[0]
        shares = shares_of(page.tables[name], of, column=first.shown.name, confidence=page.confidence(name))
        share = _percent(page, name, shares["proportion"], shares)
        shown = replace(view, columns=[first, share])
        sections += [
            section._replace(
                heading=texts.fill("proportions.heading", section=section.heading),
                body=Markup(told + section.body),
            )
            for section in level_sections(page, [shown], max_rows=max_rows, order=order)
        ]
    return sections


def _percent(page: Setting, name: str, values: Any, frame: pd.DataFrame) -> Column:
    """Make a column of shares in per cent, with their intervals."""
    lower, upper = (100 * frame[end].to_numpy(dtype=np.float64) for end in ("lower", "upper"))
    numbers, error = (100 * each.to_numpy(dtype=np.float64) for each in (values, frame["std_error"]))
    return Column(
        page.texts["column.share"],
        page.margin_head(name),
        "",
        Shown(page.texts["column.share.inline"], numbers, False, error, "standard error", (lower, upper)),
        lower,
        upper,
        lengths=False,
        classes={},
        shows_ends=False,
        format=page.format,
        unit=" %",
        missing="proportions.missing",
    )
