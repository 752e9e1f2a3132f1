"""The nodes of each level as dots, with whiskers for their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.pictures.drawn import Drawn, at_once, choose, kind_of, size_of
from pandas_dptree.output.pictures.figures import BAR, brief, pyplot, short, width_of, wrapped
from pandas_dptree.output.protection import joined
from pandas_dptree.output.released import Released, Shown, provenance_of, share_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_levels"]

FloatArray = npt.NDArray[np.float64]

_SIZE = 10.0
"""The size of text, in points."""

_LINE, _ROW = 0.18, 0.23
"""The heights of a line of text and of a node, in inches."""

_ACROSS = 4.6
"""The width of panels, in inches."""

_DOT = 4.5
"""The width of a dot, in points."""


def plot_levels(released: Released, shown: Shown, n: int) -> npt.NDArray[np.object_]:
    """Draw at most n nodes of each level below the total, which the title states."""
    provenance = provenance_of(released.table)
    chosen = choose(released, size_of(released, shown), shown.numbers, n)
    levels = [level for level in chosen if level.name != ROOT] or chosen
    widened = [at_once(shown, provenance, level) if level.largest else None for level in levels]
    names = [[short(released.path(row)) for row in level.rows.tolist()] for level in levels]
    left = 0.25 + max((width_of(name, _SIZE) for each in names for name in each), default=0)
    width = left + _ACROSS + 0.25
    whiskers = [_whiskers(shown, level, ends) for level, ends in zip(levels, widened, strict=True)]
    kind = kind_of(shown.name, provenance)
    limits = [
        _limits(shown.numbers[level.rows], each, kind) for level, each in zip(levels, whiskers, strict=True)
    ]
    ticked = [
        _ticked(each, len(level.rows), ends)
        for level, each, ends in zip(levels, whiskers, limits, strict=True)
    ]
    titles = [
        wrapped(_title(shown, level, ticks), width - 0.1, _SIZE)
        for level, ticks in zip(levels, ticked, strict=True)
    ]
    head = wrapped(_head(released, shown, chosen, kind), width - 0.1, _SIZE)
    label = _describe_whiskers(
        shown, provenance, [ends for level, ends in zip(levels, widened, strict=True) if level.largest]
    )
    if not kind and any(low > 0 for low, _ in limits):
        label += "\n(the axes do not begin at 0)"
    below = wrapped(label, width - 0.1, _SIZE)
    tops = [_LINE * len(title) + 0.12 for title in titles]
    rows = [_ROW * max(len(level.rows), 1) + 0.1 for level in levels]
    height = 0.2 + (_LINE + 0.02) * len(head) + sum(tops) + sum(rows) + 0.42 * len(rows) + _LINE * len(below)
    figure = pyplot().figure(figsize=(width, height))
    text = {"ha": "left", "fontsize": _SIZE, "parse_math": False}
    figure.text(0.05 / width, 1 - 0.05 / height, "\n".join(head), va="top", **text)
    edge = (0.05 - left) / _ACROSS
    at = 0.15 + (_LINE + 0.02) * len(head)
    panels = []
    for place, level in enumerate(levels):
        at += tops[place]
        box = (left / width, 1 - (at + rows[place]) / height, _ACROSS / width, rows[place] / height)
        axes = figure.add_axes(box)
        _panel(axes, shown.numbers[level.rows], whiskers[place], ticked[place], names[place])
        axes.set_xlim(*limits[place])
        axes.set_title("\n".join(titles[place]), loc="left", x=edge, **text)
        at += rows[place] + 0.42
        panels.append(axes)
    panels[-1].set_xlabel("\n".join(below), x=edge, **text)
    return np.array(panels, dtype=object)


def _panel(
    axes: Axes,
    values: FloatArray,
    whiskers: FloatArray | None,
    ticks: npt.NDArray[np.bool_],
    names: list[str],
) -> None:
    """Draw the nodes of a level, from above."""
    position = np.arange(len(values))
    if whiskers is not None:
        for part, cap in ((~ticks, 2), (ticks, 0)):
            axes.errorbar(
                values[part], position[part], xerr=whiskers[:, part],
                fmt="none", ecolor="#0d2f44", elinewidth=1, capsize=cap,
            )  # fmt: skip
    axes.plot(values[~ticks], position[~ticks], "o", ms=_DOT, color=BAR, mew=0, zorder=3)
    axes.plot(values[ticks], position[ticks], "|", ms=9, mew=1.5, color=BAR, zorder=3)
    axes.set_yticks(position, names, parse_math=False)
    axes.set_ylim(max(len(values), 1) - 0.5, -0.5)
    axes.locator_params(axis="x", nbins=6)
    axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _whiskers(shown: Shown, level: Drawn, ends: tuple[FloatArray, FloatArray] | None) -> FloatArray | None:
    """Compute the lengths of the whiskers to the left and right, shape (2, n_rows)."""
    values = shown.numbers[level.rows]
    if ends is None and shown.interval is not None:
        ends = shown.interval[0][level.rows], shown.interval[1][level.rows]
    if ends is not None:
        return np.maximum(np.stack([values - ends[0], ends[1] - values]), 0.0)
    return None if shown.error is None else np.stack([shown.error[level.rows]] * 2)


def _limits(values: FloatArray, whiskers: FloatArray | None, kind: str) -> tuple[float, float]:
    """Return the ends of an axis: with 0 where values have a length, and from there unless dots are below."""
    sides = np.zeros((2, len(values))) if whiskers is None else np.nan_to_num(whiskers, posinf=0.0)
    low = float((values if kind == "non-negative" else values - sides[0]).min(initial=np.inf))
    high = float((values + sides[1]).max(initial=-np.inf))
    if kind or not len(values):
        low, high = min(low, 0.0), max(high, 0.0)
    beyond = 0.05 * (high - low) or 1.0
    return (0.0 if kind and low == 0 else low - beyond), high + beyond


def _ticked(whiskers: FloatArray | None, n: int, limits: tuple[float, float]) -> npt.NDArray[np.bool_]:
    """Find the nodes whose whiskers are together shorter than a dot is wide."""
    if whiskers is None:
        return np.zeros(n, dtype=bool)
    dot = _DOT / 72 / _ACROSS * (limits[1] - limits[0])
    return np.asarray(whiskers.sum(axis=0) < dot)


def _head(released: Released, shown: Shown, levels: Sequence[Drawn], kind: str) -> str:
    """Say what is drawn, and its total."""
    title = f"{shown.name} by {joined([str(key) for key in released.keys])}"
    if levels[0].name != ROOT or len(levels) == 1 or not len(levels[0].rows):
        return title
    row = int(levels[0].rows[0])
    write, whole = (brief, "in all") if kind else ("{:,.5g}".format, "for all")  # a mean is no sum
    title += f": {write(shown.numbers[row])} {whole}"
    if shown.interval is not None:
        return f"{title} ({write(shown.interval[0][row])} to {write(shown.interval[1][row])})"
    return title if shown.error is None else f"{title} ± {write(shown.error[row])}"


def _title(shown: Shown, level: Drawn, ticks: npt.NDArray[np.bool_]) -> str:
    """Say which nodes of a level are drawn, and how large their errors are."""
    some = f"{level.in_words}, " if level.in_words else ""
    small = ", smaller than the mark" if ticks.any() else ""
    where = " where it is a tick" if small and not ticks.all() else ""
    return f"{level.name}: {some}{_describe_errors(shown, level.of)}{small}{where}"


def _describe_errors(shown: Shown, rows: IntArray) -> str:
    """Describe the range of the errors of a level."""
    errors = np.zeros(0) if shown.error is None else shown.error[rows]
    errors = errors[~np.isnan(errors)]
    if not len(errors):
        return f"{shown.error_name} unknown"
    least, most = brief(errors.min()), brief(errors.max())
    return f"{shown.error_name} {least}" + ("" if least == most else f" to {most}")


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
