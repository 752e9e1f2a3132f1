"""What each public function takes: groups of the options that `pandas_dptree.plans.options` lists."""

from __future__ import annotations

from pandas_dptree.plans.options import (
    Aiming,
    AnyMechanism,
    ArrayOptions,
    Bounds,
    CellOptions,
    DistributionOptions,
    Estimating,
    Groups,
    JointOptions,
    Judging,
    Keys,
    Knowing,
    KnownTotals,
    Loss,
    NamedNoise,
    Relation,
    Running,
    Splitting,
    Strategies,
    SumOptions,
    Tolerance,
    Unit,
)

__all__ = [
    "PlanArray",
    "ReleaseArrayCounts",
    "ReleaseArraySums",
    "ReleaseCounts",
    "ReleaseDistribution",
    "ReleaseSeries",
    "ReleaseSeveral",
    "ReleaseSums",
    "ReleaseTogether",
]


class ReleaseCounts(
    Loss, Unit, Keys, AnyMechanism, Tolerance, Splitting, Judging, Estimating, Knowing, Running, total=False
):
    """Of `tree_counts`."""


class ReleaseSums(SumOptions, Keys, Running, total=False):
    """Of `tree_sums`."""


class ReleaseTogether(JointOptions, Keys, Running, total=False):
    """Of `tree_means` and `tree_agg`."""


class ReleaseDistribution(Bounds, Groups, DistributionOptions, Running, total=False):
    """Of `release_distribution` and its siblings."""


class ReleaseSeries(Bounds, Loss, Relation, NamedNoise, Strategies, KnownTotals, Running, total=False):
    """Of `release_distribution` and its siblings, for a single series."""


class PlanArray(ArrayOptions, Aiming, Knowing, total=False):
    """Of `arrays.plan`."""


class ReleaseArrayCounts(ArrayOptions, Knowing, Running, total=False):
    """Of `arrays.tree_counts`."""


class ReleaseArraySums(ArrayOptions, Running, total=False):
    """Of `arrays.tree_sums`."""


class ReleaseSeveral(CellOptions, Running, total=False):
    """Of `arrays.several.tree_counts` and `arrays.several.tree_sums`."""
