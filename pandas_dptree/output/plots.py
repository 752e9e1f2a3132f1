"""Pictures, with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_cumulative", "plot_level_errors"]


def plot_level_errors(
    levels: Sequence[str],
    errors: Mapping[str, npt.NDArray[np.float64]],
    ax: Axes | None = None,
    *,
    unit: str = "counts",
) -> Axes:
    """Draw the expected standard error of each level under several plans, side by side.

    Parameters
    ----------
    levels : sequence of str
        Names of the levels, from the root to the leaves.
    errors : mapping from str to numpy.ndarray, shape (n_levels,)
        For each plan, the standard errors.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    unit : str
        What the errors are in.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    axes = _axes((6, 0.6 + 0.5 * len(levels))) if ax is None else ax
    position = np.arange(len(levels))
    for marker, (label, error) in zip("osD^v", errors.items(), strict=False):
        axes.plot(error, position, marker, label=label, clip_on=False)
    axes.set_yticks(position, levels)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(f"expected standard error ({unit})")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False)
    return axes


def plot_cumulative(
    edges: npt.NDArray[Any],
    count: npt.NDArray[np.int64],
    band: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None,
    ax: Axes | None = None,
    *,
    label: str,
    xlabel: str,
) -> Axes:
    """Draw how many values lie below the end of each bin, as steps, and what all of it is between.

    Parameters
    ----------
    edges : numpy.ndarray, shape (n_bins + 1,)
        Of the bins: numbers or times.
    count : numpy.ndarray of int64, shape (n_bins,)
        Cumulative counts.
    band : pair of numpy.ndarray of int64, shape (n_bins,), optional
        The ends of their intervals.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    label : str
        Of the steps.
    xlabel : str
        What the values are.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    axes = _axes((6, 3.7)) if ax is None else ax
    from matplotlib.dates import ConciseDateFormatter, DateLocator

    [steps] = axes.step(edges, np.append(0, count), where="post", label=label)
    if band is not None:
        lower, upper = (np.append(0, end) for end in band)
        axes.fill_between(edges, lower, upper, step="post", alpha=0.25, lw=0, color=steps.get_color())
    axes.set_xlabel(xlabel)
    axes.set_ylabel("number of values below")
    if isinstance(locator := axes.xaxis.get_major_locator(), DateLocator):
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=locator.tz))  # type: ignore[no-untyped-call]
    return axes


def _axes(size: tuple[float, float]) -> Axes:
    """Open a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("Plotting", package="matplotlib", extra="report") from None
    axes: Axes = plt.subplots(figsize=size, layout="constrained")[1]
    return axes
