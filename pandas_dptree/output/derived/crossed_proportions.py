"""Proportions of crossed tables: of the cell above on one axis, or of the grand total."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, is_name, quote
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.hierarchy.margin_names import example
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.derived.crossed_estimates import CrossedEstimates

__all__ = ["bases_of"]


def bases_of(
    table: pd.DataFrame, of: Any, column: Hashable | None
) -> tuple[CrossedEstimates, IntArray, list[list[FloatArray]]]:
    """Return the estimates of a table, the row of each base, and bounds on their joint cumulants.

    `of` maps one axis to a level of it, or is "total". The errors may have any excess kurtosis between the
    least and the most of `CrossedEstimates.kurtoses`: there are eight joint cumulants for each of both.
    """
    estimates = CrossedEstimates.of(table, column)
    axis, level = _base_of(estimates, of)
    base = estimates.bases(axis, level)
    if (base < 0).all():
        raise ArgumentError(
            "of",
            f"is not in the table: it shows no margin with {quote(of)}.",
            hint="name a level that the table shows, or release that margin, too.",
        )
    itself = base == np.arange(len(base))
    variance, of_base = estimates.variance, estimates.variance[base]
    joint = np.where(itself, variance, estimates.covariances(axis, level))
    second = [variance, joint, of_base]
    fourth = [
        variance**2, variance * joint, (variance * of_base + 2 * joint**2) / 3, joint * of_base, of_base**2,
    ]  # fmt: skip
    return (
        estimates,
        base,
        [[*second, *(kurtosis * each for each in fourth)] for kurtosis in estimates.kurtoses],
    )


def _base_of(estimates: CrossedEstimates, of: Any) -> tuple[str | None, int]:
    """Return the axis and the level of the bases; no axis for the grand total."""
    if is_name(of) and of == ROOT:
        return None, 0
    axes = {axis: own.keys for axis, own in estimates.released.axes.items()}
    if not isinstance(of, Mapping) or len(of) != 1:
        raise ArgumentError(
            "of",
            f'must be "total", or name one axis and the level of the bases, not {quote(of)}.',
            hint=f"for example of={example({axis: [ROOT] for axis in list(axes)[:1]})}, which divides by "
            "the cell over all of that axis.",
        )
    ((axis, level),) = of.items()
    if axis not in axes or level not in [ROOT, *axes[axis]]:
        raise ArgumentError(
            "of",
            f"has no axis or level of the table: {quote(of)}.",
            hint="; ".join(f"{name} has {', '.join(map(str, [ROOT, *keys]))}" for name, keys in axes.items())
            + ".",
        )
    return axis, [ROOT, *axes[axis]].index(level)
