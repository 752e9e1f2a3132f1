"""The search for the best plan for crossed hierarchies."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import reduce
from typing import Any, Unpack, cast

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, check_choice, did_you_mean, kind_of_object, listed, quote
from pandas_dptree.estimation.estimators import Consistency
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.hierarchy.areas import Area
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.margin_names import level_column
from pandas_dptree.mechanisms.additive import MECHANISMS, AdditiveNoise
from pandas_dptree.output.frames import check_names
from pandas_dptree.planning.capacities import crossed_sensitivity_on
from pandas_dptree.planning.crossed_split import crossed_shares
from pandas_dptree.planning.crossed_targets import CrossedTarget
from pandas_dptree.planning.objective import OBJECTIVES, Objective, by_level
from pandas_dptree.planning.split import SPLITS, Split
from pandas_dptree.planning.targets import Within
from pandas_dptree.plans.crossed import CrossedPlan
from pandas_dptree.plans.doubtful_arguments import known_total, warn_of_arguments
from pandas_dptree.plans.options import CROSSED, NoisyOptions, require_supported, stated_loss, with_defaults
from pandas_dptree.plans.search import noises_for, plan_for, stated_targets
from pandas_dptree.privacy.caps import stated_caps
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.unit import protected

__all__ = ["crossed_known", "find_crossed_plan"]

_WHAT = "crossed hierarchies"


def find_crossed_plan(
    domain: CrossedDomain, quantity: Quantity = COUNT, **options: Unpack[NoisyOptions]
) -> CrossedPlan:
    """Find the plan of least expected error: see `pandas_dptree.plan`."""
    if quantity.column is not None:
        check_names([*map(level_column, domain.axes), *domain.by], [quantity.column], argument="column")
    own = require_supported(
        CROSSED,
        options,
        implied={"fit": "totals"},
        what=_WHAT,
        hint="leave it out. Crossed tables have standard errors but no intervals, are fitted by their "
        "totals, and bound the rows of a unit in each leaf cell by max_per_leaf.",
    )
    given = with_defaults(CROSSED, own)
    mechanism = given["mechanism"]
    if not isinstance(mechanism, AdditiveNoise):
        check_choice("mechanism", mechanism, MECHANISMS)
    check_choice("objective", given["objective"], OBJECTIVES)
    domain = domain.with_margins(given["margins"])
    product = domain.tree
    unit, most = protected(given["privacy_unit"], given["max_contributions"], taken=domain.by)
    if given["max_per_leaf"] is not None and product.n_leaves == 1:
        raise ArgumentError(
            "max_per_leaf",
            "bounds the rows of a unit in each leaf cell, and the margins need one cell alone.",
            hint="pass max_contributions alone: all rows are in that cell.",
        )
    caps = stated_caps(given["max_per_leaf"], None, domain.level_names, unit)
    known = crossed_known(domain, given["known"], quantity)
    if known.levels.all():
        raise ArgumentError(
            "known",
            "covers all leaf cells, so there is nothing to measure.",
            hint="leave out the counts that are not public.",
        )
    split = _stated_split(domain, given["split"])
    weights = _weights(domain, given)
    sensitivity = crossed_sensitivity_on(
        product,
        quantity,
        neighbors=given["neighbors"],
        max_contributions=most,
        max_per_leaf=caps[-1] if caps else None,
        known=known.exact,
    )
    consistency = _consistency(given["consistency"], quantity)

    def planned(
        noise: AdditiveNoise,
        loss: PrivacyLoss,
        weights: FloatArray = weights,
        objective: Objective = given["objective"],
        shares: FloatArray | None = None,
    ) -> CrossedPlan:
        if shares is None:
            shares = crossed_shares(
                product,
                noise=noise,
                loss=loss,
                sensitivity=sensitivity,
                split=split,
                weights=weights,
                objective=objective,
                least_squares=consistency != "none",
                known=known,
            )
        return CrossedPlan(
            tree=product,
            domain=domain,
            quantity=quantity,
            known=known,
            loss=loss,
            noise=noise,
            neighbors=given["neighbors"],
            privacy_unit=unit,
            max_contributions=most,
            caps=caps,
            consistency=consistency,
            keep=given["keep"],
            split=split if isinstance(split, str) else "given",
            objective=objective,
            level_weights=weights,
            budget_shares=shares,
        )

    if given["target"] is None:
        loss = stated_loss(given)
        plans = [planned(noise, loss) for noise in noises_for(mechanism, loss)]
        plan = min(plans, key=lambda plan: plan.expected_error)
    else:
        goal = CrossedTarget(
            tree=product,
            names=domain.level_names,
            std_errors=_targets(domain, given) / float(quantity.unit),
            sensitivity=sensitivity,
            split=split,
            least_squares=consistency != "none",
            public=known,
            unit=float(quantity.unit),
        )
        plan = plan_for(goal, given, planned)
    warn_of_arguments(plan.loss, domain, known_total(known))
    return plan


def _targets(domain: CrossedDomain, given: Mapping[str, Any]) -> FloatArray:
    """Return the standard error to achieve for each margin, inf where none is stated."""
    stated, names = given["target"], domain.level_names
    if isinstance(stated, Mapping):
        unfit = [name for name in stated if isinstance(stated[name], Within) or isinstance(name, Area)]
        if unfit:
            raise ArgumentError(
                "target",
                "states half widths or areas, which plans for crossed hierarchies do not have.",
                hint="state standard errors of margins: half the width of an interval of 95 % is about two.",
            )
        margins = {margin: domain.margin_of(margin, "target") for margin in stated}
        hidden = [margin for margin, chosen in margins.items() if chosen not in domain.tree.shown]
        if hidden:
            raise ArgumentError(
                "target",
                f"names a margin that is not released: {quote(hidden[0])}.",
                hint="add it to `margins`, or leave it out.",
            )
        stated = {names[domain.tree.level_of(margins[margin])]: error for margin, error in stated.items()}
    std_errors, _ = stated_targets(stated, names, given)
    return std_errors


def _consistency(stated: Consistency, quantity: Quantity) -> Consistency:
    """Return how estimates are made: sums are never projected, and those that add up are linear."""
    return stated if quantity == COUNT or stated == "none" else "linear"


def _weights(domain: CrossedDomain, given: Mapping[str, Any]) -> FloatArray:
    """Return how much a cell of each margin matters: the product of its levels' weights, times its own."""
    stated = {} if given["level_weights"] is None else given["level_weights"]
    of_axes = _by_axis("level_weights", stated, domain, 1.0)
    return np.asarray(domain.weights * reduce(np.multiply.outer, of_axes).reshape(-1))


def _by_axis(argument: str, stated: Any, domain: CrossedDomain, default: float) -> list[FloatArray]:
    """Return the numbers that a mapping gives the levels of each axis, down to those that are needed."""
    if not isinstance(stated, Mapping):
        raise ArgumentError(
            argument,
            f"must give numbers to the levels of axes, not be {kind_of_object(stated)}.",
            hint=_example(argument, domain),
        )
    unknown = [name for name in stated if name not in domain.axes]
    if unknown:
        raise ArgumentError(
            argument,
            f"names unknown axes: {quote(unknown)}.",
            hint=f"{did_you_mean(unknown, list(domain.axes))}the axes are {listed(list(domain.axes))}. "
            f"{_example(argument, domain)}",
        )
    numbers = []
    for (name, axis), tree in zip(domain.axes.items(), domain.tree.axes, strict=True):
        levels = by_level(f"{argument}[{name!r}]", stated.get(name, {}), ("total", *axis.by), default)
        numbers.append(levels[: tree.depth + 1])
    return numbers


def _example(argument: str, domain: CrossedDomain) -> str:
    name, axis = next(iter(domain.axes.items()))
    return f"For example {argument}={{{name!r}: {{{quote(axis.by[0])}: 0.5, ...}}}}."


def _stated_split(domain: CrossedDomain, split: Any) -> Split | list[FloatArray]:
    """Check a split, and return its name or the shares of the levels of each axis."""
    if isinstance(split, str):
        check_choice("split", split, SPLITS)
        return cast(Split, split)
    shares = _by_axis("split", split, domain, 0.0)
    for name, own in zip(domain.axes, shares, strict=True):
        if not math.isclose(own.sum(), 1.0, abs_tol=1e-6):
            raise ArgumentError(
                "split",
                f"must give the levels of each axis shares that sum to 1, and those of {name!r} sum to "
                f"{own.sum():g}.",
                hint="the share of a margin is the product of those of its levels.",
            )
    return shares


def crossed_known(domain: CrossedDomain, known: Any, quantity: Quantity = COUNT) -> CrossedKnown:
    """Read public counts of the nodes of one axis, and add the structural zeros of all."""
    if isinstance(known, CrossedKnown) and known.product == domain.tree:
        return known
    if known is not None and quantity != COUNT:
        raise ArgumentError(
            "known",
            "holds counts of records, which do not give the sums of a column.",
            hint="leave out `known`.",
        )
    stated: dict[str, dict[Hashable, Any]] = {name: {} for name in domain.axes}
    if isinstance(known, pd.DataFrame):
        return _known_of_frame(domain, known)
    if known is not None and not isinstance(known, Mapping):
        raise ArgumentError(
            "known",
            f"must map levels of one axis to counts, not be {kind_of_object(known)}.",
            hint='for example known={"state": populations}, indexed as groupby(["state"]) would be; or a '
            "frame with the keys of one axis and a column count.",
        )
    owner = {level: name for name, axis in domain.axes.items() for level in axis.by}
    unknown = [level for level in known or {} if level not in owner and level != "total"]
    if unknown:
        raise ArgumentError(
            "known",
            f"names unknown levels: {quote(unknown)}.",
            hint=f"{did_you_mean(unknown, list(owner))}the levels are {listed(list(owner))}.",
        )
    named = [owner[level] for level in known or {} if level in owner]
    for level, counts in (known or {}).items():
        stated[owner.get(level, named[0] if named else next(iter(stated)))][level] = counts
    return _of_axes(domain, {name: given or None for name, given in stated.items()})


def _known_of_frame(domain: CrossedDomain, known: pd.DataFrame) -> CrossedKnown:
    """Read public counts from a frame that has the keys of one axis."""
    named = [name for name, axis in domain.axes.items() if axis.by[0] in known.columns]
    if len(named) != 1 or "at_least" in known.columns:
        raise ArgumentError(
            "known",
            "must have the keys of one axis, from the coarsest, and a column count."
            if len(named) != 1
            else "has lower bounds, which crossed hierarchies do not take.",
            hint=f"the axes are {listed(domain.axes)}; other counts cannot be kept exactly.",
        )
    return _of_axes(domain, {name: known if name in named else None for name in domain.axes})


def _of_axes(domain: CrossedDomain, stated: Mapping[str, Any]) -> CrossedKnown:
    """Read what is known of each axis, down to the levels that are needed."""
    axes = []
    for (name, axis), tree in zip(domain.axes.items(), domain.tree.axes, strict=True):
        full = Known.read(axis, stated[name])
        down = slice(tree.depth + 1)
        axes.append(Known(full.exact[down], full.least[down]))
    return CrossedKnown(domain.tree, tuple(axes))
