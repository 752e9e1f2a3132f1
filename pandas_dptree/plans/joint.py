"""Several quantities of the same records under one privacy loss: sums of several columns, and means."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.estimation.ratios import ratio_intervals
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.known import Known
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.mechanisms.sampling import SMALLEST_SCALE
from pandas_dptree.output.emptiness import totals_of, warn_if_empty
from pandas_dptree.output.frames import check_names, prefix_of, release_frame
from pandas_dptree.output.progress import progress_bar
from pandas_dptree.plans.additive import Plan
from pandas_dptree.plans.execute import (
    Levels,
    Measured,
    account,
    causes_of,
    columns_of,
    measured,
    measurement_columns,
    release_steps,
    unbiased,
)
from pandas_dptree.plans.search import find_plan, noises_for
from pandas_dptree.privacy.composition import joint_gaussian_delta, largest_budget
from pandas_dptree.privacy.loss import PrivacyLoss, warn_if_useless, zcdp_rho
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity
from pandas_dptree.privacy.unit import protected

__all__ = ["CombinedPlan", "joint_account", "plan_apart", "plan_means", "plan_sums"]

FloatArray = npt.NDArray[np.float64]

_FEWEST = 4.0
"""A mean is shown where the count is at least so many of its standard errors, and at least one record.

In a sparse table chance makes small counts look larger than they are: means at 3 to 4 standard errors were
off by up to 1.4 times what the table tells, those at 4 to 5 by up to 1.1, and from 5 on by what it tells.
"""

_OWN = ("column", "bounds", "granularity", "known", "noise_scale", "epsilon", "delta", "rho")
"""What plans for several quantities do not share."""


@dataclass(frozen=True, kw_only=True)
class CombinedPlan:
    """Plans for several quantities of the same records, which keep to one privacy loss together.

    Attributes
    ----------
    loss : PrivacyLoss
        That of the whole release.
    plans : tuple of Plan
        One for each quantity. They agree on all but the quantity and its part of the loss.
    means : bool
        Whether the table shows, instead of the sums, their quotients by the count, which is the last plan's.
    """

    loss: PrivacyLoss
    plans: tuple[Plan, ...]
    means: bool = False

    def release(
        self, frame: Any, *, rng: np.random.Generator | None = None, progress: bool = False
    ) -> pd.DataFrame:
        """Spend the budget: measure the records, and return the table."""
        with progress_bar(progress, release_steps(self.plans)) as done:
            values = measured(self.plans, frame, rng=rng, done=done)
            columns: dict[Hashable, Levels] = {}
            for plan, each in zip(self.plans, values, strict=True):
                if self.means and plan.quantity != COUNT:
                    columns |= _mean_columns(plan, each, self.plans[-1], values[-1])
                else:
                    columns |= columns_of(plan, each)
            table = release_frame(self.plans[0].labelled, columns, self._account(rng))
        shown = self.plans[-1:] if self.means else self.plans  # a mean tells nothing of how many there are
        totals = totals_of(table[:1], {plan.quantity.name: plan.quantity for plan in shown})
        warn_if_empty(table, totals, causes_of(self.plans))
        return table

    def _account(self, rng: np.random.Generator | None) -> dict[str, Any]:
        return joint_account(self.loss, {plan.quantity.name: plan for plan in self.plans}, rng)


def joint_account(
    loss: PrivacyLoss, plans: Mapping[Hashable, Plan], rng: np.random.Generator | None
) -> dict[str, Any]:
    """Tell how a release was made: what all plans agree on, the whole loss, and what is each one's."""
    told = [account(plan, rng) for plan in plans.values()]
    unlike = [key for key in told[0] if key not in _OWN and any(each[key] != told[0][key] for each in told)]
    own = [{key: each.pop(key) for key in (*_OWN, *unlike) if key in each} for each in told]
    for plan, each in zip(plans.values(), own, strict=True):
        if not plan.shares.any():  # all is known
            each |= dict.fromkeys(plan.loss.to_dict(), 0.0)
    return {**told[0], **loss.to_dict(), "quantities": dict(zip(map(str, plans), own, strict=True))}


def plan_sums(
    domain: Domain, quantities: Sequence[Quantity], *, max_contributions: int | None, **options: Any
) -> CombinedPlan:
    """Plan the sums of several columns, whose errors are measured by the most that a row can add."""
    return plan_apart(domain, quantities, [max_contributions] * len(quantities), **options)


def plan_apart(
    domain: Domain, quantities: Sequence[Quantity], max_contributions: Sequence[int | None], **options: Any
) -> CombinedPlan:
    """Plan quantities likewise of which a unit has different records, up to so many in each."""
    scales = [float(max(abs(each.low), abs(each.high)) * each.unit) for each in quantities]
    return _plan_together(domain, quantities, scales, max_contributions, **options)


def plan_means(
    domain: Domain, quantities: Sequence[Quantity], *, max_contributions: int | None, **options: Any
) -> CombinedPlan:
    r"""Plan the means of columns: how much the values differ from the middle of their bounds, and counts.

    With :math:`N` records, :math:`S` their summed differences and :math:`t = S / N`, noise moves
    :math:`S / N` by about :math:`(dS - t\,dN) / N`, of variance
    :math:`(\mathrm{Var}\,S + t^2\,\mathrm{Var}\,N) / N^2`. The budget is divided such that this is least on
    the average over all t between the bounds, each of the columns measured by half the width h of its
    bounds: :math:`t^2` is then :math:`h^2 / 3`.
    """
    centred = [each.centred() for each in quantities]
    scales = [float((each.high - each.low) * each.unit) / 2 for each in centred]
    plans = _plan_together(
        domain, [*centred, COUNT], [*scales, np.sqrt(3 / len(scales))],
        [max_contributions] * (len(centred) + 1), **options,
    )  # fmt: skip
    return replace(plans, means=True)


def _plan_together(
    domain: Domain,
    quantities: Sequence[Quantity],
    scales: Sequence[float],
    max_contributions: Sequence[int | None],
    *,
    epsilon: float | None,
    delta: float,
    rho: float | None,
    neighbors: Neighbors,
    privacy_unit: Hashable | None = None,
    mechanism: Any,
    known: Any = None,
    **options: Any,
) -> CombinedPlan:
    r"""Divide a privacy loss such that the squared errors, each in its own scale, have the least sum.

    An error whose variance falls like :math:`s^{-k}` with the share s of the loss, from
    :math:`\Delta^2` in its scale, has the least sum with the others for :math:`s \propto \Delta^{2/(1+k)}`.
    """
    check_names(domain.by, [each.column for each in quantities if each != COUNT], argument="columns")
    public = Known.read(domain, known)
    unknown = [each for each in quantities if each != COUNT or not public.exact[-1].all()]
    bounded = [protected(privacy_unit, most, taken=domain.by) for most in max_contributions]
    sensitivities = [
        each.sensitivity(neighbors=neighbors, max_contributions=most)
        for each, (_, most) in zip(unknown, bounded, strict=False)
    ]
    loss = PrivacyLoss(epsilon=epsilon, delta=delta, rho=rho)
    found = []
    for noise in noises_for(mechanism, loss, options["split"]):
        divisible = loss
        if loss.kind == "approximate" and noise.euclidean:
            divisible = PrivacyLoss(rho=float(noise.budget(loss)))
        shares = _shares(noise, divisible, unknown, sensitivities, scales)
        plans = [
            find_plan(
                domain, quantity=each, mechanism=noise, neighbors=neighbors, privacy_unit=unit,
                max_contributions=most, known=public if each == COUNT else None,
                **{**options, **part.to_dict()},
            )
            for each, (unit, most), part in zip(unknown, bounded, divisible.divide(shares), strict=False)
        ]  # fmt: skip
        plans = _tightened(plans, loss, shares)
        if len(unknown) < len(quantities):  # all counts are public, and spend nothing
            nothing = tuple(np.zeros(1) for _ in public.exact)
            plans.append(replace(plans[0], quantity=COUNT, known=public, node_shares=nothing))
        found.append(plans)

    def cost(plans: list[Plan]) -> float:
        return sum((plan.expected_error / scale) ** 2 for plan, scale in zip(plans, scales, strict=True))

    best: list[Plan] = min(found, key=cost)
    warn_if_useless(loss)
    return CombinedPlan(loss=loss, plans=tuple(best))


def _shares(
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    quantities: Sequence[Quantity],
    sensitivities: Sequence[Sensitivity],
    scales: Sequence[float],
) -> list[float]:
    """Divide the loss by how much noise each quantity needs, in its scale."""
    power = noise.variance_power(loss)
    moves = [each.l1 if power == 2 else np.sqrt(each.l2_squared) for each in sensitivities]
    return [
        float((move * float(each.unit) / scale) ** (2 / (1 + power)))
        for move, each, scale in zip(moves, quantities, scales, strict=False)
    ]


def _tightened(plans: list[Plan], loss: PrivacyLoss, shares: Sequence[float]) -> list[Plan]:
    """Spend what an (epsilon, delta) allows beyond the rho that implies it, as far as that is proven."""
    if loss.epsilon is None or plans[0].loss.kind != "zcdp" or plans[0].split == "nodes":
        return plans
    epsilon = loss.epsilon

    def with_rho(rho: float) -> list[Plan]:
        parts = PrivacyLoss(rho=rho).divide(shares)
        return [replace(plan, loss=part) for plan, part in zip(plans, parts, strict=True)]

    def delta_at(rho: float) -> float:
        scaled = [(np.concatenate(plan.node_noise_scales), plan.sensitivity) for plan in with_rho(rho)]
        # At the smallest of scales, more budget changes nothing.
        at_the_end = min(scales.min() for scales, _ in scaled) <= SMALLEST_SCALE
        return 1.0 if at_the_end else joint_gaussian_delta(epsilon, scaled)

    least = zcdp_rho(epsilon, loss.delta)
    return with_rho(largest_budget(delta_at, loss.delta, at_least=least))


def _mean_columns(plan: Plan, sums: Measured, count_plan: Plan, counts: Measured) -> dict[Hashable, Levels]:
    """Divide sums by counts, with the errors of the quotients to first order: see `tree_means`."""
    unit = float(plan.quantity.unit)
    means, errors = [], []
    for total, count, error, count_error in zip(
        sums.shown, counts.shown, plan.node_std_errors, count_plan.node_std_errors, strict=True
    ):
        records = np.where(count >= np.maximum(1.0, _FEWEST * count_error), count, np.nan)
        mean = np.clip(total / records, plan.quantity.low, plan.quantity.high)
        means.append(_from_middle(plan, mean))
        errors.append(np.hypot(error, unit * mean * count_error) / records)
    prefix = prefix_of(plan.quantity.column)
    columns: dict[Hashable, Levels] = {plan.quantity.name: means, f"{prefix}std_error": errors}
    if plan.confidence is not None:
        ends = [
            [_from_middle(plan, end) for end in level]
            for level in _mean_intervals(plan, sums, count_plan, counts)
        ]
        # They are laid around the unbiased estimates, and hold what is shown besides.
        columns[f"{prefix}lower"] = [np.fmin(low, mean) for (low, _), mean in zip(ends, means, strict=True)]
        columns[f"{prefix}upper"] = [np.fmax(high, mean) for (_, high), mean in zip(ends, means, strict=True)]
    return columns | (measurement_columns(plan, sums) if plan.keep_measurements else {})


def _from_middle(plan: Plan, units: FloatArray) -> FloatArray:
    """Give the value that is so many units from the middle of the bounds, and within them as floats are."""
    quantity = plan.quantity
    low, high = (float((end + quantity.shift) * quantity.unit) for end in (quantity.low, quantity.high))
    return np.clip(float(quantity.origin) + plan.in_column(units), low, high)


def _mean_intervals(
    plan: Plan, sums: Measured, count_plan: Plan, counts: Measured
) -> list[tuple[FloatArray, FloatArray]]:
    """Give the ends of the intervals around the means of each level, in units of the sums."""
    assert plan.confidence is not None
    unit = float(plan.quantity.unit)
    return [
        ratio_intervals(
            total,
            count,
            variances=((error / unit) ** 2, count_error**2),
            fourth_cumulants=(fourth, count_fourth),
            bounds=(plan.quantity.low, plan.quantity.high),
            confidence=plan.confidence,
        )
        for total, count, error, count_error, fourth, count_fourth in zip(
            unbiased(plan, sums),
            unbiased(count_plan, counts),
            plan.node_std_errors,
            count_plan.node_std_errors,
            plan.error_cumulants,
            count_plan.error_cumulants,
            strict=True,
        )
    ]
