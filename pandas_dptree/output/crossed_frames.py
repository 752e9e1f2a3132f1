"""Released tables of crossed hierarchies in pandas: a row per cell of each margin."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, listed, quote
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import level_names
from pandas_dptree.hierarchy.margin_names import CROSS, level_column, margin_name, margin_of_call
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.crossed_columns import axes_of
from pandas_dptree.output.frames import indexed_by, key_column, stack, take_labels

__all__ = ["MOST_ROWS", "check_rows", "crossed_frame", "select_margin"]

MOST_ROWS: Final = 10**7
"""Rows of a frame, at most."""


def check_rows(domain: CrossedDomain) -> None:
    """Refuse, before anything is spent, a table with more rows than a frame should have."""
    tree = domain.tree
    rows = {level: tree.n_listed(level) for level in map(tree.level_of, tree.shown)}
    if sum(rows.values()) <= MOST_ROWS:
        return
    largest = max(rows, key=rows.__getitem__)
    fewer = (
        f"list the margins that you need, with `margins`: {quote(domain.level_names[largest])} alone has "
        f"{rows[largest]:,} rows; or "
        if len(rows) > 1
        else ""
    )
    raise ArgumentError(
        "by",
        f"would give a frame of {sum(rows.values()):,} rows, and {MOST_ROWS:,} are the most.",
        hint=f"{fewer}count the records into an array, and call array.dp.tree_counts, which returns an array "
        "for each margin.",
    )


def crossed_frame(
    domain: CrossedDomain,
    values: Mapping[Hashable, Sequence[npt.NDArray[Any] | None]],
    attrs: Mapping[str, Any],
) -> pd.DataFrame:
    """Make a table of one row per cell of the shown margins; its shape depends on the domain alone.

    It has a level column for each axis (ordered categorical), all keys (missing below the levels), and the
    values: for each column name, those of each margin of the lattice, one per cell or one for all.
    """
    tree = domain.tree
    shown = [tree.level_of(margin) for margin in tree.shown]
    rows = [tree.n_listed(level) for level in shown]
    columns: dict[Hashable, Any] = {}
    for place, (axis, own) in enumerate(domain.axes.items()):
        level = np.repeat(np.array([margin[place] for margin in tree.shown], dtype=np.int16), rows)
        columns[level_column(axis)] = pd.Categorical.from_codes(
            level, categories=pd.Index(level_names(own)), ordered=True
        )
    for place, own in enumerate(domain.axes.values()):
        for key, name in enumerate(own.by):
            labels = own.labels[key] if key < tree.axes[place].depth else _without(own.labels[key])
            columns[name] = key_column(take_labels(labels, _codes(domain, place, key, rows)))
    flags = [tree.listed(level) for level in shown]
    for name, margins in values.items():
        columns[name] = stack([np.asanyarray(margins[level]) for level in shown], flags)
    frame = pd.DataFrame(columns, copy=False)
    frame.attrs.update(attrs)
    return frame


def _without(labels: pd.Index) -> pd.Index:
    """Return no labels, of the same type: those below all margins are not released."""
    none = labels[:0]
    return none.remove_unused_categories() if isinstance(none, pd.CategoricalIndex) else none


def _codes(domain: CrossedDomain, place: int, key: int, rows: Sequence[int]) -> IntArray:
    """Return the code of one key of an axis at each row, -1 in margins above it."""
    tree, own = domain.tree, [*domain.axes.values()][place]
    axis = tree.axes[place]
    of_nodes = [
        own.path_codes(level)[key][axis.listed(level)] if level > key else np.array([-1])
        for level in range(axis.depth + 1)
    ]
    codes = np.empty(sum(rows), dtype=np.int64)
    for margin, size, end in zip(tree.shown, rows, accumulate(rows), strict=True):
        sizes = [each.n_listed(level) for each, level in zip(tree.axes, margin, strict=True)]
        cells = codes[end - size : end].reshape(math.prod(sizes[:place]), sizes[place], -1)
        cells[:] = of_nodes[margin[place]][:, None]
    return codes


def select_margin(released: pd.DataFrame, /, *levels: Any, **of_axes: Hashable) -> pd.DataFrame:
    """Select one margin of a crossed table, or of numbers derived from it, indexed as by ``groupby``.

    The table may have been filtered or read back from a file. The index has the keys of each axis from the
    coarsest down to its level.
    """
    axes = axes_of(released)
    if not axes:
        raise ArgumentError(
            "released",
            "has no margins: it is no table of crossed hierarchies.",
            hint='select a level by its name, with counts.dp.level("county").'
            if "level" in released
            else 'call it on the frame that tree_counts returned for several axes, as in {"place": ["state", '
            '"county"], "sex": "sex"}.',
        )
    margin = margin_of_call(axes, levels, of_axes)
    by = [key for keys, level in zip(axes.values(), margin, strict=True) for key in keys[:level]]
    if absent := [key for key in by if key not in released]:
        raise ColumnsError(
            "released",
            "lacks the columns of levels",
            columns=absent,
            hint="turn the index into columns with reset_index(), and keep the names of columns and levels.",
        )
    here = np.ones(len(released), dtype=bool)
    for (axis, keys), level in zip(axes.items(), margin, strict=True):
        here &= (released[level_column(axis)] == [ROOT, *keys][level]).to_numpy()
    if len(released) and not here.any():
        raise ArgumentError(
            "levels",
            f"is a margin without rows in this table: {quote(margin_name(axes, margin))}.",
            hint=f"the table has the margins {listed(_margins_in(released, axes))}.",
        )
    others = {key for keys in axes.values() for key in keys}.difference(by).intersection(released.columns)
    return indexed_by(released.loc[here].drop(columns=[*map(level_column, axes), *others]), by)


def _margins_in(released: pd.DataFrame, axes: Mapping[str, Sequence[Hashable]]) -> list[str]:
    """Return the names of the margins that have rows."""
    levels = released[[level_column(axis) for axis in axes]].drop_duplicates()
    names = (
        [str(level) for level in row if level != ROOT] for row in levels.itertuples(index=False, name=None)
    )
    return [f" {CROSS} ".join(each) or ROOT for each in names]
