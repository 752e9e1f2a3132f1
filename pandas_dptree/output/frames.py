"""Released tables in pandas."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, is_name, listed, quote
from pandas_dptree.hierarchy.domain import Domain, level_names
from pandas_dptree.hierarchy.names import RESERVED_NAMES, ROOT
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.crossed_columns import refuse_crossed, value_columns

__all__ = [
    "COMPANIONS", "check_names", "check_not_derived", "indexed_by", "key_column", "layout_of", "parts_of",
    "prefix_of", "release_frame", "select_level", "stack", "take_labels",
]  # fmt: skip

COMPANIONS = (
    "std_error", "lower", "upper", "measurement", "noise_scale", "excess_measurement", "excess_noise_scale",
    "linear",
)  # fmt: skip
"""Suffixes of the columns that a table may have for each quantity."""


def prefix_of(column: Hashable | None) -> str:
    """Return the prefix of the names of the columns about a column's sum or mean."""
    return "" if column is None else f"{column}_"


def check_names(by: Sequence[Hashable], columns: Sequence[Hashable], *, argument: str) -> None:
    """Check that each column of a table of sums or means can have a name of its own.

    Neither the columns, from `argument`, nor their companions, such as ``cost_std_error``, may have the name
    of a key or of another column.
    """
    named = {column: [column, *(f"{prefix_of(column)}{what}" for what in COMPANIONS)] for column in columns}
    taken = Counter([*RESERVED_NAMES, *by, *chain.from_iterable(named.values())])
    clashing = [column for column, names in named.items() if any(taken[name] > 1 for name in names)]
    if clashing:
        raise ColumnsError(
            argument,
            "would give two columns of the released table the same name",
            columns=clashing,
            hint=f"rename them; for each column, the table uses its name, and its name followed by "
            f"{', '.join(f'_{what}' for what in COMPANIONS)}.",
        )


def release_frame(
    domain: Domain,
    values: Mapping[Hashable, Sequence[npt.NDArray[Any]]],
    attrs: Mapping[str, Any],
) -> pd.DataFrame:
    """Make a table of one row per node, from the root to the leaves; its shape depends on the domain alone.

    It has ``level`` (ordered categorical), one column per key (missing below its depth), and the values: for
    each column name, those of each level, one per node or one for all. Masked integers become ``Int64``.
    """
    listed = [domain.tree.listed(level) for level in range(domain.tree.depth + 1)]
    level = np.repeat(np.arange(len(listed), dtype=np.int16), [np.count_nonzero(shown) for shown in listed])
    columns: dict[Hashable, Any] = {
        "level": pd.Categorical.from_codes(level, categories=pd.Index(level_names(domain)), ordered=True)
    }
    for key, name in enumerate(domain.by):
        columns[name] = key_column(take_labels(domain.labels[key], _codes(domain, key, listed)))
    for name, levels in values.items():
        columns[name] = stack(levels, listed)
    frame = pd.DataFrame(columns, copy=False)
    frame.attrs.update(attrs)
    return frame


def _codes(domain: Domain, key: int, listed: Sequence[npt.NDArray[np.bool_]]) -> IntArray:
    """Return the code of one key at the listed nodes of all levels, -1 above its own."""
    parts = [np.full(np.count_nonzero(shown), -1) for shown in listed[: key + 1]]
    code = domain.codes[key]
    for level in range(key + 1, len(listed)):
        parts.append(_pick(code, listed[level]))
        if level < domain.tree.depth:
            code = np.broadcast_to(domain.tree.spread(level, code), domain.tree.level_sizes[level + 1])
    return np.concatenate(parts)


def layout_of(released: pd.DataFrame) -> tuple[list[Hashable], list[Hashable]]:
    """List the keys, from the coarsest down, and the columns with an error, of a released table.

    The table may have been filtered or read back from a file.
    """
    keys, parts, values = parts_of(released)
    if parts:
        raise ArgumentError(
            "released",
            f"is a table of a distribution: it has rows by {quote(parts[0])} within each group.",
            hint="use dpt.page for quantiles, table.to_html() of pandas for other tables, Distribution.plot "
            "on what release_distribution returned, and for its keys the domain that it was released with.",
        )
    return keys, values


def parts_of(released: pd.DataFrame) -> tuple[list[Hashable], list[Hashable], list[Hashable]]:
    """Find the keys, the column that distinguishes the rows of a group in a distribution, and the values."""
    refuse_crossed(released)
    check_not_derived(released)
    columns: list[Hashable] = list(released.columns)
    values = value_columns(released)
    values = values or [name for name in columns if name == "value" and "q" in columns]
    if "level" not in columns or not values:
        raise ArgumentError(
            "released",
            "is not a released table: it lacks the column `level`, or values with a standard error.",
            hint="call it on the frame that tree_counts, tree_sums or tree_means returned, not on a level. "
            "For a distribution of all records, which has no levels, use Distribution.to_html; for "
            "quantiles, dpt.page.",
        )
    level = released["level"]
    between = columns[columns.index("level") + 1 : columns.index(values[0])]
    between = [name for name in between if name not in RESERVED_NAMES]
    listed = _is_listed(released)
    keys = list(level.cat.categories[1:]) if listed else between  # the latter if filtered, or from a file
    parts = between[-1:] if _has_parts(released, between, keys if listed else list(level.unique())) else []
    return [key for key in keys if key not in parts], parts, values


def check_not_derived(released: pd.DataFrame) -> None:
    """Check that a table has no columns of one name, and is no table of derived numbers."""
    if not released.columns.is_unique:
        raise ArgumentError(
            "released",
            "has several columns of one name.",
            hint="pass the tables of two releases separately, and rename other duplicates.",
        )
    if "dp_derived" in released.attrs:
        raise ArgumentError(
            "released",
            "has numbers derived from a released table.",
            hint="pass the released table itself. A page derives them, as in "
            'show=[{"table": "visits", "as": "proportions"}].',
        )


def _has_parts(released: pd.DataFrame, between: Sequence[Hashable], levels: Sequence[Hashable]) -> bool:
    """Check whether the last column before the values holds the bins, ranges or parts of a distribution.

    A key has no values in rows of coarser levels alone. But a user may have added another column there.
    """
    if not between or between[-1] in levels or not {*levels} <= {ROOT, *between}:
        return False
    last = released[between[-1]]
    if not last.notna().any():
        return False
    if last.name == "q" or isinstance(last.dtype, pd.IntervalDtype):
        return True
    return bool(released.duplicated(["level", *between[:-1]]).any())


def _is_listed(frame: pd.DataFrame) -> bool:
    """Whether the categories of the column `level` list all levels, as in a release."""
    level = frame.get("level")
    return (
        level is not None
        and isinstance(level.dtype, pd.CategoricalDtype)
        and ROOT in level.cat.categories[:1]
    )


def select_level(released: pd.DataFrame, name: Hashable) -> pd.DataFrame:
    """Select one level of a released table or of numbers derived from it, indexed as by ``groupby``.

    The table may have been filtered or read back from a file. The index has the keys from the coarsest down
    to `name`, and the bins, ranges or parts of a distribution.
    """
    refuse_crossed(released)
    if "dp_derived" not in released.attrs:
        by, parts, _ = parts_of(released)
    elif _is_listed(released):
        by, parts = list(released["level"].cat.categories[1:]), []
    else:
        raise ArgumentError(
            "released",
            "has areas, not levels.",
            hint='select some by name: areas.set_index("area").loc[["Coast"]].',
        )
    if not is_name(name) or name not in (ROOT, *by):
        renamed = f"; {_RENAMING}" if is_name(name) and name in released else "."
        raise ArgumentError(
            "name", f"is not a level: {quote(name)}.", hint=f"the levels are {listed([ROOT, *by])}{renamed}"
        )
    depth = 0 if name == ROOT else by.index(name) + 1
    absent = [key for key in by if key not in released]
    if absent:
        indexed = not {*absent}.isdisjoint(released.index.names)
        raise ColumnsError(
            "released",
            "lacks the columns of levels",
            columns=absent,
            hint="turn the index into columns with reset_index()." if indexed else _RENAMING,
        )
    rows = released.loc[released["level"] == name].drop(columns=["level", *by[depth:]])
    return indexed_by(rows, by[:depth], parts)


def indexed_by(rows: pd.DataFrame, keys: Sequence[Hashable], parts: Sequence[Hashable] = ()) -> pd.DataFrame:
    """Return rows that have all of the keys, indexed by them as by ``groupby``, and by `parts`."""
    if not keys:
        return rows.set_index([*parts]) if parts else rows.reset_index(drop=True)
    types = {
        key: _PLAIN[str(rows[key].dtype)]
        for key in keys
        if str(rows[key].dtype) in _PLAIN and not rows[key].isna().any()
    }
    with warnings.catch_warnings(action="ignore"):  # about tuples that pandas cannot sort
        return rows.astype(types).set_index([*keys, *parts])


_RENAMING = (
    "rename columns and levels together, as in "
    'counts["level"] = counts["level"].cat.rename_categories({"state": "State"}).'
)

_PLAIN = {"Int64": "int64", "UInt64": "uint64", "boolean": "bool"}


def stack(levels: Sequence[npt.NDArray[Any]], listed: Sequence[npt.NDArray[np.bool_]]) -> Any:
    """Concatenate the listed nodes of all levels."""
    parts = [
        _pick(np.broadcast_to(values, shown.shape, subok=True), shown)
        for values, shown in zip(levels, listed, strict=True)
    ]
    if not isinstance(parts[0], np.ma.MaskedArray):
        return np.concatenate(parts)
    return pd.arrays.IntegerArray(
        np.concatenate([part.data for part in parts]),
        np.concatenate([np.ma.getmaskarray(part) for part in parts]),
    )


def _pick(values: npt.NDArray[Any], shown: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Select the listed nodes, without a copy if these are all."""
    return values if shown.all() else values[shown]


def key_column(labels: Any) -> pd.Series:
    """Let pandas infer the type of labels; text with lone surrogates, which it cannot hold, stays objects."""
    try:
        return pd.Series(labels, copy=False)
    except UnicodeEncodeError:
        return pd.Series(labels, dtype=object, copy=False)


def take_labels(labels: pd.Index, codes: IntArray) -> Any:
    """Take labels by position, missing where the code is -1; integers and booleans can be missing too."""
    if isinstance(labels, pd.CategoricalIndex):
        return pd.Categorical.from_codes(codes, dtype=labels.array.dtype)
    if isinstance(labels, pd.IntervalIndex) and labels.left.dtype.kind in "iu":
        # With missing intervals, ends become floats, which cannot hold every integer.
        if any(float(end) != end for end in (*labels.left, *labels.right)):
            return pd.Series(labels.astype(object).array.take(codes, allow_fill=True), dtype=object)
    masked = {"i": "Int64", "u": "UInt64", "b": "boolean"}.get(labels.dtype.kind)
    return labels.astype(masked or labels.dtype).array.take(codes, allow_fill=True)
