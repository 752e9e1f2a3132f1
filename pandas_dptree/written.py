"""Plans as plain JSON, to be approved today and released tomorrow."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError, DomainError, DPTreeError
from pandas_dptree.estimation.consistency import CONSISTENCIES, FITS
from pandas_dptree.hierarchy.domain import Domain, fingerprint
from pandas_dptree.hierarchy.known import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.split import SPLITS
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import Quantity

if TYPE_CHECKING:
    from pandas_dptree.plan import Plan

__all__ = ["read_plan", "write_plan"]

_FORMAT = "pandas_dptree plan, version 1"


def write_plan(plan: Plan) -> dict[str, Any]:
    """Write a plan down: see `Plan.to_dict`."""
    for argument, name in (("privacy_unit", plan.privacy_unit), ("column", plan.quantity.column)):
        if not isinstance(name, (str, int, type(None))):
            raise ArgumentError(
                argument, f"cannot be written down: {name!r}.", hint="give the column a name that is text."
            )
    return {
        "format": _FORMAT,
        "version": __version__,
        "domain": fingerprint(plan.domain or plan.tree),
        "levels": [str(name) for name in plan.level_names],
        "loss": plan.loss.to_dict(),
        "mechanism": plan.noise.name,
        "neighbors": plan.neighbors,
        "privacy_unit": plan.privacy_unit,
        "max_contributions": plan.max_contributions,
        "consistency": plan.consistency,
        "fit": plan.fit,
        "quantity": {
            "column": plan.quantity.column,
            "low": plan.quantity.low,
            "high": plan.quantity.high,
            "unit": list(plan.quantity.unit.as_integer_ratio()),
            "shift": plan.quantity.shift,
        },
        "known": plan.known.to_dict(),
        "confidence": plan.confidence,
        "keep_measurements": plan.keep_measurements,
        "split": plan.split,
        "objective": plan.objective,
        "level_weights": plan.level_weights.tolist(),
        "shares": [share.tolist() for share in plan.node_shares],
    }


def read_plan(make: type[Plan], data: Mapping[str, Any], domain: Domain | Tree) -> Plan:
    """Read a plan that was written down: see `Plan.from_dict`."""
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise ArgumentError(
            "data", "is not a plan of this version.", hint="pass what Plan.to_dict() returned."
        )
    if not isinstance(domain, (Domain, Tree)) or fingerprint(domain) != data.get("domain"):
        raise DomainError(
            "is not the one that this plan was made for.",
            hint="load the same public keys, as the same types (from a CSV file, keys are text); "
            "if they have changed since, plan anew.",
        )
    tree = domain if isinstance(domain, Tree) else domain.tree
    noises = {noise.name: noise for noise in (Laplace(), Gaussian())}
    try:
        return make(
            tree=tree,
            domain=domain if isinstance(domain, Domain) else None,
            loss=PrivacyLoss(**data["loss"]),
            noise=noises[data["mechanism"]],
            neighbors=data["neighbors"],
            privacy_unit=data["privacy_unit"],
            max_contributions=data["max_contributions"],
            consistency=CONSISTENCIES[CONSISTENCIES.index(data["consistency"])],
            fit=FITS[FITS.index(data["fit"])],
            quantity=Quantity(**{**data["quantity"], "unit": Fraction(*data["quantity"]["unit"])}),
            known=Known.read(domain, Known.from_dict(tree, data["known"])),
            confidence=data["confidence"],
            keep_measurements=data["keep_measurements"],
            split=data["split"] if data["split"] in SPLITS else "given",
            objective=data["objective"],
            level_weights=np.array(data["level_weights"], dtype=np.float64),
            node_shares=tuple(np.array(share, dtype=np.float64) for share in data["shares"]),
        )
    except DPTreeError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ArgumentError(
            "data", f"is not a whole plan: {error!r}.", hint="pass what Plan.to_dict() returned."
        ) from None
