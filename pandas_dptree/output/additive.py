"""Columns whose numbers add up, and those of distinct units, whose do not."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from pandas_dptree.errors import ArgumentError, quote

__all__ = ["adds_up", "require_additive", "stated_of"]


def stated_of(provenance: Mapping[str, Any], column: Hashable) -> Mapping[str, Any]:
    """Return what a table states of a column, in tables of several beside what it states of all."""
    several = provenance.get("quantities")
    own = several.get(str(column)) if isinstance(several, Mapping) else None
    return {**provenance, **own} if isinstance(own, Mapping) else provenance


def adds_up(provenance: Mapping[str, Any], column: Hashable) -> bool:
    """Whether the number of each node is the sum of those of its children, as far as the table states."""
    return stated_of(provenance, column).get("additive") is not False


def require_additive(
    provenance: Mapping[str, Any], column: Hashable, what: str, *, hint: str, argument: str = "released"
) -> None:
    """Refuse a column of distinct units: `what`, such as proportions, needs numbers that add up."""
    if not adds_up(provenance, column):
        raise ArgumentError(
            argument,
            f"counts distinct units, in the column {quote(column)}, and these do not add up: whoever is in "
            f"several nodes is counted in each. There are no {what} of such counts.",
            hint=hint,
        )
