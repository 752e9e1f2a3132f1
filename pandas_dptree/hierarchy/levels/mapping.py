"""Levels that a public table assigns to the values of a column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pandas_dptree.errors import ArgumentError, DomainError, quote
from pandas_dptree.hierarchy.columns import pick_columns
from pandas_dptree.hierarchy.domain import Domain, fingerprint
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.read_as import Labels
from pandas_dptree.hierarchy.names import check_by
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.signatures import public

__all__ = ["MappedLevels", "mapping"]


@dataclass(frozen=True, eq=False)
class MappedLevels(DerivedLevels[Domain]):
    """Levels that a public table assigns to the values of a column. Made by `mapping`."""

    pitfall: ClassVar[str] = "values that are spelt differently in the table of the mapping"
    """What to check if records belong to no leaf."""

    table: Domain

    @property
    def domain(self) -> Domain:
        """The public leaves: the rows of the table."""
        return self.table

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Columns of the records that are read."""
        return self.table.by[-1:]

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Names of the keys: the columns of the table."""
        return self.table.by

    @property
    def definition(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python types."""
        return ("mapping", self.table.by, fingerprint(self.table))

    @property
    def read_as(self) -> Labels:
        """Values are looked up among the labels of the finest key."""
        return Labels(self.table.labels[-1], self.table.forms[-1])

    @cached_property
    def _leaf_of(self) -> IntArray:
        """The leaf of each label of the finest key, then -1 twice, for the codes -2 and -1."""
        return np.append(np.argsort(self.table.codes[-1]), [-1, -1])

    def find(self, codes: IntArray) -> IntArray:
        """Find the leaf of each value, given by its position among the labels of the finest key.

        `codes` has shape (n,); codes below 0 are values that are not in the table, and get -1.
        """
        return self._leaf_of[codes]


@public
def mapping(table: Any, by: Sequence[Hashable]) -> MappedLevels:
    """Describe levels that a public table assigns to a column, such as the category of a product.

    Parameters
    ----------
    table : dataframe
        One row for each value of the column. Public.
    by : sequence of hashable
        Columns of the table, from the coarsest to the finest. The last one is the column of the records; the
        others need not be columns there, and are not read if they are.

    Returns
    -------
    MappedLevels
        To be used in `by`.

    Raises
    ------
    ColumnsError
        If a column is missing or repeated, or has labels that cannot be keys.
    ArgumentError
        If `table` is not a table or is empty, lists a value twice, or has missing keys.

    Notes
    -----
    Keys are named after the columns of the table.

    **Privacy.** Each value is looked up separately, with the same equality of keys as everywhere, whatever
    its type. Records whose value is not in the table are dropped silently.

    Examples
    --------
    >>> import pandas as pd
    >>> import pandas_dptree as dpt
    >>> products = pd.DataFrame({"kind": ["fruit", "fruit", "tool"], "product": ["fig", "kiwi", "saw"]})
    >>> dpt.mapping(products, by=["kind", "product"]).names
    ('kind', 'product')
    """
    names = check_by(by)
    try:
        pick_columns(table, names, argument="table")
    except DomainError as wrong:
        raise ArgumentError(
            "table", wrong.fact.removeprefix("`domain` "), hint="pass a frame with one row for each value."
        ) from None
    try:
        domain = Domain.from_frame(table, by=names)
    except ArgumentError as wrong:
        raise ArgumentError("table", wrong.fact.removeprefix("`domain` "), hint=wrong.hint) from None
    if any((codes < 0).any() for codes in domain.codes):
        raise ArgumentError("table", "has missing keys.", hint="fill them in, or leave the rows out.")
    if len(domain.labels[-1]) < domain.tree.n_leaves:
        raise ArgumentError(
            "table",
            f"lists a value of {quote(names[-1])} twice.",
            hint="each value needs exactly one row; if names repeat within different groups, use the columns "
            "as plain keys.",
        )
    return MappedLevels(domain)
