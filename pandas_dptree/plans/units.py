"""Plans that count the distinct privacy units in every node of a tree."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, kind_of_object, quote
from pandas_dptree.estimation.estimators import estimate_units
from pandas_dptree.estimation.intervals import estimate_cumulants, half_widths
from pandas_dptree.estimation.least_squares import (
    LEAST_VARIANCE,
    FloatArray,
    Measurements,
    Variances,
    propagate,
)
from pandas_dptree.hierarchy.domain import Domain, source_in_words
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.ingest.unit_counts import UnitCounts, UnitTally, open_units, unit_counts
from pandas_dptree.mechanisms.additive import NOISES, AdditiveNoise, candidate_noises
from pandas_dptree.output.empty_tables import totals_of
from pandas_dptree.output.pictures.plan_errors import plot_level_errors
from pandas_dptree.output.progress import Done
from pandas_dptree.output.protection import Aggregate, distinct_in_words
from pandas_dptree.planning.split import SPLITS, Split
from pandas_dptree.planning.unit_bound import unit_gap
from pandas_dptree.planning.unit_split import no_excess, unit_shares
from pandas_dptree.plans.base import not_measured
from pandas_dptree.plans.doubts import doubts_of
from pandas_dptree.plans.execute import (
    causes_of,
    columns_of,
    finishing_steps,
    linear_estimates,
    measured,
)
from pandas_dptree.plans.measurement import FROM_SHARES, Levels, Measurement
from pandas_dptree.plans.running import Finish, Origin, Outcome, Release, Resources
from pandas_dptree.plans.shown_columns import KEPT
from pandas_dptree.privacy.max_nodes import MaxNodes, check_max_nodes, max_nodes_in_words, stated_max_nodes
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.sensitivity import TreeSensitivity
from pandas_dptree.privacy.unit_sensitivity import unit_sensitivity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["UnitPlan"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class UnitPlan(Measurement):
    """A release of the number of distinct units in each node, with additive noise, before it happens.

    Made by `pandas_dptree.plan_units`. A plan is a function of the domain and the privacy parameters alone.

    Attributes
    ----------
    loss, neighbors, privacy_unit
        As for `Plan`. The units that are counted are those that are protected.
    max_contributions : int
        In how many leaves a unit is counted: the last of `max_nodes`.
    max_nodes : tuple of int
        In how many nodes of each level a unit is counted, the root first.
    tree, domain, noise, known, consistency, confidence, keep, split, objective, level_weights
        As for `AdditivePlan`; of what is known, the total and structural zeros.
    budget_shares : numpy.ndarray, shape (2 * n_levels - 1,)
        The shares of the budget of each level, and then of the excesses of each level above the leaves, which
        are the sums of their children's counts less their own: in proportion to what each would cost by
        itself. Nobody can move all of them as far as possible, so together they cost less than that.
    unit_noise_scales : numpy.ndarray, shape (2 * n_levels - 1,)
        Their noise scales; inf where nothing is measured.

    Notes
    -----
    `release` takes records. Of each unit, every level keeps a limited number of nodes, chosen at random: each
    node that is kept keeps one of its children, so nobody is missing from the total, and other children
    follow until the bound is reached. A unit is counted once in each node that it keeps.

    The table has one row per node: ``level``, the keys, ``count`` and ``std_error``, the standard error of
    the unbiased estimate of what is counted after bounding. **Counts do not add up**: a node has at least as
    many units as the largest of its children, and at most their sum. Whole and non-negative estimates keep
    to that.

    **Privacy**: the rows, columns and types of the table follow from the plan alone. Records outside the
    domain are dropped, and their number is not reported.
    """

    kind: ClassVar[str] = "units"
    quantity: Quantity = COUNT
    fit: Any = "totals"
    max_nodes: MaxNodes

    def __post_init__(self) -> None:
        """Check the bounds, and that there is a column of units."""
        object.__setattr__(self, "max_nodes", check_max_nodes(self.max_nodes, self.tree.level_sizes))
        if self.max_contributions != self.max_nodes[-1]:
            raise ArgumentError(
                "max_contributions",
                "must be the bound of the deepest level of `max_nodes`.",
                hint="make the plan with plan_units.",
            )
        excess = self.budget_shares[self.tree.depth + 1 :] > 0
        known = no_excess(self.tree, self.max_nodes)
        if excess.shape == known.shape and (excess & known).any():
            raise ArgumentError(
                "budget_shares",
                "measure an excess that is known to be 0, as no unit is in two nodes below it.",
                hint="make the plan with plan_units.",
            )
        super().__post_init__()
        if self.privacy_unit is None:
            raise ArgumentError(
                "privacy_unit",
                "must name the column whose distinct values are counted.",
                hint='for example privacy_unit="person_id". Rows that are units of their own are counted by '
                "tree_counts.",
            )
        stated = any(least.any() for least in self.known.least[1:]) and not self.known.exact[0].all()
        if stated or self.quantity != COUNT or self.count is not None or self.in_forest:
            raise ArgumentError(
                "known",
                "must be the total alone, where distinct units are counted.",
                hint='for example known={"total": 81203}.',
            )

    # What is measured

    @property
    def statistic(self) -> Literal["units"]:
        """What is measured of the records of a node: the number of their units."""
        return "units"

    @property
    def _parts(self) -> Sequence[Hashable]:
        return [*self.level_names, *(f"excess of {name}" for name in self.level_names[:-1])]

    @property
    def excess_noise_scales(self) -> FloatArray:
        """Noise scale of the excesses of each level above the leaves; inf where they are not measured."""
        return self.unit_noise_scales[self.tree.depth + 1 :]

    @cached_property
    def sensitivity(self) -> TreeSensitivity:
        """How far one unit can move the counts of all levels, and then the excesses of all but the last."""
        return self.sensitivity_with(None)

    def sensitivity_with(self, rows: int | None) -> TreeSensitivity:
        """Return it with the counts of rows before, of which a unit has so many at most."""
        excess = (self.budget_shares[self.tree.depth + 1 :] > 0).tolist()
        return unit_sensitivity(self.max_nodes, neighbors=self.neighbors, excess=excess, rows=rows)

    @property
    def _covers_known_leaves(self) -> bool:
        return False

    def _exact(self, counts: UnitCounts) -> Sequence[IntArray]:  # type: ignore[override]
        nodes = counts.nodes
        sums = (self.tree.sum_children(level, below) for level, below in enumerate(nodes[1:]))
        return [*nodes, *(below - own for below, own in zip(sums, nodes[:-1], strict=True))]

    @cached_property
    def _variances(self) -> Variances:
        noise = [
            np.where(exact, 0.0, np.maximum(variance, LEAST_VARIANCE))
            for exact, variance in zip(self.known.exact, self._measured_variances, strict=True)
        ]
        of_excess = np.maximum(self.noise.variance(self.excess_noise_scales), LEAST_VARIANCE)
        of_excess[no_excess(self.tree, self.max_nodes)] = 0.0
        return propagate(self.tree, noise, list(of_excess[:, None]))

    @cached_property
    def _excess_cumulants(self) -> list[FloatArray]:
        scales = self.excess_noise_scales
        return list(np.where(np.isinf(scales), 0.0, self.noise.fourth_cumulant(scales))[:, None])

    @cached_property
    def error_cumulants(self) -> list[FloatArray]:
        """Fourth cumulants of the errors in `node_std_errors`, in counts to the fourth power."""
        if not self._estimator.combines_levels:
            return self._noise_cumulants
        return estimate_cumulants(self.tree, self._variances, self._noise_cumulants, self._excess_cumulants)

    def _half_widths_at(self, confidence: float) -> list[FloatArray]:
        if not self._estimator.combines_levels:
            return super()._half_widths_at(confidence)
        return half_widths(
            self.tree, self._variances, self._noise_cumulants, confidence, self._excess_cumulants
        )

    def _estimates(
        self,
        given: tuple[Measurements, Variances],
        excess: Measurements | None,
        random_words: Callable[[int], npt.NDArray[np.uint64]],
    ) -> Levels:
        return estimate_units(
            self.tree, *given, excess, self.max_nodes, random_words, consistency=self.consistency
        )

    @cached_property
    def _possible_range(self) -> tuple[Sequence[Any], Sequence[Any]]:
        exact, least = self.known.exact, self.known.least
        total = np.where(exact[0], least[0], np.inf)
        return least, [np.where(own, low, total) for own, low in zip(exact, least, strict=True)]

    @cached_property
    def _gap_and_reason(self) -> tuple[float | None, str]:
        return unit_gap(self)

    # Description

    @property
    def _measured(self) -> str:
        return f"distinct {self.privacy_unit}"

    @property
    def _rows_in_words(self) -> str:
        return max_nodes_in_words(self.max_nodes, self.level_names)

    @property
    def _aggregates(self) -> list[Aggregate]:
        return ["units"]

    @property
    def _bounds(self) -> dict[str, int]:
        """The bounds of the levels below the root, by name."""
        return dict(zip(map(str, self.level_names[1:]), self.max_nodes[1:], strict=True))

    @property
    def _distinct_in_words(self) -> str:
        return distinct_in_words(self._bounds, self.privacy_unit)

    @property
    def _release_in_words(self) -> str:
        """The release in one sentence: noise, privacy loss, privacy unit, split and consistency."""
        return (
            f"Plan for distinct {self.privacy_unit}: {self.noise.name} noise, {self.protection}; "
            f"{self.split} split for {self.objective!r}, consistency {self.consistency!r}"
            f"{source_in_words(self.domain)}"
        )

    @property
    def _remark(self) -> str:
        """Which levels are not measured; and how close the plan is to the best possible one, if known."""
        gap = "" if self.gap is None else self.gap_reason
        return "\n".join(filter(None, [not_measured(self._unmeasured), gap]))

    @property
    def mechanism_name(self) -> str:
        """The name of the noise in ``attrs`` and JSON."""
        return self.noise.name

    def _provenance_details(self) -> dict[str, Any]:
        names = list(map(str, self.level_names))
        return {
            "counted": "units",
            "additive": False,
            "max_nodes": self._bounds,
            "consistency": self.consistency,
            "known": {names[0]: 1} if self.known.exact[0].all() else {},
            "confidence": self.confidence,
            "noise_scale": _finite(names, self._level_scales),
            "excess_noise_scale": _finite(names[:-1], self.excess_noise_scales),
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per level, with its bound, its noise and its expected error.

        The columns are ``level``, ``nodes``, ``max_nodes``, ``share``, ``noise_scale``,
        ``excess_noise_scale`` (missing for the leaves), ``std_error`` and, with `confidence`, ``half_width``
        as for `AdditivePlan.to_frame`.
        """
        n_levels = len(self.level_names)
        columns: dict[str, Any] = {
            "level": list(self.level_names),
            "nodes": self._n_listed,
            "max_nodes": list(self.max_nodes),
            "share": self.budget_shares[:n_levels],
            "noise_scale": self.noise_scales,
            "excess_noise_scale": np.append(self.excess_noise_scales, np.inf),
            "std_error": self.std_errors,
        }
        if self.confidence is not None:
            columns["half_width"] = self.largest_half_widths(self.confidence)
        return pd.DataFrame(columns)

    def compare(self, *, max_nodes: Sequence[Any] | None = None) -> pd.DataFrame:
        """Compare the mechanisms and splits that could spend the same loss, or bounds on the nodes of a unit.

        Parameters
        ----------
        max_nodes : sequence, optional
            Compare these bounds instead, each a number or a mapping as for `tree_units`, for the same noise
            and split. That is free, since it does not look at records; whom the bounds leave out of which
            nodes is not known, and not part of the errors.

        Returns
        -------
        pandas.DataFrame
            One row per plan, indexed by ``mechanism`` and ``split``, first this plan and then the others from
            the best to the worst, or indexed by ``max_nodes``, in the order given. Columns: each level's
            expected standard error; ``objective``, the root of the expected squared error that the objective
            measures; ``gap``.
        """
        if max_nodes is not None:
            bounds = [
                stated_max_nodes(each, self.level_names, self.tree.level_sizes) for each in _listed(max_nodes)
            ]
            plans = [variant(self, self.noise, self.split, each) for each in bounds]
            return _tabulated(plans, pd.Index(list(map(str, max_nodes)), name="max_nodes"))
        others = [
            variant(self, noise, split)
            for noise in candidate_noises("auto", self.loss)
            for split in SPLITS
            if (noise, split) != (self.noise, self.split)
        ]
        plans = [self, *sorted(others, key=lambda other: other.expected_error)]
        index = [(each.noise.name, str(each.split)) for each in plans]
        return _tabulated(plans, pd.MultiIndex.from_tuples(index, names=["mechanism", "split"]))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the expected standard error of each level, beside that of an even split.

        It is drawn on `ax`, by default on the axes of a new figure, which are returned; without matplotlib,
        MissingExtraError is raised.
        """
        even = variant(self, self.noise, "uniform").std_errors
        errors = {"this plan": self.std_errors, "even split": even}
        return plot_level_errors(list(map(str, self.level_names)), errors, ax, unit="counts")

    # Release

    def _prepared(self, data: Any) -> Release:
        if isinstance(data, np.ndarray):
            raise ArgumentError(
                "data",
                "holds counts, which do not say in how many nodes each unit is.",
                hint="release the records, with the column of the privacy unit.",
            )
        name = self.quantity.name

        def read(resources: Resources) -> Finish:
            bounding = resources.bounding(self)
            return partial(finish, unit_counts(data, self._of_records, self.max_nodes, (), **bounding))

        def finish(counts: UnitCounts, origin: Origin, done: Done) -> Outcome:
            (values,) = measured([self], [counts], origin.source, done)
            done()
            columns = columns_of(name, self, values)
            doubts = doubts_of({name: (self, values)}, self.domain)
            linear = linear_estimates({name: self}, [values], origin)
            del values  # measurements that the table does not show
            table = self._laid_out(columns, self._attrs(origin))
            return Outcome(table, totals_of(table[:1], {name: COUNT}), causes_of([self]), doubts, linear)

        return Release(plan=self, read=read, effort=self._shape.n_leaves, steps=finishing_steps({name: self}))

    @property
    def _of_records(self) -> Domain:
        """The domain, or an error for a plan without labels."""
        if self.domain is None:
            raise ArgumentError(
                "data",
                "cannot be counted by a plan made from a Tree, which has no keys.",
                hint="plan with a Domain to release a frame of records.",
            )
        return self.domain

    def _opened(self, data: Any, bounding: Bounding) -> tuple[Records, UnitTally]:
        return open_units(data, self._of_records, self.max_nodes, (), bounding)

    # JSON

    def _fields(self) -> dict[str, Any]:
        return {
            "max_nodes": list(self.max_nodes),
            "consistency": self.consistency,
            "confidence": self.confidence,
            **{f"keep_{name}": name in self.keep for name in KEPT},
            **self._split_to_json(),
        }

    @classmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: Domain | Tree, **common: Any) -> Self:
        return cls._from_part(data, hierarchy, mechanism=data["mechanism"], **common)

    @classmethod
    def _from_part(
        cls, data: Mapping[str, Any], hierarchy: Domain | Tree, *, mechanism: str, **common: Any
    ) -> Self:
        """Read what `_to_part` serialized."""
        tree = hierarchy if isinstance(hierarchy, Tree) else hierarchy.tree
        return cls(
            tree=tree,
            domain=hierarchy if isinstance(hierarchy, Domain) else None,
            noise=NOISES[mechanism],
            max_nodes=tuple(data["max_nodes"]),
            known=Known.read(hierarchy, Known.from_dict(tree, data["known"])),
            **cls._split_from_json(data),
            consistency=data["consistency"],
            confidence=data["confidence"],
            keep=tuple(each for each in KEPT if data[f"keep_{each}"]),
            **common,
        )


def variant(
    plan: UnitPlan, noise: AdditiveNoise, split: Split | Literal["given"], max_nodes: MaxNodes | None = None
) -> UnitPlan:
    """Plan the same release with another noise, split or bound; shares that were given are kept."""
    bounds = plan.max_nodes if max_nodes is None else max_nodes
    given = plan.budget_shares[: plan.tree.depth + 1]
    shares = unit_shares(
        plan.tree,
        bounds,
        noise=noise,
        loss=plan.loss,
        neighbors=plan.neighbors,
        split=given / given.sum() if split == "given" else split,
        level_weights=plan.level_weights,
        objective=plan.objective,
        least_squares=plan._estimator.combines_levels,
        known=plan.known.exact,
    )
    return replace(
        plan,
        noise=noise,
        split=split,
        max_nodes=bounds,
        max_contributions=bounds[-1],
        budget_shares=shares,
        unit_noise_scales=FROM_SHARES,
    )


def _tabulated(plans: Sequence[UnitPlan], index: pd.Index) -> pd.DataFrame:
    """Tabulate the standard errors of plans, their errors under the objective, and their gaps."""
    table = pd.DataFrame([each.std_errors for each in plans], index=index, columns=list(plans[0].level_names))
    table.insert(len(table.columns), "objective", [each.expected_error for each in plans], True)
    table.insert(len(table.columns), "gap", [each.gap for each in plans], True)
    return table


def _listed(max_nodes: object) -> Sequence[Any]:
    """Check a list of bounds to compare."""
    if not isinstance(max_nodes, list | tuple | range) or not max_nodes:
        raise ArgumentError(
            "max_nodes",
            f"must list bounds to compare, not be {kind_of_object(max_nodes)}.",
            hint="for example max_nodes=[1, 2, 4, 8].",
        )
    for each in max_nodes:
        if not isinstance(each, Mapping) and not (isinstance(each, int | np.integer) and 1 <= each):
            raise ArgumentError(
                "max_nodes",
                f"must list whole numbers of at least 1, or mappings, not {quote(each, of=max_nodes)}.",
                hint="for example max_nodes=[1, 2, 4, 8].",
            )
    return max_nodes


def _finite(names: Sequence[str], scales: FloatArray) -> dict[str, float | None]:
    """Name noise scales, with None where nothing is measured."""
    pairs = zip(names, scales.tolist(), strict=True)
    return {name: scale if np.isfinite(scale) else None for name, scale in pairs}
