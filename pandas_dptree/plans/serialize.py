"""Plans as plain JSON: the format that all kinds share, and safe reading."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from pandas_dptree.errors import ArgumentError, DomainError, DPTreeError, kind_of_object, quote
from pandas_dptree.hierarchy.domain import SOURCES, Domain, fingerprint
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["FORMAT", "check_same", "choice", "fingerprint_of", "kind_of", "name", "read"]

Kind = TypeVar("Kind")
Made = TypeVar("Made")

FORMAT = "pandas_dptree plan, version 2"
_HINT = "pass the result of a plan's to_dict()."


def name(argument: str, column: Hashable) -> str | int | None:
    """Return the name of a column, or raise ArgumentError if plain JSON cannot hold it."""
    if column is None or isinstance(column, (str, int)):
        return column
    raise ArgumentError(
        argument, f"cannot be serialized: {quote(column)}.", hint="rename the column to a string."
    )


def choice(value: Any, choices: tuple[Any, ...]) -> Any:
    """Return the choice that JSON names, or raise ValueError if there is no such choice."""
    return choices[choices.index(value)]


def fingerprint_of(hierarchy: Any) -> str | None:
    """Hash a public hierarchy, to recognize it later; None stays None."""
    if isinstance(hierarchy, PrefixTree):
        return hashlib.sha256(ascii(hierarchy.definition).encode()).hexdigest()
    return None if hierarchy is None else fingerprint(hierarchy)


def kind_of(data: Any, kinds: Mapping[str, Kind]) -> Kind:
    """Return the kind of plan that is described, or raise ArgumentError if there is none."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ArgumentError(
            "data",
            "is not a plan of this version.",
            hint="pass the result of a plan's to_dict(), or json.loads of a file; if older, plan again.",
        )
    found = data.get("kind")
    if not isinstance(found, str) or found not in kinds:
        raise ArgumentError("data", "is not a complete plan: its kind is unknown.", hint=_HINT)
    return kinds[found]


def read(make: Callable[..., Made], data: Mapping[str, Any], hierarchy: Any) -> Made:
    """Make a plan from its description `data` and the hierarchy that it was made for.

    `make` takes the description, the hierarchy, and as keywords the attributes that all plans have. Raises
    DomainError for another hierarchy, and ArgumentError if the description is incomplete or contradictory.
    """
    known = hierarchy is None or isinstance(hierarchy, (Domain, Tree, PrefixTree))
    if not known or (hierarchy is None and data.get("domain") is not None):
        raise DomainError(
            f"must be the one that this plan was made for, not {kind_of_object(hierarchy)}.",
            hint="make it from the same public keys with dpt.Domain.from_frame(places, by=[...]).",
        )
    if not known or "domain" not in data or fingerprint_of(hierarchy) != data["domain"]:
        raise DomainError(
            "is not the one that this plan was made for.",
            hint="load the same public keys, as the same types (from a CSV file, keys are text); "
            "if they have changed since, make a new plan.",
        )
    try:
        if data["max_contributions"] is None:  # arguments may leave it to a default, a file may not
            raise ValueError("max_contributions is null")
        if isinstance(hierarchy, Domain):
            hierarchy = _as_recorded(hierarchy, data["domain_source"])
        return make(
            data,
            hierarchy,
            loss=PrivacyLoss(**data["loss"]),
            neighbors=data["neighbors"],
            privacy_unit=name("privacy_unit", data["privacy_unit"]),
            max_contributions=data["max_contributions"],
        )
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        fact, hint = (error.fact, error.hint) if isinstance(error, DPTreeError) else (f"{error!r}.", _HINT)
        raise ArgumentError("data", f"is not a complete plan: {fact}", hint=hint) from None


def check_same(what: str, recorded: Any, found: Any) -> None:
    """Raise ArgumentError if a description contradicts the plan that was made from it."""
    if type(recorded) is not type(found) or recorded != found:
        raise ArgumentError(
            "data",
            f"is not a complete plan: its {what} is {quote(recorded)}, not {quote(found)}.",
            hint=_HINT,
        )


def _as_recorded(domain: Domain, source: Any) -> Domain:
    """Record the source of keys, the plan's or the domain's, that is less certain to be public.

    Observed keys remain observed, even if they were stored in a file since.
    """
    return dataclasses.replace(domain, source=max(domain.source, source, key=SOURCES.index))
