"""The kinds of sections of a page, by the name that `show` gives them in ``as``.

To add a kind, write a module beside this one with a function

    def name(page: Setting, tables: Sequence[str], *, option=default, ...) -> list[Section]

and enter it in `SECTIONS`. `page` has the released tables by name (`page.tables`), what each states of how it
was made (`page.provenances`), the fixed words (`page.texts`, all of them in `texts.py`), the names of levels,
columns and keys (`page.labels`) and the numbers of the language (`page.format`); `page.view(name)` reads a
table with levels. `tables` are the names of the tables that the section shows: one, or several for
``{"tables": [...]}``. Further entries of the mapping in `show` are passed as options by their names. The page
numbers the sections, sets their headings, and lists them at its top.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import pandas as pd

from pandas_dptree.errors import ArgumentError, did_you_mean, kind_of_object, listed, quote
from pandas_dptree.output.pages.changes import changes
from pandas_dptree.output.pages.cross import cross, is_crossed
from pandas_dptree.output.pages.distributions import distributions, is_distribution
from pandas_dptree.output.pages.heatmap import heatmap
from pandas_dptree.output.pages.icicle import fits_an_icicle, icicle
from pandas_dptree.output.pages.largest import combine, top
from pandas_dptree.output.pages.levels import levels
from pandas_dptree.output.pages.private_keys import private_keys
from pandas_dptree.output.pages.proportions import proportions
from pandas_dptree.output.pages.quantiles import is_quantiles, quantiles
from pandas_dptree.output.pages.setting import Section, Setting
from pandas_dptree.output.pages.views import shows_large_nodes_only

__all__ = ["SECTIONS", "default_kinds", "make_sections"]

SECTIONS: Final[dict[str, Callable[..., list[Section]]]] = {
    "levels": levels,
    "icicle": icicle,
    "cross": cross,
    "heatmap": heatmap,
    "proportions": proportions,
    "change": changes,
    "top": top,
    "combine": combine,
    "private_keys": private_keys,
    "distribution": distributions,
    "quantiles": quantiles,
}
"""Functions that make sections, by the kind that `show` names."""

_OWN_KINDS: Final[tuple[tuple[Callable[[object], bool], str], ...]] = (
    (is_distribution, "distribution"),
    (is_crossed, "cross"),
    (is_quantiles, "quantiles"),
    (shows_large_nodes_only, "private_keys"),
)
"""Tables that are shown in a way of their own."""


def default_kinds(table: Any) -> list[str]:
    """Return the kinds of sections that show a table unless its user chooses."""
    for fits, kind in _OWN_KINDS:
        if fits(table):
            return [kind]
    if isinstance(table, pd.DataFrame):
        return ["icicle", "levels"] if fits_an_icicle(table) else ["levels"]
    raise ArgumentError(
        "tables",
        f"has a table that a page cannot show: {kind_of_object(table)}.",
        hint="pass released tables.",
    )


def make_sections(page: Setting, item: Any, drawn: Collection[Any] = ()) -> list[Section]:
    """Make the sections of one mapping in `show`; tables in `drawn` have an icicle elsewhere."""
    options, names = _read(page, item)
    kinds = [options.pop("as")] if "as" in options else default_kinds(page.tables[names[0]])
    if (
        options or len(names) > 1 or (len(kinds) > 1 and names[0] in drawn)
    ):  # they are those of the last kind, the table itself
        kinds = kinds[-1:]
    return [section for kind in kinds for section in _section(page, kind, names, options)]


def _section(page: Setting, kind: Any, names: list[str], options: Mapping[str, Any]) -> list[Section]:
    if not isinstance(kind, str) or kind not in SECTIONS:
        raise ArgumentError(
            "show",
            f"names no kind of section: {quote(kind)}.",
            hint=f"{did_you_mean([kind], SECTIONS)}`as` is one of {', '.join(SECTIONS)}.",
        )
    function = SECTIONS[kind]
    takes = [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    ]
    for name in options:
        if name not in takes:
            raise ArgumentError(
                "show",
                f"has an unknown entry for a section as {quote(kind)}: {quote(name)}.",
                hint=did_you_mean([name], takes) + f"it takes table, tables, as, {', '.join(takes)}.",
            )
    return function(page, names, **options)


def _read(page: Setting, item: Any) -> tuple[dict[str, Any], list[str]]:
    """Split a mapping in `show` into its options and the names of its tables."""
    options = {**item} if isinstance(item, Mapping) else {}
    names = options.pop("tables", None) or [options.pop("table", None)]
    if (
        not isinstance(names, list | tuple)
        or "table" in options
        or not options.keys() <= {*map(str, options)}
    ):
        names = [None]
    for name in names:
        if not isinstance(name, str) or name not in page.tables:
            raise ArgumentError(
                "show",
                f"has an entry without a table of this page: {quote(item)}.",
                hint=f'for example {{"table": {next(iter(page.tables))!r}, "as": "levels"}}; '
                f"the tables are {listed(page.tables)}.",
            )
    return options, list(names)
