"""Sections for tables of quantiles: those of each node in a row, with their intervals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.output.html import Markup
from pandas_dptree.output.pages.levels import MAX_ROWS, levels
from pandas_dptree.output.pages.setting import Section, Setting, note
from pandas_dptree.output.released import provenance_of

__all__ = ["is_quantiles", "quantile_name", "quantile_sections", "quantiles"]


def is_quantiles(table: object) -> bool:
    """Whether a table of a page has the quantiles of groups."""
    return isinstance(table, pd.DataFrame) and {"level", "q", "value", "lower", "upper"} <= {*table}


def quantiles(page: Setting, tables: Sequence[str], *, max_rows: int | None = MAX_ROWS) -> list[Section]:
    """Show tables of quantiles one after the other."""
    sections = []
    for name in tables:
        table = page.tables[name]
        if not is_quantiles(table):
            raise ArgumentError(
                "show",
                f"wants a table of the quantiles of groups, not {kind_of_object(table)}.",
                hint="it is what Distribution.quantiles returns if there are groups.",
            )
        sections += quantile_sections(page, name, table, max_rows=max_rows)
    return sections


def quantile_sections(
    page: Setting, name: str, table: pd.DataFrame, *, max_rows: int | None = MAX_ROWS
) -> list[Section]:
    """Show quantiles level by level, each quantile as a column."""
    wide, names = _by_node(page, table)
    stated = {**page.provenances[name], "confidence": provenance_of(table).get("confidence")}
    shown = replace(page, tables={**page.tables, name: wide}, provenances={**page.provenances, name: stated})
    sections = levels(shown, [name], columns=names, max_rows=max_rows)
    of = page.labels.name(stated.get("column", name))
    if table["value"].dtype.kind == "m":
        of = page.texts.fill("quantiles.hours", name=of)
    by = [page.labels.inline(level) for level, _ in shown.view(name, names).levels]
    told = note(page.texts["quantiles.told"]) or ""
    return [
        section._replace(
            heading=page.texts.fill("quantiles.heading", name=of, level=level),
            body=Markup(told + section.body),
        )
        for section, level in zip(sections, by or [sections[0].heading], strict=False)
    ]


def quantile_name(page: Setting, part: float) -> str:
    """Return a quantile in words."""
    key = {0.0: "quantile.least", 0.5: "quantile.median", 1.0: "quantile.most"}.get(float(part), "quantile")
    return page.texts.fill(key, share=page.format.percent(float(part)))


def _by_node(page: Setting, table: pd.DataFrame) -> tuple[pd.DataFrame, list[Hashable]]:
    """Lay out quantiles as a table of levels: a row per group, and its quantiles with their intervals."""
    parts = list(dict.fromkeys(table["q"]))
    groups = [table.loc[table["q"] == part] for part in parts]
    keys = [each for each in table if each not in ("q", "value", "lower", "upper")]
    if any(len(each) != len(groups[0]) for each in groups):
        raise ArgumentError(
            "tables", "has groups without some of their quantiles.", hint="pass the whole table."
        )
    wide = groups[0][keys].reset_index(drop=True)
    names: list[Hashable] = []
    for part, group in zip(parts, groups, strict=True):
        name = quantile_name(page, part)
        names.append(name)
        for suffix, column in (("", "value"), ("_std_error", None), ("_lower", "lower"), ("_upper", "upper")):
            wide[f"{name}{suffix}"] = np.nan if column is None else _numbers(group[column])
    wide.attrs.update(table.attrs)
    return wide, names


def _numbers(values: pd.Series) -> Any:
    """Return values as numbers; durations in hours."""
    if values.dtype.kind == "m":
        return values.dt.total_seconds().to_numpy() / 3600
    if values.dtype.kind not in "iuf":
        raise ArgumentError(
            "tables", "has quantiles of times, which have no row of numbers.", hint="show the distribution."
        )
    return values.to_numpy(dtype=np.float64)
