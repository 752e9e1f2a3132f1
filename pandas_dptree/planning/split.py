"""How the privacy budget is split over a tree.

**Privacy**: a split is a function of the tree, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise, Moves
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE, SMALLEST_SCALE
from pandas_dptree.planning.equal_subtrees import FloatArray
from pandas_dptree.planning.known_counts import Flags, levels_to_measure
from pandas_dptree.planning.levels import geometric_shares, optimal_shares, uniform_shares
from pandas_dptree.planning.objective import Objective
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["SPLITS", "Split", "level_shares", "shares_match"]

Split = Literal["optimal", "uniform", "geometric"]
SPLITS: tuple[Split, ...] = get_args(Split)

_DEVIATION = 1e-9
"""How far costs may deviate from shares by rounding."""


def level_shares(
    tree: Tree,
    *,
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    sensitivity: Moves,
    split: Split | FloatArray = "optimal",
    level_weights: FloatArray | None = None,
    objective: Objective = "levels",
    least_squares: bool = True,
    known: Flags | None = None,
) -> FloatArray:
    """Return each level's share of the budget.

    It is at least 0, and 0 for a level with only known nodes. That of the leaves is above 0; without least
    squares, so is that of every level that is not known.

    >>> from pandas_dptree.mechanisms.additive import Gaussian
    >>> from pandas_dptree.privacy.sensitivity import Sensitivity
    >>> one_row, loss = Sensitivity(l1=1, l2_squared=1), PrivacyLoss(rho=0.5)
    >>> tree = Tree.from_branching([2, 3, 4])
    >>> level_shares(tree, noise=Gaussian(), loss=loss, sensitivity=one_row).round(3).tolist()
    [0.195, 0.23, 0.252, 0.323]
    """
    if not isinstance(split, str):
        return _checked_shares(split, levels_to_measure(tree, known), least_squares=least_squares)
    if split == "uniform":
        return uniform_shares(tree, known=known)
    if split == "geometric":
        return geometric_shares(tree, noise.variance_power(loss), known=known)
    if split == "optimal":
        return optimal_shares(
            tree, noise, loss, sensitivity,
            objective=objective, level_weights=level_weights, least_squares=least_squares, known=known,
        )  # fmt: skip
    raise ArgumentError(
        "split",
        f"is unknown: {quote(split)}.",
        hint=f"choose one of {', '.join(map(repr, SPLITS))}, or give shares.",
    )


def _checked_shares(shares: FloatArray, unknown: npt.NDArray[np.bool_], *, least_squares: bool) -> FloatArray:
    """Check shares that the caller chose."""
    given = np.asarray(shares, dtype=np.float64)
    levels = len(unknown)
    if given.shape != (levels,) or not (given >= 0).all() or not abs(given.sum() - 1) < 1e-6:
        raise ArgumentError(
            "split",
            f"must hold a share of at least 0 for each of {levels} levels, with sum 1, "
            f"not {quote(given.tolist())}.",
            hint='for example those of "uniform".',
        )
    if given[~unknown].any():
        raise ArgumentError(
            "split",
            f"spends on a level whose counts are all known: {quote(given.tolist())}.",
            hint=f"the share must be 0 at {np.flatnonzero(~unknown).tolist()}, counted from 0.",
        )
    if not given[-1] or not (least_squares or given[unknown].all()):
        which = "the leaves" if least_squares else "a level"
        raise ArgumentError(
            "split",
            f"gives {which} no share: {quote(given.tolist())}.",
            hint="the leaves are always measured"
            + ("." if least_squares else ', and with consistency="none" so is every level.'),
        )
    return np.asarray(given / given.sum())


def shares_match(
    noise: AdditiveNoise, loss: PrivacyLoss, sensitivity: Moves, share: FloatArray, scale: FloatArray
) -> bool:
    """Return whether noise scales follow from the levels' shares of the budget, up to a common factor.

    All measured scales must be from 1e-3 to 1e12. Those at the lower limit may have been raised to it.
    """
    if share.shape != scale.shape:
        return False
    measured = share > 0
    if not (np.isinf(scale) == ~measured).all():
        return False
    if not ((scale >= SMALLEST_SCALE) & ((scale <= LARGEST_SCALE) | ~measured)).all():
        return False
    free = measured & (scale > SMALLEST_SCALE)
    alone = noise.level_costs(loss, sensitivity.on(len(share)))
    costs = share[free] * scale[free] ** (2 // noise.variance_power(loss)) / alone[free]
    return not costs.size or bool(costs.max() <= costs.min() * (1 + _DEVIATION))
