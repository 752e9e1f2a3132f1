"""The section that compares a table with an earlier one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, listed, quote
from pandas_dptree.output.derived.changes import change_from
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.numbers import FloatArray, decimals
from pandas_dptree.output.pages.setting import Section, Setting, note, scrolled
from pandas_dptree.output.pages.texts import isolated
from pandas_dptree.output.pages.views import View
from pandas_dptree.output.released import Released

__all__ = ["changes"]

_CHANGES: Final = 60
"""The rows of changes that a section shows, unless its caller says otherwise."""

_DRAWN: Final = 0.85
"""The part of the intervals that have room on the scale; the others are not drawn."""


def changes(
    page: Setting,
    tables: Sequence[str],
    *,
    before: str | None = None,
    now: str | None = None,
    column: Hashable | None = None,
    max_rows: int = _CHANGES,
) -> list[Section]:
    """Compare a table, headed `now`, with one `before`, as far down as its levels have `max_rows` rows."""
    if not isinstance(before, str) or before not in page.tables or len(tables) != 1:
        raise ArgumentError(
            "show",
            f"compares one table with one before, which is not {quote(before)}.",
            hint=f'for example {{"table": "now", "as": "change", "before": "then"}}; the tables are '
            f"{listed(page.tables)}.",
        )
    texts, name = page.texts, tables[0]
    newer, then = page.view(name, column), page.view(before, column)
    frame = change_from(
        page.tables[name],
        page.tables[before],
        column=newer.columns[0].shown.name,
        confidence=page.confidence(name),
    )
    stated = frame.attrs["dp_derived"]
    told = texts.fill(
        "change.told",
        beyond=page.format.whole(stated["beyond_noise"]),
        n=page.format.whole(stated["changes"]),
        chance=page.format.number(stated["by_chance"], 0 if stated["by_chance"] >= 2 else 1),
        holm=page.format.whole(stated["beyond_noise_holm"]),
    )
    shown, earlier = isolated(page.table_name(name)), isolated(page.table_name(before))
    table = _changes_table(
        page, newer, then, frame, _rows_down_to(newer.released, max_rows), name, [earlier, now or shown]
    )
    body = Markup((note(told, texts["change.leaves_out"]) or "") + table)
    heading = texts.fill("change.heading", table=shown, before=earlier)
    return [Section(heading, body, entry=texts["change.entry"])]


def _rows_down_to(released: Released, max_rows: int) -> list[int]:
    """Return the rows of the first levels that have up to `max_rows` rows, nested."""
    depths, sizes = np.unique(released.depth, return_counts=True)
    fits = max(int(np.searchsorted(np.cumsum(sizes), max_rows, side="right")), 1)
    order = released.nested
    return [int(row) for row in order[released.depth[order] <= depths[fits - 1]]]


def _changes_table(
    page: Setting,
    now: View,
    then: View,
    frame: pd.DataFrame,
    rows: Sequence[int],
    name: str,
    shown: Sequence[str],
) -> Markup:
    """Make the table of changes, each with its per cent and their interval as a dot on a line."""
    texts, chosen = page.texts, np.array(rows)
    get = {name: frame[name].to_numpy(dtype=np.float64)[chosen] for name in frame.columns[-8:]}
    digits = decimals((get["upper"] - get["lower"]) / 2, whole=now.columns[0].shown.whole)
    span = _span(get["percent_lower"], get["percent_upper"])
    percent_digits = min(decimals((get["percent_upper"] - get["percent_lower"]) / 2), 1)
    body = [
        _change_row(page, now, then, row, place, get, (digits, percent_digits), span)
        for place, row in enumerate(rows)
    ]
    caption = texts.fill("change.caption", table=now.columns[0].heading, before=shown[0], now=shown[1])
    share = page.format.percent(page.confidence(name))
    axis = [page.format.signed(each) + " %" for each in (-span, 0, span)]
    heads = [
        element("th", now.labels.name(now.levels[0][0] if now.levels else "total"), scope="col"),
        element("th", shown[0], scope="col", class_="n"),
        element("th", shown[1], scope="col", class_="n"),
        element("th", texts["change.head.change"], scope="col", class_="gap"),
        element("th", page.margin_head(name), scope="col", class_="e"),
        element("th", texts["change.head.percent"], scope="col", class_="gap"),
        element("th", texts.fill("change.head.interval", share=share), scope="col", class_="e"),
        element("th", element("span", [element("span", each) for each in axis], class_="axis"), scope="col"),
        element("th", texts["change.head.beyond"], scope="col", class_="r"),
    ]
    table = element(
        "table", element("caption", caption), element("thead", element("tr", heads)), element("tbody", body)
    )
    return scrolled(table, caption, texts)


def _span(lower: FloatArray, upper: FloatArray) -> float:
    """Return the end of a scale around 0, in per cent, on which most intervals have room."""
    ends = np.fmax(np.abs(lower), np.abs(upper))
    ends = ends[np.isfinite(ends)]
    return 10.0 * float(np.ceil(max(np.quantile(ends, _DRAWN) if len(ends) else 0.0, 10.0) / 10))


def _change_row(
    page: Setting,
    now: View,
    then: View,
    row: int,
    place: int,
    get: Mapping[str, FloatArray],
    digits: tuple[int, int],
    span: float,
) -> Markup:
    """Make the row of one node: both numbers, the change, its per cent, and their interval as a line."""
    texts, form = page.texts, page.format
    at = then.row_of.get(now.released.keys_of(row))
    change, lower, upper, percent, least, most = (
        float(get[name][place])
        for name in ("change", "lower", "upper", "percent", "percent_lower", "percent_upper")
    )
    beyond = bool(get["beyond_noise"][place])
    drawn = -span <= least <= percent <= most <= span
    ends = [(end + span) / (2 * span) for end in (percent, least, most)] if drawn else []
    style = "--v:{:.4g};--l:{:.4g};--u:{:.4g}".format(*ends) if drawn else None
    interval = texts["numbers.interval"].format(
        lower=form.signed(least, digits[1]), upper=form.signed(most, digits[1])
    )
    depth = int(now.released.depth[row])
    above = depth < min(int(now.released.depth.max()), 2)
    classes = ["t" if above else f"in{min(depth, 3)}", "sig" if beyond else ""]
    return element(
        "tr",
        element("th", now.label(row), scope="row"),
        element("td", "" if at is None else then.columns[0].value(at, digits[0]), class_="n"),
        element("td", now.columns[0].value(row, digits[0]), class_="n"),
        element("td", form.signed(change, digits[0]), class_="gap s"),
        element("td", form.error(change, lower, upper, digits[0]), class_="e"),
        element("td", form.signed(percent, digits[1]) + " %" if percent == percent else "–", class_="gap"),
        element("td", interval if least == least else texts["change.few"], class_="e"),
        element("td", class_="d" if drawn else None, style=style),
        element("td", texts["change.yes" if beyond else "change.no"], class_="r s"),
        class_=" ".join(filter(None, classes)),
    )
