"""The options of each public function, combined from the groups in `pandas_dptree.plans.options`."""

from __future__ import annotations

from pandas_dptree.plans.options import (
    AnyMechanism,
    AnySplit,
    ArrayOptions,
    Bounds,
    CellDistributionOptions,
    CellOptions,
    DistributionOptions,
    ErrorObjective,
    Estimation,
    Groups,
    JointOptions,
    Keys,
    KnownCounts,
    KnownTotals,
    Loss,
    NamedNoise,
    PrivateColumns,
    Relation,
    Running,
    Strategies,
    SumOptions,
    TargetErrors,
    Tolerance,
    Unit,
)

__all__ = [
    "PlanArray",
    "ReleaseArrayCounts",
    "ReleaseArraySums",
    "ReleaseCells",
    "ReleaseCounts",
    "ReleaseDistribution",
    "ReleaseSeries",
    "ReleaseSeveral",
    "ReleaseSums",
    "ReleaseTogether",
]


class ReleaseCounts(
    Loss,
    Unit,
    Keys,
    PrivateColumns,
    AnyMechanism,
    Tolerance,
    AnySplit,
    ErrorObjective,
    Estimation,
    KnownCounts,
    Running,
    total=False,
):
    """Options of `tree_counts`."""


class ReleaseSums(SumOptions, Keys, Running, total=False):
    """Options of `tree_sums`."""


class ReleaseTogether(JointOptions, Keys, Running, total=False):
    """Options of `tree_means` and `tree_agg`."""


class ReleaseDistribution(Bounds, Groups, DistributionOptions, Running, total=False):
    """Options of `release_distribution` and its siblings."""


class ReleaseSeries(Bounds, Loss, Relation, NamedNoise, Strategies, KnownTotals, Running, total=False):
    """Options of `release_distribution` and its siblings for a single series."""


class PlanArray(ArrayOptions, TargetErrors, KnownCounts, total=False):
    """Options of `arrays.plan`."""


class ReleaseArrayCounts(ArrayOptions, KnownCounts, Running, total=False):
    """Options of `arrays.tree_counts`."""


class ReleaseArraySums(ArrayOptions, Running, total=False):
    """Options of `arrays.tree_sums`."""


class ReleaseSeveral(CellOptions, Running, total=False):
    """Options of `arrays.several.tree_counts` and `arrays.several.tree_sums`."""


class ReleaseCells(CellDistributionOptions, Running, total=False):
    """Options of `arrays.cdf` and `arrays.quantiles`."""
