"""From arguments to the best plan that they allow."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pandas_dptree.errors import ArgumentError, kind_of_object, listed, told
from pandas_dptree.estimation.consistency import CONSISTENCIES, FITS, Consistency, Fit
from pandas_dptree.hierarchy.domain import Domain, level_names
from pandas_dptree.hierarchy.known import Known
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import (
    MECHANISMS,
    NOISES,
    AdditiveNoise,
    Mechanism,
    candidate_noises,
)
from pandas_dptree.mechanisms.guarantees import Multiplicative
from pandas_dptree.planning.objective import OBJECTIVES, Objective, by_level
from pandas_dptree.planning.split import SPLITS, Split, split_budget
from pandas_dptree.planning.targets import LARGEST_LOSS, Target
from pandas_dptree.plans.additive import Plan
from pandas_dptree.plans.implicit import ImplicitPlan, plan_implicit
from pandas_dptree.plans.implicit_multiplicative import ImplicitMultiplicativePlan
from pandas_dptree.plans.multiplicative import MultiplicativePlan
from pandas_dptree.privacy.loss import PrivacyLoss, warn_if_useless
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.privacy.unit import protected

__all__ = ["find_best_plan", "find_implicit_plan", "find_plan", "noises_for"]

_FACTOR = ", or dpt.Multiplicative(alpha=0.25) for counts that are right up to a factor"

_NOT_FOR_PREFIXES = {
    "rho": (None,),
    "alpha": (None,),
    "domain": (None,),
    "level_weights": (None,),
    "objective": ("levels",),
    "consistency": ("integer",),
    "fit": ("totals",),
    "known": (None,),
    "confidence": (None,),
}
"""What a tree that is too large to be listed has no use for, and what it is left at."""

_NOT_FOR_FACTORS = {
    "rho": (None,),
    "split": ("optimal",),
    "level_weights": (None,),
    "objective": ("levels",),
    "target": (None,),
    "consistency": ("integer", "none"),
    "fit": ("totals",),
    "known": (None,),
    "confidence": (None,),
    "keep_measurements": (False,),
    "column": (None,),
}
"""What counts that are right up to a factor have no use for. (They do not add up, asked for or not.)"""


_NOT_WITH_ALPHA = {"objective": ("levels",), "level_weights": (None,), "target": (None,)}
"""What has no use where plans are judged by their largest error beyond a share of the count."""


def find_best_plan(
    domain: Domain | Tree,
    *,
    alpha: float | None = None,
    mechanism: Mechanism | AdditiveNoise | Multiplicative = "auto",
    **options: Any,
) -> Plan | MultiplicativePlan:
    """Find the plan that a caller asks for: see `pandas_dptree.plan`."""
    plan = _find_best_plan(domain, alpha=alpha, mechanism=mechanism, **options)
    warn_if_useless(plan.loss)
    return plan


def _find_best_plan(
    domain: Domain | Tree,
    *,
    alpha: float | None,
    mechanism: Mechanism | AdditiveNoise | Multiplicative,
    **options: Any,
) -> Plan | MultiplicativePlan:
    """Find the plan of least expected error, or with alpha of least alpha-mRMSE."""
    if isinstance(mechanism, Multiplicative):
        if alpha is not None:
            raise ArgumentError(
                "alpha", "is stated by the mechanism already.", hint='leave it out, or take mechanism="auto".'
            )
        return _find_multiplicative_plan(domain, mechanism=mechanism, **options)
    if not isinstance(mechanism, AdditiveNoise):
        _check_choice("mechanism", mechanism, MECHANISMS, or_else=_FACTOR)
    if alpha is None:
        return find_plan(domain, mechanism=mechanism, **options)
    hint = "leave it out: with alpha, what is made small is the largest error of all nodes."
    options = _without(_NOT_WITH_ALPHA, options, "plans that are judged by alpha", hint)
    noises: list[Mechanism | AdditiveNoise] = [mechanism]
    if mechanism == "auto":
        loss = PrivacyLoss(**{name: options[name] for name in ("epsilon", "delta", "rho") if name in options})
        noises = list(noises_for(mechanism, loss, options.get("split")))
    additive = [find_plan(domain, mechanism=noise, objective="worst", **options) for noise in noises]
    best = min(additive, key=lambda plan: np.nanmax(plan.alpha_rmse(alpha)))
    if mechanism != "auto":
        return best
    try:
        wish = Multiplicative(alpha=alpha, clip=True)
        factors = _find_multiplicative_plan(domain, mechanism=wish, **options)
    except ArgumentError:  # it cannot spend this loss, or lacks an option that is asked for
        return best
    assert factors.rmse_bound is not None
    return factors if factors.rmse_bound < np.nanmax(best.alpha_rmse(alpha)) else best


def find_plan(
    domain: Domain | Tree,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    privacy_unit: Hashable | None = None,
    max_contributions: int | None = None,
    mechanism: Mechanism | AdditiveNoise = "auto",
    split: Split | Mapping[Hashable, float] = "optimal",
    level_weights: Mapping[Hashable, float] | None = None,
    objective: Objective = "levels",
    target: Mapping[Hashable, float] | None = None,
    consistency: Consistency = "integer",
    fit: Fit = "totals",
    known: Any = None,
    confidence: float | None = None,
    keep_measurements: bool = False,
    quantity: Quantity = COUNT,
) -> Plan:
    """Find the plan of least expected error: see `pandas_dptree.plan`."""
    _check_domain(domain)
    names = level_names(domain)
    unit, most = protected(privacy_unit, max_contributions, taken=names[1:])
    _check_choice("consistency", consistency, CONSISTENCIES)
    _check_choice("fit", fit, FITS)
    _check_choice("objective", objective, OBJECTIVES)
    if known is not None and quantity != COUNT:
        raise ArgumentError(
            "known",
            "holds counts of records; sums of a column are not known from them.",
            hint="leave out `known`.",
        )
    public = Known.read(domain, known)
    tree = domain if isinstance(domain, Tree) else domain.tree
    sensitivity = quantity.sensitivity(neighbors=neighbors, max_contributions=most)
    least_squares = consistency != "none"
    if isinstance(split, str):
        _check_choice("split", split, SPLITS)
    shares = split if isinstance(split, str) else by_level("split", split, names, 0.0)
    given = np.zeros(len(names)) if isinstance(shares, str) else shares
    wasted = [names[level] for level in np.flatnonzero(given * public.levels)]
    if wasted:
        raise ArgumentError(
            "split",
            f"spends on levels whose counts are all known: {listed(wasted)}.",
            hint="leave them out: their counts have no error.",
        )
    if not isinstance(split, str) and not abs(given.sum() - 1) < 1e-6:
        example = ", ".join(f"{told(name)}: 0.5" for name in (names[0], names[-1]))
        raise ArgumentError(
            "split",
            f"must hold shares with sum 1, not {given.sum():g}.",
            hint=f"for example {{{example}}}; levels that are left out have none.",
        )
    weights = by_level("level_weights", {} if level_weights is None else level_weights, names, 1.0)
    if target is None:
        stated = PrivacyLoss(epsilon=epsilon, delta=delta, rho=rho)
        losses = [(noise, stated) for noise in noises_for(mechanism, stated, split)]
    else:
        if level_weights is not None or objective != "levels" or split == "nodes":
            raise ArgumentError(
                "target",
                "says already how much each level matters, and is met level by level.",
                hint='leave out `level_weights`, `objective` and split="nodes".',
            )
        aim = Target(
            tree=tree,
            names=names,
            std_errors=by_level("target", target, names, math.inf) / float(quantity.unit),
            sensitivity=sensitivity,
            split=shares,
            least_squares=least_squares,
            known=public.exact,
            unit=float(quantity.unit),
        )
        losses = [_loss_for(aim, mechanism, epsilon, delta, rho)]
        weights, objective = aim.weights, "worst"
    plans = [
        Plan(
            tree=tree,
            domain=domain if isinstance(domain, Domain) else None,
            quantity=quantity,
            known=public,
            loss=loss,
            noise=noise,
            neighbors=neighbors,
            privacy_unit=unit,
            max_contributions=most,
            consistency=consistency,
            fit=fit,
            confidence=confidence,
            keep_measurements=keep_measurements,
            split=split if isinstance(split, str) else "given",
            objective=objective,
            level_weights=weights,
            node_shares=split_budget(
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
        )
        for noise, loss in losses
    ]
    return min(plans, key=lambda plan: plan.expected_error)


def find_implicit_plan(
    tree: PrefixTree,
    *,
    epsilon: float | None,
    mechanism: object = "auto",
    **options: Any,
) -> ImplicitPlan | ImplicitMultiplicativePlan:
    """Plan a tree that is too large to be listed, as far as the arguments of `tree_counts` allow."""
    options = _without(
        _NOT_FOR_PREFIXES, options, "a tree of all prefixes", "leave it out, or list the leaves."
    )
    if isinstance(mechanism, Multiplicative):
        options["mechanism"] = mechanism
    else:
        _check_choice("mechanism", mechanism, ("auto", "truncated_laplace"), or_else=_FACTOR)
    plan: ImplicitPlan | ImplicitMultiplicativePlan = plan_implicit(tree, epsilon=_given(epsilon), **options)
    return plan


def _find_multiplicative_plan(
    domain: Domain | Tree,
    *,
    mechanism: Multiplicative,
    epsilon: float | None,
    delta: float = 0.0,
    privacy_unit: Hashable | None = None,
    max_contributions: int | None = None,
    quantity: Quantity = COUNT,
    **options: Any,
) -> MultiplicativePlan:
    """Plan counts that are right up to a factor, as far as the arguments of `pandas_dptree.plan` allow."""
    _check_domain(domain)
    options = _without(
        _NOT_FOR_FACTORS,
        {**options, "column": quantity.column},
        "counts that are right up to a factor",
        'leave it out, or take mechanism="laplace" or "gaussian".',
    )
    whom: dict[str, Any] = {"privacy_unit": privacy_unit, "max_contributions": max_contributions}
    return MultiplicativePlan(
        tree=domain if isinstance(domain, Tree) else domain.tree,
        domain=domain if isinstance(domain, Domain) else None,
        loss=PrivacyLoss(epsilon=_given(epsilon), delta=delta),
        mechanism=mechanism,
        **whom,
        **options,
    )


def noises_for(mechanism: Mechanism | AdditiveNoise, loss: PrivacyLoss, split: object) -> list[AdditiveNoise]:
    """List the noises that a plan may choose from."""
    if isinstance(mechanism, AdditiveNoise):
        return [mechanism]
    _check_choice("mechanism", mechanism, MECHANISMS)
    if mechanism == "auto" and isinstance(split, str) and split == "nodes":
        return [noise for noise in NOISES.values() if noise.euclidean]
    return candidate_noises(mechanism, loss)


def _loss_for(
    aim: Target,
    mechanism: Mechanism | AdditiveNoise,
    epsilon: float | None,
    delta: float,
    rho: float | None,
) -> tuple[AdditiveNoise, PrivacyLoss]:
    """Find the smallest privacy loss that meets a target; a stated epsilon or rho is met, or is too small."""
    if epsilon is not None or rho is not None:
        PrivacyLoss(epsilon=epsilon, delta=delta, rho=rho)  # raises if it is none
    pure = PrivacyLoss(epsilon=1.0)
    never_pure = not any(noise.can_give(pure) for noise in noises_for(mechanism, pure, None))
    concentrated = rho is not None or (epsilon is None and not delta and never_pure)

    def loss_of(size: float) -> PrivacyLoss:
        return PrivacyLoss(rho=size) if concentrated else PrivacyLoss(epsilon=size, delta=delta)

    noises = noises_for(mechanism, loss_of(1.0), None)
    sizes = [(aim.smallest_loss(noise, loss_of), noise) for noise in noises]
    size, noise = min(sizes, key=lambda found: found[0])
    stated = epsilon if rho is None else rho
    limit = LARGEST_LOSS if stated is None else stated
    if size > limit:
        raise aim.out_of_reach(noise, loss_of, size, limit)
    return noise, loss_of(size if stated is None else stated)


def _without(
    unused: Mapping[str, tuple[object, ...]], options: Mapping[str, Any], what: str, hint: str
) -> dict[str, Any]:
    """Leave out the options that have no meaning, after a check that nobody has set them."""
    for name in options.keys() & unused.keys():
        given = options[name]
        if not any(given is left or (isinstance(given, str) and given == left) for left in unused[name]):
            raise ArgumentError(name, f"has no meaning for {what}.", hint=hint)
    return {name: given for name, given in options.items() if name not in unused}


def _given(epsilon: float | None) -> float:
    if epsilon is None:
        raise ArgumentError(
            "epsilon", "must be given, with a delta.", hint="for example epsilon=1.0, delta=1e-6."
        )
    return epsilon


def _check_domain(domain: object) -> None:
    if not isinstance(domain, (Domain, Tree)):
        raise ArgumentError(
            "domain",
            f"must be a Domain or a Tree, not {kind_of_object(domain)}: a plan never sees records.",
            hint="make one of public keys with dpt.Domain.from_frame(places, by=[...]), or of derived levels "
            "with dpt.derived_domain; arrays plan by themselves, with array.dp.plan.",
        )


def _check_choice(argument: str, value: object, choices: Sequence[str], *, or_else: str = "") -> None:
    if not isinstance(value, str) or value not in choices:
        made = f"make one of the class, {value.__name__}(...), or " if isinstance(value, type) else ""
        raise ArgumentError(
            argument,
            f"is unknown: {told(value)}.",
            hint=f"{made}choose one of {', '.join(repr(choice) for choice in choices)}{or_else}.",
        )
