"""The ``.dp`` accessors of pandas, without state: each method is one call."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Unpack

import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.old_names import with_old_names
from pandas_dptree.output import files
from pandas_dptree.output.distribution import Distribution
from pandas_dptree.output.frames import select_level
from pandas_dptree.output.html_page import write_page
from pandas_dptree.output.plots import ReleasedPlots
from pandas_dptree.output.report import report_page
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.implicit import ImplicitPlan
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.multiplicative import MultiplicativePlan
from pandas_dptree.plans.options import (
    COUNTS,
    DISTRIBUTION,
    GROUPS,
    JOINT,
    PLAN,
    RUNNING,
    SERIES,
    SUMS,
    DistributionOptions,
    NoisyOptions,
    Options,
    Running,
    takes,
)
from pandas_dptree.signatures import public
from pandas_dptree.verbs import distributions, plans, tables
from pandas_dptree.verbs.aggregations import Aggregation
from pandas_dptree.verbs.domains import domain_of, public_and_private, released_domain

__all__ = ["DataFrameAccessor", "SeriesAccessor"]


@with_old_names("frame.dp")
class DataFrameAccessor:
    """Differentially private releases of the records of a frame, and views of a released table."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @takes(*COUNTS)
    def tree_counts(self, by: By | PrefixTree, **options: Unpack[Options]) -> pd.DataFrame:
        """Count the records of every node of a hierarchy: see `pandas_dptree.tree_counts`."""
        return tables.tree_counts(self._frame, by, **options)

    @takes(*SUMS, "domain", *RUNNING)
    def tree_sums(
        self,
        by: By,
        *,
        columns: Hashable | list[Hashable],
        bounds: Any,
        granularity: Any = None,
        **options: Unpack[Options],
    ) -> pd.DataFrame:
        """Add up columns over the records of every node: see `pandas_dptree.tree_sums`."""
        return tables.tree_sums(
            self._frame, by, columns=columns, bounds=bounds, granularity=granularity, **options
        )

    @takes(*JOINT, "domain", *RUNNING)
    def tree_means(
        self,
        by: By,
        *,
        columns: Hashable | list[Hashable],
        bounds: Any,
        granularity: Any = None,
        **options: Unpack[Options],
    ) -> pd.DataFrame:
        """Average columns over the records of every node: see `pandas_dptree.tree_means`."""
        return tables.tree_means(
            self._frame, by, columns=columns, bounds=bounds, granularity=granularity, **options
        )

    @takes(*JOINT, "domain", *RUNNING)
    def tree_agg(
        self,
        by: By,
        aggregations: Mapping[Hashable, Literal["count"] | Aggregation],
        **options: Unpack[Options],
    ) -> pd.DataFrame:
        """Release counts, sums and means in one table: see `pandas_dptree.tree_agg`."""
        return tables.tree_agg(self._frame, by, aggregations, **options)

    @takes(*PLAN)
    def plan(
        self,
        by: By,
        *,
        domain: Any = None,
        private_keys: Sequence[Hashable] | None = None,
        column: Hashable | None = None,
        bounds: Any = None,
        granularity: Any = None,
        **options: Unpack[NoisyOptions],
    ) -> AdditivePlan | MultiplicativePlan | ImplicitPlan:
        """Plan a release of these records: see `pandas_dptree.plan`.

        Spends nothing. The records are read only if `domain` is ``"observed"``.
        """
        public_keys, private = public_and_private(self._frame, by, domain, private_keys)
        own: Any = {"column": column, "bounds": bounds, "granularity": granularity, **options}
        return plans.plan(public_keys, private_keys=private, **own)

    @takes(*SUMS)
    def plan_sums(
        self,
        by: By,
        *,
        columns: Hashable | list[Hashable],
        bounds: Any,
        granularity: Any = None,
        domain: Any = None,
        **options: Unpack[NoisyOptions],
    ) -> JointPlan:
        """Plan a release of sums of several columns: see `pandas_dptree.plan_sums`."""
        public_keys = domain_of(self._frame, by, domain)
        return plans.plan_sums(
            public_keys, columns=columns, bounds=bounds, granularity=granularity, **options
        )

    @takes(*JOINT)
    def plan_means(
        self,
        by: By,
        *,
        columns: Hashable | list[Hashable],
        bounds: Any,
        granularity: Any = None,
        domain: Any = None,
        **options: Unpack[NoisyOptions],
    ) -> JointPlan:
        """Plan a release of means of columns: see `pandas_dptree.plan_means`."""
        public_keys = domain_of(self._frame, by, domain)
        return plans.plan_means(
            public_keys, columns=columns, bounds=bounds, granularity=granularity, **options
        )

    @takes(*JOINT)
    def plan_agg(
        self,
        by: By,
        aggregations: Mapping[Hashable, Literal["count"] | Aggregation],
        *,
        domain: Any = None,
        **options: Unpack[NoisyOptions],
    ) -> JointPlan:
        """Plan a release of counts, sums and means together: see `pandas_dptree.plan_agg`."""
        return plans.plan_agg(domain_of(self._frame, by, domain), aggregations, **options)

    @takes(*RUNNING)
    def release(self, plan: Plan, **options: Unpack[Running]) -> Any:
        """Spend the budget of a plan of any kind on these records: see `pandas_dptree.Plan.release`."""
        if not isinstance(plan, Plan):
            raise ArgumentError(
                "plan", f"must be a plan, not {quote(plan)}.", hint="frame.dp.plan(...) makes one."
            )
        return plan.release(self._frame, **options)

    @takes(*DISTRIBUTION)
    def plan_distribution(
        self,
        column: Hashable,
        *,
        bins: Any,
        bounds: Any = None,
        by: By | None = None,
        domain: Any = None,
        **options: Unpack[NoisyOptions],
    ) -> DistributionPlan:
        """Plan a release of a distribution: see `pandas_dptree.plan_distribution`.

        Spends nothing. `by` and `domain` are those of `pandas_dptree.release_distribution`; the records are
        read only if `domain` is ``"observed"``.
        """
        groups = distributions.groups_of(self._frame, by, domain)
        return plans.plan_distribution(column, bins=bins, bounds=bounds, domain=groups, **options)

    @takes(*GROUPS)
    def release_distribution(
        self, column: Hashable, *, bins: Any, **options: Unpack[DistributionOptions]
    ) -> Distribution:
        """Measure the distribution of a column once: see `pandas_dptree.release_distribution`."""
        return distributions.release_distribution(self._frame, column, bins=bins, **options)

    @takes("confidence", *GROUPS)
    def cdf(
        self,
        column: Hashable,
        *,
        bins: Any,
        **options: Unpack[DistributionOptions],
    ) -> pd.DataFrame:
        """Estimate the cumulative distribution of a column: see `pandas_dptree.cdf`."""
        return distributions.cdf(self._frame, column, bins=bins, **options)

    @takes(*GROUPS)
    def histogram(
        self, column: Hashable, *, bins: Any, **options: Unpack[DistributionOptions]
    ) -> pd.DataFrame:
        """Count the values of a column in each bin: see `pandas_dptree.histogram`."""
        return distributions.histogram(self._frame, column, bins=bins, **options)

    @takes(*GROUPS)
    def range_counts(
        self, column: Hashable, ranges: Sequence[Any], *, bins: Any, **options: Unpack[DistributionOptions]
    ) -> pd.DataFrame:
        """Count the values of a column in ranges: see `pandas_dptree.range_counts`."""
        return distributions.range_counts(self._frame, column, ranges, bins=bins, **options)

    @takes("confidence", *GROUPS, confidence=0.95)
    def quantiles(
        self,
        column: Hashable,
        q: Any,
        *,
        bins: Any = 1000,
        **options: Unpack[DistributionOptions],
    ) -> pd.DataFrame:
        """Estimate quantiles of a column: see `pandas_dptree.quantiles`."""
        return distributions.quantiles(self._frame, column, q, bins=bins, **options)

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
        return select_level(self._frame, name)

    def domain(self) -> Domain:
        """Return the keys of a released table as a public domain: see `pandas_dptree.released_domain`."""
        return released_domain(self._frame)

    @property
    def plot(self) -> ReleasedPlots:
        """Plots of a released table: ``plot.levels()`` and ``plot.icicle()``."""
        return ReleasedPlots(self._frame)

    @public
    def to_file(self, path: str | PathLike[str], *, replace: bool = True) -> None:
        """Write a released table to a file that keeps its meaning: see `pandas_dptree.to_file`."""
        files.to_file(self._frame, path, replace=replace)

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        title: str | None = None,
        columns: Hashable | list[Hashable] | None = None,
        max_rows: int | None = 2_000,
        plan: Plan | None = None,
    ) -> str | None:
        """Format a released table as a self-contained page to print, with its protection in words.

        Rows are nested. Each value is followed by its error, and by its interval if there is one.

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
        max_rows : int, default 2,000
            If the table has more rows, its finest levels are left out, and the page says so. None for no
            limit.
        plan : Plan, optional
            The plan by which the table was released, for a table that has lost its ``attrs``. Whether it is
            that plan cannot be checked then. A table that states another plan is refused.

        Returns
        -------
        str or None
            The page, if no path is given.

        Raises
        ------
        ArgumentError
            If the frame is not a released table or lacks the columns, `plan` is not its plan, or the file
            cannot be written.
        MissingExtraError
            If great_tables is not installed.

        Examples
        --------
        >>> import pandas as pd, pandas_dptree as dpt
        >>> records = pd.DataFrame({"state": ["CA", "CA", "NY"], "city": ["Oakland", "Fresno", "Utica"]})
        >>> counts = records.dp.tree_counts(["state", "city"], epsilon=1.0, domain="observed")
        >>> counts.dp.to_html("report.html", title="Where they live")  # doctest: +SKIP
        """
        page = report_page(self._frame, title=title, columns=columns, max_rows=max_rows, plan=plan)
        if path is None:
            return page
        write_page(page, path)
        return None


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

    @takes("confidence", *SERIES, confidence=0.95)
    def quantiles(self, q: Any, *, bins: Any = 1000, **options: Unpack[DistributionOptions]) -> pd.DataFrame:
        """Estimate quantiles of the values: see `pandas_dptree.quantiles`."""
        return distributions.quantiles(*self._frame, q, bins=bins, **options)
