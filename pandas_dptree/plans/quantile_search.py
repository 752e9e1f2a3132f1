"""The plan for quantiles of a column that the arguments ask for."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import Domain, Source
from pandas_dptree.hierarchy.grid import MOST_POINTS, BinMiddles, Grid
from pandas_dptree.mechanisms.additive import MECHANISMS
from pandas_dptree.mechanisms.exponential import SMALLEST_EXPONENT
from pandas_dptree.output.distribution import levels_of_quantiles
from pandas_dptree.plans.distribution_groups import check_columns, known_totals
from pandas_dptree.plans.distribution_search import best_distribution_plan
from pandas_dptree.plans.doubtful_arguments import warn_of_arguments
from pandas_dptree.plans.options import QUANTILES, NoisyOptions, stated_loss, with_defaults
from pandas_dptree.plans.quantile_draws import Draws, drawable, exponents_of
from pandas_dptree.plans.quantiles import QuantilePlan, hierarchy_above
from pandas_dptree.privacy.quantity import granularity_between
from pandas_dptree.privacy.unit import protected

__all__ = ["find_middles_plan", "find_quantile_plan"]

MOST_DRAWN, LEAST_GAP = 3, Fraction(1, 4)
"""Up to so many quantiles with gaps of at least this are drawn, unless the caller says otherwise."""

_N_BINS = 1000
"""The number of bins of trees, unless the caller says otherwise."""

_FEWEST_WHOLE = 100
"""Whole bounds that are closer may be meant for fractions, so the granularity must be stated."""

_TIMES = [int(pd.Timedelta(1, each).as_unit("ns").value) for each in ("D", "h", "min", "s", "ms", "us", "ns")]
"""Granularities of times in nanoseconds, from the coarsest to the finest."""

_ENOUGH = 10**5
"""The least number of steps of a default granularity of times."""

_MOST_PLACES = 2**61
"""Groups times points of the grid: numbers of places fit into 64 bits."""


def find_quantile_plan(
    column: Hashable,
    q: Any,
    *,
    bounds: Any = None,
    bins: Any = None,
    granularity: Any = None,
    domain: Domain | None = None,
    **options: Unpack[NoisyOptions],
) -> QuantilePlan:
    """Choose how quantiles are found: see `pandas_dptree.plan_quantiles`."""
    given = with_defaults(QUANTILES, options)
    mechanism, confidence = given["mechanism"], given["confidence"]
    levels = sorted(levels_of_quantiles(q).tolist())
    check_columns(column, domain)
    loss, totals = stated_loss(given), known_totals(domain, given["known"])
    warn_of_arguments(loss, domain, int(totals[0][0]) if totals[0][0] >= 0 else None)
    keys = () if domain is None else domain.by
    unit, most = protected(given["privacy_unit"], given["max_contributions"], taken=(column, *keys))
    depth = 0 if domain is None else domain.tree.depth
    n_trees = depth if confidence is None else depth + 1
    trees, draws = None, None
    has_bins = bins is not None or not _is_auto(given["strategy"])
    if _are_drawn(levels, mechanism, has_bins=has_bins):
        grid = _grid(column, bounds, granularity)
        _check_size(grid, domain)
        of_trees, of_draws = loss.divide([n_trees, 1]) if n_trees else (loss, loss)
        draws = Draws.within(grid, of_draws, len(levels), permutes=depth == 0)
        drawing = draws.drawing(given["neighbors"], most, several=len(levels) > 1 or depth > 0)
        if mechanism == "auto" and min(exponents_of(drawing, levels)) < SMALLEST_EXPONENT:
            draws, granularity = None, None
    if draws is not None and n_trees:
        n_bins = _n_bins(column, bounds, bins)
        above = hierarchy_above(domain, n_trees)
        given["mechanism"] = "auto"
        trees = best_distribution_plan(grid.bins(n_bins), above, of_trees, totals[:n_trees], given)
    elif draws is not None:
        _refuse_options_of_trees(bins, given)
    else:
        if granularity is not None:
            raise ArgumentError(
                "granularity",
                "has no meaning for quantiles that are read from a tree over bins.",
                hint='pass mechanism="exponential" to draw them from a grid, or leave it out.',
            )
        edges = Bins.of(column, bounds=bounds, bins=_N_BINS if bins is None else bins)
        trees = best_distribution_plan(edges, domain, loss, totals, given)
    return QuantilePlan(
        q=tuple(levels),
        domain=domain,
        draws=draws,
        trees=trees,
        confidence=confidence,
        loss=loss,
        neighbors=given["neighbors"],
        privacy_unit=unit,
        max_contributions=most,
    )


def _n_bins(column: Hashable, bounds: Any, bins: Any) -> int:
    """Return the number of bins of trees beside draws: their edges follow from the grid."""
    if bins is None:
        return _N_BINS
    if not isinstance(bins, (int, np.integer)):
        raise ArgumentError(
            "bins",
            f"must be a number for quantiles that are drawn from a grid, not {quote(bins)}.",
            hint='for example bins=100; mechanism="laplace" reads them from a tree over bins of any edges.',
        )
    return Bins.of(column, bounds=bounds, bins=bins).n_bins


def _refuse_options_of_trees(bins: Any, given: Mapping[str, Any]) -> None:
    """Refuse what only trees need; there are none."""
    set_to = {
        "bins": bins is not None,
        "strategy": not _is_auto(given["strategy"]),
        "known": given["known"] is not None,
    }
    for name, is_set in set_to.items():
        if is_set:
            raise ArgumentError(
                name,
                "has no meaning for quantiles that are drawn, without groups or `confidence`.",
                hint='leave it out, or pass mechanism="laplace" for a tree over bins.',
            )


def _is_auto(strategy: object) -> bool:
    return isinstance(strategy, str) and strategy == "auto"


def find_middles_plan(bins: Bins, q: Any, *, source: Source, **options: Unpack[NoisyOptions]) -> QuantilePlan:
    """Plan to draw one quantile of counts in bins from the middles of these; `source` is that of the bins."""
    given = with_defaults(QUANTILES, options)
    levels = levels_of_quantiles(q).tolist()
    if len(levels) > 1:
        raise ArgumentError(
            "q",
            "must be a single number to be drawn from counts in bins.",
            hint='mechanism="laplace" or "gaussian" finds several quantiles.',
        )
    _refuse_options_of_trees(None, given)
    _are_drawn(levels, "exponential", has_bins=False)
    loss = stated_loss(given)
    warn_of_arguments(loss, None)
    return QuantilePlan(
        q=tuple(levels),
        domain=None,
        draws=Draws.within(BinMiddles(bins), loss, 1, permutes=True),
        trees=None,
        source=source,
        loss=loss,
        neighbors=given["neighbors"],
        privacy_unit=None,
        max_contributions=given["max_contributions"],
    )


def _are_drawn(levels: Sequence[float], mechanism: object, *, has_bins: bool) -> bool:
    """Whether quantiles are drawn from a grid; what a draw cannot find is refused if it is asked for."""
    names = (*MECHANISMS, "exponential")
    if not isinstance(mechanism, str) or mechanism not in names:
        raise ArgumentError(
            "mechanism",
            f"is unknown: {quote(mechanism)}.",
            hint=f"choose {', '.join(map(quote, names))}.",
        )
    if mechanism not in ("auto", "exponential"):
        return False
    fractions = drawable(levels)
    if mechanism == "exponential" and fractions is None:
        raise ArgumentError(
            "q",
            "must be different fractions above 0 and below 1, with denominators up to 1000, to be drawn.",
            hint='for example [0.25, 0.5, 0.75]; mechanism="laplace" finds any, 0 and 1 too.',
        )
    if mechanism == "exponential":
        return True
    if fractions is None or has_bins:
        return False
    gaps = [after - before for before, after in pairwise([Fraction(0), *fractions, Fraction(1)])]
    return len(levels) <= MOST_DRAWN and min(gaps) >= LEAST_GAP


def _grid(column: Hashable, bounds: Any, granularity: Any) -> Grid:
    """Read public bounds, and the granularity or its default."""
    if bounds is None:
        raise ArgumentError(
            "bounds",
            "must be given to draw quantiles.",
            hint="for example bounds=(0, 200), known without looking at the records.",
        )
    ends = Bins.of(column, bounds=bounds, bins=1)
    if ends.is_time:
        return Grid(ends, Fraction(_step(ends, bounds, granularity)))
    if granularity is None and all(map(_is_whole, bounds)):
        width = int(bounds[1]) - int(bounds[0])
        if width < _FEWEST_WHOLE:
            raise ArgumentError(
                "granularity",
                f"must be given: there are only {width + 1} whole numbers between the bounds.",
                hint="granularity=1 if all values are whole numbers; for fractions, 0.001 for example.",
            )
        granularity = 1 if width < MOST_POINTS else None
    low, high = ends.edges.tolist()
    return Grid(ends, granularity_between((low, high), granularity))


def _is_whole(bound: Any) -> bool:
    return isinstance(bound, (int, np.integer)) and not isinstance(bound, (bool, np.timedelta64))


def _step(ends: Bins, bounds: Any, granularity: Any) -> int:
    """Return the granularity of times in nanoseconds: one day between dates, otherwise one of `_TIMES`."""
    if granularity is not None:
        step = 0
        if isinstance(granularity, (str, datetime.timedelta, np.timedelta64)):
            with suppress(ValueError, OverflowError):
                step = int(pd.Timedelta(granularity).as_unit("ns").value)
        if step <= 0:
            raise ArgumentError(
                "granularity",
                f"must be a positive duration, not {quote(granularity)}.",
                hint="for example pd.Timedelta(1, 'D').",
            )
        return step
    if all(isinstance(each, datetime.date) and not isinstance(each, datetime.datetime) for each in bounds):
        return _TIMES[0]
    first, last = ends.edges.view(np.int64).tolist()
    return next((step for step in _TIMES if last - first >= _ENOUGH * step), 1)


def _check_size(grid: Grid, domain: Domain | None) -> None:
    """Refuse more places than can be numbered."""
    n_groups = 1 if domain is None else domain.tree.n_leaves
    if n_groups * grid.size > _MOST_PLACES:
        raise ArgumentError(
            "granularity",
            f"makes {grid.size:,} points in each of {n_groups:,} groups: too many to be numbered.",
            hint="pass a coarser granularity.",
        )
