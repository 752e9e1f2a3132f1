"""Distributions of a numeric column: trees over bins, measurement strategies, and their errors.

Everything here is a function of public parameters and of noisy measurements; no record is read.

**Source**: Rameshwar, Tandon and Sharma, "Optimal tree-based mechanisms for differentially private
approximate CDFs", 2024.
"""

from pandas_dptree.distribution.intervals import cover, expected_maximum_bound, interval_estimates
from pandas_dptree.distribution.level_uniform import (
    best_branching_factor,
    histogram_error,
    optimal_branching,
    optimal_budgets,
    optimal_real_tree,
    refined_error,
    threshold_error,
    tree_error,
)
from pandas_dptree.distribution.optimal import best_tree, prefix_lower_bound
from pandas_dptree.distribution.prefix import prefix_variances, range_variances
from pandas_dptree.distribution.reconstruction import (
    average_covers,
    average_covers_variances,
    least_squares_prefixes,
    left_cover,
    left_cover_variances,
)
from pandas_dptree.distribution.tree_search import optimal_tree
from pandas_dptree.estimation.monotone import consistent_cdf

__all__ = [
    "average_covers",
    "average_covers_variances",
    "best_branching_factor",
    "best_tree",
    "consistent_cdf",
    "cover",
    "expected_maximum_bound",
    "histogram_error",
    "interval_estimates",
    "least_squares_prefixes",
    "left_cover",
    "left_cover_variances",
    "optimal_branching",
    "optimal_budgets",
    "optimal_real_tree",
    "optimal_tree",
    "prefix_lower_bound",
    "prefix_variances",
    "range_variances",
    "refined_error",
    "threshold_error",
    "tree_error",
]


def __dir__() -> list[str]:
    """List only the public names, for completion."""
    return __all__
