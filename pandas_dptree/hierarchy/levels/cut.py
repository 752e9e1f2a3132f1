"""Levels of a number: nested intervals."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, is_name, naming, quote
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import MAX_LEAVES, Domain
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.read_as import Numbers
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.signatures import public

__all__ = ["Cut", "cut"]

FloatArray = npt.NDArray[np.float64]

_DIGITS = 12
"""Significant digits of an end in labels, if they distinguish the ends."""


@dataclass(frozen=True, eq=False)
class Cut(DerivedLevels[Domain]):
    """Nested intervals of a number, whose ends are among those of the next level. Made by `cut`."""

    pitfall: ClassVar[str] = 'text in place of numbers, such as "$12.30"'
    """What to check if records belong to no leaf."""

    column: Hashable
    levels: tuple[str, ...]
    edges: tuple[FloatArray, ...]

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Columns of the records that are read."""
        return (self.column,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the keys, as in ``"age_group"``."""
        return tuple(f"{self.column}_{level}" for level in self.levels)

    @property
    def definition(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python types."""
        return ("cut", self.column, self.levels, *(edges.tolist() for edges in self.edges))

    @property
    def bins(self) -> Bins:
        """The finest intervals, which are the leaves in order."""
        return Bins(self.column, self.edges[-1])

    @cached_property
    def domain(self) -> Domain:
        """The public leaves."""
        texts = [_intervals(edges) for edges in self.edges]
        labels = [pd.CategoricalIndex(each, categories=each, ordered=True) for each in texts]
        codes = [np.searchsorted(edges, self.edges[-1][:-1], side="right") - 1 for edges in self.edges]
        return Domain.from_codes(self.names, labels, [tuple(each) for each in texts], codes)

    @property
    def read_as(self) -> Numbers:
        """Values are read as numbers."""
        return Numbers()

    def find(self, values: FloatArray) -> IntArray:
        """Find the leaf of each number of a float64 array; values outside are clipped, nan gets -1."""
        return self.bins.find(values)


@public
def cut(
    column: Hashable,
    bins: Sequence[float] | None = None,
    *,
    width: float | None = None,
    levels: Mapping[str, Any] | None = None,
    bounds: Any = None,
) -> Cut:
    """Describe levels of a numeric column: intervals, and smaller ones within them.

    Parameters
    ----------
    column : hashable
        The column that holds the numbers.
    bins : sequence of float, optional
        The ends of the intervals, increasing.
    width : float, optional
        Or the width of each interval between the `bounds`.
    levels : mapping, optional
        Or for each level, from the coarsest to the finest, its ends or its width, as in
        ``{"group": [0, 18, 65, 120], "band": 1}``. Ends of a level must be ends on the next one.
    bounds : pair, optional
        The lower and upper bound, if no level lists its ends.

    Returns
    -------
    Cut
        To be used in `by`.

    Raises
    ------
    ArgumentError
        If the ends do not increase, a width does not divide the range, or the intervals of a level are not
        nested in those of the level above.

    Notes
    -----
    Keys are named as in ``"age_group"``, or ``"age_bin"`` if there is one level. They are text such as
    ``[0, 18)``, ordered categories in the released table. Intervals contain their left end; the last one
    contains its right end, too.

    **Privacy.** Ends are public, and never taken from the records. Each value is read separately, and values
    outside the ends are clipped. Records without a number are dropped silently.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> ages = dpt.cut("age", levels={"group": [0, 18, 65, 120], "half": [0, 9, 18, 65, 120]})
    >>> ages.paths().values.tolist()[:2]
    [['[0, 18)', '[0, 9)'], ['[0, 18)', '[9, 18)']]
    """
    if column is None or not is_name(column):
        raise ArgumentError(
            "column",
            f"must name a column, not {quote(column)}.",
            hint=naming("column", "age", column),
        )
    if sum(given is not None for given in (bins, width, levels)) != 1:
        raise ArgumentError(
            "bins", "or `width` or `levels` must be given, only one.", hint="for example bins=[0, 18, 65]."
        )
    given = levels if levels is not None else {"bin": bins if bins is not None else width}
    if not isinstance(given, Mapping) or not given or not all(isinstance(name, str) for name in given):
        raise ArgumentError(
            "levels",
            f"must map names to ends or widths, not {quote(levels)}.",
            hint='for example {"group": [0, 18, 65, 120], "band": 5}.',
        )
    listed = {name: _listed(column, ends) for name, ends in given.items() if not np.isscalar(ends)}
    if bounds is not None and listed:
        raise ArgumentError("bounds", "cannot be combined with a list of ends.", hint="leave it out.")
    if bounds is None and not listed:
        raise ArgumentError(
            "bounds", "must be given if no ends are listed.", hint="for example bounds=(0, 120), if public."
        )
    between = next(iter(listed.values()))[[0, -1]] if listed else Bins.of(column, bounds=bounds, bins=1).edges
    if between.dtype.kind != "f":
        raise ArgumentError("bounds", "must be numbers.", hint="`calendar` makes levels of dates.")
    edges: dict[str, FloatArray] = {}
    for name, ends in given.items():
        own = listed[name] if name in listed else _even(column, between, ends, given)
        edges[name] = _within(edges, name, own)
    return Cut(column, tuple(edges), tuple(edges.values()))


def _listed(column: Hashable, ends: Any) -> FloatArray:
    """Read the ends of intervals."""
    if np.iterable(ends) and any(isinstance(end, Real) and end in (math.inf, -math.inf) for end in ends):
        raise ArgumentError(
            "bins",
            "must be finite.",
            hint="the first and the last interval also hold all values outside, so finite ends are enough.",
        )
    edges: npt.NDArray[Any] = Bins.of(column, bounds=None, bins=ends).edges
    if edges.dtype.kind != "f":
        raise ArgumentError("bins", "must be numbers.", hint="`calendar` makes levels of dates.")
    return edges


def _even(column: Hashable, between: FloatArray, width: Any, widths: Mapping[str, Any]) -> FloatArray:
    """Cut the range between two ends into intervals of a width.

    Where the digits suffice, ends are the floats nearest to their decimal labels: three times 0.1 is 0.3.
    """
    is_number = isinstance(width, Real) and not isinstance(width, (bool, np.bool_))
    try:
        n = float(between[1] - between[0]) / float(width) if is_number and width > 0 else math.nan
    except (OverflowError, ZeroDivisionError):  # integers and fractions beyond the range of floats
        n = math.nan
    if not 0.5 < n < MAX_LEAVES or abs(n - round(n)) > 1e-9 * n:
        raise ArgumentError(
            "width",
            f"must cut {between[0]:g} to {between[1]:g} into equal parts, not be {quote(width, of=widths)}.",
            hint="for example width=5 for the range from 0 to 120; or list the ends.",
        )
    edges: FloatArray = Bins.of(column, bounds=between.tolist(), bins=round(n)).edges
    with np.errstate(all="ignore"):  # exponents beyond the range of floats
        rounded = np.round(edges, _DIGITS - math.ceil(math.log10(np.abs(between).max()))) + 0.0
        near = np.abs(rounded - edges) <= 1e-9 * float(width)
    return np.concatenate([between[:1], rounded[1:-1], between[1:]]) if near.all() else edges


def _within(above: Mapping[str, FloatArray], name: str, edges: FloatArray) -> FloatArray:
    """Check that intervals are nested in those of the level above, and snap their ends to these."""
    if not above:
        return edges
    coarse, ends = list(above.items())[-1]
    place = np.searchsorted(edges[:-1] / 2 + edges[1:] / 2, ends)  # index of the nearest end
    off = np.abs(ends - edges[place]) > 1e-9 * min(np.diff(edges).min(), np.diff(ends).min())
    if off.any() or place[0] != 0 or place[-1] != len(edges) - 1:
        wrong = f"{ends[off][0]:g} is not an end there" if off.any() else "their first or last ends differ"
        raise ArgumentError(
            "levels",
            f"must be nested, but {quote(name)} is not nested in {quote(coarse)}: {wrong}.",
            hint="each end must be an end on the next level too; the first and the last must be the same.",
        )
    snapped = edges.copy()
    snapped[place] = ends
    return snapped


def _intervals(edges: FloatArray) -> list[str]:
    """Format intervals as text, with as many digits as needed to distinguish the ends."""
    texts = [f"{edge:.{_DIGITS}g}" for edge in edges]
    if len(set(texts)) < len(texts):
        texts = [repr(edge) for edge in edges.tolist()]
    closed = [")"] * (len(texts) - 2) + ["]"]
    return [f"[{low}, {high}{end}" for low, high, end in zip(texts, texts[1:], closed, strict=False)]
