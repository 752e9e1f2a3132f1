"""Which nodes of a tree too large to be listed will be seen, known before anything is spent."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.mechanisms.arguments import released_counts
from pandas_dptree.mechanisms.guarantees import Multiplicative
from pandas_dptree.mechanisms.sparse_counts import release_probability
from pandas_dptree.mechanisms.thresholds import Calibration
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.plans.implicit_multiplicative import ImplicitMultiplicativePlan
from pandas_dptree.signatures import public

if TYPE_CHECKING:
    from pandas_dptree.plans.implicit import ImplicitPlan

__all__ = ["compare", "expected_recall"]

CALIBRATIONS: tuple[Calibration, ...] = ("exact", "proof")


@public
def expected_recall(plan: ImplicitPlan, counts: npt.ArrayLike) -> pd.DataFrame:
    r"""Give the probability that a node of so many records is released.

    With radius R, noise scale b and :math:`q = e^{-1/b}`, that of a node of :math:`1 \le w \le R` is

    .. math:: P(\text{noise} > R - w) = \frac{q^{R - w + 1}\,(1 - q^w)}{1 + q - 2q^{R+1}},

    and from there to 2R + 1, where it is 1, it is one less that of a node of :math:`2R + 1 - w`.

    Parameters
    ----------
    plan : ImplicitPlan
    counts : array_like of int, shape (n,)
        Numbers of records, at least 0.

    Returns
    -------
    pandas.DataFrame
        Indexed by the counts, with one column per level. The root is released in any case. An ancestor of
        released nodes is shown in any case, too.

    Raises
    ------
    ArgumentError
        If the counts are no whole numbers of at least 0.

    Examples
    --------
    >>> from pandas_dptree.hierarchy.levels.prefixes import binary
    >>> from pandas_dptree.plans.implicit import plan_implicit
    >>> plan = plan_implicit(binary("user", bits=64), epsilon=1.0, delta=1e-6)
    >>> expected_recall(plan, [600, 900, 1200])["user/64"].round(3).tolist()
    [0.01, 0.756, 0.998]
    """
    sizes = released_counts(counts)
    columns = [np.ones(len(sizes)), *(release_probability(noise, sizes) for noise in plan.noise[1:])]
    return pd.DataFrame(
        dict(zip(plan.level_names, columns, strict=True)), index=pd.Index(sizes, name="count")
    )


def compare(plan: ImplicitPlan, alpha: float, failure: float | None) -> pd.DataFrame:
    """Lay the mechanisms that could spend the same loss side by side: see `ImplicitPlan.compare`."""
    factors = {
        calibration: ImplicitMultiplicativePlan(
            tree=plan.tree,
            loss=plan.loss,
            mechanism=Multiplicative(alpha=alpha, failure=failure, calibration=calibration),
            neighbors=plan.neighbors,
            privacy_unit=plan.privacy_unit,
            max_contributions=plan.max_contributions,
        )
        for calibration in CALIBRATIONS
    }
    failure = factors["exact"].failure
    noises = plan.noise[1:]
    table = {
        ("truncated_laplace", ""): (
            max(_released_from(noise, failure) for noise in noises),
            max(2 * noise.radius for noise in noises),
            max(_largest_error(noise, failure) for noise in noises),
        )
    }
    for calibration, other in factors.items():
        least = other.largest_unseen + 1
        # the factor is above any rounding error
        error = math.floor(alpha * max(least, other.threshold) * (1 + 2.0**-48))
        table["multiplicative", calibration] = (least, other.largest_unseen, error)
    return pd.DataFrame(
        list(table.values()),
        index=pd.MultiIndex.from_tuples(table, names=["mechanism", "calibration"]),
        columns=["released_from", "largest_unseen", "error_bound"],
    )


def _released_from(noise: TruncatedLaplace, failure: float) -> int:
    """Give the smallest count w that is not released with probability `failure` at most, below 1/2.

    That is the probability that a count of 2R + 1 - w is released, which keeps its digits where it is small.
    """
    most = 2 * noise.radius + 1
    sizes = range(noise.radius + 1, most + 1)
    return sizes[bisect_left(sizes, -failure, key=lambda size: -_probability(noise, most - size))]


def _largest_error(noise: TruncatedLaplace, failure: float) -> int:
    """Give the smallest x with P(|noise| > x) <= failure; P(noise > x) is that of releasing R - x."""
    errors = range(noise.radius + 1)
    return bisect_left(errors, -failure, key=lambda x: -2 * _probability(noise, noise.radius - x))


def _probability(noise: TruncatedLaplace, size: int) -> float:
    return float(release_probability(noise, np.array([size]))[0])
