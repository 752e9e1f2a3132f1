"""The search for the best plan of a hierarchy that nobody can list: a tree of prefixes, or private keys."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pandas_dptree.errors import ArgumentError, check_choice, listed, quote
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.mechanisms.private_levels import PRIVATE_MECHANISMS
from pandas_dptree.planning.private_split import (
    PRIVATE_SPLITS,
    PrivateSplit,
    best_noise,
)
from pandas_dptree.plans.doubtful_arguments import warn_of_arguments
from pandas_dptree.plans.implicit import ImplicitPlan, caps_in_tree, check_delta
from pandas_dptree.plans.implicit_multiplicative import ImplicitMultiplicativePlan
from pandas_dptree.plans.options import (
    IMPLICIT,
    RELATIVE_ERROR,
    require_supported,
    with_defaults,
)
from pandas_dptree.privacy.caps import stated_caps
from pandas_dptree.privacy.loss import PrivacyLoss, warn_if_useless
from pandas_dptree.privacy.unit import protected

__all__ = ["find_implicit_plan"]

_CONFIDENCE = 0.95
_OR_MULTIPLICATIVE = ", or dpt.Multiplicative(alpha=0.25) for counts with bounded relative error"


def find_implicit_plan(
    tree: PrefixTree | PrivateKeys, **options: Any
) -> ImplicitPlan | ImplicitMultiplicativePlan:
    """Find the plan for a hierarchy that nobody can list: see `pandas_dptree.plan`."""
    mechanism: Any = options.pop("mechanism", "auto")
    if isinstance(tree, PrivateKeys):
        what, hint = "tables with private keys", "leave it out, or list the keys in `domain`."
        taken, or_else = tree.level_names[1:], ""
    else:
        what, hint = "a tree of all prefixes", "leave it out, or list the leaves."
        taken, or_else = tree.columns, _OR_MULTIPLICATIVE
    own = require_supported(IMPLICIT, options, what=what, hint=hint)
    if isinstance(tree, PrefixTree) and isinstance(mechanism, Multiplicative):
        return _find_multiplicative_plan(tree, mechanism, own)
    given = with_defaults(IMPLICIT, own)
    check_choice("mechanism", mechanism, PRIVATE_MECHANISMS, or_else=or_else)
    if isinstance(tree, PrivateKeys) and given["privacy_unit"] is None:
        raise ArgumentError(
            "privacy_unit",
            "must be given with private keys: labels are published as they are, and somebody with many rows "
            "would publish their own.",
            hint='for example privacy_unit="person", max_contributions=3; or privacy_unit=dpt.ROWS to state '
            "that each row is a unit of its own.",
        )
    loss = PrivacyLoss(epsilon=given["epsilon"], delta=given["delta"], rho=given["rho"])
    check_delta(loss)
    warn_of_arguments(loss, tree.domain if isinstance(tree, PrivateKeys) else tree)
    names = tree.level_names
    unit, rows = protected(given["privacy_unit"], given["max_contributions"], taken=taken)
    caps = stated_caps(given["max_per_leaf"], given["max_per_node"], names, unit)
    noise, shares = best_noise(
        mechanism,
        _shares(given["split"], names),
        loss,
        len(names),
        tree.n_public,
        neighbors=given["neighbors"],
        max_contributions=rows,
        caps=caps_in_tree(tree, caps),
    )
    return ImplicitPlan(
        tree=tree,
        loss=loss,
        noise=noise,
        budget_shares=shares,
        neighbors=given["neighbors"],
        privacy_unit=unit,
        max_contributions=rows,
        caps=caps,
        confidence=_CONFIDENCE if given["confidence"] is None else given["confidence"],
        keep=given["keep"],
    )


def _find_multiplicative_plan(
    tree: PrefixTree, mechanism: Multiplicative, options: Mapping[str, Any]
) -> ImplicitMultiplicativePlan:
    """Plan counts with bounded relative error of a tree of prefixes."""
    own = require_supported(
        RELATIVE_ERROR,
        options,
        what="counts with bounded relative error",
        hint='leave it out, or use mechanism="truncated_laplace" or "gaussian".',
    )
    given = with_defaults(RELATIVE_ERROR, own)
    loss = PrivacyLoss(epsilon=given["epsilon"], delta=given["delta"])
    warn_if_useless(loss)
    unit: dict[str, Any] = {name: given[name] for name in ("neighbors", "privacy_unit", "max_contributions")}
    return ImplicitMultiplicativePlan(tree=tree, loss=loss, mechanism=mechanism, **unit)


def _shares(split: object, names: Sequence[Hashable]) -> PrivateSplit | tuple[float, ...]:
    """Check a split, and return its name or the share of each level."""
    if isinstance(split, str) and split in PRIVATE_SPLITS:
        return split
    shares = tuple(split.get(name, 0.0) for name in names) if isinstance(split, Mapping) else ()
    numbers = all(
        isinstance(share, (int, float, np.number)) and math.isfinite(share) and share > 0 for share in shares
    )
    fits = isinstance(split, Mapping) and numbers and set(split) <= set(names)
    if not fits or not math.isclose(math.fsum(shares), 1, rel_tol=1e-9):
        raise ArgumentError(
            "split",
            f"must be {', '.join(map(repr, PRIVATE_SPLITS))} or a share above 0 for each level, not "
            f"{quote(split)}.",
            hint=f"the levels are {listed(names)}; shares must sum to 1.",
        )
    return shares
