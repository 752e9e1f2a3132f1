"""Changes between two releases, such as those of two months."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.estimation.intervals import error_half_widths, intervals
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.estimation.ratios import independent, ratio_intervals
from pandas_dptree.output.derived.frames import check_confidence, derived_frame, source_of
from pandas_dptree.output.derived.matching import rows_of_nodes
from pandas_dptree.output.derived.numbers import Numbers
from pandas_dptree.output.derived.proportions import MIN_BASE
from pandas_dptree.output.released import provenance_of
from pandas_dptree.signatures import public

__all__ = ["change_from", "holm"]

_KINDS = {"count": "counts", "sum": "sums", "mean": "means", "units": "counts of distinct units"}


@public
def change_from(
    released: pd.DataFrame,
    before: pd.DataFrame,
    *,
    column: Hashable | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    r"""Compare a released table with an earlier one of the same hierarchy, node by node.

    Parameters
    ----------
    released, before : pandas.DataFrame
        Two whole tables with the same keys and column, of independent releases: of counts or sums as for
        ``proportions``, or of means.
    column : hashable, optional
        The count, sum or mean to compare, by default the first.
    confidence : float, default 0.95
        That of each interval by itself.

    Returns
    -------
    pandas.DataFrame
        A row for each row of `released`: ``level``, the keys, ``change`` (of the shown numbers, now less
        before), its ``std_error``, ``lower`` and ``upper``; ``percent`` with ``percent_lower`` and
        ``percent_upper``, for 100 (now / before - 1); and ``beyond_noise``, whether the interval of the
        change lies on one side of 0. Nodes that are in one table only have no change. The per cent are
        missing where the number before is below 4 of its standard errors; the interval, by Fieller's method,
        is not, and its upper end may be infinite.

        ``attrs["dp_derived"]`` has the number of ``changes`` with an error, how many are ``beyond_noise``,
        how many would be ``by_chance`` if nothing had changed, at most on average, how many remain by Holm's
        method (``beyond_noise_holm``: that one of these did not change has at most the probability
        1 - confidence), and ``only_before``, the number of nodes that only `before` has.

    Raises
    ------
    ArgumentError
        If the tables are of one release, of different hierarchies or of different columns, or lack what is
        needed: see ``proportions``.

    Notes
    -----
    The variance of a change is the sum of both variances. Two releases of the same records are independent,
    too, but of one truth.

    **What the error leaves out**: chance in the world. A change beyond the noise may still be smaller than
    the fluctuation of such counts from month to month, about their square root. Also the random choice of
    rows by ``max_contributions``, and values that bounds clip.

    **Privacy**: post-processing of released tables, which spends nothing.

    Examples
    --------
    >>> import pandas as pd, pandas_dptree as dpt
    >>> options = {"epsilon": 1.0, "domain": "observed", "keep": ["linear"]}
    >>> may = pd.DataFrame({"state": ["CA"] * 300 + ["NY"] * 200}).dp.tree_counts(["state"], **options)
    >>> june = pd.DataFrame({"state": ["CA"] * 400 + ["NY"] * 200}).dp.tree_counts(["state"], **options)
    >>> june.dp.change_from(may).attrs["dp_derived"]["changes"]
    3
    """
    check_confidence(confidence)
    now, then = Numbers.of(released, column), Numbers.of(before, column, argument="before")
    _check_comparable(now, then)
    _check_other_release(released, before)
    keys = [released[key] for key in now.released.keys]
    old = rows_of_nodes(then.released, keys, now.released.depth)
    paired = old >= 0

    def earlier(values: FloatArray) -> FloatArray:
        return np.where(paired, values[old], np.nan)

    variance, fourth = (
        mine + earlier(theirs) for mine, theirs in ((now.variance, then.variance), (now.fourth, then.fourth))
    )
    steps = np.fmax(now.steps, earlier(then.steps))
    change, linear = (
        mine - earlier(theirs) for mine, theirs in ((now.shown, then.shown), (now.linear, then.linear))
    )
    half = error_half_widths(variance, fourth, steps, confidence)
    unit = now.unit if now.unit == then.unit else 0.0
    scale = unit or 1.0
    lower, upper = (
        end * scale
        for end in intervals(
            linear / scale, half / scale, -np.inf, np.inf, whole=unit > 0, shown=change / scale
        )
    )
    base, error = earlier(then.shown), np.sqrt(earlier(then.variance))
    with np.errstate(divide="ignore", invalid="ignore"):
        percent = np.where((base > 0) & (base >= MIN_BASE * error), 100 * (now.shown / base - 1), np.nan)
    least, most = ratio_intervals(
        now.linear,
        earlier(then.linear),
        joint_cumulants=independent(
            (now.variance, earlier(then.variance)), (now.fourth, earlier(then.fourth))
        ),
        bounds=(-np.inf if now.bounds[0] < 0 else 0.0, np.inf),
        confidence=confidence,
        steps=(now.steps, earlier(then.steps)),
    )
    lowest, highest = (np.where(np.isnan(linear), np.nan, 100 * (end - 1)) for end in (least, most))
    beyond = (lower > 0) | (upper < 0)
    noisy = variance > 0
    n = int(np.count_nonzero(noisy))
    return derived_frame(
        now.released,
        {
            "change": change,
            "std_error": np.sqrt(variance),
            "lower": lower,
            "upper": upper,
            "percent": percent,
            "percent_lower": np.fmin(lowest, percent),
            "percent_upper": np.fmax(highest, percent),
            "beyond_noise": beyond,
        },
        what="changes",
        before=source_of(then.released),
        column=str(now.column),
        confidence=confidence,
        changes=n,
        beyond_noise=int(np.count_nonzero(beyond & noisy)),
        by_chance=round((1 - confidence) * n, 6),
        beyond_noise_holm=holm(
            linear[noisy & beyond],
            (variance[noisy & beyond], fourth[noisy & beyond], steps[noisy & beyond]),
            n,
            confidence,
        ),
        only_before=len(before) - int(np.count_nonzero(paired)),
    )


def holm(
    changes: FloatArray, moments: tuple[FloatArray, FloatArray, FloatArray], n: int, confidence: float
) -> int:
    """Count the changes that Holm's method finds among n: with k found, k + 1 at the level alpha / (n - k).

    Those that are not beyond the noise by themselves are left out of `changes`: no level is larger.
    """
    found = 0
    while found < len(changes):
        wide = error_half_widths(*moments, 1 - (1 - confidence) / (n - found))
        more = int(np.count_nonzero(np.abs(changes) > wide))
        if more <= found:
            break
        found = more
    return found


def _check_comparable(now: Numbers, then: Numbers) -> None:
    """Refuse tables whose differences mean nothing."""
    if now.released.keys != then.released.keys:
        raise ArgumentError(
            "before",
            "has other levels than the table.",
            hint="compare releases of the same hierarchy.",
        )
    if (now.column, now.kind) != (then.column, then.kind):
        raise ArgumentError(
            "column",
            f"is not the same in both tables: {quote(now.column)} holds {_KINDS[now.kind]} in one and "
            f"{quote(then.column)} {_KINDS[then.kind]} in the other.",
            hint="name a column that both have.",
        )


def _check_other_release(released: pd.DataFrame, before: pd.DataFrame) -> None:
    """Refuse the same release twice: by its charge, or as the same object.

    Equal values do not tell: the noise of small tables is the same by chance, and to refuse these would leave
    out the cases of no change.
    """
    mine, theirs = (provenance_of(each).get("ledger") for each in (released, before))
    if released is before or (mine is not None and mine == theirs):
        raise ArgumentError(
            "before",
            "is the same release as the table: nothing can have changed.",
            hint="pass the table of another period.",
        )
