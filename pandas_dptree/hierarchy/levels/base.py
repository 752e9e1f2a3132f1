"""Base class of derived levels: levels of a hierarchy that are derived from columns of the records.

A kind defines the names of its keys, the list of its leaves, how its columns are read, and the leaf of each
value. All of that is public. `ingest` reads the records as `DerivedLevels.read_as` describes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.levels.read_as import ReadAs
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["DerivedLevels", "Plane"]


class Leaves(Protocol):
    """What derived levels need from the domain that lists their leaves."""

    @property
    def tree(self) -> Tree:
        """The shape."""

    def keys(self, level: int) -> pd.DataFrame:
        """List the keys of the nodes of one level."""


DomainT_co = TypeVar("DomainT_co", bound=Leaves, covariant=True)
"""The type of the domain. `Domain` holds derived levels itself, so it cannot be imported here."""


@dataclass(frozen=True, eq=False)
class Plane:
    """Positions of the nodes of each level in a plane, or along any number of dimensions.

    By dimension, `edges` has those between the nodes, in units of the column or in cells (see
    `DerivedLevels`); ``lay(level, values)`` arranges values of shape (..., nodes of the level) along the
    dimensions.
    """

    edges: Mapping[Hashable, Sequence[npt.NDArray[np.float64]]]
    lay: Callable[[int, npt.NDArray[Any]], npt.NDArray[Any]]


class DerivedLevels(ABC, Generic[DomainT_co]):
    """Levels that are derived from columns of the records.

    A new kind implements the abstract members; the others have defaults that fit most kinds.
    """

    pitfall: ClassVar[str]
    """What to check if records belong to no leaf."""

    smaller: ClassVar[str | None] = None
    """How to get fewer leaves, if not by leaving out the finest levels."""

    implicit: ClassVar[bool] = False
    """Whether they are an implicit tree when passed as `by` without a list. Arrays do not support that."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Hashable, ...]:
        """Columns of the records that are read."""

    @property
    @abstractmethod
    def names(self) -> tuple[Hashable, ...]:
        """Names of the keys, from the coarsest to the finest."""

    @property
    @abstractmethod
    def definition(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python types. Equal definitions make equal keys."""

    @property
    @abstractmethod
    def domain(self) -> DomainT_co:
        """The public leaves."""

    @property
    @abstractmethod
    def read_as(self) -> ReadAs:
        """How each of the columns is read."""

    @abstractmethod
    def find(self, *args: Any, **kwargs: Any) -> IntArray:
        """Find the leaf of each record, whatever the others: -1 for records without a leaf.

        The arguments are, column by column, the arrays that `read_as` describes.
        """

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.domain.tree.n_leaves

    def paths(self) -> pd.DataFrame:
        """List the public leaves, one row each."""
        return self.domain.keys(len(self.names))

    def check(self) -> None:
        """Check that the definition is complete: some kinds can be made without all arguments."""

    @property
    def plane(self) -> Plane | None:
        """Positions of the nodes in an array; None if they are one-dimensional."""
        return None

    @property
    def cells(self) -> tuple[int, ...] | None:
        """Number of cells of an array along each column, if these are read by position; None if by label.

        The positions 0, 1, 2, … then take the place of labels. Records are always read by label.
        """
        return None

    def over_array(self, dims: Sequence[Hashable], sizes: Sequence[int]) -> DerivedLevels[DomainT_co]:
        """Adapt the levels to the dimensions and sizes of an array, if they depend on its shape."""
        del dims, sizes
        return self
