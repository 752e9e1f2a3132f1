"""Hierarchies whose last keys nobody can list: which of them exist is a secret of the records."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, DomainError, is_name, kind_of_object, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.combine import By, Derived
from pandas_dptree.hierarchy.names import ROOT, check_by

__all__ = ["PrivateKeys", "split_by"]


PrivateNames = tuple[Hashable, ...]

_MOST_COLUMNS = 64
"""With more levels, noise for all of them takes long to find, and next to nothing would be shown."""

_OWN_COLUMNS = ("max_error", "other")
"""Columns of a table with private keys that other tables do not have; no key may have their names."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivateKeys:
    """A hierarchy of public keys, all of which are shown, and of private ones below them.

    **Privacy**: public. It names columns, and holds no private key.
    """

    columns: tuple[Hashable, ...]
    domain: Domain | None = None

    def __post_init__(self) -> None:
        """Check the names of the columns and the public keys."""
        object.__setattr__(self, "columns", check_by(self.columns, argument="private_keys"))
        if len(self.columns) > _MOST_COLUMNS:
            raise ArgumentError(
                "private_keys",
                f"names {len(self.columns):,} columns, more than {_MOST_COLUMNS}.",
                hint='name the columns, as in private_keys=["city", "product"], not the keys in them.',
            )
        if self.domain is not None and not isinstance(self.domain, Domain):
            raise DomainError(
                f"must be a Domain of the public keys, not {kind_of_object(self.domain)}.",
                hint="make one with dpt.Domain.from_frame(places, by=[...]), or pass None if all keys are "
                "private.",
            )
        clashing = [name for name in self.level_names if name in _OWN_COLUMNS]
        if clashing:
            raise ColumnsError(
                "private_keys",
                "would give two columns of the released table the same name",
                columns=clashing,
                hint="rename the columns in the records and in the domain.",
            )
        if self.domain is None:
            return
        check_by([*self.domain.by, *self.columns], argument="private_keys")
        if len(self.domain.structural_zeros):
            raise DomainError(
                "has structural zeros, which a table with private keys cannot show.",
                hint="leave these leaves out of the domain.",
            )

    @property
    def public_names(self) -> tuple[Hashable, ...]:
        """Names of the public keys, from the coarsest to the finest."""
        return () if self.domain is None else self.domain.by

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root down."""
        return (ROOT, *self.public_names, *self.columns)

    @property
    def n_public(self) -> int:
        """Number of levels whose nodes are all shown; the root is one of them."""
        return 1 + len(self.public_names)


def split_by(by: By, private_keys: Sequence[Hashable]) -> tuple[list[Hashable | Derived], PrivateNames]:
    """Divide `by` into its public levels and the names of the private keys, which come last."""
    names = check_by(private_keys, argument="private_keys")
    levels: list[Any] = list(by) if isinstance(by, (list, tuple, pd.Index, np.ndarray)) else [by]
    last = levels[-len(names) :]
    plain = all(is_name(level) and not isinstance(level, DerivedLevels) for level in last)
    if not plain or tuple(last) != names:
        raise ArgumentError(
            "private_keys",
            f"must be the last keys of `by`, in the same order, not {quote(list(names))}.",
            hint="put the keys that nobody can list last in `by`. Derived levels are public.",
        )
    return levels[: -len(names)], names
