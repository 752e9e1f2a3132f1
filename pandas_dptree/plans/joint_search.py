"""Plans for several quantities under one privacy loss: the division of the loss among them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Unpack, cast

import numpy as np

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.output.frames import check_names
from pandas_dptree.planning.middles import best_middles
from pandas_dptree.plans.crossed_search import crossed_known, find_crossed_plan
from pandas_dptree.plans.doubtful_arguments import known_total, warn_of_arguments
from pandas_dptree.plans.joint import JointPlan, OfRecords, Part, with_count
from pandas_dptree.plans.joint_charge import joint_delta, spent_together
from pandas_dptree.plans.measurement import FROM_SHARES
from pandas_dptree.plans.options import (
    AGGREGATIONS,
    UNITS,
    NoisyOptions,
    stated_loss,
    taken_from,
    with_defaults,
)
from pandas_dptree.plans.search import find_plan, noises_for
from pandas_dptree.plans.unit_search import find_unit_plan
from pandas_dptree.plans.units import UnitPlan
from pandas_dptree.privacy.composition import largest_budget
from pandas_dptree.privacy.conversions import zcdp_rho
from pandas_dptree.privacy.loss import PrivacyLoss, exact
from pandas_dptree.privacy.quantity import COUNT, Quantity

__all__ = ["plan_jointly", "plan_means", "plan_sums", "scale_of_count", "scale_of_mean", "scale_of_sum"]

_SMALL = Fraction(1, 10)
"""An epsilon or rho at which noise is larger than one count."""

_SMALLEST_ERROR = 1e-12
"""Of a quantity, in its scale: noise that is almost surely 0 has none that floats can hold."""


def plan_sums(
    domain: Domain | CrossedDomain,
    quantities: Sequence[Quantity],
    **options: Unpack[NoisyOptions],
) -> JointPlan:
    """Plan the sums of several columns; each error is scaled by the most that a row can add."""
    check_names(domain.by, [each.column for each in quantities], argument="columns")
    named = {each.name: each for each in quantities}
    return plan_jointly(domain, named, [scale_of_sum(each) for each in quantities], **options)


def plan_means(
    domain: Domain | CrossedDomain, quantities: Sequence[Quantity], **options: Unpack[NoisyOptions]
) -> JointPlan:
    """Plan the means of columns, and the counts of the records that are averaged."""
    check_names(domain.by, [each.column for each in quantities], argument="columns")
    centred = {each.name: each.centred() for each in quantities}
    scales = [*map(scale_of_mean, centred.values()), scale_of_count(len(centred))]
    counted = {**centred, COUNT.name: COUNT}
    return plan_jointly(domain, counted, scales, means=tuple(centred), count=COUNT.name, **options)


def scale_of_sum(quantity: Quantity) -> float:
    """Return the most that a row can add to a sum, by which its errors are scaled."""
    return float(max(abs(quantity.low), abs(quantity.high)) * quantity.unit)


def scale_of_mean(centred: Quantity) -> float:
    """Return half the width of the bounds of a mean, by which its errors are scaled."""
    return float((centred.high - centred.low) * centred.unit) / 2


def scale_of_count(n_means: int, *, shown: bool = False) -> float:
    r"""Return the scale of the errors of a count by which means are divided.

    With :math:`N` records, :math:`S` their summed differences from the middle of the bounds and
    :math:`t = S / N`, noise moves :math:`S / N` by about :math:`(dS - t\,dN) / N`, of variance
    :math:`(\mathrm{Var}\,S + t^2\,\mathrm{Var}\,N) / N^2`. On average over all t between the bounds,
    :math:`t^2 = h^2 / 3`, where h is half their width, by which each column is scaled. A count that the table
    shows too matters as much as any other quantity.
    """
    return float(np.sqrt(3 / (n_means + 3 * shown)))


def plan_jointly(
    domain: Domain | CrossedDomain,
    quantities: Mapping[Hashable, Quantity | None],
    scales: Sequence[float],
    *,
    contributions: Mapping[Hashable, int | None] | None = None,
    means: tuple[Hashable, ...] = (),
    count: Hashable | None = None,
    shows_count: bool = True,
    per_unit: Hashable | None = None,
    in_forest: bool = False,
    **options: Unpack[NoisyOptions],
) -> JointPlan:
    r"""Divide a privacy loss to minimize the sum of squared errors, each divided by its scale.

    For an error with variance :math:`\Delta^2 s^{-k}` in its scale, where s is its share of the loss, the sum
    is least for :math:`s \propto \Delta^{2/(1+k)}`. `quantities` and `scales` are in the order of the table;
    `contributions` states how many records of one unit each quantity counts, if these are not the same
    records. `means`, `count`, `shows_count` and `per_unit` are those of `JointPlan`, `in_forest` that of
    `AdditivePlan`; the quantity of distinct units is None. Sums of the same records are measured from the
    middles of their bounds where that is better.
    """
    given = with_defaults(AGGREGATIONS, options)
    with_units = None in quantities.values()
    _check_bounds_of_units(given, with_units=with_units)
    if with_units and isinstance(domain, CrossedDomain):
        raise ArgumentError(
            "aggregations",
            "counts distinct units, which are not counted over crossed hierarchies.",
            hint="nest the keys in a list, or count records: of each unit at most max_contributions.",
        )
    known, most = given["known"], contributions or {}
    public = (
        crossed_known(domain.with_margins(given["margins"]), known)
        if isinstance(domain, CrossedDomain)
        else Known.read(domain, known)
    )
    if all(each == COUNT for each in quantities.values()) and public.exact[-1].all():
        _find_part(domain, COUNT, **options)  # raises, since nothing is left to measure
    loss = stated_loss(given)
    scale = dict(zip(quantities, scales, strict=True))
    counted = next((name for name, each in quantities.items() if each == COUNT), COUNT.name)
    count_shown = counted in quantities and shows_count
    # Sums are plain where nobody has proved more, and where the table would not show which counts are known.
    same_records = contributions is None and str(given["neighbors"]) == "add_remove"
    may_share = same_records and (known is None or count_shown)
    sums = [
        name
        for name, each in quantities.items()
        if each not in (COUNT, None) and name not in means and may_share
    ]
    found = []
    for noise in noises_for(given["mechanism"], loss):
        divisible = loss
        if loss.kind == "approximate" and noise.euclidean:
            divisible = PrivacyLoss(rho=float(noise.budget(loss)))
        power = noise.variance_power(divisible)
        parts, count_scale = dict(quantities), scale.get(counted, math.inf)
        if sums:
            weights = [scale[name] ** -2 for name in sums]
            free = public.exact[-1].all()
            chosen = best_middles(
                [each for name in sums if (each := quantities[name]) is not None],
                weights,
                None if free else count_scale**-2,
                power,
            )
            parts |= dict(zip(sums, chosen, strict=True))
            middles = [each * float(part.origin) ** 2 for each, part in zip(weights, chosen, strict=True)]
            if any(middles):
                parts.setdefault(counted, COUNT)
                count_scale = (count_scale**-2 + sum(middles)) ** -0.5

        def planned(
            name: Hashable,
            part: PrivacyLoss,
            noise: AdditiveNoise = noise,
            parts: Mapping[Hashable, Quantity | None] = parts,
        ) -> Part:
            quantity = parts[name]
            own: NoisyOptions = {
                **options,
                "epsilon": part.epsilon,
                "delta": part.delta,
                "rho": part.rho,
                "mechanism": noise,
                "max_contributions": most.get(name, given["max_contributions"]),
                "known": public if quantity == COUNT else None,
            }
            if quantity is None and not isinstance(domain, CrossedDomain):
                return find_unit_plan(domain, **taken_from(UNITS, own))
            return _find_part(domain, quantity or COUNT, in_forest=in_forest, **own)

        spending = [name for name, each in parts.items() if each != COUNT or not public.exact[-1].all()]
        part_scale = {**scale, counted: count_scale}
        sketched = [planned(name, _small(divisible) if with_units else divisible) for name in spending]
        errors = [
            (plan.expected_error if with_units else _typical_error(plan, power)) / part_scale[name]
            for name, plan in zip(spending, sketched, strict=True)
        ]
        shares = _shares(errors, power)
        plans = [planned(name, part) for name, part in zip(spending, divisible.divide(shares), strict=True)]
        named = dict(zip(spending, _with_all_budget(plans, loss, shares), strict=True))
        for name in parts.keys() - named.keys():  # all counts are public, and spend nothing
            no_shares = np.zeros(len(public.exact))
            nothing: dict[str, Any] = {"budget_shares": no_shares, "unit_noise_scales": FROM_SHARES}
            named[name] = replace(plans[0], quantity=COUNT, **{"known": public, **nothing})
        found.append(with_count({name: named[name] for name in parts}, means, counted))

    def cost(plans: Mapping[Hashable, Part]) -> float:
        return sum((plans[name].expected_error / size) ** 2 for name, size in scale.items())

    best = min(found, key=cost)
    warn_of_arguments(loss, domain, known_total(public))
    if any(plan.count for plan in best.values()):
        count, shows_count = counted, count_shown
    return JointPlan(
        loss=loss, plans=best, means=means, count=count, shows_count=shows_count, per_unit=per_unit
    )


def _find_part(
    domain: Domain | CrossedDomain,
    quantity: Quantity,
    *,
    in_forest: bool = False,
    **options: Unpack[NoisyOptions],
) -> OfRecords:
    """Find the plan of one quantity of records."""
    if isinstance(domain, CrossedDomain):
        return find_crossed_plan(domain, quantity, **options)
    return find_plan(domain, quantity, in_forest=in_forest, **options)


def _check_bounds_of_units(given: Mapping[str, Any], *, with_units: bool) -> None:
    """Check the options that bound units where distinct ones are counted, or are not."""
    if not with_units and given["max_nodes"] is not None:
        raise ArgumentError(
            "max_nodes",
            "bounds the nodes of distinct units, which are not counted.",
            hint='leave it out, or add a column of them: {"visitors": "units"}.',
        )
    for name in ("max_per_leaf", "max_per_node"):
        if with_units and given[name] is not None:
            raise ArgumentError(
                name,
                "cannot be stated where distinct units are counted: which rows are kept follows from "
                "`max_nodes` and `max_contributions`.",
                hint="leave it out, or count records and units in two tables.",
            )
    if with_units and given["known"] is not None:
        raise ArgumentError(
            "known",
            "cannot be stated where distinct units are counted beside records.",
            hint="leave it out, or count records and units in two tables.",
        )


def _shares(errors: Sequence[float], power: int) -> list[float]:
    """Divide a loss among quantities by their errors, in their scales, with equal parts."""
    return [max(error, _SMALLEST_ERROR) ** (2 / (1 + power)) for error in errors]


def _small(loss: PrivacyLoss) -> PrivacyLoss:
    """Return a part of a loss at which noise is large, so that errors are in proportion to its scale."""
    size = exact(loss.epsilon or loss.rho or 0.0)
    return loss.part(_SMALL / size) if size > _SMALL else loss


def _typical_error(plan: Part, power: int) -> float:
    """Return a number to which the error of a quantity is proportional, whatever its part of the loss."""
    if plan.neighbors == "replace":
        return plan.expected_error
    move = max(level.l1 if power == 2 else math.sqrt(level.l2_squared) for level in plan.sensitivity.levels)
    return move * float(plan.quantity.unit)


def _with_all_budget(plans: list[Part], loss: PrivacyLoss, shares: Sequence[float]) -> list[Part]:
    """Raise the plans' losses to all that the stated one provably allows.

    An (epsilon, delta) allows more than the rho that implies it, and distinct units beside rows with Gaussian
    noise more than the sum of both.
    """

    def with_rho(rho: float) -> list[Part]:
        parts = PrivacyLoss(rho=rho).divide(shares)
        return [
            replace(plan, loss=part, unit_noise_scales=FROM_SHARES)
            for plan, part in zip(plans, parts, strict=True)
        ]

    gaussian = all(plan.noise.euclidean and plan.loss.rho is not None for plan in plans)
    if loss.rho is not None and gaussian and any(isinstance(plan, UnitPlan) for plan in plans):
        factor = min(exact(loss.rho) / spent_together(loss, plans), Fraction(2))  # each is spent by itself
        return with_rho(float(exact(loss.rho) * factor) * (1 - 2**-40))
    if loss.epsilon is None or plans[0].loss.kind != "zcdp":
        return plans
    least = loss.rounded_down
    epsilon = cast(float, least.epsilon)

    def delta_at(rho: float) -> float:
        return joint_delta(epsilon, with_rho(rho))

    enough = zcdp_rho(epsilon, least.delta)
    return with_rho(largest_budget(delta_at, least.delta, at_least=enough))
