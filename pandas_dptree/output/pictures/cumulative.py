"""Cumulative counts of a distribution, with their band."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.output.pictures.figures import axes_of_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_cumulative"]

_PIXELS = 100
"""Pixels of the layout in an inch."""

_HARDLY = 2
"""Bands that are narrower, in pixels, cannot be told from a line, so their width is said."""


def plot_cumulative(
    edges: npt.NDArray[Any],
    count: npt.NDArray[np.int64],
    band: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None,
    ax: Axes | None = None,
    *,
    label: str,
    xlabel: str,
) -> Axes:
    """Draw how many values lie below the end of each bin, as steps, with a band.

    `edges` has shape (n_bins + 1,) and may be numbers or times. `count` and both ends of the `band` have
    shape (n_bins,). `label` is that of the steps. A new figure is made without `ax`.
    """
    axes = axes_of_size((6, 3.7)) if ax is None else ax
    from matplotlib.dates import ConciseDateFormatter, DateLocator

    [steps] = axes.step(edges, np.append(0, count), where="post", label=label)
    steps.sticky_edges.y.append(0)  # the axis begins at 0, without a margin below
    if band is not None:
        lower, upper = (np.append(0, end) for end in band)
        axes.fill_between(edges, lower, upper, step="post", alpha=0.25, lw=0, color=steps.get_color())
        widest = int((upper - lower).max())
        pixels = axes.get_window_extent().height / axes.figure.dpi * _PIXELS
        if widest * pixels < _HARDLY * max(int(upper.max()), 1):
            said = f"the band of {label} is at most {widest:,} wide: hardly more than its line"
            title = "\n".join(filter(None, [axes.get_title(loc="left"), said]))
            axes.set_title(title, loc="left", fontsize="small", parse_math=False)
    axes.set_xlabel(xlabel)
    axes.set_ylabel("number of values below")
    if isinstance(locator := axes.xaxis.get_major_locator(), DateLocator):
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=locator.tz))  # type: ignore[no-untyped-call]
    return axes
