"""Levels made of two coordinates: squares within squares."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import MAX_LEAVES, Domain
from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["Quadtree", "quadtree"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quadtree:
    """Squares within squares of a plane. Made by `quadtree`.

    Attributes
    ----------
    y, x : Bins
        The coordinates, each cut into ``2 ** depth`` parts.
    depth : int
        How many levels there are.
    name : str
        What the names of the keys begin with.
    """

    y: Bins
    x: Bins
    depth: int
    name: str

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The columns of the records that are read."""
        return (self.y.column, self.x.column)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the keys, as in ``"quad_3"``."""
        return tuple(f"{self.name}_{level}" for level in range(1, self.depth + 1))

    @property
    def told(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python."""
        ends = tuple((bins.column, *bins.edges[[0, -1]].tolist()) for bins in (self.y, self.x))
        return ("quadtree", *ends, self.depth, self.name)

    @cached_property
    def domain(self) -> Domain:
        """The public leaves, numbered by their digits."""
        forms: list[tuple[str, ...]] = [("",)]
        for _ in range(self.depth):
            forms.append(tuple(form + digit for form in forms[-1] for digit in "0123"))
        leaves = np.arange(4**self.depth)
        codes = [leaves >> 2 * (self.depth - level) for level in range(1, self.depth + 1)]
        return Domain.from_codes(self.names, [pd.Index(form) for form in forms[1:]], forms[1:], codes)

    def paths(self) -> pd.DataFrame:
        """List the public leaves, one row each."""
        return self.domain.keys(self.depth)

    def square(self, key: str) -> tuple[tuple[float, float], tuple[float, float]]:
        """Tell where the square of a key lies: its ends along y, and along x."""
        known = isinstance(key, str) and 1 <= len(key) <= self.depth and set(key) <= set("0123")
        if not known:
            raise ArgumentError(
                "key",
                f"must be 1 to {self.depth} digits from 0 to 3, not {key!r}.",
                hint='for example "031".',
            )
        step = 2 ** (self.depth - len(key))
        places = [sum((int(d) >> bit & 1) << i for i, d in enumerate(reversed(key))) for bit in (1, 0)]
        (y0, y1), (x0, x1) = (
            bins.edges[[place * step, (place + 1) * step]].tolist()
            for bins, place in zip((self.y, self.x), places, strict=True)
        )
        return (y0, y1), (x0, x1)

    def find(self, y: FloatArray, x: FloatArray) -> IntArray:
        """Find the leaf of each point: -1 for those outside and those without coordinates."""
        leaf = np.zeros(len(y), dtype=np.int64)
        inside = np.ones(len(y), dtype=bool)
        for bins, values, bit in ((self.y, y, 1), (self.x, x, 0)):
            inside &= (values >= bins.edges[0]) & (values <= bins.edges[-1])
            place = bins.find(values)
            for level in range(self.depth):
                leaf |= (place >> level & 1) << (2 * level + bit)
        return np.where(inside, leaf, -1)


def quadtree(y: Hashable, x: Hashable, *, depth: int, bounds: Any, name: str = "quad") -> Quadtree:
    """Describe levels of a place: squares that are divided into four, again and again.

    Parameters
    ----------
    y, x : hashable
        The columns that hold the coordinates, such as latitude and longitude.
    depth : int
        How many levels there are. There are ``4 ** depth`` leaves, at most 10**8.
    bounds : pair of pairs
        The least and the greatest value of y, and those of x. Public.
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

    **Privacy.** Each record is read by itself; those outside the bounds or without coordinates are dropped
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
        raise ArgumentError("x", f"must be another column than y: {x!r}.", hint='for example "lat", "lon".')
    if not isinstance(name, str):
        raise ArgumentError("name", f"must be text, not {name!r}.", hint='for example name="origin".')
    deepest = int(math.log(MAX_LEAVES, 4))
    whole = isinstance(depth, (int, np.integer)) and not isinstance(depth, bool)
    if not whole or not 1 <= depth <= deepest:
        raise ArgumentError(
            "depth",
            f"must be a whole number from 1 to {deepest}, not {depth!r}.",
            hint=f"there are 4 ** depth squares, and at most {MAX_LEAVES:,} can be listed.",
        )
    pairs = list(bounds) if isinstance(bounds, (list, tuple, np.ndarray)) else []
    if len(pairs) != 2:
        raise ArgumentError(
            "bounds",
            f"must be a pair of pairs, of y and of x, not {bounds!r}.",
            hint="for example bounds=((47.0, 55.1), (5.8, 15.1)).",
        )
    along_y, along_x = (
        Bins.of(column, bounds=pair, bins=2 ** int(depth)) for column, pair in zip((y, x), pairs, strict=True)
    )
    if along_y.is_time or along_x.is_time:
        raise ArgumentError("bounds", "must be numbers.", hint="`calendar` makes levels of dates.")
    return Quadtree(along_y, along_x, int(depth), name)


def _check_column(argument: str, column: Any) -> None:
    if not isinstance(column, Hashable) or column is None or column != column:
        raise ArgumentError(argument, f"must name a column, not {column!r}.", hint='for example "lat".')
