"""Sections for distributions: a step with its band, quantiles, ranges, and the quartiles of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, Protocol

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.numbers import MISSING, exact_decimals
from pandas_dptree.output.pages.quantiles import quantile_name, quantile_sections, short_table
from pandas_dptree.output.pages.setting import Section, Setting, note
from pandas_dptree.output.pages.step_svg import step_svg
from pandas_dptree.output.pages.texts import isolated

__all__ = ["Binned", "distributions", "is_distribution"]

_QUARTILES: Final = (0.25, 0.5, 0.75)
_FEW_BINS: Final = 20


class Binned(Protocol):
    """A released distribution."""

    bins: Bins
    groups: pd.DataFrame | None

    def cdf(self, *, confidence: float | None = None) -> pd.DataFrame:
        """Tabulate cumulative counts."""

    def quantiles(self, q: Any, *, confidence: float | None = 0.95) -> pd.DataFrame:
        """Tabulate quantiles."""

    def range_counts(self, ranges: Any) -> pd.DataFrame:
        """Tabulate counts of ranges."""


def is_distribution(table: object) -> bool:
    """Whether a table of a page is a released distribution."""
    return hasattr(table, "bins") and hasattr(table, "range_counts")


def distributions(
    page: Setting,
    tables: Sequence[str],
    *,
    quantiles: Sequence[float] = (0.1, 0.25, 0.5, 0.75, 0.9),
    ranges: Any = None,
    confidence: float = 0.95,
) -> list[Section]:
    """Show distributions one after the other; of groups, their quartiles too."""
    sections = []
    for name in tables:
        table = page.tables[name]
        if not is_distribution(table):
            raise ArgumentError(
                "show",
                f"wants a distribution, not {kind_of_object(table)}.",
                hint="it is what release_distribution returns.",
            )
        sections.append(_section(page, name, table, quantiles, ranges, confidence))
        if table.groups is not None and len(table.groups) > 1:
            by_group = table.quantiles(_QUARTILES, confidence=confidence)
            sections += quantile_sections(page, name, by_group)
    return sections


def _section(
    page: Setting, name: str, table: Binned, quantiles: Any, ranges: Any, confidence: float
) -> Section:
    """Show the first group of a distribution: all records, if these are one."""
    texts, said = page.texts, _said(page, table.bins)
    column = page.labels.name(table.bins.column)
    counts = _first(table, table.cdf(confidence=confidence))
    total = int(counts["count"].iloc[-1])
    share = page.format.percent(confidence)
    lower, middle, upper = (counts[each].to_numpy() for each in ("lower", "count", "upper"))
    picture, thinnest = step_svg(table.bins, (lower, middle, upper), page.format, said)
    drawn = element("div", picture, role="img", aria_label=texts.fill("distribution.picture", name=column))
    widest = int(max((upper - middle).max(), (middle - lower).max()))
    told = texts.fill("distribution.band", share=share)
    if thinnest:
        told += " " + texts.fill("distribution.thin", error=page.format.margin(widest))
    caption = texts.fill("distribution.axis", name=isolated(page.labels.inline(table.bins.column)))
    figure = element("figure", element("figcaption", caption), drawn, element("figcaption", told))
    found = _first(table, table.quantiles(list(quantiles), confidence=confidence))
    parts = found["q"] if "q" in found else found.index
    rows = [
        (
            page.labels.name(quantile_name(page, part)),
            said(row.value),
            texts.fill("numbers.interval", lower=said(row.lower), upper=said(row.upper)),
        )
        for part, row in zip(parts, found.itertuples(), strict=True)
    ]
    heads = (texts["distribution.part"], column, texts.fill("head.error.ends", share=share))
    tables = [short_table(page, texts.fill("distribution.quantiles", name=column), heads, rows)]
    if ranges is None and table.bins.n_bins <= _FEW_BINS:
        ranges = _all_bins(table.bins)
    if ranges is not None:
        tables.append(_ranges(page, table, ranges, said, column))
    group = "" if table.groups is None else _group_name(page, table.groups)
    size = texts.fill("distribution.total", n=page.format.whole(total), group=group or texts["level.total"])
    body = [note(size), element("div", figure, element("div", tables), class_="pair")]
    heading = page.labels.name(name) if name else column
    return Section(heading, Markup("".join(filter(None, body))))


def _first(table: Binned, released: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of the first group."""
    groups = 1 if table.groups is None else len(table.groups)
    return released.iloc[: len(released) // groups]


def _group_name(page: Setting, groups: pd.DataFrame) -> str:
    """Return the labels of the first group."""
    keys = [
        page.labels.key(key, str(groups[key].iloc[0]))
        for key in groups.columns[1:]
        if not pd.isna(groups[key].iloc[0])
    ]
    return " · ".join(keys)


def _all_bins(bins: Bins) -> list[tuple[Any, Any]]:
    """Return the ends of each bin."""
    ends = list(bins.values_at(np.arange(bins.n_bins + 1)))
    return list(pairwise(ends))


def _ranges(page: Setting, table: Binned, ranges: Any, said: Callable[[Any], str], column: str) -> Markup:
    """Tabulate how many values lie in chosen ranges."""
    found = _first(table, table.range_counts(ranges))
    pieces = found[table.bins.column] if table.bins.column in found else found.index
    rows = [
        (
            page.texts.fill("range.ends", lower=said(piece.left), upper=said(piece.right)),
            page.format.whole(count),
            page.format.margin(error),
        )
        for piece, count, error in zip(
            pieces, found["count"].tolist(), found["std_error"].tolist(), strict=True
        )
    ]
    heads = (column, page.labels.name("count"), page.texts["head.error.std_error"])
    return short_table(page, page.texts.fill("distribution.ranges", name=column), heads, rows)


def _said(page: Setting, bins: Bins) -> Callable[[Any], str]:
    """Return how values of the column are printed: to the decimals that its bins have, or as times."""
    if not bins.is_time:
        digits = exact_decimals(bins.edges)
        return lambda value: page.format.number(float(value), digits)
    if bins.edges.dtype.kind == "m":
        unit: Literal["s", "ns"] = "s" if np.diff(bins.edges).min() >= np.timedelta64(1, "s") else "ns"
        return lambda value: _duration(value, unit)
    edges = pd.DatetimeIndex(bins.values_at(np.arange(bins.n_bins + 1)))
    signs = len("2025-01-01") if (edges == edges.normalize()).all() else len("2025-01-01 00:00")
    return lambda value: MISSING if pd.isna(value) else str(pd.Timestamp(value))[:signs]


def _duration(value: Any, unit: Literal["s", "ns"]) -> str:
    """Format a duration to whole units, than which no bin is shorter."""
    return MISSING if pd.isna(value) else str(pd.Timedelta(value).round(unit)).removeprefix("0 days ")
