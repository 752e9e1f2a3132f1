"""A table of the best known and the best possible errors on a tree."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import candidate_noises
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity
from pandas_dptree.theory.checks import checked_alpha
from pandas_dptree.theory.factorization_bound import factorization_error
from pandas_dptree.theory.packing import packing_error
from pandas_dptree.theory.single_count import single_count_error

__all__ = ["error_bounds"]


def error_bounds(tree: Tree, *, epsilon: float, delta: float, alpha: float) -> pd.DataFrame:
    r"""Tabulate lower and upper bounds on the worst error on a tree.

    This is Table 1 of Ghazi, Kamath, Kumar, Manurangsi and Wu, "On differentially private counting on
    trees", 2022, with numbers in place of orders of growth.

    Parameters
    ----------
    tree : Tree
    epsilon, delta : float
        The privacy of one row that is present or absent; delta above 0.
    alpha : float
        The relative error that the rows ``"multiplicative"`` allow: above 0 and below 1.

    Returns
    -------
    pandas.DataFrame
        Index: ``error``, which is ``"additive"`` or ``"multiplicative"``, and ``privacy``, which is
        ``"pure"`` for epsilon alone or ``"approximate"`` for epsilon and delta. Columns: ``lower`` and
        ``upper``, in counts, each followed by its source. The error is :math:`\alpha`-mRMSE: the largest
        over all counts w and nodes of :math:`\sqrt{E \max(|\tilde w - w| - \alpha w, 0)^2}`.

    Notes
    -----
    **Privacy**: a function of the tree and of parameters, which are public.

    Lower bounds hold for every mechanism; the largest known one is given. Upper bounds are those of noise in
    this package with the budget spread evenly over the levels, without the gain of least squares, and of
    `pandas_dptree.mechanisms.multiplicative.counts.ClippedThresholds`, for totals of 2**40 at most; the
    smallest is given. Additive noise cannot profit from a relative error, as counts of 0 allow none. The
    thresholds' error grows more slowly with the number of levels, but it is lower only on very deep trees.

    Examples
    --------
    >>> bounds = error_bounds(Tree.from_branching([2] * 20), epsilon=1.0, delta=1e-6, alpha=0.5)
    >>> bounds.lower.round(2).tolist(), bounds.upper.round(2).tolist()
    ([2.66, 2.66, 0.59, 0.55], [29.7, 19.38, 29.7, 19.38])
    """
    pure, approximate = PrivacyLoss(epsilon=epsilon), PrivacyLoss(epsilon=epsilon, delta=delta)
    if not approximate.delta:
        raise ArgumentError("delta", "must be above 0.", hint="for example delta=1e-6.")
    if not checked_alpha(alpha):
        raise ArgumentError("alpha", "must be above 0 and below 1.", hint="for example alpha=0.1.")
    rows = {}
    for error, relative in (("additive", 0.0), ("multiplicative", alpha)):
        for loss in (pure, approximate):
            least, most = _lower_bounds(tree, loss, relative), _upper_bounds(tree, loss, relative)
            low, high = max(least, key=lambda s: least[s]), min(most, key=lambda s: most[s])
            rows[error, loss.kind] = (least[low], low, most[high], high)
    return pd.DataFrame.from_dict(
        rows, orient="index", columns=["lower", "lower_source", "upper", "upper_source"]
    ).set_axis(pd.MultiIndex.from_tuples(rows, names=["error", "privacy"]))


def _lower_bounds(tree: Tree, loss: PrivacyLoss, alpha: float) -> dict[str, float]:
    """Compute bounds that no mechanism can beat, by their sources."""
    assert loss.epsilon is not None
    bounds = {
        "a single count": single_count_error(epsilon=loss.epsilon, delta=loss.delta, alpha=alpha),
        "Theorem 5.1 (packing)": packing_error(tree, epsilon=loss.epsilon, delta=loss.delta, alpha=alpha),
    }
    if not checked_alpha(alpha):
        error = factorization_error(tree, epsilon=loss.epsilon, delta=loss.delta)
        bounds["Theorem 5.2 (factorization)"] = error
    return bounds


def _upper_bounds(tree: Tree, loss: PrivacyLoss, alpha: float) -> dict[str, float]:
    """Compute errors that mechanisms of this package do not exceed, by their sources."""
    assert loss.epsilon is not None
    n_levels, one_row = tree.depth + 1, Sensitivity(l1=1, l2_squared=1)
    bounds = {
        f"Corollary 2.7 ({noise.name})": math.sqrt(
            float(noise.variance(noise.noise_scales(loss, one_row, np.ones(n_levels))).max())
        )
        for noise in candidate_noises("auto", loss)
    }
    if alpha and loss.delta:
        clipped = ClippedThresholds(alpha=alpha, epsilon=loss.epsilon, delta=loss.delta, depth=n_levels)
        bounds["Theorem 4.1 (thresholds)"] = clipped.rmse_bound
    return bounds
