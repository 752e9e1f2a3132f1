"""Estimates → the released table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import ROOT, Domain, level_names
from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["release_frame", "select_level"]


def release_frame(
    domain: Domain,
    estimates: Sequence[npt.NDArray[Any]],
    std_errors: Sequence[npt.NDArray[np.float64]],
    attrs: Mapping[str, Any],
) -> pd.DataFrame:
    """Lay out one row per node, from the root to the leaves.

    Columns, types and rows follow from the domain alone.

    Parameters
    ----------
    domain : Domain
    estimates : sequence of numpy.ndarray, shape (level_sizes[l],)
        For each level, the estimated counts.
    std_errors : sequence of numpy.ndarray, shape (level_sizes[l],) or (1,)
        For each level, their standard errors.
    attrs : mapping
        A JSON-able account of the release, put into ``frame.attrs["dp"]``.

    Returns
    -------
    pandas.DataFrame
        ``level`` (ordered categorical), one column per key (missing below its depth), ``count`` and
        ``std_error``.
    """
    listed = [domain.tree.listed(level) for level in range(domain.tree.depth + 1)]
    level = np.repeat(np.arange(len(listed)), [np.count_nonzero(shown) for shown in listed])
    columns: dict[Hashable, Any] = {
        "level": pd.Categorical.from_codes(level, categories=pd.Index(level_names(domain)), ordered=True)
    }
    paths = [domain.path_codes(level) for level in range(len(listed))]
    for key, name in enumerate(domain.by):
        codes = [
            path[key][shown] if key < len(path) else np.full(np.count_nonzero(shown), -1)
            for path, shown in zip(paths, listed, strict=True)
        ]
        columns[name] = _take(domain.labels[key], np.concatenate(codes))
    columns["count"] = np.concatenate(
        [values[shown] for values, shown in zip(estimates, listed, strict=True)]
    )
    columns["std_error"] = np.concatenate(
        [np.broadcast_to(error, shown.shape)[shown] for error, shown in zip(std_errors, listed, strict=True)]
    )
    frame = pd.DataFrame(columns)
    frame.attrs["dp"] = dict(attrs)
    return frame


def select_level(released: pd.DataFrame, name: Hashable) -> pd.DataFrame:
    """Select one level of a released table, indexed as ``groupby`` would index it.

    Parameters
    ----------
    released : pandas.DataFrame
        A table that this package released, possibly filtered or read back from a file.
    name : hashable
        ``"total"`` or the name of a key.

    Returns
    -------
    pandas.DataFrame
        ``count`` and ``std_error``, indexed by the keys from the coarsest down to `name`.

    Raises
    ------
    ArgumentError
        If `released` is no released table, or has no such level.
    """
    columns = list(released.columns)
    if not {"level", "count", "std_error"} <= set(columns):
        raise ArgumentError(
            "released",
            "is not a table that was released: it lacks level, count or std_error.",
            hint="call .dp.level() on the frame that tree_counts returned.",
        )
    if isinstance(released["level"].dtype, pd.CategoricalDtype):
        by = list(released["level"].cat.categories[1:])
    else:  # read back from a file
        by = columns[columns.index("level") + 1 : columns.index("count")]
    if name not in (ROOT, *by):
        raise ArgumentError("name", f"is not a level: {name!r}.", hint=f"the levels are {[ROOT, *by]!r}.")
    depth = 0 if name == ROOT else by.index(name) + 1
    rows = released.loc[released["level"] == name].drop(columns=["level", *by[depth:]])
    if not depth:
        return rows.reset_index(drop=True)
    types = {key: _PLAIN[str(rows[key].dtype)] for key in by[:depth] if str(rows[key].dtype) in _PLAIN}
    return rows.astype(types).set_index(by[:depth])


_PLAIN = {"Int64": "int64", "UInt64": "uint64", "boolean": "bool"}


def _take(labels: pd.Index, codes: IntArray) -> Any:
    """Labels by position, missing where the code is -1; whole numbers and booleans can be missing too."""
    if isinstance(labels, pd.CategoricalIndex):
        return pd.Categorical.from_codes(codes, dtype=labels.array.dtype)
    masked = {"i": "Int64", "u": "UInt64", "b": "boolean"}.get(labels.dtype.kind)
    return labels.astype(masked or labels.dtype).array.take(codes, allow_fill=True)
