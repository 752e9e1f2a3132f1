"""Plans for the distribution of a column, over the bins of its range."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.distribution.strategies import Strategies
from pandas_dptree.distribution.strategy import Strategy
from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.group_levels import consistent_groups, mean_variances_left, variances_left
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import SOURCES, Domain, Source, level_names, source_in_words, source_of
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.ingest.arrays import bin_counts
from pandas_dptree.ingest.bins import BinTally, binned_counts, open_bins
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.mechanisms.sampling import SMALLEST_SCALE
from pandas_dptree.output.distribution import Distribution
from pandas_dptree.output.doubtful_tables import Doubt, Level, empty_values, mostly_noise
from pandas_dptree.output.empty_tables import usual_causes
from pandas_dptree.output.frames import release_frame
from pandas_dptree.output.progress import Done
from pandas_dptree.plans import serialize
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.distribution_groups import check_columns, known_totals
from pandas_dptree.plans.losses import LevelItem
from pandas_dptree.plans.running import Finish, Origin, Outcome, Release, Resources
from pandas_dptree.privacy.level_losses import NOTHING
from pandas_dptree.privacy.sensitivity import Sensitivity
from pandas_dptree.privacy.unit import check_rows_of_counts, check_rows_of_records

__all__ = ["DistributionPlan"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DistributionPlan(Plan[Distribution]):
    r"""A release of the distribution of a column, described before it happens.

    Made by `plan_distribution`. It is a function of public arguments alone.

    Attributes
    ----------
    loss, neighbors, privacy_unit, max_contributions
        As for `Plan`.
    bins : Bins
        The column and the edges of its bins.
    domain : Domain or None
        The groups, on each level of a hierarchy; None for all records together.
    totals : tuple of numpy.ndarray of int64, shape (n_groups,)
        For each level of groups, their numbers of records if public, otherwise -1. Without a domain there is
        one level of groups without names: for an array, one group for each index of its other dimensions.
    strategy : Strategy
        What is measured of each group, the same on all levels.
    source : {"given", "released", "categories", "observed"}
        Where the edges come from, and without a domain the groups: observed if they stand in an array.

    Notes
    -----
    `release` returns a `Distribution`, from which any number of tables can be made. It takes records, or the
    counts of each bin, for each group of the finest level in the order of the domain: whole numbers of shape
    ``(n_groups, n_bins)``, or ``(n_bins,)`` without groups. Negative counts and those of structural zeros are
    set to 0; the largest are clipped, so that no sum overflows. The levels of groups are estimated together.

    **Privacy**: values outside the bounds are clipped. Rows without a value, or outside the domain, are
    dropped, and their number is not reported.

    With counts, the caller is responsible that each record is in at most one of them, and that no unit has
    more than `max_contributions` records in all groups together. They are then protected as records are: one
    record moves one entry of the vector of all groups' counts by one. So a unit with at most k records moves
    it by at most k in the 1-norm and in the 2-norm (2k and :math:`\sqrt 2\,k` if they are replaced), in one
    group or in many. Each entry is counted once on each level of the tree over the bins of its group, and
    likewise for the group's ancestors: the noise is that of a single group, however many groups a level has.
    Clipping moves no two counts further apart.
    """

    kind: ClassVar[str] = "distribution"

    bins: Bins
    domain: Domain | None
    totals: tuple[IntArray, ...]
    strategy: Strategy
    source: Source = "given"

    def __post_init__(self) -> None:
        """Check the privacy unit, and that the noise is as large as the loss demands."""
        super().__post_init__()
        sizes = [len(each) for each in self.totals]
        fits = self.domain is None or sizes == [*self.domain.tree.level_sizes]
        if self.strategy.n_bins != self.bins.n_bins or not fits:
            raise ArgumentError(
                "totals",
                "and `strategy` must fit the groups and the bins.",
                hint="make the plan with plan_distribution.",
            )
        if not min(self.strategy.noise_scales) >= SMALLEST_SCALE or not self._keeps_to_loss:
            raise ArgumentError(
                "strategy",
                "has less noise than the privacy loss demands.",
                hint="make the plan with plan_distribution, which chooses the noise.",
            )

    @property
    def _sensitivity(self) -> Sensitivity:
        return self.strategy.sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions)

    @property
    def _all_scales(self) -> npt.NDArray[np.float64]:
        """The noise scales of all levels of groups together."""
        return np.tile(self.strategy.noise_scales, len(self.totals))

    @property
    def _keeps_to_loss(self) -> bool:
        """Whether all levels of groups together keep to the loss."""
        return self.strategy.noise.keeps_to(self.loss, self._sensitivity, self._all_scales)

    def _certified_delta(self, epsilon: float) -> float:
        return self.strategy.noise.delta(epsilon, self._all_scales, self._sensitivity)

    def _loss_items(self) -> list[LevelItem]:
        strategy = self.strategy
        spent = [strategy.noise.level_loss(scale, self._sensitivity) for scale in strategy.noise_scales]
        if len(spent) == 1:
            return [LevelItem(name, spent[0]) for name in self.level_names]
        return [
            LevelItem(f"{name}, bins {depth}", loss)
            for name in self.level_names
            for depth, loss in enumerate(spent)
            if loss != NOTHING
        ]

    @property
    def _columns_used(self) -> tuple[Hashable, ...]:
        return (self.bins.column, *self.level_names[1:])

    @property
    def hierarchy(self) -> Domain | None:
        """The groups; None if there is only one."""
        return self.domain

    @property
    def domain_source(self) -> Source:
        """Where the names of groups and bins come from: of the two, the source less certain to be public."""
        return max(source_of(self.domain), self.source, key=SOURCES.index)

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels of groups, from all records down."""
        return ("total",) if self.domain is None else level_names(self.domain)

    @property
    def errors(self) -> FloatArray:
        """Root of the mean variance of a group's cumulative counts, for each level, in counts.

        Of groups of unknown total, unless the totals of all groups of the level are known.
        """
        known, unknown = (self.strategy.variances(known_total=each).mean() for each in (True, False))
        left = mean_variances_left(self._variances_left, self.totals, self._listed)
        return np.asarray(np.sqrt(left @ [known, max(unknown - known, 0.0)]))

    @cached_property
    def _variances_left(self) -> list[FloatArray]:
        """What part of the variances of its own measurement each group has, by level: see `Distribution`."""
        return variances_left(self._tree, self.totals)

    @property
    def _tree(self) -> Tree:
        """The tree of groups; without names, each is a root."""
        return Tree((), n_roots=len(self.totals[0])) if self.domain is None else self.domain.tree

    def _prepared(self, data: Any) -> Release:
        if isinstance(data, np.ndarray):
            causes = usual_causes()
        else:
            causes = usual_causes(self.domain, values=[self.bins.column], privacy_unit=self.privacy_unit)
        return self._prepared_by(partial(self._exact, data), causes)

    def _prepared_by(self, exact: Callable[[Resources], IntArray], causes: str) -> Release:
        """Prepare the release of counts of the bins, shape (n_groups, n_bins), which `exact` will read."""

        def read(resources: Resources) -> Finish:
            return partial(finish, exact(resources))

        def finish(counts: IntArray, origin: Origin, done: Done) -> Outcome:
            estimates = self._estimates(counts, origin, done)
            released = self._distribution(estimates, origin)
            return Outcome(released, released._totals, causes, self._doubts(estimates))

        sizes = [len(totals) for totals in self.totals]
        steps = [(f"measuring {level}", size) for level, size in zip(self.level_names, sizes, strict=True)]
        return Release(plan=self, read=read, effort=sizes[-1], steps=steps)

    def _estimates(self, counts: IntArray, origin: Origin, done: Done) -> list[FloatArray]:
        """Estimate the cumulative counts of all groups by level. Exact counts do not leave this function."""
        levels = [counts]
        for level in reversed(range(self._tree.depth)):
            levels.insert(0, self._tree.sum_children(level, levels[0]))
        estimates: list[FloatArray] = []
        for exact, totals in zip(levels, self.totals, strict=True):
            if estimates:
                done()
            estimates.append(self.strategy.estimates(exact, totals, origin.source))
        return estimates

    def _doubts(self, estimates: Sequence[FloatArray]) -> list[Doubt]:
        """Say what is doubtful about the numbers of records of the groups."""
        if self.domain is None:
            return []
        first, last = np.array([0]), np.array([self.bins.n_bins])
        variance = self.strategy.range_variances(first, last, known_total=False)
        groups = [
            Level(level[:, -1], np.where(totals < 0, variance, 0.0))
            for level, totals in zip(estimates, self.totals, strict=True)
        ]
        return empty_values(self.domain, groups) or mostly_noise(
            "count", groups, "choose fewer or larger groups, or a larger privacy loss."
        )

    def _distribution(self, estimates: Sequence[FloatArray], origin: Origin) -> Distribution:
        """Make the released distribution of the groups that a table shows, consistent over the levels."""
        several = len(estimates) > 1
        return Distribution(
            bins=self.bins,
            groups=self._groups,
            estimates=self._consistent(estimates) if several else self._shown(estimates),
            totals=self._shown(self.totals),
            strategy=self.strategy,
            attrs=self._attrs(origin),
            variances_left=self._shown(self._variances_left) if several else None,
        )

    def _consistent(self, estimates: Sequence[FloatArray]) -> FloatArray:
        """Estimate the cumulative counts of the groups that a table shows from those of all groups."""
        shown = np.empty((sum(map(np.count_nonzero, self._listed)), self.bins.n_bins))
        for bins, levels in consistent_groups(self._tree, estimates, self.totals, self.strategy.slopes):
            shown[:, bins] = self._shown(levels)
        return shown

    @property
    def _groups(self) -> pd.DataFrame | None:
        """The keys of the groups, or their numbers if they have no names; None for a single group."""
        if self.domain is not None:
            return release_frame(self.domain, {}, {})
        n_groups = len(self.totals[0])
        return None if n_groups == 1 else pd.DataFrame({"level": "group", "group": np.arange(n_groups)})

    def _exact(self, data: Any, resources: Resources) -> IntArray:
        """Count the records in each bin of each group of the finest level, exactly. The result is secret."""
        n_groups = len(self.totals[-1])
        if isinstance(data, np.ndarray):
            check_rows_of_counts(self.privacy_unit)
            counts = bin_counts(data, n_groups, self.bins.n_bins)
            if self.domain is not None:
                counts[self.domain.structural_zeros] = 0
            return counts
        self._check_records()
        return binned_counts(data, self.bins, self.domain, **resources.bounding(self))

    def _check_records(self) -> None:
        """Refuse records if the groups have no names, or if units cannot be bounded."""
        n_groups = len(self.totals[-1])
        if self.domain is None and n_groups > 1:
            raise ArgumentError(
                "data",
                f"must be an array of counts: the {n_groups} groups of the plan have no names.",
                hint="plan with a Domain to release a frame of records.",
            )
        check_rows_of_records(self.privacy_unit, self.max_contributions)

    def _opened(self, data: Any, bounding: Bounding) -> tuple[Records, BinTally]:
        self._check_records()
        return open_bins(data, self.bins, self.domain, bounding)

    def _shown(self, levels: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Concatenate the groups that a table shows, level by level."""
        return np.concatenate([each[rows] for each, rows in zip(levels, self._listed, strict=True)])

    @cached_property
    def _listed(self) -> list[npt.NDArray[np.bool_]]:
        tree = self._tree
        return [np.broadcast_to(tree.listed(level), size) for level, size in enumerate(tree.level_sizes)]

    @property
    def mechanism_name(self) -> str:
        """The name of the noise."""
        return self.strategy.noise.name

    def _provenance_details(self) -> dict[str, Any]:
        return {
            "column": str(self.bins.column),
            "n_bins": self.bins.n_bins,
            "strategy": self.strategy.description,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per level of groups: ``level``, ``groups``, ``strategy`` and ``std_error``.

        The last is the root of the mean variance of a group's cumulative counts.
        """
        return pd.DataFrame(
            {
                "level": list(self.level_names),
                "groups": [int(rows.sum()) for rows in self._listed],
                "strategy": self.strategy.description,
                "std_error": self.errors,
            }
        )

    def compare(self) -> pd.DataFrame:
        """Compare the strategies that measure the same bins at the same privacy loss.

        Returns
        -------
        pandas.DataFrame
            One row for each kind of noise and strategy that the loss allows, the most accurate first:
            ``mechanism``, ``strategy``, and for each level of groups the expected standard error, as in
            `to_frame`.

        Examples
        --------
        >>> import pandas_dptree as dpt
        >>> dpt.plan_distribution("fare", bounds=(0, 200), bins=64, rho=0.1).compare()["mechanism"].tolist()
        ['gaussian', 'gaussian', 'laplace']
        """
        known_total = all((each >= 0).all() for each in self.totals)
        strategies = Strategies(
            self.bins.n_bins, self.loss, self.neighbors, self.max_contributions, len(self.totals)
        ).all(known_total=known_total)
        plans = sorted(
            (replace(self, strategy=each) for each in strategies), key=lambda plan: plan.errors.mean()
        )
        return pd.DataFrame(
            [
                {
                    "mechanism": each.mechanism_name,
                    "strategy": each.strategy.description,
                    **dict(zip(each.level_names, each.errors.tolist(), strict=True)),
                }
                for each in plans
            ]
        )

    @property
    def _measured(self) -> str:
        return f"distribution of {self.bins.column}"

    @property
    def _release_in_words(self) -> str:
        """The release in one sentence."""
        return (
            f"Plan of the distribution of {self.bins.column!r} in {self.bins.n_bins} bins: "
            f"{self.strategy.noise.name} noise, {self.protection}"
            f"{source_in_words(self.domain)}"
        )

    @property
    def _formats(self) -> dict[Any, Any]:
        return {}

    def _fields(self) -> dict[str, Any]:
        known: dict[str, Any] | None = None
        if self.domain is not None:
            exact = tuple(totals >= 0 for totals in self.totals)
            known = Known(exact, tuple(np.maximum(totals, 0) for totals in self.totals)).to_dict()
        elif len(self.totals[0]) > 1:
            raise ArgumentError(
                "totals",
                "cannot be serialized: the groups have no names.",
                hint="serialize the plan of one distribution; it releases any number of them side by side.",
            )
        elif self.totals[0][0] >= 0:
            known = {"total": int(self.totals[0][0])}
        return {"bins": self.bins.to_dict(), "known": known, "strategy": self.strategy.to_dict()}

    @classmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: Domain | None, **common: Any) -> Self:
        bins, known = Bins.from_dict(data["bins"]), data["known"]
        check_columns(bins.column, hierarchy)
        totals = known_totals(
            hierarchy, known if hierarchy is None else Known.from_dict(hierarchy.tree, known)
        )
        strategies = Strategies(
            bins.n_bins, common["loss"], common["neighbors"], common["max_contributions"], len(totals)
        )
        return cls(
            bins=bins,
            domain=hierarchy,
            totals=totals,
            strategy=strategies.read(data["strategy"]),
            source="given" if hierarchy is not None else serialize.choice(data["domain_source"], SOURCES),
            **common,
        )
