"""What may be an axis of crossed hierarchies: names of axes, of their keys, and of the columns they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pandas_dptree.errors import ArgumentError, ColumnsError, DomainError, kind_of_object, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.combine import derived_domain
from pandas_dptree.hierarchy.margin_names import CROSS, Keys, level_column
from pandas_dptree.hierarchy.names import RESERVED_NAMES, check_by
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["axis_of", "check_axes", "check_axis_names"]


def check_axis_names(axes: Mapping[Any, Any], *, argument: str = "domain") -> None:
    """Check that there is an axis, and that their names are texts that are not empty."""
    odd = [name for name in axes if not isinstance(name, str) or not name.strip()]
    hint = 'name each axis, as in {"place": ["state", "county"], "sex": "sex"}.'
    if not axes:
        raise ArgumentError(argument, "has no axes.", hint=hint)
    if odd:
        raise ColumnsError(argument, "has names of axes that are not texts", columns=odd, hint=hint)


def check_axes(keys: Keys, columns: Keys, *, argument: str = "domain") -> None:
    """Check that a released table can show the axes side by side, and that each reads columns of its own.

    `keys` and `columns` are the names of the keys of each axis, and of the columns that it reads.
    """
    check_axis_names(keys, argument=argument)
    names = [name for of_axis in keys.values() for name in of_axis]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ColumnsError(
            argument,
            "has keys on two axes",
            columns=dict.fromkeys(twice),
            hint="each key belongs to one axis; keys of derived levels can be named otherwise.",
        )
    texts = [str(name) for name in names]
    unclear = [name for name in names if CROSS in str(name) or texts.count(str(name)) > 1]
    if unclear:
        raise ColumnsError(
            argument,
            "has keys whose names are not clear in the names of margins",
            columns=unclear,
            hint=f"rename the columns, to distinct texts without {CROSS!r}.",
        )
    clashing = [level for level in map(level_column, keys) if level in (*names, *RESERVED_NAMES)]
    if clashing:
        raise ColumnsError(
            argument,
            "has axes whose column in the released table is also that of a key, or of all tables",
            columns=clashing,
            hint="rename these axes.",
        )
    read = [column for of_axis in columns.values() for column in of_axis]
    shared = [column for place, column in enumerate(read) if column in read[:place]]
    if shared:
        raise ColumnsError(
            argument,
            "has axes that read the same columns",
            columns=dict.fromkeys(shared),
            hint="most of their combinations cannot occur: put all levels of a column into one axis, as in "
            'calendar("date", ["quarter", "month"], ...).',
        )


def axis_of(name: str, given: Any) -> Domain:
    """Return the domain of an axis, from what the caller of `cross` gives."""
    if isinstance(given, Domain):
        return given
    if isinstance(given, DerivedLevels):
        return derived_domain([given])
    if not isinstance(given, Tree) or given.n_roots != 1 or not given.depth:
        raise DomainError(
            f"must have a Domain, a Tree or derived levels for the axis {quote(name)}, not "
            f"{kind_of_object(given)}.",
            hint='make domains with dpt.Domain.from_frame(places, by=["state", "county"]).'
            if not isinstance(given, Tree)
            else "a tree needs one root, and levels below it.",
        )
    names = [f"{name}_{level}" for level in range(1, given.depth + 1)] if given.depth > 1 else [name]
    return replace(Domain.from_tree(given), by=check_by(names, argument="domain"))
