"""Plans as plain JSON, to be approved today and released tomorrow.

All plans say alike for which domain they were made, whom they protect and at which loss. Their field
``mechanism`` tells of which kind they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError, DomainError, DPTreeError, told
from pandas_dptree.estimation.consistency import CONSISTENCIES, FITS
from pandas_dptree.hierarchy.domain import SOURCES, Domain, fingerprint, source_of
from pandas_dptree.hierarchy.known import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.mechanisms.guarantees import Multiplicative
from pandas_dptree.planning.split import SPLITS
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import Quantity

if TYPE_CHECKING:
    from pandas_dptree.plans.additive import Plan
    from pandas_dptree.plans.distribution import DistributionPlan
    from pandas_dptree.plans.multiplicative import MultiplicativePlan

__all__ = [
    "plan_kind",
    "read_distribution_plan",
    "read_multiplicative_plan",
    "read_plan",
    "write_distribution_plan",
    "write_multiplicative_plan",
    "write_plan",
]

Kind = Literal["Plan", "MultiplicativePlan", "DistributionPlan"]
AnyPlan = TypeVar("AnyPlan")

_FORMAT = "pandas_dptree plan, version 1"
_HINT = "pass what to_dict() of a plan returned."
_NOISES = {noise.name: noise for noise in (Laplace(), Gaussian())}
_MULTIPLICATIVE = "multiplicative"
_DISTRIBUTION = "distribution"


def write_plan(plan: Plan) -> dict[str, Any]:
    """Write a plan down: see `Plan.to_dict`."""
    return {
        **_common(plan, plan.domain or plan.tree),
        "mechanism": plan.noise.name,
        "consistency": plan.consistency,
        "fit": plan.fit,
        "quantity": {
            "column": _name("column", plan.quantity.column),
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


def write_multiplicative_plan(plan: MultiplicativePlan) -> dict[str, Any]:
    """Write a plan down: see `MultiplicativePlan.to_dict`."""
    guarantee = dataclasses.asdict(plan.mechanism)
    return {
        **_common(plan, plan.domain or plan.tree),
        "mechanism": _MULTIPLICATIVE,
        "guarantee": guarantee,
    }


def write_distribution_plan(plan: DistributionPlan, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Write a plan down, with the fields that no other kind has: see `DistributionPlan.to_dict`."""
    common = {**_common(plan, plan.domain), "domain_source": plan.domain_source}
    return {**common, "mechanism": _DISTRIBUTION, **fields}


def _common(
    plan: Plan | MultiplicativePlan | DistributionPlan, hierarchy: Domain | Tree | None
) -> dict[str, Any]:
    """Write down what all plans have."""
    return {
        "format": _FORMAT,
        "version": __version__,
        "domain": None if hierarchy is None else fingerprint(hierarchy),
        "domain_source": source_of(hierarchy),
        "levels": [str(name) for name in plan.level_names],
        "loss": plan.loss.to_dict(),
        "neighbors": plan.neighbors,
        "privacy_unit": _name("privacy_unit", plan.privacy_unit),
        "max_contributions": int(plan.max_contributions),
    }


def plan_kind(data: Any) -> Kind:
    """Tell which class reads a plan that was written down.

    Raises
    ------
    ArgumentError
        If `data` is no plan.
    """
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise ArgumentError("data", "is not a plan of this version.", hint=_HINT)
    mechanism = data.get("mechanism")
    if mechanism == _MULTIPLICATIVE:
        return "MultiplicativePlan"
    if mechanism == _DISTRIBUTION:
        return "DistributionPlan"
    if isinstance(mechanism, str) and mechanism in _NOISES:
        return "Plan"
    raise ArgumentError("data", "is not a whole plan: it names no known mechanism.", hint=_HINT)


def read_plan(make: type[Plan], data: Mapping[str, Any], domain: Domain | Tree) -> Plan:
    """Read a plan that was written down: see `Plan.from_dict`."""

    def fields() -> dict[str, Any]:
        quantity, tree = data["quantity"], _tree(domain)
        return {
            "tree": tree,
            "noise": _NOISES[data["mechanism"]],
            "consistency": CONSISTENCIES[CONSISTENCIES.index(data["consistency"])],
            "fit": FITS[FITS.index(data["fit"])],
            "quantity": Quantity(**{**quantity, "unit": Fraction(*quantity["unit"])}),
            "known": Known.read(domain, Known.from_dict(tree, data["known"])),
            "confidence": data["confidence"],
            "keep_measurements": data["keep_measurements"],
            "split": data["split"] if data["split"] in SPLITS else "given",
            "objective": data["objective"],
            "level_weights": np.array(data["level_weights"], dtype=np.float64),
            "node_shares": tuple(np.array(share, dtype=np.float64) for share in data["shares"]),
        }

    return _read("Plan", make, fields, data, domain)


def read_multiplicative_plan(
    make: type[MultiplicativePlan], data: Mapping[str, Any], domain: Domain | Tree
) -> MultiplicativePlan:
    """Read a plan that was written down: see `MultiplicativePlan.from_dict`."""

    def fields() -> dict[str, Any]:
        # none may be left to its default
        names = [field.name for field in dataclasses.fields(Multiplicative)]
        guarantee = Multiplicative(**{name: data["guarantee"][name] for name in names})
        return {"tree": _tree(domain), "mechanism": guarantee}

    return _read("MultiplicativePlan", make, fields, data, domain)


def read_distribution_plan(
    make: type[DistributionPlan],
    fields: Callable[[], dict[str, Any]],
    data: Mapping[str, Any],
    domain: Domain | None,
) -> DistributionPlan:
    """Read a plan that was written down: see `DistributionPlan.from_dict`."""
    return _read("DistributionPlan", make, fields, data, domain)


def _tree(hierarchy: Domain | Tree) -> Tree:
    return hierarchy if isinstance(hierarchy, Tree) else hierarchy.tree


def _read(
    kind: Kind,
    make: Callable[..., AnyPlan],
    fields: Callable[[], dict[str, Any]],
    data: Mapping[str, Any],
    domain: Domain | Tree | None,
) -> AnyPlan:
    """Read what all plans have, and with it the fields of one kind."""
    found = plan_kind(data)
    if found != kind:
        raise ArgumentError(
            "data", f"is a {found}, not a {kind}.", hint=f"read it with {found}.from_dict(data, domain)."
        )
    if not _is_for(kind, domain, data.get("domain", "")):
        raise DomainError(
            "is not the one that this plan was made for.",
            hint="load the same public keys, as the same types (from a CSV file, keys are text); "
            "if they have changed since, plan anew.",
        )
    try:
        if data["max_contributions"] is None:  # which arguments may leave to a default, and a file may not
            raise ValueError("max_contributions is null")
        return make(
            domain=_as_recorded(domain, data["domain_source"]) if isinstance(domain, Domain) else None,
            loss=PrivacyLoss(**data["loss"]),
            neighbors=data["neighbors"],
            privacy_unit=_name("privacy_unit", data["privacy_unit"]),
            max_contributions=data["max_contributions"],
            **fields(),
        )
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        fact, hint = (error.fact, error.hint) if isinstance(error, DPTreeError) else (f"{error!r}.", _HINT)
        raise ArgumentError("data", f"is not a whole plan: {fact}", hint=hint) from None


def _is_for(kind: Kind, domain: Any, recorded: Any) -> bool:
    """Whether a plan was made for a domain; that of a distribution may be for none, and never for a tree."""
    if kind == "DistributionPlan" and domain is None:
        return recorded is None
    kinds = Domain if kind == "DistributionPlan" else (Domain, Tree)
    return isinstance(domain, kinds) and fingerprint(domain) == recorded


def _as_recorded(domain: Domain, source: Any) -> Domain:
    """Let the keys come from where a plan or the domain says, whichever is less certain to be public.

    That observed keys were written down since, or that public ones are found in the data, changes nothing.
    """
    return dataclasses.replace(domain, source=max(domain.source, source, key=SOURCES.index))


def _name(argument: str, name: Hashable) -> str | int | None:
    """Give the name of a column, if plain JSON can hold it."""
    if name is None or isinstance(name, (str, int)):
        return name
    raise ArgumentError(
        argument, f"cannot be written down: {told(name)}.", hint="give the column a name that is text."
    )
