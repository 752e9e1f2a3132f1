"""The search for the best plan that counts distinct units."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from pandas_dptree.errors import ArgumentError, check_choice, quote
from pandas_dptree.estimation.estimators import estimator_for
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.hierarchy.areas import Area
from pandas_dptree.hierarchy.domain import Domain, level_names
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.objective import OBJECTIVES, Objective, by_level
from pandas_dptree.planning.split import Split
from pandas_dptree.planning.unit_split import unit_shares
from pandas_dptree.planning.unit_targets import UnitTarget
from pandas_dptree.plans.doubtful_arguments import known_total, warn_of_arguments
from pandas_dptree.plans.options import UNIT_PLAN, NoisyOptions, stated_loss, with_defaults
from pandas_dptree.plans.search import noises_for, plan_for, stated_shares, stated_targets
from pandas_dptree.plans.units import UnitPlan
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.max_nodes import MaxNodes, stated_max_nodes
from pandas_dptree.privacy.unit_sensitivity import unit_sensitivity

__all__ = ["find_unit_plan"]


def find_unit_plan(domain: Domain | Tree, **options: Unpack[NoisyOptions]) -> UnitPlan:
    """Find the plan of least expected error: see `pandas_dptree.plan_units`."""
    given = with_defaults(UNIT_PLAN, options)
    names = level_names(domain)
    tree = domain if isinstance(domain, Tree) else domain.tree
    max_nodes = stated_max_nodes(given["max_nodes"], names, tree.level_sizes)
    check_choice("objective", given["objective"], OBJECTIVES)
    public = _known(domain, given["known"])
    split = stated_shares(given["split"], names, public)
    stated = {} if given["level_weights"] is None else given["level_weights"]
    weights = by_level("level_weights", stated, names, 1.0)

    def planned(
        noise: AdditiveNoise,
        loss: PrivacyLoss,
        weights: FloatArray = weights,
        objective: Objective = given["objective"],
    ) -> UnitPlan:
        shares = unit_shares(
            tree,
            max_nodes,
            noise=noise,
            loss=loss,
            neighbors=given["neighbors"],
            split=split,
            level_weights=weights,
            objective=objective,
            least_squares=estimator_for(given["consistency"], "totals").combines_levels,
            known=public.exact,
        )
        return UnitPlan(
            tree=tree,
            domain=domain if isinstance(domain, Domain) else None,
            loss=loss,
            noise=noise,
            neighbors=given["neighbors"],
            privacy_unit=given["privacy_unit"],
            max_contributions=max_nodes[-1],
            max_nodes=max_nodes,
            known=public,
            consistency=given["consistency"],
            confidence=given["confidence"],
            keep=given["keep"],
            split=split if isinstance(split, str) else "given",
            objective=objective,
            level_weights=weights,
            budget_shares=shares,
        )

    if given["target"] is None:
        loss = stated_loss(given)
        plans = [planned(noise, loss) for noise in noises_for(given["mechanism"], loss)]
        plan = min(plans, key=lambda plan: plan.expected_error)
    else:
        plan = plan_for(_target(tree, names, max_nodes, split, public, given), given, planned)
    warn_of_arguments(plan.loss, domain, known_total(public))
    return plan


def _target(
    tree: Tree,
    names: Sequence[Hashable],
    max_nodes: MaxNodes,
    split: Split | FloatArray,
    public: Known,
    given: Mapping[str, Any],
) -> UnitTarget:
    """Read the errors that a target states for levels."""
    stated = given["target"]
    if isinstance(stated, Mapping) and any(isinstance(name, Area) for name in stated):
        raise ArgumentError(
            "target",
            "names an area, whose distinct units are not the sum of those of its nodes.",
            hint="name levels, for example {" + quote(names[-1]) + ": 25}.",
        )
    std_errors, widths = stated_targets(stated, names, given)
    alone = unit_sensitivity(max_nodes, neighbors=given["neighbors"], excess=[False] * tree.depth)
    return UnitTarget(
        tree=tree,
        names=names,
        std_errors=std_errors,
        sensitivity=alone.part(np.arange(2 * tree.depth + 1) <= tree.depth),
        split=split,
        least_squares=estimator_for(given["consistency"], "totals").combines_levels,
        known=public.exact,
        widths=widths,
        max_nodes=max_nodes,
        neighbors=given["neighbors"],
    )


def _known(domain: Domain | Tree, known: Any) -> Known:
    """Read the public total; other counts of distinct units, which do not add up, cannot be used."""
    root = level_names(domain)[0]
    if isinstance(known, Mapping):
        of_total = set(known) <= {root}
    else:  # a frame for all levels
        public = Known.read(domain, known)
        total = {root: int(public.least[0][0])} if public.exact[0].all() else None
        of_total = public.to_dict() == Known.read(domain, total).to_dict()
    if not of_total:
        raise ArgumentError(
            "known",
            "must be the total alone, where distinct units are counted: others do not add up to it.",
            hint=f"state that of {quote(root)} alone: a unit may be in several of the others.",
        )
    return Known.read(domain, known)
