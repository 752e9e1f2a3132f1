"""Plans for several quantities under one privacy loss: counts, sums and means, or several variables."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, is_name
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain, Source, source_in_words
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.ingest.tallies import Tally
from pandas_dptree.ingest.unit_counts import open_units, unit_counts
from pandas_dptree.output.crossed_frames import check_rows
from pandas_dptree.output.doubtful_tables import Level
from pandas_dptree.output.empty_tables import Totals, totals_of
from pandas_dptree.output.frames import check_names
from pandas_dptree.output.progress import Done
from pandas_dptree.output.protection import Aggregate, distinct_in_words
from pandas_dptree.plans import serialize
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.base import Plan, not_measured
from pandas_dptree.plans.crossed import CrossedPlan
from pandas_dptree.plans.doubts import doubts_of
from pandas_dptree.plans.execute import (
    Levels,
    Measured,
    causes_of,
    column_prefix,
    columns_of,
    exact_leaves,
    finishing_steps,
    linear_estimates,
    measured,
    opened_leaves,
)
from pandas_dptree.plans.joint_charge import joint_delta, loss_together, within_loss
from pandas_dptree.plans.losses import LevelItem
from pandas_dptree.plans.means import mean_columns, quotient_columns
from pandas_dptree.plans.running import Finish, Origin, Outcome, Release, Resources
from pandas_dptree.plans.units import UnitPlan
from pandas_dptree.privacy.caps import Caps
from pandas_dptree.privacy.level_losses import LevelLoss
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import COUNT
from pandas_dptree.privacy.sensitivity import Neighbors

__all__ = ["JointPlan", "OfRecords", "Part", "with_count"]

FloatArray = npt.NDArray[np.float64]

OfRecords = AdditivePlan | CrossedPlan
"""The plan of what is added up over records."""

Part = OfRecords | UnitPlan
"""The plan of one quantity."""

_HINT = "make the plan with plan_agg, plan_sums or plan_means."

_OWN = (
    "column", "bounds", "granularity", "known", "noise_scale", "epsilon", "delta", "rho", "counted",
    "additive", "max_nodes", "excess_noise_scale",
)  # fmt: skip
"""The keys of the provenance that each quantity has separately."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class JointPlan(Plan[pd.DataFrame]):
    """A release of several quantities under one privacy loss, described before it happens.

    Made by `plan_agg`, `plan_sums` and `plan_means` for the records of a frame, and by
    `pandas_dptree.arrays.several.plan` for the variables of a dataset. It is a function of public arguments
    alone.

    Attributes
    ----------
    loss, neighbors, privacy_unit, max_contributions, caps
        As for `Plan`: the loss of the whole release, and the largest `max_contributions` of all plans.
    plans : mapping of AdditivePlan or CrossedPlan, or UnitPlan for distinct units
        What is measured, by the name that the table gives it. The plans differ only in what is added up, how
        many records of a unit they count, and their part of the loss. The error column of a count named
        ``"count"`` is ``"std_error"``; the names of all other error columns begin with that of the quantity.
        With distinct units, the parts of the loss may sum to more than the whole: no unit can move the counts
        of records and of units as far as possible at once (`plans.joint_charge`).
    means : tuple of hashable
        Names of the sums that the table shows as means: divided by the count.
    count : hashable or None
        The name of the plan that counts the records, for means, and for sums that are measured from the
        middle of their bounds (`AdditivePlan.count`).
    shows_count : bool
        Whether the table shows that count.
    per_unit : hashable or None
        The name of the column of the number of records of each unit; None for none.

    Notes
    -----
    The released table has one row per node: ``level``, the keys, and for each quantity its value and its
    standard error. `release` takes records; ``dataset.dp.release`` releases a plan for a dataset.

    **Privacy**: the loss is spent once for all quantities together. A record that lacks one of the values is
    dropped from all of them, like one outside the domain.
    """

    kind: ClassVar[str] = "joint"
    _takes_caps: ClassVar[bool] = True

    neighbors: Neighbors = field(init=False)
    privacy_unit: Hashable | None = field(init=False)
    max_contributions: int = field(init=False)
    caps: Caps = field(init=False)
    plans: Mapping[Hashable, Part]
    means: tuple[Hashable, ...] = ()
    count: Hashable | None = None
    shows_count: bool = True
    per_unit: Hashable | None = None

    def __post_init__(self) -> None:
        """Check that the plans belong together, and keep to the loss."""
        object.__setattr__(self, "plans", dict(self.plans))
        self._check_parts()
        object.__setattr__(self, "plans", MappingProxyType(with_count(self.plans, self.means, self.count)))
        first, *others = self.plans.values()
        compatible = all(
            each.tree == first.tree
            and (each.neighbors, each.privacy_unit, each.caps, each.noise)
            == (first.neighbors, first.privacy_unit, first.caps, first.noise)
            for each in others
        )
        if not compatible:
            raise ArgumentError(
                "plans",
                "differ in the hierarchy, the privacy unit, its caps, `neighbors` or the noise.",
                hint=_HINT,
            )
        if not within_loss(self.loss, list(self.plans.values())):
            raise ArgumentError(
                "plans",
                "together spend more than the stated loss.",
                hint=_HINT,
            )
        object.__setattr__(self, "neighbors", first.neighbors)
        object.__setattr__(self, "privacy_unit", first.privacy_unit)
        object.__setattr__(self, "caps", first.caps)
        object.__setattr__(
            self, "max_contributions", max(each.max_contributions for each in self._of_records)
        )
        super().__post_init__()

    def _check_parts(self) -> None:
        """Check the quantities, their names, and how the table shows them."""
        named = all(name is not None and is_name(name) for name in self.plans)
        if not self.plans or not named or not all(isinstance(each, Part) for each in self.plans.values()):
            raise ArgumentError("plans", "must map names to AdditivePlans, at least one.", hint=_HINT)
        units = [each for each in self.plans.values() if isinstance(each, UnitPlan)]
        counted = self.count in self.plans and self.plans[self.count].statistic == "count"
        if len(units) > 1 or len(units) == len(self.plans):
            raise ArgumentError(
                "plans",
                "must count records beside distinct units, which only one of them counts.",
                hint=_HINT,
            )
        divides = self.per_unit is None or (is_name(self.per_unit) and self.per_unit not in self.plans)
        if not divides or (self.per_unit is not None and not (counted and units)):
            raise ArgumentError(
                "per_unit",
                "must be the name of a column of its own, and needs counts of records and of distinct units.",
                hint=_HINT,
            )
        if any(each.max_nodes[-1] > rows.max_contributions for each in units for rows in self._of_records):
            raise ArgumentError(
                "max_contributions",
                "must be at least the bound of the deepest level of `max_nodes`.",
                hint="raise max_contributions, or lower max_nodes: a unit in so many nodes has as many rows.",
            )
        shifted = any(each.quantity.shift for each in self.plans.values())
        summed = [name for name, each in self.plans.items() if each.statistic == "sum"]
        if not set(self.means) <= set(summed) or ((self.means or shifted) and not counted):
            raise ArgumentError(
                "means",
                "must name sums, and needs a count of records, as do differences from the middle of bounds.",
                hint=_HINT,
            )
        if not isinstance(self.shows_count, bool) or not (counted or self.count is None):
            raise ArgumentError("count", "must name a count of records, or be None.", hint=_HINT)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "plans": dict(self.plans)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "plans": MappingProxyType(state["plans"])})

    def _loss_items(self) -> list[LevelItem]:
        return [
            item._replace(quantity=name) for name, plan in self.plans.items() for item in plan.losses.items
        ]

    def _loss_together(self) -> LevelLoss:
        return loss_together(list(self.plans.values()))

    def _certified_delta(self, epsilon: float) -> float:
        spending = [plan for plan in self.plans.values() if plan._spends]
        return joint_delta(epsilon, spending) if spending else 0.0

    @property
    def _of_records(self) -> list[OfRecords]:
        """The plans of what is added up over records."""
        return [each for each in self.plans.values() if not isinstance(each, UnitPlan)]

    @property
    def units(self) -> UnitPlan | None:
        """The plan that counts distinct units, if there is one."""
        return next((each for each in self.plans.values() if isinstance(each, UnitPlan)), None)

    @property
    def _first(self) -> OfRecords:
        return self._of_records[0]

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root to the leaves."""
        return self._first.level_names

    @property
    def hierarchy(self) -> Domain | CrossedDomain:
        """The domain."""
        return self._first._labelled

    @property
    def domain_source(self) -> Source:
        """Where the public keys came from."""
        return self._first.domain_source

    @property
    def mechanism_name(self) -> str:
        """The name of the noise in ``attrs`` and JSON."""
        return self._first.mechanism_name

    @property
    def _measured(self) -> str:
        shown = {name: self._shown(name) for name in self.plans}
        return ", ".join(
            f"{how}s of {self.plans[name].quantity.column}"
            if how in ("sum", "mean")
            else self.plans[name]._measured
            for name, how in shown.items()
            if how != "not shown"
        )

    @property
    def _release_in_words(self) -> str:
        """The release in one sentence: quantities and their parts of the loss, noise, and the whole loss."""
        parts = ", ".join(
            f"{name} ({plan.loss.in_words if plan._spends else 'public'})"
            for name, plan in self.plans.items()
        )
        return (
            f"Plan for {parts} together: {self.mechanism_name} noise, {self.protection}"
            f"{source_in_words(self._first.domain)}"
        )

    @property
    def _aggregates(self) -> list[Aggregate]:
        shown = {name: self._shown(name) for name in self.plans}
        means: list[Aggregate] = ["mean"] * ("mean" in shown.values() or self.per_unit is not None)
        totals = [
            self.plans[name]._aggregates for name, how in shown.items() if how in ("count", "sum", "units")
        ]
        return [*means, *itertools.chain(*totals)]

    @property
    def _rows_in_words(self) -> str:
        bounds = {
            name: plan.max_contributions for name, plan in self.plans.items() if plan.statistic != "units"
        }
        if len(set(bounds.values())) == 1:
            units = self.units
            return super()._rows_in_words + ("" if units is None else f", {units._rows_in_words}")
        return ", ".join(f"up to {most} of {name}" for name, most in bounds.items())

    @property
    def _distinct_in_words(self) -> str:
        names = (name for name, plan in self.plans.items() if plan is self.units)
        return (
            ""
            if self.units is None
            else distinct_in_words(self.units._bounds, self.privacy_unit, column=str(next(names)))
        )

    @property
    def _remark(self) -> str:
        """Which levels are not measured."""
        plans = {name: plan for name, plan in self.plans.items() if plan._spends}
        return not_measured([f"{level} of {name}" for name in plans for level in plans[name]._unmeasured])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per quantity and level: ``quantity``, and the columns of `AdditivePlan.to_frame`.

        Shares refer to the quantity's own part of the loss.
        """
        tables = [plan.to_frame() for plan in self.plans.values()]
        names = [name for name, table in zip(self.plans, tables, strict=True) for _ in table.index]
        together = pd.concat(tables, ignore_index=True)
        together.insert(0, "quantity", pd.Index(names, tupleize_cols=False, dtype=object).array)
        return together.infer_objects()

    def compare(self, *, max_nodes: Sequence[Any] | None = None, **bounds: Any) -> pd.DataFrame:
        """Compare mechanisms and splits, or bounds, as `AdditivePlan.compare`, by ``quantity`` as well.

        `bounds` are lists for ``max_contributions`` and ``max_per_leaf``, and compare what is added up over
        records; `max_nodes` lists those of distinct units, and compares their counts. Each quantity keeps its
        part of the loss.
        """
        if max_nodes is not None and (bounds or self.units is None):
            raise ArgumentError(
                "max_nodes",
                "bounds the nodes of distinct units, which are not compared here.",
                hint="leave it out, or compare it by itself in a plan that counts units.",
            )
        kind = OfRecords if bounds else Part if max_nodes is None else UnitPlan
        if max_nodes is not None:
            bounds = {"max_nodes": max_nodes}
        spending = {
            str(name): plan for name, plan in self.plans.items() if plan._spends and isinstance(plan, kind)
        }
        tables = {name: plan.compare(**bounds) for name, plan in spending.items()}
        return pd.concat(tables, names=["quantity"])

    def _prepared(self, data: Any) -> Release:
        named = [name for name, each in self.plans.items() if name != COUNT.name or each.statistic != "count"]
        named += [] if self.per_unit is None else [self.per_unit]
        check_names(self._first._key_columns, named, argument="plans")
        if isinstance(data, np.ndarray):
            raise ArgumentError(
                "data",
                "must be a dataframe of records for a plan of several quantities.",
                hint="to release exact counts, use a plan of one quantity: dpt.plan(...).",
            )
        if len({plan.max_contributions for plan in self._of_records}) > 1:
            raise ArgumentError(
                "data",
                "cannot be released by a plan whose quantities have different bounds on the rows of a unit.",
                hint="the plan is for the variables of a dataset: use dataset.dp.release(plan).",
            )

        if isinstance(self._first.domain, CrossedDomain):
            check_rows(self._first.domain)

        def read(resources: Resources) -> Finish:
            return partial(self._finished, self._exact(data, resources))

        n_leaves = self._first._shape.n_leaves
        return Release(plan=self, read=read, effort=n_leaves, steps=finishing_steps(self.plans))

    def _exact(self, data: Any, resources: Resources) -> Sequence[Any]:
        """Read what the plans measure, exactly, in their order; the result is secret."""
        quantities = [each.quantity for each in self._of_records]
        if self.units is None:
            return exact_leaves(self._first, quantities, data, resources)
        bounding = resources.bounding(self)
        counts = unit_counts(data, self.units._of_records, self.units.max_nodes, quantities, **bounding)
        sums = iter(counts.sums)
        return [counts if each is self.units else next(sums) for each in self.plans.values()]

    def _opened(self, data: Any, bounding: Bounding) -> tuple[Records, Tally[Any]]:
        quantities = [each.quantity for each in self._of_records]
        if self.units is not None:
            return open_units(data, self.units._of_records, self.units.max_nodes, quantities, bounding)
        return opened_leaves(self._first, quantities, data, bounding)

    def _finished(self, leaves: Sequence[Any], origin: Origin, done: Done) -> Outcome:
        """Measure exact values, and make the table."""
        plans = list(self.plans.values())
        values = dict(zip(self.plans, measured(plans, leaves, origin.source, done), strict=True))
        done()
        columns: dict[Hashable, Levels] = {}
        means: dict[Hashable, list[Level]] = {}
        for name, plan in self.plans.items():
            if name in self.means:
                count = self.plans[self.count], values[self.count]
                columns |= mean_columns(name, plan, values[name], *count)
                errors = columns[f"{column_prefix(name)}std_error"]
                means[name] = [
                    Level(mean, error**2) for mean, error in zip(columns[name], errors, strict=True)
                ]
            elif name != self.count or self.shows_count:
                columns |= columns_of(name, plan, values[name])
        if self.per_unit is not None:
            columns |= self._rows_per_unit(values)
        table = self._first._laid_out(columns, self._attrs(origin))
        together = {name: (self.plans[name], values[name]) for name in self._asked}
        doubts = doubts_of(together, self._first.domain, means)
        linear = linear_estimates(self.plans, list(values.values()), origin)
        return Outcome(table, self._totals(values), causes_of(plans), doubts, linear)

    def _rows_per_unit(self, values: Mapping[Hashable, Measured]) -> dict[Hashable, Levels]:
        """Divide the number of records by that of distinct units."""
        units = next(name for name, plan in self.plans.items() if plan is self.units)
        return quotient_columns(
            self.per_unit,
            (self.plans[self.count], values[self.count]),
            (self.plans[units], values[units]),
            bounds=(1, self.max_contributions),
        )

    def _totals(self, values: Mapping[Hashable, Measured]) -> Totals:
        """Return the totals of counts and sums. Those of means do not show how many records there are."""
        totals: dict[Hashable, tuple[npt.ArrayLike, float]] = {}
        for name in self._asked:
            plan = self.plans[name]
            if name not in self.means:
                total, error = plan._total(values[name])
                root = {name: total, f"{column_prefix(name)}std_error": error}
                totals |= totals_of(root, {name: plan.shown_quantity})
        return totals

    @property
    def _asked(self) -> list[Hashable]:
        """The names of what the table shows, and of the count by which it divides."""
        return [name for name in self.plans if self.means or self._shown(name) != "not shown"]

    def provenance(self, origin: Origin | None = None) -> dict[str, Any]:
        """Describe how a release is made, as `Plan.provenance`: what all quantities share, and each one."""
        each = {name: plan.provenance(origin) for name, plan in self.plans.items()}
        of_records = [each[name] for name, plan in self.plans.items() if not isinstance(plan, UnitPlan)]
        common = of_records[0]
        differing = [
            key
            for key in common
            if key not in (*_OWN, "digest") and any(one[key] != common[key] for one in of_records)
        ]
        own = {
            str(name): {key: one[key] for key in (*_OWN, *differing) if key in one}
            | {"shown": self._shown(name)}
            for name, one in each.items()
        }
        for name, plan in self.plans.items():
            if plan.count is not None:
                own[str(name)] |= {"middle": float(plan.quantity.origin), "count": str(self.count)}
            if not plan._spends:
                own[str(name)] |= dict.fromkeys(plan.loss.to_dict(), 0.0)
        if self.per_unit is not None:
            own[str(self.per_unit)] = {"shown": "mean"}
        shared = {key: value for key, value in common.items() if key not in (*_OWN, *differing)}
        return {**shared, **self.loss.to_dict(), "digest": self.digest, "quantities": own}

    def _shown(self, name: Hashable) -> str:
        """Return how the table shows a quantity."""
        if name in self.means:
            return "mean"
        if self.plans[name].statistic != "count":
            return self.plans[name].statistic
        return "count" if self.shows_count or name != self.count else "not shown"

    def _provenance_details(self) -> dict[str, Any]:
        return {}

    # JSON

    def _fields(self) -> dict[str, Any]:
        return {
            "plans": [[serialize.name("plans", name), plan._to_part()] for name, plan in self.plans.items()],
            "means": [serialize.name("means", name) for name in self.means],
            "count": serialize.name("count", self.count),
            "shows_count": self.shows_count,
            **({} if self.per_unit is None else {"per_unit": serialize.name("per_unit", self.per_unit)}),
        }

    @classmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: Any, **common: Any) -> Self:
        plans = {
            name: _kind_of(each)._from_part(
                each,
                hierarchy,
                mechanism=data["mechanism"],
                loss=PrivacyLoss(**each["loss"]),
                neighbors=common["neighbors"],
                privacy_unit=common["privacy_unit"],
                max_contributions=each["max_contributions"],
                caps=common["caps"],
            )
            for name, each in data["plans"]
        }
        plan = cls(
            loss=common["loss"],
            plans=plans,
            means=tuple(data["means"]),
            count=data["count"],
            shows_count=data["shows_count"],
            per_unit=data.get("per_unit"),
        )
        if plan.max_contributions != common["max_contributions"]:
            raise ValueError("the plans have different bounds on the rows of a unit")
        return plan


def _kind_of(data: Mapping[str, Any]) -> type[Part]:
    """Return the kind of plan that was serialized as a part."""
    return UnitPlan if "max_nodes" in data else CrossedPlan if "margins" in data else AdditivePlan


def with_count(
    plans: Mapping[Hashable, Part], means: Sequence[Hashable], count: Hashable
) -> dict[Hashable, Part]:
    """Tell the sums that are measured from the middle of their bounds which plan counts the records."""
    found: dict[Hashable, Part] = {}
    for name, plan in plans.items():
        own = plans[count] if plan.quantity.shift and name not in means else None
        found[name] = plan if plan.count is own else replace(plan, count=own)  # type: ignore[arg-type]
    return found
