"""Sections for tables of quantiles: those of each node in a row, with their intervals if they have any."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.html import Child, Markup, element
from pandas_dptree.output.pages.levels import MAX_ROWS, level_sections
from pandas_dptree.output.pages.numbers import MISSING, Format, exact_decimals
from pandas_dptree.output.pages.setting import Section, Setting, note, scrolled
from pandas_dptree.output.pages.texts import Texts
from pandas_dptree.output.pages.views import Column
from pandas_dptree.output.released import provenance_of, share_of

__all__ = ["is_quantiles", "quantile_name", "quantile_sections", "quantiles", "short_table"]

_ENDS: Final = ("lower", "upper")


def is_quantiles(table: object) -> bool:
    """Whether a table of a page has quantiles."""
    if not isinstance(table, pd.DataFrame) or "value" not in table:
        return False
    return "q" in table or table.index.name == "q"


def quantiles(page: Setting, tables: Sequence[str], *, max_rows: int | None = MAX_ROWS) -> list[Section]:
    """Show tables of quantiles one after the other."""
    sections = []
    for name in tables:
        table = page.tables[name]
        if not is_quantiles(table):
            raise ArgumentError(
                "show",
                f"wants a table of the quantiles of a column, not {kind_of_object(table)}.",
                hint="it is what dpt.quantiles, and Distribution.quantiles, return.",
            )
        if "level" in table:
            sections += quantile_sections(page, name, table, max_rows=max_rows)
        else:
            sections.append(_of_all_records(page, name, table))
    return sections


def quantile_sections(
    page: Setting, name: str, table: pd.DataFrame, *, max_rows: int | None = MAX_ROWS
) -> list[Section]:
    """Show quantiles level by level, each quantile as a column."""
    wide, names, said = _by_node(page, table)
    stated = {**page.provenances[name], "confidence": provenance_of(table).get("confidence")}
    shown = replace(page, tables={**page.tables, name: wide}, provenances={**page.provenances, name: stated})
    view = shown.view(name, names)
    columns = [_as_shown(column, table, page.texts, said) for column in view.columns]
    sections = level_sections(shown, [replace(view, columns=columns)], max_rows=max_rows)
    of = page.table_name(name) if _is_one_of_several(page, name) else _column_name(page, name, table)
    by = [page.labels.inline(level) for level, _ in view.levels]
    remark = _remark(page, table) or ""
    return [
        section._replace(
            heading=page.texts.fill("quantiles.heading", name=of, level=level),
            body=Markup(remark + section.body),
        )
        for section, level in zip(sections, by or [sections[0].heading], strict=False)
    ]


def quantile_name(page: Setting, part: float) -> str:
    """Return a quantile in words."""
    key = {0.0: "quantile.least", 0.5: "quantile.median", 1.0: "quantile.most"}.get(float(part), "quantile")
    return page.texts.fill(key, share=page.format.percent(float(part)))


def short_table(page: Setting, caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """Make a table of text cells: a name, a number, and its error if there are any."""
    head: list[Child] = [
        element("th", each, scope="col", class_=class_)
        for each, class_ in zip(heads, (None, "n", "e"), strict=False)
    ]
    body = [
        element(
            "tr",
            element("th", first, scope="row"),
            [element("td", cell, class_=class_) for cell, class_ in zip(cells, ("n", "e"), strict=False)],
        )
        for first, *cells in rows
    ]
    made = element(
        "table", element("caption", caption), element("thead", element("tr", head)), element("tbody", body)
    )
    return scrolled(made, caption, page.texts)


def _of_all_records(page: Setting, name: str, table: pd.DataFrame) -> Section:
    """Show the quantiles of all records, each in a row."""
    column, said = _column_name(page, name, table), _sayings(page, table)
    share = share_of(provenance_of(table))
    heads = [page.texts["distribution.part"], column]
    heads += [page.texts.fill("head.error.ends", share=share).strip()] * ("lower" in table)
    rows = []
    for part, row in zip(table["q"] if "q" in table else table.index, table.itertuples(), strict=True):
        cells = [page.labels.name(quantile_name(page, part)), said(row.value)]
        if "lower" in table:
            ends = {"lower": said(row.lower), "upper": said(row.upper)}
            cells.append(page.texts.fill("numbers.interval", **ends))
        rows.append(cells)
    caption = page.texts.fill("distribution.quantiles", name=column)
    body = Markup((_remark(page, table) or "") + short_table(page, caption, heads, rows))
    return Section(page.labels.name(name) if name else column, body)


def _column_name(page: Setting, name: str, table: pd.DataFrame) -> str:
    """Return the name of the column whose quantiles a table has."""
    of = page.labels.name(page.provenances[name].get("column", name))
    return page.texts.fill("quantiles.hours", name=of) if table["value"].dtype.kind == "m" else of


def _is_one_of_several(page: Setting, name: str) -> bool:
    """Whether a page has other tables of quantiles of the same column."""
    found = [each for each, table in page.tables.items() if is_quantiles(table)]
    column = page.provenances[name].get("column")
    return any(each != name and page.provenances[each].get("column") == column for each in found)


def _remark(page: Setting, table: pd.DataFrame) -> Markup | None:
    """Say what the intervals hold, or that there are none."""
    if "lower" not in table:
        return note(page.texts["quantiles.told.none"])
    drawn = page.texts.get(f"drawn.{provenance_of(table).get('mechanism')}") is not None
    return note(page.texts["quantiles.told.drawn" if drawn else "quantiles.told"])


def _by_node(
    page: Setting, table: pd.DataFrame
) -> tuple[pd.DataFrame, list[Hashable], Callable[[float], str] | None]:
    """Lay out quantiles as a table of levels: a row per group, and its quantiles with their intervals.

    Moments are numbered in their order; the function says which they are.
    """
    parts = list(dict.fromkeys(table["q"]))
    moments = table["value"].dtype.kind == "M"
    numbers, said = _numbered(page, table) if moments else (_numbers(table), None)
    groups = [numbers.loc[table["q"] == part] for part in parts]
    keys = [each for each in table if each not in ("q", "value", *_ENDS)]
    if any(len(each) != len(groups[0]) for each in groups):
        raise ArgumentError(
            "tables", "has groups without some of their quantiles.", hint="pass the whole table."
        )
    wide = table.loc[table["q"] == parts[0], keys].reset_index(drop=True)
    names: list[Hashable] = []
    for part, group in zip(parts, groups, strict=True):
        name = quantile_name(page, part)
        names.append(name)
        wide[f"{name}"], wide[f"{name}_std_error"] = group["value"].to_numpy(), np.nan
        for end in _ENDS:
            if end in table:
                wide[f"{name}_{end}"] = group[end].to_numpy()
    wide.attrs.update(table.attrs)
    return wide, names, said


def _values(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of values and their ends."""
    return table[[each for each in ("value", *_ENDS) if each in table]]


def _numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Return values as numbers; durations in hours."""
    if table["value"].dtype.kind == "m":
        return pd.DataFrame({each: _values(table)[each].dt.total_seconds() / 3600 for each in _values(table)})
    return _values(table).astype(np.float64)


def _numbered(page: Setting, table: pd.DataFrame) -> tuple[pd.DataFrame, Callable[[float], str]]:
    """Number moments in their order, and return a function that says which a number means."""
    values = _values(table)
    moments = pd.Index(pd.concat([values[each] for each in values], ignore_index=True).dropna().unique())
    moments, said = moments.sort_values(), _sayings(page, table)
    codes = {each: moments.get_indexer(pd.Index(values[each])).astype(np.float64) for each in values}
    numbers = pd.DataFrame(codes, index=values.index)
    return numbers.where(numbers >= 0), lambda number: said(moments[int(number)])


def _sayings(page: Setting, table: pd.DataFrame) -> Callable[[Any], str]:
    """Return how values are printed: numbers to the decimals that they have, dates without a time."""
    if table["value"].dtype.kind != "M":
        digits = exact_decimals(_numbers(table).to_numpy())
        hours = table["value"].dtype.kind == "m"
        return lambda value: page.format.number(_in_hours(value) if hours else float(value), digits)
    values = table["value"].dropna()
    dates = bool((values == values.dt.normalize()).all())
    return lambda value: MISSING if pd.isna(value) else _moment(pd.Timestamp(value), dates=dates)


def _in_hours(duration: Any) -> float:
    return float("nan") if pd.isna(duration) else pd.Timedelta(duration).total_seconds() / 3600


def _moment(moment: pd.Timestamp, *, dates: bool) -> str:
    return str(moment.date()) if dates and moment == moment.normalize() else moment.isoformat(sep=" ")


def _as_shown(
    column: Column, table: pd.DataFrame, texts: Texts, said: Callable[[float], str] | None
) -> Column:
    """Return a column with moments instead of their numbers, and without errors if the table has none."""
    if said is not None:
        column = replace(column, format=_Moments(texts, said))
    if "lower" in table:
        return column
    own = {field.name: getattr(column, field.name) for field in fields(column)}
    return _Plain(**{**own, "error_heading": "", "error_kind": "", "shows_ends": True})


class _Moments(Format):
    """Moments as text, of which numbers are given."""

    def __init__(self, texts: Texts, said: Callable[[float], str]) -> None:
        super().__init__(texts)
        self._said = said

    def number(self, value: float, digits: int = 0) -> str:
        """Say which moment a number means."""
        return MISSING if value != value else self._said(value)


@dataclass(frozen=True, eq=False)
class _Plain(Column):
    """A quantity of which no errors are known."""

    def digits(self, rows: IntArray) -> int:
        """Return the decimals that all numbers have."""
        return exact_decimals(self.shown.numbers)

    def error(self, row: int, digits: int) -> str:
        """Say nothing."""
        return ""

    @property
    def width(self) -> int:
        """How many cells a row has."""
        return 1

    def cells(
        self, row: int | None, digits: int, most: float | None = None, *, with_error: bool = True
    ) -> Iterator[Markup]:
        """Make the cell of a row."""
        return super().cells(row, digits, most, with_error=False)

    def heads(self, texts: Texts, *, with_error: bool = True) -> Iterator[Markup]:
        """Make its head."""
        return super().heads(texts, with_error=False)
