"""Combine plain keys and derived levels into the domain of one hierarchy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pandas_dptree.errors import ArgumentError, ColumnsError, DomainError, listed, quote
from pandas_dptree.hierarchy.domain import MAX_LEAVES, Domain, source_of
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.names import check_by
from pandas_dptree.signatures import public

__all__ = ["By", "Derived", "combined", "derived_domain", "named", "sole"]


Derived = DerivedLevels[Domain]
"""Levels that are derived from columns of the records."""

By = Sequence[Hashable] | Derived
"""Names of columns and derived levels, from the coarsest to the finest; or derived levels alone."""


def named(by: By) -> tuple[tuple[Hashable, ...], tuple[Derived, ...]]:
    """Return the names of all keys of `by`, and the derived levels in it."""
    if isinstance(by, DerivedLevels) and by.implicit:
        raise ArgumentError(
            "by",
            "is an implicit tree of prefixes, which only `tree_counts` and `plan` support.",
            hint="put it into a list, as in by=[prefixes(...)]; then all its nodes are listed.",
        )
    listed: Any = [by] if isinstance(by, DerivedLevels) else by
    if isinstance(listed, (list, tuple)):
        derived = tuple(each for each in listed if isinstance(each, DerivedLevels))
        listed = [
            name for each in listed for name in (each.names if isinstance(each, DerivedLevels) else [each])
        ]
        names = check_by(listed)
        _check_sources(derived)
        return names, derived
    return check_by(listed), ()


def _check_sources(derived: Sequence[Derived]) -> None:
    """Refuse two derived levels of one column: most combinations of their keys could not occur."""
    read = [name for levels in derived for name in levels.columns]
    twice = list(dict.fromkeys(name for place, name in enumerate(read) if name in read[:place]))
    if twice:
        raise ColumnsError(
            "by", "derives levels more than once from the columns", columns=twice,
            hint='most of their combinations cannot occur: make them in one call, such as '
            'calendar("date", ["quarter", "month"], ...), '
            'cut("age", levels={"group": [...], "band": 1}), or prefixes with several lengths.',
        )  # fmt: skip


@public
def derived_domain(by: By, places: Any = None) -> Domain:
    """Make the public domain of levels of which some are derived: all combinations with the plain keys.

    Parameters
    ----------
    by : sequence
        Names of columns, and derived levels (`calendar`, `cut`, `mapping`, `quadtree`, `prefixes`), from the
        coarsest to the finest.
    places : DataFrame, MultiIndex or Domain, optional
        The public leaves of the plain keys; left out if there are none.

    Raises
    ------
    ArgumentError
        If `by` or `places` cannot be used.
    DomainError
        If a path of `places` ends above a derived level, or there would be more than 10**8 leaves.

    Examples
    --------
    >>> import pandas as pd
    >>> import pandas_dptree as dpt
    >>> years = dpt.calendar("date", ["year"], start="2024-01-01", end="2025-12-31")
    >>> dpt.derived_domain(["state", years], pd.DataFrame({"state": ["CA", "WA"]}))
    Domain(by=('state', 'date_year'), level_sizes=(1, 2, 4))
    """
    names, derived = named(by)
    plain = tuple(name for name in names if not any(name in levels.names for levels in derived))
    if not plain:
        if places is not None:
            raise DomainError(
                "cannot be given if all levels are derived: they define their own domains.",
                hint="leave it out.",
            )
        return combined(names, derived, None)
    if places is None:
        raise DomainError(
            f"must be given for the keys {quote(list(plain))}"
            f"{'; derived levels define their own keys' * bool(derived)}.",
            hint="pass a frame with one row per leaf.",
        )
    if isinstance(places, Domain) and (places.by != plain or places.derived):
        raise DomainError(
            f"has the keys {listed(places.by)}, not {quote(list(plain))}.",
            hint="name the same columns in the same order.",
        )
    public = places if isinstance(places, Domain) else Domain.from_frame(places, by=plain)
    return combined(names, derived, public) if derived else public


def combined(names: tuple[Hashable, ...], derived: tuple[Derived, ...], plain: Domain | None) -> Domain:
    """Combine each leaf of the plain keys with each of the derived levels, in the order of the names."""
    for levels in derived:
        levels.check()
    if plain is None and len(derived) == 1:
        return replace(derived[0].domain, derived=derived)
    sizes = [] if plain is None else [plain.tree.n_leaves]
    sizes += [levels.n_leaves for levels in derived]
    if math.prod(sizes) > MAX_LEAVES:
        hints = [levels.smaller for levels in derived if levels.smaller] or ["leave out the finest levels"]
        raise DomainError(
            f"would have {_format_size(math.prod(sizes))} leaves, all combinations of "
            f"{' and '.join(map(_format_size, sizes))}.",
            hint=f"{hints[0]}; at most {MAX_LEAVES:,} can be made this way.",
        )
    factors = [*([] if plain is None else [plain]), *(levels.domain for levels in derived)]
    labels, forms, codes = {}, {}, {}
    zeros = np.zeros(math.prod(sizes), dtype=bool)
    for place, factor in enumerate(factors):
        before, after = math.prod(sizes[:place]), math.prod(sizes[place + 1 :])
        row = np.tile(np.repeat(np.arange(sizes[place]), after), before)
        zeros |= np.isin(row, factor.structural_zeros)
        paths = factor.path_codes(factor.tree.depth)
        for name, label, form, path in zip(factor.by, factor.labels, factor.forms, paths, strict=True):
            labels[name], forms[name], codes[name] = label, form, path[row]
    lowest = max((names.index(name) for levels in derived for name in levels.names), default=-1)
    if any((codes[name] < 0).any() for name in names[:lowest]):
        raise DomainError(
            "has paths that end early, above a derived level.",
            hint="put the derived levels first in `by`, or give all paths their full length.",
        )
    domain = Domain.from_codes(
        names,
        [labels[name] for name in names],
        [forms[name] for name in names],
        [codes[name] for name in names],
        zeros,
        derived,
    )
    return replace(domain, source=source_of(plain))


def sole(domain: Domain) -> Derived | None:
    """Return the derived levels if a domain has no others, so that its leaves are theirs; else None."""
    return domain.derived[0] if len(domain.derived) == 1 and not domain.plain else None


def _format_size(n: int) -> str:
    return f"{n:,}" if n < 10**15 else f"about 10**{math.log10(n):.0f}"
