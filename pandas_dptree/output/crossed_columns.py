"""Columns by which a released table of crossed hierarchies is recognised, also after files and filters.

Such a table has no column `level`, but one for each axis, named like it: ``place_level``. It says of each row
down to which key of the axis it goes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import pandas as pd

from pandas_dptree.errors import ArgumentError, listed
from pandas_dptree.hierarchy.margin_names import LEVEL_SUFFIX, example
from pandas_dptree.hierarchy.names import RESERVED_NAMES, ROOT

__all__ = ["axes_of", "refuse_crossed", "value_columns"]


def value_columns(released: pd.DataFrame) -> list[Hashable]:
    """List the columns that have an error: counts, sums or means."""
    columns = set(released.columns)
    return [name for name in released.columns if name == "count" or f"{name}_std_error" in columns]


def axes_of(released: pd.DataFrame) -> dict[str, list[Hashable]]:
    """List the axes of a crossed table, each with its keys from the coarsest down; empty for other tables.

    The categories of level columns list all keys. Without categories, as in a CSV file read by pandas, keys
    are the columns between the levels and the values, and those without a value belong to the axis before.
    """
    columns = released.columns
    if "level" in columns or not columns.is_unique:
        return {}
    ending = [name for name in columns if isinstance(name, str) and name.endswith(LEVEL_SUFFIX)]
    levels = {name: each for name in ending if (each := _listed(released[name])) is not None}
    if not levels:
        seen = {name: each for name in ending if (each := _seen(released[name], columns)) is not None}
        levels = _keys_between(released, _without_keys(seen))
    return {name.removesuffix(LEVEL_SUFFIX): keys for name, keys in _without_keys(levels).items()}


def _listed(level: pd.Series) -> list[Hashable] | None:
    """Return the keys of an axis as the categories of its levels list them."""
    if not isinstance(level.dtype, pd.CategoricalDtype) or ROOT not in level.cat.categories[:1]:
        return None
    return list(level.cat.categories[1:])


def _seen(level: pd.Series, columns: pd.Index) -> list[Hashable] | None:
    """Return the keys that occur as levels, if nothing else does."""
    values = list(level.unique())
    keys = [name for name in columns if name in values]
    return keys if set(values) <= {ROOT, *keys} else None


def _without_keys(levels: Mapping[str, list[Hashable]]) -> dict[str, list[Hashable]]:
    """Leave out a key whose name ends like that of a level column."""
    keys = {key for each in levels.values() for key in each}
    return {name: each for name, each in levels.items() if name not in keys}


def _keys_between(released: pd.DataFrame, levels: Mapping[str, list[Hashable]]) -> dict[str, list[Hashable]]:
    """Divide the columns between levels and values among the axes."""
    columns: list[Hashable] = list(released.columns)
    values = value_columns(released)
    if not levels or not values:
        return {}
    start = max(map(columns.index, levels)) + 1
    between = [name for name in columns[start : columns.index(values[0])] if name not in RESERVED_NAMES]
    owner = {key: name for name, keys in levels.items() for key in keys}
    found: dict[str, list[Hashable]] = {name: [] for name in levels}
    before = next(iter(levels))
    for place, key in enumerate(between):
        if key in owner:
            before = owner[key]
        after = next((owner[name] for name in between[place:] if name in owner), None)
        name = before if released[key].isna().all() else after
        if name is not None:
            found[name].append(key)
    return found


def refuse_crossed(released: pd.DataFrame) -> None:
    """Refuse a crossed table where one hierarchy is needed."""
    if axes := axes_of(released):
        raise ArgumentError(
            "released",
            f"is a table of crossed hierarchies, with the axes {listed(axes)}.",
            hint=f"select a margin, with the level of each axis: counts.dp.margin({example(axes)}).",
        )
