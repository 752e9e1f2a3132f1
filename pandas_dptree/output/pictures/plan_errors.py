"""The expected errors of plans, level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pandas_dptree.output.pictures.figures import axes_of_size

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
    """Draw the expected standard error of each level under several plans.

    `errors` has the standard errors of each plan, shape (n_levels,), in `unit`. A new figure is made without
    `ax`.
    """
    axes = axes_of_size((6, 0.6 + 0.5 * len(levels))) if ax is None else ax
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
