"""The registry of estimators: how noisy nodes become the estimates that a table shows.

Everything here is a function of noisy numbers and of the tree: post-processing, free of privacy cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import check_choice
from pandas_dptree.estimation.adaptive import nonnegative_adaptive
from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import Measurements, Variances, least_squares
from pandas_dptree.estimation.nonnegative import Bounds, nonnegative_totals
from pandas_dptree.estimation.rounding import round_to_whole
from pandas_dptree.estimation.unit_counts import nonnegative_units
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["CONSISTENCIES", "FITS", "Consistency", "Estimator", "Fit", "estimate_units", "estimator_for"]

Levels = Sequence[npt.NDArray[Any]]

Consistency = Literal["none", "linear", "nonnegative", "integer"]
"""The noisy nodes as they are; least squares; non-negative as well; whole numbers as well."""

CONSISTENCIES: tuple[Consistency, ...] = get_args(Consistency)

Fit = Literal["totals", "adaptive", "joint"]
"""What callers choose for non-negative estimates: a name in `FITS`."""


class Method(Protocol):
    """A function from noisy nodes to estimates, none of which falls below its bound in `least`."""

    def __call__(
        self, tree: Tree, measurements: Measurements, variances: Variances, *, least: Bounds | None = None
    ) -> Levels: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """An estimator: how it is run, what it needs, and which standard errors belong to it."""

    method: Method
    """The function that computes the estimates."""

    passes: int
    """How often it goes through the nodes: a progress bar steps by it."""

    description: str = ""
    """What callers read when they choose it."""

    combines_levels: bool = True
    """Whether levels may be left unmeasured, and standard errors are those of least squares.

    Otherwise every level is measured, and the standard errors are those of the noise.
    """

    unbiased: bool = False
    """Whether the standard errors are those of its own estimates, and not of unbiased ones beside them."""

    of_measurements: bool = False
    """Whether it needs the measurements themselves. Otherwise it finds the same from linear estimates."""

    whole: bool = False
    """Whether the estimates are rounded to whole numbers that add up."""

    @property
    def linear(self) -> bool:
        """Whether the estimates are those of least squares."""
        return self.unbiased and self.combines_levels

    def estimate(
        self,
        tree: Tree,
        measurements: Measurements,
        variances: Variances,
        random_words: Callable[[int], npt.NDArray[np.uint64]],
        *,
        least: Bounds | None = None,
    ) -> Levels:
        """Return the estimates of each level; `random_words(n)` gives the 64-bit words that break ties."""
        estimates = self.method(tree, measurements, variances, least=least)
        return round_to_whole(tree, estimates[-1], random_words) if self.whole else estimates


def _as_measured(
    tree: Tree, measurements: Measurements, variances: Variances, *, least: Bounds | None = None
) -> Levels:
    return [level for level in measurements if level is not None]


def _linear(
    tree: Tree, measurements: Measurements, variances: Variances, *, least: Bounds | None = None
) -> Levels:
    return least_squares(tree, measurements, variances)


_AS_MEASURED = Estimator(
    method=_as_measured, passes=1, combines_levels=False, unbiased=True, of_measurements=True
)
_LINEAR = Estimator(method=_linear, passes=2, unbiased=True)

FITS: Mapping[Fit, Estimator] = {
    "totals": Estimator(
        method=nonnegative_totals,
        passes=3,
        description="one family at a time (the children of a node), from the root down; totals stay as "
        "accurate as in least squares.",
    ),
    "adaptive": Estimator(
        method=nonnegative_adaptive,
        passes=3,
        description="likewise, but small counts shrink and large counts hardly change, to the degree that "
        "the level's noisy counts suggest it; more accurate where most leaves are empty, and a few times "
        "slower.",
    ),
    "joint": Estimator(
        method=nonnegative_joint,
        passes=3,
        description="one least-squares fit of all nodes, closest to the truth as a whole, but with totals "
        "that are too large where most leaves are empty.",
        of_measurements=True,
    ),
}
"""The non-negative estimators, by their names in `fit=`."""


def estimator_for(consistency: Consistency, fit: Fit = "totals", *, signed: bool = False) -> Estimator:
    """Return the estimator that a caller chose; values that may be negative are never made non-negative."""
    check_choice("consistency", consistency, CONSISTENCIES)
    check_choice("fit", fit, tuple(FITS))
    if consistency == "none":
        return _AS_MEASURED
    if consistency == "linear":
        return _LINEAR
    chosen = _LINEAR if signed else FITS[fit]
    if consistency == "nonnegative":
        return chosen
    return replace(chosen, passes=chosen.passes + 1, unbiased=False, whole=True)


def estimate_units(
    tree: Tree,
    measurements: Measurements,
    variances: Variances,
    excess: Measurements | None,
    max_nodes: Sequence[int],
    random_words: Callable[[int], npt.NDArray[np.uint64]],
    *,
    consistency: Consistency,
) -> Levels:
    """Return estimates of distinct units for each level, from their counts and the excess over each node.

    `estimator_for` says what each of them needs and which standard errors belong to it.
    """
    if consistency == "none":
        return _as_measured(tree, measurements, variances)
    if consistency == "linear":
        return least_squares(tree, measurements, variances, excess)
    ties = random_words if consistency == "integer" else None
    return nonnegative_units(tree, measurements, variances, excess, max_nodes, ties)
