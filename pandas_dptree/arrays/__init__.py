"""Verbs on arrays of counts, as plain typed functions."""

from pandas_dptree.arrays import several
from pandas_dptree.arrays.distributions import cdf, plan_distribution, quantiles
from pandas_dptree.arrays.tables import plan, release, tree_counts, tree_sums

__all__ = ["cdf", "plan", "plan_distribution", "quantiles", "release", "several", "tree_counts", "tree_sums"]


def __dir__() -> list[str]:
    """List only the public names, for completion."""
    return __all__
