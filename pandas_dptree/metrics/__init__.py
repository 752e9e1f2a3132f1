"""Errors of releases: measured in simulations, and predicted from the noise.

The error measures are those of Ghazi, Kamath, Kumar, Manurangsi and Wu, "On differentially private counting
on trees", 2023.

**Privacy**: errors that are measured against the truth are as secret as the truth. Predicted errors are
public if the counts for which they are predicted are.
"""

from pandas_dptree.metrics.empirical import (
    accuracy,
    alpha_rmse,
    is_accurate,
    l2_error,
    linf_error,
    max_alpha_rmse,
    smoothed_relative_error,
)
from pandas_dptree.metrics.predicted import (
    accuracy_from_rmse,
    estimate_alpha_rmse,
    predicted_alpha_rmse,
    relative_error_from_rmse,
)

__all__ = [
    "accuracy",
    "accuracy_from_rmse",
    "alpha_rmse",
    "estimate_alpha_rmse",
    "is_accurate",
    "l2_error",
    "linf_error",
    "max_alpha_rmse",
    "predicted_alpha_rmse",
    "relative_error_from_rmse",
    "smoothed_relative_error",
]


def __dir__() -> list[str]:
    """List only the public names, for completion."""
    return __all__
