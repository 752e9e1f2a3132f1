"""The search for the best plan that counts distinct units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from pandas_dptree.errors import ArgumentError, check_choice, quote
from pandas_dptree.hierarchy.domain import Domain, level_names
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.objective import OBJECTIVES, by_level
from pandas_dptree.planning.unit_split import unit_shares
from pandas_dptree.plans.doubtful_arguments import known_total, warn_of_arguments
from pandas_dptree.plans.options import UNITS, NoisyOptions, stated_loss, with_defaults
from pandas_dptree.plans.search import noises_for, stated_shares
from pandas_dptree.plans.units import UnitPlan
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.max_nodes import stated_max_nodes

__all__ = ["find_unit_plan"]


def find_unit_plan(domain: Domain | Tree, **options: Unpack[NoisyOptions]) -> UnitPlan:
    """Find the plan of least expected error: see `pandas_dptree.plan_units`."""
    given = with_defaults(UNITS, options)
    names = level_names(domain)
    tree = domain if isinstance(domain, Tree) else domain.tree
    max_nodes = stated_max_nodes(given["max_nodes"], names, tree.level_sizes)
    check_choice("objective", given["objective"], OBJECTIVES)
    public = _known(domain, given["known"])
    split = stated_shares(given["split"], names, public)
    stated = {} if given["level_weights"] is None else given["level_weights"]
    weights = by_level("level_weights", stated, names, 1.0)

    def planned(noise: AdditiveNoise, loss: PrivacyLoss) -> UnitPlan:
        shares = unit_shares(
            tree,
            max_nodes,
            noise=noise,
            loss=loss,
            neighbors=given["neighbors"],
            split=split,
            level_weights=weights,
            objective=given["objective"],
            least_squares=given["consistency"] != "none",
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
            objective=given["objective"],
            level_weights=weights,
            budget_shares=shares,
        )

    loss = stated_loss(given)
    plans = [planned(noise, loss) for noise in noises_for(given["mechanism"], loss)]
    warn_of_arguments(loss, domain, known_total(public))
    return min(plans, key=lambda plan: plan.expected_error)


def _known(domain: Domain | Tree, known: Any) -> Known:
    """Read the public total; other counts of distinct units, which do not add up, cannot be used."""
    root = level_names(domain)[0]
    if known is not None and not (isinstance(known, Mapping) and set(known) == {root}):
        raise ArgumentError(
            "known",
            "must be the total alone, where distinct units are counted: others do not add up to it.",
            hint=f"for example known={{{quote(root)}: 81203}}, if so many are known to be in the records.",
        )
    return Known.read(domain, known)
