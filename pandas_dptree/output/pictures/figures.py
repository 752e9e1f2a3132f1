"""What pictures with matplotlib share: figures, and texts that fit into them."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings

from pandas_dptree.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BAR", "axes_of_size", "brief", "figure_of", "fitted", "pyplot", "short", "width_of", "wrapped"]

BAR = "#4f8fb3"
"""The colour of lengths and areas, that of pages."""


def pyplot() -> Any:
    """Import matplotlib, or name it as missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("Plotting", package="matplotlib") from None
    return plt


def axes_of_size(size: tuple[float, float]) -> Axes:
    """Open a new figure."""
    axes: Axes = pyplot().subplots(figsize=size, layout="constrained")[1]
    return axes


def figure_of(title: str, width: float, height: float, *, below: float) -> Axes:
    """Open a figure of one panel as wide as itself, with its whole title above, sizes in inches."""
    lines = wrapped(title, width - 0.1, 10)
    above = 0.12 + 0.18 * len(lines)
    tall = above + height + below
    figure = pyplot().figure(figsize=(width, tall))
    figure.text(
        0.05 / width, 1 - 0.05 / tall, "\n".join(lines), va="top", size=10, linespacing=1.2, parse_math=False
    )
    axes: Axes = figure.add_axes((0, below / tall, 1, height / tall))
    return axes


def width_of(text: str, size: float) -> float:
    """Measure a line of text of a font size, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with catch_warnings(action="ignore"):  # of letters that the font lacks, drawing warns
        width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)
    return float(width) / 72


def wrapped(text: str, inches: float, size: float) -> list[str]:
    """Break text into lines that are no wider, keeping its own breaks."""
    lines = []
    for line in text.split("\n"):
        letters = len(line)
        while letters > 1 and any(width_of(part, size) > inches for part in wrap(line, letters)):
            letters = min(letters - 1, int(letters * 0.95))
        lines += wrap(line, letters) if letters else [line]
    return lines


def fitted(text: str, inches: float, size: float) -> str:
    """Shorten text until it is no wider; empty if there is no space."""
    letters = len(text)
    while letters and width_of(short(text, letters), size) > inches:
        letters = min(letters - 1, int(letters * 0.9))
    return short(text, letters) if letters else ""


def short(text: str, most: int = 60) -> str:
    """Shorten a name to one line of so many letters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def brief(number: float) -> str:
    """Format a number with three significant digits, or as an integer from 100 on."""
    text = f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
    return text.replace("-", "\N{MINUS SIGN}")
