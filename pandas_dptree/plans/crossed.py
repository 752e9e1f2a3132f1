"""Plans for every margin of crossed hierarchies."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.crossed import CrossedSquares, crossed_squares
from pandas_dptree.estimation.crossed_fit import fit_crossed
from pandas_dptree.estimation.least_squares import LEAST_VARIANCE, FloatArray, Measurements
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.domain import Source, source_in_words
from pandas_dptree.hierarchy.margin_names import level_column
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.contributions import LeafTally
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.mechanisms.additive import NOISES
from pandas_dptree.output.crossed_frames import check_rows, crossed_frame
from pandas_dptree.output.pictures.plan_errors import plot_level_errors
from pandas_dptree.output.protection import Aggregate
from pandas_dptree.planning.capacities import crossed_sensitivity_on
from pandas_dptree.planning.crossed_bound import crossed_gap
from pandas_dptree.plans import serialize
from pandas_dptree.plans.crossed_compare import compare_crossed
from pandas_dptree.plans.execute import opened_leaves, prepared
from pandas_dptree.plans.measurement import Levels, Measured, Measurement
from pandas_dptree.plans.running import Release
from pandas_dptree.plans.shown_columns import KEPT
from pandas_dptree.privacy.quantity import COUNT
from pandas_dptree.privacy.sensitivity import TreeSensitivity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CrossedPlan"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CrossedPlan(Measurement):
    """A release of the margins of crossed hierarchies, with additive noise, before it happens.

    Made by `pandas_dptree.plan` for a domain that `pandas_dptree.cross` made, or by ``df.dp.plan`` with a
    mapping as `by`. A plan is a function of the domain and the privacy parameters alone.

    Attributes
    ----------
    loss, neighbors, privacy_unit, max_contributions, caps
        As for `Plan`; the last of `caps` bounds the rows of a unit in a leaf cell.
    tree : ProductTree
        The axes, down to the levels that are needed, and which of their margins the table shows.
    domain : CrossedDomain
        The labels of the axes.
    known : CrossedKnown
        Public counts of one axis, and structural zeros of all.
    noise, quantity, consistency, keep, split, objective
        As for `AdditivePlan`. Sums are linear estimates, whatever their sign.
    level_weights, budget_shares, unit_noise_scales : numpy.ndarray, shape (n_margins,)
        As for `AdditivePlan`, of each margin of `tree`, shown or not.
    count : CrossedPlan or None
        As for `AdditivePlan`.

    Notes
    -----
    `release` takes records, or the exact counts of the leaf cells: whole numbers of shape
    ``tree.leaf_shape``; negative counts are set to 0, and the caller is responsible for `max_contributions`.

    The table has the rows of all margins that are shown, from the coarsest to the finest: a column of the
    level of each axis, such as ``place_level``, the keys (missing above their level), ``count`` and
    ``std_error``, the standard error of the unbiased linear estimate. ``.dp.margin(place="county",
    sex="sex")`` selects a margin. All margins agree: each is a sum of the same cells.

    **Privacy**: the rows, columns and types of the table follow from the plan alone. Records outside the
    domain of any axis are dropped, also where no margin that is shown needs that axis; their number is not
    reported.
    """

    kind: ClassVar[str] = "crossed"
    _takes_caps: ClassVar[bool] = True
    _max_rows: ClassVar[int | None] = 60

    tree: ProductTree  # type: ignore[assignment]
    domain: CrossedDomain  # type: ignore[assignment]
    known: CrossedKnown  # type: ignore[assignment]
    fit: Any = "totals"
    confidence: None = None
    count: CrossedPlan | None = None

    def __post_init__(self) -> None:
        """Check that what is shown can be estimated from what is measured."""
        super().__post_init__()
        if self.confidence is not None or self.fit != "totals" or self.in_forest:
            raise ArgumentError(
                "confidence",
                "and `fit` have no meaning for crossed hierarchies.",
                hint="make the plan with dpt.plan(dpt.cross(...)).",
            )
        if any(cap is not None for cap in self.caps[:-1]):
            raise ArgumentError(
                "caps",
                "bound the rows of a unit in other margins than that of the leaf cells.",
                hint="state max_per_leaf alone.",
            )
        if self.quantity != COUNT and self._estimator.combines_levels and self.consistency != "linear":
            raise ArgumentError(
                "consistency",
                'must be "linear" or "none" for sums over crossed hierarchies.',
                hint="non-negative and whole tables are made of counts alone.",
            )

    def _measure_enough(self, measured: npt.NDArray[np.bool_]) -> bool:
        """Whether every margin of the table is measured by itself; least squares checks what it needs."""
        shown = np.array([self.tree.n_listed(level) > 0 for level in range(len(self.tree.margins))])
        if self._estimator.combines_levels:
            return bool((measured | self.known.levels).any())
        return bool((measured | self.known.levels)[shown].all())

    def _fits_count(self, count: Measurement) -> bool:
        return (
            self.quantity.shift != 0
            and count.quantity == COUNT
            and count.tree == self.tree
            and (count.max_contributions, count.noise) == (self.max_contributions, self.noise)
        )

    # What is measured

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of all margins of `tree`, from the grand total to the leaf cells, such as "county × sex"."""
        return self.domain.level_names

    @property
    def margins(self) -> tuple[dict[str, Hashable], ...]:
        """The margins that the table shows, each as a mapping from axes to levels, without ``"total"``."""
        return tuple(_named(self.domain, self.tree.shown))

    @property
    def hierarchy(self) -> CrossedDomain:  # type: ignore[override]
        """The domain."""
        return self.domain

    @property
    def domain_source(self) -> Source:
        """Where the public keys came from: of the axis whose keys are least certain to be public."""
        return self.domain.source

    @property
    def _key_columns(self) -> tuple[Hashable, ...]:
        return (*map(level_column, self.domain.axes), *self.domain.by)

    @property
    def _columns_used(self) -> tuple[Hashable, ...]:
        column = self.quantity.column
        return (*self.domain.by, *self.domain.sources, *([] if column is None else [column]))

    def _moves(self, known: Sequence[npt.NDArray[np.bool_]]) -> TreeSensitivity:
        return crossed_sensitivity_on(
            self.tree,
            self.quantity,
            neighbors=self.neighbors,
            max_contributions=self.max_contributions,
            max_per_leaf=self.max_per_leaf,
            known=known,
        )

    @property
    def _covers_known_leaves(self) -> bool:
        return False

    def _exact(self, leaves: IntArray) -> Sequence[IntArray]:
        measured = [
            margin
            for margin, scale in zip(self.tree.margins, self.unit_noise_scales, strict=True)
            if np.isfinite(scale)
        ]
        tables = self.tree.sum_margins(leaves.reshape(self.tree.leaf_shape), measured)
        nothing = np.zeros(0, dtype=np.int64)
        return [tables[margin].reshape(-1) if margin in tables else nothing for margin in self.tree.margins]

    @cached_property
    def _noise_variances(self) -> FloatArray:
        """The variance of what is measured of each margin, inf where nothing is."""
        return np.maximum(self.noise.variance(self._level_scales), LEAST_VARIANCE)

    @cached_property
    def _squares(self) -> CrossedSquares:
        """Least squares of what is measured."""
        return crossed_squares(self.tree, self._noise_variances, self.known)

    @property
    def _variances(self) -> Any:
        """Least squares, if margins are combined."""
        return self._squares if self._estimator.combines_levels else None

    @cached_property
    def _error_variances(self) -> Sequence[FloatArray]:
        own = self._squares.variances if self._estimator.combines_levels else self._measured_variances
        return own if self.count is None else self._beside_count(own, self.count._error_variances, 2)

    @cached_property
    def _mean_variances(self) -> Sequence[FloatArray]:
        """The mean variance over the cells of each margin that the table shows, in squared units."""
        shown = [margin in self.tree.shown for margin in self.tree.margins]
        own = [
            np.array([self._squares.mean_variance(margin) if here else math.nan])
            for margin, here in zip(self.tree.margins, shown, strict=True)
        ]
        return own if self.count is None else self._beside_count(own, self.count._mean_variances, 2)

    @cached_property
    def std_errors(self) -> FloatArray:
        """Expected standard error of each margin, in the column's unit: root mean square over its cells."""
        if not self._estimator.combines_levels:
            return super().std_errors
        return self._in_column_units(np.sqrt(np.concatenate(self._mean_variances)))

    def _least_squares(self, noisy: Measurements, excess: Measurements | None = None) -> Levels:
        return _filled(self._squares.estimate(noisy))

    def _estimates(
        self,
        given: tuple[Measurements, Any],
        excess: Measurements | None,
        random_words: Callable[[int], npt.NDArray[np.uint64]],
    ) -> Levels:
        noisy, _ = given
        if not self._estimator.combines_levels:
            return _filled(noisy)
        leaves = fit_crossed(
            self.tree,
            self._squares.estimate(noisy),
            self._noise_variances,
            random_words if self._estimator.whole else None,
            known=self.known,
        )
        shown = (self.tree.margins[0], *self.tree.shown)
        tables = self.tree.sum_margins(leaves.reshape(self.tree.leaf_shape), shown)
        return _filled([tables.get(margin) for margin in self.tree.margins])

    @cached_property
    def _gap_and_reason(self) -> tuple[float | None, str]:
        if self.count is not None:
            return None, "Gap: unknown, as the errors of the sums have those of a count in them."
        return crossed_gap(self)

    # Description

    @property
    def _measured(self) -> str:
        return "counts" if self.quantity == COUNT else f"sums of {self.quantity.column}"

    @property
    def subject(self) -> str:
        """What is released, and by which keys of each axis."""
        axes = (", ".join(map(str, axis.by)) for axis in self.domain.axes.values())
        return f"{self._measured} by {' × '.join(axes)}"

    @property
    def _release_in_words(self) -> str:
        """The release in one sentence: margins, noise, privacy loss, privacy unit, split and consistency."""
        column = self.quantity.column
        summed = "" if column is None else f", sums of {column!r}"
        n_margins = len(self.tree.shown)
        return (
            f"Plan for {n_margins} margin{'s' * (n_margins > 1)} of {' × '.join(self.domain.axes)}{summed}: "
            f"{self.noise.name} noise, {self.protection}; "
            f"{self.split} split for {self.objective!r}, consistency {self.consistency!r}"
            f"{source_in_words(self.domain)}"
        )

    @property
    def _aggregates(self) -> list[Aggregate]:
        if self.quantity == COUNT:
            return ["count"]
        return ["sum" if self.shown_quantity.non_negative else "signed sum"]

    @property
    def _remark(self) -> str:
        """How close the plan is to the best possible one, if known."""
        return self.gap_reason

    @property
    def mechanism_name(self) -> str:
        """The name of the noise in ``attrs`` and JSON."""
        return self.noise.name

    def _provenance_details(self) -> dict[str, Any]:
        measured = zip(self.level_names, self.noise_scales.tolist(), strict=True)
        shown = (self.level_names[self.tree.level_of(margin)] for margin in self.tree.shown)
        return {
            "axes": {name: list(map(str, axis.by)) for name, axis in self.domain.axes.items()},
            "margins": list(map(str, shown)),
            "consistency": self.consistency,
            **self._quantity_in_words,
            "known": self._n_known,
            "noise_scale": {str(name): scale for name, scale in measured if np.isfinite(scale)},
        }

    @property
    def _n_known(self) -> dict[str, int]:
        """Of each level of an axis that has any, the number of nodes whose counts are known."""
        return {
            str(name): int(np.count_nonzero(exact))
            for axis, known in zip(self.domain.axes.values(), self.known.axes, strict=True)
            for name, exact in zip(("total", *axis.by), known.exact, strict=False)
            if exact.any()
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per margin that is measured or shown.

        The columns are the level of each axis (``place_level``, …), ``cells`` (those in the table),
        ``share`` of the budget, ``noise_scale`` and ``std_error`` (missing for margins that are not shown).
        """
        rows = [
            level
            for level, share in enumerate(self.budget_shares)
            if share > 0 or self.tree.margins[level] in self.tree.shown
        ]
        chosen = [self.tree.margins[level] for level in rows]
        levels = {
            level_column(name): [("total", *axis.by)[margin[place]] for margin in chosen]
            for place, (name, axis) in enumerate(self.domain.axes.items())
        }
        return pd.DataFrame(
            {
                **levels,
                "cells": np.array(self._n_listed)[rows],
                "share": self.budget_shares[rows],
                "noise_scale": self.noise_scales[rows],
                "std_error": self.std_errors[rows],
            }
        )

    def compare(self) -> pd.DataFrame:
        """Compare the mechanisms and splits that could spend the same loss.

        Returns
        -------
        pandas.DataFrame
            One row per plan, indexed by ``mechanism`` and ``split``: first this plan, then the others from
            the best to the worst. Two rows say what the same loss gives without crossing, by the noise of
            this plan: ``"nested"`` is one hierarchy in which the axes are nested in their order, of whose
            cells other margins are sums, and ``"separate"`` a table for each margin. Whoever needs the path
            of one hierarchy alone should nest. Columns: the expected standard error of each margin that the
            table shows; ``objective``, the root of the expected squared error that the objective measures;
            ``gap``.
        """
        return compare_crossed(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the expected standard error of each margin that the table shows.

        It is drawn on `ax`, by default on the axes of a new figure, which are returned; without matplotlib,
        MissingExtraError is raised.
        """
        rows = list(map(self.tree.level_of, self.tree.shown))
        names = [str(self.level_names[level]) for level in rows]
        unit = "counts" if self.quantity == COUNT else str(self.quantity.column)
        return plot_level_errors(names, {"this plan": self.std_errors[rows]}, ax, unit=unit)

    # Release

    def _prepared(self, data: Any) -> Release:
        check_rows(self.domain)
        return prepared(self, data)

    def _opened(self, data: Any, bounding: Bounding) -> tuple[Records, LeafTally]:
        return opened_leaves(self, [self.quantity], data, bounding)

    def _total(self, values: Measured) -> tuple[npt.NDArray[Any], FloatArray]:
        if self._estimator.combines_levels:
            return super()._total(values)
        level = self.tree.level_of(self.tree.shown[0])  # by itself, as it was measured
        variance = np.broadcast_to(self._error_variances[level], values.shown[level].shape).sum()
        total, error = values.shown[level].sum(keepdims=True), np.sqrt([variance])
        return self._in_column_units(total), self._in_column_units(error)

    def _laid_out(self, columns: Mapping[Hashable, Levels], attrs: Mapping[str, Any]) -> pd.DataFrame:
        return crossed_frame(self.domain, columns, attrs)

    def _kept(self, levels: Levels) -> Levels:
        """Return the linear estimates in the rows of each margin that the table shows."""
        shown = map(self.tree.level_of, self.tree.shown)
        return [
            np.broadcast_to(levels[level], self.tree.level_sizes[level])[self.tree.listed(level)]
            for level in shown
        ]

    # JSON

    def _fields(self) -> dict[str, Any]:
        return {
            "axes": {
                name: [serialize.name("by", key) for key in axis.by]
                for name, axis in self.domain.axes.items()
            },
            "margins": None if self.domain.wanted is None else [*map(list, self.tree.shown)],
            "consistency": self.consistency,
            **{f"keep_{name}": name in self.keep for name in KEPT},
            "quantity": serialize.quantity_to_json(self.quantity),
            **self._split_to_json(),
        }

    @classmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: CrossedDomain, **common: Any) -> Self:
        plan = cls._from_part(data, hierarchy, mechanism=data["mechanism"], **common)
        if plan.quantity.shift:  # only means are measured from the middle of the bounds
            raise ValueError("the values of a sum are shifted")
        return plan

    @classmethod
    def _from_part(
        cls, data: Mapping[str, Any], hierarchy: CrossedDomain, *, mechanism: str, **common: Any
    ) -> Self:
        """Read what `_to_part` serialized."""
        domain = hierarchy.with_margins(
            None if data["margins"] is None else _named(hierarchy, data["margins"])
        )
        return cls(
            tree=domain.tree,
            domain=domain,
            noise=NOISES[mechanism],
            quantity=serialize.quantity_from_json(data["quantity"]),
            known=CrossedKnown.from_dict(domain.tree, data["known"]),
            **cls._split_from_json(data),
            consistency=data["consistency"],
            keep=tuple(each for each in KEPT if data[f"keep_{each}"]),
            **common,
        )


def _named(domain: CrossedDomain, margins: Sequence[Sequence[int]]) -> list[dict[str, Hashable]]:
    """Return margins as mappings from axes to levels, without those of a level of its own."""
    return [
        {
            name: axis.by[level - 1]
            for (name, axis), level in zip(domain.axes.items(), margin, strict=True)
            if level
        }
        for margin in margins
    ]


def _filled(tables: Sequence[npt.NDArray[Any] | None]) -> Levels:
    """Return flat values of each margin, one 0 for those that no table shows."""
    return [np.zeros(1) if table is None else table.reshape(-1) for table in tables]
