"""Released tables of the shown nodes of an implicit tree, or of a hierarchy with private keys."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.estimation.sparse_tree import SparseLevel, remainder_bounds, summed
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["ShownLevel", "node_frame", "sparse_frame"]

Levels = Sequence[npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class ShownLevel:
    """The nodes of one level that a table shows, with the last key of each.

    Nodes that are not `listed` only continue a shorter path of public keys, and have no row.
    """

    nodes: SparseLevel
    labels: Any
    listed: npt.NDArray[np.bool_]


def sparse_frame(
    names: Sequence[Hashable],
    levels: Sequence[ShownLevel],
    estimates: tuple[Sequence[IntArray], Sequence[IntArray]],
    bounds: tuple[Sequence[IntArray], Sequence[IntArray]],
    *,
    bound_name: str,
    noise_scales: Sequence[float] | None,
    attrs: Mapping[str, Any],
) -> pd.DataFrame:
    """Make a table of one row per node and one per remainder, level by level: see `ImplicitPlan`.

    `estimates` and `bounds` are those of the nodes and of the remainders; `bound_name` is the column that
    says how far a count can be from the truth. Without noise scales, the table does not show the
    measurements.
    """
    nodes = [level.nodes for level in levels]
    (lower, upper), (rest_lower, rest_upper) = bounds, remainder_bounds(nodes, *bounds)
    errors = [np.sqrt(np.where(level.measured, level.variance, np.nan)) for level in nodes]
    rest_errors = [
        np.sqrt(error**2 + summed(below.parent, below_error**2, len(error)))
        for error, below, below_error in zip(errors, nodes[1:], errors[1:], strict=False)
    ]
    rows = [_Rows.of(nodes, place) for place in range(len(nodes))]
    paths = [[*each.path, *[np.full(len(each.other), -1)] * (len(rows) - place - 1)]
             for place, each in enumerate(rows)]  # fmt: skip
    columns = _key_columns(names, [level.labels for level in levels[1:]], paths)
    count = _stack(rows, *estimates)
    columns["count"] = count
    columns["std_error"] = _stack(rows, errors, rest_errors)
    columns[bound_name] = np.maximum(
        _stack(rows, upper, rest_upper) - count, count - _stack(rows, lower, rest_lower)
    )
    columns["other"] = np.concatenate([each.other for each in rows])
    if noise_scales is not None:
        nothing = [np.zeros(len(level.parent), dtype=np.int64) for level in nodes[:-1]]
        measured = _stack(rows, [level.measured for level in nodes], nothing).astype(bool)
        noisy = _stack(rows, [level.noisy for level in nodes], nothing)
        columns["measurement"] = pd.arrays.IntegerArray(noisy, ~measured)
        columns["noise_scale"] = np.where(
            measured, np.repeat(noise_scales, [len(each.other) for each in rows]), np.nan
        )
    table = pd.DataFrame(columns, copy=False)
    listed = _stack(
        rows,
        [level.listed for level in levels],
        [np.ones(len(level.listed), dtype=bool) for level in levels[:-1]],
    )
    if not listed.all():
        table = table[listed].reset_index(drop=True)
    table.attrs.update(attrs)
    return table


def node_frame(
    tree: PrefixTree, keys: Levels, values: Mapping[str, Levels], attrs: Mapping[str, Any]
) -> pd.DataFrame:
    """Make a table of one row per node, level by level, if the ancestors of all nodes are nodes too.

    The prefixes of each level ascend. The table has ``level`` (ordered categorical), one column per level
    (missing below a node's depth), and the values.
    """
    lengths = tree.lengths
    paths = [
        [
            np.searchsorted(keys[above + 1], tree.shorten(prefixes, lengths[place - 1], length))
            if above < place
            else np.full(len(prefixes), -1)
            for above, length in enumerate(lengths)
        ]
        for place, prefixes in enumerate(keys)
    ]
    labels = [tree.labels(prefixes, length) for prefixes, length in zip(keys[1:], lengths, strict=True)]
    columns = _key_columns(tree.level_names, labels, paths)
    columns |= {name: np.concatenate(levels) for name, levels in values.items()}
    table = pd.DataFrame(columns, copy=False)
    table.attrs.update(attrs)
    return table


def _key_columns(
    names: Sequence[Hashable], labels: Sequence[Any], paths: Sequence[Sequence[IntArray]]
) -> dict[Hashable, Any]:
    """Make the columns of each row's level and of the nodes on its path.

    For each level, `paths` has the rows' positions among the nodes of all levels below the root, or -1, and
    for each level below the root, `labels` has the nodes' labels.
    """
    sizes = [len(path[0]) for path in paths]
    columns: dict[Hashable, Any] = {
        "level": pd.Categorical.from_codes(
            np.repeat(np.arange(len(paths)), sizes), categories=pd.Index(list(names)), ordered=True
        )
    }
    for place, (name, own) in enumerate(zip(names[1:], labels, strict=True)):
        keys = own.take(np.concatenate([path[place] for path in paths]), allow_fill=True)
        columns[name] = pd.Series(keys, dtype=keys.dtype, copy=False)  # pandas would infer another type
    return columns


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The rows of one level: its nodes, and the remainders of the nodes above, family by family.

    `order` has the position of each row among the nodes, followed by the remainders, and `other` whether it
    is a remainder. `rest` has the nodes of the level above whose remainders are shown. `path` has, for each
    level from the first below the root to this one, the node that each row belongs to; -1 for none.
    """

    order: IntArray
    rest: IntArray
    path: list[IntArray]
    other: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, levels: Sequence[SparseLevel], place: int) -> _Rows:
        """Order the rows of a level."""
        n = len(levels[place].parent)
        rest = np.flatnonzero(~levels[place - 1].complete) if place else np.zeros(0, dtype=np.int64)
        parent = np.concatenate([levels[place].parent, rest])
        order = np.argsort(parent, kind="stable")
        own, above = np.append(np.arange(n), np.full(len(rest), -1))[order], parent[order]
        path = [own] if place else []
        for level in reversed(levels[1:place]):
            path.insert(0, above)
            above = level.parent[above]
        return cls(order, rest, path, own < 0)


def _stack(rows: Sequence[_Rows], nodes: Levels, rests: Levels) -> npt.NDArray[Any]:
    """Concatenate the values of nodes and of remainders, level by level."""
    return np.concatenate(
        [
            np.concatenate([nodes[place], rests[place - 1][each.rest]])[each.order]
            for place, each in enumerate(rows)
        ]
    )
