"""Comparison of plans for crossed hierarchies that spend the same privacy loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.mechanisms.additive import AdditiveNoise, candidate_noises
from pandas_dptree.planning.crossed_alternatives import concatenated_variances, separate_variances
from pandas_dptree.planning.crossed_split import crossed_shares
from pandas_dptree.planning.objective import cost_weights, expected_cost
from pandas_dptree.planning.split import SPLITS, Split
from pandas_dptree.plans.measurement import FROM_SHARES, Measurement

__all__ = ["compare_crossed"]


def compare_crossed(plan: Any) -> pd.DataFrame:
    """Compare mechanisms and splits for the same loss: see `CrossedPlan.compare`."""
    others = [
        _variant(plan, noise, split)
        for noise in candidate_noises("auto", plan.loss)
        for split in SPLITS
        if (noise, split) != (plan.noise, plan.split)
    ]
    plans = [plan, *sorted(others, key=lambda other: other.expected_error)]
    return pd.concat([_tabulated(plan, plans), _without_crossing(plan)])


def _without_crossing(plan: Any) -> pd.DataFrame:
    """Tabulate the errors of one concatenated hierarchy, and of separate tables, for the same margins."""
    given = plan.tree, plan.noise, plan.loss, plan.sensitivity
    variances = {"nested": concatenated_variances(*given), "separate": separate_variances(*given)}
    weights = cost_weights(plan._n_listed, plan.objective, plan.level_weights)
    rows = {}
    for name, own in variances.items():
        errors = plan._in_column_units(np.sqrt(own))
        cost = math.sqrt(expected_cost(errors**2, weights, plan.objective))
        rows[plan.noise.name, name] = [*errors[_shown(plan)], cost, None]
    index = pd.MultiIndex.from_tuples(rows, names=["mechanism", "split"])
    return pd.DataFrame(list(rows.values()), index=index, columns=[*_names(plan), "objective", "gap"])


def _shown(plan: Any) -> list[int]:
    return list(map(plan.tree.level_of, plan.tree.shown))


def _names(plan: Any) -> list[str]:
    return [plan.level_names[level] for level in _shown(plan)]


def _variant(plan: Any, noise: AdditiveNoise, split: Split) -> Any:
    """Plan the same release with another noise and split."""
    shares = crossed_shares(
        plan.tree,
        noise=noise,
        loss=plan.loss,
        sensitivity=plan.sensitivity,
        split=split,
        weights=plan.level_weights,
        objective=plan.objective,
        least_squares=plan._estimator.combines_levels,
        known=plan.known,
    )
    count = None if plan.count is None else _variant(plan.count, noise, split)
    return replace(
        plan, noise=noise, split=split, budget_shares=shares, unit_noise_scales=FROM_SHARES, count=count
    )


def _tabulated(plan: Any, plans: Sequence[Measurement]) -> pd.DataFrame:
    """Tabulate the standard errors of plans for the margins that are shown."""
    index = pd.MultiIndex.from_tuples(
        [(each.noise.name, str(each.split)) for each in plans], names=["mechanism", "split"]
    )
    errors = np.array([each.std_errors[_shown(plan)] for each in plans])
    table = pd.DataFrame(errors, index=index, columns=_names(plan))
    table.insert(len(table.columns), "objective", [each.expected_error for each in plans], True)
    table.insert(len(table.columns), "gap", [each.gap for each in plans], True)
    return table
