"""What the papers' comparisons need: lower bounds, trees and reconstructions in theory, and error measures.

No verb uses anything here. Lower bounds on the error of a release: `gaussian_lower_bound` is for additive
Gaussian noise with least squares, and for the mean error, which plans minimize; `packing_error`,
`factorization_error` and `single_count_error` are for the worst error and for every mechanism. `error_bounds`
compares them with what this package achieves.

**Privacy**: errors that are measured against the truth are as secret as the truth. Predicted errors are
public if the counts for which they are predicted are. Everything else is a function of public parameters and
of noisy measurements.

**Errors**: functions raise an `ArgumentError` that names the argument that is out of its range, or a
`ColumnsError` if a table lacks a column.

**Sources**: Ghazi, Kamath, Kumar, Manurangsi and Wu, "On differentially private counting on trees", 2023;
Rameshwar, Tandon and Sharma, "Optimal tree-based mechanisms for differentially private approximate CDFs",
2024.
"""

from pandas_dptree.distribution.cumulative import cumulative_variances, range_variances
from pandas_dptree.distribution.optimal import best_tree
from pandas_dptree.estimation.monotone import consistent_cdf
from pandas_dptree.planning.gaussian_bound import gaussian_lower_bound
from pandas_dptree.plans.predicted_errors import (
    accuracy_from_rmse,
    estimate_alpha_rmse,
    predicted_alpha_rmse,
    relative_error_from_rmse,
)
from pandas_dptree.theory.best_levels import (
    best_branching_factor,
    optimal_branching,
    optimal_budgets,
    optimal_real_tree,
)
from pandas_dptree.theory.certificate import Certificate, certify
from pandas_dptree.theory.cumulative_bound import cumulative_lower_bound
from pandas_dptree.theory.cumulative_sums import from_thresholds
from pandas_dptree.theory.empirical import (
    accuracy,
    alpha_rmse,
    is_accurate,
    l2_error,
    linf_error,
    max_alpha_rmse,
    smoothed_relative_error,
)
from pandas_dptree.theory.factorization_bound import (
    factorization_error,
    factorization_norm,
    witness,
    worst_node_shares,
)
from pandas_dptree.theory.level_uniform import histogram_error, refined_error, threshold_error, tree_error
from pandas_dptree.theory.overview import error_bounds
from pandas_dptree.theory.packing import (
    decode,
    packing_error,
    packing_threshold,
    published_packing_threshold,
    step_loss,
)
from pandas_dptree.theory.range_estimates import cover, expected_maximum_bound, interval_estimates
from pandas_dptree.theory.reconstruction import (
    average_covers,
    average_covers_variances,
    least_squares_sums,
    left_cover,
    left_cover_variances,
)
from pandas_dptree.theory.single_count import noise_floor, single_count_error
from pandas_dptree.theory.tree_search import optimal_tree

__all__ = [
    "Certificate",
    "accuracy",
    "accuracy_from_rmse",
    "alpha_rmse",
    "average_covers",
    "average_covers_variances",
    "best_branching_factor",
    "best_tree",
    "certify",
    "consistent_cdf",
    "cover",
    "cumulative_lower_bound",
    "cumulative_variances",
    "decode",
    "error_bounds",
    "estimate_alpha_rmse",
    "expected_maximum_bound",
    "factorization_error",
    "factorization_norm",
    "from_thresholds",
    "gaussian_lower_bound",
    "histogram_error",
    "interval_estimates",
    "is_accurate",
    "l2_error",
    "least_squares_sums",
    "left_cover",
    "left_cover_variances",
    "linf_error",
    "max_alpha_rmse",
    "noise_floor",
    "optimal_branching",
    "optimal_budgets",
    "optimal_real_tree",
    "optimal_tree",
    "packing_error",
    "packing_threshold",
    "predicted_alpha_rmse",
    "published_packing_threshold",
    "range_variances",
    "refined_error",
    "relative_error_from_rmse",
    "single_count_error",
    "smoothed_relative_error",
    "step_loss",
    "threshold_error",
    "tree_error",
    "witness",
    "worst_node_shares",
]


def __dir__() -> list[str]:
    """List only the public names, for completion."""
    return __all__
