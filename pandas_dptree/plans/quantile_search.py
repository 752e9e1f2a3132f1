"""The plan for quantiles of a column that the arguments ask for."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.grid import MOST_POINTS, Grid
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive import MECHANISMS, Mechanism
from pandas_dptree.output.distribution import levels_of_quantiles
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.distribution_groups import check_columns, known_totals
from pandas_dptree.plans.distribution_search import best_distribution_plan
from pandas_dptree.plans.doubtful_arguments import warn_of_arguments
from pandas_dptree.plans.options import DISTRIBUTION, NoisyOptions, stated_loss, with_defaults
from pandas_dptree.plans.quantiles import Draws, QuantilePlan, fraction_of, hierarchy_above
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import Quantity

__all__ = ["QuantileMechanism", "find_quantile_plan"]

QuantileMechanism = Mechanism | Literal["exponential"]

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
    mechanism: QuantileMechanism = "auto",
    confidence: float | None = None,
    domain: Domain | None = None,
    **options: Unpack[NoisyOptions],
) -> QuantilePlan:
    """Choose how quantiles are found: see `pandas_dptree.plan_quantiles`."""
    given = with_defaults(DISTRIBUTION, options)
    levels = sorted(levels_of_quantiles(q).tolist())
    check_columns(column, domain)
    loss, totals = stated_loss(given), known_totals(domain, given["known"])
    warn_of_arguments(loss, domain, int(totals[0][0]) if totals[0][0] >= 0 else None)
    trees, draws = None, None
    has_bins = bins is not None or given["strategy"] != "auto"
    if _are_drawn(levels, mechanism, has_bins=has_bins):
        depth = 0 if domain is None else domain.tree.depth
        n_trees = depth if confidence is None else depth + 1
        if has_bins and not n_trees:
            raise ArgumentError(
                "bins" if bins is not None else "strategy",
                "has no meaning for quantiles that are drawn, without groups or `confidence`.",
                hint='leave it out, or pass mechanism="laplace" for a tree over bins.',
            )
        grid = _grid(column, bounds, granularity)
        _check_size(grid, domain)
        of_trees, of_draws = loss.divide([n_trees, 1]) if n_trees else (loss, loss)
        draws = Draws.within(grid, of_draws, len(levels), permutes=depth == 0)
        if n_trees:
            given["mechanism"] = "auto"
            n_bins = _N_BINS if bins is None else Bins.of(column, bounds=bounds, bins=bins).n_bins
            above = hierarchy_above(domain, n_trees)
            trees = best_distribution_plan(grid.bins(n_bins), above, of_trees, totals[:n_trees], given)
    else:
        if granularity is not None:
            raise ArgumentError(
                "granularity",
                "has no meaning for quantiles that are read from a tree over bins.",
                hint='pass mechanism="exponential" to draw them from a grid, or leave it out.',
            )
        given["mechanism"] = mechanism
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
        privacy_unit=given["privacy_unit"],
        max_contributions=given["max_contributions"],
    )
