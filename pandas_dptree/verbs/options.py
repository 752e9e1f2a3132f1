"""What each public function takes: groups of the options that `pandas_dptree.plans.options` lists."""

from __future__ import annotations

from pandas_dptree.plans.options import (
    Aiming,
    AnyMechanism,
    ArrayOptions,
    CellOptions,
    Estimating,
    JointOptions,
    Judging,
    Keys,
    Knowing,
    Loss,
    Running,
    Splitting,
    SumOptions,
    Tolerance,
    Unit,
)

__all__ = [
    "PlanArray",
    "ReleaseArrayCounts",
    "ReleaseArraySums",
    "ReleaseCounts",
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


class PlanArray(ArrayOptions, Aiming, Knowing, total=False):
    """Of `arrays.plan`."""


class ReleaseArrayCounts(ArrayOptions, Knowing, Running, total=False):
    """Of `arrays.tree_counts`."""


class ReleaseArraySums(ArrayOptions, Running, total=False):
    """Of `arrays.tree_sums`."""


class ReleaseSeveral(CellOptions, Running, total=False):
    """Of `arrays.several.tree_counts` and `arrays.several.tree_sums`."""
