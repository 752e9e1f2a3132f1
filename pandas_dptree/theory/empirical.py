"""Errors of repeated releases, compared with the truth.

These are for simulations, where the truth may be known. The expectations in the definitions are replaced by
means over the given releases: one release shows what happened, many show what to expect. "Ghazi et al., 2023"
is Ghazi, Kamath, Kumar, Manurangsi and Wu, "On differentially private counting on trees".

**Privacy**: the truth is secret wherever the records are. The results, and whether an error is raised, depend
on it without noise. Use these functions only on data whose privacy loss does not matter, and
publish predicted errors instead.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, listed, quote
from pandas_dptree.plans.predicted_errors import check_at_least
from pandas_dptree.theory.alignment import Aligned, FloatArray, Frames, aligned

__all__ = [
    "accuracy",
    "alpha_rmse",
    "is_accurate",
    "l2_error",
    "linf_error",
    "max_alpha_rmse",
    "smoothed_relative_error",
]

Numbers = npt.NDArray[Any]

_ROUNDING = 1e-12
"""Bounds are widened by this relative amount, against rounding."""


@overload
def alpha_rmse(
    released: Frames, truth: Any, alpha: float = ..., *, column: Hashable = ...
) -> pd.DataFrame: ...
@overload
def alpha_rmse(
    released: Numbers, truth: npt.ArrayLike, alpha: float = ..., *, column: Hashable = ...
) -> FloatArray: ...
def alpha_rmse(released: Any, truth: Any, alpha: float = 0.05, *, column: Hashable = "count") -> Any:
    r"""Compute the root mean squared error of each node, beyond a tolerated relative error.

    .. math:: \mathrm{RMSE}_\alpha(\tilde z, z)
              = \sqrt{\mathrm{E}\,\max(|\tilde z - z| - \alpha z, 0)^2}.

    Parameters
    ----------
    released : pandas.DataFrame, sequence of pandas.DataFrame, or numpy.ndarray
        A table that this package released, or rows of it; or the tables of repeated releases, in any order of
        rows. Or an array of the truth's shape, with an additional first axis for repeated releases.
    truth : pandas.Series, dataframe or array_like
        For tables, one of these:

        - the result of ``frame.groupby(keys, dropna=False).size()`` for all keys of the table (or a frame
          with the keys and the number in a column `column`): it is summed over the levels, and nodes that
          it does not list have 0 (not for counts of distinct units, which do not add up);
        - a table with ``level``, keys and `column`, with one row per node;
        - an array with one number for each row of the (first) table.
    alpha : float
        The tolerated relative error, at least 0. With 0, this is the root mean squared error.
    column : hashable
        The column to compare, for tables of sums and means. If z may be negative, its magnitude counts.

    Returns
    -------
    pandas.DataFrame or numpy.ndarray
        For tables, one row per row of the (first) table, with its index: ``level``, the keys, and
        ``alpha_rmse``. For arrays, an array of the truth's shape.

    Notes
    -----
    **Privacy**: what is computed from the truth is not private, and may not be published where the truth may
    not. It is meant for simulations. **Source**: Ghazi et al., 2023, Definition 1.4.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> wards = pd.DataFrame({"ward": ["eye", "labour", "heart"]})
    >>> records = pd.DataFrame({"ward": ["eye"] * 30 + ["labour"] * 70})
    >>> tables = [
    ...     dpt.tree_counts(records, ["ward"], domain=wards, epsilon=1.0, rng=rng)
    ...     for rng in np.random.default_rng(0).spawn(20)
    ... ]
    >>> errors = alpha_rmse(tables, records.groupby("ward").size())
    >>> errors.columns.tolist(), errors["alpha_rmse"].round(1).tolist()
    (['level', 'ward', 'alpha_rmse'], [0.0, 0.9, 0.8, 0.1])
    """
    pair = aligned(released, truth, column)
    return pair.labelled("alpha_rmse", np.sqrt(np.mean(_excess(pair, alpha) ** 2, axis=0)))


def max_alpha_rmse(
    released: Frames | Numbers, truth: Any, alpha: float = 0.05, *, column: Hashable = "count"
) -> float:
    r"""Compute the largest alpha-RMSE of all nodes, for the data that were released.

    The :math:`\mathrm{mRMSE}_\alpha` of a mechanism is the largest of these over all data. If the noise does
    not depend on the counts, it is attained where all counts are 0: it is the largest standard error, for
    every alpha. So this function returns less on other data. See
    `pandas_dptree.theory.predicted_alpha_rmse`.

    **Privacy**: not private, as it depends on the truth. **Source**: Ghazi et al., 2023, Definition 1.4.

    Parameters
    ----------
    released, truth, alpha, column
        As for `alpha_rmse`, with the same errors.

    Examples
    --------
    >>> max_alpha_rmse(np.array([[90, 1010], [110, 990]]), np.array([100, 1000]), alpha=0.05)
    5.0
    """
    squares = _excess(aligned(released, truth, column), alpha) ** 2
    return float(np.sqrt(np.mean(squares, axis=0).max()))


@overload
def smoothed_relative_error(
    released: Frames, truth: Any, kappa: float, *, column: Hashable = ...
) -> pd.DataFrame: ...
@overload
def smoothed_relative_error(
    released: Numbers, truth: npt.ArrayLike, kappa: float, *, column: Hashable = ...
) -> FloatArray: ...
def smoothed_relative_error(released: Any, truth: Any, kappa: float, *, column: Hashable = "count") -> Any:
    r"""Compute the mean relative error of each node, relative to at least a smoothing factor.

    .. math:: \mathrm{REL}_\kappa(\tilde z, z) = \frac{\mathrm{E}\,|\tilde z - z|}{\max(z, \kappa)}.

    **Privacy**: not private, as it depends on the truth. **Source**: Ghazi et al., 2023, Appendix B.

    Parameters
    ----------
    released, truth, column
        As for `alpha_rmse`, with the same errors.
    kappa : float
        The smoothing factor, above 0: with it, empty nodes have a relative error, too.

    Returns
    -------
    pandas.DataFrame or numpy.ndarray
        As for `alpha_rmse`; the column is ``smoothed_relative_error``.

    Examples
    --------
    >>> smoothed_relative_error(np.array([[9, 1], [11, 3]]), np.array([10, 0]), kappa=5).tolist()
    [0.1, 0.4]
    """
    check_at_least("kappa", kappa, 0.0, above=True)
    pair = aligned(released, truth, column)
    errors = np.mean(np.abs(pair.estimates - pair.truth), axis=0)
    return pair.labelled("smoothed_relative_error", errors / np.maximum(np.abs(pair.truth), kappa))


@overload
def accuracy(
    released: Frames, truth: Any, alpha: float = ..., *, thresholds: Any = ..., column: Hashable = ...
) -> pd.DataFrame: ...
@overload
def accuracy(
    released: Numbers,
    truth: npt.ArrayLike,
    alpha: float = ...,
    *,
    thresholds: npt.ArrayLike = ...,
    column: Hashable = ...,
) -> FloatArray: ...
def accuracy(
    released: Any, truth: Any, alpha: float = 0.05, *, thresholds: Any = 0.0, column: Hashable = "count"
) -> Any:
    r"""Compute for each node the share of releases within a tolerance.

    An estimate is within it if :math:`|\tilde w_u - w_u| \le \alpha \max(w_u, \tau_u)`.

    **Privacy**: not private, as it depends on the truth. **Source**: Ghazi et al., 2023, Problem 3.1.

    Parameters
    ----------
    released, truth, column
        As for `alpha_rmse`, with the same errors.
    alpha : float
        The tolerated relative error, at least 0.
    thresholds : float, array_like or mapping
        The count :math:`\tau_u` below which the tolerance does not shrink further: one for all nodes, one for
        each (in the order of the rows), or for tables one for each level by its name. At least 0.

    Returns
    -------
    pandas.DataFrame or numpy.ndarray
        As for `alpha_rmse`; the column is ``accuracy``.

    Examples
    --------
    >>> released, truth = np.array([[90, 3], [115, -4]]), np.array([100, 0])
    >>> accuracy(released, truth, alpha=0.1, thresholds=30).tolist()
    [0.5, 0.5]
    """
    pair = aligned(released, truth, column)
    return pair.labelled("accuracy", _share_within_tolerance(pair, alpha, thresholds))


def is_accurate(
    released: Frames | Numbers,
    truth: Any,
    alpha: float = 0.05,
    eta: float = 0.05,
    *,
    thresholds: Any = 0.0,
    column: Hashable = "count",
) -> bool:
    r"""Check whether every node is within its tolerance in a share :math:`1 - \eta` of the releases.

    This is the condition for a mechanism to be :math:`(\alpha, \eta)`-accurate, on these data and as
    estimated from these releases.

    **Privacy**: not private, as it depends on the truth. **Source**: Ghazi et al., 2023, Problem 3.1.

    Parameters
    ----------
    released, truth, alpha, thresholds, column
        As for `accuracy`, with the same errors.
    eta : float
        The share of releases that may miss the tolerance of a node: from 0 to 1.

    Examples
    --------
    >>> is_accurate(np.array([[90, 3], [115, -4]]), np.array([100, 0]), 0.1, eta=0.5, thresholds=30)
    True
    """
    check_at_least("eta", eta, 0.0)
    if eta > 1:
        raise ArgumentError("eta", f"must be at most 1, not {quote(eta)}.", hint="it is a share of releases.")
    shares = _share_within_tolerance(aligned(released, truth, column), alpha, thresholds)
    return bool((shares >= 1 - eta - _ROUNDING).all())


def l2_error(released: Frames | Numbers, truth: Any, *, column: Hashable = "count") -> float:
    r"""Compute the root mean squared error over all nodes, for the data that were released.

    .. math:: \sqrt{\tfrac1m\,\mathrm{E}\,\lVert \tilde z - z \rVert_2^2}.

    **Privacy**: not private, as it depends on the truth. **Source**: Ghazi et al., 2023, Section 1.

    Parameters
    ----------
    released, truth, column
        As for `alpha_rmse`, with the same errors.

    Examples
    --------
    >>> l2_error(np.array([[1.0, 7.0]]), np.array([0, 0]))
    5.0
    """
    pair = aligned(released, truth, column)
    return float(np.sqrt(np.mean((pair.estimates - pair.truth) ** 2)))


def linf_error(released: Frames | Numbers, truth: Any, *, column: Hashable = "count") -> float:
    r"""Compute the mean of the largest error of any node in a release, for the data that were released.

    .. math:: \mathrm{E}\,\lVert \tilde z - z \rVert_\infty.

    **Privacy**: not private, as it depends on the truth. **Source**: Ghazi et al., 2023, Section 1.

    Parameters
    ----------
    released, truth, column
        As for `alpha_rmse`, with the same errors.

    Examples
    --------
    >>> linf_error(np.array([[1, 7], [3, 0]]), np.array([0, 0]))
    5.0
    """
    pair = aligned(released, truth, column)
    errors = np.abs(pair.estimates - pair.truth)
    return float(np.mean(errors.reshape(len(errors), -1).max(axis=1)))


def _excess(pair: Aligned, alpha: float) -> FloatArray:
    """Compute by how much each error exceeds the tolerated one."""
    check_at_least("alpha", alpha, 0.0)
    excess = np.abs(pair.estimates - pair.truth) - alpha * np.abs(pair.truth)
    return np.asarray(np.maximum(excess, 0.0))


def _share_within_tolerance(pair: Aligned, alpha: float, thresholds: Any) -> FloatArray:
    """Compute for each node the share of releases within its tolerance."""
    check_at_least("alpha", alpha, 0.0)
    least = _thresholds(pair, thresholds)
    tolerance = alpha * np.maximum(np.abs(pair.truth), least) * (1 + _ROUNDING)
    return np.asarray(np.mean(np.abs(pair.estimates - pair.truth) <= tolerance, axis=0))


def _thresholds(pair: Aligned, given: Any) -> FloatArray:
    """Read thresholds: one for all nodes, one for each node, or one for each level."""
    if isinstance(given, Mapping) and pair.nodes is not None:
        levels = pair.nodes["level"].astype(object)
        absent = [level for level in levels.unique() if level not in given]
        if absent:
            raise ArgumentError(
                "thresholds",
                f"lacks the levels {listed(absent)}.",
                hint="give a threshold for each level, or one number for all.",
            )
        given = levels.map(dict(given)).to_numpy()
    check_at_least("thresholds", given, 0.0, many=True)
    least = np.asarray(given, dtype=np.float64)
    if least.shape not in ((), pair.truth.shape):
        raise ArgumentError(
            "thresholds", f"of shape {least.shape} do not fit nodes of shape {pair.truth.shape}.",
            hint="give one number for all nodes, or one for each.",
        )  # fmt: skip
    return least
