"""The objectives that a split of the budget can minimise.

**Privacy**: a function of the tree and of the caller's priorities, which are public.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, did_you_mean, kind_of_object, listed, quote
from pandas_dptree.mechanisms.arguments import real_numbers

__all__ = ["OBJECTIVES", "Objective", "by_level", "cost_weights", "expected_cost"]

FloatArray = npt.NDArray[np.float64]

Objective = Literal["levels", "cells", "worst"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


def cost_weights(
    n_listed: Sequence[float] | FloatArray, objective: Objective, level_weights: FloatArray | None = None
) -> FloatArray:
    """Return the cost of a unit of each level's mean variance: of sum 1, for "worst" of maximum 1.

    "levels" averages the mean variances over the levels, "cells" over all listed nodes; `level_weights` say
    how much the error of each node of a level matters.
    """
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise ArgumentError(
            "objective",
            f"is unknown: {quote(objective)}.",
            hint=f"choose one of {', '.join(map(repr, OBJECTIVES))}.",
        )
    listed = np.asarray(n_listed, dtype=np.float64)
    given = (
        np.ones_like(listed)
        if level_weights is None
        else real_numbers("level_weights", level_weights, hint="leave it out if all levels matter equally.")
    )
    if given.shape != listed.shape or not np.isfinite(given).all() or (given < 0).any():
        raise ArgumentError(
            "level_weights",
            f"must hold a finite number of at least 0 for each of the {len(listed)} levels.",
            hint="leave it out if all levels matter equally.",
        )
    weights = given * (listed if objective == "cells" else listed > 0)
    if not weights.any():
        raise ArgumentError(
            "level_weights", "are 0 for all levels that a table shows.", hint="give one of them a weight."
        )
    return np.asarray(weights / (weights.max() if objective == "worst" else weights.sum()))


def expected_cost(variances: FloatArray, weights: FloatArray, objective: Objective) -> float:
    """Return the cost of the levels' mean variances under an objective, in squared counts.

    Weights are from `cost_weights`. Where one is 0, the variance may be anything.
    """
    costs = np.where(weights > 0, weights, 0.0) * np.where(weights > 0, variances, 0.0)
    return float(costs.max() if objective == "worst" else costs.sum())


def by_level(
    argument: str, values: Mapping[Hashable, float], names: Sequence[Hashable], default: float
) -> FloatArray:
    """Return the numbers of a mapping from level names in the order of the levels, or their default."""
    if not isinstance(values, Mapping):
        raise ArgumentError(
            argument,
            f"must be a mapping from level names to numbers, not {kind_of_object(values)}.",
            hint=f"the levels are {listed(names)}.",
        )
    unknown = [name for name in values if name not in names]
    if unknown:
        raise ArgumentError(
            argument,
            f"names unknown levels: {quote(unknown)}.",
            hint=f"{did_you_mean(unknown, names)}the levels are {listed(names)}.",
        )
    for value in values.values():
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float, np.number))
            or not 0 <= value < np.inf
        ):
            raise ArgumentError(
                argument, f"must hold finite numbers >= 0, not {quote(value)}.", hint="for example 0.25."
            )
    return np.array([values.get(name, default) for name in names], dtype=np.float64)
