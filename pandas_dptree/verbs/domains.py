"""The public domain of a release of records: from the arguments of a call, or from a released table."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import (
    ArgumentError,
    ColumnsError,
    DomainError,
    did_you_mean,
    kind_of_object,
    listed,
    quote,
)
from pandas_dptree.hierarchy.axes import check_axes, check_axis_names
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.dataframe_libraries import is_supported
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import By, derived_domain, named
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.private_keys import PrivateNames, split_by
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.frames import check_columns
from pandas_dptree.ingest.observed_keys import key_frame
from pandas_dptree.output.crossed_columns import axes_of
from pandas_dptree.output.crossed_tables import CrossedTable
from pandas_dptree.output.released import Released

__all__ = ["CrossedBy", "domain_of", "hierarchy_of", "keys_of", "released_domain"]

CrossedBy = Mapping[str, By]
"""The levels of each axis of crossed hierarchies, from the coarsest to the finest."""

_WORDS = ("observed", "categories")
"""What may stand for a list of public keys."""


def domain_of(frame: Any, by: By, domain: Any, private: PrivateNames = ()) -> Domain:
    """Make the public domain of a release of records, or raise ArgumentError.

    `by` and `domain` are those of `tree_counts`. The keys in `frame` are read only for ``"observed"``, and
    its types only for ``"categories"``.
    """
    if isinstance(by, Mapping):
        raise ArgumentError(
            "by",
            "crosses several hierarchies, and this needs one.",
            hint="nest the keys in a list, from coarse to fine. Records can be counted, and their values "
            "added up and averaged, over crossed hierarchies.",
        )
    names, derived = named(by)
    if isinstance(domain, Domain) and domain.by == names:
        if [levels.definition for levels in domain.derived] != [levels.definition for levels in derived]:
            raise ArgumentError(
                "domain",
                "has different derived levels than `by`.",
                hint="pass only the public keys of the plain columns.",
            )
        return domain
    plain = [name for name in names if not any(name in levels.names for levels in derived)]
    if plain and isinstance(domain, str) and domain == "observed":
        domain = Domain.observed(key_frame(frame, plain), by=plain)
    elif plain and isinstance(domain, str) and domain == "categories":
        check_columns(frame, plain)
        if not is_supported(frame):
            raise ArgumentError(
                "domain",
                'is "categories", which only frames of pandas and polars and pyarrow tables have.',
                hint="pass the public keys as a frame.",
            )
        domain = Domain.from_categories(frame, by=plain)
    elif plain and (domain is None or isinstance(domain, str)):
        above = f", and a domain of {quote(plain[:-1], of=names)}" if len(plain) > 1 else ""
        raise ArgumentError(
            "domain",
            f"must be given for the keys {quote(list(plain))}"
            f"{'; derived levels define their own keys' * bool(derived)}: "
            "which keys exist is information about the records."
            if domain is None
            else f"is unknown: {quote(domain)}.",
            hint="if you have a list of the keys that was not made from the records, pass it as a frame: one "
            'row per leaf. If everybody may know which keys the records have, state that with "observed" (or '
            '"categories", for the categories of categorical keys). If nobody can list the keys, pass '
            f"private_keys={quote([*plain[-1:], *private], of=names)} and a delta{above}: only keys "
            "that many units share are released.",
        )
    return derived_domain(by, domain)


def keys_of(frame: Any, by: By | CrossedBy, domain: Any) -> Domain | CrossedDomain:
    """Make the public domain of a hierarchy, or of several that are crossed."""
    return crossed_domain_of(frame, by, domain) if isinstance(by, Mapping) else domain_of(frame, by, domain)


def hierarchy_of(
    frame: Any, by: By | CrossedBy | PrefixTree, domain: Any, private_keys: Sequence[Hashable] | None
) -> tuple[Domain | CrossedDomain | PrefixTree | None, PrivateNames | None]:
    """Return what can be listed of a hierarchy of records, or all prefixes, and the names of private keys.

    The arguments are those of `tree_counts`. None stands for all keys or for none being private.
    """
    if isinstance(by, Mapping):
        if private_keys is not None:
            raise ArgumentError(
                "private_keys",
                "cannot be given with crossed hierarchies: their cells are combinations of public keys.",
                hint="nest the keys in a list, `by=[...]`, with the private ones last.",
            )
        return crossed_domain_of(frame, by, domain), None
    if isinstance(by, PrefixTree):
        for name, given in (("domain", domain), ("private_keys", private_keys)):
            if given is not None:
                raise ArgumentError(
                    name,
                    "cannot be given with a tree of all prefixes: its nodes need no list.",
                    hint="leave it out; or put the prefixes into a list, before any private keys.",
                )
        return by, None
    if private_keys is None:
        return domain_of(frame, by, domain), None
    levels, names = split_by(by, private_keys)
    if levels:
        return domain_of(frame, levels, domain, names), names
    if domain is not None:
        raise DomainError(
            "cannot be given if all keys are private.",
            hint="leave it out, or leave the keys that it lists out of `private_keys`.",
        )
    return None, names


def crossed_domain_of(frame: Any, by: CrossedBy, domain: Any) -> CrossedDomain:
    """Make the public domain of crossed hierarchies, or raise ArgumentError: see `domain_of`.

    `domain` maps axes to what `domain_of` takes, or is "observed" or "categories" for all of them, or has the
    same axes. Axes of derived levels alone need none.
    """
    plain = _plain_keys(by)
    if isinstance(domain, CrossedDomain):
        _check_same_axes(frame, by, domain)
        return domain
    given = _of_axes(plain, domain)
    axes = {}
    for axis, levels in by.items():
        with _naming(axis):
            axes[axis] = domain_of(frame, levels, given.get(axis))
    return CrossedDomain(axes)


def _plain_keys(by: CrossedBy) -> dict[str, list[Hashable]]:
    """Check the axes of `by`, and return the keys of each that are columns of the records."""
    check_axis_names(by, argument="by")
    keys, columns, plain = {}, {}, {}
    for axis, levels in by.items():
        with _naming(axis):
            keys[axis], derived = named(levels)
        plain[axis] = [name for name in keys[axis] if not any(name in each.names for each in derived)]
        columns[axis] = [*plain[axis], *(column for each in derived for column in each.columns)]
    check_axes(keys, columns, argument="by")
    return plain


def _check_same_axes(frame: Any, by: CrossedBy, domain: CrossedDomain) -> None:
    """Check that a crossed domain has the axes of `by`, each with the same keys."""
    if [*domain.axes] != [*by]:
        raise DomainError(
            f"has the axes {listed(domain.axes)}, not {listed(by)}.",
            hint="name the same axes in the same order.",
        )
    for axis, own in domain.axes.items():
        with _naming(axis):
            if domain_of(frame, by[axis], own) is not own:
                raise DomainError(
                    f"has the keys {listed(own.by)}, without the derived levels of `by`.",
                    hint="cross the domain that dpt.derived_domain makes of both.",
                )


def _of_axes(plain: Mapping[str, Sequence[Hashable]], domain: Any) -> Mapping[str, Any]:
    """Return what `domain` says of each axis; `plain` are the keys that are columns."""
    needed = [axis for axis, names in plain.items() if names]
    example = "domain={" + ", ".join(f"{quote(axis)}: ..." for axis in (needed or [*plain])[:2]) + "}"
    given: Any = dict.fromkeys(needed, domain) if domain is None or isinstance(domain, str) else domain
    if not needed and not isinstance(domain, Mapping | None):
        raise DomainError(
            "cannot be given if all levels are derived: they define their own domains.", hint="leave it out."
        )
    if not isinstance(given, Mapping):
        raise DomainError(
            f"must map the axes {listed(needed)} to their public keys, not be {kind_of_object(domain)}.",
            hint=f"for example {example}.",
        )
    unknown = [axis for axis in given if axis not in plain]
    if unknown:
        raise ColumnsError(
            "domain",
            "has axes that `by` does not have",
            columns=unknown,
            hint=f"{did_you_mean(unknown, plain)}the axes are {listed(plain)}.",
        )
    missing = [axis for axis in needed if given.get(axis) is None]
    words = [keys for keys in given.values() if isinstance(keys, str) and keys not in _WORDS]
    if missing or words:
        raise DomainError(
            f"is unknown: {quote(words[0])}."
            if words
            else f"must be given for the axes {listed(missing)}: which keys exist is information about the "
            "records.",
            hint=f"if you have lists of the keys that were not made from the records, pass {example}. If "
            'everybody may know which keys the records have, state that with "observed" (or "categories", '
            "for the categories of categorical keys), for one axis or for all.",
        )
    return given


@contextmanager
def _naming(axis: str) -> Iterator[None]:
    """Name the axis in the message of an error about its keys."""
    try:
        yield
    except ArgumentError as error:
        error.args = (f"Axis {quote(axis)}: {error.args[0]}",)
        raise


def released_domain(released: pd.DataFrame) -> Domain | CrossedDomain:
    """Return the keys of a released table as a public domain: see `DataFrameAccessor.domain`."""
    table = CrossedTable.of(released) if axes_of(released) else Released.of(released)
    if all(table.shown(column).error is None for column in table.columns):
        raise ArgumentError(  # it could be exact counts in the same form
            "released",
            "is not a released table: it lacks the errors of its values.",
            hint="keep the column `std_error` or `error_bound`; pass keys that are public for another reason "
            "to dpt.Domain.from_frame(places, by=[...]).",
        )
    if isinstance(table, Released):
        return _keys_shown(table)
    axes = {name: axis for name, axis in table.axes.items() if axis.depth.any()}
    return CrossedDomain({name: _keys_shown(axis) for name, axis in (axes or table.axes).items()})


def _keys_shown(table: Released) -> Domain:
    """Return the keys of a table as a domain."""
    lengths = _path_lengths(table)
    if not lengths.any():
        raise DomainError(
            "would have no leaves: the table shows no key.",
            hint="keep the rows below the total; if there are none, no node was large enough to be shown: "
            "use a larger epsilon, or fewer levels.",
        )
    leaves = _ends(table, lengths)
    keys = table.keys[: lengths.max()]
    columns = [
        _take(table.table[key], np.where(lengths[leaves] > place, leaves, -1))
        for place, key in enumerate(keys)
    ]
    names = pd.Index(keys, dtype=object, tupleize_cols=False)  # a key may be named by a tuple
    places = pd.DataFrame(dict(enumerate(columns))).set_axis(names, axis="columns")
    return replace(Domain.from_frame(places, by=keys), source="released")


def _path_lengths(table: Released) -> IntArray:
    """Return the number of keys on the path of each row; that of a remainder is the path of its parent."""
    frame, lengths = table.table, table.depth.copy()
    remainder = np.zeros(len(frame), dtype=bool)
    if "other" in frame and "other" not in table.keys and pd.api.types.is_bool_dtype(frame["other"]):
        remainder = frame["other"].to_numpy(dtype=bool, na_value=False)
    for level, key in enumerate(table.keys, start=1):
        missing = frame[key].isna().to_numpy()
        if (missing & (table.depth > level)).any():
            raise ArgumentError(
                "released",
                f"has rows that lack a key above their level, in the column {quote(key)}.",
                hint="pass the table as it was released; rows may be left out, keys may not.",
            )
        lengths[(table.depth == level) & (missing | remainder)] -= 1
    return lengths


def _ends(table: Released, lengths: IntArray) -> IntArray:
    """Find a row for each path that no other path continues; `lengths` are those of the rows' paths."""
    found = []
    for length in range(1, lengths.max() + 1):
        group = table.groups[:, length - 1]
        rows = np.flatnonzero(lengths == length)
        rows = rows[~np.isin(group[rows], group[lengths > length])]
        found.append(rows[np.unique(group[rows], return_index=True)[1]])
    return np.concatenate(found)


def _take(column: pd.Series, rows: IntArray) -> pd.Series:
    """Take values by position, missing where it is -1; integers and booleans can be missing too."""
    dtype: Any = {"i": "Int64", "u": "UInt64", "b": "boolean"}.get(column.dtype.kind, column.dtype)
    taken = column.astype(dtype).array.take(rows, allow_fill=True)
    return pd.Series(taken, dtype=taken.dtype)
