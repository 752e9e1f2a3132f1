"""The two finest levels of a table as a heat map with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pandas_dptree.output.derived.reliability import CLASSES
from pandas_dptree.output.pictures.figures import BAR, brief, figure_of, short, width_of
from pandas_dptree.output.pictures.grid import grid_of
from pandas_dptree.output.released import Released, Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_heatmap"]

_SIZE = 8.5
_TOO_UNCERTAIN = CLASSES["statcan"]["E"]
"""Cells whose error is at least this share of their value are hatched: class F."""


def plot_heatmap(released: Released, shown: Shown) -> Axes:
    """Draw a cell for each node of the finest level, the stronger the larger, with its number."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    grid = grid_of(released, argument="plot")
    values = np.where(grid.cells >= 0, shown.numbers[grid.cells], np.nan)
    names = [short(released.path(row), 40) for row in grid.lines.tolist()]
    texts = [[("" if value != value else brief(value)) for value in line] for line in values.tolist()]
    widest = max((width_of(text, _SIZE) for line in texts for text in line), default=0.0)
    heads = [short(name, 24) for name in grid.columns]
    across = max(widest + 0.12, 0.34)
    turned = any(width_of(head, _SIZE) > across for head in heads)
    left = 0.2 + max((width_of(name, _SIZE) for name in names), default=0.0)
    below = 0.25 + (max(width_of(head, _SIZE) for head in heads) if turned else 0.15)
    width = max(left + across * len(heads) + 0.2, 4.0)
    said = "stronger: larger (by the square root); hatched: too unreliable for most uses"
    title = f"{shown.name} by {released.keys[-2]} and {released.keys[-1]}\n({said})"
    axes = figure_of(title, width, 0.28 * len(names), below=below)
    box = axes.get_position()
    axes.set_position((left / width, box.y0, across * len(heads) / width, box.height))
    most = np.nanmax(np.sqrt(np.maximum(values, 0)), initial=0.0) or 1.0
    colours = LinearSegmentedColormap.from_list("", ["white", BAR])
    axes.imshow(np.sqrt(np.maximum(values, 0)), cmap=colours, vmin=0, vmax=most, aspect="auto")
    for line, row in enumerate(grid.cells.tolist()):
        for column, cell in enumerate(row):
            if cell < 0:
                continue
            axes.text(
                column, line, texts[line][column], ha="center", va="center", size=_SIZE, parse_math=False
            )
            error = np.nan if shown.error is None else shown.error[cell]
            if error > 0 and not error < _TOO_UNCERTAIN * shown.numbers[cell]:
                place = (column - 0.5, line - 0.5)
                axes.add_patch(Rectangle(place, 1, 1, fill=False, hatch="////", edgecolor="#b8c4ce", lw=0))
    axes.set_xticks(range(len(heads)), heads, size=_SIZE, rotation=90 if turned else 0, parse_math=False)
    axes.set_yticks(range(len(names)), names, size=_SIZE, parse_math=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return axes
