"""The search for the best plan that the options allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, Unpack

import numpy as np

from pandas_dptree.errors import ArgumentError, check_choice, listed, quote
from pandas_dptree.estimation.estimators import estimator_for
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.hierarchy.areas import Area
from pandas_dptree.hierarchy.domain import Domain, level_names
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import MECHANISMS, AdditiveNoise, Mechanism, candidate_noises
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.output.frames import check_names
from pandas_dptree.planning.area_shares import AreaTarget
from pandas_dptree.planning.capacities import sensitivity_on
from pandas_dptree.planning.objective import OBJECTIVES, Objective, by_level
from pandas_dptree.planning.split import SPLITS, Split, level_shares
from pandas_dptree.planning.targets import LARGEST_LOSS, Target, Within
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.doubtful_arguments import known_total, warn_of_arguments
from pandas_dptree.plans.measurement import Measurement
from pandas_dptree.plans.multiplicative import MultiplicativePlan
from pandas_dptree.plans.options import (
    ADDITIVE,
    ESTIMATION,
    RELATIVE_ERROR,
    NoisyOptions,
    require_supported,
    stated_loss,
    taken_from,
    with_defaults,
)
from pandas_dptree.privacy.caps import stated_caps
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.unit import protected

__all__ = [
    "find_best_plan",
    "find_plan",
    "noises_for",
    "plan_for",
    "stated_shares",
    "stated_targets",
]

Planned = TypeVar("Planned", bound=Measurement)

_ROUNDS = 10  # of finding the standard errors that half widths allow; usually two or three
_OR_MULTIPLICATIVE = ", or dpt.Multiplicative(alpha=0.25) for counts with bounded relative error"


def find_best_plan(
    domain: Domain | Tree, quantity: Quantity = COUNT, **options: Any
) -> AdditivePlan | MultiplicativePlan:
    """Find the plan of least expected error: see `pandas_dptree.plan`."""
    if quantity.column is not None:
        check_names(level_names(domain)[1:], [quantity.column], argument="column")
    mechanism = options.get("mechanism", "auto")
    plan: AdditivePlan | MultiplicativePlan
    if isinstance(mechanism, Multiplicative):
        del options["mechanism"]
        plan = _find_multiplicative_plan(domain, quantity, mechanism, options)
    else:
        if not isinstance(mechanism, AdditiveNoise):
            check_choice("mechanism", mechanism, MECHANISMS, or_else=_OR_MULTIPLICATIVE)
        plan = find_plan(domain, quantity, **taken_from(ADDITIVE, options))
    known = plan.known if isinstance(plan, AdditivePlan) else Known.nothing(plan.tree)
    warn_of_arguments(plan.loss, domain, known_total(known))
    return plan


def _find_multiplicative_plan(
    domain: Domain | Tree,
    quantity: Quantity,
    mechanism: Multiplicative,
    options: Mapping[str, Any],
) -> MultiplicativePlan:
    """Plan counts with bounded relative error, if the options of `pandas_dptree.plan` allow it."""
    what = "counts with bounded relative error"
    hint = 'leave it out, or use mechanism="laplace" or "gaussian".'
    own = require_supported(
        RELATIVE_ERROR, options, implied=MultiplicativePlan._implied, what=what, hint=hint
    )
    if quantity != COUNT:
        raise ArgumentError("column", f"has no meaning for {what}.", hint=hint)
    given = with_defaults(RELATIVE_ERROR, own)
    _require_epsilon(given["epsilon"])
    return MultiplicativePlan(
        tree=domain if isinstance(domain, Tree) else domain.tree,
        domain=domain if isinstance(domain, Domain) else None,
        loss=PrivacyLoss(epsilon=given["epsilon"], delta=given["delta"]),
        mechanism=mechanism,
        neighbors=given["neighbors"],
        privacy_unit=given["privacy_unit"],
        max_contributions=given["max_contributions"],  # None is one row
    )


def find_plan(
    domain: Domain | Tree,
    quantity: Quantity = COUNT,
    *,
    in_forest: bool = False,
    **options: Unpack[NoisyOptions],
) -> AdditivePlan:
    """Find the plan of additive noise of least expected error: see `pandas_dptree.plan`.

    `in_forest` is that of `AdditivePlan`.
    """
    given = with_defaults(ADDITIVE, options)
    names = level_names(domain)
    unit, most = protected(given["privacy_unit"], given["max_contributions"], taken=names[1:])
    least_squares = estimator_for(given["consistency"], given["fit"]).combines_levels
    check_choice("objective", given["objective"], OBJECTIVES)
    if given["known"] is not None and quantity != COUNT:
        raise ArgumentError(
            "known",
            "holds counts of records, which do not give the sums of a column.",
            hint="leave out `known`.",
        )
    if given["margins"] is not None:
        raise ArgumentError(
            "margins",
            "chooses margins of crossed hierarchies, and there is one hierarchy.",
            hint='leave it out, or cross several: by={"place": ["state", "county"], "sex": "sex"}.',
        )
    public = Known.read(domain, given["known"])
    tree = domain if isinstance(domain, Tree) else domain.tree
    caps = stated_caps(given["max_per_leaf"], given["max_per_node"], names, unit)
    sensitivity = sensitivity_on(
        tree,
        quantity,
        neighbors=given["neighbors"],
        max_contributions=most,
        caps=caps,
        known=public.exact,
        in_forest=in_forest,
    )
    split = given["split"]
    shares = stated_shares(split, names, public)
    weights = by_level(
        "level_weights", {} if given["level_weights"] is None else given["level_weights"], names, 1.0
    )

    def planned(
        noise: AdditiveNoise,
        loss: PrivacyLoss,
        weights: FloatArray,
        objective: Objective,
        shares: Split | FloatArray = shares,
    ) -> AdditivePlan:
        return AdditivePlan(
            tree=tree,
            domain=domain if isinstance(domain, Domain) else None,
            quantity=quantity,
            known=public,
            loss=loss,
            noise=noise,
            neighbors=given["neighbors"],
            privacy_unit=unit,
            max_contributions=most,
            caps=caps,
            **taken_from(ESTIMATION, given),
            split=shares if isinstance(shares, str) else "given",
            objective=objective,
            level_weights=weights,
            budget_shares=level_shares(
                tree,
                noise=noise,
                loss=loss,
                sensitivity=sensitivity,
                split=shares,
                level_weights=weights,
                objective=objective,
                least_squares=least_squares,
                known=public.exact,
            ),
            in_forest=in_forest and given["neighbors"] == "replace",
        )

    if given["target"] is None:
        stated = stated_loss(given)
        plans = [
            planned(noise, stated, weights, given["objective"])
            for noise in noises_for(given["mechanism"], stated)
        ]
        return min(plans, key=lambda plan: plan.expected_error)
    of_areas, of_levels = _stated_areas(given["target"], domain, float(quantity.unit))
    std_errors, widths = stated_targets(of_levels, names, given)
    goal = Target(
        tree=tree,
        names=names,
        std_errors=std_errors / float(quantity.unit),
        sensitivity=sensitivity,
        split=shares,
        least_squares=least_squares,
        known=public.exact,
        unit=float(quantity.unit),
        widths=widths,
        areas=of_areas,
    )
    return plan_for(goal, given, planned)


def stated_shares(
    split: Split | Mapping[Hashable, float], names: Sequence[Hashable], public: Known
) -> Split | FloatArray:
    """Check a split, and return its name or the share of each level."""
    if isinstance(split, str):
        check_choice("split", split, SPLITS)
        return split
    shares = by_level("split", split, names, 0.0)
    wasted = [names[int(level)] for level in np.flatnonzero(shares * public.levels)]
    if wasted:
        raise ArgumentError(
            "split",
            f"spends budget on levels where the counts are all known: {listed(wasted)}.",
            hint="leave them out: their counts have no error.",
        )
    if not abs(shares.sum() - 1) < 1e-6:
        example = ", ".join(f"{quote(name)}: 0.5" for name in (names[0], names[-1]))
        raise ArgumentError(
            "split",
            f"must hold shares that sum to 1, not to {shares.sum():g}.",
            hint=f"for example {{{example}}}; levels left out have none.",
        )
    return shares


def noises_for(mechanism: Mechanism | AdditiveNoise, loss: PrivacyLoss) -> list[AdditiveNoise]:
    """List the kinds of noise that a plan may choose from."""
    if isinstance(mechanism, AdditiveNoise):
        return [mechanism]
    check_choice("mechanism", mechanism, MECHANISMS)
    return candidate_noises(mechanism, loss)


def _stated_areas(target: Any, domain: Domain | Tree, unit: float) -> tuple[list[AreaTarget], Any]:
    """Return the targets of areas, with standard errors in units of what is added up, and the others."""
    if not isinstance(target, Mapping):
        return [], target
    areas = []
    for area in (name for name in target if isinstance(name, Area)):
        stated = target[area]
        if isinstance(stated, bool) or not isinstance(stated, (int, float, np.number)) or not stated > 0:
            raise ArgumentError(
                "target",
                f"must give an area a standard error above 0, not {quote(stated)}.",
                hint="half widths are for levels: state a standard error of the area.",
            )
        areas.append(AreaTarget(area.weights(domain), float(stated) / unit))
    return areas, {name: stated for name, stated in target.items() if not isinstance(name, Area)}


def stated_targets(
    target: Any, names: Sequence[Hashable], given: Mapping[str, Any]
) -> tuple[FloatArray, dict[Hashable, Within]]:
    """Return each level's standard error, inf without a target, and the targets that are half widths.

    The standard error for a half width is at first that of normal errors. Raises an ArgumentError if other
    options that were `given` weigh the levels, too.
    """
    if given["level_weights"] is not None or given["objective"] != "levels":
        raise ArgumentError(
            "target",
            "already decides how much each level matters.",
            hint="leave out `level_weights` and `objective`.",
        )
    widths = {}
    if isinstance(target, Mapping):
        widths = {name: stated for name, stated in target.items() if isinstance(stated, Within)}
        target = {**target, **{name: stated.normal_std_error for name, stated in widths.items()}}
    return by_level("target", target, names, math.inf), widths


def plan_for(goal: Target, given: Mapping[str, Any], planned: Callable[..., Planned]) -> Planned:
    """Find the plan with the smallest loss that meets a target; a stated epsilon or rho must be enough."""
    mechanism, epsilon, delta, rho = given["mechanism"], given["epsilon"], given["delta"], given["rho"]
    if epsilon is not None or rho is not None:
        stated_loss(given)  # raises if it is invalid
    pure = PrivacyLoss(epsilon=1.0)
    never_pure = not any(noise.supports(pure) for noise in noises_for(mechanism, pure))
    concentrated = rho is not None or (epsilon is None and not delta and never_pure)

    def loss_of(size: float) -> PrivacyLoss:
        return PrivacyLoss(rho=size) if concentrated else PrivacyLoss(epsilon=size, delta=delta)

    noises = noises_for(mechanism, loss_of(1.0))
    sizes = [(*_smallest_loss(goal, noise, loss_of, planned), noise) for noise in noises]
    size, reached, noise = min(sizes, key=lambda found: found[0])
    stated = epsilon if rho is None else rho
    limit = LARGEST_LOSS if stated is None else stated
    if size > limit:
        raise reached.out_of_reach(noise, loss_of, size, limit)
    loss = loss_of(size if stated is None else stated)
    if goal.areas:  # the weights of levels do not say what is best for areas
        return planned(noise, loss, np.ones(len(goal.names)), "levels", reached.shares(noise, loss))
    return planned(noise, loss, reached.weights, "worst")


def _smallest_loss(
    goal: Target,
    noise: AdditiveNoise,
    loss_of: Callable[[float], PrivacyLoss],
    planned: Callable[..., Measurement],
) -> tuple[float, Target]:
    """Find the smallest epsilon or rho that meets a target, and the standard errors that it amounts to.

    The standard errors that half widths allow are found in turn with the loss, until they change by less than
    a thousandth; then they are lowered together until none is too large, by less than that in most cases.
    """
    size, met = goal.smallest_loss(noise, loss_of), []
    for _ in range(_ROUNDS if goal.widths else 0):
        if size > LARGEST_LOSS:
            break
        plan = planned(noise, loss_of(size), goal.weights, "worst")
        excess = plan.std_errors / goal.unit / goal.std_errors
        allowed = goal.std_errors.copy()
        for level, name in enumerate(goal.names):
            if name in goal.widths and plan.std_errors[level] > 0:
                stated = goal.widths[name]
                excess[level] = plan.largest_half_widths(stated.confidence)[level] / stated.half_width
                allowed[level] = plan.std_errors[level] / goal.unit / excess[level]
        worst = np.nanmax(excess)
        met += [(size, goal)] if worst <= 1 else []
        settled = np.allclose(allowed, goal.std_errors, 1e-3, 0)
        if settled and worst <= 1:
            break
        lowered = goal.std_errors / worst * (1 - 1e-6)
        goal = replace(goal, std_errors=lowered if settled else allowed)
        size = goal.smallest_loss(noise, loss_of)
    return min(met, key=lambda found: found[0], default=(size, goal))


def _require_epsilon(epsilon: float | None) -> None:
    if epsilon is None:
        raise ArgumentError(
            "epsilon", "must be given, with a delta.", hint="for example epsilon=1.0, delta=1e-6."
        )
