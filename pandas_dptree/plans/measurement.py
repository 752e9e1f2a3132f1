"""The measurement of a quantity on a tree with additive noise, and the accuracy of the estimates."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, is_name, naming, quote
from pandas_dptree.estimation.estimators import Consistency, Estimator, Fit, estimator_for
from pandas_dptree.estimation.intervals import error_half_widths, error_steps, estimate_cumulants, half_widths
from pandas_dptree.estimation.least_squares import (
    LEAST_VARIANCE,
    FloatArray,
    Measurements,
    Variances,
    least_squares,
    propagate,
)
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.output.frames import release_frame
from pandas_dptree.planning.capacities import sensitivity_on
from pandas_dptree.planning.gaussian_bound import gap_of
from pandas_dptree.planning.objective import Objective, cost_weights, expected_cost
from pandas_dptree.planning.split import SPLITS, Split, shares_match
from pandas_dptree.plans import serialize
from pandas_dptree.plans.losses import LevelItem
from pandas_dptree.plans.shown_columns import Kept, check_confidence, check_kept
from pandas_dptree.plans.tree_plan import TreePlan
from pandas_dptree.privacy.level_losses import LevelLoss
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.sensitivity import TreeSensitivity

__all__ = ["FROM_SHARES", "Levels", "Measured", "Measurement"]

Levels = Sequence[npt.NDArray[Any]]

FROM_SHARES = np.empty(0)
"""As `unit_noise_scales` of a plan: the noise scales with which its shares spend the whole loss."""

_SHARES_SUM = 1e-6
"""How far the sum of the shares may be from 1, since shares that a caller gives are rounded."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Measurement(TreePlan):
    """A quantity measured on each node of a tree with additive noise: the base of `AdditivePlan`."""

    noise: AdditiveNoise
    quantity: Quantity
    known: Known
    consistency: Consistency
    fit: Fit
    confidence: float | None
    keep: tuple[Kept, ...]
    split: Split | Literal["given"]
    objective: Objective
    level_weights: FloatArray
    budget_shares: FloatArray
    unit_noise_scales: FloatArray = field(default_factory=lambda: FROM_SHARES)
    in_forest: bool = False
    count: Measurement | None = None

    def __post_init__(self) -> None:
        """Check the shares and the noise scales; compute noise scales from the shares if none are given."""
        super().__post_init__()
        column = self.quantity.column
        if not is_name(column) or (column is None and self.quantity != COUNT):
            raise ArgumentError(
                "column",
                f"must name the column to add up, not {quote(column)}.",
                hint=naming("column", "income", column),
            )
        if column is not None and any(least.any() for least in self.known.least):
            raise ArgumentError(
                "known", "holds counts, not sums.", hint="for sums, only structural zeros can be known."
            )
        if self.count is not None and not self._fits_count(self.count):
            raise ArgumentError(
                "count",
                "must be a plan that counts the same records, for sums of differences from a middle.",
                hint="make the plan with plan_agg or plan_sums.",
            )
        cost_weights(self._n_listed, self.objective, self.level_weights)  # raises if they are invalid
        check_confidence(self.confidence)
        object.__setattr__(self, "keep", check_kept(self.keep))
        shares = self.budget_shares
        fits = shares.shape == (len(self._parts),) and np.isfinite(shares).all() and (shares >= 0).all()
        if not fits or not self._measure_enough(shares[: self._shape.depth + 1] > 0):
            raise ArgumentError(
                "split",
                "must give every level a share of at least 0, and that of the leaves more than 0.",
                hint='with consistency="none", every released level needs more than 0, unless it is known.',
            )
        if self.unit_noise_scales is FROM_SHARES:
            object.__setattr__(self, "unit_noise_scales", self._scales_of_shares())
        elif not self._keeps_to_loss():
            raise ArgumentError(
                "unit_noise_scales",
                "do not follow from the shares, or spend more than the privacy loss.",
                hint="leave them out, so that they are computed from the shares.",
            )
        for name in ("budget_shares", "unit_noise_scales", "level_weights"):
            object.__setattr__(self, name, _read_only(getattr(self, name)))

    def _measure_enough(self, measured: npt.NDArray[np.bool_]) -> bool:
        """Whether all estimates can be made if these levels are measured."""
        must_measure = slice(self._shape.depth if self._estimator.combines_levels else 0, None)
        return bool((self.known.levels | measured)[must_measure].all())

    def _fits_count(self, count: Measurement) -> bool:
        """Whether a middle for each record that another plan counts makes sums of these differences."""
        return (
            self.quantity.shift != 0
            and count.quantity == COUNT
            and count.tree is self.tree
            and (count.max_contributions, count.consistency, count.noise, count.in_forest)
            == (self.max_contributions, self.consistency, self.noise, self.in_forest)
        )

    def _scales_of_shares(self) -> FloatArray:
        """Compute the noise scales with which the shares spend the whole loss."""
        if not self.budget_shares.any():  # all counts are known
            return np.full(len(self.budget_shares), np.inf)
        return self.noise.noise_scales(self.loss, self.sensitivity, self.budget_shares)

    def _keeps_to_loss(self) -> bool:
        """Check that given noise scales follow from the shares, and spend at most the loss."""
        total = 1.0 if self._spends else 0.0
        return (
            shares_match(self.noise, self.loss, self.sensitivity, self.budget_shares, self.unit_noise_scales)
            and math.isclose(self.budget_shares.sum(), total, abs_tol=_SHARES_SUM)
            and self.noise.keeps_to(self.loss, self.sensitivity, self.unit_noise_scales)
        )

    @property
    def _parts(self) -> Sequence[Hashable]:
        """Names of what has a noise scale of its own: the levels, and what is measured beside their nodes."""
        return self.level_names

    @property
    def _level_scales(self) -> FloatArray:
        """Noise scale of each level, in units."""
        return self.unit_noise_scales[: self._shape.depth + 1]

    def _loss_items(self) -> list[LevelItem]:
        return [
            LevelItem(name, self.noise.level_loss(scale, moves))
            for name, scale, moves in zip(
                self._parts, self.unit_noise_scales.tolist(), self.sensitivity.levels, strict=True
            )
        ]

    def _loss_together(self) -> LevelLoss:
        return self.noise.loss_together(self.unit_noise_scales, self.sensitivity)

    def _certified_delta(self, epsilon: float) -> float:
        return self.noise.delta(epsilon, self.unit_noise_scales, self.sensitivity)

    @property
    def _columns_used(self) -> tuple[Hashable, ...]:
        column = self.quantity.column
        return (*self.level_names[1:], *([] if column is None else [column]))

    @cached_property
    def _estimator(self) -> Estimator:
        """How noisy values become those of the table."""
        return estimator_for(self.consistency, self.fit, signed=not self.shown_quantity.non_negative)

    @property
    def shown_quantity(self) -> Quantity:
        """What the table adds up, which is measured from the middle of its bounds if there is a `count`."""
        return self.quantity if self.count is None else self.quantity.from_zero()

    @property
    def statistic(self) -> Literal["count", "sum", "units"]:
        """What is measured of the records of a node: their number, a sum, or the number of their units."""
        return "count" if self.quantity == COUNT else "sum"

    @property
    def _quantity_in_words(self) -> dict[str, Any]:
        """Describe the column that is added up, for the provenance; empty for counts."""
        quantity = self.quantity
        if quantity == COUNT:
            return {}
        low, high = ((bound + quantity.shift) * quantity.unit for bound in (quantity.low, quantity.high))
        return {
            "column": str(quantity.column),
            "bounds": [float(low), float(high)],
            "granularity": float(quantity.unit),
        }

    @property
    def _spends(self) -> bool:
        """Whether anything is measured; a plan in which all counts are public spends nothing."""
        return bool(np.isfinite(self.unit_noise_scales).any())

    @property
    def _n_listed(self) -> list[int]:
        """The number of nodes of each level in the table."""
        return [self._shape.n_listed(level) for level in range(self._shape.depth + 1)]

    @cached_property
    def sensitivity(self) -> TreeSensitivity:
        """How far one privacy unit can move the values of all levels, in units of the quantity."""
        return self._moves(self.known.exact)

    def _moves(self, known: Sequence[npt.NDArray[np.bool_]]) -> TreeSensitivity:
        """Return how far one privacy unit can move the values of all levels, known nodes left out."""
        return sensitivity_on(
            self.tree,
            self.quantity,
            neighbors=self.neighbors,
            max_contributions=self.max_contributions,
            caps=self.caps,
            known=known,
            in_forest=self.in_forest,
        )

    @cached_property
    def _covers_known_leaves(self) -> bool:
        """Whether measurements of known leaves are within the loss: no unit moves more with them."""
        *above, leaves = self.known.exact
        return not leaves.any() or self._moves((*above, np.zeros_like(leaves))) == self.sensitivity

    def _exact(self, leaves: IntArray) -> Sequence[IntArray]:
        """Return the exact values that get noise, from those of the leaves: secret."""
        return self._shape.roll_up(leaves)

    def _estimates(
        self,
        given: tuple[Measurements, Variances],
        excess: Measurements | None,
        random_words: Callable[[int], npt.NDArray[np.uint64]],
    ) -> Levels:
        """Return the estimates of the table, from measurements of the nodes and of what is beside them."""
        return self._estimator.estimate(self.tree, *given, random_words, least=self.known.least)

    def _least_squares(self, noisy: Measurements, excess: Measurements | None = None) -> Levels:
        """Return the linear estimates of all levels."""
        return least_squares(self.tree, noisy, self._variances, excess)

    def _total(self, values: Measured) -> tuple[npt.NDArray[Any], FloatArray]:
        """Return the number of all records, or their sum, in the column's unit, and its standard error."""
        return self._in_column_units(values.shown[0]), self.node_std_errors[0]

    def _laid_out(self, columns: Mapping[Hashable, Levels], attrs: Mapping[str, Any]) -> pd.DataFrame:
        """Return the released table with these columns: see `release_frame`."""
        return release_frame(self._labelled, columns, attrs)

    def _kept(self, levels: Levels) -> Levels:
        """Return what a ledger keeps of linear estimates beside the table."""
        return levels

    @property
    def _unmeasured(self) -> list[str]:
        """Names of the levels whose estimates come from the levels below alone."""
        levels = zip(self.level_names, self._level_scales, self.known.levels, strict=True)
        return [str(name) for name, scale, known in levels if math.isinf(scale) and not known]

    @property
    def noise_scales(self) -> FloatArray:
        """Noise scale of each level, in the column's unit; inf if it is not measured."""
        return self._in_column_units(self._level_scales)

    @cached_property
    def _measured_variances(self) -> list[FloatArray]:
        """Variance of each node before estimation, in squared units: 0 for known counts."""
        variances = self.noise.variance(self._level_scales)[:, None]
        return [
            np.where(exact, 0.0, variance) if exact.any() else variance
            for exact, variance in zip(self.known.exact, variances, strict=True)
        ]

    @cached_property
    def _variances(self) -> Variances:
        """The variances of the measurements, propagated through the two passes of least squares."""
        noise = [
            np.where(exact, 0.0, np.maximum(variance, LEAST_VARIANCE))
            for exact, variance in zip(self.known.exact, self._measured_variances, strict=True)
        ]
        return propagate(self.tree, noise)

    @cached_property
    def _error_variances(self) -> Sequence[FloatArray]:
        """Variance of the error of every node, in squared units."""
        combined = self._estimator.combines_levels
        own = self._variances.final if combined else self._measured_variances
        return own if self.count is None else self._beside_count(own, self.count._error_variances, 2)

    def _beside_count(self, own: Levels, of_count: Levels, power: int = 1) -> list[npt.NDArray[Any]]:
        """Add what belongs to the `count` to what belongs to the differences, times a power of the middle.

        With the power 1 these are values; the noise of both is independent, so those of order 2 and 4 are
        variances and fourth cumulants.
        """
        factor = self.quantity.shift**power
        return [
            mine + (factor if power == 1 else float(factor)) * its
            for mine, its in zip(own, of_count, strict=True)
        ]

    @cached_property
    def _unit_errors(self) -> list[FloatArray]:
        """Standard error of every node, in units."""
        return list(map(np.sqrt, self._error_variances))

    @cached_property
    def node_std_errors(self) -> list[FloatArray]:
        """Standard errors of each level's nodes, in the column's unit: shape (level_sizes[l],) or (1,)."""
        return list(map(self._in_column_units, self._unit_errors))

    @cached_property
    def _noise_cumulants(self) -> list[FloatArray]:
        """Fourth cumulants of the noise of the measurements, in units: 0 where nothing is measured."""
        return [
            np.where(exact | np.isinf(scale), 0.0, self.noise.fourth_cumulant(scale))
            for exact, scale in zip(self.known.exact, self._level_scales[:, None], strict=True)
        ]

    @cached_property
    def error_cumulants(self) -> list[FloatArray]:
        """Fourth cumulants of the errors in `node_std_errors`, in units to the fourth power."""
        own = self._noise_cumulants
        if self._estimator.combines_levels:
            own = estimate_cumulants(self.tree, self._variances, own)
        return own if self.count is None else self._beside_count(own, self.count.error_cumulants, 4)

    @cached_property
    def _error_steps(self) -> list[FloatArray]:
        """The steps in which the errors of every node come, at most, in units."""
        noisy = [np.where(np.isfinite(v) & (v > 0), 1.0, 0.0) for v in self._variances.noise]
        own = error_steps(self.tree, self._variances) if self._estimator.combines_levels else noisy
        if self.count is None:
            return own
        of_count = (abs(self.quantity.shift) * steps for steps in self.count._error_steps)
        return [np.maximum(*steps) for steps in zip(own, of_count, strict=True)]

    @cached_property
    def _node_half_widths(self) -> list[FloatArray]:
        """Half the widths of each level's intervals, in units, before clipping to the possible range."""
        assert self.confidence is not None
        return self._half_widths_at(self.confidence)

    def _half_widths_at(self, confidence: float) -> list[FloatArray]:
        if self.count is not None:
            moments = zip(self._error_variances, self.error_cumulants, self._error_steps, strict=True)
            return [error_half_widths(*each, confidence) for each in moments]
        if self._estimator.combines_levels:
            return half_widths(self.tree, self._variances, self._noise_cumulants, confidence)
        return [
            np.where(exact, 0.0, self.noise.half_width(np.where(exact, 1.0, scale), confidence))
            for exact, scale in zip(self.known.exact, self._level_scales[:, None], strict=True)
        ]

    def largest_half_widths(self, confidence: float) -> FloatArray:
        """Return half the width of each level's widest interval, in the column's unit: shape (n_levels,).

        nan for a level without rows. Intervals that are cut to what is possible are narrower.
        """
        widths = enumerate(self._half_widths_at(confidence))
        return self._in_column_units(np.array([self._shape.max_listed(*each) for each in widths]))

    @cached_property
    def _possible_range(self) -> tuple[Sequence[npt.NDArray[Any]], Sequence[npt.NDArray[Any]]]:
        """The least and the most that each node can hold according to public knowledge, in units."""
        if self.shown_quantity.non_negative:
            return self.known.least, self.known.most(self.tree)
        least = [np.where(exact, 0.0, -np.inf) for exact in self.known.exact]
        return least, [-low for low in least]

    def _in_column_units(self, units: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert units to the unit of the column that is added up; counts are unchanged."""
        return units if self.quantity == COUNT else self.quantity.from_units(units)

    @cached_property
    def std_errors(self) -> FloatArray:
        """Expected standard error of each level, in the column's unit: root mean square over its nodes."""
        errors = self.node_std_errors
        return np.sqrt([self._shape.mean_listed(level, error**2) for level, error in enumerate(errors)])

    @property
    def expected_error(self) -> float:
        """Root of the expected squared error that the objective measures, in the unit of `std_errors`."""
        weights = cost_weights(self._n_listed, self.objective, self.level_weights)
        return math.sqrt(expected_cost(self.std_errors**2, weights, self.objective))

    @property
    def gap(self) -> float | None:
        """Expected squared error divided by the least possible with additive Gaussian noise.

        1 for a plan that cannot be improved; None if no tight bound is known (`gap_reason` says why).
        """
        return self._gap_and_reason[0]

    @property
    def gap_reason(self) -> str:
        """The optimum that the gap refers to, or why there is no gap."""
        return self._gap_and_reason[1]

    @cached_property
    def _gap_and_reason(self) -> tuple[float | None, str]:
        if self.count is not None:
            return None, "Gap: unknown, as the errors of the sums have those of a count in them."
        return gap_of(self)

    # JSON

    def _to_part(self) -> dict[str, Any]:
        """Serialize what distinguishes this plan from those of other quantities under the same loss."""
        return {"loss": self.loss.to_dict(), "max_contributions": self.max_contributions, **self._fields()}

    def _split_to_json(self) -> dict[str, Any]:
        """Serialize what is known, and how the budget is split."""
        return {
            "known": self.known.to_dict(),
            "split": self.split,
            "objective": self.objective,
            "level_weights": self.level_weights.tolist(),
            "shares": serialize.plain(self.budget_shares),
            "noise_scales": serialize.plain(self.unit_noise_scales),
        }

    @staticmethod
    def _split_from_json(data: Mapping[str, Any]) -> dict[str, Any]:
        """Restore what `_split_to_json` serialized, but for what is known."""
        return {
            "split": serialize.choice(data["split"], (*SPLITS, "given")),
            "objective": data["objective"],
            "level_weights": np.array(data["level_weights"], dtype=np.float64),
            "budget_shares": serialize.restored(data["shares"]),
            "unit_noise_scales": serialize.restored(data["noise_scales"]),
        }


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements and estimates of one quantity, in its units: one array per level.

    `noisy` has known values in place of measurements, and None for levels that were not measured. `shown` are
    the estimates in the table. `leaves` has the measurements of all leaves, those of known ones too; None if
    these are not within the loss. `count` is what was measured by the plan's `count`, and `excess` what was
    measured beside the nodes, of each level above the leaves, if anything was.
    """

    noisy: Sequence[IntArray | None]
    shown: Levels
    leaves: IntArray | None
    count: Measured | None = None
    excess: Sequence[IntArray | None] | None = None


def _read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy an array and make it read-only, so that a checked plan cannot change."""
    copy = np.array(values)
    copy.setflags(write=False)
    return copy
