"""Tables of a released distribution: all post-processing of one release."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote, warn
from pandas_dptree.estimation.monotone import consistent_cdfs
from pandas_dptree.estimation.quantiles import possible_bins, quantile_bins, quantile_positions
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes, located
from pandas_dptree.output.doubtful_tables import (
    NEARLY_ALL,
    WIDEST_END,
    Doubt,
    Level,
    quantiles_at_bounds,
    wide_intervals,
)
from pandas_dptree.output.empty_tables import FEWEST, Totals, may_be_noise
from pandas_dptree.output.html_page import check_title, returned_or_saved
from pandas_dptree.output.pages.page import PageOptions, page
from pandas_dptree.output.pictures.cumulative import plot_cumulative
from pandas_dptree.output.table_digest import Keeper, alteration, state_digest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COMPANIONS", "Distribution", "checked_confidence", "edges_of_ranges", "levels_of_quantiles"]

COMPANIONS = ("count", "cdf", "std_error", "lower", "upper", "q", "value")
"""Columns of the tables: no key may have such a name, nor may the column if there are keys."""

HIGHEST_CONFIDENCE = 0.999
"""A higher one would need too many draws of the noise."""

_USUAL = 0.95
"""The confidence of intervals that are not shown, but may be doubtful."""

_BLOCK = 2**21
"""How many estimates are compared with the half widths at a time."""

FloatArray = npt.NDArray[np.float64]


class Errors(Protocol):
    """The errors of the estimates of a group, with or without a known total."""

    def variances(self, *, known_total: bool) -> FloatArray:
        """Compute the variances of the estimates, shape (n_bins,)."""

    def range_variances(self, starts: IntArray, stops: IntArray, *, known_total: bool) -> FloatArray:
        """Compute the variances of the numbers of values in the bins ``starts <= bin < stops``."""

    def half_widths(self, confidence: float, *, known_total: bool) -> FloatArray:
        """Compute the half widths of a simultaneous band for the errors, shape (n_bins,)."""

    def quantile_half_widths(
        self, shares: tuple[float, ...], confidence: float, *, known_total: bool
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Compute half widths for the intervals of quantiles, two of shape (n_bins,) for each of them."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Distribution:
    """A released distribution, of one group of records or of many.

    Made by the `release` of a `DistributionPlan`. All tables made from it are free of privacy cost.

    Attributes
    ----------
    bins : Bins
        The bins of the column.
    groups : pandas.DataFrame or None
        One row per group, with its ``level`` and keys; None if all records are one group.
    estimates : numpy.ndarray, shape (n_groups, n_bins)
        Unbiased estimates of the cumulative counts. They need not be monotone. Those of the groups of a
        hierarchy add up, until they are rounded to `cumulative`.
    totals : numpy.ndarray of int64, shape (n_groups,)
        The number of records of each group if it is public, otherwise -1.
    strategy : Errors
        What was measured; it determines the errors of the estimates.
    attrs : mapping
        The attributes of each table: ``dp``, how the release was made, and ``dp_plan``, its plan as text.
    cumulative : numpy.ndarray of int64, shape (n_groups, n_bins)
        The non-decreasing integers closest to `estimates`, from 0 to the number of records.
    variances_left : numpy.ndarray, shape (n_groups, 2), or None
        What part of the variances of a group's own measurement is left, because the groups of all levels
        agree with each other: of those with a known total, and of what the error of the total adds. None if
        no levels were made consistent.
    """

    bins: Bins
    groups: pd.DataFrame | None
    estimates: FloatArray
    totals: IntArray
    strategy: Errors
    attrs: Mapping[str, Any]
    cumulative: IntArray = field(init=False)
    variances_left: FloatArray | None = None

    def __post_init__(self) -> None:
        """Correct the estimates to be whole and non-decreasing."""
        free = np.rint(np.maximum(self.estimates[:, -1], 0)).astype(np.int64)
        totals = np.where(self.totals < 0, free, self.totals)
        object.__setattr__(self, "cumulative", consistent_cdfs(self.estimates, totals))

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the release was made, in plain JSON."""
        provenance: Mapping[str, Any] = self.attrs["dp"]
        return provenance

    @property
    def std_errors(self) -> FloatArray:
        """Standard errors of `estimates`, shape (n_groups, n_bins)."""
        return np.sqrt(self._variances_by_group(self.strategy.variances))

    def _range_errors(self, starts: IntArray, stops: IntArray) -> FloatArray:
        """Standard errors of the differences of `estimates`, shape (n_groups, n_ranges)."""
        return np.sqrt(self._variances_by_group(partial(self.strategy.range_variances, starts, stops)))

    def _by_group(self, of: Callable[..., FloatArray]) -> FloatArray:
        """Evaluate `of`, half widths, for each group; a known total of 0 has no error."""
        cases, group = np.unique(self.totals >= 0, return_inverse=True)
        widths = np.stack([of(known_total=bool(case)) for case in cases])[group]
        return np.where((self.totals == 0)[:, None], 0.0, widths)

    def _variances_by_group(self, of: Callable[..., FloatArray]) -> FloatArray:
        """Evaluate `of`, variances of a group's own measurement, and what is left of them in each group."""
        left = self.variances_left
        if left is None:
            left = np.stack([self.totals != 0, self.totals < 0], axis=1).astype(np.float64)
        known, unknown = of(known_total=True), of(known_total=False)
        return np.outer(left[:, 0], known) + np.outer(left[:, 1], np.maximum(unknown - known, 0.0))

    def cdf(self, *, confidence: float | None = None) -> pd.DataFrame:
        """Tabulate how many values, and what share of them, lie below the end of each bin.

        Parameters
        ----------
        confidence : float, optional
            For example 0.95: adds ``lower`` and ``upper``, which contain all true counts of a group,
            of the values that were counted, simultaneously with this probability. At most 0.999.

        Returns
        -------
        pandas.DataFrame
            One row per bin: ``count``, the number of values in this bin and all before; ``cdf``, its share of
            the total (missing for an empty group); ``std_error`` of the count before it was made whole and
            non-decreasing. Indexed by the bins; with groups, their level, their keys and the bin (named like
            the values) are columns.
        """
        count = self.cumulative
        total = count[:, -1:].astype(np.float64)
        columns = {
            "count": count,
            "cdf": np.divide(count, total, out=np.full(count.shape, np.nan), where=total > 0),
            "std_error": self.std_errors,
        }
        if confidence is not None:
            columns["lower"], columns["upper"] = self._band(confidence)
        return self._table(columns, self.bins.index)

    def histogram(self) -> pd.DataFrame:
        """Tabulate how many values lie in each bin.

        Returns
        -------
        pandas.DataFrame
            ``count``, whole and non-negative, and the ``std_error`` of its unbiased estimate; like `cdf`.
        """
        places = np.arange(self.bins.n_bins)
        errors = self._range_errors(places, places + 1)
        count = np.diff(self.cumulative, axis=1, prepend=0)
        return self._table({"count": count, "std_error": errors}, self.bins.index)

    def range_counts(self, ranges: Sequence[Any]) -> pd.DataFrame:
        """Tabulate how many values lie in given ranges.

        Parameters
        ----------
        ranges : sequence of pairs
            The ends of each range, which must be edges of bins. The left end is included. The right one is
            not, unless it is the end of the last bin.

        Returns
        -------
        pandas.DataFrame
            One row per range: ``count``, and the ``std_error`` of its unbiased estimate. Indexed by the
            ranges, or laid out like `cdf`.

        Raises
        ------
        ArgumentError
            If a range is not a pair of edges, the lower one first.
        """
        edges = edges_of_ranges(self.bins, ranges)
        starts, stops = edges[::2], edges[1::2]
        sums = np.insert(self.cumulative, 0, 0, axis=1)
        ends = self.bins.values_at(edges)
        index = pd.IntervalIndex.from_arrays(ends[::2], ends[1::2], closed="left", name=self.bins.column)
        count = sums[:, stops] - sums[:, starts]
        return self._table({"count": count, "std_error": self._range_errors(starts, stops)}, index)

    def quantiles(self, q: Any, *, confidence: float | None = 0.95) -> pd.DataFrame:
        """Estimate quantiles of the values.

        Parameters
        ----------
        q : float or sequence of float
            The levels, from 0 to 1; 0.5 for the median.
        confidence : float, default 0.95
            The probability that ``lower`` and ``upper`` contain all true quantiles of a group, of
            the values that were counted, simultaneously. None leaves them out.

        Returns
        -------
        pandas.DataFrame
            One row per level: ``value``, interpolated within the bin in which the level is reached; and
            ``lower`` and ``upper``, which are edges of bins. Indexed by ``q``, or with groups laid out like
            `cdf`, with a column ``q``. The quantile 0 is the start of the first bin that has values, 1 the
            end of the last. For a group without values, the value is missing, and the bounds remain.

        Raises
        ------
        ArgumentError
            If a level is not between 0 and 1, or the confidence not between 0 and 0.999.
        """
        table, doubts = self._quantiles_with_doubts(q, confidence)
        for doubt in doubts:
            warn(doubt.fact, hint=doubt.hint, released=table)
        return table

    def _quantiles_with_doubts(self, q: Any, confidence: float | None) -> tuple[pd.DataFrame, list[Doubt]]:
        """Tabulate quantiles, and say what is doubtful about them."""
        shares = levels_of_quantiles(q)
        lower, upper = self.quantile_intervals(q, _USUAL if confidence is None else confidence)
        edges = self.bins.edges
        wide = edges[upper] - edges[lower] >= NEARLY_ALL * (edges[-1] - edges[0])
        places: dict[str, npt.NDArray[Any]] = {"value": quantile_positions(self.cumulative, shares)}
        if confidence is not None:
            bins = quantile_bins(self.cumulative, shares)  # one beyond the last where there are no values
            places["lower"] = np.minimum(lower, bins)
            places["upper"] = np.maximum(upper, np.minimum(bins + 1, self.bins.n_bins))
        columns = {name: self.bins.values_at(each.reshape(-1)) for name, each in places.items()}
        table = self._table(columns, pd.Index(shares, name="q"))
        table.attrs["dp"]["confidence"] = confidence
        return table, self._doubts(shares, wide)

    def quantile_intervals(self, q: Any, confidence: float) -> tuple[IntArray, IntArray]:
        """Find intervals of bins that contain all true quantiles of a group at once.

        Other than those of `quantiles`, they need not contain the estimate.

        Parameters
        ----------
        q : float or sequence of float
            The levels, from 0 to 1.
        confidence : float
            The probability that the intervals contain all true quantiles of a group, of the values that
            were counted, simultaneously. At most 0.999.

        Returns
        -------
        lower, upper : numpy.ndarray of int64, shape (n_groups, n_levels)
            Numbers of the edges of bins, from 0 to the number of bins: `Bins.values_at` has the values. For
            a group without values they are the first and the last.

        Raises
        ------
        ArgumentError
            As for `quantiles`.
        """
        shares, confidence = levels_of_quantiles(q), checked_confidence(confidence)
        lower = np.zeros((len(self.totals), len(shares)), dtype=np.int64)
        upper = np.full(lower.shape, self.bins.n_bins)
        for known in (False, True):
            groups = np.flatnonzero(((self.totals >= 0) == known) & (self.cumulative[:, -1] > 0))
            if not len(groups):
                continue
            widths = self.strategy.quantile_half_widths(tuple(shares.tolist()), confidence, known_total=known)
            for place, (share, half) in enumerate(zip(shares.tolist(), widths, strict=True)):
                for block in np.array_split(groups, -(-len(groups) * self.bins.n_bins // _BLOCK)):
                    own = self.estimates[block]
                    totals = self.totals[block].astype(np.float64) if known else own[:, -1]
                    first, last = possible_bins(own, totals, share, half)
                    lower[block, place], upper[block, place] = first, last + 1
        order = np.argsort(shares, kind="stable")  # as quantiles are in order, so are the ends
        lower[:, order] = np.maximum.accumulate(lower[:, order], axis=1)
        upper[:, order] = np.minimum.accumulate(upper[:, order[::-1]], axis=1)[:, ::-1]
        return lower, np.maximum(upper, lower + 1)

    @property
    def _all_records(self) -> slice:
        """The groups of the first level, which together hold all records."""
        one_level = self.groups is None or (self.groups["level"] == self.groups["level"].iloc[0]).all()
        return slice(None) if one_level else slice(1)

    @property
    def _totals(self) -> Totals:
        """The totals of `_all_records`, except public ones, with three standard errors."""
        first, last = np.array([0]), np.array([self.bins.n_bins])
        variance = float(self.strategy.range_variances(first, last, known_total=False)[0])
        unknown = self.totals[self._all_records] < 0
        return {"count": (self.cumulative[self._all_records, -1][unknown], FEWEST * np.sqrt(variance))}

    def _doubts(self, share: FloatArray, wide: npt.NDArray[np.bool_]) -> list[Doubt]:
        """Say where quantiles are at the bounds, or have intervals nearly from bound to bound (`wide`)."""
        shown, noise = self._totals["count"]
        inner = (share > 0) & (share < 1)
        if not inner.any() or np.sum(shown) <= may_be_noise(shown, noise):
            return []  # of an empty table the release says so
        n, edges = self.bins.n_bins, self.bins.edges
        levels = np.zeros(len(wide)) if self.groups is None else self.groups["level"]
        of_level, _ = pd.factorize(levels)
        doubts = wide_intervals(self.bins.column, np.all(wide[:, inner], axis=1), of_level)
        ends = np.diff(edges)[[0, -1]] / (edges[-1] - edges[0])
        if doubts or max(ends.tolist()) > WIDEST_END:
            return doubts
        starts = np.array([0, n - 1, 1, n - 2, 0])  # the ends, the bins beside them, and all
        stops = np.array([1, n, 2, n - 1, n])
        sums = np.insert(self.estimates, 0, 0, axis=1)
        ranges = Level(sums[:, stops] - sums[:, starts], self._range_errors(starts, stops) ** 2)
        return quantiles_at_bounds(self.bins.column, share[inner], ranges)

    def plot(self, group: Any = None, *, confidence: float | None = 0.95, ax: Axes | None = None) -> Axes:
        """Draw the cumulative counts of a group as steps, and a simultaneous band of what was counted.

        Parameters
        ----------
        group : label or tuple of labels, optional
            The keys of the group, from the coarsest down. By default all records.
        confidence : float, default 0.95
            Of the band; None for none.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
            Durations are in seconds.

        Raises
        ------
        ArgumentError
            If there is no such group.
        MissingExtraError
            If matplotlib is not installed.
        """
        row, name = self._row(group)
        lower, upper = (None, None) if confidence is None else self._band(confidence)
        band = None if lower is None or upper is None else (lower[row], upper[row])
        edges, unit = self.bins.values_at(np.arange(self.bins.n_bins + 1)), ""
        if edges.dtype.kind == "m":
            edges, unit = edges / np.timedelta64(1, "s"), " (seconds)"
        xlabel = f"{self.bins.column}{unit}"
        return plot_cumulative(edges, self.cumulative[row], band, ax, label=name, xlabel=xlabel)

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        title: str | None = None,
        quantiles: Sequence[float] = (0.1, 0.25, 0.5, 0.75, 0.9),
        ranges: Any = None,
        confidence: float = 0.95,
        ledger: Keeper | None = None,
        **options: Unpack[PageOptions],
    ) -> str | None:
        """Format the distribution as a self-contained page, with its protection in words.

        It shows the cumulative counts with their band, quantiles and counts of ranges of all records, and the
        quartiles of each group. `pandas_dptree.page` sets it on one page with other tables.

        **Privacy.** All of this follows from the release, so it costs nothing.

        Parameters
        ----------
        path : str or path, optional
            The file to write, in whole or not at all. By default the page is returned.
        title : str, optional
            By default the name of the column.
        quantiles, ranges
            As for `quantiles` and `range_counts`; by default the bins are the ranges, if they are at most 20.
        confidence : float, default 0.95
            Of the band and of the intervals.
        ledger : Ledger, optional
            The ledger that the release was charged to, in which the page looks for changes of the table.
        **options
            `date`, `publisher`, `notes`, `labels`, `language`, `interactive`, `reliability` and `blank`, as
            in `pandas_dptree.page`.

        Returns
        -------
        str or None
            The page, if no path is given.

        Raises
        ------
        ArgumentError
            If an argument does not fit, or the file cannot be written.
        """
        check_title(title)
        shown = {"table": "", "quantiles": quantiles, "ranges": ranges, "confidence": confidence}
        heading = str(self.bins.column) if title is None else title
        made = page({"": self}, title=heading, show=[shown], ledger=ledger, **options)
        return returned_or_saved(made.html, path)

    def _row(self, group: Any) -> tuple[int, str]:
        """Find the row of a group by its keys, and its name."""
        path = () if group is None else group if isinstance(group, tuple) else (group,)
        groups = pd.DataFrame({"level": ["total"]}) if self.groups is None else self.groups
        keys = groups.columns[1:]
        found = np.zeros(len(groups), dtype=bool)
        if len(path) <= len(keys):
            found = (groups["level"] == ("total", *keys)[len(path)]).to_numpy()
            for key, label in zip(keys, path, strict=False):
                codes, forms = canonical_codes(groups[key])
                (code,) = located(pd.Series([label], dtype=object), forms)
                found = found & (codes == code)
        if not found.any():
            raise ArgumentError(
                "group",
                f"is not in the distribution: {quote(group)}.",
                hint="name its keys from the coarsest down, for example ('Ohio', 'Lake').",
            )
        return int(np.flatnonzero(found)[0]), ", ".join(map(str, path)) or "total"

    def _band(self, confidence: float) -> tuple[IntArray, IntArray]:
        """Return the simultaneous band of all true counts: whole, non-decreasing, and ending in known totals.

        It is extended to contain `cumulative`, which may leave the band of the estimates if these are not
        monotone.
        """
        half = self._by_group(partial(self.strategy.half_widths, checked_confidence(confidence)))
        lower = np.ceil(np.maximum.accumulate(self.estimates - half, axis=1) - 1e-6)
        upper = np.floor(np.minimum.accumulate((self.estimates + half)[:, ::-1], axis=1)[:, ::-1] + 1e-6)
        most = np.where(self.totals < 0, np.iinfo(np.int64).max // 2, self.totals)[:, None]
        lower = np.minimum(np.clip(lower, 0, most).astype(np.int64), self.cumulative)
        upper = np.maximum(np.clip(upper, 0, most).astype(np.int64), self.cumulative)
        known = self.totals >= 0
        lower[known, -1] = upper[known, -1] = self.totals[known]
        return lower, upper

    def _table(self, columns: Mapping[str, npt.NDArray[Any]], index: pd.Index) -> pd.DataFrame:
        """Arrange values of shape (n_groups, n_rows) in one table, group by group."""
        flat: dict[Hashable, Any] = {
            name: values.reshape(-1) if isinstance(values, np.ndarray) else values
            for name, values in columns.items()
        }
        if self.groups is None:
            table = pd.DataFrame(flat, index=index)
        else:
            rows = np.repeat(np.arange(len(self.groups)), len(index))
            keys = {name: column.take(rows).reset_index(drop=True) for name, column in self.groups.items()}
            inner = {index.name: index.take(np.tile(np.arange(len(index)), len(self.groups)))}
            table = pd.DataFrame({**keys, **inner, **flat})
        table.attrs.update(copy.deepcopy(self.attrs))
        return state_digest(table)

    def __repr__(self) -> str:
        """Summarize the distribution in one line."""
        groups = "" if self.groups is None else f" of {len(self.groups)} groups"
        altered = alteration(self)
        altered = f": {altered}" if altered else ""
        return f"Distribution{groups} of {self.bins.column!r} in {self.bins.n_bins} bins{altered}"


def edges_of_ranges(bins: Bins, ranges: Any) -> IntArray:
    """Return the numbers of the edges at which ranges start and stop, one after the other."""
    pairs = _pairs(ranges)
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            "ranges",
            f"must hold pairs of values, not {quote(ranges)}.",
            hint="for example [(0, 18), (18, 65)].",
        )
    edges = bins.edge_numbers("ranges", [end for pair in pairs for end in pair])
    if (edges[::2] >= edges[1::2]).any():
        raise ArgumentError(
            "ranges",
            f"must have their lower ends first, not {quote(ranges)}.",
            hint="for example [(18, 65)].",
        )
    return edges


def _pairs(ranges: Any) -> list[tuple[Any, ...]]:
    """Convert ranges to tuples; an object that cannot be iterated gives none."""
    return [
        tuple(pair) if np.iterable(pair) and not isinstance(pair, str) else (pair,)
        for pair in (ranges if np.iterable(ranges) else [])
    ]


def levels_of_quantiles(q: Any) -> FloatArray:
    """Read the levels of quantiles, shape (n_levels,)."""
    parts = np.atleast_1d(np.asarray(q, dtype=object))
    if parts.ndim != 1 or not len(parts) or not all(map(_is_fraction, parts)):
        raise ArgumentError(
            "q", f"must be numbers from 0 to 1, not {quote(q)}.", hint="for example [0.1, 0.5]."
        )
    return parts.astype(np.float64)


def checked_confidence(confidence: Any) -> float:
    """Check a confidence, and return it as a float."""
    number = isinstance(confidence, (int, float)) and not isinstance(confidence, bool)
    if not number or not 0 < confidence <= HIGHEST_CONFIDENCE:
        raise ArgumentError(
            "confidence",
            f"must be a number above 0 and at most {HIGHEST_CONFIDENCE}, not {quote(confidence)}.",
            hint="for example 0.95.",
        )
    return float(confidence)


def _is_fraction(value: Any) -> bool:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.timedelta64))
    return number and bool(0 <= value <= 1)
