"""Comparison of plans for crossed hierarchies that spend the same privacy loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.mechanisms.additive import AdditiveNoise, candidate_noises
from pandas_dptree.planning.crossed_split import crossed_shares
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
    return _tabulated(plan, plans)


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
    shown = list(map(plan.tree.level_of, plan.tree.shown))
    index = pd.MultiIndex.from_tuples(
        [(each.noise.name, str(each.split)) for each in plans], names=["mechanism", "split"]
    )
    names = [plan.level_names[level] for level in shown]
    table = pd.DataFrame(np.array([each.std_errors[shown] for each in plans]), index=index, columns=names)
    table.insert(len(names), "objective", [each.expected_error for each in plans], True)
    table.insert(len(names) + 1, "gap", [each.gap for each in plans], True)
    return table
