"""Sections for tables of quantiles: those of each node in a row, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.output.html import Markup
from pandas_dptree.output.pages.levels import MAX_ROWS, levels
from pandas_dptree.output.pages.setting import Section, Setting, note

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
    shown = replace(page, tables={**page.tables, name: wide})
    sections = levels(shown, [name], columns=names, max_rows=max_rows)
    told = note(page.texts["quantiles.told"])
    of = page.labels.name(page.provenances[name].get("column", name))
    if table["value"].dtype.kind == "m":
        of = page.texts.fill("quantiles.hours", name=of)
    return [
        section._replace(
            heading=page.texts.fill("quantiles.heading", name=of, level=page.labels.inline(section.heading)),
            body=Markup((told or "") + section.body),
        )
        for section in sections
    ]


def quantile_name(page: Setting, part: float) -> str:
    """Return a quantile in words."""
    key = {0.0: "quantile.least", 0.5: "quantile.median", 1.0: "quantile.most"}.get(float(part), "quantile")
    return page.texts.fill(key, share=page.format.percent(float(part)))


def _by_node(page: Setting, table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Lay out quantiles as a table of levels: one row per group, and per quantile a value and its interval."""
    parts = list(dict.fromkeys(table["q"]))
    groups = [table.loc[table["q"] == part] for part in parts]
    keys = [each for each in table if each not in ("q", "value", "lower", "upper")]
    if any(len(each) != len(groups[0]) for each in groups):
        raise ArgumentError(
            "tables", "has groups without some of their quantiles.", hint="pass the whole table."
        )
    wide = groups[0][keys].reset_index(drop=True)
    names = []
    for part, group in zip(parts, groups, strict=True):
        name = quantile_name(page, part)
        names.append(name)
        for suffix, column in (("", "value"), ("_std_error", None), ("_lower", "lower"), ("_upper", "upper")):
            wide[name + suffix] = np.nan if column is None else _numbers(group[column])
    wide.attrs.update(table.attrs)
    return wide, names


def _numbers(values: pd.Series) -> Any:
    """Return values as numbers; durations in hours."""
    if values.dtype.kind == "m":
        return (values / pd.Timedelta(hours=1)).to_numpy(dtype=np.float64)
    if values.dtype.kind not in "iuf":
        raise ArgumentError(
            "tables", "has quantiles of times, which have no row of numbers.", hint="show the distribution."
        )
    return values.to_numpy(dtype=np.float64)
