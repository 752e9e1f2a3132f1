"""Plots of plans and releases, with matplotlib and plotly."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, MissingExtraError, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.arguments import whole_number
from pandas_dptree.output.drawn import at_once, choose, kind_of
from pandas_dptree.output.released import Released, Shown, provenance_of, share_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from plotly.graph_objects import Figure  # type: ignore[import-untyped]

__all__ = ["ReleasedPlots", "axes_of_size", "plot_cumulative", "plot_level_errors"]

FloatArray = npt.NDArray[np.float64]


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
    axes.set_xlabel(xlabel)
    axes.set_ylabel("number of values below")
    if isinstance(locator := axes.xaxis.get_major_locator(), DateLocator):
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=locator.tz))  # type: ignore[no-untyped-call]
    return axes


class ReleasedPlots:
    """Plots of a released table: ``counts.dp.plot``.

    They show only the table, so they cost no privacy.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Raise an `ArgumentError`, since a kind of plot must be chosen."""
        raise ArgumentError("plot", "has two kinds of plots.", hint="call plot.levels() or plot.icicle().")

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
            One panel per level, each with a scale of its own, which for counts and sums includes 0. Its title
            states the error of the level. The whiskers are the intervals of what was counted (``lower``,
            ``upper``) if the table has any, otherwise one standard error to each side.

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
        >>> total, states, cities = counts.dp.plot.levels()  # doctest: +SKIP
        """
        released = Released.of(self._table)
        shown = released.shown(value)
        n = whole_number("n", n, at_least=1, hint="it is how many nodes of each level to draw: 10.")
        size = released.shown("count" if "count" in released.columns else value).numbers
        provenance = provenance_of(self._table)
        levels = choose(released, size, shown.numbers, n)
        widened = [at_once(shown, provenance, level) if level.largest else None for level in levels]
        lines = [max(len(level.rows), 1) for level in levels]
        plt = _pyplot()
        _, panels = plt.subplots(
            len(levels), squeeze=False, figsize=(7, 0.9 + 0.6 * len(levels) + 0.23 * sum(lines)),
            height_ratios=[each + 0.5 for each in lines], layout="constrained",
        )  # fmt: skip
        kind = kind_of(shown.name, provenance)
        for axes, level, ends in zip(panels[:, 0], levels, widened, strict=True):
            values = shown.numbers[level.rows]
            position = np.arange(len(values))
            whiskers = _whiskers(shown, level.rows) if ends is None else np.abs(np.stack(ends) - values)
            axes.errorbar(values, position, xerr=whiskers, fmt="o", ms=4, capsize=2)
            names = [_short(released.path(row)) for row in level.rows.tolist()]
            axes.set_yticks(position, names, parse_math=False)
            axes.set_ylim(len(values) - 0.5, -0.5)
            some = f"{level.in_words}, " if level.in_words else ""
            title = f"{_short(level.name)}: {some}{_describe_errors(shown, level.of)}"
            axes.set_title(title, loc="left", fontsize="medium", parse_math=False)
            if kind:
                _from_zero(axes, values, signed=kind == "signed")
            axes.locator_params(axis="x", nbins=6)
            axes.xaxis.set_major_formatter("{x:,.10g}")
            axes.grid(axis="x", alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
        of_largest = [ends for level, ends in zip(levels, widened, strict=True) if level.largest]
        label = _describe_whiskers(shown, provenance, of_largest)
        if not kind and any(axes.get_xlim()[0] > 0 for axes in panels[:, 0]):
            label += "\n(the axes do not begin at 0)"
        panels[-1, 0].set_xlabel(label, parse_math=False)
        return np.asarray(panels[:, 0], dtype=object)

    def icicle(self, value: Hashable | None = None, *, max_nodes: int = 20_000) -> Figure:
        """Draw the hierarchy as an icicle: areas are proportional to the values, paler if less certain.

        Hovering over a node shows its value, its standard error and the ratio of the two. Clicking on it
        enlarges what is below it.

        Parameters
        ----------
        value : hashable, optional
            The column to draw; by default the first that has an error: the count, or the first sum.
        max_nodes : int, default 20,000
            Larger tables are refused, since browsers are slow to draw them.

        Returns
        -------
        plotly.graph_objects.Figure
            ``figure.write_html("icicle.html")`` writes a page that needs no network: it contains plotly.js,
            which takes 5 MB. ``include_plotlyjs="directory"`` stores plotly.js beside the page, once for all
            pages.

        Raises
        ------
        ArgumentError
            If the frame is not a released table, does not have the column, or has too many rows; or if values
            are missing or negative, or those below a node do not add up to it, which areas cannot show.
        MissingExtraError
            If plotly is not installed.

        Examples
        --------
        For the counts of the example of `levels`:

        >>> counts.dp.plot.icicle().write_html("icicle.html")  # doctest: +SKIP
        """
        released = Released.of(self._table)
        shown = released.shown(value)
        max_nodes = whole_number("max_nodes", max_nodes, at_least=1, hint="20_000 is the default.")
        if len(self._table) > max_nodes:
            raise ArgumentError(
                "max_nodes",
                f"is {max_nodes:,}, but the table has {len(self._table):,} rows.",
                hint="leave out the finest level first, for example counts[counts['level'] != "
                f"{quote(released.levels[-1][0])}], or allow more nodes.",
            )
        _check_areas(released, shown)
        graph_objects = _plotly()
        rows = range(len(self._table))
        relative = _relative(shown)
        depth = None if relative is None else np.log10(np.clip(relative, 0.001, 1.0))
        shade = None if depth is None else {
            "colors": depth, "cmin": -3, "cmax": 0, "line": {"width": 0.4},
            "colorscale": _SHADES, "showscale": True,
            "colorbar": {
                "title": {"text": f"{shown.error_name} ÷ {_markup(shown.name)}", "side": "right"},
                "tickvals": [-3, -2, -1, 0], "ticktext": ["≤ 0.1 %", "1 %", "10 %", "≥ 100 %"],
                "thickness": 12, "outlinewidth": 0,
            },
        }  # fmt: skip
        icicle = graph_objects.Icicle(
            ids=[str(row) for row in rows],
            parents=["" if parent < 0 else str(parent) for parent in released.parent.tolist()],
            labels=[_markup(released.name(row)) for row in rows],
            values=shown.numbers,
            branchvalues="total",
            customdata=[
                [_markup(released.path(row)), text]
                for row, text in zip(rows, _hover_texts(shown, relative), strict=True)
            ],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            texttemplate="%{label}<br>%{value:,}",
            marker=shade,
            textfont=None if depth is None else {"color": np.where(depth < _DARK, "#fff", "#000")},
            tiling={"orientation": "v"},
            sort=True,
        )
        margin = {"l": 10, "r": 10, "t": 30, "b": 10}
        return graph_objects.Figure(icicle, layout={"margin": margin, "height": 500})

    def __repr__(self) -> str:
        """List the plots."""
        return "Plots of a released table: .levels(), .icicle()"


_SHADES = ["#0b4f6c", "#3d8fa8", "#a5cbd6", "#f4f4f2"]
"""From certain values to pure noise."""

_DARK = -2.26
"""Below this, shades are so dark that white text is easier to read than black."""


def _whiskers(shown: Shown, rows: IntArray) -> FloatArray | None:
    """Compute the lengths of the whiskers to the left and right, shape (2, n_rows)."""
    values = shown.numbers[rows]
    if shown.interval is not None:
        lower, upper = (end[rows] for end in shown.interval)
        return np.stack([values - lower, upper - values])
    return None if shown.error is None else np.stack([shown.error[rows]] * 2)


def _describe_whiskers(shown: Shown, provenance: Mapping[str, Any], of_largest: Sequence[object]) -> str:
    """Say what the whiskers are; those `of_largest` nodes of a level are the widened intervals, or None."""
    if shown.error is None:
        return str(shown.name)
    if shown.interval is None:
        label = f"{shown.name} ± {shown.error_name}"
        remark = "noise helps to be among the largest: expect less"
    else:
        label = " ".join(f"{shown.name} with its {share_of(provenance)} interval of what was counted".split())
        remark = "of the largest, intervals hold one by one, not at once"
        if None not in of_largest:
            remark = "of the largest, intervals hold at once\nfor all of their level, drawn or not"
    return f"{label}\n({remark})" if of_largest else label


def _from_zero(axes: Axes, values: FloatArray, *, signed: bool) -> None:
    """Let the axis of what has a length include 0, and begin there unless dots are below it."""
    low, high = axes.dataLim.intervalx if len(values) else (0.0, 0.0)
    low = min(low, 0.0) if signed else values.min(initial=0.0)
    room = 0.05 * (max(high, 0.0) - low) or 1.0
    axes.set_xlim(low - room if low < 0 else 0.0, max(high, 0.0) + room)


def _describe_errors(shown: Shown, rows: IntArray) -> str:
    """Describe the range of the errors of a level."""
    errors = np.zeros(0) if shown.error is None else shown.error[rows]
    errors = errors[~np.isnan(errors)]
    if not len(errors):
        return f"{shown.error_name} unknown"
    least, most = _brief(errors.min()), _brief(errors.max())
    return f"{shown.error_name} {least}" + ("" if least == most else f" to {most}")


def _hover_texts(shown: Shown, relative: FloatArray | None) -> list[str]:
    """Format each value with its error."""
    name = _markup(shown.name)
    values = [f"{name} {value:,.0f}" if shown.whole else f"{name} {_brief(value)}" for value in shown.numbers]
    if shown.error is None or relative is None:
        return values
    return [
        f"{value} ± {_brief(error)}" + (f" ({_brief(100 * part)} %)" if np.isfinite(part) else "")
        for value, error, part in zip(values, shown.error, relative, strict=True)
    ]


def _relative(shown: Shown) -> FloatArray | None:
    """Divide errors by values; inf for a value of 0 that is not exact."""
    if shown.error is None:
        return None
    error = np.nan_to_num(shown.error, nan=np.inf, posinf=np.inf)
    empty = np.where(error > 0, np.inf, 0.0)
    return np.divide(error, shown.numbers, out=empty, where=shown.numbers > 0)


def _check_areas(released: Released, shown: Shown) -> None:
    """Refuse values that areas cannot show, for which a browser would silently draw nothing."""
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
        else ""
    )  # fmt: skip
    if problem:
        raise ArgumentError(
            "value",
            f"{problem}, in the column {quote(shown.name)}, and areas cannot show that.",
            hint='value="count" draws the counts.' if "count" in {*released.columns} - {shown.name}
            else "draw counts, or sums of non-negative values, released with "
            'consistency="integer" or "nonnegative"; if you drop rows, drop whole levels or branches. '
            "plot.levels() shows any table.",
        )  # fmt: skip


def _markup(text: object) -> str:
    """Escape text for plotly, which interprets some HTML tags."""
    return escape(str(text), quote=False)


def _short(text: str, most: int = 48) -> str:
    """Shorten a name to one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _brief(number: float) -> str:
    """Format a number with three significant digits, or as an integer from 100 on."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def axes_of_size(size: tuple[float, float]) -> Axes:
    """Open a new figure."""
    axes: Axes = _pyplot().subplots(figsize=size, layout="constrained")[1]
    return axes


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("Plotting", package="matplotlib") from None
    return plt


def _plotly() -> Any:
    try:
        from plotly import graph_objects  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("An icicle", package="plotly") from None
    return graph_objects
