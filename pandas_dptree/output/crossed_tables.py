"""Released tables of crossed hierarchies, read back: the node of each row on each axis, and its values.

The counterpart of `output.released`, which reads tables of one hierarchy. Each axis is a `Released` of its
own: a tree of the nodes that occur in the table, with their names and parents.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, listed
from pandas_dptree.hierarchy.margin_names import level_column, margin_name
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.product_tree import Margin
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.crossed_columns import axes_of, value_columns
from pandas_dptree.output.frames import check_not_derived
from pandas_dptree.output.released import Quantities, Released

__all__ = ["CrossedTable", "read_table"]


@dataclass(frozen=True, eq=False)
class CrossedTable(Quantities):
    """A crossed table as cells of a product of trees. It may have been filtered, or read back from a file.

    `axes` has the nodes of each axis that occur, a row each of ``axes["place"].table``; `nodes` says in which
    of them each row of the table is, shape (n_rows, n_axes).
    """

    axes: Mapping[str, Released]
    nodes: IntArray

    @classmethod
    def of(cls, table: pd.DataFrame) -> CrossedTable:
        """Read a crossed table that has rows, at most one for each cell."""
        check_not_derived(table)
        keys, columns = axes_of(table), value_columns(table)
        if not keys or not columns or not len(table):
            raise ArgumentError(
                "released",
                "has no rows." if keys and columns else "is not a released table of crossed hierarchies.",
                hint="pass the table that was released, with its levels, keys, values and standard errors.",
            )
        if missing := [key for each in keys.values() for key in each if key not in table]:
            raise ColumnsError(
                "released", "lacks keys", columns=missing, hint="keep the columns of all keys."
            )
        axes, nodes = {}, []
        for axis, own in keys.items():
            axes[axis], node = _nodes_of(table, level_column(axis), own)
            nodes.append(node)
        read = cls(table, columns, axes, np.column_stack(nodes))
        if pd.Series(read._cells(read.nodes)).duplicated().any():
            raise ArgumentError(
                "released",
                "has several rows for one cell.",
                hint="pass the tables of two releases separately; read a CSV file with "
                'keep_default_na=False, na_values=[\'\'] if keys look like "NA" or "None".',
            )
        return read

    @property
    def keys(self) -> list[Hashable]:
        """All keys, axis by axis."""
        return [key for axis in self.axes.values() for key in axis.keys]

    @property
    def row_columns(self) -> list[Hashable]:
        """The columns that say which cell a row is."""
        return [*map(level_column, self.axes), *self.keys]

    @cached_property
    def depth(self) -> IntArray:
        """A number of the margin of each row, shape (n_rows,)."""
        return np.asarray(self.number_of(self.margin.T), dtype=np.int64)

    def number_of(self, margin: Sequence[Any] | npt.NDArray[Any]) -> Any:
        """Return the number of a margin in `depth`, or of many."""
        return np.ravel_multi_index(tuple(margin), tuple(len(axis.keys) + 1 for axis in self.axes.values()))

    @cached_property
    def margin(self) -> IntArray:
        """The level of each row on each axis, shape (n_rows, n_axes)."""
        return np.column_stack(
            [axis.depth[node] for axis, node in zip(self.axes.values(), self.nodes.T, strict=True)]
        )

    @cached_property
    def margins(self) -> list[tuple[Margin, IntArray]]:
        """The margins that have rows, the grand total first, each with the positions of its rows."""
        order = np.argsort(self.depth, kind="stable")
        starts = np.flatnonzero(np.diff(self.depth[order], prepend=-1))
        found = zip(starts, np.append(starts[1:], len(order)), strict=True)
        return [(tuple(self.margin[order[start]].tolist()), order[start:end]) for start, end in found]

    @property
    def margin_names(self) -> list[str]:
        """The names of the margins that have rows."""
        keys = {axis: own.keys for axis, own in self.axes.items()}
        return [margin_name(keys, margin) for margin, _ in self.margins]

    def rows_at(self, nodes: npt.NDArray[np.int64]) -> IntArray:
        """Find the rows of cells, given by the node on each axis, shape (n, n_axes): -1 if there is none."""
        cells = self._cells(nodes)
        place = np.minimum(np.searchsorted(self._sorted, cells), len(self._sorted) - 1)
        found = (self._sorted[place] == cells) & (nodes >= 0).all(axis=1)
        return np.where(found, self._order[place], -1)

    def parent(self, axis: str) -> IntArray:
        """The row of the cell above each one along an axis, -1 if there is none, shape (n_rows,)."""
        above, place = self.nodes.copy(), [*self.axes].index(axis)
        above[:, place] = self.axes[axis].parent[above[:, place]]
        return self.rows_at(above)

    def _cells(self, nodes: npt.NDArray[np.int64]) -> IntArray:
        """Number the cells of a product of the nodes of all axes."""
        cells = np.zeros(len(nodes), dtype=np.int64)
        for axis, node in zip(self.axes.values(), nodes.T, strict=True):
            cells = cells * len(axis.table) + node
        return cells

    @cached_property
    def _order(self) -> IntArray:
        return np.argsort(self._cells(self.nodes), kind="stable")

    @cached_property
    def _sorted(self) -> IntArray:
        return self._cells(self.nodes)[self._order]


def read_table(table: pd.DataFrame) -> Released | CrossedTable:
    """Read a released table, of one hierarchy or of several that are crossed."""
    return CrossedTable.of(table) if axes_of(table) else Released.of(table)


def _nodes_of(table: pd.DataFrame, column: str, keys: list[Hashable]) -> tuple[Released, IntArray]:
    """Return the nodes of one axis that occur in a table, and in which of them each row is."""
    code, levels = pd.factorize(table[column])
    known = pd.Index([ROOT, *keys], dtype=object)
    depth = np.append(known.get_indexer(pd.Index(levels, dtype=object)), -1)[code]
    if (depth < 0).any():
        raise ArgumentError(
            "released",
            f"has rows without a known level in the column {column!r}.",
            hint=f"keep rows with one of the levels {listed(known)}.",
        )
    node, _ = pd.factorize(Released(table, [], keys, depth.astype(np.int64)).node)
    first = np.unique(node, return_index=True)[1]
    nodes = table.iloc[first].rename(columns={column: "level"})[["level", *keys]]
    return Released(nodes, [], keys, depth[first].astype(np.int64)), node.astype(np.int64)
