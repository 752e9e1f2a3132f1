"""The largest nodes of a level, with intervals that hold for all nodes that competed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.estimation.intervals import error_half_widths, intervals
from pandas_dptree.hierarchy.margin_names import margin_named
from pandas_dptree.output.crossed_tables import CrossedTable
from pandas_dptree.output.derived.estimates import level_of
from pandas_dptree.output.derived.frames import check_confidence, derived_frame
from pandas_dptree.output.derived.numbers import Numbers
from pandas_dptree.output.frames import prefix_of
from pandas_dptree.output.released import Released
from pandas_dptree.signatures import public

__all__ = ["top"]


@public
def top(
    released: pd.DataFrame,
    n: int = 10,
    *,
    level: Any = None,
    column: Hashable | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Select the largest nodes of a level, with intervals that all hold at once.

    Parameters
    ----------
    released : pandas.DataFrame
        The whole table of counts or sums, as for ``proportions``, or of means.
    n : int, default 10
        How many nodes.
    level : hashable or mapping, optional
        Their level, by default the finest; of a crossed table a margin, such as ``{"place": "county"}``.
    column : hashable, optional
        The column that decides, by default the first.
    confidence : float, default 0.95
        The probability that the intervals of all nodes of the level hold together, those that are not
        selected, too.

    Returns
    -------
    pandas.DataFrame
        The largest first: ``level``, the keys, ``rank``, the column, ``std_error``, ``lower`` and ``upper``
        (with the column's name before them for sums and means). ``attrs["dp_derived"]`` has the number of
        nodes that ``competed``.

    Raises
    ------
    ArgumentError
        If `n` or `level` cannot be used, or the table lacks what is needed: see ``proportions``.

    Notes
    -----
    Noise helps to be among the largest, so intervals of single nodes hold too seldom for those selected. By
    Bonferroni's inequality, intervals at 1 - (1 - confidence) / m hold together, for all m nodes that
    competed. The true order may be another one wherever intervals overlap.

    **Privacy**: post-processing of the released table, which spends nothing. The error is that of the noise
    alone.

    Examples
    --------
    >>> import pandas as pd, pandas_dptree as dpt
    >>> records = pd.DataFrame({"state": ["CA"] * 300 + ["NY"] * 200})
    >>> counts = records.dp.tree_counts(["state"], epsilon=1.0, domain="observed", keep=["linear"])
    >>> counts.dp.top(1)["state"].tolist()
    ['CA']
    """
    check_confidence(confidence)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ArgumentError("n", f"must be a whole number >= 1, not {quote(n)}.", hint="for example n=10.")
    numbers = Numbers.of(released, column)
    depth = numbers.released.depth
    place = int(depth.max()) if level is None else _place_of(numbers.released, level)
    rows = np.flatnonzero((depth == place) & ~np.isnan(numbers.shown))
    if not len(rows):
        raise ArgumentError("level", "has no numbers in the table.", hint="choose another level.")
    moments = (numbers.variance[rows], numbers.fourth[rows], numbers.steps[rows])
    competed = int(np.count_nonzero(depth == place))
    half = error_half_widths(*moments, 1 - (1 - confidence) / competed)
    unit = numbers.unit or 1.0
    lower, upper = intervals(
        numbers.linear[rows] / unit,
        half / unit,
        numbers.bounds[0] / unit,
        numbers.bounds[1] / unit,
        whole=numbers.unit > 0,
        shown=numbers.shown[rows] / unit,
    )
    order = np.argsort(-numbers.shown[rows], kind="stable")[:n]
    prefix = prefix_of(None if numbers.column == "count" else numbers.column)
    chosen = derived_frame(
        numbers.released,
        {},
        what="the largest",
        column=str(numbers.column),
        confidence=confidence,
        competed=competed,
    )
    largest = chosen.iloc[rows[order]].copy()
    largest["rank"] = np.arange(1, len(order) + 1)
    largest[numbers.column] = released[numbers.column].iloc[rows[order]]
    largest[f"{prefix}std_error"] = np.sqrt(numbers.variance)[rows[order]]
    largest[f"{prefix}lower"], largest[f"{prefix}upper"] = lower[order] * unit, upper[order] * unit
    return largest.reset_index(drop=True)


def _place_of(released: Released | CrossedTable, level: Any) -> int:
    """Return the number of a level, or of a margin, in the depths of a table."""
    if isinstance(released, CrossedTable):
        axes = {axis: own.keys for axis, own in released.axes.items()}
        return int(released.number_of(margin_named(axes, level, "level")))
    return level_of(released, level, "level")
