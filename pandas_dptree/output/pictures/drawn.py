"""Which nodes of a level a picture draws, in which order, and intervals that hold for all that competed."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.estimation.intervals import error_half_widths
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.released import Released, Shown, provenance_of

__all__ = ["Drawn", "at_once", "choose", "kind_of", "places_of", "size_of"]

FloatArray = npt.NDArray[np.float64]

_TIMES = r"\d{4}-(Q[1-4]|W?\d\d(-\d.*)?)|\d\d:00"
"""Quarters, months, weeks, days and hours, as `calendar` writes them: their order as text is that of time."""

_COUNTS = ("count", "units")
"""What columns of tables of several show that are counts under names of their own."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """The rows that are drawn `of` those of a level, in order, and how many nodes of the level `competed`.

    `largest` if their size chose them. `in_words` says which they are, and is empty if they are all.
    """

    name: str
    rows: IntArray
    of: IntArray
    competed: int
    largest: bool
    in_words: str


def choose(released: Released, size: FloatArray, numbers: FloatArray, n: int) -> list[Drawn]:
    """Choose at most n nodes of each level: the first, if keys have an order of their own; else the largest.

    Nodes without a number are left out. Ties keep their order. Of a table from which rows were removed, size
    may have chosen those that remain.
    """
    planned = _planned(released.table)
    chosen = []
    for depth, (name, rows) in zip(np.unique(released.depth).tolist(), released.levels, strict=True):
        present = rows[~np.isnan(numbers[rows])]
        keys = [places_of(released.table[key].iloc[present]) for key in released.keys[:depth]]
        places = keys[-1] if keys else None
        if places is None:
            order = np.argsort(-size[present], kind="stable")
        else:
            groups = released.groups[present].T
            above = [groups[at] if own is None else own for at, own in enumerate(keys[:-1])]
            order = np.lexsort((places, *reversed(above)))
        drawn, of = present[order[:n]], max(len(rows), planned.get(name, 0))
        largest = len(rows) < of or (places is None and n < len(present))
        if len(drawn) < len(present):
            words = f"the {n:,} largest of {of:,}" if places is None else f"the first {n:,} of {of:,}"
        elif len(rows) < of:
            words = f"{len(drawn):,} rows, selected among {of:,}"
        else:
            words = f"{len(drawn):,} of {of:,} have a value" if len(drawn) < of else ""
        chosen.append(Drawn(name, drawn, rows, of, largest, words))
    return chosen


def at_once(
    shown: Shown, provenance: Mapping[str, Any], level: Drawn
) -> tuple[FloatArray, FloatArray] | None:
    r"""Widen the intervals of the drawn nodes until all those of the level hold at once, drawn or not.

    By Bonferroni's inequality, those at the confidence :math:`1 - (1 - c)/n` do, for n nodes. The table does
    not tell of which noises an error is the sum. So each end moves by the difference of the two half widths
    for the heaviest tail with that standard error: a single Laplace variable, or a normal one for Gaussian
    noise, with the excess kurtosis of small discrete noise. That is exact for a single measurement, as of
    most leaves, and otherwise too wide.

    None if that is impossible: there are no intervals, or the confidence or the kind of value is unknown, or
    it is a mean, whose intervals are not in proportion to standard errors.
    """
    confidence, unit = provenance.get("confidence"), _unit(shown.name, provenance)
    if shown.interval is None or shown.error is None or not isinstance(confidence, float) or unit is None:
        return None
    variance = shown.error[level.rows] ** 2
    fourth = unit**2 * variance
    if provenance.get("mechanism") != "gaussian":
        fourth += 3.0 * variance**2
    steps = np.full(1, max(unit, abs(float(_quantity(shown.name, provenance).get("middle", 0.0)))))
    wide = error_half_widths(variance, fourth, steps, 1 - (1 - confidence) / level.competed)
    wider = wide - error_half_widths(variance, fourth, np.zeros(1), confidence)
    lower, upper = (end[level.rows] for end in shown.interval)
    least = 0.0 if kind_of(shown.name, provenance) == "non-negative" else -np.inf
    wider = unit * np.ceil(wider / unit)  # the ends of the table were moved inwards to whole numbers of units
    return np.maximum(lower - wider, np.minimum(lower, least)), upper + wider


def kind_of(column: Hashable, provenance: Mapping[str, Any]) -> str:
    """Return "non-negative" for counts and for sums that cannot be negative, "signed" for others, else ""."""
    if column == "count":
        return "non-negative"
    quantity = _quantity(column, provenance)
    if quantity.get("shown") in _COUNTS:
        return "non-negative"
    if quantity.get("shown") != "sum":
        return ""
    bounds = quantity.get("bounds")
    return "non-negative" if isinstance(bounds, list) and bounds[:1] >= [0] else "signed"


def size_of(released: Released, shown: Shown) -> FloatArray:
    """Return what makes the nodes of a column large: for means and sums the first count, if there is one."""
    provenance = provenance_of(released.table)
    counts = [
        name
        for name in released.columns
        if name == "count" or _quantity(name, provenance).get("shown") in _COUNTS
    ]
    return shown.numbers if shown.name in counts or not counts else released.shown(counts[0]).numbers


def _quantity(column: Hashable, provenance: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the provenance states about a column of sums or means; empty if nothing."""
    quantities = provenance.get("quantities")
    quantity = quantities.get(str(column)) if isinstance(quantities, dict) else None
    return quantity if isinstance(quantity, dict) else {}


def _unit(column: Hashable, provenance: Mapping[str, Any]) -> float | None:
    """The step of the values of counts and sums; None for means, and if it is unknown."""
    quantity = _quantity(column, provenance)
    if column == "count" or quantity.get("shown") in _COUNTS:
        return 1.0
    unit = quantity.get("granularity")
    return unit if isinstance(unit, float) and kind_of(column, provenance) else None


def _planned(table: pd.DataFrame) -> Mapping[str, int]:
    """The number of rows of each level according to the plan; empty if it is unknown."""
    try:
        plan = json.loads(table.attrs["dp_plan"])
        return {str(name): int(nodes) for name, nodes in zip(plan["levels"], plan["nodes"], strict=True)}
    except (KeyError, TypeError, ValueError):
        return {}


def places_of(keys: pd.Series) -> npt.NDArray[Any] | None:
    """Number keys by their own order: of time, of intervals, or of an ordered categorical; None without."""
    kind = keys.dtype.categories.dtype if isinstance(keys.dtype, pd.CategoricalDtype) else keys.dtype
    known = keys.dropna()
    if not len(known):
        return None
    if getattr(keys.dtype, "ordered", False):
        return keys.cat.codes.to_numpy()
    if isinstance(kind, pd.PeriodDtype | pd.IntervalDtype) or kind.kind in "mM":
        return pd.factorize(keys, sort=True)[0]
    text = known.astype(str)
    years = str(keys.name).endswith("year") and text.str.fullmatch(r"\d{4}").all()
    if years or text.str.fullmatch(_TIMES).all():
        return pd.factorize(keys.astype(str), sort=True)[0]
    return None
