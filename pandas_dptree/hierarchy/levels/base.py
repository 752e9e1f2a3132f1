"""What every kind of derived levels has: levels of a hierarchy that are made from columns of the records.

A kind states the names of its keys, the list of its leaves, how its columns are read, and where a value lies
among the leaves. All of that is public. The records are read by `ingest`, as `DerivedLevels.read_as` tells.
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
    """What derived levels need of the domain that lists their leaves."""

    @property
    def tree(self) -> Tree:
        """The shape."""

    def keys(self, level: int) -> pd.DataFrame:
        """List the keys of the nodes of one level."""


DomainT_co = TypeVar("DomainT_co", bound=Leaves, covariant=True)
"""The type of the domain, which holds derived levels itself, so that it cannot be imported here."""


@dataclass(frozen=True, eq=False)
class Plane:
    """How the nodes of each level lie in a plane, or along any number of dimensions.

    Attributes
    ----------
    edges : mapping
        For each dimension, named like the column that is read, the edges between the nodes of each level from
        the first: in the units of the column, or counted in cells if `DerivedLevels.cells` has them.
    lay : callable
        ``lay(level, values)`` lays values of shape (..., nodes of the level) out along the dimensions.
    """

    edges: Mapping[Hashable, Sequence[npt.NDArray[np.float64]]]
    lay: Callable[[int, npt.NDArray[Any]], npt.NDArray[Any]]


class DerivedLevels(ABC, Generic[DomainT_co]):
    """Levels that are made from columns of the records.

    A new kind gives what is abstract here; the rest has a default that fits most kinds.
    """

    pitfall: ClassVar[str]
    """What to look for where records lie nowhere."""

    smaller: ClassVar[str | None] = None
    """How to have fewer leaves, if there is another way than to leave the finest levels out."""

    implicit: ClassVar[bool] = False
    """Whether they are a tree that nobody lists where they stand outside a list. Arrays do not have them."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Hashable, ...]:
        """The columns of the records that are read."""

    @property
    @abstractmethod
    def names(self) -> tuple[Hashable, ...]:
        """Names of the keys, from the coarsest to the finest."""

    @property
    @abstractmethod
    def definition(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python. Equal definitions make equal keys."""

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
        """Find the leaf of each record: -1 for those that lie nowhere.

        It takes, column by column, the arrays that `read_as` tells of. The answer for a record depends on
        that record alone.
        """

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return self.domain.tree.n_leaves

    def paths(self) -> pd.DataFrame:
        """List the public leaves, one row each."""
        return self.domain.keys(len(self.names))

    def check(self) -> None:
        """Check that they tell where values lie: some kinds can be made before they do.

        Raises
        ------
        ArgumentError
            If something is still missing.
        """

    @property
    def plane(self) -> Plane | None:
        """How the nodes of a level lie in an array; None if they lie side by side."""
        return None

    @property
    def cells(self) -> tuple[int, ...] | None:
        """How many cells of an array lie along each column, if these are read by their places, not by labels.

        The places 0, 1, 2, … then stand for the labels. None if labels are read, as of records.
        """
        return None

    def over_array(self, dims: Sequence[Hashable], sizes: Sequence[int]) -> DerivedLevels[DomainT_co]:
        """Adapt the levels to an array, if they depend on its shape.

        Parameters
        ----------
        dims : sequence of hashable
            The dimensions that the columns lie along, without repetition.
        sizes : sequence of int
            How many cells there are along each of the columns.

        Returns
        -------
        DerivedLevels

        Raises
        ------
        DPTreeError
            If they cannot be made of such an array.
        """
        del dims, sizes
        return self
