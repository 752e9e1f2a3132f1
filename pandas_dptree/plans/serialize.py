"""Plans as plain JSON: what the forms of all kinds have in common, and how they are read safely."""

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
_HINT = "pass what to_dict() of a plan returned."


def name(argument: str, column: Hashable) -> str | int | None:
    """Give the name of a column, if plain JSON can hold it.

    Raises
    ------
    ArgumentError
        If it cannot.
    """
    if column is None or isinstance(column, (str, int)):
        return column
    raise ArgumentError(
        argument, f"cannot be written down: {quote(column)}.", hint="give the column a name that is text."
    )


def choice(value: Any, choices: tuple[Any, ...]) -> Any:
    """Give the one of some choices that JSON names.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    return choices[choices.index(value)]


def fingerprint_of(hierarchy: Any) -> str | None:
    """Digest a public hierarchy, to tell whether another one is the same; None stays None."""
    if isinstance(hierarchy, PrefixTree):
        return hashlib.sha256(ascii(hierarchy.definition).encode()).hexdigest()
    return None if hierarchy is None else fingerprint(hierarchy)


def kind_of(data: Any, kinds: Mapping[str, Kind]) -> Kind:
    """Find which of some kinds of plans is described.

    Raises
    ------
    ArgumentError
        If `data` describes no plan.
    """
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ArgumentError(
            "data",
            "is not a plan of this version.",
            hint="pass what to_dict() of a plan returned, or json.loads of a file; plan anew if it is older.",
        )
    found = data.get("kind")
    if not isinstance(found, str) or found not in kinds:
        raise ArgumentError("data", "is not a whole plan: it is of no known kind.", hint=_HINT)
    return kinds[found]


def read(make: Callable[..., Made], data: Mapping[str, Any], hierarchy: Any) -> Made:
    """Make a plan of what is described, for the hierarchy that it was made for.

    Parameters
    ----------
    make : callable
        Takes the description, the hierarchy, and by name what all plans have.
    data : mapping
        The description.
    hierarchy : Domain, Tree, BitPrefixes, CharPrefixes or None

    Raises
    ------
    DomainError
        If the hierarchy is another one.
    ArgumentError
        If the description is not whole, or not of a plan that can be.
    """
    known = hierarchy is None or isinstance(hierarchy, (Domain, Tree, PrefixTree))
    if not known or (hierarchy is None and data.get("domain") is not None):
        raise DomainError(
            f"must be the one that this plan was made for, not {kind_of_object(hierarchy)}.",
            hint="make it of the same public keys with dpt.Domain.from_frame(places, by=[...]).",
        )
    if not known or "domain" not in data or fingerprint_of(hierarchy) != data["domain"]:
        raise DomainError(
            "is not the one that this plan was made for.",
            hint="load the same public keys, as the same types (from a CSV file, keys are text); "
            "if they have changed since, plan anew.",
        )
    try:
        if data["max_contributions"] is None:  # which arguments may leave to a default, and a file may not
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
        raise ArgumentError("data", f"is not a whole plan: {fact}", hint=hint) from None


def check_same(what: str, said: Any, found: Any) -> None:
    """Refuse a description that contradicts the plan that was made of it.

    Raises
    ------
    ArgumentError
    """
    if type(said) is not type(found) or said != found:
        raise ArgumentError(
            "data", f"is not a whole plan: its {what} is {quote(said)}, not {quote(found)}.", hint=_HINT
        )


def _as_recorded(domain: Domain, source: Any) -> Domain:
    """Let the keys come from where a plan or the domain says, whichever is less certain to be public.

    That observed keys were written down since, or that public ones are found in the data, changes nothing.
    """
    return dataclasses.replace(domain, source=max(domain.source, source, key=SOURCES.index))
