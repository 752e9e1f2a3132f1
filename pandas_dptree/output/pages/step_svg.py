"""The picture of a distribution: cumulative counts as a step, with a band."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.numbers import FloatArray, Format

__all__ = ["nice_step", "step_svg"]

_HEIGHT: Final = 260
_TOP: Final = 8
_BOTTOM: Final = 232
_LEFT: Final = 12
_WIDTH: Final = 100 - _LEFT - 2
_MOST_STEPS: Final = 500


def step_svg(
    bins: Bins,
    band: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]],
    format_: Format,
    said: Callable[[Any], str],
) -> tuple[Markup, bool]:
    """Draw a band and the step within it, and say whether the band is thinner than two pixels.

    `band` has the lower, the estimated and the upper counts at the end of each bin. Shares of
    the width are in per cent and heights in pixels, so that text keeps its size.
    """
    numbers = bins.edges.astype(np.float64)
    x = 1000 * (numbers - numbers[0]) / (numbers[-1] - numbers[0])
    lower, counts, upper = band
    most = max(float(upper.max()), 1.0)
    kept = np.unique(np.rint(np.linspace(0, len(counts) - 1, _MOST_STEPS)).astype(int))
    x = x[np.append(0, kept + 1)]
    heights = [_BOTTOM - (_BOTTOM - _TOP) * each[kept] / most for each in (counts, lower, upper)]
    line, low, high = (_steps(x, each) for each in heights)
    drawing = element(
        "svg",
        element("path", d=f"M{high} L{_backwards(low)} Z", fill="var(--bar)", opacity="0.35"),
        element(
            "path",
            d=f"M{line}",
            fill="none",
            stroke="var(--line)",
            stroke_width="1.5",
            vector_effect="non-scaling-stroke",
        ),
        x=f"{_LEFT}%",
        width=f"{_WIDTH}%",
        height=_HEIGHT,
        viewBox=f"0 0 1000 {_HEIGHT}",
        preserveAspectRatio="none",
    )
    thin = bool((heights[1] - heights[2]).max() < 2)
    picture = element("svg", _rules(most, format_), _ticks(bins, said), drawing, width="100%", height=_HEIGHT)
    return picture, thin


def _steps(x: FloatArray, heights: FloatArray) -> str:
    """Return the corners of a step that begins at zero and rises at the end of each bin."""
    corners = [f"0,{_BOTTOM}"]
    before = float(_BOTTOM)
    for end, height in zip(x[1:].tolist(), heights.tolist(), strict=True):
        corners += [f"{end:.1f},{before:.1f}", f"{end:.1f},{height:.1f}"]
        before = height
    return " ".join(corners)


def _backwards(corners: str) -> str:
    return " ".join(reversed(corners.split()))


def _rules(most: float, format_: Format) -> list[Markup]:
    """Draw the lines of whole steps, with their numbers."""
    step = max(nice_step(most / 4), 1.0)
    made = []
    for value in np.arange(0, most + step / 2, step):
        height = f"{_BOTTOM - (_BOTTOM - _TOP) * min(value / most, 1.0):.1f}"
        if value > most:
            continue
        made.append(element("line", x1=f"{_LEFT}%", x2="98%", y1=height, y2=height, stroke="var(--rule)"))
        made.append(
            element("text", format_.number(value), x=f"{_LEFT - 1}%", y=height, dy="4", text_anchor="end")
        )
    return made


def _ticks(bins: Bins, said: Callable[[Any], str]) -> list[Markup]:
    """Name some values below the picture: round ones, or of times the ends and the middle."""
    numbers = bins.edges.astype(np.float64)
    if bins.is_time:
        marked = [0, bins.n_bins // 2, bins.n_bins]
        texts, values = list(map(said, bins.values_at(marked))), numbers[marked].tolist()
        if bins.edges.dtype.kind == "M" and bins.edges[-1] - bins.edges[0] > np.timedelta64(3, "D"):
            texts = [text[: len("2025-01-01")] for text in texts]
    else:
        step = nice_step(float(numbers[-1] - numbers[0]) / 5)
        first, last = math.ceil(numbers[0] / step - 1e-9), math.floor(numbers[-1] / step + 1e-9)
        values = [each * step for each in range(first, last + 1)]
        texts = list(map(said, values))
    places = [(value - numbers[0]) / (numbers[-1] - numbers[0]) for value in values]
    return [
        element(
            "text",
            text,
            x=f"{_LEFT + _WIDTH * place:.2f}%",
            y=_BOTTOM + 18,
            text_anchor="end" if place > 0.97 else "start" if place < 0.03 else "middle",
        )
        for text, place in zip(texts, places, strict=True)
    ]


def nice_step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10 and so on, times a power of ten, that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= least * (1 - 1e-9))
