"""Pictures, with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_level_errors"]


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
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("Plotting", package="matplotlib", extra="report") from None
    axes = plt.subplots(figsize=(6, 0.6 + 0.5 * len(levels)), layout="constrained")[1] if ax is None else ax
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
