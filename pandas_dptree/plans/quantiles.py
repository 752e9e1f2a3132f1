"""Plans for quantiles of a column: drawn from a grid, or read from trees over bins."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import MOST_ENTRIES, ArgumentError
from pandas_dptree.estimation.base_measure import densities
from pandas_dptree.estimation.monotone import consistent_cdfs
from pandas_dptree.hierarchy.domain import SOURCES, Domain, Source, level_names, source_in_words, source_of
from pandas_dptree.hierarchy.grid import BinMiddles, Grid
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.grid import PointCounts, grid_counts, open_grid
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.ingest.tallies import Tally
from pandas_dptree.mechanisms.exponential import SMALLEST_EXPONENT
from pandas_dptree.mechanisms.quantiles import BaseMeasure, Drawing, draw_quantiles, n_depths
from pandas_dptree.output.distribution import Distribution, checked_confidence
from pandas_dptree.output.doubtful_tables import Doubt, drawn_at_bounds
from pandas_dptree.output.empty_tables import Totals, usual_causes
from pandas_dptree.output.frames import release_frame
from pandas_dptree.output.progress import Done
from pandas_dptree.output.protection import Aggregate
from pandas_dptree.output.quantiles import bounds_in_json, points_in_json, quantile_table
from pandas_dptree.plans import serialize
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.losses import LevelItem
from pandas_dptree.plans.quantile_draws import Draws, drawable, exponents_of, fraction_of
from pandas_dptree.plans.running import Finish, Origin, Outcome, Release, Resources
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.unit import check_rows_of_records

__all__ = ["QuantilePlan", "hierarchy_above"]

Exact = PointCounts | IntArray
"""Numbers of records at the points of a grid, or in bins, exactly: secret."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class QuantilePlan(Plan[pd.DataFrame]):
    r"""A release of quantiles of a column, described before it happens.

    Made by `plan_quantiles`. It is a function of public arguments alone.

    Attributes
    ----------
    loss, neighbors, privacy_unit, max_contributions
        As for `Plan`.
    q : tuple of float
        The quantiles.
    domain : Domain or None
        The groups, on each level of a hierarchy; None for all records together.
    draws : Draws or None
        How the quantiles of the last level are drawn; None if all are read from trees.
    trees : DistributionPlan or None
        The trees over bins from which all other quantiles are read, and all intervals: of all levels if there
        are intervals or no draws, otherwise of the levels above the last.
    confidence : float or None
        The probability that the intervals of a group contain all its true quantiles at once.
    source : {"given", "released", "categories", "observed"}
        Where the points come from: observed if they stand in an array.

    Notes
    -----
    `release` takes records and returns a table with the column ``value``, and ``lower`` and ``upper`` if
    there is a confidence, like `Distribution.quantiles`.

    **Privacy**: draws and trees compose, and their losses add up to at most the loss of the plan. Values are
    clipped to the bounds, and rounded to the grid. Rows without a value, or outside the domain, are dropped,
    and their number is not reported. Quantiles that are drawn have base measures from the trees of the level
    above, which are released. No draw depends on a known total. `pandas_dptree.mechanisms.quantiles` has the
    proof. The running time depends on the records: do not publish it.
    """

    kind: ClassVar[str] = "quantiles"

    q: tuple[float, ...]
    domain: Domain | None
    draws: Draws | None
    trees: DistributionPlan | None
    confidence: float | None = None
    source: Source = "given"

    def __post_init__(self) -> None:
        """Check that the parts fit together, and that they keep to the loss."""
        has_parts = self.draws is not None or self.trees is not None
        if has_parts:
            super().__post_init__()
        if not has_parts or not self._parts_fit:
            raise ArgumentError(
                "trees",
                "and `draws` must fit the groups and the intervals.",
                hint="make the plan with plan_quantiles.",
            )
        if not self._keeps_to_loss:
            raise ArgumentError(
                "draws",
                "and `trees` spend more than the privacy loss allows.",
                hint="make the plan with plan_quantiles, which divides the loss.",
            )
        if self.confidence is not None:
            checked_confidence(self.confidence)
        if self.draws is None:
            return
        if min(exponents_of(self.drawing, self.q)) < SMALLEST_EXPONENT:
            raise ArgumentError(
                "q",
                "cannot be drawn with so small a privacy loss and so many rows of a unit.",
                hint="allow a larger loss or fewer rows per unit, choose quantiles with small denominators, "
                'or pass mechanism="laplace".',
            )

    @property
    def _depth(self) -> int:
        """The number of the last level of groups."""
        return 0 if self.domain is None else self.domain.tree.depth

    @property
    def _parts_fit(self) -> bool:
        """Whether trees and draws are those of the groups and the intervals."""
        expected = self._depth + 1 if self.draws is None or self.confidence is not None else self._depth
        trees, draws = self.trees, self.draws
        if (0 if trees is None else len(trees.totals)) != expected:
            return False
        own = (self.neighbors, self.privacy_unit, self.max_contributions)
        if trees is not None and own != (trees.neighbors, trees.privacy_unit, trees.max_contributions):
            return False
        if trees is not None and trees.domain is not None:
            sizes = None if self.domain is None else self.domain.tree.level_sizes[:expected]
            if trees.domain.tree.level_sizes != sizes:
                return False
        if draws is None:
            return True
        if isinstance(draws.grid, BinMiddles):
            if trees is not None or len(self.q) > 1:
                return False
        elif trees is not None:
            bins = draws.grid.bins(trees.bins.n_bins)
            if bins.column != trees.bins.column or not trees.bins.same_as(bins):
                return False
        return drawable(self.q) is not None and not (draws.permutes and self._depth)

    @property
    def _keeps_to_loss(self) -> bool:
        """Whether the parts keep to their losses, and these add up to no more than the loss of the plan."""
        parts = [each.loss for each in (self.draws, self.trees) if each is not None]
        if any(each.kind != self.loss.kind for each in parts):
            return False
        stated, exact = self.loss.exact, [each.exact for each in parts]
        within = all(
            sum(getattr(each, name) or 0 for each in exact) <= (getattr(stated, name) or 0)
            for name in ("epsilon", "delta", "rho")
        )
        return within and (self.draws is None or self.draws.keeps_to_loss(len(self.q)))

    @property
    def drawing(self) -> Drawing:
        """What the draws of one depth are like."""
        assert self.draws is not None
        several = len(self.q) > 1 or self.domain is not None
        return self.draws.drawing(self.neighbors, self.max_contributions, several=several)

    # Description

    @property
    def column(self) -> Hashable:
        """The column whose quantiles are released."""
        if self.draws is not None:
            return self.draws.grid.column
        assert self.trees is not None
        return self.trees.bins.column

    def _loss_items(self) -> list[LevelItem]:
        items = [] if self.trees is None else [*self.trees.losses.items]
        if self.draws is not None:
            last, depths = self.level_names[-1], n_depths(len(self.q))
            names = (
                [f"{last}, draws {depth + 1}" for depth in range(depths)] if depths > 1 else [f"{last}, draw"]
            )
            items += [LevelItem(name, self.draws.level_loss) for name in names]
        return items

    @property
    def _columns_used(self) -> tuple[Hashable, ...]:
        return (self.column, *self.level_names[1:])

    @property
    def hierarchy(self) -> Domain | None:
        """The groups; None if there is only one."""
        return self.domain

    @property
    def domain_source(self) -> Source:
        """Where the groups and the points come from: of the two, the source less certain to be public."""
        return max(source_of(self.domain), self.source, key=SOURCES.index)

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels of groups, from all records down."""
        return ("total",) if self.domain is None else level_names(self.domain)

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism that draws quantiles, or of the noise of the trees."""
        if self.draws is not None:
            return self.draws.name
        assert self.trees is not None
        return self.trees.mechanism_name

    @property
    def _measured(self) -> str:
        return f"quantiles of {self.column}"

    @property
    def _release_in_words(self) -> str:
        how = "trees over bins" if self.draws is None else "a grid"
        which = f"{len(self.q)} quantiles"
        if len(self.q) <= MOST_ENTRIES:
            which = f"the quantile{'s' * (len(self.q) > 1)} {', '.join(f'{each:.6g}' for each in self.q)}"
        return (
            f"Plan of {which} of {self.column!r} from {how}: {self.mechanism_name}, "
            f"{self.protection}{source_in_words(self.domain)}"
        )

    @property
    def _formats(self) -> dict[Any, Any]:
        return {"share": "{:.3f}".format, "epsilon": "{:.4g}".format, "rho": "{:.4g}".format}

    @property
    def _remark(self) -> str:
        if self.draws is None or self.confidence is None:
            return ""
        return f"Shares of trees are for intervals at a confidence of {self.confidence:g}."

    def to_frame(self) -> pd.DataFrame:
        """Return one row for the trees of each level, and one for the draws.

        Columns: ``level``, ``groups``, ``measured`` (the tree and its number of bins, or the mechanism and
        its granularity) and ``share``, the part of the loss.
        """
        rows: list[tuple[Hashable, int, str, float]] = []
        shown = [1] if self.domain is None else list(map(self.domain.tree.n_listed, range(self._depth + 1)))
        whole = self.loss.exact.rho or self.loss.exact.epsilon
        assert whole is not None
        if self.trees is not None:
            part = self.trees.loss.exact.rho or self.trees.loss.exact.epsilon
            assert part is not None
            levels = self.level_names[: len(self.trees.totals)]
            how = f"{self.trees.strategy.description}, {self.trees.bins.n_bins} bins"
            share = float(part / whole) / len(levels)
            rows += [(level, n, how, share) for level, n in zip(levels, shown, strict=False)]
        if self.draws is not None:
            part = self.draws.loss.exact.rho or self.draws.loss.exact.epsilon
            assert part is not None
            how = f"{self.draws.name}, {self.draws.grid.in_words}"
            rows.append((self.level_names[-1], shown[-1], how, float(part / whole)))
        return pd.DataFrame(rows, columns=["level", "groups", "measured", "share"])

    def compare(self) -> pd.DataFrame:
        """Compare the strategies of trees if all quantiles are read from them; otherwise return `to_frame`.

        Errors of drawn quantiles depend on the records, so there is nothing to compare.
        """
        if self.draws is not None:
            return self.to_frame()
        assert self.trees is not None
        return self.trees.compare()

    @property
    def _aggregates(self) -> list[Aggregate]:
        return ["quantile"]

    @property
    def _bounds(self) -> Any:
        """The least and the largest value to which values are clipped."""
        if self.draws is None:
            assert self.trees is not None
            return self.trees.bins.values_at([0, self.trees.bins.n_bins])
        points = self.draws.grid
        if isinstance(points, Grid):
            return points.labels(points.values_at([0, points.size - 1]))
        return points.bins.values_at([0, points.size])

    def _provenance_details(self) -> dict[str, Any]:
        details: dict[str, Any] = {
            "column": str(self.column),
            "shown": "quantiles",
            "bounds": bounds_in_json(self._bounds),
            "q": list(self.q),
            "confidence": self.confidence,
        }
        if self.draws is not None:
            details |= points_in_json(self.draws.grid)
        if self.trees is not None:
            details |= {"n_bins": self.trees.bins.n_bins, "strategy": self.trees.strategy.description}
            details["noise"] = self.trees.mechanism_name
        return details

    # Release

    def _prepared(self, data: Any) -> Release:
        causes = usual_causes(self.domain, values=[self.column], privacy_unit=self.privacy_unit)
        if isinstance(data, np.ndarray):
            raise ArgumentError(
                "data",
                "holds counts, not records.",
                hint="of counts in bins, plan_distribution and its release give quantiles; of an array, "
                "array.dp.quantiles.",
            )
        return self._prepared_by(partial(self._exact, data), causes)

    def _prepared_by(self, exact: Callable[[Resources], Exact], causes: str, n_groups: int = 1) -> Release:
        """Prepare the release of what `exact` will read; without a domain, of so many groups side by side."""
        if self.domain is not None:
            n_groups = self.domain.tree.n_leaves

        def read(resources: Resources) -> Finish:
            return partial(self._finished, exact(resources), n_groups, causes)

        sizes = [1] if self.domain is None else [*self.domain.tree.level_sizes]
        n_trees = 0 if self.trees is None else len(self.trees.totals)
        steps = [
            (f"measuring {level}", n) for level, n in zip(self.level_names[:n_trees], sizes, strict=False)
        ]
        if self.draws is not None:
            steps.append(("drawing quantiles", n_groups))
        return Release(plan=self, read=read, effort=n_groups, steps=steps)

    def _exact(self, data: Any, resources: Resources) -> Exact:
        """Count the records at each point, or in each bin, of each group of the last level. Secret."""
        if self.draws is None:
            assert self.trees is not None
            return self.trees._exact(data, resources)
        check_rows_of_records(self.privacy_unit, self.max_contributions)
        return grid_counts(data, self._grid, self.domain, **resources.bounding(self))

    @property
    def _grid(self) -> Grid:
        """The grid of records."""
        assert self.draws is not None
        if isinstance(self.draws.grid, BinMiddles):
            raise ArgumentError(
                "data",
                "must be an array of counts in bins, for which the plan was made.",
                hint="plan with plan_quantiles to release records.",
            )
        return self.draws.grid

    def _finished(self, exact: Exact, n_groups: int, causes: str, origin: Origin, done: Done) -> Outcome:
        """Measure the trees, and draw. Exact counts do not leave this function."""
        distribution, estimates, drawn = None, [], None
        if self.trees is not None:
            counts = self._tree_counts(exact) if isinstance(exact, PointCounts) else exact
            estimates = self.trees._estimates(counts, origin, done)
            distribution = self.trees._distribution(estimates, origin)
        if isinstance(exact, PointCounts):
            assert self.draws is not None
            if estimates:
                done()
            drawn = draw_quantiles(
                exact.places,
                exact.rows,
                n_groups=n_groups,
                size=self.draws.grid.size,
                quantiles=[fraction_of(each) for each in self.q],
                drawing=self.drawing,
                measures=self._measures(estimates),
                source=origin.source,
            )
        return self._outcome(distribution, estimates, drawn, causes, origin)

    def _leaf_nodes(self, level: int) -> IntArray:
        """Return the node of a level above each leaf."""
        if self.domain is None:
            return np.zeros(1, dtype=np.int64)
        return self.domain.tree.nodes_above(np.arange(self.domain.tree.n_leaves), level)

    def _tree_counts(self, points: PointCounts) -> IntArray:
        """Count the records in each cell of the grid, for each group of the last level that has trees."""
        assert self.trees is not None
        size, n_bins = self._grid.size, self.trees.bins.n_bins
        leaf, point = np.divmod(points.places, size)
        cell = np.searchsorted(self._cells[1:-1], point, side="right")
        level = len(self.trees.totals) - 1
        node = self._leaf_nodes(level)[leaf]
        counts = np.zeros((len(self.trees.totals[-1]), n_bins), dtype=np.int64)
        np.add.at(counts, (node, cell), points.rows)
        return counts

    @cached_property
    def _cells(self) -> IntArray:
        """The points at which the bins of the trees start."""
        assert self.trees is not None
        return self._grid.cells(self.trees.bins.n_bins)

    def _measures(self, estimates: Sequence[npt.NDArray[np.float64]]) -> list[BaseMeasure] | None:
        """Return the base measure of each quantile, from the released trees of the level above the last."""
        if self._depth == 0:
            return None
        assert self.trees is not None
        above, totals = estimates[self._depth - 1], self.trees.totals[self._depth - 1]
        free = np.rint(np.maximum(above[:, -1], 0)).astype(np.int64)
        cumulative = consistent_cdfs(above, np.where(totals < 0, free, totals))
        curve = self._leaf_nodes(self._depth - 1)
        return [
            BaseMeasure(self._cells, densities(cumulative, self._cells, fraction_of(each)), curve)
            for each in self.q
        ]

    def _outcome(
        self,
        distribution: Distribution | None,
        estimates: list[npt.NDArray[np.float64]],
        drawn: IntArray | None,
        causes: str,
        origin: Origin,
    ) -> Outcome:
        """Make the table of what was released."""
        totals: Totals = {}
        doubts: list[Doubt] = []
        read = None
        if distribution is not None:
            assert self.trees is not None
            read, of_intervals = distribution._quantiles_with_doubts(self.q, self.confidence)
            totals, doubts = distribution._totals, self.trees._doubts(estimates)
            doubts += of_intervals if drawn is None else []
        if drawn is None:
            assert read is not None
            read.attrs.update(self._attrs(origin))
            return Outcome(read, totals, causes, doubts)
        assert self.draws is not None
        grid = self.draws.grid
        doubts += drawn_at_bounds(self.column, np.array(self.q), drawn, grid.size)
        table = quantile_table(
            grid,
            self.q,
            groups=self._groups(len(drawn)),
            read=read,
            drawn=drawn,
            rows=np.arange(len(drawn)) if self.domain is None else rows_of_leaves(self.domain),
        )
        table.attrs.update(self._attrs(origin))
        return Outcome(table, totals, causes, doubts)

    def _groups(self, n_groups: int) -> pd.DataFrame | None:
        """The keys of the groups, or their numbers if they have no names; None for a single group."""
        if self.domain is not None:
            return release_frame(self.domain, {}, {})
        return None if n_groups == 1 else pd.DataFrame({"level": "group", "group": np.arange(n_groups)})

    def _opened(self, data: Any, bounding: Bounding) -> tuple[Records, Tally[Any]]:
        if self.draws is None:
            assert self.trees is not None
            return self.trees._opened(data, bounding)
        check_rows_of_records(self.privacy_unit, self.max_contributions)
        return open_grid(data, self._grid, self.domain, bounding)

    # JSON: the exponents follow from the others; a verifier computes them again

    def _fields(self) -> dict[str, Any]:
        draws, trees = self.draws, self.trees
        exponents = [] if draws is None else list(map(float, exponents_of(self.drawing, self.q)))
        return {
            "column": serialize.name("column", self.column),
            "q": list(self.q),
            "confidence": self.confidence,
            "draws": None if draws is None else {**draws.to_dict(), "exponents": exponents},
            "trees": None
            if trees is None
            else {"loss": trees.loss.to_dict(), "levels": len(trees.totals), **trees._fields()},
        }

    @classmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: Domain | None, **common: Any) -> Self:
        draws = None if data["draws"] is None else Draws.from_dict(data["draws"])
        trees = None
        if data["trees"] is not None:
            levels = data["trees"]["levels"]
            trees = DistributionPlan._from_fields(
                {**data["trees"], "domain_source": "given"},
                hierarchy_above(hierarchy, levels),
                **{**common, "loss": PrivacyLoss(**data["trees"]["loss"])},
            )
        return cls(
            q=tuple(map(float, data["q"])),
            domain=hierarchy,
            draws=draws,
            trees=trees,
            confidence=data["confidence"],
            source="given" if hierarchy is not None else serialize.choice(data["domain_source"], SOURCES),
            **common,
        )


def hierarchy_above(domain: Domain | None, n_levels: int) -> Domain | None:
    """Return the groups of the first levels of a hierarchy; None if that is all records alone."""
    if domain is None or n_levels <= 1:
        return None
    return domain if n_levels == domain.tree.depth + 1 else domain.truncated(n_levels - 1)


def rows_of_leaves(domain: Domain) -> IntArray:
    """Return the row of each leaf in a table of all nodes; -1 for structural zeros."""
    tree, leaves = domain.tree, np.arange(domain.tree.n_leaves)
    ends = np.broadcast_to(tree.leaf_levels, tree.n_leaves)
    rows, above = np.empty(tree.n_leaves, dtype=np.int64), 0
    for level in range(tree.depth + 1):
        listed = tree.listed(level)
        own = ends == level
        rows[own] = above + (np.cumsum(listed) - 1)[tree.nodes_above(leaves[own], level)]
        above += int(np.count_nonzero(listed))
    rows[domain.structural_zeros] = -1
    return rows
