"""The hierarchies of a programme, nested and cut off as its tables ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final

import pandas as pd

from pandas_dptree.errors import ArgumentError, did_you_mean, quote
from pandas_dptree.hierarchy.crossed_domain import cross
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.calendar import calendar
from pandas_dptree.hierarchy.levels.combine import derived_domain
from pandas_dptree.hierarchy.levels.cut import cut
from pandas_dptree.hierarchy.levels.mapping import mapping
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree, prefixes
from pandas_dptree.hierarchy.levels.quadtree import quadtree
from pandas_dptree.ingest.files.public_tables import read_places, read_table
from pandas_dptree.programmes.placeholders import Placeholder
from pandas_dptree.programmes.problems import Section
from pandas_dptree.programmes.programme import Hierarchy

__all__ = ["Levels", "crossed", "levels_of", "nested"]

_DERIVED: Final[Mapping[str, Callable[..., Any]]] = {
    "calendar": calendar,
    "cut": cut,
    "mapping": mapping,
    "prefixes": prefixes,
    "quadtree": quadtree,
}
_FORMS: Final = ("by", *_DERIVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """A hierarchy that is read, before it is cut off at a level or nested with others.

    Attributes
    ----------
    names : tuple of str
        Of its levels, from the coarsest, the private ones last.
    aliases : mapping
        What a programme may write instead, such as ``hour`` for ``time_hour``.
    places : frame or None
        The public keys of plain levels, and perhaps a column of structural zeros, `zeros`.
    derived : function or None
        Makes the derived levels down to the n-th.
    """

    name: str
    names: tuple[str, ...]
    aliases: Mapping[str, str]
    places: pd.DataFrame | None
    zeros: str | None
    private: tuple[str, ...]
    derived: Callable[[int], Any] | None
    labels: Mapping[str, Mapping[Any, str]]


def levels_of(name: str, section: Section, folder: Path, placeholder: Placeholder) -> Levels | None:
    """Read a hierarchy, with its public files; note what is wrong, and then return None."""
    before = len(section.problems.found)
    forms = [form for form in _FORMS if form in section.entries]
    section.rest(_FORMS)
    if len(forms) != 1:
        example = 'for example by = ["region", "district"].'
        fact = f"has both {forms[0]} and {forms[1]}." if forms else f"lacks one of {', '.join(_FORMS)}."
        section.add(None, fact, "a table nests hierarchies by a list." if forms else example)
        return None
    found = (
        _plain(name, section, folder)
        if forms[0] == "by"
        else _derived(name, forms[0], section, folder, placeholder)
    )
    section.finish()
    return found if len(section.problems.found) == before else None


def _plain(name: str, section: Section, folder: Path) -> Levels | None:
    """Read a hierarchy of columns."""
    given = section.take("by", "a text or a list of texts", [])
    by = [given] if isinstance(given, str) else given
    private = section.take("private_keys", "a list of texts", [])
    zeros = section.take("structural_zeros", "a text")
    domain = section.take("domain", "a text, a list or a table")
    labels = _labels(section, by, folder)
    if not by or len(set(by)) < len(by):
        section.add("by", "must name columns, each once.", 'for example by = ["region", "district"].')
        return None
    if private and by[len(by) - len(private) :] != private:
        section.add("private_keys", "must be the last of by, in the same order.", f"for example {by[-1:]}.")
        return None
    public = by[: len(by) - len(private)]
    places = None
    if not public and domain is not None:
        section.add("domain", "cannot be given if all keys are private.", "leave it out.")
    elif public and domain is None:
        fact = f"lacks domain, the public keys of {', '.join(public)}."
        section.add(None, fact, "name a .csv or .parquet file with a row per leaf, or private_keys.")
    elif public:
        with section.problems.catching(section.path, {each: each for each in ("domain", "structural_zeros")}):
            places = _places(domain, public, zeros, folder)
            Domain.from_frame(places, by=public, structural_zeros=zeros)
    return Levels(
        name=name, names=tuple(by), aliases={}, places=places, zeros=zeros, private=tuple(private),
        derived=None, labels=labels,
    )  # fmt: skip


def _places(domain: Any, by: Sequence[str], zeros: str | None, folder: Path) -> pd.DataFrame:
    """Return the public keys that a programme lists, or names a file of."""
    if isinstance(domain, str):
        if domain in ("observed", "categories"):
            raise ArgumentError(
                "domain",
                f"cannot be {quote(domain)}: a programme is checked before any record is read.",
                hint="name a .csv or .parquet file of the public keys.",
            )
        return read_places(folder / domain, by, zeros)
    rows = domain if isinstance(domain, list) else None
    rows = rows and [row if isinstance(row, list) else [row] for row in rows]
    if (
        not rows
        or {len(row) for row in rows} != {len(by)}
        or not all(isinstance(k, str | int) for r in rows for k in r)
    ):
        raise ArgumentError(
            "domain",
            f"must be a file, or list the keys of {', '.join(by)}.",
            hint='for example domain = "places.csv", or domain = ["north", "south"] for a single level.',
        )
    return pd.DataFrame(rows, columns=list(by))


def _labels(section: Section, names: Sequence[str], folder: Path) -> dict[str, Mapping[Any, str]]:
    """Read the texts that are shown for keys: a file with two columns, or a table, for each level."""
    found: dict[str, Mapping[Any, str]] = {}
    for level, given in section.take("labels", "a table", {}).items():
        path = (*section.path, "labels", level)
        if level not in names:
            meant = did_you_mean([level], names)
            section.problems.add(path, "is no level.", f"{meant}its levels are {', '.join(names)}.")
        elif isinstance(given, dict) and all(isinstance(text, str) for text in given.values()):
            found[level] = given
        elif isinstance(given, str):
            with section.problems.catching(path):
                table = read_table(folder / given, None, level)
                if table.shape[1] != 2:
                    raise ArgumentError(level, "must have two columns.", hint="the key, and what is shown.")
                found[level] = dict(zip(table.iloc[:, 0], table.iloc[:, 1].astype(str), strict=True))
        else:
            section.problems.add(path, "must be a file or a table.", 'for example { CA = "California" }.')
    return found


def _derived(name: str, form: str, section: Section, folder: Path, placeholder: Placeholder) -> Levels | None:
    """Read derived levels: a calendar, intervals, categories of a table, prefixes or squares of a map."""
    given = dict(section.take(form, "a table", {}))
    path = (*section.path, form)
    if form == "calendar" and "levels" in given:
        given["units"] = given.pop("levels")
    if form == "calendar" and "during" in section.entries:
        period = placeholder.period_in(section.take("during", "a text"))
        if period is None:
            section.add(
                "during", f"must be {placeholder.example}.", "or leave it out, and give start and end."
            )
            return None
        given |= {"start": period.start, "end": period.end - timedelta(1)}
    elif form == "calendar":
        section.rest(["during"])
    if form == "mapping":
        table = given.get("table")
        if not isinstance(table, str):
            section.problems.add(path, "lacks table, a file.", 'for example table = "products.csv".')
            return None
        with section.problems.catching((*path, "table")):
            given["table"] = read_table(folder / table, given.get("by"), "table")
        if isinstance(given["table"], str):
            return None
    make = _DERIVED[form]
    with section.problems.catching(path, {key: key for key in given} | {"units": "levels"}):
        levels = make(**given)
        names = _named(levels)
        column = f"{given.get('column')}_"
        aliases = {name.removeprefix(column): name for name in names if name.startswith(column)}
        labels = _labels(section, names, folder)
        return Levels(
            name=name, names=names, aliases=aliases, places=None, zeros=None, private=(),
            derived=partial(_down_to, form, given, levels), labels=labels,
        )  # fmt: skip
    return None


def _named(levels: Any) -> tuple[str, ...]:
    return tuple(map(str, levels.names))


def _down_to(form: str, given: Mapping[str, Any], levels: Any, n: int) -> Any:
    """Make the first n of derived levels."""
    if n == len(_named(levels)):
        return levels
    if form == "quadtree":
        return quadtree(**{**given, "depth": n})
    for key in ("units", "bits", "chars", "levels"):
        if key in given:
            entries = given[key]
            first = dict(list(entries.items())[:n]) if isinstance(entries, dict) else entries[:n]
            return _DERIVED[form](**{**given, key: first})
    raise ArgumentError("down_to", f"cannot cut off a {form}.", hint="name its last level, or leave it out.")


def nested(parts: Sequence[Levels], n: int, *, implicit: bool) -> Hierarchy:
    """Nest hierarchies, and cut them off after n levels. A single one of prefixes may be `implicit`."""
    by: list[Any] = []
    frames: list[pd.DataFrame] = []
    private: tuple[str, ...] = ()
    zeros: list[str] = []
    for part in parts:
        take = min(n, len(part.names))
        n -= take
        if take == 0:
            break
        if part.derived is not None:
            by.append(part.derived(take))
            continue
        names = part.names[:take]
        private = tuple(name for name in names if name in part.private)
        public = [name for name in names if name not in private]
        by += names
        if part.places is not None and public:
            frames.append(_cut_off(part.places, public, part.zeros))
            zeros += [part.zeros] if part.zeros else []
    name = "_".join(part.name for part in parts)
    labels = {level: shown for part in parts for level, shown in part.labels.items()}
    if implicit and len(by) == 1 and isinstance(by[0], PrefixTree):
        return Hierarchy(name=name, by=by[0], domain=by[0], private_keys=(), labels=labels)
    if len(frames) > 1 and zeros:
        raise ArgumentError("by", "nests two hierarchies with structural zeros.", hint="name one domain.")
    places: Any = reduce(lambda left, right: left.merge(right, how="cross"), frames) if frames else None
    levels = [level for level in by if level not in private]
    if zeros:
        plain = [level for level in levels if isinstance(level, str)]
        places = Domain.from_frame(places, by=plain, structural_zeros=zeros[0])
    domain = derived_domain(levels, places) if levels else None
    return Hierarchy(name=name, by=by, domain=domain, private_keys=private, labels=labels)


def crossed(axes: Mapping[str, Sequence[Levels]]) -> Hierarchy:
    """Cross hierarchies, each of which may nest several."""
    parts = {
        axis: nested(levels, sum(len(each.names) for each in levels), implicit=False)
        for axis, levels in axes.items()
    }
    private = [axis for axis, part in parts.items() if part.private_keys]
    if private:
        raise ArgumentError(
            "by",
            f"crosses private keys, on {', '.join(private)}: cells are combinations of public keys.",
            hint="nest the hierarchies in a list, the one with private keys last.",
        )
    return Hierarchy(
        name="_".join(axes),
        by={axis: part.by for axis, part in parts.items()},
        domain=cross({axis: part.domain for axis, part in parts.items()}),
        private_keys=(),
        labels={level: shown for part in parts.values() for level, shown in part.labels.items()},
        aliases={
            alias: full for levels in axes.values() for each in levels for alias, full in each.aliases.items()
        },
    )


def _cut_off(places: pd.DataFrame, by: list[str], zeros: str | None) -> pd.DataFrame:
    """Return the keys of the first levels; a node is a structural zero if all below it are."""
    if zeros is None:
        return places[by].drop_duplicates()
    return places.groupby(by, dropna=False, sort=False)[zeros].all().reset_index()
