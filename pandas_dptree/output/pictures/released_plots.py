"""The pictures of a released table: `table.dp.plot`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.arguments import whole_number
from pandas_dptree.output.derived.changes import change_from
from pandas_dptree.output.pictures.changes import plot_changes
from pandas_dptree.output.pictures.heatmap import plot_heatmap
from pandas_dptree.output.pictures.icicle import plot_icicle
from pandas_dptree.output.pictures.levels import plot_levels
from pandas_dptree.output.released import Released

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReleasedPlots"]


class ReleasedPlots:
    """Pictures of a released table: ``counts.dp.plot``.

    They show only the table, so they cost no privacy.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Raise an `ArgumentError`, since a kind of plot must be chosen."""
        raise ArgumentError("plot", "has several kinds of plots.", hint="for example plot.levels().")

    def levels(self, value: Hashable | None = None, *, n: int = 10) -> npt.NDArray[np.object_]:
        """Draw the nodes of each level as dots, with whiskers for their errors.

        Levels of times, intervals and ordered categories keep their order. Others begin with the largest.

        Parameters
        ----------
        value : hashable, optional
            The column to draw; by default the first that has an error: the count, or the first sum or mean.
        n : int, default 10
            The largest number of nodes per level: the first in the order of the level, or the largest, which
            are those with the largest count if the table has counts, as tables of means have. Nodes without
            a value are left out.

        Returns
        -------
        numpy.ndarray of matplotlib.axes.Axes, shape (n_levels,)
            One panel per level below the total, which the title of the figure states; a table of the total
            alone has one panel. Each has a scale of its own, which for counts and sums includes 0. Its title
            states the error of the level. The whiskers are the intervals of what was counted (``lower``,
            ``upper``) if the table has any, otherwise one standard error to each side. Where whiskers are
            smaller than a dot, it is drawn as a tick, and the title says so.

            Noise helps to be among the largest. So where only the largest are drawn, the intervals of counts
            and sums are widened until all those of the level hold at once, drawn or not, with the confidence
            of the table. Those of means are not. The label below the last panel says what is drawn.

        Raises
        ------
        ArgumentError
            If the frame is not a released table, or does not have the column.
        MissingExtraError
            If matplotlib is not installed.

        Examples
        --------
        >>> import pandas as pd, pandas_dptree as dpt
        >>> records = pd.DataFrame({"state": ["CA", "CA", "NY"], "city": ["Oakland", "Fresno", "Utica"]})
        >>> counts = records.dp.tree_counts(["state", "city"], epsilon=1.0, domain="observed")
        >>> states, cities = counts.dp.plot.levels()  # doctest: +SKIP
        """
        released = Released.of(self._table)
        shown = released.shown(value)
        n = whole_number("n", n, at_least=1, hint="it is how many nodes of each level to draw: 10.")
        return plot_levels(released, shown, n)

    def icicle(self, value: Hashable | None = None) -> Axes:
        """Draw the hierarchy from left to right: boxes are as high as the values, paler if less certain.

        Boxes that would be too low to see are drawn as one, hatched, which says how many they are. Levels of
        times keep their order; others begin with the largest.

        Parameters
        ----------
        value : hashable, optional
            The column to draw; by default the first that has an error: the count, or the first sum.

        Returns
        -------
        matplotlib.axes.Axes
            Of a new figure.

        Raises
        ------
        ArgumentError
            If the frame is not a released table, or does not have the column; or if values are missing or
            negative, or those below a node do not add up to it, as those of distinct units: areas cannot show
            that.
        MissingExtraError
            If matplotlib is not installed.

        Examples
        --------
        For the counts of the example of `levels`:

        >>> counts.dp.plot.icicle()  # doctest: +SKIP
        """
        released = Released.of(self._table)
        return plot_icicle(released, released.shown(value))

    def heatmap(self, value: Hashable | None = None) -> Axes:
        """Draw the two finest levels as a grid: a line for each node above, a column for each key below.

        For levels whose keys occur below each node above, such as hours below weekdays. A cell has its
        number; its colour is by the square root. Cells whose standard error is at least half of their value,
        class F, are hatched. Times keep their order.

        Parameters
        ----------
        value : hashable, optional
            The column to draw; by default the first that has an error: the count, or the first sum or mean.

        Returns
        -------
        matplotlib.axes.Axes
            Of a new figure.

        Raises
        ------
        ArgumentError
            If the frame is not a released table, has one level alone, or more than 5,000 cells.
        MissingExtraError
            If matplotlib is not installed.

        Examples
        --------
        For the counts of the example of `levels`:

        >>> counts.dp.plot.heatmap()  # doctest: +SKIP
        """
        released = Released.of(self._table)
        return plot_heatmap(released, released.shown(value))

    def changes(
        self,
        before: pd.DataFrame,
        value: Hashable | None = None,
        *,
        n: int = 30,
        confidence: float = 0.95,
    ) -> Axes:
        """Draw the changes from an earlier table as dots on a line at zero, with their intervals.

        Parameters
        ----------
        before : pandas.DataFrame
            The released table of the earlier period, as for ``table.dp.change_from``.
        value : hashable, optional
            The column to compare; by default the first that has an error.
        n : int, default 30
            How many changes to draw at most: those that are largest beside their errors.
        confidence : float, default 0.95
            That of each interval by itself.

        Returns
        -------
        matplotlib.axes.Axes
            Of a new figure. Filled dots are beyond the noise; the title says how many would be by chance.

        Raises
        ------
        ArgumentError
            As for ``table.dp.change_from``.
        MissingExtraError
            If matplotlib is not installed.

        Examples
        --------
        >>> june.dp.plot.changes(may)  # doctest: +SKIP
        """
        n = whole_number("n", n, at_least=1, hint="it is how many changes to draw: 30.")
        changes = change_from(self._table, before, column=value, confidence=confidence)
        return plot_changes(Released.of(self._table), changes, n)

    def __repr__(self) -> str:
        """List the pictures."""
        return "Pictures of a released table: .levels(), .icicle(), .heatmap(), .changes(before)"
