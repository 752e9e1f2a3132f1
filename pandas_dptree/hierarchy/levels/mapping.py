"""Levels that a public table tells of a column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pandas_dptree.errors import ArgumentError, DomainError, quote
from pandas_dptree.hierarchy.columns import pick_columns
from pandas_dptree.hierarchy.domain import Domain, check_by, fingerprint
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.read_as import Labels
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.signatures import public

__all__ = ["Lookup", "mapping"]


@dataclass(frozen=True, eq=False)
class Lookup(DerivedLevels[Domain]):
    """What a public table tells of a column. Made by `mapping`.

    Attributes
    ----------
    table : Domain
        The rows of the table; the finest key is the column of the records.
    """

    pitfall: ClassVar[str] = "values that the table of the mapping writes otherwise"
    """What to look for where records lie nowhere."""

    table: Domain

    @property
    def domain(self) -> Domain:
        """The public leaves: the rows of the table."""
        return self.table

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The columns of the records that are read."""
        return self.table.by[-1:]

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Names of the keys, those of the table."""
        return self.table.by

    @property
    def definition(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python."""
        return ("mapping", self.table.by, fingerprint(self.table))

    @property
    def read_as(self) -> Labels:
        """Values are looked up among the labels of the finest key."""
        return Labels(self.table.labels[-1], self.table.forms[-1])

    @cached_property
    def _leaf_of(self) -> IntArray:
        """The leaf of each label of the finest key, and -1 twice, where codes below 0 lead."""
        return np.append(np.argsort(self.table.codes[-1]), [-1, -1])

    def find(self, codes: IntArray) -> IntArray:
        """Find the leaf of each value.

        Parameters
        ----------
        codes : numpy.ndarray of int64, shape (n,)
            The places of the values among the labels of the finest key; below 0 where there are none.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
            -1 for values that are not in the table.
        """
        return self._leaf_of[codes]


@public
def mapping(table: Any, by: Sequence[Hashable]) -> Lookup:
    """Describe levels that a public table tells of a column, such as the category of a product.

    Parameters
    ----------
    table : dataframe
        One row for each value of the column. Public.
    by : sequence of hashable
        Columns of the table, from the coarsest to the finest. The last one is the column of the records; the
        others need not be columns there, and are not read if they are.

    Returns
    -------
    Lookup
        To be used in `by`.

    Raises
    ------
    ColumnsError
        If a column is missing or repeated, or holds labels that are no keys.
    ArgumentError
        If it is no table or an empty one, lists a value twice, or has missing keys.

    Notes
    -----
    Keys are named as the columns of the table.

    **Privacy.** Each value is looked up separately, whatever its type: equal keys are equal, as everywhere.
    Records whose value is not in the table are dropped silently.

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
        raise ArgumentError("table", "lacks keys in some rows.", hint="fill them in, or leave the rows out.")
    if len(domain.labels[-1]) < domain.tree.n_leaves:
        raise ArgumentError(
            "table",
            f"lists some {quote(names[-1])} in two places.",
            hint="each needs a place of its own; names that repeat can be told apart by their whole path "
            "alone, as plain keys.",
        )
    return Lookup(domain)
