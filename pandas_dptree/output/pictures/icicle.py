"""The icicle with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandas_dptree.output.pictures.boxes import (
    ONE_LINE,
    STRENGTHS,
    TWO_LINES,
    Box,
    boxes_of,
    column_ends,
    height_for,
    name_of,
    number_of,
    strength_of,
)
from pandas_dptree.output.pictures.figures import BAR, figure_of, fitted
from pandas_dptree.output.protection import joined
from pandas_dptree.output.released import Released, Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_icicle"]

_PIXELS = 100
"""Pixels of the layout in an inch."""

_SIZE = 8.5
"""The size of names, in points: about 12 pixels."""


def plot_icicle(released: Released, shown: Shown) -> Axes:
    """Draw nested boxes from left to right, each as high as its value."""
    from matplotlib.patches import Rectangle

    height, ends = height_for(released), column_ends(released)
    boxes = boxes_of(released, shown, height)
    width = max(7.0, 2.0 * (len(ends) - 1))
    title = f"{shown.name} by {joined([str(key) for key in released.keys])}"
    axes = figure_of(title, width, height / _PIXELS, below=0.35)
    axes.set(xlim=(0, 100), ylim=(height, 0))
    axes.set_axis_off()
    for box in boxes:
        left, across = float(ends[box.first]), float(ends[box.last + 1] - ends[box.first])
        place = ((left, box.top), across, box.height)
        colour = "white" if box.pooled else _mixed(strength_of(shown, box))
        hatch = "////" if box.pooled else None
        axes.add_patch(Rectangle(*place, facecolor=colour, edgecolor=_mixed(0.44), hatch=hatch, lw=0))
        axes.add_patch(Rectangle(*place, facecolor="none", edgecolor="white", lw=1))
        _write(axes, box, name_of(released, box), number_of(box), left, across / 100 * width)
    if shown.error is not None:
        bounds = [f"< {100 * bound:g} %" for bound, _ in STRENGTHS[:-1]] + ["≥ 50 %"]
        keys = [Rectangle((0, 0), 1, 1, facecolor=_mixed(strength)) for _, strength in STRENGTHS]
        keys.insert(0, Rectangle((0, 0), 0, 0, alpha=0))
        said = [f"{shown.error_name} ÷ value:", *bounds]
        axes.figure.legend(
            keys, said, loc="lower left", ncols=len(keys), fontsize=_SIZE, frameon=False, handlelength=1,
            columnspacing=1, borderpad=0.2,
        )  # fmt: skip
    return axes


def _write(axes: Axes, box: Box, name: str, number: str, left: float, inches: float) -> None:
    """Write the name and the value of a box into it, as far as there is space."""
    most = inches - 0.12
    if box.height >= TWO_LINES:
        lines = [(fitted(name, most, _SIZE), box.top + 13), (fitted(number, most, _SIZE), box.top + 28)]
    elif box.height >= ONE_LINE:
        lines = [(fitted(f"{name}  {number}", most, _SIZE), box.top + box.height / 2)]
    else:
        return
    for text, at in lines:
        axes.text(left, at, f" {text}", va="center_baseline", size=_SIZE, parse_math=False, color="#16202a")


def _mixed(strength: float) -> tuple[float, ...]:
    """Mix the colour of bars with white."""
    from matplotlib.colors import to_rgb

    return tuple(1 - strength * (1 - part) for part in to_rgb(BAR))
