"""The groups of a distribution: their columns, and how many records they are known to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pandas_dptree.errors import ArgumentError, ColumnsError, is_name, kind_of_object, naming, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.distribution import COMPANIONS

__all__ = ["check_columns", "known_totals"]


def check_columns(column: Any, domain: Any) -> None:
    """Check that the column, the groups and the columns of the tables have different names."""
    if column is None or not is_name(column):
        raise ArgumentError(
            "column",
            f"must name one column, not {quote(column)}.",
            hint=naming("column", "fare", column),
        )
    if domain is None:
        return
    if not isinstance(domain, Domain):
        raise ArgumentError(
            "domain",
            f"must be a Domain, not {kind_of_object(domain)}.",
            hint="make one from public keys, for example with Domain.from_frame.",
        )
    clashing = [key for key in domain.by if key in (column, *COMPANIONS)]
    if clashing:
        raise ColumnsError(
            "by",
            "names columns that the tables of a distribution use themselves",
            columns=clashing,
            hint=f"rename or copy the columns; the value column and {', '.join(COMPANIONS)} are taken.",
        )
    if column in ("level", *COMPANIONS):
        raise ColumnsError(
            "column",
            "has the name of another column of the tables",
            columns=[column],
            hint=f"rename it; with groups, the names level, {', '.join(COMPANIONS)} are taken.",
        )


def known_totals(domain: Domain | None, known: Any) -> tuple[IntArray, ...]:
    """Return the known numbers of records in the order of the groups; -1 where unknown."""
    if domain is None:
        if known is None:
            return (np.full(1, -1, dtype=np.int64),)
        count = known["total"] if isinstance(known, Mapping) and set(known) == {"total"} else None
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or not 0 <= count <= 2**40:
            raise ArgumentError(
                "known",
                f"must give the number of all records, from 0 to 2**40, not {quote(known)}.",
                hint='for example {"total": 10_000}.',
            )
        return (np.full(1, int(count), dtype=np.int64),)
    public = Known.read(domain, known)
    return tuple(
        np.where(np.broadcast_to(exact, size), np.broadcast_to(least, size), -1)
        for exact, least, size in zip(public.exact, public.least, domain.tree.level_sizes, strict=True)
    )
