"""What the measurements of a release say about mistakes that are no errors: see `output.doubtful_tables`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from pandas_dptree.errors import quote
from pandas_dptree.estimation.least_squares import subtree_estimates
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.stated_counts import node_names
from pandas_dptree.output.doubtful_tables import Doubt, Level, contradictions, empty_values, mostly_noise
from pandas_dptree.plans.measurement import Levels, Measured, Measurement
from pandas_dptree.privacy.quantity import COUNT

__all__ = ["doubts_of"]


def doubts_of(
    measured: Mapping[Hashable, tuple[Measurement, Measured]],
    domain: Domain | CrossedDomain | None,
    means: Mapping[Hashable, Sequence[Level]] | None = None,
) -> list[Doubt]:
    """Say what is doubtful about quantities of the same records, measured on a tree or on parallel ones.

    `domain` has the labels of one tree. `means` has those that are shown instead of sums.
    """
    doubts: list[Doubt] = []
    noise: list[Doubt] = []
    by_value = domain is not None
    for name, (plan, values) in sorted(measured.items(), key=lambda item: item[1][0].quantity != COUNT):
        if isinstance(plan._shape, ProductTree):
            noise += mostly_noise(name, _of_margins(plan, values), _remedies(plan))
            continue
        quantity, variances = plan.shown_quantity, plan._variances
        estimates, below = subtree_estimates(plan.tree, values.noisy, variances, values.excess)
        levels = list(map(Level, *_shown(plan, values, estimates)))
        if plan.statistic != "units" and any(exact.any() for exact in plan.known.exact):
            leaves = estimates[-1] if values.leaves is None else values.leaves.astype(np.float64)
            independent = map(
                Level,
                (*below, leaves),
                (*variances.children, plan.noise.variance(plan.unit_noise_scales[-1:])),
            )
            doubts += contradictions(plan.known, list(independent), node_names(plan.hierarchy))
        if by_value and isinstance(domain, Domain) and (quantity.low >= 0 or quantity.high <= 0):
            upward = levels if quantity.low >= 0 else [Level(-x, variance) for x, variance in levels]
            doubts += empty_values(domain, upward)
            by_value = False  # other quantities lack the same rows
        noise += mostly_noise(name, (means or {}).get(name, levels), _remedies(plan))
    return doubts or noise  # where rows were dropped, noise is what remains


def _shown(plan: Measurement, values: Measured, estimates: Levels) -> tuple[Levels, Levels]:
    """Return what the table shows for the estimates of each subtree by itself, and the variances."""
    if plan.count is None or values.count is None:
        return estimates, plan._variances.subtree
    variances = plan.count._variances
    counts, _ = subtree_estimates(plan.tree, values.count.noisy, variances)
    return (
        plan._beside_count(estimates, counts),
        plan._beside_count(plan._variances.subtree, variances.subtree, 2),
    )


def _of_margins(plan: Measurement, values: Measured) -> list[Level]:
    """Return what was measured of each margin of crossed hierarchies, and the variance of its noise."""
    grand_total, *others = [
        Level(np.zeros(1), np.zeros(1)) if noisy is None else Level(noisy.astype(np.float64), variance)
        for noisy, variance in zip(values.noisy, plan._measured_variances, strict=True)
    ]
    return [grand_total, *(level for level in others if level.variances.any())]


def _remedies(plan: Measurement) -> str:
    """What makes a table less noisy."""
    column = plan.quantity.column
    changes = [] if column is None else [f"tighter bounds of {quote(column)}"]
    bound = "max_nodes" if plan.statistic == "units" else "max_contributions"
    changes += [f"a smaller {bound}"] if plan.max_contributions > 1 else []
    return f"choose {', '.join([*changes, 'fewer or larger nodes'])} or a larger privacy loss."
