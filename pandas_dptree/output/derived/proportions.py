"""Proportions of the parent, of a level, or of the total."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.estimation.joint_cumulants import cumulants_of_difference
from pandas_dptree.estimation.ratios import ratio_intervals
from pandas_dptree.output.additive import require_additive
from pandas_dptree.output.crossed_columns import axes_of
from pandas_dptree.output.crossed_tables import read_table
from pandas_dptree.output.derived.crossed_estimates import CrossedEstimates
from pandas_dptree.output.derived.crossed_proportions import bases_of
from pandas_dptree.output.derived.estimates import Estimates, level_of
from pandas_dptree.output.derived.frames import check_confidence, derived_frame
from pandas_dptree.output.released import provenance_of
from pandas_dptree.signatures import public

__all__ = ["MIN_BASE", "proportions"]

MIN_BASE = 4.0
"""A ratio is shown if its base is at least this many of its standard errors, as means are."""


@public
def proportions(
    released: pd.DataFrame,
    of: Any = "parent",
    *,
    column: Hashable | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    r"""Divide the numbers of a released table by those of nodes above.

    Parameters
    ----------
    released : pandas.DataFrame
        The whole table of counts or of sums that cannot be negative, with the column ``linear`` unless
        ``consistency="linear"`` or ``"none"``: release it with ``keep=["linear"]``.
    of : hashable or mapping, default "parent"
        ``"parent"``, ``"total"``, or the name of a level. Of a crossed table ``"total"``, the grand total, or
        one axis with the level of the base: ``{"sex": "total"}`` divides by the cell over all sexes,
        ``{"place": "state"}`` by that of the same sex in the whole state.
    column : hashable, optional
        The count or sum to divide, by default the first.
    confidence : float, default 0.95
        That of the intervals.

    Returns
    -------
    pandas.DataFrame
        A row for each row of the table: ``level``, the keys, ``proportion`` (from 0 to 1), its ``std_error``,
        and ``lower`` and ``upper``, which hold the true proportion with the confidence. The number is missing
        if the base is below 4 of its standard errors; the interval is not. All are missing for rows that have
        no such node above. ``attrs["dp_derived"]`` says what the frame is.

    Raises
    ------
    ArgumentError
        If the table lacks what is needed: it was changed, has private keys or bounded relative error, or does
        not show the unbiased estimates; or if the column counts distinct units, whose numbers do not add up.

    Notes
    -----
    A proportion is the quotient t of the numbers that the table shows, so those of all children of a node add
    up to 1. Its interval is that of the unbiased estimates, with their exact covariance, by Fieller's method
    (:math:`(x - ty)^2 \le q^2\,\mathrm{Var}(x - ty)`), and is widened to contain t. The standard error is
    that of the first order, :math:`\sqrt{\mathrm{Var}(x - ty)}/y`.

    **Privacy**: post-processing of the released table, which spends nothing. The error is that of the noise
    alone.

    Examples
    --------
    >>> import pandas as pd, pandas_dptree as dpt
    >>> records = pd.DataFrame({"state": ["CA"] * 300 + ["NY"] * 200, "city": ["Oakland"] * 500})
    >>> counts = records.dp.tree_counts(["state", "city"], epsilon=1.0, domain="observed", keep=["linear"])
    >>> shares = counts.dp.proportions(of="total")
    >>> shares.columns.tolist()
    ['level', 'state', 'city', 'proportion', 'std_error', 'lower', 'upper']
    """
    check_confidence(confidence)
    require_additive(
        provenance_of(released),
        read_table(released).shown(column, argument="column").name,
        "proportions",
        hint="divide counts of records, which tree_counts releases.",
    )
    estimates: Estimates | CrossedEstimates
    if axes_of(released):
        estimates, base, joint_of = bases_of(released, of, column)
        steps = estimates.steps
    else:
        estimates = Estimates.of(released, column)
        level = None if of == "parent" else level_of(estimates.released, of, "of")
        base, steps = estimates.ancestors(level), estimates.moments[2]
        joint_of = [estimates.joint_moments(level)]
    if estimates.quantity.signed:
        raise ArgumentError(
            "column",
            f"has values that may be negative, of which there are no proportions: {quote(estimates.column)}.",
            hint="use counts, or sums whose bounds begin at 0 or above.",
        )
    joint = joint_of[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        total = estimates.shown[base]
        enough = (total > 0) & (total >= MIN_BASE * np.sqrt(joint[2]))
        share = np.where(enough, estimates.shown / total, np.nan)
        error = np.sqrt(cumulants_of_difference(joint, share)[0]) / total
    ends = [
        ratio_intervals(
            estimates.linear,
            estimates.linear[base],
            joint_cumulants=each,
            bounds=(0.0, 1.0),
            confidence=confidence,
            steps=(steps, steps[base]),
        )
        for each in joint_of
    ]
    lower, upper = np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
    columns = {
        "proportion": share,
        "std_error": error,
        "lower": np.fmin(lower, share),
        "upper": np.fmax(upper, share),
    }
    return derived_frame(
        estimates.released,
        {name: np.where(base < 0, np.nan, values) for name, values in columns.items()},
        what="proportions",
        base=str(of),
        column=str(estimates.column),
        confidence=confidence,
    )
