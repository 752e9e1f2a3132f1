"""What a programme shows on its page."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pandas_dptree.errors import did_you_mean, quote
from pandas_dptree.output.pages.sections import SECTIONS
from pandas_dptree.programmes.hierarchies import Levels
from pandas_dptree.programmes.placeholders import Placeholder
from pandas_dptree.programmes.problems import Problem, Section
from pandas_dptree.programmes.programme import PageOptions

__all__ = ["page_of"]

_KINDS: Final = tuple(dict.fromkeys([*SECTIONS, "icicle", "change", "heatmap", "top"]))
_VERBS: Final = {"combine": "combine", "reliability": "reliability", "blank": "reliability"}
_RELIABILITY: Final = ("statcan", "abs", "none")


def page_of(
    whole: Section,
    tables: Mapping[str, Section],
    levels: Mapping[str, Levels | None],
    placeholder: Placeholder,
    notes: list[Problem],
) -> PageOptions:
    """Read the page; note what is wrong, and add to the `notes` what is not shown."""
    section = Section(whole.problems, ("page",), whole.take("page", "a table", {}))
    title = section.take("title", "a text", whole.take("title", "a text", "Released tables"))
    placeholder.check(section, "title", section.entries.get("title") and title)
    show = section.take("show", "a list of tables")
    for number, entry in enumerate(show or [], start=1):
        _check_entry(section, f"entry {number}", entry, tables)
    reliability = section.take("reliability", "a text or a table", "statcan")
    if isinstance(reliability, str) and reliability not in _RELIABILITY:
        hint = (
            f"{did_you_mean([reliability], _RELIABILITY)}choose one of {', '.join(_RELIABILITY)}, or a table."
        )
        section.add("reliability", f"{quote(reliability)} is unknown.", hint)
    elif isinstance(reliability, dict) and not all(_is_error(each) for each in reliability.values()):
        section.add(
            "reliability", "must have a largest relative error for each class.", "for example { E = 0.165 }."
        )
    language = section.take("language", "a text", "en")
    options = PageOptions(
        title=placeholder.fill(title),
        show=None if show is None else tuple(show),
        combine=_combine(section, levels),
        reliability=reliability,
        blank=tuple(section.take("blank", "a list of texts", [])),
        labels=section.take("labels", "a table", {}),
        publisher=section.take("publisher", "a text"),
        notes=section.take("notes", "a text"),
        language=language,
        interactive=section.take("interactive", "true or false", False),
    )
    section.finish()
    for key in ("combine", "reliability", "blank"):
        if key in section.entries:
            path = ("page", key)
            fact = "is checked, and not shown: pages of this version have no place for it."
            notes.append(Problem(path, whole.problems.line(path), fact, f"use table.dp.{_VERBS[key]}."))
    return options


def _is_error(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


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
    if kind is not None and kind not in _KINDS:
        hint = f"{did_you_mean([kind], _KINDS)}choose one of {', '.join(_KINDS)}."
        section.add("show", f"{where}: as = {quote(kind)} is unknown.", hint)
    takes = _entries_of(kind)
    for name in entry:
        if takes is not None and name not in takes:
            hint = f"{did_you_mean([name], takes)}its keys are {', '.join(takes)}."
            section.add("show", f"{where} has the unknown key {quote(name)}.", hint)
    before = entry.get("before")
    if before is not None and before not in tables:
        section.add("show", f"{where}: before is no table.", f"the tables are {', '.join(tables)}.")


def _entries_of(kind: Any) -> list[str] | None:
    """Return the keys that an entry of a kind may have; None if they are not known."""
    if not isinstance(kind, str) or kind not in SECTIONS:
        return None
    parameters = inspect.signature(SECTIONS[kind]).parameters.values()
    options = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    return list(dict.fromkeys(["table", "tables", "as", *options]))


def _combine(section: Section, levels: Mapping[str, Levels | None]) -> Mapping[str, Any]:
    """Read regions that are put together of paths, each the keys of a node."""
    regions: Mapping[str, Any] = section.take("combine", "a table", {})
    for region, paths in regions.items():
        if (
            not isinstance(paths, list)
            or not all(isinstance(path, list) and path for path in paths)
            or not paths
        ):
            fact = f"of {quote(region)} must be a list of paths."
            section.add("combine", fact, 'for example [["North"], ["South", "Harbour"]].')
            continue
        for path in paths:
            if None not in levels.values() and not any(_has(each, path) for each in levels.values() if each):
                fact = f"of {quote(region)} has the path {quote(path)}, which no hierarchy has."
                section.add("combine", fact, "write the keys from the coarsest level down.")
    return regions


def _has(levels: Levels, path: Sequence[Any]) -> bool:
    """Whether a hierarchy lists a node, or has levels that no file lists."""
    if levels.derived is not None or levels.private:
        return True
    if levels.places is None or len(path) > len(levels.names):
        return False
    first = levels.places[list(levels.names[: len(path)])].astype("str")
    return bool((first == list(map(str, path))).all(axis="columns").any())
