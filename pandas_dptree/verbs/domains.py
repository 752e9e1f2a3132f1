"""The public domain of a release of records, made from the arguments of a call."""

from __future__ import annotations

from typing import Any

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import By, derived_domain, named
from pandas_dptree.ingest.contributions import key_frame
from pandas_dptree.ingest.frames import check_columns

__all__ = ["domain_of"]


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
            hint='pass a frame of the public keys, one row per leaf; or "observed" to state that the keys in '
            'the records are public, or "categories" to state that the categories of categorical keys are.',
        )
    return derived_domain(by, domain)
