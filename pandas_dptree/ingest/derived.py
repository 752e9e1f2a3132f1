"""Records → where they lie in levels made of their columns. Secret: nothing here may leave the package.

Each value is read by itself, and what cannot be read lies nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ColumnsError, told
from pandas_dptree.hierarchy.columns import ANY, exact, kind_of, may_hold_numbers
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import Derived, Lookup
from pandas_dptree.hierarchy.levels.calendar import MISSING, Calendar
from pandas_dptree.hierarchy.levels.cut import Cut
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.levels.quadtree import Quadtree
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes, located
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.prefix_keys import as_text, check_prefixed, read_keys

__all__ = ["check_types", "codes_of", "leaves_of", "seconds"]

_ALL_MISSING = np.dtype(np.float64)
"""The type that pandas gives to a column without values, so that it is compared with labels of any kind."""

_EPOCH = datetime(1970, 1, 1)

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def leaves_of(levels: Derived, column: Callable[[Hashable], pd.Series]) -> IntArray:
    """Find the leaf of each record in the levels' own domain.

    Parameters
    ----------
    levels : Calendar, Cut, Lookup, Quadtree, BitPrefixes or CharPrefixes
    column : callable
        Gives a column of the records by its name.

    Returns
    -------
    numpy.ndarray of int64, shape (n_records,)
        -1 for records that lie nowhere.
    """
    read = [column(name) for name in levels.columns]
    if isinstance(levels, Calendar):
        return levels.find(seconds(read[0], zoned=levels.timezone is not None, format=levels.format))
    if isinstance(levels, Lookup):
        return np.append(levels.leaf_of, [-1, -1])[located(read[0], levels.domain.forms[-1])]
    if isinstance(levels, PrefixTree):
        keys, fits = read_keys(read[0], levels)
        return np.where(fits, levels.find(keys), -1)
    if isinstance(levels, Cut):
        return levels.bins.find(numbers(read[0]))
    return levels.find(*map(numbers, read))


def codes_of(levels: Derived, leaf: IntArray) -> dict[Hashable, IntArray]:
    """Give the keys of leaves in the levels' own domain.

    Parameters
    ----------
    levels : Calendar, Cut, Lookup, Quadtree, BitPrefixes or CharPrefixes
    leaf : numpy.ndarray of int64
        As `leaves_of` gives them.

    Returns
    -------
    dict
        By the names of the keys, their codes, of the shape of `leaf`; -2 where that is -1.
    """
    paths = levels.domain.path_codes(len(levels.names))
    return {name: np.append(code, -2)[leaf] for name, code in zip(levels.names, paths, strict=True)}


def seconds(column: pd.Series, *, zoned: bool, format: str | None = None) -> IntArray:
    """Read the values of a column as times.

    Parameters
    ----------
    column : pandas.Series
        Of any type.
    zoned : bool
        Whether times with a time zone are wanted, or times without.
    format : str, optional
        How text is written; by default as in ISO 8601.

    Returns
    -------
    numpy.ndarray of int64, shape (len(column),)
        Since 1970 (in UTC if they have a time zone), rounded down; `MISSING` where there is no such time.
    """
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = exact(column)
        dtype: Any = column.dtype
        if isinstance(dtype, pd.DatetimeTZDtype) or dtype.kind == "M":
            if isinstance(dtype, pd.DatetimeTZDtype) != zoned:
                return np.full(len(column), MISSING)
            unit, _ = np.datetime_data(dtype.base)
            whole = column.array.asi8 // _PER_SECOND[unit]
            return np.where(column.isna(), MISSING, whole)
    codes, forms = canonical_codes(column)
    each = [
        _second_told(form, zoned, format) if isinstance(form, str) else _second(form, zoned) for form in forms
    ]
    return np.array([*each, MISSING], dtype=np.int64)[codes]


def _second(form: Hashable, zoned: bool) -> int:
    """Read the canonical form of a value."""
    if not isinstance(form, tuple) or form[0] != ("zoned time" if zoned else "time"):
        return MISSING
    second: int = form[1] // 10**9
    return second if abs(second) < 2**62 else MISSING


def _second_told(text: str, zoned: bool, format: str | None) -> int:
    """Read a text with the standard library, for which there is no column around it."""
    try:
        time = datetime.fromisoformat(text) if format is None else datetime.strptime(text, format)
    except (ValueError, OverflowError):
        return MISSING
    if (time.tzinfo is not None) != zoned:
        return MISSING
    since = time.replace(tzinfo=None) - _EPOCH
    return (since - (time.utcoffset() or timedelta())) // timedelta(seconds=1)


def check_types(domain: Domain, types: Mapping[Hashable, Any], *, argument: str) -> None:
    """Refuse columns whose type can never equal the domain's labels, or from which no level can be made.

    Parameters
    ----------
    domain : Domain
    types : mapping
        The pandas or narwhals data types of its `Domain.sources`, by name.
    argument : str
        Where the columns stand.

    Raises
    ------
    ColumnsError
    """
    place = {name: at for at, name in enumerate(domain.by)}
    keys = list(domain.plain)
    for levels in domain.derived:
        if isinstance(levels, Lookup):
            keys += levels.columns
        else:
            for name in levels.columns:
                _check_made(levels, name, types[name], argument)
    kinds = {name: ANY if types[name] == _ALL_MISSING else kind_of(types[name]) for name in keys}
    unlike = {
        name: (kind, public)
        for name, kind in kinds.items()
        if kind != (public := kind_of(domain.labels[place[name]].dtype)) and ANY not in (kind, public)
    }
    if unlike:
        codes = [name for name, pair in unlike.items() if {*pair} == {"numbers", "text"}]
        dates = [name for name, pair in unlike.items() if {*pair} == {"times", "text"}]
        flags = [name for name, pair in unlike.items() if {*pair} == {"numbers", "booleans"}]
        ways = ["booleans to numbers with astype(int)"] if flags else []
        ways += ["text to dates with pd.to_datetime"] if dates else []
        ways += [as_text(codes)] if len(flags) + len(dates) < len(unlike) else []
        pairs = "; ".join(
            f"{told(name)} holds {kind}, not {public}" for name, (kind, public) in unlike.items()
        )
        raise ColumnsError(
            argument,
            f"has keys of another type than the domain ({pairs})",
            columns=unlike,
            hint=f"convert one of the two, {'; '.join(ways)}.",
        )


def _check_made(
    levels: Calendar | Cut | Quadtree | PrefixTree, name: Hashable, dtype: Any, argument: str
) -> None:
    """Refuse a column whose type tells that no level can be made of any of its values."""
    if isinstance(levels, PrefixTree):
        check_prefixed(levels, dtype, argument=argument)
        return
    if dtype == _ALL_MISSING:
        return
    if not isinstance(levels, Calendar):
        if not may_hold_numbers(dtype):
            raise ColumnsError(
                argument,
                "has no numbers to be cut in the columns",
                columns=[name],
                hint="convert them to numbers; `calendar` makes levels of dates.",
            )
        return
    kind, zoned = kind_of(dtype), levels.timezone is not None
    if kind in (ANY, "text", "times with a time zone" if zoned else "times"):
        return
    if kind == "times with a time zone":
        hint = 'tell `calendar` whose clocks count, for example timezone="Europe/Berlin".'
    elif kind == "times":
        hint = "leave `timezone` out, or give the times a zone with .dt.tz_localize()."
    else:
        hint = "convert them with pd.to_datetime."
    wanted = "times with a time zone" if zoned else "times"
    raise ColumnsError(argument, f"holds {kind}, not {wanted}, in the columns", columns=[name], hint=hint)
