"""Tables of quantiles that were drawn from a grid, beside those that were read from trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.grid import Grid, Points, duration_in_words
from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["bounds_in_json", "points_in_json", "quantile_table"]


def bounds_in_json(ends: Any) -> list[float] | list[str]:
    """Return the two bounds of a column for a provenance: numbers, or times as text."""
    ends = pd.Index(ends)
    if ends.dtype.kind == "f":
        return [float(end) for end in ends]
    if ends.dtype.kind == "m":
        return [duration_in_words(int(pd.Timedelta(end).as_unit("ns").value)) for end in ends]
    return [str(end).removesuffix(" 00:00:00") for end in ends]


def points_in_json(points: Points) -> dict[str, Any]:
    """Describe the points of draws for a provenance: their granularity, or the number of bins."""
    return {"granularity": points.granularity} if isinstance(points, Grid) else {"n_bins": points.size}


def quantile_table(
    grid: Points,
    q: Sequence[float],
    *,
    groups: pd.DataFrame | None,
    read: pd.DataFrame | None,
    drawn: IntArray,
    rows: IntArray,
) -> pd.DataFrame:
    """Lay out quantiles like `Distribution.quantiles`, group by group.

    `groups` has the level and the keys of each group, and `read` the quantiles of all of them, or of the
    first ones, that were read from trees: these are rounded to the grid. `drawn`, shape (n_leaves, n_q), has
    points of the grid, and `rows` the group of each leaf; -1 for a leaf that is empty by definition. An
    interval that was read ends at points, and is widened to contain what was drawn.
    """
    n_groups, missing = 1 if groups is None else len(groups), grid.missing
    values = np.full((n_groups, len(q)), missing, dtype=missing.dtype)
    if read is not None:
        assert isinstance(grid, Grid)
        known = grid.find(_plain(read["value"]))
        rounded = np.where(known < 0, missing, grid.values_at(np.maximum(known, 0)))
        values[: len(read) // len(q)] = rounded.reshape(-1, len(q))
    shown = rows >= 0
    values[rows[shown]] = grid.values_at(drawn[shown])
    columns = {"value": values.reshape(-1)}
    if read is not None and "lower" in read:
        assert isinstance(grid, Grid)
        lower, upper = map(grid.values_at, grid.ends(_plain(read["lower"]), _plain(read["upper"])))
        columns["lower"], columns["upper"] = (
            np.fmin(lower, columns["value"]),
            np.fmax(upper, columns["value"]),
        )
    flat: dict[str, Any] = {name: grid.labels(column) for name, column in columns.items()}
    if groups is None:
        return pd.DataFrame(flat, index=pd.Index(q, name="q", dtype=np.float64))
    keys = groups.take(np.repeat(np.arange(n_groups), len(q))).reset_index(drop=True)
    return keys.assign(q=np.tile(np.asarray(q, dtype=np.float64), n_groups), **flat)


def _plain(column: pd.Series) -> npt.NDArray[Any]:
    """Return values as an array, times in UTC without a time zone."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return column.to_numpy()
