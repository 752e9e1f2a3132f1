"""The search for the best plan for the distribution of a column."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Unpack

from pandas_dptree.distribution.strategies import Strategies
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.distribution_groups import check_columns, known_totals
from pandas_dptree.plans.doubtful_arguments import warn_of_arguments
from pandas_dptree.plans.options import DISTRIBUTION, NoisyOptions, stated_loss, with_defaults
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.unit import protected

__all__ = ["best_distribution_plan", "find_distribution_plan"]

_MAX_CELLS = 10**8
"""The maximum number of bins of all groups of a level together: more would not fit into memory."""


def find_distribution_plan(
    column: Hashable,
    *,
    bins: Any,
    bounds: Any = None,
    domain: Domain | None = None,
    **options: Unpack[NoisyOptions],
) -> DistributionPlan:
    """Find the plan of least expected error: see `pandas_dptree.plan_distribution`."""
    given = with_defaults(DISTRIBUTION, options)
    column_bins = Bins.of(column, bounds=bounds, bins=bins)
    check_columns(column, domain)
    totals = known_totals(domain, given["known"])
    loss = stated_loss(given)
    warn_of_arguments(loss, domain, int(totals[0][0]) if totals[0][0] >= 0 else None)
    return best_distribution_plan(column_bins, domain, loss, totals, given)


def best_distribution_plan(
    bins: Bins,
    domain: Domain | None,
    loss: PrivacyLoss,
    totals: tuple[IntArray, ...],
    given: Mapping[str, Any],
) -> DistributionPlan:
    """Find the plan of least expected error for some bins and groups, with the options that are left."""
    n_groups = 1 if domain is None else max(domain.tree.level_sizes)
    if n_groups * bins.n_bins > _MAX_CELLS:
        raise ArgumentError(
            "bins",
            f"are too many: {bins.n_bins:,} in each of {n_groups:,} groups; all groups together can "
            f"have at most {_MAX_CELLS:,}.",
            hint="use fewer bins, or leave out the finest level of the groups.",
        )
    keys = () if domain is None else domain.by
    unit, most = protected(given["privacy_unit"], given["max_contributions"], taken=(bins.column, *keys))
    strategies = Strategies(bins.n_bins, loss, given["neighbors"], most, len(totals))
    known_total = all((each >= 0).all() for each in totals)
    return DistributionPlan(
        bins=bins,
        domain=domain,
        loss=loss,
        neighbors=given["neighbors"],
        privacy_unit=unit,
        max_contributions=most,
        totals=totals,
        strategy=strategies.best(given["mechanism"], given["strategy"], known_total=known_total),
    )
