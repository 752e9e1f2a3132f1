"""Sums of any nodes of a released table, such as the counties of a coast."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.additive import require_additive
from pandas_dptree.output.crossed_columns import axes_of
from pandas_dptree.output.crossed_tables import read_table
from pandas_dptree.output.derived.crossed_areas import Blocks
from pandas_dptree.output.derived.crossed_estimates import CrossedEstimates
from pandas_dptree.output.derived.estimates import Estimates
from pandas_dptree.output.derived.frames import check_confidence, describe
from pandas_dptree.output.derived.matching import as_paths, rows_of_paths
from pandas_dptree.output.frames import prefix_of
from pandas_dptree.output.released import Released, provenance_of
from pandas_dptree.signatures import public

__all__ = ["combine"]

_EXAMPLE = 'for example counts.dp.combine({"Coast": [("CA", "Alameda"), ("CA", "Marin")]}).'


@public
def combine(
    released: pd.DataFrame,
    areas: Mapping[Hashable, Sequence[Any]],
    *,
    weights: Mapping[Hashable, Sequence[float]] | None = None,
    column: Hashable | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    r"""Add up nodes of a released table, on any levels, with the exact error of the sum.

    Parameters
    ----------
    released : pandas.DataFrame
        The whole table of counts or sums, as for ``proportions``.
    areas : mapping from names to lists of paths
        The nodes of each area. A path has the keys of a node from the coarsest down; a single key is a node
        of the first level, and ``()`` is the total. Areas may overlap each other. In crossed tables an area
        maps axes to lists of paths, such as ``{"place": [("CA", "Marin")], "sex": ["F"]}``, which stands for
        all their combinations, or is a list of such mappings; axes that are left out are added up.
    weights : mapping from names to lists of float, optional
        For some areas a number for each path (in crossed tables for each mapping), by which its node is
        multiplied. Without it, no path of an area may be repeated or below another one.
    column : hashable, optional
        The count or sum to add up, by default the first.
    confidence : float, default 0.95
        That of the intervals, for each area by itself.

    Returns
    -------
    pandas.DataFrame
        One row per area: ``area``, the sum of the shown numbers under the name of the column, ``std_error``,
        ``lower`` and ``upper`` (with the column's name before them for sums). The interval is that of the
        unbiased estimates, widened to contain the sum. ``attrs["dp_derived"]`` says what the frame is.

    Raises
    ------
    ArgumentError
        If a path is no node of the table, paths overlap without weights, the column counts distinct units, or
        the table lacks what is needed: see ``proportions``.

    Notes
    -----
    The errors of nodes depend on each other; a sum over all children of a node is as accurate as the node.
    The variance is exact, and costs a pass over the table per area.

    **Privacy**: post-processing of the released table, which spends nothing. The error is that of the noise
    alone.

    Examples
    --------
    >>> import pandas as pd, pandas_dptree as dpt
    >>> records = pd.DataFrame({"state": ["CA"] * 300 + ["NY"] * 200, "city": ["Oakland"] * 500})
    >>> counts = records.dp.tree_counts(["state", "city"], epsilon=1.0, domain="observed", keep=["linear"])
    >>> counts.dp.combine({"coasts": ["CA", ("NY", "Oakland")]}).columns.tolist()
    ['area', 'count', 'std_error', 'lower', 'upper']
    """
    check_confidence(confidence)
    if not isinstance(areas, Mapping) or not areas:
        raise ArgumentError("areas", f"must map names to lists of paths, not {quote(areas)}.", hint=_EXAMPLE)
    given = {} if weights is None else weights
    if not isinstance(given, Mapping) or not {*given} <= {*areas}:
        raise ArgumentError(
            "weights",
            "must map names of areas to lists of numbers.",
            hint='for example weights={"Coast": [1, -1]}.',
        )
    require_additive(
        provenance_of(released),
        read_table(released).shown(column, argument="column").name,
        "sums",
        hint='make the areas a level of the records, and count its units: tree_units(["area"], ...).',
    )
    row: Callable[[Any, Hashable, Any], Row]
    estimates: Estimates | CrossedEstimates
    if axes_of(released):
        estimates = CrossedEstimates.of(released, column)
        row = partial(_row_of_blocks, Blocks(estimates), confidence)
    else:
        estimates = Estimates.of(released, column)
        row = partial(_row_of_paths, estimates, confidence)
    table = [row(listed, name, given.get(name)) for name, listed in areas.items()]
    sums, errors, lower, upper = (np.array(values) for values in zip(*table, strict=True))
    prefix = prefix_of(None if estimates.column == "count" else estimates.column)
    whole = pd.api.types.is_integer_dtype(released[estimates.column]) and not (sums % 1).any()
    columns = {
        "area": list(areas),
        estimates.column: sums.astype(np.int64) if whole else sums,
        f"{prefix}std_error": errors,
        f"{prefix}lower": lower,
        f"{prefix}upper": upper,
    }
    return describe(
        pd.DataFrame(columns),
        estimates.released,
        what="sums of nodes",
        column=str(estimates.column),
        confidence=confidence,
    )


Row = tuple[float, float, float, float]
"""The shown sum of an area, its standard error, and its interval, in the column's unit."""


def _row_of_blocks(blocks: Blocks, confidence: float, given: Any, name: Hashable, weights: Any) -> Row:
    """Add up cells of a crossed table."""
    own = blocks.read(given, name)
    if weights is None:
        blocks.check_apart(own, name)
    factors = np.ones(len(own)) if weights is None else _numbers(weights, len(own))
    return blocks.row(own, factors, confidence)


def _row_of_paths(estimates: Estimates, confidence: float, given: Any, name: Hashable, weights: Any) -> Row:
    """Add up nodes of a table."""
    paths = as_paths(given, "areas")
    rows = rows_of_paths(estimates.released, paths, "areas")
    if weights is None:
        _check_apart(estimates.released, rows, name)
    factors = np.ones(len(rows)) if weights is None else _numbers(weights, len(paths))
    unit = estimates.quantity.unit
    error, half = estimates.error_of_sum(rows, factors, confidence)
    linear, shown = (
        np.array([(factors * values[rows]).sum()]) for values in (estimates.linear, estimates.shown)
    )
    lower, upper = estimates.quantity.intervals(
        linear,
        np.array([half]),
        shown,
        least=estimates.least if (factors >= 0).all() else -np.inf,
        whole=not (factors % 1).any(),
    )
    return float(shown[0]) * unit, error * unit, float(lower[0]), float(upper[0])


def _numbers(given: Any, n: int) -> np.ndarray[Any, Any]:
    """Check the weights of an area."""
    try:
        factors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        factors = np.empty(0)
    if factors.shape != (n,) or not np.isfinite(factors).all():
        raise ArgumentError(
            "weights",
            "must have a number for each path of the area.",
            hint='for example weights={"Coast": [1, -1]} for two paths.',
        )
    return factors


def _check_apart(released: Released, rows: IntArray, name: Hashable) -> None:
    """Refuse paths that are repeated, or below each other: their records would be counted twice."""
    chosen = np.zeros(len(released.depth), dtype=bool)
    chosen[rows] = True
    above = released.parent[rows]
    overlap = bool(np.count_nonzero(chosen) < len(rows))
    while not overlap and (above >= 0).any():
        above = above[above >= 0]
        overlap = bool(chosen[above].any())
        above = released.parent[above]
    if overlap:
        raise ArgumentError(
            "areas",
            f"has overlapping paths in {quote(name)}: one is repeated, or below another one.",
            hint='leave it out, or say how often each counts: weights={"Coast": [1, -1]}.',
        )
