"""Sections for tables that show only large nodes: what "(other)" is, and what is missing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.levels import MAX_ROWS, levels
from pandas_dptree.output.pages.setting import Section, Setting
from pandas_dptree.output.pages.texts import isolated

__all__ = ["private_keys"]


def private_keys(
    page: Setting,
    tables: Sequence[str],
    *,
    columns: Hashable | list[Hashable] | None = None,
    max_rows: int | None = MAX_ROWS,
    order: str = "table",
) -> list[Section]:
    """Show the levels of one table, or of several side by side, and say what they do not show."""
    first, *others = levels(page, tables, columns=columns, max_rows=max_rows, order=order)
    told = [element("p", page.texts["keys.other"]), element("p", page.texts["keys.missing"])]
    of_levels = [_of_levels(page, page.provenances[name]) for name in tables]
    return [first._replace(body=Markup("".join([*told, *of_levels, first.body]))), *others]


def _of_levels(page: Setting, provenance: Mapping[str, Any]) -> Markup:
    """Say from which count on a node of each level is shown."""
    above, unseen = (provenance.get(name) for name in ("shown_above", "largest_unseen"))
    if not isinstance(above, Mapping):
        return Markup("")
    certain = unseen if isinstance(unseen, Mapping) else {}
    items = []
    for level, least in above.items():
        name, most = isolated(page.labels.inline(level)), certain.get(level)
        words = {"level": name, "above": page.format.number(float(least))}
        if most is None:
            items.append(page.texts.fill("keys.level", **words))
        else:
            items.append(page.texts.fill("keys.level.certain", **words, most=page.format.number(float(most))))
    return element("ul", [element("li", each) for each in items])
