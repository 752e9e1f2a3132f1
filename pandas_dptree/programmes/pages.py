"""What a programme shows on its page."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

from pandas_dptree.errors import did_you_mean, quote
from pandas_dptree.output.pages.labels import Labels
from pandas_dptree.output.pages.page import page_classes
from pandas_dptree.output.pages.sections import SECTIONS
from pandas_dptree.output.pages.texts import texts_of
from pandas_dptree.programmes.placeholders import Placeholder
from pandas_dptree.programmes.problems import Section
from pandas_dptree.programmes.programme import PageOptions

__all__ = ["page_of"]


def page_of(
    whole: Section,
    tables: Mapping[str, Section],
    placeholder: Placeholder,
) -> PageOptions:
    """Read the page; note what is wrong."""
    section = Section(whole.problems, ("page",), whole.take("page", "a table", {}))
    title = section.take("title", "a text", whole.take("title", "a text", "Released tables"))
    placeholder.check(section, "title", section.entries.get("title") and title)
    show = section.take("show", "a list of tables")
    for number, entry in enumerate(show or [], start=1):
        _check_entry(section, number, entry, tables)
    reliability = section.take("reliability", "a text or a table", "statcan")
    blank = section.take("blank", "a list of texts", [])
    with section.problems.catching(section.path, {"reliability": "reliability", "blank": "blank"}):
        reliability = _classes(reliability)
        page_classes(reliability, blank)
    language = section.take("language", "a text", "en")
    labels = section.take("labels", "a table", {})
    with section.problems.catching(section.path, {"language": "language", "labels": "labels"}):
        Labels(labels, texts_of(language))
    areas = _combine(section)
    options = PageOptions(
        title=placeholder.fill(title),
        show=None if show is None else tuple(show),
        combine=areas,
        reliability=reliability,
        blank=tuple(blank),
        labels=labels,
        publisher=section.take("publisher", "a text"),
        notes=section.take("notes", "a text"),
        language=language,
        interactive=section.take("interactive", "true or false", False),
    )
    section.finish()
    return options


def _classes(stated: str | Mapping[str, Any]) -> str | Mapping[str, float]:
    """Return classes by the relative errors below which they are, from those at which each begins."""
    if isinstance(stated, str):
        return stated
    limits = [*stated.values(), math.inf]
    return {"": limits[0], **dict(zip(stated, limits[1:], strict=True))}


def _check_entry(
    section: Section, number: int, entry: Mapping[str, Any], tables: Mapping[str, Section]
) -> None:
    """Check one entry of ``show``; options of a kind of section are the page's."""
    named = [entry["table"]] if "table" in entry else entry.get("tables")
    if ("table" in entry) == ("tables" in entry) or not isinstance(named, list) or not named:
        section.add("show", "must have table or tables.", 'for example { table = "visits" }.', number)
        return
    for name in named:
        if not isinstance(name, str) or name not in tables:
            hint = f"{did_you_mean([name], tables)}the tables are {', '.join(tables)}."
            section.add("show", f"names {quote(name)}, which is no table.", hint, number)
    kind = entry.get("as")
    if kind is not None and (not isinstance(kind, str) or kind not in SECTIONS):
        hint = f"{did_you_mean([kind], SECTIONS)}choose one of {', '.join(SECTIONS)}."
        section.add("show", f"as = {quote(kind)} is unknown.", hint, number)
    takes = _entries_of(kind)
    for name in entry:
        if takes is not None and name not in takes:
            hint = f"{did_you_mean([name], takes)}its keys are {', '.join(takes)}."
            section.add("show", f"has the unknown key {quote(name)}.", hint, number)
    before = entry.get("before")
    if before is not None and (not isinstance(before, str) or before not in tables):
        section.add("show", "before is no table.", f"the tables are {', '.join(tables)}.", number)


def _entries_of(kind: Any) -> list[str] | None:
    """Return the keys that an entry of a kind may have; None if they are not known."""
    if not isinstance(kind, str) or kind not in SECTIONS:
        return None
    parameters = inspect.signature(SECTIONS[kind]).parameters.values()
    options = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    return list(dict.fromkeys(["table", "tables", "as", *options]))


def _combine(section: Section) -> dict[str, Any]:
    """Read areas that are put together of paths; `rehearsing` compares these with the tables."""
    areas: dict[str, Any] = section.take("combine", "a table", {})
    for area, paths in areas.items():
        if not _are_paths(paths):
            fact = f"of {quote(area)} must be a list of paths."
            section.add("combine", fact, 'for example [["North"], ["South", "Harbour"]].')
            return {}
    return areas


def _are_paths(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(path, list) and path for path in [given, *given])
