"""The public domain of a release of records, made from the arguments of a call."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from pandas_dptree.errors import ArgumentError, DomainError, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import By, derived_domain, named
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.private_keys import PrivateNames, split_by
from pandas_dptree.ingest.contributions import key_frame
from pandas_dptree.ingest.frames import check_columns

__all__ = ["domain_of", "public_and_private"]


def domain_of(frame: Any, by: By, domain: Any) -> Domain:
    """Make the public domain of a release of records, or raise ArgumentError.

    `by` and `domain` are those of `tree_counts`. The keys in `frame` are read only for ``"observed"``, and
    its types only for ``"categories"``.
    """
    names, derived = named(by)
    if isinstance(domain, Domain) and domain.by == names:
        if [levels.definition for levels in domain.derived] != [levels.definition for levels in derived]:
            raise ArgumentError(
                "domain",
                "has different derived levels than `by`.",
                hint="pass only the public keys of the plain columns.",
            )
        return domain
    plain = [name for name in names if not any(name in levels.names for levels in derived)]
    if plain and isinstance(domain, str) and domain == "observed":
        domain = Domain.observed(key_frame(frame, plain), by=plain)
    elif plain and isinstance(domain, str) and domain == "categories":
        check_columns(frame, plain)
        domain = Domain.from_categories(frame, by=plain)
    elif plain and (domain is None or isinstance(domain, str)):
        raise ArgumentError(
            "domain",
            f"must be given for the keys {quote(list(plain))}"
            f"{'; derived levels define their own keys' * bool(derived)}: "
            "which keys exist is information about the records."
            if domain is None
            else f"is unknown: {quote(domain)}.",
            hint="if you have a list of the keys that does not come from the records, pass it as a frame, one "
            'row per leaf. If everybody may know which keys the records have, state that with "observed" (or '
            '"categories", for the categories of categorical keys). If nobody can list the keys, pass '
            f"private_keys={quote(list(plain[-1:]))} and a delta: only keys that many units share are "
            "released.",
        )
    return derived_domain(by, domain)


def public_and_private(
    frame: Any, by: By, domain: Any, private_keys: Sequence[Hashable] | None
) -> tuple[Domain | None, PrivateNames | None]:
    """Make the public domain of a release of records, and check the names of its private keys.

    The arguments are those of `tree_counts`. The domain is None if all keys are private, and the names are
    None if none is.
    """
    if private_keys is None:
        return domain_of(frame, by, domain), None
    if isinstance(by, PrefixTree):
        raise ArgumentError(
            "private_keys",
            "cannot be given with a tree of all prefixes: its nodes need no list.",
            hint="leave it out; or put the prefixes into a list, followed by the private keys.",
        )
    levels, names = split_by(by, private_keys)
    if levels:
        return domain_of(frame, levels, domain), names
    if domain is not None:
        raise DomainError(
            "cannot be given if all keys are private.",
            hint="leave it out, or leave the keys that it lists out of `private_keys`.",
        )
    return None, names
