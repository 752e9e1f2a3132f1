"""Choose how noisy nodes become the estimates that a table shows.

Everything here is a function of noisy numbers and of the tree: post-processing, free of privacy cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.adaptive import nonnegative_adaptive
from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import Measurements, Variances, least_squares
from pandas_dptree.estimation.nonnegative import Bounds, nonnegative_totals
from pandas_dptree.estimation.rounding import round_to_whole
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["CONSISTENCIES", "FITS", "Consistency", "Fit", "estimate"]

Consistency = Literal["none", "linear", "nonnegative", "integer"]
CONSISTENCIES: tuple[Consistency, ...] = ("none", "linear", "nonnegative", "integer")
Fit = Literal["totals", "joint", "adaptive"]
FITS: tuple[Fit, ...] = ("totals", "joint", "adaptive")
_NONNEGATIVE = {"totals": nonnegative_totals, "joint": nonnegative_joint, "adaptive": nonnegative_adaptive}


def estimate(
    tree: Tree,
    measurements: Measurements,
    variances: Variances,
    consistency: Consistency,
    fit: Fit,
    random_words: Callable[[int], npt.NDArray[np.uint64]],
    *,
    least: Bounds | None = None,
    signed: bool = False,
) -> Sequence[npt.NDArray[Any]]:
    """Compute estimates of each level from noisy nodes; each mode of consistency includes the one before.

    "none" are the noisy nodes as they are, "linear" least squares, "nonnegative" keeps to the lower bounds
    `least`, "integer" is whole. `fit` says how negative estimates are corrected: family by family, keeping
    the totals; in one fit of all ("joint"); or family by family, as sparse as each level seems to be
    ("adaptive"). If the nodes may be negative (`signed`), "nonnegative" is least squares. Random words break
    ties in rounding.
    """
    if signed and least is not None:
        raise ArgumentError(
            "least",
            "cannot bound the nodes of a signed table.",
            hint="leave the bounds out, or pass signed=False.",
        )
    if consistency == "none":
        return [level for level in measurements if level is not None]
    if consistency == "linear" or signed:
        estimates = least_squares(tree, measurements, variances)
    else:
        estimates = _NONNEGATIVE[fit](tree, measurements, variances, least=least)
    return round_to_whole(tree, estimates[-1], random_words) if consistency == "integer" else estimates
