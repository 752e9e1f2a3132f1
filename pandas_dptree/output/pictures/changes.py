"""Changes between two releases as dots on a line at zero, with whiskers for their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.output.pictures.figures import BAR, figure_of, short, width_of
from pandas_dptree.output.released import Released

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_changes"]

_SIZE = 9.0
_BEYOND = "#b4531a"


def plot_changes(released: Released, changes: pd.DataFrame, n: int) -> Axes:
    """Draw the n largest changes in proportion to their errors, in the order of the table."""
    told = changes.attrs["dp_derived"]
    errors = changes["std_error"].to_numpy(dtype=np.float64)
    sizes = np.abs(changes["change"].to_numpy(dtype=np.float64)) / np.where(errors > 0, errors, np.nan)
    below = released.depth > 0 if released.depth.max() else True  # the total would set the scale
    possible = np.flatnonzero(np.isfinite(sizes) & below)
    rows = np.sort(possible[np.argsort(-sizes[possible], kind="stable")][:n])
    values, lower, upper = (
        changes[each].to_numpy(dtype=np.float64)[rows] for each in ("change", "lower", "upper")
    )
    beyond = changes["beyond_noise"].to_numpy(dtype=bool)[rows]
    names = [short(released.path(row)) or ROOT for row in rows.tolist()]
    left = 0.32 + max((width_of(name, _SIZE) for name in names), default=0.0)
    width = left + 4.8
    title = (
        f"Change of {told['column']}: {len(rows):,} of {told['changes']:,} nodes\n"
        f"filled: beyond the noise ({told['beyond_noise']:,} of all; by chance at most "
        f"{told['by_chance']:,.1f}; by Holm's method {told['beyond_noise_holm']:,})"
    )
    axes = figure_of(title, width, 0.23 * max(len(rows), 1) + 0.1, below=0.5)
    box = axes.get_position()
    axes.set_position((left / width, box.y0, 4.6 / width, box.height))
    position = np.arange(len(rows))
    whiskers = np.maximum(np.stack([values - lower, upper - values]), 0.0)
    axes.axvline(0, color="0.5", lw=1)
    for part, fill, colour in ((~beyond, "white", BAR), (beyond, _BEYOND, _BEYOND)):
        axes.errorbar(
            values[part],
            position[part],
            xerr=whiskers[:, part],
            fmt="o",
            ms=5,
            color=colour,
            mfc=fill,
            elinewidth=1.2,
        )
    axes.set_yticks(position, names, size=_SIZE, parse_math=False)
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.set_xlabel(
        f"change, with the {100 * told['confidence']:.4g} % interval of each by itself", size=_SIZE
    )
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
