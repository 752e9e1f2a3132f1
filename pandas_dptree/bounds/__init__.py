"""Lower bounds on the error of a release, for comparison with a plan or a mechanism.

`gaussian_lower_bound` is for additive Gaussian noise with least squares, and for the mean error, which plans
minimise. The others are for the worst error and for every mechanism: `packing_error`, `factorization_error`
and `single_count_error`. `table` compares them with what this package achieves.
"""

from pandas_dptree.bounds.factorization import (
    factorization_error,
    factorization_norm,
    witness,
    worst_node_shares,
)
from pandas_dptree.bounds.gaussian import MAX_KINDS, gap_of, gaussian_lower_bound
from pandas_dptree.bounds.overview import table
from pandas_dptree.bounds.packing import (
    decode,
    packing_error,
    packing_threshold,
    published_packing_threshold,
    step_loss,
)
from pandas_dptree.bounds.single_count import noise_floor, single_count_error
from pandas_dptree.bounds.thresholds import from_thresholds

__all__ = [
    "MAX_KINDS",
    "decode",
    "factorization_error",
    "factorization_norm",
    "from_thresholds",
    "gap_of",
    "gaussian_lower_bound",
    "noise_floor",
    "packing_error",
    "packing_threshold",
    "published_packing_threshold",
    "single_count_error",
    "step_loss",
    "table",
    "witness",
    "worst_node_shares",
]


def __dir__() -> list[str]:
    """List only the public names, for completion."""
    return __all__
