"""The boxes of an icicle: nodes from left to right by their depth, as high as their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.additive import require_additive
from pandas_dptree.output.derived.reliability import CLASSES
from pandas_dptree.output.pictures.drawn import places_of
from pandas_dptree.output.released import REMAINDER, Released, Shown, provenance_of

__all__ = [
    "ONE_LINE", "STRENGTHS", "TWO_LINES", "Box", "boxes_of", "column_ends", "height_for", "name_of",
    "number_of", "strength_of",
]  # fmt: skip

FloatArray = npt.NDArray[np.float64]

LEAST = 4.0
"""Boxes that would be lower, in pixels, are drawn together."""

ONE_LINE, TWO_LINES = 15.0, 34.0
"""Heights, in pixels, from which boxes have a line of text, or two."""

STRENGTHS = tuple(zip(CLASSES["statcan"].values(), (0.58, 0.44, 0.34, 0.26, 0.17, 0.08), strict=True))
"""How opaque a box is whose error is below these shares of its value: the bounds of classes A to F."""


@dataclass(frozen=True, eq=False)
class Box:
    """Rows that are drawn as one box: a node, a node with the only child below it, or pooled siblings.

    It reaches over the columns from `first` to `last`; `top` and `height` are in pixels from above.
    `beside` is whether siblings of pooled rows have boxes of their own.
    """

    rows: tuple[int, ...]
    first: int
    last: int
    top: float
    height: float
    value: float
    pooled: bool = False
    beside: bool = False


def boxes_of(released: Released, shown: Shown, height: float) -> list[Box]:
    """Lay out the boxes within a height in pixels, each above those below it.

    Siblings are in the order of time if they have one; otherwise the largest is first, and "(other)" last.
    A path that ends early reaches the right edge, as does a chain of only children. Raises an
    `ArgumentError` for values that areas cannot show.
    """
    _check_areas(released, shown)
    values = shown.numbers
    column = released.depth - released.depth.min()
    last = int(column.max())
    below = _children(released, values)
    boxes: list[Box] = []

    def place(rows: Sequence[int], at: int, top: float, space: float) -> None:
        whole = float(values[list(rows)].sum())
        heights = [space * float(values[row]) / whole if whole > 0 else 0.0 for row in rows]
        if len(rows) == 1:
            heights = [space]
        small = [row for row, tall in zip(rows, heights, strict=True) if tall < LEAST]
        pooled = set(small) if len(small) > 1 else set()
        for row, tall in zip(rows, heights, strict=True):
            if row in pooled or tall <= 0:
                continue
            chain = [row]
            while len(below[chain[-1]]) == 1:
                chain += below[chain[-1]]
            ends = not below[chain[-1]]
            chain = chain if ends else [row]
            boxes.append(Box(tuple(chain), at, last if ends else at, top, tall, float(values[row])))
            if not ends:
                place(below[row], at + 1, top, tall)
            top += tall
        rest = sum(tall for row, tall in zip(rows, heights, strict=True) if row in pooled)
        if pooled and rest > 0:
            total, beside = float(values[small].sum()), len(pooled) < len(rows)
            boxes.append(Box(tuple(small), at, last, top, rest, total, True, beside))

    place(below[-1], 0, 0.0, height)
    return boxes


def name_of(released: Released, box: Box) -> str:
    """Name a box: by its key, by the keys of its chain, or by how many smaller nodes it stands for."""
    if box.pooled:
        return f"{len(box.rows):,} smaller" if box.beside else f"all {len(box.rows):,}"
    return " · ".join(released.name(row) for row in box.rows)


def number_of(box: Box) -> str:
    """Format the value of a box."""
    return f"{box.value:,.10g}"


def strength_of(shown: Shown, box: Box) -> float:
    """Return the opacity of a box: the smaller its relative error, the stronger its colour."""
    error = np.nan if shown.error is None else shown.error[box.rows[0]]
    part = 0.0 if error == 0 else error / box.value if box.value > 0 else np.inf
    return next((strength for bound, strength in STRENGTHS if part < bound), STRENGTHS[-1][1])


def column_ends(released: Released) -> FloatArray:
    """Return where columns begin and the last one ends, in per cent; that of the total is narrow."""
    n = int(np.ptp(released.depth)) + 1
    widths = 1 + 0.07 * np.arange(n)
    if n > 1 and released.depth.min() == 0:
        widths[0] = 0.16 * widths[1:].sum()
    return 100 * np.insert(np.cumsum(widths) / widths.sum(), 0, 0.0)


def height_for(released: Released) -> float:
    """Return the height of a picture in pixels, by the number of nodes of the largest level."""
    return float(np.clip(28 * max(len(rows) for _, rows in released.levels), 84, 620))


def _children(released: Released, values: FloatArray) -> dict[int, list[int]]:
    """List the rows below each row in order; those below no row are below -1."""
    below: dict[int, list[int]] = {row: [] for row in range(-1, len(values))}
    for depth, (_, rows) in zip(np.unique(released.depth).tolist(), released.levels, strict=True):
        places = places_of(released.table[released.keys[depth - 1]].iloc[rows]) if depth else None
        last = np.array([released.name(row) == REMAINDER for row in rows.tolist()])
        order: IntArray = np.lexsort((-values[rows] if places is None else places, last))
        for row in rows[order].tolist():
            below[int(released.parent[row])].append(row)
    return below


def _check_areas(released: Released, shown: Shown) -> None:
    """Refuse values that areas cannot show."""
    require_additive(
        provenance_of(released.table),
        shown.name,
        "areas",
        hint='plot.levels(), and as="levels" on a page, show any numbers.',
        argument="value",
    )
    values, parent = shown.numbers, released.parent
    below = np.flatnonzero(parent >= 0)
    sums = np.bincount(parent[below], weights=np.nan_to_num(values[below]), minlength=len(values))
    above = np.unique(parent[below])
    whole = np.abs(values).max()
    problem = (
        "has missing values" if np.isnan(values).any()
        else "has negative values" if (values < 0).any()
        else "does not add up: what is below a node is more or less than the node"
        if not np.allclose(sums[above], values[above], rtol=1e-9, atol=1e-9 * whole)
        else "lacks rows above others" if released.depth[parent < 0].max() > released.depth.min()
        else ""
    )  # fmt: skip
    if problem:
        raise ArgumentError(
            "value",
            f"{problem}, in the column {quote(shown.name)}, and areas cannot show that.",
            hint='value="count" draws the counts.' if "count" in {*released.columns} - {shown.name}
            else "draw counts, or sums of non-negative values, released with "
            'consistency="integer" or "nonnegative"; if you drop rows, drop the finest levels or whole '
            "branches. plot.levels() shows any table.",
        )  # fmt: skip
