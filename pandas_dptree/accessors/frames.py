"""The ``.dp`` accessors of pandas, without state: each method is one call."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Unpack

import pandas as pd

from pandas_dptree.accessors.methods import method
from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.output import files
from pandas_dptree.output.crossed_columns import axes_of
from pandas_dptree.output.crossed_frames import select_margin
from pandas_dptree.output.derived import areas, changes, largest, proportions, reliability
from pandas_dptree.output.distribution import Distribution
from pandas_dptree.output.frames import select_level
from pandas_dptree.output.html_page import returned_or_saved
from pandas_dptree.output.pages.levels import MAX_ROWS
from pandas_dptree.output.pages.page import PageOptions, page_of_one
from pandas_dptree.output.pictures.released_plots import ReleasedPlots
from pandas_dptree.output.sheets import Layout
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.options import QUANTILE_SERIES, RUNNING, SERIES, DistributionOptions, Running, takes
from pandas_dptree.signatures import public
from pandas_dptree.verbs import distributions, record_plans, tables
from pandas_dptree.verbs.domains import released_domain

if TYPE_CHECKING:
    from pandas_dptree.ledger.book import Ledger

__all__ = ["DataFrameAccessor", "SeriesAccessor"]

_OF_RELEASED_TABLES: Final = (
    "change_from", "combine", "domain", "level", "plot", "proportions", "reliability", "to_file", "to_html",
    "top",
)  # fmt: skip

_OF_CROSSED_TABLES: Final = (
    "change_from", "combine", "domain", "margin", "plot", "proportions", "reliability", "to_file", "to_html",
    "top",
)  # fmt: skip


class DataFrameAccessor:
    """Differentially private releases of the records of a frame, and views of a released table."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._data = frame

    def __dir__(self) -> list[str]:
        """List what can be done with a released table, or else with records, for completion."""
        if _looks_released(self._data):
            return [*(_OF_CROSSED_TABLES if axes_of(self._data) else _OF_RELEASED_TABLES)]
        views = {*_OF_RELEASED_TABLES, *_OF_CROSSED_TABLES}
        return [name for name in vars(type(self)) if not name.startswith("_") and name not in views]

    tree_counts = method(tables.tree_counts)
    tree_units = method(tables.tree_units)
    tree_sums = method(tables.tree_sums)
    tree_means = method(tables.tree_means)
    tree_agg = method(tables.tree_agg)
    release_distribution = method(distributions.release_distribution)
    cdf = method(distributions.cdf)
    histogram = method(distributions.histogram)
    range_counts = method(distributions.range_counts)
    quantiles = method(distributions.quantiles)
    plan = method(record_plans.plan)
    plan_units = method(record_plans.plan_units)
    plan_sums = method(record_plans.plan_sums)
    plan_means = method(record_plans.plan_means)
    plan_agg = method(record_plans.plan_agg)
    plan_distribution = method(record_plans.plan_distribution)
    plan_quantiles = method(record_plans.plan_quantiles)
    proportions = method(proportions.proportions)
    change_from = method(changes.change_from)
    combine = method(areas.combine)
    top = method(largest.top)
    reliability = method(reliability.reliability)

    @takes(*RUNNING)
    def release(self, plan: Plan[Any], **options: Unpack[Running]) -> Any:
        """Spend the budget of a plan of any kind on these records: see `pandas_dptree.Plan.release`."""
        if not isinstance(plan, Plan):
            raise ArgumentError(
                "plan", f"must be a plan, not {quote(plan)}.", hint="frame.dp.plan(...) makes one."
            )
        return plan.release(self._data, **options)

    def level(self, name: Hashable) -> pd.DataFrame:
        """Select one level of a released table, indexed as by ``groupby``.

        Parameters
        ----------
        name : hashable
            ``"total"`` or the name of a key.

        Returns
        -------
        pandas.DataFrame
            The values and their errors, indexed by the keys from the coarsest down to `name`; in a table of
            a distribution also by its bins, ranges or probabilities.

        Raises
        ------
        ArgumentError
            If the frame is not a released table, or has no such level.
        """
        return select_level(self._data, name)

    def margin(self, *levels: Any, **of_axes: Hashable) -> pd.DataFrame:
        """Select one margin of a released table of crossed hierarchies, indexed as by ``groupby``.

        Parameters
        ----------
        *levels
            Names of levels of different axes, as in ``margin("county", "sex")``, or one mapping or list of
            them: ``{"place": "county", "sex": "sex"}``. Axes that are left out have the level ``"total"``;
            without any level, this is the grand total.
        **of_axes
            The same by keywords: ``margin(place="county", sex="sex")``.

        Returns
        -------
        pandas.DataFrame
            The values and their errors, indexed by the keys of each axis from the coarsest down to its level,
            axis by axis.

        Raises
        ------
        ArgumentError
            If the frame is not a released table of crossed hierarchies, or has no such axis, level or margin.
        """
        return select_margin(self._data, *levels, **of_axes)

    def domain(self) -> Domain | CrossedDomain:
        """Return the keys of a released table as a public domain.

        It serves for sums, means and quantiles of the same records, for next month's table, or for a join.
        The table may have been filtered, or read back from a file.

        Returns
        -------
        Domain
            With the levels of the table, down to the deepest that shows a key. Its leaves are the nodes that
            the table shows no node below; one above the deepest level is the leaf of a shorter path, to which
            records belong whose keys are missing below it. Remainders (rows with a missing key, or with
            ``other``) are no keys. Its `Domain.source` is ``"released"``. Of a table of crossed hierarchies
            a CrossedDomain, with the axes of which it shows a key.

        Raises
        ------
        ArgumentError
            If it is not a released table, has several rows for a node, or rows without a key above their
            level.
        DomainError
            If it shows no key.

        Notes
        -----
        **Privacy**: this is post-processing of what has been published, and spends nothing. Whether the table
        was really released cannot be checked: records in the form of a released table would publish their
        keys. A release with this domain has a privacy loss of its own, which adds to that of the release that
        chose the keys, if it is about the same units. Where that one had its keys from, such as
        ``"observed"``, only its own ``attrs`` state.

        A key that is absent is not zero. Records with other keys are dropped, and so are those with further
        keys below a leaf: the sum of a node is over the keys shown below it. To keep all records of a node,
        leave the rows of the finest levels out of the table before; the domain then ends with the coarser
        level.

        Derived levels, such as the months of `calendar` or the prefixes of an implicit tree, become plain
        keys: records need columns with their names. Structural zeros become leaves like any other.

        Examples
        --------
        >>> import pandas as pd
        >>> import pandas_dptree as dpt
        >>> records = pd.DataFrame({"zip": ["90210"] * 300 + ["94601"] * 200 + ["00501"]})
        >>> zips = dpt.prefixes("zip", chars=[1, 5], alphabet="0123456789")
        >>> domain = records.dp.tree_counts(zips, epsilon=1.0, delta=1e-6).dp.domain()
        >>> domain.keys(2).values.tolist()
        [['9', '90210'], ['9', '94601']]
        """
        return released_domain(self._data)

    @property
    def plot(self) -> ReleasedPlots:
        """Plots of a released table: ``plot.levels()`` and ``plot.icicle()``."""
        return ReleasedPlots(self._data)

    @public
    def to_file(self, path: str | PathLike[str], *, layout: Layout = "nested", replace: bool = True) -> None:
        """Write a released table to a file that keeps its meaning: see `pandas_dptree.to_file`."""
        files.to_file(self._data, path, layout=layout, replace=replace)

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        title: str | None = None,
        columns: Hashable | list[Hashable] | None = None,
        max_rows: int | None = MAX_ROWS,
        margin: Any = None,
        plan: Plan[Any] | None = None,
        ledger: Ledger | None = None,
        **options: Unpack[PageOptions],
    ) -> str | None:
        """Format a released table as a self-contained page, with its protection in words.

        Each level is a section, in which rows are grouped by what is above them; of a crossed table one
        margin is shown. Each value is followed by its margin of error, or by the ends of its interval.
        `pandas_dptree.page` sets several tables on one page.

        **Privacy.** The page shows the table and nothing else, so it costs nothing. It repeats what
        ``attrs["dp"]`` states about the protection, which proves nothing. Many operations on frames lose
        ``attrs``, and so do most files. Without `plan`, the page then says that the protection is unknown.

        Parameters
        ----------
        path : str or path, optional
            The file to write, in whole or not at all; an existing one is replaced. By default the page is
            returned.
        title : str, optional
            By default "Count, by region, district and clinic" or the like.
        columns : hashable or list of hashable, optional
            The values to show; by default all.
        max_rows : int, default 5,000
            If the table has more rows, its finest levels are left out, and the page says so. None for no
            limit. It has no meaning for crossed tables.
        margin : mapping, hashable or sequence of hashable, optional
            The margin of a crossed table to show, as for `margin`, with its totals; the last axis that it
            names makes the columns. By default the finest of at most two axes that fits.
        plan : Plan, optional
            The plan by which the table was released, for a table that has lost its ``attrs``. Whether it is
            that plan cannot be checked then. A table that states another plan is refused.
        ledger : Ledger, optional
            The ledger that the release was charged to. If the table is not the one that it keeps, the page
            says whether rows were selected or values changed. Without it, the page says only that it is not
            the whole released table, if the digest that the table states tells so.
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
            If the frame is not a released table or lacks the columns, `plan` or `ledger` are not those of
            the table, or the file cannot be written.

        Examples
        --------
        >>> import pandas as pd, pandas_dptree as dpt
        >>> records = pd.DataFrame({"state": ["CA", "CA", "NY"], "city": ["Oakland", "Fresno", "Utica"]})
        >>> counts = records.dp.tree_counts(["state", "city"], epsilon=1.0, domain="observed")
        >>> counts.dp.to_html("report.html", title="Where they live")  # doctest: +SKIP
        """
        page = page_of_one(
            self._data,
            title=title,
            columns=columns,
            max_rows=max_rows,
            margin=margin,
            plan=plan,
            ledger=ledger,
            **options,
        )
        return returned_or_saved(page.html, path)


def _looks_released(frame: pd.DataFrame) -> bool:
    """Whether attributes or columns are those of a released table; nothing but completion relies on it."""
    texts = [name for name in frame.columns if isinstance(name, str)]
    has_errors = any(name.endswith(("std_error", "error_bound", "max_error")) for name in texts)
    return "dp" in frame.attrs or (has_errors and any(f"_{name}".endswith("_level") for name in texts))


class SeriesAccessor:
    """Differentially private releases of the values of a series, each of which is a record."""

    def __init__(self, series: pd.Series) -> None:
        self._series = series

    @property
    def _frame(self) -> tuple[pd.DataFrame, Hashable]:
        """The values as the only column of a frame, and its name."""
        name = "value" if self._series.name is None else self._series.name
        return pd.DataFrame({name: self._series}), name

    @takes(*SERIES)
    def release_distribution(self, *, bins: Any, **options: Unpack[DistributionOptions]) -> Distribution:
        """Measure the distribution of the values once: see `pandas_dptree.release_distribution`."""
        return distributions.release_distribution(*self._frame, bins=bins, **options)

    @takes("confidence", *SERIES)
    def cdf(self, *, bins: Any, **options: Unpack[DistributionOptions]) -> pd.DataFrame:
        """Estimate the cumulative distribution of the values: see `pandas_dptree.cdf`."""
        return distributions.cdf(*self._frame, bins=bins, **options)

    @takes(*SERIES)
    def histogram(self, *, bins: Any, **options: Unpack[DistributionOptions]) -> pd.DataFrame:
        """Count the values in each bin: see `pandas_dptree.histogram`."""
        return distributions.histogram(*self._frame, bins=bins, **options)

    @takes(*SERIES)
    def range_counts(
        self, ranges: Sequence[Any], *, bins: Any, **options: Unpack[DistributionOptions]
    ) -> pd.DataFrame:
        """Count the values in ranges: see `pandas_dptree.range_counts`."""
        return distributions.range_counts(*self._frame, ranges, bins=bins, **options)

    @takes(*QUANTILE_SERIES)
    def quantiles(
        self,
        q: Any,
        *,
        granularity: Any = None,
        bins: Any = None,
        **options: Unpack[DistributionOptions],
    ) -> pd.DataFrame:
        """Estimate quantiles of the values: see `pandas_dptree.quantiles`."""
        return distributions.quantiles(
            *self._frame,
            q,
            granularity=granularity,
            bins=bins,
            **options,
        )
