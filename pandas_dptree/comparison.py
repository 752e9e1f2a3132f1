"""Plans that could spend the same privacy loss on the same domain, side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from pandas_dptree.mechanisms.additive import AdditiveNoise, Gaussian, Laplace
from pandas_dptree.planning.split import SPLITS, Split, split_budget

if TYPE_CHECKING:
    from pandas_dptree.plan import Plan

__all__ = ["compare", "variant"]


def compare(plan: Plan) -> pd.DataFrame:
    """Race the mechanisms and splits that could spend the same loss: see `Plan.compare`."""
    others = [
        variant(plan, noise, split)
        for noise in (Laplace(), Gaussian())
        if noise.can_give(plan.loss)
        for split in SPLITS
        if split != "nodes" or (isinstance(noise, Gaussian) and plan.consistency != "none")
        if (noise, split) != (plan.noise, plan.split)
    ]
    plans = [plan, *sorted(others, key=lambda other: other.expected_error)]
    index = pd.MultiIndex.from_tuples(
        [(each.noise.name, each.split) for each in plans], names=["mechanism", "split"]
    )
    table = pd.DataFrame([each.std_errors for each in plans], index=index, columns=list(plan.level_names))
    table.insert(len(table.columns), "objective", [each.expected_error for each in plans], True)
    table.insert(len(table.columns), "gap", [each.gap for each in plans], True)
    return table


def variant(plan: Plan, noise: AdditiveNoise, split: Split) -> Plan:
    """Plan the same release with another noise and another split."""
    shares = split_budget(
        plan.tree,
        noise=noise,
        loss=plan.loss,
        sensitivity=plan.sensitivity,
        split=split,
        level_weights=plan.level_weights,
        objective=plan.objective,
        least_squares=plan.consistency != "none",
        known=plan.known.exact,
    )
    return replace(plan, noise=noise, split=split, node_shares=shares)
