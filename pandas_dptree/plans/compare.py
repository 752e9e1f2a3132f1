"""Comparison of plans that spend the same privacy loss on the same domain."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, get_args

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.mechanisms.additive import AdditiveNoise, candidate_noises
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.mechanisms.multiplicative.thresholds import Calibration
from pandas_dptree.planning.objective import by_level
from pandas_dptree.planning.split import SPLITS, Split, level_shares
from pandas_dptree.plans.measurement import FROM_SHARES, Measurement
from pandas_dptree.plans.predicted_errors import estimate_alpha_rmse, predicted_alpha_rmse
from pandas_dptree.privacy.caps import with_leaf_cap
from pandas_dptree.privacy.quantity import COUNT

__all__ = ["compare", "compare_bounds", "level_alpha_rmse", "variant"]

Kind = TypeVar("Kind", bound=Measurement)


def compare(plan: Measurement, alpha: float | None, counts: Mapping[Hashable, float] | None) -> pd.DataFrame:
    """Compare mechanisms and splits for the same loss: see `AdditivePlan.compare`."""
    others = [
        variant(plan, noise, split)
        for noise in candidate_noises("auto", plan.loss)
        for split in SPLITS
        if (noise, split) != (plan.noise, plan.split)
    ]
    if alpha is None:
        if counts is not None:
            raise ArgumentError(
                "counts",
                "has no meaning without alpha.",
                hint="add alpha, a relative error, for example alpha=0.1.",
            )
        return _by_objective([plan, *sorted(others, key=lambda other: other.expected_error)])
    errors = {
        (each.noise.name, str(each.split)): level_alpha_rmse(each, alpha, counts) for each in (plan, *others)
    }
    sizes = _counts(plan, counts)
    for calibration in get_args(Calibration):
        clipped = _thresholds(plan, alpha, calibration)
        if clipped is not None:
            errors["multiplicative", calibration] = clipped.alpha_rmse(sizes)
    table = _table(errors, plan)
    table.insert(len(table.columns), "alpha_mrmse", table.max(axis="columns"), True)
    return pd.concat([table[:1], table[1:].sort_values("alpha_mrmse", kind="stable")])


def compare_bounds(
    plan: Measurement,
    max_contributions: Sequence[int] | None,
    max_per_leaf: Sequence[int | None] | None,
) -> pd.DataFrame:
    """Compare bounds on the rows of a unit, for the same loss and split: see `AdditivePlan.compare`."""
    rows = _listed("max_contributions", max_contributions, plan.max_contributions)
    leaves = _listed("max_per_leaf", max_per_leaf, plan.max_per_leaf)
    bounds = [(most, most_in_leaf) for most in rows for most_in_leaf in leaves]
    plans = [_bounded(plan, *each) for each in bounds]
    per_unit, per_leaf = zip(*bounds, strict=True)
    index = pd.MultiIndex.from_arrays(
        [pd.array(per_unit, dtype="Int64"), pd.array(per_leaf, dtype="Int64")],
        names=["max_contributions", "max_per_leaf"],
    )
    table = pd.DataFrame([each.std_errors for each in plans], index=index, columns=list(plan.level_names))
    table.insert(len(table.columns), "objective", [each.expected_error for each in plans], True)
    return table


def _listed(argument: str, given: object, own: int | None) -> list[Any]:
    """Check a list of bounds; None stands for that of the plan."""
    if given is None:
        return [own]
    numbers = given.tolist() if isinstance(given, np.ndarray) else given
    whole = isinstance(numbers, list | tuple | range) and all(
        isinstance(each, int | np.integer | None) and not isinstance(each, bool) for each in numbers
    )
    if not whole or not numbers:
        raise ArgumentError(
            argument,
            f"must list whole numbers to compare, not be {kind_of_object(given)}.",
            hint=f"for example {argument}=[1, 3].",
        )
    return list(numbers)  # type: ignore[arg-type]


def _bounded(plan: Kind, max_contributions: int, max_per_leaf: int | None) -> Kind:
    """Plan the same release with other bounds on the rows of a unit."""
    caps = with_leaf_cap(plan.caps, len(plan.level_names), max_per_leaf)
    count = None if plan.count is None else _bounded(plan.count, max_contributions, max_per_leaf)
    bounds: dict[str, Any] = {"max_contributions": max_contributions, "caps": caps, "count": count}
    bounded = replace(plan, unit_noise_scales=FROM_SHARES, **bounds)
    return bounded if plan.split == "given" else variant(bounded, plan.noise, plan.split)


def _by_objective(plans: Sequence[Measurement]) -> pd.DataFrame:
    """Tabulate each plan's standard errors, and its error under the objective."""
    table = _table({(each.noise.name, str(each.split)): each.std_errors for each in plans}, plans[0])
    table.insert(len(table.columns), "objective", [each.expected_error for each in plans], True)
    table.insert(len(table.columns), "gap", [each.gap for each in plans], True)
    return table


def _table(errors: Mapping[tuple[str, str], FloatArray], plan: Measurement) -> pd.DataFrame:
    index = pd.MultiIndex.from_tuples(errors, names=["mechanism", "split"])
    return pd.DataFrame(list(errors.values()), index=index, columns=list(plan.level_names))


def _counts(plan: Measurement, counts: Mapping[Hashable, float] | None) -> FloatArray:
    return by_level("counts", {} if counts is None else counts, plan.level_names, 0.0)


def _thresholds(plan: Measurement, alpha: float, calibration: Calibration) -> ClippedThresholds | None:
    """Return the thresholds that the plan's loss affords on its tree, if there are any."""
    if plan.quantity != COUNT:
        return None
    mechanism = Multiplicative(alpha=alpha, calibration=calibration, clip=True)
    moved = plan.quantity.sensitivity(neighbors=plan.neighbors, max_contributions=plan.max_contributions).l1
    chain = mechanism.affordable_thresholds(plan.loss, moved, plan._shape.depth + 1)
    assert chain is None or isinstance(chain, ClippedThresholds)
    return chain


def level_alpha_rmse(plan: Measurement, alpha: float, counts: Mapping[Hashable, float] | None) -> FloatArray:
    """Predict the largest alpha-RMSE of each level: see `AdditivePlan.alpha_rmse`."""
    unit = float(plan.quantity.unit)
    largest = np.zeros(plan._shape.depth + 1)
    for level, truth in enumerate(_counts(plan, counts) / unit):
        exact = plan.known.exact[level]
        if plan._estimator.combines_levels or plan.count is not None:
            variances = plan._error_variances[level]
            errors = estimate_alpha_rmse(variances, plan.error_cumulants[level], truth, alpha)
        else:
            scales = plan.unit_noise_scales[level : level + 1]
            errors = predicted_alpha_rmse(plan.noise, np.where(exact, 1.0, scales), truth, alpha)
        largest[level] = unit * plan._shape.max_listed(level, np.where(exact, 0.0, errors))
    return largest


def variant(plan: Kind, noise: AdditiveNoise, split: Split) -> Kind:
    """Plan the same release with another noise and split."""
    shares = level_shares(
        plan.tree,
        noise=noise,
        loss=plan.loss,
        sensitivity=plan.sensitivity,
        split=split,
        level_weights=plan.level_weights,
        objective=plan.objective,
        least_squares=plan._estimator.combines_levels,
        known=plan.known.exact,
    )
    count = None if plan.count is None else variant(plan.count, noise, split)
    return replace(
        plan, noise=noise, split=split, budget_shares=shares, unit_noise_scales=FROM_SHARES, count=count
    )
