"""What a programme shows on its page."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pandas_dptree.errors import did_you_mean, quote
from pandas_dptree.output.pages.labels import Labels
from pandas_dptree.output.pages.page import page_classes
from pandas_dptree.output.pages.sections import SECTIONS
from pandas_dptree.output.pages.texts import texts_of
from pandas_dptree.programmes.hierarchies import Levels
from pandas_dptree.programmes.placeholders import Placeholder
from pandas_dptree.programmes.problems import Section
from pandas_dptree.programmes.programme import PageOptions

__all__ = ["page_of"]


def page_of(
    whole: Section,
    tables: Mapping[str, Section],
    levels: Mapping[str, Levels | None],
    placeholder: Placeholder,
) -> PageOptions:
    """Read the page; note what is wrong."""
    section = Section(whole.problems, ("page",), whole.take("page", "a table", {}))
    title = section.take("title", "a text", whole.take("title", "a text", "Released tables"))
    placeholder.check(section, "title", section.entries.get("title") and title)
    show = section.take("show", "a list of tables")
    for number, entry in enumerate(show or [], start=1):
        _check_entry(section, f"entry {number}", entry, tables)
    reliability = section.take("reliability", "a text or a table", "statcan")
    blank = section.take("blank", "a list of texts", [])
    with section.problems.catching(section.path, {"reliability": "reliability", "blank": "blank"}):
        reliability = _classes(reliability)
        page_classes(reliability, blank)
    language = section.take("language", "a text", "en")
    labels = section.take("labels", "a table", {})
    with section.problems.catching(section.path, {"language": "language", "labels": "labels"}):
        Labels(labels, texts_of(language))
    keys = _listed_keys(tables, levels)
    areas = _combine(section, keys)
    if areas:
        combined = [
            name for name in keys if all(_has(keys[name], path) for each in areas.values() for path in each)
        ]
        show = [{"table": name} for name in tables] if show is None else show
        show += [{"table": name, "as": "combine", "areas": areas} for name in combined]
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
    section: Section, where: str, entry: Mapping[str, Any], tables: Mapping[str, Section]
) -> None:
    """Check one entry of ``show``; options of a kind of section are the page's."""
    named = [entry["table"]] if "table" in entry else entry.get("tables")
    if ("table" in entry) == ("tables" in entry) or not isinstance(named, list) or not named:
        section.add("show", f"{where} must have table or tables.", 'for example { table = "visits" }.')
        return
    for name in named:
        if not isinstance(name, str) or name not in tables:
            hint = f"{did_you_mean([name], tables)}the tables are {', '.join(tables)}."
            section.add("show", f"{where} names {quote(name)}, which is no table.", hint)
    kind = entry.get("as")
    if kind is not None and (not isinstance(kind, str) or kind not in SECTIONS):
        hint = f"{did_you_mean([kind], SECTIONS)}choose one of {', '.join(SECTIONS)}."
        section.add("show", f"{where}: as = {quote(kind)} is unknown.", hint)
    takes = _entries_of(kind)
    for name in entry:
        if takes is not None and name not in takes:
            hint = f"{did_you_mean([name], takes)}its keys are {', '.join(takes)}."
            section.add("show", f"{where} has the unknown key {quote(name)}.", hint)
    before = entry.get("before")
    if before is not None and (not isinstance(before, str) or before not in tables):
        section.add("show", f"{where}: before is no table.", f"the tables are {', '.join(tables)}.")


def _entries_of(kind: Any) -> list[str] | None:
    """Return the keys that an entry of a kind may have; None if they are not known."""
    if not isinstance(kind, str) or kind not in SECTIONS:
        return None
    parameters = inspect.signature(SECTIONS[kind]).parameters.values()
    options = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    return list(dict.fromkeys(["table", "tables", "as", *options]))


def _combine(section: Section, keys: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """Read areas that are put together of paths, each the keys of a node of one of the tables."""
    areas: dict[str, Any] = section.take("combine", "a table", {})
    for area, paths in areas.items():
        if not isinstance(paths, list) or not all(
            isinstance(path, list) and path for path in [paths, *paths]
        ):
            fact = f"of {quote(area)} must be a list of paths."
            section.add("combine", fact, 'for example [["North"], ["South", "Harbour"]].')
            return {}
        for path in paths:
            if keys and not any(_has(table, path) for table in keys.values()):
                fact = f"of {quote(area)} has the path {quote(path)}, which no table of counts has."
                section.add("combine", fact, "write the keys from the coarsest level down.")
    return areas


def _listed_keys(
    tables: Mapping[str, Section], levels: Mapping[str, Levels | None]
) -> dict[str, pd.DataFrame]:
    """Return the public keys of the tables of counts whose levels are all columns with listed keys."""
    found = {}
    for name, table in tables.items():
        by, down_to = table.entries.get("by"), table.entries.get("down_to")
        own = levels.get(by) if isinstance(by, str) else None
        if (
            table.entries.get("verb") == "counts"
            and own is not None
            and own.places is not None
            and not own.private
        ):
            last = own.names.index(down_to) if down_to in own.names else len(own.names) - 1
            found[name] = own.places[list(own.names[: last + 1])]
    return found


def _has(keys: pd.DataFrame, path: Sequence[Any]) -> bool:
    """Whether keys have a path."""
    first = keys.iloc[:, : len(path)].astype("str")
    return len(path) <= keys.shape[1] and bool((first == list(map(str, path))).all(axis="columns").any())
