"""The section that explains the numbers after ±, and the letters of reliability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pandas_dptree.output.additive import adds_up
from pandas_dptree.output.derived.reliability import CLASSES, KNOWN
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.numbers import MISSING
from pandas_dptree.output.pages.quantiles import is_quantiles
from pandas_dptree.output.pages.setting import Section, Setting, note
from pandas_dptree.output.pages.texts import Texts, isolated
from pandas_dptree.output.pages.views import Column, View
from pandas_dptree.output.released import share_of

__all__ = ["reading_section"]


def reading_section(page: Setting, views: Sequence[View]) -> Section:
    """Explain the errors of the tables of a page."""
    texts = page.texts
    told = dict.fromkeys(sentence for view in views for sentence in _sentences(view, texts))
    sentences = [element("p", sentence) for sentence in [*_intervals(views, texts), *told]]
    quantiles = all(map(is_quantiles, page.tables.values()))
    fixed = [
        element("p", sentence)
        for sentence in ([texts["errors.quantiles"]] if quantiles else _fixed(views, texts))
    ]
    graded = any(column.graded for view in views for column in view.columns)
    body = element(
        "div",
        element("div", sentences, fixed),
        _classes(page) if graded else None,
        class_="pair",
    )
    return Section(texts["errors.title"], body, entry=texts["errors.nav"])


def _fixed(views: Sequence[View], texts: Texts) -> list[str]:
    """Say what holds for all errors, and for the sums of numbers that add up, or of those that do not."""
    columns = [(view.provenance, column.shown.name) for view in views for column in view.columns]
    units = [isolated(stated.get("privacy_unit")) for stated, name in columns if not adds_up(stated, name)]
    distinct = [texts.fill("errors.distinct", unit=unit) for unit in dict.fromkeys(units)]
    sums = [] if columns and len(units) == len(columns) else [texts["errors.sums"]]
    return [texts["errors.only"], *distinct, *sums, texts["errors.zero"]]


def _intervals(views: Sequence[View], texts: Texts) -> list[str]:
    """Explain intervals by one of each confidence."""
    first: dict[str, Column] = {}
    for view in views:
        for column in view.columns:
            if column.shown.interval is not None:
                first.setdefault(share_of(view.provenance) or texts["errors.share.unknown"], column)
    told = [_example(column, share, texts) for share, column in first.items()]
    return [*told, texts["errors.cut"]] if told else []


def _sentences(view: View, texts: Texts) -> list[str]:
    """Explain the errors of one table."""
    provenance = view.provenance
    kinds = {column.shown.error_name for column in view.columns if column.shown.interval is None}
    told = []
    if "standard error" in kinds:
        told.append(texts["errors.std_error" + ".shown" * ("shown_above" in provenance)])
    if "error bound" in kinds:
        told.append(_bound(provenance, texts))
    means = [column for column in view.columns if column.shown.name in view.means]
    if means:
        told.append(texts["errors.means"])
    if any(np.isnan(column.shown.numbers).any() for column in means):
        told.append(texts["errors.missing"])
    return told


def _bound(provenance: Mapping[str, Any], texts: Texts) -> str:
    """Explain an error bound: it holds for each row, for all rows at once, or certainly."""
    if provenance.get("mechanism") == "truncated_laplace":
        return texts["errors.bound.certain"]
    if "shown_above" in provenance and (share := share_of(provenance)):
        return texts.fill("errors.bound.all", share=share)
    failure = provenance.get("failure_probability")
    stated = f"{1 - failure:.4g}" if isinstance(failure, float) else None
    return texts.fill("errors.bound", held=stated) if stated else texts["errors.bound.nearly"]


def _example(column: Column, share: str, texts: Texts) -> str:
    """Explain an interval by the first row that prints ±."""
    for row in range(min(len(column.lower), 1_000)):
        digits = column.digits(np.array([row]))
        error = column.error(row, digits)
        if error.startswith("±") and column.lower[row] < column.upper[row]:
            ends = {
                name: column.format.number(float(end[row]), digits)
                for name, end in (("lower", column.lower), ("upper", column.upper))
            }
            return texts.fill(
                "errors.interval", value=column.value(row, digits), error=error, share=share, **ends
            )
    return texts.fill("errors.interval.plain", share=share)


def _classes(page: Setting) -> Markup:
    """List the classes of reliability, and say which numbers are not shown."""
    texts, limits = page.texts, page.classes
    owner = next((name for name, each in CLASSES.items() if each == limits), None)
    least, rows = 0.0, []
    for place, (letter, most) in enumerate(limits.items(), start=1):
        key = "classes.above" if place == len(limits) else "classes.between" if least else "classes.below"
        ends = {"least": page.format.percent(least), "most": page.format.percent(most)}
        rows.append((letter, texts.fill(key, **ends), texts.get(f"class.{letter}") if owner else None))
        least = most
    rows.append((KNOWN, "0", texts[f"class.{KNOWN}"]))
    heads = ["head.class", "classes.head.ratio", "classes.head.meaning"]
    source = element("small", texts[f"classes.source.{owner}"]) if owner else None
    table = element(
        "table",
        element("caption", texts["classes.caption"], " ", source),
        element("thead", element("tr", [element("th", texts[head], scope="col") for head in heads])),
        element(
            "tbody",
            [
                element(
                    "tr",
                    element("th", letter or MISSING, scope="row"),
                    element("td", ratio),
                    element("td", meaning),
                )
                for letter, ratio, meaning in rows
            ],
        ),
        class_="key",
    )
    blank = note(texts.fill("classes.blank", classes=", ".join(page.blank))) if page.blank else ""
    return element("div", table, blank)
