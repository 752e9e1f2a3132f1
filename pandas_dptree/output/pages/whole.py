"""A page as a whole: its head, the list of its sections, the sections, and the document around them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.output.additive import adds_up
from pandas_dptree.output.html import Child, Markup, element
from pandas_dptree.output.pages.interactive import packaged, policy, script_words
from pandas_dptree.output.pages.protection_section import (
    account_of,
    losses_in_short,
    protected,
    protection_section,
)
from pandas_dptree.output.pages.reading import reading_section
from pandas_dptree.output.pages.sections import make_sections
from pandas_dptree.output.pages.setting import Section, Setting
from pandas_dptree.output.pages.texts import Texts, isolated
from pandas_dptree.output.pages.views import View
from pandas_dptree.output.protection import objections, undercount
from pandas_dptree.output.table_digest import Keeper, how_altered

__all__ = ["Head", "document", "listed_sections", "whole_page"]

_LARGEST_DOWNLOAD: Final = 500_000
"""The cells and the bytes up to which a table is part of its page as a file."""


@dataclass(frozen=True)
class Head:
    """What the caller says above the tables."""

    title: str
    date: object
    publisher: str | None
    notes: str | Sequence[str] | None
    downloads: bool

    @property
    def paragraphs(self) -> list[str]:
        """The notes."""
        notes = [self.notes] if isinstance(self.notes, str) else self.notes or []
        if not isinstance(notes, list | tuple) or not all(isinstance(each, str) for each in notes):
            raise ArgumentError(
                "notes", f"must be text, or a list of texts, not {quote(self.notes)}.", hint='notes="...".'
            )
        return list(notes)


def whole_page(
    page: Setting,
    items: Sequence[Mapping[str, Any]],
    head: Head,
    ledger: Keeper | None,
    *,
    interactive: bool,
) -> str:
    """Return the page that shows `items` below its head."""
    pictures = [item for item in items if isinstance(item, Mapping) and item.get("as") == "icicle"]
    drawn = [item.get("table") for item in pictures]
    sections = [section for item in items for section in make_sections(page, item, drawn)]
    page = page.of([name for name in page.tables if any(name in _named(item) for item in items)])
    views = [page.view(name, _columns(items, name)) for name, each in page.tables.items() if has_levels(each)]
    sections += [protection_section(page), reading_section(page, views)]
    body, contents = listed_sections(sections, page.texts)
    top = element(
        "header",
        element(
            "p",
            " · ".join(filter(None, [head.publisher, None if head.date is None else str(head.date)]))
            or page.texts["page.kicker"],
            class_="kicker",
        ),
        element("h1", head.title),
        [element("p", warning, class_="warning") for warning in _warnings(page, ledger)],
        element("p", _lede(page, views), class_="lede"),
        [element("p", told) for told in _undercounts(page)],
        [element("p", each) for each in head.paragraphs],
        _facts(page, views, ledger, downloads=head.downloads),
    )
    return document(head.title, [top, contents, body], page.texts, interactive=interactive)


def _named(item: Mapping[str, Any]) -> list[Any]:
    """Return the names of the tables that an entry of `show` names."""
    return [item.get("table"), item.get("before"), *(item.get("tables") or ())]


def _columns(items: Sequence[Any], name: str) -> Any:
    """Return the columns that `show` chooses of a table."""
    of_it = [item for item in items if isinstance(item, Mapping) and item.get("table") == name]
    return of_it[0].get("columns") if of_it else None


def has_levels(table: Any) -> bool:
    """Whether a released table has rows of levels."""
    return isinstance(table, pd.DataFrame) and "level" in table and "q" not in table


def listed_sections(sections: Sequence[Section], texts: Texts) -> tuple[Markup, Markup]:
    """Return the main part of a page, and the list of its sections."""
    made, entries = [], []
    for number, section in enumerate(sections, start=1):
        name = f"s{number}"
        heading = element("h2", section.heading, id=f"{name}-h")
        made.append(element("section", heading, section.body, id=name, aria_labelledby=f"{name}-h"))
        link = element("a", section.entry or section.heading, href=f"#{name}")
        size = None if section.size is None else [" ", element("small", section.size)]
        entries.append(element("li", link, size))
    contents = element("nav", element("ol", entries), aria_label=texts["page.contents"])
    return element("main", made, id="main"), contents


def document(
    title: str, body: Child, texts: Texts, *, interactive: bool = False, origin: str | None = None
) -> str:
    """Return a self-contained document; with `interactive`, its script, and nothing else, may run."""
    script = element("script", Markup(packaged("page.js"))) if interactive else None
    footer = f'@page{{@bottom-left{{content:"{_in_css(title[:90])}"}}}}'
    styles = packaged("page.css") + packaged("interactive.css") * interactive
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(interactive=interactive)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(styles + footer)),
    )
    words = script_words(texts) if interactive else None
    made = f"{texts.fill('page.made', version=__version__)} {origin or texts['page.origin']}"
    skip = element("a", texts["page.skip"], href="#main", class_="skip")
    content = element("body", skip, body, element("footer", element("p", made)), script, data_words=words)
    return f"<!DOCTYPE html>\n{element('html', head, content, lang=texts.language)}\n"


def _in_css(text: str) -> str:
    """Write text as a string of CSS, which has other escapes than HTML."""
    return "".join(each if each.isascii() and each.isalnum() else f"\\{ord(each):x} " for each in text)


def _warnings(page: Setting, ledger: Keeper | None) -> list[str]:
    """Say which tables protect nobody, and which are not what was released."""
    texts, several = page.texts, len(page.tables) > 1
    told = []
    for name, table in page.tables.items():
        stated = page.provenances[name]
        charged = account_of(stated) is not None or not several
        kind = how_altered(table, ledger if charged else None)
        warnings = [*objections(stated, texts), *([texts[f"warning.altered.{kind}"]] if kind else [])]
        shown = isolated(page.table_name(name))
        told += [
            texts.fill("of.table", name=shown, words=warning) if several else warning for warning in warnings
        ]
    return told


def _undercounts(page: Setting) -> list[str]:
    """Say which records are in none of the numbers, and of which tables if that differs."""
    tables: dict[str, list[str]] = {}
    for name, provenance in page.provenances.items():
        tables.setdefault(undercount(provenance, page.texts), []).append(isolated(page.table_name(name)))
    if len(tables) == 1:
        return [*filter(None, tables)]
    return [
        page.texts.fill("of.table", name=page.texts.joined(names), words=words)
        for words, names in tables.items()
        if words
    ]


def _lede(page: Setting, views: Sequence[View]) -> str:
    """Say the total and the levels in one or two sentences, and why the numbers have errors."""
    texts, told = page.texts, []
    if views:
        levels = texts.joined(
            [
                texts.fill(
                    "lede.level", name=isolated(page.labels.inline(name)), size=page.format.whole(len(rows))
                )
                for name, rows in views[0].levels
            ]
        )
        total = _total(page, views[0])
        key = "both" if total and levels else "whole" if total else "levels"
        told += [texts.fill(f"lede.{key}", total=total, levels=levels)] if total or levels else []
    stated = list(page.provenances.values())
    if all(each.get("neighbors") in ("add_remove", "replace") and not objections(each) for each in stated):
        drawn = all(texts.get(f"drawn.{each.get('mechanism')}") for each in stated)
        replaced = any(each["neighbors"] == "replace" for each in stated)
        told.append(texts[f"lede.{'drawn' if drawn else 'noise'}{'.replace' if replaced else ''}"])
    return " ".join(told)


def _total(page: Setting, view: View) -> str:
    """Say the total of a table's first column; empty if the table has none."""
    if (root := view.root) is None:
        return ""
    texts, column = page.texts, view.columns[0]
    digits = column.digits(np.array([root]))
    value, error = column.value(root, digits), column.error(root, digits)
    kind, name = "mean" if column.shown.name in view.means else "total", column.heading
    if column.shown.name == "count" and not column.is_blank(root):
        own = "count" if view.labels.has("count") else view.name
        if not own and not adds_up(view.provenance, "count"):
            name = texts.fill("lede.units", unit=view.provenance.get("privacy_unit"))
        else:
            kind, name = "count", view.labels.inline(own) if own else texts["lede.records"]
    key = f"lede.{kind}" if error else f"lede.{kind}.plain"
    return texts.fill(key, name=isolated(name), value=value, error=error)


def _facts(page: Setting, views: Sequence[View], ledger: Keeper | None, *, downloads: bool) -> Markup:
    """Say who is protected, what ± is, what was spent, and where the tables are."""
    texts, stated = page.texts, list(page.provenances.values())
    kinds = dict.fromkeys(column.error_kind for view in views for column in view.columns if column.error_kind)
    facts: dict[str, Child] = {
        "protected": _several([protected(each, texts) for each in stated]),
        "errors": _several(list(kinds)),
        "loss": losses_in_short(page, ledger),
        "download": _downloads(page) if downloads else None,
    }
    return element(
        "dl",
        [
            element("div", element("dt", texts[f"fact.{name}"]), element("dd", told))
            for name, told in facts.items()
            if told
        ],
        class_="facts",
    )


def _several(facts: Sequence[str]) -> str:
    """Join facts, each once."""
    return "; ".join(dict.fromkeys(facts))


def _downloads(page: Setting) -> list[Child]:
    """Link the small tables as CSV files within the page."""
    links: list[Child] = []
    for name, table in page.tables.items():
        if not isinstance(table, pd.DataFrame) or table.size > _LARGEST_DOWNLOAD:
            continue
        content = table.to_csv(index=table.index.name is not None).encode("utf-8", "replace")
        if len(content) > _LARGEST_DOWNLOAD:
            continue
        text = page.texts.fill("fact.download.table", name=page.table_name(name))
        address = f"data:text/csv;charset=utf-8;base64,{base64.b64encode(content).decode()}"
        file = "".join(each if each.isalnum() or each in "-_" else "_" for each in name)[:60]
        links += [" · " if links else None, element("a", text, href=address, download=f"{file}.csv")]
    return links
