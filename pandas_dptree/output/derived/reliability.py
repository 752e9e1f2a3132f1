"""Classes of reliability, as statistical offices print them beside numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.output.crossed_tables import read_table
from pandas_dptree.output.derived.frames import derived_frame
from pandas_dptree.signatures import public

__all__ = ["CLASSES", "KNOWN", "grades", "limits_of", "reliability"]

FloatArray = npt.NDArray[np.float64]

KNOWN: Final = "="
"""The class of numbers without an error."""

CLASSES: Final[Mapping[str, Mapping[str, float]]] = {
    "statcan": {"A": 0.05, "B": 0.10, "C": 0.15, "D": 0.25, "E": 0.50, "F": math.inf},
    "abs": {"": 0.25, "*": 0.50, "**": math.inf},
}
"""The relative error below which each class is, by who prints them: the only place of these limits."""


@public
def reliability(released: pd.DataFrame, *, classes: str | Mapping[str, float] = "statcan") -> pd.DataFrame:
    """Grade the numbers of a released table by their relative standard errors.

    Parameters
    ----------
    released : pandas.DataFrame
        A released table with standard errors, or some of its rows.
    classes : {"statcan", "abs"} or mapping, default "statcan"
        ``"statcan"``: A below 5 %, B below 10, C below 15, D below 25, E below 50 (use with caution), F from
        50 % on (too unreliable to be published); A to D as in business surveys of Statistics Canada, whose
        surveys differ in where F begins. ``"abs"``: ``*`` from 25 to 50 %, ``**`` above, as the Australian
        Bureau of Statistics marks estimates, and nothing below. A mapping gives the relative error below
        which each class is, in increasing order; the last is that of all others, and of 0.

    Returns
    -------
    pandas.DataFrame
        ``level``, the keys, and for each count, sum or mean the class of its standard error divided by its
        size: ``=`` where the number is known, the last class for 0, and missing where the number is.

    Raises
    ------
    ArgumentError
        If the frame is not a released table with standard errors, or `classes` cannot be used.

    Notes
    -----
    **Privacy**: post-processing of the released table, which spends nothing. Blanking numbers of a class
    protects nobody. A zero is in the last class however small its error, so publish its interval, too.

    Examples
    --------
    >>> import pandas as pd, pandas_dptree as dpt
    >>> records = pd.DataFrame({"state": ["CA"] * 3000})
    >>> counts = records.dp.tree_counts(["state"], epsilon=1.0, domain="observed")
    >>> counts.dp.reliability()["count"].tolist()
    ['A', 'A']
    """
    limits = limits_of(classes)
    table = read_table(released)
    letters = {}
    for column in table.columns:
        shown = table.shown(column)
        if shown.error is None or shown.error_name != "standard error":
            raise ArgumentError(
                "released",
                "has error bounds instead of standard errors, which have no classes.",
                hint="print the bounds, which hold for all rows.",
            )
        letters[column] = grades(shown.numbers, shown.error, limits)
    return derived_frame(table, letters, what="reliability", classes=dict(limits))


def grades(numbers: FloatArray, errors: FloatArray, limits: Mapping[str, float]) -> npt.NDArray[np.object_]:
    """Return the class of each number; None where it is missing."""
    size = np.abs(numbers)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(size > 0, errors / size, np.inf)
    place = np.searchsorted([*limits.values()][:-1], ratio, side="right")
    graded = np.array([*limits], dtype=object)[place]
    graded[errors == 0] = KNOWN
    graded[np.isnan(size)] = None
    return graded


def limits_of(classes: Any, argument: str = "classes") -> Mapping[str, float]:
    """Return the relative error below which each class is."""
    if isinstance(classes, str) and classes in CLASSES:
        return CLASSES[classes]
    limits = list(classes.values()) if isinstance(classes, Mapping) else []
    numbers = all(isinstance(each, (int, float)) and each > 0 for each in limits[:-1])
    if not limits or not all(isinstance(name, str) for name in classes) or not numbers:
        raise ArgumentError(
            argument,
            f"must be one of {', '.join(map(repr, CLASSES))}, or map names to relative errors, not "
            f"{quote(classes)}.",
            hint=f'for example {argument}={{"good": 0.1, "fair": 0.3, "poor": float("inf")}}.',
        )
    if limits[:-1] != sorted({*limits[:-1]}):
        raise ArgumentError(
            argument, "has relative errors that do not increase.", hint="begin with the smallest."
        )
    return {**classes}
