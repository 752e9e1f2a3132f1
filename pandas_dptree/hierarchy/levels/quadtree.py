"""Levels of two coordinates: nested squares."""

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
    """For each level of a quadtree the texts of its keys, made on first access."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._cache: dict[int, pd.Index] = {}

    def __len__(self) -> int:
        return self._depth

    def __getitem__(self, level: Any) -> Any:
        place = range(self._depth)[level]
        if place not in self._cache:
            texts = [""]
            for _ in range(place + 1):
                texts = [text + digit for text in texts for digit in "0123"]
            self._cache[place] = pd.Index(texts)
        return self._cache[place]


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
    """Nested squares of a plane, each coordinate cut into ``2 ** depth`` parts. Made by `quadtree`.

    Without bounds, `bins` are None until the cells of an array are known (`of_cells`), whose positions they
    cut.
    """

    pitfall: ClassVar[str] = "points outside the bounds, for example because those of y and x are swapped"
    """What to check if records belong to no leaf."""

    y: Hashable
    x: Hashable
    depth: int
    name: str
    bins: tuple[Bins, Bins] | None = None
    of_cells: bool = False

    @property
    def columns(self) -> tuple[Hashable, Hashable]:
        """Columns of the records that are read: y and x."""
        return (self.y, self.x)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the keys, as in ``"quad_3"``."""
        return tuple(f"{self.name}_{level}" for level in range(1, self.depth + 1))

    @property
    def definition(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python types."""
        if self.bins is None:
            return ("quadtree", *((column,) for column in self.columns), self.depth, self.name)
        ends = tuple((bins.column, *bins.edges[[0, -1]].tolist()) for bins in self.bins)
        cells = ("cells",) if self.of_cells else ()
        return ("quadtree", *ends, self.depth, self.name, *cells)

    @cached_property
    def domain(self) -> Domain:
        """The public leaves, numbered by their digits; labels are made on first access."""
        keys = _Keys(self.depth)
        codes = tuple(np.arange(4**level) for level in range(1, self.depth + 1))
        return Domain(self.names, Tree.from_branching([4] * self.depth), keys, _Forms(keys), codes)

    def square(self, key: str) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the ends of the square of a key along y, and along x."""
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
        """Return the bins along y and x, or raise an ArgumentError if no bounds are given."""
        if self.bins is None:
            raise ArgumentError(
                "bounds",
                f"of the quadtree {quote(self.name)} must be given: they define its squares.",
                hint="for example bounds=((47.0, 55.1), (5.8, 15.1)); they are optional only for two "
                "dimensions of an array.",
            )
        return self.bins

    def check(self) -> None:
        """Check that bounds are given."""
        self.checked_bins()

    def over_array(self, dims: Sequence[Hashable], sizes: Sequence[int]) -> Quadtree:
        """Let a quadtree without bounds divide the cells of an array."""
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
        """Divide the cells of an array into blocks, as evenly as possible.

        Cell i of n is in part ``i * 2 ** depth // n`` along each dimension.
        """
        n, n_parts = min(n_rows, n_columns), 2**self.depth
        if n < n_parts:
            raise ArgumentError(
                "depth",
                f"must leave a cell in each square: {n_rows} x {n_columns} cells cannot be halved "
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
        """Number of cells of an array along y and x, if the quadtree divides cells, else None."""
        return tuple(int(bins.edges[-1]) for bins in self.checked_bins()) if self.of_cells else None

    @property
    def plane(self) -> Plane:
        """Positions of the squares of each level."""
        steps = [2 ** (self.depth - level) for level in range(1, self.depth + 1)]
        edges = {bins.column: [bins.edges[::step] for step in steps] for bins in self.checked_bins()}
        return Plane(edges, self.grid)

    @property
    def read_as(self) -> Numbers:
        """Coordinates are read as numbers."""
        return Numbers()

    def find(self, y: FloatArray, x: FloatArray) -> IntArray:
        """Find the leaf of each point; -1 outside the bounds or if a coordinate is missing."""
        leaf = np.zeros(len(y), dtype=np.int64)
        inside = np.ones(len(y), dtype=bool)
        for bins, values, bit in zip(self.checked_bins(), (y, x), (1, 0), strict=True):
            inside &= (values >= bins.edges[0]) & (values <= bins.edges[-1])
            leaf |= self._spread_bits[bins.find(values)] << bit
        return np.where(inside, leaf, -1)

    @cached_property
    def _spread_bits(self) -> IntArray:
        """For each part of one coordinate, its bits with a zero before each of them; shape (2**depth,)."""
        places = np.arange(2**self.depth)
        spread = np.zeros_like(places)
        for bit in range(self.depth):
            spread |= (places >> bit & 1) << 2 * bit
        return spread

    @staticmethod
    def grid(level: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Arrange values of the nodes of a level in the plane: rows along y, columns along x.

        The digits of a node are pairs of a bit of y and a bit of x (Morton order). So this is a
        reshape to one axis per bit, a transpose, and a reshape.

        >>> Quadtree.grid(2, np.arange(16)).tolist()
        [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
        """
        bits = values.reshape(-1, *(2, 2) * level)
        laid = bits.transpose(0, *range(1, 2 * level, 2), *range(2, 2 * level + 1, 2))
        return laid.reshape(*values.shape[:-1], 2**level, 2**level)


@public
def quadtree(y: Hashable, x: Hashable, *, depth: int, bounds: Any = None, name: str = "quad") -> Quadtree:
    """Describe spatial levels: squares that are repeatedly divided into four.

    Parameters
    ----------
    y, x : hashable
        The columns that hold the coordinates, such as latitude and longitude; or dimensions of an array.
    depth : int
        Number of levels. There are ``4 ** depth`` leaves, at most 10**8.
    bounds : pair of pairs, optional
        Lower and upper bound of y, and those of x. Public. They can be left out for two dimensions of an
        array. Its cells are then divided by their position, as evenly as possible: cell i of n is in part
        ``i * 2**depth // n``.
    name : str, default "quad"
        Prefix of the names of the keys.

    Returns
    -------
    Quadtree
        To be used in `by`. Its method ``square(key)`` returns the ends of a square.

    Raises
    ------
    ArgumentError
        If the depth or the bounds cannot be used, or there are too many leaves.

    Notes
    -----
    Keys are named ``"quad_1"``, ``"quad_2"``, …. They are text with a digit for each level: 0 for
    the quarter with lower y and lower x, 1 for lower y and higher x, 2 for higher y and lower x, 3 for higher
    y and x. Squares contain their lower ends; those at the upper bounds contain their upper ends, too. (They
    are squares if the bounds are.)

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
            "x", f"must not be the same column as `y`: {quote(x)}.", hint='for example "lat", "lon".'
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
