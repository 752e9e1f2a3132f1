"""Levels made of two coordinates: squares within squares."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, is_name, naming, quote
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import MAX_LEAVES, Domain
from pandas_dptree.hierarchy.levels.base import DerivedLevels, Plane
from pandas_dptree.hierarchy.levels.read_as import Numbers
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.signatures import public

__all__ = ["Quadtree", "quadtree"]

FloatArray = npt.NDArray[np.float64]


class _Keys(Sequence[pd.Index]):
    """For each level of a quadtree the texts of its keys, made when they are first asked for."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._made: dict[int, pd.Index] = {}

    def __len__(self) -> int:
        return self._depth

    def __getitem__(self, level: Any) -> Any:
        place = range(self._depth)[level]
        if place not in self._made:
            texts = [""]
            for _ in range(place + 1):
                texts = [text + digit for text in texts for digit in "0123"]
            self._made[place] = pd.Index(texts)
        return self._made[place]


class _Forms(Sequence[tuple[Hashable, ...]]):
    """The same texts as canonical forms."""

    def __init__(self, keys: _Keys) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, level: Any) -> Any:
        return tuple(self._keys[level])


@dataclass(frozen=True, eq=False)
class Quadtree(DerivedLevels[Domain]):
    """Squares within squares of a plane. Made by `quadtree`.

    Attributes
    ----------
    y, x : hashable
        The columns of the records that are read.
    depth : int
        How many levels there are.
    name : str
        What the names of the keys begin with.
    bins : (Bins, Bins) or None
        The coordinates, each cut into ``2 ** depth`` parts. None if no bounds are given: the parts are then
        those of an array, once it is known.
    of_cells : bool
        Whether it is not the coordinates that are cut, but the places of the cells along two dimensions of an
        array: 0, 1, 2, ….
    """

    pitfall: ClassVar[str] = "points outside the bounds of the map, as when those of y and of x are swapped"
    """What to look for where records lie nowhere."""

    y: Hashable
    x: Hashable
    depth: int
    name: str
    bins: tuple[Bins, Bins] | None = None
    of_cells: bool = False

    @property
    def columns(self) -> tuple[Hashable, Hashable]:
        """The columns of the records that are read: y and x."""
        return (self.y, self.x)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the keys, as in ``"quad_3"``."""
        return tuple(f"{self.name}_{level}" for level in range(1, self.depth + 1))

    @property
    def definition(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python."""
        if self.bins is None:
            return ("quadtree", *((column,) for column in self.columns), self.depth, self.name)
        ends = tuple((bins.column, *bins.edges[[0, -1]].tolist()) for bins in self.bins)
        cells = ("cells",) if self.of_cells else ()
        return ("quadtree", *ends, self.depth, self.name, *cells)

    @cached_property
    def domain(self) -> Domain:
        """The public leaves, numbered by their digits; labels are made when they are first asked for."""
        keys = _Keys(self.depth)
        codes = tuple(np.arange(4**level) for level in range(1, self.depth + 1))
        return Domain(self.names, Tree.from_branching([4] * self.depth), keys, _Forms(keys), codes)

    def square(self, key: str) -> tuple[tuple[float, float], tuple[float, float]]:
        """Tell where the square of a key lies: its ends along y, and along x."""
        known = isinstance(key, str) and 1 <= len(key) <= self.depth and set(key) <= set("0123")
        if not known:
            raise ArgumentError(
                "key",
                f"must be 1 to {self.depth} digits from 0 to 3, not {quote(key)}.",
                hint='for example "031".',
            )
        step = 2 ** (self.depth - len(key))
        places = [sum((int(d) >> bit & 1) << i for i, d in enumerate(reversed(key))) for bit in (1, 0)]
        (y0, y1), (x0, x1) = (
            bins.edges[[place * step, (place + 1) * step]].tolist()
            for bins, place in zip(self.checked_bins(), places, strict=True)
        )
        return (y0, y1), (x0, x1)

    def checked_bins(self) -> tuple[Bins, Bins]:
        """Give the parts along y and x.

        Raises
        ------
        ArgumentError
            If no bounds are given.
        """
        if self.bins is None:
            raise ArgumentError(
                "bounds",
                f"of the quadtree {quote(self.name)} must be given: they tell where its squares lie.",
                hint="for example bounds=((47.0, 55.1), (5.8, 15.1)); only dimensions of an array can do "
                "without.",
            )
        return self.bins

    def check(self) -> None:
        """Check that there are bounds.

        Raises
        ------
        ArgumentError
            If there are none.
        """
        self.checked_bins()

    def over_array(self, dims: Sequence[Hashable], sizes: Sequence[int]) -> Quadtree:
        """Let a quadtree without bounds divide the cells of an array.

        Raises
        ------
        ColumnsError
            If both columns lie along one dimension.
        ArgumentError
            If some part would hold no cell.
        """
        if self.bins is not None:
            return self
        if len(dims) < 2:
            raise ColumnsError(
                "by", "has a quadtree without bounds over a single dimension", columns=self.columns,
                hint="name two dimensions; or give `bounds`, which put points into squares by their "
                "coordinates.",
            )  # fmt: skip
        return self.over_cells(*sizes)

    def over_cells(self, n_rows: int, n_columns: int) -> Quadtree:
        """Cut the cells of an array into blocks, as even as can be.

        Parameters
        ----------
        n_rows, n_columns : int
            How many cells there are along y and along x.

        Returns
        -------
        Quadtree
            Of the places of the cells: cell i of n is in part ``i * 2 ** depth // n``.

        Raises
        ------
        ArgumentError
            If some part would hold no cell.
        """
        n, n_parts = min(n_rows, n_columns), 2**self.depth
        if n < n_parts:
            raise ArgumentError(
                "depth",
                f"must leave each square a cell: {n_rows} x {n_columns} cells cannot be halved "
                f"{self.depth} times.",
                hint=f"at most depth={n.bit_length() - 1}."
                if n > 1
                else "both dimensions need at least 2 cells.",
            )
        # Part k begins with the first cell i such that i * n_parts // n >= k.
        along = (-(-np.arange(n_parts + 1) * size // n_parts) for size in (n_rows, n_columns))
        y, x = (
            Bins(column, starts.astype(np.float64))
            for column, starts in zip(self.columns, along, strict=True)
        )
        return replace(self, bins=(y, x), of_cells=True)

    @property
    def cells(self) -> tuple[int, ...] | None:
        """How many cells of an array lie along y and x, if they are divided by their number."""
        return tuple(int(bins.edges[-1]) for bins in self.checked_bins()) if self.of_cells else None

    @property
    def plane(self) -> Plane:
        """Where the squares of each level lie."""
        steps = [2 ** (self.depth - level) for level in range(1, self.depth + 1)]
        edges = {bins.column: [bins.edges[::step] for step in steps] for bins in self.checked_bins()}
        return Plane(edges, self.grid)

    @property
    def read_as(self) -> Numbers:
        """Coordinates are read as numbers."""
        return Numbers()

    def find(self, y: FloatArray, x: FloatArray) -> IntArray:
        """Find the leaf of each point: -1 for those outside and those without coordinates."""
        leaf = np.zeros(len(y), dtype=np.int64)
        inside = np.ones(len(y), dtype=bool)
        for bins, values, bit in zip(self.checked_bins(), (y, x), (1, 0), strict=True):
            inside &= (values >= bins.edges[0]) & (values <= bins.edges[-1])
            leaf |= self._spread_bits[bins.find(values)] << bit
        return np.where(inside, leaf, -1)

    @cached_property
    def _spread_bits(self) -> IntArray:
        """The parts of one coordinate, with a free bit before each of their bits; shape (2**depth,)."""
        places = np.arange(2**self.depth)
        spread = np.zeros_like(places)
        for bit in range(self.depth):
            spread |= (places >> bit & 1) << 2 * bit
        return spread

    @staticmethod
    def grid(level: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Lay the nodes of a level out as they lie in the plane.

        Parameters
        ----------
        level : int
        values : numpy.ndarray, shape (..., 4**level)

        Returns
        -------
        numpy.ndarray, shape (..., 2**level, 2**level)
            With y along the last axis but one, and x along the last.

        Notes
        -----
        The digits of a node are pairs of a bit of y and a bit of x (the Morton order). So this is a reshape
        to one axis for each bit, a transpose, and a reshape.

        Examples
        --------
        >>> Quadtree.grid(2, np.arange(16)).tolist()
        [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
        """
        bits = values.reshape(-1, *(2, 2) * level)
        laid = bits.transpose(0, *range(1, 2 * level, 2), *range(2, 2 * level + 1, 2))
        return laid.reshape(*values.shape[:-1], 2**level, 2**level)


@public
def quadtree(y: Hashable, x: Hashable, *, depth: int, bounds: Any = None, name: str = "quad") -> Quadtree:
    """Describe levels of a place: squares that are divided into four, again and again.

    Parameters
    ----------
    y, x : hashable
        The columns that hold the coordinates, such as latitude and longitude; or dimensions of an array.
    depth : int
        How many levels there are. There are ``4 ** depth`` leaves, at most 10**8.
    bounds : pair of pairs, optional
        The least and the greatest value of y, and those of x. Public. They can be left out for two dimensions
        of an array, whose cells are then divided by their number: cell i of n is in part
        ``i * 2**depth // n``, so that all parts are as even as can be.
    name : str, default "quad"
        What the names of the keys begin with.

    Returns
    -------
    Quadtree
        To be used in `by`. Its ``square(key)`` tells where a square lies.

    Raises
    ------
    ArgumentError
        If the depth or the bounds cannot be used, or there are too many leaves.

    Notes
    -----
    Keys are named ``"quad_1"``, ``"quad_2"``, …. They are text with a digit for each level: 0 for the quarter
    with less y and less x, 1 for less y and more x, 2 for more y and less x, 3 for more of both. A square
    holds its lower ends; those at the upper bounds hold their upper ones, too. (They are squares if the
    bounds are.)

    **Privacy.** Each record is read separately; those outside the bounds or without coordinates are dropped
    silently.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> places = dpt.quadtree("lat", "lon", depth=2, bounds=((0, 4), (0, 4)))
    >>> places.square("03")
    ((1.0, 2.0), (1.0, 2.0))
    """
    _check_column("y", y)
    _check_column("x", x)
    if x == y:
        raise ArgumentError(
            "x", f"must be another column than y: {quote(x)}.", hint='for example "lat", "lon".'
        )
    if not isinstance(name, str):
        raise ArgumentError("name", f"must be text, not {quote(name)}.", hint='for example name="origin".')
    deepest = int(math.log(MAX_LEAVES, 4))
    whole = isinstance(depth, (int, np.integer)) and not isinstance(depth, bool)
    if not whole or not 1 <= depth <= deepest:
        raise ArgumentError(
            "depth",
            f"must be a whole number from 1 to {deepest}, not {quote(depth)}.",
            hint=f"there are 4 ** depth squares, and at most {MAX_LEAVES:,} can be listed.",
        )
    if bounds is None:
        return Quadtree(y, x, int(depth), name)
    pairs = list(bounds) if isinstance(bounds, (list, tuple, np.ndarray)) else []
    if len(pairs) != 2:
        raise ArgumentError(
            "bounds",
            f"must be a pair of pairs, of y and of x, not {quote(bounds)}.",
            hint="for example bounds=((47.0, 55.1), (5.8, 15.1)).",
        )
    along_y, along_x = (
        Bins.of(column, bounds=pair, bins=2 ** int(depth)) for column, pair in zip((y, x), pairs, strict=True)
    )
    if along_y.is_time or along_x.is_time:
        raise ArgumentError("bounds", "must be numbers.", hint="`calendar` makes levels of dates.")
    return Quadtree(y, x, int(depth), name, (along_y, along_x))


def _check_column(argument: str, column: Any) -> None:
    if column is None or not is_name(column):
        raise ArgumentError(
            argument,
            f"must name a column, not {quote(column)}.",
            hint=naming(argument, "lat", column),
        )
