"""Alignment of released tables with the truth: the same nodes, in the same order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, is_name, kind_of_object
from pandas_dptree.hierarchy.columns import collected, pick_columns
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.values import canonical_codes, located
from pandas_dptree.output.additive import adds_up
from pandas_dptree.output.released import provenance_of

__all__ = ["Aligned", "Frames", "aligned"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

Frames: TypeAlias = pd.DataFrame | Sequence[pd.DataFrame]
"""A released table, or the tables of repeated releases."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """Estimates, shape (n_releases, ...), and the truth, shape (...).

    `nodes` has the level and the keys of each node, in the order of the first table; None for arrays.
    """

    estimates: FloatArray
    truth: FloatArray
    nodes: pd.DataFrame | None = None

    def labelled(self, name: str, values: FloatArray) -> Any:
        """Return one number per node in the form of the estimates: an array or a table."""
        return values if self.nodes is None else self.nodes.assign(**{name: values})


def aligned(released: Any, truth: Any, column: Hashable) -> Aligned:
    """Align estimates with the truth: see `pandas_dptree.theory.alpha_rmse` for the forms."""
    tables = [released] if isinstance(released, pd.DataFrame) else released
    if isinstance(tables, Sequence) and tables and isinstance(tables[0], pd.DataFrame):
        return _aligned_tables(tables, truth, column)
    estimates, true = _numbers(released, "released"), _numbers(truth, "truth")
    if estimates.shape == true.shape:
        estimates = estimates[np.newaxis]
    if estimates.shape[1:] != true.shape or not estimates.size:
        raise ArgumentError(
            "released", f"of shape {estimates.shape} does not fit a truth of shape {true.shape}.",
            hint="pass released tables, or an array like the truth, with one axis before it for repeated "
            "releases.",
        )  # fmt: skip
    return Aligned(estimates, true)


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The rows of a released table.

    `by` has the names of the keys, and `forms` the canonical forms of each key. `codes`, shape (len(by), n),
    has the position of each row's keys among the forms, -1 below the row's depth. `depth` is each row's
    number of keys.
    """

    by: Sequence[Any]
    forms: Sequence[Sequence[Hashable]]
    codes: IntArray
    depth: IntArray

    def located(self, keys: Sequence[pd.Series]) -> IntArray:
        """Find keys among those of the nodes: -1 if missing, -2 if no node has them."""
        return np.array([located(key, forms) for key, forms in zip(keys, self.forms, strict=True)])


def _aligned_tables(tables: Sequence[pd.DataFrame], truth: Any, column: Hashable) -> Aligned:
    """Reorder all tables as the first, and find the truth of each of its rows."""
    first = tables[0]
    nodes = _nodes_of(first, column)
    paths = _paths(nodes.codes, nodes.depth)
    if not len(paths) or not paths.is_unique:
        raise ArgumentError(
            "released", "must list at least one node, and each node once.",
            hint="pass repeated releases as a list of tables.",
        )  # fmt: skip
    estimates = np.empty((len(tables), len(paths)))
    for number, table in enumerate(tables):
        *keys, values = _columns(table, [*nodes.by, column], "released")
        position = paths.get_indexer(_paths(nodes.located(keys), np.int64(len(keys))))
        if not np.array_equal(np.sort(position), np.arange(len(paths))):
            raise ArgumentError(
                "released", f"must list the same nodes in every table; table {number} and table 0 differ.",
                hint="release with the same plan, and select the same rows of each table.",
            )  # fmt: skip
        estimates[number, position] = _numbers(values, "released")
    if isinstance(truth, np.ndarray):
        true = _numbers(truth, "truth")
        if true.shape != (len(paths),):
            raise ArgumentError(
                "truth", f"of shape {true.shape} does not fit a table of {len(paths)} rows.",
                hint="give one number for each row, or a series or frame with keys.",
            )  # fmt: skip
    else:
        additive = all(adds_up(provenance_of(table), column) for table in tables)
        true = _truth(truth, nodes, paths, column, additive=additive)
    listed = first[["level", *nodes.by]].copy()
    listed.attrs = {}  # they describe one release only
    return Aligned(estimates, true, listed)


def _nodes_of(released: pd.DataFrame, column: Hashable) -> _Nodes:
    """Read the nodes of a table's rows."""
    _columns(released, ["level", column], "released")
    if isinstance(released["level"].dtype, pd.CategoricalDtype):
        by = released["level"].cat.categories[1:].tolist()
    else:  # read back from a file
        names: list[Any] = list(released.columns)
        values = [name for name in names if name == "count" or f"{name}_std_error" in names]
        by = names[names.index("level") + 1 : names.index((values or [column])[0])]
    encoded = [canonical_codes(key) for key in _columns(released, by, "released")]
    codes = np.array([code for code, _ in encoded]).reshape(len(by), len(released))
    depth = _depths(released["level"], by)
    if not by or ((np.arange(len(by))[:, np.newaxis] < depth) != (codes >= 0)).any():
        raise ArgumentError(
            "released", "has rows whose keys do not fit their level.",
            hint='pass a table of this package, read from CSV with keep_default_na=False, na_values=[""].',
        )  # fmt: skip
    return _Nodes(by, [forms for _, forms in encoded], codes, depth)


def _truth(
    truth: Any, nodes: _Nodes, paths: pd.MultiIndex, column: Hashable, *, additive: bool
) -> FloatArray:
    """Find the true number of each node: its own, or the sum over the groups below it."""
    keys, levels, values = _truth_columns(truth, nodes, column)
    numbers = _numbers(values, "truth")
    codes = np.full((len(nodes.by), len(numbers)), -1)
    for key, column_of_keys in enumerate(keys):
        codes[key] = located(column_of_keys, nodes.forms[key])
    present = codes != -1
    ends = np.count_nonzero(present, axis=0)
    listed = ~(present[1:] & ~present[:-1]).any(axis=0)
    if levels is None:
        depths = ends
        listed &= ~_continued(codes, ends, nodes)
        if not additive and (np.ptp(nodes.depth) or _paths(codes, ends).has_duplicates):
            raise ArgumentError(
                "truth", "lists groups, and the distinct units of a node are not the sum of those of groups.",
                hint="count them in each node: pass a table with a level, or an array of one number per row.",
            )  # fmt: skip
    else:
        depths = _depths(levels, nodes.by)
        compared = np.isin(depths, nodes.depth)
        listed &= np.where(compared, depths == ends, depths >= 0)
        if _paths(codes[:, compared], depths[compared]).has_duplicates:
            raise ArgumentError(
                "truth", "lists some nodes twice.",
                hint="list each once; or pass only the numbers of the finest groups, without a level.",
            )  # fmt: skip
    true = np.zeros(len(paths))
    for depth in np.unique(nodes.depth):
        rows = np.flatnonzero(depths >= depth if levels is None else depths == depth)
        position = paths.get_indexer(_paths(codes[:, rows], depth))
        listed[rows] &= position >= 0
        true += np.bincount(np.maximum(position, 0), np.where(position < 0, 0.0, numbers[rows]), len(paths))
    if (~listed & (numbers != 0)).any():
        raise ArgumentError(  # their keys are as secret as the truth
            "truth", "counts records that the released table does not list.",
            hint="leave out the records that the domain does not list, as the release did; and where rows of "
            "the table were selected, select the same rows of the truth.",
        )  # fmt: skip
    return true


def _continued(codes: IntArray, ends: IntArray, nodes: _Nodes) -> npt.NDArray[np.bool_]:
    """Return whether a path ends where a released one continues: no release counts the records there."""
    continued = np.zeros(len(ends), dtype=bool)
    for depth in range(nodes.depth.max()):
        rows = np.flatnonzero(ends == depth)
        inner = _paths(nodes.codes[:, nodes.depth > depth], np.int64(depth)).unique()
        continued[rows] = inner.get_indexer(_paths(codes[:, rows], np.int64(depth))) >= 0
    return continued


def _truth_columns(
    truth: Any, nodes: _Nodes, column: Hashable
) -> tuple[list[pd.Series], pd.Series | None, pd.Series]:
    """Extract keys, levels and numbers from a ``groupby`` result, or from a table like a released one."""
    if isinstance(truth, pd.Series):
        named = list(truth.index.names)
        if named == [None] * len(named):
            named = list(nodes.by[: len(named)])
        keys = {name: truth.index.get_level_values(position) for position, name in enumerate(named)}
        table: Any = pd.DataFrame({**keys, column: truth.array})
    else:
        table = collected(truth, "truth")
        if table is None:
            raise ArgumentError(
                "truth", f"cannot be {kind_of_object(truth)}.",
                hint="pass frame.groupby(keys).size(), a table with a level, or an array.",
            )  # fmt: skip
    by = nodes.by[: nodes.depth.max()]
    if isinstance(table, pd.DataFrame):
        indexed = [key for key in by if key in table.index.names and key not in table.columns]
        table = table.reset_index(level=indexed) if indexed else table
    level = ["level"] if "level" in table.columns else []
    *found, values = _columns(table, [*level, *by, column], "truth")
    return found[len(level) :], found[0] if level else None, values


def _paths(codes: IntArray, depth: npt.NDArray[np.int64] | np.int64) -> pd.MultiIndex:
    """Index nodes by the codes of their keys, truncated to a depth."""
    return pd.MultiIndex.from_arrays([np.where(key < depth, code, -1) for key, code in enumerate(codes)])


def _depths(levels: pd.Series, by: Sequence[Hashable]) -> IntArray:
    """Return the number of keys of each row's level, -1 for an unknown level."""
    depth_of = {name: depth for depth, name in enumerate([ROOT, *by])}
    position, names = pd.factorize(levels)
    return np.array([*(depth_of.get(name, -1) for name in names), -1])[position]


def _columns(table: Any, names: Sequence[Hashable], argument: str) -> list[pd.Series]:
    """Select columns from a table of any supported library."""
    lacking = [name for name in names if not is_name(name) or name not in list(table.columns)]
    if lacking:
        raise ColumnsError(
            argument, "lacks the columns", columns=lacking,
            hint="pass a table of this package, and name the numbers to compare, for example column=\"cost\"."
            if argument == "released"
            else "group by all keys of the released table, and give the numbers the same name.",
        )  # fmt: skip
    return pick_columns(table, names, argument=argument)


def _numbers(values: Any, argument: str) -> FloatArray:
    """Convert to an array of finite numbers."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if not np.isfinite(numbers).all():
        raise ArgumentError(argument, "must hold only finite numbers.", hint="drop or fill missing values.")
    return numbers
