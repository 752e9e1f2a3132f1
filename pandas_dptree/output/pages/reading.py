"""The section that explains the numbers after ±, and the letters of reliability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.numbers import CLASSES, Format
from pandas_dptree.output.pages.setting import Section, Setting
from pandas_dptree.output.pages.texts import Texts
from pandas_dptree.output.pages.views import Column, View
from pandas_dptree.output.released import share_of

__all__ = ["reading_section"]


def reading_section(page: Setting, views: Sequence[View]) -> Section:
    """Explain the errors of the tables of a page."""
    texts = page.texts
    told = dict.fromkeys(sentence for view in views for sentence in _sentences(view, texts))
    sentences = [element("p", sentence) for sentence in [*_intervals(views, texts), *told]]
    fixed = [element("p", texts[f"errors.{name}"]) for name in ("only", "sums", "zero")]
    graded = any(column.graded for view in views for column in view.columns)
    body = element(
        "div",
        element("div", sentences, fixed),
        _classes(texts, page.format) if graded else None,
        class_="pair",
    )
    return Section(texts["errors.title"], body, entry=texts["errors.nav"])


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


def _classes(texts: Texts, format_: Format) -> Markup:
    """List the classes of reliability."""
    rows = []
    least = 0.0
    for most, letter in CLASSES:
        key = "classes.below" if not least else "classes.above" if most == np.inf else "classes.between"
        ends = {"least": format_.number(100 * least), "most": format_.number(100 * most)}
        rows.append((letter, texts.fill(key, **ends)))
        least = most
    heads = [texts["head.class"], texts["classes.head.ratio"], texts["classes.head.meaning"]]
    return element(
        "table",
        element("caption", texts["classes.caption"], " ", element("small", texts["classes.source"])),
        element("thead", element("tr", [element("th", head, scope="col") for head in heads])),
        element(
            "tbody",
            [
                element(
                    "tr",
                    element("th", letter, scope="row"),
                    element("td", ratio),
                    element("td", texts[f"class.{letter}"]),
                )
                for letter, ratio in [*rows, ("=", "0")]
            ],
        ),
        class_="key",
    )
